//! Complete trials in virtual time, with devices that inject known faults.

#![allow(clippy::unwrap_used)]

mod common;

use std::cell::Cell;
use std::rc::Rc;

use common::{Copy, KEY, Rule, links, pass, rig, stream, trial, wire};
use netio::port::Port;
use packet::frame::Frame;
use packet::time::{Clock, Nanos};
use tester::account::DropLocation;
use tester::calibrate::{Calibrator, Settings};
use tester::gauge::Gauge;
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::rig::{Rig, RigError};
use tester::search::binary::{BinarySearch, Goal, Irregularity, MeasuredLoad, SearchRequest};
use tester::stream::{Arrival, Field, FieldVariation, IndexOrder, Rate, Values};
use tester::trial::{Classes, Corruption, Flag, Limit, Trial, TrialReport};

fn classes(report: &TrialReport) -> Classes {
    report.classes
}

#[test]
fn over_a_wire_every_frame_is_correct_without_delay() {
    let mut rig = rig(2, wire);
    let report = rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 100)).unwrap();
    assert_eq!(report.total.intended, 10_000);
    assert_eq!((report.total.offered, report.total.forwarded), (10_000, 10_000));
    assert_eq!(classes(&report), Classes { correct: 10_000, ..Classes::default() });
    assert_eq!(report.latency.from_sent.ns_max(), Some(0));
    assert_eq!(report.latency.from_scheduled.ns_max(), Some(0));
    assert_eq!(report.pacing.gap_error.ns_max(), Some(0));
    assert_eq!(report.total.pps_forwarded(), 100_000.0);
    assert_eq!((report.account.unexplained(), report.flags.len()), (0, 0));
    assert_eq!(report.stamps, Clock::Virtual);
    assert_eq!(report.limit(), Limit::Load);
    assert_eq!((report.ports[0].offered, report.ports[1].forwarded), (10_000, 10_000));
}

#[test]
fn progress_is_reported_in_virtual_time() {
    static OWN: Gauge = Gauge::new();
    let mut rig = rig(2, wire);
    rig.gauge = &OWN;
    rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 100)).unwrap();
    let shown = OWN.read().unwrap();
    assert_eq!((shown.sent, shown.received), (vec![10_000, 0], vec![0, 10_000]));
    assert!(shown.at.since(shown.begun) >= Nanos::from_millis(100), "{:?}", shown.at);
    assert_eq!(shown.latencies.iter().sum::<u64>(), 10_000);
}

#[test]
fn a_trial_in_virtual_time_stops_when_requested() {
    let mut rig = rig(2, wire);
    rig.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let ended = rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 100));
    assert!(matches!(ended, Err(RigError::Interrupted)), "{ended:?}");
    let ended = rig.idle(Nanos::from_secs(1));
    assert!(matches!(ended, Err(RigError::Interrupted)), "{ended:?}");
}

