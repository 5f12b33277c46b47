//! Whether the tester was at its work: the gaps in its attention, and what nobody knows for them.
//!
//! Where a port takes no stamps, a frame is dated when the tester finds it. A tester that was away
//! does not know when the frames came that it finds then, and a frame that it had dated but not
//! handed over when it went away left later than it says. The delays of both are unknown: they are
//! counted and stand in no distribution, so that no stall of the tester is told as the target's.

use std::collections::VecDeque;

use packet::time::{Clock, Nanos, Stamp};

use crate::signature::Sent;
pub use results::record::Stalls;

/// For this long the tester may look elsewhere; after longer, it does not know when frames came.
pub const AWAY: Nanos = Nanos::from_micros(200);

/// So long after it came back, what arrives may have been late because of it: what is sent then was due
/// before, and takes some time through the target.
const SETTLING: Nanos = Nanos::from_millis(1);

/// Sending times of which it is remembered that frames left later than they say. Those of older
/// ones have long arrived.
const LATE_STAMPS_MAX: usize = 64;

/// Watches the tester's own attention in one trial.
#[derive(Debug)]
pub struct Watch {
    /// When the tester was last known to be at it.
    seen_at: Option<Nanos>,
    /// When it was away last.
    away: [Nanos; 2],
    /// For each port, whether frames may wait there that came while the tester was away.
    is_blurred: Vec<bool>,
    /// The sending time of frames that were handed over since.
    sending: Option<Sent>,
    /// Sending times that are earlier than the frames left.
    late: VecDeque<Sent>,
    stalls: Stalls,
}

impl Watch {
    /// A tester with this many ports that has done nothing yet.
    pub fn new(ports: usize) -> Self {
        let (is_blurred, late) = (vec![false; ports], VecDeque::new());
        let (away, stalls) = ([Nanos::ZERO; 2], Stalls::default());
        Watch { seen_at: None, away, is_blurred, sending: None, late, stalls }
    }

    /// The tester is at it at `now`; whether it had been away.
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

    /// The tester missed nothing until `now`, although it did not look: it rested on purpose, or
    /// nothing can happen between the events of its time.
    #[inline]
    pub fn rested(&mut self, until: Nanos) {
        self.seen_at = self.seen_at.max(Some(until));
        self.sending = None;
    }

    /// The tester was called away until `now`, with nothing left to send: no stall, but it does not know when
    /// frames came that it finds now.
    pub fn called_away(&mut self, now: Nanos) {
        self.away = [self.seen_at.unwrap_or(now), now];
        self.is_blurred.fill(true);
        self.rested(now);
    }

    /// Frames that say that they were sent at `now` were handed over.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.sending = Some(Sent::new(now));
    }

    /// All that waited on `port` has been taken.
    #[inline]
    pub fn drained(&mut self, port: usize) {
        self.is_blurred[port] = false;
    }

    /// Whether everything is known of what comes in on `port` now, as it is almost always.
    #[inline]
    pub fn knows_all(&self, port: usize) -> bool {
        self.late.is_empty() && !self.is_blurred.get(port).is_some_and(|is_blurred| *is_blurred)
    }

    /// Whether it is known when a frame with this stamp, if any, came in on `port`.
    #[inline]
    pub fn knows_arrival(&self, port: usize, stamp: Option<Stamp>) -> bool {
        let is_found = stamp.is_none_or(|stamp| is_taken_when_found(stamp.clock));
        !(is_found && self.is_blurred.get(port).is_some_and(|is_blurred| *is_blurred))
    }

    /// Until when there was silence before what arrives at a moment, if nothing did before: until then, or
    /// until the tester went away, where it has only just come back.
    #[inline]
    pub fn silent_until(&self) -> impl Fn(Nanos) -> Nanos + use<> {
        let [from, until] = self.away;
        let settled_at = until.saturating_add(SETTLING);
        let was_away = until > Nanos::ZERO;
        move |at| if was_away && at < settled_at { at.min(from) } else { at }
    }

    /// Whether a frame that says so left at that time.
    #[inline]
    pub fn knows_leaving(&self, sent: Sent) -> bool {
        self.late.is_empty() || !self.late.contains(&sent)
    }

    /// What there was until now.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }
}

/// Whether this clock's stamp is taken only when somebody looks for the frame.
fn is_taken_when_found(clock: Clock) -> bool {
    matches!(clock, Clock::UserSpace | Clock::Virtual)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: u64 = 2_000_000;

    #[test]
    fn a_gap_blurs_every_port_until_it_is_drained() {
        let mut watch = Watch::new(2);
        assert!(!watch.note(Nanos(5_000_000)), "nothing was before");
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
        assert!(watch.knows_arrival(0, stamp(Clock::Kernel)), "the kernel was there");
        watch.drained(0);
        assert!(watch.knows_all(0) && !watch.knows_all(1));
        assert!(watch.knows_arrival(0, None) && !watch.knows_arrival(1, None));
        let stalls = watch.stalls();
        assert_eq!((stalls.count, stalls.ns_total, stalls.ns_longest), (1, GAP, GAP));
    }

    #[test]
    fn frames_that_were_dated_before_a_gap_left_at_a_time_that_nobody_knows() {
        let mut watch = Watch::new(1);
        let moments = [Nanos(10), Nanos(20), Nanos(20 + GAP)];
        for now in moments {
            watch.note(now);
            watch.sent(now);
        }
        watch.note(Nanos(30 + GAP));
        let known = moments.map(|at| watch.knows_leaving(Sent::new(at)));
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn a_rest_is_no_stall() {
        let mut watch = Watch::new(1);
        watch.note(Nanos(10));
        watch.sent(Nanos(10));
        watch.rested(Nanos(10 + GAP));
        assert!(!watch.note(Nanos(10 + GAP)));
        assert!(watch.knows_leaving(Sent::new(Nanos(10))) && watch.knows_arrival(0, None));
        assert_eq!(watch.stalls(), Stalls::default());
    }

    #[test]
    fn a_tester_that_was_called_away_stood_still_no_moment_and_knows_no_arrival() {
        let mut watch = Watch::new(1);
        watch.note(Nanos(10));
        watch.called_away(Nanos(10 + GAP));
        assert!(!watch.note(Nanos(10 + GAP)) && !watch.knows_arrival(0, None));
        assert_eq!(watch.stalls(), Stalls::default());
        watch.drained(0);
        assert!(watch.knows_arrival(0, None));
    }

    #[test]
    fn what_is_remembered_of_many_stalls_is_bounded() {
        let mut watch = Watch::new(1);
        for place in 0..1_000 {
            watch.note(Nanos(place * GAP));
            watch.sent(Nanos(place * GAP));
        }
        assert_eq!(watch.late.len(), LATE_STAMPS_MAX);
        assert_eq!(watch.stalls().count, 999);
        assert!(!watch.knows_leaving(Sent::new(Nanos(998 * GAP))));
    }
}
