//! Tests that each frame is counted once and nothing panics, for any bytes.

use packet::traffic::Protocol;

use super::*;
use crate::generator::schedule::Period;
use crate::generator::template::tests::{made, stream};
use crate::mix::mix;
use crate::signature::{SendTime, Sequence};
use crate::stream::{Stream, Vlan};
use crate::trial::Classes;

const KEY: u64 = 3;

fn monitor(streams: &[Stream]) -> Monitor {
    let with = |stream: &Stream| {
        let period = Period::new(stream.rate, 64);
        let schedule = Schedule::new(Nanos::ZERO, Nanos::ZERO, Nanos::from_secs(1), period);
        let templates = Templates::arriving(stream, KEY);
        let phases = [schedule, schedule];
        Expected { templates, to: stream.to, phases, tells_variation: false }
    };
    Monitor::new(KEY, 4, streams.iter().map(with).collect(), 2)
}

fn frame(stream: &Stream, number: u64) -> Vec<u8> {
    let sequence = Sequence { is_warmup: false, epoch: 4, number };
    made(Templates::leaving(stream, KEY).of(number), sequence, SendTime::new(Nanos(number)))
}

#[test]
fn every_mutation_is_counted_exactly_once() {
    let mut tagged = Stream { id: 8, ..stream(100) };
    tagged.headers.vlans = vec![Vlan { priority: 1, ..Vlan::new(3) }];
    let streams = [stream(64), tagged];
    let mut monitor = monitor(&streams);
    let count = 20_000;
    let mut counted = [Traffic::new(), Traffic::new()];
    for round in 0..count {
        let random = |salt: u64| mix(round << 8 | salt);
        let mut bytes = frame(&streams[(round % 2) as usize], random(0) % 1_200);
        for change in 0..random(1) % 4 {
            match random(10 + change) % 4 {
                0 => bytes.truncate((random(20 + change) % 101) as usize),
                1 => bytes.resize((random(20 + change) % 200) as usize, change as u8),
                2 => {
                    let gap = (random(20 + change) % 30) as usize;
                    if gap <= bytes.len() {
                        bytes.splice(gap..gap, [0x81, 0, 0, 5]);
                    }
                }
                _ => {
                    if let Some(place) = random(20 + change).checked_rem(bytes.len() as u64) {
                        bytes[place as usize] ^= random(30 + change) as u8;
                    }
                }
            }
        }
        let port = (round / 2 % 2) as usize;
        monitor.observe(port, &bytes, Nanos(round));
        counted[port].add(&bytes);
    }
    let frozen = monitor.freeze(Nanos(count));
    for (port, counted) in frozen.ports.iter().zip(&counted) {
        assert_eq!(port.traffic.total, counted.total);
        assert_eq!(port.traffic.sizes(), counted.sizes());
        for protocol in Protocol::ALL {
            assert_eq!(port.traffic.protocol(protocol), counted.protocol(protocol));
        }
    }
    for stream in &frozen.streams {
        let Classes { correct, elsewhere, duplicate, late, .. } = stream.classes;
        let frames = stream.arrived.frames;
        assert!(
            frames >= correct + elsewhere + duplicate
                && frames <= correct + elsewhere + duplicate + late
        );
    }
    let tallies = monitor.ports().to_vec();
    let mut sorted: u64 = tallies.iter().map(|it| it.foreign + it.stale + it.broken).sum();
    let of_ports = sorted;
    for [warmup, measured] in monitor.finish() {
        assert_eq!(warmup.received, 0);
        let classes = measured.classes;
        sorted += classes.correct + classes.elsewhere + classes.duplicate;
        sorted += classes.corrupt + classes.late;
        assert!(classes.correct > 100 && classes.corrupt > 100 && classes.duplicate > 100);
    }
    assert_eq!(tallies.iter().map(|it| it.received).sum::<u64>(), count);
    assert_eq!(sorted, count);
    assert!(of_ports > 1_000);
}

#[test]
fn frames_of_unscheduled_numbers_and_unknown_streams_are_not_received() {
    let streams = [stream(64)];
    let mut monitor = monitor(&streams);
    // 1,000 frames are scheduled.
    monitor.observe(1, &frame(&streams[0], 999), Nanos(1));
    monitor.observe(1, &frame(&streams[0], 1_000), Nanos(1));
    let stranger = Stream { id: 77, ..stream(64) };
    monitor.observe(1, &frame(&stranger, 1), Nanos(1));
    let want = PortTally { received: 3, foreign: 0, stale: 1, broken: 1, elsewhere: 0 };
    assert_eq!(monitor.ports()[1], want);
    assert_eq!(monitor.finish()[0][1].received, 1);
}

#[test]
fn arrivals_before_their_send_time_are_counted_and_not_in_the_histogram() {
    let streams = [stream(64)];
    let mut monitor = monitor(&streams);
    monitor.observe(1, &frame(&streams[0], 500), Nanos(400));
    monitor.observe(1, &frame(&streams[0], 501), Nanos(701));
    let [_, measured] = &monitor.finish()[0];
    assert_eq!((measured.latency.negative, measured.latency.from_sent.ns_max()), (1, Some(200)));
    assert_eq!((measured.jitter.ipdv_ns_max, measured.jitter.pdv_ns), (300, None));
    assert_eq!(measured.jitter.smoothed_ns, 300.0 / 16.0);
}
