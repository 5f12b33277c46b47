//! One method on one target: steps it, and replays it from what an earlier attempt stored.
//!
//! Invariant: each trial that the method asks for is counted once, stored or measured; what it does not ask for is not counted.

/// Its replay from stored trials.
mod replay;

use std::collections::VecDeque;

use instrument::experiment::{Outcome, Point, Step};
use instrument::module::witness::{Beside, Seen as WitnessSeen};
use instrument::module::{Ended, Module};
use instrument::rig::RigError;
use instrument::search::disturbed::{Patience, Verdict};
use instrument::trial::{Flag, Trial, TrialReport};
use packet::time::Nanos;
use ports::clock;
use results::record;

use super::recording::{self, Around, Facts};
use super::recovery;
use super::watched::Watched;
use super::witness;
use super::{RunError, Watcher, estimate, telling};
use crate::catalog::{self, Entry};
use crate::experiments::{Finding, Method};
use crate::parameter::witness::Witness;
use crate::target::name::{Link, TargetKind};
use crate::target::{Bench, Snapshot, Target, TargetError};
use crate::workload::Setup;

/// A target that does not say what it counts is asked again after so long.
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(200);

/// A method at work on a target.
pub struct Lane {
    entry: &'static Entry,
    /// What it is measured on.
    pub seat: Seat,
    method: Box<dyn Method>,
    /// About how many trials there will be in all.
    trials_expected: u64,
    last: Option<Outcome>,
    /// The set-up that the method asked for last.
    setup: Option<Setup>,
    /// A set-up that has to be made before the next trial.
    owed: Option<Setup>,
    /// What the method asked for and was not done yet: a trial that no earlier attempt stored, or one that is to be done
    /// again because the tester disturbed it.
    pending: Option<Next>,
    /// Trials that an earlier attempt stored, as far as they were not used yet.
    stored: VecDeque<record::Trial>,
    /// Whether some of them are missing, so that each has to be looked for.
    has_gaps: bool,
    patience: Patience,
    /// Memory of the target when it was made anew.
    fresh: Option<u64>,
    is_done: bool,
    /// Trials since the last finding, by number: what the next one rests on.
    trials: Vec<u64>,
    /// Findings that nobody has taken yet.
    found: Vec<record::Outcome>,
}

/// A target of the run, and how it is joined.
pub struct Seat {
    /// Its place among those that are open.
    pub target: usize,
    /// Ports by which frames are sent into it.
    pub inputs: u8,
    /// Which it is.
    pub kind: TargetKind,
    /// How it is joined.
    pub link: Link,
    /// The name of its link, where not all targets have the same.
    pub link_apart: Option<String>,
    /// The calibration of its link.
    pub calibration: Option<String>,
    /// How long it may take to answer again when it fell silent.
    pub recovery: Nanos,
    /// The SNMP agent that is asked beside.
    pub witness: Witness,
    /// Whether modules' control channels are to be seen on the wire.
    pub captures: bool,
}

/// What a step did.
pub enum Stepped {
    /// A trial was run.
    Trial(Box<Done>),
    /// The target cannot hold what it is asked to, and why: nothing more is done.
    Refused(String),
    /// Nothing was left to do.
    Finished,
}

/// A trial that was run.
pub struct Done {
    /// Its line.
    pub trial: record::Trial,
    /// What else was seen.
    pub seen: Seen,
    /// Why it ended in the middle, if it did: then nothing can go on.
    pub failure: Option<RigError>,
    /// Why the target refused what it was to hold, where that is something to be found.
    pub refused: Option<String>,
    /// Whether the target fell silent and does not answer again.
    pub needs_reset: bool,
}

/// What was seen besides what the line of a trial says.
pub enum Seen {
    /// Of a trial of streams, all.
    Trial(Box<TrialReport>),
    /// Of a module, its log as lines, and what its control channels looked like on the wire.
    Log(Vec<String>, Option<Vec<u8>>),
}

/// What is to be done next.
enum Next {
    Trial(Point, Trial),
    Module(Point, Box<dyn Module>),
}

impl Lane {
    /// A method that has done nothing yet.
    pub fn new(
        entry: &'static Entry,
        seat: Seat,
        method: Box<dyn Method>,
        trials_expected: u64,
    ) -> Self {
        Lane {
            entry,
            seat,
            method,
            trials_expected,
            last: None,
            setup: None,
            owed: None,
            pending: None,
            stored: VecDeque::new(),
            has_gaps: false,
            patience: Patience::default(),
            fresh: None,
            is_done: false,
            trials: Vec::new(),
            found: Vec::new(),
        }
    }

