//! What is wrong in a library, as facts with their place in the document.

use std::fmt;

use super::{TYPE_DEPTH_MAX, TYPE_PARTS_MAX, Version};
use crate::value::ValueFault;

/// Where something stands in its document, from line 1 and column 1; 0 where there is no document.
///
/// Two things are the same wherever they stand, so places never make a difference.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Something that is wrong in a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The library's label.
    pub library: String,
    /// Where in its document.
    pub place: Place,
    /// The definition that it is in, in words; empty for the library itself.
    pub within: String,
    /// What it is.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Two libraries with the same label.
    LibraryTwice,
    /// A library that is loaded is not there.
    LoadUnknown {
        /// Its label.
        library: String,
    },
    /// Two definitions have the same name, in this library and those that it loads.
    NameTwice {
        /// What is defined, in a word.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Two definitions have the same id.
    IdTwice {
        /// What is defined, in a word.
        what: &'static str,
        /// The id.
        id: u32,
        /// The name of the earlier one.
        first: String,
    },
    /// A name of nothing.
    Unknown {
        /// What it should be, in a word.
        what: &'static str,
        /// The name.
        name: String,
        /// The label of a library that has it and is not loaded.
        elsewhere: Option<String>,
    },
    /// A name is empty, or holds characters that names do not have.
    NameWrong {
        /// The name.
        name: String,
    },
    /// A name that a base type has.
    NameTaken {
        /// The name.
        name: String,
    },
    /// A type that consists of itself.
    TypeLoop {
        /// Its name.
        name: String,
    },
    /// A type that is nested too deep.
    TypeTooDeep,
    /// A type with too many parts.
    TypeTooLarge,
    /// All definitions together are more than a catalog holds.
    CatalogTooLarge {
        /// What there is too much of, in words.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
    /// A type that should be another kind of type.
    TypeKind {
        /// The type.
        name: String,
        /// What it should be, in words.
        expected: &'static str,
    },
    /// A range that ends before it begins, or that the base type does not hold.
    Range {
        /// Its smallest number.
        min: i128,
        /// Its largest.
        max: i128,
    },
    /// A default or a special value that its type does not have.
    Value {
        /// What it is given for, in words.
        what: String,
        /// Why.
        fault: ValueFault,
    },
    /// A field of a content key that rows do not have.
    KeyField {
        /// The key's id.
        key: u32,
        /// The field as it is declared.
        field: String,
    },
    /// A content key without fields.
    KeyEmpty {
        /// The key's id.
        key: u32,
    },
    /// A fixed array has no rows.
    NoRows,
    /// A struct without fields.
    NoFields,
    /// The id 0 where the wire has another meaning for it.
    IdZero {
        /// What is defined, in a word.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A field or component is defined again by what adds to it, and is something else then.
    NotAnAugmentation {
        /// Its name.
        name: String,
    },
    /// Classes that add to each other.
    ClassLoop {
        /// Its name.
        name: String,
    },
    /// The parent has another version than the one that is named.
    ParentVersion {
        /// The parent.
        name: String,
        /// What is named.
        named: Version,
        /// What is there.
        there: Version,
    },
    /// Events without the first number of their paths.
    EventBaseMissing,
    /// Events of a class whose parent has said the first number already.
    EventBaseAgain {
        /// The parent's.
        parent: u32,
    },
    /// A step of an event's target or report that is not there.
    EventPath {
        /// The event.
        event: String,
        /// The step.
        step: String,
        /// What it should be, in words.
        expected: &'static str,
    },
    /// A condition whose target cannot meet it.
    EventCondition {
        /// The event.
        event: String,
        /// What the target would have to be, in words.
        expected: &'static str,
    },
    /// A metadatum that may be missing, and nothing is said that is taken for it.
    DefaultMissing {
        /// The metadatum.
        name: String,
    },
}

impl fmt::Display for Fault {
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
                write!(f, "library {library} is loaded and was not given")
            }
            Problem::NameTwice { what, name } => write!(f, "{what} {name} is defined twice"),
            Problem::IdTwice { what, id, first } => {
                write!(f, "{what} has the id {id}, which is {first}'s")
            }
            Problem::Unknown { what, name, elsewhere: None } => {
                write!(f, "there is no {what} {name}")
            }
            Problem::Unknown { what, name, elsewhere: Some(library) } => {
                write!(f, "there is no {what} {name}; library {library} has one: load it")
            }
            Problem::NameWrong { name } => {
                write!(f, "{name:?} is no name: letters, digits, '.', '-', '_' and ':' are")
            }
            Problem::NameTaken { name } => write!(f, "{name} is the name of a base type"),
            Problem::TypeLoop { name } => write!(f, "data type {name} consists of itself"),
            Problem::TypeTooDeep => write!(f, "the type is nested over {TYPE_DEPTH_MAX} deep"),
            Problem::TypeTooLarge => write!(f, "the type has over {TYPE_PARTS_MAX} parts"),
            Problem::CatalogTooLarge { what, max } => {
                write!(f, "with this definition there are over {max} {what}")
            }
            Problem::TypeKind { name, expected } => write!(f, "{name} is no {expected}"),
            Problem::Range { min, max } => {
                write!(f, "the base type has no numbers from {min} to {max}")
            }
            Problem::Value { what, fault } => write!(f, "the {what}: {fault}"),
            Problem::KeyField { key, field } => {
                write!(f, "content key {key}: rows have no {field:?}")
            }
            Problem::KeyEmpty { key } => write!(f, "content key {key} has no fields"),
            Problem::NoRows => f.write_str("an array of fixed size needs a length over 0"),
            Problem::NoFields => f.write_str("a struct or union needs a component"),
            Problem::IdZero { what, name } => write!(f, "{what} {name} may not have the id 0"),
            Problem::NotAnAugmentation { name } => {
                write!(
                    f,
                    "{name} is there already, with another id or a type that this one does not add to"
                )
            }
            Problem::ClassLoop { name } => write!(f, "class {name} is derived from itself"),
            Problem::ParentVersion { name, named, there } => {
                write!(f, "it is derived from {name} {named}, and {name} {there} is there")
            }
            Problem::EventBaseMissing => f.write_str("events need a baseID"),
            Problem::EventBaseAgain { parent } => {
                write!(f, "events have a baseID of their own, and the parent class says {parent}")
            }
            Problem::EventPath { event, step, expected } => {
                write!(f, "event {event}: {step:?} is no {expected}")
            }
            Problem::EventCondition { event, expected } => {
                write!(f, "event {event}: its target has to be {expected}")
            }
            Problem::DefaultMissing { name } => {
                write!(f, "metadatum {name} is optional and has no defaultValue")
            }
        }
    }
}

impl std::error::Error for Fault {}
