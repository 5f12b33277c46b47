//! An instance's components as its block reads them.
//!
//! Whatever cannot be used is a problem with the place where it is set; the block goes on with
//! something harmless, and the program is refused.

use forces::{Fields, Rows, Value};

use super::Slots;
use crate::condition::Operand;
use crate::frames::FrameSet;
use crate::problem::{Code, Problems};
use crate::program::{Program, text};

/// What a block is made from.
pub struct Setup<'a> {
    /// The program.
    pub program: &'a Program,
    /// The block's place in it.
    pub instance: usize,
    /// Indices with a link, ascending, for each output.
    pub linked: &'a [Vec<u32>],
    /// Where metadata are.
    pub slots: &'a Slots,
    /// A secret for hashing.
    pub seed: u64,
    /// What is wrong.
    pub problems: &'a mut Problems,
}

/// A row, or a struct, with its path.
pub struct Row<'v> {
    /// Component and indices.
    pub path: Vec<u32>,
    /// Its index.
    pub index: u32,
    fields: Option<&'v Fields>,
}

impl<'v> Row<'v> {
    /// A field that is a number; zero if there is none.
    pub fn number(&self, field: u32) -> u32 {
        let value = self.fields.and_then(|fields| fields.get(field)).and_then(Value::unsigned);
        u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// A field that is text; empty if there is none.
    pub fn text(&self, field: u32) -> &'v str {
        self.fields.and_then(|fields| fields.get(field)).and_then(Value::text).unwrap_or("")
    }

    /// A field that is false or true.
    pub fn flag(&self, field: u32) -> bool {
        let value = self.fields.and_then(|fields| fields.get(field)).and_then(Value::boolean);
        value.unwrap_or(false)
    }

    /// A field of so many octets; zeros if there are others.
    pub fn octets<const N: usize>(&self, field: u32) -> [u8; N] {
        let value = self.fields.and_then(|fields| fields.get(field));
        value.and_then(Value::octets).unwrap_or([0; N])
    }
}

impl<'a> Setup<'a> {
    /// How frames are read.
    pub fn frames(&self) -> &'a FrameSet {
        &self.program.frames
    }

    /// The instance's number among those of its class.
    pub fn number_of_instance(&self) -> u32 {
        self.program.instances[self.instance].number
    }

    /// A component as it is set, or as its class says.
    pub fn value(&self, component: u32) -> Option<Value> {
        let set = self.program.instances[self.instance].components.get(&component);
        let class = self.program.class_of(self.instance);
        let default = || Some(class.component_by_id(component)?.default_value());
        set.cloned().or_else(default)
    }

    /// A component that is a number.
    pub fn unsigned(&self, component: u32) -> u64 {
        self.value(component).and_then(|value| value.unsigned()).unwrap_or(0)
    }

    /// The same, of 32 bits.
    pub fn number(&self, component: u32) -> u32 {
        u32::try_from(self.unsigned(component)).unwrap_or(u32::MAX)
    }

    /// A component that is false or true.
    pub fn flag(&self, component: u32) -> bool {
        self.value(component).and_then(|value| value.boolean()).unwrap_or(false)
    }

    /// A component that is text.
    pub fn text(&self, component: u32) -> String {
        self.value(component).and_then(|value| Some(value.text()?.to_owned())).unwrap_or_default()
    }

    /// The rows of a component, as it is set.
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

    /// Says that something at a path cannot be used.
    pub fn wrong(&mut self, path: &[u32], what: impl Into<String>, hint: &str) {
        self.refuse(Code::Value, path, what, hint);
    }

    /// The same, with a code.
    pub fn refuse(&mut self, code: Code, path: &[u32], what: impl Into<String>, hint: &str) {
        let program = self.program;
        let name = &program.instances[self.instance].name;
        let shown = program.class_of(self.instance).show_path(path).to_string();
        let place = program.place_of(self.instance, path);
        self.problems.add(code, place, format!("{name}/{shown}"), what, hint);
    }

    /// The operands that a component names; none if it is empty and `optional`.
    pub fn key(&mut self, component: u32, optional: bool) -> Vec<Operand> {
        let text = self.text(component);
        if optional && text.trim().is_empty() {
            return Vec::new();
        }
        text::key(&text, &self.program.frames, &self.program.catalog).unwrap_or_else(|what| {
            self.wrong(&[component], what, "name fields as in IPv4.src, or metadata as meta:Name");
            Vec::new()
        })
    }

    /// The one operand that text at a path names.
    pub fn operand(&mut self, path: &[u32], text: &str) -> Option<Operand> {
        match text::operand(text, &self.program.frames, &self.program.catalog) {
            Ok(operand) => Some(operand),
            Err(what) => {
                self.wrong(path, what, "name a field as in IPv4.src, or metadata as meta:Name");
                None
            }
        }
    }

    /// The slot of the metadatum that a component names by number; none for number 0.
    pub fn meta_slot(&mut self, component: u32) -> Option<usize> {
        let id = self.number(component);
        self.slot(&[component], id)
    }

    /// The slot of a metadatum; none for number 0.
    pub fn slot(&mut self, path: &[u32], id: u32) -> Option<usize> {
        let slot = self.slots.slot(id);
        if slot.is_none() && id != 0 {
            let what = format!("no library defines metadatum {id}");
            self.refuse(Code::UnknownMetadata, path, what, "metadata are named in libraries");
        }
        slot
    }
}
