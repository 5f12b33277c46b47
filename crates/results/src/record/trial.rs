//! One trial: a load, what became of its frames, and how long they took.
//!
//! Source: RFC 2544 section 23 (phases of a trial), RFC 2285 (intended, offered and forwarded
//! load), RFC 8219 (jitter). Invariant: over the whole trial, uncounted warm-up included (a target
//! counts those frames too), frames offered = frames received + drops by place and reason +
//! unexplained; nothing is rounded away.

use serde::{Deserialize, Serialize};

use super::{GoalResult, ModuleRun, Stalls, Witness};

/// A line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum Line {
    /// A trial that ended.
    Trial(Trial),
    /// A result that took several trials.
    Outcome(Outcome),
}

/// One offered load for one duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number of the trial in its run, from 1.
    pub id: u64,
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// Which repeat of the point, from 1; trials of equal repeat were interleaved.
    pub repeat: u32,
    /// What the trial was for.
    pub role: Role,
    /// Where on the experiment's axis it lies.
    pub point: Point,
    /// Frame size, frame check sequence counted; absent for mixed sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u32>,
    /// Load that was asked for, all streams together.
    pub rate_pps_intended: f64,
    /// Frames that the schedule held.
    pub frames_intended: u64,
    /// Frames that really left.
    pub frames_offered: u64,
    /// Bytes of those, frame check sequence counted.
    pub bytes_offered: u64,
    /// Frames that came back where they belong, in any order, once each.
    pub frames_forwarded: u64,
    /// Bytes of those, frame check sequence counted.
    pub bytes_forwarded: u64,
    /// Sending time that was asked for.
    pub duration_ns_intended: u64,
    /// Traffic before the counted part.
    pub duration_ns_warmup: u64,
    /// Time that was waited for frames under way, after the last one left.
    pub duration_ns_drain: u64,
    /// Time from the first scheduled frame to the end of the last one's slot, as it happened.
    pub duration_ns_effective: u64,
    /// Time from the first to the last received frame, drain counted; absent if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns_receiving: Option<u64>,
    /// What received frames were.
    pub classes: FrameClasses,
    /// The account: frames that left, warm-up included.
    pub account_frames_offered: u64,
    /// The account: different frames that came back on any port in whatever state, warm-up included.
    pub account_frames_received: u64,
    /// Frames lost for a known reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Frames offered that nobody accounts for; below zero if more came back than were sent.
    pub frames_unexplained: i64,
    /// The account of each stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamCount>,
    /// The account of each port of the tester.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCount>,
    /// Latency from the moment that a frame really left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// Latency from the moment that a frame should have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_scheduled: Option<Distribution>,
    /// Variation of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// How far frames left from their scheduled time, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Distribution>,
    /// When the tester was away from its work; absent in virtual time, where it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// Who stamped received frames.
    pub clock: ClockSource,
    /// The calibration that tells this trial's bias, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// Seed of this trial.
    pub seed: u64,
    /// What is remarkable about the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The target's own counters, before and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterChange>,
    /// Processor time while sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuUse>,
    /// What the target's polling threads did, where they tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// What a controller had the target do meanwhile; in a trial without frames it is all there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Orders>,
    /// What a measurement module did and found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleRun>,
    /// What an SNMP agent said of it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// Memory of the target's processes, where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Resident memory of the target's processes after it, huge pages counted, where it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The goal for which a search with several of them chose the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
}

impl Trial {
    /// Offered load in frames per second, as it was; absent for a trial without duration.
    pub fn rate_pps_offered(&self) -> Option<f64> {
        per_second(self.frames_offered, self.duration_ns_effective)
    }

    /// Forwarding rate in frames per second: frames that came back where they belong over the
    /// longer of sending and receiving time, so that what a queue holds at the end adds no rate.
    pub fn rate_pps_forwarded(&self) -> Option<f64> {
        per_second(self.frames_forwarded, self.duration_ns_forwarding())
    }

