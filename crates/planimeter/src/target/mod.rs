//! What can be measured, and how it is joined to the instrument.
//!
//! A [`Target`] is one device with the instrument's ports on both its sides: it is programmed, it
//! is offered trials, and it is asked what it lost. Each link has a file; names are in `name`.

/// Names of targets and links.
pub mod name;
/// Which target is joined by which link.
pub mod links;
/// Several switches as one target.
pub mod network;
/// Targets that are programmed by a graph.
pub mod progfe;
/// VLAN tagging in the kernel.
mod linux_tagger;
/// Targets that another build of this program is.
pub mod build;
/// Targets that behave like models of hardware.
pub mod model;
/// Control channels that are captured on the wire.
mod tapped;
/// Devices of the user's own.
pub mod device;
/// Hosts at the ends of a site's links.
mod hosts;
/// SNMP agents beside targets.
mod witness;
/// Entries as an OpenFlow controller installs them.
pub mod program;
/// A controller beside a trial.
pub mod orders;
/// Frames that may still be under way when a trial is over.
mod overdue;
/// Programs that take each other's place while a trial is offered.
pub mod swaps;
/// A target made anew beside a trial.
mod reset;
/// Addresses that bridges learn from frames.
mod lesson;
/// A tester that is away now and then.
mod standstill;
/// Targets in this process, joined by rings of frames in memory.
pub mod memory;
/// Frames from memory for targets in this process.
mod replay;
/// Targets in namespaces of their own, joined by veth pairs.
pub mod veth;
/// Targets in processes of their own, joined by shared memory.
pub mod memif;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use instrument::account::Place;
use instrument::module::{Joined, Module, StageReport};
use instrument::rig::live::LiveRig;
use instrument::rig::{Rig, RigError};
use instrument::stage::Scene;
use instrument::stage::live::Dialer;
use instrument::trial::{Trial, TrialReport};
use lab::peer::Access;
use lab::pin::Cores;
use packet::time::Nanos;
use ports::channel::ChannelError;
use results::record::Work;

use crate::parameter::Parameters;
use crate::parameter::control::Capture;
use crate::workload::{Addresses, PORTS_MAX, Setup};
use name::{Link, TargetKind};

/// Where the program stands: what a bench needs to know of the world around it.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Our own program, to start our own targets by.
    pub program: PathBuf,
    /// The folder below which runs keep their sockets and processes.
    pub root: PathBuf,
}

/// Makes targets and joins them to the instrument.
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

/// The benches of a run: one for each link that its targets stand on.
pub struct Benches(Vec<(Link, Bench)>);

impl Benches {
    /// A bench for each of these links. `stop` ends trials in progress.
    pub fn open(
        links: &[Link],
        surroundings: &Surroundings,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let open = |link: &Link| Ok((*link, Bench::open(*link, surroundings, parameters, stop)?));
        links.iter().map(open).collect::<Result<_, _>>().map(Benches)
    }

    /// The bench of a link that the run uses.
    pub fn of(&mut self, link: Link) -> &mut Bench {
        let found = self.0.iter_mut().find(|(known, _)| *known == link);
        &mut found.expect("a bench is open for every link of the run").1
    }

    /// Each of them.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Bench> {
        self.0.iter_mut().map(|(_, bench)| bench)
    }

    /// Settings that targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.0.iter().flat_map(|(_, bench)| bench.settings()).collect()
    }
}

impl Bench {
    /// A bench for this link. `stop` ends trials in progress.
    pub fn open(
        link: Link,
        surroundings: &Surroundings,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        match link {
            Link::Memory | Link::Replay => {
                memory::MemoryBench::open(link, parameters, stop).map(Bench::Memory)
            }
            Link::Veth | Link::VethXdp => {
                let xdp = link == Link::VethXdp;
                veth::VethBench::open(surroundings, parameters, xdp, stop).map(Bench::Veth)
            }
            Link::Memif => {
                memif::MemifBench::open(surroundings, parameters, stop).map(Bench::Memif)
            }
            Link::Nic | Link::NicXdp => {
                device::bench::DeviceBench::open(link, parameters, stop).map(Bench::Nic)
            }
        }
    }

