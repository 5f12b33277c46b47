//! BasicMetadataDispatch (RFC 6956 section 5.5.1): selects an output by the value of a metadata
//! item.

use std::collections::BTreeMap;

use super::{At, Block, Env, Packet, Setup, Verdict, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::tree::NodeId;
use crate::diagnostic::Code;

const OUT: u32 = 0;
const EXCEPTION: u32 = 1;

/// The BasicMetadataDispatch block.
#[derive(Debug)]
pub struct Dispatch {
    slot: Option<usize>,
    outputs: BTreeMap<u32, u32>,
}

impl Block for Dispatch {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let slot = setup.meta_slot(1);
        if slot.is_none() && setup.number(1) == 0 {
            setup.wrong(&[1], "missing metadata item", "set MetadataID, for example to L3PortID");
        }
        let mut outputs = BTreeMap::new();
        for row in setup.rows(2) {
            if outputs.insert(row.number(1), row.number(2)).is_some() {
                let what = format!("two rows have the value {}", row.number(1));
                setup.refuse(Code::DuplicateKey, &row.path, what, "remove one");
            }
        }
        Dispatch { slot, outputs }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let value = self.slot.and_then(|slot| packet.meta.get(slot));
        let value = value.and_then(|value| u32::try_from(value).ok());
        match value.and_then(|value| self.outputs.get(&value)) {
            Some(&index) => Verdict::Out(OUT, index),
            None => {
                packet.set_meta(env.slots, meta_id::EXCEPTION, exception::METADATA_NO_MATCH);
                Verdict::Out(EXCEPTION, 0)
            }
        }
    }
    fn grow(&self, mut way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let value = match self.slot.and_then(|slot| way.meta[slot]) {
            Some(Known::Constant(value)) => u32::try_from(value).ok(),
            None => None,
            Some(_) => return None,
        };
        Some(match value.and_then(|value| self.outputs.get(&value)) {
            Some(&index) => grower.go(way, OUT, index),
            None => {
                let slot = grower.slots.slot(meta_id::EXCEPTION);
                way.set(slot, Known::Constant(exception::METADATA_NO_MATCH));
                grower.go(way, EXCEPTION, 0)
            }
        })
    }
}
