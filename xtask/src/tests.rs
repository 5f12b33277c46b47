//! Every test of the workspace: built once, then its programs in two rows, side by side.
//!
//! Cargo runs one test program after the other, and most of their time passes waiting: for a switch to start, for a rule to expire,
//! for silence. Here one row runs the programs that move frames between real interfaces, the laboratory before all others: no two of
//! them should meet, since each wants the cores for itself while it measures. The other has those that wait, then what keeps cores
//! busy and finds the same whoever else is busy, then what only looks at what people see. Who is through with frames goes on there.
//! A program that nothing is said of moves frames: to be wrong about it costs time only.

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

/// Test programs, by package and name, that compute and wait for no frame, those first that take longest.
const COMPUTING: &[&str] = &["planimeter:sim", "planimeter:package", "planimeter:truth"];

/// Those that wait for others more than they compute, and measure no time.
const WAITING: &[&str] = &["planimeter:conformance", "planimeter:controllers"];

/// Packages none of whose programs moves a frame but in memory: what takes messages and frames apart, and asks others what they
/// make of them.
const IN_MEMORY: &[&str] = &["dataplane", "forces", "openflow", "packet", "progfe", "snmp"];

/// The one that takes longest of all.
const LABORATORY: &[&str] = &["planimeter:lab"];

/// Those that have frames moved and judge none of the figures, which others may disturb; they come last, so that they seldom meet the
/// laboratory.
const FACES: &[&str] = &["planimeter:cli", "planimeter:guide"];

/// Programs that are named at the end as the longest.
const LONGEST_MAX: usize = 8;

/// A test program, or a command that is as good as one.
pub struct Job {
    name: String,
    command: Command,
}

impl Job {
    /// A command that runs beside the programs that compute.
    pub fn new(name: &str, command: Command) -> Job {
        Job { name: name.to_owned(), command }
    }
}

/// What became of a job.
struct Done {
    name: String,
    took: Duration,
    passed: bool,
}

/// Builds and runs every test, with these variables of its environment, and these jobs beside them; whether all passed.
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

/// Builds every test program, and names it by its package and, where it is none of the package's own unit tests, itself.
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

/// The test program that a line of cargo's tells of, run as cargo would: in the folder of its package.
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

/// Jobs in their order, for whoever comes for the next.
type Row = Mutex<VecDeque<Job>>;

fn row(jobs: impl IntoIterator<Item = Job>) -> Row {
    Mutex::new(jobs.into_iter().collect())
}

/// Runs a row's jobs in their order, up to its end.
fn run_all(row: &Row, done: &Mutex<Vec<Done>>) {
    let next = || row.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(job) = next() {
        let result = run_job(job);
        done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
    }
}

/// The jobs that a list names, in its order, and all others.
fn taken(list: &[&str], mut jobs: Vec<Job>) -> (Vec<Job>, Vec<Job>) {
    let place = |job: &Job| list.iter().position(|it| *it == job.name).unwrap_or(list.len());
    jobs.sort_by_key(place);
    let others = jobs.partition_point(|job| place(job) < list.len());
    let rest = jobs.split_off(others);
    (jobs, rest)
}

/// Runs a job, and prints what it said once it is through, so that two are not mixed.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a program took is told, and decides nothing"
)]
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
    // Whoever closed the output wants no more of it.
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

/// Names what took longest and what failed; whether nothing did.
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
