//! Encodes and decodes multipart messages, and splits long replies into parts.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.1.0 section A.3.5, 1.3.5 section 7.3.5.
//!
//! Requests and replies start with a type and flags, and from 1.1 on padding. The only flag is
//! "more"; requests have it from 1.3 on.

use packet::error::Malformed;

use super::bundle::{put_features, put_features_request, read_features, read_features_request};
use super::bytes::{Put, Reader};
use super::flow::stats::{put_aggregate, put_which, read_aggregate, read_which};
use super::message::{put_vendor, read_vendor};
use super::port::{put_description, put_port, read_description, read_port};
use super::{Fault, MessagePart, NotExpressible, group, meter};
use crate::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use crate::model::multipart::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, SwitchDescription,
};
use crate::model::port::{PortDescription, PortNo, reserved};
use crate::version::{ErrorCode, MultipartKind, Version};

/// Flag for another part that follows.
const MORE: u16 = 1;

/// Bytes of the long strings in a switch description.
const DESCRIPTION_BYTES: usize = 256;

/// Bytes of the serial number in a switch description.
const SERIAL_BYTES: usize = 32;

/// Returns the bytes of type, flags and padding.
fn prefix_bytes(version: Version) -> usize {
    if version == Version::V1_0 { 4 } else { 8 }
}

fn put_prefix(
    version: Version,
    kind: MultipartKind,
    more: bool,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u16(kind.code(version).ok_or(MessagePart::Multipart(kind))?);
    out.put_u16(if more { MORE } else { 0 });
    out.put_zeros(prefix_bytes(version) - 4);
    Ok(())
}

fn read_prefix(version: Version, reader: &mut Reader) -> Result<(MultipartKind, bool), Fault> {
    let at = reader.at();
    let (code, flags) = (reader.u16()?, reader.u16()?);
    reader.skip(prefix_bytes(version) - 4)?;
    match MultipartKind::from_code(version, code) {
        Some(kind) => Ok((kind, flags & MORE != 0)),
        None => Err(Fault::value(at, code, ErrorCode::RequestBadMultipart)),
    }
}

/// Appends a request's body.
pub(super) fn put_request(
    version: Version,
    request: &MultipartRequest,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if request.more && version < Version::V1_3 {
        return Err(MessagePart::Bit("multipart request"));
    }
    put_prefix(version, request.body.kind(), request.more, out)?;
    match &request.body {
        MultipartRequestBody::Desc
        | MultipartRequestBody::Table
        | MultipartRequestBody::TableDesc
        | MultipartRequestBody::ControllerStatus
        | MultipartRequestBody::GroupFeatures
        | MultipartRequestBody::MeterFeatures => Ok(()),
        MultipartRequestBody::Flow(which)
        | MultipartRequestBody::Aggregate(which)
        | MultipartRequestBody::FlowStats(which) => put_which(version, which, out),
        MultipartRequestBody::Port(port) => put_which_port(version, *port, out),
        MultipartRequestBody::Queue { port, queue }
        | MultipartRequestBody::QueueDesc { port, queue } => {
            put_which_queue(version, *port, *queue, out)
        }
        MultipartRequestBody::PortDesc(port) if version >= Version::V1_5 => {
            put_which_port(version, *port, out)
        }
        MultipartRequestBody::PortDesc(reserved::NONE) => Ok(()),
        MultipartRequestBody::PortDesc(port) => Err(MessagePart::Port(*port)),
        MultipartRequestBody::TableFeatures(tables) => put_rows(version, tables, out),
        MultipartRequestBody::Group(group) => {
            group::put_which_group(*group, out);
            Ok(())
        }
        MultipartRequestBody::GroupDesc(group) => {
            group::put_which_description(version, *group, out)
        }
        MultipartRequestBody::Meter(meter) | MultipartRequestBody::MeterConfig(meter) => {
            meter::put_which_meter(*meter, out);
            Ok(())
        }
        MultipartRequestBody::FlowMonitor(monitors) => put_rows(version, monitors, out),
        MultipartRequestBody::BundleFeatures(request) => {
            put_features_request(version, request, out)
        }
        MultipartRequestBody::Experimenter(vendor) => put_vendor(version, vendor, out),
    }
}

