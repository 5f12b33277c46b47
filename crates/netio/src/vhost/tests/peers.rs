//! Correct front ends, as clients and as servers of the socket.

#![allow(clippy::unwrap_used)]

use std::os::unix::net::UnixListener;

use os::clock::{self, WaitSet};
use packet::frame::Batch;
use packet::time::Nanos;

use super::front::*;
use crate::in_place::View;
use crate::memif::fault::Fault;
use crate::port::{Port, PortDrop};
use crate::vhost::port::VhostPort;
use crate::vhost::spec::{Role, Spec};

pub fn port(name: &str) -> VhostPort {
    VhostPort::open(&Spec::new(path(name))).unwrap()
}

/// Returns a connected port and front end.
pub fn pair(name: &str, features: u64) -> (VhostPort, Front) {
    let mut port = port(name);
    let front = Front::connect(&path(name));
    front.set_up(features);
    port.turn(clock::now());
    assert!(port.has_link(), "{:?}", port.faults());
    (port, front)
}

pub fn receive(port: &mut VhostPort) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(256);
    port.receive(&mut batch, clock::now()).unwrap();
    batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
}

pub fn send(port: &mut VhostPort, frames: &[Vec<u8>]) -> usize {
    let mut batch = Batch::new(256);
    frames.iter().for_each(|frame| assert!(batch.push_bytes(frame)));
    port.transmit(&mut batch, clock::now()).unwrap()
}

pub fn frame(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number + at * 7) as u8).collect()
}

const ALL: u64 = VERSION_1 | PROTOCOL | MERGE;

