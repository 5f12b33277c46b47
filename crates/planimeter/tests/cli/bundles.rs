//! Tests of bundles from a user's view: creation, repetition of a run, and anonymization.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::common::{Folder, bytes, contents, only_run, planimeter, record};

/// A run in virtual time that names files of all kinds.
const RUN: &str = "run latency --on bridge --on progfe:programs/bridge.fe.xml --on switch:model=./slow.toml --topology pair.toml \
                   --link memory --effort quick --set simulate=true --set capacity=100M --set seconds=0.01 --set load=5 --set repeats=1";

const PAIR: &str = "instrument = [\"a:1\", \"b:2\"]\n[[switch]]\nname = \"a\"\ntarget = \"switch\"\n\
                    [[switch]]\nname = \"b\"\ntarget = \"switch:model=./slow.toml\"\n\
                    [[link]]\nbetween = [\"a:2\", \"b:1\"]\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run with its files, and its folder.
fn measured(folder: &Folder) -> PathBuf {
    fs::create_dir(folder.0.join("programs")).unwrap();
    let program = root().join("examples/progfe/bridge.fe.xml");
    fs::copy(program, folder.0.join("programs/bridge.fe.xml")).unwrap();
    fs::copy(root().join("crates/elements/models/honest.toml"), folder.0.join("slow.toml"))
        .unwrap();
    fs::write(folder.0.join("pair.toml"), PAIR).unwrap();
    let result = planimeter(&folder.0, &RUN.split_whitespace().collect::<Vec<_>>());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    only_run(&folder.0.join("runs"))
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap()
}

/// Reads a bundle's entries with another program.
fn unpacked(file: &Path, into: &Path) -> Vec<(String, Vec<u8>)> {
    fs::create_dir(into).unwrap();
    let done = Command::new("tar").arg("xzf").arg(file).arg("-C").arg(into).status().unwrap();
    assert!(done.success());
    let mut found = Vec::new();
    let mut folders = vec![into.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(into).unwrap().to_str().unwrap().to_string();
                found.push((name, read(&path)));
            }
        }
    }
    found
}

