//! Encodes and decodes bundles and forwarded requests.
//!
//! Source: OpenFlow 1.4.1 sections 7.3.9.6, 7.3.9.7 and 7.4.6, 1.5.1 sections 7.3.5.20 and 7.3.9.
//!
//! - In 1.3 the messages are experimenter messages (ONF extension 230) with the same bodies.
//! - A message in a bundle has the version and transaction ID of the message that contains it.
//! - It must be one that a controller sends. Bundles do not nest.

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, pad};
use super::message::{append, read_body};
use super::property::{EXPERIMENTER, Property, put_experimenter, put_property, read_properties};
use super::{Fault, MessagePart};
use crate::header::{HEADER_BYTES, Header, Xid};
use crate::model::bundle::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFeatureFlags, BundleFeatureProperty,
    BundleFeatures, BundleFeaturesRequest, BundleFlags, BundleProperty, RequestForward, WallTime,
};
use crate::version::{End, ErrorCode, MessageKind, Version};

/// Type of the time properties.
const TIME: u16 = 1;

/// Offset of the contained message in the body, after bundle ID, padding and flags.
const INNER_AT: usize = 8;

/// Bytes of experimenter ID and type, in the extension.
const EXTENSION_BYTES: usize = 8;

const NANOSECONDS: u32 = 1_000_000_000;

/// Appends the body of a bundle control message.
pub(super) fn put_control(
    version: Version,
    control: &BundleControl,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u32(control.id);
    let command = match control.command {
        BundleCommand::Open => 0,
        BundleCommand::Close => 2,
        BundleCommand::Commit => 4,
        BundleCommand::Discard => 6,
    };
    out.put_u16(command + u16::from(control.is_reply));
    out.put_u16(control.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    put_bundle_properties(version, &control.properties, out)
}

/// Reads the body of a bundle control message.
pub(super) fn read_control(version: Version, reader: &mut Reader) -> Result<BundleControl, Fault> {
    let id = reader.u32()?;
    let at = reader.at();
    let kind = reader.u16()?;
    let command = match kind / 2 {
        0 => BundleCommand::Open,
        1 => BundleCommand::Close,
        2 => BundleCommand::Commit,
        3 => BundleCommand::Discard,
        _ => return Err(Fault::value(at, kind, ErrorCode::BundleBadType)),
    };
    let flags = read_flags(version, reader)?;
    let properties = read_bundle_properties(version, reader)?;
    Ok(BundleControl { id, command, is_reply: kind % 2 == 1, flags, properties })
}

fn read_flags(version: Version, reader: &mut Reader) -> Result<BundleFlags, Fault> {
    let at = reader.at();
    match BundleFlags::from_wire(version, reader.u16()?.into()) {
        (flags, 0) => Ok(flags),
        (_, unknown) => Err(Fault::value(at, unknown, ErrorCode::BundleBadFlags)),
    }
}

/// Appends the body of a bundle-add message.
pub(super) fn put_add(
    version: Version,
    xid: Xid,
    add: &BundleAddMessage,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if !can_be_bundled(add.message.kind()) {
        return Err(MessagePart::Message(add.message.kind()));
    }
    out.put_u32(add.id);
    out.put_zeros(2);
    out.put_u16(add.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    let start = out.len();
    append(version, xid, &add.message, out, start)?;
    if !add.properties.is_empty() {
        pad(out, start);
    }
    put_bundle_properties(version, &add.properties, out)
}

/// Returns whether a controller may put the message into a bundle.
fn can_be_bundled(kind: MessageKind) -> bool {
    kind.sender() == Some(End::Controller) && kind != MessageKind::BundleAddMessage
}

/// Reads the body of a bundle-add message.
pub(super) fn read_add(
    version: Version,
    xid: Xid,
    reader: &mut Reader,
) -> Result<BundleAddMessage, Fault> {
    let id = reader.u32()?;
    reader.skip(2)?;
    let flags = read_flags(version, reader)?;
    let at = reader.at();
    let (header, kind, mut body) = read_inner(version, reader)?;
    if header.xid != xid {
        return Err(Fault::value(at + 4, header.xid, ErrorCode::BundleMessageBadXid));
    }
    let Some(kind) = kind.filter(|kind| can_be_bundled(*kind)) else {
        return Err(Fault::value(at + 1, header.kind, ErrorCode::BundleMessageUnsupported));
    };
    let message = Box::new(read_body(version, header.xid, kind, &mut body)?);
    body.finish()?;
    if reader.left() > 0 {
        reader.skip_padding(header.length.into())?;
    }
    let properties = read_bundle_properties(version, reader)?;
    Ok(BundleAddMessage { id, flags, message, properties })
}

/// Returns the bytes of the message contained in a bundle-add message; empty if it is invalid.
pub fn bundled_bytes(message: &[u8]) -> &[u8] {
    let is_extended = |header: Header| {
        let version = Version::from_wire(header.version)?;
        MessageKind::BundleAddMessage.onf_type(version)
    };
    let outer = Header::parse(message).ok();
    let extension = outer.and_then(is_extended).map_or(0, |_| EXTENSION_BYTES);
    let inner = message.get(HEADER_BYTES + extension + INNER_AT..).unwrap_or_default();
    let length = Header::parse(inner).map_or(0, |header| usize::from(header.length));
    inner.get(..length).unwrap_or_default()
}

/// Reads the header of the contained message, and returns a reader of its body.
fn read_inner<'a>(
    version: Version,
    reader: &mut Reader<'a>,
) -> Result<(Header, Option<MessageKind>, Reader<'a>), Fault> {
    let at = reader.at();
    let bad_length = |malformed| Fault::new(malformed, ErrorCode::BundleMessageBadLength);
    let mut ahead = reader.clone();
    let header = Header::parse(ahead.rest())
        .map_err(|malformed| bad_length(Malformed { at: at + malformed.at, ..malformed }))?;
    let length = usize::from(header.length);
    let why = MalformedReason::BadLength(length);
    let mut body = reader.within(length).map_err(|_| bad_length(Malformed { at: at + 2, why }))?;
    body.skip(HEADER_BYTES)?;
    if header.version != version.wire() {
        return Err(Fault::value(at, header.version, ErrorCode::RequestBadVersion));
    }
    Ok((header, MessageKind::from_code(version, header.kind), body))
}

/// Appends the body of a forwarded request.
pub(super) fn put_forward(
    version: Version,
    forward: &RequestForward,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if !can_be_forwarded(forward.request.kind()) {
        return Err(MessagePart::Message(forward.request.kind()));
    }
    let start = out.len();
    append(version, forward.xid, &forward.request, out, start)
}

fn can_be_forwarded(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::GroupMod | MessageKind::MeterMod)
}

