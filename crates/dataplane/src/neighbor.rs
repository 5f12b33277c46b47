//! Neighbor cache: hardware addresses, pending requests, and frames that wait for replies.
//!
//! RFC 826 defines requests and learning. RFC 1122, section 2.3.2, and RFC 1812, section 3.3.2,
//! define ageing, the limit of one request per second and neighbor, and the queue of waiting
//! frames. A learned address is valid for `Timing::reachable`. If it was used in that time, a new
//! request is sent, and the address stays in use until the retries fail. Static addresses stay. The
//! table sends nothing itself: it returns `DueWork` items.
//!
//! Invariants:
//! - Only entries that wait for a reply have frames.
//! - Every entry that is not static is in the wheel.

use core::fmt::Debug;
use core::net::Ipv4Addr;
use std::collections::{HashMap, VecDeque};

use packet::frame::{Frame, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::hash::Seeded;
use crate::wheel::Wheel;

/// Default capacity.
pub const NEIGHBORS_MAX_DEFAULT: usize = 1 << 17;

/// Maximum number of neighbors with pending requests.
pub const ASKED_MAX: usize = 1024;

/// Maximum number of frames that wait for one neighbor.
pub const WAITING_FRAMES_MAX: usize = 8;

/// Maximum number of entries that one tick examines.
pub const STEPS_PER_TICK: usize = 4096;

/// Budget steps of removing a neighbor.
const FORGET_STEPS: usize = 8;

/// Timing of requests and of ageing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Lifetime of a learned address.
    pub reachable: Nanos,
    /// Interval between two requests.
    pub retry: Nanos,
    /// Number of requests before giving up.
    pub tries: u8,
}

/// A mirror of a neighbor table in another data plane, such as one in the kernel. The table asks
/// whether a neighbor was used before it expires.
pub trait NeighborMirror: Debug + Send + Sync {
    /// Sets the hardware address of a neighbor.
    fn set_neighbor(&mut self, place: Place, mac: Mac);

    /// Removes a neighbor.
    fn remove_neighbor(&mut self, place: Place);

    /// Returns whether a frame was sent to the neighbor since the last call.
    fn take_used(&mut self, place: Place) -> bool;
}

impl Default for Timing {
    fn default() -> Self {
        Timing { reachable: Nanos::from_secs(60), retry: Nanos::from_secs(1), tries: 3 }
    }
}

/// Number of a neighbor in its table. A number is reused after its neighbor is removed, so
/// [`NeighborTable::mac_at`] checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighborId(u32);

/// Port and address of a neighbor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The port of the link.
    pub port: PortNo,
    /// The IP address.
    pub address: Ipv4Addr,
}

/// State of a neighbor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighborState {
    /// The hardware address is static.
    Static(Mac),
    /// The hardware address was learned.
    Learned(Mac),
    /// A request is pending.
    Asked,
}

/// A frame that waits for a neighbor's address.
#[derive(Debug)]
pub struct WaitingFrame {
    /// The frame, complete except for the destination address.
    pub frame: Frame,
    /// The ingress port, or `None` if the router created the frame.
    pub from: Option<PortNo>,
}

/// Result of [`NeighborTable::wait`].
#[derive(Debug)]
pub enum Wait {
    /// The frame waits; the caller must send a request now.
    Ask,
    /// The frame waits for a pending request.
    Queued,
    /// The frame waits and replaced the oldest waiting frame.
    Displaced(WaitingFrame),
    /// The frame cannot wait: too many neighbors are known or pending.
    Refused(WaitingFrame),
}

/// Work that is due for a neighbor.
#[derive(Debug)]
pub enum DueWork {
    /// Send a request (again).
    Ask(Place),
    /// The neighbor did not reply: drop these frames.
    GivenUp(Place, VecDeque<WaitingFrame>),
}

#[derive(Debug)]
struct Neighbor {
    place: Place,
    known: NeighborState,
    /// Requests since the last reply.
    asked: u8,
    /// Whether a frame was sent there since the last reply.
    used: bool,
    waiting: VecDeque<WaitingFrame>,
}

