//! Conversion of a module's report to a line of the record, and back as far as a method needs it.
//!
//! The balance is that of every trial: frames sent = frames received + drops by place and reason +
//! unexplained. A frame that returns inside a message counts as received. Where hosts also sent
//! frames, lost frames may be theirs: the losses are recorded as counters and stay out of the
//! balance.

use openflow::version::MessageKind;
use packet::time::{Clock, Nanos};
use record::{Metric, ModuleRun, Name, PortCount, SERIES_POINTS_MAX, StreamCount};
use serde_json::{Map, json};
use tester::account::Account;
use tester::module::{
    ConnectionReport, Ended, LogEntry, MeasuredValue, Series, StageReport, StreamAccount, Value,
    WireReport,
};
use tester::rig::engine::name_of;
use tester::trial::{Classes, Histogram};

use super::{Snapshots, TrialFacts};

/// Returns the line for a module of this name.
pub fn trial(
    facts: &TrialFacts<'_>,
    name: &str,
    report: &StageReport,
    around: &Snapshots,
) -> record::Trial {
    let sum = |pick: fn(&StreamAccount) -> u64| report.streams.iter().map(pick).sum::<u64>();
    let (sent, expected) = (sum(|it| it.sent), sum(|it| it.expected));
    let unsent = sum(|it| it.unsent_late + it.unsent_refused);
    // Frames sent only by a packet-out do not count as sent by the tester.
    let received = sum(|it| (it.arrived + it.late + it.only_told).min(it.sent));
    let span = report.ended_at.since(report.started_at);
    let (drops, beside) = whose(report, [own_drops(report), super::drops_around(around)].concat());
    let super::FrameAccount { drops, copies, unexplained } = super::balance(sent, received, drops);
    let foreign = report.ports.iter().map(|port| port.foreign).sum();
    record::Trial {
        id: facts.id,
        experiment: facts.experiment.into(),
        target: facts.target.into(),
        repeat: facts.tag.repeat,
        role: facts.tag.role,
        point: super::point(facts.point),
        frame_bytes: None,
        rate_pps_intended: per_second(sent + unsent, span),
        frames_intended: sent + unsent,
        frames_offered: sent,
        bytes_offered: 0,
        frames_forwarded: expected,
        bytes_forwarded: 0,
        duration_ns_intended: span.0,
        duration_ns_warmup: 0,
        duration_ns_drain: 0,
        duration_ns_effective: span.0,
        duration_ns_receiving: None,
        classes: super::classes(&classes(&report.streams), foreign),
        account_frames_offered: sent,
        account_frames_received: received,
        drops,
        frames_unexplained: unexplained,
        streams: report.streams.iter().map(|stream| stream_count(stream, span)).collect(),
        ports: report.ports.iter().enumerate().map(port_count).collect(),
        latency: None,
        latency_scheduled: None,
        jitter: None,
        pacing_error: None,
        stalls: Some(report.stalls).filter(|stalls| *stalls != record::Stalls::default()),
        clock: super::clock(report.stamps),
        calibration: facts.calibration.clone(),
        seed: facts.seed,
        flags: flags(report),
        counters: super::counters(around).into_iter().chain(beside).chain(copies).collect(),
        cpu: super::cpu(around),
        work: super::work(around),
        orders: None,
        module: Some(run(name, report, span)),
        witness: None,
        memory: None,
        memory_bytes: around.after.memory_bytes,
        goal: None,
    }
}

/// Separates losses of the tester's frames from losses that become mere counters because hosts also
/// sent frames.
fn whose(
    report: &StageReport,
    drops: Vec<record::Drop>,
) -> (Vec<record::Drop>, Vec<record::CounterChange>) {
    if !report.has_sent_hosts {
        return (drops, Vec::new());
    }
    let counter = |drop: record::Drop| {
        let record::Drop { place, at, reason, frames } = drop;
        let name = format!("lost beside hosts.{}.{at}.{reason}", place.word());
        record::CounterChange { name, before: 0, after: frames }
    };
    (Vec::new(), drops.into_iter().map(counter).collect())
}

/// Returns the losses in the tester's ports.
fn own_drops(report: &StageReport) -> Vec<record::Drop> {
    let mut account = Account::default();
    for &(reason, frames) in report.ports.iter().flat_map(|port| &port.counters.drops) {
        let (place, reason) = name_of(reason);
        account.drop(place, reason, frames);
    }
    super::own_drops(&account)
}

