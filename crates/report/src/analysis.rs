//! Derives cells, ratios and warnings from trials.
//!
//! Invariants:
//!
//! - All values are a pure function of the measured parts, and deriving them twice changes nothing.
//! - Percentiles and extremes of repeats are combined by their median, never averaged.
//! - Interrupted trials, warm-up trials and search steps give no result.

mod controller;
pub mod failed;
mod limit;
mod quality;
pub mod gelberger2013;
pub mod bianco2010;
pub(crate) mod costa2017;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use record::links;
use record::{
    Answer, Cell, ControllerCommand, ControllerLoad, Drop, DropPlace, Experiment, Flag, Interval,
    Metric, Outcome, Point, RING_TO_TESTER_FULL, Ratio, Record, Role, Target, Trial, Warning,
    WarningEntry,
};
use stats::conclude::{Conclusion, Estimate};
use stats::interval::{self, LEVEL_PERCENT, LEVEL_PERCENT_HIGH};
use stats::series;

/// Number of repeats below which a cell has a warning.
pub const REPEATS_WANTED: u32 = 3;

/// Frame loss rate below which insufficient offered load limits the result. A target with more loss
/// shows its own limit.
const LOSS_RATIO_OF_OVERLOAD: f64 = 0.01;

/// Minimum busy share, while frames arrive, of a target at its limit.
const BUSY_SHARE_OF_LIMIT: f64 = 0.8;

/// Computes the cells and ratios.
pub(crate) fn derive_values(record: &mut Record) {
    record.cells = cells(record);
    limit::find(record);
    controller::find(record);
    quality::by_limit(record);
    quality::exclude(record);
    record.ratios = ratios(record);
}

/// Computes the warnings. The verdicts on claims must be known.
pub(crate) fn add_warnings(record: &mut Record) {
    record.warnings = warnings(record);
    record.warnings.extend(controller::notices(record));
}

/// Whether a trial's frames are accounted for. Its values are results unless it is an [auxiliary
/// step](is_step).
pub fn counts(trial: &Trial) -> bool {
    matches!(trial.role, Role::Measure | Role::Confirm | Role::Bound)
        && !trial.flags.contains(&Flag::Interrupted)
}

/// Whether a trial is only a step of a search, used or discarded.
fn is_step(trial: &Trial) -> bool {
    trial.role == Role::Bound || trial.flags.contains(&Flag::Retried)
}

