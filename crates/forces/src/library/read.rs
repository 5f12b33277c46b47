//! Reads a library from XML: document, definitions and classes.

use roxmltree::{Document as Xml, Node, ParsingOptions};

use super::elements::Times::{Any, Maybe, One, Some as AtLeastOne};
use super::elements::{Document, Slot};
use super::fault::{DocumentFault, DocumentProblem};
use super::read_parts::{TYPES, event, input, output, type_decl};
use super::{DOCUMENT_NODES_MAX, DOCUMENT_OCTETS_MAX, scan};
use crate::model::{
    Access, CapabilityDef, ClassDef, ComponentDef, FrameDef, Library, Load, Location, MetadataDef,
    Schema, TypeDef, Version,
};

/// Reads a class library, or returns all faults in the order of the document.
///
/// It does not resolve references; [`crate::Catalog::new`] does.
pub fn read(xml: &str) -> Result<Library, Vec<DocumentFault>> {
    let fault = |place, problem| vec![DocumentFault { place, problem }];
    if xml.len() > DOCUMENT_OCTETS_MAX {
        let (octets, octets_max) = (xml.len(), DOCUMENT_OCTETS_MAX);
        let place = Location { line: 1, column: 1 };
        return Err(fault(place, DocumentProblem::TooLarge { octets, octets_max }));
    }
    let mut document = Document::new(xml);
    if let Some((at, problem)) = scan::exceeds(xml) {
        return Err(fault(document.place_of(at), problem));
    }
    let options = ParsingOptions { nodes_limit: DOCUMENT_NODES_MAX, ..ParsingOptions::default() };
    let parsed = Xml::parse_with_options(xml, options).map_err(|error| {
        let at = error.pos();
        let place = Location { line: at.row, column: at.col };
        fault(place, DocumentProblem::Malformed(error.to_string()))
    })?;
    let library = library(&mut document, parsed.root_element());
    match (library, document.faults.is_empty()) {
        (Some(library), true) => Ok(library),
        _ => {
            let mut faults = document.faults;
            faults.sort_by_key(|fault| (fault.place.line, fault.place.column));
            Err(faults)
        }
    }
}

fn library<'a>(document: &mut Document<'a>, root: Node<'a, 'a>) -> Option<Library> {
    let place = document.place(root);
    if root.tag_name().name() != "LFBLibrary" {
        let found = root.tag_name().name().to_string();
        document.fault(place, DocumentProblem::Root { found });
        return None;
    }
    let namespace = root.tag_name().namespace().unwrap_or_default();
    let schemas = [Schema::V1_0, Schema::V1_1];
    let Some(schema) = schemas.into_iter().find(|it| it.namespace() == namespace) else {
        let found = namespace.to_string();
        document.fault(place, DocumentProblem::Namespace { found });
        return None;
    };
    document.set_namespace(namespace);
    const SLOTS: &[Slot] = &[
        (&["description"], Maybe),
        (&["load"], Any),
        (&["frameDefs"], Maybe),
        (&["dataTypeDefs"], Maybe),
        (&["metadataDefs"], Maybe),
        (&["LFBClassDefs"], Maybe),
    ];
    let parts = document.sequence(root, SLOTS, &["provides"]);
    let mut library = Library {
        provides: document.needed(root, "provides").unwrap_or_default().trim().to_string(),
        schema,
        description: document.text_of(&parts[0]).unwrap_or_default(),
        ..Library::default()
    };
    for node in &parts[1] {
        document.sequence(*node, &[], &["library", "location"]);
        let label = document.needed(*node, "library").unwrap_or_default();
        let location = node.attribute("location").map(str::to_string);
        let place = document.place(*node);
        library.loads.push(Load { library: label.trim().to_string(), location, place });
    }
    for node in definitions(document, &parts[2], &[(&["frameDef"], AtLeastOne)]) {
        library.frames.extend(frame(document, node));
    }
    for node in definitions(document, &parts[3], &[(&["dataTypeDef"], AtLeastOne)]) {
        library.data_types.extend(data_type(document, node));
    }
    for node in definitions(document, &parts[4], &[(&["metadataDef"], AtLeastOne)]) {
        library.metadata.extend(metadata(document, node));
    }
    for node in definitions(document, &parts[5], &[(&["LFBClassDef"], AtLeastOne)]) {
        library.classes.extend(class(document, node));
    }
    Some(library)
}

/// Returns the definitions of a section, if it exists.
fn definitions<'a>(
    document: &mut Document<'a>,
    section: &[Node<'a, 'a>],
    slots: &[Slot],
) -> Vec<Node<'a, 'a>> {
    let section = section.first();
    section.map(|node| document.sequence(*node, slots, &[]).concat()).unwrap_or_default()
}

fn frame<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<FrameDef> {
    let slots: &[Slot] = &[(&["name"], One), (&["synopsis"], One), (&["description"], Maybe)];
    let parts = document.sequence(node, slots, &[]);
    Some(FrameDef {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[2]).unwrap_or_default(),
        place: document.place(node),
    })
}

