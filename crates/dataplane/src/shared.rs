//! Values that many entries share, each stored once.
//!
//! A table of 131,072 entries usually has a handful of masks.
//!
//! Invariant: a value is stored while it has users, and equal values are stored once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// With more values, [`Interner::tidy`] does nothing.
const TIDY_MAX: usize = 1024;

/// The values in use.
#[derive(Debug)]
pub struct Interner<T> {
    known: HashSet<Arc<T>>,
    /// The last shared value: entries that are added together mostly have equal values.
    last: Option<Arc<T>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { known: HashSet::new(), last: None }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// Returns the shared value equal to `wanted`, and counts the caller as a user. The caller must
    /// call [`Interner::release`].
    pub fn share(&mut self, wanted: T) -> Arc<T> {
        if let Some(last) = self.last.as_ref().filter(|last| ***last == wanted) {
            return Arc::clone(last);
        }
        let shared = self.take_in(Arc::new(wanted));
        self.last = Some(Arc::clone(&shared));
        shared
    }

    /// Like [`Interner::share`], for a value that was shared before and perhaps released since.
    pub fn take_in(&mut self, wanted: Arc<T>) -> Arc<T> {
        match self.known.get(&wanted) {
            Some(known) => Arc::clone(known),
            None => {
                self.known.insert(Arc::clone(&wanted));
                wanted
            }
        }
    }

    /// Frees values that survived the release by their last user because another caller had a
    /// reference. Does nothing if there are many values, since that would take long.
    pub fn tidy(&mut self) {
        self.last = None;
        if self.known.len() > TIDY_MAX {
            return;
        }
        self.known.retain(|known| Arc::strong_count(known) > 1);
    }

    /// Releases a shared value; the last user frees it.
    pub fn release(&mut self, value: Arc<T>) {
        let is_last = self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &value));
        // The other references are the one in the set and perhaps `last`.
        if Arc::strong_count(&value) <= 2 + usize::from(is_last) {
            if is_last {
                self.last = None;
            }
            self.known.remove(&value);
        }
    }

    /// Returns the number of distinct values in use.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_stored_once_and_freed_with_the_last_user() {
        let mut lists = Interner::default();
        let first = lists.share(1);
        let second = lists.share(1);
        let other = lists.share(2);
        let third = lists.share(1);
        assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &third));
        assert_eq!(lists.count(), 2);
        lists.release(first);
        lists.release(other);
        lists.release(third);
        assert_eq!(lists.count(), 1);
        lists.release(second);
        assert_eq!(lists.count(), 0);
        let again = lists.share(1);
        let held = Arc::clone(&again);
        lists.release(again);
        drop(lists.take_in(held));
        lists.tidy();
        assert_eq!(lists.count(), 0);
    }
}
