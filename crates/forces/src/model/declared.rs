//! A library as its document declares it, with unresolved names.
//!
//! Source: the schemas of RFC 5812 section 4.9 and RFC 7408 section 3. These types represent
//! everything in the schema, so that a document can be read and written again without loss.

use super::fault::Location;
use super::{Access, ArraySize};

/// Schema version of a document, which its namespace identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schema {
    /// RFC 5812.
    #[default]
    V1_0,
    /// RFC 7408.
    V1_1,
}

impl Schema {
    /// Returns the document's namespace.
    pub fn namespace(self) -> &'static str {
        match self {
            Schema::V1_0 => "urn:ietf:params:xml:ns:forces:lfbmodel:1.0",
            Schema::V1_1 => "urn:ietf:params:xml:ns:forces:lfbmodel:1.1",
        }
    }
}

/// A class library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Library {
    /// Label, which other libraries use to load it.
    pub provides: String,
    /// Schema version.
    pub schema: Schema,
    /// Description.
    pub description: String,
    /// Libraries that it loads.
    pub loads: Vec<Load>,
    /// Frame types.
    pub frames: Vec<FrameDef>,
    /// Data types.
    pub data_types: Vec<TypeDef>,
    /// Metadata.
    pub metadata: Vec<MetadataDef>,
    /// LFB classes.
    pub classes: Vec<ClassDef>,
}

/// A reference to another library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// Label of that library.
    pub library: String,
    /// Location of its document.
    pub location: Option<String>,
    /// Place in the document.
    pub place: Location,
}

/// A frame type. The model does not describe its format (RFC 5812 section 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameDef {
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Place in the document.
    pub place: Location,
}

/// A named data type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDef {
    /// Name.
    pub name: String,
    /// The type that it is derived from, if that is given next to the declaration.
    pub derived_from: Option<String>,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Declaration.
    pub decl: TypeDecl,
    /// Default value (RFC 7408).
    pub default: Option<String>,
    /// Place in the document.
    pub place: Location,
}

/// A data type declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeDecl {
    /// A base type or a data type with this name.
    Named(String),
    /// A base type with ranges or special values.
    Atomic(AtomicDecl),
    /// An array.
    Array(ArrayDecl),
    /// A struct.
    Struct(StructDecl),
    /// A union.
    Union(StructDecl),
    /// The value of another component, with a type of this name.
    Alias(String),
}

/// A base type with ranges or special values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AtomicDecl {
    /// The base type, or a named atomic type.
    pub base: String,
    /// Minimum and maximum of each range.
    pub ranges: Vec<(i128, i128)>,
    /// Special values.
    pub special: Vec<SpecialValueDecl>,
}

/// A special value: a value with a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecialValueDecl {
    /// The value.
    pub value: String,
    /// Its name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
}

/// An array declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayDecl {
    /// Number of rows.
    pub size: ArraySize,
    /// Type of a row.
    pub element: Box<TypeDecl>,
    /// Content keys: key ID and fields, whose parts are separated by dots.
    pub keys: Vec<(u32, Vec<String>)>,
}

/// A struct or union declaration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StructDecl {
    /// The struct that this one augments.
    pub derived_from: Option<String>,
    /// The fields, in the order of their encoding.
    pub fields: Vec<FieldDecl>,
}

/// A field declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDecl {
    /// Component ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Whether it is optional.
    pub optional: bool,
    /// Access mode, if it differs (RFC 7408).
    pub access: Option<Access>,
    /// Data type.
    pub decl: TypeDecl,
}

/// A metadata definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataDef {
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// ID on the wire.
    pub id: u32,
    /// Description.
    pub description: String,
    /// Data type.
    pub decl: TypeDecl,
    /// Place in the document.
    pub place: Location,
}

/// A class's version: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version {
    /// Major number: incompatible changes.
    pub major: u32,
    /// Minor number: compatible changes.
    pub minor: u32,
}

