//! Trials: one offered load each, with a report of all observations.
//!
//! Phases of a trial (RFC 2544, section 23):
//!
//! 1. Warm-up frames at the trial's own rates. They are marked in their sequence numbers and count
//!    only in the frame account.
//! 2. Measured frames.
//! 3. A drain, in which the tester only receives. Counts are final after it.
//!
//! The report distinguishes three loads: intended (by the schedule), offered (accepted by the
//! tester's ports) and forwarded (received intact on the expected port, each frame once).

use std::sync::Arc;

use netio::port::{PortCounters, PortDrop};
use packet::time::{Clock, Nanos};
use packet::traffic::Traffic;

use crate::account::Account;
use crate::controller::play::ScriptReport;
use crate::controller::script::Script;
use crate::pauses::Stalls;
use crate::stream::Stream;
use crate::stream::replay::Replay;
use record::PollingWork;
pub use stats::histogram::Histogram;

mod replay_report;
mod window;

pub use replay_report::{ReceivedMarked, ReplayReport};
pub use window::{MissingSpan, Variation, Window};

/// Default catch-up limit of a late generator, in frames.
pub const CATCH_UP_FRAMES: u32 = 256;

/// A trial is tester-limited if offered load is below this share of intended load.
pub const OFFERED_SHARE_MIN: f64 = 0.999;

/// Minimum stretch for a queue, as a share of the trial.
///
/// The stretch is how much longer the last frames took than the first ones. At this share or above,
/// a queue was still full at the end of sending, and its frames extend the time of the forwarded
/// load.
pub const STRETCH_SHARE_MIN: f64 = 0.001;

/// Minimum lateness or absence of the tester that counts as a stall.
pub const STALL: Nanos = Nanos::from_millis(1);

/// Parameters of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Streams to send.
    pub streams: Vec<Stream>,
    /// Capture files to replay in addition to the streams, from the first measured frame on.
    pub replays: Vec<Replay>,
    /// Warm-up time before the measurement. Zero for none.
    pub warmup: Nanos,
    /// Duration of the measured frames.
    pub duration: Nanos,
    /// Drain time after the last frame is due.
    pub drain: Nanos,
    /// Maximum burst of a late generator, in frames of a stream. Later frames count as unsent.
    pub catch_up_frames: u32,
    /// Controller script that runs during the trial. Without streams it is the whole trial.
    pub orders: Option<Arc<Script>>,
    /// Whether the target is unprepared: no cache is filled before.
    pub is_cold: bool,
    /// Window of each stream, in the order of the streams. Streams without an entry are sent during
    /// all of the measured time.
    pub windows: Vec<Window>,
    /// Whether to count each stream's delay variation frame by frame ([`Variation`]).
    pub tells_variation: bool,
    /// When to reset the target, after the first measured frame is due. None for no reset.
    pub reset_at: Option<Nanos>,
    /// How many times to swap the target's program, evenly over the measured time. Usually zero.
    pub swaps: u32,
}

/// Results of a trial.
#[derive(Debug, Clone)]
pub struct TrialReport {
    /// When the first measured frame was due.
    pub started_at: Nanos,
    /// Duration of the measured frames as requested, or the actual one if the trial was stopped or
    /// all its capture files ended earlier.
    pub duration: Nanos,
    /// Requested warm-up time.
    pub warmup: Nanos,
    /// Requested drain time.
    pub drain: Nanos,
    /// Load, summed over all streams.
    pub total: Load,
    /// Frame classes, summed over all streams.
    pub classes: Classes,
    /// The streams, in the order of the trial.
    pub streams: Vec<StreamReport>,
    /// The replays, in the order of the trial.
    pub replays: Vec<ReplayReport>,
    /// The rig's ports, in order.
    pub ports: Vec<PortReport>,
    /// Latency over all streams.
    pub latency: Latency,
    /// Deviation of the tester from its schedule.
    pub pacing: Pacing,
    /// Stalls of the tester.
    pub stalls: Stalls,
    /// Frame account, as far as the tester knows. The caller adds the drops that target and kernel
    /// report.
    pub account: Account,
    /// Warnings about the validity of the results.
    pub flags: Vec<Flag>,
    /// Clock that stamped received frames.
    pub stamps: Clock,
    /// Result of the controller script, if there was one.
    pub played: Option<ScriptReport>,
    /// Work of the target's polling threads, if available. The caller adds it.
    pub work: Option<PollingWork>,
}

/// Intended, offered and forwarded frames, with their time spans.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Frames that the schedule required.
    pub intended: u64,
    /// Frames that the tester's ports accepted.
    pub offered: u64,
    /// Distinct frames that arrived intact on the expected port.
    pub forwarded: u64,
    /// Time span of `intended` and `offered`.
    pub duration_offered: Nanos,
    /// Time span of `forwarded`: `duration_offered` plus the time to empty a queue that grew during
    /// the trial (see [`STRETCH_SHARE_MIN`]).
    pub duration_forwarded: Nanos,
}

