//! What a run can be told with `--set KEY=VALUE`: names, ranges, units and defaults.
//!
//! One value, read once; a wrong key or value names what would have been right. Sizes count the
//! frame check sequence, as the standards do: 64 is 60 bytes in memory.

/// What controllers do.
pub mod control;
/// A device of the user's own.
pub mod device;
/// What a search with several goals is to find.
pub mod goals;
/// Standard methods.
pub mod methods;
/// An SNMP agent that is asked beside a measurement.
pub mod witness;
/// Those that an experiment declares itself.
pub mod own;

use std::borrow::Cow;
use std::fmt;

use control::Control;
use device::Device;
use goals::Goals;
use instrument::stream::Stream;
use methods::Methods;
use own::{Declared, Own};
use witness::Witness;

use crate::nearest;

/// How long and how often is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Five short repeats: a first look, minutes for six targets.
    Quick,
    /// Five repeats of two seconds.
    Standard,
    /// As bianco2010 did: three runs of 60 seconds each.
    Full,
}

impl Effort {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Standard => "standard",
            Effort::Full => "full",
        }
    }

    /// Seconds of a trial, and how often each is repeated.
    pub fn seconds_and_repeats(self) -> (f64, u32) {
        match self {
            Effort::Quick => (0.2, 5),
            Effort::Standard => (2.0, 5),
            Effort::Full => (60.0, 3),
        }
    }
}

/// What a target's table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// One entry that matches the port alone.
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
    /// Rules by which frames get VLAN tags (tagging; OpenFlow by push_vlan).
    Tags,
    /// One entry that matches both Ethernet addresses of the one flow; this and the next two are not to be asked for.
    Macs,
    /// One entry that matches its IP addresses.
    Hosts,
    /// One entry that matches its IP addresses, its protocol and its ports.
    Datagrams,
    /// Networks that an OpenFlow switch routes to as a router does, both hardware addresses and the time to live set; not
    /// to be asked for.
    Routed,
    /// The station behind each port; not to be asked for, since it comes with traffic of its own.
    Mesh,
    /// Nothing; not to be asked for either.
    Empty,
}

/// In which order the entries are hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// One flow.
    One,
    /// Every entry in turn.
    Sequential,
    /// Entries drawn uniformly.
    Random,
    /// Entries drawn by Zipf's law: few of them often, most of them seldom.
    Zipf,
}

/// What an access list is like (OpenFlow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// An access list of a router: long prefixes on both sides.
    Acl,
    /// A firewall: one side is often open, and ports are ranges.
    Fw,
    /// A chain of a host's packet filter: some of both.
    Ipc,
}

/// Which fields wildcard entries name; frames vary in the others (OpenFlow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Both UDP ports; nothing else varies.
    Ports,
    /// The IP destination; the UDP source port varies over all its values.
    Addresses,
    /// One of the two UDP ports, by turns; the other varies over all its values.
    Either,
}

/// The nominal link's capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Capacity {
    /// This many bit/s.
    BitsPerSecond(f64),
    /// The lowest that overloads every target at 64 bytes.
    Auto,
}

