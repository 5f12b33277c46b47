//! Encodes and decodes whole messages: header, and body by message type.
//!
//! Source: OpenFlow 1.0.0 sections 5.1 and 5.5 (hello, echo, vendor, error). An encoding error
//! leaves the output unchanged.

use packet::error::Malformed;

use super::bytes::{Put, Reader, pad, put_length};
use super::multipart::MultipartRow;
use super::property::no_experimenter_type;
use super::{DecodeError, Fault, MessageExcerpt, MessagePart, NotExpressible};
use super::{
    asynchronous, bundle, flow, group, meter, multipart, packet_io, port, queue, role, switch,
    table,
};
use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, Xid};
use crate::model::action::Experimenter;
use crate::model::message::{ErrorMessage, Hello, HelloElement, Message};
use crate::model::role::ControllerStatus;
use crate::version::{ErrorCode, MessageKind, ONF, Version};

/// Hello element with a version bitmap (1.3.1 section A.5.1).
const HELLO_VERSION_BITMAP: u16 = 1;

/// Appends the encoded message to `out`. On error `out` is unchanged.
pub fn encode(
    version: Version,
    xid: Xid,
    message: &Message,
    out: &mut Vec<u8>,
) -> Result<(), NotExpressible> {
    if !version.is_spoken() && !is_version_free(message.kind()) {
        return Err(NotExpressible { version, what: MessagePart::Version });
    }
    let start = out.len();
    let result = append(version, xid, message, out, start);
    result.map_err(|what| {
        out.truncate(start);
        NotExpressible { version, what }
    })
}

pub(super) fn append(
    version: Version,
    xid: Xid,
    message: &Message,
    out: &mut Vec<u8>,
    start: usize,
) -> Result<(), MessagePart> {
    let kind = message.kind();
    let extension = kind.onf_type(version);
    let wire_kind = if extension.is_some() { MessageKind::Experimenter } else { kind };
    let code = wire_kind.code(version).ok_or(MessagePart::Message(kind))?;
    let header = Header { version: version.wire(), kind: code, length: 0, xid };
    out.extend_from_slice(&header.bytes());
    if let Some(extension) = extension {
        out.put_u32(ONF);
        out.put_u32(extension);
    }
    body(version, xid, message, out)?;
    let bytes = out.len() - start;
    if bytes > MESSAGE_BYTES_MAX {
        return Err(MessagePart::TooLong { field: "message", bytes, bytes_max: MESSAGE_BYTES_MAX });
    }
    out[start + 2..start + 4].copy_from_slice(&(bytes as u16).to_be_bytes());
    Ok(())
}

/// Returns whether version negotiation needs the message.
fn is_version_free(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Hello | MessageKind::Error)
}

fn body(
    version: Version,
    xid: Xid,
    message: &Message,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match message {
        Message::Hello(hello) => return put_hello(hello, out),
        Message::Error(error) => return put_error(version, error, out),
        Message::EchoRequest(data) | Message::EchoReply(data) => out.extend_from_slice(data),
        Message::Experimenter(vendor) => return put_vendor(version, vendor, out),
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest => {}
        Message::FeaturesReply(features) => return switch::put_features(version, features, out),
        Message::GetConfigReply(config) | Message::SetConfig(config) => {
            return switch::put_config(version, config, out);
        }
        Message::PacketIn(frame) => return packet_io::put_packet_in(version, frame, out),
        Message::FlowRemoved(removed) => return flow::put_flow_removed(version, removed, out),
        Message::PortStatus(status) => return port::put_port_status(version, status, out),
        Message::PacketOut(frame) => return packet_io::put_packet_out(version, frame, out),
        Message::FlowMod(change) => return flow::put_flow_mod(version, change, out),
        Message::PortMod(change) => return port::put_port_mod(version, change, out),
        Message::MultipartRequest(request) => return multipart::put_request(version, request, out),
        Message::MultipartReply(reply) => return multipart::put_reply(version, reply, out),
        Message::QueueGetConfigRequest(number) => {
            return queue::put_request(version, *number, out);
        }
        Message::QueueGetConfigReply(config) => return queue::put_reply(version, config, out),
        Message::GroupMod(change) => return group::put_group_mod(version, change, out),
        Message::MeterMod(change) => return meter::put_meter_mod(version, change, out),
        Message::TableMod(change) => return table::put_table_mod(version, change, out),
        Message::RoleRequest(role) | Message::RoleReply(role) => {
            return role::put_request(version, role, out);
        }
        Message::GetAsyncReply(config) | Message::SetAsync(config) => {
            return asynchronous::put_config(version, config, out);
        }
        Message::RoleStatus(status) => return role::put_status(version, status, out),
        Message::TableStatus(status) => return table::put_table_status(version, status, out),
        Message::RequestForward(forward) => return bundle::put_forward(version, forward, out),
        Message::BundleControl(control) => return bundle::put_control(version, control, out),
        Message::BundleAddMessage(add) => return bundle::put_add(version, xid, add, out),
        Message::ControllerStatus(status) => return status.put(version, out),
    }
    Ok(())
}

