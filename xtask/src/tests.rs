//! Runs all tests of the workspace: builds once, then runs the test programs in two parallel rows.
//!
//! Cargo runs one test program after the other. Most of their time passes waiting for a switch to
//! start, a rule to expire, or a timeout. The two rows overlap these waits:
//!
//! - One row runs the programs that send frames between real interfaces, starting with the lab. No
//!   two of these should overlap, because each needs the cores for its measurements.
//! - The other row runs the programs that wait, then those that compute and do not depend on
//!   timing, then the tests of the user interface.
//! - When the first row is finished, it takes jobs from the second.
//!
//! A program in none of the lists counts as one that sends frames. A wrong guess costs only time.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ci::{built_once, cargo};

/// Test programs, by package and name, that compute and wait for no frame, longest first.
const COMPUTING: &[&str] = &["planimeter:sim", "planimeter:package", "planimeter:truth"];

/// Test programs that mostly wait and measure no time.
const WAITING: &[&str] = &["planimeter:conformance", "planimeter:controllers"];

/// Packages whose tests send frames only in memory, if at all: codecs, and comparisons with other
/// decoders.
const IN_MEMORY: &[&str] = &[
    "dataplane",
    "experiments",
    "forces",
    "openflow",
    "packet",
    "progfe",
    "record",
    "snmp",
    "stats",
    "studies",
    "workload",
];

/// The test program with the longest run time.
const LABORATORY: &[&str] = &["planimeter:lab"];

/// Test programs that send frames but do not check the values, so that other programs may disturb
/// them. They come last, so that they seldom overlap the lab.
const FACES: &[&str] = &["planimeter:cli", "planimeter:guide"];

/// Number of slowest programs in the summary.
const LONGEST_MAX: usize = 8;

/// A test program, or a command that counts as one.
pub struct Job {
    name: String,
    command: Command,
}

impl Job {
    /// A command that runs in parallel with the computing programs.
    pub fn new(name: &str, command: Command) -> Job {
        Job { name: name.to_owned(), command }
    }
}

/// Result of a job.
struct Done {
    name: String,
    took: Duration,
    passed: bool,
}

/// Builds and runs all tests with these environment variables and additional jobs. Returns whether
/// all passed.
pub fn run(variables: &[(&str, &str)], beside: Vec<Job>) -> bool {
    println!("== tests are built");
    let Some(programs) = build(variables) else {
        println!("== tests: they cannot be built");
        return false;
    };
    let is_in_memory = |job: &Job| match job.name.split_once(':') {
        Some((package, _)) => IN_MEMORY.contains(&package),
        None => true,
    };
    let (short, programs): (Vec<Job>, Vec<Job>) = programs.into_iter().partition(is_in_memory);
    let (waiting, programs) = taken(WAITING, programs);
    let (computing, programs) = taken(COMPUTING, programs);
    let (faces, programs) = taken(FACES, programs);
    let (laboratory, moving) = taken(LABORATORY, programs);
    let documentation = cargo(&["test", "--workspace", "--doc", "--quiet"]);
    let documentation = Job::new("documentation", documentation);
    let computing = computing.into_iter().chain(beside).chain([documentation]);

    println!("== tests");
    let done = Mutex::new(Vec::new());
    let moving = &row(laboratory.into_iter().chain(moving));
    let others = &row(waiting.into_iter().chain(computing).chain(short).chain(faces));
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || [moving, others].map(|row| run_all(row, done)));
        scope.spawn(move || run_all(others, done));
    });
    summary(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Builds all test programs. Names them by package and, except for unit tests, by program.
fn build(variables: &[(&str, &str)]) -> Option<Vec<Job>> {
    let format = "--message-format=json-render-diagnostics";
    let mut command = cargo(&["test", "--workspace", "--tests", "--no-run", "--quiet", format]);
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    let programs = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|told| program(&told, variables))
        .collect();
    output.status.success().then_some(programs)
}

/// The test program in a line of cargo's output, to run in the folder of its package as cargo does.
fn program(told: &Value, variables: &[(&str, &str)]) -> Option<Job> {
    let executable = told["executable"].as_str()?;
    if told["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(told["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_str()?;
    let target = &told["target"];
    let name = match target["kind"][0].as_str()? {
        "test" => format!("{package}:{}", target["name"].as_str()?),
        _ => package.to_owned(),
    };
    let mut command = Command::new(executable);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    command.envs(variables.iter().copied());
    built_once(&mut command);
    Some(Job { name, command })
}

/// A queue of jobs for several threads.
type Row = Mutex<VecDeque<Job>>;

fn row(jobs: impl IntoIterator<Item = Job>) -> Row {
    Mutex::new(jobs.into_iter().collect())
}

/// Runs the jobs of a queue in order until it is empty.
fn run_all(row: &Row, done: &Mutex<Vec<Done>>) {
    let next = || row.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(job) = next() {
        let result = run_job(job);
        done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
    }
}

/// Splits jobs into those of a list, in its order, and the others.
fn taken(list: &[&str], mut jobs: Vec<Job>) -> (Vec<Job>, Vec<Job>) {
    let place = |job: &Job| list.iter().position(|it| *it == job.name).unwrap_or(list.len());
    jobs.sort_by_key(place);
    let others = jobs.partition_point(|job| place(job) < list.len());
    let rest = jobs.split_off(others);
    (jobs, rest)
}

/// Runs a job and prints its output at the end, so that outputs of parallel jobs do not mix.
#[expect(clippy::disallowed_methods, reason = "the run time is only printed")]
fn run_job(Job { name, mut command }: Job) -> Done {
    let started = Instant::now();
    let log = crate::root().join("target").join("tests").join(name.replace(':', "-") + ".log");
    let outcome = run_into(&mut command, &log);
    let took = started.elapsed();
    let said = fs::read(&log).unwrap_or_default();
    let (passed, how) = match outcome {
        Ok(status) if status.success() => (true, String::new()),
        Ok(status) => (false, format!(", FAILED ({status})")),
        Err(error) => (false, format!(", FAILED: it cannot be run: {error}")),
    };
    let mut out = io::stdout().lock();
    // Ignores a closed output.
    let _ = writeln!(out, "-- {name}: {:.1} s{how}", took.as_secs_f64());
    let _ = out.write_all(&said);
    Done { name, took, passed }
}

fn run_into(command: &mut Command, log: &Path) -> io::Result<ExitStatus> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status()
}

/// Prints the slowest and the failed jobs. Returns whether none failed.
fn summary(mut done: Vec<Done>) -> bool {
    done.sort_by_key(|it| Reverse(it.took));
    let longest: Vec<String> = done
        .iter()
        .take(LONGEST_MAX)
        .map(|it| format!("{} {:.0} s", it.name, it.took.as_secs_f64()))
        .collect();
    println!("== tests: {} programs, the longest: {}", done.len(), longest.join(", "));
    let failed: Vec<&str> =
        done.iter().filter(|it| !it.passed).map(|it| it.name.as_str()).collect();
    if !failed.is_empty() {
        println!("== tests: failed: {}", failed.join(", "));
    }
    failed.is_empty()
}
