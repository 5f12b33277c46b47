//! Resolves the names in data types.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::scope::{NameKind, Scopes};
use super::{Faults, PARTS_TOTAL_MAX};
use crate::model::data_type::{Array, ArraySize, ContentKey, DataType, Field, Kind};
use crate::model::declared::{ArrayDecl, AtomicDecl, StructDecl, TypeDecl};
use crate::model::fault::Problem;
use crate::model::value::ValueFault;
use crate::model::{Atomic, Base, SpecialValue, TYPE_DEPTH_MAX, TYPE_PARTS_MAX};

/// Resolved data types.
pub(super) struct Types<'a> {
    scopes: &'a Scopes<'a>,
    /// By library and index.
    done: HashMap<(usize, usize), State>,
    /// Current nesting depth of names and declarations.
    depth: usize,
    /// Inherited fields and special values so far.
    total: usize,
}

/// State of a definition.
enum State {
    /// Being resolved; a reference to it is a loop.
    Open,
    /// Resolving failed, and the fault is reported.
    Failed,
    Done(Arc<DataType>),
}

impl<'a> Types<'a> {
    pub(super) fn new(scopes: &'a Scopes<'a>) -> Types<'a> {
        Types { scopes, done: HashMap::new(), depth: 0, total: 0 }
    }

    /// Returns the data type of a library's definition. Reports its faults only once.
    pub(super) fn defined(
        &mut self,
        library: usize,
        index: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        let def = &self.scopes.libraries[library].data_types[index];
        match self.done.get(&(library, index)) {
            Some(State::Done(data_type)) => return Some(data_type.clone()),
            Some(State::Failed) => return None,
            Some(State::Open) => {
                faults.add(Problem::TypeLoop { name: def.name.clone() });
                return None;
            }
            None => drop(self.done.insert((library, index), State::Open)),
        }
        let outside = (faults.library, faults.place, std::mem::take(&mut faults.within));
        let label = &self.scopes.libraries[library].provides;
        faults.enter(label, def.place, format!("data type {}", def.name));
        let resolved = match (&def.decl, &def.derived_from) {
            // The schema allows derivedFrom next to the struct, too.
            (TypeDecl::Struct(decl), Some(parent)) if decl.derived_from.is_none() => {
                let decl = StructDecl { derived_from: Some(parent.clone()), ..decl.clone() };
                self.resolve(&TypeDecl::Struct(decl), library, faults)
            }
            (decl, _) => self.resolve(decl, library, faults),
        };
        let named = resolved.and_then(|data_type| {
            let mut named = DataType::clone(&data_type);
            named.ancestors.splice(0..0, named.name.take());
            named.name = Some(def.name.clone());
            if let Some(text) = &def.default {
                match named.parse(text) {
                    Ok(value) => named.default = Some(value),
                    Err(fault) => {
                        faults.add(Problem::Value { what: "defaultValue".into(), fault });
                        return None;
                    }
                }
            }
            Some(Arc::new(named))
        });
        let state = named.clone().map_or(State::Failed, State::Done);
        self.done.insert((library, index), state);
        faults.enter(outside.0, outside.1, outside.2);
        named
    }

    /// Resolves a declaration in a library.
    pub(super) fn resolve(
        &mut self,
        decl: &TypeDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        if self.depth >= 2 * TYPE_DEPTH_MAX {
            faults.add(Problem::TypeTooDeep);
            return None;
        }
        self.depth += 1;
        let resolved = match decl {
            TypeDecl::Named(name) => self.named(name, library, faults),
            TypeDecl::Atomic(decl) => self.atomic(decl, library, faults),
            TypeDecl::Array(decl) => self.array(decl, library, faults),
            TypeDecl::Struct(decl) => self.structure(decl, library, faults),
            TypeDecl::Union(decl) => self.union(decl, library, faults),
            TypeDecl::Alias(name) => {
                let target = self.named(name, library, faults);
                target.map(|target| Arc::new(DataType::unnamed(Kind::Alias(target))))
            }
        };
        self.depth -= 1;
        let data_type = resolved?;
        if data_type.depth > TYPE_DEPTH_MAX {
            faults.add(Problem::TypeTooDeep);
            return None;
        }
        if data_type.parts > TYPE_PARTS_MAX {
            faults.add(Problem::TypeTooLarge);
            return None;
        }
        Some(data_type)
    }

    fn named(
        &mut self,
        name: &str,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        if let Some(base) = Base::parse(name) {
            return Some(Arc::new(DataType::base(base)));
        }
        let Some((there, index)) = self.scopes.find(library, NameKind::Type, name) else {
            faults.unknown(self.scopes, NameKind::Type, name);
            return None;
        };
        self.defined(there, index, faults)
    }

    fn atomic(
        &mut self,
        decl: &AtomicDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        let parent = self.named(&decl.base, library, faults)?;
        let Kind::Atomic(parent_atomic) = &parent.kind else {
            let (name, expected) = (decl.base.clone(), "an atomic type");
            faults.add(Problem::TypeKind { name, expected });
            return None;
        };
        let special = parent_atomic.special.iter();
        self.count(special.map(|it| it.name.len() + it.synopsis.len()), faults)?;
        let mut atomic = parent_atomic.clone();
        let is_number = matches!(atomic.base, Base::Float32 | Base::Float64);
        for &(min, max) in &decl.ranges {
            let held = match atomic.base.whole() {
                Some(range) => range.contains(&min) && range.contains(&max),
                None => is_number,
            };
            let allowed = parent_atomic.allows(min) && parent_atomic.allows(max);
            if min > max || !held || !allowed {
                faults.add(Problem::Range { min, max });
                return None;
            }
        }
        if !decl.ranges.is_empty() {
            atomic.ranges = decl.ranges.iter().map(|&(min, max)| min..=max).collect();
        }
        for special in &decl.special {
            self.special(&mut atomic, special, faults)?;
        }
        let mut data_type = DataType::unnamed(Kind::Atomic(atomic));
        data_type.ancestors = parent.name.iter().chain(&parent.ancestors).cloned().collect();
        Some(Arc::new(data_type))
    }

    /// Counts inherited fields and special values by the octets of their text.
    ///
    /// The limit bounds memory when many types are derived from a large one.
    fn count(&mut self, texts: impl Iterator<Item = usize>, faults: &mut Faults<'a>) -> Option<()> {
        self.total += texts.map(|octets| 1 + octets / 64).sum::<usize>();
        if self.total > PARTS_TOTAL_MAX {
            let (what, max) = ("inherited fields and special values", PARTS_TOTAL_MAX);
            faults.add(Problem::CatalogTooLarge { what, max });
            return None;
        }
        Some(())
    }

    fn special(
        &self,
        atomic: &mut Atomic,
        special: &crate::model::SpecialValueDecl,
        faults: &mut Faults<'a>,
    ) -> Option<()> {
        let plain = Atomic::plain(atomic.base);
        let name = special.name.clone();
        let value = match plain.parse_loosely(special.value.trim()) {
            Ok(value) => value,
            Err(why) => {
                let fault = ValueFault { path: String::new(), why };
                faults.add(Problem::Value { what: format!("special value {name}"), fault });
                return None;
            }
        };
        if atomic.named(&name).is_some_and(|there| *there != value) {
            faults.add(Problem::NameTwice { what: "special value", name });
            return None;
        }
        let synopsis = special.synopsis.clone();
        atomic.special.push(SpecialValue { value, name, synopsis });
        Some(())
    }

    fn array(
        &mut self,
        decl: &ArrayDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        let element = self.resolve(&decl.element, library, faults)?;
        if decl.size == ArraySize::Fixed(0) {
            faults.add(Problem::NoRows);
            return None;
        }
        let mut keys: Vec<ContentKey> = Vec::new();
        for (id, fields) in &decl.keys {
            let key = content_key(*id, fields, &element, faults)?;
            if keys.iter().any(|other| other.id == key.id) {
                let (what, first) = ("content key", "another content key".to_string());
                faults.add(Problem::IdTwice { what, id: key.id, first });
                return None;
            }
            keys.push(key);
        }
        Some(Arc::new(DataType::unnamed(Kind::Array(Array { size: decl.size, element, keys }))))
    }

    fn union(
        &mut self,
        decl: &StructDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        // Augmentation must not be applied to unions (RFC 5812 section 4.5.7).
        if let Some(parent) = &decl.derived_from {
            faults.add(Problem::NotAnAugmentation { name: parent.clone() });
            return None;
        }
        let fields = self.fields(Vec::new(), decl, library, faults)?;
        Some(Arc::new(DataType::unnamed(Kind::Union(fields))))
    }

    fn structure(
        &mut self,
        decl: &StructDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Arc<DataType>> {
        let (mut inherited, mut ancestors) = (Vec::new(), Vec::new());
        if let Some(name) = &decl.derived_from {
            let parent = self.named(name, library, faults)?;
            let Kind::Struct(fields) = &parent.kind else {
                faults.add(Problem::TypeKind { name: name.clone(), expected: "a struct" });
                return None;
            };
            let texts = fields.iter().map(|field| field.name.len() + field.synopsis.len());
            self.count(texts, faults)?;
            inherited = fields.clone();
            ancestors = parent.name.iter().chain(&parent.ancestors).cloned().collect();
        }
        let fields = self.fields(inherited, decl, library, faults)?;
        let mut data_type = DataType::unnamed(Kind::Struct(fields));
        data_type.ancestors = ancestors;
        Some(Arc::new(data_type))
    }

    fn fields(
        &mut self,
        mut fields: Vec<Field>,
        decl: &StructDecl,
        library: usize,
        faults: &mut Faults<'a>,
    ) -> Option<Vec<Field>> {
        if decl.fields.is_empty() {
            faults.add(Problem::NoFields);
            return None;
        }
        let inherited = fields.len();
        let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
        for field in &decl.fields {
            let data_type = self.resolve(&field.decl, library, faults)?;
            let name = field.name.clone();
            if !ids.insert(field.id) {
                let first = decl.fields.iter().find(|other| other.id == field.id);
                let first = first.map(|first| first.name.clone()).unwrap_or_default();
                faults.add(Problem::IdTwice { what: "component", id: field.id, first });
                return None;
            }
            if !names.insert(&field.name) {
                faults.add(Problem::NameTwice { what: "component", name });
                return None;
            }
            let resolved = Field {
                id: field.id,
                name,
                synopsis: field.synopsis.clone(),
                optional: field.optional,
                access: field.access,
                data_type,
            };
            let same = |there: &Field| there.id == field.id || there.name == field.name;
            match fields[..inherited].iter().position(same) {
                None => fields.push(resolved),
                Some(at) => {
                    let there = &fields[at];
                    let is_it = there.id == field.id && there.name == field.name;
                    if !is_it || !resolved.data_type.augments(&there.data_type) {
                        faults.add(Problem::NotAnAugmentation { name: resolved.name });
                        return None;
                    }
                    fields[at] = resolved;
                }
            }
        }
        Some(fields)
    }
}

