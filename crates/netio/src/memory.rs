//! Linked pairs of ports: what one sends the other receives, through shared memory.
//!
//! - Each direction is a ring of frame slots with one producer and one consumer.
//! - A frame enters and leaves a slot by swapping buffers, so nothing is copied. Nothing is
//!   allocated once every slot has held a frame.
//! - When a ring is full, `transmit` accepts fewer frames than it was given.
//! - Neither side ever waits for the other, and the two may live in different threads.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use packet::batch_copy::Copies;
use packet::frame::{Batch, FRAME_BYTES_MAX, Frame};
use packet::time::{Clock, Nanos, Stamp};

use crate::port::{Port, PortCounters, PortError, PortFacts};

/// Returns two linked ports with room for `capacity` frames per direction, rounded up to a power of
/// two.
///
/// Received frames have a user-space timestamp: the time that the receiver's caller passes. The
/// ports are named `LABEL.0` and `LABEL.1`.
pub fn pair(capacity: usize, label: &str) -> (MemoryPort, MemoryPort) {
    pair_stamped(capacity, label, Clock::UserSpace)
}

/// Like [`pair`], with the clock of the timestamps: [`Clock::Virtual`] in a simulation.
pub fn pair_stamped(capacity: usize, label: &str, clock: Clock) -> (MemoryPort, MemoryPort) {
    assert!(capacity > 0, "a ring has at least one slot");
    let there = Arc::new(Ring::new(capacity.next_power_of_two()));
    let back = Arc::new(Ring::new(capacity.next_power_of_two()));
    let port = |end: u8, out: &Arc<Ring>, inn: &Arc<Ring>| MemoryPort {
        facts: PortFacts {
            name: format!("{label}.{end}"),
            kind: "memory",
            mac: [0; 6],
            frame_bytes_max: FRAME_BYTES_MAX,
            stamps: clock,
        },
        producer: Producer { ring: out.clone(), tail: 0, head_seen: 0 },
        consumer: Consumer { ring: inn.clone(), head: 0, tail_seen: 0 },
        counters: PortCounters::default(),
    };
    (port(0, &there, &back), port(1, &back, &there))
}

/// One end of a linked pair.
pub struct MemoryPort {
    facts: PortFacts,
    producer: Producer,
    consumer: Consumer,
    counters: PortCounters,
}

impl MemoryPort {
    fn gone(&self) -> PortError {
        PortError::PeerGone(self.facts.name.clone())
    }

    /// Passes at most `limit` waiting frames to `use_frame`, each with its timestamp.
    #[inline]
    fn take(
        &mut self,
        limit: usize,
        now: Nanos,
        mut use_frame: impl FnMut(&mut Frame, Option<Stamp>),
    ) -> Result<usize, PortError> {
        // Checked before the ring, because frames sent before the peer was dropped still count.
        let gone = Arc::strong_count(&self.consumer.ring) == 1;
        fence(Ordering::Acquire);
        let stamp = Some(Stamp { at: now, clock: self.facts.stamps });
        let mut bytes = 0;
        let count = self.consumer.take(limit, |frame| {
            bytes += frame.len() as u64;
            use_frame(frame, stamp);
        });
        if count == 0 && gone && limit > 0 {
            return Err(self.gone());
        }
        self.counters.rx_frames += count as u64;
        self.counters.rx_bytes += bytes;
        Ok(count)
    }

    /// Calls `fill` for at most `count` free slots, each with its place and its frame.
    #[inline]
    fn put(
        &mut self,
        count: usize,
        fill: impl FnMut(usize, &mut Frame),
    ) -> Result<usize, PortError> {
        if Arc::strong_count(&self.producer.ring) == 1 {
            return Err(self.gone());
        }
        let (count, bytes) = self.producer.put(count, fill);
        self.counters.tx_frames += count as u64;
        self.counters.tx_bytes += bytes;
        Ok(count)
    }
}

