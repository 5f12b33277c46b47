//! `planimeter run PLAN.toml`: runs a plan, which is a file of steps with the options of command
//! lines, and gates on their results.
//!
//! Invariants:
//! - A step is the arguments of `planimeter run` and is measured by the same code.
//! - A plan is checked as a whole before any measurement, and every error is reported with file,
//!   line and column.
//! - The plan is stored in the folder of its runs, from which it can resume after any end.

pub mod campaign;
mod file;
mod gates;
mod steps;
#[cfg(test)]
mod tests;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::campaign as stored;

use super::failure::Failure;
use super::output::{remark, say, to_stdout};
use super::run::{self, Arguments};
use campaign::Campaign;
use gates::GateTask;
use steps::StepOptions;
use text::Faults;
use workload::parameter::Effort;

pub use file::ParsedGate;
pub use gates::run_of;
pub use steps::Step;

/// File name extension of a plan.
pub const ENDING: &str = ".toml";

/// A valid plan.
pub struct Plan {
    /// Its file, for messages.
    file: String,
    /// Its text.
    text: String,
    /// Its name.
    name: String,
    /// Its steps, each with its run.
    steps: Vec<(Step, runner::Plan)>,
    /// Its gates, as they are written.
    wanted: Vec<ParsedGate>,
    /// Comparisons after the runs.
    tasks: Vec<GateTask>,
    /// Whether irregular results count as failures.
    is_strict: bool,
    /// Folder in which the plan's own folder is created.
    out: PathBuf,
}

/// Resumes the campaign in a folder.
pub fn resume(arguments: &Arguments, folder: &Path) -> Result<ExitCode, Failure> {
    let arguments = rooted(arguments);
    Campaign::resume(folder, &arguments)?.carry_out(&arguments)
}

/// Runs the plan in a file.
pub fn run(arguments: &Arguments, file: &str) -> Result<ExitCode, Failure> {
    refuse(arguments, file)?;
    let beside = StepOptions { effort: arguments.effort, seed: arguments.seed };
    let plan = Plan::read(Path::new(file), beside, arguments)?;
    if arguments.dry_run {
        to_stdout(format_args!("{}", plan.dry()));
        return Ok(ExitCode::SUCCESS);
    }
    writable(arguments)?;
    Campaign::begin(plan, beside)?.carry_out(arguments)
}

/// Verifies before any measurement that the gate reports can be written.
fn writable(arguments: &Arguments) -> Result<(), Failure> {
    let files = [&arguments.junit, &arguments.markdown];
    files.into_iter().flatten().try_for_each(|file| super::compare::writable(file))
}

/// Rejects options that the plan itself sets.
pub fn refuse(arguments: &Arguments, file: &str) -> Result<(), Failure> {
    if arguments.experiments.len() > 1 {
        return Err(Failure::usage(format!(
            "{file} cannot be combined with other experiments (hint: add a [[step]] for them to a \
             plan)"
        )));
    }
    let given = |texts: &[String]| !texts.is_empty();
    let stray = [
        ("--on", "on", given(&arguments.targets)),
        ("--topology", "topology", given(&arguments.topologies)),
        ("--link", "link", given(&arguments.links)),
        ("--set", "[set]", given(&arguments.set)),
        ("--setup", "before", arguments.before.is_some()),
        ("--prepare", "between", arguments.between.is_some()),
        ("--cleanup", "after", arguments.after.is_some()),
    ];
    match stray.iter().find(|(.., is_given)| *is_given) {
        Some((flag, key, _)) => Err(Failure::usage(format!(
            "{flag} cannot be combined with {file} (hint: write {key} in the plan; --effort, \
             --seed, --output, --strict, --dry-run, --json, --junit and --markdown are allowed)"
        ))),
        None => Ok(()),
    }
}

/// Returns the gates of a valid plan.
pub fn gates_of(text: &str) -> Vec<ParsedGate> {
    file::read(text, &mut Faults::default()).gates
}

/// Returns the arguments of a plan's steps, unchecked.
pub fn written_steps(text: &str) -> Vec<Arguments> {
    let written = file::read(text, &mut Faults::default());
    let steps = std::iter::once(&written.all).chain(&written.steps);
    steps.map(steps::as_written).collect()
}

/// Returns the plans in a folder by file name, sorted, up to this limit.
pub fn in_folder(folder: &Path, most: usize) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // A name that begins otherwise could be mistaken for an option.
    let is_plain = |name: &String| name.starts_with(|letter: char| letter.is_alphanumeric());
    let names = names.filter(|name| name.ends_with(ENDING)).filter(is_plain);
    let is_plan = |name: &String| {
        let steps = text_of(&folder.join(name)).map(|text| written_steps(&text));
        steps.is_ok_and(|steps| steps.iter().any(|step| !step.experiments.is_empty()))
    };
    let mut found: Vec<String> = names.filter(is_plan).collect();
    found.sort();
    found.truncate(most);
    found
}

