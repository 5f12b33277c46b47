//! Tests of ovs-ofctl with OpenFlow 1.0.

use elements::config::OpenFlowConfig;
use netio::port::Port;
use os::clock;
use packet::frame::Batch;

use super::rig::{Rig, udp, value, with_queues};

#[test]
fn show_and_description() {
    let Some(rig) = Rig::start("show", OpenFlowConfig::default()) else { return };
    let text = rig.ofctl(&["show"]);
    assert!(text.contains("OFPT_FEATURES_REPLY"), "{text}");
    assert_eq!(value(&text, "dpid:"), "00abcdef01234567");
    assert_eq!((value(&text, "n_tables:"), value(&text, "n_buffers:")), ("2", "256"));
    let capabilities = "FLOW_STATS TABLE_STATS PORT_STATS QUEUE_STATS ARP_MATCH_IP";
    assert!(text.contains(capabilities), "{text}");
    let actions = "actions: output enqueue set_vlan_vid set_vlan_pcp strip_vlan mod_dl_src \
                   mod_dl_dst mod_nw_src mod_nw_dst mod_nw_tos mod_tp_src mod_tp_dst";
    assert!(text.contains(actions), "{text}");
    assert!(text.contains("1(eth1.0): addr:02:00:00:00:00:01"), "{text}");
    assert!(text.contains("frags=normal miss_send_len=128"), "{text}");
    let text = rig.ofctl(&["dump-desc"]);
    assert!(text.contains("Manufacturer: planimeter"), "{text}");
    assert!(text.contains("Software: planimeter "), "{text}");
}

#[test]
fn every_match_and_action_round_trips() {
    let Some(rig) = Rig::start("flows", with_queues(&[(2, 7)])) else { return };
    // Added flow entries, and how ovs-ofctl prints them.
    let flows = [
        ("priority=1 actions=output:2", "priority=1 actions=output:2"),
        ("in_port=1,priority=2,actions=drop", "priority=2,in_port=1 actions=drop"),
        ("dl_src=02:00:00:00:00:09,actions=NORMAL", "dl_src=02:00:00:00:00:09 actions=NORMAL"),
        ("dl_dst=02:00:00:00:00:09,actions=FLOOD", "dl_dst=02:00:00:00:00:09 actions=FLOOD"),
        ("dl_vlan=7,actions=ALL", "dl_vlan=7 actions=ALL"),
        ("dl_vlan=0xffff,actions=LOCAL", "vlan_tci=0x0000 actions=LOCAL"),
        ("dl_vlan=8,dl_vlan_pcp=5,actions=IN_PORT", "dl_vlan=8,dl_vlan_pcp=5 actions=IN_PORT"),
        ("dl_type=0x88cc,actions=CONTROLLER:99", "dl_type=0x88cc actions=CONTROLLER:99"),
        (
            "arp,arp_spa=10.1.0.0/16,arp_tpa=10.2.3.4,arp_op=2,actions=output:1,output:3",
            "arp,arp_spa=10.1.0.0/16,arp_tpa=10.2.3.4,arp_op=2 actions=output:1,output:3",
        ),
        (
            "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.0/8,nw_tos=184,tp_src=1,tp_dst=65535,\
             actions=mod_nw_src:1.2.3.4,mod_nw_dst:4.3.2.1,mod_nw_tos:184,mod_tp_src:7,\
             mod_tp_dst:8,output:2",
            "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.0/8,nw_tos=184,tp_src=1,tp_dst=65535 \
             actions=mod_nw_src:1.2.3.4,mod_nw_dst:4.3.2.1,mod_nw_tos:184,mod_tp_src:7,\
             mod_tp_dst:8,output:2",
        ),
        (
            "icmp,icmp_type=3,icmp_code=1,actions=mod_vlan_vid:5,mod_vlan_pcp:6,output:1,\
             strip_vlan,enqueue:2:7",
            "icmp,icmp_type=3,icmp_code=1 actions=mod_vlan_vid:5,mod_vlan_pcp:6,output:1,\
             strip_vlan,enqueue:2:7",
        ),
        (
            "udp,in_port=2,actions=mod_dl_src:02:00:00:00:00:0a,mod_dl_dst:02:00:00:00:00:0b,\
             output:1",
            "udp,in_port=2 actions=mod_dl_src:02:00:00:00:00:0a,mod_dl_dst:02:00:00:00:00:0b,\
             output:1",
        ),
        (
            "cookie=0x123456789abcdef0,idle_timeout=60,hard_timeout=65535,ip,nw_proto=47,\
             actions=output:3",
            "cookie=0x123456789abcdef0, idle_timeout=60, hard_timeout=65535, ip,nw_proto=47 \
             actions=output:3",
        ),
    ];
    for (flow, _) in flows {
        rig.ofctl(&["add-flow", flow]);
    }
    let lines = rig.flows();
    assert_eq!(lines.len(), flows.len(), "{lines:#?}");
    for (_, printed) in flows {
        let found = lines.iter().any(|line| {
            let line = line.replace("table=1, ", "").replace("reset_counts ", "");
            line == printed || line.ends_with(&format!(" {printed}"))
        });
        assert!(found, "{printed} is not in {lines:#?}");
    }
    let sum = rig.ofctl(&["dump-aggregate"]);
    assert_eq!(value(&sum, "flow_count="), flows.len().to_string());
    rig.ofctl(&["del-flows", "ip"]);
    assert_eq!(value(&rig.ofctl(&["dump-aggregate"]), "flow_count="), "9");
    rig.ofctl(&["del-flows", "priority=1", "--strict"]);
    assert_eq!(value(&rig.ofctl(&["dump-aggregate"]), "flow_count="), "8");
    rig.ofctl(&["del-flows"]);
    assert_eq!(rig.flows(), [""; 0]);
}

