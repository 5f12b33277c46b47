//! Tests of the program from a user's view: its messages for wrong input, and the files that it
//! leaves.
//!
//! Every row of the first table is a common mistake; each gets one line that names what was wrong,
//! and the exit code of PRODUCT.md. Tests that need privileges are in `lab.rs`.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;
#[path = "cli/bundles.rs"]
mod bundles;
#[path = "cli/comparing.rs"]
mod comparing;
#[path = "cli/failing.rs"]
mod failing;
#[path = "cli/hooks.rs"]
mod hooks;
#[path = "cli/installed.rs"]
mod installed;
#[path = "cli/joining.rs"]
mod joining;
#[path = "cli/listening.rs"]
mod listening;
#[path = "cli/plans.rs"]
mod plans;
#[path = "cli/quick.rs"]
mod quick;
#[path = "cli/resuming.rs"]
mod resuming;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/serving.rs"]
mod serving;
#[path = "cli/teams.rs"]
mod teams;
#[path = "cli/trust.rs"]
mod trust;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{CommandResult, Folder, bytes, contents, interrupt, only_run, planimeter, record};
use serde_json::Value;

/// Two trials in virtual time.
const SHORT: [&str; 12] = [
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
];

/// Arguments, exit code, and what the line has to name.
type Row = (&'static [&'static str], i32, &'static [&'static str]);

/// A program that can be run.
const BRIDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/progfe/bridge.fe.xml");

