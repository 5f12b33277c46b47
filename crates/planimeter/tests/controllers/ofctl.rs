//! Tests of ovs-ofctl with our switch, in every version that both support.

use std::process::Command;

use crate::rig::{Program, Rig};

const VERSIONS: [&str; 6] = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];

/// Switch and tool in one version, 10 for 1.0.
struct Session<'a> {
    rig: &'a Rig,
    version: usize,
}

impl Session<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let options = words.iter().take_while(|word| word.starts_with("--")).count();
        let (options, words) = words.split_at(options);
        let (name, rest) = words.split_first().unwrap();
        let mut command = Command::new("ovs-ofctl");
        command.args(["-O", &format!("OpenFlow{}", self.version), "-t", "20"]).args(options);
        command.args([name, "unix:socket"]).args(rest).env("OVS_RUNDIR", self.rig.path());
        command
    }

    /// Runs a command that must succeed; returns its output.
    fn run(&self, words: &[&str]) -> String {
        let message = self.rig.output(self.command(words));
        let text =
            message.unwrap_or_else(|message| panic!("{} {words:?}: {message}", self.version));
        assert!(!text.contains("decode error"), "{} {words:?}: {text}", self.version);
        text
    }

    /// Runs a command that must be rejected with this error.
    fn refused(&self, words: &[&str], error: &str) {
        let message = self.rig.output(self.command(words)).unwrap_err();
        assert!(message.contains(error), "{} {words:?}: {message}", self.version);
    }

    fn flows(&self) -> Vec<String> {
        let text = self.run(&["dump-flows", "--no-stats"]);
        let mut lines: Vec<_> = text.lines().map(|line| line.trim().to_string()).collect();
        lines.sort();
        lines
    }

    /// Deletes every flow. In OpenFlow 1.1 the tool sends table 0 for all tables.
    fn clear(&self) {
        self.run(&["del-flows"]);
        if self.version == 11 {
            self.run(&["del-flows", "table=1"]);
        }
        assert_eq!(self.flows(), [""; 0], "{}", self.version);
    }

    fn has_flow(&self, words: &str) -> bool {
        self.flows().iter().any(|line| line.contains(words))
    }
}

fn flows(session: &Session<'_>) {
    session.run(&["add-flow", "priority=7,in_port=1,tcp,tp_dst=80,actions=output:2"]);
    assert!(session.has_flow("tcp,in_port=1,tp_dst=80 actions=output:2"), "{:?}", session.flows());
    session.run(&["mod-flows", "tcp,actions=output:3"]);
    assert!(session.has_flow("tp_dst=80 actions=output:3"), "{:?}", session.flows());
    session.run(&["del-flows", "in_port=2"]);
    assert_eq!(session.flows().len(), 1);
    session.refused(&["add-flow", "actions=output:99"], "OFPBAC_BAD_OUT_PORT");
    if session.version >= 11 {
        session.run(&["add-flow", "table=0,udp,actions=dec_ttl,goto_table:1"]);
        session.run(&["add-flow", "table=1,ip,nw_dst=10.0.0.0/8,actions=write_metadata:7"]);
        assert!(session.has_flow("table=1"), "{:?}", session.flows());
        session.refused(&["add-flow", "table=1,actions=goto_table:1"], "BAD_TABLE_ID");
    }
    if session.version >= 12 {
        let wide = "tcp6,ipv6_src=fe80::/64,tp_src=9,actions=set_field:fe80::1->ipv6_dst,output:1";
        session.run(&["add-flow", wide]);
        assert!(session.has_flow("set_field:fe80::1->ipv6_dst"), "{:?}", session.flows());
    }
    let text = session.run(&["dump-aggregate"]);
    assert!(text.contains(&format!("flow_count={}", session.flows().len())), "{text}");
    session.clear();
}

fn numbers(session: &Session<'_>) {
    assert!(session.run(&["show"]).contains("dpid:0000000000c0ffee"));
    assert!(session.run(&["dump-desc"]).contains("planimeter"));
    assert!(session.run(&["dump-tables"]).contains("table"));
    assert!(session.run(&["dump-ports"]).contains("3 ports"));
    session.run(&["queue-stats"]);
    session.run(&["get-frags"]);
    session.run(&["mod-port", "2", "no-forward"]);
    session.run(&["mod-port", "2", "forward"]);
    session.run(&["packet-out", "in_port=1 packet=02000000000202000000000188b5 actions=output:2"]);
    if session.version >= 13 {
        assert!(session.run(&["dump-ports-desc"]).contains("3("), "ports are described");
        session.run(&["dump-table-features"]);
    }
    if session.version >= 14 {
        session.run(&["dump-table-desc"]);
        session.run(&["mod-table", "3", "evict"]);
    }
}

fn groups(session: &Session<'_>) {
    session.run(&["add-group", "group_id=1,type=all,bucket=output:1,bucket=output:2"]);
    session.run(&["add-group", "group_id=2,type=select,bucket=weight:3,output:1"]);
    session.run(&["mod-group", "group_id=2,type=select,bucket=weight:3,output:3"]);
    session.refused(&["add-group", "group_id=1,type=all"], "OFPGMFC_GROUP_EXISTS");
    session.run(&["add-flow", "in_port=1,actions=group:1"]);
    let text = session.run(&["dump-groups"]);
    assert!(
        text.contains("group_id=1,type=all") && text.contains("group_id=2,type=select"),
        "{text}"
    );
    assert!(text.contains("actions=output:3"), "{text}");
    assert!(session.run(&["dump-group-stats"]).contains("group_id=1"));
    if session.version >= 12 {
        session.run(&["dump-group-features"]);
    }
    if session.version >= 15 {
        let bucket = "group_id=1,command_bucket_id=last,bucket=bucket_id:9,output:3";
        session.run(&["insert-buckets", bucket]);
        assert!(session.run(&["dump-groups"]).contains("bucket_id:9"));
        session.run(&["remove-buckets", "group_id=1,command_bucket_id=9"]);
        assert!(!session.run(&["dump-groups"]).contains("bucket_id:9"));
    }
    session.run(&["del-groups"]);
    assert_eq!(session.flows(), [""; 0], "deleting a group deletes its flows");
    assert!(!session.run(&["dump-groups"]).contains("group_id=1"));
}

