//! The order in which everything is checked, cheapest first.
//!
//! The tests of real interfaces are ordinary `cargo test` targets: they run wherever this machine
//! allows them, name the need that is missing where it does not, and may not skip where `CI` is
//! set and the user is root.

use std::process::{Command, ExitCode};

use crate::tests::Job;

/// How much is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What every change must pass.
    EveryChange,
    /// That, and what is too slow for every change: long property tests, another architecture and fuzzing.
    Full,
}

/// What the tests that draw their cases are told for a full check.
const THOROUGH: &[(&str, &str)] = &[
    ("PROPTEST_CASES", "20000"),
    ("TRUTH_CASES", "1400"),
    ("TRUTH_CASES_MODELS", "100"),
    ("TRUTH_CASES_ACTIVATION", "300"),
    ("TRUTH_CASES_HONEST", "1000"),
    ("TRUTH_CASES_VERDICTS", "200"),
    ("TRUTH_CASES_TRIPS", "200"),
    ("PATH_CASES", "100"),
    ("TRUTH_CASES_GATE", "2000"),
    ("TRUTH_CASES_LIVE", "100"),
];

/// How the variables begin by which cargo tells a program which package it belongs to.
const OF_PACKAGE: [&str; 2] = ["CARGO_MANIFEST_", "CARGO_PKG_"];

/// Runs every check up to the first that fails.
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

/// Runs the models of what threads share.
pub fn model() -> ExitCode {
    if step("model", models()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The tests that `loom` drives; they need everything compiled for it, in a folder of its own.
fn models() -> Command {
    let mut command = cargo(&["test", "-p", "dataplane", "--lib", "--release", "model::"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", crate::root().join("target/loom"));
    command
}

/// Rewrites the expected outputs that tests compare with.
pub fn bless() -> ExitCode {
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests.env("UPDATE", "1");
    let done = step("bless", tests);
    println!("Now read `git diff`: every changed line is a change of behaviour.");
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn has_component(name: &str) -> bool {
    let there = cargo(&[name, "--version"]).output().is_ok_and(|output| output.status.success());
    if !there {
        println!("== {name}: skipped, needs `rustup component add {name}`");
    }
    there
}

pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(crate::root());
    // What cargo told us of our own package is not for the next: crates that ask for it would be built again, with all that needs
    // them.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|it| OF_PACKAGE.iter().any(|start| it.starts_with(start))) {
            command.env_remove(name);
        }
    }
    built_once(&mut command);
    command
}

/// Whoever builds once has nothing of what a second build would go on from, and no debugger; and a crate that is optimised in few
/// pieces takes an eighth less time. All that runs cargo has to be told the same, or everything is built again.
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
            println!("== {name}: cannot be started: {error}");
            false
        }
    }
}
