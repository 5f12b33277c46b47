//! Instances and links as FEObject's tables LFBSelectors and LFBTopology (RFC 5812 section 5.1).
//!
//! - The index of a row is stable while its instance or link exists.
//! - A control element chooses the index of a row that it creates. Other new rows get the index
//!   after the largest existing one.
//! - Creating a row creates the instance or link, and deleting the row deletes it. Rows cannot be
//!   changed in place.

use std::collections::BTreeMap;

use forces::association::Change;
use forces::model::value::Value;
use forces::wire::ResultCode;

use super::code_of;
use crate::element::Draft;
use crate::program::{End, INSTANCES_MAX, LINKS_MAX, Program};

/// Class id of FEObject.
pub const FE_OBJECT: u32 = 1;
/// Component id of LFBTopology.
const TOPOLOGY: u32 = 1;
/// Component id of LFBSelectors.
const SELECTORS: u32 = 2;

/// An instance: class and number.
type Named = (u32, u32);
/// An output: instance, port group, index.
type Output = (Named, u32, u32);

/// Row index of each instance and link.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    selectors: BTreeMap<u32, Named>,
    links: BTreeMap<u32, (Output, Output)>,
}

fn named(program: &Program, end: End) -> Output {
    let instance = &program.instances[end.instance];
    ((instance.class, instance.number), end.port, end.index)
}

/// Deletes rows of removed items and assigns rows to new ones.
fn follow<T: Ord + Copy>(rows: &mut BTreeMap<u32, T>, all: impl Iterator<Item = T>) {
    let mut new: std::collections::BTreeSet<T> = all.collect();
    rows.retain(|_, known| new.remove(known));
    let mut next = rows.last_key_value().map_or(0, |(index, _)| index.saturating_add(1));
    for it in new {
        rows.insert(next, it);
        next = next.saturating_add(1);
    }
}

impl Numbers {
    /// Updates the rows to a program.
    pub fn follow(&mut self, program: &Program) {
        follow(&mut self.selectors, program.instances.iter().map(|it| (it.class, it.number)));
        let links = program.links.iter();
        let links = links.map(|link| (named(program, link.from), named(program, link.to)));
        follow(&mut self.links, links);
    }

    /// Returns the value at a path of FEObject.
    pub fn get(&self, program: &Program, path: &[u32]) -> Result<Value, ResultCode> {
        let mut numbers = self.clone();
        numbers.follow(program);
        let whole = match path.first() {
            Some(&SELECTORS) => {
                let row = |(index, of): (&u32, &Named)| (*index, selector(*of));
                Value::Array(numbers.selectors.iter().map(row).collect())
            }
            Some(&TOPOLOGY) => {
                let row = |(index, (from, to)): (&u32, &(Output, Output))| {
                    let fields = [
                        (1, selector(from.0)),
                        (2, number(from.1)),
                        (3, number(from.2)),
                        (4, selector(to.0)),
                        (5, number(to.1)),
                        (6, number(to.2)),
                    ];
                    (*index, Value::struct_of(fields))
                };
                Value::Array(numbers.links.iter().map(row).collect())
            }
            _ => return Err(ResultCode::INVALID_PATH),
        };
        whole.at(&path[1..]).cloned().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)
    }
}

fn number(number: u32) -> Value {
    Value::Unsigned(number.into())
}

fn selector((class, instance): Named) -> Value {
    Value::struct_of([(1, number(class)), (2, number(instance))])
}

fn read_number(value: &Value, id: u32) -> Option<u32> {
    u32::try_from(value.step(id)?.unsigned()?).ok()
}

fn read_selector(value: &Value) -> Option<Named> {
    Some((read_number(value, 1)?, read_number(value, 2)?))
}

fn read_link(row: &Value) -> Option<(Output, Output)> {
    let from = (read_selector(row.step(1)?)?, read_number(row, 2)?, read_number(row, 3)?);
    let to = (read_selector(row.step(4)?)?, read_number(row, 5)?, read_number(row, 6)?);
    Some((from, to))
}