impl Port for MemoryPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let room = batch.room();
        self.take(room, now, |frame, stamp| {
            let slot = batch.push_slot().expect("frames are limited to the room");
            std::mem::swap(slot, frame);
            slot.stamp = stamp;
        })
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let frames = batch.frames_mut();
        self.put(frames.len(), |place, slot| std::mem::swap(slot, &mut frames[place]))
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        copies.clear();
        self.take(copies.capacity(), now, |frame, stamp| {
            let copy = copies.push(frame.len(), stamp);
            let copy = copy.expect("frames are limited to the room");
            copy.copy_from_slice(frame.bytes());
        })
    }

    fn transmit_copies(&mut self, copies: &mut Copies, _now: Nanos) -> Result<usize, PortError> {
        self.put(copies.len(), |place, slot| slot.set_bytes(copies.frame(place)))
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }
}

/// An index on its own cache line, so that the two sides do not contend for one.
#[repr(align(128))]
struct Index(AtomicUsize);

/// One direction of a pair.
///
/// `head` counts all frames taken and `tail` all frames put. Both wrap; their difference is the
/// number of waiting frames. Slots from `head` up to `tail` belong to the consumer, all others to
/// the producer.
struct Ring {
    slots: Box<[UnsafeCell<Frame>]>,
    head: Index,
    tail: Index,
}

// SAFETY: a slot is accessed only by the side that owns it. Only the one `Producer` advances
// `tail`, and only the one `Consumer` advances `head`. Each does so with release ordering after its
// last access to the slots that it gives up. The other side first reads the index with acquire
// ordering.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(slots: usize) -> Self {
        Ring {
            slots: (0..slots).map(|_| UnsafeCell::new(Frame::default())).collect(),
            head: Index(AtomicUsize::new(0)),
            tail: Index(AtomicUsize::new(0)),
        }
    }

    fn slot(&self, index: usize) -> *mut Frame {
        self.slots[index & (self.slots.len() - 1)].get()
    }
}

/// The side that fills slots; there is one per ring.
struct Producer {
    ring: Arc<Ring>,
    tail: usize,
    /// The consumer's index when it was last read; another read costs a cache miss.
    head_seen: usize,
}

impl Producer {
    /// Calls `fill` for as many of `wanted` slots as are free. Returns their number and their
    /// bytes.
    #[inline]
    fn put(&mut self, wanted: usize, mut fill: impl FnMut(usize, &mut Frame)) -> (usize, u64) {
        let size = self.ring.slots.len();
        if size - self.tail.wrapping_sub(self.head_seen) < wanted {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
        }
        let free = size - self.tail.wrapping_sub(self.head_seen);
        let count = free.min(wanted);
        let mut bytes = 0;
        for place in 0..count {
            // SAFETY: `tail` is less than `size` past the consumer's `head`, so the producer owns
            // this slot, and `&mut self` makes this its only use.
            let slot = unsafe { &mut *self.ring.slot(self.tail) };
            fill(place, slot);
            bytes += slot.len() as u64;
            self.tail = self.tail.wrapping_add(1);
        }
        if count > 0 {
            self.ring.tail.0.store(self.tail, Ordering::Release);
        }
        (count, bytes)
    }
}

/// The side that empties slots; there is one per ring.
struct Consumer {
    ring: Arc<Ring>,
    head: usize,
    tail_seen: usize,
}

impl Consumer {
    /// Passes at most `limit` waiting frames to `use_frame`, oldest first. Returns their number.
    #[inline]
    fn take(&mut self, limit: usize, mut use_frame: impl FnMut(&mut Frame)) -> usize {
        if self.tail_seen.wrapping_sub(self.head) < limit {
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
        }
        let count = self.tail_seen.wrapping_sub(self.head).min(limit);
        for _ in 0..count {
            // SAFETY: `head` is before the producer's `tail`, so the consumer owns this slot, and
            // `&mut self` makes this its only use.
            use_frame(unsafe { &mut *self.ring.slot(self.head) });
            self.head = self.head.wrapping_add(1);
        }
        if count > 0 {
            self.ring.head.0.store(self.head, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests;
