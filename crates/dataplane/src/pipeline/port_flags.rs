//! Port settings that workers read without locking the engine.
//!
//! Invariant: a port is marked plain only while the engine would put every frame for it into the
//! port's queue, unchanged and immediately.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use packet::frame::PortNo;

use crate::egress::Egress;

/// Frames leave by the port unchanged.
const PLAIN: u8 = 1;
/// Not every frame from the port goes to the tables.
const CHOOSY: u8 = 2;

/// Settings of all ports, and common settings.
#[derive(Debug)]
pub(super) struct Gates {
    /// By port number.
    ports: Box<[AtomicU8]>,
    known: Box<[PortNo]>,
    defers: AtomicBool,
    drop_fragments: AtomicBool,
}

impl Gates {
    /// Creates default settings for these ports.
    pub(super) fn new(known: &[PortNo]) -> Gates {
        let count = known.iter().max().map_or(0, |&port| port as usize + 1);
        let ports: Box<[AtomicU8]> = (0..count).map(|_| AtomicU8::new(0)).collect();
        known.iter().for_each(|&port| ports[port as usize].store(PLAIN, Relaxed));
        Gates {
            ports,
            known: known.into(),
            defers: AtomicBool::new(false),
            drop_fragments: AtomicBool::new(false),
        }
    }

    /// Copies the port settings from the engine.
    pub(super) fn set(&self, egress: &Egress) {
        for &port in &self.known {
            let plain = if egress.sends_at_once(port) { PLAIN } else { 0 };
            let choosy = if egress.settings(port) == Default::default() { 0 } else { CHOOSY };
            self.ports[port as usize].store(plain | choosy, Relaxed);
        }
    }

    /// Sets whether frames wait for egress tables.
    pub(super) fn set_defers(&self, defers: bool) {
        self.defers.store(defers, Relaxed);
    }

    /// Whether frames wait for egress tables.
    #[inline]
    pub(super) fn defers(&self) -> bool {
        self.defers.load(Relaxed)
    }

    pub(super) fn set_drop_fragments(&self, drop: bool) {
        self.drop_fragments.store(drop, Relaxed);
    }

    /// Whether fragmented IPv4 datagrams are dropped.
    #[inline]
    pub(super) fn drop_fragments(&self) -> bool {
        self.drop_fragments.load(Relaxed)
    }

    /// Whether frames leave by the port unchanged.
    #[inline]
    pub(super) fn is_plain(&self, port: PortNo) -> bool {
        self.ports.get(port as usize).is_some_and(|gate| gate.load(Relaxed) & PLAIN != 0)
    }

    /// Whether some frames from the port do not go to the tables.
    #[inline]
    pub(super) fn is_choosy(&self, port: PortNo) -> bool {
        self.ports.get(port as usize).is_some_and(|gate| gate.load(Relaxed) & CHOOSY != 0)
    }
}
