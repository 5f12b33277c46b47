//! Visibility of definitions: a library sees its own and those of all libraries that it loads,
//! directly or indirectly.

use std::collections::{BTreeSet, HashMap};

use super::Faults;
use crate::model::Base;
use crate::model::declared::Library;
use crate::model::fault::{Location, Problem};

/// Kind of a defined name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameKind {
    Frame,
    Type,
    Metadata,
    Class,
}

impl NameKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            NameKind::Frame => "frame",
            NameKind::Type => "data type",
            NameKind::Metadata => "metadatum",
            NameKind::Class => "class",
        }
    }
}

/// The names of all libraries, and which libraries each one sees.
pub(super) struct Scopes<'a> {
    pub(super) libraries: &'a [Library],
    /// For each library, the index of each name's definition.
    own: Vec<HashMap<(NameKind, &'a str), usize>>,
    /// For each library, the libraries that it sees, itself first.
    seen: Vec<Vec<usize>>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new(libraries: &'a [Library], faults: &mut Faults<'a>) -> Scopes<'a> {
        let mut labels: HashMap<&str, usize> = HashMap::new();
        for (at, library) in libraries.iter().enumerate() {
            faults.enter(&library.provides, Location::default(), String::new());
            if labels.insert(&library.provides, at).is_some() {
                faults.add(Problem::LibraryTwice);
            }
        }
        let own = libraries.iter().map(|library| own_names(library, faults)).collect();
        let loads: Vec<Vec<usize>> =
            libraries.iter().map(|library| loaded(library, &labels, faults)).collect();
        let seen = (0..libraries.len()).map(|at| closure(at, &loads)).collect();
        let scopes = Scopes { libraries, own, seen };
        scopes.check_unique(faults);
        scopes
    }

    /// Returns the definition of a name that a library uses, as library and index.
    pub(super) fn find(
        &self,
        library: usize,
        what: NameKind,
        name: &str,
    ) -> Option<(usize, usize)> {
        let there = |at: &usize| Some((*at, *self.own[*at].get(&(what, name))?));
        self.seen[library].iter().find_map(there)
    }

    /// Returns the label of any library that defines the name.
    pub(super) fn elsewhere(&self, what: NameKind, name: &str) -> Option<String> {
        let at = self.own.iter().position(|own| own.contains_key(&(what, name)))?;
        Some(self.libraries[at].provides.clone())
    }

    /// Checks that names are unique among all that a library sees.
    ///
    /// Class names are unique across all libraries; class registration checks them.
    fn check_unique(&self, faults: &mut Faults<'a>) {
        for (at, seen) in self.seen.iter().enumerate() {
            let library = &self.libraries[at];
            faults.enter(&library.provides, Location::default(), String::new());
            let mut names: HashMap<(NameKind, &str), usize> = HashMap::new();
            let mut twice = BTreeSet::new();
            for &there in seen {
                for &(what, name) in self.own[there].keys() {
                    let other = *names.entry((what, name)).or_insert(there);
                    // Two loaded libraries that see each other report the duplicate themselves.
                    let told =
                        self.seen[other].contains(&there) || self.seen[there].contains(&other);
                    if other != there && what != NameKind::Class && (!told || other == at) {
                        twice.insert((what.word(), name.to_string()));
                    }
                }
            }
            for (what, name) in twice {
                faults.add(Problem::NameTwice { what, name });
            }
        }
    }
}

/// Returns the names that a library defines; for duplicates, the first definition.
fn own_names<'a>(
    library: &'a Library,
    faults: &mut Faults<'a>,
) -> HashMap<(NameKind, &'a str), usize> {
    let frames =
        library.frames.iter().map(|def| (NameKind::Frame, &def.name, def.place)).enumerate();
    let types =
        library.data_types.iter().map(|def| (NameKind::Type, &def.name, def.place)).enumerate();
    let metadata =
        library.metadata.iter().map(|def| (NameKind::Metadata, &def.name, def.place)).enumerate();
    let classes =
        library.classes.iter().map(|def| (NameKind::Class, &def.name, def.place)).enumerate();
    let mut own = HashMap::new();
    for (index, (what, name, place)) in frames.chain(types).chain(metadata).chain(classes) {
        faults.enter(&library.provides, place, String::new());
        if !is_name(name) {
            faults.add(Problem::NameWrong { name: name.clone() });
        }
        if what == NameKind::Type && Base::parse(name).is_some() {
            faults.add(Problem::NameTaken { name: name.clone() });
        }
        if own.contains_key(&(what, name.as_str())) {
            faults.add(Problem::NameTwice { what: what.word(), name: name.clone() });
            continue;
        }
        own.insert((what, name.as_str()), index);
    }
    own
}

/// Returns whether the name is an XML NMTOKEN.
pub(super) fn is_name(name: &str) -> bool {
    let part = |part: char| part.is_alphanumeric() || matches!(part, '.' | '-' | '_' | ':');
    !name.is_empty() && name.chars().all(part)
}

fn loaded<'a>(
    library: &'a Library,
    labels: &HashMap<&str, usize>,
    faults: &mut Faults<'a>,
) -> Vec<usize> {
    let mut loaded = Vec::new();
    for load in &library.loads {
        match labels.get(load.library.as_str()) {
            Some(&at) => loaded.push(at),
            None => {
                faults.enter(&library.provides, load.place, String::new());
                faults.add(Problem::LoadUnknown { library: load.library.clone() });
            }
        }
    }
    loaded
}

/// Returns a library and all that it loads, each once; loads may be cyclic.
fn closure(at: usize, loads: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![at];
    let mut next = 0;
    while let Some(&library) = seen.get(next) {
        for &loaded in &loads[library] {
            if !seen.contains(&loaded) {
                seen.push(loaded);
            }
        }
        next += 1;
    }
    seen
}
