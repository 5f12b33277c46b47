//! Flow entries that differ in the destination address, and probes that visit them in turn.
//!
//! Source: the OFLOPS-SUME paper, section III-C (probes at a constant rate to the inserted flows, round robin). The
//! lowest entry sends frames that no other entry forwards to port 2 back to their port. The port at which a probe
//! arrives thus shows which entry applied. A lost probe shows nothing.

use std::net::Ipv4Addr;
use std::ops::Range;

use netio::port::PortCounters;
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match, reserved};
use openflow::version::Version;
use tester::account::DropLocation;
use tester::rig::engine::name_of;
use tester::stream::{Field as Varying, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};

use crate::Context;
use targets::flow_setup::{PORT_IN, PORT_OUT, exact};
use workload::Technology;
use workload::mixed;

/// Tester port that sends probes, and receives those that no entry forwards.
pub const NEAR: usize = 0;

/// Tester port to which entries forward probes.
pub const FAR: usize = 1;

/// Maximum number of entries: the number of addresses below the first.
pub const RULES_MAX: u64 = 1 << 16;

/// Address of the first entry; the others follow.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);

/// First position of flows that match no entry.
const STRANGE: u32 = 2 << 20;

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

/// Lowest priority of an entry.
pub const PRIORITY_LEAST: u16 = 1;

/// Flow entries and their frames.
#[derive(Debug, Clone)]
pub struct Rules {
    count: u32,
    headers: Headers,
}

/// Order of the priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priorities {
    /// All equal.
    Same,
    /// Each entry above those before it, as published.
    Ascending,
    /// Each entry below those before it.
    Descending,
    /// Shuffled; the seed determines the order.
    Random(u64),
}

impl Rules {
    /// Creates this number of entries for frames with this run's addresses.
    pub fn new(context: &Context, count: u32) -> Rules {
        let rate = Rate::FramesPerSecond(1.0);
        let stream = context.setup().stream(Technology::OpenFlow, &context.addresses, 64, rate);
        Rules { count, headers: Headers { ip_destination: FIRST, ..stream.headers } }
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Creates a stream that visits every entry in turn.
    pub fn probes(&self, id: u16, frame_bytes: usize, rate_pps: f64) -> Stream {
        self.visits(id, 0..self.count, frame_bytes, rate_pps)
    }

    /// Creates a stream with the same number of flows, which match no entry.
    pub fn strangers(&self, id: u16, frame_bytes: usize, rate_pps: f64) -> Stream {
        self.visits(id, STRANGE..STRANGE + self.count, frame_bytes, rate_pps)
    }

    /// Creates a stream that visits these entries in turn.
    pub fn visits(&self, id: u16, places: Range<u32>, frame_bytes: usize, pps: f64) -> Stream {
        let rate = Rate::FramesPerSecond(pps);
        let first = u32::from(FIRST) + places.start;
        let headers = Headers { ip_destination: first.into(), ..self.headers.clone() };
        let mut stream = Stream::plain(id, frame_bytes, headers, rate);
        (stream.from, stream.to) = (NEAR, FAR);
        let values = Values::Range { first: first.into(), step: 1 };
        let fields = vec![(Varying::IpDestination, values)];
        let count = places.len() as u64;
        stream.vary = vec![FieldVariation { count, order: IndexOrder::Sequential, fields }];
        stream
    }

    /// Returns the match of the frames of all entries, which excludes [`Rules::strangers`].
    pub fn all() -> Match {
        let first = u32::from(FIRST);
        Match::ANY.with(Field::EthType, IPV4).with_masked(Field::Ipv4Dst, first, 0xffff_0000u32)
    }

    /// Returns the match of an entry.
    pub fn matching(&self, place: u32) -> Match {
        let address = u32::from(FIRST) + place;
        Match::ANY.with(Field::EthType, IPV4).with(Field::Ipv4Dst, address)
    }

    /// Returns the match of an entry on every field of its frames, as for hash tables.
    pub fn exact(&self, place: u32) -> Match {
        let ip_destination = Ipv4Addr::from(u32::from(FIRST) + place);
        exact(&Headers { ip_destination, ..self.headers.clone() }, PORT_IN)
    }

    /// Adds an entry that forwards frames.
    pub fn add(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod::add(self.matching(place), priority, vec![Action::output(PORT_OUT.into())])
    }

    /// Adds an entry that sends frames back.
    pub fn add_back(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod::add(self.matching(place), priority, vec![Action::output(reserved::IN_PORT)])
    }

    /// Modifies an entry to forward frames.
    pub fn modify(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod { command: FlowModCommand::ModifyStrict, ..self.add(place, priority) }
    }

    /// Modifies an entry to send frames back.
    pub fn modify_back(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod { command: FlowModCommand::ModifyStrict, ..self.add_back(place, priority) }
    }

    /// Deletes an entry.
    pub fn delete(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod {
            command: FlowModCommand::DeleteStrict,
            instructions: Vec::new(),
            ..self.add(place, priority)
        }
    }

    /// Deletes all entries of all tables; OpenFlow 1.0 has one table.
    pub fn cleared(version: Option<Version>) -> FlowMod {
        FlowMod::delete_all(version.unwrap_or(Version::V1_3), Match::ANY)
    }

    /// Deletes all entries of the table except the lowest, which sends frames back.
    ///
    /// In OpenFlow 1.0, table 0 stands for all tables; it has no other form.
    pub fn emptied() -> Vec<Message> {
        let back = FlowMod::add(Match::ANY, 0, vec![Action::output(reserved::IN_PORT)]);
        let empty = FlowMod::delete(0, Match::ANY);
        [empty, back].map(Message::FlowMod).into()
    }
}

impl Priorities {
    /// Names of the orders.
    pub const WORDS: &'static [&'static str] = &["same", "ascending", "descending", "random"];

