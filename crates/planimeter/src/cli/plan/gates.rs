//! Gates of a plan: comparisons, judged as `planimeter compare` does.
//!
//! A baseline is a target of the same step or a stored run. Targets are measured in turns, and
//! again before a gate may fail; a stored run is compared directly. Invariants: a plan is invalid
//! unless every gate has a comparison in at least one step. A gate without a result of its metric
//! in any step is an error, never passed.

use std::path::{Path, PathBuf};

use record::{Metric, Record};
use serde::Serialize;
use stats::comparison::{self, ComparedRun, Comparison};
use stats::gate::Gate;
use stats::gate::Outcome;
use store::campaign as stored;

use super::file::ParsedGate;
use super::steps::Step;
use super::text::{self, Faults, WordAt};
use super::{Plan, campaign};
use crate::cli::compare::remeasure::{self, INTERLEAVING};
use crate::cli::compare::{self, operand, refused};
use crate::cli::failure::Failure;
use crate::cli::run::Arguments;
use studies::{CatalogEntry, taking};
use targets::name::TargetKind;
use workload::nearest;

/// Baseline of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    /// This target of the step.
    Target(String),
    /// A stored run by name, optionally with one of its targets.
    Stored(String, PathBuf, Option<String>),
}

/// One comparison: a step, two sides, and the gates between them.
#[derive(Debug, Clone)]
pub struct GateTask {
    /// The step, from 0.
    step: usize,
    base: Base,
    /// The compared target; all targets of the step if `None`.
    new: Option<String>,
    /// The gates, by their numbers in the plan.
    gates: Vec<usize>,
}

/// A comparison and its result.
#[derive(Debug, Serialize)]
pub struct GateResult {
    /// The step's name.
    step: String,
    /// The result.
    contrast: Comparison,
}

/// Makes compared targets take turns in reverse order in every second round, at the same loads.
pub fn by_turns(steps: &mut [Step], wanted: &[ParsedGate], out: &Path) {
    let is_inside = |gate: &ParsedGate| match &gate.base {
        None => true,
        Some(base) => run_of(&base.text, out).is_none(),
    };
    for step in steps {
        let concerned = |gate: &&ParsedGate| {
            gate.steps.is_empty() || gate.steps.iter().any(|it| it.text == step.name)
        };
        let set = &mut step.arguments.set;
        if wanted.iter().filter(concerned).any(is_inside) && !taking::is_set(set, INTERLEAVING) {
            set.push(format!("{INTERLEAVING}=abba"));
        }
        let targets = step.arguments.targets.clone();
        let inside = wanted.iter().filter(concerned).filter(|gate| is_inside(gate));
        let mut bases = inside.filter_map(|gate| match &gate.base {
            Some(word) => targets.iter().find(|name| own_name(name) == own_name(&word.text)),
            None => targets.first(),
        });
        if let Some(base) = bases.next().filter(|_| targets.len() > 1) {
            remeasure::same_loads(&mut step.arguments, base);
        }
    }
}

/// Returns the comparisons for the gates; a gate without one is an error.
pub fn tasks(
    steps: &[(Step, runner::Plan)],
    wanted: &[ParsedGate],
    out: &Path,
    faults: &mut Faults,
) -> Vec<GateTask> {
    let mut tasks: Vec<GateTask> = Vec::new();
    for (number, gate) in wanted.iter().enumerate() {
        let known = || steps.iter().map(|(step, _)| step.name.as_str());
        for word in &gate.steps {
            if !known().any(|name| name == word.text) {
                let help = nearest::asked(&word.text, known()).unwrap_or_else(|| {
                    format!("use one of {}", known().collect::<Vec<_>>().join(", "))
                });
                faults.add(word.at, format!("unknown step {:?} (hint: {help})", word.text));
            }
        }
        let mut has_any = false;
        for (at, (step, plan)) in steps.iter().enumerate() {
            if !gate.steps.is_empty() && !gate.steps.iter().any(|word| word.text == step.name) {
                continue;
            }
            for (base, new) in sides(gate, step, plan, out) {
                has_any = true;
                match tasks.iter_mut().find(|it| (it.step, &it.base, &it.new) == (at, &base, &new))
                {
                    Some(task) => task.gates.push(number),
                    None => tasks.push(GateTask { step: at, base, new, gates: vec![number] }),
                }
            }
        }
        match has_any {
            false => nothing(gate, steps, out, faults),
            true => unyielding(number, gate, &tasks, steps, faults),
        }
    }
    tasks
}

