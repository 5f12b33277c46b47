//! Fuzzing: builds every target of `fuzz/` with the stable toolchain and runs each for a limited
//! time.
//!
//! The targets are ordinary programs with libFuzzer's main function. Coverage is LLVM's `sancov`
//! pass, which stable compiler options enable. AddressSanitizer is an unstable option, which
//! `RUSTC_BOOTSTRAP` allows; its run-time library comes with the stable toolchain. Therefore
//! neither `cargo-fuzz` nor a nightly toolchain is required, only a C++ compiler.
//!
//! Source: `rustc -C passes`, libFuzzer's documentation. Invariant: a target that does not build or
//! run is a failure, never skipped.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::{cargo, step};

/// Default run time of each target in seconds.
pub const SECONDS: u32 = 60;

/// Timeout per input in seconds, for a machine under load.
const INPUT_SECONDS: u32 = 60;

/// Maximum input size in bytes: more than the longest OpenFlow or ForCES message and a full HTTP
/// buffer.
const INPUT_BYTES_MAX: usize = 1 << 16;

/// Targets whose input is a file, and the maximum size of that file in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
const FILES: [&str; 5] =
    ["capture_file", "forces_library", "frame_definitions", "program_file", "stream_file"];

/// Targets that read several buffers in sequence, and the number of bytes before the buffers.
const STREAM_BYTES_MAX: usize = 1 << 18;
const STREAMS: [(&str, usize); 4] =
    [("http_request", 1), ("openflow_session", 1), ("switch_control", 1), ("forces_session", 0)];

/// Size of the long seed of such a target: a full buffer. The fuzzer lengthens short inputs too
/// slowly to reach this in a minute.
const LONG_SEED_BYTES: usize = 1 << 16;

/// The name of that seed.
const LONG_SEED: &str = "long";

/// Lines of a failed target's output to print.
const LINES_SHOWN: usize = 40;

/// Compiler options: coverage with comparisons, and AddressSanitizer.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];

/// Result of a target.
struct Outcome {
    name: String,
    executions: u64,
    coverage: u64,
    is_whole: bool,
}

/// Builds all targets and runs the named ones, or all. Returns whether all passed.
pub fn run(names: &[&str], seconds: u32) -> bool {
    let root = crate::root();
    let Some(host) = host() else {
        println!("== fuzz: `rustc -vV` does not name the host");
        return false;
    };
    if let Err(error) = crate::seeds::write(&root) {
        println!("== fuzz: cannot write the seeds: {error}");
        return false;
    }
    if !step("fuzz: build", build(&root, &host)) {
        return false;
    }
    let programs = root.join("fuzz/target").join(&host).join("release");
    let mut outcomes = Vec::new();
    for name in targets(&root).iter().filter(|it| names.is_empty() || names.contains(&&***it)) {
        println!("== fuzz {name}");
        match one(&root, &programs.join(name), name, seconds) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => {
                println!("== fuzz {name}: cannot run: {error}");
                return false;
            }
        }
    }
    println!("{:<20} {:>12} {:>10}", "fuzz target", "executions", "coverage");
    for Outcome { name, executions, coverage, is_whole } in &outcomes {
        let end = if *is_whole { "" } else { "  FAILED" };
        println!("{name:<20} {executions:>12} {coverage:>10}{end}");
    }
    !outcomes.is_empty() && outcomes.iter().all(|it| it.is_whole && it.executions > 0)
}

/// The names of the targets, sorted.
fn targets(root: &Path) -> Vec<String> {
    let files = fs::read_dir(root.join("fuzz/fuzz_targets")).into_iter().flatten().flatten();
    let name = |file: fs::DirEntry| file.path().file_stem()?.to_str().map(str::to_owned);
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    names
}

/// The target triple of this machine. An explicit triple keeps the flags from build scripts and
/// macros.
fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

fn build(root: &Path, host: &str) -> Command {
    let mut command = cargo(&["build", "--release", "--bins", "--quiet", "--target", host]);
    command.arg("--manifest-path").arg(root.join("fuzz/Cargo.toml"));
    command.arg("--target-dir").arg(root.join("fuzz/target"));
    command.env("RUSTFLAGS", FLAGS.join(" ")).env("RUSTC_BOOTSTRAP", "1");
    command
}

fn one(root: &Path, program: &Path, name: &str, seconds: u32) -> io::Result<Outcome> {
    let corpus = root.join("fuzz/corpus").join(name);
    let artifacts = root.join("fuzz/artifacts").join(name);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    if let Some((_, lead)) = STREAMS.iter().find(|(stream, _)| *stream == name) {
        write_long_seed(&corpus, *lead)?;
    }
    let log = artifacts.join("log");
    let output = File::create(&log)?;
    let mut command = Command::new(program);
    command
        .arg(&corpus)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={}", bytes_max(name)))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg("-print_final_stats=1")
        // SQLite has two static tables with the same name.
        .env("ASAN_OPTIONS", "detect_odr_violation=0")
        .current_dir(root)
        .stdout(output.try_clone()?)
        .stderr(output);
    let status = command.status()?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        print_end(&text, &log);
    }
    let executions = number_behind(&text, "stat::number_of_executed_units:");
    let coverage = number_behind(&text, " cov:");
    Ok(Outcome { name: name.to_owned(), executions, coverage, is_whole: status.success() })
}

fn bytes_max(name: &str) -> usize {
    match name {
        _ if FILES.contains(&name) => FILE_BYTES_MAX,
        _ if STREAMS.iter().any(|(stream, _)| *stream == name) => STREAM_BYTES_MAX,
        _ => INPUT_BYTES_MAX,
    }
}

/// Writes a seed that repeats another one except for its first bytes.
fn write_long_seed(corpus: &Path, lead: usize) -> io::Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(corpus)?.flatten().map(|it| it.path()).collect();
    files.retain(|file| !file.ends_with(LONG_SEED));
    files.sort();
    let Some(file) = files.first() else { return Ok(()) };
    let seed = fs::read(file)?;
    let (lead, body) = seed.split_at(lead.min(seed.len()));
    let times = LONG_SEED_BYTES / body.len().max(1);
    fs::write(corpus.join(LONG_SEED), [lead, &body.repeat(times)].concat())
}

fn print_end(text: &str, log: &Path) {
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
        println!("{line}");
    }
    println!("== full output: {}, next to the failed input", log.display());
}

/// The last number after some words; 0 if there is none.
fn number_behind(text: &str, words: &str) -> u64 {
    let last = text.rsplit_once(words).and_then(|(_, rest)| rest.split_whitespace().next());
    last.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_log() {
        let log = "#2 INITED cov: 12 ft: 13\n#99 DONE cov: 340 ft: 9\nstat::number_of_executed_units: 99\n";
        assert_eq!(number_behind(log, " cov:"), 340);
        assert_eq!(number_behind(log, "stat::number_of_executed_units:"), 99);
        assert_eq!(number_behind("", " cov:"), 0);
    }

    #[test]
    fn every_target_has_a_limit_and_a_program() {
        let names = targets(&crate::root());
        let special = FILES.into_iter().chain(STREAMS.map(|(name, _)| name));
        for name in special {
            assert!(names.iter().any(|it| it == name), "{name}");
        }
        let manifest = fs::read_to_string(crate::root().join("fuzz/Cargo.toml")).unwrap();
        for name in names {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }
}
