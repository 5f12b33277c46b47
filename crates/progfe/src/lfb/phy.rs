//! EtherPHYCop (RFC 6956 section 5.1.1): a port of the element.
//!
//! Received frames leave by EtherPHYOut with PHYPortID, the instance's number. Frames that arrive
//! at EtherPHYIn leave by the port with that number. The block drops all frames unless AdminStatus
//! is Up.

use dataplane::forwarder::Sent;
use forces::Value;
use packet::frame::PortNo;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::tree::NodeId;

/// Value of PortStatusType (RFC 6956 section 4.1): up.
pub const UP: u64 = 1;
/// Value of PortStatusType (RFC 6956 section 4.1): down.
pub const DOWN: u64 = 2;
/// The event PHYPortStatusChanged.
const STATUS_CHANGED: u32 = 1;

/// The EtherPHYCop block.
#[derive(Debug)]
pub struct Phy {
    port: PortNo,
    is_enabled: bool,
    /// Whether the link is up, as the caller reports it.
    is_up: bool,
}

impl Phy {
    /// Returns the port.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Sets the link state.
    pub fn set_link(&mut self, up: bool, env: &mut Env<'_>) {
        if self.is_up != up {
            self.is_up = up;
            let status = self.status();
            env.event(STATUS_CHANGED, &[], || vec![(vec![3], Value::Unsigned(status))]);
        }
    }

    fn status(&self) -> u64 {
        if self.is_enabled && self.is_up { UP } else { DOWN }
    }

    /// Processes a frame that the port received.
    pub fn receive(&mut self, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        if !self.is_enabled {
            return Verdict::Dropped(DropReason::Disabled);
        }
        packet.set_meta(env.slots, meta_id::PHY_PORT, self.port.into());
        Verdict::Out(0, 0)
    }

    /// Compiles the processing of received frames on a path.
    pub fn grow_received(&self, mut way: PathState, grower: &mut TreeBuilder<'_>) -> NodeId {
        if !self.is_enabled {
            return grower.drop(way, DropReason::Disabled, 0);
        }
        let slot = grower.slots.slot(meta_id::PHY_PORT);
        way.set(slot, Known::Constant(self.port.into()));
        grower.go(way, 0, 0)
    }
}

impl Block for Phy {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let is_enabled = setup.unsigned(2) == UP;
        Phy { port: setup.number_of_instance(), is_enabled, is_up: true }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        if !self.is_enabled {
            return Verdict::Dropped(DropReason::Disabled);
        }
        match env.outputs.send(self.port, packet.frame_mut()) {
            Sent::Queued => Verdict::Left(self.port),
            Sent::NoSuchPort => Verdict::Dropped(DropReason::NoPort),
            Sent::QueueFull => Verdict::Dropped(DropReason::PortQueueFull),
        }
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        Some(match self.is_enabled {
            true => grower.leave(way, self.port),
            false => grower.drop(way, DropReason::Disabled, 0),
        })
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.is_up, &mut old.is_up);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            1 => Some(Value::Unsigned(self.port.into())),
            3 => Some(Value::Unsigned(self.status())),
            8 => Some(Value::Boolean(self.is_up)),
            _ => None,
        }
    }
}
