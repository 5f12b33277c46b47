//! Parameters of standard methods: bursts, ports, addresses, flows that share a target, and long
//! runs.
//!
//! They have a separate module because few experiments use each of them; parsing is the same.

use super::declaration::{Parameter, ValueType};
use super::{Effort, list, number};

/// Maximum number of ports of a meshed target.
pub const PORTS_MAX: u8 = 8;

/// Parameters of standard methods.
#[derive(Debug, Clone, PartialEq)]
pub struct Methods {
    /// Seconds of the longest burst.
    pub burst_s: f64,
    /// Resolution of the burst length, in frames.
    pub burst_step: u32,
    /// Number of ports of a meshed target.
    pub ports: u8,
    /// Number of addresses of the largest table to try.
    pub addresses: u32,
    /// Learning rate in frames per second during the search for the address caching capacity.
    pub learning_pps: f64,
    /// Loads of all flows except the last, in percent of C.
    pub shares: Vec<f64>,
    /// Seconds of a long run.
    pub soak_s: f64,
}

impl Methods {
    /// Returns the defaults for an effort.
    pub fn at(effort: Effort) -> Methods {
        let (burst_s, soak_s, addresses) = match effort {
            Effort::Quick => (0.2, 30.0, 8192),
            Effort::Standard => (2.0, 600.0, 131_072),
            Effort::Full => (30.0, 14_400.0, 262_144),
        };
        let (burst_step, ports, learning_pps) = (1, 4, 25_000.0);
        let shares = vec![10.0];
        Methods { burst_s, burst_step, ports, addresses, learning_pps, shares, soak_s }
    }

    /// Applies a value that its declaration allows; `None` if the value is invalid or the parameter
    /// is not one of these.
    pub(super) fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "burst_seconds" => self.burst_s = number(value)?,
            "burst_step" => self.burst_step = number(value)? as u32,
            "ports" => self.ports = number(value)? as u8,
            "addresses" => self.addresses = number(value)? as u32,
            "learning_rate" => self.learning_pps = number(value)?,
            "background_flow_loads" => {
                let shares = list(value, number)?;
                self.shares = Some(shares).filter(|shares| shares.len() <= 7)?;
            }
            "soak_seconds" => self.soak_s = number(value)?,
            _ => return None,
        }
        Some(())
    }
}

/// Longest burst.
pub const BURST_SECONDS: Parameter = Parameter {
    key: "burst_seconds",
    takes: ValueType::Number(0.0001, 30.0),
    default: "quick 0.2; standard 2; full 30",
    unit: "s",
    help: "maximum burst length, as its duration at the link rate",
};

/// Resolution of the burst length.
pub const BURST_STEP: Parameter = Parameter {
    key: "burst_step",
    takes: ValueType::Integer(1, 1_000_000),
    default: "1",
    unit: "frames",
    help: "resolution of the burst length",
};

/// Number of meshed ports.
pub const PORTS: Parameter = Parameter {
    key: "ports",
    takes: ValueType::Integer(4, PORTS_MAX as u64),
    default: "4",
    unit: "ports",
    help: "number of meshed ports of a target",
};

/// Largest address table.
pub const ADDRESSES: Parameter = Parameter {
    key: "addresses",
    takes: ValueType::Integer(2, 1_048_576),
    default: "quick 8192; standard 131072; full 262144",
    unit: "addresses",
    help: "maximum number of addresses",
};

/// Rate at which addresses are learned.
pub const LEARNING_RATE: Parameter = Parameter {
    key: "learning_rate",
    takes: ValueType::Number(50.0, 1e7),
    default: "25000",
    unit: "frames/s",
    help: "rate of learning frames",
};

/// Loads of the fixed flows.
pub const SHARES: Parameter = Parameter {
    key: "background_flow_loads",
    takes: ValueType::Numbers(0.01, 1000.0),
    default: "10",
    unit: "%",
    help: "loads of all flows except the last, in percent of C; one flow each, at most seven",
};

/// Duration of a soak test.
pub const SOAK_SECONDS: Parameter = Parameter {
    key: "soak_seconds",
    takes: ValueType::Number(1.0, 604_800.0),
    default: "quick 30; standard 600; full 14400",
    unit: "s",
    help: "total duration of all trials",
};

/// All parameters of this module.
pub const ALL: &[Parameter] =
    &[BURST_SECONDS, BURST_STEP, PORTS, ADDRESSES, LEARNING_RATE, SHARES, SOAK_SECONDS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_parsed_and_invalid_values_change_nothing() {
        let mut methods = Methods::at(Effort::Quick);
        let right = [
            ("burst_seconds", "1.5"),
            ("burst_step", "16"),
            ("ports", "6"),
            ("addresses", "1000"),
            ("learning_rate", "50"),
            ("background_flow_loads", "10,20"),
            ("soak_seconds", "60"),
        ];
        assert_eq!(right.map(|(key, _)| key)[..], ALL.iter().map(|it| it.key).collect::<Vec<_>>());
        for (key, value) in right {
            let before = methods.clone();
            assert_eq!(methods.assign(key, value), Some(()), "{key}");
            assert_ne!(methods, before, "{key}");
            let before = methods.clone();
            for wrong in ["", "x"] {
                assert_eq!(methods.assign(key, wrong), None, "{key}={wrong}");
            }
            assert_eq!(methods, before, "{key}");
        }
        assert_eq!(methods.assign("seconds", "1"), None);
    }
}
