//! TTL actions for MPLS and IP: copy, set and decrement.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.12 and 7.2.5. Headers with a TTL are
//! MPLS entries and IP. The second outermost one is the next entry, the IP packet after the bottom
//! of the stack, or the IP packet inside IP. The IP packet after the stack is recognized by its
//! header, since no other field identifies it. A frame whose TTL would become zero is invalid.

use packet::checksum::update_u16;
use packet::frame::Frame;
use packet::header::{ipv4, ipv6, mpls, put_u16, u16_at};

use crate::parse::{Fragment, Headers, Network};

/// A decrement would leave no TTL. The frame did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTtl;

/// Protocol number of an IPv4 packet in IP.
const PROTOCOL_IPV4: u8 = 4;
/// Protocol number of an IPv6 packet in IP.
const PROTOCOL_IPV6: u8 = 41;

/// A header with a TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// The MPLS entry at this offset.
    Mpls(usize),
    /// The IPv4 header at this offset.
    Ipv4(usize),
    /// The IPv6 header at this offset.
    Ipv6(usize),
}

impl Ttl {
    /// Returns the TTL.
    pub fn get(self, bytes: &[u8]) -> u8 {
        bytes[self.at()]
    }

    fn at(self) -> usize {
        match self {
            Ttl::Mpls(at) => at + mpls::TTL_AT,
            Ttl::Ipv4(at) => at + ipv4::TTL_AT,
            Ttl::Ipv6(at) => at + ipv6::HOP_LIMIT_AT,
        }
    }

    /// Sets the TTL, and updates the checksum of an IPv4 header.
    fn set(self, bytes: &mut [u8], value: u8) {
        let Ttl::Ipv4(at) = self else {
            bytes[self.at()] = value;
            return;
        };
        let old = u16_at(bytes, at + ipv4::TTL_AT);
        bytes[at + ipv4::TTL_AT] = value;
        let new = u16_at(bytes, at + ipv4::TTL_AT);
        if old != new {
            let sum = update_u16(u16_at(bytes, at + ipv4::CHECKSUM_AT), old, new);
            put_u16(bytes, at + ipv4::CHECKSUM_AT, sum);
        }
    }

    /// Decrements the TTL.
    fn decrement(self, bytes: &mut [u8]) -> Result<(), InvalidTtl> {
        match self.get(bytes) {
            0 | 1 => Err(InvalidTtl),
            ttl => {
                self.set(bytes, ttl - 1);
                Ok(())
            }
        }
    }
}

/// Copies the TTL of the second outermost header with a TTL to the outermost one.
pub fn copy_out(frame: &mut Frame) {
    let headers = Headers::of(frame.bytes());
    if let (Some(outer), Some(inner)) = (outermost(&headers), second(&headers, frame.bytes())) {
        let ttl = inner.get(frame.bytes());
        outer.set(frame.bytes_mut(), ttl);
    }
}

/// Copies the TTL of the outermost header with a TTL to the second outermost one.
pub fn copy_in(frame: &mut Frame) {
    let headers = Headers::of(frame.bytes());
    if let (Some(outer), Some(inner)) = (outermost(&headers), second(&headers, frame.bytes())) {
        let ttl = outer.get(frame.bytes());
        inner.set(frame.bytes_mut(), ttl);
    }
}

/// Sets the TTL of the outermost MPLS entry, if there is one.
pub fn set_mpls(frame: &mut Frame, value: u8) {
    if let Some(ttl @ Ttl::Mpls(_)) = outermost(&Headers::of(frame.bytes())) {
        ttl.set(frame.bytes_mut(), value);
    }
}

/// Decrements the TTL of the outermost MPLS entry, if there is one.
pub fn decrement_mpls(frame: &mut Frame) -> Result<(), InvalidTtl> {
    match outermost(&Headers::of(frame.bytes())) {
        Some(ttl @ Ttl::Mpls(_)) => ttl.decrement(frame.bytes_mut()),
        _ => Ok(()),
    }
}

/// Sets the IP TTL or hop limit, if MPLS does not hide it.
pub fn set_ip(frame: &mut Frame, value: u8) {
    if let Some(ttl @ (Ttl::Ipv4(_) | Ttl::Ipv6(_))) = outermost(&Headers::of(frame.bytes())) {
        ttl.set(frame.bytes_mut(), value);
    }
}

/// Decrements the IP TTL or hop limit, if MPLS does not hide it.
pub fn decrement_ip(frame: &mut Frame) -> Result<(), InvalidTtl> {
    match outermost(&Headers::of(frame.bytes())) {
        Some(ttl @ (Ttl::Ipv4(_) | Ttl::Ipv6(_))) => ttl.decrement(frame.bytes_mut()),
        _ => Ok(()),
    }
}

/// Returns the outermost header with a TTL.
pub fn outermost(headers: &Headers) -> Option<Ttl> {
    let at = headers.network_at.into();
    match headers.network {
        Network::Mpls => Some(Ttl::Mpls(at)),
        Network::Ipv4 => Some(Ttl::Ipv4(at)),
        Network::Ipv6 => Some(Ttl::Ipv6(at)),
        Network::None | Network::Arp | Network::Pbb => None,
    }
}

/// Returns the second outermost header with a TTL.
fn second(headers: &Headers, bytes: &[u8]) -> Option<Ttl> {
    let (at, end) = (usize::from(headers.network_at), usize::from(headers.end));
    match headers.network {
        Network::Mpls if bytes[at + 2] & 1 != 0 => ip_at(&bytes[..end], at + mpls::ENTRY_BYTES),
        Network::Mpls if at + 2 * mpls::ENTRY_BYTES <= end => {
            Some(Ttl::Mpls(at + mpls::ENTRY_BYTES))
        }
        Network::Ipv4 | Network::Ipv6 if headers.fragment != Fragment::Later => {
            let inner = ip_at(&bytes[..end], headers.transport_at.into());
            inner.filter(|ttl| {
                let proto = if let Ttl::Ipv4(_) = ttl { PROTOCOL_IPV4 } else { PROTOCOL_IPV6 };
                headers.proto == proto
            })
        }
        _ => None,
    }
}

/// Returns the IP header at `at`, if its version, its lengths and, for IPv4, its checksum are
/// valid: after MPLS, the payload could be anything.
fn ip_at(bytes: &[u8], at: usize) -> Option<Ttl> {
    let packet = bytes.get(at..)?;
    match packet.first()? >> 4 {
        4 => {
            let view = ipv4::View::new(packet)?;
            let lengths = [ipv4::HEADER_BYTES, view.header_length(), view.total_length().into()];
            let sane = lengths.is_sorted() && lengths[2] <= packet.len();
            (sane && ipv4::checksum_is_right(&packet[..lengths[1]])).then_some(Ttl::Ipv4(at))
        }
        6 => {
            let view = ipv6::View::new(packet)?;
            let length = ipv6::HEADER_BYTES + usize::from(view.payload_length());
            (length <= packet.len()).then_some(Ttl::Ipv6(at))
        }
        _ => None,
    }
}
