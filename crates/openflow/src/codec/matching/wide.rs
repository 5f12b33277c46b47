//! The 1.1 match: fields at fixed positions, with masks for addresses and metadata.
//!
//! Source: OpenFlow 1.1.0 section A.2.3.
//! ```text
//! type:2 length:2 in_port:4 wildcards:4 eth_src:6 mask:6 eth_dst:6 mask:6 vlan_vid:2 vlan_pcp:1
//! pad:1 eth_type:2 tos:1 proto:1 ip_src:4 mask:4 ip_dst:4 mask:4 transport_src:2
//! transport_dst:2 mpls_label:4 mpls_tc:1 pad:3 metadata:8 mask:8
//! ```
//!
//! - A set wildcard bit means that the field is ignored; a set mask bit means that its bit is
//!   ignored.
//! - A field without its prerequisites is ignored too.
//! - Only the low byte of an ICMP type or code is matched (table 4).

use packet::error::{Malformed, MalformedReason};

use super::super::bytes::{Put, Reader};
use super::super::{Fault, MessagePart};
use super::fixed::{ARP, IPV4, whole};
use crate::model::matching::{Field, FieldMatch, Match, VLAN_PRESENT, bits_mac, transport_fields};
use crate::version::ErrorCode;

/// Bytes of the structure.
const MATCH_BYTES: usize = 88;
/// Match type of the structure.
const STANDARD: u16 = 0;

/// `vlan_vid` for any tag.
const VLAN_ANY: u16 = 0xfffe;
/// `vlan_vid` for untagged frames.
const VLAN_NONE: u16 = 0xffff;

const MPLS: [u16; 2] = [0x8847, 0x8848];

mod wildcard {
    pub const IN_PORT: u32 = 1 << 0;
    pub const VLAN: u32 = 1 << 1;
    pub const VLAN_PCP: u32 = 1 << 2;
    pub const ETH_TYPE: u32 = 1 << 3;
    pub const IP_DSCP: u32 = 1 << 4;
    pub const IP_PROTO: u32 = 1 << 5;
    pub const TRANSPORT_SRC: u32 = 1 << 6;
    pub const TRANSPORT_DST: u32 = 1 << 7;
    pub const MPLS_LABEL: u32 = 1 << 8;
    pub const MPLS_TC: u32 = 1 << 9;
    pub const ALL: u32 = (1 << 10) - 1;
}

/// The structure's fields as on the wire.
struct Fields {
    in_port: u32,
    wildcards: u32,
    /// Source and destination: value and ignored bits.
    macs: [(u64, u64); 2],
    vlan: u16,
    pcp: u8,
    eth_type: u16,
    tos: u8,
    proto: u8,
    ips: [(u32, u32); 2],
    ports: [u16; 2],
    label: u32,
    tc: u8,
    metadata: (u64, u64),
}

impl Fields {
    const OPEN: Fields = Fields {
        in_port: 0,
        wildcards: wildcard::ALL,
        macs: [(0, 0xffff_ffff_ffff); 2],
        vlan: 0,
        pcp: 0,
        eth_type: 0,
        tos: 0,
        proto: 0,
        ips: [(0, u32::MAX); 2],
        ports: [0; 2],
        label: 0,
        tc: 0,
        metadata: (0, u64::MAX),
    };

    fn name(&mut self, bit: u32) {
        self.wildcards &= !bit;
    }

    fn counts(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }

    fn put(&mut self, row: &FieldMatch, eth_type: Option<u16>) -> Result<(), MessagePart> {
        let is_ipv4 = eth_type == Some(IPV4);
        let (value, open) = (row.value as u64, !row.mask as u64);
        match row.field {
            Field::EthSrc => self.macs[0] = (value, open & 0xffff_ffff_ffff),
            Field::EthDst => self.macs[1] = (value, open & 0xffff_ffff_ffff),
            Field::Metadata => self.metadata = (value, open),
            Field::Ipv4Src | Field::ArpSpa => self.ips[0] = (value as u32, open as u32),
            Field::Ipv4Dst | Field::ArpTpa => self.ips[1] = (value as u32, open as u32),
            Field::VlanVid => self.put_vlan(row)?,
            field => {
                let value = whole(row)?;
                match field {
                    Field::InPort => {
                        self.in_port = value as u32;
                        self.name(wildcard::IN_PORT);
                    }
                    Field::VlanPcp => {
                        self.pcp = value as u8;
                        self.name(wildcard::VLAN_PCP);
                    }
                    Field::EthType => {
                        self.eth_type = value as u16;
                        self.name(wildcard::ETH_TYPE);
                    }
                    Field::MplsLabel => {
                        self.label = value as u32;
                        self.name(wildcard::MPLS_LABEL);
                    }
                    Field::MplsTc => {
                        self.tc = value as u8;
                        self.name(wildcard::MPLS_TC);
                    }
                    Field::ArpOp if value > 0xff => {
                        return Err(MessagePart::Value { field: field.name(), value });
                    }
                    Field::ArpOp => {
                        self.proto = value as u8;
                        self.name(wildcard::IP_PROTO);
                    }
                    field if is_ipv4 => self.put_ipv4(field, value)?,
                    field => return Err(MessagePart::Field(field)),
                }
            }
        }
        Ok(())
    }

