//! Matches on prefixes of one address that agree in all other fields: a routing table.
//!
//! Lookup finds the longest prefix ([`crate::fast::trie`]). This is the right entry as long as
//! longer prefixes have higher ranks; entries that break this rule stay outside.
//!
//! Invariant: of two entries here, the one with the longer prefix has the higher rank, and no two
//! have the same prefix.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exact::BATCH_MAX;
use super::tuple_space::ones;
use super::{NO_ENTRY, Overlap};
use crate::chains::Chains;
use crate::fast::slab::Slab;
use crate::fast::trie::{Address, ENTRIES_MAX, Trie};
use crate::hash::mix;
use crate::key::wide::{WORDS, Wide};
use crate::key::{Field, Key};
use crate::matching::{Match, differing, differing_wide};

/// Address and length.
type Prefix = (Address, u32);

/// Number of chains, which are indexed by the hashes of the prefixes.
const HEADS: usize = 1 << 17;

/// What the matches of a routing table have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    side: AddressField,
    /// Values and masks of the other fields.
    value: Key,
    mask: Key,
    wide_value: Wide,
    wide_mask: Wide,
}

/// The address field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AddressField {
    /// An IPv4 address, in the key.
    Narrow(Field),
    /// An IPv6 address, in the wide word of this number and the next.
    Wide(usize),
}

/// All address fields. The wide words are those of `ipv6_dst` and `ipv6_src`. They come first,
/// since a match on IPv6 requires the IPv4 addresses to be zero.
const SIDES: [AddressField; 4] = [
    AddressField::Wide(7),
    AddressField::Wide(5),
    AddressField::Narrow(Field::IpDst),
    AddressField::Narrow(Field::IpSrc),
];

/// The routing table, for the writer.
#[derive(Debug)]
pub struct Routes {
    shape: Shape,
    trie: Arc<Trie>,
    /// Entries by the hashes of their prefixes.
    entries: Chains,
    /// Prefix of each entry in the table.
    prefixes: Vec<Option<Prefix>>,
    /// For each length, the number of entries by rank.
    ranks: Vec<BTreeMap<u32, u32>>,
    seed: u64,
    /// Entries removed since the trie was created.
    removed: usize,
    /// Whether the trie must not change, so that the next change is made in a staged copy.
    stays: bool,
    /// Whether readers need the new trie.
    changed: bool,
}

/// The routing table, for readers, which see changes in place.
#[derive(Debug, Clone)]
pub struct RoutesView {
    shape: Shape,
    trie: Arc<Trie>,
}

/// Minimum number of removals before the trie is rebuilt, if there are as many as entries left.
const STALE_MIN: usize = 4096;

impl AddressField {
    #[inline]
    fn get(self, key: &Key, wide: &Wide) -> Address {
        match self {
            AddressField::Narrow(field) => Address::from(key.get(field)) << 96,
            AddressField::Wide(word) => {
                Address::from(wide.0[word]) << 64 | Address::from(wide.0[word + 1])
            }
        }
    }

    fn set(self, address: Address, key: &mut Key, wide: &mut Wide) {
        match self {
            AddressField::Narrow(field) => key.set(field, (address >> 96) as u64),
            AddressField::Wide(word) => {
                (wide.0[word], wide.0[word + 1]) = ((address >> 64) as u64, address as u64);
            }
        }
    }
}

impl Shape {
    /// Returns the shape of a match on a prefix of one address, and that prefix.
    pub fn of(matching: &Match) -> Option<(Shape, (Address, u32))> {
        let of = |side: AddressField| Shape::of_side(matching, side);
        SIDES.into_iter().filter_map(of).find(|(_, (_, length))| *length > 0)
    }

    fn of_side(matching: &Match, side: AddressField) -> Option<(Shape, (Address, u32))> {
        let (mut value, mut mask) = (*matching.value(), *matching.mask());
        let (mut wide_value, mut wide_mask) = (*matching.wide_value(), *matching.wide_mask());
        let (address, asked) = (side.get(&value, &wide_value), side.get(&mask, &wide_mask));
        side.set(0, &mut value, &mut wide_value);
        side.set(0, &mut mask, &mut wide_mask);
        let length = asked.leading_ones();
        let is_prefix = asked == prefix_mask(length);
        let shape = Shape { side, value, mask, wide_value, wide_mask };
        is_prefix.then_some((shape, (address, length)))
    }

