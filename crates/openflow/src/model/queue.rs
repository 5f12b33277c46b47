//! Queues of a port: what they promise, and what they have counted.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.2 (`ofp_packet_queue`), 5.3.4
//! (`ofp_queue_get_config_reply`) and 5.3.5 (`ofp_queue_stats`); 1.4.1 section 7.3.5.11
//! (`ofp_queue_desc`). Rates are tenths of a per cent of the link's.

use std::fmt;

use packet::time::Nanos;

use super::action::Experimenter;
use super::port::stats::Counter;
use super::port::{PortNo, ShowPort};
use super::text::{Hex, list};

/// Queue number in a request that means all queues of the port.
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// A rate that is not set.
pub const RATE_UNSET: u16 = 0xffff;

/// The queues of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueConfig {
    /// Which port.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<PacketQueue>,
}

/// One queue, and what it promises; from 1.4 on a row of the statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketQueue {
    /// Its port.
    pub port: PortNo,
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
    /// At least this rate; above 1000 means that it is disabled.
    MinRate(u16),
    /// At most this rate; above 1000 means that it is disabled (from 1.2 on).
    MaxRate(u16),
    /// What somebody else promises (from 1.2 on).
    Experimenter(Experimenter),
    /// A property that the table does not have, as received.
    Other {
        /// Its number.
        kind: u16,
        /// What follows its header.
        body: Vec<u8>,
    },
}

/// One queue and its counters (`ofp_queue_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Its port.
    pub port: PortNo,
    /// Its number at the port.
    pub queue: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames dropped for want of room.
    pub tx_errors: u64,
    /// How long it has been there (from 1.3 on).
    pub age: Option<Nanos>,
    /// What somebody else counts (from 1.4 on).
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
