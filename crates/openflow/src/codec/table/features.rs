//! Encodes and decodes table features.
//!
//! Source: OpenFlow 1.3.5, 1.4.1 and 1.5.1 section 7.3.5.5. The ID of an instruction or action is
//! the first four bytes of its header; an experimenter's has the experimenter ID after them.

use packet::error::Malformed;
use packet::field::Field;

use super::super::bytes::{Put, Reader, put_length, read_length};
use super::super::matching::field_id::{put_field_ids, read_field_ids};
use super::super::matching::oxm::CLASS_BASIC;
use super::super::multipart::MultipartRow;
use super::super::property::{
    Property, bad_length, put_experimenter, put_property, read_properties,
};
use super::super::{Fault, MessagePart};
use super::{NAME_BYTES, config_from_wire, config_to_wire};
use crate::model::action::Experimenter;
use crate::model::matching::field_id::FieldId;
use crate::model::table::features::{
    ActionId, ActionInstruction, InstructionId, TableFeatureFlags, TableFeatures,
    TableFeaturesCommand, TableProperty,
};
use crate::version::{ActionKind, ErrorCode, InstructionKind, Version, oxm_bytes, oxm_number};

/// Bytes of a table's features without properties.
const BYTES_MIN: usize = 64;

/// Bytes of the ID of an instruction or action.
const ID_BYTES: usize = 4;

/// Property types; plus one for the table-miss entry.
mod kind {
    pub const INSTRUCTIONS: u16 = 0;
    pub const NEXT_TABLES: u16 = 2;
    pub const WRITE_ACTIONS: u16 = 4;
    pub const APPLY_ACTIONS: u16 = 6;
    pub const MATCH: u16 = 8;
    pub const WILDCARDS: u16 = 10;
    pub const WRITE_SET_FIELD: u16 = 12;
    pub const APPLY_SET_FIELD: u16 = 14;
    pub const SYNCHRONIZED_FROM: u16 = 16;
    pub const WRITE_COPY_FIELD: u16 = 18;
    pub const APPLY_COPY_FIELD: u16 = 20;
    pub const PACKET_TYPES: u16 = 22;
    pub const EXPERIMENTER: u16 = 0xfffe;
}

impl MultipartRow for TableFeatures {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        out.put_u8(self.table);
        put_command(version, self, out)?;
        out.put_u32(self.flags.to_wire(version).map_err(MessagePart::Bit)?);
        out.put_text("table name", &self.name, NAME_BYTES)?;
        out.put_u64(self.metadata_match);
        out.put_u64(self.metadata_write);
        out.put_u32(config_to_wire(version, self.capabilities)?);
        out.put_u32(self.entries_max);
        for property in &self.properties {
            put_table_property(version, property, out)?;
        }
        put_length("table features", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, BYTES_MIN, 0).map_err(bad_length)?;
        let table = row.u8()?;
        let command = read_command(version, &mut row)?;
        let flags = read_flags(version, &mut row)?;
        let name = row.text(NAME_BYTES)?;
        let (metadata_match, metadata_write) = (row.u64()?, row.u64()?);
        let at = row.at();
        let (capabilities, unknown) = config_from_wire(version, row.u32()?);
        if version >= Version::V1_5 && unknown != 0 {
            return Err(Fault::value(at, unknown, ErrorCode::TableFeaturesBadCapabilities));
        }
        let entries_max = row.u32()?;
        let properties = read_each_once(version, &mut row)?;
        Ok(TableFeatures {
            table,
            command,
            flags,
            name,
            metadata_match,
            metadata_write,
            capabilities,
            entries_max,
            properties,
        })
    }
}

fn put_command(
    version: Version,
    features: &TableFeatures,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let command = match features.command {
        TableFeaturesCommand::Replace => 0,
        TableFeaturesCommand::Modify => 1,
        TableFeaturesCommand::Enable => 2,
        TableFeaturesCommand::Disable => 3,
    };
    if version < Version::V1_5 && command != 0 {
        return Err(MessagePart::Value { field: "table features command", value: command.into() });
    }
    out.put_u8(command);
    Ok(())
}

fn read_command(version: Version, row: &mut Reader) -> Result<TableFeaturesCommand, Fault> {
    let at = row.at();
    Ok(match row.u8()? {
        _ if version < Version::V1_5 => TableFeaturesCommand::Replace,
        0 => TableFeaturesCommand::Replace,
        1 => TableFeaturesCommand::Modify,
        2 => TableFeaturesCommand::Enable,
        3 => TableFeaturesCommand::Disable,
        other => return Err(Fault::value(at, other, ErrorCode::TableFeaturesBadCommand)),
    })
}

