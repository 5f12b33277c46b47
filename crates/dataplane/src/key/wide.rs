//! The fields that the four words of a [`Key`](Key) have no room for.
//!
//! Fields and their meaning are those of [`packet::field`]. Matches of OpenFlow 1.0 ask for none of
//! them, and where no entry does they are not looked for.
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
//! Invariant: as in the key, a field that a frame does not have is zero. The protocol, the DSCP and
//! the ports are here for IPv6 only, since a key has those of IPv4; the ports of SCTP are here for
//! both.

use packet::field::Field;

use super::{Field as Hot, Key};
use crate::locate::{Headers, Transport};

/// Words.
pub const WORDS: usize = 16;

/// A set of words, a bit for each.
pub type WordSet = u16;

/// The words that a frame's bytes do not say: metadata, tunnel, ports.
pub const OUTSIDE: WordSet = 0b111;

/// The wide fields of one frame (or, in a match, values or masks).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Wide(pub [u64; WORDS]);

impl Wide {
    /// Every field zero.
    pub const ZERO: Wide = Wide([0; WORDS]);

    /// The words that are not zero.
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

/// Those of them that no fragment has.
const READ_OF_WHOLE: [Field; 4] =
    [Field::TcpFlags, Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll];

/// Reads the words of `wanted` that a frame's bytes say into `wide`, where they are zero.
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

/// What of a key and which wide words a change of this field changes.
pub(crate) fn touched(field: Field) -> (Key, WordSet) {
    let (mut key, mut unused) = (Key::ZERO, Wide::ZERO);
    match field {
        // What follows is read as something else.
        Field::EthType | Field::IpProto | Field::PacketType => return EVERYTHING,
        _ => set(field, Family::Ipv4, &mut key, &mut unused, u128::MAX),
    }
    let (mut words, mut six) = (words(field) | unused.used(), Key::ZERO);
    set(field, Family::Ipv6, &mut six, &mut unused, u128::MAX);
    words |= unused.used();
    (key.or(&six), words)
}

/// All that can change.
pub(crate) const EVERYTHING: (Key, WordSet) = (Key::FULL, WordSet::MAX);

/// The wide words that hold a field.
fn words(field: Field) -> WordSet {
    let (low, high) = pieces(field, Family::Ipv6);
    let word = |piece: Piece| match piece {
        Piece::Hot(..) => 0,
        Piece::Wide(word, ..) => 1 << word,
    };
    word(low) | high.map_or(0, word)
}

/// Where a field is: pieces of at most 64 bits, the one of the lowest bits first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// In the key: the field, the lowest of its bits, and how many.
    Hot(Hot, u32, u32),
    /// In a wide word: the word, its lowest bit, and how many.
    Wide(usize, u32, u32),
}

/// What a field's place depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

