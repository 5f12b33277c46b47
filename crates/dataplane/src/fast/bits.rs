//! Bit sets of matches, indexed by the nibbles of the key.
//!
//! For each nibble that some match depends on, and for each of its sixteen values, there is the set
//! of matches that permit this value. The matches that a key meets are the intersection of the sets
//! of its nibbles, and the first in rank order wins. The cost depends on the number of nibbles in
//! use, not on the number of matches. After T. V. Lakshman and D. Stiliadis, "High-speed
//! policy-based packet forwarding using efficient multi-dimensional range matching" (SIGCOMM 1998).
//! Nibbles replace the ranges, so that any mask is supported and all sets fit into the L1 cache.
//!
//! Invariant: bits are in descending order of rank, and in order of arrival for equal ranks.

use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

/// Maximum number of matches in a set.
pub const MATCHES_MAX: usize = 64 * WORDS;

/// Number of words in a set.
const WORDS: usize = 4;

/// Matches, one bit each.
type Set = [u64; WORDS];

/// Wildcard matches and their entries.
#[derive(Debug, Clone, Default)]
pub struct BitTable {
    /// Nibbles of the key's four words.
    narrow: Vec<NibbleSets>,
    /// Nibbles of the wide fields.
    wide: Vec<NibbleSets>,
    entries: Vec<u32>,
    all: Set,
}

/// A nibble that some match depends on.
#[derive(Debug, Clone)]
struct NibbleSets {
    word: u8,
    shift: u8,
    /// Number of matches that depend on the nibble.
    users: u16,
    sets: [Set; 16],
}

impl BitTable {
    /// Finds the entry of the highest rank that matches the key and the wide fields.
    #[inline]
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        let mut set = self.all;
        for half in &self.narrow {
            half.narrow(&mut set, key.0[usize::from(half.word)]);
        }
        for half in &self.wide {
            half.narrow(&mut set, wide.0[usize::from(half.word)]);
        }
        let word = set.iter().position(|&word| word != 0)?;
        Some(self.entries[word * 64 + set[word].trailing_zeros() as usize])
    }

    /// Whether there are no matches.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Inserts an entry at index `place`.
    ///
    /// # Panics
    /// If there are [`MATCHES_MAX`] already.
    pub fn insert(&mut self, place: usize, matching: &Match, entry: u32) {
        assert!(self.entries.len() < MATCHES_MAX, "a set has one bit for each match");
        let (values, masks) = (&matching.value().0, &matching.mask().0);
        insert_into(&mut self.narrow, &self.all, place, values, masks);
        let (values, masks) = (&matching.wide_value().0, &matching.wide_mask().0);
        insert_into(&mut self.wide, &self.all, place, values, masks);
        self.entries.insert(place, entry);
        self.all = first(self.entries.len());
    }

    /// Removes the entry at index `place`, which has this match.
    pub fn remove(&mut self, place: usize, matching: &Match) {
        remove_from(&mut self.narrow, place, &matching.mask().0);
        remove_from(&mut self.wide, place, &matching.wide_mask().0);
        self.entries.remove(place);
        self.all = first(self.entries.len());
    }
}

impl NibbleSets {
    #[inline(always)]
    fn narrow(&self, set: &mut Set, word: u64) {
        let fits = &self.sets[(word >> self.shift) as usize & 15];
        for (set, fits) in set.iter_mut().zip(fits) {
            *set &= fits;
        }
    }

    fn is_at(&self, word: usize, shift: u32) -> bool {
        usize::from(self.word) == word && u32::from(self.shift) == shift
    }
}

/// Inserts a bit into every set, sets it where value and mask permit, and adds nibbles that no
/// match depended on before. `all` are the matches so far.
fn insert_into(
    halves: &mut Vec<NibbleSets>,
    all: &Set,
    place: usize,
    values: &[u64],
    masks: &[u64],
) {
    for (word, mask) in masks.iter().enumerate() {
        for shift in (0..u64::BITS).step_by(4).filter(|shift| mask >> shift & 15 != 0) {
            if !halves.iter().any(|half| half.is_at(word, shift)) {
                let (word, shift) = (word as u8, shift as u8);
                halves.push(NibbleSets { word, shift, users: 0, sets: [*all; 16] });
            }
        }
    }
    for half in halves {
        let word = usize::from(half.word);
        let (value, mask) = (values[word] >> half.shift & 15, masks[word] >> half.shift & 15);
        half.users += u16::from(mask != 0);
        for (other, set) in (0..).zip(&mut half.sets) {
            open_gap(set, place, (other ^ value) & mask == 0);
        }
    }
}

