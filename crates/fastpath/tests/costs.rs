//! Cost of a frame in the kernel, by `BPF_PROG_TEST_RUN`: with one entry, and the mean over many
//! random ones. Single runs include about 50 ns of the measurement itself.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

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
