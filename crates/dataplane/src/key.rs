//! Key of a frame: the match fields of OpenFlow 1.0, packed into four words.
//!
//! The twelve fields are those of the OpenFlow switch specification 1.0.0, section 3.4 and table 3.
//! The packing makes comparison and hashing straight-line code:
//!
//! ```text
//!          63       48 47     40 39     32 31                16 15               0
//! word 0 | in_port    | eth_dst                                                    |
//! word 1 | vlan       | eth_src                                                    |
//! word 2 | ip_src                         | ip_dst                                 |
//! word 3 | eth_type   | dscp, 2 | ip_proto | l4_src            | l4_dst            |
//! vlan: 3 bits priority, 1 bit "there is a tag", 12 bits identifier; all zero without a tag
//! dscp, 2: 6 bits DSCP, 2 bits type of the second tag
//! ```
//!
//! Invariant: a field that a frame does not have is zero. These rules decide whether a frame has a
//! field:
//! - The outermost 802.1Q or 802.1ad tag is the VLAN; the type after all tags is the Ethernet type
//!   (OpenFlow switch specification 1.1.0, section 4.4).
//! - The type of the second tag is a separate field. OpenFlow 1.0 parses one tag and takes the next
//!   type for the Ethernet type (1.0.0, section 3.4, figure 4).
//! - An 802.3 frame with a SNAP header of organization 0 has the type in that header. Any other
//!   802.3 frame has [`ETH_TYPE_NONE`].
//! - ARP has its operation (low 8 bits) as protocol and its protocol addresses as IP addresses.
//! - ICMP has its type and code as L4 source and destination.
//! - No fragment of an IPv4 datagram has L4 fields, so that all fragments match alike.
//! - An IPv4 header that contradicts itself or the frame's length gives no IP fields.

use packet::frame::PortNo;
use packet::header::{arp, ethernet, ipv4, u16_at, vlan};

use crate::parse::{Fragment, Headers, Network, Transport};

pub mod wide;

/// Number of words in a key.
pub const WORDS: usize = 4;

/// Ethernet type of 802.3 frames without a type (OpenFlow 1.0's `OFP_DL_TYPE_NOT_ETH_TYPE`).
pub const ETH_TYPE_NONE: u16 = ethernet::TYPE_NONE;

/// Bit of [`Field::Vlan`] that is set if the frame has a tag; the lower 12 bits are the identifier.
pub const VLAN_PRESENT: u64 = 0x1000;

/// One of the twelve fields, or the type of a second tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Ingress port, 16 bits.
    InPort,
    /// Destination address, 48 bits.
    EthDst,
    /// Source address, 48 bits.
    EthSrc,
    /// VLAN, 13 bits: [`VLAN_PRESENT`] and the identifier, or zero without a tag.
    Vlan,
    /// VLAN priority, 3 bits.
    VlanPriority,
    /// Type of the second VLAN tag, 2 bits: a value of [`second_tag`], or zero without one.
    SecondTag,
    /// Ethernet type after the tags, 16 bits.
    EthType,
    /// IPv4 DSCP, 6 bits.
    IpDscp,
    /// IP protocol or ARP operation, 8 bits.
    IpProto,
    /// IPv4 or ARP source address, 32 bits.
    IpSrc,
    /// IPv4 or ARP target address, 32 bits.
    IpDst,
    /// TCP or UDP source port or ICMP type, 16 bits.
    L4Src,
    /// TCP or UDP destination port or ICMP code, 16 bits.
    L4Dst,
}

impl Field {
    /// All fields.
    pub const ALL: [Field; 13] = [
        Field::InPort,
        Field::EthSrc,
        Field::EthDst,
        Field::Vlan,
        Field::VlanPriority,
        Field::SecondTag,
        Field::EthType,
        Field::IpDscp,
        Field::IpProto,
        Field::IpSrc,
        Field::IpDst,
        Field::L4Src,
        Field::L4Dst,
    ];

