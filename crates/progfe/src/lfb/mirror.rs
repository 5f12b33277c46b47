//! Ext-PG-Mirror: copies one of every `sample` frames to a second output, complete or truncated.

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Verdict};

const OUT: u32 = 0;
const COPY: u32 = 1;
/// The component Copies.
const COPIES: u32 = 3;

/// The Mirror block.
#[derive(Debug)]
pub struct Mirror {
    sample: u32,
    truncate: usize,
    /// Number of frames since the last copy.
    since: u32,
    copies: u64,
}

impl Block for Mirror {
    fn new(setup: &mut Setup<'_>) -> Self {
        let sample = setup.number(1);
        if sample == 0 {
            setup.wrong(&[1], "invalid interval 0", "use 1 to copy every frame");
        }
        Mirror { sample, truncate: setup.number(2) as usize, since: 0, copies: 0 }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.since += 1;
        if self.since >= self.sample {
            self.since = 0;
            self.copies += 1;
            env.copy(packet, COPY, 0);
            if let Some((_, _, copy)) = env.made.last_mut().filter(|_| self.truncate > 0) {
                copy.frame_mut().truncate(self.truncate);
            }
        }
        Verdict::Out(OUT, 0)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.copies, &mut old.copies);
        std::mem::swap(&mut self.since, &mut old.since);
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
