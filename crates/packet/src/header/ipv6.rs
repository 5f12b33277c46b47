//! IPv6 with extension headers.
//!
//! ```text
//!  0     4          12                                      31
//! +-----+----------+----------------------------------------+
//! |  6  | class    |              flow label                |  0
//! +-----+----------+-------+---------------+----------------+
//! |     payload length     |  next header  |   hop limit    |  4
//! +------------------------+---------------+----------------+
//! |               source address, 16 bytes                  |  8
//! |             destination address, 16 bytes               | 24
//! +---------------------------------------------------------+ 40
//! ```
//!
//! RFC 8200 sections 3 and 4. Extension headers start with the number of the next header and,
//! except for the fragment header, their length. `Extensions` follows at most `EXTENSIONS_MAX`.

use core::net::Ipv6Addr;
use std::fmt;

use super::{array_at, u16_at, u32_at};
use crate::error::{Malformed, MalformedReason};

/// Bytes of the header without extensions.
pub const HEADER_BYTES: usize = 40;
/// Offset of the payload length.
pub const PAYLOAD_LENGTH_AT: usize = 4;
/// Offset of the number of the next header.
pub const NEXT_HEADER_AT: usize = 6;
/// Offset of the hop limit.
pub const HOP_LIMIT_AT: usize = 7;
/// Offset of the source address.
pub const SOURCE_AT: usize = 8;
/// Offset of the destination address.
pub const DESTINATION_AT: usize = 24;
/// Maximum number of extension headers that are followed.
pub const EXTENSIONS_MAX: usize = 16;
/// Bytes of a fragment header.
pub const FRAGMENT_BYTES: usize = 8;

/// Next header: hop-by-hop options.
pub const NEXT_HOP_BY_HOP: u8 = 0;
/// Next header: routing.
pub const NEXT_ROUTING: u8 = 43;
/// Next header: fragment.
pub const NEXT_FRAGMENT: u8 = 44;
/// Next header: authentication (RFC 4302), whose length has other units.
pub const NEXT_AUTHENTICATION: u8 = 51;
/// Next header: none.
pub const NEXT_NONE: u8 = 59;
/// Next header: destination options.
pub const NEXT_DESTINATION: u8 = 60;
/// Next header: mobility (RFC 6275).
pub const NEXT_MOBILITY: u8 = 135;

/// A view of an IPv6 header, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the header at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Version, normally 6.
    pub fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// Traffic class: DSCP and ECN.
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.0, 0) >> 4) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32_at(self.0, 0) & 0xf_ffff
    }

    /// Payload length from the header, including extensions.
    pub fn payload_length(&self) -> u16 {
        u16_at(self.0, PAYLOAD_LENGTH_AT)
    }

    /// Number of the next header: an extension or the payload's protocol.
    pub fn next_header(&self) -> u8 {
        self.0[NEXT_HEADER_AT]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.0[HOP_LIMIT_AT]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        array_at::<16>(self.0, SOURCE_AT).into()
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        array_at::<16>(self.0, DESTINATION_AT).into()
    }

    /// Returns the destination address for transport checksums: the final one, if a routing header
    /// lists others before it.
    pub fn final_destination(&self) -> Ipv6Addr {
        let routing = self.extensions().filter(|extension| extension.kind == NEXT_ROUTING);
        let last =
            routing.filter_map(|extension| final_destination(&self.0[extension.at..])).last();
        last.unwrap_or(self.destination())
    }

    /// Returns the extension headers, as far as the bytes are available.
    pub fn extensions(&self) -> Extensions<'a> {
        let end = self.0.len().min(HEADER_BYTES + usize::from(self.payload_length()));
        Extensions::new(&self.0[..end], HEADER_BYTES, self.next_header())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ipv6 {} > {} hop {}", self.source(), self.destination(), self.hop_limit())?;
        write!(f, " len {}", self.payload_length())?;
        if self.traffic_class() != 0 {
            write!(f, " class {:#04x}", self.traffic_class())?;
        }
        if self.flow_label() != 0 {
            write!(f, " label {:#07x}", self.flow_label())?;
        }
        for extension in self.extensions() {
            match extension.fragment {
                None => write!(f, " ext {}", extension.kind)?,
                Some(fragment) => {
                    let more = if fragment.more { "+" } else { "" };
                    write!(f, " frag {:#x}@{}{more}", fragment.identification, fragment.offset)?;
                }
            }
        }
        Ok(())
    }
}

/// An extension header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    /// Number of the extension.
    pub kind: u8,
    /// Offset from the IPv6 header.
    pub at: usize,
    /// Length in bytes.
    pub length: usize,
    /// Contents of a fragment header.
    pub fragment: Option<Fragment>,
}

