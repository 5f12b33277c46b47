//! Several libraries as one: loads followed, names resolved, parents merged in, every rule checked.
//!
//! A definition sees those of its own library and of all that this one loads, directly or not
//! (RFC 5812 section 4.3). Class ids and names and metadata ids are the wire's and so unique over
//! all libraries; an FE has one version of a class. Every fault is told at once.

/// Classes with their parents merged in.
mod classes;
/// What an event watches and reports.
mod events;
/// Which definitions a library sees.
mod scope;
/// Data types with every name replaced.
mod types;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::class::{Class, Metadata};
use super::data_type::{DataType, Kind};
use super::declared::{Library, Schema};
use super::fault::{Fault, Place, Problem};
use scope::{Scopes, What};
use types::Types;

/// Libraries that have been resolved and checked.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    libraries: Vec<Library>,
    classes: BTreeMap<u32, Arc<Class>>,
    class_names: HashMap<String, u32>,
    metadata: BTreeMap<u32, Arc<Metadata>>,
    metadata_names: HashMap<String, u32>,
    types: HashMap<String, Arc<DataType>>,
}

/// Most faults that are told of one catalog.
const FAULTS_MAX: usize = 1000;
/// Most fields and named values that types take over from types that they add to, each counted with
/// one more for each 64 octets of text.
const PARTS_TOTAL_MAX: usize = 1 << 20;
/// The same for what classes take over from their parents.
const INHERITED_TOTAL_MAX: usize = 1 << 20;

/// Where a fault that is found belongs, and all that were found.
struct Faults<'a> {
    library: &'a str,
    place: Place,
    within: String,
    found: Vec<Fault>,
}

impl Catalog {
    /// Resolves libraries; their order is of no meaning but for which of two unrelated types of
    /// the same name [`Catalog::data_type`] finds. Every fault, in the order of the documents.
    pub fn new(libraries: Vec<Library>) -> Result<Catalog, Vec<Fault>> {
        let mut faults = Faults::new();
        let scopes = Scopes::new(&libraries, &mut faults);
        let mut types = Types::new(&scopes);
        let mut catalog = Catalog::default();
        for (at, library) in libraries.iter().enumerate() {
            faults.library = &library.provides;
            for (index, def) in library.data_types.iter().enumerate() {
                if let Some(data_type) = types.defined(at, index, &mut faults) {
                    catalog.types.entry(def.name.clone()).or_insert(data_type);
                }
            }
        }
        for (at, library) in libraries.iter().enumerate() {
            catalog.add_metadata(at, library, &mut types, &mut faults);
        }
        classes::resolve(&mut catalog, &scopes, &mut types, &mut faults);
        let mut found = faults.found;
        if found.is_empty() {
            catalog.libraries = libraries;
            return Ok(catalog);
        }
        let order = |label: &str| libraries.iter().position(|library| library.provides == label);
        found.sort_by_key(|fault| (order(&fault.library), fault.place.line, fault.place.column));
        Err(found)
    }

    fn add_metadata<'a>(
        &mut self,
        at: usize,
        library: &'a Library,
        types: &mut Types<'a>,
        faults: &mut Faults<'a>,
    ) {
        for def in &library.metadata {
            faults.enter(&library.provides, def.place, format!("metadatum {}", def.name));
            let Some(data_type) = types.resolve(&def.decl, at, faults) else { continue };
            // RFC 5812 allows atomic types, RFC 7408 arrays and structs too.
            let fits = match (&data_type.kind, library.schema) {
                (Kind::Atomic(_), _) => true,
                (Kind::Array(_) | Kind::Struct(_), schema) => schema == Schema::V1_1,
                _ => false,
            };
            if !fits {
                let (name, expected) = (data_type.words(), "atomic type");
                faults.add(Problem::TypeKind { name, expected });
            }
            if let Some(first) = self.metadata.get(&def.id) {
                let (what, first) = ("metadatum", first.name.clone());
                faults.add(Problem::IdTwice { what, id: def.id, first });
                continue;
            }
            if self.metadata_names.insert(def.name.clone(), def.id).is_some() {
                faults.add(Problem::NameTwice { what: "metadatum", name: def.name.clone() });
            }
            let (name, synopsis) = (def.name.clone(), def.synopsis.clone());
            let metadata = Metadata { id: def.id, name, synopsis, data_type };
            self.metadata.insert(def.id, Arc::new(metadata));
        }
    }

    /// The libraries, as they were given.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// The class with this name.
    pub fn class(&self, name: &str) -> Option<&Arc<Class>> {
        self.class_by_id(*self.class_names.get(name)?)
    }

    /// The class with this id.
    pub fn class_by_id(&self, id: u32) -> Option<&Arc<Class>> {
        self.classes.get(&id)
    }

    /// All classes by their ids.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &Arc<Class>> {
        self.classes.values()
    }

    /// The metadatum with this name.
    pub fn metadata(&self, name: &str) -> Option<&Arc<Metadata>> {
        self.metadata_by_id(*self.metadata_names.get(name)?)
    }

    /// The metadatum with this id.
    pub fn metadata_by_id(&self, id: u32) -> Option<&Arc<Metadata>> {
        self.metadata.get(&id)
    }

    /// All metadata by their ids.
    pub fn all_metadata(&self) -> impl ExactSizeIterator<Item = &Arc<Metadata>> {
        self.metadata.values()
    }

    /// The data type with this name, of the first library that has one, or a base type.
    pub fn data_type(&self, name: &str) -> Option<Arc<DataType>> {
        let base = super::Base::parse(name).map(|base| Arc::new(DataType::base(base)));
        base.or_else(|| self.types.get(name).cloned())
    }

    /// Whether any library names such frames.
    pub fn has_frame(&self, name: &str) -> bool {
        self.libraries.iter().flat_map(|library| &library.frames).any(|frame| frame.name == name)
    }
}

impl<'a> Faults<'a> {
    fn new() -> Faults<'a> {
        Faults { library: "", place: Place::default(), within: String::new(), found: Vec::new() }
    }

    /// Faults that follow belong here.
    fn enter(&mut self, library: &'a str, place: Place, within: String) {
        (self.library, self.place, self.within) = (library, place, within);
    }

    fn add(&mut self, problem: Problem) {
        if self.found.len() >= FAULTS_MAX {
            return;
        }
        let (library, within) = (self.library.to_string(), self.within.clone());
        self.found.push(Fault { library, place: self.place, within, problem });
    }

    /// That a name is nothing's.
    fn unknown(&mut self, scopes: &Scopes<'_>, what: What, name: &str) {
        let elsewhere = scopes.elsewhere(what, name);
        self.add(Problem::Unknown { what: what.word(), name: name.to_string(), elsewhere });
    }
}

#[cfg(test)]
mod tests;