/// Everything that `--set` can change.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Capacity of the nominal link between tester and target, bit/s.
    pub capacity: Capacity,
    /// Frame sizes in bytes, FCS included; empty for the experiment's own.
    pub frames: Vec<u16>,
    /// Loads in percent of the nominal link; empty for the experiment's own.
    pub loads: Vec<f64>,
    /// Seconds of a trial.
    pub seconds: f64,
    /// Seconds of traffic before a trial that are not counted.
    pub warmup_s: f64,
    /// How often each trial is repeated.
    pub repeats: u32,
    /// Whether targets take turns backwards in every second round (A B B A), so that what a machine drifts by
    /// does as much for the one as for the other.
    pub alternating: bool,
    /// What the table holds; `None` for the experiment's own.
    pub table: Option<Table>,
    /// Entries in the table.
    pub entries: u32,
    /// In which order they are hit.
    pub traffic: Option<Traffic>,
    /// Which fields wildcard entries name.
    pub rules: Rules,
    /// What an access list is like.
    pub style: Style,
    /// Seconds that filling a target's caches before a trial may take.
    pub warm_s: f64,
    /// Loss ratio that counts as none, for a throughput search.
    pub loss: f64,
    /// Resolution of a throughput search, as a share of the load.
    pub resolution: f64,
    /// How often a throughput search tries a load again that missed its goal, before it believes it.
    pub verify: u32,
    /// Whether the run happens in virtual time (link `memory` only).
    pub simulated: bool,
    /// In virtual time: nanoseconds that a target takes for each frame.
    pub service_ns: u64,
    /// In virtual time: nanoseconds for which the tester stands still in every other trial.
    pub stall_ns: u64,
    /// Streams of a file, which take the place of the experiment's own; empty for those.
    pub streams: Vec<Stream>,
    /// Frames that the ring of a link in memory holds.
    pub ring_frames: u32,
    /// How many flow-table entries our exact table holds.
    pub exact_entries_max: u32,
    /// Connections of controllers that our switch takes; 0 for its own default.
    pub connections_max: u32,
    /// How many entries our linear table holds.
    pub wildcard_entries_max: u32,
    /// What controllers do.
    pub control: Control,
    /// What a search with several goals is to find.
    pub goals: Goals,
    /// What standard methods can be told.
    pub methods: Methods,
    /// An SNMP agent that is asked beside.
    pub witness: Witness,
    /// How a device of the user's own is treated.
    pub device: Device,
    /// How many addresses our bridge holds.
    pub macs_max: u32,
    /// How many routes our router holds in one process with the tester.
    pub routes_max: u32,
    /// What experiments declare themselves.
    pub own: Own,
}

impl Parameters {
    /// The defaults at an effort.
    pub fn at(effort: Effort) -> Self {
        let (seconds, repeats) = effort.seconds_and_repeats();
        Parameters {
            capacity: Capacity::BitsPerSecond(1e9),
            frames: Vec::new(),
            loads: Vec::new(),
            seconds,
            warmup_s: (seconds / 5.0).min(2.0),
            repeats,
            alternating: false,
            table: None,
            entries: 1,
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
            control: Control::new(if effort == Effort::Quick { 0.1 } else { 1.0 }),
            goals: Goals::at(effort),
            methods: Methods::at(effort),
            witness: Witness::default(),
            device: Device::default(),
            macs_max: 262_144,
            routes_max: 1 << 20,
            own: Own::default(),
        }
    }

    /// Applies one `KEY=VALUE`, which may be one of those that the experiments at hand declare.
    pub fn set_declared(
        &mut self,
        assignment: &str,
        declared: &[Declared],
    ) -> Result<(), ParameterError> {
        let (key, value) = parted(assignment)?;
        let Some(found) = declared.iter().find(|declared| declared.key == key) else {
            return self.set(assignment);
        };
        self.own.set(found, value).ok_or_else(|| {
            let expected = found.takes.words(found.unit).into();
            ParameterError::BadValue { key: key.into(), value: value.into(), expected }
        })
    }

