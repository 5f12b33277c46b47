//! Admission of incoming connections: limits the number, duration and cost of handshakes, however
//! many clients connect.
//!
//! A connection that a listener accepted is pending (a guest) until TLS and hello are complete.
//! When there are too many, the next one replaces one of them. The choice is first by progress
//! (those that sent nothing), then by source (the host that has most of them), then by age (the
//! oldest). Neither silent clients, however many, nor active ones of other hosts therefore exclude
//! a controller that begins its handshake.
//!
//! Invariants:
//! - At most `Limits::handshakes` guests for each listener, and `Limits::connections` accepted
//!   connections in total, of which one source has at most `Limits::connections_per_source`.
//! - Connections that the switch makes to configured controllers do not count.
//! - The numbers of handshakes that begin and of connections accepted in a second are limited.

use channel::admission::{AdmissionResult, AdmittedConnection, ConnectionLimits};
use channel::{Progress, Source};
use packet::time::Nanos;

use crate::config::Limits;

/// Connections that one listener accepts in one turn.
pub const ACCEPTS_A_TURN: usize = 8;

/// Maximum burst of the rate limits for connections and handshakes.
const BURST: u64 = 64;

/// Log lines about guests: maximum per second, and maximum burst.
const LOG_PER_S: u64 = 5;
const LOG_BURST: u64 = 20;

/// Pause of accepting when the system has no more descriptors or memory.
const PAUSE: Nanos = Nanos::from_millis(100);

/// Rate limit with bursts.
#[derive(Debug)]
pub struct HandshakeBudget {
    /// Long-term interval between two tickets.
    gap: Nanos,
    /// Maximum burst, as time.
    ahead: Nanos,
    /// When the last ticket would have been used at that interval.
    used_until: Nanos,
}

impl HandshakeBudget {
    /// Creates a rate limit with all tickets available.
    pub fn new(per_s: u64, burst: u64) -> Self {
        let gap = Nanos((1_000_000_000 / per_s.max(1)).max(1));
        HandshakeBudget { gap, ahead: Nanos(gap.0.saturating_mul(burst)), used_until: Nanos::ZERO }
    }

    /// Returns when the next ticket is available.
    pub fn next(&self) -> Nanos {
        Nanos((self.used_until + self.gap).0.saturating_sub(self.ahead.0))
    }

    /// Whether a ticket is available.
    pub fn is_there(&self, now: Nanos) -> bool {
        now >= self.next()
    }

    /// Uses a ticket.
    pub fn take(&mut self, now: Nanos) {
        self.used_until = self.used_until.max(now) + self.gap;
    }
}

/// An accepted connection that is not established yet.
#[derive(Debug, Clone, Copy)]
pub struct PendingConnection {
    /// Index of the listener that accepted it.
    pub listener: usize,
    /// Host or user from which it comes, if known.
    pub source: Option<Source>,
    /// When it was accepted.
    pub since: Nanos,
    /// Progress of the handshake.
    pub progress: Progress,
}

/// Counters of admission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Connections that listeners accepted.
    pub accepted: u64,
    /// Failed accept calls.
    pub accepts_failed: u64,
    /// Connections that were closed because of the limits on connections.
    pub refused: u64,
    /// Guests that other connections replaced.
    pub displaced: u64,
    /// Guests that did not finish the handshake in time.
    pub timed_out: u64,
}

/// Admission of incoming connections.
#[derive(Debug)]
pub struct Admission {
    /// Counters.
    pub counters: DoorCounters,
    /// Whether connections are accepted, until the next turn.
    pub accepting: bool,
    /// Whether guests that have sent nothing are read, until the next turn.
    pub beginning: bool,
    limits: Limits,
    accepts: HandshakeBudget,
    begins: HandshakeBudget,
    log: HandshakeBudget,
    unlogged: u64,
    paused_until: Nanos,
}

impl Admission {
    /// Creates an admission state without connections.
    pub fn new(limits: &Limits) -> Self {
        Admission {
            counters: DoorCounters::default(),
            accepting: true,
            beginning: true,
            accepts: HandshakeBudget::new(limits.accepts_per_s, BURST),
            begins: HandshakeBudget::new(limits.handshakes_per_s, BURST),
            log: HandshakeBudget::new(LOG_PER_S, LOG_BURST),
            unlogged: 0,
            paused_until: Nanos::ZERO,
            limits: limits.clone(),
        }
    }

