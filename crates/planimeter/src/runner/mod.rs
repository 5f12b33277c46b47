//! A plan carried out: targets in turn, trial by trial, into the store.
//!
//! Invariants: targets take turns at every point (A B C A B C), so that a drifting machine drifts
//! for all; every trial is on disk before the next begins; whatever ends a run early, what was
//! measured is kept, marked partial and reported.

/// A trial's report as a line of the record.
pub mod recording;
/// The tester measured by itself, and the load that overloads every target.
pub mod calibration;
/// How the tester's clock went.
pub mod clock;
/// One method on one target, step by step, and its replay from stored trials.
mod lane;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use instrument::rig::RigError;
use packet::time::Nanos;
use results::number;
use results::record::{self, Ended, Line, Measured, ModuleRun, Outcome, Record, SCHEMA, Tool};
use results::store::{Histograms, Store, StoreError};

use crate::catalog::{Entry, Show};
use crate::experiments::Context;
use crate::papers;
use crate::parameter::{Capacity, Effort, Parameters};
use crate::target::name::{Link, TargetKind, Technology};
use crate::target::{Bench, Target, TargetError};
use crate::workload::Addresses;
use clock::ClockWatch;
use lane::{Lane, Seen, Stepped};

/// What is to be done.
#[derive(Clone)]
pub struct Plan {
    /// The experiments, in order.
    pub entries: Vec<&'static Entry>,
    /// The targets, the one that ratios refer to first.
    pub kinds: Vec<TargetKind>,
    /// How they are joined.
    pub link: Link,
    /// How much.
    pub effort: Effort,
    /// Everything that can be set.
    pub parameters: Parameters,
    /// The `--set` words that made them, for the record.
    pub assignments: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// The command that repeats the run.
    pub command_line: String,
    /// When a new run begins, RFC 3339 in UTC: for the record and the folder's name.
    pub created: String,
}

/// Where the run goes: a new folder below this one, or on in an old one.
pub enum Destination {
    /// A new folder below.
    New(PathBuf),
    /// On with this run.
    Resume(PathBuf),
}

/// What came of a run.
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// Everything.
    pub record: Record,
}

/// Whoever wants to know how far a run is.
pub trait Watcher {
    /// A remark.
    fn say(&mut self, line: &str);
    /// So many trials are expected in all.
    fn expect(&mut self, trials: u64);
    /// A trial ended: which, and what came out.
    fn step(&mut self, line: &str);
}

