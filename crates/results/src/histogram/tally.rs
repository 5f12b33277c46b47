//! Times counted where every nanosecond of counting counts: a histogram in the making.
//!
//! A tally has the buckets of [`Histogram`] and nothing else that costs time: one addition to one
//! of them for each time. What it comes to is equal to the histogram that had counted each time by
//! itself. There are as many buckets as the largest time needed: a generator has several tallies for
//! each of its streams, and nearly all of their times are short.

use super::{DIGITS, Histogram, NS_MAX};

/// Times up to here have buckets of one nanosecond; each doubling beyond has half as many buckets.
const EXACT_LOG2: u32 = 11;

const _: () = assert!(DIGITS == 3 && 1 << EXACT_LOG2 >= 2 * 1000, "three digits need 2,000 steps");

/// Counts of times in nanoseconds, to become a [`Histogram`].
#[derive(Debug, Clone)]
pub struct Tally {
    counts: Vec<u64>,
    sum_ns: u128,
    ns_min: u64,
    ns_max: u64,
}

impl Tally {
    /// An empty tally.
    pub fn new() -> Self {
        Tally { counts: vec![0; 2 << EXACT_LOG2], sum_ns: 0, ns_min: u64::MAX, ns_max: 0 }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts one time as often as it occurred.
    #[inline]
    pub fn record_many(&mut self, ns: u64, times: u64) {
        let ns = ns.min(NS_MAX);
        let place = bucket(ns);
        match self.counts.get_mut(place) {
            Some(count) => *count += times,
            None => self.grow(place, times),
        }
        self.sum_ns += u128::from(ns) * u128::from(times);
        if times > 0 && ns < self.ns_min {
            self.ns_min = ns;
        }
        if times > 0 && ns > self.ns_max {
            self.ns_max = ns;
        }
    }

    /// Counts a time that is longer than all before.
    #[cold]
    fn grow(&mut self, place: usize, times: u64) {
        let buckets = (place + 1).next_power_of_two().min(bucket(NS_MAX) + 1);
        self.counts.resize(buckets, 0);
        self.counts[place] += times;
    }

    /// What was counted.
    pub fn finish(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (place, &count) in self.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            histogram.buckets.saturating_record_n(lowest(place), count);
        }
        let (ns_min, ns_max) = (self.ns_min, self.ns_max);
        Histogram { sum_ns: self.sum_ns, ns_min, ns_max, ..histogram }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Tally::new()
    }
}

/// The bucket of a time.
#[inline]
fn bucket(ns: u64) -> usize {
    let doublings = (64 - EXACT_LOG2) - (ns | ((1 << EXACT_LOG2) - 1)).leading_zeros();
    ((doublings as usize) << (EXACT_LOG2 - 1)) + (ns >> doublings) as usize
}

/// The smallest time in a bucket.
fn lowest(bucket: usize) -> u64 {
    let doublings = (bucket >> (EXACT_LOG2 - 1)).saturating_sub(1);
    ((bucket - (doublings << (EXACT_LOG2 - 1))) as u64) << doublings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for ns in (0..10_000).chain((10_000..1 << 40).step_by(999_983)) {
            let place = bucket(ns);
            assert!(lowest(place) <= ns && ns < lowest(place + 1), "{ns}");
            assert!(place - last <= 1 || ns > 10_000, "{ns}");
            last = place;
        }
    }

    proptest! {
        #[test]
        fn a_tally_comes_to_the_histogram_of_its_times(
            times in proptest::collection::vec((any::<u64>(), 0u32..64), 0..200)
        ) {
            let (mut tally, mut histogram) = (Tally::new(), Histogram::new());
            for (bits, shift) in times {
                let times = bits % 4;
                tally.record_many(bits >> shift, times);
                (0..times).for_each(|_| histogram.record(bits >> shift));
            }
            prop_assert_eq!(tally.finish(), histogram);
        }
    }
}
