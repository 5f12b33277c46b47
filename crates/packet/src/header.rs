//! Protocol headers, one file per header.
//!
//! Every file has the same order: the bit layout, the field offsets, a `View` and a `Header`.
//!
//! - A `View` reads the fields of any bytes that are long enough, without validation. It can always be displayed.
//! - A `Header` is a valid header. `parse` rejects invalid bytes, and `emit` writes the bytes.
//!
//! The functions below read and write fields in network byte order. They panic if the bytes are too short, so views
//! check the length when they are created.

/// Ethernet II and IEEE 802.3: destination, source, type or length, LLC and SNAP.
pub mod ethernet;
/// IEEE 802.1Q and 802.1ad tags.
pub mod vlan;
/// IEEE 802.1ah: the service instance tag with the customer's addresses.
pub mod pbb;
/// MPLS: one entry of a label stack.
pub mod mpls;
/// Address resolution for IPv4 over Ethernet.
pub mod arp;
/// IPv4 with options and fragments.
pub mod ipv4;
/// IPv6 with extension headers.
pub mod ipv6;
/// ICMP for IPv4.
pub mod icmp;
/// ICMP for IPv6, with neighbour discovery messages.
pub mod icmpv6;
/// TCP with options.
pub mod tcp;
/// Ethernet OAM: its numbers, and loopback.
pub mod oam;
/// UDP.
pub mod udp;
/// SCTP: the common header.
pub mod sctp;
/// Header options: at most forty bytes, stored inline.
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
