//! Model files in TOML: every number has its source, every error its line.
//!
//! ```
//! let text = r#"
//!     name = "my-switch"
//!     about = "a switch that writes an entry in 2 ms and sends barrier replies early"
//!     [hardware]
//!     insert_ns = { value = 2_000_000, source = "assumed" }
//!     [barrier]
//!     answers = { value = "taken", source = "my notes, page 3" }
//! "#;
//! let model = elements::hardware_model::model::file::read(text).unwrap();
//! assert_eq!(model.hardware.insert_ns, 2_000_000);
//! assert_eq!(elements::hardware_model::model::file::read(&model.to_text()), Ok(model));
//! ```
//!
//! Invariant: a value without a source is rejected, and so is an unknown key.

use std::borrow::Cow;
use std::fmt::{self, Write};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{KEYS, Key, ValueType, find};
use super::{InHardware, Model};

/// Maximum bytes of a model file.
pub const FILE_BYTES_MAX: usize = 256 << 10;

/// Maximum characters of a name.
const NAME_CHARS_MAX: usize = 64;

/// Maximum number of reported errors.
pub const FAULTS_MAX: usize = 100;

/// Values of a file's `kind`: the kind of device. The first is the default.
const KINDS: &[&str] = &["hardware", "software"];

/// An error at a position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The key, if the error concerns one.
    pub key: Option<String>,
    /// The problem.
    pub problem: Problem,
}

/// Problems of a model file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The file is too long; it has this many bytes.
    TooLong(usize),
    /// The file is not TOML; has the parser's message.
    Text(String),
    /// `name` or `about` is missing.
    Missing,
    /// The section or key is unknown; has the known ones.
    Unknown(Vec<&'static str>),
    /// The value is not a section.
    NotSection,
    /// The value is not a line of text.
    NotText,
    /// The name is not valid on a command line.
    BadName,
    /// The value is not a table with `value` and `source`.
    NotSourced,
    /// The source is missing or empty.
    NoSource,
    /// The value is missing or is not an integer from 0 to this.
    NotNumber(u64),
    /// The value is missing or is none of these words.
    NotWord(&'static [&'static str]),
    /// The key has an effect only together with this key.
    Needs(&'static str),
}

/// Parses a model.
pub fn read(text: &str) -> Result<Model, Vec<Fault>> {
    if text.len() > FILE_BYTES_MAX {
        let problem = Problem::TooLong(text.len());
        return Err(vec![Fault { line: 1, key: None, problem }]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, faults: Vec::new(), model: Model::default() };
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.fault(at, None, Problem::Text(error.message().replace('\n', "; ")));
    }
    // A syntax error may hide further content, so that other errors would mislead.
    if reader.faults.is_empty() {
        reader.read(table.get_ref());
    }
    let Reader { mut faults, model, .. } = reader;
    faults.sort_by_key(|fault| fault.line);
    faults.truncate(FAULTS_MAX);
    if faults.is_empty() { Ok(model) } else { Err(faults) }
}

