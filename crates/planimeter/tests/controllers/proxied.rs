//! Tests of the proxy between external controllers and switches: they work as without it, and their
//! messages are counted.

use std::time::Duration;

use serde_json::Value;
use testbed::peer::openvswitch::OpenVswitch;
use testbed::peer::{ControlInterface, Peer};
use testbed::topology::{Lab, Wiring};

use crate::common::{Folder, command, only_run};
use crate::rig::{Program, Rig};
use crate::{faucet, learning};

/// The proxy's port for the switch.
const PORT: u16 = 6654;

fn proxy(rig: &Rig, arguments: &[&str]) -> Program {
    let words = [&["proxy", "--json", "--output", "runs"], arguments].concat();
    rig.start("proxy", command(rig.path(), &words))
}

/// Stops the proxy with Ctrl-C; returns its output lines.
fn lines(rig: &Rig, proxy: Program) -> Vec<Value> {
    let log = rig.path().join("proxy.log");
    assert_eq!(proxy.end(), Some(0));
    assert!(only_run(&rig.path().join("runs")).join("report.html").exists());
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn values(lines: &[Value]) -> &Value {
    let summary = lines.last().unwrap();
    assert_eq!(summary["event"], "summary", "{summary}");
    &summary["switches"][0]["values"]
}

/// Tests that Faucet configures our switch through the proxy, and that hosts reach each other.
pub fn faucet_and_ours() {
    let rig = Rig::new(4);
    let mut faucet = faucet::start(&rig, "Open vSwitch");
    let listen = format!("ptcp:{PORT}:127.0.0.1");
    let mut proxy = proxy(&rig, &["--listen", &listen, "--controller", "tcp:127.0.0.1:6653"]);
    rig.wait_listening(PORT, &mut proxy);
    let address = format!("tcp:127.0.0.1:{PORT}");
    let arguments = ["--controller", &address, "--openflow", "1.3", "--datapath-id", "0xc0ffee"];
    let switch = rig.switch(&arguments);
    let log = rig.path().join("faucet.txt");
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    faucet.wait_until("it configures the switch", |_| text().contains("Port 4 (4) configured"));
    rig.hosts[0].ask(&rig.hosts[1], 7000);
    rig.hosts[2].ask(&rig.hosts[3], 7000);
    assert!(!text().contains("OFPErrorMsg"), "{}", text());
    let lines = lines(&rig, proxy);
    let summary = lines.last().unwrap();
    assert_eq!(summary["switches"][0]["switch"], "datapath 0000000000c0ffee", "{summary}");
    let values = values(&lines);
    for name in ["barrier_ns_p50", "update_ns_p50", "features_ns_p50", "port_desc_ns_p50"] {
        assert!(values[name].as_f64().is_some_and(|ns| ns > 0.0), "{name} of {values}");
    }
    assert!(values["flow_mod_messages"].as_f64().is_some_and(|it| it > 10.0), "{values}");
    assert!(values["packet_in_messages"].as_f64().is_some_and(|it| it > 0.0), "{values}");
    assert_eq!(
        (&values["errors_count"], &values["not_understood_messages"]),
        (&0.0.into(), &0.0.into())
    );
    assert!(lines.iter().any(|line| line["event"] == "updated"), "{lines:?}");
    assert_eq!(switch.end(), Some(0));
}

/// An os-ken program configures Open vSwitch; the proxy is connected to both.
pub fn os_ken_and_open_vswitch() {
    let rig = Rig::new(1);
    let mut controller = learning::start(&rig, "learning_1_3.py");
    let folder = Folder::new();
    let lab = Lab::open(&folder.0).unwrap();
    let wiring = Wiring { ports: 2, ..Wiring::of_machine().unwrap() };
    let site = lab.site("ovs", &wiring).unwrap();
    let mut peer = OpenVswitch::default();
    peer.start(&site).unwrap();
    let ready = peer.ready(Duration::from_secs(10)).unwrap();
    let ControlInterface::OpenFlow { channel } = ready else {
        panic!("the peer does not use OpenFlow")
    };
    let proxy = proxy(&rig, &["--switch", &channel, "--controller", "tcp:127.0.0.1:6653"]);
    controller.wait_for("ports [1, 2]");
    let lines = lines(&rig, proxy);
    let values = values(&lines);
    assert_eq!(values["barrier_answers_count"], 1.0, "{values}");
    assert_eq!(values["flow_mods_before_barrier_count_mean"], 2.0, "{values}");
    // os-ken also requests the ports.
    assert_eq!(values["port_desc_answers_count"], 2.0, "{values}");
    assert_eq!(
        (&values["errors_count"], &values["not_understood_messages"]),
        (&0.0.into(), &0.0.into())
    );
    peer.stop().unwrap();
}