/// The neighbors on all links.
#[derive(Debug)]
pub struct NeighborTable {
    entries: Vec<Option<Neighbor>>,
    free: Vec<u32>,
    by_place: HashMap<(u64, u64), u32, Seeded>,
    wheel: Wheel,
    timing: Timing,
    entries_max: usize,
    asked: usize,
    mirror: Option<Box<dyn NeighborMirror>>,
    /// Number of waiting frames.
    pub frames_waiting: usize,
}

impl NeighborTable {
    /// Creates an empty table for this many neighbors.
    pub fn new(entries_max: usize, timing: Timing, seed: u64) -> NeighborTable {
        NeighborTable {
            entries: Vec::new(),
            free: Vec::new(),
            by_place: HashMap::with_hasher(Seeded(seed)),
            wheel: Wheel::default(),
            timing,
            entries_max: entries_max.min(u32::MAX as usize - 1),
            asked: 0,
            mirror: None,
            frames_waiting: 0,
        }
    }

    /// Passes all known neighbors, and from now on every change, to a mirror. With `None`, passes
    /// nothing any more.
    pub fn set_mirror(&mut self, mut mirror: Option<Box<dyn NeighborMirror>>) {
        if let Some(mirror) = &mut mirror {
            for (place, known) in self.iter() {
                if let NeighborState::Static(mac) | NeighborState::Learned(mac) = known {
                    mirror.set_neighbor(place, mac);
                }
            }
        }
        self.mirror = mirror;
    }

    /// Returns the number of neighbors that are known or pending.
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Returns the capacity.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// Returns the number of a neighbor.
    #[inline]
    pub fn find(&self, place: Place) -> Option<NeighborId> {
        self.by_place.get(&key(place)).map(|&id| NeighborId(id))
    }

