//! Figures of the made-up run, and pictures that must never break.

use super::*;
use crate::record::{Metric, Outcome};
use crate::sample;

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
fn no_two_targets_look_alike() {
    let looks = styles(&sample::record().targets);
    // Nor do their curves, where each has several.
    let curves = |look: &Style| [0, 1, 2].map(|place| look.variant(place));
    let looks: Vec<Style> = looks.iter().flat_map(curves).collect();
    for (index, look) in looks.iter().enumerate() {
        assert!(!looks[..index].contains(look), "{look:?}");
    }
}

#[test]
fn the_made_up_run_gives_three_pictures_with_words() {
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
fn odd_values_give_a_picture_and_no_panic() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300];
    let point = |y: f64| FigurePoint { x: 64.0, y, interval: Some((y, y)), note: String::new() };
    for kind in [AxisKind::Linear, AxisKind::Log, AxisKind::LogAtPoints] {
        for values in odd.map(|y| vec![point(y), point(1.0)]) {
            let axis = Axis { label: "a".into(), kind };
            let series = Series { name: "s".into(), style: Style::REFERENCE, points: values };
            let figure = Figure {
                id: "f".into(),
                title: String::new(),
                description: String::new(),
                x: axis.clone(),
                y: axis,
                series: vec![series],
            };
            assert!(svg(&figure).ends_with("</svg>\n"));
        }
    }
}

#[test]
fn a_search_shows_what_it_found_and_not_the_rates_of_its_trials() {
    let mut record = sample::record();
    let experiment = &mut record.experiments[0];
    (experiment.id, experiment.study) = ("throughput".into(), None);
    record.trials.retain(|trial| trial.repeat == 1);
    for (number, trial) in record.trials.iter_mut().enumerate() {
        trial.experiment = "throughput".into();
        record.outcomes.push(Outcome {
            experiment: "throughput".into(),
            target: trial.target.clone(),
            repeat: 1,
            point: trial.point.clone(),
            metric: Metric::ThroughputPps,
            value: 1000.0 + number as f64,
            trials: vec![trial.id],
            flags: Vec::new(),
            goal: None,
        });
    }
    crate::derive::finish(&mut record, &[]);
    let shown = views(&record, &record.experiments[0]);
    let metrics: Vec<Metric> = shown.iter().map(|view| view.metric).collect();
    assert_eq!(metrics, [Metric::ThroughputPps]);
    let drawn = figure(&record, &record.experiments[0], &shown[0]).unwrap();
    assert_eq!((drawn.id.as_str(), drawn.series.len()), ("throughput", 6));
}
