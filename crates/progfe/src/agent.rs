//! Service agents: state machines that process diverted frames and inject frames.
//!
//! An agent receives frames ([`Agent::frame_came`]), time ([`Agent::time_came`]) and commands
//! ([`Agent::asked`]). Through [`Around`] it injects frames, reports events and changes table
//! entries. It opens no files or sockets, never blocks and reads no clock. The [dispatcher](crate::dispatcher)
//! delivers frames by agent name; the caller that runs the element drives the dispatcher.

use core::net::IpAddr;

use packet::frame::{Frame, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::diagnostic::Problems;
use crate::lfb::exceptions::DivertedFrame;
use crate::program::{self, Program};

pub mod status;
pub mod setup;
pub mod wire;
pub mod process;
pub mod interface;
pub mod neighbours;
pub mod icmp;
pub mod oam;

pub use setup::Setup;
pub use status::StatusValue;

/// A service agent.
pub trait Agent: Send {
    /// Processes a diverted frame.
    fn frame_came(&mut self, told: DivertedFrame, around: &mut Around<'_>);

    /// Processes the passing of time. The dispatcher calls it at [`Agent::due`] at the latest.
    fn time_came(&mut self, _around: &mut Around<'_>) {}

    /// Returns the time of the next work that does not depend on a frame.
    fn due(&self) -> Option<Nanos> {
        None
    }

    /// Executes a command. Returns its result or the reason for a failure.
    fn asked(
        &mut self,
        ask: &AgentRequest,
        _around: &mut Around<'_>,
    ) -> Result<StatusValue, String> {
        ask.unknown(&[])
    }

    /// Returns the state and the counters.
    fn facts(&self, now: Nanos) -> StatusValue;

    /// Returns the agent's stream to an external program, if it has one.
    fn wire(&mut self) -> Option<&mut dyn wire::Wire> {
        None
    }
}

/// A command with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRequest {
    /// Name of the command.
    pub what: String,
    /// Names and values of the arguments.
    pub with: Vec<(String, String)>,
}

impl AgentRequest {
    /// Returns an argument by name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.with.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a number by name, or the default. The number must be in a range.
    pub fn number(
        &self,
        name: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let Some(text) = self.value(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (low, high) = (range.start(), range.end());
        number.ok_or_else(|| {
            format!("invalid {name} {text:?} (hint: use a number from {low} to {high})")
        })
    }

    /// Rejects unknown arguments.
    pub fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.with.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => Err(format!(
                "{} has no argument {name:?} (hint: use {})",
                self.what,
                known.join(", ")
            )),
        }
    }

    /// Returns the error for an unknown command.
    pub fn unknown<T>(&self, known: &[&str]) -> Result<T, String> {
        Err(match known {
            [] => "this agent has no commands".to_owned(),
            known => format!("unknown command {:?} (hint: use {})", self.what, known.join(", ")),
        })
    }
}

/// Access of agents to blocks of the element, by instance name.
pub trait Tables {
    /// Returns the value in a LearnSearch for an address, and a VLAN if its key has one. In a
    /// bridge table the value is the port.
    fn station(&self, table: &str, mac: Mac, vid: u16, now: Nanos) -> Option<u32>;

    /// Sets the header of a neighbour in an EtherEncap (destination, source, VLAN), or removes it.
    fn set_neighbour(&mut self, encap: &str, at: (PortNo, IpAddr), header: Option<(Mac, Mac, u16)>);

    /// Removes all neighbours from an EtherEncap.
    fn clear_neighbours(&mut self, encap: &str);

    /// Returns a number at a path of a block.
    fn number(&self, instance: &str, path: &str, now: Nanos) -> Option<u64>;
}

/// A port of the element as agents see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortSeen {
    /// Port number.
    pub number: PortNo,
    /// Hardware address.
    pub mac: Mac,
}

/// A frame that an agent injects.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Output of Inject that the frame takes.
    pub output: u32,
    /// Other metadata.
    pub meta: Vec<(u32, u128)>,
    /// The frame.
    pub frame: Frame,
}

/// An event of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEvent {
    /// Name of the event.
    pub event: &'static str,
    /// Time of the event.
    pub at: Nanos,
    /// Details.
    pub facts: StatusValue,
}

/// Context of an agent: inputs and requested actions.
pub struct Around<'a> {
    /// Current time.
    pub now: Nanos,
    /// Nanoseconds since 1970 at time zero.
    pub epoch: u64,
    /// Ports in the order of the program.
    pub ports: &'a [PortSeen],
    /// Tables of the element.
    pub tables: &'a mut dyn Tables,
    /// Frames to inject, in order.
    pub sent: &'a mut Vec<Sent>,
    /// Events, in order.
    pub occurred: &'a mut Vec<AgentEvent>,
    /// State of a random number generator that outsiders cannot predict.
    pub chance: &'a mut u64,
}

impl Around<'_> {
    /// Injects a frame for a port. The index of the port in the program selects the output of
    /// Inject. Returns false if the port does not exist.
    pub fn send(&mut self, port: PortNo, bytes: &[u8]) -> bool {
        let place = self.ports.iter().position(|seen| seen.number == port);
        if let Some(place) = place {
            let frame = Frame::from_bytes(bytes);
            self.sent.push(Sent { output: place as u32, meta: Vec::new(), frame });
        }
        place.is_some()
    }

    /// Reports an event.
    pub fn event(&mut self, event: &'static str, facts: StatusValue) {
        self.occurred.push(AgentEvent { event, at: self.now, facts });
    }

    /// Returns the hardware address of a port.
    pub fn mac_of(&self, port: PortNo) -> Mac {
        let seen = self.ports.iter().find(|seen| seen.number == port);
        seen.map_or_else(|| made_mac(port), |seen| seen.mac)
    }

    /// Converts a time to seconds and nanoseconds since 1970.
    pub fn date(&self, at: Nanos) -> (u32, u32) {
        let since = self.epoch.wrapping_add(at.0);
        ((since / 1_000_000_000) as u32, (since % 1_000_000_000) as u32)
    }

    /// Returns a random number below a bound (SplitMix64; Steele, Lea, Flood 2014).
    pub fn below(&mut self, bound: u64) -> u64 {
        *self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *self.chance;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound.max(1)
    }
}

/// Derives a locally administered address from a port number, for ports without a hardware address.
pub fn made_mac(port: PortNo) -> Mac {
    let [.., high, low] = port.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

/// Types of agents and their events.
pub const KINDS: &[(&str, &[&str])] = &[
    (oam::KIND, oam::EVENTS),
    ("arp", neighbours::EVENTS),
    ("icmp", &[]),
    ("process", process::EVENTS),
];

/// Creates the agent that a program declares. Reports every problem, and returns none if there are
/// problems.
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
