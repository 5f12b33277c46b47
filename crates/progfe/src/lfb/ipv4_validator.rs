//! IPv4Validator (RFC 6956 section 5.2.1): validates IPv4 headers by RFC 1812 section 5.2.2.
//!
//! - An invalid header, or one that contradicts its packet, goes to FailOut with ValidateErrorID.
//! - A packet that needs software processing (options, expiring TTL) goes to ExceptionOut with
//!   ExceptionID.
//! - Padding after the packet's total length remains.

use forces::Value;
use packet::header::ipv4::{self, View};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict, counters, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::symbolic_bytes::Read;
use crate::compile::tree::NodeId;

const UNICAST: u32 = 0;
const MULTICAST: u32 = 1;
const EXCEPTION: u32 = 2;
const FAIL: u32 = 3;
/// The component IPv4ValidatorStats.
const STATS: u32 = 1;

/// Counter indices.
const BAD_HEADER: u8 = 0;
const BAD_TOTAL_LENGTH: u8 = 1;
const BAD_TTL: u8 = 2;
const BAD_CHECKSUM: u8 = 3;

/// The IPv4Validator block.
#[derive(Debug)]
pub struct Ipv4Validator {
    bad: [u64; 4],
}

/// Result of the validation of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Valid, with a unicast or multicast destination.
    Good {
        /// Whether the destination is multicast.
        multicast: bool,
    },
    /// The packet needs software processing; with ExceptionID.
    Exception(u8),
    /// Invalid: counter index, and ValidateErrorID (RFC 6956 section 4.4).
    Fail(u8, u8),
}

/// All possible results.
const ALL: [Found; 13] = [
    Found::Good { multicast: false },
    Found::Good { multicast: true },
    Found::Exception(exception::IPV4_HEADER_LENGTH as u8),
    Found::Exception(exception::BAD_TTL as u8),
    Found::Exception(exception::SOURCE as u8),
    Found::Exception(exception::DESTINATION as u8),
    Found::Fail(BAD_HEADER, 1),
    Found::Fail(BAD_HEADER, 2),
    Found::Fail(BAD_HEADER, 3),
    Found::Fail(BAD_TOTAL_LENGTH, 4),
    Found::Fail(BAD_CHECKSUM, 5),
    Found::Fail(BAD_HEADER, 6),
    Found::Fail(BAD_HEADER, 7),
];

impl Found {
    /// Returns the index of the result in [`ALL`].
    #[inline]
    pub fn number(self) -> usize {
        match self {
            Found::Good { multicast } => usize::from(multicast),
            Found::Exception(_) => ALL.iter().position(|it| *it == self).unwrap_or(2),
            Found::Fail(_, why) => 5 + usize::from(why),
        }
    }
}

/// Validates a packet by its length and its first bytes, which include header options.
#[inline]
pub fn look(head: &[u8], bytes: usize) -> Found {
    let Some(view) = View::new(head) else { return Found::Fail(BAD_HEADER, 1) };
    if view.version() != 4 {
        return Found::Fail(BAD_HEADER, 2);
    }
    if view.header_length() < ipv4::HEADER_BYTES {
        return Found::Fail(BAD_HEADER, 3);
    }
    let total = usize::from(view.total_length());
    if total < view.header_length() || total > bytes {
        return Found::Fail(BAD_TOTAL_LENGTH, 4);
    }
    if !view.header().is_some_and(ipv4::checksum_is_right) {
        return Found::Fail(BAD_CHECKSUM, 5);
    }
    let (source, destination) = (view.source(), view.destination());
    // Addresses that are never valid as a source (RFC 1812 section 5.3.7), and destinations that
    // never leave a host.
    if source.is_multicast() || source.is_broadcast() || source.is_loopback() {
        return Found::Fail(BAD_HEADER, 6);
    }
    if destination.is_loopback() || destination.octets()[0] == 0 {
        return Found::Fail(BAD_HEADER, 7);
    }
    if view.header_length() > ipv4::HEADER_BYTES {
        return Found::Exception(exception::IPV4_HEADER_LENGTH as u8);
    }
    if view.ttl() <= 1 {
        return Found::Exception(exception::BAD_TTL as u8);
    }
    if source.is_unspecified() {
        return Found::Exception(exception::SOURCE as u8);
    }
    if destination.is_broadcast() {
        return Found::Exception(exception::DESTINATION as u8);
    }
    Found::Good { multicast: destination.is_multicast() }
}

