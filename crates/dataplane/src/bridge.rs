//! Learning bridge.
//!
//! Source: IEEE 802.1D-2004, sections 7.7 to 7.9 (relay, learning, filtering).
//! - A frame for an address at another port is sent there; one for an address at the ingress port
//!   is filtered.
//! - A frame for an unknown or group address is flooded to all other ports.
//! - Addresses 01-80-C2-00-00-00 to 0F are never relayed (section 7.12.6).
//! - Group addresses are never learned. A frame with a group address as source is dropped, as in
//!   Linux.
//!
//! Frames are processed in rows. First, the memory for all lookups is prefetched. Then each frame
//! is decided with what was learned from the frames before it. Frames in receive buffers need only
//! their first bytes, unless one of the row goes to several ports.
//!
//! There is no spanning tree: a loop causes a broadcast storm. Without `Learning::PerVlan`, tags
//! are forwarded and ignored.
//!
//! Invariant: a frame either leaves as one or more copies, or is counted as dropped with one
//! reason. Each copy is queued, or counted as dropped with one reason.

use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet::{self, Mac, TYPE_VLAN};
use packet::header::{array_at, u16_at, vlan};
use packet::time::Nanos;

use crate::counter::{DropCounters, DropReason};
use crate::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, Outputs, PendingBatch, SIGHTS_MAX, Sent,
};
use crate::mac_table::{ADDRESSES_MAX_DEFAULT, AGEING_DEFAULT, Hint, Learned, MacKey, MacTable};

mod batch;

use batch::{BatchAddresses, Pair};

/// Maximum number of addresses that one tick examines: few, so that no frame waits for long.
pub const AGE_STEPS: usize = 256;

/// Maximum interval between two ageing runs.
pub const AGE_PAUSE_MAX: Nanos = Nanos::from_secs(1);

/// Settings of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Capacity of the MAC table.
    pub addresses_max: usize,
    /// Ageing time; `None` disables ageing.
    pub ageing: Option<Nanos>,
    /// Whether VLANs have separate addresses.
    pub learning: Learning,
    /// Secret for hashing addresses.
    pub seed: u64,
    /// Number of hash buckets with linked lists; `None` for a table whose lookups take the same
    /// time at every size.
    pub hash_buckets: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            addresses_max: ADDRESSES_MAX_DEFAULT,
            ageing: Some(AGEING_DEFAULT),
            learning: Learning::Shared,
            seed: 0x5eed,
            hash_buckets: None,
        }
    }
}

/// Whether VLANs have separate addresses (shared or independent learning).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learning {
    /// An address has one port, regardless of tags (802.1D).
    Shared,
    /// An address may have a different port in each VLAN of the outermost tag.
    PerVlan,
}

/// Destination of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// This port.
    Port(PortNo),
    /// Every port but the ingress port.
    Flood,
    /// None: the frame is dropped.
    Nowhere(DropReason),
}

/// Numbers of frames by destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BridgeCounters {
    /// Frames to one known port.
    pub forwarded: u64,
    /// Flooded frames with group addresses.
    pub flooded_group: u64,
    /// Flooded frames with unknown addresses.
    pub flooded_unknown: u64,
}

/// A learning bridge.
#[derive(Debug)]
pub struct Bridge {
    ports: Vec<PortNo>,
    /// MAC address table.
    pub table: MacTable,
    learning: Learning,
    /// Numbers of frames by destination.
    pub counters: BridgeCounters,
    /// Dropped frames and copies.
    pub drops: DropCounters,
    /// The current frames.
    row: Box<BatchAddresses>,
    /// The next frames, if they are known: the memory for their lookups is being prefetched.
    ahead: Box<BatchAddresses>,
    /// Whether `ahead` has frames.
    is_ahead: bool,
}

impl Bridge {
    /// Creates a bridge between these ports with an empty MAC table.
    pub fn new(ports: &[PortNo], settings: &Settings) -> Bridge {
        let table = MacTable::new(settings.addresses_max, settings.ageing, settings.seed);
        let table = match settings.hash_buckets {
            Some(buckets) => table.with_hash_buckets(buckets),
            None => table,
        };
        Bridge {
            ports: ports.to_vec(),
            table,
            learning: settings.learning,
            counters: BridgeCounters::default(),
            drops: DropCounters::default(),
            row: Box::default(),
            ahead: Box::default(),
            is_ahead: false,
        }
    }

    /// Returns whether VLANs have separate addresses.
    pub fn learning(&self) -> Learning {
        self.learning
    }

    /// Returns the table key of an address in a VLAN.
    pub fn key(&self, mac: Mac, vid: u16) -> MacKey {
        match self.learning {
            Learning::Shared => MacKey::new(mac, 0),
            Learning::PerVlan => MacKey::new(mac, vid),
        }
    }

    /// Learns from a frame that `port` received, and returns its destination. Updates the learning
    /// counters only: for callers that apply further rules.
    #[inline]
    pub fn decide_one(&mut self, port: PortNo, bytes: &[u8], now: Nanos) -> Destination {
        match Pair::of(bytes, self.learning) {
            Err(why) => Destination::Nowhere(why),
            Ok(pair) => {
                let hints = pair.hints(&self.table);
                self.learn_and_find(&pair, hints, port, now).1
            }
        }
    }

    /// Returns the destination of a frame that no port of the bridge received; learns nothing.
    pub fn look_up(&self, bytes: &[u8], now: Nanos) -> Destination {
        if bytes.len() < ethernet::HEADER_BYTES {
            return Destination::Nowhere(DropReason::TooShort);
        }
        let key = MacKey::new(array_at(bytes, 0), vid_of(bytes, self.learning));
        self.find(key, self.table.hint(key), PortNo::MAX, now)
    }

