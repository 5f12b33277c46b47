//! A draft program: a copy of a running program that changes step by step until it replaces it.
//!
//! Each change is checked individually when it is made, so that a caller with many changes learns
//! which one is invalid. Properties of the whole graph are [checked](crate::check) when the draft
//! is loaded.

use std::collections::BTreeMap;

use forces::model::Target;
use forces::{Class, DataType, Rows, Value};

use super::{Change, ElementError};
use crate::diagnostic::Place;
use crate::lfb::Lfb;
use crate::lfb::learn_search::LEARNT_FROM;
use crate::program::{End, Instance, Link, PREFIX, Program, Source};

/// A program under change.
#[derive(Debug)]
pub struct Draft {
    /// Current state of the draft.
    pub program: Program,
    /// Counters to reset on activation: instance names and component ids.
    pub(super) resets: Vec<(String, u32)>,
    /// Learned rows to delete on activation: instance names, component ids, row indices.
    pub(super) forgets: Vec<(String, u32, u32)>,
    /// Changed components, by instance name.
    touched: BTreeMap<(String, u32), Part>,
    /// Successor blocks updated in advance, by instance name; none if that is not possible.
    pub(super) ahead: BTreeMap<String, Option<Following>>,
    /// Whether instances or links changed.
    is_other_graph: bool,
}

/// The changed part of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Whole rows of a table, each checked when it changed.
    Rows,
    /// Any other part.
    Fields,
}

/// A successor of a running block, updated in advance.
#[derive(Debug)]
pub(super) struct Following {
    block: Lfb,
    /// The only component whose rows change.
    component: u32,
    /// Rows that the block has.
    rows: Rows,
}

impl Following {
    /// Returns the updated block.
    pub(super) fn block(self) -> Option<Lfb> {
        Some(self.block)
    }

    /// Updates the block to other rows. Returns false on failure.
    fn go_on(&mut self, rows: &Rows) -> bool {
        let Following { block, component, rows: before } = self;
        let mut done = true;
        before.differences(rows, |_, old, new| {
            done = done && block.change_row(*component, old, new);
        });
        *before = rows.clone();
        done
    }
}

/// Returns the type of a component.
fn data_type_of(class: &Class, id: u32) -> Option<&DataType> {
    class.component_by_id(id).map(|component| &*component.data_type)
}

/// A counter: index of the instance, component id.
type Counter = (usize, u32);

/// A row: index of the instance, component id, row index.
type Row = (usize, u32, u32);

impl Draft {
    /// Creates a draft without changes.
    pub fn of(program: &Program) -> Draft {
        Draft {
            program: program.clone(),
            resets: Vec::new(),
            forgets: Vec::new(),
            touched: BTreeMap::new(),
            ahead: BTreeMap::new(),
            is_other_graph: false,
        }
    }

    /// Returns true if the only changes are rows of blocks with successors. All other checks of the
    /// program then remain valid.
    pub(super) fn changes_rows_only(&self) -> bool {
        let is_followed = |((name, _), part): (&(String, u32), &Part)| {
            *part == Part::Rows && self.ahead.get(name).is_some_and(Option::is_some)
        };
        !self.is_other_graph && self.touched.iter().all(is_followed)
    }

    /// Changes a setting of an instance.
    pub fn change(&mut self, change: Change) -> Result<(), ElementError> {
        let (Change::Set { instance, path, .. }
        | Change::Merge { instance, path, .. }
        | Change::Delete { instance, path }) = &change;
        let instance = *instance;
        if instance >= self.program.instances.len() {
            return Err(ElementError::Instance(instance));
        }
        let class = self.program.class_of(instance).clone();
        let target = class.target(path).map_err(ElementError::Path)?;
        let Target::Value { component, data_type, access } = target else {
            return Err(ElementError::Access);
        };
        let name = || self.program.instances[instance].name.clone();
        if access.is_resettable() && !matches!(change, Change::Delete { .. }) {
            self.resets.push((name(), component.id));
            return Ok(());
        }
        if !access.is_writable() || data_type.is_alias() {
            return Err(ElementError::Access);
        }
        if let (Change::Delete { .. }, [id, index]) = (&change, &path[..])
            && *index >= LEARNT_FROM
            && data_type_of(&class, *id).is_some_and(|it| it.array().is_some())
        {
            let set = self.program.instances[instance].components.get(id);
            if set.and_then(Value::rows).is_none_or(|rows| !rows.contains_key(index)) {
                self.forgets.push((name(), *id, *index));
                return Ok(());
            }
        }
        let touched = (name(), component.id);
        let components = &mut self.program.instances[instance].components;
        let whole = components.entry(component.id).or_insert_with(|| component.default_value());
        match change {
            Change::Set { path, value, .. } => {
                data_type.check(&value).map_err(ElementError::Value)?;
                let part = if path.len() == 2 { Part::Rows } else { Part::Fields };
                self.touched.entry(touched).and_modify(|it| *it = part.max(*it)).or_insert(part);
                whole.put(&path[1..], value).map_err(|_| ElementError::NotThere)?;
            }
            Change::Merge { path, value, .. } => {
                let is_row = |row: &Value| {
                    data_type.array().is_some_and(|array| array.element.check(row).is_ok())
                };
                let all =
                    path.len() == 1 && value.rows().is_some_and(|all| all.values().all(is_row));
                let part = if all { Part::Rows } else { Part::Fields };
                if !all {
                    data_type.check_partial(&value).map_err(ElementError::Value)?;
                }
                self.touched.entry(touched).and_modify(|it| *it = part.max(*it)).or_insert(part);
                whole.at_mut(&path[1..]).ok_or(ElementError::NotThere)?.merge(value);
            }
            Change::Delete { path, .. } => {
                let part = if path.len() == 2 { Part::Rows } else { Part::Fields };
                self.touched.entry(touched).and_modify(|it| *it = part.max(*it)).or_insert(part);
                whole.take(&path[1..]).ok_or(ElementError::NotThere)?;
            }
        }
        Ok(())
    }

