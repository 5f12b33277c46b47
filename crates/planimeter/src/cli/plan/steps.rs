//! Conversion of a plan's steps to the arguments of `planimeter run`.
//!
//! Invariants:
//! - The command-line code checks each word, and errors have the word's position in the file.
//! - A setting of all steps applies to a step that does not set it.
//! - A parameter of all steps applies to the steps whose experiments support it.

use super::file::{ParsedPlan, Settings};
use super::text::{Faults, WordAt};
use crate::cli::link_arguments::LinkArguments;
use crate::cli::run;
use record::assignment;
use runner::python::script;
use studies::taking;
use targets::name::TargetKind;
use workload::parameter::{self, Parameters};

/// Length limit of a step's name, in characters.
const NAME_LETTERS_MAX: usize = 64;

/// One step.
#[derive(Clone)]
pub struct Step {
    /// Its name, which is unique in the plan.
    pub name: String,
    /// Its position in the plan, in bytes.
    pub at: usize,
    /// Its command-line arguments.
    pub arguments: run::Arguments,
}

/// Command-line options that override a plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepOptions {
    /// `--effort`.
    pub effort: Option<run::EffortArgument>,
    /// `--seed`.
    pub seed: Option<u64>,
}

/// Returns the steps of a plan.
pub fn of(written: &ParsedPlan, beside: StepOptions, faults: &mut Faults) -> Vec<Step> {
    let all = &written.all;
    let whole = [all];
    let single = written.steps.is_empty();
    if let (false, Some(word)) = (single, all.run.first()) {
        let why = "run is set outside the steps (hint: move it to a [[step]])";
        faults.add(word.at, why);
    }
    let each: Vec<&Settings> = if single { whole.to_vec() } else { written.steps.iter().collect() };
    let entries: Vec<Vec<&'static studies::CatalogEntry>> =
        each.iter().map(|settings| entries(settings, faults)).collect();
    let known: Vec<&'static studies::CatalogEntry> = entries.iter().flatten().copied().collect();
    check(all, &known, faults);
    let mut steps: Vec<Step> = Vec::new();
    for (settings, entries) in each.into_iter().zip(&entries) {
        if !single {
            check(settings, entries, faults);
        }
        let Some(name) = name(settings, entries, &steps, faults) else { continue };
        let arguments = arguments(all, settings, entries, beside);
        steps.push(Step { name, at: settings.at, arguments });
    }
    steps
}

fn entries(settings: &Settings, faults: &mut Faults) -> Vec<&'static studies::CatalogEntry> {
    if settings.run.is_empty() {
        let why = "the step measures nothing (hint: add run, such as run = \"throughput\")";
        faults.add(settings.at, why);
    }
    let mut found = Vec::new();
    for word in &settings.run {
        match script::find(&word.text) {
            Ok(entries) => found.extend(entries),
            Err(error) => faults.add(word.at, error.to_string()),
        }
    }
    found
}

