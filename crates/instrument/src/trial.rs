//! A trial is one offered load, and its report is everything that was seen of it.
//!
//! Phases (RFC 2544, 23): warm-up frames at the trial's own rates, then the measured frames, then
//! a drain in which only receiving goes on; nothing is counted before the drain is over. Warm-up
//! frames are marked in their sequence numbers and appear in the account only.
//! Three loads are kept apart: intended (the schedule), offered (what the tester's ports
//! accepted) and forwarded (what arrived where and as it should, each frame once).

use std::sync::Arc;

use packet::time::{Clock, Nanos};
use packet::traffic::Traffic;
use ports::port::{PortCounters, PortDrop};

use crate::account::Account;
use crate::controller::play::Played;
use crate::controller::script::Script;
use crate::replay::{Replay, ReplayReport};
use crate::stall::Stalls;
use crate::stream::Stream;
pub use results::histogram::Histogram;
use results::record::Work;

/// Times within a trial: when a stream is sent, and when its frames were missed.
mod window;

pub use window::{Missed, Variation, Window};

/// Frames by which the generator may be late and still catch up, unless a trial says otherwise.
pub const CATCH_UP_FRAMES: u32 = 256;

/// Offered below this share of intended makes a trial tester-limited.
pub const OFFERED_SHARE_MIN: f64 = 0.999;

/// If the last frames took longer than the first ones by at least this share of the trial, a queue
/// was still full when sending ended, and what it held is not counted to the trial's own duration.
pub const STRETCH_SHARE_MIN: f64 = 0.001;

/// The tester was away from its schedule for at least this long: a stall.
pub const STALL: Nanos = Nanos::from_millis(1);

/// One offered load.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What is sent.
    pub streams: Vec<Stream>,
    /// Capture files that are sent beside the streams, from the first measured frame on.
    pub replays: Vec<Replay>,
    /// How long the streams run before anything counts; zero for no warm-up.
    pub warmup: Nanos,
    /// How long the measured frames are sent.
    pub duration: Nanos,
    /// How long to go on receiving after the last frame was due.
    pub drain: Nanos,
    /// A generator that is late sends at most this many frames of a stream at once, and counts
    /// what is later than that as unsent.
    pub catch_up_frames: u32,
    /// What a controller says to the target meanwhile; with no streams, it is all that happens.
    pub orders: Option<Arc<Script>>,
    /// Whether the target is to meet the frames unprepared: no cache is filled before.
    pub is_cold: bool,
    /// When each stream is sent, in the order of the streams; those beyond the end, from the beginning
    /// of the measured frames to their end.
    pub windows: Vec<Window>,
    /// Whether the variation of each stream's latency is counted frame by frame ([`Variation`]).
    pub tells_variation: bool,
    /// When the target is reset, after the first measured frame was due; never, for most.
    pub reset_at: Option<Nanos>,
    /// How often the program that the target runs is put in place anew, evenly over the measured frames; never, for
    /// most.
    pub swaps: u32,
}

/// What was seen of a trial.
#[derive(Debug, Clone)]
pub struct TrialReport {
    /// When the first measured frame was due.
    pub started_at: Nanos,
    /// The trial's own duration, as asked for; of one that ended earlier, because it was stopped or all
    /// its capture files were out, as it was.
    pub duration: Nanos,
    /// Warm-up, as asked for.
    pub warmup: Nanos,
    /// Drain, as asked for.
    pub drain: Nanos,
    /// The sum over all streams.
    pub total: Load,
    /// The sum over all streams.
    pub classes: Classes,
    /// Each stream, in the order of the trial.
    pub streams: Vec<StreamReport>,
    /// Each replay, in the order of the trial.
    pub replays: Vec<ReplayReport>,
    /// Each of the rig's ports, in order.
    pub ports: Vec<PortReport>,
    /// Latency over all streams.
    pub latency: Latency,
    /// How well the tester kept its schedule.
    pub pacing: Pacing,
    /// When it was not at its work.
    pub stalls: Stalls,
    /// Where every frame went, as far as the tester knows; add what the target and the kernel
    /// say they dropped.
    pub account: Account,
    /// What to know before believing the numbers.
    pub flags: Vec<Flag>,
    /// Who stamped the received frames.
    pub stamps: Clock,
    /// What came of the orders, if there were any.
    pub played: Option<Played>,
    /// What the target's polling threads did meanwhile, where they tell; added by whoever asks them.
    pub work: Option<Work>,
}