#[test]
fn traffic_appears_in_all_statistics() {
    let Some(mut rig) = Rig::start("counts", with_queues(&[(1, 9)])) else { return };
    let exact = "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_vlan=0xffff,\
                 udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,tp_src=1000,\
                 tp_dst=2000,actions=mod_nw_dst:10.9.9.9,output:2";
    rig.ofctl(&["add-flow", exact]);
    rig.ofctl(&["add-flow", "in_port=2,actions=output:3,enqueue:1:9"]);
    for _ in 0..5 {
        rig.arrive(1, &udp());
        assert_eq!(rig.leaves(2)[30..34], [10, 9, 9, 9]);
    }
    rig.arrive(2, &udp());
    assert_eq!((rig.leaves(3), rig.leaves(1)), (udp(), udp()));
    let flow = rig.ofctl(&["dump-flows", "in_port=1"]);
    assert_eq!((value(&flow, "n_packets="), value(&flow, "n_bytes=")), ("5", "300"));
    assert!(flow.contains("table=0"), "exact flows are in the first table: {flow}");
    let sum = rig.ofctl(&["dump-aggregate"]);
    assert_eq!((value(&sum, "packet_count="), value(&sum, "byte_count=")), ("6", "360"));
    let port = rig.ofctl(&["dump-ports", "1"]);
    let (received, sent) = port.split_once("tx ").expect("two lines");
    assert_eq!((value(received, "pkts="), value(received, "bytes=")), ("5", "300"));
    assert_eq!((value(sent, "pkts="), value(sent, "bytes=")), ("1", "60"));
    assert!(rig.ofctl(&["dump-ports"]).contains("3 ports"));
    let queue = rig.ofctl(&["queue-stats", "1", "9"]);
    assert_eq!((value(&queue, "bytes="), value(&queue, "pkts=")), ("60", "1"));
    let tables = rig.ofctl(&["dump-tables"]);
    assert!(tables.contains("exact") && tables.contains("wildcard"), "{tables}");
    assert_eq!(value(&tables, "lookup="), "6");
    rig.ofctl(&["queue-get-config", "1"]);
}

