//! Conversion of a trial's report and the target's counters to a line of the record.
//!
//! The counters span the whole trial, uncounted warm-up included, because a target counts those
//! frames too: offered = received + drops by place and reason + unexplained.

pub mod module;

use packet::time::{Clock, Nanos};
use record::{
    ClockSource, ControllerCommand, ControllerLoad, CounterChange, CpuUse, Differences,
    Distribution, Drop, DropPlace, FrameClasses, Jitter, Memory, PollingWork, PortCount, Stalls,
    StreamCount, Trial,
};
use tester::account::{Account, DropLocation};
use tester::controller::play::ScriptReport;
use tester::procedure::Point;
use tester::trial::{Classes, Flag, Histogram, StreamReport, TrialReport};

use experiments::Tag;
use targets::{CacheFill, Snapshot, is_packet_in};

/// Properties of a trial that do not depend on its result.
pub struct TrialFacts<'a> {
    /// Its number in the run.
    pub id: u64,
    /// The experiment's id.
    pub experiment: &'a str,
    /// The target's name.
    pub target: &'a str,
    /// Its point.
    pub point: &'a Point,
    /// Its purpose.
    pub tag: Tag,
    /// The search goal that chose it.
    pub goal: Option<&'static str>,
    /// The controller's activity during the trial.
    pub command: Option<ControllerCommand>,
    /// Seed of its random fields.
    pub seed: u64,
    /// The calibration of its link.
    pub calibration: Option<String>,
}

/// Counters before and after a trial.
pub struct Snapshots {
    /// Before the first warm-up frame.
    pub before: Snapshot,
    /// After the drain.
    pub after: Snapshot,
    /// Time between the two, in nanoseconds.
    pub span_ns: u64,
    /// Memory of the new target, and the number of flows learned since, where its memory is
    /// measured.
    pub fresh: Option<(u64, u64)>,
}

/// Returns the line for this trial.
pub fn trial(facts: &TrialFacts<'_>, report: &TrialReport, around: &Snapshots) -> Trial {
    let (sent, received) = (report.account.offered, report.account.received);
    let FrameAccount { drops, copies, unexplained } =
        balance(sent, received, drops(report, around));
    let bytes = |count: fn(&StreamReport) -> u64| -> u64 {
        let bytes = |it: &StreamReport| (count(it) as f64 * it.frame_bytes_mean).round() as u64;
        report.streams.iter().map(bytes).sum()
    };
    let both = |it: &StreamReport| [it.frame_bytes as f64, it.frame_bytes_mean];
    let mut sizes: Vec<f64> = report.streams.iter().flat_map(both).collect();
    sizes.dedup();
    Trial {
        id: facts.id,
        experiment: facts.experiment.into(),
        target: facts.target.into(),
        repeat: facts.tag.repeat,
        role: facts.tag.role,
        point: point(facts.point),
        frame_bytes: (sizes.len() == 1).then(|| sizes[0] as u32),
        rate_pps_intended: report.total.pps_intended(),
        frames_intended: report.total.intended,
        frames_offered: report.total.offered,
        bytes_offered: bytes(|stream| stream.load.offered),
        frames_forwarded: report.total.forwarded,
        bytes_forwarded: bytes(|stream| stream.load.forwarded),
        duration_ns_intended: report.duration.0,
        duration_ns_warmup: report.warmup.0,
        duration_ns_drain: report.drain.0,
        duration_ns_effective: report.total.duration_offered.0,
        duration_ns_receiving: (report.total.forwarded > 0)
            .then_some(report.total.duration_forwarded.0),
        classes: classes(&report.classes, report.ports.iter().map(|port| port.foreign).sum()),
        account_frames_offered: sent,
        account_frames_received: received,
        drops,
        frames_unexplained: unexplained,
        streams: report.streams.iter().map(stream).collect(),
        ports: ports(report),
        latency: distribution(&report.latency.from_sent),
        latency_scheduled: distribution(&report.latency.from_scheduled),
        jitter: report.streams.first().and_then(jitter),
        pacing_error: distribution(&report.pacing.gap_error),
        stalls: Some(report.stalls).filter(|stalls| *stalls != Stalls::default()),
        clock: clock(report.stamps),
        calibration: facts.calibration.clone(),
        seed: facts.seed,
        flags: flags(report),
        counters: counters(around).into_iter().chain(copies).collect(),
        cpu: cpu(around),
        work: work(around),
        orders: report.played.as_ref().zip(facts.command).map(|(played, it)| orders(played, it)),
        module: None,
        witness: None,
        memory: memory(around),
        memory_bytes: around.after.memory_bytes,
        goal: facts.goal.map(Into::into),
    }
}

