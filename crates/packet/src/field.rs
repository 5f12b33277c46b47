//! Match and set fields, with their widths and prerequisites.
//!
//! Source: OpenFlow Switch Specification 1.3.5 section 7.2.3.7 (the first forty), 1.4.1 (`pbb_uca`)
//! and 1.5.1 (`tcp_flags`, `actset_output`, `packet_type`), in the order of their OXM numbers. A
//! value is a number of [`Field::bits`] bits in network byte order. An IPv6 address fills a `u128`.
//!
//! Invariant: the index of a field in [`Field::ALL`] is its number in the enum.

use std::fmt;

mod prerequisites;

pub use prerequisites::PrerequisiteCheck;

/// Bit of `vlan_vid` that is set if there is a tag. The lower twelve bits are the identifier.
pub const VLAN_PRESENT: u128 = 0x1000;

/// A match field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// Ingress port.
    InPort,
    /// Ingress physical port; equal to the ingress port unless ports are stacked.
    InPhyPort,
    /// Metadata written by an earlier table.
    Metadata,
    /// Ethernet destination.
    EthDst,
    /// Ethernet source.
    EthSrc,
    /// EtherType after the tags.
    EthType,
    /// Outermost VLAN: [`VLAN_PRESENT`] and the identifier, or zero without a tag.
    VlanVid,
    /// Outermost VLAN priority.
    VlanPcp,
    /// DSCP of IPv4 or IPv6.
    IpDscp,
    /// ECN of IPv4 or IPv6.
    IpEcn,
    /// Protocol of IPv4, or of IPv6 after its extension headers.
    IpProto,
    /// IPv4 source.
    Ipv4Src,
    /// IPv4 destination.
    Ipv4Dst,
    /// TCP source port.
    TcpSrc,
    /// TCP destination port.
    TcpDst,
    /// UDP source port.
    UdpSrc,
    /// UDP destination port.
    UdpDst,
    /// SCTP source port.
    SctpSrc,
    /// SCTP destination port.
    SctpDst,
    /// ICMP type.
    Icmpv4Type,
    /// ICMP code.
    Icmpv4Code,
    /// ARP operation.
    ArpOp,
    /// ARP sender's protocol address.
    ArpSpa,
    /// ARP target's protocol address.
    ArpTpa,
    /// ARP sender's hardware address.
    ArpSha,
    /// ARP target's hardware address.
    ArpTha,
    /// IPv6 source.
    Ipv6Src,
    /// IPv6 destination.
    Ipv6Dst,
    /// IPv6 flow label.
    Ipv6Flabel,
    /// ICMPv6 type.
    Icmpv6Type,
    /// ICMPv6 code.
    Icmpv6Code,
    /// Target of an IPv6 neighbour discovery message.
    Ipv6NdTarget,
    /// Source link-layer address option of a neighbour solicitation.
    Ipv6NdSll,
    /// Target link-layer address option of a neighbour advertisement.
    Ipv6NdTll,
    /// Label of the outermost MPLS entry.
    MplsLabel,
    /// Traffic class of the outermost MPLS entry.
    MplsTc,
    /// Bottom-of-stack bit of the outermost MPLS entry.
    MplsBos,
    /// Service instance of the outermost backbone tag (IEEE 802.1ah).
    PbbIsid,
    /// Tunnel metadata of the ingress logical port.
    TunnelId,
    /// Presence of IPv6 extension headers, and whether they are in the recommended order.
    Ipv6Exthdr,
    /// Use-customer-address bit of the outermost backbone tag.
    PbbUca,
    /// TCP flags.
    TcpFlags,
    /// Output port from the action set; only in egress tables.
    ActsetOutput,
    /// Namespace and type of the first header.
    PacketType,
}

/// Number of fields.
pub const FIELDS: usize = Field::ALL.len();