    /// Returns the word, the lowest bit and the number of bits.
    pub(crate) const fn place(self) -> (usize, u32, u32) {
        match self {
            Field::InPort => (0, 48, 16),
            Field::EthDst => (0, 0, 48),
            Field::EthSrc => (1, 0, 48),
            Field::Vlan => (1, 48, 13),
            Field::VlanPriority => (1, 61, 3),
            Field::EthType => (3, 48, 16),
            Field::IpDscp => (3, 42, 6),
            Field::SecondTag => (3, 40, 2),
            Field::IpProto => (3, 32, 8),
            Field::IpSrc => (2, 32, 32),
            Field::IpDst => (2, 0, 32),
            Field::L4Src => (3, 16, 16),
            Field::L4Dst => (3, 0, 16),
        }
    }

    /// Returns the field's value with all bits set.
    pub const fn full(self) -> u64 {
        u64::MAX >> (64 - self.place().2)
    }
}

/// Returns the value of [`Field::SecondTag`] for a tag type; zero if it is no VLAN tag type.
pub fn second_tag(tag_type: u16) -> u64 {
    let place = vlan::TAG_TYPES.iter().position(|&known| known == tag_type);
    place.map_or(0, |place| place as u64 + 1)
}

/// Returns the tag type of a [`second_tag`] value.
pub fn second_tag_type(value: u64) -> Option<u16> {
    vlan::TAG_TYPES.get((value as usize).checked_sub(1)?).copied()
}

/// The fields of one frame (or, in a match, their values or their masks).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub [u64; WORDS]);

impl Key {
    /// Every field zero.
    pub const ZERO: Key = Key([0; WORDS]);
    /// Every bit of every field set.
    pub const FULL: Key = Key([u64::MAX; WORDS]);

    /// Returns a field's value.
    #[inline]
    pub const fn get(&self, field: Field) -> u64 {
        let (word, shift, _) = field.place();
        (self.0[word] >> shift) & field.full()
    }

    /// Sets a field to `value`; excess bits are ignored.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u64) {
        let (word, shift, _) = field.place();
        self.0[word] =
            (self.0[word] & !(field.full() << shift)) | ((value & field.full()) << shift);
    }

    /// Returns this key with a field set.
    pub const fn with(mut self, field: Field, value: u64) -> Key {
        self.set(field, value);
        self
    }

    /// Compares word by word. A vector comparison would stall on words that were just written
    /// separately.
    #[inline(always)]
    pub fn is(&self, other: &Key) -> bool {
        let differ = |word: usize| self.0[word] ^ other.0[word];
        (differ(0) | differ(1)) | (differ(2) | differ(3)) == 0
    }

    /// Returns the bitwise AND.
    #[inline]
    pub fn and(&self, other: &Key) -> Key {
        Key(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Returns the bitwise OR.
    pub fn or(&self, other: &Key) -> Key {
        Key(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Hashes all words with a secret `seed`; all 64 bits of the result are well mixed.
    ///
    /// Two folded multiplications (64 by 64 to 128 bits, halves combined) take two words each, and
    /// a third joins them.
    #[inline]
    pub fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d] = self.0;
        let left = fold(a ^ seed, b ^ 0x9e37_79b9_7f4a_7c15);
        let right = fold(c ^ seed.rotate_left(32), d ^ 0xd6e8_feb8_6659_fd93);
        fold(left ^ 0xa076_1d64_78bd_642f, right ^ seed ^ 0xe703_7ed1_a0b4_28db)
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Key");
        for field in Field::ALL {
            fields.field(&format!("{field:?}"), &format_args!("{:#x}", self.get(field)));
        }
        fields.finish()
    }
}

/// Extracts the key of a frame received on `port`. Any bytes have a key: missing fields are zero.
#[inline]
pub fn extract(port: PortNo, bytes: &[u8]) -> Key {
    match extract_plain(port, bytes, bytes.len()) {
        Some(key) => key,
        None => extract_any(port, bytes),
    }
}

/// Extracts the key of a plain frame of `frame_bytes` bytes that begins with `head`. A plain frame
/// is an untagged, unfragmented, consistent IPv4 frame without options that carries UDP or TCP.
/// Returns `None` for every other frame.
#[inline]
pub(crate) fn extract_plain(port: PortNo, head: &[u8], frame_bytes: usize) -> Option<Key> {
    const HEADERS_BYTES: usize = ethernet::HEADER_BYTES + 20 + 8;
    let head: &[u8; HEADERS_BYTES] = head.first_chunk()?;
    let type_to_length = be64(head, 10);
    // The last two bytes of eth_src, type, version and IHL, service, total length.
    let total_length = (type_to_length & 0xffff) as usize;
    let fragment_to_proto = be32(head, 20);
    let proto = fragment_to_proto as u8;
    let l4_bytes = if proto == ipv4::PROTOCOL_TCP { 20 } else { 8 };
    let plain = (type_to_length >> 24) & 0xff_ffff == 0x08_0045
        && fragment_to_proto & 0x3fff_0000 == 0
        && (proto == ipv4::PROTOCOL_UDP || proto == ipv4::PROTOCOL_TCP)
        && total_length >= 20 + l4_bytes
        && total_length + ethernet::HEADER_BYTES <= frame_bytes;
    if !plain {
        return None;
    }
    let dscp_and_no_tag = (type_to_length >> 16) & 0xfc;
    Some(Key([
        (u64::from(port) << 48) | (be64(head, 0) >> 16),
        be64(head, 6) >> 16,
        be64(head, 26),
        (u64::from(ethernet::TYPE_IPV4) << 48)
            | (dscp_and_no_tag << 40)
            | (u64::from(proto) << 32)
            | u64::from(be32(head, 34)),
    ]))
}

#[inline]
fn be64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(eight)
}

