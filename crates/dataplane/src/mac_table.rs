//! What a bridge knows: behind which port each address was seen last, and when.
//!
//! IEEE 802.1D-2004 section 7.9 (the filtering database). The table is open addressing with linear
//! probing in one array of 16-byte slots, at most half full, so that a lookup touches one cache
//! line, nearly always; it never moves or allocates after it is made. An entry is removed by
//! shifting the ones behind it back, so there are no tombstones. Positions depend on a seed, and
//! a run of more than `PROBES_MAX` slots is refused, so that chosen addresses cannot make it slow.
//!
//! Invariant: between an entry's first slot and the slot that holds it none is empty.

use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::hash::mix;

/// Most slots that are looked at for one address.
pub const PROBES_MAX: usize = 128;

/// Addresses that a table holds unless told otherwise: as many as the study's exact-match table.
pub const ADDRESSES_MAX_DEFAULT: usize = 131_072;

/// Most addresses that a table can be made for.
pub const ADDRESSES_MAX: usize = 1 << 24;

/// Time after which an address is forgotten unless told otherwise (802.1D table 7-5).
pub const AGEING_DEFAULT: Nanos = Nanos::from_secs(300);

/// Moments are kept in units of 2^16 ns (65.5 us), so that they fit in 48 bits.
const MOMENT_SHIFT: u32 = 16;
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

    /// The VLAN.
    pub fn vid(self) -> u16 {
        (self.0 >> 48) as u16 & 0xfff
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The key, or zero in an empty slot.
    key: u64,
    /// The moment when it was last seen, and in the low 16 bits the port.
    seen: u64,
}

impl Slot {
    #[inline]
    fn port(self) -> PortNo {
        PortNo::from(self.seen as u16)
    }

    #[inline]
    fn moment(self) -> u64 {
        self.seen >> 16
    }
}

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
    /// The table is full, or too crowded where the address belongs.
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
    slots: Vec<Slot>,
    shift: u32,
    seed: u64,
    len: usize,
    entries_max: usize,
    /// In units of moments; more than any for "never".
    ageing: u64,
    sweep_at: usize,
    /// How often each thing happened.
    pub counters: MacCounters,
}

impl MacTable {
    /// An empty table for `entries_max` addresses (at most [`ADDRESSES_MAX`]) that forgets after
    /// `ageing`, or never.
    pub fn new(entries_max: usize, ageing: Option<Nanos>, seed: u64) -> MacTable {
        let entries_max = entries_max.min(ADDRESSES_MAX);
        let slots = (entries_max.max(8) * 2).next_power_of_two();
        let mut table = MacTable {
            slots: vec![Slot::default(); slots],
            shift: 64 - slots.trailing_zeros(),
            seed,
            len: 0,
            entries_max,
            ageing: 0,
            sweep_at: 0,
            counters: MacCounters::default(),
        };
        table.set_ageing(ageing);
        table
    }

    /// Addresses that are known, those not yet swept away included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Addresses that fit.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Sets the time after which a silent address is forgotten, `None` for never. It counts from
    /// when each was last seen.
    pub fn set_ageing(&mut self, ageing: Option<Nanos>) {
        self.ageing = ageing.map_or(u64::MAX, |span| span.0 >> MOMENT_SHIFT);
    }

    /// Notes that the address was seen behind `port`. Ports are below 65,536.
    #[inline]
    pub fn learn(&mut self, key: MacKey, port: PortNo, now: Nanos) -> Learned {
        let seen = moment(now) << 16 | u64::from(port as u16);
        match self.find(key) {
            Ok(at) => self.refresh(at, seen, now),
            Err(free) => self.add(free, key, seen),
        }
    }

    #[inline]
    fn refresh(&mut self, at: usize, seen: u64, now: Nanos) -> Learned {
        let before = self.slots[at];
        if before.moment() == STATIC {
            return Learned::Static;
        }
        self.slots[at].seen = seen;
        if self.is_old(before, now) {
            self.counters.aged += 1;
            self.counters.learned += 1;
            Learned::New
        } else if before.port() != PortNo::from(seen as u16) {
            self.counters.moved += 1;
            Learned::Moved
        } else {
            Learned::Known
        }
    }

    fn add(&mut self, free: Option<usize>, key: MacKey, seen: u64) -> Learned {
        match free {
            Some(at) if self.len < self.entries_max => {
                self.slots[at] = Slot { key: key.0, seen };
                self.len += 1;
                self.counters.learned += 1;
                Learned::New
            }
            _ => {
                self.counters.full += 1;
                Learned::Full
            }
        }
    }

