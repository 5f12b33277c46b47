//! The 1.0 match: twelve fields at fixed positions.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3.
//! ```text
//! wildcards:4 in_port:2 eth_src:6 eth_dst:6 vlan_vid:2 vlan_pcp:1 pad:1
//! eth_type:2 tos:1 proto:1 pad:2 ip_src:4 ip_dst:4 transport_src:2 transport_dst:2
//! ```
//!
//! - A set wildcard bit means that the field is ignored. Six bits for each IP address have the
//!   number of its low bits that are ignored; 32 or more ignore the address.
//! - Encoding writes ignored fields as zero; decoding does not read them.
//! - A field without its prerequisites is ignored too (section 3.4).
//! - A VLAN priority without a VLAN ID matches any tag.
//! - The fields of IP and transport, except addresses, apply to IPv6 too. The text does not mention
//!   IPv6, but without them an entry would match more than the controller requested.
//! - Only the low byte of an ICMP type or code is matched (table 3).

use super::super::bytes::Reader;
use super::super::port::{port_from_wire, port_to_wire};
use super::super::{Fault, MessagePart};
use crate::model::matching::{
    Field, FieldMatch, FieldSet, Match, VLAN_PRESENT, prefix_mask, transport_fields,
};

/// Bytes of a 1.0 match.
const MATCH_BYTES: usize = 40;

/// `vlan_vid` of an untagged frame.
const VLAN_NONE: u16 = 0xffff;

/// Wildcards of a match without fields.
const NOTHING_NAMED: u32 = 0x0038_20ff;

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;

/// The lowest wildcard bit of each position, and the fields that share the position.
const PLACES: [(u32, &[Field]); 12] = [
    (0, &[Field::InPort]),
    (1, &[Field::VlanVid]),
    (2, &[Field::EthSrc]),
    (3, &[Field::EthDst]),
    (4, &[Field::EthType]),
    (5, &[Field::IpProto, Field::ArpOp]),
    (6, &[Field::TcpSrc, Field::UdpSrc, Field::Icmpv4Type]),
    (7, &[Field::TcpDst, Field::UdpDst, Field::Icmpv4Code]),
    (IP_SRC_SHIFT, &[Field::Ipv4Src, Field::ArpSpa]),
    (IP_DST_SHIFT, &[Field::Ipv4Dst, Field::ArpTpa]),
    (20, &[Field::VlanPcp]),
    (21, &[Field::IpDscp]),
];

const IP_SRC_SHIFT: u32 = 8;
const IP_DST_SHIFT: u32 = 14;

/// The six wildcard bits of an IP address.
const IP_WILDCARD: u32 = 63;

mod wildcard {
    pub const IN_PORT: u32 = 1 << 0;
    pub const VLAN: u32 = 1 << 1;
    pub const ETH_SRC: u32 = 1 << 2;
    pub const ETH_DST: u32 = 1 << 3;
    pub const ETH_TYPE: u32 = 1 << 4;
    pub const IP_PROTO: u32 = 1 << 5;
    pub const TRANSPORT_SRC: u32 = 1 << 6;
    pub const TRANSPORT_DST: u32 = 1 << 7;
    pub const VLAN_PCP: u32 = 1 << 20;
    pub const IP_DSCP: u32 = 1 << 21;
}

/// The encoded fields, and the wildcards for the others.
struct Writer {
    bytes: [u8; MATCH_BYTES],
    wildcards: u32,
}

impl Writer {
    /// Writes the low `N` bytes of a value and clears its wildcard.
    fn put<const N: usize>(&mut self, at: usize, bit: u32, value: u64) {
        self.bytes[at..at + N].copy_from_slice(&value.to_be_bytes()[8 - N..]);
        self.wildcards &= !bit;
    }

    fn put_ip(&mut self, at: usize, shift: u32, row: &FieldMatch) -> Result<(), MessagePart> {
        let length = row.prefix_length().ok_or(MessagePart::Mask(row.field))?;
        self.put::<4>(at, IP_WILDCARD << shift, row.value as u64);
        self.wildcards |= (32 - length) << shift;
        Ok(())
    }

    /// Writes the VLAN ID. A match on any tag is expressed by its priority alone.
    fn put_vlan(&mut self, row: &FieldMatch, has_pcp: bool) -> Result<(), MessagePart> {
        match row.value {
            // Also write the priority of an untagged frame, which is zero. A match with all fields
            // then has no wildcards.
            0 if row.is_exact() => {
                self.put::<2>(18, wildcard::VLAN | wildcard::VLAN_PCP, VLAN_NONE.into());
            }
            VLAN_PRESENT.. if row.is_exact() => {
                self.put::<2>(18, wildcard::VLAN, row.value as u64 & 0xfff);
            }
            VLAN_PRESENT if row.mask == VLAN_PRESENT && has_pcp => {}
            value if row.is_exact() => {
                return Err(MessagePart::Value { field: "vlan_vid", value: value as u64 });
            }
            _ => return Err(MessagePart::Mask(Field::VlanVid)),
        }
        Ok(())
    }
}