    /// Offered load in bit/s of the link layer: frame check sequence counted, preamble and gap not.
    pub fn rate_bps_offered(&self) -> Option<f64> {
        per_second(self.bytes_offered, self.duration_ns_effective).map(|rate| rate * 8.0)
    }

    /// Forwarding rate in bit/s of the link layer.
    pub fn rate_bps_forwarded(&self) -> Option<f64> {
        per_second(self.bytes_forwarded, self.duration_ns_forwarding()).map(|rate| rate * 8.0)
    }

    /// Share of the offered frames that did not come back where they belong, 0 to 1. Absent if
    /// none were offered; below zero if more came back than were sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.frames_offered > 0)
            .then(|| 1.0 - self.frames_forwarded as f64 / self.frames_offered as f64)
    }

    /// Frames offered that were neither received nor are anyone's drop.
    pub fn unexplained(&self) -> i64 {
        let dropped: u64 = self.drops.iter().map(|drop| drop.frames).sum();
        self.account_frames_offered as i64 - self.account_frames_received as i64 - dropped as i64
    }

    fn duration_ns_forwarding(&self) -> u64 {
        self.duration_ns_effective.max(self.duration_ns_receiving.unwrap_or(0))
    }
}

fn per_second(count: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0).then(|| count as f64 * 1e9 / duration_ns as f64)
}

/// What a trial was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its numbers are results.
    Measure,
    /// It filled caches; its numbers are kept and not used.
    WarmUp,
    /// A step of a search.
    Search,
    /// It found what the target forwards at most; loads of other trials are shares of that.
    Maximum,
    /// It confirmed what a search found; its numbers are results.
    Confirm,
    /// It helped to decide what a load is to the goals of a search: its frames are accounted for,
    /// and its numbers are no results by themselves.
    Bound,
    /// The tester without a target.
    Calibrate,
}

/// Where a trial lies on its experiment's axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// What is varied, with its unit in the name.
    pub name: String,
    /// Its value here.
    pub value: f64,
    /// What else is varied, where an experiment has a curve for each of several tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
}

/// The curve that a point belongs to, where an experiment has several on each target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// What is varied from curve to curve, with its unit in the name.
    pub name: String,
    /// Its value on this one.
    pub value: f64,
}

impl Point {
    /// A point of an experiment that varies one thing.
    pub fn new(name: impl Into<String>, value: f64) -> Point {
        Point { name: name.into(), value, within: None }
    }

    /// The same on the curve of `name` = `value`.
    #[must_use]
    pub fn within(self, name: impl Into<String>, value: f64) -> Point {
        Point { within: Some(Within { name: name.into(), value }), ..self }
    }

    /// By value, then by name, then by curve.
    pub fn order(&self, other: &Point) -> std::cmp::Ordering {
        let curve = |a: &Within, b: &Within| a.name.cmp(&b.name).then(a.value.total_cmp(&b.value));
        let curves = match (&self.within, &other.within) {
            (Some(a), Some(b)) => curve(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        self.value.total_cmp(&other.value).then(self.name.cmp(&other.name)).then(curves)
    }
}

/// What received frames were; every received frame is in one class only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameClasses {
    /// Where it belongs, in order, header as expected.
    pub correct: u64,
    /// At a port where it does not belong.
    pub misrouted: u64,
    /// A copy at a port where the frame does not belong, the frame being also where it does.
    pub flooded: u64,
    /// Seen before, at the same port.
    pub duplicate: u64,
    /// Where it belongs, after a frame that was sent later.
    pub reordered: u64,
    /// Ours, with bytes that should not have changed.
    pub corrupt: u64,
    /// Not ours.
    pub foreign: u64,
}

/// Frames lost in one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drop {
    /// Who lost them.
    pub place: DropPlace,
    /// Which part of it: a port, a queue.
    pub at: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub frames: u64,
}

/// Who lost a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropPlace {
    /// The device under test, by its own account.
    Target,
    /// The operating system between tester and target.
    Kernel,
    /// The link between them, on purpose.
    Link,
    /// The tester.
    Tester,
}

