//! Reads and writes class libraries in XML.
//!
//! Source: the schemas of RFC 5812 section 4.9 (namespace `...lfbmodel:1.0`) and RFC 7408 section 3
//! (`...:1.1`).
//!
//! - Reading reports all faults of a document, each with line and column.
//! - Reading is bounded: it rejects DTDs, and so entity definitions, and limits octets, elements
//!   and depth.
//! - A written document reads back as the same library.
//!
//! The crate contains three libraries from the RFCs:
//!
//! - [`CORE`]: the FE's own classes (RFC 5810 appendix B with RFC 7121 and RFC 7391, RFC 5812
//!   section 5)
//! - [`BASE`] and [`BASE_TYPES`]: RFC 6956

mod elements;
mod fault;
mod read;
mod read_parts;
mod scan;
mod write;

pub use fault::{DocumentFault, DocumentProblem};
pub use read::read;
pub use write::write;

use crate::model::{Catalog, Library};

/// Maximum octets of a document.
pub const DOCUMENT_OCTETS_MAX: usize = 4 << 20;
/// Maximum number of elements, attributes and texts of a document.
pub const DOCUMENT_NODES_MAX: u32 = 400_000;
/// Maximum nesting depth of elements.
pub const DOCUMENT_DEPTH_MAX: usize = 96;
/// Maximum number of attributes of an element.
pub const DOCUMENT_ATTRIBUTES_MAX: usize = 64;
/// Maximum number of namespace declarations.
pub const DOCUMENT_NAMESPACES_MAX: usize = 64;
/// Maximum number of child elements.
pub const CHILDREN_MAX: usize = 8192;

/// LFB classes of every FE: FEObject (1) and FEPO (2).
pub const CORE: &str = include_str!("../libraries/core.lfb.xml");
/// Frame types, data types and metadata of RFC 6956.
pub const BASE_TYPES: &str = include_str!("../libraries/base-types.lfb.xml");
/// LFB classes 3 to 17 of RFC 6956. Their descriptions decide what the RFC leaves open.
pub const BASE: &str = include_str!("../libraries/base.lfb.xml");

/// Returns the libraries that ship with the crate.
pub fn shipped() -> Vec<Library> {
    [CORE, BASE_TYPES, BASE]
        .map(|xml| read(xml).expect("a shipped library is read in tests"))
        .into()
}

/// Returns the catalog of the libraries that ship with the crate.
pub fn standard() -> Catalog {
    Catalog::new(shipped()).expect("the shipped libraries are resolved in tests")
}

#[cfg(test)]
mod tests;
