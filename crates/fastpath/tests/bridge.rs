//! The bridge in the kernel forwards as the one in user space. Skipped without the rights to load
//! programs.

#![allow(clippy::unwrap_used)]

use common::{FRAME_BYTES_MAX, Kernel, Outcome, Random, cases, forward, mac};
use dataplane::bridge::{Bridge, Learning, Settings};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::mac_table::{MacCounters, MacEntry};
use fastpath::FastPath;
use os::clock;
use packet::build::Builder;
use packet::checksum::{pseudo_ipv4, pseudo_ipv6};
use packet::frame::PortNo;
use packet::header::{ipv4, ipv6, tcp};
use packet::time::Nanos;

mod common;

const PORTS: [PortNo; 4] = [1, 2, 5, 9];

/// Port of the bridge that has no XDP program.
const OTHER_PORT: PortNo = 7;

const AGEING: Nanos = Nanos::from_secs(300);

fn bridge(learning: Learning, addresses_max: usize) -> Bridge {
    let ports = [&PORTS[..], &[OTHER_PORT]].concat();
    let ageing = Some(AGEING);
    Bridge::new(&ports, &Settings { learning, addresses_max, ageing, ..Settings::default() })
}

/// Changes the table as frames, users and time do.
fn change(bridge: &mut Bridge, random: &mut Random, now: Nanos) {
    let all = [&PORTS[..], &[OTHER_PORT]].concat();
    let (address, vid) = (mac(random.below(8) as u8 + 1), random.below(3) as u16);
    let (key, port) = (bridge.key(address, vid), random.pick(&all));
    match random.below(80) {
        0 => _ = bridge.table.flush(now),
        1 => _ = bridge.table.remove(key),
        2 => _ = bridge.set_static(address, vid, port),
        3 => bridge.table.set_ageing(random.pick(&[None, Some(AGEING), Some(Nanos(AGEING.0 / 3))])),
        4 => _ = bridge.tick(now, &mut Outputs::new(&all)),
        // In the process, the program of a port refreshes every known source.
        _ if bridge.table.lookup(key, now) == Some(port) => {}
        _ => {
            // Ages on both sides of each ageing time, and far from them.
            let age = Nanos::from_secs(random.pick(&[0, 50, 150, 290, 310]));
            if bridge.table.lookup(key, now).is_none() {
                bridge.table.remove(key);
            }
            bridge.table.learn(key, port, now.since(age));
        }
    }
}

fn frame(random: &mut Random) -> Vec<u8> {
    let mut address = || match random.below(16) {
        0 => [0xff; 6],
        1 => [0x01, 0x80, 0xc2, 0, 0, random.below(17) as u8],
        2 => [0; 6],
        _ => mac(random.below(9) as u8 + 1),
    };
    let mut frame = Builder::new(address(), address());
    let payload = vec![7; random.pick(&[0, 3, 46, 200, 1000, 1486, 1500, 1501, 1600])];
    for _ in 0..random.below(5).saturating_sub(2) {
        frame = frame.tag(random.pick(&[0x8100, 0x8100, 0x88a8]), random.below(3) as u16 | 0x2000);
    }
    let mut bytes = match random.below(3) {
        0 => frame.ether_type(0x88b5).payload(&payload).bytes(),
        1 => {
            let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            frame.ipv4(header).udp(1, 2).payload(&payload).bytes()
        }
        _ => frame.payload(&payload).bytes(),
    };
    if random.below(8) == 0 {
        bytes.truncate(14 + random.below(10) as usize);
    }
    if bytes.len() > FRAME_BYTES_MAX {
        // The program does not refresh the source of a frame that is too long.
        bytes[6..12].copy_from_slice(&mac(60));
    }
    bytes
}

#[test]
fn the_kernel_forwards_like_user_space_for_random_tables_and_frames() {
    let mut sent = 0;
    let mut frames = 0;
    for case in 0..cases() {
        let mut random = Random::new(case + 1);
        let learning = random.pick(&[Learning::Shared, Learning::PerVlan]);
        let mut bridge = bridge(learning, random.pick(&[6, 64]) as usize);
        (0..random.below(30)).for_each(|_| change(&mut bridge, &mut random, clock::now()));
        let path = FastPath::of_bridge(&mut bridge, &PORTS, case);
        let Some(kernel) = Kernel::load(path, &PORTS, random.below(2) == 0) else { return };
        let mut out = Outputs::new(&[&PORTS[..], &[OTHER_PORT]].concat());
        for step in 0..100 {
            (0..random.below(3)).for_each(|_| change(&mut bridge, &mut random, clock::now()));
            let frame = frame(&mut random);
            let known = bridge.table.iter(clock::now()).find(|entry| frame[6..12] == entry.mac);
            // Most stations stay where they are.
            let port = match known.map(|entry| entry.port).filter(|port| PORTS.contains(port)) {
                Some(port) if random.below(3) > 0 => port,
                _ => random.pick(&PORTS),
            };
            let outcome = kernel.run(port, &frame);
            let now = clock::now();
            let (table, forwarded) = (bridge.table.counters, bridge.counters.forwarded);
            let is_source_static =
                |entry: MacEntry| entry.age.is_none() && frame[6..12] == entry.mac;
            let is_static = bridge.table.iter(now).any(is_source_static);
            let copies = forward(&mut bridge, port, &frame, now, &mut out);
            let is_known =
                bridge.table.counters == table && bridge.counters.forwarded == forwarded + 1;
            let context = || format!("case {case}, step {step}, port {port}, {frame:02x?}");
            frames += 1;
            match outcome {
                Outcome::Sent(to, bytes) => {
                    assert_eq!(copies, [(to, bytes)], "{}", context());
                    assert!(is_known, "{}", context());
                    sent += 1;
                }
                // Frames of a static address may come from any port, but only to user space.
                Outcome::Escaped => assert!(
                    !is_known
                        || kernel.path.entries().others_without_room > 0
                        || is_static
                        || copies[0].0 == OTHER_PORT
                        || frame.len() > FRAME_BYTES_MAX,
                    "{}",
                    context()
                ),
            }
        }
    }
    println!("{sent} of {frames} frames forwarded in the kernel");
    assert!(sent * 20 > frames, "{sent} of {frames}");
}

