//! Values that many entries have in common, each kept once.
//!
//! A table of 131,072 entries usually knows a handful of masks.
//!
//! Invariant: a value is kept as long as it has a user, and equal ones are the same one.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// With more values, [`Shared::tidy`] does nothing.
const TIDY_MAX: usize = 1024;

/// The values in use.
#[derive(Debug)]
pub struct Shared<T> {
    known: HashSet<Arc<T>>,
    /// What was shared last: entries that come together mostly have it in common.
    last: Option<Arc<T>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared { known: HashSet::new(), last: None }
    }
}

impl<T: Eq + Hash> Shared<T> {
    /// The one that equals `wanted`; the caller is one more user of it, and gives it back by
    /// [`Shared::release`].
    pub fn share(&mut self, wanted: T) -> Arc<T> {
        if let Some(last) = self.last.as_ref().filter(|last| ***last == wanted) {
            return Arc::clone(last);
        }
        let shared = self.take_in(Arc::new(wanted));
        self.last = Some(Arc::clone(&shared));
        shared
    }

    /// The same for a value that was shared before and perhaps given back since.
    pub fn take_in(&mut self, wanted: Arc<T>) -> Arc<T> {
        match self.known.get(&wanted) {
            Some(known) => Arc::clone(known),
            None => {
                self.known.insert(Arc::clone(&wanted));
                wanted
            }
        }
    }

    /// Frees what was kept only because it was held by a caller that is not a user when its last user
    /// gave it back. Does nothing where many values are known: that would take long.
    pub fn tidy(&mut self) {
        self.last = None;
        if self.known.len() > TIDY_MAX {
            return;
        }
        self.known.retain(|known| Arc::strong_count(known) > 1);
    }

    /// Gives back what was shared; the last user frees it.
    pub fn release(&mut self, value: Arc<T>) {
        let is_last = self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &value));
        // Besides the one given back there are that of the set and perhaps the last one's.
        if Arc::strong_count(&value) <= 2 + usize::from(is_last) {
            if is_last {
                self.last = None;
            }
            self.known.remove(&value);
        }
    }

    /// How many different ones are in use.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_the_last_user_frees_it() {
        let mut lists = Shared::default();
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
