//! Metrics that a measurement module defines.
//!
//! A module measures values that no fixed list can contain. Its names follow the same rule as all
//! others. Invariants:
//!
//! - A name consists of lower-case words, digits and underscores, and one of its words is its unit.
//! - Equal names are equal metrics, independent of their origin.
//! - A process stores at most [`NAMES_MAX`] names that it read, regardless of the number of
//!   records.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum number of different names that one process reads.
pub const NAMES_MAX: usize = 4096;

/// Maximum length of a name in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Words that are units. `per_s` is two words and also a unit.
const UNITS: [&str; 14] = [
    "ns", "pps", "bps", "ratio", "percent", "bytes", "cycles", "frames", "messages", "rules",
    "rows", "index", "count", "bit",
];

/// The name of a metric that is in no list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(&'static str);

/// Why a text is not a metric name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameProblem {
    /// It has characters other than lower-case letters, digits and underscores, or does not begin
    /// with a letter.
    Letters(String),
    /// It is longer than [`NAME_BYTES_MAX`].
    Long(usize),
    /// None of its words is a unit.
    NoUnit(String),
    /// There are [`NAMES_MAX`] names already.
    TooMany,
}

/// Names read so far. They live as long as the process.
static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Name {
    /// Creates a name from a constant. A test of the caller must check that the name is valid.
    pub const fn of(name: &'static str) -> Name {
        Name(name)
    }

    /// Parses a name.
    pub fn read(text: &str) -> Result<Name, NameProblem> {
        check(text)?;
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(name) = known.get(text) {
            return Ok(Name(name));
        }
        if known.len() >= NAMES_MAX {
            return Err(NameProblem::TooMany);
        }
        let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
        known.insert(name);
        Ok(Name(name))
    }

    /// The name as text.
    pub fn text(self) -> &'static str {
        self.0
    }

    /// The word that is its unit: the last such word.
    pub fn unit(self) -> &'static str {
        unit_of(self.0).unwrap_or("")
    }

    /// The counted object of a name that ends in `per_s`.
    pub fn counted(self) -> Option<&'static str> {
        let before = self.0.find("_per_s").map(|end| &self.0[..end])?;
        Some(before.rsplit('_').next().unwrap_or(before))
    }

    /// The name for display: without its unit, and preceded by the word for a percentile or
    /// extreme.
    pub fn title(self) -> String {
        if let Some((_, title)) = TITLES.iter().find(|(name, _)| *name == self.0) {
            return (*title).into();
        }
        let unit = self.unit();
        let plain = self.0.replace("_per_s", " per second");
        let words = plain.split(['_', ' ']).filter(|word| *word != unit);
        let (mut before, mut rest) = (None, Vec::new());
        for word in words {
            match word {
                "min" => before = Some("minimum".to_string()),
                "max" => before = Some("maximum".to_string()),
                "mean" => before = Some("mean".to_string()),
                "p50" => before = Some("median".to_string()),
                "p90" | "p99" => before = Some(word.to_string()),
                "p999" => before = Some("p99.9".to_string()),
                "tcp" => rest.push("TCP"),
                "udp" => rest.push("UDP"),
                "mac" => rest.push("MAC"),
                "ip" => rest.push("IP"),
                "pdv" => rest.push("PDV"),
                "rtt" => rest.push("round-trip time"),
                "returned" => rest.push("packets returned"),
                "accepted" if unit == "rules" => rest.push("rules accepted"),
                "lossfree" => rest.push("without loss"),
                "extra" if unit == "ns" => rest.push("extra latency"),
                word => rest.push(word),
            }
        }
        before.iter().map(String::as_str).chain(rest).collect::<Vec<_>>().join(" ")
    }
}

