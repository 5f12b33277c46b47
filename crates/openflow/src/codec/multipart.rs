//! Statistics as bytes, and long replies in parts.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5. Request and reply start with a type and flags; of the
//! flags only the reply's "more" means anything.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::flow::{put_span, read_span};
use super::instruction::{put_action_list, read_action_list};
use super::matching::{put_match, read_match, wildcards_from_wire, wildcards_to_wire};
use super::message::{put_experimenter, read_experimenter};
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, NotExpressible, What};
use crate::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use crate::model::flow::FlowModFlags;
use crate::model::multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartReply, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, SwitchDescription,
};
use crate::model::port_stats::PortStats;
use crate::model::queue::QueueStats;
use crate::model::table::{TableAbilities, TableStats};
use crate::version::{ErrorCode, MultipartKind, Version};

/// Reply flag: another part follows.
const MORE: u16 = 1;

/// Bytes of type and flags.
const PREFIX_BYTES: usize = 4;

/// Bytes of the long texts of a description.
const DESCRIPTION_BYTES: usize = 256;

/// Bytes of a description's serial number.
const SERIAL_BYTES: usize = 32;

/// Bytes of a table's name.
const TABLE_NAME_BYTES: usize = 32;

/// Bytes of an entry before its actions.
const FLOW_BYTES_MIN: usize = 88;

/// Appends a request's body.
pub(super) fn put_request(
    version: Version,
    request: &MultipartRequest,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_prefix(version, request.body.kind(), if request.more { MORE } else { 0 }, out)?;
    match &request.body {
        MultipartRequestBody::Desc | MultipartRequestBody::Table => {}
        MultipartRequestBody::Flow(which) | MultipartRequestBody::Aggregate(which) => {
            put_match(version, &which.matching, out)?;
            out.put_u8(which.table);
            out.put_zeros(1);
            out.put_u16(port_to_wire(version, which.out_port)?);
        }
        MultipartRequestBody::Port(port) => {
            out.put_u16(port_to_wire(version, *port)?);
            out.put_zeros(6);
        }
        MultipartRequestBody::Queue { port, queue } => {
            out.put_u16(port_to_wire(version, *port)?);
            out.put_zeros(2);
            out.put_u32(*queue);
        }
        MultipartRequestBody::Experimenter(vendor) => put_experimenter(vendor, out),
        MultipartRequestBody::TableFeatures(_)
        | MultipartRequestBody::PortDesc(_)
        | MultipartRequestBody::TableDesc
        | MultipartRequestBody::QueueDesc { .. }
        | MultipartRequestBody::FlowMonitor(_)
        | MultipartRequestBody::ControllerStatus
        | MultipartRequestBody::BundleFeatures(_) => {
            return Err(What::Multipart(request.body.kind()));
        }
    }
    Ok(())
}

fn put_prefix(
    version: Version,
    kind: MultipartKind,
    flags: u16,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    out.put_u16(kind.code(version).ok_or(What::Multipart(kind))?);
    out.put_u16(flags);
    Ok(())
}

fn read_prefix(version: Version, reader: &mut Reader) -> Result<(MultipartKind, u16), Fault> {
    let at = reader.at();
    let (code, flags) = (reader.u16()?, reader.u16()?);
    match MultipartKind::from_code(version, code) {
        Some(kind) => Ok((kind, flags)),
        None => {
            let malformed = Malformed { at, why: Why::BadValue(code.into()) };
            Err(Fault::new(malformed, ErrorCode::RequestBadMultipart))
        }
    }
}

fn unknown_kind(kind: MultipartKind) -> Fault {
    let malformed = Malformed { at: HEADER_BYTES, why: Why::BadValue(kind as u64) };
    Fault::new(malformed, ErrorCode::RequestBadMultipart)
}

