//! Tests of user commands around a run: each receives its context, and a command that fails ends
//! the run.

use std::fs;

use super::common::{Folder, contents, only_run, planimeter, record};

const RUN: [&str; 12] = [
    "run",
    "forwarding-rate",
    "latency",
    "--on",
    "switch",
    "--link",
    "memory",
    "--effort",
    "quick",
    "--set",
    "repeats=1",
    "--set",
];

const TELLS: &str = "echo $PLANIMETER_HOOK $PLANIMETER_TARGET $PLANIMETER_EXPERIMENT >> told";

#[test]
fn commands_run_around_targets_and_between_experiments() {
    let folder = Folder::new();
    let hooks = ["seconds=0.01", "--setup", TELLS, "--prepare", TELLS, "--cleanup", TELLS];
    let result = planimeter(&folder.0, &[&RUN[..], &hooks, &["--dry-run"]].concat());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(result.output.contains("  between: echo $PLANIMETER_HOOK"), "{}", result.output);
    assert_eq!(contents(&folder.0), Vec::<String>::new());
    let result = planimeter(&folder.0, &[&RUN[..], &hooks].concat());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let text = fs::read_to_string(folder.0.join("told")).unwrap();
    assert_eq!(
        text,
        "before switch forwarding-rate\nbetween switch latency\nafter switch latency\n"
    );
    let run = only_run(&folder.0.join("runs"));
    assert_eq!(contents(&run.join("hooks")).len(), 3);
    let repeated = record(&run)["command_line"].as_str().unwrap().to_owned();
    assert!(repeated.contains("--prepare 'echo $PLANIMETER_HOOK"), "{repeated}");
}

#[test]
fn a_failed_command_ends_the_run_and_earlier_results_are_stored() {
    let folder = Folder::new();
    let hooks =
        ["seconds=0.01", "--prepare", "echo it is dark; exit 7", "--cleanup", "echo after > after"];
    let result = planimeter(&folder.0, &[&RUN[..], &hooks].concat());
    assert_eq!(result.code, Some(4), "{}", result.errors);
    let line = result.errors.lines().last().unwrap();
    assert!(line.contains("--prepare on switch failed: exit status: 7"), "{line}");
    assert!(line.contains("partial results are kept"), "{line}");
    let run = only_run(&folder.0.join("runs"));
    let printed = fs::read_to_string(run.join("hooks").join("between-switch-latency.log")).unwrap();
    assert_eq!(printed, "it is dark\n");
    let record = record(&run);
    let trials = record["trials"].as_array().unwrap();
    assert!(!trials.is_empty() && trials.iter().all(|it| it["experiment"] == "forwarding-rate"));
    assert_eq!(record["partial"], true);
    assert!(folder.0.join("after").exists(), "the device was not restored");
}
