//! Derives the quality of each value, its bounds, disturbances and exclusions, from trials and
//! outcomes.
//!
//! Invariants:
//!
//! - A condition of most repeats of a rate makes the rate a bound. A condition of fewer repeats
//!   marks these as disturbed.
//! - A trial is disturbed for a metric only if stalls can change that metric.

use super::{Place, bianco2010, is_limited, is_step};
use record::{
    Bound, BoundCause, BoundSide, Cell, Disturbance, DisturbanceCause, Exclusion, Flag, Limit,
    Metric, Outcome, Point, Record, Remark, Role, Trial,
};
use stats::conclude::is_below_resolution;

/// Share of a trial for which the tester may be descheduled without a relevant change of a rate or
/// median.
const STALLED_SHARE_OF_RATES: f64 = stats::conclude::RELEVANT_RATIO;

/// The same share for means, which a few late frames change.
const STALLED_SHARE_OF_MEANS: f64 = 0.001;

/// Facts about one repeat of a value.
#[derive(Debug, Default)]
struct RepeatFacts {
    causes: Vec<DisturbanceCause>,
    bound: Option<Bound>,
}

/// Adds the quality of a value from the trials and outcomes of its place.
pub(super) fn describe(cell: &mut Cell, record: &Record, place: &Place<'_>) {
    let mut repeats: Vec<(u32, RepeatFacts)> = Vec::new();
    for trial in place.trials.iter().filter(|trial| cell.trials.contains(&trial.id)) {
        if !is_step(trial) && super::value_of(record, trial, cell.metric).is_some() {
            repeats.push((trial.repeat, of_trial(trial, cell.metric)));
        }
    }
    for outcome in place.outcomes.iter().filter(|outcome| outcome.metric == cell.metric) {
        repeats.push((outcome.repeat, of_outcome(place, outcome)));
    }
    let bounds = || repeats.iter().filter_map(|(_, found)| found.bound);
    let is_of_tester = |bound: &Bound| bound.cause == BoundCause::TesterLimit;
    // One repeat at the search limit makes the mean a bound. A single limitation of the tester
    // affects only that repeat.
    let most = bounds().filter(is_of_tester).count() * 2 > repeats.len();
    cell.bound = bounds().find(|bound| most || !is_of_tester(bound));
    let is_bound = cell.bound.is_some();
    for (repeat, found) in repeats {
        let minor = found.bound.filter(|_| !is_bound).map(|_| DisturbanceCause::TesterLimited);
        for cause in found.causes.into_iter().chain(minor) {
            match cell.disturbances.iter_mut().find(|it| it.cause == cause) {
                Some(known) if known.repeats.contains(&repeat) => {}
                Some(known) => known.repeats.push(repeat),
                None => cell.disturbances.push(Disturbance { cause, repeats: vec![repeat] }),
            }
        }
    }
    cell.disturbances.iter_mut().for_each(|it| it.repeats.sort_unstable());
    cell.disturbances.sort_by_key(|it| it.cause);
    cell.resolution = resolution(cell, place);
    if is_below_resolution(cell, cell.value) {
        cell.bound = Some(Bound { side: BoundSide::Upper, cause: BoundCause::Resolution });
    }
}

/// The largest resolution of the undisturbed repeats, which conclusions use; of all repeats if none
/// is undisturbed.
fn resolution(cell: &Cell, place: &Place<'_>) -> Option<f64> {
    let is_disturbed =
        |repeat: u32| cell.disturbances.iter().any(|it| it.repeats.contains(&repeat));
    let of = |counts: &dyn Fn(&Outcome) -> bool| {
        let outcomes = place.outcomes.iter().filter(|it| it.metric == cell.metric && counts(it));
        outcomes.filter_map(|outcome| outcome.resolution).max_by(f64::total_cmp)
    };
    let has_undisturbed = cell.repeats.iter().any(|repeat| !is_disturbed(*repeat));
    of(&|outcome| !has_undisturbed || !is_disturbed(outcome.repeat))
}

