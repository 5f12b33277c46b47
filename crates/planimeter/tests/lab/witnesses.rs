//! Tests of an external SNMP agent of targets on a real kernel: it counts every frame sent and
//! received, in either version; a missing agent is a warning.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testbed::requirement::{self, Requirement};

use super::common::{only_run, record};
use super::{Place, System, lab_needs};

/// Secrets that only the credentials file may contain.
const SECRETS: [&str; 3] = ["correct horse", "battery staple", "hidden word"];

const CREDENTIALS: [(&str, &str); 3] = [
    (
        "v3 authPriv",
        "user = \"watcher\"\nauth = \"sha512\"\nauth_password = \"correct horse\"\n\
         privacy_password = \"battery staple\"\n",
    ),
    ("v3 authNoPriv", "user = \"watcher\"\nauth = \"sha1\"\nauth_password = \"correct horse\"\n"),
    ("v2c", "community = \"hidden word\"\n"),
];

/// Verifies the agent, in addition to the lab's requirements.
pub fn agent_needs() -> Result<(), Requirement> {
    lab_needs()?;
    requirement::tool("snmpd", "snmpd").map(drop)
}

/// Checks that no file below a folder contains a secret.
fn assert_no_secret(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_secret(&path);
        } else {
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let reported = SECRETS.iter().find(|secret| text.contains(**secret));
            assert_eq!(reported, None, "{}", path.display());
        }
    }
}

/// Measures with an SNMP agent; returns the agent's counters of each trial.
fn witnesses(place: &Place, set: &[&str]) -> Vec<Value> {
    let before = System::now();
    let runs = place.path().join("runs");
    if runs.exists() {
        fs::remove_dir_all(&runs).unwrap();
    }
    let mut arguments = vec!["run", "forwarding-rate", "--effort", "quick", "--link", "veth"];
    arguments.extend(["--on", "switch", "--on", "linux-bridge"]);
    let short =
        ["seconds=0.1", "warmup=0", "repeats=1", "load=0.2", "frame=64", "snmp_settle_s=60"];
    arguments.extend(short.iter().chain(set).flat_map(|it| ["--set", it]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    assert_no_secret(&runs);
    let text = format!("{}{}", result.output, result.errors);
    assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
    let record = record(&only_run(&runs));
    let trials = record["trials"].as_array().unwrap();
    assert!(trials.len() >= 2, "{record}");
    trials.iter().map(|trial| trial["snmp"].clone()).collect()
}

/// Tests an agent that caches its counters for seconds, which `snmp_settle_s` waits for.
pub fn an_external_snmp_agent_counts_every_frame() {
    let place = Place::new();
    for (level, text) in CREDENTIALS {
        fs::write(place.path().join("agent.toml"), text).unwrap();
        let set = ["snmp=lab", "snmp_credentials=agent.toml", "snmp_oids=1.3.6.1.2.1.1.3.0"];
        for counts in witnesses(&place, &set) {
            assert_eq!(counts["agent"], format!("udp:127.0.0.1:161 ({level})"));
            assert_eq!(counts["problems"], Value::Null, "{counts}");
            assert!(counts["frames_sent"].as_u64().unwrap() > 0, "{counts}");
            assert_eq!(counts["frames_in"], counts["frames_sent"], "{counts}");
            assert_eq!(counts["frames_out"], counts["frames_received"], "{counts}");
            let time = &counts["values"][0];
            assert!(time["after"].as_u64() >= time["before"].as_u64(), "{counts}");
        }
    }
}

/// Tests an address without an agent, and an agent that does not reply to unknown credentials.
pub fn a_missing_snmp_agent_is_a_warning() {
    let place = Place::new();
    for counts in witnesses(&place, &["snmp=127.0.0.1:9", "snmp_settle_s=0"]) {
        assert_eq!(counts["problems"][0], "connection refused: no agent listens there", "{counts}");
        assert_eq!(counts["frames_in"], Value::Null, "{counts}");
    }
}

/// Tests two kinds of switches whose control channel uses the loopback interface of their
/// namespace: each message has a kernel timestamp, and the capture file contains OpenFlow.
pub fn control_channels_are_captured() {
    let place = Place::new();
    let before = System::now();
    let mut arguments = vec!["run", "echo-delay", "--effort", "quick", "--link", "veth"];
    arguments.extend(["--on", "switch", "--on", "ovs"]);
    let set = ["repeats=1", "control_capture=pcap"];
    arguments.extend(set.iter().flat_map(|it| ["--set", it]));
    let result = place.planimeter(&arguments);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    place.assert_clean(&before);
    let run = only_run(&place.path().join("runs"));
    let record = record(&run);
    let trials = record["trials"].as_array().unwrap();
    assert!(trials.len() >= 2, "{record}");
    for trial in trials {
        let module = &trial["module"];
        let wire = &module["wire"];
        assert_eq!((&wire["stamps"], &wire["unknown"]), (&"kernel".into(), &0.into()), "{wire}");
        assert_eq!((&wire["gaps"], &wire["why"]), (&0.into(), &Value::Null), "{wire}");
        assert_eq!(wire["received"]["count"], module["messages_received"], "{module}");
        assert!(wire["sent"]["count"].as_u64().unwrap() > 0, "{wire}");
        let file = run.join(wire["file"].as_str().unwrap());
        let bytes = fs::read(&file).unwrap();
        let mut reader = netio::capture::CaptureReader::new(&bytes[..]);
        let mut frames = 0;
        while let Some(event) = reader.next_event().unwrap() {
            frames += u64::from(matches!(event, packet::capture::Event::Frame(_)));
        }
        // Hellos, requests and replies. A segment may contain several of them.
        assert!(frames > 10, "{} has {frames} packets", file.display());
    }
}