/// Creates a fast path that knows stations 1 and 2 at ports 1 and 2.
fn two_stations(is_partial: bool) -> Option<(Bridge, Kernel)> {
    let mut bridge = bridge(Learning::Shared, 64);
    let path = FastPath::of_bridge(&mut bridge, &PORTS, 3);
    let kernel = Kernel::load(path, &PORTS, is_partial)?;
    for station in [1, 2] {
        let key = bridge.key(mac(station), 0);
        bridge.table.learn(key, station.into(), clock::now());
    }
    Some((bridge, kernel))
}

fn plain() -> Vec<u8> {
    Builder::new(mac(2), mac(1)).ether_type(0x88b5).bytes()
}

#[test]
fn a_source_that_only_the_kernel_sees_does_not_expire() {
    let Some((mut bridge, kernel)) = two_stations(false) else { return };
    let begun = clock::now();
    // Both were last seen nearly the ageing time ago.
    for station in [1, 2] {
        let key = bridge.key(mac(station), 0);
        bridge.table.remove(key);
        let seen = begun.since(Nanos(AGEING.0 - 5_000_000_000));
        bridge.table.learn(key, station.into(), seen);
    }
    assert_eq!(kernel.run(1, &plain()), Outcome::Sent(2, plain()));
    let later = begun + Nanos::from_secs(10);
    let mut out = Outputs::new(&PORTS);
    while bridge.tick(later, &mut out).is_some_and(|due| due <= later) {}
    let known: Vec<_> = bridge.table.iter(later).map(|entry| entry.mac).collect();
    assert_eq!(known, [mac(1)], "the destination was not seen");
    assert_eq!(bridge.table.counters, MacCounters { learned: 4, aged: 1, ..Default::default() });
    assert_eq!(kernel.path.entries().macs, 1);
    assert_eq!(kernel.run(1, &plain()), Outcome::Escaped);
}

#[test]
fn moves_flushes_and_removals_are_visible_at_once() {
    let Some((mut bridge, kernel)) = two_stations(false) else { return };
    let mut out = Outputs::new(&[1, 2, 5, 7, 9]);
    assert_eq!(kernel.run(1, &plain()), Outcome::Sent(2, plain()));
    // Station 2 sends from port 5.
    let back = Builder::new(mac(1), mac(2)).ether_type(0x88b5).bytes();
    assert_eq!(kernel.run(5, &back), Outcome::Escaped);
    forward(&mut bridge, 5, &back, clock::now(), &mut out);
    assert_eq!(kernel.run(1, &plain()), Outcome::Sent(5, plain()));
    assert_eq!(kernel.run(5, &back), Outcome::Sent(1, back.clone()));
    bridge.table.flush(clock::now());
    assert_eq!(kernel.run(1, &plain()), Outcome::Escaped);
    forward(&mut bridge, 1, &plain(), clock::now(), &mut out);
    forward(&mut bridge, 5, &back, clock::now(), &mut out);
    assert_eq!(kernel.run(1, &plain()), Outcome::Sent(5, plain()));
    bridge.table.remove(bridge.key(mac(1), 0));
    assert_eq!(kernel.run(1, &plain()), Outcome::Escaped);
}

#[test]
fn frames_with_checksums_left_to_hardware_escape() {
    let Some((_bridge, kernel)) = two_stations(true) else { return };
    let (one, two) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let (six, sixteen) = ("2001:db8::6".parse().unwrap(), "2001:db8::16".parse().unwrap());
    for tags in 0..4 {
        for (is_six, is_tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut frame = Builder::new(mac(2), mac(1));
            for _ in 0..tags {
                frame = frame.tag(0x8100, 5);
            }
            frame = match is_six {
                false => frame.ipv4(ipv4::Header::new(one, two)),
                true => frame.ipv6(ipv6::Header::new(six, sixteen)),
            };
            frame = match is_tcp {
                false => frame.udp(4, 5),
                true => frame.tcp(tcp::Header::new(4, 5, 0x10)),
            };
            let complete = frame.payload(b"payload").bytes_unpadded();
            let from = 14 + 4 * tags + if is_six { 40 } else { 20 };
            let (length, protocol) = (complete.len() - from, if is_tcp { 6 } else { 17 });
            let pseudo = match is_six {
                false => pseudo_ipv4(one, two, protocol, length as u16),
                true => pseudo_ipv6(six, sixteen, protocol, length as u32),
            };
            let mut partial = complete.clone();
            let at = from + if is_tcp { 16 } else { 6 };
            partial[at..at + 2].copy_from_slice(&pseudo.fold().to_be_bytes());
            assert_eq!(kernel.run(1, &complete), Outcome::Sent(2, complete.clone()));
            // Checksums behind more than two tags are not completed in user space either.
            let expected =
                if tags > 2 { Outcome::Sent(2, partial.clone()) } else { Outcome::Escaped };
            assert_eq!(kernel.run(1, &partial), expected, "{tags} {is_six} {is_tcp}");
            for length in 14..complete.len() {
                kernel.run(1, &partial[..length]);
            }
        }
    }
}
