//! What a data type does not allow, as facts with their place inside the value.

use std::fmt;

/// A value that is none of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFault {
    /// Fields and rows that lead to it, as `[3].Prefixlen`; empty for the value itself.
    pub path: String,
    /// What is wrong there.
    pub why: ValueWhy,
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueWhy {
    /// Another kind of value is expected.
    Kind {
        /// What is expected, in words.
        expected: String,
    },
    /// Neither a number nor one of the names.
    NotThat {
        /// What it is, cut short.
        text: String,
        /// What is expected, in words.
        expected: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A number out of range.
    Range {
        /// The number.
        number: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// More or fewer octets than the type has.
    Octets {
        /// How many there are.
        octets: usize,
        /// What is allowed, in words.
        allowed: String,
    },
    /// Octets that are not UTF-8.
    Utf8,
    /// A field that may not be missing is.
    FieldMissing {
        /// Its name.
        name: String,
    },
    /// A field that the type does not have.
    FieldUnknown {
        /// What was said.
        field: String,
        /// The names that there are.
        names: Vec<String>,
    },
    /// A field or row that is given twice.
    Twice {
        /// What was said.
        part: String,
    },
    /// An index that a row cannot have.
    Index {
        /// The index.
        index: u32,
        /// How many rows there can be.
        rows: u32,
    },
    /// More or fewer rows than the type allows.
    Rows {
        /// How many there are.
        rows: usize,
        /// What is allowed, in words.
        allowed: String,
    },
    /// Two rows with the same content key.
    KeyTwice {
        /// The key's id.
        key: u32,
        /// The earlier row.
        first: u32,
        /// The later row.
        second: u32,
    },
    /// A row lacks a field of a content key.
    KeyMissing {
        /// The key's id.
        key: u32,
    },
    /// Text that is not written as a value is.
    Syntax {
        /// How many octets of the text were read.
        at: usize,
        /// What would have to come.
        expected: &'static str,
    },
    /// Text that is longer than any value's may be.
    TextTooLong {
        /// How many octets it has.
        octets: usize,
        /// How many it may have.
        octets_max: usize,
    },
}

impl ValueFault {
    pub(crate) fn here(why: ValueWhy) -> ValueFault {
        ValueFault { path: String::new(), why }
    }

    /// The same fault seen from one field or row further out.
    pub(crate) fn below(mut self, part: impl fmt::Display) -> ValueFault {
        self.path = match self.path.as_bytes().first() {
            None | Some(b'[') => format!("{part}{}", self.path),
            Some(_) => format!("{part}.{}", self.path),
        };
        self
    }
}

/// A list of names as prose has it, cut short where it would be long.
pub(crate) struct Names<'a>(pub &'a [String]);

/// Names that are listed; of more it is only said that there are some.
const NAMES_SHOWN: usize = 16;

/// The names that a fault lists, however many there are.
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

impl fmt::Display for ValueWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueWhy::Kind { expected } => write!(f, "is no {expected}"),
            ValueWhy::NotThat { text, expected, names } if names.is_empty() => {
                write!(f, "{text:?} is no {expected}")
            }
            ValueWhy::NotThat { text, expected, names } => {
                write!(f, "{text:?} is no {expected} and none of {}", Names(names))
            }
            ValueWhy::Range { number, allowed } => {
                write!(f, "{number} is out of range, allowed is {allowed}")
            }
            ValueWhy::Octets { octets, allowed } => {
                write!(f, "has {octets} octets, allowed is {allowed}")
            }
            ValueWhy::Utf8 => f.write_str("is not UTF-8"),
            ValueWhy::FieldMissing { name } => write!(f, "lacks {name}"),
            ValueWhy::FieldUnknown { field, names } => {
                write!(f, "has no field {field}, there are {}", Names(names))
            }
            ValueWhy::Twice { part } => write!(f, "has {part} twice"),
            ValueWhy::Index { index, rows } => {
                write!(f, "has no row {index}, the last one is {}", rows.saturating_sub(1))
            }
            ValueWhy::Rows { rows, allowed } => {
                write!(f, "has {rows} rows, allowed is {allowed}")
            }
            ValueWhy::KeyTwice { key, first, second } => {
                write!(f, "rows {first} and {second} have the same content key {key}")
            }
            ValueWhy::KeyMissing { key } => write!(f, "lacks a field of content key {key}"),
            ValueWhy::Syntax { at, expected } => {
                write!(f, "{expected} has to come behind the first {at} octets")
            }
            ValueWhy::TextTooLong { octets, octets_max } => {
                write!(f, "is a text of {octets} octets, at most {octets_max} are read")
            }
        }
    }
}

impl std::error::Error for ValueFault {}
