//! Whose hardware address is known, who is being asked, and which frames wait for the answer.
//!
//! RFC 826 for what is asked and learned, RFC 1122 section 2.3.2 and RFC 1812 section 3.3.2 for
//! ageing, the limit on questions (one a second for each neighbour) and the queue of frames that
//! wait. A learned address is used for `Timing::reachable`; if it was used in that time it is
//! asked for again, used meanwhile, and forgotten when no answer comes. Addresses that were set
//! stay. The table asks and sends nothing itself: it says what is `Due`.
//!
//! Invariant: an entry that waits, and no other, has frames; every entry that was not set is in
//! the wheel.

use core::net::Ipv4Addr;
use std::collections::{HashMap, VecDeque};

use packet::frame::{Frame, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::hash::Seeded;
use crate::wheel::Wheel;

/// Neighbours that a table holds unless told otherwise.
pub const NEIGHBORS_MAX_DEFAULT: usize = 1 << 17;

/// Neighbours that may be asked for at the same time.
pub const ASKED_MAX: usize = 1024;

/// Frames that may wait for one neighbour's address.
pub const WAITING_FRAMES_MAX: usize = 8;

/// Entries that one tick looks at.
pub const STEPS_PER_TICK: usize = 4096;

/// When questions are repeated and answers forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long an answer is good.
    pub reachable: Nanos,
    /// Pause between two questions.
    pub retry: Nanos,
    /// Questions before giving up.
    pub tries: u8,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { reachable: Nanos::from_secs(60), retry: Nanos::from_secs(1), tries: 3 }
    }
}

/// The number of a neighbour in its table. It may be given to another when its neighbour is
/// forgotten, so [`NeighborTable::mac_at`] checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborId(u32);

/// Where a neighbour is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The port of the link.
    pub port: PortNo,
    /// Its address.
    pub address: Ipv4Addr,
}

/// What is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Its address was set.
    Static(Mac),
    /// It said its address.
    Learned(Mac),
    /// It is being asked.
    Asked,
}

/// A frame that waits for a neighbour's address.
#[derive(Debug)]
pub struct Waiting {
    /// The frame, finished but for the destination address.
    pub frame: Frame,
    /// The port that it came in on, or `None` if the router made it.
    pub from: Option<PortNo>,
}

/// What became of a frame that should wait.
#[derive(Debug)]
pub enum Wait {
    /// It waits, and the neighbour is to be asked now.
    Ask,
    /// It waits, and the neighbour was asked before.
    Queued,
    /// It waits, and the oldest that waited had to make room.
    Displaced(Waiting),
    /// It cannot wait: too many neighbours are known or asked.
    Refused(Waiting),
}

/// What is due for a neighbour.
#[derive(Debug)]
pub enum Due {
    /// Ask it (again).
    Ask(Place),
    /// It did not answer: these frames waited in vain.
    GivenUp(Place, VecDeque<Waiting>),
}

#[derive(Debug)]
struct Neighbor {
    place: Place,
    known: Known,
    /// Questions since the last answer.
    asked: u8,
    /// Whether a frame went there since the last answer.
    used: bool,
    waiting: VecDeque<Waiting>,
}

/// The neighbours on all links.
#[derive(Debug)]
pub struct NeighborTable {
    entries: Vec<Option<Neighbor>>,
    free: Vec<u32>,
    by_place: HashMap<(u64, u64), u32, Seeded>,
    wheel: Wheel,
    timing: Timing,
    entries_max: usize,
    asked: usize,
    /// Frames that wait now.
    pub frames_waiting: usize,
}

impl NeighborTable {
    /// An empty table for this many neighbours.
    pub fn new(entries_max: usize, timing: Timing, seed: u64) -> NeighborTable {
        NeighborTable {
            entries: Vec::new(),
            free: Vec::new(),
            by_place: HashMap::with_hasher(Seeded(seed)),
            wheel: Wheel::default(),
            timing,
            entries_max: entries_max.min(u32::MAX as usize - 1),
            asked: 0,
            frames_waiting: 0,
        }
    }

    /// Neighbours that are known or asked.
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The number of the neighbour at a place.
    #[inline]
    pub fn find(&self, place: Place) -> Option<NeighborId> {
        self.by_place.get(&key(place)).map(|&id| NeighborId(id))
    }

    /// The hardware address of the neighbour with this number, if it still is the one at `place`
    /// and its address is known. Notes that it is used.
    #[inline]
    pub fn mac_at(&mut self, id: NeighborId, place: Place) -> Option<Mac> {
        let entry = self.entries.get_mut(id.0 as usize)?.as_mut()?;
        if entry.place != place {
            return None;
        }
        if !entry.used {
            entry.used = true;
        }
        match entry.known {
            Known::Static(mac) | Known::Learned(mac) => Some(mac),
            Known::Asked => None,
        }
    }

