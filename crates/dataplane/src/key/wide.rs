//! Match fields that do not fit into the four words of a [`Key`](Key).
//!
//! [`packet::field`] defines the fields. Matches of OpenFlow 1.0 use none of them; they are
//! extracted only if an entry matches on them.
//!
//! ```text
//! word 0      metadata                      word 1      tunnel_id
//! word 2      in_phy_port | actset_output   word 3      packet_type | l4_src | l4_dst
//! word 4      tcp_flags | ip_proto | ip_ecn | ip_dscp | ipv6_flabel | ipv6_exthdr
//! words 5, 6  ipv6_src                      words 7, 8  ipv6_dst
//! words 9, 10 ipv6_nd_target                word 11     ipv6_nd_sll
//! word 12     ipv6_nd_tll                   word 13     arp_op (upper half) | arp_sha
//! word 14     arp_tha                       word 15     pbb_uca | pbb_isid | mpls bos, tc, label
//! ```
//!
//! Invariant: as in the key, a field that a frame does not have is zero. Protocol, DSCP and ports
//! here are those of IPv6 only, since the key has those of IPv4; SCTP ports are here for both.

use packet::field::{FIELDS, Field};

use super::{Field as Hot, Key};
use crate::parse::{Headers, Transport};

/// Number of words.
pub const WORDS: usize = 16;

const ETH_TYPE_IPV6: u64 = 0x86dd;

/// A set of words, one bit each.
pub type WordSet = u16;

/// Words that do not come from the frame's bytes: metadata, tunnel, ports.
pub const OUTSIDE: WordSet = 0b111;

/// The wide fields of one frame (or, in a match, their values or masks).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Wide(pub [u64; WORDS]);

impl Wide {
    /// Every field zero.
    pub const ZERO: Wide = Wide([0; WORDS]);

    /// Returns the set of nonzero words.
    pub fn used(&self) -> WordSet {
        self.0.iter().enumerate().fold(0, |set, (at, &word)| set | (WordSet::from(word != 0) << at))
    }
}

/// The fields that are read from a frame's bytes.
const READ: [Field; 22] = [
    Field::IpDscp,
    Field::IpEcn,
    Field::IpProto,
    Field::ArpSha,
    Field::ArpTha,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::Ipv6Flabel,
    Field::Ipv6Exthdr,
    Field::MplsLabel,
    Field::MplsTc,
    Field::MplsBos,
    Field::PbbIsid,
    Field::PbbUca,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::Icmpv6Type,
    Field::Icmpv6Code,
];

/// Fields read from the bytes that fragments do not have.
const READ_OF_WHOLE: [Field; 4] =
    [Field::TcpFlags, Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll];

/// Reads the words of `wanted` from a frame's bytes into `wide`, where they are zero.
pub fn extract(bytes: &[u8], wanted: WordSet, wide: &mut Wide) {
    let headers = Headers::of(bytes);
    let whole = headers.transport_to_match() != Transport::None;
    let fields = READ.iter().chain(READ_OF_WHOLE.iter().filter(|_| whole));
    let mut key = Key::ZERO;
    for &field in fields {
        let transport = matches!(words(field), L4_WORDS) && !whole;
        if words(field) & wanted == 0 || transport {
            continue;
        }
        if let Some(value) = headers.get(field, bytes) {
            set(field, Family::Ipv6, &mut key, wide, value);
        }
    }
    if wanted & words(Field::ArpSha) != 0
        && let Some(operation) = headers.get(Field::ArpOp, bytes)
    {
        set(Field::ArpOp, Family::Ipv6, &mut key, wide, operation);
    }
}

/// The word of the ports.
const L4_WORDS: WordSet = 1 << 3;

