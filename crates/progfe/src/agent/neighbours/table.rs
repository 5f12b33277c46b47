//! Whose hardware address is known, who is being asked, and what waits for the answer.
//!
//! RFC 1122 section 2.3.2 and RFC 4861 section 7.3: who is not known is asked once a second, three times; who
//! is known is asked again, by himself, when his answer is a minute old, is used meanwhile, and is
//! forgotten when he does not answer. Addresses of both kinds of IP lie in one table.
//!
//! Invariant: every entry is in `due` exactly once; only who is asked for the first time has frames waiting.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::lfb::told::ToldFrame;

/// Neighbours that are kept.
pub const NEIGHBOURS_MAX: usize = 4096;
/// Neighbours that are asked for the first time at once.
pub const ASKED_MAX: usize = 256;
/// Frames that wait for one answer.
pub const WAITING_MAX: usize = 8;
/// How long an answer is good.
pub const REACHABLE: Nanos = Nanos::from_secs(60);
/// Time between two questions.
pub const RETRY: Nanos = Nanos::from_secs(1);
/// Questions before giving up.
pub const TRIES: u8 = 3;

/// Where a neighbour is: the place of its interface, and its address.
pub type Place = (usize, IpAddr);

/// The table.
#[derive(Debug, Default)]
pub struct Table {
    entries: BTreeMap<Place, Entry>,
    due: BTreeSet<(Nanos, Place)>,
    asked: usize,
}

#[derive(Debug)]
struct Entry {
    /// Known, if it ever answered.
    mac: Option<Mac>,
    tries: u8,
    due: Nanos,
    waiting: VecDeque<ToldFrame>,
}

/// What is to be done about a neighbour that is due.
#[derive(Debug)]
pub enum Due {
    /// He is to be asked: by himself if he was known.
    Ask(Option<Mac>),
    /// He does not answer: what waited for him.
    Gone(VecDeque<ToldFrame>),
}

/// What became of a frame for a neighbour.
#[derive(Debug)]
pub enum Wanted {
    /// He is known already.
    Known(Mac, ToldFrame),
    /// It waits; he is to be asked now if this is the first.
    Waits(bool),
    /// There is no room: the oldest frame is gone, or this one.
    Lost,
}

impl Table {
    /// Neighbours that are known.
    pub fn known(&self) -> impl Iterator<Item = (&Place, Mac)> {
        self.entries.iter().filter_map(|(place, entry)| Some((place, entry.mac?)))
    }

    /// The hardware address of a neighbour.
    pub fn mac(&self, place: Place) -> Option<Mac> {
        self.entries.get(&place)?.mac
    }

    /// Neighbours that are asked for the first time.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// A frame is for a neighbour.
    pub fn want(&mut self, place: Place, told: ToldFrame, now: Nanos) -> Wanted {
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

    /// A neighbour said his address. Who is not in the table is added only if `add`. Whether his
    /// address is new, and what waited for him.
    pub fn learn(
        &mut self,
        place: Place,
        mac: Mac,
        add: bool,
        now: Nanos,
    ) -> Option<(bool, VecDeque<ToldFrame>)> {
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

    /// When the next neighbour is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next neighbour that is due by now.
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