    /// The port behind which the address is, if that is known and not too long ago.
    #[inline]
    pub fn lookup(&self, key: MacKey, now: Nanos) -> Option<PortNo> {
        let slot = self.slots[self.find(key).ok()?];
        (!self.is_old(slot, now)).then(|| slot.port())
    }

    /// Sets the port behind which the address is: it does not age and is not learned over. False
    /// if the table is full.
    pub fn set_static(&mut self, key: MacKey, port: PortNo) -> bool {
        let slot = Slot { key: key.0, seen: STATIC << 16 | u64::from(port as u16) };
        match self.find(key) {
            Ok(at) => self.slots[at] = slot,
            Err(Some(at)) if self.len < self.entries_max => {
                self.slots[at] = slot;
                self.len += 1;
            }
            Err(_) => return false,
        }
        true
    }

    /// Forgets the address, set or learned. False if it was not known.
    pub fn remove(&mut self, key: MacKey) -> bool {
        self.find(key).map(|at| self.clear(at)).is_ok()
    }

    /// Forgets what was learned, behind `port` or behind all ports; what was set stays. Returns
    /// how many were forgotten.
    pub fn flush(&mut self, port: Option<PortNo>) -> usize {
        let gone =
            |slot: &&Slot| slot.moment() != STATIC && port.is_none_or(|port| slot.port() == port);
        let keys: Vec<MacKey> = self.taken().filter(gone).map(|slot| MacKey(slot.key)).collect();
        keys.iter().filter(|&&key| self.remove(key)).count()
    }

    /// The addresses that are known at `now`, in no order that means anything.
    pub fn iter(&self, now: Nanos) -> impl Iterator<Item = MacEntry> + '_ {
        let known = self.taken().filter(move |slot| !self.is_old(**slot, now));
        known.map(move |slot| {
            let (key, moment) = (MacKey(slot.key), slot.moment());
            let seen = Nanos(moment << MOMENT_SHIFT);
            let age = (moment != STATIC).then(|| now.since(seen));
            MacEntry { mac: key.mac(), vid: key.vid(), port: slot.port(), age }
        })
    }

    /// Forgets the silent addresses in the next `slots` slots, and comes round.
    pub fn sweep(&mut self, slots: usize, now: Nanos) {
        for _ in 0..slots.min(self.slots.len()) {
            let slot = self.slots[self.sweep_at];
            if slot.key != 0 && self.is_old(slot, now) {
                // Another entry may have moved here, so this slot is looked at again.
                self.clear(self.sweep_at);
                self.counters.aged += 1;
            } else {
                self.sweep_at = self.next(self.sweep_at);
            }
        }
    }

    /// Slots in all: what it takes to sweep everything.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    fn taken(&self) -> impl Iterator<Item = &Slot> + '_ {
        self.slots.iter().filter(|slot| slot.key != 0)
    }

    #[inline]
    fn is_old(&self, slot: Slot, now: Nanos) -> bool {
        slot.moment() != STATIC && moment(now).saturating_sub(slot.moment()) >= self.ageing
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (mix(key, self.seed) >> self.shift) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The slot that holds the key, or else the one where it would be put, if there is one.
    #[inline]
    fn find(&self, key: MacKey) -> Result<usize, Option<usize>> {
        let mut at = self.home(key.0);
        for _ in 0..PROBES_MAX {
            match self.slots[at].key {
                0 => return Err(Some(at)),
                taken if taken == key.0 => return Ok(at),
                _ => at = self.next(at),
            }
        }
        Err(None)
    }

    /// Empties a slot and closes the gap: entries behind it that may move nearer to their home do.
    fn clear(&mut self, mut gap: usize) {
        self.len -= 1;
        let mut at = gap;
        loop {
            at = self.next(at);
            let key = self.slots[at].key;
            if key == 0 {
                break;
            }
            let mask = self.slots.len() - 1;
            let (from_home, from_gap) = (at.wrapping_sub(self.home(key)), at.wrapping_sub(gap));
            if from_home & mask >= from_gap & mask {
                self.slots[gap] = self.slots[at];
                gap = at;
            }
        }
        self.slots[gap] = Slot::default();
    }
}

#[inline]
fn moment(now: Nanos) -> u64 {
    (now.0 >> MOMENT_SHIFT).min(STATIC - 1)
}

#[cfg(test)]
mod tests;
