//! Independent check of a measurement: reads the target's SNMP agent before, during and after it.
//!
//! Modules read the agent on the target's own event loop. The same code thus reads an external
//! agent in real time and a simulated one in virtual time. Invariant: the measurement continues if
//! the agent fails; the record states which counters are unknown.

use packet::time::Nanos;
use record::{CounterChange, Measured, Metric, Name};
use snmp::mib::Interface;
use tester::module::snmp_poll::{SnmpRead, SnmpReading};

use targets::{Target, TargetError};
use workload::parameter::snmp::SnmpAgent;

/// Interval between two readings of an agent that has not counted all frames yet.
const AGAIN_NS: Nanos = Nanos::from_millis(500);

/// Reads all values of a target's agent; `None` if the target has none, or the run does not read
/// it.
pub fn look(
    witness: &SnmpAgent,
    target: &mut dyn Target,
    after: Nanos,
) -> Result<Option<SnmpReading>, TargetError> {
    if witness.at.is_none() {
        return Ok(None);
    }
    let mut module = SnmpRead::new(witness.oids.clone(), after);
    target.ask(&mut module)?;
    Ok(Some(module.seen()))
}

/// Reads the agent again while it counts fewer frames than were sent and time is left. Agents cache
/// their counters for seconds.
pub fn poll_again(
    witness: &SnmpAgent,
    target: &mut dyn Target,
    before: &SnmpReading,
    sent: u64,
) -> Result<Option<SnmpReading>, TargetError> {
    let looks = (witness.wait_s * 1e9 / AGAIN_NS.0 as f64) as u64;
    let mut seen = look(witness, target, Nanos::ZERO)?;
    for _ in 0..looks {
        let counted = |seen: &SnmpReading| {
            passed(witness, before, seen).iter().map(|it| it.frames_in).sum::<u64>()
        };
        if seen.as_ref().is_none_or(|seen| !seen.problems.is_empty() || counted(seen) >= sent) {
            break;
        }
        seen = look(witness, target, AGAIN_NS)?;
    }
    Ok(seen)
}

/// Returns what the interfaces on the path of the tester's frames counted in between.
fn passed(witness: &SnmpAgent, before: &SnmpReading, after: &SnmpReading) -> Vec<Interface> {
    let is_wanted = |it: &&Interface| match witness.interfaces.is_empty() {
        true => !it.is_loopback,
        false => witness.interfaces.contains(&it.name),
    };
    let since = |now: &Interface| {
        let was =
            before.interfaces.iter().find(|it| it.index == now.index && it.name == now.name)?;
        Some(now.since(was))
    };
    after.interfaces.iter().filter(is_wanted).filter_map(since).collect()
}

/// Adds the agent's counters to the line of a trial; `loads` are the loads it reported during the
/// trial.
pub fn add(
    line: &mut record::Trial,
    witness: &SnmpAgent,
    [before, after]: [&SnmpReading; 2],
    (loads, problem): (&[f64], Option<String>),
) {
    let ports = passed(witness, before, after);
    let is_known = !ports.is_empty();
    let sum = |of: fn(&Interface) -> u64| is_known.then(|| ports.iter().map(of).sum());
    let seen = |it: &Interface| record::SnmpInterface {
        name: it.name.clone(),
        frames_in: it.frames_in,
        frames_out: it.frames_out,
        frames_discarded: it.discards,
        frames_with_errors: it.errors,
        bits: if it.is_wide { 64 } else { 32 },
    };
    let mean = |loads: &[u64]| loads.iter().sum::<u64>() as f64 / loads.len() as f64;
    let last = (!after.loads.is_empty()).then(|| mean(&after.loads));
    let all: Vec<f64> = loads.iter().copied().chain(last).collect();
    let value = |(name, now): &(snmp::Oid, u64)| {
        let was = before.values.iter().find(|(known, _)| known == name)?.1;
        Some(CounterChange { name: name.to_string(), before: was, after: *now })
    };
    let mut problems = [&before.problems[..], &after.problems[..]].concat();
    problems.extend(problem);
    if !is_known && problems.is_empty() {
        problems.push("no interface of the agent carries the tester's frames".into());
    }
    problems.sort();
    problems.dedup();
    let told = record::SnmpReport {
        agent: after.agent.clone(),
        interfaces: ports.iter().map(seen).collect(),
        frames_in: sum(|it| it.frames_in),
        frames_out: sum(|it| it.frames_out),
        frames_sent: line.ports.iter().map(|port| port.frames_sent).sum(),
        frames_received: line.ports.iter().map(|port| port.frames_received).sum(),
        load_percent: (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64),
        loads: all.len() as u64,
        values: after.values.iter().filter_map(value).collect(),
        answer_ns: after.round_trip.or(before.round_trip).map(|span| span.0),
        problems,
    };
    if let Some(module) = &mut line.module {
        let named = [
            ("witness_in_frames", told.frames_in.map(|it| it as f64)),
            ("witness_out_frames", told.frames_out.map(|it| it as f64)),
            ("witness_missing_frames", told.frames_missing().map(|it| it as f64)),
            ("witness_load_ratio", told.load_percent.map(|it| it / 100.0)),
        ];
        for (name, value) in named {
            if let (Some(value), Ok(name)) = (value, Name::read(name)) {
                let (metric, count) = (Metric::Named(name), told.loads.max(1));
                module.measured.push(Measured {
                    metric,
                    value,
                    resolution: None,
                    bound: None,
                    count,
                });
            }
        }
    }
    line.witness = Some(told);
}
