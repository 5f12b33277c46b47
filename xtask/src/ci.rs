//! All checks in order, cheapest first.
//!
//! The tests with real interfaces are ordinary `cargo test` targets. They run if the machine allows
//! it and otherwise name the missing requirement. They must not be skipped if `CI` is set and the
//! user is root.

use std::process::{Command, ExitCode};

use crate::tests::Job;

/// Extent of the checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Checks for every change.
    EveryChange,
    /// In addition, slow checks: long property tests, the second architecture and fuzzing.
    Full,
}

/// Environment variables that make randomized tests thorough in a full check.
const THOROUGH: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "20000"),
    ("TRUTH_CASES", "1400"),
    ("TRUTH_CASES_MODELS", "100"),
    ("TRUTH_CASES_ACTIVATION", "300"),
    ("TRUTH_CASES_HONEST", "1000"),
    ("TRUTH_CASES_VERDICTS", "200"),
    ("TRUTH_CASES_TRIPS", "200"),
    ("PATH_CASES", "100"),
    ("FAST_PATH_CASES", "10000"),
    ("TRUTH_CASES_GATE", "2000"),
    ("TRUTH_CASES_LIVE", "100"),
];

/// Prefixes of the variables in which cargo describes a program's package.
const OF_PACKAGE: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];

/// Runs all checks until the first failure.
pub fn run(extent: Extent) -> ExitCode {
    if has_component("fmt") && !step("format", cargo(&["fmt", "--all", "--check"])) {
        return ExitCode::FAILURE;
    }
    println!("== tidy");
    if !crate::tidy::check_and_print() {
        return ExitCode::FAILURE;
    }
    if !crate::deny::run() {
        return ExitCode::FAILURE;
    }
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    if has_component("clippy") && !step("lints", cargo(&clippy)) {
        return ExitCode::FAILURE;
    }
    let variables = if extent == Extent::Full { THOROUGH } else { &[] };
    if !crate::tests::run(variables, vec![Job::new("model", models())]) {
        return ExitCode::FAILURE;
    }
    if extent == Extent::Full
        && !(crate::cross::run() && crate::fuzz::run(&[], crate::fuzz::SECONDS))
    {
        return ExitCode::FAILURE;
    }
    println!("== all checks passed");
    ExitCode::SUCCESS
}

/// Runs the concurrency models.
pub fn model() -> ExitCode {
    if step("model", models()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The `loom` tests. They need a build of their own, in a separate folder.
fn models() -> Command {
    let mut command = cargo(&["test", "-p", "dataplane", "--lib", "--release", "model::"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", crate::root().join("target/loom"));
    command
}

/// Updates the expected outputs of tests.
pub fn bless() -> ExitCode {
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests.env("UPDATE", "1");
    let done = step("bless", tests);
    println!("check `git diff`: every changed line is a change of behaviour");
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn has_component(name: &str) -> bool {
    let there = cargo(&[name, "--version"]).output().is_ok_and(|output| output.status.success());
    if !there {
        println!("== {name}: skipped, requires `rustup component add {name}`");
    }
    there
}

pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(crate::root());
    // Removes cargo's variables about this package. Otherwise, cargo rebuilds crates that use them
    // and all their dependents.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|it| OF_PACKAGE.iter().any(|start| it.starts_with(start))) {
            command.env_remove(name);
        }
    }
    built_once(&mut command);
    command
}

/// Settings for a single build: no incremental data and no debug information. Fewer codegen units
/// for an optimized crate save an eighth of the time. Every cargo call needs the same settings, or
/// everything is rebuilt.
pub fn built_once(command: &mut Command) {
    if std::env::var_os("CI").is_some() {
        let variables =
            [("INCREMENTAL", "0"), ("PROFILE_DEV_DEBUG", "0"), ("PROFILE_DEV_CODEGEN_UNITS", "4")];
        command.envs(variables.map(|(name, value)| (format!("CARGO_{name}"), value)));
    }
}

pub fn step(name: &str, mut command: Command) -> bool {
    println!("== {name}");
    match command.status() {
        Ok(status) if status.success() => true,
        Ok(status) => {
            println!("== {name}: failed ({status})");
            false
        }
        Err(error) => {
            println!("== {name}: cannot start: {error}");
            false
        }
    }
}
