//! Ordered maps with structural sharing between copies.
//!
//! A table of half a million rows is copied for each atomic change. Here, a copy costs one
//! reference count per few thousand entries. A change of one entry copies a few dozen entries
//! around it and the path to them. The comparison of two maps skips what they share. After O.
//! Rodeh, "B-trees, shadowing, and clones" (ACM Transactions on Storage 3(4), 2008), with three
//! levels.
//!
//! Invariants:
//! - A group has at most [`GROUP_MAX`] chunks, and a chunk at most [`CHUNK_MAX`] entries.
//! - All are in ascending order of keys.
//! - Each group and chunk is stored with its first key.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::iter::FlatMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Maximum number of entries that are copied together.
pub const CHUNK_MAX: usize = 64;
/// Maximum number of chunks in a group. A copy of a group increments their reference counts.
pub const GROUP_MAX: usize = 128;

type Entries<K, V> = Vec<(K, V)>;
type Chunks<K, V> = Vec<(K, Arc<Entries<K, V>>)>;

/// A map that is cheap to copy.
#[derive(Clone)]
pub struct Shared<K, V> {
    groups: Vec<(K, Arc<Chunks<K, V>>)>,
    len: usize,
}

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Shared { groups: Vec::new(), len: 0 }
    }
}

/// Returns the index of the part that may have a key.
fn part_of<K: Ord, T>(parts: &[(K, T)], key: &K) -> usize {
    parts.partition_point(|(first, _)| first <= key).saturating_sub(1)
}

/// Returns the index of a key among entries, or where to insert it.
fn place_of<K: Ord, V>(entries: &[(K, V)], key: &K) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| known.cmp(key))
}

/// Splits off the upper part of a part that exceeds `most`. After an insertion at the end, the
/// lower part stays full, so that ascending insertions fill the parts.
fn upper_part<T>(parts: &mut Vec<T>, most: usize, appends: bool) -> Option<Vec<T>> {
    let half = if appends { most } else { most / 2 };
    (parts.len() > most).then(|| parts.split_off(half))
}

impl<K, V> Shared<K, V> {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Shared { groups: Vec::new(), len: 0 }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over all entries in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let chunks = self.groups.iter().flat_map(|(_, chunks)| chunks.iter());
        chunks.flat_map(|(_, entries)| entries.iter().map(|(key, value)| (key, value)))
    }
}

