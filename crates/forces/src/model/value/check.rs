//! Checks values against a data type.

use std::collections::HashMap;

use super::fault::{ValueFault, ValueFaultKind, listed};
use super::{Fields, ROWS_MAX, Value};
use crate::model::{Array, ArraySize, Atomic, Base, DataType, Field, Kind};

impl DataType {
    /// Checks a complete value: mandatory fields, ranges and unique content keys.
    pub fn check(&self, value: &Value) -> Result<(), ValueFault> {
        self.check_as(value, true)
    }

    /// Checks a partial value (SPARSEDATA): fields and rows may be missing. Does not compare
    /// content keys.
    pub fn check_partial(&self, value: &Value) -> Result<(), ValueFault> {
        self.check_as(value, false)
    }

    /// As [`DataType::check`], for a value that was valid before some of it changed.
    ///
    /// It does not check unchanged rows again, except their keys.
    pub fn check_changed(&self, before: &Value, value: &Value) -> Result<(), ValueFault> {
        let (Kind::Array(array), Value::Array(old), Value::Array(new)) =
            (&self.target().kind, before, value)
        else {
            return self.check(value);
        };
        let mut checked = Ok(());
        old.differences(new, |index, _, row| {
            if let (Ok(()), Some(row)) = (&checked, row) {
                let row = match array.size {
                    ArraySize::Fixed(rows) if !array.size.admits(*index) => {
                        Err(ValueFault::here(ValueFaultKind::Index { index: *index, rows }))
                    }
                    _ => array.element.check(row),
                };
                checked = row.map_err(|fault| fault.below(format_args!("[{index}]")));
            }
        });
        checked?;
        check_count(array, new.len(), true).map_err(ValueFault::here)?;
        check_keys(array, value)
    }

    /// As [`DataType::check`], for an array whose rows are already checked: their number and keys.
    pub fn check_rows(&self, value: &Value) -> Result<(), ValueFault> {
        match (&self.target().kind, value) {
            (
                Kind::Array(array @ Array { size: ArraySize::Variable(_), .. }),
                Value::Array(rows),
            ) => {
                check_count(array, rows.len(), true).map_err(ValueFault::here)?;
                check_keys(array, value)
            }
            _ => self.check(value),
        }
    }

    fn check_as(&self, value: &Value, whole: bool) -> Result<(), ValueFault> {
        match (&self.kind, value) {
            (Kind::Alias(target), value) => target.check_as(value, whole),
            (Kind::Atomic(atomic), value) => check_atomic(atomic, value).map_err(ValueFault::here),
            (Kind::Struct(fields), Value::Struct(values)) => check_fields(fields, values, whole),
            (Kind::Union(fields), Value::Union(id, value)) => {
                let field = known(fields, *id)?;
                let checked = field.data_type.check_as(value, whole);
                checked.map_err(|fault| fault.below(&field.name))
            }
            (Kind::Array(array), Value::Array(rows)) => {
                for (index, row) in rows {
                    if !array.size.admits(*index)
                        && let ArraySize::Fixed(rows) = array.size
                    {
                        let index = *index;
                        return Err(ValueFault::here(ValueFaultKind::Index { index, rows }));
                    }
                    let checked = array.element.check_as(row, whole);
                    checked.map_err(|fault| fault.below(format_args!("[{index}]")))?;
                }
                check_count(array, rows.len(), whole).map_err(ValueFault::here)?;
                if whole { check_keys(array, value) } else { Ok(()) }
            }
            _ => Err(ValueFault::here(ValueFaultKind::Kind { expected: self.words() })),
        }
    }
}

