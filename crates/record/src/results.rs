//! A record without its trials, for comparisons and lists.
//!
//! Trials make up nine tenths of a record. A reader that needs only cells skips them. Invariant:
//! every other field equals the record's.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Calibration, Cell, Effort, Environment, Experiment, Outcome, Record, Target, Tool, WarningEntry,
};

/// The fields of a [`Record`] except its trials and the fields made from them for readers.
#[derive(Debug, Deserialize)]
pub struct Results {
    schema: u32,
    tool: Tool,
    created: String,
    command_line: String,
    seed: u64,
    effort: Effort,
    partial: bool,
    #[serde(default)]
    failure: Option<String>,
    #[serde(default)]
    trials_planned: Option<u64>,
    link: String,
    environment: Environment,
    #[serde(default)]
    parameters: Map<String, Value>,
    #[serde(default)]
    calibrations: Vec<Calibration>,
    #[serde(default)]
    targets: Vec<Target>,
    #[serde(default)]
    experiments: Vec<Experiment>,
    #[serde(default)]
    outcomes: Vec<Outcome>,
    #[serde(default)]
    cells: Vec<Cell>,
    #[serde(default)]
    warnings: Vec<WarningEntry>,
}

impl From<Results> for Record {
    fn from(read: Results) -> Record {
        Record {
            schema: read.schema,
            tool: read.tool,
            created: read.created,
            command_line: read.command_line,
            seed: read.seed,
            effort: read.effort,
            partial: read.partial,
            failure: read.failure,
            trials_planned: read.trials_planned,
            link: read.link,
            environment: read.environment,
            parameters: read.parameters,
            calibrations: read.calibrations,
            targets: read.targets,
            experiments: read.experiments,
            trials: Vec::new(),
            outcomes: read.outcomes,
            cells: read.cells,
            ratios: Vec::new(),
            published: Vec::new(),
            claims: Vec::new(),
            warnings: read.warnings,
        }
    }
}

impl Record {
    /// Returns a copy without trials and outcomes.
    pub fn without_trials(&self) -> Record {
        Record {
            schema: self.schema,
            tool: self.tool.clone(),
            created: self.created.clone(),
            command_line: self.command_line.clone(),
            seed: self.seed,
            effort: self.effort,
            partial: self.partial,
            failure: self.failure.clone(),
            trials_planned: self.trials_planned,
            link: self.link.clone(),
            environment: self.environment.clone(),
            parameters: self.parameters.clone(),
            calibrations: self.calibrations.clone(),
            targets: self.targets.clone(),
            experiments: self.experiments.clone(),
            trials: Vec::new(),
            outcomes: Vec::new(),
            cells: self.cells.clone(),
            ratios: self.ratios.clone(),
            published: self.published.clone(),
            claims: self.claims.clone(),
            warnings: self.warnings.clone(),
        }
    }
}