fn read_flags(version: Version, row: &mut Reader) -> Result<TableFeatureFlags, Fault> {
    let at = row.at();
    let (flags, unknown) = TableFeatureFlags::from_wire(version, row.u32()?);
    if version >= Version::V1_5 && unknown != 0 {
        return Err(Fault::value(at, unknown, ErrorCode::TableFeaturesBadFeatures));
    }
    Ok(flags)
}

/// Reads properties. Each type occurs at most once, except the experimenter's.
fn read_each_once(version: Version, row: &mut Reader) -> Result<Vec<TableProperty>, Fault> {
    let mut seen = Vec::new();
    read_properties(row, |property| {
        let (kind, at) = (property.kind, property.at);
        if kind < kind::EXPERIMENTER && seen.contains(&kind) {
            return Err(Fault::value(at, kind, ErrorCode::PropertyDuplicateType));
        }
        seen.push(kind);
        read_table_property(version, property)
    })
}

fn put_table_property(
    version: Version,
    property: &TableProperty,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let fields = |kind: u16, ids: &[FieldId], out: &mut Vec<u8>| {
        put_property(kind, out, |out| put_field_ids(version, ids, out))
    };
    let bytes = |kind: u16, bytes: &[u8], out: &mut Vec<u8>| {
        put_property(kind, out, |out| {
            out.extend_from_slice(bytes);
            Ok(())
        })
    };
    match property {
        TableProperty::Instructions { miss, ids } => {
            put_property(kind::INSTRUCTIONS + u16::from(*miss), out, |out| {
                ids.iter().try_for_each(|id| put_instruction_id(version, id, out))
            })
        }
        TableProperty::NextTables { miss, tables } => {
            bytes(kind::NEXT_TABLES + u16::from(*miss), tables, out)
        }
        TableProperty::Actions { when, miss, ids } => {
            let kind = choose(*when, kind::WRITE_ACTIONS, kind::APPLY_ACTIONS);
            put_property(kind + u16::from(*miss), out, |out| {
                ids.iter().try_for_each(|id| put_action_id(version, id, out))
            })
        }
        TableProperty::Match(ids) => fields(kind::MATCH, ids, out),
        TableProperty::Wildcards(ids) => fields(kind::WILDCARDS, ids, out),
        TableProperty::SetField { when, miss, ids } => {
            let kind = choose(*when, kind::WRITE_SET_FIELD, kind::APPLY_SET_FIELD);
            fields(kind + u16::from(*miss), ids, out)
        }
        TableProperty::Experimenter { miss, body } => {
            put_experimenter(kind::EXPERIMENTER + u16::from(*miss), body, out)
        }
        TableProperty::SynchronizedFrom(tables) if version >= Version::V1_4 => {
            bytes(kind::SYNCHRONIZED_FROM, tables, out)
        }
        TableProperty::CopyField { when, miss, ids } if version >= Version::V1_5 => {
            let kind = choose(*when, kind::WRITE_COPY_FIELD, kind::APPLY_COPY_FIELD);
            fields(kind + u16::from(*miss), ids, out)
        }
        TableProperty::PacketTypes(types) if version >= Version::V1_5 => {
            put_property(kind::PACKET_TYPES, out, |out| {
                types.iter().try_for_each(|value| put_packet_type(version, *value, out))
            })
        }
        TableProperty::SynchronizedFrom(_) => Err(MessagePart::Bit("synchronized_from")),
        TableProperty::CopyField { .. } => Err(MessagePart::Bit("copy_field")),
        TableProperty::PacketTypes(_) => Err(MessagePart::Bit("packet_types")),
    }
}

fn choose(when: ActionInstruction, write: u16, apply: u16) -> u16 {
    match when {
        ActionInstruction::Write => write,
        ActionInstruction::Apply => apply,
    }
}

