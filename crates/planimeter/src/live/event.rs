//! What happens in a run, for those who watch it.
//!
//! These are no results and stand in no record: they say what is being done, and what can be seen of it so far.

use instrument::search::bracket::Bracket;
use results::record::Flag;
use serde::{Deserialize, Serialize};

use super::picture::Picture;

/// An event and when it was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// Events that were lost so far, because whoever tells them came too late.
    #[serde(default)]
    pub lost: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins.
    Begun(Box<Begun>),
    /// It is known how much there is to do.
    Planned {
        /// Trials in all.
        trials: u64,
        /// Trials that an earlier attempt did.
        done: u64,
        /// Seconds that a trial takes, about.
        trial_s: f64,
    },
    /// A trial begins.
    Trial(Box<TrialBegun>),
    /// A search goes on within a trial, as modules do it.
    Searching(Box<Bracket>),
    /// Frames pass.
    Rates(Rates),
    /// A trial ended.
    Ended(TrialEnded),
    /// Something is to be known.
    Said {
        /// One line.
        line: String,
    },
    /// The run still goes on.
    Beat,
    /// The run is over.
    Over {
        /// Whether it ended early.
        partial: bool,
        /// Why it failed, if it did.
        failure: Option<String>,
    },
    /// What all before came to: who reads this needs nothing before it.
    Picture {
        /// See there.
        picture: Box<Picture>,
    },
}

/// What is going to be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The command that repeats the run.
    pub command_line: String,
    /// When it began, RFC 3339.
    pub created: String,
    /// Experiments.
    pub experiments: Vec<String>,
    /// Targets in their order.
    pub targets: Vec<Standing>,
    /// The process that measures.
    pub process: u32,
    /// Whether time is virtual, and rates are in a second of that.
    #[serde(default)]
    pub is_virtual: bool,
}

/// A target and how it is joined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// What it is: `OpenFlow switch`.
    pub is: String,
    /// The link.
    pub link: String,
    /// The switches of a network, where it is one, and what joins them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Joined>,
}

/// A network's switches by number, and what joins them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Names.
    pub switches: Vec<String>,
    /// Switch and port at either end.
    pub links: Vec<[(usize, u32); 2]>,
    /// What the instrument's ports are joined to.
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
    /// Where on the experiment's axis: `frame_bytes=64`.
    pub point: String,
    /// What it is for, where several goals are looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Frames per second that are to be offered in all; absent where a module decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_pps: Option<f64>,
    /// About how long it takes, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How far searches have come of which it is a step: one, or one for each goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brackets: Vec<Bracket>,
}

/// What passed since the last time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// By port, frames per second that left and that came.
    pub ports: Vec<[u64; 2]>,
    /// Latencies of this trial so far: [steps](instrument::gauge::step_ns) and how many, where there are any.
    pub latencies: Vec<(usize, u64)>,
}

/// A trial that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialEnded {
    /// Its number.
    pub id: u64,
    /// What came of it.
    pub line: String,
    /// What is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A flag of a trial for whoever watches, where it is a warning.
pub fn warning(flag: Flag) -> Option<&'static str> {
    match flag {
        Flag::TesterLimited => Some("limited by the tester"),
        Flag::Irregular => Some("irregular"),
        Flag::Stall => Some("the tester stood still meanwhile"),
        Flag::NotWarm => Some("the target's caches were not filled"),
        Flag::Repeated => Some("disturbed by the tester, is done again"),
        Flag::Disturbed => Some("disturbed by the tester, as its repetitions were"),
        Flag::Ramped | Flag::Interrupted => None,
    }
}
