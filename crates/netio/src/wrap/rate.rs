//! A link of C bit/s with serialization: one frame after the other, each for the duration of its
//! bits, behind a bounded queue.
//!
//! IEEE 802.3: a frame of L bytes without frame check sequence is first padded to 60 bytes. It
//! occupies the link for L + 4 (check sequence) + 8 (preamble and delimiter) + 12 (gap) bytes. The
//! frame is delivered when its last bit (gap included) has left. Time is exact: fractions of a
//! nanosecond carry over from frame to frame, so a thousand frames take exactly a thousand times as
//! long as one.

use packet::frame::{Batch, FCS_BYTES};
use packet::time::Nanos;

use super::delay::earliest;
use super::queue::FrameQueue;
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError};

/// Bytes that each frame occupies the link for in addition to its own: preamble, delimiter and gap.
pub const OVERHEAD_BYTES: usize = 20;

/// Shortest frame without frame check sequence; shorter ones are padded on the link.
pub const FRAME_BYTES_MIN: usize = 60;

/// Bit rate of a link and size of its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateOptions {
    /// Bits per second, not 0.
    pub bits_per_second: u64,
    /// Maximum number of frames in the queue and in transmission; further ones are dropped and
    /// counted.
    pub queue_frames_max: usize,
}

/// A port behind a link with a bit rate.
pub struct Rate<P> {
    inner: P,
    options: RateOptions,
    held: FrameQueue,
    /// When the link has sent all accepted frames.
    free_at: Nanos,
    /// Fraction of a nanosecond to add to `free_at`: this value divided by the bit rate.
    fraction: u64,
    dropped: u64,
}

/// Returns for how many bits a frame of `length` bytes (without frame check sequence) occupies a
/// link.
pub fn link_bits(length: usize) -> u64 {
    8 * (length.max(FRAME_BYTES_MIN) + FCS_BYTES + OVERHEAD_BYTES) as u64
}

impl<P: Port> Rate<P> {
    /// Wraps `inner` in the link.
    pub fn new(inner: P, options: RateOptions) -> Self {
        assert!(options.bits_per_second > 0, "a link has a rate");
        assert!(options.queue_frames_max > 0, "a link queues the frame that it sends");
        let held = FrameQueue::new(options.queue_frames_max);
        Rate { inner, options, held, free_at: Nanos::ZERO, fraction: 0, dropped: 0 }
    }

    /// Returns when a frame of `length` bytes, accepted at `now`, has left the link.
    fn leaves(&mut self, length: usize, now: Nanos) -> Nanos {
        if now > self.free_at {
            self.free_at = now;
            self.fraction = 0;
        }
        let rate = u128::from(self.options.bits_per_second);
        let parts = u128::from(link_bits(length)) * 1_000_000_000 + u128::from(self.fraction);
        let whole = u64::try_from(parts / rate).unwrap_or(u64::MAX);
        self.fraction = (parts % rate) as u64;
        self.free_at = self.free_at.saturating_add(Nanos(whole));
        // The last bit has left only when the fraction is over too.
        self.free_at.saturating_add(Nanos(u64::from(self.fraction > 0)))
    }
}

impl<P: Port> Port for Rate<P> {
    delegated!(facts, has_link, descriptor);

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.held.send_due(&mut self.inner, now)?;
        self.inner.receive(batch, now)
    }

    /// Accepts every frame; frames that find the queue full are dropped and counted.
    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.held.send_due(&mut self.inner, now)?;
        for frame in batch.frames_mut() {
            if self.held.room() == 0 {
                self.dropped += 1;
                continue;
            }
            let due = self.leaves(frame.len(), now);
            self.held.push_swap(frame, due);
        }
        Ok(batch.len())
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.inner.counters();
        counters.lose(PortDrop::LinkQueueFull, self.dropped);
        counters
    }

    fn link(&self) -> Link {
        let speed_bps = Some(self.options.bits_per_second);
        Link { speed_bps, full_duplex: Some(true), ..self.inner.link() }
    }

    fn next_event(&self) -> Option<Nanos> {
        earliest(self.held.next(), self.inner.next_event())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryPort, pair};

    fn link(bits_per_second: u64, queue_frames_max: usize) -> (Rate<MemoryPort>, MemoryPort) {
        let (left, right) = pair(4096, "link");
        (Rate::new(left, RateOptions { bits_per_second, queue_frames_max }), right)
    }

    fn frames(count: usize, length: usize) -> Batch {
        let mut batch = Batch::new(count);
        for _ in 0..count {
            batch.push_bytes(&vec![0; length]);
        }
        batch
    }

    /// Runs until the link is idle, and returns the times at which frames came out.
    fn run(left: &mut Rate<MemoryPort>, right: &mut MemoryPort) -> Vec<u64> {
        let mut moments = Vec::new();
        while let Some(at) = left.next_event() {
            left.receive(&mut Batch::new(1), at).unwrap();
            let count = right.receive(&mut Batch::new(64), at).unwrap();
            moments.extend(std::iter::repeat_n(at.0, count));
        }
        moments
    }

    /// 64-byte frames on 1 Gbit/s: 84 bytes, 672 ns each, 1,488,095 per second.
    #[test]
    fn a_gigabit_link_takes_672_ns_for_the_shortest_frame() {
        let (mut left, mut right) = link(1_000_000_000, 16);
        left.transmit(&mut frames(3, 60), Nanos(100)).unwrap();
        assert_eq!(run(&mut left, &mut right), [772, 1_444, 2_116]);
        // Idle until 5,000, then from there; a 20-byte frame is padded, a full one takes 12.304 us.
        left.transmit(&mut frames(1, 20), Nanos(5_000)).unwrap();
        left.transmit(&mut frames(1, 1514), Nanos(5_000)).unwrap();
        assert_eq!(run(&mut left, &mut right), [5_672, 5_672 + 12_304]);
    }

    #[test]
    fn fractions_of_a_nanosecond_accumulate() {
        // 672 bits at slightly over 3 Gbit/s: 1000 frames take exactly 672e12 / rate ns, rounded
        // up.
        let rate = 3_000_000_001;
        let (mut left, mut right) = link(rate, 1000);
        left.transmit(&mut frames(1000, 60), Nanos::ZERO).unwrap();
        let moments = run(&mut left, &mut right);
        for (place, at) in (1u128..).zip(&moments) {
            assert_eq!(u128::from(*at), (place * 672_000_000_000).div_ceil(u128::from(rate)));
        }
        assert_eq!(moments.len(), 1000);
    }

    #[test]
    fn a_full_queue_drops_the_newest_frames_and_counts_them() {
        let (mut left, mut right) = link(1_000_000, 4);
        assert_eq!(left.transmit(&mut frames(10, 60), Nanos::ZERO).unwrap(), 10);
        assert_eq!(left.counters().lost(PortDrop::LinkQueueFull), 6);
        assert_eq!(run(&mut left, &mut right).len(), 4);
        assert_eq!(left.counters().tx_frames, 4);
    }

    #[test]
    fn a_frame_arrives_with_its_last_bit() {
        let (mut left, mut right) = link(1_000_000_000, 4);
        left.transmit(&mut frames(1, 60), Nanos::ZERO).unwrap();
        let mut arrived = Batch::new(4);
        left.receive(&mut Batch::new(1), Nanos(671)).unwrap();
        assert_eq!(right.receive(&mut arrived, Nanos(671)).unwrap(), 0);
        left.receive(&mut Batch::new(1), Nanos(672)).unwrap();
        assert_eq!(right.receive(&mut arrived, Nanos(672)).unwrap(), 1);
    }
}