/// Resolves a content key: its fields as paths within a row.
fn content_key(
    id: u32,
    fields: &[String],
    element: &Arc<DataType>,
    faults: &mut Faults<'_>,
) -> Option<ContentKey> {
    if fields.is_empty() {
        faults.add(Problem::KeyEmpty { key: id });
        return None;
    }
    if let [field] = fields
        && field.trim() == "*"
    {
        return Some(ContentKey { id, fields: vec![Vec::new()], data_type: element.clone() });
    }
    let (mut paths, mut parts) = (Vec::new(), Vec::new());
    for (number, text) in (1..).zip(fields) {
        let Some((path, data_type)) = key_field(text, element) else {
            faults.add(Problem::KeyField { key: id, field: text.clone() });
            return None;
        };
        paths.push(path);
        let name = text.split_whitespace().collect();
        let (synopsis, optional, access) = (String::new(), false, None);
        parts.push(Field { id: number, name, synopsis, optional, access, data_type });
    }
    let data_type = Arc::new(DataType::unnamed(Kind::Struct(parts)));
    Some(ContentKey { id, fields: paths, data_type })
}

/// Returns path and type of a key's field, whose parts are separated by dots (RFC 5812 section
/// 4.5.3.1).
fn key_field(text: &str, element: &Arc<DataType>) -> Option<(Vec<u32>, Arc<DataType>)> {
    let (mut path, mut within) = (Vec::new(), element);
    for step in text.split('.').map(str::trim) {
        let id = match (&within.target().kind, step.parse()) {
            (Kind::Array(_), Ok(index)) => index,
            (Kind::Struct(_), _) => within.field(step)?.id,
            _ => return None,
        };
        within = within.step(id)?;
        path.push(id);
    }
    Some((path, within.clone()))
}
