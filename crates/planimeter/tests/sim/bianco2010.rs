//! Tests of figures 5 to 10 and table I of bianco2010 in virtual time, where the model is the
//! ground truth.

use record::{Cell, Metric, Record, Role, Trial, Verdict};
use targets::name::TargetKind;

use super::{CAPACITY_PPS, SLOW, carry_out, claims_with_rates, measure, plan};
use crate::common::{Folder, bytes};

/// Targets that forward.
const FORWARDERS: [TargetKind; 3] = [TargetKind::Switch, TargetKind::Bridge, TargetKind::Router];

/// Returns the frames per second of this size on a full link of 1 Gbit/s.
fn wire_pps(frame_bytes: f64) -> f64 {
    1e9 / (8.0 * (frame_bytes + 20.0))
}

fn cells<'a>(record: &'a Record, item: &str, target: &str, metric: Metric) -> Vec<&'a Cell> {
    let experiment = format!("bianco2010/{item}");
    let is_it = |cell: &&Cell| {
        cell.experiment == experiment && cell.target == target && cell.metric == metric
    };
    record.cells.iter().filter(is_it).collect()
}

fn assert_near(have: f64, want: f64, ratio: f64, what: &str) {
    assert!((have - want).abs() <= want.abs() * ratio, "{what}: {have}, not {want}");
}

fn verdicts(record: &Record, item: &str, text: &str) -> Vec<(String, Verdict)> {
    let is_it =
        |line: &&record::ClaimVerdict| line.claim.item == item && line.claim.claim.contains(text);
    let answer = |line: &record::ClaimVerdict| (line.targets.join(" "), line.verdict.clone());
    claims_with_rates(record).iter().filter(is_it).map(answer).collect()
}

#[test]
fn the_study_has_its_points() {
    let steps = plan(&["bianco2010"], &FORWARDERS, &["repeats=1"], 1);
    let steps: Vec<(&str, usize, u64)> = steps
        .estimates()
        .iter()
        .map(|it| (it.entry.id, it.costs.len(), it.costs[0].1.trials))
        .collect();
    let wanted = [
        // The router also has its cache, the bridge few hash buckets in figures about large tables,
        // and figure 10 our switch with both orders of service.
        ("bianco2010/fig2", 4, 7),
        ("bianco2010/fig3", 4, 8),
        ("bianco2010/fig5", 5, 18),
        ("bianco2010/fig6", 1, 12),
        ("bianco2010/fig7", 1, 7),
        ("bianco2010/table1", 1, 60),
        ("bianco2010/fig9", 5, 5),
        ("bianco2010/fig10", 6, 5),
    ];
    assert_eq!(steps, wanted);
}

#[test]
fn figure_5_loses_frames_above_the_capacity() {
    let set = [SLOW, "entries=600", "frame=96,512", "seconds=0.03", "warmup=0.01"];
    let record = measure(&plan(&["bianco2010/fig5"], &FORWARDERS, &set, 1));
    for kind in FORWARDERS {
        for (bytes, rate) in [(96.0, CAPACITY_PPS), (512.0, wire_pps(512.0))] {
            let at = |metric| {
                let cells = cells(&record, "fig5", kind.name(), metric);
                let cell = cells.into_iter().find(|cell| cell.point.value == bytes).unwrap();
                let curve = cell.point.within.as_ref().unwrap();
                assert_eq!((curve.name.as_str(), curve.value), ("entries", 600.0));
                cell.value
            };
            let name = format!("{} at {bytes} bytes", kind.name());
            assert_near(at(Metric::RatePpsForwarded), rate, 0.02, &name);
            let lost = 1.0 - rate / wire_pps(bytes);
            assert!((at(Metric::LossRatio) - lost).abs() < 0.02, "{name}");
        }
    }
    let learned = record.trials.iter().find(|trial| trial.target == "bridge").unwrap();
    let macs = learned.counters.iter().find(|it| it.name == "bridge.macs").unwrap();
    assert!(macs.before >= 600, "{macs:?}");
    let published = record.published.iter().filter(|it| it.item == "fig5").count();
    assert_eq!(published, 9, "the table has the values of the study");
}

