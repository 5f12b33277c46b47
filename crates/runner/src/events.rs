//! Reports of a run's progress to watchers: events, and one line for each trial.

use std::path::Path;

use packet::time::Nanos;
use record::number;
use record::{Ended, Measured, ModuleRun, Record};
use tester::stream::Stream;
use tester::trial::Trial;

use super::estimate::Estimate;
use super::recording::TrialFacts;
use super::{Plan, ProgressListener};
use crate::live::event::{
    self, Event, NetworkWiring, PlannedPart, RunStarted, TargetStatus, TrialBegun, TrialEnded,
};
use crate::live::writer::LiveWriter;
use experiments::Method;
use targets::Benches;
use targets::name::TargetKind;
use targets::network::{self, End};

/// A watcher in this process, and the events file that other processes follow.
pub(super) struct EventEmitter<'a> {
    watcher: &'a mut dyn ProgressListener,
    teller: LiveWriter,
}

impl<'a> EventEmitter<'a> {
    /// Begins to report on a run in this folder.
    pub(super) fn begin(
        watcher: &'a mut dyn ProgressListener,
        plan: &Plan,
        benches: &mut Benches,
        folder: &Path,
    ) -> Self {
        // The thread uses the tester's cores: the tester detects lost CPU time, a target does not.
        let cores = benches.all().next().map(|bench| bench.cores().instrument.clone());
        let cores = cores.unwrap_or_default();
        watcher.opened(folder, &cores);
        let teller = LiveWriter::begin(folder, cores);
        let mut telling = EventEmitter { watcher, teller };
        telling.tell(&Event::Begun(Box::new(begun(plan))));
        telling
    }

    /// Reports the end of the run, and waits until the event is written.
    pub(super) fn end(mut self, partial: bool, failure: Option<String>) {
        self.tell(&Event::Over { partial, failure });
    }
}

impl ProgressListener for EventEmitter<'_> {
    fn say(&mut self, line: &str) {
        self.teller.tell(Event::Said { line: line.into() });
        self.watcher.say(line);
    }

    fn expect(&mut self, trials: u64) {
        self.watcher.expect(trials);
    }

    fn step(&mut self, line: &str) {
        self.watcher.step(line);
    }

    fn heard(&mut self) -> Vec<String> {
        self.watcher.heard()
    }

    fn tell(&mut self, event: &Event) {
        self.teller.tell(event.clone());
        self.watcher.tell(event);
    }
}

fn begun(plan: &Plan) -> RunStarted {
    let mut targets: Vec<TargetStatus> = Vec::new();
    for (kind, _) in plan.all_kinds() {
        if targets.iter().all(|known| known.name != kind.name()) {
            targets.push(TargetStatus {
                name: kind.name().into(),
                is: kind.technology().singular().into(),
                link: plan.link_of(kind).name().into(),
                network: joined(kind),
            });
        }
    }
    RunStarted {
        command_line: plan.command_line.clone(),
        created: plan.created.clone(),
        experiments: plan.entries.iter().map(|entry| entry.id.into()).collect(),
        targets,
        process: std::process::id(),
        is_virtual: plan.parameters.simulated,
    }
}

/// Returns the links between the switches of a target that is a network.
fn joined(kind: TargetKind) -> Option<NetworkWiring> {
    let TargetKind::Network(target) = kind else { return None };
    let network = target.network();
    let end = |end: &End| (end.switch, end.port);
    let named = |switch: &network::Switch| format!("{} ({})", switch.name, switch.kind.name());
    Some(NetworkWiring {
        switches: network.switches.iter().map(named).collect(),
        links: network.links.iter().map(|[from, to]| [end(from), end(to)]).collect(),
        instrument: network.instrument.iter().map(end).collect(),
    })
}

/// Returns the event with the planned number of trials, and the estimate of those that the record
/// does not contain.
pub(super) fn planned(plan: &Plan, trials: u64, record: &Record) -> Event {
    let mut parts = Vec::new();
    for Estimate { entry, costs, .. } in &plan.estimates() {
        let own = record.experiments.iter().find(|it| it.id == entry.id);
        for (kind, cost) in costs {
            let is_own =
                |it: &&record::Trial| it.experiment == entry.id && it.target == kind.name();
            let done = record.trials.iter().filter(is_own).count() as u64;
            let is_left_out = own.is_some_and(|it| it.left_out.contains_key(kind.name()));
            let left = if is_left_out { 0 } else { cost.trials.saturating_sub(done) };
            let trial_s = cost.seconds / cost.trials.max(1) as f64;
            parts.push(PlannedPart {
                experiment: entry.id.into(),
                target: kind.name().into(),
                seconds: trial_s * left as f64,
                trial_s,
            });
        }
    }
    Event::Planned { trials, done: record.trials.len() as u64, parts }
}

