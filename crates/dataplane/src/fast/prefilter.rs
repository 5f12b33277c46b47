//! Determines from parts of a key which of up to [`GROUPS`] groups of matches it may meet.
//!
//! The parts of a key are the upper half of each address, a port, and the protocol. For each value
//! of a part, there is the set of groups with a match that permits this value. Only the
//! intersection of the sets of a key's parts must be searched. A match on a prefix of a part is
//! recorded for all values with this prefix. Prefixes of less than eight bits use a small array,
//! indexed by the first eight bits.
//!
//! Source: the pruned tuple space of V. Srinivasan, S. Suri and G. Varghese, "Packet classification
//! using tuple space search" (SIGCOMM 1999), section 5.
//!
//! Invariant: a set has every group with a match that permits the value. Sets only grow, so readers
//! may look up while the single writer adds.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::memory::{Zero, ZeroedArray};
use super::prefetch;
use crate::key::{Field, Key};

/// A set of groups.
#[derive(Debug, Default)]
#[repr(transparent)]
struct Groups(AtomicU64);

// SAFETY: a number, for which zero is valid and which has nothing to drop.
unsafe impl Zero for Groups {}

/// The sets.
#[derive(Debug)]
pub struct Prefilter {
    parts: [PartSets; PARTS.len()],
    protocols: ZeroedArray<Groups>,
}

/// The sets of one part of 16 bits.
#[derive(Debug)]
struct PartSets {
    /// Indexed by the first eight bits, for shorter prefixes.
    short: ZeroedArray<Groups>,
    /// Indexed by all bits.
    long: ZeroedArray<Groups>,
}

/// Word of the key and lowest bit of each part.
const PARTS: [(usize, u32); 3] = [(2, 48), (2, 16), (3, 0)];

/// Maximum number of groups.
pub const GROUPS: usize = 64;

/// Number of bits that index a short array.
const SHORT: u32 = 8;

impl Prefilter {
    /// Creates a sieve without matches.
    pub fn new() -> Prefilter {
        let part =
            || PartSets { short: ZeroedArray::new(1 << SHORT), long: ZeroedArray::new(1 << 16) };
        Prefilter { parts: std::array::from_fn(|_| part()), protocols: ZeroedArray::new(256) }
    }

    /// Adds a match with these values and masks to a group below [`GROUPS`].
    pub fn add(&self, group: u32, value: &Key, mask: &Key) {
        let bit = 1 << group;
        let note = |sets: &[Groups]| {
            // Only the single writer changes sets.
            sets.iter().for_each(|set| set.0.store(set.0.load(Relaxed) | bit, Relaxed));
        };
        for (part, (word, shift)) in self.parts.iter().zip(PARTS) {
            let (value, mask) = ((value.0[word] >> shift) as u16, (mask.0[word] >> shift) as u16);
            let bits = mask.leading_ones();
            let (row, bits, value) = if bits < SHORT {
                (&part.short, SHORT - bits, usize::from(value >> SHORT))
            } else {
                (&part.long, 16 - bits, usize::from(value))
            };
            let from = value >> bits << bits;
            note(&row[from..from + (1 << bits)]);
        }
        let protocol = value.get(Field::IpProto) as usize;
        let whole = mask.get(Field::IpProto) == Field::IpProto.full();
        note(if whole { &self.protocols[protocol..=protocol] } else { &self.protocols });
    }

    /// Prefetches the sets for a key.
    #[inline]
    pub fn prefetch(&self, key: &Key) {
        for (part, (word, shift)) in self.parts.iter().zip(PARTS) {
            prefetch::read(&part.long[usize::from((key.0[word] >> shift) as u16)]);
        }
    }

    /// Returns a bit set of the groups in which a key may meet a match.
    #[inline]
    pub fn groups(&self, key: &Key) -> u64 {
        let mut groups = self.protocols[key.get(Field::IpProto) as usize].0.load(Relaxed);
        for (part, (word, shift)) in self.parts.iter().zip(PARTS) {
            let value = usize::from((key.0[word] >> shift) as u16);
            let (short, long) = (&part.short[value >> SHORT], &part.long[value]);
            groups &= short.0.load(Relaxed) | long.0.load(Relaxed);
        }
        groups
    }
}

impl Default for Prefilter {
    fn default() -> Prefilter {
        Prefilter::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Match;
    use crate::rng::Rng;

    #[test]
    fn the_sieve_passes_all_groups_with_a_match_and_few_others() {
        let mut dice = Rng::new(4);
        let sieve = Prefilter::new();
        let mut all: Vec<(u32, Match)> = Vec::new();
        let ask = |dice: &mut Rng, field: Field, bits: u64, key: &mut (Key, Key)| {
            let open = dice.roll(bits + 1);
            key.0.set(field, dice.roll(1 << 40) >> 3);
            key.1.set(field, u64::MAX << open);
        };
        for number in 0..300 {
            let mut key = (Key::ZERO, Key::ZERO.with(Field::EthType, 0xffff));
            key.0.set(Field::EthType, 0x0800);
            ask(&mut dice, Field::IpSrc, 32, &mut key);
            ask(&mut dice, Field::IpDst, 32, &mut key);
            if dice.roll(2) == 0 {
                key.0.set(Field::IpProto, dice.pick(&[6, 17]));
                key.1.set(Field::IpProto, 0xff);
                ask(&mut dice, Field::L4Dst, 16, &mut key);
            }
            let matching = Match::new(key.0, key.1);
            sieve.add(number % 64, matching.value(), matching.mask());
            all.push((number % 64, matching));
        }
        let mut left = 0;
        for _ in 0..3000 {
            let (_, like) = &all[dice.roll(300) as usize];
            let noise =
                Key([0, 0, dice.roll(1 << 50) << 14 ^ dice.roll(1 << 50), dice.roll(1 << 16)]);
            let open = Key(std::array::from_fn(|word| noise.0[word] & !like.mask().0[word]));
            let key = like.value().or(&open);
            let groups = sieve.groups(&key);
            for (group, matching) in &all {
                assert!(!matching.matches_key(&key) || groups >> group & 1 == 1);
            }
            left += groups.count_ones();
        }
        assert!(left < 3000 * 40, "{left} groups are left");
    }
}