/// The metric's value in this trial, if any.
pub fn value(trial: &Trial, metric: Metric) -> Option<f64> {
    // A module's frames are not a load, and it reports its measurements itself.
    if trial.module.is_some() && metric != Metric::MemoryBytes {
        return None;
    }
    let latency = trial.latency.as_ref();
    let scheduled = trial.latency_scheduled.as_ref();
    let whole = |ns: u64| ns as f64;
    match metric {
        Metric::RatePpsOffered => trial.rate_pps_offered(),
        Metric::RatePpsForwarded => trial.rate_pps_forwarded(),
        Metric::RateBpsOffered => trial.rate_bps_offered(),
        Metric::RateBpsForwarded => trial.rate_bps_forwarded(),
        Metric::LossRatio => trial.loss_ratio(),
        Metric::ThroughputPps
        | Metric::ThroughputPpsLossTolerated
        | Metric::ThroughputPpsRfc2544
        | Metric::ThroughputPpsTst009
        | Metric::ThroughputPpsNdr
        | Metric::ThroughputPpsPdr
        | Metric::ThroughputPpsQuickNdr
        | Metric::ThroughputPpsQuickPdr => None,
        Metric::LatencyNsMean => latency.map(|found| found.ns_mean),
        Metric::LatencyNsMin => latency.map(|found| whole(found.ns_min)),
        Metric::LatencyNsP50 => latency?.ns_p50.map(whole),
        Metric::LatencyNsP90 => latency?.ns_p90.map(whole),
        Metric::LatencyNsP99 => latency?.ns_p99.map(whole),
        Metric::LatencyNsP999 => latency?.ns_p999.map(whole),
        Metric::LatencyNsP9999 => latency?.ns_p9999.map(whole),
        Metric::LatencyNsMax => latency.map(|found| whole(found.ns_max)),
        Metric::LatencyFromScheduleNsP50 => scheduled?.ns_p50.map(whole),
        Metric::LatencyFromScheduleNsP99 => scheduled?.ns_p99.map(whole),
        Metric::PdvNsP999 => trial.jitter.as_ref()?.pdv_ns_p999.map(whole),
        Metric::CyclesBusyPerFrame => {
            let work = trial.work.as_ref().filter(|work| work.frames > 0)?;
            Some(work.cycles_busy as f64 / work.frames as f64)
        }
        Metric::IpdvNsMin => Some(trial.jitter.as_ref()?.ipdv_signed?.ns_min as f64),
        Metric::IpdvNsP50 => Some(trial.jitter.as_ref()?.ipdv_signed?.ns_p50 as f64),
        Metric::IpdvNsMax => Some(trial.jitter.as_ref()?.ipdv_signed?.ns_max as f64),
        Metric::MemoryBytes => trial.memory_bytes.map(whole),
        Metric::CpuLoadRatio => cpu_load(trial),
        Metric::LossRatioBroadcast => broadcast_loss(trial),
        // A method derives these from several trials and reports them itself.
        Metric::BurstFrames
        | Metric::BufferNsImplied
        | Metric::BufferNsCorrected
        | Metric::RecoveryNs
        | Metric::ResetNs
        | Metric::ResetNsFrameLossMethod
        | Metric::RatePpsMaximum
        | Metric::LoadPpsOfMaximum
        | Metric::LossRatioUncongested
        | Metric::LossRatioCongested
        | Metric::MacAddressesLearned
        | Metric::AddressesLearnedPerS
        | Metric::CyclesBusyRatio
        | Metric::LatencyNsP99Increase
        | Metric::RateRatioColdCache
        | Metric::Named(_) => None,
        Metric::FlowModsAddedPerS => orders(trial, ControllerCommand::Add)?.flow_mods_per_s(),
        Metric::FlowModsModifiedPerS => orders(trial, ControllerCommand::Modify)?.flow_mods_per_s(),
        Metric::FlowModsDeletedPerS => orders(trial, ControllerCommand::Delete)?.flow_mods_per_s(),
        Metric::FlowModsAddDeletePerS => {
            orders(trial, ControllerCommand::AddDelete)?.flow_mods_per_s()
        }
        Metric::FlowStatsPerS => orders(trial, ControllerCommand::FlowStats)?.rows_per_s(),
        Metric::FlowStatsNs => {
            let told =
                orders(trial, ControllerCommand::FlowStats).filter(|told| told.answers > 0)?;
            Some(told.duration_ns as f64 / told.answers as f64)
        }
        Metric::FlowStatsNsFirstReply => {
            orders(trial, ControllerCommand::FlowStats)?.first_byte_ns.map(whole)
        }
        Metric::MemoryBytesPerFlow => trial.memory.as_ref()?.bytes_per_flow(),
        // Requires more than the trial.
        Metric::ProcessingNs => None,
        Metric::LossRatioF1
        | Metric::LossRatioF2
        | Metric::LossRatioDifference
        | Metric::FairnessIndexJain
        | Metric::MaxMinShareRatio => bianco2010::fairness(trial, metric),
    }
}

/// Share of the broadcast copies that did not reach a port other than the sender's.
fn broadcast_loss(trial: &Trial) -> Option<f64> {
    let [stream] = &trial.streams[..] else { return None };
    let others = trial.ports.len().checked_sub(1)?;
    let wanted = stream.frames_offered as f64 * others as f64;
    let copies = (stream.classes.correct + stream.frames_wrong_port) as f64;
    (wanted > 0.0).then(|| 1.0 - copies / wanted)
}

/// CPU load of the target while frames arrive. A busy-polling target is always busy, so its own
/// cycle counts are used.
fn cpu_load(trial: &Trial) -> Option<f64> {
    if let Some(work) = trial.work.filter(|work| work.cycles_busy + work.cycles_idle > 0) {
        return Some(work.cycles_busy as f64 / (work.cycles_busy + work.cycles_idle) as f64);
    }
    (!trial.cpu.is_empty()).then(|| trial.cpu.iter().map(|used| used.busy_ratio).sum())
}

/// The control operation of a trial, if it is of this kind.
fn orders(trial: &Trial, command: ControllerCommand) -> Option<&ControllerLoad> {
    trial.orders.as_ref().filter(|orders| orders.command == command)
}

/// Measurements of one target at one point.
struct Place<'a> {
    experiment: &'a Experiment,
    target: &'a str,
    point: &'a Point,
    trials: Vec<&'a Trial>,
    outcomes: Vec<&'a Outcome>,
}

