//! Keys of operands, and a table of keyed entries that age out.
//!
//! A key consists of the numbers of a few operands. A map returns the index of a key's entry. A
//! [timer wheel](dataplane::wheel) finds idle entries. Memory is bounded: a full table accepts no
//! new entries.

use std::collections::HashMap;

use dataplane::hash::{Seeded, mix};
use dataplane::wheel::Wheel;
use packet::time::Nanos;

use super::{Packet, Slots};
use crate::condition::{Literal, Operand};
use crate::frames::FrameSet;

/// The numbers of some operands.
pub type Key = Box<[u128]>;

/// Reads the key of a packet into `into`. Returns false if an operand is absent.
pub fn read_key(
    operands: &[Operand],
    packet: &mut Packet,
    (frames, slots): (&FrameSet, &Slots),
    into: &mut Vec<u128>,
) -> bool {
    into.clear();
    for operand in operands {
        match packet.number(operand, frames, slots) {
            Some(number) => into.push(number),
            None => return false,
        }
    }
    true
}

/// Formats a key, each number in the form of its operand, such as an address.
pub fn key_text(operands: &[Operand], key: &[u128]) -> String {
    use crate::condition::Form;
    let one = |(operand, value): (&Operand, &u128)| {
        let form = match operand.bits() {
            32 if !matches!(operand, Operand::Meta { .. }) => Form::Ipv4,
            48 => Form::Mac,
            128 => Form::Ipv6,
            _ => Form::Decimal,
        };
        Literal { value: *value, form }.to_string()
    };
    operands.iter().zip(key).map(one).collect::<Vec<_>>().join(" ")
}

/// Hashes some numbers.
pub fn hash(numbers: &[u128], seed: u64) -> u64 {
    numbers.iter().fold(seed, |sum, number| mix(*number as u64, mix((*number >> 64) as u64, sum)))
}

/// A table of entries by key.
#[derive(Debug)]
pub struct Keyed<V> {
    places: HashMap<Key, u32, Seeded>,
    entries: Vec<Option<Entry<V>>>,
    free: Vec<u32>,
    wheel: Wheel,
    entries_max: usize,
    /// Idle timeout; none if entries do not age.
    idle: Option<Nanos>,
}

/// An entry.
#[derive(Debug)]
pub struct Entry<V> {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: V,
    /// Time of the last use.
    pub touched: Nanos,
    /// Whether the entry never ages.
    pub is_static: bool,
}

impl<V> Keyed<V> {
    /// Creates an empty table with a capacity and an idle timeout.
    pub fn new(entries_max: usize, idle: Option<Nanos>, seed: u64) -> Keyed<V> {
        let places = HashMap::with_capacity_and_hasher(entries_max.min(1 << 20), Seeded(seed));
        let (free, wheel) = (Vec::new(), Wheel::default());
        Keyed { places, entries: Vec::new(), free, wheel, entries_max, idle }
    }

