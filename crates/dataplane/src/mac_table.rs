//! MAC address table of a bridge: the port and time at which each address was last seen.
//!
//! Source: IEEE 802.1D-2004, section 7.9 (the filtering database). The bucketed hash table
//! [`crate::fast::buckets`], which flow tables use too, maps addresses to entries. An entry has 16
//! bytes, so four entries share a cache line. A lookup can be done in steps, so that the cache
//! misses of many frames overlap. A [timing wheel](crate::wheel) finds silent addresses. Frames do
//! not touch the wheel: when an entry is due but was refreshed, the wheel reschedules it. Memory is
//! reserved at creation, and frames never increase it: a full table learns nothing. A seed for
//! hashing protects against chosen addresses that collide. For comparison with old bridges, a table
//! may have a fixed number of buckets with linked lists instead ([`MacTable::with_hash_buckets`]).
//!
//! A flush and a change of the ageing time affect lookups immediately: an entry that was learned
//! before the flush is not found any more. A sweep over the entries then frees them, a few steps
//! per call.
//!
//! Invariants:
//! - The buckets, and the lists if there are any, hold the numbers of all entries with a key.
//! - The wheel holds all entries that age, due no later than they expire, except entries that the
//!   sweep has not reached.
//! - No learned entry that the sweep has passed is older than the last flush.

use core::any::Any;
use core::fmt::Debug;
mod chains;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::fast::buckets::Buckets;
use crate::fast::memory::ZeroedArray;
use crate::fast::prefetch;
use crate::hash::mix;
use crate::wheel::Wheel;
use chains::Chains;

/// Default capacity: the size of the exact-match table in bianco2010.
pub const ADDRESSES_MAX_DEFAULT: usize = 131_072;

/// Maximum capacity of a table.
pub const ADDRESSES_MAX: usize = 1 << 24;

/// Default ageing time (802.1D, table 7-5).
pub const AGEING_DEFAULT: Nanos = Nanos::from_secs(300);

/// Times are stored in units of 2^16 ns (65.5 us), so that they fit in 48 bits.
const MOMENT_SHIFT: u32 = 16;
/// Number of entries that the sweep examines to free space in a full table.
const SWEEP_STEPS_OF_FULL: usize = 256;
/// Stored time of an entry that does not age.
const STATIC: u64 = (1 << 48) - 1;
/// Bit of a key that marks the entry as used.
const TAKEN: u64 = 1 << 63;

/// An address in a VLAN (0 for bridges with shared learning), as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacKey(u64);

/// A mirror of a MAC table in another data plane, such as one in the kernel.
///
/// The table passes on every change before it is visible elsewhere. The mirror forwards frames that
/// the table never sees, so the table asks when an address was used before the address expires.
pub trait MacMirror: Any + Debug + Send + Sync {
    /// Adds or changes an address. It was last seen at this time, or is static.
    fn set(&mut self, key: MacKey, port: PortNo, seen: Option<Nanos>);

    /// Removes an address.
    fn remove(&mut self, key: MacKey);

    /// Removes all learned addresses.
    fn flush(&mut self);

    /// Sets the ageing time, or disables ageing.
    fn set_ageing(&mut self, ageing: Option<Nanos>);

    /// Sets the time at which a known address was last seen, if the mirror has an earlier one.
    fn refresh(&mut self, key: MacKey, seen: Nanos);

    /// Returns when the mirror last saw an address as source, if it has the address.
    fn last_seen(&self, key: MacKey) -> Option<Nanos>;
}

impl MacKey {
    /// Creates the key of an address in a VLAN.
    #[inline]
    pub fn new(mac: Mac, vid: u16) -> MacKey {
        let [a, b, c, d, e, f] = mac;
        let mac = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        MacKey(TAKEN | u64::from(vid & 0xfff) << 48 | mac)
    }

    /// Returns the address.
    pub fn mac(self) -> Mac {
        let [_, _, mac @ ..] = self.0.to_be_bytes();
        mac
    }

    /// Whether this is a group address.
    #[inline]
    pub fn is_group(self) -> bool {
        self.0 >> 40 & 1 == 1
    }

