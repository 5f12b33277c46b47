//! One file per header: its bits, a view of them, and their meaning.
//!
//! Every file has the same order: the bit picture, where its fields are, a `View` that reads the
//! fields of any bytes long enough to hold them (and shows them as text), and a `Header`: the
//! strict value that `parse` gives for bytes which mean something and `emit` turns into bytes.
//! A view believes nothing, so it can always be printed; a header keeps its protocol's rules.
//!
//! Fields in network byte order are read and written by the functions below, which panic if the
//! bytes end too early: views check lengths when they are made.

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
/// Header options: at most forty bytes, held in place.
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

/// Reads the `N` bytes at offset `at`, an address mostly.
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
