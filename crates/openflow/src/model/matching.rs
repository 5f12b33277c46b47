//! Matches of flow entries: fields with a value and a mask.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3 (`ofp_match`) and 1.3.5 section 7.2.3.
//!
//! - A field that is not in the match is a wildcard.
//! - A `vlan_vid` of zero with a full mask matches untagged frames. [`VLAN_PRESENT`] with a mask of
//!   that bit alone matches any tag.
//! - Earlier versions have one field for several headers (transport ports, addresses in ARP). Here
//!   each header has its own field.
//!
//! Invariants, which make matches with the same meaning equal:
//!
//! - The fields are in the order of [`Field`], each at most once.
//! - A mask has at least one bit. A value has no bit outside its mask.

mod basis;
pub mod field_id;

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

use super::port::ShowPort;
use super::text::Hex;

pub(crate) use basis::PrerequisiteFields;
pub use packet::field::{Field, FieldSet, VLAN_PRESENT};

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// Value and mask of one match field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldMatch {
    /// The field.
    pub field: Field,
    /// The value; zero outside the mask.
    pub value: u128,
    /// The bits that must match.
    pub mask: u128,
}

/// An unknown field, as received: an experimenter field, a Nicira field without an OpenFlow
/// equivalent, or a field of a later version.
///
/// A switch rejects the fields that it does not know with a bad field error.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExperimenterField {
    /// OXM class: 0xffff for experimenters, 0 and 1 for Nicira, 0x8000 for the specification.
    pub class: u16,
    /// Field number in the class, 0 to 127.
    pub number: u8,
    /// Whether the second half of the body is a mask.
    pub has_mask: bool,
    /// The bytes after the header, at most 255.
    ///
    /// In class 0xffff they are the experimenter ID (four bytes), then value and mask.
    pub body: Vec<u8>,
}

/// Match on fields of a frame and of the pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Match {
    fields: Vec<FieldMatch>,
    experimenter: Vec<ExperimenterField>,
    icmp_upper: [u8; 2],
}

/// Returns the fields that OpenFlow 1.0 and 1.1 encode as transport ports: source and destination
/// port, or ICMP type and code.
pub fn transport_fields(eth_type: u16, proto: u8) -> Option<(Field, Field)> {
    match (eth_type, proto) {
        (0x0800, 1) => Some((Field::Icmpv4Type, Field::Icmpv4Code)),
        (0x86dd, 58) => Some((Field::Icmpv6Type, Field::Icmpv6Code)),
        (0x0800 | 0x86dd, 6) => Some((Field::TcpSrc, Field::TcpDst)),
        (0x0800 | 0x86dd, 17) => Some((Field::UdpSrc, Field::UdpDst)),
        (0x0800 | 0x86dd, 132) => Some((Field::SctpSrc, Field::SctpDst)),
        _ => None,
    }
}

/// Converts an Ethernet address to a field value.
pub fn mac_bits(mac: MacAddress) -> u128 {
    mac.iter().fold(0, |bits, &byte| bits << 8 | u128::from(byte))
}

/// Converts a field value to an Ethernet address.
pub fn bits_mac(bits: u128) -> MacAddress {
    std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8)
}

/// Returns the mask of an IPv4 prefix of `length` bits, at most 32.
pub fn prefix_mask(length: u8) -> u128 {
    assert!(length <= 32, "an IPv4 address has 32 bits");
    u128::from(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0))
}

impl FieldMatch {
    /// Matches exactly this value, truncated to the field's bits.
    pub fn exact(field: Field, value: impl Into<u128>) -> FieldMatch {
        FieldMatch::masked(field, value, field.ones())
    }

    /// Matches this value in the bits of `mask` that the field has.
    pub fn masked(field: Field, value: impl Into<u128>, mask: impl Into<u128>) -> FieldMatch {
        let mask = mask.into() & field.ones();
        FieldMatch { field, value: value.into() & mask, mask }
    }

    /// Returns whether the mask has all bits of the field.
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.ones()
    }

    /// Returns the prefix length if the mask is a prefix of the field.
    pub fn prefix_length(&self) -> Option<u32> {
        let length = (self.mask << (128 - self.field.bits())).leading_ones();
        (self.mask.count_ones() == length).then_some(length)
    }
}

impl Match {
    /// Matches every frame.
    pub const ANY: Match =
        Match { fields: Vec::new(), experimenter: Vec::new(), icmp_upper: [0; 2] };

