//! Ext-PG-Divert: diverts frames to a service agent.
//!
//! The agent gets at most RatePps frames per second, with a burst of one second's frames. With
//! Copy, every frame also continues at PassOut. Without Copy, only frames above the rate do.

use std::sync::Arc;

use forces::Value;
use packet::time::Nanos;

use super::meter::Bucket;
use super::redirect_out::tell;
use super::{At, Block, DivertDestination, DropReason, Env, Packet, Setup, Verdict, meta_id};

const PASS: u32 = 0;
/// Component ids.
const DIVERTED: u32 = 5;
const LIMITED: u32 = 6;

/// The Divert block.
#[derive(Debug)]
pub struct Divert {
    agent: Arc<str>,
    bucket: Bucket,
    copies: bool,
    stamps: bool,
    /// Whether PassOut has a link.
    passes: bool,
    diverted: u64,
    limited: u64,
}

impl Block for Divert {
    fn new(setup: &mut Setup<'_>) -> Self {
        let (agent, rate) = (setup.text(1), setup.unsigned(2));
        if agent.is_empty() {
            setup.wrong(&[1], "missing agent", "set Agent to the name of one in <agents>");
        }
        Divert {
            agent: agent.into(),
            bucket: Bucket::new(rate, rate),
            copies: setup.flag(3),
            stamps: setup.flag(4),
            passes: !setup.linked[PASS as usize].is_empty(),
            diverted: 0,
            limited: 0,
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        if !self.bucket.has(1, env.now) {
            self.limited += 1;
            let on = if self.passes {
                Verdict::Out(PASS, 0)
            } else {
                Verdict::Dropped(DropReason::OverRate)
            };
            return on;
        }
        if self.stamps {
            let (came, second) = (packet.came.0, 1_000_000_000);
            packet.set_meta(env.slots, meta_id::RECEIVE_SECONDS, (came / second).into());
            packet.set_meta(env.slots, meta_id::RECEIVE_NANOS, (came % second).into());
        }
        if !self.copies {
            if !tell(DivertDestination::Agent(self.agent.clone()), packet, env) {
                return Verdict::Dropped(DropReason::ToldQueueFull);
            }
            self.bucket.take(1);
            self.diverted += 1;
            return Verdict::Told;
        }
        // The agent gets a copy, which `copies_told` counts.
        let mut copy = env.fresh();
        copy.copy_from(packet);
        if tell(DivertDestination::Agent(self.agent.clone()), &mut copy, env) {
            self.bucket.take(1);
            self.diverted += 1;
            env.copies_told += 1;
        } else {
            self.limited += 1;
        }
        env.spare.push(copy);
        Verdict::Out(PASS, 0)
    }

    fn keep(&mut self, old: &mut Self) {
        self.bucket.keep(&mut old.bucket);
        std::mem::swap(&mut self.diverted, &mut old.diverted);
        std::mem::swap(&mut self.limited, &mut old.limited);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            DIVERTED => Some(Value::Unsigned(self.diverted)),
            LIMITED => Some(Value::Unsigned(self.limited)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            DIVERTED => self.diverted = 0,
            LIMITED => self.limited = 0,
            _ => {}
        }
    }
}