struct Reader<'a> {
    text: &'a str,
    faults: Vec<Fault>,
    model: Model,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    fn fault(&mut self, at: usize, key: Option<String>, problem: Problem) {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        self.faults.push(Fault { line, key, problem });
    }

    fn read(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let at = name.span().start;
            match name.get_ref().as_ref() {
                "name" => self.model.name = self.line("name", value),
                "about" => self.model.about = self.line("about", value),
                "processor" => self.model.processor = self.line("processor", value),
                "kind" => self.kind(value),
                section => self.section(section, at, value),
            }
        }
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
        let name = &self.model.name;
        let is_name = name.chars().all(allowed) && name.len() <= NAME_CHARS_MAX;
        let at = |key: &str| table.get(key).map_or(0, |value| value.span().start);
        for (key, is_missing) in [("name", name.is_empty()), ("about", self.model.about.is_empty())]
        {
            if is_missing && !self.faults.iter().any(|fault| fault.key.as_deref() == Some(key)) {
                self.fault(at(key), Some(key.into()), Problem::Missing);
            }
        }
        if !is_name {
            self.fault(at("name"), Some("name".into()), Problem::BadName);
        }
        let together: Vec<_> = together(&self.model);
        for (path, other) in together {
            let (section, name) = path.split_once('.').unwrap_or_default();
            let inside = table.get(section).and_then(|value| value.get_ref().as_table());
            let at =
                inside.and_then(|inside| inside.get(name)).map_or(0, |value| value.span().start);
            self.fault(at, Some(path.into()), Problem::Needs(other));
        }
    }

    fn line(&mut self, key: &str, value: &Value<'_>) -> String {
        match value.get_ref().as_str().filter(|text| !text.contains('\n')) {
            Some(text) => text.trim().to_string(),
            None => {
                self.fault(value.span().start, Some(key.into()), Problem::NotText);
                String::new()
            }
        }
    }

    /// Reads the kind of device, hardware or software.
    fn kind(&mut self, value: &Value<'_>) {
        let word = value.get_ref().as_str();
        match KINDS.iter().position(|kind| Some(*kind) == word) {
            Some(place) => self.model.is_software = place == 1,
            None => self.fault(value.span().start, Some("kind".into()), Problem::NotWord(KINDS)),
        }
    }

    fn section(&mut self, section: &str, at: usize, value: &Value<'_>) {
        let mut sections: Vec<_> = KEYS.iter().map(|key| key.section).collect();
        sections.dedup();
        if !sections.contains(&section) {
            sections.extend(["name", "about", "processor", "kind"]);
            return self.fault(at, Some(section.into()), Problem::Unknown(sections));
        }
        let Some(table) = value.get_ref().as_table() else {
            return self.fault(at, Some(section.into()), Problem::NotSection);
        };
        for (name, value) in table {
            match find(section, name.get_ref()) {
                Some(key) => self.value(key, value),
                None => {
                    let known = KEYS.iter().filter(|key| key.section == section);
                    let known = known.map(|key| key.name).collect();
                    let path = format!("{section}.{}", name.get_ref());
                    self.fault(name.span().start, Some(path), Problem::Unknown(known));
                }
            }
        }
    }

    fn value(&mut self, key: &'static Key, said: &Value<'_>) {
        let (at, path) = (said.span().start, Some(key.path.to_string()));
        let Some(table) = said.get_ref().as_table() else {
            return self.fault(at, path, Problem::NotSourced);
        };
        let others = table.keys().filter(|name| !["value", "source"].contains(&&**name.get_ref()));
        for name in others.collect::<Vec<_>>() {
            let inner = Some(format!("{}.{}", key.path, name.get_ref()));
            self.fault(name.span().start, inner, Problem::Unknown(vec!["value", "source"]));
        }
        let source = table.get("source").and_then(|source| source.get_ref().as_str());
        match source.map(str::trim).filter(|source| !source.is_empty() && !source.contains('\n')) {
            Some(source) => drop(self.model.sources.insert(key.path, source.to_string())),
            None => self.fault(at, path.clone(), Problem::NoSource),
        }
        match key.takes.take(table.get("value").map(Spanned::get_ref)) {
            Ok(value) => *(key.at)(&mut self.model) = value,
            Err(problem) => self.fault(at, path, problem),
        }
    }
}

impl ValueType {
    fn take(self, value: Option<&DeValue<'_>>) -> Result<u64, Problem> {
        match self {
            ValueType::Number(max) => value
                .and_then(DeValue::as_integer)
                .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
                .filter(|number| *number <= max)
                .ok_or(Problem::NotNumber(max)),
            ValueType::Word(words) => value
                .and_then(DeValue::as_str)
                .and_then(|said| words.iter().position(|word| *word == said))
                .map(|place| place as u64)
                .ok_or(Problem::NotWord(words)),
        }
    }
}

