//! What ports are set to do, and whether they are live.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.2.1; 1.3.5, section 7.2.1 (`OFPPS_LIVE`).
//! Invariant: the groups know of every port what is known here.

use packet::frame::PortNo;
use packet::time::Nanos;

use super::Egress;
use crate::counter::{DropReason, Traffic};
use crate::group::GroupTable;
use crate::queue::{PortQueues, QueueError, QueueNo, QueueRecord, Queues};

/// What a port is set to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Switched off: neither receives nor sends.
    pub down: bool,
    /// Drop what it receives, but for frames of the spanning tree protocol.
    pub no_receive: bool,
    /// Drop the frames of the spanning tree protocol that it receives.
    pub no_receive_spanning_tree: bool,
    /// Leave it out when flooding.
    pub no_flood: bool,
    /// Drop what is sent to it.
    pub no_forward: bool,
    /// Tell the controller nothing of frames from it that match no entry.
    pub no_packet_in: bool,
}

/// All that is known of a port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gate {
    pub(super) settings: PortSettings,
    /// Whether its frames wait in shaped queues.
    pub(super) shaped: bool,
    link_down: bool,
}

impl Egress {
    /// What a port is set to do; a port that does not exist is set to nothing special.
    #[inline]
    pub fn settings(&self, port: PortNo) -> PortSettings {
        self.gates.get(port as usize).map(|gate| gate.settings).unwrap_or_default()
    }

    /// Sets what a port does. False if there is no such port.
    pub fn set_settings(&mut self, port: PortNo, settings: PortSettings) -> bool {
        self.change_gate(port, |gate| gate.settings = settings)
    }

    /// Tells whether a port's link carries frames; until told otherwise it does. False if there is
    /// no such port.
    pub fn set_link(&mut self, port: PortNo, up: bool) -> bool {
        self.change_gate(port, |gate| gate.link_down = !up)
    }

    /// Whether every frame for a port goes to its queue at once.
    pub(crate) fn sends_at_once(&self, port: PortNo) -> bool {
        self.refusal(port).is_none() && !self.is_shaped(port) && self.ports.contains(&port)
    }

    /// Whether a port is live: its link carries frames, and it is not switched off.
    pub fn is_live(&self, port: PortNo) -> bool {
        let gate = self.gates.get(port as usize);
        self.ports.contains(&port)
            && gate.is_some_and(|gate| !gate.link_down && !gate.settings.down)
    }

    fn change_gate(&mut self, port: PortNo, change: impl FnOnce(&mut Gate)) -> bool {
        if !self.ports.contains(&port) {
            return false;
        }
        change(&mut self.gates[port as usize]);
        let live = self.is_live(port);
        self.groups.set_port_live(port, live);
        true
    }

    /// The groups.
    pub fn groups(&self) -> &GroupTable {
        &self.groups
    }

    /// The groups, to be changed.
    pub fn groups_mut(&mut self) -> &mut GroupTable {
        &mut self.groups
    }

    /// The configured queues of all ports.
    pub fn shaped(&self) -> &Queues {
        &self.shaped
    }

    /// Gives a port queues, in place of those that it had. Frames that still wait in those are
    /// lost and counted.
    pub fn set_queues(&mut self, queues: &PortQueues, now: Nanos) -> Result<(), QueueError> {
        if !self.ports.contains(&queues.port) {
            return Err(QueueError::NoSuchPort(queues.port));
        }
        let lost = self.shaped.set(queues, now)?;
        self.drops.add_many(DropReason::ShaperFull, lost as u64);
        self.gates[queues.port as usize].shaped = self.shaped.has(queues.port);
        Ok(())
    }

    /// The configured queues and their counters.
    pub fn queue_records(&self, now: Nanos) -> Vec<QueueRecord> {
        self.shaped.records(now)
    }

    /// Frames and bytes sent by way of each queue that was named by [`Action::Enqueue`] and that
    /// its port does not have.
    ///
    /// [`Action::Enqueue`]: crate::action::Action::Enqueue
    pub fn queues(&self) -> impl Iterator<Item = (PortNo, QueueNo, Traffic)> + '_ {
        self.queues.iter().map(|&((port, queue), traffic)| (port, queue, traffic))
    }
}
