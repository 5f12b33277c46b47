//! Matches with open fields: a list in order of rank, searched from its start.
//!
//! This is the linear table of the study (bianco2010, section II), whose cost grows with the place
//! of the match, and the plain meaning of "the entry of highest priority that matches"
//! (OpenFlow switch specification 1.0.0, section 3.4), so that it also judges every quicker way.
//!
//! Invariant: the list is sorted by falling rank, and entries of equal rank are in the order in
//! which they came, so that which of them wins does not change.

use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::{Match, differing, differing_wide};

/// The list.
#[derive(Debug, Clone, Default)]
pub struct LinearTable {
    /// What a lookup reads: value and mask of the key.
    matches: Vec<(Key, Key)>,
    /// The rest of what is at the same place.
    entries: Vec<Item>,
}

/// What a lookup reads only where the key fits.
#[derive(Debug, Clone)]
struct Item {
    rank: u32,
    entry: u32,
    /// Values and masks of the wide fields, if any is asked for.
    wide: Option<Box<(Wide, Wide)>>,
}

impl Item {
    #[inline]
    fn fits(&self, wide: &Wide) -> bool {
        self.wide.as_ref().is_none_or(|asked| differing_wide(wide, &asked.0, &asked.1) == 0)
    }
}

impl LinearTable {
    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.matches.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }

    /// The highest rank of an entry; 0 if there is none.
    #[inline]
    pub fn rank_most(&self) -> u32 {
        self.entries.first().map_or(0, |item| item.rank)
    }

    /// The first entry whose match the key and the wide fields meet.
    #[inline]
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        let hit = |asked: &(Key, Key)| differing(key, &asked.0, &asked.1) == 0;
        let mut from = self.matches.iter().position(hit)?;
        while !self.entries[from].fits(wide) {
            from += 1 + self.matches[from + 1..].iter().position(hit)?;
        }
        Some(self.entries[from].entry)
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        let place = self.of_rank(rank).find(|&place| self.matching(place) == *matching)?;
        Some(self.entries[place].entry)
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        self.of_rank(rank).any(|place| self.matching(place).overlaps(matching))
    }

    /// How many entries have this rank.
    pub fn count_rank(&self, rank: u32) -> usize {
        self.of_rank(rank).len()
    }

    /// Adds an entry behind those of the same rank.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) {
        let place = self.end_of_rank(rank);
        let wide = (*matching.wide_value(), *matching.wide_mask());
        let wide = (matching.wide_words() != 0).then(|| Box::new(wide));
        self.matches.insert(place, (*matching.value(), *matching.mask()));
        self.entries.insert(place, Item { rank, entry, wide });
    }

    /// Removes an entry of this rank, which is in the list.
    pub fn remove(&mut self, rank: u32, entry: u32) {
        if let Some(place) = self.place_of(rank, entry) {
            self.matches.remove(place);
            self.entries.remove(place);
        }
    }

    /// All its matches in order, each with its rank and entry.
    pub fn iter(&self) -> impl Iterator<Item = (Match, u32, u32)> + '_ {
        (0..self.len()).map(|place| {
            let item = &self.entries[place];
            (self.matching(place), item.rank, item.entry)
        })
    }

    /// Where an entry of this rank would be added.
    pub fn end_of_rank(&self, rank: u32) -> usize {
        self.entries.partition_point(|other| other.rank >= rank)
    }

    /// Where an entry of this rank is.
    pub fn place_of(&self, rank: u32, entry: u32) -> Option<usize> {
        self.of_rank(rank).find(|&place| self.entries[place].entry == entry)
    }

    fn matching(&self, place: usize) -> Match {
        let (value, mask) = self.matches[place];
        Match::again(value, mask, self.entries[place].wide.as_deref())
    }

    /// The places of the entries of this rank.
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
    fn overlap_is_asked_within_a_rank_only() {
        let mut table = LinearTable::default();
        table.insert(&Match::of(&[(Field::InPort, 1)]), 5, 0);
        let other_field = Match::of(&[(Field::EthDst, 2)]);
        let other_value = Match::of(&[(Field::InPort, 2)]);
        assert!(table.overlaps(&other_field, 5));
        assert!(!table.overlaps(&other_field, 4));
        assert!(!table.overlaps(&other_value, 5));
    }
}
