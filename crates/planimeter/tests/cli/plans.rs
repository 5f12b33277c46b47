//! Tests of plans from a user's view: their runs, dry runs, resumption and gates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::common::{CommandResult, Folder, command, contents, only_run, planimeter, record};

/// Two steps in virtual time.
const PLAN: &str = "on = [\"bridge\", \"switch\"]\nlink = \"memory\"\neffort = \"quick\"\n\
                    set = { simulate = true, capacity = \"100M\", seconds = 0.01, load = 5 }\n\
                    [[step]]\nrun = \"latency\"\n\
                    [[step]]\nname = \"rates\"\nrun = \"latency\"\nset = { load = 10 }\n";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans")
}

fn plan(folder: &Folder, text: &str, more: &[&str]) -> CommandResult {
    fs::write(folder.0.join("office.toml"), text).unwrap();
    planimeter(&folder.0, &[&["run", "office.toml"], more].concat())
}

#[test]
fn a_dry_run_of_each_example_prints_its_plan() {
    let folder = Folder::new();
    let files = contents(&examples());
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        let path = examples().join(&file);
        let result = planimeter(&folder.0, &["run", path.to_str().unwrap(), "--dry-run"]);
        // A missing program is named.
        let is_need = result.code == Some(4) || result.errors.contains("--link veth");
        if file != "quick.toml" && is_need {
            eprintln!("skipped: {file}: {}", result.errors);
            continue;
        }
        assert_eq!(result.code, Some(0), "{file}: {}", result.errors);
        for words in ["planimeter run", "step 1,", "estimate", "gates"] {
            assert!(result.output.contains(words), "{file}: {words}: {}", result.output);
        }
    }
    assert_eq!(contents(&folder.0), Vec::<String>::new(), "a dry run leaves no files");
}

/// Keys of version 0.0 are accepted and recorded under their present names.
#[test]
fn a_plan_with_former_keys_runs_with_a_hint_for_each() {
    let folder = Folder::new();
    let text = PLAN.replace("simulate = true", "rig = \"sim\", turns = \"alternating\"");
    let result = plan(&folder, &text, &["--dry-run"]);
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    for (key, now) in [
        ("rig=sim", "\"rig=sim\" is now \"simulate=true\""),
        ("turns=", "\"turns=alternating\" is now \"interleaving=abba\""),
    ] {
        assert_eq!(result.errors.matches(now).count(), 1, "{}", result.errors);
        assert!(!result.output.contains(key), "{}", result.output);
    }
    for words in ["--set simulate=true", "--set interleaving=abba"] {
        assert!(result.output.contains(words), "{}", result.output);
    }
}

#[test]
fn the_example_is_measured_and_its_gates_pass() {
    let folder = Folder::new();
    let path = examples().join("quick.toml");
    let files = ["--junit", "gates.xml", "--markdown", "gates.md"];
    let result = planimeter(&folder.0, &[&["run", path.to_str().unwrap()], &files[..]].concat());
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    let campaign = only_run(&folder.0.join("runs"));
    let inside = contents(&campaign);
    for name in ["1-small-frames", "2-latency", "plan.toml", "campaign.json", "report.html"] {
        assert!(inside.iter().any(|it| it == name), "{name}: {inside:?}");
    }
    assert_eq!(fs::read(campaign.join("plan.toml")).unwrap(), fs::read(&path).unwrap());
    let text = |name: &str| fs::read_to_string(folder.0.join(name)).unwrap();
    assert!(
        text("gates.xml").contains("testsuite name=\"latency: latency\""),
        "{}",
        text("gates.xml")
    );
    assert!(text("gates.md").contains("latency_ns_p50<=1.5"), "{}", text("gates.md"));
    // Each step can be listed, reported and repeated like any run.
    let listed = planimeter(&folder.0, &["list", "runs"]);
    assert!(listed.output.contains("/1-small-frames  ") && listed.output.contains("/2-latency  "));
    fs::remove_file(campaign.join("report.html")).unwrap();
    assert_eq!(planimeter(&folder.0, &["report", campaign.to_str().unwrap()]).code, Some(0));
    assert!(campaign.join("report.html").exists());
}

