//! Values of components: a tree to which a data type gives meaning.
//!
//! - A value does not know its field names, content keys and special values; its [`DataType`] does.
//!   The data type parses, formats and checks values, and has their defaults.
//! - A path of field IDs and row indices selects a part of a value (RFC 5810 section 6.3).

mod check;
mod fault;
mod parse;
mod show;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use shared::Shared;

use crate::model::{ArraySize, Base, DataType, Kind};

pub(crate) use fault::{Names, listed};
pub use fault::{ValueFault, ValueFaultKind};
pub(crate) use parse::parse_number;

/// Maximum number of rows of an array.
pub const ROWS_MAX: usize = 4_194_304;
/// Maximum octets of text that is parsed as a value.
pub const TEXT_OCTETS_MAX: usize = 1 << 20;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// An unsigned integer: `uchar`, `uint16`, `uint32`, `uint64`.
    Unsigned(u64),
    /// A signed integer: `char`, `int16`, `int32`, `int64`.
    Signed(i64),
    /// A floating-point number: `float32`, `float64`.
    Float(Real),
    /// `boolean`.
    Boolean(bool),
    /// `string`.
    Text(String),
    /// `byte[N]`, `octetstring[N]`.
    Bytes(Vec<u8>),
    /// Fields by ID; optional ones may be missing.
    Struct(Fields),
    /// One field, by ID.
    Union(u32, Box<Value>),
    /// Rows by index.
    Array(Rows),
}

/// Rows by index; clones share unchanged rows.
pub type Rows = Shared<u32, Value>;

/// A floating-point number with total order, equality and hash: all NaNs are equal, and zero has no
/// sign.
#[derive(Debug, Clone, Copy)]
pub struct Real(f64);

/// Fields by ID, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fields(Vec<(u32, Value)>);

impl Value {
    /// Returns an array of rows from index 0.
    pub fn rows_of(rows: impl IntoIterator<Item = Value>) -> Value {
        Value::Array((0..).zip(rows).collect())
    }

    /// Returns a struct of these fields.
    pub fn struct_of(fields: impl IntoIterator<Item = (u32, Value)>) -> Value {
        Value::Struct(fields.into_iter().collect())
    }

    /// Returns the number, if it is unsigned.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Value::Unsigned(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number, if it is an integer.
    pub fn whole(&self) -> Option<i128> {
        match *self {
            Value::Unsigned(number) => Some(number.into()),
            Value::Signed(number) => Some(number.into()),
            _ => None,
        }
    }

    /// Returns the boolean.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Value::Boolean(it) => Some(*it),
            _ => None,
        }
    }

    /// Returns the text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the octets.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the octets, if there are exactly `N`.
    pub fn octets<const N: usize>(&self) -> Option<[u8; N]> {
        self.bytes()?.try_into().ok()
    }

    /// Returns the fields of a struct.
    pub fn fields(&self) -> Option<&Fields> {
        match self {
            Value::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns the rows of an array.
    pub fn rows(&self) -> Option<&Rows> {
        match self {
            Value::Array(rows) => Some(rows),
            _ => None,
        }
    }

    /// Returns the field or row with this ID.
    pub fn step(&self, id: u32) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields.get(id),
            Value::Union(chosen, value) => (*chosen == id).then_some(&**value),
            Value::Array(rows) => rows.get(&id),
            _ => None,
        }
    }

    /// As [`Value::step`], but mutable.
    pub fn step_mut(&mut self, id: u32) -> Option<&mut Value> {
        match self {
            Value::Struct(fields) => fields.get_mut(id),
            Value::Union(chosen, value) => (*chosen == id).then_some(&mut **value),
            Value::Array(rows) => rows.get_mut(&id),
            _ => None,
        }
    }

    /// Returns the part at a path; the value itself if the path is empty.
    pub fn at(&self, path: &[u32]) -> Option<&Value> {
        path.iter().try_fold(self, |value, &id| value.step(id))
    }

    /// As [`Value::at`], but mutable.
    pub fn at_mut(&mut self, path: &[u32]) -> Option<&mut Value> {
        path.iter().try_fold(self, |value, &id| value.step_mut(id))
    }

    /// Sets the part at a path, and returns the old one.
    ///
    /// The last step may create a row, set an optional field or select another field of a union.
    /// Returns the part as `Err` if its parent does not exist or has no parts.
    pub fn put(&mut self, path: &[u32], part: Value) -> Result<Option<Value>, Value> {
        let Some((&last, before)) = path.split_last() else {
            return Ok(Some(std::mem::replace(self, part)));
        };
        match self.at_mut(before) {
            Some(Value::Struct(fields)) => Ok(fields.insert(last, part)),
            Some(Value::Array(rows)) => Ok(rows.insert(last, part)),
            Some(Value::Union(chosen, value)) => {
                let was = std::mem::replace(&mut **value, part);
                Ok((std::mem::replace(chosen, last) == last).then_some(was))
            }
            _ => Err(part),
        }
    }

    /// Removes the row or field at a path.
    pub fn take(&mut self, path: &[u32]) -> Option<Value> {
        let (&last, before) = path.split_last()?;
        match self.at_mut(before)? {
            Value::Struct(fields) => fields.remove(last),
            Value::Array(rows) => rows.remove(&last),
            _ => None,
        }
    }

    /// Merges the fields and rows of a partial value (SPARSEDATA) into this one.
    ///
    /// A value of another kind replaces this one.
    pub fn merge(&mut self, some: Value) {
        match (self, some) {
            (Value::Struct(fields), Value::Struct(some)) => {
                for (id, value) in some {
                    match fields.get_mut(id) {
                        Some(field) => field.merge(value),
                        None => drop(fields.insert(id, value)),
                    }
                }
            }
            (Value::Array(rows), Value::Array(some)) => {
                for (index, value) in some {
                    match rows.get_mut(&index) {
                        Some(row) => row.merge(value),
                        None => drop(rows.insert(index, value)),
                    }
                }
            }
            (Value::Union(chosen, value), Value::Union(other, some)) if *chosen == other => {
                value.merge(*some);
            }
            (whole, some) => *whole = some,
        }
    }
}

