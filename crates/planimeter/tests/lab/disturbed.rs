//! Tests of failures of interfaces and targets during a trial. The failure is named, the run ends
//! in time, and earlier results are stored and marked.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testbed::Namespace;
use testbed::netlink::link::BridgeSettings;
use testbed::veth::{Cable, EndSettings};

use super::common::{CommandResult, contents, only_run, record, signal};
use super::{PATIENCE, Place, System, in_time};

/// Returns two cables; the tester has the ends 1 and 3.
fn cables(namespace: &Namespace) -> [Cable; 2] {
    let end = |number: u8| EndSettings {
        namespace: namespace.clone(),
        name: format!("end{number}"),
        mac: [2, 0, 0, 0, 0, number],
        threaded: None,
    };
    [1, 3].map(|at| Cable::lay(&end(at), &end(at + 1), 1_500).unwrap())
}

/// Sends a stream from the first port to the second for this time.
fn generate(place: &Place, namespace: &Namespace, seconds: &str) -> Child {
    let stream = "[[stream]]\nid = 1\nfrom = 1\nto = 2\nframe_bytes = 64\nrate_pps = 2_000.0\n\
                  mac_source = \"02:00:00:00:00:01\"\nmac_destination = \"02:00:00:00:00:03\"\n\
                  ip_source = \"10.0.0.1\"\nip_destination = \"10.0.1.1\"\n";
    fs::write(place.path().join("stream.toml"), stream).unwrap();
    let ports = ["--port", "afpacket:end1", "--port", "afpacket:end3"];
    let words = ["--stream", "stream.toml", "--duration", seconds];
    let mut command = place.command(&[&["generate"][..], &ports, &words].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    namespace.run(|| command.spawn()).unwrap().unwrap()
}

/// Returns the output of a process that must end in time.
fn ended(mut child: Child) -> CommandResult {
    let has_ended = in_time(|| child.try_wait().unwrap().is_some());
    if !has_ended {
        child.kill().unwrap();
    }
    let result: CommandResult = child.wait_with_output().unwrap().into();
    assert!(has_ended, "it did not end within {PATIENCE:?}: {}", result.errors);
    result
}

pub fn an_interface_that_goes_down_while_sending_is_reported() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let cables = cables(&namespace);
    cables.iter().for_each(|cable| cable.wait_carrying().unwrap());
    for number in [1, 3] {
        let child = generate(&place, &namespace, "600");
        let mut netlink = namespace.netlink().unwrap();
        let mut sent = || netlink.link("end2").unwrap().counters.received;
        let before = sent();
        assert!(in_time(|| sent() > before + 100), "nothing is sent");
        let index = netlink.link(&format!("end{number}")).unwrap().index;
        netlink.link_down(index).unwrap();
        let result = ended(child);
        assert_eq!(result.code, Some(2), "{result:?}");
        let line = result.errors.lines().last().unwrap_or_default();
        assert!(line.contains(&format!("end{number}")) && line.contains("down"), "{line}");
        assert!(
            result.output.contains("stream 1:") && !result.output.contains(" 0 sent"),
            "{result:?}"
        );
        netlink.link_up(index).unwrap();
        cables.iter().for_each(|cable| cable.wait_carrying().unwrap());
    }
}

/// Tests a bridge with a loop behind it, which forwards every frame endlessly.
pub fn a_target_that_floods_is_handled() {
    let place = Place::new();
    let namespace = Namespace::create().unwrap();
    let cables = cables(&namespace);
    let end = |name: &str, last: u8| EndSettings {
        namespace: namespace.clone(),
        name: name.into(),
        mac: [2, 0, 0, 0, 1, last],
        threaded: None,
    };
    let knot = Cable::lay(&end("loop1", 1), &end("loop2", 2), 1_500).unwrap();
    let mut netlink = namespace.netlink().unwrap();
    netlink.bridge_add("knot", &BridgeSettings { ageing: Duration::ZERO }).unwrap();
    let bridge = netlink.link("knot").unwrap().index;
    let joined = [&cables[0].ends[1], &cables[1].ends[1], &knot.ends[0], &knot.ends[1]];
    for port in joined {
        netlink.bridge_join(port.index, bridge).unwrap();
    }
    netlink.link_up(bridge).unwrap();
    cables.iter().chain([&knot]).for_each(|cable| cable.wait_carrying().unwrap());
    let result = ended(generate(&place, &namespace, "1"));
    assert_eq!(result.code, Some(0), "{}", result.errors);
    // Two thousand frames were sent, and far more returned at either port.
    let line = result.output.lines().find(|line| line.starts_with("stream 1:")).unwrap();
    assert!(line.contains("2000 frames intended"), "{line}");
    let came = |line: &str| -> u64 {
        let after = line.split(" sent, ").nth(1).unwrap();
        after.split(' ').next().unwrap().parse().unwrap()
    };
    let ports: Vec<u64> =
        result.output.lines().filter(|line| line.starts_with("port ")).map(came).collect();
    assert!(ports.iter().any(|&frames| frames > 20_000), "{}", result.output);
}

