//! Combines several libraries: follows loads, resolves names and inheritance, and checks all rules.
//!
//! - A library sees its own definitions and those of all libraries that it loads, directly or
//!   indirectly (RFC 5812 section 4.3).
//! - Class IDs, class names and metadata IDs appear on the wire, so they are unique across all
//!   libraries.
//! - An FE has one version of a class.
//! - [`Catalog::new`] reports all faults.

mod classes;
mod events;
mod scope;
mod types;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::class::{Class, Metadata};
use super::data_type::{DataType, Kind};
use super::declared::{Library, Schema};
use super::fault::{LibraryFault, Location, Problem};
use scope::{NameKind, Scopes};
use types::Types;

/// Resolved and validated libraries.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    libraries: Vec<Library>,
    classes: BTreeMap<u32, Arc<Class>>,
    class_names: HashMap<String, u32>,
    metadata: BTreeMap<u32, Arc<Metadata>>,
    metadata_names: HashMap<String, u32>,
    types: HashMap<String, Arc<DataType>>,
}

/// Maximum number of reported faults of a catalog.
const FAULTS_MAX: usize = 1000;
/// Maximum number of fields and special values that types inherit; each counts one more for each 64
/// octets of text.
const PARTS_TOTAL_MAX: usize = 1 << 20;
/// The same limit for what classes inherit.
const INHERITED_TOTAL_MAX: usize = 1 << 20;

/// The current place for faults, and all faults so far.
struct Faults<'a> {
    library: &'a str,
    place: Location,
    within: String,
    found: Vec<LibraryFault>,
}

impl Catalog {
    /// Resolves libraries, or returns all faults in the order of the documents.
    ///
    /// The order of the libraries matters only for [`Catalog::data_type`], if two unrelated types
    /// have the same name.
    pub fn new(libraries: Vec<Library>) -> Result<Catalog, Vec<LibraryFault>> {
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
            // RFC 5812 allows atomic types; RFC 7408 also allows arrays and structs.
            let fits = match (&data_type.kind, library.schema) {
                (Kind::Atomic(_), _) => true,
                (Kind::Array(_) | Kind::Struct(_), schema) => schema == Schema::V1_1,
                _ => false,
            };
            if !fits {
                let (name, expected) = (data_type.words(), "an atomic type");
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

    /// Returns the libraries in their original order.
    pub fn libraries(&self) -> &[Library] {
        &self.libraries
    }

    /// Returns the class with this name.
    pub fn class(&self, name: &str) -> Option<&Arc<Class>> {
        self.class_by_id(*self.class_names.get(name)?)
    }

    /// Returns the class with this ID.
    pub fn class_by_id(&self, id: u32) -> Option<&Arc<Class>> {
        self.classes.get(&id)
    }

    /// Returns all classes in the order of their IDs.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &Arc<Class>> {
        self.classes.values()
    }

    /// Returns the metadata item with this name.
    pub fn metadata(&self, name: &str) -> Option<&Arc<Metadata>> {
        self.metadata_by_id(*self.metadata_names.get(name)?)
    }

    /// Returns the metadata item with this ID.
    pub fn metadata_by_id(&self, id: u32) -> Option<&Arc<Metadata>> {
        self.metadata.get(&id)
    }

    /// Returns all metadata in the order of their IDs.
    pub fn all_metadata(&self) -> impl ExactSizeIterator<Item = &Arc<Metadata>> {
        self.metadata.values()
    }

    /// Returns the base type with this name, or the data type of the first library that has one.
    pub fn data_type(&self, name: &str) -> Option<Arc<DataType>> {
        let base = super::Base::parse(name).map(|base| Arc::new(DataType::base(base)));
        base.or_else(|| self.types.get(name).cloned())
    }
}

impl<'a> Faults<'a> {
    fn new() -> Faults<'a> {
        Faults { library: "", place: Location::default(), within: String::new(), found: Vec::new() }
    }

    /// Sets the place of the following faults.
    fn enter(&mut self, library: &'a str, place: Location, within: String) {
        (self.library, self.place, self.within) = (library, place, within);
    }

    fn add(&mut self, problem: Problem) {
        if self.found.len() >= FAULTS_MAX {
            return;
        }
        let (library, within) = (self.library.to_string(), self.within.clone());
        self.found.push(LibraryFault { library, place: self.place, within, problem });
    }

    /// Records an unknown name.
    fn unknown(&mut self, scopes: &Scopes<'_>, what: NameKind, name: &str) {
        let elsewhere = scopes.elsewhere(what, name);
        self.add(Problem::Unknown { what: what.word(), name: name.to_string(), elsewhere });
    }
}

#[cfg(test)]
mod tests;
