//! A campaign: the runs of a plan, in one folder with the plan.

use serde::{Deserialize, Serialize};

use super::{Effort, Tool};

/// What a plan became: `campaign.json`, beside `plan.toml` and the folders of its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Version of the schema, that of records.
    pub schema: u32,
    /// The program that began it.
    pub tool: Tool,
    /// When it began, RFC 3339.
    pub created: String,
    /// What the plan is called.
    pub name: String,
    /// The effort that was given beside the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The seed that was given beside the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether what is irregular is no success.
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
    /// Its run's folder, in the campaign's.
    pub folder: String,
    /// The command that is the same.
    pub command_line: String,
}