    /// Returns a match on every frame, with capacity for this many fields.
    pub fn with_capacity(fields: usize) -> Match {
        Match { fields: Vec::with_capacity(fields), ..Match::ANY }
    }

    /// Returns this match with an exact value of a field.
    #[must_use]
    pub fn with(self, field: Field, value: impl Into<u128>) -> Match {
        self.with_masked(field, value, field.ones())
    }

    /// Returns this match with a masked value of a field; an empty mask makes the field a wildcard.
    #[must_use]
    pub fn with_masked(
        mut self,
        field: Field,
        value: impl Into<u128>,
        mask: impl Into<u128>,
    ) -> Match {
        self.set(FieldMatch::masked(field, value, mask));
        self
    }

    /// Returns this match with an exact Ethernet address.
    #[must_use]
    pub fn with_mac(self, field: Field, mac: MacAddress) -> Match {
        self.with(field, mac_bits(mac))
    }

    /// Returns this match with an IPv4 prefix of `length` bits (at most 32).
    #[must_use]
    pub fn with_ipv4(self, field: Field, address: Ipv4Addr, length: u8) -> Match {
        self.with_masked(field, address.to_bits(), prefix_mask(length))
    }

    /// Returns this match for frames with this VLAN ID.
    #[must_use]
    pub fn with_vlan(self, id: u16) -> Match {
        self.with(Field::VlanVid, VLAN_PRESENT | u128::from(id & 0xfff))
    }

    /// Returns this match for untagged frames.
    #[must_use]
    pub fn untagged(self) -> Match {
        self.with(Field::VlanVid, 0u8)
    }

    /// Returns this match with an additional experimenter field.
    #[must_use]
    pub fn with_experimenter(mut self, field: ExperimenterField) -> Match {
        self.push_experimenter(field);
        self
    }

    /// Returns this match with these upper bytes of the 16-bit ICMP type and code of 1.0 and 1.1.
    #[must_use]
    pub fn with_icmp_upper(mut self, upper: [u8; 2]) -> Match {
        self.icmp_upper = upper;
        self
    }

    /// Sets the upper bytes of the 16-bit ICMP type and code of 1.0 and 1.1.
    pub(crate) fn set_icmp_upper(&mut self, upper: [u8; 2]) {
        self.icmp_upper = upper;
    }

    /// Returns this match with the field as a wildcard.
    #[must_use]
    pub fn without(mut self, field: Field) -> Match {
        self.fields.retain(|row| row.field != field);
        self
    }

    /// Sets value and mask of a field; replaces earlier ones.
    pub fn set(&mut self, wanted: FieldMatch) {
        self.set_clean(FieldMatch::masked(wanted.field, wanted.value, wanted.mask));
    }

    /// As [`Match::set`]; the value has no bits outside the mask, and the mask none outside the
    /// field.
    #[inline]
    pub(crate) fn set_clean(&mut self, wanted: FieldMatch) {
        // Fields mostly arrive in order, so the position is after the last one.
        let place = match self.fields.last() {
            Some(last) if last.field >= wanted.field => {
                self.fields.binary_search_by_key(&wanted.field, |row| row.field)
            }
            _ => Err(self.fields.len()),
        };
        match place {
            Ok(place) if wanted.mask == 0 => drop(self.fields.remove(place)),
            Ok(place) => self.fields[place] = wanted,
            Err(_) if wanted.mask == 0 => {}
            Err(place) => self.fields.insert(place, wanted),
        }
    }

    /// Adds an experimenter field.
    pub fn push_experimenter(&mut self, field: ExperimenterField) {
        self.push_experimenters([field]);
    }

    /// Adds several experimenter fields.
    pub fn push_experimenters(&mut self, fields: impl IntoIterator<Item = ExperimenterField>) {
        self.experimenter.extend(fields);
        self.experimenter.sort();
    }

    /// Returns the fields, in order.
    pub fn fields(&self) -> &[FieldMatch] {
        &self.fields
    }

    /// Returns the experimenter fields.
    pub fn experimenter(&self) -> &[ExperimenterField] {
        &self.experimenter
    }

    /// Returns the upper bytes of the 16-bit ICMP type and code of 1.0 and 1.1; otherwise zero.
    ///
    /// Only the lower bytes are matched (OpenFlow 1.0.0, table 3; 1.1.0, table 4).
    pub fn icmp_upper(&self) -> [u8; 2] {
        self.icmp_upper
    }

