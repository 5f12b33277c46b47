//! Programs: instances of LFB classes, their component values, and links.
//!
//! A [`Program`] is a plain value. It is read from a `*.fe.xml` file ([`document`]), checked
//! ([`check`](crate::check)) and written again. Every setting is a component at a path, including
//! operations of Edit and rules of Match. A document and a ForCES control element therefore set the
//! same things. Each instance has a unique name, such as `rx#1` or `fdb`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forces::{Catalog, Class, Value};

use crate::diagnostic::Place;
use crate::frames::FrameSet;

pub mod document;
mod write;
pub mod text;

/// Maximum number of instances in a program.
pub const INSTANCES_MAX: usize = 4096;
/// Maximum number of values and rows over all instances.
pub const VALUES_MAX: usize = 1 << 20;
/// Maximum number of links in a program.
pub const LINKS_MAX: usize = 65_536;
/// Maximum number of indices in a port group.
pub const GROUP_MAX: u32 = 4096;
/// Maximum number of ports, of agents and of watches.
pub const PARTS_MAX: usize = 4096;

/// Library document of the classes that this crate adds (ids from 0x50470001).
pub const LIBRARY: &str = include_str!("../libraries/progfe.lfb.xml");
/// Prefix of the names of this crate's classes. Documents may omit it.
pub const PREFIX: &str = "Ext-PG-";

/// Ids of the classes that this crate adds.
pub mod class_id {
    /// Selects the output by rules with conditions.
    pub const MATCH: u32 = 0x5047_0001;
    /// Looks up field values in a table.
    pub const SEARCH: u32 = 0x5047_0002;
    /// Looks up field values in a table that learns from frames.
    pub const LEARN_SEARCH: u32 = 0x5047_0003;
    /// Modifies frames.
    pub const EDIT: u32 = 0x5047_0004;
    /// Copies frames to several outputs.
    pub const REPLICATE: u32 = 0x5047_0005;
    /// Runs a state machine per flow.
    pub const STATE: u32 = 0x5047_0006;
    /// Searches the bytes of frames for patterns.
    pub const SCAN: u32 = 0x5047_0007;
    /// Diverts frames to a service agent.
    pub const DIVERT: u32 = 0x5047_0008;
    /// Injects frames from a service agent.
    pub const INJECT: u32 = 0x5047_0009;
    /// Counts frames and bytes.
    pub const COUNT: u32 = 0x5047_000a;
    /// Meters frames: conforming or exceeding the rate.
    pub const METER: u32 = 0x5047_000b;
    /// Mirrors frames to a second output.
    pub const MIRROR: u32 = 0x5047_000c;
    /// Selects the output by a hash of fields.
    pub const HASH: u32 = 0x5047_000d;
}

/// Ids of the RFC 6956 classes that checks and roles use.
pub mod base_id {
    /// A port of the element.
    pub const PHY: u32 = 3;
    /// Accepts received frames.
    pub const MAC_IN: u32 = 4;
    /// Adds link-layer headers.
    pub const ENCAP: u32 = 6;
    /// Sends frames.
    pub const MAC_OUT: u32 = 7;
    /// Longest prefix match for IPv4.
    pub const UCAST_LPM_V4: u32 = 10;
    /// Next hops for IPv4.
    pub const NEXT_HOP_V4: u32 = 12;
    /// Next hops for IPv6.
    pub const NEXT_HOP_V6: u32 = 13;
    /// Frames from the control element.
    pub const REDIRECT_IN: u32 = 14;
    /// Frames to the control element.
    pub const REDIRECT_OUT: u32 = 15;
    /// Selects the output by a metadata item.
    pub const METADATA_DISPATCH: u32 = 16;
    /// Queues.
    pub const SCHEDULER: u32 = 17;
}

/// A program of a forwarding element.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Revision of the program.
    pub revision: u32,
    /// FE id, if the program sets one.
    pub fe_id: Option<u32>,
    /// Libraries that the program uses.
    pub uses: Vec<Use>,
    /// Classes and metadata of these libraries.
    pub catalog: Arc<Catalog>,
    /// Frame formats.
    pub frames: Arc<FrameSet>,
    /// Ports of the element.
    pub ports: Vec<PortDecl>,
    /// Blocks.
    pub instances: Vec<Instance>,
    /// Links from outputs to inputs.
    pub links: Vec<Link>,
    /// Agents that process diverted frames.
    pub agents: Vec<Agent>,
    /// Events to report.
    pub watches: Vec<Watch>,
    /// Start of the program in its file.
    pub place: Place,
}

/// A library that a program uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Label of the library.
    pub library: String,
    /// Location of its document, if the library is not built in.
    pub location: Option<String>,
    /// Place in the document.
    pub place: Place,
}

