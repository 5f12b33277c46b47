//! Auxiliary connections to a controller, so that packet-ins do not wait behind long replies.
//!
//! Source: OpenFlow switch specification 1.3.5, section 6.3.6.
//!
//! - The switch opens them to the same controller, with the same datapath ID and an auxiliary ID
//!   other than 0.
//! - They exist while the main connection is up, and use its version.
//! - The switch replies on the connection on which a request arrived.
//! - The controller's role and its asynchronous configuration are those of the main connection.
//! - Packet-ins use an auxiliary connection that has room. All other asynchronous messages use the
//!   main connection.
//! - They use the transport of the main connection. UDP and DTLS are not supported.
//!
//! Invariant: an auxiliary connection without its main connection ends in the same turn.

use openflow::version::Version;
use packet::time::Nanos;

use super::Agent;
use super::dialer::Auxiliary;

impl Agent {
    /// Adds `count` auxiliary connections for the dialer `main`.
    pub(super) fn add_auxiliaries(&mut self, main: usize, count: u8) {
        for number in 1..=count {
            let dialer = self.dialers[main].auxiliary(Auxiliary { main, number });
            self.dialers.push(dialer);
        }
    }

    /// Starts auxiliary connections while their main connection is up, and ends them when it is
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
                None => "main connection closed",
                Some(main) if self.speaks_otherwise(at, main) => {
                    "version differs from that of the main connection"
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

    /// Returns the main connection of a dialer, if it is up and can have auxiliary connections.
    fn main_connection(&self, dialer: usize) -> Option<usize> {
        self.connections.iter().position(|connection| {
            connection.dialer == Some(dialer)
                && connection.ended.is_none()
                && connection.session.version().is_some_and(|version| version >= Version::V1_3)
        })
    }

    /// Returns the auxiliary state of a connection, if it is an auxiliary connection.
    pub(super) fn auxiliary_of(&self, at: usize) -> Option<Auxiliary> {
        self.dialers[self.connections[at].dialer?].auxiliary
    }

    /// Returns the index of the main connection to the same controller.
    pub(super) fn main_of(&self, at: usize) -> usize {
        let auxiliary = self.auxiliary_of(at);
        auxiliary.and_then(|auxiliary| self.main_connection(auxiliary.main)).unwrap_or(at)
    }

    /// Returns the connection for packet-ins to the controller of this main connection: the first
    /// auxiliary connection that has room, or the main connection.
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
