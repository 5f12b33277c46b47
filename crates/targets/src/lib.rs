//! Targets and their links to the tester.
//!
//! A [`Target`] is one device with the tester's ports on both sides. The tester programs it, offers
//! trials and reads its loss counters. Each link has a file; names are in `name`.

/// Version of this build. An optimized build from a checkout includes the commit.
pub const VERSION: &str = env!("PLANIMETER_VERSION");

pub mod name;
pub mod links;
pub mod network;
pub mod progfe;
mod linux_tagger;
pub mod build;
pub mod model;
mod control_capture;
pub mod device;
mod hosts;
mod snmp;
pub mod flow_setup;
pub mod orders;
mod drain;
pub mod program_reload;
mod reset;
mod mac_learning;
mod sim_pause;
pub mod memory;
mod replay;
mod process;
pub mod veth;
pub mod memif;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use channel::ChannelError;
use dataplane::counter::DropReason;
use packet::time::Nanos;
use record::PollingWork;
use testbed::affinity::Cores;
use testbed::peer::ControlInterface;
use tester::account::DropLocation;
use tester::executor::TopologyInfo;
use tester::executor::live::Dialer;
use tester::module::{Module, StageReport, SwitchPort};
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

use name::{Link, TargetKind};
pub(crate) use workload::ADDRESSES;
use workload::parameter::Parameters;
use workload::parameter::control::Capture;
use workload::{Addresses, PORTS_MAX, Setup};

/// Paths that a bench needs.
#[derive(Debug, Clone)]
pub struct HostPaths {
    /// This program, to start this project's targets.
    pub program: PathBuf,
    /// The folder below which runs keep their sockets and processes.
    pub root: PathBuf,
}

/// Creates targets and connects them to the tester.
pub enum Bench {
    /// In this process.
    Memory(memory::MemoryBench),
    /// In namespaces.
    Veth(veth::VethBench),
    /// Over shared memory.
    Memif(memif::MemifBench),
    /// On interfaces of this host.
    Nic(device::bench::DeviceBench),
}

/// The benches of a run: one for each link in use.
pub struct Benches(Vec<(Link, Bench)>);

impl Benches {
    /// Opens a bench for each of these links. `stop` ends trials in progress.
    pub fn open(
        links: &[Link],
        surroundings: &HostPaths,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let open = |link: &Link| Ok((*link, Bench::open(*link, surroundings, parameters, stop)?));
        links.iter().map(open).collect::<Result<_, _>>().map(Benches)
    }

    /// Returns the bench of a link that the run uses.
    pub fn of(&mut self, link: Link) -> &mut Bench {
        let found = self.0.iter_mut().find(|(known, _)| *known == link);
        &mut found.expect("a bench is open for every link of the run").1
    }

    /// Returns all benches.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Bench> {
        self.0.iter_mut().map(|(_, bench)| bench)
    }

    /// Returns the settings that targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.0.iter().flat_map(|(_, bench)| bench.settings()).collect()
    }
}

impl Bench {
    /// Opens a bench for this link. `stop` ends trials in progress.
    pub fn open(
        link: Link,
        surroundings: &HostPaths,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        match link {
            Link::Memory | Link::Replay => {
                memory::MemoryBench::open(link, parameters, stop).map(Bench::Memory)
            }
            Link::Veth | Link::VethXdp | Link::VethLive => {
                veth::VethBench::open(link, surroundings, parameters, stop).map(Bench::Veth)
            }
            Link::Memif => {
                memif::MemifBench::open(surroundings, parameters, stop).map(Bench::Memif)
            }
            Link::Nic | Link::NicXdp => {
                device::bench::DeviceBench::open(link, parameters, stop).map(Bench::Nic)
            }
        }
    }

