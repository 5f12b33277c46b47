//! Probe schedule that sends most probes to entries that are about to activate.
//!
//! The uncertainty of an activation time is half the time between two probes of the entry. At the same total rate,
//! a thousand entries visited in turn are therefore ten times less certain than a hundred. Most switches process an
//! update approximately in order. The module therefore divides the entries into blocks, each with its own stream.
//!
//! Once an entry is active, two kinds of blocks share most of the probes: blocks in which only some entries are
//! active, and blocks next to those. All other blocks share the rest, so that unexpected activations and relapses
//! are visible too. If entries activate in all blocks at the same time, all blocks share the probes equally.
//!
//! Invariant: every entry is probed at all times, and the total rate is constant.

use std::ops::Range;

use packet::time::Nanos;
use tester::module::{FrameFilter, ModuleContext, Probe, SendSpan};
use tester::stream::Rate;

use super::rules::Rules;

/// Minimum number of entries in a block.
const BLOCK_RULES: u32 = 32;

/// Maximum number of blocks; fewer than [`BLOCKS_MIN`] are not worth separate streams.
const BLOCKS_MAX: u32 = 32;

const BLOCKS_MIN: u32 = 4;

/// Share of the probes for blocks without an expected activation.
const REST: f64 = 0.2;

/// Number of stream ids that one set of probes may use.
pub const STREAMS: u16 = BLOCKS_MAX as u16;

/// Probe schedule of a set of entries.
#[derive(Debug, Clone)]
pub struct ProbeSchedule {
    blocks: Vec<Block>,
    probes_pps: f64,
    /// Id of the first block's stream; the others follow.
    first_stream: u16,
    /// Number of blocks after one that has begun in which activations are expected.
    ahead: usize,
}

/// Adjacent entries that are probed in turn.
#[derive(Debug, Clone)]
struct Block {
    rules: Range<u32>,
    /// Number of entries known to be active.
    acting: u32,
    /// Whether an activation is expected in the block, so that it gets more probes.
    is_near: bool,
}

impl ProbeSchedule {
    /// Creates the schedule, with the total rate per second and the id of the first stream.
    pub fn new(rules: u32, probes_pps: f64, first_stream: u16) -> ProbeSchedule {
        let count = match rules / BLOCK_RULES {
            few if few < BLOCKS_MIN => 1,
            some => some.min(BLOCKS_MAX),
        };
        let edge = |block: u32| (u64::from(rules) * u64::from(block) / u64::from(count)) as u32;
        let block = |at: u32| Block { rules: edge(at)..edge(at + 1), acting: 0, is_near: true };
        ProbeSchedule {
            blocks: (0..count).map(block).collect(),
            probes_pps,
            first_stream,
            ahead: 1,
        }
    }

    /// Allows for entries that activate before up to `rules` others that were sent earlier.
    #[must_use]
    pub fn ahead(self, rules: usize) -> ProbeSchedule {
        let block = self.blocks.first().map_or(1, |block| block.rules.len());
        ProbeSchedule { ahead: rules.div_ceil(block).max(1), ..self }
    }

    /// Resets the schedule to no active entries.
    pub fn reset(&mut self, context: &mut ModuleContext) {
        for block in &mut self.blocks {
            (block.acting, block.is_near) = (0, true);
        }
        self.change_rate(self.probes_pps, context);
    }

    /// Sets the total rate per second.
    pub fn change_rate(&mut self, probes_pps: f64, context: &mut ModuleContext) {
        self.probes_pps = probes_pps;
        for (stream, _, pps) in self.rates() {
            context.change_rate(stream, Rate::FramesPerSecond(pps));
        }
    }

    /// Prepares the streams.
    pub fn prepare(&self, rules: &Rules, frame_bytes: usize, context: &mut ModuleContext) {
        for (stream, block, pps) in self.rates() {
            context.prepare(rules.visits(stream, block.rules.clone(), frame_bytes, pps));
        }
    }

    /// Subscribes to these probes, and no others, at these ports.
    pub fn watch(&self, ports: &[usize], context: &mut ModuleContext) {
        let streams: Vec<u16> = self.rates().map(|(stream, ..)| stream).collect();
        for &port in ports {
            context.watch(port, FrameFilter::Streams(streams.clone()));
        }
    }

    /// Starts the streams, each with a small offset.
    pub fn begin(&self, from: Nanos, context: &mut ModuleContext) {
        let gap = 1.0 / self.probes_pps;
        for (place, (stream, ..)) in self.rates().enumerate() {
            let later = Nanos::from_secs_f64(gap * place as f64);
            context.begin(
                stream,
                SendSpan { from: Some(from.saturating_add(later)), ..SendSpan::OPEN },
            );
        }
    }

    /// Stops the streams.
    pub fn stop(&self, context: &mut ModuleContext) {
        self.rates().for_each(|(stream, ..)| context.stop(stream));
    }

    /// Returns the entry that a probe visits.
    pub fn rule(&self, probe: &Probe) -> u64 {
        let block = usize::from(probe.stream.saturating_sub(self.first_stream));
        let first = self.blocks.get(block).map_or(0, |block| block.rules.start);
        u64::from(first) + probe.place
    }