/// A field and the permitted values of a prerequisite.
pub type Prerequisite = (Field, &'static [u128]);

const ETH_IP: Prerequisite = (Field::EthType, &[0x0800, 0x86dd]);
const ETH_IPV4: Prerequisite = (Field::EthType, &[0x0800]);
const ETH_IPV6: Prerequisite = (Field::EthType, &[0x86dd]);
const ETH_ARP: Prerequisite = (Field::EthType, &[0x0806]);
const ETH_MPLS: Prerequisite = (Field::EthType, &[0x8847, 0x8848]);
const ETH_PBB: Prerequisite = (Field::EthType, &[0x88e7]);
const IP_TCP: Prerequisite = (Field::IpProto, &[6]);
const IP_UDP: Prerequisite = (Field::IpProto, &[17]);
const IP_SCTP: Prerequisite = (Field::IpProto, &[132]);
const IP_ICMP: Prerequisite = (Field::IpProto, &[1]);
const IP_ICMPV6: Prerequisite = (Field::IpProto, &[58]);

/// Name, width in bits, whether it is maskable, and prerequisites.
type FieldRow = (&'static str, u32, bool, &'static [Prerequisite]);

impl Field {
    /// All fields, in order.
    pub const ALL: [Field; 44] = [
        Field::InPort,
        Field::InPhyPort,
        Field::Metadata,
        Field::EthDst,
        Field::EthSrc,
        Field::EthType,
        Field::VlanVid,
        Field::VlanPcp,
        Field::IpDscp,
        Field::IpEcn,
        Field::IpProto,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::TcpSrc,
        Field::TcpDst,
        Field::UdpSrc,
        Field::UdpDst,
        Field::SctpSrc,
        Field::SctpDst,
        Field::Icmpv4Type,
        Field::Icmpv4Code,
        Field::ArpOp,
        Field::ArpSpa,
        Field::ArpTpa,
        Field::ArpSha,
        Field::ArpTha,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::Ipv6Flabel,
        Field::Icmpv6Type,
        Field::Icmpv6Code,
        Field::Ipv6NdTarget,
        Field::Ipv6NdSll,
        Field::Ipv6NdTll,
        Field::MplsLabel,
        Field::MplsTc,
        Field::MplsBos,
        Field::PbbIsid,
        Field::TunnelId,
        Field::Ipv6Exthdr,
        Field::PbbUca,
        Field::TcpFlags,
        Field::ActsetOutput,
        Field::PacketType,
    ];

    const ROWS: [FieldRow; FIELDS] = [
        ("in_port", 32, false, &[]),
        ("in_phy_port", 32, false, &[]),
        ("metadata", 64, true, &[]),
        ("eth_dst", 48, true, &[]),
        ("eth_src", 48, true, &[]),
        ("eth_type", 16, false, &[]),
        ("vlan_vid", 13, true, &[]),
        ("vlan_pcp", 3, false, &[]),
        ("ip_dscp", 6, false, &[ETH_IP]),
        ("ip_ecn", 2, false, &[ETH_IP]),
        ("ip_proto", 8, false, &[ETH_IP]),
        ("ipv4_src", 32, true, &[ETH_IPV4]),
        ("ipv4_dst", 32, true, &[ETH_IPV4]),
        ("tcp_src", 16, false, &[ETH_IP, IP_TCP]),
        ("tcp_dst", 16, false, &[ETH_IP, IP_TCP]),
        ("udp_src", 16, false, &[ETH_IP, IP_UDP]),
        ("udp_dst", 16, false, &[ETH_IP, IP_UDP]),
        ("sctp_src", 16, false, &[ETH_IP, IP_SCTP]),
        ("sctp_dst", 16, false, &[ETH_IP, IP_SCTP]),
        ("icmpv4_type", 8, false, &[ETH_IPV4, IP_ICMP]),
        ("icmpv4_code", 8, false, &[ETH_IPV4, IP_ICMP]),
        ("arp_op", 16, false, &[ETH_ARP]),
        ("arp_spa", 32, true, &[ETH_ARP]),
        ("arp_tpa", 32, true, &[ETH_ARP]),
        ("arp_sha", 48, true, &[ETH_ARP]),
        ("arp_tha", 48, true, &[ETH_ARP]),
        ("ipv6_src", 128, true, &[ETH_IPV6]),
        ("ipv6_dst", 128, true, &[ETH_IPV6]),
        ("ipv6_flabel", 20, true, &[ETH_IPV6]),
        ("icmpv6_type", 8, false, &[ETH_IPV6, IP_ICMPV6]),
        ("icmpv6_code", 8, false, &[ETH_IPV6, IP_ICMPV6]),
        ("ipv6_nd_target", 128, false, &[ETH_IPV6, IP_ICMPV6, (Field::Icmpv6Type, &[135, 136])]),
        ("ipv6_nd_sll", 48, false, &[ETH_IPV6, IP_ICMPV6, (Field::Icmpv6Type, &[135])]),
        ("ipv6_nd_tll", 48, false, &[ETH_IPV6, IP_ICMPV6, (Field::Icmpv6Type, &[136])]),
        ("mpls_label", 20, false, &[ETH_MPLS]),
        ("mpls_tc", 3, false, &[ETH_MPLS]),
        ("mpls_bos", 1, false, &[ETH_MPLS]),
        ("pbb_isid", 24, true, &[ETH_PBB]),
        ("tunnel_id", 64, true, &[]),
        ("ipv6_exthdr", 9, true, &[ETH_IPV6]),
        ("pbb_uca", 1, false, &[ETH_PBB]),
        ("tcp_flags", 12, true, &[ETH_IP, IP_TCP]),
        ("actset_output", 32, false, &[]),
        ("packet_type", 32, false, &[]),
    ];

    const fn row(self) -> &'static FieldRow {
        &Self::ROWS[self as usize]
    }

    /// Returns the name in text forms: that of the specifications in lower case.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the field with this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Returns the width of a value in bits.
    pub const fn bits(self) -> u32 {
        self.row().1
    }

    /// Returns the value with all bits set.
    pub const fn ones(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Returns true if a match may mask the field (1.3 to 1.5; earlier versions permit fewer
    /// masks).
    pub const fn maskable(self) -> bool {
        self.row().2
    }

    /// Returns true if a match in Nicira's format may mask the field although OpenFlow's own
    /// formats may not: the ports of TCP and UDP (`nicira-ext.h` of Open vSwitch).
    pub const fn maskable_by_nicira(self) -> bool {
        matches!(self, Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst)
    }

    /// Returns the prerequisites of the field: fields with their permitted values. `vlan_pcp` also
    /// requires a tag: `vlan_vid` with [`VLAN_PRESENT`].
    pub const fn needs(self) -> &'static [Prerequisite] {
        self.row().3
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FieldSet(u64);

impl FieldSet {
    /// The empty set.
    pub const NONE: FieldSet = FieldSet(0);
    /// The set of all fields.
    pub const ALL: FieldSet = FieldSet((1 << FIELDS) - 1);

    /// Returns this set with `field`.
    #[must_use]
    pub const fn with(self, field: Field) -> FieldSet {
        FieldSet(self.0 | 1 << field as u64)
    }

    /// Returns this set without `field`.
    #[must_use]
    pub const fn without(self, field: Field) -> FieldSet {
        FieldSet(self.0 & !(1 << field as u64))
    }

    /// Returns the union.
    #[must_use]
    pub const fn or(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 | other.0)
    }

    /// Returns the intersection.
    #[must_use]
    pub const fn and(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 & other.0)
    }

    /// Returns true if the set contains `field`.
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u64 != 0
    }

    /// Returns true if the set contains every field of `other`.
    pub const fn contains(self, other: FieldSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the fields in order.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lowest = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Field::ALL.get(lowest).copied()
        })
    }
}