    /// Creates a target and connects it to the tester by one output port and `inputs` input ports.
    pub fn target(&mut self, kind: TargetKind, inputs: u8) -> Result<Box<dyn Target>, TargetError> {
        match self {
            Bench::Memory(bench) => bench.target(kind, inputs),
            Bench::Veth(bench) => match kind {
                TargetKind::Network(target) => bench.network(target),
                kind => Ok(Box::new(bench.target(kind, inputs)?)),
            },
            Bench::Memif(_) if inputs > 1 && kind.is_dpdk() => {
                let what =
                    "DPDK programs have one input port over memif (hint: use --link veth:xdp)";
                Err(TargetError::CannotHold(what.into()))
            }
            Bench::Memif(bench) => Ok(Box::new(bench.target(kind, inputs)?)),
            Bench::Nic(bench) => Ok(Box::new(bench.target(kind, inputs)?)),
        }
    }

    /// The link.
    pub fn link(&self) -> Link {
        match self {
            Bench::Memory(bench) => bench.link(),
            Bench::Veth(bench) => bench.link(),
            Bench::Memif(_) => Link::Memif,
            Bench::Nic(bench) => bench.link(),
        }
    }

    /// The link's name.
    pub fn link_name(&self) -> &'static str {
        self.link().name()
    }

    /// Returns whether the tester can be measured over this link without a target.
    pub fn can_be_looped(&self) -> bool {
        !matches!(self, Bench::Nic(_))
    }

    /// Returns the core assignment.
    pub fn cores(&self) -> &Cores {
        match self {
            Bench::Memory(bench) => bench.cores(),
            Bench::Veth(bench) => bench.cores(),
            Bench::Memif(bench) => bench.cores(),
            Bench::Nic(bench) => bench.cores(),
        }
    }

    /// Returns the settings that all targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        match self {
            Bench::Memory(bench) => bench.settings(),
            Bench::Veth(bench) => bench.settings(),
            Bench::Memif(bench) => bench.settings(),
            Bench::Nic(bench) => bench.settings(),
        }
    }
}

/// A target of a measurement.
pub trait Target {
    /// Returns its kind.
    fn kind(&self) -> TargetKind;

    /// Returns its version and relevant settings, for the record.
    fn describe(&self) -> Description;

    /// Returns remarks for watchers of the run.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Discards the known state, which another owner may have changed.
    fn forget(&mut self) {}

    /// Returns the addresses at both ends of its links.
    fn addresses(&self) -> Addresses;

    /// Installs the setup, and removes everything else.
    fn install(&mut self, setup: &Setup) -> Result<(), TargetError>;

    /// Fills its caches with the installed flows, so that the trial meets them in steady state;
    /// returns the result if it has caches.
    fn warm(&mut self, _trial: &Trial) -> Result<Option<CacheFill>, TargetError> {
        Ok(None)
    }

    /// Runs a trial, with the trial's controller commands.
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError>;

    /// Runs a measurement module on it. The module determines the state that remains.
    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError>;

    /// Runs a module that reads its SNMP agent and does not touch the target itself.
    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError>;

    /// Reads the counters of the target and of the kernel around it.
    fn snapshot(&mut self) -> Result<Snapshot, TargetError>;

    /// Resumes it for its turn. Of targets that would compete for a core, only one is active.
    fn resume(&mut self) {}

    /// Pauses it until its next turn.
    fn suspend(&mut self) {}

    /// Stops it and cleans up.
    fn stop(self: Box<Self>) -> Result<(), TargetError>;
}

/// Description of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Its version.
    pub version: Option<String>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
}

impl From<testbed::peer::Description> for Description {
    fn from(said: testbed::peer::Description) -> Description {
        let version = Some(said.version).filter(|version| !version.is_empty());
        Description { version, settings: said.settings }
    }
}

/// Returns a rig whose ports connect, in their order, to the ports of one switch from 1 on.
pub(crate) fn scene(ports: usize) -> TopologyInfo {
    let joined = |port: usize| Some(SwitchPort { switch: 0, port: port as u32 + 1 });
    TopologyInfo { joined: (0..ports).map(joined).collect() }
}

