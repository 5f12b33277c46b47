//! Class libraries as declared, and a catalog of resolved classes.
//!
//! Source: RFC 5812 section 4 with the additions of RFC 7408.
//!
//! - A [`Library`] has the contents of one document with unresolved names, so that it can be
//!   written again.
//! - A [`Catalog`] combines several libraries, follows their loads and checks all rules. Its
//!   [`Class`]es include inherited parts, and its [`DataType`]s need no further lookup.

mod access;
mod atomic;
mod catalog;
mod declared;
mod data_type;
mod fault;
mod path;
mod class;
pub mod value;

pub use access::Access;
pub use atomic::{Atomic, Base, SpecialValue};
pub use catalog::Catalog;
pub use class::{Class, Component, ComponentKind, Event, Metadata, ReportPart};
pub use data_type::{Array, ArraySize, ContentKey, DataType, Field, Kind};
pub use declared::{
    ArrayDecl, AtomicDecl, CapabilityDef, ClassDef, ComponentDef, Condition, EventDef, Expected,
    FieldDecl, FrameDef, InputPort, Library, Load, MetadataDef, OutputPort, PathPart, Produced,
    Schema, SpecialValueDecl, StructDecl, TypeDecl, TypeDef, Version,
};
pub use fault::{LibraryFault, Location, Problem};
pub use path::{PATH_STEPS_MAX, PathFault, Target};

/// Maximum nesting depth of a data type.
pub const TYPE_DEPTH_MAX: usize = 32;
/// Maximum number of parts of a resolved data type.
///
/// A part of a fixed-size array counts once for each row.
pub const TYPE_PARTS_MAX: u64 = 65_536;
/// Maximum octets of a string, byte array or octet string, limited by a TLV (RFC 5810 section 6.2).
pub const ATOM_OCTETS_MAX: u32 = 65_531;