/// Contents of a fragment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Fragment offset in bytes, a multiple of 8.
    pub offset: u16,
    /// Whether other fragments follow.
    pub more: bool,
    /// Identification, common to all fragments of a packet.
    pub identification: u32,
}

/// Iterator over the chain of extension headers. Afterwards it has the position and number of the
/// next header.
#[derive(Debug, Clone)]
pub struct Extensions<'a> {
    bytes: &'a [u8],
    /// Offset of the next header from the IPv6 header.
    pub at: usize,
    /// Number of the next header.
    pub next: u8,
    /// Error that ended the chain early, if any.
    pub fault: Option<Malformed>,
    left: usize,
    inside_fragment: bool,
}

impl<'a> Extensions<'a> {
    /// Iterates over the chain in `bytes`, which start with the IPv6 header. The header with number
    /// `next` is at offset `at`.
    pub fn new(bytes: &'a [u8], at: usize, next: u8) -> Self {
        let (left, inside_fragment) = (EXTENSIONS_MAX, false);
        Extensions { bytes, at, next, fault: None, left, inside_fragment }
    }

    fn step(&mut self) -> Result<Extension, Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if self.left == 0 {
            let why = MalformedReason::LimitReached("EXTENSIONS_MAX");
            return Err(Malformed { at: self.at, why });
        }
        if rest.len() < 8 {
            return Err(Malformed::truncated(self.at, 8, rest.len()));
        }
        let length = match self.next {
            NEXT_FRAGMENT => FRAGMENT_BYTES,
            NEXT_AUTHENTICATION => usize::from(rest[1]) * 4 + 8,
            _ => usize::from(rest[1]) * 8 + 8,
        };
        if rest.len() < length {
            return Err(Malformed::truncated(self.at, length, rest.len()));
        }
        let fragment = (self.next == NEXT_FRAGMENT).then(|| Fragment {
            offset: u16_at(rest, 2) & !7,
            more: rest[3] & 1 != 0,
            identification: u32_at(rest, 4),
        });
        let extension = Extension { kind: self.next, at: self.at, length, fragment };
        self.inside_fragment |= fragment.is_some_and(|fragment| fragment.offset != 0);
        self.at += length;
        self.next = rest[0];
        self.left -= 1;
        Ok(extension)
    }
}

impl Iterator for Extensions<'_> {
    type Item = Extension;

    fn next(&mut self) -> Option<Extension> {
        // In a fragment other than the first, payload follows the fragment header, regardless of
        // the number.
        if self.fault.is_some() || self.inside_fragment || !is_extension(self.next) {
            return None;
        }
        match self.step() {
            Ok(extension) => Some(extension),
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        }
    }
}

/// Returns true if the number is a supported extension header.
#[inline]
pub fn is_extension(next: u8) -> bool {
    matches!(
        next,
        NEXT_HOP_BY_HOP
            | NEXT_ROUTING
            | NEXT_FRAGMENT
            | NEXT_AUTHENTICATION
            | NEXT_DESTINATION
            | NEXT_MOBILITY
    )
}

/// Returns the destination for transport checksums of a packet with this routing header at the
/// start of `header`. `None` if the destination in the IPv6 header is the final one.
///
/// Types 0 (RFC 5095, deprecated) and 2 (RFC 6275) end with that address, type 4 (RFC 8754, section
/// 2) starts with it. Other types are not supported.
pub fn final_destination(header: &[u8]) -> Option<Ipv6Addr> {
    let &[_, eights, kind, left, ..] = header else { return None };
    let length = usize::from(eights) * 8 + 8;
    let at = match kind {
        _ if left == 0 || length < 24 || header.len() < length => return None,
        0 | 2 => length - 16,
        4 => 8,
        _ => return None,
    };
    Some(array_at::<16>(header, at).into())
}

