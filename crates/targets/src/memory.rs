//! Targets in this process, connected to the tester by in-memory rings of frames, or without a link
//! by replayed frames (`replay`).
//!
//! In real time, the target has its own thread and core during a trial. In virtual time, it
//! alternates with the tester, on links that serialize frames at the nominal capacity. Between
//! trials only the code that installs entries runs the target, so nothing is shared.

mod network;
mod service;
mod simulated;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use channel::Channel;
use elements::config::{
    BridgeConfig, Config, Kind, Limits, Mac, Neighbour, OpenFlowConfig, Prefix, ProGfeConfig,
    Route, RouterConfig, Service, TagRule, TaggerConfig,
};
use elements::control::request::{MacEntry, PortMac, Request, Resource};
use elements::node::Node;
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use netio::wrap::rate::{Rate, RateOptions};
use netio::wrap::tail_drop::TailDrop;
use os::clock;
use packet::frame::PortNo;
use packet::time::{Clock, Nanos};
use serde_json::Value;
use testbed::affinity::{self, Cores};
use testbed::peer::{Plan, PortAddress, PortNeighbor, PortRoute, Station};
use tester::controller::script::Script;
use tester::controller::{Controller, RealTime};
use tester::executor::TopologyInfo;
use tester::module::{Module, StageReport};
use tester::rig::live::LiveRig;
use tester::rig::sim::SimRig;
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

use super::name::{Link, TargetKind};
use super::network::Hop;
use super::replay::{PortWiring, ReplayRig, SAME_FRAMES, VARIED_FRAMES};
use super::sim_pause::SimulatedPause;
use super::snmp;
use super::veth::{BRIDGE_HASH_BUCKETS, ROUTER_CACHE_ENTRIES};
use super::{
    ADDRESSES, Description, Snapshot, Target, TargetError, mac_learning, no_controller, orders,
    program_reload, scene, work_of_planimeter,
};
use service::FrameService;
use simulated::{SimulatedNode, simulated};
use turns::{installed, patient};
use workload::Technology;
use workload::parameter::control::Capture;
use workload::parameter::{Capacity, Parameters};
use workload::{Addresses, Setup};

/// Capacity of a control channel in memory, in bytes.
const CHANNEL_BYTES: usize = 1 << 20;

/// Interval at which a target that is busy with frames serves its control channel.
const SERVE_INTERVAL: Nanos = Nanos::from_micros(100);

/// Creates targets in this process.
pub struct MemoryBench {
    link: Link,
    parameters: Parameters,
    cores: Cores,
    stop: Arc<AtomicBool>,
}

/// A target in this process.
struct MemoryTarget {
    kind: TargetKind,
    /// Capture settings of control channels.
    capture: Capture,
    rig: AnyRig,
    cores: Cores,
    /// The node's configuration, to create it again.
    config: Option<Config>,
    /// The OpenFlow connection that stays open, as a controller's does.
    controller: Option<Controller>,
    holds: Option<Setup>,
    busy_ns: u64,
    standstill: SimulatedPause,
    stop: Arc<AtomicBool>,
}

/// The tester's ports around a target.
enum AnyRig {
    /// Real time: the node runs in a thread during trials. Without a node: a cable.
    Live(Box<LiveRig>, Option<Box<Node>>),
    /// Real time with replayed frames. Without a node, one port plays to the other.
    Replay(Box<ReplayRig>, ReplayReceiver),
    /// Virtual time.
    Simulated(Box<SimRig<SimulatedNode>>),
}

/// Receiver of replayed frames.
enum ReplayReceiver {
    Node(Box<Node>),
    Nothing(Vec<Box<dyn Port>>),
}

impl MemoryBench {
    /// Creates a bench for the link `memory` or `replay`, and reports the core assignment.
    pub fn open(
        link: Link,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let cores = Cores::of_machine().map_err(super::veth::lab_error)?;
        Ok(MemoryBench { link, parameters: parameters.clone(), cores, stop: Arc::clone(stop) })
    }

    /// The link.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns the core assignment.
    pub fn cores(&self) -> &Cores {
        &self.cores
    }

