//! Hosts at the ends of cables: they communicate through a bridge and a router, and leave nothing
//! behind.

use crate::fixture::{PATIENCE, Root, in_time, wiring};
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testbed::host::iperf::transfer::{self, Transfer};
use testbed::host::iperf::{self, Iperf, IperfResources};
use testbed::host::talk::{ExchangeResult, ExchangeSettings, talk};
use testbed::host::{Host, HostSettings};
use testbed::peer::linux_bridge::LinuxBridge;
use testbed::peer::linux_router::LinuxRouter;
use testbed::peer::{Peer, Plan, PortAddress, PortNeighbor, PortRoute};
use testbed::{Lab, LabError, Mac, Site, Wiring};

const CLIENT: (Ipv4Addr, Mac) = (Ipv4Addr::new(10, 0, 1, 2), [2, 0x53, 0, 0, 0, 1]);
const SERVER: (Ipv4Addr, Mac) = (Ipv4Addr::new(10, 0, 2, 2), [2, 0x53, 0, 0, 0, 2]);

/// An address behind the router's second port outside the router's own networks.
const FAR: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);

fn apart(lab: &Lab, name: &str) -> Site {
    lab.site(name, &Wiring { apart: true, ..wiring() }).unwrap()
}

fn bridged(site: &Site) -> LinuxBridge {
    let mut bridge = LinuxBridge::new(Duration::from_secs(300));
    bridge.start(site).unwrap();
    bridge.ready(PATIENCE).unwrap();
    bridge
}

/// Returns client and server, with these hardware addresses of their next hops.
fn settled(site: &Site, server: Ipv4Addr, hops: [Mac; 2]) -> [Host; 2] {
    let host = |place: usize, (address, mac): (Ipv4Addr, Mac), port, peer| {
        let settings = HostSettings { mac, address, port, peer, next_hop: hops[place] };
        Host::settle(&site.instrument[place], settings).unwrap()
    };
    [host(0, CLIENT, 1024, server), host(1, (server, SERVER.1), 5201, CLIENT.0)]
}

fn terms(packets: u64) -> ExchangeSettings {
    let wait = Duration::from_secs(20);
    ExchangeSettings { payload_bytes: 18, packets, wait, lost_in_a_row_max: 3 }
}

/// Checks that every packet returned, with its times in order.
fn assert_whole(talked: &ExchangeResult, packets: u64) {
    assert_eq!((talked.sent, talked.is_given_up), (packets, false));
    let numbers: Vec<u64> = talked.returned.iter().map(|it| it.number).collect();
    assert_eq!(numbers, (0..packets).collect::<Vec<_>>());
    for it in &talked.returned {
        let moments = [it.sent_at, it.came_at, it.answered_at, it.back_at];
        assert!(moments.is_sorted(), "{it:?}");
    }
}

pub fn hosts_exchange_packets_through_a_bridge() {
    let root = Root::new();
    let lab = root.lab();
    let site = apart(&lab, "talk");
    let mut bridge = bridged(&site);
    let stop = AtomicBool::new(false);
    let before: Vec<_> = site.instrument.iter().map(seen).collect();
    assert_ne!(before[0].0, CLIENT.1);
    let [client, server] = settled(&site, SERVER.0, [SERVER.1, CLIENT.1]);
    assert_eq!(seen(&site.instrument[0]).0, CLIENT.1);
    assert_whole(&talk(&client, &server, &terms(200), &stop).unwrap(), 200);
    // Too few bytes for the number, and more than a packet holds.
    for payload_bytes in [7, 1473] {
        let wrong = talk(&client, &server, &ExchangeSettings { payload_bytes, ..terms(1) }, &stop);
        assert!(matches!(wrong, Err(LabError::Argument { .. })), "{wrong:?}");
    }
    drop((client, server));
    let after: Vec<_> = site.instrument.iter().map(seen).collect();
    assert_eq!(after, before);
    // The route to the other host is removed with its address: an interface can be configured as
    // another host.
    let [client, server] = settled(&site, FAR, [SERVER.1, CLIENT.1]);
    assert_whole(&talk(&client, &server, &terms(20), &stop).unwrap(), 20);
    bridge.stop().unwrap();
}

/// Returns an interface's hardware address, and the routes and neighbors of its namespace.
fn seen(end: &testbed::veth::Interface) -> (Mac, Vec<String>) {
    let files = ["route", "arp", "fib_trie"];
    let read = |file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
    let texts = end.namespace.run(|| files.map(read)).unwrap();
    let link = end.namespace.netlink().unwrap().link(&end.name).unwrap();
    (link.mac, texts.into())
}

pub fn hosts_exchange_packets_through_a_router() {
    let root = Root::new();
    let lab = root.lab();
    let site = apart(&lab, "routed");
    let own = |port, address| PortAddress { port, address, length: 24 };
    let (near, far) = (Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 2, 1));
    let mut router = LinuxRouter::new(vec![own(1, near), own(2, far)]);
    router.start(&site).unwrap();
    router.ready(PATIENCE).unwrap();
    let plan = Plan {
        neighbors: vec![
            PortNeighbor { port: 1, address: CLIENT.0, mac: CLIENT.1 },
            PortNeighbor { port: 2, address: SERVER.0, mac: SERVER.1 },
        ],
        routes: vec![PortRoute { prefix: FAR, length: 32, via: SERVER.0, port: 2 }],
        ..Plan::default()
    };
    router.install(&site, &plan).unwrap();
    let [client, server] = settled(&site, FAR, [site.target[0].mac, site.target[1].mac]);
    let talked = talk(&client, &server, &terms(100), &AtomicBool::new(false)).unwrap();
    assert_whole(&talked, 100);
    router.stop().unwrap();
}

