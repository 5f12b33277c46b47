//! Channels between two ends in one process, for the control messages of simulations.
//!
//! Each direction holds a bounded number of bytes, like a socket's buffer, and delivers them in
//! order and immediately. Bytes that were sent before an end was dropped are still received.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packet::time::{Clock, Nanos, Stamp};

use super::passage::MARKS_MAX;
use super::{CaptureAnomalies, Channel, ChannelError, Direction, UnknownTime};

/// Returns two linked ends with room for `capacity` bytes per direction.
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

/// Like [`pair`], for simulations: bytes are timestamped with `clock`, in virtual nanoseconds.
pub fn pair_stamped(
    capacity: usize,
    label: &str,
    clock: &Arc<AtomicU64>,
) -> (MemoryChannel, MemoryChannel) {
    let (near, far) = pair(capacity, label);
    let (there, back) = (Arc::default(), Arc::default());
    let stamped = |end: MemoryChannel, out: &Arc<SendTimes>, inn: &Arc<SendTimes>| {
        let wire = Wire { clock: Arc::clone(clock), out: Arc::clone(out), inn: Arc::clone(inn) };
        MemoryChannel { wire: Some(wire), ..end }
    };
    (stamped(near, &there, &back), stamped(far, &back, &there))
}

type Pipe = Mutex<VecDeque<u8>>;

/// Byte positions with the times at which they had passed.
type SendTimes = Mutex<Passed>;

#[derive(Default)]
struct Passed {
    bytes: u64,
    marks: VecDeque<(u64, Nanos)>,
}

/// Timestamps of both directions.
struct Wire {
    clock: Arc<AtomicU64>,
    out: Arc<SendTimes>,
    inn: Arc<SendTimes>,
}

/// One end of a linked pair.
pub struct MemoryChannel {
    out: Arc<Pipe>,
    inn: Arc<Pipe>,
    capacity: usize,
    peer: String,
    wire: Option<Wire>,
}

/// Locks a pipe; code that holds the lock cannot leave the bytes in an inconsistent state.
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

    fn passed(&mut self, direction: Direction, end: u64) -> Option<Result<Stamp, UnknownTime>> {
        let wire = self.wire.as_ref()?;
        let marks = match direction {
            Direction::Out => &wire.out,
            Direction::In => &wire.inn,
        };
        let passed = marks.lock().unwrap_or_else(PoisonError::into_inner);
        // Both ends may query, so only marks beyond the limit are dropped.
        let place = passed.marks.partition_point(|(mark, _)| *mark < end);
        Some(match passed.marks.get(place) {
            Some(&(_, at)) if place > 0 || passed.marks.len() < MARKS_MAX => {
                Ok(Stamp { at, clock: Clock::Virtual })
            }
            Some(_) => Err(UnknownTime::Unknown),
            None => Err(UnknownTime::NotYet),
        })
    }

    fn remarks(&self) -> Option<CaptureAnomalies> {
        self.wire.as_ref().map(|_| CaptureAnomalies::default())
    }
}