/// Returns the bits of the key and the wide words that depend on this field.
pub(crate) fn touched(field: Field) -> (Key, WordSet) {
    let (mut key, mut unused) = (Key::ZERO, Wide::ZERO);
    match field {
        // The parser interprets all later headers differently.
        Field::EthType | Field::IpProto | Field::PacketType => return EVERYTHING,
        _ => set(field, Family::Ipv4, &mut key, &mut unused, u128::MAX),
    }
    let (mut words, mut six) = (words(field) | unused.used(), Key::ZERO);
    set(field, Family::Ipv6, &mut six, &mut unused, u128::MAX);
    words |= unused.used();
    (key.or(&six), words)
}

/// Every bit of the key and every wide word.
pub(crate) const EVERYTHING: (Key, WordSet) = (Key::FULL, WordSet::MAX);

/// Returns the wide words that hold a field.
fn words(field: Field) -> WordSet {
    let words = pieces(field, Family::Ipv6).iter().filter_map(|piece| piece.wide_word());
    words.fold(0, |set, word| set | 1 << word)
}

/// Some bits of a field, in a word of the key or of the wide fields, which are numbered after those
/// of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    word: usize,
    /// Lowest bit in the word.
    shift: u32,
    /// Number of bits; zero if there is no such piece.
    bits: u32,
}

/// Address family, which decides where a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Returns the family of frames with this key.
    #[inline]
    pub(crate) fn of(key: &Key) -> Family {
        Family::of_type(key.get(Hot::EthType))
    }

    /// Returns the family of frames with this Ethernet type.
    #[inline]
    pub(crate) fn of_type(eth_type: u64) -> Family {
        match eth_type {
            ETH_TYPE_IPV6 => Family::Ipv6,
            _ => Family::Ipv4,
        }
    }
}

/// Returns a piece of a key field.
const fn hot(field: Hot, shift: u32, bits: u32) -> Piece {
    let (word, lowest, _) = field.place();
    Piece { word, shift: lowest + shift, bits }
}

/// Returns a piece of a wide word.
const fn wide(word: usize, shift: u32, bits: u32) -> Piece {
    Piece { word: super::WORDS + word, shift, bits }
}

/// No piece.
const NONE: Piece = Piece { word: 0, shift: 0, bits: 0 };

/// Returns the position of a field in frames of this family: its lower 64 bits, and the rest.
const fn place(field: Field, family: Family) -> [Piece; 2] {
    let six = matches!(family, Family::Ipv6);
    let one = match field {
        Field::InPort => hot(Hot::InPort, 0, 16),
        Field::InPhyPort => wide(2, 32, 32),
        Field::Metadata => wide(0, 0, 64),
        Field::EthDst => hot(Hot::EthDst, 0, 48),
        Field::EthSrc => hot(Hot::EthSrc, 0, 48),
        Field::EthType => hot(Hot::EthType, 0, 16),
        Field::VlanVid => hot(Hot::Vlan, 0, 13),
        Field::VlanPcp => hot(Hot::VlanPriority, 0, 3),
        Field::IpDscp if six => wide(4, 29, 6),
        Field::IpDscp => hot(Hot::IpDscp, 0, 6),
        Field::IpEcn => wide(4, 35, 2),
        Field::IpProto if six => wide(4, 37, 8),
        Field::IpProto => hot(Hot::IpProto, 0, 8),
        Field::Ipv4Src | Field::ArpSpa => hot(Hot::IpSrc, 0, 32),
        Field::Ipv4Dst | Field::ArpTpa => hot(Hot::IpDst, 0, 32),
        Field::TcpSrc | Field::UdpSrc if six => wide(3, 16, 16),
        Field::TcpDst | Field::UdpDst if six => wide(3, 0, 16),
        Field::TcpSrc | Field::UdpSrc => hot(Hot::L4Src, 0, 16),
        Field::TcpDst | Field::UdpDst => hot(Hot::L4Dst, 0, 16),
        Field::SctpSrc => wide(3, 16, 16),
        Field::SctpDst => wide(3, 0, 16),
        Field::Icmpv4Type => hot(Hot::L4Src, 0, 8),
        Field::Icmpv4Code => hot(Hot::L4Dst, 0, 8),
        Field::ArpOp => return [hot(Hot::IpProto, 0, 8), wide(13, 48, 8)],
        Field::ArpSha => wide(13, 0, 48),
        Field::ArpTha => wide(14, 0, 48),
        Field::Ipv6Src => return [wide(6, 0, 64), wide(5, 0, 64)],
        Field::Ipv6Dst => return [wide(8, 0, 64), wide(7, 0, 64)],
        Field::Ipv6Flabel => wide(4, 9, 20),
        Field::Icmpv6Type => wide(3, 16, 16),
        Field::Icmpv6Code => wide(3, 0, 16),
        Field::Ipv6NdTarget => return [wide(10, 0, 64), wide(9, 0, 64)],
        Field::Ipv6NdSll => wide(11, 0, 48),
        Field::Ipv6NdTll => wide(12, 0, 48),
        Field::MplsLabel => wide(15, 0, 20),
        Field::MplsTc => wide(15, 20, 3),
        Field::MplsBos => wide(15, 23, 1),
        Field::PbbIsid => wide(15, 24, 24),
        Field::PbbUca => wide(15, 48, 1),
        Field::TunnelId => wide(1, 0, 64),
        Field::Ipv6Exthdr => wide(4, 0, 9),
        Field::TcpFlags => wide(4, 45, 12),
        Field::ActsetOutput => wide(2, 0, 32),
        Field::PacketType => wide(3, 32, 32),
    };
    [one, NONE]
}

