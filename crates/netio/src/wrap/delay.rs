//! A link with delay: every sent frame arrives after a fixed time plus a seeded jitter.
//!
//! - The order of frames is preserved: a frame with a small jitter waits for the one before it.
//! - The number of frames in flight is bounded; at the bound, `transmit` accepts no more.

use packet::frame::Batch;
use packet::time::Nanos;

use super::queue::FrameQueue;
use super::rng::Chance;
use crate::port::{Port, PortError};

/// Options of a delayed link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayOptions {
    /// Fixed delay of every frame.
    pub fixed: Nanos,
    /// Largest additional delay, uniformly distributed.
    pub jitter: Nanos,
    /// Seed of the jitter.
    pub seed: u64,
    /// Maximum number of frames in flight at the same time.
    pub frames_max: usize,
}

impl Default for DelayOptions {
    fn default() -> Self {
        DelayOptions { fixed: Nanos::ZERO, jitter: Nanos::ZERO, seed: 0, frames_max: 65_536 }
    }
}

/// A port behind a delayed link.
pub struct Delay<P> {
    inner: P,
    options: DelayOptions,
    chance: Chance,
    held: FrameQueue,
    last_due: Nanos,
}

impl<P: Port> Delay<P> {
    /// Wraps `inner` in a delayed link.
    pub fn new(inner: P, options: DelayOptions) -> Self {
        let chance = Chance::new(options.seed);
        let held = FrameQueue::new(options.frames_max);
        Delay { inner, options, chance, held, last_due: Nanos::ZERO }
    }

    fn due(&mut self, now: Nanos) -> Nanos {
        let jitter = match self.options.jitter {
            Nanos::ZERO => Nanos::ZERO,
            Nanos(most) => Nanos(self.chance.below(most.saturating_add(1))),
        };
        let due = now.saturating_add(self.options.fixed).saturating_add(jitter);
        self.last_due = due.max(self.last_due);
        self.last_due
    }
}

impl<P: Port> Port for Delay<P> {
    delegated!(facts, counters, has_link, link, descriptor);

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.held.send_due(&mut self.inner, now)?;
        self.inner.receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.held.send_due(&mut self.inner, now)?;
        let count = batch.len().min(self.held.room());
        for place in 0..count {
            let due = self.due(now);
            self.held.push_swap(&mut batch.frames_mut()[place], due);
        }
        self.held.send_due(&mut self.inner, now)?;
        Ok(count)
    }

    fn next_event(&self) -> Option<Nanos> {
        earliest(self.held.next(), self.inner.next_event())
    }
}

/// Returns the earlier of two optional times.
pub(super) fn earliest(left: Option<Nanos>, right: Option<Nanos>) -> Option<Nanos> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::pair;

    fn arrivals(options: DelayOptions) -> Vec<(u64, u8)> {
        let (left, mut right) = pair(64, "link");
        let mut left = Delay::new(left, options);
        let mut batch = Batch::new(32);
        for byte in 0..20u8 {
            batch.push_bytes(&[byte]);
        }
        assert_eq!(left.transmit(&mut batch, Nanos(1_000)).unwrap(), 20);
        let mut seen = Vec::new();
        while let Some(at) = left.next_event() {
            left.receive(&mut Batch::new(1), at).unwrap();
            let mut arrived = Batch::new(32);
            right.receive(&mut arrived, at).unwrap();
            seen.extend(arrived.frames().iter().map(|frame| (at.0, frame.bytes()[0])));
        }
        seen
    }

    #[test]
    fn a_fixed_delay_is_exact() {
        let seen = arrivals(DelayOptions { fixed: Nanos(500), ..DelayOptions::default() });
        assert_eq!(seen, (0..20u8).map(|byte| (1_500, byte)).collect::<Vec<_>>());
    }

    #[test]
    fn jitter_is_bounded_ordered_and_determined_by_the_seed() {
        let options =
            DelayOptions { fixed: Nanos(500), jitter: Nanos(100), seed: 7, frames_max: 20 };
        let seen = arrivals(options.clone());
        assert_eq!(seen.iter().map(|&(_, byte)| byte).collect::<Vec<_>>(), Vec::from_iter(0..20));
        assert!(seen.iter().all(|&(at, _)| (1_500..=1_600).contains(&at)));
        assert!(seen.iter().any(|&(at, _)| at != seen[0].0));
        assert_eq!(seen, arrivals(options.clone()));
        assert_ne!(seen, arrivals(DelayOptions { seed: 8, ..options }));
    }

    #[test]
    fn a_full_link_rejects_frames_and_loses_none() {
        let (left, mut right) = pair(2, "link");
        let options = DelayOptions { fixed: Nanos(5), frames_max: 3, ..DelayOptions::default() };
        let mut left = Delay::new(left, options);
        let mut batch = Batch::new(8);
        for byte in 0..5u8 {
            batch.push_bytes(&[byte]);
        }
        assert_eq!(left.transmit(&mut batch, Nanos(0)).unwrap(), 3);
        let mut arrived = Batch::new(8);
        left.receive(&mut Batch::new(1), Nanos(5)).unwrap();
        assert_eq!(left.next_event(), Some(Nanos(10_005)), "one waits for space in the ring");
        assert_eq!(right.receive(&mut arrived, Nanos(5)).unwrap(), 2);
        left.receive(&mut Batch::new(1), Nanos(6)).unwrap();
        assert_eq!(right.receive(&mut arrived, Nanos(6)).unwrap(), 1);
        assert_eq!(left.next_event(), None);
        assert_eq!(left.counters().tx_frames, 3);
    }
}