    /// Records a new active entry and adjusts the rates of the blocks.
    pub fn acts(&mut self, rule: u64, context: &mut ModuleContext) {
        let Ok(rule) = u32::try_from(rule) else { return };
        let Some(block) = self.blocks.iter_mut().find(|block| block.rules.contains(&rule)) else {
            return;
        };
        block.acting += 1;
        if self.turn() {
            for (stream, _, pps) in self.rates() {
                context.change_rate(stream, Rate::FramesPerSecond(pps));
            }
        }
    }

    /// Finds the blocks with expected activations; returns whether they changed.
    fn turn(&mut self) -> bool {
        let has_begun: Vec<bool> = self.blocks.iter().map(|block| block.acting > 0).collect();
        let begun = |at: usize| has_begun.get(at).is_some_and(|begun| *begun);
        let is_near = |(at, block): (usize, &Block)| {
            let is_next = begun(at + 1) || (at.saturating_sub(self.ahead)..at).any(begun);
            (begun(at) || is_next) && block.acting < block.rules.len() as u32
        };
        let near: Vec<bool> = self.blocks.iter().enumerate().map(is_near).collect();
        // When all entries are active, all blocks get the same rate.
        let is_over = !near.contains(&true);
        let mut has_changed = false;
        for (block, near) in self.blocks.iter_mut().zip(near) {
            has_changed |= block.is_near != (near || is_over);
            block.is_near = near || is_over;
        }
        has_changed
    }

    /// Returns the stream of each block, the block, and its probes per second.
    fn rates(&self) -> impl Iterator<Item = (u16, &Block, f64)> {
        let rules = |is_near: bool| {
            let those = self.blocks.iter().filter(move |block| block.is_near == is_near);
            those.map(|block| block.rules.len()).sum::<usize>() as f64
        };
        let [near, far] = [true, false].map(rules);
        let rest = if far > 0.0 { REST } else { 0.0 };
        let share = move |block: &Block| match block.is_near {
            true => (1.0 - rest) * block.rules.len() as f64 / near,
            false => rest * block.rules.len() as f64 / far,
        };
        let pps = self.probes_pps;
        (self.first_stream..)
            .zip(&self.blocks)
            .map(move |(stream, block)| (stream, block, pps * share(block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probes per second of each block, for a total of a thousand entries and a
    /// thousand probes.
    fn shares(focus: &ProbeSchedule) -> Vec<f64> {
        focus.rates().map(|(_, _, pps)| pps.round()).collect()
    }

    fn acting(focus: &mut ProbeSchedule, rules: Range<u32>) {
        for rule in rules {
            let block = focus.blocks.iter_mut().find(|block| block.rules.contains(&rule));
            block.unwrap().acting += 1;
            focus.turn();
        }
    }

    #[test]
    fn blocks_contain_every_entry_once() {
        assert_eq!(ProbeSchedule::new(1, 1.0, 1).blocks.len(), 1);
        assert_eq!(ProbeSchedule::new(100, 1.0, 1).blocks.len(), 1);
        for rules in [128, 1000, 1400, 65_536] {
            let focus = ProbeSchedule::new(rules, 1.0, 1);
            let mut next = 0;
            for block in &focus.blocks {
                assert_eq!(block.rules.start, next);
                next = block.rules.end;
            }
            assert_eq!(next, rules);
        }
    }

    #[test]
    fn most_probes_go_to_entries_about_to_activate_and_all_get_some() {
        let mut focus = ProbeSchedule::new(320, 1000.0, 1);
        assert_eq!(shares(&focus), [100.0; 10]);
        acting(&mut focus, 0..1);
        assert_eq!(shares(&focus)[..3], [400.0, 400.0, 25.0]);
        acting(&mut focus, 1..40);
        assert_eq!(shares(&focus)[..4], [25.0, 400.0, 400.0, 25.0]);
        // An activation in a distant block too.
        acting(&mut focus, 200..201);
        let far = shares(&focus);
        assert_eq!((far[1], far[2], far[5], far[6], far[7]), (160.0, 160.0, 160.0, 160.0, 160.0));
        assert!((far.iter().sum::<f64>() - 1000.0).abs() < 1.0, "{far:?}");
    }

    #[test]
    fn early_activations_move_the_probes_ahead() {
        let mut focus = ProbeSchedule::new(320, 1000.0, 1).ahead(70);
        acting(&mut focus, 0..1);
        let shares = shares(&focus);
        assert_eq!(shares[..5], [200.0, 200.0, 200.0, 200.0, 33.0]);
    }

    #[test]
    fn activations_in_all_blocks_share_the_probes_equally() {
        let mut focus = ProbeSchedule::new(320, 1000.0, 1);
        for block in 0..10 {
            acting(&mut focus, block * 32..block * 32 + 1);
        }
        assert_eq!(shares(&focus), [100.0; 10]);
        for block in 0..10 {
            acting(&mut focus, block * 32 + 1..block * 32 + 32);
        }
        assert_eq!(shares(&focus), [100.0; 10]);
    }
}
