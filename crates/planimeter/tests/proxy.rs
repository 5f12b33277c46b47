//! Tests of `planimeter proxy` between our controller and our switch, and of its messages for wrong
//! command lines.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use channel::{Listener, Url};
use common::{Folder, command, interrupt, only_run, planimeter};
use serde_json::Value;
use tester::controller::{Controller, RealTime, Settings};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn controller_and_switch_work_through_the_proxy_and_a_run_is_stored() {
    let folder = Folder::new();
    let mut listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let there = listener.address_to_connect().to_string();
    let words = ["proxy", "--listen", "punix:p.sock", "--controller", &there, "--json"];
    let mut proxy = command(&folder.0, &words);
    let proxy = proxy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut proxy = Running(proxy);
    let mut reported = BufReader::new(proxy.0.stderr.take().unwrap());
    let mut line = String::new();
    reported.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening for switches on punix:p.sock"), "{line}");
    // Such a port needs no peer.
    let port = "1=memif:port.sock,id=1,role=server";
    let words = ["switch", "--port", port, "--controller", "unix:p.sock", "--datapath-id", "0xbee"];
    let mut switch = command(&folder.0, &words);
    let _switch = Running(switch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut controller = Controller::accept(&mut listener, Settings::new()).unwrap();
    let mut meanwhile = RealTime::default();
    for _ in 0..20 {
        controller.barrier(&mut meanwhile).unwrap();
    }
    drop(controller);
    interrupt(proxy.0.id());
    let mut output = String::new();
    proxy.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(proxy.0.wait().unwrap().code(), Some(0), "{output}");
    let lines: Vec<Value> = output.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let of = |event: &str, what: &str| {
        lines.iter().filter(|it| it["event"] == event && it["what"] == what).count()
    };
    assert_eq!((of("answered", "barrier_request"), of("answered", "features_request")), (20, 1));
    let summary = lines.last().unwrap();
    assert_eq!(summary["switches"][0]["switch"], "datapath 0000000000000bee", "{summary}");
    assert_eq!(summary["switches"][0]["values"]["barrier_answers_count"], 20.0, "{summary}");
    assert!(summary["added_ns"].is_number() && summary["lines_left_out"] == 0, "{summary}");
    let run = only_run(&folder.0.join("runs"));
    let again = planimeter(&folder.0, &["report", run.to_str().unwrap()]);
    assert_eq!(again.code, Some(0), "{again:?}");
    let page = std::fs::read_to_string(run.join("summary.md")).unwrap();
    assert!(page.contains("median barrier"), "{page}");
}

fn check(arguments: &[&str], word: &str) {
    let folder = Folder::new();
    let result = planimeter(&folder.0, &[&["proxy"], arguments].concat());
    let is_one_line = result.errors.lines().count() == 1;
    assert!(result.code == Some(2) && result.errors.contains(word) && is_one_line, "{result:?}");
}

#[test]
fn two_sides_with_their_directions_are_required() {
    check(&[], "two sides are required");
    check(&["--listen", "ptcp:0"], "two sides are required");
    check(
        &["--listen", "tcp:127.0.0.1:1", "--switch", "tcp:127.0.0.1:2"],
        "an address to connect to",
    );
    check(&["--listen", "ptcp:0", "--switch", "x:1"], "--switch: invalid address");
    let three = ["--listen", "ptcp:0", "--switch", "ptcp:0", "--controller", "ptcp:0"];
    check(&three, "cannot be combined");
    check(&["--listen", "pssl:0", "--switch", "tcp:127.0.0.1:2"], "certificate");
    let seconds = ["--listen", "ptcp:0", "--switch", "tcp:127.0.0.1:2", "--duration=-1"];
    check(&seconds, "--duration");
    let listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
    let Url::PassiveTcp(taken) = listener.address() else { panic!() };
    let taken = format!("ptcp:{}:127.0.0.1", taken.port());
    check(&["--listen", &taken, "--controller", "tcp:127.0.0.1:2"], "in use by another process");
}

#[test]
fn a_model_is_fitted_only_to_runs_with_modules() {
    let folder = Folder::new();
    let none = planimeter(&folder.0, &["model", "fit", "nowhere"]);
    assert!(none.code == Some(2) && none.errors.contains("use the folder of a run"), "{none:?}");
    let what = planimeter(&folder.0, &["model", "fit", "--what"]);
    assert!(
        what.output.contains("planimeter run rule-activation --set command=modify"),
        "{what:?}"
    );
    let set = ["--set", "simulate=true", "--set", "repeats=1", "--set", "seconds=0.01"];
    let run = |experiment: &str, set: &[&str]| {
        let out =
            ["--link", "memory", "--output", experiment, "--effort", "quick", "--on", "switch"];
        let result = planimeter(&folder.0, &[&["run", experiment], &out[..], set].concat());
        assert_eq!(result.code, Some(0), "{result:?}");
        only_run(&folder.0.join(experiment)).to_str().unwrap().to_string()
    };
    let plain = run("forwarding-rate", &set);
    let result = planimeter(&folder.0, &["model", "fit", &plain]);
    assert!(
        result.code == Some(2) && result.errors.contains("no results of measurement modules"),
        "{result:?}"
    );
    let small =
        ["--set", "rules_count=10,20", "--set", "probes_pps=10000", "--set", "probes=before"];
    let run = run("rule-activation", &[&set[..4], &small].concat());
    let fitted = planimeter(&folder.0, &["model", "fit", &run, "--output", "m.toml"]);
    assert_eq!(fitted.code, Some(0), "{fitted:?}");
    assert!(fitted.errors.contains("--on switch:model=./m.toml"), "{fitted:?}");
    assert!(fitted.errors.contains("is assumed (hint: run "), "{fitted:?}");
    let text = std::fs::read_to_string(folder.0.join("m.toml")).unwrap();
    assert!(text.contains("answers = { value = \"acting\", source = \"measured: "), "{text}");
    let twice = planimeter(&folder.0, &["model", "fit", &run, "--output", "m.toml"]);
    assert!(twice.code == Some(2) && twice.errors.contains("cannot write m.toml"), "{twice:?}");
    let other = planimeter(&folder.0, &["model", "fit", &run, "--target", "ovs"]);
    assert!(other.code == Some(2) && other.errors.contains("use one of switch"), "{other:?}");
}
