//! Measures the rate of one core with AF_XDP on a veth pair, with live frames, and with packet
//! sockets: the cost to send a 64-byte frame, to receive one, and to do both, as a forwarder does.
//!
//! Run as root: `cargo run --release -p ports --example xdp_rate`. It runs in its own network
//! namespace. All work, including the kernel's, is done on one core, most of it during sending, in
//! rounds of 64 frames. The variants alternate. A cost is the tenth percentile of its rounds,
//! because other work on the machine can only increase them.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::process::Command;

use netio::afpacket::Options;
use netio::open::open;
use netio::port::Port;
use os::clock;
use packet::batch_copy::Copies;
use packet::frame::Batch;
use packet::time::Nanos;

/// Frames in a round; a veth holds 256 in flight.
const FRAMES: usize = 64;

/// Rounds of each variant.
const ROUNDS: usize = 20_000;

/// Consecutive rounds of a variant.
const TURN: usize = 500;

/// Timeout after which frames are lost.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Specifications of the sending and the receiving end, per variant.
const WAYS: [(&str, [&str; 2]); 5] = [
    ("packet sockets", ["afpacket:left", "afpacket:right"]),
    ("native", ["xdp:left,mode=native", "xdp:right,mode=native"]),
    ("native, stamps", ["xdp:left,stamps=kernel", "xdp:right,stamps=kernel"]),
    ("generic", ["xdp:left,mode=generic", "xdp:right,mode=generic"]),
    ("live frames to native", ["live:left", "xdp:right,mode=native"]),
];

fn main() {
    // SAFETY: the process has one thread, which runs in the new namespace from here on.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "needs root");
    os::core::hold(&os::core::allowed().unwrap()[..1]).unwrap();
    ip("link add left type veth peer name right");
    ip("link set left up");
    ip("link set right up");
    // The kernel notices the carrier within a second, and drops frames sent before.
    let left = open("afpacket:left", &Options::forwarder()).unwrap();
    while !left.has_link() {}
    drop(left);
    let mut costs: Vec<[Vec<u64>; 2]> = WAYS.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for _ in 0..ROUNDS / TURN {
        for ((_, specs), spans) in WAYS.iter().zip(&mut costs) {
            turn(specs, spans);
        }
    }
    println!("nanoseconds per frame, and the resulting rate of one core");
    println!("{:24} {:>6} {:>8} {:>6} {:>12}", "", "send", "receive", "both", "both, Mpps");
    for ((name, _), [sending, receiving]) in WAYS.iter().zip(&mut costs) {
        let (send, receive) = (tenth(sending), tenth(receiving));
        let rate = 1e3 / (send + receive).max(1) as f64;
        println!("{name:24} {send:6} {receive:8} {:6} {rate:12.2}", send + receive);
    }
}

fn ip(arguments: &str) {
    assert!(Command::new("ip").args(arguments.split(' ')).status().unwrap().success());
}

fn tenth(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 10).copied().unwrap_or(0)
}

/// Sends rounds of frames from left to right and receives them; adds the duration of each round.
fn turn(specs: &[&str; 2], [sending, receiving]: &mut [Vec<u64>; 2]) {
    let [mut left, mut right] = specs.map(|spec| open(spec, &Options::forwarder()).unwrap());
    let mut out = Copies::new(FRAMES);
    while let Some(frame) = out.push(60, None) {
        frame.fill(2);
    }
    let mut arrived = Batch::new(FRAMES);
    for _ in 0..TURN {
        let before = clock::now();
        assert_eq!(left.transmit_copies(&mut out, before).unwrap(), FRAMES);
        let between = clock::now();
        arrived.clear();
        while arrived.len() < FRAMES {
            assert!(clock::now().since(between) < PATIENCE, "{} frames received", arrived.len());
            right.receive(&mut arrived, between).unwrap();
        }
        let after = clock::now();
        sending.push(between.since(before).0 / FRAMES as u64);
        receiving.push(after.since(between).0 / FRAMES as u64);
    }
}
