//! Resolves classes with their own and inherited parts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::scope::{NameKind, Scopes};
use super::types::Types;
use super::{Catalog, Faults, INHERITED_TOTAL_MAX, events};
use crate::model::class::{Class, Component, ComponentKind};
use crate::model::declared::{
    ClassDef, Expected, InputPort, Library, OutputPort, Produced, TypeDecl,
};
use crate::model::fault::Problem;
use crate::model::value::Value;
use crate::model::{Access, DataType};

/// State for resolving classes.
struct Resolver<'a, 'b> {
    catalog: &'b mut Catalog,
    scopes: &'a Scopes<'a>,
    types: &'b mut Types<'a>,
    faults: &'b mut Faults<'a>,
    /// Resolved classes by library and index; `None` if resolving failed.
    done: HashMap<(usize, usize), Option<Arc<Class>>>,
    /// Inherited parts so far.
    total: usize,
}

/// Resolves all classes of all libraries into the catalog.
pub(super) fn resolve<'a>(
    catalog: &mut Catalog,
    scopes: &'a Scopes<'a>,
    types: &mut Types<'a>,
    faults: &mut Faults<'a>,
) {
    let mut resolver = Resolver { catalog, scopes, types, faults, done: HashMap::new(), total: 0 };
    for (at, library) in scopes.libraries.iter().enumerate() {
        for index in 0..library.classes.len() {
            resolver.class(at, index);
        }
    }
}

