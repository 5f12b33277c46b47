//! Loads that change within a trial, and times of missing frames.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Copy, pass, rig, stream, trial};
use packet::frame::Frame;
use packet::time::Nanos;
use tester::rig::Rig;
use tester::trial::{MissingSpan, Trial, Window};

const MS: u64 = 1_000_000;

fn window(from_ms: u64, until_ms: u64) -> Window {
    Window { from: Nanos(from_ms * MS), until: Nanos(until_ms * MS) }
}

#[test]
fn a_changed_load_is_two_streams_and_the_last_loss_has_a_time() {
    // The device loses every other frame from the 5th millisecond on, until 30 ms after the load
    // drops at 50 ms.
    let rule = |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let is_lost = now >= Nanos(5 * MS) && now < Nanos(80 * MS) && count % 2 == 1;
        if is_lost { Vec::new() } else { vec![pass(1 - port, frame, now)] }
    };
    let streams = vec![stream(1, 64, 110_000.0), stream(2, 64, 50_000.0)];
    let windows = vec![window(0, 50), window(50, 150)];
    let report = rig(2, rule).trial(&Trial { windows, ..trial(streams, 150) }).unwrap();
    let [over, under] = &report.streams[..] else { panic!("two streams") };
    assert_eq!((over.load.intended, under.load.intended), (5_500, 5_000));
    assert_eq!((over.load.pps_offered(), under.load.pps_offered()), (110_000.0, 50_000.0));
    assert_eq!(report.total.offered, 10_500);
    let near = |moment: Option<Nanos>, ms: u64, period_us: u64| {
        let away = moment.unwrap().0.abs_diff(ms * MS);
        assert!(away <= 2 * period_us * 1000, "{moment:?}, not {ms} ms");
    };
    near(over.missed.first, 5, 10);
    near(over.missed.last, 50, 10);
    near(under.missed.first, 50, 20);
    near(under.missed.last, 80, 20);
    // Every second frame of 110,000 per second.
    assert!((18_181..=18_182).contains(&over.missed.silence.0), "{:?}", over.missed);
}

#[test]
fn an_outage_is_the_longest_silence() {
    let rule = |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let is_away = (Nanos(20 * MS)..Nanos(27 * MS)).contains(&now);
        if is_away { Vec::new() } else { vec![pass(1 - port, frame, now)] }
    };
    let report = rig(2, rule).trial(&trial(vec![stream(1, 64, 1_000.0)], 50)).unwrap();
    let missed = report.streams[0].missed;
    let [first, last] = [20, 26].map(|ms| Some(Nanos(ms * MS)));
    // From the frame at 19 ms to the one at 27 ms.
    assert_eq!(missed, MissingSpan { first, last, silence: Nanos(8 * MS) });
    assert_eq!(report.total.forwarded, 43);
}

#[test]
fn a_tester_stall_is_not_reported_as_silence() {
    let wire = |_: u64, port: usize, frame: &Frame, now: Nanos| vec![pass(1 - port, frame, now)];
    let mut quiet = rig(2, wire);
    quiet.pause_tester(Nanos(20 * MS), Nanos(5 * MS));
    let report = quiet.trial(&trial(vec![stream(1, 64, 1_000.0)], 50)).unwrap();
    assert_eq!(report.stalls.count, 1);
    // The tester sends overdue frames immediately after the stall.
    let silence = report.streams[0].missed.silence;
    assert!(silence <= Nanos(MS), "{silence}");
    // An outage of seven milliseconds. The tester stalls in the last of them.
    let rule = |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let is_away = (Nanos(20 * MS)..Nanos(27 * MS)).contains(&now);
        if is_away { Vec::new() } else { vec![pass(1 - port, frame, now)] }
    };
    let mut rig = rig(2, rule);
    rig.pause_tester(Nanos(25 * MS + MS / 2), Nanos(3 * MS));
    let report = rig.trial(&trial(vec![stream(1, 64, 1_000.0)], 50)).unwrap();
    let silence = report.streams[0].missed.silence;
    assert!((Nanos(6 * MS)..=Nanos(8 * MS)).contains(&silence), "{silence}");
}

#[test]
fn the_delay_variation_is_reported_on_request() {
    // Latencies of 5, 5 and 9 us in rotation.
    let rule = |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let us = if count % 3 == 2 { 9 } else { 5 };
        vec![pass(1 - port, frame, now.saturating_add(Nanos::from_micros(us)))]
    };
    let load = trial(vec![stream(1, 64, 1_000.0)], 60);
    assert_eq!(rig(2, rule).trial(&load).unwrap().streams[0].jitter.variation, None);
    let report = rig(2, rule).trial(&Trial { tells_variation: true, ..load }).unwrap();
    let found = report.streams[0].jitter.variation.unwrap();
    assert_eq!((found.ns_min, found.ns_median, found.ns_max, found.count), (-4000, 0, 4000, 59));
}
