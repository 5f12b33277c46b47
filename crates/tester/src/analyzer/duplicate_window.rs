//! Record of received frame numbers by port: bitmaps in pages, in a sliding window.
//!
//! A lane is one port, or the lane for corrupt frames. A page is allocated for its first frame and
//! released when the window has passed it. Its counts are then added to the tally. So memory is
//! bounded for any trial length, and exact counts need no table of frames. The caller counts frames
//! below the window as late.

use std::collections::VecDeque;

/// Frames in one page.
const PAGE_FRAMES: u64 = 4096;

/// 64-bit words of one lane in a page.
const LANE_WORDS: usize = (PAGE_FRAMES / 64) as usize;

/// Window in frames of a stream: after this many later ones, duplicates of a frame are not
/// detected. It is shorter if more than twenty streams share the memory.
pub const WINDOW_FRAMES: u64 = 1 << 22;

const WINDOW_PAGES: u64 = WINDOW_FRAMES / PAGE_FRAMES;

/// Maximum memory for the windows of all streams. With many streams, each window is shorter.
const WINDOWS_BYTES_MAX: u64 = 64 << 20;

/// Minimum window, for any number of streams.
const WINDOW_PAGES_MIN: u64 = 16;

/// Maximum number of spare pages to keep for reuse.
const SPARE_PAGES: usize = 4;

/// Result for an arriving frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    /// First copy in this lane.
    First,
    /// Duplicate in this lane.
    Again,
    /// The frame is below the window.
    TooLate,
}

/// Counts of distinct frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DistinctCounts {
    /// Frames in any lane.
    pub seen: u64,
    /// Frames on one wrong port only, and not in the corrupt lane.
    pub misrouted: u64,
    /// Frames on more than one port.
    pub flooded: u64,
    /// Frames only in the corrupt lane.
    pub beside: u64,
}

/// Bitmaps of one stream.
#[derive(Debug)]
pub struct DuplicateWindow {
    ports: usize,
    expected: usize,
    /// Maximum number of pages in the window.
    window: u64,
    /// Number of the window's first page.
    base: u64,
    pages: VecDeque<Option<Box<[u64]>>>,
    spare: Vec<Box<[u64]>>,
    retired: DistinctCounts,
    /// First and last number before the window that is missing on the expected port.
    missed: Option<[u64; 2]>,
}

impl DuplicateWindow {
    /// Creates an empty record for frames expected on port `expected`. All `windows` share the
    /// memory.
    pub fn new(ports: usize, expected: usize, windows: usize) -> Self {
        let (pages, spare) = (VecDeque::new(), Vec::new());
        let page_bytes = ((ports + 1) * LANE_WORDS * size_of::<u64>()) as u64;
        let share = WINDOWS_BYTES_MAX / (windows.max(1) as u64 * page_bytes);
        let window = share.clamp(WINDOW_PAGES_MIN, WINDOW_PAGES);
        let retired = DistinctCounts::default();
        DuplicateWindow { ports, expected, window, base: 0, pages, spare, retired, missed: None }
    }

    /// Returns the lane for corrupt frames.
    pub fn corrupt_lane(&self) -> usize {
        self.ports
    }

    /// Marks frame `number` in `lane`.
    #[inline]
    pub fn mark(&mut self, number: u64, lane: usize) -> ArrivalKind {
        let page = number / PAGE_FRAMES;
        if page < self.base {
            return ArrivalKind::TooLate;
        }
        let place = (number % PAGE_FRAMES) as usize;
        let words = self.page(page);
        let word = &mut words[lane * LANE_WORDS + place / 64];
        let bit = 1 << (place % 64);
        let was = *word & bit != 0;
        *word |= bit;
        if was { ArrivalKind::Again } else { ArrivalKind::First }
    }

    /// Marks successive frames, whose bits share a word, in `lane`. Returns false without effect if
    /// one is already marked or too late.
    #[inline]
    pub fn mark_new(&mut self, number: u64, frames: u64, lane: usize) -> bool {
        let page = number / PAGE_FRAMES;
        if page < self.base {
            return false;
        }
        let place = (number % PAGE_FRAMES) as usize;
        let bits = (u64::MAX >> (64 - frames)) << (place % 64);
        let word = &mut self.page(page)[lane * LANE_WORDS + place / 64];
        let are_new = *word & bits == 0;
        *word |= if are_new { bits } else { 0 };
        are_new
    }

