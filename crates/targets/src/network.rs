//! Several switches as one target: a topology file with switches, links between their ports, and
//! the tester's ports.
//!
//! A name is `topology:FILE`. End-to-end tests use the [path](Hop) from the tester's first port to
//! its second; a module may connect to every switch. Invariant: equal texts give equal
//! [`NetworkTarget`]s, so that a target's kind stays a small value.

pub mod file;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Instruction};
use tester::executor::TopologyInfo;
use tester::module::SwitchPort;

use super::flow_setup::{PORT_IN, PORT_OUT};
use super::name::{Link, TargetKind};
use file::TopologyFault;

/// Prefix of such a target's name.
pub const PREFIX: &str = "topology:";

/// Limit of names in one process.
const TARGETS_MAX: usize = 64;

/// A target that is a network of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkTarget {
    place: u16,
}

/// Switches and their links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The switches; connections number them from 0 in this order.
    pub switches: Vec<Switch>,
    /// The links between them.
    pub links: Vec<[End; 2]>,
    /// The switch ports that the tester's ports connect to, in their order.
    pub instrument: Vec<End>,
    /// The path from the tester's first port to its second.
    pub path: Vec<Hop>,
}

/// A switch of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name in the file.
    pub name: String,
    /// Its kind.
    pub kind: TargetKind,
    /// Number of its ports, from 1.
    pub ports: u32,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    /// Index of the switch, from 0.
    pub switch: usize,
    /// Number of the port, from 1.
    pub port: u32,
}

/// A switch on the path of frames, with its ingress and egress port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index of the switch, from 0.
    pub switch: usize,
    /// The ingress port.
    pub port_in: u16,
    /// The egress port.
    pub port_out: u16,
}

struct NamedNetwork {
    text: String,
    about: String,
    network: Network,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static NamedNetwork>> = Mutex::new(Vec::new());

/// Error of a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    /// The file.
    pub file: String,
    /// The error.
    pub fault: Box<TopologyFault>,
}

impl NetworkTarget {
    /// Returns the target that this text names; it starts with [`PREFIX`].
    pub fn parse(text: &str) -> Result<NetworkTarget, NetworkError> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|it| it.text == text) {
            return Ok(NetworkTarget { place: place as u16 });
        }
        let file = text.strip_prefix(PREFIX).unwrap_or(text).to_string();
        let failed =
            |fault: TopologyFault| NetworkError { file: file.clone(), fault: Box::new(fault) };
        if kept.len() >= TARGETS_MAX {
            return Err(failed(TopologyFault::TooManyFiles(TARGETS_MAX)));
        }
        let written = file::load(&file).map_err(failed)?;
        let place = kept.len() as u16;
        let names: Vec<&str> = written.switches.iter().map(|it| it.kind.name()).collect();
        let about = format!("several switches as one target: {}", names.join(", "));
        let one = NamedNetwork { text: text.into(), about, network: written };
        kept.push(Box::leak(Box::new(one)));
        Ok(NetworkTarget { place })
    }

    fn kept(self) -> &'static NamedNetwork {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(usize::from(self.place)).expect("targets are created by registration")
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        &self.kept().text
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        &self.kept().about
    }

    /// Returns the switches and their links.
    pub fn network(self) -> &'static Network {
        &self.kept().network
    }

    /// Returns the first of its switches that does not support this link; every switch if the link
    /// supports no network.
    pub fn hindered_by(self, link: Link) -> Option<&'static Switch> {
        let carries = matches!(link, Link::Memory | Link::Veth | Link::VethLive);
        self.network().switches.iter().find(|switch| !carries || !switch.kind.runs_on(link))
    }
}

impl Network {
    /// Returns what the tester's ports connect to.
    pub fn scene(&self) -> TopologyInfo {
        let joined = |end: &End| Some(SwitchPort { switch: end.switch, port: end.port });
        TopologyInfo { joined: self.instrument.iter().map(joined).collect() }
    }

