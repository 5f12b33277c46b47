//! Tests that external code does not run unless it is trusted: in stored runs, plans and a
//! browser's form.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::common::{CommandResult, Folder, command, contents, only_run, planimeter, record};
use super::serving::Serving;

/// Two trials in virtual time, and a command.
const HOOKED: [&str; 14] = [
    "run",
    "bianco2010/fig3",
    "--on",
    "direct",
    "--set",
    "simulate=true",
    "--set",
    "seconds=0.01",
    "--set",
    "load=1,2",
    "--set",
    "repeats=1",
    "--setup",
    "touch hooked",
];

/// Returns a run as a crash after its first trial leaves it.
fn stored(folder: &Folder) -> PathBuf {
    let result = planimeter(&folder.0, &HOOKED);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let run = only_run(&folder.0.join("runs"));
    cut(&run);
    fs::remove_file(folder.0.join("hooked")).unwrap();
    run
}

fn cut(run: &Path) {
    let lines = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    fs::write(run.join("trials.jsonl"), &lines[..=lines.find('\n').unwrap()]).unwrap();
    let mut crashed = record(run);
    crashed["partial"] = true.into();
    crashed["trials"] = serde_json::json!([]);
    fs::write(run.join("record.json"), crashed.to_string()).unwrap();
}

/// Returns the same folder as an archive leaves it: the files are this user's, with all their
/// permissions and times.
fn unpacked(run: &Path, into: &Path) {
    let made = Command::new("cp").arg("-a").arg(run).arg(into).status().unwrap();
    assert!(made.success());
}

fn is_refused(result: &CommandResult, what: &str) {
    assert_eq!(result.code, Some(2), "{what}: {}", result.errors);
    let line = result.errors.lines().last().unwrap();
    assert!(line.contains(what) && line.contains("--allow-commands"), "{what}: {line}");
}

