//! Wildcard matches of one table, in the structure that suits their number.
//!
//! Up to [`MATCHES_MAX`] matches use bit sets per nibble ([`crate::fast::bits`]); more use [hash
//! tables and prefixes](super::many). The structure changes while entries are added and removed.
//! The two limits differ, so that adding and removing a single entry does not change it each time.
//! A fixed [`Classifier`] setting overrides the selection.
//!
//! Invariant: the matched entry does not depend on the structure.

use std::sync::Arc;

use super::linear::LinearTable;
use super::tuple_space::{LookupWork, sort_by_rank};
use super::wildcard_large::{Entries, LargeWildcardClassifier, ManyView};
use super::{Classifier, NO_ENTRY, Overlap, RANK_FEW};
use crate::fast::bits::{BitTable, MATCHES_MAX};
use crate::fast::slab::Slab;
use crate::key::Key;
use crate::key::wide::Wide;
use crate::matching::Match;

/// Number of entries at which to return to bit sets.
const BITMAP_REENTER_MAX: usize = 150;

/// The wildcard matches of one table, for the writer.
#[derive(Debug)]
pub struct WildcardClassifier {
    classifier: Classifier,
    way: Structure,
    seed: u64,
    /// Whether the readers' view is out of date.
    changed: bool,
}

/// The wildcard matches of one table, for readers.
#[derive(Debug, Clone)]
pub enum RestView {
    /// Linear search.
    List(Arc<LinearTable>),
    /// Bit sets per nibble.
    Few(Arc<BitTable>),
    /// A hash table for each mask.
    Many(Box<ManyView>),
}

/// Description of the structure for wildcard matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassifierKind {
    /// Linear search.
    List,
    /// Bit sets per nibble.
    HalfBytes,
    /// Hash tables and longest prefixes.
    Hashed {
        /// Number of entries in the routing table.
        routes: usize,
        /// Number of hash tables for the others, and of lists for entries without one.
        tables: usize,
    },
}

/// One of the structures.
#[derive(Debug)]
enum Structure {
    /// Linear search, as configured.
    List(Arc<LinearTable>),
    /// Bit sets per nibble. The list is for the writer.
    Few(LinearTable, Arc<BitTable>),
    /// A hash table for each mask.
    Many(Box<LargeWildcardClassifier>),
}

impl Structure {
    fn new(classifier: Classifier, seed: u64) -> Structure {
        match classifier {
            Classifier::Linear => Structure::List(Arc::default()),
            Classifier::TupleSpace => {
                Structure::Many(Box::new(LargeWildcardClassifier::new(false, seed)))
            }
            Classifier::Automatic => Structure::Few(LinearTable::default(), Arc::default()),
        }
    }

    fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        match self {
            Structure::List(list) => Arc::make_mut(list).insert(matching, rank, entry),
            Structure::Few(list, bits) => {
                Arc::make_mut(bits).insert(list.end_of_rank(rank), matching, entry);
                list.insert(matching, rank, entry);
            }
            Structure::Many(many) => many.insert(slab, matching, rank, entry),
        }
    }
}

impl WildcardClassifier {
    /// Creates an empty classifier. `seed` is a secret for hashing.
    pub fn new(classifier: Classifier, seed: u64) -> WildcardClassifier {
        WildcardClassifier {
            classifier,
            way: Structure::new(classifier, seed),
            seed,
            changed: false,
        }
    }

    /// Returns the view for readers.
    pub fn view(&self) -> RestView {
        match &self.way {
            Structure::List(list) => RestView::List(Arc::clone(list)),
            Structure::Few(_, bits) => RestView::Few(Arc::clone(bits)),
            Structure::Many(many) => RestView::Many(Box::new(many.view())),
        }
    }

    /// Whether the readers' view became out of date since the last call.
    pub fn take_changed(&mut self) -> bool {
        let tuples = match &mut self.way {
            Structure::Many(many) => many.take_changed(),
            _ => false,
        };
        std::mem::take(&mut self.changed) || tuples
    }

