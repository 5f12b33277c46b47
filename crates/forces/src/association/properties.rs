//! Properties of components and events (RFC 5812 section 4.8) for GET-PROP and SET-PROP.

use std::sync::{Arc, OnceLock};

use crate::model::value::Value;
use crate::model::{Access, ArraySize, Base, DataType, Field, Kind};

/// Property ID for the subscription of an event; the next ones are its filters.
pub const REGISTRATION: u32 = 2;
/// Property ID: threshold of the event's value.
pub const THRESHOLD: u32 = 3;
/// Property ID: by how much the value must cross the threshold, and fall back in between.
pub const HYSTERESIS: u32 = 4;
/// Property ID: number of occurrences to suppress after a notification.
pub const COUNT: u32 = 5;
/// Property ID: minimum interval between notifications in milliseconds.
pub const INTERVAL: u32 = 6;

fn structure(fields: &[(u32, &str, Base)]) -> Arc<DataType> {
    let fields = fields.iter().map(|&(id, name, base)| Field {
        id,
        name: name.to_string(),
        synopsis: String::new(),
        optional: id > REGISTRATION,
        access: None,
        data_type: Arc::new(DataType::base(base)),
    });
    Arc::new(DataType::unnamed(Kind::Struct(fields.collect())))
}

/// Returns the type of an event's properties.
pub(super) fn of_event() -> &'static Arc<DataType> {
    static TYPE: OnceLock<Arc<DataType>> = OnceLock::new();
    TYPE.get_or_init(|| {
        structure(&[
            (1, "accessibility", Base::Uchar),
            (REGISTRATION, "registration", Base::Uint32),
            (THRESHOLD, "threshold", Base::Uint32),
            (HYSTERESIS, "eventHysteresis", Base::Uint32),
            (COUNT, "eventCount", Base::Uint32),
            (INTERVAL, "eventInterval", Base::Uint32),
        ])
    })
}

/// Returns type and values of the properties of a component or a part of it.
pub(super) fn of_value(
    data_type: &DataType,
    access: Access,
    value: Option<&Value>,
) -> (Arc<DataType>, Value) {
    let number = |number: usize| Value::Unsigned(number as u64);
    let mut fields = vec![(1, "accessibility", Base::Uchar)];
    let mut values = vec![(1, Value::Unsigned(access.property().into()))];
    let base = data_type.atomic().map(|atomic| atomic.base);
    match (&data_type.target().kind, base, value) {
        (Kind::Array(array), _, Some(Value::Array(rows))) => {
            let highest = rows.last_key_value().map_or(0, |(index, _)| *index as usize);
            let unused = (0..).zip(rows.keys()).find(|(at, index)| at != *index);
            let unused = unused.map_or(rows.len(), |(at, _): (u32, _)| at as usize);
            let unused = match array.size {
                ArraySize::Fixed(rows) => unused.min(rows as usize),
                ArraySize::Variable(_) => unused,
            };
            let names = ["entryCount", "highestUsedSubscript", "firstUnusedSubscript"];
            for ((id, name), count) in (2..).zip(names).zip([rows.len(), highest, unused]) {
                fields.push((id, name, Base::Uint32));
                values.push((id, number(count)));
            }
        }
        (_, Some(base @ (Base::Text(_) | Base::Octets(_))), value) => {
            let octets = match value {
                Some(Value::Text(text)) => text.len(),
                Some(Value::Bytes(bytes)) => bytes.len(),
                _ => 0,
            };
            fields.extend([(2, "length", Base::Uint32), (3, "maxLength", Base::Uint32)]);
            values.extend([(2, number(octets)), (3, number(base.octets_max().unwrap_or(0)))]);
        }
        _ => {}
    }
    (structure(&fields), Value::struct_of(values))
}
