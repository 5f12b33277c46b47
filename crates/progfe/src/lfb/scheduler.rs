//! GenericScheduler (RFC 6956 section 5.5.2): a queue for each input with round-robin service.
//!
//! Round robin, packet by packet, is the only discipline that the RFC names. The engine serves
//! queues after the current frames have passed the graph. Links have no rate, so the next block
//! always accepts packets. A full port queue drops and counts them.

use std::collections::{BTreeMap, VecDeque};

use forces::Value;
use packet::time::Nanos;

use super::{At, Block, DropReason, Env, Packet, Setup, Verdict};

/// Maximum number of packets in a queue.
pub const QUEUE_PACKETS_MAX: usize = 256;
/// Maximum number of packets served in one call.
const SERVED_MAX: u64 = 4096;
/// The component QueueStats.
const STATS: u32 = 2;
/// The capability QueueLenLimit.
const LIMIT: u32 = 30;

/// The GenericScheduler block.
#[derive(Debug)]
pub struct Scheduler {
    queues: BTreeMap<u32, VecDeque<Packet>>,
    held: u64,
    /// The queue served last.
    last: u32,
}

impl Scheduler {
    /// Returns the next packet in round-robin order.
    fn next(&mut self) -> Option<Packet> {
        let waiting = |queues: &BTreeMap<u32, VecDeque<Packet>>, from: u32, to: u32| {
            let mut range = queues.range(from..=to);
            range.find(|(_, queue)| !queue.is_empty()).map(|(&index, _)| index)
        };
        let after = self.last.checked_add(1);
        let index = after
            .and_then(|after| waiting(&self.queues, after, u32::MAX))
            .or_else(|| waiting(&self.queues, 0, self.last))?;
        self.last = index;
        let packet = self.queues.get_mut(&index)?.pop_front()?;
        self.held -= 1;
        Some(packet)
    }
}

impl Block for Scheduler {
    fn new(setup: &mut Setup<'_>) -> Self {
        if setup.unsigned(1) != 1 {
            setup.wrong(&[1], "only round robin is supported", "set SchedulingDiscipline to RR");
        }
        Scheduler { queues: BTreeMap::new(), held: 0, last: u32::MAX }
    }

    fn process(&mut self, at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let queue = self.queues.entry(at.index).or_default();
        if queue.len() >= QUEUE_PACKETS_MAX {
            return Verdict::Dropped(DropReason::QueueFull);
        }
        let fresh = env.fresh();
        queue.push_back(std::mem::replace(packet, fresh));
        self.held += 1;
        Verdict::Held
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.queues, &mut old.queues);
        std::mem::swap(&mut self.held, &mut old.held);
    }

    fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
        for _ in 0..self.held.min(SERVED_MAX) {
            let Some(packet) = self.next() else { break };
            env.made.push((0, 0, packet));
        }
        None
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        let row = |(&index, queue): (&u32, &VecDeque<Packet>)| {
            let bytes: usize = queue.iter().map(|packet| packet.bytes().len()).sum();
            Value::struct_of([
                (1, Value::Unsigned(index.into())),
                (2, Value::Unsigned(queue.len() as u64)),
                (3, Value::Unsigned(bytes as u64)),
            ])
        };
        match component {
            STATS => Some(Value::rows_of(self.queues.iter().map(row))),
            LIMIT => Some(Value::Unsigned(QUEUE_PACKETS_MAX as u64)),
            _ => None,
        }
    }

    fn held(&self) -> u64 {
        self.held
    }
}
