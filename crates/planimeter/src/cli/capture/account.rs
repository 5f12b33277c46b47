//! Summary of a capture as text and as JSON, and its rates during the capture.

use std::fmt::Write;

use packet::filter::Entry;
use packet::time::Nanos;
use packet::traffic::{Count, Protocol, SIZE_NAMES, Traffic};
use serde_json::{Map, Value, json};
use tester::capture::{CaptureSnapshot, PortFrozen};

use super::since;

/// Formats the whole summary.
pub fn words(frozen: &CaptureSnapshot, begun: Nanos, entries: &[Entry]) -> String {
    let seconds = since(frozen, begun);
    let mut text = format!(
        "{} frames captured in {seconds:.3} s, {} written ({} bytes of file)",
        frozen.filter.captured, frozen.frames_written, frozen.file_bytes
    );
    if frozen.frames_late > 0 {
        let _ = write!(text, ", {} not written: the file is full", frozen.frames_late);
    }
    text.push('\n');
    for (place, port) in frozen.ports.iter().enumerate() {
        text += &port_words(place + 1, port, seconds);
    }
    for ((place, entry), hits) in entries.iter().enumerate().zip(&frozen.filter.hits) {
        let _ = writeln!(text, "filter {} ({entry}): {hits} frames", place + 1);
    }
    if frozen.filter.unmatched > 0 {
        let _ = writeln!(text, "filter: {} frames matched no entry", frozen.filter.unmatched);
    }
    text
}

fn port_words(number: usize, port: &PortFrozen, seconds: f64) -> String {
    let Count { frames, bytes } = port.arrived.total;
    let (pps, bps) = rate(port.arrived.total, seconds);
    let mut text = format!(
        "port {number} ({}, {}): {frames} frames and {bytes} bytes received, {pps:.0} frames/s, \
         {bps:.0} bit/s; {} captured; time stamps from {}\n",
        port.name,
        port.kind,
        port.captured.total.frames,
        port.stamps.name()
    );
    if port.kernel_filter_counters.frames > 0 {
        let Count { frames, bytes } = port.kernel_filter_counters;
        let _ = writeln!(text, "  filtered at the interface: {frames} frames and {bytes} bytes");
    }
    let lost: Vec<String> = port
        .counters
        .drops
        .iter()
        .map(|(reason, frames)| format!("{} {frames}", reason.name()))
        .collect();
    if !lost.is_empty() {
        let _ = writeln!(text, "  lost: {}", lost.join(", "));
    }
    if frames == 0 {
        return text;
    }
    let protocols: Vec<String> = Protocol::ALL
        .iter()
        .map(|&protocol| (protocol, port.arrived.protocol(protocol)))
        .filter(|(_, count)| count.frames > 0)
        .map(|(protocol, count)| {
            format!("{} {} ({} bytes)", protocol.name(), count.frames, count.bytes)
        })
        .collect();
    let _ = writeln!(text, "  protocols: {}", protocols.join(", "));
    let types: Vec<String> = types(&port.arrived)
        .map(|(name, count)| format!("{name} {} ({} bytes)", count.frames, count.bytes))
        .collect();
    let _ = writeln!(text, "  Ethernet types: {}", types.join(", "));
    let sizes: Vec<String> = SIZE_NAMES
        .iter()
        .zip(port.arrived.sizes())
        .filter(|(_, frames)| **frames > 0)
        .map(|(name, frames)| format!("{name} {frames}"))
        .collect();
    let _ = writeln!(text, "  sizes with FCS: {}", sizes.join(", "));
    text
}

/// Returns EtherTypes by name, and a sum of those beyond the limit.
fn types(traffic: &Traffic) -> impl Iterator<Item = (String, Count)> {
    let named = |&(number, count): &(u16, Count)| match number {
        0 => ("none".to_string(), count),
        _ => (format!("0x{number:04x}"), count),
    };
    let further = traffic.further_types;
    let further = (further.frames > 0).then(|| ("further".to_string(), further));
    traffic.types().iter().map(named).chain(further)
}