/// Reads a request's body.
pub(super) fn read_request(
    version: Version,
    reader: &mut Reader,
) -> Result<MultipartRequest, Fault> {
    let (kind, more) = read_prefix(version, reader)?;
    let body = match kind {
        MultipartKind::Desc => MultipartRequestBody::Desc,
        MultipartKind::Table => MultipartRequestBody::Table,
        MultipartKind::TableDesc => MultipartRequestBody::TableDesc,
        MultipartKind::ControllerStatus => MultipartRequestBody::ControllerStatus,
        MultipartKind::Flow => MultipartRequestBody::Flow(read_which(version, reader)?),
        MultipartKind::Aggregate => MultipartRequestBody::Aggregate(read_which(version, reader)?),
        MultipartKind::Port => MultipartRequestBody::Port(read_which_port(version, reader)?),
        MultipartKind::Queue => {
            let (port, queue) = read_which_queue(version, reader)?;
            MultipartRequestBody::Queue { port, queue }
        }
        MultipartKind::QueueDesc => {
            let (port, queue) = read_which_queue(version, reader)?;
            MultipartRequestBody::QueueDesc { port, queue }
        }
        MultipartKind::PortDesc if version >= Version::V1_5 => {
            MultipartRequestBody::PortDesc(read_which_port(version, reader)?)
        }
        MultipartKind::PortDesc => MultipartRequestBody::PortDesc(reserved::NONE),
        MultipartKind::TableFeatures => {
            MultipartRequestBody::TableFeatures(read_rows(version, reader)?)
        }
        MultipartKind::Group => MultipartRequestBody::Group(group::read_which_group(reader)?),
        MultipartKind::GroupDesc => {
            MultipartRequestBody::GroupDesc(group::read_which_description(version, reader)?)
        }
        MultipartKind::GroupFeatures => MultipartRequestBody::GroupFeatures,
        MultipartKind::Meter => MultipartRequestBody::Meter(meter::read_which_meter(reader)?),
        MultipartKind::MeterConfig => {
            MultipartRequestBody::MeterConfig(meter::read_which_meter(reader)?)
        }
        MultipartKind::MeterFeatures => MultipartRequestBody::MeterFeatures,
        MultipartKind::FlowStats => MultipartRequestBody::FlowStats(read_which(version, reader)?),
        MultipartKind::FlowMonitor => {
            MultipartRequestBody::FlowMonitor(read_rows(version, reader)?)
        }
        MultipartKind::BundleFeatures => {
            MultipartRequestBody::BundleFeatures(read_features_request(version, reader)?)
        }
        MultipartKind::Experimenter => {
            MultipartRequestBody::Experimenter(read_vendor(version, reader)?)
        }
    };
    Ok(MultipartRequest { more: more && version >= Version::V1_3, body })
}

/// Appends the requested port.
fn put_which_port(version: Version, port: PortNo, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    put_port(version, port, out)?;
    out.put_zeros(if version == Version::V1_0 { 6 } else { 4 });
    Ok(())
}

fn read_which_port(version: Version, reader: &mut Reader) -> Result<PortNo, Malformed> {
    let port = read_port(version, reader)?;
    reader.skip(if version == Version::V1_0 { 6 } else { 4 })?;
    Ok(port)
}

/// Appends the requested queue.
fn put_which_queue(
    version: Version,
    port: PortNo,
    queue: u32,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_port(version, port, out)?;
    out.put_zeros(if version == Version::V1_0 { 2 } else { 0 });
    out.put_u32(queue);
    Ok(())
}

fn read_which_queue(version: Version, reader: &mut Reader) -> Result<(PortNo, u32), Malformed> {
    let port = read_port(version, reader)?;
    reader.skip(if version == Version::V1_0 { 2 } else { 0 })?;
    Ok((port, reader.u32()?))
}

