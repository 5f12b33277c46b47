//! Queues of ports, as a switch's configuration describes them.
//!
//! Rates count the bits of frames without frame check sequence. Invariant: a configuration without
//! problems gives queues that the forwarding core takes.

use dataplane::queue::{PortQueues, QUEUE_FRAMES, QueueSpec};
use packet::frame::PortNo;
use serde::Deserialize;

use super::{OpenFlowConfig, PortConfig, Problem};

/// One queue of a port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// The port.
    pub port: PortNo,
    /// The queue's number on that port. Number 0 is for frames that name no queue.
    pub queue: u32,
    /// Bits a second that it is given before other queues, if any; of a port that has a rate.
    pub rate_bps_min: Option<u64>,
    /// Bits a second that it never exceeds, if there is such a limit.
    pub rate_bps_max: Option<u64>,
    /// Frames that may wait in it; further ones are dropped and counted as its errors.
    pub frames_max: Option<usize>,
}

/// What a port with queues may send as a whole, for its queues to share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRateConfig {
    /// The port.
    pub port: PortNo,
    /// Bits a second.
    pub rate_bps: u64,
}

impl OpenFlowConfig {
    /// The queues of each port that has some.
    pub fn port_queues(&self) -> Vec<PortQueues> {
        let mut ports: Vec<PortQueues> = Vec::new();
        for queue in &self.queues {
            place(&mut ports, queue.port).queues.push(QueueSpec {
                queue: queue.queue,
                min: queue.rate_bps_min,
                max: queue.rate_bps_max,
                frames_max: queue.frames_max.unwrap_or(QUEUE_FRAMES),
            });
        }
        for rate in &self.port_rates {
            place(&mut ports, rate.port).rate = Some(rate.rate_bps);
        }
        ports
    }

    pub(super) fn validate_queues(&self, ports: &[PortConfig], problems: &mut Vec<Problem>) {
        for queues in self.port_queues() {
            let key = if queues.queues.is_empty() { "port_rate" } else { "queue" };
            if !ports.iter().any(|port| port.number == queues.port) {
                problems.push(Problem::NoSuchPort { key, port: queues.port });
            }
            if let Err(error) = queues.check() {
                problems.push(Problem::BadQueues(error));
            }
            let guarantee = queues.queues.iter().find(|queue| queue.min.is_some());
            if let (None, Some(queue)) = (queues.rate, guarantee) {
                problems.push(Problem::NothingToShare(queues.port, queue.queue));
            }
        }
    }
}

/// The entry of this port, which is added if need be.
fn place(ports: &mut Vec<PortQueues>, port: PortNo) -> &mut PortQueues {
    let at = ports.iter().position(|queues| queues.port == port).unwrap_or_else(|| {
        ports.push(PortQueues { port, rate: None, queues: Vec::new() });
        ports.len() - 1
    });
    &mut ports[at]
}
