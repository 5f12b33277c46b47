//! An element with a fast path forwards and counts as one without. Skipped without the rights to
//! load programs.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use common::element::{PORTS, Side, learn, start};
use common::{Random, cases, mac};
use dataplane::forwarder::Forwarder;

use os::clock;
use packet::build::Builder;
use packet::frame::PortNo;
use packet::header::ipv4;
use packet::time::Nanos;
use progfe::element::Change;
use progfe::role::routing::{Neighbour, Route, Routing};
use progfe::shipped;

mod common;
#[allow(dead_code, reason = "frames are drawn otherwise here")]
#[path = "../../progfe/tests/random/mod.rs"]
mod random;

/// Addresses of the router's ports and of its neighbours.
const ROUTER: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];

/// A frame that some of the shipped programs treat in a way of their own.
fn frame(random: &mut Random, port: PortNo) -> Vec<u8> {
    let from = if random.below(12) == 0 { [0xff; 6] } else { mac(random.below(5) as u8 + 1) };
    let to = match random.below(12) {
        0 => [0xff; 6],
        1..=5 => ROUTER[port as usize - 1],
        _ => mac(random.below(5) as u8 + 1),
    };
    let mut frame = Builder::new(to, from);
    for _ in 0..random.below(6).saturating_sub(3) {
        let kind = random.pick(&[0x8100, 0x8100, 0x88a8]);
        let vid = random.pick(&[0, 7, 10, 11, 12, 14, 100, 101, 200]);
        frame = frame.tag(kind, vid | (random.below(8) as u16) << 13);
    }
    let payload = vec![3; random.pick(&[0, 1, 18, 40, 200, 1400, 1460, 1480, 1500])];
    let mut bytes = match random.below(12) {
        0 => frame
            .ether_type(random.pick(&[0x0806, 0x86dd, 0x8847, 0x88e7, 0x88b5]))
            .payload(&payload)
            .bytes(),
        1 => frame.payload(&payload).bytes(),
        kind => {
            let net =
                random.pick(&[[10, 1], [10, 2], [10, 2], [10, 3], [127, 0], [224, 0], [0, 1]]);
            let to = [net[0], net[1], random.below(3) as u8, random.below(200) as u8];
            let from =
                random.pick(&[[10, 1, 0, 9], [10, 1, 0, 9], [10, 1, 0, 9], [0; 4], [127, 0, 0, 1]]);
            let mut header = ipv4::Header::new(from.into(), to.into());
            header.ttl = random.pick(&[0, 1, 2, 64, 64, 255]);
            header.tos = random.pick(&[0, 0, 40 << 2, 34 << 2, 18 << 2, 255]);
            header.identification = random.below(1 << 16) as u16;
            header.more_fragments = random.below(12) == 0;
            let packet = frame.ipv4(header);
            match kind {
                1..=8 => {
                    packet.udp(9, random.pick(&[5060, 53, 123, 4789, 9])).payload(&payload).bytes()
                }
                _ => packet.payload(&payload).bytes(),
            }
        }
    };
    match random.below(24) {
        0 => bytes.truncate(14 + random.below(60) as usize),
        1 => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        2 => bytes.resize(bytes.len() + 5, 0),
        _ => {}
    }
    bytes
}

/// Sends random frames to an element with a fast path and to one without. Returns how many of
/// them the kernel decided.
fn compare(text: &str, random: &mut Random, frames: u64, what: &str) -> Option<(u64, u64)> {
    let (mut lab, mut plain) = (start(text)?, Side::new(text));
    learn(&mut [&mut lab.side, &mut plain]);
    for step in 0..frames {
        let port = random.pick(&PORTS);
        let bytes = frame(random, port);
        let now = clock::now();
        let (sent, decided) = lab.pass(port, &bytes, now);
        let expected = plain.pass(port, &bytes, now);
        assert_eq!(sent, expected, "{what}, step {step}, port {port}, {decided:?}: {bytes:02x?}");
    }
    lab.side.element.add_mirrored();
    let now = clock::now();
    assert_eq!(lab.side.seen(now), plain.seen(now), "{what}");
    let traffic = lab.path.traffic().unwrap();
    let forwarded: u64 = traffic.iter().map(|pair| pair.frames).sum();
    let dropped: u64 = PORTS.iter().map(|port| lab.path.extra(*port).frames_dropped).sum();
    assert_eq!(forwarded + dropped, lab.decided, "{what}");
    Some((lab.decided, frames))
}