    /// Learns the source, and returns the result and the frame's destination.
    #[inline]
    fn learn_and_find(
        &mut self,
        pair: &Pair,
        hints: [Hint; 2],
        port: PortNo,
        now: Nanos,
    ) -> (Learned, Destination) {
        let learned = self.table.learn_at(pair.source, hints[0], port, now);
        (learned, self.find(pair.destination, hints[1], port, now))
    }

    #[inline]
    fn find(&self, key: MacKey, hint: Hint, port: PortNo, now: Nanos) -> Destination {
        if key.is_group() {
            return match key.mac() {
                [1, 0x80, 0xc2, 0, 0, 0..=0x0f] => {
                    Destination::Nowhere(DropReason::ReservedAddress)
                }
                _ => Destination::Flood,
            };
        }
        match self.table.lookup_at(key, hint, now) {
            None => Destination::Flood,
            Some(place) if place == port => Destination::Nowhere(DropReason::SamePort),
            Some(place) => Destination::Port(place),
        }
    }

    /// Decides the frames of the row in order. Returns whether each has at most one destination,
    /// which is a port of this bridge.
    #[inline]
    fn conclude(&mut self, port: PortNo, now: Nanos) -> bool {
        let mut last: Option<(Pair, Destination)> = None;
        let mut plain = true;
        let mut known = port;
        for place in 0..self.row.count() {
            let to = match self.row.pair(place) {
                Err(why) => Destination::Nowhere(why),
                // Nothing was learned in between.
                Ok(pair) => match last.filter(|(other, _)| *other == pair) {
                    Some((_, decided)) => decided,
                    None => {
                        let hints = self.row.hints(place);
                        let (learned, decided) = self.learn_and_find(&pair, hints, port, now);
                        // A full table counts every frame that it cannot learn from.
                        last = (learned != Learned::Full).then_some((pair, decided));
                        decided
                    }
                },
            };
            plain &= match to {
                Destination::Flood => false,
                Destination::Nowhere(_) => true,
                Destination::Port(place) => {
                    place == known || {
                        known = place;
                        self.ports.contains(&place)
                    }
                }
            };
            self.row.set(place, to);
        }
        plain
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

    /// Sets a static address: it does not age and is not learned at another port. Returns false if
    /// the table is full.
    pub fn set_static(&mut self, mac: Mac, vid: u16, port: PortNo) -> bool {
        let key = self.key(mac, vid);
        self.table.set_static(key, port)
    }
}

impl Forwarder for Bridge {
    type Pending<'a> = BridgeBatch<'a>;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        for frames in batch.frames_mut().chunks_mut(SIGHTS_MAX) {
            let bytes = frames.iter().map(Frame::bytes);
            self.row.see(bytes, self.learning, &self.table);
            self.row.guess(&self.table);
            self.conclude(port, now);
            for (place, frame) in frames.iter_mut().enumerate() {
                self.send(port, frame, self.row.to(place), out);
            }
        }
    }

    fn decides(&self) -> bool {
        true
    }

    fn decide(
        &mut self,
        port: PortNo,
        [sights, next]: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<BridgeBatch<'_>> {
        if !self.is_ahead {
            self.ahead.see(heads(sights), self.learning, &self.table);
            self.ahead.guess(&self.table);
        }
        std::mem::swap(&mut self.row, &mut self.ahead);
        self.is_ahead = !next.is_empty();
        if self.is_ahead {
            self.ahead.see(heads(next), self.learning, &self.table);
        }
        let plain = self.conclude(port, now);
        if self.is_ahead {
            self.ahead.guess(&self.table);
        }
        if !plain {
            return BatchDecision::Needs(sights.len(), BridgeBatch { bridge: self, port });
        }
        for (place, decision) in decisions[..sights.len()].iter_mut().enumerate() {
            *decision = match self.row.to(place) {
                Destination::Port(place) => {
                    self.counters.forwarded += 1;
                    Decision::Output(place)
                }
                Destination::Nowhere(why) => {
                    self.drops.add(why);
                    Decision::Dropped
                }
                Destination::Flood => unreachable!("rows that flood are decided elsewhere"),
            };
        }
        BatchDecision::Done(sights.len())
    }

    /// Removes some of the expired addresses, which lookups ignore already.
    fn tick(&mut self, now: Nanos, _out: &mut Outputs) -> Option<Nanos> {
        let pause = now.saturating_add(AGE_PAUSE_MAX);
        // Frames in the meantime may add addresses, so a next run is always scheduled.
        let next = self.table.age(now, AGE_STEPS);
        Some(next.map_or(pause, |due| due.clamp(now, pause)))
    }
}

/// A batch with frames to flood.
pub struct BridgeBatch<'a> {
    bridge: &'a mut Bridge,
    port: PortNo,
}

impl PendingBatch for BridgeBatch<'_> {
    fn resume(self, frames: &mut [Frame], _now: Nanos, out: &mut Outputs) {
        for (place, frame) in frames.iter_mut().enumerate() {
            self.bridge.send(self.port, frame, self.bridge.row.to(place), out);
        }
    }
}

/// Returns the visible bytes of the frames.
fn heads<'a>(sights: &'a [FrameHead<'a>]) -> impl ExactSizeIterator<Item = &'a [u8]> {
    sights.iter().map(|sight| sight.head)
}

/// Returns the VLAN in which the frame's addresses are learned.
#[inline]
fn vid_of(bytes: &[u8], learning: Learning) -> u16 {
    let tagged = learning == Learning::PerVlan
        && bytes.len() >= ethernet::HEADER_BYTES + vlan::TAG_BYTES
        && u16_at(bytes, 12) == TYPE_VLAN;
    if tagged { u16_at(bytes, 14) & vlan::VID_MASK } else { 0 }
}

#[cfg(test)]
mod tests;
