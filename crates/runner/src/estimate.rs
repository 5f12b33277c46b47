//! Estimate of a run: runs each method on a model of a target, and sums the durations of its
//! trials.
//!
//! The model forwards a share of the link rate, so that searches take about the steps that they
//! take on a target; in virtual time it forwards as much as a simulated target. A module declares
//! its own duration; [`COSTS_VIRTUAL`] relates it to measured durations in virtual time. Invariant:
//! the estimated trials are those that the method yields.

use packet::time::Nanos;
use tester::procedure::{Outcome, Step};
use tester::stream::{Stream, line_rate_pps};
use tester::trial::{Load, StreamReport, Trial, TrialReport};

use super::Plan;
use experiments::{Context, Finding, Method};
use studies::CatalogEntry;
use targets::name::TargetKind;
use workload::Addresses;
use workload::parameter::Capacity;

/// Forwarded load of the model, as a share of the link rate.
const FORWARDED_SHARE: f64 = 0.37;

/// Link capacity if it is not known yet, in bit/s.
const CAPACITY_BPS: u64 = 1_000_000_000;

/// Flow-mod rate of trials whose duration depends on the controller, per second.
const FLOW_MODS_PER_S: f64 = 100_000.0;

/// Limit of steps of a method.
const STEPS_MAX: u32 = 2_000_000;

/// Overhead of a live trial, in seconds: counters, drains and filling tables. Measured over veth in
/// 3,470 trials of bianco2010 and costa2017: 0.09 to 0.10 s.
const LIVE_OVERHEAD_S: f64 = 0.1;

/// Measured duration of a module's trial in virtual time, as a share of the declared real time, by
/// experiment. Targets and links take no time there.
const COSTS_VIRTUAL: &[(&str, f64)] = &[
    ("oflops2018/fig6c", 0.667),
    ("costa2017/table1", 0.0),
    ("costa2017/table3", 0.82),
    ("costa2017/fig4", 0.0617),
    ("costa2017/fig6", 0.0543),
    ("costa2017/table4", 0.031),
    ("costa2017/table5", 0.027),
    ("costa2017/table6", 0.0282),
    ("costa2017/table7", 0.84),
];

/// Cost of an experiment on a target.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Number of trials.
    pub trials: u64,
    /// Duration of all trials in seconds, from warm-up to drain, including the overhead of live
    /// trials.
    pub seconds: f64,
}

/// Cost of an experiment of a plan on each of its targets.
pub struct Estimate {
    /// The experiment.
    pub entry: &'static CatalogEntry,
    /// Its targets, with their costs.
    pub costs: Vec<(TargetKind, Cost)>,
    /// Whether the experiment runs modules.
    pub is_staged: bool,
}

impl Estimate {
    /// Returns the cost on all targets.
    pub fn whole(&self) -> Cost {
        self.costs.iter().fold(Cost::default(), |sum, (_, cost)| Cost {
            trials: sum.trials + cost.trials,
            seconds: sum.seconds + cost.seconds,
        })
    }
}

/// Returns the entry of [`COSTS_VIRTUAL`] for an experiment.
pub fn cost_virtual(entry: &CatalogEntry) -> Option<f64> {
    COSTS_VIRTUAL.iter().find(|(id, _)| *id == entry.id).map(|(_, cost)| *cost)
}

/// Returns the duration of a module's trial in seconds, from its declared duration.
pub fn module_seconds(entry: &CatalogEntry, method: &dyn Method, is_virtual: bool) -> f64 {
    let cost = cost_virtual(entry).filter(|_| is_virtual).unwrap_or(1.0);
    method.module_seconds().unwrap_or_default() * cost + overhead_s(is_virtual)
}

/// Returns the duration of a trial in seconds.
pub fn trial_seconds(trial: &Trial, is_virtual: bool) -> f64 {
    let orders = trial.orders.as_ref().filter(|_| trial.streams.is_empty());
    let by_orders = orders.map_or(0.0, |script| script.count() as f64 / FLOW_MODS_PER_S);
    trial.length().as_secs_f64() + by_orders + overhead_s(is_virtual)
}

fn overhead_s(is_virtual: bool) -> f64 {
    if is_virtual { 0.0 } else { LIVE_OVERHEAD_S }
}

