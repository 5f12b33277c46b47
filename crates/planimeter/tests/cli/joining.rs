//! Tests of targets with different links in one run: each value names its link, and an interrupted
//! run resumes with the same links.

use std::fs;

use serde_json::Value;

use super::common::{CommandResult, Folder, only_run, planimeter, record};

const RUN: &str = "run forwarding-rate --on switch --on bridge --link memory --link bridge=replay \
                   --set repeats=1 --set seconds=0.02 --set warmup=0.01";

fn carried_out(folder: &Folder, more: &[&str]) -> CommandResult {
    let words: Vec<&str> = RUN.split_whitespace().chain(more.iter().copied()).collect();
    let result = planimeter(&folder.0, &words);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    result
}

fn rows<'a>(record: &'a Value, what: &str) -> &'a Vec<Value> {
    record[what].as_array().unwrap()
}

#[test]
fn each_value_names_its_link() {
    let folder = Folder::new();
    let result = carried_out(&folder, &[]);
    assert!(
        result.errors.contains("links: switch over memory; bridge over replay"),
        "{}",
        result.errors
    );
    assert!(
        result
            .output
            .contains("on planimeter switch over memory, and planimeter bridge over replay"),
        "{}",
        result.output
    );
    let record = record(&only_run(&folder.0.join("runs")));
    assert_eq!(record["link"], "memory, replay");
    let links: Vec<&Value> = rows(&record, "targets").iter().map(|it| &it["link"]).collect();
    assert_eq!(links, ["memory", "replay"]);
    let of = |target: &Value| if target == "bridge" { "replay" } else { "memory" };
    for cell in rows(&record, "cells") {
        assert_eq!(cell["link"], of(&cell["target"]), "{cell}");
    }
    // Both loops were measured, and each trial refers to its own.
    let ids: Vec<&Value> = rows(&record, "calibrations").iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["loop:memory", "loop:replay"]);
    for trial in rows(&record, "trials") {
        let wanted = format!("loop:{}", of(&trial["target"]));
        assert_eq!(trial["calibration"], wanted, "{trial}");
    }
    let ratios = rows(&record, "ratios");
    assert!(!ratios.is_empty());
    for ratio in ratios {
        assert_eq!(ratio["links"], serde_json::json!(["replay", "memory"]), "{ratio}");
    }
    let differ = |it: &&Value| it["warning"]["kind"] == "links_differ";
    assert_eq!(rows(&record, "warnings").iter().filter(differ).count(), 1);
}

#[test]
fn an_interrupted_run_over_several_links_resumes() {
    let folder = Folder::new();
    carried_out(&folder, &[]);
    let run = only_run(&folder.0.join("runs"));
    let whole = record(&run);
    // As left by a crash of the machine after the first trial.
    let lines = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    fs::write(run.join("trials.jsonl"), &lines[..=lines.find('\n').unwrap()]).unwrap();
    let mut crashed = whole.clone();
    crashed["partial"] = true.into();
    crashed["trials"] = Value::Array(Vec::new());
    fs::write(run.join("record.json"), crashed.to_string()).unwrap();
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let again = record(&run);
    assert_eq!(rows(&again, "trials")[0], rows(&whole, "trials")[0]);
    assert_eq!(rows(&again, "trials").len(), rows(&whole, "trials").len());
    assert_eq!(again["targets"], whole["targets"]);
    assert_eq!(again["calibrations"], whole["calibrations"], "each calibration was measured once");
}

#[test]
fn a_dry_run_lists_the_link_of_each_target() {
    let folder = Folder::new();
    let result = carried_out(&folder, &["--dry-run"]);
    assert!(result.output.contains("--link memory --link bridge=replay"), "{}", result.output);
    assert!(
        result.output.contains("links: switch over memory; bridge over replay"),
        "{}",
        result.output
    );
}