/// Reads a request's body.
pub(super) fn read_request(
    version: Version,
    reader: &mut Reader,
) -> Result<MultipartRequest, Fault> {
    let (kind, flags) = read_prefix(version, reader)?;
    let body = match kind {
        MultipartKind::Desc => MultipartRequestBody::Desc,
        MultipartKind::Table => MultipartRequestBody::Table,
        MultipartKind::Flow => MultipartRequestBody::Flow(read_which(version, reader)?),
        MultipartKind::Aggregate => MultipartRequestBody::Aggregate(read_which(version, reader)?),
        MultipartKind::Port => {
            let port = port_from_wire(version, reader.u16()?);
            reader.skip(6)?;
            MultipartRequestBody::Port(port)
        }
        MultipartKind::Queue => {
            let port = port_from_wire(version, reader.u16()?);
            reader.skip(2)?;
            MultipartRequestBody::Queue { port, queue: reader.u32()? }
        }
        MultipartKind::Experimenter => {
            MultipartRequestBody::Experimenter(read_experimenter(reader)?)
        }
        _ => return Err(unknown_kind(kind)),
    };
    Ok(MultipartRequest { more: flags & MORE != 0, body })
}

fn read_which(version: Version, reader: &mut Reader) -> Result<FlowStatsRequest, Fault> {
    let matching = read_match(version, reader)?;
    let table = reader.u8()?;
    reader.skip(1)?;
    let out_port = port_from_wire(version, reader.u16()?);
    Ok(FlowStatsRequest { matching, table, out_port, ..FlowStatsRequest::default() })
}