/// All places of the record: experiments and targets in the record's order, points rising.
fn places(record: &Record) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    for experiment in &record.experiments {
        for target in &record.targets {
            let here = |at: &str, of: &str| at == experiment.source() && of == target.name;
            let trials: Vec<&Trial> = record
                .trials
                .iter()
                .filter(|trial| counts(trial) && here(&trial.experiment, &trial.target))
                .collect();
            let outcomes: Vec<&Outcome> = record
                .outcomes
                .iter()
                .filter(|outcome| here(&outcome.experiment, &outcome.target))
                .collect();
            let mut points: Vec<&Point> = (trials.iter().map(|trial| &trial.point))
                .chain(outcomes.iter().map(|outcome| &outcome.point))
                .collect();
            points.sort_by(|a, b| a.order(b));
            points.dedup();
            places.extend(points.into_iter().map(|point| Place {
                experiment,
                target: &target.name,
                point,
                trials: trials.iter().copied().filter(|trial| trial.point == *point).collect(),
                outcomes: outcomes.iter().copied().filter(|o| o.point == *point).collect(),
            }));
        }
    }
    places
}

fn cells(record: &Record) -> Vec<Cell> {
    let places = places(record);
    places
        .iter()
        .flat_map(|place| metrics(place).filter_map(|metric| cell(record, place, metric)))
        .collect()
}

/// The metrics that a place may have: those of the list, then those that modules define.
fn metrics(place: &Place<'_>) -> impl Iterator<Item = Metric> + use<> {
    let mut named: Vec<Metric> = Vec::new();
    for outcome in &place.outcomes {
        if matches!(outcome.metric, Metric::Named(_)) && !named.contains(&outcome.metric) {
            named.push(outcome.metric);
        }
    }
    Metric::ALL.into_iter().chain(named)
}

fn cell(record: &Record, place: &Place<'_>, metric: Metric) -> Option<Cell> {
    if !bianco2010::is_asked(place.experiment, metric) {
        return None;
    }
    let mut samples: Vec<(u32, f64)> = Vec::new();
    let mut rests_on: Vec<u64> = Vec::new();
    for trial in place.trials.iter().filter(|trial| !is_step(trial)) {
        if let Some(found) = value_of(record, trial, metric) {
            samples.push((trial.repeat, found));
            rests_on.push(trial.id);
        }
    }
    for outcome in place.outcomes.iter().filter(|outcome| outcome.metric == metric) {
        samples.push((outcome.repeat, outcome.value));
        rests_on.extend(&outcome.trials);
    }
    samples.sort_by_key(|&(repeat, _)| repeat);
    let (repeats, samples): (Vec<u32>, Vec<f64>) = samples.into_iter().unzip();
    let value =
        if metric.is_by_median() { series::median(&samples) } else { series::mean(&samples) }?;
    let mut cell = Cell {
        experiment: place.experiment.id.clone(),
        target: place.target.into(),
        link: links::are_several(record).then(|| links::of(record, place.target).into()),
        point: place.point.clone(),
        metric,
        unit: metric.unit().into(),
        value,
        n: samples.len() as u32,
        interval: interval_of(metric, &samples, LEVEL_PERCENT),
        interval_99: interval_of(metric, &samples, LEVEL_PERCENT_HIGH),
        resolution: None,
        limit: None,
        warnings: cell_warnings(place, metric, samples.len() as u32),
        samples,
        repeats,
        trials: rests_on,
        bound: None,
        disturbances: Vec::new(),
        exclusion: None,
    };
    quality::describe(&mut cell, record, place);
    Some(cell)
}

/// The metric's value in this trial, including metrics that need the record's data about the link.
fn value_of(record: &Record, trial: &Trial, metric: Metric) -> Option<f64> {
    match metric {
        Metric::ProcessingNs => bianco2010::processing_ns(record, trial),
        metric => value(trial, metric),
    }
}