impl DropPlace {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            DropPlace::Target => "target",
            DropPlace::Kernel => "kernel",
            DropPlace::Link => "link",
            DropPlace::Tester => "tester",
        }
    }
}

/// The account of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCount {
    /// Number of the stream.
    pub stream: u32,
    /// Tester port that it left by.
    pub port_out: u32,
    /// Tester port that it belongs to.
    pub port_in: u32,
    /// Load that was asked for.
    pub rate_pps_intended: f64,
    /// Frames that the schedule held.
    pub frames_intended: u64,
    /// Frames that really left.
    pub frames_offered: u64,
    /// Of those, the ones that the tester's port took and the system or link did not, so that they never reached the target. Where
    /// several streams leave by one port, each has its share of what the port counted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub frames_refused: u64,
    /// What received frames were.
    pub classes: FrameClasses,
    /// Copies at ports where the frames do not belong, one of each frame at each port: what becomes of
    /// frames for everybody.
    #[serde(default)]
    pub frames_elsewhere: u64,
    /// When the first frame was due that did not arrive, after the counted part began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_ns_first: Option<u64>,
    /// The same of the last such frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_ns_last: Option<u64>,
    /// The longest time between two arrivals.
    #[serde(default)]
    pub silence_ns: u64,
}

/// Whether a count is 0, which records leave out.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The account of one port of the tester.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCount {
    /// Number of the port.
    pub port: u32,
    /// Interface or label.
    pub name: String,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received, of any class.
    pub frames_received: u64,
}

/// A distribution of times in nanoseconds. A percentile stands only where at least ten samples
/// lie above it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub ns_min: u64,
    /// Mean.
    pub ns_mean: f64,
    /// Median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_p50: Option<u64>,
    /// 90th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_p90: Option<u64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_p99: Option<u64>,
    /// 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_p999: Option<u64>,
    /// 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_p9999: Option<u64>,
    /// Largest.
    pub ns_max: u64,
    /// Between which times the percentiles above lie, by order statistics, where the samples bound them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<PercentileRange>,
    /// The whole histogram, a file under the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Two times between which a percentile lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PercentileRange {
    /// The percentile: 99.9.
    pub percentile: f64,
    /// The lower time.
    pub ns_low: u64,
    /// The upper time.
    pub ns_high: u64,
    /// Confidence that they reach, for independent samples.
    pub level_percent: f64,
}

/// Variation of the latency.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Smoothed mean deviation of RFC 3550 section 6.4.1 at the end of the trial.
    pub jitter_ns_rfc3550: f64,
    /// Packet delay variation of RFC 8219: 99.9th percentile less minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv_ns_p999: Option<u64>,
    /// Mean absolute difference of successive frames' latencies (RFC 3393).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_ns_mean: Option<f64>,
    /// Largest such difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_ns_max: Option<u64>,
    /// Differences between the latencies of frames that were sent one after the other, where they were
    /// asked for (RFC 8219 section 7.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_signed: Option<Differences>,
}

/// Differences in nanoseconds, below zero where the later frame was quicker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences {
    /// How many there were.
    pub count: u64,
    /// Smallest.
    pub ns_min: i64,
    /// Median.
    pub ns_p50: i64,
    /// Largest.
    pub ns_max: i64,
}

/// Who stamped received frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The program, after the frame had reached it.
    UserSpace,
    /// The kernel, when its stack received the frame.
    Kernel,
    /// A program at the interface, where the frame entered the host.
    XdpProgram,
    /// The network interface.
    Hardware,
    /// The simulation.
    Virtual,
    /// Whoever wrote the file that the frame came from.
    File,
}

impl ClockSource {
    /// The words for it.
    pub fn words(self) -> &'static str {
        match self {
            ClockSource::UserSpace => "the program",
            ClockSource::Kernel => "the kernel",
            ClockSource::XdpProgram => "an XDP program",
            ClockSource::Hardware => "the network interface",
            ClockSource::Virtual => "the simulation",
            ClockSource::File => "a capture file",
        }
    }
}

