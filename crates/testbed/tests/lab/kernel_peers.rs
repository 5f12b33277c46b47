//! The Linux bridge and the Linux router forward as expected in the lab's configuration.

use crate::fixture::{PATIENCE, Root, wiring};
use crate::raw::{Raw, frame, ones_sum, packet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use testbed::account::Account;
use testbed::peer::linux_bridge::LinuxBridge;
use testbed::peer::linux_router::LinuxRouter;
use testbed::peer::{ControlInterface, Peer, Plan, PortAddress, PortNeighbor, PortRoute, Station};
use testbed::{LabError, Wiring};

const A: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0xbb, 0, 0, 0, 2];

pub fn a_bridge_learns_addresses() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("bridge", &Wiring { ports: 3, ..wiring() }).unwrap();
    let mut bridge = LinuxBridge::new(Duration::from_secs(3600));
    bridge.start(&site).unwrap();
    assert_eq!(bridge.ready(PATIENCE).unwrap(), ControlInterface::Install);
    let raw: Vec<Raw> = site.instrument.iter().map(Raw::open).collect();
    let is = |number: u8| move |frame: &[u8]| frame[12..15] == [0x88, 0xb5, number];
    // Unknown: flooded. Then B replies: A and B are known, and port 3 does not receive the frame.
    raw[0].send(&frame(B, A, 1)).unwrap();
    assert!(raw[1].receive(PATIENCE, is(1)).is_some());
    assert!(raw[2].receive(PATIENCE, is(1)).is_some());
    raw[1].send(&frame(A, B, 2)).unwrap();
    assert!(raw[0].receive(PATIENCE, is(2)).is_some());
    raw[0].send(&frame(B, A, 3)).unwrap();
    assert!(raw[1].receive(PATIENCE, is(3)).is_some());
    raw[0].send(&frame([0xff; 6], A, 4)).unwrap();
    assert!(raw[2].receive(PATIENCE, |bytes| !is(1)(bytes)).is_some_and(|bytes| is(4)(&bytes)));
    let counted = bridge.counters().unwrap().get("macs.learned").copied();
    assert!(counted.is_none_or(|learned| learned == 2), "an older kernel does not count");
    let table = bridge.table().unwrap();
    assert_eq!(table.iter().filter(|(_, _, is_static)| !is_static).count(), 2);
    assert_eq!(table.iter().find(|entry| entry.0 == B).unwrap().1, site.target[1].index);
    bridge.age(Duration::from_secs(10)).unwrap();
    let described = bridge.describe();
    assert_eq!(described.settings["ageing_s"], "10");
    assert!(described.version.starts_with("Linux "));
    assert!(bridge.age(Duration::from_secs(3601)).is_err());
    bridge.stop().unwrap();
    assert!(site.namespace.netlink().unwrap().link("br0").is_err());
}

pub fn a_bridge_uses_static_addresses() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("static", &Wiring { ports: 3, ..wiring() }).unwrap();
    let mut bridge = LinuxBridge::new(Duration::from_secs(300));
    bridge.start(&site).unwrap();
    bridge.ready(PATIENCE).unwrap();
    let plan = Plan { stations: vec![Station { mac: B, port: 2 }], ..Plan::default() };
    bridge.install(&site, &plan).unwrap();
    let raw: Vec<Raw> = site.instrument.iter().map(Raw::open).collect();
    raw[0].send(&frame(B, A, 1)).unwrap();
    raw[0].send(&frame([0xff; 6], A, 2)).unwrap();
    assert_eq!(raw[1].receive(PATIENCE, |_| true).unwrap()[14], 1);
    assert_eq!(raw[2].receive(PATIENCE, |_| true).unwrap()[14], 2, "frame 1 was not flooded");
    assert_eq!(bridge.counters().unwrap()["macs.static"], 1);
    let absent = Plan { stations: vec![Station { mac: A, port: 4 }], ..Plan::default() };
    assert!(matches!(bridge.install(&site, &absent), Err(LabError::Argument { .. })));
}

fn routed(site: &testbed::Site) -> (LinuxRouter, Plan) {
    let own =
        |port: u32| PortAddress { port, address: Ipv4Addr::new(10, 0, port as u8, 1), length: 24 };
    let neighbor =
        |port: u32, mac| PortNeighbor { port, address: Ipv4Addr::new(10, 0, port as u8, 2), mac };
    let mut router = LinuxRouter::new(vec![own(1), own(2)]);
    router.start(site).unwrap();
    let plan = Plan { neighbors: vec![neighbor(1, A), neighbor(2, B)], ..Plan::default() };
    (router, plan)
}

