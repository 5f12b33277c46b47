//! Encodes and decodes tables: configuration, descriptions and statistics.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.1.0 and 1.2 sections A.3.3 and A.3.5.3, 1.4.1 sections
//! 7.3.4.1, 7.3.5.16 and 7.4.5. Before 1.3 the capabilities are part of the statistics.

mod features;

use packet::error::{Malformed, MalformedReason};
use packet::field::{Field, FieldSet};

use super::bytes::{Put, Reader, put_length, read_length};
use super::matching::{wildcards_from_wire, wildcards_to_wire};
use super::multipart::MultipartRow;
use super::property::{EXPERIMENTER, Property, put_experimenter, put_property, read_properties};
use super::{Fault, MessagePart};
use crate::model::kinds::{ActionKinds, InstructionKinds};
use crate::model::table::{
    EvictionFlags, TableAbilities, TableConfig, TableDescription, TableMiss, TableMod,
    TableModProperty, TableStats, TableStatus, TableStatusReason,
};
use crate::version::{ErrorCode, Version, oxm_field, oxm_number};

/// Bytes of a table name.
pub(super) const NAME_BYTES: usize = 32;

/// Table-miss bits of a configuration.
const MISS_MASK: u32 = 3;

const EVICTION_BIT: u32 = 1 << 2;

const VACANCY_EVENTS_BIT: u32 = 1 << 3;

const EVICTION: u16 = 2;

const VACANCY: u16 = 3;

/// Codes of the reasons.
const VACANCY_DOWN: u8 = 3;

const VACANCY_UP: u8 = 4;

/// Returns the bits of a configuration.
pub(super) fn config_to_wire(version: Version, config: TableConfig) -> Result<u32, MessagePart> {
    let miss = match config.miss {
        TableMiss::Controller => 0,
        TableMiss::Continue => 1,
        TableMiss::Drop => 2,
    };
    let is_1_4 = version >= Version::V1_4;
    let bit = |is_set: bool, bit: u32, name: &'static str| match is_set {
        false => Ok(0),
        true if is_1_4 => Ok(bit),
        true => Err(MessagePart::Bit(name)),
    };
    let eviction = bit(config.eviction, EVICTION_BIT, "eviction")?;
    Ok(miss | eviction | bit(config.vacancy_events, VACANCY_EVENTS_BIT, "vacancy_events")?)
}

/// Returns the configuration of these bits, and the unknown bits.
pub(super) fn config_from_wire(version: Version, wire: u32) -> (TableConfig, u32) {
    let (miss, mut unknown) = match wire & MISS_MASK {
        0 => (TableMiss::Controller, 0),
        1 => (TableMiss::Continue, 0),
        2 => (TableMiss::Drop, 0),
        both if version < Version::V1_3 => (TableMiss::Controller, both),
        _ => (TableMiss::Controller, 0),
    };
    let known = match version >= Version::V1_4 {
        true => MISS_MASK | EVICTION_BIT | VACANCY_EVENTS_BIT,
        false => MISS_MASK,
    };
    unknown |= wire & !known;
    let config = TableConfig {
        miss,
        eviction: wire & known & EVICTION_BIT != 0,
        vacancy_events: wire & known & VACANCY_EVENTS_BIT != 0,
    };
    (config, unknown)
}

/// Appends a table-mod's body.
pub(super) fn put_table_mod(
    version: Version,
    change: &TableMod,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u8(change.table);
    out.put_zeros(3);
    out.put_u32(config_to_wire(version, change.config)?);
    put_properties(version, &change.properties, out)
}

/// Reads a table-mod's body.
pub(super) fn read_table_mod(version: Version, reader: &mut Reader) -> Result<TableMod, Fault> {
    let table = reader.u8()?;
    reader.skip(3)?;
    let at = reader.at();
    let (config, unknown) = config_from_wire(version, reader.u32()?);
    if unknown != 0 {
        return Err(Fault::value(at, unknown, ErrorCode::TableModBadConfig));
    }
    let mut change = TableMod { table, config, properties: Vec::new() };
    if version >= Version::V1_4 {
        change.properties = read_table_properties(version, reader)?;
    }
    Ok(change)
}