/// Returns the error for a connection to a target that is not an OpenFlow switch.
pub(crate) fn no_controller() -> ChannelError {
    ChannelError::System {
        doing: "connect to",
        what: "a target that is not an OpenFlow switch".into(),
        error: std::io::ErrorKind::Unsupported.into(),
    }
}

/// Runs a module without connections in real time.
fn alone(rig: &mut LiveRig, module: &mut dyn Module) -> StageReport {
    rig.stage(module, &TopologyInfo::default(), &mut |_, _| Err(no_controller()))
}

/// Runs a module in real time on a target with this control channel. A target without a controller
/// supports only modules that need none.
fn stage(
    rig: &mut LiveRig,
    access: &ControlInterface,
    module: &mut dyn Module,
    captured: Option<(&testbed::Site, Capture)>,
) -> Result<StageReport, TargetError> {
    let scene = scene(rig.ports());
    let ControlInterface::OpenFlow { channel } = access else {
        return Ok(rig.stage(module, &scene, &mut |_, _| Err(no_controller())));
    };
    if let Some(site) = captured {
        return control_capture::stage(rig, module, site);
    }
    let failed = |error| TargetError::failed(format!("cannot connect to {channel}"), error);
    let mut dialer = Dialer::new(&[channel.parse().map_err(failed)?]).map_err(failed)?;
    Ok(rig.stage(module, &scene, &mut |wanted, now| dialer.connect(wanted, now)))
}

/// Result of filling a target's caches before a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheFill {
    /// Whether the caches are in steady state; if not, the next measurement does not show the
    /// target's normal operation.
    pub is_steady: bool,
    /// Passes over every flow.
    pub passes: u64,
    /// Frames of all passes.
    pub frames: u64,
    /// Frames of the last pass that missed all caches.
    pub upcalls: u64,
    /// Number of these that were lost.
    pub upcalls_lost: u64,
    /// Flows in its datapath afterwards.
    pub flows: u64,
    /// Limit of flows in its datapath.
    pub flow_limit: u64,
    /// Duration.
    pub duration: Nanos,
}

impl CacheFill {
    /// Returns the values by name, as counters of the following trial.
    pub fn counts(&self) -> [(&'static str, u64); 7] {
        [
            ("warm.passes", self.passes),
            ("warm.frames", self.frames),
            ("warm.last_pass.upcalls", self.upcalls),
            ("warm.last_pass.upcalls_lost", self.upcalls_lost),
            ("warm.flows", self.flows),
            ("warm.flow_limit", self.flow_limit),
            ("warm.duration_ns", self.duration.0),
        ]
    }
}

/// Counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Frames lost so far, by place, part and reason.
    pub drops: BTreeMap<(LossPlace, String, String), u64>,
    /// The target's own counters by name.
    pub counters: BTreeMap<String, u64>,
    /// Work of its polling threads so far, if it reports it.
    pub work: Option<PollingWork>,
    /// CPU time used so far, by name, in nanoseconds, and the core to which the thread is pinned.
    pub cpu_ns: BTreeMap<String, (u64, Option<u32>)>,
    /// Resident memory of its processes, huge pages included, if it has any.
    pub memory_bytes: Option<u64>,
}

impl Snapshot {
    /// Adds up the memory of these processes.
    pub fn add_memory(&mut self, processes: &[u32]) {
        let each: Vec<u64> =
            processes.iter().filter_map(|&pid| testbed::proc::memory_bytes(pid)).collect();
        self.memory_bytes = (!each.is_empty()).then(|| each.iter().sum());
    }

    /// Adds the counters of one of several switches, under its name.
    pub fn add_of(&mut self, switch: &str, counters: BTreeMap<String, u64>) {
        let named = counters.into_iter().map(|(name, value)| (format!("{switch}.{name}"), value));
        self.add(named.collect());
    }