/// Stages a change of one of the tables.
pub fn stage(draft: &mut Draft, numbers: &mut Numbers, change: Change) -> Result<(), ResultCode> {
    let path = change.place().path.clone();
    match (path[..].split_first(), change) {
        (Some((&table, [])), Change::Set { value, .. }) => {
            let gone: Vec<u32> = match table {
                SELECTORS => numbers.selectors.keys().copied().collect(),
                _ => numbers.links.keys().copied().collect(),
            };
            let rows = value.rows().ok_or(ResultCode::INVALID_PARAMETERS)?;
            // Unchanged rows retain their state.
            for index in gone.iter().filter(|index| !rows.contains_key(index)) {
                remove(draft, numbers, table, *index)?;
            }
            rows.iter().try_for_each(|(index, row)| add(draft, numbers, table, *index, row))
        }
        (Some((&table, [])), Change::Merge { value, .. }) => {
            let rows = value.rows().ok_or(ResultCode::INVALID_PARAMETERS)?;
            rows.iter().try_for_each(|(index, row)| add(draft, numbers, table, *index, row))
        }
        (Some((&table, &[index])), Change::Set { value, .. }) => {
            add(draft, numbers, table, index, &value)
        }
        (Some((&table, &[index])), Change::Delete { .. }) => remove(draft, numbers, table, index),
        // A changed part of a row would denote another instance or link.
        _ => Err(ResultCode::NOT_SUPPORTED),
    }
}

fn add(
    draft: &mut Draft,
    numbers: &mut Numbers,
    table: u32,
    index: u32,
    row: &Value,
) -> Result<(), ResultCode> {
    let wrong = ResultCode::INVALID_PARAMETERS;
    let said = |error| code_of(&error);
    if table == SELECTORS {
        let (class, instance) = read_selector(row).ok_or(wrong)?;
        match numbers.selectors.get(&index) {
            Some(there) if *there == (class, instance) => return Ok(()),
            Some(_) => return Err(ResultCode::EXISTS),
            None if numbers.selectors.len() >= INSTANCES_MAX => {
                return Err(ResultCode::MEMORY_ERROR);
            }
            None => {}
        }
        if draft.program.catalog.class_by_id(class).is_none() {
            return Err(ResultCode::LFB_UNKNOWN);
        }
        draft.add_instance(class, instance).map_err(said)?;
        numbers.selectors.insert(index, (class, instance));
        return Ok(());
    }
    let (from, to) = read_link(row).ok_or(wrong)?;
    match numbers.links.get(&index) {
        Some(there) if *there == (from, to) => return Ok(()),
        Some(_) => return Err(ResultCode::EXISTS),
        None if numbers.links.len() >= LINKS_MAX => return Err(ResultCode::MEMORY_ERROR),
        None => {}
    }
    let end = |((class, instance), port, index): Output| {
        let instance = draft.program.place_of_instance(class, instance);
        Ok(End { instance: instance.ok_or(ResultCode::INSTANCE_NOT_FOUND)?, port, index })
    };
    let (from_end, to_end) = (end(from)?, end(to)?);
    draft.add_link(from_end, to_end).map_err(said)?;
    numbers.links.insert(index, (from, to));
    Ok(())
}

fn remove(
    draft: &mut Draft,
    numbers: &mut Numbers,
    table: u32,
    index: u32,
) -> Result<(), ResultCode> {
    let said = |error| code_of(&error);
    if table == SELECTORS {
        let of = numbers.selectors.remove(&index).ok_or(ResultCode::NOT_FOUND)?;
        numbers.links.retain(|_, (from, to)| from.0 != of && to.0 != of);
        return draft.remove_instance(of.0, of.1).map_err(said);
    }
    let (((class, instance), port, at), _) =
        numbers.links.remove(&index).ok_or(ResultCode::NOT_FOUND)?;
    let instance = draft.program.place_of_instance(class, instance);
    let instance = instance.ok_or(ResultCode::INSTANCE_NOT_FOUND)?;
    draft.remove_link(End { instance, port, index: at }).map_err(said)
}
