//! Class libraries: what a document declares, and a catalog in which it is all resolved.
//!
//! Source: RFC 5812 section 4 with the additions of RFC 7408. A [`Library`] says what one document
//! says, names left as names, so that it can be written again; a [`Catalog`] takes several, follows
//! their loads, checks every rule, and gives [`Class`]es whose parents are merged in and whose
//! components have a [`DataType`] that needs no further look-up.

mod access;
/// Base types and atomic types.
mod atomic;
/// Several libraries resolved.
mod catalog;
/// Classes as documents declare them.
mod declared;
/// Resolved data types.
mod data_type;
/// What is wrong in a library.
mod fault;
/// Components by name and by number.
mod path;
/// Resolved classes.
mod class;

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
pub use fault::{Fault, Place, Problem};
pub use path::{PATH_STEPS_MAX, PathFault, Target};

/// Deepest nesting of a data type.
pub const TYPE_DEPTH_MAX: usize = 32;
/// Most parts of a data type, once every name in it is replaced by what it stands for; a part of
/// an array of fixed size counts for each of its rows.
pub const TYPE_PARTS_MAX: u64 = 65_536;
/// Most octets of a string, byte array or octet string: a TLV holds no more (RFC 5810 section 6.2).
pub const ATOM_OCTETS_MAX: u32 = 65_531;