impl FromIterator<Field> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> FieldSet {
        fields.into_iter().fold(FieldSet::NONE, FieldSet::with)
    }
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bar = "";
        for field in self.iter() {
            write!(f, "{bar}{field}")?;
            bar = "|";
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_unique_number_and_name() {
        for (place, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, place);
            assert_eq!(Field::from_name(field.name()), Some(field));
        }
        assert_eq!(Field::from_name("eth"), None);
        assert_eq!(Field::Ipv6Src.ones(), u128::MAX);
        assert_eq!(Field::MplsBos.ones(), 1);
    }

    #[test]
    fn prerequisites_precede_their_field_and_have_valid_values() {
        for field in Field::ALL {
            for (needed, values) in field.needs() {
                assert!(*needed < field, "{field} needs {needed}");
                assert!(values.iter().all(|value| *value <= needed.ones()));
            }
        }
    }

    #[test]
    fn a_set_contains_exactly_its_fields() {
        let set: FieldSet = [Field::VlanVid, Field::PacketType].into_iter().collect();
        assert!(set.has(Field::PacketType) && !set.has(Field::InPort));
        assert_eq!(set.to_string(), "vlan_vid|packet_type");
        assert_eq!(set.without(Field::VlanVid).iter().collect::<Vec<_>>(), [Field::PacketType]);
        assert!(FieldSet::ALL.contains(set) && FieldSet::ALL.iter().count() == FIELDS);
        assert_eq!(FieldSet::NONE.to_string(), "none");
    }
}
