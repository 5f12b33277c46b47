//! Runs a plan: measures its targets in turn, trial by trial, and stores the results.
//!
//! Invariants:
//! - Targets take turns at every point (A B C A B C), so that drift of the machine affects all of
//!   them equally.
//! - Every trial is on disk before the next one begins.
//! - When a run ends early, its results are stored, marked as partial, and reported.

pub mod environment;
pub mod live;
pub mod python;
mod plan;
pub mod estimate;
mod provenance;
pub mod recording;
pub mod calibration;
pub mod clock;
mod task;
pub mod hooks;
mod recovery;
mod events;
mod search_progress;
mod snmp;

use std::cell::OnceCell;
use std::collections::{BTreeSet, VecDeque};
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use record::{Ended, Outcome, Record, TrialLine};
use report::analysis::failed;
use store::lines::Lines;
use store::{Histograms, Resumed, Store, StoreError, TRIALS_FILE};
use testbed::RunFolder;
use tester::rig::RigError;

use crate::live::event::Event;
use clock::ClockWatch;
use estimate::Estimate;
use events::EventEmitter;
use experiments::Context;
use hooks::{HookError, HookPoint, HookTime};
use studies::CatalogEntry;
use studies::papers;
use targets::name::TargetKind;
use targets::{Benches, Target, TargetError};
use task::{FinishedTrial, MeasurementTask, StepOutcome, TargetContext, TrialData};
use workload::parameter::Capacity;
use workload::parameter::control::Capture;

pub use plan::Plan;

/// Where a run is stored: in a new folder, or in the folder of an earlier attempt.
pub enum Destination {
    /// A new folder below this one.
    New(PathBuf),
    /// This folder, which holds no run yet.
    At(PathBuf),
    /// The run to resume; it is locked against other processes.
    Resume(Box<Resumed>),
}

impl Destination {
    /// Returns the destination that resumes the run in a folder.
    pub fn resume(folder: &Path) -> Result<Destination, StoreError> {
        Store::resume(folder).map(|resumed| Destination::Resume(Box::new(resumed)))
    }
}

/// Result of a run.
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// The complete record.
    pub record: Record,
}