/// The interval of repeats, clamped at zero if no value is negative, and at one for shares.
fn interval_of(metric: Metric, samples: &[f64], level_percent: f64) -> Option<Interval> {
    let interval = match metric.is_by_median() {
        true => interval::of_median(samples, level_percent),
        false => interval::of_mean(samples, level_percent),
    }?;
    let floor = if samples.iter().all(|&sample| sample >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    let ceiling = if metric.is_at_most_one() { 1.0 } else { f64::INFINITY };
    Some(Interval { low: interval.low.max(floor), high: interval.high.min(ceiling), ..interval })
}

fn cell_warnings(place: &Place<'_>, metric: Metric, n: u32) -> Vec<Warning> {
    let mut found = Vec::new();
    if n < REPEATS_WANTED {
        found.push(Warning::FewSamples { n, wanted: REPEATS_WANTED });
    }
    let is_offered = matches!(metric, Metric::RatePpsOffered | Metric::RateBpsOffered);
    if !is_offered {
        let outcomes = place.outcomes.iter().copied().filter(|outcome| outcome.metric == metric);
        found.extend(tester_limited(&limiting(&place.trials, &outcomes.collect::<Vec<_>>())));
        // The result for one goal is independent of the other goals.
        let is_own = place.outcomes.iter().any(|outcome| outcome.metric == metric);
        let concerned = place.outcomes.iter().filter(|it| !is_own || it.metric == metric);
        let concerned: Vec<&Outcome> = concerned.copied().collect();
        found.extend(irregular(&place.trials, &concerned));
        found.extend(disturbed(&concerned));
        found.extend(not_warm(&place.trials));
    }
    if metric.unit() == "ns" {
        found.extend(stalled(&place.trials));
    } else if !is_offered {
        found.extend(unexplained(&place.trials));
        found.extend(wrong(&place.trials));
    }
    found
}

/// Whether the tester, not the target, limited a trial's values. This includes a target that waits
/// for the tester to empty its ring.
fn is_limited(trial: &Trial) -> bool {
    let lost = |is: fn(&Drop) -> bool| -> u64 {
        trial.drops.iter().filter(|drop| is(drop)).map(|drop| drop.frames).sum()
    };
    let lost_by_tester = lost(|drop| drop.place == DropPlace::Tester);
    let kept_waiting = lost(|drop| drop.reason == RING_TO_TESTER_FULL);
    if kept_waiting as f64 > trial.account_frames_offered as f64 * LOSS_RATIO_OF_OVERLOAD {
        return true;
    }
    let overloaded = trial.loss_ratio().is_some_and(|loss| loss > LOSS_RATIO_OF_OVERLOAD);
    trial.flags.contains(&Flag::TesterLimited)
        && (!overloaded || lost_by_tester * 1000 > trial.frames_offered || was_idle(trial))
}

/// Whether a polling target had idle polls although more frames were due. Its losses then came from
/// bursts, and it had spare capacity.
fn was_idle(trial: &Trial) -> bool {
    let Some(work) = trial.work else { return false };
    let sending = trial.duration_ns_warmup + trial.duration_ns_intended;
    let share = sending as f64 / (sending + trial.duration_ns_drain).max(1) as f64;
    let cycles = (work.cycles_busy + work.cycles_idle) as f64;
    (work.cycles_busy as f64) < BUSY_SHARE_OF_LIMIT * share * cycles
}

/// Trials whose insufficient offered load limits a result. In a search with goals, these are the
/// trials at a bound. In other trials a single disturbance of the tester has no effect.
fn limiting<'a>(trials: &[&'a Trial], outcomes: &[&Outcome]) -> Vec<&'a Trial> {
    let limited = outcomes.iter().filter(|outcome| outcome.flags.contains(&Flag::TesterLimited));
    let uppers: Vec<(&Outcome, f64)> = limited
        .filter_map(|outcome| Some((*outcome, outcome.goal.as_ref()?.rate_pps_upper?)))
        .collect();
    let is_at_bound = |trial: &Trial| {
        uppers.iter().any(|(outcome, upper)| {
            let near = (trial.rate_pps_intended / upper - 1.0).abs() < 0.001;
            near && trial.repeat == outcome.repeat && trial.point == outcome.point
        })
    };
    let is_good = |trial: &Trial| !trial.flags.contains(&Flag::Retried);
    let counted = |trial: &&&Trial| !is_step(trial) || (is_good(trial) && is_at_bound(trial));
    trials.iter().filter(counted).copied().collect()
}

fn tester_limited(trials: &[&Trial]) -> Option<Warning> {
    let limited: Vec<&&Trial> = trials.iter().filter(|trial| is_limited(trial)).collect();
    let offered: Vec<f64> = limited.iter().filter_map(|trial| trial.rate_pps_offered()).collect();
    let intended: Vec<f64> = limited.iter().map(|trial| trial.rate_pps_intended).collect();
    Some(Warning::TesterLimited {
        rate_pps_intended: series::mean(&intended)?,
        rate_pps_offered: series::mean(&offered)?,
    })
}

