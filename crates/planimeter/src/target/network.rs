//! Several switches as one target: a topology file of switches, links between their ports, and the
//! instrument's ports.
//!
//! A name is `topology:FILE`. What is measured end to end goes the [path](Hop) from the instrument's first
//! port to its second; a module may speak to every switch. Invariant: one text is one
//! [`NetworkTarget`], however often it is asked for, so that a target's kind stays a small value.

/// What a topology file says.
pub mod file;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use instrument::module::Joined;
use instrument::stage::Scene;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Instruction};

use super::name::{Link, TargetKind};
use super::program::{PORT_IN, PORT_OUT};
use file::Fault;

/// What a name of such a target begins with.
pub const PREFIX: &str = "topology:";

/// Names of topologies that one process keeps.
const TARGETS_MAX: usize = 64;

/// A target that is a network of switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkTarget {
    place: u16,
}

/// Switches, and who is joined to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The switches, which connections count from 0 in this order.
    pub switches: Vec<Switch>,
    /// The links between them.
    pub links: Vec<[End; 2]>,
    /// What the instrument's ports are joined to, in their order.
    pub instrument: Vec<End>,
    /// The way from the instrument's first port to its second.
    pub path: Vec<Hop>,
}

/// A switch of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// What the file calls it.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// Its ports, which count from 1.
    pub ports: u32,
}

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    /// Which switch, from 0.
    pub switch: usize,
    /// Which port of it, from 1.
    pub port: u32,
}

/// A switch on the way of frames: by which port they come and by which they are to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Which switch, from 0.
    pub switch: usize,
    /// The port that frames come in by.
    pub port_in: u16,
    /// The port that they leave by.
    pub port_out: u16,
}

struct Kept {
    text: String,
    about: String,
    network: Network,
}

/// Entries are never removed, because copies of their index exist everywhere.
static KEPT: Mutex<Vec<&'static Kept>> = Mutex::new(Vec::new());

/// Why there is no such network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub fault: Box<Fault>,
}

impl NetworkTarget {
    /// The target that this text names, which begins with [`PREFIX`].
    pub fn parse(text: &str) -> Result<NetworkTarget, NetworkError> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|it| it.text == text) {
            return Ok(NetworkTarget { place: place as u16 });
        }
        let file = text.strip_prefix(PREFIX).unwrap_or(text).to_string();
        let failed = |fault: Fault| NetworkError { file: file.clone(), fault: Box::new(fault) };
        if kept.len() >= TARGETS_MAX {
            return Err(failed(Fault::TooManyFiles(TARGETS_MAX)));
        }
        let written = file::load(&file).map_err(failed)?;
        let place = kept.len() as u16;
        let names: Vec<&str> = written.switches.iter().map(|it| it.kind.name()).collect();
        let about = format!("several switches as one target: {}", names.join(", "));
        let one = Kept { text: text.into(), about, network: written };
        kept.push(Box::leak(Box::new(one)));
        Ok(NetworkTarget { place })
    }

    fn kept(self) -> &'static Kept {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(usize::from(self.place)).expect("a target is made only by being kept")
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        &self.kept().text
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        &self.kept().about
    }

    /// The switches, and who is joined to whom.
    pub fn network(self) -> &'static Network {
        &self.kept().network
    }

    /// The first of its switches that this link does not carry; every one where it carries no network.
    pub fn hindered_by(self, link: Link) -> Option<&'static Switch> {
        let carries = matches!(link, Link::Memory | Link::Veth);
        self.network().switches.iter().find(|switch| !carries || !switch.kind.runs_on(link))
    }
}

impl Network {
    /// Where the instrument's ports lead.
    pub fn scene(&self) -> Scene {
        let joined = |end: &End| Some(Joined { switch: end.switch, port: end.port });
        Scene { joined: self.instrument.iter().map(joined).collect() }
    }

    /// What is at the other end of a port, if that is a switch.
    pub fn across(&self, end: End) -> Option<End> {
        self.links.iter().find_map(|&[one, other]| match end {
            end if end == one => Some(other),
            end if end == other => Some(one),
            _ => None,
        })
    }

    /// The shortest way between two ports, if there is one.
    fn way(&self, from: End, to: End) -> Option<Vec<Hop>> {
        // By which port each switch was entered first.
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

/// What the network consists of, for the record.
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
    /// The only switch of a target that is one.
    pub const ALONE: Hop = Hop { switch: 0, port_in: PORT_IN, port_out: PORT_OUT };

    /// A message that was made for a switch alone, for this one on the way.
    pub fn told(self, message: Message) -> Message {
        match message {
            Message::FlowMod(flow) => Message::FlowMod(self.led(flow)),
            other => other,
        }
    }

    /// A rule that was made for a switch alone, with the ports of this one.
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
    fn a_rule_is_led_by_the_ports_of_its_switch() {
        let actions = vec![Action::output(PORT_OUT.into())];
        let made = FlowMod::add(Match::ANY.with(Field::InPort, PORT_IN), 1, actions);
        assert_eq!(Hop::ALONE.led(made.clone()), made);
        let led = Hop { switch: 1, port_in: 3, port_out: 1 }.led(made);
        assert_eq!(led.matching.value(Field::InPort), Some(3));
        assert_eq!(led.applied(), [Action::output(1)]);
    }
}
