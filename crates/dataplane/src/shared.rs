//! Values that many entries have in common, each kept once.
//!
//! A table of 131,072 entries usually knows a handful of masks.
//!
//! Invariant: a value is kept as long as it has a user, and equal ones are the same one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The values in use, each with the number of its users.
#[derive(Debug)]
pub struct Shared<T> {
    users: HashMap<Arc<T>, usize>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Shared { users: HashMap::new() }
    }
}

impl<T: Eq + Hash> Shared<T> {
    /// The one that equals `wanted`; the caller is one more user of it.
    pub fn share(&mut self, wanted: &Arc<T>) -> Arc<T> {
        let known = self.users.get_key_value(wanted).map(|(list, _)| Arc::clone(list));
        let list = known.unwrap_or_else(|| Arc::clone(wanted));
        *self.users.entry(Arc::clone(&list)).or_default() += 1;
        list
    }

    /// Gives back what was shared; the last user frees it.
    pub fn release(&mut self, value: &Arc<T>) {
        if let Some(users) = self.users.get_mut(value) {
            *users -= 1;
            if *users == 0 {
                self.users.remove(value);
            }
        }
    }

    /// How many different ones are in use.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.users.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_the_last_user_frees_it() {
        let mut lists = Shared::default();
        let first = lists.share(&Arc::new(1));
        let second = lists.share(&Arc::new(1));
        let other = lists.share(&Arc::new(2));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(lists.count(), 2);
        lists.release(&first);
        lists.release(&other);
        assert_eq!(lists.count(), 1);
        lists.release(&second);
        assert_eq!(lists.count(), 0);
    }
}
