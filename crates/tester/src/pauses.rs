//! Detection of stalls: gaps in which the tester did not poll, and the resulting unknown delays.
//!
//! Where a port takes no timestamps, a frame gets the time at which the tester finds it. After a
//! stall, the arrival times of waiting frames are unknown. A frame that was stamped but not sent
//! before a stall left later than its send time. Delays of both are counted as unknown and enter no
//! distribution, so that a tester's stall is not attributed to the target.

use std::collections::VecDeque;

use packet::time::{Clock, Nanos, Stamp};

use crate::signature::SendTime;
pub use record::Stalls;

/// Minimum gap between polls that makes arrival times unknown.
pub const AWAY: Nanos = Nanos::from_micros(200);

/// Time after a stall in which arrivals can be late because of it: overdue frames are sent then and
/// take some time through the target.
const SETTLING: Nanos = Nanos::from_millis(1);

/// Maximum number of send times to remember whose frames left later. Frames of older ones have
/// arrived long ago.
const LATE_STAMPS_MAX: usize = 64;

/// Detects the tester's own stalls in one trial.
#[derive(Debug)]
pub struct PauseDetector {
    /// When the tester last polled.
    seen_at: Option<Nanos>,
    /// Start and end of the last stall.
    away: [Nanos; 2],
    /// For each port, whether frames can wait there that arrived during a stall.
    is_blurred: Vec<bool>,
    /// Send time of the frames sent since the last poll.
    sending: Option<SendTime>,
    /// Send times earlier than their frames actually left.
    late: VecDeque<SendTime>,
    stalls: Stalls,
}

impl PauseDetector {
    /// Creates a watch for a tester with this many ports.
    pub fn new(ports: usize) -> Self {
        let (is_blurred, late) = (vec![false; ports], VecDeque::new());
        let (away, stalls) = ([Nanos::ZERO; 2], Stalls::default());
        PauseDetector { seen_at: None, away, is_blurred, sending: None, late, stalls }
    }

    /// Records that the tester polls at `now`. Returns whether it was stalled.
    #[inline]
    pub fn note(&mut self, now: Nanos) -> bool {
        let before = self.seen_at.unwrap_or(now);
        let gap = now.since(before);
        self.seen_at = self.seen_at.max(Some(now));
        let sending = self.sending.take();
        if gap < AWAY {
            return false;
        }
        self.stalls.add(gap.0);
        self.away = [before, now];
        self.is_blurred.fill(true);
        if let Some(stamp) = sending {
            if self.late.len() == LATE_STAMPS_MAX {
                self.late.pop_front();
            }
            self.late.push_back(stamp);
        }
        true
    }

    /// Records that the tester missed nothing until `until`: it was idle on purpose, or nothing
    /// could happen in virtual time.
    #[inline]
    pub fn rested(&mut self, until: Nanos) {
        self.seen_at = self.seen_at.max(Some(until));
        self.sending = None;
    }

    /// Records that the tester did other work and received nothing until `now`, when it had no
    /// frames to send.
    ///
    /// This is no stall, but arrival times of waiting frames are unknown.
    pub fn called_away(&mut self, now: Nanos) {
        self.away = [self.seen_at.unwrap_or(now), now];
        self.is_blurred.fill(true);
        self.rested(now);
    }

    /// Records that frames with the send time `now` were sent.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.sending = Some(SendTime::new(now));
    }

    /// Records that `port` has no waiting frames.
    #[inline]
    pub fn drained(&mut self, port: usize) {
        self.is_blurred[port] = false;
    }

    /// Returns whether all times are known of frames that arrive on `port` now, the usual case.
    #[inline]
    pub fn knows_all(&self, port: usize) -> bool {
        self.late.is_empty() && !self.is_blurred.get(port).is_some_and(|is_blurred| *is_blurred)
    }

    /// Returns whether the arrival time of a frame with this timestamp, if any, is known on `port`.
    #[inline]
    pub fn knows_arrival(&self, port: usize, stamp: Option<Stamp>) -> bool {
        let is_found = stamp.is_none_or(|stamp| is_taken_when_found(stamp.clock));
        !(is_found && self.is_blurred.get(port).is_some_and(|is_blurred| *is_blurred))
    }

    /// Returns a function that maps an arrival time to the end of the silence before it.
    ///
    /// This is the arrival time itself, or the start of the last stall if the arrival is shortly
    /// after it.
    #[inline]
    pub fn silent_until(&self) -> impl Fn(Nanos) -> Nanos + use<> {
        let [from, until] = self.away;
        let settled_at = until.saturating_add(SETTLING);
        let was_away = until > Nanos::ZERO;
        move |at| if was_away && at < settled_at { at.min(from) } else { at }
    }

    /// Returns whether the frames with this send time left at that time.
    #[inline]
    pub fn knows_leaving(&self, sent: SendTime) -> bool {
        self.late.is_empty() || !self.late.contains(&sent)
    }

    /// Returns the stalls so far.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }
}