/// Wrong command lines. `taken` is an existing file, `empty` an empty folder, and the other files
/// contain what their names state.
const WRONG: &[Row] = &[
    (&["measure"], 2, &["measure"]),
    (&["run"], 2, &["EXPERIMENT"]),
    (
        &["run", "latency", "--on", "switch,bridge"],
        2,
        &["\"switch,bridge\"", "--on switch --on bridge"],
    ),
    (
        &["run", "latency", "--on", "switch", "bridge"],
        2,
        &["unknown experiment \"bridge\"", "--on bridge"],
    ),
    (&["run", "bianco2010/fig33"], 2, &["bianco2010/fig33", "did you mean \"bianco2010/fig3\""]),
    (&["run", "bianca2010"], 2, &["bianca2010", "did you mean \"bianco2010\""]),
    (&["run", "plan.toml"], 2, &["plan.toml", "cannot read"]),
    (
        &["run", "bianco2010/fig6", "--on", "bridge", "--link", "memory"],
        2,
        &["bianco2010/fig6", "OpenFlow switches"],
    ),
    (&["run", "latencies"], 2, &["latencies", "did you mean \"latency\""]),
    (&["run", "latency", "--on", "ovss"], 2, &["target", "ovss", "\"ovs\""]),
    (&["run", "latency", "--on", "ovs-kernel"], 2, &["ovs-kernel", "not in this version"]),
    (&["run", "latency", "--on", "ovs-dpdk", "--link", "veth"], 2, &["ovs-dpdk", "--link memif"]),
    (
        &["run", "latency", "--on", "linux-bridge", "--link", "memif"],
        2,
        &["linux-bridge", "--link veth"],
    ),
    (
        &["run", "latency", "--on", "bridge", "--on", "router", "--set", "table=learned"],
        2,
        &["table=learned", "router", "linux-bridge"],
    ),
    (&["run", "latency", "--set", "rules=all"], 2, &["rules=all", "addresses"]),
    (&["run", "latency", "--on", "direct", "--on", "direct"], 2, &["direct", "twice"]),
    (&["run", "latency", "--link", "cable"], 2, &["link", "cable", "veth", "memory"]),
    (&["run", "latency", "--link", "memory", "--link", "replay"], 2, &["--link", "twice"]),
    (
        &["run", "latency", "--on", "switch", "--link", "memory", "--link", "bridge=memory"],
        2,
        &["--link bridge=memory: bridge is not a target", "--on bridge"],
    ),
    (
        &["run", "latency", "--on", "switch", "--on", "ovs", "--link", "memory"],
        2,
        &["ovs does not support link memory", "--link ovs=veth"],
    ),
    (&["run", "latency", "--topology", "nowhere.toml"], 2, &["nowhere.toml", "cannot read"]),
    (&["run", "latency", "--topology", "ring.toml"], 2, &["ring.toml", "line 11", "loops = true"]),
    (
        &["run", "latency", "--topology", "pair.toml", "--link", "memory"],
        2,
        &["pair.toml", "switch b (ovs)", "memory", "--link veth"],
    ),
    (
        &["run", "rule-activation", "--topology", "switch.toml", "--link", "memory"],
        2,
        &["rule-activation", "measures one switch", "--on"],
    ),
    (&["run", "latency", "--link", "vhost"], 2, &["vhost", "not in this version"]),
    (&["run", "latency", "--link", "nic"], 2, &["link nic", "--on device:ports=1@eth1+2@eth2"]),
    (
        &["run", "latency", "--on", "device:ports=1@eth1+2@eth2", "--link", "veth"],
        2,
        &["does not support link veth:afpacket", "--link nic"],
    ),
    (&["run", "latency", "--on", "openflow:tcp:192.0.2.7"], 2, &["add ports=1@eth1+2@eth2"]),
    (&["run", "latency", "--on", "ovs", "--link", "memory"], 2, &["ovs", "memory", "veth"]),
    (
        &["run", "latency", "--on", "switch", "--link", "replay"],
        2,
        &["replay", "forwarding-rate", "latency"],
    ),
    (&["run", "forwarding-rate", "--on", "ovs", "--link", "replay"], 2, &["ovs", "replay"]),
    (
        &["run", "latency", "--set", "simulate=true", "--link", "veth"],
        2,
        &["simulate=true", "memory"],
    ),
    (
        &["run", "latency", "--set", "simulate=true", "--set", "capacity=auto", "--on", "direct"],
        2,
        &["capacity=auto", "simulate=true"],
    ),
    (&["run", "latency", "--set", "sconds=1"], 2, &["sconds", "seconds"]),
    (
        &["run", "throughput", "--set", "load=50"],
        2,
        &["load=50", "throughput does not support load", "hint: "],
    ),
    (
        &["run", "cold-start", "--set", "frame=64,512"],
        2,
        &["frame=64,512", "cold-start supports one value of frame", "hint: "],
    ),
    (
        &[
            "run",
            "forwarding-rate",
            "--on",
            "switch",
            "--set",
            "frame=64,512",
            "--set",
            "load=10,50",
        ],
        2,
        &["either frame or load takes several values", "hint: "],
    ),
    (&["run", "latency", "--set", "seconds"], 2, &["seconds", "KEY=VALUE"]),
    (&["run", "latency", "--set", "seconds=0"], 2, &["seconds=0", "0.01"]),
    (&["run", "latency", "--set", "frame=1519"], 2, &["frame=1519", "64 to 1518"]),
    (&["run", "latency", "--set", "load=nan"], 2, &["load=nan", "1000 %"]),
    (&["run", "latency", "--set", "table=hash"], 2, &["table=hash", "exact"]),
    (
        &["run", "throughput", "--set", "loss_verification=11"],
        2,
        &["loss_verification=11", "0 to 10"],
    ),
    (&["run", "rfc9971", "--set", "goals=ndr,mdr"], 2, &["goals=ndr,mdr", "pdr", "tst009"]),
    (&["run", "rfc9971", "--set", "goals=ndr,ndr"], 2, &["goals=ndr,ndr", "each once"]),
    (&["run", "rfc9971", "--set", "goals="], 2, &["goals=", "ndr"]),
    (&["run", "rfc9971", "--set", "goal_width=0"], 2, &["goal_width=0", "0.0005"]),
    (&["run", "rfc9971", "--set", "goal_exceed_ratio=1"], 2, &["goal_exceed_ratio=1", "0.95"]),
    (
        &[
            "run",
            "rfc9971",
            "--on",
            "direct",
            "--set",
            "simulate=true",
            "--set",
            "goal_duration_sum=0.1",
        ],
        2,
        &[
            "rfc9971",
            "goals quick-ndr,quick-pdr",
            "at least one full-length trial",
            "goal_duration_sum",
        ],
    ),
    (
        &["run", "rfc9971", "--on", "direct", "--set", "simulate=true", "--set", "goal_initial=2"],
        2,
        &["rfc9971", "at most the final one", "goal_initial"],
    ),
    (
        &[
            "run",
            "rfc9971",
            "--on",
            "direct",
            "--set",
            "simulate=true",
            "--set",
            "search_seconds=1",
        ],
        2,
        &["rfc9971", "allow more time for the search", "search_seconds"],
    ),
    (
        &[
            "run",
            "rfc9971",
            "--on",
            "direct",
            "--set",
            "simulate=true",
            "--set",
            "capacity=10k",
            "--set",
            "frame=1518",
        ],
        2,
        &["rfc9971", "has no frame", "capacity"],
    ),
    (
        &["run", "rfc9971", "--on", "direct", "--set", "simulate=true", "--set", "loss=0"],
        2,
        &["pdr", "loss=0", "goals=ndr"],
    ),
    (&["run", "latency", "--seed", "x"], 2, &["--seed", "x"]),
    (&["run", "latency", "--effort", "some"], 2, &["--effort", "some", "quick"]),
    (&["run", "latency", "--on", "direct", "--output"], 2, &["--output"]),
    (&["run", "--resume", "empty"], 2, &["empty/record.json", "folder of a run"]),
    (&["run", "--resume", "nowhere"], 2, &["nowhere/record.json", "folder of a run"]),
    (&["run", "--resume", "empty", "--seed", "2"], 2, &["--resume", "--seed"]),
    (&["report"], 2, &["RUN"]),
    (&["report", "empty"], 2, &["empty/record.json", "folder of a run"]),
    (&["report", "taken"], 2, &["taken/record.json", "folder of a run"]),
    (&["report", "garbage"], 2, &["garbage/record.json", "line 1"]),
    (&["report", "later"], 2, &["later/record.json", "schema", "99"]),
    (&["report", "empty", "garbage"], 2, &["--output"]),
    (&["list", "throughputs"], 2, &["throughputs", "did you mean \"throughput\""]),
    (&["list", "peers"], 2, &["peers", "targets"]),
    (&["doctor", "--fast"], 2, &["--fast"]),
    (&["switch"], 2, &["--port"]),
    (&["switch", "--port", "eth0"], 2, &["--port eth0", "NUMBER=SPEC"]),
    (&["switch", "--port", "one=afpacket:eth0"], 2, &["one=afpacket:eth0", "NUMBER=SPEC"]),
    (&["switch", "--port", "1=eth0"], 2, &["port 1", "eth0", "afpacket:INTERFACE"]),
    (&["switch", "--port", "1=pcap:x"], 2, &["port 1", "x: No such file"]),
    (&["switch", "--port", "1=tap:"], 2, &["port 1", "missing interface name"]),
    (&["switch", "--port", "0=tap:a"], 2, &["port", "0"]),
    (&["switch", "--port", "1=tap:a", "--port", "1=tap:b"], 2, &["number 1", "twice"]),
    (&["switch", "--port", "1=tap:a", "--listen", "6653"], 2, &["6653", "ptcp:PORT"]),
    (&["switch", "--port", "1=tap:a", "--controller", "tcp:h"], 2, &["tcp:h"]),
    (&["switch", "--port", "1=tap:a", "--listen", "ptcp:99999"], 2, &["99999"]),
    (&["switch", "--port", "1=tap:a", "--openflow", "1.0,1.9"], 2, &["1.9", "1.0"]),
    (&["switch", "--port", "1=tap:a", "--datapath-id", "xyz"], 2, &["xyz", "hexadecimal"]),
    (&["switch", "--port", "1=tap:a", "--fail-mode", "open"], 2, &["open", "standalone"]),
    (&["switch", "--port", "1=tap:a", "--model", "pica8"], 2, &["pica8", "use one of honest"]),
    (&["switch", "--port", "1=tap:a", "--config", "nowhere"], 2, &["nowhere"]),
    (&["switch", "--port", "1=tap:a", "--config", "unknown.toml"], 2, &["line 2", "colour"]),
    (&["switch", "--port", "1=tap:a", "--listen", "pssl:0"], 2, &["certificate", "pssl:0"]),
    (&["switch", "--port", "1=tap:a", "--controller", "ssl:127.0.0.1"], 2, &["ca_cert"]),
    (
        &["progfe", "--program", BRIDGE, "--port", "1=tap:a", "--forces", "ptcp::0.0.0.0"],
        2,
        &["forces: cannot listen on ptcp:6704:0.0.0.0", "--insecure"],
    ),
    (
        &["progfe", "--program", BRIDGE, "--port", "1=tap:a", "--forces", "pssl::0.0.0.0"],
        2,
        &["forces: cannot listen on pssl:6704:0.0.0.0", "--ca-cert"],
    ),
    (
        &["progfe", "--program", BRIDGE, "--port", "1=tap:a", "--http", "0.0.0.0:80"],
        2,
        &["http: cannot listen on 0.0.0.0:80", "--http-token-file"],
    ),
    (
        &["fe", "--listen", "ptcp::0.0.0.0", "get", "FEPO.CEID"],
        2,
        &["ptcp:6704:0.0.0.0", "--insecure"],
    ),
    (&["switch", "--port", "1=tap:a", "--ca-cert", "nowhere"], 2, &["nowhere", "cannot read"]),
    (&["switch", "--port", "1=tap:a", "--ca-cert", "taken"], 2, &["taken", "no certificate"]),
    (&["switch", "--port", "1=tap:a", "--certificate", "taken"], 2, &["taken", "private_key"]),
    (&["generate", "--pcap", "taken"], 2, &["--port"]),
    (&["generate", "--port", "tap:a"], 2, &["--stream"]),
    (
        &["generate", "--port", "eth0", "--pcap", "taken"],
        2,
        &["port 1", "eth0", "afpacket:INTERFACE"],
    ),
    (&["generate", "--port", "tap:a", "--stream", "nowhere"], 2, &["nowhere", "cannot read"]),
    (&["generate", "--port", "tap:a", "--stream", "unknown.toml"], 2, &["line ", "unknown field"]),
    (&["generate", "--port", "tap:a", "--stream", "x", "--pcap", "y"], 2, &["--stream", "--pcap"]),
    (
        &["generate", "--port", "tap:a", "--pcap", "x", "--topspeed", "--gap-ns", "5"],
        2,
        &["--topspeed", "--gap-ns"],
    ),
    (&["bridge", "--port", "1=tap:a", "--ageing-time", "3601"], 2, &["3601", "3600"]),
    (&["router", "--port", "1=tap:a"], 2, &["--config"]),
    (&["router", "--port", "1=tap:a", "--config", "unknown.toml"], 2, &["line 2", "colour"]),
    (&["router", "--port", "1=tap:a", "--config", "prefix.toml"], 2, &["line 3", "10.0.0.1/33"]),
    (&["router", "--port", "1=tap:a", "--config", "port.toml"], 2, &["port 7", "--port 7"]),
    (&["router", "--port", "1=tap:a", "--config", "empty"], 2, &["empty"]),
];

