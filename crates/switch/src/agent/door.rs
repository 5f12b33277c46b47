//! Who may come in: connections that have not come up yet are few, brief and cheap, however many
//! strangers knock.
//!
//! A connection that a listener accepted is a guest until TLS and hello are done. When guests are
//! too many, one makes room for the next: one that has said nothing if there is any, of the host
//! that has most of them, the oldest. So neither silent strangers, however many, nor talking ones
//! of other hosts keep a controller out that begins as a controller does.
//!
//! Invariant: at most `Limits::handshakes` guests for each listener and `Limits::connections` in
//! all; a second begins at most so many of them and accepts at most so many, whatever comes.

use std::net::IpAddr;

use packet::time::Nanos;
use ports::channel::Progress;

use crate::config::Limits;

/// Connections that one listener accepts in one turn.
pub const ACCEPTS_A_TURN: usize = 8;

/// Tickets that may be used at once after a pause.
const BURST: u64 = 64;

/// Lines that are logged about guests in a second, and at once.
const LOG_PER_S: u64 = 5;
const LOG_BURST: u64 = 20;

/// The system has no more descriptors or memory: nothing is accepted for so long.
const PAUSE: Nanos = Nanos::from_millis(100);

/// So many in a second, some of them at once.
#[derive(Debug)]
pub struct Tickets {
    /// Between two, in the long run.
    gap: Nanos,
    /// How far ahead of that they may be.
    ahead: Nanos,
    /// When the last one would be used if all came at that distance.
    used_until: Nanos,
}

impl Tickets {
    /// All there from the start.
    pub fn new(per_s: u64, burst: u64) -> Self {
        let gap = Nanos((1_000_000_000 / per_s.max(1)).max(1));
        Tickets { gap, ahead: Nanos(gap.0.saturating_mul(burst)), used_until: Nanos::ZERO }
    }

    /// When there is one.
    pub fn next(&self) -> Nanos {
        Nanos((self.used_until + self.gap).0.saturating_sub(self.ahead.0))
    }

    /// Whether there is one.
    pub fn is_there(&self, now: Nanos) -> bool {
        now >= self.next()
    }

    /// Uses one.
    pub fn take(&mut self, now: Nanos) {
        self.used_until = self.used_until.max(now) + self.gap;
    }
}

/// A connection that was accepted and has not come up.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// Which listener accepted it.
    pub listener: usize,
    /// The host it comes from, if that is known.
    pub source: Option<IpAddr>,
    /// When it came.
    pub since: Nanos,
    /// How far it has come.
    pub progress: Progress,
}

/// What happened at the door.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Connections that listeners accepted.
    pub accepted: u64,
    /// Times that the system refused to accept one.
    pub accepts_failed: u64,
    /// Connections that were closed because as many were up as may be.
    pub refused: u64,
    /// Guests that made room for others.
    pub displaced: u64,
    /// Guests that took too long.
    pub timed_out: u64,
}

/// The door.
#[derive(Debug)]
pub struct Door {
    /// What happened here.
    pub counters: DoorCounters,
    /// Whether connections are accepted, until the next turn.
    pub accepting: bool,
    /// Whether guests that have said nothing are read, until the next turn.
    pub beginning: bool,
    limits: Limits,
    accepts: Tickets,
    begins: Tickets,
    log: Tickets,
    unlogged: u64,
    paused_until: Nanos,
}

impl Door {
    /// A door with nobody in it.
    pub fn new(limits: &Limits) -> Self {
        Door {
            counters: DoorCounters::default(),
            accepting: true,
            beginning: true,
            accepts: Tickets::new(limits.accepts_per_s, BURST),
            begins: Tickets::new(limits.handshakes_per_s, BURST),
            log: Tickets::new(LOG_PER_S, LOG_BURST),
            unlogged: 0,
            paused_until: Nanos::ZERO,
            limits: limits.clone(),
        }
    }

    /// Begins a turn: what may be done in it.
    pub fn turn(&mut self, now: Nanos) {
        self.accepting = now >= self.paused_until && self.accepts.is_there(now);
        self.beginning = self.begins.is_there(now);
    }

    /// One connection was accepted.
    pub fn accepted(&mut self, now: Nanos) {
        self.counters.accepted += 1;
        self.accepts.take(now);
        self.accepting = self.accepts.is_there(now);
    }

    /// The system would not accept one.
    pub fn accept_failed(&mut self, now: Nanos) {
        self.counters.accepts_failed += 1;
        self.paused_until = now.saturating_add(PAUSE);
        self.accepting = false;
    }

    /// A guest has said the first thing.
    pub fn begun(&mut self, now: Nanos) {
        self.begins.take(now);
        self.beginning = self.begins.is_there(now);
    }

    /// Whether a guest that came then has taken too long.
    pub fn is_overdue(&self, guest: &Guest, now: Nanos) -> bool {
        now >= self.deadline(guest)
    }

    fn deadline(&self, guest: &Guest) -> Nanos {
        guest.since.saturating_add(Nanos::from_millis(self.limits.handshake_ms))
    }

    /// Which guest, by its place among `guests`, has to go for a new one of this listener and
    /// host. `connections` are there in all, guests included.
    pub fn room_for(
        &self,
        guests: &[(usize, Guest)],
        listener: usize,
        source: Option<IpAddr>,
        connections: usize,
    ) -> Room {
        let here = |guest: &Guest| guest.listener == listener;
        let alike = |guest: &Guest| here(guest) && guest.source == source;
        let count =
            |test: &dyn Fn(&Guest) -> bool| guests.iter().filter(|(_, guest)| test(guest)).count();
        if count(&alike) >= self.limits.handshakes_per_source {
            return Room::of(first_to_go(guests, alike));
        }
        if count(&here) >= self.limits.handshakes {
            let crowd = crowd(guests, here);
            return Room::of(first_to_go(guests, |guest| here(guest) && guest.source == crowd));
        }
        if connections >= self.limits.connections {
            let crowd = crowd(guests, |_| true);
            return Room::of(first_to_go(guests, |guest| guest.source == crowd));
        }
        Room::Enough
    }