    /// Returns the VLAN.
    pub fn vid(self) -> u16 {
        (self.0 >> 48) as u16 & 0xfff
    }
}

/// An entry in memory: its key or 0, and [`LastSeen`].
type Line = [AtomicU64; 2];

/// The time when an address was last seen, and the port in the low 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LastSeen(u64);

impl LastSeen {
    #[inline]
    fn new(moment: u64, port: PortNo) -> LastSeen {
        LastSeen(moment << 16 | u64::from(port as u16))
    }

    #[inline]
    fn port(self) -> PortNo {
        PortNo::from(self.0 as u16)
    }

    #[inline]
    fn moment(self) -> u64 {
        self.0 >> 16
    }

    /// The time, rounded down.
    fn at(self) -> Nanos {
        Nanos(self.moment() << MOMENT_SHIFT)
    }

    #[inline]
    fn is_static(self) -> bool {
        self.moment() == STATIC
    }
}

/// State of a lookup in steps: the hash and the probable entry.
#[derive(Debug, Clone, Copy)]
pub struct Hint {
    hash: u64,
    entry: u32,
}

impl Hint {
    /// An empty hint.
    pub const NONE: Hint = Hint { hash: 0, entry: NO_ENTRY };
}

/// Not a valid entry number.
const NO_ENTRY: u32 = u32::MAX;

/// A learned or static address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacEntry {
    /// The address.
    pub mac: Mac,
    /// The VLAN, or 0 without one.
    pub vid: u16,
    /// The port of the address.
    pub port: PortNo,
    /// Time since the address was last seen (resolution 0.1 ms), or `None` for a static address.
    pub age: Option<Nanos>,
    /// Entry number, which does not change while the address is known.
    pub place: u32,
}

/// Result of learning an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// The address was known at this port.
    Known,
    /// The address was unknown.
    New,
    /// The address was known at another port.
    Moved,
    /// The address is static and is not learned again.
    Static,
    /// The table is full.
    Full,
}

/// Event counters of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MacCounters {
    /// Newly learned addresses.
    pub learned: u64,
    /// Addresses that moved to another port.
    pub moved: u64,
    /// Addresses that aged out.
    pub aged: u64,
    /// Addresses not learned because the table was full.
    pub full: u64,
}

/// MAC addresses and their ports.
#[derive(Debug)]
pub struct MacTable {
    buckets: Buckets,
    /// Lists that lookups search instead of the buckets.
    chains: Option<Chains>,
    lines: ZeroedArray<Line>,
    /// Numbers below this have been assigned; those in `free` are not in use now.
    given: u32,
    free: Vec<u32>,
    /// Times at which to examine ageing entries.
    wheel: Wheel,
    seed: u64,
    entries_max: usize,
    /// Ageing time in stored units; `NEVER` disables ageing.
    ageing: u64,
    /// Entries with an earlier time are flushed.
    flushed: u64,
    /// Number of static entries.
    statics: usize,
    /// Number of flushed entries that still have a key.
    dead: usize,
    /// Entries left to examine after a flush or a change of the ageing time.
    sweep: Range<u32>,
    mirror: Option<Box<dyn MacMirror>>,
    /// Event counters.
    pub counters: MacCounters,
}

/// Longer than any time span.
const NEVER: u64 = u64::MAX;

impl MacTable {
    /// Creates an empty table for `entries_max` addresses (at most [`ADDRESSES_MAX`]) with this
    /// ageing time, or without ageing.
    pub fn new(entries_max: usize, ageing: Option<Nanos>, seed: u64) -> MacTable {
        let entries_max = entries_max.min(ADDRESSES_MAX);
        let mut table = MacTable {
            buckets: Buckets::new(entries_max),
            chains: None,
            lines: ZeroedArray::new(entries_max),
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
            mirror: None,
            counters: MacCounters::default(),
        };
        table.set_ageing(ageing);
        table
    }

    /// Makes an empty table search linked lists of this number of hash buckets, as Linux 2.6.27 had
    /// 256. Lookups take time in proportion to the number of addresses.
    #[must_use]
    pub fn with_hash_buckets(self, buckets: usize) -> MacTable {
        debug_assert!(self.is_empty(), "entries would be in no list");
        MacTable { chains: Some(Chains::new(buckets, self.entries_max)), ..self }
    }

