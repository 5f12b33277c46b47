//! DPDK programs over shared memory: frames pass and are counted, and no process, file or huge page
//! is left behind.

use crate::fixture::{PATIENCE, Root, in_time, processes_with, wiring};
use crate::openvswitch::{connect, greet, install};
use std::path::Path;
use testbed::affinity::Cores;
use testbed::hugepages::HugePages;
use testbed::peer::dpdk::Device;
use testbed::peer::ovs_dpdk::{OvsDpdk, Ports, Tuning};
use testbed::peer::testpmd::Testpmd;
use testbed::peer::{ControlInterface, Peer, Plan, Station};
use testbed::{Lab, LabError, Site, Wiring};

/// Number of frames that must pass.
const FRAMES: u64 = 10_000;

/// Returns the wiring of the generator, with the target's and the tester's cores exchanged.
fn turned(wiring: &Wiring) -> Wiring {
    let Cores { instrument, target } = wiring.cores.clone();
    let cores = Cores { target: instrument, instrument: target };
    Wiring { cores, ..wiring.clone() }
}

/// Returns a source at port 1 and a sink at port 2 of a listening target.
fn generator(site: &Site, end: fn(std::path::PathBuf) -> Device, queues: u32) -> Testpmd {
    let devices =
        vec![Device::Source { frame: 60 }, end(site.socket(1)), end(site.socket(2)), Device::Sink];
    Testpmd::joining(devices, queues)
}

fn started(peer: &mut dyn Peer, site: &Site) -> ControlInterface {
    peer.start(site).unwrap();
    peer.ready(PATIENCE).unwrap()
}

/// Returns the machine's number of huge pages. Other processes may change it, so it can only be
/// compared over short times.
fn reserved() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap();
    text.trim().parse().unwrap()
}

fn count(peer: &mut dyn Peer, name: &str) -> u64 {
    let counters = peer.counters().unwrap();
    *counters.get(name).unwrap_or_else(|| panic!("{name} in {counters:?}"))
}

pub fn testpmd_forwards() {
    let root = Root::new();
    let lab = root.lab();
    let (own, others) = (wiring(), turned(&wiring()));
    let site = lab.memory("pmd", &own).unwrap();
    let mut testpmd = Testpmd::forwarding();
    assert_eq!(started(&mut testpmd, &site), ControlInterface::Nothing);
    assert!(pages_of(&lab) > 0);
    let near = lab.memory("gen", &others).unwrap();
    let mut sender = generator(&site, Device::MemifClient, 1);
    started(&mut sender, &near);
    assert!(in_time(|| count(&mut sender, "port.3.received") >= FRAMES));
    sender.check().unwrap();
    testpmd.check().unwrap();
    let plan = Plan { stations: vec![Station { mac: [2; 6], port: 1 }], ..Plan::default() };
    assert!(matches!(testpmd.install(&site, &plan), Err(LabError::Argument { .. })));
    let described = testpmd.describe();
    assert!(described.version.starts_with("DPDK "), "{described:?}");
    assert_eq!(testpmd.processes().len(), 1);
    // Its final output accounts for every received frame.
    testpmd.stop().unwrap();
    let taken = count(&mut testpmd, "port.1.received");
    let given = count(&mut testpmd, "port.2.sent");
    assert!(given >= FRAMES, "{given}");
    assert_eq!(taken, given + count(&mut testpmd, "port.2.transmit_dropped"));
    // The memif peer may end with it.
    drop(sender);
    leaves_nothing(&root, lab, vec![site, near]);
}

/// Open vSwitch receives and sends; of its two rings per port and direction it sends on the second.
pub fn ovs_forwards_over_memif() {
    ovs_forwards(Ports::Memif, Device::MemifClient, 2);
}

pub fn ovs_forwards_over_vhost() {
    ovs_forwards(Ports::VhostClient, Device::VirtioUserServer, 1);
    // The reverse socket roles.
    ovs_forwards(Ports::VhostServer, Device::VirtioUser, 1);
}

