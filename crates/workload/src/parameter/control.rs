//! Parameters of controller operations during a measurement.
//!
//! They have a separate module because no other experiments use them; parsing is the same.

use openflow::version::Version;
use tester::controller::script::{AHEAD_MAX, Commit};

use super::declaration::{Parameter, ValueType};
use super::{list, number};

/// Default number of flow-mods in a bundle.
const BUNDLE_FLOW_MODS: u32 = 10_000;

/// Order of the priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priorities {
    /// All equal.
    Same,
    /// Rising by one.
    Ascending,
    /// Random.
    Random,
}

/// Controller operations.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// Commit points: when the controller waits for a reply.
    pub batches: Vec<Commit>,
    /// Priorities of added flows.
    pub priorities: Priorities,
    /// OpenFlow version.
    pub version: Version,
    /// Batches sent before the reply to the first one; the default depends on their size.
    pub ahead: Option<usize>,
    /// Background traffic, in percent of the target's own maximum; `None` for the experiment's
    /// default.
    pub traffic_percent: Option<f64>,
    /// Flow-mods per second during traffic.
    pub flow_mods_per_s: f64,
    /// Target whose maximum is the base of the loads; `None` for each target's own.
    pub load_of: Option<String>,
    /// Capture mode of a module's control channels.
    pub capture: Capture,
}

/// Capture mode of control channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// Nothing.
    No,
    /// Timestamps of messages.
    Stamps,
    /// Timestamps, and a capture file of all packets for each trial.
    File,
}

impl Default for Control {
    fn default() -> Control {
        Control {
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
}

impl Control {
    /// Applies a value that its declaration allows; `None` if the value is invalid or the parameter
    /// is not one of these.
    pub(super) fn assign(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
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
                self.version = *Version::SUPPORTED.iter().find(named)?;
            }
            "batches_in_flight" => self.ahead = Some(number(value)? as usize),
            "background_load_percent" => self.traffic_percent = Some(number(value)?),
            "flow_mods_per_s" => self.flow_mods_per_s = number(value)?,
            "control_capture" => {
                self.capture = match value {
                    "off" => Capture::No,
                    "timestamps" => Capture::Stamps,
                    "pcap" => Capture::File,
                    _ => return None,
                }
            }
            "load_reference" => self.load_of = Some(value.into()),
            _ => return None,
        }
        Some(())
    }
}

fn batch(text: &str) -> Option<Commit> {
    match text.strip_prefix("bundle") {
        Some("") => Some(Commit::Bundle(BUNDLE_FLOW_MODS)),
        Some(count) => {
            let count = count.strip_prefix(':')?.parse().ok()?;
            (1..=65_000).contains(&count).then_some(Commit::Bundle(count))
        }
        None => {
            let count = text.parse().ok()?;
            (1..=1_000_000).contains(&count).then_some(Commit::Barrier(count))
        }
    }
}

/// Capture mode of a module's control channels.
pub const CAPTURE: Parameter = Parameter {
    key: "control_capture",
    takes: ValueType::Word(&["off", "timestamps", "pcap"]),
    default: "off",
    unit: "",
    help: "capture of a module's control channels: time stamps of messages at the interface \
           (timestamps), also all packets as a pcapng file (pcap)",
};

/// Number of flows that a controller adds or requests; each experiment has its own default.
pub const FLOWS: Parameter = Parameter {
    key: "flows",
    takes: ValueType::Integer(1, 4_000_000),
    default: "quick 10000; 100000",
    unit: "",
    help: "number of flows that a controller adds or requests, or that the traffic has",
};

/// Flow-mods before each barrier request, or in each bundle: an axis.
pub const BATCH: Parameter = Parameter {
    key: "batch",
    takes: ValueType::Text("COUNT, bundle or bundle:COUNT, comma-separated"),
    default: "1,1000,bundle:10000",
    unit: "",
    help: "flow-mods before each barrier request, or in each committed bundle",
};

/// Priorities of added flows.
pub const PRIORITY: Parameter = Parameter {
    key: "priority",
    takes: ValueType::Word(&["same", "ascending", "random"]),
    default: "same",
    unit: "",
    help: "priorities of added flows",
};

/// OpenFlow version.
pub const OPENFLOW: Parameter = Parameter {
    key: "openflow",
    takes: ValueType::Word(&["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]),
    default: "1.4",
    unit: "",
    help: "OpenFlow version of the controller",
};

/// Number of outstanding batches.
pub const AHEAD: Parameter = Parameter {
    key: "batches_in_flight",
    takes: ValueType::Integer(1, AHEAD_MAX as u64),
    default: "1",
    unit: "batches",
    help: "maximum number of batches without a reply; 8 by default for batches of 100 flow-mods or \
           more",
};

/// Traffic during flow-mods or a dump.
pub const BESIDE: Parameter = Parameter {
    key: "background_load_percent",
    takes: ValueType::Number(0.1, 100.0),
    default: "80",
    unit: "%",
    help: "traffic during flow-mods or a dump, in percent of the target's own maximum; none by \
           default for rates",
};

/// Flow-mods during traffic.
pub const FLOW_MODS: Parameter = Parameter {
    key: "flow_mods_per_s",
    takes: ValueType::Number(1.0, 1e8),
    default: "100000",
    unit: "per second",
    help: "flow-mod rate during traffic",
};

/// Target whose maximum is the base of the loads.
pub const LOAD_OF: Parameter = Parameter {
    key: "load_reference",
    takes: ValueType::Text("a target"),
    default: "",
    unit: "",
    help: "target whose maximum is the base of relative loads; each target's own by default",
};

/// All parameters of this module.
pub const ALL: &[Parameter] =
    &[CAPTURE, FLOWS, BATCH, PRIORITY, OPENFLOW, AHEAD, BESIDE, FLOW_MODS, LOAD_OF];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_parsed_and_invalid_values_change_nothing() {
        let mut control = Control::default();
        let right = [
            ("batch", "1,500,bundle,bundle:20"),
            ("priority", "ascending"),
            ("openflow", "1.0"),
            ("batches_in_flight", "3"),
            ("background_load_percent", "80"),
            ("flow_mods_per_s", "5000"),
        ];
        for (key, value) in right {
            let before = control.clone();
            assert_eq!(control.assign(key, value), Some(()), "{key}");
            assert_ne!(control, before, "{key}");
            if key == LOAD_OF.key {
                // The run checks names of targets.
                continue;
            }
            let before = control.clone();
            assert_eq!(control.assign(key, "-x"), None, "{key}");
            assert_eq!(control, before, "{key}");
        }
        assert_eq!(control.assign("load_reference", "ovs-dpdk"), Some(()));
        assert_eq!(control.load_of.as_deref(), Some("ovs-dpdk"));
        let batches = [
            Commit::Barrier(1),
            Commit::Barrier(500),
            Commit::Bundle(BUNDLE_FLOW_MODS),
            Commit::Bundle(20),
        ];
        assert_eq!(control.batches, batches);
        assert_eq!(control.assign("seconds", "1"), None);
        for wrong in ["0", "bundle:0", "bundle:65001", "1000001", "1,", ""] {
            assert_eq!(control.assign("batch", wrong), None, "{wrong}");
        }
    }
}
