//! Port settings and liveness.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.2.1; 1.3.5, section 7.2.1 (`OFPPS_LIVE`).
//! Invariant: the group table has the current liveness of every port.

use packet::frame::PortNo;
use packet::time::Nanos;

use super::Egress;
use crate::counter::{DropReason, Traffic};
use crate::group::GroupTable;
use crate::queue::{PortQueues, QueueError, QueueNo, QueueRecord, Queues};

/// Settings of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Disabled: neither receives nor sends.
    pub down: bool,
    /// Drop received frames, except those of the spanning tree protocol.
    pub no_receive: bool,
    /// Drop received frames of the spanning tree protocol.
    pub no_receive_spanning_tree: bool,
    /// Exclude the port from flooding.
    pub no_flood: bool,
    /// Drop frames for the port.
    pub no_forward: bool,
    /// Send no packet-in for table misses of frames from the port.
    pub no_packet_in: bool,
}

/// State of a port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PortState {
    pub(super) settings: PortSettings,
    /// Whether the port has shaped queues.
    pub(super) shaped: bool,
    link_down: bool,
}

impl Egress {
    /// Returns a port's settings; the defaults for a port that does not exist.
    #[inline]
    pub fn settings(&self, port: PortNo) -> PortSettings {
        self.gates.get(port as usize).map(|gate| gate.settings).unwrap_or_default()
    }

    /// Changes a port's settings. Returns false if the port does not exist.
    pub fn set_settings(&mut self, port: PortNo, settings: PortSettings) -> bool {
        self.change_gate(port, |gate| gate.settings = settings)
    }

    /// Sets whether a port's link is up, which is the default. Returns false if the port does not
    /// exist.
    pub fn set_link(&mut self, port: PortNo, up: bool) -> bool {
        self.change_gate(port, |gate| gate.link_down = !up)
    }

    /// Whether every frame for a port goes to its queue immediately.
    pub(crate) fn sends_at_once(&self, port: PortNo) -> bool {
        self.refusal(port).is_none() && !self.is_shaped(port) && self.ports.contains(&port)
    }

    /// Whether a port is live: its link is up, and it is not disabled.
    pub fn is_live(&self, port: PortNo) -> bool {
        let gate = self.gates.get(port as usize);
        self.ports.contains(&port)
            && gate.is_some_and(|gate| !gate.link_down && !gate.settings.down)
    }

    fn change_gate(&mut self, port: PortNo, change: impl FnOnce(&mut PortState)) -> bool {
        if !self.ports.contains(&port) {
            return false;
        }
        change(&mut self.gates[port as usize]);
        let live = self.is_live(port);
        self.groups.set_port_live(port, live);
        true
    }

    /// Returns the groups.
    pub fn groups(&self) -> &GroupTable {
        &self.groups
    }

    /// Returns the groups mutably.
    pub fn groups_mut(&mut self) -> &mut GroupTable {
        &mut self.groups
    }

    /// Returns the configured queues of all ports.
    pub fn shaped(&self) -> &Queues {
        &self.shaped
    }

    /// Replaces the queues of a port. Frames in the old queues are dropped and counted.
    pub fn set_queues(&mut self, queues: &PortQueues, now: Nanos) -> Result<(), QueueError> {
        if !self.ports.contains(&queues.port) {
            return Err(QueueError::NoSuchPort(queues.port));
        }
        let lost = self.shaped.set(queues, now)?;
        self.drops.add_many(DropReason::ShaperFull, lost as u64);
        self.gates[queues.port as usize].shaped = self.shaped.has(queues.port);
        Ok(())
    }

    /// Returns the configured queues and their counters.
    pub fn queue_records(&self, now: Nanos) -> Vec<QueueRecord> {
        self.shaped.records(now)
    }

    /// Returns the traffic of queues that [`Action::Enqueue`] named but that are not configured.
    ///
    /// [`Action::Enqueue`]: crate::action::Action::Enqueue
    pub fn queues(&self) -> impl Iterator<Item = (PortNo, QueueNo, Traffic)> + '_ {
        self.queues.iter().map(|&((port, queue), traffic)| (port, queue, traffic))
    }
}
