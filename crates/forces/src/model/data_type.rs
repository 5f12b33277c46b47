//! Resolved data types.
//!
//! Types are shared (`Arc`), so a type that is used many times is in memory once.

use std::sync::Arc;

use super::{Access, Atomic, Base};
use crate::model::value::Value;

/// A data type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType {
    /// Name of its definition, if it has one.
    pub name: Option<String>,
    /// Names of the types that it augments, nearest first.
    pub ancestors: Vec<String>,
    /// Structure of the type.
    pub kind: Kind,
    /// Default value of its definition, if there is one.
    pub default: Option<Value>,
    /// Nesting depth; 1 if it has no parts.
    pub depth: usize,
    /// Number of its parts, recursively and including itself, plus one for each 64 octets.
    pub parts: u64,
}

/// Structure of a data type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A number, text or octets.
    Atomic(Atomic),
    /// Rows.
    Array(Array),
    /// Fields, in the order of their encoding.
    Struct(Vec<Field>),
    /// Exactly one of these fields.
    Union(Vec<Field>),
    /// The value of another component, with this type.
    Alias(Arc<DataType>),
}

/// An array of rows of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Number of rows.
    pub size: ArraySize,
    /// Type of a row.
    pub element: Arc<DataType>,
    /// Content keys.
    pub keys: Vec<ContentKey>,
}

/// Number of rows of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArraySize {
    /// A fixed number, from index 0.
    Fixed(u32),
    /// A variable number, with an optional maximum.
    Variable(Option<u32>),
}

/// A content key: fields whose values are unique among the rows of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentKey {
    /// Key ID.
    pub id: u32,
    /// The path of each field within a row; an empty path is the row itself.
    pub fields: Vec<Vec<u32>>,
    /// Type of a key: the fields in the row's order, with IDs from 1. If the row is the key, the
    /// row's own type.
    pub data_type: Arc<DataType>,
}

/// A field of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Component ID.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Short description.
    pub synopsis: String,
    /// Whether it is optional.
    pub optional: bool,
    /// Access mode, if it differs from that of the enclosing component.
    pub access: Option<Access>,
    /// Data type.
    pub data_type: Arc<DataType>,
}

impl DataType {
    /// Returns a base type without restrictions.
    pub fn base(base: Base) -> DataType {
        DataType::unnamed(Kind::Atomic(Atomic::plain(base)))
    }

    /// Returns a type without a name.
    pub fn unnamed(kind: Kind) -> DataType {
        let (mut depth, mut parts) = (0, 0u64);
        let mut add = |part: &DataType, count: u64| {
            depth = depth.max(part.depth);
            parts = parts.saturating_add(part.parts.saturating_mul(count));
        };
        match &kind {
            Kind::Atomic(_) => {}
            Kind::Array(array) => match array.size {
                ArraySize::Fixed(rows) => add(&array.element, rows.into()),
                ArraySize::Variable(_) => add(&array.element, 1),
            },
            Kind::Struct(fields) | Kind::Union(fields) => {
                fields.iter().for_each(|field| add(&field.data_type, 1));
            }
            Kind::Alias(target) => add(target, 1),
        }
        // Octets count too, so that the limit also bounds the size of values.
        let octets = match &kind {
            Kind::Atomic(atomic) => atomic.base.width().unwrap_or(0) as u64,
            _ => 0,
        };
        let (depth, parts) = (depth + 1, parts.saturating_add(1 + octets / 64));
        DataType { name: None, ancestors: Vec::new(), kind, default: None, depth, parts }
    }

    /// Returns the type after following aliases.
    pub fn target(&self) -> &DataType {
        match &self.kind {
            Kind::Alias(target) => target.target(),
            _ => self,
        }
    }

    /// Returns whether this is an alias.
    pub fn is_alias(&self) -> bool {
        matches!(self.kind, Kind::Alias(_))
    }

