//! `planimeter compare`: reports improvements and regressions, and judges gates.
//!
//! Two stored runs are compared directly. Two targets are first measured in turns (A B B A), and again with more
//! repeats before a gate may fail. Exit codes: 0 every gate passed, 1 a gate failed, 3 a gate rests on irregular or
//! tester-limited results, 5 a gate is inconclusive.

pub(super) mod again;
pub(super) mod side;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::contrast::{self, Contrast, ContrastError, Outcome};
use results::gate::Gate;

use super::failure::{self, Failure};
use super::out::{remark, to_stdout};
use super::run::EffortArgument;
use side::Sides;

/// Arguments of `planimeter compare`.
#[derive(clap::Args)]
pub struct Arguments {
    /// What is compared with: a stored run (its folder), one target of it (RUN:TARGET), or a target that is at hand, as
    /// --on takes it; ours@PROGRAM is our switch as another build of planimeter has it, ovs@PREFIX the Open vSwitch
    /// that is installed below that folder
    #[arg(value_name = "BASE")]
    pub base: String,
    /// What is compared: a run, a target of one, or a target
    #[arg(value_name = "NEW")]
    pub new: String,
    /// What the new side has to reach, as a ratio to the base: throughput_pps>=0.97, latency_ns_p99<=1.10. Without any, rates
    /// >=0.97 and latencies (median, p99) <=1.10
    #[arg(long = "gate", value_name = "METRIC>=RATIO")]
    pub gates: Vec<String>,
    /// What to measure on two targets: experiments as `run` takes them
    #[arg(long = "run", value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Measure two targets as this stored run was measured: its experiments, link, effort and parameters
    #[arg(long, value_name = "RUN", conflicts_with_all = ["experiments", "links", "effort", "set"])]
    pub like: Option<PathBuf>,
    /// Let that run, which you did not begin on this host, run the commands and scripts that it names, and use interfaces of this host
    #[arg(long, requires = "like")]
    pub trust: bool,
    /// How tester and targets are joined, as `run` takes it
    #[arg(long = "link", value_name = "[TARGET=]LINK")]
    pub links: Vec<String>,
    /// How long and how often is measured at first
    #[arg(long, value_enum)]
    pub effort: Option<EffortArgument>,
    /// Change a parameter; `planimeter list parameters` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run a command before a target is met
    #[arg(long, value_name = "CMD")]
    pub before: Option<String>,
    /// Run a command before each further experiment on a target
    #[arg(long, value_name = "CMD")]
    pub between: Option<String>,
    /// Run a command after a target's last trial
    #[arg(long, value_name = "CMD")]
    pub after: Option<String>,
    /// Seed of everything random
    #[arg(long)]
    pub seed: Option<u64>,
    /// Folder in which the runs' own folders are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// A store for teams: runs of it are named by id or name, and what is measured is sent to it:
    /// postgres://USER@HOST:PORT/DATABASE; PLANIMETER_STORE unless said
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Exit 1 instead of 5 where a gate is inconclusive: it has to be shown to hold
    #[arg(long)]
    pub strict: bool,
    /// Print what would be measured and how long it would take, and measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the comparison as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Write the gates as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the comparison as Markdown, fit for a comment on a pull request
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let gates = gates(&arguments.gates)?;
    if arguments.dry_run {
        return dry(arguments, &gates);
    }
    for file in [&arguments.junit, &arguments.markdown].into_iter().flatten() {
        writable(file)?;
    }
    let found = match side::read(arguments)? {
        Sides::Stored(stored) => stored.contrast(&gates)?,
        Sides::AtHand => again::measured(arguments, &gates)?,
    };
    told(arguments, &found)?;
    Ok(exit_code(arguments, &found))
}

/// Prints what would be measured and compared.
fn dry(arguments: &Arguments, (gates, _): &(Vec<Gate>, bool)) -> Result<ExitCode, Failure> {
    let gates: Vec<String> = gates.iter().map(ToString::to_string).collect();
    let text = match side::read(arguments)? {
        Sides::Stored(_) => format!(
            "{} and {} are stored runs: nothing is measured\n",
            arguments.base, arguments.new
        ),
        Sides::AtHand => again::dry(arguments)?,
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

fn told(arguments: &Arguments, found: &Contrast) -> Result<(), Failure> {
    let write = |file: &PathBuf, text: String| {
        std::fs::write(file, text)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
    };
    if let Some(file) = &arguments.junit {
        write(file, contrast::junit(found))?;
    }
    if let Some(file) = &arguments.markdown {
        write(file, contrast::markdown(found))?;
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(found).expect("a comparison is plain data");
        to_stdout(format_args!("{json}\n"));
    } else {
        to_stdout(format_args!("{}", contrast::text(found)));
    }
    Ok(())
}

fn exit_code(arguments: &Arguments, found: &Contrast) -> ExitCode {
    exit_of(found.outcome(), arguments.strict).into()
}

/// Returns the exit code for the outcome of gates.
pub(super) fn exit_of(outcome: Option<Outcome>, is_strict: bool) -> u8 {
    match outcome {
        Some(Outcome::Failed) => failure::EXIT_GATE,
        Some(Outcome::Doubtful) => {
            remark!("a gate rests on a result that is missing, irregular or limited by the tester");
            failure::EXIT_IRREGULAR
        }
        Some(Outcome::Inconclusive) => {
            remark!(
                "a gate is inconclusive: it neither failed nor was shown to hold (hint: measure more repeats)"
            );
            if is_strict { failure::EXIT_GATE } else { failure::EXIT_INCONCLUSIVE }
        }
        Some(Outcome::Passed) | None => failure::EXIT_DONE,
    }
}

pub(super) fn refused(error: &ContrastError) -> Failure {
    Failure::usage(error.to_string())
}