/// Observer of a run's progress.
pub trait ProgressListener: Send {
    /// Prints a remark.
    fn say(&mut self, line: &str);
    /// Sets the expected number of trials in total.
    fn expect(&mut self, trials: u64);
    /// Reports a trial that ended, with its result.
    fn step(&mut self, line: &str);
    /// Reports the run's folder and the tester's cores.
    fn opened(&mut self, _folder: &std::path::Path, _cores: &[usize]) {}
    /// Returns the watcher's own messages, which then go to all watchers.
    fn heard(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// Handles an event, for watchers that show more than lines. Remarks come through
    /// [`ProgressListener::say`] only.
    fn tell(&mut self, _event: &Event) {}
}

/// Error that ends a run. Earlier results remain stored.
#[derive(Debug)]
pub enum RunError {
    /// A target cannot be measured.
    Target(TargetKind, TargetError),
    /// A trial failed.
    Trial(TargetKind, RigError),
    /// A user command failed.
    Hook(Box<HookError>),
    /// The run's folder cannot be used.
    Store(StoreError),
    /// A result cannot be written to this folder.
    Unwritten(StoreError, PathBuf),
    /// All results are stored in this folder, but the report cannot be written.
    Unreported(StoreError, PathBuf),
    /// The built-in claims cannot be read.
    Claims(String),
    /// One of the above ended the run before any trial succeeded.
    NoResult(Box<RunError>),
}

impl RunError {
    /// Converts the error for a run without a successful trial.
    ///
    /// Errors about a missing requirement of the machine, or about state that a target cannot hold,
    /// stay unchanged: they do not depend on trials.
    fn without_result(self) -> RunError {
        match self {
            RunError::Target(_, TargetError::Failed { .. })
            | RunError::Trial(..)
            | RunError::Hook(_) => RunError::NoResult(Box::new(self)),
            other => other,
        }
    }
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
            RunError::Hook(error) => write!(f, "{error}"),
            RunError::Store(error)
            | RunError::Unwritten(error, _)
            | RunError::Unreported(error, _) => write!(f, "{error}"),
            RunError::Claims(why) => write!(f, "{why}"),
            RunError::NoResult(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a plan.
pub fn run(
    plan: &Plan,
    destination: Destination,
    benches: &mut Benches,
    stop: &Arc<AtomicBool>,
    watcher: &mut dyn ProgressListener,
) -> Result<Finished, RunError> {
    let mut run = Run::open(plan, destination, benches)?;
    let folder = run.store.folder().to_path_buf();
    let mut telling = EventEmitter::begin(watcher, plan, benches, &folder);
    for damage in &run.stored.damage {
        telling.say(&format!("{}, {damage}", folder.join(TRIALS_FILE).display()));
    }
    let io = Io { targets: Vec::new(), benches, stop, watcher: &mut telling };
    let outcome = match run.measure(io) {
        // From here on the folder holds data.
        Err(RunError::Store(error)) => Err(RunError::Unwritten(error, folder)),
        Err(RunError::Trial(_, RigError::Interrupted)) => {
            run.interrupted = true;
            Ok(())
        }
        Err(RunError::Hook(error)) if matches!(error.fault, hooks::HookFault::Interrupted) => {
            run.interrupted = true;
            Ok(())
        }
        // A target's failure after the user requested a stop is a consequence of the stop.
        Err(error @ (RunError::Target(..) | RunError::Trial(..)))
            if stop.load(Ordering::Relaxed) =>
        {
            telling.say(&format!("{error} (interrupted)"));
            run.interrupted = true;
            Ok(())
        }
        outcome => outcome,
    };
    run.record.failure = outcome.as_ref().err().map(ToString::to_string);
    let finished = run.finish(stop.load(Ordering::Relaxed) || outcome.is_err());
    let finished = match (outcome, finished) {
        (Err(error), Ok(finished)) if failed::has_failed(&finished.record) => {
            Err(error.without_result())
        }
        (outcome, finished) => outcome.and(finished),
    };
    let partial = finished.as_ref().map_or(true, |finished| finished.record.partial);
    telling.end(partial, finished.as_ref().err().map(ToString::to_string));
    finished
}

/// What a run works on, and whom it informs.
struct Io<'a> {
    /// The open targets.
    targets: Vec<Box<dyn Target>>,
    benches: &'a mut Benches,
    /// Whether the user requested a stop.
    stop: &'a AtomicBool,
    watcher: &'a mut dyn ProgressListener,
}

impl Io<'_> {
    fn forget_state_of(&mut self, kind: TargetKind) {
        self.targets.iter_mut().filter(|it| it.kind() == kind).for_each(|it| it.forget());
    }
}

/// Removes the next task that can run from the order of a round.
///
/// A task that waits for a finding of another task runs later in the same round, so that no target
/// is one repeat behind.
fn next_ready(order: &mut VecDeque<usize>, tasks: &[MeasurementTask]) -> Option<usize> {
    let ready = order.iter().position(|at| !tasks[*at].waits())?;
    order.rotate_left(ready);
    order.pop_front()
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    store: Store,
    record: Record,
    /// Trials and outcomes of an earlier attempt.
    stored: Lines,
    /// Problems of SNMP agents; each is reported once.
    problems_reported: BTreeSet<String>,
    /// The first state that a target could not hold.
    refused: Option<(TargetKind, String)>,
    /// Targets that were opened, or were about to be.
    begun: Vec<TargetKind>,
    /// The processes of the user commands; they end with the run.
    hook_processes: OnceCell<RunFolder>,
    interrupted: bool,
    /// The clocks, except in virtual time.
    clock: Option<ClockWatch>,
}

impl<'a> Run<'a> {
    fn open(plan: &'a Plan, at: Destination, benches: &Benches) -> Result<Self, RunError> {
        let (store, record, stored) = match at {
            Destination::New(parent) => {
                let name = match plan.entries.as_slice() {
                    [one] => one.id.to_string(),
                    [first, ..] => first.id.split('/').next().unwrap_or(first.id).to_string(),
                    [] => "nothing".into(),
                };
                let day = plan.created.split('T').next().unwrap_or_default();
                let store = Store::create(&parent, day, &name)?;
                let record = provenance::new_record(plan, benches);
                (store, record, Lines::default())
            }
            Destination::At(folder) => {
                let store = Store::create_at(&folder)?;
                (store, provenance::new_record(plan, benches), Lines::default())
            }
            Destination::Resume(resumed) => {
                let Resumed { store, mut record, lines } = *resumed;
                // The lines are authoritative; the record holds them only if the run ended cleanly.
                record.trials.clear();
                record.outcomes.clear();
                record.partial = true;
                // State that a target rejected is requested again.
                for entry in &plan.entries {
                    let own = record.experiments.iter_mut().filter(|it| it.id == entry.id);
                    own.for_each(|it| it.left_out = plan.left_out(entry).collect());
                }
                (store, record, lines)
            }
        };
        store.write_start(&record)?;
        let clock = (!plan.parameters.simulated).then(ClockWatch::begin);
        Ok(Run {
            plan,
            store,
            record,
            stored,
            problems_reported: BTreeSet::new(),
            refused: None,
            begun: Vec::new(),
            hook_processes: OnceCell::new(),
            interrupted: false,
            clock,
        })
    }

