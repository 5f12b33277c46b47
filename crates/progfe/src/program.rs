//! What an element is programmed with: instances of classes, what they are set to, and links.
//!
//! A [`Program`] is a value: read from a `*.fe.xml` ([`document`]), checked whole
//! ([`check`](crate::check)), written again. Everything that can be set is a component that a path
//! leads to, operations of Edit and rules of Match included, so that what a document says and what a
//! control element sets over ForCES are the same. Instances are told apart by name: `rx#1`, `fdb`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forces::{Catalog, Class, Value};

use crate::frames::FrameSet;
use crate::problem::Place;

/// Programs read from XML.
pub mod document;
/// Programs written as XML.
mod write;
/// Operands and keys that components hold as text.
pub mod text;

/// Instances of a program.
pub const INSTANCES_MAX: usize = 4096;
/// Values and rows of all instances.
pub const VALUES_MAX: usize = 1 << 20;
/// Links of a program.
pub const LINKS_MAX: usize = 65_536;
/// Indices of a group of ports.
pub const GROUP_MAX: u32 = 4096;
/// Ports, agents, watches.
pub const PARTS_MAX: usize = 4096;

/// The classes that this crate adds (ids from 0x50470001), as a library document.
pub const LIBRARY: &str = include_str!("../libraries/progfe.lfb.xml");
/// What the names of our classes begin with; documents may leave it out.
pub const PREFIX: &str = "Ext-PG-";

/// Numbers of the classes that the crate adds.
pub mod class_id {
    /// Rules of conditions choose the output.
    pub const MATCH: u32 = 0x5047_0001;
    /// A table of values of fields.
    pub const SEARCH: u32 = 0x5047_0002;
    /// A table that learns from the frames.
    pub const LEARN_SEARCH: u32 = 0x5047_0003;
    /// Frames are changed.
    pub const EDIT: u32 = 0x5047_0004;
    /// Copies to several outputs.
    pub const REPLICATE: u32 = 0x5047_0005;
    /// A state machine for each flow.
    pub const STATE: u32 = 0x5047_0006;
    /// Patterns in the bytes.
    pub const SCAN: u32 = 0x5047_0007;
    /// To a service agent.
    pub const DIVERT: u32 = 0x5047_0008;
    /// From a service agent.
    pub const INJECT: u32 = 0x5047_0009;
    /// Frames and bytes are counted.
    pub const COUNT: u32 = 0x5047_000a;
    /// Too fast, or not.
    pub const METER: u32 = 0x5047_000b;
    /// A copy aside.
    pub const MIRROR: u32 = 0x5047_000c;
    /// An output by a hash of fields.
    pub const HASH: u32 = 0x5047_000d;
}

/// Numbers of classes of RFC 6956 that checks and roles know.
pub mod base_id {
    /// A port of the element.
    pub const PHY: u32 = 3;
    /// What is received.
    pub const MAC_IN: u32 = 4;
    /// Link-layer headers put on.
    pub const ENCAP: u32 = 6;
    /// What is sent.
    pub const MAC_OUT: u32 = 7;
    /// Longest prefixes of IPv4.
    pub const UCAST_LPM_V4: u32 = 10;
    /// Next hops of IPv4.
    pub const NEXT_HOP_V4: u32 = 12;
    /// Next hops of IPv6.
    pub const NEXT_HOP_V6: u32 = 13;
    /// From the control element.
    pub const REDIRECT_IN: u32 = 14;
    /// To the control element.
    pub const REDIRECT_OUT: u32 = 15;
    /// An output by a metadatum.
    pub const METADATA_DISPATCH: u32 = 16;
    /// Queues.
    pub const SCHEDULER: u32 = 17;
}

/// What an element is programmed with.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Which version of it.
    pub revision: u32,
    /// The number of the element, if the program says one.
    pub fe_id: Option<u32>,
    /// The libraries that it uses.
    pub uses: Vec<Use>,
    /// The classes and metadata of these.
    pub catalog: Arc<Catalog>,
    /// How frames are read.
    pub frames: Arc<FrameSet>,
    /// The element's ports.
    pub ports: Vec<PortDecl>,
    /// The blocks.
    pub instances: Vec<Instance>,
    /// From outputs to inputs.
    pub links: Vec<Link>,
    /// Who serves diverted frames.
    pub agents: Vec<Agent>,
    /// What is told to whoever watches.
    pub watches: Vec<Watch>,
    /// Where it begins.
    pub place: Place,
}

/// A library that a program uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its label.
    pub library: String,
    /// Where its document is, if it does not ship.
    pub location: Option<String>,
    /// Where this stands.
    pub place: Place,
}

/// A port and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortDecl {
    /// Its number: that of its `EtherPHYCop` instance, and what `PHYPortID` says.
    pub number: u32,
    /// The device; empty where whoever starts the element says it.
    pub device: String,
    /// Where this stands.
    pub place: Place,
}

