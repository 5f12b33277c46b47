//! Model under construction: each key is found, or assumed with the run that would give it.
//!
//! Invariant: a finished model has a source for every key, and related keys are consistent, so that
//! its text can be parsed again.

use elements::hardware_model::model::Model;
use elements::hardware_model::model::keys::{KEYS, Key, ValueType};

use super::observations::Value;

/// A number that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoundNumber {
    /// Key.
    pub key: &'static str,
    /// Value.
    pub value: f64,
    /// Uncertainty.
    pub half: f64,
}

/// A model and its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct FitResult {
    /// Model; every key has its source.
    pub model: Model,
    /// Numbers that were found.
    pub found: Vec<FoundNumber>,
    /// Numbers that were not found, with the run that would give them.
    pub assumed: Vec<(&'static str, String)>,
}

/// Model so far.
#[derive(Debug)]
pub struct FittedModel {
    model: Model,
    found: Vec<FoundNumber>,
    assumed: Vec<(&'static str, String)>,
}

/// Runs for keys with these prefixes.
const REMEDIES: &[(&str, &str)] = &[
    ("agent.message_ns", "run echo-delay and control-rate"),
    ("agent.flow_mod_ns", "run rule-activation with two numbers of rules"),
    ("agent.packet_out_ns", "run control-rate"),
    ("agent.flow_stats", "run stats-delay with two numbers of rules"),
    ("agent.port_stats_ns", "run stats-delay"),
    ("agent.packet_ins_per_s", "run packet-in"),
    ("barrier.", "run rule-activation"),
    ("hardware.move", "run rule-activation with priority_order=ascending and =descending"),
    ("hardware.modify_ns", "run rule-activation with command=modify"),
    ("hardware.delete_ns", "run rule-activation with command=delete"),
    ("hardware.counters_ns", "no module fits this key; counter-staleness measures it"),
    ("hardware.", "run rule-activation with enough rules"),
    ("capacity.rules", "run table-capacity with a bound above what fits"),
    ("capacity.", "table-capacity measures one kind of match only"),
    ("tiers.in_hardware", "run rule-activation with few probes (probes_pps=1000, updates_max=1)"),
    ("tiers.", "no module measures it, or there is no software tier"),
    ("path_hardware.queue_frames", "no module fits this key"),
    ("path_hardware.rule_ps", "no module fits this key; costa2017/table5 measures it"),
    ("path_hardware.rewrite_ns", "no module fits this key; costa2017/table6 measures it"),
    ("path_hardware.", "run forwarding-latency"),
    ("path_software.", "no software tier found"),
    ("path_legacy.", "no module measures the switch as a bridge"),
    ("full.", "table-capacity measures only that the table is full"),
];

impl FittedModel {
    /// Starts with a model that has only a name.
    pub fn new(model: Model) -> FittedModel {
        FittedModel { model, found: Vec::new(), assumed: Vec::new() }
    }

    /// Sets a number that was found; a number that is not significantly above 0 is 0.
    pub fn say(&mut self, path: &'static str, found: Value) {
        let key = key(path);
        let ValueType::Number(most) = key.takes else { return };
        let is_told = found.value > found.half;
        let value = if is_told { found.value } else { 0.0 };
        let whole = (value.round() as u64).min(most);
        *(key.at)(&mut self.model) = whole;
        let told = if is_told { "" } else { ", not significantly above 0" };
        let (seen, half) = (shown(found.value), shown(found.half));
        let source = format!("{}: {seen} ± {half}{told}", found.from);
        self.model.sources.insert(path, source.replace('\n', " "));
        let half = if is_told { found.half } else { found.half + found.value.abs() };
        self.found.push(FoundNumber { key: path, value, half });
    }

    /// Sets a word that was found, by its index among the words of the key.
    pub fn word(&mut self, path: &'static str, word: u64, from: String) {
        *(key(path).at)(&mut self.model) = word;
        self.model.sources.insert(path, from);
        self.found.push(FoundNumber { key: path, value: word as f64, half: 0.0 });
    }

    /// Sets a value that is assumed for this reason.
    pub fn assume(&mut self, path: &'static str, value: u64, why: impl Into<String>) {
        let why = why.into();
        *(key(path).at)(&mut self.model) = value;
        self.model.sources.insert(path, format!("assumed: {why}"));
        self.assumed.push((path, why));
    }

    /// Returns the model so far.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns whether a key was found or assumed.
    pub fn has(&self, path: &str) -> bool {
        self.model.sources.contains_key(path)
    }

    /// Returns the number found for a key.
    pub fn found(&self, path: &str) -> Option<FoundNumber> {
        self.found.iter().copied().find(|found| found.key == path)
    }

    /// Completes the model; missing numbers are assumed to be 0.
    pub fn finish(mut self) -> FitResult {
        for key in KEYS {
            if !self.has(key.path) {
                let remedy = REMEDIES.iter().find(|(begins, _)| key.path.starts_with(begins));
                let remedy = remedy.map_or("no module fits this key", |(_, remedy)| remedy);
                self.assume(key.path, 0, format!("not measured; {remedy}"));
            }
        }
        FitResult { model: self.model, found: self.found, assumed: self.assumed }
    }
}

fn key(path: &str) -> &'static Key {
    KEYS.iter().find(|key| key.path == path).expect("the path is a key of models")
}

/// Formats a number with four digits, without trailing zeros.
fn shown(value: f64) -> String {
    let digits = if value == 0.0 || value.abs() >= 1000.0 {
        0
    } else {
        (3 - value.abs().log10().floor() as i32).clamp(0, 6)
    };
    format!("{value:.0$}", digits as usize)
}