    /// The neighbours, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Place, Known)> + '_ {
        self.entries.iter().flatten().map(|entry| (entry.place, entry.known))
    }

    /// Numbers of neighbours are below this.
    pub fn places_end(&self) -> usize {
        self.entries.len()
    }

    /// The neighbour of this number, which it keeps as long as it is known.
    pub fn at(&self, number: usize) -> Option<(Place, Known)> {
        self.entries.get(number)?.as_ref().map(|entry| (entry.place, entry.known))
    }

    /// Sets a neighbour's address, which then stays; frames that waited for it are returned. `None`
    /// if the table is full.
    pub fn set(&mut self, place: Place, mac: Mac) -> Option<VecDeque<Waiting>> {
        let id = self.find(place).or_else(|| self.add(place, Known::Static(mac)))?;
        self.wheel.cancel(id.0);
        Some(self.answer(id, Known::Static(mac)))
    }

    /// Takes in that a neighbour said its address; frames that waited for it are returned. With
    /// `add` it is added if it was not known; otherwise only what was known or asked changes (RFC
    /// 826, "merge").
    pub fn learn(&mut self, place: Place, mac: Mac, add: bool, now: Nanos) -> VecDeque<Waiting> {
        let known = self.find(place);
        let id = known.or_else(|| if add { self.add(place, Known::Learned(mac)) } else { None });
        let Some(id) = id else { return VecDeque::new() };
        if matches!(self.entry(id).known, Known::Static(_)) {
            return VecDeque::new();
        }
        self.wheel.schedule(id.0, now.saturating_add(self.timing.reachable));
        self.answer(id, Known::Learned(mac))
    }

    /// Lets a frame wait for the address of the neighbour at `place`, which is not known.
    pub fn wait(&mut self, place: Place, waiting: Waiting, now: Nanos) -> Wait {
        let (id, ask) = match self.find(place) {
            Some(id) => (id, false),
            None if self.asked == ASKED_MAX => return Wait::Refused(waiting),
            None => match self.add(place, Known::Asked) {
                Some(id) => (id, true),
                None => return Wait::Refused(waiting),
            },
        };
        if ask {
            self.asked += 1;
            self.entry(id).asked = 1;
            self.wheel.schedule(id.0, now.saturating_add(self.timing.retry));
        }
        let entry = self.entry(id);
        entry.waiting.push_back(waiting);
        let displaced = match entry.waiting.len() {
            length if length > WAITING_FRAMES_MAX => entry.waiting.pop_front(),
            _ => None,
        };
        match displaced {
            Some(oldest) => Wait::Displaced(oldest),
            None => {
                self.frames_waiting += 1;
                if ask { Wait::Ask } else { Wait::Queued }
            }
        }
    }

    /// What is due at `now`, one thing a call; each entry looked at on the way uses one of `steps`.
    pub fn due(&mut self, now: Nanos, steps: &mut usize) -> Option<Due> {
        while let Some(id) = self.wheel.pop(now, steps).map(NeighborId) {
            let (retry, tries) = (self.timing.retry, self.timing.tries);
            let entry = self.entry(id);
            let unused = matches!(entry.known, Known::Learned(_)) && !entry.used;
            if !unused && entry.asked < tries {
                entry.asked += 1;
                let place = entry.place;
                self.wheel.schedule(id.0, now.saturating_add(retry));
                return Some(Due::Ask(place));
            }
            let entry = self.forget(id);
            if !entry.waiting.is_empty() {
                return Some(Due::GivenUp(entry.place, entry.waiting));
            }
        }
        None
    }

    /// When to ask what is due again, if ever.
    pub fn next_due(&self) -> Option<Nanos> {
        self.wheel.next()
    }

    /// Forgets a neighbour, set or learned; frames that waited for it are returned. `None` if it
    /// was not known.
    pub fn remove(&mut self, place: Place) -> Option<VecDeque<Waiting>> {
        let id = self.find(place)?;
        Some(self.forget(id).waiting)
    }

    /// Forgets all neighbours whose address was learned. Those that are asked stay.
    pub fn flush(&mut self) -> usize {
        let learned = |(place, known)| matches!(known, Known::Learned(_)).then_some(place);
        let places: Vec<Place> = self.iter().filter_map(learned).collect();
        places.iter().filter_map(|&place| self.remove(place)).count()
    }

    fn entry(&mut self, id: NeighborId) -> &mut Neighbor {
        self.entries[id.0 as usize].as_mut().expect("numbers that are in use have an entry")
    }

    fn add(&mut self, place: Place, known: Known) -> Option<NeighborId> {
        if self.by_place.len() >= self.entries_max {
            return None;
        }
        let waiting = VecDeque::new();
        let entry = Some(Neighbor { place, known, asked: 0, used: false, waiting });
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.by_place.insert(key(place), id);
        Some(NeighborId(id))
    }

    fn answer(&mut self, id: NeighborId, known: Known) -> VecDeque<Waiting> {
        let entry = self.entry(id);
        let was_asked = std::mem::replace(&mut entry.known, known) == Known::Asked;
        entry.asked = 0;
        entry.used = false;
        let waiting = std::mem::take(&mut entry.waiting);
        self.asked -= usize::from(was_asked);
        self.frames_waiting -= waiting.len();
        waiting
    }

    fn forget(&mut self, id: NeighborId) -> Neighbor {
        self.wheel.cancel(id.0);
        let entry = self.entries[id.0 as usize].take().expect("only known numbers are forgotten");
        self.by_place.remove(&key(entry.place));
        self.free.push(id.0);
        self.asked -= usize::from(entry.known == Known::Asked);
        self.frames_waiting -= entry.waiting.len();
        entry
    }
}

fn key(place: Place) -> (u64, u64) {
    (u64::from(place.port), place.address.to_bits().into())
}

#[cfg(test)]
mod tests;
