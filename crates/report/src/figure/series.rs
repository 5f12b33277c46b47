//! Figures of a measurement module's series, over time or over rules.
//!
//! Source: figures 8a and 8b of the OFLOPS-SUME paper. A series belongs to one trial and has no
//! interval. For each target the figure shows the first repeat at the largest value of the
//! experiment's axis, on its first curve: one packet in flight, not a fixed rate. Distributions of
//! all repeats at that point are pooled, and the curve's name states the number of values.
//! Invariant: all data come from trials.

mod pooled;

use super::{Axis, AxisKind, Figure, FigurePoint, Series, styles};
use crate::analysis::counts;
use record::links::Naming;
use record::number;
use record::{Experiment, Record, Show, Trial};

/// The figures of an experiment's series, in the order of its module.
pub fn of_series(record: &Record, experiment: &Experiment) -> Vec<Figure> {
    let shows = experiment.shows.iter().filter(|show| !show.series.is_empty());
    shows.filter_map(|show| figure_of(record, experiment, show)).collect()
}

fn figure_of(record: &Record, experiment: &Experiment, show: &Show) -> Option<Figure> {
    let mut series = Vec::new();
    let (mut over, mut named, mut is_pooled) = (None, None, false);
    let looks = record.targets.iter().zip(styles(&record.targets));
    let rows = looks.map(|(target, style)| {
        let of = |name: &String| shown(record, experiment, &target.name, name);
        (target.name.as_str(), style, show.series.iter().map(of).collect::<Vec<_>>())
    });
    let rows: Vec<_> = rows.filter(|(_, _, found)| found.iter().any(Option::is_some)).collect();
    let naming = Naming::among(record, rows.iter().map(|(target, ..)| *target));
    for (target, style, found) in rows {
        // The first series that a target has is in the target's own style.
        for (place, found) in found.into_iter().flatten().enumerate() {
            let (_, first) = found[0];
            over.get_or_insert(first.over.as_str());
            named.get_or_insert(first.name.as_str());
            let mut name = match show.series.len() {
                1 => naming.of(target),
                _ => format!("{}, {}", naming.of(target), words(&first.name).0),
            };
            let pooled = pooled::of(found.iter().map(|(_, series)| &series.points[..]));
            let trials: Vec<u64> = found.iter().map(|(trial, _)| *trial).collect();
            let points = match pooled.filter(|_| is_distribution(&first.name)) {
                Some((points, count)) => {
                    is_pooled = true;
                    name = format!("{name} (n = {})", number::text(count as f64));
                    self::points(first, &points, &trials)
                }
                None => self::points(first, &first.points, &trials[..1]),
            };
            series.push(Series { name, style: style.variant(place), points, choice: None });
        }
    }
    let ((x, x_unit), (y, y_unit)) = (words(over?), words(named?));
    let y = match named {
        Some(name) if is_distribution(name) => "share of values".into(),
        _ => shared(&show.series).unwrap_or(y),
    };
    let label = |name: &str, unit: &str| match unit {
        "" => name.to_string(),
        unit => format!("{name}, {unit}"),
    };
    let kind = if show.is_logarithmic { AxisKind::Log } else { AxisKind::Linear };
    Some(Figure {
        id: stem(experiment, show),
        title: show.title.clone(),
        description: format!("{y} over {x}, a curve for each target."),
        x: Axis { label: label(&x, x_unit), kind },
        y: Axis { label: label(&y, y_unit), kind: AxisKind::Linear },
        series,
        note: if is_pooled { POOLED.into() } else { String::new() },
        ..Figure::default()
    })
}

/// Meaning of the number of a distribution.
const POOLED: &str = "n: number of values of all repeats together.";

/// Whether a series is a distribution: the share of values up to each value.
fn is_distribution(name: &str) -> bool {
    name.ends_with("_share")
}

/// Each target's series of this name with their trials, first repeat first, at the largest value of
/// the axis that has any, on its first curve. Never empty.
fn shown<'a>(
    record: &'a Record,
    of: &Experiment,
    target: &str,
    name: &str,
) -> Option<Vec<(u64, &'a record::Series)>> {
    let here =
        |trial: &&Trial| counts(trial) && trial.experiment == of.source() && trial.target == target;
    let trials = record.trials.iter().filter(here);
    let found = trials.filter_map(|trial| Some((trial, series_in(trial, name)?)));
    let mut found: Vec<_> = found.filter(|(_, series)| !series.points.is_empty()).collect();
    found.sort_by(|(a, _), (b, _)| {
        let across = b.point.value.total_cmp(&a.point.value);
        across.then(a.point.order(&b.point)).then(a.repeat.cmp(&b.repeat))
    });
    let last = found.first()?.0.point.clone();
    let at_last = found.into_iter().take_while(|(trial, _)| trial.point == last);
    Some(at_last.map(|(trial, series)| (trial.id, series)).collect())
}

fn series_in<'a>(trial: &'a Trial, name: &str) -> Option<&'a record::Series> {
    trial.module.as_ref()?.series.iter().find(|series| series.name == name)
}

fn points(series: &record::Series, of: &[[f64; 2]], trials: &[u64]) -> Vec<FigurePoint> {
    let ((_, _, across), (_, _, upwards)) = (unit(&series.over), unit(&series.name));
    let point = |&[x, y]: &[f64; 2]| {
        let (x, y) = (x * across, y * upwards);
        FigurePoint {
            x,
            y,
            note: format!("{}, {}", number::setting(x), number::setting(y)),
            trials: trials.to_vec(),
            ..FigurePoint::default()
        }
    };
    of.iter().map(point).collect()
}

/// The common last words of several series' names, for display.
fn shared(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first().filter(|(_, others)| !others.is_empty())?;
    let is_shared = |end: &&str| {
        others.iter().all(|name| {
            name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        })
    };
    let starts = std::iter::once(0).chain(first.match_indices('_').map(|(at, _)| at + 1));
    let end = starts.map(|start| &first[start..]).find(is_shared)?;
    Some(words(end).0)
}

/// The name for display, and its unit.
fn words(name: &str) -> (String, &'static str) {
    let (plain, unit, _) = unit(name);
    (plain.replace('_', " "), unit)
}

/// Splits a name into its stem, its display unit and the conversion factor.
fn unit(name: &str) -> (&str, &'static str, f64) {
    match name.strip_suffix("_ns") {
        Some(plain) => (plain, "ms", 1e-6),
        None => (name, "", 1.0),
    }
}

fn stem(experiment: &Experiment, show: &Show) -> String {
    let plain = experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    format!("{plain}-{}", show.series.join("-").replace('_', "-"))
}
