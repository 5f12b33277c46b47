//! Measures two targets in turns, and again with more repeats before a gate may fail.
//!
//! Each measurement is an ordinary run with its own folder and seed. Invariants:
//! - A result that the first measurement did not clearly pass is measured again.
//! - Only a measurement with many repeats can fail a gate.
//! - A clear result of the first measurement causes no further trials.

use record::Record;
use stats::comparison::{self, ComparedRun, Comparison, REMEASURE_FACTORS};
use stats::gate::Gate;

use super::{Arguments, refused};
use crate::cli::failure::{Failure, FailureKind};
use crate::cli::output::remark;
use crate::cli::{self, run, shell_words};
use runner::python::script::is_script;
use studies::taking;
use workload::parameter::Effort;

/// Limit of repeats in one measurement.
const REPEATS_MAX: u32 = 1000;

/// Measures and compares.
pub(super) fn measured(
    arguments: &Arguments,
    (gates, are_written): &(Vec<Gate>, bool),
) -> Result<Comparison, Failure> {
    let asked = asked(arguments)?;
    let first = measure(&asked)?;
    let names = [&arguments.base, &arguments.new].map(String::as_str);
    let [base, new] = sides(names, &first);
    let mut found =
        comparison::contrast(&base, &new, gates, *are_written).map_err(|it| refused(&it))?;
    confirm(&mut found, &first, &asked, names, |_, again| measure(again))?;
    Ok(found)
}

/// Measures targets again, with more repeats, before a gate may fail.
///
/// Calls `measure` with the arguments of the first measurement, changed in experiments, repeats and
/// seed, and with the number of the round.
pub(in crate::cli) fn confirm(
    found: &mut Comparison,
    first: &Record,
    asked: &run::Arguments,
    names: [&str; 2],
    mut measure: impl FnMut(usize, &run::Arguments) -> Result<Record, Failure>,
) -> Result<(), Failure> {
    for (round, times) in REMEASURE_FACTORS.into_iter().enumerate() {
        let experiments = found.undecided();
        if experiments.is_empty() {
            break;
        }
        let repeats = repeats_of(first).saturating_mul(times).min(REPEATS_MAX);
        remark!(
            "not clearly passed: {}; measured again with {repeats} repeats",
            experiments.join(", ")
        );
        let mut set = taken(&asked.set, &experiments);
        set.push(format!("repeats={repeats}"));
        let seed = Some(asked.seed() + 1 + round as u64);
        let again = measure(round, &run::Arguments { experiments, set, seed, ..asked.clone() })?;
        let [base, new] = sides(names, &again);
        found.confirm(&base, &new).map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// Returns the two targets of a run.
pub(in crate::cli) fn sides<'a>(names: [&'a str; 2], record: &'a Record) -> [ComparedRun<'a>; 2] {
    names.map(|name| ComparedRun { name, record, target: Some(name) })
}

/// Describes the first measurement and its approximate duration; results that are not clearly
/// passed are measured again.
pub(super) fn dry(arguments: &Arguments) -> Result<String, Failure> {
    let dry = run::dry(&run::new_plan(&asked(arguments)?)?);
    let again: Vec<String> =
        REMEASURE_FACTORS.iter().map(|times| format!("{times} times")).collect();
    Ok(format!(
        "{}{}\nresults whose gates do not clearly pass are measured again with {} the repeats\n",
        dry.text,
        run::estimate(dry.trials, dry.seconds),
        again.join(", then ")
    ))
}

/// Parameter that takes relative loads from the maximum of one target instead of each target's own.
const LOAD_REFERENCE: &str = "load_reference";

/// Parameter with the order of targets.
pub(in crate::cli) const INTERLEAVING: &str = "interleaving";

/// Returns the catalog entries of these experiments, except for scripts, which would have to be
/// started.
fn entries(experiments: &[String]) -> Vec<&'static studies::CatalogEntry> {
    let names = experiments.iter().filter(|name| !is_script(name));
    names.flat_map(|name| studies::find(name).unwrap_or_default()).collect()
}