    #[inline]
    fn page(&mut self, page: u64) -> &mut [u64] {
        let place = page.wrapping_sub(self.base) as usize;
        if !self.pages.get(place).is_some_and(Option::is_some) {
            self.make_page(page);
        }
        let place = (page - self.base) as usize;
        self.pages[place].as_mut().expect("the page was created above")
    }

    #[cold]
    fn make_page(&mut self, page: u64) {
        while page >= self.base + self.window {
            if self.pages.is_empty() {
                let base = page + 1 - self.window;
                let leapt = [self.base * PAGE_FRAMES, base * PAGE_FRAMES - 1];
                self.missed = joined(self.missed, Some(leapt));
                self.base = base;
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
        });
    }

    fn retire(&mut self) {
        let page = self.pages.pop_front().flatten();
        let lane = page.as_deref().map(|page| self.lane(page));
        self.missed = joined(self.missed, missing(lane, self.base, u64::MAX));
        if let Some(page) = page {
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

    /// Returns the words of the expected port.
    fn lane<'a>(&self, page: &'a [u64]) -> &'a [u64] {
        &page[self.expected * LANE_WORDS..][..LANE_WORDS]
    }

    /// Returns the first and the last number below `count` that is missing on the expected port.
    pub fn missed(&self, count: u64) -> Option<[u64; 2]> {
        let mut found = self.missed;
        for (page, number) in self.pages.iter().zip(self.base..) {
            let lane = page.as_deref().map(|page| self.lane(page));
            found = joined(found, missing(lane, number, count));
        }
        let beyond = (self.base + self.pages.len() as u64) * PAGE_FRAMES;
        joined(found, (beyond < count).then(|| [beyond, count - 1]))
    }

    /// Returns the counts so far, the current window included.
    pub fn tally(&self) -> DistinctCounts {
        let mut sum = self.retired;
        for page in self.pages.iter().flatten() {
            sum += tally(page, self.ports, self.expected);
        }
        sum
    }
}

/// Returns the first and the last number below `count` that is missing in page `number`.
///
/// `lane` holds the page's words of the expected port, if the page exists.
fn missing(lane: Option<&[u64]>, number: u64, count: u64) -> Option<[u64; 2]> {
    let base = number * PAGE_FRAMES;
    let frames = count.saturating_sub(base).min(PAGE_FRAMES);
    let Some(lane) = lane else { return (frames > 0).then(|| [base, base + frames - 1]) };
    let absent = |word: usize| {
        let asked = frames.saturating_sub(word as u64 * 64).min(64) as u32;
        !lane[word] & u64::MAX.checked_shr(64 - asked).unwrap_or(0)
    };
    let first = (0..LANE_WORDS).find(|&word| absent(word) != 0)?;
    let last = (0..LANE_WORDS).rev().find(|&word| absent(word) != 0)?;
    let number = |word: usize, bit: u32| base + word as u64 * 64 + u64::from(bit);
    Some([
        number(first, absent(first).trailing_zeros()),
        number(last, 63 - absent(last).leading_zeros()),
    ])
}

/// Returns the union of two ranges as one range.
fn joined(one: Option<[u64; 2]>, other: Option<[u64; 2]>) -> Option<[u64; 2]> {
    match (one, other) {
        (Some(one), Some(other)) => Some([one[0].min(other[0]), one[1].max(other[1])]),
        (one, other) => one.or(other),
    }
}

fn tally(page: &[u64], ports: usize, expected: usize) -> DistinctCounts {
    let mut sum = DistinctCounts::default();
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
        sum.beside += u64::from((corrupt & !any).count_ones());
        sum.misrouted += u64::from((any & !several & !lane(expected) & !corrupt).count_ones());
    }
    sum
}

