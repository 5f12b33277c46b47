//! A small in-memory element for tests, with instances of the shipped classes.

use std::collections::BTreeMap;

use super::element::{Change, Element, Place};
use crate::library;
use crate::model::Catalog;
use crate::model::value::Value;
use crate::wire::{Redirect, ResultCode, data};

/// Components by instance.
type Instances = BTreeMap<(u32, u32), BTreeMap<u32, Value>>;

pub struct Memory {
    catalog: Catalog,
    pub now: Instances,
    staged: Option<Instances>,
    before: Option<Instances>,
    pub forwards: bool,
    pub redirected: Vec<Redirect>,
    /// Result of the next commit.
    pub commits: ResultCode,
    /// Number of successful commits.
    pub commits_done: usize,
}

impl Memory {
    /// Creates FEObject and one instance of each of these classes.
    pub fn new(classes: &[u32]) -> Memory {
        let catalog = library::standard();
        let mut now = Instances::new();
        for &class in [1].iter().chain(classes) {
            let components = &catalog.class_by_id(class).unwrap().components;
            let values = components.iter().map(|it| (it.id, it.default_value())).collect();
            now.insert((class, 1), values);
        }
        let rows = classes.iter().map(|class| {
            Value::struct_of([(1, Value::Unsigned((*class).into())), (2, Value::Unsigned(1))])
        });
        now.get_mut(&(1, 1)).unwrap().insert(2, Value::rows_of(rows));
        let (commits, redirected) = (ResultCode::SUCCESS, Vec::new());
        let (staged, before, forwards) = (None, None, false);
        Memory { catalog, now, staged, before, forwards, redirected, commits, commits_done: 0 }
    }

    /// Returns a value as text.
    pub fn text(&self, class: u32, path: &str) -> String {
        let class = self.catalog.class_by_id(class).unwrap();
        let path = class.path(path).unwrap();
        let place = Place { class: class.id, instance: 1, path: path.clone() };
        let Ok(crate::model::Target::Value { data_type, .. }) = class.target(&path) else {
            panic!()
        };
        match self.get(&place) {
            Ok(value) => data_type.show(&value).to_string(),
            Err(code) => format!("! {code}"),
        }
    }
}

fn apply(catalog: &Catalog, all: &mut Instances, change: Change) -> Result<(), ResultCode> {
    let place = change.place().clone();
    let class = catalog.class_by_id(place.class).ok_or(ResultCode::LFB_UNKNOWN)?;
    let values =
        all.get_mut(&(place.class, place.instance)).ok_or(ResultCode::INSTANCE_NOT_FOUND)?;
    let (&first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
    let root = values.get_mut(&first).ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)?;
    let missing = ResultCode::COMPONENT_DOES_NOT_EXIST;
    match change {
        Change::Set { value, .. } => drop(root.put(rest, value).map_err(|_| missing)?),
        Change::Merge { value, .. } => root.at_mut(rest).ok_or(missing)?.merge(value),
        Change::Delete { .. } => drop(root.take(rest).ok_or(ResultCode::NOT_FOUND)?),
    }
    let data_type = &class.component_by_id(first).ok_or(missing)?.data_type;
    data_type.check(root).map_err(|fault| data::code_of(&fault))?;
    if (place.class, first) == (1, 2) {
        let rows = root.rows().cloned().unwrap_or_default();
        for row in rows.values() {
            let id = |field| row.step(field).and_then(Value::unsigned).unwrap_or(0) as u32;
            // An unknown class must be an error, not a panic.
            let class = catalog.class_by_id(id(1)).ok_or(ResultCode::LFB_UNKNOWN)?;
            all.entry((id(1), id(2))).or_insert_with(|| {
                class.components.iter().map(|it| (it.id, it.default_value())).collect()
            });
        }
    }
    Ok(())
}

impl Element for Memory {
    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn has_instance(&self, class: u32, instance: u32) -> bool {
        self.now.contains_key(&(class, instance))
    }

    fn get(&self, place: &Place) -> Result<Value, ResultCode> {
        let (first, rest) = place.path.split_first().ok_or(ResultCode::INVALID_PATH)?;
        let values = self.now.get(&(place.class, place.instance));
        let part = values.and_then(|values| values.get(first)?.at(rest));
        part.cloned().ok_or(ResultCode::COMPONENT_DOES_NOT_EXIST)
    }

    fn stage(&mut self, change: Change) -> ResultCode {
        // Changed in place: `apply` checks a change before it keeps it.
        let mut all = self.staged.take().unwrap_or_else(|| self.now.clone());
        let place = change.place().clone();
        let key = (place.class, place.instance);
        let was = all.get(&key).cloned();
        match apply(&self.catalog, &mut all, change) {
            Ok(()) => {
                self.staged = Some(all);
                ResultCode::SUCCESS
            }
            Err(code) => {
                if let Some(was) = was {
                    all.insert(key, was);
                }
                self.staged = Some(all);
                code
            }
        }
    }

    fn unstage(&mut self) {
        self.staged = None;
    }

    fn commit(&mut self) -> ResultCode {
        let staged = self.staged.take();
        if !self.commits.is_success() {
            return self.commits;
        }
        let staged = staged.unwrap_or_else(|| self.now.clone());
        self.before = Some(std::mem::replace(&mut self.now, staged));
        self.commits_done += 1;
        ResultCode::SUCCESS
    }

    fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.now = before;
        }
    }

    fn complete(&mut self) {
        self.before = None;
    }

    fn set_forwarding(&mut self, forwards: bool) {
        self.forwards = forwards;
    }

    fn redirect(&mut self, redirect: Redirect) {
        self.redirected.push(redirect);
    }
}