#[test]
fn each_fault_is_counted_in_its_class_only() {
    // Every hundredth frame has one fault, in rotation.
    let late = Nanos::from_micros(35);
    let rule = move |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let whole = || pass(1 - port, frame, now);
        if count % 100 != 50 {
            return vec![whole()];
        }
        match count / 100 % 8 {
            0 => vec![],
            1 => vec![whole(), whole()],
            2 => vec![Copy { at: now + late, ..whole() }],
            3 => vec![whole(), pass(2, frame, now)],
            4 => vec![pass(2, frame, now)],
            5 => vec![pass(2, frame, now), pass(0, frame, now)],
            damaged => {
                let mut copy = whole();
                // A bit in the signature, so that the number is lost, or a bit in an address.
                copy.bytes[if damaged == 6 { 45 } else { 30 }] ^= 4;
                vec![copy]
            }
        }
    };
    let mut rig = rig(3, rule);
    let report = rig.trial(&trial(vec![stream(1, 64, 100_000.0)], 80)).unwrap();
    // 8,000 frames, 80 faults, 10 of each kind. Five kinds are not first intact copies on port 1
    // (loss, misrouted, sent to two wrong ports, and both kinds of damage).
    let want = Classes {
        correct: 7_950,
        misrouted: 10,
        flooded: 20,
        elsewhere: 40,
        duplicate: 10,
        reordered: 10,
        corrupt: 10,
        late: 0,
    };
    assert_eq!(classes(&report), want);
    assert_eq!(report.limit(), Limit::Loss);
    let elsewhere: Vec<u64> = report.ports.iter().map(|port| port.elsewhere).collect();
    assert_eq!(elsewhere, [10, 0, 30]);
    let broken: u64 = report.ports.iter().map(|port| port.broken).sum();
    assert_eq!((broken, report.account.unexplained()), (10, 10));
    let corruption = report.streams[0].corruption.unwrap();
    assert_eq!(corruption, Corruption { port: 1, at: 30, want: Some(10), have: Some(14) });
    assert_eq!(report.ports.iter().map(|port| port.foreign).sum::<u64>(), 0);
    // Only the late copies have a delay.
    assert_eq!(report.latency.from_sent.ns_max(), Some(late.0));
    assert_eq!(report.streams[0].jitter.ipdv_ns_max, late.0);
}

#[test]
fn foreign_frames_and_frames_of_earlier_trials_do_not_count() {
    let delay = Nanos::from_millis(12);
    let rule = move |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let mut copies = vec![pass(1 - port, frame, now)];
        if count == 1 {
            copies.push(Copy { at: now + delay, ..pass(1, frame, now) });
        }
        if count == 3 {
            copies.push(Copy { port: 0, at: now, bytes: vec![0xff; 60] });
            copies.push(Copy { port: 0, at: now, bytes: vec![] });
        }
        copies
    };
    let mut rig = rig(2, rule);
    let load = trial(vec![stream(1, 64, 1_000.0)], 5);
    let first = rig.trial(&load).unwrap();
    assert_eq!((first.total.forwarded, first.ports[0].foreign), (5, 2));
    assert_eq!(first.account.unexplained(), 0);
    let second = rig.trial(&load).unwrap();
    assert_eq!((second.total.forwarded, second.ports[1].stale), (5, 1));
    assert_eq!(classes(&second), Classes { correct: 5, ..Classes::default() });
}

#[test]
fn warm_up_frames_are_counted_but_not_measured() {
    let rule = |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let is_lost = count < 300 && port == 0;
        if is_lost { vec![] } else { vec![pass(1 - port, frame, now)] }
    };
    let mut rig = rig(2, rule);
    let warm =
        Trial { warmup: Nanos::from_millis(50), ..trial(vec![stream(1, 64, 10_000.0)], 100) };
    let report = rig.trial(&warm).unwrap();
    assert_eq!(report.started_at, Nanos::from_millis(50));
    assert_eq!((report.total.offered, report.total.forwarded), (1_000, 1_000));
    assert_eq!((report.account.offered, report.account.received), (1_500, 1_200));
    assert_eq!(report.latency.from_sent.count(), 1_000);
}

#[test]
fn routed_frames_are_identified_and_router_errors_are_detected() {
    let (mac_source, mac_destination) = ([2, 7, 7, 7, 7, 7], [2, 8, 8, 8, 8, 8]);
    let route = move |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        let mut copy = pass(1 - port, frame, now);
        copy.bytes[..6].copy_from_slice(&mac_destination);
        copy.bytes[6..12].copy_from_slice(&mac_source);
        // The seventh frame keeps its TTL.
        if count != 7 {
            assert!(packet::header::ipv4::decrement_ttl(&mut copy.bytes[14..34]));
        }
        vec![copy]
    };
    let mut routed = stream(1, 128, 100_000.0);
    routed.arrival = Arrival::Routed { mac_source, mac_destination };
    routed.vary = vec![FieldVariation {
        count: 1 << 17,
        order: IndexOrder::Random { seed: 5 },
        fields: vec![
            (Field::IpDestination, Values::Scattered { seed: 6 }),
            (Field::MacSource, Values::Range { first: 0x0200_0000_0000, step: 1 }),
        ],
    }];
    let report = rig(2, route).trial(&trial(vec![routed], 50)).unwrap();
    assert_eq!(classes(&report), Classes { correct: 4_999, corrupt: 1, ..Classes::default() });
    let corruption = report.streams[0].corruption.unwrap();
    assert_eq!((corruption.at, corruption.want, corruption.have), (22, Some(63), Some(64)));
}

