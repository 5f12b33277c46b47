//! Tests of figures of the sample run, and of images in edge cases.

mod kinds;

use super::*;
use record::{Ended, Metric, ModuleRun, Name, Outcome, Record, Show};
use stats::histogram::Histogram;
use stats::spectrum::Spectra;

fn pictures() -> Vec<(String, String)> {
    let record = sample::record();
    record
        .experiments
        .iter()
        .flat_map(|experiment| {
            views(&record, experiment)
                .into_iter()
                .filter_map(|view| figure(&record, experiment, &view))
                .map(|figure| (figure.id.clone(), svg(&figure)))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn targets_have_distinct_styles() {
    let looks = styles(&sample::record().targets);
    // Curves of one target also differ.
    let curves = |look: &Style| [0, 1, 2].map(|place| look.variant(place));
    let looks: Vec<Style> = looks.iter().flat_map(curves).collect();
    for (index, look) in looks.iter().enumerate() {
        assert!(!looks[..index].contains(look), "{look:?}");
    }
}

#[test]
fn ten_targets_have_ten_colours_and_markers() {
    let like = sample::record().targets[0].clone();
    let targets: Vec<_> = (0..12)
        .map(|index| {
            let family = if index < 2 { "planimeter" } else { "other" };
            record::Target { family: family.into(), ..like.clone() }
        })
        .collect();
    let looks = styles(&targets);
    for (index, look) in looks[..10].iter().enumerate() {
        let before = &looks[..index];
        let is_new = |it: &Style| it.colour != look.colour && it.marker != look.marker;
        assert!(before.iter().all(is_new), "{look:?}");
    }
    for (index, look) in looks.iter().enumerate() {
        assert!(!looks[..index].contains(look), "{look:?}");
    }
}

#[test]
fn few_curves_have_their_names_at_their_ends() {
    let record = sample::record();
    let view = &views(&record, &record.experiments[0])[0];
    let mut drawn = figure(&record, &record.experiments[0], view).unwrap();
    assert!(!svg(&drawn).contains("class=\"halo\""));
    drawn.series.truncate(3);
    assert_eq!(svg(&drawn).matches("class=\"halo\"").count(), 3);
}

#[test]
fn the_sample_run_has_three_figures_with_descriptions() {
    let pictures = pictures();
    let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bianco2010-fig2", "bianco2010-fig3", "bianco2010-fig4"]);
    for (name, picture) in &pictures {
        assert!(picture.contains("<title id=") && picture.contains("<desc id="), "{name}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{name}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let mut record = sample::record();
    record.experiments[0].title = "<script>alert('&')</script>\"".into();
    let view = &views(&record, &record.experiments[0])[0];
    let picture = svg(&figure(&record, &record.experiments[0], view).unwrap());
    assert!(!picture.contains("<script") && picture.contains("&lt;script&gt;"));
}

#[test]
fn unusual_values_give_a_figure_without_a_panic() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300];
    let point =
        |y: f64| FigurePoint { x: 64.0, y, interval: Some((y, y)), ..FigurePoint::default() };
    for kind in AxisKind::ALL {
        for values in odd.map(|y| vec![point(y), point(1.0)]) {
            let axis = Axis { label: "a".into(), kind };
            let series = Series::reference("s", values);
            let figure = Figure {
                id: "f".into(),
                x: axis.clone(),
                y: axis,
                series: vec![series],
                ..Figure::default()
            };
            assert!(roxmltree::Document::parse(&svg(&figure)).is_ok());
        }
    }
}

#[test]
fn a_search_figure_shows_the_results_and_not_the_trials() {
    let mut record = sample::record();
    let experiment = &mut record.experiments[0];
    (experiment.id, experiment.study) = ("throughput".into(), None);
    record.trials.retain(|trial| trial.repeat == 1);
    for (number, trial) in record.trials.iter_mut().enumerate() {
        trial.experiment = "throughput".into();
        record.outcomes.push(Outcome {
            experiment: "throughput".into(),
            target: trial.target.clone(),
            link: None,
            repeat: 1,
            point: trial.point.clone(),
            metric: Metric::ThroughputPps,
            value: 1000.0 + number as f64,
            resolution: None,
            bound: None,
            trials: vec![trial.id],
            flags: Vec::new(),
            goal: None,
        });
    }
    crate::finish(&mut record, &[]);
    let shown = views(&record, &record.experiments[0]);
    let metrics: Vec<Metric> = shown.iter().map(|view| view.metric).collect();
    assert_eq!(metrics, [Metric::ThroughputPps]);
    let drawn = figure(&record, &record.experiments[0], &shown[0]).unwrap();
    assert_eq!((drawn.id.as_str(), drawn.series.len()), ("throughput", 6));
}

/// The sample run with a module that measured two times and observed single rule activations.
fn of_a_module() -> Record {
    let mut record = sample::record();
    record.experiments.truncate(1);
    let metric = |name: &'static str| Metric::Named(Name::of(name));
    record.experiments[0].shows = vec![
        Show {
            title: "Two planes".into(),
            drawn: vec![metric("control_ns_p50"), metric("data_ns_p50")],
            ..Show::default()
        },
        Show {
            title: "Rules acting over time".into(),
            series: vec!["rules_acting".into()],
            ..Show::default()
        },
    ];
    let id = record.experiments[0].id.clone();
    for trial in record.trials.iter_mut().filter(|trial| trial.experiment == id) {
        let points = (0..400u32).map(|rule| [f64::from(rule) * 1e6, f64::from(rule)]).collect();
        let (name, over) = ("rules_acting".into(), "time_ns".into());
        trial.module = Some(ModuleRun {
            module: "made-up".into(),
            ended: Ended::Completed,
            duration_ns: 1,
            measured: Vec::new(),
            series: vec![record::Series { name, over, points }],
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
        });
        for (name, value) in [("control_ns_p50", 1e6), ("data_ns_p50", 3e6)] {
            record.outcomes.push(Outcome {
                experiment: id.clone(),
                target: trial.target.clone(),
                link: None,
                repeat: trial.repeat,
                point: trial.point.clone(),
                metric: metric(name),
                value: value + trial.id as f64,
                resolution: Some(5e4),
                bound: None,
                trials: vec![trial.id],
                flags: Vec::new(),
                goal: None,
            });
        }
    }
    crate::finish(&mut record, &[]);
    record
}

#[test]
fn values_of_a_module_are_drawn_with_their_resolution() {
    let record = of_a_module();
    let experiment = &record.experiments[0];
    let shown = views(&record, experiment);
    assert_eq!(shown.len(), 1, "series are not a view over the axis");
    let drawn = figure(&record, experiment, &shown[0]).unwrap();
    assert_eq!(drawn.series.len(), 2 * record.targets.len());
    assert_eq!((drawn.title.as_str(), drawn.y.label.as_str()), ("Two planes", "time, ms"));
    assert!(drawn.series[1].name.ends_with("median data"), "{}", drawn.series[1].name);
    let table = crate::table::of_view(&record, experiment, &shown[0]);
    let ranges = table.rows.iter().flat_map(|row| &row[3..]).map(|entry| entry.range.as_str());
    assert!(ranges.clone().count() > 2 && ranges.clone().all(|it| it.starts_with('[')));
}

#[test]
fn a_series_of_many_points_is_drawn_as_dots() {
    let record = of_a_module();
    let drawn = of_series(&record, &record.experiments[0]);
    let [figure] = &drawn[..] else { panic!("one figure has series") };
    assert_eq!(figure.series.len(), record.targets.len());
    assert_eq!((figure.x.label.as_str(), figure.y.label.as_str()), ("time, ms", "rules acting"));
    let picture = svg(figure);
    // The legend has dots too.
    let (_, picture) = picture.split_once("class=\"marks\"").unwrap();
    let looks = styles(&record.targets);
    let solid = looks.iter().filter(|look| look.dashes.is_empty()).count();
    assert!(solid > 0 && solid < looks.len(), "the sample run has both");
    assert_eq!(picture.matches("h0M").count(), 399 * solid);
    assert_eq!(picture.matches("v5M").count(), 399 * (looks.len() - solid));
}

#[test]
fn latencies_by_percentile_are_drawn_at_the_highest_load_without_loss() {
    let record = sample::record();
    let latency = record.experiments.iter().find(|it| shows_latency(&record, it)).unwrap();
    assert_eq!(latency.id, "bianco2010/fig4");
    let mut spectra = Spectra::default();
    for trial in &record.trials {
        let mut taken = Histogram::new();
        (1..=2000).for_each(|step| taken.record(step * (1 + trial.id % 3)));
        spectra.add(trial.id, &taken);
    }
    let drawn = of_spectra(&record, latency, &spectra).unwrap();
    assert_eq!(drawn.title, "Latency by percentile, load 20 %");
    assert_eq!(drawn.series.len(), 6 * 8, "every load can be chosen");
    assert_eq!(drawn.drawn().count(), 6);
    let median = drawn.series[0].points.iter().find(|it| it.x == 2.0).unwrap();
    assert!(
        median.note.starts_with("planimeter switch, 50 %: ")
            && median.note.contains(" at 75 % (n=3)")
    );
    assert_eq!(median.trials.len(), 3);
    assert!(svg(&drawn).contains(">99 %</text>"));
    assert!(of_spectra(&record, latency, &Spectra::default()).is_none());
}

#[test]
fn a_warning_is_a_ring_at_its_point_or_a_mark_at_its_curve() {
    let record = sample::record();
    let view = &views(&record, &record.experiments[0])[0];
    let mut drawn = figure(&record, &record.experiments[0], view).unwrap();
    let rings = |drawn: &Figure| svg(drawn).matches("class=\"ring\"").count();
    let before = rings(&drawn);
    drawn.series[2].points[2].warnings = vec!["irregular".into()];
    assert_eq!(rings(&drawn), before + 1);
    drawn.series[2].points.iter_mut().for_each(|it| it.warnings = vec!["irregular".into()]);
    assert_eq!(rings(&drawn), before);
    assert!(svg(&drawn).contains(&format!("{} \u{26a0}</text>", drawn.series[2].name)));
}

#[test]
fn bounds_are_drawn_and_printed_as_bounds() {
    let mut record = sample::record();
    let experiment = record.experiments[2].clone();
    let view = &views(&record, &experiment)[0];
    let metric = view.metric;
    let plain = svg(&figure(&record, &experiment, view).unwrap());
    assert!(!plain.contains("data-bound"));
    let mut cells = record.cells.iter_mut().filter(|cell| {
        (cell.experiment.as_str(), cell.target.as_str(), cell.metric)
            == (experiment.id.as_str(), "switch", metric)
    });
    // Within the resolution of the probes it may be zero.
    let cell = cells.next().unwrap();
    cell.value = 0.0;
    cell.resolution = Some(4e3);
    let (side, cause) = (BoundSide::Upper, record::BoundCause::Resolution);
    cell.bound = Some(record::Bound { side, cause });
    let lower = cells.next().unwrap();
    let (side, cause) = (BoundSide::Lower, record::BoundCause::TesterLimit);
    lower.bound = Some(record::Bound { side, cause });
    let found = figure(&record, &experiment, view).unwrap();
    let ours = found.series.iter().find(|one| one.name.starts_with("planimeter switch")).unwrap();
    let at = |side| ours.points.iter().find(|point| point.bound == Some(side)).unwrap();
    // A zero is not visible on a logarithmic axis, but the bound is.
    assert!((at(BoundSide::Upper).y - 4.0).abs() < 1e-9 && at(BoundSide::Upper).interval.is_none());
    assert!(at(BoundSide::Upper).note.contains(": < 4 "), "{}", at(BoundSide::Upper).note);
    assert!(at(BoundSide::Lower).note.contains("\u{2265} "), "{}", at(BoundSide::Lower).note);
    let picture = svg(&found);
    assert_eq!(picture.matches("data-bound").count(), 2);
    assert!(picture.contains("; hollow mark with arrow: bound"), "{picture}");
    let table = crate::table::of_view(&record, &experiment, view);
    let entries: Vec<&str> = table.rows.iter().flatten().map(|entry| entry.text.as_str()).collect();
    assert!(entries.contains(&"< 4"), "{entries:?}");
}
