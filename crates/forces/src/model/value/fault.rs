//! Faults of a value, with their place inside the value.

use std::fmt;

/// A value that is invalid for its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFault {
    /// Path of fields and rows, such as `[3].Prefixlen`; empty for the value itself.
    pub path: String,
    /// The cause.
    pub why: ValueFaultKind,
}

/// Cause of a fault in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueFaultKind {
    /// The value is of the wrong kind.
    Kind {
        /// The expected kind, in words.
        expected: String,
    },
    /// The text is neither a number nor a special value.
    NotThat {
        /// The text, truncated.
        text: String,
        /// The expected text, in words.
        expected: String,
        /// Names of the special values.
        names: Vec<String>,
    },
    /// A number is out of range.
    Range {
        /// The number.
        number: String,
        /// The allowed numbers, in words.
        allowed: String,
    },
    /// The number of octets is wrong.
    Octets {
        /// Actual number of octets.
        octets: usize,
        /// Allowed number, in words.
        allowed: String,
    },
    /// The octets are not valid UTF-8.
    Utf8,
    /// A mandatory field is missing.
    FieldMissing {
        /// Its name.
        name: String,
    },
    /// The type has no such field.
    FieldUnknown {
        /// The unknown field.
        field: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// A field or row occurs twice.
    Twice {
        /// The field or row.
        part: String,
    },
    /// An index is out of range.
    Index {
        /// The index.
        index: u32,
        /// Maximum number of rows.
        rows: u32,
    },
    /// The number of rows is wrong.
    Rows {
        /// Actual number of rows.
        rows: usize,
        /// Allowed number, in words.
        allowed: String,
    },
    /// Two rows have the same content key.
    KeyTwice {
        /// Key ID.
        key: u32,
        /// Index of the earlier row.
        first: u32,
        /// Index of the later row.
        second: u32,
    },
    /// A row lacks a field of a content key.
    KeyMissing {
        /// Key ID.
        key: u32,
    },
    /// The text has a syntax error.
    Syntax {
        /// Offset of the error in octets.
        at: usize,
        /// The expected token.
        expected: &'static str,
    },
    /// The text is too long.
    TextTooLong {
        /// Actual number of octets.
        octets: usize,
        /// Maximum number of octets.
        octets_max: usize,
    },
}

impl ValueFault {
    pub(crate) fn here(why: ValueFaultKind) -> ValueFault {
        ValueFault { path: String::new(), why }
    }

    /// Prepends a field or row to the path.
    pub(crate) fn below(mut self, part: impl fmt::Display) -> ValueFault {
        self.path = match self.path.as_bytes().first() {
            None | Some(b'[') => format!("{part}{}", self.path),
            Some(_) => format!("{part}.{}", self.path),
        };
        self
    }
}

/// A list of names in a sentence, truncated if it is long.
pub(crate) struct Names<'a>(pub &'a [String]);

/// Maximum number of listed names; "and more" replaces further ones.
const NAMES_SHOWN: usize = 16;

/// Collects the names for a fault, at most one more than are listed.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.take(NAMES_SHOWN + 1).cloned().collect()
}

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(NAMES_SHOWN)];
        f.write_str(&shown.join(", "))?;
        f.write_str(if self.0.len() > shown.len() { " and more" } else { "" })
    }
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.why.fmt(f)
    }
}

impl fmt::Display for ValueFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueFaultKind::Kind { expected } => write!(f, "is not of type {expected}"),
            ValueFaultKind::NotThat { text, expected, names } if names.is_empty() => {
                write!(f, "expected {expected}, found {text:?}")
            }
            ValueFaultKind::NotThat { text, expected, names } => {
                write!(f, "expected {expected} or one of {}, found {text:?}", Names(names))
            }
            ValueFaultKind::Range { number, allowed } => {
                write!(f, "{number} is out of range (allowed: {allowed})")
            }
            ValueFaultKind::Octets { octets, allowed } => {
                write!(f, "has {octets} octets (allowed: {allowed})")
            }
            ValueFaultKind::Utf8 => f.write_str("is not UTF-8"),
            ValueFaultKind::FieldMissing { name } => write!(f, "lacks {name}"),
            ValueFaultKind::FieldUnknown { field, names } => {
                write!(f, "has no field {field} (known: {})", Names(names))
            }
            ValueFaultKind::Twice { part } => write!(f, "has {part} twice"),
            ValueFaultKind::Index { index, rows } => {
                write!(f, "has no row {index} (last row: {})", rows.saturating_sub(1))
            }
            ValueFaultKind::Rows { rows, allowed } => {
                write!(f, "has {rows} rows (allowed: {allowed})")
            }
            ValueFaultKind::KeyTwice { key, first, second } => {
                write!(f, "rows {first} and {second} have the same content key {key}")
            }
            ValueFaultKind::KeyMissing { key } => write!(f, "lacks a field of content key {key}"),
            ValueFaultKind::Syntax { at, expected } => {
                write!(f, "expected {expected} after {at} octets")
            }
            ValueFaultKind::TextTooLong { octets, octets_max } => {
                write!(f, "the text has {octets} octets, at most {octets_max} are allowed")
            }
        }
    }
}

impl std::error::Error for ValueFault {}
