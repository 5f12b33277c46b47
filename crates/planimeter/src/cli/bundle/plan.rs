//! Writer of plans: converts steps and gates to the text of a plan.
//!
//! Invariant: reading the text back gives the same arguments, except for options of the command
//! line.

use toml::Value;

use crate::cli::plan::{ParsedGate, Step};
use crate::cli::run::Arguments;

/// Returns the text of a plan.
pub fn written(name: &str, is_strict: bool, steps: &[Step], gates: &[ParsedGate]) -> String {
    let mut text = format!("name = {}\n", quoted(name));
    if is_strict {
        text += "strict = true\n";
    }
    steps.iter().for_each(|it| text += &step(it));
    for gate in gates {
        text += &format!("\n[[gate]]\nmetric = {}\n", quoted(gate.gate.metric.name()));
        let whole = gate.gate.to_string();
        let ratio = whole.strip_prefix(gate.gate.metric.name()).unwrap_or(&whole);
        text += &format!("ratio = {}\n", quoted(ratio));
        for (key, word) in [("base", &gate.base), ("new", &gate.new)] {
            if let Some(word) = word {
                text += &format!("{key} = {}\n", quoted(&word.text));
            }
        }
        let steps: Vec<String> = gate.steps.iter().map(|word| word.text.clone()).collect();
        text += &several("step", &steps);
    }
    text
}

fn step(step: &Step) -> String {
    let Arguments { experiments, targets, topologies, links, set, .. } = &step.arguments;
    let mut text = format!("\n[[step]]\nname = {}\n", quoted(&step.name));
    for (key, words) in
        [("run", experiments), ("on", targets), ("topology", topologies), ("link", links)]
    {
        text += &several(key, words);
    }
    text += &format!("effort = {}\n", quoted(step.arguments.effort().name()));
    text += &format!("seed = {}\n", step.arguments.seed());
    let hooks = [
        ("before", &step.arguments.before),
        ("between", &step.arguments.between),
        ("after", &step.arguments.after),
    ];
    for (key, command) in hooks {
        if let Some(command) = command {
            text += &format!("{key} = {}\n", quoted(command));
        }
    }
    if !set.is_empty() {
        text += "[step.set]\n";
    }
    for (place, word) in set.iter().enumerate() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_last = |later: &String| later.split('=').next() != Some(key);
        // Of duplicate keys the last one applies, because a table has each key once.
        if set[place + 1..].iter().all(is_last) {
            text += &format!("{} = {}\n", quoted(key), quoted(value));
        }
    }
    text
}

fn several(key: &str, words: &[String]) -> String {
    match words {
        [] => String::new(),
        words => {
            let all: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("{key} = [{}]\n", all.join(", "))
        }
    }
}

/// Quotes a text for TOML.
fn quoted(text: &str) -> String {
    Value::String(text.into()).to_string()
}
