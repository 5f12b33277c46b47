//! Opening of a device: its interfaces, its control channel and its ports, with a hint for each error.
//!
//! Invariant: every error names the place and the remedy.

use std::time::Duration;

use instrument::controller::ControlError;
use lab::netlink::uses::Use;
use lab::taken::Taken;
use lab::{LabError, Namespace};
use openflow::model::Field;
use openflow::model::multipart::FlowStats;
use openflow::session::DownReason;
use ports::channel::{ChannelError, Url};
use ports::datagram::Udp;

use super::Said;
use super::reach::Reach;
use super::switch::Told;
use crate::parameter::device;
use crate::target::TargetError;
use crate::target::veth::lab_error;

/// Takes the interfaces that a device is cabled to.
pub fn take(names: &[&str], settings: &device::Device) -> Result<Taken, TargetError> {
    let patience = Duration::from_nanos(settings.patience().0);
    Taken::take(names, settings.takes_used, patience).map_err(|error| match error {
        LabError::NoInterface(_) => {
            TargetError::CannotHold(format!("{error}: `ip link` shows those that there are"))
        }
        LabError::InterfaceUsed { .. } => TargetError::CannotHold(format!(
            "{error}; it may be how this host is reached: name another one, or give --set device_interfaces=used"
        )),
        LabError::NoLink { .. } => TargetError::CannotHold(format!(
            "{error}: plug the cable in and switch the device's port on"
        )),
        other => lab_error(other),
    })
}

/// Returns the error for a switch that is not reachable, with a hint.
pub fn not_reached(error: &ControlError, said: &Said) -> TargetError {
    let is_called = said.url.as_ref().is_some_and(ports::channel::Url::is_passive);
    let remedy = match error {
        ControlError::Nobody(url) if url.is_local() => {
            "only this host reaches that address: listen on one that the switch reaches, as in \
             openflow:ptcp:6653:0.0.0.0"
        }
        ControlError::Nobody(_) => {
            "let the switch's controller be this host, or give --set device_wait=SECONDS"
        }
        ControlError::Channel(ChannelError::AddressInUse(_)) => "end it, or choose another port",
        ControlError::Channel(ChannelError::Credentials { .. } | ChannelError::Tls { .. }) => {
            "look at private-key=, certificate= and ca-cert= behind the device"
        }
        ControlError::Down(
            _,
            DownReason::NoCommonVersion { .. } | DownReason::RefusedByPeer(_),
        ) => "let the switch speak OpenFlow 1.0 to 1.5",
        ControlError::Down(..) | ControlError::Garbage(..) | ControlError::Unframed(_) => {
            "what is there may be no OpenFlow switch: look at the address"
        }
        _ if is_called => "look at the address that the switch is told",
        _ => {
            "look at the address, or at whether the switch lets this host in; one that connects by itself is \
              named openflow:ptcp:PORT:IP"
        }
    };
    TargetError::CannotHold(format!("{error}: {remedy}"))
}

/// Returns the interface of this host on the route to a switch's control channel.
pub fn interface_to(url: &Url) -> Result<String, TargetError> {
    let Url::Tcp(address) = url else {
        return Err(TargetError::CannotHold(format!(
            "--set control_capture= stamps what passes to a switch that is called without TLS, as \
             openflow:tcp:IP:PORT, and not {url}"
        )));
    };
    let way = Udp::connect(*address);
    let from =
        way.map_err(|error| TargetError::failed("looking for the control channel", error))?;
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
            "no interface has the address {from}, from which {url} is called: leave --set control_capture= out"
        ))
    })
}

/// Verifies that the device has the declared ports.
pub fn known_ports(told: &Told, said: &Said, way: &Reach) -> Result<(), TargetError> {
    let mut known: Vec<u32> = told.ports.iter().map(|here| way.there(*here)).collect();
    known.sort_unstable();
    let missing = said.ports.iter().find(|(number, _)| !known.contains(number));
    match missing {
        None => Ok(()),
        Some((number, interface)) => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            Err(TargetError::CannotHold(format!(
                "{number}@{interface}: the switch has no port {number}; it has {}",
                known.join(", ")
            )))
        }
    }
}

/// Formats an entry briefly, with the switch's own port number.
pub fn shown(entry: &FlowStats, way: &Reach) -> String {
    let matching = match entry.matching.value(Field::InPort) {
        Some(here) => entry.matching.clone().with(Field::InPort, way.there(here as u32)),
        None => entry.matching.clone(),
    };
    format!("table={} priority={} {matching}", entry.table, entry.priority)
}
