//! Tests of RFC 2544, RFC 9004 and RFC 8219 in virtual time: the results are the target's
//! configured values.

use std::fs;

use record::{Flag, Metric, Outcome, Record, Role};
use runner::Destination;
use targets::name::TargetKind;

use super::{carry_out, check_resumed, measure, plan};
use crate::common::Folder;

const OURS: [TargetKind; 1] = [TargetKind::Switch];

/// A target with a service time of 20 us...
const SERVICE: &str = "sim_service_time_ns=20000";
/// ...forwards this many frames per second...
const CAPACITY_PPS: f64 = 50_000.0;
/// ...behind a link that carries three times as many of the smallest frames.
const LINK: &str = "capacity=100M";

/// Returns the frames per second of this size on the link.
fn wire_pps(frame_bytes: f64) -> f64 {
    1e8 / (8.0 * (frame_bytes + 20.0))
}

fn outcomes<'a>(record: &'a Record, id: &'a str, metric: Metric) -> Vec<&'a Outcome> {
    let is_it = |it: &&Outcome| it.experiment == id && it.metric == metric;
    record.outcomes.iter().filter(is_it).collect()
}

#[test]
fn the_tests_of_rfc_2544_share_their_throughput() {
    let set =
        ["frame=64,1518", "seconds=0.05", "warmup=0.005", "resolution=0.05", "ring_frames=64"];
    let set = [&set[..], &["repeats=1"]].concat();
    let set = [&[SERVICE, LINK][..], &set].concat();
    let folder = Folder::new();
    let plan = plan(&["rfc2544"], &OURS, &set, 1);
    // Reset tests need targets that can be restarted, which the command line checks.
    let mut plan = plan;
    plan.entries.retain(|entry| !entry.resets);
    let (finished, _) = carry_out(&plan, Destination::New(folder.0.clone()), None);
    let record = finished.record;
    let sizes = |id: &str, metric| -> Vec<f64> {
        outcomes(&record, id, metric).iter().map(|it| it.point.value).collect()
    };
    assert_eq!(sizes("rfc2544/throughput", Metric::ThroughputPps), [64.0, 1518.0]);
    for outcome in outcomes(&record, "rfc2544/throughput", Metric::ThroughputPps) {
        let most = CAPACITY_PPS.min(wire_pps(outcome.point.value));
        // The resolution below, and the frames absorbed by queues above.
        let range = most - 0.05 * wire_pps(outcome.point.value)..=most * 1.15;
        assert!(range.contains(&outcome.value), "{} is not in {range:?}", outcome.value);
    }
    for id in ["rfc2544/latency", "rfc2544/back-to-back", "rfc2544/recovery"] {
        let of = |trial: &&record::Trial| trial.experiment == id;
        let inherited = outcomes(&record, id, Metric::ThroughputPps);
        assert_eq!(inherited.len(), 2, "{id}");
        assert!(inherited.iter().all(|it| it.trials.is_empty()), "{id} ran its own search");
        assert!(record.trials.iter().filter(of).count() > 0, "{id}");
    }
    // The largest frames pass at the link's rate, and show no buffer.
    assert_eq!(sizes("rfc2544/back-to-back", Metric::BurstFrames), [64.0]);
    let summary = fs::read_to_string(finished.folder.join("summary.md")).unwrap();
    for words in ["theoretical maximum, frames/s", "standard deviation", "median latency, µs"] {
        assert!(summary.contains(words), "{words} is missing");
    }
    let figures = fs::read_dir(finished.folder.join("figures")).unwrap();
    assert!(figures.count() >= 3, "throughput, latency and loss are drawn");
}

#[test]
fn a_loss_curve_ends_at_two_trials_without_loss() {
    // A third of 148,810 frames/s is carried: 30 and 20 % lose nothing once queues are full.
    let set =
        [SERVICE, LINK, "ring_frames=64", "frame=64", "seconds=0.05", "warmup=0.02", "repeats=1"];
    let record = measure(&plan(&["rfc2544/loss"], &OURS, &set, 1));
    let loads: Vec<f64> = record.trials.iter().map(|trial| trial.point.value).collect();
    assert_eq!(loads, [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0]);
    for trial in &record.trials {
        let share = CAPACITY_PPS / (wire_pps(64.0) * trial.point.value / 100.0);
        let lost = (1.0 - share).max(0.0);
        let found = trial.loss_ratio().unwrap();
        assert!((found - lost).abs() < 0.02, "{found}, not {lost} at {}", trial.point.value);
    }
}