    /// Adds counters with dotted names, and returns whether the target reports losses.
    ///
    /// `ports.1.drops.REASON` and `drops.REASON` are frames that the target lost, and so are some [events of Open
    /// vSwitch](lost_in_ovs) and [packet-ins that no controller received](lost_packet_ins). All others are plain
    /// counters.
    pub fn add(&mut self, counters: BTreeMap<String, u64>) -> bool {
        let mut tells = false;
        for (name, value) in counters {
            if let Some((at, why)) = lost_in_ovs(&name) {
                self.drops.insert((LossPlace::Target, at.into(), why.into()), value);
                continue;
            }
            if let Some((at, why)) = lost_packet_ins(&name) {
                self.drops.insert((LossPlace::Target, at, why.into()), value);
            }
            tells |= name.starts_with("ports.");
            let lost = match name.rsplit_once('.') {
                Some((path, reason)) => path.strip_suffix("drops").map(|at| (at, reason)),
                None => None,
            };
            match lost {
                Some((at, reason)) => {
                    let at = if at.is_empty() { "forwarder" } else { at.trim_end_matches('.') };
                    let key = (LossPlace::Target, at.to_string(), reason.to_string());
                    self.drops.insert(key, value);
                }
                None => {
                    self.counters.insert(name, value);
                }
            }
        }
        tells
    }
}

/// Returns where and why Open vSwitch lost the frames of this event counter, if it counts lost
/// frames.
///
/// Lost frames are those that its datapath dropped, and packet-ins that found the queue of a
/// hundred to the connection full (`rconn_send_with_limit`). Frames that an action handed to user
/// space, mostly to a controller, are not: the datapath counts each of them as dropped because it
/// does not see what user space does with them.
fn lost_in_ovs(name: &str) -> Option<(&'static str, &str)> {
    match name {
        "coverage.rconn_overflow" => Some((CONTROL_CHANNEL, "queue_to_controller_full")),
        "coverage.datapath_drop_userspace_action_error" => None,
        _ => name.strip_prefix(DATAPATH_DROPS).map(|why| ("datapath", why)),
    }
}

/// Returns where and why our switch lost the frames of this counter, if no controller received their packet-ins.
fn lost_packet_ins(name: &str) -> Option<(String, &'static str)> {
    let (switch, counter) = name.split_at(name.find("controllers.")?);
    let why = match counter {
        "controllers.frames_lost" => "queue_to_controller_full",
        "controllers.frames_unheard" => "no_controller",
        "controllers.frames_over_rate" => "packet_in_rate_exceeded",
        _ => return None,
    };
    Some((format!("{switch}{CONTROL_CHANNEL}"), why))
}

/// Returns whether a loss is that of a packet-in. The frame itself may still have left by a port.
pub fn is_packet_in(at: &str, reason: &str) -> bool {
    at.ends_with(CONTROL_CHANNEL) || reason == DropReason::EventQueueFull.name()
}

/// Part of a switch that loses packet-ins.
const CONTROL_CHANNEL: &str = "control channel";

/// Prefix of Open vSwitch's datapath drop counters.
const DATAPATH_DROPS: &str = "coverage.datapath_drop_";

/// Returns the work of our polling threads, from their counters.
fn work_of_planimeter(counters: &BTreeMap<String, u64>) -> Option<PollingWork> {
    let count = |name: &str| counters.get(name).copied();
    let frames = (1..=PORTS_MAX).filter_map(|port| count(&format!("ports.{port}.rx_frames"))).sum();
    let (cycles_busy, cycles_idle) = (count("cycles_busy")?, count("cycles_idle")?);
    Some(PollingWork { cycles_busy, cycles_idle, frames })
}

/// Place of a loss, as an orderable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossPlace {
    /// The target itself.
    Target,
    /// The kernel around it.
    Kernel,
}