/// Adds an error if no compared step yields the gate's metric, as far as this is known in advance.
fn unyielding(
    number: usize,
    gate: &ParsedGate,
    tasks: &[GateTask],
    steps: &[(Step, runner::Plan)],
    faults: &mut Faults,
) {
    let own = tasks.iter().filter(|task| task.gates.contains(&number));
    let mut entries: Vec<&CatalogEntry> =
        own.flat_map(|task| &steps[task.step].1.entries).copied().collect();
    let metric = gate.gate.metric;
    if entries.iter().any(|entry| entry.produces(metric)) {
        return;
    }
    entries.dedup_by_key(|entry| entry.id);
    let names: Vec<&str> = entries.iter().map(|entry| entry.id).collect();
    let told = |metric: &Metric| entries.iter().any(|entry| entry.produces(*metric));
    let listed = Metric::ALL.into_iter().filter(told).map(Metric::name);
    let shown = entries.iter().flat_map(|entry| entry.shows).flat_map(|show| show.drawn);
    let known: Vec<&str> = listed.chain(shown.copied()).collect();
    let help = nearest::asked(metric.name(), known.iter().copied())
        .unwrap_or_else(|| "run 'planimeter list metrics'".into());
    let why = format!(
        "no metric {} in the results of {} (hint: {help})",
        metric.name(),
        names.join(", ")
    );
    faults.add(gate.at, why);
}

/// Returns what a gate compares in a step.
fn sides(
    gate: &ParsedGate,
    step: &Step,
    plan: &runner::Plan,
    out: &Path,
) -> Vec<(Base, Option<String>)> {
    let names: Vec<&str> = plan.kinds.iter().map(|kind| kind.name()).collect();
    let of_step = |word: &WordAt| own_name(&word.text).filter(|name| names.contains(name));
    let new = gate.new.as_ref().map(of_step);
    if new == Some(None) {
        return Vec::new();
    }
    let new = new.flatten();
    let base = match &gate.base {
        None => names.first().copied(),
        Some(word) => of_step(word),
    };
    if let Some(base) = base {
        let others =
            names.iter().filter(|name| **name != base && new.is_none_or(|it| it == **name));
        return others.map(|new| (Base::Target(base.into()), Some(new.to_string()))).collect();
    }
    let Some(word) = &gate.base else { return Vec::new() };
    let found = run_of(&word.text, out).and_then(|(folder, target)| {
        Some(Base::Stored(word.text.clone(), run_of_step(&folder, &step.name)?, target))
    });
    found.map(|base| (base, new.map(String::from))).into_iter().collect()
}

/// Returns a target's name in records.
fn own_name(text: &str) -> Option<&'static str> {
    text.parse::<TargetKind>().ok().map(TargetKind::name)
}

/// Resolves a stored run or campaign, by its folder or its name in the folder of runs, and its
/// target.
pub fn run_of(text: &str, out: &Path) -> Option<(PathBuf, Option<String>)> {
    if text.parse::<TargetKind>().is_ok() {
        return None;
    }
    operand::stored(text).or_else(|| operand::stored(&out.join(text).to_string_lossy()))
}

/// Returns the run of a step in a stored campaign; a stored run serves every step.
fn run_of_step(folder: &Path, step: &str) -> Option<PathBuf> {
    if !stored::is_campaign(folder) {
        return Some(folder.to_path_buf());
    }
    let (campaign, _) = stored::read(folder).ok()?;
    let own = campaign.steps.iter().find(|it| it.name == step)?;
    Some(folder.join(&own.folder))
}

/// Adds the error for a gate without a comparison.
fn nothing(gate: &ParsedGate, steps: &[(Step, runner::Plan)], out: &Path, faults: &mut Faults) {
    let known: Vec<&str> =
        steps.iter().flat_map(|(_, plan)| &plan.kinds).map(|kind| kind.name()).collect();
    let is_known = |word: &&WordAt| own_name(&word.text).is_some_and(|name| known.contains(&name));
    let strange = [&gate.base, &gate.new].into_iter().flatten().find(|word| !is_known(word));
    if let Some(word) = strange {
        let is_base = gate.base.as_ref() == Some(word);
        if is_base && run_of(&word.text, out).is_some() {
            faults.add(word.at, format!("the campaign {} has no step of this name", word.text));
            return;
        }
        let asked = nearest::asked(&word.text, known.iter().copied());
        let known = known.join(", ");
        let (what, help) = match is_base {
            true => (
                ", and not a stored run",
                format!("use a target ({known}), or the folder of a stored run"),
            ),
            false => ("", format!("use one of {known}")),
        };
        let help = asked.unwrap_or(help);
        faults.add(
            word.at,
            format!("{:?} is not a target of the plan{what} (hint: {help})", word.text),
        );
        return;
    }
    let why = "the gate compares nothing (hint: add a second target to on, or a stored run as \
               base)";
    faults.add(gate.at, why);
}

impl GateTask {
    /// Formats the comparison as a line.
    pub fn told(&self, steps: &[(Step, runner::Plan)]) -> String {
        let base = match &self.base {
            Base::Target(name) | Base::Stored(name, ..) => name,
        };
        let new = self.new.as_deref().unwrap_or("every target");
        let (count, step) = (self.gates.len(), &steps[self.step].0.name);
        let gates = if count == 1 { "gate" } else { "gates" };
        format!("step {step}: {new} against {base}, {count} {gates}")
    }
}

