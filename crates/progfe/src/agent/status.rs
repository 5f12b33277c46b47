//! Status values of an agent: a tree of names and values, independent of the output format.

use std::fmt::Display;

/// A value or a collection of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Unknown value.
    Unknown,
    /// Boolean.
    Flag(bool),
    /// Integer.
    Number(i128),
    /// Text, such as a name or an address.
    Text(String),
    /// List of values of the same kind.
    List(Vec<Fact>),
    /// Named values.
    Named(Vec<(&'static str, Fact)>),
}

impl Fact {
    /// Creates a text value.
    pub fn text(value: impl Display) -> Fact {
        Fact::Text(value.to_string())
    }

    /// Returns the value with a name, if it exists.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        match self {
            Fact::Named(all) => all.iter().find(|(known, _)| *known == name).map(|(_, it)| it),
            _ => None,
        }
    }

    /// Returns the number with a name.
    pub fn number(&self, name: &str) -> Option<i128> {
        match self.get(name) {
            Some(Fact::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the items of the list with a name.
    pub fn list(&self, name: &str) -> &[Fact] {
        match self.get(name) {
            Some(Fact::List(all)) => all,
            _ => &[],
        }
    }
}

macro_rules! numbers {
    ($($of:ty)*) => {
        $(impl From<$of> for Fact {
            fn from(number: $of) -> Fact {
                Fact::Number(number as i128)
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 usize i64 i128);

impl From<bool> for Fact {
    fn from(flag: bool) -> Fact {
        Fact::Flag(flag)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Fact {
        Fact::Text(text.to_owned())
    }
}

impl From<Vec<Fact>> for Fact {
    fn from(all: Vec<Fact>) -> Fact {
        Fact::List(all)
    }
}

impl<const N: usize> From<[(&'static str, Fact); N]> for Fact {
    fn from(all: [(&'static str, Fact); N]) -> Fact {
        Fact::Named(all.into())
    }
}

impl<T: Into<Fact>> From<Option<T>> for Fact {
    fn from(value: Option<T>) -> Fact {
        value.map_or(Fact::Unknown, Into::into)
    }
}