/// Positions of all fields, by family.
static PLACES: [[[Piece; 2]; FIELDS]; 2] = {
    let mut places = [[[NONE; 2]; FIELDS]; 2];
    let mut at = 0;
    while at < FIELDS {
        places[Family::Ipv4 as usize][at] = place(Field::ALL[at], Family::Ipv4);
        places[Family::Ipv6 as usize][at] = place(Field::ALL[at], Family::Ipv6);
        at += 1;
    }
    places
};

#[inline]
fn pieces(field: Field, family: Family) -> &'static [Piece; 2] {
    &PLACES[family as usize][field as usize]
}

impl Piece {
    /// Returns a value with as many of the lowest bits set as the piece has.
    #[inline]
    const fn ones(self) -> u64 {
        match self.bits {
            0 => 0,
            bits => u64::MAX >> (64 - bits),
        }
    }

    /// Returns the wide word of the piece, if it is in one.
    fn wide_word(self) -> Option<usize> {
        self.word.checked_sub(super::WORDS).filter(|_| self.bits > 0)
    }

    #[inline]
    fn get(self, key: &Key, wide: &Wide) -> u64 {
        let word = match self.word.checked_sub(super::WORDS) {
            None => key.0[self.word],
            Some(at) => wide.0[at],
        };
        (word >> self.shift) & self.ones()
    }

    /// Writes the piece; excess bits are ignored.
    #[inline]
    fn set(self, key: &mut Key, wide: &mut Wide, value: u64) {
        let word = match self.word.checked_sub(super::WORDS) {
            None => &mut key.0[self.word],
            Some(at) => &mut wide.0[at],
        };
        *word = *word & !(self.ones() << self.shift) | (value & self.ones()) << self.shift;
    }
}

/// Reads a field of a frame of this family.
#[inline]
pub(crate) fn get(field: Field, family: Family, key: &Key, wide: &Wide) -> u128 {
    let [low, high] = pieces(field, family);
    match high.bits {
        0 => low.get(key, wide).into(),
        _ => u128::from(high.get(key, wide)) << low.bits | u128::from(low.get(key, wide)),
    }
}

/// Writes a field of a frame of this family.
#[inline]
pub(crate) fn set(field: Field, family: Family, key: &mut Key, wide: &mut Wide, value: u128) {
    let [low, high] = pieces(field, family);
    low.set(key, wide, value as u64);
    if high.bits > 0 {
        high.set(key, wide, (value >> low.bits) as u64);
    }
}