    /// Returns the prefix of a match of this shape.
    fn prefix_of(&self, matching: &Match) -> Option<(Address, u32)> {
        let (shape, prefix) = Shape::of_side(matching, self.side)?;
        (shape == *self).then_some(prefix)
    }

    /// Whether a key matches in all fields but the address.
    #[inline]
    fn is_met(&self, key: &Key, wide: &Wide) -> bool {
        differing(key, &self.value, &self.mask) == 0
            && (matches!(self.side, AddressField::Narrow(_)) && self.wide_mask == Wide::ZERO
                || differing_wide(wide, &self.wide_value, &self.wide_mask) == 0)
    }

    fn matching(&self, (address, length): (Address, u32)) -> Match {
        let (mut value, mut mask) = (self.value, self.mask);
        let (mut wide_value, mut wide_mask) = (self.wide_value, self.wide_mask);
        self.side.set(address, &mut value, &mut wide_value);
        self.side.set(prefix_mask(length), &mut mask, &mut wide_mask);
        Match::again(value, mask, Some(&(wide_value, wide_mask)))
    }
}

fn prefix_mask(length: u32) -> Address {
    Address::MAX.checked_shl(Address::BITS - length).unwrap_or(0)
}

impl Routes {
    /// Creates an empty table of this shape. `seed` is a secret for hashing.
    pub fn new(shape: Shape, seed: u64) -> Routes {
        Routes {
            shape,
            trie: Arc::default(),
            entries: Chains::new(HEADS),
            prefixes: Vec::new(),
            ranks: vec![BTreeMap::new(); Address::BITS as usize + 1],
            seed,
            removed: 0,
            stays: false,
            changed: false,
        }
    }

    /// Sets whether changes are staged, so that readers keep their view. With `false`, no reader
    /// uses the previous view any more.
    pub fn set_stays(&mut self, stays: bool) {
        self.stays = stays;
        if !stays {
            self.trie.join();
        }
    }

    /// Whether the trie was replaced since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns a trie that may be changed.
    fn own(&mut self) -> &Trie {
        if std::mem::take(&mut self.stays) {
            self.trie = Arc::new(self.trie.part());
            self.changed = true;
        }
        &self.trie
    }

    /// Returns the view for readers.
    pub fn view(&self) -> RoutesView {
        RoutesView { shape: self.shape, trie: Arc::clone(&self.trie) }
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Returns the highest rank of an entry; 0 if there is none.
    pub fn rank_most(&self) -> u32 {
        let ranks = self.ranks.iter().rev().find_map(|ranks| ranks.last_key_value());
        ranks.map_or(0, |(rank, _)| *rank)
    }

    /// Returns all entries with their matches.
    pub fn matches(&self) -> impl Iterator<Item = (Match, u32)> + '_ {
        let prefixes = self.prefixes.iter().zip(0..);
        prefixes.filter_map(|(prefix, entry)| Some((self.shape.matching((*prefix)?), entry)))
    }

    fn entry_of(&self, matching: &Match) -> Option<u32> {
        self.find_prefix(self.shape.prefix_of(matching)?)
    }

    fn hash(&self, (address, length): Prefix) -> u64 {
        let hash = mix(address as u64, self.seed ^ u64::from(length));
        mix((address >> 64) as u64, hash)
    }

    /// Finds the entry with this prefix.
    fn find_prefix(&self, prefix: Prefix) -> Option<u32> {
        let mut chain = self.entries.chain(self.hash(prefix));
        chain.find(|&entry| self.prefixes[entry as usize] == Some(prefix))
    }

    /// Finds the entry with exactly this match and rank.
    pub fn find_same(&self, slab: &Slab, matching: &Match, rank: u32) -> Option<u32> {
        self.entry_of(matching).filter(|&entry| slab.line(entry).rank() == rank)
    }

