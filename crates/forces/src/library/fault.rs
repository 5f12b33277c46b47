//! What is wrong in a document, as facts with their place.

use std::fmt;

use super::{CHILDREN_MAX, DOCUMENT_ATTRIBUTES_MAX, DOCUMENT_DEPTH_MAX, DOCUMENT_NAMESPACES_MAX};
use crate::model::Place;

/// Something that is wrong in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFault {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub problem: DocumentProblem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentProblem {
    /// More octets than are read.
    TooLarge {
        /// How many there are.
        octets: usize,
        /// How many are read.
        octets_max: usize,
    },
    /// No well-formed XML, or more of it than is read; a DTD is none here.
    Malformed(String),
    /// Elements nested too deep.
    TooDeep,
    /// Too many attributes of an element, or namespaces of the document.
    TooManyAttributes,
    /// Too many elements within one.
    TooMany {
        /// The outer element.
        element: String,
    },
    /// Another root element.
    Root {
        /// What it is.
        found: String,
    },
    /// A namespace that is no library's.
    Namespace {
        /// What it is; empty if there is none.
        found: String,
    },
    /// An element that does not belong there.
    Unexpected {
        /// What it is.
        element: String,
        /// What it stands in.
        within: String,
        /// What may stand there.
        expected: String,
    },
    /// An element that stands behind one that it has to stand before.
    Order {
        /// What it is.
        element: String,
        /// What it stands behind.
        behind: String,
    },
    /// An element that may stand there only once.
    Twice {
        /// What it is.
        element: String,
    },
    /// An element that has to be there and is not.
    Missing {
        /// What it should be.
        element: String,
        /// Where.
        within: String,
    },
    /// Text where only elements belong.
    Text {
        /// What it stands in.
        within: String,
    },
    /// An attribute that has to be there and is not.
    AttributeMissing {
        /// What it should be.
        attribute: &'static str,
        /// Where.
        element: String,
    },
    /// An attribute that does not belong there.
    AttributeUnknown {
        /// What it is.
        attribute: String,
        /// Where.
        element: String,
    },
    /// A text or attribute that is not what it should be.
    Wrong {
        /// What it is for: an element or an attribute.
        what: String,
        /// What it says, cut short.
        text: String,
        /// What it should be, in words.
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
                write!(f, "the document has {octets} octets, at most {octets_max} are read")
            }
            DocumentProblem::Malformed(why) => write!(f, "no XML that is read here: {why}"),
            DocumentProblem::TooDeep => {
                write!(f, "elements are nested over {DOCUMENT_DEPTH_MAX} deep")
            }
            DocumentProblem::TooManyAttributes => write!(
                f,
                "an element has over {DOCUMENT_ATTRIBUTES_MAX} attributes, or the document \
                 declares over {DOCUMENT_NAMESPACES_MAX} namespaces"
            ),
            DocumentProblem::TooMany { element } => {
                write!(f, "{element} has over {CHILDREN_MAX} elements in it")
            }
            DocumentProblem::Root { found } => {
                write!(f, "the root is {found}, a library's is LFBLibrary")
            }
            DocumentProblem::Namespace { found } => write!(
                f,
                "the namespace is {found:?}, a library's is \
                 urn:ietf:params:xml:ns:forces:lfbmodel:1.0 or :1.1"
            ),
            DocumentProblem::Unexpected { element, within, expected } => {
                write!(f, "{element} does not belong into {within}, {expected} does")
            }
            DocumentProblem::Order { element, behind } => {
                write!(f, "{element} has to stand before {behind}")
            }
            DocumentProblem::Twice { element } => write!(f, "{element} is there twice"),
            DocumentProblem::Missing { element, within } => write!(f, "{within} lacks {element}"),
            DocumentProblem::Text { within } => {
                write!(f, "{within} holds elements only, and there is text")
            }
            DocumentProblem::AttributeMissing { attribute, element } => {
                write!(f, "{element} lacks the attribute {attribute}")
            }
            DocumentProblem::AttributeUnknown { attribute, element } => {
                write!(f, "{element} has no attribute {attribute}")
            }
            DocumentProblem::Wrong { what, text, expected } => {
                write!(f, "{what} is {text:?} and should be {expected}")
            }
        }
    }
}

impl std::error::Error for DocumentFault {}
