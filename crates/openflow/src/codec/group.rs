//! Encodes and decodes groups: group-mod, descriptions, statistics and features.
//!
//! Source: OpenFlow 1.1.0 sections A.3.4.2 and A.3.5.6, 1.2 section A.3.5.9, 1.5.1 sections 7.3.4.3
//! and 7.3.5.12.
//!
//! - Up to 1.4 a bucket has all its values at fixed positions. In 1.5 it has an ID and properties.
//! - Faults in buckets have the bad bucket error.

use packet::error::{Malformed, MalformedReason};

use super::action::{put_actions, read_actions};
use super::bytes::{Put, Reader, put_length, put_length_at, read_length};
use super::multipart::MultipartRow;
use super::property::{
    EXPERIMENTER, put_experimenter, put_experimenters, put_property, read_experimenters,
    read_property,
};
use super::span::{put_span, read_span};
use super::{Fault, MessagePart};
use crate::model::group::{
    Bucket, BucketCounters, GROUP_ALL, GroupCapabilities, GroupDescription, GroupFeatures,
    GroupKind, GroupKinds, GroupMod, GroupModCommand, GroupStats,
};
use crate::model::kinds::ActionKinds;
use crate::version::{ErrorCode, Version};

/// Bytes of a bucket without actions, up to 1.4.
const BUCKET_BYTES_MIN: usize = 16;

/// Bytes of a bucket without actions and properties, in 1.5.
const BUCKET_BYTES_MIN_1_5: usize = 8;

const WEIGHT: u16 = 0;

const WATCH_PORT: u16 = 1;

const WATCH_GROUP: u16 = 2;

/// Weight of a bucket without a weight property.
const WEIGHT_DEFAULT: u16 = 1;

fn bad_bucket(malformed: Malformed) -> Fault {
    Fault::new(malformed, ErrorCode::GroupModBadBucket)
}

fn put_kind(kind: GroupKind, out: &mut Vec<u8>) {
    out.put_u8(kind as u8);
    out.put_zeros(1);
}

fn read_kind(reader: &mut Reader) -> Result<GroupKind, Fault> {
    let at = reader.at();
    let code = reader.u8()?;
    reader.skip(1)?;
    let kind = GroupKind::ALL.get(usize::from(code));
    kind.copied().ok_or_else(|| Fault::value(at, code, ErrorCode::GroupModBadType))
}

/// Appends a group-mod's body.
pub(super) fn put_group_mod(
    version: Version,
    change: &GroupMod,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u16(match change.command {
        GroupModCommand::Add => 0,
        GroupModCommand::Modify => 1,
        GroupModCommand::Delete => 2,
        GroupModCommand::InsertBucket if version >= Version::V1_5 => 3,
        GroupModCommand::RemoveBucket if version >= Version::V1_5 => 5,
        other => return Err(MessagePart::Value { field: "group command", value: other as u64 }),
    });
    put_kind(change.kind, out);
    out.put_u32(change.group);
    if version < Version::V1_5 {
        if !change.experimenter.is_empty() {
            return Err(MessagePart::Bit("group properties"));
        }
        return put_buckets(version, change.kind, &change.buckets, out);
    }
    let length_at = out.len();
    out.put_zeros(4);
    out.put_u32(change.command_bucket);
    put_counted_buckets(version, change.kind, &change.buckets, length_at, out)?;
    put_experimenters(version, &change.experimenter, out)
}

/// Appends buckets, and writes their length at `length_at`.
fn put_counted_buckets(
    version: Version,
    kind: GroupKind,
    buckets: &[Bucket],
    length_at: usize,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    put_buckets(version, kind, buckets, out)?;
    put_length_at("buckets", out, start, length_at)
}

