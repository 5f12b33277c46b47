//! Parameter declarations (key, type, range, unit, default and help) and values for them.
//!
//! Source: the OFLOPS-SUME paper, section III-C (a module's own parameters).
//!
//! Invariants:
//!
//! - A value that an experiment reads has been checked against its declaration, or is its default.
//! - An experiment reads only what it declares (checked if debug assertions are enabled).
//! - Single values and lists have different accessors, and [`Values`] has no index: a list is
//!   measured in full.

use std::collections::BTreeMap;

use super::Effort;

/// Declaration of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Name in `--set KEY=VALUE`.
    pub key: &'static str,
    /// Type and range.
    pub takes: ValueType,
    /// Default, in the syntax of `--set`. `quick A; standard B; full C` sets defaults by effort.
    ///
    /// A part without an effort applies to all others.
    pub default: &'static str,
    /// Unit of its values; empty if there is none.
    pub unit: &'static str,
    /// Help text.
    pub help: &'static str,
}

/// Type and range of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueType {
    /// An integer in this range.
    Integer(u64, u64),
    /// One or more comma-separated integers in this range: an axis.
    Integers(u64, u64),
    /// A number in this range.
    Number(f64, f64),
    /// One or more comma-separated numbers in this range: an axis.
    Numbers(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Comma-separated list of these words.
    Words(&'static [&'static str]),
    /// A text in this form; the code that reads it checks it.
    Text(&'static str),
}

impl ValueType {
    /// Describes the valid values, with the unit of numbers.
    pub fn words(&self, unit: &str) -> String {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            ValueType::Integer(least, most) => format!("{least} to {most}{unit}"),
            ValueType::Integers(least, most) => format!("{least} to {most}{unit}, comma-separated"),
            ValueType::Number(least, most) => format!("{least} to {most}{unit}"),
            ValueType::Numbers(least, most) => format!("{least} to {most}{unit}, comma-separated"),
            ValueType::Word(words) => words.join(", "),
            ValueType::Words(words) => format!("{}, comma-separated", words.join(", ")),
            ValueType::Text(form) => format!("{form}{unit}"),
        }
    }

    /// Returns whether a text is a valid value.
    pub fn admits(&self, text: &str) -> bool {
        let whole = |text: &str, least, most| {
            integer(text).is_some_and(|value| (least..=most).contains(&value))
        };
        let number = |text: &str, least, most| {
            text.trim().parse::<f64>().is_ok_and(|value| (least..=most).contains(&value))
        };
        match *self {
            ValueType::Integer(least, most) => whole(text, least, most),
            ValueType::Integers(least, most) => text.split(',').all(|one| whole(one, least, most)),
            ValueType::Number(least, most) => number(text, least, most),
            ValueType::Numbers(least, most) => text.split(',').all(|one| number(one, least, most)),
            ValueType::Word(words) => words.contains(&text),
            ValueType::Words(words) => text.split(',').all(|one| words.contains(&one.trim())),
            ValueType::Text(_) => true,
        }
    }

    /// Returns whether several values form an axis.
    pub fn is_list(&self) -> bool {
        matches!(self, ValueType::Integers(..) | ValueType::Numbers(..) | ValueType::Words(_))
    }

    /// Returns whether a text is a list of values that are valid individually, although only one
    /// value is allowed.
    pub fn admits_each(&self, text: &str) -> bool {
        let is_single =
            matches!(self, ValueType::Integer(..) | ValueType::Number(..) | ValueType::Word(_));
        is_single && text.contains(',') && text.split(',').all(|one| self.admits(one.trim()))
    }
}

/// Parses an integer: digits, or a number without a fraction such as `1e6`.
fn integer(text: &str) -> Option<u64> {
    let text = text.trim();
    let exact =
        text.parse::<f64>().ok().filter(|it| it.fract() == 0.0 && (0.0..=9e15).contains(it));
    text.parse().ok().or_else(|| exact.map(|it| it as u64))
}

impl Parameter {
    /// Returns the default for an effort.
    pub fn default_at(&self, effort: Effort) -> &'static str {
        fn of(wanted: Effort, part: &str) -> Option<&str> {
            part.strip_prefix(wanted.name())?.strip_prefix(' ')
        }
        let parts = || self.default.split(';').map(str::trim);
        let own = parts().find_map(|part| of(effort, part));
        let is_other = |part: &&str| Effort::ALL.iter().all(|it| of(*it, part).is_none());
        own.or_else(|| parts().find(is_other)).unwrap_or(self.default)
    }

    /// Returns the same declaration with another default.
    #[must_use]
    pub const fn with_default(self, default: &'static str) -> Parameter {
        Parameter { default, ..self }
    }
}

/// Values of an axis. There is no access by index, so that all of them are measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Values<T>(Vec<T>);

impl<T> Values<T> {
    /// Returns the number of values, at least one.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no values, which never happens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the values.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Applies a function to each value.
    pub fn map<U>(self, each: impl FnMut(T) -> U) -> Values<U> {
        Values(self.0.into_iter().map(each).collect())
    }
}

