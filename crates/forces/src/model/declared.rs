//! A library as its document declares it: names are names still, and nothing is resolved.
//!
//! Source: the schemas of RFC 5812 section 4.9 and RFC 7408 section 3. Whatever the schema can
//! say has a place here, so that a document can be read and written again with the same meaning.

use super::fault::Place;
use super::{Access, ArraySize};

/// The version of the schema that a document follows, known by its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schema {
    /// RFC 5812.
    #[default]
    V1_0,
    /// RFC 7408.
    V1_1,
}

impl Schema {
    /// The document's namespace.
    pub fn namespace(self) -> &'static str {
        match self {
            Schema::V1_0 => "urn:ietf:params:xml:ns:forces:lfbmodel:1.0",
            Schema::V1_1 => "urn:ietf:params:xml:ns:forces:lfbmodel:1.1",
        }
    }
}

/// One library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Library {
    /// Its label, by which others load it.
    pub provides: String,
    /// The schema it follows.
    pub schema: Schema,
    /// What it is for.
    pub description: String,
    /// The libraries it refers to.
    pub loads: Vec<Load>,
    /// Names of frames.
    pub frames: Vec<FrameDef>,
    /// Data types.
    pub data_types: Vec<TypeDef>,
    /// Metadata.
    pub metadata: Vec<MetadataDef>,
    /// Classes.
    pub classes: Vec<ClassDef>,
}

/// A library that another one refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    /// Its label.
    pub library: String,
    /// Where a document of it can be had.
    pub location: Option<String>,
    /// Where this stands.
    pub place: Place,
}

/// A name of frames; what they look like is not said (RFC 5812 section 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameDef {
    /// The name.
    pub name: String,
    /// What they are, in short.
    pub synopsis: String,
    /// What they are.
    pub description: String,
    /// Where this stands.
    pub place: Place,
}

/// A data type with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDef {
    /// The name.
    pub name: String,
    /// The type that it says it is derived from, beside what its declaration says.
    pub derived_from: Option<String>,
    /// What it is, in short.
    pub synopsis: String,
    /// What it is.
    pub description: String,
    /// The type.
    pub decl: TypeDecl,
    /// The value where none is given (RFC 7408).
    pub default: Option<String>,
    /// Where this stands.
    pub place: Place,
}

/// A type as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeDecl {
    /// A base type or a data type with this name.
    Named(String),
    /// A restricted base type, or one with names for values.
    Atomic(AtomicDecl),
    /// Rows.
    Array(ArrayDecl),
    /// Fields.
    Struct(StructDecl),
    /// One of some fields.
    Union(StructDecl),
    /// Another component's value, of a type with this name.
    Alias(String),
}

/// A restricted base type, or one with names for values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AtomicDecl {
    /// The base type, or an atomic data type.
    pub base: String,
    /// Smallest and largest of each range.
    pub ranges: Vec<(i128, i128)>,
    /// Values with names.
    pub special: Vec<SpecialValueDecl>,
}

/// A value with a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecialValueDecl {
    /// The value.
    pub value: String,
    /// Its name.
    pub name: String,
    /// What it means.
    pub synopsis: String,
}

/// Rows of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayDecl {
    /// How many rows.
    pub size: ArraySize,
    /// The type of each.
    pub element: Box<TypeDecl>,
    /// What finds a row by its content: the key's id, and its fields, parts parted by dots.
    pub keys: Vec<(u32, Vec<String>)>,
}

/// Fields with names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StructDecl {
    /// The struct that this one adds to.
    pub derived_from: Option<String>,
    /// The fields, in the order of their encoding.
    pub fields: Vec<FieldDecl>,
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDecl {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// What it is.
    pub description: String,
    /// Whether it may be missing.
    pub optional: bool,
    /// What may be done with it, where it differs (RFC 7408).
    pub access: Option<Access>,
    /// Its type.
    pub decl: TypeDecl,
}

/// A metadatum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataDef {
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// Its id on the wire.
    pub id: u32,
    /// What it is.
    pub description: String,
    /// Its type.
    pub decl: TypeDecl,
    /// Where this stands.
    pub place: Place,
}

/// A class's version: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Version {
    /// Changes that others notice.
    pub major: u32,
    /// Changes that they need not.
    pub minor: u32,
}