    /// Returns the set of fields in the match.
    pub fn names(&self) -> FieldSet {
        self.fields.iter().map(|row| row.field).collect()
    }

    /// Returns whether the match has no fields.
    pub fn is_any(&self) -> bool {
        self.fields.is_empty() && self.experimenter.is_empty()
    }

    /// Returns value and mask of this field, if it is in the match.
    pub fn get(&self, field: Field) -> Option<(u128, u128)> {
        let place = self.fields.binary_search_by_key(&field, |row| row.field).ok()?;
        let row = &self.fields[place];
        Some((row.value, row.mask))
    }

    /// Returns the value of this field, if the match has it with a full mask.
    pub fn value(&self, field: Field) -> Option<u128> {
        self.get(field).filter(|&(_, mask)| mask == field.ones()).map(|(value, _)| value)
    }

    /// Returns the Ethernet type that the match requires, as `eth_type` or as packet type.
    pub fn eth_type(&self) -> Option<u16> {
        let named = self.value(Field::EthType).or_else(|| {
            let packet_type = self.value(Field::PacketType)?;
            (packet_type >> 16 == 1).then_some(packet_type & 0xffff)
        });
        named.map(|value| value as u16)
    }

    /// Returns the first field whose prerequisites the match lacks.
    pub fn unmet(&self) -> Option<Field> {
        let basis = PrerequisiteFields::of(self);
        self.fields.iter().map(|row| row.field).find(|&field| !basis.bears(field))
    }
}

impl FromIterator<FieldMatch> for Match {
    fn from_iter<I: IntoIterator<Item = FieldMatch>>(fields: I) -> Match {
        let mut matching = Match::ANY;
        fields.into_iter().for_each(|field| matching.set(field));
        matching
    }
}

pub(crate) fn show_mac(f: &mut fmt::Formatter<'_>, mac: &MacAddress) -> fmt::Result {
    let [a, b, c, d, e, g] = mac;
    write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
}

/// A field value in its usual notation.
pub(crate) struct ShowValue(pub Field, pub u128);

impl fmt::Display for ShowValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShowValue(field, value) = *self;
        match field {
            Field::InPort | Field::InPhyPort | Field::ActsetOutput => {
                write!(f, "{}", ShowPort(value as u32))
            }
            Field::EthDst
            | Field::EthSrc
            | Field::ArpSha
            | Field::ArpTha
            | Field::Ipv6NdSll
            | Field::Ipv6NdTll => show_mac(f, &bits_mac(value)),
            Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => {
                write!(f, "{}", Ipv4Addr::from_bits(value as u32))
            }
            Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => {
                write!(f, "{}", Ipv6Addr::from_bits(value))
            }
            Field::EthType => write!(f, "{value:#06x}"),
            Field::Metadata
            | Field::TunnelId
            | Field::Ipv6Exthdr
            | Field::TcpFlags
            | Field::PacketType => write!(f, "{value:#x}"),
            _ => write!(f, "{value}"),
        }
    }
}

/// Returns whether the notation of the field's mask is a prefix length.
fn shows_prefix(field: Field) -> bool {
    matches!(
        field,
        Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::ArpSpa
            | Field::ArpTpa
            | Field::Ipv6Src
            | Field::Ipv6Dst
    )
}

/// Returns whether the field's value is an address, not a number.
fn is_address(field: Field) -> bool {
    shows_prefix(field)
        || matches!(field, Field::EthDst | Field::EthSrc)
        || matches!(field, Field::ArpSha | Field::ArpTha)
}

impl fmt::Display for FieldMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldMatch { field, value, mask } = *self;
        write!(f, "{field}=")?;
        match field {
            Field::VlanVid if self.is_exact() && value == 0 => return f.write_str("none"),
            Field::VlanVid if self.is_exact() && value >= VLAN_PRESENT => {
                return write!(f, "{}", value & 0xfff);
            }
            Field::VlanVid if (value, mask) == (VLAN_PRESENT, VLAN_PRESENT) => {
                return f.write_str("any");
            }
            _ => {}
        }
        match self.prefix_length() {
            _ if self.is_exact() => write!(f, "{}", ShowValue(field, value)),
            Some(length) if shows_prefix(field) => {
                write!(f, "{}/{length}", ShowValue(field, value))
            }
            _ if is_address(field) => {
                write!(f, "{}/{}", ShowValue(field, value), ShowValue(field, mask))
            }
            _ => write!(f, "{value:#x}/{mask:#x}"),
        }
    }
}

