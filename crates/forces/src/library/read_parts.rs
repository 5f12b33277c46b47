//! Reads parts of definitions from XML: data types, ports and events.

use roxmltree::Node;

use super::elements::Times::{Any, Maybe, One, Some as AtLeastOne};
use super::elements::{Document, Slot};
use super::read::access;
use crate::model::value::parse_number;
use crate::model::{
    ArrayDecl, ArraySize, AtomicDecl, Condition, EventDef, Expected, FieldDecl, InputPort,
    OutputPort, PathPart, Produced, SpecialValueDecl, StructDecl, TypeDecl,
};

/// Elements that declare a type.
pub(super) const TYPES: &[&str] = &["typeRef", "atomic", "array", "struct", "union", "alias"];

/// Reads the data type that an element declares. The document's depth limit bounds the recursion.
pub(super) fn type_decl<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<TypeDecl> {
    Some(match node.tag_name().name() {
        "typeRef" => TypeDecl::Named(document.text(node, &[])),
        "alias" => TypeDecl::Alias(document.text(node, &[])),
        "atomic" => TypeDecl::Atomic(atomic(document, node)?),
        "array" => TypeDecl::Array(array(document, node)?),
        "struct" => TypeDecl::Struct(structure(document, node)),
        _ => TypeDecl::Union(structure(document, node)),
    })
}

fn atomic<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<AtomicDecl> {
    let slots: &[Slot] =
        &[(&["baseType"], One), (&["rangeRestriction"], Maybe), (&["specialValues"], Maybe)];
    let parts = document.sequence(node, slots, &[]);
    let mut decl = AtomicDecl { base: document.text_of(&parts[0])?, ..AtomicDecl::default() };
    if let Some(&node) = parts[1].first() {
        for range in document.sequence(node, &[(&["allowedRange"], AtLeastOne)], &[]).concat() {
            document.sequence(range, &[], &["min", "max"]);
            let min = bound(document, range, "min");
            let max = bound(document, range, "max");
            decl.ranges.extend(min.zip(max));
        }
    }
    if let Some(&node) = parts[2].first() {
        for special in document.sequence(node, &[(&["specialValue"], AtLeastOne)], &[]).concat() {
            let slots: &[Slot] = &[(&["name"], One), (&["synopsis"], One)];
            let parts = document.sequence(special, slots, &["value"]);
            decl.special.push(SpecialValueDecl {
                value: document.needed(special, "value").unwrap_or_default().to_string(),
                name: document.text_of(&parts[0]).unwrap_or_default(),
                synopsis: document.text_of(&parts[1]).unwrap_or_default(),
            });
        }
    }
    Some(decl)
}

fn bound<'a>(
    document: &mut Document<'a>,
    node: Node<'a, 'a>,
    attribute: &'static str,
) -> Option<i128> {
    let text = document.needed(node, attribute)?;
    let number = parse_number(text.trim());
    if number.is_none() {
        document.wrong(node, attribute, text, "an integer");
    }
    number
}

fn array<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<ArrayDecl> {
    // The RFC's examples have maxlength, its schema has maxLength.
    let attributes = ["type", "length", "maxLength", "maxlength"];
    let slots: &[Slot] = &[(TYPES, One), (&["contentKey"], Any)];
    let parts = document.sequence(node, slots, &attributes);
    let max = node.attribute("maxLength").or_else(|| node.attribute("maxlength"));
    let size = match node.attribute("type").map(str::trim) {
        Some("fixed-size") => ArraySize::Fixed(document.id(node, "length").unwrap_or(1)),
        None | Some("variable-size") => {
            ArraySize::Variable(max.and_then(|text| document.number(node, "maxLength", text)))
        }
        Some(text) => {
            document.wrong(node, "type", text, "fixed-size or variable-size");
            ArraySize::Variable(None)
        }
    };
    let mut keys = Vec::new();
    for key in &parts[1] {
        let slots: &[Slot] = &[(&["contentKeyField"], AtLeastOne)];
        let fields = document.sequence(*key, slots, &["contentKeyID"]).concat();
        let fields = fields.into_iter().map(|field| document.text(field, &[])).collect();
        let id = document.id(*key, "contentKeyID").unwrap_or_default();
        keys.push((id, fields));
    }
    let element = type_decl(document, *parts[0].first()?)?;
    Some(ArrayDecl { size, element: Box::new(element), keys })
}

fn structure<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> StructDecl {
    let slots: &[Slot] = &[(&["derivedFrom"], Maybe), (&["component"], AtLeastOne)];
    let parts = document.sequence(node, slots, &[]);
    let derived_from = document.text_of(&parts[0]);
    let mut fields = Vec::new();
    for node in &parts[1] {
        fields.extend(field(document, *node));
    }
    StructDecl { derived_from, fields }
}

fn field<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<FieldDecl> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["description"], Maybe),
        (&["optional"], Maybe),
        (TYPES, One),
    ];
    let parts = document.sequence(node, SLOTS, &["componentID", "access"]);
    let decl = parts[4].first().and_then(|node| type_decl(document, *node));
    let id = document.id(node, "componentID");
    Some(FieldDecl {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[2]).unwrap_or_default(),
        optional: !parts[3].is_empty(),
        access: access(document, node),
        decl: decl?,
        id: id?,
    })
}