impl<'a> Resolver<'a, '_> {
    /// Resolves a class after all its ancestors, the farthest first.
    fn class(&mut self, library: usize, index: usize) {
        let mut chain = vec![(library, index)];
        while let Some(&(library, index)) = chain.last() {
            let def = &self.scopes.libraries[library].classes[index];
            let Some((name, _)) = &def.derived_from else { break };
            let Some(parent) = self.scopes.find(library, NameKind::Class, name) else { break };
            if self.done.contains_key(&parent) {
                break;
            }
            if chain.contains(&parent) {
                self.enter(library, def);
                self.faults.add(Problem::ClassLoop { name: def.name.clone() });
                chain.into_iter().for_each(|class| drop(self.done.insert(class, None)));
                return;
            }
            chain.push(parent);
        }
        for (library, index) in chain.into_iter().rev() {
            if !self.done.contains_key(&(library, index)) {
                let class = self.flatten(library, index).map(Arc::new);
                if let Some(class) = &class {
                    self.register(class);
                }
                self.done.insert((library, index), class);
            }
        }
    }

    fn enter(&mut self, library: usize, def: &'a ClassDef) {
        let label = &self.scopes.libraries[library].provides;
        self.faults.enter(label, def.place, format!("class {}", def.name));
    }

    /// Adds a class to the catalog; IDs and names are unique.
    fn register(&mut self, class: &Arc<Class>) {
        let label = self.scopes.libraries.iter().find(|it| it.provides == class.library);
        if let Some(Library { provides, .. }) = label {
            self.faults.enter(provides, class.place, format!("class {}", class.name));
        }
        if let Some(first) = self.catalog.classes.get(&class.id) {
            let first = format!("{} {}", first.name, first.version);
            self.faults.add(Problem::IdTwice { what: "class", id: class.id, first });
            return;
        }
        // Duplicates within a library are already reported.
        if let Some(id) = self.catalog.class_names.get(&class.name) {
            let there = self.catalog.classes.get(id);
            if there.is_some_and(|there| there.library != class.library) {
                let name = class.name.clone();
                self.faults.add(Problem::NameTwice { what: "class", name });
            }
            return;
        }
        self.catalog.class_names.insert(class.name.clone(), class.id);
        self.catalog.classes.insert(class.id, class.clone());
    }

    /// Returns the parent class; `Err` if it is declared but does not exist.
    fn parent(&mut self, library: usize, def: &'a ClassDef) -> Result<Option<Arc<Class>>, ()> {
        let Some((name, version)) = &def.derived_from else { return Ok(None) };
        let Some(parent) = self.scopes.find(library, NameKind::Class, name) else {
            self.faults.unknown(self.scopes, NameKind::Class, name);
            return Err(());
        };
        let parent = self.done.get(&parent).cloned().flatten().ok_or(())?;
        if let Some(named) = *version
            && named != parent.version
        {
            let (name, there) = (name.clone(), parent.version);
            self.faults.add(Problem::ParentVersion { name, named, there });
        }
        Ok(Some(parent))
    }

    fn flatten(&mut self, library: usize, index: usize) -> Option<Class> {
        let def = &self.scopes.libraries[library].classes[index];
        self.enter(library, def);
        let parent = self.parent(library, def).ok()?;
        if let Some(parent) = &parent {
            self.count(parent)?;
        }
        let mut class = match parent {
            Some(parent) => {
                let mut class = Class::clone(&parent);
                class.parents.insert(0, parent.id);
                class
            }
            None => empty(),
        };
        class.id = def.id;
        class.name = def.name.clone();
        class.version = def.version;
        class.library = self.scopes.libraries[library].provides.clone();
        class.synopsis = def.synopsis.clone();
        class.description = def.description.clone();
        class.place = def.place;
        if def.id == 0 {
            self.faults.add(Problem::IdZero { what: "class", name: def.name.clone() });
        }
        self.ports(&mut class, library, def);
        let inherited: BTreeSet<u32> = class.components.iter().map(|it| it.id).collect();
        for it in &def.components {
            let label = &self.scopes.libraries[library].provides;
            let within = format!("class {}, component {}", def.name, it.name);
            self.faults.enter(label, it.place, within);
            let Some(data_type) = self.data_type(&it.decl, library) else { continue };
            let component = Component {
                id: it.id,
                name: it.name.clone(),
                synopsis: it.synopsis.clone(),
                kind: ComponentKind::Component,
                optional: it.optional,
                access: it.access,
                default: self.default(it.default.as_deref(), &data_type),
                data_type,
            };
            self.component(&mut class, component, &inherited);
        }
        for it in &def.capabilities {
            let label = &self.scopes.libraries[library].provides;
            let within = format!("class {}, capability {}", def.name, it.name);
            self.faults.enter(label, it.place, within);
            let Some(data_type) = self.data_type(&it.decl, library) else { continue };
            let component = Component {
                id: it.id,
                name: it.name.clone(),
                synopsis: it.synopsis.clone(),
                kind: ComponentKind::Capability,
                optional: it.optional,
                access: Access::READ_ONLY,
                default: None,
                data_type,
            };
            self.component(&mut class, component, &inherited);
        }
        class.components.sort_by_key(|it| it.kind == ComponentKind::Capability);
        self.enter(library, def);
        events::add(&mut class, def, self.faults);
        Some(class)
    }

    /// Counts inherited parts. The limit bounds memory when many classes are derived from a large
    /// one.
    fn count(&mut self, parent: &Class) -> Option<()> {
        self.total += weight(parent);
        if self.total > INHERITED_TOTAL_MAX {
            let (what, max) = ("inherited components, ports and events", INHERITED_TOTAL_MAX);
            self.faults.add(Problem::CatalogTooLarge { what, max });
            return None;
        }
        Some(())
    }

    fn data_type(&mut self, decl: &TypeDecl, library: usize) -> Option<Arc<DataType>> {
        self.types.resolve(decl, library, self.faults)
    }

    fn default(&mut self, text: Option<&str>, data_type: &DataType) -> Option<Value> {
        match data_type.parse(text?) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.faults.add(Problem::Value { what: "defaultValue".into(), fault });
                None
            }
        }
    }

    /// Adds a component. It may replace an inherited one only with an augmentation.
    fn component(&mut self, class: &mut Class, new: Component, inherited: &BTreeSet<u32>) {
        if new.id == 0 {
            // On the wire this is the LFB's own properties (RFC 7408 section 2.6).
            self.faults.add(Problem::IdZero { what: "component", name: new.name.clone() });
        }
        let same = |there: &Component| there.id == new.id || there.name == new.name;
        let Some(at) = class.components.iter().position(same) else {
            class.components.push(new);
            return;
        };
        let there = &class.components[at];
        if inherited.contains(&there.id) {
            let is_it = there.id == new.id && there.name == new.name && there.kind == new.kind;
            let same_access = there.access == new.access;
            if !is_it || !same_access || !new.data_type.augments(&there.data_type) {
                self.faults.add(Problem::NotAnAugmentation { name: new.name });
                return;
            }
            class.components[at] = new;
        } else if there.id == new.id {
            let first = there.name.clone();
            self.faults.add(Problem::IdTwice { what: "component", id: new.id, first });
        } else {
            self.faults.add(Problem::NameTwice { what: "component", name: new.name });
        }
    }

    fn ports(&mut self, class: &mut Class, library: usize, def: &'a ClassDef) {
        let label = &self.scopes.libraries[library].provides;
        for port in &def.inputs {
            let within = format!("class {}, input {}", def.name, port.name);
            self.faults.enter(label, port.place, within);
            self.input(library, port);
            if class.inputs.iter().any(|there| there.name == port.name) {
                self.faults.add(Problem::NameTwice { what: "input", name: port.name.clone() });
                continue;
            }
            class.inputs.push(port.clone());
        }
        for port in &def.outputs {
            let within = format!("class {}, output {}", def.name, port.name);
            self.faults.enter(label, port.place, within);
            self.output(library, port);
            if class.outputs.iter().any(|there| there.name == port.name) {
                self.faults.add(Problem::NameTwice { what: "output", name: port.name.clone() });
                continue;
            }
            class.outputs.push(port.clone());
        }
    }

    fn input(&mut self, library: usize, port: &InputPort) {
        port.frames.iter().for_each(|name| self.frame(library, name));
        let mut open: Vec<&Expected> = port.metadata.iter().collect();
        while let Some(expected) = open.pop() {
            match expected {
                Expected::OneOf(some) | Expected::All(some) => open.extend(some),
                Expected::One { name, optional, default } => {
                    let data_type = self.metadatum(library, name);
                    if let (Some(data_type), Some(text)) = (data_type, default) {
                        if let Err(fault) = data_type.parse(text) {
                            let what = format!("defaultValue of metadatum {name}");
                            self.faults.add(Problem::Value { what, fault });
                        }
                    } else if *optional && default.is_none() {
                        self.faults.add(Problem::DefaultMissing { name: name.clone() });
                    }
                }
            }
        }
    }

    fn output(&mut self, library: usize, port: &OutputPort) {
        port.frames.iter().for_each(|name| self.frame(library, name));
        let mut open: Vec<&Produced> = port.metadata.iter().collect();
        while let Some(produced) = open.pop() {
            match produced {
                Produced::OneOf(some) | Produced::All(some) => open.extend(some),
                Produced::One { name, .. } => drop(self.metadatum(library, name)),
            }
        }
    }

    fn frame(&mut self, library: usize, name: &str) {
        if self.scopes.find(library, NameKind::Frame, name).is_none() {
            self.faults.unknown(self.scopes, NameKind::Frame, name);
        }
    }

    fn metadatum(&mut self, library: usize, name: &str) -> Option<Arc<DataType>> {
        if self.scopes.find(library, NameKind::Metadata, name).is_none() {
            self.faults.unknown(self.scopes, NameKind::Metadata, name);
            return None;
        }
        self.catalog.metadata(name).map(|metadata| metadata.data_type.clone())
    }
}

