//! Treatment of user-provided devices: deletion of flows, use of interfaces, and timeouts.
//!
//! Invariant: operations that could destroy data or disconnect users run only on request.

use packet::time::Nanos;

use super::declaration::{Parameter, ValueType};
use super::number;

/// Options for user-provided devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Whether existing flows of a switch are deleted for the run.
    pub overwrites_flows: bool,
    /// Whether interfaces with an address, a route or a bridge may be used.
    pub takes_used: bool,
    /// Whether cables are checked before the measurement.
    pub checks_cables: bool,
    /// Maximum seconds for a device to reply, to connect, or for its links to come up.
    pub wait_s: f64,
    /// Maximum seconds for a hook command before, between or after trials.
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
    /// Returns the timeout for a device.
    pub fn patience(&self) -> Nanos {
        Nanos::from_secs_f64(self.wait_s)
    }

    /// Applies a value that its declaration allows; `None` if the value is invalid or the parameter
    /// is not one of these.
    pub(super) fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        let either = |no: &str, yes: &str| match value {
            value if value == no => Some(false),
            value if value == yes => Some(true),
            _ => None,
        };
        match key {
            "existing_flows" => self.overwrites_flows = either("abort", "replace")?,
            "device_interfaces" => self.takes_used = either("free", "used")?,
            "cabling_check" => self.checks_cables = either("off", "on")?,
            "device_timeout_s" => self.wait_s = number(value)?,
            "hook_timeout_s" => self.hook_s = number(value)?,
            _ => return None,
        }
        Some(())
    }
}

/// All parameters of this module.
pub const ALL: &[Parameter] = &[
    Parameter {
        key: "existing_flows",
        takes: ValueType::Word(&["abort", "replace"]),
        default: "abort",
        unit: "",
        help: "reaction to flow entries on the device: stop with an error, or delete them and \
               restore them after the run",
    },
    Parameter {
        key: "device_interfaces",
        takes: ValueType::Word(&["free", "used"]),
        default: "free",
        unit: "",
        help: "whether the run may use interfaces that have an address, a route or a bridge",
    },
    Parameter {
        key: "cabling_check",
        takes: ValueType::Word(&["on", "off"]),
        default: "on",
        unit: "",
        help: "whether cables to the device are checked before the first trial",
    },
    Parameter {
        key: "device_timeout_s",
        takes: ValueType::Number(1.0, 3600.0),
        default: "30",
        unit: "s",
        help: "timeout for replies, connections and links of the device",
    },
    Parameter {
        key: "hook_timeout_s",
        takes: ValueType::Number(1.0, 86_400.0),
        default: "600",
        unit: "s",
        help: "timeout of a command of --setup, --prepare or --cleanup",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_parsed_and_invalid_values_change_nothing() {
        let mut device = Device::default();
        let right = [
            ("existing_flows", "replace"),
            ("device_interfaces", "used"),
            ("cabling_check", "off"),
            ("device_timeout_s", "2.5"),
            ("hook_timeout_s", "5"),
        ];
        for (key, value) in right {
            let before = device.clone();
            assert_eq!(device.assign(key, "x"), None, "{key}");
            assert_eq!(device, before, "{key}");
            assert_eq!(device.assign(key, value), Some(()), "{key}");
            assert_ne!(device, before, "{key}");
        }
        assert_eq!(device.patience(), Nanos::from_millis(2500));
        assert_eq!(device.assign("seconds", "1"), None);
    }
}
