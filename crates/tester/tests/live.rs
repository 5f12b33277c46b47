//! Trials in real time over memory ports, with a wire in its own thread.
//!
//! No assertion depends on speed: frames must be accounted for at any speed.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{KEY, stream, trial};
use netio::memory::{MemoryPort, pair};
use netio::port::{Port, PortCounters, PortError, PortFacts};
use os::clock;
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use tester::pauses::AWAY;
use tester::rig::live::LiveRig;
use tester::rig::{Rig, RigError};
use tester::trial::Flag;

/// Forwards frames between two ports until stopped, and reports their number to `passed`.
fn wire(mut ends: [MemoryPort; 2], stop: &AtomicBool, passed: impl Fn(usize)) {
    let mut batch = Batch::new(256);
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [(0, 1), (1, 0)] {
            batch.clear();
            ends[from].receive(&mut batch, clock::now()).unwrap();
            while !batch.is_empty() && !stop.load(Ordering::Relaxed) {
                let sent = ends[to].transmit(&mut batch, clock::now()).unwrap();
                batch.drop_front(sent);
                passed(sent);
            }
        }
        std::thread::yield_now();
    }
}

fn with_wire<T>(test: impl FnOnce(&mut LiveRig, Arc<AtomicBool>) -> T) -> T {
    with_wire_until(usize::MAX, test)
}

/// Like `with_wire`, and stops the rig once the wire has forwarded this many frames.
fn with_wire_until<T>(frames: usize, test: impl FnOnce(&mut LiveRig, Arc<AtomicBool>) -> T) -> T {
    let (near0, far0) = pair(4096, "a");
    let (near1, far1) = pair(4096, "b");
    let stop = Arc::new(AtomicBool::new(false));
    let near: Vec<Box<dyn Port>> = vec![Box::new(near0), Box::new(near1)];
    let done = AtomicBool::new(false);
    // The rig outlives the wire, so the wire's ports never lose their peers.
    let mut rig = LiveRig::new(near, KEY, stop.clone());
    std::thread::scope(|scope| {
        let _done = SetWhenDropped(&done);
        let (count, stopper) = (AtomicUsize::new(0), stop.clone());
        let passed = move |sent| {
            if count.fetch_add(sent, Ordering::Relaxed) + sent >= frames {
                stopper.store(true, Ordering::Relaxed);
            }
        };
        scope.spawn(|| wire([far0, far1], &done, passed));
        test(&mut rig, stop)
    })
}

/// Stops the wire also when the test panics.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_frame_over_a_live_wire_is_accounted_for() {
    with_wire(|rig, _| {
        let mut back = stream(2, 512, 5_000.0);
        (back.from, back.to) = (1, 0);
        let mut load = trial(vec![stream(1, 64, 20_000.0), back], 200);
        load.warmup = Nanos::from_millis(20);
        load.drain = Nanos::from_millis(500);
        let report = rig.trial(&load).unwrap();
        assert_eq!(report.total.intended, 5_000);
        let unsent: u64 =
            report.streams.iter().map(|one| one.unsent_late + one.unsent_refused).sum();
        assert_eq!(report.total.offered + unsent, report.total.intended);
        assert_eq!(report.total.forwarded, report.total.offered);
        assert_eq!(report.classes.correct, report.total.offered);
        assert_eq!(report.classes.reordered + report.classes.duplicate, 0);
        assert_eq!(report.account.unexplained(), 0);
        assert_eq!(report.latency.negative, 0);
        assert_ne!(report.latency.from_sent.ns_min(), Some(0));
        let reported = report.latency.from_sent.count() + report.latency.unknown;
        assert_eq!(reported, report.total.forwarded);
        let (sent, due) = (&report.latency.from_sent, &report.latency.from_scheduled);
        assert!(due.ns_mean() >= sent.ns_mean(), "a frame is never sent before it is due");
        assert_eq!(report.stamps, Clock::UserSpace);
        assert_eq!(report.pacing.lateness.count(), report.total.offered);
        // A second trial starts from zero.
        let again = rig.trial(&load).unwrap();
        assert_eq!(again.account.unexplained(), 0);
        assert_eq!(again.ports.iter().map(|port| port.stale).sum::<u64>(), 0);
    });
}

#[test]
fn frames_after_the_drain_count_while_the_trial_is_open() {
    let ((near0, far0), (near1, far1)) = (pair(4096, "a"), pair(4096, "b"));
    let near: Vec<Box<dyn Port>> = vec![Box::new(near0), Box::new(near1)];
    let mut rig = LiveRig::new(near, KEY, Arc::default());
    let load = trial(vec![stream(1, 64, 20_000.0)], 50);
    // No thread forwards the frames until the drain is over.
    let open = rig.open(&load).unwrap();
    assert_eq!(open.drain(), load.drain);
    let offered = rig.missing(&open);
    let done = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let _done = SetWhenDropped(&done);
        scope.spawn(|| wire([far0, far1], &done, |_| {}));
        let mut open = open;
        while rig.missing(&open) > 0 {
            open = rig.go_on(open, Nanos::from_millis(5)).unwrap();
        }
        rig.close(open)
    });
    assert!(offered > 0 && report.drain > load.drain);
    assert_eq!((report.account.received, report.account.unexplained()), (offered, 0));
    assert_eq!(report.total.forwarded, offered);
}

