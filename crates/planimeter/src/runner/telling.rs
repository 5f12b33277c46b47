//! A trial in one line, for whoever watches a run.

use packet::time::Nanos;
use results::number;
use results::record::{self, Ended, Measured, ModuleRun};

/// A trial in one line, for whoever watches.
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

/// What an SNMP agent counted beside what was sent.
fn witness_line(witness: &record::Witness) -> Option<String> {
    let counted = witness.frames_in?;
    let load = witness.load_percent.map(|it| format!(", load {it:.0} %")).unwrap_or_default();
    Some(format!("agent counted {counted} of {} frames{load}", witness.frames_sent))
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
