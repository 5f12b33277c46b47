//! Ext-PG-Count: counts frames and bytes. If the output has no link, frames intentionally end here.

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::PathState;
use crate::compile::tree::NodeId;

/// Component ids.
const PACKETS: u32 = 1;
const BYTES: u32 = 2;
/// The event PacketsOver.
const PACKETS_OVER: u32 = 1;

/// The Count block.
#[derive(Debug)]
pub struct Count {
    packets: u64,
    bytes: u64,
    is_end: bool,
}

impl Block for Count {
    fn new(setup: &mut Setup<'_>) -> Self {
        Count { packets: 0, bytes: 0, is_end: setup.linked[0].is_empty() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.packets += 1;
        self.bytes += packet.bytes().len() as u64;
        let packets = self.packets;
        env.event(PACKETS_OVER, &[], || vec![(vec![PACKETS], Value::Unsigned(packets))]);
        if self.is_end { Verdict::Dropped(DropReason::Ends) } else { Verdict::Out(0, 0) }
    }

    fn grow(&self, mut way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        // Subscribers get an event for each frame.
        if grower.is_watched(&way) {
            return None;
        }
        grower.meet(&mut way, PACKETS);
        Some(match self.is_end {
            true => grower.drop(way, DropReason::Ends, 0),
            false => grower.go(way, 0, 0),
        })
    }

    fn met(&mut self, _what: u32, frames: u64, bytes: u64) {
        self.packets += frames;
        self.bytes += bytes;
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.packets, &mut old.packets);
        std::mem::swap(&mut self.bytes, &mut old.bytes);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            PACKETS => Some(Value::Unsigned(self.packets)),
            BYTES => Some(Value::Unsigned(self.bytes)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            PACKETS => self.packets = 0,
            BYTES => self.bytes = 0,
            _ => {}
        }
    }
}
