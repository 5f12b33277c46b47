//! One trial: its load, the fate of its frames and their latency.
//!
//! Source: RFC 2544 section 23 (phases of a trial), RFC 2285 (intended, offered and forwarded
//! load), RFC 8219 (jitter).
//!
//! Invariant: over the whole trial, frames offered = frames received + drops by place and reason +
//! unexplained, exactly. The uncounted warm-up is included, because a target counts those frames
//! too.

use serde::{Deserialize, Serialize};

use super::{GoalResult, ModuleRun, SnmpReport, Stalls};

/// Drop reason of a target whose shared-memory ring to the tester is full, because the tester has
/// not taken the last frames.
pub const RING_TO_TESTER_FULL: &str = "ring_to_tester_full";

/// A line of `trials.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)]
pub enum TrialLine {
    /// A completed trial.
    Trial(Trial),
    /// A result that required several trials.
    Outcome(Outcome),
}

/// One trial: an offered load for a given duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number of the trial in its run, from 1.
    pub id: u64,
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub target: String,
    /// Number of the repeat of this point, from 1. Trials with the same repeat number are
    /// interleaved.
    pub repeat: u32,
    /// Purpose of the trial.
    pub role: Role,
    /// Position on the experiment's axis.
    pub point: Point,
    /// Frame size, frame check sequence included; absent for mixed sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u32>,
    /// Intended load, sum of all streams.
    pub rate_pps_intended: f64,
    /// Frames in the schedule.
    pub frames_intended: u64,
    /// Frames actually sent.
    pub frames_offered: u64,
    /// Bytes of the offered frames, frame check sequence included.
    pub bytes_offered: u64,
    /// Frames received at the expected port, in any order, each counted once.
    pub frames_forwarded: u64,
    /// Bytes of the forwarded frames, frame check sequence included.
    pub bytes_forwarded: u64,
    /// Intended sending time.
    pub duration_ns_intended: u64,
    /// Duration of the warm-up traffic before the counted part.
    pub duration_ns_warmup: u64,
    /// Time spent waiting for frames in flight after the last frame was sent.
    pub duration_ns_drain: u64,
    /// Actual time from the first scheduled frame to the end of the last frame's slot.
    pub duration_ns_effective: u64,
    /// Time from the first to the last received frame, drain included; absent if no frame arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns_receiving: Option<u64>,
    /// Received frames by class.
    pub classes: FrameClasses,
    /// Frame accounting: frames sent, warm-up included.
    pub account_frames_offered: u64,
    /// Frame accounting: distinct frames received on any port and in any class, warm-up included.
    pub account_frames_received: u64,
    /// Frames lost for a known reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Offered frames that are unaccounted for. Negative if more frames were received than sent.
    pub frames_unexplained: i64,
    /// Frame accounting per stream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamCount>,
    /// Frame accounting per tester port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCount>,
    /// Latency from the actual send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// Latency from the scheduled send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_scheduled: Option<Distribution>,
    /// Latency variation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Absolute difference between scheduled and actual send times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Distribution>,
    /// Times when the tester was descheduled; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// Source of the receive timestamps.
    pub clock: ClockSource,
    /// Id of the calibration that gives this trial's bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// Seed of this trial.
    pub seed: u64,
    /// Conditions that affect the trial's validity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// The target's own counters before and after the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterChange>,
    /// CPU time used while sending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuUse>,
    /// Work of the target's polling threads, if the target reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<PollingWork>,
    /// Control operations during the trial. A trial without frames consists only of these.
    #[serde(rename = "controller_load", default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<ControllerLoad>,
    /// Actions and results of a measurement module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<ModuleRun>,
    /// Counters from an SNMP agent, if one was queried.
    #[serde(rename = "snmp", default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<SnmpReport>,
    /// Memory of the target's processes, if readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Resident memory of the target's processes after the trial, huge pages included, if readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// In a search with several goals, the goal that this trial was chosen for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
}

impl Trial {
    /// Actual offered load in frames per second; absent for a trial without duration.
    pub fn rate_pps_offered(&self) -> Option<f64> {
        per_second(self.frames_offered, self.duration_ns_effective)
    }