/// Returns whether this clock stamps a frame only when it is found.
fn is_taken_when_found(clock: Clock) -> bool {
    matches!(clock, Clock::UserSpace | Clock::Virtual)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 2_000_000;

    #[test]
    fn a_stall_makes_arrivals_unknown_until_the_port_is_drained() {
        let mut watch = PauseDetector::new(2);
        assert!(!watch.note(Nanos(5_000_000)), "there is no earlier reading");
        assert!(!watch.note(Nanos(5_000_000) + Nanos(AWAY.0 - 1)));
        assert!(watch.knows_arrival(1, None) && watch.knows_all(1));
        let back = Nanos(5_000_000) + Nanos(AWAY.0 - 1 + GAP);
        assert!(watch.note(back));
        let stamp = |clock| Some(Stamp { at: back, clock });
        assert!(!watch.knows_arrival(0, None) && !watch.knows_arrival(1, None));
        let left = Nanos(5_000_000 + AWAY.0 - 1);
        let heard = [left - Nanos(5), back, back + SETTLING].map(watch.silent_until());
        assert_eq!(heard, [left - Nanos(5), left, back + SETTLING]);
        assert!(!watch.knows_arrival(0, stamp(Clock::UserSpace)));
        assert!(watch.knows_arrival(0, stamp(Clock::Kernel)), "the kernel did not stall");
        watch.drained(0);
        assert!(watch.knows_all(0) && !watch.knows_all(1));
        assert!(watch.knows_arrival(0, None) && !watch.knows_arrival(1, None));
        let stalls = watch.stalls();
        assert_eq!((stalls.count, stalls.ns_total, stalls.ns_longest), (1, GAP, GAP));
    }

    #[test]
    fn the_send_time_of_frames_stamped_before_a_stall_is_unknown() {
        let mut watch = PauseDetector::new(1);
        let moments = [Nanos(10), Nanos(20), Nanos(20 + GAP)];
        for now in moments {
            watch.note(now);
            watch.sent(now);
        }
        watch.note(Nanos(30 + GAP));
        let known = moments.map(|at| watch.knows_leaving(SendTime::new(at)));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn an_intended_wait_is_not_a_stall() {
        let mut watch = PauseDetector::new(1);
        watch.note(Nanos(10));
        watch.sent(Nanos(10));
        watch.rested(Nanos(10 + GAP));
        assert!(!watch.note(Nanos(10 + GAP)));
        assert!(watch.knows_leaving(SendTime::new(Nanos(10))) && watch.knows_arrival(0, None));
        assert_eq!(watch.stalls(), Stalls::default());
    }

    #[test]
    fn time_spent_elsewhere_is_not_a_stall_but_makes_arrivals_unknown() {
        let mut watch = PauseDetector::new(1);
        watch.note(Nanos(10));
        watch.called_away(Nanos(10 + GAP));
        assert!(!watch.note(Nanos(10 + GAP)) && !watch.knows_arrival(0, None));
        assert_eq!(watch.stalls(), Stalls::default());
        watch.drained(0);
        assert!(watch.knows_arrival(0, None));
    }

    #[test]
    fn memory_for_many_stalls_is_bounded() {
        let mut watch = PauseDetector::new(1);
        for place in 0..1_000 {
            watch.note(Nanos(place * GAP));
            watch.sent(Nanos(place * GAP));
        }
        assert_eq!(watch.late.len(), LATE_STAMPS_MAX);
        assert_eq!(watch.stalls().count, 999);
        assert!(!watch.knows_leaving(SendTime::new(Nanos(998 * GAP))));
    }
}