    /// Returns the settings that all targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        if self.parameters.simulated {
            return vec![("sim_service_time_ns".into(), self.parameters.service_ns.to_string())];
        }
        let target = ("cores_target".into(), format!("{:?}", self.cores.target));
        if self.link == Link::Replay {
            let say = |name: &str, words: &str| (name.to_string(), words.to_string());
            return vec![
                say("wire", "in process: frames from memory, built-in targets only"),
                say("frames_returned", "counted by port, not checked"),
                ("frames_played_varied".into(), VARIED_FRAMES.to_string()),
                ("frames_played_same".into(), SAME_FRAMES.to_string()),
                target,
            ];
        }
        vec![
            ("cores_instrument".into(), format!("{:?}", self.cores.instrument)),
            target,
            ("ring_frames".into(), self.parameters.ring_frames.to_string()),
        ]
    }

    /// Creates a target with one or two input ports.
    pub fn target(&self, kind: TargetKind, inputs: u8) -> Result<Box<dyn Target>, TargetError> {
        if let TargetKind::Network(target) = kind {
            return self.network(target);
        }
        if self.link == Link::Replay {
            return self.played(kind);
        }
        let simulated = self.parameters.simulated;
        let (service, service_time) = self.service(kind);
        let (near, made) = if kind == TargetKind::Direct {
            let (first, second) = self.link_of("direct");
            (vec![first, second], None)
        } else {
            let links = (1..=PortNo::from(inputs) + 1).map(|number| {
                let (near, far) = self.link_of(&format!("{}-{number}", kind.name()));
                (near, (number, served(&service, service_time, far)))
            });
            let (near, far): (Vec<_>, Vec<_>) = links.unzip();
            (near, Some(self.node(kind, None, far)?))
        };
        let (node, config) = made.unzip();
        let key = key_of(kind);
        let rig = if simulated {
            let (agent, agents) = snmp::simulated(&self.parameters.witness)?;
            let device = SimulatedNode { agent, ..SimulatedNode::new(node, service, service_time) };
            let mut rig = SimRig::new(near, device, key);
            (rig.agents, rig.stop) = (agents, Arc::clone(&self.stop));
            AnyRig::Simulated(Box::new(rig))
        } else {
            affinity::pin(0, &self.cores.instrument).map_err(super::veth::lab_error)?;
            let mut rig = LiveRig::new(near, key, Arc::clone(&self.stop));
            rig.agents = snmp::of_device(&self.parameters.witness)?;
            AnyRig::Live(Box::new(rig), node)
        };
        Ok(self.joined(kind, rig, config))
    }

    /// Creates a target for replayed frames.
    fn played(&self, kind: TargetKind) -> Result<Box<dyn Target>, TargetError> {
        let names = ["replay 1", "replay 2"];
        let (rig, ports) = ReplayRig::new(names, key_of(kind), &self.stop);
        let (played, config) = if kind == TargetKind::Direct {
            (ReplayReceiver::Nothing(ports), None)
        } else {
            let (node, config) = self.node(kind, None, (1..).zip(ports).collect())?;
            (ReplayReceiver::Node(node), Some(config))
        };
        Ok(self.joined(kind, AnyRig::Replay(Box::new(rig), played), config))
    }

    fn joined(&self, kind: TargetKind, rig: AnyRig, config: Option<Config>) -> Box<dyn Target> {
        let cores = self.cores.clone();
        let (controller, holds, busy_ns) = (None, None, 0);
        let standstill = SimulatedPause::new(Nanos(self.parameters.stall_ns));
        Box::new(MemoryTarget {
            kind,
            capture: self.parameters.control.capture,
            rig,
            cores,
            config,
            controller,
            holds,
            busy_ns,
            standstill,
            stop: Arc::clone(&self.stop),
        })
    }

    /// Returns the service of a target's frames, and the service time of each frame.
    fn service(&self, kind: TargetKind) -> (FrameService, Nanos) {
        // A model has its own service times, and a target in real time has real ones.
        let is_own = matches!(kind, TargetKind::Model(_)) || !self.parameters.simulated;
        let time = if is_own { Nanos::ZERO } else { Nanos(self.parameters.service_ns) };
        (FrameService::default(), time)
    }

    /// Creates both ends of a link.
    fn link_of(&self, label: &str) -> (Box<dyn Port>, Box<dyn Port>) {
        let clock = if self.parameters.simulated { Clock::Virtual } else { Clock::UserSpace };
        let (near, far) = pair_stamped(self.parameters.ring_frames as usize, label, clock);
        (self.end(near), self.end(far))
    }

    /// Creates one end of a link: in virtual time it serializes, in real time it drops frames
    /// beyond its capacity.
    fn end(&self, port: MemoryPort) -> Box<dyn Port> {
        match (self.parameters.simulated, self.parameters.capacity) {
            (true, Capacity::BitsPerSecond(bits)) => {
                let queue_frames_max = self.parameters.ring_frames as usize;
                let options = RateOptions { bits_per_second: bits as u64, queue_frames_max };
                Box::new(Rate::new(port, options))
            }
            _ => Box::new(TailDrop::new(port)),
        }
    }

    fn node(
        &self,
        kind: TargetKind,
        datapath_id: Option<u64>,
        ports: Vec<(PortNo, Box<dyn Port>)>,
    ) -> Result<(Box<Node>, Config), TargetError> {
        let count = ports.len();
        let [exact_flows_max, wildcard_flows_max] =
            self.parameters.table_sizes().map(|size| size as usize);
        let what = match kind {
            // Between trials no keep-alive is answered, so it must not time out.
            _ if is_our_switch(kind) => Kind::OpenFlow(OpenFlowConfig {
                probe_ms: 3_600_000,
                datapath_id,
                exact_flows_max,
                wildcard_flows_max,
                limits: limits(self.parameters.connections_max as usize),
                ..OpenFlowConfig::default()
            }),
            TargetKind::Bridge | TargetKind::BridgeFewBuckets | TargetKind::Model(_) => {
                let is_old = kind == TargetKind::BridgeFewBuckets;
                Kind::Bridge(BridgeConfig {
                    ageing_s: 3600,
                    macs_max: self.parameters.macs_max as usize,
                    hash_buckets: if is_old { BRIDGE_HASH_BUCKETS } else { 0 },
                    ..BridgeConfig::default()
                })
            }
            TargetKind::ProGfe(target) => Kind::ProGfe(ProGfeConfig::new(target.program())),
            TargetKind::Tagger => Kind::Tagger(TaggerConfig::default()),
            TargetKind::Router | TargetKind::RouterCache => {
                let cache = if kind == TargetKind::Router { 0 } else { ROUTER_CACHE_ENTRIES };
                let routes_max = self.parameters.routes_max as usize;
                Kind::Router(RouterConfig { routes_max, ..router_config(cache, count) })
            }
            other => {
                let what = format!("{} does not support links in memory", other.name());
                return Err(TargetError::CannotHold(what));
            }
        };
        let mut config = Config::new(what);
        if let TargetKind::Model(target) = kind {
            config.model = Some(target.model());
        }
        if kind == TargetKind::SwitchFirstCome {
            config.service = Service::FirstComeFirstServed;
        }
        for (number, port) in &ports {
            let spec = format!("memory:{}", port.facts().name);
            config.ports.push(elements::config::PortConfig { number: *number, spec });
        }
        let now = if self.parameters.simulated { Nanos::ZERO } else { clock::now() };
        Ok((opened(kind, &config, ports, now)?, config))
    }
}

