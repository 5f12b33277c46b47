//! Timing wheel: finds the next due entries at a constant cost per entry.
//!
//! After G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987), scheme 7.
//! Level 0 has a slot for each of the next 64 ticks. Level 1 has a slot for each 64 of those, and
//! so on over the whole range of the clock. An entry is on the level of the highest group of six
//! bits in which its due tick differs from the current one. It moves down when its slot is reached.
//!
//! Invariant: no occupied slot begins before the current tick, except the slot that is being moved
//! to lower levels. The slot that begins first is processed next.

use packet::time::Nanos;

/// Length of a tick: entries are returned up to this much late, and never early.
pub const TICK: Nanos = Nanos::from_millis(10);

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Number of levels for all bits of a tick count.
const LEVELS: usize = 64_usize.div_ceil(SLOT_BITS as usize);
const NONE: u32 = u32::MAX;

/// Entries (numbers from the owner) and their due times.
#[derive(Debug)]
pub struct Wheel {
    /// Tick up to which all entries have been removed.
    current: u64,
    /// For each level, one bit per non-empty slot.
    occupied: [u64; LEVELS],
    heads: Vec<u32>,
    links: Vec<Link>,
}

/// An entry's links in the list of its slot.
#[derive(Debug, Clone, Copy)]
struct Link {
    due: u64,
    next: u32,
    previous: u32,
    /// Level times [`SLOTS`] plus slot, or `NONE` if the entry is not in the wheel.
    slot: u32,
}

const UNLINKED: Link = Link { due: 0, next: NONE, previous: NONE, slot: NONE };

impl Default for Wheel {
    fn default() -> Self {
        Wheel {
            current: 0,
            occupied: [0; LEVELS],
            heads: vec![NONE; LEVELS * SLOTS],
            links: Vec::new(),
        }
    }
}

impl Wheel {
    /// Schedules `entry`, and replaces an earlier schedule.
    pub fn schedule(&mut self, entry: u32, due: Nanos) {
        self.cancel(entry);
        if self.links.len() <= entry as usize {
            self.links.resize(entry as usize + 1, UNLINKED);
        }
        self.link(entry, due.0.div_ceil(TICK.0).max(self.current));
    }

    /// Removes `entry`, if it is in the wheel.
    pub fn cancel(&mut self, entry: u32) {
        let Some(link) = self.links.get(entry as usize).copied() else { return };
        if link.slot == NONE {
            return;
        }
        match link.previous {
            NONE => self.heads[link.slot as usize] = link.next,
            previous => self.links[previous as usize].next = link.next,
        }
        if link.next != NONE {
            self.links[link.next as usize].previous = link.previous;
        }
        if self.heads[link.slot as usize] == NONE {
            let (level, slot) = (link.slot as usize / SLOTS, link.slot as usize % SLOTS);
            self.occupied[level] &= !(1 << slot);
        }
        self.links[entry as usize] = UNLINKED;
    }

    /// Removes and returns an entry that is due at `now`. Each entry touched uses one of `steps`.
    /// If the steps are exhausted, `None` does not mean that nothing is due.
    pub fn pop(&mut self, now: Nanos, steps: &mut usize) -> Option<u32> {
        let now = now.0 / TICK.0;
        while *steps > 0 {
            let Some((level, slot, start)) = self.next_slot().filter(|next| next.2 <= now) else {
                self.current = self.current.max(now);
                return None;
            };
            *steps -= 1;
            self.current = start;
            let entry = self.heads[level * SLOTS + slot];
            let due = self.links[entry as usize].due;
            self.cancel(entry);
            if due <= start {
                return Some(entry);
            }
            self.link(entry, due);
        }
        None
    }

    /// Returns when to call [`Wheel::pop`] next: no entry is due before, but none may be due then.
    pub fn next(&self) -> Option<Nanos> {
        let (_, _, start) = self.next_slot()?;
        Some(Nanos(start.saturating_mul(TICK.0)))
    }

    /// Returns level, slot and first tick of the next occupied slot.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let occupied = (0..LEVELS).filter(|&level| self.occupied[level] != 0);
        // The last entries of a slot that is being moved to lower levels precede these.
        let next = occupied.map(|level| self.first_slot(level)).min_by_key(|next| next.2);
        next.map(|(level, slot, start)| (level, slot, start.max(self.current)))
    }

    fn first_slot(&self, level: usize) -> (usize, usize, u64) {
        let slot = self.occupied[level].trailing_zeros();
        let shift = level as u32 * SLOT_BITS;
        let above = shift + SLOT_BITS;
        let turn = if above < u64::BITS { self.current >> above << above } else { 0 };
        (level, slot as usize, turn | (u64::from(slot) << shift))
    }

    /// Adds an unlinked entry to the slot of a tick that is not over.
    fn link(&mut self, entry: u32, due: u64) {
        debug_assert!(due >= self.current);
        let highest_bit = 63 - ((due ^ self.current) | 1).leading_zeros();
        let level = (highest_bit / SLOT_BITS) as usize;
        let slot = (due >> (level as u32 * SLOT_BITS)) as usize % SLOTS;
        let place = level * SLOTS + slot;
        let next = self.heads[place];
        if next != NONE {
            self.links[next as usize].previous = entry;
        }
        self.heads[place] = entry;
        self.occupied[level] |= 1 << slot;
        self.links[entry as usize] = Link { due, next, previous: NONE, slot: place as u32 };
    }
}

#[cfg(test)]
mod tests;