/// Titles of names that are clear only to readers of their module.
const TITLES: [(&str, &str); 7] = [
    ("control_plane_ns", "barrier reply time"),
    ("data_plane_ns", "rule activation delay"),
    ("barrier_gap_ns_max", "time from barrier reply to last activation"),
    ("pause_ns_max", "longest pause between activations"),
    ("rules_premature_ratio", "premature rules"),
    ("rules_active_ratio", "active rules"),
    ("order_tau_index", "order of activation (Kendall's tau)"),
];

/// Checks whether a text is a metric name.
pub fn check(text: &str) -> Result<(), NameProblem> {
    if text.len() > NAME_BYTES_MAX {
        return Err(NameProblem::Long(text.len()));
    }
    let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    if !text.starts_with(|first: char| first.is_ascii_lowercase()) || !text.bytes().all(is_letter) {
        return Err(NameProblem::Letters(text.into()));
    }
    unit_of(text).map(|_| ()).ok_or_else(|| NameProblem::NoUnit(text.into()))
}

fn unit_of(text: &str) -> Option<&'static str> {
    if text.contains("_per_s") {
        return Some("per_s");
    }
    text.rsplit('_').find_map(|word| UNITS.into_iter().find(|unit| *unit == word))
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for NameProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameProblem::Letters(text) => write!(
                f,
                "invalid metric name {text:?} (hint: use lower-case letters, digits and _)"
            ),
            NameProblem::Long(bytes) => {
                write!(f, "a metric name has {bytes} bytes, but at most {NAME_BYTES_MAX} are valid")
            }
            NameProblem::NoUnit(text) => write!(
                f,
                "the metric name {text:?} has no unit (hint: add one of {}, per_s)",
                UNITS.join(", ")
            ),
            NameProblem::TooMany => write!(f, "there are more than {NAMES_MAX} metric names"),
        }
    }
}

impl std::error::Error for NameProblem {}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = String::deserialize(deserializer)?;
        Name::read(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    #[test]
    fn a_parsed_name_equals_the_metric_of_the_program() {
        let stored = serde_json::to_string(&Metric::Named(Name::of("gap_ns_p50"))).unwrap();
        assert_eq!(stored, "\"gap_ns_p50\"");
        let read: Metric = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, Metric::Named(Name::of("gap_ns_p50")));
        let listed: Metric = serde_json::from_str("\"loss_ratio\"").unwrap();
        assert_eq!(listed, Metric::LossRatio, "listed metrics keep their identity");
    }

    #[test]
    fn names_determine_their_unit_and_label() {
        for (name, unit, title) in [
            ("activation_ns_p50", "ns", "median activation"),
            ("port_rtt_ns_mean", "ns", "mean port round-trip time"),
            ("exact_accepted_rules", "rules", "exact rules accepted"),
            ("port_rewrite_extra_ns_p50", "ns", "median port rewrite extra latency"),
            ("messages_per_s_peak", "per_s", "messages per second peak"),
            ("data_plane_ns", "ns", "rule activation delay"),
            ("order_tau_index", "index", "order of activation (Kendall's tau)"),
            ("tcp_throughput_bps", "bps", "TCP throughput"),
            ("pdv_ns_mean", "ns", "mean PDV"),
            ("frames_per_s_lossfree", "per_s", "frames per second without loss"),
        ] {
            let name = Name::read(name).unwrap();
            assert_eq!((name.unit(), name.title().as_str()), (unit, title));
        }
        assert_eq!(Name::of("messages_per_s").counted(), Some("messages"));
    }

    #[test]
    fn invalid_names_are_rejected_with_a_reason() {
        assert!(matches!(check("Gap_ns"), Err(NameProblem::Letters(_))));
        assert!(matches!(check("gap-ns"), Err(NameProblem::Letters(_))));
        assert!(matches!(check(""), Err(NameProblem::Letters(_))));
        assert!(matches!(check("gap"), Err(NameProblem::NoUnit(_))));
        assert!(matches!(check(&"a_ns".repeat(20)), Err(NameProblem::Long(80))));
        assert!(serde_json::from_str::<Metric>("\"gap in ns\"").is_err());
    }
}
