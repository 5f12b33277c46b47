//! What a process is told before it starts: its ports, what it forwards by, and who controls it.
//!
//! Everything is a value with a default. The command line fills it in from flags, or reads the
//! part that describes the forwarder from a TOML file; `Config::validate` then names every
//! problem at once, each with the key that has to be changed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::str::FromStr;

use packet::frame::PortNo;
use packet::time::Nanos;
use ports::channel::{ChannelError, Url};
use serde::Deserialize;

/// What a router is told: interfaces, routes, neighbours.
pub mod router;
/// What cannot be used in a configuration, and how to mend it.
pub mod problem;

pub use problem::{FileError, Problem};
pub use router::{Mac, Neighbour, Prefix, Route, RouterConfig};

/// Highest number that a port can have: OpenFlow 1.0 reserves those from 0xff00 on.
pub const PORT_NUMBER_MAX: PortNo = 0xfeff;
/// Most ports of one process.
pub const PORTS_MAX: usize = 256;
/// Most controllers and listeners of one switch, each.
pub const CONTROLLERS_MAX: usize = 16;
/// Most entries that one table may be configured for.
pub const FLOWS_MAX: usize = 1 << 24;
/// Most packets that may be kept for a controller.
pub const BUFFERS_MAX: usize = 1 << 16;
/// Longest time for which a bridge may remember an address, in seconds.
pub const AGEING_S_MAX: u64 = 3600;
/// Bytes that one port may be served in a round unless told otherwise: 16 frames of full size, or
/// some 380 of the smallest, which keeps both batches long and the wait of the other ports short.
pub const QUANTUM_BYTES: usize = 16 * 1518;

/// Everything that one process is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The data ports.
    pub ports: Vec<PortConfig>,
    /// What forwards.
    pub kind: Kind,
    /// In which order waiting frames are served.
    pub service: Service,
    /// How long to keep polling after the last frame before waiting for the next one.
    pub spin: Nanos,
    /// The control socket, if one is wanted.
    pub control: Option<PathBuf>,
}

/// One data port: its number and what it is, as `--port N=SPEC` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// The number by which flows and tables know it.
    pub number: PortNo,
    /// The port's specification, such as `afpacket:eth1`.
    pub spec: String,
}

/// What forwards, and how it is set up.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// An OpenFlow switch.
    OpenFlow(OpenFlowConfig),
    /// A learning bridge.
    Bridge(BridgeConfig),
    /// An IPv4 router.
    Router(RouterConfig),
}

/// In which order the frames that wait at several ports are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Deficit round robin (Shreedhar and Varghese): in each round a port is served up to its
    /// quantum, and what it could not use because its next frame was longer it keeps.
    DeficitRoundRobin {
        /// Bytes that each port is granted in a round, frame check sequences included.
        quantum_bytes: usize,
    },
    /// The frame that was received first is served first, whichever port it came in on.
    FirstComeFirstServed,
}

/// An OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenFlowConfig {
    /// Flows that the exact-match hash table holds.
    pub exact_flows_max: usize,
    /// Flows that the linear wildcard table holds.
    pub wildcard_flows_max: usize,
    /// Controllers that the switch connects to (`tcp:IP:PORT`, `unix:FILE`).
    pub controllers: Vec<String>,
    /// Where it waits for controllers (`ptcp:PORT[:IP]`, `punix:FILE`).
    pub listen: Vec<String>,
    /// What happens to frames that match nothing while no controller is connected.
    pub fail_mode: FailMode,
    /// The switch's identity; without one it is made from the first port's address.
    #[serde(deserialize_with = "datapath_id_from_text")]
    pub datapath_id: Option<u64>,
    /// Bytes of a frame without match that a controller gets until it asks otherwise.
    pub miss_send_len: u16,
    /// Packets that are kept until a controller says what to do with them.
    pub buffers: usize,
    /// A packet is kept at least this long; after that a newer one may take its place.
    pub buffer_ms: u64,
    /// An idle connection is probed after this long, and given up after as long again.
    pub probe_ms: u64,
    /// Longest pause between two attempts to reach a controller.
    pub backoff_ms_max: u64,
}

/// What happens to frames that match nothing while no controller is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// They are dropped; flows stay.
    Secure,
    /// The switch forwards them as a learning bridge would.
    Standalone,
}

/// A learning bridge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeConfig {
    /// Addresses are forgotten after this many seconds of silence; 0 keeps them for ever.
    pub ageing_s: u64,
    /// Addresses that the table holds.
    pub macs_max: usize,
    /// Whether an address may be behind another port in each VLAN. Otherwise tags are not looked
    /// at.
    pub per_vlan: bool,
}

impl Default for OpenFlowConfig {
    fn default() -> Self {
        OpenFlowConfig {
            exact_flows_max: 131_072,
            wildcard_flows_max: 100,
            controllers: Vec::new(),
            listen: Vec::new(),
            fail_mode: FailMode::Secure,
            datapath_id: None,
            miss_send_len: 128,
            buffers: 256,
            buffer_ms: 1_000,
            probe_ms: 5_000,
            backoff_ms_max: 8_000,
        }
    }
}