#[test]
fn a_larger_ring_is_a_larger_buffer() {
    let frames = |ring: u32| {
        let ring = format!("ring_frames={ring}");
        let set =
            [SERVICE, LINK, &ring, "frame=64", "seconds=0.2", "warmup=0", "burst_seconds=0.02"];
        let set = [&set[..], &["resolution=0.002", "repeats=1"]].concat();
        let record = measure(&plan(&["rfc9004"], &OURS, &set, 1));
        let of = |metric| outcomes(&record, "rfc9004", metric)[0].value;
        let burst = outcomes(&record, "rfc9004", Metric::BurstFrames)[0];
        assert!(burst.flags.is_empty(), "{burst:?}");
        let implied = of(Metric::BurstFrames) / wire_pps(64.0) * 1e9;
        assert!((of(Metric::BufferNsImplied) / implied - 1.0).abs() < 1e-6);
        // Frames that the link carries in the corrected time.
        of(Metric::BufferNsCorrected) * 1e-9 * wire_pps(64.0)
    };
    let (small, large) = (frames(64), frames(256));
    // The ring before the target, the link's queue before that ring, and the frames in service,
    // which are at most another ring.
    assert!((2.0 * 64.0..=4.0 * 64.0).contains(&small), "{small}");
    assert!((2.0 * 256.0..=3.0 * 256.0).contains(&large), "{large}");
}

#[test]
fn a_burst_of_the_maximum_length_is_marked() {
    let set = [SERVICE, LINK, "frame=64", "seconds=0.05", "burst_seconds=0.002", "ring_frames=64"];
    let record = measure(&plan(&["rfc9004"], &OURS, &set, 1));
    let burst = outcomes(&record, "rfc9004", Metric::BurstFrames)[0];
    assert_eq!(burst.flags, [Flag::Irregular]);
    assert_eq!(burst.value, (wire_pps(64.0) * 0.002).floor());
}

#[test]
fn a_target_without_state_recovers_immediately() {
    let set = ["frame=64", "seconds=0.2", "resolution=0.005", "repeats=1", "ring_frames=64"];
    let set = [&[SERVICE, LINK][..], &set].concat();
    let record = measure(&plan(&["rfc2544/recovery"], &OURS, &set, 1));
    let [found] = outcomes(&record, "rfc2544/recovery", Metric::RecoveryNs)[..] else { panic!() };
    assert!(found.flags.is_empty(), "{found:?}");
    let period_ns = 1e9 / (CAPACITY_PPS / 2.0);
    assert!(found.value <= 2.0 * period_ns, "{found:?}");
    let trial = record.trials.iter().find(|trial| trial.role == Role::Measure).unwrap();
    let [over, under] = &trial.streams[..] else { panic!("{:?}", trial.streams) };
    assert!(over.missed_ns_last.is_some() && under.missed_ns_last.is_none(), "{over:?} {under:?}");
    assert!((over.rate_pps_intended / under.rate_pps_intended - 2.2).abs() < 0.01);
}

#[test]
fn delays_of_a_model_vary_only_by_its_queue() {
    let set = [SERVICE, LINK, "frame=512", "seconds=0.05", "warmup=0.01", "repeats=20"];
    let record = measure(&plan(&["rfc8219"], &OURS, &set, 1));
    let cell = |metric| record.cells_of("rfc8219", "switch", metric).next().unwrap();
    assert_eq!(cell(Metric::LatencyNsP50).n, 20);
    // Frames arrive with the gaps with which they were sent, and none has to wait.
    assert_eq!(cell(Metric::IpdvNsP50).value, 0.0);
    assert!(cell(Metric::IpdvNsMin).value <= 0.0 && cell(Metric::IpdvNsMax).value >= 0.0);
}

#[test]
fn a_resumed_set_equals_an_uninterrupted_one() {
    let set = ["sim_service_time_ns=20000", "frame=512", "seconds=0.02", "repeats=1"];
    check_resumed("rfc2544/recovery", &set, &[3, 9, 1]);
    check_resumed("rfc9004", &set, &[4, 10]);
}