#[test]
fn a_trial_stops_when_requested() {
    with_wire(|rig, stop| {
        stop.store(true, Ordering::Relaxed);
        let hour = trial(vec![stream(1, 64, 10.0)], 3_600_000);
        assert!(matches!(rig.trial(&hour), Err(RigError::Interrupted)));
    });
}

#[test]
fn a_stopped_trial_has_a_report_until_that_time() {
    with_wire_until(500, |rig, _| {
        let mut hour = trial(vec![stream(1, 64, 5_000.0), stream(2, 128, 500.0)], 3_600_000);
        hour.drain = Nanos::from_millis(500);
        let (report, is_stopped) = rig.trial_until_stopped(&hour).unwrap();
        assert!(is_stopped);
        let unsent: u64 =
            report.streams.iter().map(|one| one.unsent_late + one.unsent_refused).sum();
        assert_eq!(report.total.offered + unsent, report.total.intended);
        assert!(report.total.offered >= 500 && report.duration < Nanos::from_secs(3_600));
        assert_eq!(report.total.forwarded, report.total.offered);
        assert_eq!(report.account.unexplained(), 0);
        // The intended load matches a trial of this duration.
        let seconds = report.duration.as_secs_f64();
        assert!((report.total.intended as f64 - seconds * 5_500.0).abs() <= 2.0);
        let gaps: u64 = report.streams.iter().map(|one| one.pacing.gaps.count()).sum();
        assert_eq!(gaps, report.total.offered - 2);
    });
}

#[test]
fn a_port_without_a_peer_is_an_error_that_names_the_port() {
    let (near0, far0) = pair(16, "left");
    let (near1, _far1) = pair(16, "right");
    drop(far0);
    let near: Vec<Box<dyn Port>> = vec![Box::new(near0), Box::new(near1)];
    let mut rig = LiveRig::new(near, KEY, Arc::default());
    let error = rig.trial(&trial(vec![stream(1, 64, 1_000.0)], 50)).unwrap_err();
    assert_eq!(error.to_string(), "port 1: the peer of left.0 is gone");
}

/// A port at which the tester sleeps occasionally, before or after frames are received or sent.
struct Drowsy {
    inner: MemoryPort,
    received: u64,
    sent: u64,
}

const NAP: Nanos = Nanos::from_millis(2);

fn nap(calls: u64, of: u64, at: u64) {
    if calls % of == at {
        clock::sleep_until(clock::now() + NAP);
    }
}

impl Port for Drowsy {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.received += 1;
        nap(self.received, 40_000, 1_000);
        let count = self.inner.receive(batch, now);
        nap(self.received, 40_000, 21_000);
        count
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.sent += 1;
        nap(self.sent, 1_000, 300);
        let count = self.inner.transmit(batch, now);
        nap(self.sent, 1_000, 800);
        count
    }

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }
}

/// A port at which the tester sleeps once, from one time to another.
struct Asleep {
    inner: MemoryPort,
    from: Nanos,
    until: Nanos,
}

impl Port for Asleep {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        if clock::now() >= self.from {
            clock::sleep_until(self.until);
        }
        self.inner.receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.transmit(batch, now)
    }

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }
}

#[test]
fn a_longer_drain_sends_no_frames() {
    let (near, _far) = pair(4096, "a");
    let (second, _far) = pair(4096, "b");
    let now = clock::now();
    let (from, until) = (now + Nanos::from_millis(40), now + Nanos::from_millis(150));
    let near = Asleep { inner: near, from, until };
    let mut rig = LiveRig::new(vec![Box::new(near), Box::new(second)], KEY, Arc::default());
    // Wide enough that all frames still due after the sleep could be sent.
    let mut load = trial(vec![stream(1, 64, 1_000.0)], 50);
    load.catch_up_frames = 1_000;
    let open = rig.open(&load).unwrap();
    let offered = rig.missing(&open);
    let open = rig.go_on(open, Nanos::from_millis(5)).unwrap();
    assert_eq!(rig.missing(&open), offered);
    let report = rig.close(open);
    let unsent: u64 = report.streams.iter().map(|one| one.unsent_late).sum();
    assert_eq!((report.total.offered, report.total.offered + unsent), (offered, 50));
}

#[test]
fn a_tester_that_sleeps_records_no_delay_of_its_own() {
    // Over a bare ring frames have no delay: any recorded delay is the tester's own. None can reach
    // the stall limit, even on a busy machine.
    let drowsy = |inner| Box::new(Drowsy { inner, received: 0, sent: 0 }) as Box<dyn Port>;
    let (first, second) = pair(4096, "ring");
    let stop = Arc::new(AtomicBool::new(false));
    let mut rig = LiveRig::new(vec![drowsy(first), drowsy(second)], KEY, stop);
    let report = rig.trial(&trial(vec![stream(1, 64, 20_000.0)], 300)).unwrap();
    let (latency, stalls) = (&report.latency, report.stalls);
    assert!(latency.from_sent.ns_max().unwrap() <= AWAY.0, "{:?}", latency.from_sent.ns_max());
    assert!(latency.from_sent.count() > 0 && latency.unknown > 0, "{stalls:?}");
    assert_eq!(latency.from_sent.count() + latency.unknown, report.total.forwarded);
    assert!(stalls.count > 0 && stalls.ns_longest >= NAP.0, "{stalls:?}");
    assert_eq!(stalls.delays_unknown, latency.unknown);
    assert!(report.flags.iter().any(|flag| matches!(flag, Flag::Stalled(_))), "{:?}", report.flags);
    assert_eq!(report.account.unexplained(), 0);
}