/// Returns keys that have no effect without another key, each with that key.
fn together(model: &Model) -> Vec<(&'static str, &'static str)> {
    let (hardware, tiers, full) = (&model.hardware, &model.tiers, &model.full);
    let batches = (hardware.batch_rules > 0, hardware.batch_interval_ns > 0);
    let has_software = model.has_software();
    let pairs = [
        (batches == (true, false), "hardware.batch_rules", "hardware.batch_interval_ns"),
        (batches == (false, true), "hardware.batch_interval_ns", "hardware.batch_rules"),
        (model.shuffles() && !batches.0, "hardware.order", "hardware.batch_rules"),
        (
            model.in_hardware() == InHardware::First && tiers.hardware_rules == 0,
            "tiers.in_hardware",
            "tiers.hardware_rules",
        ),
        (tiers.hardware_rules > 0 && !has_software, "tiers.hardware_rules", "tiers.in_hardware"),
        (tiers.link_pps > 0 && !has_software, "tiers.link_pps", "tiers.in_hardware"),
        (full.at_percent > 0 && model.capacity.rules == 0, "full.at_percent", "capacity.rules"),
        (
            full.at_percent > 0 && full.does == 0 && full.lasts_ns == 0,
            "full.at_percent",
            "full.lasts_ns",
        ),
    ];
    pairs.into_iter().filter(|pair| pair.0).map(|(_, key, other)| (key, other)).collect()
}

impl Model {
    /// Formats the model as a file.
    pub fn to_text(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let mut text = format!("name = {}\nabout = {}\n", quoted(&self.name), quoted(&self.about));
        if !self.processor.is_empty() {
            writeln!(text, "processor = {}", quoted(&self.processor))
                .expect("writing to a String cannot fail");
        }
        if self.is_software {
            writeln!(text, "kind = {}", quoted(KINDS[1])).expect("writing to a String cannot fail");
        }
        let mut values = self.clone();
        let mut section = "";
        for key in KEYS {
            let Some(source) = self.sources.get(key.path) else { continue };
            if section != key.section {
                section = key.section;
                text += &format!("\n[{section}]\n");
            }
            let shown = key.show(*(key.at)(&mut values));
            let shown = match key.takes {
                ValueType::Number(_) => Cow::from(shown),
                ValueType::Word(_) => Cow::from(quoted(&shown)),
            };
            writeln!(text, "{} = {{ value = {shown}, source = {} }}", key.name, quoted(source))
                .expect("writing to a String cannot fail");
        }
        text
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        match &self.problem {
            Problem::TooLong(bytes) => {
                write!(f, "the file has {bytes} bytes (hint: shorten it to {FILE_BYTES_MAX})")
            }
            Problem::Text(why) => write!(f, "invalid TOML: {why}"),
            Problem::Missing => f.write_str("missing (hint: add a line of text)"),
            Problem::Unknown(known) => {
                write!(f, "unknown key (hint: use one of {}, or remove it)", known.join(", "))
            }
            Problem::NotSection => {
                f.write_str("not a section (hint: write [section] and its keys below)")
            }
            Problem::NotText => f.write_str("not a line of text (hint: write it in quotes)"),
            Problem::BadName => write!(
                f,
                "invalid name (hint: use at most {NAME_CHARS_MAX} lowercase letters, digits, \
                 dots, dashes and underscores)"
            ),
            Problem::NotSourced => {
                f.write_str("value without source (hint: write { value = ..., source = \"...\" })")
            }
            Problem::NoSource => {
                f.write_str("source missing (hint: name the source, or write source = \"assumed\")")
            }
            Problem::NotNumber(max) => {
                write!(f, "invalid value (hint: use an integer from 0 to {max})")
            }
            Problem::NotWord(words) => {
                write!(f, "invalid value (hint: use one of {})", words.join(", "))
            }
            Problem::Needs(other) => write!(f, "no effect without {other} (hint: set {other})"),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests;
