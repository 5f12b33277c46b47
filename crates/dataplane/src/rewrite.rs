//! Changing a field of a frame in place, with its checksums.
//!
//! Source: OpenFlow switch specification 1.0.0, section 3.3 ("modify-field"). Checksums follow from
//! the old and the new field (RFC 1624), so no payload is read, a wrong checksum stays as wrong as
//! it was, and a UDP checksum of zero (none) stays zero. A field that the frame does not have is
//! not changed: which fields it has is decided as for its key ([`crate::key`]), but that the
//! first fragment of a datagram, which has the L4 header, gets it changed with the others' IP
//! header.

use packet::checksum::{update_u16, update_u32, update_udp_u16, update_udp_u32};
use packet::frame::Frame;
use packet::header::{ethernet, ipv4, tcp, udp, vlan};

use crate::action::Action;
use crate::locate::{Ipv4, Link};

/// What a frame carries through the pipeline besides its bytes.
mod context;

pub use context::Context;

/// Does what an action asks to be changed; an action that sends changes nothing.
pub fn apply(action: &Action, frame: &mut Frame) {
    if frame.len() < ethernet::HEADER_BYTES {
        return;
    }
    match *action {
        Action::SetVlan(id) => set_tag(frame, 0x0fff, id),
        Action::SetVlanPriority(priority) => set_tag(frame, 0xe000, u16::from(priority) << 13),
        Action::StripVlan => strip_tag(frame),
        Action::SetEthDst(mac) => frame.bytes_mut()[ethernet::DESTINATION].copy_from_slice(&mac),
        Action::SetEthSrc(mac) => frame.bytes_mut()[ethernet::SOURCE].copy_from_slice(&mac),
        Action::SetIpSrc(address) => set_ip(frame.bytes_mut(), ipv4::SOURCE_AT, address),
        Action::SetIpDst(address) => set_ip(frame.bytes_mut(), ipv4::DESTINATION_AT, address),
        Action::SetIpTos(tos) => set_tos(frame.bytes_mut(), tos),
        Action::SetL4Src(port) => set_l4(frame.bytes_mut(), udp::SOURCE_PORT_AT, port),
        Action::SetL4Dst(port) => set_l4(frame.bytes_mut(), udp::DESTINATION_PORT_AT, port),
        _ => {}
    }
}

/// Sets the bits of `mask` in the outermost tag, which is added if the frame has none.
fn set_tag(frame: &mut Frame, mask: u16, bits: u16) {
    let at = ethernet::TYPE.start;
    if Link::of(frame.bytes()).vlan_at.is_none() {
        if !frame.insert(at, vlan::TAG_BYTES) {
            return;
        }
        put(frame.bytes_mut(), at, ethernet::TYPE_VLAN);
        put(frame.bytes_mut(), at + 2, 0);
    }
    let bytes = frame.bytes_mut();
    let control = get(bytes, at + 2);
    put(bytes, at + 2, (control & !mask) | (bits & mask));
}

fn strip_tag(frame: &mut Frame) {
    if let Some(at) = Link::of(frame.bytes()).vlan_at {
        frame.remove(at, vlan::TAG_BYTES);
    }
}

/// Sets an address and corrects the IPv4 and, where there is one, the L4 checksum, which covers
/// the addresses.
fn set_ip(bytes: &mut [u8], field_at: usize, address: [u8; 4]) {
    let Some((at, ip)) = ipv4_of(bytes) else { return };
    let field = at + field_at..at + field_at + 4;
    let old = get32(bytes, field.start);
    let new = u32::from_be_bytes(address);
    bytes[field].copy_from_slice(&address);
    change(bytes, at + ipv4::CHECKSUM_AT, |sum| update_u32(sum, old, new));
    match l4_checksum(bytes, &ip) {
        Some(Checksum::Tcp(at)) => change(bytes, at, |sum| update_u32(sum, old, new)),
        Some(Checksum::Udp(at)) => change(bytes, at, |sum| update_udp_u32(sum, old, new)),
        None => {}
    }
}

fn set_tos(bytes: &mut [u8], tos: u8) {
    let Some((at, _)) = ipv4_of(bytes) else { return };
    let old = get(bytes, at);
    bytes[at + ipv4::TOS_AT] = (bytes[at + ipv4::TOS_AT] & 0x03) | (tos & 0xfc);
    let new = get(bytes, at);
    change(bytes, at + ipv4::CHECKSUM_AT, |sum| update_u16(sum, old, new));
}

/// Sets the TCP or UDP port at this offset in the L4 header.
fn set_l4(bytes: &mut [u8], field_at: usize, port: u16) {
    let Some((_, ip)) = ipv4_of(bytes) else { return };
    let Some(checksum) = l4_checksum(bytes, &ip) else { return };
    let old = get(bytes, ip.l4_at + field_at);
    put(bytes, ip.l4_at + field_at, port);
    match checksum {
        Checksum::Tcp(at) => change(bytes, at, |sum| update_u16(sum, old, port)),
        Checksum::Udp(at) => change(bytes, at, |sum| update_udp_u16(sum, old, port)),
    }
}

/// Where the IPv4 header begins and what it says, if there is one.
fn ipv4_of(bytes: &[u8]) -> Option<(usize, Ipv4)> {
    let link = Link::of(bytes);
    let is_ipv4 = link.eth_type == ethernet::TYPE_IPV4;
    let ip = is_ipv4.then(|| Ipv4::at(&bytes[..link.end], link.payload_at)).flatten()?;
    Some((link.payload_at, ip))
}

/// Offset of an L4 checksum.
enum Checksum {
    Tcp(usize),
    Udp(usize),
}

/// The TCP or UDP checksum, if this datagram or fragment has the L4 header.
fn l4_checksum(bytes: &[u8], ip: &Ipv4) -> Option<Checksum> {
    let room = ip.end.min(bytes.len()) - ip.l4_at;
    match ip.proto {
        _ if ip.fragment_later => None,
        ipv4::PROTOCOL_TCP if room >= tcp::HEADER_BYTES => {
            Some(Checksum::Tcp(ip.l4_at + tcp::CHECKSUM_AT))
        }
        ipv4::PROTOCOL_UDP if room >= udp::HEADER_BYTES => {
            Some(Checksum::Udp(ip.l4_at + udp::CHECKSUM_AT))
        }
        _ => None,
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from(get(bytes, at)) << 16 | u32::from(get(bytes, at + 2))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Changes the 16-bit word at `at`.
fn change(bytes: &mut [u8], at: usize, to: impl FnOnce(u16) -> u16) {
    let new = to(get(bytes, at));
    put(bytes, at, new);
}

#[cfg(test)]
mod tests;
