//! Queues of ports in a switch's configuration.
//!
//! Rates count the bits of frames without frame check sequence. Invariant: the forwarding core
//! accepts the queues of a configuration without problems.

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
    /// The queue number on that port. Queue 0 is for frames without a queue.
    pub queue: u32,
    /// Minimum rate in bit/s, served before other queues. Requires a port with a rate.
    pub rate_bps_min: Option<u64>,
    /// Maximum rate in bit/s, if any.
    pub rate_bps_max: Option<u64>,
    /// Maximum number of queued frames. Further frames are dropped and counted as errors of the
    /// queue.
    pub frames_max: Option<usize>,
}

/// Rate of a port, which its queues share.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRateConfig {
    /// The port.
    pub port: PortNo,
    /// Rate in bit/s.
    pub rate_bps: u64,
}

impl OpenFlowConfig {
    /// Returns the queues of each port that has any.
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

/// Returns the entry of this port, which is added if missing.
fn place(ports: &mut Vec<PortQueues>, port: PortNo) -> &mut PortQueues {
    let at = ports.iter().position(|queues| queues.port == port).unwrap_or_else(|| {
        ports.push(PortQueues { port, rate: None, queues: Vec::new() });
        ports.len() - 1
    });
    &mut ports[at]
}