/// Frames intended, offered and forwarded, and over which time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Frames that the schedule called for.
    pub intended: u64,
    /// Frames that the tester's ports accepted.
    pub offered: u64,
    /// Different frames that arrived intact at the port where they should.
    pub forwarded: u64,
    /// Time that `intended` and `offered` refer to.
    pub duration_offered: Nanos,
    /// Time that `forwarded` refers to: `duration_offered`, and beyond it the time that a queue
    /// which had grown meanwhile took to empty (see [`STRETCH_SHARE_MIN`]).
    pub duration_forwarded: Nanos,
}

/// What became of a stream's frames. Each received copy of a frame is in exactly one of
/// `correct`, `elsewhere`, `duplicate`, `corrupt` and `late`; `misrouted` and `flooded` sort the
/// different frames that were seen elsewhere; `reordered` marks some of the correct ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes {
    /// First copies, intact, on the expected port.
    pub correct: u64,
    /// Different frames that arrived on a wrong port and on no other.
    pub misrouted: u64,
    /// Different frames that arrived on more than one port.
    pub flooded: u64,
    /// First copies on each port that is not the expected one.
    pub elsewhere: u64,
    /// Further copies on a port where the frame had been before.
    pub duplicate: u64,
    /// Correct frames whose number is below one that arrived before (RFC 4737, 3.3).
    pub reordered: u64,
    /// Frames that differ in some byte from what should have arrived.
    pub corrupt: u64,
    /// Frames that came after more than [`crate::monitor::WINDOW_FRAMES`] later ones: too late
    /// to tell whether they came before.
    pub late: u64,
}

/// One stream's part of a trial.
#[derive(Debug, Clone)]
pub struct StreamReport {
    /// The stream's number.
    pub id: u16,
    /// Port it was sent from.
    pub from: usize,
    /// Port where it was expected.
    pub to: usize,
    /// Frame size in bytes, frame check sequence included; where sizes differ the largest.
    pub frame_bytes: usize,
    /// The mean of its sizes.
    pub frame_bytes_mean: f64,
    /// Its load.
    pub load: Load,
    /// Frames that the tester was too late for, although the port would have taken them.
    pub unsent_late: u64,
    /// Frames that the port refused until it was too late for them.
    pub unsent_refused: u64,
    /// Of the offered frames, those that its port took and the system or link did not: the stream's share of what the port counted.
    pub port_refused: u64,
    /// How well its moments were kept.
    pub pacing: Pacing,
    /// What became of the frames.
    pub classes: Classes,
    /// Latency of the correct frames.
    pub latency: Latency,
    /// Variation of that latency.
    pub jitter: Jitter,
    /// When the first measured frame arrived.
    pub arrival_first: Option<Nanos>,
    /// When the last measured frame arrived.
    pub arrival_last: Option<Nanos>,
    /// When its frames were missed.
    pub missed: Missed,
    /// The first frame that was found corrupt, for diagnosis.
    pub corruption: Option<Corruption>,
}

/// Where a corrupt frame differs first from what should have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corruption {
    /// Port it arrived on.
    pub port: usize,
    /// Offset of the first byte that differs (or the shorter length, where lengths differ).
    pub at: usize,
    /// The byte that should be there, if one should.
    pub want: Option<u8>,
    /// The byte that is there, if one is.
    pub have: Option<u8>,
}

/// Latency of correct frames, in nanoseconds, from two beginnings. Far apart, they say that the
/// tester itself was late.
#[derive(Debug, Clone)]
pub struct Latency {
    /// From when the frame was handed to the port.
    pub from_sent: Histogram,
    /// From when the schedule wanted it to leave.
    pub from_scheduled: Histogram,
    /// Frames that seemed to arrive before they were sent: the stamps' clocks disagree. They are
    /// in the histograms as 0.
    pub negative: u64,
    /// Frames that arrived and whose delay is unknown, since the tester stood still when they left
    /// or came (see [`crate::stall`]). They are in no histogram.
    pub unknown: u64,
}

/// Variation of latency. All in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jitter {
    /// Differences of the latencies of frames that were sent one after the other, where the trial asked
    /// for them and two such frames arrived.
    pub variation: Option<Variation>,
    /// The smoothed interarrival jitter of RFC 3550, 6.4.1, at the end of the trial.
    pub smoothed_ns: f64,
    /// Mean absolute difference between the latencies of successive arrivals (RFC 3393's IPDV).
    pub ipdv_ns_mean: f64,
    /// Largest such difference.
    pub ipdv_ns_max: u64,
    /// 99.9th percentile of latency minus its minimum (RFC 8219, 7.3.1), once there are enough
    /// frames for that percentile.
    pub pdv_ns: Option<u64>,
}

