//! One method on one target: runs its steps, and replays them from trials that an earlier attempt
//! stored.
//!
//! Invariant: each trial that the method requests counts once, stored or measured. No other trial
//! counts.

mod replay;

use std::collections::VecDeque;

use os::clock;
use packet::time::Nanos;
use tester::module::snmp_poll::{LoadPoller, SnmpReading as WitnessSeen};
use tester::module::{Ended, Module};
use tester::procedure::{Outcome, Point, Step};
use tester::rig::RigError;
use tester::search::interference::{RetryPolicy, Verdict};
use tester::trial::{Flag, Trial, TrialReport};

use super::recording::{self, Snapshots, TrialFacts};
use super::recovery;
use super::search_progress::SearchReporter;
use super::snmp;
use super::{ProgressListener, RunError, estimate, events};
use experiments::{Finding, Method};
use studies::CatalogEntry;
use targets::name::{Link, TargetKind};
use targets::{Bench, Snapshot, Target, TargetError};
use workload::Setup;
use workload::parameter::snmp::SnmpAgent;

/// Interval before counters are read again when a target does not report them.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(200);

/// A method that runs on a target.
pub struct MeasurementTask {
    entry: &'static CatalogEntry,
    /// The target and its link.
    pub target_context: TargetContext,
    method: Box<dyn Method>,
    /// Approximate number of trials in total.
    trials_expected: u64,
    last: Option<Outcome>,
    /// The set-up that the method requested last.
    setup: Option<Setup>,
    /// A set-up that must be installed before the next trial.
    pending_setup: Option<Setup>,
    /// The next step that is still to run: a trial that no earlier attempt stored, or one to repeat
    /// because the tester disturbed it.
    pending: Option<NextStep>,
    /// Unused trials that an earlier attempt stored.
    stored: VecDeque<record::Trial>,
    /// Whether some stored trials are missing, so that each one has to be searched for.
    has_gaps: bool,
    patience: RetryPolicy,
    /// Memory of the target right after it was created.
    fresh: Option<u64>,
    is_done: bool,
    /// Numbers of the trials since the last finding; the next finding rests on them.
    trials: Vec<u64>,
    /// Findings that were not collected yet.
    found: Vec<record::Outcome>,
}

/// A target of the run and its link.
pub struct TargetContext {
    /// Its index among the open targets.
    pub target: usize,
    /// Ports through which frames are sent into it.
    pub inputs: u8,
    /// Its kind.
    pub kind: TargetKind,
    /// Its link.
    pub link: Link,
    /// The name of its link, if the targets' links differ.
    pub link_apart: Option<String>,
    /// The calibration of its link.
    pub calibration: Option<String>,
    /// Time limit for a silent target to respond again.
    pub recovery: Nanos,
    /// The SNMP agent that is read during the measurement.
    pub witness: SnmpAgent,
    /// Whether control channels of modules are captured on the wire.
    pub captures: bool,
}

/// Result of a step.
pub enum StepOutcome {
    /// A trial was run.
    Trial(Box<FinishedTrial>),
    /// The target cannot hold the requested state, with the reason; the task ends.
    Refused(String),
    /// No step was left.
    Finished,
}

/// A trial that ran.
pub struct FinishedTrial {
    /// Its line in the record.
    pub trial: record::Trial,
    /// Data beyond the line.
    pub seen: TrialData,
    /// The failure that interrupted the trial, if any; the run cannot continue after it.
    pub failure: Option<RigError>,
    /// Why the target rejected the requested state, where that is itself a result.
    pub refused: Option<String>,
    /// Whether the target fell silent and does not respond.
    pub needs_reset: bool,
}

/// Data of a trial beyond its line in the record.
pub enum TrialData {
    /// The full report of a trial of streams.
    Trial(Box<TrialReport>),
    /// Log lines of a module, and the capture of its control channels on the wire.
    Log(Vec<String>, Option<Vec<u8>>),
}

/// The next step.
enum NextStep {
    Trial(Point, Trial),
    Module(Point, Box<dyn Module>),
}

