//! EtherMACIn (RFC 6956 section 5.1.2): accepts received frames and selects their path.
//!
//! - A frame is accepted if its destination is a group or a local address, or if the port is
//!   promiscuous or bridging is enabled.
//! - With bridging, frames to a local address take the normal path, and all others take the
//!   bridging path.
//! - Without bridging, all accepted frames take the normal path.

use forces::Value;
use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use super::phy::UP;
use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, counters};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{PathState, Ranges, others};
use crate::compile::tree::NodeId;

const NORMAL: u32 = 0;
const BRIDGING: u32 = 1;
/// The component MACInStats.
const STATS: u32 = 7;

/// The EtherMACIn block.
#[derive(Debug)]
pub struct MacIn {
    is_enabled: bool,
    local: Vec<Mac>,
    bridges: bool,
    is_promiscuous: bool,
    received: u64,
    dropped: u64,
}

impl MacIn {
    fn path(&self, packet: &Packet) -> Result<u32, DropReason> {
        if !self.is_enabled {
            return Err(DropReason::Disabled);
        }
        let bytes = packet.bytes();
        let (Some(&destination), true) =
            (bytes.first_chunk::<6>(), bytes.len() >= ethernet::HEADER_BYTES)
        else {
            return Err(DropReason::TooShort);
        };
        if self.local.contains(&destination) {
            Ok(NORMAL)
        } else if self.bridges {
            Ok(BRIDGING)
        } else if self.is_promiscuous || ethernet::is_group(&destination) {
            Ok(NORMAL)
        } else {
            Err(DropReason::NotForUs)
        }
    }
}

/// Counters for frames in a tree: accepted, or not.
const TAKEN: u32 = 0;
const LEFT_OUT: u32 = 1;

impl Block for MacIn {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let addresses = setup.value(2);
        let rows = addresses.as_ref().and_then(Value::rows);
        MacIn {
            is_enabled: setup.unsigned(1) == UP,
            local: rows
                .into_iter()
                .flat_map(|rows| rows.values())
                .filter_map(Value::octets)
                .collect(),
            bridges: setup.flag(3),
            is_promiscuous: setup.flag(4),
            received: 0,
            dropped: 0,
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, _env: &mut Env<'_>) -> Verdict {
        self.received += 1;
        match self.path(packet) {
            Ok(output) => Verdict::Out(output, 0),
            Err(reason) => {
                self.dropped += 1;
                Verdict::Dropped(reason)
            }
        }
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let (destination, group) = (way.read(0, 48)?, way.read(7, 1)?);
        let drop = |grower: &mut TreeBuilder<'_>, mut way: PathState, reason| {
            grower.meet(&mut way, LEFT_OUT);
            grower.drop(way, reason, 0)
        };
        let take = |grower: &mut TreeBuilder<'_>, mut way: PathState, output| {
            grower.meet(&mut way, TAKEN);
            grower.go(way, output, 0)
        };
        if !self.is_enabled {
            return Some(drop(grower, way, DropReason::Disabled));
        }
        let number = |mac: &Mac| mac.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        let local: Ranges = self.local.iter().map(|mac| (number(mac), number(mac))).collect();
        let foreign = others(&local, u64::MAX);
        let takes_all = self.is_promiscuous && !self.bridges;
        let long = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            if takes_all {
                return take(grower, way, NORMAL);
            }
            let groups = [local.clone(), foreign.clone()];
            grower.choose(way, destination, &groups, &mut |grower, way, at| match at {
                0 => take(grower, way, NORMAL),
                _ if self.bridges => take(grower, way, BRIDGING),
                _ => grower.is(
                    way,
                    group,
                    1,
                    &mut |grower, way| take(grower, way, NORMAL),
                    &mut |grower, way| drop(grower, way, DropReason::NotForUs),
                ),
            })
        };
        let short = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            drop(grower, way, DropReason::TooShort)
        };
        Some(grower.length(way, ethernet::HEADER_BYTES, long, short))
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        self.received += frames;
        if what == LEFT_OUT {
            self.dropped += frames;
        }
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.received, &mut old.received);
        std::mem::swap(&mut self.dropped, &mut old.dropped);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&[self.received, self.dropped]))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            (self.received, self.dropped) = (0, 0);
        }
    }
}
