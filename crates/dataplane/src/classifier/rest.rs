//! The way in which a table finds matches with open fields, as it was chosen.

use super::linear::LinearTable;
use super::tuple_space::TupleSpace;
use super::{Classifier, NOWHERE};
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

/// One of the ways.
#[derive(Debug)]
pub enum Rest {
    /// One after the other.
    Linear(LinearTable),
    /// A hash for each mask.
    TupleSpace(TupleSpace),
}

/// Does the same with either.
macro_rules! either {
    ($self:expr, $rest:ident => $what:expr) => {
        match $self {
            Rest::Linear($rest) => $what,
            Rest::TupleSpace($rest) => $what,
        }
    };
}

impl Rest {
    /// No entries. `seed` is a secret for hashing.
    pub fn new(classifier: Classifier, seed: u64) -> Rest {
        match classifier {
            Classifier::Linear => Rest::Linear(LinearTable::default()),
            Classifier::TupleSpace => Rest::TupleSpace(TupleSpace::new(seed)),
        }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        either!(self, rest => rest.len())
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        either!(self, rest => rest.is_empty())
    }

    /// The highest rank of an entry; 0 if there is none.
    #[inline]
    pub fn rank_most(&self) -> u32 {
        either!(self, rest => rest.rank_most())
    }

    /// The entry to use for a key and wide fields.
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        either!(self, rest => rest.find(key, wide))
    }

    /// For each key without an entry, the entry to use.
    #[inline]
    pub fn find_missing(&self, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        either!(self, rest => {
            for (at, (found, key)) in found.iter_mut().zip(keys).enumerate() {
                if *found == NOWHERE {
                    let wide = wide.get(at).unwrap_or(&Wide::ZERO);
                    *found = rest.find(key, wide).unwrap_or(NOWHERE);
                }
            }
        });
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        either!(self, rest => rest.find_same(matching, rank))
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        either!(self, rest => rest.overlaps(matching, rank))
    }

    /// Adds an entry behind those of the same rank.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) {
        either!(self, rest => rest.insert(matching, rank, entry));
    }

    /// Removes an entry of this match and rank, which is in here.
    pub fn remove(&mut self, matching: &Match, rank: u32, entry: u32) {
        match self {
            Rest::Linear(list) => list.remove(rank, entry),
            Rest::TupleSpace(tuples) => tuples.remove(matching, rank, entry),
        }
    }
}
