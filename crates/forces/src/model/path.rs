//! Paths of components and their parts: `IPv4PrefixTable[7].HopSelector` is the path 1, 7, 6.
//!
//! IDs may replace names, with dots as separators: `1.7.6` is the same path. The path of an event
//! is its name, and resolves to the class's event base and the event ID.

use std::fmt;
use std::sync::Arc;

use super::class::{Class, Component};
use super::{Access, DataType, Event};
use crate::model::value::{Names, listed};

/// Maximum length of a path: a component, then as many steps as data types are deep.
pub const PATH_STEPS_MAX: usize = super::TYPE_DEPTH_MAX + 1;

/// Target of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target<'a> {
    /// A component, or a part of it.
    Value {
        /// The component.
        component: &'a Component,
        /// Data type at the path.
        data_type: &'a Arc<DataType>,
        /// Access mode: the one declared nearest to the end of the path.
        access: Access,
    },
    /// All events of the class.
    Events,
    /// An event, of its whole target or of some rows.
    Event {
        /// The event.
        event: &'a Event,
        /// Number of indices after the event ID.
        subscripts: usize,
    },
}

/// Why a path is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathFault {
    /// The path is empty.
    Empty,
    /// The path has too many steps.
    TooLong,
    /// The class has no such component.
    Component {
        /// The unknown step.
        step: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// The struct has no such field.
    Field {
        /// The unknown step.
        step: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// An index is not a number, or out of range.
    Index {
        /// The invalid step.
        step: String,
    },
    /// A step follows a value without parts.
    NoParts {
        /// The excess step.
        step: String,
    },
}

impl Class {
    /// Parses a path of names.
    pub fn path(&self, text: &str) -> Result<Vec<u32>, PathFault> {
        let opened = text.trim().replace('[', ".").replace(']', "");
        if opened.is_empty() {
            return Err(PathFault::Empty);
        }
        let mut steps = opened.split('.').map(str::trim);
        let first = steps.next().unwrap_or_default();
        let (mut path, mut data_type) = self.first_step(first)?;
        for step in steps {
            if path.len() >= PATH_STEPS_MAX {
                return Err(PathFault::TooLong);
            }
            match &data_type {
                Some(within) => {
                    let id = step_by_name(within, step)?;
                    path.push(id);
                    data_type = within.step(id).cloned();
                }
                None if self.event_base == path.first().copied() => {
                    let event = self.event(step).filter(|_| path.len() == 1);
                    path.push(match event {
                        Some(event) => event.id,
                        None => step.parse().map_err(|_| no_index(step))?,
                    });
                }
                None => return Err(PathFault::NoParts { step: step.to_string() }),
            }
        }
        Ok(path)
    }

    fn first_step(&self, step: &str) -> Result<(Vec<u32>, Option<Arc<DataType>>), PathFault> {
        let id = step.parse().ok();
        let same = |component: &&Component| component.name == step || Some(component.id) == id;
        if let Some(component) = self.components.iter().find(same) {
            return Ok((vec![component.id], Some(component.data_type.clone())));
        }
        if let (Some(base), Some(event)) = (self.event_base, self.event(step)) {
            return Ok((vec![base, event.id], None));
        }
        match self.event_base {
            Some(base) if id == Some(base) => Ok((vec![base], None)),
            _ => Err(self.no_component(step)),
        }
    }

    fn no_component(&self, step: impl fmt::Display) -> PathFault {
        let names = self.components.iter().map(|component| &component.name);
        let names = listed(names.chain(self.events.iter().map(|event| &event.name)));
        PathFault::Component { step: step.to_string(), names }
    }

    /// Returns the target of a path. It does not check that a row exists; only an instance can.
    pub fn target(&self, path: &[u32]) -> Result<Target<'_>, PathFault> {
        let Some((&first, rest)) = path.split_first() else { return Err(PathFault::Empty) };
        if path.len() > PATH_STEPS_MAX {
            return Err(PathFault::TooLong);
        }
        let Some(component) = self.component_by_id(first) else {
            return self.event_target(first, rest);
        };
        let (mut data_type, mut access) = (&component.data_type, component.access);
        for &id in rest {
            if let Some(field) = data_type.field_by_id(id) {
                access = field.access.unwrap_or(access);
            }
            data_type = match data_type.step(id) {
                Some(part) => part,
                None => return Err(no_step(data_type, &id.to_string())),
            };
        }
        Ok(Target::Value { component, data_type, access })
    }

    fn event_target(&self, first: u32, rest: &[u32]) -> Result<Target<'_>, PathFault> {
        if self.event_base != Some(first) {
            return Err(self.no_component(first));
        }
        let Some((&id, subscripts)) = rest.split_first() else { return Ok(Target::Events) };
        let event = self.event_by_id(id).ok_or_else(|| self.no_component(id))?;
        match subscripts.get(event.subscripts()) {
            None => Ok(Target::Event { event, subscripts: subscripts.len() }),
            Some(step) => Err(PathFault::NoParts { step: step.to_string() }),
        }
    }

    /// Formats a path with names where they exist; [`Class::path`] parses the result.
    pub fn show_path<'a>(&'a self, path: &'a [u32]) -> impl fmt::Display + 'a {
        ShownPath { class: self, path }
    }
}

