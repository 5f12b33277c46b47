//! Parameters of standard methods: bursts, ports, addresses, flows that share a target, and long runs.
//!
//! Beside the other parameters because few experiments have a use for each; read the same way.

use super::{Effort, list, number};

/// Ports of a target that is meshed, at the most.
pub const PORTS_MAX: u8 = 8;

/// What standard methods can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Methods {
    /// Seconds of the longest burst.
    pub burst_s: f64,
    /// Frames to which the length of a burst is searched for.
    pub burst_step: u32,
    /// Ports of a target that is meshed.
    pub ports: u8,
    /// Addresses of the largest table that is tried.
    pub addresses: u32,
    /// Frames per second by which addresses are taught while their number is searched for.
    pub learning_pps: f64,
    /// Loads of all flows but the last, in percent of C.
    pub shares: Vec<f64>,
    /// Seconds of a long run.
    pub soak_s: f64,
    /// Whether three frame sizes do where many tests of a standard name seven.
    pub is_brief: bool,
}

impl Methods {
    /// The defaults at an effort.
    pub fn at(effort: Effort) -> Methods {
        let (burst_s, soak_s, addresses) = match effort {
            Effort::Quick => (0.2, 30.0, 8192),
            Effort::Standard => (2.0, 600.0, 131_072),
            Effort::Full => (30.0, 14_400.0, 262_144),
        };
        let (burst_step, ports, learning_pps) = (1, 4, 25_000.0);
        let (shares, is_brief) = (vec![10.0], effort == Effort::Quick);
        Methods { burst_s, burst_step, ports, addresses, learning_pps, shares, soak_s, is_brief }
    }

    /// Applies one assignment, if the key is one of [`KEYS`]; or what it takes.
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), &'static str>> {
        let expected = KEYS.iter().find(|(known, ..)| *known == key)?.1;
        Some(self.read(key, value).ok_or(expected))
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        let whole = |least: f64, most: f64| {
            number(value, least, most).filter(|number| number.fract() == 0.0)
        };
        match key {
            "burst_seconds" => self.burst_s = number(value, 0.0001, 30.0)?,
            "burst_step" => self.burst_step = whole(1.0, 1e6)? as u32,
            "ports" => self.ports = whole(4.0, f64::from(PORTS_MAX))? as u8,
            "addresses" => self.addresses = whole(2.0, 1_048_576.0)? as u32,
            "learning_rate" => self.learning_pps = number(value, 50.0, 1e7)?,
            "shares" => {
                let shares = list(value, |text| number(text, 0.01, 1000.0))?;
                self.shares = Some(shares).filter(|shares| shares.len() <= 7)?;
            }
            _ => self.soak_s = number(value, 1.0, 604_800.0)?,
        }
        Some(())
    }
}

/// Keys of `--set`, what they take, and what they mean.
pub const KEYS: [(&str, &str, &str); 7] = [
    (
        "burst_seconds",
        "0.0001 to 30",
        "longest burst of rfc9004, in seconds at the link's rate (quick 0.2, standard 2, full 30)",
    ),
    ("burst_step", "1 to 1000000 frames", "resolution of a burst's length (1)"),
    ("ports", "4 to 8", "ports of a target that rfc2889 meshes (4)"),
    (
        "addresses",
        "2 to 1048576",
        "largest address table that rfc2889 tries (quick 8192, standard 131072, full 262144)",
    ),
    (
        "learning_rate",
        "50 to 10000000 frames/s",
        "how fast rfc2889/caching teaches addresses (25000)",
    ),
    (
        "shares",
        "up to 7 percentages of C, by commas",
        "loads of all flows of fairness but the last, whose loads load= says (10)",
    ),
    (
        "soak_seconds",
        "1 to 604800",
        "length of a soak (quick 30, standard 600, full 14400: four hours)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_what_is_wrong_changes_nothing() {
        let mut methods = Methods::at(Effort::Quick);
        let right = [
            ("burst_seconds", "1.5"),
            ("burst_step", "16"),
            ("ports", "6"),
            ("addresses", "1000"),
            ("learning_rate", "50"),
            ("shares", "10,20"),
            ("soak_seconds", "60"),
        ];
        assert_eq!(right.map(|(key, _)| key), KEYS.map(|(key, ..)| key));
        for (key, value) in right {
            let before = methods.clone();
            assert_eq!(methods.set(key, value), Some(Ok(())), "{key}");
            assert_ne!(methods, before, "{key}");
            let before = methods.clone();
            for wrong in ["-1", "nan", "", "x", "1e99"] {
                assert!(methods.set(key, wrong).unwrap().is_err(), "{key}={wrong}");
            }
            assert_eq!(methods, before, "{key}");
        }
        assert_eq!(methods.set("seconds", "1"), None);
    }
}
