//! A learning bridge: frames go to where their destination was last seen.
//!
//! IEEE 802.1D-2004 sections 7.7 to 7.9: relay, learning, filtering. A frame for an address behind
//! another port goes there, one for an address behind the same port goes nowhere, and one for an
//! unknown or group address goes to every other port. Addresses 01-80-C2-00-00-00 to 0F are never
//! relayed (section 7.12.6). Group addresses are never learned, and a frame that claims to come
//! from one is dropped, as Linux does.
//!
//! There is no spanning tree: whoever cables a loop gets a storm. Without `Learning::PerVlan`
//! tags are carried and not looked at.
//!
//! Invariant: every frame leaves as one or more copies, each queued or counted as dropped for one
//! reason, or is itself counted as dropped for one reason.

use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet::{self, Mac, TYPE_VLAN};
use packet::header::{array_at, u16_at, vlan};
use packet::time::Nanos;

use crate::counter::{DropCounters, DropReason};
use crate::forwarder::{Forwarder, Outputs, Sent};
use crate::mac_table::{ADDRESSES_MAX_DEFAULT, AGEING_DEFAULT, Learned, MacKey, MacTable};

/// Slots of the table that one tick sweeps.
pub const SWEEP_SLOTS: usize = 4096;

/// The longest pause between two sweeps.
pub const SWEEP_PAUSE_MAX: Nanos = Nanos::from_secs(1);

/// How a bridge is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Addresses that it can know.
    pub addresses_max: usize,
    /// Time after which a silent address is forgotten, `None` for never.
    pub ageing: Option<Nanos>,
    /// Whether VLANs are told apart.
    pub learning: Learning,
    /// What makes the places of addresses in the table unpredictable.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            addresses_max: ADDRESSES_MAX_DEFAULT,
            ageing: Some(AGEING_DEFAULT),
            learning: Learning::Shared,
            seed: 0x5eed,
        }
    }
}

/// Whether VLANs are told apart when addresses are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learning {
    /// An address is in one place, whatever the tags say (802.1D).
    Shared,
    /// An address may be in another place in each VLAN of the outermost tag.
    PerVlan,
}

/// Where a frame is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To this port.
    Port(PortNo),
    /// To every port but the one that it came in on.
    Flood,
    /// Nowhere.
    Nowhere(DropReason),
}

/// Frames by what was decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames that went to one known port.
    pub forwarded: u64,
    /// Frames for group addresses, which went to all ports.
    pub flooded_group: u64,
    /// Frames for unknown addresses, which went to all ports.
    pub flooded_unknown: u64,
}

/// A learning bridge.
#[derive(Debug)]
pub struct Bridge {
    ports: Vec<PortNo>,
    /// What it knows.
    pub table: MacTable,
    learning: Learning,
    /// Frames by what was decided.
    pub counters: BridgeCounters,
    /// Frames and copies that were lost.
    pub drops: DropCounters,
    /// Source, destination and decision of the previous frame of the batch, so that a run of frames
    /// between the same two stations is decided once.
    last: Option<((MacKey, MacKey), Destination)>,
}

impl Bridge {
    /// A bridge between these ports that knows nothing yet.
    pub fn new(ports: &[PortNo], settings: &Settings) -> Bridge {
        Bridge {
            ports: ports.to_vec(),
            table: MacTable::new(settings.addresses_max, settings.ageing, settings.seed),
            learning: settings.learning,
            counters: BridgeCounters::default(),
            drops: DropCounters::default(),
            last: None,
        }
    }

    /// The key of an address in a VLAN, as this bridge tells them apart.
    pub fn key(&self, mac: Mac, vid: u16) -> MacKey {
        match self.learning {
            Learning::Shared => MacKey::new(mac, 0),
            Learning::PerVlan => MacKey::new(mac, vid),
        }
    }

    /// Learns from a frame that `port` received, and says where it is to go. Counts nothing but
    /// what was learned: for whoever forwards by a bridge's knowledge and other rules besides.
    #[inline]
    pub fn decide(&mut self, port: PortNo, bytes: &[u8], now: Nanos) -> Destination {
        self.last = None;
        self.decide_run(port, bytes, now)
    }

    /// Where a frame is to go that no port of the bridge received: nothing is learned from it.
    pub fn look_up(&self, bytes: &[u8], now: Nanos) -> Destination {
        if bytes.len() < ethernet::HEADER_BYTES {
            return Destination::Nowhere(DropReason::TooShort);
        }
        let destination = array_at(bytes, 0);
        self.destination(PortNo::MAX, destination, MacKey::new(destination, self.vid(bytes)), now)
    }

