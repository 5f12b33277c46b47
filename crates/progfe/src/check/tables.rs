//! Outputs and keys in tables.
//!
//! - The rows of a table have different content keys (RFC 5812 section 4.5.3).
//! - A row that sends frames to an output of a group refers to a linked one. Otherwise frames would
//!   be lost silently.

use std::collections::{BTreeMap, BTreeSet};

use forces::model::{Array, Kind};
use forces::{Component, Rows, Value};

use super::About;
use crate::diagnostic::{Code, Problems};
use crate::program::{End, Program};

/// Fields that refer to an output of a group.
const INDICES: &[&str] = &["OutputIndex", "LFBOutputSelectIndex"];

/// Adds rows with the same content key.
pub fn keys(program: &Program, problems: &mut Problems) {
    for (at, instance) in program.instances.iter().enumerate() {
        let class = program.class_of(at).clone();
        let mut about = About::new(program, at, problems);
        for (id, value) in &instance.components {
            let Some(component) = class.component_by_id(*id) else { continue };
            if let (Some(array), Some(rows)) = (component.data_type.array(), value.rows()) {
                same_keys(&mut about, component, array, rows);
            }
        }
    }
}

/// Adds rows and components that refer to outputs without a link.
pub fn outputs(program: &Program, problems: &mut Problems) {
    let linked: BTreeSet<End> = program.links.iter().map(|link| link.from).collect();
    for (at, instance) in program.instances.iter().enumerate() {
        let class = program.class_of(at).clone();
        let mut about = About::new(program, at, problems);
        let mut groups = (0..).zip(&class.outputs).filter(|(_, output)| output.group);
        let Some((port, output)) = groups.next() else { continue };
        let is_linked = |index| linked.contains(&End { instance: at, port, index });
        for (id, value) in &instance.components {
            let Some(component) = class.component_by_id(*id) else { continue };
            if let (Some(array), Some(rows)) = (component.data_type.array(), value.rows()) {
                indices(&mut about, component, array, rows, &is_linked);
            } else if component.name == "DefaultIndex" {
                let index = value.unsigned().unwrap_or(0) as u32;
                if !is_linked(index) {
                    let what = format!("{}[{index}] is not linked", output.name);
                    about.wrong(
                        Code::DispatchUnlinked,
                        &[*id],
                        what,
                        "link it, or use another output",
                    );
                }
            }
        }
    }
}

fn same_keys(about: &mut About<'_>, component: &Component, array: &Array, rows: &Rows) {
    for key in &array.keys {
        let mut seen: BTreeMap<Vec<&Value>, u32> = BTreeMap::new();
        for (index, row) in rows {
            let content: Vec<&Value> = key.fields.iter().filter_map(|path| row.at(path)).collect();
            if content.len() != key.fields.len() {
                continue;
            }
            if let Some(first) = seen.get(&content) {
                let what = format!("row {first} has the same key");
                about.wrong(
                    Code::DuplicateKey,
                    &[component.id, *index],
                    what,
                    "remove one of the rows",
                );
            } else {
                seen.insert(content, *index);
            }
        }
    }
}

fn indices(
    about: &mut About<'_>,
    component: &Component,
    array: &Array,
    rows: &Rows,
    is_linked: &dyn Fn(u32) -> bool,
) {
    let Kind::Struct(fields) = &array.element.target().kind else { return };
    let Some(field) = fields.iter().find(|field| INDICES.contains(&field.name.as_str())) else {
        return;
    };
    for (index, row) in rows {
        let output = row.step(field.id).and_then(Value::unsigned).unwrap_or(0) as u32;
        if !is_linked(output) {
            let what = format!("output {output} is not linked");
            let path = [component.id, *index, field.id];
            about.wrong(Code::DispatchUnlinked, &path, what, "link it, or use another output");
        }
    }
}
