//! Encodes and decodes queues: configuration and statistics.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.2, 5.3.4 and 5.3.5; 1.2 section A.2.2; 1.4.1 sections
//! 7.3.5.10 and 7.3.5.11.
//!
//! From 1.4 on the configuration is a multipart reply with standard properties. Before, it is a
//! separate message, whose property headers have additional padding.

use packet::error::Malformed;

use super::bytes::{Put, Reader, put_length, read_length};
use super::multipart::MultipartRow;
use super::port::{put_port, read_port};
use super::property::{
    self, EXPERIMENTER, Property, put_experimenters, put_property, read_experimenters,
    read_properties,
};
use super::span::{put_age, read_age};
use super::{Fault, MessagePart};
use crate::model::action::Experimenter;
use crate::model::port::PortNo;
use crate::model::queue::{PacketQueue, QueueConfig, QueueProperty, QueueStats};
use crate::version::Version;

/// Bytes of a property header before 1.4.
const PROPERTY_BYTES: usize = 8;

/// Bytes of a statistics row of 1.4 without properties.
const STATS_BYTES_MIN: usize = 48;

/// Property type: no property.
const NONE: u16 = 0;

/// Property type: minimum rate.
const MIN_RATE: u16 = 1;

/// Property type: maximum rate.
const MAX_RATE: u16 = 2;

/// Appends a request's body.
pub(super) fn put_request(
    version: Version,
    port: PortNo,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_port(version, port, out)?;
    out.put_zeros(padding(version));
    Ok(())
}

/// Reads a request's body.
pub(super) fn read_request(version: Version, reader: &mut Reader) -> Result<PortNo, Fault> {
    let port = read_port(version, reader)?;
    reader.skip(padding(version))?;
    Ok(port)
}

/// Returns the bytes of padding after the port of a request.
fn padding(version: Version) -> usize {
    if version == Version::V1_0 { 2 } else { 4 }
}

/// Appends a reply's body.
pub(super) fn put_reply(
    version: Version,
    config: &QueueConfig,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_port(version, config.port, out)?;
    out.put_zeros(if version == Version::V1_0 { 6 } else { 4 });
    for queue in &config.queues {
        if version < Version::V1_2 && queue.port != config.port {
            return Err(MessagePart::Value { field: "port of a queue", value: queue.port.into() });
        }
        put_queue(version, queue, out)?;
    }
    Ok(())
}

/// Appends a queue in the format before 1.4; from 1.2 on with its port.
fn put_queue(version: Version, queue: &PacketQueue, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u32(queue.id);
    if version >= Version::V1_2 {
        put_port(version, queue.port, out)?;
    }
    let length_at = out.len() - start;
    out.put_u16(0);
    out.put_zeros(if version >= Version::V1_2 { 6 } else { 2 });
    for property in &queue.properties {
        put_old_property(version, property, out)?;
    }
    put_length("queue", out, start, length_at)
}

fn put_old_property(
    version: Version,
    property: &QueueProperty,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    let header = |kind: u16, out: &mut Vec<u8>| {
        out.put_u16(kind);
        out.put_zeros(6);
    };
    match property {
        QueueProperty::None => header(NONE, out),
        QueueProperty::MinRate(rate) => {
            header(MIN_RATE, out);
            out.put_u16(*rate);
            out.put_zeros(6);
        }
        QueueProperty::MaxRate(_) if version < Version::V1_2 => {
            return Err(MessagePart::Bit("max_rate"));
        }
        QueueProperty::MaxRate(rate) => {
            header(MAX_RATE, out);
            out.put_u16(*rate);
            out.put_zeros(6);
        }
        QueueProperty::Experimenter(_) if version < Version::V1_2 => {
            return Err(MessagePart::Bit("experimenter's queue property"));
        }
        QueueProperty::Experimenter(body) => {
            header(EXPERIMENTER, out);
            out.put_u32(body.experimenter);
            out.put_zeros(4);
            out.extend_from_slice(&body.body);
        }
        QueueProperty::Other { kind, .. } if is_known(version, *kind) => {
            return Err(MessagePart::Value { field: "queue property", value: (*kind).into() });
        }
        QueueProperty::Other { kind, body } => {
            header(*kind, out);
            out.extend_from_slice(body);
        }
    }
    put_length("queue property", out, start, 2)
}