fn orders(played: &ScriptReport, command: ControllerCommand) -> ControllerLoad {
    ControllerLoad {
        command,
        flow_mods: played.flow_mods,
        answers: played.answers,
        rows: played.rows,
        bytes: played.bytes,
        duration_ns: played.duration.0,
        first_byte_ns: played.first_byte.map(|after| after.0),
        errors: played.errors,
        error: played.error.map(|error| error.to_string()),
    }
}

/// Restores the replayed commands from a line.
pub fn played(orders: &ControllerLoad) -> ScriptReport {
    ScriptReport {
        flow_mods: orders.flow_mods,
        answers: orders.answers,
        rows: orders.rows,
        bytes: orders.bytes,
        first_byte: orders.first_byte_ns.map(Nanos),
        duration: Nanos(orders.duration_ns),
        errors: orders.errors,
        error: None,
    }
}

fn memory(around: &Snapshots) -> Option<Memory> {
    let (bytes_before, flows) = around.fresh?;
    Some(Memory { bytes_before, bytes_after: around.after.memory_bytes?, flows })
}

/// Converts a point. Its first value is on the experiment's axis; the second selects the curve.
pub fn point(point: &Point) -> record::Point {
    let Some(first) = point.0.first() else { return record::Point::new("", 0.0) };
    let found = record::Point::new(first.axis, first.value);
    match point.0.get(1) {
        Some(second) => found.within(second.axis, second.value),
        None => found,
    }
}

/// Converts the clock that took the timestamps to the record's term.
pub fn clock(clock: Clock) -> ClockSource {
    match clock {
        Clock::UserSpace => ClockSource::UserSpace,
        Clock::Kernel => ClockSource::Kernel,
        Clock::XdpProgram => ClockSource::XdpProgram,
        Clock::Hardware => ClockSource::Hardware,
        Clock::Virtual => ClockSource::Virtual,
        Clock::File => ClockSource::File,
    }
}

/// Summarizes a histogram; `None` if it is empty.
pub fn distribution(histogram: &Histogram) -> Option<Distribution> {
    histogram.distribution(None)
}

/// Converts the frame classes of a stream to the record's terms.
pub fn classes(classes: &Classes, foreign: u64) -> FrameClasses {
    FrameClasses {
        correct: classes.correct,
        misrouted: classes.misrouted,
        flooded: classes.flooded,
        duplicate: classes.duplicate,
        reordered: classes.reordered,
        corrupt: classes.corrupt,
        foreign,
    }
}

/// Restores frame classes from a line.
pub fn restored_classes(classes: &FrameClasses) -> Classes {
    Classes {
        correct: classes.correct,
        misrouted: classes.misrouted,
        flooded: classes.flooded,
        duplicate: classes.duplicate,
        reordered: classes.reordered,
        corrupt: classes.corrupt,
        ..Classes::default()
    }
}

fn stream(stream: &StreamReport) -> StreamCount {
    StreamCount {
        stream: stream.id.into(),
        port_out: stream.from as u32,
        port_in: stream.to as u32,
        rate_pps_intended: stream.load.pps_intended(),
        frames_intended: stream.load.intended,
        frames_offered: stream.load.offered,
        frames_refused: stream.port_refused,
        classes: classes(&stream.classes, 0),
        frames_wrong_port: stream.classes.elsewhere,
        missed_ns_first: stream.missed.first.map(|after| after.0),
        missed_ns_last: stream.missed.last.map(|after| after.0),
        gap_ns_max: stream.missed.silence.0,
    }
}