impl Version {
    /// A version from its text: numbers without leading zeros, the first from 1.
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

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassDef {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it does, in short.
    pub synopsis: String,
    /// Its version.
    pub version: Version,
    /// The class that it adds to, and which version of it.
    pub derived_from: Option<(String, Option<Version>)>,
    /// Where frames come in.
    pub inputs: Vec<InputPort>,
    /// Where frames go out.
    pub outputs: Vec<OutputPort>,
    /// What can be read and changed.
    pub components: Vec<ComponentDef>,
    /// What it is able to do.
    pub capabilities: Vec<CapabilityDef>,
    /// The first number of the path of its events.
    pub event_base: Option<u32>,
    /// What it tells by itself.
    pub events: Vec<EventDef>,
    /// What it does.
    pub description: String,
    /// Where this stands.
    pub place: Place,
}

/// Where frames come in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputPort {
    /// Its name.
    pub name: String,
    /// What comes, in short.
    pub synopsis: String,
    /// What comes.
    pub description: String,
    /// Whether it is several ports with an index.
    pub group: bool,
    /// The frames that may come: any of these, or any at all if there is none.
    pub frames: Vec<String>,
    /// The metadata that have to come: all of these.
    pub metadata: Vec<Expected>,
    /// Where this stands.
    pub place: Place,
}

/// A metadatum that an input expects, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This one.
    One {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        optional: bool,
        /// What is taken for it then.
        default: Option<String>,
    },
    /// At least one of these.
    OneOf(Vec<Expected>),
    /// All of these; only within a choice.
    All(Vec<Expected>),
}

/// Where frames go out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputPort {
    /// Its name.
    pub name: String,
    /// What goes, in short.
    pub synopsis: String,
    /// What goes.
    pub description: String,
    /// Whether it is several ports with an index.
    pub group: bool,
    /// The frames that may go; any at all if there is none.
    pub frames: Vec<String>,
    /// The metadata that go with them, beside those that came.
    pub metadata: Vec<Produced>,
    /// Where this stands.
    pub place: Place,
}

/// A metadatum that an output produces, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Produced {
    /// This one.
    One {
        /// Its name.
        name: String,
        /// Whether it is there only sometimes.
        conditional: bool,
    },
    /// One of these.
    OneOf(Vec<Produced>),
    /// All of these; only within a choice.
    All(Vec<Produced>),
}

/// A component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentDef {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// What it is.
    pub description: String,
    /// Whether an instance may lack it.
    pub optional: bool,
    /// What may be done with it.
    pub access: Access,
    /// Its type.
    pub decl: TypeDecl,
    /// Its value in the beginning.
    pub default: Option<String>,
    /// Where this stands.
    pub place: Place,
}

/// A capability: a component that can only be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityDef {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// What it is.
    pub description: String,
    /// Whether an instance may lack it.
    pub optional: bool,
    /// Its type.
    pub decl: TypeDecl,
    /// Where this stands.
    pub place: Place,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDef {
    /// Its id below the class's base.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// When it happens, in short.
    pub synopsis: String,
    /// When it happens.
    pub description: String,
    /// What is watched.
    pub target: Vec<PathPart>,
    /// What has to happen to it.
    pub condition: Condition,
    /// What is told along with it.
    pub reports: Vec<Vec<PathPart>>,
    /// Where this stands.
    pub place: Place,
}

/// A step of an event's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    /// A component or a field, by name.
    Field(String),
    /// A row: its index, or a name that stands for whichever it is.
    Subscript(String),
}

/// What has to happen to an event's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// A row was made.
    Created,
    /// A row was removed.
    Deleted,
    /// It is another value.
    Changed,
    /// It is above the threshold.
    GreaterThan,
    /// It is below the threshold.
    LessThan,
    /// It is the threshold (RFC 7408).
    BecomesEqualTo,
}

impl Condition {
    /// Every condition and the element that says it.
    pub const NAMES: [(Condition, &'static str); 6] = [
        (Condition::Created, "eventCreated"),
        (Condition::Deleted, "eventDeleted"),
        (Condition::Changed, "eventChanged"),
        (Condition::GreaterThan, "eventGreaterThan"),
        (Condition::LessThan, "eventLessThan"),
        (Condition::BecomesEqualTo, "eventBecomesEqualTo"),
    ];

    /// Whether it compares with the threshold of the event's properties.
    pub fn has_threshold(self) -> bool {
        matches!(self, Condition::GreaterThan | Condition::LessThan | Condition::BecomesEqualTo)
    }
}