fn per_second(count: u64, span: Nanos) -> f64 {
    if span.0 == 0 { 0.0 } else { count as f64 * 1e9 / span.0 as f64 }
}

fn classes(streams: &[StreamAccount]) -> Classes {
    let sum = |pick: fn(&StreamAccount) -> u64| streams.iter().map(pick).sum::<u64>();
    Classes {
        correct: sum(|it| it.expected),
        misrouted: sum(|it| it.elsewhere),
        duplicate: sum(|it| it.duplicate),
        late: sum(|it| it.late),
        ..Classes::default()
    }
}

fn stream_count(stream: &StreamAccount, span: Nanos) -> StreamCount {
    let intended = stream.sent + stream.unsent_late + stream.unsent_refused;
    StreamCount {
        stream: stream.id.into(),
        port_out: stream.from as u32,
        port_in: stream.to as u32,
        rate_pps_intended: per_second(intended, span),
        frames_intended: intended,
        frames_offered: stream.sent,
        frames_refused: 0,
        classes: super::classes(&classes(std::slice::from_ref(stream)), 0),
        frames_wrong_port: stream.elsewhere,
        missed_ns_first: None,
        missed_ns_last: None,
        gap_ns_max: 0,
    }
}

fn port_count((index, port): (usize, &tester::module::PortAccount)) -> PortCount {
    PortCount {
        port: index as u32,
        name: port.name.clone(),
        frames_sent: port.counters.tx_frames,
        frames_received: port.received,
    }
}

fn flags(report: &StageReport) -> Vec<record::Flag> {
    let unsent: u64 = report.streams.iter().map(|it| it.unsent_late).sum();
    let sent: u64 = report.streams.iter().map(|it| it.sent).sum();
    let found = [
        (unsent * 1000 > sent, record::Flag::TesterLimited),
        (report.ended != Ended::Completed || !report.limits.is_empty(), record::Flag::Irregular),
        (report.stalls.ns_longest >= tester::trial::STALL.0, record::Flag::Stall),
    ];
    found.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect()
}

fn run(name: &str, report: &StageReport, span: Nanos) -> ModuleRun {
    let sum = |pick: fn(&ConnectionReport) -> u64| report.connections.iter().map(pick).sum::<u64>();
    let all = |row: &[(MessageKind, u64)]| row.iter().map(|(_, count)| count).sum::<u64>();
    let limits = report
        .limits
        .iter()
        .map(|(limit, beyond)| format!("{limit} exceeded: {beyond} more are not stored"));
    let unnamed = report.measured.iter().filter_map(|measured| {
        let problem = Name::read(&measured.name).err()?;
        Some(format!("{problem}: the value {} is not stored elsewhere", measured.value))
    });
    let said = report.measured.iter().filter_map(|measured| {
        measured.note.as_ref().map(|note| format!("{}: {note}", measured.name))
    });
    ModuleRun {
        module: name.into(),
        ended: ended(&report.ended),
        duration_ns: span.0,
        measured: report.measured.iter().filter_map(kept).collect(),
        series: report.series.iter().map(series).collect(),
        messages_sent: report.connections.iter().map(|it| all(&it.sent)).sum(),
        messages_received: report.connections.iter().map(|it| all(&it.received)).sum(),
        errors_received: report
            .connections
            .iter()
            .flat_map(|it| &it.received)
            .filter(|(kind, _)| *kind == MessageKind::Error)
            .map(|(_, count)| count)
            .sum::<u64>()
            + sum(|it| it.refused),
        events: report.costs.events,
        reaction_ns: report.costs.reaction_ns_total,
        reaction_ns_longest: report.costs.reaction_ns_longest,
        turn_ns_p50: report.costs.turn_ns_p50,
        turn_ns_p99: report.costs.turn_ns_p99,
        notes: limits.chain(unnamed).chain(said).collect(),
        wire: wire(report),
        log: None,
    }
}

