//! Processing of requests: reads and changes the data plane.
//!
//! Counters are cumulative since the start, with their units in their names. Bytes are without
//! frame check sequence. A request that the kind of data plane does not support returns an error.

mod bridge;
pub(crate) mod element;
pub mod observed;
mod router;
mod switch;
mod tagger;

use channel::admission::AdmissionCounters;
use dataplane::counter::DropCounters;
use packet::frame::PortNo;
use packet::header::ethernet;
use packet::time::Nanos;
use serde_json::{Map, Value, json};

use super::request::{Request, Resource};
use super::task::{Task, TaskOutcome};
use crate::agent::Agent;
use crate::budget::Budget;
use crate::datapath::DataPlane;
use crate::fast_path::{FastPath, KernelTraffic};
use crate::forward::{ForwardLoop, ForwardPort, Turns};
use crate::hardware_model::Behaviour;

/// Processes one request about a data plane completely.
pub fn answer(
    request: Request,
    forward: &mut ForwardLoop<DataPlane>,
    now: Nanos,
) -> Result<Value, String> {
    let mut budget = Budget::of_steps(u64::MAX);
    let (mut task, mut all) = (Task::from(request), Vec::new());
    loop {
        task = match carry(task, forward, now, &mut budget) {
            TaskOutcome::Done(outcome) => return outcome,
            TaskOutcome::Rows(rows, rest) => {
                all.extend(rows);
                let Some(rest) = rest else { return Ok(Value::Array(all)) };
                rest
            }
            TaskOutcome::Later(rest) => rest,
        };
    }
}

/// Processes a request about a data plane up to the budget.
pub fn carry(
    task: Task,
    forward: &mut ForwardLoop<DataPlane>,
    now: Nanos,
    budget: &mut Budget<'_>,
) -> TaskOutcome {
    let task = match task {
        Task::Whole(request @ Request::Get(Resource::About | Resource::Counters)) => {
            return TaskOutcome::Done(answer_whole(request, forward, now));
        }
        task => task,
    };
    match (forward.forwarder.inner(), task) {
        (DataPlane::Bridge(bridge), task) => {
            let ports: Vec<PortNo> =
                forward.forward_ports.iter().map(|forward_port| forward_port.number).collect();
            let carried = bridge::carry(task, (bridge, &ports), now, budget);
            // Flushed entries must still be swept.
            forward.due = Some(now);
            carried
        }
        (DataPlane::ProGfe(element), Task::List(Resource::Macs, from)) => {
            element::list_macs(from, element, now, budget)
        }
        (DataPlane::Router(router), task) => {
            let carried = router::carry(task, router, &mut forward.outputs, budget);
            forward.due = Some(now);
            carried
        }
        (_, task) => TaskOutcome::Done(answer_whole(task.into_request(), forward, now)),
    }
}

fn answer_whole(
    request: Request,
    forward: &mut ForwardLoop<DataPlane>,
    now: Nanos,
) -> Result<Value, String> {
    match request {
        Request::Get(Resource::About) => return Ok(about(forward)),
        Request::Get(Resource::Counters) => return Ok(counters(forward, now)),
        _ => {}
    }
    match forward.forwarder.inner() {
        DataPlane::OpenFlow(pipeline) => switch::answer(request, pipeline, now),
        DataPlane::Bridge(_) | DataPlane::Router(_) => {
            unreachable!("bridges and routers process requests as tasks")
        }
        DataPlane::Tagger(plane) => tagger::answer(request, plane),
        DataPlane::ProGfe(element) => {
            let mtu = |number: PortNo| {
                let forward_port =
                    forward.forward_ports.iter().find(|forward_port| forward_port.number == number);
                forward_port.map_or(0, mtu_of)
            };
            let answered = element::answer(request, element, &mtu, &mut forward.outputs, now);
            // The new program has other timers.
            forward.due = Some(now);
            answered
        }
        DataPlane::Modelled(_) => unreachable!("inner() returns what the model wraps"),
    }
}

/// Returns the MTU of a port.
pub fn mtu_of(forward_port: &ForwardPort) -> u32 {
    forward_port.port.facts().frame_bytes_max.saturating_sub(ethernet::HEADER_BYTES) as u32
}

fn not_for(kind: &str, request: &Request) -> String {
    format!("a {kind} cannot {}", request.name())
}

fn write_turns(into: &mut Value, turns: &Turns) {
    into["turns_busy"] = turns.busy.into();
    into["turns_idle"] = turns.idle.into();
    into["cycles_busy"] = turns.cycles_busy.into();
    into["cycles_idle"] = turns.cycles_idle.into();
}

fn about(forward: &ForwardLoop<DataPlane>) -> Value {
    let ports: Vec<_> = forward.forward_ports.iter().map(about_port).collect();
    json!({
        "program": "planimeter",
        "version": env!("CARGO_PKG_VERSION"),
        "kind": forward.forwarder.kind(),
        "ports": ports,
    })
}

fn about_port(forward_port: &ForwardPort) -> Value {
    let facts = forward_port.port.facts();
    json!({
        "port": forward_port.number,
        "name": facts.name,
        "kind": facts.kind,
        "mac": crate::config::Mac(facts.mac).to_string(),
        "frame_bytes_max": facts.frame_bytes_max,
        "up": forward_port.is_up(),
    })
}

