//! Setting and copying fields.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 7.2.5 ("Set-Field"), and 1.5.1, section
//! 7.2.6 (masks, "Copy-Field"). A field is that of the outermost header with this field; a field
//! that the frame does not have is not set. Fields that identify the next header (`eth_type`,
//! `ip_proto`) are set without further adjustments. The only exception is the transport checksum of
//! the previous protocol, which is updated for the new protocol in the pseudo-header, as for
//! addresses.

use packet::field::Field;
use packet::frame::Frame;
use packet::header::ethernet;

use super::{Context, sum};
use crate::parse::Headers;

/// Bits of one field to copy to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// The source field.
    pub from: Field,
    /// Its lowest bit to read.
    pub from_bit: u8,
    /// The destination field.
    pub to: Field,
    /// Its lowest bit to write.
    pub to_bit: u8,
    /// Number of bits.
    pub bits: u8,
}

/// Sets the bits of `mask` in a field to those of `value`. Read-only fields (`in_port`,
/// `ipv6_exthdr`, ...) do not change.
pub fn set_field(frame: &mut Frame, context: &mut Context, field: Field, value: u128, mask: u128) {
    match field {
        Field::EthDst if mask == field.ones() => set_mac(frame, 0, value),
        Field::EthSrc if mask == field.ones() => set_mac(frame, 6, value),
        Field::Metadata | Field::TunnelId => context.set(field, value as u64, mask as u64),
        _ => {
            let headers = Headers::of(frame.bytes());
            set_located(&headers, frame.bytes_mut(), field, value, mask);
        }
    }
}

/// Copies bits, if the frame has both fields. Bits that either field does not have are not copied.
pub fn copy_field(frame: &mut Frame, context: &mut Context, copy: Copy) {
    let headers = Headers::of(frame.bytes());
    let value = context.get(copy.from).or_else(|| headers.get(copy.from, frame.bytes()));
    let Some(value) = value else { return };
    let (from, to) = (u32::from(copy.from_bit), u32::from(copy.to_bit));
    let room = copy.from.bits().saturating_sub(from).min(copy.to.bits().saturating_sub(to));
    let bits = room.min(copy.bits.into());
    if bits == 0 {
        return;
    }
    let mask = u128::MAX >> (128 - bits);
    let value = (value >> from & mask) << to;
    set_field(frame, context, copy.to, value, mask << to);
}

/// Sets bits of a field in the frame's bytes, if the frame has it.
pub fn set_located(headers: &Headers, bytes: &mut [u8], field: Field, value: u128, mask: u128) {
    let Some(place) = headers.place(field) else { return };
    let old = place.word(bytes);
    let mask = mask << place.shift & place.mask();
    let new = old & !mask | value << place.shift & mask;
    place.put(bytes, new);
    sum::correct(headers, bytes, &place, old, new);
}

/// Sets the whole address at `at`, in a frame of any kind.
fn set_mac(frame: &mut Frame, at: usize, value: u128) {
    if frame.len() >= ethernet::HEADER_BYTES {
        frame.bytes_mut()[at..at + 6].copy_from_slice(&value.to_be_bytes()[10..]);
    }
}

/// The source ports of all transport headers.
pub const SOURCES: [Field; 3] = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
/// The destination ports of all transport headers.
pub const DESTINATIONS: [Field; 3] = [Field::TcpDst, Field::UdpDst, Field::SctpDst];

/// Sets the one of these ports that the frame has (OpenFlow 1.0 and 1.1).
pub fn set_port(frame: &mut Frame, ports: &[Field; 3], port: u16) {
    let headers = Headers::of(frame.bytes());
    for &field in ports {
        set_located(&headers, frame.bytes_mut(), field, port.into(), field.ones());
    }
}
