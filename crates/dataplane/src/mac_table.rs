//! What a bridge knows: behind which port each address was seen last, and when.
//!
//! IEEE 802.1D-2004 section 7.9 (the filtering database). Which entry has an address say the buckets that
//! the tables of flows have too ([`crate::fast::buckets`]); an entry is sixteen bytes beside three others on a line of the
//! cache. Lookups can be done in steps, so that those of many frames wait for memory together. Silent
//! addresses are found by a [timing wheel](crate::wheel), which a frame does not touch: what was
//! seen meanwhile is put off when its time has come. Memory is reserved when the table is made, and what
//! frames bring never makes it more: a full table learns nothing. Places depend on a seed, so that chosen
//! addresses do not meet in one.
//!
//! A flush and another ageing time act on lookups at once: an entry that was last seen before the flush is
//! not found any more. A sweep over the entries follows a few steps at a time, and gives their room back.
//!
//! Invariants:
//! - The buckets hold the numbers of the entries that have a key.
//! - The wheel holds those of them that age, not later than they are due; but for entries that the sweep
//!   has yet to look at.
//! - No learned entry that the sweep has passed was last seen before the last flush.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::fast::buckets::Buckets;
use crate::fast::memory::Zeroed;
use crate::fast::prefetch;
use crate::hash::mix;
use crate::wheel::Wheel;

/// Addresses that a table holds unless told otherwise: as many as the study's exact-match table.
pub const ADDRESSES_MAX_DEFAULT: usize = 131_072;

/// Most addresses that a table can be made for.
pub const ADDRESSES_MAX: usize = 1 << 24;

/// Time after which an address is forgotten unless told otherwise (802.1D table 7-5).
pub const AGEING_DEFAULT: Nanos = Nanos::from_secs(300);

/// Moments are kept in units of 2^16 ns (65.5 us), so that they fit in 48 bits.
const MOMENT_SHIFT: u32 = 16;
/// Entries that the sweep looks at to make room for an address in a full table.
const SWEEP_STEPS_OF_FULL: usize = 256;
/// The moment of what does not age.
const STATIC: u64 = (1 << 48) - 1;
/// The bit of a key that says that the slot is taken.
const TAKEN: u64 = 1 << 63;

/// An address in a VLAN (0 for bridges that do not tell VLANs apart), as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacKey(u64);

impl MacKey {
    /// The key of this address in this VLAN.
    #[inline]
    pub fn new(mac: Mac, vid: u16) -> MacKey {
        let [a, b, c, d, e, f] = mac;
        let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        MacKey(TAKEN | u64::from(vid & 0xfff) << 48 | mac)
    }

    /// The address.
    pub fn mac(self) -> Mac {
        let [_, _, mac @ ..] = self.0.to_be_bytes();
        mac
    }

    /// Whether it is that of a group of stations.
    #[inline]
    pub fn is_group(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    /// The VLAN.
    pub fn vid(self) -> u16 {
        (self.0 >> 48) as u16 & 0xfff
    }
}

/// An entry as it stands in memory: its key or 0, and [`Seen`].
type Line = [AtomicU64; 2];

/// The moment when an address was last seen, and in the low 16 bits the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen(u64);

impl Seen {
    #[inline]
    fn new(moment: u64, port: PortNo) -> Seen {
        Seen(moment << 16 | u64::from(port as u16))
    }

    #[inline]
    fn port(self) -> PortNo {
        PortNo::from(self.0 as u16)
    }

    #[inline]
    fn moment(self) -> u64 {
        self.0 >> 16
    }

    #[inline]
    fn is_static(self) -> bool {
        self.moment() == STATIC
    }
}

/// How far a lookup has come: a hash, and which entry it probably leads to.
#[derive(Debug, Clone, Copy)]
pub struct Hint {
    hash: u64,
    entry: u32,
}

impl Hint {
    /// Of nothing.
    pub const NONE: Hint = Hint { hash: 0, entry: NOWHERE };
}

/// No entry's number.
const NOWHERE: u32 = u32::MAX;

/// One address that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacEntry {
    /// The address.
    pub mac: Mac,
    /// The VLAN that it is in, 0 without.
    pub vid: u16,
    /// The port behind which it is.
    pub port: PortNo,
    /// Time since it was seen (known to 0.1 ms), or `None` if it was set and does not age.
    pub age: Option<Nanos>,
    /// Its number, which is its own as long as it is known.
    pub place: u32,
}

