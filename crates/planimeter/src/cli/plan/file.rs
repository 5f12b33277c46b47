//! Format of a plan: the measurements of each step, and the gates on their results.
//!
//! ```toml
//! on = ["switch", "bridge"]          # for all steps, as everything up here
//! effort = "quick"
//!
//! [set]
//! frame = [64, 1518]
//!
//! [[step]]
//! run = "throughput"
//!
//! [[step]]
//! name = "latency-at-half"
//! run = "latency"
//! set = { load = 50 }
//!
//! [[gate]]
//! metric = "throughput_pps"
//! ratio = 0.97
//! base = "switch"
//! ```
//!
//! A plan with one step needs no `[[step]]`. Invariant: a step's keys are those of `planimeter run`
//! with the same meaning, and override those of the plan.

use stats::gate::{Gate, GateError};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::{self, Faults, WordAt};
use crate::cli::run::EffortArgument;
use workload::nearest;

/// Size limit of a plan, in bytes.
pub const BYTES_MAX: u64 = 1 << 20;

/// Limit of steps in a plan.
pub const STEPS_MAX: usize = 100;

/// Limit of gates in a plan.
pub const GATES_MAX: usize = 100;

/// Keys of a step, and of a plan for all of its steps.
const STEP_KEYS: [&str; 11] = [
    "name", "run", "on", "link", "topology", "effort", "seed", "set", "before", "between", "after",
];

/// Keys of a plan only.
const PLAN_KEYS: [&str; 4] = ["out", "strict", "step", "gate"];

/// Keys of a gate.
const GATE_KEYS: [&str; 5] = ["metric", "ratio", "base", "new", "step"];

/// A parsed plan.
#[derive(Debug, Default)]
pub struct ParsedPlan {
    /// Settings of all steps.
    pub all: Settings,
    /// The steps; empty if the plan itself is the step.
    pub steps: Vec<Settings>,
    /// Gates on the results.
    pub gates: Vec<ParsedGate>,
    /// Folder in which the plan's own folder is created.
    pub out: Option<String>,
    /// Whether irregular results count as failures.
    pub strict: bool,
}

/// Settings of a measurement.
#[derive(Debug, Default)]
pub struct Settings {
    /// Its position.
    pub at: usize,
    /// Its name.
    pub name: Option<WordAt>,
    /// Experiments.
    pub run: Vec<WordAt>,
    /// Targets.
    pub on: Vec<WordAt>,
    /// Links.
    pub link: Vec<WordAt>,
    /// Topology files.
    pub topology: Vec<WordAt>,
    /// Measurement effort.
    pub effort: Option<EffortArgument>,
    /// Seed.
    pub seed: Option<u64>,
    /// Parameters, each as `KEY=VALUE`.
    pub set: Vec<WordAt>,
    /// A command before a target is opened.
    pub before: Option<WordAt>,
    /// A command between experiments.
    pub between: Option<WordAt>,
    /// A command after the last trial.
    pub after: Option<WordAt>,
}

/// A parsed gate.
#[derive(Debug, Clone)]
pub struct ParsedGate {
    /// Its position.
    pub at: usize,
    /// The gate.
    pub gate: Gate,
    /// The baseline; the first target by default.
    pub base: Option<WordAt>,
    /// The compared target; every other one by default.
    pub new: Option<WordAt>,
    /// Steps; all by default.
    pub steps: Vec<WordAt>,
}

/// Parses a plan; errors are added to `faults`.
pub fn read(text: &str, faults: &mut Faults) -> ParsedPlan {
    let table = text::parsed(text, faults);
    let mut written = ParsedPlan::default();
    let known: Vec<&str> = STEP_KEYS.into_iter().chain(PLAN_KEYS).collect();
    for (key, value) in text::rows(table.get_ref(), &known, "a plan", faults) {
        match key.text.as_str() {
            "out" => written.out = text::word("out", value, faults).map(|word| word.text),
            "strict" => written.strict = text::truth("strict", value, faults).unwrap_or(false),
            "step" => {
                for (at, table) in text::tables("step", value, faults) {
                    written.steps.push(step(at, table, faults));
                }
            }
            "gate" => {
                for (at, table) in text::tables("gate", value, faults) {
                    written.gates.extend(gate(at, table, faults));
                }
            }
            _ => written.all.take(&key, value, faults),
        }
    }
    if written.steps.len() > STEPS_MAX {
        faults.add(
            written.steps[STEPS_MAX].at,
            format!("too many steps: a plan has at most {STEPS_MAX}"),
        );
    }
    if written.gates.len() > GATES_MAX {
        faults.add(
            written.gates[GATES_MAX].at,
            format!("too many gates: a plan has at most {GATES_MAX}"),
        );
    }
    written
}

