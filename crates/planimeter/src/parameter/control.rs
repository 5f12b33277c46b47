//! Parameters of what a controller does to a switch while it is measured.
//!
//! Beside the others because no other experiment has a use for them; read the same way.

use instrument::controller::script::{AHEAD_MAX, Commit};
use openflow::version::Version;

use super::{list, number};
use crate::target::name::TargetKind;

/// Flow-mods in a bundle unless another number is asked for.
const BUNDLE_FLOW_MODS: u32 = 10_000;

/// In which order priorities follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priorities {
    /// All have one.
    Same,
    /// Each has the next.
    Ascending,
    /// Scattered.
    Random,
}

/// What controllers do.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// Flows that are added, told of or met; the experiment's own number if none is asked for.
    pub flows: Option<u32>,
    /// What of an experiment's own number of flows there is to be.
    pub flows_share: f64,
    /// When the switch is asked whether it is done.
    pub batches: Vec<Commit>,
    /// Priorities of added flows.
    pub priorities: Priorities,
    /// Version of OpenFlow.
    pub version: Version,
    /// Batches sent before the first of them is answered; by their size if it is not said.
    pub ahead: Option<usize>,
    /// Traffic meanwhile, in percent of the target's own maximum; the experiment's own if none is
    /// asked for.
    pub traffic_percent: Option<f64>,
    /// Flow-mods that arrive in a second beside traffic.
    pub flow_mods_per_s: f64,
    /// The target whose maximum loads are shares of; each its own if none is named.
    pub load_of: Option<TargetKind>,
    /// Whether a module's control channels are captured on the wire.
    pub capture: Capture,
}

/// What is captured of control channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Nothing.
    No,
    /// When messages pass.
    Stamps,
    /// That, and a file of all packets for each trial.
    File,
}

impl Control {
    /// The defaults, with this share of each experiment's number of flows.
    pub fn new(flows_share: f64) -> Control {
        Control {
            flows: None,
            flows_share,
            batches: vec![
                Commit::Barrier(1),
                Commit::Barrier(1000),
                Commit::Bundle(BUNDLE_FLOW_MODS),
            ],
            priorities: Priorities::Same,
            version: Version::V1_4,
            ahead: None,
            traffic_percent: None,
            flow_mods_per_s: 100_000.0,
            load_of: None,
            capture: Capture::No,
        }
    }

    /// So many flows, unless the user asked for another number.
    pub fn flows_or(&self, own: u32) -> u32 {
        self.flows.unwrap_or((f64::from(own) * self.flows_share).max(1.0) as u32)
    }

    /// Applies one assignment, if the key is one of [`KEYS`]; or what it takes.
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), &'static str>> {
        let expected = KEYS.iter().find(|(known, ..)| *known == key)?.1;
        Some(self.read(key, value).ok_or(expected))
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "flows" => self.flows = Some(number(value, 1.0, 4e6)? as u32),
            "batch" => self.batches = list(value, batch)?,
            "priority" => {
                self.priorities = match value {
                    "same" => Priorities::Same,
                    "ascending" => Priorities::Ascending,
                    "random" => Priorities::Random,
                    _ => return None,
                }
            }
            "openflow" => {
                let named = |version: &&Version| version.to_string() == value;
                self.version = *Version::SPOKEN.iter().find(named)?;
            }
            "ahead" => self.ahead = Some(number(value, 1.0, AHEAD_MAX as f64)? as usize),
            "beside" => self.traffic_percent = Some(number(value, 0.1, 100.0)?),
            "flow_mods_per_s" => self.flow_mods_per_s = number(value, 1.0, 1e8)?,
            "control_capture" => {
                self.capture = match value {
                    "no" => Capture::No,
                    "stamps" => Capture::Stamps,
                    "file" => Capture::File,
                    _ => return None,
                }
            }
            _ => self.load_of = Some(value.parse().ok()?),
        }
        Some(())
    }
}

fn batch(text: &str) -> Option<Commit> {
    match text.strip_prefix("bundle") {
        Some("") => Some(Commit::Bundle(BUNDLE_FLOW_MODS)),
        Some(count) => {
            number(count.strip_prefix(':')?, 1.0, 65_000.0).map(|it| Commit::Bundle(it as u32))
        }
        None => number(text, 1.0, 1e6).map(|count| Commit::Barrier(count as u32)),
    }
}

/// Keys of `--set`, what they take, and what they mean.
pub const KEYS: [(&str, &str, &str); 9] = [
    (
        "control_capture",
        "no, stamps or file",
        "of a module's control channels: when messages pass the interface, and a pcapng file too (no)",
    ),
    (
        "flows",
        "1 to 4000000",
        "flows that a controller adds or asks for, or that are met (by experiment and effort)",
    ),
    (
        "batch",
        "count, bundle or bundle:count[,...]",
        "flow-mods before each barrier, or in each committed bundle (1,1000,bundle:10000)",
    ),
    ("priority", "same, ascending or random", "priorities of added flows (same)"),
    ("openflow", "1.0 to 1.5", "version that the controller speaks (1.4)"),
    (
        "ahead",
        "1 to 64",
        "batches sent before the first of them is answered (1; 8 of many flow-mods)",
    ),
    (
        "beside",
        "percent",
        "traffic beside flow-mods or a dump, of the target's own maximum (none for rates; 80)",
    ),
    ("flow_mods_per_s", "1 to 1e8", "flow-mods that arrive in a second beside traffic (100000)"),
    ("load_of", "a target", "whose maximum the loads of latency are shares of (each its own)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_what_is_wrong_changes_nothing() {
        let mut control = Control::new(1.0);
        let right = [
            ("flows", "1000"),
            ("batch", "1,500,bundle,bundle:20"),
            ("priority", "ascending"),
            ("openflow", "1.0"),
            ("ahead", "3"),
            ("beside", "80"),
            ("flow_mods_per_s", "5000"),
            ("load_of", "ovs-dpdk"),
        ];
        for (key, value) in right {
            let before = control.clone();
            assert_eq!(control.set(key, value), Some(Ok(())), "{key}");
            assert_ne!(control, before, "{key}");
            let before = control.clone();
            assert!(control.set(key, "-x").unwrap().is_err(), "{key}");
            assert_eq!(control, before, "{key}");
        }
        let batches = [
            Commit::Barrier(1),
            Commit::Barrier(500),
            Commit::Bundle(BUNDLE_FLOW_MODS),
            Commit::Bundle(20),
        ];
        assert_eq!(control.batches, batches);
        assert_eq!(control.set("seconds", "1"), None);
    }
}
