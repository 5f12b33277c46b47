//! Checks all requirements of a lab on this machine, for `doctor`.

use crate::namespace::enter_rootless;
use crate::peer::dpdk;
use crate::probe::require;
use crate::requirement::{Feature, Finding, Requirement, privileged, tool, user_namespaces};

/// Checks all requirements and optional features on this machine.
///
/// Moves an unprivileged process into a user namespace.
pub fn survey() -> Vec<Finding> {
    let mut findings = vec![privilege(), rootless(), cores()];
    // Like an unprivileged run; if this is rejected, each finding reports it.
    let _ = enter_rootless();
    for feature in [
        Feature::Veth,
        Feature::Bridge,
        Feature::PacketSocket,
        Feature::Tun,
        Feature::ThreadedNapi,
        Feature::XdpSocket,
        Feature::OpenvswitchModule,
        Feature::Sctp,
        Feature::PidNamespace,
    ] {
        findings.push(kernel(feature));
    }
    for name in ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"] {
        let package = if name.starts_with("ovsdb") || name == "ovs-vswitchd" {
            "openvswitch-switch"
        } else {
            "openvswitch-common"
        };
        let result = tool(name, package).map(|path| path.display().to_string());
        findings.push(Finding { name, purpose: "the target ovs", optional: true, result });
    }
    let iperf = tool("iperf3", "iperf3").map(|path| path.display().to_string());
    let purpose = "load of costa2017 (load_by=iperf3)";
    findings.push(Finding { name: "iperf3", purpose, optional: true, result: iperf });
    let agent = tool("snmpd", "snmpd").map(|path| path.display().to_string());
    let purpose = "SNMP agents of the lab (snmp=lab)";
    findings.push(Finding { name: "snmpd", purpose, optional: true, result: agent });
    findings.extend(dpdk::survey());
    findings
}

fn privilege() -> Finding {
    let result = if privileged() { Ok("yes".to_owned()) } else { Err(Requirement::Privilege) };
    Finding { name: "privilege", purpose: "networks with root", optional: true, result }
}

fn rootless() -> Finding {
    let result = user_namespaces().map(|()| "allowed".to_owned());
    Finding { name: "user namespaces", purpose: "networks without root", optional: true, result }
}

fn cores() -> Finding {
    let result = match crate::affinity::Cores::of_machine() {
        Ok(cores) if !cores.shared() => {
            Ok(format!("tester {:?}, target {:?}", cores.instrument, cores.target))
        }
        _ => Err(Requirement::Cores),
    };
    Finding { name: "cores", purpose: "a core for the target", optional: true, result }
}

fn kernel(feature: Feature) -> Finding {
    let result = require(feature);
    let (purpose, optional) = match feature {
        Feature::Veth | Feature::PacketSocket => ("the link veth", false),
        Feature::Bridge => ("the target linux-bridge", true),
        Feature::Tun => ("the target ovs", true),
        Feature::ThreadedNapi => ("kernel targets on their own core", true),
        Feature::XdpSocket => ("the link veth:xdp", true),
        Feature::OpenvswitchModule => ("the target ovs-kernel (later version)", true),
        Feature::Sctp => ("ForCES over SCTP; TCP works without it", true),
        Feature::PidNamespace => ("ends all processes with their run", true),
    };
    Finding { name: feature.name(), purpose, optional, result }
}
