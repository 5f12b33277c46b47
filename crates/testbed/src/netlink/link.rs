//! Links: veth pairs, bridges and their settings.
//!
//! Source: `rtnetlink(7)`, `IFLA_*` in the kernel's `if_link.h`.
//!
//! Invariant: interface names are checked before they reach the kernel (1 to 15 bytes).

use super::Netlink;
use crate::requirement::{Feature, Requirement};
use crate::{LabError, Mac, Namespace};
use netlink_packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgePortState, BridgeStpState, InfoBridge, InfoBridgePort, InfoData, InfoKind, InfoPortData,
    InfoPortKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, State, Stats64,
};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// `IFLA_GRO_MAX_SIZE`.
const GRO_MAX_SIZE: u16 = 58;

/// An interface as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The index, unique in its namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The hardware address; zero if there is none.
    pub mac: Mac,
    /// The MTU: the largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Whether the interface is up.
    pub up: bool,
    /// Whether the interface has a carrier. The kernel detects it some time after both ends are up,
    /// and drops frames before.
    pub carrying: bool,
    /// As a bridge port, whether the bridge forwards through it.
    pub bridged: bool,
    /// Index of the bridge, bond or other kernel device that the interface belongs to.
    pub controller: Option<u32>,
    /// Number of learned addresses, if it is a bridge and the kernel counts them (Linux 6.7).
    pub learned: Option<u32>,
    /// The counters.
    pub counters: LinkCounters,
}

/// Counters of an interface since its creation (`rtnl_link_stats64`), in frames unless stated
/// otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Received.
    pub received: u64,
    /// Transmitted.
    pub transmitted: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes transmitted.
    pub transmitted_bytes: u64,
    /// Received with an error.
    pub receive_errors: u64,
    /// Not transmitted because of an error.
    pub transmit_errors: u64,
    /// Received but dropped by the host.
    pub receive_dropped: u64,
    /// Dropped on transmit: on veth, the peer's ring was full or its end down.
    pub transmit_dropped: u64,
    /// Dropped for lack of a buffer.
    pub receive_missed: u64,
    /// Received without a handler.
    pub receive_unhandled: u64,
}

impl LinkCounters {
    /// Returns the difference from an earlier reading.
    pub fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        let less = u64::saturating_sub;
        LinkCounters {
            received: less(self.received, earlier.received),
            transmitted: less(self.transmitted, earlier.transmitted),
            received_bytes: less(self.received_bytes, earlier.received_bytes),
            transmitted_bytes: less(self.transmitted_bytes, earlier.transmitted_bytes),
            receive_errors: less(self.receive_errors, earlier.receive_errors),
            transmit_errors: less(self.transmit_errors, earlier.transmit_errors),
            receive_dropped: less(self.receive_dropped, earlier.receive_dropped),
            transmit_dropped: less(self.transmit_dropped, earlier.transmit_dropped),
            receive_missed: less(self.receive_missed, earlier.receive_missed),
            receive_unhandled: less(self.receive_unhandled, earlier.receive_unhandled),
        }
    }

    /// Returns the number of all lost frames. Frames without a handler are not included: a frame
    /// that only packet sockets received counts there although it was not lost.
    pub fn lost(&self) -> u64 {
        [
            self.receive_errors,
            self.transmit_errors,
            self.receive_dropped,
            self.transmit_dropped,
            self.receive_missed,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

impl From<&Stats64> for LinkCounters {
    fn from(stats: &Stats64) -> Self {
        LinkCounters {
            received: stats.rx_packets,
            transmitted: stats.tx_packets,
            received_bytes: stats.rx_bytes,
            transmitted_bytes: stats.tx_bytes,
            receive_errors: stats.rx_errors,
            transmit_errors: stats.tx_errors,
            receive_dropped: stats.rx_dropped,
            transmit_dropped: stats.tx_dropped,
            receive_missed: stats.rx_missed_errors,
            receive_unhandled: stats.rx_nohandler,
        }
    }
}

/// One end of a veth pair to create.
#[derive(Debug, Clone)]
pub struct VethEnd {
    /// Namespace of the interface.
    pub namespace: Namespace,
    /// Name of the interface.
    pub name: String,
    /// Hardware address of the interface.
    pub mac: Mac,
}

/// Settings of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgeSettings {
    /// Ageing time of learned addresses; zero disables learning, so the bridge floods to every
    /// port.
    pub ageing: Duration,
}

/// Settings of a bridge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BridgePortSettings {
    /// Whether it learns source addresses.
    pub learning: bool,
    /// Whether frames to unknown addresses are flooded to it.
    pub flooding: bool,
}

