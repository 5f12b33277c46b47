//! An image of each kind of chart with invented values, compared with `tests/golden/kind-*.svg`;
//! `UPDATE=1` rewrites them.

use std::path::Path;

use record::{
    Bound, BoundCause, BoundSide, Cell, Ended, Experiment, Implementation, Interval,
    IntervalMethod, LEVEL_PERCENT, Metric, ModuleRun, Name, Point, Published, Record, Show,
    ShowRange, Warning,
};
use stats::histogram::Histogram;
use stats::spectrum::Spectra;

use crate::figure::*;

/// Compares an image with its file.
#[allow(clippy::disallowed_methods)]
fn check(name: &str, figure: &Figure) -> String {
    let image = svg(figure);
    assert!(roxmltree::Document::parse(&image).is_ok(), "{image}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(format!("kind-{name}.svg"));
    if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &image).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = image.lines().zip(want.lines()).position(|(have, want)| have != want);
    let hint = "look at it and run with UPDATE=1";
    assert!(image == want, "{} differs in line {differs:?}: {hint}", path.display());
    image
}

/// The sample run as an item of a study, without values.
fn item(study: &str, item: &str, targets: usize) -> Record {
    let mut record = sample::record();
    record.targets.truncate(targets);
    record.experiments.truncate(1);
    let experiment = &mut record.experiments[0];
    experiment.id = format!("{study}/{item}");
    experiment.title = format!("Figure {} of {study}", item.trim_start_matches("fig"));
    (experiment.study, experiment.item) = (Some(study.into()), Some(item.into()));
    record.cells.clear();
    record.trials.clear();
    record
}

fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

/// A cell with three repeats around a value.
fn cell(record: &Record, target: &str, point: Point, metric: Metric, value: f64) -> Cell {
    let samples: Vec<f64> = [0.96, 1.0, 1.04].map(|factor| factor * value).into();
    let interval = Interval {
        low: 0.94 * value,
        high: 1.06 * value,
        level_percent: LEVEL_PERCENT,
        method: IntervalMethod::StudentT,
    };
    Cell {
        experiment: record.experiments[0].id.clone(),
        target: target.into(),
        link: None,
        point,
        metric,
        unit: metric.unit().into(),
        value,
        n: 3,
        interval: Some(interval),
        interval_99: None,
        resolution: None,
        samples,
        repeats: vec![1, 2, 3],
        trials: vec![1, 2, 3],
        limit: None,
        bound: None,
        disturbances: Vec::new(),
        exclusion: None,
        warnings: Vec::new(),
    }
}

fn first_view(record: &Record) -> Figure {
    let experiment: &Experiment = &record.experiments[0];
    figure(record, experiment, &views(record, experiment)[0]).unwrap()
}

const SIZES: [f64; 6] = [96.0, 128.0, 256.0, 512.0, 1024.0, 1500.0];
const ENTRIES: [f64; 3] = [8192.0, 65_536.0, 131_072.0];

/// Rates by packet size and table size, of the bridge far lower with large tables.
fn table_sizes() -> Record {
    let mut record = item("bianco2010", "fig5", 6);
    for (index, target) in record.targets.clone().iter().enumerate() {
        for size in SIZES {
            let nominal = 1e9 * size / (size + 20.0);
            for (column, entries) in ENTRIES.into_iter().enumerate() {
                let point = || Point::new("frame_bytes", size).within("entries", entries);
                let share = match index % 3 {
                    1 => [0.86, 0.3, 0.1][column] * (size / 96.0).sqrt(),
                    _ => 1.0 - 0.05 * column as f64 - 0.03 * index as f64 + size / 1e4,
                };
                let rate = nominal * share.min(1.0);
                for (metric, value) in
                    [(Metric::RateBpsForwarded, rate), (Metric::RateBpsOffered, nominal)]
                {
                    let made = cell(&record, &target.name, point(), metric, value);
                    record.cells.push(made);
                }
            }
        }
    }
    for (subject, drops) in [
        ("routing", [0.1, 5.4, 8.9]),
        ("openflow", [0.6, 5.0, 11.3]),
        ("bridging", [13.6, 70.4, 89.5]),
    ] {
        record.published.extend(drops.into_iter().zip(ENTRIES).map(|(value, entries)| Published {
            study: "bianco2010".into(),
            item: "fig5".into(),
            subject: subject.into(),
            point: Point::new("frame_bytes", 96.0).within("entries", entries),
            metric: "throughput_drop_percent".into(),
            value,
            text: None,
        }));
    }
    record
}

