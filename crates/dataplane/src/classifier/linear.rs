//! Wildcard matches in a list in rank order, with linear search.
//!
//! This is the linear table of bianco2010, section II, whose cost grows with the position of the
//! match. It is also the literal meaning of "the entry of highest priority that matches" (OpenFlow
//! switch specification 1.0.0, section 3.4), so tests use it as the reference for faster
//! classifiers.
//!
//! Invariant: the list is sorted by descending rank; entries of equal rank are in order of arrival,
//! so that the same one always wins.

use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::{Match, differing, differing_wide};

/// The list.
#[derive(Debug, Clone, Default)]
pub struct LinearTable {
    /// Value and mask of the key, which a lookup reads first.
    matches: Vec<(Key, Key)>,
    /// Further data at the same index.
    entries: Vec<ColdItem>,
}

/// Data that a lookup reads only if the key matches.
#[derive(Debug, Clone)]
struct ColdItem {
    rank: u32,
    entry: u32,
    /// Values and masks of the wide fields, if the entry matches on any.
    wide: Option<Box<(Wide, Wide)>>,
}

impl ColdItem {
    #[inline]
    fn fits(&self, wide: &Wide) -> bool {
        self.wide.as_ref().is_none_or(|asked| differing_wide(wide, &asked.0, &asked.1) == 0)
    }
}

impl LinearTable {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.matches.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// Returns the highest rank of an entry; 0 if there is none.
    #[inline]
    pub fn rank_most(&self) -> u32 {
        self.entries.first().map_or(0, |item| item.rank)
    }

    /// Finds the first entry that matches the key and the wide fields.
    #[inline]
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        let hit = |asked: &(Key, Key)| differing(key, &asked.0, &asked.1) == 0;
        let mut from = self.matches.iter().position(hit)?;
        while !self.entries[from].fits(wide) {
            from += 1 + self.matches[from + 1..].iter().position(hit)?;
        }
        Some(self.entries[from].entry)
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        let place = self.of_rank(rank).find(|&place| self.matching(place) == *matching)?;
        Some(self.entries[place].entry)
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        self.of_rank(rank).any(|place| self.matching(place).overlaps(matching))
    }

    /// Returns the number of entries of this rank.
    pub fn count_rank(&self, rank: u32) -> usize {
        self.of_rank(rank).len()
    }

    /// Adds an entry after those of the same rank.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) {
        let place = self.end_of_rank(rank);
        let wide = (*matching.wide_value(), *matching.wide_mask());
        let wide = (matching.wide_words() != 0).then(|| Box::new(wide));
        self.matches.insert(place, (*matching.value(), *matching.mask()));
        self.entries.insert(place, ColdItem { rank, entry, wide });
    }

    /// Removes an entry of this rank, which is in the list.
    pub fn remove(&mut self, rank: u32, entry: u32) {
        if let Some(place) = self.place_of(rank, entry) {
            self.matches.remove(place);
            self.entries.remove(place);
        }
    }

    /// Returns all matches in order, each with its rank and entry.
    pub fn iter(&self) -> impl Iterator<Item = (Match, u32, u32)> + '_ {
        (0..self.len()).map(|place| {
            let item = &self.entries[place];
            (self.matching(place), item.rank, item.entry)
        })
    }

    /// Returns the index at which an entry of this rank would be added.
    pub fn end_of_rank(&self, rank: u32) -> usize {
        self.entries.partition_point(|other| other.rank >= rank)
    }

    /// Returns the index of an entry of this rank.
    pub fn place_of(&self, rank: u32, entry: u32) -> Option<usize> {
        self.of_rank(rank).find(|&place| self.entries[place].entry == entry)
    }

    fn matching(&self, place: usize) -> Match {
        let (value, mask) = self.matches[place];
        Match::again(value, mask, self.entries[place].wide.as_deref())
    }

    /// Returns the indexes of the entries of this rank.
    fn of_rank(&self, rank: u32) -> std::ops::Range<usize> {
        let start = self.entries.partition_point(|other| other.rank > rank);
        start..self.entries.partition_point(|other| other.rank >= rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Field;

    #[test]
    fn higher_ranks_win_and_equal_ranks_keep_their_order() {
        let mut table = LinearTable::default();
        let from_one = Match::of(&[(Field::InPort, 1)]);
        let to_two = Match::of(&[(Field::EthDst, 2)]);
        table.insert(&Match::ANY, 1, 10);
        table.insert(&from_one, 5, 11);
        table.insert(&to_two, 5, 12);
        let both = Key::ZERO.with(Field::InPort, 1).with(Field::EthDst, 2);
        assert_eq!(table.find(&both, &Wide::ZERO), Some(11));
        table.insert(&to_two, 6, 13);
        assert_eq!(table.find(&both, &Wide::ZERO), Some(13));
        table.remove(6, 13);
        table.remove(5, 11);
        assert_eq!(table.find(&both, &Wide::ZERO), Some(12));
        assert_eq!(table.find(&Key::ZERO, &Wide::ZERO), Some(10));
        assert_eq!((table.find_same(&to_two, 5), table.find_same(&to_two, 6)), (Some(12), None));
    }

    #[test]
    fn overlap_is_checked_within_one_rank() {
        let mut table = LinearTable::default();
        table.insert(&Match::of(&[(Field::InPort, 1)]), 5, 0);
        let other_field = Match::of(&[(Field::EthDst, 2)]);
        let other_value = Match::of(&[(Field::InPort, 2)]);
        assert!(table.overlaps(&other_field, 5));
        assert!(!table.overlaps(&other_field, 4));
        assert!(!table.overlaps(&other_value, 5));
    }
}
