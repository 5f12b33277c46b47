//! Auxiliary connections: further connections that the switch makes to a controller beside the
//! main one, so that frames for it do not wait behind long replies.
//!
//! Source: OpenFlow switch specification 1.3.5, section 6.3.6. The switch opens them, to the same
//! controller, with the same datapath id and a number of their own that is not 0; they live as
//! long as the main connection is up and speak its version. Requests are answered on the
//! connection on which they came; the controller's role and what it wants to hear of are those of
//! the main connection. Frames go over an auxiliary connection that has room, all other news over
//! the main one. Only what the main one goes over is offered, not UDP or DTLS.
//!
//! Invariant: an auxiliary connection without its main one ends in the same turn.

use openflow::version::Version;
use packet::time::Nanos;

use super::Agent;
use super::dialer::Auxiliary;

impl Agent {
    /// Adds so many auxiliary connections for the dialer at a place.
    pub(super) fn add_auxiliaries(&mut self, main: usize, count: u8) {
        for number in 1..=count {
            let dialer = self.dialers[main].auxiliary(Auxiliary { main, number });
            self.dialers.push(dialer);
        }
    }

    /// Lets auxiliary connections be made while their main one is up, and ends them when it is
    /// not.
    pub(super) fn turn_auxiliaries(&mut self, now: Nanos) {
        for at in 0..self.dialers.len() {
            let Some(Auxiliary { main, .. }) = self.dialers[at].auxiliary else { continue };
            match self.main_connection(main) {
                Some(_) => self.dialers[at].release(now),
                None => self.dialers[at].hold(),
            }
        }
        for at in 0..self.connections.len() {
            let Some(Auxiliary { main, .. }) = self.auxiliary_of(at) else { continue };
            let wrong = match self.main_connection(main) {
                None => "its main connection is gone",
                Some(main) if self.speaks_otherwise(at, main) => {
                    "it speaks another version than its main connection"
                }
                Some(_) => continue,
            };
            self.connections[at].end(wrong);
        }
    }

    fn speaks_otherwise(&self, at: usize, main: usize) -> bool {
        let version = self.connections[at].session.version();
        version.is_some() && version != self.connections[main].session.version()
    }

    /// The main connection that a dialer made, if one that can have auxiliaries is up.
    fn main_connection(&self, dialer: usize) -> Option<usize> {
        self.connections.iter().position(|connection| {
            connection.dialer == Some(dialer)
                && connection.ended.is_none()
                && connection.session.version().is_some_and(|version| version >= Version::V1_3)
        })
    }

    /// Which auxiliary connection the one at a place is, if it is one.
    pub(super) fn auxiliary_of(&self, at: usize) -> Option<Auxiliary> {
        self.dialers[self.connections[at].dialer?].auxiliary
    }

    /// The place of the main connection to the controller at the other end of this one.
    pub(super) fn main_of(&self, at: usize) -> usize {
        let auxiliary = self.auxiliary_of(at);
        auxiliary.and_then(|auxiliary| self.main_connection(auxiliary.main)).unwrap_or(at)
    }

    /// Over which connection frames go to the controller whose main connection this is: the first
    /// auxiliary one that has room, or this one.
    pub(super) fn way_for_frames(&self, main: usize) -> usize {
        let Some(dialer) = self.connections[main].dialer else { return main };
        let has_room = |at: &usize| {
            let connection = &self.connections[*at];
            connection.up && connection.ended.is_none() && !connection.is_full()
        };
        let beside =
            |at: &usize| self.auxiliary_of(*at).is_some_and(|auxiliary| auxiliary.main == dialer);
        (0..self.connections.len()).filter(beside).find(has_room).unwrap_or(main)
    }
}
