//! Class libraries as XML: a document becomes a [`Library`] and back.
//!
//! Source: the schemas of RFC 5812 section 4.9 (namespace `...lfbmodel:1.0`) and RFC 7408 section 3
//! (`...:1.1`). Reading tells every fault at once, each with its line and column, and is bounded: no
//! DTD and so no entities of the document's own, limited octets, elements and depth. Writing gives a
//! document that reads back as the same library.
//!
//! Three libraries ship with the crate, typed from the RFCs: [`CORE`], the FE's own classes
//! (RFC 5810 appendix B with RFC 7121 and RFC 7391, RFC 5812 section 5), and [`BASE`] with its
//! [`BASE_TYPES`] (RFC 6956).

/// Elements in the order that the schema wants.
mod elements;
/// What is wrong in a document.
mod fault;
/// XML to a library.
mod read;
/// Types, ports and events within a document.
mod read_parts;
/// What the parser does not bound.
mod scan;
/// A library to XML.
mod write;

pub use fault::{DocumentFault, DocumentProblem};
pub use read::read;
pub use write::write;

use crate::model::{Catalog, Library};

/// Largest document, in octets.
pub const DOCUMENT_OCTETS_MAX: usize = 4 << 20;
/// Most elements, attributes and texts of a document.
pub const DOCUMENT_NODES_MAX: u32 = 400_000;
/// Deepest nesting of elements.
pub const DOCUMENT_DEPTH_MAX: usize = 96;
/// Most attributes of an element.
pub const DOCUMENT_ATTRIBUTES_MAX: usize = 64;
/// Most declarations of namespaces.
pub const DOCUMENT_NAMESPACES_MAX: usize = 64;
/// Most elements within one.
pub const CHILDREN_MAX: usize = 8192;

/// The classes that every FE has: FEObject (1) and FEPO (2).
pub const CORE: &str = include_str!("../libraries/core.lfb.xml");
/// Frames, data types and metadata of RFC 6956.
pub const BASE_TYPES: &str = include_str!("../libraries/base-types.lfb.xml");
/// Classes 3 to 17 of RFC 6956; what it leaves open is settled in their descriptions.
pub const BASE: &str = include_str!("../libraries/base.lfb.xml");

/// The libraries that ship with the crate.
pub fn shipped() -> Vec<Library> {
    [CORE, BASE_TYPES, BASE]
        .map(|xml| read(xml).expect("a shipped library is read in tests"))
        .into()
}

/// The shipped libraries, resolved.
pub fn standard() -> Catalog {
    Catalog::new(shipped()).expect("the shipped libraries are resolved in tests")
}

#[cfg(test)]
mod tests;
