//! How each controller does, for the others: whether its channel is up, and which part it plays.
//!
//! Source: OpenFlow switch specification 1.5.1, section 7.4.8. The others are told when
//! a controller's channel comes up or goes, and when its role or its number changes; who wants to
//! hear which of it says so by its asynchronous configuration. A controller's auxiliary
//! connections are part of its channel and no news.
//!
//! Invariant: what is told of a controller that has gone is told before it is forgotten.

use openflow::model::Message;
use openflow::model::role::{
    CONTROLLER_NONE, ControllerProperty, ControllerStatus, ControllerStatusReason, Role,
};
use openflow::version::AsyncKind;

use super::Agent;
use super::connection::Connection;
use super::dialer::Dialer;

impl Agent {
    /// Tells every other controller that wants it how one of them does.
    pub(super) fn tell_controller_status(&mut self, at: usize, reason: ControllerStatusReason) {
        let connection = &self.connections[at];
        let own = connection.id;
        if connection.auxiliary {
            return;
        }
        let wants = |other: &Connection| {
            other.id != own && other.wants(AsyncKind::ControllerStatus, reason as u32)
        };
        if !self.connections.iter().any(wants) {
            return;
        }
        let news = Message::ControllerStatus(status_of(connection, reason));
        self.tell_some(&news, wants);
    }

    /// Tells of the controllers whose channels have gone this turn.
    pub(super) fn tell_of_gone(&mut self) {
        for at in 0..self.connections.len() {
            if self.connections[at].up && self.connections[at].ended.is_some() {
                self.tell_controller_status(at, ControllerStatusReason::ChannelStatus);
            }
        }
    }

    /// How every controller does: those that are connected, and those that the switch is to
    /// connect to and cannot reach.
    pub(super) fn controller_statuses(&self) -> Vec<ControllerStatus> {
        let reason = ControllerStatusReason::Request;
        let up = || self.connections.iter().filter(|it| it.up && !it.auxiliary);
        let is_missing = |(at, dialer): &(usize, &Dialer)| {
            dialer.auxiliary.is_none() && !up().any(|connection| connection.dialer == Some(*at))
        };
        let missing = self.dialers.iter().enumerate().filter(is_missing);
        let missing = missing.map(|(_, dialer)| ControllerStatus {
            short_id: CONTROLLER_NONE,
            role: Role::Equal,
            reason,
            is_up: false,
            properties: vec![uri(&dialer.url().to_string())],
        });
        up().map(|connection| status_of(connection, reason)).chain(missing).collect()
    }
}

fn status_of(connection: &Connection, reason: ControllerStatusReason) -> ControllerStatus {
    ControllerStatus {
        short_id: connection.short_id,
        role: connection.role,
        reason,
        is_up: connection.up && connection.ended.is_none(),
        properties: vec![uri(&connection.peer)],
    }
}

fn uri(peer: &str) -> ControllerProperty {
    ControllerProperty::Uri(peer.into())
}