fn put_hello(hello: &Hello, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    if let Some(bitmap) = hello.versions {
        put_element(HELLO_VERSION_BITMAP, &bitmap.to_be_bytes(), out)?;
    }
    hello.others.iter().try_for_each(|other| put_element(other.kind, &other.body, out))
}

fn put_element(kind: u16, body: &[u8], out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(kind);
    out.put_u16(0);
    out.extend_from_slice(body);
    put_length("hello element", out, start, 2)?;
    pad(out, start);
    Ok(())
}

fn put_error(version: Version, error: &ErrorMessage, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let (family, code) = error.code.to_wire(version).ok_or(MessagePart::Error(error.code))?;
    out.put_u16(family);
    out.put_u16(code);
    if let Some(experimenter) = error.code.experimenter(version) {
        out.put_u32(experimenter);
    }
    out.extend_from_slice(&error.data);
    Ok(())
}

/// Bytes of an experimenter type, which precedes the data in later versions.
const EXPERIMENTER_TYPE_BYTES: usize = 4;

/// Bytes of experimenter ID and type before a body inside an experimenter message.
const ONF_HEAD_BYTES: usize = 8;

/// Appends experimenter ID and body, as in messages and statistics.
///
/// From 1.1 on the body has at least the four bytes of a type (padding in 1.1).
pub(super) fn put_vendor(
    version: Version,
    vendor: &Experimenter,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version >= Version::V1_1 && vendor.body.len() < EXPERIMENTER_TYPE_BYTES {
        return Err(no_experimenter_type(vendor));
    }
    put_experimenter(vendor, out);
    Ok(())
}

/// Appends experimenter ID and body, as in actions.
pub(super) fn put_experimenter(vendor: &Experimenter, out: &mut Vec<u8>) {
    out.put_u32(vendor.experimenter);
    out.extend_from_slice(&vendor.body);
}

/// Decodes the message at the start of `bytes`; ignores the bytes after it.
///
/// It decodes hello and error messages of any version, and all others of the versions in
/// [`Version::SUPPORTED`].
pub fn decode(bytes: &[u8]) -> Result<(Header, Message), DecodeError> {
    let header = Header::parse(bytes).map_err(|malformed| DecodeError {
        header: None,
        malformed,
        answer: Some(ErrorCode::RequestBadLength),
        offending: MessageExcerpt::of(bytes),
    })?;
    let length = usize::from(header.length);
    let message = &bytes[..length.min(bytes.len())];
    let result = if message.len() < length {
        Err(Malformed::truncated(bytes.len(), length - bytes.len(), 0).into())
    } else {
        read(header, message)
    };
    match result {
        Ok(value) => Ok((header, value)),
        Err(Fault { malformed, answer }) => Err(DecodeError {
            header: Some(header),
            malformed,
            answer: (!is_error(header)).then_some(answer.nearest(column(header))),
            offending: MessageExcerpt::of(message),
        }),
    }
}

