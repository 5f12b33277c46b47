//! Matches with open fields: a list in order of rank, searched from its start.
//!
//! This is the linear table of the study (bianco2010, section II), whose cost grows with the place
//! of the match, and the plain meaning of "the entry of highest priority that matches"
//! (OpenFlow switch specification 1.0.0, section 3.4), so that it also judges every quicker way.
//!
//! Invariant: the list is sorted by falling rank, and entries of equal rank are in the order in
//! which they came, so that which of them wins does not change.

use crate::key::Key;
use crate::matching::{Match, differing};

/// The list.
#[derive(Debug, Default)]
pub struct LinearTable {
    /// What a lookup reads.
    matches: Vec<Match>,
    /// Rank and number of the entry at the same place.
    entries: Vec<(u32, u32)>,
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

    /// The first entry whose match the key meets.
    #[inline]
    pub fn find(&self, key: &Key) -> Option<u32> {
        let hit = |matching: &Match| differing(key, matching.value(), matching.mask()) == 0;
        self.matches.iter().position(hit).map(|place| self.entries[place].1)
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        let place = self.of_rank(rank).find(|&place| self.matches[place] == *matching)?;
        Some(self.entries[place].1)
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        self.of_rank(rank).any(|place| self.matches[place].overlaps(matching))
    }

    /// Adds an entry behind those of the same rank.
    pub fn insert(&mut self, matching: Match, rank: u32, entry: u32) {
        let place = self.entries.partition_point(|other| other.0 >= rank);
        self.matches.insert(place, matching);
        self.entries.insert(place, (rank, entry));
    }

    /// Removes an entry of this rank, which is in the list.
    pub fn remove(&mut self, rank: u32, entry: u32) {
        let place = self.of_rank(rank).find(|&place| self.entries[place].1 == entry);
        if let Some(place) = place {
            self.matches.remove(place);
            self.entries.remove(place);
        }
    }

    /// The places of the entries of this rank.
    fn of_rank(&self, rank: u32) -> std::ops::Range<usize> {
        let start = self.entries.partition_point(|other| other.0 > rank);
        start..self.entries.partition_point(|other| other.0 >= rank)
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
        table.insert(Match::ANY, 1, 10);
        table.insert(from_one, 5, 11);
        table.insert(to_two, 5, 12);
        let both = Key::ZERO.with(Field::InPort, 1).with(Field::EthDst, 2);
        assert_eq!(table.find(&both), Some(11));
        table.insert(to_two, 6, 13);
        assert_eq!(table.find(&both), Some(13));
        table.remove(6, 13);
        table.remove(5, 11);
        assert_eq!(table.find(&both), Some(12));
        assert_eq!(table.find(&Key::ZERO), Some(10));
        assert_eq!((table.find_same(&to_two, 5), table.find_same(&to_two, 6)), (Some(12), None));
    }

    #[test]
    fn overlap_is_asked_within_a_rank_only() {
        let mut table = LinearTable::default();
        table.insert(Match::of(&[(Field::InPort, 1)]), 5, 0);
        let other_field = Match::of(&[(Field::EthDst, 2)]);
        let other_value = Match::of(&[(Field::InPort, 2)]);
        assert!(table.overlaps(&other_field, 5));
        assert!(!table.overlaps(&other_field, 4));
        assert!(!table.overlaps(&other_value, 5));
    }
}