/// Tests that the drain is extended for a target that gets no core for longer than a short trial's
/// drain: no frame is missing.
pub fn the_drain_is_extended_for_a_stalled_target() {
    let place = Place::new();
    let before = System::now();
    let words = ["run", "latency", "--on", "bridge", "--link", "veth", "--effort", "quick"];
    let set = ["seconds=0.05", "load=5", "frame=64", "repeats=8"];
    let set = set.iter().flat_map(|one| ["--set", one]);
    let words: Vec<&str> = words.into_iter().chain(set).collect();
    let mut command = place.command(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let bridge = || place.processes().find(|(_, line)| line.contains("planimeter bridge"));
    let mut halts = 0;
    while child.try_wait().unwrap().is_none() {
        if let Some((pid, _)) = bridge() {
            signal(pid, "STOP");
            std::thread::sleep(Duration::from_millis(200));
            halts += usize::from(signal(pid, "CONT"));
        }
        std::thread::sleep(Duration::from_millis(150));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(halts > 5, "{halts}");
    let record = record(&only_run(&place.path().join("runs")));
    let trials = record["trials"].as_array().unwrap();
    trials.iter().for_each(|trial| assert_eq!(trial["frames_unexplained"], 0, "{trial}"));
    let waited = |trial: &&Value| trial["duration_ns_drain"].as_u64() > Some(50_000_000);
    assert!(trials.iter().filter(waited).count() > 0, "no trial was extended");
    place.assert_clean(&before);
}

/// Takes down an interface of the tester's kind in the namespaces that a process holds open;
/// returns its name.
fn take_down(pid: u32) -> Option<String> {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    for name in contents(&folder) {
        let path = folder.join(&name);
        let is_net = fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with("net:["));
        if !is_net {
            continue;
        }
        let inside = |words: &[&str]| {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net={}", path.display())).arg("ip").args(words);
            command.output().unwrap()
        };
        let links = String::from_utf8(inside(&["-o", "link"]).stdout).unwrap();
        let names = links.lines().filter_map(|line| line.split([':', '@']).nth(1));
        let found = names.map(str::trim).find(|name| name.starts_with("lbridge"));
        if let Some(found) = found {
            assert!(inside(&["link", "set", found, "down"]).status.success());
            return Some(found.to_string());
        }
    }
    None
}

pub fn an_interface_that_goes_down_during_a_run_is_reported() {
    let place = Place::new();
    let before = System::now();
    let words = ["run", "forwarding-rate", "--on", "linux-bridge", "--link", "veth"];
    let set = ["--set", "seconds=0.1", "--set", "repeats=1000", "--set", "frame=64"];
    let mut command = place.command(&[&words[..], &set].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let runs = place.path().join("runs");
    let trials = || {
        let run = runs.is_dir().then(|| contents(&runs)).filter(|names| names.len() == 1)?;
        fs::read_to_string(runs.join(&run[0]).join("trials.jsonl")).ok()
    };
    // The tester measures itself first, which takes longer on a busy machine.
    let has_measured = || trials().is_some_and(|text| text.lines().count() > 1);
    assert!((0..4).any(|_| in_time(has_measured)), "no trial has ended");
    let name = take_down(child.id()).expect("the tester has an interface to the bridge");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let code = child.wait().unwrap().code();
    let line = errors.lines().last().unwrap_or_default();
    assert!(code.is_some_and(|code| code != 0), "{code:?}: {errors}");
    // Between two trials the bridge reports it, for its own end of the cable.
    let other_end = format!("port p{} does not forward", name.rsplit('-').next().unwrap());
    let is_between = errors.contains(&other_end);
    assert!((is_between || errors.contains(&name)) && errors.contains("down"), "{name}: {line}");
    place.assert_clean(&before);
    let record = record(&only_run(&runs));
    assert_eq!(record["partial"], true);
    let trials = record["trials"].as_array().unwrap();
    assert!(trials.len() > 1, "earlier results are lost");
    // If it went down during a trial, the trial has the counters until then.
    let is_cut = |trial: &&Value| trial["flags"].to_string().contains("interrupted");
    let cut: Vec<&Value> = trials.iter().filter(is_cut).collect();
    assert_eq!(cut.len(), usize::from(line.contains("port ") && !is_between), "{line}");
    for trial in cut {
        // It may have gone down before the first frame left.
        let has_sent = |port: &Value| port["frames_sent"].as_u64() > Some(0);
        let was_sending = trial["ports"].as_array().unwrap().iter().any(has_sent);
        let offered = trial["account_frames_offered"].as_u64();
        assert_eq!(offered > Some(0), was_sending, "{trial}");
        assert!(trial["duration_ns_intended"].as_u64() < Some(100_000_000), "{trial}");
    }
    assert!(only_run(&runs).join("report.html").exists());
}
