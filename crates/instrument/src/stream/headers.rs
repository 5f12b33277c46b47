//! The headers of a stream's frames, from the outside in: Ethernet, VLAN tags, MPLS entries, network,
//! transport.
//!
//! ```text
//! | Ethernet 14 | tags 4 each | backbone 18 | labels 4 each | IPv4 20, IPv6 40 | UDP 8, TCP 20, SCTP 28 ... |
//! |                                                         | ARP 28, loopback 12                       |
//! ```
//!
//! SCTP's are the common header and that of one DATA chunk (RFC 9260 sections 3.1 and 3.3.1), which
//! carries the rest of the frame; ICMP's are 8 bytes, and 32 where neighbours are discovered (RFC 4861 section 4.3).

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::header::{
    arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, oam, pbb, sctp, tcp, udp, vlan,
};

use super::Field;

/// Bytes of Ethernet, IPv4 and UDP headers before the signature, in an untagged frame.
pub const HEADER_BYTES: usize = 14 + 20 + 8;

/// Bytes that an 802.1Q tag adds.
pub const TAG_BYTES: usize = 4;

/// Tags of a frame.
pub const TAGS_MAX: usize = 4;

/// MPLS entries of a frame.
pub const LABELS_MAX: usize = 8;

/// Bytes that a backbone service instance adds, its type included.
pub const BACKBONE_BYTES: usize = 2 + pbb::TAG_BYTES;

/// Bytes of a message that discovers neighbours, with the one option that it has.
pub const NEIGHBOUR_BYTES: usize = icmpv6::OPTIONS_AT + icmpv6::OPTION_LINK_BYTES;

/// Bytes of the header of SCTP's DATA chunk.
pub const CHUNK_BYTES: usize = 16;

/// The header fields of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Ethernet source.
    pub mac_source: [u8; 6],
    /// Ethernet destination.
    pub mac_destination: [u8; 6],
    /// VLAN tags, outermost first; at most [`TAGS_MAX`].
    pub vlans: Vec<Vlan>,
    /// The service instance of a backbone that carries the frame (IEEE 802.1ah), 24 bits: behind the tags, with the
    /// frame's own addresses as the customer's.
    pub backbone: Option<u32>,
    /// MPLS entries, outermost first; at most [`LABELS_MAX`].
    pub labels: Vec<Label>,
    /// Which network header follows.
    pub network: Network,
    /// IPv4 source; in ARP the sender's address.
    pub ip_source: Ipv4Addr,
    /// IPv4 destination; in ARP the target's address.
    pub ip_destination: Ipv4Addr,
    /// IPv4 time to live, IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 type of service, the whole octet; IPv6 traffic class.
    pub tos: u8,
    /// IPv4 protocol, IPv6 next header. Whatever it says, the header of `transport` follows: the
    /// ports of UDP are where TCP has its own, and type and code of ICMP are UDP's source port's bytes.
    pub ip_protocol: u8,
    /// Which transport header follows; none does behind a network header that has none.
    pub transport: Transport,
    /// Source port; the identifier of ICMP.
    pub port_source: u16,
    /// Destination port; the sequence number of ICMP.
    pub port_destination: u16,
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Its type: [`ethernet::TYPE_VLAN`] (802.1Q) or [`ethernet::TYPE_SERVICE_VLAN`] (802.1ad).
    pub kind: u16,
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
}

/// An MPLS entry (RFC 3032, section 2.1); the innermost is the bottom of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// Time to live.
    pub ttl: u8,
}

/// A network header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// IPv4 without options.
    #[default]
    Ipv4,
    /// IPv6 without extension headers.
    Ipv6 {
        /// Source.
        source: Ipv6Addr,
        /// Destination.
        destination: Ipv6Addr,
        /// Flow label, 20 bits.
        flow_label: u32,
    },
    /// ARP about IPv4 on Ethernet.
    Arp {
        /// Operation: 1 asks, 2 answers.
        operation: u16,
        /// The sender's hardware address where it is not the Ethernet source.
        sender: Option<[u8; 6]>,
        /// The target's where it is not the Ethernet destination in a reply and zero in anything else.
        target: Option<[u8; 6]>,
    },
    /// A loopback message of Ethernet OAM to a maintenance end point, or the answer to one; what follows is its data.
    Loopback {
        /// The level of the end point, 0 to 7.
        level: u8,
        /// Whether it answers; else it asks.
        answers: bool,
    },
}