    /// Forwarding rate in frames per second: frames received at the expected port, divided by the
    /// longer of sending and receiving time. Frames still queued when sending ends therefore do not
    /// raise the rate.
    pub fn rate_pps_forwarded(&self) -> Option<f64> {
        per_second(self.frames_forwarded, self.duration_ns_forwarding())
    }

    /// Offered load in bit/s at the link layer, with frame check sequence, without preamble and
    /// gap.
    pub fn rate_bps_offered(&self) -> Option<f64> {
        per_second(self.bytes_offered, self.duration_ns_effective).map(|rate| rate * 8.0)
    }

    /// Forwarding rate in bit/s at the link layer.
    pub fn rate_bps_forwarded(&self) -> Option<f64> {
        per_second(self.bytes_forwarded, self.duration_ns_forwarding()).map(|rate| rate * 8.0)
    }

    /// Share of the offered frames that did not arrive at the expected port, 0 to 1. Absent if no
    /// frames were offered. Negative if more frames were received than sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.frames_offered > 0)
            .then(|| 1.0 - self.frames_forwarded as f64 / self.frames_offered as f64)
    }

    /// Offered frames that were neither received nor counted as drops.
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

/// Purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Its values are results.
    Measure,
    /// Fills caches. Its values are stored but not used.
    WarmUp,
    /// A step of a search.
    Search,
    /// Finds the maximum forwarding rate, to which the loads of other trials are relative.
    Maximum,
    /// Confirms the result of a search. Its values are results.
    Confirm,
    /// Helps classify a load for the goals of a search. Its frames are accounted for, but its
    /// values are not results.
    Bound,
    /// Measures the tester without a target.
    Calibrate,
}

/// Position of a trial on its experiment's axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The variable, with its unit in the name.
    pub name: String,
    /// Value of the variable.
    pub value: f64,
    /// A second variable, if the experiment has several curves per target.
    #[serde(rename = "series", default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
}

/// The curve that a point belongs to, if an experiment has several curves per target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The variable that distinguishes the curves, with its unit in the name.
    pub name: String,
    /// Its value on this curve.
    pub value: f64,
}

impl Point {
    /// Creates a point of an experiment with one variable.
    pub fn new(name: impl Into<String>, value: f64) -> Point {
        Point { name: name.into(), value, within: None }
    }

    /// Puts the point on the curve with `name` = `value`.
    #[must_use]
    pub fn within(self, name: impl Into<String>, value: f64) -> Point {
        Point { within: Some(Within { name: name.into(), value }), ..self }
    }

    /// Orders points by value, then by name, then by curve.
    pub fn order(&self, other: &Point) -> std::cmp::Ordering {
        let curve = |a: &Within, b: &Within| a.name.cmp(&b.name).then(a.value.total_cmp(&b.value));
        let curves = match (&self.within, &other.within) {
            (Some(a), Some(b)) => curve(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        self.value.total_cmp(&other.value).then(self.name.cmp(&other.name)).then(curves)
    }
}

/// Received frames by class. Each received frame belongs to exactly one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameClasses {
    /// At the expected port, in order, with the expected header.
    pub correct: u64,
    /// At an unexpected port.
    pub misrouted: u64,
    /// A copy at an unexpected port of a frame that also arrived at the expected port.
    pub flooded: u64,
    /// Received before at the same port.
    pub duplicate: u64,
    /// At the expected port, after a frame that was sent later.
    pub reordered: u64,
    /// A frame of the tester with unexpected changes.
    pub corrupt: u64,
    /// Not a frame of the tester.
    pub foreign: u64,
}

/// Frames dropped in one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drop {
    /// The component that dropped them.
    pub place: DropPlace,
    /// The part of the component: a port, a queue.
    pub at: String,
    /// Reason for the drop.
    pub reason: String,
    /// Number of dropped frames.
    pub frames: u64,
}

/// The component that dropped a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropPlace {
    /// The device under test, according to its own counters.
    Target,
    /// The operating system between tester and target.
    Kernel,
    /// The link between them, by intention.
    Link,
    /// The tester.
    Tester,
}