fn put_properties(
    version: Version,
    properties: &[TableModProperty],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version < Version::V1_4 && !properties.is_empty() {
        return Err(MessagePart::Bit("table properties"));
    }
    properties.iter().try_for_each(|property| match property {
        TableModProperty::Eviction(flags) => put_property(EVICTION, out, |out| {
            out.put_u32(flags.to_wire(version).map_err(MessagePart::Bit)?);
            Ok(())
        }),
        TableModProperty::Vacancy { down, up, vacancy } => put_property(VACANCY, out, |out| {
            out.extend_from_slice(&[*down, *up, *vacancy, 0]);
            Ok(())
        }),
        TableModProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
    })
}

/// Reads properties. Each type occurs at most once, except the experimenter's.
fn read_table_properties(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<TableModProperty>, Fault> {
    let mut seen = Vec::new();
    read_properties(reader, |property| {
        let (kind, at) = (property.kind, property.at);
        if kind != EXPERIMENTER && seen.contains(&kind) {
            return Err(Fault::value(at, kind, ErrorCode::PropertyDuplicateType));
        }
        seen.push(kind);
        read_table_property(version, property)
    })
}

fn read_table_property(version: Version, property: Property) -> Result<TableModProperty, Fault> {
    let at = property.at + 4;
    Ok(match property.kind {
        EVICTION => {
            let (flags, unknown) =
                property.read(|body| Ok(EvictionFlags::from_wire(version, body.u32()?)))?;
            if unknown != 0 {
                return Err(Fault::value(at, unknown, ErrorCode::PropertyBadValue));
            }
            TableModProperty::Eviction(flags)
        }
        VACANCY => property.read(|body| {
            let [down, up, vacancy, _] = body.array()?;
            Ok(TableModProperty::Vacancy { down, up, vacancy })
        })?,
        EXPERIMENTER => TableModProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}

impl MultipartRow for TableDescription {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        out.put_u8(self.table);
        out.put_zeros(1);
        out.put_u32(config_to_wire(version, self.config)?);
        put_properties(version, &self.properties, out)?;
        put_length("table description", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, 8, 0)?;
        let table = row.u8()?;
        row.skip(1)?;
        let (config, _) = config_from_wire(version, row.u32()?);
        let properties = read_table_properties(version, &mut row)?;
        Ok(TableDescription { table, config, properties })
    }
}

/// Appends a table-status body.
pub(super) fn put_table_status(
    version: Version,
    status: &TableStatus,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u8(match status.reason {
        TableStatusReason::VacancyDown => VACANCY_DOWN,
        TableStatusReason::VacancyUp => VACANCY_UP,
    });
    out.put_zeros(7);
    status.table.put(version, out)
}

/// Reads a table-status body.
pub(super) fn read_table_status(
    version: Version,
    reader: &mut Reader,
) -> Result<TableStatus, Fault> {
    let at = reader.at();
    let reason = match reader.u8()? {
        VACANCY_DOWN => TableStatusReason::VacancyDown,
        VACANCY_UP => TableStatusReason::VacancyUp,
        other => return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into()),
    };
    reader.skip(7)?;
    Ok(TableStatus { reason, table: TableDescription::read(version, reader)? })
}

impl MultipartRow for TableStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        out.put_u8(self.table);
        if version >= Version::V1_3 {
            if self.abilities.is_some() {
                return Err(MessagePart::Bit("capabilities in table statistics"));
            }
            out.put_zeros(3);
        } else {
            let none = TableAbilities::default();
            put_abilities(version, self.abilities.as_ref().unwrap_or(&none), out)?;
        }
        out.put_u32(self.entries);
        out.put_u64(self.lookups);
        out.put_u64(self.matched);
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let table = reader.u8()?;
        let mut abilities = None;
        if version >= Version::V1_3 {
            reader.skip(3)?;
        } else {
            abilities = Some(read_abilities(version, reader)?);
        }
        let (entries, lookups, matched) = (reader.u32()?, reader.u64()?, reader.u64()?);
        Ok(TableStats { table, entries, lookups, matched, abilities })
    }
}

