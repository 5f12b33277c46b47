//! Reader of a JSON object's keys; each key is taken once.
//!
//! Invariant: a key that the reader does not take is an error.

use openflow::model::Experimenter;
use serde_json::{Map, Value, json};

use super::super::flow;

/// A set of named bits, such as [`openflow::model::FlowModFlags`].
pub trait Bits: Copy + Default + std::ops::BitOrAssign {
    /// Returns the bit with this name.
    fn named(name: &str) -> Option<Self>;
}

/// Declares types of the OpenFlow model as [`Bits`].
macro_rules! bits {
    ($($name:ty),* $(,)?) => {
        $(impl Bits for $name {
            fn named(name: &str) -> Option<Self> {
                <$name>::named(name)
            }
        })*
    };
}

bits!(
    openflow::model::BundleFeatureFlags,
    openflow::model::BundleFlags,
    openflow::model::EvictionFlags,
    openflow::model::FlowModFlags,
    openflow::model::FlowMonitorFlags,
    openflow::model::MeterFlags,
    openflow::model::OpticalFeatures,
    openflow::model::PortConfig,
    openflow::model::PortFeatures,
    openflow::model::StatTriggerFlags,
    openflow::model::TableFeatureFlags,
);

/// Names of the values of an enumeration.
pub type ValueNames<T> = [(&'static str, T)];

/// Returns the name of a value; the table has all values of its type.
pub fn word<T: PartialEq>(words: &ValueNames<T>, value: &T) -> &'static str {
    words.iter().find(|(_, it)| it == value).map_or("", |(name, _)| name)
}

/// The keys of an object.
pub struct Keys<'a>(Map<String, Value>, &'a str);

impl<'a> Keys<'a> {
    /// Reads the keys of an object, which errors call `what`.
    pub fn of(value: &Value, what: &'a str) -> Result<Keys<'a>, String> {
        let object =
            value.as_object().ok_or_else(|| format!("{what} must be an object: {value}"))?;
        Ok(Keys(object.clone(), what))
    }

    /// Takes the value of a key; null counts as missing.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    /// Returns the value of a key without taking it.
    pub fn look(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Takes a number in the range of its type.
    pub fn number<T: TryFrom<i128>>(&mut self, key: &str, default: T) -> Result<T, String> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let whole = value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from));
        let number = whole.and_then(|number| number.try_into().ok());
        number.ok_or_else(|| format!("{key} must be an integer in its range: {value}"))
    }

    /// Takes a number or a named number.
    pub fn number_or<T: TryFrom<i128> + Copy>(
        &mut self,
        key: &str,
        default: T,
        words: &ValueNames<T>,
    ) -> Result<T, String> {
        match self.look(key).and_then(Value::as_str) {
            Some(_) => self.word(key, default, words),
            None => self.number(key, default),
        }
    }

    /// Takes a boolean.
    pub fn is(&mut self, key: &str) -> Result<bool, String> {
        let Some(value) = self.take(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| format!("{key} must be true or false: {value}"))
    }

    /// Takes one of these names.
    pub fn word<T: Copy>(
        &mut self,
        key: &str,
        default: T,
        words: &ValueNames<T>,
    ) -> Result<T, String> {
        let Some(value) = self.take(key) else { return Ok(default) };
        let text = value.as_str();
        let found = words.iter().find(|(name, _)| Some(*name) == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
            format!("unknown {key} {value} (hint: use {})", known.join(", "))
        })
    }

    /// Takes a list of bit names.
    pub fn bits<T: Bits>(&mut self, key: &str) -> Result<T, String> {
        let mut all = T::default();
        for name in self.values(key)? {
            let bit = name.as_str().and_then(T::named);
            all |= bit.ok_or_else(|| format!("unknown {key} {name}"))?;
        }
        Ok(all)
    }

    /// Takes a port by number or name.
    pub fn port(&mut self, key: &str, default: u32) -> Result<u32, String> {
        self.take(key).map_or(Ok(default), |value| flow::port(&value))
    }

    /// Takes bytes as hexadecimal digits.
    pub fn data(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let bytes = value.as_str().and_then(super::bytes);
        bytes.ok_or_else(|| format!("{key} must be hexadecimal"))
    }

    /// Takes a MAC address.
    pub fn mac(&mut self, key: &str) -> Result<[u8; 6], String> {
        let Some(value) = self.take(key) else { return Ok([0; 6]) };
        let digits = value.as_str().map(|text| text.replace(':', ""));
        let bytes = digits.as_deref().and_then(super::bytes);
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| format!("{key} must be a MAC address: {value}"))
    }

    /// Takes the elements of a list; empty if the key is missing.
    pub fn values(&mut self, key: &str) -> Result<Vec<Value>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(rows)) => Ok(rows),
            Some(other) => Err(format!("{key} must be a list: {other}")),
        }
    }

    /// Takes the elements of a list of objects.
    pub fn rows<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&mut Keys<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let row = |value: &Value| {
            let mut keys = Keys::of(value, key)?;
            let row = read(&mut keys)?;
            keys.all_taken()?;
            Ok(row)
        };
        self.values(key)?.iter().map(row).collect()
    }

    /// Takes a list of experimenter data.
    pub fn experimenters(&mut self) -> Result<Vec<Experimenter>, String> {
        self.rows("experimenters", experimenter)
    }

    /// Takes the object of a key, if there is one.
    pub fn object<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Keys<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let mut keys = Keys::of(&value, key)?;
        let found = read(&mut keys)?;
        keys.all_taken()?;
        Ok(Some(found))
    }

    /// Rejects keys that were not taken.
    pub fn all_taken(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(key) => Err(format!("{} does not support {key:?}", self.1)),
            None => Ok(()),
        }
    }
}

/// Parses experimenter data.
pub fn experimenter(keys: &mut Keys<'_>) -> Result<Experimenter, String> {
    Ok(Experimenter { experimenter: keys.number("experimenter", 0)?, body: keys.data("body")? })
}

/// Writes experimenter data as [`experimenter`] reads it.
pub fn experimenter_json(it: &Experimenter) -> Value {
    json!({ "experimenter": it.experimenter, "body": super::hex(&it.body) })
}

/// Writes a list of experimenter data.
pub fn experimenters_json(all: &[Experimenter]) -> Value {
    all.iter().map(experimenter_json).collect()
}
