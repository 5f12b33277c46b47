//! Longest silence of a stream: how long nothing came out although frames had gone in.
//!
//! A silence lasts from the arrival of one frame, or from the moment at which the next one was sent if that is later, to
//! the arrival of the next frame that came. So the nominal gap between frames and a tester that sends late are no part of
//! it. Numbers tell which frames are missing: the first of them was sent a nominal gap after the frame before it.
//! Invariant: a frame that the tester did not see arrive in time ends no silence, since its moment is unknown.

use packet::time::Nanos;

/// The longest silence of a stream so far.
#[derive(Debug, Clone)]
pub struct Silence {
    /// Time between two frames as they are sent.
    gap: Nanos,
    last: Option<Last>,
    longest: Nanos,
}

/// The frame with the highest number that arrived.
#[derive(Debug, Clone, Copy)]
struct Last {
    number: u64,
    sent_at: Nanos,
    arrived_at: Nanos,
}

impl Silence {
    /// No frame of a stream of this rate has arrived yet.
    pub fn new(rate_pps: f64) -> Silence {
        let gap = Nanos::from_secs_f64(1.0 / rate_pps);
        Silence { gap, last: None, longest: Nanos::ZERO }
    }

    /// Notes a frame that arrived; its moment counts only if it is known.
    pub fn note(&mut self, number: u64, sent_at: Nanos, arrived_at: Nanos, is_known: bool) {
        let Some(last) = &mut self.last else {
            self.last = Some(Last { number, sent_at, arrived_at });
            return;
        };
        if number <= last.number {
            last.arrived_at = last.arrived_at.max(arrived_at);
            return;
        }
        let first_missing = last.sent_at.saturating_add(self.gap);
        let due_from = if number == last.number + 1 { sent_at } else { first_missing.min(sent_at) };
        if is_known {
            let silence = arrived_at.since(due_from.max(last.arrived_at));
            self.longest = self.longest.max(silence);
        }
        let arrived_at = last.arrived_at.max(arrived_at);
        *last = Last { number, sent_at, arrived_at };
    }

    /// The longest silence since this was last asked, one that still lasts at `now` included if frames are missing: so
    /// many were sent.
    pub fn take(&mut self, sent: Option<u64>, now: Nanos) -> Nanos {
        let lasting = self.last.filter(|last| sent.is_some_and(|sent| sent > last.number + 1));
        let lasting = lasting.map_or(Nanos::ZERO, |last| {
            now.since(last.sent_at.saturating_add(self.gap).max(last.arrived_at).min(now))
        });
        std::mem::take(&mut self.longest).max(lasting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 1,000 frames/s.
    fn silence(frames: &[(u64, u64, u64)]) -> Silence {
        let mut silence = Silence::new(1000.0);
        for &(number, sent_us, arrived_us) in frames {
            let (sent_at, arrived_at) =
                (Nanos::from_micros(sent_us), Nanos::from_micros(arrived_us));
            silence.note(number, sent_at, arrived_at, true);
        }
        silence
    }

    fn longest_us(frames: &[(u64, u64, u64)]) -> u64 {
        silence(frames).take(None, Nanos::ZERO).0 / 1000
    }

    #[test]
    fn the_nominal_gap_and_a_late_sender_are_no_silence() {
        assert_eq!(longest_us(&[(0, 0, 10), (1, 1000, 1010), (2, 2000, 2010)]), 10);
        // The tester sent the second frame 5 ms late.
        assert_eq!(longest_us(&[(0, 0, 10), (1, 6000, 6010)]), 10);
    }

    #[test]
    fn frames_that_wait_and_frames_that_are_lost_are_a_silence() {
        // The switch stands still from 1 ms on, and passes what waited at 5 ms.
        let held = [(0, 0, 10), (1, 1000, 5000), (2, 2000, 5001), (5, 5000, 5010)];
        assert_eq!(longest_us(&held), 4000);
        // Frames 1 to 4 are lost: the first of them was due at 1 ms.
        assert_eq!(longest_us(&[(0, 0, 10), (5, 5000, 5010)]), 4010);
    }

    #[test]
    fn frames_that_overtake_others_end_no_silence_twice() {
        assert_eq!(longest_us(&[(1, 1000, 1010), (0, 0, 1500), (2, 2000, 2010)]), 10);
    }

    #[test]
    fn a_silence_that_does_not_end_lasts_until_the_end() {
        let now = Nanos::from_millis(9);
        assert_eq!(silence(&[(0, 0, 10)]).take(Some(8), now), Nanos::from_millis(8));
        assert_eq!(silence(&[(0, 0, 10)]).take(Some(1), now), Nanos::ZERO);
    }

    #[test]
    fn a_moment_that_is_unknown_ends_no_silence() {
        let mut silence = silence(&[(0, 0, 10)]);
        silence.note(1, Nanos::from_millis(1), Nanos::from_millis(7), false);
        silence.note(2, Nanos::from_millis(2), Nanos::from_millis(7), true);
        assert_eq!(silence.take(None, Nanos::ZERO), Nanos::ZERO);
    }
}