/// A transport header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    #[default]
    Udp,
    /// TCP without options; sequence and acknowledgement numbers are zero.
    Tcp {
        /// Flags, as [`tcp::SYN`].
        flags: u8,
    },
    /// SCTP with one DATA chunk.
    Sctp {
        /// What the receiver of an association expects.
        verification_tag: u32,
    },
    /// ICMP, as in IPv4.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// ICMP for IPv6.
    Icmpv6 {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// ICMP for IPv6 that discovers a neighbour.
    Neighbour {
        /// Whether it answers; else it asks.
        answers: bool,
        /// The address that it is about.
        target: Ipv6Addr,
        /// The link-layer address in its option: the target's in an answer, else the sender's.
        link: [u8; 6],
    },
}

/// Where the headers of a frame begin, in bytes from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first MPLS entry, or what would be.
    pub labels_at: usize,
    /// The network header.
    pub network_at: usize,
    /// The transport header.
    pub transport_at: usize,
    /// What lies behind all headers.
    pub payload_at: usize,
}

impl Vlan {
    /// An 802.1Q tag of this VLAN with priority 0.
    pub fn new(id: u16) -> Self {
        Vlan { kind: ethernet::TYPE_VLAN, id, priority: 0 }
    }

    /// What follows its type: priority and identifier, 16 bits.
    pub fn word(self) -> u16 {
        u16::from(self.priority) << vlan::PCP_SHIFT | self.id
    }
}

impl Network {
    /// ARP with the hardware addresses of the Ethernet header.
    pub fn arp(operation: u16) -> Self {
        Network::Arp { operation, sender: None, target: None }
    }

    /// Bytes of its header.
    pub fn header_bytes(self) -> usize {
        match self {
            Network::Ipv4 => ipv4::HEADER_BYTES,
            Network::Ipv6 { .. } => ipv6::HEADER_BYTES,
            Network::Arp { .. } => arp::HEADER_BYTES,
            Network::Loopback { .. } => oam::LOOPBACK_BYTES,
        }
    }

    /// Whether a transport header follows.
    pub fn has_transport(self) -> bool {
        matches!(self, Network::Ipv4 | Network::Ipv6 { .. })
    }

    /// Bytes that end a packet, whatever it carries.
    pub fn trailer_bytes(self) -> usize {
        if matches!(self, Network::Loopback { .. }) { oam::END_BYTES } else { 0 }
    }
}

impl Transport {
    /// Bytes of its header; of SCTP's with that of the DATA chunk.
    pub fn header_bytes(self) -> usize {
        match self {
            Transport::Udp => udp::HEADER_BYTES,
            Transport::Tcp { .. } => tcp::HEADER_BYTES,
            Transport::Sctp { .. } => sctp::HEADER_BYTES + CHUNK_BYTES,
            Transport::Icmp { .. } => icmp::HEADER_BYTES,
            Transport::Icmpv6 { .. } => icmpv6::HEADER_BYTES,
            Transport::Neighbour { .. } => NEIGHBOUR_BYTES,
        }
    }

    /// The number by which IP knows it.
    pub fn protocol(self) -> u8 {
        match self {
            Transport::Udp => ipv4::PROTOCOL_UDP,
            Transport::Tcp { .. } => ipv4::PROTOCOL_TCP,
            Transport::Sctp { .. } => ipv4::PROTOCOL_SCTP,
            Transport::Icmp { .. } => ipv4::PROTOCOL_ICMP,
            Transport::Icmpv6 { .. } | Transport::Neighbour { .. } => ipv4::PROTOCOL_ICMPV6,
        }
    }

    /// Whether it has ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Transport::Udp | Transport::Tcp { .. } | Transport::Sctp { .. })
    }

    /// Whether its checksum covers addresses of the network header too.
    pub fn sums_addresses(self) -> bool {
        !matches!(self, Transport::Icmp { .. })
    }
}