/// Checks targets, links and parameters, word by word.
fn check(settings: &Settings, entries: &[&'static studies::CatalogEntry], faults: &mut Faults) {
    let topologies = settings.topology.iter().map(|word| WordAt {
        at: word.at,
        text: format!("{}{}", targets::network::PREFIX, word.text),
    });
    for word in settings.on.iter().cloned().chain(topologies) {
        if let Err(error) = word.text.parse::<TargetKind>() {
            faults.add(word.at, error.to_string());
        }
    }
    for word in &settings.link {
        if let Err(failure) = LinkArguments::read(std::slice::from_ref(&word.text)) {
            faults.add(word.at, failure.line);
        }
    }
    // If the experiment is unknown, a parameter of any experiment is accepted.
    let all: Vec<&'static studies::CatalogEntry> = studies::entries().collect();
    let entries = if entries.is_empty() { &all[..] } else { entries };
    for word in &settings.set {
        let mut tried = Parameters::at(parameter::Effort::Quick);
        if let Err(error) = taking::assign(&mut tried, entries, &word.text) {
            faults.add(word.at, error.to_string());
        }
    }
}

fn name(
    settings: &Settings,
    entries: &[&studies::CatalogEntry],
    before: &[Step],
    faults: &mut Faults,
) -> Option<String> {
    let is_taken = |name: &str| before.iter().any(|step| step.name == name);
    if let Some(WordAt { at, text }) = &settings.name {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if text.is_empty() || text.len() > NAME_LETTERS_MAX || !text.chars().all(is_plain) {
            let why = format!(
                "invalid name {text:?} (hint: use up to {NAME_LETTERS_MAX} letters, digits, dots, \
                 - and _)"
            );
            faults.add(*at, why);
            return None;
        }
        if is_taken(text) {
            faults.add(*at, format!("two steps are called {text} (hint: rename one)"));
            return None;
        }
        return Some(text.clone());
    }
    let asked = match entries {
        [] => return None,
        [one] => one.id.replace('/', "-"),
        [first, ..] => first.set().replace('/', "-"),
    };
    let asked: String = asked.chars().filter(|letter| !letter.is_control()).collect();
    if !is_taken(&asked) {
        return Some(asked);
    }
    (2..).map(|number| format!("{asked}-{number}")).find(|name| !is_taken(name))
}

fn arguments(
    all: &Settings,
    own: &Settings,
    entries: &[&'static studies::CatalogEntry],
    beside: StepOptions,
) -> run::Arguments {
    let texts = |words: &[WordAt]| words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    let has_targets = !own.on.is_empty() || !own.topology.is_empty();
    let targets = if has_targets { own } else { all };
    let hook = |own: &Option<WordAt>, all: &Option<WordAt>| {
        own.as_ref().or(all.as_ref()).map(|word| word.text.clone())
    };
    let links = match own.link.is_empty() {
        false => texts(&own.link),
        true => {
            let is_here = |word: &&WordAt| match word.text.rsplit_once('=') {
                Some((target, _)) => targets.on.iter().any(|on| on.text == target),
                None => true,
            };
            all.link.iter().filter(is_here).map(|word| word.text.clone()).collect()
        }
    };
    run::Arguments {
        experiments: texts(&own.run),
        targets: texts(&targets.on),
        topologies: texts(&targets.topology),
        links,
        effort: beside.effort.or(own.effort).or(all.effort),
        set: set(all, own, entries),
        before: hook(&own.before, &all.before),
        between: hook(&own.between, &all.between),
        after: hook(&own.after, &all.after),
        seed: beside.seed.or(own.seed).or(all.seed),
        ..run::Arguments::empty()
    }
}

/// Returns the arguments of a step, unchecked.
pub fn as_written(settings: &Settings) -> run::Arguments {
    let nothing = Settings::default();
    let mut arguments = arguments(&nothing, settings, &[], StepOptions::default());
    arguments.set = settings.set.iter().map(|word| word.text.clone()).collect();
    arguments
}

/// Returns the parameters of a step: its own, and those of all steps that its experiments support.
fn set(all: &Settings, own: &Settings, entries: &[&'static studies::CatalogEntry]) -> Vec<String> {
    let key = |word: &WordAt| word.text.split('=').next().unwrap_or_default().to_string();
    let is_same = |one: &WordAt, other: &WordAt| {
        assignment::current_key(&key(one)) == assignment::current_key(&key(other))
    };
    let is_own = |word: &WordAt| own.set.iter().any(|it| is_same(it, word));
    let is_known = |word: &WordAt| entries.iter().any(|entry| entry.takes(&key(word)).is_some());
    let same = std::ptr::eq(all, own);
    let inherited = all.set.iter().filter(|word| !same && !is_own(word) && is_known(word));
    inherited.chain(&own.set).map(|word| word.text.clone()).collect()
}
