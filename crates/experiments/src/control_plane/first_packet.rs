//! First frames: whether an entry reaches the hardware or the fast path only when a frame needs it.
//!
//! Source: the OFLOPS-SUME paper, section IV-B (a flow is installed in hardware after an upcall of one of its
//! packets). Suppose that the first frame, long after the update, has a different latency than frames some time
//! later. Software then forwarded it, and caused the hardware installation. The reference latency is that of the
//! last frames of all entries.
//!
//! Invariant: an entry counts as one that waited only if its first frame was slow and a later one was not.

use packet::time::Nanos;
use tester::module::MeasuredValue;

use super::activation::UncertainTime;
use super::summary::Summary;

/// Maximum number of stored frames.
pub const FRAMES_MAX: usize = 1 << 20;

/// Minimum ratio of the latency of a slow frame to the reference latency.
const SLOWER: f64 = 2.0;

/// Smaller differences are ignored, in nanoseconds.
const LEAST_NS: f64 = 2_000.0;

/// Forwarded frames by entry.
#[derive(Debug, Clone, Default)]
pub struct FirstFrames {
    rules: Vec<Vec<(Nanos, f64)>>,
    count: usize,
}

impl FirstFrames {
    /// Creates an empty record for this number of entries.
    pub fn new(rules: u32) -> FirstFrames {
        FirstFrames { rules: vec![Vec::new(); rules as usize], count: 0 }
    }

    /// Records a forwarded frame of an entry; returns whether it was stored.
    pub fn note(&mut self, rule: u64, sent_at: Nanos, delay: Nanos) -> bool {
        let Some(frames) = self.rules.get_mut(rule as usize) else { return true };
        let is_kept = self.count < FRAMES_MAX;
        if is_kept {
            frames.push((sent_at, delay.0 as f64));
            self.count += 1;
        }
        is_kept
    }

    /// Returns the latency above which a frame is slow; `None` if there are too few frames.
    fn slow_from(&self) -> Option<f64> {
        let last = self.rules.iter().filter(|frames| frames.len() > 1);
        let usual = Summary::of(last.filter_map(|frames| Some(frames.last()?.1)).collect())?;
        Some((usual.quantile(0.5) * SLOWER).max(usual.quantile(0.9)) + LEAST_NS)
    }

    /// Returns the time from the first frame until frames were fast, for an entry that waited for a frame.
    fn waited(frames: &[(Nanos, f64)], slow_from: f64) -> Option<UncertainTime> {
        let (first, _) = *frames.first()?;
        let fast = frames.iter().position(|(_, delay)| *delay < slow_from).filter(|at| *at > 0)?;
        let (from, _) = frames[fast - 1];
        let (until, delay) = frames[fast];
        let until = until.saturating_add(Nanos(delay as u64));
        let half = Nanos(until.since(from).0 / 2);
        Some(UncertainTime { at: Nanos(from.since(first).0 + half.0), half })
    }

    /// Reports how many entries waited for a frame, and the time until they were in the fast path.
    pub fn tell(&mut self, tell: &mut impl FnMut(MeasuredValue)) {
        self.rules.iter_mut().for_each(|frames| frames.sort_by_key(|(sent_at, _)| *sent_at));
        let Some(slow_from) = self.slow_from() else { return };
        let seen = self.rules.iter().filter(|frames| frames.len() > 1);
        let seen: Vec<_> = seen.map(|frames| FirstFrames::waited(frames, slow_from)).collect();
        let waits: Vec<UncertainTime> = seen.iter().flatten().copied().collect();
        let (all, count) = (seen.len() as u64, waits.len() as u64);
        let ratio = waits.len() as f64 / seen.len() as f64;
        tell(MeasuredValue::new("first_frame_ratio", "ratio", ratio, 0.0).of(all));
        let of =
            |pick: fn(&UncertainTime) -> Nanos| waits.iter().map(|it| pick(it).0 as f64).collect();
        let spreads = (Summary::of(of(|it| it.at)), Summary::of(of(|it| it.half)));
        if let (Some(spans), Some(halves)) = spreads {
            let (span, half) = (spans.quantile(0.5), halves.quantile(0.5));
            tell(MeasuredValue::new("to_hardware_ns_p50", "ns", span, half).of(count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rules: &[&[(u64, u64)]]) -> Vec<(f64, f64)> {
        let mut frames = FirstFrames::new(rules.len() as u32);
        for (rule, probes) in rules.iter().enumerate() {
            for &(sent_at, delay) in *probes {
                assert!(frames.note(rule as u64, Nanos(sent_at), Nanos(delay)));
            }
        }
        let mut found = Vec::new();
        frames.tell(&mut |it| found.push((it.value, it.half_width.unwrap())));
        found
    }

    #[test]
    fn an_entry_whose_frames_become_fast_waited_for_a_frame() {
        let waits: &[(u64, u64)] = &[(100, 900_000), (200, 900_000), (300, 10), (400, 10)];
        let works: &[(u64, u64)] = &[(100, 10), (200, 900_000), (300, 11), (400, 10)];
        assert_eq!(told(&[waits, works]), [(0.5, 0.0), (155.0, 55.0)]);
        assert_eq!(told(&[works, works]), [(0.0, 0.0)], "one slow frame in between does not count");
    }

    #[test]
    fn equal_latencies_show_no_waiting_and_few_frames_show_nothing() {
        let slow: &[(u64, u64)] = &[(100, 900_000), (200, 800_000), (300, 950_000)];
        assert_eq!(told(&[slow, slow]), [(0.0, 0.0)]);
        assert_eq!(told(&[&[(100, 5)], &[]]), []);
    }
}
