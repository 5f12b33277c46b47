//! Style checks: layers, import circles, module declarations and docs, permitted APIs, documents.
//!
//! The rules are those of ARCHITECTURE.md and CONTRIBUTING.md. A rule that a program can check is
//! only here. Long files are listed but do not fail the check.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Workspace crates that each crate may import (ARCHITECTURE.md, "Dependency rule").
const EDGES: &[(&str, &[&str])] = &[
    ("packet", &[]),
    ("shared", &[]),
    ("record", &["sample"]),
    ("stats", &["record", "sample"]),
    ("store", &["record", "stats", "report", "sample"]),
    ("report", &["record", "stats", "store", "sample"]),
    ("sample", &["record", "report"]),
    ("testbed", &[]),
    ("openflow", &["packet"]),
    ("snmp", &["packet"]),
    ("forces", &["shared"]),
    ("dataplane", &["packet", "shared"]),
    ("os", &["packet"]),
    ("channel", &["os", "packet"]),
    ("ebpf", &[]),
    ("fastpath", &["dataplane", "ebpf", "os", "packet", "progfe"]),
    ("netio", &["channel", "ebpf", "os", "packet"]),
    ("progfe", &["dataplane", "forces", "packet"]),
    (
        "elements",
        &[
            "dataplane",
            "fastpath",
            "forces",
            "openflow",
            "channel",
            "netio",
            "os",
            "progfe",
            "packet",
        ],
    ),
    (
        "tester",
        &["forces", "openflow", "snmp", "channel", "netio", "os", "record", "stats", "packet"],
    ),
    ("workload", &["packet", "openflow", "snmp", "tester", "testbed", "record"]),
    (
        "targets",
        &[
            "packet",
            "openflow",
            "snmp",
            "dataplane",
            "progfe",
            "netio",
            "channel",
            "os",
            "elements",
            "tester",
            "testbed",
            "record",
            "workload",
        ],
    ),
    (
        "experiments",
        &[
            "packet", "openflow", "netio", "tester", "record", "stats", "workload", "targets",
            // In tests only.
            "studies",
        ],
    ),
    (
        "studies",
        &[
            "packet",
            "openflow",
            "progfe",
            "tester",
            "record",
            "report",
            "workload",
            "targets",
            "experiments",
        ],
    ),
    (
        "runner",
        &[
            "packet",
            "openflow",
            "snmp",
            "netio",
            "os",
            "elements",
            "tester",
            "testbed",
            "record",
            "stats",
            "store",
            "report",
            "workload",
            "targets",
            "experiments",
            "studies",
        ],
    ),
    (
        "planimeter",
        &[
            "packet",
            "openflow",
            "snmp",
            "forces",
            "dataplane",
            "progfe",
            "netio",
            "channel",
            "os",
            "elements",
            "tester",
            "testbed",
            "record",
            "stats",
            "store",
            "report",
            "workload",
            "targets",
            "experiments",
            "studies",
            "runner",
        ],
    ),
    (
        "python",
        &[
            "planimeter",
            "runner",
            "elements",
            "tester",
            "record",
            "stats",
            "store",
            "report",
            "openflow",
            "netio",
            "channel",
            "packet",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that never use a clock, file, socket, environment variable or random device.
const PURE: &[&str] = &["packet", "shared", "openflow", "snmp", "forces", "dataplane", "progfe"];

/// Words that a pure crate must not contain.
const IMPURE_WORDS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
];

/// Crates (or folders of crates) in which `unsafe` is allowed.
const UNSAFE_ALLOWED: &[&str] =
    &["os/", "channel/", "ebpf/", "netio/", "testbed/", "dataplane/src/fast/"];

/// Length in lines, without tests, above which a file is listed as a candidate for a split.
const FILE_LINES_LISTED: usize = 500;

/// `cargo xtask tidy`.
pub fn run() -> ExitCode {
    if check_and_print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs all checks and prints every fault. Returns whether there are none.
pub fn check_and_print() -> bool {
    let mut files = files_in(&crate::root().join("crates"), "rs", true);
    files.extend(files_in(&crate::root().join("python/src"), "rs", true));
    let mut faults = layers();
    faults.extend(unwired(&files));
    faults.extend(files.iter().filter_map(|file| missing_doc(file)));
    faults.extend(files.iter().flat_map(|file| forbidden_words(file)));
    faults.extend(crate::circles::faults(&files));
    faults.extend(crate::prose::check(&crate::root()));
    for file in &files {
        let lines = lines_without_tests(&read(file));
        if lines > FILE_LINES_LISTED && !is_test(file) {
            println!(
                "note: {} has {lines} lines (hint: check whether it holds two ideas)",
                shown(file)
            );
        }
    }
    for fault in &faults {
        println!("tidy: {fault}");
    }
    faults.is_empty()
}

/// Checks imports, including those of tests, against the dependency rule with `cargo metadata`.
fn layers() -> Vec<String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(crate::root())
        .output();
    let Ok(output) = output else { return vec!["cannot run cargo metadata".into()] };
    let Ok(metadata) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else {
        return vec!["cargo metadata printed invalid JSON".into()];
    };
    faults_of_layers(&metadata)
}

fn faults_of_layers(metadata: &serde_json::Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut faults = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = EDGES.iter().find(|(crate_name, _)| *crate_name == name) else {
            faults.push(format!("crate {name} is missing in the dependency rule"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            if ours.contains(target) && !allowed.contains(&target) {
                faults.push(format!("crate {name} must not import {target}"));
            }
        }
    }
    faults
}

/// Source files below `src` that no `mod` line declares.
fn unwired(files: &[PathBuf]) -> Vec<String> {
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    let mut waiting: Vec<PathBuf> =
        files.iter().filter(|file| is_crate_root(file)).cloned().collect();
    while let Some(file) = waiting.pop() {
        if !reached.insert(file.clone()) {
            continue;
        }
        for name in declared_modules(&read(&file)) {
            let folder = module_folder(&file);
            for candidate in [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")]
            {
                if candidate.exists() {
                    waiting.push(candidate);
                }
            }
        }
    }
    files
        .iter()
        .filter(|file| in_src(file) && !reached.contains(*file))
        .map(|file| format!("{} is declared by no `mod` line", shown(file)))
        .collect()
}

/// The names in `mod name;` lines of any visibility.
fn declared_modules(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let after = line.strip_prefix("mod ").or_else(|| {
            line.strip_prefix("pub").and_then(|rest| rest.split_once("mod ")).map(|(_, name)| name)
        });
        if let Some(name) = after.and_then(|rest| rest.strip_suffix(';')) {
            names.push(name.trim().to_string());
        }
    }
    names
}

/// Folder of a file's child modules.
fn module_folder(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if is_crate_root(file) || stem == "mod" { folder } else { folder.join(stem) }
}

/// Checks that a file begins with a `//!` comment.
fn missing_doc(file: &Path) -> Option<String> {
    let text = read(file);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = first.strip_prefix("//!").unwrap_or_default().trim();
    (said.len() < 10)
        .then(|| format!("{} does not start with a module comment (`//! ...`)", shown(file)))
}

/// Finds words that a crate must not use: clocks and files in a pure crate, `unsafe` outside its
/// permitted places.
fn forbidden_words(file: &Path) -> Vec<String> {
    if is_test(file) {
        return Vec::new();
    }
    faults_of_words(&shown(file), without_tests(&read(file)))
}

fn faults_of_words(place: &str, code: &str) -> Vec<String> {
    let crate_name = place.split('/').nth(1).unwrap_or_default();
    let mut faults = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        if PURE.contains(&crate_name) {
            for word in IMPURE_WORDS.iter().filter(|word| line.contains(**word)) {
                faults.push(format!(
                    "{place}:{}: {crate_name} is pure and must not use {word}",
                    number + 1
                ));
            }
        }
        let is_unsafe =
            line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl");
        let inside = place.strip_prefix("crates/").unwrap_or(place);
        let allowed = UNSAFE_ALLOWED.iter().any(|start| inside.starts_with(start));
        if is_unsafe && !allowed {
            let places = UNSAFE_ALLOWED.join(", ");
            faults.push(format!("{place}:{}: unsafe is allowed only in {places}", number + 1));
        }
    }
    faults
}

/// The text up to an inline test module.
pub fn without_tests(text: &str) -> &str {
    match text.find("#[cfg(test)]\nmod ") {
        Some(at) if text[at..].contains("{\n") => &text[..at],
        _ => text,
    }
}

fn lines_without_tests(text: &str) -> usize {
    without_tests(text).lines().count()
}

/// Files with an extension in a folder, sorted; also those in its subfolders if `is_deep`.
pub fn files_in(folder: &Path, extension: &str, is_deep: bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return files };
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if is_deep {
                files.extend(files_in(&path, extension, is_deep));
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files
}

pub fn is_crate_root(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    let name = file.file_name().unwrap_or_default();
    folder == "src" && (name == "lib.rs" || name == "main.rs")
}

fn in_src(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "src")
}

pub fn is_test(file: &Path) -> bool {
    !in_src(file)
        || file.file_stem().is_some_and(|stem| stem == "tests")
        || file.components().any(|part| part.as_os_str() == "tests")
}

pub fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// The path of a file, relative to the root.
pub fn shown(file: &Path) -> String {
    file.strip_prefix(crate::root()).unwrap_or(file).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        assert!(check_and_print(), "see the faults printed above");
    }

    #[test]
    fn an_import_against_the_rule_is_found() {
        let metadata = serde_json::json!({"packages": [
            {"name": "packet", "dependencies": [{"name": "netio"}, {"name": "libc"}]},
            {"name": "netio", "dependencies": [{"name": "packet"}]},
            {"name": "stray", "dependencies": []},
        ]});
        assert_eq!(
            faults_of_layers(&metadata),
            ["crate packet must not import netio", "crate stray is missing in the dependency rule"]
        );
    }

    #[test]
    fn module_lines_are_found_whatever_their_visibility() {
        let text = "mod a;\npub mod b;\npub(crate) mod c;\nmod inline {\n}\n// mod d;\n";
        assert_eq!(declared_modules(text), ["a", "b", "c"]);
    }

    #[test]
    fn a_file_without_mod_line_and_one_without_its_idea_are_found() {
        let folder = std::env::temp_dir().join(format!("tidy-{}", std::process::id()));
        let src = folder.join("src");
        std::fs::create_dir_all(src.join("wired")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(src.join(name), text).unwrap();
        write("lib.rs", "//! The root of everything.\nmod wired;\n");
        write("wired.rs", "//! Has a file below it.\npub mod deep;\n");
        write("wired/deep.rs", "use std::fmt;\n");
        write("lost.rs", "//! Declared in no file.\n");
        let files = files_in(&folder, "rs", true);
        let lost = unwired(&files);
        let silent: Vec<String> = files.iter().filter_map(|file| missing_doc(file)).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(&lost[..], [fault] if fault.contains("src/lost.rs")), "{lost:?}");
        assert!(matches!(&silent[..], [fault] if fault.contains("wired/deep.rs")), "{silent:?}");
    }

    #[test]
    fn unsafe_and_clocks_are_found_outside_their_places() {
        let faults = |place: &str, code: &str| faults_of_words(place, code).len();
        assert_eq!(faults("crates/dataplane/src/key.rs", "let now = Instant::now();"), 1);
        assert_eq!(faults("crates/elements/src/node.rs", "let now = Instant::now();"), 0);
        assert_eq!(faults("crates/packet/src/frame.rs", "unsafe { read() }"), 1);
        assert_eq!(faults("crates/netio/src/tap.rs", "unsafe { read() }"), 0);
        assert_eq!(faults("crates/packet/src/frame.rs", "// unsafe { read() }"), 0);
    }
}
