//! Model of a path: capacity, queue and latency.
//!
//! Invariant: frames keep their order, and at most [`LINE_FRAMES_MAX`] are on a line. A frame
//! without room is dropped and counted.

use std::collections::VecDeque;

use netio::wrap::rng::Chance;
use packet::time::Nanos;

use super::model::Path;

/// Maximum number of frames on a line.
pub const LINE_FRAMES_MAX: usize = 65_536;

const SECOND: u128 = 1_000_000_000;

/// A path that delays items of type `T`.
#[derive(Debug)]
pub struct DelayLine<T> {
    path: Path,
    chance: Chance,
    /// When the last frame was served, and the fraction of it in billionths of a nanosecond.
    free_at: (Nanos, u128),
    last_at: Nanos,
    held: VecDeque<(Nanos, T)>,
    /// Frames that were dropped because the queue was full.
    pub frames_dropped: u64,
}

impl<T> DelayLine<T> {
    /// Creates a line for a path, with random choices from this seed.
    pub fn new(path: &Path, seed: u64) -> DelayLine<T> {
        let (free_at, last_at) = ((Nanos::ZERO, 0), Nanos::ZERO);
        let chance = Chance::new(seed);
        let held = VecDeque::new();
        DelayLine { path: path.clone(), chance, free_at, last_at, held, frames_dropped: 0 }
    }

    /// Whether frames leave without delay.
    pub fn is_free(&self) -> bool {
        self.path == Path::default()
    }

    /// Returns when a frame of `bytes` bytes that arrives now leaves, or `None` if the queue is
    /// full.
    pub fn admit(&mut self, now: Nanos, bytes: usize) -> Option<Nanos> {
        self.admit_past(now, bytes, 0)
    }

    /// Like [`DelayLine::admit`], with a search through this number of flow entries.
    pub fn admit_past(&mut self, now: Nanos, bytes: usize, entries: usize) -> Option<Nanos> {
        let begins = match self.begin(now) {
            Some(begins) if self.held.len() < LINE_FRAMES_MAX => begins,
            _ => {
                self.frames_dropped += 1;
                return None;
            }
        };
        let search = self.path.rule_ps.saturating_mul(entries as u64) / 1000;
        let took = begins.saturating_add(Nanos(self.took(bytes as u64).saturating_add(search)));
        self.last_at = self.last_at.max(took);
        Some(self.last_at)
    }

    /// Whether the path takes longer for rewritten frames.
    pub fn charges_rewrites(&self) -> bool {
        self.path.rewrite_ns > 0
    }

    /// Delays the frame that was to leave at `leaves_at`, as it was rewritten. Returns when it
    /// leaves.
    pub fn rewritten(&mut self, leaves_at: Nanos) -> Nanos {
        self.last_at = self.last_at.max(leaves_at.saturating_add(Nanos(self.path.rewrite_ns)));
        self.last_at
    }

    /// Returns when service of a frame that arrives now ends, or `None` if the queue is full.
    fn begin(&mut self, now: Nanos) -> Option<Nanos> {
        let pps = u128::from(self.path.capacity_pps);
        if pps == 0 {
            return Some(now);
        }
        let (at, part) = self.free_at;
        let waits = u128::from(at.since(now).0);
        let limit = u128::from(self.path.queue_frames);
        if limit > 0 && waits * pps > limit * SECOND {
            return None;
        }
        let part = if at <= now { 0 } else { part };
        let more = SECOND * SECOND / pps + part;
        let served = at.max(now).saturating_add(Nanos((more / SECOND) as u64));
        self.free_at = (served, more % SECOND);
        Some(served)
    }

    fn took(&mut self, bytes: u64) -> u64 {
        let path = &self.path;
        let mut took = path.latency_ns + path.byte_ps * bytes / 1000;
        if path.jitter_ns > 0 {
            took += self.chance.below(path.jitter_ns + 1);
        }
        if path.slow_percent > 0 && self.chance.below(100) < path.slow_percent {
            took += path.slow_ns + path.slow_byte_ps * bytes / 1000;
        }
        took
    }

    /// Queues an item that leaves at the time that [`DelayLine::admit`] last returned.
    pub fn hold(&mut self, leaves_at: Nanos, what: T) {
        self.held.push_back((leaves_at, what));
    }