#[test]
fn figure_6_fills_one_table_and_then_the_other() {
    let set = [SLOW, "entries=512", "frame=96,256", "seconds=0.03", "repeats=3"];
    let record = measure(&plan(&["bianco2010/fig6"], &[TargetKind::Switch], &set, 1));
    let held = |trial: &Trial, table: &str| {
        let name = format!("tables.{table}.entries");
        trial.counters.iter().find(|it| it.name == name).unwrap().after
    };
    for trial in &record.trials {
        let curve = trial.point.within.as_ref().unwrap();
        let (exact, open) = (held(trial, "exact"), held(trial, "wildcard"));
        match curve.name.as_str() {
            "hash_entries" => assert_eq!((exact, open, curve.value), (512, 0, 512.0)),
            _ => assert_eq!((exact, open, curve.value), (0, 100, 100.0)),
        }
    }
    // The model has the same cost for both tables.
    let found = verdicts(&record, "fig6", "lower");
    assert_eq!(found, [("switch".to_string(), Verdict::Contradicted)]);
}

#[test]
fn figure_7_sends_each_table_its_share() {
    let set = [SLOW, "entries=512", "seconds=0.03", "repeats=3"];
    let record = measure(&plan(&["bianco2010/fig7"], &[TargetKind::Switch], &set, 1));
    for trial in &record.trials {
        let offered: Vec<f64> =
            trial.streams.iter().map(|stream| stream.frames_offered as f64).collect();
        let percent = trial.point.value;
        match offered[..] {
            [_] => assert!(percent == 0.0 || percent == 100.0),
            [hash, linear] => {
                let share = linear / (hash + linear) * 100.0;
                assert!((share - percent).abs() < 0.5, "{share} %, not {percent}");
            }
            _ => panic!("{offered:?}"),
        }
        let total: f64 = offered.iter().sum();
        assert_near(total, wire_pps(96.0) * 0.03, 0.01, "offered");
    }
    let found = verdicts(&record, "fig7", "bounded");
    assert_eq!(found, [("switch".to_string(), Verdict::Holds)]);
}

#[test]
fn table_1_finds_no_waiting_time_in_the_model() {
    // Filling the study's tables takes long in an unoptimized build.
    let set = ["frame=96,1500", "wildcard_entries_max=100", "repeats=2", "entries=1,300"];
    let plan = plan(&["bianco2010/table1"], &[TargetKind::Switch], &set, 1);
    let record = measure(&plan);
    let times = cells(&record, "table1", "switch", Metric::ProcessingNs);
    assert_eq!(times.len(), 2 * 7, "two sizes, five linear tables and two hash tables");
    for time in times {
        assert!(time.value.abs() < 20.0, "{} ns at {:?}", time.value, time.point);
    }
    let folder = Folder::new();
    let (finished, _) = carry_out(&plan, runner::Destination::New(folder.0.clone()), None);
    let files = bytes(&finished.folder);
    let summary = files.iter().find(|(name, _)| name == "summary.md").unwrap();
    let text = String::from_utf8(summary.1.clone()).unwrap();
    assert!(text.contains("| target | packet size, bytes | hash table, 1, µs |"), "{text}");
}

#[test]
fn table_1_recovers_random_service_times_at_every_frame_size() {
    let mut state = 0x5eed_u64;
    for _ in 0..4 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The queue stays empty: frames of 96 bytes come every 18.6 µs at this load.
        let service_ns = 200 + (state >> 33) % 9_800;
        let service = format!("sim_service_time_ns={service_ns}");
        let set = [&*service, "wildcard_entries_max=100", "repeats=2", "entries=1,300"];
        let record = measure(&plan(&["bianco2010/table1"], &[TargetKind::Switch], &set, 1));
        let times = cells(&record, "table1", "switch", Metric::ProcessingNs);
        assert_eq!(times.len(), 6 * 7, "six sizes, five linear tables and two hash tables");
        for time in times {
            assert_near(time.value, service_ns as f64, 0.02, &format!("{:?}", time.point));
        }
    }
}

