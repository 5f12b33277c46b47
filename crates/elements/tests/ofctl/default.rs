//! Tests of ovs-ofctl without version option: 1.0 with Nicira extensions where it needs them.

use elements::config::OpenFlowConfig;
use os::clock;
use packet::time::Nanos;

use super::rig::{PATIENCE, Rig, Watch, udp, value};

fn start(name: &str) -> Option<Rig> {
    let mut rig = Rig::start(name, OpenFlowConfig::default())?;
    rig.version = "";
    Some(rig)
}

/// Starts a monitor and waits until it receives packet-ins. Returns it with its first line about
/// one.
fn hearing(rig: &mut Rig, arguments: &[&str]) -> (Watch, String) {
    let monitor = rig.watch(arguments);
    let until = clock::now() + PATIENCE;
    loop {
        rig.arrive(1, &udp());
        if let Some(line) = monitor.line_within("PACKET_IN", Nanos::from_millis(100)) {
            return (monitor, line);
        }
        assert!(clock::now() < until, "the monitor received no packet-in");
    }
}

#[test]
fn every_table_and_field_round_trips() {
    let Some(mut rig) = start("default-flows") else { return };
    let flows = [
        ("table=3,ipv6,ipv6_dst=2001:db8::/32,actions=dec_ttl,output:2", &[][..]),
        ("table=200,cookie=0x12,icmp6,icmp_type=135,nd_target=fe80::1,actions=output:3", &[]),
        ("in_port=1,dl_dst=02:00:00:00:00:02/ff:00:00:00:00:03,actions=output:2", &[]),
        ("table=3,tcp,tp_dst=80,vlan_tci=0x1000/0x1000,actions=output:1", &[]),
        ("priority=9,udp6,tp_src=53,ipv6_label=0x7,actions=mod_dl_dst:02:00:00:00:00:09", &[]),
        ("priority=7,tcp,nw_src=10.0.0.1,actions=output:2", &["-F", "nxm"]),
        ("priority=7,arp,arp_sha=02:00:00:00:00:01,actions=output:2", &["-F", "nxm+table_id"]),
    ];
    for (flow, format) in flows {
        rig.ofctl(&[&["add-flow", flow], format].concat());
    }
    let lines = rig.flows();
    assert_eq!(lines.len(), flows.len(), "{lines:#?}");
    for printed in [
        "table=3, ipv6,ipv6_dst=2001:db8::/32 actions=dec_ttl,output:2",
        "cookie=0x12, table=200, icmp6,icmp_type=135,nd_target=fe80::1 actions=output:3",
        "in_port=1,dl_dst=02:00:00:00:00:02/ff:00:00:00:00:03 actions=output:2",
        "table=3, tcp,vlan_tci=0x1000/0x1000,tp_dst=80 actions=output:1",
        "priority=9,udp6,ipv6_label=0x00007,tp_src=53 actions=mod_dl_dst:02:00:00:00:00:09",
        "priority=7,tcp,nw_src=10.0.0.1 actions=output:2",
        "priority=7,arp,arp_sha=02:00:00:00:00:01 actions=output:2",
    ] {
        assert!(lines.iter().any(|line| line == printed), "{printed} is not in {lines:#?}");
    }
    rig.arrive(1, &udp());
    assert_eq!(rig.leaves(2), udp(), "two bits of the address match");
    let reported = rig.ofctl(&["dump-flows", "in_port=1"]);
    assert!(reported.starts_with("NXST_FLOW reply"), "{reported}");
    assert_eq!((value(&reported, "n_packets="), value(&reported, "n_bytes=")), ("1", "60"));
    assert!(value(&reported, "idle_age=").parse::<u16>().is_ok(), "{reported}");
    let sum = rig.ofctl(&["dump-aggregate"]);
    assert!(sum.starts_with("NXST_AGGREGATE reply"), "{sum}");
    assert_eq!((value(&sum, "packet_count="), value(&sum, "flow_count=")), ("1", "7"));
    assert_eq!(value(&rig.ofctl(&["dump-aggregate", "table=3"]), "flow_count="), "2");
    assert_eq!(value(&rig.ofctl(&["dump-aggregate", "cookie=0x12/-1"]), "flow_count="), "1");
}