impl DropPlace {
    /// Name of the component.
    pub fn word(self) -> &'static str {
        match self {
            DropPlace::Target => "target",
            DropPlace::Kernel => "kernel",
            DropPlace::Link => "link",
            DropPlace::Tester => "tester",
        }
    }
}

/// Frame accounting of one stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamCount {
    /// Number of the stream.
    pub stream: u32,
    /// Tester port that sends the stream.
    pub port_out: u32,
    /// Tester port that should receive the stream.
    pub port_in: u32,
    /// Intended load.
    pub rate_pps_intended: f64,
    /// Frames in the schedule.
    pub frames_intended: u64,
    /// Frames actually sent.
    pub frames_offered: u64,
    /// Offered frames that the operating system or the link rejected after the tester's port
    /// accepted them, so that they never reached the target. Streams that share a port share the
    /// port's count.
    #[serde(default, skip_serializing_if = "is_none")]
    pub frames_refused: u64,
    /// Received frames by class.
    pub classes: FrameClasses,
    /// Copies at unexpected ports, at most one per frame and port, as flooding produces.
    #[serde(default)]
    pub frames_wrong_port: u64,
    /// Scheduled time of the first lost frame, from the start of the counted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_ns_first: Option<u64>,
    /// Scheduled time of the last lost frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_ns_last: Option<u64>,
    /// Longest time between two arrivals.
    #[serde(default)]
    pub gap_ns_max: u64,
}

/// Whether a count is 0; records omit such a count.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Frame accounting of one tester port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCount {
    /// Number of the port.
    pub port: u32,
    /// Interface name or label.
    pub name: String,
    /// Frames sent.
    pub frames_sent: u64,
    /// Frames received, of any class.
    pub frames_received: u64,
}

/// A distribution of times in nanoseconds. A percentile is present only if at least ten samples
/// exceed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples.
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
    /// Intervals of the percentiles above from order statistics, if there are enough samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<PercentileRange>,
    /// File with the whole histogram, in the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Confidence interval of a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PercentileRange {
    /// The percentile, for example 99.9.
    pub percentile: f64,
    /// Lower end.
    pub ns_low: u64,
    /// Upper end.
    pub ns_high: u64,
    /// Confidence level of the interval for independent samples.
    pub level_percent: f64,
}

/// Latency variation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Smoothed mean deviation of RFC 3550 section 6.4.1 at the end of the trial.
    pub jitter_ns_rfc3550: f64,
    /// Packet delay variation of RFC 8219: 99.9th percentile minus minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv_ns_p999: Option<u64>,
    /// Mean absolute latency difference of successive frames (RFC 3393).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_ns_mean: Option<f64>,
    /// Largest such difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_ns_max: Option<u64>,
    /// Signed latency differences of frames sent in succession, if requested (RFC 8219 section
    /// 7.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_signed: Option<Differences>,
}

/// Latency differences in nanoseconds. Negative if the later frame had the lower latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differences {
    /// Number of differences.
    pub count: u64,
    /// Smallest.
    pub ns_min: i64,
    /// Median.
    pub ns_p50: i64,
    /// Largest.
    pub ns_max: i64,
}

/// Source of the receive timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The tester's process, after it received the frame.
    UserSpace,
    /// The kernel, when its network stack received the frame.
    Kernel,
    /// An XDP program at the interface where the frame entered the host.
    XdpProgram,
    /// The network interface.
    Hardware,
    /// The simulation.
    Virtual,
    /// The writer of the capture file that contains the frame.
    File,
}

impl ClockSource {
    /// Text for display.
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

/// A condition that affects a trial's validity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The tester offered less than intended, or dropped frames itself.
    TesterLimited,
    /// The trial or search did not complete according to its method.
    Irregular,
    /// The tester was descheduled long enough to disturb latencies.
    Stall,
    /// The load was increased in steps before counting.
    Ramped,
    /// The trial was interrupted.
    Interrupted,
    /// The target's caches were not full when the trial began.
    ColdCaches,
    /// The tester disturbed this step of a search. The step was repeated and not used.
    Retried,
    /// The tester disturbed this trial and all its repetitions, so the tester may have caused the
    /// loss. For a result: it depends on such a trial.
    TesterInterference,
}

