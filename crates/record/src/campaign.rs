//! A campaign: the runs of a plan, in one folder with the plan.

use serde::{Deserialize, Serialize};

use super::{Effort, Tool};

/// State of a plan's execution: `campaign.json`, next to `plan.toml` and the folders of its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Version of the schema, that of records.
    pub schema: u32,
    /// The program that started it.
    pub tool: Tool,
    /// Start time, RFC 3339.
    pub created: String,
    /// Name of the plan.
    pub name: String,
    /// Effort given on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Seed given on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether an irregular result counts as a failure.
    #[serde(default)]
    pub strict: bool,
    /// Its runs, in order.
    pub steps: Vec<CampaignStep>,
}

/// A run of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignStep {
    /// The step's name.
    pub name: String,
    /// Folder of its run, inside the campaign's folder.
    pub folder: String,
    /// The equivalent command line.
    pub command_line: String,
}
