//! Tests of runs in which every trial failed: exit code 3, and summary and report begin with the
//! failure.

use std::fs;

use super::common::{CommandResult, Folder, only_run, planimeter};

/// Arguments of every run here.
const SHORT: [&str; 10] = [
    "--on",
    "switch",
    "--link",
    "memory",
    "--set",
    "simulate=true",
    "--set",
    "repeats=2",
    "--effort",
    "quick",
];

/// Runs an experiment; returns the output, the summary and the report.
fn run(folder: &Folder, experiment: &[&str], more: &[&str]) -> (CommandResult, String, String) {
    let result = planimeter(&folder.0, &[&["run"], experiment, &SHORT, more].concat());
    let run = only_run(&folder.0.join("runs"));
    let text = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    (result, text("summary.md"), text("report.html"))
}

/// Returns the position of a text in another, which must contain it.
fn place(text: &str, wanted: &str) -> usize {
    text.find(wanted).unwrap_or_else(|| panic!("{wanted:?} is not in {text}"))
}

#[test]
fn a_module_that_fails_in_every_trial_is_reported_first_with_exit_code_3() {
    let folder = Folder::new();
    let script = "from planimeter import *\n\n\
        class Mine(Module):\n    \"\"\"Mine.\"\"\"\n    def start(self, facts):\n        raise ValueError(\"no such thing\")\n";
    fs::write(folder.0.join("mine.py"), script).unwrap();
    let (result, summary, page) = run(&folder, &["mine.py"], &[]);
    assert_eq!(result.code, Some(3), "{}", result.errors);
    let why = "Every trial failed (2 of 2). mine.py on switch: mine.py:6: ValueError: no such thing (2 trials).";
    assert!(result.errors.lines().last().unwrap().contains(why), "{}", result.errors);
    for text in [&result.output, &summary, &page] {
        assert!(place(text, why) < place(text, " measured "), "{text}");
        assert!(!text.contains("every one is accounted for"), "{text}");
        place(text, "No frames were offered.");
        place(text, "irregular: 2 trials did not follow the method");
    }
}

#[test]
fn a_command_that_fails_before_the_first_trial_is_reported_first_with_exit_code_3() {
    let folder = Folder::new();
    let (result, summary, page) =
        run(&folder, &["rule-activation"], &["--set", "rules_count=10", "--setup", "exit 7"]);
    assert_eq!(result.code, Some(3), "{}", result.errors);
    let why = "--setup on switch failed: exit status: 7";
    assert!(result.errors.lines().last().unwrap().contains(why), "{}", result.errors);
    for text in [&summary, &page] {
        assert!(place(text, &format!("The run failed: {why}")) < place(text, " measured "));
    }
}

#[test]
fn a_target_that_fails_in_every_trial_is_reported_first_with_exit_code_3() {
    let folder = Folder::new();
    // A switch that closes its connections when its table is full, which the first entry causes.
    let value =
        |key: &str, value: &str| format!("{key} = {{ value = {value}, source = \"assumed\" }}\n");
    let keys = [
        ("capacity.rules", "2"),
        ("full.at_percent", "50"),
        ("full.on", "\"rule\""),
        ("full.does", "\"disconnect\""),
    ];
    let keys: String = keys.iter().map(|(key, it)| value(key, it)).collect();
    let model = format!("name = \"one\"\nabout = \"one\"\n{keys}");
    fs::write(folder.0.join("one.toml"), model).unwrap();
    let own =
        ["--set", "rules_count=10", "--set", "probes=before", "--on", "switch:model=./one.toml"];
    let words = [&["run", "rule-activation"][..], &SHORT[2..], &own].concat();
    let result = planimeter(&folder.0, &words);
    let run = only_run(&folder.0.join("runs"));
    let summary = fs::read_to_string(run.join("summary.md")).unwrap();
    assert_eq!(result.code, Some(3), "{}{}", result.errors, summary);
    assert!(place(&summary, "Every trial failed (") < place(&summary, " measured "), "{summary}");
}