    /// Parses a name of [`Priorities::WORDS`].
    pub fn of(word: &str, seed: u64) -> Priorities {
        match word {
            "ascending" => Priorities::Ascending,
            "descending" => Priorities::Descending,
            "random" => Priorities::Random(seed),
            _ => Priorities::Same,
        }
    }

    /// Returns the priority of each of `count` entries, in the order of sending.
    pub fn all(self, count: u32) -> Vec<u16> {
        let clipped = |place: u32| place.min(u32::from(u16::MAX - 1 - PRIORITY_LEAST)) as u16;
        let ascending = (0..count).map(|place| PRIORITY_LEAST + clipped(place));
        match self {
            Priorities::Same => vec![openflow::model::PRIORITY_DEFAULT; count as usize],
            Priorities::Ascending => ascending.collect(),
            Priorities::Descending => ascending.rev().collect(),
            Priorities::Random(seed) => shuffled(ascending.collect(), seed),
        }
    }
}

/// Returns the frames that a port sent, including those that did not fit on its link.
pub fn sent(counters: &PortCounters) -> u64 {
    let is_link = |reason| name_of(reason).0 == DropLocation::Link;
    let lost = counters.drops.iter().filter(|(reason, _)| is_link(*reason));
    counters.tx_frames + lost.map(|(_, frames)| frames).sum::<u64>()
}

/// Shuffles the values; the seed determines the order (Fisher and Yates).
fn shuffled(mut values: Vec<u16>, seed: u64) -> Vec<u16> {
    for last in (1..values.len()).rev() {
        let drawn = mixed(seed ^ ((last as u64) << 32)) >> 32;
        values.swap(last, drawn as usize % (last + 1));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_a_permutation_in_the_requested_order() {
        let ascending = Priorities::Ascending.all(5);
        assert_eq!(ascending, [1, 2, 3, 4, 5]);
        assert_eq!(Priorities::Descending.all(5), [5, 4, 3, 2, 1]);
        let mut random = Priorities::Random(7).all(500);
        assert_ne!(random, Priorities::Ascending.all(500));
        assert_eq!(random, Priorities::Random(7).all(500));
        random.sort_unstable();
        assert_eq!(random, Priorities::Ascending.all(500));
        assert!(Priorities::Same.all(3).windows(2).all(|pair| pair[0] == pair[1]));
    }
}