#[test]
fn shipped_programs_forward_and_count_in_the_kernel_as_in_user_space() {
    for name in shipped::names() {
        let (mut decided, mut frames) = (0, 0);
        for case in 0..cases().div_ceil(6) {
            let mut random = Random::new(case + 1);
            let text = shipped::text(name).unwrap();
            let what = format!("{name}, case {case}");
            let Some((these, all)) = compare(text, &mut random, 400, &what) else { return };
            (decided, frames) = (decided + these, frames + all);
        }
        println!("{name}: {decided} of {frames} frames decided in the kernel");
        assert!(decided * 20 > frames, "{name}: {decided} of {frames}");
    }
}

#[test]
fn random_programs_forward_and_count_in_the_kernel_as_in_user_space() {
    let (mut decided, mut frames) = (0, 0);
    for case in 0..cases() * 2 {
        let mut random = Random::new(case + 1);
        let count = random.below(10) as usize + 1;
        let blocks = (0..count).map(|_| random.below(random::BLOCKS.len() as u64) as usize);
        let blocks: Vec<usize> = blocks.collect();
        let leads: Vec<u8> = (0..40).map(|_| random.below(256) as u8).collect();
        let text = random::document(&blocks, &leads);
        if random::program(&text).is_none() {
            continue;
        }
        let what = format!("case {case}: {text}");
        let Some((these, all)) = compare(&text, &mut random, 60, &what) else { return };
        (decided, frames) = (decided + these, frames + all);
    }
    println!("{decided} of {frames} frames decided in the kernel");
    assert!(decided * 20 > frames, "{decided} of {frames}");
}

fn packet(port: PortNo, to: [u8; 4]) -> Vec<u8> {
    let header = ipv4::Header::new([10, 1, 0, 9].into(), to.into());
    Builder::new(ROUTER[port as usize - 1], mac(9)).ipv4(header).udp(1, 2).bytes()
}

/// Returns the changes of single rows that together have the same effect.
fn by_row(program: &progfe::program::Program, changes: &[Change]) -> Vec<Change> {
    let rows = |change: &Change| match change {
        Change::Set { instance, path, value } => {
            let before = program.instances[*instance].components.get(&path[0]);
            let before = before.and_then(|table| table.rows()).cloned().unwrap_or_default();
            let rows = value.rows().unwrap().iter();
            let changed = rows.filter(|(index, row)| before.get(index) != Some(row));
            let set = |(index, row): (&u32, _)| Change::Set {
                instance: *instance,
                path: vec![path[0], *index],
                value: Clone::clone(row),
            };
            changed.map(set).collect::<Vec<_>>()
        }
        _ => unreachable!("tables are set"),
    };
    changes.iter().flat_map(rows).collect()
}