/// What became of an address that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It was known behind this port.
    Known,
    /// It was not known before.
    New,
    /// It was known behind another port.
    Moved,
    /// It was set, and what is set is not learned over.
    Static,
    /// The table is full.
    Full,
}

/// How often each thing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MacCounters {
    /// Addresses that were new.
    pub learned: u64,
    /// Addresses that moved to another port.
    pub moved: u64,
    /// Addresses that were forgotten because they were silent for too long.
    pub aged: u64,
    /// Addresses that were seen and not learned because the table was full.
    pub full: u64,
}

/// Addresses and the ports behind which they are.
#[derive(Debug)]
pub struct MacTable {
    buckets: Buckets,
    lines: Zeroed<Line>,
    /// Numbers below this were given to entries once; those of `free` are not in use now.
    given: u32,
    free: Vec<u32>,
    /// When entries that age are to be looked at.
    wheel: Wheel,
    seed: u64,
    entries_max: usize,
    /// In units of moments; `NEVER` for what does not age.
    ageing: u64,
    /// The least moment of an entry that was not flushed.
    flushed: u64,
    /// Entries that were set.
    statics: usize,
    /// Entries that were flushed and still have a key.
    dead: usize,
    /// Entries that have yet to be looked at after a flush or a change of the ageing time.
    sweep: Range<u32>,
    /// How often each thing happened.
    pub counters: MacCounters,
}

/// More moments than pass.
const NEVER: u64 = u64::MAX;

impl MacTable {
    /// An empty table for `entries_max` addresses (at most [`ADDRESSES_MAX`]) that forgets after
    /// `ageing`, or never.
    pub fn new(entries_max: usize, ageing: Option<Nanos>, seed: u64) -> MacTable {
        let entries_max = entries_max.min(ADDRESSES_MAX);
        let mut table = MacTable {
            buckets: Buckets::new(entries_max),
            lines: Zeroed::new(entries_max),
            given: 0,
            free: Vec::new(),
            wheel: Wheel::default(),
            seed,
            entries_max,
            ageing: NEVER,
            flushed: 0,
            statics: 0,
            dead: 0,
            sweep: 0..0,
            counters: MacCounters::default(),
        };
        table.set_ageing(ageing);
        table
    }

