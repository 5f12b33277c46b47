//! Encodes and decodes port statistics.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.3.5 and 1.4.1 section 7.3.5.6. From 1.4 on the counters
//! specific to Ethernet are in a property.

use packet::error::Malformed;

use super::super::bytes::{Put, Reader, put_length, read_length};
use super::super::multipart::MultipartRow;
use super::super::property::{put_property, read_property};
use super::super::span::{put_age, read_age};
use super::super::{Fault, MessagePart};
use super::property::{ETHERNET, put_stats_property, read_stats_property};
use super::{put_port, read_port};
use crate::model::port::property::PortStatsProperty;
use crate::model::port::stats::{COUNTER_UNKNOWN, PortStats};
use crate::version::Version;

/// Bytes of a row of 1.4 without properties.
const BYTES_MIN: usize = 80;

impl MultipartRow for PortStats {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        if version >= Version::V1_4 {
            return put_with_properties(version, self, out);
        }
        if !self.properties.is_empty() {
            return Err(MessagePart::Bit("port properties"));
        }
        put_port(version, self.port, out)?;
        out.put_zeros(if version == Version::V1_0 { 6 } else { 4 });
        put_common(self, out);
        put_ethernet(self, out);
        if version >= Version::V1_3 {
            put_age(self.age, out)?;
        }
        Ok(())
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        if version >= Version::V1_4 {
            return read_with_properties(version, reader);
        }
        let mut stats = PortStats { port: read_port(version, reader)?, ..PortStats::default() };
        reader.skip(if version == Version::V1_0 { 6 } else { 4 })?;
        read_common(&mut stats, reader)?;
        read_ethernet(&mut stats, reader)?;
        if version >= Version::V1_3 {
            stats.age = read_age(reader)?;
        }
        Ok(stats)
    }
}

fn put_with_properties(
    version: Version,
    stats: &PortStats,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_zeros(4);
    put_port(version, stats.port, out)?;
    put_age(stats.age, out)?;
    put_common(stats, out);
    let is_optical =
        stats.properties.iter().any(|row| matches!(row, PortStatsProperty::Optical(_)));
    if !is_optical || counts_ethernet(stats) {
        put_property(ETHERNET, out, |out| {
            out.put_zeros(4);
            put_ethernet(stats, out);
            Ok(())
        })?;
    }
    for property in &stats.properties {
        put_stats_property(version, property, out)?;
    }
    put_length("port statistics", out, start, 0)
}

/// Returns whether the port supports any Ethernet counter.
fn counts_ethernet(stats: &PortStats) -> bool {
    ethernet(stats).iter().any(|counter| *counter != COUNTER_UNKNOWN)
}

fn ethernet(stats: &PortStats) -> [u64; 4] {
    [stats.rx_frame_errors, stats.rx_overruns, stats.rx_crc_errors, stats.collisions]
}

fn read_with_properties(version: Version, reader: &mut Reader) -> Result<PortStats, Fault> {
    let mut row = read_length(reader, BYTES_MIN, 0)?;
    row.skip(2)?;
    let mut stats = PortStats {
        port: read_port(version, &mut row)?,
        age: read_age(&mut row)?,
        rx_frame_errors: COUNTER_UNKNOWN,
        rx_overruns: COUNTER_UNKNOWN,
        rx_crc_errors: COUNTER_UNKNOWN,
        collisions: COUNTER_UNKNOWN,
        ..PortStats::default()
    };
    read_common(&mut stats, &mut row)?;
    while let Some(property) = read_property(&mut row)? {
        if property.kind == ETHERNET {
            property.read(|body| {
                body.skip(4)?;
                read_ethernet(&mut stats, body)
            })?;
        } else {
            stats.properties.push(read_stats_property(version, property)?);
        }
    }
    Ok(stats)
}

/// Appends the counters of all ports.
fn put_common(stats: &PortStats, out: &mut Vec<u8>) {
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
    ] {
        out.put_u64(counter);
    }
}

fn read_common(stats: &mut PortStats, reader: &mut Reader) -> Result<(), Malformed> {
    for counter in [
        &mut stats.rx_packets,
        &mut stats.tx_packets,
        &mut stats.rx_bytes,
        &mut stats.tx_bytes,
        &mut stats.rx_dropped,
        &mut stats.tx_dropped,
        &mut stats.rx_errors,
        &mut stats.tx_errors,
    ] {
        *counter = reader.u64()?;
    }
    Ok(())
}

/// Appends the counters of Ethernet ports.
fn put_ethernet(stats: &PortStats, out: &mut Vec<u8>) {
    ethernet(stats).into_iter().for_each(|counter| out.put_u64(counter));
}

fn read_ethernet(stats: &mut PortStats, reader: &mut Reader) -> Result<(), Malformed> {
    for counter in [
        &mut stats.rx_frame_errors,
        &mut stats.rx_overruns,
        &mut stats.rx_crc_errors,
        &mut stats.collisions,
    ] {
        *counter = reader.u64()?;
    }
    Ok(())
}
