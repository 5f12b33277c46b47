//! Queues as bytes.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.2 and 5.3.4.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::model::port::PortNo;
use crate::model::queue::{PacketQueue, QueueConfig, QueueProperty};
use crate::version::Version;

/// Bytes of a property's header.
const PROPERTY_BYTES: usize = 8;

/// Property that promises nothing.
const NONE: u16 = 0;

/// Property that promises a rate.
const MIN_RATE: u16 = 1;

/// Appends a request's body.
pub(super) fn put_request(version: Version, port: PortNo, out: &mut Vec<u8>) -> Result<(), What> {
    out.put_u16(port_to_wire(version, port)?);
    out.put_zeros(2);
    Ok(())
}

/// Reads a request's body.
pub(super) fn read_request(version: Version, reader: &mut Reader) -> Result<PortNo, Fault> {
    let port = port_from_wire(version, reader.u16()?);
    reader.skip(2)?;
    Ok(port)
}

/// Appends a reply's body.
pub(super) fn put_reply(
    version: Version,
    config: &QueueConfig,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    out.put_u16(port_to_wire(version, config.port)?);
    out.put_zeros(6);
    config.queues.iter().try_for_each(|queue| put_queue(queue, out))
}

fn put_queue(queue: &PacketQueue, out: &mut Vec<u8>) -> Result<(), What> {
    let start = out.len();
    out.put_u32(queue.id);
    out.put_u32(0);
    for property in &queue.properties {
        put_property(property, out)?;
    }
    put_length("queue", out, start, 4)
}

fn put_property(property: &QueueProperty, out: &mut Vec<u8>) -> Result<(), What> {
    let start = out.len();
    match property {
        QueueProperty::None => {
            out.put_u16(NONE);
            out.put_zeros(6);
        }
        QueueProperty::MinRate(rate) => {
            out.put_u16(MIN_RATE);
            out.put_zeros(6);
            out.put_u16(*rate);
            out.put_zeros(6);
        }
        QueueProperty::MaxRate(_) | QueueProperty::Experimenter(_) => {
            return Err(What::Bit("queue property"));
        }
        QueueProperty::Other { kind: kind @ (NONE | MIN_RATE), .. } => {
            return Err(What::Value { field: "queue property", value: (*kind).into() });
        }
        QueueProperty::Other { kind, body } => {
            out.put_u16(*kind);
            out.put_zeros(6);
            out.extend_from_slice(body);
        }
    }
    put_length("queue property", out, start, 2)
}

/// Writes the length of what starts at `start` into its field, `offset` bytes in.
fn put_length(
    field: &'static str,
    out: &mut [u8],
    start: usize,
    offset: usize,
) -> Result<(), What> {
    let bytes = out.len() - start;
    let length = u16::try_from(bytes).map_err(|_| What::TooLong {
        field,
        bytes,
        bytes_max: u16::MAX.into(),
    })?;
    out[start + offset..start + offset + 2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Reads a reply's body.
pub(super) fn read_reply(version: Version, reader: &mut Reader) -> Result<QueueConfig, Fault> {
    let port = port_from_wire(version, reader.u16()?);
    reader.skip(6)?;
    let mut queues = Vec::new();
    while reader.left() > 0 {
        queues.push(read_queue(port, reader)?);
    }
    Ok(QueueConfig { port, queues })
}

fn read_queue(port: PortNo, reader: &mut Reader) -> Result<PacketQueue, Malformed> {
    let id = reader.u32()?;
    let mut body = read_length(reader, 8, 4)?;
    body.skip(2)?;
    let mut properties = Vec::new();
    while body.left() > 0 {
        properties.push(read_property(&mut body)?);
    }
    Ok(PacketQueue { port, id, properties })
}

fn read_property(reader: &mut Reader) -> Result<QueueProperty, Malformed> {
    let kind = reader.u16()?;
    let mut body = read_length(reader, PROPERTY_BYTES, 2)?;
    body.skip(4)?;
    let property = match kind {
        NONE => QueueProperty::None,
        MIN_RATE => {
            let rate = body.u16()?;
            body.skip(6)?;
            QueueProperty::MinRate(rate)
        }
        kind => QueueProperty::Other { kind, body: body.rest().to_vec() },
    };
    body.finish()?;
    Ok(property)
}

/// Reads the length of a structure that has at least `least` bytes and began `before` bytes ago,
/// and gives what of it comes after the length.
fn read_length<'a>(
    reader: &mut Reader<'a>,
    least: usize,
    before: usize,
) -> Result<Reader<'a>, Malformed> {
    let at = reader.at();
    let length = usize::from(reader.u16()?);
    let bad = Malformed { at, why: Why::BadLength(length) };
    if length < least {
        return Err(bad);
    }
    reader.within(length - before - 2).map_err(|_| bad)
}
