//! Parameters of a run (`--set KEY=VALUE`): names, ranges, units and defaults.
//!
//! Each assignment is parsed once; the error for an invalid key or value names the valid ones.
//! Sizes include the frame check sequence, as in the standards: 64 is 60 bytes in memory.

pub mod control;
pub mod device;
pub mod goals;
pub mod methods;
pub mod snmp;
pub mod declaration;
pub mod shared;

use std::fmt;

use control::Control;
use declaration::{Parameter, ParameterValues};
use device::Device;
use goals::Goals;
use methods::Methods;
use shared::STREAM;
use snmp::SnmpAgent;
use tester::stream::Stream;

/// Measurement effort: number and duration of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Five short repeats: a first look, minutes for six targets.
    Quick,
    /// Five repeats of two seconds.
    Standard,
    /// Three runs of 60 seconds each, as in bianco2010.
    Full,
}

impl Effort {
    /// All efforts, the shortest first.
    pub const ALL: [Effort; 3] = [Effort::Quick, Effort::Standard, Effort::Full];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Standard => "standard",
            Effort::Full => "full",
        }
    }

    /// Returns the seconds of a trial, and the number of repeats.
    pub fn seconds_and_repeats(self) -> (f64, u32) {
        match self {
            Effort::Quick => (0.2, 5),
            Effort::Standard => (2.0, 5),
            Effort::Full => (60.0, 3),
        }
    }
}

/// Contents of a target's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// One entry that matches only the port.
    Port,
    /// One entry that matches the one flow (exactly; one address; one route).
    One,
    /// Exact-match entries (OpenFlow).
    Exact,
    /// Wildcard entries in the linear table (OpenFlow).
    Wildcard,
    /// Exact and wildcard entries, half the traffic each (OpenFlow).
    Chain,
    /// Prefixes of all lengths (routing; OpenFlow by destination address).
    Lpm,
    /// Addresses (bridging; OpenFlow by destination address).
    Mac,
    /// Addresses that the target learned from frames (bridging; OpenFlow by the action NORMAL).
    Learned,
    /// An access list (OpenFlow).
    Acl,
    /// Entries that push VLAN tags (tagging; OpenFlow by push_vlan).
    Tags,
    /// One entry that matches both MAC addresses of the one flow; users cannot select this and the
    /// next two.
    Macs,
    /// One entry that matches the flow's IP addresses.
    Hosts,
    /// One entry that matches the flow's IP addresses, protocol and ports.
    Datagrams,
    /// Networks to which an OpenFlow switch routes like a router: it sets both MAC addresses and
    /// the TTL. Users cannot select this.
    Routed,
    /// Station behind each port; users cannot select this, because it requires specific traffic.
    Mesh,
    /// No entries; users cannot select this.
    Empty,
}

/// Order in which the entries are hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// One flow.
    One,
    /// Every entry in turn.
    Sequential,
    /// Entries drawn uniformly.
    Random,
    /// Entries drawn by Zipf's law: a few often, most rarely.
    Zipf,
}

/// Style of an access list (OpenFlow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// An access list of a router: long prefixes on both sides.
    Acl,
    /// A firewall: one side is often open, and ports are ranges.
    Fw,
    /// Packet filter chain of a host: a mixture of both.
    Ipc,
}

/// Fields that wildcard entries match; frames vary in the others (OpenFlow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Both UDP ports; nothing else varies.
    Ports,
    /// The IP destination; the UDP source port varies over all its values.
    Addresses,
    /// One of the two UDP ports, alternately; the other varies over all its values.
    Either,
}

/// The nominal link's capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// This many bit/s.
    BitsPerSecond(f64),
    /// Lowest capacity that overloads every target at 64 bytes.
    Auto,
}