pub fn lost_packets_are_counted() {
    let root = Root::new();
    let lab = root.lab();
    let site = apart(&lab, "lost");
    // The bridge is not started, so no frame is forwarded.
    let [client, server] = settled(&site, SERVER.0, [SERVER.1, CLIENT.1]);
    let terms = ExchangeSettings { wait: Duration::from_millis(5), ..terms(100) };
    let talked = talk(&client, &server, &terms, &AtomicBool::new(false)).unwrap();
    assert_eq!(talked, ExchangeResult { returned: Vec::new(), sent: 3, is_given_up: true });
    let told_to_stop = talk(&client, &server, &terms, &AtomicBool::new(true)).unwrap();
    assert_eq!(told_to_stop, ExchangeResult::default());
}

pub fn iperf_transfers_data_and_ends() {
    let root = Root::new();
    let lab = root.lab();
    let site = apart(&lab, "iperf");
    let mut bridge = bridged(&site);
    let hosts = settled(&site, SERVER.0, [SERVER.1, CLIENT.1]);
    let [from, to] = &hosts;
    let (path, folder) = (site.path.clone(), site.folder.clone());
    let place = IperfResources { path, folder, cores: site.wiring.cores.instrument.clone() };
    let terms = iperf::LoadSettings {
        payload_bytes: 1466,
        bytes_per_s: Some(1e6),
        limit: Duration::from_secs(60),
    };
    // A client stopped early reports what it sent until then.
    let mut load = Iperf::start(from, to, &terms, &place).unwrap();
    assert!(in_time(|| load.is_sending().unwrap()));
    assert_eq!(load.ended().unwrap(), None);
    let report = load.stop().unwrap();
    assert!(report.program.starts_with("iperf 3"), "{report:?}");
    assert!(report.sent > 0 && report.sent_bytes == report.sent * 1466, "{report:?}");
    drop(load);
    // A client that is not stopped ends after its duration. It sends at most one second's load, and
    // what it may send ahead.
    let terms = iperf::LoadSettings { limit: Duration::from_millis(300), ..terms };
    let mut load = Iperf::start(from, to, &terms, &place).unwrap();
    let mut ended = None;
    assert!(in_time(|| {
        ended = load.ended().unwrap();
        ended.is_some()
    }));
    let report = ended.unwrap();
    assert!((0.9..60.0).contains(&report.seconds), "{report:?}");
    assert!(report.sent_bytes as f64 <= 1.2e6 * report.seconds, "{report:?}");
    drop(load);
    // An unreachable server is reported in the program's own words.
    bridge.stop().unwrap();
    let mut load = Iperf::start(from, to, &terms, &place).unwrap();
    let mut why = None;
    assert!(in_time(|| {
        why = load.ended().err();
        why.is_some()
    }));
    assert!(why.unwrap().to_string().contains("unable to connect"));
}

pub fn a_connection_has_the_requested_window() {
    const SETTING: &str = "net/ipv4/tcp_rmem";
    let root = Root::new();
    let lab = root.lab();
    let site = apart(&lab, "transfer");
    let mut bridge = bridged(&site);
    let [from, to] = settled(&site, SERVER.0, [SERVER.1, CLIENT.1]);
    let (path, folder) = (site.path.clone(), site.folder.clone());
    let place = IperfResources { path, folder, cores: site.wiring.cores.instrument.clone() };
    let before = to.namespace().setting(SETTING).unwrap();
    let window = 64_000;
    let terms = transfer::TransferSettings {
        window_bytes: Some(window),
        frame_bytes: None,
        span: Duration::from_secs(1),
    };
    let mut running = Transfer::start(&from, &to, &terms, &place).unwrap();
    let limits = to.namespace().setting(SETTING).unwrap();
    assert!(limits.ends_with(&(2 * window).to_string()), "{limits}");
    let mut report = None;
    assert!(in_time(|| {
        report = running.ended().unwrap();
        report.is_some()
    }));
    let report = report.unwrap();
    assert!(report.received_bytes > 0 && report.seconds > 0.5, "{report:?}");
    assert_eq!(report.congestion, "cubic");
    let obtained = report.window_bytes.unwrap();
    assert!((window / 2..=2 * window).contains(&obtained), "{obtained}");
    // A dropped transfer leaves as little behind as a completed one.
    drop(running);
    assert_eq!(to.namespace().setting(SETTING).unwrap(), before);
    drop(Transfer::start(&from, &to, &terms, &place).unwrap());
    assert_eq!(to.namespace().setting(SETTING).unwrap(), before);
    let small = transfer::TransferSettings { frame_bytes: Some(145), ..terms };
    let refused = Transfer::start(&from, &to, &small, &place);
    assert!(matches!(refused, Err(LabError::Argument { .. })), "{refused:?}");
    bridge.stop().unwrap();
}