#[test]
fn bars_by_packet_size_and_table_size() {
    let record = table_sizes();
    let drawn = first_view(&record);
    // Offered load, six targets, and the printed drops of three technologies.
    assert_eq!(drawn.series.len(), 10);
    assert_eq!(drawn.series[1].points.len(), SIZES.len() * ENTRIES.len());
    let printed: usize = drawn.series[7..].iter().map(|one| one.points.len()).sum();
    assert_eq!(printed, 9, "the study prints nine drops");
    let load = drawn.series[0].points[2].y;
    let worst = drawn.series[9].points[2].y;
    assert!((worst / load - 0.105).abs() < 1e-9, "{worst} of {load}");
    let caption = drawn.caption();
    assert!(caption.contains("s: 8192 entries, m: 65\u{202f}536 entries"), "{caption}");
    assert!(caption.contains("relative to the offered load of this run"), "{caption}");
    let image = check("bars", &drawn);
    assert_eq!(image.matches(">m</text>").count(), SIZES.len());
    let charts = views(&record, &record.experiments[0]).iter().filter(|it| !it.is_table).count();
    assert_eq!(charts, 1, "one chart for all table sizes");
}

#[test]
fn bounds_and_warnings_have_marks_on_bars_too() {
    let mut record = table_sizes();
    record.published.clear();
    let mut cells = record.cells.iter_mut().filter(|it| it.metric == Metric::RateBpsForwarded);
    let (side, cause) = (BoundSide::Lower, BoundCause::TesterLimit);
    cells.next().unwrap().bound = Some(Bound { side, cause });
    let below = cells.next().unwrap();
    let (side, cause) = (BoundSide::Upper, BoundCause::Resolution);
    (below.value, below.resolution, below.bound) = (0.0, Some(2e8), Some(Bound { side, cause }));
    cells.next().unwrap().warnings = vec![Warning::Stall { trials: 2 }];
    let drawn = first_view(&record);
    let below = &drawn.series[1].points[1];
    assert_eq!((below.y, below.interval, below.bound), (200.0, None, Some(BoundSide::Upper)));
    let image = check("bars-bounds", &drawn);
    assert_eq!(image.matches("data-bound").count(), 2);
    assert_eq!(image.matches("class=\"ring\"").count(), 1);
    assert!(image.contains("hollow mark with arrow: bound; ring: value with a warning"));
}

#[test]
fn bars_of_speed_up_by_packet_size() {
    let mut record = item("costa2017", "fig6", 5);
    for (target, normal) in [("switch", 9e4), ("ovs", 1.1e5)] {
        for (size, factor) in [(64.0, 1.0), (128.0, 1.1), (256.0, 1.3)] {
            for pps in [0.0, 1000.0] {
                let point = || Point::new("frame_bytes", size).within("open_loop_pps", pps);
                for (name, value) in
                    [("port_rtt_ns_mean", 1e5 * factor), ("normal_rtt_ns_mean", normal * factor)]
                {
                    let made = cell(&record, target, point(), named(name), value);
                    record.cells.push(made);
                }
            }
        }
    }
    for (size, value) in [(64.0, 6e4), (128.0, 8e4), (256.0, 9e4)] {
        let point = Point::new("frame_bytes", size).within("open_loop_pps", 0.0);
        let made = cell(&record, "bridge", point, named("legacy_rtt_ns_mean"), value);
        record.cells.push(made);
    }
    let drawn = of_study(&record, &record.experiments[0]);
    let [drawn] = &drawn[..] else { panic!("one figure: {}", drawn.len()) };
    let names: Vec<&str> = drawn.series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "legacy mode",
            "planimeter switch, legacy mode: NORMAL",
            "planimeter switch, legacy mode: planimeter bridge",
            "ovs, legacy mode: NORMAL",
        ]
    );
    let values: Vec<f64> =
        drawn.series[2].points.iter().map(|it| (it.y * 1000.0).round() / 1000.0).collect();
    assert_eq!(values, [0.6, 0.727, 0.692], "one packet in flight only");
    check("bars-speed-up", drawn);
}