/// Rejects partial masks.
pub(super) fn whole(row: &FieldMatch) -> Result<u64, MessagePart> {
    if row.is_exact() { Ok(row.value as u64) } else { Err(MessagePart::Mask(row.field)) }
}

/// Appends the match.
pub(super) fn put_match(value: &Match, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if let Some(field) = value.unmet() {
        return Err(MessagePart::Prerequisite(field));
    }
    if !value.experimenter().is_empty() {
        return Err(MessagePart::ExperimenterField);
    }
    let mut writer = Writer { bytes: [0; MATCH_BYTES], wildcards: NOTHING_NAMED };
    let has_pcp = value.get(Field::VlanPcp).is_some();
    let eth_type = value.eth_type();
    for row in value.fields() {
        match row.field {
            Field::VlanVid => writer.put_vlan(row, has_pcp)?,
            Field::Ipv4Src | Field::ArpSpa => writer.put_ip(28, IP_SRC_SHIFT, row)?,
            Field::Ipv4Dst | Field::ArpTpa => writer.put_ip(32, IP_DST_SHIFT, row)?,
            _ => put_whole(&mut writer, eth_type, row)?,
        }
    }
    let [type_upper, code_upper] = value.icmp_upper();
    writer.bytes[36] |= type_upper;
    writer.bytes[38] |= code_upper;
    writer.bytes[..4].copy_from_slice(&writer.wildcards.to_be_bytes());
    out.extend_from_slice(&writer.bytes);
    Ok(())
}

/// Writes a field that has no masks.
fn put_whole(
    writer: &mut Writer,
    eth_type: Option<u16>,
    row: &FieldMatch,
) -> Result<(), MessagePart> {
    let field = row.field;
    let is_ip = matches!(eth_type, Some(IPV4 | IPV6));
    match field {
        Field::InPort => {
            let port = port_to_wire(whole(row)? as u32)?;
            writer.put::<2>(4, wildcard::IN_PORT, port.into());
        }
        Field::EthSrc => writer.put::<6>(6, wildcard::ETH_SRC, whole(row)?),
        Field::EthDst => writer.put::<6>(12, wildcard::ETH_DST, whole(row)?),
        Field::VlanPcp => writer.put::<1>(20, wildcard::VLAN_PCP, whole(row)?),
        Field::EthType => writer.put::<2>(22, wildcard::ETH_TYPE, whole(row)?),
        Field::IpDscp if is_ip => writer.put::<1>(24, wildcard::IP_DSCP, whole(row)? << 2),
        Field::IpProto if is_ip => writer.put::<1>(25, wildcard::IP_PROTO, whole(row)?),
        Field::ArpOp => match whole(row)? {
            value @ 0..=0xff => writer.put::<1>(25, wildcard::IP_PROTO, value),
            value => return Err(MessagePart::Value { field: field.name(), value }),
        },
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type
            if is_ip =>
        {
            writer.put::<2>(36, wildcard::TRANSPORT_SRC, whole(row)?);
        }
        Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code
            if is_ip =>
        {
            writer.put::<2>(38, wildcard::TRANSPORT_DST, whole(row)?);
        }
        field => return Err(MessagePart::Field(field)),
    }
    Ok(())
}

/// A match while it is decoded.
struct MatchParts {
    bytes: [u8; MATCH_BYTES],
    wildcards: u32,
}

impl MatchParts {
    fn counts(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes([0, 1, 2, 3].map(|place| self.bytes[at + place]))
    }

    fn mac(&self, at: usize) -> u128 {
        self.bytes[at..at + 6].iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte))
    }

    /// Returns the IP address with the mask of its wildcard bits.
    fn ip(&self, field: Field, at: usize, shift: u32) -> FieldMatch {
        let open = (self.wildcards >> shift & IP_WILDCARD).min(32);
        FieldMatch::masked(field, self.u32(at), prefix_mask((32 - open) as u8))
    }
}