/// Frame classes of a stream.
///
/// Each received copy is in exactly one of `correct`, `elsewhere`, `duplicate`, `corrupt` and
/// `late`. `misrouted` and `flooded` divide the distinct frames received on other ports.
/// `reordered` is a subset of `correct`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes {
    /// First copies, intact, on the expected port.
    pub correct: u64,
    /// Distinct frames that arrived only on one wrong port.
    pub misrouted: u64,
    /// Distinct frames that arrived on more than one port.
    pub flooded: u64,
    /// First copies on each other port.
    pub elsewhere: u64,
    /// Duplicates: further copies on the same port.
    pub duplicate: u64,
    /// Correct frames with a number below that of an earlier arrival (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Frames with at least one unexpected byte.
    pub corrupt: u64,
    /// Frames that arrived after more than [`crate::analyzer::WINDOW_FRAMES`] later ones: too late
    /// to detect duplicates.
    pub late: u64,
}

/// Results of one stream.
#[derive(Debug, Clone)]
pub struct StreamReport {
    /// Stream id.
    pub id: u16,
    /// Index of the sending port.
    pub from: usize,
    /// Index of the expected receiving port.
    pub to: usize,
    /// Frame size in bytes, frame check sequence included. The largest one if sizes vary.
    pub frame_bytes: usize,
    /// Mean frame size in bytes.
    pub frame_bytes_mean: f64,
    /// Load.
    pub load: Load,
    /// Frames not sent because the tester was late, although the port had room.
    pub unsent_late: u64,
    /// Frames not sent because the port rejected them until their deadline.
    pub unsent_refused: u64,
    /// Offered frames that the port accepted and the system or link then rejected: the stream's
    /// share of the port's counter.
    pub port_refused: u64,
    /// Deviation from the schedule.
    pub pacing: Pacing,
    /// Frame classes.
    pub classes: Classes,
    /// Latency of the correct frames.
    pub latency: Latency,
    /// Variation of that latency.
    pub jitter: Jitter,
    /// Arrival time of the first measured frame.
    pub arrival_first: Option<Nanos>,
    /// Arrival time of the last measured frame.
    pub arrival_last: Option<Nanos>,
    /// When frames were missing.
    pub missed: MissingSpan,
    /// The first corrupt frame, for diagnosis.
    pub corruption: Option<Corruption>,
}

/// First difference between a corrupt frame and the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corruption {
    /// Index of the receiving port.
    pub port: usize,
    /// Offset of the first different byte, or the shorter length if only lengths differ.
    pub at: usize,
    /// The expected byte, if any.
    pub want: Option<u8>,
    /// The received byte, if any.
    pub have: Option<u8>,
}

/// Latency of correct frames in nanoseconds, from two start times.
///
/// A large difference between the two means that the tester was late.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Latency from the time when the frame was handed to the port.
    pub from_sent: Histogram,
    /// Latency from the scheduled send time.
    pub from_scheduled: Histogram,
    /// Frames with a receive timestamp before the send time: the clocks disagree. The histograms
    /// contain them as 0.
    pub negative: u64,
    /// Frames with unknown delay, because the tester stalled when they left or arrived (see
    /// [`crate::pauses`]). They are in no histogram.
    pub unknown: u64,
}

/// Variation of latency, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Jitter {
    /// Latency differences of frames sent in succession, if the trial requested them and two such
    /// frames arrived.
    pub variation: Option<Variation>,
    /// Smoothed interarrival jitter (RFC 3550, section 6.4.1) at the end of the trial.
    pub smoothed_ns: f64,
    /// Mean absolute latency difference of successive arrivals (IPDV, RFC 3393).
    pub ipdv_ns_mean: f64,
    /// Largest such difference.
    pub ipdv_ns_max: u64,
    /// 99.9th percentile of latency minus its minimum (RFC 8219, section 7.3.1). None with too few
    /// frames for that percentile.
    pub pdv_ns: Option<u64>,
}

/// Results of one port.
#[derive(Debug, Clone)]
pub struct PortReport {
    /// Name of the port.
    pub name: String,
    /// Measured frames to send here, by schedule.
    pub intended: u64,
    /// Measured frames that the port accepted for sending.
    pub offered: u64,
    /// First copies of measured frames, intact, that arrived here as expected.
    pub forwarded: u64,
    /// Received frames of all kinds.
    pub received: u64,
    /// Frames that the tester did not send.
    pub foreign: u64,
    /// First copies of measured frames that were expected on another port.
    pub elsewhere: u64,
    /// Frames of an earlier trial.
    pub stale: u64,
    /// Damaged frames that resemble a stream's but have no trustworthy sequence number.
    pub broken: u64,
    /// The port's own counters during the trial, from the first warm-up frame on.
    pub counters: PortCounters,
    /// Received frames of all kinds, by protocol and size.
    pub traffic: Traffic,
}