fn ports(report: &TrialReport) -> Vec<PortCount> {
    let count = |(index, port): (usize, &tester::trial::PortReport)| PortCount {
        port: index as u32,
        name: port.name.clone(),
        frames_sent: port.counters.tx_frames,
        frames_received: port.received,
    };
    report.ports.iter().enumerate().map(count).collect()
}

/// Returns the latency variation of a stream, if it has any.
pub fn jitter(stream: &StreamReport) -> Option<Jitter> {
    (stream.load.forwarded > 1).then_some(Jitter {
        jitter_ns_rfc3550: stream.jitter.smoothed_ns,
        pdv_ns_p999: stream.jitter.pdv_ns,
        ipdv_ns_mean: Some(stream.jitter.ipdv_ns_mean),
        ipdv_ns_max: Some(stream.jitter.ipdv_ns_max),
        ipdv_signed: stream.jitter.variation.map(|found| Differences {
            count: found.count,
            ns_min: found.ns_min,
            ns_p50: found.ns_median,
            ns_max: found.ns_max,
        }),
    })
}

/// Returns the losses in the tester's ports.
pub fn own_drops(account: &Account) -> Vec<Drop> {
    let drop = |(drop, &frames): (&tester::account::Drop, &u64)| Drop {
        place: place(drop.place),
        at: "tester's port".into(),
        reason: drop.reason.clone(),
        frames,
    };
    account.drops.iter().map(drop).collect()
}

/// Returns the tester's own drops, followed by those that kernel and target counted around the
/// trial.
fn drops(report: &TrialReport, around: &Snapshots) -> Vec<Drop> {
    own_drops(&report.account).into_iter().chain(drops_around(around)).collect()
}

/// Returns the drops that kernel and target counted around a trial.
fn drops_around(around: &Snapshots) -> Vec<Drop> {
    let mut drops = Vec::new();
    for ((who, at, reason), &after) in &around.after.drops {
        let before = around.before.drops.get(&(*who, at.clone(), reason.clone())).copied();
        let frames = after.saturating_sub(before.unwrap_or(0));
        if frames > 0 {
            let place = place((*who).into());
            drops.push(Drop { place, at: at.clone(), reason: reason.clone(), frames });
        }
    }
    drops
}

/// Frame accounting of a trial.
#[derive(Debug, PartialEq)]
struct FrameAccount {
    /// Frames lost for a known reason.
    drops: Vec<Drop>,
    /// Lost packet-ins of frames that are not lost.
    copies: Vec<CounterChange>,
    /// Frames that are unaccounted for; negative if more were received than sent.
    unexplained: i64,
}

/// Balances the frames sent with those received and lost.
///
/// A frame may leave by a port and also go to a controller. If its packet-in is lost, the frame is not. So lost
/// packet-ins count as lost frames only as far as frames are missing.
fn balance(sent: u64, received: u64, drops: Vec<Drop>) -> FrameAccount {
    let (packet_ins, mut drops): (Vec<Drop>, Vec<Drop>) =
        drops.into_iter().partition(|drop| is_packet_in(&drop.at, &drop.reason));
    let dropped: u64 = drops.iter().map(|drop| drop.frames).sum();
    let mut unexplained = sent as i64 - received as i64 - dropped as i64;
    let mut copies = Vec::new();
    for drop in packet_ins {
        let frames = drop.frames.min(unexplained.max(0) as u64);
        if frames < drop.frames {
            let name = format!("packet-ins lost of frames that left.{}.{}", drop.at, drop.reason);
            copies.push(CounterChange { name, before: 0, after: drop.frames - frames });
        }
        if frames > 0 {
            unexplained -= frames as i64;
            drops.push(Drop { frames, ..drop });
        }
    }
    FrameAccount { drops, copies, unexplained }
}

fn place(place: DropLocation) -> DropPlace {
    match place {
        DropLocation::Tester => DropPlace::Tester,
        DropLocation::Kernel => DropPlace::Kernel,
        DropLocation::Target => DropPlace::Target,
        DropLocation::Link => DropPlace::Link,
    }
}