    fn put_ipv4(&mut self, field: Field, value: u64) -> Result<(), MessagePart> {
        match field {
            Field::IpDscp => {
                self.tos = (value as u8) << 2;
                self.name(wildcard::IP_DSCP);
            }
            Field::IpProto => {
                self.proto = value as u8;
                self.name(wildcard::IP_PROTO);
            }
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type => {
                self.ports[0] = value as u16;
                self.name(wildcard::TRANSPORT_SRC);
            }
            Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code => {
                self.ports[1] = value as u16;
                self.name(wildcard::TRANSPORT_DST);
            }
            field => return Err(MessagePart::Field(field)),
        }
        Ok(())
    }

    fn put_vlan(&mut self, row: &FieldMatch) -> Result<(), MessagePart> {
        self.vlan = match row.value {
            0 if row.is_exact() => VLAN_NONE,
            VLAN_PRESENT.. if row.is_exact() => row.value as u16 & 0xfff,
            VLAN_PRESENT if row.mask == VLAN_PRESENT => VLAN_ANY,
            value if row.is_exact() => {
                return Err(MessagePart::Value { field: "vlan_vid", value: value as u64 });
            }
            _ => return Err(MessagePart::Mask(Field::VlanVid)),
        };
        self.name(wildcard::VLAN);
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_u16(STANDARD);
        out.put_u16(MATCH_BYTES as u16);
        out.put_u32(self.in_port);
        out.put_u32(self.wildcards);
        for (value, open) in self.macs {
            out.extend_from_slice(&bits_mac(value.into()));
            out.extend_from_slice(&bits_mac(open.into()));
        }
        out.put_u16(self.vlan);
        out.put_u8(self.pcp);
        out.put_zeros(1);
        out.put_u16(self.eth_type);
        out.put_u8(self.tos);
        out.put_u8(self.proto);
        for (value, open) in self.ips {
            out.put_u32(value);
            out.put_u32(open);
        }
        self.ports.iter().for_each(|&port| out.put_u16(port));
        out.put_u32(self.label);
        out.put_u8(self.tc);
        out.put_zeros(3);
        out.put_u64(self.metadata.0);
        out.put_u64(self.metadata.1);
    }

    fn read(reader: &mut Reader) -> Result<Fields, Malformed> {
        let mut fields = Fields::OPEN;
        fields.in_port = reader.u32()?;
        fields.wildcards = reader.u32()?;
        for mac in &mut fields.macs {
            *mac = (read_mac(reader)?, read_mac(reader)?);
        }
        fields.vlan = reader.u16()?;
        fields.pcp = reader.u8()?;
        reader.skip(1)?;
        fields.eth_type = reader.u16()?;
        fields.tos = reader.u8()?;
        fields.proto = reader.u8()?;
        for ip in &mut fields.ips {
            *ip = (reader.u32()?, reader.u32()?);
        }
        fields.ports = [reader.u16()?, reader.u16()?];
        fields.label = reader.u32()?;
        fields.tc = reader.u8()?;
        reader.skip(3)?;
        fields.metadata = (reader.u64()?, reader.u64()?);
        Ok(fields)
    }
}

