//! Ext-PG-Meter: meters frames with two token buckets, one for bits and one for frames.
//!
//! A frame conforms if both buckets have enough tokens; otherwise it takes tokens from neither. A
//! rate of zero is unlimited.

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict};

const CONFORM: u32 = 0;
const EXCEED: u32 = 1;
/// Component ids.
const CONFORMED: u32 = 5;
const EXCEEDED: u32 = 6;

/// A token bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Units per second; 0 is unlimited.
    rate: u64,
    /// Burst size, in billionths of a unit.
    burst: u128,
    level: u128,
    at: Nanos,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(rate: u64, burst: u64) -> Bucket {
        let burst = u128::from(burst) * 1_000_000_000;
        Bucket { rate, burst, level: burst, at: Nanos::ZERO }
    }

    /// Returns true if the bucket has this many units, without taking them.
    pub fn has(&mut self, units: u64, now: Nanos) -> bool {
        if self.rate == 0 {
            return true;
        }
        let grown = u128::from(now.since(self.at).0) * u128::from(self.rate);
        self.level = (self.level + grown).min(self.burst);
        self.at = self.at.max(now);
        self.level >= u128::from(units) * 1_000_000_000
    }

    /// Takes units after [`Bucket::has`] returned true.
    pub fn take(&mut self, units: u64) {
        self.level = self.level.saturating_sub(u128::from(units) * 1_000_000_000);
    }

    /// Takes over the fill level of another bucket with the same rate and burst.
    pub fn keep(&mut self, old: &mut Bucket) {
        if (self.rate, self.burst) == (old.rate, old.burst) {
            std::mem::swap(self, old);
        }
    }
}

/// The Meter block.
#[derive(Debug)]
pub struct Meter {
    bits: Bucket,
    frames: Bucket,
    conformed: u64,
    exceeded: u64,
}

impl Block for Meter {
    fn new(setup: &mut Setup<'_>) -> Self {
        let burst_bits = setup.unsigned(2).saturating_mul(8);
        Meter {
            bits: Bucket::new(setup.unsigned(1), burst_bits),
            frames: Bucket::new(setup.unsigned(3), setup.unsigned(4)),
            conformed: 0,
            exceeded: 0,
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let bits = packet.bytes().len() as u64 * 8;
        let (bits_fit, frame_fits) = (self.bits.has(bits, env.now), self.frames.has(1, env.now));
        if bits_fit && frame_fits {
            self.bits.take(bits);
            self.frames.take(1);
            self.conformed += 1;
            Verdict::Out(CONFORM, 0)
        } else {
            self.exceeded += 1;
            Verdict::Out(EXCEED, 0)
        }
    }

    fn keep(&mut self, old: &mut Self) {
        self.bits.keep(&mut old.bits);
        self.frames.keep(&mut old.frames);
        std::mem::swap(&mut self.conformed, &mut old.conformed);
        std::mem::swap(&mut self.exceeded, &mut old.exceeded);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            CONFORMED => Some(Value::Unsigned(self.conformed)),
            EXCEEDED => Some(Value::Unsigned(self.exceeded)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            CONFORMED => self.conformed = 0,
            EXCEEDED => self.exceeded = 0,
            _ => {}
        }
    }
}