/// Summarizes the captures of all connections on the wire.
fn wire(report: &StageReport) -> Option<record::Wire> {
    let seen: Vec<_> = report.connections.iter().filter_map(|it| it.wire.as_ref()).collect();
    let stamps = seen.iter().find_map(|wire| wire.stamps);
    (!seen.is_empty()).then_some(())?;
    let all = |of: fn(&WireReport) -> &Histogram| {
        let mut sum = Histogram::new();
        seen.iter().for_each(|wire| sum.merge(of(wire)));
        super::distribution(&sum)
    };
    let sum = |of: fn(&WireReport) -> u64| seen.iter().map(|wire| of(wire)).sum();
    Some(record::Wire {
        stamps: stamps.map(super::clock),
        received: all(|wire| &wire.received),
        sent: all(|wire| &wire.sent),
        unknown: sum(|wire| wire.unknown),
        retransmitted: sum(|wire| wire.remarks.retransmitted),
        gaps: sum(|wire| wire.remarks.gaps),
        bytes_unseen: sum(|wire| wire.remarks.bytes_unseen),
        why: None,
        file: None,
    })
}

/// Explains why nothing was captured on the wire although it was requested.
pub fn unseen(report: &StageReport) -> record::Wire {
    let peer = report.connections.first().map_or("", |it| it.peer.as_str());
    record::Wire { why: Some(hidden(peer).into()), ..record::Wire::default() }
}

/// Explains why traffic with this peer cannot be captured.
fn hidden(peer: &str) -> &'static str {
    match peer.split_once(':').map(|(kind, _)| kind) {
        Some("ssl") => "TLS hides the messages",
        Some("unix") => "a Unix socket does not use an interface",
        _ if peer.is_empty() => "no connection was made",
        _ => "a channel in memory does not use an interface",
    }
}

fn ended(ended: &Ended) -> record::Ended {
    match ended {
        Ended::Completed => record::Ended::Completed,
        Ended::Limit(name) => record::Ended::Limit((*name).into()),
        Ended::NotReady { .. } | Ended::Lost { .. } => record::Ended::Lost(ended.to_string()),
        other => record::Ended::Failed(other.to_string()),
    }
}

fn kept(measured: &MeasuredValue) -> Option<record::Measured> {
    Some(record::Measured {
        metric: Metric::Named(Name::read(&measured.name).ok()?),
        value: measured.value,
        resolution: measured.half_width,
        bound: measured.bound,
        count: measured.count,
    })
}

/// Converts a series, evenly thinned to the record's limit.
fn series(series: &Series) -> record::Series {
    let step = series.points.len().div_ceil(SERIES_POINTS_MAX).max(1);
    record::Series {
        name: series.name.to_string(),
        over: series.x_name.to_string(),
        points: series.points.iter().step_by(step).map(|&(x, y)| [x, y]).collect(),
    }
}

/// Formats a line of a module's log.
pub fn line(entry: &LogEntry) -> String {
    let mut values = Map::new();
    for (name, value) in &entry.values {
        let value = match value {
            Value::Count(count) => json!(count),
            Value::Number(number) => json!(number),
            Value::Nanos(span) => json!(span.0),
            Value::Is(is) => json!(is),
            Value::Text(text) => json!(text),
        };
        values.insert(name.to_string(), value);
    }
    json!({ "at_ns": entry.at.0, "name": entry.name, "values": values }).to_string()
}

/// Restores the parts of a report that a method uses, from a module that an earlier attempt ran.
pub fn restored(stored: &record::Trial) -> StageReport {
    let module = stored.module.as_ref();
    let measured = |found: &record::Measured| MeasuredValue {
        name: found.metric.name().into(),
        unit: found.metric.unit().into(),
        value: found.value,
        half_width: found.resolution,
        count: found.count,
        bound: found.bound,
        note: None,
    };
    let is_irregular = stored.flags.contains(&record::Flag::Irregular);
    StageReport {
        started_at: Nanos::ZERO,
        ended_at: Nanos(stored.duration_ns_effective),
        ended: if is_irregular { Ended::Limit("stored") } else { Ended::Completed },
        is_simulated: false,
        has_sent_hosts: false,
        streams: Vec::new(),
        ports: Vec::new(),
        connections: Vec::new(),
        agents: Vec::new(),
        log: Vec::new(),
        measured: module.iter().flat_map(|module| &module.measured).map(measured).collect(),
        series: Vec::new(),
        limits: Vec::new(),
        costs: Default::default(),
        capture: None,
        stalls: Default::default(),
        flags: Vec::new(),
        stamps: Clock::UserSpace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_hidden_messages_is_stated() {
        assert!(hidden("ssl:192.0.2.1:6653").contains("TLS"));
        assert!(hidden("unix:/run/x").contains("Unix"));
        assert!(hidden("openflow.1").contains("memory"));
        assert!(hidden("").contains("no connection"));
    }
}