/// Reads a group-mod's body.
pub(super) fn read_group_mod(version: Version, reader: &mut Reader) -> Result<GroupMod, Fault> {
    let at = reader.at();
    let command = match reader.u16()? {
        0 => GroupModCommand::Add,
        1 => GroupModCommand::Modify,
        2 => GroupModCommand::Delete,
        3 if version >= Version::V1_5 => GroupModCommand::InsertBucket,
        5 if version >= Version::V1_5 => GroupModCommand::RemoveBucket,
        other => return Err(Fault::value(at, other, ErrorCode::GroupModBadCommand)),
    };
    let kind = read_kind(reader)?;
    let group = reader.u32()?;
    let mut change = GroupMod { command, kind, group, ..GroupMod::default() };
    if version < Version::V1_5 {
        change.buckets = read_buckets(version, kind, reader)?;
        return Ok(change);
    }
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    reader.skip(2)?;
    change.command_bucket = reader.u32()?;
    let why = MalformedReason::BadLength(length);
    let mut buckets = reader.within(length).map_err(|_| Malformed { at, why })?;
    change.buckets = read_buckets(version, kind, &mut buckets)?;
    change.experimenter = read_experimenters(reader)?;
    Ok(change)
}

fn put_buckets(
    version: Version,
    kind: GroupKind,
    buckets: &[Bucket],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    buckets.iter().try_for_each(|bucket| match version {
        Version::V1_5 => put_bucket_1_5(version, kind, bucket, out),
        _ => put_bucket(version, bucket, out),
    })
}

fn put_bucket(version: Version, bucket: &Bucket, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if !bucket.experimenter.is_empty() {
        return Err(MessagePart::Bit("bucket properties"));
    }
    let start = out.len();
    out.put_u16(0);
    out.put_u16(bucket.weight);
    out.put_u32(bucket.watch_port);
    out.put_u32(bucket.watch_group);
    out.put_zeros(4);
    put_actions(version, &bucket.actions, out)?;
    put_length("bucket", out, start, 0)
}

fn put_bucket_1_5(
    version: Version,
    kind: GroupKind,
    bucket: &Bucket,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_zeros(4);
    out.put_u32(bucket.id);
    let actions_at = out.len();
    put_actions(version, &bucket.actions, out)?;
    put_length_at("actions", out, actions_at, start + 2)?;
    let default = Bucket::default();
    if bucket.weight != default_weight(kind) {
        put_property(WEIGHT, out, |out| {
            out.put_u16(bucket.weight);
            out.put_zeros(2);
            Ok(())
        })?;
    }
    for (property, value, none) in [
        (WATCH_PORT, bucket.watch_port, default.watch_port),
        (WATCH_GROUP, bucket.watch_group, default.watch_group),
    ] {
        if value != none {
            put_property(property, out, |out| {
                out.put_u32(value);
                Ok(())
            })?;
        }
    }
    for property in &bucket.experimenter {
        put_experimenter(EXPERIMENTER, property, out)?;
    }
    put_length("bucket", out, start, 0)
}

/// Returns the weight of a bucket without a weight property: nonzero only in select groups.
fn default_weight(kind: GroupKind) -> u16 {
    if kind == GroupKind::Select { WEIGHT_DEFAULT } else { 0 }
}

/// Reads buckets up to the end. Before 1.5 their IDs are their indices.
fn read_buckets(
    version: Version,
    kind: GroupKind,
    reader: &mut Reader,
) -> Result<Vec<Bucket>, Fault> {
    let mut buckets = Vec::new();
    while reader.left() > 0 {
        let id = buckets.len() as u32;
        buckets.push(match version {
            Version::V1_5 => read_bucket_1_5(version, kind, reader)?,
            _ => read_bucket(version, id, reader)?,
        });
    }
    Ok(buckets)
}

fn read_bucket(version: Version, id: u32, reader: &mut Reader) -> Result<Bucket, Fault> {
    let mut body = read_length(reader, BUCKET_BYTES_MIN, 0).map_err(bad_bucket)?;
    let weight = body.u16()?;
    let (watch_port, watch_group) = (body.u32()?, body.u32()?);
    body.skip(4)?;
    let actions = read_actions(version, &mut body)?;
    Ok(Bucket { id, weight, watch_port, watch_group, actions, experimenter: Vec::new() })
}

