//! The router in the kernel forwards as the one in user space. Skipped without the rights to load
//! programs.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use common::{Kernel, Outcome, Random, cases, forward, mac, taken};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::neighbor::Place;
use dataplane::route_table::Prefix;
use dataplane::router::{Interface, Router, Settings};
use fastpath::FastPath;
use os::clock;
use packet::build::Builder;
use packet::frame::PortNo;
use packet::header::{arp, ethernet, ipv4};
use packet::time::Nanos;

mod common;

/// Ports with an XDP program; the router has no interface at the last one.
const PORTS: [PortNo; 4] = [1, 2, 3, 4];

/// Port of the router that has no XDP program.
const OTHER_PORT: PortNo = 8;

fn interface_mac(port: PortNo) -> ethernet::Mac {
    [2, 0, 0, 0, 1, port as u8]
}

fn router() -> Router {
    let interface = |port: PortNo, mtu| Interface {
        port,
        mac: interface_mac(port),
        addresses: vec![(Ipv4Addr::new(10, 0, port as u8, 1), 24)],
        mtu,
    };
    let interfaces =
        vec![interface(1, 1500), interface(2, 1500), interface(3, 300), interface(8, 1500)];
    Router::new(&Settings { interfaces, routes_max: 1000, ..Settings::default() }).unwrap()
}

fn all_ports() -> Vec<PortNo> {
    [&PORTS[..], &[OTHER_PORT]].concat()
}

/// An address that is near others.
fn address(random: &mut Random) -> Ipv4Addr {
    match random.below(8) {
        0 => Ipv4Addr::from_bits(random.below(1 << 32) as u32),
        1..=3 => {
            let (net, host) = (random.pick(&[1, 2, 3, 8]), random.below(6) as u8);
            Ipv4Addr::new(10, 0, net, host)
        }
        _ => {
            let [b, c] = [0, 1].map(|_| random.pick(&[0, 1, 128, 255]));
            Ipv4Addr::new(random.pick(&[20, 20, 20, 127, 224, 0]), 1, b, c)
        }
    }
}

/// Changes the tables as users, stations and time do.
fn change(router: &mut Router, random: &mut Random, out: &mut Outputs) {
    let now = clock::now();
    let port = random.pick(&[1, 2, 3, OTHER_PORT]);
    let prefix = Prefix::new(address(random), random.below(33) as u8).unwrap();
    let place = Place { port, address: Ipv4Addr::new(10, 0, port as u8, random.below(6) as u8) };
    // An error changes nothing.
    match random.below(40) {
        0 => _ = router.flush_routes(),
        1..=6 => _ = router.remove_route(prefix),
        7 => {
            let (mut from, mut steps) = (0, 1000);
            router.flush_neighbors_some(&mut from, &mut steps);
        }
        8..=13 => {
            let station = mac(random.below(9) as u8 + 1);
            _ = router.set_neighbor(place, station, out);
        }
        14..=20 => {
            let request = arp::Header {
                operation: arp::REQUEST,
                sender_mac: mac(random.below(9) as u8 + 20),
                sender_ip: place.address,
                target_mac: [0; 6],
                target_ip: Ipv4Addr::new(10, 0, port as u8, 1),
            };
            let frame = Builder::new(ethernet::BROADCAST, request.sender_mac).arp(request).bytes();
            forward(router, port, &frame, now, out);
        }
        21..=24 => _ = router.add_route(prefix, None, Some(port)),
        _ => _ = router.add_route(prefix, Some(place.address), Some(port)),
    }
    taken(out);
}

fn frame(random: &mut Random, port: PortNo) -> Vec<u8> {
    let own = if random.below(20) == 0 { mac(1) } else { interface_mac(port) };
    let frame = Builder::new(own, mac(40));
    if random.below(30) == 0 {
        return frame.ether_type(random.pick(&[0x86dd, 0x0806, 0x88b5])).payload(&[0; 60]).bytes();
    }
    let source = [Ipv4Addr::new(10, 0, 1, 9), address(random)][random.below(2) as usize];
    let destination = address(random);
    let mut header = ipv4::Header::new(source, destination);
    header.ttl = random.pick(&[0, 1, 2, 64, 64, 255, 255]);
    header.tos = random.below(256) as u8;
    header.identification = random.below(1 << 16) as u16;
    header.protocol = random.below(256) as u8;
    header.dont_fragment = random.below(2) == 0;
    header.more_fragments = random.below(10) == 0;
    let payload = random.pick(&[0, 1, 25, 26, 27, 200, 280, 281, 1000, 1480]);
    let mut bytes = frame.ipv4(header).payload(&vec![5; payload]).bytes();
    match random.below(20) {
        0 => bytes[14 + random.below(20) as usize] ^= 1 << random.below(8),
        1 => bytes.resize(bytes.len() + 1 + random.below(3) as usize, 0),
        2 => bytes.truncate(14 + random.below(40) as usize),
        // Nearly all checksums occur by another identification.
        3 => {
            bytes[14 + 4] = random.below(256) as u8;
            ipv4::set_checksum(&mut bytes[14..34]);
        }
        _ => {}
    }
    bytes
}

