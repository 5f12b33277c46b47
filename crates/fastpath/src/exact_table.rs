//! A hash table of 8-byte keys in memory that programs read and this process writes.
//!
//! Each key can be in two buckets (two-choice hashing), and an entry moves to its other bucket to
//! make room: R. Pagh and F. Rodler, "Cuckoo hashing", ESA 2001. A bucket is a cache line with two
//! slots. A slot has the key or 0, a value, and a number that programs write when they use the
//! entry.
//!
//! One thread changes the table. A program that finds a key reads the value and then the key again,
//! so that it never uses the value of another key. A key that moves may be missing for a moment.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use Register::{R0, R1, R2, R4, R5};
use ebpf::{Assembly, Condition, Label, MappedArray, Operation, Register, Width};

/// Bit that is set in every key, which therefore differs from an empty slot.
pub(crate) const TAKEN: u64 = 1 << 63;

/// Offset of the number that programs write, from the start of a slot.
pub(crate) const USED_AT: i16 = 16;

const KEY_AT: usize = 0;
const VALUE_AT: usize = 8;
const SLOT_BYTES: usize = 32;
const BUCKET_BYTES: usize = 2 * SLOT_BYTES;

/// Binary logarithm of the bytes of a bucket.
const BUCKET_SHIFT: i32 = 6;

/// Maximum number of buckets: 128 MiB.
const BUCKETS_MAX: usize = 1 << 21;

/// Odd factors of the hash function.
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// A hash table.
#[derive(Debug)]
pub(crate) struct ExactTable {
    memory: MappedArray,
    buckets: usize,
    seed: u64,
    entries: AtomicUsize,
    without_room: AtomicU64,
}

/// Offset of a slot in the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

impl ExactTable {
    /// Creates an empty table with at least two slots for each of `entries_max` entries, up to the
    /// maximum size. `seed` is a secret for hashing.
    pub(crate) fn new(entries_max: usize, seed: u64) -> io::Result<ExactTable> {
        let buckets = entries_max.clamp(64, BUCKETS_MAX).next_power_of_two().min(BUCKETS_MAX);
        Ok(ExactTable {
            memory: MappedArray::new(1, buckets * BUCKET_BYTES)?,
            buckets,
            seed,
            entries: AtomicUsize::new(0),
            without_room: AtomicU64::new(0),
        })
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.load(Relaxed)
    }

    /// Returns the number of insertions that found no room.
    pub(crate) fn without_room(&self) -> u64 {
        self.without_room.load(Relaxed)
    }

    /// Adds or changes an entry. Returns false if there is no room.
    pub(crate) fn insert(&self, key: u64, value: u64, used: u64) -> bool {
        if let Some(slot) = self.find(key) {
            self.used(slot).store(used, Relaxed);
            self.value(slot).store(value, Release);
            return true;
        }
        let [one, two] = self.buckets_of(key);
        let free = [one, two].map(|bucket| self.free_slots(bucket));
        let [first, second] = if free[1].len() > free[0].len() { [1, 0] } else { [0, 1] };
        let slot = free[first].first().or(free[second].first()).copied();
        let Some(slot) = slot.or_else(|| self.make_room(one)).or_else(|| self.make_room(two))
        else {
            self.without_room.fetch_add(1, Relaxed);
            return false;
        };
        self.fill(slot, key, value, used);
        self.entries.fetch_add(1, Relaxed);
        true
    }

    /// Removes a key, if it is there.
    pub(crate) fn remove(&self, key: u64) {
        if let Some(slot) = self.find(key) {
            self.key(slot).store(0, Release);
            self.entries.fetch_sub(1, Relaxed);
        }
    }

    /// Finds the slot of a key.
    pub(crate) fn find(&self, key: u64) -> Option<Slot> {
        let mut both = self.buckets_of(key).into_iter().flat_map(slots);
        both.find(|slot| self.key(*slot).load(Relaxed) == key)
    }

    /// Returns the number that programs write when they use an entry.
    pub(crate) fn used(&self, slot: Slot) -> &AtomicU64 {
        self.memory.double_at(slot.0 + USED_AT as usize)
    }

    /// Returns the value of an entry.
    pub(crate) fn value(&self, slot: Slot) -> &AtomicU64 {
        self.memory.double_at(slot.0 + VALUE_AT)
    }

    fn key(&self, slot: Slot) -> &AtomicU64 {
        self.memory.double_at(slot.0 + KEY_AT)
    }

