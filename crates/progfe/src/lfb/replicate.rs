//! Ext-PG-Replicate: copies a frame to every output except one that a metadata item selects.
//!
//! Members map values of ExcludeMeta to outputs; without rows, output i has the value i + 1. If the
//! item is not set, no output is excluded.

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict};

/// The component Copies.
const COPIES: u32 = 3;

/// The Replicate block.
#[derive(Debug)]
pub struct Replicate {
    exclude: Option<usize>,
    /// Value and output.
    members: Vec<(u32, u32)>,
    copies: u64,
}

impl Replicate {
    /// Returns the outputs, each with the value that excludes it.
    pub fn members(&self) -> &[(u32, u32)] {
        &self.members
    }
}

impl Block for Replicate {
    fn new(setup: &mut Setup<'_>) -> Self {
        let exclude = setup.meta_slot(1);
        let rows = setup.rows(2);
        let mut members: Vec<(u32, u32)> =
            rows.iter().map(|row| (row.number(1), row.number(2))).collect();
        if members.is_empty() {
            members =
                setup.linked[0].iter().map(|&index| (index.saturating_add(1), index)).collect();
        }
        Replicate { exclude, members, copies: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let excluded = self.exclude.and_then(|slot| packet.meta.get(slot));
        let mut chosen = self.members.iter().filter(|(value, _)| Some((*value).into()) != excluded);
        let Some(&(_, last)) = chosen.next_back() else {
            return Verdict::Dropped(DropReason::NoMembers);
        };
        let mut copies = 0;
        for &(_, output) in chosen {
            env.copy(packet, 0, output);
            copies += 1;
        }
        self.copies += copies;
        // The last output gets the original frame.
        Verdict::Out(0, last)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.copies, &mut old.copies);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == COPIES).then_some(Value::Unsigned(self.copies))
    }

    fn reset(&mut self, component: u32) {
        if component == COPIES {
            self.copies = 0;
        }
    }
}