/// All parameters that `--set` can change.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Capacity of the nominal link between tester and target, bit/s.
    pub capacity: Capacity,
    /// Seconds of a trial.
    pub seconds: f64,
    /// Seconds of traffic before a trial, which are not counted.
    pub warmup_s: f64,
    /// Number of repeats of each trial.
    pub repeats: u32,
    /// Whether targets alternate backwards in every second round (A B B A), so that drift of the
    /// machine affects all alike.
    pub alternating: bool,
    /// Table contents; `None` for the experiment's own.
    pub table: Option<Table>,
    /// Entries in the table.
    pub entries: u32,
    /// Highest number of table entries set for any experiment.
    pub entries_most: u32,
    /// Order in which they are hit.
    pub traffic: Option<Traffic>,
    /// Fields that wildcard entries match.
    pub rules: Rules,
    /// Style of an access list.
    pub style: Style,
    /// Maximum seconds for filling a target's caches before a trial.
    pub warm_s: f64,
    /// Loss ratio that counts as no loss in a throughput search.
    pub loss: f64,
    /// Resolution of a throughput search, as a share of the load.
    pub resolution: f64,
    /// Number of retries of a load that failed, in a throughput search.
    pub verify: u32,
    /// Whether the run happens in virtual time (link `memory` only).
    pub simulated: bool,
    /// In virtual time: processing time of a target per frame, in nanoseconds.
    pub service_ns: u64,
    /// In virtual time: nanoseconds for which the tester stalls in every second trial.
    pub stall_ns: u64,
    /// Streams from a file, which replace the experiment's own; empty for its own.
    pub streams: Vec<Stream>,
    /// Ring size of a link in memory, in frames.
    pub ring_frames: u32,
    /// Maximum number of entries in the exact-match table of Planimeter's own switch.
    pub exact_entries_max: u32,
    /// Maximum number of controller connections of Planimeter's own switch; 0 for its default.
    pub connections_max: u32,
    /// Maximum number of entries in the linear table of Planimeter's own switch.
    pub wildcard_entries_max: u32,
    /// Controller operations.
    pub control: Control,
    /// Goals of a search with several goals.
    pub goals: Goals,
    /// Parameters of standard methods.
    pub methods: Methods,
    /// SNMP agent to query.
    pub witness: SnmpAgent,
    /// Treatment of a user-provided device.
    pub device: Device,
    /// Maximum number of addresses of Planimeter's own bridge.
    pub macs_max: u32,
    /// Maximum number of routes of Planimeter's own router in one process with the tester.
    pub routes_max: u32,
    /// Parameters that experiments declare themselves.
    pub own: ParameterValues,
    /// Effort that determines the defaults.
    pub effort: Effort,
    /// Assignments of shared parameters, in order.
    pub given: Vec<(&'static str, String)>,
}

impl Parameters {
    /// Returns the defaults for an effort.
    pub fn at(effort: Effort) -> Self {
        let (seconds, repeats) = effort.seconds_and_repeats();
        Parameters {
            capacity: Capacity::BitsPerSecond(1e9),
            seconds,
            warmup_s: (seconds / 5.0).min(2.0),
            repeats,
            alternating: false,
            table: None,
            entries: 1,
            entries_most: 1,
            traffic: None,
            rules: Rules::Ports,
            style: Style::Acl,
            warm_s: 180.0,
            loss: 0.005,
            resolution: 0.02,
            verify: 0,
            simulated: false,
            service_ns: 0,
            stall_ns: 0,
            streams: Vec::new(),
            ring_frames: 1024,
            exact_entries_max: 131_072,
            connections_max: 0,
            wildcard_entries_max: 100,
            control: Control::default(),
            goals: Goals::at(effort),
            methods: Methods::at(effort),
            witness: SnmpAgent::default(),
            device: Device::default(),
            macs_max: 262_144,
            routes_max: 1 << 20,
            own: ParameterValues::at(effort),
            effort,
            given: Vec::new(),
        }
    }