fn step(at: usize, table: &DeTable<'_>, faults: &mut Faults) -> Settings {
    let mut settings = Settings { at, ..Settings::default() };
    for (key, value) in text::rows(table, &STEP_KEYS, "a step", faults) {
        settings.take(&key, value, faults);
    }
    settings
}

impl Settings {
    fn take(&mut self, key: &WordAt, value: &Spanned<DeValue<'_>>, faults: &mut Faults) {
        let name = key.text.as_str();
        match name {
            "name" => self.name = text::word(name, value, faults),
            "run" => self.run = text::words(name, value, faults),
            "on" => self.on = text::words(name, value, faults),
            "link" => self.link = text::words(name, value, faults),
            "topology" => self.topology = text::words(name, value, faults),
            "effort" => self.effort = effort(value, faults),
            "seed" => self.seed = text::count(name, value, faults),
            "set" => self.set = set(value, faults),
            "before" => self.before = text::word(name, value, faults),
            "between" => self.between = text::word(name, value, faults),
            "after" => self.after = text::word(name, value, faults),
            other => unreachable!("{other} is not a key of a step"),
        }
    }
}

fn effort(value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<EffortArgument> {
    let word = text::word("effort", value, faults)?;
    let known = ["quick", "standard", "full"];
    match word.text.as_str() {
        "quick" => Some(EffortArgument::Quick),
        "standard" => Some(EffortArgument::Standard),
        "full" => Some(EffortArgument::Full),
        other => {
            let asked = nearest::asked(other, known);
            let help = asked.unwrap_or_else(|| format!("use one of {}", known.join(", ")));
            faults.add(word.at, format!("unknown effort {other:?} (hint: {help})"));
            None
        }
    }
}

/// Parses parameters in their order.
fn set(value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Vec<WordAt> {
    let DeValue::Table(table) = value.get_ref() else {
        let why = "invalid set (hint: write [set] with lines KEY = VALUE, or set = { KEY = VALUE \
                   })";
        faults.add(value.span().start, why);
        return Vec::new();
    };
    let mut all = Vec::new();
    for (key, value) in table {
        let at = key.span().start;
        let value = text::setting(key.get_ref(), value, faults);
        all.extend(value.map(|value| WordAt { at, text: format!("{}={value}", key.get_ref()) }));
    }
    all.sort_by_key(|word| word.at);
    all
}

fn gate(at: usize, table: &DeTable<'_>, faults: &mut Faults) -> Option<ParsedGate> {
    let (mut metric, mut ratio) = (None, None);
    let (mut base, mut new, mut steps) = (None, None, Vec::new());
    for (key, value) in text::rows(table, &GATE_KEYS, "a gate", faults) {
        match key.text.as_str() {
            "metric" => metric = text::word("metric", value, faults),
            "ratio" => ratio = bound(value, faults),
            "base" => base = text::word("base", value, faults),
            "new" => new = text::word("new", value, faults),
            _ => steps = text::words("step", value, faults),
        }
    }
    let has = |key: &str| table.iter().any(|(known, _)| known.get_ref() == key);
    for (key, example) in [("metric", "\"throughput_pps\""), ("ratio", "0.97")] {
        if !has(key) {
            faults.add(at, format!("a gate needs {key} (hint: add {key} = {example})"));
        }
    }
    let (metric, ratio) = (metric?, ratio?);
    let read = match ratio.text.starts_with(['>', '<']) {
        true => format!("{}{}", metric.text, ratio.text).parse::<Gate>(),
        // The better direction of the metric determines the side.
        false => match format!("{}>={}", metric.text, ratio.text).parse::<Gate>() {
            Err(GateError::WrongSide(_, meant)) => meant.parse(),
            read => read,
        },
    };
    match read {
        Ok(gate) => Some(ParsedGate { at, gate, base, new, steps }),
        Err(error) => {
            let is_about_ratio = matches!(error, GateError::NoRatio(_) | GateError::WrongSide(..));
            let at = if is_about_ratio { ratio.at } else { metric.at };
            faults.add(at, error.to_string());
            None
        }
    }
}

/// Parses a bound on a ratio: a number, or a text such as `>=0.97`.
fn bound(value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<WordAt> {
    let at = value.span().start;
    match value.get_ref() {
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) => {
            text::setting("ratio", value, faults).map(|text| WordAt { at, text })
        }
        _ => {
            faults.add(
                at,
                "invalid ratio (hint: use a number such as 0.97, or a string such as \">=0.97\")",
            );
            None
        }
    }
}