/// Judges all gates. Results that are not clearly passed are measured again by `measure`, if
/// possible, into a folder of that name.
pub fn judged(
    plan: &Plan,
    records: &[Record],
    measure: &mut dyn FnMut(&str, &Arguments) -> Result<Record, Failure>,
) -> Result<Vec<GateResult>, Failure> {
    let mut judged = Vec::new();
    let mut met = vec![false; plan.wanted.len()];
    for (number, task) in plan.tasks.iter().enumerate() {
        let (step, record) = (&plan.steps[task.step].0, &records[task.step]);
        let base = match &task.base {
            Base::Target(_) => None,
            Base::Stored(_, folder, _) => Some(operand::results_of(folder)?),
        };
        let has = |gate: &Gate| {
            let metrics = |record: &Record| record.cells.iter().any(|it| it.metric == gate.metric);
            metrics(record) || base.as_ref().is_some_and(metrics)
        };
        let own = task.gates.iter().filter(|at| has(&plan.wanted[**at].gate));
        let own: Vec<usize> = own.copied().collect();
        if own.is_empty() {
            continue;
        }
        own.iter().for_each(|at| met[*at] = true);
        let gates: Vec<Gate> = own.iter().map(|at| plan.wanted[*at].gate).collect();
        let contrast = match (&task.base, &base) {
            (Base::Stored(name, _, target), Some(base)) => {
                against_stored((name, target.as_deref(), base), task, (step, record), &gates)?
            }
            (Base::Target(name), _) | (Base::Stored(name, ..), None) => {
                let new = task.new.as_deref().expect("a target is compared with another");
                let names = [name.as_str(), new];
                let [one, other] = remeasure::sides(names, record);
                let found = comparison::contrast(&one, &other, &gates, true);
                let mut found = found.map_err(|error| refused(&error))?;
                let asked = only(&step.arguments, names);
                remeasure::confirm(&mut found, record, &asked, names, |round, again| {
                    let folder = campaign::folder_of(task.step, &step.name);
                    measure(&format!("{folder}-again-{}-{}", number + 1, round + 1), again)
                })?;
                found
            }
        };
        judged.push(GateResult { step: step.name.clone(), contrast });
    }
    match met.iter().position(|met| !met) {
        None => Ok(judged),
        Some(at) => {
            let gate = &plan.wanted[at];
            let mut known: Vec<&str> =
                records.iter().flat_map(|it| &it.cells).map(|cell| cell.metric.name()).collect();
            known.sort_unstable();
            known.dedup();
            Err(Failure::usage(format!(
                "{}: the gate {} has no results to judge (hint: use one of {})",
                text::place(&plan.file, &plan.text, gate.at),
                gate.gate,
                known.join(", ")
            )))
        }
    }
}

fn against_stored(
    (name, target, base): (&str, Option<&str>, &Record),
    task: &GateTask,
    (step, record): (&Step, &Record),
    gates: &[Gate],
) -> Result<Comparison, Failure> {
    // A baseline target is compared with the target of the same name unless another is given.
    let same = target.filter(|name| record.target(name).is_some());
    let new = task.new.as_deref().or(same);
    let old = target.or_else(|| new.filter(|name| base.target(name).is_some()));
    let one = ComparedRun { name, record: base, target: old };
    let other = ComparedRun { name: &step.name, record, target: new };
    comparison::contrast(&one, &other, gates, true).map_err(|error| {
        let Failure { line, kind } = refused(&error);
        let line = format!(
            "step {} against {name}: {line} (hint: add step = {:?} to a gate that is for this step \
             only)",
            step.name, step.name
        );
        Failure { line, kind }
    })
}

/// Returns a step with two of its targets only.
fn only(arguments: &Arguments, names: [&str; 2]) -> Arguments {
    let mut asked = arguments.clone();
    asked.targets = names.map(String::from).to_vec();
    asked.topologies.clear();
    asked.links.retain(|link| match link.rsplit_once('=') {
        Some((target, _)) => own_name(target).is_some_and(|name| names.contains(&name)),
        None => true,
    });
    asked
}

/// Formats all comparisons as text.
pub fn text(judged: &[GateResult]) -> String {
    let one = |it: &GateResult| format!("\nstep {}: {}", it.step, comparison::text(&it.contrast));
    judged.iter().map(one).collect()
}

/// Formats all comparisons as Markdown.
pub fn markdown(judged: &[GateResult]) -> String {
    let one = |it: &GateResult| {
        let text = comparison::markdown(&it.contrast);
        match judged.len() {
            1 => text,
            _ => format!("## Step {}\n\n{text}\n", it.step),
        }
    };
    judged.iter().map(one).collect()
}

/// Formats all comparisons as JUnit XML.
pub fn junit(judged: &[GateResult]) -> String {
    let all: Vec<(&str, &Comparison)> =
        judged.iter().map(|it| (it.step.as_str(), &it.contrast)).collect();
    comparison::junit_of("planimeter run", &all)
}

/// Returns the exit code of the worst gate outcome.
pub fn exit_code(judged: &[GateResult], is_strict: bool) -> u8 {
    let outcomes = judged.iter().filter_map(|it| it.contrast.outcome());
    let worst: Option<Outcome> = outcomes.min_by_key(|outcome| *outcome as u8);
    compare::exit_of(worst, is_strict)
}