    /// Applies one `KEY=VALUE`.
    pub fn set(&mut self, assignment: &str) -> Result<(), ParameterError> {
        let (key, value) = parted(assignment)?;
        let bad = |expected: &'static str| {
            let expected = expected.into();
            ParameterError::BadValue { key: key.into(), value: value.into(), expected }
        };
        match key {
            "capacity" => self.capacity = capacity(value).ok_or_else(|| bad(CAPACITY))?,
            "frame" => {
                self.frames = list(value, |text| {
                    text.parse().ok().filter(|bytes| (64..=1518).contains(bytes))
                })
                .ok_or_else(|| bad("frame sizes from 64 to 1518 bytes, FCS included, by commas"))?;
            }
            "load" => {
                self.loads = list(value, |text| number(text, 0.001, 1000.0))
                    .ok_or_else(|| bad("percentages of the link, 0.001 to 1000, by commas"))?;
            }
            "seconds" => {
                self.seconds = number(value, 0.01, 3600.0).ok_or_else(|| bad("0.01 to 3600"))?;
            }
            "warmup" => {
                self.warmup_s = number(value, 0.0, 600.0).ok_or_else(|| bad("0 to 600 seconds"))?;
            }
            "repeats" => {
                self.repeats = number(value, 1.0, 1000.0).ok_or_else(|| bad("1 to 1000"))? as u32;
            }
            "turns" => {
                self.alternating = match value {
                    "alternating" => true,
                    "even" => false,
                    _ => return Err(bad(TURNS)),
                };
            }
            "table" => self.table = Some(table(value).ok_or_else(|| bad(TABLES))?),
            "entries" => {
                self.entries =
                    number(value, 1.0, 1_048_576.0).ok_or_else(|| bad("1 to 1048576"))? as u32;
            }
            "traffic" => self.traffic = Some(traffic(value).ok_or_else(|| bad(TRAFFIC))?),
            "style" => self.style = style(value).ok_or_else(|| bad(STYLES))?,
            "rules" => self.rules = rules(value).ok_or_else(|| bad(RULES))?,
            "warm" => {
                self.warm_s = number(value, 0.0, 3600.0).ok_or_else(|| bad("0 to 3600 seconds"))?;
            }
            "loss" => {
                self.loss = number(value, 0.0, 0.5).ok_or_else(|| bad("a ratio, 0 to 0.5"))?
            }
            "resolution" => {
                self.resolution =
                    number(value, 0.0005, 0.5).ok_or_else(|| bad("a ratio, 0.0005 to 0.5"))?;
            }
            "verify" => {
                self.verify = number(value, 0.0, 10.0).ok_or_else(|| bad(VERIFY))? as u32;
            }
            "rig" => {
                self.simulated = match value {
                    "sim" => true,
                    "live" => false,
                    _ => return Err(bad("live or sim")),
                };
            }
            "service_ns" => {
                self.service_ns = number(value, 0.0, 1e9).ok_or_else(|| bad("0 to 1e9 ns"))? as u64;
            }
            "stall_ns" => {
                self.stall_ns = number(value, 0.0, 1e9).ok_or_else(|| bad("0 to 1e9 ns"))? as u64;
            }
            "ring_frames" => {
                self.ring_frames =
                    number(value, 64.0, 65_536.0).ok_or_else(|| bad("64 to 65536"))? as u32;
            }
            "exact_entries_max" => {
                self.exact_entries_max =
                    number(value, 1.0, 4e6).ok_or_else(|| bad("1 to 4000000"))? as u32;
            }
            "wildcard_entries_max" => {
                self.wildcard_entries_max =
                    number(value, 1.0, 1e6).ok_or_else(|| bad("1 to 1000000"))? as u32;
            }
            "macs_max" => {
                self.macs_max = number(value, 2.0, 4e6).ok_or_else(|| bad("2 to 4000000"))? as u32;
            }
            "routes_max" => {
                self.routes_max =
                    number(value, 3.0, 4e6).ok_or_else(|| bad("3 to 4000000"))? as u32;
            }
            // A file: whoever may read files has read it and set `streams`.
            STREAM => {}
            _ => {
                let others = self.control.set(key, value);
                let others = others.or_else(|| self.goals.set(key, value));
                let others = others.or_else(|| self.witness.set(key, value));
                let others = others.or_else(|| self.device.set(key, value));
                match others.or_else(|| self.methods.set(key, value)) {
                    Some(outcome) => outcome.map_err(bad)?,
                    None => return Err(ParameterError::UnknownKey(key.into())),
                }
            }
        }
        Ok(())
    }
}

/// The key whose value is a stream file.
pub const STREAM: &str = "stream";

