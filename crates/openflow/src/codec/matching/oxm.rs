//! Match fields as a list of types, lengths and values: OXM of 1.2 and later, and Nicira's NXM.
//!
//! Source: OpenFlow 1.3.5 section 7.2.3; `nicira-ext.h` of Open vSwitch for classes 0 and 1.
//! ```text
//! class:2 number:7bits has_mask:1bit length:1 value:n mask:n
//! ```
//!
//! - A field follows its prerequisites and occurs at most once.
//! - A value has no bits outside its mask.
//! - Decoding leaves fields of other classes as received, unless a basic field is equivalent.

mod plain;

use packet::error::{Malformed, MalformedReason};

use super::super::bytes::{Put, Reader};
use super::super::port::{port_from_wire, port_to_wire};
use super::super::{Fault, MessagePart};
use crate::model::matching::{
    ExperimenterField, Field, FieldMatch, Match, PrerequisiteFields, VLAN_PRESENT,
};
use crate::version::{ErrorCode, Version, oxm_bytes, oxm_field, oxm_number};

/// The OXM class of the specification's fields.
pub(crate) const CLASS_BASIC: u16 = 0x8000;
/// The OXM class of experimenter fields, whose value starts with the experimenter ID.
pub(crate) const CLASS_EXPERIMENTER: u16 = 0xffff;
const CLASS_NXM_0: u16 = 0;
const CLASS_NXM_1: u16 = 1;

/// Experimenter ID of the Open Networking Foundation.
const ONF: u32 = 0x4f4e_4600;

/// Maximum field number, of seven bits.
const NUMBER_MAX: u8 = 0x7f;

/// Bytes of an OXM header.
const HEADER_BYTES: usize = 4;

/// Assumed bytes of a field, for the capacity of a match.
const FIELD_BYTES: usize = 6;

/// `NXM_OF_VLAN_TCI`: VLAN priority, tag bit and VLAN ID in one field.
const NXM_VLAN_TCI: u8 = 4;
const TCI_PCP_SHIFT: u32 = 13;

/// The parts of an OXM header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldHeader {
    pub class: u16,
    pub number: u8,
    pub has_mask: bool,
    pub length: u8,
}

impl FieldHeader {
    pub(crate) const fn from_wire(wire: u32) -> FieldHeader {
        FieldHeader {
            class: (wire >> 16) as u16,
            number: (wire >> 9) as u8 & NUMBER_MAX,
            has_mask: wire & 0x100 != 0,
            length: wire as u8,
        }
    }

    pub(crate) const fn to_wire(self) -> u32 {
        (self.class as u32) << 16
            | (self.number as u32) << 9
            | (self.has_mask as u32) << 8
            | self.length as u32
    }
}

/// Encoding of a field on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OxmEncoding {
    class: u16,
    number: u8,
    /// Bytes of the value.
    bytes: usize,
    /// Left shift of the value.
    shift: u32,
}

impl OxmEncoding {
    fn basic(number: u8, field: Field) -> OxmEncoding {
        OxmEncoding { class: CLASS_BASIC, number, bytes: oxm_bytes(field), shift: 0 }
    }

    /// Returns the bytes of the experimenter ID.
    fn extra(self) -> usize {
        if self.class == CLASS_EXPERIMENTER { 4 } else { 0 }
    }

    pub(crate) fn header(self, has_mask: bool) -> FieldHeader {
        let length = self.extra() + self.bytes * (1 + usize::from(has_mask));
        FieldHeader { class: self.class, number: self.number, has_mask, length: length as u8 }
    }
}

