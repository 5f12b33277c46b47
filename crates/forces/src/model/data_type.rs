//! Data types in which every name is replaced by what it stands for.
//!
//! Types are shared (`Arc`), so that a type that is used a thousand times stands in memory once.

use std::sync::Arc;

use super::{Access, Atomic, Base};
use crate::value::Value;

/// A data type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataType {
    /// The name of its definition, if it has one.
    pub name: Option<String>,
    /// The names of the types that it adds to, nearest first.
    pub ancestors: Vec<String>,
    /// What it is made of.
    pub kind: Kind,
    /// The value where none is given, if its definition says one.
    pub default: Option<Value>,
    /// How deep it is nested; 1 if it has no parts.
    pub depth: usize,
    /// Its parts and theirs, itself counted too, and one for each 64 octets.
    pub parts: u64,
}

/// What a data type is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A number, text, octets.
    Atomic(Atomic),
    /// Rows.
    Array(Array),
    /// Fields, in the order of their encoding.
    Struct(Vec<Field>),
    /// One of these fields.
    Union(Vec<Field>),
    /// Another component's value, which has this type.
    Alias(Arc<DataType>),
}

/// Rows of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// How many.
    pub size: ArraySize,
    /// The type of each.
    pub element: Arc<DataType>,
    /// What finds a row by its content.
    pub keys: Vec<ContentKey>,
}

/// How many rows an array has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArraySize {
    /// Always so many, from index 0.
    Fixed(u32),
    /// As many as there are, at most so many.
    Variable(Option<u32>),
}

/// Fields whose values no two rows of an array share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentKey {
    /// Its id.
    pub id: u32,
    /// The path of each field within a row; an empty path is the row itself.
    pub fields: Vec<Vec<u32>>,
    /// The type of a key: the fields in a row's order, with ids from 1; the row's own type if the
    /// row is the key.
    pub data_type: Arc<DataType>,
}

/// A field of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is, in short.
    pub synopsis: String,
    /// Whether it may be missing.
    pub optional: bool,
    /// What may be done with it, where that differs from the component around it.
    pub access: Option<Access>,
    /// Its type.
    pub data_type: Arc<DataType>,
}

impl DataType {
    /// A base type as it is.
    pub fn base(base: Base) -> DataType {
        DataType::unnamed(Kind::Atomic(Atomic::plain(base)))
    }

    /// A type without a name.
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
        // Octets count too, so that values of a small type are small.
        let octets = match &kind {
            Kind::Atomic(atomic) => atomic.base.width().unwrap_or(0) as u64,
            _ => 0,
        };
        let (depth, parts) = (depth + 1, parts.saturating_add(1 + octets / 64));
        DataType { name: None, ancestors: Vec::new(), kind, default: None, depth, parts }
    }

    /// What it is once aliases are followed.
    pub fn target(&self) -> &DataType {
        match &self.kind {
            Kind::Alias(target) => target.target(),
            _ => self,
        }
    }

    /// Whether it is an alias of something.
    pub fn is_alias(&self) -> bool {
        matches!(self.kind, Kind::Alias(_))
    }

    /// What it is made of, if it is atomic.
    pub fn atomic(&self) -> Option<&Atomic> {
        match &self.target().kind {
            Kind::Atomic(atomic) => Some(atomic),
            _ => None,
        }
    }

    /// Its rows, if it has rows.
    pub fn array(&self) -> Option<&Array> {
        match &self.target().kind {
            Kind::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Its fields, if it is a struct or a union.
    pub fn fields(&self) -> Option<&[Field]> {
        match &self.target().kind {
            Kind::Struct(fields) | Kind::Union(fields) => Some(fields),
            _ => None,
        }
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields()?.iter().find(|field| field.name == name)
    }

    /// The field with this id.
    pub fn field_by_id(&self, id: u32) -> Option<&Field> {
        self.fields()?.iter().find(|field| field.id == id)
    }

    /// The type one step further: a field's by its id, a row's by any index.
    pub fn step(&self, id: u32) -> Option<&Arc<DataType>> {
        match &self.target().kind {
            Kind::Array(array) => array.size.admits(id).then_some(&array.element),
            _ => self.field_by_id(id).map(|field| &field.data_type),
        }
    }

    /// The type at the end of a path, this one if the path is empty.
    pub fn at<'a>(self: &'a Arc<DataType>, path: &[u32]) -> Option<&'a Arc<DataType>> {
        path.iter().try_fold(self, |data_type, &id| data_type.step(id))
    }

    /// Octets of each value on the wire, if they are always as many: no part of it is optional,
    /// of variable size, or a choice.
    pub fn width(&self) -> Option<usize> {
        match &self.target().kind {
            Kind::Atomic(atomic) => atomic.base.width(),
            Kind::Struct(fields) => fields.iter().try_fold(0usize, |sum, field| {
                let width = field.data_type.width().filter(|_| !field.optional)?;
                sum.checked_add(width)
            }),
            // An array's rows come with their indices, whatever its size.
            Kind::Array(_) | Kind::Union(_) | Kind::Alias(_) => None,
        }
    }

    /// Whether a value of this type can stand where one of `other` is expected: it is the same, or
    /// says that it adds to it (RFC 5812 section 4.5.7).
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

    /// A few words for what it is: its name, or what it is made of.
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
    /// The key with this id.
    pub fn key(&self, id: u32) -> Option<&ContentKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

impl ArraySize {
    /// Whether a row can have this index.
    pub fn admits(self, index: u32) -> bool {
        match self {
            ArraySize::Fixed(rows) => index < rows,
            ArraySize::Variable(_) => true,
        }
    }
}

impl ContentKey {
    /// A row's key, `None` if it lacks one of the fields.
    pub fn of(&self, row: &Value) -> Option<Value> {
        if let [path] = &self.fields[..]
            && path.is_empty()
        {
            return Some(row.clone());
        }
        let mut key = crate::value::Fields::new();
        for (id, path) in (1..).zip(&self.fields) {
            key.insert(id, row.at(path)?.clone());
        }
        Some(Value::Struct(key))
    }
}
