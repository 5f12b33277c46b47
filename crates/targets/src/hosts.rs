//! Host tasks at the ends of a site's links, in a thread that lives as long as one task.
//!
//! The measuring thread starts it. It stays on the tester's cores, as the tester's programs do; the
//! target's cores are left to the target.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netio::tagging::Tagging;
use os::clock;
use packet::time::Nanos;
use testbed::host::iperf::{self, Iperf, IperfResources, transfer};
use testbed::host::talk::{self, ExchangeSettings};
use testbed::host::{Host, HostSettings};
use testbed::veth::Interface;
use testbed::{LabError, Site};
use tester::module::host_tasks::{
    Exchange, HostTask, HostTaskResult, Load, Loaded, Program, RequestResponseReport,
    RequestResponseTest, Transfer, TransferResult,
};
use tester::rig::hosts::Hosts;

use super::veth::lab_error;

/// Interval at which a load is checked.
const POLL_INTERVAL: Nanos = Nanos::from_millis(10);

/// The hosts of a site whose link ends are in separate namespaces.
pub struct SiteHosts {
    ends: Vec<Interface>,
    place: IperfResources,
    run_host_task: Option<RunningTask>,
}

/// A task in progress.
struct RunningTask {
    stop: Arc<AtomicBool>,
    told: Receiver<HostTaskResult>,
    thread: JoinHandle<()>,
}

impl SiteHosts {
    /// Creates hosts for the ends of this site's links; no host is started yet.
    pub fn new(site: &Site) -> SiteHosts {
        let (path, folder) = (site.path.clone(), site.folder.clone());
        let place = IperfResources { path, folder, cores: site.wiring.cores.instrument.clone() };
        SiteHosts { ends: site.instrument.clone(), place, run_host_task: None }
    }
}

impl Hosts for SiteHosts {
    fn begin(&mut self, run_host_task: HostTask) {
        self.stop();
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (ends, place, seen) = (self.ends.clone(), self.place.clone(), Arc::clone(&stop));
        let work = move || {
            let done = match &run_host_task {
                HostTask::Talk(it) => talked(&ends, it, &seen),
                HostTask::Load(it) => loaded(&ends, it, &place, (&seen, &tell)),
                HostTask::Transfer(it) => transferred(&ends, it, &place, &seen),
            };
            // A closed channel means that the result is no longer wanted.
            let _ = tell.send(
                done.unwrap_or_else(|why| HostTaskResult::Failed(lab_error(why).to_string())),
            );
        };
        self.run_host_task = Some(RunningTask { stop, told, thread: thread::spawn(work) });
    }

    fn done(&mut self) -> Option<HostTaskResult> {
        let done = self.run_host_task.as_ref()?.told.try_recv().ok()?;
        if done != HostTaskResult::Loading {
            // The old task only has to end.
            self.stop();
        }
        Some(done)
    }

    fn stop(&mut self) -> Option<HostTaskResult> {
        let RunningTask { stop, told, thread } = self.run_host_task.take()?;
        stop.store(true, Ordering::Relaxed);
        let joined = thread.join();
        let last = told.try_iter().last();
        joined.map_or_else(
            |_| Some(HostTaskResult::Failed("a host's thread panicked".into())),
            |()| last,
        )
    }
}

