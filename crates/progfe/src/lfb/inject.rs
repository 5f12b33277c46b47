//! Ext-PG-Inject: injects frames of a service agent.
//!
//! RedirectIndex selects the output and is then removed, as in RedirectIn.

use std::sync::Arc;

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict, meta_id};

/// The component Injected.
const INJECTED: u32 = 2;

/// The Inject block.
#[derive(Debug)]
pub struct Inject {
    agent: Arc<str>,
    injected: u64,
}

impl Inject {
    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }
}

impl Block for Inject {
    fn new(setup: &mut Setup<'_>) -> Self {
        let agent = setup.text(1);
        if agent.is_empty() {
            setup.wrong(&[1], "missing agent", "set Agent to the name of one in <agents>");
        }
        Inject { agent: agent.into(), injected: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.injected += 1;
        let slot = env.slots.slot(meta_id::REDIRECT_INDEX);
        let index = slot.and_then(|slot| packet.meta.get(slot));
        let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else {
            return Verdict::Dropped(DropReason::NoRedirectIndex);
        };
        slot.into_iter().for_each(|slot| packet.meta.clear(slot));
        Verdict::Out(0, index)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.injected, &mut old.injected);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == INJECTED).then_some(Value::Unsigned(self.injected))
    }

    fn reset(&mut self, component: u32) {
        if component == INJECTED {
            self.injected = 0;
        }
    }
}
