//! Tests that run the commands of the guide unchanged. Each page has its own folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use crate::common::{Folder, planimeter};
use crate::one_by_one::must_not_skip;
use crate::page::{self, Fence};
use crate::postgres::Postgres;
use crate::root;

/// Requirement of blocks that use a PostgreSQL server.
const STORE: &str = "postgresql";

/// Number of pages that run in parallel.
const AT_ONCE: usize = 2;

/// Returns the findings of `planimeter doctor`: names, and whether each is available.
fn findings() -> BTreeMap<String, bool> {
    let result = planimeter(&std::env::temp_dir(), &["doctor", "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let all: Value = serde_json::from_str(&result.output).unwrap();
    let needs = all["needs"].as_array().unwrap().iter();
    let name = |it: &Value| it["name"].as_str().unwrap().to_string();
    let senders = all["kernel_senders"].as_object().unwrap().iter();
    let senders = senders.map(|(name, it)| (name.clone(), it["ok"] == true));
    needs.map(|it| (name(it), it["ok"] == true)).chain(senders).collect()
}

fn pages() -> Vec<PathBuf> {
    let guide = root().join("docs/guide");
    page::all().into_iter().filter(|path| path.starts_with(&guide)).collect()
}

/// Returns the missing requirement of a block, if any.
fn missing<'a>(fence: &'a Fence, findings: &BTreeMap<String, bool>) -> Option<&'a str> {
    let is_there = |need: &&str| {
        let found = findings.iter().find(|(name, _)| name.replace(' ', "-") == **need);
        *found.unwrap_or_else(|| panic!("doctor has no finding {need:?}")).1
    };
    fence.value("needs")?.split(',').find(|need| !is_there(need))
}

/// Runs the blocks of a page; the error describes the failure.
fn run(path: &Path, findings: &BTreeMap<String, bool>) -> Result<(), String> {
    let (fences, _) = page::fences(&fs::read_to_string(path).unwrap());
    let folder = Folder::new();
    let program = Path::new(env!("CARGO_BIN_EXE_planimeter")).parent().unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    let shown = path.strip_prefix(root()).unwrap().display();
    let mut has_run = false;
    // Blocks that need a database share one for the page, which `PLANIMETER_STORE` names.
    let needs_store = fences.iter().any(|it| it.value("needs") == Some(STORE));
    let server = if needs_store { Postgres::start() } else { None };
    let store = server.as_ref().map(|server| server.url_of_socket("owner", "postgres"));
    for fence in &fences {
        if let Some(file) = fence.value("file") {
            fs::write(folder.0.join(file), &fence.text).unwrap();
        }
        if !fence.has("run") || fence.has("python") {
            // Blocks that the Python package's own test runs also run here.
            has_run |= fence.has("run");
            continue;
        }
        has_run = true;
        if fence.value("needs") == Some(STORE) {
            // A required but missing server was reported before.
            if store.is_none() {
                continue;
            }
        } else if let Some(need) = missing(fence, findings) {
            let line = fence.line;
            if must_not_skip() {
                return Err(format!(
                    "{shown}, line {line}: it may not be skipped, but {need} is missing"
                ));
            }
            println!("{shown}, line {line}: skipped: {need} is missing");
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &fence.text]).current_dir(&folder.0);
        shell.env("PATH", format!("{}:{others}", program.display()));
        shell.envs(store.iter().map(|store| ("PLANIMETER_STORE", store)));
        let output = shell.output().unwrap();
        if !output.status.success() {
            let printed = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
            let line = fence.line;
            return Err(format!("{shown}, line {line}: {}\n{}", output.status, printed.join("\n")));
        }
    }
    if has_run { Ok(()) } else { Err(format!("{shown} has no command that runs")) }
}

#[test]
fn every_page_has_commands_that_run() {
    let findings = findings();
    let waiting = Mutex::new(pages());
    assert!(waiting.lock().unwrap().len() > 10);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some(path) = { waiting.lock().unwrap().pop() } {
            if let Err(why) = run(&path, &findings) {
                wrong.lock().unwrap().push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn each_finding_of_doctor_is_explained() {
    let page = fs::read_to_string(root().join("docs/guide/troubleshooting.md")).unwrap();
    let headings: Vec<&str> = page.lines().filter_map(|it| it.strip_prefix("### ")).collect();
    let findings = findings();
    let missing: Vec<&String> =
        findings.keys().filter(|name| !headings.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/guide/troubleshooting.md: {missing:?}");
    let known = |name: &&str| findings.contains_key::<str>(name);
    let gone: Vec<&&str> = headings.iter().filter(|name| !known(name)).collect();
    assert!(gone.is_empty(), "explained findings that doctor does not have: {gone:?}");
}
