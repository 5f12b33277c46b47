//! The fields by which a frame can be matched and changed, with their widths and what they need.
//!
//! Source: OpenFlow Switch Specification 1.3.5 section 7.2.3.7 (the first forty), 1.4.1 (`pbb_uca`)
//! and 1.5.1 (`tcp_flags`, `actset_output`, `packet_type`), in the order of their OXM numbers. A
//! value is a number of [`Field::bits`] bits, first byte on the wire most significant; an IPv6
//! address fills a `u128`.
//!
//! Invariant: a field's place in [`Field::ALL`] is its number in the enum.

use std::fmt;

/// What other fields are asked for.
mod ground;

pub use ground::Ground;

/// `vlan_vid` has this bit set where there is a tag; the lower twelve bits are the identifier.
pub const VLAN_PRESENT: u128 = 0x1000;

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// The port that the frame came in on.
    InPort,
    /// The physical port under it; the same unless ports are stacked.
    InPhyPort,
    /// What an earlier table wrote.
    Metadata,
    /// Ethernet destination.
    EthDst,
    /// Ethernet source.
    EthSrc,
    /// Ethernet type behind the tags.
    EthType,
    /// Outermost VLAN: [`VLAN_PRESENT`] and the identifier, or zero without a tag.
    VlanVid,
    /// Outermost VLAN priority.
    VlanPcp,
    /// DSCP of IPv4 or IPv6.
    IpDscp,
    /// ECN of IPv4 or IPv6.
    IpEcn,
    /// Protocol of IPv4 or, behind its extension headers, IPv6.
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
    /// What the logical port that the frame came in on says of its tunnel.
    TunnelId,
    /// Which IPv6 extension headers there are, and whether in the recommended order.
    Ipv6Exthdr,
    /// Use-customer-address bit of the outermost backbone tag.
    PbbUca,
    /// TCP flags.
    TcpFlags,
    /// The port that the action set would send to; only in egress tables.
    ActsetOutput,
    /// What the first header is: name space and type.
    PacketType,
}

/// Number of fields.
pub const FIELDS: usize = Field::ALL.len();

/// A field and one of the values that it must have.
pub type Needed = (Field, &'static [u128]);

const ETH_IP: Needed = (Field::EthType, &[0x0800, 0x86dd]);
const ETH_IPV4: Needed = (Field::EthType, &[0x0800]);
const ETH_IPV6: Needed = (Field::EthType, &[0x86dd]);
const ETH_ARP: Needed = (Field::EthType, &[0x0806]);
const ETH_MPLS: Needed = (Field::EthType, &[0x8847, 0x8848]);
const ETH_PBB: Needed = (Field::EthType, &[0x88e7]);
const IP_TCP: Needed = (Field::IpProto, &[6]);
const IP_UDP: Needed = (Field::IpProto, &[17]);
const IP_SCTP: Needed = (Field::IpProto, &[132]);
const IP_ICMP: Needed = (Field::IpProto, &[1]);
const IP_ICMPV6: Needed = (Field::IpProto, &[58]);

/// Name, bits, whether bits may be masked one by one, and what the frame has to be.
type Row = (&'static str, u32, bool, &'static [Needed]);

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

    const ROWS: [Row; FIELDS] = [
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

    const fn row(self) -> &'static Row {
        &Self::ROWS[self as usize]
    }

    /// The name in text forms, that of the specifications in small letters.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The field with this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Bits of a value.
    pub const fn bits(self) -> u32 {
        self.row().1
    }

    /// The value with all bits set.
    pub const fn ones(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Whether a match may ask for some of the bits only (1.3 to 1.5; earlier versions know fewer
    /// masks).
    pub const fn maskable(self) -> bool {
        self.row().2
    }

    /// Whether a match in Nicira's form may ask for some of the bits only though OpenFlow's own forms may
    /// not: the ports of TCP and UDP (`nicira-ext.h` of Open vSwitch).
    pub const fn maskable_by_nicira(self) -> bool {
        matches!(self, Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst)
    }

    /// Which other fields must have which values in a frame that has this field, each in one of the
    /// values named. `vlan_pcp` needs a tag besides: `vlan_vid` with [`VLAN_PRESENT`].
    pub const fn needs(self) -> &'static [Needed] {
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
    /// No field.
    pub const NONE: FieldSet = FieldSet(0);
    /// Every field.
    pub const ALL: FieldSet = FieldSet((1 << FIELDS) - 1);

    /// This set with `field`.
    #[must_use]
    pub const fn with(self, field: Field) -> FieldSet {
        FieldSet(self.0 | 1 << field as u64)
    }

    /// This set without `field`.
    #[must_use]
    pub const fn without(self, field: Field) -> FieldSet {
        FieldSet(self.0 & !(1 << field as u64))
    }

    /// The fields that either has.
    #[must_use]
    pub const fn or(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 | other.0)
    }

    /// The fields that both have.
    #[must_use]
    pub const fn and(self, other: FieldSet) -> FieldSet {
        FieldSet(self.0 & other.0)
    }

    /// Whether `field` is in it.
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u64 != 0
    }

    /// Whether every field of `other` is in it.
    pub const fn contains(self, other: FieldSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no field is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its fields, in order.
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
    fn each_field_stands_at_its_number_and_has_a_name_of_its_own() {
        for (place, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, place);
            assert_eq!(Field::from_name(field.name()), Some(field));
        }
        assert_eq!(Field::from_name("eth"), None);
        assert_eq!(Field::Ipv6Src.ones(), u128::MAX);
        assert_eq!(Field::MplsBos.ones(), 1);
    }

    #[test]
    fn what_a_field_needs_comes_before_it_and_fits() {
        for field in Field::ALL {
            for (needed, values) in field.needs() {
                assert!(*needed < field, "{field} needs {needed}");
                assert!(values.iter().all(|value| *value <= needed.ones()));
            }
        }
    }

    #[test]
    fn sets_hold_what_they_are_given() {
        let set: FieldSet = [Field::VlanVid, Field::PacketType].into_iter().collect();
        assert!(set.has(Field::PacketType) && !set.has(Field::InPort));
        assert_eq!(set.to_string(), "vlan_vid|packet_type");
        assert_eq!(set.without(Field::VlanVid).iter().collect::<Vec<_>>(), [Field::PacketType]);
        assert!(FieldSet::ALL.contains(set) && FieldSet::ALL.iter().count() == FIELDS);
        assert_eq!(FieldSet::NONE.to_string(), "none");
    }
}