/// Reads a plan's file, up to the size limit.
pub fn text_of(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let read = opened.take(file::BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > file::BYTES_MAX {
        return Err(format!("the file is too large: a plan has at most {} bytes", file::BYTES_MAX));
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Returns the arguments with absolute output files, so that they stay valid in another working
/// directory.
pub fn rooted(arguments: &Arguments) -> Arguments {
    let rooted = |file: &Option<PathBuf>| {
        file.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
    };
    let (junit, markdown) = (rooted(&arguments.junit), rooted(&arguments.markdown));
    Arguments { junit, markdown, ..arguments.clone() }
}

/// Changes to the folder of a bundle's files if the campaign came from a bundle; relative names in
/// its plan refer to it.
pub fn enter(folder: &Path) -> Result<(), Failure> {
    let files = folder.join(super::bundle::FILES_FOLDER);
    if !files.is_dir() {
        return Ok(());
    }
    std::env::set_current_dir(&files)
        .map_err(|error| Failure::usage(format!("{}: {error}", files.display())))
}

/// Returns the campaign of a bundle that was unpacked into this folder; `None` for a dry run.
pub fn of_bundle(
    arguments: &Arguments,
    text: String,
    name: &str,
    folder: PathBuf,
) -> Result<Option<Campaign>, Failure> {
    let beside = StepOptions { effort: arguments.effort, seed: arguments.seed };
    let plan = Plan::understood((stored::PLAN_FILE, name), text, beside, arguments)?;
    if arguments.dry_run {
        to_stdout(format_args!("{}", plan.dry()));
        return Ok(None);
    }
    writable(arguments)?;
    Campaign::begin_in(folder, plan, beside).map(Some)
}

impl Plan {
    /// Reads the plan of a file, with options of the command line.
    fn read(file: &Path, beside: StepOptions, arguments: &Arguments) -> Result<Plan, Failure> {
        let shown = file.display().to_string();
        let unreadable = |why: String| Failure::usage(format!("cannot read {shown}: {why}"));
        let text = text_of(file).map_err(unreadable)?;
        let stem = file.file_stem().map_or("plan".into(), |stem| stem.to_string_lossy());
        Plan::understood((&shown, &stem), text, beside, arguments)
    }

    /// Parses a plan; every error is reported.
    fn understood(
        (file, stem): (&str, &str),
        text: String,
        beside: StepOptions,
        arguments: &Arguments,
    ) -> Result<Plan, Failure> {
        let mut faults = Faults::default();
        let written = file::read(&text, &mut faults);
        let mut steps = steps::of(&written, beside, &mut faults);
        let out = arguments.out.clone().or_else(|| written.out.as_ref().map(PathBuf::from));
        let out = out.unwrap_or_else(|| arguments.out_folder());
        gates::by_turns(&mut steps, &written.gates, &out);
        let mut planned = Vec::new();
        if faults.is_empty() {
            for step in steps {
                match run::new_plan(&step.arguments) {
                    Ok(plan) => planned.push((step, plan)),
                    Err(failure) if failure.exit_code() == Failure::need("").exit_code() => {
                        let line = format!("step {}: {}", step.name, failure.line);
                        return Err(Failure { line, ..failure });
                    }
                    Err(failure) => {
                        faults.add(step.at, format!("step {}: {}", step.name, failure.line));
                    }
                }
            }
        }
        let tasks = match faults.is_empty() {
            true => gates::tasks(&planned, &written.gates, &out, &mut faults),
            false => Vec::new(),
        };
        if !faults.is_empty() {
            return Err(told(faults, file, &text));
        }
        let name = written.all.name.as_ref().map_or(stem, |word| word.text.as_str()).to_string();
        Ok(Plan {
            file: file.to_string(),
            text,
            name,
            steps: planned,
            wanted: written.gates,
            tasks,
            is_strict: arguments.strict || written.strict,
            out,
        })
    }

    /// Describes the plan's runs and their approximate duration.
    fn dry(&self) -> String {
        let steps = if self.steps.len() == 1 { "step" } else { "steps" };
        let mut text = format!("plan {}: {} {steps}\n", self.name, self.steps.len());
        let (mut trials, mut seconds) = (0, 0.0);
        for (number, (step, plan)) in self.steps.iter().enumerate() {
            let dry = run::dry(plan);
            text += &format!("\nstep {}, {}\n{}", number + 1, step.name, dry.text);
            trials += dry.trials;
            seconds += dry.seconds;
        }
        if !self.tasks.is_empty() {
            text += "\ngates (targets may be measured again)\n";
            self.tasks.iter().for_each(|task| text += &format!("  {}\n", task.told(&self.steps)));
        }
        text + &format!("\n{}\n", run::estimate(trials, seconds))
    }
}

/// Prints all errors but the last on stderr; the last becomes the failure, with the count of all.
fn told(faults: Faults, file: &str, text: &str) -> Failure {
    let mut lines = faults.lines(file, text);
    let last = lines.pop().unwrap_or_default();
    for line in &lines {
        remark!("planimeter: {line}");
    }
    let count = match lines.len() {
        0 => String::new(),
        more => format!(" ({} errors in total; nothing was measured)", more + 1),
    };
    Failure::usage(format!("{last}{count}"))
}

/// Converts an effort to the record's type.
fn stored_effort(effort: Effort) -> record::Effort {
    match effort {
        Effort::Quick => record::Effort::Quick,
        Effort::Standard => record::Effort::Standard,
        Effort::Full => record::Effort::Full,
    }
}

/// Converts an effort that was given on the command line of a campaign.
fn given_effort(effort: record::Effort) -> run::EffortArgument {
    match effort {
        record::Effort::Quick => run::EffortArgument::Quick,
        record::Effort::Standard => run::EffortArgument::Standard,
        record::Effort::Full => run::EffortArgument::Full,
    }
}

/// Prints the path of a campaign's report.
fn told_folder(folder: &Path) {
    say!("\n{}", folder.join("report.html").display());
}