    /// As [`Bridge::decide`], but a frame between the same stations as the one before it in the
    /// batch is not looked up again: nothing was learned in between.
    #[inline]
    fn decide_run(&mut self, port: PortNo, bytes: &[u8], now: Nanos) -> Destination {
        if bytes.len() < ethernet::HEADER_BYTES {
            return Destination::Nowhere(DropReason::TooShort);
        }
        let (destination, source): (Mac, Mac) = (array_at(bytes, 0), array_at(bytes, 6));
        let vid = self.vid(bytes);
        let keys = (MacKey::new(source, vid), MacKey::new(destination, vid));
        if let Some((_, decided)) = self.last.filter(|(last, _)| *last == keys) {
            return decided;
        }
        if ethernet::is_group(&source) || source == [0; 6] {
            return Destination::Nowhere(DropReason::BadSource);
        }
        let learned = self.table.learn(keys.0, port, now);
        let decided = self.destination(port, destination, keys.1, now);
        // What is not learned is counted for every frame.
        self.last = (learned != Learned::Full).then_some((keys, decided));
        decided
    }

    #[inline]
    fn destination(&self, port: PortNo, mac: Mac, key: MacKey, now: Nanos) -> Destination {
        if ethernet::is_group(&mac) {
            return match mac {
                [1, 0x80, 0xc2, 0, 0, 0..=0x0f] => {
                    Destination::Nowhere(DropReason::ReservedAddress)
                }
                _ => Destination::Flood,
            };
        }
        match self.table.lookup(key, now) {
            None => Destination::Flood,
            Some(place) if place == port => Destination::Nowhere(DropReason::SamePort),
            Some(place) => Destination::Port(place),
        }
    }

    /// The VLAN in which the frame's addresses are learned.
    #[inline]
    fn vid(&self, bytes: &[u8]) -> u16 {
        let tagged = self.learning == Learning::PerVlan
            && bytes.len() >= ethernet::HEADER_BYTES + vlan::TAG_BYTES
            && u16_at(bytes, 12) == TYPE_VLAN;
        if tagged { u16_at(bytes, 14) & vlan::VID_MASK } else { 0 }
    }

    fn send(&mut self, port: PortNo, frame: &mut Frame, to: Destination, out: &mut Outputs) {
        match to {
            Destination::Nowhere(why) => self.drops.add(why),
            Destination::Port(place) => {
                self.counters.forwarded += 1;
                self.account(out.send(place, frame));
            }
            Destination::Flood => self.flood(port, frame, out),
        }
    }

    fn flood(&mut self, port: PortNo, frame: &mut Frame, out: &mut Outputs) {
        match frame.bytes()[0] & 1 {
            0 => self.counters.flooded_unknown += 1,
            _ => self.counters.flooded_group += 1,
        }
        let Some(last) = self.ports.iter().rposition(|&other| other != port) else {
            return self.drops.add(DropReason::NoDestination);
        };
        for place in 0..last {
            if self.ports[place] != port {
                self.account(out.send_copy(self.ports[place], frame));
            }
        }
        self.account(out.send(self.ports[last], frame));
    }

    #[inline]
    fn account(&mut self, sent: Sent) {
        match sent {
            Sent::Queued => {}
            Sent::QueueFull => self.drops.add(DropReason::OutputQueueFull),
            Sent::NoSuchPort => self.drops.add(DropReason::NoSuchPort),
        }
    }

    /// Sets the port behind which an address is: it does not age and is not learned over. False
    /// if the table is full.
    pub fn set_static(&mut self, mac: Mac, vid: u16, port: PortNo) -> bool {
        let key = self.key(mac, vid);
        self.table.set_static(key, port)
    }
}

impl Forwarder for Bridge {
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.last = None;
        for frame in batch.frames_mut() {
            let to = self.decide_run(port, frame.bytes(), now);
            self.send(port, frame, to, out);
        }
    }

    /// Sweeps a part of the table; addresses that are too old count as forgotten before that.
    fn tick(&mut self, now: Nanos, _out: &mut Outputs) -> Option<Nanos> {
        self.table.sweep(SWEEP_SLOTS, now);
        let rounds = self.table.slots().div_ceil(SWEEP_SLOTS) as u64;
        Some(now.saturating_add(Nanos(SWEEP_PAUSE_MAX.0 / rounds)))
    }
}

#[cfg(test)]
mod tests;
