//! Model checking of lookups while an entry moves, is added or removed.
//!
//! `loom` explores the orders that the processor and the compiler permit, with at most two
//! preemptions and up to [`ORDERS_MAX`] orders per case. After C. Norris and B. Demsky,
//! "CDSchecker" (OOPSLA 2013).

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64 as Cell;

use super::*;
use crate::fast::epoch::Epochs;
use crate::fast::rcu_cell::Published;
use crate::hash::mix;

/// Three buckets of entries with chosen hashes, that is, chosen first and second buckets.
struct Set {
    buckets: Buckets,
    hashes: Vec<u64>,
    /// Data of each entry, written before it can be found.
    lines: Vec<Cell>,
}

/// Returns a hash whose first bucket of three is `first` and whose second is `second`.
fn hash(first: usize, second: usize, signature: u16) -> u64 {
    let rows = 3;
    let steps = (second + rows - first) % rows;
    for number in 0u64.. {
        let hash = mix(number, 1) & !0xffff | u64::from(signature);
        if scale(hash, rows) == first
            && 1 + scale(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), rows - 1) == steps
        {
            return hash;
        }
    }
    unreachable!("there are hashes of every kind");
}

impl Set {
    fn new(hashes: Vec<u64>) -> Set {
        let buckets = Buckets::new(3 * FILL);
        let lines = hashes.iter().map(|_| Cell::new(0)).collect();
        Set { buckets, hashes, lines }
    }

    fn insert(&self, entry: u32) {
        self.lines[entry as usize].store(1, Relaxed);
        let hash_of = |other: u32| self.hashes[other as usize];
        self.buckets.insert(entry, hash_of(entry), hash_of);
    }

    fn remove(&self, entry: u32) {
        let hash_of = |other: u32| self.hashes[other as usize];
        self.buckets.remove(entry, hash_of(entry), hash_of);
    }

    fn find(&self, entry: u32) -> Option<u32> {
        self.buckets.find(self.hashes[entry as usize], |other| other == entry)
    }
}

/// Number of orders that are tried in each case.
const ORDERS_MAX: usize = 10_000;

fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    // Trying all orders would take too long.
    model.max_permutations = Some(ORDERS_MAX);
    model.check(test);
}

/// Two full buckets: the next entry moves another to the third. With `stash`, that bucket is full
/// too.
fn full(stash: bool) -> Vec<u64> {
    let mut hashes: Vec<u64> = (0..8).map(|n| hash(0, 1, 10 + n)).collect();
    hashes.extend((0..8).map(|n| hash(1, 2, 30 + n)));
    hashes.extend((0..if stash { 8 } else { 0 }).map(|n| hash(2, 1, 50 + n)));
    hashes.push(hash(0, 1, 70));
    hashes
}

#[test]
fn an_entry_that_moves_is_found_all_the_time() {
    let hashes = full(false);
    check(move || {
        let last = hashes.len() as u32 - 1;
        let set = Arc::new(Set::new(hashes.clone()));
        (0..last).for_each(|entry| set.insert(entry));
        let reader = Arc::clone(&set);
        // Entry 8 is in the first slot of the second bucket, so it is the one that moves.
        let reader = loom::thread::spawn(move || {
            assert_eq!(reader.find(8), Some(8));
        });
        set.insert(last);
        reader.join().unwrap();
        assert_eq!((set.find(8), set.find(last)), (Some(8), Some(last)));
    });
}

#[test]
fn what_is_found_was_written_before() {
    check(|| {
        let set = Arc::new(Set::new(vec![hash(0, 1, 10), hash(0, 1, 10)]));
        set.insert(0);
        let reader = Arc::clone(&set);
        let reader = loom::thread::spawn(move || {
            if reader.find(1).is_some() {
                assert_eq!(reader.lines[1].load(Relaxed), 1);
            }
            assert_eq!(reader.find(0), Some(0));
        });
        set.insert(1);
        reader.join().unwrap();
    });
}

#[test]
fn an_entry_that_leaves_the_stash_is_found_all_the_time() {
    let hashes = full(true);
    check(move || {
        let last = hashes.len() as u32 - 1;
        let set = Arc::new(Set::new(hashes.clone()));
        (0..=last).for_each(|entry| set.insert(entry));
        assert_eq!(set.buckets.stashed.load(Relaxed), 1);
        let reader = Arc::clone(&set);
        let reader = loom::thread::spawn(move || {
            assert_eq!(reader.find(last), Some(last));
        });
        set.remove(0);
        reader.join().unwrap();
        assert_eq!((set.buckets.stashed.load(Relaxed), set.find(0)), (0, None));
    });
}

/// In two tables, an entry is removed and another added, in copies that one store publishes. The
/// slot of the removed entry is reused as soon as permitted.
#[test]
fn a_bundle_is_seen_in_both_tables_or_in_none() {
    check(|| {
        let hashes = [hash(0, 1, 10), hash(0, 1, 11)];
        let find = move |buckets: &Buckets, entry: u32| {
            buckets.find(hashes[entry as usize], |other| other == entry).is_some()
        };
        let put = move |buckets: &Buckets, entry: u32| {
            buckets.insert(entry, hashes[entry as usize], |other| hashes[other as usize]);
        };
        let [tables, copies] = [(); 2].map(|()| [Buckets::new(2), Buckets::new(2)]);
        tables.iter().chain(&copies).for_each(|table| put(table, 0));
        let lines = Arc::new([Cell::new(1), Cell::new(0)]);
        let (epochs, shown) = (Arc::new(Epochs::default()), Arc::new(Published::new(tables)));
        let (reader, mut held) = (epochs.join(), shown.hold());
        let theirs = (Arc::clone(&epochs), Arc::clone(&shown), Arc::clone(&lines));
        let reader = loom::thread::spawn(move || {
            let (epochs, shown, lines) = theirs;
            for _ in 0..2 {
                reader.turn(&epochs);
                held.renew(&shown);
                let found = held.each_ref().map(|table| [0, 1].map(|entry| find(table, entry)));
                assert!(found == [[true, false]; 2] || found == [[false, true]; 2]);
                let line = usize::from(found[0][1]);
                assert_eq!(lines[line].load(Relaxed), 1, "it was used again too early");
            }
        });
        lines[1].store(1, Relaxed);
        for copy in &copies {
            put(copy, 1);
            copy.remove(0, hashes[0], |other| hashes[other as usize]);
        }
        shown.replace(copies);
        let epoch = epochs.advance();
        if epochs.settled() >= epoch {
            lines[0].store(7, Relaxed);
            shown.forget();
        }
        reader.join().unwrap();
    });
}