    /// Returns the atomic type, if this is one.
    pub fn atomic(&self) -> Option<&Atomic> {
        match &self.target().kind {
            Kind::Atomic(atomic) => Some(atomic),
            _ => None,
        }
    }

    /// Returns the array, if this is one.
    pub fn array(&self) -> Option<&Array> {
        match &self.target().kind {
            Kind::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Returns the fields, if this is a struct or a union.
    pub fn fields(&self) -> Option<&[Field]> {
        match &self.target().kind {
            Kind::Struct(fields) | Kind::Union(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields()?.iter().find(|field| field.name == name)
    }

    /// Returns the field with this ID.
    pub fn field_by_id(&self, id: u32) -> Option<&Field> {
        self.fields()?.iter().find(|field| field.id == id)
    }

    /// Returns the type one step further: of the field with this ID, or of a row.
    pub fn step(&self, id: u32) -> Option<&Arc<DataType>> {
        match &self.target().kind {
            Kind::Array(array) => array.size.admits(id).then_some(&array.element),
            _ => self.field_by_id(id).map(|field| &field.data_type),
        }
    }

    /// Returns the type at a path; this type if the path is empty.
    pub fn at<'a>(self: &'a Arc<DataType>, path: &[u32]) -> Option<&'a Arc<DataType>> {
        path.iter().try_fold(self, |data_type, &id| data_type.step(id))
    }

    /// Returns the octets of a value on the wire, if their number is fixed.
    ///
    /// It is fixed if no part is optional, of variable size, or a union.
    pub fn width(&self) -> Option<usize> {
        match &self.target().kind {
            Kind::Atomic(atomic) => atomic.base.width(),
            Kind::Struct(fields) => fields.iter().try_fold(0usize, |sum, field| {
                let width = field.data_type.width().filter(|_| !field.optional)?;
                sum.checked_add(width)
            }),
            // Rows of an array have their indices on the wire, even at a fixed size.
            Kind::Array(_) | Kind::Union(_) | Kind::Alias(_) => None,
        }
    }

    /// Returns whether a value of this type is valid where `other` is expected: it is the same type
    /// or augments it (RFC 5812 section 4.5.7).
    pub fn augments(&self, other: &DataType) -> bool {
        let named = other.name.as_ref().is_some_and(|name| self.ancestors.contains(name));
        if named || self.kind == other.kind {
            return true;
        }
        match (&self.kind, &other.kind) {
            (Kind::Array(ours), Kind::Array(theirs)) => {
                ours.size == theirs.size && ours.element.augments(&theirs.element)
            }
            _ => false,
        }
    }

    /// Describes the type: its name, or its structure.
    pub fn words(&self) -> String {
        match (&self.name, &self.kind) {
            (Some(name), _) => name.clone(),
            (None, Kind::Atomic(atomic)) => atomic.base.to_string(),
            (None, Kind::Array(array)) => format!("array of {}", array.element.words()),
            (None, Kind::Struct(_)) => "struct".to_string(),
            (None, Kind::Union(_)) => "union".to_string(),
            (None, Kind::Alias(target)) => format!("alias of {}", target.words()),
        }
    }
}

impl Array {
    /// Returns the key with this ID.
    pub fn key(&self, id: u32) -> Option<&ContentKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

impl ArraySize {
    /// Returns whether a row can have this index.
    pub fn admits(self, index: u32) -> bool {
        match self {
            ArraySize::Fixed(rows) => index < rows,
            ArraySize::Variable(_) => true,
        }
    }
}

impl ContentKey {
    /// Returns a row's key; `None` if it lacks one of the fields.
    pub fn of(&self, row: &Value) -> Option<Value> {
        if let [path] = &self.fields[..]
            && path.is_empty()
        {
            return Some(row.clone());
        }
        let mut key = crate::model::value::Fields::new();
        for (id, path) in (1..).zip(&self.fields) {
            key.insert(id, row.at(path)?.clone());
        }
        Some(Value::Struct(key))
    }
}
