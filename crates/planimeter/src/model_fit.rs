//! Fits a model of a switch to measured runs; `switch:model=FILE` replays the resulting file.
//!
//! Each number follows from what the switch did: the times of barrier replies and activations,
//! batches, message rates and latencies. If two numbers explain the same observation, one of them
//! gets all of it, and its source says so.
//!
//! Invariants:
//!
//! - A number without a run is marked as assumed, with the run that would give it.
//! - The text of the model can be parsed again.
//! - The same runs give the same model.

use elements::hardware_model::model::Model;
use record::Record;

use targets::model::PREFIX;

pub mod observations;
pub mod line;
pub mod model;
pub mod updates;
mod agent;
mod writing;
mod paths;

use model::FittedModel;
pub use model::{FitResult, FoundNumber};
use observations::TargetRuns;

/// A stored run and its name in sources.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of its folder.
    pub name: String,
    /// Contents.
    pub record: Record,
}

/// Runs for a model in which no measurable number is assumed: arguments of `planimeter run`,
/// without `--on TARGET`.
pub const WANTED: &[&str] = &[
    "rule-activation echo-delay control-rate stats-delay table-capacity packet-in forwarding-latency",
    "rule-activation --set command=modify --set probes=before",
    "rule-activation --set command=delete --set probes=before",
    "rule-activation --set priority_order=ascending --set probes=before",
    "rule-activation --set priority_order=descending --set probes=before",
    "rule-activation --set rules_count=20 --set probes=before --set probes_pps=1000 --set updates_max=1 --set watch=1",
];

/// Returns the targets of these runs that can be modelled, each once.
pub fn targets(runs: &[Run]) -> Vec<&str> {
    let of = |run: &'_ Run| -> Vec<String> {
        let with_modules = run.record.trials.iter().filter(|trial| trial.module.is_some());
        with_modules.map(|trial| trial.target.clone()).collect()
    };
    let named: Vec<String> = runs.iter().flat_map(of).collect();
    let all = runs.iter().flat_map(|run| &run.record.targets).map(|target| target.name.as_str());
    let mut found: Vec<&str> = Vec::new();
    for name in all {
        if named.iter().any(|known| known == name) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Returns a valid model name for a target.
pub fn name_of(target: &str) -> String {
    let bare = target.strip_prefix(PREFIX).unwrap_or(target);
    let bare = bare.rsplit('/').next().unwrap_or(bare).trim_end_matches(".toml");
    let allowed = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let name: String = bare.to_ascii_lowercase().chars().map(allowed).take(48).collect();
    format!("fitted-{}", name.trim_matches('-'))
}

/// Fits the model of this target to the runs.
pub fn fit(runs: &[Run], target: &str, name: &str) -> FitResult {
    let evidence = TargetRuns::new(runs, target);
    let mut sheet = FittedModel::new(Model {
        name: name.into(),
        about: format!("measurements of {target}, fitted to {} run(s)", runs.len()),
        ..Model::default()
    });
    let updates = updates::all(&evidence);
    let tier = paths::tiers(&updates, &mut sheet);
    let told = writing::answers(&updates, tier, &mut sheet);
    let flow_mod = agent::fit(&evidence, (&updates, told), &mut sheet);
    writing::fit(&updates, (told, tier), flow_mod, &mut sheet);
    agent::packet_ins(&evidence, &mut sheet);
    agent::capacity(&evidence, &mut sheet);
    paths::fit(&evidence, &mut sheet);
    sheet.finish()
}

#[cfg(test)]
mod tests;
