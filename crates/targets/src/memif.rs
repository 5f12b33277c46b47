//! Targets in processes of their own, connected to the tester by shared memory (memif).
//!
//! The tester provides the memory of every port, and the target listens. Without a target, the
//! tester's two ports are the ends of one wire. A frame that finds a full ring is lost on the link,
//! as on a cable. Polling data planes never leave their core, so inactive targets are stopped and
//! only the measured one runs. Flow caches are filled before each trial (`warming`).

pub mod cache_fill;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use netio::afpacket::Options;
use netio::port::Port;
use netio::wrap::tail_drop::TailDrop;
use os::clock;
use packet::frame::Batch;
use packet::time::Nanos;
use record::PollingWork;
use record::RING_TO_TESTER_FULL;
use testbed::affinity::Cores;
use testbed::peer::Peer;
use testbed::peer::direct::Direct;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports, Tuning};
use testbed::peer::planimeter::{Mode, Planimeter};
use testbed::peer::testpmd::Testpmd;
use testbed::{Lab, Site, Wiring};
use tester::rig::RigError;
use tester::rig::live::LiveRig;
use tester::stream::Rate;
use tester::trial::Trial;

use super::model;
use super::name::TargetKind;
use super::process::{Cable, ProcessTarget};
use super::veth::{
    AGEING, RIG_KEY, ROUTER_CACHE_ENTRIES, bridge_words, lab_error, role, router_addresses,
};
use super::{CacheFill, HostPaths, LossPlace, Snapshot, TargetError, work_of_planimeter};
use cache_fill::{FillPass, FillProgress};
use workload::Technology;
use workload::parameter::Parameters;
use workload::parameter::control::Capture;
use workload::{Addresses, Setup};

/// Time limit for a target to start, and for a wire to carry frames.
const PATIENCE: Duration = Duration::from_secs(20);

/// Busy-poll time of our switch after the last frame, in microseconds; it spans a trial's pauses.
const SPIN_US: &str = "1000000";

/// Interval at which the tester checks progress while caches are filled; in between, the process
/// that fills them has the core.
pub(super) const EASE: Nanos = Nanos::from_millis(1);

/// Counter of upcalls that failed. Either the frame was dropped, or it was forwarded and the
/// datapath had no room for its flow. The drop counters distinguish the two cases.
const FAILED_UPCALLS: &str = "datapath.miss_with_failed_upcall";

/// Delay of those drop counters, which threads publish once a second.
const COVERAGE_LAG: Nanos = Nanos::from_millis(1500);

/// Creates targets over shared memory.
pub struct MemifBench {
    lab: Lab,
    wiring: Wiring,
    /// This program; it is started for this project's targets.
    program: PathBuf,
    parameters: Parameters,
    stop: Arc<AtomicBool>,
    /// Number of sites created so far; it makes their names unique.
    sites: AtomicU32,
}

