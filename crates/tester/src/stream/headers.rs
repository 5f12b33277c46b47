//! Headers of a stream's frames, outermost first: Ethernet, VLAN tags, MPLS entries, network,
//! transport.
//!
//! ```text
//! | Ethernet 14 | tags 4 each | backbone 18 | labels 4 each | IPv4 20, IPv6 40 | UDP 8, TCP 20, SCTP 28 ... |
//! |                                                         | ARP 28, loopback 12                       |
//! ```
//!
//! SCTP consists of the common header and the header of one DATA chunk (RFC 9260, sections 3.1 and
//! 3.3.1). The chunk carries the rest of the frame. ICMP has 8 bytes, or 32 for neighbor discovery
//! (RFC 4861, section 4.3).

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::header::{
    arp, ethernet, icmp, icmpv6, ipv4, ipv6, mpls, oam, pbb, sctp, tcp, udp, vlan,
};

use super::Field;

/// Length of Ethernet, IPv4 and UDP headers in an untagged frame, in bytes.
pub const HEADER_BYTES: usize = 14 + 20 + 8;

/// Length of an 802.1Q tag in bytes.
pub const TAG_BYTES: usize = 4;

/// Maximum number of VLAN tags in a frame.
pub const TAGS_MAX: usize = 4;

/// Maximum number of MPLS entries in a frame.
pub const LABELS_MAX: usize = 8;

/// Length of a backbone service instance tag with its type, in bytes.
pub const BACKBONE_BYTES: usize = 2 + pbb::TAG_BYTES;

/// Length of a neighbor discovery message with its single option, in bytes.
pub const NEIGHBOUR_BYTES: usize = icmpv6::OPTIONS_AT + icmpv6::OPTION_LINK_BYTES;

/// Length of the header of an SCTP DATA chunk, in bytes.
pub const CHUNK_BYTES: usize = 16;

/// Header fields of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Ethernet source.
    pub mac_source: [u8; 6],
    /// Ethernet destination.
    pub mac_destination: [u8; 6],
    /// VLAN tags, outermost first, at most [`TAGS_MAX`].
    pub vlans: Vec<Vlan>,
    /// Backbone service instance (IEEE 802.1ah), 24 bits. Its tag follows the VLAN tags, and the
    /// frame's own addresses are the customer's.
    pub backbone: Option<u32>,
    /// MPLS entries, outermost first, at most [`LABELS_MAX`].
    pub labels: Vec<Label>,
    /// Network header.
    pub network: Network,
    /// IPv4 source. In ARP, the sender's address.
    pub ip_source: Ipv4Addr,
    /// IPv4 destination. In ARP, the target's address.
    pub ip_destination: Ipv4Addr,
    /// IPv4 time to live, or IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 type of service (whole octet), or IPv6 traffic class.
    pub tos: u8,
    /// IPv4 protocol, or IPv6 next header.
    ///
    /// The header of `transport` follows for any value. Ports have the same offsets in UDP
    /// and TCP. ICMP's type and code are at the offset of UDP's source port.
    pub ip_protocol: u8,
    /// Transport header. Ignored if the network header has no transport.
    pub transport: Transport,
    /// Source port, or ICMP identifier.
    pub port_source: u16,
    /// Destination port, or ICMP sequence number.
    pub port_destination: u16,
}

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Type: [`ethernet::TYPE_VLAN`] (802.1Q) or [`ethernet::TYPE_SERVICE_VLAN`] (802.1ad).
    pub kind: u16,
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
}

/// An MPLS entry (RFC 3032, section 2.1). The innermost one is the bottom of the stack.
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
    /// ARP for IPv4 on Ethernet.
    Arp {
        /// Operation: 1 for request, 2 for reply.
        operation: u16,
        /// Sender's MAC address if it is not the Ethernet source.
        sender: Option<[u8; 6]>,
        /// Target's MAC address if it is not the default: the Ethernet destination in a reply, else
        /// zero.
        target: Option<[u8; 6]>,
    },
    /// A loopback message (LBM) of Ethernet OAM to a maintenance end point, or its reply (LBR). Its
    /// data follows.
    Loopback {
        /// Maintenance level of the end point, 0 to 7.
        level: u8,
        /// Whether it is a reply.
        answers: bool,
    },
}

