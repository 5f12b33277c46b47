//! Parameters that an experiment declares for itself: their types, ranges, units, defaults and help.
//!
//! Source: the OFLOPS-SUME paper, section III-C (a module's own parameters). Invariant: a value that
//! an experiment reads has been checked against its declaration, or is its default.

use std::collections::BTreeMap;

/// One parameter of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Declared {
    /// Its name in `--set KEY=VALUE`.
    pub key: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it is unless it is set, written as it would be set.
    pub default: &'static str,
    /// Unit of its values; empty where they have none.
    pub unit: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Takes {
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// Such numbers, one or several by commas.
    Integers(u64, u64),
    /// A number from the first to the second.
    Number(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words by commas.
    Words(&'static [&'static str]),
}

impl Takes {
    /// What it takes, in words, with the unit of numbers.
    pub fn words(&self, unit: &str) -> String {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        match self {
            Takes::Integer(least, most) => format!("{least} to {most}{unit}"),
            Takes::Integers(least, most) => format!("{least} to {most}{unit}, several by commas"),
            Takes::Number(least, most) => format!("{least} to {most}{unit}"),
            Takes::Word(words) => words.join(", "),
            Takes::Words(words) => format!("some of {} by commas", words.join(", ")),
        }
    }

    /// Whether a text is such a value.
    pub fn admits(&self, text: &str) -> bool {
        let whole = |text: &str, least, most| {
            text.parse::<u64>().is_ok_and(|value| (least..=most).contains(&value))
        };
        match *self {
            Takes::Integer(least, most) => whole(text, least, most),
            Takes::Integers(least, most) => text.split(',').all(|one| whole(one, least, most)),
            Takes::Number(least, most) => {
                text.parse::<f64>().is_ok_and(|value| (least..=most).contains(&value))
            }
            Takes::Word(words) => words.contains(&text),
            Takes::Words(words) => text.split(',').all(|one| words.contains(&one)),
        }
    }
}

/// Values of such parameters by their keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own(BTreeMap<&'static str, String>);

impl Own {
    /// Takes a value for a declared parameter; none if the text is no such value.
    pub fn set(&mut self, declared: &Declared, text: &str) -> Option<()> {
        let text = text.trim();
        declared.takes.admits(text).then(|| {
            self.0.insert(declared.key, text.to_string());
        })
    }

    /// A parameter's value as it was set, or its default.
    pub fn text<'a>(&'a self, declared: &Declared) -> &'a str {
        self.0.get(declared.key).map_or(declared.default, String::as_str)
    }

    /// The same as a whole number.
    pub fn integer(&self, declared: &Declared) -> u64 {
        self.text(declared).parse().expect("a value was checked when it was set")
    }

    /// The same as a number.
    pub fn number(&self, declared: &Declared) -> f64 {
        self.text(declared).parse().expect("a value was checked when it was set")
    }

    /// The same as several whole numbers.
    pub fn integers(&self, declared: &Declared) -> Vec<u64> {
        let one = |text: &str| text.parse().expect("a value was checked when it was set");
        self.text(declared).split(',').map(one).collect()
    }

    /// The same as several words.
    pub fn words<'a>(&'a self, declared: &Declared) -> impl Iterator<Item = &'a str> {
        self.text(declared).split(',')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Declared = Declared {
        key: "rules",
        takes: Takes::Integers(1, 100),
        default: "10,20",
        unit: "",
        help: "",
    };

    #[test]
    fn a_value_is_what_was_set_or_the_default() {
        let mut own = Own::default();
        assert_eq!(own.integers(&RULES), [10, 20]);
        own.set(&RULES, "7").unwrap();
        assert_eq!(own.integers(&RULES), [7]);
    }

    #[test]
    fn what_a_parameter_does_not_take_changes_nothing() {
        let mut own = Own::default();
        for wrong in ["", "0", "101", "1,", "1,x", "-1", "1.5", "nan"] {
            assert_eq!(own.set(&RULES, wrong), None, "{wrong}");
        }
        assert_eq!(own, Own::default());
        assert!(!Takes::Number(0.0, 1.0).admits("nan"));
        assert!(Takes::Words(&["a", "b"]).admits("b,a") && !Takes::Words(&["a"]).admits("a,c"));
    }
}
