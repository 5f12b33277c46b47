//! TOML tables with the positions of their values, and errors with positions.
//!
//! Source: TOML 1.0. Invariant: parsing continues after an error, so that all errors are reported
//! together.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use workload::nearest;

/// Limit of reported errors.
const FAULTS_MAX: usize = 50;

/// An error, and its byte position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFault {
    /// The position.
    pub at: usize,
    /// The error, and a hint.
    pub why: String,
}

/// A word and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordAt {
    /// The byte position of its beginning.
    pub at: usize,
    /// The word.
    pub text: String,
}

/// All errors of a text.
#[derive(Debug, Default)]
pub struct Faults(Vec<TextFault>);

/// A table of the text, with its keys in their order.
pub type TextTable<'a> = Vec<(WordAt, &'a Spanned<DeValue<'a>>)>;

impl Faults {
    /// Adds an error.
    pub fn add(&mut self, at: usize, why: impl Into<String>) {
        // One line per error: a plan must not inject further lines into the output.
        let why = why.into().replace(|letter: char| letter.is_control(), " ");
        let fault = TextFault { at, why };
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Returns whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the errors as lines, sorted by position: `plan.toml:3:7: error`.
    pub fn lines(mut self, file: &str, text: &str) -> Vec<String> {
        self.0.sort_by_key(|fault| fault.at);
        let line = |fault: &TextFault| format!("{}: {}", place(file, text, fault.at), fault.why);
        let mut lines: Vec<String> = self.0.iter().take(FAULTS_MAX).map(line).collect();
        if self.0.len() > FAULTS_MAX {
            lines.push(format!("{file}: and {} more", self.0.len() - FAULTS_MAX));
        }
        lines
    }
}

/// Converts a byte position to file, line and column, both from 1; columns count characters.
pub fn place(file: &str, text: &str, at: usize) -> String {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{file}:{line}:{column}")
}

/// Parses the whole text as a table, and adds its syntax errors.
pub fn parsed<'a>(text: &'a str, faults: &mut Faults) -> Spanned<DeTable<'a>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        faults.add(error.span().map_or(0, |span| span.start), error.message());
    }
    table
}

/// Returns the known keys of a table; an unknown key is an error that suggests the most similar
/// known one.
pub fn rows<'a>(
    table: &'a DeTable<'a>,
    known: &[&str],
    what: &str,
    faults: &mut Faults,
) -> TextTable<'a> {
    let mut rows = Vec::new();
    for (key, value) in table {
        let at = key.span().start;
        let text: &str = key.get_ref();
        if known.contains(&text) {
            rows.push((WordAt { at, text: text.into() }, value));
            continue;
        }
        let asked = nearest::asked(text, known.iter().copied());
        let help = asked.unwrap_or_else(|| format!("use one of {}", known.join(", ")));
        faults.add(at, format!("{what} has no key {text:?} (hint: {help})"));
    }
    rows.sort_by_key(|(key, _)| key.at);
    rows
}

/// Parses a string.
pub fn word(key: &str, value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<WordAt> {
    let at = value.span().start;
    match value.get_ref() {
        DeValue::String(text) => Some(WordAt { at, text: text.to_string() }),
        other => {
            faults.add(at, format!("{key} must be a string in quotes, not {}", kind(other)));
            None
        }
    }
}

/// Parses a string, or an array of strings.
pub fn words(key: &str, value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Vec<WordAt> {
    match value.get_ref() {
        DeValue::Array(several) => {
            several.iter().filter_map(|one| word(key, one, faults)).collect()
        }
        DeValue::String(_) => word(key, value, faults).into_iter().collect(),
        other => {
            let why = format!("{key} must be a string or an array of strings, not {}", kind(other));
            faults.add(value.span().start, why);
            Vec::new()
        }
    }
}

/// Parses a boolean.
pub fn truth(key: &str, value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<bool> {
    let found = value.get_ref().as_bool();
    if found.is_none() {
        let why = format!("{key} must be true or false, not {}", kind(value.get_ref()));
        faults.add(value.span().start, why);
    }
    found
}

/// Parses a non-negative integer.
pub fn count(key: &str, value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<u64> {
    let found = match value.get_ref() {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    if found.is_none() {
        let why = format!("{key} must be a non-negative integer, not {}", kind(value.get_ref()));
        faults.add(value.span().start, why);
    }
    found
}

/// Parses a value for `--set`: string, number, boolean, or an array of these, which is joined with
/// commas.
pub fn setting(key: &str, value: &Spanned<DeValue<'_>>, faults: &mut Faults) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(is) => Some(is.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Some(number.to_string()),
            Err(_) => {
                faults.add(value.span().start, format!("{key}: the number is too large"));
                None
            }
        },
        DeValue::Float(number) => Some(number.as_str().to_string()),
        DeValue::Array(several) => {
            let one = |value| setting(key, value, faults);
            several.iter().map(one).collect::<Option<Vec<String>>>().map(|all| all.join(","))
        }
        other => {
            let why = format!("{key} must be a value as for --set, not {}", kind(other));
            faults.add(value.span().start, why);
            None
        }
    }
}

/// Parses an array of tables, such as `[[step]]`.
pub fn tables<'a>(
    key: &str,
    value: &'a Spanned<DeValue<'a>>,
    faults: &mut Faults,
) -> Vec<(usize, &'a DeTable<'a>)> {
    let at = value.span().start;
    let wrong = |faults: &mut Faults, at| {
        faults.add(at, format!("invalid {key} (hint: write [[{key}]] for each)"))
    };
    match value.get_ref() {
        DeValue::Array(several) => {
            let mut found = Vec::new();
            for one in several.iter() {
                match one.get_ref() {
                    DeValue::Table(table) => found.push((one.span().start, table)),
                    _ => wrong(faults, one.span().start),
                }
            }
            found
        }
        _ => {
            wrong(faults, at);
            Vec::new()
        }
    }
}

/// Returns the name of a value's type.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "this integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