/// Returns whether the version, before 1.4, defines this property type.
fn is_known(version: Version, kind: u16) -> bool {
    matches!(kind, NONE | MIN_RATE)
        || version >= Version::V1_2 && matches!(kind, MAX_RATE | EXPERIMENTER)
}

/// Reads a reply's body.
pub(super) fn read_reply(version: Version, reader: &mut Reader) -> Result<QueueConfig, Fault> {
    let port = read_port(version, reader)?;
    reader.skip(if version == Version::V1_0 { 6 } else { 4 })?;
    let mut queues = Vec::new();
    while reader.left() > 0 {
        queues.push(read_queue(version, port, reader)?);
    }
    Ok(QueueConfig { port, queues })
}

fn read_queue(
    version: Version,
    port: PortNo,
    reader: &mut Reader,
) -> Result<PacketQueue, Malformed> {
    let id = reader.u32()?;
    let mut queue = PacketQueue { port, id, properties: Vec::new() };
    let mut body;
    if version >= Version::V1_2 {
        queue.port = read_port(version, reader)?;
        body = read_length(reader, 16, 8)?;
        body.skip(6)?;
    } else {
        body = read_length(reader, 8, 4)?;
        body.skip(2)?;
    }
    while body.left() > 0 {
        queue.properties.push(read_old_property(version, &mut body)?);
    }
    Ok(queue)
}

fn read_old_property(version: Version, reader: &mut Reader) -> Result<QueueProperty, Malformed> {
    let kind = reader.u16()?;
    let mut body = read_length(reader, PROPERTY_BYTES, 2)?;
    body.skip(4)?;
    let property = match kind {
        kind if !is_known(version, kind) => {
            QueueProperty::Other { kind, body: body.rest().to_vec() }
        }
        NONE => QueueProperty::None,
        MIN_RATE => QueueProperty::MinRate(read_old_rate(&mut body)?),
        MAX_RATE => QueueProperty::MaxRate(read_old_rate(&mut body)?),
        _ => {
            let experimenter = body.u32()?;
            body.skip(4)?;
            let body = body.rest().to_vec();
            QueueProperty::Experimenter(Experimenter { experimenter, body })
        }
    };
    body.finish()?;
    Ok(property)
}

fn read_old_rate(body: &mut Reader) -> Result<u16, Malformed> {
    let rate = body.u16()?;
    body.skip(6)?;
    Ok(rate)
}

/// A queue as a row of a multipart reply, from 1.4 on.
impl MultipartRow for PacketQueue {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        put_port(version, self.port, out)?;
        out.put_u32(self.id);
        out.put_zeros(8);
        for property in &self.properties {
            put_new_property(property, out)?;
        }
        put_length("queue", out, start, 8)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let port = read_port(version, reader)?;
        let id = reader.u32()?;
        let mut body = read_length(reader, 16, 8)?;
        body.skip(6)?;
        let properties = read_properties(&mut body, read_new_property)?;
        Ok(PacketQueue { port, id, properties })
    }
}

fn put_new_property(property: &QueueProperty, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let rate = |rate: u16| {
        move |out: &mut Vec<u8>| {
            out.put_u16(rate);
            out.put_zeros(2);
            Ok(())
        }
    };
    match property {
        QueueProperty::None => Err(MessagePart::Bit("queue property without a rate")),
        QueueProperty::MinRate(least) => put_property(MIN_RATE, out, rate(*least)),
        QueueProperty::MaxRate(most) => put_property(MAX_RATE, out, rate(*most)),
        QueueProperty::Experimenter(body) => property::put_experimenter(EXPERIMENTER, body, out),
        QueueProperty::Other { kind, .. } => {
            Err(MessagePart::Value { field: "queue property", value: (*kind).into() })
        }
    }
}

