//! What kept each forwarding rate from being higher: the load, the tester, the wire or the target.
//!
//! The wire's ceiling is what a forwarder that looks at no frame reached on the same wire in the
//! same run (testpmd); without one nobody knows it. Invariant: a function of cells and trials.

use super::is_limited;
use crate::links;
use crate::record::{Cell, Limit, Metric, Record, Trial};

/// The forwarder that looks at no frame, by its name as a target.
const CEILING: &str = "testpmd";

/// From this share of the ceiling on, a target is as fast as the wire.
const CEILING_SHARE: f64 = 0.95;

/// Loss below which a load was carried.
const LOSS_RATIO_MAX: f64 = 0.001;

/// Offered below this share of intended, a load was not what was asked for.
const OFFERED_SHARE_MIN: f64 = 0.999;

/// Says of every cell of a forwarding rate what limited it.
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

/// Whether what was asked for came through. Where a target takes frames by itself, it need not lose
/// any of those that it took to be at its limit.
fn is_carried(trial: &Trial) -> bool {
    let is_whole = trial.frames_offered as f64 >= trial.frames_intended as f64 * OFFERED_SHARE_MIN;
    is_whole && trial.loss_ratio().is_some_and(|loss| loss <= LOSS_RATIO_MAX)
}