/// Deviation of the tester from its schedule. Histograms are in nanoseconds.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// Send time minus scheduled time.
    pub lateness: Histogram,
    /// Absolute difference between the actual and the intended gap to the stream's previous frame.
    pub gap_error: Histogram,
    /// Actual gap to the stream's previous frame.
    pub gaps: Histogram,
    /// Number of times the tester was late by [`STALL`] or more. Known per port, not per stream.
    pub stalls: u64,
    /// Greatest lateness.
    pub lateness_max: Nanos,
}

/// A warning about the validity of a trial's results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flag {
    /// Offered load is below [`OFFERED_SHARE_MIN`] of intended load. Holds the share.
    TesterLimited(f64),
    /// The tester dropped received frames. Holds their number.
    TesterDrops(u64),
    /// The tester was late or absent by [`STALL`] or more. Holds the number of times.
    Stalled(u64),
    /// The tester disturbed this trial and its repetitions alike, so it can have caused the loss.
    TesterInterference,
    /// A port failed and ended the trial.
    CutShort,
    /// Timestamps were taken in user space, not by the kernel or the hardware.
    UserSpaceStamps,
    /// Frames seemed to arrive before they were sent. Holds their number.
    NegativeLatency(u64),
}

/// What limited a trial's forwarded load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The intended load: all but at most one frame in a thousand was forwarded.
    Load,
    /// The tester, which was too late to send or to receive.
    Tester,
    /// A port that accepted no more frames, because its peer did not empty it.
    Refusal,
    /// Loss of sent frames, usually in the target.
    Loss,
}

impl Trial {
    /// A trial of these streams with the default catch-up.
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

    /// Returns the window of the stream at this index, limited to the trial's duration.
    pub fn window(&self, place: usize) -> Window {
        let whole = Window { from: Nanos::ZERO, until: self.duration };
        let asked = self.windows.get(place).copied().unwrap_or(whole);
        Window { from: asked.from.min(self.duration), until: asked.until.min(self.duration) }
    }

    /// A trial without frames that only runs a controller script.
    pub fn of_orders(orders: Script) -> Self {
        let nothing = Trial::new(Vec::new(), Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        Trial { orders: Some(Arc::new(orders)), ..nothing }
    }

    /// Runs this controller script during the trial.
    #[must_use]
    pub fn beside(self, orders: Script) -> Self {
        Trial { orders: Some(Arc::new(orders)), ..self }
    }

    /// Returns the time from the first warm-up frame to the end of the drain.
    pub fn length(&self) -> Nanos {
        self.warmup.saturating_add(self.duration).saturating_add(self.drain)
    }
}

impl Load {
    /// Returns the intended load in frames per second.
    pub fn pps_intended(&self) -> f64 {
        per_second(self.intended, self.duration_offered)
    }

    /// Returns the offered load in frames per second.
    pub fn pps_offered(&self) -> f64 {
        per_second(self.offered, self.duration_offered)
    }

    /// Returns the forwarded load in frames per second.
    pub fn pps_forwarded(&self) -> f64 {
        per_second(self.forwarded, self.duration_forwarded)
    }

    /// Returns the frame loss rate as a share of offered frames. 0 if nothing was offered.
    pub fn loss_ratio(&self) -> f64 {
        if self.offered == 0 {
            return 0.0;
        }
        1.0 - self.forwarded as f64 / self.offered as f64
    }

    /// Returns offered as a share of intended. 1 if nothing was intended.
    pub fn offered_share(&self) -> f64 {
        if self.intended == 0 { 1.0 } else { self.offered as f64 / self.intended as f64 }
    }

    /// Adds another load over the same time: frames are summed, time spans are not.
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
    /// Creates empty statistics.
    pub fn empty() -> Self {
        let histogram = Histogram::new;
        let (lateness, gap_error, gaps) = (histogram(), histogram(), histogram());
        Pacing { lateness, gap_error, gaps, stalls: 0, lateness_max: Nanos::ZERO }
    }

    /// Adds other statistics.
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
    /// A report with only the total load of a stream. All other results are empty.
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
            missed: MissingSpan::default(),
            corruption: None,
        }
    }
}

impl TrialReport {
    /// A report with only the total load of a trial. All other results are empty.
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

    /// Returns whether the tester, not the target, limited the offered load.
    pub fn is_tester_limited(&self) -> bool {
        self.flags.iter().any(|flag| matches!(flag, Flag::TesterLimited(_)))
    }

    /// Returns the main reason why intended frames were not forwarded.
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
            Limit::Load => "the intended load",
            Limit::Tester => "the tester, which was late",
            Limit::Refusal => "the port, which accepted no more frames",
            Limit::Loss => "the target, which lost frames",
        })
    }
}

fn per_second(frames: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { frames as f64 / time.as_secs_f64() }
}