impl std::ops::AddAssign for DistinctCounts {
    fn add_assign(&mut self, other: DistinctCounts) {
        self.seen += other.seen;
        self.misrouted += other.misrouted;
        self.flooded += other.flooded;
        self.beside += other.beside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_classified_by_the_ports_that_received_it() {
        let mut seen = DuplicateWindow::new(3, 1, 1);
        assert_eq!(seen.mark(70, 1), ArrivalKind::First);
        assert_eq!(seen.mark(70, 1), ArrivalKind::Again);
        assert_eq!(seen.mark(71, 2), ArrivalKind::First);
        assert_eq!(
            seen.tally(),
            DistinctCounts { seen: 2, misrouted: 1, ..DistinctCounts::default() }
        );
        seen.mark(71, 1);
        seen.mark(72, 0);
        seen.mark(72, 2);
        assert_eq!(
            seen.tally(),
            DistinctCounts { seen: 3, flooded: 2, ..DistinctCounts::default() }
        );
        seen.mark(73, seen.corrupt_lane());
        assert_eq!(
            seen.tally(),
            DistinctCounts { seen: 4, flooded: 2, beside: 1, ..DistinctCounts::default() }
        );
        seen.mark(73, 2);
        assert_eq!(
            seen.tally(),
            DistinctCounts { seen: 4, flooded: 2, ..DistinctCounts::default() }
        );
    }

    #[test]
    fn the_window_slides_with_correct_counts_and_bounded_memory() {
        let mut seen = DuplicateWindow::new(2, 1, 1);
        let step = 1000;
        let count = 3 * WINDOW_FRAMES / step;
        for place in 0..count {
            assert_eq!(seen.mark(place * step, 1), ArrivalKind::First);
            seen.mark(place * step, (place % 2) as usize);
        }
        let tally = seen.tally();
        assert_eq!((tally.seen, tally.flooded), (count, count.div_ceil(2)));
        assert!(seen.pages.len() as u64 <= WINDOW_PAGES);
        assert_eq!(seen.mark(5, 1), ArrivalKind::TooLate);
        assert_eq!(seen.mark((count - 1) * step, 1), ArrivalKind::Again);
    }

    #[test]
    fn the_first_and_the_last_missing_frame_are_reported() {
        let marked = |count: u64, lost: &[u64]| {
            let mut seen = DuplicateWindow::new(2, 1, 1);
            for number in (0..count).filter(|number| !lost.contains(number)) {
                seen.mark(number, 1);
            }
            seen
        };
        assert_eq!(marked(10_000, &[]).missed(10_000), None);
        assert_eq!(marked(10_000, &[7, 4096, 9_000]).missed(10_000), Some([7, 9_000]));
        assert_eq!(
            marked(10_000, &[]).missed(20_000),
            Some([10_000, 19_999]),
            "the end is missing"
        );
        assert_eq!(marked(0, &[]).missed(5), Some([0, 4]));
        assert_eq!(marked(0, &[]).missed(0), None);
        // A frame on a wrong port is missing on the expected one.
        let mut seen = marked(100, &[50]);
        seen.mark(50, 0);
        assert_eq!(seen.missed(100), Some([50, 50]));
        // Missing frames before the window are remembered.
        let long = 2 * WINDOW_FRAMES;
        let mut seen = DuplicateWindow::new(1, 0, 1);
        for number in (0..long).filter(|&number| number != 10 && number != 5_000) {
            seen.mark(number, 0);
        }
        assert_eq!(seen.missed(long), Some([10, 5_000]));
        let mut leapt = DuplicateWindow::new(1, 0, 1);
        leapt.mark(0, 0);
        leapt.mark(3 * WINDOW_FRAMES, 0);
        assert_eq!(leapt.missed(3 * WINDOW_FRAMES + 1), Some([1, 3 * WINDOW_FRAMES - 1]));
    }

    #[test]
    fn many_streams_share_the_memory_of_their_windows() {
        for windows in [1, 40, 512, 5_000] {
            let mut seen = DuplicateWindow::new(2, 1, windows);
            let count = 3 * WINDOW_PAGES;
            for page in 0..count {
                seen.mark(page * PAGE_FRAMES, 1);
            }
            let bytes: usize = seen.pages.iter().flatten().map(|page| size_of_val(&**page)).sum();
            let least = WINDOW_PAGES_MIN as usize * 3 * LANE_WORDS * 8;
            assert!(bytes <= (WINDOWS_BYTES_MAX as usize / windows).max(least), "{windows}");
            assert_eq!(seen.tally().seen, count);
        }
    }

    #[test]
    fn a_jump_over_the_whole_window_is_fast_and_keeps_the_counts() {
        let mut seen = DuplicateWindow::new(1, 0, 1);
        seen.mark(3, 0);
        assert_eq!(seen.mark(crate::signature::NUMBER_MAX, 0), ArrivalKind::First);
        assert_eq!(seen.tally().seen, 2);
        assert_eq!(seen.mark(3, 0), ArrivalKind::TooLate);
    }
}
