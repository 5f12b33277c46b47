//! Parts of figures that only one study has.
//!
//! - bianco2010, figure 5: the columns of the table sizes, and the drops that the text prints.
//! - costa2017, figure 6: bars of the speed-up of OpenFlow mode.
//! - oflops2018, figures 6a and 6b, 7b and 7c: hardware in one, software in the other.
//!
//! Invariant: no value is read off a printed picture.

use super::{Axis, AxisKind, Figure, FigurePoint, Series, Style, styles};
use crate::analysis::costa2017::{SpeedUp, speed_ups};
use record::number;
use record::{Experiment, Implementation, Record, Show, Within};

/// Meaning of printed drops in a caption.
pub(super) const PRINTED_DROPS: &str = "The study prints drops relative to its offered load; they \
     are drawn relative to the offered load of this run.";

/// Letters of the study's three table sizes: small, medium and large.
const SIZES: [char; 3] = ['s', 'm', 'l'];

/// The columns of a group of bars: a letter and its meaning for each curve.
pub(super) fn columns(curves: &[Within]) -> Vec<(char, String)> {
    let letters: Vec<char> = match curves.len() {
        3 => SIZES.to_vec(),
        _ => ('a'..='z').collect(),
    };
    letters.into_iter().zip(curves.iter().map(number::curve)).collect()
}

/// Forwarding rates at the drops that the study prints, relative to the offered load: a series for
/// each technology.
pub(super) fn printed_drops(
    record: &Record,
    experiment: &Experiment,
    (offered, curves): (&[FigurePoint], &[Within]),
) -> Vec<Series> {
    let mut found: Vec<(&str, Vec<FigurePoint>)> = Vec::new();
    let is_it = |it: &&record::Published| {
        Some(&it.study) == experiment.study.as_ref()
            && Some(&it.item) == experiment.item.as_ref()
            && it.metric == "throughput_drop_percent"
    };
    for value in record.published.iter().filter(is_it) {
        let Some(within) = &value.point.within else { continue };
        let Some(column) = curves.iter().position(|curve| curve == within) else { continue };
        let mut loads = offered.iter();
        let here = |it: &&FigurePoint| it.x == value.point.value && it.column == column;
        let Some(load) = loads.find(here) else { continue };
        let point = FigurePoint {
            x: load.x,
            y: load.y * (1.0 - value.value / 100.0),
            column,
            note: format!(
                "{}, {}, {} bytes, {}: {} % below the offered load",
                value.study,
                value.subject,
                number::setting(value.point.value),
                number::curve(within),
                number::text(value.value),
            ),
            ..FigurePoint::default()
        };
        match found.iter_mut().find(|(subject, _)| *subject == value.subject) {
            Some((_, points)) => points.push(point),
            None => found.push((&value.subject, vec![point])),
        }
    }
    let study = experiment.study.as_deref().unwrap_or_default();
    let series = |(place, (subject, points)): (usize, (&str, Vec<FigurePoint>))| Series {
        name: format!("{study}, {subject}: printed drop"),
        style: Style::printed(place),
        points,
        choice: None,
    };
    found.into_iter().enumerate().map(series).collect()
}