#[test]
fn entries_are_changed_and_deleted_with_extensions() {
    let Some(rig) = start("default-changes") else { return };
    rig.ofctl(&["add-flow", "priority=7,ipv6,ipv6_src=fe80::/10,actions=output:2"]);
    rig.ofctl(&["add-flow", "priority=8,ipv6,ipv6_src=fe80::/10,actions=output:2"]);
    let strict = "priority=7,ipv6,ipv6_src=fe80::/10,actions=output:3";
    rig.ofctl(&["mod-flows", strict, "--strict"]);
    let reported = |rig: &Rig| rig.flows().join("\n");
    assert!(reported(&rig).contains("priority=7,ipv6,ipv6_src=fe80::/10 actions=output:3"));
    assert!(reported(&rig).contains("priority=8,ipv6,ipv6_src=fe80::/10 actions=output:2"));
    rig.ofctl(&["add-flow", "table=4,cookie=0x5,actions=output:1"]);
    rig.ofctl(&["mod-flows", "table=4,cookie=0x5/-1,actions=output:2"]);
    assert!(reported(&rig).contains("cookie=0x5, table=4, actions=output:2"), "{}", reported(&rig));
    rig.ofctl(&["del-flows", "priority=8,ipv6,ipv6_src=fe80::/10", "--strict"]);
    assert_eq!(rig.flows().len(), 2);
    rig.ofctl(&["del-flows", "table=4"]);
    assert_eq!(rig.flows().len(), 1);
    rig.ofctl(&["del-flows", "ipv6,ipv6_src=fe80::/10"]);
    assert_eq!(rig.flows(), [""; 0]);
}

#[test]
fn a_monitor_receives_packet_ins_and_flow_removed_messages() {
    let Some(mut rig) = start("default-monitor") else { return };
    let (monitor, frame) = hearing(&mut rig, &["monitor", "65534"]);
    let text = "total_len=60 in_port=1 (via no_match) data_len=60";
    assert!(frame.starts_with("NXT_PACKET_IN") && frame.contains(text), "{frame}");
    let (_other, frame) = hearing(&mut rig, &["monitor", "65534", "-P", "standard"]);
    assert!(frame.starts_with("OFPT_PACKET_IN") && frame.contains(text), "{frame}");
    rig.ofctl(&["add-flow", "cookie=0x12,ipv6,ipv6_dst=2001:db8::/32,send_flow_rem,actions=drop"]);
    rig.ofctl(&["del-flows", "ipv6"]);
    let gone = monitor.line("FLOW_REMOVED");
    assert!(gone.contains("ipv6 reason=delete cookie:0x12"), "{gone}");
}

#[test]
fn fields_that_frames_do_not_have_are_rejected() {
    let Some(rig) = start("default-refused") else { return };
    for (arguments, error) in [
        (["add-flow", "reg0=1,actions=output:2"], "OFPBMC_BAD_FIELD"),
        (["add-flow", "ct_state=+trk,actions=output:2"], "OFPBMC_BAD_FIELD"),
        (["add-flow", "table=254,actions=output:2"], "OFPFMFC_UNSUPPORTED"),
        (["add-flow", "table=254,ipv6,ipv6_dst=fe80::1,actions=output:2"], "NXFMFC_BAD_TABLE_ID"),
        (["add-flow", "actions=resubmit(,3)"], "OFPBAC_BAD_VENDOR_TYPE"),
        (["dump-flows", "reg0=1"], "OFPBMC_BAD_FIELD"),
        (["dump-flows", "table=254"], "OFPBRC_BAD_TABLE_ID"),
    ] {
        let message = rig.refused(&arguments);
        assert!(message.contains(error), "{arguments:?}: {message}");
    }
    assert_eq!(rig.flows(), [""; 0]);
}