    fn measure(&mut self, mut io: Io<'_>) -> Result<(), RunError> {
        let mut result = self.measure_on(&mut io);
        for target in take(&mut io.targets) {
            let kind = target.kind();
            if let Err(error) = target.stop() {
                io.watcher.say(&format!("{}: {error}", kind.name()));
            }
        }
        for kind in take(&mut self.begun) {
            let last = self.record.trials.iter().rfind(|trial| trial.target == kind.name());
            let experiment = last.map(|trial| trial.experiment.clone()).unwrap_or_default();
            match self.hook(HookTime::After, kind, &experiment, &mut io) {
                Err(error) if result.is_ok() => result = Err(error),
                Err(error) => io.watcher.say(&error.to_string()),
                Ok(_) => {}
            }
        }
        result
    }

    /// Runs the user command for an occasion, and returns whether there is one.
    fn hook(
        &self,
        when: HookTime,
        kind: TargetKind,
        experiment: &str,
        io: &mut Io<'_>,
    ) -> Result<bool, RunError> {
        let Some(command) = self.plan.hooks.command(when) else { return Ok(false) };
        io.watcher.say(&format!("{} on {}: {command}", when.flag(), kind.name()));
        let last = self.record.trials.iter().rfind(|trial| trial.target == kind.name());
        let point = last.map(|trial| format!("{}={}", trial.point.name, trial.point.value));
        let (target, point) = (kind.name(), point.as_deref());
        let occasion = HookPoint { when, target, experiment, point };
        let limit_s = self.plan.parameters.device.hook_s;
        let (folder, processes) = (self.store.folder(), &self.hook_processes);
        let run = self.plan.hooks.run(occasion, folder, processes, limit_s, io.stop);
        run.map_err(RunError::Hook)
    }

    /// Runs the user command before the next experiment of each target that already had one.
    fn hook_between(&self, tasks: &[MeasurementTask], io: &mut Io<'_>) -> Result<(), RunError> {
        for task in tasks {
            let (kind, experiment) = (task.target_context.kind, task.experiment());
            let own = self.record.trials.iter().rfind(|trial| trial.target == kind.name());
            let is_further = own.is_some_and(|trial| trial.experiment != experiment);
            if is_further && self.hook(HookTime::Between, kind, experiment, io)? {
                io.forget_state_of(kind);
            }
        }
        Ok(())
    }

    /// Runs the user command for a switch that stopped responding, so that the next measurement
    /// finds a working switch.
    fn reset(&self, task: &MeasurementTask, io: &mut Io<'_>) -> Result<(), RunError> {
        let (kind, experiment) = (task.target_context.kind, task.experiment());
        if self.hook(HookTime::Between, kind, experiment, io)? {
            io.forget_state_of(kind);
        } else {
            io.watcher.say(&format!(
                "{}: the switch stopped replying and may need a reset (hint: set a reset command \
                 with --prepare CMD)",
                kind.name()
            ));
        }
        Ok(())
    }