impl Default for BridgeConfig {
    fn default() -> Self {
        BridgeConfig { ageing_s: 300, macs_max: 131_072, per_vlan: false }
    }
}

impl Default for Service {
    fn default() -> Self {
        Service::DeficitRoundRobin { quantum_bytes: QUANTUM_BYTES }
    }
}

impl Config {
    /// A process of this kind without ports yet, everything else by default.
    pub fn new(kind: Kind) -> Self {
        let (ports, service, spin) = (Vec::new(), Service::default(), Nanos::from_micros(50));
        Config { ports, kind, service, spin, control: None }
    }

    /// Every problem of this configuration; a usable one has none.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        validate_ports(&self.ports, &mut problems);
        if self.service == (Service::DeficitRoundRobin { quantum_bytes: 0 }) {
            problems.push(Problem::out_of_range("quantum_bytes", 0, 1, usize::MAX as u64));
        }
        match &self.kind {
            Kind::OpenFlow(config) => config.validate(&mut problems),
            Kind::Bridge(config) => config.validate(&mut problems),
            Kind::Router(config) => config.validate(&self.ports, &mut problems),
        }
        problems
    }

    /// The ports' numbers.
    pub fn port_numbers(&self) -> Vec<PortNo> {
        self.ports.iter().map(|port| port.number).collect()
    }
}

fn validate_ports(ports: &[PortConfig], problems: &mut Vec<Problem>) {
    if ports.is_empty() {
        problems.push(Problem::NoPorts);
    }
    if ports.len() > PORTS_MAX {
        problems.push(Problem::TooMany { key: "port", have: ports.len(), max: PORTS_MAX });
    }
    let mut numbers = HashSet::new();
    let mut specs = HashSet::new();
    for port in ports {
        if port.number == 0 || port.number > PORT_NUMBER_MAX {
            let (have, max) = (u64::from(port.number), u64::from(PORT_NUMBER_MAX));
            problems.push(Problem::out_of_range("port", have, 1, max));
        }
        if !numbers.insert(port.number) {
            problems.push(Problem::PortNumberTwice(port.number));
        }
        if !specs.insert(&port.spec) {
            problems.push(Problem::PortSpecTwice(port.spec.clone()));
        }
    }
}

impl OpenFlowConfig {
    /// Reads the settings of a switch from a TOML text.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    fn validate(&self, problems: &mut Vec<Problem>) {
        let range = |key, have: u64, min, max| Problem::check(key, have, min, max);
        let checks = [
            range("exact_flows_max", self.exact_flows_max as u64, 0, FLOWS_MAX as u64),
            range("wildcard_flows_max", self.wildcard_flows_max as u64, 0, FLOWS_MAX as u64),
            range("buffers", self.buffers as u64, 0, BUFFERS_MAX as u64),
            range("probe_ms", self.probe_ms, 10, 3_600_000),
            range("backoff_ms_max", self.backoff_ms_max, 10, 3_600_000),
        ];
        problems.extend(checks.into_iter().flatten());
        for (key, urls, passive) in
            [("controllers", &self.controllers, false), ("listen", &self.listen, true)]
        {
            if urls.len() > CONTROLLERS_MAX {
                problems.push(Problem::TooMany { key, have: urls.len(), max: CONTROLLERS_MAX });
            }
            problems.extend(urls.iter().filter_map(|url| check_url(key, url, passive)));
        }
    }
}

fn check_url(key: &'static str, text: &str, passive: bool) -> Option<Problem> {
    let wrong =
        |url: Url| (url.is_passive() != passive).then_some(ChannelError::WrongDirection(url));
    let error = Url::from_str(text).map_or_else(Some, wrong)?;
    Some(Problem::BadUrl { key, why: error.to_string() })
}

impl BridgeConfig {
    /// Reads the settings of a bridge from a TOML text.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    /// The ageing time, or `None` if addresses are never forgotten.
    pub fn ageing(&self) -> Option<Nanos> {
        (self.ageing_s > 0).then(|| Nanos::from_secs(self.ageing_s))
    }

    fn validate(&self, problems: &mut Vec<Problem>) {
        problems.extend(Problem::check("ageing_s", self.ageing_s, 0, AGEING_S_MAX));
        problems.extend(Problem::check("macs_max", self.macs_max as u64, 1, FLOWS_MAX as u64));
    }
}

/// The identity that `text` names in hexadecimal digits, with or without `0x` in front.
pub fn datapath_id(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn datapath_id_from_text<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || serde::de::Error::custom("datapath_id takes up to 16 hexadecimal digits");
    datapath_id(&text).ok_or_else(wrong).map(Some)
}

#[cfg(test)]
mod tests;
