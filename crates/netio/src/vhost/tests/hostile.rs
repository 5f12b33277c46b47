//! Front ends that send invalid data. The port counts each fault by kind, disconnects the front
//! end, and accesses nothing outside its memory. It serves the next front end.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use os::clock;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::Nanos;

use super::front::*;
use super::peers::{frame, pair, port, receive, send};
use crate::memif::fault::Fault;
use crate::port::{Port, PortDrop};
use crate::vhost::port::VhostPort;

const ALL: u64 = VERSION_1 | PROTOCOL | MERGE;
const END: u64 = GUEST + BYTES as u64;

/// Runs `lie` on a connected front end and checks that receiving and sending detect this fault.
/// Earlier frames of the same burst are valid.
fn check(name: &str, fault: Fault, lie: impl FnOnce(&mut Front)) {
    let (mut port, mut front) = pair(name, ALL);
    front.send(0, &frame(1, 60));
    lie(&mut front);
    let got = receive(&mut port);
    send(&mut port, &[frame(2, 60), frame(3, 5000)]);
    assert_eq!(port.faults().of(fault), 1, "{name}: {:?}", port.faults());
    assert_eq!(port.faults().total(), 1, "{name}: {:?}", port.faults());
    assert!(got.is_empty() || got == [frame(1, 60)] || fault == Fault::RegionShrunk, "{name}");
    assert!(!port.has_link(), "{name}");
    // The front end is disconnected, and the next one is accepted.
    assert_eq!(std::io::Read::read(&mut front.stream, &mut [0; 1]).unwrap_or(0), 0, "{name}");
    let mut next = Front::connect(&path(name));
    next.set_up(ALL);
    port.turn(clock::now());
    next.send(0, &frame(4, 60));
    assert_eq!(receive(&mut port), [frame(4, 60)], "{name}");
    assert_eq!(port.counters().peer_faults, 1);
}

/// Invalid descriptors of received frames.
#[test]
fn invalid_descriptors_of_frames_are_detected() {
    let cases: &[(&str, Fault, Words)] = &[
        ("before", Fault::BufferPlace, (GUEST - 1, 72, 0, 0)),
        ("behind", Fault::BufferPlace, (END, 72, 0, 0)),
        ("last", Fault::BufferPlace, (END - 71, 72, 0, 0)),
        ("long", Fault::BufferPlace, (GUEST, u32::MAX, 0, 0)),
        ("user", Fault::BufferPlace, (USER, 72, 0, 0)),
        ("zero", Fault::BufferPlace, (0, 72, 0, 0)),
        ("wrap", Fault::BufferPlace, (u64::MAX - 10, 72, 0, 0)),
        ("empty", Fault::BufferLength, (GUEST, 0, 0, 0)),
        ("header", Fault::BufferLength, (GUEST, 12, 0, 0)),
        ("writable", Fault::Chain, (GUEST, 72, WRITE, 0)),
        ("indirect", Fault::Chain, (GUEST, 64, 4, 0)),
        ("loop", Fault::Chain, (GUEST, 72, NEXT, 9)),
        ("loop-empty", Fault::Chain, (GUEST, 0, NEXT, 9)),
        ("next", Fault::Slot, (GUEST, 72, NEXT, ENTRIES)),
        ("next-far", Fault::Slot, (GUEST, 72, NEXT, u16::MAX)),
    ];
    for &(name, fault, what) in cases {
        check(name, fault, |front| {
            front.describe(1, 9, what);
            front.offer(1, 9);
        });
    }
}

#[test]
fn invalid_descriptors_of_buffers_are_detected() {
    let cases: &[(&str, Fault, Words)] = &[
        ("to-behind", Fault::BufferPlace, (END, 2048, WRITE, 0)),
        ("to-last", Fault::BufferPlace, (END - 71, 2048, WRITE, 0)),
        ("to-before", Fault::BufferPlace, (GUEST - 1, 2048, WRITE, 0)),
        ("to-wrap", Fault::BufferPlace, (u64::MAX - 10, 2048, WRITE, 0)),
        ("to-read", Fault::Chain, (GUEST, 2048, 0, 0)),
        ("to-indirect", Fault::Chain, (GUEST, 2048, WRITE | 4, 0)),
        ("to-loop", Fault::Chain, (GUEST, 1, WRITE | NEXT, 9)),
        ("to-loop-empty", Fault::Chain, (GUEST, 0, WRITE | NEXT, 9)),
        ("to-next", Fault::Slot, (GUEST, 8, WRITE | NEXT, 256)),
    ];
    for &(name, fault, what) in cases {
        check(name, fault, |front| {
            front.describe(0, 9, what);
            front.offer(0, 9);
        });
    }
}

