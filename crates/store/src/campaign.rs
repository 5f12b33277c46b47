//! The folder of a campaign: the plan, `campaign.json`, and a run's folder for each step.
//!
//! Invariant: a folder is a campaign once it contains `campaign.json`, which is written last and
//! before any measurement.

use std::path::{Path, PathBuf};

use super::whole::write_whole;
use super::{StoreError, parsed, read_text};
use record::Campaign;

/// The file that makes a folder a campaign.
pub const CAMPAIGN_FILE: &str = "campaign.json";

/// The plan, as it was written.
pub const PLAN_FILE: &str = "plan.toml";

/// Whether a folder is a campaign.
pub fn is_campaign(folder: &Path) -> bool {
    folder.join(CAMPAIGN_FILE).is_file()
}

/// Writes a campaign's plan and description into a folder.
pub fn write(folder: &Path, campaign: &Campaign, plan: &str) -> Result<(), StoreError> {
    let mut text = serde_json::to_string_pretty(campaign).expect("a campaign is plain data");
    text.push('\n');
    write_whole(&folder.join(PLAN_FILE), plan.as_bytes())?;
    write_whole(&folder.join(CAMPAIGN_FILE), text.as_bytes())
}

/// Reads a campaign and its plan.
pub fn read(folder: &Path) -> Result<(Campaign, String), StoreError> {
    let path = folder.join(CAMPAIGN_FILE);
    let campaign = parsed(&path, &read_text(&path)?)?;
    Ok((campaign, read_text(&folder.join(PLAN_FILE))?))
}

/// Folders of the campaign's runs that have begun, in order. For a run, its own folder.
pub fn runs(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    if !is_campaign(folder) {
        return Ok(vec![folder.to_path_buf()]);
    }
    let (campaign, _) = read(folder)?;
    let mut runs = Vec::new();
    for step in &campaign.steps {
        let path = super::inside(folder, &step.folder)?;
        if super::has_run(&path) {
            runs.push(path);
        }
    }
    Ok(runs)
}
