//! Ext-PG-Hash: selects an output by a hash of fields.
//!
//! Frames with the same values take the same output. Buckets have weights; without rows, every
//! linked output has one bucket. Absent fields have a distinct value.

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, aged_table};
use crate::condition::Operand;

/// The Hash block.
#[derive(Debug)]
pub struct Hash {
    key: Vec<Operand>,
    /// Outputs with cumulative weights.
    buckets: Vec<(u32, u64)>,
    result: Option<usize>,
    seed: u64,
    scratch: Vec<u128>,
}

impl Block for Hash {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let key = setup.key(1, false);
        let mut shares: Vec<(u32, u64)> =
            setup.rows(2).iter().map(|row| (row.number(1), row.number(2).into())).collect();
        if shares.is_empty() {
            shares = setup.linked[0].iter().map(|&index| (index, 1)).collect();
        }
        let mut sum = 0u64;
        let buckets = shares.into_iter().map(|(output, weight)| {
            sum += weight;
            (output, sum)
        });
        let buckets = buckets.collect();
        let (result, seed) = (setup.meta_slot(3), setup.unsigned(4));
        Hash { key, buckets, result, seed, scratch: Vec::new() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.scratch.clear();
        for operand in &self.key {
            // Absent and zero must differ, so that fields are not confused with their neighbours.
            let number = packet.number(operand, env.frames, env.slots);
            self.scratch.extend([u128::from(number.is_some()), number.unwrap_or(0)]);
        }
        let hash = aged_table::hash(&self.scratch, self.seed) >> 32;
        if let Some(slot) = self.result {
            packet.meta.set(slot, hash.into());
        }
        let sum = self.buckets.last().map_or(0, |(_, sum)| *sum);
        // The upper half of the product is uniform over all weights (Lemire's reduction).
        let place = (u128::from(hash) * u128::from(sum)) >> 32;
        let chosen = self.buckets.iter().find(|(_, end)| place < u128::from(*end));
        match chosen {
            Some(&(output, _)) => Verdict::Out(0, output),
            None => Verdict::Dropped(DropReason::NoOutput),
        }
    }
}