/// Irregular trials, and irregular searches: outcomes of one repeat at one point with only regular
/// trials.
fn irregular(trials: &[&Trial], outcomes: &[&Outcome]) -> Option<Warning> {
    let is_irregular = |flags: &[Flag]| flags.contains(&Flag::Irregular);
    let flagged: BTreeSet<u64> =
        trials.iter().filter(|it| is_irregular(&it.flags)).map(|it| it.id).collect();
    let mut searches: Vec<(&Point, u32, &[u64])> = Vec::new();
    for outcome in outcomes.iter().filter(|it| is_irregular(&it.flags)) {
        let search = (&outcome.point, outcome.repeat, &outcome.trials[..]);
        let is_counted = outcome.trials.iter().any(|id| flagged.contains(id));
        if !is_counted && !searches.contains(&search) {
            searches.push(search);
        }
    }
    let (trials, searches) = (flagged.len() as u32, searches.len() as u32);
    (trials + searches > 0).then_some(Warning::Irregular { trials, searches })
}

/// Results that depend on a loss that the tester may have caused.
fn disturbed(outcomes: &[&Outcome]) -> Option<Warning> {
    let is_it = |outcome: &&&Outcome| outcome.flags.contains(&Flag::TesterInterference);
    let results = outcomes.iter().filter(is_it).count() as u32;
    (results > 0).then_some(Warning::TesterInterference { results })
}

/// Repeated steps of searches, in any role.
fn repeated(record: &Record, experiment: &Experiment, target: &Target) -> Option<Warning> {
    let here = |trial: &&Trial| {
        trial.experiment == experiment.source()
            && trial.target == target.name
            && trial.flags.contains(&Flag::Retried)
    };
    let trials = record.trials.iter().filter(here).count() as u32;
    (trials > 0).then_some(Warning::Retried { trials })
}

fn not_warm(trials: &[&Trial]) -> Option<Warning> {
    let trials =
        trials.iter().filter(|trial| trial.flags.contains(&Flag::ColdCaches)).count() as u32;
    (trials > 0).then_some(Warning::ColdCaches { trials })
}

fn stalled(trials: &[&Trial]) -> Option<Warning> {
    let trials = trials.iter().filter(|trial| trial.flags.contains(&Flag::Stall)).count() as u32;
    (trials > 0).then_some(Warning::Stall { trials })
}

fn unexplained(trials: &[&Trial]) -> Option<Warning> {
    let each = || trials.iter().map(|trial| trial.frames_unexplained);
    // A surplus of one trial makes up for no missing frame of another.
    let missing: i64 = each().filter(|frames| *frames > 0).sum();
    let frames = if missing > 0 { missing } else { each().sum() };
    (frames != 0).then_some(Warning::UnexplainedFrames { frames })
}

fn wrong(trials: &[&Trial]) -> Option<Warning> {
    let wrong =
        |trial: &&Trial| trial.classes.misrouted + trial.classes.duplicate + trial.classes.corrupt;
    // A module's frames may arrive at any port; the module evaluates the port.
    let frames: u64 = trials.iter().filter(|trial| trial.module.is_none()).map(wrong).sum();
    (frames > 0).then_some(Warning::MisdeliveredFrames { frames })
}

fn ratios(record: &Record) -> Vec<Ratio> {
    let Some(base) = record.targets.first() else { return Vec::new() };
    // Indexed once, because a record may have tens of thousands of cells.
    let mut of_base: BTreeMap<(&str, &str), Vec<&Cell>> = BTreeMap::new();
    for cell in record.cells.iter().filter(|cell| cell.target == base.name) {
        of_base.entry((&cell.experiment, cell.metric.name())).or_default().push(cell);
    }
    let compared =
        |cell: &&Cell| cell.target != base.name && stats::direction::is_compared(cell.metric);
    record
        .cells
        .iter()
        .filter(compared)
        .filter_map(|cell| {
            let against = of_base
                .get(&(cell.experiment.as_str(), cell.metric.name()))?
                .iter()
                .find(|other| other.point == cell.point)?;
            let found = Estimate::ratio(cell, against);
            if found.n == 0 || !found.value.is_finite() {
                return None;
            }
            let (answer, reason) = match found.relevant() {
                Conclusion::Greater => (Answer::Higher, None),
                Conclusion::Smaller => (Answer::Lower, None),
                Conclusion::Equivalent => (Answer::Equivalent, None),
                Conclusion::Undecided(reason) => (Answer::Inconclusive, Some(reason)),
            };
            let links = [&cell.target, &base.name].map(|name| links::of(record, name).to_string());
            Some(Ratio {
                experiment: cell.experiment.clone(),
                target: cell.target.clone(),
                base: base.name.clone(),
                links: (links[0] != links[1]).then_some(links),
                point: cell.point.clone(),
                metric: cell.metric,
                ratio: found.value,
                n: found.n,
                interval: found.interval,
                answer,
                reason,
            })
        })
        .collect()
}

