//! `planimeter model fit`: fits a model of a switch to runs that measured it.
//!
//! The model goes to stdout or into a file, every number with its source. Its basis and its missing
//! values go to stderr.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use elements::hardware_model::model::file;

use super::failure::Failure;
use super::output::{remark, say, to_stdout};
use super::report::unreadable;
use crate::model_fit::{self, FitResult, Run};

/// Arguments of `planimeter model`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Derive a model file from stored runs
    Fit(FitArguments),
}

/// Arguments of `planimeter model fit`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct FitArguments {
    /// Folders of runs with results of measurement modules, such as rule-activation
    #[arg(required_unless_present = "what", value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Print the runs that a complete fit needs, and exit
    #[arg(long)]
    what: bool,
    /// Target to fit; required if the runs have several
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Name of the model [default: from the target]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the model to this new file [default: print it]
    #[arg(long = "output", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print fitted and assumed values as JSON
    #[arg(long)]
    json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter model fit --what
  planimeter model fit runs/FIRST runs/SECOND --output my-switch.toml
  planimeter run rule-activation --on switch:model=./my-switch.toml";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Command::Fit(arguments) = &arguments.command;
    if arguments.what {
        model_fit::WANTED.iter().for_each(|runs| say!("planimeter run {runs} --on TARGET"));
        return Ok(ExitCode::SUCCESS);
    }
    let runs = arguments.runs.iter().map(|folder| read(folder)).collect::<Result<Vec<_>, _>>()?;
    let target = target(&runs, arguments.target.as_deref())?;
    let name = arguments.name.clone().unwrap_or_else(|| model_fit::name_of(&target));
    let fitted = model_fit::fit(&runs, &target, &name);
    let text = fitted.model.to_text();
    file::read(&text).map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        Failure::usage(format!("cannot build the model {name:?}: {first}"))
    })?;
    if let Some(file) = &arguments.out {
        write(file, &text)?;
    }
    match (arguments.json, &arguments.out) {
        (true, _) => say!("{}", json(&fitted, &target)),
        (false, None) => to_stdout(format_args!("{text}")),
        (false, Some(_)) => {}
    }
    tell(&fitted, &target, arguments.out.as_deref());
    Ok(ExitCode::SUCCESS)
}

fn read(folder: &Path) -> Result<Run, Failure> {
    let record = store::read_record(folder).map_err(|error| unreadable(&error))?;
    let name = folder.canonicalize().ok();
    let name = name.as_deref().unwrap_or(folder).file_name();
    let name = name.map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
    Ok(Run { name, record })
}

/// Returns the target to fit.
fn target(runs: &[Run], asked: Option<&str>) -> Result<String, Failure> {
    let known = model_fit::targets(runs);
    let listed = || known.join(", ");
    match (asked, known.as_slice()) {
        (_, []) => Err(Failure::usage(
            "no results of measurement modules in these runs (hint: run 'planimeter model fit \
             --what' to list useful runs)",
        )),
        (Some(asked), _) if known.contains(&asked) => Ok(asked.into()),
        (Some(asked), _) => Err(Failure::usage(format!(
            "--target {asked}: not in these runs (hint: use one of {})",
            listed()
        ))),
        (None, [only]) => Ok((*only).into()),
        (None, _) => Err(Failure::usage(format!(
            "these runs measured several targets (hint: add --target with one of {})",
            listed()
        ))),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |error| Failure::usage(format!("cannot write {}: {error}", file.display()));
    let mut open = OpenOptions::new().write(true).create_new(true).open(file).map_err(cannot)?;
    open.write_all(text.as_bytes()).map_err(cannot)
}

fn json(fitted: &FitResult, target: &str) -> serde_json::Value {
    let source = |key: &str| fitted.model.sources.get(key).cloned().unwrap_or_default();
    let found = fitted.found.iter().map(|it| {
        serde_json::json!({
            "key": it.key, "value": it.value, "half_width": it.half, "source": source(it.key),
        })
    });
    let assumed =
        fitted.assumed.iter().map(|(key, why)| serde_json::json!({ "key": key, "why": why }));
    serde_json::json!({
        "name": fitted.model.name,
        "target": target,
        "found": found.collect::<Vec<_>>(),
        "assumed": assumed.collect::<Vec<_>>(),
    })
}

/// Prints how many values were found, and which runs would add the rest.
fn tell(fitted: &FitResult, target: &str, file: Option<&Path>) {
    let (found, assumed) = (fitted.found.len(), fitted.assumed.len());
    remark!(
        "{target}: {found} values fitted, {assumed} assumed; the model states the source of each"
    );
    let (mut told, wanted) = (Vec::new(), "not measured; run ");
    for (key, why) in fitted.assumed.iter().filter(|(_, why)| why.starts_with(wanted)) {
        let remedy = &why[wanted.len()..];
        if !told.contains(&remedy) {
            told.push(remedy);
            remark!("  {key} is assumed (hint: run {remedy})");
        }
    }
    if let Some(file) = file {
        let path = file.display();
        let place = if file.components().count() > 1 { "" } else { "./" };
        remark!("measure the model with --on switch:model={place}{path}");
    }
}