/// Appends a reply's body.
pub(super) fn put_reply(
    version: Version,
    reply: &MultipartReply,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_prefix(version, reply.body.kind(), reply.more, out)?;
    match &reply.body {
        MultipartReplyBody::Desc(desc) => put_switch(desc, out),
        MultipartReplyBody::Flow(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Aggregate(sum) => put_aggregate(version, sum, out),
        MultipartReplyBody::Table(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Port(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Queue(rows) => put_rows(version, rows, out),
        MultipartReplyBody::TableFeatures(rows) => put_rows(version, rows, out),
        MultipartReplyBody::PortDesc(rows) => put_rows(version, rows, out),
        MultipartReplyBody::TableDesc(rows) => put_rows(version, rows, out),
        MultipartReplyBody::QueueDesc(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Group(rows) => put_rows(version, rows, out),
        MultipartReplyBody::GroupDesc(rows) => put_rows(version, rows, out),
        MultipartReplyBody::GroupFeatures(features) => group::put_features(version, features, out),
        MultipartReplyBody::Meter(rows) => put_rows(version, rows, out),
        MultipartReplyBody::MeterConfig(rows) => put_rows(version, rows, out),
        MultipartReplyBody::MeterFeatures(features) => meter::put_features(version, features, out),
        MultipartReplyBody::FlowStats(rows) => put_rows(version, rows, out),
        MultipartReplyBody::FlowMonitor(rows) => put_rows(version, rows, out),
        MultipartReplyBody::ControllerStatus(rows) => put_rows(version, rows, out),
        MultipartReplyBody::BundleFeatures(features) => put_features(version, features, out),
        MultipartReplyBody::Experimenter(vendor) => put_vendor(version, vendor, out),
    }
}

/// Reads a reply's body.
pub(super) fn read_reply(version: Version, reader: &mut Reader) -> Result<MultipartReply, Fault> {
    let (kind, more) = read_prefix(version, reader)?;
    let body = match kind {
        MultipartKind::Desc => MultipartReplyBody::Desc(read_switch(reader)?),
        MultipartKind::Flow => MultipartReplyBody::Flow(read_rows(version, reader)?),
        MultipartKind::Aggregate => MultipartReplyBody::Aggregate(read_aggregate(version, reader)?),
        MultipartKind::Table => MultipartReplyBody::Table(read_rows(version, reader)?),
        MultipartKind::Port => MultipartReplyBody::Port(read_rows(version, reader)?),
        MultipartKind::Queue => MultipartReplyBody::Queue(read_rows(version, reader)?),
        MultipartKind::TableFeatures => {
            MultipartReplyBody::TableFeatures(read_rows(version, reader)?)
        }
        MultipartKind::PortDesc => MultipartReplyBody::PortDesc(read_rows(version, reader)?),
        MultipartKind::TableDesc => MultipartReplyBody::TableDesc(read_rows(version, reader)?),
        MultipartKind::QueueDesc => MultipartReplyBody::QueueDesc(read_rows(version, reader)?),
        MultipartKind::Group => MultipartReplyBody::Group(read_rows(version, reader)?),
        MultipartKind::GroupDesc => MultipartReplyBody::GroupDesc(read_rows(version, reader)?),
        MultipartKind::GroupFeatures => {
            MultipartReplyBody::GroupFeatures(group::read_features(version, reader)?)
        }
        MultipartKind::Meter => MultipartReplyBody::Meter(read_rows(version, reader)?),
        MultipartKind::MeterConfig => MultipartReplyBody::MeterConfig(read_rows(version, reader)?),
        MultipartKind::MeterFeatures => {
            MultipartReplyBody::MeterFeatures(meter::read_features(version, reader)?)
        }
        MultipartKind::FlowStats => MultipartReplyBody::FlowStats(read_rows(version, reader)?),
        MultipartKind::FlowMonitor => MultipartReplyBody::FlowMonitor(read_rows(version, reader)?),
        MultipartKind::ControllerStatus => {
            MultipartReplyBody::ControllerStatus(read_rows(version, reader)?)
        }
        MultipartKind::BundleFeatures => {
            MultipartReplyBody::BundleFeatures(read_features(version, reader)?)
        }
        MultipartKind::Experimenter => {
            MultipartReplyBody::Experimenter(read_vendor(version, reader)?)
        }
    };
    Ok(MultipartReply { more, body })
}

/// Splits a reply into parts that each fit into a message; all but the last have the "more" flag.
///
/// A reply that is not a list of rows remains one part.
pub fn split(
    version: Version,
    body: MultipartReplyBody,
) -> Result<Vec<MultipartReply>, NotExpressible> {
    use MultipartReplyBody as Body;
    let parts = match body {
        Body::Flow(rows) => pack(version, rows, Body::Flow),
        Body::Table(rows) => pack(version, rows, Body::Table),
        Body::Port(rows) => pack(version, rows, Body::Port),
        Body::Queue(rows) => pack(version, rows, Body::Queue),
        Body::Group(rows) => pack(version, rows, Body::Group),
        Body::GroupDesc(rows) => pack(version, rows, Body::GroupDesc),
        Body::Meter(rows) => pack(version, rows, Body::Meter),
        Body::MeterConfig(rows) => pack(version, rows, Body::MeterConfig),
        Body::TableFeatures(rows) => pack(version, rows, Body::TableFeatures),
        Body::PortDesc(rows) => pack(version, rows, Body::PortDesc),
        Body::TableDesc(rows) => pack(version, rows, Body::TableDesc),
        Body::QueueDesc(rows) => pack(version, rows, Body::QueueDesc),
        Body::FlowStats(rows) => pack(version, rows, Body::FlowStats),
        Body::FlowMonitor(rows) => pack(version, rows, Body::FlowMonitor),
        Body::ControllerStatus(rows) => pack(version, rows, Body::ControllerStatus),
        body @ (Body::Desc(_)
        | Body::Aggregate(_)
        | Body::BundleFeatures(_)
        | Body::GroupFeatures(_)
        | Body::MeterFeatures(_)
        | Body::Experimenter(_)) => Ok(vec![body.into()]),
    };
    parts.map_err(|what| NotExpressible { version, what })
}

fn pack<T: MultipartRow>(
    version: Version,
    rows: Vec<T>,
    body: impl Fn(Vec<T>) -> MultipartReplyBody,
) -> Result<Vec<MultipartReply>, MessagePart> {
    let room = MESSAGE_BYTES_MAX - HEADER_BYTES - prefix_bytes(version);
    let (mut parts, mut part, mut used) = (Vec::new(), Vec::new(), 0);
    let mut scratch = Vec::new();
    for row in rows {
        scratch.clear();
        row.put(version, &mut scratch)?;
        if used + scratch.len() > room && !part.is_empty() {
            let full = std::mem::take(&mut part);
            parts.push(MultipartReply { more: true, body: body(full) });
            used = 0;
        }
        used += scratch.len();
        part.push(row);
    }
    parts.push(MultipartReply { more: false, body: body(part) });
    Ok(parts)
}

/// A row of a request or reply that is a list.
pub(super) trait MultipartRow: Sized {
    /// Appends the row.
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart>;
    /// Reads a row.
    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault>;
}

fn put_rows<T: MultipartRow>(
    version: Version,
    rows: &[T],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    rows.iter().try_for_each(|row| row.put(version, out))
}

fn read_rows<T: MultipartRow>(version: Version, reader: &mut Reader) -> Result<Vec<T>, Fault> {
    let mut rows = Vec::new();
    while reader.left() > 0 {
        rows.push(T::read(version, reader)?);
    }
    Ok(rows)
}

impl MultipartRow for PortDescription {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        put_description(version, self, out)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        read_description(version, reader)
    }
}

fn put_switch(desc: &SwitchDescription, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    out.put_text("manufacturer", &desc.manufacturer, DESCRIPTION_BYTES)?;
    out.put_text("hardware", &desc.hardware, DESCRIPTION_BYTES)?;
    out.put_text("software", &desc.software, DESCRIPTION_BYTES)?;
    out.put_text("serial number", &desc.serial_number, SERIAL_BYTES)?;
    out.put_text("datapath", &desc.datapath, DESCRIPTION_BYTES)
}

fn read_switch(reader: &mut Reader) -> Result<SwitchDescription, Malformed> {
    Ok(SwitchDescription {
        manufacturer: reader.text(DESCRIPTION_BYTES)?,
        hardware: reader.text(DESCRIPTION_BYTES)?,
        software: reader.text(DESCRIPTION_BYTES)?,
        serial_number: reader.text(SERIAL_BYTES)?,
        datapath: reader.text(DESCRIPTION_BYTES)?,
    })
}
