//! The matches with open fields of one table, in the structure that suits how many they are.
//!
//! Up to [`MATCHES_MAX`] are found half a byte at a time ([`crate::fast::bits`]), more by a hash for
//! each mask. Which one it is changes while entries come and go, with some room between the two
//! limits so that one entry that comes and goes does not change it each time. Who asks for one way
//! gets that one.
//!
//! Invariant: which entry wins does not depend on the structure.

use std::sync::Arc;

use super::linear::LinearTable;
use super::tuple_space::{TupleSpace, TupleViews};
use super::{Classifier, NOWHERE};
use crate::fast::bits::{BitTable, MATCHES_MAX};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

/// No more than so many are few again.
const FEW_AGAIN: usize = 150;

/// The matches with open fields of one table, for who changes them.
#[derive(Debug)]
pub struct Rest {
    classifier: Classifier,
    way: Way,
    seed: u64,
    /// Whether what readers hold of it is out of date.
    changed: bool,
}

/// The matches with open fields of one table, for who looks entries up.
#[derive(Debug, Clone)]
pub enum RestView {
    /// One after the other.
    List(Arc<LinearTable>),
    /// By half bytes.
    Few(Arc<BitTable>),
    /// A hash for each mask.
    Many(TupleViews),
}

/// One of the structures.
#[derive(Debug)]
enum Way {
    /// One after the other, because that was asked for.
    List(Arc<LinearTable>),
    /// By half bytes. The list is for who changes it.
    Few(LinearTable, Arc<BitTable>),
    /// A hash for each mask.
    Many(TupleSpace),
}

impl Way {
    fn new(classifier: Classifier, seed: u64) -> Way {
        match classifier {
            Classifier::Linear => Way::List(Arc::default()),
            Classifier::TupleSpace => Way::Many(TupleSpace::new(seed)),
            Classifier::Automatic => Way::Few(LinearTable::default(), Arc::default()),
        }
    }

    fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        match self {
            Way::List(list) => Arc::make_mut(list).insert(matching, rank, entry),
            Way::Few(list, bits) => {
                Arc::make_mut(bits).insert(list.end_of_rank(rank), matching, entry);
                list.insert(matching, rank, entry);
            }
            Way::Many(tuples) => tuples.insert(slab, matching, entry),
        }
    }
}

impl Rest {
    /// No entries. `seed` is a secret for hashing.
    pub fn new(classifier: Classifier, seed: u64) -> Rest {
        Rest { classifier, way: Way::new(classifier, seed), seed, changed: false }
    }

    /// What readers are to hold of it.
    pub fn view(&self) -> RestView {
        match &self.way {
            Way::List(list) => RestView::List(Arc::clone(list)),
            Way::Few(_, bits) => RestView::Few(Arc::clone(bits)),
            Way::Many(tuples) => RestView::Many(tuples.views()),
        }
    }

    /// Whether what readers hold became out of date since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        let tuples = match &mut self.way {
            Way::Many(tuples) => tuples.take_changed(),
            _ => false,
        };
        std::mem::take(&mut self.changed) || tuples
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        match &self.way {
            Way::List(list) => list.len(),
            Way::Few(list, _) => list.len(),
            Way::Many(tuples) => tuples.len(),
        }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        match &self.way {
            Way::List(list) => list.rank_most(),
            Way::Few(list, _) => list.rank_most(),
            Way::Many(tuples) => tuples.rank_most(),
        }
    }

    /// The entry with this very match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        match &self.way {
            Way::List(list) => list.find_same(matching, rank),
            Way::Few(list, _) => list.find_same(matching, rank),
            Way::Many(tuples) => tuples.find_same(slab, matching, rank),
        }
    }

    /// Whether an entry of this rank could match the same frame.
    pub fn overlaps(&self, slab: &Slab, matching: &Match, rank: u32) -> bool {
        match &self.way {
            Way::List(list) => list.overlaps(matching, rank),
            Way::Few(list, _) => list.overlaps(matching, rank),
            Way::Many(tuples) => tuples.overlaps(slab, matching, rank),
        }
    }

    /// Adds an entry whose line is written, behind those of the same rank.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if let Way::Few(list, _) = &self.way
            && list.len() == MATCHES_MAX
        {
            let mut tuples = TupleSpace::new(self.seed);
            list.iter().for_each(|(matching, _, entry)| tuples.insert(slab, &matching, entry));
            self.way = Way::Many(tuples);
            self.changed = true;
        }
        self.changed |= !matches!(self.way, Way::Many(_));
        self.way.insert(slab, matching, rank, entry);
    }

    /// Removes an entry of this match and rank, which is in here.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        self.changed |= !matches!(self.way, Way::Many(_));
        match &mut self.way {
            Way::List(list) => Arc::make_mut(list).remove(rank, entry),
            Way::Few(list, bits) => {
                if let Some(place) = list.place_of(rank, entry) {
                    Arc::make_mut(bits).remove(place, matching);
                }
                list.remove(rank, entry);
            }
            Way::Many(tuples) => {
                tuples.remove(slab, matching, entry);
                if self.classifier == Classifier::Automatic && tuples.len() <= FEW_AGAIN {
                    self.make_few(slab);
                }
            }
        }
    }

    /// Goes back from tuples to half bytes.
    fn make_few(&mut self, slab: &Slab) {
        let Way::Many(tuples) = &self.way else { return };
        let mut all: Vec<(Match, u32)> = tuples.matches(slab).collect();
        all.sort_by(|(_, one), (_, other)| {
            let (one, other) = (slab.line(*one), slab.line(*other));
            if one.goes_before(other) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        });
        let mut way = Way::new(Classifier::Automatic, self.seed);
        all.iter().for_each(|(matching, entry)| {
            way.insert(slab, matching, slab.line(*entry).rank(), *entry);
        });
        self.way = way;
        self.changed = true;
    }
}

