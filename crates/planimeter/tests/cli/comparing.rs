//! Tests of `compare` from a user's view: passed, failed and rejected comparisons, and their exit
//! codes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::common::{CommandResult, Folder, contents, planimeter, record};

/// Two targets in virtual time, where the same seed gives the same numbers.
const MEASURE: &str = "compare switch bridge --run latency --link memory --set simulate=true --set capacity=100M --set seconds=0.01 --set load=5 \
                       --effort quick";

fn run_program(folder: &Folder, words: &str, more: &[&str]) -> CommandResult {
    let words: Vec<&str> = words.split_whitespace().chain(more.iter().copied()).collect();
    planimeter(&folder.0, &words)
}

/// A stored run of two targets, `runs/base`, and the same with every value of `bridge` changed,
/// `runs/new`.
fn stored(folder: &Folder, change: impl Fn(f64) -> f64) {
    let words = "run latency --on switch --on bridge --link memory --set simulate=true --set capacity=100M --set seconds=0.01 --set load=5 \
                 --effort quick";
    assert_eq!(run_program(folder, words, &[]).code, Some(0));
    let runs = folder.0.join("runs");
    fs::rename(runs.join(&contents(&runs)[0]), runs.join("base")).unwrap();
    let mut changed = record(&runs.join("base"));
    for cell in changed["cells"].as_array_mut().unwrap() {
        if cell["target"] == "bridge" {
            for sample in cell["samples"].as_array_mut().unwrap() {
                *sample = change(sample.as_f64().unwrap()).into();
            }
        }
    }
    changed["created"] = "2030-01-01T00:00:00Z".into();
    fs::create_dir(runs.join("new")).unwrap();
    fs::write(runs.join("new/record.json"), changed.to_string()).unwrap();
}

#[test]
fn targets_take_turns_and_a_gate_fails_only_if_measured_again() {
    let folder = Folder::new();
    let passed = run_program(&folder, MEASURE, &["--gate", "latency_ns_p50<=1.1", "--json"]);
    assert_eq!(passed.code, Some(0), "{}", passed.errors);
    let found: Value = serde_json::from_str(&passed.output).unwrap();
    assert_eq!(found["is_interleaved"], true);
    assert_eq!(contents(&folder.0.join("runs")).len(), 1, "a clear result is measured once");

    let forms = ["--gate", "latency_ns_p50<=0.5", "--junit", "gate.xml", "--markdown", "gate.md"];
    let failed = run_program(&folder, MEASURE, &forms);
    assert_eq!(failed.code, Some(1), "{}", failed.errors);
    assert!(failed.errors.contains("measured again with 30 repeats"), "{}", failed.errors);
    assert!(failed.output.contains("FAILED latency_ns_p50<=0.5"), "{}", failed.output);
    assert_eq!(contents(&folder.0.join("runs")).len(), 3);
    let text = |name| fs::read_to_string(folder.0.join(name)).unwrap();
    assert!(text("gate.xml").contains("failures=\"1\""), "{}", text("gate.xml"));
    assert!(text("gate.md").starts_with("### ❌"), "{}", text("gate.md"));
    // Targets took turns in reverse order in every second round, in the trials at the found loads.
    let run = folder.0.join("runs").join(&contents(&folder.0.join("runs"))[2]);
    let trials = record(&run)["trials"].as_array().unwrap().clone();
    let measured = trials.iter().filter(|it| it["role"] == "measure").take(4);
    let order: Vec<&str> = measured.map(|it| it["target"].as_str().unwrap()).collect();
    assert_eq!(order, ["switch", "bridge", "bridge", "switch"]);
}

/// Tests that both targets get the same loads: 90 % of one target's maximum differs from 90 % of
/// the other's, and latencies at different loads are not comparable.
#[test]
fn both_targets_have_the_loads_of_the_baseline() {
    let folder = Folder::new();
    let done = run_program(&folder, MEASURE, &["--set", "load=50,90", "--json"]);
    assert!(matches!(done.code, Some(0 | 1 | 5)), "{}", done.errors);
    let run = folder.0.join("runs").join(&contents(&folder.0.join("runs"))[0]);
    let trials = record(&run)["trials"].as_array().unwrap().clone();
    let loads = |target: &str, load: f64| -> Vec<f64> {
        let own = trials.iter().filter(|it| it["role"] == "measure" && it["target"] == target);
        let at = own.filter(|it| it["point"]["value"] == load);
        at.map(|it| it["rate_pps_intended"].as_f64().unwrap()).collect()
    };
    for load in [50.0, 90.0] {
        assert!(!loads("switch", load).is_empty());
        assert_eq!(loads("switch", load), loads("bridge", load), "{load} %");
    }
}

