//! Which frames a capture is to keep: entries of addresses, protocol and ports, each under a mask.
//!
//! The first entry that a frame matches decides about it, and counts it; a frame that matches none is
//! not kept. Until entries are loaded nothing is kept at all, so that a file never begins with frames
//! that nobody asked for. An entry may ask for
//! IPv4 or IPv6 addresses, for the protocol behind IP (behind the extension headers of IPv6) and for
//! the ports of TCP, UDP and SCTP; a later fragment has no ports, and what is behind MPLS is not looked
//! at. An entry that asks for nothing matches every frame.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::parse::Packet;

/// Entries that can never decide, and those whose order decides.
pub mod overlap;
/// Entries as people write them.
pub mod text;

/// Entries of one filter.
pub const ENTRIES_MAX: usize = 1024;

/// What becomes of a frame that an entry matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept.
    Capture,
    /// It is not.
    Drop,
}

/// Which Internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Addresses that agree with a value in the bits of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub(crate) version: Version,
    pub(crate) value: u128,
    pub(crate) mask: u128,
}

/// Ports that agree with a value in the bits of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub(crate) value: u16,
    pub(crate) mask: u16,
}

/// What frames have to have to be decided about, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What becomes of them.
    pub verdict: Verdict,
    /// Their source address.
    pub source: Option<Network>,
    /// Their destination address.
    pub destination: Option<Network>,
    /// The protocol behind IP.
    pub protocol: Option<u8>,
    /// The source port.
    pub source_port: Option<PortRange>,
    /// The destination port.
    pub destination_port: Option<PortRange>,
}

/// What entries look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    version: Option<Version>,
    source: u128,
    destination: u128,
    protocol: u8,
    ports: Option<(u16, u16)>,
}

/// A capture's filter, and what it decided.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    entries: Vec<Entry>,
    is_loaded: bool,
    /// Whether the first entry matches every frame, which then need not be looked at.
    is_decided: bool,
    counts: Counts,
}

/// What a filter decided, in frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By entry, in their order.
    pub hits: Vec<u64>,
    /// Kept.
    pub captured: u64,
    /// Dropped by an entry.
    pub dropped: u64,
    /// Dropped because no entry matched.
    pub unmatched: u64,
    /// Dropped because no entries were loaded yet.
    pub unloaded: u64,
}

/// More entries than [`ENTRIES_MAX`]: how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany(pub usize);

impl Network {
    /// The addresses of IPv4 that agree with `value` in the bits of `mask`.
    pub fn v4(value: Ipv4Addr, mask: Ipv4Addr) -> Self {
        let (value, mask) = (u128::from(value.to_bits()), u128::from(mask.to_bits()));
        Network { version: Version::V4, value: value & mask, mask }
    }

    /// The addresses of IPv6 that agree with `value` in the bits of `mask`.
    pub fn v6(value: Ipv6Addr, mask: Ipv6Addr) -> Self {
        let (value, mask) = (value.to_bits(), mask.to_bits());
        Network { version: Version::V6, value: value & mask, mask }
    }

    /// Of which Internet protocol they are.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The bits that they agree in; those of IPv4 are the lowest 32.
    pub fn value(&self) -> u128 {
        self.value
    }

    /// Which bits those are.
    pub fn mask(&self) -> u128 {
        self.mask
    }

    #[inline]
    fn has(&self, version: Option<Version>, address: u128) -> bool {
        version == Some(self.version) && address & self.mask == self.value
    }
}

impl PortRange {
    /// The ports that agree with `value` in the bits of `mask`.
    pub fn new(value: u16, mask: u16) -> Self {
        PortRange { value: value & mask, mask }
    }

    /// The bits that they agree in.
    pub fn value(&self) -> u16 {
        self.value
    }

    /// Which bits those are.
    pub fn mask(&self) -> u16 {
        self.mask
    }

    #[inline]
    fn has(&self, port: u16) -> bool {
        port & self.mask == self.value
    }
}

impl Entry {
    /// An entry that matches every frame.
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

    /// Whether it decides about frames with this key.
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
    /// What entries look at in a frame of any bytes.
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
    /// A filter that drops everything, until entries are loaded.
    pub fn closed() -> Self {
        Filter::default()
    }

    /// Puts these entries in the place of what was loaded before; hits are counted from 0.
    pub fn load(&mut self, entries: Vec<Entry>) -> Result<(), TooMany> {
        if entries.len() > ENTRIES_MAX {
            return Err(TooMany(entries.len()));
        }
        self.counts.hits = vec![0; entries.len()];
        self.is_decided = entries.first().is_some_and(|first| *first == Entry::any(first.verdict));
        (self.entries, self.is_loaded) = (entries, true);
        Ok(())
    }

    /// What is loaded, the first to decide first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Decides about a frame: whether it is kept.
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

    /// What it decided so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl std::fmt::Display for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} entries are more than a filter takes ({ENTRIES_MAX})", self.0)
    }
}

impl std::error::Error for TooMany {}

#[cfg(test)]
mod tests;