/// Returns the header's version, or 1.0 if it is unknown.
fn column(header: Header) -> Version {
    Version::from_wire(header.version).unwrap_or(Version::V1_0)
}

/// Returns whether the header is that of an error, whose code is the same in all versions.
fn is_error(header: Header) -> bool {
    MessageKind::Error.code(Version::V1_0) == Some(header.kind)
}

fn read(header: Header, message: &[u8]) -> Result<Message, Fault> {
    let mut reader = Reader::new(message, HEADER_BYTES);
    let version = Version::from_wire(header.version);
    let column = version.unwrap_or(Version::V1_0);
    let kind = MessageKind::from_code(column, header.kind);
    match kind {
        Some(MessageKind::Hello) => return Ok(Message::Hello(read_hello(&mut reader))),
        Some(MessageKind::Error) => return Ok(Message::Error(read_error(column, &mut reader)?)),
        _ => {}
    }
    let Some(version) = version.filter(|version| version.is_spoken()) else {
        return Err(Fault::value(0, header.version, ErrorCode::RequestBadVersion));
    };
    let Some(kind) = kind else {
        return Err(Fault::value(1, header.kind, ErrorCode::RequestBadType));
    };
    let value = read_body(version, header.xid, kind, &mut reader)?;
    reader.finish()?;
    Ok(value)
}

/// Reads the body of a message of this type.
pub(super) fn read_body(
    version: Version,
    xid: Xid,
    kind: MessageKind,
    reader: &mut Reader,
) -> Result<Message, Fault> {
    Ok(match kind {
        MessageKind::Hello => Message::Hello(read_hello(reader)),
        MessageKind::Error => Message::Error(read_error(version, reader)?),
        MessageKind::EchoRequest => Message::EchoRequest(reader.rest().to_vec()),
        MessageKind::EchoReply => Message::EchoReply(reader.rest().to_vec()),
        MessageKind::Experimenter => {
            let mut ahead = reader.clone();
            if let Some(kind) = MessageKind::carried_by(version, ahead.rest()) {
                reader.skip(ONF_HEAD_BYTES)?;
                return read_body(version, xid, kind, reader);
            }
            Message::Experimenter(read_vendor(version, reader)?)
        }
        MessageKind::FeaturesRequest => Message::FeaturesRequest,
        MessageKind::FeaturesReply => {
            Message::FeaturesReply(switch::read_features(version, reader)?)
        }
        MessageKind::GetConfigRequest => Message::GetConfigRequest,
        MessageKind::GetConfigReply => {
            Message::GetConfigReply(switch::read_config(version, reader)?)
        }
        MessageKind::SetConfig => Message::SetConfig(switch::read_config(version, reader)?),
        MessageKind::PacketIn => Message::PacketIn(packet_io::read_packet_in(version, reader)?),
        MessageKind::FlowRemoved => Message::FlowRemoved(flow::read_flow_removed(version, reader)?),
        MessageKind::PortStatus => Message::PortStatus(port::read_port_status(version, reader)?),
        MessageKind::PacketOut => Message::PacketOut(packet_io::read_packet_out(version, reader)?),
        MessageKind::FlowMod => Message::FlowMod(flow::read_flow_mod(version, reader)?),
        MessageKind::PortMod => Message::PortMod(port::read_port_mod(version, reader)?),
        MessageKind::MultipartRequest => {
            Message::MultipartRequest(multipart::read_request(version, reader)?)
        }
        MessageKind::MultipartReply => {
            Message::MultipartReply(multipart::read_reply(version, reader)?)
        }
        MessageKind::BarrierRequest => Message::BarrierRequest,
        MessageKind::BarrierReply => Message::BarrierReply,
        MessageKind::QueueGetConfigRequest => {
            Message::QueueGetConfigRequest(queue::read_request(version, reader)?)
        }
        MessageKind::QueueGetConfigReply => {
            Message::QueueGetConfigReply(queue::read_reply(version, reader)?)
        }
        MessageKind::GroupMod => Message::GroupMod(group::read_group_mod(version, reader)?),
        MessageKind::MeterMod => Message::MeterMod(meter::read_meter_mod(version, reader)?),
        MessageKind::TableMod => Message::TableMod(table::read_table_mod(version, reader)?),
        MessageKind::RoleRequest => Message::RoleRequest(role::read_request(version, reader)?),
        MessageKind::RoleReply => Message::RoleReply(role::read_request(version, reader)?),
        MessageKind::GetAsyncRequest => Message::GetAsyncRequest,
        MessageKind::GetAsyncReply => {
            Message::GetAsyncReply(asynchronous::read_config(version, reader)?)
        }
        MessageKind::SetAsync => Message::SetAsync(asynchronous::read_config(version, reader)?),
        MessageKind::RoleStatus => Message::RoleStatus(role::read_status(reader)?),
        MessageKind::TableStatus => {
            Message::TableStatus(table::read_table_status(version, reader)?)
        }
        MessageKind::RequestForward => {
            Message::RequestForward(bundle::read_forward(version, reader)?)
        }
        MessageKind::BundleControl => {
            Message::BundleControl(bundle::read_control(version, reader)?)
        }
        MessageKind::BundleAddMessage => {
            Message::BundleAddMessage(bundle::read_add(version, xid, reader)?)
        }
        MessageKind::ControllerStatus => {
            Message::ControllerStatus(ControllerStatus::read(version, reader)?)
        }
    })
}

