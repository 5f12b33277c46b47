//! Faults that `netio` injects: the monitor's counts equal those of the fault wrapper, to the
//! frame.

#![allow(clippy::unwrap_used)]

mod common;

use common::{KEY, links, rig_over, stream, trial, wire};
use netio::memory::MemoryPort;
use netio::port::{Port, PortDrop, PortError};
use netio::wrap::delay::{Delay, DelayOptions};
use netio::wrap::fault::{FaultCounters, FaultOptions, FaultyPort};
use netio::wrap::rate::{Rate as SlowLink, RateOptions};
use packet::frame::Batch;
use packet::time::Nanos;
use tester::account::DropLocation;
use tester::rig::sim::{Device, SimRig};
use tester::rig::{Rig, RigError};
use tester::stream::{self, Rate};
use tester::trial::{Classes, Flag, TrialReport};

/// A wire from its first to its second end, which injects faults.
struct FaultyWire {
    from: MemoryPort,
    to: FaultyPort<MemoryPort>,
    batch: Batch,
}

impl Device for FaultyWire {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        self.from.receive(&mut self.batch, now).unwrap();
        let sent = self.to.transmit(&mut self.batch, now).unwrap();
        assert_eq!(sent, self.batch.len());
        self.batch.clear();
        self.to.next_event()
    }
}

fn run(options: FaultOptions) -> (TrialReport, FaultCounters) {
    let (near, mut far) = links(2);
    let near = near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let to = FaultyPort::new(far.pop().unwrap(), options);
    let device = FaultyWire { from: far.pop().unwrap(), to, batch: Batch::new(1024) };
    let mut rig = SimRig::new(near, device, KEY);
    let report = rig.trial(&trial(vec![stream(1, 128, 100_000.0)], 200)).unwrap();
    assert_eq!(report.total.offered, 20_000);
    (report, rig.device.to.faults())
}

fn broken(report: &TrialReport) -> u64 {
    report.ports.iter().map(|port| port.broken).sum()
}

#[test]
fn injected_loss_equals_the_missing_frames() {
    let (report, faults) = run(FaultOptions { loss: 0.01, seed: 1, ..FaultOptions::default() });
    assert!((100..300).contains(&faults.lost));
    let want = Classes { correct: 20_000 - faults.lost, ..Classes::default() };
    assert_eq!(report.classes, want);
    assert_eq!(report.account.unexplained(), faults.lost as i64);
}

#[test]
fn injected_duplicates_equal_the_counted_duplicates() {
    let (report, faults) = run(FaultOptions { duplicate: 0.01, seed: 2, ..Default::default() });
    assert!((100..300).contains(&faults.duplicated));
    let want = Classes { correct: 20_000, duplicate: faults.duplicated, ..Classes::default() };
    assert_eq!(report.classes, want);
    assert_eq!(report.account.unexplained(), 0);
}

#[test]
fn injected_reordering_equals_the_counted_reordering() {
    let (report, faults) = run(FaultOptions { reorder: 0.01, seed: 3, ..Default::default() });
    assert!((100..300).contains(&faults.reordered));
    let want = Classes { correct: 20_000, reordered: faults.reordered, ..Classes::default() };
    assert_eq!(report.classes, want);
    assert_eq!(report.account.unexplained(), 0);
    // Each waited for three frames, 10 us apart, and for one more if one of those was delayed too.
    assert_eq!(report.latency.from_sent.ns_max(), Some(40_000));
}

#[test]
fn injected_corruption_is_counted_as_corruption_only() {
    let (report, faults) = run(FaultOptions { corrupt: 0.05, seed: 4, ..Default::default() });
    assert!((500..2_000).contains(&faults.corrupted));
    let found = report.classes.corrupt + broken(&report);
    assert_eq!(found, faults.corrupted);
    // Of 124 bytes, 18 are the signature. Without it a frame has no number.
    assert!(broken(&report) > 50 && report.classes.corrupt > 300);
    let correct = 20_000 - faults.corrupted;
    let corrupt = report.classes.corrupt;
    assert_eq!(report.classes, Classes { correct, corrupt, ..Classes::default() });
    assert_eq!(report.ports.iter().map(|port| port.foreign + port.stale).sum::<u64>(), 0);
    assert_eq!(report.account.unexplained(), 0);
}

#[test]
fn the_seed_determines_the_report() {
    let all = |seed| {
        let faults =
            FaultOptions { loss: 0.01, duplicate: 0.02, reorder: 0.03, ..Default::default() };
        let (report, _) = run(FaultOptions { corrupt: 0.01, seed, ..faults });
        format!("{report:?}")
    };
    assert_eq!(all(5), all(5));
    assert_ne!(all(5), all(6));
}