fn read_table_property(version: Version, property: Property) -> Result<TableProperty, Fault> {
    const MISS: u16 = 1;
    let miss = property.kind & MISS != 0;
    let (is_1_4, is_1_5) = (version >= Version::V1_4, version >= Version::V1_5);
    Ok(match property.kind & !MISS {
        kind::INSTRUCTIONS => {
            TableProperty::Instructions { miss, ids: read_instruction_ids(version, property)? }
        }
        kind::NEXT_TABLES => TableProperty::NextTables { miss, tables: read_tables(property)? },
        kind @ (kind::WRITE_ACTIONS | kind::APPLY_ACTIONS) => TableProperty::Actions {
            when: if kind == kind::WRITE_ACTIONS {
                ActionInstruction::Write
            } else {
                ActionInstruction::Apply
            },
            miss,
            ids: read_action_ids(version, property)?,
        },
        kind::MATCH if !miss => TableProperty::Match(read_field_ids(version, property)?),
        kind::WILDCARDS if !miss => TableProperty::Wildcards(read_field_ids(version, property)?),
        kind @ (kind::WRITE_SET_FIELD | kind::APPLY_SET_FIELD) => TableProperty::SetField {
            when: if kind == kind::WRITE_SET_FIELD {
                ActionInstruction::Write
            } else {
                ActionInstruction::Apply
            },
            miss,
            ids: read_field_ids(version, property)?,
        },
        kind::SYNCHRONIZED_FROM if is_1_4 && !miss => {
            TableProperty::SynchronizedFrom(read_tables(property)?)
        }
        kind @ (kind::WRITE_COPY_FIELD | kind::APPLY_COPY_FIELD) if is_1_5 => {
            TableProperty::CopyField {
                when: if kind == kind::WRITE_COPY_FIELD {
                    ActionInstruction::Write
                } else {
                    ActionInstruction::Apply
                },
                miss,
                ids: read_field_ids(version, property)?,
            }
        }
        kind::PACKET_TYPES if is_1_5 && !miss => read_packet_types(version, property)?,
        kind::EXPERIMENTER => TableProperty::Experimenter { miss, body: property.experimenter()? },
        _ => return Err(property.unknown()),
    })
}

fn read_tables(property: Property) -> Result<Vec<u8>, Fault> {
    property.read(|body| Ok(body.rest().to_vec()))
}

/// Returns the OXM header of a packet type in a list.
fn packet_type_header(version: Version) -> Result<u32, MessagePart> {
    let field = Field::PacketType;
    let number = oxm_number(version, field).ok_or(MessagePart::Bit(field.name()))?;
    Ok(u32::from(CLASS_BASIC) << 16 | u32::from(number) << 9 | oxm_bytes(field) as u32)
}

fn put_packet_type(version: Version, value: u32, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_u32(packet_type_header(version)?);
    out.put_u32(value);
    Ok(())
}

fn read_packet_types(version: Version, property: Property) -> Result<TableProperty, Fault> {
    let at = property.at;
    let wanted = packet_type_header(version).ok();
    let rows = property.list(|body| Ok((body.u32()?, body.u32()?)))?;
    let other = rows.iter().find(|(header, _)| Some(*header) != wanted);
    match other {
        Some((header, _)) => Err(Fault::value(at, *header, ErrorCode::PropertyBadValue)),
        None => Ok(TableProperty::PacketTypes(rows.iter().map(|(_, value)| *value).collect())),
    }
}

/// Appends an ID: code, length, and experimenter data if any.
fn put_id(
    code: u16,
    experimenter: Option<&Experimenter>,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(code);
    out.put_u16(0);
    if let Some(body) = experimenter {
        out.put_u32(body.experimenter);
        out.extend_from_slice(&body.body);
    }
    put_length("name", out, start, 2)
}

fn put_instruction_id(
    version: Version,
    id: &InstructionId,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let (kind, experimenter) = match id {
        InstructionId::Known(kind) => (*kind, None),
        InstructionId::Experimenter(body) => (InstructionKind::Experimenter, Some(body)),
    };
    put_id(kind.code(version).ok_or(MessagePart::Bit(kind.name()))?, experimenter, out)
}

fn put_action_id(version: Version, id: &ActionId, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let (kind, experimenter) = match id {
        ActionId::Known(kind) => (*kind, None),
        ActionId::Experimenter(body) => (ActionKind::Experimenter, Some(body)),
    };
    put_id(kind.code(version).ok_or(MessagePart::Action(kind))?, experimenter, out)
}

/// Reads IDs: each a code and the bytes after its length.
fn read_ids(property: Property) -> Result<Vec<(u16, Vec<u8>)>, Fault> {
    property.list(|body| {
        let code = body.u16()?;
        let mut rest = read_length(body, ID_BYTES, 2)?;
        Ok((code, rest.rest().to_vec()))
    })
}

/// Returns the experimenter data from the bytes after the length.
fn experimenter(bytes: &[u8]) -> Option<Experimenter> {
    let (number, body) = bytes.split_first_chunk::<4>()?;
    Some(Experimenter { experimenter: u32::from_be_bytes(*number), body: body.to_vec() })
}

