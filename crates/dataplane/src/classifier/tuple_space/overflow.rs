//! Matches without a tuple: lists in rank order, each as bit sets.
//!
//! For any masks, a lookup searches at most one list per 128 matches ([`crate::fast::bits`]), and
//! no list that ranks below an entry already found.
//!
//! Invariant: across all lists, matches are in descending order of rank, and in order of arrival
//! for equal ranks. No list is empty.

use std::sync::Arc;

use crate::classifier::linear::LinearTable;
use crate::classifier::{Overlap, RANK_FEW};
use crate::fast::bits::{BitTable, MATCHES_MAX};
use crate::matching::Match;

/// The lists, for the writer.
#[derive(Debug, Default)]
pub struct OverflowList {
    lists: Vec<(LinearTable, Arc<BitTable>)>,
}

/// The lists, for readers, each with its highest rank.
pub type OverflowView = Arc<[(u32, Arc<BitTable>)]>;

impl OverflowList {
    /// Returns the view for readers.
    pub fn view(&self) -> OverflowView {
        self.lists.iter().map(|(list, bits)| (list.rank_most(), Arc::clone(bits))).collect()
    }

    /// Returns all matches, each with its rank and entry.
    pub fn iter(&self) -> impl Iterator<Item = (Match, u32, u32)> + '_ {
        self.lists.iter().flat_map(|(list, _)| list.iter())
    }

    /// Returns the highest rank; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        self.lists.first().map_or(0, |(list, _)| list.rank_most())
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        self.lists.iter().find_map(|(list, _)| list.find_same(matching, rank))
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
    pub fn overlap(&self, matching: &Match, rank: u32) -> Overlap {
        let with_rank = self.lists.iter().map(|(list, _)| list.count_rank(rank));
        if with_rank.sum::<usize>() > RANK_FEW {
            return Overlap::Unknown;
        }
        self.lists.iter().any(|(list, _)| list.overlaps(matching, rank)).into()
    }

    /// Adds an entry after those of the same rank.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) {
        // The last list whose first rank is not lower.
        let at = self.lists.partition_point(|(list, _)| list.rank_most() >= rank);
        let mut at = at.saturating_sub(1);
        match self.lists.get(at) {
            None => self.lists.push(Default::default()),
            Some((list, _)) if list.len() == MATCHES_MAX => {
                self.split(at);
                at += usize::from(self.lists[at + 1].0.rank_most() >= rank);
            }
            Some(_) => {}
        }
        push(&mut self.lists[at], matching, rank, entry);
    }

    /// Removes an entry with this rank and match. Returns false if it is not here.
    pub fn remove(&mut self, matching: &Match, rank: u32, entry: u32) -> bool {
        let place = |(list, _): &(LinearTable, _)| list.place_of(rank, entry);
        let Some(at) = self.lists.iter().position(|pair| place(pair).is_some()) else {
            return false;
        };
        let (list, bits) = &mut self.lists[at];
        if let Some(place) = list.place_of(rank, entry) {
            Arc::make_mut(bits).remove(place, matching);
        }
        list.remove(rank, entry);
        if list.is_empty() {
            self.lists.remove(at);
        }
        true
    }

    /// Splits a list in two.
    fn split(&mut self, at: usize) {
        let all: Vec<_> = self.lists[at].0.iter().collect();
        let (first, second) = all.split_at(all.len() / 2);
        let list = |half: &[(Match, u32, u32)]| {
            let mut list = Default::default();
            half.iter().for_each(|(matching, rank, entry)| {
                push(&mut list, matching, *rank, *entry);
            });
            list
        };
        self.lists[at] = list(first);
        self.lists.insert(at + 1, list(second));
    }
}

fn push((list, bits): &mut (LinearTable, Arc<BitTable>), matching: &Match, rank: u32, entry: u32) {
    Arc::make_mut(bits).insert(list.end_of_rank(rank), matching, entry);
    list.insert(matching, rank, entry);
}