impl<T> IntoIterator for Values<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Parameter values by key.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterValues {
    effort: Effort,
    values: BTreeMap<&'static str, String>,
    /// Keys that the current experiment declares; `None` without a current experiment.
    declared: Option<Vec<&'static str>>,
}

impl ParameterValues {
    /// Returns the defaults for an effort.
    pub fn at(effort: Effort) -> ParameterValues {
        ParameterValues { effort, values: BTreeMap::new(), declared: None }
    }

    /// Sets a declared parameter; `None` if the text is not a valid value.
    pub fn set(&mut self, declared: &Parameter, text: &str) -> Option<()> {
        let text = text.trim();
        declared.takes.admits(text).then(|| {
            self.values.insert(declared.key, text.to_string());
        })
    }

    /// Returns the same values, restricted to these keys.
    pub(super) fn only(&self, keys: Vec<&'static str>) -> ParameterValues {
        ParameterValues { declared: Some(keys), ..self.clone() }
    }

    /// Returns whether a parameter was set.
    pub fn is_set(&self, declared: &Parameter) -> bool {
        self.values.contains_key(declared.key)
    }

    /// Returns the value of a parameter as it was set, or its default.
    pub fn text<'a>(&'a self, declared: &Parameter) -> &'a str {
        debug_assert!(
            self.declared.as_ref().is_none_or(|keys| keys.contains(&declared.key)),
            "an experiment reads {} without declaring it",
            declared.key
        );
        let own = self.values.get(declared.key).map(String::as_str);
        own.unwrap_or_else(|| declared.default_at(self.effort))
    }

    /// Returns a single integer.
    pub fn integer(&self, declared: &Parameter) -> u64 {
        assert!(!declared.takes.is_list(), "{} is an axis", declared.key);
        integer(self.text(declared)).expect("a value was checked when it was set")
    }

    /// Returns a single number.
    pub fn number(&self, declared: &Parameter) -> f64 {
        assert!(!declared.takes.is_list(), "{} is an axis", declared.key);
        self.text(declared).parse().expect("a value was checked when it was set")
    }

    /// Returns all integers of an axis.
    pub fn integers(&self, declared: &Parameter) -> Values<u64> {
        assert!(declared.takes.is_list(), "{} takes one value", declared.key);
        let one = |text: &str| integer(text).expect("a value was checked when it was set");
        Values(self.text(declared).split(',').map(one).collect())
    }

    /// Returns all numbers of an axis.
    pub fn numbers(&self, declared: &Parameter) -> Values<f64> {
        assert!(declared.takes.is_list(), "{} takes one value", declared.key);
        let one = |text: &str| text.trim().parse().expect("a value was checked when it was set");
        Values(self.text(declared).split(',').map(one).collect())
    }

    /// Iterates over the words of a list.
    pub fn words<'a>(&'a self, declared: &Parameter) -> impl Iterator<Item = &'a str> {
        assert!(declared.takes.is_list(), "{} takes one word", declared.key);
        self.text(declared).split(',').map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Parameter = Parameter {
        key: "rules",
        takes: ValueType::Integers(1, 100),
        default: "10,20",
        unit: "",
        help: "",
    };

    #[test]
    fn a_value_is_the_assigned_one_or_the_default() {
        let mut own = ParameterValues::at(Effort::Quick);
        let all = |own: &ParameterValues| own.integers(&RULES).into_iter().collect::<Vec<_>>();
        assert_eq!(all(&own), [10, 20]);
        own.set(&RULES, "7").unwrap();
        assert_eq!(all(&own), [7]);
    }

    #[test]
    fn invalid_values_change_nothing() {
        let mut own = ParameterValues::at(Effort::Quick);
        for wrong in ["", "0", "101", "1,", "1,x", "-1", "1.5", "nan"] {
            assert_eq!(own.set(&RULES, wrong), None, "{wrong}");
        }
        assert_eq!(own, ParameterValues::at(Effort::Quick));
        assert!(!ValueType::Number(0.0, 1.0).admits("nan"));
        assert!(
            ValueType::Words(&["a", "b"]).admits("b,a") && !ValueType::Words(&["a"]).admits("a,c")
        );
    }

    #[test]
    fn a_default_follows_the_effort() {
        let by_effort = RULES.with_default("quick 1; standard 2,3; full 4");
        let rest = RULES.with_default("quick 1; 5,6");
        let at = |declared: &Parameter| Effort::ALL.map(|effort| declared.default_at(effort));
        assert_eq!(at(&by_effort), ["1", "2,3", "4"]);
        assert_eq!(at(&rest), ["1", "5,6", "5,6"]);
        assert_eq!(at(&RULES), ["10,20"; 3]);
    }

    #[test]
    fn a_list_for_a_single_value_is_distinguished_from_an_invalid_value() {
        let one = ValueType::Integer(64, 1518);
        assert!(one.admits_each("64,512") && !one.admits_each("64,x") && !one.admits_each("64"));
        assert!(!ValueType::Integers(64, 1518).admits_each("64,512"));
        assert!(one.admits("1e2") && !one.admits("64.5") && !one.admits("1e99"));
    }

    #[test]
    #[should_panic(expected = "is an axis")]
    fn reading_one_value_of_an_axis_panics() {
        ParameterValues::at(Effort::Quick).integer(&RULES);
    }
}