#[test]
fn routes_change_in_the_kernel_with_their_table_and_back() {
    let text = shipped::text("router").unwrap();
    let (Some(mut lab), mut plain) = (start(text), Side::new(text)) else { return };
    let mut random = Random::new(5);
    let mut escaped = 0;
    for step in 0..60 {
        let program = plain.element.program().clone();
        let routing = Routing::of(&program).unwrap();
        let net = [10, random.below(4) as u8, random.below(3) as u8, 0];
        let route = Route {
            network: net.into(),
            length: random.pick(&[8, 16, 24, 25, 32]),
            via: random.pick(&[[10, 1, 0, 9], [10, 2, 0, 9]]).into(),
            port: None,
        };
        let lpm = program.find("lpm").unwrap();
        let known = program.instances[lpm].components[&1].rows().unwrap();
        let changes: Vec<_> = match random.below(6) {
            0 => {
                let neighbour = Neighbour {
                    port: random.pick(&PORTS),
                    address: [10, 1, 0, random.below(4) as u8 + 1].into(),
                    mac: mac(random.below(9) as u8),
                    mtu: 1500,
                };
                routing.neighbours(&program, &[neighbour]).unwrap()
            }
            1 => routing.routes(&program, &[route]).unwrap(),
            2 if known.len() > 2 => {
                let index = *known.keys().nth(random.below(known.len() as u64) as usize).unwrap();
                vec![Change::Delete { instance: lpm, path: vec![1, index] }]
            }
            _ => by_row(&program, &routing.routes(&program, &[route]).unwrap()),
        };
        let now = clock::now();
        let is_kept = random.below(3) > 0;
        for side in [&mut lab.side, &mut plain] {
            let Side { element, out } = side;
            let prepared = element.prepare_changes(&changes).unwrap();
            element.swap(prepared, now, out).unwrap();
            match is_kept {
                true => element.settle(),
                false => assert!(element.roll_back(now, out)),
            }
        }
        let sent = lab.run(1, &packet(1, [10, 2, 0, 1]));
        assert_eq!(sent, None, "it escapes until the change is complete");
        lab.follow();
        for _ in 0..20 {
            let to = [10, random.below(5) as u8, random.below(4) as u8, random.below(256) as u8];
            let (port, now) = (random.pick(&PORTS), clock::now());
            let (sent, decided) = lab.pass(port, &packet(port, to), now);
            let expected = plain.pass(port, &packet(port, to), now);
            assert_eq!(sent, expected, "step {step}: {to:?}");
            escaped += u32::from(decided.is_none());
        }
        lab.side.element.add_mirrored();
        let now = clock::now();
        assert_eq!(lab.side.seen(now), plain.seen(now), "step {step}");
    }
    assert!(lab.reloads < 30, "routes alone need no new program: {}", lab.reloads);
    assert!(escaped > 0 && lab.decided > 300, "{escaped} escaped, {} decided", lab.decided);
}

#[test]
fn a_table_that_learns_stays_when_the_program_is_replaced() {
    let text = shipped::text("bridge").unwrap();
    let Some(mut lab) = start(text) else { return };
    learn(&mut [&mut lab.side]);
    lab.follow();
    let there = Builder::new(mac(2), mac(1)).ether_type(0x88b5).bytes();
    assert_eq!(lab.run(1, &there), Some((2, there.clone())));
    // Port 2 learned station 2; the new program counts all known frames, and drops those of a kind.
    let changed = text
        .replace(
            r#"<lfb id="flood""#,
            r#"<lfb id="kind" class="Match"><row table="Rules" prio="1"><when>Eth.type = 0x88b5</when><c n="OutputIndex">0</c></row></lfb>
               <lfb id="gone" class="Count"/><lfb id="flood""#,
        )
        .replace(
            r#"<link from="fdb.KnownOut" to="out.PktsIn"/>"#,
            r#"<link from="fdb.KnownOut" to="kind.PktsIn"/><link from="kind.MissOut" to="out.PktsIn"/>
               <link from="kind.HitOut[0]" to="gone.PktsIn"/>"#,
        );
    let program = random::program(&changed).unwrap();
    let Side { element, out } = &mut lab.side;
    let prepared = element.prepare(program).unwrap();
    element.swap(prepared, clock::now(), out).unwrap();
    assert_eq!(lab.run(1, &there), None, "it escapes");
    lab.follow();
    assert_eq!(lab.run(1, &there), Some((0, there.clone())), "the kernel drops it");
    let other = Builder::new(mac(2), mac(1)).ether_type(0x0806).bytes();
    assert_eq!(lab.run(1, &other), Some((2, other.clone())));
    lab.side.element.add_mirrored();
    let instance = lab.side.element.program().find("gone").unwrap();
    let count = lab.side.element.get(instance, &[1], clock::now()).unwrap();
    assert_eq!(count.unsigned(), Some(1));
    // Back again, with the counters of the time in between.
    let Side { element, out } = &mut lab.side;
    assert!(element.roll_back(clock::now(), out));
    lab.follow();
    assert_eq!(lab.run(1, &there), Some((2, there.clone())));
    lab.side.element.add_mirrored();
    assert_eq!(lab.side.element.account().received, 2 + 4, "two taught the table");
    assert_eq!(lab.path.extra(1).frames_dropped, 1);
}