fn prepared() -> Folder {
    let folder = Folder::new();
    let write = |name: &str, text: &str| fs::write(folder.0.join(name), text).unwrap();
    for name in ["empty", "garbage", "later"] {
        fs::create_dir(folder.0.join(name)).unwrap();
    }
    write("taken", "");
    write("garbage/record.json", "{ \"schema\": 1, \u{fffd}");
    write("later/record.json", "{ \"schema\": 99 }");
    write("unknown.toml", "# no such key\ncolour = \"red\"\n");
    let switches = |second: &str, links: &str| {
        format!(
            "instrument = [\"a:1\", \"b:1\"]\n[[switch]]\nname = \"a\"\ntarget = \"switch\"\n\
             [[switch]]\nname = \"b\"\ntarget = \"{second}\"\n\
             [[link]]\nbetween = [\"a:2\", \"b:2\"]\n{links}"
        )
    };
    write("switch.toml", &switches("switch", ""));
    write("pair.toml", &switches("ovs", ""));
    write("ring.toml", &switches("switch", "\n[[link]]\nbetween = [\"a:3\", \"b:3\"]\n"));
    write("prefix.toml", "[[interface]]\nport = 1\naddresses = [\"10.0.0.1/33\"]\n");
    write("port.toml", "[[interface]]\nport = 7\naddresses = [\"10.0.0.1/24\"]\n");
    folder
}

