//! Hash table with a fixed number of buckets, each a linked list.
//!
//! Source: the bridge of Linux 2.6.27 (`net/bridge/br_fdb.c`), whose table has 256 buckets
//! (`BR_HASH_SIZE`) at any number of addresses. A new entry is the first of its list, and a lookup
//! compares the entries of a list one by one. With 131,072 addresses, a lookup reads 256 entries on
//! average, and that of an unknown address 512. Invariant: an entry is in the list of its hash only.

/// End of a list.
const END: u32 = u32::MAX;

/// The lists.
#[derive(Debug)]
pub(super) struct Chains {
    /// First entry of each bucket.
    heads: Vec<u32>,
    /// Entry after each entry, by its number.
    next: Vec<u32>,
}

impl Chains {
    /// Creates this number of empty buckets, at least one, for `entries_max` entries.
    pub(super) fn new(buckets: usize, entries_max: usize) -> Chains {
        Chains { heads: vec![END; buckets.max(1)], next: vec![END; entries_max] }
    }

    fn bucket(&self, hash: u64) -> usize {
        (hash % self.heads.len() as u64) as usize
    }

    /// Finds the entry of this hash for which `is_it` is true.
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut entry = self.heads[self.bucket(hash)];
        while entry != END {
            if is_it(entry) {
                return Some(entry);
            }
            entry = self.next[entry as usize];
        }
        None
    }

    /// Adds an entry that is in no list.
    pub(super) fn insert(&mut self, entry: u32, hash: u64) {
        let bucket = self.bucket(hash);
        self.next[entry as usize] = std::mem::replace(&mut self.heads[bucket], entry);
    }

    /// Removes an entry from the list of its hash.
    pub(super) fn remove(&mut self, entry: u32, hash: u64) {
        let bucket = self.bucket(hash);
        let next = self.next[entry as usize];
        if self.heads[bucket] == entry {
            self.heads[bucket] = next;
            return;
        }
        let before = self.find(hash, |other| self.next[other as usize] == entry);
        if let Some(before) = before {
            self.next[before as usize] = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_newest_entry_first_and_loses_any() {
        for removed in 0..4u32 {
            let mut chains = Chains::new(2, 8);
            (0..4).for_each(|entry| chains.insert(entry, u64::from(entry % 2)));
            let list = |chains: &Chains, hash: u64| {
                let mut seen = Vec::new();
                chains.find(hash, |entry| {
                    seen.push(entry);
                    false
                });
                seen
            };
            assert_eq!(list(&chains, 0), [2, 0]);
            assert_eq!(list(&chains, 3), [3, 1]);
            chains.remove(removed, u64::from(removed % 2));
            let all = [list(&chains, 0), list(&chains, 1)].concat();
            let wanted: Vec<u32> = [2, 0, 3, 1].into_iter().filter(|it| *it != removed).collect();
            assert_eq!(all, wanted);
        }
    }
}