/// A block.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its name: `rx#1`, or `fdb` where the document gives no numbers.
    pub name: String,
    /// Its class.
    pub class: u32,
    /// Its number among the instances of its class.
    pub number: u32,
    /// What it is set to, by component; what is not in here is as the class says.
    pub components: BTreeMap<u32, Value>,
    /// Whether tables and counters begin anew when the program replaces another.
    pub reset: bool,
    /// Where it stands.
    pub place: Place,
    /// Where components, rows and fields of rows stand, by their paths.
    pub places: Arc<BTreeMap<Vec<u32>, Place>>,
}

/// A port of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// The instance, by its place in the program.
    pub instance: usize,
    /// The input or output, by its place in the class.
    pub port: u32,
    /// Which of a group; zero where there is no group.
    pub index: u32,
}

/// From an output to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The output.
    pub from: End,
    /// The input.
    pub to: End,
    /// Where it stands.
    pub place: Place,
}

/// A service agent. What it is set to is its own matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name, by which Divert and Inject call it.
    pub name: String,
    /// Its type, one of [`agent::KINDS`](crate::agent::KINDS).
    pub kind: String,
    /// Its attributes but these two.
    pub attributes: Vec<(String, String)>,
    /// The elements in it.
    pub settings: Vec<AgentSetting>,
    /// Where it stands.
    pub place: Place,
}

impl Agent {
    /// Whether it tells others when the kernel got frames, which ports have to know when they are opened.
    pub fn wants_arrivals(&self) -> bool {
        let mut attributes = self.settings.iter().flat_map(|setting| &setting.attributes);
        attributes.any(|(name, value)| (name.as_str(), value.as_str()) == ("stamp", "kernel"))
    }
}

/// An element in an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSetting {
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<(String, String)>,
    /// Where it stands.
    pub place: Place,
}

/// An event that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Who tells it.
    pub source: Source,
    /// The event's name.
    pub event: String,
    /// Milliseconds between two reports, at least.
    pub interval_ms: Option<u32>,
    /// Events between two reports.
    pub count: Option<u32>,
    /// The value that is crossed.
    pub threshold: Option<u32>,
    /// Where it stands.
    pub place: Place,
}

/// Who tells an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An instance, by its place in the program.
    Instance(usize),
    /// An agent, by name.
    Agent(String),
}

impl Agent {
    /// Whether another declaration says the same, wherever it stands.
    pub fn says_as(&self, other: &Agent) -> bool {
        let said = |it: &Agent| {
            let settings = it.settings.iter().map(|of| (of.name.clone(), of.attributes.clone()));
            settings.collect::<Vec<_>>()
        };
        (&self.name, &self.kind, &self.attributes) == (&other.name, &other.kind, &other.attributes)
            && said(self) == said(other)
    }
}

impl Program {
    /// The class of an instance.
    pub fn class_of(&self, instance: usize) -> &Arc<Class> {
        let id = self.instances[instance].class;
        self.catalog.class_by_id(id).expect("instances are made of classes of the catalog")
    }

    /// An instance by its name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.instances.iter().position(|instance| instance.name == name)
    }

    /// An instance by its class and its number there.
    pub fn place_of_instance(&self, class: u32, number: u32) -> Option<usize> {
        self.instances.iter().position(|it| (it.class, it.number) == (class, number))
    }

    /// A component of an instance: as it is set, or as its class says.
    pub fn component(&self, instance: usize, name: &str) -> Option<Value> {
        let component = self.class_of(instance).component(name)?;
        let set = self.instances[instance].components.get(&component.id).cloned();
        Some(set.unwrap_or_else(|| component.default_value()))
    }

    /// Where a part of an instance stands, or the nearest thing around it.
    pub fn place_of(&self, instance: usize, path: &[u32]) -> &Place {
        let instance = &self.instances[instance];
        let around = (1..=path.len()).rev().map(|length| &path[..length]);
        let found = around.filter_map(|path| instance.places.get(path)).next();
        found.unwrap_or(&instance.place)
    }

    /// `rx#1.NormalPathOut`, `cls.ClassifyOut[0]`.
    pub fn output_name(&self, end: End) -> String {
        let class = self.class_of(end.instance);
        let port = class.outputs.get(end.port as usize).map(|port| (&port.name, port.group));
        self.end_name(end, port)
    }

    /// `val.ValidatePktsIn`.
    pub fn input_name(&self, end: End) -> String {
        let class = self.class_of(end.instance);
        let port = class.inputs.get(end.port as usize).map(|port| (&port.name, port.group));
        self.end_name(end, port)
    }

    fn end_name(&self, end: End, port: Option<(&String, bool)>) -> String {
        let instance = &self.instances[end.instance].name;
        match port {
            Some((name, true)) => format!("{instance}.{name}[{}]", end.index),
            Some((name, false)) => format!("{instance}.{name}"),
            None => format!("{instance}.{}", end.port),
        }
    }

    /// The name of a class without our prefix.
    pub fn short_class(&self, instance: usize) -> &str {
        let name = &self.class_of(instance).name;
        name.strip_prefix(PREFIX).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests;
