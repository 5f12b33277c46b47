//! Matches with open fields: a hash table for each mask that occurs, searched in order of rank.
//!
//! Source: V. Srinivasan, S. Suri, G. Varghese, "Packet classification using tuple space search"
//! (SIGCOMM 1999), with tuples sorted by the highest rank in them, so that the search ends at the
//! first one that cannot do better (as in B. Pfaff et al., "The design and implementation of Open
//! vSwitch", NSDI 2015). A lookup costs a hash for each mask, not a comparison for each entry.
//!
//! Invariant: the tuples are sorted by falling highest rank, none is empty, and what is under one
//! hash is sorted by falling rank and then by arrival, so that which entry wins is the same as in a
//! list.

use std::collections::{BTreeMap, HashMap};

use crate::hash::{Seeded, mix};
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::{Match, differing, differing_wide};

/// The tuples.
#[derive(Debug)]
pub struct TupleSpace {
    tuples: Vec<Tuple>,
    seed: u64,
    entries: usize,
    /// Entries that ever came.
    arrivals: u64,
}

/// The entries with one mask.
#[derive(Debug)]
struct Tuple {
    mask: Key,
    /// Number and mask of each wide word that is asked for.
    words: Box<[(u8, u64)]>,
    wide_mask: Box<Wide>,
    /// By hash of the masked values.
    items: HashMap<u64, Vec<Item>, Seeded>,
    /// How many entries have each rank.
    ranks: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Item {
    rank: u32,
    entry: u32,
    arrival: u64,
    value: Key,
    /// Values of the wide fields, if any is asked for.
    wide: Option<Box<Wide>>,
}

impl Tuple {
    fn rank_most(&self) -> u32 {
        self.ranks.last_key_value().map_or(0, |(rank, _)| *rank)
    }

    #[inline]
    fn hash(&self, key: &Key, wide: &Wide, seed: u64) -> u64 {
        let hash = key.and(&self.mask).hash(seed);
        self.words
            .iter()
            .fold(hash, |hash, &(word, mask)| mix(wide.0[usize::from(word)] & mask, hash))
    }

    /// The first of the entries under a hash that a key and wide fields meet.
    fn find(&self, hash: u64, key: &Key, wide: &Wide) -> Option<&Item> {
        let met = |item: &&Item| {
            let asked = item.wide.as_ref();
            differing(key, &item.value, &self.mask) == 0
                && asked.is_none_or(|value| differing_wide(wide, value, &self.wide_mask) == 0)
        };
        self.items.get(&hash)?.iter().find(met)
    }

    fn matching(&self, item: &Item) -> Match {
        let wide = item.wide.as_ref().map(|value| (**value, *self.wide_mask));
        Match::again(item.value, self.mask, wide.as_ref())
    }
}

impl TupleSpace {
    /// No entries. `seed` is a secret for hashing.
    pub fn new(seed: u64) -> TupleSpace {
        TupleSpace { tuples: Vec::new(), seed, entries: 0, arrivals: 0 }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The highest rank of an entry; 0 if there is none.
    #[inline]
    pub fn rank_most(&self) -> u32 {
        self.tuples.first().map_or(0, Tuple::rank_most)
    }

    /// The entry of the highest rank, and of equal ones the oldest, whose match the key and the
    /// wide fields meet.
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        let mut best: Option<&Item> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|best| best.rank > tuple.rank_most()) {
                break;
            }
            let found = tuple.find(tuple.hash(key, wide, self.seed), key, wide);
            let better = |item: &&Item| {
                best.is_none_or(|best| {
                    item.rank > best.rank || item.rank == best.rank && item.arrival < best.arrival
                })
            };
            best = found.filter(better).or(best);
        }
        best.map(|item| item.entry)
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, matching: &Match, rank: u32) -> Option<u32> {
        let tuple = &self.tuples[self.tuple_of(matching)?];
        let hash = tuple.hash(matching.value(), matching.wide_value(), self.seed);
        let same = |item: &&Item| item.rank == rank && tuple.matching(item) == *matching;
        tuple.items.get(&hash)?.iter().find(same).map(|item| item.entry)
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, matching: &Match, rank: u32) -> bool {
        let with_rank = self.tuples.iter().filter(|tuple| tuple.ranks.contains_key(&rank));
        with_rank.into_iter().any(|tuple| {
            let meets = |item: &Item| item.rank == rank && tuple.matching(item).overlaps(matching);
            tuple.items.values().flatten().any(meets)
        })
    }

    /// Adds an entry behind those of the same rank.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) {
        let (seed, arrival) = (self.seed, self.arrivals);
        let at = self.tuple_of(matching).unwrap_or_else(|| {
            self.tuples.push(new_tuple(matching, seed));
            self.tuples.len() - 1
        });
        let tuple = &mut self.tuples[at];
        let hash = tuple.hash(matching.value(), matching.wide_value(), seed);
        let wide = (matching.wide_words() != 0).then(|| Box::new(*matching.wide_value()));
        let items = tuple.items.entry(hash).or_default();
        let place = items.partition_point(|item| item.rank >= rank);
        items.insert(place, Item { rank, entry, arrival, value: *matching.value(), wide });
        *tuple.ranks.entry(rank).or_default() += 1;
        self.arrivals += 1;
        self.entries += 1;
        self.sort();
    }

    /// Removes an entry of this match and rank, which is in here.
    pub fn remove(&mut self, matching: &Match, rank: u32, entry: u32) {
        let Some(at) = self.tuple_of(matching) else { return };
        let tuple = &mut self.tuples[at];
        let hash = tuple.hash(matching.value(), matching.wide_value(), self.seed);
        let Some(items) = tuple.items.get_mut(&hash) else { return };
        items.retain(|item| item.entry != entry);
        if items.is_empty() {
            tuple.items.remove(&hash);
        }
        if let Some(count) = tuple.ranks.get_mut(&rank) {
            *count -= 1;
            if *count == 0 {
                tuple.ranks.remove(&rank);
            }
        }
        if tuple.ranks.is_empty() {
            self.tuples.remove(at);
        }
        self.entries -= 1;
        self.sort();
    }

    fn tuple_of(&self, matching: &Match) -> Option<usize> {
        let same = |tuple: &Tuple| {
            tuple.mask == *matching.mask() && *tuple.wide_mask == *matching.wide_mask()
        };
        self.tuples.iter().position(same)
    }

    fn sort(&mut self) {
        let falling = |tuple: &Tuple| std::cmp::Reverse(tuple.rank_most());
        if !self.tuples.is_sorted_by_key(falling) {
            self.tuples.sort_by_key(falling);
        }
    }
}

