//! Rules that differ by the destination address, and probes that visit them in turn.
//!
//! Source: the OFLOPS-SUME paper, section III-C (probes at a constant rate to the inserted flows, round
//! robin). What a rule does not send to port 2 a rule below all others sends back to where it came
//! from, so that a probe shows by the port at which it arrives how it was treated, and one that was lost
//! shows nothing.

use std::net::Ipv4Addr;
use std::ops::Range;

use instrument::account::Place;
use instrument::rig::engine::name_of;
use instrument::stream::{Field as Varying, Headers, Order, Rate, Stream, Values, Vary};
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match, reserved};
use openflow::version::Version;
use ports::port::PortCounters;

use crate::experiments::Context;
use crate::target::name::Technology;
use crate::target::program::{PORT_IN, PORT_OUT, exact};
use crate::workload::mixed;

/// The tester's port that probes leave by, and come back to where no rule sends them on.
pub const NEAR: usize = 0;

/// The tester's port that rules send probes to.
pub const FAR: usize = 1;

/// Most rules: as many as there are addresses below the first.
pub const RULES_MAX: u64 = 1 << 16;

/// The address of the first rule; the others follow it.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);

/// Flows from this place on are no rule's.
const STRANGE: u32 = 2 << 20;

/// Ethernet's number for IPv4.
const IPV4: u16 = 0x0800;

/// The lowest priority of a rule.
pub const PRIORITY_LEAST: u16 = 1;

/// Rules and the frames that belong to them.
#[derive(Debug, Clone)]
pub struct Rules {
    count: u32,
    headers: Headers,
}

/// In which order priorities come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priorities {
    /// All the same.
    Same,
    /// Each rule above those before it, as published.
    Ascending,
    /// Each below those before it.
    Descending,
    /// Scattered, the same for the same seed.
    Random(u64),
}

impl Rules {
    /// So many rules for frames of this run's addresses.
    pub fn new(context: &Context, count: u32) -> Rules {
        let rate = Rate::FramesPerSecond(1.0);
        let stream = context.setup().stream(Technology::OpenFlow, &context.addresses, 64, rate);
        Rules { count, headers: Headers { ip_destination: FIRST, ..stream.headers } }
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// A stream that visits every rule in turn.
    pub fn probes(&self, id: u16, frame_bytes: usize, rate_pps: f64) -> Stream {
        self.visits(id, 0..self.count, frame_bytes, rate_pps)
    }

    /// A stream of as many flows that are no rule's.
    pub fn strangers(&self, id: u16, frame_bytes: usize, rate_pps: f64) -> Stream {
        self.visits(id, STRANGE..STRANGE + self.count, frame_bytes, rate_pps)
    }

    /// A stream that visits these rules in turn.
    pub fn visits(&self, id: u16, places: Range<u32>, frame_bytes: usize, pps: f64) -> Stream {
        let rate = Rate::FramesPerSecond(pps);
        let first = u32::from(FIRST) + places.start;
        let headers = Headers { ip_destination: first.into(), ..self.headers.clone() };
        let mut stream = Stream::plain(id, frame_bytes, headers, rate);
        (stream.from, stream.to) = (NEAR, FAR);
        let values = Values::Range { first: first.into(), step: 1 };
        let fields = vec![(Varying::IpDestination, values)];
        let count = places.len() as u64;
        stream.vary = vec![Vary { count, order: Order::Sequential, fields }];
        stream
    }

    /// The match of all the rules' frames, and of no stranger's.
    pub fn all() -> Match {
        let first = u32::from(FIRST);
        Match::ANY.with(Field::EthType, IPV4).with_masked(Field::Ipv4Dst, first, 0xffff_0000u32)
    }

    /// The match of a rule.
    pub fn matching(&self, place: u32) -> Match {
        let address = u32::from(FIRST) + place;
        Match::ANY.with(Field::EthType, IPV4).with(Field::Ipv4Dst, address)
    }

    /// The match of a rule that names every field of its frames, which hash tables hold.
    pub fn exact(&self, place: u32) -> Match {
        let ip_destination = Ipv4Addr::from(u32::from(FIRST) + place);
        exact(&Headers { ip_destination, ..self.headers.clone() }, PORT_IN)
    }

    /// Adds a rule that sends on.
    pub fn add(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod::add(self.matching(place), priority, vec![Action::output(PORT_OUT.into())])
    }

    /// Adds a rule that sends back.
    pub fn add_back(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod::add(self.matching(place), priority, vec![Action::output(reserved::IN_PORT)])
    }

    /// Has a rule that is there send on.
    pub fn modify(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod { command: FlowModCommand::ModifyStrict, ..self.add(place, priority) }
    }

    /// Has a rule that is there send back.
    pub fn modify_back(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod { command: FlowModCommand::ModifyStrict, ..self.add_back(place, priority) }
    }

    /// Deletes a rule.
    pub fn delete(&self, place: u32, priority: u16) -> FlowMod {
        FlowMod {
            command: FlowModCommand::DeleteStrict,
            instructions: Vec::new(),
            ..self.add(place, priority)
        }
    }

    /// Empties the tables, of which 1.0 knows one.
    pub fn cleared(version: Option<Version>) -> FlowMod {
        FlowMod::delete_all(version.unwrap_or(Version::V1_3), Match::ANY)
    }

    /// Empties the table but for the rule below all others, which sends back. What 1.0 says with 0 is every
    /// table; it has no other word for that.
    pub fn emptied() -> Vec<Message> {
        let back = FlowMod::add(Match::ANY, 0, vec![Action::output(reserved::IN_PORT)]);
        let empty = FlowMod::delete(0, Match::ANY);
        [empty, back].map(Message::FlowMod).into()
    }
}

impl Priorities {
    /// The words for them.
    pub const WORDS: &'static [&'static str] = &["same", "ascending", "descending", "random"];

    /// Those of a word of [`Priorities::WORDS`].
    pub fn of(word: &str, seed: u64) -> Priorities {
        match word {
            "ascending" => Priorities::Ascending,
            "descending" => Priorities::Descending,
            "random" => Priorities::Random(seed),
            _ => Priorities::Same,
        }
    }

    /// The priority of each of so many rules, in the order in which they are sent.
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

/// Frames that a port has sent, those counted that its link had no room for.
pub fn sent(counters: &PortCounters) -> u64 {
    let is_link = |reason| name_of(reason).0 == Place::Link;
    let lost = counters.drops.iter().filter(|(reason, _)| is_link(*reason));
    counters.tx_frames + lost.map(|(_, frames)| frames).sum::<u64>()
}

/// The values in an order that is the same for the same seed (Fisher and Yates).
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
    fn priorities_are_a_permutation_in_the_order_that_was_asked_for() {
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
