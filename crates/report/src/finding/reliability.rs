//! Finds what the values of a run rest on: trials, intervals, frames, limits and warnings.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, results};
use crate::analysis::failed;
use crate::figure::views;
use record::links;
use record::{
    Calibration, Cell, DisturbanceCause, DropPlace, Effort, Flag, Limit, Metric, Point, Record,
    Target, Trial, Verdict, WarningEntry, gathered,
};
use stats::series;

/// What the values of a run rest on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reliability {
    pub(crate) trials: usize,
    /// Trials of which a value does not use every result, and the most frequent cause.
    pub(crate) disturbed: (Vec<u64>, Option<DisturbanceCause>),
    /// Trials without a result: interrupted, failed, or repeated.
    pub(crate) unused: Vec<u64>,
    /// Half widths of the values' intervals as shares of the values: the median and the largest.
    pub(crate) widths: Option<[f64; 2]>,
}

/// Frames of the accounted trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) offered: u64,
    pub(crate) received: u64,
    /// Frames lost in the target, kernel, link and tester.
    pub(crate) lost: [u64; 4],
    pub(crate) missing: u64,
    /// Frames received beyond those sent. They make up for no missing frame of another trial.
    pub(crate) surplus: u64,
    /// Interrupted trials, which are left out.
    pub(crate) cut_short: usize,
}

/// The places of lost frames, in the order of the account.
pub(super) const PLACES: [DropPlace; 4] =
    [DropPlace::Target, DropPlace::Kernel, DropPlace::Link, DropPlace::Tester];

/// Frames that SNMP agents counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Agents<'a> {
    /// Trials in which agents were read, and those in which they reported frames.
    pub(crate) trials: [usize; 2],
    pub(crate) frames_in: u64,
    pub(crate) frames_sent: u64,
    pub(crate) problem: Option<&'a str>,
}

/// What the values of a run rest on; none without trials or of a run that is not usable.
pub(super) fn reliability(record: &Record) -> Option<Reliability> {
    let is_unused = |trial: &&Trial| {
        trial.flags.iter().any(|flag| matches!(flag, Flag::Interrupted | Flag::Retried))
            || failed::reason(trial).is_some()
    };
    let is_usable = !record.trials.is_empty() && results::unusable(record).is_none();
    is_usable.then(|| Reliability {
        trials: record.trials_ended(),
        disturbed: disturbed(record),
        unused: record.trials.iter().filter(is_unused).map(|trial| trial.id).collect(),
        widths: widths(record),
    })
}

/// Trials whose repeat is disturbed in some value, and the most frequent cause.
pub(super) fn disturbed(record: &Record) -> (Vec<u64>, Option<DisturbanceCause>) {
    let repeats: BTreeMap<u64, u32> = record.trials.iter().map(|it| (it.id, it.repeat)).collect();
    let mut by_cause: BTreeMap<DisturbanceCause, BTreeSet<u64>> = BTreeMap::new();
    for cell in &record.cells {
        for it in &cell.disturbances {
            let of = |id: &&u64| repeats.get(*id).is_some_and(|own| it.repeats.contains(own));
            by_cause.entry(it.cause).or_default().extend(cell.trials.iter().filter(of));
        }
    }
    let all: BTreeSet<u64> = by_cause.values().flatten().copied().collect();
    let most = by_cause.into_iter().max_by_key(|(_, trials)| trials.len());
    (all.into_iter().collect(), most.map(|(cause, _)| cause))
}

/// The median and the largest half width of the intervals, of each experiment's main metric.
fn widths(record: &Record) -> Option<[f64; 2]> {
    let mut widths = Vec::new();
    for experiment in &record.experiments {
        let Some(view) = views(record, experiment).into_iter().next() else { continue };
        let metric = results::compared_metric(&view);
        let own = |cell: &&Cell| cell.experiment == experiment.id && cell.metric == metric;
        for cell in record.cells.iter().filter(own).filter(|cell| cell.bound.is_none()) {
            let width = cell.range().map(|it| (it.high - it.low) / 2.0 / cell.value.abs());
            widths.extend(width.filter(|it| it.is_finite()));
        }
    }
    Some([series::median(&widths)?, widths.iter().copied().fold(0.0, f64::max)])
}

/// What the values rest on, in detail.
pub(crate) fn confidence(record: &Record) -> Vec<Finding<'_>> {
    let repeats = || record.cells.iter().map(|cell| cell.n);
    let repeats = repeats().min().zip(repeats().max());
    let mut found = vec![Finding::Account(Account {
        cut_short: record.trials_ended() - record.trials_accounted().count(),
        ..account_of(record.trials_accounted())
    })];
    found.extend(limited(record));
    found.extend(repeats.map(|(least, most)| Finding::Repeats([least, most])));
    found.extend(agents(&record.trials).map(Finding::Agents));
    found.extend(record.calibrations.iter().map(|found| {
        let above = above_ceiling(record, found);
        Finding::Calibration { found, above }
    }));
    found
}

