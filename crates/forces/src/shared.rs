//! Maps whose copies share what they have in common.
//!
//! A table of half a million rows is copied for each change that is to be seen whole or not at all. Here a
//! copy costs a count for each few hundred entries, a change of one entry a copy of those around it, and
//! what two maps differ in is found without looking at what they share. After O. Rodeh, "B-trees,
//! shadowing, and clones" (ACM Transactions on Storage 3(4), 2008), with two levels.
//!
//! Invariant: chunks have entries, ascending by key, at most [`CHUNK_MAX`] each; each chunk stands with its
//! first key.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Entries that are copied together.
pub const CHUNK_MAX: usize = 256;

type Entries<K, V> = Vec<(K, V)>;

/// A map that is cheap to copy.
#[derive(Clone)]
pub struct Shared<K, V> {
    chunks: Vec<(K, Arc<Entries<K, V>>)>,
    len: usize,
}

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Shared { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> Shared<K, V> {
    /// An empty one.
    pub const fn new() -> Self {
        Shared { chunks: Vec::new(), len: 0 }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunk that has a key, if any has.
    fn chunk_of(&self, key: &K) -> usize {
        self.chunks.partition_point(|(first, _)| first <= key).saturating_sub(1)
    }

    /// What stands for a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (_, entries) = self.chunks.get(self.chunk_of(key))?;
        let at = entries.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(&entries[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.chunk_of(key);
        let (_, entries) = self.chunks.get_mut(at)?;
        let at = entries.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(&mut Arc::make_mut(entries)[at].1)
    }

    /// Whether there is an entry for a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Adds an entry, or replaces the one for this key, which is handed back.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let at = self.chunk_of(&key);
        let is_last = at + 1 >= self.chunks.len();
        let Some((first, entries)) = self.chunks.get_mut(at) else {
            self.chunks.push((key.clone(), Arc::new(vec![(key, value)])));
            self.len = 1;
            return None;
        };
        let entries = Arc::make_mut(entries);
        let place = match entries.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(place) => return Some(std::mem::replace(&mut entries[place].1, value)),
            Err(place) => place,
        };
        if place == 0 {
            *first = key.clone();
        }
        entries.insert(place, (key, value));
        self.len += 1;
        if entries.len() > CHUNK_MAX {
            // What is filled from below keeps full chunks behind it.
            let appends = is_last && place + 1 == entries.len();
            let half = if appends { CHUNK_MAX } else { CHUNK_MAX / 2 };
            let upper = entries.split_off(half);
            self.chunks.insert(at + 1, (upper[0].0.clone(), Arc::new(upper)));
        }
        None
    }

    /// Takes an entry away.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.chunk_of(key);
        let (first, entries) = self.chunks.get_mut(at)?;
        let place = entries.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        let entries = Arc::make_mut(entries);
        let (_, value) = entries.remove(place);
        self.len -= 1;
        match entries.first() {
            None => drop(self.chunks.remove(at)),
            Some((new, _)) => {
                *first = new.clone();
                self.join(at);
            }
        }
        Some(value)
    }

    /// Puts a chunk together with the next one if both are nearly empty.
    fn join(&mut self, at: usize) {
        let Some((_, next)) = self.chunks.get(at + 1) else { return };
        if self.chunks[at].1.len() + next.len() <= CHUNK_MAX / 4 {
            let (_, next) = self.chunks.remove(at + 1);
            Arc::make_mut(&mut self.chunks[at].1).extend(next.iter().cloned());
        }
    }

    /// All entries, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|(_, entries)| entries.iter().map(|(key, value)| (key, value)))
    }

    /// All keys, ascending.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// What stands for the keys, in their order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Entries with keys in a range.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let from = match range.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.chunk_of(key),
        };
        let from = from.min(self.chunks.len());
        let entries = self.chunks[from..].iter().flat_map(|(_, entries)| entries.iter());
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

    /// The entry with the smallest key.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The entry with the greatest key.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.iter().next_back()
    }

    /// Keeps entries of which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let all = std::mem::take(self);
        *self = all
            .into_iter()
            .filter_map(|(key, mut value)| keep(&key, &mut value).then_some((key, value)))
            .collect();
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Shared<K, V> {
    /// Calls `met` with each key whose entries differ, and what stands for it here and in the other.
    /// What both share is not looked at.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
        mut met: impl FnMut(&'a K, Option<&'a V>, Option<&'a V>),
    ) {
        let (mut here, mut there) = (Cursor::new(self), Cursor::new(other));
        loop {
            if let (Some(a), Some(b)) = (here.whole(), there.whole())
                && Arc::ptr_eq(a, b)
            {
                here.chunk += 1;
                there.chunk += 1;
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

/// A place in a map.
struct Cursor<'a, K, V> {
    chunks: &'a [(K, Arc<Entries<K, V>>)],
    chunk: usize,
    at: usize,
}

impl<'a, K, V> Cursor<'a, K, V> {
    fn new(of: &'a Shared<K, V>) -> Self {
        Cursor { chunks: &of.chunks, chunk: 0, at: 0 }
    }

    /// The chunk that begins here.
    fn whole(&self) -> Option<&'a Arc<Entries<K, V>>> {
        self.chunks.get(self.chunk).filter(|_| self.at == 0).map(|(_, entries)| entries)
    }

    fn peek(&self) -> Option<&'a (K, V)> {
        self.chunks.get(self.chunk)?.1.get(self.at)
    }

    fn step(&mut self) {
        self.at += 1;
        if self.chunks[self.chunk].1.len() == self.at {
            (self.chunk, self.at) = (self.chunk + 1, 0);
        }
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for Shared<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut all: Entries<K, V> = entries.into_iter().collect();
        if !all.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Of several with one key the last one stays.
            all.reverse();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all.dedup_by(|(a, _), (b, _)| a == b);
        }
        let len = all.len();
        let mut chunks = Vec::with_capacity(len.div_ceil(CHUNK_MAX));
        let mut rest = all.into_iter();
        loop {
            let entries: Entries<K, V> = rest.by_ref().take(CHUNK_MAX).collect();
            let Some((first, _)) = entries.first() else { break };
            chunks.push((first.clone(), Arc::new(entries)));
        }
        Shared { chunks, len }
    }
}

impl<K: Ord + Clone, V: Clone, const N: usize> From<[(K, V); N]> for Shared<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Clone, V: Clone> IntoIterator for Shared<K, V> {
    type Item = (K, V);
    type IntoIter = std::iter::FlatMap<
        std::vec::IntoIter<(K, Arc<Entries<K, V>>)>,
        Entries<K, V>,
        fn((K, Arc<Entries<K, V>>)) -> Entries<K, V>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flat_map(|(_, entries)| Arc::unwrap_or_clone(entries))
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

impl<K: Ord + Clone + std::fmt::Debug, V: Clone + std::fmt::Debug> std::fmt::Debug
    for Shared<K, V>
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
