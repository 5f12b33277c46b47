//! Verdicts on bianco2010's figures 5 to 10 and its table I, from cells that are made up.

use crate::claims::judge;
use crate::interval::{self, LEVEL_PERCENT};
use crate::record::{Cell, Metric, Point, Record, Verdict};
use crate::sample;

/// A run of one item without cells.
fn run(item: &str, x_name: &str) -> Record {
    let mut record = sample::record();
    record.experiments.truncate(1);
    record.experiments[0].id = format!("bianco2010/{item}");
    record.experiments[0].item = Some(item.into());
    record.experiments[0].x_name = x_name.into();
    record.cells.clear();
    record
}

/// Adds a value of five repeats that differ by a few per mille.
fn add(record: &mut Record, target: &str, metric: Metric, point: Point, value: f64) {
    let samples: Vec<f64> = [0.998, 0.999, 1.0, 1.001, 1.002].map(|by| by * value).into();
    record.cells.push(Cell {
        experiment: record.experiments[0].id.clone(),
        target: target.into(),
        link: None,
        point,
        metric,
        unit: metric.unit().into(),
        value,
        n: 5,
        interval: interval::of_mean(&samples, LEVEL_PERCENT),
        interval_99: None,
        resolution: None,
        samples,
        repeats: vec![1, 2, 3, 4, 5],
        trials: Vec::new(),
        limit: None,
        warnings: Vec::new(),
    });
}

/// The answer for a target to a claim about so much.
fn answer(record: &Record, target: &str, text: &str) -> Verdict {
    let lines = judge(record, &sample::claims());
    let is_it = |line: &&crate::record::ClaimVerdict| {
        line.targets == [target] && line.claim.claim.contains(text)
    };
    let found: Vec<Verdict> = lines.iter().filter(is_it).map(|it| it.verdict.clone()).collect();
    assert_eq!(found.len(), 1, "{text} on {target}: {lines:?}");
    found[0].clone()
}

fn cannot(verdict: &Verdict, words: &str) -> bool {
    matches!(verdict, Verdict::CannotTell(why) if why.contains(words))
}

#[test]
fn a_drop_is_put_to_the_one_that_is_printed() {
    let losing = |target: &str, percents: [f64; 3]| {
        let mut record = run("fig5", "frame_bytes");
        for (entries, percent) in [8192.0, 65_536.0, 131_072.0].into_iter().zip(percents) {
            let point = Point::new("frame_bytes", 96.0).within("entries", entries);
            add(&mut record, target, Metric::LossRatio, point, percent / 100.0);
        }
        answer(&record, target, "relative throughput drop")
    };
    assert_eq!(losing("ours", [0.6, 5.0, 11.3]), Verdict::Holds);
    assert_eq!(losing("linux-bridge", [13.6, 70.4, 89.5]), Verdict::Holds);
    assert_eq!(losing("bridge", [0.0, 0.0, 0.0]), Verdict::DoesNot);
    assert_eq!(losing("ours", [0.6, 5.0, 60.0]), Verdict::DoesNot);
}

#[test]
fn wire_speed_with_small_tables_needs_the_size_and_no_less() {
    let reaching = |from: f64| {
        let mut record = run("fig5", "frame_bytes");
        for entries in [8192.0, 131_072.0] {
            for bytes in [96.0, 128.0, 256.0, 1500.0] {
                let wire = 1e9 / (8.0 * (bytes + 20.0));
                let share = if bytes >= from && entries < 1e5 { 1.0 } else { 0.5 };
                let point = || Point::new("frame_bytes", bytes).within("entries", entries);
                add(&mut record, "ours", Metric::RatePpsOffered, point(), wire);
                add(&mut record, "ours", Metric::RatePpsForwarded, point(), wire * share);
            }
        }
        answer(&record, "ours", "wire speed needs")
    };
    assert_eq!(reaching(256.0), Verdict::Holds);
    assert_eq!(reaching(128.0), Verdict::DoesNot);
    assert_eq!(reaching(1500.0), Verdict::DoesNot);
}

#[test]
fn the_linear_table_is_put_to_the_hash_table() {
    let linear = |share: f64, loss: f64| {
        let mut record = run("fig6", "frame_bytes");
        for (curve, pps) in [("hash_entries", 9e5), ("linear_entries", 9e5 * share)] {
            let point = || Point::new("frame_bytes", 96.0).within(curve, 100.0);
            add(&mut record, "ours", Metric::RatePpsForwarded, point(), pps);
            add(&mut record, "ours", Metric::LossRatio, point(), loss);
        }
        answer(&record, "ours", "lower by about")
    };
    assert_eq!(linear(0.67, 0.2), Verdict::Holds);
    assert_eq!(linear(0.99, 0.2), Verdict::DoesNot);
    assert!(cannot(&linear(0.99, 0.0), "all that was offered"));
}

