//! What a process is told before it starts: its ports, what it forwards by, and who controls it.
//!
//! Everything is a value with a default. The command line fills it in from flags, or reads the
//! part that describes the forwarder from a TOML file; `Config::validate` then names every
//! problem at once, each with the key that has to be changed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use packet::frame::PortNo;
use packet::time::Nanos;
use serde::Deserialize;

use crate::behaviour::model::Model;

/// What an OpenFlow switch is told.
pub mod switch;
/// What an element is told that is programmed by a graph.
pub mod element;
/// Control elements that such an element speaks with.
pub mod forces;
/// What its controllers may use up.
pub mod limits;
/// The queues of its ports.
pub mod queue;
/// What a router is told: interfaces, routes, neighbours.
pub mod router;
/// What a tagger is told: its two sides and its rules.
pub mod tagger;
/// What cannot be used in a configuration, and how to mend it.
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
    /// Which threads move the frames of a switch. All else is done by one more thread.
    pub frame_threads: FrameThreads,
    /// The control socket, if one is wanted.
    pub control: Option<PathBuf>,
    /// The model of hardware that a switch behaves like, or that a bridge behaves like without OpenFlow.
    pub model: Option<Arc<Model>>,
}

/// Which threads move the frames of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FrameThreads {
    /// The thread that does everything else.
    #[default]
    None,
    /// One thread for frames alone where the process may run on two cores or more, every port has a descriptor to
    /// wait for, and the switch is not a model; else none.
    Auto,
    /// One on each of these cores.
    Cores(Vec<usize>),
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
    /// An element that is programmed by a graph.
    ProGfe(ProGfeConfig),
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
        let (service, spin) = (Service::default(), Nanos::from_micros(50));
        let (ports, frame_threads) = (Vec::new(), FrameThreads::None);
        Config { ports, kind, service, spin, frame_threads, control: None, model: None }
    }

    /// Every problem of this configuration; a usable one has none.
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

#[cfg(test)]
mod tests;