    fn fill(&self, slot: Slot, key: u64, value: u64, used: u64) {
        self.value(slot).store(value, Release);
        self.used(slot).store(used, Release);
        self.key(slot).store(key, Release);
    }

    /// Moves an entry of a full bucket to its other bucket. Returns its slot.
    fn make_room(&self, bucket: usize) -> Option<Slot> {
        slots(bucket).into_iter().find(|slot| {
            let key = self.key(*slot).load(Relaxed);
            let others = self.buckets_of(key).into_iter().filter(|other| *other != bucket);
            let Some(to) = others.flat_map(|other| self.free_slots(other)).next() else {
                return false;
            };
            let value = self.value(*slot).load(Relaxed);
            self.fill(to, key, value, self.used(*slot).load(Acquire));
            self.key(*slot).store(0, Release);
            true
        })
    }

    fn free_slots(&self, bucket: usize) -> Vec<Slot> {
        slots(bucket).into_iter().filter(|slot| self.key(*slot).load(Relaxed) == 0).collect()
    }

    /// Returns the two buckets of a key, which may be the same.
    fn buckets_of(&self, key: u64) -> [usize; 2] {
        let once = (key ^ self.seed).wrapping_mul(FACTORS[0]);
        let twice = (once ^ once >> 32).wrapping_mul(FACTORS[1]);
        let hash = twice ^ twice >> 32;
        [hash, hash >> 32].map(|half| half as usize & (self.buckets - 1))
    }

    /// Appends a lookup of the key in R1: R2 becomes the address of the slot, and R5 the value.
    /// Uses R0 and R4.
    pub(crate) fn emit_find(&self, program: &mut Assembly, missing: Label) {
        let hit = program.label("hit");
        program.copy(R0, R1);
        program.set_wide(R4, self.seed);
        program.compute_both(R0, Operation::Xor, R4);
        for factor in FACTORS {
            program.set_wide(R4, factor);
            program.compute_both(R0, Operation::Multiply, R4);
            program.copy(R4, R0);
            program.compute(R4, Operation::ShiftRight, 32);
            program.compute_both(R0, Operation::Xor, R4);
        }
        for half in 0..2 {
            program.copy(R4, R0);
            if half == 1 {
                program.compute(R4, Operation::ShiftRight, 32);
            }
            program.and_word(R4, self.buckets as u32 - 1);
            program.shift_left(R4, BUCKET_SHIFT);
            program.load_map_value(R2, self.memory.descriptor(), 0);
            program.add_register(R2, R4);
            for slot in 0..2 {
                if slot == 1 {
                    program.add(R2, SLOT_BYTES as i32);
                }
                program.load(Width::Double, R5, R2, KEY_AT as i16);
                program.jump_if_both(R5, Condition::Equal, R1, hit);
            }
        }
        program.jump(missing);
        program.place(hit);
        program.load(Width::Double, R5, R2, VALUE_AT as i16);
        program.load(Width::Double, R0, R2, KEY_AT as i16);
        program.jump_if_both(R0, Condition::NotEqual, R1, missing);
    }
}

/// Returns the slots of a bucket.
fn slots(bucket: usize) -> [Slot; 2] {
    [0, 1].map(|place| Slot(bucket * BUCKET_BYTES + place * SLOT_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_its_nominal_number_of_entries_and_forgets_removed_ones() {
        const ENTRIES: u64 = 4096;
        let table = match ExactTable::new(ENTRIES as usize, 7) {
            Ok(table) => table,
            Err(error) => {
                eprintln!("skipped: cannot create a map: {error}");
                return;
            }
        };
        let placed = (0..ENTRIES).filter(|n| table.insert(TAKEN | n << 3, *n, 0)).count();
        assert!(placed as u64 >= ENTRIES * 99 / 100, "{placed}");
        assert_eq!((table.len(), table.without_room()), (placed, ENTRIES - placed as u64));
        for n in 0..ENTRIES {
            let found = table.find(TAKEN | n << 3).map(|slot| table.value(slot).load(Relaxed));
            assert!(found.is_none_or(|value| value == n));
        }
        assert!(table.find(TAKEN | 1).is_none());
        table.insert(TAKEN, 9, 0);
        let slot = table.find(TAKEN).expect("it is there");
        assert_eq!((table.value(slot).load(Relaxed), table.len()), (9, placed));
        (0..ENTRIES).for_each(|n| table.remove(TAKEN | n << 3));
        assert_eq!(table.len(), 0);
    }
}
