//! Settings of the instances of a `<lfb>`.
//!
//! - `set` gives a component a value.
//! - `row` adds a row to a table.
//! - `op` is a short form for a row of Edit's operations.
//! - `each` gives every instance its own value.
//!
//! Values are names of enumerations and metadata, numbers, addresses or text, depending on the
//! type.

use std::collections::BTreeSet;
use std::sync::Arc;

use forces::model::{Base, Kind, Target};
use forces::{Catalog, Class, DataType, Value};
use roxmltree::Node;

use crate::diagnostic::{Code, Place};
use crate::program::{Instance, PREFIX, VALUES_MAX};
use crate::xml::Reader;

/// Returns the name most similar to an unknown one, as a hint.
pub fn near<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let alike = |name: &str| {
        let plain = |text: &str| text.trim_start_matches(PREFIX).to_ascii_lowercase();
        let (a, b) = (plain(name), plain(wrong));
        let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        (same * 2).saturating_sub(a.len().abs_diff(b.len()))
    };
    match names.map(|name| (alike(name), name)).max_by_key(|(score, _)| *score) {
        Some((score, name)) if score >= 4 => {
            format!("use \"{}\"", name.trim_start_matches(PREFIX))
        }
        _ => String::new(),
    }
}

/// Reader for the settings of a `<lfb>`.
pub struct Settings<'r, 's, 'a> {
    /// The document.
    pub reader: &'r mut Reader<'s, 'a>,
    /// Metadata by name.
    pub catalog: Arc<Catalog>,
    /// Class of all instances.
    pub class: Arc<Class>,
    /// Their name.
    pub id: String,
    /// All instances.
    pub instances: &'r mut [Instance],
    /// Number of further values that all instances may get.
    pub room: &'r mut usize,
}

/// A value in the document: one for all instances, or one for each.
struct ValueText {
    texts: Vec<String>,
    place: Place,
}

impl ValueText {
    fn of(&self, instance: usize) -> &str {
        self.texts.get(instance).unwrap_or(&self.texts[0])
    }
}