#[test]
fn frames_pass_in_both_directions_and_rings_wrap() {
    let (mut port, mut front) = pair("wrap", ALL);
    for round in 0..900 {
        let frames: Vec<_> = (0..97).map(|n| frame(round + n, 60 + (round + n) % 1455)).collect();
        for (number, frame) in (0..).zip(&frames) {
            front.send(number, frame);
            front.lend(number);
        }
        assert_eq!(receive(&mut port), frames);
        let heads: Vec<_> = (0..97).map(|number| (number, 0)).collect();
        assert_eq!(front.used(1), heads);
        assert_eq!(send(&mut port, &frames), 97);
        for ((number, bytes), frame) in front.used(0).into_iter().zip(&frames) {
            assert_eq!(bytes as usize, 12 + frame.len());
            let at = Front::buffer(0, number);
            assert_eq!(front.read(at, 12), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
            assert_eq!(front.read(at + 12, frame.len()), *frame);
        }
    }
    assert_eq!(send(&mut port, &[frame(0, 60)]), 0, "no buffer is in use");
    let counters = port.counters();
    assert_eq!((counters.rx_frames, counters.tx_frames), (87_300, 87_300));
    assert_eq!((counters.drops, counters.peer_faults), (vec![], 0));
}

#[test]
fn frames_in_several_parts_are_joined() {
    let (mut port, mut front) = pair("pieces", ALL);
    let wanted = frame(3, 5000);
    // Header alone, header with some bytes, header in two pieces; and the rest in three.
    for cuts in [[12, 1000, 2000], [20, 1000, 2000], [5, 12, 2000], [1, 2, 3]] {
        let mut whole = vec![0; 12];
        whole.extend(&wanted);
        let base = Front::buffer(1, 100);
        front.write(base, &whole);
        let ends = [cuts[0], cuts[1], cuts[2], whole.len()];
        let mut start = 0;
        for (number, end) in (0..).zip(ends) {
            let flags = if number < 3 { NEXT } else { 0 };
            let (at, bytes) = (GUEST + base + start as u64, (end - start) as u32);
            front.describe(1, 10 + number, (at, bytes, flags, 11 + number));
            start = end;
        }
        front.offer(1, 10);
        assert_eq!(receive(&mut port), std::slice::from_ref(&wanted), "{cuts:?}");
    }
    // To the driver: a chain of three buffers, or three chains.
    for (number, flags, next) in [(1, WRITE | NEXT, 2), (2, WRITE | NEXT, 3), (3, WRITE, 0)] {
        front.describe(0, number, (GUEST + Front::buffer(0, number), 2048, flags, next));
    }
    front.offer(0, 1);
    front.lend(4);
    front.lend(5);
    front.lend(6);
    assert_eq!(send(&mut port, &[wanted.clone(), wanted.clone()]), 2);
    assert_eq!(front.used(0), [(1, 5012), (4, 2048), (5, 2048), (6, 916)]);
    for (first, count) in [(1, 1), (4, 3)] {
        let at = Front::buffer(0, first);
        assert_eq!(front.read(at + 10, 2), [count, 0]);
        assert_eq!(front.read(at + 12, 5000), wanted);
    }
    // Two chains are too few, and remain for a frame that fits into them.
    front.lend(7);
    front.lend(8);
    assert_eq!(send(&mut port, &[wanted]), 0);
    assert_eq!(send(&mut port, &[frame(0, 60)]), 1);
    assert_eq!(front.used(0), [(7, 72)]);
    assert_eq!(port.counters().drops, []);
}

#[test]
fn without_merging_a_frame_longer_than_a_chain_is_lost() {
    let (mut port, mut front) = pair("alone", VERSION_1 | PROTOCOL);
    front.lend(1);
    front.lend(2);
    assert_eq!(send(&mut port, &[frame(1, 3000), frame(2, 2036)]), 2);
    assert_eq!(front.used(0), [(1, 2048)]);
    assert_eq!(port.counters().lost(PortDrop::TooLong), 1);
}

#[test]
fn an_old_driver_has_a_shorter_header_and_rings_without_enabling() {
    let mut port = port("old");
    let mut front = Front::connect(&path("old"));
    front.greet(0);
    for ring in [0, 1] {
        front.say_ring(SET_NUM, ring, ENTRIES.into());
        let at = USER + u64::from(ring) * 0x4000;
        front.place(ring, [at, at + 0x2000, at + 0x1000]);
        front.say(SET_KICK, &[ring.into()], &[front.kicks[ring as usize].descriptor()]);
    }
    port.turn(clock::now());
    assert!(port.has_link());
    assert_eq!(port.next_event(), None, "it kicks");
    front.say(SET_KICK, &[1 | 1 << 8], &[]);
    port.turn(clock::now());
    assert_eq!(port.next_event(), Some(Nanos::ZERO), "it does not");
    let at = Front::buffer(1, 0);
    front.write(at + 10, &frame(1, 64));
    front.describe(1, 0, (GUEST + at, 74, 0, 0));
    front.offer(1, 0);
    assert_eq!(receive(&mut port), [frame(1, 64)]);
}

#[test]
fn memory_can_have_adjacent_regions() {
    let mut port = port("regions");
    let mut front = Front::connect(&path("regions"));
    front.say(SET_FEATURES, &[ALL], &[]);
    let middle = Front::buffer(1, 50) + 500;
    let middle = middle.next_multiple_of(4096);
    let rest = BYTES as u64 - middle;
    front.say_memory(&[[GUEST + middle, USER + middle, rest, middle], [GUEST, USER, middle, 0]]);
    front.start(0);
    front.start(1);
    port.turn(clock::now());
    let wanted = frame(7, 1200);
    for shift in [1, 5, 11, 12, 13, 700, 1211] {
        let at = middle - shift;
        front.write(at, &[0; 12]);
        front.write(at + 12, &wanted);
        front.describe(1, 0, (GUEST + at, 1212, 0, 0));
        front.offer(1, 0);
        assert_eq!(receive(&mut port), std::slice::from_ref(&wanted), "{shift}");
        front.write(at, &[9; 1300]);
        front.describe(0, 0, (GUEST + at, 1300, WRITE, 0));
        front.offer(0, 0);
        assert_eq!(send(&mut port, std::slice::from_ref(&wanted)), 1, "{shift}");
        assert_eq!(front.read(at + 12, 1200), wanted);
        assert_eq!(front.read(at + 1212, 88), [9; 88]);
    }
    assert_eq!(port.faults().total(), 0);
}

/// From the ring of one driver into that of another, with a changed header.
#[test]
fn frames_in_place_are_copied_once_from_ring_to_ring() {
    let (mut left, mut sender) = pair("place-left", ALL);
    let (mut right, mut receiver) = pair("place-right", ALL);
    let frames: Vec<_> = (0..20).map(|n| frame(n, 60 + 70 * n)).collect();
    for (number, frame) in (0..).zip(&frames) {
        sender.send(number, frame);
        receiver.lend(number);
    }
    let (left, right) = (left.in_place().unwrap(), right.in_place().unwrap());
    let now = clock::now();
    assert_eq!(left.look(12, now), 12);
    assert_eq!(left.look(12, now), 12, "frames are visible until released");
    let heads: Vec<[u8; 14]> = left.shown().iter().map(|view| view.head().unwrap()).collect();
    let changed: Vec<_> = heads.iter().map(|head| head.map(|byte| !byte)).collect();
    let views = left.shown().iter().zip(&changed);
    let parts: Vec<_> = views.map(|(view, head)| (View::of(head), view.after(14))).collect();
    assert_eq!(right.put(&parts[..5]), 5);
    assert_eq!(receiver.used(0), [], "not yet");
    assert_eq!(right.put(&parts[5..]), 7);
    right.flush();
    left.release(5);
    assert_eq!(sender.used(1).len(), 5);
    assert_eq!(left.look(99, now), 7);
    left.release(7);
    assert_eq!((left.look(99, now), sender.used(1).len()), (8, 7));
    for ((number, bytes), frame) in receiver.used(0).into_iter().zip(&frames) {
        assert_eq!(bytes as usize, frame.len() + 12);
        let got = receiver.read(Front::buffer(0, number) + 12, frame.len());
        assert_eq!(got[14..], frame[14..]);
        assert_eq!(got[..14], changed[usize::from(number)]);
    }
}

fn is_readable(descriptor: i32) -> bool {
    let mut wait = WaitSet::new();
    wait.add(descriptor, false);
    wait.until(Some(Nanos::ZERO)).unwrap() == 1
}

#[test]
fn only_sleeping_ends_are_signaled() {
    let (mut port, mut front) = pair("sleep", ALL);
    receive(&mut port);
    assert!(front.is_not_to_kick(1), "it polls");
    let events = port.descriptor().unwrap();
    assert!(!front.is_not_to_kick(1) && !is_readable(events));
    front.send(0, &frame(0, 60));
    front.kicks[1].ring();
    assert!(is_readable(events));
    assert_eq!(receive(&mut port).len(), 1);
    assert!(front.is_not_to_kick(1));
    assert!(!is_readable(events));
    // A frame that arrived just before is found without a kick.
    front.send(0, &frame(0, 60));
    assert!(is_readable(port.descriptor().unwrap()));
    assert_eq!(receive(&mut port).len(), 1);
    // The device signals the driver unless it polls.
    assert!(is_readable(front.calls[1].descriptor()), "its frames were received");
    front.calls[1].drain();
    front.want_no_calls(1, true);
    front.send(0, &frame(0, 60));
    assert_eq!(receive(&mut port).len(), 1);
    assert!(!is_readable(front.calls[1].descriptor()));
    front.lend(0);
    assert_eq!(send(&mut port, &[frame(0, 60)]), 1);
    assert!(is_readable(front.calls[0].descriptor()));
}

#[test]
fn a_stopped_ring_continues_at_its_position() {
    let (mut port, mut front) = pair("stop", ALL);
    for number in 0..5 {
        front.send(number, &frame(1, 60));
    }
    assert_eq!(receive(&mut port).len(), 5);
    front.say_ring(GET_BASE, 1, 0);
    port.turn(clock::now());
    assert_eq!(front.answer(), 1 | 5 << 32);
    assert!(!port.has_link());
    front.send(5, &frame(2, 60));
    assert_eq!(receive(&mut port).len(), 0);
    front.go(1);
    port.turn(clock::now());
    assert_eq!(receive(&mut port), [frame(2, 60)]);
    front.say_ring(SET_ENABLE, 1, 0);
    front.send(6, &frame(3, 60));
    port.turn(clock::now());
    assert_eq!(receive(&mut port).len(), 0);
    front.say_ring(SET_ENABLE, 1, 1);
    port.turn(clock::now());
    assert_eq!(receive(&mut port), [frame(3, 60)]);
}

#[test]
fn the_offered_features_are_reported() {
    let mut port = VhostPort::open(&Spec { queues: 3, ..Spec::new(path("ends")) }).unwrap();
    let mut front = Front::connect(&path("ends"));
    front.say(GET_FEATURES, &[], &[]);
    port.turn(clock::now());
    assert_eq!(front.answer(), VERSION_1 | PROTOCOL | MERGE | 1 << 22);
    front.say(SET_FEATURES, &[ALL], &[]);
    front.say(GET_PROTOCOL_FEATURES, &[], &[]);
    port.turn(clock::now());
    assert_eq!(front.answer(), 1 | 1 << 3, "several queues, and replies on request");
    front.say(SET_PROTOCOL_FEATURES, &[1], &[]);
    front.say(GET_QUEUE_NUM, &[], &[]);
    port.turn(clock::now());
    assert_eq!(front.answer(), 3);
    // The third of three pairs is used.
    front.say_memory(&[[GUEST, USER, BYTES as u64, 0]]);
    front.start(4);
    front.start(5);
    port.turn(clock::now());
    assert_eq!((port.has_link(), port.queues()), (true, [1, 1]));
}

#[test]
fn front_ends_can_reconnect_and_only_one_is_connected() {
    let (mut port, mut front) = pair("come", ALL);
    for _ in 0..3 {
        let other = Front::connect(&path("come"));
        other.set_up(ALL);
        port.turn(clock::now());
        front.send(0, &frame(0, 60));
        assert_eq!(receive(&mut port).len(), 1, "the first one stays connected");
        drop(other);
        // During a burst.
        front.send(1, &frame(0, 60));
        front.lend(0);
        drop(front);
        port.turn(clock::now());
        assert!(!port.has_link());
        assert_eq!(send(&mut port, &[frame(0, 60)]), 0);
        front = Front::connect(&path("come"));
        front.set_up(ALL);
        port.turn(clock::now());
        assert!(port.has_link());
    }
    assert_eq!((port.faults().of(Fault::Taken), port.faults().total()), (3, 3));
}

#[test]
fn a_listening_front_end_is_connected_again_and_again() {
    let place = path("listens");
    let spec = Spec { role: Role::Client, ..Spec::new(&place) };
    let mut port = VhostPort::open(&spec).unwrap();
    let mut now = Nanos::from_secs(1);
    port.turn(now);
    for _ in 0..3 {
        let listener = UnixListener::bind(&place).unwrap();
        now = now.saturating_add(Nanos::from_millis(150));
        port.turn(now);
        let mut front = Front::new(listener.accept().unwrap().0);
        front.set_up(ALL);
        port.turn(now);
        assert!(port.has_link());
        front.send(0, &frame(4, 60));
        assert_eq!(receive(&mut port).len(), 1);
        std::fs::remove_file(&place).unwrap();
        drop((front, listener));
        port.turn(now);
        assert!(!port.has_link() && port.next_event().is_some());
    }
    assert_eq!(port.faults().total(), 0);
}
