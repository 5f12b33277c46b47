//! Writer for programs in XML. Reading the output gives an equal program.

use std::fmt::Write;

use forces::model::Kind;
use forces::{DataType, Value};

use super::{Agent, Instance, Program, Source};
use crate::frames::document::NAMESPACE;
use crate::xml::escape;

impl Program {
    /// Returns the whole document. Every instance is separate, with all rows and their indices.
    pub fn to_xml(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = write!(xml, "<fe xmlns=\"{NAMESPACE}\" name=\"{}\"", escape(&self.name));
        let _ = write!(xml, " revision=\"{}\"", self.revision);
        if let Some(id) = self.fe_id {
            let _ = write!(xml, " feID=\"0x{id:08x}\"");
        }
        xml.push_str(">\n");
        for one in &self.uses {
            let _ = write!(xml, "  <use library=\"{}\"", escape(&one.library));
            if let Some(location) = &one.location {
                let _ = write!(xml, " location=\"{}\"", escape(location));
            }
            xml.push_str("/>\n");
        }
        if !self.frames.is_empty() {
            xml.push_str(&self.frames.to_xml(2));
        }
        xml.push_str("  <ports>\n");
        for port in &self.ports {
            let _ = write!(xml, "    <port id=\"{}\"", port.number);
            if !port.device.is_empty() {
                let _ = write!(xml, " dev=\"{}\"", escape(&port.device));
            }
            xml.push_str("/>\n");
        }
        xml.push_str("  </ports>\n  <instances>\n");
        for at in 0..self.instances.len() {
            self.instance(&mut xml, at);
        }
        xml.push_str("  </instances>\n  <links>\n");
        for link in &self.links {
            let [from, to] = [self.output_name(link.from), self.input_name(link.to)];
            let _ = writeln!(xml, "    <link from=\"{}\" to=\"{}\"/>", escape(&from), escape(&to));
        }
        xml.push_str("  </links>\n");
        if !self.agents.is_empty() {
            xml.push_str("  <agents>\n");
            self.agents.iter().for_each(|one| agent(&mut xml, one));
            xml.push_str("  </agents>\n");
        }
        for watch in &self.watches {
            let (attribute, name) = match &watch.source {
                Source::Instance(at) => ("lfb", self.instances[*at].name.as_str()),
                Source::Agent(name) => ("agent", name.as_str()),
            };
            let _ = write!(xml, "  <watch {attribute}=\"{}\"", escape(name));
            let _ = write!(xml, " event=\"{}\"", escape(&watch.event));
            let settings = [watch.interval_ms, watch.count, watch.threshold];
            for (name, value) in ["interval", "count", "threshold"].iter().zip(settings) {
                if let Some(value) = value {
                    let _ = write!(xml, " {name}=\"{value}\"");
                }
            }
            xml.push_str("/>\n");
        }
        xml.push_str("</fe>\n");
        xml
    }

    fn instance(&self, xml: &mut String, at: usize) {
        let instance: &Instance = &self.instances[at];
        let class = self.class_of(at);
        let (id, numbered) = match instance.name.split_once('#') {
            Some((id, _)) => (id, true),
            None => (instance.name.as_str(), false),
        };
        let _ = write!(xml, "    <lfb id=\"{}\" class=\"{}\"", escape(id), escape(&class.name));
        if numbered {
            let _ = write!(xml, " instances=\"{0}..{0}\"", instance.number);
        }
        if instance.reset {
            xml.push_str(" reset=\"true\"");
        }
        xml.push_str(">\n");
        for (id, value) in &instance.components {
            let Some(component) = class.component_by_id(*id) else { continue };
            let name = escape(&component.name);
            match (component.data_type.array(), value) {
                (Some(array), Value::Array(rows)) => {
                    for (index, row) in rows {
                        let _ = write!(xml, "      <row table=\"{name}\" index=\"{index}\">");
                        cells(xml, &array.element, row);
                        xml.push_str("</row>\n");
                    }
                }
                _ => {
                    let text = escape(&component.data_type.show(value).to_string());
                    let _ = writeln!(xml, "      <set name=\"{name}\">{text}</set>");
                }
            }
        }
        xml.push_str("    </lfb>\n");
    }
}

fn cells(xml: &mut String, element: &DataType, row: &Value) {
    match (&element.target().kind, row) {
        (Kind::Struct(fields), Value::Struct(values)) => {
            for field in fields {
                let Some(value) = values.get(field.id) else { continue };
                let text = escape(&field.data_type.show(value).to_string());
                let _ = write!(xml, "<c n=\"{}\">{text}</c>", escape(&field.name));
            }
        }
        _ => xml.push_str(&escape(&element.show(row).to_string())),
    }
}

fn agent(xml: &mut String, agent: &Agent) {
    let (name, kind) = (escape(&agent.name), escape(&agent.kind));
    let _ = write!(xml, "    <agent name=\"{name}\" type=\"{kind}\"");
    attributes(xml, &agent.attributes);
    xml.push_str(">\n");
    for setting in &agent.settings {
        let _ = write!(xml, "      <{}", setting.name);
        attributes(xml, &setting.attributes);
        xml.push_str("/>\n");
    }
    xml.push_str("    </agent>\n");
}

fn attributes(xml: &mut String, attributes: &[(String, String)]) {
    for (name, value) in attributes {
        let _ = write!(xml, " {name}=\"{}\"", escape(value));
    }
}