fn ovs_forwards(ports: Ports, end: fn(std::path::PathBuf) -> Device, queues: u32) {
    let root = Root::new();
    let lab = root.lab();
    let (own, others) = (wiring(), turned(&wiring()));
    let site = lab.memory("ovs", &own).unwrap();
    let mut ovs =
        OvsDpdk::new(ports, Tuning::for_many_flows(true, false)).with_receive_queues(queues);
    let mut stream = connect(started(&mut ovs, &site));
    greet(&mut stream);
    install(&mut stream);
    let near = lab.memory("gen", &others).unwrap();
    let mut sender = generator(&site, end, queues);
    started(&mut sender, &near);
    let through = in_time(|| {
        ovs.check().unwrap();
        count(&mut sender, "port.3.received") >= FRAMES
    });
    assert!(through, "{:?}", ovs.counters());
    let account = ovs.account().unwrap();
    let core = own.cores.target.first().copied();
    let thread = account.threads.iter().find(|thread| thread.core == core);
    let thread = *thread.unwrap_or_else(|| panic!("no thread polls on {core:?}: {account:?}"));
    assert!(thread.packets_received >= FRAMES, "{thread:?}");
    assert!(thread.cycles_busy > 0);
    let found = thread.simple_match_hits + thread.emc_hits + thread.megaflow_hits;
    let found = found + thread.phwol_hits + thread.smc_hits;
    // The counters increase while they are read one after the other.
    let accounted = found + thread.upcalls + thread.upcalls_lost;
    assert!(accounted.abs_diff(thread.packets_received) <= 1024, "{thread:?}");
    assert!(account.polling.packets_sent >= FRAMES, "{:?}", account.polling);
    assert!(account.flows.limit > 0, "{:?}", account.flows);
    let counters = ovs.counters().unwrap();
    let counted = ports != Ports::VhostServer;
    assert_eq!(counters.contains_key("port.1.received"), counted, "{counters:?}");
    assert!(!counted || counters.get("port.1.received") >= Some(&FRAMES), "{counters:?}");
    assert!(!counted || counters.get("port.2.sent") >= Some(&FRAMES), "{counters:?}");
    assert!(counters.contains_key("datapath.flow_limit"), "{counters:?}");
    let described = ovs.describe();
    assert!(described.version.contains("DPDK"), "{described:?}");
    assert_eq!(described.settings["emc-insert-inv-prob"], "1");
    ovs.stop().unwrap();
    drop(sender);
    leaves_nothing(&root, lab, vec![site, near]);
}

/// Both kinds of vhost-user and both settings start, and a peer can be restarted at its site.
pub fn ovs_runs_in_every_configuration() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.memory("ovs", &wiring()).unwrap();
    let path = site.path.display().to_string();
    let tuned = Tuning::for_many_flows(false, true);
    for (ports, tuning) in [
        (Ports::Memif, Tuning::default()),
        (Ports::Memif, tuned),
        (Ports::VhostServer, tuned),
        (Ports::VhostClient, Tuning::default()),
    ] {
        let mut ovs = OvsDpdk::new(ports, tuning);
        let mut stream = connect(started(&mut ovs, &site));
        greet(&mut stream);
        assert_eq!(processes_with(&path).len(), 2, "server and switch");
        let listens = site.socket(1).exists();
        assert_eq!(listens, ports != Ports::VhostClient, "{ports:?}");
        // Dropped without a stop, it leaves its sockets for the next start to remove.
        drop(ovs);
        assert_eq!(processes_with(&path), Vec::<u32>::new());
        assert_eq!(pages_of(&lab), 0);
    }
    leaves_nothing(&root, lab, vec![site]);
}

/// Reservations change the machine's number of pages, and two add up.
pub fn huge_pages_are_released() {
    let root = Root::new();
    let lab = root.lab();
    let pages = reserved();
    let one = HugePages::reserve(8, &lab.folder).unwrap();
    let two = HugePages::reserve(16, &lab.folder).unwrap();
    assert_eq!(reserved(), pages + one.added() + two.added());
    assert!(two.added() > one.added() && one.added() > 0);
    assert_eq!(pages_of(&lab), (one.added() + two.added()) as i64);
    drop(one);
    assert_eq!(reserved(), pages + two.added());
    drop(two);
    assert_eq!(reserved(), pages);
    assert_eq!(pages_of(&lab), 0);
    let error = HugePages::reserve(1 << 40, &lab.folder).unwrap_err();
    assert!(matches!(error, LabError::Need(_)), "{error}");
    assert!(error.to_string().contains("huge pages"), "{error}");
    assert_eq!(reserved(), pages, "unavailable pages are not requested");
}

/// Runs Open vSwitch on DPDK, reports this, and waits to be killed.
pub fn child(root: &Path) {
    let lab = Lab::open(root).unwrap();
    let site = lab.memory("doomed", &wiring()).unwrap();
    let mut ovs = OvsDpdk::new(Ports::Memif, Tuning::default());
    started(&mut ovs, &site);
    println!("up");
    std::thread::sleep(PATIENCE);
}

pub fn huge_pages_of_a_killed_run_are_released() {
    let root = Root::new();
    crate::leftovers::killed("killed-dpdk", &root.0);
    let pages = reserved();
    let lab = root.lab();
    assert!(lab.swept.pages > 0, "a killed run cannot release anything");
    assert_eq!(reserved() + lab.swept.pages, pages);
}

/// Returns the pages of a run from its record.
fn pages_of(lab: &Lab) -> i64 {
    let text = std::fs::read_to_string(lab.folder.path().join("hugepages")).unwrap();
    text.lines().map(|line| line.parse::<i64>().unwrap()).sum()
}

fn leaves_nothing(root: &Root, lab: Lab, sites: Vec<Site>) {
    let paths: Vec<String> = sites.iter().map(|site| site.path.display().to_string()).collect();
    // The generator's pages are released too, because every program was dropped before.
    assert_eq!(pages_of(&lab), 0);
    drop((sites, lab));
    for path in paths {
        assert_eq!(processes_with(&path), Vec::<u32>::new());
    }
    assert_eq!(std::fs::read_dir(&root.0).unwrap().count(), 0);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&root.0.display().to_string()), "{mounts}");
}