/// A counter of the target before and after a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterChange {
    /// The target's name for the counter.
    pub name: String,
    /// Value before.
    pub before: u64,
    /// Value after.
    pub after: u64,
}

/// CPU time of one thread, process or core while sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Name of the thread, process or core.
    pub name: String,
    /// The core that the thread is pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Share of one core's time; 0 to 1 for one thread.
    pub busy_ratio: f64,
}

/// Work of polling threads over a whole trial, uncounted warm-up included. Cycles are time-stamp
/// counter cycles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollingWork {
    /// Cycles spent on frames.
    pub cycles_busy: u64,
    /// Cycles spent on polls that returned no frame.
    pub cycles_idle: u64,
    /// Frames processed.
    pub frames: u64,
}

/// Control operations during a trial, and their outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerLoad {
    /// Kind of operation.
    pub command: ControllerCommand,
    /// Flow-mods that the target confirmed.
    pub flow_mods: u64,
    /// Barrier replies, commit replies and complete statistics replies.
    pub answers: u64,
    /// Flow entries in statistics replies.
    pub rows: u64,
    /// Bytes of all replies.
    pub bytes: u64,
    /// From the first byte sent to the last reply.
    pub duration_ns: u64,
    /// From the first byte sent to the first reply or its first part; absent if there was no reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ns: Option<u64>,
    /// Number of error messages from the target.
    pub errors: u64,
    /// The first error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ControllerLoad {
    /// Completed flow-mods per second; absent if there were none.
    pub fn flow_mods_per_s(&self) -> Option<f64> {
        per_second(self.flow_mods, self.duration_ns).filter(|_| self.flow_mods > 0)
    }

    /// Reported flow entries per second; absent if there were none.
    pub fn rows_per_s(&self) -> Option<f64> {
        per_second(self.rows, self.duration_ns).filter(|_| self.rows > 0)
    }
}

/// Kind of control operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControllerCommand {
    /// Add flow entries.
    Add,
    /// Modify the actions of flow entries, selected by match and priority.
    Modify,
    /// Delete flow entries, selected by match and priority.
    Delete,
    /// Add flow entries, then delete them.
    AddDelete,
    /// Request flow statistics.
    FlowStats,
}

impl ControllerCommand {
    /// Name of the operation.
    pub fn word(self) -> &'static str {
        match self {
            ControllerCommand::Add => "added",
            ControllerCommand::Modify => "modified",
            ControllerCommand::Delete => "deleted",
            ControllerCommand::AddDelete => "changed",
            ControllerCommand::FlowStats => "reported",
        }
    }
}

/// Resident memory of a target's processes before and after a trial, huge pages included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Memory before the trial.
    pub bytes_before: u64,
    /// Memory after the trial.
    pub bytes_after: u64,
    /// New flows that the target stored during the trial.
    pub flows: u64,
}

impl Memory {
    /// Memory per flow; absent if there were no flows.
    pub fn bytes_per_flow(&self) -> Option<f64> {
        let growth = self.bytes_after as f64 - self.bytes_before as f64;
        (self.flows > 0).then(|| growth / self.flows as f64)
    }
}

/// A result that required several trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment's id.
    pub experiment: String,
    /// The target's name.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub target: String,
    /// The link, if the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Number of the repeat of the whole search, from 1.
    pub repeat: u32,
    /// Position on the experiment's axis.
    pub point: Point,
    /// The metric.
    pub metric: super::Metric,
    /// Value in the metric's unit.
    pub value: f64,
    /// Resolution of the search: the true value differs by at most this much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// Which side of the true value this bounds, if it is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<super::Bound>,
    /// Ids of the trials that the result uses.
    pub trials: Vec<u64>,
    /// Conditions that affect the result's validity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// In a search with several goals, the goal and its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalResult>,
}