/// Reads a match.
pub(super) fn read_match(reader: &mut Reader) -> Result<Match, Fault> {
    let bytes = reader.array::<MATCH_BYTES>()?;
    let wildcards = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let parts = MatchParts { bytes, wildcards };
    let named = PLACES.iter().filter(|(bit, _)| parts.counts(1 << bit)).count();
    let mut matching = Match::with_capacity(named);
    let mut exact = |bit: u32, field: Field, value: u128| {
        if parts.counts(bit) {
            matching.set(FieldMatch::exact(field, value));
        }
    };
    let in_port = port_from_wire(parts.u16(4));
    exact(wildcard::IN_PORT, Field::InPort, in_port.into());
    exact(wildcard::ETH_DST, Field::EthDst, parts.mac(12));
    exact(wildcard::ETH_SRC, Field::EthSrc, parts.mac(6));
    exact(wildcard::ETH_TYPE, Field::EthType, parts.u16(22).into());
    read_tag(&parts, &mut matching);
    if parts.counts(wildcard::ETH_TYPE) {
        match parts.u16(22) {
            IPV4 => {
                matching.set(parts.ip(Field::Ipv4Src, 28, IP_SRC_SHIFT));
                matching.set(parts.ip(Field::Ipv4Dst, 32, IP_DST_SHIFT));
                return Ok(read_ip(&parts, IPV4, matching));
            }
            IPV6 => return Ok(read_ip(&parts, IPV6, matching)),
            ARP => read_arp(&parts, &mut matching),
            _ => {}
        }
    }
    Ok(matching)
}

fn read_tag(parts: &MatchParts, matching: &mut Match) {
    let counts = parts.counts(wildcard::VLAN);
    let has_pcp = parts.counts(wildcard::VLAN_PCP);
    let vid = parts.u16(18);
    let tag = match vid {
        VLAN_NONE if counts => return matching.set(FieldMatch::exact(Field::VlanVid, 0u8)),
        _ if counts => FieldMatch::exact(Field::VlanVid, VLAN_PRESENT | u128::from(vid & 0xfff)),
        _ if has_pcp => FieldMatch::masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
        _ => return,
    };
    matching.set(tag);
    if has_pcp {
        matching.set(FieldMatch::exact(Field::VlanPcp, parts.bytes[20]));
    }
}

/// Adds the fields of IP, except addresses, and of the transport header.
fn read_ip(parts: &MatchParts, eth_type: u16, mut matching: Match) -> Match {
    if parts.counts(wildcard::IP_DSCP) {
        matching.set(FieldMatch::exact(Field::IpDscp, parts.bytes[24] >> 2));
    }
    if !parts.counts(wildcard::IP_PROTO) {
        return matching;
    }
    let proto = parts.bytes[25];
    matching.set(FieldMatch::exact(Field::IpProto, proto));
    let Some((src, dst)) = transport_fields(eth_type, proto) else { return matching };
    let mut upper = [0; 2];
    let places = [(wildcard::TRANSPORT_SRC, src, 36), (wildcard::TRANSPORT_DST, dst, 38)];
    for (upper, (bit, field, at)) in upper.iter_mut().zip(places) {
        if parts.counts(bit) {
            matching.set(FieldMatch::exact(field, parts.u16(at)));
            if field.bits() == 8 {
                *upper = parts.bytes[at];
            }
        }
    }
    matching.with_icmp_upper(upper)
}

fn read_arp(parts: &MatchParts, matching: &mut Match) {
    if parts.counts(wildcard::IP_PROTO) {
        matching.set(FieldMatch::exact(Field::ArpOp, parts.bytes[25]));
    }
    matching.set(parts.ip(Field::ArpSpa, 28, IP_SRC_SHIFT));
    matching.set(parts.ip(Field::ArpTpa, 32, IP_DST_SHIFT));
}

/// Returns the 1.0 wildcard bits of these fields: one for each position, six for an IP address.
///
/// Fields without a position in 1.0 have no bit.
pub(crate) fn wildcards_to_wire(fields: FieldSet) -> u32 {
    let bits = |shift| if is_ip(shift) { IP_WILDCARD << shift } else { 1 << shift };
    let open = PLACES.iter().filter(|(_, named)| named.iter().any(|&field| fields.has(field)));
    open.fold(0, |wire, &(shift, _)| wire | bits(shift))
}

/// Returns the fields of all positions with any wildcard bit set.
pub(crate) fn wildcards_from_wire(wire: u32) -> FieldSet {
    let bits = |shift| if is_ip(shift) { IP_WILDCARD << shift } else { 1 << shift };
    let open = PLACES.iter().filter(|&&(shift, _)| wire & bits(shift) != 0);
    open.flat_map(|(_, named)| named.iter().copied()).collect()
}

fn is_ip(shift: u32) -> bool {
    shift == IP_SRC_SHIFT || shift == IP_DST_SHIFT
}
