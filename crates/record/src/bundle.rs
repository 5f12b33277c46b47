//! A bundle: a run and everything needed to repeat it, in one file.

use serde::{Deserialize, Serialize};

use super::Tool;

/// Description of a bundle: `bundle.json`, its first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of the schema, that of records.
    pub schema: u32,
    /// The program that made the bundle. The record names the program that measured.
    pub tool: Tool,
    /// Creation time, RFC 3339.
    pub created: String,
    /// Folder of the contained run or campaign.
    pub run: String,
    /// Whether names and addresses are anonymized.
    #[serde(default)]
    pub masked: bool,
    /// Input files of the run, by their names in `files/`.
    #[serde(default)]
    pub files: Vec<String>,
    /// Input files that changed after the run began.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Files that are missing from the bundle, with the reason.
    #[serde(default)]
    pub left_out: Vec<String>,
}