/// Appends a reply's body.
pub(super) fn put_reply(
    version: Version,
    reply: &MultipartReply,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    put_prefix(version, reply.body.kind(), if reply.more { MORE } else { 0 }, out)?;
    match &reply.body {
        MultipartReplyBody::Desc(desc) => put_description(desc, out),
        MultipartReplyBody::Flow(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Aggregate(sum) => {
            put_aggregate(sum, out);
            Ok(())
        }
        MultipartReplyBody::Table(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Port(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Queue(rows) => put_rows(version, rows, out),
        MultipartReplyBody::Experimenter(vendor) => {
            put_experimenter(vendor, out);
            Ok(())
        }
        MultipartReplyBody::TableFeatures(_)
        | MultipartReplyBody::PortDesc(_)
        | MultipartReplyBody::TableDesc(_)
        | MultipartReplyBody::QueueDesc(_)
        | MultipartReplyBody::FlowMonitor(_)
        | MultipartReplyBody::ControllerStatus(_)
        | MultipartReplyBody::BundleFeatures(_) => Err(What::Multipart(reply.body.kind())),
    }
}

/// Reads a reply's body.
pub(super) fn read_reply(version: Version, reader: &mut Reader) -> Result<MultipartReply, Fault> {
    let (kind, flags) = read_prefix(version, reader)?;
    let body = match kind {
        MultipartKind::Desc => MultipartReplyBody::Desc(read_description(reader)?),
        MultipartKind::Flow => MultipartReplyBody::Flow(read_rows(version, reader)?),
        MultipartKind::Aggregate => MultipartReplyBody::Aggregate(read_aggregate(reader)?),
        MultipartKind::Table => MultipartReplyBody::Table(read_rows(version, reader)?),
        MultipartKind::Port => MultipartReplyBody::Port(read_rows(version, reader)?),
        MultipartKind::Queue => MultipartReplyBody::Queue(read_rows(version, reader)?),
        MultipartKind::Experimenter => MultipartReplyBody::Experimenter(read_experimenter(reader)?),
        _ => return Err(unknown_kind(kind)),
    };
    Ok(MultipartReply { more: flags & MORE != 0, body })
}

/// Cuts a reply into parts that each fit a message, in order; all but the last say that there is
/// more. What is no list of rows stays one part.
pub fn split(
    version: Version,
    body: MultipartReplyBody,
) -> Result<Vec<MultipartReply>, NotExpressible> {
    let parts = match body {
        MultipartReplyBody::Flow(rows) => pack(version, rows, MultipartReplyBody::Flow),
        MultipartReplyBody::Table(rows) => pack(version, rows, MultipartReplyBody::Table),
        MultipartReplyBody::Port(rows) => pack(version, rows, MultipartReplyBody::Port),
        MultipartReplyBody::Queue(rows) => pack(version, rows, MultipartReplyBody::Queue),
        body => Ok(vec![MultipartReply { more: false, body }]),
    };
    parts.map_err(|what| NotExpressible { version, what })
}

fn pack<T: Row>(
    version: Version,
    rows: Vec<T>,
    body: impl Fn(Vec<T>) -> MultipartReplyBody,
) -> Result<Vec<MultipartReply>, What> {
    let room = MESSAGE_BYTES_MAX - HEADER_BYTES - PREFIX_BYTES;
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

/// One row of a reply that is a list.
trait Row: Sized {
    /// Appends the row.
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), What>;
    /// Reads a row.
    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault>;
}

fn put_rows<T: Row>(version: Version, rows: &[T], out: &mut Vec<u8>) -> Result<(), What> {
    rows.iter().try_for_each(|row| row.put(version, out))
}

fn read_rows<T: Row>(version: Version, reader: &mut Reader) -> Result<Vec<T>, Fault> {
    let mut rows = Vec::new();
    while reader.left() > 0 {
        rows.push(T::read(version, reader)?);
    }
    Ok(rows)
}

fn put_description(desc: &SwitchDescription, out: &mut Vec<u8>) -> Result<(), What> {
    out.put_text("manufacturer", &desc.manufacturer, DESCRIPTION_BYTES)?;
    out.put_text("hardware", &desc.hardware, DESCRIPTION_BYTES)?;
    out.put_text("software", &desc.software, DESCRIPTION_BYTES)?;
    out.put_text("serial number", &desc.serial_number, SERIAL_BYTES)?;
    out.put_text("datapath", &desc.datapath, DESCRIPTION_BYTES)
}

fn read_description(reader: &mut Reader) -> Result<SwitchDescription, Malformed> {
    Ok(SwitchDescription {
        manufacturer: reader.text(DESCRIPTION_BYTES)?,
        hardware: reader.text(DESCRIPTION_BYTES)?,
        software: reader.text(DESCRIPTION_BYTES)?,
        serial_number: reader.text(SERIAL_BYTES)?,
        datapath: reader.text(DESCRIPTION_BYTES)?,
    })
}

fn put_aggregate(sum: &AggregateStats, out: &mut Vec<u8>) {
    out.put_u64(sum.packets);
    out.put_u64(sum.bytes);
    out.put_u32(sum.flows);
    out.put_zeros(4);
}

fn read_aggregate(reader: &mut Reader) -> Result<AggregateStats, Malformed> {
    let sum = AggregateStats { packets: reader.u64()?, bytes: reader.u64()?, flows: reader.u32()? };
    reader.skip(4)?;
    Ok(sum)
}

impl Row for FlowStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), What> {
        let start = out.len();
        out.put_u16(0);
        out.put_u8(self.table);
        out.put_zeros(1);
        put_match(version, &self.matching, out)?;
        put_span(self.age, out)?;
        out.put_u16(self.priority);
        out.put_u16(self.idle_timeout_s);
        out.put_u16(self.hard_timeout_s);
        out.put_zeros(6);
        out.put_u64(self.cookie);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        put_action_list(version, &self.instructions, out)?;
        let bytes = out.len() - start;
        let length = u16::try_from(bytes).map_err(|_| What::TooLong {
            field: "flow",
            bytes,
            bytes_max: u16::MAX.into(),
        })?;
        out[start..start + 2].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let at = reader.at();
        let length = usize::from(reader.u16()?);
        let bad = Malformed { at, why: Why::BadLength(length) };
        if length < FLOW_BYTES_MIN {
            return Err(bad.into());
        }
        let mut row = reader.within(length - 2).map_err(|_| bad)?;
        let table = row.u8()?;
        row.skip(1)?;
        let matching = read_match(version, &mut row)?;
        let age = read_span(&mut row)?;
        let priority = row.u16()?;
        let (idle_timeout_s, hard_timeout_s) = (row.u16()?, row.u16()?);
        row.skip(6)?;
        let (cookie, packets, bytes) = (row.u64()?, row.u64()?, row.u64()?);
        let instructions = read_action_list(version, &mut row)?;
        Ok(FlowStats {
            table,
            matching,
            priority,
            cookie,
            age,
            idle_age: None,
            idle_timeout_s,
            hard_timeout_s,
            flags: FlowModFlags::NONE,
            importance: 0,
            packets,
            bytes,
            instructions,
        })
    }
}

impl Row for TableStats {
    fn put(&self, _version: Version, out: &mut Vec<u8>) -> Result<(), What> {
        let none = TableAbilities::default();
        let abilities = self.abilities.as_ref().unwrap_or(&none);
        out.put_u8(self.table);
        out.put_zeros(3);
        out.put_text("table name", &abilities.name, TABLE_NAME_BYTES)?;
        out.put_u32(wildcards_to_wire(abilities.wildcards));
        out.put_u32(abilities.entries_max);
        out.put_u32(self.entries);
        out.put_u64(self.lookups);
        out.put_u64(self.matched);
        Ok(())
    }

    fn read(_version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let table = reader.u8()?;
        reader.skip(3)?;
        let abilities = TableAbilities {
            name: reader.text(TABLE_NAME_BYTES)?,
            wildcards: wildcards_from_wire(reader.u32()?),
            entries_max: reader.u32()?,
            ..TableAbilities::default()
        };
        Ok(TableStats {
            table,
            entries: reader.u32()?,
            lookups: reader.u64()?,
            matched: reader.u64()?,
            abilities: Some(abilities),
        })
    }
}

impl Row for PortStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), What> {
        out.put_u16(port_to_wire(version, self.port)?);
        out.put_zeros(6);
        for counter in [
            self.rx_packets,
            self.tx_packets,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_dropped,
            self.tx_dropped,
            self.rx_errors,
            self.tx_errors,
            self.rx_frame_errors,
            self.rx_overruns,
            self.rx_crc_errors,
            self.collisions,
        ] {
            out.put_u64(counter);
        }
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let port = port_from_wire(version, reader.u16()?);
        reader.skip(6)?;
        Ok(PortStats {
            port,
            rx_packets: reader.u64()?,
            tx_packets: reader.u64()?,
            rx_bytes: reader.u64()?,
            tx_bytes: reader.u64()?,
            rx_dropped: reader.u64()?,
            tx_dropped: reader.u64()?,
            rx_errors: reader.u64()?,
            tx_errors: reader.u64()?,
            rx_frame_errors: reader.u64()?,
            rx_overruns: reader.u64()?,
            rx_crc_errors: reader.u64()?,
            collisions: reader.u64()?,
            age: None,
            properties: Vec::new(),
        })
    }
}

impl Row for QueueStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), What> {
        out.put_u16(port_to_wire(version, self.port)?);
        out.put_zeros(2);
        out.put_u32(self.queue);
        out.put_u64(self.tx_bytes);
        out.put_u64(self.tx_packets);
        out.put_u64(self.tx_errors);
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let port = port_from_wire(version, reader.u16()?);
        reader.skip(2)?;
        Ok(QueueStats {
            port,
            queue: reader.u32()?,
            tx_bytes: reader.u64()?,
            tx_packets: reader.u64()?,
            tx_errors: reader.u64()?,
            age: None,
            properties: Vec::new(),
        })
    }
}