fn read_mac(reader: &mut Reader) -> Result<u64, Malformed> {
    let [a, b, c, d, e, f] = reader.array()?;
    Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// Appends the match.
pub(super) fn put_match(value: &Match, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if let Some(field) = value.unmet() {
        return Err(MessagePart::Prerequisite(field));
    }
    if !value.experimenter().is_empty() {
        return Err(MessagePart::ExperimenterField);
    }
    let mut fields = Fields::OPEN;
    let eth_type = value.eth_type();
    value.fields().iter().try_for_each(|row| fields.put(row, eth_type))?;
    for (port, upper) in fields.ports.iter_mut().zip(value.icmp_upper()) {
        *port |= u16::from(upper) << 8;
    }
    fields.write(out);
    Ok(())
}

/// Reads a match. Rejects unknown wildcard bits.
pub(super) fn read_match(reader: &mut Reader) -> Result<Match, Fault> {
    let at = reader.at();
    let bad = |at, why, answer| Fault::new(Malformed { at, why }, answer);
    let kind = reader.u16()?;
    if kind != STANDARD {
        return Err(bad(at, MalformedReason::BadValue(kind.into()), ErrorCode::MatchBadType));
    }
    let length = usize::from(reader.u16()?);
    if length != MATCH_BYTES {
        return Err(bad(at + 2, MalformedReason::BadLength(length), ErrorCode::MatchBadLength));
    }
    let fields = Fields::read(reader)
        .map_err(|malformed| Fault::new(malformed, ErrorCode::MatchBadLength))?;
    if fields.wildcards & !wildcard::ALL != 0 {
        let why = MalformedReason::BadValue(fields.wildcards.into());
        return Err(bad(at + 8, why, ErrorCode::MatchBadWildcards));
    }
    let mut matching = Match::with_capacity(8);
    read_outer(&fields, &mut matching)
        .map_err(|value| bad(at, MalformedReason::BadValue(value), ErrorCode::MatchBadValue))?;
    let upper = match fields.eth_type {
        _ if !fields.counts(wildcard::ETH_TYPE) => Ok(()),
        IPV4 => read_ipv4(&fields, &mut matching),
        ARP => {
            read_arp(&fields, &mut matching);
            Ok(())
        }
        kind if MPLS.contains(&kind) => read_mpls(&fields, &mut matching),
        _ => Ok(()),
    };
    upper.map_err(|value| bad(at, MalformedReason::BadValue(value), ErrorCode::MatchBadValue))?;
    Ok(matching)
}

/// Returns an exact match on the value, or the value as an error if it does not fit.
fn exact(field: Field, value: u32) -> Result<FieldMatch, u64> {
    match u128::from(value) <= field.ones() {
        true => Ok(FieldMatch::exact(field, value)),
        false => Err(value.into()),
    }
}

fn read_outer(fields: &Fields, matching: &mut Match) -> Result<(), u64> {
    if fields.counts(wildcard::IN_PORT) {
        matching.set(FieldMatch::exact(Field::InPort, fields.in_port));
    }
    matching.set(FieldMatch::masked(Field::Metadata, fields.metadata.0, !fields.metadata.1));
    let [src, dst] = fields.macs;
    matching.set(FieldMatch::masked(Field::EthDst, dst.0, !dst.1));
    matching.set(FieldMatch::masked(Field::EthSrc, src.0, !src.1));
    if fields.counts(wildcard::ETH_TYPE) {
        matching.set(FieldMatch::exact(Field::EthType, fields.eth_type));
    }
    if !fields.counts(wildcard::VLAN) {
        return Ok(());
    }
    let tag = match fields.vlan {
        VLAN_NONE => {
            matching.set(FieldMatch::exact(Field::VlanVid, 0u8));
            return Ok(());
        }
        VLAN_ANY => FieldMatch::masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
        id @ 0..=0xfff => FieldMatch::exact(Field::VlanVid, VLAN_PRESENT | u128::from(id)),
        id => return Err(id.into()),
    };
    matching.set(tag);
    if fields.counts(wildcard::VLAN_PCP) {
        matching.set(exact(Field::VlanPcp, fields.pcp.into())?);
    }
    Ok(())
}

fn read_ipv4(fields: &Fields, matching: &mut Match) -> Result<(), u64> {
    if fields.counts(wildcard::IP_DSCP) {
        if fields.tos & 3 != 0 {
            return Err(fields.tos.into());
        }
        matching.set(FieldMatch::exact(Field::IpDscp, fields.tos >> 2));
    }
    let proto = fields.counts(wildcard::IP_PROTO).then_some(fields.proto);
    if let Some(proto) = proto {
        matching.set(FieldMatch::exact(Field::IpProto, proto));
    }
    let [src, dst] = fields.ips;
    matching.set(FieldMatch::masked(Field::Ipv4Src, src.0, !src.1));
    matching.set(FieldMatch::masked(Field::Ipv4Dst, dst.0, !dst.1));
    let Some((src, dst)) = proto.and_then(|proto| transport_fields(IPV4, proto)) else {
        return Ok(());
    };
    let mut upper = [0; 2];
    let places = [(wildcard::TRANSPORT_SRC, src), (wildcard::TRANSPORT_DST, dst)];
    for (at, (bit, field)) in places.into_iter().enumerate() {
        if fields.counts(bit) {
            matching.set(FieldMatch::exact(field, fields.ports[at]));
            if field.bits() == 8 {
                upper[at] = (fields.ports[at] >> 8) as u8;
            }
        }
    }
    matching.set_icmp_upper(upper);
    Ok(())
}

fn read_arp(fields: &Fields, matching: &mut Match) {
    if fields.counts(wildcard::IP_PROTO) {
        matching.set(FieldMatch::exact(Field::ArpOp, fields.proto));
    }
    let [src, dst] = fields.ips;
    matching.set(FieldMatch::masked(Field::ArpSpa, src.0, !src.1));
    matching.set(FieldMatch::masked(Field::ArpTpa, dst.0, !dst.1));
}

fn read_mpls(fields: &Fields, matching: &mut Match) -> Result<(), u64> {
    if fields.counts(wildcard::MPLS_LABEL) {
        matching.set(exact(Field::MplsLabel, fields.label)?);
    }
    if fields.counts(wildcard::MPLS_TC) {
        matching.set(exact(Field::MplsTc, fields.tc.into())?);
    }
    Ok(())
}