/// Adds bounds that follow from what limited a forwarding rate.
pub(super) fn by_limit(record: &mut Record) {
    let bound = Bound { side: BoundSide::Lower, cause: BoundCause::LinkLimit };
    let capacity = record.parameters.get("capacity_bps").and_then(|it| it.as_f64());
    let mut limited: Vec<(String, String, Point, Vec<u64>)> = Vec::new();
    for cell in record.cells.iter().filter(|cell| cell.metric == Metric::RatePpsForwarded) {
        let mut trials = record.trials.iter().filter(|trial| cell.trials.contains(&trial.id));
        let is_full = |trial: &Trial| {
            let (Some(bytes), Some(capacity)) = (trial.frame_bytes, capacity) else { return false };
            let bits = 8.0 * (f64::from(bytes) + bianco2010::WIRE_OVERHEAD_BYTES);
            trial.rate_pps_intended * bits >= FULL_LOAD * capacity
        };
        match cell.limit {
            Some(Limit::Wire) => {}
            Some(Limit::Load) if trials.all(is_full) => {}
            _ => continue,
        }
        let (experiment, target) = (cell.experiment.clone(), cell.target.clone());
        limited.push((experiment, target, cell.point.clone(), cell.trials.clone()));
    }
    // A method may read the rate of the same trials under a name of its own.
    let is_rate = |cell: &Cell| match cell.metric {
        Metric::RatePpsForwarded | Metric::RateBpsForwarded => true,
        Metric::Named(_) => cell.metric.unit() == "pps",
        _ => false,
    };
    for cell in record.cells.iter_mut().filter(|cell| is_rate(cell)) {
        let is_it = |(experiment, target, point, trials): &(String, String, Point, Vec<u64>)| {
            (experiment, target, point) == (&cell.experiment, &cell.target, &cell.point)
                && *trials == cell.trials
        };
        if limited.iter().any(is_it) {
            cell.bound = Some(bound);
        }
    }
}

/// Share of the link's capacity from which a load fills the link.
const FULL_LOAD: f64 = 0.99;

/// Excludes values for conditions of the whole run.
pub(super) fn exclude(record: &mut Record) {
    let exclusion = match record.environment.simulated {
        true => Some(Exclusion::Simulated),
        false => run_disturbed(record),
    };
    record.cells.iter_mut().for_each(|cell| cell.exclusion = exclusion);
}

/// Whether the tester was descheduled in more than half of the trials.
fn run_disturbed(record: &Record) -> Option<Exclusion> {
    let (mut trials, mut of) = (0, 0);
    for trial in &record.trials {
        of += 1;
        trials += u64::from(is_descheduled(trial, STALLED_SHARE_OF_MEANS));
    }
    (2 * trials > of).then_some(Exclusion::RunDisturbed { trials, of })
}

/// Whether the tester was descheduled for more than this share of a trial.
fn is_descheduled(trial: &Trial, share: f64) -> bool {
    if !trial.flags.contains(&Flag::Stall) {
        return false;
    }
    let sending = trial.duration_ns_warmup + trial.duration_ns_effective;
    // Older records have only the flag.
    trial.stalls.is_none_or(|stalls| stalls.ns_total as f64 > share * sending as f64)
}

/// Whether a metric is a rate that a target may exceed when the tester offers more.
fn is_rate(metric: Metric) -> bool {
    matches!(metric.unit(), "pps" | "bps" | "per_s")
}

fn is_offered(metric: Metric) -> bool {
    matches!(metric, Metric::RatePpsOffered | Metric::RateBpsOffered)
}