#[test]
fn invalid_rings_are_detected() {
    check("jump", Fault::IndexJump, |front| front.jump(1, ENTRIES + 2));
    check("back", Fault::IndexJump, |front| front.jump(1, u16::MAX));
    check("to-jump", Fault::IndexJump, |front| front.jump(0, ENTRIES + 1));
    check("head", Fault::Slot, |front| front.offer(1, ENTRIES));
    check("head-far", Fault::Slot, |front| front.offer(1, u16::MAX));
    check("to-head", Fault::Slot, |front| front.offer(0, ENTRIES));
    // Fewer entries than were known before, though within the ring.
    let (mut port, mut front) = pair("less", ALL);
    for number in 0..9 {
        front.send(number, &frame(1, 60));
    }
    let mut batch = Batch::new(1);
    port.receive(&mut batch, clock::now()).unwrap();
    front.jump(1, 0);
    for _ in 0..10 {
        receive(&mut port);
    }
    assert_eq!(port.faults().of(Fault::IndexJump), 1);
}

#[test]
fn truncated_memory_disconnects_the_peer_only() {
    check("shrunk", Fault::RegionShrunk, |front| shorten(&front.file, 0));
    check("shrunk-buffers", Fault::RegionShrunk, |front| {
        for number in 1..20 {
            front.send(number, &frame(1, 60));
        }
        shorten(&front.file, BUFFERS_AT as usize);
    });
    check("to-shrunk", Fault::RegionShrunk, |front| {
        front.lend(0);
        receive_nothing(front);
        shorten(&front.file, BUFFERS_AT as usize);
    });
}

/// Withdraws the available entries of the receiving ring.
fn receive_nothing(front: &mut Front) {
    front.jump(1, 0);
}

#[test]
fn an_oversized_frame_is_lost_alone() {
    let (mut port, mut front) = pair("long-frame", ALL);
    for bytes in [FRAME_BYTES_MAX, FRAME_BYTES_MAX + 1] {
        front.describe(1, 0, (GUEST, bytes as u32 + 12, 0, 0));
        front.offer(1, 0);
        front.describe(1, 1, (GUEST, bytes as u32, NEXT, 2));
        front.describe(1, 2, (GUEST, 12, 0, 0));
        front.offer(1, 1);
        receive(&mut port);
    }
    front.send(3, &frame(1, 60));
    assert_eq!(receive(&mut port), [frame(1, 60)]);
    assert_eq!(front.used(1).len(), 5);
    let counters = port.counters();
    assert_eq!((counters.rx_frames, counters.lost(PortDrop::ReceiveTooLong)), (3, 2));
    assert_eq!(counters.peer_faults, 0);
}

/// Checks that these messages, on a new connection, have this fault.
fn check_words(name: &str, fault: Fault, say: impl FnOnce(&Front)) {
    let mut port = port(name);
    let front = Front::connect(&path(name));
    say(&front);
    for _ in 0..3 {
        port.turn(clock::now());
    }
    assert_eq!(port.faults().of(fault), 1, "{name}: {:?}", port.faults());
    assert_eq!(port.faults().total(), 1, "{name}: {:?}", port.faults());
    assert!(!port.has_link(), "{name}");
    let next = Front::connect(&path(name));
    next.set_up(ALL);
    port.turn(clock::now());
    assert!(port.has_link(), "{name}");
}