#[test]
fn a_step_equals_a_run_of_its_command_line() {
    let folder = Folder::new();
    let result = plan(&folder, PLAN, &["--seed", "9", "--output", "here", "--json"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let all: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    let own = only_run(&folder.0.join("here")).join("2-rates");
    let line = record(&own)["command_line"].as_str().unwrap().to_string();
    assert!(
        line.contains("latency --on bridge --on switch --link memory --effort quick"),
        "{line}"
    );
    assert!(line.ends_with("--seed 9"), "{line}");
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--output", "there"]).collect();
    assert_eq!(planimeter(&folder.0, &words).code, Some(0));
    let (own, other) = (record(&own), record(&only_run(&folder.0.join("there"))));
    for part in ["cells", "ratios", "parameters", "command_line", "seed"] {
        assert_eq!(own[part], other[part], "{part}");
    }
}

#[test]
fn a_gate_fails_only_if_measured_again() {
    let folder = Folder::new();
    let gate = |ratio: &str| {
        format!(
            "{PLAN}[[gate]]\nmetric = \"latency_ns_p50\"\nratio = {ratio}\nbase = \"bridge\"\nstep = \"latency\"\n"
        )
    };
    let passed = plan(&folder, &gate("1.5"), &["--output", "passed"]);
    assert_eq!(passed.code, Some(0), "{}{}", passed.output, passed.errors);
    let failed = plan(&folder, &gate("0.5"), &["--output", "failed"]);
    assert_eq!(failed.code, Some(1), "{}{}", failed.output, failed.errors);
    assert!(failed.errors.contains("measured again with 30 repeats"), "{}", failed.errors);
    assert!(failed.output.contains("FAILED latency_ns_p50<=0.5"), "{}", failed.output);
    let campaign = only_run(&folder.0.join("failed"));
    assert!(campaign.join("1-latency-again-1-1/record.json").exists());
    // A stored run, a campaign, or a target of one can be the baseline; it is compared directly.
    let base = only_run(&folder.0.join("passed"));
    let stored = |base: &str, ratio: &str| {
        let gate = format!(
            "[[gate]]\nmetric = \"latency_ns_p50\"\nratio = {ratio}\nbase = {base:?}\nstep = \"latency\"\n"
        );
        plan(&folder, &format!("{PLAN}{gate}"), &["--output", "later"])
    };
    let campaign = base.strip_prefix(&folder.0).unwrap().to_str().unwrap();
    for base in [campaign.to_string(), format!("{campaign}/1-latency:switch")] {
        let same = stored(&base, "1.1");
        assert_eq!(same.code, Some(0), "{base}: {}{}", same.output, same.errors);
    }
    let other = plan(
        &folder,
        &format!(
            "{PLAN}[[gate]]\nmetric = \"latency_ns_p50\"\nratio = 2\nbase = \"{campaign}/1-latency\"\n"
        ),
        &[],
    );
    assert_eq!(other.code, Some(2), "{}", other.errors);
    assert!(
        other.errors.contains("step rates against") && other.errors.contains("load 5 against 10"),
        "{}",
        other.errors
    );
    let worse = stored(campaign, "0.5");
    assert_eq!(worse.code, Some(1), "{}{}", worse.output, worse.errors);
    assert!(!worse.errors.contains("measured again"), "{}", worse.errors);
    // A metric that could have appeared is reported afterwards, an impossible one in advance.
    for (metric, words) in [
        ("cycles_busy_per_frame", "the gate cycles_busy_per_frame<=1.5 has no results"),
        ("throughput_pps", "no metric throughput_pps in the results of latency"),
    ] {
        let nothing = plan(&folder, &gate("1.5").replace("latency_ns_p50", metric), &[]);
        assert_eq!(nothing.code, Some(2), "{}", nothing.errors);
        let words = format!("office.toml:11:1: {words}");
        assert!(nothing.errors.contains(&words), "{}", nothing.errors);
    }
}

#[test]
fn a_killed_plan_resumes_at_the_next_trial() {
    let folder = Folder::new();
    // The first measurement of the second step never ends: its hook waits until the program is
    // killed.
    let text = PLAN.replace(
        "name = \"rates\"\n",
        "name = \"rates\"\nafter = \"test -e alive || { touch reached; sleep 1000; }\"\n",
    );
    let text =
        format!("{text}[[gate]]\nmetric = \"latency_ns_p50\"\nratio = 1.5\nbase = \"bridge\"\n");
    fs::write(folder.0.join("office.toml"), &text).unwrap();
    let mut killed = command(&folder.0, &["run", "office.toml", "--seed", "4"]);
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.0.join("reached").exists() {
        assert_eq!(killed.try_wait().unwrap(), None, "the program ended before the hook");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let campaign = only_run(&folder.0.join("runs"));
    assert_eq!(record(&campaign.join("1-latency"))["partial"], false);
    assert_eq!(record(&campaign.join("2-rates"))["partial"], true);
    let lines = |run: &str| fs::read_to_string(campaign.join(run).join("trials.jsonl")).unwrap();
    let before = [lines("1-latency"), lines("2-rates")];
    fs::write(folder.0.join("alive"), "").unwrap();
    // The plan in the folder is authoritative.
    fs::write(folder.0.join("office.toml"), "nothing").unwrap();
    let result = planimeter(&folder.0, &["run", "--resume", campaign.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}{}", result.output, result.errors);
    assert_eq!(lines("1-latency"), before[0]);
    assert!(lines("2-rates").starts_with(&before[1]));
    assert_eq!(record(&campaign.join("2-rates"))["partial"], false);
    assert_eq!(record(&campaign.join("2-rates"))["seed"], 4);
    assert!(campaign.join("gates.xml").exists() && campaign.join("report.html").exists());
}

#[test]
fn invalid_plans_report_all_errors_and_measure_nothing() {
    let folder = Folder::new();
    for (text, words) in [
        ("", &["office.toml:1:1: the step measures nothing"][..]),
        ("run = \"latency\"\non = \"ovss\"\n", &["office.toml:2:6: unknown target \"ovss\""]),
        (
            "runn = \"latency\"\non = \"switch\"\n[set]\nsconds = 1\n",
            &["office.toml:1:1", "\"run\"?", "office.toml:4:1", "\"seconds\"?", "3 errors"],
        ),
        (
            "run = \"latency\"\non = [\"switch\", \"switch\"]\nlink = \"memory\"\n",
            &["office.toml:1:1: step latency: --on switch is given twice"],
        ),
        (
            "run = \"latency\"\non = \"switch\"\nlink = \"memory\"\n[[gate]]\nmetric = \"latency_ns_p50\"\nratio = 1\n",
            &["office.toml:4:1: the gate compares nothing"],
        ),
        (
            "run = \"latency\"\non = [\"switch\", \"bridge\"]\nlink = \"memory\"\n[[gate]]\nmetric = \"throughput_pps\"\n\
             ratio = 1\n",
            &["office.toml:4:1: no metric throughput_pps in the results of latency"],
        ),
        (
            "run = \"latency\"\non = \"switch\"\nlink = \"memory\"\n[[gate]]\nmetric = \"latency_ns_p50\"\nratio = 1\n\
             base = \"brigde\"\n",
            &["office.toml:7:8: \"brigde\" is not a target of the plan, and not a stored run"],
        ),
    ] {
        let result = plan(&folder, text, &[]);
        assert_eq!(result.code, Some(2), "{text}: {}", result.errors);
        words.iter().for_each(|it| assert!(result.errors.contains(it), "{it}: {}", result.errors));
    }
    for (more, words) in [
        (&["--on", "switch"][..], "--on cannot be combined with office.toml"),
        (&["--set", "seconds=1"], "write [set] in the plan"),
        (&["latency"], "cannot be combined with other experiments"),
        (&["--junit", "nowhere/gates.xml"], "nowhere/gates.xml"),
    ] {
        let result = plan(&folder, PLAN, more);
        assert_eq!(result.code, Some(2), "{more:?}: {}", result.errors);
        assert!(
            result.errors.contains(words) && result.errors.lines().count() == 1,
            "{}",
            result.errors
        );
    }
    let result = planimeter(&folder.0, &["run", "latency", "--junit", "gates.xml"]);
    assert!(result.code == Some(2) && result.errors.contains("PLAN.toml"), "{}", result.errors);
    assert_eq!(contents(&folder.0), ["office.toml"]);
}