#[test]
fn a_source_that_only_the_kernel_sees_does_not_expire() {
    let text = shipped::text("bridge").unwrap();
    let Some(mut lab) = start(text) else { return };
    learn(&mut [&mut lab.side]);
    let there = Builder::new(mac(2), mac(1)).ether_type(0x88b5).bytes();
    assert_eq!(lab.run(1, &there), Some((2, there.clone())));
    let fdb = lab.side.element.program().find("fdb").unwrap();
    let table = lab.side.element.stations_mut(fdb).unwrap();
    let key = dataplane::mac_table::MacKey::new(mac(1), 0);
    table.remove(key);
    let ageing = Nanos::from_secs(300);
    table.learn(key, 1, clock::now().since(Nanos(ageing.0 - 5_000_000_000)));
    assert_eq!(lab.run(1, &there), Some((2, there.clone())));
    let later = clock::now() + Nanos::from_secs(10);
    let Side { element, out } = &mut lab.side;
    while element.tick(later, out).is_some_and(|due| due <= later) {}
    let table = element.stations_mut(fdb).unwrap();
    assert_eq!(table.lookup(key, later), Some(1));
}

#[test]
fn a_table_with_vlans_has_addresses_of_their_own_in_each() {
    let text = r#"<fe xmlns="urn:progfe:fe:1" name="vlans" revision="1">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames start="Tagged">
        <frame name="Tagged"><f n="dst" b="48"/><f n="src" b="48"/><f n="tpid" b="16"/><f n="pcp" b="3"/>
        <f n="dei" b="1"/><f n="vid" b="12"/><f n="type" b="16"/></frame></frames>
        <ports><port id="1"/><port id="2"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        <lfb id="fdb" class="LearnSearch">
        <set name="LearnKey">Tagged.src Tagged.vid</set><set name="LearnValue">meta:PHYPortID</set>
        <set name="SearchKey">Tagged.dst Tagged.vid</set><set name="ResultMeta">EgressPort</set></lfb>
        <lfb id="out" class="BasicMetadataDispatch"><set name="MetadataID">EgressPort</set>
        <row table="MetadataDispatchTable"><c n="MetadataValue">1</c><c n="OutputIndex">0</c></row>
        <row table="MetadataDispatchTable"><c n="MetadataValue">2</c><c n="OutputIndex">1</c></row></lfb>
        </instances><links><link from="phy#*.EtherPHYOut" to="fdb.PktsIn"/>
        <link from="fdb.KnownOut" to="out.PktsIn"/><link from="out.PktsOut[*]" to="phy#*.EtherPHYIn"/>
        </links></fe>"#;
    let (Some(mut lab), mut plain) = (start(text), Side::new(text)) else { return };
    let tagged = |to: u8, from: u8, vid: u16| {
        Builder::new(mac(to), mac(from)).tag(0x8100, 0xe000 | vid).ether_type(0x88b5).bytes()
    };
    let mut decided = Vec::new();
    let frames =
        [(1, 2, 1, 7), (2, 1, 2, 7), (1, 2, 1, 7), (1, 2, 1, 8), (2, 1, 2, 8), (1, 2, 1, 8)];
    // Station 1 of VLAN 8 moves to port 2.
    let moved = [(2, 2, 1, 8), (2, 1, 2, 8), (1, 2, 1, 8), (1, 2, 1, 7), (1, 2, 1, 4095)];
    for (port, to, from, vid) in frames.into_iter().chain(moved) {
        let (frame, now) = (tagged(to, from, vid), clock::now());
        let (sent, by) = lab.pass(port, &frame, now);
        assert_eq!(sent, plain.pass(port, &frame, now), "{port} {to} {from} {vid}");
        decided.push(by);
    }
    lab.side.element.add_mirrored();
    let now = clock::now();
    assert_eq!(lab.side.seen(now), plain.seen(now));
    let (to_two, moves) = ([2, 5, 9], [0, 3, 6, 10]);
    assert!(to_two.iter().all(|at| decided[*at] == Some(2)), "{decided:?}");
    assert!(moves.iter().all(|at| decided[*at].is_none()), "they are learned: {decided:?}");
}