/// NXM numbers of fields.
const NXM: [(u16, u8, Field); 30] = [
    (CLASS_NXM_0, 1, Field::EthDst),
    (CLASS_NXM_0, 2, Field::EthSrc),
    (CLASS_NXM_0, 3, Field::EthType),
    (CLASS_NXM_0, 6, Field::IpProto),
    (CLASS_NXM_0, 7, Field::Ipv4Src),
    (CLASS_NXM_0, 8, Field::Ipv4Dst),
    (CLASS_NXM_0, 9, Field::TcpSrc),
    (CLASS_NXM_0, 10, Field::TcpDst),
    (CLASS_NXM_0, 11, Field::UdpSrc),
    (CLASS_NXM_0, 12, Field::UdpDst),
    (CLASS_NXM_0, 13, Field::Icmpv4Type),
    (CLASS_NXM_0, 14, Field::Icmpv4Code),
    (CLASS_NXM_0, 15, Field::ArpOp),
    (CLASS_NXM_0, 16, Field::ArpSpa),
    (CLASS_NXM_0, 17, Field::ArpTpa),
    (CLASS_NXM_1, 16, Field::TunnelId),
    (CLASS_NXM_1, 17, Field::ArpSha),
    (CLASS_NXM_1, 18, Field::ArpTha),
    (CLASS_NXM_1, 19, Field::Ipv6Src),
    (CLASS_NXM_1, 20, Field::Ipv6Dst),
    (CLASS_NXM_1, 21, Field::Icmpv6Type),
    (CLASS_NXM_1, 22, Field::Icmpv6Code),
    (CLASS_NXM_1, 23, Field::Ipv6NdTarget),
    (CLASS_NXM_1, 24, Field::Ipv6NdSll),
    (CLASS_NXM_1, 25, Field::Ipv6NdTll),
    (CLASS_NXM_1, 27, Field::Ipv6Flabel),
    (CLASS_NXM_1, 28, Field::IpEcn),
    (CLASS_NXM_1, 34, Field::TcpFlags),
    (CLASS_NXM_0, 0, Field::InPort),
    (CLASS_NXM_0, 5, Field::IpDscp),
];

/// Returns the encoding of a Nicira field.
fn nxm_place(class: u16, number: u8, field: Field) -> OxmEncoding {
    let (bytes, shift) = match field {
        Field::InPort => (2, 0),
        Field::IpDscp => (1, 2),
        field => (oxm_bytes(field), 0),
    };
    OxmEncoding { class, number, bytes, shift }
}

/// Returns the encoding of a field in a version, if it has one.
///
/// 1.0 uses NXM, and OXM for fields that NXM does not have.
pub(crate) fn place(version: Version, field: Field) -> Option<OxmEncoding> {
    if version == Version::V1_0 {
        let row = NXM.iter().find(|row| row.2 == field);
        let nxm = row.map(|&(class, number, field)| nxm_place(class, number, field));
        return nxm.or_else(|| Some(OxmEncoding::basic(oxm_number(Version::V1_5, field)?, field)));
    }
    if let Some(number) = oxm_number(version, field) {
        return Some(OxmEncoding::basic(number, field));
    }
    let has_extension = version == Version::V1_3 || version == Version::V1_4;
    match field {
        Field::TcpFlags | Field::ActsetOutput if has_extension => {
            let number = oxm_number(Version::V1_5, field)?;
            let bytes = oxm_bytes(field);
            Some(OxmEncoding { class: CLASS_EXPERIMENTER, number, bytes, shift: 0 })
        }
        _ => None,
    }
}

/// Returns the field with this header.
///
/// `experimenter` is the experimenter ID at the start of the body, for the experimenter class.
pub(crate) fn field_of(
    version: Version,
    header: FieldHeader,
    experimenter: Option<u32>,
) -> Option<(Field, OxmEncoding)> {
    let FieldHeader { class, number, .. } = header;
    match class {
        CLASS_BASIC => {
            let column = if version == Version::V1_0 { Version::V1_5 } else { version };
            let field = oxm_field(column, number)?;
            Some((field, OxmEncoding::basic(number, field)))
        }
        CLASS_NXM_0 | CLASS_NXM_1 => {
            let row = NXM.iter().find(|row| (row.0, row.1) == (class, number));
            // Keep a Nicira field that has no equivalent in the version.
            let has_own = |field| version == Version::V1_0 || place(version, field).is_some();
            row.filter(|row| has_own(row.2))
                .map(|&(class, number, field)| (field, nxm_place(class, number, field)))
        }
        CLASS_EXPERIMENTER if experimenter == Some(ONF) => {
            let field = oxm_field(Version::V1_5, number)?;
            let place = place(version, field)?;
            (place.class == CLASS_EXPERIMENTER).then_some((field, place))
        }
        _ => None,
    }
}