/// Wraps a target's end of a link with the target's service time for a frame.
fn served(service: &FrameService, time: Nanos, port: Box<dyn Port>) -> Box<dyn Port> {
    if time > Nanos::ZERO { service.port(port) } else { port }
}

fn opened(
    kind: TargetKind,
    config: &Config,
    ports: Vec<(PortNo, Box<dyn Port>)>,
    now: Nanos,
) -> Result<Box<Node>, TargetError> {
    Node::open(config, ports, key_of(kind), now)
        .map(Box::new)
        .map_err(|error| TargetError::failed(format!("cannot create {}", kind.name()), error))
}

/// Returns a switch's limits, with room for at least this many connections.
fn limits(connections: usize) -> Limits {
    let limits = Limits::default();
    Limits { connections: limits.connections.max(connections), ..limits }
}

/// Returns whether it is created as an OpenFlow switch.
fn is_our_switch(kind: TargetKind) -> bool {
    kind.is_planimeter() && kind.technology() == Technology::OpenFlow
}

/// Returns a fixed secret for each kind, so that runs can be repeated.
fn key_of(kind: TargetKind) -> u64 {
    let place = TargetKind::ALL.iter().position(|other| *other == kind);
    let place = place.map(|place| place as u64);
    // Kinds that are not in the list are distinguished by their name.
    let byte = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let named = || kind.name().bytes().fold(0xcbf2_9ce4_8422_2325, byte);
    0x706c_616e_696d_0000_u64.wrapping_add(place.unwrap_or_else(named))
}