    /// Returns whether lookups search hash buckets with lists.
    pub fn has_chains(&self) -> bool {
        self.chains.is_some()
    }

    /// Returns the number of known addresses, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.buckets.len() - self.dead
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Sets the ageing time; `None` disables ageing. The time counts from when each address was
    /// last seen. Lookups use the new time immediately; [`MacTable::age`] removes expired entries.
    pub fn set_ageing(&mut self, ageing: Option<Nanos>) {
        self.ageing = ageing.map_or(NEVER, |span| span.0 >> MOMENT_SHIFT);
        self.sweep = 0..self.given;
        if let Some(mirror) = &mut self.mirror {
            mirror.set_ageing(ageing);
        }
    }

    /// Passes all entries, and from now on every change, to a mirror. With `None`, passes nothing
    /// any more.
    pub fn set_mirror(&mut self, mirror: Option<Box<dyn MacMirror>>) {
        self.mirror = mirror;
        let ageing = (self.ageing != NEVER).then_some(Nanos(self.ageing << MOMENT_SHIFT));
        if let Some(mirror) = &mut self.mirror {
            mirror.set_ageing(ageing);
        }
        // Expired ones may be valid again with another ageing time.
        for entry in 0..self.given {
            if self.key(entry) != 0 && !self.is_flushed(self.seen(entry)) {
                self.project(entry);
            }
        }
    }

    /// Returns the mirror, if it is of this type.
    pub fn mirror<M: MacMirror>(&self) -> Option<&M> {
        let mirror: &dyn Any = &**self.mirror.as_ref()?;
        mirror.downcast_ref()
    }

    /// First step of a lookup: prefetches the bucket of the key.
    #[inline]
    pub fn hint(&self, key: MacKey) -> Hint {
        let hash = mix(key.0, self.seed);
        self.buckets.prefetch(hash);
        Hint { hash, entry: NO_ENTRY }
    }

    /// Second step: prefetches the probable entry.
    #[inline]
    pub fn guess(&self, hint: &mut Hint) {
        if self.chains.is_some() {
            return;
        }
        if let Some(entry) = self.buckets.guess(hint.hash)
            && let Some(line) = self.lines.get(entry as usize)
        {
            prefetch::read(line);
            hint.entry = entry;
        }
    }

    /// Learns the address at `port`, or refreshes it. Ports are below 65,536.
    #[inline]
    pub fn learn(&mut self, key: MacKey, port: PortNo, now: Nanos) -> Learned {
        self.learn_at(key, self.hint(key), port, now)
    }

    /// Last step of learning. The table may have changed since the earlier steps.
    #[inline]
    pub fn learn_at(&mut self, key: MacKey, hint: Hint, port: PortNo, now: Nanos) -> Learned {
        let seen = LastSeen::new(moment(now).max(self.flushed), port);
        match self.find(key, hint) {
            Some(entry) => self.refresh(entry, seen, now),
            None => self.add(key, hint.hash, seen),
        }
    }

    #[inline]
    fn refresh(&mut self, entry: u32, seen: LastSeen, now: Nanos) -> Learned {
        let before = self.seen(entry);
        if before == seen {
            return Learned::Known;
        }
        if before.is_static() {
            return Learned::Static;
        }
        let is_expired = self.is_expired(entry, before, now);
        self.lines[entry as usize][1].store(seen.0, Relaxed);
        let learned = if self.is_flushed(before) {
            self.dead -= 1;
            self.watch(entry);
            self.counters.learned += 1;
            Learned::New
        } else if is_expired {
            self.counters.aged += 1;
            self.counters.learned += 1;
            Learned::New
        } else if before.port() != seen.port() {
            self.counters.moved += 1;
            Learned::Moved
        } else {
            return Learned::Known;
        };
        self.project(entry);
        learned
    }

    /// Passes an entry to the mirror.
    #[cold]
    fn project(&mut self, entry: u32) {
        let (key, seen) = (MacKey(self.key(entry)), self.seen(entry));
        if let Some(mirror) = &mut self.mirror {
            mirror.set(key, seen.port(), (!seen.is_static()).then(|| seen.at()));
        }
    }

