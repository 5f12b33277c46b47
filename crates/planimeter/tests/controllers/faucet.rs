//! Tests with Faucet and its pipeline of tables: hosts in a VLAN reach each other and no others,
//! and frames that the access list denies are dropped.

use std::process::Command;

use crate::python;
use crate::rig::{Program, Rig};

const PORT: u16 = 6653;

/// TCP or UDP port that the access list denies at port 1.
const REFUSED: u16 = 5555;
const OPEN: u16 = 7000;

/// Starts Faucet for a kind of hardware.
pub fn start(rig: &Rig, hardware: &str) -> Program {
    let path = |name: &str| rig.path().join(name);
    let config = include_str!("faucet.yaml").replace("HARDWARE", hardware);
    std::fs::write(path("faucet.yaml"), config).unwrap();
    let mut command = Command::new(python("faucet").unwrap().join("faucet"));
    command.args(["--ryu-ofp-listen-host=127.0.0.1", "--ryu-config-file=/dev/null"]);
    command.arg(format!("--ryu-ofp-tcp-listen-port={PORT}"));
    command.env("FAUCET_CONFIG", path("faucet.yaml")).env("FAUCET_LOG", path("faucet.txt"));
    command.env("FAUCET_EXCEPTION_LOG", path("exception.txt")).env("FAUCET_EVENT_SOCK", "0");
    command.env("FAUCET_PROMETHEUS_ADDR", "127.0.0.1");
    let mut faucet = rig.start("faucet", command);
    rig.wait_listening(PORT, &mut faucet);
    faucet
}

/// Runs Faucet for a kind of hardware: "Open vSwitch" accepts any rule in any table; "GenericTFM"
/// is configured by table features.
fn check(hardware: &str) {
    let rig = Rig::new(4);
    let mut faucet = start(&rig, hardware);
    let address = format!("tcp:127.0.0.1:{PORT}");
    let arguments = ["--controller", &address, "--openflow", "1.3", "--datapath-id", "0xc0ffee"];
    let switch = rig.switch(&arguments);
    let log = rig.path().join("faucet.txt");
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    faucet.wait_until("it configures the switch", |_| text().contains("Port 4 (4) configured"));
    let [one, two, three, four] = &rig.hosts[..] else { panic!("four hosts") };
    for (asker, asked) in [(one, two), (two, one), (three, four), (four, three)] {
        asker.ask(asked, OPEN);
    }
    // The list applies to frames from port 1, not to replies of host 2.
    assert_eq!(one.is_refused(two, REFUSED, OPEN), 0, "the access list permits it");
    two.ask(one, REFUSED);
    let came = three.hears_broadcast_of(one, || one.ask(two, OPEN), || four.ask(three, OPEN));
    assert_eq!(came, 0, "a broadcast has left its VLAN");
    let text = text();
    let exceptions = std::fs::read_to_string(rig.path().join("exception.txt")).unwrap_or_default();
    assert!(!text.contains("OFPErrorMsg") && exceptions.is_empty(), "{text}\n{exceptions}");
    assert_eq!(switch.end(), Some(0));
}

pub fn faucet_forwards_and_filters() {
    check("Open vSwitch");
}

pub fn sets_table_features() {
    check("GenericTFM");
}