    /// Returns the hardware address of the neighbor with this number, if it still belongs to
    /// `place` and its address is known. Marks the entry as used.
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
            NeighborState::Static(mac) | NeighborState::Learned(mac) => Some(mac),
            NeighborState::Asked => None,
        }
    }

    /// Returns the neighbors, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (Place, NeighborState)> + '_ {
        self.entries.iter().flatten().map(|entry| (entry.place, entry.known))
    }

    /// Returns the upper bound of neighbor numbers (exclusive).
    pub fn places_end(&self) -> usize {
        self.entries.len()
    }

    /// Returns the neighbor with this number. A neighbor keeps its number until it is removed.
    pub fn at(&self, number: usize) -> Option<(Place, NeighborState)> {
        self.entries.get(number)?.as_ref().map(|entry| (entry.place, entry.known))
    }

    /// Sets a static address and returns the frames that waited for it. Returns `None` if the table
    /// is full.
    pub fn set(&mut self, place: Place, mac: Mac) -> Option<VecDeque<WaitingFrame>> {
        let id = self.find(place).or_else(|| self.add(place, NeighborState::Static(mac)))?;
        self.wheel.cancel(id.0);
        Some(self.answer(id, NeighborState::Static(mac)))
    }

    /// Learns a neighbor's address and returns the frames that waited for it. With `add`, an
    /// unknown neighbor is added; otherwise only a known or pending neighbor changes (RFC 826,
    /// "merge").
    pub fn learn(
        &mut self,
        place: Place,
        mac: Mac,
        add: bool,
        now: Nanos,
    ) -> VecDeque<WaitingFrame> {
        let known = self.find(place);
        let id =
            known.or_else(|| if add { self.add(place, NeighborState::Learned(mac)) } else { None });
        let Some(id) = id else { return VecDeque::new() };
        if matches!(self.entry(id).known, NeighborState::Static(_)) {
            return VecDeque::new();
        }
        self.wheel.schedule(id.0, now.saturating_add(self.timing.reachable));
        self.answer(id, NeighborState::Learned(mac))
    }

    /// Queues a frame until the address of the neighbor at `place` is known.
    pub fn wait(&mut self, place: Place, waiting: WaitingFrame, now: Nanos) -> Wait {
        let (id, ask) = match self.find(place) {
            Some(id) => (id, false),
            None if self.asked == ASKED_MAX => return Wait::Refused(waiting),
            None => match self.add(place, NeighborState::Asked) {
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

    /// Returns one item that is due at `now`. Each examined entry uses one of `steps`.
    pub fn due(&mut self, now: Nanos, steps: &mut usize) -> Option<DueWork> {
        while let Some(id) = self.wheel.pop(now, steps).map(NeighborId) {
            let (retry, tries) = (self.timing.retry, self.timing.tries);
            self.take_used(id);
            let entry = self.entry(id);
            let unused = matches!(entry.known, NeighborState::Learned(_)) && !entry.used;
            if !unused && entry.asked < tries {
                entry.asked += 1;
                let place = entry.place;
                self.wheel.schedule(id.0, now.saturating_add(retry));
                return Some(DueWork::Ask(place));
            }
            let entry = self.forget(id);
            if !entry.waiting.is_empty() {
                return Some(DueWork::GivenUp(entry.place, entry.waiting));
            }
        }
        None
    }

    /// Returns when to call [`NeighborTable::due`] again, if ever.
    pub fn next_due(&self) -> Option<Nanos> {
        self.wheel.next()
    }

    /// Removes a neighbor, static or learned, and returns the frames that waited for it. Returns
    /// `None` if it was unknown.
    pub fn remove(&mut self, place: Place) -> Option<VecDeque<WaitingFrame>> {
        let id = self.find(place)?;
        Some(self.forget(id).waiting)
    }

    /// Removes learned neighbors with numbers from `from` on, within `steps` steps, and returns how
    /// many. Static and pending neighbors stay. All others are removed when `from` has reached
    /// [`NeighborTable::places_end`].
    pub fn flush_some(&mut self, from: &mut usize, steps: &mut usize) -> usize {
        let mut removed = 0;
        while *steps > 0 && *from < self.entries.len() {
            let is_learned = matches!(self.at(*from), Some((_, NeighborState::Learned(_))));
            if is_learned {
                self.forget(NeighborId(*from as u32));
                removed += 1;
            }
            *from += 1;
            *steps = steps.saturating_sub(if is_learned { FORGET_STEPS } else { 1 });
        }
        removed
    }

    fn entry(&mut self, id: NeighborId) -> &mut Neighbor {
        self.entries[id.0 as usize].as_mut().expect("a used number has an entry")
    }

    fn add(&mut self, place: Place, known: NeighborState) -> Option<NeighborId> {
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

    /// Marks a neighbor as used if frames were sent there by the mirror.
    fn take_used(&mut self, id: NeighborId) {
        let place = self.entry(id).place;
        let is_used = self.mirror.as_mut().is_some_and(|mirror| mirror.take_used(place));
        self.entry(id).used |= is_used;
    }

    fn answer(&mut self, id: NeighborId, known: NeighborState) -> VecDeque<WaitingFrame> {
        let place = self.entry(id).place;
        if let (Some(mirror), NeighborState::Static(mac) | NeighborState::Learned(mac)) =
            (&mut self.mirror, known)
        {
            mirror.set_neighbor(place, mac);
        }
        let entry = self.entry(id);
        let was_asked = std::mem::replace(&mut entry.known, known) == NeighborState::Asked;
        entry.asked = 0;
        entry.used = false;
        let waiting = std::mem::take(&mut entry.waiting);
        self.asked -= usize::from(was_asked);
        self.frames_waiting -= waiting.len();
        waiting
    }

    fn forget(&mut self, id: NeighborId) -> Neighbor {
        self.wheel.cancel(id.0);
        let entry = self.entries[id.0 as usize].take().expect("only used numbers are removed");
        self.by_place.remove(&key(entry.place));
        if let Some(mirror) = &mut self.mirror {
            mirror.remove_neighbor(entry.place);
        }
        self.free.push(id.0);
        self.asked -= usize::from(entry.known == NeighborState::Asked);
        self.frames_waiting -= entry.waiting.len();
        entry
    }
}

fn key(place: Place) -> (u64, u64) {
    (u64::from(place.port), place.address.to_bits().into())
}

#[cfg(test)]
mod tests;