fn check_atomic(atomic: &Atomic, value: &Value) -> Result<(), ValueFaultKind> {
    let kind = || Err(ValueFaultKind::Kind { expected: atomic.base.to_string() });
    if atomic.name_of(value).is_some() {
        return Ok(());
    }
    if let (Some(range), Some(number)) = (atomic.base.whole(), value.whole()) {
        if atomic.base.is_signed() != matches!(value, Value::Signed(_)) {
            return kind();
        }
        if !range.contains(&number) || !atomic.allows(number) {
            let number = number.to_string();
            return Err(ValueFaultKind::Range { number, allowed: allowed(atomic) });
        }
        return Ok(());
    }
    match (atomic.base, value) {
        (Base::Boolean, Value::Boolean(_)) => Ok(()),
        (Base::Text(_), Value::Text(text)) => check_octets(atomic.base, text.len()),
        (Base::Bytes(_) | Base::Octets(_), Value::Bytes(bytes)) => {
            check_octets(atomic.base, bytes.len())
        }
        (Base::Float32 | Base::Float64, Value::Float(number)) => {
            let number = number.get();
            let fits = atomic.base == Base::Float64 || f64::from(number as f32) == number;
            let between = |range: &std::ops::RangeInclusive<i128>| {
                (*range.start() as f64..=*range.end() as f64).contains(&number)
            };
            let allows = atomic.ranges.is_empty() || atomic.ranges.iter().any(between);
            if (fits || number.is_nan()) && allows {
                return Ok(());
            }
            Err(ValueFaultKind::Range { number: number.to_string(), allowed: allowed(atomic) })
        }
        _ => kind(),
    }
}

/// Checks the length of a text or octets.
pub(super) fn check_octets(base: Base, octets: usize) -> Result<(), ValueFaultKind> {
    let max = base.octets_max().unwrap_or(0);
    match base {
        Base::Bytes(_) if octets != max => {
            Err(ValueFaultKind::Octets { octets, allowed: format!("exactly {max}") })
        }
        _ if octets > max => {
            Err(ValueFaultKind::Octets { octets, allowed: format!("at most {max}") })
        }
        _ => Ok(()),
    }
}

/// Describes the numbers that a type allows.
pub(super) fn allowed(atomic: &Atomic) -> String {
    let whole = atomic.base.whole();
    let ranges: Vec<_> = match (&atomic.ranges[..], whole) {
        ([], Some(range)) => vec![range],
        ([], None) => return format!("any {}", atomic.base),
        (ranges, _) => ranges.to_vec(),
    };
    let words = ranges.iter().map(|range| format!("{} to {}", range.start(), range.end()));
    words.collect::<Vec<_>>().join(", ")
}

fn check_fields(fields: &[Field], values: &Fields, whole: bool) -> Result<(), ValueFault> {
    for (id, value) in values.iter() {
        let field = known(fields, id)?;
        let checked = field.data_type.check_as(value, whole);
        checked.map_err(|fault| fault.below(&field.name))?;
    }
    let missing = |field: &&Field| !field.optional && values.get(field.id).is_none();
    match fields.iter().find(missing) {
        Some(field) if whole => {
            Err(ValueFault::here(ValueFaultKind::FieldMissing { name: field.name.clone() }))
        }
        _ => Ok(()),
    }
}

fn known(fields: &[Field], id: u32) -> Result<&Field, ValueFault> {
    fields.iter().find(|field| field.id == id).ok_or_else(|| {
        let names = listed(fields.iter().map(|field| &field.name));
        ValueFault::here(ValueFaultKind::FieldUnknown { field: id.to_string(), names })
    })
}

fn check_count(array: &Array, rows: usize, whole: bool) -> Result<(), ValueFaultKind> {
    let allowed = match array.size {
        ArraySize::Fixed(count) if whole && rows != count as usize => format!("exactly {count}"),
        ArraySize::Variable(Some(max)) if rows > max as usize => format!("at most {max}"),
        _ if rows > ROWS_MAX => format!("at most {ROWS_MAX}"),
        _ => return Ok(()),
    };
    Err(ValueFaultKind::Rows { rows, allowed })
}

fn check_keys(array: &Array, value: &Value) -> Result<(), ValueFault> {
    let Value::Array(rows) = value else { return Ok(()) };
    for key in &array.keys {
        let mut seen = HashMap::with_capacity(rows.len());
        for (index, row) in rows {
            let Some(content) = key.of(row) else {
                let fault = ValueFault::here(ValueFaultKind::KeyMissing { key: key.id });
                return Err(fault.below(format_args!("[{index}]")));
            };
            if let Some(first) = seen.insert(content, *index) {
                let (key, second) = (key.id, *index);
                return Err(ValueFault::here(ValueFaultKind::KeyTwice { key, first, second }));
            }
        }
    }
    Ok(())
}
