//! Paged bucket counters: buckets that were never counted take no memory.
//!
//! The buckets are those of HdrHistogram for three digits: one per nanosecond at first, and half as
//! many for each doubling beyond. A tester has several histograms per stream and counts each frame
//! in them. A counter therefore has half the width of the sum, and its overflow is stored
//! separately. No count is lost.

use std::collections::BTreeMap;

use super::{DIGITS, NS_MAX};

/// Times below 2 to this power have buckets of one nanosecond. Each doubling beyond has half as
/// many buckets.
const EXACT_LOG2: u32 = 11;

const _: () = assert!(DIGITS == 3 && 1 << EXACT_LOG2 >= 2 * 1000, "three digits need 2,000 steps");

/// Buckets per page: two cache lines.
const PAGE_BUCKETS: usize = 32;

/// Index of a page that does not exist.
const NO_PAGE: u16 = u16::MAX;

const _: () = assert!(bucket(NS_MAX) / PAGE_BUCKETS < NO_PAGE as usize);

/// Count of each bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// Position of each page, up to the last existing one.
    places: Vec<u16>,
    pages: Vec<[u32; PAGE_BUCKETS]>,
    /// Overflow of the page counters, by bucket.
    beyond: BTreeMap<usize, u64>,
}

impl Buckets {
    /// Adds to the count of a bucket.
    #[inline]
    pub(super) fn add(&mut self, bucket: usize, times: u64) {
        let place = self.places.get(bucket / PAGE_BUCKETS).copied().unwrap_or(NO_PAGE);
        let page = self.pages.get_mut(usize::from(place));
        match page.map(|page| &mut page[bucket % PAGE_BUCKETS]) {
            Some(count) if times <= u64::from(u32::MAX - *count) => *count += times as u32,
            _ => self.add_slowly(bucket, times),
        }
    }

    /// Slow path: the bucket's page does not exist or its counter overflows.
    #[cold]
    fn add_slowly(&mut self, bucket: usize, times: u64) {
        let (number, at) = (bucket / PAGE_BUCKETS, bucket % PAGE_BUCKETS);
        if number >= self.places.len() {
            self.places.resize(number + 1, NO_PAGE);
        }
        if self.places[number] == NO_PAGE {
            self.places[number] = self.pages.len() as u16;
            self.pages.push([0; PAGE_BUCKETS]);
        }
        let count = &mut self.pages[usize::from(self.places[number])][at];
        let sum = u64::from(*count).saturating_add(times);
        match u32::try_from(sum) {
            Ok(sum) => *count = sum,
            Err(_) => {
                *count = 0;
                let beyond = self.beyond.entry(bucket).or_default();
                *beyond = beyond.saturating_add(sum);
            }
        }
    }

    /// All non-empty buckets in rising order, with their counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = (usize, u64)> {
        let pages = self.places.iter().enumerate().filter(|(_, place)| **place != NO_PAGE);
        let counts = pages.flat_map(|(number, &place)| {
            let page = self.pages[usize::from(place)].iter().enumerate();
            page.map(move |(at, &count)| (number * PAGE_BUCKETS + at, u64::from(count)))
        });
        let whole = |(bucket, count): (usize, u64)| match self.beyond.get(&bucket) {
            Some(beyond) => (bucket, beyond.saturating_add(count)),
            None => (bucket, count),
        };
        counts.map(whole).filter(|&(_, count)| count > 0)
    }
}

/// The bucket of a time.
#[inline]
pub(super) const fn bucket(ns: u64) -> usize {
    let doublings = (64 - EXACT_LOG2) - (ns | ((1 << EXACT_LOG2) - 1)).leading_zeros();
    ((doublings as usize) << (EXACT_LOG2 - 1)) + (ns >> doublings) as usize
}

/// The smallest time in a bucket.
pub(super) fn lowest(bucket: usize) -> u64 {
    let doublings = (bucket >> (EXACT_LOG2 - 1)).saturating_sub(1);
    ((bucket - (doublings << (EXACT_LOG2 - 1))) as u64) << doublings
}

/// The largest time in a bucket.
pub(super) fn highest(bucket: usize) -> u64 {
    lowest(bucket + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        let mut last = 0;
        for ns in (0..10_000).chain((10_000..1 << 40).step_by(999_983)) {
            let place = bucket(ns);
            assert!(lowest(place) <= ns && ns <= highest(place), "{ns}");
            assert!(place - last <= 1 || ns > 10_000, "{ns}");
            last = place;
        }
    }

    #[test]
    fn large_counts_are_not_truncated() {
        let (most, mut buckets) = (u64::from(u32::MAX), Buckets::default());
        for times in [most - 1, 1, 1, 5, 3 * most, 2] {
            buckets.add(700, times);
        }
        buckets.add(9, most + 1);
        buckets.add(8, 1);
        let counted: Vec<_> = buckets.counted().collect();
        assert_eq!(counted, [(8, 1), (9, most + 1), (700, 4 * most + 8)]);
        buckets.add(700, u64::MAX);
        assert_eq!(buckets.counted().last(), Some((700, u64::MAX)));
    }

    #[test]
    fn only_used_buckets_take_memory() {
        let mut buckets = Buckets::default();
        for round in 0..1_000 {
            for ns in [3, 9_000_000, NS_MAX - 1] {
                buckets.add(bucket(ns + round % 2), 1);
            }
        }
        assert_eq!(buckets.pages.len(), 3);
    }
}