    fn measure_on(&mut self, io: &mut Io<'_>) -> Result<(), RunError> {
        let mut described: Vec<record::Target> = Vec::new();
        for (kind, inputs) in self.plan.all_kinds() {
            if !self.begun.contains(&kind) {
                self.begun.push(kind);
                let entry = self.plan.measured().find(|it| self.plan.kinds_of(it).contains(&kind));
                let experiment = entry.map_or("", |entry| entry.id);
                self.hook(HookTime::Before, kind, experiment, io)?;
            }
            let bench = io.benches.of(self.plan.link_of(kind));
            let mut target =
                bench.target(kind, inputs).map_err(|error| RunError::Target(kind, error))?;
            target.suspend();
            for remark in target.remarks() {
                io.watcher.say(&format!("{}: {remark}", kind.name()));
            }
            if described.iter().all(|known| known.name != kind.name()) {
                described.push(provenance::describe(target.as_ref(), self.plan.link_apart(kind)));
            }
            io.targets.push(target);
        }
        self.record.targets = described;
        self.calibrate(io)?;
        let capacity_bps = self.capacity(io)?;
        self.record.parameters.insert("capacity_bps".into(), capacity_bps.into());
        self.store.write_start(&self.record)?;
        let mut tasks: Vec<Vec<MeasurementTask>> = Vec::new();
        let estimates = self.plan.estimates();
        for (entry, estimate) in self.plan.measured().zip(&estimates) {
            tasks.push(self.tasks(entry, estimate, &io.targets, capacity_bps));
        }
        let expected = tasks.iter().flatten().map(MeasurementTask::trials_expected).sum();
        self.record.trials_planned = Some(expected);
        io.watcher.expect(expected);
        for task in tasks.iter_mut().flatten() {
            let found = self.stored.lines.iter().filter_map(|line| match line {
                TrialLine::Outcome(outcome) => Some(outcome),
                TrialLine::Trial(_) => None,
            });
            found.for_each(|outcome| task.learn(outcome));
            self.replay(task);
        }
        io.watcher.tell(&events::planned(self.plan, expected, &self.record));
        self.record.trials.sort_by_key(|trial| trial.id);
        self.record.outcomes.sort_by_key(|outcome| outcome.trials.last().copied());
        for mut tasks in tasks {
            for found in &self.record.outcomes {
                tasks.iter_mut().for_each(|task| task.learn(found));
            }
            self.hook_between(&tasks, io)?;
            self.run_interleaved(&mut tasks, io)?;
        }
        match self.refused.take() {
            // There is nothing to report if no other target was measured either.
            Some((kind, why)) if self.record.trials.is_empty() => {
                Err(RunError::Target(kind, TargetError::CannotHold(why)))
            }
            _ => Ok(()),
        }
    }

    fn tasks(
        &self,
        entry: &'static CatalogEntry,
        estimate: &Estimate,
        targets: &[Box<dyn Target>],
        capacity: u64,
    ) -> Vec<MeasurementTask> {
        let kinds = self.plan.kinds_of(entry);
        let open = self.plan.all_kinds();
        let inputs = entry.inputs(&self.plan.parameters);
        let place = |kind| open.iter().position(|it| *it == (kind, inputs));
        let task = |kind: TargetKind| {
            let target = place(kind).expect("every kind of the plan was opened");
            let link = self.plan.link_of(kind);
            let mut known = self.record.calibrations.iter();
            let alone = known.find(|known| known.link == link.name());
            let context = Context {
                kind,
                technology: kind.technology(),
                addresses: targets[target].addresses(),
                capacity_bps: capacity,
                parameters: self.plan.parameters.clone(),
                seed: self.plan.seed,
                ceiling_pps: alone.map(|ceiling| ceiling.rate_pps_ceiling as f64),
                has_throughputs: self.plan.finds_throughputs_before(entry),
            };
            let link_apart = self.plan.link_apart(kind);
            let calibration = alone.map(|known| known.id.clone());
            let witness = self.plan.parameters.witness.clone();
            let captures = self.plan.parameters.control.capture != Capture::No;
            let recovery = self.plan.parameters.device.patience();
            let target_context = TargetContext {
                target,
                inputs,
                kind,
                link,
                link_apart,
                calibration,
                recovery,
                witness,
                captures,
            };
            let cost = estimate.costs.iter().find(|(of, _)| *of == kind);
            let trials = cost.map_or(0, |(_, cost)| cost.trials);
            MeasurementTask::new(entry, target_context, entry.method_on(&context), trials)
        };
        kinds.into_iter().map(task).collect()
    }

    /// Restores a task to the state in which an earlier attempt left it.
    fn replay(&mut self, task: &mut MeasurementTask) {
        let own = self.stored.lines.iter().filter_map(|line| match line {
            TrialLine::Trial(trial) if task.owns(trial) => Some(trial.clone()),
            _ => None,
        });
        task.take_stored(own.collect(), self.stored.has_gaps());
        self.record.trials.extend(task.catch_up());
        self.record.outcomes.extend(task.outcomes());
    }