fn put_abilities(
    version: Version,
    abilities: &TableAbilities,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_zeros(if version == Version::V1_0 { 3 } else { 7 });
    out.put_text("table name", &abilities.name, NAME_BYTES)?;
    let kinds = |kinds: ActionKinds| kinds.to_wire(version).map_err(MessagePart::Action);
    let instructions = abilities.instructions.to_wire(version);
    let instructions = instructions.map_err(|kind| MessagePart::Bit(kind.name()));
    match version {
        Version::V1_0 => out.put_u32(wildcards_to_wire(abilities.wildcards)),
        Version::V1_1 => {
            out.put_u32(bits_of_fields(FIELDS_1_1, abilities.wildcards)?);
            out.put_u32(bits_of_fields(FIELDS_1_1, abilities.matches)?);
            out.put_u32(instructions?);
            out.put_u32(kinds(abilities.write_actions)?);
            out.put_u32(kinds(abilities.apply_actions)?);
            out.put_u32(config_to_wire(version, abilities.config)?);
        }
        _ => {
            out.put_u64(bits_of_numbers(version, abilities.matches)?);
            out.put_u64(bits_of_numbers(version, abilities.wildcards)?);
            out.put_u32(kinds(abilities.write_actions)?);
            out.put_u32(kinds(abilities.apply_actions)?);
            out.put_u64(bits_of_numbers(version, abilities.write_fields)?);
            out.put_u64(bits_of_numbers(version, abilities.apply_fields)?);
            out.put_u64(abilities.metadata_match);
            out.put_u64(abilities.metadata_write);
            out.put_u32(instructions?);
            out.put_u32(config_to_wire(version, abilities.config)?);
        }
    }
    out.put_u32(abilities.entries_max);
    Ok(())
}

fn read_abilities(version: Version, reader: &mut Reader) -> Result<TableAbilities, Malformed> {
    reader.skip(if version == Version::V1_0 { 3 } else { 7 })?;
    let mut abilities =
        TableAbilities { name: reader.text(NAME_BYTES)?, ..TableAbilities::default() };
    let kinds = |reader: &mut Reader| -> Result<ActionKinds, Malformed> {
        Ok(ActionKinds::from_wire(version, reader.u32()?))
    };
    let fields = |reader: &mut Reader| -> Result<FieldSet, Malformed> {
        Ok(fields_of_numbers(version, reader.u64()?))
    };
    match version {
        Version::V1_0 => abilities.wildcards = wildcards_from_wire(reader.u32()?),
        Version::V1_1 => {
            abilities.wildcards = fields_of_bits(FIELDS_1_1, reader.u32()?);
            abilities.matches = fields_of_bits(FIELDS_1_1, reader.u32()?);
            abilities.instructions = InstructionKinds::from_wire(version, reader.u32()?);
            abilities.write_actions = kinds(reader)?;
            abilities.apply_actions = kinds(reader)?;
            abilities.config = config_from_wire(version, reader.u32()?).0;
        }
        _ => {
            abilities.matches = fields(reader)?;
            abilities.wildcards = fields(reader)?;
            abilities.write_actions = kinds(reader)?;
            abilities.apply_actions = kinds(reader)?;
            abilities.write_fields = fields(reader)?;
            abilities.apply_fields = fields(reader)?;
            abilities.metadata_match = reader.u64()?;
            abilities.metadata_write = reader.u64()?;
            abilities.instructions = InstructionKinds::from_wire(version, reader.u32()?);
            abilities.config = config_from_wire(version, reader.u32()?).0;
        }
    }
    abilities.entries_max = reader.u32()?;
    Ok(abilities)
}

/// Bits, and the fields of each.
type FieldBits = &'static [(u32, &'static [Field])];

/// The 1.1 bits of fields (`ofp_flow_match_fields`), without the one for the match type.
const FIELDS_1_1: FieldBits = &[
    (1 << 0, &[Field::InPort]),
    (1 << 1, &[Field::VlanVid]),
    (1 << 2, &[Field::VlanPcp]),
    (1 << 3, &[Field::EthType]),
    (1 << 4, &[Field::IpDscp]),
    (1 << 5, &[Field::IpProto, Field::ArpOp]),
    (1 << 6, &[Field::TcpSrc, Field::UdpSrc, Field::SctpSrc, Field::Icmpv4Type]),
    (1 << 7, &[Field::TcpDst, Field::UdpDst, Field::SctpDst, Field::Icmpv4Code]),
    (1 << 8, &[Field::MplsLabel]),
    (1 << 9, &[Field::MplsTc]),
    (1 << 11, &[Field::EthSrc]),
    (1 << 12, &[Field::EthDst]),
    (1 << 13, &[Field::Ipv4Src, Field::ArpSpa]),
    (1 << 14, &[Field::Ipv4Dst, Field::ArpTpa]),
    (1 << 15, &[Field::Metadata]),
];

