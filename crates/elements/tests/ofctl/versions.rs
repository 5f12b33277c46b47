//! Tests of ovs-ofctl with each version from 1.1 on.

use elements::config::OpenFlowConfig;

use super::rig::{Rig, udp, value};

/// The versions from 1.1 on, as ovs-ofctl names them.
const LATER: [&str; 5] = ["OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"];

/// Runs a check on a switch for each version from `first` on, with and without a forwarding thread.
fn each(name: &str, first: usize, check: impl Fn(&mut Rig, &str)) {
    for (version, apart) in LATER[first..].iter().flat_map(|it| [(it, false), (it, true)]) {
        let name = format!("{name}-{version}-{apart}");
        let settings = OpenFlowConfig::default();
        let Some(mut rig) = Rig::start_as(&name, settings, apart) else { return };
        rig.version = version;
        check(&mut rig, version);
    }
}

#[test]
fn entries_of_several_tables_are_added_and_deleted() {
    each("tables", 0, |rig, version| {
        assert!(rig.ofctl(&["show"]).contains("n_tables:254"), "{version}");
        let flows = [
            "table=0,priority=5,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,goto_table:2",
            "table=2,priority=7,udp,tp_dst=2000,actions=write_metadata:0x5/0xf,goto_table:9",
            "table=9,metadata=0x5/0xf,actions=output:2",
            "table=9,priority=1,dl_vlan=5,actions=pop_vlan,output:3",
        ];
        for flow in flows {
            rig.ofctl(&["add-flow", flow]);
        }
        rig.arrive(1, &udp());
        assert_eq!(rig.leaves(2)[22], 63, "{version}");
        let lines = rig.flows();
        assert_eq!(lines.len(), flows.len(), "{version}: {lines:#?}");
        for part in ["dec_ttl", "goto_table:2", "write_metadata:0x5/0xf", "pop_vlan"] {
            assert!(
                lines.iter().any(|line| line.contains(part)),
                "{version}: {part} in {lines:#?}"
            );
        }
        rig.ofctl(&["mod-flows", "table=9,metadata=0x5/0xf,actions=output:3"]);
        rig.arrive(1, &udp());
        rig.leaves(3);
        let sum = rig.ofctl(&["dump-aggregate", "table=9"]);
        assert_eq!((value(&sum, "packet_count="), value(&sum, "flow_count=")), ("2", "2"));
        rig.ofctl(&["del-flows", "table=2"]);
        assert_eq!(rig.flows().len(), 3, "{version}");
        let tables = rig.ofctl(&["dump-tables"]);
        assert!(tables.contains("active=2"), "{version}: {tables}");
        rig.ofctl(&["del-flows"]);
        // In 1.1 ovs-ofctl uses the first table where none is named.
        rig.ofctl(&["del-flows", "table=9"]);
        rig.ofctl(&["del-flows"]);
        assert_eq!(rig.flows(), [""; 0], "{version}");
    });
}

#[test]
fn ports_are_described_set_and_counted() {
    each("ports", 0, |rig, version| {
        // 1.1 and 1.2 report ports with the switch's features.
        let early = ["OpenFlow11", "OpenFlow12"].contains(&version);
        let describe = if early { "show" } else { "dump-ports-desc" };
        let ports = rig.ofctl(&[describe]);
        assert!(ports.contains("2(eth2.0): addr:02:00:00:00:00:02"), "{version}: {ports}");
        assert!(ports.contains("LIVE"), "{version}: {ports}");
        rig.ofctl(&["mod-port", "2", "no-forward"]);
        assert!(rig.ofctl(&[describe]).contains("NO_FWD"), "{version}");
        assert!(rig.ofctl(&["dump-ports"]).contains("3 ports"), "{version}");
        rig.ofctl(&["dump-ports", "1"]);
        rig.ofctl(&["queue-stats"]);
        assert!(rig.ofctl(&["get-frags"]).contains("normal"), "{version}");
        rig.ofctl(&["set-frags", "drop"]);
        assert!(rig.ofctl(&["get-frags"]).contains("drop"), "{version}");
        assert!(rig.ofctl(&["dump-desc"]).contains("planimeter"), "{version}");
    });
}