    #[cold]
    fn add(&mut self, key: MacKey, hash: u64, seen: LastSeen) -> Learned {
        let Some(entry) = self.put(key, hash, seen) else {
            self.counters.full += 1;
            return Learned::Full;
        };
        self.watch(entry);
        self.project(entry);
        self.counters.learned += 1;
        Learned::New
    }

    /// Adds an entry for a key that has none, if there is space.
    fn put(&mut self, key: MacKey, hash: u64, seen: LastSeen) -> Option<u32> {
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
        if let Some(chains) = &mut self.chains {
            chains.insert(entry, hash);
        }
        Some(entry)
    }

    /// Returns the port of the address, if it is known and not expired.
    #[inline]
    pub fn lookup(&self, key: MacKey, now: Nanos) -> Option<PortNo> {
        self.lookup_at(key, self.hint(key), now)
    }

    /// Last step of a lookup. The table may have changed since the earlier steps.
    #[inline]
    pub fn lookup_at(&self, key: MacKey, hint: Hint, now: Nanos) -> Option<PortNo> {
        let entry = self.find(key, hint)?;
        let seen = self.seen(entry);
        (!self.is_expired(entry, seen, now)).then(|| seen.port())
    }

    /// Sets a static address: it does not age and is not learned at another port. Returns false if
    /// the table is full.
    pub fn set_static(&mut self, key: MacKey, port: PortNo) -> bool {
        let (hint, seen) = (self.hint(key), LastSeen::new(STATIC, port));
        match self.find(key, hint) {
            Some(entry) => {
                let before = self.seen(entry);
                self.dead -= usize::from(self.is_flushed(before));
                self.statics += usize::from(!before.is_static());
                self.wheel.cancel(entry);
                self.lines[entry as usize][1].store(seen.0, Relaxed);
                self.project(entry);
                true
            }
            None => {
                let Some(entry) = self.put(key, hint.hash, seen) else { return false };
                self.statics += 1;
                self.project(entry);
                true
            }
        }
    }

