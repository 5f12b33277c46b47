//! Tests of `planimeter quick` without privileges: table, report, and what more rights would add.

use std::process::Command;

use serde_json::Value;
use workload::parameter::shared;

use super::common::{CommandResult, Folder, command, only_run, record};

/// Runs the command with one short trial for each value, without privileges and without user
/// namespaces.
fn quick(folder: &Folder, arguments: &[&str]) -> CommandResult {
    let mut quick = command(&folder.0, &["quick"]);
    for (key, value) in [(shared::REPEATS.key, "1"), (shared::SECONDS.key, "0.01")] {
        quick.args(["--set", &format!("{key}={value}")]);
    }
    quick.args(arguments);
    // In a user namespace that allows no further ones, the bounding set removes all capabilities.
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all \
                 \"$0\" \"$@\"";
    let namespace = ["--user", "--map-root-user"];
    let is_allowed = Command::new("unshare").args(namespace).arg("true").status();
    if !is_allowed.is_ok_and(|status| status.success()) {
        // Then this process has no privileges either.
        return quick.output().unwrap().into();
    }
    let mut limited = Command::new("unshare");
    limited.args(namespace).args(["sh", "-c", limit]).arg(quick.get_program());
    limited.args(quick.get_args()).current_dir(&folder.0);
    limited.envs(quick.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.output().unwrap().into()
}

#[test]
fn quick_measures_over_memory_without_privileges() {
    let folder = Folder::new();
    let result = quick(&folder, &[]);
    assert_eq!(result.code, Some(0), "{}{}", result.errors, result.output);
    let run = only_run(&folder.0.join("runs"));
    let record = record(&run);
    assert_eq!(record["link"], "memory");
    let targets = record["targets"].as_array().unwrap().iter();
    let targets: Vec<&str> = targets.map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(targets.len(), 3);
    let lines: Vec<&str> = result.output.lines().collect();
    for target in targets {
        for entries in ["1", "131\u{202f}072"] {
            let is_row = |line: &&&str| {
                let mut words = line.split(' ').filter(|word| !word.is_empty());
                words.next() == Some(target) && words.next() == Some(entries)
            };
            let row = lines.iter().find(is_row);
            let row = row.unwrap_or_else(|| panic!("{target} {entries}: {}", result.output));
            assert!(row.contains("n=1"), "{row}");
        }
    }
    assert!(result.output.contains("! "), "one trial gives no interval: {}", result.output);
    assert!(result.output.contains("Linux bridge and router over veth"), "{}", result.output);
    let [.., report, next] = lines[..] else { panic!("{}", result.output) };
    let report = report.strip_prefix("Report over memory: ").unwrap();
    assert!(folder.0.join(report).is_file(), "{report}");
    assert!(next.starts_with("Next: planimeter run "), "{next}");
    let widest = lines.iter().filter(|line| !line.starts_with("Report"));
    assert!(widest.map(|line| line.chars().count()).max() <= Some(80), "{}", result.output);
}

#[test]
fn quick_prints_its_records_as_json() {
    let folder = Folder::new();
    // A thousand entries instead of both table sizes.
    let entries = format!("{}=1000", shared::ENTRIES_KEY);
    let words = ["--json", "--link", "memory", "--output", "there", "--set", &entries];
    let result = quick(&folder, &words);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let printed: Value = serde_json::from_str(&result.output).unwrap();
    let [run] = &printed["runs"].as_array().unwrap()[..] else { panic!("{printed}") };
    assert_eq!(run["trials"].as_array().unwrap().len(), 3);
    let folder = only_run(&folder.0.join("there"));
    assert_eq!(*run, record(&folder));
    assert!(result.errors.ends_with("report.html\n"), "{}", result.errors);
}