impl Settings<'_, '_, '_> {
    /// Reads the contents of a `<lfb>`.
    pub fn read(&mut self, node: Node<'_, '_>) {
        for child in self.reader.children(node) {
            match child.tag_name().name() {
                "set" | "row" | "op" if !self.has_room(child) => return,
                "set" => self.set(child),
                "row" => self.row(child),
                "op" => self.operation(child),
                _ => self.reader.unknown(child, "use <set>, <row> or <op>"),
            }
        }
    }

    /// Returns true if all instances have room for the values of an element, and reduces the room.
    fn has_room(&mut self, node: Node<'_, '_>) -> bool {
        let values = 1 + node.children().filter(Node::is_element).count();
        let left = self.room.checked_sub(values.saturating_mul(self.instances.len()));
        if left.is_none() {
            let what = format!("too many values and rows: at most {VALUES_MAX}");
            let hint = "set large tables over ForCES";
            self.reader.wrong(Code::XmlLimit, node, &self.id, what, hint);
        }
        *self.room = left.unwrap_or(0);
        left.is_some()
    }

    fn wrong(&mut self, code: Code, place: &Place, path: &str, what: String, hint: &str) {
        let path = format!("{}/{path}", self.id);
        self.reader.problems.add(code, place, path, what, hint);
    }

    /// Returns the value of an element: its text, or the words of `each`.
    fn said(&mut self, node: Node<'_, '_>) -> Option<ValueText> {
        if let Some(each) = node.attribute("each") {
            let texts: Vec<String> = each.split_whitespace().map(str::to_owned).collect();
            let place = self.reader.place_of(node, "each");
            if texts.len() != self.instances.len() || texts.is_empty() {
                let (values, count) = (texts.len(), self.instances.len());
                let what = format!("{values} values for {count} instances");
                self.wrong(Code::Range, &place, "each", what, "write one value for each instance");
                return None;
            }
            return Some(ValueText { texts, place });
        }
        let text = node.text().unwrap_or_default();
        let trimmed = text.trim();
        let inner = node.children().find(|child| child.is_text()).map(|child| child.range().start);
        let at = inner.map(|start| start + (text.len() - text.trim_start().len()));
        let place = self.reader.source.place(at.unwrap_or(node.range().start));
        if let Some(element) = node.children().find(|child| child.is_element()) {
            self.reader.unknown(element, "write only a value");
            return None;
        }
        Some(ValueText { texts: vec![trimmed.to_owned()], place })
    }

    fn set(&mut self, node: Node<'_, '_>) {
        self.reader.only(node, &["name", "each"]);
        let Some(name) = self.reader.required(node, "name") else { return };
        let place = self.reader.place_of(node, "name");
        let Some((path, data_type)) = self.path(name, &place) else { return };
        let Some(said) = self.said(node) else { return };
        for at in 0..self.instances.len() {
            let Some(value) = self.value(&data_type, name, said.of(at), &said.place) else {
                return;
            };
            if self.instances[at].places.contains_key(&path) {
                let what = format!("\"{name}\" is set twice");
                return self.wrong(Code::Duplicate, &place, name, what, "");
            }
            self.put(at, &path, value);
            Arc::make_mut(&mut self.instances[at].places).insert(path.clone(), said.place.clone());
        }
    }

    /// Stores a value, on top of the defaults if it is only a part.
    fn put(&mut self, at: usize, path: &[u32], value: Value) {
        let Some(component) = self.class.component_by_id(path[0]) else { return };
        let stored = self.instances[at].components.entry(path[0]);
        let stored = stored.or_insert_with(|| component.default_value());
        // The path is valid for the class, so only a part of a missing row can fail.
        let _ = stored.put(&path[1..], value);
    }

    /// Returns path and type of a writable component, or of a part of it.
    fn path(&mut self, name: &str, place: &Place) -> Option<(Vec<u32>, Arc<DataType>)> {
        let path = match self.class.path(name) {
            Ok(path) => path,
            Err(fault) => {
                let names = self.class.components.iter().map(|component| component.name.as_str());
                let hint = near(name, names);
                self.wrong(Code::UnknownComponent, place, name, fault.to_string(), &hint);
                return None;
            }
        };
        let class = self.class.clone();
        match class.target(&path) {
            Ok(Target::Value { data_type, access, .. }) if access.is_writable() => {
                Some((path, data_type.clone()))
            }
            Ok(Target::Value { .. }) => {
                let what = format!("\"{name}\" is read-only");
                self.wrong(Code::ReadOnly, place, name, what, "remove it");
                None
            }
            _ => {
                let what = format!("\"{name}\" is not a component");
                self.wrong(Code::UnknownComponent, place, name, what, "");
                None
            }
        }
    }

    fn row(&mut self, node: Node<'_, '_>) {
        self.reader.only(node, &["table", "index", "prio", "each"]);
        let Some(table) = self.reader.required(node, "table") else { return };
        let mut cells = Vec::new();
        if let Some(priority) = node.attribute("prio") {
            let place = self.reader.place_of(node, "prio");
            cells.push((
                "Priority".to_owned(),
                ValueText { texts: vec![priority.to_owned()], place },
            ));
        }
        let elements = node.children().filter(Node::is_element).count();
        if elements == 0 {
            let Some(said) = self.said(node) else { return };
            if node.has_attribute("each") || !said.texts[0].is_empty() {
                cells.push((String::new(), said));
            }
        } else {
            for child in self.reader.children(node) {
                let name = match child.tag_name().name() {
                    "c" => {
                        self.reader.only(child, &["n", "each"]);
                        self.reader.required(child, "n")
                    }
                    "when" => {
                        self.reader.only(child, &[]);
                        Some("When")
                    }
                    _ => {
                        self.reader.unknown(child, "use <c n=\"...\"> or <when>");
                        None
                    }
                };
                let Some(name) = name else { continue };
                let said = self.said(child);
                cells.extend(said.map(|said| (name.to_owned(), said)));
            }
        }
        self.add_row(node, table, &cells);
    }

    fn operation(&mut self, node: Node<'_, '_>) {
        const ATTRIBUTES: [(&str, &str); 7] = [
            ("do", "Do"),
            ("frame", "Frame"),
            ("after", "After"),
            ("field", "Field"),
            ("to", "To"),
            ("from", "From"),
            ("next", "Next"),
        ];
        self.reader.only(node, &ATTRIBUTES.map(|(attribute, _)| attribute));
        if self.reader.required(node, "do").is_none() {
            return;
        }
        let mut cells = Vec::new();
        for (attribute, field) in ATTRIBUTES {
            if let Some(text) = node.attribute(attribute) {
                let place = self.reader.place_of(node, attribute);
                cells.push((field.to_owned(), ValueText { texts: vec![text.to_owned()], place }));
            }
        }
        self.add_row(node, "Ops", &cells);
    }

    /// Adds a row to a table of every instance.
    fn add_row(&mut self, node: Node<'_, '_>, table: &str, cells: &[(String, ValueText)]) {
        let place = self.reader.place_of(node, "table");
        let Some((path, data_type)) = self.path(table, &place) else { return };
        let Some(array) = data_type.array().cloned() else {
            let what = format!("\"{table}\" is not a table");
            return self.wrong(Code::UnknownComponent, &place, table, what, "use <set>");
        };
        let wanted = match node.attribute("index") {
            None => None,
            Some(_) => match self.reader.number_u32(node, "index") {
                Some(index) => Some(index),
                None => return,
            },
        };
        for at in 0..self.instances.len() {
            let stored = self.instances[at].components.get(&path[0]);
            let rows = stored.and_then(|value| value.at(&path[1..])).and_then(Value::rows);
            let last = rows.and_then(|rows| rows.last_key_value()).map(|(index, _)| *index);
            let index = wanted.or(match last {
                None => Some(0),
                Some(last) => last.checked_add(1),
            });
            let Some(index) = index else {
                let what = "the last row has the maximum index".to_owned();
                return self.wrong(Code::Range, &place, table, what, "give the row an index");
            };
            let shown = format!("{table}[{index}]");
            if rows.is_some_and(|rows| rows.contains_key(&index)) {
                let what = format!("duplicate row {index}");
                return self.wrong(Code::Duplicate, &place, &shown, what, "");
            }
            let mut row_path = path.clone();
            row_path.push(index);
            let here = self.reader.place(node);
            Arc::make_mut(&mut self.instances[at].places).insert(row_path.clone(), here);
            let Some(row) = self.row_value(&array.element, &shown, cells, (at, &row_path)) else {
                return;
            };
            self.put(at, &row_path, row);
        }
    }

    /// Builds the value of a row. Missing and invalid cells have the default of the type.
    fn row_value(
        &mut self,
        element: &Arc<DataType>,
        shown: &str,
        cells: &[(String, ValueText)],
        (at, path): (usize, &[u32]),
    ) -> Option<Value> {
        let fields = match &element.target().kind {
            Kind::Struct(fields) => fields.clone(),
            _ => match cells {
                [(name, said)] if name.is_empty() => {
                    return self.value(element, shown, said.of(at), &said.place);
                }
                _ => {
                    let place = self.instances[at].places[path].clone();
                    let what = "a row of this table is a single value".to_owned();
                    self.wrong(Code::Value, &place, shown, what, "write it between the tags");
                    return None;
                }
            },
        };
        let mut row = element.default_value();
        let mut seen = BTreeSet::new();
        for (name, said) in cells {
            let Some(field) = fields.iter().find(|field| field.name == *name) else {
                let names = fields.iter().map(|field| field.name.as_str());
                let hint = near(name, names);
                let what = if name.is_empty() {
                    "a row of this table has fields".to_owned()
                } else {
                    format!("a row has no field \"{name}\"")
                };
                self.wrong(Code::UnknownComponent, &said.place, shown, what, &hint);
                continue;
            };
            if !seen.insert(field.id) {
                let what = format!("\"{name}\" is given twice");
                self.wrong(Code::Duplicate, &said.place, shown, what, "");
                continue;
            }
            let shown = format!("{shown}.{name}");
            let value = self.value(&field.data_type, &shown, said.of(at), &said.place);
            let Some(value) = value else { continue };
            let _ = row.put(&[field.id], value);
            let place = path.iter().copied().chain([field.id]).collect();
            Arc::make_mut(&mut self.instances[at].places).insert(place, said.place.clone());
        }
        Some(row)
    }

    /// Parses a value of a type.
    fn value(&mut self, of: &DataType, path: &str, text: &str, place: &Place) -> Option<Value> {
        let fault = match of.parse(text) {
            Ok(value) => return Some(value),
            Err(fault) => fault,
        };
        let number = of.atomic().is_some_and(|atomic| atomic.base == Base::Uint32);
        let word = text.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
        if number && word && takes_metadata(of, path) {
            if let Some(metadata) = self.catalog.metadata(text) {
                return Some(Value::Unsigned(metadata.id.into()));
            }
            let what = format!("no metadata item \"{text}\"");
            let names = self.catalog.all_metadata().map(|metadata| metadata.name.clone());
            let names: Vec<String> = names.collect();
            let hint = near(text, names.iter().map(String::as_str));
            self.wrong(Code::UnknownMetadata, place, path, what, &hint);
            return None;
        }
        self.wrong(Code::Value, place, path, fault.to_string(), "");
        None
    }
}

/// Returns true if a number is a metadata id, so that a name can replace it.
fn takes_metadata(of: &DataType, path: &str) -> bool {
    of.name.as_deref() == Some("MetadataRef") || path == "MetadataID"
}