/// Latencies at two rates, with minimum and 90th percentile.
fn latencies(hardware: &[&str]) -> Record {
    let mut record = item("oflops2018", "fig6a", 4);
    for target in &mut record.targets {
        if hardware.contains(&target.name.as_str()) {
            target.settings.insert("implementation".into(), "hardware".into());
        }
    }
    let show = |implementation| Show {
        title: "Median forwarding latency".into(),
        drawn: vec![Metric::LatencyNsP50],
        beside: vec![Metric::LatencyNsMin, Metric::LatencyNsP90],
        is_logarithmic: true,
        range: Some(ShowRange::Metrics([Metric::LatencyNsMin, Metric::LatencyNsP90])),
        implementation: Some(implementation),
        ..Show::default()
    };
    record.experiments[0].shows = vec![show(Implementation::Hardware)];
    let mut software = record.experiments[0].clone();
    software.id = "oflops2018/fig6b".into();
    software.item = Some("fig6b".into());
    software.shares_trials_with = Some("oflops2018/fig6a".into());
    software.shows = vec![show(Implementation::Software)];
    for (index, target) in record.targets.clone().iter().enumerate() {
        for size in SIZES {
            for (mbps, factor) in [(100.0, 1.0), (10_000.0, 40.0 * 96.0 / size)] {
                let point = || Point::new("frame_bytes", size).within("load_mbps", mbps);
                let median = 2_500.0 * 10f64.powi(index as i32 % 2) * f64::max(factor, 1.0);
                for (metric, of) in [
                    (Metric::LatencyNsP50, 1.0),
                    (Metric::LatencyNsMin, 0.7),
                    (Metric::LatencyNsP90, 1.6),
                ] {
                    let made = cell(&record, &target.name, point(), metric, median * of);
                    record.cells.push(made);
                }
            }
        }
    }
    let copies: Vec<Cell> = record
        .cells
        .iter()
        .map(|cell| Cell { experiment: software.id.clone(), ..cell.clone() })
        .collect();
    record.cells.extend(copies);
    record.experiments.push(software);
    record
}

#[test]
fn ranges_are_drawn_with_the_interval_beside_them() {
    let record = latencies(&["switch", "bridge"]);
    let drawn = first_view(&record);
    let point = &drawn.series[0].points[0];
    let near = |have: f64, want: f64| (have - want).abs() < 1e-9;
    assert!(point.range.is_some_and(|(low, high)| near(low, 1.75) && near(high, 4.0)));
    assert!(point.interval.is_some_and(|(low, high)| near(low, 2.35) && near(high, 2.65)));
    let caption = drawn.caption();
    assert!(caption.contains("line with ends: minimum to 90th percentile"), "{caption}");
    assert!(caption.contains("thick line next to it: confidence interval"), "{caption}");
    check("ranges", &drawn);
}

#[test]
fn hardware_and_software_of_one_set_of_trials_are_in_different_figures() {
    let record = latencies(&["switch"]);
    let of = |index: usize| {
        let experiment = &record.experiments[index];
        let view = &views(&record, experiment)[0];
        let names = figure(&record, experiment, view).unwrap().series;
        let in_table = crate::table::of_view(&record, experiment, view).rows;
        (names.len(), in_table.len())
    };
    // Two rates each, and six sizes.
    assert_eq!([of(0), of(1)], [(2, 12), (6, 36)]);
    assert_eq!(omitted(&record, &record.experiments[0]), None);
    // Without hardware, the first figure is absent and says why.
    let none = latencies(&[]);
    assert!(views(&none, &none.experiments[0]).is_empty());
    let why = omitted(&none, &none.experiments[0]).unwrap();
    assert_eq!(
        why,
        "No hardware switch was measured. oflops2018/fig6b has the figure of the others."
    );
    // Alone in its run, an experiment shows all targets.
    let mut alone = latencies(&[]);
    alone.experiments.truncate(1);
    assert_eq!(first_view(&alone).series.len(), 8);
}

#[test]
fn ranges_of_repeats_go_from_the_minimum_to_the_90th_percentile() {
    let mut record = item("oflops2018", "fig7c", 1);
    record.experiments[0].x_name = "rules".into();
    record.experiments[0].shows = vec![Show {
        title: "Delay by number of rules".into(),
        drawn: vec![named("data_plane_ns")],
        range: Some(ShowRange::Repeats),
        ..Show::default()
    }];
    for rules in [100.0, 400.0, 1400.0] {
        let point = Point::new("rules", rules);
        let mut made = cell(&record, "switch", point, named("data_plane_ns"), rules * 1e5);
        made.samples = (1..=20).map(|repeat| rules * 1e4 * f64::from(repeat)).collect();
        record.cells.push(made);
    }
    let drawn = first_view(&record);
    // The claim is a linear growth.
    assert_eq!((drawn.x.kind, drawn.y.kind), (AxisKind::Linear, AxisKind::Linear));
    assert_eq!(drawn.series[0].points[0].range, Some((1.0, 18.0)));
    check("ranges-linear", &drawn);
}

