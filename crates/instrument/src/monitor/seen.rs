//! Which frames of a stream were seen on which port: bits in pages, in a window that slides.
//!
//! A lane is one port, or the place for corrupt frames. Pages come into being when a frame falls
//! into them and go when the window passes; what a page knows is then added to the tally. So
//! memory is bounded however long the trial, and exact counts need no table of frames.
//! A number below the window is too late to be judged; the caller counts it.

use std::collections::VecDeque;

/// Frames in one page.
const PAGE_FRAMES: u64 = 4096;

/// Words of 64 bits for one lane of one page.
const LANE_WORDS: usize = (PAGE_FRAMES / 64) as usize;

/// Later frames of a stream after which an earlier one is too late to be told from a duplicate.
pub const WINDOW_FRAMES: u64 = 1 << 22;

const WINDOW_PAGES: u64 = WINDOW_FRAMES / PAGE_FRAMES;

/// Spare pages that are kept for reuse.
const SPARE_PAGES: usize = 4;

/// What is known of a frame that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// The first copy in this lane.
    First,
    /// Another was in this lane before.
    Again,
    /// It lies before the window.
    TooLate,
}

/// Counts of different frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seen in any lane.
    pub seen: u64,
    /// Seen on one port only, a wrong one, and not corrupt anywhere.
    pub misrouted: u64,
    /// Seen on more than one port.
    pub flooded: u64,
}

/// The bits of one stream.
#[derive(Debug)]
pub struct Seen {
    ports: usize,
    expected: usize,
    /// Number of the first page of the window.
    base: u64,
    pages: VecDeque<Option<Box<[u64]>>>,
    spare: Vec<Box<[u64]>>,
    retired: Tally,
}

impl Seen {
    /// Nothing seen on any of `ports`; frames belong on port `expected`.
    pub fn new(ports: usize, expected: usize) -> Self {
        let (pages, spare) = (VecDeque::new(), Vec::new());
        Seen { ports, expected, base: 0, pages, spare, retired: Tally::default() }
    }

    /// The lane for corrupt frames.
    pub fn corrupt_lane(&self) -> usize {
        self.ports
    }

    /// Marks frame `number` in `lane`.
    #[inline]
    pub fn mark(&mut self, number: u64, lane: usize) -> Arrived {
        let page = number / PAGE_FRAMES;
        if page < self.base {
            return Arrived::TooLate;
        }
        let place = (number % PAGE_FRAMES) as usize;
        let words = self.page(page);
        let word = &mut words[lane * LANE_WORDS + place / 64];
        let bit = 1 << (place % 64);
        let was = *word & bit != 0;
        *word |= bit;
        if was { Arrived::Again } else { Arrived::First }
    }

    fn page(&mut self, page: u64) -> &mut [u64] {
        while page >= self.base + WINDOW_PAGES {
            if self.pages.is_empty() {
                self.base = page + 1 - WINDOW_PAGES;
                break;
            }
            self.retire();
        }
        let place = (page - self.base) as usize;
        if place >= self.pages.len() {
            self.pages.resize(place + 1, None);
        }
        let (spare, words) = (&mut self.spare, (self.ports + 1) * LANE_WORDS);
        self.pages[place].get_or_insert_with(|| match spare.pop() {
            Some(mut page) => {
                page.fill(0);
                page
            }
            None => vec![0; words].into_boxed_slice(),
        })
    }

    fn retire(&mut self) {
        if let Some(page) = self.pages.pop_front().flatten() {
            self.digest(&page);
            if self.spare.len() < SPARE_PAGES {
                self.spare.push(page);
            }
        }
        self.base += 1;
    }

    fn digest(&mut self, page: &[u64]) {
        self.retired += tally(page, self.ports, self.expected);
    }

    /// What was seen up to now, those in the window included.
    pub fn tally(&self) -> Tally {
        let mut sum = self.retired;
        for page in self.pages.iter().flatten() {
            sum += tally(page, self.ports, self.expected);
        }
        sum
    }
}

fn tally(page: &[u64], ports: usize, expected: usize) -> Tally {
    let mut sum = Tally::default();
    for place in 0..LANE_WORDS {
        let lane = |lane: usize| page[lane * LANE_WORDS + place];
        let (mut any, mut several) = (0u64, 0u64);
        for port in 0..ports {
            several |= any & lane(port);
            any |= lane(port);
        }
        let corrupt = lane(ports);
        sum.seen += u64::from((any | corrupt).count_ones());
        sum.flooded += u64::from(several.count_ones());
        sum.misrouted += u64::from((any & !several & !lane(expected) & !corrupt).count_ones());
    }
    sum
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.seen += other.seen;
        self.misrouted += other.misrouted;
        self.flooded += other.flooded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_judged_by_the_ports_that_saw_it() {
        let mut seen = Seen::new(3, 1);
        assert_eq!(seen.mark(70, 1), Arrived::First);
        assert_eq!(seen.mark(70, 1), Arrived::Again);
        assert_eq!(seen.mark(71, 2), Arrived::First);
        assert_eq!(seen.tally(), Tally { seen: 2, misrouted: 1, flooded: 0 });
        seen.mark(71, 1);
        seen.mark(72, 0);
        seen.mark(72, 2);
        assert_eq!(seen.tally(), Tally { seen: 3, misrouted: 0, flooded: 2 });
        seen.mark(73, seen.corrupt_lane());
        seen.mark(73, 2);
        assert_eq!(seen.tally(), Tally { seen: 4, misrouted: 0, flooded: 2 });
    }

    #[test]
    fn the_window_slides_keeps_the_counts_and_bounds_memory() {
        let mut seen = Seen::new(2, 1);
        let step = 1000;
        let count = 3 * WINDOW_FRAMES / step;
        for place in 0..count {
            assert_eq!(seen.mark(place * step, 1), Arrived::First);
            seen.mark(place * step, (place % 2) as usize);
        }
        let tally = seen.tally();
        assert_eq!((tally.seen, tally.flooded), (count, count.div_ceil(2)));
        assert!(seen.pages.len() as u64 <= WINDOW_PAGES);
        assert_eq!(seen.mark(5, 1), Arrived::TooLate);
        assert_eq!(seen.mark((count - 1) * step, 1), Arrived::Again);
    }

    #[test]
    fn a_leap_over_the_whole_window_is_quick_and_loses_nothing() {
        let mut seen = Seen::new(1, 0);
        seen.mark(3, 0);
        assert_eq!(seen.mark(crate::signature::NUMBER_MAX, 0), Arrived::First);
        assert_eq!(seen.tally().seen, 2);
        assert_eq!(seen.mark(3, 0), Arrived::TooLate);
    }
}