    /// Returns the sizes of the exact-match and the linear table of Planimeter's own switch, at
    /// least those of the entries to install.
    pub fn table_sizes(&self) -> [u32; 2] {
        let wildcards = match self.table {
            Some(Table::Wildcard | Table::Lpm | Table::Mac) => self.entries_most,
            Some(Table::Acl) => {
                let rules = crate::access_list(self.style, self.entries_most);
                rules.iter().map(|rule| rule.entries() as u32).sum()
            }
            _ => 0,
        };
        let exact = self.exact_entries_max.max(self.entries_most);
        [exact, self.wildcard_entries_max.max(wildcards)]
    }

    /// Applies one `KEY=VALUE` of the run or of shared parameters.
    pub fn set(&mut self, assignment: &str) -> Result<(), ParameterError> {
        let (key, value) = parted(assignment)?;
        let declared = shared::all().find(|declared| declared.key == key);
        let declared = declared.ok_or_else(|| ParameterError::UnknownKey {
            key: key.into(),
            hint: "run 'planimeter list parameters'".into(),
        })?;
        self.assign(declared, value)
    }

    /// Applies a value of a shared parameter.
    pub fn assign(&mut self, declared: &Parameter, value: &str) -> Result<(), ParameterError> {
        let value = value.trim();
        declared.check(value)?;
        let key = declared.key;
        self.read(key, value).ok_or_else(|| declared.refused(value))?;
        self.given.push((key, value.into()));
        Ok(())
    }

    /// Applies a value of a parameter that an experiment declares itself.
    pub fn assign_own(&mut self, declared: &Parameter, value: &str) -> Result<(), ParameterError> {
        declared.check(value)?;
        self.own.set(declared, value).ok_or_else(|| declared.refused(value))?;
        if declared.key == shared::ENTRIES_KEY {
            let sizes = value.split(',').filter_map(number).map(|it| it as u32);
            self.entries_most = sizes.fold(self.entries_most, u32::max);
        }
        Ok(())
    }

    /// Returns the repeats of a whole search: as set, or the default.
    pub fn repeats_of_searches(&self) -> u32 {
        match self.given.iter().any(|(key, _)| *key == shared::REPEATS.key) {
            true => self.repeats,
            false => self.searches_by_default(),
        }
    }

    /// Returns the default repeats of a whole search.
    pub fn searches_by_default(&self) -> u32 {
        let default = shared::REPEATS_OF_SEARCHES.default_at(self.effort);
        default.parse().expect("the default is a whole number")
    }