/// A transport header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    #[default]
    Udp,
    /// TCP without options, with sequence and acknowledgement numbers zero.
    Tcp {
        /// Flags, for example [`tcp::SYN`].
        flags: u8,
    },
    /// SCTP with one DATA chunk.
    Sctp {
        /// Verification tag of the association.
        verification_tag: u32,
    },
    /// ICMP for IPv4.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// ICMPv6.
    Icmpv6 {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// ICMPv6 neighbor discovery.
    Neighbour {
        /// Whether it is an advertisement, else a solicitation.
        answers: bool,
        /// Target address.
        target: Ipv6Addr,
        /// Link-layer address in the option: the target's in an advertisement, else the sender's.
        link: [u8; 6],
    },
}

/// Offsets of a frame's headers in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// First MPLS entry, also if there is none.
    pub labels_at: usize,
    /// Network header.
    pub network_at: usize,
    /// Transport header.
    pub transport_at: usize,
    /// Payload after all headers.
    pub payload_at: usize,
}

impl Vlan {
    /// Creates an 802.1Q tag with priority 0.
    pub fn new(id: u16) -> Self {
        Vlan { kind: ethernet::TYPE_VLAN, id, priority: 0 }
    }

    /// Returns the 16 bits after the type: priority and identifier.
    pub fn word(self) -> u16 {
        u16::from(self.priority) << vlan::PCP_SHIFT | self.id
    }
}

impl Network {
    /// ARP with the MAC addresses of the Ethernet header.
    pub fn arp(operation: u16) -> Self {
        Network::Arp { operation, sender: None, target: None }
    }

    /// Returns the length of the header in bytes.
    pub fn header_bytes(self) -> usize {
        match self {
            Network::Ipv4 => ipv4::HEADER_BYTES,
            Network::Ipv6 { .. } => ipv6::HEADER_BYTES,
            Network::Arp { .. } => arp::HEADER_BYTES,
            Network::Loopback { .. } => oam::LOOPBACK_BYTES,
        }
    }

    /// Returns whether a transport header follows.
    pub fn has_transport(self) -> bool {
        matches!(self, Network::Ipv4 | Network::Ipv6 { .. })
    }

    /// Returns the length of the packet's trailer in bytes.
    pub fn trailer_bytes(self) -> usize {
        if matches!(self, Network::Loopback { .. }) { oam::END_BYTES } else { 0 }
    }
}

impl Transport {
    /// Returns the length of the header in bytes. For SCTP, the DATA chunk's header is included.
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

    /// Returns the IP protocol number.
    pub fn protocol(self) -> u8 {
        match self {
            Transport::Udp => ipv4::PROTOCOL_UDP,
            Transport::Tcp { .. } => ipv4::PROTOCOL_TCP,
            Transport::Sctp { .. } => ipv4::PROTOCOL_SCTP,
            Transport::Icmp { .. } => ipv4::PROTOCOL_ICMP,
            Transport::Icmpv6 { .. } | Transport::Neighbour { .. } => ipv4::PROTOCOL_ICMPV6,
        }
    }

    /// Returns whether the transport has ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Transport::Udp | Transport::Tcp { .. } | Transport::Sctp { .. })
    }

    /// Returns whether the checksum covers addresses of the network header.
    pub fn sums_addresses(self) -> bool {
        !matches!(self, Transport::Icmp { .. })
    }
}

impl Headers {
    /// UDP over IPv4 over Ethernet, without tags and labels.
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

    /// Returns the offsets of the headers.
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

    /// Returns whether frames with these headers have this field.
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

    /// Sets a field. Ignores bits beyond its width, and fields that the frame does not have.
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
