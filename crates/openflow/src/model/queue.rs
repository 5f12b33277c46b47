//! Queues of a port, and what they promise.
//!
//! Source: OpenFlow 1.0.0 section 5.2.2 (`ofp_packet_queue`) and 5.3.4
//! (`ofp_queue_get_config_reply`).

use std::fmt;

use super::port::{PortNo, ShowPort};
use super::text::{Hex, list};

/// The queues of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// Which port.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<PacketQueue>,
}

/// One queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketQueue {
    /// Its number at the port.
    pub id: u32,
    /// What it promises.
    pub properties: Vec<QueueProperty>,
}

/// What a queue promises (`ofp_queue_properties`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueProperty {
    /// Nothing.
    None,
    /// At least this many tenths of a per cent of the link; above 1000 means that it is disabled.
    MinRate(u16),
    /// A property that the table does not have, as received.
    Other {
        /// Its number.
        kind: u16,
        /// What follows its header.
        body: Vec<u8>,
    },
}

impl fmt::Display for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={}", ShowPort(self.port))?;
        self.queues.iter().try_for_each(|queue| write!(f, "\n  {queue}"))
    }
}

impl fmt::Display for PacketQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue={} properties=", self.id)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for QueueProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueProperty::None => f.write_str("none"),
            QueueProperty::MinRate(rate) => write!(f, "min_rate:{}.{}%", rate / 10, rate % 10),
            QueueProperty::Other { kind, body } => write!(f, "{kind}:{}", Hex(body)),
        }
    }
}
