//! Resolves targets and reports of events: names of components and fields become paths.
//!
//! Source: RFC 5812 sections 4.7.6.1 to 4.7.6.3. Every array in a path is followed by a subscript.
//! A name as subscript, not an index, means all rows.

use super::Faults;
use crate::model::class::{Class, Event, ReportPart};
use crate::model::declared::{ClassDef, Condition, EventDef, PathPart};
use crate::model::fault::Problem;
use crate::model::{Base, DataType};

/// Adds the events that a class itself declares.
pub(super) fn add(class: &mut Class, def: &ClassDef, faults: &mut Faults<'_>) {
    match (class.event_base, def.event_base) {
        (Some(parent), Some(own)) if parent != own => {
            faults.add(Problem::EventBaseAgain { parent });
        }
        (None, Some(own)) => class.event_base = Some(own),
        (None, None) if !def.events.is_empty() => faults.add(Problem::EventBaseMissing),
        _ => {}
    }
    let base = class.event_base;
    if let Some(first) = class.components.iter().find(|it| Some(it.id) == base) {
        let (id, first) = (first.id, first.name.clone());
        faults.add(Problem::IdTwice { what: "events", id, first });
    }
    for event in &def.events {
        if let Some(first) = class.event_by_id(event.id) {
            let first = first.name.clone();
            faults.add(Problem::IdTwice { what: "event", id: event.id, first });
        } else if class.event(&event.name).is_some() {
            faults.add(Problem::NameTwice { what: "event", name: event.name.clone() });
        } else if let Some(event) = resolve(class, event, faults) {
            class.events.push(event);
        }
    }
}

/// A path while it is resolved.
struct Walk<'a> {
    class: &'a Class,
    event: &'a str,
    within: Option<&'a DataType>,
    /// Whether the last step was a subscript.
    ends_in_row: bool,
}

fn resolve(class: &Class, def: &EventDef, faults: &mut Faults<'_>) -> Option<Event> {
    let (mut target, mut names) = (Vec::new(), Vec::new());
    let mut walk = Walk { class, event: &def.name, within: None, ends_in_row: false };
    for part in &def.target {
        let step = walk.step(part, faults)?;
        if step.is_none()
            && let PathPart::Subscript(name) = part
        {
            names.push(name.trim());
        }
        target.push(step);
    }
    condition(def, &walk, faults)?;
    let mut reports = Vec::new();
    for report in &def.reports {
        let mut walk = Walk { class, event: &def.name, within: None, ends_in_row: false };
        let mut path = Vec::new();
        for part in report {
            let step = walk.step(part, faults)?;
            path.push(match (step, part) {
                (Some(id), _) => ReportPart::Id(id),
                (None, PathPart::Subscript(name) | PathPart::Field(name)) => {
                    match names.iter().position(|there| *there == name.trim()) {
                        Some(place) => ReportPart::Subscript(place),
                        None => return walk.fault(name, "a subscript of the target", faults),
                    }
                }
            });
        }
        reports.push(path);
    }
    let (id, name, synopsis) = (def.id, def.name.clone(), def.synopsis.clone());
    Some(Event { id, name, synopsis, target, condition: def.condition, reports })
}

/// Checks that the event's condition applies to the type of its target.
fn condition(def: &EventDef, walk: &Walk<'_>, faults: &mut Faults<'_>) -> Option<()> {
    let atomic = walk.within.and_then(DataType::atomic);
    let is_number = atomic.is_some_and(|atomic| {
        atomic.base.whole().is_some() || matches!(atomic.base, Base::Float32 | Base::Float64)
    });
    let expected = match def.condition {
        Condition::Created | Condition::Deleted if !walk.ends_in_row => "a row of an array",
        Condition::GreaterThan | Condition::LessThan if !is_number => "a number",
        Condition::BecomesEqualTo if atomic.is_none() => "an atomic value",
        _ => return Some(()),
    };
    faults.add(Problem::EventCondition { event: def.name.clone(), expected });
    None
}

impl<'a> Walk<'a> {
    /// Resolves a step to an ID or index; `Some(None)` for any row.
    fn step(&mut self, part: &PathPart, faults: &mut Faults<'_>) -> Option<Option<u32>> {
        self.ends_in_row = matches!(part, PathPart::Subscript(_));
        match part {
            PathPart::Field(name) => {
                let name = name.trim();
                let Some(within) = self.within else {
                    let Some(component) = self.class.component(name) else {
                        return self.fault(name, "a component of the class", faults);
                    };
                    self.within = Some(&component.data_type);
                    return Some(Some(component.id));
                };
                let Some(field) = within.field(name) else {
                    return self.fault(name, "a field of the previous step", faults);
                };
                self.within = Some(&field.data_type);
                Some(Some(field.id))
            }
            PathPart::Subscript(text) => {
                let text = text.trim();
                let Some(array) = self.within.and_then(DataType::array) else {
                    return self.fault(text, "an array before the subscript", faults);
                };
                self.within = Some(&array.element);
                match text.parse() {
                    Ok(index) if array.size.admits(index) => Some(Some(index)),
                    Err(_)
                        if !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) =>
                    {
                        Some(None)
                    }
                    _ => self.fault(text, "the index of a row", faults),
                }
            }
        }
    }

    fn fault<T>(&self, step: &str, expected: &'static str, faults: &mut Faults<'_>) -> Option<T> {
        let (event, step) = (self.event.to_string(), step.to_string());
        faults.add(Problem::EventPath { event, step, expected });
        None
    }
}