/// Share of a trial for which stalls may last before they change the metric; none if they never do.
fn stalled_share(metric: Metric) -> Option<f64> {
    let name = metric.name();
    let is_loss = stats::direction::is_loss(metric);
    match metric.unit() {
        "ns" if name.ends_with("_p50") => Some(STALLED_SHARE_OF_RATES),
        "ns" if name.ends_with("_mean") || metric == Metric::ProcessingNs => {
            Some(STALLED_SHARE_OF_MEANS)
        }
        "ns" => Some(0.0),
        _ if is_offered(metric) => None,
        "pps" | "bps" | "per_s" => Some(STALLED_SHARE_OF_RATES),
        _ if is_loss || metric == Metric::LossRatioDifference => Some(STALLED_SHARE_OF_RATES),
        _ => None,
    }
}

const LIMITED_BY_TESTER: Bound = Bound { side: BoundSide::Lower, cause: BoundCause::TesterLimit };

fn of_trial(trial: &Trial, metric: Metric) -> RepeatFacts {
    let mut found = RepeatFacts { causes: of_flags(trial, metric), bound: None };
    if is_limited(trial) && !is_offered(metric) {
        match is_rate(metric) {
            true => found.bound = Some(LIMITED_BY_TESTER),
            false if stalled_share(metric).is_some() => {
                found.causes.push(DisturbanceCause::TesterLimited);
            }
            false => {}
        }
    }
    found
}

fn of_flags(trial: &Trial, metric: Metric) -> Vec<DisturbanceCause> {
    let has = |flag| trial.flags.contains(&flag);
    let is_stalled = stalled_share(metric).is_some_and(|share| is_descheduled(trial, share));
    [
        (is_stalled, DisturbanceCause::Descheduled),
        (has(Flag::ColdCaches) && !is_offered(metric), DisturbanceCause::ColdCaches),
        (has(Flag::Irregular) && !is_offered(metric), DisturbanceCause::Irregular),
    ]
    .into_iter()
    .filter_map(|(is_it, cause)| is_it.then_some(cause))
    .collect()
}

fn of_outcome(place: &Place<'_>, outcome: &Outcome) -> RepeatFacts {
    let metric = outcome.metric;
    let has = |flag| outcome.flags.contains(&flag);
    let mut found = RepeatFacts::default();
    let source = read_from(place, outcome);
    // A search repeats its disturbed trials itself. A module and a single trial do not.
    for trial in place.trials.iter().filter(|it| outcome.trials.contains(&it.id)) {
        if trial.module.is_some() || source.is_some() || metric.unit() == "ns" {
            found.causes.extend(of_flags(trial, metric));
        }
    }
    let is_more_better = stats::direction::of(metric) == Some(stats::direction::Direction::Higher);
    // A trial that lost frames shows its target, even if the tester offered less than intended.
    let is_of_tester = has(Flag::TesterLimited) && source.is_none_or(is_limited);
    if (is_of_tester || has(Flag::TesterInterference)) && stalled_share(metric).is_some() {
        match is_rate(metric) || is_more_better {
            true => found.bound = Some(LIMITED_BY_TESTER),
            false => found.causes.push(DisturbanceCause::TesterLimited),
        }
    }
    let remarks = outcome.goal.iter().flat_map(|goal| &goal.remarks);
    let mut open = remarks.filter_map(|remark| match remark {
        // The highest load of the search is the capacity of the link.
        Remark::NoUpperBound => Some((BoundSide::Lower, BoundCause::LinkLimit)),
        Remark::NoLowerBound => Some((BoundSide::Upper, BoundCause::SearchLimit)),
        _ => None,
    });
    if let Some(bound) = outcome.bound {
        found.bound = Some(bound);
    } else if let Some((side, cause)) = open.next_back() {
        found.bound = Some(Bound { side, cause });
    } else if has(Flag::Irregular) {
        found.causes.push(DisturbanceCause::Irregular);
    }
    found
}

/// The trial that a value was read from, if it is neither of a search nor of a module.
fn read_from<'a>(place: &Place<'a>, outcome: &Outcome) -> Option<&'a Trial> {
    let [id] = outcome.trials[..] else { return None };
    let mut trials = place.trials.iter().copied().filter(|trial| trial.id == id);
    trials.find(|trial| trial.module.is_none() && trial.role == Role::Measure)
}
