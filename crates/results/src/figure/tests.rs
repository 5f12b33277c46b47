//! Figures of the made-up run, and pictures that must never break.

use super::*;
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