impl fmt::Display for ExperimenterField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked = if self.has_mask { "/" } else { "" };
        write!(f, "field_{:#06x}_{}{masked}={}", self.class, self.number, Hex(&self.body))
    }
}

/// Returns an eight-bit field with its upper byte, as the 16 bits on the wire.
fn with_upper(row: &FieldMatch, upper: u8) -> FieldMatch {
    FieldMatch { value: row.value | u128::from(upper) << 8, ..*row }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        let as_sent = |row: &FieldMatch| match row.field {
            Field::Icmpv4Type | Field::Icmpv6Type => with_upper(row, self.icmp_upper[0]),
            Field::Icmpv4Code | Field::Icmpv6Code => with_upper(row, self.icmp_upper[1]),
            _ => *row,
        };
        super::text::list(f, &self.fields.iter().map(as_sent).collect::<Vec<_>>())?;
        if !self.fields.is_empty() && !self.experimenter.is_empty() {
            f.write_str(",")?;
        }
        super::text::list(f, &self.experimenter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_and_values_are_masked() {
        let matching = Match::ANY
            .with(Field::Ipv4Dst, 0x0a01_0203u32)
            .with_ipv4(Field::Ipv4Src, Ipv4Addr::new(10, 1, 2, 3), 15)
            .with(Field::EthType, 0x1_0800u32);
        let names: Vec<_> = matching.fields().iter().map(|row| row.field).collect();
        assert_eq!(names, [Field::EthType, Field::Ipv4Src, Field::Ipv4Dst]);
        assert_eq!(matching.get(Field::Ipv4Src), Some((0x0a00_0000, 0xfffe_0000)));
        assert_eq!(matching.value(Field::Ipv4Src), None);
        assert_eq!(matching.value(Field::EthType), Some(0x0800));
        assert_eq!(matching.fields()[1].prefix_length(), Some(15));
        let open = matching.with_masked(Field::Ipv4Src, 0u8, 0u8).without(Field::EthType);
        assert_eq!(open, Match::ANY.with(Field::Ipv4Dst, 0x0a01_0203u32));
    }

    #[test]
    fn a_match_prints_its_fields_in_order() {
        let all = Match::ANY
            .with(Field::InPort, 1u8)
            .with_mac(Field::EthSrc, [2, 0, 0, 0, 0, 0xa])
            .untagged()
            .with(Field::EthType, 0x800u16)
            .with_ipv4(Field::Ipv4Src, Ipv4Addr::new(10, 9, 9, 9), 8)
            .with(Field::TcpDst, 80u8)
            .with_masked(Field::Metadata, 0x12u8, 0xffu8);
        let want = "in_port=1,metadata=0x12/0xff,eth_src=02:00:00:00:00:0a,eth_type=0x0800,\
                    vlan_vid=none,ipv4_src=10.0.0.0/8,tcp_dst=80";
        assert_eq!(all.to_string(), want);
        assert_eq!(Match::ANY.to_string(), "any");
        assert_eq!(Match::ANY.with_vlan(7).to_string(), "vlan_vid=7");
        let any_tag = Match::ANY.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
        assert_eq!(any_tag.to_string(), "vlan_vid=any");
    }

    #[test]
    fn a_missing_prerequisite_is_named() {
        let tcp = Match::ANY.with(Field::TcpDst, 80u8);
        assert_eq!(tcp.unmet(), Some(Field::TcpDst));
        let tcp = tcp.with(Field::IpProto, 6u8);
        assert_eq!(tcp.unmet(), Some(Field::IpProto));
        assert_eq!(tcp.clone().with(Field::EthType, 0x86ddu16).unmet(), None);
        assert_eq!(tcp.clone().with(Field::PacketType, 0x1_86ddu32).unmet(), None);
        assert_eq!(tcp.with(Field::EthType, 0x806u16).unmet(), Some(Field::IpProto));
        let pcp = Match::ANY.with(Field::VlanPcp, 3u8);
        assert_eq!(pcp.unmet(), Some(Field::VlanPcp));
        assert_eq!(pcp.clone().untagged().unmet(), Some(Field::VlanPcp));
        assert_eq!(pcp.with_vlan(0).unmet(), None);
    }
}