/// Returns the router's interfaces. A port in memory has no address, so the configuration provides
/// one.
fn router_config(cache: usize, ports: usize) -> RouterConfig {
    let interface = |own: PortAddress| {
        let PortAddress { port, address, length } = own;
        let mac = Mac(ADDRESSES.target[port as usize - 1]);
        format!(
            "[[interface]]\nport = {port}\nmac = \"{mac}\"\n\
             addresses = [\"{address}/{length}\"]\n"
        )
    };
    let interfaces: String =
        super::veth::router_addresses().into_iter().take(ports).map(interface).collect();
    RouterConfig::from_toml(&format!("cache = {cache}\n{interfaces}"))
        .expect("the text is a router's file")
}

impl Target for MemoryTarget {
    fn kind(&self) -> TargetKind {
        self.kind
    }

    fn describe(&self) -> Description {
        let version = match self.kind {
            TargetKind::Direct => None,
            _ => Some(format!("planimeter {}", crate::VERSION)),
        };
        let mut settings = BTreeMap::new();
        if let TargetKind::RouterCache = self.kind {
            settings.insert("cache_entries".into(), ROUTER_CACHE_ENTRIES.to_string());
        }
        if let TargetKind::BridgeFewBuckets = self.kind {
            settings.insert("hash_buckets".into(), BRIDGE_HASH_BUCKETS.to_string());
        }
        Description { version, settings }
    }

    fn addresses(&self) -> Addresses {
        ADDRESSES
    }

