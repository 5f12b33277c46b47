//! Tests of Open vSwitch as the target of Python modules and of gates.

use std::fs;
use std::path::Path;

use testbed::peer::openvswitch::check_prefix;
use testbed::requirement::Requirement;

use super::common::{Folder, command, contents, record};
use super::ovs_needs;

/// Where distributions install Open vSwitch.
const PREFIX: &str = "/usr";

/// Verifies Open vSwitch below a prefix.
pub fn prefix_needs() -> Result<(), Requirement> {
    ovs_needs()?;
    let missing = Requirement::File { name: "vswitch.ovsschema", package: "openvswitch-common" };
    check_prefix(Path::new(PREFIX)).map_err(|_| missing)
}

/// Tests that frames without a matching rule reach a module as packet-ins, which Open vSwitch sends
/// only after a SET_CONFIG.
pub fn a_python_module_receives_packet_ins_of_open_vswitch() {
    let folder = Folder::new();
    let script = "from planimeter import *\n\n\
        class Mine(Module):\n    \"\"\"Packet-ins.\"\"\"\n\
        \x20   def needs(self):\n        return Needs(limit_s=20)\n\
        \x20   def start(self, facts):\n\
        \x20       self.packets = 0\n\
        \x20       self.prepare(id=1, frame_bytes=200, rate_pps=100)\n\
        \x20       rule = {'type': 'flow_mod', 'priority': 0,\n\
        \x20               'actions': [{'output': {'port': 'controller', 'max_len': 65535}}]}\n\
        \x20       self.barrier = self.send({'type': 'flow_mod', 'command': 'delete', 'table': 'all'}, rule, 'barrier_request')\n\
        \x20   def message(self, message):\n\
        \x20       if message.kind == 'barrier_reply' and message.request == self.barrier:\n\
        \x20           self.begin(1, frames=20)\n\
        \x20       if message.kind == 'packet_in' and message.probe is not None:\n\
        \x20           self.packets += 1\n\
        \x20           if self.packets == 20:\n\
        \x20               self.end()\n\
        \x20   def finish(self, ended):\n\
        \x20       self.report('packet_ins_count', self.packets, 0)\n";
    fs::write(folder.0.join("mine.py"), script).unwrap();
    let words = "run mine.py --on ovs --link veth --effort quick --set repeats=1";
    let done = command(&folder.0, &words.split_whitespace().collect::<Vec<_>>()).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{errors}");
    let runs = folder.0.join("runs");
    let found = record(&runs.join(&contents(&runs)[0]));
    let module = &found["trials"][0]["module"];
    assert_eq!(module["ended"], "completed", "{module}{errors}");
    let counted = module["measured"].as_array().unwrap().iter();
    let count = counted.filter(|it| it["metric"] == "packet_ins_count").map(|it| &it["value"]);
    assert_eq!(count.collect::<Vec<_>>(), [&serde_json::json!(20.0)], "{module}");
}

/// Tests a comparison of the system's Open vSwitch with the one below a prefix.
pub fn open_vswitch_is_selected_by_its_prefix() {
    let folder = Folder::new();
    let words = format!(
        "compare ovs ovs@{PREFIX} --run forwarding-rate --link veth --effort quick --set entries=4 --set frame=64 --set seconds=0.05 \
         --set repeats=3 --gate rate_pps_forwarded>=0.02 --json"
    );
    let done = command(&folder.0, &words.split_whitespace().collect::<Vec<_>>()).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    // Both were measured, also on a busy machine.
    assert!(matches!(done.status.code(), Some(0 | 3 | 5)), "{:?} {errors}", done.status);
    let runs = folder.0.join("runs");
    let found = record(&runs.join(&contents(&runs)[0]));
    let targets = found["targets"].as_array().unwrap();
    assert_eq!(targets[1]["name"], format!("ovs@{PREFIX}"));
    assert_eq!(targets[0]["version"], targets[1]["version"], "both are the same installation");
    assert_eq!(targets[1]["settings"]["prefix"], PREFIX);
    for target in ["ovs", &format!("ovs@{PREFIX}")] {
        let trials = found["trials"].as_array().unwrap().iter();
        let forwarded = trials.filter(|it| it["target"] == target && it["frames_forwarded"] != 0);
        assert!(forwarded.count() > 0, "{target} forwarded nothing");
    }
}