#[test]
fn the_kernel_routes_like_user_space_for_random_tables_and_frames() {
    let (mut sent, mut frames) = (0, 0);
    for case in 0..cases() {
        let mut random = Random::new(case + 1);
        let (mut router, mut out) = (router(), Outputs::new(&all_ports()));
        (0..random.below(40)).for_each(|_| change(&mut router, &mut random, &mut out));
        let path = FastPath::of_router(&mut router, &PORTS, case);
        let Some(kernel) = Kernel::load(path, &PORTS, false) else { return };
        (0..20).for_each(|_| change(&mut router, &mut random, &mut out));
        for step in 0..100 {
            (0..random.below(3)).for_each(|_| change(&mut router, &mut random, &mut out));
            let port = random.pick(&PORTS);
            let frame = frame(&mut random, port);
            let outcome = kernel.run(port, &frame);
            let before = router.counters;
            let copies = forward(&mut router, port, &frame, clock::now(), &mut out);
            let is_forwarded = router.counters.forwarded == before.forwarded + 1
                && router.counters.fragmented == before.fragmented;
            let context = || format!("case {case}, step {step}, port {port}, {frame:02x?}");
            frames += 1;
            match outcome {
                Outcome::Sent(to, bytes) => {
                    assert_eq!(copies, [(to, bytes)], "{}", context());
                    assert!(is_forwarded, "{}", context());
                    sent += 1;
                }
                Outcome::Escaped => assert!(
                    !is_forwarded
                        || copies[0].0 == OTHER_PORT
                        || copies[0].1.len() != frame.len()
                        || frame[14] != 0x45,
                    "{} went to {copies:02x?}",
                    context()
                ),
            }
        }
        assert_eq!(kernel.path.entries().routes_without_room, 0);
    }
    println!("{sent} of {frames} frames forwarded in the kernel");
    assert!(sent * 30 > frames, "{sent} of {frames}");
}

/// Creates a fast path with a learned neighbor at port 2.
fn one_neighbor() -> Option<(Router, Kernel, Outputs)> {
    let (mut router, mut out) = (router(), Outputs::new(&all_ports()));
    let kernel = Kernel::load(FastPath::of_router(&mut router, &PORTS, 3), &PORTS, false)?;
    let request = arp::Header {
        operation: arp::REQUEST,
        sender_mac: mac(7),
        sender_ip: Ipv4Addr::new(10, 0, 2, 7),
        target_mac: [0; 6],
        target_ip: Ipv4Addr::new(10, 0, 2, 1),
    };
    let frame = Builder::new(ethernet::BROADCAST, mac(7)).arp(request).bytes();
    forward(&mut router, 2, &frame, clock::now(), &mut out);
    Some((router, kernel, out))
}

fn packet_to(destination: Ipv4Addr) -> Vec<u8> {
    let header = ipv4::Header::new(Ipv4Addr::new(10, 0, 1, 9), destination);
    Builder::new(interface_mac(1), mac(9)).ipv4(header).udp(1, 2).bytes()
}

#[test]
fn a_neighbor_that_only_the_kernel_uses_is_asked_again_before_it_is_removed() {
    for is_used in [false, true] {
        let Some((mut router, kernel, mut out)) = one_neighbor() else { return };
        let packet = packet_to(Ipv4Addr::new(10, 0, 2, 7));
        if is_used {
            assert!(matches!(kernel.run(1, &packet), Outcome::Sent(2, _)));
        }
        router.tick(clock::now() + Nanos::from_secs(61), &mut out);
        let asked = taken(&mut out);
        assert_eq!(asked.len(), usize::from(is_used), "{asked:02x?}");
        assert_eq!(kernel.path.entries().neighbors, usize::from(is_used));
        let still = kernel.run(1, &packet);
        assert_eq!(matches!(still, Outcome::Sent(2, _)), is_used, "{still:?}");
    }
}

#[test]
fn a_longer_route_takes_effect_at_once_and_its_removal_too() {
    let Some((mut router, kernel, mut out)) = one_neighbor() else { return };
    let packet = packet_to(Ipv4Addr::new(20, 1, 2, 3));
    let prefix = |length| Prefix::new(Ipv4Addr::new(20, 1, 2, 3), length).unwrap();
    let gateway = Some(Ipv4Addr::new(10, 0, 2, 7));
    assert_eq!(kernel.run(1, &packet), Outcome::Escaped);
    router.add_route(prefix(0), gateway, None).unwrap();
    assert!(matches!(kernel.run(1, &packet), Outcome::Sent(2, _)));
    for length in [8, 16, 17, 24, 25, 32] {
        // No host has this gateway's address.
        router.add_route(prefix(length), Some(Ipv4Addr::new(10, 0, 3, 3)), None).unwrap();
        assert_eq!(kernel.run(1, &packet), Outcome::Escaped, "/{length}");
        assert!(router.remove_route(prefix(length)));
        assert!(matches!(kernel.run(1, &packet), Outcome::Sent(2, _)), "/{length}");
    }
    router.flush_routes();
    assert_eq!(kernel.run(1, &packet), Outcome::Escaped);
    router
        .set_neighbor(Place { port: 3, address: Ipv4Addr::new(10, 0, 3, 3) }, mac(3), &mut out)
        .unwrap();
    assert!(matches!(kernel.run(1, &packet_to(Ipv4Addr::new(10, 0, 3, 3))), Outcome::Sent(3, _)));
}
