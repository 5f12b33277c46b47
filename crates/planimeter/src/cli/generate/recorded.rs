//! Summary of sent and received frames, in the record's types.

use packet::traffic::{Count, Protocol, Traffic};
use record::{
    Flag, ProtocolCount, ReceivedReplay, SCHEMA, SendAccuracy, Sent, SentPort, SentReplay,
    SentStream,
};
use tester::trial::ReplayReport;
use tester::trial::{Pacing, StreamReport, TrialReport};

use runner::recording;

/// Formats the summary as JSON, in one line.
pub fn json(report: &TrialReport, interrupted: bool) -> String {
    let account = &report.account;
    let mut flags = recording::flags(report);
    if interrupted {
        flags.push(Flag::Interrupted);
    }
    let sent = Sent {
        schema: SCHEMA,
        interrupted,
        duration_ns: report.duration.0,
        streams: report.streams.iter().map(stream).collect(),
        replays: report.replays.iter().map(replay).collect(),
        ports: ports(report),
        account_frames_offered: account.offered,
        account_frames_received: account.received,
        drops: recording::own_drops(&report.account),
        frames_unexplained: account.unexplained(),
        clock: recording::clock(report.stamps),
        flags,
    };
    serde_json::to_string(&sent).expect("the record's types are JSON")
}

fn stream(stream: &StreamReport) -> SentStream {
    SentStream {
        stream: stream.id.into(),
        port_out: number(stream.from),
        port_in: number(stream.to),
        rate_pps_intended: stream.load.pps_intended(),
        frames_intended: stream.load.intended,
        frames_offered: stream.load.offered,
        frames_unsent_late: stream.unsent_late,
        frames_unsent_refused: stream.unsent_refused,
        classes: recording::classes(&stream.classes, 0),
        pacing: kept(&stream.pacing),
        latency: recording::distribution(&stream.latency.from_sent),
        jitter: recording::jitter(stream),
    }
}

fn replay(replay: &ReplayReport) -> SentReplay {
    let counts = &replay.counts;
    let back = replay.back.as_ref().map(|back| ReceivedReplay {
        port_in: number(back.to),
        classes: recording::classes(&back.classes, 0),
        latency: recording::distribution(&back.latency.from_sent),
    });
    SentReplay {
        replay: replay.id.into(),
        port_out: number(replay.from),
        frames: counts.frames,
        bytes: counts.bytes,
        frames_signed: counts.signed,
        passes: counts.passes,
        frames_refused_long: counts.refused_long,
        frames_refused_short: counts.refused_short,
        frames_refused_cut: counts.refused_cut,
        frames_padded: counts.padded,
        frames_filled: counts.filled,
        starved: counts.starved,
        is_complete: replay.is_complete,
        pacing: kept(&replay.pacing),
        back,
        failure: replay.failure.as_ref().map(ToString::to_string),
    }
}

fn ports(report: &TrialReport) -> Vec<SentPort> {
    let port = |(place, port): (usize, &tester::trial::PortReport)| SentPort {
        port: number(place),
        name: port.name.clone(),
        frames_sent: port.counters.tx_frames,
        bytes_sent: port.counters.tx_bytes,
        frames_received: port.counters.rx_frames,
        bytes_received: port.counters.rx_bytes,
        protocols: protocols(&port.traffic),
        frames_foreign: port.foreign,
        frames_broken: port.broken,
    };
    report.ports.iter().enumerate().map(port).collect()
}

fn protocols(traffic: &Traffic) -> Vec<ProtocolCount> {
    let counts = Protocol::ALL.iter().map(|&protocol| (protocol, traffic.protocol(protocol)));
    let count = |(protocol, Count { frames, bytes }): (Protocol, Count)| ProtocolCount {
        protocol: protocol.name().into(),
        frames,
        bytes,
    };
    counts.filter(|(_, count)| count.frames > 0).map(count).collect()
}

fn kept(pacing: &Pacing) -> SendAccuracy {
    SendAccuracy {
        lateness: recording::distribution(&pacing.lateness),
        gap: recording::distribution(&pacing.gaps),
        gap_buckets: pacing.gaps.buckets().collect(),
        gap_error: recording::distribution(&pacing.gap_error),
    }
}

/// Ports are numbered from 1, as in a stream file.
fn number(place: usize) -> u32 {
    place as u32 + 1
}