#[test]
fn the_same_trial_gives_the_same_report() {
    let run = || {
        let rule = |count: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
            let delay = Nanos(count.wrapping_mul(0x9e37_79b9) % 50_000);
            vec![Copy { at: now + delay, ..pass(1 - port, frame, now) }]
        };
        let mut varied = stream(1, 64, 123_456.7);
        let fields = vec![(Field::PortSource, Values::Scattered { seed: 1 })];
        varied.vary =
            vec![FieldVariation { count: 100, order: IndexOrder::Random { seed: 2 }, fields }];
        let mut back = stream(2, 333, 77_777.0);
        (back.from, back.to) = (1, 0);
        let report = rig(2, rule).trial(&trial(vec![varied, back], 60)).unwrap();
        assert!(report.classes.reordered > 100);
        format!("{report:?}")
    };
    assert_eq!(run(), run());
}

/// A link of `capacity_pps` with a queue of ten frames, which counts its drops.
fn bottleneck(capacity_pps: u64) -> (impl Rule, Rc<Cell<u64>>) {
    let drops = Rc::new(Cell::new(0));
    let counter = drops.clone();
    let gap = 1_000_000_000 / capacity_pps;
    let mut free_at = Nanos::ZERO;
    let rule = move |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        if free_at.since(now).0 >= 10 * gap {
            counter.set(counter.get() + 1);
            return vec![];
        }
        free_at = free_at.max(now) + Nanos(gap);
        vec![Copy { at: free_at, ..pass(1 - port, frame, now) }]
    };
    (rule, drops)
}

#[test]
fn an_overloaded_link_forwards_its_capacity_and_all_frames_are_accounted_for() {
    for (overload, share) in [(2.0, 0.5), (1.5, 1.0 / 1.5)] {
        let (rule, drops) = bottleneck(100_000);
        let mut rig = rig(2, rule);
        let load = trial(vec![stream(1, 64, 100_000.0 * overload)], 200);
        let mut report = rig.trial(&load).unwrap();
        let forwarded = report.total.forwarded as f64 / report.total.offered as f64;
        assert!((forwarded - share).abs() < 0.001, "{forwarded}");
        assert!((report.total.pps_forwarded() - 100_000.0).abs() < 100.0);
        assert_eq!(report.account.unexplained(), drops.get() as i64);
        report.account.drop(DropLocation::Target, "queue_full", drops.get());
        assert_eq!(report.account.unexplained(), 0);
        assert!(!report.is_tester_limited());
        // Less than ten frames of 10 us each before a frame, and then its own 10 us.
        let worst = report.latency.from_sent.ns_max().unwrap();
        assert!((100_000..110_000).contains(&worst), "{worst}");
    }
}