#[test]
fn a_dry_comparison_prints_the_plan_and_measures_nothing() {
    let folder = Folder::new();
    let result = run_program(&folder, MEASURE, &["--dry-run", "--gate", "latency_ns_p50<=1.1"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    for wanted in [
        "load_reference=switch",
        " trials on switch, bridge",
        "6 times",
        "gates: latency_ns_p50<=1.1",
    ] {
        assert!(result.output.contains(wanted), "{wanted}: {}", result.output);
    }
    assert!(!folder.0.join("runs").exists(), "nothing is measured");
    let wrong = run_program(&folder, MEASURE, &["--dry-run", "--gate", "speed<=1.1"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.output);
}

#[test]
fn an_inconclusive_gate_has_its_own_exit_code() {
    let folder = Folder::new();
    let turn = std::cell::Cell::new(false);
    stored(&folder, |value| {
        turn.set(!turn.get());
        value * if turn.get() { 0.7 } else { 1.5 }
    });
    let words = "compare runs/base:bridge runs/new:bridge --gate latency_ns_p50<=1.1";
    let found = run_program(&folder, words, &["--junit", "gate.xml"]);
    assert_eq!(found.code, Some(5), "{}{}", found.output, found.errors);
    assert!(found.output.contains("INCONCLUSIVE latency_ns_p50<=1.1"), "{}", found.output);
    assert!(found.errors.contains("a gate is inconclusive"), "{}", found.errors);
    let xml = fs::read_to_string(folder.0.join("gate.xml")).unwrap();
    assert!(xml.contains("<skipped message=\"inconclusive: "), "{xml}");
    assert_eq!(run_program(&folder, words, &["--strict"]).code, Some(1));
}

#[test]
fn stored_runs_are_compared() {
    let folder = Folder::new();
    stored(&folder, |value| value * 1.3);
    let gate = ["--gate", "latency_ns_p50<=1.1"];
    let failed = run_program(&folder, "compare runs/base runs/new", &gate);
    assert_eq!(failed.code, Some(1), "{}{}", failed.output, failed.errors);
    assert!(failed.output.contains("latency, load 5 %, bridge"), "{}", failed.output);
    let only = |target: &str| format!("compare runs/base:{target} runs/new:{target}");
    assert_eq!(run_program(&folder, &only("bridge"), &gate).code, Some(1));
    assert_eq!(run_program(&folder, &only("switch"), &gate).code, Some(0));
    let back = run_program(&folder, "compare runs/new runs/base", &gate);
    assert_eq!(back.code, Some(0), "improvements fail no gate: {}", back.output);
    // A tester-limited result neither passes nor fails.
    let path = folder.0.join("runs/new/record.json");
    let mut doubtful: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for cell in doubtful["cells"].as_array_mut().unwrap() {
        cell["warnings"] = serde_json::json!([{ "kind": "irregular", "trials": 1 }]);
    }
    fs::write(&path, doubtful.to_string()).unwrap();
    assert_eq!(run_program(&folder, "compare runs/base runs/new", &gate).code, Some(3));
}

#[test]
fn an_invalid_comparison_gives_a_one_line_error() {
    let folder = Folder::new();
    stored(&folder, |value| value);
    fs::write(folder.0.join("runs/new/record.json"), "{\"schema\": 1,").unwrap();
    fs::create_dir(folder.0.join("later")).unwrap();
    fs::write(folder.0.join("later/record.json"), "{\"schema\": 3}").unwrap();
    let rows: &[(&str, &[&str])] = &[
        ("compare runs/base", &["<NEW>"]),
        ("compare runs/base runs/base", &["with itself", "runs/base:"]),
        ("compare runs/base:ovs runs/base:switch", &["no target \"ovs\"", "switch, bridge"]),
        ("compare runs/base runs/nowhere", &["give two runs, or two targets"]),
        (
            "compare runs/no runs/where",
            &["runs/no is neither a target nor the folder", "record.json"],
        ),
        ("compare runs/base switch", &["give two runs, or two targets"]),
        ("compare switch ovss --run latency", &["ovss", "did you mean \"ovs\""]),
        ("compare switch bridge", &["--run EXPERIMENT"]),
        (
            "compare switch switch --run latency",
            &["cannot compare switch with itself", "switch@PROGRAM"],
        ),
        ("compare switch switch@/no/program --run latency", &["/no/program", "switch@./before"]),
        ("compare runs/base runs/new", &["runs/new/record.json", "line 1"]),
        ("compare runs/base later", &["schema version 3", "only versions 1 to 2 are supported"]),
        (
            "compare runs/base:switch runs/base:bridge --gate speed>=1",
            &["--gate speed>=1", "unknown metric"],
        ),
        ("compare runs/base:switch runs/base:bridge --gate throughput_pps>=1", &["has no result"]),
        (
            "compare runs/base:switch runs/base:bridge --run latency",
            &["two targets, not stored runs"],
        ),
        ("compare runs/base:switch runs/base:bridge --junit no/where.xml", &["no/where.xml"]),
    ];
    for (words, wanted) in rows {
        let result = run_program(&folder, words, &[]);
        assert_eq!(result.code, Some(2), "{words}: {}{}", result.output, result.errors);
        assert_eq!(result.errors.lines().count(), 1, "{words}: {}", result.errors);
        for word in *wanted {
            assert!(result.errors.contains(word), "{words}: {}", result.errors);
        }
    }
}

#[test]
fn stored_runs_are_listed_with_a_trend_of_a_metric() {
    let folder = Folder::new();
    stored(&folder, |value| value * 1.3);
    fs::create_dir(folder.0.join("runs/cut")).unwrap();
    fs::write(folder.0.join("runs/cut/record.json"), "{\"schema\": 1,").unwrap();
    let all = run_program(&folder, "list runs", &[]);
    assert_eq!(all.code, Some(0), "{}", all.errors);
    let names: Vec<&str> = all.output.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["new", "base"], "the latest first");
    assert_eq!(all.errors.lines().count(), 1, "{}", all.errors);
    assert!(all.errors.contains("skipped cut: ") && all.errors.contains("line 1"));
    let later = run_program(&folder, "list runs runs --filter since=2030-01-01 --json", &[]);
    let later: Value = serde_json::from_str(&later.output).unwrap();
    assert_eq!(later["runs"][0]["folder"], "new");
    assert_eq!(later["runs"].as_array().unwrap().len(), 1);
    let trend = run_program(
        &folder,
        "list runs --filter metric=latency_ns_p50 --filter target=switch",
        &[],
    );
    assert!(
        trend.output.contains("latency, switch at load_percent=5: latency_ns_p50"),
        "{}",
        trend.output
    );
    for (words, wanted) in [
        ("list runs nowhere", "nowhere"),
        ("list runs --filter speed=1", "--filter speed=1"),
        ("list targets runs", "need stored runs"),
    ] {
        let result = run_program(&folder, words, &[]);
        assert_eq!(
            (result.code, result.errors.lines().count()),
            (Some(2), 1),
            "{words}: {}",
            result.errors
        );
        assert!(result.errors.contains(wanted), "{}", result.errors);
    }
}

/// Tests that the workflows for GitHub and GitLab are valid for this version.
#[test]
fn the_workflow_files_have_valid_commands() {
    for forge in ["github", "gitlab"] {
        ready_workflow(forge);
    }
}

fn ready_workflow(forge: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../examples/{forge}/planimeter-gate.yml"));
    let text = fs::read_to_string(file).unwrap();
    let command = text.split("planimeter compare").nth(1).unwrap();
    let end = command.find("gate.md").unwrap() + "gate.md".len();
    let command = &command[..end];
    let folder = Folder::new();
    // A shell would treat an unquoted `>=` as an output redirection.
    let words =
        command.replace('\'', "").replace("switch@base/target/release/planimeter", "switch");
    assert_eq!(command.matches(">=").count(), command.matches("'rate_pps_forwarded>=").count());
    // The same with targets and a link that every machine has.
    let words = words.replace(" switch switch", " switch bridge").replace("veth", "memory");
    let words = words.replace("standard", "quick");
    let shorter =
        "--set simulate=true --set capacity=100M --set seconds=0.01 --set load=5 --set entries=4";
    let result = run_program(&folder, &format!("compare{words} {shorter}"), &[]);
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    assert!(fs::read_to_string(folder.0.join("gate.md")).unwrap().contains("passed"));
    assert!(fs::read_to_string(folder.0.join("gate.xml")).unwrap().contains("errors=\"0\""));
}