    /// Returns the parameters for an experiment that takes these keys; other assignments do not
    /// affect it.
    #[must_use]
    pub fn of(&self, taken: &[&'static str], own: Vec<&'static str>) -> Parameters {
        let plain = Parameters::at(self.effort);
        let takes = |key: &str| taken.contains(&key);
        let mut its = Parameters {
            table: plain.table,
            entries: plain.entries,
            traffic: plain.traffic,
            rules: plain.rules,
            style: plain.style,
            loss: plain.loss,
            resolution: plain.resolution,
            verify: plain.verify,
            streams: if takes(STREAM) { self.streams.clone() } else { Vec::new() },
            control: Control { capture: self.control.capture, ..plain.control },
            goals: plain.goals,
            methods: plain.methods,
            own: self.own.only(own),
            ..self.clone()
        };
        if !takes(shared::SECONDS.key) {
            its.seconds = plain.seconds;
        }
        if !takes(shared::WARMUP.key) {
            its.warmup_s = plain.warmup_s;
        }
        // The command line may have changed these afterwards.
        let is_of_run =
            |key: &str| shared::TRIALS.iter().chain(shared::always()).any(|it| it.key == key);
        for (key, value) in self.given.iter().filter(|(key, _)| takes(key) && !is_of_run(key)) {
            its.read(key, value).expect("a value was checked when it was set");
        }
        its
    }

    fn read(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "capacity" => self.capacity = capacity(value)?,
            "seconds" => self.seconds = number(value)?,
            "warmup" => self.warmup_s = number(value)?,
            "repeats" => self.repeats = number(value)? as u32,
            "interleaving" => self.alternating = value == "abba",
            "table" => self.table = Some(table(value)?),
            "entries" => {
                self.entries = number(value)? as u32;
                self.entries_most = self.entries_most.max(self.entries);
            }
            "traffic" => self.traffic = Some(traffic(value)?),
            "style" => self.style = style(value)?,
            "rules" => self.rules = rules(value)?,
            "cache_fill_timeout_s" => self.warm_s = number(value)?,
            "loss" => self.loss = number(value)?,
            "resolution" => self.resolution = number(value)?,
            "loss_verification" => self.verify = number(value)? as u32,
            "simulate" => self.simulated = value == "true",
            "sim_service_time_ns" => self.service_ns = number(value)? as u64,
            "sim_tester_pause_ns" => self.stall_ns = number(value)? as u64,
            "ring_frames" => self.ring_frames = number(value)? as u32,
            shared::EXACT_ENTRIES_MAX => self.exact_entries_max = number(value)? as u32,
            shared::WILDCARD_ENTRIES_MAX => self.wildcard_entries_max = number(value)? as u32,
            "mac_table_size" => self.macs_max = number(value)? as u32,
            "routes_max" => self.routes_max = number(value)? as u32,
            // The command line has read the file and set `streams`.
            STREAM => {}
            _ => {
                let others = self.control.assign(key, value);
                let others = others.or_else(|| self.goals.assign(key, value));
                let others = others.or_else(|| self.witness.assign(key, value));
                let others = others.or_else(|| self.device.assign(key, value));
                return others.or_else(|| self.methods.assign(key, value));
            }
        }
        Some(())
    }
}

impl Parameter {
    /// Checks whether a text is a valid value; the error lists valid values.
    fn check(&self, value: &str) -> Result<(), ParameterError> {
        match self.takes.admits(value.trim()) {
            true => Ok(()),
            false => Err(self.refused(value)),
        }
    }

    /// Returns the error for an invalid value.
    fn refused(&self, value: &str) -> ParameterError {
        let expected = self.takes.words(self.unit);
        ParameterError::BadValue { key: self.key.into(), value: value.into(), expected }
    }
}

/// Error of a `--set` assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterError {
    /// Not of the form KEY=VALUE.
    NotAnAssignment(String),
    /// No parameter has this name.
    UnknownKey {
        /// The name.
        key: String,
        /// Nearest valid parameter.
        hint: String,
    },
    /// None of the selected experiments takes the parameter, but others do.
    NotTaken {
        /// The assignment.
        assignment: String,
        /// The parameter.
        key: String,
        /// The experiments.
        experiments: String,
        /// Nearest valid parameter.
        hint: String,
    },
    /// The experiment takes only one value.
    OneValue {
        /// The assignment.
        assignment: String,
        /// The parameter.
        key: String,
        /// The experiment.
        experiment: String,
    },
    /// The value is invalid for the parameter.
    BadValue {
        /// The parameter.
        key: String,
        /// The value.
        value: String,
        /// Valid values.
        expected: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::NotAnAssignment(text) => {
                write!(
                    f,
                    "--set {text}: invalid assignment (hint: use KEY=VALUE, such as --set \
                     seconds=2)"
                )
            }
            ParameterError::UnknownKey { key, hint } => {
                write!(f, "--set {key}=...: unknown parameter (hint: {hint})")
            }
            ParameterError::NotTaken { assignment, key, experiments, hint } => {
                write!(f, "--set {assignment}: {experiments} does not support {key} (hint: {hint})")
            }
            ParameterError::OneValue { assignment, key, experiment } => {
                write!(
                    f,
                    "--set {assignment}: {experiment} supports one value of {key} (hint: run it \
                     once for each value, as steps of a plan)"
                )
            }
            ParameterError::BadValue { key, value, expected } => {
                write!(f, "--set {key}={value}: invalid value (hint: use {expected})")
            }
        }
    }
}