impl Headers {
    /// UDP in IPv4 in Ethernet: no tags, no labels.
    pub fn udp(mac: ([u8; 6], [u8; 6]), ip: (Ipv4Addr, Ipv4Addr), port: (u16, u16)) -> Self {
        Headers {
            mac_source: mac.0,
            mac_destination: mac.1,
            vlans: Vec::new(),
            backbone: None,
            labels: Vec::new(),
            network: Network::Ipv4,
            ip_source: ip.0,
            ip_destination: ip.1,
            ttl: 64,
            tos: 0,
            ip_protocol: ipv4::PROTOCOL_UDP,
            transport: Transport::Udp,
            port_source: port.0,
            port_destination: port.1,
        }
    }

    /// Where the headers lie.
    pub fn layout(&self) -> Layout {
        let backbone = if self.backbone.is_some() { BACKBONE_BYTES } else { 0 };
        let labels_at = ethernet::HEADER_BYTES + vlan::TAG_BYTES * self.vlans.len() + backbone;
        let network_at = labels_at + mpls::ENTRY_BYTES * self.labels.len();
        let transport_at = network_at + self.network.header_bytes();
        let payload_at = match self.network.has_transport() {
            false => transport_at,
            true => transport_at + self.transport.header_bytes(),
        };
        Layout { labels_at, network_at, transport_at, payload_at }
    }

    /// Whether frames with these headers have such a field that can vary.
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::MacSource | Field::MacDestination => true,
            Field::VlanId | Field::VlanTag => !self.vlans.is_empty(),
            Field::VlanInnerId => self.vlans.len() > 1,
            Field::MplsLabel => !self.labels.is_empty(),
            Field::IpSource | Field::IpDestination => {
                matches!(self.network, Network::Ipv4 | Network::Arp { .. })
            }
            Field::IpProtocol | Field::Tos => self.network == Network::Ipv4,
            Field::Ipv6Source | Field::Ipv6Destination | Field::FlowLabel => {
                matches!(self.network, Network::Ipv6 { .. })
            }
            Field::PortSource | Field::PortDestination => {
                self.network.has_transport() && self.transport.has_ports()
            }
        }
    }

    /// Sets one field; bits beyond its width are ignored, and so is a field that the frame has not.
    pub fn set(&mut self, field: Field, value: u64) {
        let mac = || -> [u8; 6] { value.to_be_bytes()[2..].try_into().expect("six bytes") };
        let with_low = |address: &mut Ipv6Addr| {
            *address = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64 | u128::from(value));
        };
        match (field, &mut self.network) {
            (Field::MacSource, _) => self.mac_source = mac(),
            (Field::MacDestination, _) => self.mac_destination = mac(),
            (Field::VlanId | Field::VlanInnerId, _) => {
                let depth = usize::from(field == Field::VlanInnerId);
                if let Some(vlan) = self.vlans.get_mut(depth) {
                    vlan.id = value as u16 & 0xfff;
                }
            }
            (Field::VlanTag, _) => {
                if let Some(vlan) = self.vlans.first_mut() {
                    vlan.id = value as u16 & 0xfff;
                    vlan.priority = (value >> vlan::PCP_SHIFT) as u8 & 7;
                }
            }
            (Field::MplsLabel, _) => {
                if let Some(first) = self.labels.first_mut() {
                    first.label = value as u32 & 0xf_ffff;
                }
            }
            (Field::IpProtocol, _) => self.ip_protocol = value as u8,
            (Field::Tos, _) => self.tos = value as u8,
            (Field::IpSource, _) => self.ip_source = Ipv4Addr::from(value as u32),
            (Field::IpDestination, _) => self.ip_destination = Ipv4Addr::from(value as u32),
            (Field::Ipv6Source, Network::Ipv6 { source, .. }) => with_low(source),
            (Field::Ipv6Destination, Network::Ipv6 { destination, .. }) => with_low(destination),
            (Field::FlowLabel, Network::Ipv6 { flow_label, .. }) => {
                *flow_label = value as u32 & 0xf_ffff;
            }
            (Field::Ipv6Source | Field::Ipv6Destination | Field::FlowLabel, _) => {}
            (Field::PortSource, _) => self.port_source = value as u16,
            (Field::PortDestination, _) => self.port_destination = value as u16,
        }
    }
}
