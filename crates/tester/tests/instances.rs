//! Delay between two testers with independent, wrong clocks and a common pulse per second.
//!
//! The measured delay must be within the error that their clocks state.

#![allow(clippy::unwrap_used)]

mod common;

use common::{KEY, stream, trial};
use netio::memory::{MemoryPort, pair};
use netio::port::Port;
use netio::wrap::delay::{Delay, DelayOptions};
use os::clock::reference::ClockReading;
use packet::frame::Batch;
use packet::time::Nanos;
use tester::clock::servo::Discipline;
use tester::rig::engine::{Engine, ReadyTrial};
use tester::trial::TrialReport;

/// Interval between the polls of each tester.
const STEP: Nanos = Nanos::from_micros(2);

const SECOND: u64 = 1_000_000_000;

/// A tester's own clock, and the servo that its pulses drive.
struct Instance {
    offset: u64,
    ppb: i64,
    noise: u64,
    discipline: Discipline,
}

impl Instance {
    fn new(offset: u64, ppb: i64, noise: u64) -> Self {
        Instance { offset, ppb, noise, discipline: Discipline::new() }
    }

    /// Returns what its own clock shows at a true time.
    fn shown(&self, at: Nanos) -> Nanos {
        let gained = i128::from(at.0) * i128::from(self.ppb) / i128::from(SECOND);
        Nanos((i128::from(at.0 + self.offset) + gained) as u64)
    }

    /// Returns its estimate of the time.
    fn now(&self, at: Nanos) -> Nanos {
        self.discipline.reference(self.shown(at)).unwrap()
    }

    /// Processes the pulse at the start of a second, which it detects some nanoseconds late.
    fn pulse(&mut self, second: u64) {
        let late = second.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ self.offset;
        let at = Nanos::from_secs(second);
        let local = self.shown(at) + Nanos(late % (self.noise + 1));
        self.discipline.meet(&ClockReading { local, reference: at, error: Nanos(self.noise) });
    }

    fn error_ns(&self, at: Nanos) -> f64 {
        self.discipline.error_ns(self.shown(at)).unwrap()
    }
}

/// Sends from the first port of one tester to the second port of the other, over a link with delay
/// `fixed`.
///
/// Returns the receiver's report, and the largest error that both clocks stated together.
fn one_way(instances: &mut [Instance; 2], fixed: Nanos) -> (TrialReport, f64) {
    let pulses = 80;
    (1..=pulses).for_each(|second| instances.iter_mut().for_each(|one| one.pulse(second)));
    // The next pulse occurs in the middle of the trial.
    let start = Nanos(pulses * SECOND + 900_000_000);
    let (near, mut far) = pair(1024, "near");
    let (out, arriving) = pair(1024, "far");
    let (idle, _others) = pair(1, "idle");
    let (quiet, _more) = pair(1, "quiet");
    let mut link = Delay::new(out, DelayOptions { fixed, ..DelayOptions::default() });
    let row = |ports: [MemoryPort; 2]| ports.map(|port| Box::new(port) as Box<dyn Port>);
    let (mut sending, mut receiving) = (row([near, idle]), row([quiet, arriving]));
    let load = trial(vec![stream(1, 64, 10_000.0)], 200);
    let engine = |ports: &mut [Box<dyn Port>]| {
        let prepared = ReadyTrial::new(&load, ports, KEY).unwrap();
        Engine::new(prepared, ports, 1, start)
    };
    let (mut sender, mut receiver) = (engine(&mut sending), engine(&mut receiving));
    let (mut batch, mut error_ns) = (Batch::new(64), 0.0f64);
    let mut at = start;
    while at < start + Nanos::from_millis(220) {
        if at.0.is_multiple_of(SECOND) {
            instances.iter_mut().for_each(|one| one.pulse(at.0 / SECOND));
        }
        let [here, there] = &*instances;
        sender.send(&mut sending, here.now(at)).unwrap();
        far.receive(&mut batch, at).unwrap();
        let sent = link.transmit(&mut batch, at).unwrap();
        batch.drop_front(sent);
        let now = there.now(at);
        receiver.receive(&mut receiving, now, || now).unwrap();
        error_ns = error_ns.max(here.error_ns(at) + there.error_ns(at));
        at += STEP;
    }
    let (sent, came) = (sender.finish(&mut sending), receiver.finish(&mut receiving));
    assert_eq!((sent.total.offered, came.classes.correct), (2_000, 2_000));
    assert_eq!(came.latency.negative, 0);
    (came, error_ns)
}

#[test]
fn the_delay_between_two_testers_is_within_the_error_of_their_clocks() {
    for (case, fixed_us) in (0..24u64).zip((3..).step_by(41)) {
        let fixed = Nanos::from_micros(fixed_us);
        let mut instances = [
            Instance::new(case * 977_000_003, 9_000 * case as i64 - 100_000, 20),
            Instance::new(5_000_000_000 / (case + 1), 60_000 - 7_000 * case as i64, 80),
        ];
        let (came, error_ns) = one_way(&mut instances, fixed);
        let mean = came.latency.from_sent.ns_mean().unwrap();
        // A frame due between two polls is sent at the second, and found at a poll.
        let stated = error_ns + STEP.0 as f64;
        assert!((mean - fixed.0 as f64).abs() <= stated, "{mean} of {fixed}, within {stated}");
        assert!(error_ns < 600.0, "{error_ns} ns of error for pulses known to 80 ns");
        let most = came.latency.from_sent.ns_max().unwrap();
        assert!(most as f64 <= fixed.0 as f64 + stated, "{most} of {fixed}");
    }
}