impl Netlink {
    /// Returns all interfaces of the namespace.
    pub fn links(&mut self) -> Result<Vec<Link>, LabError> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let listed = self.dump("list the interfaces", request)?;
        Ok(listed.iter().filter_map(link_of).collect())
    }

    /// Returns the interface of this name.
    pub fn link(&mut self, name: &str) -> Result<Link, LabError> {
        let found = self.links()?.into_iter().find(|link| link.name == name);
        found.ok_or_else(|| {
            let missing = std::io::Error::from_raw_os_error(libc::ENODEV);
            LabError::system("find the interface", name, missing)
        })
    }

    /// Creates a veth pair between two namespaces, both ends down. The socket's own namespace does
    /// not matter.
    pub fn veth_add(&mut self, one: &VethEnd, other: &VethEnd, mtu: u32) -> Result<(), LabError> {
        checked_name(&one.name)?;
        checked_name(&other.name)?;
        let mut message = end_message(one, mtu);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end_message(other, mtu)))),
        ]));
        let subject = format!("{} to {}", one.name, other.name);
        self.link_new("create a veth pair", &subject, message)
            .map_err(|error| lacking(Feature::Veth, error))
    }

    /// Creates a bridge, down, without ports, spanning tree or multicast snooping.
    pub fn bridge_add(&mut self, name: &str, settings: &BridgeSettings) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(checked_name(name)?.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![
                    InfoBridge::AgeingTime(user_ticks(settings.ageing)),
                    InfoBridge::StpState(BridgeStpState::Disabled),
                    InfoBridge::ForwardDelay(0),
                    InfoBridge::MulticastSnooping(false),
                ])),
            ]),
        ];
        self.link_new("create a bridge", name, message)
            .map_err(|error| lacking(Feature::Bridge, error))
    }

    /// Changes the ageing time of a bridge.
    pub fn bridge_ageing(&mut self, name: &str, ageing: Duration) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(checked_name(name)?.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![InfoBridge::AgeingTime(user_ticks(ageing))])),
            ]),
        ];
        let request = RouteNetlinkMessage::NewLink(message);
        self.request("set the ageing time of a bridge", name, request, NLM_F_ACK)
    }

    /// Adds an interface to a bridge.
    pub fn bridge_join(&mut self, port: u32, bridge: u32) -> Result<(), LabError> {
        self.link_change("add to a bridge", port, vec![LinkAttribute::Controller(bridge)])
    }

    /// Sets the options of a bridge port.
    pub fn bridge_port(&mut self, port: u32, set: BridgePortSettings) -> Result<(), LabError> {
        let data = InfoPortData::BridgePort(vec![
            InfoBridgePort::Learning(set.learning),
            InfoBridgePort::UnicastFlood(set.flooding),
            InfoBridgePort::MulticastFlood(set.flooding),
            InfoBridgePort::BroadcastFlood(set.flooding),
        ]);
        let info = vec![LinkInfo::PortKind(InfoPortKind::Bridge), LinkInfo::PortData(data)];
        self.link_change("configure a bridge port", port, vec![LinkAttribute::LinkInfo(info)])
    }

    /// Brings an interface up.
    pub fn link_up(&mut self, index: u32) -> Result<(), LabError> {
        self.link_flags("bring up", index, LinkFlags::Up)
    }

    /// Takes an interface down.
    pub fn link_down(&mut self, index: u32) -> Result<(), LabError> {
        self.link_flags("bring down", index, LinkFlags::empty())
    }

    /// Sets the hardware address of an interface.
    pub fn link_mac(&mut self, index: u32, mac: Mac) -> Result<(), LabError> {
        let address = LinkAttribute::Address(mac.to_vec());
        self.link_change("set the MAC address", index, vec![address])
    }

    /// Keeps an interface's GRO from merging frames, with a maximum size of one byte. Kernels
    /// before 5.19 ignore the setting.
    pub fn link_never_merge(&mut self, index: u32) -> Result<(), LabError> {
        let limit = DefaultNla::new(GRO_MAX_SIZE, 1_u32.to_ne_bytes().to_vec());
        let attributes = vec![LinkAttribute::Other(limit)];
        self.link_change("limit receive aggregation", index, attributes)
    }

    /// Removes an interface; a veth pair is removed with both ends.
    pub fn link_delete(&mut self, index: u32) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let request = RouteNetlinkMessage::DelLink(message);
        self.request("remove the interface", &index.to_string(), request, NLM_F_ACK)
    }

    fn link_new(
        &mut self,
        what: &'static str,
        subject: &str,
        message: LinkMessage,
    ) -> Result<(), LabError> {
        let request = RouteNetlinkMessage::NewLink(message);
        self.request(what, subject, request, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL)
    }

    fn link_flags(
        &mut self,
        what: &'static str,
        index: u32,
        flags: LinkFlags,
    ) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.header.change_mask = LinkFlags::Up;
        let request = RouteNetlinkMessage::SetLink(message);
        self.request(what, &format!("interface {index}"), request, NLM_F_ACK)
    }

    fn link_change(
        &mut self,
        what: &'static str,
        index: u32,
        attributes: Vec<LinkAttribute>,
    ) -> Result<(), LabError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = attributes;
        let request = RouteNetlinkMessage::NewLink(message);
        self.request(what, &format!("interface {index}"), request, NLM_F_ACK)
    }
}