#[test]
fn wrong_input_gets_one_line_that_names_it() {
    let folder = prepared();
    let before = contents(&folder.0);
    for (arguments, code, words) in WRONG {
        check_refused(&folder.0, arguments, *code, words);
    }
    assert_eq!(contents(&folder.0), before, "files were left behind");
}

fn check_refused(folder: &Path, arguments: &[&str], code: i32, words: &[&str]) {
    let result = planimeter(folder, arguments);
    let line = result.errors.trim_end();
    assert_eq!(result.code, Some(code), "{arguments:?}: {line}");
    assert_eq!(result.output, "", "{arguments:?}");
    assert!(line.starts_with("planimeter: "), "{arguments:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    for word in words {
        assert!(line.contains(word), "{arguments:?}: {word:?} is missing in: {line}");
    }
}

#[test]
fn without_arguments_the_commands_are_listed() {
    let result = planimeter(&std::env::temp_dir(), &[]);
    assert_eq!((result.code, result.output.as_str()), (Some(2), ""));
    assert!(
        result.errors.contains("\n  doctor  ") && result.errors.lines().count() > 20,
        "{result:?}"
    );
}

#[test]
fn an_unwritable_results_folder_is_named() {
    let folder = prepared();
    for out in ["taken", "taken/below", "/proc/planimeter"] {
        let arguments = [&SHORT[..], &["--output", out]].concat();
        check_refused(&folder.0, &arguments, 2, &[out, "--output"]);
    }
}

