//! Conditions that values of one series over time share.
//!
//! Invariant: values of different links, parameters, efforts, hosts or version families of the
//! target are never in one series.

use serde::Serialize;
use serde_json::{Map, Value};

use record::{Environment, Record};

/// The key of `--set` assignments among a record's parameters.
const SET: &str = "set";

/// Conditions of a measured value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Conditions {
    /// Link of the target.
    pub link: String,
    /// The first two numbers of the target's version, such as `3.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_family: Option<String>,
    /// Measurement effort: quick, standard or full.
    pub effort: String,
    /// Class of the host: its processor, cores and hypervisor, or simulated time.
    pub host: String,
    /// All parameters of the run as JSON; absent if an earlier version made the index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
}

/// The family of a version: its first two numbers, for example `3.1` of `ovs-vswitchd (Open
/// vSwitch) 3.1.0`.
pub fn version_family(version: &str) -> Option<String> {
    let numbers = |word: &str| {
        let word = word.trim_start_matches(['v', '(']);
        let mut parts = word.split('.').map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            &part[..digits]
        });
        let (first, second) = (parts.next()?, parts.next()?);
        let are_numbers = !first.is_empty() && !second.is_empty();
        are_numbers.then(|| format!("{first}.{second}"))
    };
    version.split_whitespace().find_map(numbers)
}

/// The class of a host: properties that determine its speed and are stable from day to day.
pub fn host_class(environment: &Environment) -> String {
    if environment.simulated {
        return "simulated".into();
    }
    let processor = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let cores = environment.cpu_cores.map(|cores| format!(", {cores} cores")).unwrap_or_default();
    let machine = environment.virtualised.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
    format!("{processor}{cores}{machine}")
}

/// All parameters of a run as JSON: the last assignment of each key, and values derived from them.
pub(crate) fn parameters(record: &Record) -> String {
    let mut all = Map::new();
    for (key, value) in &record.parameters {
        if key != SET {
            all.insert(key.clone(), value.clone());
        }
    }
    let set = record.parameters.get(SET).and_then(Value::as_array);
    let mut assigned = Map::new();
    for text in set.into_iter().flatten().filter_map(Value::as_str) {
        if let Some((key, value)) = text.split_once('=') {
            assigned.insert(key.into(), value.into());
        }
    }
    if !assigned.is_empty() {
        let mut sorted: Vec<(String, Value)> = assigned.into_iter().collect();
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.insert(SET.into(), Value::Object(sorted.into_iter().collect()));
    }
    Value::Object(all).to_string()
}

impl Conditions {
    /// The conditions as text, without the parameters that all series share: `veth:afpacket, 3.1,
    /// quick, ...`.
    pub fn words(&self, common: Option<&Conditions>) -> String {
        let family = self.version_family.iter().map(|it| format!("version {it}"));
        let all = std::iter::once(self.link.clone())
            .chain(family)
            .chain([self.effort.clone(), self.host.clone()])
            .chain(self.differing(common));
        all.collect::<Vec<_>>().join(", ")
    }

    /// Assignments that another series does not have.
    fn differing(&self, other: Option<&Conditions>) -> Vec<String> {
        let read = |it: &Conditions| -> Map<String, Value> {
            let value = it.parameters.as_deref().and_then(|text| serde_json::from_str(text).ok());
            let Some(Value::Object(mut all)) = value else { return Map::new() };
            if let Some(Value::Object(set)) = all.remove(SET) {
                all.extend(set);
            }
            all
        };
        let others = other.map(read).unwrap_or_default();
        let differing =
            read(self).into_iter().filter(|(key, value)| others.get(key) != Some(value));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
        differing.map(|(key, value)| format!("{key}={}", text(&value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_family_has_two_numbers() {
        for (version, wanted) in [
            ("ovs-vswitchd (Open vSwitch) 3.1.0", Some("3.1")),
            ("planimeter 0.2.7 (21119ce)", Some("0.2")),
            ("v2.17", Some("2.17")),
            ("6.1.0-18-amd64", Some("6.1")),
            ("unknown", None),
        ] {
            assert_eq!(version_family(version).as_deref(), wanted, "{version}");
        }
    }

    #[test]
    fn equal_parameters_in_any_order_are_one_series() {
        let of = |set: &[&str]| {
            let mut record = sample::record();
            record.parameters.insert(SET.into(), serde_json::json!(set));
            parameters(&record)
        };
        assert_eq!(of(&["frame=64", "capacity=1G"]), of(&["capacity=1G", "frame=64"]));
        assert_eq!(of(&["frame=64", "frame=512"]), of(&["frame=512"]), "the last value counts");
        assert_ne!(of(&["frame=64", "capacity=1G"]), of(&["frame=512", "capacity=10G"]));
    }
}