    /// Handles an item that found no room: it replaces a random queued item behind the first, or is
    /// dropped itself. Each is equally likely. (The drop has been counted.)
    pub fn displace(&mut self, what: T) {
        let places = self.held.len().max(1) as u64;
        let place = self.chance.below(places) as usize + 1;
        if let Some((_, held)) = self.held.get_mut(place) {
            *held = what;
        }
    }

    /// Returns the next item that has left by now, and when.
    pub fn leaves(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let is_due = self.held.front().is_some_and(|(at, _)| *at <= now);
        if is_due { self.held.pop_front() } else { None }
    }

    /// Returns when the next item leaves.
    pub fn next_event(&self) -> Option<Nanos> {
        self.held.front().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: Path) -> DelayLine<u32> {
        DelayLine::new(&path, 1)
    }

    #[test]
    fn a_frame_takes_the_latency_of_its_path() {
        let mut line = line(Path { latency_ns: 2_500, byte_ps: 800, ..Path::default() });
        assert_eq!(line.admit(Nanos(10), 1000), Some(Nanos(10 + 2_500 + 800)));
        assert_eq!(line.admit(Nanos(11), 10), Some(Nanos(10 + 2_500 + 800)), "none overtakes");
    }

    #[test]
    fn searched_entries_and_rewrites_take_time() {
        let mut line = line(Path { rule_ps: 1_500, rewrite_ns: 40, ..Path::default() });
        assert_eq!(line.admit_past(Nanos(10), 64, 100), Some(Nanos(160)));
        assert_eq!(line.admit_past(Nanos(300), 64, 0), Some(Nanos(300)));
        assert_eq!(line.rewritten(Nanos(300)), Nanos(340));
        assert_eq!(line.admit_past(Nanos(310), 64, 0), Some(Nanos(340)), "none overtakes");
    }

    #[test]
    fn capacity_and_queue_length_are_limited() {
        let mut line = line(Path { capacity_pps: 3, queue_frames: 2, ..Path::default() });
        let times: Vec<_> = (0..5).map(|_| line.admit(Nanos::ZERO, 64)).collect();
        let at = |ns| Some(Nanos(ns));
        assert_eq!(times, [at(333_333_333), at(666_666_666), at(999_999_999), None, None]);
        assert_eq!(line.frames_dropped, 2);
        assert_eq!(line.admit(Nanos::from_secs(9), 64), at(9_333_333_333));
    }

    #[test]
    fn a_displacing_frame_replaces_a_random_waiting_frame() {
        let mut line = line(Path { capacity_pps: 1000, queue_frames: 9, ..Path::default() });
        for number in 0..1000 {
            match line.admit(Nanos::ZERO, 64) {
                Some(at) => line.hold(at, number),
                None => line.displace(number),
            }
        }
        let left: Vec<u32> =
            std::iter::from_fn(|| line.leaves(Nanos::MAX)).map(|it| it.1).collect();
        assert_eq!((left.len(), left[0], line.frames_dropped), (10, 0, 990));
        assert!(left[1..].iter().all(|number| *number > 900), "{left:?}");
        assert!(!left[1..].is_sorted(), "{left:?}");
    }

    #[test]
    fn jitter_and_slow_frames_follow_the_model() {
        let path = Path {
            latency_ns: 1_000,
            jitter_ns: 100,
            slow_percent: 20,
            slow_ns: 5_000,
            ..Path::default()
        };
        let mut line = line(path);
        let took: Vec<u64> = (0..10_000)
            .map(|at| line.admit(Nanos(at * 100_000), 64).unwrap().since(Nanos(at * 100_000)).0)
            .collect();
        let slow = took.iter().filter(|took| **took >= 6_000).count();
        assert!((1_800..2_200).contains(&slow), "{slow}");
        assert!(
            took.iter()
                .all(|took| (1_000..=1_100).contains(took) || (6_000..=6_100).contains(took))
        );
        let mean = took.iter().map(|took| took % 5_000 % 1_000).sum::<u64>() / 10_000;
        assert!((48..=52).contains(&mean), "{mean}");
    }
}