/// Checks an interface name: 1 to 15 bytes, no slash, no space, not "." or "..".
pub fn checked_name(name: &str) -> Result<&str, LabError> {
    let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
    let clean = name.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != ':');
    if fits && clean {
        return Ok(name);
    }
    Err(LabError::Argument { what: "interface name", value: name.to_owned() })
}

/// The kernel returns "not supported" if it lacks this kind of link.
fn lacking(feature: Feature, error: LabError) -> LabError {
    match error.number() {
        Some(libc::EOPNOTSUPP) => Requirement::Kernel { feature, why: error.to_string() }.into(),
        _ => error,
    }
}

fn end_message(end: &VethEnd, mtu: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.name.clone()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::NetNsFd(end.namespace.as_fd().as_raw_fd()),
    ];
    message
}

/// Converts to the kernel's unit for bridge times: hundredths of a second.
fn user_ticks(time: Duration) -> u32 {
    u32::try_from(time.as_millis() / 10).unwrap_or(u32::MAX)
}

fn link_of(message: &RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = message else {
        return None;
    };
    let up = message.header.flags.contains(LinkFlags::Up);
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: [0; 6],
        mtu: 0,
        up,
        carrying: false,
        bridged: false,
        controller: None,
        learned: None,
        counters: LinkCounters::default(),
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Address(bytes) => link.mac = bytes[..].try_into().unwrap_or_default(),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Controller(index) => link.controller = Some(*index),
            LinkAttribute::OperState(state) => link.carrying = *state == State::Up,
            LinkAttribute::LinkInfo(info) => {
                (link.bridged, link.learned) = (is_forwarding(info), learned(info));
            }
            LinkAttribute::Stats64(stats) => link.counters = stats.into(),
            _ => {}
        }
    }
    Some(link)
}

fn is_forwarding(info: &[LinkInfo]) -> bool {
    let state = InfoBridgePort::State(BridgePortState::Forwarding);
    info.iter().any(|info| match info {
        LinkInfo::PortData(InfoPortData::BridgePort(settings)) => settings.contains(&state),
        _ => false,
    })
}

fn learned(info: &[LinkInfo]) -> Option<u32> {
    let LinkInfo::Data(InfoData::Bridge(told)) =
        info.iter().find(|info| matches!(info, LinkInfo::Data(InfoData::Bridge(_))))?
    else {
        return None;
    };
    told.iter().find_map(|told| match told {
        InfoBridge::FdbNLearned(addresses) => Some(*addresses),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_rejects_are_rejected() {
        for name in ["", ".", "..", "a/b", "a b", "sixteen-bytes-xx", "tab\t", "a:1", "ü"] {
            assert!(checked_name(name).is_err(), "{name:?}");
        }
        assert_eq!(checked_name("linux-bridge-01").unwrap(), "linux-bridge-01");
    }

    #[test]
    fn bridge_times_are_in_hundredths_of_a_second() {
        assert_eq!(user_ticks(Duration::from_secs(300)), 30_000);
        assert_eq!(user_ticks(Duration::MAX), u32::MAX);
    }
}
