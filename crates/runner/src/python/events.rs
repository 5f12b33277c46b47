//! Conversion of events to lines: JSON arrays that begin with the event's name and time.
//!
//! Invariant: a frame's line is written without an intermediate JSON value, because there may be
//! many per millisecond.

use netio::port::PortCounters;
use packet::time::Nanos;
use serde::Serialize;
use serde_json::{Value, json};
use tester::module::{ConnectionFacts, Event, EventKind, Probe, SnmpReply, TestSetup};

use super::commands::Names;
use super::message;

/// Stream, number, port, send time, and flags: delay known (1), intact (2).
type ProbeRow = (u16, u64, u64, u64, u8);

/// Writes an event.
pub fn write(out: &mut Vec<u8>, event: &Event<'_>, names: &mut Names, frame_data: bool) {
    let at = event.at.0;
    match event.what {
        EventKind::Frame(arrival) => {
            let data = frame_data.then(|| message::hex(arrival.bytes));
            let (is_known, probe) = (arrival.is_timestamp_valid, arrival.probe.map(row));
            put(out, &("frame", at, arrival.port, is_known, probe, data));
        }
        EventKind::Message { connection, xid, message, bytes, probe, is_timestamp_valid, wire } => {
            let (said, place) = names.answered(xid).unzip();
            let (kind, body) = (message.kind().to_string(), message::told(message));
            let probe = probe.map(row);
            put(
                out,
                &(
                    "message",
                    at,
                    connection,
                    kind,
                    xid,
                    bytes,
                    is_timestamp_valid,
                    said,
                    place,
                    probe,
                    body,
                    wire.map(|stamp| stamp.at.0),
                ),
            );
        }
        EventKind::Sent { connection, said, first, last, wire } => {
            let wire = wire.map(|stamp| stamp.at.0);
            put(out, &("sent", at, connection, names.said(said), first.0, last.0, wire));
        }
        EventKind::SendFailed { connection, said, why } => {
            put(out, &("send_failed", at, connection, names.said(said), why.to_string()));
        }
        EventKind::Timer(timer) => {
            put(out, &("timer", at, names.timed(timer), timer.due().0));
        }
        EventKind::Start(facts) => put(out, &("start", at, facts_told(facts))),
        EventKind::StreamEnded(stream) => put(out, &("stream_ended", at, stream)),
        EventKind::Counters(counters) => {
            let rows: Vec<[u64; 3]> = counters.iter().map(counted).collect();
            put(out, &("counters", at, rows));
        }
        EventKind::Connected { connection, facts } => {
            put(out, &("connected", at, connection, connection_told(facts)))
        }
        EventKind::DecodeFailed { connection, why } => {
            put(out, &("decode_failed", at, connection, why.to_string()));
        }
        EventKind::Disconnected { connection, why } => {
            put(out, &("disconnected", at, connection, why))
        }
        EventKind::Snmp { agent, asked, answer } => {
            let sent = answer.sent.map(|at| at.0);
            let (values, why) = answered(answer);
            put(out, &("snmp", at, agent, names.asked(asked), sent, answer.rounds, values, why));
        }
        // Scripts have no command for host tasks.
        EventKind::HostTask(_) => {}
        EventKind::LimitReached(name) => put(out, &("limit", at, name)),
    }
}

fn put(out: &mut Vec<u8>, row: &impl Serialize) {
    serde_json::to_writer(&mut *out, row).expect("rows have text for keys, and memory takes all");
    out.push(b'\n');
}

fn row(probe: Probe) -> ProbeRow {
    let Nanos(sent_at) = probe.sent_at;
    let flags = u8::from(probe.is_delay_known) | u8::from(probe.is_intact) << 1;
    (probe.stream, probe.number, probe.place, sent_at, flags)
}

fn counted(counters: &PortCounters) -> [u64; 3] {
    let lost = counters.drops.iter().map(|(_, frames)| frames).sum();
    [counters.rx_frames, counters.tx_frames, lost]
}

/// Returns names and values, or the reason for their absence. A counter is a number, any other
/// value is text or null.
fn answered(answer: &SnmpReply) -> (Vec<(String, Value)>, Option<String>) {
    let value = |value: &snmp::Value| match (value.count(), value) {
        _ if value.is_absent() => Value::Null,
        (Some(count), _) => count.into(),
        (None, snmp::Value::Integer(number)) => (*number).into(),
        (None, other) => other.to_string().into(),
    };
    match &answer.bindings {
        Ok(all) => (all.iter().map(|it| (it.name.to_string(), value(&it.value))).collect(), None),
        Err(why) => (Vec::new(), Some(why.to_string())),
    }
}

fn facts_told(facts: &TestSetup) -> Value {
    let port = |port: &tester::module::TesterPort| {
        json!({
            "name": port.facts.name,
            "switch": port.joined.map(|joined| joined.switch),
            "switch_port": port.joined.map(|joined| joined.port),
        })
    };
    json!({
        "ports": facts.ports.iter().map(port).collect::<Vec<_>>(),
        "connections": facts.connections.iter().map(connection_told).collect::<Vec<_>>(),
        "agents": facts.agents,
        "is_simulated": facts.is_simulated,
    })
}

fn connection_told(facts: &ConnectionFacts) -> Value {
    let features = facts.features.as_ref();
    json!({
        "peer": facts.peer,
        "version": facts.version.map(|version| version.to_string()),
        "datapath_id": features.map(|it| it.datapath_id),
        "tables": features.map(|it| it.tables),
        "buffers": features.map(|it| it.buffers),
    })
}
