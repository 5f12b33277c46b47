//! Made-up names in place of real ones: hosts, interfaces, addresses, datapath ids, serial numbers, users, and words that somebody names.
//!
//! What is to be shared and shall not say whose network it was goes through here: bundles and reports. Invariants: one real word has one
//! made-up word everywhere; a masked record is still a record, or there is none, and what is derived from it can hold nothing else.

mod words;

use results::record::Record;
use serde_json::Value;

use super::place;
use words::{Sort, Words};

/// Settings of a target that tell who it is.
const SERIALS: [&str; 2] = ["serial_number", "datapath"];

/// Maps of a record whose keys anybody chooses.
const FREE: [&str; 3] = ["settings", "parameters", "versions"];

/// Made-up words for real ones.
#[derive(Default)]
pub struct Masking {
    words: Words,
}

impl Masking {
    /// What this machine is called and who uses it, and these words, are masked from the beginning.
    pub fn new(hide: &[String]) -> Masking {
        let mut masking = Masking::default();
        for word in hide {
            masking.words.learn(Sort::Hidden, word);
        }
        masking.machine();
        masking
    }

    /// A text in which what has to be masked is.
    pub fn text(&mut self, text: &str) -> String {
        self.words.masked(text)
    }

    /// This machine and who uses it: most bundles are made where was measured.
    fn machine(&mut self) {
        if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            let host = host.trim();
            self.words.learn(Sort::Host, host);
            self.words.learn(Sort::Host, host.split('.').next().unwrap_or_default());
        }
        for variable in ["USER", "LOGNAME", "SUDO_USER"] {
            if let Some(user) = place::variable(variable) {
                self.words.learn(Sort::User, &user);
            }
        }
    }

    /// Names that stand in a record.
    pub fn learn(&mut self, record: &Record) {
        for target in &record.targets {
            self.target(&target.name);
            self.target(&target.spec);
            for (key, value) in &target.settings {
                if key.starts_with("port_") {
                    self.words.learn(Sort::Interface, value);
                }
                if SERIALS.contains(&key.as_str()) {
                    self.words.learn(Sort::Serial, value);
                }
            }
        }
        let set = record.parameters.get("set").and_then(Value::as_array);
        for word in set.into_iter().flatten().filter_map(Value::as_str) {
            match word.split_once('=') {
                Some(("snmp_interfaces", names)) => {
                    names.split(',').for_each(|name| self.words.learn(Sort::Interface, name));
                }
                Some(("snmp", host)) => self.host(host),
                _ => {}
            }
        }
        for witness in record.trials.iter().filter_map(|trial| trial.witness.as_ref()) {
            for interface in &witness.interfaces {
                self.words.learn(Sort::Interface, &interface.name);
            }
        }
    }

    /// What a device's name says of it.
    fn target(&mut self, name: &str) {
        let device = name.strip_prefix("openflow:").or_else(|| name.strip_prefix("device:"));
        let Some(device) = device else { return };
        for part in device.split(',') {
            if let Some(ports) = part.strip_prefix("ports=") {
                let interfaces = ports.split('+').filter_map(|port| port.split_once('@'));
                interfaces.for_each(|(_, name)| self.words.learn(Sort::Interface, name));
            } else if let Some(host) = part.strip_prefix("snmp=") {
                self.host(host);
            } else if let Some((kind, rest)) = part.split_once(':')
                && matches!(kind, "tcp" | "ssl")
            {
                self.host(rest);
            }
        }
    }

    /// A host, perhaps with its port.
    fn host(&mut self, text: &str) {
        if !text.starts_with('[') {
            self.words.learn(Sort::Host, text.split(':').next().unwrap_or_default());
        }
    }

    /// A value in which every text is masked, and keys where anybody chooses them.
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
            format!("masked, it is no record ({error}): a name in it is a word of records; call that otherwise")
        })
    }
}
