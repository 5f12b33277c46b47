//! Writes a library as indented XML in the schema's order, which reads back as the same library.

use std::fmt::{Display, Write};

use crate::model::{
    Access, ArraySize, AtomicDecl, CapabilityDef, ClassDef, ComponentDef, Condition, EventDef,
    Expected, FieldDecl, InputPort, Library, OutputPort, PathPart, Produced, StructDecl, TypeDecl,
};

/// Returns the XML document of a library.
pub fn write(library: &Library) -> String {
    let mut out = Writer::default();
    out.text.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let root = [("xmlns", library.schema.namespace()), ("provides", &library.provides)];
    out.open("LFBLibrary", &root);
    out.text_if("description", &library.description);
    for load in &library.loads {
        let location = load.location.as_deref().map(|location| ("location", location));
        let attributes: Vec<_> =
            [("library", load.library.as_str())].into_iter().chain(location).collect();
        out.empty("load", &attributes);
    }
    out.section("frameDefs", &library.frames, |out, def| {
        out.open("frameDef", &[]);
        out.head(&def.name, &def.synopsis);
        out.text_if("description", &def.description);
        out.close("frameDef");
    });
    out.section("dataTypeDefs", &library.data_types, |out, def| {
        out.open("dataTypeDef", &[]);
        out.element("name", &def.name);
        out.element_if("derivedFrom", def.derived_from.as_deref());
        out.element("synopsis", &def.synopsis);
        out.text_if("description", &def.description);
        out.decl(&def.decl);
        out.element_if("defaultValue", def.default.as_deref());
        out.close("dataTypeDef");
    });
    out.section("metadataDefs", &library.metadata, |out, def| {
        out.open("metadataDef", &[]);
        out.head(&def.name, &def.synopsis);
        out.element("metadataID", def.id);
        out.text_if("description", &def.description);
        out.decl(&def.decl);
        out.close("metadataDef");
    });
    out.section("LFBClassDefs", &library.classes, Writer::class);
    out.close("LFBLibrary");
    out.text
}