/// One of the rig's ports in a trial.
#[derive(Debug, Clone)]
pub struct PortReport {
    /// The port's name.
    pub name: String,
    /// Measured frames that streams intended to send here.
    pub intended: u64,
    /// Measured frames that it accepted for sending.
    pub offered: u64,
    /// Measured frames, first copies and intact, that arrived here and should.
    pub forwarded: u64,
    /// Frames received here, of all kinds.
    pub received: u64,
    /// Frames that are not the instrument's.
    pub foreign: u64,
    /// First copies of measured frames that arrived here and belong elsewhere.
    pub elsewhere: u64,
    /// Frames of an earlier trial.
    pub stale: u64,
    /// Damaged frames that resemble a stream's, but whose number cannot be trusted.
    pub broken: u64,
    /// What the port itself counted during the trial, from the first warm-up frame on.
    pub counters: PortCounters,
    /// What arrived here, of all kinds, by protocol and size.
    pub traffic: Traffic,
}

/// How well the tester kept its schedule. Histograms in nanoseconds.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// Sending time minus scheduled time.
    pub lateness: Histogram,
    /// Absolute difference between achieved and intended gap to the stream's previous frame.
    pub gap_error: Histogram,
    /// Achieved gap to the stream's previous frame.
    pub gaps: Histogram,
    /// How often the tester was late by [`STALL`] or more; known of a port, not of each stream.
    pub stalls: u64,
    /// The longest lateness.
    pub lateness_max: Nanos,
}

/// What to know before believing a trial's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flag {
    /// Offered load is below [`OFFERED_SHARE_MIN`] of what was intended (the share).
    TesterLimited(f64),
    /// The tester lost frames that had come back (how many).
    TesterDrops(u64),
    /// The tester was late by [`STALL`] or more, or away for as long (how often).
    Stalled(u64),
    /// The tester disturbed it as it had disturbed its repetitions; what was lost may be its doing.
    Disturbed,
    /// A port failed, and the trial ended then.
    CutShort,
    /// Stamps were taken in user space, not by the kernel or the hardware.
    UserSpaceStamps,
    /// Frames seemed to arrive before they were sent (how many).
    NegativeLatency(u64),
}

/// What kept a trial from forwarding more than it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The load: what was intended was forwarded, but for less than one part in a thousand.
    Load,
    /// The tester, which came too late to send, or to take what had come back.
    Tester,
    /// A port that took no more, because nobody emptied it on the other side.
    Refusal,
    /// Whoever lost frames that were sent: the target, as a rule.
    Loss,
}

impl Trial {
    /// A trial of these streams with the usual catch-up.
    pub fn new(streams: Vec<Stream>, warmup: Nanos, duration: Nanos, drain: Nanos) -> Self {
        let (catch_up_frames, orders, is_cold) = (CATCH_UP_FRAMES, None, false);
        let (replays, windows, tells_variation) = (Vec::new(), Vec::new(), false);
        let (reset_at, swaps) = (None, 0);
        Trial {
            streams,
            replays,
            warmup,
            duration,
            drain,
            catch_up_frames,
            orders,
            is_cold,
            windows,
            tells_variation,
            reset_at,
            swaps,
        }
    }

    /// When the stream at this place is sent, never beyond the trial's end.
    pub fn window(&self, place: usize) -> Window {
        let whole = Window { from: Nanos::ZERO, until: self.duration };
        let asked = self.windows.get(place).copied().unwrap_or(whole);
        Window { from: asked.from.min(self.duration), until: asked.until.min(self.duration) }
    }

    /// A trial without frames, in which only these orders are given.
    pub fn of_orders(orders: Script) -> Self {
        let nothing = Trial::new(Vec::new(), Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        Trial { orders: Some(Arc::new(orders)), ..nothing }
    }

    /// The same while these orders are given.
    #[must_use]
    pub fn beside(self, orders: Script) -> Self {
        Trial { orders: Some(Arc::new(orders)), ..self }
    }

    /// How long the trial takes from the first warm-up frame to the end of the drain.
    pub fn length(&self) -> Nanos {
        self.warmup.saturating_add(self.duration).saturating_add(self.drain)
    }
}

impl Load {
    /// Frames per second that the schedule called for.
    pub fn pps_intended(&self) -> f64 {
        per_second(self.intended, self.duration_offered)
    }

    /// Frames per second that were offered.
    pub fn pps_offered(&self) -> f64 {
        per_second(self.offered, self.duration_offered)
    }

    /// Frames per second that were forwarded.
    pub fn pps_forwarded(&self) -> f64 {
        per_second(self.forwarded, self.duration_forwarded)
    }

    /// Offered frames that were not forwarded, as a share of offered; 0 when nothing was offered.
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 {
            return 0.0;
        }
        1.0 - self.forwarded as f64 / self.offered as f64
    }