/// Appends the fields of a match.
pub(crate) fn put_fields(
    version: Version,
    value: &Match,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if let Some(field) = value.unmet() {
        return Err(MessagePart::Prerequisite(field));
    }
    // The packet type is a prerequisite of other fields, so it comes first.
    let is_type = |row: &&FieldMatch| row.field == Field::PacketType;
    let rest = value.fields().iter().filter(|row| !is_type(row));
    for row in value.fields().iter().filter(is_type).chain(rest) {
        if !row.is_exact() && !takes_mask(version, row.field) {
            return Err(MessagePart::Mask(row.field));
        }
        if version == Version::V1_0 && matches!(row.field, Field::VlanVid | Field::VlanPcp) {
            continue;
        }
        put_field(version, row, out)?;
    }
    if version == Version::V1_0 {
        put_tci(value, out);
    }
    value.experimenter().iter().try_for_each(|field| put_other(version, field, out))
}

/// Returns whether the field may have a mask. For 1.0 the rules are Nicira's.
fn takes_mask(version: Version, field: Field) -> bool {
    field.maskable() || version == Version::V1_0 && field.maskable_by_nicira()
}

/// Appends an unknown field. Fails for one that this version would decode as a known field.
fn put_other(
    version: Version,
    field: &ExperimenterField,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let length = field.body.len() as u8;
    let ExperimenterField { class, number, has_mask, .. } = *field;
    let experimenter = field.body.first_chunk().map(|number| u32::from_be_bytes(*number));
    match field_of(version, FieldHeader { class, number, has_mask, length }, experimenter) {
        Some((known, _)) => Err(MessagePart::Field(known)),
        None => put_experimenter(field, out),
    }
}

/// Appends a field with its value, and with its mask if that is partial.
pub(crate) fn put_field(
    version: Version,
    row: &FieldMatch,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_field_masked(version, row, !row.is_exact(), out)
}

/// Appends a field with its value, and with its mask if `has_mask`.
pub(crate) fn put_field_masked(
    version: Version,
    row: &FieldMatch,
    has_mask: bool,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let place = place(version, row.field).ok_or(MessagePart::Field(row.field))?;
    if row.field == Field::VlanVid && row.is_exact() && (1..VLAN_PRESENT).contains(&row.value) {
        return Err(MessagePart::Value { field: "vlan_vid", value: row.value as u64 });
    }
    out.put_u32(place.header(has_mask).to_wire());
    if place.class == CLASS_EXPERIMENTER {
        out.put_u32(ONF);
    }
    let value = match row.field {
        Field::InPort if place.bytes == 2 => port_to_wire(row.value as u32)?.into(),
        _ => row.value << place.shift,
    };
    put_number(value, place.bytes, out);
    if has_mask {
        put_number(row.mask << place.shift, place.bytes, out);
    }
    Ok(())
}

fn put_number(value: u128, bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
}

/// Appends VLAN tag and priority as NXM encodes them.
fn put_tci(value: &Match, out: &mut Vec<u8>) {
    let (vid, mut mask) = value.get(Field::VlanVid).unwrap_or_default();
    let (pcp, pcp_mask) = value.get(Field::VlanPcp).unwrap_or_default();
    if mask == Field::VlanVid.ones() && vid == 0 {
        mask = 0xffff;
    }
    let (tci, mask) = (vid | pcp << TCI_PCP_SHIFT, mask | pcp_mask << TCI_PCP_SHIFT);
    if mask == 0 {
        return;
    }
    let has_mask = mask != 0xffff;
    let place = OxmEncoding { class: CLASS_NXM_0, number: NXM_VLAN_TCI, bytes: 2, shift: 0 };
    out.put_u32(place.header(has_mask).to_wire());
    out.put_u16(tci as u16);
    if has_mask {
        out.put_u16(mask as u16);
    }
}

fn put_experimenter(field: &ExperimenterField, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let ExperimenterField { class, number, has_mask, ref body } = *field;
    let length = u8::try_from(body.len()).map_err(|_| MessagePart::TooLong {
        field: "experimenter's field",
        bytes: body.len(),
        bytes_max: 255,
    })?;
    if number > NUMBER_MAX {
        return Err(MessagePart::Value { field: "number of a field", value: number.into() });
    }
    out.put_u32(FieldHeader { class, number, has_mask, length }.to_wire());
    out.extend_from_slice(body);
    Ok(())
}

