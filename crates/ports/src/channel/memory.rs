//! Channels between two ends in one process: what simulations run their control messages over.
//!
//! Each direction holds a bounded number of bytes, as a socket's buffer does, and hands them over
//! in order and at once. Bytes that were sent before an end went are still received.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::{Clock, Nanos, Stamp};

use super::wire::{Direction, MARKS_MAX, Remarks, Unseen};
use super::{Channel, ChannelError};

/// Two linked ends with room for `capacity` bytes in each direction.
pub fn pair(capacity: usize, label: &str) -> (MemoryChannel, MemoryChannel) {
    let there = Arc::new(Mutex::new(VecDeque::new()));
    let back = Arc::new(Mutex::new(VecDeque::new()));
    let end = |peer: u8, out: &Arc<Pipe>, inn: &Arc<Pipe>| MemoryChannel {
        out: out.clone(),
        inn: inn.clone(),
        capacity,
        peer: format!("{label}.{peer}"),
        wire: None,
    };
    (end(1, &there, &back), end(0, &back, &there))
}

/// The same in a simulation: bytes pass at once, when `clock` says, in virtual nanoseconds.
pub fn pair_stamped(
    capacity: usize,
    label: &str,
    clock: &Arc<AtomicU64>,
) -> (MemoryChannel, MemoryChannel) {
    let (near, far) = pair(capacity, label);
    let (there, back) = (Arc::default(), Arc::default());
    let stamped = |end: MemoryChannel, out: &Arc<Marks>, inn: &Arc<Marks>| {
        let wire = Wire { clock: Arc::clone(clock), out: Arc::clone(out), inn: Arc::clone(inn) };
        MemoryChannel { wire: Some(wire), ..end }
    };
    (stamped(near, &there, &back), stamped(far, &back, &there))
}

type Pipe = Mutex<VecDeque<u8>>;

/// Up to which byte what had passed when.
type Marks = Mutex<Passed>;

#[derive(Default)]
struct Passed {
    bytes: u64,
    marks: VecDeque<(u64, Nanos)>,
}

/// When bytes passed.
struct Wire {
    clock: Arc<AtomicU64>,
    out: Arc<Marks>,
    inn: Arc<Marks>,
}

/// One end of a linked pair.
pub struct MemoryChannel {
    out: Arc<Pipe>,
    inn: Arc<Pipe>,
    capacity: usize,
    peer: String,
    wire: Option<Wire>,
}

/// The bytes of a pipe; nothing that holds the lock can leave them half changed.
fn lock(pipe: &Pipe) -> MutexGuard<'_, VecDeque<u8>> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Channel for MemoryChannel {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let gone = Arc::strong_count(&self.inn) == 1;
        let mut waiting = lock(&self.inn);
        let count = waiting.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(waiting.drain(..count)) {
            *place = byte;
        }
        if count == 0 && gone && !buffer.is_empty() {
            return Err(ChannelError::Closed(self.peer.clone()));
        }
        Ok(count)
    }

    fn transmit(&mut self, bytes: &[u8]) -> Result<usize, ChannelError> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if Arc::strong_count(&self.out) == 1 {
            return Err(ChannelError::Closed(self.peer.clone()));
        }
        let mut waiting = lock(&self.out);
        let count = bytes.len().min(self.capacity.saturating_sub(waiting.len()));
        waiting.extend(&bytes[..count]);
        if let Some(wire) = self.wire.as_ref().filter(|_| count > 0) {
            let mut passed = wire.out.lock().unwrap_or_else(PoisonError::into_inner);
            passed.bytes += count as u64;
            if passed.marks.len() == MARKS_MAX {
                passed.marks.pop_front();
            }
            let mark = (passed.bytes, Nanos(wire.clock.load(Ordering::Relaxed)));
            passed.marks.push_back(mark);
        }
        Ok(count)
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn peer(&self) -> &str {
        &self.peer
    }

    fn passed(&mut self, direction: Direction, end: u64) -> Option<Result<Stamp, Unseen>> {
        let wire = self.wire.as_ref()?;
        let marks = match direction {
            Direction::Out => &wire.out,
            Direction::In => &wire.inn,
        };
        let passed = marks.lock().unwrap_or_else(PoisonError::into_inner);
        // Both ends may ask: nothing is forgotten but what is beyond the limit.
        let place = passed.marks.partition_point(|(mark, _)| *mark < end);
        Some(match passed.marks.get(place) {
            Some(&(_, at)) if place > 0 || passed.marks.len() < MARKS_MAX => {
                Ok(Stamp { at, clock: Clock::Virtual })
            }
            Some(_) => Err(Unseen::Unknown),
            None => Err(Unseen::NotYet),
        })
    }

    fn remarks(&self) -> Option<Remarks> {
        self.wire.as_ref().map(|_| Remarks::default())
    }
}