    /// Removes an address, static or learned. Returns false if it was unknown.
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
        let key = MacKey(self.key(entry));
        if let Some(mirror) = &mut self.mirror {
            mirror.remove(key);
        }
        let (lines, seed) = (&self.lines, self.seed);
        let hash = hash_of(lines, seed, entry);
        self.buckets.remove(entry, hash, |other| hash_of(lines, seed, other));
        if let Some(chains) = &mut self.chains {
            chains.remove(entry, hash);
        }
        self.lines[entry as usize][0].store(0, Relaxed);
        self.wheel.cancel(entry);
        self.free.push(entry);
    }

    /// Removes all learned addresses and returns their number; static addresses stay. Lookups no
    /// longer find them; [`MacTable::age`] frees the entries.
    pub fn flush(&mut self, now: Nanos) -> usize {
        let forgotten = self.len() - self.statics;
        self.dead += forgotten;
        // Any address learned from now on has a later time than all learned before.
        self.flushed = self.flushed.max(moment(now)).saturating_add(1).min(STATIC - 1);
        self.sweep = 0..self.given;
        if let Some(mirror) = &mut self.mirror {
            mirror.flush();
        }
        forgotten
    }

    /// Returns the addresses known at `now`, in arbitrary order.
    pub fn iter(&self, now: Nanos) -> impl Iterator<Item = MacEntry> + '_ {
        (0..self.given).filter_map(move |place| self.entry(place, now))
    }

    /// Returns the upper bound of entry numbers (exclusive).
    pub fn places_end(&self) -> u32 {
        self.given
    }

    /// Returns the address of an entry that is known at `now`. An address keeps its entry while it
    /// is known, so an iteration over the numbers in several calls visits each continuously known
    /// address exactly once.
    pub fn entry(&self, place: u32, now: Nanos) -> Option<MacEntry> {
        let (key, seen) = (MacKey(self.key(place)), self.seen(place));
        if key.0 == 0 || self.is_expired(place, seen, now) {
            return None;
        }
        let age = now.since(self.seen_by_any(place, seen).at());
        let age = (!seen.is_static()).then_some(age);
        Some(MacEntry { mac: key.mac(), vid: key.vid(), port: seen.port(), age, place })
    }

    /// Frees flushed and expired entries; examines at most `steps` entries. Returns when to call it
    /// again, if ever: not later than `now` if entries are left to examine.
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
            } else if self.is_expired(entry, seen, now) {
                self.forget(entry);
                self.counters.aged += 1;
            } else {
                self.agree(entry, seen);
                self.watch(entry);
            }
        }
        self.wheel.next()
    }

    /// Examines the next entry after a flush or a change of the ageing time.
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

    /// Schedules the expiry of a learned address, if it is not refreshed.
    fn watch(&mut self, entry: u32) {
        let due = self.seen(entry).moment().saturating_add(self.ageing);
        match due.checked_mul(1 << MOMENT_SHIFT) {
            Some(due) if self.ageing != NEVER => self.wheel.schedule(entry, Nanos(due)),
            _ => self.wheel.cancel(entry),
        }
    }

    /// Sets the time at which a known entry was last seen, here and in the mirror, to the later one.
    fn agree(&mut self, entry: u32, seen: LastSeen) {
        let later = self.seen_by_any(entry, seen);
        let key = MacKey(self.key(entry));
        if let Some(mirror) = self.mirror.as_mut().filter(|_| !seen.is_static()) {
            mirror.refresh(key, later.at());
            self.lines[entry as usize][1].store(later.0, Relaxed);
        }
    }

    /// Returns when an entry was last seen, by the table or by its mirror.
    fn seen_by_any(&self, entry: u32, seen: LastSeen) -> LastSeen {
        let mirror = self.mirror.as_ref().filter(|_| !seen.is_static());
        let at = mirror.and_then(|mirror| mirror.last_seen(MacKey(self.key(entry))));
        at.map_or(seen, |at| LastSeen::new(seen.moment().max(moment(at)), seen.port()))
    }

    #[inline]
    fn is_expired(&self, entry: u32, seen: LastSeen, now: Nanos) -> bool {
        self.is_old(seen, now) && (self.is_flushed(seen) || !self.is_alive(entry, seen, now))
    }

    /// Whether the mirror has seen an old entry lately.
    #[cold]
    fn is_alive(&self, entry: u32, seen: LastSeen, now: Nanos) -> bool {
        !self.is_old(self.seen_by_any(entry, seen), now)
    }

    #[inline]
    fn is_old(&self, seen: LastSeen, now: Nanos) -> bool {
        !seen.is_static()
            && (moment(now).saturating_sub(seen.moment()) >= self.ageing || self.is_flushed(seen))
    }

    /// Whether the entry is older than the last flush. Static entries have the latest possible
    /// time.
    #[inline]
    fn is_flushed(&self, seen: LastSeen) -> bool {
        seen.moment() < self.flushed
    }

    #[inline]
    fn key(&self, entry: u32) -> u64 {
        self.lines[entry as usize][0].load(Relaxed)
    }

    #[inline]
    fn seen(&self, entry: u32) -> LastSeen {
        LastSeen(self.lines[entry as usize][1].load(Relaxed))
    }

    /// Finds the entry with the key.
    #[inline]
    fn find(&self, key: MacKey, hint: Hint) -> Option<u32> {
        let has_key = |entry: u32| {
            let line = self.lines.get(entry as usize);
            line.is_some_and(|line| line[0].load(Relaxed) == key.0)
        };
        if has_key(hint.entry) {
            return Some(hint.entry);
        }
        match &self.chains {
            None => self.buckets.find(hint.hash, has_key),
            Some(chains) => chains.find(hint.hash, has_key),
        }
    }
}

/// Returns the hash of an entry with a key.
fn hash_of(lines: &[Line], seed: u64, entry: u32) -> u64 {
    mix(lines[entry as usize][0].load(Relaxed), seed)
}

#[inline]
fn moment(now: Nanos) -> u64 {
    (now.0 >> MOMENT_SHIFT).min(STATIC - 1)
}

#[cfg(test)]
mod tests;
