//! Opening and closing of connections: accepted ones, those that the switch makes, and adopted
//! ones.
//!
//! Source: OpenFlow switch specification 1.0.0, section 4.2. Invariant: a connection is in one of
//! three states: a guest that [admission](super::admission) limits, established, or ended and dropped
//! after the turn.

use channel::Channel;
use channel::admission::{AdmissionRefusal, AdmissionResult};
use packet::time::Nanos;

use crate::event::Event;

use super::admission::{ACCEPTS_A_TURN, PendingConnection};
use super::connection::Connection;
use super::{Agent, Datapath};

impl Agent {
    /// Accepts connections, continues connection attempts, and ends handshakes that take too long.
    pub(super) fn meet(&mut self, now: Nanos) {
        self.admission.turn(now);
        for listener in 0..self.listeners.len() {
            for _ in 0..ACCEPTS_A_TURN {
                if !self.admission.accepting || !self.accept(listener, now) {
                    break;
                }
            }
        }
        self.turn_auxiliaries(now);
        for at in 0..self.dialers.len() {
            match self.dialers[at].turn(now) {
                Some(Ok(channel)) => self.connect(channel, Some(at), now),
                Some(Err(error)) => self.unreachable(at, error.to_string()),
                None => {}
            }
        }
        self.see_off_the_slow(now);
    }

    /// Accepts the next connection of a listener, if there is one.
    fn accept(&mut self, listener: usize, now: Nanos) -> bool {
        let channel = match self.listeners[listener].accept() {
            Ok(Some(channel)) => channel,
            Ok(None) => return false,
            Err(_) => {
                self.admission.accept_failed(now);
                return false;
            }
        };
        self.admission.accepted(now);
        let accepted: Vec<_> = self.accepted().collect();
        match self.admission.room_for(&accepted, listener, channel.source()) {
            AdmissionResult::Free => {}
            AdmissionResult::InsteadOf(at) => {
                self.admission.counters.displaced += 1;
                self.connections[at]
                    .end("closed for another connection: the handshake took too long");
            }
            AdmissionResult::Refused(refusal) => {
                self.too_many(&*channel, refusal, now);
                return true;
            }
        }
        let guest = PendingConnection {
            listener,
            source: channel.source(),
            since: now,
            progress: channel.progress(),
        };
        self.admit(channel, None, Some(guest), now);
        true
    }

    /// Returns the connections that listeners accepted, each with its index and whether it is still
    /// a guest.
    fn accepted(&self) -> impl Iterator<Item = (usize, PendingConnection, bool)> + '_ {
        self.connections.iter().enumerate().filter_map(|(at, connection)| {
            let accepted = connection.accepted().filter(|_| connection.ended.is_none())?;
            Some((at, *accepted, !connection.up))
        })
    }

    /// Ends guests that exceeded the handshake timeout.
    fn see_off_the_slow(&mut self, now: Nanos) {
        for connection in &mut self.connections {
            let overdue =
                connection.guest().is_some_and(|guest| self.admission.is_overdue(guest, now));
            if overdue && connection.ended.is_none() {
                self.admission.counters.timed_out += 1;
                connection.end("handshake timeout: TLS and hello took too long");
            }
        }
    }

    /// Serves a connection. A guest that has sent nothing yet is served only if the rate limit
    /// allows.
    pub(super) fn serve_one(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        let silent = self.connections[at].is_silent();
        if silent && !self.admission.beginning {
            return;
        }
        self.serve_connection(at, datapath);
        let begun = self.connections[at].has_begun();
        if silent && begun {
            self.admission.begun(datapath.now);
        }
    }

    /// Logs why a controller cannot be reached, once for each reason.
    fn unreachable(&mut self, at: usize, why: String) {
        let dialer = &mut self.dialers[at];
        if dialer.trouble.as_ref() != Some(&why) {
            let url = dialer.url().to_string();
            self.events.push(Event::ControllerUnreachable(url, why.clone()));
            dialer.trouble = Some(why);
        }
    }

    /// Adds a channel that no listener accepted. Those to configured controllers are not limited:
    /// each dialer has at most one.
    pub(super) fn connect(&mut self, channel: Box<dyn Channel>, dialer: Option<usize>, now: Nanos) {
        let undialled = self.connections.iter().filter(|it| it.dialer.is_none()).count();
        if dialer.is_some() || undialled < self.limits.connections {
            return self.admit(channel, dialer, None, now);
        }
        self.too_many(&*channel, AdmissionRefusal::Total, now);
    }

    fn too_many(&mut self, channel: &dyn Channel, refusal: AdmissionRefusal, now: Nanos) {
        self.admission.counters.refused += 1;
        if self.admission.is_logged(now) {
            self.events.push(Event::ControllerTooMany(channel.peer().to_string(), refusal));
        }
    }

    /// Drops connections that ended.
    pub(super) fn drop_ended(&mut self, now: Nanos) {
        self.turn_auxiliaries(now);
        self.tell_of_gone();
        let Agent { events, dialers, admission, .. } = self;
        self.connections.retain(|connection| {
            let Some(why) = &connection.ended else { return true };
            if connection.guest().is_none() || admission.is_logged(now) {
                events.push(Event::ControllerDown(connection.peer.clone(), why.clone()));
            }
            if let Some(dialer) = connection.dialer {
                dialers[dialer].lost(connection.up, now);
            }
            false
        });
        if let Some(count) = self.admission.unlogged(now) {
            self.events.push(Event::ControllersUnlogged(count));
        }
    }

    /// Returns the time of the next work of admission.
    pub(super) fn next_at_door(&self) -> Option<Nanos> {
        self.admission.next_event(self.connections.iter().filter_map(Connection::guest))
    }
}
