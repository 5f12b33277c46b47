//! RedirectIn (RFC 6956 section 5.4.1): injects packets of the control element into the graph.
//!
//! RedirectIndex selects the output and is then removed. A packet without it is dropped.

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, meta_id};

/// The component NumPacketsReceived.
const RECEIVED: u32 = 1;

/// The RedirectIn block.
#[derive(Debug)]
pub struct RedirectIn {
    received: u64,
}

impl Block for RedirectIn {
    fn new(_setup: &mut Setup<'_>) -> Self {
        RedirectIn { received: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.received += 1;
        let slot = env.slots.slot(meta_id::REDIRECT_INDEX);
        let index = slot.and_then(|slot| packet.meta.get(slot));
        let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else {
            return Verdict::Dropped(DropReason::NoRedirectIndex);
        };
        slot.into_iter().for_each(|slot| packet.meta.clear(slot));
        Verdict::Out(0, index)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.received, &mut old.received);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == RECEIVED).then_some(Value::Unsigned(self.received))
    }

    fn reset(&mut self, component: u32) {
        if component == RECEIVED {
            self.received = 0;
        }
    }
}
