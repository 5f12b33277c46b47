//! Random data types and values of them, for property tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::value::Value;
use crate::model::{Array, ArraySize, Atomic, Base, DataType, Field, Kind, SpecialValue};

fn base() -> impl Strategy<Value = Base> {
    prop_oneof![
        Just(Base::Char),
        Just(Base::Uchar),
        Just(Base::Int16),
        Just(Base::Uint16),
        Just(Base::Int32),
        Just(Base::Uint32),
        Just(Base::Int64),
        Just(Base::Uint64),
        Just(Base::Boolean),
        Just(Base::Text(None)),
        Just(Base::Float32),
        Just(Base::Float64),
        (1u32..40).prop_map(|max| Base::Text(Some(max))),
        prop_oneof![Just(4u32), Just(6), Just(16), 1u32..20].prop_map(Base::Bytes),
        (1u32..40).prop_map(Base::Octets),
    ]
}

fn atomic() -> impl Strategy<Value = DataType> {
    (base(), any::<bool>(), 0i128..100, 0i128..20).prop_map(|(base, restricted, min, count)| {
        let mut atomic = Atomic::plain(base);
        if restricted && base.whole().is_some() {
            atomic.ranges = vec![min..=(min + count).min(127)];
            atomic.special = vec![SpecialValue {
                value: match base.is_signed() {
                    true => Value::Signed(-3),
                    false => Value::Unsigned(101),
                },
                name: "Special".to_string(),
                synopsis: String::new(),
            }];
        }
        DataType::unnamed(Kind::Atomic(atomic))
    })
}

fn fields(parts: Vec<(u32, bool, DataType)>, choice: bool) -> Vec<Field> {
    let mut fields: BTreeMap<u32, Field> = BTreeMap::new();
    for (id, optional, data_type) in parts {
        let (name, synopsis) = (format!("field{id}"), String::new());
        let optional = optional && !choice;
        let data_type = Arc::new(data_type);
        fields.insert(id, Field { id, name, synopsis, optional, access: None, data_type });
    }
    fields.into_values().collect()
}

/// Any data type, up to a few levels deep.
pub fn data_type() -> impl Strategy<Value = DataType> {
    atomic().prop_recursive(4, 24, 5, |inner| {
        let parts = vec((1u32..12, any::<bool>(), inner.clone()), 1..5);
        let size = prop_oneof![
            (1u32..4).prop_map(ArraySize::Fixed),
            Just(ArraySize::Variable(None)),
            Just(ArraySize::Variable(Some(3))),
        ];
        prop_oneof![
            parts.clone().prop_map(|parts| Kind::Struct(fields(parts, false))),
            parts.prop_map(|parts| Kind::Union(fields(parts, true))),
            (size, inner.clone()).prop_map(|(size, element)| {
                Kind::Array(Array { size, element: Arc::new(element), keys: Vec::new() })
            }),
            inner.prop_map(|target| Kind::Alias(Arc::new(target))),
        ]
        .prop_map(DataType::unnamed)
    })
}

/// Any value of a type.
pub fn value(data_type: &DataType) -> BoxedStrategy<Value> {
    match &data_type.kind {
        Kind::Alias(target) => value(target),
        Kind::Atomic(atomic) => atomic_value(atomic),
        Kind::Struct(fields) => {
            let each: Vec<_> = fields
                .iter()
                .map(|field| {
                    let (id, optional) = (field.id, field.optional);
                    (value(&field.data_type), any::<bool>())
                        .prop_map(move |(value, given)| (given || !optional).then_some((id, value)))
                })
                .collect();
            each.prop_map(|fields| Value::struct_of(fields.into_iter().flatten())).boxed()
        }
        Kind::Union(fields) => {
            let each = fields.iter().map(|field| {
                let id = field.id;
                value(&field.data_type).prop_map(move |value| Value::Union(id, Box::new(value)))
            });
            proptest::strategy::Union::new(each).boxed()
        }
        Kind::Array(array) => match array.size {
            ArraySize::Fixed(rows) => {
                vec(value(&array.element), rows as usize).prop_map(Value::rows_of).boxed()
            }
            ArraySize::Variable(_) => {
                let rows =
                    proptest::collection::btree_map(any::<u32>(), value(&array.element), 0..4);
                rows.prop_map(|rows| Value::Array(rows.into_iter().collect())).boxed()
            }
        },
    }
}

fn atomic_value(atomic: &Atomic) -> BoxedStrategy<Value> {
    if let Some(range) = atomic.base.whole() {
        let range = atomic.ranges.first().cloned().unwrap_or(range);
        let signed = atomic.base.is_signed();
        let number = range.prop_map(move |number| match signed {
            true => Value::Signed(number as i64),
            false => Value::Unsigned(number as u64),
        });
        return match atomic.special.first() {
            Some(special) => prop_oneof![3 => number, 1 => Just(special.value.clone())].boxed(),
            None => number.boxed(),
        };
    }
    match atomic.base {
        Base::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        Base::Float32 => any::<f32>().prop_map(|number| Value::from(f64::from(number))).boxed(),
        Base::Float64 => any::<f64>().prop_map(Value::from).boxed(),
        Base::Text(max) => {
            let max = max.unwrap_or(30) as usize;
            let cut = move |mut text: String| {
                while text.len() > max {
                    text.pop();
                }
                Value::Text(text)
            };
            prop_oneof!["\\PC{0,20}", "[ \"\\\\{}=,\\[\\]\n\ta0]{0,12}"].prop_map(cut).boxed()
        }
        Base::Bytes(count) => vec(any::<u8>(), count as usize).prop_map(Value::Bytes).boxed(),
        Base::Octets(max) => vec(any::<u8>(), 0..=max as usize).prop_map(Value::Bytes).boxed(),
        _ => unreachable!("integers are handled above"),
    }
}

/// Any data type with a value of it.
pub fn typed_value() -> impl Strategy<Value = (DataType, Value)> {
    data_type().prop_flat_map(|data_type| {
        let value = value(&data_type);
        (Just(data_type), value)
    })
}
