//! Events of a run, for watchers.
//!
//! Events are not results and are not part of the record: they describe current activity and its
//! visible progress.

use record::Flag;
use serde::{Deserialize, Serialize};
use tester::search::bracket::Bracket;

use super::state::RunState;

/// An event and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Events lost so far because the writer fell behind.
    #[serde(default)]
    pub lost: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins.
    Begun(Box<RunStarted>),
    /// The amount of work is known.
    Planned {
        /// Trials in all.
        trials: u64,
        /// Trials that an earlier attempt ran.
        done: u64,
        /// Estimated duration of the other trials, by experiment and target.
        parts: Vec<PlannedPart>,
    },
    /// A trial begins.
    Trial(Box<TrialBegun>),
    /// A search within a trial advances, as in modules.
    Searching(Box<Bracket>),
    /// Current rates.
    Rates(Rates),
    /// A trial ended.
    Ended(TrialEnded),
    /// A remark.
    Said {
        /// One line.
        line: String,
    },
    /// The run is still active.
    Beat,
    /// The run has ended.
    Over {
        /// Whether it ended early.
        partial: bool,
        /// Why it failed, if it did.
        failure: Option<String>,
    },
    /// The state from all earlier events; a reader that starts here needs none of them.
    Picture {
        /// The state.
        picture: Box<RunState>,
    },
}

/// Trials of an experiment on a target that have not run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedPart {
    /// The experiment.
    pub experiment: String,
    /// The target.
    pub target: String,
    /// Estimated duration of all of them, in seconds.
    pub seconds: f64,
    /// Estimated mean duration of a trial, in seconds.
    pub trial_s: f64,
}

/// Start of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The command that repeats the run.
    pub command_line: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// Experiments.
    pub experiments: Vec<String>,
    /// Targets in their order.
    pub targets: Vec<TargetStatus>,
    /// The measuring process.
    pub process: u32,
    /// Whether time is virtual; rates are then in virtual seconds.
    #[serde(default)]
    pub is_virtual: bool,
}

/// A target and its link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetStatus {
    /// Its name.
    pub name: String,
    /// Its description: `OpenFlow switch`.
    pub is: String,
    /// The link.
    pub link: String,
    /// The switches and links of a network, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkWiring>,
}

/// A network's switches by number, and their links.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkWiring {
    /// Names.
    pub switches: Vec<String>,
    /// Switch and port at either end.
    pub links: Vec<[(usize, u32); 2]>,
    /// The switch ports that the tester's ports connect to.
    pub instrument: Vec<(usize, u32)>,
}

/// A trial that begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialBegun {
    /// Its number.
    pub id: u64,
    /// The experiment.
    pub experiment: String,
    /// The target.
    pub target: String,
    /// Point on the experiment's axis: `frame_bytes=64`.
    pub point: String,
    /// Its goal, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Intended load in frames per second, over all streams; absent where a module decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps: Option<f64>,
    /// Approximate duration, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Progress of the searches that it is a step of: one, or one for each goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brackets: Vec<Bracket>,
}

/// Traffic since the last such event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Frames per second sent and received, by port.
    pub ports: Vec<[u64; 2]>,
    /// Latencies of this trial so far: [steps](tester::gauge::step_ns) and their counts, if
    /// there are any.
    pub latencies: Vec<(usize, u64)>,
}

/// A trial that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialEnded {
    /// Its number.
    pub id: u64,
    /// Its result.
    pub line: String,
    /// Warnings about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Returns the warning for a trial's flag, if it is one.
pub fn warning(flag: Flag) -> Option<&'static str> {
    match flag {
        Flag::TesterLimited => Some("limited by the tester"),
        Flag::Irregular => Some("irregular"),
        Flag::Stall => Some("the tester was descheduled"),
        Flag::ColdCaches => Some("the target's caches were not filled"),
        Flag::Retried => Some("disturbed by the tester, repeated"),
        Flag::TesterInterference => Some("disturbed by the tester, like its repetitions"),
        Flag::Ramped | Flag::Interrupted => None,
    }
}