/// Returns frames and bits per second, over bytes without frame check sequence.
fn rate(count: Count, seconds: f64) -> (f64, f64) {
    if seconds <= 0.0 {
        return (0.0, 0.0);
    }
    (count.frames as f64 / seconds, count.bytes as f64 * 8.0 / seconds)
}

/// Formats the frames received between two times, a line for each port.
pub fn rates(frozen: &CaptureSnapshot, before: &CaptureSnapshot, begun: Nanos) -> String {
    let seconds = frozen.at.since(before.at).as_secs_f64();
    let mut text = String::new();
    for (place, (port, then)) in frozen.ports.iter().zip(&before.ports).enumerate() {
        let (pps, bps) = rate(port.arrived.total.since(then.arrived.total), seconds);
        let (captured, _) = rate(port.captured.total.since(then.captured.total), seconds);
        let lost =
            port.counters.since(&then.counters).drops.iter().map(|(_, lost)| lost).sum::<u64>();
        let _ = writeln!(
            text,
            "{:.1} s: port {}: {pps:.0} frames/s, {bps:.0} bit/s, {captured:.0} captured/s, {lost} lost",
            since(frozen, begun),
            place + 1
        );
    }
    text
}

/// Returns the whole summary as JSON: counts in frames and bytes, times in nanoseconds.
pub fn json(frozen: &CaptureSnapshot, begun: Nanos, entries: &[Entry]) -> Value {
    let seconds = since(frozen, begun);
    let entries: Vec<Value> = entries
        .iter()
        .zip(&frozen.filter.hits)
        .map(|(entry, hits)| json!({ "entry": entry.to_string(), "frames": hits }))
        .collect();
    json!({
        "duration_ns": frozen.at.since(begun).0,
        "frames_captured": frozen.filter.captured,
        "frames_written": frozen.frames_written,
        "frames_not_written": frozen.frames_late,
        "file_bytes": frozen.file_bytes,
        "ports": frozen.ports.iter().map(|port| port_json(port, seconds)).collect::<Vec<Value>>(),
        "filter": {
            "entries": entries,
            "frames_dropped": frozen.filter.dropped,
            "frames_unmatched": frozen.filter.unmatched,
            "frames_before_loading": frozen.filter.unloaded,
        },
    })
}

fn port_json(port: &PortFrozen, seconds: f64) -> Value {
    let (pps, bps) = rate(port.arrived.total, seconds);
    let drops: Map<String, Value> = port
        .counters
        .drops
        .iter()
        .map(|(reason, frames)| (reason.name().to_string(), json!(frames)))
        .collect();
    json!({
        "name": port.name,
        "kind": port.kind,
        "stamps": port.stamps.name(),
        "frames_kept_back": port.kernel_filter_counters.frames,
        "bytes_kept_back": port.kernel_filter_counters.bytes,
        "arrived": traffic_json(&port.arrived),
        "captured": traffic_json(&port.captured),
        "rate_pps": pps,
        "rate_bps": bps,
        "lost": drops,
        "failure": port.failure,
    })
}

fn traffic_json(traffic: &Traffic) -> Value {
    let count = |count: Count| json!({ "frames": count.frames, "bytes": count.bytes });
    let protocols: Map<String, Value> = Protocol::ALL
        .iter()
        .map(|&protocol| (protocol.name().to_string(), count(traffic.protocol(protocol))))
        .collect();
    let sizes: Map<String, Value> = SIZE_NAMES
        .iter()
        .zip(traffic.sizes())
        .map(|(name, frames)| (name.to_string(), json!(frames)))
        .collect();
    let types: Map<String, Value> =
        types(traffic).map(|(name, total)| (name, count(total))).collect();
    json!({
        "frames": traffic.total.frames,
        "bytes": traffic.total.bytes,
        "protocols": protocols,
        "ethernet_types": types,
        "frames_by_size": sizes,
    })
}