/// Parses a step to an ID or index.
fn step_by_name(within: &DataType, step: &str) -> Result<u32, PathFault> {
    if within.array().is_some() {
        let index = step.parse().map_err(|_| no_index(step))?;
        return within.step(index).map(|_| index).ok_or_else(|| no_step(within, step));
    }
    let id = step.parse().ok();
    let fields = within.fields().unwrap_or_default();
    let found = fields.iter().find(|field| field.name == step || Some(field.id) == id);
    found.map(|field| field.id).ok_or_else(|| no_step(within, step))
}

fn no_index(step: &str) -> PathFault {
    PathFault::Index { step: step.to_string() }
}

fn no_step(within: &DataType, step: &str) -> PathFault {
    let step = step.to_string();
    match within.fields() {
        _ if within.array().is_some() => PathFault::Index { step },
        Some(fields) => {
            let names = listed(fields.iter().map(|field| &field.name));
            PathFault::Field { step, names }
        }
        None => PathFault::NoParts { step },
    }
}

struct ShownPath<'a> {
    class: &'a Class,
    path: &'a [u32],
}

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((&first, rest)) = self.path.split_first() else { return Ok(()) };
        let Some(component) = self.class.component_by_id(first) else {
            return self.event(first, rest, f);
        };
        f.write_str(&component.name)?;
        let mut data_type = Some(&component.data_type);
        for &id in rest {
            let field = data_type.and_then(|within| within.field_by_id(id));
            match (field, data_type.and_then(|within| within.array())) {
                (Some(field), _) => write!(f, ".{}", field.name)?,
                (None, Some(_)) => write!(f, "[{id}]")?,
                (None, None) => write!(f, ".{id}")?,
            }
            data_type = data_type.and_then(|within| within.step(id));
        }
        Ok(())
    }
}

impl ShownPath<'_> {
    fn event(&self, first: u32, rest: &[u32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.class.event_base == Some(first);
        let event = rest.first().filter(|_| ours).and_then(|&id| self.class.event_by_id(id));
        let Some(event) = event else {
            write!(f, "{first}")?;
            return rest.iter().try_for_each(|id| write!(f, ".{id}"));
        };
        f.write_str(&event.name)?;
        rest[1..].iter().try_for_each(|index| write!(f, "[{index}]"))
    }
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathFault::Empty => f.write_str("the path is empty"),
            PathFault::TooLong => write!(f, "the path has more than {PATH_STEPS_MAX} steps"),
            PathFault::Component { step, names: all } => {
                write!(f, "there is no component {step} (known: {})", Names(all))
            }
            PathFault::Field { step, names: all } => {
                write!(f, "there is no field {step} (known: {})", Names(all))
            }
            PathFault::Index { step } => write!(f, "there is no row {step:?}"),
            PathFault::NoParts { step } => {
                write!(f, "there is no {step:?} in a value without parts")
            }
        }
    }
}

impl std::error::Error for PathFault {}
