//! Helpers to run the program and to inspect its output files.

// Not every test uses all helpers.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A temporary folder, in memory if possible: a run waits after each trial until it is on disk.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("planimeter-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Output of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> CommandResult {
        CommandResult {
            code: output.status.code(),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the program with these arguments, in this folder, which also holds its runtime files.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planimeter"));
    command.args(arguments).current_dir(folder);
    // The tests must not sign stored runs with the user's key.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// Runs the program to its end.
pub fn planimeter(folder: &Path, arguments: &[&str]) -> CommandResult {
    command(folder, arguments).output().unwrap().into()
}

/// Sends SIGINT to a child process that has not been reaped.
pub fn interrupt(pid: u32) {
    assert!(signal(pid, "INT"));
}

/// Sends a signal; returns whether the process existed.
pub fn signal(pid: u32, name: &str) -> bool {
    let kill = format!("kill -{name} {pid}");
    Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap().success()
}

/// The names in a folder, sorted.
pub fn contents(folder: &Path) -> Vec<String> {
    let name =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

/// Every file below a folder with its bytes, by name.
pub fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The run in a folder that holds one.
pub fn only_run(runs: &Path) -> PathBuf {
    let names = contents(runs);
    assert_eq!(names.len(), 1, "{names:?}");
    runs.join(&names[0])
}

/// A run's record, with its trials and outcomes.
pub fn record(run: &Path) -> Value {
    let text = fs::read_to_string(run.join("record.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    if record.get("trials").is_some() {
        // Written by the test, or by an earlier version.
        return record;
    }
    for list in ["trials", "outcomes"] {
        record[list] = Value::Array(Vec::new());
    }
    let lines = fs::read(run.join("trials.jsonl")).unwrap();
    let lines = String::from_utf8_lossy(&lines);
    let counted = record.as_object_mut().unwrap().remove("counted");
    let left_out = counted.map_or(Value::Null, |mut it| it["left_out"].take());
    let mut ids: Vec<Value> = left_out.as_array().cloned().unwrap_or_default();
    // As in the program, a damaged line costs its trial, and of repeated ones the first counts.
    for mut line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line["line"] == "trial" {
            if ids.contains(&line["id"]) {
                continue;
            }
            ids.push(line["id"].clone());
        }
        let kind = line.as_object_mut().unwrap().remove("line").unwrap();
        let list = format!("{}s", kind.as_str().unwrap());
        record[&list].as_array_mut().unwrap().push(line);
    }
    let kept: Vec<Value> =
        record["trials"].as_array().unwrap().iter().map(|trial| trial["id"].clone()).collect();
    let is_whole = |it: &Value| it["trials"].as_array().unwrap().iter().all(|id| kept.contains(id));
    record["outcomes"].as_array_mut().unwrap().retain(is_whole);
    record
}