pub fn a_router_forwards_packets() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("router", &wiring()).unwrap();
    let (mut router, mut plan) = routed(&site);
    plan.routes = vec![PortRoute {
        prefix: Ipv4Addr::new(192, 168, 0, 0),
        length: 16,
        via: Ipv4Addr::new(10, 0, 2, 2),
        port: 2,
    }];
    router.install(&site, &plan).unwrap();
    let (one, two) = (Raw::open(&site.instrument[0]), Raw::open(&site.instrument[1]));
    let before = site.account().unwrap();
    let router_mac = site.target[0].mac;
    one.send(&packet(router_mac, A, [10, 0, 1, 2], [192, 168, 3, 4], 64)).unwrap();
    let out = two.receive(PATIENCE, |_| true).unwrap();
    assert_eq!(out[..6], B);
    assert_eq!(out[6..12], site.target[1].mac);
    assert_eq!(out[22], 63, "TTL");
    assert_eq!(ones_sum(&out[14..34]), 0xffff, "header checksum");
    assert_eq!(out[26..34], [10, 0, 1, 2, 192, 168, 3, 4]);
    // No route, and a TTL that expires: the account counts both.
    one.send(&packet(router_mac, A, [10, 0, 1, 2], [172, 16, 0, 1], 64)).unwrap();
    one.send(&packet(router_mac, A, [10, 0, 1, 2], [192, 168, 3, 4], 1)).unwrap();
    let is_icmp = |kind: u8| move |bytes: &[u8]| bytes[23] == 1 && bytes[34] == kind;
    assert!(one.receive(PATIENCE, is_icmp(3)).is_some(), "unreachable");
    assert!(one.receive(PATIENCE, is_icmp(11)).is_some(), "time exceeded");
    let account = site.account().unwrap().since(&before);
    println!("  router: {:?}", account.losses());
    assert_eq!(account.ip["ForwDatagrams"], 1);
    let lost = [("ip InHdrErrors".to_owned(), 1), ("ip InNoRoutes".to_owned(), 1)];
    assert_eq!(account.losses(), lost.into());
    assert_eq!(router.counters().unwrap()["Forwarding"], 1);
    assert_eq!(router.describe().settings["addresses"], "p1 10.0.1.1/24, p2 10.0.2.1/24");
    router.stop().unwrap();
    assert_eq!(site.namespace.setting("net/ipv4/ip_forward").unwrap(), "0");
    // The next router does not inherit its state: it starts without routes and neighbors.
    let (mut next, plan) = routed(&site);
    let table = site.namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/route"));
    assert_eq!(table.unwrap().unwrap().lines().count(), 3, "a heading and two networks");
    let known = site.namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/arp"));
    assert_eq!(known.unwrap().unwrap().lines().count(), 1, "a heading");
    next.install(&site, &plan).unwrap();
    next.stop().unwrap();
}

pub fn a_large_routing_table_is_installed() {
    let root = Root::new();
    let lab = root.lab();
    let site = lab.site("routes", &wiring()).unwrap();
    let (mut router, mut plan) = routed(&site);
    let route = |number: u32| PortRoute {
        prefix: Ipv4Addr::from((20 << 24) + (number << 8)),
        length: 24,
        via: Ipv4Addr::new(10, 0, 2, 2),
        port: 2,
    };
    plan.routes = (0..131_072).map(route).collect();
    let start = Instant::now();
    router.install(&site, &plan).unwrap();
    println!("  131,072 routes in {:.2} s", start.elapsed().as_secs_f64());
    let table = site.namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/route"));
    assert!(table.unwrap().unwrap().lines().count() > 131_072);
    let (one, two) = (Raw::open(&site.instrument[0]), Raw::open(&site.instrument[1]));
    one.send(&packet(site.target[0].mac, A, [10, 0, 1, 2], [21, 255, 255, 9], 64)).unwrap();
    assert!(two.receive(PATIENCE, |_| true).is_some(), "by the last route");
    // An invalid route is named, at any position in a batch.
    let bad = PortRoute { via: Ipv4Addr::new(11, 1, 1, 1), ..route(200) };
    plan.neighbors.clear();
    plan.routes = (0..400).map(|number| if number == 200 { bad } else { route(number) }).collect();
    let refused = router.install(&site, &plan).unwrap_err();
    assert_eq!(refused.number(), Some(libc::ENETUNREACH));
    assert!(refused.to_string().contains("20.0.200.0/24 via 11.1.1.1"), "{refused}");
    assert!(Account::of(&site.namespace).is_ok());
}