#[test]
fn a_bundled_run_is_repeated_by_one_command() {
    let (mine, theirs) = (Folder::new(), Folder::new());
    let run = measured(&mine);
    let file = theirs.0.join("a.tar.gz");
    let result =
        planimeter(&mine.0, &["bundle", run.to_str().unwrap(), "--output", file.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.errors, "", "the bundle has no omissions and no changes");
    let again =
        planimeter(&mine.0, &["bundle", run.to_str().unwrap(), "--output", file.to_str().unwrap()]);
    assert!(
        again.code == Some(2) && again.errors.contains("the file exists already"),
        "{}",
        again.errors
    );
    // The first folder is no longer needed.
    let original = record(&run);
    drop(mine);
    let dry = planimeter(&theirs.0, &["run", "a.tar.gz", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.errors);
    assert!(dry.output.contains("progfe:programs/bridge.fe.xml"), "{}", dry.output);
    assert_eq!(contents(&theirs.0), ["a.tar.gz"], "a dry run leaves no files");
    let result = planimeter(&theirs.0, &["run", "a.tar.gz", "--output", "here"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let campaign = only_run(&theirs.0.join("here"));
    let repeated = record(&campaign.join("1-run"));
    for part in ["command_line", "cells", "ratios", "outcomes"] {
        assert_eq!(original[part], repeated[part], "{part}");
    }
    // A repeated run can be bundled again.
    let result =
        planimeter(&theirs.0, &["bundle", campaign.to_str().unwrap(), "--output", "b.tar.gz"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let entries = unpacked(&theirs.0.join("b.tar.gz"), &theirs.0.join("b"));
    for name in [
        "bundle.json",
        "plan.toml",
        "files/slow.toml",
        "files/pair.toml",
        "files/programs/bridge.fe.xml",
    ] {
        assert!(entries.iter().any(|(it, _)| it == name), "{name}");
    }
}

#[test]
fn an_external_file_gets_its_own_name_and_a_changed_one_is_reported() {
    let (mine, theirs) = (Folder::new(), Folder::new());
    let program = root().join("examples/progfe/bridge.fe.xml").canonicalize().unwrap();
    let on = format!("progfe:{}", program.display());
    let words = "--link memory --effort quick --set simulate=true --set seconds=0.01 --set stream=s.toml --set repeats=1";
    let stream = "[[stream]]\nid = 1\nfrom = 1\nto = 2\nframe_bytes = 128\nrate_pps = 1000.0\n\
                  mac_source = \"02:00:00:00:00:01\"\nmac_destination = \"02:00:00:00:00:02\"\n\
                  ip_source = \"10.0.0.1\"\nip_destination = \"10.0.1.1\"\n";
    fs::write(mine.0.join("s.toml"), stream).unwrap();
    let run = [&["run", "forwarding-rate", "--on", &on][..], &words.split(' ').collect::<Vec<_>>()]
        .concat();
    let result = planimeter(&mine.0, &run);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let folder = only_run(&mine.0.join("runs"));
    let later = fs::File::options().write(true).open(mine.0.join("s.toml")).unwrap();
    later
        .set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3600))
        .unwrap();
    let file = theirs.0.join("a.tar.gz");
    let result = planimeter(
        &mine.0,
        &["bundle", folder.to_str().unwrap(), "--output", file.to_str().unwrap()],
    );
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(result.errors.contains("s.toml changed after the run started"), "{}", result.errors);
    let result = planimeter(&theirs.0, &["run", "a.tar.gz"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(
        result.errors.contains("s.toml in this bundle changed after its run started"),
        "{}",
        result.errors
    );
    let repeated = record(&only_run(&theirs.0.join("runs")).join("1-run"));
    assert_eq!(repeated["targets"][0]["name"], "progfe:outside/1/bridge.fe.xml");
    assert_eq!(repeated["trials"][0]["frames"], record(&folder)["trials"][0]["frames"]);
}

#[test]
fn commands_in_a_foreign_bundle_need_trust() {
    let (mine, theirs) = (Folder::new(), Folder::new());
    let words = "run latency --on switch --link memory --effort quick --set simulate=true --set capacity=100M --set seconds=0.01 --set load=5 --set repeats=1";
    let hook = ["--setup", "echo here > ../../../told"];
    let result = planimeter(&mine.0, &[&words.split(' ').collect::<Vec<_>>()[..], &hook].concat());
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let folder = only_run(&mine.0.join("runs"));
    let file = theirs.0.join("a.tar.gz");
    let result = planimeter(
        &mine.0,
        &["bundle", folder.to_str().unwrap(), "--output", file.to_str().unwrap()],
    );
    assert_eq!(result.code, Some(0), "{}", result.errors);
    for more in [&[][..], &["--dry-run"]] {
        let result = planimeter(&theirs.0, &[&["run", "a.tar.gz"], more].concat());
        assert_eq!(result.code, Some(2), "{}", result.errors);
        assert!(
            result.errors.contains("a command (before: echo here > ../../../told)"),
            "{}",
            result.errors
        );
        assert!(
            result.errors.contains("--allow-commands") && result.errors.lines().count() == 1,
            "{}",
            result.errors
        );
        assert_eq!(contents(&theirs.0), ["a.tar.gz"]);
    }
    let result = planimeter(&theirs.0, &["run", "a.tar.gz", "--allow-commands"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(contents(&theirs.0), ["a.tar.gz", "runs", "told"]);
}

#[test]
fn an_invalid_bundle_gives_a_one_line_error_and_leaves_no_files() {
    let folder = Folder::new();
    fs::write(folder.0.join("garbage.tar.gz"), "no bundle").unwrap();
    for (words, about) in [
        (&["run", "nowhere.tar.gz"][..], "nowhere.tar.gz"),
        (&["run", "garbage.tar.gz"], "not a bundle"),
        (&["run", "garbage.tar.gz", "--on", "switch"], "--on cannot be combined with"),
        (&["run", "latency", "--allow-commands"], "--allow-commands needs a bundle"),
        (&["bundle", "nowhere"], "nowhere"),
        (&["bundle", "nowhere", "--redact", "x"], "--anonymize"),
    ] {
        let result = planimeter(&folder.0, words);
        assert_eq!(result.code, Some(2), "{words:?}: {}", result.errors);
        assert!(
            result.errors.contains(about) && result.errors.lines().count() == 1,
            "{}",
            result.errors
        );
    }
    assert_eq!(contents(&folder.0), ["garbage.tar.gz"]);
}

/// Names that no file of an anonymized bundle may contain.
const SECRETS: [&str; 12] = [
    "core-sw7.acme.example",
    "core-sw7",
    "enp3s0f0",
    "enp3s0f1",
    "FOC1234X0AB",
    "0x00a1b2c3d4e5f607",
    "00a1b2c3d4e5f607",
    "10.77.3.9",
    "2001:470:1f0b::5",
    "fa:16:3e:11:22:33",
    "jane.doe",
    "Acme",
];

/// A campaign as if of a user's device: measured in virtual time, then edited to name that device.
fn of_somebody(folder: &Folder) -> PathBuf {
    let plan = "name = \"Acme-lab\"\non = [\"switch\", \"bridge\"]\nlink = \"memory\"\neffort = \"quick\"\n\
                before = \"echo 10.77.3.9 is fa:16:3e:11:22:33 of jane.doe at 2001:470:1f0b::5, /home/jane.doe/x; exit 0\"\n\
                set = { simulate = true, capacity = \"100M\", seconds = 0.01, load = 5 }\n\
                [[step]]\nrun = \"latency\"\n[[step]]\nrun = \"rule-activation\"\non = \"switch\"\n\
                set = { rules_count = 20, probes_pps = 5000, updates_max = 1 }\n\
                [[gate]]\nmetric = \"latency_ns_p50\"\nratio = 9\nbase = \"switch\"\n";
    fs::write(folder.0.join("plan.toml"), plan).unwrap();
    let result = planimeter(&folder.0, &["run", "plan.toml"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let campaign = only_run(&folder.0.join("runs"));
    let run = campaign.join("1-latency");
    let device = "openflow:tcp:core-sw7.acme.example:6653,ports=1@enp3s0f0+2@enp3s0f1";
    for file in ["record.json", "trials.jsonl"] {
        let text = fs::read_to_string(run.join(file)).unwrap();
        fs::write(run.join(file), text.replace("\"bridge\"", &format!("{device:?}"))).unwrap();
    }
    let mut changed = record(&run);
    for target in changed["targets"].as_array_mut().unwrap() {
        target["settings"] = serde_json::json!({
            "datapath_id": "0x00a1b2c3d4e5f607", "serial_number": "FOC1234X0AB", "datapath": "core-sw7 of Acme at 10.77.3.9",
            "port_1": "enp3s0f0",
        });
    }
    fs::write(run.join("record.json"), changed.to_string()).unwrap();
    fs::create_dir_all(run.join("captures")).unwrap();
    fs::write(run.join("captures/00001.pcapng"), "fa:16:3e:11:22:33 Acme").unwrap();
    fs::write(campaign.join("gates.md"), format!("`{device}` of Acme")).unwrap();
    assert_eq!(planimeter(&folder.0, &["report", run.to_str().unwrap()]).code, Some(0));
    campaign
}

#[test]
fn a_masked_bundle_has_no_identifying_text_and_still_gives_a_report() {
    let folder = Folder::new();
    let campaign = of_somebody(&folder);
    let name = campaign.to_str().unwrap();
    let plain = planimeter(&folder.0, &["bundle", name, "--output", "plain.tar.gz"]);
    assert_eq!(plain.code, Some(0), "{}", plain.errors);
    let all: Vec<u8> = unpacked(&folder.0.join("plain.tar.gz"), &folder.0.join("plain"))
        .into_iter()
        .flat_map(|(name, bytes)| [name.into_bytes(), bytes].concat())
        .collect();
    let holds = |all: &[u8], word: &str| all.windows(word.len()).any(|it| it == word.as_bytes());
    for secret in SECRETS {
        assert!(holds(&all, secret), "{secret} is in no bundle, so this test shows nothing");
    }
    let words = [
        "bundle",
        name,
        "--anonymize",
        "--redact",
        "Acme",
        "--redact",
        "acme",
        "--redact",
        "jane.doe",
        "--output",
        "masked.tar.gz",
    ];
    let result = planimeter(&folder.0, &words);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(result.errors.contains("left out: 1 capture"), "{}", result.errors);
    let entries = unpacked(&folder.0.join("masked.tar.gz"), &folder.0.join("masked"));
    for (name, bytes) in &entries {
        for secret in SECRETS {
            assert!(!holds(bytes, secret) && !name.contains(secret), "{secret} is in {name}");
        }
    }
    // One pseudonym for one name, everywhere.
    let run = folder.0.join("masked/run/1-latency");
    let masked = record(&run);
    let target = masked["targets"][1]["name"].as_str().unwrap();
    let ports = target.split_once(",ports=").map(|(_, ports)| ports);
    assert!(target.starts_with("openflow:tcp:") && ports == Some("1@eth-1+2@eth-2"), "{target}");
    let trials = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    assert!(trials.lines().any(|line| line.contains(target)));
    assert_eq!(
        masked["cells"].as_array().unwrap().len(),
        record(&campaign.join("1-latency"))["cells"].as_array().unwrap().len()
    );
    let text = fs::read_to_string(run.join("hooks/before-switch-latency.log")).unwrap();
    assert!(
        text.contains("192.0.2.")
            && text.contains("02:00:00:00:00:0")
            && text.contains("2001:db8::"),
        "{text}"
    );
    let facts: Value = serde_json::from_slice(&read(&folder.0.join("masked/bundle.json"))).unwrap();
    assert_eq!(facts["masked"], true);
    // A report rebuilt from it is the same.
    let before = read(&run.join("report.html"));
    let result = planimeter(&folder.0, &["report", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(read(&run.join("report.html")), before);
    assert_eq!(planimeter(&folder.0, &["report", "masked/run"]).code, Some(0));
}

#[test]
fn a_masked_report_has_no_identifying_text_and_leaves_the_runs_unchanged() {
    let folder = Folder::new();
    let campaign = of_somebody(&folder);
    let run = campaign.join("1-latency");
    let holds = |all: &[u8], word: &str| all.windows(word.len()).any(|it| it == word.as_bytes());
    let hide = ["--anonymize", "--redact", "Acme", "--redact", "acme", "--redact", "jane.doe"];
    let report = |of: &[&str], out: &str| {
        planimeter(&folder.0, &[&["report"], of, &hide[..], &["--output", out]].concat())
    };
    let before = bytes(&campaign);
    for (out, of) in [
        ("all", &[campaign.to_str().unwrap()][..]),
        ("one", &[run.to_str().unwrap()]),
        ("twice", &[run.to_str().unwrap(), run.to_str().unwrap()]),
    ] {
        let result = report(of, out);
        assert_eq!(result.code, Some(0), "{}", result.errors);
        let files = bytes(&folder.0.join(out));
        for end in [".html", ".svg", ".csv", ".parquet", ".json", ".md"] {
            assert!(files.iter().any(|(name, _)| name.ends_with(end)), "{out} has no {end}");
        }
        for (name, bytes) in &files {
            for secret in SECRETS {
                assert!(
                    !holds(bytes, secret) && !name.contains(secret),
                    "{secret} is in {out}/{name}"
                );
            }
        }
        // One pseudonym for one name: displayed values stay distinguishable.
        let (_, page) = files.iter().find(|(name, _)| name == "report.html").unwrap();
        assert!(holds(page, "1@eth-1+2@eth-2") && holds(page, "switch"), "{out}");
    }
    assert_eq!(bytes(&campaign), before, "the reports of the runs are unchanged");
    let inside = run.join("shared");
    for (out, words) in [
        (run.to_str().unwrap(), "use a folder outside it"),
        (inside.to_str().unwrap(), "use a folder outside it"),
    ] {
        let result = report(&[run.to_str().unwrap()], out);
        assert!(result.code == Some(2) && result.errors.contains(words), "{}", result.errors);
    }
    for (more, words) in [
        (&["--anonymize"][..], "--output"),
        (&["--redact", "Acme", "--output", "x"], "--anonymize"),
    ] {
        let result = planimeter(&folder.0, &[&["report", run.to_str().unwrap()], more].concat());
        assert!(result.code == Some(2) && result.errors.contains(words), "{}", result.errors);
    }
}
