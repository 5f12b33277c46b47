//! Benchmark of live ports: frames per second from one interface to another.
//!
//! `cargo run --release -p netio --example live_rate LEFT RIGHT [SECONDS]`, as root. The interfaces
//! are both ends of a veth pair in this namespace. The port's threads run on core 0. The program
//! waits for a line: have the kernel's receive thread of RIGHT (`/sys/class/net/RIGHT/threaded`)
//! run on another core, then press Enter.

#![allow(clippy::unwrap_used)]

use netio::afpacket::Options;
use netio::departure::{SendSchedule, StampPlace};
use netio::open::open;
use netio::port::{Port, PortDrop};
use os::clock;
use packet::batch_copy::Copies;
use packet::time::Nanos;

/// Frames that are handed over together.
const BATCH_FRAMES: usize = 64;

/// How long the port's owner leaves the core to the port.
const PAUSE: Nanos = Nanos::from_micros(50);

fn main() {
    let mut words = std::env::args().skip(1);
    let (left, right) = (words.next().unwrap(), words.next().unwrap());
    let seconds = words.next().map_or(1.0, |text| text.parse().unwrap());
    os::core::hold(&[0]).unwrap();
    os::core::wake_on_time().unwrap();
    let mut ports = [&left, &right]
        .map(|name| open(&format!("live:{name},receive"), &Options::forwarder()).unwrap());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("{:34}{:>12}{:>12}{:>12}", "frames per second", "sent", "received", "read");
    for bytes in [60, 124, 1514] {
        for call in [64, 256] {
            let name = format!("{bytes} bytes, {call} in a call");
            measure(&name, &mut ports, seconds, |left, until| {
                let mut copies = frames(bytes, call);
                while clock::now() < until {
                    left.transmit_copies(&mut copies, clock::now()).unwrap();
                }
            });
        }
        for reads in [false, true] {
            let reading = if reads { ", read" } else { "" };
            let name = format!("{bytes} bytes, one call{reading}");
            let [left, right] = &mut ports;
            let before = counts([left.as_mut(), right.as_mut()]);
            ahead(left.as_mut(), reads.then_some(right.as_mut()), bytes, seconds);
            show(&name, before, counts([left.as_mut(), right.as_mut()]), seconds);
        }
    }
}

fn frames(bytes: usize, count: usize) -> Copies {
    let mut copies = Copies::new(count);
    for _ in 0..count {
        copies.push(bytes, None).unwrap().fill(2);
    }
    copies
}

fn measure(
    name: &str,
    [left, right]: &mut [Box<dyn Port>; 2],
    seconds: f64,
    run: impl FnOnce(&mut dyn Port, Nanos),
) {
    let before = counts([left.as_mut(), right.as_mut()]);
    run(left.as_mut(), clock::now() + Nanos::from_secs_f64(seconds));
    show(name, before, counts([left.as_mut(), right.as_mut()]), seconds);
}

/// Hands over as many frames as the port takes, and reads what arrives.
fn ahead(left: &mut dyn Port, mut right: Option<&mut dyn Port>, bytes: usize, seconds: f64) {
    let mut copies = frames(bytes, BATCH_FRAMES);
    let (mut some, mut departed) = (Copies::new(BATCH_FRAMES), Vec::new());
    let stamp = Some(StampPlace { at: 44, number: 1, key: 2, seed: 3, checksum: None });
    let until = clock::now() + Nanos::from_secs_f64(seconds);
    left.send_ahead(true);
    while clock::now() < until {
        let now = clock::now();
        let departures = [SendSchedule::once(now, Nanos::MAX, stamp); BATCH_FRAMES];
        while left.transmit_at(&mut copies, &departures, now).unwrap() > 0 {}
        departed.clear();
        left.take_departed(&mut departed);
        if let Some(right) = &mut right {
            while right.receive_copies(&mut some, now).unwrap() > 0 {}
        }
        clock::sleep_until(clock::now() + PAUSE);
    }
    left.send_ahead(false);
}

/// Returns the frames sent, received and read.
fn counts([left, right]: [&mut dyn Port; 2]) -> [u64; 3] {
    let (left, right) = (left.counters(), right.counters());
    let received = right.rx_frames + right.lost(PortDrop::ReceiveRingFull);
    [left.tx_frames, received, right.rx_frames]
}

fn show(name: &str, before: [u64; 3], after: [u64; 3], seconds: f64) {
    let rate = |place: usize| (after[place] - before[place]) as f64 / seconds;
    println!("{name:34}{:12.0}{:12.0}{:12.0}", rate(0), rate(1), rate(2));
}