#[test]
fn invalid_messages_are_detected() {
    check_words("w-feature", Fault::Features, |front| front.say(SET_FEATURES, &[1], &[]));
    check_words("w-packed", Fault::Features, |front| {
        front.say(SET_FEATURES, &[VERSION_1 | 1 << 34], &[]);
    });
    check_words("w-queues", Fault::Features, |front| front.say(SET_FEATURES, &[1 << 22], &[]));
    check_words("w-protocol", Fault::Features, |front| {
        front.say(SET_PROTOCOL_FEATURES, &[1 << 5], &[]);
    });
    check_words("w-number", Fault::RingIndex, |front| front.say_ring(SET_BASE, 2, 0));
    check_words("w-number-far", Fault::RingIndex, |front| front.say_ring(GET_BASE, u32::MAX, 0));
    check_words("w-size", Fault::RingSize, |front| front.say_ring(SET_NUM, 0, 255));
    check_words("w-size-zero", Fault::RingSize, |front| front.say_ring(SET_NUM, 0, 0));
    check_words("w-size-large", Fault::RingSize, |front| front.say_ring(SET_NUM, 0, 65_536));
    check_words("w-base", Fault::IndexJump, |front| front.say_ring(SET_BASE, 0, 65_536));
    check_words("w-unknown", Fault::Message, |front| front.say(4711, &[], &[]));
    check_words("w-short", Fault::Message, |front| front.say(SET_ADDRESS, &[0], &[]));
    check_words("w-long", Fault::Message, |front| front.say(SET_OWNER, &[0; 100], &[]));
    check_words("w-huge", Fault::Message, |front| {
        let mut message = [0u8; 12];
        message[0] = SET_OWNER as u8;
        message[4] = 1;
        message[8..].copy_from_slice(&u32::MAX.to_ne_bytes());
        (&front.stream).write_all(&message).unwrap();
    });
    check_words("w-version", Fault::Message, |front| {
        (&front.stream).write_all(&[3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    });
    check_words("w-no-bell", Fault::Message, |front| front.say(SET_KICK, &[0], &[]));
    check_words("w-bell", Fault::Doorbell, |front| {
        front.say(SET_KICK, &[0], &[front.file.as_raw_fd()]);
    });
    check_words("w-call", Fault::Doorbell, |front| {
        front.say(SET_CALL, &[1], &[front.stream.as_raw_fd()]);
    });
    check_words("w-enable", Fault::Message, |front| front.say_ring(SET_ENABLE, 0, 1));
}

#[test]
fn invalid_memory_and_rings_are_detected() {
    let bytes = BYTES as u64;
    for (name, fault, region) in [
        ("m-longer", Fault::RegionSize, [GUEST, USER, bytes + 4096, 0]),
        ("m-offset", Fault::RegionSize, [GUEST, USER, bytes, 1]),
        ("m-far", Fault::RegionSize, [GUEST, USER, 4096, 1 << 62]),
        ("m-empty", Fault::Message, [GUEST, USER, 0, 0]),
        ("m-wrap", Fault::Message, [u64::MAX - 10, USER, bytes, 0]),
        ("m-wrap-user", Fault::Message, [GUEST, u64::MAX - 10, bytes, 0]),
        ("m-wrap-offset", Fault::Message, [GUEST, USER, bytes, u64::MAX - 10]),
    ] {
        check_words(name, fault, |front| front.say_memory(&[region]));
    }
    check_words("m-none", Fault::Message, |front| front.say(SET_MEM_TABLE, &[0], &[]));
    check_words("m-fewer", Fault::Message, |front| {
        let file = front.file.as_raw_fd();
        front.say(SET_MEM_TABLE, &[2, 0, 4096, 0, 0, 4096, 4096, 4096, 0], &[file]);
    });
    check_words("m-many", Fault::RegionIndex, |front| {
        let regions: Vec<_> = (0..9).map(|n| [n << 20, n << 20, 4096, 0]).collect();
        front.say_memory(&regions);
    });
    for (name, fault, file) in [
        ("m-file", Fault::RegionMapping, "/proc/self/exe"),
        ("m-device", Fault::RegionSize, "/dev/zero"),
    ] {
        let file = std::fs::File::open(file).unwrap();
        check_words(name, fault, |front| {
            front.say(SET_MEM_TABLE, &[1, GUEST, 4096, USER, 0], &[file.as_raw_fd()]);
        });
    }
    let end = USER + bytes;
    for (name, place) in [
        ("r-descriptors", [end - 4080, USER + 0x2000, USER + 0x1000]),
        ("r-used", [USER, end - 2048, USER + 0x1000]),
        ("r-available", [USER, USER + 0x2000, end - 514]),
        ("r-guest", [GUEST, USER + 0x2000, USER + 0x1000]),
        ("r-wrap", [USER, u64::MAX - 7, USER + 0x1000]),
        ("r-crooked", [USER + 8, USER + 0x2000, USER + 0x1000]),
        ("r-crooked-used", [USER, USER + 0x2002, USER + 0x1000]),
    ] {
        // The `vhost` crate rejects some messages first by its own rules.
        let fault = if name.starts_with("r-crooked") { Fault::Message } else { Fault::RingPlace };
        check_words(name, fault, |front| {
            front.greet(ALL);
            front.say_ring(SET_NUM, 0, ENTRIES.into());
            front.place(0, place);
            front.go(0);
        });
    }
}

#[test]
fn an_incomplete_message_times_out() {
    let start = Nanos::from_secs(10);
    for (name, bytes) in [("half-header", 5), ("half-body", 16)] {
        let mut port = port(name);
        let front = Front::connect(&path(name));
        let mut message = vec![SET_FEATURES as u8, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0];
        message.extend(ALL.to_ne_bytes());
        (&front.stream).write_all(&message[..bytes]).unwrap();
        port.turn(start);
        assert_eq!((port.faults().total(), port.next_event().is_some()), (0, true));
        port.turn(start + Nanos::from_secs(4));
        (&front.stream).write_all(&message[bytes..]).unwrap();
        port.turn(start + Nanos::from_secs(6));
        assert_eq!(port.faults().total(), 0, "the message was completed in time");
        (&front.stream).write_all(&message[..bytes]).unwrap();
        port.turn(start + Nanos::from_secs(7));
        port.turn(start + Nanos::from_secs(11));
        assert_eq!(port.faults().total(), 0);
        port.turn(start + Nanos::from_secs(12));
        assert_eq!(port.faults().of(Fault::Slow), 1, "{name}");
    }
}

/// Runs turns until the fault is counted; returns false if it never is.
fn turn_until(port: &mut VhostPort, fault: Fault) -> bool {
    (0..10_000).any(|_| {
        port.turn(clock::now());
        port.faults().of(fault) > 0
    })
}

#[test]
fn unread_replies_block_nothing() {
    let mut port = port("deaf");
    let front = Front::connect(&path("deaf"));
    front.stream.set_nonblocking(true).unwrap();
    let ask = [GET_FEATURES as u8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let mut requests = 0;
    while (&front.stream).write(&ask).is_ok() && requests < 100_000 {
        requests += 1;
        if requests % 64 == 0 {
            port.turn(clock::now());
        }
    }
    assert!(turn_until(&mut port, Fault::Slow), "{requests}: {:?}", port.faults());
}

#[test]
fn random_bytes_never_panic() {
    use rand_core::{RngCore, SeedableRng};
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let mut port = port("noise");
    for _ in 0..300 {
        let mut stream = UnixStream::connect(path("noise")).unwrap();
        let mut noise = vec![0; random.next_u32() as usize % 200];
        random.fill_bytes(&mut noise);
        for start in (0..noise.len().saturating_sub(12)).step_by(28) {
            // From time to time, bytes that look like the header of a message.
            noise[start..start + 4].copy_from_slice(&(random.next_u32() % 45).to_ne_bytes());
            noise[start + 4..start + 8].copy_from_slice(&1u32.to_ne_bytes());
            noise[start + 8..start + 12].copy_from_slice(&(random.next_u32() % 24).to_ne_bytes());
        }
        stream.write_all(&noise).unwrap();
        for _ in 0..3 {
            port.turn(clock::now());
        }
        drop(stream);
        port.turn(clock::now());
        port.turn(clock::now());
        assert!(!port.has_link());
    }
    assert!(port.faults().total() > 100, "{:?}", port.faults());
    let front = Front::connect(&path("noise"));
    front.set_up(ALL);
    port.turn(clock::now());
    assert!(port.has_link());
}
