//! What a measurement module did and found in one trial.
//!
//! Source: the OFLOPS-SUME paper, section III (modules over control and data channels). Invariants: a
//! value stands beside how well it is known; a module that ended before it said so is told apart by
//! what ended it, and what it had seen by then is kept.

use serde::{Deserialize, Serialize};

use super::{Bound, Metric, Wire};

/// Points of one series.
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
    /// Values over something: time, rules in the order in which they were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// OpenFlow messages that it sent.
    pub messages_sent: u64,
    /// OpenFlow messages that came.
    pub messages_received: u64,
    /// Those of them that were errors.
    pub errors_received: u64,
    /// Events that it was told of.
    pub events: u64,
    /// Time that it took to react to them, all together: the tester does nothing else meanwhile.
    pub react_ns: u64,
    /// The longest of these times.
    pub react_ns_longest: u64,
    /// Half of the time, a turn of the tester's loop was no longer than this...
    #[serde(default)]
    pub turn_ns_p50: u64,
    /// ...and 99 % of the time no longer than this, for which what came may have waited before it was read.
    #[serde(default)]
    pub turn_ns_p99: u64,
    /// What it has to say for itself, such as what could not be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its control channels on the wire, where they were captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Its log, a file under the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// How a module ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It said that it was finished.
    Said,
    /// A limit was reached: its name.
    Limit(String),
    /// A connection that it needed was lost: why.
    Lost(String),
    /// It failed: how.
    Failed(String),
}

/// A value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What it is.
    pub metric: Metric,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The true value lies within so much of it, as far as the way of looking goes: the time between
    /// two probes, for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// On which side it only bounds the true value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Samples that it rests on.
    pub count: u64,
}

/// Values over something, at most [`SERIES_POINTS_MAX`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What the values are, with the unit in the name.
    pub name: String,
    /// What they lie over, with the unit in the name.
    pub over: String,
    /// Pairs: over what, and the value.
    pub points: Vec<[f64; 2]>,
}
