//! Queues of a port: configuration and statistics.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.2 (`ofp_packet_queue`), 5.3.4 (`ofp_queue_get_config_reply`)
//! and 5.3.5 (`ofp_queue_stats`); 1.4.1 section 7.3.5.11 (`ofp_queue_desc`).
//!
//! Rates are in tenths of a per cent of the link rate.

use std::fmt;

use packet::time::Nanos;

use super::action::Experimenter;
use super::port::stats::Counter;
use super::port::{PortNo, ShowPort};
use super::text::{Hex, list};

/// All queues of the port, in a request.
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// The queues of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// Port number.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<PacketQueue>,
}

/// A queue and its properties; from 1.4 on a row of a multipart reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketQueue {
    /// Port number.
    pub port: PortNo,
    /// Queue ID at the port.
    pub id: u32,
    /// Properties.
    pub properties: Vec<QueueProperty>,
}

/// Property of a queue (`ofp_queue_properties`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueProperty {
    /// No property.
    None,
    /// Minimum rate; disabled if above 1000.
    MinRate(u16),
    /// Maximum rate; disabled if above 1000 (from 1.2 on).
    MaxRate(u16),
    /// An experimenter property (from 1.2 on).
    Experimenter(Experimenter),
    /// An unknown property, as received.
    Other {
        /// Property type.
        kind: u16,
        /// The bytes after the header.
        body: Vec<u8>,
    },
}

/// A queue and its counters (`ofp_queue_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Port number.
    pub port: PortNo,
    /// Queue ID at the port.
    pub queue: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames dropped by overrun.
    pub tx_errors: u64,
    /// Time since the queue was configured (from 1.3 on).
    pub age: Option<Nanos>,
    /// Experimenter properties (from 1.4 on).
    pub properties: Vec<Experimenter>,
}

impl fmt::Display for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={}", ShowPort(self.port))?;
        self.queues.iter().try_for_each(|queue| write!(f, "\n  {queue}"))
    }
}

impl fmt::Display for PacketQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={} queue={} properties=", ShowPort(self.port), self.id)?;
        list(f, &self.properties)
    }
}

impl fmt::Display for QueueProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueProperty::None => f.write_str("none"),
            QueueProperty::MinRate(rate) => write!(f, "min_rate:{}.{}%", rate / 10, rate % 10),
            QueueProperty::MaxRate(rate) => write!(f, "max_rate:{}.{}%", rate / 10, rate % 10),
            QueueProperty::Experimenter(body) => write!(f, "experimenter:{body}"),
            QueueProperty::Other { kind, body } => write!(f, "{kind}:{}", Hex(body)),
        }
    }
}

impl fmt::Display for QueueStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={} queue={}", ShowPort(self.port), self.queue)?;
        write!(f, " tx_bytes={}", Counter(self.tx_bytes))?;
        write!(f, " tx_packets={}", Counter(self.tx_packets))?;
        write!(f, " tx_errors={}", Counter(self.tx_errors))?;
        if let Some(age) = self.age {
            write!(f, " age={}ns", age.0)?;
        }
        self.properties.iter().try_for_each(|property| write!(f, " experimenter={property}"))
    }
}
