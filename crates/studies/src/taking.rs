//! Parameters of each experiment, and their values from the assignments of a run.
//!
//! Invariants:
//!
//! - An assignment that applies to no experiment of a run is an error before the run.
//! - An experiment reads only parameters that it declares, with the values set for it.
//! - A list for a parameter with one value is an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::CatalogEntry;
use record::assignment;
use workload::nearest;
use workload::parameter::declaration::Parameter;
use workload::parameter::{Effort, ParameterError, Parameters, control, parted, shared};

/// Groups of parameters that users confuse with each other.
const ALIKE: &[&[&str]] = &[
    &["frame", "size", "sizes", "probe_bytes", "payload"],
    &["entries", "flows", "rules_count", "flows_count", "rules_bound", "resident", "addresses"],
    &[
        "load",
        "background_load_percent",
        "probes_pps",
        "frames_pps",
        "rates_mbps",
        "rates",
        "load_pps",
        "capacity",
    ],
    &[
        "seconds",
        "soak_seconds",
        "search_seconds",
        "duration_s",
        "step_duration_s",
        "time",
        "goal_final",
    ],
    &["goals", "loss"],
    &["openflow", "version"],
    &["priority", "priority_order", "order"],
    &["batch", "batches", "batches_in_flight", "in_flight"],
    &["resolution", "goal_width", "burst_step"],
];

/// Maximum number of keys in a hint.
const NAMED_MAX: usize = 12;

impl CatalogEntry {
    /// Iterates over the parameters that the experiment declares itself.
    pub fn own(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.parameters.iter().chain(self.flows)
    }

    /// Iterates over the shared parameters that the experiment includes.
    fn included(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        let channel = self.is_module().then_some(&control::CAPTURE);
        self.shared.iter().copied().flatten().chain(channel)
    }

    /// Returns the parameters other than those of every run: its own first, each key once.
    pub fn declared(&self) -> Vec<&'static Parameter> {
        let mut all: Vec<&'static Parameter> = Vec::new();
        for it in self.own().chain(self.included()) {
            if !all.iter().any(|known| known.key == it.key) {
                all.push(it);
            }
        }
        all
    }

    /// Returns the declaration of this parameter, if the experiment accepts it under its present
    /// or a former key.
    pub fn takes(&self, key: &str) -> Option<&'static Parameter> {
        self.takes_now(key).or_else(|| self.takes_now(assignment::current_key(key)))
    }

    fn takes_now(&self, key: &str) -> Option<&'static Parameter> {
        self.declared().into_iter().chain(shared::always()).find(|it| it.key == key)
    }

    /// Returns the parameters of a run as the experiment reads them.
    pub fn its(&self, parameters: &Parameters) -> Parameters {
        let own: Vec<&'static str> = self.own().map(|it| it.key).collect();
        let taken: Vec<&'static str> =
            self.included().chain(shared::always()).map(|it| it.key).collect();
        parameters.of(&taken, own)
    }

    /// Returns the value of each declared parameter in a run with these assignments.
    ///
    /// Values have the syntax of `--set`.
    pub fn effective(&self, effort: Effort, assignments: &[String]) -> BTreeMap<String, String> {
        let set = |key: &str| {
            let pairs = assignments.iter().rev().filter_map(|it| parted(it).ok());
            pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let value = |it: &Parameter| set(it.key).unwrap_or_else(|| it.default_at(effort)).into();
        self.declared().into_iter().map(|it| (it.key.into(), value(it))).collect()
    }

    /// Applies a value to the parameters of a run; returns whether the experiment accepts it.
    fn assign(
        &self,
        parameters: &mut Parameters,
        key: &str,
        value: &str,
    ) -> Result<bool, ParameterError> {
        let Some(declared) = self.takes_now(key) else { return Ok(false) };
        if declared.takes.admits_each(value) {
            return Err(ParameterError::OneValue {
                assignment: format!("{key}={value}"),
                key: key.into(),
                experiment: self.id.into(),
            });
        }
        for own in self.own().filter(|it| it.key == key) {
            parameters.assign_own(own, value)?;
        }
        if let Some(shared) = self.included().chain(shared::always()).find(|it| it.key == key) {
            parameters.assign(shared, value)?;
        }
        Ok(true)
    }
}

/// Returns `KEY=VALUE` with the present key and value, if a run of these experiments accepts them
/// only in a former form.
///
/// A script may declare a parameter whose key is a former one.
pub fn current<'a>(entries: &[&'static CatalogEntry], assignment: &'a str) -> Cow<'a, str> {
    let Ok((key, value)) = parted(assignment) else { return assignment.into() };
    let Some((now, text)) = assignment::current(key, value) else { return assignment.into() };
    let mut declared = entries.iter().filter_map(|entry| entry.takes_now(key));
    match declared.any(|it| now != key || it.takes.admits(value.trim())) {
        false => format!("{now}={text}").into(),
        true => assignment.into(),
    }
}

