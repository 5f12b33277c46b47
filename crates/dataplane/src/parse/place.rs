//! Positions and values of fields.
//!
//! A field consists of adjacent bits in a few whole bytes. If a checksum covers the field, these
//! bytes have an even length and an even offset from the start of the header. So the words that
//! change the checksum are those of the place. The last next header of IPv6 is always one byte: the
//! low byte of its word in the pseudo-header.

use packet::field::{Field, VLAN_PRESENT};
use packet::header::{arp, ethernet, icmpv6, ipv4, ipv6, sctp, tcp, udp};

use super::{Headers, Network, Transport};

/// Checksums that cover a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumCoverage {
    /// None.
    No,
    /// The IPv4 header checksum, if there is one.
    Header,
    /// The IPv4 header checksum and that of a transport header with a pseudo-header.
    Pseudo,
    /// The transport checksum.
    Transport,
}

/// The position of a field in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPosition {
    /// Offset of the first byte.
    pub at: usize,
    /// Number of bytes, 1 to 16.
    pub bytes: usize,
    /// Number of bits to the right of the field in these bytes.
    pub shift: u32,
    /// Number of bits of the field.
    pub bits: u32,
    /// Checksums that cover the field.
    pub covered: ChecksumCoverage,
}

impl FieldPosition {
    /// Returns the mask of the field in the number that its bytes form.
    #[inline]
    pub fn mask(&self) -> u128 {
        u128::MAX >> (128 - self.bits) << self.shift
    }

    /// Returns the number that the bytes form, most significant byte first.
    #[inline]
    pub fn word(&self, bytes: &[u8]) -> u128 {
        let mut word = [0; 16];
        word[16 - self.bytes..].copy_from_slice(&bytes[self.at..self.at + self.bytes]);
        u128::from_be_bytes(word)
    }

    /// Writes the number that the bytes form.
    #[inline]
    pub fn put(&self, bytes: &mut [u8], word: u128) {
        let word = word.to_be_bytes();
        bytes[self.at..self.at + self.bytes].copy_from_slice(&word[16 - self.bytes..]);
    }

    const fn new(
        at: usize,
        bytes: usize,
        shift: u32,
        bits: u32,
        covered: ChecksumCoverage,
    ) -> FieldPosition {
        FieldPosition { at, bytes, shift, bits, covered }
    }
}

impl Headers {
    /// Returns the position of a field, if the frame has it. Returns `None` for fields outside of
    /// the frame's bytes (`in_port`, `metadata`, ...), for derived fields (`ipv6_exthdr`), and for
    /// `eth_type` without a type. `vlan_vid` is the identifier without [`VLAN_PRESENT`].
    pub fn place(&self, field: Field) -> Option<FieldPosition> {
        use ChecksumCoverage::No;
        let at = usize::from(self.network_at);
        let whole = usize::from(self.end) >= ethernet::HEADER_BYTES;
        match field {
            Field::EthDst | Field::EthSrc | Field::EthType if !whole => None,
            Field::EthDst => Some(FieldPosition::new(0, 6, 0, 48, No)),
            Field::EthSrc => Some(FieldPosition::new(6, 6, 0, 48, No)),
            Field::EthType => {
                let typed = self.eth_type != ethernet::TYPE_NONE;
                typed.then_some(FieldPosition::new(self.type_at.into(), 2, 0, 16, No))
            }
            Field::VlanVid => (self.tags > 0).then_some(FieldPosition::new(14, 2, 0, 12, No)),
            Field::VlanPcp => (self.tags > 0).then_some(FieldPosition::new(14, 2, 13, 3, No)),
            Field::MplsLabel | Field::MplsTc | Field::MplsBos => {
                let (shift, bits) = match field {
                    Field::MplsLabel => (12, 20),
                    Field::MplsTc => (9, 3),
                    _ => (8, 1),
                };
                (self.network == Network::Mpls)
                    .then_some(FieldPosition::new(at, 4, shift, bits, No))
            }
            Field::PbbIsid | Field::PbbUca => {
                let (shift, bits) = if field == Field::PbbIsid { (0, 24) } else { (27, 1) };
                (self.network == Network::Pbb).then_some(FieldPosition::new(at, 4, shift, bits, No))
            }
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => {
                (self.network == Network::Arp).then_some(arp_place(field, at))
            }
            Field::IpDscp | Field::IpEcn | Field::IpProto => self.ip_place(field),
            Field::Ipv4Src | Field::Ipv4Dst => {
                let source = field == Field::Ipv4Src;
                let at = at + if source { ipv4::SOURCE_AT } else { ipv4::DESTINATION_AT };
                let place = FieldPosition::new(at, 4, 0, 32, ChecksumCoverage::Pseudo);
                (self.network == Network::Ipv4).then_some(place)
            }
            Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6Flabel => self.ipv6_place(field),
            _ => self.transport_place(field),
        }
    }