    /// Addresses that are known, those that are too old and not yet forgotten included.
    pub fn len(&self) -> usize {
        self.buckets.len() - self.dead
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Addresses that fit.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Sets the time after which a silent address is forgotten, `None` for never. It counts from
    /// when each was last seen, and acts on lookups at once; [`MacTable::age`] does the rest.
    pub fn set_ageing(&mut self, ageing: Option<Nanos>) {
        self.ageing = ageing.map_or(NEVER, |span| span.0 >> MOMENT_SHIFT);
        self.sweep = 0..self.given;
    }

    /// First step of a lookup: asks for what says which entry has the key.
    #[inline]
    pub fn hint(&self, key: MacKey) -> Hint {
        let hash = mix(key.0, self.seed);
        self.buckets.prefetch(hash);
        Hint { hash, entry: NOWHERE }
    }

    /// Second step: asks for the entry that it probably is.
    #[inline]
    pub fn guess(&self, hint: &mut Hint) {
        if let Some(entry) = self.buckets.guess(hint.hash)
            && let Some(line) = self.lines.get(entry as usize)
        {
            prefetch::read(line);
            hint.entry = entry;
        }
    }

    /// Notes that the address was seen behind `port`. Ports are below 65,536.
    #[inline]
    pub fn learn(&mut self, key: MacKey, port: PortNo, now: Nanos) -> Learned {
        self.learn_at(key, self.hint(key), port, now)
    }

    /// Last step of learning. What changed since the steps before does not matter.
    #[inline]
    pub fn learn_at(&mut self, key: MacKey, hint: Hint, port: PortNo, now: Nanos) -> Learned {
        let seen = Seen::new(moment(now).max(self.flushed), port);
        match self.find(key, hint) {
            Some(entry) => self.refresh(entry, seen, now),
            None => self.add(key, hint.hash, seen),
        }
    }

    #[inline]
    fn refresh(&mut self, entry: u32, seen: Seen, now: Nanos) -> Learned {
        let before = self.seen(entry);
        if before == seen {
            return Learned::Known;
        }
        if before.is_static() {
            return Learned::Static;
        }
        self.lines[entry as usize][1].store(seen.0, Relaxed);
        if self.is_flushed(before) {
            self.dead -= 1;
            self.watch(entry);
            self.counters.learned += 1;
            Learned::New
        } else if self.is_old(before, now) {
            self.counters.aged += 1;
            self.counters.learned += 1;
            Learned::New
        } else if before.port() != seen.port() {
            self.counters.moved += 1;
            Learned::Moved
        } else {
            Learned::Known
        }
    }

    #[cold]
    fn add(&mut self, key: MacKey, hash: u64, seen: Seen) -> Learned {
        let Some(entry) = self.put(key, hash, seen) else {
            self.counters.full += 1;
            return Learned::Full;
        };
        self.watch(entry);
        self.counters.learned += 1;
        Learned::New
    }

    /// Makes an entry for a key that has none, if there is room.
    fn put(&mut self, key: MacKey, hash: u64, seen: Seen) -> Option<u32> {
        let mut steps = SWEEP_STEPS_OF_FULL;
        while self.buckets.len() >= self.entries_max {
            if self.dead == 0 || steps == 0 {
                return None;
            }
            self.sweep_one(&mut steps);
        }
        let entry = self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            self.given - 1
        });
        let [key_at, seen_at] = &self.lines[entry as usize];
        key_at.store(key.0, Relaxed);
        seen_at.store(seen.0, Relaxed);
        let (lines, seed) = (&self.lines, self.seed);
        self.buckets.insert(entry, hash, |other| hash_of(lines, seed, other));
        Some(entry)
    }

    /// The port behind which the address is, if that is known and not too long ago.
    #[inline]
    pub fn lookup(&self, key: MacKey, now: Nanos) -> Option<PortNo> {
        self.lookup_at(key, self.hint(key), now)
    }

    /// Last step of a lookup. What changed since the steps before does not matter.
    #[inline]
    pub fn lookup_at(&self, key: MacKey, hint: Hint, now: Nanos) -> Option<PortNo> {
        let seen = self.seen(self.find(key, hint)?);
        (!self.is_old(seen, now)).then(|| seen.port())
    }

    /// Sets the port behind which the address is: it does not age and is not learned over. False
    /// if the table is full.
    pub fn set_static(&mut self, key: MacKey, port: PortNo) -> bool {
        let (hint, seen) = (self.hint(key), Seen::new(STATIC, port));
        match self.find(key, hint) {
            Some(entry) => {
                let before = self.seen(entry);
                self.dead -= usize::from(self.is_flushed(before));
                self.statics += usize::from(!before.is_static());
                self.wheel.cancel(entry);
                self.lines[entry as usize][1].store(seen.0, Relaxed);
                true
            }
            None => {
                let is_put = self.put(key, hint.hash, seen).is_some();
                self.statics += usize::from(is_put);
                is_put
            }
        }
    }

    /// Forgets the address, set or learned. False if it was not known.
    pub fn remove(&mut self, key: MacKey) -> bool {
        let Some(entry) = self.find(key, self.hint(key)) else { return false };
        let was_known = !self.is_flushed(self.seen(entry));
        self.forget(entry);
        was_known
    }

    fn forget(&mut self, entry: u32) {
        let seen = self.seen(entry);
        self.dead -= usize::from(self.is_flushed(seen));
        self.statics -= usize::from(seen.is_static());
        let (lines, seed) = (&self.lines, self.seed);
        let hash = hash_of(lines, seed, entry);
        self.buckets.remove(entry, hash, |other| hash_of(lines, seed, other));
        self.lines[entry as usize][0].store(0, Relaxed);
        self.wheel.cancel(entry);
        self.free.push(entry);
    }

    /// Forgets what was learned; what was set stays. Returns how many were forgotten. Lookups do not find
    /// them any more; [`MacTable::age`] gives their room back.
    pub fn flush(&mut self, now: Nanos) -> usize {
        let forgotten = self.len() - self.statics;
        self.dead += forgotten;
        // What is learned from now on is later than all that was learned before.
        self.flushed = self.flushed.max(moment(now)).saturating_add(1).min(STATIC - 1);
        self.sweep = 0..self.given;
        forgotten
    }

    /// The addresses that are known at `now`, in no order that means anything.
    pub fn iter(&self, now: Nanos) -> impl Iterator<Item = MacEntry> + '_ {
        (0..self.given).filter_map(move |place| self.entry(place, now))
    }

    /// Numbers of entries are below this.
    pub fn places_end(&self) -> u32 {
        self.given
    }

    /// The address that the entry of this number has at `now`, if any. An address keeps its entry as long
    /// as it is known, so a walk over the numbers in several turns finds each that is known all the time once.
    pub fn entry(&self, place: u32, now: Nanos) -> Option<MacEntry> {
        let (key, seen) = (MacKey(self.key(place)), self.seen(place));
        if key.0 == 0 || self.is_old(seen, now) {
            return None;
        }
        let age = now.since(Nanos(seen.moment() << MOMENT_SHIFT));
        let age = (!seen.is_static()).then_some(age);
        Some(MacEntry { mac: key.mac(), vid: key.vid(), port: seen.port(), age, place })
    }

    /// Forgets flushed and silent addresses, of at most `steps` entries that it looks at, and says when to
    /// come back, if ever: not later than now if there is more to do.
    pub fn age(&mut self, now: Nanos, mut steps: usize) -> Option<Nanos> {
        while steps > 0 && !self.sweep.is_empty() {
            self.sweep_one(&mut steps);
        }
        if !self.sweep.is_empty() {
            return Some(now);
        }
        while let Some(entry) = self.wheel.pop(now, &mut steps) {
            let seen = self.seen(entry);
            if self.is_flushed(seen) {
                self.forget(entry);
            } else if self.is_old(seen, now) {
                self.forget(entry);
                self.counters.aged += 1;
            } else {
                self.watch(entry);
            }
        }
        self.wheel.next()
    }

    /// Looks at the next entry after a flush or a change of the ageing time.
    fn sweep_one(&mut self, steps: &mut usize) {
        *steps -= 1;
        let Some(entry) = self.sweep.next() else { return };
        let seen = self.seen(entry);
        if self.key(entry) == 0 || seen.is_static() {
            return;
        }
        if self.is_flushed(seen) {
            self.forget(entry);
        } else {
            self.watch(entry);
        }
    }

    /// Lets the wheel say when a learned address is too old, if it is not seen again.
    fn watch(&mut self, entry: u32) {
        let due = self.seen(entry).moment().saturating_add(self.ageing);
        match due.checked_mul(1 << MOMENT_SHIFT) {
            Some(due) if self.ageing != NEVER => self.wheel.schedule(entry, Nanos(due)),
            _ => self.wheel.cancel(entry),
        }
    }

    #[inline]
    fn is_old(&self, seen: Seen, now: Nanos) -> bool {
        !seen.is_static()
            && (moment(now).saturating_sub(seen.moment()) >= self.ageing || self.is_flushed(seen))
    }

    /// Whether it was last seen before the last flush. Static entries have the latest moment of all.
    #[inline]
    fn is_flushed(&self, seen: Seen) -> bool {
        seen.moment() < self.flushed
    }

    #[inline]
    fn key(&self, entry: u32) -> u64 {
        self.lines[entry as usize][0].load(Relaxed)
    }

    #[inline]
    fn seen(&self, entry: u32) -> Seen {
        Seen(self.lines[entry as usize][1].load(Relaxed))
    }

    /// The entry that has the key.
    #[inline]
    fn find(&self, key: MacKey, hint: Hint) -> Option<u32> {
        let has_key = |entry: u32| {
            let line = self.lines.get(entry as usize);
            line.is_some_and(|line| line[0].load(Relaxed) == key.0)
        };
        if has_key(hint.entry) {
            return Some(hint.entry);
        }
        self.buckets.find(hint.hash, has_key)
    }
}

/// The hash of an entry that has a key.
fn hash_of(lines: &[Line], seed: u64, entry: u32) -> u64 {
    mix(lines[entry as usize][0].load(Relaxed), seed)
}

#[inline]
fn moment(now: Nanos) -> u64 {
    (now.0 >> MOMENT_SHIFT).min(STATIC - 1)
}

#[cfg(test)]
mod tests;