/// Removes a bit from every set, and removes nibbles that no match depends on any more.
fn remove_from(halves: &mut Vec<NibbleSets>, place: usize, masks: &[u64]) {
    for half in &mut *halves {
        let mask = masks[usize::from(half.word)] >> half.shift & 15;
        half.users -= u16::from(mask != 0);
        half.sets.iter_mut().for_each(|set| close_gap(set, place));
    }
    halves.retain(|half| half.users > 0);
}

/// Returns the set of the first `count` matches.
fn first(count: usize) -> Set {
    std::array::from_fn(|word| match count.saturating_sub(word * 64) {
        0 => 0,
        left @ 1..64 => (1 << left) - 1,
        _ => u64::MAX,
    })
}

/// Shifts the bits from `place` on up by one, and sets the one at `place`.
fn open_gap(set: &mut Set, place: usize, bit: bool) {
    let (at, below) = (place / 64, (1 << (place % 64)) - 1);
    for word in (at + 1..WORDS).rev() {
        set[word] = set[word] << 1 | set[word - 1] >> 63;
    }
    let word = set[at];
    set[at] = word & below | (word & !below) << 1 | u64::from(bit) << (place % 64);
}

/// Shifts the bits after `place` down by one, over the one at `place`.
fn close_gap(set: &mut Set, place: usize) {
    let (at, below) = (place / 64, (1u64 << (place % 64)) - 1);
    let carry = |set: &Set, word: usize| set.get(word + 1).map_or(0, |next| next << 63);
    set[at] = set[at] & below | (set[at] >> 1) & !below | carry(set, at);
    for word in at + 1..WORDS {
        set[word] = set[word] >> 1 | carry(set, word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::linear::LinearTable;
    use crate::classifier::wildcard::tests::random_match;
    use crate::rng::Rng;

    #[test]
    fn gaps_can_be_inserted_and_removed_at_every_position() {
        let mut dice = Rng::new(1);
        for _ in 0..2000 {
            let count = dice.roll(255) as usize;
            let mut bits: Vec<bool> = (0..count).map(|_| dice.roll(2) == 1).collect();
            let mut set = [0; WORDS];
            let pack = |bits: &[bool]| {
                let mut set = [0; WORDS];
                bits.iter()
                    .enumerate()
                    .for_each(|(at, &bit)| set[at / 64] |= u64::from(bit) << (at % 64));
                set
            };
            set.copy_from_slice(&pack(&bits));
            let (place, bit) = (dice.roll(count as u64 + 1) as usize, dice.roll(2) == 1);
            open_gap(&mut set, place, bit);
            bits.insert(place, bit);
            assert_eq!(set, pack(&bits), "at {place} of {count}");
            let place = dice.roll(bits.len() as u64) as usize;
            close_gap(&mut set, place);
            bits.remove(place);
            assert_eq!(set, pack(&bits), "at {place}");
            assert_eq!(
                first(count).iter().map(|word| word.count_ones()).sum::<u32>() as usize,
                count
            );
        }
        assert_eq!(first(256), [u64::MAX; WORDS]);
    }

    #[test]
    fn bit_sets_equal_a_list_under_random_changes() {
        for seed in 0..40 {
            let mut dice = Rng::new(seed);
            let (mut bits, mut list) = (BitTable::default(), LinearTable::default());
            let mut installed: Vec<(Match, u32, u32)> = Vec::new();
            for entry in 0..400 {
                let (matching, rank) = (random_match(&mut dice), dice.roll(4) as u32);
                let full = installed.len() == MATCHES_MAX;
                if full || dice.roll(4) == 0 && !installed.is_empty() {
                    let at = dice.roll(installed.len() as u64) as usize;
                    let (matching, rank, entry) = installed.swap_remove(at);
                    bits.remove(
                        list.place_of(rank, entry).expect("the entry is in the list"),
                        &matching,
                    );
                    list.remove(rank, entry);
                } else {
                    bits.insert(list.end_of_rank(rank), &matching, entry);
                    list.insert(&matching, rank, entry);
                    installed.push((matching, rank, entry));
                }
                let probe = random_match(&mut dice);
                let (key, wide) = (probe.value(), probe.wide_value());
                assert_eq!(bits.find(key, wide), list.find(key, wide), "seed {seed}");
            }
            for (matching, rank, entry) in installed {
                bits.remove(
                    list.place_of(rank, entry).expect("the entry is in the list"),
                    &matching,
                );
                list.remove(rank, entry);
            }
            assert!(bits.narrow.is_empty() && bits.wide.is_empty());
        }
    }
}