fn read_new_property(property: Property) -> Result<QueueProperty, Fault> {
    let rate = |body: &mut Reader| {
        let rate = body.u16()?;
        body.skip(2)?;
        Ok(rate)
    };
    Ok(match property.kind {
        MIN_RATE => QueueProperty::MinRate(property.read(rate)?),
        MAX_RATE => QueueProperty::MaxRate(property.read(rate)?),
        EXPERIMENTER => QueueProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}

impl MultipartRow for QueueStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        if version >= Version::V1_4 {
            out.put_zeros(8);
        }
        put_port(version, self.port, out)?;
        if version == Version::V1_0 {
            out.put_zeros(2);
        }
        out.put_u32(self.queue);
        out.put_u64(self.tx_bytes);
        out.put_u64(self.tx_packets);
        out.put_u64(self.tx_errors);
        if version >= Version::V1_3 {
            put_age(self.age, out)?;
        }
        put_experimenters(version, &self.properties, out)?;
        if version >= Version::V1_4 {
            put_length("queue statistics", out, start, 0)?;
        }
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        if version < Version::V1_4 {
            return read_stats(version, reader);
        }
        let mut row = read_length(reader, STATS_BYTES_MIN, 0)?;
        row.skip(6)?;
        let mut stats = read_stats(version, &mut row)?;
        stats.properties = read_experimenters(&mut row)?;
        Ok(stats)
    }
}

fn read_stats(version: Version, reader: &mut Reader) -> Result<QueueStats, Fault> {
    let port = read_port(version, reader)?;
    if version == Version::V1_0 {
        reader.skip(2)?;
    }
    Ok(QueueStats {
        port,
        queue: reader.u32()?,
        tx_bytes: reader.u64()?,
        tx_packets: reader.u64()?,
        tx_errors: reader.u64()?,
        age: if version >= Version::V1_3 { read_age(reader)? } else { None },
        properties: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check};
    use super::*;
    use crate::model::message::Message;
    use crate::model::multipart::MultipartReplyBody;
    use packet::time::Nanos;

    #[test]
    fn queue_properties_and_statistics_differ_between_versions() {
        let properties = vec![QueueProperty::MinRate(100)];
        let mut config =
            QueueConfig { port: 1, queues: vec![PacketQueue { port: 1, id: 2, properties }] };
        let reply = |config: &QueueConfig| Message::QueueGetConfigReply(config.clone());
        let property = "0001 0010 00000000 0064 000000000000";
        let old = format!("00000001 00000000 00000002 0018 0000 {property}");
        check(Version::V1_1, &reply(&config), &old);
        let later = format!("00000001 00000000 00000002 00000001 0020 000000000000 {property}");
        check(Version::V1_3, &reply(&config), &later);
        config.queues[0].properties.push(QueueProperty::MaxRate(RATE));
        assert_eq!(body_of(Version::V1_1, &reply(&config)), Err(MessagePart::Bit("max_rate")));
        let rows = Message::MultipartReply(MultipartReplyBody::QueueDesc(config.queues).into());
        let hex = "000f 0000 00000000 00000001 00000002 0020 000000000000
            0001 0008 0064 0000 0002 0008 03e8 0000";
        check(Version::V1_4, &rows, hex);
    }

    const RATE: u16 = 1000;

    #[test]
    fn durations_are_reported_from_1_3_on() {
        let stats = QueueStats { port: 1, queue: 2, tx_bytes: 3, ..QueueStats::default() };
        let reply = |stats: &QueueStats| {
            Message::MultipartReply(MultipartReplyBody::Queue(vec![stats.clone()]).into())
        };
        let counters = "0000000000000003 0000000000000000 0000000000000000";
        let head = "0005 0000 00000000";
        check(Version::V1_2, &reply(&stats), &format!("{head} 00000001 00000002 {counters}"));
        let unknown = format!("{head} 00000001 00000002 {counters} ffffffff ffffffff");
        check(Version::V1_3, &reply(&stats), &unknown);
        let stats = QueueStats { age: Some(Nanos(1_000_000_005)), ..stats };
        let known =
            format!("{head} 0030 000000000000 00000001 00000002 {counters} 00000001 00000005");
        check(Version::V1_4, &reply(&stats), &known);
    }
}
