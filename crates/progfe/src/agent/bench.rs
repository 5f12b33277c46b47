//! Test bench for one agent: feeds it frames and time, and collects its actions.

use core::net::IpAddr;
use std::collections::BTreeMap;

use packet::frame::{Frame, PortNo};
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use super::{Agent, AgentEvent, AgentRequest, Around, PortSeen, Sent, StatusValue, Tables, made};
use crate::diagnostic::Problems;
use crate::lfb::exceptions::{DivertDestination, DivertedFrame};
use crate::lfb::meta_id;
use crate::program::Program;
use crate::program::document::no_files;
use crate::xml::Source;

/// Nanoseconds since 1970 at time zero.
pub const EPOCH: u64 = 1_000_000_000_000;

/// An agent and its environment.
pub struct Bench {
    pub agent: Box<dyn Agent>,
    pub now: Nanos,
    pub events: Vec<AgentEvent>,
    pub tables: Known,
    ports: Vec<PortSeen>,
    chance: u64,
}

/// Tables with contents that the test sets.
#[derive(Default)]
pub struct Known {
    pub stations: BTreeMap<Mac, u32>,
    pub neighbours: BTreeMap<(PortNo, IpAddr), (Mac, Mac, u16)>,
    pub numbers: BTreeMap<String, u64>,
}

impl Tables for Known {
    fn station(&self, _table: &str, mac: Mac, _vid: u16, _now: Nanos) -> Option<u32> {
        self.stations.get(&mac).copied()
    }

    fn set_neighbour(
        &mut self,
        _encap: &str,
        at: (PortNo, IpAddr),
        header: Option<(Mac, Mac, u16)>,
    ) {
        match header {
            Some(header) => drop(self.neighbours.insert(at, header)),
            None => drop(self.neighbours.remove(&at)),
        }
    }

    fn clear_neighbours(&mut self, _encap: &str) {
        self.neighbours.clear();
    }

    fn number(&self, instance: &str, path: &str, _now: Nanos) -> Option<u64> {
        self.numbers.get(&format!("{instance}.{path}")).copied()
    }
}

/// Loads a program with this agent, ports 1 and 2, and some instances. Returns its problems too.
pub fn program(agent: &str) -> (Option<Program>, Problems) {
    let text = format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="bench"><use library="BaseLFBLibrary"/><use library="ProGFE"/>
        <frames file="ethernet.frames.xml"/><ports><port id="1"/><port id="2"/></ports>
        <instances><lfb id="fdb" class="LearnSearch"><set name="LearnKey">Eth.src</set>
        <set name="LearnValue">meta:PHYPortID</set><set name="SearchKey">Eth.dst</set></lfb>
        <lfb id="enc" class="EtherEncap"/><lfb id="nh" class="IPv4NextHop"/></instances>
        <agents>{agent}</agents></fe>"#
    );
    Program::load(&Source::new("bench", &text), &no_files)
}

impl Bench {
    /// Creates the agent of an XML element. Port n has the address 02:00:00:00:NUMBER:n.
    pub fn new(agent: &str, number: u8) -> Bench {
        let (program, problems) = program(agent);
        let program = program.unwrap_or_else(|| panic!("{problems}"));
        let agent = made(&program, &program.agents[0], &mut Problems::default()).unwrap();
        let seen = |port: PortNo| PortSeen { number: port, mac: [2, 0, 0, 0, number, port as u8] };
        Bench {
            agent,
            now: Nanos::from_secs(100),
            events: Vec::new(),
            tables: Known::default(),
            ports: vec![seen(1), seen(2)],
            chance: number.into(),
        }
    }

    fn with<R>(
        &mut self,
        act: impl FnOnce(&mut dyn Agent, &mut Around<'_>) -> R,
    ) -> (R, Vec<Sent>) {
        let mut sent = Vec::new();
        let mut around = Around {
            now: self.now,
            epoch: EPOCH,
            ports: &self.ports,
            tables: &mut self.tables,
            sent: &mut sent,
            occurred: &mut self.events,
            chance: &mut self.chance,
        };
        let outcome = act(&mut *self.agent, &mut around);
        (outcome, sent)
    }

    /// Delivers a frame from a port. Returns the injected frames.
    pub fn frame(&mut self, port: PortNo, bytes: &[u8]) -> Vec<Sent> {
        self.told(&[(meta_id::PHY_PORT, port.into())], bytes)
    }

    /// Delivers a frame with metadata.
    pub fn told(&mut self, meta: &[(u32, u128)], bytes: &[u8]) -> Vec<Sent> {
        let (to, meta) = (DivertDestination::Agent("bench".into()), meta.to_vec());
        let (came, frame) = (self.now, Frame::from_bytes(bytes));
        let told = DivertedFrame { to, instance: 0, meta, came, frame };
        self.with(|agent, around| agent.frame_came(told, around)).1
    }

    /// Advances time in steps of the due work. Returns the injected frames with their times.
    pub fn until(&mut self, moment: Nanos) -> Vec<(Nanos, Sent)> {
        let mut all = Vec::new();
        let mut steps = 0;
        while let Some(due) = self.agent.due().filter(|due| *due <= moment) {
            self.now = self.now.max(due);
            let sent = self.with(|agent, around| agent.time_came(around)).1;
            all.extend(sent.into_iter().map(|sent| (self.now, sent)));
            steps += 1;
            assert!(steps < 100_000, "the agent is not done");
        }
        self.now = self.now.max(moment);
        all
    }

    /// Sends a command.
    pub fn ask(
        &mut self,
        what: &str,
        with: &[(&str, &str)],
    ) -> (Result<StatusValue, String>, Vec<Sent>) {
        let with = with.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let ask = AgentRequest { what: what.to_owned(), with: with.collect() };
        self.with(|agent, around| agent.asked(&ask, around))
    }

    /// Connects an external program to the agent's stream.
    pub fn connect(&mut self) {
        self.with(|agent, around| agent.wire().expect("the agent has a stream").connected(around));
    }

    /// Delivers bytes from the stream. Returns the injected frames.
    pub fn heard(&mut self, bytes: &[u8]) -> Result<Vec<Sent>, String> {
        let wire = |agent: &mut dyn Agent, around: &mut Around<'_>| {
            agent.wire().expect("the agent has a stream").received(bytes, around)
        };
        let (outcome, sent) = self.with(wire);
        outcome.map(|()| sent)
    }

    /// Returns the names of events since the last call.
    pub fn happened(&mut self) -> Vec<&'static str> {
        self.events.drain(..).map(|occurred| occurred.event).collect()
    }

    /// Returns a counter by name.
    pub fn count(&self, name: &str) -> i128 {
        self.agent.facts(self.now).number(name).unwrap_or_else(|| panic!("no {name}"))
    }
}