/// A run with a module's series of three repeats.
fn with_series(shows: Vec<Show>, of: impl Fn(u64) -> Vec<record::Series>) -> Record {
    let like = sample::record();
    let mut record = item("costa2017", "fig2", 4);
    record.experiments[0].shows = shows;
    let is_here = |trial: &&record::Trial| record.target(&trial.target).is_some();
    let trials: Vec<&record::Trial> = like.trials.iter().filter(is_here).take(12).collect();
    for trial in trials {
        let module = ModuleRun {
            module: "made-up".into(),
            ended: Ended::Completed,
            duration_ns: 1,
            measured: Vec::new(),
            series: of(trial.id),
            messages_sent: 0,
            messages_received: 0,
            errors_received: 0,
            events: 0,
            reaction_ns: 0,
            reaction_ns_longest: 0,
            turn_ns_p50: 0,
            turn_ns_p99: 0,
            notes: Vec::new(),
            wire: None,
            log: None,
        };
        record.trials.push(record::Trial {
            experiment: record.experiments[0].id.clone(),
            point: Point::new("frame_bytes", 64.0),
            module: Some(module),
            ..trial.clone()
        });
    }
    record
}

#[test]
fn distributions_of_repeats_are_pooled_and_state_their_number() {
    let show = Show {
        title: "Round-trip times with an IP match".into(),
        series: vec!["ip_share".into()],
        is_logarithmic: true,
        ..Show::default()
    };
    let values = |id: u64| {
        let base = 1e5 * (1.0 + (id % 6) as f64);
        let point =
            |rank: u32| [base * (1.0 + (f64::from(rank) / 50.0).powi(3)), f64::from(rank) / 100.0];
        let points = (1..=100).map(point).collect();
        vec![record::Series { name: "ip_share".into(), over: "round_trip_ns".into(), points }]
    };
    let record = with_series(vec![show], values);
    let drawn = of_series(&record, &record.experiments[0]);
    let [drawn] = &drawn[..] else { panic!("one figure") };
    assert_eq!(drawn.series.len(), 4);
    assert!(drawn.series[0].name.ends_with("(n = 300)"), "{}", drawn.series[0].name);
    assert!(drawn.caption().ends_with("n: number of values of all repeats together."));
    check("distribution", drawn);
}

#[test]
fn insertions_and_modifications_are_in_one_figure() {
    let show = Show {
        title: "Active entries over time".into(),
        series: vec!["rules_acting".into(), "modified_rules_acting".into()],
        ..Show::default()
    };
    let values = |id: u64| {
        let points = |ms: f64| {
            let point = |rank: u32| [ms * 1e6 * f64::from(rank / 40), f64::from(rank)];
            (1..=200).map(point).collect()
        };
        let series = |name: &str, ms| record::Series {
            name: name.into(),
            over: "time_ns".into(),
            points: points(ms + (id % 6) as f64),
        };
        vec![series("rules_acting", 30.0), series("modified_rules_acting", 10.0)]
    };
    let record = with_series(vec![show], values);
    let mut record = record;
    record.targets.truncate(1);
    let drawn = of_series(&record, &record.experiments[0]);
    let names: Vec<&str> = drawn[0].series.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["planimeter switch, rules acting", "planimeter switch, modified rules acting"]
    );
    assert_eq!(drawn[0].y.label, "rules acting");
    check("over-time", &drawn[0]);
}

#[test]
fn percentiles_of_latency() {
    let record = sample::record();
    let latency = record.experiments.iter().find(|it| shows_latency(&record, it)).unwrap();
    let mut spectra = Spectra::default();
    for trial in &record.trials {
        let mut taken = Histogram::new();
        (1..=2000).for_each(|step| taken.record(step * step * (1 + trial.id % 6)));
        spectra.add(trial.id, &taken);
    }
    let mut drawn = of_spectra(&record, latency, &spectra).unwrap();
    drawn.series.retain(|one| one.choice == drawn.choice);
    check("percentiles", &drawn);
}

#[test]
fn an_interval_beyond_the_axis_has_no_end() {
    let point = |x: f64, low: f64| FigurePoint {
        x,
        y: 10.0 * x,
        interval: Some((low, 11.0 * x)),
        ..FigurePoint::default()
    };
    let style = styles(&sample::record().targets)[0];
    let points = vec![point(1.0, -5.0), point(2.0, 19.0), point(3.0, 0.01)];
    let axis = |kind| Axis { label: "value, units".into(), kind };
    let mut drawn = Figure {
        id: "open".into(),
        title: "Intervals".into(),
        x: axis(AxisKind::Linear),
        y: axis(AxisKind::Log),
        series: vec![Series { name: "a".into(), style, points, choice: None }],
        ..Figure::default()
    };
    assert!(drawn.caption().contains("line without end: continues beyond the axis"));
    let ends = |drawn: &Figure| svg(drawn).matches("m-4 0h8").count();
    // Of six ends, two are cut; the marker covers others.
    let cut = ends(&drawn);
    check("interval-cut", &drawn);
    drawn.series[0].points.iter_mut().for_each(|it| it.interval = Some((0.8 * it.y, 1.2 * it.y)));
    assert!(!drawn.caption().contains("without end"));
    assert!(ends(&drawn) > cut, "{cut}");
}