/// Returns whether one of these assignments sets a parameter, under its present or a former key.
pub fn is_set(assignments: &[String], key: &str) -> bool {
    let of = |text: &str| text.split('=').next().map(assignment::current_key) == Some(key);
    assignments.iter().any(|it| of(it))
}

/// Returns a hint for an assignment that [`current`] changed.
pub fn renamed(given: &str, now: &str) -> String {
    let value = |text: &str| text.split_once('=').map(|(_, value)| value.to_string());
    let key = |text: &str| text.split('=').next().unwrap_or_default().to_string();
    match value(given) == value(now) {
        true => format!("{:?} is now {:?}", key(given), key(now)),
        false => format!("{given:?} is now {now:?}"),
    }
}

/// Applies `KEY=VALUE`, also in a former form, to a run of these experiments.
///
/// Returns the names of the experiments that do not accept the parameter.
pub fn assign(
    parameters: &mut Parameters,
    entries: &[&'static CatalogEntry],
    assignment: &str,
) -> Result<Vec<&'static str>, ParameterError> {
    let assignment = &current(entries, assignment);
    let (key, value) = parted(assignment)?;
    let mut without = Vec::new();
    for entry in entries {
        if !entry.assign(parameters, key, value)? {
            without.push(entry.id);
        }
    }
    match without.len() == entries.len() {
        true => Err(not_taken(entries, key, assignment)),
        false => Ok(without),
    }
}