fn meters(session: &Session<'_>) {
    session.run(&["add-meter", "meter=1,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100"]);
    session.run(&["mod-meter", "meter=1,pktps,band=type=drop,rate=500"]);
    let text = session.run(&["dump-meters"]);
    assert!(text.contains("meter=1 pktps") && text.contains("rate=500"), "{text}");
    session.run(&["add-flow", "in_port=1,actions=meter:1,output:2"]);
    assert!(session.run(&["meter-stats"]).contains("meter:1 flow_count:1"));
    // For 1.5, Open vSwitch (3.1) reads only the shorter reply of 1.4: 1.5.1 adds eight bytes (its
    // section 7.3.5.13, `ofp_meter_features`).
    if session.version < 15 {
        session.run(&["meter-features"]);
    }
    session.run(&["del-meters"]);
    assert_eq!(session.flows(), [""; 0], "deleting a meter deletes its flows");
}

fn bundles(session: &Session<'_>) {
    let path = session.rig.path().join("flows");
    std::fs::write(&path, "tcp,tcp_dst=1,actions=output:1\ntcp,tcp_dst=2,actions=output:2\n")
        .unwrap();
    session.run(&["--bundle", "add-flows", "flows"]);
    assert_eq!(session.flows().len(), 2);
    session.run(&["--bundle", "mod-flows", "tcp,tcp_dst=2,actions=output:3"]);
    assert!(session.has_flow("tp_dst=2 actions=output:3"), "{:?}", session.flows());
    session.run(&["--bundle", "del-flows", "tcp,tcp_dst=2"]);
    session.run(&["--bundle", "add-flow", "tcp,tcp_dst=2,actions=output:2"]);
    let groups = session.rig.path().join("groups");
    std::fs::write(&groups, "group_id=1,type=all,bucket=output:1\ngroup_id=2,type=all\n").unwrap();
    session.run(&["--bundle", "add-groups", "groups"]);
    assert!(session.run(&["dump-groups"]).contains("group_id=2"));
    session.run(&["--bundle", "del-groups"]);
    // A bundle that fails halfway changes nothing.
    std::fs::write(&path, "tcp,tcp_dst=3,actions=output:1\ntcp,tcp_dst=4,actions=output:99\n")
        .unwrap();
    session.refused(&["--bundle", "add-flows", "flows"], "OFPBAC_BAD_OUT_PORT");
    assert_eq!(session.flows().len(), 2, "{:?}", session.flows());
    session.clear();
}

/// A monitor receives packet-ins, flow-removed messages and changed ports.
fn monitor(session: &Session<'_>) {
    let listener = session.command(&["monitor", "100"]);
    let mut listener = session.rig.start(&format!("monitor{}", session.version), listener);
    let snoop = session.command(&["snoop"]);
    let mut snoop = session.rig.start(&format!("snoop{}", session.version), snoop);
    session.run(&["add-flow", "send_flow_rem,priority=1,actions=controller"]);
    // The monitor requests nothing with a reply, so frames are repeated until one is reported.
    let [one, two, _] = &session.rig.hosts[..] else { panic!("three hosts") };
    listener.wait_until("a packet-in", |text| {
        one.call(two);
        text.contains("PACKET_IN")
    });
    session.run(&["del-flows"]);
    listener.wait_for("OFPT_FLOW_REMOVED");
    session.run(&["mod-port", "3", "no-forward"]);
    session.run(&["mod-port", "3", "forward"]);
    listener.wait_for("OFPT_PORT_STATUS");
    snoop.wait_for("OFPT_PORT_STATUS");
    for text in [listener.output(), snoop.output()] {
        assert!(!text.contains("decode error"), "{text}");
    }
}

fn check(session: &Session<'_>) {
    flows(session);
    numbers(session);
    if session.version >= 11 {
        groups(session);
    }
    if session.version >= 13 {
        meters(session);
    }
    if session.version >= 13 {
        bundles(session);
    }
    monitor(session);
}

pub fn every_version() {
    let rig = Rig::new(3);
    let arguments = ["--listen", "punix:socket", "--datapath-id", "0xc0ffee", "--openflow"];
    let arguments = [&arguments[..], &["1.0,1.1,1.2,1.3,1.4,1.5"]].concat();
    let switch: Program = rig.switch(&arguments);
    for version in 10..10 + VERSIONS.len() {
        check(&Session { rig: &rig, version });
    }
    assert_eq!(switch.end(), Some(0));
}

/// A standalone switch without configured controllers bridges from its start, and continues while
/// the tool is connected and afterwards.
pub fn does_not_stop_bridging() {
    let rig = Rig::new(2);
    let mut switch = rig.switch(&["--listen", "punix:socket", "--fail-mode", "standalone"]);
    let [one, two] = &rig.hosts[..] else { panic!("two hosts") };
    one.ask(two, 7001);
    let session = Session { rig: &rig, version: 10 };
    let monitor = rig.start("monitor", session.command(&["monitor", "100"]));
    switch.wait_for(": connected");
    one.ask(two, 7002);
    session.run(&["dump-flows"]);
    drop(monitor);
    switch.wait_for(": closed the connection");
    two.ask(one, 7003);
    assert_eq!(switch.end(), Some(0));
}