#[test]
fn deleting_groups_deletes_their_entries() {
    each("groups", 0, |rig, version| {
        let add = "group_id=7,type=all,bucket=actions=output:2,bucket=actions=output:3";
        rig.ofctl(&["add-group", add]);
        assert!(rig.refused(&["add-group", add]).contains("OFPGMFC_GROUP_EXISTS"), "{version}");
        rig.ofctl(&["add-flow", "in_port=1,actions=group:7"]);
        rig.arrive(1, &udp());
        assert_eq!((rig.leaves(2), rig.leaves(3)), (udp(), udp()));
        let reported = rig.ofctl(&["dump-groups"]);
        assert!(reported.contains("group_id=7,type=all"), "{version}: {reported}");
        let stats = rig.ofctl(&["dump-group-stats"]);
        assert_eq!(value(&stats, "ref_count="), "1", "{version}");
        assert_eq!(value(&stats, "packet_count="), "1", "{version}");
        rig.ofctl(&["mod-group", "group_id=7,type=indirect,bucket=actions=output:3"]);
        rig.arrive(1, &udp());
        rig.leaves(3);
        let unknown = rig.refused(&["mod-group", "group_id=8,type=all,bucket=actions=output:3"]);
        assert!(unknown.contains("OFPGMFC_UNKNOWN_GROUP"), "{version}: {unknown}");
        rig.ofctl(&["del-groups", "group_id=7"]);
        assert!(rig.flows().is_empty(), "{version}");
        if version != "OpenFlow11" {
            let features = rig.ofctl(&["dump-group-features"]);
            assert!(features.contains("max_groups=0x1000"), "{version}: {features}");
        }
    });
}

#[test]
fn meters_are_added_changed_and_counted() {
    each("meters", 2, |rig, version| {
        rig.ofctl(&["add-meter", "meter=3,pktps,bands=type=drop,rate=1"]);
        rig.ofctl(&["add-flow", "in_port=1,actions=meter:3,output:2"]);
        rig.arrive(1, &udp());
        rig.leaves(2);
        let stats = rig.ofctl(&["meter-stats"]);
        assert_eq!(value(&stats, "flow_count:"), "1", "{version}: {stats}");
        assert_eq!(value(&stats, "packet_in_count:"), "1", "{version}: {stats}");
        let reported = rig.ofctl(&["dump-meters"]);
        assert!(reported.contains("meter=3 pktps bands="), "{version}: {reported}");
        rig.ofctl(&["mod-meter", "meter=3,kbps,bands=type=drop,rate=9"]);
        assert!(rig.ofctl(&["dump-meter", "meter=3"]).contains("rate=9"), "{version}");
        // ovs-ofctl expects the message of 1.5 without the additions of 1.5.1.
        if version != "OpenFlow15" {
            let features = rig.ofctl(&["meter-features"]);
            assert!(features.contains("max_meter:4096"), "{version}: {features}");
        }
        rig.ofctl(&["del-meters"]);
        assert!(rig.flows().is_empty(), "{version}: the entry was deleted with its meter");
    });
}

#[test]
fn bundles_are_atomic() {
    each("bundles", 3, |rig, version| {
        let file = rig.folder.join("flows");
        let name = file.display().to_string();
        std::fs::write(&file, "in_port=1,actions=output:2\nin_port=2,actions=output:1\n").unwrap();
        rig.ofctl(&["add-flows", "--bundle", &name]);
        assert_eq!(rig.flows().len(), 2, "{version}");
        std::fs::write(&file, "in_port=3,actions=output:2\nin_port=1,actions=output:99\n").unwrap();
        let refused = rig.refused(&["add-flows", "--bundle", &name]);
        assert!(refused.contains("OFPBAC_BAD_OUT_PORT"), "{version}: {refused}");
        assert_eq!(rig.flows().len(), 2, "{version}");
    });
}

#[test]
fn tables_describe_and_change_their_features() {
    each("features", 2, |rig, version| {
        let reported = rig.ofctl(&["dump-table-features"]);
        assert!(reported.contains("table 0"), "{version}: {reported}");
        assert!(reported.contains("max_entries=196608"), "{version}: {reported}");
        if ["OpenFlow14", "OpenFlow15"].contains(&version) {
            rig.ofctl(&["mod-table", "1", "evict"]);
            let desc = rig.ofctl(&["dump-table-desc"]);
            assert!(desc.contains("eviction=on"), "{version}: {desc}");
        }
    });
}
