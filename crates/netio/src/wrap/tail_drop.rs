//! A link that drops frames when it is full (tail drop), around a port that rejects them.
//!
//! A full memory ring applies backpressure, which no cable does. With this wrapper, a sender that
//! is faster than the receiver behaves as on a real link. Its frames are accepted, and frames that
//! find the queue full are lost and counted (RFC 2544 section 26.1 requires this).

use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::Nanos;

use crate::port::{Port, PortCounters, PortDrop, PortError};

/// A port whose full queue drops frames.
pub struct TailDrop<P> {
    inner: P,
    dropped: u64,
}

impl<P: Port> TailDrop<P> {
    /// Wraps `inner`, and drops the frames that it does not accept.
    pub fn new(inner: P) -> Self {
        TailDrop { inner, dropped: 0 }
    }
}

impl<P: Port> Port for TailDrop<P> {
    delegated!(facts, has_link, link, next_event, descriptor);

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.receive(batch, now)
    }

    /// Accepts every frame.
    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let taken = self.inner.transmit(batch, now)?;
        self.dropped += (batch.len() - taken) as u64;
        Ok(batch.len())
    }

    fn receive_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        self.inner.receive_copies(copies, now)
    }

    /// Accepts every frame.
    fn transmit_copies(&mut self, copies: &mut Copies, now: Nanos) -> Result<usize, PortError> {
        let taken = self.inner.transmit_copies(copies, now)?;
        self.dropped += (copies.len() - taken) as u64;
        Ok(copies.len())
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.inner.counters();
        counters.lose(PortDrop::LinkQueueFull, self.dropped);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::pair;

    #[test]
    fn excess_frames_are_accepted_and_counted_as_lost() {
        let (near, mut far) = pair(4, "wire");
        let mut near = TailDrop::new(near);
        let mut batch = Batch::new(8);
        for byte in 0..7 {
            batch.push_bytes(&[byte; 60]);
        }
        assert_eq!(near.transmit(&mut batch, Nanos::ZERO).unwrap(), 7);
        let mut arrived = Batch::new(8);
        assert_eq!(far.receive(&mut arrived, Nanos::ZERO).unwrap(), 4);
        assert_eq!(near.counters().drops, [(PortDrop::LinkQueueFull, 3)]);
        let mut copies = Copies::new(8);
        (0..6).for_each(|_| copies.push(60, None).unwrap().fill(9));
        assert_eq!(near.transmit_copies(&mut copies, Nanos::ZERO).unwrap(), 6);
        assert_eq!(near.counters().drops, [(PortDrop::LinkQueueFull, 3 + 2)]);
        assert_eq!(far.transmit(&mut arrived, Nanos::ZERO).unwrap(), 4);
        assert_eq!(near.receive_copies(&mut copies, Nanos::ZERO).unwrap(), 4);
    }
}
