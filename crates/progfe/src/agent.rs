//! Service agents: state machines that diverted frames are told to, and that have frames put in.
//!
//! An agent is told frames ([`Agent::frame_came`]), time ([`Agent::time_came`]) and commands
//! ([`Agent::asked`]), and says in [`Around`] what is to be done: frames through its Inject, events, entries
//! of tables. It opens nothing, waits for nothing and reads no clock. The [`dispatcher`] brings frames to
//! it by name; whoever runs the element drives that.

use core::net::IpAddr;

use packet::frame::{Frame, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::lfb::told::ToldFrame;
use crate::problem::Problems;
use crate::program::{self, Program};

/// Frames and commands brought to agents by name.
pub mod dispatcher;
/// What an agent says of itself.
pub mod fact;
/// What a program sets an agent to.
pub mod setup;
/// Streams to programs outside.
pub mod wire;
/// A program of the user's own.
pub mod process;
/// Interfaces of a router.
pub mod interface;
/// ARP and neighbour discovery.
pub mod neighbours;
/// What a router says of packets, and for itself.
pub mod icmp;
/// Ethernet OAM (IEEE 802.1Q clauses 18 to 22, ITU-T Y.1731).
pub mod oam;

pub use fact::Fact;
pub use setup::Setup;

/// A service agent.
pub trait Agent: Send {
    /// A frame was diverted to it.
    fn frame_came(&mut self, told: ToldFrame, around: &mut Around<'_>);

    /// Time went on; called at least when it is [`Agent::due`].
    fn time_came(&mut self, _around: &mut Around<'_>) {}

    /// When it has something to do although no frame comes.
    fn due(&self) -> Option<Nanos> {
        None
    }

    /// What a command does, or why it cannot be done.
    fn asked(&mut self, ask: &Ask, _around: &mut Around<'_>) -> Result<Fact, String> {
        ask.unknown(&[])
    }

    /// What it knows and counts.
    fn facts(&self, now: Nanos) -> Fact;

    /// The stream that it has to a program outside, if it is to have one.
    fn wire(&mut self) -> Option<&mut dyn wire::Wire> {
        None
    }
}

/// A command: what is to be done, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// What is to be done.
    pub what: String,
    /// Names and values.
    pub with: Vec<(String, String)>,
}

impl Ask {
    /// A value by its name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.with.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number by its name, or what holds without it; it has to be in a range.
    pub fn number(
        &self,
        name: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let Some(text) = self.value(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (low, high) = (range.start(), range.end());
        number.ok_or_else(|| format!("{name} is a number from {low} to {high}, not {text:?}"))
    }

    /// Refuses names that mean nothing.
    pub fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.with.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("{} takes no {name:?}; it takes {}", self.what, known.join(", ")))
            }
        }
    }

    /// Says that it is no command of an agent's.
    pub fn unknown<T>(&self, known: &[&str]) -> Result<T, String> {
        Err(match known {
            [] => "this agent takes no commands".to_owned(),
            known => format!("there is no {:?}; this agent knows {}", self.what, known.join(", ")),
        })
    }
}

/// What agents read and write of the element's blocks, by their names in the program.
pub trait Tables {
    /// The value that a LearnSearch holds for an address, and a VLAN where its key has one: the port,
    /// if it is a bridge's table.
    fn station(&self, table: &str, mac: Mac, vid: u16, now: Nanos) -> Option<u32>;

    /// Tells an EtherEncap a neighbour's header: destination, source, VLAN; or that he has none any more.
    fn set_neighbour(&mut self, encap: &str, at: (PortNo, IpAddr), header: Option<(Mac, Mac, u16)>);

    /// Has an EtherEncap forget all neighbours.
    fn clear_neighbours(&mut self, encap: &str);

    /// A number that stands at a path of a block.
    fn number(&self, instance: &str, path: &str, now: Nanos) -> Option<u64>;
}

