//! RedirectOut (RFC 6956 section 5.4.2): sends packets with all their metadata to the control
//! element.

use forces::Value;
use packet::time::Nanos;

use super::exceptions::DivertedFrame;
use super::{At, Block, DivertDestination, DropReason, Env, Packet, Setup, Verdict};

/// The component NumPacketsSent.
const SENT: u32 = 1;

/// The RedirectOut block.
#[derive(Debug)]
pub struct RedirectOut {
    sent: u64,
}

/// Appends a packet to the queue of redirected frames. Returns false if it is full.
pub(super) fn tell(to: DivertDestination, packet: &mut Packet, env: &mut Env<'_>) -> bool {
    if !env.told.has_room() {
        return false;
    }
    let ids = env.slots.ids();
    let meta = packet.meta.iter().map(|(slot, value)| (ids[slot], value)).collect();
    let (instance, came) = (env.instance, packet.came);
    let frame = packet.frame().clone();
    env.told.frames.push_back(DivertedFrame { to, instance, meta, came, frame });
    true
}

impl Block for RedirectOut {
    fn new(_setup: &mut Setup<'_>) -> Self {
        RedirectOut { sent: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        if !tell(DivertDestination::Control, packet, env) {
            return Verdict::Dropped(DropReason::ToldQueueFull);
        }
        self.sent += 1;
        Verdict::Told
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.sent, &mut old.sent);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == SENT).then_some(Value::Unsigned(self.sent))
    }

    fn reset(&mut self, component: u32) {
        if component == SENT {
            self.sent = 0;
        }
    }
}