    /// The experiment's name.
    pub fn experiment(&self) -> &'static str {
        self.entry.id
    }

    /// About how many trials there will be in all.
    pub fn trials_expected(&self) -> u64 {
        self.trials_expected
    }

    /// Whether a stored trial is this lane's.
    pub fn owns(&self, trial: &record::Trial) -> bool {
        trial.experiment == self.entry.id && trial.target == self.seat.kind.name()
    }

    /// Whether it can only go on when it has learned what another target's lane finds.
    pub fn waits(&self) -> bool {
        self.method.waits()
    }

    /// Another target found this, or this one in another experiment of the same set.
    pub fn learn(&mut self, found: &record::Outcome) {
        let is_own = found.experiment == self.entry.id;
        if is_own && found.target != self.seat.kind.name() {
            self.method.learn(found);
        } else if !is_own
            && found.target == self.seat.kind.name()
            && catalog::set_of(&found.experiment) == self.entry.set()
        {
            self.method.inherit(found);
        }
    }

    /// Goes on to the next trial and runs it.
    pub fn step(
        &mut self,
        target: &mut Box<dyn Target>,
        bench: &mut Bench,
        (id, seed): (u64, u64),
        watcher: &mut dyn Watcher,
    ) -> Result<Stepped, RunError> {
        let kind = self.seat.kind;
        let failed = |error| RunError::Target(kind, error);
        let (mut fresh, inputs) = (self.fresh, self.seat.inputs);
        let mut install = |setup: &Setup| {
            if setup.is_fresh {
                fresh = renew(target, bench, inputs)?;
            }
            target.install(&Setup { is_fresh: false, ..*setup })
        };
        let mut refused = None;
        let bears = self.method.bears_refusal();
        let mut install = |setup: &Setup| match install(setup) {
            Err(error) if bears => {
                refused = Some(error.to_string());
                Ok(())
            }
            installed => installed.map_err(failed),
        };
        let owed = self.owed.take().map_or(Ok(()), |setup| install(&setup));
        let next = owed.and_then(|()| match self.pending.take() {
            None => self.advance(install),
            pending => Ok(pending),
        });
        self.fresh = fresh;
        let next = match next {
            Err(RunError::Target(_, TargetError::CannotHold(why))) => {
                self.is_done = true;
                return Ok(Stepped::Refused(why));
            }
            next => next?,
        };
        let (point, trial) = match next {
            None => return Ok(Stepped::Finished),
            Some(Next::Trial(point, trial)) => {
                let facts = self.facts(id, &point, seed);
                let (trial_begun, method) = (telling::trial_begun, self.method.as_ref());
                let seconds = trial.length().as_secs_f64();
                watcher.tell(&trial_begun(&facts, (Some(&trial), seconds), method));
                (point, trial)
            }
            Some(Next::Module(point, module)) => {
                let facts = self.facts(id, &point, seed);
                let seconds = estimate::module_seconds(self.entry, self.method.as_ref(), false);
                let method = self.method.as_ref();
                watcher.tell(&telling::trial_begun(&facts, (None, seconds), method));
                return self.stage((target, bench), (point, module), (id, seed), watcher);
            }
        };
        let warmed = if trial.is_cold { None } else { target.warm(&trial).map_err(failed)? };
        let seen =
            witness::look(&self.seat.witness, target.as_mut(), Nanos::ZERO).map_err(failed)?;
        let before = target.snapshot().map_err(failed)?;
        let (mut report, failure) = match target.trial(&trial) {
            Ok(report) => (report, None),
            Err(RigError::Broken(port, error, report)) => {
                (*report, Some(RigError::Port(port, error)))
            }
            Err(error) => return Err(RunError::Trial(kind, error)),
        };
        let after = match target.snapshot() {
            // What happened to its port may keep it from telling anything.
            Err(_) if failure.is_some() => before.clone(),
            after => after.map_err(failed)?,
        };
        let grown = Some(self.method.flows_grown()).filter(|flows| *flows > 0);
        let fresh = self.fresh.zip(grown);
        let overdue = report.drain.since(trial.drain);
        let span_ns = trial.length().saturating_add(overdue).0;
        let around = Around { before, after, span_ns, fresh };
        report.work = recording::work(&around);
        let allowed = if failure.is_some() { Vec::new() } else { self.method.allowed() };
        let verdict = self.patience.judge(&trial, &report, &allowed);
        if verdict == Verdict::Exhausted {
            report.flags.push(Flag::Disturbed);
        }
        let deed = trial.orders.as_ref().map(|script| script.deed());
        let facts = Facts { deed, ..self.facts(id, &point, seed) };
        let mut line = recording::trial(&facts, &report, &around);
        self.bear_witness(target, &mut line, seen, (&[], None)).map_err(failed)?;
        if let Some(warmed) = warmed {
            recording::add_warming(&mut line, &warmed);
        }
        if verdict == Verdict::Again {
            line.flags.push(record::Flag::Repeated);
            self.repeat(point, trial);
        } else {
            self.digest(point, report.clone(), id);
        }
        let seen = Seen::Trial(Box::new(report));
        Ok(Stepped::Trial(Box::new(Done {
            trial: line,
            seen,
            failure,
            refused,
            needs_reset: false,
        })))
    }

    /// Carries a module out.
    fn stage(
        &mut self,
        (target, bench): (&mut Box<dyn Target>, &mut Bench),
        (point, mut module): (Point, Box<dyn Module>),
        (id, seed): (u64, u64),
        watcher: &mut dyn Watcher,
    ) -> Result<Stepped, RunError> {
        let kind = self.seat.kind;
        let failed = |error| RunError::Target(kind, error);
        let seen =
            witness::look(&self.seat.witness, target.as_mut(), Nanos::ZERO).map_err(failed)?;
        let before = self.snapshot(target)?;
        let mut watched = Watched { module: module.as_mut(), watcher };
        let (report, told) = match &seen {
            None => (target.stage(&mut watched), Default::default()),
            Some(_) => {
                let mut beside = Beside::new(&mut watched);
                let report = target.stage(&mut beside);
                (report, (beside.loads, beside.problem))
            }
        };
        let mut report = report.map_err(failed)?;
        let capture = report.capture.take();
        if report.ended == Ended::Interrupted {
            return Err(RunError::Trial(kind, RigError::Interrupted));
        }
        // A switch that is still at its work is started anew, where the lab can do that.
        let (after, is_restarted) = match self.snapshot(target) {
            Err(_) if kind.resets_on(self.seat.link) => {
                let old = replaced(target, bench, self.seat.inputs).map_err(failed)?;
                // What does not answer does not end either when it is asked to, and is ended by force.
                let _ = old.stop();
                target.wake();
                (before.clone(), true)
            }
            found => (found?, false),
        };
        let span_ns = report.ended_at.since(report.started_at).0;
        let around = Around { before, after, span_ns, fresh: None };
        let facts = self.facts(id, &point, seed);
        let mut line = recording::module::trial(&facts, self.entry.set(), &report, &around);
        self.bear_witness(target, &mut line, seen, (&told.0, told.1)).map_err(failed)?;
        if let Some(module) = line.module.as_mut().filter(|_| self.seat.captures) {
            module.wire.get_or_insert_with(|| recording::module::unseen(&report));
        }
        let recovered = recovery::look_after(target.as_mut(), &report.ended, self.seat.recovery);
        let recovered = recovered.map_err(failed)?;
        if let (Some(module), Some(recovered)) = (line.module.as_mut(), &recovered) {
            module.notes.push(recovered.note.clone());
        }
        if let (Some(module), true) = (line.module.as_mut(), is_restarted) {
            let waited = self.seat.recovery.as_secs_f64();
            module.notes.push(format!(
                "afterwards the switch did not say what it counts within {waited} s, and was started anew: its counters \
                 are unknown"
            ));
        }
        let needs_reset = recovered.is_some_and(|it| it.needs_reset);
        let log = report.log.iter().map(recording::module::line).collect();
        self.trials.push(id);
        self.last = Some(Outcome::Module { point, report: Box::new(report) });
        Ok(Stepped::Trial(Box::new(Done {
            trial: line,
            seen: Seen::Log(log, capture),
            failure: None,
            refused: None,
            needs_reset,
        })))
    }

    /// What a target counts. A switch may still be at the work that a module gave it, and has as long to answer as one
    /// that fell silent.
    fn snapshot(&self, target: &mut Box<dyn Target>) -> Result<Snapshot, RunError> {
        let deadline = clock::now().saturating_add(self.seat.recovery);
        loop {
            match target.snapshot() {
                Err(TargetError::Failed { .. }) if clock::now() < deadline => {
                    clock::sleep_until(clock::now().saturating_add(SNAPSHOT_INTERVAL));
                }
                found => return found.map_err(|error| RunError::Target(self.seat.kind, error)),
            }
        }
    }

    /// Asks the agent again and puts what it saw into the line of a trial; `told` are the loads meanwhile.
    fn bear_witness(
        &self,
        target: &mut Box<dyn Target>,
        line: &mut record::Trial,
        before: Option<WitnessSeen>,
        told: (&[f64], Option<String>),
    ) -> Result<(), TargetError> {
        let (Some(before), witness) = (before, &self.seat.witness) else { return Ok(()) };
        let sent = line.ports.iter().map(|port| port.frames_sent).sum();
        if let Some(after) = witness::look_after(witness, target.as_mut(), &before, sent)? {
            witness::add(line, witness, [&before, &after], told);
        }
        Ok(())
    }

    /// What a trial is, besides what comes of it.
    fn facts<'a>(&self, id: u64, point: &'a Point, seed: u64) -> Facts<'a> {
        Facts {
            id,
            experiment: self.entry.id,
            target: self.seat.kind.name(),
            point,
            tag: self.method.tag(),
            goal: self.method.goal(),
            deed: None,
            seed,
            calibration: self.seat.calibration.clone(),
        }
    }

    /// Has the same trial be done once more, before a target that knows no more than it did; the method
    /// never hears of the one that was.
    fn repeat(&mut self, point: Point, trial: Trial) {
        self.owed = self.owed.or(self.setup.filter(|setup| setup.is_fresh));
        self.pending = Some(Next::Trial(point, trial));
    }

    /// The next trial, with every set-up on the way handed to `install`.
    fn advance(
        &mut self,
        mut install: impl FnMut(&Setup) -> Result<(), RunError>,
    ) -> Result<Option<Next>, RunError> {
        while !self.is_done {
            let next = self.method.next(self.last.as_ref());
            self.collect();
            match next {
                Step::Install(setup) => {
                    self.setup = Some(setup);
                    install(&setup)?;
                    self.last = Some(Outcome::Installed);
                }
                Step::Trial { point, trial } => return Ok(Some(Next::Trial(point, trial))),
                Step::Module { point, module } => return Ok(Some(Next::Module(point, module))),
                Step::Done => self.is_done = true,
            }
        }
        Ok(None)
    }

    fn digest(&mut self, point: Point, report: TrialReport, id: u64) {
        self.trials.push(id);
        self.last = Some(Outcome::Trial { point, report: Box::new(report) });
    }

    /// What has been found since this was last asked.
    pub fn outcomes(&mut self) -> Vec<record::Outcome> {
        std::mem::take(&mut self.found)
    }

    /// A method finds while it decides what comes next, from the trials that were run by then.
    fn collect(&mut self) {
        let findings = self.method.findings();
        if findings.is_empty() {
            return;
        }
        // What is found together rests on the same trials.
        let trials = std::mem::take(&mut self.trials);
        for finding in findings {
            let outcome = self.outcome(finding, trials.clone());
            self.found.push(outcome);
        }
    }

    fn outcome(&self, finding: Finding, trials: Vec<u64>) -> record::Outcome {
        let mut flags = Vec::new();
        if finding.tester_limited {
            flags.push(record::Flag::TesterLimited);
        }
        if finding.irregular {
            flags.push(record::Flag::Irregular);
        }
        if finding.disturbed {
            flags.push(record::Flag::Disturbed);
        }
        record::Outcome {
            experiment: self.entry.id.into(),
            target: self.seat.kind.name().into(),
            link: self.seat.link_apart.clone(),
            repeat: finding.repeat,
            point: match finding.curve {
                Some((name, value)) => {
                    record::Point::new(finding.axis, finding.x).within(name, value)
                }
                None => record::Point::new(finding.axis, finding.x),
            },
            metric: finding.metric,
            value: finding.value,
            resolution: finding.resolution,
            bound: finding.bound,
            trials,
            flags,
            goal: finding.goal,
        }
    }
}

/// Puts a new target of the same kind in the place of one; its memory when it holds nothing.
fn renew(
    target: &mut Box<dyn Target>,
    bench: &mut Bench,
    inputs: u8,
) -> Result<Option<u64>, TargetError> {
    replaced(target, bench, inputs)?.stop()?;
    target.wake();
    Ok(target.snapshot()?.memory_bytes)
}

/// Puts a new target of the same kind in the place of one, which is returned. Neither has its turn.
fn replaced(
    target: &mut Box<dyn Target>,
    bench: &mut Bench,
    inputs: u8,
) -> Result<Box<dyn Target>, TargetError> {
    target.rest();
    let new = bench.target(target.kind(), inputs)?;
    Ok(std::mem::replace(target, new))
}
