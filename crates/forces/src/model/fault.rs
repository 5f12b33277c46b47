//! Faults of a library, with their place in the document.

use std::fmt;

use super::{TYPE_DEPTH_MAX, TYPE_PARTS_MAX, Version};
use crate::model::value::ValueFault;

/// A place in a document, from line 1 and column 1; 0 without a document.
///
/// All places are equal, so that two definitions compare equal regardless of their places.
#[derive(Clone, Copy, Default)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl PartialEq for Location {
    fn eq(&self, _: &Location) -> bool {
        true
    }
}

impl Eq for Location {}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A fault of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFault {
    /// Label of the library.
    pub library: String,
    /// Place in its document.
    pub place: Location,
    /// The definition that contains it, in words; empty for the library itself.
    pub within: String,
    /// The problem.
    pub problem: Problem,
}

/// A problem in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Two libraries have the same label.
    LibraryTwice,
    /// A loaded library does not exist.
    LoadUnknown {
        /// Its label.
        library: String,
    },
    /// Two definitions in this library and those that it loads have the same name.
    NameTwice {
        /// Kind of definition, in one word.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two definitions have the same id.
    IdTwice {
        /// Kind of definition, in one word.
        what: &'static str,
        /// The id.
        id: u32,
        /// Name of the first definition.
        first: String,
    },
    /// A name is not defined.
    Unknown {
        /// Expected kind of definition, in one word.
        what: &'static str,
        /// The name.
        name: String,
        /// Label of a library that defines it but is not loaded.
        elsewhere: Option<String>,
    },
    /// A name is empty, or has invalid characters.
    NameWrong {
        /// The name.
        name: String,
    },
    /// A name is that of a base type.
    NameTaken {
        /// The name.
        name: String,
    },
    /// A type contains itself.
    TypeLoop {
        /// Its name.
        name: String,
    },
    /// A type is nested too deep.
    TypeTooDeep,
    /// A type has too many parts.
    TypeTooLarge,
    /// The definitions together exceed a limit of the catalog.
    CatalogTooLarge {
        /// What exceeds the limit, in words.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// A type has the wrong structure.
    TypeKind {
        /// The type.
        name: String,
        /// Expected structure, in words.
        expected: &'static str,
    },
    /// A range is empty, or exceeds the base type.
    Range {
        /// Minimum.
        min: i128,
        /// Maximum.
        max: i128,
    },
    /// A default or special value is invalid for its type.
    Value {
        /// Purpose of the value, in words.
        what: String,
        /// The cause.
        fault: ValueFault,
    },
    /// A content key has a field that the rows do not have.
    KeyField {
        /// Key ID.
        key: u32,
        /// The field as declared.
        field: String,
    },
    /// A content key has no fields.
    KeyEmpty {
        /// Key ID.
        key: u32,
    },
    /// A fixed-size array has no rows.
    NoRows,
    /// A struct has no fields.
    NoFields,
    /// An ID is 0, which has another meaning on the wire.
    IdZero {
        /// Kind of definition, in one word.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A field or component replaces an inherited one and does not augment it.
    NotAnAugmentation {
        /// Its name.
        name: String,
    },
    /// A class is derived from itself.
    ClassLoop {
        /// Its name.
        name: String,
    },
    /// The parent class does not have the declared version.
    ParentVersion {
        /// The parent class.
        name: String,
        /// The declared version.
        named: Version,
        /// The actual version.
        there: Version,
    },
    /// A class has events but no event base.
    EventBaseMissing,
    /// A class redefines its parent's event base.
    EventBaseAgain {
        /// The parent's event base.
        parent: u32,
    },
    /// A step of an event's target or report does not exist.
    EventPath {
        /// The event.
        event: String,
        /// The step.
        step: String,
        /// The expected step, in words.
        expected: &'static str,
    },
    /// An event's condition does not apply to its target.
    EventCondition {
        /// The event.
        event: String,
        /// The required type of the target, in words.
        expected: &'static str,
    },
    /// An optional metadata item has no default.
    DefaultMissing {
        /// The metadata item.
        name: String,
    },
}

impl fmt::Display for LibraryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.library, self.place)?;
        if !self.within.is_empty() {
            write!(f, "{}: ", self.within)?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::LibraryTwice => f.write_str("another library has the same label"),
            Problem::LoadUnknown { library } => {
                write!(f, "unknown library {library} in load")
            }
            Problem::NameTwice { what, name } => write!(f, "{what} {name} is defined twice"),
            Problem::IdTwice { what, id, first } => {
                write!(f, "{what} has the ID {id} of {first}")
            }
            Problem::Unknown { what, name, elsewhere: None } => {
                write!(f, "there is no {what} {name}")
            }
            Problem::Unknown { what, name, elsewhere: Some(library) } => {
                write!(f, "there is no {what} {name} (hint: load library {library}, which has one)")
            }
            Problem::NameWrong { name } => {
                write!(
                    f,
                    "invalid name {name:?} (hint: use letters, digits, '.', '-', '_' and ':')"
                )
            }
            Problem::NameTaken { name } => write!(f, "{name} is the name of a base type"),
            Problem::TypeLoop { name } => write!(f, "data type {name} contains itself"),
            Problem::TypeTooDeep => {
                write!(f, "the type is nested more than {TYPE_DEPTH_MAX} levels deep")
            }
            Problem::TypeTooLarge => write!(f, "the type has more than {TYPE_PARTS_MAX} parts"),
            Problem::CatalogTooLarge { what, max } => {
                write!(f, "this definition exceeds {max} {what}")
            }
            Problem::TypeKind { name, expected } => write!(f, "expected {expected}, found {name}"),
            Problem::Range { min, max } => {
                write!(f, "the base type does not allow numbers from {min} to {max}")
            }
            Problem::Value { what, fault } => write!(f, "the {what}: {fault}"),
            Problem::KeyField { key, field } => {
                write!(f, "content key {key}: rows have no {field:?}")
            }
            Problem::KeyEmpty { key } => write!(f, "content key {key} has no fields"),
            Problem::NoRows => f.write_str("an array of fixed size needs a length above 0"),
            Problem::NoFields => f.write_str("a struct or union needs a component"),
            Problem::IdZero { what, name } => write!(f, "{what} {name} has the invalid ID 0"),
            Problem::NotAnAugmentation { name } => {
                write!(
                    f,
                    "{name} exists already, with another ID or a type that this one does not extend"
                )
            }
            Problem::ClassLoop { name } => write!(f, "class {name} is derived from itself"),
            Problem::ParentVersion { name, named, there } => {
                write!(f, "derived from {name} {named}, but {name} has version {there}")
            }
            Problem::EventBaseMissing => f.write_str("events need a baseID"),
            Problem::EventBaseAgain { parent } => {
                write!(f, "events have another baseID than {parent} of the parent class")
            }
            Problem::EventPath { event, step, expected } => {
                write!(f, "event {event}: expected {expected}, found {step:?}")
            }
            Problem::EventCondition { event, expected } => {
                write!(f, "event {event}: the target must be {expected}")
            }
            Problem::DefaultMissing { name } => {
                write!(f, "metadatum {name} is optional but has no defaultValue")
            }
        }
    }
}

impl std::error::Error for LibraryFault {}