/// The figures of a study's item that are no views of its metrics.
pub fn of_study(record: &Record, experiment: &Experiment) -> Vec<Figure> {
    match (experiment.study.as_deref(), experiment.item.as_deref()) {
        (Some("costa2017"), Some("fig6")) => {
            bars_of_speed_up(record, experiment).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Bars of the speed-up with one packet in flight, as in the study: a group for each packet size, a
/// bar for each target and legacy mode.
fn bars_of_speed_up(record: &Record, experiment: &Experiment) -> Option<Figure> {
    let found = speed_ups(record, experiment);
    let mut series: Vec<Series> = Vec::new();
    for (target, style) in record.targets.iter().zip(styles(&record.targets)) {
        let own = || found.iter().filter(|it| it.target == target.name && it.packets_per_s == 0.0);
        let mut modes: Vec<&str> = Vec::new();
        for it in own() {
            if !modes.contains(&it.legacy.as_str()) {
                modes.push(&it.legacy);
            }
        }
        for (place, mode) in modes.into_iter().enumerate() {
            let points = own().filter(|it| it.legacy == mode).map(speed_up).collect();
            let name = format!("{}, legacy mode: {mode}", own().next()?.label);
            series.push(Series { name, style: style.variant(place), points, choice: None });
        }
    }
    let mut sizes: Vec<f64> = series.iter().flat_map(|one| &one.points).map(|at| at.x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.is_empty() {
        return None;
    }
    let equal = |&x: &f64| FigurePoint { x, y: 1.0, ..FigurePoint::default() };
    series.insert(0, Series::reference("legacy mode", sizes.iter().map(equal).collect()));
    let text = |one: &Series| {
        let values: Vec<String> = one
            .points
            .iter()
            .map(|it| format!("{} at {}", number::text(it.y), number::setting(it.x)))
            .collect();
        format!(" {}: {}.", one.name, values.join(", "))
    };
    Some(Figure {
        id: "costa2017-fig6-speed-up".into(),
        title: "Speed-up of OpenFlow mode by packet size".into(),
        description: format!(
            "Bars of the speed-up by packet size in bytes.{}",
            series[1..].iter().map(text).collect::<String>()
        ),
        x: Axis { label: number::axis(&experiment.x_name), kind: AxisKind::Groups },
        y: Axis { label: "speed-up".into(), kind: AxisKind::Linear },
        series,
        note: "Speed-up: legacy time divided by OpenFlow time, one packet in flight. Below 1, \
               OpenFlow is slower."
            .into(),
        ..Figure::default()
    })
}

fn speed_up(found: &SpeedUp) -> FigurePoint {
    let range = found.interval.map_or(String::new(), |it| {
        format!(", {} to {}", number::text(it.low), number::text(it.high))
    });
    FigurePoint {
        x: found.bytes,
        y: found.ratio,
        interval: found.interval.map(|it| (it.low, it.high)),
        note: format!(
            "{}, legacy mode: {}, {} bytes: {}{range} (n={})",
            found.label,
            found.legacy,
            number::setting(found.bytes),
            number::text(found.ratio),
            found.n,
        ),
        trials: found.trials.clone(),
        warnings: found.warnings.clone(),
        ..FigurePoint::default()
    }
}

/// The targets of a chart that is about hardware or about software; none if it is about all, or if
/// the run does not have the other experiment.
pub(super) fn shown_targets(
    record: &Record,
    experiment: &Experiment,
    show: &Show,
) -> Option<Vec<String>> {
    let wanted = show.implementation?;
    other_half(record, experiment, wanted)?;
    let is_meant = |target: &&record::Target| {
        (target.implementation() == Some(Implementation::Hardware))
            == (wanted == Implementation::Hardware)
    };
    Some(record.targets.iter().filter(is_meant).map(|target| target.name.clone()).collect())
}

/// The experiment of the run that shows the other targets from the same trials.
fn other_half<'a>(
    record: &'a Record,
    experiment: &Experiment,
    wanted: Implementation,
) -> Option<&'a Experiment> {
    record.experiments.iter().find(|other| {
        let shows = |show: &Show| show.implementation.is_some_and(|it| it != wanted);
        other.id != experiment.id
            && other.source() == experiment.source()
            && other.shows.iter().any(shows)
    })
}

/// Why an experiment has no figure, if the other half of its trials has all targets.
pub fn omitted(record: &Record, experiment: &Experiment) -> Option<String> {
    let show = experiment.shows.iter().find(|show| show.implementation.is_some())?;
    let targets = shown_targets(record, experiment, show)?;
    let wanted = show.implementation?;
    let other = other_half(record, experiment, wanted)?;
    targets.is_empty().then(|| {
        format!(
            "No {} switch was measured. {} has the figure of the others.",
            wanted.word(),
            other.id
        )
    })
}
