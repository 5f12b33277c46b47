//! The stored form of a run: its parameters, measurements and derived values.
//!
//! This is schema version 2; `docs/record-schema.md` describes every field. All stored types are
//! declared here and in the submodules. Invariants:
//!
//! - Every number has its unit in its name: rates in frames per second, times in nanoseconds, sizes
//!   in bytes with the frame check sequence included.
//! - A value that was not measured is absent, never zero.
//! - Derived values (cells, ratios, claims, warnings) can be recomputed from the trials alone.

pub mod assignment;
pub mod schema1;
mod bundle;
mod campaign;
mod environment;
mod trial;
mod cell;
mod clock;
mod goal;
mod metric;
mod module;
mod name;
mod quality;
mod results;
mod sent;
mod stalls;
mod warning;
mod wire;
mod snmp;
pub mod links;
pub mod number;
pub mod target_name;

pub use bundle::Bundle;
pub use campaign::{Campaign, CampaignStep};
pub use cell::{
    Answer, Cell, Claim, ClaimVerdict, Interval, IntervalMethod, LEVEL_PERCENT, LEVEL_PERCENT_HIGH,
    Limit, Published, Ratio, Relation, Verdict,
};
pub use clock::{ClockFacts, ClockReference};
pub use environment::{
    Calibration, ControllerCeiling, CoreGaps, Effort, Environment, Experiment, IMPLEMENTATION,
    Implementation, MODEL, MODEL_MODE, MODEL_STUDIES, PROCESSOR, Show, ShowRange, Target,
    Technology, Tool,
};
pub use goal::{GOALS, GoalResult, Remark, metric_of_goal};
pub use metric::Metric;
pub use module::{Ended, Measured, ModuleRun, SERIES_POINTS_MAX, Series};
pub use name::{NAME_BYTES_MAX, NAMES_MAX, Name, NameProblem};
pub use quality::{Bound, BoundCause, BoundSide, Disturbance, DisturbanceCause, Exclusion, Reason};
pub use results::Results;
pub use sent::{
    ProtocolCount, ReceivedReplay, SendAccuracy, Sent, SentPort, SentReplay, SentStream,
};
pub use snmp::{SnmpInterface, SnmpReport};
pub use stalls::Stalls;
pub use trial::{
    ClockSource, ControllerCommand, ControllerLoad, CounterChange, CpuUse, Differences,
    Distribution, Drop, DropPlace, Flag, FrameClasses, Jitter, Memory, Outcome, PercentileRange,
    Point, PollingWork, PortCount, RING_TO_TESTER_FULL, Role, StreamCount, Trial, TrialLine,
    Within,
};
pub use warning::{Warning, WarningEntry, gathered};
pub use wire::Wire;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The schema version that this code writes. It also reads [schema 1](schema1).
pub const SCHEMA: u32 = 2;

/// One run of planimeter: `record.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// The program that measured.
    pub tool: Tool,
    /// Start of the run, RFC 3339.
    pub created: String,
    /// The command that repeats the run, as one shell line.
    pub command_line: String,
    /// Seed of all random choices in the run.
    pub seed: u64,
    /// Measurement effort: repeats and trial duration.
    pub effort: Effort,
    /// Whether the run ended before all planned trials ran.
    pub partial: bool,
    /// The error that ended the run early, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Number of planned trials, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_planned: Option<u64>,
    /// The link between tester and targets: `memory`, `veth:afpacket`... If the targets have
    /// different links, this lists all of them, separated by commas, and each target names its own.
    pub link: String,
    /// The machine that the run used.
    pub environment: Environment,
    /// Parameters of the run, given or default.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// Measurements of the tester without a target.
    #[serde(default)]
    pub calibrations: Vec<Calibration>,
    /// The devices under test. Ratios refer to the first one.
    #[serde(default)]
    pub targets: Vec<Target>,
    /// The experiments of the run.
    #[serde(default)]
    pub experiments: Vec<Experiment>,
    /// All trials, in the order in which they ran. In a run's folder, `trials.jsonl` has them.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// Results that required several trials, such as a search. In a run's folder, `trials.jsonl` has
    /// them.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// Derived: the value of each metric for each target and point, with its interval.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// Derived: each target compared with the first, from interleaved pairs.
    #[serde(default)]
    pub ratios: Vec<Ratio>,
    /// Values printed in the study, if any.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Statements of the study and their verdicts.
    #[serde(default)]
    pub claims: Vec<ClaimVerdict>,
    /// Derived: warnings that apply to the values.
    #[serde(default)]
    pub warnings: Vec<WarningEntry>,
}

impl Record {
    /// Returns the target with this name.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// Returns the cells of one experiment, target and metric, ordered by point.
    pub fn cells_of<'a>(
        &'a self,
        experiment: &'a str,
        target: &'a str,
        metric: Metric,
    ) -> impl Iterator<Item = &'a Cell> + 'a {
        self.cells.iter().filter(move |cell| {
            cell.experiment == experiment && cell.target == target && cell.metric == metric
        })
    }

    /// Number of trials in the record, in any role, including interrupted ones.
    pub fn trials_ended(&self) -> usize {
        self.trials.len()
    }

    /// Trials with complete frame accounting: all except interrupted ones, which do not wait for
    /// their last frames.
    pub fn trials_accounted(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| !trial.flags.contains(&Flag::Interrupted))
    }

    /// Whether any result is limited by the tester or irregular, or the run is unusable. `--strict`
    /// rejects such a run.
    pub fn is_doubtful(&self) -> bool {
        let doubtful = |warning: &Warning| warning.makes_doubtful();
        let is_disturbed =
            |cell: &Cell| matches!(cell.exclusion, Some(Exclusion::RunDisturbed { .. }));
        self.cells.iter().any(is_disturbed)
            || self.warnings.iter().any(|notice| doubtful(&notice.warning))
            || self.cells.iter().any(|cell| cell.warnings.iter().any(doubtful))
    }
}