    /// Returns the other end of a port's link, if it is a switch.
    pub fn across(&self, end: End) -> Option<End> {
        self.links.iter().find_map(|&[one, other]| match end {
            end if end == one => Some(other),
            end if end == other => Some(one),
            _ => None,
        })
    }

    /// Returns the shortest path between two ports, if there is one.
    fn way(&self, from: End, to: End) -> Option<Vec<Hop>> {
        // Port by which each switch was first reached.
        let mut entered: Vec<Option<End>> = vec![None; self.switches.len()];
        let mut waiting = VecDeque::from([from]);
        entered[from.switch] = Some(from);
        while let Some(at) = waiting.pop_front() {
            for port in 1..=self.switches[at.switch].ports {
                let next = self.across(End { port, ..at });
                if let Some(next) = next.filter(|next| entered[next.switch].is_none()) {
                    entered[next.switch] = Some(next);
                    waiting.push_back(next);
                }
            }
        }
        let mut way = Vec::new();
        let mut out = to;
        loop {
            let comes_in = entered[out.switch]?;
            let (port_in, port_out) = (comes_in.port as u16, out.port as u16);
            way.push(Hop { switch: out.switch, port_in, port_out });
            if out.switch == from.switch {
                break;
            }
            out = self.across(comes_in)?;
        }
        way.reverse();
        Some(way)
    }
}

/// Describes the network for the record.
pub(super) fn described(network: &Network) -> BTreeMap<String, String> {
    let of = |end: &End| format!("{}:{}", network.switches[end.switch].name, end.port);
    let switches =
        network.switches.iter().map(|it| (format!("switch {}", it.name), it.kind.name()));
    let mut settings: BTreeMap<String, String> =
        switches.map(|(name, kind)| (name, kind.into())).collect();
    let links = network.links.iter().map(|[one, other]| format!("{} to {}", of(one), of(other)));
    settings.insert("links".into(), links.collect::<Vec<_>>().join(", "));
    let instrument = network.instrument.iter().map(of).collect::<Vec<_>>().join(", ");
    settings.insert("instrument".into(), instrument);
    let path = network.path.iter().map(|hop| network.switches[hop.switch].name.as_str());
    settings.insert("path".into(), path.collect::<Vec<_>>().join(", "));
    settings
}

impl Hop {
    /// The only switch of a target that is a single switch.
    pub const ALONE: Hop = Hop { switch: 0, port_in: PORT_IN, port_out: PORT_OUT };

    /// Adapts a message for a single switch to the ports of this one.
    pub fn told(self, message: Message) -> Message {
        match message {
            Message::FlowMod(flow) => Message::FlowMod(self.led(flow)),
            other => other,
        }
    }

    /// Adapts a flow-mod for a single switch to the ports of this one.
    pub fn led(self, mut flow: FlowMod) -> FlowMod {
        if self.port_in == PORT_IN && self.port_out == PORT_OUT {
            return flow;
        }
        if flow.matching.value(Field::InPort) == Some(PORT_IN.into()) {
            flow.matching = flow.matching.with(Field::InPort, self.port_in);
        }
        let own: u32 = PORT_OUT.into();
        for instruction in &mut flow.instructions {
            let (Instruction::ApplyActions(actions) | Instruction::WriteActions(actions)) =
                instruction
            else {
                continue;
            };
            for action in actions {
                if let Action::Output { port, .. } | Action::Enqueue { port, .. } = action
                    && *port == own
                {
                    *port = self.port_out.into();
                }
            }
        }
        flow
    }
}

#[cfg(test)]
mod tests {
    use openflow::model::Match;

    use super::*;

    #[test]
    fn a_rule_uses_the_ports_of_its_switch() {
        let actions = vec![Action::output(PORT_OUT.into())];
        let made = FlowMod::add(Match::ANY.with(Field::InPort, PORT_IN), 1, actions);
        assert_eq!(Hop::ALONE.led(made.clone()), made);
        let led = Hop { switch: 1, port_in: 3, port_out: 1 }.led(made);
        assert_eq!(led.matching.value(Field::InPort), Some(3));
        assert_eq!(led.applied(), [Action::output(1)]);
    }
}