    /// Whether the end of a guest is worth a line in the log.
    pub fn is_logged(&mut self, now: Nanos) -> bool {
        let logged = self.log.is_there(now);
        match logged {
            true => self.log.take(now),
            false => self.unlogged += 1,
        }
        logged
    }

    /// How many ends were not logged, once a line about them is due.
    pub fn unlogged(&mut self, now: Nanos) -> Option<u64> {
        let due = self.unlogged > 0 && self.log.is_there(now);
        due.then(|| {
            self.log.take(now);
            std::mem::take(&mut self.unlogged)
        })
    }

    /// When something is due here, with these guests.
    pub fn next_event<'a>(&self, guests: impl Iterator<Item = &'a Guest>) -> Option<Nanos> {
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

/// Whether there is room for one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Enough,
    /// If this connection goes.
    Instead(usize),
    /// There is none.
    None,
}

impl Room {
    fn of(goes: Option<usize>) -> Room {
        goes.map_or(Room::None, Room::Instead)
    }
}

/// Of these guests the one that makes room: the oldest of those that have come least far.
fn first_to_go(guests: &[(usize, Guest)], among: impl Fn(&Guest) -> bool) -> Option<usize> {
    let among = guests.iter().filter(|(_, guest)| among(guest));
    among.min_by_key(|(_, guest)| (guest.progress, guest.since)).map(|(at, _)| *at)
}

/// The host that most of these guests come from.
fn crowd(guests: &[(usize, Guest)], among: impl Fn(&Guest) -> bool) -> Option<IpAddr> {
    let mut sources: Vec<_> =
        guests.iter().filter(|(_, guest)| among(guest)).map(|(_, guest)| guest.source).collect();
    sources.sort_unstable();
    sources
        .chunk_by(|left, right| left == right)
        .max_by_key(|alike| alike.len())?
        .first()
        .copied()?
}

fn earlier(due: Option<Nanos>, other: Nanos) -> Option<Nanos> {
    Some(due.map_or(other, |due| due.min(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(listener: usize, host: u8, since: u64, progress: Progress) -> Guest {
        let source = (host > 0).then(|| IpAddr::from([10, 0, 0, host]));
        Guest { listener, source, since: Nanos(since), progress }
    }

    fn check(guests: &[Guest], newcomer: (usize, u8), connections: usize, wanted: Room) {
        let limits =
            Limits { handshakes: 4, handshakes_per_source: 3, connections: 8, ..Limits::default() };
        let guests: Vec<_> = guests.iter().copied().enumerate().collect();
        let (listener, host) = newcomer;
        let source = guest(0, host, 0, Progress::Silent).source;
        let room = Door::new(&limits).room_for(&guests, listener, source, connections);
        assert_eq!(room, wanted, "{newcomer:?} among {guests:?}");
    }

    #[test]
    fn who_makes_room() {
        use Progress::{Agreeing, Open, Silent};
        check(&[], (0, 1), 0, Room::Enough);
        check(&[], (0, 1), 8, Room::None);
        // As many of one host as may be: the oldest that has said nothing, else the oldest.
        let three = [guest(0, 1, 1, Open), guest(0, 1, 3, Silent), guest(0, 1, 2, Silent)];
        check(&three, (0, 1), 3, Room::Instead(2));
        check(&three, (0, 2), 3, Room::Enough);
        check(&three, (1, 1), 3, Room::Enough);
        let talking = [guest(0, 1, 5, Agreeing), guest(0, 1, 3, Open), guest(0, 1, 6, Agreeing)];
        check(&talking, (0, 1), 3, Room::Instead(0));
        // A full listener: one of the host that has most goes, though others are older.
        let four = [
            guest(0, 2, 1, Silent),
            guest(0, 1, 9, Agreeing),
            guest(0, 1, 8, Agreeing),
            guest(0, 0, 2, Silent),
        ];
        check(&four, (0, 3), 4, Room::Instead(2));
        check(&four, (1, 3), 4, Room::Enough);
        // A full house: a guest of any listener goes.
        check(&four, (1, 3), 8, Room::Instead(2));
    }

    #[test]
    fn tickets_allow_a_burst_and_then_the_rate() {
        let mut tickets = Tickets::new(10, 3);
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
    fn what_is_due_at_the_door() {
        let limits = Limits { handshake_ms: 50, handshakes_per_s: 1, ..Limits::default() };
        let mut door = Door::new(&limits);
        let now = Nanos::from_secs(9);
        door.turn(now);
        let silent = guest(0, 1, now.0, Progress::Silent);
        assert_eq!(door.next_event([].iter()), None);
        assert_eq!(door.next_event([silent].iter()), Some(now + Nanos::from_millis(50)));
        assert!(!door.is_overdue(&silent, now + Nanos::from_millis(49)));
        assert!(door.is_overdue(&silent, now + Nanos::from_millis(50)));
        for _ in 0..BURST {
            assert!(door.beginning);
            door.begun(now);
        }
        assert!(!door.beginning);
        let late = guest(0, 1, now.0 + 5_000_000_000, Progress::Silent);
        assert_eq!(door.next_event([late].iter()), Some(now + Nanos::from_secs(1)));
        door.accept_failed(now);
        assert_eq!(door.next_event([].iter()), Some(now + PAUSE));
        door.turn(now + PAUSE);
        assert!(door.accepting);
    }
}