    /// Adds an instance of a class with default settings. Its name consists of the class name and
    /// its number.
    pub fn add_instance(&mut self, class: u32, number: u32) -> Result<(), ElementError> {
        let known = self.program.catalog.class_by_id(class).ok_or(ElementError::NotThere)?;
        let short = known.name.strip_prefix(PREFIX).unwrap_or(&known.name);
        let name = format!("{short}#{number}");
        if self.program.place_of_instance(class, number).is_some()
            || self.program.find(&name).is_some()
        {
            return Err(ElementError::There);
        }
        self.is_other_graph = true;
        self.program.instances.push(Instance {
            name,
            class,
            number,
            components: Default::default(),
            reset: false,
            place: Place::none(),
            places: Default::default(),
        });
        Ok(())
    }

    /// Removes an instance with its links and watches (RFC 5812 section 5.1).
    pub fn remove_instance(&mut self, class: u32, number: u32) -> Result<(), ElementError> {
        let Program { instances, links, watches, .. } = &mut self.program;
        let at = instances.iter().position(|it| (it.class, it.number) == (class, number));
        let at = at.ok_or(ElementError::NotThere)?;
        self.is_other_graph = true;
        instances.remove(at);
        links.retain(|link| link.from.instance != at && link.to.instance != at);
        watches.retain(|watch| watch.source != Source::Instance(at));
        let moved = |instance: &mut usize| *instance -= usize::from(*instance > at);
        for link in links {
            moved(&mut link.from.instance);
            moved(&mut link.to.instance);
        }
        for watch in watches {
            if let Source::Instance(instance) = &mut watch.source {
                moved(instance);
            }
        }
        Ok(())
    }

    /// Adds a link from an output that has none.
    pub fn add_link(&mut self, from: End, to: End) -> Result<(), ElementError> {
        if self.program.link_of(from).is_some() {
            return Err(ElementError::There);
        }
        let outputs = &self.program.class_of(from.instance).outputs;
        let inputs = &self.program.class_of(to.instance).inputs;
        let output = outputs.get(from.port as usize).map(|port| port.group);
        let input = inputs.get(to.port as usize).map(|port| port.group);
        let fits = |group: Option<bool>, end: End| {
            group.is_some_and(|group| {
                end.index == 0 || group && end.index < crate::program::GROUP_MAX
            })
        };
        if !fits(output, from) || !fits(input, to) {
            return Err(ElementError::NotThere);
        }
        self.is_other_graph = true;
        self.program.links.push(Link { from, to, place: Place::none() });
        Ok(())
    }

    /// Removes the link of an output.
    pub fn remove_link(&mut self, from: End) -> Result<(), ElementError> {
        let at = self.program.link_of(from).ok_or(ElementError::NotThere)?;
        self.is_other_graph = true;
        self.program.links.remove(at);
        Ok(())
    }

    /// Updates successors of blocks whose tables changed. `follow` creates the successor of the
    /// block with an index in the running program.
    pub(super) fn prepare_commit(
        &mut self,
        running: &Program,
        follow: impl Fn(usize) -> Option<Lfb>,
    ) {
        for (name, id) in self.touched.keys() {
            let rows_of = |program: &Program| {
                let instance = &program.instances[program.find(name)?];
                Some(instance.components.get(id).and_then(Value::rows).cloned().unwrap_or_default())
            };
            let Some(rows) = rows_of(&self.program) else { continue };
            let ahead = self.ahead.entry(name.clone()).or_insert_with(|| {
                let block = follow(running.find(name)?)?;
                Some(Following { block, component: *id, rows: rows_of(running)? })
            });
            let goes_on = |it: &mut Following| it.component == *id && it.go_on(&rows);
            if !ahead.as_mut().is_some_and(goes_on) {
                *ahead = None;
            }
        }
    }

    /// Returns the counters to reset and the rows to delete, with instance indices.
    pub(super) fn places(&self) -> (Vec<Counter>, Vec<Row>) {
        let find = |name: &str| self.program.find(name);
        let resets = self.resets.iter().filter_map(|(name, id)| Some((find(name)?, *id)));
        let forgets = self.forgets.iter();
        let forgets = forgets.filter_map(|(name, id, row)| Some((find(name)?, *id, *row)));
        (resets.collect(), forgets.collect())
    }

    /// Checks changed components as a whole: keys and mandatory parts.
    pub(super) fn is_whole(&self, before: &Program) -> Result<(), ElementError> {
        for ((name, id), part) in &self.touched {
            let Some(instance) = self.program.find(name) else { continue };
            let component = self.program.class_of(instance).component_by_id(*id);
            let value = self.program.instances[instance].components.get(id);
            let (Some(component), Some(value)) = (component, value) else { continue };
            let old = before.find(name).and_then(|at| before.instances[at].components.get(id));
            let checked = match old {
                Some(_) if *part == Part::Rows => component.data_type.check_rows(value),
                Some(old) => component.data_type.check_changed(old, value),
                None => component.data_type.check(value),
            };
            checked.map_err(ElementError::Value)?;
        }
        Ok(())
    }
}
