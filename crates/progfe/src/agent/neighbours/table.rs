//! Neighbour table: known hardware addresses, pending requests and waiting frames.
//!
//! Timing follows RFC 1122 section 2.3.2 and RFC 4861 section 7.3:
//!
//! - The agent requests an unknown address once a second, three times.
//! - One minute after its last reply, a known neighbour gets a unicast request. Until it replies,
//!   its address remains in use.
//! - A neighbour that does not reply is removed.
//!
//! One table contains both IPv4 and IPv6 addresses.
//!
//! Invariants: every entry is in `due` exactly once. Frames wait only for neighbours whose first
//! request is pending.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::lfb::exceptions::DivertedFrame;

/// Maximum number of neighbours in the table.
pub const NEIGHBOURS_MAX: usize = 4096;
/// Maximum number of pending first requests.
pub const ASKED_MAX: usize = 256;
/// Maximum number of frames that wait for one reply.
pub const WAITING_MAX: usize = 8;
/// Lifetime of a reply.
pub const REACHABLE: Nanos = Nanos::from_secs(60);
/// Interval between two requests.
pub const RETRY: Nanos = Nanos::from_secs(1);
/// Number of requests before giving up.
pub const TRIES: u8 = 3;

/// Key of a neighbour: index of its interface, and IP address.
pub type Place = (usize, IpAddr);

/// The neighbour table.
#[derive(Debug, Default)]
pub struct Table {
    entries: BTreeMap<Place, Entry>,
    due: BTreeSet<(Nanos, Place)>,
    asked: usize,
}

#[derive(Debug)]
struct Entry {
    /// Hardware address, after the first reply.
    mac: Option<Mac>,
    tries: u8,
    due: Nanos,
    waiting: VecDeque<DivertedFrame>,
}

/// Action for a neighbour that is due.
#[derive(Debug)]
pub enum Due {
    /// Send a request, by unicast if its hardware address is known.
    Ask(Option<Mac>),
    /// The neighbour does not reply. Contains the frames that waited for it.
    Gone(VecDeque<DivertedFrame>),
}

/// Result for a frame to a neighbour.
#[derive(Debug)]
pub enum Wanted {
    /// The neighbour is known.
    Known(Mac, DivertedFrame),
    /// The frame waits. True if a request must be sent now.
    Waits(bool),
    /// There is no room: the oldest frame or this one was dropped.
    Lost,
}

impl Table {
    /// Returns the known neighbours.
    pub fn known(&self) -> impl Iterator<Item = (&Place, Mac)> {
        self.entries.iter().filter_map(|(place, entry)| Some((place, entry.mac?)))
    }

    /// Returns the hardware address of a neighbour.
    pub fn mac(&self, place: Place) -> Option<Mac> {
        self.entries.get(&place)?.mac
    }

    /// Returns the number of pending first requests.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Looks up the neighbour of a frame, or queues the frame.
    pub fn want(&mut self, place: Place, told: DivertedFrame, now: Nanos) -> Wanted {
        if let Some(entry) = self.entries.get_mut(&place) {
            if let Some(mac) = entry.mac {
                return Wanted::Known(mac, told);
            }
            entry.waiting.push_back(told);
            if entry.waiting.len() > WAITING_MAX {
                entry.waiting.pop_front();
                return Wanted::Lost;
            }
            return Wanted::Waits(false);
        }
        if self.asked == ASKED_MAX || self.entries.len() == NEIGHBOURS_MAX {
            return Wanted::Lost;
        }
        self.asked += 1;
        let due = now.saturating_add(RETRY);
        self.due.insert((due, place));
        self.entries.insert(place, Entry { mac: None, tries: 1, due, waiting: [told].into() });
        Wanted::Waits(true)
    }

    /// Learns the hardware address of a neighbour. Adds an unknown neighbour only if `add` is set.
    /// Returns whether the address is new, and the frames that waited.
    pub fn learn(
        &mut self,
        place: Place,
        mac: Mac,
        add: bool,
        now: Nanos,
    ) -> Option<(bool, VecDeque<DivertedFrame>)> {
        let due = now.saturating_add(REACHABLE);
        if let Some(entry) = self.entries.get_mut(&place) {
            self.due.remove(&(entry.due, place));
            self.due.insert((due, place));
            self.asked -= usize::from(entry.mac.is_none());
            let is_new = entry.mac != Some(mac);
            (entry.mac, entry.tries, entry.due) = (Some(mac), 0, due);
            return Some((is_new, std::mem::take(&mut entry.waiting)));
        }
        if !add || self.entries.len() == NEIGHBOURS_MAX {
            return None;
        }
        self.due.insert((due, place));
        let entry = Entry { mac: Some(mac), tries: 0, due, waiting: VecDeque::new() };
        self.entries.insert(place, entry);
        Some((true, VecDeque::new()))
    }

    /// Returns the time at which the next neighbour is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns the next neighbour that is due by now.
    pub fn take_due(&mut self, now: Nanos) -> Option<(Place, Due)> {
        let (due, place) = *self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, place));
        let entry = self.entries.get_mut(&place)?;
        if entry.tries < TRIES {
            entry.tries += 1;
            entry.due = now.saturating_add(RETRY);
            self.due.insert((entry.due, place));
            return Some((place, Due::Ask(entry.mac)));
        }
        let entry = self.entries.remove(&place)?;
        self.asked -= usize::from(entry.mac.is_none());
        Some((place, Due::Gone(entry.waiting)))
    }
}