#[test]
fn many_streams_share_ports_and_are_reported_separately() {
    let streams: Vec<_> = (0..40)
        .map(|id| {
            let mut one = stream(id, 64 + id as usize * 10, 1_000.0 + f64::from(id));
            (one.from, one.to) = [(0, 1), (1, 0)][usize::from(id % 2)];
            one
        })
        .collect();
    let intended: Vec<u64> = (0..40).map(|id| 1_000 + id).collect();
    let report = rig(2, wire).trial(&trial(streams, 1_000)).unwrap();
    let forwarded: Vec<u64> = report.streams.iter().map(|one| one.load.forwarded).collect();
    let offered: Vec<u64> = report.streams.iter().map(|one| one.load.offered).collect();
    // A stream's phase can cost it its last frame.
    let is_close = |(&have, &want): (&u64, &u64)| have == want || have + 1 == want;
    assert!(offered.iter().zip(&intended).all(is_close), "{offered:?}");
    assert_eq!(forwarded, offered);
    assert_eq!(report.classes.reordered, 0);
}

#[test]
fn a_blocked_port_makes_the_trial_tester_limited_and_unsent_frames_are_counted() {
    // No thread empties the far end: the ring fills and stays full.
    let (near, far) = links(2);
    let near = near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    struct Asleep(Vec<netio::memory::MemoryPort>);
    impl tester::rig::sim::Device for Asleep {
        fn step(&mut self, _: Nanos) -> Option<Nanos> {
            let _ = &self.0;
            None
        }
    }
    let mut rig = tester::rig::sim::SimRig::new(near, Asleep(far), KEY);
    let report = rig.trial(&trial(vec![stream(1, 64, 1e6)], 10)).unwrap();
    let unsent = report.streams[0].unsent_refused + report.streams[0].unsent_late;
    assert_eq!((report.total.intended, report.total.offered), (10_000, 1_024));
    assert_eq!((unsent, report.streams[0].unsent_late), (10_000 - 1_024, 0));
    assert!(report.flags.contains(&Flag::TesterLimited(0.1024)), "{:?}", report.flags);
    assert_eq!(report.limit(), Limit::Refusal);
    let mut late = report.clone();
    let stream = &mut late.streams[0];
    (stream.unsent_late, stream.unsent_refused) = (stream.unsent_refused, 0);
    assert_eq!(late.limit(), Limit::Tester);
    assert_eq!(report.account.unexplained(), 1_024);
}

#[test]
fn an_invalid_trial_reports_all_problems() {
    let mut rig = rig(2, wire);
    let mut bad = stream(1, 60, 0.0);
    bad.to = 7;
    let unsent = rig.trial(&trial(vec![bad, stream(1, 64, 1.0)], 1)).unwrap_err();
    let RigError::Unusable(problems) = &unsent else { panic!("{unsent}") };
    assert_eq!(problems.len(), 4, "{unsent}");
    assert!(unsent.to_string().contains("at least 64 bytes"), "{unsent}");
    assert!(unsent.to_string().contains("no port 8"), "{unsent}");
}

#[test]
fn a_percentage_of_a_link_is_of_its_line_rate() {
    let mut full = stream(1, 64, 1.0);
    full.rate = Rate::LinkPercent { percent: 50.0, link_bits_per_second: 100_000_000 };
    let report = rig(2, wire).trial(&trial(vec![full], 1_000)).unwrap();
    assert_eq!(report.total.offered, 74_405);
}

#[test]
fn a_device_that_never_rests_is_an_error() {
    struct Restless;
    impl tester::rig::sim::Device for Restless {
        fn step(&mut self, now: Nanos) -> Option<Nanos> {
            Some(now)
        }
    }
    let (near, _far) = links(2);
    let near = near.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect();
    let mut rig = tester::rig::sim::SimRig::new(near, Restless, KEY);
    let load = trial(vec![stream(1, 64, 1_000.0)], 5);
    assert!(matches!(rig.trial(&load), Err(RigError::Restless(_))));
}

