//! Overlaps of filter entries: entries that never decide because an earlier entry matches all their
//! frames, and pairs with different actions whose order matters.
//!
//! Entries are compared in pairs. An entry hidden only by several others together is not found. An
//! exception before a more general entry is usual and not reported.

use super::{Entry, Network, PortRange, Version};

/// Two overlapping entries, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The entry that decides first.
    pub first: usize,
    /// The entry after it.
    pub second: usize,
    /// Kind of overlap.
    pub kind: Kind,
}

/// Kind of overlap between an entry and a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The second entry never decides.
    Hides,
    /// Both entries match some frames and have different actions.
    Crosses,
}

/// Finds for each entry the first entry that hides it, or else the first that crosses it.
pub fn find(entries: &[Entry]) -> Vec<Overlap> {
    let overlap = |second: usize| {
        let before = &entries[..second];
        let entry = &entries[second];
        let hides = before.iter().position(|first| first.covers(entry));
        let crosses = || {
            before.iter().position(|first| {
                first.verdict != entry.verdict && first.meets(entry) && !entry.covers(first)
            })
        };
        let kind = if hides.is_some() { Kind::Hides } else { Kind::Crosses };
        hides.or_else(crosses).map(|first| Overlap { first, second, kind })
    };
    (0..entries.len()).filter_map(overlap).collect()
}

impl Overlap {
    /// Describes the overlap and a fix. `entries` is the list that contains it.
    pub fn describe(&self, entries: &[Entry]) -> String {
        let (first, second) = (&entries[self.first], &entries[self.second]);
        let (before, behind) = (self.first + 1, self.second + 1);
        match self.kind {
            Kind::Hides => format!(
                "filter entry {behind} ({second}) has no effect: entry {before} ({first}) matches \
                 all its frames (hint: remove it or move it to the front)"
            ),
            Kind::Crosses => format!(
                "filter entries {before} ({first}) and {behind} ({second}) overlap with different \
                 results: entry {before} applies to the common frames"
            ),
        }
    }
}

impl Entry {
    /// Returns true if the entry matches all frames that `other` matches.
    pub fn covers(&self, other: &Entry) -> bool {
        network_covers(self.source, other.source, other.version())
            && network_covers(self.destination, other.destination, other.version())
            && self.protocol.is_none_or(|protocol| other.protocol == Some(protocol))
            && port_covers(self.source_port, other.source_port)
            && port_covers(self.destination_port, other.destination_port)
    }

    /// Returns true if a frame can match both entries.
    pub fn meets(&self, other: &Entry) -> bool {
        let same = |one: Option<u8>, two: Option<u8>| one.zip(two).is_none_or(|(a, b)| a == b);
        let networks = |one: Option<Network>, two: Option<Network>| {
            one.zip(two).is_none_or(|(a, b)| (a.value ^ b.value) & a.mask & b.mask == 0)
        };
        let ports = |one: Option<PortRange>, two: Option<PortRange>| {
            one.zip(two).is_none_or(|(a, b)| (a.value ^ b.value) & a.mask & b.mask == 0)
        };
        self.version().zip(other.version()).is_none_or(|(a, b)| a == b)
            && networks(self.source, other.source)
            && networks(self.destination, other.destination)
            && same(self.protocol, other.protocol)
            && ports(self.source_port, other.source_port)
            && ports(self.destination_port, other.destination_port)
    }

    /// Returns the IP version of its addresses.
    pub fn version(&self) -> Option<Version> {
        self.source.or(self.destination).map(|network| network.version)
    }
}

fn network_covers(wide: Option<Network>, narrow: Option<Network>, of: Option<Version>) -> bool {
    let Some(wide) = wide else { return true };
    let (value, mask) = narrow.map_or((0, 0), |narrow| (narrow.value, narrow.mask));
    of == Some(wide.version) && wide.mask & !mask == 0 && value & wide.mask == wide.value
}

fn port_covers(wide: Option<PortRange>, narrow: Option<PortRange>) -> bool {
    let Some(wide) = wide else { return true };
    narrow.is_some_and(|narrow| {
        wide.mask & !narrow.mask == 0 && narrow.value & wide.mask == wide.value
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::entry;
    use super::*;

    fn found(texts: &[&str]) -> Vec<(usize, usize, Kind)> {
        let entries: Vec<Entry> = texts.iter().map(|text| entry(text).unwrap()).collect();
        find(&entries).iter().map(|it| (it.first, it.second, it.kind)).collect()
    }

    #[test]
    fn hidden_entries_are_detected() {
        for (wide, narrow) in [
            ("any", "any"),
            ("any", "drop,src=10.0.0.1"),
            ("src=10.0.0.0/8", "src=10.1.0.0/16,dport=5"),
            ("src=0.0.0.0/0", "dst=10.0.0.1"),
            ("proto=udp", "drop,src=::1,proto=17"),
            ("dport=0x10/0xf0", "dport=0x1f,sport=3"),
            ("src=10.0.0.2/255.0.0.255", "src=10.7.9.2"),
        ] {
            assert_eq!(found(&[wide, narrow]), [(0, 1, Kind::Hides)], "{wide} then {narrow}");
            if wide != narrow {
                assert_eq!(found(&[narrow, wide]), [], "{narrow} then {wide}");
            }
        }
        assert_eq!(found(&["proto=6", "dst=::1", "proto=6,dport=80"]), [(0, 2, Kind::Hides)]);
    }

    #[test]
    fn entries_that_depend_on_order_are_detected() {
        let two = ["src=10.0.0.0/8", "drop,dport=53"];
        assert_eq!(found(&two), [(0, 1, Kind::Crosses)]);
        for apart in [
            ["src=10.0.0.0/8", "dport=53"],
            ["src=10.0.0.0/8", "drop,dst=::1"],
            ["src=10.0.0.0/8", "drop,src=11.0.0.0/8"],
            ["proto=tcp,sport=1", "drop,proto=udp"],
            ["sport=1,proto=6", "drop,sport=2"],
        ] {
            assert_eq!(found(&apart), [], "{apart:?}");
        }
        let entries = two.map(|text| entry(text).unwrap());
        let message = find(&entries)[0].describe(&entries);
        assert!(message.contains("1 (capture,src=10.0.0.0/8) and 2 (drop,dport=53)"), "{message}");
    }
}
