//! Classes whose parents are merged in and whose components have types that need no look-up.

use std::sync::Arc;

use super::data_type::DataType;
use super::declared::{Condition, InputPort, OutputPort, Version};
use super::{Access, Place};
use crate::value::Value;

/// A metadatum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Its id on the wire.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// Its type.
    pub data_type: Arc<DataType>,
}

/// A class with everything that it has of its own and of its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// The label of the library that declares it.
    pub library: String,
    /// What it does, in short.
    pub synopsis: String,
    /// What it does.
    pub description: String,
    /// The ids of the classes that it adds to, nearest first.
    pub parents: Vec<u32>,
    /// Where frames come in; the order is the port groups' index from 0.
    pub inputs: Vec<InputPort>,
    /// Where frames go out; the order is the port groups' index from 0.
    pub outputs: Vec<OutputPort>,
    /// Components first, then capabilities, each in the order of declaration.
    pub components: Vec<Component>,
    /// The first number of the path of its events.
    pub event_base: Option<u32>,
    /// What it tells by itself.
    pub events: Vec<Event>,
    /// Where its declaration stands.
    pub place: Place,
}

/// Whether a component is there to be worked with or to say what an instance can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentKind {
    /// It is there to be worked with.
    Component,
    /// It says what an instance can do.
    Capability,
}

/// A component or a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Its id, the first number of its path.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// Which of the two it is.
    pub kind: ComponentKind,
    /// Whether an instance may lack it.
    pub optional: bool,
    /// What may be done with it.
    pub access: Access,
    /// Its type.
    pub data_type: Arc<DataType>,
    /// Its value in the beginning, if one is declared.
    pub default: Option<Value>,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id, the second number of its path.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// When it happens, in short.
    pub synopsis: String,
    /// What is watched: ids and indices; `None` is any index.
    pub target: Vec<Option<u32>>,
    /// What has to happen to it.
    pub condition: Condition,
    /// What is told along with it, in this order; `Subscript` takes the index that the target had.
    pub reports: Vec<Vec<ReportPart>>,
}

/// A step of the path of something that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPart {
    /// This id or index.
    Id(u32),
    /// The index that stands for the target's wildcard of this place, counted from 0.
    Subscript(usize),
}

impl Class {
    /// The component or capability with this name.
    pub fn component(&self, name: &str) -> Option<&Component> {
        self.components.iter().find(|component| component.name == name)
    }

    /// The component or capability with this id.
    pub fn component_by_id(&self, id: u32) -> Option<&Component> {
        self.components.iter().find(|component| component.id == id)
    }

    /// The input with this name, and its index.
    pub fn input(&self, name: &str) -> Option<(u32, &InputPort)> {
        (0..).zip(&self.inputs).find(|(_, port)| port.name == name)
    }

    /// The output with this name, and its index.
    pub fn output(&self, name: &str) -> Option<(u32, &OutputPort)> {
        (0..).zip(&self.outputs).find(|(_, port)| port.name == name)
    }

    /// The event with this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The event with this id.
    pub fn event_by_id(&self, id: u32) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// Whether it is the class with this id or adds to it.
    pub fn is_a(&self, id: u32) -> bool {
        self.id == id || self.parents.contains(&id)
    }
}

impl Component {
    /// Its value in the beginning: as declared, or its type's.
    pub fn default_value(&self) -> Value {
        self.default.clone().unwrap_or_else(|| self.data_type.default_value())
    }
}

impl Event {
    /// How many subscripts its path has behind base and id.
    pub fn subscripts(&self) -> usize {
        self.target.iter().filter(|part| part.is_none()).count()
    }

    /// The path of something it reports, once the target's wildcards are known; `None` if there
    /// are too few of them.
    pub fn report_path(report: &[ReportPart], subscripts: &[u32]) -> Option<Vec<u32>> {
        let parts = report.iter().map(|part| match part {
            ReportPart::Id(id) => Some(*id),
            ReportPart::Subscript(place) => subscripts.get(*place).copied(),
        });
        parts.collect()
    }
}