impl<K: Ord + Clone, V: Clone> Shared<K, V> {
    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (_, chunks) = self.groups.get(part_of(&self.groups, key))?;
        let (_, entries) = chunks.get(part_of(chunks, key))?;
        Some(&entries[place_of(entries, key).ok()?].1)
    }

    /// Returns the value of a key mutably.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if !self.contains_key(key) {
            return None;
        }
        let group = part_of(&self.groups, key);
        let chunks = Arc::make_mut(&mut self.groups.get_mut(group)?.1);
        let chunk = part_of(chunks, key);
        let entries = Arc::make_mut(&mut chunks.get_mut(chunk)?.1);
        let place = place_of(entries, key).ok()?;
        Some(&mut entries[place].1)
    }

    /// Whether the map has an entry for a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Inserts an entry and returns the previous value of the key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if self.groups.is_empty() {
            let chunk = (key.clone(), Arc::new(vec![(key.clone(), value)]));
            self.groups.push((key, Arc::new(vec![chunk])));
            self.len = 1;
            return None;
        }
        let at = part_of(&self.groups, &key);
        let is_last_group = at + 1 == self.groups.len();
        let (first_of_group, chunks) = &mut self.groups[at];
        let chunks = Arc::make_mut(chunks);
        let chunk = part_of(chunks, &key);
        let is_last = is_last_group && chunk + 1 == chunks.len();
        let (first, entries) = &mut chunks[chunk];
        let entries = Arc::make_mut(entries);
        let place = match place_of(entries, &key) {
            Ok(place) => return Some(std::mem::replace(&mut entries[place].1, value)),
            Err(place) => place,
        };
        if place == 0 {
            *first = key.clone();
            if chunk == 0 {
                *first_of_group = key.clone();
            }
        }
        let appends = is_last && place == entries.len();
        entries.insert(place, (key, value));
        self.len += 1;
        if let Some(upper) = upper_part(entries, CHUNK_MAX, appends) {
            chunks.insert(chunk + 1, (upper[0].0.clone(), Arc::new(upper)));
        }
        if let Some(upper) = upper_part(chunks, GROUP_MAX, appends) {
            self.groups.insert(at + 1, (upper[0].0.clone(), Arc::new(upper)));
        }
        None
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if !self.contains_key(key) {
            return None;
        }
        let at = part_of(&self.groups, key);
        let (first_of_group, chunks) = &mut self.groups[at];
        let chunks = Arc::make_mut(chunks);
        let chunk = part_of(chunks, key);
        let (first, entries) = &mut chunks[chunk];
        let entries = Arc::make_mut(entries);
        let (_, value) = entries.remove(place_of(entries, key).ok()?);
        self.len -= 1;
        match entries.first() {
            None => drop(chunks.remove(chunk)),
            Some((new, _)) => {
                *first = new.clone();
                join(chunks, chunk, CHUNK_MAX / 4);
            }
        }
        match chunks.first() {
            None => drop(self.groups.remove(at)),
            Some((new, _)) => {
                *first_of_group = new.clone();
                join(&mut self.groups, at, GROUP_MAX / 4);
            }
        }
        Some(value)
    }

    /// Iterates over all keys in ascending order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Iterates over the entries with keys in a range.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let (group, chunk) = match range.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) | Bound::Excluded(key) => {
                let group = part_of(&self.groups, key);
                (group, self.groups.get(group).map_or(0, |(_, chunks)| part_of(chunks, key)))
            }
        };
        let of_first = self.groups.get(group).into_iter().flat_map(move |(_, it)| &it[chunk..]);
        let others = self.groups.iter().skip(group + 1).flat_map(|(_, chunks)| chunks.iter());
        let entries = of_first.chain(others).flat_map(|(_, entries)| entries.iter());
        let start = range.start_bound().cloned();
        let end = range.end_bound().cloned();
        let is_before = move |key: &K| match &start {
            Bound::Unbounded => false,
            Bound::Included(start) => key < start,
            Bound::Excluded(start) => key <= start,
        };
        let is_in = move |key: &K| match &end {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
        };
        entries
            .skip_while(move |(key, _)| is_before(key))
            .take_while(move |(key, _)| is_in(key))
            .map(|(key, value)| (key, value))
    }

    /// Returns the entry with the smallest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Returns the entry with the greatest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Removes entries from the end until the budget is exhausted; each costs one step plus `cost`.
    /// Groups that copies share are released immediately. Returns whether the map is empty; until
    /// then, no other operation is permitted.
    pub fn clear_some(&mut self, cost: impl Fn(&V) -> usize, budget: &mut usize) -> bool {
        while let Some((_, chunks)) = self.groups.last_mut() {
            if *budget == 0 {
                return false;
            }
            let Some(own) = Arc::get_mut(chunks).filter(|chunks| !chunks.is_empty()) else {
                self.groups.pop();
                continue;
            };
            let last = own.last_mut().and_then(|(_, entries)| Arc::get_mut(entries)?.pop());
            *budget -= 1;
            match last {
                Some((_, value)) => *budget = budget.saturating_sub(cost(&value)),
                None => drop(own.pop()),
            }
        }
        self.len = 0;
        true
    }

    /// Keeps the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let all = std::mem::take(self);
        *self = all
            .into_iter()
            .filter_map(|(key, mut value)| keep(&key, &mut value).then_some((key, value)))
            .collect();
    }
}

