//! Decides when the caches of a switch are filled.
//!
//! Low-rate passes over every flow repeat until the switch's caches serve a whole pass: an upcall
//! is a frame that missed them. Open vSwitch first limits its datapath to 10,000 flows and adds
//! 1,000 every half second, so that 128K take a minute.
//!
//! - If upcalls continue without loss and the number of flows is stable, this is the steady state.
//!   The switch may hold fewer flows than there are.
//! - If flows still grow, or upcalls are lost, when patience ends, later measurements do not show
//!   the switch's steady state.
//!
//! Invariant: pure; the time is an argument.

use std::collections::BTreeMap;

use packet::time::Nanos;

use crate::{CacheFill, DATAPATH_DROPS};

/// Rate of the frames: a decision takes Open vSwitch about 20 microseconds.
pub const RATE_PPS: f64 = 25_000.0;

/// Wait after each pass for frames in flight.
pub const DRAIN: Nanos = Nanos::from_millis(50);

/// Shortest pass, in seconds, so that rare events occur in it too.
const PASS_SECONDS_MIN: f64 = 0.25;

/// One upcall in this many frames is tolerated.
const FRAMES_PER_UPCALL: u64 = 1000;

/// Time without growth after which the number of flows counts as stable.
const STILL: Nanos = Nanos::from_secs(5);

/// Returns the duration of a pass over this many flows.
pub fn pass_duration(flows: u64) -> Nanos {
    Nanos::from_secs_f64((flows as f64 / RATE_PPS).max(PASS_SECONDS_MIN))
}

/// Result of one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FillPass {
    /// Frames sent.
    pub frames: u64,
    /// Frames that missed all caches.
    pub upcalls: u64,
    /// Of these, dropped; other failed upcalls find no room for a flow, and the frame is forwarded.
    pub upcalls_lost: u64,
    /// Flows in the datapath after it.
    pub flows: u64,
    /// Limit of flows.
    pub flow_limit: u64,
}

impl FillPass {
    /// Returns the pass between two readings of Open vSwitch's counters.
    pub fn between(
        frames: u64,
        before: &BTreeMap<String, u64>,
        after: &BTreeMap<String, u64>,
    ) -> FillPass {
        let now = |name: &str| after.get(name).copied().unwrap_or(0);
        let since = |name: &str| now(name).saturating_sub(before.get(name).copied().unwrap_or(0));
        let dropped = after.keys().filter(|name| name.starts_with(DATAPATH_DROPS));
        FillPass {
            frames,
            upcalls: since("datapath.miss_with_success_upcall")
                + since("datapath.miss_with_failed_upcall"),
            upcalls_lost: dropped.map(|name| since(name)).sum(),
            flows: now("datapath.flows"),
            flow_limit: now("datapath.flow_limit"),
        }
    }

    fn is_cached(&self) -> bool {
        self.upcalls * FRAMES_PER_UPCALL <= self.frames
    }
}

/// Progress of the passes.
#[derive(Debug)]
pub struct FillProgress {
    patience: Nanos,
    passes: u64,
    frames: u64,
    /// The highest number of flows, or flow limit, so far, and since when.
    most: (u64, Nanos),
}

impl FillProgress {
    /// Creates the state before the first pass; it ends after `patience` at the latest.
    pub fn new(patience: Nanos) -> FillProgress {
        FillProgress { patience, passes: 0, frames: 0, most: (0, Nanos::ZERO) }
    }

    /// Adds a pass; returns the result if the caches are filled or time is over. `elapsed` is the
    /// time since the beginning.
    pub fn after(&mut self, pass: FillPass, elapsed: Nanos) -> Option<CacheFill> {
        self.passes += 1;
        self.frames += pass.frames;
        // Near the limit, growth of the limit counts too: flows will follow it.
        let is_full = pass.flows * 10 >= pass.flow_limit * 9;
        let grown = pass.flows + if is_full { pass.flow_limit } else { 0 };
        if grown > self.most.0 + self.most.0 / 100 {
            self.most = (grown, elapsed);
        }
        let is_over = elapsed >= self.patience;
        let is_still = elapsed.since(self.most.1) >= STILL;
        let is_steady = pass.upcalls_lost == 0 && (pass.is_cached() || is_over && is_still);
        (is_steady || is_over).then_some(CacheFill {
            is_steady,
            passes: self.passes,
            frames: self.frames,
            upcalls: pass.upcalls,
            upcalls_lost: pass.upcalls_lost,
            flows: pass.flows,
            flow_limit: pass.flow_limit,
            duration: elapsed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos::from_secs(60);

    fn pass(upcalls: u64, upcalls_lost: u64, flows: u64, flow_limit: u64) -> FillPass {
        FillPass { frames: 100_000, upcalls, upcalls_lost, flows, flow_limit }
    }

    /// Checks after each pass of five seconds whether the warming is over, and if so, whether it is
    /// steady.
    fn check(passes: &[FillPass], wanted: &[Option<bool>]) {
        let mut warming = FillProgress::new(PATIENCE);
        let over = |(number, pass): (usize, &FillPass)| {
            let elapsed = Nanos::from_secs(5 * (number as u64 + 1));
            warming.after(*pass, elapsed).map(|warmed| warmed.is_steady)
        };
        let found: Vec<Option<bool>> = passes.iter().enumerate().map(over).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn warming_ends_when_a_pass_is_served_from_caches() {
        check(
            &[
                pass(100_000, 5, 10_000, 10_000),
                pass(80_000, 0, 20_000, 20_000),
                pass(100, 0, 0, 0),
            ],
            &[None, None, Some(true)],
        );
        check(&[pass(0, 0, 1, 10_000)], &[Some(true)]);
        check(&[pass(1, 1, 1, 10_000), pass(0, 0, 1, 10_000)], &[None, Some(true)]);
    }

    #[test]
    fn at_the_timeout_growing_or_lossy_caches_are_not_steady() {
        let mut growing: Vec<FillPass> =
            (1..=12).map(|n| pass(50_000, 0, n * 10_000, n * 10_000)).collect();
        let mut wanted = [None; 12];
        wanted[11] = Some(false);
        check(&growing, &wanted);
        growing[11] = growing[10];
        wanted[11] = Some(true);
        check(&growing, &wanted);
        growing[11].upcalls_lost = 1;
        wanted[11] = Some(false);
        check(&growing, &wanted);
    }

    #[test]
    fn the_counters_of_a_pass_are_those_of_open_vswitch() {
        let read = |hit: u64, lost: u64| {
            let names =
                ["success_upcall", "failed_upcall"].map(|it| format!("datapath.miss_with_{it}"));
            let [success, failed] = names;
            let flows = ("datapath.flows".to_string(), hit);
            let limit = ("datapath.flow_limit".to_string(), 10);
            let drops = (format!("{DATAPATH_DROPS}lock_error"), lost / 3);
            BTreeMap::from([(success, hit), (failed, lost), flows, limit, drops])
        };
        let wanted = FillPass { frames: 9, upcalls: 6, upcalls_lost: 1, flows: 5, flow_limit: 10 };
        assert_eq!(FillPass::between(9, &read(1, 1), &read(5, 3)), wanted);
        assert_eq!(pass_duration(1), Nanos::from_millis(250));
        assert_eq!(pass_duration(250_000), Nanos::from_secs(10));
    }
}
