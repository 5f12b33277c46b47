//! Anonymization: replaces hosts, interfaces, addresses, datapath IDs, serial numbers, users, and
//! words of the user's choice by pseudonyms.
//!
//! Bundles and reports that are shared without identifying the network pass through here.
//! Invariants: one real name has one pseudonym everywhere. An anonymized record is still a valid
//! record, or there is none; data derived from it can contain nothing else.

mod pseudonyms;

use record::Record;
use serde_json::Value;

use super::variables;
use pseudonyms::{NameKind, Pseudonyms};

/// Settings of a target that identify it.
const SERIALS: [&str; 2] = ["serial_number", "datapath"];

/// Maps of a record with arbitrary keys.
const FREE: [&str; 3] = ["settings", "parameters", "versions"];

/// Pseudonyms of real names.
#[derive(Default)]
pub struct Masking {
    words: Pseudonyms,
}

impl Masking {
    /// Creates a masking that replaces the names of this machine and its user, and these words.
    pub fn new(hide: &[String]) -> Masking {
        let mut masking = Masking::default();
        for word in hide {
            masking.words.learn(NameKind::Hidden, word);
        }
        masking.machine();
        masking
    }

    /// Anonymizes a text.
    pub fn text(&mut self, text: &str) -> String {
        self.words.masked(text)
    }

    /// Adds this machine and its user: most bundles are made on the measuring machine.
    fn machine(&mut self) {
        if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            let host = host.trim();
            self.words.learn(NameKind::Host, host);
            self.words.learn(NameKind::Host, host.split('.').next().unwrap_or_default());
        }
        for variable in ["USER", "LOGNAME", "SUDO_USER"] {
            if let Some(user) = variables::variable(variable) {
                self.words.learn(NameKind::User, &user);
            }
        }
    }

    /// Adds the names in a record.
    pub fn learn(&mut self, record: &Record) {
        for target in &record.targets {
            self.target(&target.name);
            self.target(&target.spec);
            for (key, value) in &target.settings {
                if key.starts_with("port_") {
                    self.words.learn(NameKind::Interface, value);
                }
                if SERIALS.contains(&key.as_str()) {
                    self.words.learn(NameKind::Serial, value);
                }
            }
        }
        let set = record.parameters.get("set").and_then(Value::as_array);
        for word in set.into_iter().flatten().filter_map(Value::as_str) {
            match word.split_once('=') {
                Some(("snmp_interfaces", names)) => {
                    names.split(',').for_each(|name| self.words.learn(NameKind::Interface, name));
                }
                Some(("snmp", host)) => self.host(host),
                _ => {}
            }
        }
        for witness in record.trials.iter().filter_map(|trial| trial.witness.as_ref()) {
            for interface in &witness.interfaces {
                self.words.learn(NameKind::Interface, &interface.name);
            }
        }
    }

    /// Adds the parts of a device's name.
    fn target(&mut self, name: &str) {
        let device = name.strip_prefix("openflow:").or_else(|| name.strip_prefix("device:"));
        let Some(device) = device else { return };
        for part in device.split(',') {
            if let Some(ports) = part.strip_prefix("ports=") {
                let interfaces = ports.split('+').filter_map(|port| port.split_once('@'));
                interfaces.for_each(|(_, name)| self.words.learn(NameKind::Interface, name));
            } else if let Some(host) = part.strip_prefix("snmp=") {
                self.host(host);
            } else if let Some((kind, rest)) = part.split_once(':')
                && matches!(kind, "tcp" | "ssl")
            {
                self.host(rest);
            }
        }
    }

    /// Adds a host, possibly with a port.
    fn host(&mut self, text: &str) {
        if !text.starts_with('[') {
            self.words.learn(NameKind::Host, text.split(':').next().unwrap_or_default());
        }
    }

    /// Anonymizes every text in a value, and keys where they are arbitrary.
    pub fn json(&mut self, value: Value, is_free: bool) -> Value {
        match value {
            Value::String(text) => Value::String(self.words.masked(&text)),
            Value::Array(all) => all.into_iter().map(|it| self.json(it, is_free)).collect(),
            Value::Object(all) => {
                let one = |(key, value): (String, Value)| {
                    let is_inside = FREE.contains(&key.as_str());
                    let key = if is_free { self.words.masked(&key) } else { key };
                    (key, self.json(value, is_inside))
                };
                all.into_iter().map(one).collect()
            }
            other => other,
        }
    }

    pub fn record(&mut self, record: &Record) -> Result<Record, String> {
        let value = serde_json::to_value(record).map_err(|error| error.to_string())?;
        let masked = self.json(value, false);
        serde_json::from_value(masked).map_err(|error| {
            format!(
                "cannot anonymize the record: {error} (hint: rename targets or hosts that have the \
                 name of a record field)"
            )
        })
    }
}
