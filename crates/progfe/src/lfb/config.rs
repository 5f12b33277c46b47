//! Access of a block to the components of its instance.
//!
//! An invalid value is a problem with its place in the document. The block continues with a
//! harmless value, and the program is rejected.

use forces::{Fields, Rows, Value};

use super::Slots;
use crate::condition::Operand;
use crate::diagnostic::{Code, Problems};
use crate::frames::FrameSet;
use crate::program::{Program, text};

/// Inputs for the creation of a block.
pub struct Setup<'a> {
    /// The program.
    pub program: &'a Program,
    /// Index of the block in the program.
    pub instance: usize,
    /// Indices with a link, ascending, for each output.
    pub linked: &'a [Vec<u32>],
    /// Slots of the metadata.
    pub slots: &'a Slots,
    /// A secret for hashing.
    pub seed: u64,
    /// Problems found so far.
    pub problems: &'a mut Problems,
}

/// A row or struct with its path.
pub struct Row<'v> {
    /// Component and indices.
    pub path: Vec<u32>,
    /// Index of the row.
    pub index: u32,
    fields: Option<&'v Fields>,
}

impl<'v> Row<'v> {
    /// Returns a number field; zero if absent.
    pub fn number(&self, field: u32) -> u32 {
        let value = self.fields.and_then(|fields| fields.get(field)).and_then(Value::unsigned);
        u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// Returns a text field; empty if absent.
    pub fn text(&self, field: u32) -> &'v str {
        self.fields.and_then(|fields| fields.get(field)).and_then(Value::text).unwrap_or("")
    }

    /// Returns a boolean field.
    pub fn flag(&self, field: u32) -> bool {
        let value = self.fields.and_then(|fields| fields.get(field)).and_then(Value::boolean);
        value.unwrap_or(false)
    }

    /// Returns an octet field of length `N`; zeros if its length differs.
    pub fn octets<const N: usize>(&self, field: u32) -> [u8; N] {
        let value = self.fields.and_then(|fields| fields.get(field));
        value.and_then(Value::octets).unwrap_or([0; N])
    }
}

impl<'a> Setup<'a> {
    /// Returns the frame formats.
    pub fn frames(&self) -> &'a FrameSet {
        &self.program.frames
    }

    /// Returns the number of the instance in its class.
    pub fn number_of_instance(&self) -> u32 {
        self.program.instances[self.instance].number
    }

    /// Returns the value of a component, or the default of its class.
    pub fn value(&self, component: u32) -> Option<Value> {
        let set = self.program.instances[self.instance].components.get(&component);
        let class = self.program.class_of(self.instance);
        let default = || Some(class.component_by_id(component)?.default_value());
        set.cloned().or_else(default)
    }

    /// Returns a component as a number.
    pub fn unsigned(&self, component: u32) -> u64 {
        self.value(component).and_then(|value| value.unsigned()).unwrap_or(0)
    }

    /// Returns a component as a 32-bit number.
    pub fn number(&self, component: u32) -> u32 {
        u32::try_from(self.unsigned(component)).unwrap_or(u32::MAX)
    }

    /// Returns a component as a boolean.
    pub fn flag(&self, component: u32) -> bool {
        self.value(component).and_then(|value| value.boolean()).unwrap_or(false)
    }

    /// Returns a component as text.
    pub fn text(&self, component: u32) -> String {
        self.value(component).and_then(|value| Some(value.text()?.to_owned())).unwrap_or_default()
    }

    /// Returns the configured rows of a component.
    pub fn rows(&self, component: u32) -> Vec<Row<'a>> {
        static NONE: Rows = Rows::new();
        let set = self.program.instances[self.instance].components.get(&component);
        let rows = set.and_then(Value::rows).unwrap_or(&NONE);
        let row = |(&index, value): (&u32, &'a Value)| Row {
            path: vec![component, index],
            index,
            fields: value.fields(),
        };
        rows.iter().map(row).collect()
    }

    /// Reports an invalid value at a path.
    pub fn wrong(&mut self, path: &[u32], what: impl Into<String>, hint: &str) {
        self.refuse(Code::Value, path, what, hint);
    }

    /// Reports a problem at a path, with a code.
    pub fn refuse(&mut self, code: Code, path: &[u32], what: impl Into<String>, hint: &str) {
        let program = self.program;
        let name = &program.instances[self.instance].name;
        let shown = program.class_of(self.instance).show_path(path).to_string();
        let place = program.place_of(self.instance, path);
        self.problems.add(code, place, format!("{name}/{shown}"), what, hint);
    }

    /// Parses the operands in a component. Returns none if it is empty and `optional`.
    pub fn key(&mut self, component: u32, optional: bool) -> Vec<Operand> {
        let text = self.text(component);
        if optional && text.trim().is_empty() {
            return Vec::new();
        }
        text::key(&text, &self.program.frames, &self.program.catalog).unwrap_or_else(|what| {
            self.wrong(&[component], what, "name fields like IPv4.src, or metadata like meta:Name");
            Vec::new()
        })
    }

    /// Parses one operand from the text at a path.
    pub fn operand(&mut self, path: &[u32], text: &str) -> Option<Operand> {
        match text::operand(text, &self.program.frames, &self.program.catalog) {
            Ok(operand) => Some(operand),
            Err(what) => {
                self.wrong(path, what, "name a field like IPv4.src, or metadata like meta:Name");
                None
            }
        }
    }

    /// Returns the slot of the metadata item whose id a component contains; none for id 0.
    pub fn meta_slot(&mut self, component: u32) -> Option<usize> {
        let id = self.number(component);
        self.slot(&[component], id)
    }

    /// Returns the slot of a metadata item; none for id 0.
    pub fn slot(&mut self, path: &[u32], id: u32) -> Option<usize> {
        let slot = self.slots.slot(id);
        if slot.is_none() && id != 0 {
            let what = format!("no library defines metadata ID {id}");
            self.refuse(Code::UnknownMetadata, path, what, "use an ID from the libraries");
        }
        slot
    }
}
