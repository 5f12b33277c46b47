//! The stored form of a run: everything that was asked, measured and derived, in one value.
//!
//! This is schema version 1, described field by field in `docs/record-schema.md`. Stored types
//! are declared here and in the files below, and nowhere else. Invariants: every number carries
//! its unit in its name (rates in frames per second, times in nanoseconds, sizes in bytes with the
//! frame check sequence counted); a value that was not measured is absent, never zero; what is
//! derived (cells, ratios, claims, warnings) can be recomputed from the trials alone.

mod bundle;
mod campaign;
mod environment;
mod trial;
mod cell;
mod clock;
mod goal;
mod metric;
mod module;
mod named;
mod quality;
mod results;
mod sent;
mod stalls;
mod warning;
mod wire;
mod witness;
#[cfg(test)]
mod tests;

pub use bundle::Bundle;
pub use campaign::{Campaign, CampaignStep};
pub use cell::{
    Answer, Cell, Claim, ClaimVerdict, Interval, IntervalMethod, Limit, Published, Ratio, Relation,
    Verdict,
};
pub use clock::{ClockFacts, ClockReference};
pub use environment::{
    Calibration, ControllerCeiling, CoreGaps, Effort, Environment, Experiment, IMPLEMENTATION,
    Implementation, MODEL, MODEL_MODE, MODEL_STUDIES, PROCESSOR, Show, Target, Technology, Tool,
};
pub use goal::{GOALS, GoalResult, Remark, metric_of_goal};
pub use metric::Metric;
pub use module::{Ended, Measured, ModuleRun, SERIES_POINTS_MAX, Series};
pub use named::{NAME_BYTES_MAX, NAMES_MAX, Name, NameProblem};
pub use quality::{Bound, BoundCause, BoundSide, Disturbance, DisturbanceCause, Exclusion, Reason};
pub use results::Results;
pub use sent::{Kept, ProtocolCount, Sent, SentBack, SentPort, SentReplay, SentStream};
pub use stalls::Stalls;
pub use trial::{
    ClockSource, CounterChange, CpuUse, Deed, Differences, Distribution, Drop, DropPlace, Flag,
    FrameClasses, Jitter, Line, Memory, Orders, Outcome, PercentileRange, Point, PortCount, Role,
    StreamCount, Trial, Within, Work,
};
pub use warning::{Notice, Warning, gathered};
pub use wire::Wire;
pub use witness::{Seen, Witness};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the schema that this code writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// One run of planimeter: `record.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the schema, [`SCHEMA`].
    pub schema: u32,
    /// The program that measured.
    pub tool: Tool,
    /// When the run began, RFC 3339.
    pub created: String,
    /// The command that repeats the run, as one shell line.
    pub command_line: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// How much was repeated, and for how long.
    pub effort: Effort,
    /// Whether the run ended before everything planned was measured.
    pub partial: bool,
    /// The error that ended the run early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Trials that were planned, where the plan was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_planned: Option<u64>,
    /// How instrument and targets were joined: `memory`, `veth:afpacket`... Where that is not the same for
    /// all, every link with a comma between, and each target names its own.
    pub link: String,
    /// The machine.
    pub environment: Environment,
    /// Parameters of the run, as asked or by default.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The tester measured without a target.
    #[serde(default)]
    pub calibrations: Vec<Calibration>,
    /// What was measured; the first is the one that ratios refer to.
    #[serde(default)]
    pub targets: Vec<Target>,
    /// Which experiments were run.
    #[serde(default)]
    pub experiments: Vec<Experiment>,
    /// Every trial, in the order in which they ran.
    #[serde(default)]
    pub trials: Vec<Trial>,
    /// Results that took several trials to find (a search, a capacity).
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// Derived: each metric of each target at each point, with its interval.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// Derived: each target against the first, by interleaved pairs.
    #[serde(default)]
    pub ratios: Vec<Ratio>,
    /// What the study prints, where it prints values.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What the study states, and whether it holds here.
    #[serde(default)]
    pub claims: Vec<ClaimVerdict>,
    /// Derived: what a reader has to know before trusting a number.
    #[serde(default)]
    pub warnings: Vec<Notice>,
}

impl Record {
    /// The target with this name.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// The cells of one experiment, target and metric, in the order of the points.
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

    /// Trials that ended: every one of the run, whatever its role, and whether or not it was cut short.
    pub fn trials_ended(&self) -> usize {
        self.trials.len()
    }

    /// Trials whose frames are accounted for: all but those that were cut short, whose last frames were not awaited.
    pub fn trials_accounted(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| !trial.flags.contains(&Flag::Interrupted))
    }

    /// Whether any result was limited by the tester or is irregular, or the run is not usable: what `--strict` refuses.
    pub fn is_doubtful(&self) -> bool {
        let doubtful = |warning: &Warning| warning.makes_doubtful();
        let is_disturbed =
            |cell: &Cell| matches!(cell.exclusion, Some(Exclusion::RunDisturbed { .. }));
        self.cells.iter().any(is_disturbed)
            || self.warnings.iter().any(|notice| doubtful(&notice.warning))
            || self.cells.iter().any(|cell| cell.warnings.iter().any(doubtful))
    }
}
