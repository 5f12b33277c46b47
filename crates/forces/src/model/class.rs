//! Resolved classes, with inherited parts and resolved data types.

use std::sync::Arc;

use super::data_type::DataType;
use super::declared::{Condition, InputPort, OutputPort, Version};
use super::{Access, Location};
use crate::model::value::Value;

/// A metadata item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// ID on the wire.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Data type.
    pub data_type: Arc<DataType>,
}

/// A class with its own and inherited parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Class ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Version.
    pub version: Version,
    /// Label of the library that declares it.
    pub library: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// IDs of its ancestor classes, nearest first.
    pub parents: Vec<u32>,
    /// Input ports; the index in this list, from 0, is the port group's index.
    pub inputs: Vec<InputPort>,
    /// Output ports; the index in this list, from 0, is the port group's index.
    pub outputs: Vec<OutputPort>,
    /// Components, then capabilities, each in the order of declaration.
    pub components: Vec<Component>,
    /// Event base ID: the first number of its events' paths.
    pub event_base: Option<u32>,
    /// Events.
    pub events: Vec<Event>,
    /// Place of its declaration.
    pub place: Location,
}

/// Whether a component is an operational component or a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentKind {
    /// An operational component.
    Component,
    /// A capability of an instance.
    Capability,
}

/// A component or a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Component ID, the first number of its path.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Component or capability.
    pub kind: ComponentKind,
    /// Whether it is optional in an instance.
    pub optional: bool,
    /// Access mode.
    pub access: Access,
    /// Data type.
    pub data_type: Arc<DataType>,
    /// Declared default value.
    pub default: Option<Value>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Event ID, the second number of its path.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Target: IDs and indices; `None` is any index.
    pub target: Vec<Option<u32>>,
    /// Condition on the target.
    pub condition: Condition,
    /// Reported values, in this order; `Subscript` is replaced by the target's index.
    pub reports: Vec<Vec<ReportPart>>,
}

/// A step of a report's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPart {
    /// A fixed ID or index.
    Id(u32),
    /// The index at the target's n-th wildcard, counted from 0.
    Subscript(usize),
}

impl Class {
    /// Returns the component or capability with this name.
    pub fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }

    /// Returns the component or capability with this ID.
    pub fn component_by_id(&self, id: u32) -> Option<&Component> {
        self.components.iter().find(|component| component.id == id)
    }

    /// Returns the input with this name, and its index.
    pub fn input(&self, name: &str) -> Option<(u32, &InputPort)> {
        (0..).zip(&self.inputs).find(|(_, port)| port.name == name)
    }

    /// Returns the output with this name, and its index.
    pub fn output(&self, name: &str) -> Option<(u32, &OutputPort)> {
        (0..).zip(&self.outputs).find(|(_, port)| port.name == name)
    }

    /// Returns the event with this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.name == name)
    }

    /// Returns the event with this ID.
    pub fn event_by_id(&self, id: u32) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// Returns whether this is the class with this ID, or derived from it.
    pub fn is_a(&self, id: u32) -> bool {
        self.id == id || self.parents.contains(&id)
    }
}

impl Component {
    /// Returns the declared default value, or that of its type.
    pub fn default_value(&self) -> Value {
        self.default.clone().unwrap_or_else(|| self.data_type.default_value())
    }
}

impl Event {
    /// Returns the number of subscripts after event base and event ID in its path.
    pub fn subscripts(&self) -> usize {
        self.target.iter().filter(|part| part.is_none()).count()
    }

    /// Returns the path of a report for these subscripts; `None` if there are too few.
    pub fn report_path(report: &[ReportPart], subscripts: &[u32]) -> Option<Vec<u32>> {
        let parts = report.iter().map(|part| match part {
            ReportPart::Id(id) => Some(*id),
            ReportPart::Subscript(place) => subscripts.get(*place).copied(),
        });
        parts.collect()
    }
}