impl Version {
    /// Parses a version: numbers without leading zeros, the first at least 1.
    pub fn parse(text: &str) -> Option<Version> {
        let number = |text: &str| {
            let plain = text == "0" || !text.starts_with('0');
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| plain && digits)
        };
        let (major, minor) = text.split_once('.')?;
        let version = Version { major: number(major)?, minor: number(minor)? };
        (version.major > 0).then_some(version)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An LFB class definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassDef {
    /// Class ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Version.
    pub version: Version,
    /// Name of the parent class, and its version if declared.
    pub derived_from: Option<(String, Option<Version>)>,
    /// Input ports.
    pub inputs: Vec<InputPort>,
    /// Output ports.
    pub outputs: Vec<OutputPort>,
    /// Components.
    pub components: Vec<ComponentDef>,
    /// Capabilities.
    pub capabilities: Vec<CapabilityDef>,
    /// Event base ID: the first number of its events' paths.
    pub event_base: Option<u32>,
    /// Events.
    pub events: Vec<EventDef>,
    /// Description.
    pub description: String,
    /// Place in the document.
    pub place: Location,
}

/// An input port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputPort {
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Whether it is a port group.
    pub group: bool,
    /// Accepted frame types; all if empty.
    pub frames: Vec<String>,
    /// Required metadata: all of these.
    pub metadata: Vec<Expected>,
    /// Place in the document.
    pub place: Location,
}

/// Metadata that an input expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// One metadata item.
    One {
        /// Name.
        name: String,
        /// Whether it is optional.
        optional: bool,
        /// Default value if it is missing.
        default: Option<String>,
    },
    /// At least one of these.
    OneOf(Vec<Expected>),
    /// All of these; only inside a choice.
    All(Vec<Expected>),
}

/// An output port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputPort {
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Whether it is a port group.
    pub group: bool,
    /// Possible frame types; all if empty.
    pub frames: Vec<String>,
    /// Metadata that it adds to those of the input.
    pub metadata: Vec<Produced>,
    /// Place in the document.
    pub place: Location,
}

/// Metadata that an output produces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Produced {
    /// One metadata item.
    One {
        /// Name.
        name: String,
        /// Whether it is conditional.
        conditional: bool,
    },
    /// One of these.
    OneOf(Vec<Produced>),
    /// All of these; only inside a choice.
    All(Vec<Produced>),
}

/// A component definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentDef {
    /// Component ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Whether it is optional in an instance.
    pub optional: bool,
    /// Access mode.
    pub access: Access,
    /// Data type.
    pub decl: TypeDecl,
    /// Default value.
    pub default: Option<String>,
    /// Place in the document.
    pub place: Location,
}

/// A capability definition: a read-only component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityDef {
    /// Component ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Whether it is optional in an instance.
    pub optional: bool,
    /// Data type.
    pub decl: TypeDecl,
    /// Place in the document.
    pub place: Location,
}

/// An event definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDef {
    /// Event ID below the class's event base.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Description.
    pub description: String,
    /// Target.
    pub target: Vec<PathPart>,
    /// Condition on the target.
    pub condition: Condition,
    /// Reports.
    pub reports: Vec<Vec<PathPart>>,
    /// Place in the document.
    pub place: Location,
}

/// A step of an event's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    /// A component or a field, by name.
    Field(String),
    /// A row: an index, or a name for any index.
    Subscript(String),
}

/// Condition on an event's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// A row was created.
    Created,
    /// A row was deleted.
    Deleted,
    /// The value changed.
    Changed,
    /// The value exceeds the threshold.
    GreaterThan,
    /// The value is below the threshold.
    LessThan,
    /// The value becomes equal to the threshold (RFC 7408).
    BecomesEqualTo,
}

impl Condition {
    /// All conditions, with their XML elements.
    pub const NAMES: [(Condition, &'static str); 6] = [
        (Condition::Created, "eventCreated"),
        (Condition::Deleted, "eventDeleted"),
        (Condition::Changed, "eventChanged"),
        (Condition::GreaterThan, "eventGreaterThan"),
        (Condition::LessThan, "eventLessThan"),
        (Condition::BecomesEqualTo, "eventBecomesEqualTo"),
    ];
}
