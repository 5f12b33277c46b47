//! Tests of learning controllers: after learning, every host reaches every other through the switch
//! alone.

use std::path::Path;
use std::process::Command;

use crate::python;
use crate::rig::{Program, Rig, show};

const PORT: u16 = 6653;

/// Checks that every host reaches every other.
fn all_reach_all(rig: &Rig) {
    for one in &rig.hosts {
        for other in rig.hosts.iter().filter(|other| other.number != one.number) {
            one.ask(other, 7000);
        }
    }
}

/// Starts one of the os-ken programs in this folder.
pub fn start(rig: &Rig, program: &str) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controllers").join(program);
    let mut command = Command::new(python("os-ken").unwrap().join("python"));
    command.args([source.as_os_str(), PORT.to_string().as_ref()]);
    let mut controller = rig.start("controller", command);
    rig.wait_listening(PORT, &mut controller);
    controller
}

/// Starts one of the os-ken programs in this folder, and our switch with `version`.
fn learn(program: &str, version: &str) -> (Rig, Program, Program) {
    let rig = Rig::new(3);
    let mut controller = start(&rig, program);
    let address = format!("tcp:127.0.0.1:{PORT}");
    let arguments = ["--controller", &address, "--openflow", version, "--datapath-id", "0xc0ffee"];
    let switch = rig.switch(&arguments);
    controller.wait_for("switch 0xc0ffee");
    all_reach_all(&rig);
    for host in &rig.hosts {
        controller.wait_for(&format!("learned {} at {}", show(host.mac()), host.number));
    }
    assert!(!controller.output().contains("error"), "{}", controller.output());
    (rig, controller, switch)
}

pub fn os_ken_in_1_0() {
    let (rig, controller, switch) = learn("learning_1_0.py", "1.0");
    assert!(controller.output().contains("ports [1, 2, 3"), "{}", controller.output());
    let flows = controller.output().matches("flow to").count();
    assert!(flows >= 6, "one for each pair: {}", controller.output());
    // Learned flows need no controller.
    all_reach_all(&rig);
    assert_eq!(controller.output().matches("flow to").count(), flows);
    assert_eq!(switch.end(), Some(0));
}

pub fn os_ken_in_1_3() {
    let (rig, controller, switch) = learn("learning_1_3.py", "1.3");
    assert!(controller.output().contains("ports [1, 2, 3]"), "{}", controller.output());
    let text = controller.output();
    all_reach_all(&rig);
    assert_eq!(controller.output(), text, "learned flows need no controller");
    assert_eq!(switch.end(), Some(0));
}

pub fn ovs_testcontroller() {
    for version in ["OpenFlow10", "OpenFlow13"] {
        let rig = Rig::new(3);
        let mut command = Command::new("ovs-testcontroller");
        command.args(["-O", version, "-v", "--unixctl=none", "ptcp:6653:127.0.0.1"]);
        command.env("OVS_RUNDIR", rig.path()).env("OVS_LOGDIR", rig.path());
        let mut controller = rig.start("controller", command);
        rig.wait_listening(PORT, &mut controller);
        let ours = if version == "OpenFlow10" { "1.0" } else { "1.3" };
        let address = format!("tcp:127.0.0.1:{PORT}");
        let switch = rig.switch(&["--controller", &address, "--openflow", ours]);
        all_reach_all(&rig);
        controller.wait_for("OFPT_FLOW_MOD");
        let text = controller.output();
        assert!(!text.contains("OFPT_ERROR") && !text.contains("decode error"), "{text}");
        assert_eq!(switch.end(), Some(0));
    }
}