/// The pieces of a field in a frame of this kind.
#[inline]
pub(crate) fn pieces(field: Field, family: Family) -> (Piece, Option<Piece>) {
    use Piece::{Hot as H, Wide as W};
    let six = family == Family::Ipv6;
    let l4 = |hot: Hot, shift| if six { W(3, shift, 16) } else { H(hot, 0, 16) };
    let two = |word| (W(word + 1, 0, 64), Some(W(word, 0, 64)));
    let one = match field {
        Field::InPort => H(Hot::InPort, 0, 16),
        Field::InPhyPort => W(2, 32, 32),
        Field::Metadata => W(0, 0, 64),
        Field::EthDst => H(Hot::EthDst, 0, 48),
        Field::EthSrc => H(Hot::EthSrc, 0, 48),
        Field::EthType => H(Hot::EthType, 0, 16),
        Field::VlanVid => H(Hot::Vlan, 0, 13),
        Field::VlanPcp => H(Hot::VlanPriority, 0, 3),
        Field::IpDscp if six => W(4, 29, 6),
        Field::IpDscp => H(Hot::IpTos, 2, 6),
        Field::IpEcn => W(4, 35, 2),
        Field::IpProto if six => W(4, 37, 8),
        Field::IpProto => H(Hot::IpProto, 0, 8),
        Field::Ipv4Src | Field::ArpSpa => H(Hot::IpSrc, 0, 32),
        Field::Ipv4Dst | Field::ArpTpa => H(Hot::IpDst, 0, 32),
        Field::TcpSrc | Field::UdpSrc => l4(Hot::L4Src, 16),
        Field::TcpDst | Field::UdpDst => l4(Hot::L4Dst, 0),
        Field::SctpSrc => W(3, 16, 16),
        Field::SctpDst => W(3, 0, 16),
        Field::Icmpv4Type => H(Hot::L4Src, 0, 8),
        Field::Icmpv4Code => H(Hot::L4Dst, 0, 8),
        Field::ArpOp => return (H(Hot::IpProto, 0, 8), Some(W(13, 48, 8))),
        Field::ArpSha => W(13, 0, 48),
        Field::ArpTha => W(14, 0, 48),
        Field::Ipv6Src => return two(5),
        Field::Ipv6Dst => return two(7),
        Field::Ipv6Flabel => W(4, 9, 20),
        Field::Icmpv6Type => W(3, 16, 16),
        Field::Icmpv6Code => W(3, 0, 16),
        Field::Ipv6NdTarget => return two(9),
        Field::Ipv6NdSll => W(11, 0, 48),
        Field::Ipv6NdTll => W(12, 0, 48),
        Field::MplsLabel => W(15, 0, 20),
        Field::MplsTc => W(15, 20, 3),
        Field::MplsBos => W(15, 23, 1),
        Field::PbbIsid => W(15, 24, 24),
        Field::PbbUca => W(15, 48, 1),
        Field::TunnelId => W(1, 0, 64),
        Field::Ipv6Exthdr => W(4, 0, 9),
        Field::TcpFlags => W(4, 45, 12),
        Field::ActsetOutput => W(2, 0, 32),
        Field::PacketType => W(3, 32, 32),
    };
    (one, None)
}

/// A number with the lowest `bits` bits set.
const fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Piece {
    /// How many bits.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Piece::Hot(_, _, bits) | Piece::Wide(_, _, bits) => bits,
        }
    }

    /// Reads it.
    #[inline]
    pub(crate) fn get(self, key: &Key, wide: &Wide) -> u64 {
        match self {
            Piece::Hot(hot, shift, bits) => (key.get(hot) >> shift) & ones(bits),
            Piece::Wide(word, shift, bits) => (wide.0[word] >> shift) & ones(bits),
        }
    }

    /// Writes it; bits that it does not have are ignored.
    #[inline]
    pub(crate) fn set(self, key: &mut Key, wide: &mut Wide, value: u64) {
        match self {
            Piece::Hot(hot, shift, bits) => {
                let kept = key.get(hot) & !(ones(bits) << shift);
                key.set(hot, kept | ((value & ones(bits)) << shift));
            }
            Piece::Wide(word, shift, bits) => {
                let kept = wide.0[word] & !(ones(bits) << shift);
                wide.0[word] = kept | ((value & ones(bits)) << shift);
            }
        }
    }
}

/// Reads a field of a frame of this kind.
pub(crate) fn get(field: Field, family: Family, key: &Key, wide: &Wide) -> u128 {
    let (low, high) = pieces(field, family);
    let upper = high.map_or(0, |high| u128::from(high.get(key, wide)) << low.bits());
    upper | u128::from(low.get(key, wide))
}

/// Writes a field of a frame of this kind.
pub(crate) fn set(field: Field, family: Family, key: &mut Key, wide: &mut Wide, value: u128) {
    let (low, high) = pieces(field, family);
    low.set(key, wide, value as u64);
    if let Some(high) = high {
        high.set(key, wide, (value >> low.bits()) as u64);
    }
}
