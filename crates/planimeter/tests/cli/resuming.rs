//! Tests of resumed runs: one writer per run, each planned trial once, and the effect of a damaged
//! file.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::common::{Folder, command, only_run, planimeter, record};

/// Ten trials in virtual time.
const TEN: &str = "run bianco2010/fig3 --on direct --set simulate=true --set seconds=0.01 --set load=1,2 --set repeats=5";

/// A search in virtual time.
const SEARCH: &str = "run throughput --on switch --on bridge --link memory --set simulate=true --set frame=64 --set repeats=1 \
                      --set seconds=0.02 --set sim_service_time_ns=20000";

fn measured(folder: &Folder, line: &str) -> PathBuf {
    let result = planimeter(&folder.0, &line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    only_run(&folder.0.join("runs"))
}

/// The lines of a run's trials.
fn lines(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    text.lines().map(String::from).collect()
}

fn write_lines(run: &Path, lines: &[String]) {
    fs::write(run.join("trials.jsonl"), lines.join("\n") + "\n").unwrap();
}

/// Makes a run look as if it was killed after its last trial.
fn killed(run: &Path) {
    let mut crashed = record(run);
    crashed["partial"] = true.into();
    for derived in ["trials", "outcomes", "cells", "ratios", "claims"] {
        crashed[derived] = Value::Array(Vec::new());
    }
    fs::write(run.join("record.json"), crashed.to_string()).unwrap();
}

fn resumed(folder: &Folder, run: &Path) -> String {
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    result.errors
}

/// Returns what identifies each planned trial, and the number of results behind each cell.
fn planned(record: &Value) -> (Vec<String>, Vec<String>) {
    let rows = |name: &str| record[name].as_array().unwrap().clone();
    let trial = |it: &Value| {
        format!(
            "{} {} {} {} {}",
            it["target"], it["point"], it["repeat"], it["role"], it["frames_intended"]
        )
    };
    let cell =
        |it: &Value| format!("{} {} {} {}", it["target"], it["metric"], it["point"], it["n"]);
    let mut trials: Vec<String> = rows("trials").iter().map(trial).collect();
    trials.sort();
    (trials, rows("cells").iter().map(cell).collect())
}

fn ids(record: &Value) -> BTreeSet<u64> {
    let trials = record["trials"].as_array().unwrap();
    let ids: BTreeSet<u64> = trials.iter().map(|trial| trial["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), trials.len(), "an id is repeated");
    ids
}

#[test]
fn a_run_with_the_earlier_name_of_the_switch_resumes() {
    let folder = Folder::new();
    let run = measured(&folder, &SEARCH.replace("--on switch", "--on ours"));
    let whole = planned(&record(&run));
    let all = lines(&run);
    killed(&run);
    write_lines(&run, &all[..all.len() / 2]);
    for file in ["record.json", "start.json", "trials.jsonl"] {
        let text = fs::read_to_string(run.join(file)).unwrap();
        let earlier = text.replace("\"switch\"", "\"ours\"");
        assert_ne!(earlier, text, "{file}");
        fs::write(run.join(file), earlier).unwrap();
    }
    let errors = resumed(&folder, &run);
    assert!(!errors.contains("is now"), "only the record has the earlier name: {errors}");
    let now = record(&run).to_string().replace("\"ours\"", "\"switch\"");
    assert_eq!(planned(&serde_json::from_str(&now).unwrap()), whole);
    let sides = [format!("{}:ours", run.display()), format!("{}:bridge", run.display())];
    let result = planimeter(&folder.0, &["compare", &sides[0], &sides[1]]);
    assert!(result.errors.contains("hint: \"ours\" is now \"switch\""), "{}", result.errors);
    // What the gate finds depends on the machine.
    assert!(matches!(result.code, Some(0 | 1 | 5)), "{}", result.errors);
    let listed = planimeter(&folder.0, &["list", "runs", "--filter", "target=ours"]);
    assert!(listed.output.contains("switch, bridge"), "{}", listed.output);
}

#[test]
fn a_running_run_has_one_writer_and_a_killed_one_resumes() {
    const TRIALS: u64 = 800;
    let folder = Folder::new();
    let line = format!("{TEN} --set warmup=0 --set load=1 --set repeats={TRIALS}");
    let words: Vec<&str> = line.split_whitespace().collect();
    // Its progress output has no reader and exceeds a pipe's capacity, so it cannot end.
    let mut child = command(&folder.0, &words);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut String::new()).unwrap();
    let run = only_run(&folder.0.join("runs"));
    let name = run.to_str().unwrap();
    let writer = format!("process {} is writing to it", child.id());
    for words in [&["run", "--resume", name][..], &["report", name]] {
        let result = planimeter(&folder.0, words);
        assert_eq!(result.code, Some(2), "{words:?}: {}", result.errors);
        assert!(
            result.errors.lines().count() == 1 && result.errors.contains(&writer),
            "{}",
            result.errors
        );
    }
    // Inspection changes nothing.
    for words in
        [&["run", "--resume", name, "--dry-run"][..], &["report", name, "--output", "so-far"]]
    {
        assert_eq!(planimeter(&folder.0, words).code, Some(0), "{words:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let stored = lines(&run).len() as u64;
    assert!((1..TRIALS).contains(&stored), "{stored}");
    resumed(&folder, &run);
    let whole = record(&run);
    assert_eq!(ids(&whole), (1..=TRIALS).collect());
    assert_eq!(lines(&run).len() as u64, TRIALS);
}

#[test]
fn a_run_of_two_writers_is_resumed_to_the_planned_trials() {
    let folder = Folder::new();
    let run = measured(&folder, TEN);
    let whole = record(&run);
    let all = lines(&run);
    let as_id = |line: &str, id: u64| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value["id"] = id.into();
        value.to_string()
    };
    // Both began after trial 4: one continued with 5 and 6, the other wrote 7 and 8 under these
    // numbers, and trial 5 again.
    let mut two = all[..5].to_vec();
    two.extend([as_id(&all[6], 5), all[5].clone(), as_id(&all[7], 6), as_id(&all[4], 7)]);
    write_lines(&run, &two);
    killed(&run);
    let errors = resumed(&folder, &run);
    for named in ["line 6: trial 5 is repeated", "line 8: trial 6 is repeated"] {
        assert!(errors.contains(named), "{named}: {errors}");
    }
    let again = record(&run);
    assert_eq!(planned(&again), planned(&whole));
    ids(&again);
    // Exactly the missing trials were measured: 7 to 10.
    assert_eq!(lines(&run).len(), two.len() + 4);
}

#[test]
fn a_damaged_line_loses_its_own_trial_and_is_reported() {
    for (experiment, line, damaged) in
        [(TEN, 3, "half"), (TEN, 1, "nul"), (TEN, 10, "letters"), (SEARCH, 4, "half")]
    {
        let folder = Folder::new();
        let run = measured(&folder, experiment);
        let whole = record(&run);
        let mut bytes: Vec<Vec<u8>> = lines(&run).into_iter().map(String::into_bytes).collect();
        let own = &mut bytes[line - 1];
        match damaged {
            "half" => own.truncate(own.len() / 2),
            "nul" => own.fill(0),
            _ => own[30] = 0xff,
        }
        let stored = bytes.len();
        fs::write(run.join("trials.jsonl"), bytes.join(&b'\n')).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(run.join("trials.jsonl")).unwrap();
        // An incomplete last line belongs to a trial that was being written.
        std::io::Write::write_all(&mut file, b"\n{\"line\":\"trial\",\"id\":").unwrap();
        killed(&run);
        let name = run.to_str().unwrap();
        let named = format!("trials.jsonl, line {line}: damaged, ignored");
        let report = planimeter(&folder.0, &["report", name, "--output", "so-far"]);
        assert_eq!(report.code, Some(0), "{damaged}: {}", report.errors);
        assert!(report.errors.contains(&named), "{damaged}: {}", report.errors);
        let errors = resumed(&folder, &run);
        assert!(errors.contains(&named), "{damaged}: {errors}");
        let again = record(&run);
        assert_eq!(planned(&again), planned(&whole), "{damaged}");
        assert_eq!(
            again["outcomes"].as_array().unwrap().len(),
            whole["outcomes"].as_array().unwrap().len()
        );
        ids(&again);
        let trials =
            |run: &Path| lossy(run).iter().filter(|it| it.contains("\"line\":\"trial\"")).count();
        let before = whole["trials"].as_array().unwrap().len();
        // One trial was measured again; the beginning of a truncated line remains.
        let left = usize::from(damaged != "nul");
        assert_eq!(trials(&run), before + left, "{damaged}, {stored}");
        // A complete run is read without a warning.
        let report = planimeter(&folder.0, &["report", name]);
        assert!(report.code == Some(0) && !report.errors.contains("warning"), "{}", report.errors);
    }
}

fn lossy(run: &Path) -> Vec<String> {
    let bytes = fs::read(run.join("trials.jsonl")).unwrap();
    String::from_utf8_lossy(&bytes).lines().map(String::from).collect()
}

#[test]
fn a_run_with_a_damaged_record_is_read_and_resumed() {
    let folder = Folder::new();
    let run = measured(&folder, TEN);
    let (whole, all) = (record(&run), lines(&run));
    let text = fs::read(run.join("record.json")).unwrap();
    for damaged in
        [Some(Vec::new()), Some(text[..text.len() / 3].to_vec()), Some(vec![0; 4096]), None]
    {
        write_lines(&run, &all[..6]);
        match &damaged {
            Some(bytes) => fs::write(run.join("record.json"), bytes).unwrap(),
            None => fs::remove_file(run.join("record.json")).unwrap(),
        }
        let report = planimeter(&folder.0, &["report", run.to_str().unwrap()]);
        assert_eq!(report.code, Some(0), "{}", report.errors);
        let summary = fs::read_to_string(run.join("summary.md")).unwrap();
        assert!(summary.contains("6 trials"), "{summary}");
        resumed(&folder, &run);
        let again = record(&run);
        assert_eq!(planned(&again), planned(&whole));
        assert_eq!(again["created"], whole["created"]);
        assert_eq!(lines(&run).len(), 10);
    }
}

#[test]
fn a_report_that_could_not_be_written_is_written_later() {
    let folder = Folder::new();
    // Blocks the report only, as a full disk would.
    let hook = "cd runs/* && mkdir -p report.html/in-the-way";
    let mut words: Vec<&str> = TEN.split_whitespace().collect();
    words.extend(["--cleanup", hook]);
    let result = planimeter(&folder.0, &words);
    assert_eq!(result.code, Some(2), "{}", result.errors);
    let run = only_run(&folder.0.join("runs"));
    let line = result.errors.lines().last().unwrap();
    // As the user named it: below the folder in which the run was started.
    let command =
        format!("'planimeter report runs/{}'", run.file_name().unwrap().to_str().unwrap());
    assert!(line.contains("all results are kept") && line.contains(&command), "{line}");
    assert_eq!(record(&run)["partial"], false);
    fs::remove_dir_all(run.join("report.html")).unwrap();
    let name = run.to_str().unwrap();
    let again = planimeter(&folder.0, &["run", "--resume", name]);
    assert_eq!(again.code, Some(0), "{}", again.errors);
    assert!(again.errors.contains("is complete; wrote its missing report"), "{}", again.errors);
    assert!(run.join("report.html").is_file());
    let done = planimeter(&folder.0, &["run", "--resume", name]);
    assert_eq!(done.code, Some(2), "{}", done.errors);
    let hint =
        format!("nothing to resume (hint: run 'planimeter report {name}' to rebuild its report)");
    assert!(done.errors.contains(&hint), "{}", done.errors);
}