/// Keys of `--set`, what they take, and what they mean; those of [`control::KEYS`], [`goals::KEYS`],
/// [`methods::KEYS`], [`witness::KEYS`] and [`device::KEYS`] come to these.
pub const KEYS: &[(&str, &str, &str)] = &[
    (
        "capacity",
        CAPACITY,
        "capacity of the nominal link between tester and target (1G; 10G for workloads over memory)",
    ),
    ("frame", "bytes[,bytes...]", "frame sizes, frame check sequence included"),
    ("load", "percent[,percent...]", "offered loads, in percent of the nominal link"),
    ("seconds", "0.01 to 3600", "length of a trial (by effort)"),
    ("warmup", "0 to 600", "seconds of uncounted traffic before a trial (by effort)"),
    ("repeats", "1 to 1000", "how often each trial is repeated (by effort)"),
    (
        "turns",
        TURNS,
        "whether targets take turns in one order (A B A B), or backwards in every second round (A B B A) (even)",
    ),
    ("table", TABLES, "what the target's table holds"),
    ("entries", "1 to 1048576", "how many entries, or rules of an access list, it holds (1)"),
    ("traffic", TRAFFIC, "in which order the entries are hit"),
    (
        "rules",
        RULES,
        "which fields wildcard entries name: both UDP ports, the IP destination (then the UDP source \
         port varies), or one UDP port by turns (then the other varies)",
    ),
    (
        "style",
        STYLES,
        "what an access list (table=acl) is like: a router's, a firewall's, a host's (acl)",
    ),
    ("warm", "0 to 3600", "seconds that filling a target's caches before a trial may take (180)"),
    ("loss", "ratio", "second loss goal of a throughput search beside 0 (0.005)"),
    ("resolution", "ratio", "resolution of a throughput search (0.02)"),
    (
        "verify",
        VERIFY,
        "how often a throughput search tries a load again that missed its goal: loss verification (0)",
    ),
    (STREAM, "FILE.toml", "streams that take the place of forwarding-rate's own"),
    ("rig", "live or sim", "real time, or virtual time over memory (live)"),
    ("service_ns", "ns", "in virtual time: what a target needs for each frame (0)"),
    (
        "stall_ns",
        "ns",
        "in virtual time: for how long the tester stands still in every other trial (0)",
    ),
    ("ring_frames", "64 to 65536", "over memory: frames that the ring of a link holds (1024)"),
    ("exact_entries_max", "entries", "size of our exact-match table (131072)"),
    ("wildcard_entries_max", "entries", "size of our linear table (100)"),
    ("macs_max", "entries", "size of our bridge's address table (262144)"),
    ("routes_max", "entries", "over memory: size of our router's table (1048576)"),
];

const CAPACITY: &str = "bit/s such as 1G or 100M, or auto";
const TURNS: &str = "even or alternating";
const VERIFY: &str = "0 to 10 times";
const TABLES: &str = "port, one, exact, wildcard, chain, lpm, mac, learned, acl or tags";
const RULES: &str = "ports, addresses or either";
const TRAFFIC: &str = "one, sequential, random or zipf";
const STYLES: &str = "acl, fw or ipc";

/// Why a `--set` was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterError {
    /// Not of the form KEY=VALUE.
    NotAnAssignment(String),
    /// No parameter has this name.
    UnknownKey(String),
    /// The value does not fit the parameter.
    BadValue {
        /// The parameter.
        key: String,
        /// The value that was given.
        value: String,
        /// What it takes.
        expected: Cow<'static, str>,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::NotAnAssignment(text) => {
                write!(f, "--set {text}: write KEY=VALUE, such as --set seconds=2")
            }
            ParameterError::UnknownKey(key) => {
                write!(f, "--set {key}=...: there is no such parameter; ")?;
                match nearest::asked(key, keys()) {
                    Some(asked) => write!(f, "{asked}"),
                    None => write!(
                        f,
                        "`planimeter list parameters` shows what there is, `planimeter list experiments` what an \
                         experiment takes beside"
                    ),
                }
            }
            ParameterError::BadValue { key, value, expected } => {
                write!(f, "--set {key}={value}: takes {expected}")
            }
        }
    }
}

impl std::error::Error for ParameterError {}

/// The keys that any experiment may be told.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let several = KEYS.iter().chain(&control::KEYS).chain(&goals::KEYS).chain(&methods::KEYS);
    several.chain(&witness::KEYS).chain(&device::KEYS).map(|(key, ..)| *key)
}

/// Key and value.
fn parted(assignment: &str) -> Result<(&str, &str), ParameterError> {
    let wrong = || ParameterError::NotAnAssignment(assignment.into());
    assignment.split_once('=').ok_or_else(wrong)
}

fn number(text: &str, least: f64, most: f64) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| (least..=most).contains(value))
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
    number(digits, 0.0, 1e12)
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
    fn values_are_read_with_their_units() {
        let mut parameters = Parameters::at(Effort::Quick);
        parameters.set("capacity=250M").unwrap();
        parameters.set("frame=64,1500").unwrap();
        assert_eq!(parameters.capacity, Capacity::BitsPerSecond(250e6));
        assert_eq!(parameters.frames, [64, 1500]);
    }

    #[test]
    fn a_wrong_value_says_what_would_be_right() {
        let mut parameters = Parameters::at(Effort::Quick);
        let before = parameters.clone();
        for wrong in ["frame=63", "capacity=-1G", "seconds=nan", "sconds=1", "table", "load=,"] {
            let said = parameters.set(wrong).unwrap_err().to_string();
            assert!(said.contains("--set"), "{said}");
        }
        assert_eq!(parameters, before);
    }
}