/// Runs an experiment of trials to its end. `digested` can change each outcome before the
/// experiment receives it.
fn drive<X: Procedure>(
    experiment: &mut X,
    rig: &mut dyn Rig,
    mut install: impl FnMut(&X::Setup),
    mut digested: impl FnMut(&mut Outcome),
) {
    let mut last = None;
    loop {
        let mut outcome = match experiment.next(last.as_ref()) {
            Step::Done => return,
            Step::Module { .. } => panic!("trials only"),
            Step::Install(setup) => {
                install(&setup);
                Outcome::Installed
            }
            Step::Trial { point, trial } => {
                Outcome::Trial { point, report: Box::new(rig.trial(&trial).unwrap()) }
            }
        };
        digested(&mut outcome);
        last = Some(outcome);
    }
}

/// Experiment that searches the throughput of a device.
struct Throughput(BinarySearch);

impl Procedure for Throughput {
    type Setup = &'static str;

    fn next(&mut self, last: Option<&Outcome>) -> Step<&'static str> {
        match last {
            None => return Step::Install("flows"),
            Some(Outcome::Installed | Outcome::Module { .. }) => {}
            Some(Outcome::Trial { report, .. }) => self.0.record(MeasuredLoad::from(&**report)),
        }
        match self.0.next() {
            SearchRequest::Search { rate_pps } | SearchRequest::Confirm { rate_pps } => {
                Step::Trial {
                    point: Point::new(&[("rate_pps", rate_pps)]),
                    trial: trial(vec![stream(1, 64, rate_pps)], 100),
                }
            }
            SearchRequest::Found(_) => Step::Done,
        }
    }
}

#[test]
fn a_throughput_search_finds_the_link_capacity_within_its_resolution() {
    for loss_ratio in [0.0, 0.1] {
        let (rule, drops) = bottleneck(40_000);
        let mut rig = rig(2, rule);
        let mut search = Throughput(BinarySearch::new(Goal {
            loss_ratio,
            rate_pps_min: 100.0,
            rate_pps_max: 200_000.0,
            resolution_pps: 200.0,
            is_confirmed: true,
            verifications: 0,
        }));
        let (mut installs, mut reported) = (0, 0);
        drive(
            &mut search,
            &mut rig,
            |&setup| {
                installs += 1;
                assert_eq!(setup, "flows");
            },
            |outcome| {
                if let Outcome::Trial { report, .. } = outcome {
                    let lost = drops.get();
                    report.account.drop(DropLocation::Target, "queue_full", lost - reported);
                    assert_eq!(report.account.unexplained(), 0);
                    reported = lost;
                }
            },
        );
        let SearchRequest::Found(found) = search.0.next() else { panic!() };
        // A queue of ten frames adds up to 100 frames per second in a tenth of a second.
        let capacity = 40_000.0 / (1.0 - loss_ratio);
        assert!((found.rate_pps - capacity).abs() < 400.0, "{found:?}");
        assert_eq!((found.irregular.len(), installs), (0, 1));
    }
}

#[test]
fn a_trial_without_target_is_a_calibration() {
    let delay = Nanos(700);
    let rule = move |_: u64, port: usize, frame: &Frame, now: Nanos| -> Vec<Copy> {
        vec![Copy { at: now + delay, ..pass(1 - port, frame, now) }]
    };
    let mut calibrator = Calibrator::new(Settings {
        stream: stream(1, 64, 1.0),
        rate_pps_max: 50_000.0,
        rate_pps_bias: 1_000.0,
        resolution_ratio: 0.01,
        duration: Nanos::from_millis(100),
        drain: Nanos::from_millis(5),
    });
    drive(&mut calibrator, &mut rig(2, rule), |()| {}, |_| {});
    let found = calibrator.finish().unwrap();
    assert_eq!((found.saturated_pps, found.ceiling.rate_pps), (50_000.0, 50_000.0));
    assert_eq!(found.ceiling.irregular, [Irregularity::MaxLoadMet]);
    assert_eq!(found.bias.from_sent.ns_max(), Some(700));
    assert_eq!(found.pacing_at_half.unwrap().lateness.ns_max(), Some(0));
    assert_eq!(found.unexplained, 0);
}