fn warnings(record: &Record) -> Vec<WarningEntry> {
    let mut notices: Vec<WarningEntry> = run_warnings(record)
        .into_iter()
        .map(|warning| WarningEntry { about: "run".into(), warning })
        .collect();
    for experiment in &record.experiments {
        notices.extend(experiment.left_out.iter().map(|(target, why)| WarningEntry {
            about: format!("{} on {target}", experiment.id),
            warning: Warning::Skipped { why: why.clone() },
        }));
        for target in &record.targets {
            let here: Vec<&Trial> = record
                .trials
                .iter()
                .filter(|t| {
                    counts(t) && t.experiment == experiment.source() && t.target == target.name
                })
                .collect();
            let of_target = |outcome: &&Outcome| {
                outcome.experiment == experiment.source() && outcome.target == target.name
            };
            let outcomes: Vec<&Outcome> = record.outcomes.iter().filter(of_target).collect();
            let about = format!("{} on {}", experiment.id, target.name);
            let found = [
                few_samples(record, &experiment.id, &target.name),
                tester_limited(&limiting(&here, &outcomes)),
                irregular(&here, &outcomes),
                disturbed(&outcomes),
                repeated(record, experiment, target),
                not_warm(&here),
                stalled(&here),
                unexplained(&here),
                wrong(&here),
            ];
            let maximum = maximum_limited(record, experiment, target)
                .map(|warning| WarningEntry { about: format!("{about}, its maximum"), warning });
            let notice = |warning| WarningEntry { about: about.clone(), warning };
            notices.extend(found.into_iter().flatten().map(notice).chain(maximum));
        }
    }
    notices
}

/// Whether the tester limited the maximum of a target that an experiment's loads are relative to.
pub fn maximum_limited(
    record: &Record,
    experiment: &Experiment,
    target: &Target,
) -> Option<Warning> {
    let here = |trial: &&Trial| {
        trial.role == Role::Maximum
            && trial.experiment == experiment.source()
            && trial.target == target.name
    };
    tester_limited(&record.trials.iter().filter(here).collect::<Vec<_>>())
}

/// The smallest number of repeats of any point. Ignores percentiles that are missing because some
/// trials are too short.
fn few_samples(record: &Record, experiment: &str, target: &str) -> Option<Warning> {
    let here = |cell: &&Cell| cell.experiment == experiment && cell.target == target;
    let mut cells: Vec<&Cell> = record.cells.iter().filter(here).collect();
    cells.sort_by(|a, b| a.point.order(&b.point));
    let points = cells.chunk_by(|a, b| a.point == b.point);
    let n = points.filter_map(|point| point.iter().map(|cell| cell.n).max()).min()?;
    (n < REPEATS_WANTED).then_some(Warning::FewSamples { n, wanted: REPEATS_WANTED })
}

fn run_warnings(record: &Record) -> Vec<Warning> {
    /// Tester, target and all other processes need a core each.
    const CORES_WANTED: u32 = 3;
    let mut found = Vec::new();
    if record.partial {
        let trials = record.trials_ended() as u64;
        found.push(Warning::Partial { trials, planned: record.trials_planned });
    }
    if links::are_several(record) {
        let links = links::gathered(record).into_iter().map(|(link, _)| link.into()).collect();
        found.push(Warning::LinksDiffer { links });
    }
    let user_space =
        |trial: &Trial| trial.latency.is_some() && trial.clock == record::ClockSource::UserSpace;
    if record.trials.iter().any(user_space) {
        found.push(Warning::UserSpaceStamps);
    }
    let machine = &record.environment;
    if machine.simulated {
        return found;
    }
    if let Some(hypervisor) = &machine.virtualised {
        found.push(Warning::Virtualised { hypervisor: hypervisor.clone() });
    }
    if let Some(cores) = machine.cpu_cores.filter(|&cores| cores < CORES_WANTED) {
        found.push(Warning::CoresShared { cores });
    }
    if let Some(governor) = machine.cpu_governor.as_ref().filter(|name| *name != "performance") {
        found.push(Warning::FrequencyScaling { governor: governor.clone() });
    }
    found
}
