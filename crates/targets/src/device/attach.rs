//! Opening of a device: its interfaces, its control channel and its ports, with a hint for each
//! error.
//!
//! Invariant: every error names the place and the remedy.

use std::time::Duration;

use channel::datagram::Udp;
use channel::{ChannelError, Url};
use openflow::model::Field;
use openflow::model::multipart::FlowStats;
use openflow::session::DownReason;
use testbed::borrowed_interfaces::BorrowedInterfaces;
use testbed::netlink::uses::Use;
use testbed::{LabError, Namespace};
use tester::controller::ControlError;

use super::DeviceSpec;
use super::connect::ConnectMethod;
use super::switch::SwitchIdentity;
use crate::TargetError;
use crate::veth::lab_error;
use workload::parameter::device;

/// Takes the interfaces that a device is cabled to.
pub fn take(names: &[&str], settings: &device::Device) -> Result<BorrowedInterfaces, TargetError> {
    let patience = Duration::from_nanos(settings.patience().0);
    BorrowedInterfaces::take(names, settings.takes_used, patience).map_err(|error| match error {
        LabError::NoInterface(_) => {
            TargetError::CannotHold(format!("{error} (hint: run 'ip link' to list interfaces)"))
        }
        LabError::InterfaceUsed { .. } => TargetError::CannotHold(format!(
            "{error}, and may connect this host to its network (hint: use another interface, or \
             --set device_interfaces=used)"
        )),
        LabError::NoLink { .. } => TargetError::CannotHold(format!(
            "{error} (hint: connect the cable and enable the device's port)"
        )),
        other => lab_error(other),
    })
}

/// Returns the error for a switch that is not reachable, with a hint.
pub fn not_reached(error: &ControlError, said: &DeviceSpec) -> TargetError {
    let is_called = said.url.as_ref().is_some_and(channel::Url::is_passive);
    let remedy = match error {
        ControlError::NotConnected(url) if url.is_local() => {
            "listen on an address that the switch can reach, such as openflow:ptcp:6653:0.0.0.0"
        }
        ControlError::NotConnected(_) => {
            "configure this host as the switch's controller, or increase --set device_timeout_s=SECONDS"
        }
        ControlError::Channel(ChannelError::AddressInUse(_)) => {
            "stop that process, or choose another port"
        }
        ControlError::Channel(ChannelError::Credentials { .. } | ChannelError::Tls { .. }) => {
            "check private-key=, certificate= and ca-cert= of the device"
        }
        ControlError::Down(
            _,
            DownReason::NoCommonVersion { .. } | DownReason::RefusedByPeer(_),
        ) => "enable OpenFlow 1.0 to 1.5 on the switch",
        ControlError::Down(..) | ControlError::Garbage(..) | ControlError::Unframed(_) => {
            "check the address: the peer may not be an OpenFlow switch"
        }
        _ if is_called => "check the controller address in the switch's configuration",
        _ => {
            "check the address and the switch's access rules; for a switch that connects to this \
             host, use openflow:ptcp:PORT:IP"
        }
    };
    TargetError::CannotHold(format!("{error} (hint: {remedy})"))
}

/// Returns the interface of this host on the route to a switch's control channel.
pub fn interface_to(url: &Url) -> Result<String, TargetError> {
    let Url::Tcp(address) = url else {
        return Err(TargetError::CannotHold(format!(
            "--set control_capture= does not support {url} (hint: use openflow:tcp:IP:PORT)"
        )));
    };
    let way = Udp::connect(*address);
    let from = way.map_err(|error| {
        TargetError::failed("cannot find the interface of the control channel", error)
    })?;
    let from = from.from().filter(|from| !from.is_loopback());
    let Some(from) = from else { return Ok("lo".into()) };
    let find = || -> Result<Option<String>, LabError> {
        let mut netlink = Namespace::current()?.netlink()?;
        let all = netlink.links()?;
        for link in &all {
            let is_own = |used: &Use| matches!(used, Use::Address(own, _) if *own == from);
            if netlink.uses(link, &all)?.iter().any(is_own) {
                return Ok(Some(link.name.clone()));
            }
        }
        Ok(None)
    };
    find().map_err(lab_error)?.ok_or_else(|| {
        TargetError::CannotHold(format!(
            "no interface has the address {from}, which connects to {url} (hint: remove --set \
             control_capture=)"
        ))
    })
}

/// Verifies that the device has the declared ports.
pub fn known_ports(
    told: &SwitchIdentity,
    said: &DeviceSpec,
    way: &ConnectMethod,
) -> Result<(), TargetError> {
    let mut known: Vec<u32> = told.ports.iter().map(|here| way.there(*here)).collect();
    known.sort_unstable();
    let missing = said.ports.iter().find(|(number, _)| !known.contains(number));
    match missing {
        None => Ok(()),
        Some((number, interface)) => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            Err(TargetError::CannotHold(format!(
                "{number}@{interface}: the switch has no port {number} (hint: use one of {})",
                known.join(", ")
            )))
        }
    }
}

/// Formats an entry briefly, with the switch's own port number.
pub fn shown(entry: &FlowStats, way: &ConnectMethod) -> String {
    let matching = match entry.matching.value(Field::InPort) {
        Some(here) => entry.matching.clone().with(Field::InPort, way.there(here as u32)),
        None => entry.matching.clone(),
    };
    format!("table={} priority={} {matching}", entry.table, entry.priority)
}