    /// Makes a target and joins it to the instrument by a port to send out of and so many to send into.
    pub fn target(&mut self, kind: TargetKind, inputs: u8) -> Result<Box<dyn Target>, TargetError> {
        match self {
            Bench::Memory(bench) => bench.target(kind, inputs),
            Bench::Veth(bench) => match kind {
                TargetKind::Network(target) => bench.network(target),
                kind => Ok(Box::new(bench.target(kind, inputs)?)),
            },
            Bench::Memif(_) if inputs > 1 && kind.is_dpdk() => {
                let what =
                    "over memif programs of DPDK have one port to send into: give --link veth:xdp";
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

    /// Whether the tester can be measured over it without a target.
    pub fn can_be_looped(&self) -> bool {
        !matches!(self, Bench::Nic(_))
    }

    /// Who runs where.
    pub fn cores(&self) -> &Cores {
        match self {
            Bench::Memory(bench) => bench.cores(),
            Bench::Veth(bench) => bench.cores(),
            Bench::Memif(bench) => bench.cores(),
            Bench::Nic(bench) => bench.cores(),
        }
    }

    /// Settings that all targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        match self {
            Bench::Memory(bench) => bench.settings(),
            Bench::Veth(bench) => bench.settings(),
            Bench::Memif(bench) => bench.settings(),
            Bench::Nic(bench) => bench.settings(),
        }
    }
}

/// Something that is measured.
pub trait Target {
    /// Which it is.
    fn kind(&self) -> TargetKind;

    /// Its version and the settings that matter, for the record.
    fn describe(&self) -> Description;

    /// What whoever watches the run should know of it.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it held may be gone: somebody else has had it meanwhile.
    fn forget(&mut self) {}

    /// The addresses at both ends of its links.
    fn addresses(&self) -> Addresses;

    /// Makes it hold what the setup says, and nothing else.
    fn install(&mut self, setup: &Setup) -> Result<(), TargetError>;

    /// Fills its caches for what it holds, so that it is met at work; what came of it, where it
    /// has any.
    fn warm(&mut self, _trial: &Trial) -> Result<Option<Warmed>, TargetError> {
        Ok(None)
    }

    /// Offers it a trial, and gives it the trial's orders meanwhile.
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError>;

    /// Carries a measurement module out on it. What it holds afterwards is the module's doing.
    fn stage(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError>;

    /// Carries a module out that asks its SNMP agent and leaves the target itself alone.
    fn ask(&mut self, module: &mut dyn Module) -> Result<StageReport, TargetError>;

    /// What it and the kernel around it have counted so far.
    fn snapshot(&mut self) -> Result<Snapshot, TargetError>;

    /// Has its turn from now on. Of targets that would take each other's time one is awake.
    fn wake(&mut self) {}

    /// Stands still until its next turn.
    fn rest(&mut self) {}

    /// Ends it and cleans up; what goes wrong then is told.
    fn stop(self: Box<Self>) -> Result<(), TargetError>;
}

/// What a target says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Its version.
    pub version: Option<String>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
}

impl From<lab::peer::Description> for Description {
    fn from(said: lab::peer::Description) -> Description {
        let version = Some(said.version).filter(|version| !version.is_empty());
        Description { version, settings: said.settings }
    }
}

/// A rig whose ports lead, in their order, to the ports of one switch from 1 on.
pub(crate) fn scene(ports: usize) -> Scene {
    let joined = |port: usize| Some(Joined { switch: 0, port: port as u32 + 1 });
    Scene { joined: (0..ports).map(joined).collect() }
}

/// Why a connection to a target that is no OpenFlow switch cannot be made.
pub(crate) fn no_controller() -> ChannelError {
    ChannelError::System {
        doing: "connecting to",
        what: "a target that is no OpenFlow switch".into(),
        error: std::io::ErrorKind::Unsupported.into(),
    }
}

/// Carries a module out in real time that has no connection.
fn alone(rig: &mut LiveRig, module: &mut dyn Module) -> StageReport {
    rig.stage(module, &Scene::default(), &mut |_, _| Err(no_controller()))
}

/// Carries a module out in real time on a target that is reached so. Where that has no controller, only a
/// module that wants none can be.
fn stage(
    rig: &mut LiveRig,
    access: &Access,
    module: &mut dyn Module,
    captured: Option<(&lab::Site, Capture)>,
) -> Result<StageReport, TargetError> {
    let scene = scene(rig.ports());
    let Access::OpenFlow { channel } = access else {
        return Ok(rig.stage(module, &scene, &mut |_, _| Err(no_controller())));
    };
    if let Some(site) = captured {
        return tapped::stage(rig, module, site);
    }
    let failed = |error| TargetError::failed(format!("connecting to {channel}"), error);
    let mut dialer = Dialer::new(&[channel.parse().map_err(failed)?]).map_err(failed)?;
    Ok(rig.stage(module, &scene, &mut |wanted, now| dialer.connect(wanted, now)))
}

/// The addresses where what joins instrument and target has none of its own.
pub(crate) const ADDRESSES: Addresses = Addresses::numbered([2, 0x49, 0, 0, 0], [2, 0x54, 0, 0, 0]);

/// How a target's caches were filled before a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warmed {
    /// Whether it is now as it stays; if not, what is measured next is not the target at work.
    pub is_steady: bool,
    /// Passes over every flow.
    pub passes: u64,
    /// Frames in all of them.
    pub frames: u64,
    /// Frames of the last pass that were found in no cache.
    pub upcalls: u64,
    /// Those of them that were lost.
    pub upcalls_lost: u64,
    /// Flows that its data path then held.
    pub flows: u64,
    /// How many it would hold at most.
    pub flow_limit: u64,
    /// How long it took.
    pub duration: Nanos,
}