fn read_bucket_1_5(
    version: Version,
    kind: GroupKind,
    reader: &mut Reader,
) -> Result<Bucket, Fault> {
    let mut body = read_length(reader, BUCKET_BYTES_MIN_1_5, 0).map_err(bad_bucket)?;
    let at = body.at();
    let length = usize::from(body.u16()?);
    let id = body.u32()?;
    let why = MalformedReason::BadLength(length);
    let mut list = body.within(length).map_err(|_| bad_bucket(Malformed { at, why }))?;
    let actions = read_actions(version, &mut list)?;
    let weight = default_weight(kind);
    let mut bucket = Bucket { id, weight, actions, ..Bucket::default() };
    while let Some(property) = read_property(&mut body)? {
        match property.kind {
            WEIGHT => {
                bucket.weight = property.read(|body| {
                    let weight = body.u16()?;
                    body.skip(2)?;
                    Ok(weight)
                })?;
            }
            WATCH_PORT => bucket.watch_port = property.read(|body| body.u32())?,
            WATCH_GROUP => bucket.watch_group = property.read(|body| body.u32())?,
            EXPERIMENTER => bucket.experimenter.push(property.experimenter()?),
            _ => return Err(property.unknown()),
        }
    }
    Ok(bucket)
}

/// Appends the requested group.
pub(super) fn put_which_group(group: u32, out: &mut Vec<u8>) {
    out.put_u32(group);
    out.put_zeros(4);
}

/// Reads the requested group.
pub(super) fn read_which_group(reader: &mut Reader) -> Result<u32, Malformed> {
    let group = reader.u32()?;
    reader.skip(4)?;
    Ok(group)
}

/// Appends the group of a description request; before 1.5 always all groups.
pub(super) fn put_which_description(
    version: Version,
    group: u32,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match (version, group) {
        (Version::V1_5, _) => put_which_group(group, out),
        (_, GROUP_ALL) => {}
        _ => return Err(MessagePart::Value { field: "group", value: group.into() }),
    }
    Ok(())
}

/// Reads the group of a description request.
pub(super) fn read_which_description(
    version: Version,
    reader: &mut Reader,
) -> Result<u32, Malformed> {
    if version < Version::V1_5 { Ok(GROUP_ALL) } else { read_which_group(reader) }
}

impl MultipartRow for GroupDescription {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        put_kind(self.kind, out);
        out.put_u32(self.group);
        if version < Version::V1_5 {
            if !self.experimenter.is_empty() {
                return Err(MessagePart::Bit("group properties"));
            }
            put_buckets(version, self.kind, &self.buckets, out)?;
        } else {
            let length_at = out.len();
            out.put_zeros(8);
            put_counted_buckets(version, self.kind, &self.buckets, length_at, out)?;
            put_experimenters(version, &self.experimenter, out)?;
        }
        put_length("group description", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let least = if version < Version::V1_5 { 8 } else { 16 };
        let mut row = read_length(reader, least, 0)?;
        let kind = read_kind(&mut row)?;
        let group = row.u32()?;
        let mut description = GroupDescription { kind, group, ..GroupDescription::default() };
        if version < Version::V1_5 {
            description.buckets = read_buckets(version, kind, &mut row)?;
            return Ok(description);
        }
        let at = row.at();
        let length = usize::from(row.u16()?);
        row.skip(6)?;
        let why = MalformedReason::BadLength(length);
        let mut buckets = row.within(length).map_err(|_| Malformed { at, why })?;
        description.buckets = read_buckets(version, kind, &mut buckets)?;
        description.experimenter = read_experimenters(&mut row)?;
        Ok(description)
    }
}

