//! Replies of a bridge: addresses, settings and counters.

use dataplane::bridge::Bridge;
use dataplane::mac_table::MacEntry;
use packet::frame::PortNo;
use packet::time::Nanos;
use serde_json::{Value, json};

use super::not_for;
use crate::budget::Budget;
use crate::config::{AGEING_S_MAX, BridgeConfig, Mac};
use crate::control::request::{self, Request, Resource, Settings};
use crate::control::task::{self, Task, TaskOutcome};

/// Processes a request that only a bridge supports, up to the budget.
pub(super) fn carry(
    task: Task,
    (bridge, ports): (&mut Bridge, &[PortNo]),
    now: Nanos,
    budget: &mut Budget<'_>,
) -> TaskOutcome {
    match task {
        Task::List(Resource::Macs, from) => {
            let table = &bridge.table;
            let end = table.places_end() as usize;
            let row = |place: usize| table.entry(place as u32, now).map(entry);
            task::list_places((Resource::Macs, from, end), budget, row)
        }
        Task::AddMacs(batch) => batch.carry(budget, Task::AddMacs, |mac| add(mac, bridge, ports)),
        other => TaskOutcome::Done(answer(other.into_request(), bridge, now)),
    }
}

fn answer(request: Request, bridge: &mut Bridge, now: Nanos) -> Result<Value, String> {
    match request {
        Request::Flush(Resource::Macs) => Ok(json!({ "flushed": bridge.table.flush(now) })),
        Request::Set(Settings { ageing_s }) if ageing_s > AGEING_S_MAX => {
            Err(format!("ageing_s: {ageing_s} is not between 0 and {AGEING_S_MAX}"))
        }
        Request::Set(Settings { ageing_s }) => {
            let config = BridgeConfig { ageing_s, ..BridgeConfig::default() };
            bridge.table.set_ageing(config.ageing());
            Ok(json!({ "ageing_s": ageing_s }))
        }
        other => Err(not_for("bridge", &other)),
    }
}

fn add(entry: &request::MacEntry, bridge: &mut Bridge, ports: &[PortNo]) -> Result<(), String> {
    let mac = entry.mac;
    if !ports.contains(&entry.port) {
        return Err(format!("mac {mac}: no port {}", entry.port));
    }
    if !mac.is_station() {
        return Err(format!("mac {mac}: not a unicast address"));
    }
    if entry.vlan > 0xfff {
        return Err(format!("mac {mac}: vlan {} is above 4095", entry.vlan));
    }
    let key = bridge.key(mac.0, entry.vlan);
    if !bridge.table.set_static(key, entry.port) {
        return Err(format!("address table full: at most {} entries", bridge.table.entries_max()));
    }
    Ok(())
}

fn entry(entry: MacEntry) -> Value {
    json!({
        "mac": Mac(entry.mac).to_string(),
        "vlan": entry.vid,
        "port": entry.port,
        "static": entry.age.is_none(),
        "age_ms": entry.age.map(|age| age.0 / 1_000_000),
    })
}

/// Returns the counters of a bridge except drops. The kernel forwarded this number of frames.
pub(super) fn counters(bridge: &Bridge, in_kernel: u64) -> Value {
    json!({
        "macs": bridge.table.len(),
        "macs_max": bridge.table.entries_max(),
        "forwarded": bridge.counters.forwarded + in_kernel,
        "flooded_group": bridge.counters.flooded_group,
        "flooded_unknown": bridge.counters.flooded_unknown,
        "learned": bridge.table.counters.learned,
        "moved": bridge.table.counters.moved,
        "aged": bridge.table.counters.aged,
        "not_learned_full": bridge.table.counters.full,
    })
}