impl Warmed {
    /// By name, as counters of the trial that follows.
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
    /// Frames lost so far: by whom, at which part, why.
    pub drops: BTreeMap<(LossPlace, String, String), u64>,
    /// The target's own counters by name.
    pub counters: BTreeMap<String, u64>,
    /// What its polling threads did so far, where they tell.
    pub work: Option<Work>,
    /// Processor time used so far by name, in nanoseconds, and the core that it is pinned to.
    pub cpu_ns: BTreeMap<String, (u64, Option<u32>)>,
    /// Resident memory of its processes, huge pages counted, where it has any of its own.
    pub memory_bytes: Option<u64>,
}

impl Snapshot {
    /// Adds up the memory of these processes.
    pub fn add_memory(&mut self, processes: &[u32]) {
        let each: Vec<u64> =
            processes.iter().filter_map(|&pid| lab::proc::memory_bytes(pid)).collect();
        self.memory_bytes = (!each.is_empty()).then(|| each.iter().sum());
    }

    /// Adds the counters of one of several switches, under its name.
    pub fn add_of(&mut self, switch: &str, counters: BTreeMap<String, u64>) {
        let named = counters.into_iter().map(|(name, value)| (format!("{switch}.{name}"), value));
        self.add(named.collect());
    }

    /// Adds counters with dotted names: `ports.1.drops.REASON` and `drops.REASON` are frames that
    /// the target lost, as are [events of Open vSwitch](lost_in_ovs), all others plain counters. Whether there were any
    /// of the former's kind of account, that is, whether the target tells its losses.
    pub fn add(&mut self, counters: BTreeMap<String, u64>) -> bool {
        let mut tells = false;
        for (name, value) in counters {
            if let Some((at, why)) = lost_in_ovs(&name) {
                self.drops.insert((LossPlace::Target, at.into(), why.into()), value);
                continue;
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

/// Where and why Open vSwitch lost the frames that this event of its inner life counts, if they are frames: those
/// which its datapath dropped, and those which it would have told its controller of, had the queue of a hundred before
/// that connection not been full (`rconn_send_with_limit`). Not those that an action handed to user space, a controller's
/// above all: its datapath calls each of them dropped, because what user space does with them is no more its business.
fn lost_in_ovs(name: &str) -> Option<(&'static str, &str)> {
    match name {
        "coverage.rconn_overflow" => Some(("control channel", "queue_to_controller_full")),
        "coverage.datapath_drop_userspace_action_error" => None,
        _ => name.strip_prefix(DATAPATH_DROPS).map(|why| ("datapath", why)),
    }
}

/// How Open vSwitch's names for what its datapath drops begin.
const DATAPATH_DROPS: &str = "coverage.datapath_drop_";

/// What our own polling threads say of their time, by their counters' names.
fn work_of_ours(counters: &BTreeMap<String, u64>) -> Option<Work> {
    let count = |name: &str| counters.get(name).copied();
    let frames = (1..=PORTS_MAX).filter_map(|port| count(&format!("ports.{port}.rx_frames"))).sum();
    let (cycles_busy, cycles_idle) = (count("cycles_busy")?, count("cycles_idle")?);
    Some(Work { cycles_busy, cycles_idle, frames })
}

/// Who lost frames, as an orderable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossPlace {
    /// The target itself.
    Target,
    /// The kernel around it.
    Kernel,
}

impl From<LossPlace> for Place {
    fn from(place: LossPlace) -> Place {
        match place {
            LossPlace::Target => Place::Target,
            LossPlace::Kernel => Place::Kernel,
        }
    }
}

/// Why a target cannot be measured.
#[derive(Debug)]
pub enum TargetError {
    /// Something that the machine lacks, and how to get it.
    Need(String),
    /// The target cannot hold this: what, and why.
    CannotHold(String),
    /// It did not do what it should: what was attempted, and what happened.
    Failed {
        /// What was attempted.
        doing: String,
        /// What happened.
        why: String,
    },
}

impl TargetError {
    /// An attempt that failed.
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
    fn losses_are_told_apart_from_counters_by_their_names() {
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
    fn events_of_open_vswitch_that_are_lost_frames_are_losses() {
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
