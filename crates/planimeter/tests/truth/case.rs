//! Effect of a link on frames, drawn from a seed: the ground truth of a measurement.

use netio::port::Port;
use netio::wrap::delay::{Delay, DelayOptions};
use netio::wrap::fault::{FaultOptions, FaultyPort};
use netio::wrap::rate::{Rate, RateOptions};
use packet::time::Nanos;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Kinds of links, used in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Adds a fixed delay.
    Delay,
    /// Adds a random delay.
    Jitter,
    /// Loses frames.
    Loss,
    /// Duplicates frames.
    Duplicate,
    /// Reorders frames.
    Reorder,
    /// Adds a random delay, and loses and duplicates frames.
    Mixed,
    /// Adds a fixed delay, while the tester itself stalls for some time.
    Stall,
}

const KINDS: [Kind; 7] = [
    Kind::Delay,
    Kind::Jitter,
    Kind::Loss,
    Kind::Duplicate,
    Kind::Reorder,
    Kind::Mixed,
    Kind::Stall,
];

/// A drawn link.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its kind.
    pub kind: Kind,
    /// Its delay.
    pub delay: DelayOptions,
    /// Faults of the link in addition to its delay.
    pub faults: FaultOptions,
    /// Time and length of the tester's stall in each trial.
    pub stall: Option<(Nanos, Nanos)>,
}

/// A link made of wrappers; it counts its faults at the entry.
pub type Link = FaultyPort<Box<dyn Port>>;

/// A pseudorandom number generator.
pub struct Draw(Pcg64);

impl Draw {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Draw(Pcg64::seed_from_u64(seed))
    }

    /// Returns an integer from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// Returns a probability of some parts per thousand.
    fn per_mille(&mut self, high: u64) -> f64 {
        self.between(1, high * 1000) as f64 / 1e6
    }
}

impl Case {
    /// Draws the case of this seed; jitter stays below `gap`, so that it does not reorder frames.
    pub fn draw(seed: u64, gap: Nanos) -> Case {
        let mut draw = Draw::new(seed);
        let kind = KINDS[(seed % KINDS.len() as u64) as usize];
        let is = |kinds: &[Kind]| kinds.contains(&kind);
        let fixed = Nanos(draw.between(1_000, 900_000));
        let jitter = Nanos(draw.between(100, gap.0 * 9 / 10));
        let scatters = is(&[Kind::Jitter, Kind::Mixed]);
        let delay = DelayOptions {
            fixed,
            jitter: if scatters { jitter } else { Nanos::ZERO },
            seed: draw.0.next_u64(),
            ..DelayOptions::default()
        };
        let some = |is_on: bool, share: f64| if is_on { share } else { 0.0 };
        let faults = FaultOptions {
            loss: some(is(&[Kind::Loss, Kind::Mixed]), draw.per_mille(100)),
            duplicate: some(is(&[Kind::Duplicate, Kind::Mixed]), draw.per_mille(50)),
            reorder: some(is(&[Kind::Reorder]), draw.per_mille(5)),
            reorder_frames: draw.between(1, 20) as u32,
            reorder_wait: Nanos::from_millis(3),
            seed: draw.0.next_u64(),
            ..FaultOptions::default()
        };
        let stall = (Nanos(draw.between(0, 90_000_000)), Nanos(draw.between(300_000, 4_000_000)));
        Case { kind, delay, faults, stall: is(&[Kind::Stall]).then_some(stall) }
    }

    /// Creates the link in front of `port`.
    pub fn link(&self, port: Box<dyn Port>) -> Link {
        FaultyPort::new(Box::new(Delay::new(port, self.delay.clone())), self.faults.clone())
    }

    /// Returns the mean delay of the link.
    pub fn ns_mean(&self) -> f64 {
        self.delay.fixed.0 as f64 + self.delay.jitter.0 as f64 / 2.0
    }

    /// Returns a quantile of the delay.
    pub fn ns_at(&self, quantile: f64) -> f64 {
        let values = (self.delay.jitter.0 + 1) as f64;
        self.delay.fixed.0 as f64 + (quantile * values).ceil() - 1.0
    }

    /// Returns the longest delay.
    pub fn ns_max(&self) -> u64 {
        self.delay.fixed.0 + self.delay.jitter.0
    }
}

/// Creates a link with this bit rate and a short queue, in front of `port`.
pub fn limited(port: Box<dyn Port>, bits_per_second: u64, queue_frames_max: usize) -> Link {
    let slow = Rate::new(port, RateOptions { bits_per_second, queue_frames_max });
    FaultyPort::new(Box::new(slow), FaultOptions::default())
}