fn new_tuple(matching: &Match, seed: u64) -> Tuple {
    let words = matching.wide_mask().0.iter().zip(0..).filter(|(mask, _)| **mask != 0);
    Tuple {
        mask: *matching.mask(),
        words: words.map(|(mask, word)| (word, *mask)).collect(),
        wide_mask: Box::new(*matching.wide_mask()),
        items: HashMap::with_hasher(Seeded(seed)),
        ranks: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::linear::LinearTable;
    use crate::dice::Dice;
    use packet::field::Field;

    /// Matches of few masks and values, so that they overlap and repeat.
    fn random_match(dice: &mut Dice) -> Match {
        let mut asked = vec![(Field::EthType, 0x86dd, 0xffff)];
        let mut ask = |field: Field, value: u64, mask: u128| {
            asked.push((field, u128::from(value) & mask, mask));
        };
        for field in [Field::InPort, Field::EthDst, Field::Metadata, Field::Ipv6Dst] {
            let mask = match dice.roll(3) {
                0 => continue,
                1 if field.maskable() => 2,
                _ => field.ones(),
            };
            ask(field, dice.roll(4), mask);
        }
        asked.sort_unstable();
        Match::asking(&asked)
    }

    #[test]
    fn it_finds_what_a_list_finds_whatever_comes_and_goes() {
        for seed in 0..60 {
            let mut dice = Dice::new(seed);
            let (mut tuples, mut list) = (TupleSpace::new(seed), LinearTable::default());
            let mut installed: Vec<(Match, u32, u32)> = Vec::new();
            for entry in 0..300 {
                let (matching, rank) = (random_match(&mut dice), dice.roll(4) as u32);
                assert_eq!(tuples.overlaps(&matching, rank), list.overlaps(&matching, rank));
                let same = tuples.find_same(&matching, rank);
                assert_eq!(same, list.find_same(&matching, rank), "seed {seed}");
                if dice.roll(3) == 0 && !installed.is_empty() {
                    let at = dice.roll(installed.len() as u64) as usize;
                    let (matching, rank, entry) = installed.swap_remove(at);
                    tuples.remove(&matching, rank, entry);
                    list.remove(rank, entry);
                } else if same.is_none() {
                    tuples.insert(&matching, rank, entry);
                    list.insert(&matching, rank, entry);
                    installed.push((matching, rank, entry));
                }
                assert_eq!((tuples.len(), tuples.rank_most()), (list.len(), list.rank_most()));
                let probe = random_match(&mut dice);
                let (key, wide) = (probe.value(), probe.wide_value());
                assert_eq!(tuples.find(key, wide), list.find(key, wide), "seed {seed}");
            }
            assert!(!tuples.is_empty());
        }
    }
}