fn data_type<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<TypeDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["derivedFrom"], Maybe),
        (&["synopsis"], One),
        (&["description"], Maybe),
        (TYPES, One),
        (&["defaultValue"], Maybe),
    ];
    let parts = document.sequence(node, SLOTS, &[]);
    let decl = parts[4].first().and_then(|node| type_decl(document, *node));
    Some(TypeDef {
        name: document.text_of(&parts[0])?,
        derived_from: document.text_of(&parts[1]),
        synopsis: document.text_of(&parts[2])?,
        description: document.text_of(&parts[3]).unwrap_or_default(),
        decl: decl?,
        default: document.text_of(&parts[5]),
        place: document.place(node),
    })
}

fn metadata<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<MetadataDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["metadataID"], One),
        (&["description"], Maybe),
        (&["typeRef", "atomic", "array", "struct"], One),
    ];
    let parts = document.sequence(node, SLOTS, &[]);
    let decl = parts[4].first().and_then(|node| type_decl(document, *node));
    let id = document.text_of(&parts[2]).and_then(|text| {
        let node = *parts[2].first()?;
        document.number(node, "metadataID", &text)
    });
    Some(MetadataDef {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        id: id?,
        description: document.text_of(&parts[3]).unwrap_or_default(),
        decl: decl?,
        place: document.place(node),
    })
}

fn class<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<ClassDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["version"], One),
        (&["derivedFrom"], Maybe),
        (&["inputPorts"], Maybe),
        (&["outputPorts"], Maybe),
        (&["components"], Maybe),
        (&["capabilities"], Maybe),
        (&["events"], Maybe),
        (&["description"], Maybe),
    ];
    let parts = document.sequence(node, SLOTS, &["LFBClassID"]);
    let mut class = ClassDef {
        id: document.id(node, "LFBClassID").unwrap_or_default(),
        name: document.text_of(&parts[0]).unwrap_or_default(),
        synopsis: document.text_of(&parts[1]).unwrap_or_default(),
        description: document.text_of(&parts[9]).unwrap_or_default(),
        place: document.place(node),
        ..ClassDef::default()
    };
    if let Some(&node) = parts[2].first() {
        let text = document.text(node, &[]);
        class.version = version(document, node, &text);
    }
    if let Some(&node) = parts[3].first() {
        let name = document.text(node, &["version"]);
        let named = node.attribute("version").map(|text| version(document, node, text));
        class.derived_from = Some((name, named));
    }
    for node in definitions(document, &parts[4], &[(&["inputPort"], AtLeastOne)]) {
        class.inputs.extend(input(document, node));
    }
    for node in definitions(document, &parts[5], &[(&["outputPort"], AtLeastOne)]) {
        class.outputs.extend(output(document, node));
    }
    for node in definitions(document, &parts[6], &[(&["component"], AtLeastOne)]) {
        class.components.extend(component(document, node));
    }
    for node in definitions(document, &parts[7], &[(&["capability"], AtLeastOne)]) {
        class.capabilities.extend(capability(document, node));
    }
    if let Some(&events) = parts[8].first() {
        let nodes = document.sequence(events, &[(&["event"], AtLeastOne)], &["baseID"]).concat();
        let base = events.attribute("baseID");
        class.event_base = base.and_then(|text| document.number(events, "baseID", text));
        for node in nodes {
            class.events.extend(event(document, node));
        }
    }
    Some(class)
}

fn version<'a>(document: &mut Document<'a>, node: Node<'a, 'a>, text: &str) -> Version {
    Version::parse(text.trim()).unwrap_or_else(|| {
        document.wrong(node, "version", text, "two numbers separated by a dot, like 1.0");
        Version::default()
    })
}

fn component<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<ComponentDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["description"], Maybe),
        (&["optional"], Maybe),
        (TYPES, One),
        (&["defaultValue"], Maybe),
    ];
    let parts = document.sequence(node, SLOTS, &["componentID", "access"]);
    let decl = parts[4].first().and_then(|node| type_decl(document, *node));
    let id = document.id(node, "componentID");
    Some(ComponentDef {
        access: access(document, node).unwrap_or(Access::READ_WRITE),
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[2]).unwrap_or_default(),
        optional: !parts[3].is_empty(),
        default: document.text_of(&parts[5]),
        place: document.place(node),
        decl: decl?,
        id: id?,
    })
}

/// Returns the `access` attribute, if it exists.
pub(super) fn access<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<Access> {
    let text = node.attribute("access")?;
    let access = Access::parse(text);
    if access.is_err() {
        let expected = "read-only, read-write, write-only, read-reset or trigger-only";
        document.wrong(node, "access", text, expected);
    }
    access.ok()
}

fn capability<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<CapabilityDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["description"], Maybe),
        (&["optional"], Maybe),
        (TYPES, One),
    ];
    let parts = document.sequence(node, SLOTS, &["componentID"]);
    let decl = parts[4].first().and_then(|node| type_decl(document, *node));
    let id = document.id(node, "componentID");
    Some(CapabilityDef {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[2]).unwrap_or_default(),
        optional: !parts[3].is_empty(),
        place: document.place(node),
        decl: decl?,
        id: id?,
    })
}