/// Returns the event of a trial that begins, or of a module if there is none, with its approximate
/// duration.
pub(super) fn trial_begun(
    facts: &TrialFacts<'_>,
    (trial, seconds): (Option<&Trial>, f64),
    at: &dyn Method,
) -> Event {
    let axes = facts.point.0.iter().map(|axis| format!("{}={}", axis.axis, axis.value));
    let rate = |trial: &Trial| -> f64 { trial.streams.iter().map(Stream::rate_pps).sum() };
    Event::Trial(Box::new(TrialBegun {
        id: facts.id,
        experiment: facts.experiment.into(),
        target: facts.target.into(),
        point: axes.collect::<Vec<_>>().join(" "),
        goal: facts.goal.map(Into::into),
        repeat: facts.tag.repeat,
        rate_pps: trial.map(rate),
        seconds: Some(seconds),
        brackets: at.brackets(),
    }))
}

/// Returns the event of a trial that ended.
pub(super) fn trial_ended(trial: &record::Trial, line: String) -> Event {
    let warnings = trial.flags.iter().filter_map(|flag| event::warning(*flag));
    Event::Ended(TrialEnded { id: trial.id, line, warnings: warnings.map(Into::into).collect() })
}

/// Formats a trial as one line for watchers.
pub(super) fn one_line(trial: &record::Trial) -> String {
    let place =
        format!("{} {} {}={}", trial.experiment, trial.target, trial.point.name, trial.point.value);
    let goal = trial.goal.as_ref().map(|goal| format!("for {goal}"));
    let orders = trial.orders.as_ref().map(orders_line);
    let module = trial.module.as_ref().map(module_line);
    let frames = frames_line(trial).filter(|_| module.is_none());
    let witness = trial.witness.as_ref().and_then(witness_line);
    let parts = [goal, frames, orders, module, memory_line(trial), witness];
    format!("{place}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// Formats the SNMP agent's counters against the frames that were sent.
fn witness_line(witness: &record::SnmpReport) -> Option<String> {
    let counted = witness.frames_in?;
    let load = witness.load_percent.map(|it| format!(", load {it:.0} %")).unwrap_or_default();
    Some(format!("agent counted {counted} of {} frames{load}", witness.frames_sent))
}

/// Number of values in a line for watchers.
const VALUES_SHOWN: usize = 4;

fn module_line(module: &ModuleRun) -> String {
    let how = match &module.ended {
        Ended::Completed => None,
        Ended::Limit(what) | Ended::Lost(what) | Ended::Failed(what) => {
            Some(format!("ended: {}", what.lines().next().unwrap_or_default()))
        }
    };
    let value = |found: &Measured| {
        let quantity = number::quantity(found.metric, found.value);
        format!("{} {quantity}", number::title(found.metric))
    };
    let values = module.measured.iter().take(VALUES_SHOWN).map(value);
    how.into_iter().chain(values).collect::<Vec<_>>().join(", ")
}

fn memory_line(trial: &record::Trial) -> Option<String> {
    let each = trial.memory.as_ref()?.bytes_per_flow()?;
    Some(format!("{each:.0} bytes of memory per flow"))
}

fn orders_line(orders: &record::ControllerLoad) -> String {
    let errors = match orders.errors {
        0 => String::new(),
        count => format!(", {count} errors"),
    };
    let seconds = orders.duration_ns as f64 / 1e9;
    match orders.command {
        record::ControllerCommand::FlowStats => {
            let count = orders.rows;
            format!(
                "{count} flows reported in {} replies in {seconds:.3} s{errors}",
                orders.answers
            )
        }
        command => {
            let rate = orders.flow_mods_per_s().unwrap_or(0.0);
            format!("{} flows {} at {rate:.0}/s{errors}", orders.flow_mods, command.word())
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
