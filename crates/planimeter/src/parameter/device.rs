//! How a device of the user's own is treated: what may be deleted in it, which interfaces may be taken, how
//! long it is waited for.
//!
//! Invariant: whatever could destroy something or cut somebody off happens only if it was asked for.

use packet::time::Nanos;

use super::number;

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Whether flows that a switch holds when it is met are deleted for the run.
    pub overwrites_flows: bool,
    /// Whether interfaces with an address, a route or a bridge may be taken.
    pub takes_used: bool,
    /// Whether cables are looked after before anything is measured.
    pub checks_cables: bool,
    /// Seconds that a device may take to answer, to connect, or for its links to come up.
    pub wait_s: f64,
    /// Seconds that a command before, between or after may take.
    pub hook_s: f64,
}

impl Default for Device {
    fn default() -> Self {
        Device {
            overwrites_flows: false,
            takes_used: false,
            checks_cables: true,
            wait_s: 30.0,
            hook_s: 600.0,
        }
    }
}

impl Device {
    /// How long a device is waited for.
    pub fn patience(&self) -> Nanos {
        Nanos::from_secs_f64(self.wait_s)
    }

    /// Applies one assignment, if the key is one of [`KEYS`]; or what it takes.
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), &'static str>> {
        let expected = KEYS.iter().find(|(known, ..)| *known == key)?.1;
        Some(self.read(key, value).ok_or(expected))
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        let either = |no: &str, yes: &str| match value {
            value if value == no => Some(false),
            value if value == yes => Some(true),
            _ => None,
        };
        match key {
            "device_flows" => self.overwrites_flows = either("refuse", "overwrite")?,
            "device_interfaces" => self.takes_used = either("free", "used")?,
            "device_cables" => self.checks_cables = either("trust", "check")?,
            "device_wait" => self.wait_s = number(value, 1.0, 3600.0)?,
            _ => self.hook_s = number(value, 1.0, 86_400.0)?,
        }
        Some(())
    }
}

/// Keys of `--set`, what they take, and what they mean.
pub const KEYS: [(&str, &str, &str); 5] = [
    (
        "device_flows",
        "refuse or overwrite",
        "what to do where your switch holds flows: end with one line, or delete them and put them back afterwards (refuse)",
    ),
    (
        "device_interfaces",
        "free or used",
        "whether interfaces with an address, a route or a bridge may be taken for your device (free)",
    ),
    (
        "device_cables",
        "check or trust",
        "whether cables to your device are looked after before anything is measured (check)",
    ),
    (
        "device_wait",
        "1 to 3600 seconds",
        "how long your device may take to answer, to connect, or for its links to come up (30)",
    ),
    (
        "hook_limit",
        "1 to 86400 seconds",
        "how long a command of --before, --between or --after may take (600)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_what_is_wrong_changes_nothing() {
        let mut device = Device::default();
        let right = [
            ("device_flows", "overwrite"),
            ("device_interfaces", "used"),
            ("device_cables", "trust"),
            ("device_wait", "2.5"),
            ("hook_limit", "5"),
        ];
        for (key, value) in right {
            let before = device.clone();
            assert!(device.set(key, "-x").unwrap().is_err(), "{key}");
            assert_eq!(device, before, "{key}");
            assert_eq!(device.set(key, value), Some(Ok(())), "{key}");
            assert_ne!(device, before, "{key}");
        }
        assert_eq!(device.patience(), Nanos::from_millis(2500));
        assert_eq!(device.set("seconds", "1"), None);
    }
}