impl From<LossPlace> for DropLocation {
    fn from(place: LossPlace) -> DropLocation {
        match place {
            LossPlace::Target => DropLocation::Target,
            LossPlace::Kernel => DropLocation::Kernel,
        }
    }
}

/// Error of a target.
#[derive(Debug)]
pub enum TargetError {
    /// A missing requirement of the machine, and how to get it.
    Need(String),
    /// The target cannot hold this state: what, and why.
    CannotHold(String),
    /// An operation failed.
    Failed {
        /// The operation.
        doing: String,
        /// The failure.
        why: String,
    },
}

impl TargetError {
    /// Creates the error of a failed operation.
    pub fn failed(doing: impl Into<String>, why: impl std::fmt::Display) -> Self {
        TargetError::Failed { doing: doing.into(), why: why.to_string() }
    }
}

impl std::fmt::Display for TargetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TargetError::Need(what) => f.write_str(what),
            TargetError::CannotHold(what) => f.write_str(what),
            TargetError::Failed { doing, why } => write!(f, "{doing}: {why}"),
        }
    }
}

impl std::error::Error for TargetError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_distinguished_from_other_counters_by_name() {
        let mut snapshot = Snapshot::default();
        let counters =
            [("drops.no_match", 3), ("ports.1.drops.too_long", 2), ("ports.1.rx_frames", 9)];
        let tells = snapshot.add(counters.map(|(name, n)| (name.to_string(), n)).into());
        assert!(tells);
        let lost = |at: &str, why: &str| (LossPlace::Target, at.to_string(), why.to_string());
        assert_eq!(
            snapshot.drops,
            [(lost("forwarder", "no_match"), 3), (lost("ports.1", "too_long"), 2)].into()
        );
        assert_eq!(snapshot.counters, [("ports.1.rx_frames".to_string(), 9)].into());
    }

    #[test]
    fn packet_ins_that_no_controller_received_are_losses() {
        let mut snapshot = Snapshot::default();
        let names = ["frames", "frames_lost", "frames_unheard", "frames_over_rate", "news_lost"];
        let counters = names.map(|name| (format!("controllers.{name}"), 7));
        snapshot.add(counters.clone().into());
        snapshot.add_of("s1", counters.clone().into());
        let lost = |at: &str, why: &str| ((LossPlace::Target, at.into(), why.into()), 7);
        let wanted: BTreeMap<(LossPlace, String, String), u64> =
            ["control channel", "s1.control channel"]
                .into_iter()
                .flat_map(|at| {
                    let whys =
                        ["queue_to_controller_full", "no_controller", "packet_in_rate_exceeded"];
                    whys.map(|why| lost(at, why))
                })
                .collect();
        assert_eq!(snapshot.drops, wanted);
        assert_eq!(snapshot.counters.len(), 2 * names.len(), "they stay counters, too");
        assert!(wanted.keys().all(|(_, at, why)| is_packet_in(at, why)));
        assert!(is_packet_in("forwarder", "event_queue_full"));
        assert!(!is_packet_in("forwarder", "output_queue_full"));
    }

    #[test]
    fn lost_frames_in_open_vswitch_events_are_losses() {
        let mut snapshot = Snapshot::default();
        let handed_over = "datapath_drop_userspace_action_error";
        let events = ["rconn_overflow", "datapath_drop_upcall_error", "rconn_sent", handed_over];
        let counters = events.map(|event| (format!("coverage.{event}"), 7));
        assert!(!snapshot.add(counters.into()));
        let lost = |at: &str, why: &str| (LossPlace::Target, at.to_string(), why.to_string());
        let wanted = [
            (lost("control channel", "queue_to_controller_full"), 7),
            (lost("datapath", "upcall_error"), 7),
        ];
        assert_eq!(snapshot.drops, wanted.into());
        let plain = ["rconn_sent", handed_over].map(|event| (format!("coverage.{event}"), 7));
        assert_eq!(snapshot.counters, plain.into());
    }
}