impl MultipartRow for GroupStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_zeros(4);
        out.put_u32(self.group);
        out.put_u32(self.references);
        out.put_zeros(4);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        if version >= Version::V1_3 {
            put_span(self.age, out)?;
        }
        for bucket in &self.buckets {
            out.put_u64(bucket.packets);
            out.put_u64(bucket.bytes);
        }
        put_length("group statistics", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let least = if version < Version::V1_3 { 32 } else { 40 };
        let mut row = read_length(reader, least, 0)?;
        row.skip(2)?;
        let (group, references) = (row.u32()?, row.u32()?);
        row.skip(4)?;
        let (packets, bytes) = (row.u64()?, row.u64()?);
        let mut stats = GroupStats { group, references, packets, bytes, ..GroupStats::default() };
        if version >= Version::V1_3 {
            stats.age = read_span(&mut row)?;
        }
        while row.left() > 0 {
            stats.buckets.push(BucketCounters { packets: row.u64()?, bytes: row.u64()? });
        }
        Ok(stats)
    }
}

/// Appends group features.
pub(super) fn put_features(
    version: Version,
    features: &GroupFeatures,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u32(features.kinds.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_u32(features.capabilities.to_wire(version).map_err(MessagePart::Bit)?);
    features.groups_max.iter().for_each(|most| out.put_u32(*most));
    for kinds in features.actions {
        out.put_u32(kinds.to_wire(version).map_err(MessagePart::Action)?);
    }
    Ok(())
}

/// Reads group features.
pub(super) fn read_features(
    version: Version,
    reader: &mut Reader,
) -> Result<GroupFeatures, Malformed> {
    let mut features = GroupFeatures {
        kinds: GroupKinds::from_wire(version, reader.u32()?).0,
        capabilities: GroupCapabilities::from_wire(version, reader.u32()?).0,
        ..GroupFeatures::default()
    };
    for most in &mut features.groups_max {
        *most = reader.u32()?;
    }
    for kinds in &mut features.actions {
        *kinds = ActionKinds::from_wire(version, reader.u32()?);
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::version::MessageKind;

    #[test]
    fn a_bucket_has_fixed_fields_and_properties_from_1_5_on() {
        let bucket = Bucket { weight: 5, watch_port: 3, ..Bucket::default() };
        let mut change = GroupMod {
            kind: GroupKind::Select,
            group: 9,
            buckets: vec![bucket],
            ..GroupMod::default()
        };
        let hex = "0000 01 00 00000009 0010 0005 00000003 ffffffff 00000000";
        check(Version::V1_1, &Message::GroupMod(change.clone()), hex);
        check(Version::V1_4, &Message::GroupMod(change.clone()), hex);
        change.command = GroupModCommand::InsertBucket;
        change.command_bucket = 1;
        let hex = "0003 01 00 00000009 0018 0000 00000001 0018 0000 00000000
            0000 0008 0005 0000 0001 0008 00000003";
        check(Version::V1_5, &Message::GroupMod(change.clone()), hex);
        assert!(body_of(Version::V1_4, &Message::GroupMod(change)).is_err());
    }

    #[test]
    fn invalid_groups_have_specific_errors() {
        let refused = |version, hex: &str| refused(version, MessageKind::GroupMod, hex);
        let v3 = Version::V1_3;
        assert_eq!(refused(v3, "0003 00 00 00000001"), ErrorCode::GroupModBadCommand);
        assert_eq!(refused(v3, "0000 04 00 00000001"), ErrorCode::GroupModBadType);
        let short = "0000 00 00 00000001 000f 0000 00000000 00000000 00000000";
        assert_eq!(refused(v3, short), ErrorCode::GroupModBadBucket);
        let long = "0000 00 00 00000001 0018 0000 00000000 00000000 00000000";
        assert_eq!(refused(v3, long), ErrorCode::GroupModBadBucket);
        let list = "0000 00 00 00000001 0008 0000 00000000";
        assert_eq!(refused(Version::V1_5, list), ErrorCode::RequestBadLength);
    }
}