impl RestView {
    /// Whether there are no entries, as far as the view tells.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            RestView::List(list) => list.is_empty(),
            RestView::Few(bits) => bits.is_empty(),
            RestView::Many(tuples) => tuples.is_empty(),
        }
    }

    /// The entry to use for a key and wide fields.
    pub fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> Option<u32> {
        match self {
            RestView::List(list) => list.find(key, wide),
            RestView::Few(bits) => bits.find(key, wide),
            RestView::Many(tuples) => tuples.find(slab, key, wide),
        }
    }

    /// For each key without an entry, the entry to use.
    #[inline]
    pub fn find_missing(&self, slab: &Slab, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        match self {
            RestView::List(list) => fill(keys, wide, found, |key, wide| list.find(key, wide)),
            RestView::Few(bits) => fill(keys, wide, found, |key, wide| bits.find(key, wide)),
            RestView::Many(tuples) => tuples.find_missing(slab, keys, wide, found),
        }
    }
}

/// Finds what is missing key by key.
#[inline]
fn fill(keys: &[Key], wide: &[Wide], found: &mut [u32], find: impl Fn(&Key, &Wide) -> Option<u32>) {
    for (at, (found, key)) in found.iter_mut().zip(keys).enumerate() {
        if *found == NOWHERE {
            *found = find(key, wide.get(at).unwrap_or(&Wide::ZERO)).unwrap_or(NOWHERE);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::classifier::Verdict;
    use crate::dice::Dice;
    use crate::fast::slab::Picture;
    use crate::flow::Part;
    use packet::field::Field;
    use packet::time::Nanos;

    /// Matches of few masks and values, so that they overlap and repeat.
    pub fn random_match(dice: &mut Dice) -> Match {
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

    /// Entries with lines, as a table has them.
    pub struct Installed {
        pub slab: Slab,
        entries: Vec<(Match, u32, u32)>,
        arrivals: u32,
    }

    impl Default for Installed {
        fn default() -> Installed {
            Installed { slab: Slab::new(4096), entries: Vec::new(), arrivals: 0 }
        }
    }

    impl Installed {
        pub fn is_empty(&self) -> bool {
            self.entries.is_empty()
        }

        /// Writes the line of a new entry.
        pub fn add(&mut self, matching: &Match, rank: u32) -> u32 {
            let entry = self.arrivals;
            self.slab.reserve(entry);
            self.slab.line(entry).set(&Picture {
                key: *matching.value(),
                frames: 0,
                bytes: 0,
                last_match: Nanos::ZERO,
                verdict: Verdict::Drop,
                rank,
                part: Part::Wildcard,
                arrival: self.arrivals,
            });
            self.slab.set_wide(entry, matching.wide_value());
            self.arrivals += 1;
            self.entries.push((*matching, rank, entry));
            entry
        }

        /// Forgets some entry.
        pub fn take(&mut self, dice: &mut Dice) -> (Match, u32, u32) {
            self.entries.swap_remove(dice.roll(self.entries.len() as u64) as usize)
        }

        pub fn places(&self) -> Vec<u32> {
            let mut places: Vec<u32> = self.entries.iter().map(|entry| entry.2).collect();
            places.sort_unstable();
            places
        }
    }

    #[test]
    fn it_finds_what_a_list_finds_while_the_structure_changes() {
        for seed in 0..4 {
            let mut dice = Dice::new(seed);
            let mut rest = Rest::new(Classifier::Automatic, seed);
            let mut list = LinearTable::default();
            let mut all = Installed::default();
            let mut view = rest.view();
            let mut structures = 0;
            // Up past the one limit, down past the other, and again.
            for growing in [true, false, true, false] {
                for _ in 0..700 {
                    let (matching, rank) = (random_match(&mut dice), dice.roll(60) as u32);
                    let was_many = matches!(rest.way, Way::Many(_));
                    let slab = &all.slab;
                    assert_eq!(
                        rest.overlaps(slab, &matching, rank),
                        list.overlaps(&matching, rank)
                    );
                    let same = rest.find_same(slab, &matching, rank);
                    assert_eq!(same, list.find_same(&matching, rank), "seed {seed}");
                    if (dice.roll(4) == 0) == growing && !all.is_empty() {
                        let (matching, rank, entry) = all.take(&mut dice);
                        rest.remove(&all.slab, &matching, rank, entry);
                        list.remove(rank, entry);
                    } else if same.is_none() {
                        let entry = all.add(&matching, rank);
                        rest.insert(&all.slab, &matching, rank, entry);
                        list.insert(&matching, rank, entry);
                    }
                    structures += usize::from(was_many != matches!(rest.way, Way::Many(_)));
                    assert_eq!((rest.len(), rest.rank_most()), (list.len(), list.rank_most()));
                    let probe = random_match(&mut dice);
                    let (key, wide) = (*probe.value(), *probe.wide_value());
                    let wanted = list.find(&key, &wide);
                    if rest.take_changed() {
                        view = rest.view();
                    }
                    assert_eq!(view.find(&all.slab, &key, &wide), wanted, "seed {seed}");
                    let mut found = [NOWHERE];
                    view.find_missing(&all.slab, &[key], &[wide], &mut found);
                    assert_eq!(found[0], wanted.unwrap_or(NOWHERE), "seed {seed}");
                }
            }
            assert!(structures >= 3, "{structures} changes of structure");
        }
    }
}
