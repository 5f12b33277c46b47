//! Actions and results of a measurement module in one trial.
//!
//! Source: the OFLOPS-SUME paper, section III (modules over control and data channels). Invariants:
//!
//! - A value has its accuracy next to it.
//! - A module that ended early is marked with the cause, and its results up to then are stored.

use serde::{Deserialize, Serialize};

use super::{Bound, Metric, Wire};

/// Maximum number of points in a series.
pub const SERIES_POINTS_MAX: usize = 8192;

/// A module's part of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModuleRun {
    /// The module's name.
    pub module: String,
    /// How it ended.
    pub ended: Ended,
    /// From its start to its end.
    pub duration_ns: u64,
    /// Single values.
    #[serde(default)]
    pub measured: Vec<Measured>,
    /// Values over a variable: time, or flow entries in the order in which they were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// OpenFlow messages that it sent.
    pub messages_sent: u64,
    /// OpenFlow messages that it received.
    pub messages_received: u64,
    /// Received messages that were errors.
    pub errors_received: u64,
    /// Events that it received.
    pub events: u64,
    /// Total time that it took to process events. The tester does nothing else during that time.
    pub reaction_ns: u64,
    /// The longest of these times.
    pub reaction_ns_longest: u64,
    /// Median duration of a turn of the tester's loop.
    #[serde(default)]
    pub turn_ns_p50: u64,
    /// 99th percentile of that duration: a message may wait this long before it is read.
    #[serde(default)]
    pub turn_ns_p99: u64,
    /// Notes of the module, such as events that it could not observe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its captured control channels, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Its log, a file in the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// How a module ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It reported that it had finished.
    Completed,
    /// It reached a limit (which).
    Limit(String),
    /// It lost a connection that it needed (why).
    Lost(String),
    /// It failed (how).
    Failed(String),
}

/// A single value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The metric.
    pub metric: Metric,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Resolution: the true value differs by at most this much, for example by the time between two
    /// probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// Which side of the true value this bounds, if it is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Number of samples.
    pub count: u64,
}

/// Values over a variable, at most [`SERIES_POINTS_MAX`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the values, with the unit.
    pub name: String,
    /// Name of the variable, with the unit.
    pub over: String,
    /// Pairs of variable and value.
    pub points: Vec<[f64; 2]>,
}