    /// Returns true if another table has the same limits.
    pub fn is_like(&self, other: &Keyed<V>) -> bool {
        (self.entries_max, self.idle) == (other.entries_max, other.idle)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if the table is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the index of a key, unless its entry has timed out.
    pub fn find(&self, key: &[u128], now: Nanos) -> Option<u32> {
        let place = *self.places.get(key)?;
        let entry = self.entries[place as usize].as_ref()?;
        let is_old =
            !entry.is_static && self.idle.is_some_and(|idle| now.since(entry.touched) >= idle);
        (!is_old).then_some(place)
    }

    /// Returns the entry at an index from [`Keyed::find`].
    pub fn entry(&self, place: u32) -> &Entry<V> {
        self.entries[place as usize].as_ref().expect("a slot that was found has an entry")
    }

    /// Returns the entry at an index from [`Keyed::find`], mutable.
    pub fn entry_mut(&mut self, place: u32) -> &mut Entry<V> {
        self.entries[place as usize].as_mut().expect("a slot that was found has an entry")
    }

    /// Adds or replaces an entry. Returns `None` if the table is full.
    pub fn insert(&mut self, key: &[u128], value: V, now: Nanos, is_static: bool) -> Option<u32> {
        let place = match self.places.get(key) {
            Some(place) => *place,
            None if self.places.len() >= self.entries_max => return None,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.entries.push(None);
                    self.entries.len() as u32 - 1
                });
                self.places.insert(key.into(), place);
                place
            }
        };
        let key = key.into();
        self.entries[place as usize] = Some(Entry { key, value, touched: now, is_static });
        if let Some(idle) = self.idle.filter(|_| !is_static) {
            self.wheel.schedule(place, now.saturating_add(idle));
        }
        Some(place)
    }

    /// Removes an entry.
    pub fn remove(&mut self, place: u32) -> Option<Entry<V>> {
        let entry = self.entries.get_mut(place as usize)?.take()?;
        self.places.remove(&entry.key);
        self.wheel.cancel(place);
        self.free.push(place);
        Some(entry)
    }

    /// Removes idle entries and calls `forgot` for each. Examines at most `steps` entries. Returns
    /// the time of the next call, if any.
    pub fn age(
        &mut self,
        now: Nanos,
        mut steps: usize,
        mut forgot: impl FnMut(Entry<V>),
    ) -> Option<Nanos> {
        while let Some(place) = self.wheel.pop(now, &mut steps) {
            let Some(entry) = &self.entries[place as usize] else { continue };
            let Some(idle) = self.idle.filter(|_| !entry.is_static) else { continue };
            let due = entry.touched.saturating_add(idle);
            if due <= now {
                self.remove(place).into_iter().for_each(&mut forgot);
            } else {
                self.wheel.schedule(place, due);
            }
        }
        self.wheel.next()
    }

    /// Returns the upper bound of indices (exclusive).
    pub fn places_end(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entry at an index, if there is one.
    pub fn at(&self, place: usize) -> Option<&Entry<V>> {
        self.entries.get(place)?.as_ref()
    }

    /// Returns all entries in index order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<V>> {
        self.entries.iter().flatten()
    }

    /// Returns all entries with their indices, which are stable during their lifetime.
    pub fn iter_placed(&self) -> impl Iterator<Item = (u32, &Entry<V>)> {
        let placed = (0..).zip(&self.entries);
        placed.filter_map(|(place, entry)| Some((place, entry.as_ref()?)))
    }

    /// Removes and returns all entries.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry<V>> + '_ {
        self.places.clear();
        self.free.clear();
        self.wheel = Wheel::default();
        self.entries.drain(..).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_entries_expire_and_a_full_table_learns_nothing() {
        let second = Nanos::from_secs(1);
        let mut table: Keyed<u32> = Keyed::new(2, Some(second), 7);
        assert_eq!(table.insert(&[1], 10, Nanos::ZERO, false), Some(0));
        assert_eq!(table.insert(&[2], 20, Nanos::ZERO, true), Some(1));
        assert_eq!(table.insert(&[3], 30, Nanos::ZERO, false), None);
        assert_eq!(table.find(&[1], Nanos::ZERO), Some(0));
        // An expired entry is not found, and the next call of `age` removes it.
        assert_eq!(table.find(&[1], second), None);
        let mut gone = Vec::new();
        let later = second.saturating_add(second);
        table.age(later, 100, |entry| gone.push(entry.value));
        assert_eq!(gone, [10]);
        assert_eq!(table.find(&[2], later), Some(1), "static entries stay");
        assert_eq!(table.insert(&[3], 30, later, false), Some(0));
    }

    #[test]
    fn refreshed_entries_stay() {
        let second = Nanos::from_secs(1);
        let mut table: Keyed<()> = Keyed::new(4, Some(second), 7);
        table.insert(&[1], (), Nanos::ZERO, false);
        table.entry_mut(0).touched = Nanos::from_millis(700);
        table.age(second, 100, |_| panic!("the entry was refreshed"));
        assert_eq!(table.find(&[1], second), Some(0));
    }
}