#[test]
fn ports_fragments_and_packet_outs() {
    let Some(mut rig) = Rig::start("ports", OpenFlowConfig::default()) else { return };
    rig.ofctl(&["mod-port", "3", "no-flood"]);
    let text = rig.ofctl(&["show"]);
    let third = &text[text.find("3(eth3.0)").expect("the third port")..];
    assert!(third.contains("config:     NO_FLOOD"), "{third}");
    rig.ofctl(&["set-frags", "drop"]);
    assert!(rig.ofctl(&["get-frags"]).contains("drop"));
    let hex: String = udp().iter().map(|byte| format!("{byte:02x}")).collect();
    rig.ofctl(&["packet-out", &format!("in_port=1 packet={hex} actions=flood")]);
    assert_eq!(rig.leaves(2), udp());
    assert_eq!(rig.wires[2].receive(&mut Batch::new(1), clock::now()).unwrap(), 0);
    let ping = rig.ofctl(&["ping", "1000"]);
    assert!(ping.contains("1000 bytes from"), "{ping}");
    rig.ofctl(&["probe"]);
}

#[test]
fn rejected_requests_have_the_correct_error() {
    let settings = OpenFlowConfig { wildcard_flows_max: 2, ..OpenFlowConfig::default() };
    let Some(rig) = Rig::start("refused", settings) else { return };
    let port = rig.refused(&["add-flow", "actions=output:9"]);
    assert!(port.contains("OFPBAC_BAD_OUT_PORT"), "{port}");
    rig.ofctl(&["add-flow", "in_port=1,actions=output:2"]);
    let overlap = rig.refused(&["add-flow", "check_overlap,dl_vlan=1,actions=output:2"]);
    assert!(overlap.contains("OFPFMFC_OVERLAP"), "{overlap}");
    rig.ofctl(&["add-flow", "in_port=2,actions=output:2"]);
    let full = rig.refused(&["add-flow", "in_port=3,actions=output:2"]);
    assert!(full.contains("OFPFMFC_TABLE_FULL"), "{full}");
    let queue = rig.refused(&["queue-stats", "9", "1"]);
    assert!(queue.contains("OFPQOFC_BAD_PORT"), "{queue}");
    assert_eq!(rig.flows().len(), 2);
}

#[test]
fn a_dump_of_many_flows_is_complete() {
    let Some(rig) = Rig::start("many", OpenFlowConfig::default()) else { return };
    let flow = |n: u32| {
        format!(
            "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_vlan=0xffff,\
             udp,nw_src=10.{}.{}.{},nw_dst=10.0.0.2,nw_tos=0,tp_src=1,tp_dst=2,\
             actions=output:2\n",
            n >> 16,
            n >> 8 & 0xff,
            n & 0xff
        )
    };
    let file = rig.folder.join("flows");
    std::fs::write(&file, (0..20_000).map(flow).collect::<String>()).unwrap();
    rig.ofctl(&["add-flows", &file.display().to_string()]);
    let text = rig.ofctl(&["dump-flows"]);
    let mut sources: Vec<_> = text
        .lines()
        .filter(|line| line.contains("nw_src="))
        .map(|line| value(line, "nw_src="))
        .collect();
    sources.sort_unstable();
    sources.dedup();
    assert_eq!(sources.len(), 20_000);
}

#[test]
fn fields_and_tables_beyond_1_0_use_extensions() {
    let Some(rig) = Rig::start("extended", OpenFlowConfig::default()) else { return };
    rig.ofctl(&["add-flow", "table=3,ipv6,ipv6_dst=2001:db8::/32,actions=dec_ttl,output:2"]);
    let lines = rig.flows();
    assert!(lines[0].contains("table=3"), "{lines:?}");
    assert!(lines[0].contains("ipv6,ipv6_dst=2001:db8::/32 actions=dec_ttl,output:2"), "{lines:?}");
    assert_eq!(value(&rig.ofctl(&["dump-aggregate"]), "flow_count="), "1");
    // Without a table or such a field, ovs-ofctl sends plain 1.0 messages, which concern the first
    // table.
    rig.ofctl(&["del-flows", "ipv6"]);
    assert_eq!(rig.flows().len(), 1);
    rig.ofctl(&["del-flows", "ipv6,ipv6_dst=2001:db8::/32"]);
    assert_eq!(rig.flows(), [""; 0]);
}