    fn install(&mut self, setup: &Setup) -> Result<(), TargetError> {
        if self.holds.as_ref() == Some(setup) {
            return Ok(());
        }
        match self.kind.technology() {
            Technology::Wire => {}
            Technology::OpenFlow => self.install_flows(setup)?,
            Technology::Bridging | Technology::Routing | Technology::Tagging => {
                if self.holds.is_some() {
                    self.remake()?;
                }
                self.install_entries(setup)?;
            }
        }
        let addresses = self.addresses();
        mac_learning::populate_mac_table(self.kind, setup, &addresses, |trial| {
            self.trial(trial).map(drop).or_else(mac_learning::failed)?;
            let known = self.snapshot()?.counters.get("bridge.macs").copied();
            Ok(known)
        })?;
        self.holds = Some(*setup);
        Ok(())
    }

    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        if trial.swaps > 0 {
            return self.trial_with_swaps(trial);
        }
        let ends = trial.orders.is_some().then(|| self.adopted());
        let cores = &self.cores.target;
        match &mut self.rig {
            AnyRig::Simulated(rig) => {
                let standstill = self.standstill.next(trial.length());
                standstill.into_iter().for_each(|(after, span)| rig.pause_tester(after, span));
                simulated(rig, trial, ends)
            }
            AnyRig::Live(rig, None) => orders::trial(rig, trial, &self.stop, |_| unreachable!()),
            AnyRig::Replay(rig, played) => {
                let between = match played {
                    ReplayReceiver::Node(node) => PortWiring::Node(node),
                    ReplayReceiver::Nothing(ports) => PortWiring::Nothing(ports),
                };
                let began = clock::now();
                let report = rig.trial(trial, between, cores);
                self.busy_ns += clock::now().since(began).0;
                report
            }
            AnyRig::Live(rig, Some(node)) => {
                let done = AtomicBool::new(false);
                let connect = |script: &Script| {
                    let channel = ends.expect("a trial with orders has a channel for them");
                    let settings = patient(orders::settings(script));
                    Controller::start(channel, settings, &mut RealTime::default())
                };
                std::thread::scope(|scope| {
                    let worker = scope.spawn(|| {
                        // If pinning is not permitted, the scheduler chooses the core.
                        let _ = affinity::pin(0, cores);
                        drive(node, |_, _| done.load(Ordering::Acquire))
                    });
                    let report = orders::trial(rig, trial, &self.stop, connect);
                    done.store(true, Ordering::Release);
                    self.busy_ns += worker.join().expect("a node does not panic").0;
                    report
                })
            }
        }
    }

    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        let Self { kind, rig, cores, capture, .. } = self;
        let is_controlled = kind.technology() == Technology::OpenFlow;
        if is_controlled {
            (self.holds, self.controller) = (None, None);
        }
        match rig {
            AnyRig::Simulated(rig) => {
                let scene = scene(rig.ports());
                let clock = (*capture != Capture::No).then(|| Arc::clone(&rig.clock));
                Ok(rig.stage(module, &scene, &mut |device: &mut SimulatedNode, _, now| {
                    if !is_controlled {
                        return Err(no_controller());
                    }
                    let node = device.node.as_deref_mut().expect("an OpenFlow switch is a node");
                    Ok(match &clock {
                        Some(clock) => adopted_stamped(node, clock, now),
                        None => adopted(node, now),
                    })
                }))
            }
            AnyRig::Live(rig, Some(node)) => {
                let (report, busy) = staged(rig, node, &cores.target, is_controlled, module);
                self.busy_ns += busy.0;
                Ok(report)
            }
            AnyRig::Live(rig, None) => {
                let scene = scene(rig.ports());
                Ok(rig.stage(module, &scene, &mut |_, _| Err(no_controller())))
            }
            AnyRig::Replay(..) => {
                Err(TargetError::CannotHold("link replay does not support a controller".into()))
            }
        }
    }

    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError> {
        match &mut self.rig {
            AnyRig::Simulated(rig) => {
                Ok(rig.stage(module, &TopologyInfo::default(), &mut |_, _, _| Err(no_controller())))
            }
            AnyRig::Live(rig, _) => Ok(super::alone(rig, module)),
            AnyRig::Replay(..) => {
                Err(TargetError::CannotHold("link replay does not support SNMP agents".into()))
            }
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, TargetError> {
        let mut snapshot = Snapshot::default();
        let now = self.now();
        let is_live = !matches!(self.rig, AnyRig::Simulated(_));
        if let Some(node) = self.node() {
            let answer = ask(node, Request::Get(Resource::Counters), now)?;
            let counters = testbed::peer::planimeter::control::flatten(&answer);
            snapshot.work = if is_live { work_of_planimeter(&counters) } else { None };
            snapshot.add(counters);
        }
        if self.busy_ns > 0 {
            let core = self.cores.target.first().map(|&core| core as u32);
            snapshot.cpu_ns.insert("node".into(), (self.busy_ns, core));
        }
        Ok(snapshot)
    }

    fn stop(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

impl MemoryTarget {
    fn node(&mut self) -> Option<&mut Node> {
        match &mut self.rig {
            AnyRig::Live(_, node) => node.as_deref_mut(),
            AnyRig::Replay(_, ReplayReceiver::Node(node)) => Some(node),
            AnyRig::Replay(_, ReplayReceiver::Nothing(_)) => None,
            AnyRig::Simulated(rig) => rig.device.node.as_deref_mut(),
        }
    }

    fn now(&self) -> Nanos {
        match &self.rig {
            AnyRig::Live(..) | AnyRig::Replay(..) => clock::now(),
            AnyRig::Simulated(rig) => rig.now(),
        }
    }

    /// Runs a trial in which the element's program is swapped at intervals, in the frames' thread.
    fn trial_with_swaps(&mut self, trial: &Trial) -> Result<TrialReport, RigError> {
        let begins = self.now().saturating_add(trial.warmup);
        let mut moments: Vec<Nanos> =
            program_reload::moments(trial).rev().map(|at| begins.saturating_add(at)).collect();
        let cores = &self.cores.target;
        match &mut self.rig {
            AnyRig::Simulated(rig) => {
                rig.device.swaps = moments;
                rig.trial(trial)
            }
            AnyRig::Live(rig, Some(node)) => {
                let done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let worker = scope.spawn(|| {
                        // If pinning is not permitted, the scheduler chooses the core.
                        let _ = affinity::pin(0, cores);
                        drive(node, |node, now| {
                            if moments.pop_if(|at| *at <= now).is_some() {
                                simulated::swap(node, now);
                            }
                            done.load(Ordering::Acquire)
                        })
                    });
                    let report = rig.trial(trial);
                    done.store(true, Ordering::Release);
                    self.busy_ns += worker.join().expect("a node does not panic").0;
                    report
                })
            }
            _ => Err(RigError::Swap("the element has no other owner".into())),
        }
    }

    /// Opens a controller's end of a channel to the node.
    fn adopted(&mut self) -> Box<dyn Channel> {
        let now = self.now();
        adopted(self.node().expect("only switches are given orders"), now)
    }

    fn install_flows(&mut self, setup: &Setup) -> Result<(), TargetError> {
        let is_live = !matches!(self.rig, AnyRig::Simulated(_));
        let now = self.now();
        self.controller = None;
        let stop = Arc::clone(&self.stop);
        let node = self.node().expect("an OpenFlow target is a node");
        let (controller, span) = installed(node, setup, Hop::ALONE, (now, is_live), &stop)?;
        self.controller = Some(controller);
        match &mut self.rig {
            // A model activates entries later than it accepts them.
            AnyRig::Simulated(rig) if matches!(self.kind, TargetKind::Model(_)) => rig
                .idle(span)
                .map_err(|error| TargetError::failed("cannot advance virtual time", error)),
            _ => Ok(()),
        }
    }

    /// Creates the node again on the same ports, which clears the last set-up.
    fn remake(&mut self) -> Result<(), TargetError> {
        let (kind, now) = (self.kind, self.now());
        let Some(config) = self.config.clone() else { return Ok(()) };
        let node = self.node().expect("what has a configuration is a node");
        let forward_ports = std::mem::take(&mut node.forward.forward_ports);
        let ports = forward_ports
            .into_iter()
            .map(|forward_port| (forward_port.number, forward_port.port))
            .collect();
        *node = *opened(kind, &config, ports, now)?;
        Ok(())
    }

    fn install_entries(&mut self, setup: &Setup) -> Result<(), TargetError> {
        let (kind, now) = (self.kind, self.now());
        if let TargetKind::ProGfe(target) = kind {
            target.rehearse(setup, &ADDRESSES)?;
        }
        let plan = super::veth::plan_of(kind, &ADDRESSES, setup);
        let node = self.node().expect("the target with entries is a node");
        for request in requests(kind, &plan) {
            ask(node, request, now)?;
        }
        Ok(())
    }
}

/// Opens a controller's end of a channel to a node.
fn adopted(node: &mut Node, now: Nanos) -> Box<dyn Channel> {
    let (ours, theirs) = channel::memory::pair(CHANNEL_BYTES, "openflow");
    node.adopt(Box::new(theirs), now);
    Box::new(ours)
}

/// Opens the same channel with timestamps of a simulation's clock.
fn adopted_stamped(node: &mut Node, clock: &Arc<AtomicU64>, now: Nanos) -> Box<dyn Channel> {
    let (ours, theirs) = channel::memory::pair_stamped(CHANNEL_BYTES, "openflow", clock);
    node.adopt(Box::new(theirs), now);
    Box::new(ours)
}

/// Runs a module in real time while a separate thread runs the node, which receives the ends of new
/// connections; returns how long the node ran.
fn staged(
    rig: &mut LiveRig,
    node: &mut Node,
    cores: &[usize],
    is_controlled: bool,
    module: &mut dyn Module,
) -> (StageReport, Nanos) {
    let done = AtomicBool::new(false);
    let (made, making) = std::sync::mpsc::channel::<Box<dyn Channel>>();
    let scene = scene(rig.ports());
    let done = &done;
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // If pinning is not permitted, the scheduler chooses the core.
            let _ = affinity::pin(0, cores);
            drive(node, |node, now| {
                making.try_iter().for_each(|theirs| node.adopt(theirs, now));
                done.load(Ordering::Acquire)
            })
        });
        let report = rig.stage(module, &scene, &mut |_, _| {
            if !is_controlled {
                return Err(no_controller());
            }
            let (ours, theirs) = channel::memory::pair(CHANNEL_BYTES, "openflow");
            made.send(Box::new(theirs)).expect("the node's thread waits for the end");
            Ok(Some(Box::new(ours)))
        });
        done.store(true, Ordering::Release);
        (report, worker.join().expect("a node does not panic"))
    })
}

