//! Controller status messages: channel state and role of each controller.
//!
//! Source: OpenFlow switch specification 1.5.1, section 7.4.8. The switch notifies the other
//! controllers when a controller's channel comes up or goes down, and when its role or its short ID
//! changes. Each controller selects these messages with its asynchronous configuration. Auxiliary
//! connections are part of a controller's channel and are not reported.
//!
//! Invariant: the switch reports a controller's disconnection before it discards its state.

use openflow::model::Message;
use openflow::model::role::{
    CONTROLLER_NONE, ControllerProperty, ControllerStatus, ControllerStatusReason, Role,
};
use openflow::version::AsyncKind;

use super::Agent;
use super::connection::Connection;
use super::dialer::Dialer;

impl Agent {
    /// Sends the status of one controller to all others that selected it.
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

    /// Sends the status of controllers whose channels ended in this turn.
    pub(super) fn tell_of_gone(&mut self) {
        for at in 0..self.connections.len() {
            if self.connections[at].up && self.connections[at].ended.is_some() {
                self.tell_controller_status(at, ControllerStatusReason::ChannelStatus);
            }
        }
    }

    /// Returns the status of every controller: those that are connected, and configured ones that
    /// cannot be reached.
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