    /// Checks whether an entry of this rank overlaps, as far as a few steps can decide.
    pub fn overlap(&self, slab: &Slab, matching: &Match, rank: u32) -> Overlap {
        // Longer prefixes have higher ranks, so only one length has this rank.
        let Some(length) = self.ranks.iter().position(|ranks| ranks.contains_key(&rank)) else {
            return Overlap::No;
        };
        let length = length as u32;
        if !self.shape.matching((0, 0)).overlaps(matching) {
            return Overlap::No;
        }
        let entries = self.shape.matching((0, length));
        if matching.asks_all_of(&entries) {
            let address = self.shape.side.get(matching.value(), matching.wide_value());
            let entry = self.find_prefix((address & prefix_mask(length), length));
            return entry.is_some_and(|entry| slab.line(entry).rank() == rank).into();
        }
        if entries.asks_all_of(matching) { Overlap::Covered } else { Overlap::Unknown }
    }

    /// Adds an entry. Returns false without a change if the entry does not belong here.
    pub fn insert(&mut self, matching: &Match, rank: u32, entry: u32) -> bool {
        let Some(prefix) = self.shape.prefix_of(matching) else { return false };
        let (address, length) = prefix;
        let (shorter, longer) = self.ranks.split_at(length as usize);
        let below = shorter.iter().filter_map(|ranks| ranks.last_key_value());
        let above = longer[1..].iter().filter_map(|ranks| ranks.first_key_value());
        let fits = below.into_iter().all(|(other, _)| *other < rank)
            && above.into_iter().all(|(other, _)| *other > rank)
            && self.find_prefix(prefix).is_none()
            && entry < ENTRIES_MAX
            && self.trie.has_room(length);
        if !fits {
            return false;
        }
        let place = entry as usize;
        if self.prefixes.len() <= place {
            self.prefixes.resize(place + 1, None);
        }
        self.prefixes[place] = Some(prefix);
        *self.ranks[length as usize].entry(rank).or_default() += 1;
        self.entries.add(entry, self.hash(prefix));
        self.own();
        let prefixes = &self.prefixes;
        let is_longer = |other: u32| prefixes[other as usize].is_some_and(|it| it.1 > length);
        self.trie.insert(address, length, entry, is_longer);
        true
    }

    /// Removes an entry with this match and rank; `None` if it is not here.
    pub fn remove(&mut self, matching: &Match, rank: u32, entry: u32) -> Option<()> {
        let prefix = self.shape.prefix_of(matching)?;
        if self.prefixes.get(entry as usize) != Some(&Some(prefix)) {
            return None;
        }
        let (address, length) = prefix;
        self.prefixes[entry as usize] = None;
        self.entries.remove(entry, self.hash(prefix));
        let ranks = &mut self.ranks[length as usize];
        if let Some(count) = ranks.get_mut(&rank) {
            *count -= 1;
            if *count == 0 {
                ranks.remove(&rank);
            }
        }
        let used = (0..length).rev().filter(|&it| !self.ranks[it as usize].is_empty());
        let shorter = used.filter_map(|it| self.find_prefix((address & prefix_mask(it), it)));
        let shorter = shorter.into_iter().next();
        self.own().remove(address, length, entry, shorter);
        self.removed += 1;
        Some(())
    }

    /// Whether enough entries were removed to rebuild the trie, which keeps unused levels.
    pub fn is_stale(&self) -> bool {
        self.removed >= STALE_MIN.max(self.count())
    }
}

impl RoutesView {
    /// Finds the entry for a key.
    #[inline]
    pub fn find(&self, key: &Key, wide: &Wide) -> Option<u32> {
        let met = self.shape.is_met(key, wide);
        met.then(|| self.trie.find(self.shape.side.get(key, wide))).flatten()
    }

    /// Finds the entry for each of `keys` (at most [`BATCH_MAX`]) with a bit in `open`.
    #[inline]
    pub fn find_batch(
        &self,
        slab: &Slab,
        keys: &[Key],
        wide: &[Wide],
        open: u32,
        found: &mut [u32],
    ) {
        let (mut addresses, mut places) = ([0; BATCH_MAX], [0u8; BATCH_MAX]);
        let mut count = 0;
        for at in ones(open) {
            let wide = wide.get(at).unwrap_or(&Wide::ZERO);
            addresses[count] = self.shape.side.get(&keys[at], wide);
            places[count] = at as u8;
            count += usize::from(self.shape.is_met(&keys[at], wide));
        }
        self.trie.find_batch(&addresses[..count], |at, entry| {
            slab.prefetch(entry);
            debug_assert_ne!(entry, NO_ENTRY);
            found[usize::from(places[at])] = entry;
        });
    }
}

const _: () = assert!(WORDS > 8, "both addresses are within the words");
