//! Port statistics.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5, 1.4.1 section 7.3.5.6 (`ofp_port_stats`).

use std::fmt;

use packet::time::Nanos;

use super::property::PortStatsProperty;
use super::{PortNo, ShowPort};

/// Value of a counter that the switch does not support.
pub const COUNTER_UNKNOWN: u64 = u64::MAX;

/// A port and its counters (`ofp_port_stats`); [`COUNTER_UNKNOWN`] for unsupported counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Port number.
    pub port: PortNo,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received frames dropped.
    pub rx_dropped: u64,
    /// Frames dropped instead of being sent.
    pub tx_dropped: u64,
    /// Receive errors of all types.
    pub rx_errors: u64,
    /// Transmit errors of all types.
    pub tx_errors: u64,
    /// Frames with alignment errors.
    pub rx_frame_errors: u64,
    /// Frames lost to receive overruns.
    pub rx_overruns: u64,
    /// Frames with a wrong frame check sequence.
    pub rx_crc_errors: u64,
    /// Collisions.
    pub collisions: u64,
    /// Time since the port was configured (from 1.3 on).
    pub age: Option<Nanos>,
    /// Properties (from 1.4 on).
    pub properties: Vec<PortStatsProperty>,
}

/// A counter as text; "?" if unknown.
pub(crate) struct Counter(pub u64);

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == COUNTER_UNKNOWN { f.write_str("?") } else { write!(f, "{}", self.0) }
    }
}

impl fmt::Display for PortStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={}", ShowPort(self.port))?;
        for (name, value) in [
            ("rx_packets", self.rx_packets),
            ("tx_packets", self.tx_packets),
            ("rx_bytes", self.rx_bytes),
            ("tx_bytes", self.tx_bytes),
            ("rx_dropped", self.rx_dropped),
            ("tx_dropped", self.tx_dropped),
            ("rx_errors", self.rx_errors),
            ("tx_errors", self.tx_errors),
            ("rx_frame_errors", self.rx_frame_errors),
            ("rx_overruns", self.rx_overruns),
            ("rx_crc_errors", self.rx_crc_errors),
            ("collisions", self.collisions),
        ] {
            write!(f, " {name}={}", Counter(value))?;
        }
        if let Some(age) = self.age {
            write!(f, " age={}ns", age.0)?;
        }
        self.properties.iter().try_for_each(|property| write!(f, " {property}"))
    }
}
