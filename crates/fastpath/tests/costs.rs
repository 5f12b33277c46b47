//! Cost of a frame in the kernel, by `BPF_PROG_TEST_RUN`: with one entry, and the mean over many
//! random ones. Single runs include about 50 ns of the measurement itself.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use common::element::{Lab, Side, start};
use common::{Kernel, Random, mac};
use dataplane::bridge::{Bridge, Settings};
use dataplane::forwarder::Outputs;
use dataplane::neighbor::Place;
use dataplane::route_table::Prefix;
use dataplane::router::{self, Interface, Router};
use fastpath::FastPath;
use os::clock;
use packet::build::Builder;
use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::header::ipv4;
use progfe::role::routing::{Route, Routing};
use progfe::shipped;

mod common;

const PORTS: [PortNo; 2] = [1, 2];

/// Random frames of each measurement.
const FRAMES: u32 = 50_000;

/// Prints the mean cost of frames, each run once.
fn print_mean(what: &str, kernel: &Kernel, mut frame: impl FnMut() -> Vec<u8>) {
    let (mut sum, mut redirected) = (0, 0);
    for _ in 0..FRAMES {
        let run = kernel.program(1).run_once(&frame(), 1).unwrap();
        redirected += u32::from(run.result == 4);
        sum += u64::from(run.duration_ns);
    }
    // A few checksums look as if they were left to hardware.
    assert!(redirected >= FRAMES - FRAMES / 1000, "{redirected}");
    println!("{what}: {} ns a frame", sum / u64::from(FRAMES));
}

/// Prints the least cost of a frame, run many times in a row.
fn print_least(what: &str, kernel: &Kernel, frame: &[u8], repeat: u32) {
    let runs = (0..50).map(|_| kernel.program(1).run_once(frame, repeat).unwrap());
    let least = runs.map(|run| run.duration_ns).min().unwrap();
    println!("{what}: {least} ns a frame");
}

/// A station behind port 1 or 2.
fn station(port: PortNo, number: u32) -> Mac {
    let [a, b, c, d] = number.to_be_bytes();
    [2, port as u8, a, b, c, d]
}

#[test]
#[ignore = "measures; prints costs"]
fn costs_of_a_bridge() {
    for is_partial in [false, true] {
        for stations in [1, 8 << 10, 128 << 10] {
            let settings = Settings { addresses_max: 1 << 18, ..Settings::default() };
            let mut bridge = Bridge::new(&PORTS, &settings);
            let path = FastPath::of_bridge(&mut bridge, &PORTS, 7);
            let Some(kernel) = Kernel::load(path, &PORTS, is_partial) else { return };
            for number in 0..stations {
                for port in PORTS {
                    let key = bridge.key(station(port, number), 0);
                    bridge.table.learn(key, port, clock::now());
                }
            }
            let mut random = Random::new(1);
            let mut frame = || {
                let [from, to] =
                    [1, 2].map(|port| station(port, random.below(stations.into()) as u32));
                let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
                Builder::new(to, from).ipv4(header).udp(1, 2).bytes()
            };
            let checked = if is_partial { ", checksums examined" } else { "" };
            let what = format!("bridge, {stations} stations at each port{checked}");
            print_least(&format!("{what}, one of them"), &kernel, &frame(), 10_000);
            print_mean(&what, &kernel, frame);
            println!("  {:?}", kernel.path.entries());
        }
    }
}

#[test]
#[ignore = "measures; prints costs"]
fn costs_of_a_router() {
    for routes in [1, 128 << 10, 1 << 20] {
        let interface = |port: PortNo| Interface {
            port,
            mac: mac(port as u8),
            addresses: vec![(Ipv4Addr::new(10, 0, port as u8, 1), 24)],
            mtu: 1500,
        };
        let interfaces = PORTS.map(interface).to_vec();
        let settings = router::Settings { interfaces, routes_max: 2 << 20, ..Default::default() };
        let mut router = Router::new(&settings).unwrap();
        let path = FastPath::of_router(&mut router, &PORTS, 7);
        let Some(kernel) = Kernel::load(path, &PORTS, true) else { return };
        let gateway = Ipv4Addr::new(10, 0, 2, 9);
        // With the router's own address as that of the next hop, it accepts what it has sent.
        let place = Place { port: 2, address: gateway };
        router.set_neighbor(place, mac(1), &mut Outputs::new(&PORTS)).unwrap();
        let begun = clock::now();
        let address = |number: u32| Ipv4Addr::from_bits(0x1400_0000 + (number << 8));
        for number in 0..routes {
            let prefix = Prefix::new(address(number), 24).unwrap();
            router.add_route(prefix, Some(gateway), None).unwrap();
        }
        let took = clock::now().since(begun);
        println!("router: {} ns for adding a route", took.0 / u64::from(routes));
        let mut random = Random::new(1);
        let mut frame = || {
            let to = address(random.below(routes.into()) as u32).to_bits() | 5;
            let header = ipv4::Header::new([10, 0, 1, 9].into(), Ipv4Addr::from_bits(to));
            let header = ipv4::Header { ttl: 255, ..header };
            Builder::new(mac(1), mac(9)).ipv4(header).udp(1, 2).bytes()
        };
        print_least(&format!("router, {routes} routes, one packet"), &kernel, &frame(), 250);
        print_mean(&format!("router, {routes} routes"), &kernel, frame);
        println!("  {:?}", kernel.path.entries());
    }
}

