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
use super::task::{Carried, Task};
use crate::agent::Agent;
use crate::budget::Budget;
use crate::datapath::Plane;
use crate::fast_path::{FastPath, KernelTraffic};
use crate::forward::{ForwardLoop, Lane, Turns};
use crate::hardware_model::Behaviour;

/// Processes one request about a data plane completely.
pub fn answer(
    request: Request,
    forward: &mut ForwardLoop<Plane>,
    now: Nanos,
) -> Result<Value, String> {
    let mut budget = Budget::of_steps(u64::MAX);
    let (mut task, mut all) = (Task::from(request), Vec::new());
    loop {
        task = match carry(task, forward, now, &mut budget) {
            Carried::Done(outcome) => return outcome,
            Carried::Rows(rows, rest) => {
                all.extend(rows);
                let Some(rest) = rest else { return Ok(Value::Array(all)) };
                rest
            }
            Carried::Later(rest) => rest,
        };
    }
}

/// Processes a request about a data plane up to the budget.
pub fn carry(
    task: Task,
    forward: &mut ForwardLoop<Plane>,
    now: Nanos,
    budget: &mut Budget<'_>,
) -> Carried {
    let task = match task {
        Task::Whole(request @ Request::Get(Resource::About | Resource::Counters)) => {
            return Carried::Done(answer_whole(request, forward, now));
        }
        task => task,
    };
    match (forward.forwarder.inner(), task) {
        (Plane::Bridge(bridge), task) => {
            let ports: Vec<PortNo> = forward.lanes.iter().map(|lane| lane.number).collect();
            let carried = bridge::carry(task, (bridge, &ports), now, budget);
            // Flushed entries must still be swept.
            forward.due = Some(now);
            carried
        }
        (Plane::ProGfe(element), Task::List(Resource::Macs, from)) => {
            element::list_macs(from, element, now, budget)
        }
        (Plane::Router(router), task) => {
            let carried = router::carry(task, router, &mut forward.outputs, budget);
            forward.due = Some(now);
            carried
        }
        (_, task) => Carried::Done(answer_whole(task.into_request(), forward, now)),
    }
}

fn answer_whole(
    request: Request,
    forward: &mut ForwardLoop<Plane>,
    now: Nanos,
) -> Result<Value, String> {
    match request {
        Request::Get(Resource::About) => return Ok(about(forward)),
        Request::Get(Resource::Counters) => return Ok(counters(forward, now)),
        _ => {}
    }
    match forward.forwarder.inner() {
        Plane::OpenFlow(pipeline) => switch::answer(request, pipeline, now),
        Plane::Bridge(_) | Plane::Router(_) => {
            unreachable!("bridges and routers process requests as tasks")
        }
        Plane::Tagger(plane) => tagger::answer(request, plane),
        Plane::ProGfe(element) => {
            let mtu = |number: PortNo| {
                let lane = forward.lanes.iter().find(|lane| lane.number == number);
                lane.map_or(0, mtu_of)
            };
            let answered = element::answer(request, element, &mtu, &mut forward.outputs, now);
            // The new program has other timers.
            forward.due = Some(now);
            answered
        }
        Plane::Modelled(_) => unreachable!("inner() returns what the model wraps"),
    }
}

/// Returns the MTU of a port.
pub fn mtu_of(lane: &Lane) -> u32 {
    lane.port.facts().frame_bytes_max.saturating_sub(ethernet::HEADER_BYTES) as u32
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

fn about(forward: &ForwardLoop<Plane>) -> Value {
    let ports: Vec<_> = forward.lanes.iter().map(about_port).collect();
    json!({
        "program": "planimeter",
        "version": env!("CARGO_PKG_VERSION"),
        "kind": forward.forwarder.kind(),
        "ports": ports,
    })
}

fn about_port(lane: &Lane) -> Value {
    let facts = lane.port.facts();
    json!({
        "port": lane.number,
        "name": facts.name,
        "kind": facts.kind,
        "mac": crate::config::Mac(facts.mac).to_string(),
        "frame_bytes_max": facts.frame_bytes_max,
        "up": lane.is_up(),
    })
}

fn counters(forward: &mut ForwardLoop<Plane>, now: Nanos) -> Value {
    let kernel = forward.fast_path.as_ref().map(FastPath::traffic).unwrap_or_default();
    let escaped = |lane: &mut Lane| match lane.port.xdp().is_some() {
        true => lane.port.counters().rx_frames,
        false => 0,
    };
    let escaped: u64 = forward.lanes.iter_mut().map(escaped).sum();
    let ports: Vec<_> = forward.lanes.iter_mut().map(|lane| port_counters(lane, &kernel)).collect();
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
        Plane::OpenFlow(pipeline) => all["tables"] = switch::tables(pipeline),
        Plane::Bridge(bridge) => all["bridge"] = bridge::counters(bridge, kernel.frames()),
        Plane::Router(router) => all["router"] = router::counters(router, kernel.frames()),
        Plane::Tagger(plane) => all["tagger"] = tagger::counters(plane),
        Plane::ProGfe(element) => element::counters(element, &mut all),
        Plane::Modelled(_) => unreachable!("inner() returns what the model wraps"),
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
    let door = agent.door.counters;
    json!({
        "connected": agent.controllers(),
        "connections_accepted": door.accepted,
        "connections_refused": door.refused,
        "accepts_failed": door.accepts_failed,
        "handshakes_displaced": door.displaced,
        "handshakes_timed_out": door.timed_out,
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

fn port_counters(lane: &mut Lane, kernel: &KernelTraffic) -> Value {
    let mut counters = lane.port.counters();
    let lost = lane.port.xdp().map_or(0, |port| port.redirects_lost());
    kernel.add_to(lane.number, lost, &mut counters);
    let mut drops: Map<String, Value> = Map::new();
    for &(reason, frames) in &counters.drops {
        drops.insert(reason.name().to_string(), json!(frames));
    }
    for (name, frames) in
        [("transmit_full", lane.drops.transmit_full), ("port_down", lane.drops.port_down)]
    {
        if frames > 0 {
            drops.insert(name.to_string(), json!(frames));
        }
    }
    json!({
        "port": lane.number,
        "rx_frames": counters.rx_frames,
        "rx_bytes": counters.rx_bytes,
        "tx_frames": counters.tx_frames,
        "tx_bytes": counters.tx_bytes,
        "waiting_frames": lane.waiting(),
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
