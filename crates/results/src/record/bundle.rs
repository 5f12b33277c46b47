//! A bundle: a run and all that another person needs to repeat it, in one file.

use serde::{Deserialize, Serialize};

use super::Tool;

/// What a bundle is: `bundle.json`, its first entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of the schema, that of records.
    pub schema: u32,
    /// The program that made the bundle; the record names the one that measured.
    pub tool: Tool,
    /// When it was made, RFC 3339.
    pub created: String,
    /// The folder of the run or campaign that is in it.
    pub run: String,
    /// Whether names and addresses in it are made up.
    #[serde(default)]
    pub masked: bool,
    /// Files that the run was told of, as they are called in `files/`.
    #[serde(default)]
    pub files: Vec<String>,
    /// Those of them that are not what the run read, since they have changed after it began.
    #[serde(default)]
    pub changed: Vec<String>,
    /// What is not in it, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
}