    /// Begins a turn: updates what the rate limits allow.
    pub fn turn(&mut self, now: Nanos) {
        self.accepting = now >= self.paused_until && self.accepts.is_there(now);
        self.beginning = self.begins.is_there(now);
    }

    /// Counts an accepted connection.
    pub fn accepted(&mut self, now: Nanos) {
        self.counters.accepted += 1;
        self.accepts.take(now);
        self.accepting = self.accepts.is_there(now);
    }

    /// Counts a failed accept call, and pauses accepting.
    pub fn accept_failed(&mut self, now: Nanos) {
        self.counters.accepts_failed += 1;
        self.paused_until = now.saturating_add(PAUSE);
        self.accepting = false;
    }

    /// Counts a guest that sent its first data.
    pub fn begun(&mut self, now: Nanos) {
        self.begins.take(now);
        self.beginning = self.begins.is_there(now);
    }

    /// Whether a guest has exceeded the handshake timeout.
    pub fn is_overdue(&self, guest: &PendingConnection, now: Nanos) -> bool {
        now >= self.deadline(guest)
    }

    fn deadline(&self, guest: &PendingConnection) -> Nanos {
        guest.since.saturating_add(Nanos::from_millis(self.limits.handshake_ms))
    }

    /// Decides whether a new connection of this listener and source is admitted. `accepted` has all
    /// connections that listeners accepted, each with its index and whether it is still a guest.
    pub fn room_for(
        &self,
        accepted: &[(usize, PendingConnection, bool)],
        listener: usize,
        source: Option<Source>,
    ) -> AdmissionResult {
        let held = |&(id, guest, is_guest): &(usize, PendingConnection, bool)| AdmittedConnection {
            id,
            source: guest.source,
            pending: is_guest.then_some((guest.progress, guest.since.0)),
        };
        let here = accepted.iter().filter(|(_, guest, is)| *is && guest.listener == listener);
        let guests: Vec<AdmittedConnection> = here.map(held).collect();
        let handshakes = ConnectionLimits {
            total: self.limits.handshakes,
            per_source: self.limits.handshakes_per_source,
        };
        match handshakes.room_for(&guests, source) {
            AdmissionResult::Free => {
                let all: Vec<AdmittedConnection> = accepted.iter().map(held).collect();
                self.limits.of_connections().room_for(&all, source)
            }
            other => other,
        }
    }

    /// Whether the end of a guest is logged, within the rate limit of the log.
    pub fn is_logged(&mut self, now: Nanos) -> bool {
        let logged = self.log.is_there(now);
        match logged {
            true => self.log.take(now),
            false => self.unlogged += 1,
        }
        logged
    }

    /// Returns how many ends were not logged, once a log line about them is due.
    pub fn unlogged(&mut self, now: Nanos) -> Option<u64> {
        let due = self.unlogged > 0 && self.log.is_there(now);
        due.then(|| {
            self.log.take(now);
            std::mem::take(&mut self.unlogged)
        })
    }

    /// Returns the time of the next work, given these guests.
    pub fn next_event<'a>(
        &self,
        guests: impl Iterator<Item = &'a PendingConnection>,
    ) -> Option<Nanos> {
        let (mut due, mut silent) = (None, false);
        for guest in guests {
            due = earlier(due, self.deadline(guest));
            silent |= guest.progress == Progress::Silent;
        }
        if !self.accepting {
            due = earlier(due, self.accepts.next().max(self.paused_until));
        }
        if silent && !self.beginning {
            due = earlier(due, self.begins.next());
        }
        if self.unlogged > 0 {
            due = earlier(due, self.log.next());
        }
        due
    }
}

fn earlier(due: Option<Nanos>, other: Nanos) -> Option<Nanos> {
    Some(due.map_or(other, |due| due.min(other)))
}

#[cfg(test)]
mod tests {
    use channel::admission::AdmissionRefusal;

    use super::*;

    fn guest(listener: usize, host: u8, since: u64, progress: Progress) -> PendingConnection {
        let source = (host > 0).then(|| Source::Host([10, 0, 0, host].into()));
        PendingConnection { listener, source, since: Nanos(since), progress }
    }