#[test]
fn a_rate_limited_link_forwards_its_capacity_and_reports_its_drops() {
    let slow = RateOptions { bits_per_second: 10_000_000, queue_frames_max: 50 };
    let capacity = stream::line_rate_pps(10_000_000, 64);
    for (percent, share) in [(90.0, 1.0), (200.0, 0.5), (150.0, 1.0 / 1.5)] {
        let (near, far) = links(2);
        let mut near = near.into_iter();
        let first = SlowLink::new(near.next().unwrap(), slow.clone());
        let ports: Vec<Box<dyn Port>> = vec![Box::new(first), Box::new(near.next().unwrap())];
        let mut rig = rig_over(ports, far, wire);
        let mut load = stream(1, 64, 1.0);
        load.rate = Rate::LinkPercent { percent, link_bits_per_second: 10_000_000 };
        let report = rig.trial(&trial(vec![load], 1_000)).unwrap();
        let forwarded = report.total.forwarded as f64 / report.total.offered as f64;
        assert!((forwarded - share).abs() < 0.005, "{percent} %: {forwarded}");
        if share < 1.0 {
            let pps = report.total.pps_forwarded();
            assert!((pps / capacity - 1.0).abs() < 0.005, "{pps} of {capacity}");
        }
        // Nothing is unexplained: the link reports its drops, and the account includes them.
        assert_eq!(report.account.unexplained(), 0);
        let dropped = report.ports[0].counters.lost(PortDrop::LinkQueueFull);
        assert_eq!(report.account.dropped(DropLocation::Link), dropped);
        assert_eq!(dropped, report.total.offered - report.total.forwarded);
    }
}

#[test]
fn the_delay_of_a_link_is_measured_to_the_nanosecond() {
    let (near, far) = links(2);
    let mut near = near.into_iter();
    let delay = DelayOptions { fixed: Nanos(123_456), ..DelayOptions::default() };
    let first = Delay::new(near.next().unwrap(), delay);
    let ports: Vec<Box<dyn Port>> = vec![Box::new(first), Box::new(near.next().unwrap())];
    let mut rig = rig_over(ports, far, wire);
    let report = rig.trial(&trial(vec![stream(1, 64, 10_000.0)], 100)).unwrap();
    let latency = &report.latency.from_sent;
    assert_eq!((latency.ns_min(), latency.ns_max()), (Some(123_456), Some(123_456)));
    assert_eq!(report.streams[0].jitter.smoothed_ns, 0.0);
}

#[test]
fn frames_queued_after_the_end_of_sending_do_not_raise_the_rate() {
    let slow = RateOptions { bits_per_second: 10_000_000, queue_frames_max: 100_000 };
    let (near, far) = links(2);
    let mut near = near.into_iter();
    let first = SlowLink::new(near.next().unwrap(), slow);
    let ports: Vec<Box<dyn Port>> = vec![Box::new(first), Box::new(near.next().unwrap())];
    let mut load = stream(1, 64, 1.0);
    load.rate = Rate::LinkPercent { percent: 200.0, link_bits_per_second: 10_000_000 };
    let mut patient = trial(vec![load], 1_000);
    patient.drain = Nanos::from_secs(2);
    let report = rig_over(ports, far, wire).trial(&patient).unwrap();
    assert_eq!(report.total.forwarded, report.total.offered);
    let (pps, capacity) = (report.total.pps_forwarded(), stream::line_rate_pps(10_000_000, 64));
    assert!((pps / capacity - 1.0).abs() < 0.005, "{pps} of {capacity}");
}

/// A wire from its first to its second end, which closes after this many frames.
struct Torn {
    ends: Option<[MemoryPort; 2]>,
    left: usize,
}

impl Device for Torn {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        let [from, to] = self.ends.as_mut()?;
        let mut batch = Batch::new(64);
        from.receive(&mut batch, now).unwrap();
        self.left = self.left.saturating_sub(batch.len());
        to.transmit(&mut batch, now).unwrap();
        if self.left == 0 {
            self.ends = None;
        }
        None
    }
}

#[test]
fn counts_before_a_port_failure_are_reported() {
    let (near, far) = links(2);
    let near = near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let device = Torn { ends: far.try_into().ok(), left: 4_000 };
    let mut rig = SimRig::new(near, device, KEY);
    let ended = rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 200));
    let Err(RigError::Broken(_, PortError::PeerGone(_), report)) = ended else {
        panic!("{ended:?}")
    };
    assert!(report.flags.contains(&Flag::CutShort), "{:?}", report.flags);
    // One frame per ten microseconds until then.
    let load = &report.total;
    assert!((3_990..=4_010).contains(&load.intended), "{load:?}");
    assert!((3_990..=load.intended).contains(&load.offered), "{load:?}");
    assert!((3_900..=load.offered).contains(&load.forwarded), "{load:?}");
    assert!((39_900_000..=40_100_000).contains(&report.duration.0), "{}", report.duration);
    assert_eq!(load.duration_offered, report.duration);
}