impl MeasurementTask {
    /// Creates a method that has not started.
    pub fn new(
        entry: &'static CatalogEntry,
        target_context: TargetContext,
        method: Box<dyn Method>,
        trials_expected: u64,
    ) -> Self {
        MeasurementTask {
            entry,
            target_context,
            method,
            trials_expected,
            last: None,
            setup: None,
            pending_setup: None,
            pending: None,
            stored: VecDeque::new(),
            has_gaps: false,
            patience: RetryPolicy::default(),
            fresh: None,
            is_done: false,
            trials: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Returns the experiment's name.
    pub fn experiment(&self) -> &'static str {
        self.entry.id
    }

    /// Returns the approximate number of trials in total.
    pub fn trials_expected(&self) -> u64 {
        self.trials_expected
    }

    /// Returns whether a stored trial belongs to this task.
    pub fn owns(&self, trial: &record::Trial) -> bool {
        trial.experiment == self.entry.id && trial.target == self.target_context.kind.name()
    }

    /// Returns whether the task waits for a finding of another target's task.
    pub fn waits(&self) -> bool {
        self.method.waits()
    }

    /// Passes a finding of another target, or of another experiment of the same set, to the method.
    pub fn learn(&mut self, found: &record::Outcome) {
        let is_own = found.experiment == self.entry.id;
        if is_own && found.target != self.target_context.kind.name() {
            self.method.learn(found);
        } else if !is_own
            && found.target == self.target_context.kind.name()
            && studies::set_of(&found.experiment) == self.entry.set()
        {
            self.method.inherit(found);
        }
    }

    /// Advances to the next trial and runs it.
    pub fn step(
        &mut self,
        target: &mut Box<dyn Target>,
        bench: &mut Bench,
        (id, seed): (u64, u64),
        watcher: &mut dyn ProgressListener,
    ) -> Result<StepOutcome, RunError> {
        let (next, refused) = match self.prepare(target, bench) {
            Err(RunError::Target(_, TargetError::CannotHold(why))) => {
                self.is_done = true;
                return Ok(StepOutcome::Refused(why));
            }
            prepared => prepared?,
        };
        let Some(next) = next else { return Ok(StepOutcome::Finished) };
        let (NextStep::Trial(point, _) | NextStep::Module(point, _)) = &next;
        let (facts, method) = (self.facts(id, point, seed), self.method.as_ref());
        let load = match &next {
            NextStep::Trial(_, trial) => (Some(trial), estimate::trial_seconds(trial, false)),
            NextStep::Module(..) => (None, estimate::module_seconds(self.entry, method, false)),
        };
        watcher.tell(&events::trial_begun(&facts, load, method));
        let done = match next {
            NextStep::Trial(point, trial) => {
                let done = self.run_trial(target.as_mut(), (point, trial), (id, seed))?;
                FinishedTrial { refused, ..done }
            }
            NextStep::Module(point, module) => {
                self.run_module((target, bench), (point, module), (id, seed), watcher)?
            }
        };
        Ok(StepOutcome::Trial(Box::new(done)))
    }

    /// Installs what the next trial needs, and returns it. The second value is the reason why the
    /// target rejected the state, where that is itself a result.
    fn prepare(
        &mut self,
        target: &mut Box<dyn Target>,
        bench: &mut Bench,
    ) -> Result<(Option<NextStep>, Option<String>), RunError> {
        let (kind, inputs) = (self.target_context.kind, self.target_context.inputs);
        let tolerates_rejection = self.method.tolerates_rejection();
        let (mut fresh, mut refused) = (self.fresh, None);
        let mut install = |setup: &Setup| {
            let mut install = || {
                if setup.is_fresh {
                    fresh = restart(target, bench, inputs)?;
                }
                target.install(&Setup { is_fresh: false, ..*setup })
            };
            match install() {
                Err(error) if tolerates_rejection => {
                    refused = Some(error.to_string());
                    Ok(())
                }
                installed => installed.map_err(|error| RunError::Target(kind, error)),
            }
        };
        let pending_setup = self.pending_setup.take().map_or(Ok(()), |setup| install(&setup));
        let next = pending_setup.and_then(|()| match self.pending.take() {
            None => self.advance(install),
            pending => Ok(pending),
        });
        self.fresh = fresh;
        Ok((next?, refused))
    }

    /// Runs a trial of streams.
    fn run_trial(
        &mut self,
        target: &mut dyn Target,
        (point, trial): (Point, Trial),
        (id, seed): (u64, u64),
    ) -> Result<FinishedTrial, RunError> {
        let kind = self.target_context.kind;
        let failed = |error| RunError::Target(kind, error);
        let warmed = if trial.is_cold { None } else { target.warm(&trial).map_err(failed)? };
        let seen = snmp::look(&self.target_context.witness, target, Nanos::ZERO).map_err(failed)?;
        let before = target.snapshot().map_err(failed)?;
        let (mut report, failure) = match target.trial(&trial) {
            Ok(report) => (report, None),
            Err(RigError::Broken(port, error, report)) => {
                (*report, Some(RigError::Port(port, error)))
            }
            Err(error) => return Err(RunError::Trial(kind, error)),
        };
        let after = match target.snapshot() {
            // A port that failed may prevent the target from reporting counters.
            Err(_) if failure.is_some() => before.clone(),
            after => after.map_err(failed)?,
        };
        let grown = Some(self.method.flows_grown()).filter(|flows| *flows > 0);
        let fresh = self.fresh.zip(grown);
        let overdue = report.drain.since(trial.drain);
        let span_ns = trial.length().saturating_add(overdue).0;
        let around = Snapshots { before, after, span_ns, fresh };
        report.work = recording::work(&around);
        let allowed = if failure.is_some() { Vec::new() } else { self.method.allowed() };
        let verdict = self.patience.judge(&trial, &report, &allowed);
        if verdict == Verdict::Exhausted {
            report.flags.push(Flag::TesterInterference);
        }
        let command = trial.orders.as_ref().map(|script| script.deed());
        let facts = TrialFacts { command, ..self.facts(id, &point, seed) };
        let mut line = recording::trial(&facts, &report, &around);
        self.record_snmp_counters(target, &mut line, seen, (&[], None)).map_err(failed)?;
        if let Some(warmed) = warmed {
            recording::add_warming(&mut line, &warmed);
        }
        if verdict == Verdict::Again {
            line.flags.push(record::Flag::Retried);
            self.repeat(point, trial);
        } else {
            self.digest(point, report.clone(), id);
        }
        let seen = TrialData::Trial(Box::new(report));
        Ok(FinishedTrial { trial: line, seen, failure, refused: None, needs_reset: false })
    }

    /// Runs a measurement module.
    fn run_module(
        &mut self,
        (target, bench): (&mut Box<dyn Target>, &mut Bench),
        (point, mut module): (Point, Box<dyn Module>),
        (id, seed): (u64, u64),
        watcher: &mut dyn ProgressListener,
    ) -> Result<FinishedTrial, RunError> {
        let kind = self.target_context.kind;
        let failed = |error| RunError::Target(kind, error);
        let seen = snmp::look(&self.target_context.witness, target.as_mut(), Nanos::ZERO)
            .map_err(failed)?;
        let before = self.snapshot(target.as_mut())?;
        let mut watched = SearchReporter { module: module.as_mut(), watcher };
        let (report, told) = match &seen {
            None => (target.stage(&mut watched), Default::default()),
            Some(_) => {
                let mut beside = LoadPoller::new(&mut watched);
                let report = target.stage(&mut beside);
                (report, (beside.loads, beside.problem))
            }
        };
        let mut report = report.map_err(failed)?;
        let capture = report.capture.take();
        if report.ended == Ended::Interrupted {
            return Err(RunError::Trial(kind, RigError::Interrupted));
        }
        // Restarts a switch that is still busy, where the lab supports that.
        let (after, is_restarted) = match self.snapshot(target.as_mut()) {
            Err(_) if kind.resets_on(self.target_context.link) => {
                let old = replaced(target, bench, self.target_context.inputs).map_err(failed)?;
                // A switch that does not respond does not stop on request either; it is killed.
                let _ = old.stop();
                target.resume();
                (before.clone(), true)
            }
            found => (found?, false),
        };
        let span_ns = report.ended_at.since(report.started_at).0;
        let around = Snapshots { before, after, span_ns, fresh: None };
        let facts = self.facts(id, &point, seed);
        let mut line = recording::module::trial(&facts, self.entry.set(), &report, &around);
        let added = self.record_snmp_counters(target.as_mut(), &mut line, seen, (&told.0, told.1));
        added.map_err(failed)?;
        if let Some(module) = line.module.as_mut().filter(|_| self.target_context.captures) {
            module.wire.get_or_insert_with(|| recording::module::unseen(&report));
        }
        let recovered =
            recovery::poll_again(target.as_mut(), &report.ended, self.target_context.recovery);
        let recovered = recovered.map_err(failed)?;
        if let (Some(module), Some(recovered)) = (line.module.as_mut(), &recovered) {
            module.notes.push(recovered.note.clone());
        }
        if let (Some(module), true) = (line.module.as_mut(), is_restarted) {
            let waited = self.target_context.recovery.as_secs_f64();
            module.notes.push(format!(
                "the switch did not return its counters within {waited} s and was restarted: its \
                 counters are unknown"
            ));
        }
        let needs_reset = recovered.is_some_and(|it| it.needs_reset);
        let log = report.log.iter().map(recording::module::line).collect();
        self.trials.push(id);
        self.last = Some(Outcome::Module { point, report: Box::new(report) });
        let seen = TrialData::Log(log, capture);
        Ok(FinishedTrial { trial: line, seen, failure: None, refused: None, needs_reset })
    }

    /// Reads a target's counters. A switch may still process what a module sent, so it gets the
    /// time limit of a silent target.
    fn snapshot(&self, target: &mut dyn Target) -> Result<Snapshot, RunError> {
        let deadline = clock::now().saturating_add(self.target_context.recovery);
        loop {
            match target.snapshot() {
                Err(TargetError::Failed { .. }) if clock::now() < deadline => {
                    clock::sleep_until(clock::now().saturating_add(SNAPSHOT_INTERVAL));
                }
                found => {
                    return found
                        .map_err(|error| RunError::Target(self.target_context.kind, error));
                }
            }
        }
    }

    /// Reads the SNMP agent again and adds its counters to the line of a trial; `told` holds the
    /// loads during the trial.
    fn record_snmp_counters(
        &self,
        target: &mut dyn Target,
        line: &mut record::Trial,
        before: Option<WitnessSeen>,
        told: (&[f64], Option<String>),
    ) -> Result<(), TargetError> {
        let (Some(before), witness) = (before, &self.target_context.witness) else { return Ok(()) };
        let sent = line.ports.iter().map(|port| port.frames_sent).sum();
        if let Some(after) = snmp::poll_again(witness, target, &before, sent)? {
            snmp::add(line, witness, [&before, &after], told);
        }
        Ok(())
    }

    /// Returns the properties of a trial that do not depend on its result.
    fn facts<'a>(&self, id: u64, point: &'a Point, seed: u64) -> TrialFacts<'a> {
        TrialFacts {
            id,
            experiment: self.entry.id,
            target: self.target_context.kind.name(),
            point,
            tag: self.method.tag(),
            goal: self.method.goal(),
            command: None,
            seed,
            calibration: self.target_context.calibration.clone(),
        }
    }

    /// Schedules the same trial again on a target without learned state; the method does not see
    /// the discarded trial.
    fn repeat(&mut self, point: Point, trial: Trial) {
        self.pending_setup = self.pending_setup.or(self.setup.filter(|setup| setup.is_fresh));
        self.pending = Some(NextStep::Trial(point, trial));
    }

    /// Returns the next trial, and passes every set-up before it to `install`.
    fn advance(
        &mut self,
        mut install: impl FnMut(&Setup) -> Result<(), RunError>,
    ) -> Result<Option<NextStep>, RunError> {
        while !self.is_done {
            let next = self.method.next(self.last.as_ref());
            self.collect();
            match next {
                Step::Install(setup) => {
                    self.setup = Some(setup);
                    install(&setup)?;
                    self.last = Some(Outcome::Installed);
                }
                Step::Trial { point, trial } => return Ok(Some(NextStep::Trial(point, trial))),
                Step::Module { point, module } => return Ok(Some(NextStep::Module(point, module))),
                Step::Done => self.is_done = true,
            }
        }
        Ok(None)
    }

    fn digest(&mut self, point: Point, report: TrialReport, id: u64) {
        self.trials.push(id);
        self.last = Some(Outcome::Trial { point, report: Box::new(report) });
    }

    /// Returns the outcomes found since the last call.
    pub fn outcomes(&mut self) -> Vec<record::Outcome> {
        std::mem::take(&mut self.found)
    }

    /// Collects findings. A method produces them while it decides on the next trial, from the
    /// trials that ran so far.
    fn collect(&mut self) {
        let findings = self.method.findings();
        if findings.is_empty() {
            return;
        }
        // Findings of one step rest on the same trials.
        let trials = std::mem::take(&mut self.trials);
        for finding in findings {
            let outcome = self.outcome(finding, trials.clone());
            self.found.push(outcome);
        }
    }

    fn outcome(&self, finding: Finding, trials: Vec<u64>) -> record::Outcome {
        let flags = [
            (finding.tester_limited, record::Flag::TesterLimited),
            (finding.irregular, record::Flag::Irregular),
            (finding.disturbed, record::Flag::TesterInterference),
        ];
        let point = record::Point::new(finding.axis, finding.x);
        record::Outcome {
            experiment: self.entry.id.into(),
            target: self.target_context.kind.name().into(),
            link: self.target_context.link_apart.clone(),
            repeat: finding.repeat,
            point: match finding.curve {
                Some((name, value)) => point.within(name, value),
                None => point,
            },
            metric: finding.metric,
            value: finding.value,
            resolution: finding.resolution,
            bound: finding.bound,
            trials,
            flags: flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect(),
            goal: finding.goal,
        }
    }
}

/// Replaces a target with a new one of the same kind; returns its memory while it is empty.
fn restart(
    target: &mut Box<dyn Target>,
    bench: &mut Bench,
    inputs: u8,
) -> Result<Option<u64>, TargetError> {
    replaced(target, bench, inputs)?.stop()?;
    target.resume();
    Ok(target.snapshot()?.memory_bytes)
}

/// Replaces a target with a new one of the same kind and returns the old one. Neither holds its
/// turn.
fn replaced(
    target: &mut Box<dyn Target>,
    bench: &mut Bench,
    inputs: u8,
) -> Result<Box<dyn Target>, TargetError> {
    target.suspend();
    let new = bench.target(target.kind(), inputs)?;
    Ok(std::mem::replace(target, new))
}