/// Returns the error for a parameter that no experiment accepts, with the nearest valid one.
fn not_taken(entries: &[&'static CatalogEntry], key: &str, assignment: &str) -> ParameterError {
    let declared: Vec<&str> =
        entries.iter().flat_map(|entry| entry.declared()).map(|it| it.key).collect();
    let known = || declared.iter().copied().chain(shared::always().map(|it| it.key));
    let is_alike = |other: &&str| ALIKE.iter().any(|row| row.contains(&key) && row.contains(other));
    let alike: Vec<&str> = known().filter(is_alike).collect();
    let near = nearest::nearest(key, known()).or_else(|| alike.iter().copied().next());
    let meant = near.map(|near| format!("did you mean {near:?}? "));
    let meant = meant.unwrap_or_default();
    let is_anywhere = super::entries().any(|entry| entry.takes_now(key).is_some());
    if !is_anywhere {
        let hint = match meant.is_empty() {
            true => "run 'planimeter list parameters'".into(),
            false => meant.trim_end().into(),
        };
        return ParameterError::UnknownKey { key: key.into(), hint };
    }
    let experiments = match entries {
        [one] => one.id.to_string(),
        several => format!("each of {} experiments ({}, ...)", several.len(), several[0].id),
    };
    let mut keys: Vec<&str> = Vec::new();
    declared.iter().for_each(|key| {
        if !keys.contains(key) {
            keys.push(key)
        }
    });
    let more = if keys.len() > NAMED_MAX { ", ..." } else { "" };
    keys.truncate(NAMED_MAX);
    let hint = match keys.is_empty() {
        true => format!("{meant}run 'planimeter list parameters' for those of every run"),
        false => format!("{meant}use one of {}{more}", keys.join(", ")),
    };
    let (assignment, key) = (assignment.into(), key.into());
    ParameterError::NotTaken { assignment, key, experiments, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    use workload::parameter::declaration::ValueType;

    fn entry(id: &str) -> Vec<&'static CatalogEntry> {
        crate::find(id).unwrap()
    }

    fn told(id: &str, assignment: &str) -> String {
        let mut parameters = Parameters::at(Effort::Quick);
        assign(&mut parameters, &entry(id), assignment).unwrap_err().to_string()
    }

    /// U2: an unsupported parameter is an error that names the experiment, the key and a fix.
    #[test]
    fn an_unsupported_parameter_is_an_error_with_the_nearest_valid_one() {
        for (id, assignment, words) in [
            ("throughput", "load=50", &["throughput does not support load", "capacity"][..]),
            ("throughput", "flows=100", &["throughput does not support flows", "\"entries\""]),
            ("throughput", "goals=ndr", &["throughput does not support goals", "\"loss\""]),
            (
                "rule-activation",
                "entries=100",
                &["rule-activation does not support entries", "rules_count"],
            ),
            (
                "rule-activation",
                "frame=512",
                &["rule-activation does not support frame", "probe_bytes"],
            ),
            ("rule-activation", "seconds=2", &["rule-activation does not support seconds"]),
            ("latency", "sconds=1", &["unknown parameter", "\"seconds\""]),
            ("rule-activation", "timeouts=1", &["unknown parameter", "\"timeout_s\""]),
        ] {
            let message = told(id, assignment);
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
            assert!(message.contains(assignment.split('=').next().unwrap()), "{message}");
            assert!(message.contains("(hint: "), "{message}");
        }
        let mut parameters = Parameters::at(Effort::Quick);
        let two = [entry("throughput"), entry("latency")].concat();
        assert_eq!(assign(&mut parameters, &two, "load=50"), Ok(vec!["throughput"]));
        assert_eq!(assign(&mut parameters, &two, "frame=64"), Ok(Vec::new()));
    }

    #[test]
    fn a_former_key_sets_the_present_parameter() {
        let mut parameters = Parameters::at(Effort::Quick);
        let entries = entry("rule-activation");
        let now = current(&entries, "patience=3");
        assert_eq!((&*now, &*current(&entries, &now)), ("timeout_s=3", "timeout_s=3"));
        assert_eq!(renamed("patience=3", &now), "\"patience\" is now \"timeout_s\"");
        assert_eq!(assign(&mut parameters, &entries, "patience=3"), Ok(Vec::new()));
        assert_eq!(assign(&mut parameters, &entries, "rig=sim"), Ok(Vec::new()));
        assert!(parameters.simulated);
        let own = entries[0].takes("patience").unwrap();
        assert_eq!((own.key, parameters.own.text(own)), ("timeout_s", "3"));
        let hint = renamed("rig=sim", &current(&entries, "rig=sim"));
        assert_eq!(hint, "\"rig=sim\" is now \"simulate=true\"");
    }

    #[test]
    fn each_former_key_leads_to_a_declared_parameter() {
        let declared = |key: &str| {
            crate::entries().any(|entry| entry.takes_now(key).is_some())
                || shared::all().any(|it| it.key == key)
        };
        for (was, now) in assignment::former_keys() {
            assert!(declared(now) && !declared(was), "{was} is now {now}");
        }
    }

    /// U1: several values for a parameter of one value are an error.
    #[test]
    fn several_values_are_an_axis_or_an_error() {
        for (id, assignment) in [
            ("cold-start", "frame=64,512"),
            ("flow-mod-impact", "frame=64,512"),
            ("match-types", "load=10,50"),
            ("rfc2889/caching", "frame=64,512"),
            ("throughput", "entries=1,100"),
        ] {
            let message = told(id, assignment);
            assert!(message.contains("supports one value of") && message.contains(id), "{message}");
        }
        let taken = [
            "latency",
            "forwarding-rate",
            "fairness/one-port",
            "soak",
            "match-types",
            "bianco2010/fig3",
        ];
        for id in taken {
            let mut parameters = Parameters::at(Effort::Quick);
            assert_eq!(
                assign(&mut parameters, &entry(id), "frame=64,512,1518"),
                Ok(Vec::new()),
                "{id}"
            );
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_parameter() {
        for entry in crate::entries() {
            for it in entry.declared() {
                for effort in Effort::ALL {
                    let default = it.default_at(effort);
                    let is_open = default.is_empty()
                        && matches!(it.takes, ValueType::Text(_) | ValueType::Number(..));
                    assert!(
                        is_open || it.takes.admits(default),
                        "{} {}={default}",
                        entry.id,
                        it.key
                    );
                }
            }
        }
    }

    #[test]
    fn a_record_has_the_value_of_each_declared_parameter() {
        let assignments = ["frame=64".into(), "interleaving=abab".into(), "frame=512,1518".into()];
        let latency = entry("latency")[0].effective(Effort::Quick, &assignments);
        assert_eq!(latency["frame"], "512,1518", "the last assignment counts");
        assert!(!latency.contains_key("interleaving"), "every run takes it");
        let defaults = entry("latency")[0].effective(Effort::Full, &[]);
        assert_eq!(defaults.keys().collect::<Vec<_>>(), latency.keys().collect::<Vec<_>>());
        for declared in entry("latency")[0].declared() {
            assert_eq!(defaults[declared.key], declared.default_at(Effort::Full));
        }
    }

    #[test]
    fn a_value_for_one_experiment_does_not_apply_to_another() {
        let both =
            [entry("forwarding-rate"), entry("rule-activation"), entry("flow-mod-rate")].concat();
        let mut parameters = Parameters::at(Effort::Quick);
        for assignment in ["entries=1000", "table=wildcard", "flow_mods_per_s=5", "priority=random"]
        {
            let taken =
                assign(&mut parameters, &[both.clone(), entry("soak")].concat(), assignment);
            assert!(!taken.unwrap().is_empty());
        }
        let its = |place: usize| both[place].its(&parameters);
        assert_eq!((its(0).entries, its(1).entries), (1000, 1));
        assert_eq!((its(0).table.is_some(), its(1).table), (true, None));
        assert_ne!(its(2).control.priorities, its(0).control.priorities);
    }
}
