//! A model of a switch from what was measured on it: the way back from runs to a file that `ours:model=FILE` replays.
//!
//! Each number is found by what the switch showed: when barriers were answered, when rules acted and in which
//! batches, how fast messages were done, how long frames took. What two numbers would explain alike is given to
//! one of them, and its source says so. Invariants: a number that no run tells is marked assumed with what to run
//! for it; the model can be read again from its own text; the same runs give the same model.

use results::record::Record;
use switch::behaviour::model::Model;

use crate::target::model::PREFIX;

/// What runs say of the switch.
pub mod evidence;
/// Straight lines through values.
pub mod line;
/// The model as it comes together.
pub mod sheet;
/// What was seen of rules that were changed.
pub mod updates;
/// The processor that speaks OpenFlow, and barriers.
mod agent;
/// How entries reach the hardware.
mod writing;
/// What frames meet.
mod paths;

use evidence::Evidence;
use sheet::Sheet;
pub use sheet::{Fit, Found};

/// A stored run and the name by which sources call it.
#[derive(Debug, Clone)]
pub struct Run {
    /// The name of its folder.
    pub name: String,
    /// What it holds.
    pub record: Record,
}

/// What to run for a model in which nothing has to be assumed that can be measured: arguments of
/// `planimeter run`, to which `--on TARGET` is added.
pub const WANTED: &[&str] = &[
    "rule-activation echo-delay control-rate stats-delay table-capacity packet-in forwarding-latency",
    "rule-activation --set deed=modify --set probes=before",
    "rule-activation --set deed=delete --set probes=before",
    "rule-activation --set priority_order=ascending --set probes=before",
    "rule-activation --set priority_order=descending --set probes=before",
    "rule-activation --set rules_count=20 --set probes=before --set probes_pps=1000 --set updates_max=1 --set watch=1",
];

/// The targets of these runs that a model can be made of, each once.
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

/// A name for the model of a target, such as models have.
pub fn name_of(target: &str) -> String {
    let bare = target.strip_prefix(PREFIX).unwrap_or(target);
    let bare = bare.rsplit('/').next().unwrap_or(bare).trim_end_matches(".toml");
    let allowed = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let name: String = bare.to_ascii_lowercase().chars().map(allowed).take(48).collect();
    format!("fitted-{}", name.trim_matches('-'))
}

/// The model of this target that the runs tell.
pub fn fit(runs: &[Run], target: &str, name: &str) -> Fit {
    let evidence = Evidence::new(runs, target);
    let mut sheet = Sheet::new(Model {
        name: name.into(),
        about: format!("what was measured on {target}, fitted from {} run(s)", runs.len()),
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