/// A port and the device that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortDecl {
    /// Port number: the number of its `EtherPHYCop` instance and the value of `PHYPortID`.
    pub number: u32,
    /// Device name. It is empty if the caller that starts the element supplies it.
    pub device: String,
    /// Place in the document.
    pub place: Place,
}

/// A block: an instance of an LFB class.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name: `rx#1`, or `fdb` if the document gives no numbers.
    pub name: String,
    /// Class id.
    pub class: u32,
    /// Number among the instances of the class.
    pub number: u32,
    /// Component values by component id. A missing component has the default of its class.
    pub components: BTreeMap<u32, Value>,
    /// Whether tables and counters start empty when this program replaces another.
    pub reset: bool,
    /// Place in the document.
    pub place: Place,
    /// Places of components, rows and fields of rows, by path.
    pub places: Arc<BTreeMap<Vec<u32>, Place>>,
}

/// A port of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Index of the instance in the program.
    pub instance: usize,
    /// Index of the input or output in the class.
    pub port: u32,
    /// Group index; zero if the port is not a group.
    pub index: u32,
}

/// A link from an output to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The output.
    pub from: End,
    /// The input.
    pub to: End,
    /// Place in the document.
    pub place: Place,
}

/// A service agent. The agent itself interprets its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Name that Divert and Inject use for the agent.
    pub name: String,
    /// Type of the agent, one of [`agent::KINDS`](crate::agent::KINDS).
    pub kind: String,
    /// Attributes other than name and type.
    pub attributes: Vec<(String, String)>,
    /// Child elements of the agent.
    pub settings: Vec<AgentSetting>,
    /// Place in the document.
    pub place: Place,
}

impl Agent {
    /// Returns true if the agent uses kernel receive time stamps. Ports must know this when they
    /// are opened.
    pub fn wants_arrivals(&self) -> bool {
        let mut attributes = self.settings.iter().flat_map(|setting| &setting.attributes);
        attributes.any(|(name, value)| (name.as_str(), value.as_str()) == ("stamp", "kernel"))
    }
}

/// A child element of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSetting {
    /// Name of the element.
    pub name: String,
    /// Attributes.
    pub attributes: Vec<(String, String)>,
    /// Place in the document.
    pub place: Place,
}

/// A watch: an event to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Source of the event.
    pub source: Source,
    /// Name of the event.
    pub event: String,
    /// Minimum interval between two reports, in milliseconds.
    pub interval_ms: Option<u32>,
    /// Number of events per report.
    pub count: Option<u32>,
    /// Threshold that the value must cross.
    pub threshold: Option<u32>,
    /// Place in the document.
    pub place: Place,
}

/// Source of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Index of an instance in the program.
    Instance(usize),
    /// Name of an agent.
    Agent(String),
}

impl Agent {
    /// Compares two declarations and ignores their places in the document.
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
    /// Returns the class of an instance.
    pub fn class_of(&self, instance: usize) -> &Arc<Class> {
        let id = self.instances[instance].class;
        self.catalog.class_by_id(id).expect("instances have classes of the catalog")
    }

    /// Finds an instance by name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.instances.iter().position(|instance| instance.name == name)
    }

    /// Finds an instance by class and number.
    pub fn place_of_instance(&self, class: u32, number: u32) -> Option<usize> {
        self.instances.iter().position(|it| (it.class, it.number) == (class, number))
    }

    /// Returns the value of a component, or the default of its class.
    pub fn component(&self, instance: usize, name: &str) -> Option<Value> {
        let component = self.class_of(instance).component(name)?;
        let set = self.instances[instance].components.get(&component.id).cloned();
        Some(set.unwrap_or_else(|| component.default_value()))
    }

    /// Returns the place of a part of an instance, or of the nearest enclosing part.
    pub fn place_of(&self, instance: usize, path: &[u32]) -> &Place {
        let instance = &self.instances[instance];
        let around = (1..=path.len()).rev().map(|length| &path[..length]);
        let found = around.filter_map(|path| instance.places.get(path)).next();
        found.unwrap_or(&instance.place)
    }

    /// Formats an output: `rx#1.NormalPathOut`, `cls.ClassifyOut[0]`.
    pub fn output_name(&self, end: End) -> String {
        let class = self.class_of(end.instance);
        let port = class.outputs.get(end.port as usize).map(|port| (&port.name, port.group));
        self.end_name(end, port)
    }

    /// Formats an input: `val.ValidatePktsIn`.
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

    /// Returns the class name without [`PREFIX`].
    pub fn short_class(&self, instance: usize) -> &str {
        let name = &self.class_of(instance).name;
        name.strip_prefix(PREFIX).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests;