/// What kept the forwarding rates of plain workloads from being higher. A study's figures show whole
/// curves, under and over any limit.
fn limited<'a>(record: &'a Record) -> Vec<Finding<'a>> {
    let mut found = Vec::new();
    for experiment in record.experiments.iter().filter(|experiment| experiment.study.is_none()) {
        for limit in [Limit::Tester, Limit::Wire, Limit::Target, Limit::Load] {
            let points = |target: &'a Target| {
                let rates = record.cells_of(&experiment.id, &target.name, Metric::RatePpsForwarded);
                let rates: Vec<&Cell> = rates.collect();
                (rates.iter().filter(|cell| cell.limit == Some(limit)).count(), rates.len())
            };
            let targets =
                record.targets.iter().map(|target| (target.name.as_str(), points(target)));
            let targets = targets.filter(|(_, (limited, _))| *limited > 0);
            let targets: Vec<_> = targets.map(|(name, (some, all))| (name, some, all)).collect();
            if !targets.is_empty() {
                found.push(Finding::Limited { experiment: &experiment.id, limit, targets });
            }
        }
    }
    found
}

/// Targets that forwarded more than the tester carries alone.
fn above_ceiling<'a>(record: &'a Record, calibration: &Calibration) -> Vec<&'a str> {
    let is_above = |trial: &&Trial| {
        trial.frame_bytes == Some(calibration.frame_bytes)
            && links::of(record, &trial.target) == calibration.link
            && trial.rate_pps_forwarded().is_some_and(|it| it > calibration.rate_pps_ceiling as f64)
    };
    let mut names: Vec<&str> = Vec::new();
    for trial in record.trials.iter().filter(is_above) {
        if !names.contains(&trial.target.as_str()) {
            names.push(&trial.target);
        }
    }
    names
}

/// What SNMP agents counted, if agents were read.
pub(super) fn agents(trials: &[Trial]) -> Option<Agents<'_>> {
    let read = || trials.iter().filter_map(|trial| trial.witness.as_ref());
    let counted = || read().filter(|witness| witness.frames_in.is_some());
    (read().count() > 0).then(|| Agents {
        trials: [read().count(), counted().count()],
        frames_in: counted().filter_map(|witness| witness.frames_in).sum(),
        frames_sent: counted().map(|witness| witness.frames_sent).sum(),
        problem: read().flat_map(|witness| &witness.problems).next().map(String::as_str),
    })
}

/// The account of these trials.
pub(crate) fn account_of<'a>(trials: impl Iterator<Item = &'a Trial>) -> Account {
    let mut found = Account::default();
    for trial in trials {
        found.offered += trial.account_frames_offered;
        found.received += trial.account_frames_received;
        found.missing += trial.frames_unexplained.max(0).unsigned_abs();
        found.surplus += trial.frames_unexplained.min(0).unsigned_abs();
        for drop in &trial.drops {
            let place = PLACES.iter().position(|it| *it == drop.place);
            found.lost[place.expect("the account has all places")] += drop.frames;
        }
    }
    found
}

/// That more effort gives values to publish, after a run of quick effort in real time.
pub(crate) fn first_look<'a>(record: &Record) -> Option<Finding<'a>> {
    let number = |key: &str| record.parameters.get(key).and_then(serde_json::Value::as_f64);
    let is_quick = record.effort == Effort::Quick && !record.environment.simulated;
    let (repeats, seconds) = number("repeats").zip(number("seconds")).filter(|_| is_quick)?;
    Some(Finding::FirstLook { repeats, seconds })
}

/// The verdicts on claims by kind, if the run has claims.
pub(crate) fn claims<'a>(record: &Record) -> Option<Finding<'a>> {
    let counted = || record.claims.iter().filter(|line| !line.is_by_construction);
    let count = |of: fn(&Verdict) -> bool| counted().filter(|line| of(&line.verdict)).count();
    let found = [
        count(|verdict| *verdict == Verdict::Holds),
        count(|verdict| *verdict == Verdict::Contradicted),
        count(|verdict| matches!(verdict, Verdict::Undecided(_))),
        record.claims.iter().filter(|line| line.is_by_construction).count(),
    ];
    (!record.claims.is_empty()).then_some(Finding::Claims(found))
}

/// The warnings, each once, with the points that they concern.
pub(crate) fn caveats(record: &Record) -> Vec<Finding<'_>> {
    let of = |WarningEntry { about, warning }: WarningEntry| {
        let points = points(record, &about, &warning);
        Finding::Warned { about, points, warning }
    };
    gathered(&record.warnings).into_iter().map(of).collect()
}

/// The points of one experiment whose values have a warning of this kind; none if all have it.
fn points<'a>(record: &'a Record, about: &str, warning: &record::Warning) -> Vec<&'a Point> {
    let Some((experiment, targets)) = about.split_once(" on ") else { return Vec::new() };
    let targets: Vec<&str> = targets.split(", ").collect();
    let own =
        |cell: &&Cell| cell.experiment == experiment && targets.contains(&cell.target.as_str());
    let kind = std::mem::discriminant(warning);
    let is_warned =
        |cell: &&Cell| cell.warnings.iter().any(|it| std::mem::discriminant(it) == kind);
    let unique = |cells: &mut dyn Iterator<Item = &'a Cell>| {
        let mut found: Vec<&Point> = cells.map(|cell| &cell.point).collect();
        found.sort_by(|a, b| a.order(b));
        found.dedup();
        found
    };
    let warned = unique(&mut record.cells.iter().filter(own).filter(is_warned));
    let all = unique(&mut record.cells.iter().filter(own));
    if warned.len() == all.len() { Vec::new() } else { warned }
}