/// Reads the body of a forwarded request.
pub(super) fn read_forward(version: Version, reader: &mut Reader) -> Result<RequestForward, Fault> {
    let at = reader.at();
    let (header, kind, mut body) = read_inner(version, reader)?;
    let Some(kind) = kind.filter(|kind| can_be_forwarded(*kind)) else {
        return Err(Fault::value(at + 1, header.kind, ErrorCode::RequestBadType));
    };
    let request = Box::new(read_body(version, header.xid, kind, &mut body)?);
    body.finish()?;
    Ok(RequestForward { xid: header.xid, request })
}

fn put_bundle_properties(
    version: Version,
    properties: &[BundleProperty],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    properties.iter().try_for_each(|property| match property {
        BundleProperty::Time(_) if version < Version::V1_5 => {
            Err(MessagePart::Bit("time of a bundle"))
        }
        BundleProperty::Time(time) => put_property(TIME, out, |out| {
            out.put_zeros(4);
            put_time(*time, out)
        }),
        BundleProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
    })
}

fn read_bundle_properties(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<BundleProperty>, Fault> {
    read_properties(reader, |property| {
        Ok(match property.kind {
            TIME if version >= Version::V1_5 => {
                let [time] = read_times(property)?;
                BundleProperty::Time(time)
            }
            EXPERIMENTER => BundleProperty::Experimenter(property.experimenter()?),
            _ => return Err(property.unknown()),
        })
    })
}

fn put_time(time: WallTime, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if time.nanoseconds >= NANOSECONDS {
        return Err(MessagePart::Value { field: "nanoseconds", value: time.nanoseconds.into() });
    }
    out.put_u64(time.seconds);
    out.put_u32(time.nanoseconds);
    out.put_zeros(4);
    Ok(())
}

/// Reads a property that has padding and `N` times.
fn read_times<const N: usize>(property: Property) -> Result<[WallTime; N], Fault> {
    let at = property.at;
    let times = property.read(|body| {
        body.skip(4)?;
        let mut times = [WallTime::default(); N];
        for time in &mut times {
            (time.seconds, time.nanoseconds) = (body.u64()?, body.u32()?);
            body.skip(4)?;
        }
        Ok(times)
    })?;
    match times.iter().find(|time| time.nanoseconds >= NANOSECONDS) {
        Some(time) => Err(Fault::value(at, time.nanoseconds, ErrorCode::PropertyBadValue)),
        None => Ok(times),
    }
}

/// Appends the body of a bundle features request.
pub(super) fn put_features_request(
    version: Version,
    request: &BundleFeaturesRequest,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u32(request.flags.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_zeros(4);
    put_feature_properties(&request.properties, out)
}

/// Reads the body of a bundle features request.
pub(super) fn read_features_request(
    version: Version,
    reader: &mut Reader,
) -> Result<BundleFeaturesRequest, Fault> {
    let at = reader.at();
    let (flags, unknown) = BundleFeatureFlags::from_wire(version, reader.u32()?);
    if unknown != 0 {
        return Err(Fault::value(at, unknown, ErrorCode::RequestMultipartBadSchedule));
    }
    reader.skip(4)?;
    let properties = read_feature_properties(reader)?;
    Ok(BundleFeaturesRequest { flags, properties })
}

/// Appends the body of a bundle features reply.
pub(super) fn put_features(
    version: Version,
    features: &BundleFeatures,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u16(features.capabilities.to_wire(version).map_err(MessagePart::Bit)? as u16);
    out.put_zeros(6);
    put_feature_properties(&features.properties, out)
}

/// Reads the body of a bundle features reply.
pub(super) fn read_features(
    version: Version,
    reader: &mut Reader,
) -> Result<BundleFeatures, Fault> {
    let (capabilities, _) = BundleFlags::from_wire(version, reader.u16()?.into());
    reader.skip(6)?;
    let properties = read_feature_properties(reader)?;
    Ok(BundleFeatures { capabilities, properties })
}

fn put_feature_properties(
    properties: &[BundleFeatureProperty],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    properties.iter().try_for_each(|property| match property {
        BundleFeatureProperty::Time { accuracy, future_max, past_max, timestamp } => {
            put_property(TIME, out, |out| {
                out.put_zeros(4);
                let times = [accuracy, future_max, past_max, timestamp];
                times.into_iter().try_for_each(|time| put_time(*time, out))
            })
        }
        BundleFeatureProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
    })
}

fn read_feature_properties(reader: &mut Reader) -> Result<Vec<BundleFeatureProperty>, Fault> {
    read_properties(reader, |property| {
        Ok(match property.kind {
            TIME => {
                let [accuracy, future_max, past_max, timestamp] = read_times(property)?;
                BundleFeatureProperty::Time { accuracy, future_max, past_max, timestamp }
            }
            EXPERIMENTER => BundleFeatureProperty::Experimenter(property.experimenter()?),
            _ => return Err(property.unknown()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, bytes as bytes_of, check, refused};
    use super::super::decode;
    use super::*;
    use crate::model::message::Message;
    use crate::model::table::TableMod;

    #[test]
    fn bundle_control_has_an_id_a_type_and_flags() {
        let mut control = BundleControl {
            id: 0x11,
            command: BundleCommand::Commit,
            is_reply: true,
            flags: BundleFlags::ATOMIC | BundleFlags::ORDERED,
            properties: Vec::new(),
        };
        check(Version::V1_4, &Message::BundleControl(control.clone()), "00000011 0005 0003");
        let time = WallTime { seconds: 1, nanoseconds: 999_999_999 };
        control.properties.push(BundleProperty::Time(time));
        let hex = "00000011 0005 0003 0001 0018 00000000 0000000000000001 3b9ac9ff 00000000";
        check(Version::V1_5, &Message::BundleControl(control.clone()), hex);
        assert!(body_of(Version::V1_4, &Message::BundleControl(control)).is_err());
        let refused = |hex: &str| refused(Version::V1_4, MessageKind::BundleControl, hex);
        assert_eq!(refused("00000011 0008 0000"), ErrorCode::BundleBadType);
        assert_eq!(refused("00000011 0000 0004"), ErrorCode::BundleBadFlags);
    }

    #[test]
    fn an_experimenter_message_carries_bundles_in_1_3() {
        let control = Message::BundleControl(BundleControl {
            id: 0x11,
            command: BundleCommand::Open,
            is_reply: false,
            flags: BundleFlags::ATOMIC | BundleFlags::ORDERED,
            properties: Vec::new(),
        });
        let mut bytes = Vec::new();
        append(Version::V1_3, 7, &control, &mut bytes, 0).unwrap();
        let hex = "04040018 00000007 4f4e4600 000008fc 00000011 00000003";
        assert_eq!(bytes, bytes_of(hex));
        assert_eq!(decode(&bytes).unwrap().1, control);
        let inner = Message::TableMod(TableMod { table: 3, ..TableMod::default() });
        let (flags, properties) = (BundleFlags::NONE, Vec::new());
        let add = BundleAddMessage { id: 1, flags, message: Box::new(inner), properties };
        let add = Message::BundleAddMessage(add);
        bytes.clear();
        append(Version::V1_3, 7, &add, &mut bytes, 0).unwrap();
        let hex = "04040028 00000007 4f4e4600 000008fd 00000001 00000000 \
                   04110010 00000007 03000000 00000000";
        assert_eq!(bytes, bytes_of(hex));
        assert_eq!(decode(&bytes).unwrap().1, add);
        assert_eq!(bundled_bytes(&bytes), &bytes[24..]);
        assert!(append(Version::V1_2, 7, &add, &mut bytes, 0).is_err());
        // A nested bundle, and an unknown type of this experimenter.
        let refused = |hex: &str| decode(&bytes_of(hex)).unwrap_err().answer;
        let nested = "04040028 00000007 4f4e4600 000008fd 00000001 00000000 \
                      04040010 00000007 4f4e4600 000008fd";
        assert_eq!(refused(nested), Some(ErrorCode::BundleMessageUnsupported));
        let other = decode(&bytes_of("04040010 00000007 4f4e4600 000008fe")).unwrap().1;
        assert_eq!(other.kind(), MessageKind::Experimenter);
    }

    #[test]
    fn bundle_errors_in_1_3_name_the_experimenter() {
        let error = |code, data: &[u8]| Message::error(code, data);
        check(Version::V1_3, &error(ErrorCode::BundleBadId, &[1, 2]), "ffff 08fe 4f4e4600 0102");
        check(Version::V1_4, &error(ErrorCode::BundleBadId, &[1, 2]), "0011 0002 0102");
        let other = ErrorCode::Other { family: 0xffff, code: 2302 };
        check(Version::V1_3, &error(other, &[0, 0, 0x23, 0x20]), "ffff 08fe 00002320");
    }

    #[test]
    fn a_bundle_add_contains_a_message() {
        let inner = Message::TableMod(TableMod { table: 3, ..TableMod::default() });
        let mut add = BundleAddMessage {
            id: 1,
            flags: BundleFlags::NONE,
            message: Box::new(inner),
            properties: Vec::new(),
        };
        let hex = "00000001 0000 0000 05110010 00000007 03000000 00000000";
        check(Version::V1_4, &Message::BundleAddMessage(add.clone()), hex);
        add.message = Box::new(Message::BundleAddMessage(add.clone()));
        let error = body_of(Version::V1_4, &Message::BundleAddMessage(add)).unwrap_err();
        assert_eq!(error, MessagePart::Message(MessageKind::BundleAddMessage));
    }

    #[test]
    fn an_invalid_contained_message_has_its_own_error() {
        let refused = |hex: &str| refused(Version::V1_4, MessageKind::BundleAddMessage, hex);
        let prefix = "00000001 0000 0000";
        for (inner, answer) in [
            ("05110010 00000008 03000000 00000000", ErrorCode::BundleMessageBadXid),
            ("05110018 00000007 03000000 00000000", ErrorCode::BundleMessageBadLength),
            ("05110007 00000007", ErrorCode::BundleMessageBadLength),
            ("04110010 00000007 03000000 00000000", ErrorCode::RequestBadVersion),
            ("05220010 00000007 00000001 00000000", ErrorCode::BundleMessageUnsupported),
            ("05020008 00000007", ErrorCode::BundleMessageUnsupported),
            ("05630008 00000007", ErrorCode::BundleMessageUnsupported),
            ("05110010 00000007 03000000 00000010", ErrorCode::TableModBadConfig),
        ] {
            assert_eq!(refused(&format!("{prefix}{inner}")), answer, "{inner}");
        }
    }
}
