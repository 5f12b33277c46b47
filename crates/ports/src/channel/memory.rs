//! Channels between two ends in one process: what simulations run their control messages over.
//!
//! Each direction holds a bounded number of bytes, as a socket's buffer does, and hands them over
//! in order and at once. Bytes that were sent before an end went are still received.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    };
    (end(1, &there, &back), end(0, &back, &there))
}

type Pipe = Mutex<VecDeque<u8>>;

/// One end of a linked pair.
pub struct MemoryChannel {
    out: Arc<Pipe>,
    inn: Arc<Pipe>,
    capacity: usize,
    peer: String,
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
        Ok(count)
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}
