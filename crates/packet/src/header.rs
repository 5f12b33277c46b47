//! Protocol headers, one file per header.
//!
//! Every file has the same order: the bit layout, the field offsets, a `View` and a `Header`.
//!
//! - A `View` reads the fields of any bytes that are long enough, without validation. It can always
//!   be displayed.
//! - A `Header` is a valid header. `parse` rejects invalid bytes, and `emit` writes the bytes.
//!
//! The functions below read and write fields in network byte order. They panic if the bytes are too
//! short, so views check the length when they are created.

pub mod ethernet;
pub mod vlan;
pub mod pbb;
pub mod mpls;
pub mod arp;
pub mod ipv4;
pub mod ipv6;
pub mod icmp;
pub mod icmpv6;
pub mod tcp;
pub mod oam;
pub mod udp;
pub mod sctp;
pub mod options;

/// Reads the 16-bit field at offset `at`.
#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads the 32-bit field at offset `at`.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads the `N` bytes at offset `at`, usually an address.
#[inline]
pub fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Writes the 16-bit field at offset `at`.
#[inline]
pub fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes the 32-bit field at offset `at`.
#[inline]
pub fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