pub(super) fn input<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<InputPort> {
    let (parts, group) = port(document, node, "expectation");
    let mut port = InputPort {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[3]).unwrap_or_default(),
        group,
        place: document.place(node),
        ..InputPort::default()
    };
    let slots: &[Slot] = &[(&["frameExpected"], Maybe), (&["metadataExpected"], Maybe)];
    let inner = document.sequence(*parts[2].first()?, slots, &[]);
    port.frames = frames(document, &inner[0]);
    if let Some(&node) = inner[1].first() {
        port.metadata = expected(document, node);
    }
    Some(port)
}

pub(super) fn output<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<OutputPort> {
    let (parts, group) = port(document, node, "product");
    let mut port = OutputPort {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[3]).unwrap_or_default(),
        group,
        place: document.place(node),
        ..OutputPort::default()
    };
    let slots: &[Slot] = &[(&["frameProduced"], Maybe), (&["metadataProduced"], Maybe)];
    let inner = document.sequence(*parts[2].first()?, slots, &[]);
    port.frames = frames(document, &inner[0]);
    if let Some(&node) = inner[1].first() {
        port.metadata = produced(document, node);
    }
    Some(port)
}

/// Reads the common parts of inputs and outputs.
fn port<'a>(
    document: &mut Document<'a>,
    node: Node<'a, 'a>,
    what: &'static str,
) -> (Vec<Vec<Node<'a, 'a>>>, bool) {
    let slots: [Slot; 4] = [
        (&["name"], One),
        (&["synopsis"], One),
        (if what == "product" { &["product"] } else { &["expectation"] }, One),
        (&["description"], Maybe),
    ];
    let parts = document.sequence(node, &slots, &["group"]);
    (parts, document.flag(node, "group"))
}

fn frames<'a>(document: &mut Document<'a>, section: &[Node<'a, 'a>]) -> Vec<String> {
    let Some(&section) = section.first() else { return Vec::new() };
    let refs = document.sequence(section, &[(&["ref"], AtLeastOne)], &[]).concat();
    refs.into_iter().map(|node| document.text(node, &[])).collect()
}

/// Metadata in any order and at any nesting depth.
const METADATA: &[Slot] = &[(&["ref", "one-of", "metadataSet"], AtLeastOne)];

fn expected<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Vec<Expected> {
    let nodes = document.sequence(node, METADATA, &[]).concat();
    let each = nodes.into_iter().map(|node| match node.tag_name().name() {
        "one-of" => Expected::OneOf(expected(document, node)),
        "metadataSet" => Expected::All(expected(document, node)),
        _ => {
            let name = document.text(node, &["dependency", "defaultValue"]);
            let optional = match node.attribute("dependency").map(str::trim) {
                None | Some("required") => false,
                Some("optional") => true,
                Some(text) => {
                    document.wrong(node, "dependency", text, "required or optional");
                    false
                }
            };
            let default = node.attribute("defaultValue").map(str::to_string);
            Expected::One { name, optional, default }
        }
    });
    each.collect()
}

fn produced<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Vec<Produced> {
    let nodes = document.sequence(node, METADATA, &[]).concat();
    let each = nodes.into_iter().map(|node| match node.tag_name().name() {
        "one-of" => Produced::OneOf(produced(document, node)),
        "metadataSet" => Produced::All(produced(document, node)),
        _ => {
            let name = document.text(node, &["availability"]);
            let conditional = match node.attribute("availability").map(str::trim) {
                None | Some("unconditional") => false,
                Some("conditional") => true,
                Some(text) => {
                    document.wrong(node, "availability", text, "unconditional or conditional");
                    false
                }
            };
            Produced::One { name, conditional }
        }
    });
    each.collect()
}

pub(super) fn event<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Option<EventDef> {
    const SLOTS: &[Slot] = &[
        (&["name"], One),
        (&["synopsis"], One),
        (&["eventTarget"], One),
        (
            &[
                "eventCreated",
                "eventDeleted",
                "eventChanged",
                "eventGreaterThan",
                "eventLessThan",
                "eventBecomesEqualTo",
            ],
            One,
        ),
        (&["eventReports"], Maybe),
        (&["description"], Maybe),
    ];
    let parts = document.sequence(node, SLOTS, &["eventID"]);
    let id = document.id(node, "eventID");
    let target = parts[2].first().map(|node| event_path(document, *node));
    let mut reports = Vec::new();
    if let Some(&node) = parts[4].first() {
        for report in document.sequence(node, &[(&["eventReport"], AtLeastOne)], &[]).concat() {
            reports.push(event_path(document, report));
        }
    }
    let condition = parts[3].first().and_then(|node| {
        let named = |(_, name): &&(Condition, &str)| *name == node.tag_name().name();
        Condition::NAMES.iter().find(named).map(|(condition, _)| *condition)
    });
    Some(EventDef {
        name: document.text_of(&parts[0])?,
        synopsis: document.text_of(&parts[1])?,
        description: document.text_of(&parts[5]).unwrap_or_default(),
        target: target?,
        condition: condition?,
        reports,
        place: document.place(node),
        id: id?,
    })
}

fn event_path<'a>(document: &mut Document<'a>, node: Node<'a, 'a>) -> Vec<PathPart> {
    let slots: &[Slot] = &[(&["eventField", "eventSubscript"], AtLeastOne)];
    let steps = document.sequence(node, slots, &[]).concat();
    let step = |node: Node<'a, 'a>| {
        let text = document.text(node, &[]);
        match node.tag_name().name() {
            "eventField" => PathPart::Field(text),
            _ => PathPart::Subscript(text),
        }
    };
    steps.into_iter().map(step).collect()
}
