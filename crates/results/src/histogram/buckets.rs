//! Counts of times by bucket, in pages: what was never counted takes no memory.
//!
//! The buckets are those of HdrHistogram for three digits: one for each nanosecond at first, and half
//! as many for each doubling beyond. A tester keeps several histograms for each of its streams and
//! counts each frame in them, so that a count has half the width of its sum; what a count cannot hold
//! is kept beside it. No count is lost.

use std::collections::BTreeMap;

use super::{DIGITS, NS_MAX};

/// Times up to here have buckets of one nanosecond; each doubling beyond has half as many buckets.
const EXACT_LOG2: u32 = 11;

const _: () = assert!(DIGITS == 3 && 1 << EXACT_LOG2 >= 2 * 1000, "three digits need 2,000 steps");

/// Buckets in a page: two lines of the cache.
const PAGE_BUCKETS: usize = 32;

/// The place of a page that does not exist: no page has it.
const NOWHERE: u16 = u16::MAX;

const _: () = assert!(bucket(NS_MAX) / PAGE_BUCKETS < NOWHERE as usize);

/// How often each bucket was counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Buckets {
    /// Where the page of so many buckets is kept, up to the last that exists.
    places: Vec<u16>,
    pages: Vec<[u32; PAGE_BUCKETS]>,
    /// By bucket, what its page has no room for.
    beyond: BTreeMap<usize, u64>,
}

impl Buckets {
    /// Counts a bucket so many times.
    #[inline]
    pub(super) fn add(&mut self, bucket: usize, times: u64) {
        let place = self.places.get(bucket / PAGE_BUCKETS).copied().unwrap_or(NOWHERE);
        let page = self.pages.get_mut(usize::from(place));
        match page.map(|page| &mut page[bucket % PAGE_BUCKETS]) {
            Some(count) if times <= u64::from(u32::MAX - *count) => *count += times as u32,
            _ => self.add_slowly(bucket, times),
        }
    }

    /// Counts a bucket whose page does not exist or has no room.
    #[cold]
    fn add_slowly(&mut self, bucket: usize, times: u64) {
        let (number, at) = (bucket / PAGE_BUCKETS, bucket % PAGE_BUCKETS);
        if number >= self.places.len() {
            self.places.resize(number + 1, NOWHERE);
        }
        if self.places[number] == NOWHERE {
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

    /// Every bucket that was counted, in rising order, and how often.
    pub(super) fn counted(&self) -> impl Iterator<Item = (usize, u64)> {
        let pages = self.places.iter().enumerate().filter(|(_, place)| **place != NOWHERE);
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
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for ns in (0..10_000).chain((10_000..1 << 40).step_by(999_983)) {
            let place = bucket(ns);
            assert!(lowest(place) <= ns && ns <= highest(place), "{ns}");
            assert!(place - last <= 1 || ns > 10_000, "{ns}");
            last = place;
        }
    }

    #[test]
    fn counts_that_outgrow_their_page_are_kept_whole() {
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
    fn only_what_is_counted_takes_memory() {
        let mut buckets = Buckets::default();
        for round in 0..1_000 {
            for ns in [3, 9_000_000, NS_MAX - 1] {
                buckets.add(bucket(ns + round % 2), 1);
            }
        }
        assert_eq!(buckets.pages.len(), 3);
    }
}
