//! Latency differences of successive frames, with their signs.
//!
//! Source: RFC 3393; RFC 8219, section 7.3.2, which uses the sending order and leaves out neighbors
//! of lost frames. Two histograms, one for each sign, bound the memory.

use crate::trial::{Histogram, Variation};

/// Latency differences so far.
#[derive(Debug)]
pub struct LatencyVariation {
    /// Absolute values of negative differences.
    below: Histogram,
    /// Differences of zero and above.
    above: Histogram,
    /// Number and latency of the last frame that arrived.
    last: Option<(u64, i64)>,
}

impl LatencyVariation {
    /// Creates empty statistics.
    pub fn new() -> Self {
        LatencyVariation { below: Histogram::new(), above: Histogram::new(), last: None }
    }

    /// Records that frames from `number` on arrived with this latency.
    #[inline]
    pub fn record(&mut self, number: u64, frames: u64, span_ns: i64) {
        self.above.record_many(0, frames - 1);
        if let Some((before, last_ns)) = self.last.replace((number + frames - 1, span_ns))
            && before + 1 == number
        {
            let side = if span_ns < last_ns { &mut self.below } else { &mut self.above };
            side.record(span_ns.abs_diff(last_ns));
        }
    }

    /// Returns the results. None if no two successive frames arrived.
    pub fn finish(&self) -> Option<Variation> {
        let (below, above) = (&self.below, &self.above);
        let count = below.count() + above.count();
        let least = |side: &Histogram| side.ns_min().map(|ns| ns as i64);
        let most = |side: &Histogram| side.ns_max().map(|ns| ns as i64);
        Some(Variation {
            count,
            ns_min: most(below).map(|ns| -ns).or(least(above))?,
            ns_median: median(below, above, count),
            ns_max: most(above).or(least(below).map(|ns| -ns))?,
        })
    }
}

/// Returns the median of both sides. Of an even number of values, the lower one.
fn median(below: &Histogram, above: &Histogram, count: u64) -> i64 {
    let rank = count.div_ceil(2);
    match rank <= below.count() {
        true => -(below.ns_at_rank(below.count() - rank + 1) as i64),
        false => above.ns_at_rank(rank - below.count()) as i64,
    }
}

impl Default for LatencyVariation {
    fn default() -> Self {
        LatencyVariation::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frames: &[(u64, i64)]) -> Option<Variation> {
        let mut varying = LatencyVariation::new();
        frames.iter().for_each(|&(number, ns)| varying.record(number, 1, ns));
        varying.finish()
    }

    #[test]
    fn variation_is_signed_and_skips_frames_after_a_lost_one() {
        assert_eq!(of(&[(0, 500)]), None);
        assert_eq!(of(&[(0, 500), (2, 900), (4, 100)]), None, "never two in a row");
        let found = of(&[(0, 500), (1, 510), (2, 480), (4, 900), (5, 895), (6, 995)]).unwrap();
        // 10, -30, none, -5, 100.
        let wanted = Variation { count: 4, ns_min: -30, ns_median: -5, ns_max: 100 };
        assert_eq!(found, wanted);
        let quicker = of(&[(0, 500), (1, 400), (2, 350)]).unwrap();
        assert_eq!((quicker.ns_min, quicker.ns_median, quicker.ns_max), (-100, -100, -50));
        let slower = of(&[(7, 5), (8, 5), (9, 25)]).unwrap();
        assert_eq!((slower.ns_min, slower.ns_median, slower.ns_max), (0, 0, 20));
    }
}