    /// Offered as a share of intended; 1 when nothing was intended.
    pub fn offered_share(&self) -> f64 {
        if self.intended == 0 { 1.0 } else { self.offered as f64 / self.intended as f64 }
    }

    /// This load and another one beside it: frames add up, times do not.
    pub fn beside(&self, other: &Load) -> Load {
        Load {
            intended: self.intended + other.intended,
            offered: self.offered + other.offered,
            forwarded: self.forwarded + other.forwarded,
            duration_offered: self.duration_offered.max(other.duration_offered),
            duration_forwarded: self.duration_forwarded.max(other.duration_forwarded),
        }
    }
}

impl Pacing {
    /// Nothing sent yet.
    pub fn empty() -> Self {
        let histogram = Histogram::new;
        let (lateness, gap_error, gaps) = (histogram(), histogram(), histogram());
        Pacing { lateness, gap_error, gaps, stalls: 0, lateness_max: Nanos::ZERO }
    }

    /// Adds how well other moments were kept.
    pub fn merge(&mut self, other: &Pacing) {
        self.lateness.merge(&other.lateness);
        self.gap_error.merge(&other.gap_error);
        self.gaps.merge(&other.gaps);
        self.stalls += other.stalls;
        self.lateness_max = self.lateness_max.max(other.lateness_max);
    }
}

impl std::ops::AddAssign for Classes {
    fn add_assign(&mut self, other: Classes) {
        self.correct += other.correct;
        self.misrouted += other.misrouted;
        self.flooded += other.flooded;
        self.elsewhere += other.elsewhere;
        self.duplicate += other.duplicate;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
        self.late += other.late;
    }
}

impl StreamReport {
    /// A report of what is known of a stream as a whole: what else could have been seen is empty.
    pub fn unmeasured(stream: &Stream, load: Load) -> Self {
        StreamReport {
            id: stream.id,
            from: stream.from,
            to: stream.to,
            frame_bytes: stream.frame_bytes,
            frame_bytes_mean: stream.frame_bytes_mean(),
            load,
            unsent_late: 0,
            unsent_refused: 0,
            port_refused: 0,
            pacing: Pacing::empty(),
            classes: Classes::default(),
            latency: Latency::empty(),
            jitter: Jitter::default(),
            arrival_first: None,
            arrival_last: None,
            missed: Missed::default(),
            corruption: None,
        }
    }
}

impl TrialReport {
    /// A report of what is known of a trial as a whole: what else could have been seen is empty.
    pub fn unmeasured(trial: &Trial, started_at: Nanos, total: Load) -> Self {
        TrialReport {
            started_at,
            duration: trial.duration,
            warmup: trial.warmup,
            drain: trial.drain,
            total,
            classes: Classes::default(),
            streams: Vec::new(),
            replays: Vec::new(),
            ports: Vec::new(),
            latency: Latency::empty(),
            pacing: Pacing::empty(),
            stalls: Stalls::default(),
            account: Account::default(),
            flags: Vec::new(),
            stamps: Clock::UserSpace,
            played: None,
            work: None,
        }
    }

    /// Whether the tester itself, not the target, kept the load down.
    pub fn is_tester_limited(&self) -> bool {
        self.flags.iter().any(|flag| matches!(flag, Flag::TesterLimited(_)))
    }

    /// What most of the frames that were intended and not forwarded are owed to.
    pub fn limit(&self) -> Limit {
        let sum = |pick: fn(&StreamReport) -> u64| self.streams.iter().map(pick).sum::<u64>();
        let dropped = |port: &PortReport| port.counters.lost(PortDrop::ReceiveRingFull);
        let not_taken: u64 = self.ports.iter().map(dropped).sum();
        let lost = self.total.offered.saturating_sub(self.total.forwarded);
        let owed = [
            (Limit::Loss, lost.saturating_sub(not_taken)),
            (Limit::Refusal, sum(|stream| stream.unsent_refused)),
            (Limit::Tester, sum(|stream| stream.unsent_late) + not_taken.min(lost)),
        ];
        let (limit, frames) = owed.into_iter().max_by_key(|&(_, frames)| frames).unwrap_or(owed[0]);
        let is_little = frames as f64 <= self.total.intended as f64 * (1.0 - OFFERED_SHARE_MIN);
        if is_little { Limit::Load } else { limit }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Limit::Load => "the load that was asked for",
            Limit::Tester => "the tester, which was late",
            Limit::Refusal => "the port, which took no more",
            Limit::Loss => "the target, which lost frames",
        })
    }
}

fn per_second(frames: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { frames as f64 / time.as_secs_f64() }
}
