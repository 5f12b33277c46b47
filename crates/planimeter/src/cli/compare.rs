//! `planimeter compare`: reports improvements and regressions, and judges gates.
//!
//! Two stored runs are compared directly. Two targets are first measured in turns (A B B A), and
//! again with more repeats before a gate may fail. The worst outcome of a gate determines the exit
//! code ([`failure::EXIT_CODES`]).

pub(super) mod remeasure;
pub(super) mod operand;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap_complete::engine::ArgValueCompleter;
use stats::comparison::{self, Comparison, ContrastError};
use stats::gate::Gate;
use stats::gate::Outcome;

use super::completion;
use super::failure::{self, Failure};
use super::output::{remark, to_stdout};
use super::run::EffortArgument;
use operand::Operands;

/// Arguments of `planimeter compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Base: a stored run (its folder), one of its targets (RUN:TARGET), or a target as for --on;
    /// switch@PROGRAM and ovs@PREFIX are other builds
    #[arg(value_name = "BASE", add = ArgValueCompleter::new(completion::sides))]
    pub(crate) base: String,
    /// What to compare with the base, in the same form
    #[arg(value_name = "NEW", add = ArgValueCompleter::new(completion::sides))]
    pub(crate) new: String,
    /// Required ratio of new to base, such as throughput_pps>=0.97 [default: rates >=0.97, median
    /// and p99 latencies <=1.10]
    #[arg(long = "gate", value_name = "GATE")]
    pub(crate) gates: Vec<String>,
    /// Experiment to measure on two targets, as for 'planimeter run'
    #[arg(
        long = "run",
        value_name = "EXPERIMENT",
        add = ArgValueCompleter::new(completion::experiments)
    )]
    pub(crate) experiments: Vec<String>,
    /// Measure two targets with the experiments, link, effort and parameters of a stored run
    #[arg(long = "config-from", value_name = "RUN", conflicts_with_all = ["experiments", "links", "effort", "set"])]
    pub(crate) like: Option<PathBuf>,
    /// Link between tester and targets, as for 'planimeter run'
    #[arg(
        long = "link",
        value_name = "[TARGET=]LINK",
        add = ArgValueCompleter::new(completion::links)
    )]
    pub(crate) links: Vec<String>,
    /// Effort of the first measurement, as for 'planimeter run' [default: quick]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub(crate) effort: Option<EffortArgument>,
    /// Set a parameter, see 'planimeter list parameters'
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        add = ArgValueCompleter::new(completion::assignments)
    )]
    pub(crate) set: Vec<String>,
    /// Seed of all random choices [default: that of --config-from, or 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Folder in which runs create their own folders
    #[arg(long = "output", value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Print what would be measured and the estimated duration, and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit with 1 instead of 5 if a gate is inconclusive
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the comparison as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the gates to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the comparison to this file as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Command to run before the first experiment on a target
    #[arg(long = "setup", value_name = "CMD")]
    pub(crate) before: Option<String>,
    /// Command to run before each further experiment on a target
    #[arg(long = "prepare", value_name = "CMD")]
    pub(crate) between: Option<String>,
    /// Command to run after the last trial on a target
    #[arg(long = "cleanup", value_name = "CMD")]
    pub(crate) after: Option<String>,
    /// Team store with runs by id or name: postgres://USER@HOST:PORT/DATABASE [env:
    /// PLANIMETER_STORE]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Let another user's run (--config-from) execute its commands and scripts, and use interfaces of this
    /// host
    #[arg(long = "allow-commands", requires = "like")]
    pub(crate) trust: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter compare runs/BASE runs/NEW --gate 'throughput_pps>=0.97'
  planimeter compare runs/RUN:ovs runs/RUN:switch
  planimeter compare switch switch@./before/planimeter --run throughput --junit gates.xml";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let gates = gates(&arguments.gates)?;
    if arguments.dry_run {
        return dry(arguments, &gates);
    }
    for file in [&arguments.junit, &arguments.markdown].into_iter().flatten() {
        writable(file)?;
    }
    let found = match operand::read(arguments)? {
        Operands::Stored(stored) => stored.contrast(&gates)?,
        Operands::AtHand => remeasure::measured(arguments, &gates)?,
    };
    told(arguments, &found)?;
    Ok(exit_code(arguments, &found))
}

/// Prints what would be measured and compared.
fn dry(arguments: &Arguments, (gates, _): &(Vec<Gate>, bool)) -> Result<ExitCode, Failure> {
    let gates: Vec<String> = gates.iter().map(ToString::to_string).collect();
    let text = match operand::read(arguments)? {
        Operands::Stored(_) => format!(
            "{} and {} are stored runs: nothing to measure\n",
            arguments.base, arguments.new
        ),
        Operands::AtHand => remeasure::dry(arguments)?,
    };
    to_stdout(format_args!("{text}gates: {}\n", gates.join(", ")));
    Ok(ExitCode::SUCCESS)
}

/// Returns the gates, and whether the user gave them.
fn gates(texts: &[String]) -> Result<(Vec<Gate>, bool), Failure> {
    if texts.is_empty() {
        return Ok((Gate::by_default(), false));
    }
    let read = |text: &String| {
        let gate = text.parse::<Gate>();
        gate.map_err(|error| Failure::usage(format!("--gate {text}: {error}")))
    };
    Ok((texts.iter().map(read).collect::<Result<_, _>>()?, true))
}

/// Verifies that a file can be written, before anything is measured.
pub(super) fn writable(file: &Path) -> Result<(), Failure> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    opened.map(|_| ()).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn told(arguments: &Arguments, found: &Comparison) -> Result<(), Failure> {
    let write = |file: &PathBuf, text: String| {
        std::fs::write(file, text)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
    };
    if let Some(file) = &arguments.junit {
        write(file, comparison::junit(found))?;
    }
    if let Some(file) = &arguments.markdown {
        write(file, comparison::markdown(found))?;
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(found).expect("a comparison is plain data");
        to_stdout(format_args!("{json}\n"));
    } else {
        to_stdout(format_args!("{}", comparison::text(found)));
    }
    Ok(())
}

fn exit_code(arguments: &Arguments, found: &Comparison) -> ExitCode {
    exit_of(found.outcome(), arguments.strict).into()
}

/// Returns the exit code for the outcome of gates.
pub(super) fn exit_of(outcome: Option<Outcome>, is_strict: bool) -> u8 {
    match outcome {
        Some(Outcome::Failed) => failure::EXIT_GATE,
        Some(Outcome::Doubtful) => {
            remark!("a gate depends on a result that is missing, irregular or tester-limited");
            failure::EXIT_IRREGULAR
        }
        Some(Outcome::Inconclusive) => {
            remark!(
                "a gate is inconclusive: it neither passed nor failed (hint: increase --set \
                 repeats)"
            );
            if is_strict { failure::EXIT_GATE } else { failure::EXIT_INCONCLUSIVE }
        }
        Some(Outcome::Passed) | None => failure::EXIT_DONE,
    }
}

pub(super) fn refused(error: &ContrastError) -> Failure {
    Failure::usage(error.to_string())
}
