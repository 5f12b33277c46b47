//! Configuration of a process: its ports, its data plane, and its control channels.
//!
//! Every value has a default. The command line sets values from flags, or reads the part for the
//! data plane from a TOML file. `Config::validate` then reports all problems together, each with
//! the key to change.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use packet::frame::PortNo;
use packet::time::Nanos;
use serde::Deserialize;

use crate::hardware_model::model::Model;

pub mod switch;
pub mod element;
pub mod forces;
pub mod limits;
pub mod queue;
pub mod router;
pub mod tagger;
pub mod problem;

pub use self::forces::{CeConfig, ForcesConfig};
pub use element::ProGfeConfig;
pub use limits::Limits;
pub use problem::{FileError, Problem};
pub use queue::{PortRateConfig, QueueConfig};
pub use router::{Mac, Neighbour, Prefix, Route, RouterConfig};
pub use switch::{
    Classifier, FailMode, OpenFlowConfig, TableConfig, datapath_id, versions_from_text,
};
pub use tagger::{TagRule, TaggerConfig};

/// Highest port number: OpenFlow 1.0 reserves the numbers from 0xff00 on.
pub const PORT_NUMBER_MAX: PortNo = 0xfeff;
/// Maximum number of ports of one process.
pub const PORTS_MAX: usize = 256;
/// Maximum number of controllers, and of listeners, of one switch.
pub const CONTROLLERS_MAX: usize = 16;
/// Maximum of the configurable number of entries of one table.
pub const FLOWS_MAX: usize = 1 << 24;
/// Maximum of the configurable number of buffered packets.
pub const BUFFERS_MAX: usize = 1 << 16;
/// Maximum ageing time of a bridge, in seconds.
pub const AGEING_S_MAX: u64 = 3600;
/// Default quantum of a port in bytes: 16 frames of maximum size, or about 380 of minimum size.
/// Batches are then long, and other ports wait only briefly.
pub const QUANTUM_BYTES: usize = 16 * 1518;

/// Configuration of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The data ports.
    pub ports: Vec<PortConfig>,
    /// The data plane.
    pub kind: Kind,
    /// The order in which waiting frames are served.
    pub service: Service,
    /// How long to busy-poll after the last frame before waiting for the next one.
    pub spin: Nanos,
    /// The threads that forward the frames of a switch. The control thread does everything else.
    pub frame_threads: FrameThreads,
    /// The file of the control socket, if any.
    pub control: Option<PathBuf>,
    /// The hardware model that a switch emulates, or that a bridge emulates without OpenFlow.
    pub model: Option<Arc<Model>>,
    /// Whether the kernel forwards known frames of a bridge, router or switch.
    pub fast_path: FastPathMode,
}

/// Whether the kernel forwards known frames between `xdp:` ports of a bridge, router or switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastPathMode {
    /// If the ports and the kernel allow it; otherwise the log has the reason.
    #[default]
    Auto,
    /// Yes, or the element does not start.
    Required,
    /// No.
    Off,
}

/// Threads that forward the frames of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FrameThreads {
    /// None: the control thread forwards frames.
    #[default]
    None,
    /// One forwarding thread if the process may run on at least two cores, every port has a
    /// descriptor, and no hardware model is emulated; otherwise none.
    Auto,
    /// One thread on each of these cores.
    Cores(Vec<usize>),
}

/// One data port: its number and its specification, as in `--port N=SPEC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// The port number in flow entries and tables.
    pub number: PortNo,
    /// The port's specification, such as `afpacket:eth1`.
    pub spec: String,
}

/// Kind of a data plane, and its configuration.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a process has one")]
pub enum Kind {
    /// An OpenFlow switch.
    OpenFlow(OpenFlowConfig),
    /// A learning bridge.
    Bridge(BridgeConfig),
    /// An IPv4 router.
    Router(RouterConfig),
    /// A VLAN tagger.
    Tagger(TaggerConfig),
    /// A ProGFE element.
    ProGfe(ProGfeConfig),
}

/// Order in which frames that wait at several ports are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Deficit round robin (Shreedhar and Varghese): in each round a port is served up to its
    /// quantum. It keeps what it did not use because its next frame was longer.
    DeficitRoundRobin {
        /// Quantum of each port in a round, in bytes including frame check sequences.
        quantum_bytes: usize,
    },
    /// First come first served, over all ports.
    FirstComeFirstServed,
}

/// A learning bridge.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BridgeConfig {
    /// Ageing time in seconds after which idle addresses are removed; 0 for no ageing.
    pub ageing_s: u64,
    /// Maximum number of addresses in the table.
    pub macs_max: usize,
    /// Whether an address may be behind a different port in each VLAN. Otherwise VLAN tags are
    /// ignored.
    pub per_vlan: bool,
    /// Number of hash buckets with linked lists, as Linux 2.6.27 had 256; 0 for a table whose
    /// lookups take the same time at every size.
    pub hash_buckets: usize,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        BridgeConfig { ageing_s: 300, macs_max: 131_072, per_vlan: false, hash_buckets: 0 }
    }
}

impl Default for Service {
    fn default() -> Self {
        Service::DeficitRoundRobin { quantum_bytes: QUANTUM_BYTES }
    }
}

impl Config {
    /// Creates the configuration of a process of this kind, without ports and with default values.
    pub fn new(kind: Kind) -> Self {
        let (service, spin) = (Service::default(), Nanos::from_micros(50));
        let (ports, frame_threads) = (Vec::new(), FrameThreads::None);
        Config {
            ports,
            kind,
            service,
            spin,
            frame_threads,
            control: None,
            model: None,
            fast_path: FastPathMode::default(),
        }
    }

    /// Returns all problems of the configuration; a valid one has none.
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        validate_ports(&self.ports, &mut problems);
        if self.service == (Service::DeficitRoundRobin { quantum_bytes: 0 }) {
            problems.push(Problem::out_of_range("quantum_bytes", 0, 1, usize::MAX as u64));
        }
        if self.model.is_some() && matches!(self.frame_threads, FrameThreads::Cores(_)) {
            problems.push(Problem::ModelApart);
        }
        if self.model.is_some() && !matches!(self.kind, Kind::OpenFlow(_) | Kind::Bridge(_)) {
            problems.push(Problem::ModelOfRouter);
        }
        match &self.kind {
            Kind::OpenFlow(config) => config.validate(&self.ports, &mut problems),
            Kind::Bridge(config) => config.validate(&mut problems),
            Kind::Router(config) => config.validate(&self.ports, &mut problems),
            Kind::Tagger(config) => config.validate(&self.ports, &mut problems),
            Kind::ProGfe(config) => config.validate(&self.ports, &mut problems),
        }
        problems
    }

    /// Returns the port numbers.
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

impl BridgeConfig {
    /// Parses the configuration of a bridge from TOML.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    /// Returns the ageing time, or `None` for no ageing.
    pub fn ageing(&self) -> Option<Nanos> {
        (self.ageing_s > 0).then(|| Nanos::from_secs(self.ageing_s))
    }

    fn validate(&self, problems: &mut Vec<Problem>) {
        problems.extend(Problem::check("ageing_s", self.ageing_s, 0, AGEING_S_MAX));
        problems.extend(Problem::check("macs_max", self.macs_max as u64, 1, FLOWS_MAX as u64));
        let buckets = self.hash_buckets as u64;
        problems.extend(Problem::check("hash_buckets", buckets, 0, FLOWS_MAX as u64));
    }
}

#[cfg(test)]
mod tests;