fn read_instruction_ids(version: Version, property: Property) -> Result<Vec<InstructionId>, Fault> {
    let at = property.at;
    let names =
        read_ids(property)?.into_iter().map(|(code, bytes)| {
            match InstructionKind::from_code(version, code) {
                Some(InstructionKind::Experimenter) => experimenter(&bytes)
                    .map(InstructionId::Experimenter)
                    .ok_or_else(|| bad_length(Malformed::truncated(at, 4, bytes.len()))),
                Some(kind) => Ok(InstructionId::Known(kind)),
                None => Err(Fault::value(at, code, ErrorCode::PropertyBadValue)),
            }
        });
    names.collect()
}

fn read_action_ids(version: Version, property: Property) -> Result<Vec<ActionId>, Fault> {
    let at = property.at;
    let names = read_ids(property)?.into_iter().map(|(code, bytes)| {
        match ActionKind::from_code(version, code) {
            Some(ActionKind::Experimenter) => experimenter(&bytes)
                .map(ActionId::Experimenter)
                .ok_or_else(|| bad_length(Malformed::truncated(at, 4, bytes.len()))),
            Some(kind) => Ok(ActionId::Known(kind)),
            None => Err(Fault::value(at, code, ErrorCode::PropertyBadValue)),
        }
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::check::{body_of, check, refused};
    use crate::model::message::Message;
    use crate::model::multipart::MultipartRequestBody;
    use crate::version::MessageKind;
    use packet::field::FieldSet;

    fn request(features: TableFeatures) -> Message {
        Message::ask(MultipartRequestBody::TableFeatures(vec![features]))
    }

    fn features(properties: Vec<TableProperty>) -> TableFeatures {
        TableFeatures { table: 2, entries_max: 9, properties, ..TableFeatures::default() }
    }

    /// Returns the bytes of features without properties, with this length field.
    fn start(length: &str) -> String {
        let zeros = "00".repeat(32 + 16 + 4);
        format!("000c 0000 00000000 {length} 02 00 00000000 {zeros} 00000009")
    }

    #[test]
    fn properties_are_lists_of_identifiers() {
        let vid = FieldId::maskable(FieldSet::NONE.with(Field::VlanVid).with(Field::VlanPcp));
        let properties = vec![
            TableProperty::Instructions {
                miss: false,
                ids: vec![InstructionId::Known(InstructionKind::GotoTable)],
            },
            TableProperty::NextTables { miss: true, tables: vec![3, 4, 5] },
            TableProperty::Wildcards(vid),
        ];
        let hex = "0000 0008 0001 0004 0003 0007 030405 00 000a 000c 80000d04 80000e01 00000000";
        let hex = start("0060") + hex;
        check(Version::V1_3, &request(features(properties.clone())), &hex);
        check(Version::V1_4, &request(features(properties)), &hex);
    }

    #[test]
    fn later_properties_are_rejected_in_earlier_versions() {
        let types = vec![TableProperty::PacketTypes(vec![0x0001_0800])];
        let hex = start("0050") + "0016 000c 80005804 00010800 00000000";
        check(Version::V1_5, &request(features(types.clone())), &hex);
        let error = body_of(Version::V1_4, &request(features(types))).unwrap_err();
        assert_eq!(error, MessagePart::Bit("packet_types"));
        let modify = TableFeatures { command: TableFeaturesCommand::Modify, ..features(vec![]) };
        assert!(body_of(Version::V1_4, &request(modify)).is_err());
    }

    #[test]
    fn invalid_properties_have_the_errors_of_their_version() {
        let refused = |version, length: &str, hex: &str| {
            refused(version, MessageKind::MultipartRequest, &(start(length) + hex))
        };
        let (v3, v4) = (Version::V1_3, Version::V1_4);
        assert_eq!(refused(v3, "0048", "0009 0004 00000000"), ErrorCode::TableFeaturesBadType);
        assert_eq!(refused(v4, "0048", "0009 0004 00000000"), ErrorCode::PropertyBadType);
        assert_eq!(refused(v3, "0048", "0002 0003 00000000"), ErrorCode::TableFeaturesBadLength);
        assert_eq!(refused(v4, "0048", "0008 0007 80000000"), ErrorCode::PropertyBadLength);
        assert_eq!(refused(v3, "0048", "0000 0008 0009 0004"), ErrorCode::TableFeaturesBadArgument);
        let twice = "0002 0005 01000000 0002 0005 01000000";
        assert_eq!(refused(v4, "0050", twice), ErrorCode::PropertyDuplicateType);
        assert_eq!(refused(v3, "0020", ""), ErrorCode::TableFeaturesBadLength);
    }
}