/// Checks the common part of figures 9 and 10: loads that are shares of the target's own maximum.
fn fairness(item: &str, kinds: &[TargetKind]) -> Record {
    // A load that is carried, and two that fill the links' rings before counting starts. The flows
    // wait in rings of different lengths, so that frames from before the counted time are among the
    // first counted ones: short trials measure less than the target carries.
    let set = [SLOW, "entries=600", "seconds=0.04", "warmup=0.012", "repeats=3", "load=40,80,120"];
    let record = measure(&plan(&[&format!("bianco2010/{item}")], kinds, &set, 1));
    for trial in record.trials.iter().filter(|trial| trial.role == Role::Measure) {
        let [first, second] = &trial.streams[..] else { panic!("{:?}", trial.streams) };
        let whole = CAPACITY_PPS / 0.65;
        assert_near(first.rate_pps_intended, whole * 0.1, 0.02, "F1");
        assert_near(second.rate_pps_intended, whole * trial.point.value / 100.0, 0.02, "F2");
        let of = |metric| {
            let cells = cells(&record, item, &trial.target, metric);
            cells.into_iter().find(|cell| cell.point == trial.point).unwrap().value
        };
        let lost = [first, second]
            .map(|flow| (flow.frames_offered - flow.classes.correct) as f64)
            .iter()
            .sum::<f64>();
        let loss = lost / trial.frames_offered as f64;
        let share = 1.0 - (0.65 / (0.1 + trial.point.value / 100.0)).min(1.0);
        assert!((loss - share).abs() < 0.04, "{loss}, not {share}: {:?}", trial.point);
        let difference = of(Metric::LossRatioF1) - of(Metric::LossRatioF2);
        assert!((of(Metric::LossRatioDifference) - difference).abs() < 1e-9);
    }
    record
}

#[test]
fn figure_9_loads_each_target_by_its_own_maximum() {
    let record = fairness("fig9", &FORWARDERS);
    for kind in FORWARDERS {
        let differences = cells(&record, "fig9", kind.name(), Metric::LossRatioDifference);
        let loads: Vec<f64> = differences.iter().map(|cell| cell.point.value).collect();
        assert_eq!(loads, [40.0, 80.0, 120.0]);
    }
    assert!(record.trials.iter().all(|trial| trial.streams.iter().all(|it| it.port_out == 0)));
}

#[test]
fn figures_9_and_10_exclude_a_target_without_loss() {
    // Targets have no service time, so that the link drops the load beyond its capacity.
    for item in ["fig9", "fig10"] {
        let set = ["entries=600", "seconds=0.01", "warmup=0.006", "repeats=2", "load=40,120"];
        let record = measure(&plan(&[&format!("bianco2010/{item}")], &FORWARDERS, &set, 1));
        let losses = FORWARDERS.map(|kind| {
            let losses = cells(&record, item, kind.name(), Metric::LossRatio);
            losses.iter().map(|cell| cell.value).fold(0.0, f64::max)
        });
        assert!(losses.iter().all(|loss| *loss > 0.1), "the link loses frames: {losses:?}");
        let judged = verdicts(&record, item, "");
        assert!(!judged.is_empty());
        for (targets, verdict) in judged {
            assert!(matches!(verdict, Verdict::Undecided(_)), "{item} {targets}: {verdict:?}");
        }
        let alike = record.claims.iter().filter(|line| line.claim.item == item);
        let says = |line: &record::ClaimVerdict| format!("{:?}", line.verdict);
        assert!(
            alike
                .map(says)
                .any(|verdict| verdict.contains("the link, not the target, lost the frames"))
        );
    }
}

#[test]
fn figure_10_has_a_port_for_each_flow_and_round_robin_favors_the_smaller() {
    let record = fairness("fig10", &FORWARDERS);
    for trial in &record.trials {
        let ports: Vec<u32> = trial.streams.iter().map(|it| it.port_out).collect();
        assert_eq!(ports, [0, 2], "{}", trial.target);
    }
    for name in ["switch", "switch:service=first-come", "bridge", "router"] {
        let shares = cells(&record, "fig10", name, Metric::MaxMinShareRatio);
        assert_eq!(shares.len(), 3, "{name}");
    }
    for kind in FORWARDERS {
        let lost = cells(&record, "fig10", kind.name(), Metric::LossRatioF1);
        assert!(lost.iter().all(|cell| cell.value == 0.0), "{}: {lost:?}", kind.name());
        let shares = cells(&record, "fig10", kind.name(), Metric::MaxMinShareRatio);
        assert!(shares.iter().all(|cell| cell.value > 0.999), "{}: {shares:?}", kind.name());
    }
    let favoured = verdicts(&record, "fig10", "smaller flow");
    for name in ["switch", "router"] {
        let of = favoured.iter().find(|(target, _)| target == name).unwrap();
        assert_eq!(of.1, Verdict::Holds, "{name}");
    }
}