#[test]
fn help_and_version_are_printed_to_stdout() {
    let folder = Folder::new();
    for arguments in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let result = planimeter(&folder.0, arguments);
        assert_eq!((result.code, result.errors.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(result.output.contains("planimeter"), "{arguments:?}");
    }
}

#[test]
fn a_closed_output_pipe_does_not_end_a_run() {
    let folder = Folder::new();
    let words: [&[&str]; 6] = [
        &["list"],
        &["list", "--json"],
        &["--help"],
        &["run", "--help"],
        &[&SHORT[..], &["--dry-run"]].concat(),
        &SHORT,
    ];
    for words in words {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planimeter"));
        command.args(words).current_dir(&folder.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The reader closes the pipe before the first output, or soon after.
        drop(child.stdout.take());
        let result: CommandResult = child.wait_with_output().unwrap().into();
        assert_eq!(result.code, Some(0), "{words:?}: {}", result.errors);
        assert!(
            !result.errors.contains("panic") && !result.errors.contains("pipe"),
            "{}",
            result.errors
        );
    }
    let run = only_run(&folder.0.join("runs"));
    assert_eq!(record(&run)["partial"], false, "the run continued to its end");
    // The same for a reader that closes stderr.
    let mut command = Command::new(env!("CARGO_BIN_EXE_planimeter"));
    command.args(SHORT).current_dir(&folder.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_full_disk_behind_stdout_is_reported() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_planimeter"));
    let result: CommandResult = command.arg("list").stdout(full).output().unwrap().into();
    assert_eq!(result.code, Some(2));
    assert!(
        result.errors.contains("stdout") && result.errors.lines().count() == 1,
        "{}",
        result.errors
    );
}

#[test]
fn lists_contain_all_names_and_can_be_json() {
    let folder = Folder::new();
    let all = json(&planimeter(&folder.0, &["list", "--json"]));
    for (section, name) in [
        ("experiments", "bianco2010/fig3"),
        ("targets", "linux-router"),
        ("links", "memory"),
        ("metrics", "latency_ns_p99"),
    ] {
        let rows = all[section].as_array().unwrap();
        assert!(rows.iter().any(|row| row["name"] == name), "{section} lacks {name}");
        let words = planimeter(&folder.0, &["list", section]).output;
        assert!(words.contains(name), "{words}");
        let only = json(&planimeter(&folder.0, &["list", section, "--json"]));
        assert_eq!(only.as_object().unwrap().len(), 1);
    }
}

#[test]
fn doctor_reports_missing_requirements_and_remedies() {
    let folder = Folder::new();
    let found = json(&planimeter(&folder.0, &["doctor", "--json"]));
    let needs = found["needs"].as_array().unwrap();
    assert!(needs.iter().any(|need| need["name"] == "packet sockets"));
    for need in needs {
        assert!(need["ok"].is_boolean() && !need["said"].as_str().unwrap().is_empty(), "{need}");
    }
    assert!(found["environment"]["cpu_cores"].as_u64().unwrap() > 0);
    assert!(found["noise"].is_null() || found["noise"].as_str().unwrap().contains("noisy"));
    let text = planimeter(&folder.0, &["doctor"]).output;
    assert!(text.contains("packet sockets") && text.contains("\nnoise    "), "{text}");
    assert_eq!(contents(&folder.0), Vec::<String>::new());
}

#[test]
fn json_output_is_the_record() {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &[&SHORT[..], &["--json"]].concat());
    let record = json(&result);
    assert_eq!(record["trials"].as_array().unwrap().len(), 2);
    let run = only_run(&folder.0.join("runs"));
    assert_eq!(record, common::record(&run));
    assert!(result.errors.contains("[2/2]"), "progress is on stderr: {}", result.errors);
}

/// Without a rate limit our data planes receive frames at their own speed, and each received frame
/// counts as sent.
#[test]
fn replay_measures_our_data_planes_without_a_wire() {
    let folder = Folder::new();
    let words = "run forwarding-rate --link replay --on switch --on bridge --on router --json \
                 --set repeats=1 --set seconds=0.02 --set warmup=0.01";
    let record = json(&planimeter(&folder.0, &words.split_whitespace().collect::<Vec<_>>()));
    assert_eq!(record["link"], "replay");
    assert!(record["parameters"]["wire"].as_str().unwrap().contains("in process"));
    let trials = record["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 6, "one flow and many, on each");
    for trial in trials {
        let count = |name: &str| trial[name].as_u64().unwrap();
        assert!(count("frames_offered") > 0 && count("frames_intended") > count("frames_offered"));
        assert_eq!(count("frames_forwarded"), count("frames_offered"), "{trial}");
        assert_eq!(trial["frames_unexplained"], 0, "{trial}");
        assert!(trial["work"]["cycles_busy"].as_u64().unwrap() > 0);
        assert!(count("account_frames_offered") <= trial["work"]["frames"].as_u64().unwrap());
    }
    let limits = record["cells"].as_array().unwrap().iter().filter_map(|it| it["limit"].as_str());
    assert!(limits.clone().count() == 6 && limits.clone().all(|limit| limit == "target"));
    // It takes no more than the offered load.
    let words = "run forwarding-rate --link replay --on bridge --json --set repeats=1 \
                 --set seconds=0.02 --set warmup=0.01 --set capacity=1e6 --set entries=4";
    let record = json(&planimeter(&folder.0, &words.split_whitespace().collect::<Vec<_>>()));
    let trial = &record["trials"][0];
    let count = |name: &str| trial[name].as_u64().unwrap();
    assert_eq!(count("frames_forwarded"), count("frames_offered"), "{trial}");
    assert!((1..=count("frames_intended")).contains(&count("frames_offered")), "{trial}");
}

#[test]
fn a_dry_run_prints_the_plan_and_does_nothing() {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &[&SHORT[..], &["--dry-run"]].concat());
    assert_eq!(result.code, Some(0));
    assert!(result.output.contains("2 trials on direct"), "{}", result.output);
    assert_eq!(contents(&folder.0), Vec::<String>::new());
}

#[test]
fn runs_do_not_overwrite_each_other() {
    let folder = Folder::new();
    planimeter(&folder.0, &SHORT);
    let first = only_run(&folder.0.join("runs"));
    let before = bytes(&first);
    planimeter(&folder.0, &SHORT);
    assert_eq!(fs::read_dir(folder.0.join("runs")).unwrap().count(), 2);
    assert!(bytes(&first) == before, "the first run has changed");
}

#[test]
fn a_complete_run_cannot_be_resumed() {
    let folder = Folder::new();
    planimeter(&folder.0, &SHORT);
    let run = only_run(&folder.0.join("runs"));
    let before = bytes(&run);
    let name = run.to_str().unwrap();
    check_refused(&folder.0, &["run", "--resume", name], 2, &[name, "complete"]);
    assert!(bytes(&run) == before, "the run has changed");
}

/// Tests that the report is a function of the record: after deletion it is rebuilt byte by byte.
#[test]
fn a_report_is_rebuilt_from_stored_data() {
    let folder = Folder::new();
    planimeter(&folder.0, &SHORT);
    let run = only_run(&folder.0.join("runs"));
    let before = bytes(&run);
    let stored = |name: &str| {
        ["record.json", "start.json", "trials.jsonl"].contains(&name)
            || name.starts_with("latency/")
    };
    let made: Vec<&String> =
        before.iter().map(|(name, _)| name).filter(|name| !stored(name)).collect();
    for name in ["report.html", "summary.md"] {
        assert!(made.iter().any(|made| *made == name), "{name} is missing");
    }
    for name in made {
        fs::remove_file(run.join(name)).unwrap();
    }
    let result = planimeter(&folder.0, &["report", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.output.trim_end(), run.join("report.html").to_str().unwrap());
    for ((name, was), (again, is)) in before.iter().zip(&bytes(&run)) {
        assert_eq!(name, again);
        assert!(was == is, "{name} differs");
    }
}

#[test]
fn a_report_over_two_runs_is_written_to_the_given_folder() {
    let folder = Folder::new();
    planimeter(&folder.0, &SHORT);
    planimeter(&folder.0, &[&SHORT[..], &["--seed", "2"]].concat());
    let runs = contents(&folder.0.join("runs"));
    let path = |name: &String| folder.0.join("runs").join(name).display().to_string();
    let runs: Vec<String> = runs.iter().map(path).collect();
    let result = planimeter(&folder.0, &["report", &runs[0], &runs[1], "--output", "both"]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert!(folder.0.join("both/report.html").exists());
}

/// Tests an interrupted run and its resumption.
///
/// The signal is sent before the rest of the progress is read, which exceeds a pipe's capacity. So
/// the run cannot have ended by then, at any speed of the machine.
#[test]
fn an_interrupted_run_keeps_its_results_and_resumes() {
    const TRIALS: usize = 800;
    let folder = Folder::new();
    let set = ["simulate=true", "seconds=0.01", "warmup=0", "load=1", "repeats=800"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_planimeter"))
        .args(["run", "bianco2010/fig3", "--on", "direct"])
        .args(set.iter().flat_map(|assignment| ["--set", assignment]))
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("[1/800]"), "{line}");
    assert!(
        line.len() * TRIALS > (1 << 16) + (1 << 13),
        "the complete progress could fit into the pipe"
    );
    // Like timeout(1), which signals the process and its group.
    interrupt(child.id());
    interrupt(child.id());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("--resume"), "{rest}");

    let run = only_run(&folder.0.join("runs"));
    let partial = record(&run);
    let kept = partial["trials"].as_array().unwrap().clone();
    assert_eq!(partial["partial"], true);
    assert!((1..TRIALS).contains(&kept.len()), "{} trials", kept.len());
    assert!(fs::read_to_string(run.join("report.html")).unwrap().contains("partial"));

    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(only_run(&folder.0.join("runs")), run, "the run resumes in the same folder");
    let whole = record(&run);
    let trials = whole["trials"].as_array().unwrap();
    assert_eq!((whole["partial"].as_bool(), trials.len()), (Some(false), TRIALS));
    assert!(trials.starts_with(&kept), "stored trials have changed");
    let ids: Vec<u64> = trials.iter().map(|trial| trial["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=TRIALS as u64).collect::<Vec<u64>>());
}

#[test]
fn a_trial_with_a_truncated_line_is_measured_again() {
    let folder = Folder::new();
    planimeter(&folder.0, &SHORT);
    let run = only_run(&folder.0.join("runs"));
    let whole = record(&run);
    // As left by a crash within the second trial's line.
    let lines = fs::read_to_string(run.join("trials.jsonl")).unwrap();
    let cut = lines.find('\n').unwrap() + 100;
    fs::write(run.join("trials.jsonl"), &lines[..cut]).unwrap();
    let mut crashed = whole.clone();
    crashed["partial"] = true.into();
    crashed["trials"] = Value::Array(Vec::new());
    fs::write(run.join("record.json"), crashed.to_string()).unwrap();
    let result = planimeter(&folder.0, &["report", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let summary = fs::read_to_string(run.join("summary.md")).unwrap();
    assert!(summary.contains("in 1 trial of"), "the summary counts the stored trial: {summary}");
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(record(&run)["cells"], whole["cells"]);
    assert_eq!(fs::read_to_string(run.join("trials.jsonl")).unwrap().lines().count(), 2);
}

#[test]
fn a_resumed_run_preserves_arguments_with_spaces() {
    let folder = Folder::new();
    let mut arguments = SHORT.to_vec();
    arguments[9] = "load=1, 2";
    planimeter(&folder.0, &arguments);
    let run = only_run(&folder.0.join("runs"));
    let mut crashed = record(&run);
    crashed["partial"] = true.into();
    fs::write(run.join("record.json"), crashed.to_string()).unwrap();
    let result = planimeter(&folder.0, &["run", "--resume", run.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(record(&run)["trials"].as_array().unwrap().len(), 2);
}

/// Returns the only output of a command, a JSON document.
fn json(result: &CommandResult) -> Value {
    assert_eq!(result.code, Some(0), "{}", result.errors);
    serde_json::from_str(&result.output).expect("stdout is one JSON document")
}