/// Returns the bits of these fields.
fn bits_of_fields(table: FieldBits, fields: FieldSet) -> Result<u32, MessagePart> {
    fields.iter().try_fold(0, |wire, field| {
        let row = table.iter().find(|(_, fields)| fields.contains(&field));
        row.map(|(bits, _)| wire | bits).ok_or(MessagePart::Bit(field.name()))
    })
}

/// Returns the fields of these bits.
fn fields_of_bits(table: FieldBits, wire: u32) -> FieldSet {
    let set = table.iter().filter(|(bits, _)| wire & bits != 0);
    set.flat_map(|(_, fields)| fields.iter().copied()).collect()
}

/// Returns the bits at the positions of the field numbers.
fn bits_of_numbers(version: Version, fields: FieldSet) -> Result<u64, MessagePart> {
    fields.iter().try_fold(0, |wire, field| {
        let number = oxm_number(version, field).ok_or(MessagePart::Bit(field.name()))?;
        Ok(wire | 1 << number)
    })
}

/// Returns the fields whose number's bit is set.
fn fields_of_numbers(version: Version, wire: u64) -> FieldSet {
    (0..64).filter(|number| wire & 1 << number != 0).filter_map(|n| oxm_field(version, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::version::MessageKind;

    #[test]
    fn a_table_mod_has_properties_from_1_4_on() {
        let mut change = TableMod { table: 0xff, ..TableMod::default() };
        change.config.miss = TableMiss::Drop;
        check(Version::V1_1, &Message::TableMod(change.clone()), "ff000000 00000002");
        change.config = TableConfig { eviction: true, ..TableConfig::default() };
        let eviction = EvictionFlags::OTHER | EvictionFlags::LIFETIME;
        change.properties = vec![
            TableModProperty::Eviction(eviction),
            TableModProperty::Vacancy { down: 10, up: 20, vacancy: 0 },
        ];
        let hex = "ff000000 00000004 00020008 00000005 00030008 0a140000";
        check(Version::V1_4, &Message::TableMod(change.clone()), hex);
        let error = body_of(Version::V1_3, &Message::TableMod(change)).unwrap_err();
        assert_eq!(error, MessagePart::Bit("eviction"));
        let refused = |version, hex: &str| refused(version, MessageKind::TableMod, hex);
        assert_eq!(refused(Version::V1_2, "01000000 00000003"), ErrorCode::TableModBadConfig);
        assert_eq!(refused(Version::V1_3, "01000000 00000004"), ErrorCode::TableModBadConfig);
        let unknown = "01000000 00000000 00020008 00000010";
        assert_eq!(refused(Version::V1_4, unknown), ErrorCode::PropertyBadValue);
    }

    #[test]
    fn table_statistics_are_shorter_from_1_3_on() {
        let bytes = |version| {
            let mut out = Vec::new();
            TableStats::default().put(version, &mut out).unwrap();
            out.len()
        };
        assert_eq!(Version::ALL.map(bytes), [64, 88, 128, 24, 24, 24]);
        let abilities = TableAbilities {
            matches: FieldSet::NONE.with(Field::InPort).with(Field::MplsTc),
            ..TableAbilities::default()
        };
        let stats = TableStats { abilities: Some(abilities), ..TableStats::default() };
        let mut out = Vec::new();
        stats.put(Version::V1_2, &mut out).unwrap();
        assert_eq!(out[40..48], [0, 0, 0, 8, 0, 0, 0, 1]);
        let back = TableStats::read(Version::V1_2, &mut Reader::new(&out, 0)).unwrap();
        assert_eq!(back, stats);
        assert!(stats.put(Version::V1_3, &mut out).is_err());
    }
}