/// Prints the least cost of a frame in the program of an element, beside a native one.
fn print_beside(what: &str, lab: &Lab, native: &Kernel, frame: &[u8], repeat: u32) {
    // In turns, because the speed of the machine changes.
    let mut least = [u32::MAX; 2];
    for _ in 0..100 {
        for (least, program) in least.iter_mut().zip([lab.program(1).unwrap(), native.program(1)]) {
            *least = (*least).min(program.run_once(frame, repeat).unwrap().duration_ns);
        }
    }
    println!("{what}: {} ns a frame, {} natively", least[0], least[1]);
}

#[test]
#[ignore = "measures; prints costs"]
fn costs_of_elements() {
    for stations in [1, 8 << 10, 64 << 10] {
        let settings = Settings { addresses_max: 1 << 18, ..Settings::default() };
        let mut bridge = Bridge::new(&PORTS, &settings);
        let path = FastPath::of_bridge(&mut bridge, &PORTS, 7);
        let Some(native) = Kernel::load(path, &PORTS, false) else { return };
        let Some(mut lab) = start(shipped::text("bridge").unwrap()) else { return };
        let fdb = lab.side.element.program().find("fdb").unwrap();
        let table = lab.side.element.stations_mut(fdb).unwrap();
        for number in 0..stations {
            for port in PORTS {
                let key = bridge.key(station(port, number), 0);
                bridge.table.learn(key, port, clock::now());
                table.learn(key, port, clock::now());
            }
        }
        let mut random = Random::new(1);
        let mut frame = || {
            let [from, to] = [1, 2].map(|port| station(port, random.below(stations.into()) as u32));
            let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            Builder::new(to, from).ipv4(header).udp(1, 2).bytes()
        };
        let what = format!("bridge, {stations} stations at each port");
        print_beside(&format!("{what}, one of them"), &lab, &native, &frame(), 10_000);
        let (mut sums, mut frames) = ([0; 2], 0);
        for _ in 0..FRAMES {
            let frame = frame();
            for (sum, program) in sums.iter_mut().zip([lab.program(1).unwrap(), native.program(1)])
            {
                let run = program.run_once(&frame, 1).unwrap();
                assert_eq!(run.result, 4);
                *sum += u64::from(run.duration_ns);
            }
            frames += 1;
        }
        println!("{what}: {} ns a frame, {} natively", sums[0] / frames, sums[1] / frames);
    }
    for routes in [1, 64 << 10] {
        let interface = |port: PortNo| Interface {
            port,
            mac: [2, 0, 0, 0, 1, port as u8],
            addresses: vec![([10, port as u8, 0, 1].into(), 16)],
            mtu: 1500,
        };
        let interfaces = PORTS.map(interface).to_vec();
        let settings = router::Settings { interfaces, routes_max: 2 << 20, ..Default::default() };
        let mut router = Router::new(&settings).unwrap();
        let path = FastPath::of_router(&mut router, &PORTS, 7);
        let Some(native) = Kernel::load(path, &PORTS, false) else { return };
        let Some(mut lab) = start(shipped::text("router").unwrap()) else { return };
        let gateway = Ipv4Addr::new(10, 2, 0, 9);
        // With the router's own address as that of the next hop, it accepts what it has sent.
        let own = [2, 0, 0, 0, 1, 1];
        let place = Place { port: 2, address: gateway };
        router.set_neighbor(place, own, &mut Outputs::new(&PORTS)).unwrap();
        let address = |number: u32| Ipv4Addr::from_bits(0x1400_0000 + (number << 8));
        let all = (0..routes).map(|number| Route {
            network: address(number),
            length: 24,
            via: gateway,
            port: Some(2),
        });
        let all: Vec<Route> = all.collect();
        for route in &all {
            router.add_route(Prefix::new(route.network, 24).unwrap(), Some(gateway), None).unwrap();
        }
        let Side { element, out } = &mut lab.side;
        let program = element.program().clone();
        let routing = Routing::of(&program).unwrap();
        let neighbour =
            progfe::role::routing::Neighbour { port: 2, address: gateway, mac: own, mtu: 1500 };
        let changes = routing.neighbours(&program, &[neighbour]).unwrap();
        element.change(&changes, clock::now(), out).unwrap();
        let program = element.program().clone();
        let changes = routing.routes(&program, &all).unwrap();
        element.change(&changes, clock::now(), out).unwrap();
        let begun = clock::now();
        lab.follow();
        println!("router: {} us for following {routes} routes", clock::now().since(begun).0 / 1000);
        let mut random = Random::new(1);
        let mut frame = || {
            let to = address(random.below(routes.into()) as u32).to_bits() | 5;
            let header = ipv4::Header::new([10, 1, 0, 9].into(), Ipv4Addr::from_bits(to));
            Builder::new(own, mac(9)).ipv4(ipv4::Header { ttl: 255, ..header }).udp(1, 2).bytes()
        };
        let what = format!("router, {routes} routes, one packet");
        print_beside(&what, &lab, &native, &frame(), 250);
    }
}