impl DataType {
    /// Returns the default value.
    ///
    /// Without a declared default it is the allowed number nearest to zero, empty text, no rows,
    /// and all mandatory fields. RFC 5812 does not define it.
    pub fn default_value(&self) -> Value {
        if let Some(value) = &self.default {
            return value.clone();
        }
        match &self.kind {
            Kind::Alias(target) => target.default_value(),
            Kind::Array(array) => match array.size {
                ArraySize::Variable(_) => Value::Array(Rows::new()),
                ArraySize::Fixed(rows) => {
                    Value::rows_of((0..rows).map(|_| array.element.default_value()))
                }
            },
            Kind::Struct(fields) => Value::struct_of(
                fields
                    .iter()
                    .filter(|field| !field.optional)
                    .map(|field| (field.id, field.data_type.default_value())),
            ),
            Kind::Union(fields) => match fields.first() {
                Some(field) => Value::Union(field.id, Box::new(field.data_type.default_value())),
                None => Value::Struct(Fields::new()),
            },
            Kind::Atomic(atomic) => {
                let nearest = atomic
                    .ranges
                    .iter()
                    .map(|range| 0.clamp(*range.start(), *range.end()))
                    .min_by_key(|number| number.unsigned_abs())
                    .unwrap_or(0);
                match atomic.base {
                    Base::Boolean => Value::Boolean(false),
                    Base::Text(_) => Value::Text(String::new()),
                    Base::Bytes(count) => Value::Bytes(vec![0; count as usize]),
                    Base::Octets(_) => Value::Bytes(Vec::new()),
                    Base::Float32 | Base::Float64 => Value::from(nearest as f64),
                    base if base.is_signed() => Value::Signed(nearest as i64),
                    _ => Value::Unsigned(nearest as u64),
                }
            }
        }
    }
}

impl Fields {
    /// Returns an empty set of fields.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// Returns the field with this ID.
    pub fn get(&self, id: u32) -> Option<&Value> {
        self.find(id).ok().map(|at| &self.0[at].1)
    }

    /// Returns the field with this ID, mutable.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Value> {
        self.find(id).ok().map(|at| &mut self.0[at].1)
    }

    /// Returns an empty set with capacity for this many fields.
    pub fn with_capacity(fields: usize) -> Fields {
        Fields(Vec::with_capacity(fields))
    }

    /// Sets a field and returns its old value.
    pub fn insert(&mut self, id: u32, value: Value) -> Option<Value> {
        match self.find(id) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (id, value));
                None
            }
        }
    }

    /// Removes a field.
    pub fn remove(&mut self, id: u32) -> Option<Value> {
        self.find(id).ok().map(|at| self.0.remove(at).1)
    }

    /// Returns the fields with their IDs, in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &Value)> {
        self.0.iter().map(|(id, value)| (*id, value))
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, id: u32) -> Result<usize, usize> {
        // IDs mostly count from 1 without gaps.
        let guess = (id as usize).wrapping_sub(1);
        if self.0.get(guess).is_some_and(|(there, _)| *there == id) {
            return Ok(guess);
        }
        self.0.binary_search_by_key(&id, |(there, _)| *there)
    }
}

impl FromIterator<(u32, Value)> for Fields {
    fn from_iter<I: IntoIterator<Item = (u32, Value)>>(fields: I) -> Fields {
        let mut all = Fields::new();
        for (id, value) in fields {
            all.insert(id, value);
        }
        all
    }
}

impl IntoIterator for Fields {
    type Item = (u32, Value);
    type IntoIter = std::vec::IntoIter<(u32, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Real {
    /// Returns a normalized number.
    pub fn new(number: f64) -> Real {
        Real(if number.is_nan() { f64::NAN } else { number + 0.0 })
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Real) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Real {}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Real) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Float(Real::new(number))
    }
}

#[cfg(test)]
mod tests;