/// Returns true for a common packet: valid, without options, unicast. The result of [`look`] then
/// has the number 0.
#[inline(always)]
pub fn is_plain(head: &[u8], bytes: usize) -> bool {
    let Some(header) = head.first_chunk::<{ ipv4::HEADER_BYTES }>() else { return false };
    let word =
        |at: usize| header[at..].first_chunk::<4>().map_or(0, |word| u32::from_be_bytes(*word));
    let words = [0, 4, 8, 12, 16].map(word);
    let (total, source, destination) = (words[0] as usize & 0xffff, words[3], words[4]);
    // A sum of words equals the sum of their halves, except for carries.
    let sum: u64 = words.iter().map(|word| u64::from(*word)).sum();
    let is_station = |address: u32| {
        !matches!(address >> 24, 127 | 224..=239) && address != 0 && address != u32::MAX
    };
    words[0] >> 24 == 0x45
        && (ipv4::HEADER_BYTES..=bytes).contains(&total)
        && words[2] >> 24 > 1
        && sum.is_multiple_of(0xffff)
        && is_station(source)
        && is_station(destination)
        && destination >> 24 != 0
}

impl Ipv4Validator {
    fn count(&mut self, found: Found, frames: u64) {
        match found {
            Found::Good { .. } => {}
            Found::Exception(why) if u128::from(why) == exception::BAD_TTL => {
                self.bad[usize::from(BAD_TTL)] += frames;
            }
            Found::Exception(_) => {}
            Found::Fail(counter, _) => self.bad[usize::from(counter)] += frames,
        }
    }
}

impl Block for Ipv4Validator {
    const IS_PLAIN: bool = true;

    fn new(_setup: &mut Setup<'_>) -> Self {
        Ipv4Validator { bad: [0; 4] }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let found = look(packet.bytes(), packet.bytes().len());
        self.count(found, 1);
        match found {
            Found::Good { multicast: false } => Verdict::Out(UNICAST, 0),
            Found::Good { multicast: true } => Verdict::Out(MULTICAST, 0),
            Found::Exception(why) => {
                packet.set_meta(env.slots, meta_id::EXCEPTION, why.into());
                Verdict::Out(EXCEPTION, 0)
            }
            Found::Fail(_, why) => {
                packet.set_meta(env.slots, meta_id::VALIDATE_ERROR, why.into());
                Verdict::Out(FAIL, 0)
            }
        }
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let total = way.view.read(ipv4::TOTAL_LENGTH_AT * 8, 16)?;
        grower.ipv4(way, ALL.len(), &mut |grower, mut way, number| {
            let (output, told) = match ALL[number] {
                Found::Good { multicast } => {
                    let field = |at: usize, bits| match way.view.read(at, bits) {
                        Some(Read::Field(field)) => Some(field),
                        _ => None,
                    };
                    let (version, words) = (field(0, 4), field(4, 4));
                    let ttl = field(ipv4::TTL_AT * 8, 8);
                    let known = [(version, (4, 4)), (words, (5, 5)), (ttl, (2, 255))];
                    for (field, range) in known {
                        field.into_iter().for_each(|field| way.learn(field, vec![range]));
                    }
                    if let Read::Field(total) = total {
                        way.learn(total, vec![(20, 0xffff)]);
                        // The total length is at most the number of bytes.
                        way.learn_fits(total, -way.view.grown as usize, true);
                    }
                    (if multicast { MULTICAST } else { UNICAST }, None)
                }
                Found::Exception(why) => (EXCEPTION, Some((meta_id::EXCEPTION, why))),
                Found::Fail(_, why) => (FAIL, Some((meta_id::VALIDATE_ERROR, why))),
            };
            if let Some((id, why)) = told {
                way.set(grower.slots.slot(id), Known::Constant(why.into()));
            }
            grower.meet(&mut way, number as u32);
            grower.go(way, output, 0)
        })
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        self.count(ALL[what as usize], frames);
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.bad, &mut old.bad);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&self.bad))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.bad = [0; 4];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_unicast_packets_are_valid(
            addresses in proptest::collection::vec(prop_oneof![
                any::<[u8; 4]>(),
                Just([0; 4]),
                Just([255; 4]),
                (prop_oneof![Just(0u8), Just(10), Just(127), 223u8..242], any::<u8>())
                    .prop_map(|(first, last)| [first, 0, 0, last]),
            ], 2),
            first in prop_oneof![4 => Just(0x45u8), 1 => any::<u8>()],
            total in prop_oneof![Just(40u16), any::<u16>(), 0u16..80],
            ttl in 0u8..4,
            damage in proptest::option::weighted(0.2, (0usize..20, any::<u8>())),
            cut in prop_oneof![3 => Just(60usize), 1 => 0usize..60],
        ) {
            let mut packet = [0; 60];
            packet[8] = ttl;
            packet[12..16].copy_from_slice(&addresses[0]);
            packet[16..20].copy_from_slice(&addresses[1]);
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            packet[0] = 0x45;
            ipv4::set_checksum(&mut packet[..20]);
            packet[0] = first;
            if let Some((at, byte)) = damage {
                packet[at] = byte;
            }
            let head = &packet[..cut];
            let good = look(head, cut) == Found::Good { multicast: false };
            prop_assert_eq!(is_plain(head, cut), good);
            prop_assert!(!good || look(head, cut).number() == 0);
        }
    }
}