#[test]
fn a_mix_is_put_to_the_line_between_the_pure_cases() {
    let mixed = |half: f64, loss: f64| {
        let mut record = run("fig7", "linear_percent");
        for (percent, pps) in [(0.0, 9e5), (50.0, half), (100.0, 6e5)] {
            let point = || Point::new("linear_percent", percent);
            add(&mut record, "ovs", Metric::RatePpsForwarded, point(), pps);
            add(&mut record, "ovs", Metric::LossRatio, point(), loss);
        }
        answer(&record, "ovs", "bounded")
    };
    assert_eq!(mixed(7.5e5, 0.2), Verdict::Holds);
    assert_eq!(mixed(5.5e5, 0.2), Verdict::DoesNot);
    assert!(cannot(&mixed(7.5e5, 0.0), "all that was offered"));
}

#[test]
fn times_are_put_to_those_of_the_smallest_table_and_packet() {
    let timed = |time: fn(f64, f64) -> f64| {
        let mut record = run("table1", "frame_bytes");
        for curve in ["hash_entries", "linear_entries"] {
            for entries in [1.0, 100.0] {
                for bytes in [96.0, 1500.0] {
                    let point = Point::new("frame_bytes", bytes).within(curve, entries);
                    add(&mut record, "ours", Metric::ProcessingNs, point, time(entries, bytes));
                }
            }
        }
        ["independent of table size", "seems independent", "with respect to the packet"]
            .map(|text| answer_of_one(&record, text))
    };
    assert_eq!(timed(|_, _| 28_000.0), [Verdict::Holds, Verdict::Holds, Verdict::Holds]);
    let by_table = timed(|entries, _| 20_000.0 + 100.0 * entries);
    assert_eq!(by_table, [Verdict::DoesNot, Verdict::DoesNot, Verdict::Holds]);
    let by_packet = timed(|_, bytes| 10_000.0 + 10.0 * bytes);
    assert_eq!(by_packet, [Verdict::Holds, Verdict::Holds, Verdict::DoesNot]);
    assert!(timed(|_, _| -5.0).iter().all(|it| cannot(it, "as long as")));
}

/// Of the two claims about independence one speaks of what seems.
fn answer_of_one(record: &Record, text: &str) -> Verdict {
    let lines = judge(record, &sample::claims());
    let is_it = |line: &&crate::record::ClaimVerdict| {
        let claim = &line.claim.claim;
        line.targets == ["ours"]
            && claim.contains(text)
            && claim.contains("seems") == text.contains("seems")
    };
    let found: Vec<Verdict> = lines.iter().filter(is_it).map(|it| it.verdict.clone()).collect();
    assert_eq!(found.len(), 1, "{text}: {lines:?}");
    found[0].clone()
}

#[test]
fn fairness_is_judged_where_frames_are_lost() {
    let differing = |item: &str, points: [(f64, f64); 3], text: &str, target: &str| {
        let mut record = run(item, "f2_percent");
        for (percent, (loss, difference)) in [40.0, 60.0, 90.0].into_iter().zip(points) {
            let point = || Point::new("f2_percent", percent);
            add(&mut record, target, Metric::LossRatio, point(), loss);
            add(&mut record, target, Metric::LossRatioDifference, point(), difference / 100.0);
        }
        answer(&record, target, text)
    };
    let fig9 = |points| differing("fig9", points, "absolute loss difference", "linux-router");
    assert_eq!(fig9([(0.0, 0.0), (0.1, 0.5), (0.3, -1.2)]), Verdict::Holds);
    assert_eq!(fig9([(0.0, 0.0), (0.1, 0.5), (0.3, -8.0)]), Verdict::DoesNot);
    assert!(cannot(&fig9([(0.0, 0.0); 3]), "not overloaded"));

    let smaller = |points| differing("fig10", points, "smaller flow F1 is favoured", "ours");
    assert_eq!(smaller([(0.0, 0.0), (0.1, -8.0), (0.3, -40.0)]), Verdict::Holds);
    assert_eq!(smaller([(0.0, 0.0), (0.1, 8.0), (0.3, 40.0)]), Verdict::DoesNot);
    assert_eq!(smaller([(0.0, 0.0), (0.1, -40.0), (0.3, -8.0)]), Verdict::DoesNot);
    assert!(cannot(&smaller([(0.0, 0.0), (0.0, 0.0), (0.3, -8.0)]), "fewer than two"));

    let bridge = |points| differing("fig10", points, "already saturated", "linux-bridge");
    assert_eq!(bridge([(0.4, -30.0), (0.5, -30.0), (0.6, -30.0)]), Verdict::Holds);
    assert_eq!(bridge([(0.4, -10.0), (0.5, -30.0), (0.6, -50.0)]), Verdict::DoesNot);
    assert!(cannot(&bridge([(0.0, 0.0), (0.1, -8.0), (0.3, -40.0)]), "C is chosen"));
}
