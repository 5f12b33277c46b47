//! Faults of a document, with their place.

use std::fmt;

use super::{CHILDREN_MAX, DOCUMENT_ATTRIBUTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NAMESPACES_MAX};
use crate::model::Location;

/// A fault of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFault {
    /// Line and column.
    pub place: Location,
    /// The problem.
    pub problem: DocumentProblem,
}

/// A problem in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentProblem {
    /// The document has too many octets.
    TooLarge {
        /// Actual number of octets.
        octets: usize,
        /// Maximum number of octets.
        octets_max: usize,
    },
    /// The XML is not well-formed, exceeds the parser's limits, or has a DTD.
    Malformed(String),
    /// Elements are nested too deep.
    TooDeep,
    /// An element has too many attributes, or the document too many namespaces.
    TooManyAttributes,
    /// An element has too many child elements.
    TooMany {
        /// The parent element.
        element: String,
    },
    /// The root element is wrong.
    Root {
        /// The actual root element.
        found: String,
    },
    /// The namespace is not that of a class library.
    Namespace {
        /// The actual namespace; empty if there is none.
        found: String,
    },
    /// An element is not allowed here.
    Unexpected {
        /// The element.
        element: String,
        /// The parent element.
        within: String,
        /// The allowed elements.
        expected: String,
    },
    /// An element follows one that it must precede.
    Order {
        /// The element.
        element: String,
        /// The element before it.
        behind: String,
    },
    /// An element occurs more than once.
    Twice {
        /// The element.
        element: String,
    },
    /// A required element is missing.
    Missing {
        /// The missing element.
        element: String,
        /// The parent element.
        within: String,
    },
    /// Text occurs where only elements are allowed.
    Text {
        /// The parent element.
        within: String,
    },
    /// A required attribute is missing.
    AttributeMissing {
        /// The missing attribute.
        attribute: &'static str,
        /// The element.
        element: String,
    },
    /// An attribute is not allowed here.
    AttributeUnknown {
        /// The attribute.
        attribute: String,
        /// The element.
        element: String,
    },
    /// A text or an attribute is invalid.
    Wrong {
        /// Name of the element or attribute.
        what: String,
        /// The invalid text, truncated.
        text: String,
        /// The expected text, in words.
        expected: &'static str,
    },
}

impl fmt::Display for DocumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl fmt::Display for DocumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocumentProblem::TooLarge { octets, octets_max } => {
                write!(f, "the document has {octets} octets, at most {octets_max} are allowed")
            }
            DocumentProblem::Malformed(why) => write!(f, "invalid or unsupported XML: {why}"),
            DocumentProblem::TooDeep => {
                write!(f, "elements are nested more than {DOCUMENT_DEPTH_MAX} levels deep")
            }
            DocumentProblem::TooManyAttributes => write!(
                f,
                "an element has more than {DOCUMENT_ATTRIBUTES_MAX} attributes, or the document \
                 declares more than {DOCUMENT_NAMESPACES_MAX} namespaces"
            ),
            DocumentProblem::TooMany { element } => {
                write!(f, "{element} has more than {CHILDREN_MAX} child elements")
            }
            DocumentProblem::Root { found } => {
                write!(f, "the root element is {found} instead of LFBLibrary")
            }
            DocumentProblem::Namespace { found } => write!(
                f,
                "the namespace is {found:?} instead of urn:ietf:params:xml:ns:forces:lfbmodel:1.0 \
                 or :1.1"
            ),
            DocumentProblem::Unexpected { element, within, expected } => {
                write!(f, "{element} is not allowed in {within}, expected {expected}")
            }
            DocumentProblem::Order { element, behind } => {
                write!(f, "{element} must precede {behind}")
            }
            DocumentProblem::Twice { element } => write!(f, "{element} occurs twice"),
            DocumentProblem::Missing { element, within } => write!(f, "{within} lacks {element}"),
            DocumentProblem::Text { within } => {
                write!(f, "text in {within}, which only has elements")
            }
            DocumentProblem::AttributeMissing { attribute, element } => {
                write!(f, "{element} lacks the attribute {attribute}")
            }
            DocumentProblem::AttributeUnknown { attribute, element } => {
                write!(f, "{element} has no attribute {attribute}")
            }
            DocumentProblem::Wrong { what, text, expected } => {
                write!(f, "{what} is {text:?}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for DocumentFault {}