impl Drop for SiteHosts {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Resolves both hosts of a task.
fn settled(
    ends: &[Interface],
    hosts: &[tester::module::host_tasks::Host; 2],
) -> Result<[Host; 2], LabError> {
    let settle = |place: usize| {
        let (host, other) = (hosts[place], hosts[1 - place]);
        let value = || (host.port + 1).to_string();
        let end = ends.get(host.port);
        let end = end.ok_or_else(|| LabError::Argument { what: "a port", value: value() })?;
        let settings = HostSettings {
            mac: host.mac,
            address: host.address,
            port: host.udp_port,
            peer: other.address,
            next_hop: host.next_hop,
        };
        Host::settle(end, settings)
    };
    Ok([settle(0)?, settle(1)?])
}

fn talked(
    ends: &[Interface],
    it: &RequestResponseTest,
    stop: &AtomicBool,
) -> Result<HostTaskResult, LabError> {
    let [client, server] = settled(ends, &it.hosts)?;
    let terms = ExchangeSettings {
        payload_bytes: it.payload_bytes,
        packets: it.packets,
        wait: Duration::from_nanos(it.wait.0),
        lost_in_a_row_max: it.lost_in_a_row_max,
    };
    let found = talk::talk(&client, &server, &terms, stop)?;
    let at = |moment: Duration| Nanos(moment.as_nanos() as u64);
    let row = |it: &talk::Exchange| Exchange {
        number: it.number,
        sent_at: at(it.sent_at),
        came_at: at(it.came_at),
        answered_at: at(it.answered_at),
        back_at: at(it.back_at),
    };
    let returned = found.returned.iter().map(row).collect();
    Ok(HostTaskResult::Talked(RequestResponseReport {
        returned,
        sent: found.sent,
        is_given_up: found.is_given_up,
    }))
}

fn loaded(
    ends: &[Interface],
    it: &Load,
    place: &IperfResources,
    (stop, tell): (&AtomicBool, &Sender<HostTaskResult>),
) -> Result<HostTaskResult, LabError> {
    let Program::Iperf3 = it.program;
    let [from, to] = settled(ends, &it.hosts)?;
    let terms = iperf::LoadSettings {
        payload_bytes: it.payload_bytes,
        bytes_per_s: it.bytes_per_s,
        limit: Duration::from_nanos(it.limit.0),
    };
    let mut iperf = Iperf::start(&from, &to, &terms, place)?;
    let mut is_told = false;
    let report = loop {
        if let Some(report) = iperf.ended()? {
            break report;
        }
        if stop.load(Ordering::Relaxed) {
            break iperf.stop()?;
        }
        if !is_told && iperf.is_sending()? {
            is_told = tell.send(HostTaskResult::Loading).is_ok();
        }
        clock::sleep_until(clock::now().saturating_add(POLL_INTERVAL));
    };
    let iperf::Report { program, sent, sent_bytes, seconds, lost } = report;
    Ok(HostTaskResult::Loaded(Loaded { program, sent, sent_bytes, seconds, lost }))
}

fn transferred(
    ends: &[Interface],
    it: &Transfer,
    place: &IperfResources,
    stop: &AtomicBool,
) -> Result<HostTaskResult, LabError> {
    let Program::Iperf3 = it.program;
    let [from, to] = settled(ends, &it.hosts)?;
    let _untagged = Untagged::at(&ends[it.hosts[1].port], &it.untags)?;
    let terms = transfer::TransferSettings {
        window_bytes: it.window_bytes,
        frame_bytes: it.frame_bytes,
        span: Duration::from_nanos(it.span.0),
    };
    let mut transfer = transfer::Transfer::start(&from, &to, &terms, place)?;
    let found = loop {
        if let Some(found) = transfer.ended()? {
            break found;
        }
        if stop.load(Ordering::Relaxed) {
            // The partial output of a stopped program is not a result.
            return Ok(HostTaskResult::Failed("stopped before the end".into()));
        }
        clock::sleep_until(clock::now().saturating_add(POLL_INTERVAL));
    };
    Ok(HostTaskResult::Transferred(TransferResult {
        program: found.program,
        congestion: found.congestion,
        received_bytes: found.received_bytes,
        seconds: found.seconds,
        retransmits: found.retransmits,
        timeouts: found.counts.timeouts,
        timeouts_spurious: found.counts.spurious,
        retransmits_fast: found.counts.resent_fast,
        window_bytes: found.window_bytes,
        congestion_bytes: found.congestion_bytes,
        round_trip_us: found.round_trip_us,
        segment_bytes: found.segment_bytes,
    }))
}

/// A program at an interface that removes VLAN tags from received frames, since small kernels have
/// no VLAN devices. It is detached on drop.
struct Untagged(Option<Interface>);

impl Untagged {
    fn at(end: &Interface, vlans: &[u16]) -> Result<Untagged, LabError> {
        if vlans.is_empty() {
            return Ok(Untagged(None));
        }
        let refused = |error| LabError::System {
            what: "load an untagging program",
            subject: "requires root, or CAP_BPF and CAP_NET_ADMIN".into(),
            error,
        };
        let program = Tagging::pop_in_place(vlans).map_err(refused)?;
        let mut netlink = end.namespace.netlink()?;
        netlink.ingress_program(end.index, program.descriptor(), "untag")?;
        Ok(Untagged(Some(end.clone())))
    }
}

impl Drop for Untagged {
    fn drop(&mut self) {
        if let Some(end) = &self.0 {
            // If the namespace is gone, so is the program.
            let _ = end.namespace.netlink().and_then(|mut it| it.ingress_clear(end.index));
        }
    }
}