/// Returns a program that sets two fields of frames from port 1 to 2, which are far from each other.
fn tagger(vid: u16) -> String {
    format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="swap" revision="{vid}">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames>
        <frame name="Eth"><f n="dst" b="48"/><f n="src" b="48"/><f n="type" b="16"/>
        <next on="type"><case v="0x8100" frame="Vlan"/></next></frame>
        <frame name="Vlan"><f n="pcp" b="3"/><f n="dei" b="1"/><f n="vid" b="12"/><f n="type" b="16"/>
        <next on="type" like="Eth"/></frame></frames>
        <ports><port id="1"/><port id="2"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        <lfb id="count" class="Count"/>
        <lfb id="tag" class="Edit"><op do="push" frame="Vlan" after="Eth.src"/>
        <op do="set" field="Vlan.vid" to="{vid}"/><op do="set" field="Eth.src" to="02:00:00:00:00:{vid:02x}"/></lfb>
        </instances><links><link from="phy#1.EtherPHYOut" to="count.PktsIn"/>
        <link from="count.PktsOut" to="tag.PktsIn"/><link from="tag.PktsOut" to="phy#2.EtherPHYIn"/>
        </links></fe>"#
    )
}

#[test]
fn frames_see_a_swap_whole_or_not_at_all_and_are_all_counted() {
    const SWAPS: u16 = 40;
    let Some(mut lab) = start(&tagger(1)) else { return };
    let frame = Builder::new(mac(2), mac(9)).ether_type(0x88b5).payload(&[0; 60]).bytes();
    let (is_over, confirmed) = (AtomicBool::new(false), std::sync::atomic::AtomicU16::new(1));
    let runner = lab.shared();
    let (decided, escaped) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let (mut decided, mut escaped) = (0_u64, 0_u64);
            while !is_over.load(Ordering::Acquire) {
                let before = confirmed.load(Ordering::Acquire);
                let (result, bytes) = runner.run(1, &frame);
                let after = confirmed.load(Ordering::Acquire);
                if result == 2 {
                    assert_eq!(bytes, frame, "an escaping frame is unchanged");
                    escaped += 1;
                    continue;
                }
                decided += 1;
                let vid = u16::from_be_bytes([bytes[14], bytes[15]]);
                assert_eq!(bytes[11], vid as u8, "both fields are of one program");
                // The swap to the next program may have begun.
                assert!((before..=after + 1).contains(&vid), "{before} {vid} {after}");
            }
            (decided, escaped)
        });
        for vid in 2..=SWAPS {
            let program = random::program(&tagger(vid)).unwrap();
            let Side { element, out } = &mut lab.side;
            let prepared = element.prepare(program).unwrap();
            element.swap(prepared, clock::now(), out).unwrap();
            element.settle();
            confirmed.store(vid, Ordering::Release);
            lab.follow();
            runner.replace(&lab);
            // Some frames meet each program.
            let before = lab.counted();
            while lab.counted() < before + 20 {
                std::hint::spin_loop();
            }
        }
        is_over.store(true, Ordering::Release);
        sender.join().unwrap()
    });
    lab.side.element.add_mirrored();
    let instance = lab.side.element.program().find("count").unwrap();
    let count = lab.side.element.get(instance, &[1], clock::now()).unwrap();
    println!("{decided} frames decided, {escaped} escaped");
    assert_eq!(count.unsigned(), Some(decided), "every frame is counted once");
    assert_eq!(lab.side.element.account().left, decided);
}

#[test]
fn tracing_and_stopping_bring_all_frames_to_user_space() {
    let Some(mut lab) = start(&tagger(7)) else { return };
    let frame = Builder::new(mac(2), mac(9)).ether_type(0x88b5).payload(&[0; 60]).bytes();
    assert!(lab.run(1, &frame).is_some());
    lab.side.element.set_forwarding(false);
    lab.follow();
    assert_eq!(lab.run(1, &frame), None);
    lab.side.element.set_forwarding(true);
    lab.follow();
    assert!(lab.run(1, &frame).is_some());
    let now = clock::now();
    let until = now + Nanos::from_secs(100);
    let wanted = progfe::observe::Wanted { count: 1, port: None, when: String::new(), until };
    let id = lab.side.element.trace_next(&wanted, now).unwrap();
    lab.follow();
    assert_eq!(lab.run(1, &frame), None);
    lab.side.element.end_tracing(id);
    lab.follow();
    assert!(lab.run(1, &frame).is_some());
}