    /// Checks the decision about a new connection of this listener and host.
    fn check(
        guests: &[PendingConnection],
        controllers: &[PendingConnection],
        newcomer: (usize, u8),
        wanted: AdmissionResult,
    ) {
        let limits = Limits {
            handshakes: 4,
            handshakes_per_source: 3,
            connections: 8,
            connections_per_source: 4,
            ..Limits::default()
        };
        let guests = guests.iter().map(|guest| (*guest, true));
        let accepted = guests.chain(controllers.iter().map(|guest| (*guest, false)));
        let accepted: Vec<_> = accepted.enumerate().map(|(at, (it, is))| (at, it, is)).collect();
        let (listener, host) = newcomer;
        let source = guest(0, host, 0, Progress::Silent).source;
        let room = Admission::new(&limits).room_for(&accepted, listener, source);
        assert_eq!(room, wanted, "{newcomer:?} among {accepted:?}");
    }

    #[test]
    fn admission_replaces_handshakes_within_the_limits() {
        use Progress::{Agreeing, Open, Silent};
        check(&[], &[], (0, 1), AdmissionResult::Free);
        // One host has the maximum of handshakes: its oldest guest that has sent nothing is
        // replaced.
        let three = [guest(0, 1, 1, Open), guest(0, 1, 3, Silent), guest(0, 1, 2, Silent)];
        check(&three, &[], (0, 1), AdmissionResult::InsteadOf(2));
        check(&three, &[], (0, 2), AdmissionResult::Free);
        check(&three, &[], (1, 1), AdmissionResult::Free);
        // The listener is full: a guest of the host that has most is replaced, though others are
        // older.
        let four = [
            guest(0, 2, 1, Silent),
            guest(0, 1, 9, Agreeing),
            guest(0, 1, 8, Agreeing),
            guest(0, 0, 2, Silent),
        ];
        check(&four, &[], (0, 3), AdmissionResult::InsteadOf(2));
        check(&four, &[], (1, 3), AdmissionResult::Free);
        // Controllers of one host reached its limit: no more from it, but from all others.
        let up = |host, count| vec![guest(0, host, 1, Open); count];
        check(&[], &up(1, 4), (0, 1), AdmissionResult::Refused(AdmissionRefusal::PerSource));
        check(&[], &up(1, 4), (1, 1), AdmissionResult::Refused(AdmissionRefusal::PerSource));
        check(&[], &up(1, 4), (0, 2), AdmissionResult::Free);
        check(&three[..2], &up(1, 2), (1, 1), AdmissionResult::InsteadOf(1));
        // All connections are in use: a guest of any listener is replaced, but no controller.
        let controllers = [up(5, 2), up(6, 2)].concat();
        check(&four, &controllers, (1, 3), AdmissionResult::InsteadOf(2));
        let controllers = [up(5, 4), up(6, 4)].concat();
        check(&[], &controllers, (0, 1), AdmissionResult::Refused(AdmissionRefusal::Total));
    }

    #[test]
    fn tickets_permit_a_burst_and_then_the_rate() {
        let mut tickets = HandshakeBudget::new(10, 3);
        let mut use_all = |at: u64| {
            let now = Nanos::from_millis(at);
            (0..9)
                .filter(|_| {
                    tickets.is_there(now) && {
                        tickets.take(now);
                        true
                    }
                })
                .count()
        };
        assert_eq!(use_all(1_000), 3);
        assert_eq!(use_all(1_099), 0);
        assert_eq!(use_all(1_100), 1);
        assert_eq!(use_all(1_350), 2);
        assert_eq!(use_all(60_000), 3);
        assert_eq!(tickets.next(), Nanos::from_millis(60_100));
    }

    #[test]
    fn next_events_follow_timeouts_rates_and_failures() {
        let limits = Limits { handshake_ms: 50, handshakes_per_s: 1, ..Limits::default() };
        let mut admission = Admission::new(&limits);
        let now = Nanos::from_secs(9);
        admission.turn(now);
        let silent = guest(0, 1, now.0, Progress::Silent);
        assert_eq!(admission.next_event([].iter()), None);
        assert_eq!(admission.next_event([silent].iter()), Some(now + Nanos::from_millis(50)));
        assert!(!admission.is_overdue(&silent, now + Nanos::from_millis(49)));
        assert!(admission.is_overdue(&silent, now + Nanos::from_millis(50)));
        for _ in 0..BURST {
            assert!(admission.beginning);
            admission.begun(now);
        }
        assert!(!admission.beginning);
        let late = guest(0, 1, now.0 + 5_000_000_000, Progress::Silent);
        assert_eq!(admission.next_event([late].iter()), Some(now + Nanos::from_secs(1)));
        admission.accept_failed(now);
        assert_eq!(admission.next_event([].iter()), Some(now + PAUSE));
        admission.turn(now + PAUSE);
        assert!(admission.accepting);
    }
}