impl MemifBench {
    /// Removes leftovers of crashed runs below the root, and starts a new run folder there.
    pub fn open(
        surroundings: &HostPaths,
        parameters: &Parameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, TargetError> {
        let control_tcp = parameters.control.capture != Capture::No;
        let wiring = Wiring { control_tcp, ..Wiring::of_machine().map_err(lab_error)? };
        let lab = Lab::open(&surroundings.root).map_err(lab_error)?;
        let (program, parameters) = (surroundings.program.clone(), parameters.clone());
        let stop = Arc::clone(stop);
        Ok(MemifBench { lab, wiring, program, parameters, stop, sites: AtomicU32::new(0) })
    }

    /// Returns the core assignment.
    pub fn cores(&self) -> &Cores {
        &self.wiring.cores
    }

    /// Returns the settings that all targets share, for the record.
    pub fn settings(&self) -> Vec<(String, String)> {
        vec![
            ("cores_instrument".into(), format!("{:?}", self.wiring.cores.instrument)),
            ("cores_target".into(), format!("{:?}", self.wiring.cores.target)),
            ("warm_s".into(), self.parameters.warm_s.to_string()),
        ]
    }

    /// Starts a target and connects the tester's ports to it: one output and `inputs` inputs.
    pub fn target(&self, kind: TargetKind, inputs: u8) -> Result<ProcessTarget, TargetError> {
        let number = self.sites.fetch_add(1, Ordering::Relaxed);
        let wiring = Wiring { ports: u32::from(inputs) + 1, ..self.wiring.clone() };
        let site = self.lab.memory(&format!("t{number}"), &wiring).map_err(lab_error)?;
        let mut peer = self.peer(kind)?;
        peer.start(&site).map_err(lab_error)?;
        let access = peer.ready(PATIENCE).map_err(lab_error)?;
        let rig = rig(kind, peer.as_mut(), &site, &self.stop)?;
        let cable = Cable::Memif { failed_upcalls: 0 };
        ProcessTarget::new(kind, (peer, access), site, rig, cable, (&self.parameters, &self.stop))
    }

    fn peer(&self, kind: TargetKind) -> Result<Box<dyn Peer>, TargetError> {
        let (kind, own) = match kind {
            TargetKind::Build(build) => (build.kind(), build.program()),
            kind => (kind, self.program.as_path()),
        };
        Ok(match kind {
            TargetKind::Switch => Box::new(Planimeter::new(own, Mode::Switch, self.arguments())),
            TargetKind::Bridge | TargetKind::BridgeFewBuckets => {
                let mut words = bridge_words(kind, self.parameters.macs_max);
                words.extend(["--busy-poll-us".into(), SPIN_US.into()]);
                Box::new(Planimeter::new(own, Mode::Bridge { ageing: AGEING }, words))
            }
            TargetKind::Model(target) => {
                let told = ["--model", target.source()].map(OsString::from);
                let words = self.arguments().into_iter().chain(told).collect();
                let polling =
                    ["--busy-poll-us", SPIN_US, "--model", target.source()].map(OsString::from);
                match target.mode() {
                    model::Mode::OpenFlow => Box::new(Planimeter::new(own, Mode::Switch, words)),
                    model::Mode::Legacy => {
                        let mode = Mode::Bridge { ageing: AGEING };
                        Box::new(Planimeter::new(own, mode, polling.to_vec()))
                    }
                }
            }
            TargetKind::ProGfe(target) => {
                let (program, role) = (target.file().into(), role(target));
                let words = vec!["--busy-poll-us".into(), SPIN_US.into()];
                Box::new(Planimeter::new(own, Mode::ProGfe { program, role }, words))
            }
            TargetKind::Tagger => {
                let words = vec!["--busy-poll-us".into(), SPIN_US.into()];
                Box::new(Planimeter::new(own, Mode::Tagger, words))
            }
            TargetKind::Router => Box::new(router(own, 0)),
            TargetKind::RouterCache => Box::new(router(own, ROUTER_CACHE_ENTRIES)),
            TargetKind::Testpmd => Box::new(Testpmd::forwarding()),
            TargetKind::Direct => Box::new(Direct::default()),
            kind if kind.is_dpdk() => Box::new(OvsDpdk::new(Ports::Memif, tuning(kind))),
            other => {
                let what = format!("{} does not support link memif", other.name());
                return Err(TargetError::CannotHold(what));
            }
        })
    }

    fn arguments(&self) -> Vec<OsString> {
        let [exact, wildcard] = self.parameters.table_sizes().map(|size| size.to_string());
        let words =
            ["--exact-entries", &exact, "--wildcard-entries", &wildcard, "--busy-poll-us", SPIN_US];
        words.into_iter().map(OsString::from).collect()
    }
}

/// Returns the arguments of the router.
fn router(program: &Path, cache: usize) -> Planimeter {
    let mut addresses = router_addresses();
    addresses.truncate(2);
    let mode = Mode::Router { addresses, cache };
    Planimeter::new(program, mode, vec!["--busy-poll-us".into(), SPIN_US.into()])
}

/// Connects the tester's ports to a target that is ready.
pub(super) fn rig(
    kind: TargetKind,
    peer: &mut dyn Peer,
    site: &Site,
    stop: &Arc<AtomicBool>,
) -> Result<LiveRig, TargetError> {
    testbed::affinity::pin(0, &site.wiring.cores.instrument).map_err(lab_error)?;
    let mut ports = ports_of(kind, site)?;
    connect(&mut ports, peer)?;
    Ok(LiveRig::new(ports, RIG_KEY, Arc::clone(stop)))
}

/// Opens the tester's two ports to a target, or to each other.
fn ports_of(kind: TargetKind, site: &Site) -> Result<Vec<Box<dyn Port>>, TargetError> {
    // With one polling thread, Open vSwitch sends on the second of two rings.
    let is_ovs = kind.technology() == Technology::OpenFlow && !kind.is_planimeter();
    let rings = if is_ovs { 2 } else { 1 };
    let ends = match kind {
        TargetKind::Direct => vec![(1, "server"), (1, "client")],
        _ => (1..=site.wiring.ports).map(|number| (number, "client")).collect(),
    };
    let open = |(number, role): (u32, &str)| {
        let socket = site.socket(number);
        let spec = format!("memif:{},role={role},rx={rings},tx=1", socket.display());
        let port = netio::open::open(&spec, &Options::monitor())
            .map_err(|error| TargetError::failed("cannot open the tester's ports", error))?;
        Ok(Box::new(TailDrop::new(port)) as Box<dyn Port>)
    };
    ends.into_iter().map(open).collect()
}

/// Runs the handshake of the ports with their peers until frames can pass.
fn connect(ports: &mut [Box<dyn Port>], peer: &mut dyn Peer) -> Result<(), TargetError> {
    let mut nothing = Batch::new(1);
    let deadline = clock::now().saturating_add(Nanos(PATIENCE.as_nanos() as u64));
    while !ports.iter().all(|port| port.has_link()) {
        for port in ports.iter_mut() {
            port.receive(&mut nothing, clock::now())
                .map_err(|error| TargetError::failed("cannot connect the tester's ports", error))?;
        }
        peer.check().map_err(lab_error)?;
        if clock::now() >= deadline {
            let why = format!("no link after {} s", PATIENCE.as_secs());
            return Err(TargetError::failed("cannot connect the tester's ports", why));
        }
        clock::sleep_until(clock::now().saturating_add(EASE));
    }
    Ok(())
}

/// Reads the counters of a target; `failed_upcalls` is their number at the last reading.
pub(super) fn read(
    kind: TargetKind,
    peer: &mut dyn Peer,
    failed_upcalls: &mut u64,
) -> Result<Snapshot, TargetError> {
    let mut counters = peer.counters().map_err(lab_error)?;
    let failed = counters.get(FAILED_UPCALLS).copied().unwrap_or(0);
    if *failed_upcalls != failed {
        *failed_upcalls = failed;
        clock::sleep_until(clock::now().saturating_add(COVERAGE_LAG));
        counters = peer.counters().map_err(lab_error)?;
    }
    Ok(told(kind, counters))
}

/// Returns the settings of Open vSwitch for this target.
pub(super) fn tuning(kind: TargetKind) -> Tuning {
    match kind {
        TargetKind::OvsDpdkEmcOn => Tuning::for_many_flows(true, false),
        TargetKind::OvsDpdkEmcOff => Tuning::for_many_flows(false, false),
        TargetKind::OvsDpdkSmcOn => Tuning::for_many_flows(false, true),
        _ => Tuning::default(),
    }
}

/// Returns whether a target caches decisions, so that it behaves differently after the first
/// packets of a flow.
pub(super) fn has_caches(kind: TargetKind) -> bool {
    kind.is_dpdk() && kind.technology() == Technology::OpenFlow
}

/// Returns a low-rate pass over all flows of a setup, with frames like the trial's.
pub(super) fn tour(setup: &Setup, addresses: &Addresses, trial: &Trial) -> Trial {
    let frame_bytes = trial.streams.first().map_or(64, |stream| stream.frame_bytes as u16);
    let rate = Rate::FramesPerSecond(cache_fill::RATE_PPS);
    Trial {
        catch_up_frames: u32::MAX,
        ..Trial::new(
            vec![setup.tour().stream(Technology::OpenFlow, addresses, frame_bytes, rate)],
            Nanos::ZERO,
            cache_fill::pass_duration(setup.flows()),
            cache_fill::DRAIN,
        )
    }
}

/// Fills the caches of a switch: repeats the pass until one is served wholly from the caches, or
/// `patience` ends.
pub(super) fn fill_caches(
    rig: &mut LiveRig,
    peer: &mut dyn Peer,
    tour: &Trial,
    patience: Nanos,
    stop: &AtomicBool,
) -> Result<Option<CacheFill>, TargetError> {
    let begun = clock::now();
    let mut warming = FillProgress::new(patience);
    let mut before = peer.counters().map_err(lab_error)?;
    loop {
        let report = match rig.run_low_priority(tour, EASE) {
            Ok(report) => report,
            // The next trial reports the interruption, too.
            Err(RigError::Interrupted) => return Ok(None),
            Err(error) => return Err(TargetError::failed("cannot fill caches", error)),
        };
        let after = peer.counters().map_err(lab_error)?;
        let pass = FillPass::between(report.total.offered, &before, &after);
        before = after;
        if let Some(warmed) = warming.after(pass, clock::now().since(begun)) {
            return Ok(Some(warmed));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
}

/// Splits a target's counters into frames lost by place and reason, and the rest.
pub(super) fn told(kind: TargetKind, counters: BTreeMap<String, u64>) -> Snapshot {
    let mut snapshot = Snapshot { work: work(kind, &counters), ..Snapshot::default() };
    let lost = |at: &str, why: &str| (LossPlace::Target, at.to_string(), why.to_string());
    match kind {
        kind if kind.is_planimeter() => {
            snapshot.add(counters);
            let drops = std::mem::take(&mut snapshot.drops).into_iter();
            let renamed = drops.map(|((place, at, why), frames)| {
                let why = if why == "transmit_full" { RING_TO_TESTER_FULL.into() } else { why };
                ((place, at, why), frames)
            });
            snapshot.drops = renamed.collect();
        }
        TargetKind::Testpmd => {
            // Frames that it received and could not send appear in its counters only when it ends.
            let count = |name: &str| counters.get(name).copied().unwrap_or(0);
            for (from, to) in [("port.1", "port.2"), ("port.2", "port.1")] {
                let taken = count(&format!("{from}.received"));
                let unsent = taken.saturating_sub(count(&format!("{to}.sent")));
                snapshot.drops.insert(lost(to, RING_TO_TESTER_FULL), unsent);
            }
            snapshot.counters = counters;
        }
        _ => {
            for (name, value) in counters {
                let port = name.strip_prefix("port.").and_then(|rest| rest.split_once('.'));
                match (super::lost_in_ovs(&name), port) {
                    (Some((at, why)), _) => {
                        snapshot.drops.insert(lost(at, why), value);
                    }
                    (_, Some((port, "transmit_dropped"))) => {
                        let at = format!("port.{port}");
                        snapshot.drops.insert(lost(&at, RING_TO_TESTER_FULL), value);
                    }
                    (_, Some((port, why @ ("receive_dropped" | "receive_errors")))) => {
                        snapshot.drops.insert(lost(&format!("port.{port}"), why), value);
                    }
                    _ => {}
                }
                // Open vSwitch has a hundred internal event counters, which are of no use to a
                // reader.
                if !name.starts_with("coverage.") {
                    snapshot.counters.insert(name, value);
                }
            }
        }
    }
    snapshot
}

/// Returns the work of the polling thread. The counters of Open vSwitch sum frames and cycles over
/// all its threads, where only one of them polls.
fn work(kind: TargetKind, counters: &BTreeMap<String, u64>) -> Option<PollingWork> {
    let count = |name: &str| counters.get(name).copied();
    if kind.is_planimeter() {
        return work_of_planimeter(counters);
    }
    Some(PollingWork {
        cycles_busy: count("datapath.processing_cycles")?,
        cycles_idle: count("datapath.idle_cycles")?,
        frames: count("datapath.packets_received")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(kind: TargetKind, counters: &[(&str, u64)]) -> Vec<(String, String, u64)> {
        let counters = counters.iter().map(|(name, n)| ((*name).to_string(), *n)).collect();
        let lost = told(kind, counters).drops.into_iter().filter(|(_, frames)| *frames > 0);
        lost.map(|((_, at, why), frames)| (at, why, frames)).collect()
    }

    #[test]
    fn each_kind_of_target_reports_its_losses() {
        let one = |at: &str, why: &str, n| vec![(at.to_string(), why.to_string(), n)];
        let testpmd = [("port.1.received", 10), ("port.2.sent", 7), ("port.1.sent", 0)];
        assert_eq!(counted(TargetKind::Testpmd, &testpmd), one("port.2", RING_TO_TESTER_FULL, 3));
        let ours = [("ports.2.drops.transmit_full", 5), ("ports.1.rx_frames", 9)];
        assert_eq!(counted(TargetKind::Switch, &ours), one("ports.2", RING_TO_TESTER_FULL, 5));
        // A failed upcall alone is no loss.
        let ovs = [(FAILED_UPCALLS, 4), ("coverage.x", 1), ("coverage.datapath_drop_why", 3)];
        assert_eq!(counted(TargetKind::OvsDpdk, &ovs), one("datapath", "why", 3));
        let ovs = [("port.2.transmit_dropped", 6), ("port.2.sent", 1)];
        assert_eq!(counted(TargetKind::OvsDpdkEmcOn, &ovs), one("port.2", RING_TO_TESTER_FULL, 6));
    }

    #[test]
    fn cycles_are_reported_with_their_frames() {
        let read = |kind, counters: &[(&str, u64)]| {
            let counters = counters.iter().map(|(name, n)| ((*name).to_string(), *n)).collect();
            told(kind, counters).work
        };
        let wanted = Some(PollingWork { cycles_busy: 30, cycles_idle: 70, frames: 5 });
        let ours = [
            ("cycles_busy", 30),
            ("cycles_idle", 70),
            ("ports.1.rx_frames", 4),
            ("ports.2.rx_frames", 1),
        ];
        assert_eq!(read(TargetKind::Switch, &ours), wanted);
        let ovs = [
            ("datapath.processing_cycles", 30),
            ("datapath.idle_cycles", 70),
            ("datapath.packets_received", 5),
        ];
        assert_eq!(read(TargetKind::OvsDpdk, &ovs), wanted);
        assert_eq!(read(TargetKind::Testpmd, &ovs[..1]), None);
    }
}