    /// Sets whether changes are staged, so that readers keep their view. Lists and bit sets are
    /// copied on write in any case.
    pub fn set_stays(&mut self, stays: bool) {
        if let Structure::Many(many) = &mut self.way {
            many.set_stays(stays);
        }
    }

    /// Prepares staged changes for publication, within a budget. Returns false if the budget is
    /// exhausted first.
    pub fn complete(&mut self, slab: &Slab, budget: &mut usize) -> bool {
        match &mut self.way {
            Structure::Many(many) => many.complete(slab, budget),
            _ => true,
        }
    }

    /// Continues a structural change, if one is in progress. `entries` are those of the table.
    pub fn advance(&mut self, slab: &Slab, entries: &dyn Entries) {
        if let Structure::Many(many) = &mut self.way {
            many.advance(slab, entries);
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match &self.way {
            Structure::List(list) => list.len(),
            Structure::Few(list, _) => list.len(),
            Structure::Many(many) => many.count(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        match &self.way {
            Structure::List(list) => list.rank_most(),
            Structure::Few(list, _) => list.rank_most(),
            Structure::Many(many) => many.rank_most(),
        }
    }

    /// Describes the structure.
    pub fn describe(&self) -> ClassifierKind {
        match &self.way {
            Structure::List(_) => ClassifierKind::List,
            Structure::Few(..) => ClassifierKind::HalfBytes,
            Structure::Many(many) => {
                ClassifierKind::Hashed { routes: many.count_routes(), tables: many.count_tables() }
            }
        }
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        match &self.way {
            Structure::List(list) => list.find_same(matching, rank),
            Structure::Few(list, _) => list.find_same(matching, rank),
            Structure::Many(many) => many.find_same(slab, matching, rank),
        }
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
    pub fn overlap(&self, slab: &Slab, matching: &Match, rank: u32) -> Overlap {
        match &self.way {
            Structure::List(list) if list.count_rank(rank) > RANK_FEW => Overlap::Unknown,
            Structure::List(list) => list.overlaps(matching, rank).into(),
            Structure::Few(list, _) => list.overlaps(matching, rank).into(),
            Structure::Many(many) => many.overlap(slab, matching, rank),
        }
    }

    /// Adds an entry whose line is written, after those of the same rank.
    pub fn insert(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        if let Structure::Few(list, _) = &self.way
            && list.len() == MATCHES_MAX
        {
            let mut many = LargeWildcardClassifier::new(true, self.seed);
            list.iter().for_each(|(matching, rank, entry)| {
                many.insert(slab, &matching, rank, entry);
            });
            self.way = Structure::Many(Box::new(many));
            self.changed = true;
        }
        self.changed |= !matches!(self.way, Structure::Many(_));
        self.way.insert(slab, matching, rank, entry);
    }

    /// Removes an entry with this match and rank.
    pub fn remove(&mut self, slab: &Slab, matching: &Match, rank: u32, entry: u32) {
        self.changed |= !matches!(self.way, Structure::Many(_));
        match &mut self.way {
            Structure::List(list) => Arc::make_mut(list).remove(rank, entry),
            Structure::Few(list, bits) => {
                if let Some(place) = list.place_of(rank, entry) {
                    Arc::make_mut(bits).remove(place, matching);
                }
                list.remove(rank, entry);
            }
            Structure::Many(many) => {
                many.remove(slab, matching, rank, entry);
                if self.classifier == Classifier::Automatic && many.count() <= BITMAP_REENTER_MAX {
                    self.make_few(slab);
                }
            }
        }
    }

    /// Switches back from the tuple structure to bit sets.
    fn make_few(&mut self, slab: &Slab) {
        let Structure::Many(many) = &self.way else { return };
        let mut all: Vec<(Match, u32)> = many.matches(slab).collect();
        sort_by_rank(slab, &mut all);
        let mut way = Structure::new(Classifier::Automatic, self.seed);
        all.iter().for_each(|(matching, entry)| {
            way.insert(slab, matching, slab.line(*entry).rank(), *entry);
        });
        self.way = way;
        self.changed = true;
    }
}

impl RestView {
    /// Whether there are no entries in this view.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            RestView::List(list) => list.is_empty(),
            RestView::Few(bits) => bits.is_empty(),
            RestView::Many(many) => many.is_empty(),
        }
    }

    /// Returns the entry for a key and wide fields.
    pub fn find(&self, slab: &Slab, key: &Key, wide: &Wide) -> Option<u32> {
        match self {
            RestView::List(list) => list.find(key, wide),
            RestView::Few(bits) => bits.find(key, wide),
            RestView::Many(many) => many.find(slab, key, wide).0,
        }
    }

    /// Returns the work of finding the entry for a key.
    pub fn work(&self, slab: &Slab, key: &Key, wide: &Wide) -> LookupWork {
        match self {
            RestView::List(list) => LookupWork { probes: 1, compared: list.len() },
            RestView::Few(_) => LookupWork { probes: 1, compared: 1 },
            RestView::Many(many) => many.find(slab, key, wide).1,
        }
    }

    /// Finds the entry for each key that has none yet.
    #[inline]
    pub fn find_missing(&self, slab: &Slab, keys: &[Key], wide: &[Wide], found: &mut [u32]) {
        match self {
            RestView::List(list) => fill(keys, wide, found, |key, wide| list.find(key, wide)),
            RestView::Few(bits) => fill(keys, wide, found, |key, wide| bits.find(key, wide)),
            RestView::Many(many) => many.find_missing(slab, keys, wide, found),
        }
    }
}

/// Finds missing entries key by key.
#[inline]
fn fill(keys: &[Key], wide: &[Wide], found: &mut [u32], find: impl Fn(&Key, &Wide) -> Option<u32>) {
    for (at, (found, key)) in found.iter_mut().zip(keys).enumerate() {
        if *found == NO_ENTRY {
            *found = find(key, wide.get(at).unwrap_or(&Wide::ZERO)).unwrap_or(NO_ENTRY);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fast::slab::EntrySnapshot;
    use crate::fast::verdict::Verdict;
    use crate::flow::Part;
    use crate::rng::Rng;
    use packet::field::Field;
    use packet::time::Nanos;

    /// Draws matches of few masks and values, so that they overlap and repeat.
    pub fn random_match(dice: &mut Rng) -> Match {
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

    /// Draws prefixes, ports and protocols of many masks and few values, so that they overlap.
    pub fn random_acl_match(dice: &mut Rng) -> Match {
        let mut asked = vec![(Field::EthType, 0x0800, 0xffff)];
        let protocol = dice.pick(&[6u128, 17, 0]);
        if protocol != 0 {
            asked.push((Field::IpProto, protocol, 0xff));
        }
        let few = |dice: &mut Rng| u128::from(dice.roll(4) * 0x4001_0100 + dice.roll(4));
        for field in [Field::Ipv4Src, Field::Ipv4Dst] {
            let mask = u128::from(u32::MAX) << dice.roll(33) & 0xffff_ffff;
            asked.push((field, few(dice) & mask, mask));
        }
        let ports = if protocol == 6 {
            [Field::TcpSrc, Field::TcpDst]
        } else {
            [Field::UdpSrc, Field::UdpDst]
        };
        for field in ports.into_iter().filter(|_| protocol != 0) {
            let mask = 0xffffu128 << dice.pick(&[0, 0, 3, 16]) & 0xffff;
            asked.push((field, u128::from(dice.roll(3)) & mask, mask));
        }
        asked.sort_unstable();
        Match::asking(&asked)
    }

    /// Draws the key of a frame that may meet such a match.
    pub fn random_acl_key(dice: &mut Rng) -> Key {
        let like = random_acl_match(dice);
        let (key, mut open) = (*like.value(), Key::ZERO);
        open.set(crate::key::Field::IpSrc, dice.roll(4) * 0x4001_0100 + dice.roll(4));
        open.set(crate::key::Field::IpDst, dice.roll(4) * 0x4001_0100 + dice.roll(4));
        open.set(crate::key::Field::IpProto, dice.pick(&[6, 17]));
        open.set(crate::key::Field::L4Dst, dice.roll(3));
        key.or(&Key(std::array::from_fn(|word| open.0[word] & !like.mask().0[word])))
    }

    /// Entries with lines, as in a table.
    pub struct Installed {
        pub slab: Slab,
        entries: Vec<(Match, u32, u32)>,
        /// The match of each entry, or `None` once it was taken.
        matches: Vec<Option<Match>>,
        arrivals: u32,
    }

    impl Entries for Installed {
        fn next(&self, from: usize, _: &mut usize) -> Result<Option<usize>, usize> {
            let mut from = from..self.matches.len();
            Ok(from.find(|&place| self.matches[place].is_some()))
        }

        fn matching(&self, place: usize) -> Option<Match> {
            self.matches[place]
        }
    }

    impl Default for Installed {
        fn default() -> Installed {
            let (entries, matches) = Default::default();
            Installed { slab: Slab::new(1 << 14), entries, matches, arrivals: 0 }
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
            self.slab.line(entry).set(&EntrySnapshot {
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
            self.matches.push(Some(*matching));
            entry
        }

        /// Removes a random entry.
        pub fn take(&mut self, dice: &mut Rng) -> (Match, u32, u32) {
            let at = dice.roll(self.entries.len() as u64) as usize;
            let taken = self.entries.swap_remove(at);
            self.matches[taken.2 as usize] = None;
            taken
        }

        /// Whether the entry has this match.
        pub fn is(&self, entry: u32, matching: &Match) -> bool {
            self.entries.iter().any(|it| it.2 == entry && it.0 == *matching)
        }

        pub fn places(&self) -> Vec<u32> {
            let mut places: Vec<u32> = self.entries.iter().map(|entry| entry.2).collect();
            places.sort_unstable();
            places
        }
    }

    /// Compares a structure's overlap result with a list of the same entries.
    pub fn check_overlap(reported: Overlap, list: &LinearTable, matching: &Match, rank: u32) {
        match reported {
            Overlap::Yes | Overlap::No => {
                assert_eq!(reported == Overlap::Yes, list.overlaps(matching, rank));
            }
            Overlap::Covered => {
                let mut of_rank = list.iter().filter(|(_, other, _)| *other == rank);
                assert!(of_rank.all(|(it, ..)| !it.overlaps(matching) || matching.covers(&it)));
            }
            Overlap::Unknown => {}
        }
    }

    #[test]
    fn every_structure_finds_the_same_entries_as_a_list() {
        for seed in 0..4 {
            let mut dice = Rng::new(seed);
            let mut rest = WildcardClassifier::new(Classifier::Automatic, seed);
            let mut list = LinearTable::default();
            let mut all = Installed::default();
            let mut view = rest.view();
            let mut structures = 0;
            // Grows beyond the upper limit and shrinks below the lower one, twice.
            for growing in [true, false, true, false] {
                for _ in 0..700 {
                    let (matching, rank) = (random_match(&mut dice), dice.roll(60) as u32);
                    let was_many = matches!(rest.way, Structure::Many(_));
                    let slab = &all.slab;
                    check_overlap(rest.overlap(slab, &matching, rank), &list, &matching, rank);
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
                    structures += usize::from(was_many != matches!(rest.way, Structure::Many(_)));
                    assert_eq!((rest.len(), rest.rank_most()), (list.len(), list.rank_most()));
                    let probe = random_match(&mut dice);
                    let (key, wide) = (*probe.value(), *probe.wide_value());
                    let wanted = list.find(&key, &wide);
                    if rest.take_changed() {
                        view = rest.view();
                    }
                    assert_eq!(view.find(&all.slab, &key, &wide), wanted, "seed {seed}");
                    let mut found = [NO_ENTRY];
                    view.find_missing(&all.slab, &[key], &[wide], &mut found);
                    assert_eq!(found[0], wanted.unwrap_or(NO_ENTRY), "seed {seed}");
                }
            }
            assert!(structures >= 3, "{structures} changes of structure");
        }
    }
}