fn counters(forward: &mut ForwardLoop<DataPlane>, now: Nanos) -> Value {
    let kernel = forward.fast_path.as_ref().map(FastPath::traffic).unwrap_or_default();
    let escaped = |forward_port: &mut ForwardPort| match forward_port.port.xdp().is_some() {
        true => forward_port.port.counters().rx_frames,
        false => 0,
    };
    let escaped: u64 = forward.forward_ports.iter_mut().map(escaped).sum();
    let ports: Vec<_> = forward
        .forward_ports
        .iter_mut()
        .map(|forward_port| port_counters(forward_port, &kernel))
        .collect();
    let mut all = json!({
        "at_ns": now.0,
        "ports": ports,
        "drops": drops(&forward.forwarder.drops()),
    });
    write_turns(&mut all, &forward.turns_of_frames());
    if !forward.turns_apart.is_empty() {
        let threads = forward.turns_apart.iter().map(|turns| {
            let mut thread = json!({});
            write_turns(&mut thread, turns);
            thread
        });
        all["threads"] = threads.collect();
    }
    if let Some(behaviour) = forward.forwarder.behaviour() {
        write_model(&mut all, behaviour);
    }
    match forward.forwarder.inner() {
        DataPlane::OpenFlow(pipeline) => all["tables"] = switch::tables(pipeline),
        DataPlane::Bridge(bridge) => all["bridge"] = bridge::counters(bridge, kernel.frames()),
        DataPlane::Router(router) => all["router"] = router::counters(router, kernel.frames()),
        DataPlane::Tagger(plane) => all["tagger"] = tagger::counters(plane),
        DataPlane::ProGfe(element) => element::counters(element, &mut all),
        DataPlane::Modelled(_) => unreachable!("inner() returns what the model wraps"),
    }
    if let Some(fast_path) = &forward.fast_path {
        all["fast_path"] = fast_path.report(&kernel, escaped);
    }
    all
}

/// Adds the counters of a hardware model: queue lengths, and frames without room, which count as
/// drops.
fn write_model(all: &mut Value, behaviour: &Behaviour) {
    let mut counts = json!({ "name": behaviour.model().name });
    for (name, count) in behaviour.counters() {
        match name.strip_prefix("drops.") {
            Some(reason) if count > 0 => all["drops"][format!("model_{reason}")] = count.into(),
            Some(_) => {}
            None => counts[name] = count.into(),
        }
    }
    all["model"] = counts;
}

/// Returns an agent's counters.
pub fn controllers(agent: &Agent) -> Value {
    let admission = agent.admission.counters;
    json!({
        "connected": agent.controllers(),
        "connections_accepted": admission.accepted,
        "connections_refused": admission.refused,
        "accepts_failed": admission.accepts_failed,
        "handshakes_displaced": admission.displaced,
        "handshakes_timed_out": admission.timed_out,
        "frames": agent.counters.frames,
        "frames_unheard": agent.counters.frames_unheard,
        "frames_not_kept": agent.counters.frames_not_kept,
        "frames_over_rate": agent.counters.frames_over_rate,
        "frames_lost": agent.counters.frames_lost,
        "messages_refused": agent.counters.refused,
        "messages_failed": agent.counters.failed,
        "messages": agent.counters.messages,
        "turns_cut": agent.counters.turns_cut,
        "bundles_expired": agent.counters.bundles_expired,
        "news_lost": agent.counters.news_lost,
    })
}

/// Returns the connection counters of a listener.
pub fn connections(counters: AdmissionCounters) -> Value {
    json!({
        "connections_accepted": counters.admitted,
        "connections_refused": counters.refused,
        "connections_displaced": counters.displaced,
    })
}

fn port_counters(forward_port: &mut ForwardPort, kernel: &KernelTraffic) -> Value {
    let mut counters = forward_port.port.counters();
    let lost = forward_port.port.xdp().map_or(0, |port| port.redirects_lost());
    kernel.add_to(forward_port.number, lost, &mut counters);
    let mut drops: Map<String, Value> = Map::new();
    for &(reason, frames) in &counters.drops {
        drops.insert(reason.name().to_string(), json!(frames));
    }
    for (name, frames) in [
        ("transmit_full", forward_port.drops.transmit_full),
        ("port_down", forward_port.drops.port_down),
    ] {
        if frames > 0 {
            drops.insert(name.to_string(), json!(frames));
        }
    }
    json!({
        "port": forward_port.number,
        "rx_frames": counters.rx_frames,
        "rx_bytes": counters.rx_bytes,
        "tx_frames": counters.tx_frames,
        "tx_bytes": counters.tx_bytes,
        "waiting_frames": forward_port.waiting(),
        "peer_faults": counters.peer_faults,
        "drops": drops,
    })
}

fn drops(counters: &DropCounters) -> Value {
    let occurred = counters.occurred().map(|(why, frames)| (why.name().to_string(), json!(frames)));
    Value::Object(occurred.collect())
}

#[cfg(test)]
mod tests;