#[test]
fn a_run_of_this_user_resumes_and_one_from_an_archive_needs_trust() {
    let folder = Folder::new();
    let run = stored(&folder);
    let other = folder.0.join("unpacked");
    unpacked(&run, &other);
    for more in [&[][..], &["--dry-run"]] {
        let result = planimeter(&folder.0, &[&["run", "--resume", "unpacked"], more].concat());
        is_refused(&result, "a command (before: touch hooked)");
    }
    assert!(!folder.0.join("hooked").exists(), "a command of a run from an archive ran");
    let elsewhere = command(&folder.0, &["run", "--resume", run.to_str().unwrap()])
        .env("XDG_STATE_HOME", folder.0.join("state-of-another-user"))
        .output();
    is_refused(&elsewhere.unwrap().into(), "a command (before: touch hooked)");
    assert!(!folder.0.join("hooked").exists());
    // The user's own run.
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(folder.0.join("hooked").exists());
    // The other one, once it is trusted.
    fs::remove_file(folder.0.join("hooked")).unwrap();
    let result = planimeter(&folder.0, &["run", "--resume", "unpacked", "--allow-commands"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(folder.0.join("hooked").exists());
}

#[test]
fn a_changed_record_is_no_longer_trusted() {
    let folder = Folder::new();
    let run = stored(&folder);
    fs::write(folder.0.join("mine.py"), "open('hooked', 'w')\n").unwrap();
    fs::write(folder.0.join("evil"), "#!/bin/sh\ntouch hooked\n").unwrap();
    let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.0.join("evil"), rights).unwrap();
    let base = "planimeter run bianco2010/fig3 --link memory --set simulate=true";
    for (line, what) in [
        (format!("{base} --on direct --setup 'touch hooked; true'"), "a command"),
        (format!("{base} --on direct --cleanup 'touch hooked'"), "a command"),
        (String::from("planimeter run mine.py --on switch"), "a script (mine.py)"),
        (format!("{base} --on switch@./evil"), "another program (./evil)"),
        (
            format!("{base} --on switch --set load_reference=switch@./evil"),
            "another program (./evil)",
        ),
        (format!("{base} --on device:ports=1@lo+2@lo"), "a device on interfaces"),
        (format!("{base} --on switch --set snmp=192.0.2.1"), "an SNMP agent"),
    ] {
        let mut changed = record(&run);
        changed["command_line"] = line.as_str().into();
        fs::write(run.join("record.json"), changed.to_string()).unwrap();
        let name = run.to_str().unwrap();
        is_refused(&planimeter(&folder.0, &["run", "--resume", name]), what);
        if !line.contains("--on switch@") && !line.contains("device:") {
            let like = ["compare", "switch", "bridge", "--config-from", name];
            is_refused(&planimeter(&folder.0, &like), what);
        }
        assert!(!folder.0.join("hooked").exists(), "{line}");
    }
    // A run without external code needs no trust.
    let mut changed = record(&run);
    let own = "planimeter run bianco2010/fig3 --on direct --set simulate=true --set seconds=0.01 --set load=1,2 --set repeats=1";
    changed["command_line"] = own.into();
    fs::write(run.join("record.json"), changed.to_string()).unwrap();
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
}

#[test]
fn a_campaign_from_an_archive_needs_trust() {
    let folder = Folder::new();
    let plan = "on = \"bridge\"\nlink = \"memory\"\neffort = \"quick\"\n\
                set = { simulate = true, seconds = 0.01, load = 5, repeats = 2 }\n\
                [[step]]\nrun = \"latency\"\nbefore = \"touch hooked\"\n";
    fs::write(folder.0.join("office.toml"), plan).unwrap();
    let result = planimeter(&folder.0, &["run", "office.toml"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let campaign = only_run(&folder.0.join("runs"));
    cut(&campaign.join("1-latency"));
    fs::remove_file(folder.0.join("hooked")).unwrap();
    unpacked(&campaign, &folder.0.join("unpacked"));
    let resume = |words: &[&str]| planimeter(&folder.0, &[&["run", "--resume"], words].concat());
    is_refused(&resume(&["unpacked"]), "a command (before: touch hooked)");
    assert!(!folder.0.join("hooked").exists());
    let own = resume(&[campaign.to_str().unwrap()]);
    assert_eq!(own.code, Some(0), "{}", own.errors);
    let trusted = resume(&["unpacked", "--allow-commands"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.errors);
}

#[test]
fn a_bundle_contains_no_signature() {
    let folder = Folder::new();
    let run = stored(&folder);
    assert!(run.join("signature").is_file());
    let result = planimeter(&folder.0, &["bundle", run.to_str().unwrap(), "--output", "a.tar.gz"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let listed = Command::new("tar").args(["tzf", "a.tar.gz"]).current_dir(&folder.0).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    assert!(listed.contains("run/start.json") && !listed.contains("signature"), "{listed}");
    let line = planimeter(&folder.0, &["run", "latency", "--allow-commands"]).errors;
    assert!(line.contains("--allow-commands needs a bundle or a stored run"), "{line}");
}

#[test]
fn a_browser_starts_only_this_program() {
    let folder = Folder::new();
    let evil = folder.0.join("evil");
    fs::write(&evil, "#!/bin/sh\ntouch \"$(dirname \"$0\")/hooked\"\n").unwrap();
    fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let evil = evil.to_str().unwrap();
    let switches = format!("[[switch]]\nname = \"a\"\ntarget = \"\\u006furs@{evil}\"\n");
    fs::write(folder.0.join("net.toml"), switches).unwrap();
    let step = "link = \"veth\"\neffort = \"quick\"\nrun = \"latency\"\n";
    for (name, text) in [
        ("build.toml", format!("{step}on = \"switch@{evil}\"\n")),
        ("hook.toml", format!("{step}on = \"switch\"\nbetween = {evil:?}\n")),
        ("script.toml", "run = \"mine.py\"\non = \"switch\"\n".into()),
        ("topology.toml", format!("{step}topology = \"net.toml\"\n")),
        (
            "late.toml",
            format!("{step}on = \"switch\"\n[[step]]\nrun = \"latency\"\non = \"bridge@{evil}\"\n"),
        ),
    ] {
        fs::write(folder.0.join(name), text).unwrap();
    }
    let serving = Serving::begin_with(&folder.0, &[], &[]);
    let written = evil.replace('/', "%2F");
    for body in [
        format!("experiment=latency&others=switch%40{written}"),
        format!("experiment=latency&target=switch%40{written}&link=veth"),
        format!("experiment=latency&target=switch&others=direct+bridge%40{written}"),
        format!("experiment=latency&target=switch&link=switch%40{written}%3Dveth"),
        format!("experiment=latency&target=switch&set=seconds%3D1%0Aload_of%3Dswitch%40{written}"),
        "experiment=latency&others=topology%3Anet.toml".into(),
        "experiment=latency&others=topology%3A%2Fdev%2Fzero".into(),
        "experiment=mine.py&target=switch".into(),
        "plan=build.toml".into(),
        "plan=hook.toml".into(),
        "plan=script.toml".into(),
        "plan=topology.toml".into(),
        "plan=late.toml".into(),
    ] {
        for how in ["check", "start"] {
            let answer = serving.post("/new", &format!("{body}&do={how}"));
            assert_eq!(answer.status, 403, "{body}: {}", answer.body);
            let why = "cannot be started from a browser";
            assert!(answer.body.contains(why), "{body}: {}", answer.body);
        }
    }
    drop(serving);
    assert!(!folder.0.join("hooked").exists(), "a browser started a program");
    assert_eq!(contents(&folder.0.join("runs")), Vec::<String>::new());
}
