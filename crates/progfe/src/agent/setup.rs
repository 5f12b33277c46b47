//! Settings of an agent in a program. Reading attributes and elements reports all problems.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use packet::header::ethernet::{self, Mac};

use crate::diagnostic::{Code, Place, Problems};
use crate::program::{self, AgentSetting, Program};

/// The declaration of an agent, and the list of problems.
pub struct Setup<'a> {
    /// The program.
    pub program: &'a Program,
    agent: &'a program::Agent,
    problems: &'a mut Problems,
    wrong: bool,
}

/// Attributes of an element.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    element: &'a str,
    attributes: &'a [(String, String)],
    place: &'a Place,
}

impl<'a> Setup<'a> {
    pub(super) fn new(
        program: &'a Program,
        agent: &'a program::Agent,
        problems: &'a mut Problems,
    ) -> Setup<'a> {
        Setup { program, agent, problems, wrong: false }
    }

    /// Returns the name of the agent.
    pub fn name(&self) -> &'a str {
        &self.agent.name
    }

    /// Returns true if a problem was reported.
    pub fn is_wrong(&self) -> bool {
        self.wrong
    }

    pub(super) fn wrong_type<'t>(&mut self, known: impl Iterator<Item = &'t str>) {
        let what = format!("unknown type \"{}\"", self.agent.kind);
        let known = known.collect::<Vec<_>>().join(", ");
        self.add(Code::Value, &self.agent.place, what, &format!("use one of {known}"));
    }

    /// Returns the agent's own attributes. Unknown names are problems.
    pub fn own(&mut self, known: &[&str]) -> Fields<'a> {
        let agent = self.agent;
        let fields =
            Fields { element: "agent", attributes: &agent.attributes, place: &agent.place };
        self.only(fields, known);
        fields
    }

    /// Returns the child elements. Unknown names are problems.
    pub fn elements(&mut self, known: &[&str]) -> Vec<&'a AgentSetting> {
        let mut elements = Vec::new();
        for setting in &self.agent.settings {
            if known.contains(&setting.name.as_str()) {
                elements.push(setting);
                continue;
            }
            let what = format!("unexpected <{}> in an agent of this type", setting.name);
            let hint = match known {
                [] => "remove it".to_owned(),
                known => format!("use one of {}", known.join(", ")),
            };
            self.add(Code::XmlElement, &setting.place, what, &hint);
        }
        elements
    }

    /// Returns the attributes of an element. Unknown names are problems.
    pub fn fields(&mut self, of: &'a AgentSetting, known: &[&str]) -> Fields<'a> {
        let fields = Fields { element: &of.name, attributes: &of.attributes, place: &of.place };
        self.only(fields, known);
        fields
    }

    fn only(&mut self, fields: Fields<'a>, known: &[&str]) {
        for (name, _) in fields.attributes {
            if !known.contains(&name.as_str()) {
                let what = format!("<{}> has no attribute \"{name}\" here", fields.element);
                let hint = match known {
                    [] => "remove it".to_owned(),
                    known => format!("use one of {}", known.join(", ")),
                };
                self.add(Code::XmlAttribute, fields.place, what, &hint);
            }
        }
    }

    /// Reports a problem with an attribute.
    pub fn wrong(&mut self, fields: Fields<'a>, name: &str, what: impl Display, hint: &str) {
        let what = format!("{name} of <{}>: {what}", fields.element);
        self.add(Code::Value, fields.place, what, hint);
    }

    /// Reports that the agent lacks a setting.
    pub fn lacks(&mut self, what: &str, hint: &str) {
        self.add(Code::Value, &self.agent.place, what.to_owned(), hint);
    }

    fn add(&mut self, code: Code, place: &Place, what: String, hint: &str) {
        self.wrong = true;
        self.problems.add(code, place, format!("agent {}", self.agent.name), what, hint);
    }

    /// Returns a mandatory attribute.
    pub fn needed(&mut self, fields: Fields<'a>, name: &str) -> Option<&'a str> {
        let value = fields.text(name);
        if value.is_none() {
            let what = format!("<{}> needs the attribute \"{name}\"", fields.element);
            self.add(Code::XmlAttribute, fields.place, what, "");
        }
        value
    }

    /// Returns a number in a range, or the default if there is one.
    pub fn number(
        &mut self,
        fields: Fields<'a>,
        name: &str,
        default: Option<u64>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if let (None, Some(default)) = (fields.text(name), default) {
            return Some(default);
        }
        let text = self.needed(fields, name)?;
        let number = crate::xml::number(text).and_then(|number| u64::try_from(number).ok());
        let fits = number.filter(|number| range.contains(number));
        if fits.is_none() {
            let hint = format!("use an integer from {} to {}", range.start(), range.end());
            self.wrong(fields, name, format!("invalid value \"{text}\""), &hint);
        }
        fits
    }

    /// Parses an optional attribute.
    pub fn parsed<T: FromStr>(&mut self, fields: Fields<'a>, name: &str, hint: &str) -> Option<T> {
        let text = fields.text(name)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.wrong(fields, name, format!("invalid value \"{text}\""), hint);
        }
        value
    }

    /// Returns the unicast hardware address in an optional attribute.
    pub fn mac(&mut self, fields: Fields<'a>, name: &str) -> Option<Mac> {
        let text = fields.text(name)?;
        let mac = ethernet::mac_from_text(text).filter(|mac| !ethernet::is_group(mac));
        if mac.is_none() {
            self.wrong(
                fields,
                name,
                format!("invalid address \"{text}\""),
                "use a unicast address like 02:00:00:00:01:01",
            );
        }
        mac
    }

    /// Returns a port that the program declares.
    pub fn port(&mut self, fields: Fields<'a>) -> Option<u32> {
        let number = self.number(fields, "port", None, 0..=u32::MAX.into())? as u32;
        let is_there = self.program.ports.iter().any(|port| port.number == number);
        if !is_there {
            self.wrong(
                fields,
                "port",
                format!("{number} is not declared"),
                "declare it in <ports>",
            );
        }
        is_there.then_some(number)
    }

    /// Returns the name of an instance of a class in an optional attribute.
    pub fn instance(&mut self, fields: Fields<'a>, name: &str, class: u32) -> Option<String> {
        let text = fields.text(name)?;
        let found = self.program.find(text);
        if found.is_none_or(|at| self.program.instances[at].class != class) {
            let class = self.program.catalog.class_by_id(class);
            let class = class.map_or("its class", |class| class.name.as_str());
            self.wrong(fields, name, format!("no {class} \"{text}\""), "name an existing one");
            return None;
        }
        Some(text.to_owned())
    }
}

impl<'a> Fields<'a> {
    /// Returns an optional attribute.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}