#[inline]
fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(four)
}

/// Extracts the key of any frame, header by header.
pub(crate) fn extract_any(port: PortNo, bytes: &[u8]) -> Key {
    let mut key = Key::ZERO.with(Field::InPort, u64::from(port));
    if bytes.len() < ethernet::HEADER_BYTES {
        return key;
    }
    let headers = Headers::of(bytes);
    key.set(Field::EthDst, number(&bytes[0..6]));
    key.set(Field::EthSrc, number(&bytes[6..12]));
    if headers.tags > 0 {
        let control = number(&bytes[14..16]);
        key.set(Field::Vlan, VLAN_PRESENT | (control & 0xfff));
        key.set(Field::VlanPriority, control >> 13);
        key.set(Field::SecondTag, second_tag(u16_at(bytes, 16)));
    }
    key.set(Field::EthType, u64::from(headers.eth_type));
    match headers.network {
        Network::Ipv4 => extract_ipv4(&mut key, &headers, bytes),
        Network::Arp => extract_arp(&mut key, &bytes[headers.network_at.into()..]),
        _ => {}
    }
    key
}

fn extract_ipv4(key: &mut Key, headers: &Headers, bytes: &[u8]) {
    let header = &bytes[headers.network_at.into()..];
    key.set(Field::IpDscp, u64::from(header[1] >> 2));
    key.set(Field::IpProto, u64::from(headers.proto));
    key.set(Field::IpSrc, number(&header[12..16]));
    key.set(Field::IpDst, number(&header[16..20]));
    let l4 = &bytes[headers.transport_at.into()..];
    match headers.transport_to_match() {
        Transport::Tcp | Transport::Udp => {
            key.set(Field::L4Src, number(&l4[0..2]));
            key.set(Field::L4Dst, number(&l4[2..4]));
        }
        Transport::Icmp => {
            key.set(Field::L4Src, u64::from(l4[0]));
            key.set(Field::L4Dst, u64::from(l4[1]));
        }
        _ => {}
    }
}

/// The key has eight bits of the operation.
fn extract_arp(key: &mut Key, bytes: &[u8]) {
    let Some(arp) = arp::View::new(bytes) else { return };
    key.set(Field::IpProto, u64::from(arp.operation()));
    key.set(Field::IpSrc, u64::from(arp.sender_ip().to_bits()));
    key.set(Field::IpDst, u64::from(arp.target_ip().to_bits()));
}

/// Reads a big-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

/// Whether the frame is a fragment of an IPv4 or IPv6 datagram.
pub fn is_fragment(bytes: &[u8]) -> bool {
    Headers::of(bytes).fragment != Fragment::Whole
}

#[cfg(test)]
mod tests;