/// Converts a plan to requests to an empty target.
fn requests(kind: TargetKind, plan: &Plan) -> Vec<Request> {
    let station = |it: &Station| MacEntry { mac: Mac(it.mac), port: it.port, vlan: 0 };
    let neighbour =
        |it: &PortNeighbor| Neighbour { port: it.port, address: it.address, mac: Mac(it.mac) };
    let route = |it: &PortRoute| Route {
        to: Prefix { address: it.prefix, bits: it.length },
        via: Some(it.via),
        port: Some(it.port),
    };
    let rule = |it: &testbed::peer::TagRule| TagRule {
        dscp: it.dscp,
        udp_destination: it.udp_destination,
        vlan: it.vlan,
        priority: it.priority,
    };
    let interface = |port: PortNo| PortMac { port, mac: Mac(ADDRESSES.target[port as usize - 1]) };
    let neighbours = || Request::AddNeighbours(plan.neighbors.iter().map(neighbour).collect());
    let routes = || Request::AddRoutes(plan.routes.iter().map(route).collect());
    match (kind, kind.technology()) {
        (_, Technology::Bridging) => {
            vec![Request::AddMacs(plan.stations.iter().map(station).collect())]
        }
        (TargetKind::ProGfe(target), Technology::Routing) => {
            let ports = target.program().ports.iter().map(|port| interface(port.number)).collect();
            vec![Request::SetInterfaces(ports), neighbours(), routes()]
        }
        (_, Technology::Routing) => vec![neighbours(), routes()],
        (TargetKind::Tagger, _) => vec![Request::SetRules(plan.tags.iter().map(rule).collect())],
        _ => Vec::new(),
    }
}

/// Sends a request to a node in this process, as over its control socket.
fn ask(node: &mut Node, request: Request, now: Nanos) -> Result<Value, TargetError> {
    node.answer(request, now)
        .map_err(|why| TargetError::failed("cannot read the target's counters", why))
}

/// Runs a node until `ends` returns true; returns how long it ran.
pub(super) fn drive(node: &mut Node, mut ends: impl FnMut(&mut Node, Nanos) -> bool) -> Nanos {
    let begun = clock::now();
    let mut serve_at = Nanos::ZERO;
    let mut cycles = clock::cycles();
    loop {
        let now = clock::now();
        if ends(node, now) {
            return now.since(begun);
        }
        let turn = node.turn(now);
        if now >= serve_at {
            node.serve(now);
            node.events.clear();
            serve_at = now.saturating_add(SERVE_INTERVAL);
        }
        let spent = clock::cycles();
        node.forward.turns.record_cycles(turn, spent.wrapping_sub(cycles));
        cycles = spent;
    }
}