/// Reads a hello. It ignores malformed elements and versions beyond the first 32.
fn read_hello(reader: &mut Reader) -> Hello {
    let mut hello = Hello::default();
    while let (Ok(kind), Ok(length)) = (reader.u16(), reader.u16()) {
        let Some(body) = usize::from(length).checked_sub(4) else { break };
        let Ok(mut element) = reader.within(body) else { break };
        if kind == HELLO_VERSION_BITMAP && hello.versions.is_none() {
            hello.versions = element.u32().ok();
        } else if kind != HELLO_VERSION_BITMAP {
            hello.others.push(HelloElement { kind, body: element.rest().to_vec() });
        }
        if reader.skip_padding(length.into()).is_err() {
            break;
        }
    }
    reader.rest();
    hello
}

fn read_error(version: Version, reader: &mut Reader) -> Result<ErrorMessage, Fault> {
    let (family, number) = (reader.u16()?, reader.u16()?);
    let mut code = ErrorCode::from_wire(version, family, number);
    if let Some(experimenter) = code.experimenter(version) {
        let mut ahead = reader.clone();
        if ahead.u32() == Ok(experimenter) {
            *reader = ahead;
        } else {
            code = ErrorCode::Other { family, code: number };
        }
    }
    Ok(ErrorMessage { code, data: reader.rest().to_vec() })
}

/// Reads experimenter ID and body, as in messages and statistics.
pub(super) fn read_vendor(version: Version, reader: &mut Reader) -> Result<Experimenter, Fault> {
    let experimenter = reader.u32()?;
    if version >= Version::V1_1 && reader.left() < EXPERIMENTER_TYPE_BYTES {
        let malformed = Malformed::truncated(reader.at(), EXPERIMENTER_TYPE_BYTES, reader.left());
        return Err(malformed.into());
    }
    Ok(Experimenter { experimenter, body: reader.rest().to_vec() })
}

/// Reads experimenter ID and body, as in actions.
pub(super) fn read_experimenter(reader: &mut Reader) -> Result<Experimenter, Malformed> {
    Ok(Experimenter { experimenter: reader.u32()?, body: reader.rest().to_vec() })
}
