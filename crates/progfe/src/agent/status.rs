//! Status values of an agent: a tree of names and values, independent of the output format.

use std::fmt::Display;

/// A value or a collection of values.
#[derive(Debug, Clone, PartialEq)]
pub enum StatusValue {
    /// Unknown value.
    Unknown,
    /// Boolean.
    Flag(bool),
    /// Integer.
    Number(i128),
    /// Text, such as a name or an address.
    Text(String),
    /// List of values of the same kind.
    List(Vec<StatusValue>),
    /// Named values.
    Named(Vec<(&'static str, StatusValue)>),
}

impl StatusValue {
    /// Creates a text value.
    pub fn text(value: impl Display) -> StatusValue {
        StatusValue::Text(value.to_string())
    }

    /// Returns the value with a name, if it exists.
    pub fn get(&self, name: &str) -> Option<&StatusValue> {
        match self {
            StatusValue::Named(all) => {
                all.iter().find(|(known, _)| *known == name).map(|(_, it)| it)
            }
            _ => None,
        }
    }

    /// Returns the number with a name.
    pub fn number(&self, name: &str) -> Option<i128> {
        match self.get(name) {
            Some(StatusValue::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the items of the list with a name.
    pub fn list(&self, name: &str) -> &[StatusValue] {
        match self.get(name) {
            Some(StatusValue::List(all)) => all,
            _ => &[],
        }
    }
}

macro_rules! numbers {
    ($($of:ty)*) => {
        $(impl From<$of> for StatusValue {
            fn from(number: $of) -> StatusValue {
                StatusValue::Number(number as i128)
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 usize i64 i128);

impl From<bool> for StatusValue {
    fn from(flag: bool) -> StatusValue {
        StatusValue::Flag(flag)
    }
}

impl From<&str> for StatusValue {
    fn from(text: &str) -> StatusValue {
        StatusValue::Text(text.to_owned())
    }
}

impl From<Vec<StatusValue>> for StatusValue {
    fn from(all: Vec<StatusValue>) -> StatusValue {
        StatusValue::List(all)
    }
}

impl<const N: usize> From<[(&'static str, StatusValue); N]> for StatusValue {
    fn from(all: [(&'static str, StatusValue); N]) -> StatusValue {
        StatusValue::Named(all.into())
    }
}

impl<T: Into<StatusValue>> From<Option<T>> for StatusValue {
    fn from(value: Option<T>) -> StatusValue {
        value.map_or(StatusValue::Unknown, Into::into)
    }
}
