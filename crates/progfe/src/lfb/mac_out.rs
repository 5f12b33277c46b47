//! EtherMACOut (RFC 6956 section 5.1.5): sends frames to a port.
//!
//! - An instance feeds the port with its own number, and sets PHYPortID to it.
//! - AdminStatus is an alias of that of the EtherMACIn with the same number. If there is none, or
//!   if the program sets it, the instance has its own.
//! - A frame whose payload is longer than a nonzero MTU is dropped.

use forces::Value;
use packet::header::{ethernet, u16_at, vlan};
use packet::time::Nanos;

use super::phy::UP;
use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, counters, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState, others, tags};
use crate::compile::tree::NodeId;
use crate::program::base_id;

/// The component MACOutStats.
const STATS: u32 = 5;

/// The EtherMACOut block.
#[derive(Debug)]
pub struct MacOut {
    port: u32,
    is_enabled: bool,
    mtu: usize,
    transmitted: u64,
    dropped: u64,
}

impl MacOut {
    fn unsupported_reason(&self, bytes: &[u8]) -> Option<DropReason> {
        if !self.is_enabled {
            return Some(DropReason::Disabled);
        }
        if bytes.len() < ethernet::HEADER_BYTES {
            return Some(DropReason::TooShort);
        }
        let is_tagged = vlan::is_tag(u16_at(bytes, ethernet::TYPE.start));
        let header = ethernet::HEADER_BYTES + if is_tagged { vlan::TAG_BYTES } else { 0 };
        (self.mtu > 0 && bytes.len() > header + self.mtu).then_some(DropReason::TooLong)
    }
}

/// Counters for frames in a tree: sent, or not.
const PASSED: u32 = 0;
const LEFT_OUT: u32 = 1;

impl Block for MacOut {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let port = setup.number_of_instance();
        let instances = &setup.program.instances;
        let own = instances[setup.instance].components.get(&1).and_then(Value::unsigned);
        let twin =
            |of: &&crate::program::Instance| (of.class, of.number) == (base_id::MAC_IN, port);
        let alias = instances.iter().find(twin).and_then(|twin| twin.components.get(&1));
        MacOut {
            port,
            is_enabled: own.or(alias.and_then(Value::unsigned)) == Some(UP),
            mtu: setup.number(2) as usize,
            transmitted: 0,
            dropped: 0,
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        if let Some(reason) = self.unsupported_reason(packet.bytes()) {
            self.dropped += 1;
            return Verdict::Dropped(reason);
        }
        self.transmitted += 1;
        packet.set_meta(env.slots, meta_id::PHY_PORT, self.port.into());
        Verdict::Out(0, 0)
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let ether_type = way.read(ethernet::TYPE.start * 8, 16)?;
        let drop = |grower: &mut TreeBuilder<'_>, mut way: PathState, reason| {
            grower.meet(&mut way, LEFT_OUT);
            grower.drop(way, reason, 0)
        };
        let pass = &mut |grower: &mut TreeBuilder<'_>, mut way: PathState| {
            grower.meet(&mut way, PASSED);
            let slot = grower.slots.slot(meta_id::PHY_PORT);
            way.set(slot, Known::Constant(self.port.into()));
            grower.go(way, 0, 0)
        };
        if !self.is_enabled {
            return Some(drop(grower, way, DropReason::Disabled));
        }
        let tags = tags();
        let plain = others(&tags, u64::MAX);
        let long = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            if self.mtu == 0 {
                return pass(grower, way);
            }
            let groups = [plain.clone(), tags.clone()];
            grower.choose(way, ether_type, &groups, &mut |grower, way, tagged| {
                let most = ethernet::HEADER_BYTES + tagged * vlan::TAG_BYTES + self.mtu;
                let too_long =
                    &mut |grower: &mut TreeBuilder<'_>, way| drop(grower, way, DropReason::TooLong);
                grower.length(way, most + 1, too_long, &mut *pass)
            })
        };
        let short = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            drop(grower, way, DropReason::TooShort)
        };
        Some(grower.length(way, ethernet::HEADER_BYTES, long, short))
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        match what {
            PASSED => self.transmitted += frames,
            _ => self.dropped += frames,
        }
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.transmitted, &mut old.transmitted);
        std::mem::swap(&mut self.dropped, &mut old.dropped);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            1 => Some(Value::Unsigned(if self.is_enabled { UP } else { super::phy::DOWN })),
            STATS => Some(counters(&[self.transmitted, self.dropped])),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            (self.transmitted, self.dropped) = (0, 0);
        }
    }
}