/// Returns the weight of a class: components, ports and events, plus one for each 64 octets of
/// text.
fn weight(class: &Class) -> usize {
    let text = |text: &str| text.len() / 64 + 1;
    let components = class.components.iter().map(|it| text(&it.name) + text(&it.synopsis));
    let inputs = class.inputs.iter().map(|it| {
        let names: usize = it.frames.iter().map(|name| text(name)).sum();
        let metadata = expected(&it.metadata);
        text(&it.name) + text(&it.synopsis) + text(&it.description) + names + metadata
    });
    let outputs = class.outputs.iter().map(|it| {
        let names: usize = it.frames.iter().map(|name| text(name)).sum();
        let metadata = produced(&it.metadata);
        text(&it.name) + text(&it.synopsis) + text(&it.description) + names + metadata
    });
    let events = class.events.iter().map(|it| {
        let steps: usize = it.reports.iter().map(|report| report.len() + 1).sum();
        text(&it.name) + text(&it.synopsis) + it.target.len() + steps
    });
    let own = text(&class.description) + class.parents.len();
    own + components.chain(inputs).chain(outputs).chain(events).sum::<usize>()
}

fn expected(all: &[Expected]) -> usize {
    let one = |it: &Expected| match it {
        Expected::One { name, default, .. } => {
            1 + (name.len() + default.as_ref().map_or(0, String::len)) / 64
        }
        Expected::OneOf(some) | Expected::All(some) => 1 + expected(some),
    };
    all.iter().map(one).sum()
}

fn produced(all: &[Produced]) -> usize {
    let one = |it: &Produced| match it {
        Produced::One { name, .. } => 1 + name.len() / 64,
        Produced::OneOf(some) | Produced::All(some) => 1 + produced(some),
    };
    all.iter().map(one).sum()
}

/// Returns the common class that every class is derived from.
fn empty() -> Class {
    Class {
        id: 0,
        name: String::new(),
        version: Default::default(),
        library: String::new(),
        synopsis: String::new(),
        description: String::new(),
        parents: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        components: Vec::new(),
        event_base: None,
        events: Vec::new(),
        place: Default::default(),
    }
}