/// Returns the assignments that some of these experiments accept; all if one is a script.
fn taken(set: &[String], experiments: &[String]) -> Vec<String> {
    let entries = entries(experiments);
    let is_taken = |text: &&String| {
        let key = text.split('=').next().unwrap_or_default();
        entries.iter().any(|entry| entry.takes(key).is_some())
    };
    let has_script = experiments.iter().any(|name| is_script(name));
    set.iter().filter(|text| has_script || is_taken(text)).cloned().collect()
}

/// Offers both targets the baseline's loads: latencies at shares of each target's own maximum are
/// not comparable.
pub(in crate::cli) fn same_loads(asked: &mut run::Arguments, base: &str) {
    let is_set = taking::is_set(&asked.set, LOAD_REFERENCE);
    let takes = |entry: &&studies::CatalogEntry| entry.takes(LOAD_REFERENCE).is_some();
    if !is_set && entries(&asked.experiments).iter().any(takes) {
        asked.set.push(format!("{LOAD_REFERENCE}={base}"));
    }
}

/// Returns the run for these arguments.
fn asked(arguments: &Arguments) -> Result<run::Arguments, Failure> {
    if arguments.base == arguments.new {
        return Err(Failure::usage(format!(
            "cannot compare {} with itself (hint: name another build as {0}@PROGRAM)",
            arguments.base
        )));
    }
    let mut asked = match &arguments.like {
        Some(folder) => like(folder, arguments.trust)?,
        None if arguments.experiments.is_empty() => {
            return Err(Failure::usage(
                "no experiment for the two targets (hint: add --run EXPERIMENT, such as --run \
                 throughput, or --config-from RUN)",
            ));
        }
        None => run::Arguments {
            experiments: arguments.experiments.clone(),
            links: arguments.links.clone(),
            effort: arguments.effort,
            set: arguments.set.clone(),
            ..run::Arguments::empty()
        },
    };
    asked.targets = vec![arguments.base.clone(), arguments.new.clone()];
    asked.topologies.clear();
    asked.out = Some(arguments.out.clone());
    asked.seed = arguments.seed.or(asked.seed);
    asked.store.clone_from(&arguments.store);
    for (own, given) in [
        (&mut asked.before, &arguments.before),
        (&mut asked.between, &arguments.between),
        (&mut asked.after, &arguments.after),
    ] {
        if given.is_some() {
            own.clone_from(given);
        }
    }
    if !taking::is_set(&asked.set, INTERLEAVING) {
        asked.set.push(format!("{INTERLEAVING}=abba"));
    }
    same_loads(&mut asked, &arguments.base);
    Ok(asked)
}

/// Returns the arguments of a stored run, without its targets.
fn like(folder: &std::path::Path, is_trusted: bool) -> Result<run::Arguments, Failure> {
    let record = store::read_results(folder).map_err(|error| cli::report::unreadable(&error))?;
    cli::trust::allow_line(folder, &record.command_line, is_trusted)?;
    let mut arguments =
        run::parsed(&shell_words::split(&record.command_line)).ok_or_else(|| {
            Failure::usage(format!(
                "{}: this version cannot parse the command line of the run",
                folder.display()
            ))
        })?;
    // Links of single targets are not among these.
    let targets: Vec<String> = arguments.targets.iter().map(|name| format!("{name}=")).collect();
    arguments.links.retain(|link| !targets.iter().any(|target| link.starts_with(target.as_str())));
    Ok(arguments)
}

fn measure(asked: &run::Arguments) -> Result<Record, Failure> {
    let finished = run::measure(asked)?;
    remark!("{}", finished.folder.join("report.html").display());
    if finished.record.partial {
        let line = "interrupted: partial results are kept, nothing is compared".into();
        return Err(Failure { kind: FailureKind::Interrupted, line });
    }
    Ok(finished.record)
}

/// Returns the number of repeats of each trial in the run.
fn repeats_of(record: &Record) -> u32 {
    let said = record.parameters.get("repeats").and_then(serde_json::Value::as_u64);
    said.map_or(Effort::Standard.seconds_and_repeats().1, |repeats| repeats as u32)
}