/// What is remarkable about a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The tester offered less than intended, or lost frames itself.
    TesterLimited,
    /// The trial or search did not follow its rules to the end.
    Irregular,
    /// The tester stood still long enough to disturb latencies.
    Stall,
    /// Load was raised step by step before counting.
    Ramped,
    /// The trial was cut short.
    Interrupted,
    /// The target's caches were not filled when the trial began.
    NotWarm,
    /// The tester disturbed a step of a search, which was done again: it decided nothing.
    Repeated,
    /// The tester disturbed it as it had disturbed its repetitions: what was lost may be its doing. Of
    /// a result: it rests on such a trial.
    Disturbed,
}

/// A counter of the target around a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterChange {
    /// The target's name for it.
    pub name: String,
    /// Value before.
    pub before: u64,
    /// Value after.
    pub after: u64,
}

/// Processor time of one thread, process or core while sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Whose.
    pub name: String,
    /// The core that it was pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Share of one core's time, 0 to 1 for one thread.
    pub busy_ratio: f64,
}

/// What polling threads did over a whole trial, uncounted warm-up included. Cycles are those of
/// the time-stamp counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Spent on frames.
    pub cycles_busy: u64,
    /// Spent on looking for frames in vain.
    pub cycles_idle: u64,
    /// Frames taken.
    pub frames: u64,
}

/// What a controller had a target do during a trial, and how that went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// What it was.
    pub deed: Deed,
    /// Flow-mods that were answered for.
    pub flow_mods: u64,
    /// Barriers, commits and whole statistics replies that came.
    pub answers: u64,
    /// Entries that statistics told of.
    pub rows: u64,
    /// Bytes of all answers.
    pub bytes: u64,
    /// From the first byte sent to the last answer.
    pub duration_ns: u64,
    /// From the first byte sent to the first answer or its first part; absent if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// Errors that the target sent.
    pub errors: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Orders {
    /// Flow-mods done in a second; absent if there were none.
    pub fn flow_mods_per_s(&self) -> Option<f64> {
        per_second(self.flow_mods, self.duration_ns).filter(|_| self.flow_mods > 0)
    }

    /// Entries told of in a second; absent if there were none.
    pub fn rows_per_s(&self) -> Option<f64> {
        per_second(self.rows, self.duration_ns).filter(|_| self.rows > 0)
    }
}

/// What a controller has a target do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Add entries.
    Add,
    /// Give entries other actions, each named with its match and priority.
    Modify,
    /// Delete entries, each named so.
    Delete,
    /// Add entries and delete them again.
    Change,
    /// Tell of entries and their counters.
    Tell,
}

impl Deed {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Deed::Add => "added",
            Deed::Modify => "modified",
            Deed::Delete => "deleted",
            Deed::Change => "changed",
            Deed::Tell => "told of",
        }
    }
}

/// Memory of a target's processes around a trial: resident pages, huge ones counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Before it.
    pub bytes_before: u64,
    /// After it.
    pub bytes_after: u64,
    /// Flows that the target came to know meanwhile.
    pub flows: u64,
}

impl Memory {
    /// How much each flow took; absent if there were none.
    pub fn bytes_per_flow(&self) -> Option<f64> {
        let growth = self.bytes_after as f64 - self.bytes_before as f64;
        (self.flows > 0).then(|| growth / self.flows as f64)
    }
}

/// A result that took several trials to find.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    pub target: String,
    /// The link over which it was found, where the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Which repeat of the whole search, from 1.
    pub repeat: u32,
    /// Where on the experiment's axis it lies.
    pub point: Point,
    /// What was found.
    pub metric: super::Metric,
    /// Its value in the metric's unit.
    pub value: f64,
    /// The true value lies within so much of it, as far as the way of looking goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// On which side it only bounds the true value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<super::Bound>,
    /// The trials that it rests on.
    pub trials: Vec<u64>,
    /// What is remarkable about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The goal, where the search had several, and its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalResult>,
}
