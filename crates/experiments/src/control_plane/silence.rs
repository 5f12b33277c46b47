//! Longest gap in a stream: the time without output although frames were sent.
//!
//! A gap ends with the arrival of a frame. It begins with the arrival of the frame before, or when the next frame
//! was sent, if that is later. The nominal interval between frames and late sending by the tester are therefore
//! excluded. Sequence numbers show missing frames; the first missing frame was sent one nominal interval after the
//! frame before it.
//!
//! Invariant: a frame with an inexact arrival time ends no gap.

use packet::time::Nanos;

/// Longest gap of a stream so far.
#[derive(Debug, Clone)]
pub struct LongestGap {
    /// Nominal interval between two frames.
    gap: Nanos,
    last: Option<LastFrame>,
    longest: Nanos,
}

/// Arrived frame with the highest sequence number.
#[derive(Debug, Clone, Copy)]
struct LastFrame {
    number: u64,
    sent_at: Nanos,
    arrived_at: Nanos,
}

impl LongestGap {
    /// Creates the state for a stream of this rate, without any arrived frame.
    pub fn new(rate_pps: f64) -> LongestGap {
        let gap = Nanos::from_secs_f64(1.0 / rate_pps);
        LongestGap { gap, last: None, longest: Nanos::ZERO }
    }

    /// Records an arrived frame; its arrival time counts only if it is exact.
    pub fn note(&mut self, number: u64, sent_at: Nanos, arrived_at: Nanos, is_known: bool) {
        let Some(last) = &mut self.last else {
            self.last = Some(LastFrame { number, sent_at, arrived_at });
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
        *last = LastFrame { number, sent_at, arrived_at };
    }

    /// Returns the longest gap since the last call, including one that continues at `now` if frames are missing.
    ///
    /// `sent` is the number of frames sent.
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

    /// Evaluates a stream of 1,000 frames/s.
    fn silence(frames: &[(u64, u64, u64)]) -> LongestGap {
        let mut silence = LongestGap::new(1000.0);
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
    fn nominal_intervals_and_late_sending_are_not_gaps() {
        assert_eq!(longest_us(&[(0, 0, 10), (1, 1000, 1010), (2, 2000, 2010)]), 10);
        // The tester sent the second frame 5 ms late.
        assert_eq!(longest_us(&[(0, 0, 10), (1, 6000, 6010)]), 10);
    }

    #[test]
    fn delayed_and_lost_frames_are_gaps() {
        // The switch stops at 1 ms and sends the queued frames at 5 ms.
        let held = [(0, 0, 10), (1, 1000, 5000), (2, 2000, 5001), (5, 5000, 5010)];
        assert_eq!(longest_us(&held), 4000);
        // Frames 1 to 4 are lost; the first of them was due at 1 ms.
        assert_eq!(longest_us(&[(0, 0, 10), (5, 5000, 5010)]), 4010);
    }

    #[test]
    fn reordered_frames_end_a_gap_once() {
        assert_eq!(longest_us(&[(1, 1000, 1010), (0, 0, 1500), (2, 2000, 2010)]), 10);
    }

    #[test]
    fn an_open_gap_lasts_until_the_end() {
        let now = Nanos::from_millis(9);
        assert_eq!(silence(&[(0, 0, 10)]).take(Some(8), now), Nanos::from_millis(8));
        assert_eq!(silence(&[(0, 0, 10)]).take(Some(1), now), Nanos::ZERO);
    }

    #[test]
    fn an_inexact_arrival_ends_no_gap() {
        let mut silence = silence(&[(0, 0, 10)]);
        silence.note(1, Nanos::from_millis(1), Nanos::from_millis(7), false);
        silence.note(2, Nanos::from_millis(2), Nanos::from_millis(7), true);
        assert_eq!(silence.take(None, Nanos::ZERO), Nanos::ZERO);
    }
}