    /// Runs the tasks of one experiment in rounds, one trial of each task in a round, until no task
    /// has a trial left.
    fn run_interleaved(
        &mut self,
        tasks: &mut [MeasurementTask],
        io: &mut Io<'_>,
    ) -> Result<(), RunError> {
        let last = self.record.trials.last();
        let last_measured = last.and_then(|last| tasks.iter().position(|task| task.owns(last)));
        // A round that was interrupted resumes where it ended.
        let mut first = last_measured.map_or(0, |at| at + 1);
        let mut missing = None;
        let mut is_measuring = true;
        while is_measuring {
            is_measuring = first > 0;
            let mut order: VecDeque<usize> = (0..tasks.len()).collect();
            if self.is_reversed_round() {
                order.make_contiguous().reverse();
            }
            order.drain(..take(&mut first));
            while let Some(at) = next_ready(&mut order, tasks) {
                if io.stop.load(Ordering::Relaxed) {
                    self.interrupted = true;
                    return Ok(());
                }
                // After a missing trial, other trials may be stored.
                let used = tasks[at].catch_up();
                if !used.is_empty() {
                    is_measuring = true;
                    self.record.trials.extend(used);
                    self.record.trials.sort_by_key(|trial| trial.id);
                }
                match self.step(at, tasks, io)? {
                    StepOutcome::Trial(done) => {
                        is_measuring = true;
                        self.store_trial(&tasks[at], *done, io)?;
                    }
                    StepOutcome::Refused(why) => {
                        missing = Some(tasks[at].target_context.kind.name());
                        self.skip(&tasks[at], why, io.watcher);
                    }
                    StepOutcome::Finished => {}
                }
            }
        }
        for (task, name) in tasks.iter().filter(|task| task.waits()).zip(missing.iter().cycle()) {
            self.skip(task, format!("it depends on results of {name}"), io.watcher);
        }
        Ok(())
    }

    /// Runs the next trial of a task, and passes its findings to all tasks.
    fn step(
        &mut self,
        at: usize,
        tasks: &mut [MeasurementTask],
        io: &mut Io<'_>,
    ) -> Result<StepOutcome, RunError> {
        let task = &mut tasks[at];
        let target = &mut io.targets[task.target_context.target];
        let id = self.store.next_trial_id();
        target.resume();
        let bench = io.benches.of(task.target_context.link);
        let stepped = task.step(target, bench, (id, self.plan.seed), io.watcher);
        target.suspend();
        for outcome in task.outcomes() {
            tasks.iter_mut().for_each(|other| other.learn(&outcome));
            self.keep(outcome)?;
        }
        stepped
    }

    /// Stores a trial that ran, reports it, and resets a switch that stopped responding.
    fn store_trial(
        &mut self,
        task: &MeasurementTask,
        done: FinishedTrial,
        io: &mut Io<'_>,
    ) -> Result<(), RunError> {
        self.clock.iter_mut().for_each(ClockWatch::look);
        if let Some(why) = &done.refused {
            io.watcher.say(&format!("{}: {why}", task.target_context.kind.name()));
        }
        let mut trial = done.trial;
        let histograms = match &done.seen {
            TrialData::Trial(report) => Histograms {
                latency: Some(&report.latency.from_sent),
                latency_scheduled: Some(&report.latency.from_scheduled),
                pacing_error: Some(&report.pacing.gap_error),
            },
            TrialData::Log(..) => Histograms::default(),
        };
        if let (TrialData::Log(lines, capture), Some(module)) = (&done.seen, &mut trial.module) {
            if !lines.is_empty() {
                module.log = Some(self.store.write_log(trial.id, lines)?);
            }
            if let (Some(bytes), Some(wire)) = (capture, &mut module.wire) {
                wire.file = Some(self.store.write_capture(trial.id, bytes)?);
            }
        }
        if let Some(Ended::Failed(why)) = trial.module.as_ref().map(|module| &module.ended) {
            io.watcher.say(&format!("{} on {}: {why}", trial.experiment, trial.target));
        }
        for problem in trial.witness.iter().flat_map(|witness| &witness.problems) {
            let line = format!("{}: SNMP agent: {problem}", trial.target);
            if self.problems_reported.insert(line.clone()) {
                io.watcher.say(&line);
            }
        }
        self.store.append_trial(&mut trial, histograms)?;
        let line = events::one_line(&trial);
        io.watcher.step(&line);
        io.watcher.tell(&events::trial_ended(&trial, line));
        for line in io.watcher.heard() {
            io.watcher.say(&line);
        }
        self.record.trials.push(trial);
        if done.needs_reset {
            self.reset(task, io)?;
        }
        done.failure.map_or(Ok(()), |error| Err(RunError::Trial(task.target_context.kind, error)))
    }