/// A decoded field.
pub(crate) enum DecodedField {
    /// A known field.
    Known(FieldMatch, FieldHeader),
    /// An unknown field.
    Other(ExperimenterField),
    /// Nicira's VLAN TCI: value and mask.
    Tci(u16, u16),
}

/// A fault in a field, with the error to reply with.
pub(crate) struct FieldFault {
    pub malformed: Malformed,
    pub answer: ErrorCode,
}

fn wrong(at: usize, value: u32, answer: ErrorCode) -> FieldFault {
    FieldFault { malformed: Malformed { at, why: MalformedReason::BadValue(value.into()) }, answer }
}

/// Reads one field.
pub(crate) fn read_field(
    version: Version,
    reader: &mut Reader,
) -> Result<DecodedField, FieldFault> {
    let short = |malformed| FieldFault { malformed, answer: ErrorCode::MatchBadLength };
    let at = reader.at();
    let wire = reader.u32().map_err(short)?;
    let header = FieldHeader::from_wire(wire);
    let mut body = reader.within(header.length.into()).map_err(short)?;
    let experimenter = match header.class {
        CLASS_EXPERIMENTER => Some(body.clone().u32().map_err(short)?),
        _ => None,
    };
    if (header.class, header.number) == (CLASS_NXM_0, NXM_VLAN_TCI) {
        return read_tci(header, &mut body).map_err(short);
    }
    let Some((field, place)) = field_of(version, header, experimenter) else {
        // Peers of earlier versions may send fields of later ones; keep them as received.
        let is_later = oxm_field(Version::V1_5, header.number).is_some();
        return match header.class {
            CLASS_BASIC if !is_later => Err(wrong(at, wire, ErrorCode::MatchBadField)),
            CLASS_EXPERIMENTER | CLASS_NXM_0 | CLASS_NXM_1 | CLASS_BASIC => {
                let FieldHeader { class, number, has_mask, .. } = header;
                let body = body.rest().to_vec();
                Ok(DecodedField::Other(ExperimenterField { class, number, has_mask, body }))
            }
            _ => Err(wrong(at, wire, ErrorCode::MatchBadField)),
        };
    };
    if header != place.header(header.has_mask) {
        let malformed = Malformed { at, why: MalformedReason::BadLength(header.length.into()) };
        return Err(FieldFault { malformed, answer: ErrorCode::MatchBadLength });
    }
    body.skip(place.extra()).map_err(short)?;
    let value = read_number(&mut body, place.bytes).map_err(short)?;
    let mask = match header.has_mask {
        true => read_number(&mut body, place.bytes).map_err(short)?,
        false => field.ones() << place.shift,
    };
    let all = field.ones() << place.shift;
    let row = FieldMatch { field, value: value >> place.shift, mask: mask >> place.shift };
    let answer = if value & !all != 0 {
        ErrorCode::MatchBadValue
    } else if mask & !all != 0 {
        ErrorCode::MatchBadMask
    } else if value & !mask != 0 {
        ErrorCode::MatchBadWildcards
    } else if field == Field::VlanVid && row.is_exact() && (1..VLAN_PRESENT).contains(&row.value) {
        ErrorCode::MatchBadValue
    } else {
        return Ok(DecodedField::Known(widened(row, place), header));
    };
    Err(wrong(at + HEADER_BYTES + place.extra(), value as u32, answer))
}

/// Converts a 16-bit port number to 32 bits.
fn widened(row: FieldMatch, place: OxmEncoding) -> FieldMatch {
    match row.field {
        Field::InPort if place.bytes == 2 => {
            FieldMatch::exact(row.field, port_from_wire(row.value as u16))
        }
        _ => row,
    }
}

fn read_number(body: &mut Reader, bytes: usize) -> Result<u128, Malformed> {
    let bytes = body.take(bytes)?;
    Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u128::from(byte)))
}