/// Returns the costs of a plan's experiments, in order.
pub fn of(plan: &Plan) -> Vec<Estimate> {
    let mut found: Vec<(TargetKind, record::Outcome)> = Vec::new();
    let mut estimates = Vec::new();
    for entry in plan.measured() {
        let (mut costs, mut is_staged) = (Vec::new(), false);
        for kind in plan.kinds_of(entry) {
            let mut parameters = plan.parameters.clone();
            // The base of the loads changes the duration only through a search.
            parameters.control.load_of = None;
            let context = Context {
                kind,
                technology: kind.technology(),
                addresses: Addresses::numbered([0; 5], [0; 5]),
                capacity_bps: match parameters.capacity {
                    Capacity::BitsPerSecond(bits) => bits as u64,
                    Capacity::Auto => CAPACITY_BPS,
                },
                parameters,
                seed: plan.seed,
                ceiling_pps: None,
                has_throughputs: plan.finds_throughputs_before(entry),
            };
            let mut method = entry.method_on(&context);
            let own = found
                .iter()
                .filter(|(of, it)| *of == kind && studies::set_of(&it.experiment) == entry.set());
            own.for_each(|(_, outcome)| method.inherit(outcome));
            let (cost, findings) = walk(entry, method.as_mut(), &context);
            found.extend(findings.iter().map(|it| (kind, outcome(entry, kind, it))));
            costs.push((kind, cost));
            is_staged |= method.module_seconds().is_some();
        }
        estimates.push(Estimate { entry, costs, is_staged });
    }
    estimates
}

/// Runs a method on the model; returns its cost and its results.
fn walk(entry: &CatalogEntry, method: &mut dyn Method, context: &Context) -> (Cost, Vec<Finding>) {
    let is_virtual = context.parameters.simulated;
    let (mut cost, mut findings, mut last) = (Cost::default(), Vec::new(), None);
    for _ in 0..STEPS_MAX {
        let step = method.next(last.as_ref());
        findings.extend(method.findings());
        last = match step {
            Step::Done => break,
            Step::Install(_) => Some(Outcome::Installed),
            Step::Trial { point, trial } => {
                cost.trials += 1;
                cost.seconds += trial_seconds(&trial, is_virtual);
                Some(Outcome::Trial { point, report: Box::new(report(&trial, context)) })
            }
            Step::Module { .. } => {
                cost.trials += 1;
                cost.seconds += module_seconds(entry, method, is_virtual);
                None
            }
        };
    }
    (cost, findings)
}

/// Returns the share of a trial's frames that the model forwards: in virtual time as the target's
/// service time and the link allow, otherwise [`FORWARDED_SHARE`] of the link rate.
fn forwarded_share(trial: &Trial, context: &Context) -> f64 {
    let link_share = |stream: &Stream| {
        stream.rate_pps() / line_rate_pps(context.capacity_bps, stream.frame_bytes).max(1e-9)
    };
    let share_where = |is_part: &dyn Fn(&Stream) -> bool| {
        trial.streams.iter().filter(|stream| is_part(stream)).map(link_share).sum::<f64>()
    };
    if !context.parameters.simulated {
        return (FORWARDED_SHARE / share_where(&|_| true).max(1e-9)).min(1.0);
    }
    let of_links = trial.streams.iter().flat_map(|of| {
        [share_where(&|stream| stream.from == of.from), share_where(&|stream| stream.to == of.to)]
    });
    let used = of_links.fold(0.0, f64::max);
    let offered_pps = trial.streams.iter().map(Stream::rate_pps).sum::<f64>();
    let busy_share = offered_pps * context.parameters.service_ns as f64 / 1e9;
    // Rounding must not count as loss.
    if used.max(busy_share) < 1.0 + 1e-6 { 1.0 } else { 1.0 / used.max(busy_share) }
}

/// Returns the report of a trial on the model.
fn report(trial: &Trial, context: &Context) -> TrialReport {
    let seconds = trial.duration.as_secs_f64();
    let load = |frames: f64, share: f64| Load {
        intended: frames as u64,
        offered: frames as u64,
        forwarded: (frames * share).floor() as u64,
        duration_offered: trial.duration,
        duration_forwarded: trial.duration,
    };
    let offered = |pps: f64| (pps * seconds).floor();
    let share = forwarded_share(trial, context);
    let total: f64 = trial.streams.iter().map(|stream| offered(stream.rate_pps())).sum();
    let streams = trial
        .streams
        .iter()
        .map(|stream| StreamReport::unmeasured(stream, load(offered(stream.rate_pps()), share)));
    let streams = streams.collect();
    TrialReport { streams, ..TrialReport::unmeasured(trial, Nanos::ZERO, load(total, share)) }
}

/// Converts results of the model to the record's type.
fn outcome(entry: &CatalogEntry, kind: TargetKind, found: &Finding) -> record::Outcome {
    record::Outcome {
        experiment: entry.id.into(),
        target: kind.name().into(),
        link: None,
        repeat: found.repeat,
        point: record::Point::new(found.axis, found.x),
        metric: found.metric,
        value: found.value,
        resolution: None,
        bound: None,
        trials: Vec::new(),
        flags: Vec::new(),
        goal: None,
    }
}