/// Joins a part with the next one if both fit into one.
fn join<K, T: Clone>(parts: &mut Vec<(K, Arc<Vec<T>>)>, at: usize, most: usize) {
    let Some((_, next)) = parts.get(at + 1) else { return };
    if parts[at].1.len() + next.len() <= most {
        let (_, next) = parts.remove(at + 1);
        Arc::make_mut(&mut parts[at].1).extend(next.iter().cloned());
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Shared<K, V> {
    /// Calls `met` for each key whose entries differ, with the values in this and in the other map.
    /// Skips what both maps share.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
        mut met: impl FnMut(&'a K, Option<&'a V>, Option<&'a V>),
    ) {
        let (mut here, mut there) = (Cursor::new(self), Cursor::new(other));
        loop {
            if here.passes_with(&mut there) {
                continue;
            }
            match (here.peek(), there.peek()) {
                (None, None) => return,
                (Some((key, value)), None) => {
                    met(key, Some(value), None);
                    here.step();
                }
                (None, Some((key, value))) => {
                    met(key, None, Some(value));
                    there.step();
                }
                (Some((a, old)), Some((b, new))) => match a.cmp(b) {
                    Ordering::Less => {
                        met(a, Some(old), None);
                        here.step();
                    }
                    Ordering::Greater => {
                        met(b, None, Some(new));
                        there.step();
                    }
                    Ordering::Equal => {
                        if old != new {
                            met(a, Some(old), Some(new));
                        }
                        here.step();
                        there.step();
                    }
                },
            }
        }
    }
}

/// A position in a map.
struct Cursor<'a, K, V> {
    groups: &'a [(K, Arc<Chunks<K, V>>)],
    group: usize,
    chunk: usize,
    at: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(of: &'a Shared<K, V>) -> Self {
        Cursor { groups: &of.groups, group: 0, chunk: 0, at: 0 }
    }

    /// Skips a group or chunk that begins at both cursors and is shared. Returns false if there is
    /// none.
    fn passes_with(&mut self, other: &mut Self) -> bool {
        if self.at > 0 || other.at > 0 {
            return false;
        }
        let (Some((_, here)), Some((_, there))) =
            (self.groups.get(self.group), other.groups.get(other.group))
        else {
            return false;
        };
        if (self.chunk, other.chunk) == (0, 0) && Arc::ptr_eq(here, there) {
            self.group += 1;
            other.group += 1;
            return true;
        }
        let is_same = Arc::ptr_eq(&here[self.chunk].1, &there[other.chunk].1);
        if is_same {
            self.leave_chunk();
            other.leave_chunk();
        }
        is_same
    }

    fn leave_chunk(&mut self) {
        (self.chunk, self.at) = (self.chunk + 1, 0);
        if self.groups[self.group].1.len() == self.chunk {
            (self.group, self.chunk) = (self.group + 1, 0);
        }
    }

    fn peek(&self) -> Option<&'a (K, V)> {
        self.groups.get(self.group)?.1.get(self.chunk)?.1.get(self.at)
    }

    fn step(&mut self) {
        self.at += 1;
        if self.groups[self.group].1[self.chunk].1.len() == self.at {
            self.leave_chunk();
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for Shared<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut all: Entries<K, V> = entries.into_iter().collect();
        if !all.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Of several entries with the same key, the last one stays.
            all.reverse();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all.dedup_by(|(a, _), (b, _)| a == b);
        }
        let len = all.len();
        let chunks = parts(all, CHUNK_MAX, |(key, _)| key.clone());
        Shared { groups: parts(chunks, GROUP_MAX, |(first, _)| first.clone()), len }
    }
}

/// Splits entries into parts of at most `most`, each with its first key.
fn parts<K, T>(all: Vec<T>, most: usize, key: impl Fn(&T) -> K) -> Vec<(K, Arc<Vec<T>>)> {
    let mut parts = Vec::with_capacity(all.len().div_ceil(most));
    let mut rest = all.into_iter();
    loop {
        let part: Vec<T> = rest.by_ref().take(most).collect();
        let Some(first) = part.first() else { return parts };
        parts.push((key(first), Arc::new(part)));
    }
}

impl<K: Ord + Clone, V: Clone, const N: usize> From<[(K, V); N]> for Shared<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

/// Iterator over the contents of parts; a part without other owners is moved, not cloned.
type Parts<K, T> =
    FlatMap<std::vec::IntoIter<(K, Arc<Vec<T>>)>, Vec<T>, fn((K, Arc<Vec<T>>)) -> Vec<T>>;

impl<K: Clone, V: Clone> IntoIterator for Shared<K, V> {
    type Item = (K, V);
    type IntoIter = FlatMap<
        Parts<K, (K, Arc<Entries<K, V>>)>,
        Entries<K, V>,
        fn((K, Arc<Entries<K, V>>)) -> Entries<K, V>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let chunks: Parts<K, (K, Arc<Entries<K, V>>)> =
            self.groups.into_iter().flat_map(|(_, chunks)| Arc::unwrap_or_clone(chunks));
        chunks.flat_map(|(_, entries)| Arc::unwrap_or_clone(entries))
    }
}

impl<'a, K: Ord + Clone, V: Clone> IntoIterator for &'a Shared<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Box<dyn Iterator<Item = (&'a K, &'a V)> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for Shared<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let mut is_same = self.len == other.len;
        if is_same {
            self.differences(other, |_, _, _| is_same = false);
        }
        is_same
    }
}

impl<K: Ord + Clone, V: Clone + Eq> Eq for Shared<K, V> {}

impl<K: Ord + Clone, V: Clone + Ord> PartialOrd for Shared<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord + Clone, V: Clone + Ord> Ord for Shared<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<K: Ord + Clone + Hash, V: Clone + Hash> Hash for Shared<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len.hash(state);
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<K: std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for Shared<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