impl std::error::Error for ParameterError {}

/// Splits an assignment into key and value.
pub fn parted(assignment: &str) -> Result<(&str, &str), ParameterError> {
    let wrong = || ParameterError::NotAnAssignment(assignment.into());
    assignment.split_once('=').ok_or_else(wrong)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|item| read(item.trim())).collect()
}

fn capacity(text: &str) -> Option<Capacity> {
    if text == "auto" {
        return Some(Capacity::Auto);
    }
    let (digits, factor) = match text.strip_suffix(['k', 'K', 'M', 'G']) {
        Some(digits) => (
            digits,
            match text.as_bytes().last() {
                Some(b'G') => 1e9,
                Some(b'M') => 1e6,
                _ => 1e3,
            },
        ),
        None => (text, 1.0),
    };
    number(digits)
        .map(|value| value * factor)
        .filter(|bits| (1e4..=1e12).contains(bits))
        .map(Capacity::BitsPerSecond)
}

fn table(text: &str) -> Option<Table> {
    Some(match text {
        "port" => Table::Port,
        "one" => Table::One,
        "exact" => Table::Exact,
        "wildcard" => Table::Wildcard,
        "chain" => Table::Chain,
        "lpm" => Table::Lpm,
        "mac" => Table::Mac,
        "learned" => Table::Learned,
        "acl" => Table::Acl,
        "tags" => Table::Tags,
        _ => return None,
    })
}

fn rules(text: &str) -> Option<Rules> {
    Some(match text {
        "ports" => Rules::Ports,
        "addresses" => Rules::Addresses,
        "either" => Rules::Either,
        _ => return None,
    })
}

fn style(text: &str) -> Option<Style> {
    Some(match text {
        "acl" => Style::Acl,
        "fw" => Style::Fw,
        "ipc" => Style::Ipc,
        _ => return None,
    })
}

fn traffic(text: &str) -> Option<Traffic> {
    Some(match text {
        "one" => Traffic::One,
        "sequential" => Traffic::Sequential,
        "random" => Traffic::Random,
        "zipf" => Traffic::Zipf,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_with_their_units() {
        let mut parameters = Parameters::at(Effort::Quick);
        parameters.set("capacity=250M").unwrap();
        parameters.set("repeats=7").unwrap();
        assert_eq!(parameters.capacity, Capacity::BitsPerSecond(250e6));
        assert_eq!(parameters.repeats, 7);
    }

    #[test]
    fn an_invalid_value_gives_an_error_with_a_hint() {
        let mut parameters = Parameters::at(Effort::Quick);
        let before = parameters.clone();
        for wrong in ["repeats=1.5", "capacity=-1G", "seconds=nan", "sconds=1", "table", "batch=,"]
        {
            let message = parameters.set(wrong).unwrap_err().to_string();
            assert!(message.contains("--set"), "{message}");
        }
        assert_eq!(parameters, before);
    }

    #[test]
    fn every_shared_parameter_is_parsed_and_its_default_applies() {
        for declared in shared::all() {
            let Parameter { key, takes, .. } = declared;
            assert_eq!(
                shared::all().filter(|it| it.key == *key).count(),
                1,
                "{key} is declared twice"
            );
            for effort in Effort::ALL {
                let default = declared.default_at(effort);
                if default.is_empty() {
                    continue;
                }
                assert!(takes.admits(default), "{key}={default}");
                let is_by_experiment = matches!(*key, "frame" | "load" | "flows");
                let is_derived = matches!(
                    *key,
                    "table" | "traffic" | "batches_in_flight" | "background_load_percent"
                );
                if is_by_experiment || is_derived {
                    continue;
                }
                let plain = Parameters::at(effort);
                let mut set = plain.clone();
                set.assign(declared, default).unwrap();
                set.given.clear();
                assert_eq!(set, plain, "{key}={default} at {}", effort.name());
            }
        }
    }
}
