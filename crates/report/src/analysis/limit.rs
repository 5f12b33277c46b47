//! Finds what limited each forwarding rate: the load, the tester, the link or the target.
//!
//! The link's maximum is the rate of a forwarder that does not parse frames (testpmd) on the same
//! link in the same run. Without such a target it is unknown. Invariant: the result is a function
//! of cells and trials.

use super::is_limited;
use record::links;
use record::{Cell, Limit, Metric, Record, Trial};

/// Target name of the forwarder that does not parse frames.
const CEILING: &str = "testpmd";

/// Share of the maximum from which a target is as fast as the link.
const CEILING_SHARE: f64 = 0.95;

/// Frame loss rate below which a load was forwarded.
const LOSS_RATIO_MAX: f64 = 0.001;

/// Below this share of the intended load, the offered load is insufficient.
const OFFERED_SHARE_MIN: f64 = 0.999;

/// Sets the limit of every cell of a forwarding rate.
pub(super) fn find(record: &mut Record) {
    let limits: Vec<Option<Limit>> = record.cells.iter().map(|cell| of(record, cell)).collect();
    for (cell, limit) in record.cells.iter_mut().zip(limits) {
        cell.limit = limit;
    }
}

fn of(record: &Record, cell: &Cell) -> Option<Limit> {
    if cell.metric != Metric::RatePpsForwarded {
        return None;
    }
    let trials: Vec<&Trial> =
        record.trials.iter().filter(|trial| cell.trials.contains(&trial.id)).collect();
    let most =
        |is: fn(&Trial) -> bool| trials.iter().filter(|it| is(it)).count() * 2 > trials.len();
    if most(is_limited) {
        return Some(Limit::Tester);
    }
    if most(is_carried) {
        return Some(Limit::Load);
    }
    let ceiling = record
        .cells_of(&cell.experiment, CEILING, cell.metric)
        .find(|other| other.point == cell.point && other.target != cell.target)
        .filter(|_| links::of(record, CEILING) == links::of(record, &cell.target));
    match ceiling {
        Some(ceiling) if cell.value >= ceiling.value * CEILING_SHARE => Some(Limit::Wire),
        _ if cell.target == CEILING => Some(Limit::Wire),
        _ => Some(Limit::Target),
    }
}

/// Whether the intended load was forwarded. A target that takes frames by itself may be at its
/// limit without losing any that it took.
fn is_carried(trial: &Trial) -> bool {
    let is_whole = trial.frames_offered as f64 >= trial.frames_intended as f64 * OFFERED_SHARE_MIN;
    is_whole && trial.loss_ratio().is_some_and(|loss| loss <= LOSS_RATIO_MAX)
}
