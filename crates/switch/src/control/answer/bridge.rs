//! A bridge's answers: what it knows, what is set, and how often it learned.

use dataplane::bridge::Bridge;
use dataplane::mac_table::MacEntry;
use packet::frame::PortNo;
use packet::time::Nanos;
use serde_json::{Value, json};

use super::not_for;
use crate::config::{AGEING_S_MAX, BridgeConfig, Mac};
use crate::control::request::{self, Request, Settings, What};

/// Answers a request that only a bridge can answer.
pub(super) fn answer(
    request: Request,
    bridge: &mut Bridge,
    ports: &[PortNo],
    now: Nanos,
) -> Result<Value, String> {
    match request {
        Request::Get(What::Macs) => Ok(Value::Array(bridge.table.iter(now).map(entry).collect())),
        Request::Flush(What::Macs) => Ok(json!({ "flushed": bridge.table.flush(None) })),
        Request::AddMac(mac) => add(&[mac], bridge, ports),
        Request::AddMacs(macs) => add(&macs, bridge, ports),
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

/// Adds all of them, or says at the first that cannot be added how many were.
fn add(macs: &[request::MacEntry], bridge: &mut Bridge, ports: &[PortNo]) -> Result<Value, String> {
    for (added, entry) in macs.iter().enumerate() {
        let mac = entry.mac;
        if !ports.contains(&entry.port) {
            return Err(format!("mac {mac}: there is no port {}; {added} were added", entry.port));
        }
        if !mac.is_station() {
            return Err(format!("mac {mac}: not one station's address; {added} were added"));
        }
        if entry.vlan > 0xfff {
            return Err(format!(
                "mac {mac}: vlan {} is above 4095; {added} were added",
                entry.vlan
            ));
        }
        let key = bridge.key(mac.0, entry.vlan);
        if !bridge.table.set_static(key, entry.port) {
            let max = bridge.table.entries_max();
            return Err(format!("the table of {max} addresses is full; {added} were added"));
        }
    }
    Ok(json!({ "added": macs.len() }))
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

/// What a bridge counts beside drops.
pub(super) fn counters(bridge: &Bridge) -> Value {
    json!({
        "macs": bridge.table.len(),
        "macs_max": bridge.table.entries_max(),
        "forwarded": bridge.counters.forwarded,
        "flooded_group": bridge.counters.flooded_group,
        "flooded_unknown": bridge.counters.flooded_unknown,
        "learned": bridge.table.counters.learned,
        "moved": bridge.table.counters.moved,
        "aged": bridge.table.counters.aged,
        "not_learned_full": bridge.table.counters.full,
    })
}
