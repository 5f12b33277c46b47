//! Address resolution for IPv4 over Ethernet.
//!
//! ```text
//!  0       2       4  5  6         8            14           18           24           28
//! +-------+-------+--+--+---------+------------+------------+------------+------------+
//! | hard- | proto |6 |4 |operation| sender MAC | sender IP  | target MAC | target IP  |
//! | ware 1| 0x0800|  |  |         |            |            |            |            |
//! +-------+-------+--+--+---------+------------+------------+------------+------------+
//! ```
//!
//! RFC 826. The view reads messages of other hardware and protocol types; the header rejects them.

use core::net::Ipv4Addr;
use std::fmt;

use super::ethernet::{Mac, ShowMac, TYPE_IPV4};
use super::{array_at, u16_at};
use crate::error::{Malformed, MalformedReason};

/// Bytes of the message for IPv4 over Ethernet.
pub const HEADER_BYTES: usize = 28;
/// Offset of the operation.
pub const OPERATION_AT: usize = 6;
/// Offset of the sender's hardware address.
pub const SENDER_MAC_AT: usize = 8;
/// Offset of the sender's protocol address.
pub const SENDER_IP_AT: usize = 14;
/// Offset of the target's hardware address.
pub const TARGET_MAC_AT: usize = 18;
/// Offset of the target's protocol address.
pub const TARGET_IP_AT: usize = 24;
/// Operation: request.
pub const REQUEST: u16 = 1;
/// Operation: reply.
pub const REPLY: u16 = 2;

/// A view of an ARP message for IPv4 over Ethernet, without validation.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Creates a view of the message at the start of `bytes`, if they are long enough.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(View(bytes))
    }

    /// Returns true for IPv4 over Ethernet. Otherwise the other fields have little meaning.
    pub fn is_ipv4_over_ethernet(&self) -> bool {
        u16_at(self.0, 0) == 1 && u16_at(self.0, 2) == TYPE_IPV4 && self.0[4..6] == [6, 4]
    }

    /// Operation: [`REQUEST`], [`REPLY`] or another.
    pub fn operation(&self) -> u16 {
        u16_at(self.0, OPERATION_AT)
    }

    /// Sender's hardware address.
    pub fn sender_mac(&self) -> Mac {
        array_at(self.0, SENDER_MAC_AT)
    }

    /// Sender's protocol address.
    pub fn sender_ip(&self) -> Ipv4Addr {
        array_at::<4>(self.0, SENDER_IP_AT).into()
    }

    /// Target's hardware address.
    pub fn target_mac(&self) -> Mac {
        array_at(self.0, TARGET_MAC_AT)
    }

    /// Target's protocol address.
    pub fn target_ip(&self) -> Ipv4Addr {
        array_at::<4>(self.0, TARGET_IP_AT).into()
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_ipv4_over_ethernet() {
            let (hardware, protocol) = (u16_at(self.0, 0), u16_at(self.0, 2));
            return write!(f, "arp hardware {hardware} protocol {protocol:#06x}");
        }
        match self.operation() {
            REQUEST => write!(f, "arp who-has {} tell {}", self.target_ip(), self.sender_ip()),
            REPLY => write!(f, "arp {} is-at {}", self.sender_ip(), ShowMac(self.sender_mac())),
            other => write!(f, "arp operation {other}"),
        }
    }
}

/// An ARP message for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Operation: [`REQUEST`], [`REPLY`] or another.
    pub operation: u16,
    /// Sender's hardware address.
    pub sender_mac: Mac,
    /// Sender's protocol address.
    pub sender_ip: Ipv4Addr,
    /// Target's hardware address; zero in a request.
    pub target_mac: Mac,
    /// Target's protocol address.
    pub target_ip: Ipv4Addr,
}

impl Header {
    /// Parses the message at the start of `bytes`. Returns it with its length.
    ///
    /// Rejects too few bytes, and anything other than IPv4 over Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), Malformed> {
        let view = View::new(bytes).ok_or(Malformed::truncated(0, HEADER_BYTES, bytes.len()))?;
        let expected = [0, 1, 8, 0, 6, 4];
        if let Some(at) = (0..6).find(|&at| bytes[at] != expected[at]) {
            return Err(Malformed { at, why: MalformedReason::BadValue(bytes[at].into()) });
        }
        let header = Header {
            operation: view.operation(),
            sender_mac: view.sender_mac(),
            sender_ip: view.sender_ip(),
            target_mac: view.target_mac(),
            target_ip: view.target_ip(),
        };
        Ok((header, HEADER_BYTES))
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 1, 8, 0, 6, 4]);
        out.extend_from_slice(&self.operation.to_be_bytes());
        out.extend_from_slice(&self.sender_mac);
        out.extend_from_slice(&self.sender_ip.octets());
        out.extend_from_slice(&self.target_mac);
        out.extend_from_slice(&self.target_ip.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Message of `tests/bytes/arp-request.txt`, sent by Linux.
    const REQUEST_BYTES: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 10, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];

    #[test]
    fn a_request_is_parsed_formatted_and_written() {
        let (header, length) = Header::parse(&REQUEST_BYTES).unwrap();
        assert_eq!((header.operation, length), (REQUEST, 28));
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, REQUEST_BYTES);
        let text = View::new(&REQUEST_BYTES).unwrap().to_string();
        assert_eq!(text, "arp who-has 10.0.0.2 tell 10.0.0.1");
    }

    #[test]
    fn another_hardware_type_is_rejected_with_its_offset() {
        for at in 0..6 {
            let mut bytes = REQUEST_BYTES;
            bytes[at] ^= 0x40;
            assert_eq!(Header::parse(&bytes).unwrap_err().at, at);
            assert!(View::new(&bytes).unwrap().to_string().starts_with("arp hardware"));
        }
        assert!(Header::parse(&REQUEST_BYTES[..27]).is_err());
    }
}