/// Returns the flags of a trial, in the record's terms.
pub fn flags(report: &TrialReport) -> Vec<record::Flag> {
    // The threshold is one frame in a thousand, as for a load that falls short of the intended
    // load.
    let matters = |lost: u64| lost * 1000 > report.total.offered;
    let mut flags: Vec<record::Flag> = report
        .flags
        .iter()
        .filter_map(|flag| match flag {
            Flag::TesterLimited(_) => Some(record::Flag::TesterLimited),
            Flag::TesterDrops(lost) if matters(*lost) => Some(record::Flag::TesterLimited),
            Flag::Stalled(_) => Some(record::Flag::Stall),
            Flag::CutShort => Some(record::Flag::Interrupted),
            Flag::TesterInterference => Some(record::Flag::TesterInterference),
            _ => None,
        })
        .collect();
    if report.played.as_ref().is_some_and(|played| played.errors > 0) {
        flags.push(record::Flag::Irregular);
    }
    flags.sort();
    flags.dedup();
    flags
}

fn counters(around: &Snapshots) -> Vec<CounterChange> {
    let change = |(name, &after): (&String, &u64)| CounterChange {
        name: name.clone(),
        before: around.before.counters.get(name).copied().unwrap_or(0),
        after,
    };
    around.after.counters.iter().map(change).collect()
}

/// Returns the work of the target's polling threads around a trial.
pub fn work(around: &Snapshots) -> Option<PollingWork> {
    let (before, after) = (around.before.work?, around.after.work?);
    Some(PollingWork {
        cycles_busy: after.cycles_busy.saturating_sub(before.cycles_busy),
        cycles_idle: after.cycles_idle.saturating_sub(before.cycles_idle),
        frames: after.frames.saturating_sub(before.frames),
    })
}

/// Adds how caches were filled before the trial.
pub fn add_warming(line: &mut Trial, warmed: &CacheFill) {
    let counts = warmed.counts();
    let change = |(name, after): (&str, u64)| CounterChange { name: name.into(), before: 0, after };
    line.counters.extend(counts.map(change));
    if !warmed.is_steady {
        line.flags.push(record::Flag::ColdCaches);
    }
}

fn cpu(around: &Snapshots) -> Vec<CpuUse> {
    let span = around.span_ns.max(1) as f64;
    let used = |(name, &(after, core)): (&String, &(u64, Option<u32>))| {
        let before = around.before.cpu_ns.get(name)?.0;
        let busy_ratio = after.saturating_sub(before) as f64 / span;
        Some(CpuUse { name: name.clone(), core, busy_ratio })
    };
    around.after.cpu_ns.iter().filter_map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(at: &str, reason: &str, frames: u64) -> Drop {
        Drop { place: DropPlace::Target, at: at.into(), reason: reason.into(), frames }
    }

    #[test]
    fn a_frame_counts_once_whether_its_packet_in_was_lost_or_it_left_as_well() {
        let port = || lost("ports.2", "transmit_full", 10);
        let queue = |frames| lost("control channel", "queue_to_controller_full", frames);
        // Frames that only went to the controller are lost with their packet-ins.
        let all = balance(100, 60, vec![queue(30), port()]);
        assert_eq!((all.unexplained, all.drops), (0, vec![port(), queue(30)]));
        assert_eq!(all.copies, []);
        // Frames that left by a port as well are not.
        let copied = balance(100, 90, vec![queue(30), port()]);
        assert_eq!((copied.unexplained, copied.drops), (0, vec![port()]));
        let [copies] = &copied.copies[..] else { panic!("{:?}", copied.copies) };
        assert!(copies.name.ends_with("control channel.queue_to_controller_full"), "{copies:?}");
        assert_eq!((copies.before, copies.after), (0, 30));
        // Some of each kind.
        let mixed = balance(100, 85, vec![lost("forwarder", "event_queue_full", 8), port()]);
        assert_eq!(mixed.unexplained, 0);
        assert_eq!(mixed.drops, [port(), lost("forwarder", "event_queue_full", 5)]);
        assert_eq!(mixed.copies[0].after, 3);
        // What else is missing, or too many, stays visible.
        assert_eq!(balance(100, 60, vec![queue(30)]).unexplained, 10);
        assert_eq!(balance(100, 95, vec![port(), queue(30)]).unexplained, -5);
    }
}
