//! What an agent says of itself: a tree of names and values, for whoever asks in whatever language.

use std::fmt::Display;

/// A value, or several.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Not known.
    Unknown,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Number(i128),
    /// A name, an address.
    Text(String),
    /// Several of one kind.
    List(Vec<Fact>),
    /// Several with names.
    Named(Vec<(&'static str, Fact)>),
}

impl Fact {
    /// Something that is written as text.
    pub fn text(value: impl Display) -> Fact {
        Fact::Text(value.to_string())
    }

    /// What has this name, if there is such.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        match self {
            Fact::Named(all) => all.iter().find(|(known, _)| *known == name).map(|(_, it)| it),
            _ => None,
        }
    }

    /// The number that has this name.
    pub fn number(&self, name: &str) -> Option<i128> {
        match self.get(name) {
            Some(Fact::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// What stands in a list of this name.
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