    /// Returns a field's value, if the frame has the field. `vlan_vid` has [`VLAN_PRESENT`] set.
    pub fn get(&self, field: Field, bytes: &[u8]) -> Option<u128> {
        match field {
            Field::EthType if self.eth_type != 0 => Some(self.eth_type.into()),
            Field::Ipv6Exthdr if self.network == Network::Ipv6 => Some(self.exthdr.into()),
            _ => {
                let place = self.place(field)?;
                let value = (place.word(bytes) & place.mask()) >> place.shift;
                Some(if field == Field::VlanVid { value | VLAN_PRESENT } else { value })
            }
        }
    }

    fn ip_place(&self, field: Field) -> Option<FieldPosition> {
        let at = usize::from(self.network_at);
        let (shift, bits) = if field == Field::IpDscp { (2, 6) } else { (0, 2) };
        match (field, self.network) {
            (Field::IpProto, Network::Ipv4) => {
                Some(FieldPosition::new(at + ipv4::TTL_AT, 2, 0, 8, ChecksumCoverage::Pseudo))
            }
            (Field::IpProto, Network::Ipv6) => {
                Some(FieldPosition::new(self.proto_at.into(), 1, 0, 8, ChecksumCoverage::Pseudo))
            }
            (_, Network::Ipv4) => {
                Some(FieldPosition::new(at, 2, shift, bits, ChecksumCoverage::Header))
            }
            (_, Network::Ipv6) => {
                Some(FieldPosition::new(at, 2, shift + 4, bits, ChecksumCoverage::No))
            }
            _ => None,
        }
    }

    fn ipv6_place(&self, field: Field) -> Option<FieldPosition> {
        let at = usize::from(self.network_at);
        let place = match field {
            Field::Ipv6Flabel => FieldPosition::new(at, 4, 0, 20, ChecksumCoverage::No),
            Field::Ipv6Src => {
                FieldPosition::new(at + ipv6::SOURCE_AT, 16, 0, 128, ChecksumCoverage::Pseudo)
            }
            _ => {
                let covered =
                    if self.routed { ChecksumCoverage::No } else { ChecksumCoverage::Pseudo };
                FieldPosition::new(at + ipv6::DESTINATION_AT, 16, 0, 128, covered)
            }
        };
        (self.network == Network::Ipv6).then_some(place)
    }

    fn transport_place(&self, field: Field) -> Option<FieldPosition> {
        use Transport::{Icmp, Icmpv6, Sctp, Tcp, Udp};
        let (transport, offset, bytes, shift, bits) = match field {
            Field::TcpSrc => (Tcp, tcp::SOURCE_PORT_AT, 2, 0, 16),
            Field::TcpDst => (Tcp, tcp::DESTINATION_PORT_AT, 2, 0, 16),
            Field::TcpFlags => (Tcp, tcp::FLAGS_AT - 1, 2, 0, 12),
            Field::UdpSrc => (Udp, udp::SOURCE_PORT_AT, 2, 0, 16),
            Field::UdpDst => (Udp, udp::DESTINATION_PORT_AT, 2, 0, 16),
            Field::SctpSrc => (Sctp, sctp::SOURCE_PORT_AT, 2, 0, 16),
            Field::SctpDst => (Sctp, sctp::DESTINATION_PORT_AT, 2, 0, 16),
            Field::Icmpv4Type => (Icmp, 0, 2, 8, 8),
            Field::Icmpv4Code => (Icmp, 0, 2, 0, 8),
            Field::Icmpv6Type => (Icmpv6, 0, 2, 8, 8),
            Field::Icmpv6Code => (Icmpv6, 0, 2, 0, 8),
            Field::Ipv6NdTarget => return self.neighbour_place(),
            Field::Ipv6NdSll => return self.link_option_place(icmpv6::NEIGHBOUR_SOLICITATION),
            Field::Ipv6NdTll => return self.link_option_place(icmpv6::NEIGHBOUR_ADVERTISEMENT),
            _ => return None,
        };
        let at = usize::from(self.transport_at) + offset;
        let place = FieldPosition::new(at, bytes, shift, bits, ChecksumCoverage::Transport);
        (self.transport == transport).then_some(place)
    }

    fn neighbour_place(&self) -> Option<FieldPosition> {
        let at = usize::from(self.transport_at) + icmpv6::TARGET_AT;
        self.neighbour?;
        Some(FieldPosition::new(at, 16, 0, 128, ChecksumCoverage::Transport))
    }

    fn link_option_place(&self, kind: u8) -> Option<FieldPosition> {
        let here = self.neighbour == Some(kind) && self.link_option_at != 0;
        here.then_some(FieldPosition::new(
            self.link_option_at.into(),
            6,
            0,
            48,
            ChecksumCoverage::Transport,
        ))
    }
}

fn arp_place(field: Field, at: usize) -> FieldPosition {
    let (offset, bytes) = match field {
        Field::ArpOp => (arp::OPERATION_AT, 2),
        Field::ArpSpa => (arp::SENDER_IP_AT, 4),
        Field::ArpTpa => (arp::TARGET_IP_AT, 4),
        Field::ArpSha => (arp::SENDER_MAC_AT, 6),
        _ => (arp::TARGET_MAC_AT, 6),
    };
    FieldPosition::new(at + offset, bytes, 0, bytes as u32 * 8, ChecksumCoverage::No)
}
