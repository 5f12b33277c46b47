//! Capture filter: a list of entries that match addresses, protocol and ports under masks.
//!
//! - The first matching entry decides about a frame and counts it. A frame without a matching entry
//!   is dropped.
//! - Until entries are loaded, the filter drops all frames. A capture file therefore never starts
//!   with unwanted frames.
//! - An entry may match IPv4 or IPv6 addresses, the protocol of the IP payload, and the ports of
//!   TCP, UDP and SCTP. In IPv6 the payload starts after the extension headers. An empty entry
//!   matches every frame.
//! - Fragments other than the first have no ports. The payload of MPLS is not parsed.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::parse::Packet;

pub mod overlap;
pub mod text;

/// Maximum number of entries in a filter.
pub const ENTRIES_MAX: usize = 1024;

/// Action for a matching frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Capture the frame.
    Capture,
    /// Drop the frame.
    Drop,
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Addresses that equal a value under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub(crate) version: Version,
    pub(crate) value: u128,
    pub(crate) mask: u128,
}

/// Ports that equal a value under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub(crate) value: u16,
    pub(crate) mask: u16,
}

/// A filter entry: match and action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Action.
    pub verdict: Verdict,
    /// Source address.
    pub source: Option<Network>,
    /// Destination address.
    pub destination: Option<Network>,
    /// Protocol of the IP payload.
    pub protocol: Option<u8>,
    /// Source port.
    pub source_port: Option<PortRange>,
    /// Destination port.
    pub destination_port: Option<PortRange>,
}

/// Fields of a frame that entries match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    version: Option<Version>,
    source: u128,
    destination: u128,
    protocol: u8,
    ports: Option<(u16, u16)>,
}

/// A capture filter with its counters.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    entries: Vec<Entry>,
    is_loaded: bool,
    /// Whether the first entry matches every frame, so that frames need not be parsed.
    is_decided: bool,
    counts: Counts,
}

/// Counters of a filter, in frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Matches by entry, in order.
    pub hits: Vec<u64>,
    /// Captured frames.
    pub captured: u64,
    /// Frames that an entry dropped.
    pub dropped: u64,
    /// Frames dropped because no entry matched.
    pub unmatched: u64,
    /// Frames dropped because no entries were loaded.
    pub unloaded: u64,
}

/// Error: more entries than [`ENTRIES_MAX`]. Contains their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany(pub usize);

impl Network {
    /// Creates the set of IPv4 addresses that equal `value` under `mask`.
    pub fn v4(value: Ipv4Addr, mask: Ipv4Addr) -> Self {
        let (value, mask) = (u128::from(value.to_bits()), u128::from(mask.to_bits()));
        Network { version: Version::V4, value: value & mask, mask }
    }

    /// Creates the set of IPv6 addresses that equal `value` under `mask`.
    pub fn v6(value: Ipv6Addr, mask: Ipv6Addr) -> Self {
        let (value, mask) = (value.to_bits(), mask.to_bits());
        Network { version: Version::V6, value: value & mask, mask }
    }

    /// Returns the IP version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the value; an IPv4 value is in the lowest 32 bits.
    pub fn value(&self) -> u128 {
        self.value
    }

    /// Returns the mask.
    pub fn mask(&self) -> u128 {
        self.mask
    }

    #[inline]
    fn has(&self, version: Option<Version>, address: u128) -> bool {
        version == Some(self.version) && address & self.mask == self.value
    }
}

impl PortRange {
    /// Creates the set of ports that equal `value` under `mask`.
    pub fn new(value: u16, mask: u16) -> Self {
        PortRange { value: value & mask, mask }
    }

    /// Returns the value.
    pub fn value(&self) -> u16 {
        self.value
    }

    /// Returns the mask.
    pub fn mask(&self) -> u16 {
        self.mask
    }

    #[inline]
    fn has(&self, port: u16) -> bool {
        port & self.mask == self.value
    }
}

impl Entry {
    /// Creates an entry that matches every frame.
    pub fn any(verdict: Verdict) -> Self {
        Entry {
            verdict,
            source: None,
            destination: None,
            protocol: None,
            source_port: None,
            destination_port: None,
        }
    }

    /// Returns true if the entry matches this key.
    #[inline]
    pub fn matches(&self, key: &Key) -> bool {
        let port = |wanted: Option<PortRange>, port: fn((u16, u16)) -> u16| {
            wanted.is_none_or(|wanted| key.ports.is_some_and(|both| wanted.has(port(both))))
        };
        self.source.is_none_or(|it| it.has(key.version, key.source))
            && self.destination.is_none_or(|it| it.has(key.version, key.destination))
            && self.protocol.is_none_or(|it| key.version.is_some() && it == key.protocol)
            && port(self.source_port, |(source, _)| source)
            && port(self.destination_port, |(_, destination)| destination)
    }
}

impl Key {
    /// Reads the key of a frame, which may have any contents.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        let packet = Packet::of(bytes);
        let (version, source, destination) = if let Some(view) = packet.ipv4() {
            let bits = |address: Ipv4Addr| u128::from(address.to_bits());
            (Some(Version::V4), bits(view.source()), bits(view.destination()))
        } else if let Some(view) = packet.ipv6() {
            (Some(Version::V6), view.source().to_bits(), view.destination().to_bits())
        } else {
            (None, 0, 0)
        };
        let (protocol, ports) = (packet.layers.protocol, packet.ports());
        Key { version, source, destination, protocol, ports }
    }
}

impl Filter {
    /// Creates a filter that drops everything until entries are loaded.
    pub fn closed() -> Self {
        Filter::default()
    }

    /// Replaces the entries and resets the match counters.
    pub fn load(&mut self, entries: Vec<Entry>) -> Result<(), TooMany> {
        if entries.len() > ENTRIES_MAX {
            return Err(TooMany(entries.len()));
        }
        self.counts.hits = vec![0; entries.len()];
        self.is_decided = entries.first().is_some_and(|first| *first == Entry::any(first.verdict));
        (self.entries, self.is_loaded) = (entries, true);
        Ok(())
    }

    /// Returns the loaded entries in matching order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Decides about a frame. Returns true to capture it.
    #[inline]
    pub fn keeps(&mut self, bytes: &[u8]) -> bool {
        if !self.is_loaded {
            self.counts.unloaded += 1;
            return false;
        }
        let place = if self.is_decided {
            Some(0)
        } else {
            let key = Key::of(bytes);
            self.entries.iter().position(|entry| entry.matches(&key))
        };
        let Some(place) = place else {
            self.counts.unmatched += 1;
            return false;
        };
        self.counts.hits[place] += 1;
        let is_kept = self.entries[place].verdict == Verdict::Capture;
        *(if is_kept { &mut self.counts.captured } else { &mut self.counts.dropped }) += 1;
        is_kept
    }

    /// Returns the counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries, at most {ENTRIES_MAX} are allowed", self.0)
    }
}

impl std::error::Error for TooMany {}

#[cfg(test)]
mod tests;