/// A valid IPv6 header: version and payload length are correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Payload length including extensions, set by a builder.
    pub payload_bytes: u16,
    /// Number of the next header, set by a builder.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Header {
    /// Creates a header from `source` to `destination`, without payload: hop limit 64.
    pub fn new(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Header {
            traffic_class: 0,
            flow_label: 0,
            payload_bytes: 0,
            next_header: NEXT_NONE,
            hop_limit: 64,
            source,
            destination,
        }
    }

    /// Parses the header at the start of `bytes`. Returns it with its length without extensions.
    ///
    /// Rejects:
    ///
    /// - too few bytes or another version,
    /// - a payload length that exceeds the bytes,
    /// - a multicast source,
    /// - a chain of extensions that is truncated or longer than [`EXTENSIONS_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        if view.version() != 6 {
            return Err(Malformed { at: 0, why: MalformedReason::BadValue(bytes[0].into()) });
        }
        let payload = usize::from(view.payload_length());
        if payload > bytes.len() - HEADER_BYTES {
            return Err(Malformed {
                at: PAYLOAD_LENGTH_AT,
                why: MalformedReason::BadLength(payload),
            });
        }
        if view.source().is_multicast() {
            let why = MalformedReason::BadValue(bytes[SOURCE_AT].into());
            return Err(Malformed { at: SOURCE_AT, why });
        }
        let mut extensions = view.extensions();
        while extensions.next().is_some() {}
        if let Some(fault) = extensions.fault {
            return Err(fault);
        }
        let header = Header {
            traffic_class: view.traffic_class(),
            flow_label: view.flow_label(),
            payload_bytes: view.payload_length(),
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&self.payload_bytes.to_be_bytes());
        out.extend_from_slice(&[self.next_header, self.hop_limit]);
        out.extend_from_slice(&self.source.octets());
        out.extend_from_slice(&self.destination.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_extensions(extensions: &[u8], next: u8) -> Vec<u8> {
        let source = Ipv6Addr::LOCALHOST;
        let payload_bytes = extensions.len() as u16;
        let header = Header { next_header: next, payload_bytes, ..Header::new(source, source) };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend_from_slice(extensions);
        bytes
    }

    #[test]
    fn a_header_round_trips() {
        let header = Header {
            traffic_class: 0xb8,
            flow_label: 0xabcde,
            ..Header::new("fe80::1".parse().unwrap(), "ff02::2".parse().unwrap())
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        assert_eq!(bytes[..4], [0x6b, 0x8a, 0xbc, 0xde]);
        assert_eq!(Header::parse(&bytes), Ok((header, 40)));
        let text = View::new(&bytes).unwrap().to_string();
        assert_eq!(text, "ipv6 fe80::1 > ff02::2 hop 64 len 0 class 0xb8 label 0xabcde");
        bytes[0] = 0x45;
        assert_eq!(Header::parse(&bytes).unwrap_err().at, 0);
        assert_eq!(Header::parse(&bytes[..39]).unwrap_err(), Malformed::truncated(0, 40, 39));
    }

    #[test]
    fn extension_headers_are_followed_to_the_payload() {
        let hop_by_hop = [44, 0, 5, 2, 0, 0, 1, 0];
        let fragment = [17, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef];
        let bytes = with_extensions(&[hop_by_hop, fragment].concat(), 0);
        let mut chain = View::new(&bytes).unwrap().extensions();
        let kinds: Vec<u8> = chain.by_ref().map(|extension| extension.kind).collect();
        assert_eq!((kinds, chain.next, chain.at, chain.fault), (vec![0, 44], 17, 56, None));
        assert!(View::new(&bytes).unwrap().to_string().ends_with("ext 0 frag 0xdeadbeef@0+"));
    }

    #[test]
    fn a_routing_header_with_segments_left_has_the_final_destination() {
        let addresses = [[0xfd; 16], [0xfe; 16]].concat();
        let bytes = |kind, left| {
            let routing = [&[59, 4, kind, left, 0, 0, 0, 0], &addresses[..]].concat();
            with_extensions(&routing, NEXT_ROUTING)
        };
        let last = |bytes: &[u8]| View::new(bytes).unwrap().final_destination().octets();
        let own = Ipv6Addr::LOCALHOST.octets();
        assert_eq!(last(&bytes(0, 1)), [0xfe; 16]);
        assert_eq!(last(&bytes(4, 1)), [0xfd; 16]);
        assert_eq!((last(&bytes(0, 0)), last(&bytes(9, 1))), (own, own));
        assert_eq!(last(&bytes(4, 1)[..60]), own);
    }

    #[test]
    fn a_later_fragment_ends_the_chain() {
        let bytes = with_extensions(&[60, 0, 0, 8, 0, 0, 0, 1, 9, 9, 9, 9], 44);
        let mut chain = View::new(&bytes).unwrap().extensions();
        assert_eq!(chain.by_ref().count(), 1);
        assert_eq!((chain.next, chain.fault), (60, None));
    }

    #[test]
    fn truncated_and_endless_chains_are_rejected() {
        let cut = with_extensions(&[17, 1, 0, 0, 0, 0, 0, 0], 60);
        assert_eq!(Header::parse(&cut).unwrap_err(), Malformed::truncated(40, 16, 8));
        let endless = with_extensions(&[60, 0, 1, 4, 0, 0, 0, 0].repeat(17), 60);
        let why = MalformedReason::LimitReached("EXTENSIONS_MAX");
        assert_eq!(Header::parse(&endless).unwrap_err(), Malformed { at: 40 + 128, why });
    }
}