/// A port of the element as agents see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSeen {
    /// Its number.
    pub number: PortNo,
    /// Its hardware address.
    pub mac: Mac,
}

/// A frame that an agent has put in.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Which output of Inject it takes.
    pub output: u32,
    /// Metadata beside that.
    pub meta: Vec<(u32, u128)>,
    /// The frame.
    pub frame: Frame,
}

/// Something that an agent says has happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurred {
    /// The event's name.
    pub event: &'static str,
    /// When.
    pub at: Nanos,
    /// Particulars.
    pub facts: Fact,
}

/// What an agent has at hand, and what it wants done.
pub struct Around<'a> {
    /// The time.
    pub now: Nanos,
    /// Nanoseconds since 1970 at the time zero.
    pub epoch: u64,
    /// The ports, in the order in which the program declares them.
    pub ports: &'a [PortSeen],
    /// The element's tables.
    pub tables: &'a mut dyn Tables,
    /// Frames to be put in, in this order.
    pub sent: &'a mut Vec<Sent>,
    /// Events, in this order.
    pub occurred: &'a mut Vec<Occurred>,
    /// The state of a generator of numbers that nobody outside foresees.
    pub chance: &'a mut u64,
}

impl Around<'_> {
    /// Has a frame put in for a port: by the output of Inject that has the place of the port among those
    /// of the program. False if there is no such port.
    pub fn send(&mut self, port: PortNo, bytes: &[u8]) -> bool {
        let place = self.ports.iter().position(|seen| seen.number == port);
        if let Some(place) = place {
            let frame = Frame::from_bytes(bytes);
            self.sent.push(Sent { output: place as u32, meta: Vec::new(), frame });
        }
        place.is_some()
    }

    /// Says that something happened.
    pub fn event(&mut self, event: &'static str, facts: Fact) {
        self.occurred.push(Occurred { event, at: self.now, facts });
    }

    /// A port's hardware address.
    pub fn mac_of(&self, port: PortNo) -> Mac {
        let seen = self.ports.iter().find(|seen| seen.number == port);
        seen.map_or_else(|| made_mac(port), |seen| seen.mac)
    }

    /// Seconds and nanoseconds since 1970 of a moment.
    pub fn date(&self, at: Nanos) -> (u32, u32) {
        let since = self.epoch.wrapping_add(at.0);
        ((since / 1_000_000_000) as u32, (since % 1_000_000_000) as u32)
    }

    /// A number below a bound (SplitMix64; Steele, Lea, Flood 2014).
    pub fn below(&mut self, bound: u64) -> u64 {
        *self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *self.chance;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound.max(1)
    }
}

/// A local address made from a port's number, for ports that have none of their own.
pub fn made_mac(port: PortNo) -> Mac {
    let [.., high, low] = port.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

/// Types of agents, and the events that they have.
pub const KINDS: &[(&str, &[&str])] = &[
    (oam::KIND, oam::EVENTS),
    ("arp", neighbours::EVENTS),
    ("icmp", &[]),
    ("process", process::EVENTS),
];

/// The agent that a program declares; every problem is told, and then there is none.
pub fn made(
    program: &Program,
    agent: &program::Agent,
    problems: &mut Problems,
) -> Option<Box<dyn Agent>> {
    let mut setup = Setup::new(program, agent, problems);
    let made: Option<Box<dyn Agent>> = match agent.kind.as_str() {
        oam::KIND => oam::Oam::new(&mut setup).map(|made| Box::new(made) as Box<dyn Agent>),
        "arp" => neighbours::Neighbours::new(&mut setup).map(|made| Box::new(made) as _),
        "process" => process::Process::new(&mut setup).map(|made| Box::new(made) as _),
        "icmp" => icmp::Icmp::new(&mut setup).map(|made| Box::new(made) as _),
        _ => {
            setup.wrong_type(KINDS.iter().map(|(name, _)| *name));
            None
        }
    };
    made.filter(|_| !setup.is_wrong())
}

#[cfg(test)]
pub(crate) mod bench;