fn read_tci(header: FieldHeader, body: &mut Reader) -> Result<DecodedField, Malformed> {
    let value = body.u16()?;
    let mask = if header.has_mask { body.u16()? } else { 0xffff };
    body.finish()?;
    Ok(DecodedField::Tci(value & mask, mask))
}

/// Reads fields up to the end into a match.
pub(crate) fn read_fields(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    let mut matching = Match::with_capacity(reader.left() / FIELD_BYTES);
    let mut seen = packet::field::FieldSet::NONE;
    let mut basis = PrerequisiteFields::default();
    let mut others = Vec::new();
    while reader.left() > 0 {
        let at = reader.at();
        if let Some((row, bytes)) = plain::look(version, reader)
            && !seen.has(row.field)
            && basis.bears(row.field)
        {
            reader.skip(bytes)?;
            seen = seen.with(row.field);
            basis.note(&row);
            matching.set_clean(row);
            continue;
        }
        let refuse = |answer| Fault::value(at, 0u8, answer);
        let read = read_field(version, reader)
            .map_err(|wrong| Fault::new(wrong.malformed, wrong.answer))?;
        match read {
            DecodedField::Known(row, header) => {
                if header.has_mask && !takes_mask(version, row.field) && !row.is_exact() {
                    return Err(refuse(ErrorCode::MatchBadMask));
                }
                if seen.has(row.field) {
                    return Err(refuse(ErrorCode::MatchDuplicateField));
                }
                if !basis.bears(row.field) {
                    return Err(refuse(ErrorCode::MatchBadPrerequisite));
                }
                seen = seen.with(row.field);
                basis.note(&row);
                matching.set(row);
            }
            DecodedField::Tci(value, mask) => {
                if seen.has(Field::VlanVid) {
                    return Err(refuse(ErrorCode::MatchDuplicateField));
                }
                seen = seen.with(Field::VlanVid);
                set_tci(&mut matching, value, mask).map_err(refuse)?;
                basis = PrerequisiteFields::of(&matching);
            }
            DecodedField::Other(field) => others.push((at, field)),
        }
    }
    set_others(&mut matching, others)?;
    Ok(matching)
}

/// Adds unknown fields, each with its offset, to a match.
///
/// One message can have thousands. Sorting makes duplicates adjacent, which avoids quadratic time.
fn set_others(
    matching: &mut Match,
    mut others: Vec<(usize, ExperimenterField)>,
) -> Result<(), Fault> {
    fn name(field: &ExperimenterField) -> (u16, u8, Option<&[u8]>) {
        let is_experimenter = field.class == CLASS_EXPERIMENTER;
        (field.class, field.number, field.body.get(..4).filter(|_| is_experimenter))
    }
    others.sort_by(|(a_at, a), (b_at, b)| (name(a), a_at).cmp(&(name(b), b_at)));
    let twice = others.windows(2).find(|pair| name(&pair[0].1) == name(&pair[1].1));
    if let Some(pair) = twice {
        return Err(Fault::value(pair[1].0, 0u8, ErrorCode::MatchDuplicateField));
    }
    matching.push_experimenters(others.into_iter().map(|(_, field)| field));
    Ok(())
}

/// Adds Nicira's VLAN TCI to a match: untagged, any tag, VLAN ID or priority.
fn set_tci(matching: &mut Match, value: u16, mask: u16) -> Result<(), ErrorCode> {
    let (value, mask) = (u128::from(value), u128::from(mask));
    let vid = FieldMatch::masked(Field::VlanVid, value, mask);
    let (pcp, pcp_mask) = (value >> TCI_PCP_SHIFT, mask >> TCI_PCP_SHIFT);
    matching.set(vid);
    if vid.value & VLAN_PRESENT == 0 {
        // An untagged frame has neither VLAN ID nor priority.
        let is_whole = vid.mask & VLAN_PRESENT != 0 && value == 0;
        if is_whole {
            matching.set(FieldMatch::exact(Field::VlanVid, 0u8));
        }
        return if is_whole || mask == 0 { Ok(()) } else { Err(ErrorCode::MatchBadValue) };
    }
    match pcp_mask {
        0 => {}
        7 => matching.set(FieldMatch::exact(Field::VlanPcp, pcp)),
        _ => return Err(ErrorCode::MatchBadMask),
    }
    Ok(())
}