/// Why a run could not be carried out. What was measured before is kept.
#[derive(Debug)]
pub enum RunError {
    /// A target cannot be measured.
    Target(TargetKind, TargetError),
    /// A trial could not be run.
    Trial(TargetKind, RigError),
    /// The run's folder cannot be used.
    Store(StoreError),
    /// The claims that come with the program cannot be read.
    Claims(String),
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        RunError::Store(error)
    }
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Target(kind, error) => write!(f, "{}: {error}", kind.name()),
            RunError::Trial(kind, error) => write!(f, "{}: {error}", kind.name()),
            RunError::Store(error) => write!(f, "{error}"),
            RunError::Claims(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for RunError {}

impl Plan {
    /// The experiments whose trials are run, without those that share another's.
    fn measured(&self) -> impl Iterator<Item = &'static Entry> + '_ {
        self.entries.iter().copied().filter(|entry| self.shares(entry).is_none())
    }

    /// The experiment of this plan whose trials serve `entry` too.
    fn shares(&self, entry: &Entry) -> Option<&'static str> {
        let other = entry.shares_trials_of?;
        self.entries.iter().any(|entry| entry.id == other).then_some(other)
    }

    /// The targets of one experiment: those asked for that it is about, each followed by its
    /// companion where that can be joined.
    pub fn kinds_of(&self, entry: &Entry) -> Vec<TargetKind> {
        let mut kinds = Vec::new();
        for &kind in self.kinds.iter().filter(|kind| entry.can_measure(**kind, self.link)) {
            kinds.push(kind);
            let companion = entry.companions.iter().find(|(asked, _)| *asked == kind);
            if let Some((_, companion)) =
                companion.filter(|(_, it)| !self.kinds.contains(it) && it.runs_on(self.link))
            {
                kinds.push(*companion);
            }
        }
        kinds
    }

    /// Whether an earlier experiment of the same set finds the throughputs that this one needs.
    fn finds_throughputs_before(&self, entry: &Entry) -> bool {
        let mut before = self.measured().take_while(|other| other.id != entry.id);
        before.any(|other| other.set() == entry.set() && other.id.ends_with("/throughput"))
    }

    /// The experiments whose trials are run, with their targets, about how many trials each target
    /// gets, and how many seconds each takes.
    pub fn steps(&self) -> Vec<(&'static Entry, Vec<TargetKind>, u64, f64)> {
        let nowhere = Addresses::numbered([0; 5], [0; 5]);
        let trials = |entry: &Entry| {
            let context = Context {
                kind: TargetKind::Ours,
                technology: Technology::OpenFlow,
                addresses: nowhere,
                capacity_bps: 1_000_000_000,
                parameters: self.parameters.clone(),
                seed: self.seed,
                ceiling_pps: None,
                has_throughputs: self.finds_throughputs_before(entry),
            };
            let method = entry.method_on(&context);
            let seconds = method.trial_seconds().unwrap_or(self.parameters.seconds);
            let drain = crate::experiments::drain(seconds).as_secs_f64();
            (method.trials_expected(), seconds + self.parameters.warmup_s + drain)
        };
        let step = |entry| {
            let (trials, seconds) = trials(entry);
            (entry, self.kinds_of(entry), trials, seconds)
        };
        self.measured().map(step).collect()
    }

    /// Every target of the plan, companions included, with its ports to send into: one that is
    /// measured with one and with two is there twice, so that an idle port is in nobody's way.
    pub fn all_kinds(&self) -> Vec<(TargetKind, u8)> {
        let mut kinds: Vec<(TargetKind, u8)> = Vec::new();
        for entry in self.measured() {
            for kind in
                self.kinds_of(entry).into_iter().map(|kind| (kind, entry.inputs(&self.parameters)))
            {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        kinds
    }
}

/// Carries a plan out.
pub fn run(
    plan: &Plan,
    destination: Destination,
    bench: &mut Bench,
    stop: &Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Result<Finished, RunError> {
    let mut run = Run::open(plan, destination, bench)?;
    let outcome = match run.measure(bench, stop, watcher) {
        Err(RunError::Trial(_, RigError::Interrupted)) => {
            run.interrupted = true;
            Ok(())
        }
        outcome => outcome,
    };
    let finished = run.finish(stop.load(Ordering::Relaxed) || outcome.is_err());
    outcome?;
    finished
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    store: Store,
    record: Record,
    /// Trials and outcomes of an earlier attempt.
    stored: Vec<Line>,
    interrupted: bool,
    /// The clocks, but for virtual time.
    clock: Option<ClockWatch>,
}

impl<'a> Run<'a> {
    fn open(plan: &'a Plan, at: Destination, bench: &Bench) -> Result<Self, RunError> {
        let (store, record, stored) = match at {
            Destination::New(parent) => {
                let name = match plan.entries.as_slice() {
                    [one] => one.id.to_string(),
                    [first, ..] => first.id.split('/').next().unwrap_or(first.id).to_string(),
                    [] => "nothing".into(),
                };
                let day = plan.created.split('T').next().unwrap_or_default();
                let store = Store::create(&parent, day, &name)?;
                let record = new_record(plan, bench);
                (store, record, Vec::new())
            }
            Destination::Resume(folder) => {
                let (store, mut record, lines) = Store::resume(&folder)?;
                // The lines are the truth; the record holds them only if the run ended cleanly.
                record.trials.clear();
                record.outcomes.clear();
                (store, record, lines)
            }
        };
        store.write_record(&record)?;
        let clock = (!plan.parameters.simulated).then(ClockWatch::begin);
        Ok(Run { plan, store, record, stored, interrupted: false, clock })
    }

    fn measure(
        &mut self,
        bench: &mut Bench,
        stop: &Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), RunError> {
        let mut targets: Vec<Box<dyn Target>> = Vec::new();
        let result = self.measure_on(bench, &mut targets, stop, watcher);
        for target in targets {
            let kind = target.kind();
            if let Err(error) = target.stop() {
                watcher.say(&format!("{}: {error}", kind.name()));
            }
        }
        result
    }

    fn measure_on(
        &mut self,
        bench: &mut Bench,
        targets: &mut Vec<Box<dyn Target>>,
        stop: &Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), RunError> {
        let mut described: Vec<record::Target> = Vec::new();
        for (kind, inputs) in self.plan.all_kinds() {
            let mut target =
                bench.target(kind, inputs).map_err(|error| RunError::Target(kind, error))?;
            target.rest();
            if described.iter().all(|known| known.name != kind.name()) {
                described.push(describe(target.as_ref()));
            }
            targets.push(target);
        }
        self.record.targets = described;
        let calibration = self.calibrate(bench, watcher)?;
        let capacity_bps = self.capacity(targets, watcher)?;
        self.record.parameters.insert("capacity_bps".into(), capacity_bps.into());
        self.store.write_record(&self.record)?;
        let mut lanes: Vec<Vec<Lane>> = Vec::new();
        for entry in self.plan.measured() {
            lanes.push(self.lanes(entry, targets, capacity_bps));
        }
        let expected = lanes.iter().flatten().map(Lane::trials_expected).sum();
        self.record.trials_planned = Some(expected);
        watcher.expect(expected);
        for lane in lanes.iter_mut().flatten() {
            let found = self.stored.iter().filter_map(|line| match line {
                Line::Outcome(outcome) => Some(outcome),
                Line::Trial(_) => None,
            });
            found.for_each(|outcome| lane.learn(outcome));
            self.replay(lane);
        }
        self.record.trials.sort_by_key(|trial| trial.id);
        self.record.outcomes.sort_by_key(|outcome| outcome.trials.last().copied());
        for mut lanes in lanes {
            for found in &self.record.outcomes {
                lanes.iter_mut().for_each(|lane| lane.learn(found));
            }
            self.take_turns(&mut lanes, (targets, bench), calibration.as_deref(), stop, watcher)?;
        }
        Ok(())
    }

    fn lanes(
        &self,
        entry: &'static Entry,
        targets: &[Box<dyn Target>],
        capacity: u64,
    ) -> Vec<Lane> {
        let kinds = self.plan.kinds_of(entry);
        let open = self.plan.all_kinds();
        let ceiling = self.record.calibrations.first();
        let inputs = entry.inputs(&self.plan.parameters);
        let place = |kind| open.iter().position(|it| *it == (kind, inputs));
        let lane = |kind: TargetKind| {
            let target = place(kind).expect("every kind of the plan was opened");
            let context = Context {
                kind,
                technology: kind.technology(),
                addresses: targets[target].addresses(),
                capacity_bps: capacity,
                parameters: self.plan.parameters.clone(),
                seed: self.plan.seed,
                ceiling_pps: ceiling.map(|ceiling| ceiling.rate_pps_ceiling as f64),
                has_throughputs: self.plan.finds_throughputs_before(entry),
            };
            Lane::new(entry, (target, inputs), kind, entry.method_on(&context))
        };
        kinds.into_iter().map(lane).collect()
    }

    /// Brings a lane to where an earlier attempt left it.
    fn replay(&mut self, lane: &mut Lane) {
        let stored: Vec<record::Trial> = self
            .stored
            .iter()
            .filter_map(|line| match line {
                Line::Trial(trial) if lane.owns(trial) => Some(trial.clone()),
                _ => None,
            })
            .collect();
        for trial in stored {
            lane.replay(&trial);
            self.record.trials.push(trial);
            self.record.outcomes.extend(lane.outcomes());
        }
    }

    fn take_turns(
        &mut self,
        lanes: &mut [Lane],
        (targets, bench): (&mut [Box<dyn Target>], &mut Bench),
        calibration: Option<&str>,
        stop: &Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), RunError> {
        let last = self.record.trials.last();
        let had_a_turn = last.and_then(|last| lanes.iter().position(|lane| lane.owns(last)));
        let mut first = had_a_turn.map_or(0, |lane| lane + 1);
        let mut going = true;
        while going {
            // A round that an interruption cut short goes on where it ended.
            going = first > 0;
            for at in std::mem::take(&mut first)..lanes.len() {
                if stop.load(Ordering::Relaxed) {
                    self.interrupted = true;
                    return Ok(());
                }
                let lane = &mut lanes[at];
                if lane.waits() {
                    continue;
                }
                let target = &mut targets[lane.target];
                let id = self.next_trial_id();
                target.wake();
                let stepped = lane.step(target, bench, id, calibration, self.plan.seed);
                target.rest();
                for outcome in lane.outcomes() {
                    lanes.iter_mut().for_each(|other| other.learn(&outcome));
                    self.keep(outcome)?;
                }
                let Stepped::Trial(done) = stepped? else { continue };
                going = true;
                self.clock.iter_mut().for_each(ClockWatch::look);
                let mut trial = done.trial;
                let histograms = match &done.seen {
                    Seen::Trial(report) => Histograms {
                        latency: Some(&report.latency.from_sent),
                        latency_scheduled: Some(&report.latency.from_scheduled),
                        pacing_error: Some(&report.pacing.gap_error),
                    },
                    Seen::Log(_) => Histograms::default(),
                };
                if let (Seen::Log(lines), Some(module)) = (&done.seen, &mut trial.module)
                    && !lines.is_empty()
                {
                    module.log = Some(self.store.write_log(id, lines)?);
                }
                if let Some(Ended::Failed(why)) = trial.module.as_ref().map(|module| &module.ended)
                {
                    watcher.say(&format!("{} on {}: {why}", trial.experiment, trial.target));
                }
                self.store.append_trial(&mut trial, histograms)?;
                watcher.step(&one_line(&trial));
                self.record.trials.push(trial);
                if let Some(error) = done.failure {
                    return Err(RunError::Trial(lanes[at].kind(), error));
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, outcome: Outcome) -> Result<(), RunError> {
        // A finding that an earlier attempt kept is found again where its lane goes on.
        let line = Line::Outcome(outcome.clone());
        if !self.stored.contains(&line) {
            self.store.append_outcome(&outcome)?;
        }
        self.record.outcomes.push(outcome);
        Ok(())
    }

    fn next_trial_id(&self) -> u64 {
        self.record.trials.iter().map(|trial| trial.id).max().unwrap_or(0) + 1
    }

    /// Measures the tester by itself, unless an earlier attempt did; the calibration's name.
    fn calibrate(
        &mut self,
        bench: &mut Bench,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<String>, RunError> {
        if self.record.calibrations.is_empty() {
            let found = calibration::calibrate(bench, &self.plan.parameters)?;
            self.record.calibrations.extend(found);
            for found in &self.record.calibrations {
                watcher.say(&calibration::sentence(found));
            }
        }
        Ok(self.record.calibrations.first().map(|known| known.id.clone()))
    }

    fn capacity(
        &mut self,
        targets: &mut [Box<dyn Target>],
        watcher: &mut dyn Watcher,
    ) -> Result<u64, RunError> {
        if let Some(known) = self.record.parameters.get("capacity_bps").and_then(|it| it.as_u64()) {
            return Ok(known);
        }
        match self.plan.parameters.capacity {
            Capacity::BitsPerSecond(bits) => Ok(bits as u64),
            Capacity::Auto => {
                let found = calibration::overloading(targets, self.plan)?;
                watcher.say(&format!(
                    "nominal link: {:.0} Mbit/s, the lowest that overloads every target at 64 bytes",
                    found as f64 / 1e6
                ));
                Ok(found)
            }
        }
    }

    fn finish(mut self, early: bool) -> Result<Finished, RunError> {
        self.record.partial = early || self.interrupted;
        self.clock.iter_mut().for_each(ClockWatch::look);
        self.record.environment.clock = self.clock.as_ref().map(ClockWatch::facts);
        let claims = papers::claims().map_err(RunError::Claims)?;
        results::derive::finish(&mut self.record, &claims);
        self.store.write_record(&self.record)?;
        let outputs = results::report::build(std::slice::from_ref(&self.record));
        results::store::write_outputs(self.store.folder(), &outputs)?;
        Ok(Finished { folder: self.store.folder().to_path_buf(), record: self.record })
    }
}

fn new_record(plan: &Plan, bench: &Bench) -> Record {
    let mut environment = crate::environment::read();
    environment.simulated = plan.parameters.simulated;
    let mut parameters = serde_json::Map::new();
    parameters.insert("set".into(), plan.assignments.clone().into());
    parameters.insert("seconds".into(), plan.parameters.seconds.into());
    parameters.insert("repeats".into(), plan.parameters.repeats.into());
    parameters.insert("warmup_s".into(), plan.parameters.warmup_s.into());
    let drain = crate::experiments::drain(plan.parameters.seconds);
    parameters.insert("drain_s".into(), drain.as_secs_f64().into());
    let has_bursts = |entry: &&Entry| matches!(entry.id, "rfc2544/back-to-back" | "rfc9004");
    if plan.entries.iter().any(has_bursts) {
        parameters.insert("burst_seconds".into(), plan.parameters.methods.burst_s.into());
        parameters.insert("burst_step".into(), plan.parameters.methods.burst_step.into());
    }
    for (name, value) in bench.settings() {
        parameters.insert(name, value.into());
    }
    let experiments = plan.entries.iter().map(|entry| record::Experiment {
        id: entry.id.into(),
        title: entry.title.into(),
        study: entry.paper.map(|(study, _)| study.into()),
        item: entry.paper.map(|(_, item)| item.into()),
        x_name: entry.axis.into(),
        method: Some(entry.method.into()),
        trials_of: plan.shares(entry).map(Into::into),
        shows: entry.shows.iter().map(Show::stored).collect(),
    });
    Record {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: env!("CARGO_PKG_VERSION").into() },
        created: plan.created.clone(),
        command_line: plan.command_line.clone(),
        seed: plan.seed,
        effort: match plan.effort {
            Effort::Quick => record::Effort::Quick,
            Effort::Standard => record::Effort::Standard,
            Effort::Full => record::Effort::Full,
        },
        partial: true,
        trials_planned: None,
        link: plan.link.name().into(),
        environment,
        parameters,
        calibrations: Vec::new(),
        targets: Vec::new(),
        experiments: experiments.collect(),
        trials: Vec::new(),
        outcomes: Vec::new(),
        cells: Vec::new(),
        ratios: Vec::new(),
        published: plan.entries.iter().flat_map(|entry| papers::published(entry.paper)).collect(),
        claims: Vec::new(),
        warnings: Vec::new(),
    }
}

fn describe(target: &dyn Target) -> record::Target {
    let kind = target.kind();
    let description = target.describe();
    let ours = kind.is_ours();
    record::Target {
        name: kind.name().into(),
        spec: kind.name().into(),
        technology: match kind.technology() {
            Technology::OpenFlow => record::Technology::Openflow,
            Technology::Bridging => record::Technology::Bridging,
            Technology::Routing => record::Technology::Routing,
            Technology::Wire => record::Technology::Cable,
        },
        family: if ours { "planimeter" } else { "system" }.into(),
        version: description.version,
        settings: description.settings,
    }
}

/// A trial in one line, for whoever watches.
fn one_line(trial: &record::Trial) -> String {
    let place =
        format!("{} {} {}={}", trial.experiment, trial.target, trial.point.name, trial.point.value);
    let goal = trial.goal.as_ref().map(|goal| format!("for {goal}"));
    let orders = trial.orders.as_ref().map(orders_line);
    let module = trial.module.as_ref().map(module_line);
    let frames = frames_line(trial).filter(|_| module.is_none());
    let parts = [goal, frames, orders, module, memory_line(trial)];
    format!("{place}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// How many values a line for whoever watches has.
const VALUES_SHOWN: usize = 4;

fn module_line(module: &ModuleRun) -> String {
    let how = match &module.ended {
        Ended::Said => None,
        Ended::Limit(what) | Ended::Lost(what) | Ended::Failed(what) => {
            Some(format!("ended: {what}"))
        }
    };
    let value = |found: &Measured| {
        let shown = number::shown(found.metric);
        let value = number::value(found.metric, found.value);
        format!("{} {value} {}", number::title(found.metric), shown.unit)
    };
    let values = module.measured.iter().take(VALUES_SHOWN).map(value);
    how.into_iter().chain(values).collect::<Vec<_>>().join(", ")
}

fn memory_line(trial: &record::Trial) -> Option<String> {
    let each = trial.memory.as_ref()?.bytes_per_flow()?;
    Some(format!("{each:.0} bytes of memory per flow"))
}

fn orders_line(orders: &record::Orders) -> String {
    let errors = match orders.errors {
        0 => String::new(),
        count => format!(", {count} errors"),
    };
    let seconds = orders.duration_ns as f64 / 1e9;
    match orders.deed {
        record::Deed::Tell => {
            let count = orders.rows;
            format!("{count} flows told of in {} replies in {seconds:.3} s{errors}", orders.answers)
        }
        deed => {
            let rate = orders.flow_mods_per_s().unwrap_or(0.0);
            format!("{} flows {} at {rate:.0}/s{errors}", orders.flow_mods, deed.word())
        }
    }
}

fn frames_line(trial: &record::Trial) -> Option<String> {
    if trial.frames_intended == 0 {
        return None;
    }
    let rate = trial.rate_pps_forwarded().unwrap_or(0.0);
    let loss = trial.loss_ratio().unwrap_or(0.0) * 100.0;
    let latency = trial
        .latency
        .as_ref()
        .map_or(String::new(), |found| format!(", {} mean", Nanos(found.ns_mean as u64)));
    Some(format!("{rate:.0} frames/s forwarded, {loss:.2} % lost{latency}"))
}