/// A document while it is written.
#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)], end: &str) {
        self.indent();
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            let _ = write!(self.text, " {attribute}=\"");
            escape(&mut self.text, value);
            self.text.push('"');
        }
        self.text.push_str(end);
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, ">\n");
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.indent();
        let _ = writeln!(self.text, "</{name}>");
    }

    fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes, "/>\n");
    }

    fn element_with(&mut self, name: &str, attributes: &[(&str, &str)], content: impl Display) {
        self.tag(name, attributes, ">");
        escape(&mut self.text, &content.to_string());
        let _ = writeln!(self.text, "</{name}>");
    }

    fn element(&mut self, name: &str, content: impl Display) {
        self.element_with(name, &[], content);
    }

    fn element_if(&mut self, name: &str, content: Option<&str>) {
        if let Some(content) = content {
            self.element(name, content);
        }
    }

    fn text_if(&mut self, name: &str, content: &str) {
        if !content.is_empty() {
            self.element(name, content);
        }
    }

    fn head(&mut self, name: &str, synopsis: &str) {
        self.element("name", name);
        self.element("synopsis", synopsis);
    }

    fn section<T>(&mut self, name: &str, all: &[T], each: impl Fn(&mut Writer, &T)) {
        if !all.is_empty() {
            self.open(name, &[]);
            all.iter().for_each(|one| each(self, one));
            self.close(name);
        }
    }

    fn decl(&mut self, decl: &TypeDecl) {
        match decl {
            TypeDecl::Named(name) => self.element("typeRef", name),
            TypeDecl::Alias(name) => self.element("alias", name),
            TypeDecl::Atomic(decl) => self.atomic(decl),
            TypeDecl::Struct(decl) => self.structure("struct", decl),
            TypeDecl::Union(decl) => self.structure("union", decl),
            TypeDecl::Array(decl) => {
                let (fixed, max);
                let attributes = match decl.size {
                    ArraySize::Fixed(rows) => {
                        fixed = rows.to_string();
                        vec![("type", "fixed-size"), ("length", fixed.as_str())]
                    }
                    ArraySize::Variable(Some(rows)) => {
                        max = rows.to_string();
                        vec![("type", "variable-size"), ("maxLength", max.as_str())]
                    }
                    ArraySize::Variable(None) => vec![("type", "variable-size")],
                };
                self.open("array", &attributes);
                self.decl(&decl.element);
                for (id, fields) in &decl.keys {
                    self.open("contentKey", &[("contentKeyID", &id.to_string())]);
                    fields.iter().for_each(|field| self.element("contentKeyField", field));
                    self.close("contentKey");
                }
                self.close("array");
            }
        }
    }

    fn atomic(&mut self, decl: &AtomicDecl) {
        self.open("atomic", &[]);
        self.element("baseType", &decl.base);
        self.section("rangeRestriction", &decl.ranges, |out, (min, max)| {
            let (min, max) = (min.to_string(), max.to_string());
            out.empty("allowedRange", &[("min", &min), ("max", &max)]);
        });
        self.section("specialValues", &decl.special, |out, special| {
            out.open("specialValue", &[("value", &special.value)]);
            out.head(&special.name, &special.synopsis);
            out.close("specialValue");
        });
        self.close("atomic");
    }

    fn structure(&mut self, name: &str, decl: &StructDecl) {
        self.open(name, &[]);
        self.element_if("derivedFrom", decl.derived_from.as_deref());
        for FieldDecl { id, name, synopsis, description, optional, access, decl } in &decl.fields {
            self.member(*id, *access);
            self.head(name, synopsis);
            self.text_if("description", description);
            self.optional(*optional);
            self.decl(decl);
            self.close("component");
        }
        self.close(name);
    }

    fn member(&mut self, id: u32, access: Option<Access>) {
        let id = id.to_string();
        let access = access.map(|access| access.to_string());
        let access = access.as_deref().map(|access| ("access", access));
        let attributes: Vec<_> = [("componentID", id.as_str())].into_iter().chain(access).collect();
        self.open("component", &attributes);
    }

    fn optional(&mut self, optional: bool) {
        if optional {
            self.empty("optional", &[]);
        }
    }

    fn class(&mut self, def: &ClassDef) {
        self.open("LFBClassDef", &[("LFBClassID", &def.id.to_string())]);
        self.head(&def.name, &def.synopsis);
        self.element("version", def.version);
        if let Some((name, version)) = &def.derived_from {
            let version = version.map(|version| version.to_string());
            let version = version.as_deref().map(|version| ("version", version));
            self.element_with("derivedFrom", &version.into_iter().collect::<Vec<_>>(), name);
        }
        self.section("inputPorts", &def.inputs, Writer::input);
        self.section("outputPorts", &def.outputs, Writer::output);
        self.section("components", &def.components, |out, def: &ComponentDef| {
            out.member(def.id, Some(def.access));
            out.head(&def.name, &def.synopsis);
            out.text_if("description", &def.description);
            out.optional(def.optional);
            out.decl(&def.decl);
            out.element_if("defaultValue", def.default.as_deref());
            out.close("component");
        });
        self.section("capabilities", &def.capabilities, |out, def: &CapabilityDef| {
            out.open("capability", &[("componentID", &def.id.to_string())]);
            out.head(&def.name, &def.synopsis);
            out.text_if("description", &def.description);
            out.optional(def.optional);
            out.decl(&def.decl);
            out.close("capability");
        });
        if !def.events.is_empty() {
            let base = def.event_base.map(|base| base.to_string());
            let base = base.as_deref().map(|base| ("baseID", base));
            self.open("events", &base.into_iter().collect::<Vec<_>>());
            def.events.iter().for_each(|event| self.event(event));
            self.close("events");
        }
        self.text_if("description", &def.description);
        self.close("LFBClassDef");
    }

    fn input(&mut self, port: &InputPort) {
        self.open("inputPort", &[("group", if port.group { "true" } else { "false" })]);
        self.head(&port.name, &port.synopsis);
        self.open("expectation", &[]);
        self.section("frameExpected", &port.frames, |out, frame| out.element("ref", frame));
        self.section("metadataExpected", &port.metadata, Writer::expected);
        self.close("expectation");
        self.text_if("description", &port.description);
        self.close("inputPort");
    }

    fn expected(&mut self, expected: &Expected) {
        match expected {
            Expected::One { name, optional, default } => {
                let dependency = optional.then_some(("dependency", "optional"));
                let default = default.as_deref().map(|default| ("defaultValue", default));
                let attributes: Vec<_> = dependency.into_iter().chain(default).collect();
                self.element_with("ref", &attributes, name);
            }
            Expected::OneOf(some) => self.section("one-of", some, Writer::expected),
            Expected::All(some) => self.section("metadataSet", some, Writer::expected),
        }
    }

    fn output(&mut self, port: &OutputPort) {
        self.open("outputPort", &[("group", if port.group { "true" } else { "false" })]);
        self.head(&port.name, &port.synopsis);
        self.open("product", &[]);
        self.section("frameProduced", &port.frames, |out, frame| out.element("ref", frame));
        self.section("metadataProduced", &port.metadata, Writer::produced);
        self.close("product");
        self.text_if("description", &port.description);
        self.close("outputPort");
    }

    fn produced(&mut self, produced: &Produced) {
        match produced {
            Produced::One { name, conditional } => {
                let availability = conditional.then_some(("availability", "conditional"));
                self.element_with("ref", &availability.into_iter().collect::<Vec<_>>(), name);
            }
            Produced::OneOf(some) => self.section("one-of", some, Writer::produced),
            Produced::All(some) => self.section("metadataSet", some, Writer::produced),
        }
    }

    fn event(&mut self, event: &EventDef) {
        self.open("event", &[("eventID", &event.id.to_string())]);
        self.head(&event.name, &event.synopsis);
        self.path("eventTarget", &event.target);
        let condition = Condition::NAMES.iter().find(|(it, _)| *it == event.condition);
        if let Some((_, name)) = condition {
            self.empty(name, &[]);
        }
        self.section("eventReports", &event.reports, |out, report| {
            out.path("eventReport", report);
        });
        self.text_if("description", &event.description);
        self.close("event");
    }

    fn path(&mut self, name: &str, path: &[PathPart]) {
        self.open(name, &[]);
        for part in path {
            match part {
                PathPart::Field(field) => self.element("eventField", field),
                PathPart::Subscript(subscript) => self.element("eventSubscript", subscript),
            }
        }
        self.close(name);
    }
}

fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            plain => out.push(plain),
        }
    }
}