    /// Skips the rest of an experiment on a target that cannot hold the requested state; all other
    /// targets continue.
    fn skip(&mut self, task: &MeasurementTask, why: String, watcher: &mut dyn ProgressListener) {
        let (kind, id) = (task.target_context.kind, task.experiment());
        watcher.say(&format!("{}: {why}: skipped in {id}", kind.name()));
        let done = self.record.trials.iter().filter(|trial| task.owns(trial)).count() as u64;
        let told = if done > 0 { format!("remaining trials: {why}") } else { why.clone() };
        let experiment = self.record.experiments.iter_mut().find(|it| it.id == id);
        if let Some(experiment) = experiment {
            experiment.left_out.insert(kind.name().into(), told);
        }
        if let Some(planned) = &mut self.record.trials_planned {
            *planned = planned.saturating_sub(task.trials_expected().saturating_sub(done));
            let planned = *planned;
            watcher.expect(planned);
            watcher.tell(&events::planned(self.plan, planned, &self.record));
        }
        self.refused.get_or_insert((kind, why));
    }

    /// Returns whether the targets take turns in reverse order: in every second repeat, if the plan
    /// requests it.
    fn is_reversed_round(&self) -> bool {
        let last = self.record.trials.last().map_or(0, |trial| trial.repeat);
        self.plan.parameters.alternating && last % 2 == 1
    }

    fn keep(&mut self, outcome: Outcome) -> Result<(), RunError> {
        // A task that resumes produces the findings of an earlier attempt again.
        let line = TrialLine::Outcome(outcome.clone());
        if !self.stored.lines.contains(&line) {
            self.store.append_outcome(&outcome)?;
        }
        self.record.outcomes.push(outcome);
        Ok(())
    }

    /// Measures the tester without a target over each link, unless an earlier attempt did.
    fn calibrate(&mut self, io: &mut Io<'_>) -> Result<(), RunError> {
        let several = self.plan.links_used().len() > 1;
        for bench in io.benches.all() {
            let link = bench.link_name();
            if self.record.calibrations.iter().any(|known| known.link == link) {
                continue;
            }
            let Some(mut found) = calibration::calibrate(bench, &self.plan.parameters)? else {
                if !bench.can_be_looped() {
                    io.watcher.say(&format!(
                        "tester over {link}: not calibrated, because no cable loops back to it \
                         (hint: run 'planimeter doctor --calibrate' for other links)"
                    ));
                }
                continue;
            };
            if several {
                found.id = format!("{}:{link}", found.id);
            }
            io.watcher.say(&calibration::sentence(&found));
            if self.plan.measured().any(|entry| calibration::needs_controller(entry.id)) {
                found.controller = calibration::controller(bench.link());
                let told = found.controller.as_ref().map(calibration::controller_sentence);
                told.iter().for_each(|told| io.watcher.say(told));
            }
            self.record.calibrations.push(found);
        }
        Ok(())
    }

    fn capacity(&mut self, io: &mut Io<'_>) -> Result<u64, RunError> {
        if let Some(known) = self.record.parameters.get("capacity_bps").and_then(|it| it.as_u64()) {
            return Ok(known);
        }
        match self.plan.parameters.capacity {
            Capacity::BitsPerSecond(bits) => Ok(bits as u64),
            Capacity::Auto => {
                let found = calibration::overloading(&mut io.targets, self.plan)?;
                io.watcher.say(&format!(
                    "nominal link: {:.0} Mbit/s, the lowest rate that overloads every target at 64 \
                     bytes",
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
        report::finish(&mut self.record, &claims);
        let folder = self.store.folder().to_path_buf();
        if let Err(error) = self.store.write_record(&self.record) {
            return Err(RunError::Unwritten(error, folder));
        }
        let run = report::Run::of(self.record, &folder);
        let outputs = report::build(std::slice::from_ref(&run));
        match store::write_outputs(&folder, &outputs) {
            Ok(()) => Ok(Finished { folder, record: run.record }),
            // A partial run can be resumed and then gets a report.
            Err(error) if run.record.partial => Err(RunError::Unwritten(error, folder)),
            Err(error) => Err(RunError::Unreported(error, folder)),
        }
    }
}
