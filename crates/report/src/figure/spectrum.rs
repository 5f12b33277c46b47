//! Latency by percentile with one curve per target, from the trials' histograms.
//!
//! Source: HdrHistogram's percentile plots, and G. Tene's "How NOT to Measure Latency". Every point
//! of an experiment has its curves; an image shows those of one point. Invariant: a percentile
//! requires ten samples above it in every repeat.

use super::{Axis, AxisKind, Figure, FigurePoint, Series, View, styles, views};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Metric, Point, Record};
use stats::spectrum::{Spectra, SpectrumPoint};

/// Largest frame loss rate at which a target is not considered overloaded.
const LOSS_RATIO_MAX: f64 = 0.01;

/// Whether an experiment's own figures show latency.
pub fn shows_latency(record: &Record, experiment: &Experiment) -> bool {
    latency_shown(record, experiment).is_some()
}

/// The latency metric of its figures, with the view that shows it.
fn latency_shown(record: &Record, experiment: &Experiment) -> Option<(Metric, View)> {
    let metric = |view: &View| {
        let drawn = std::iter::once(&view.metric).chain(&view.also);
        drawn.copied().find(|metric| metric.name().starts_with("latency_ns"))
    };
    let views = views(record, experiment);
    views.into_iter().find_map(|view| Some((metric(&view)?, view)))
}

/// The figure of an experiment about latency with stored histograms.
pub fn of_spectra(record: &Record, experiment: &Experiment, spectra: &Spectra) -> Option<Figure> {
    let (metric, view) = latency_shown(record, experiment)?;
    let points = points(record, experiment, metric);
    let naming = Naming::within(record, &experiment.id);
    let mut series = Vec::new();
    for point in &points {
        let all = record.targets.iter().zip(styles(&record.targets));
        for (target, style) in all.filter(|(target, _)| view.has_target(&target.name)) {
            let mut cells = record.cells_of(&experiment.id, &target.name, metric);
            let Some(cell) = cells.find(|cell| cell.point == *point) else { continue };
            let found = spectra.of_trials(&cell.trials);
            if found.is_empty() {
                continue;
            }
            let name = naming.of(&target.name);
            let last = found.last().map(|it| it.inverse);
            let marked =
                found.iter().filter(|it| is_marked(it.inverse) || Some(it.inverse) == last);
            let points = marked.map(|it| drawn(it, cell, &name)).collect();
            series.push(Series { name, style, points, choice: Some(words(point)) });
        }
    }
    let is_drawn = |point: &&Point| series.iter().any(|one| one.choice == Some(words(point)));
    let shown: Vec<&Point> = points.iter().filter(is_drawn).collect();
    let choice = words(calm(record, experiment, &shown)?);
    Some(Figure {
        id: format!(
            "{}-spectrum",
            experiment.id.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        ),
        title: format!("Latency by percentile, {choice}"),
        description: description(&series, &choice),
        x: Axis { label: "percentile".into(), kind: AxisKind::Percentile },
        y: Axis { label: "latency, µs".into(), kind: AxisKind::Log },
        series,
        choice: Some(choice),
        ..Figure::default()
    })
}

/// The experiment's points in order, without duplicates.
fn points(record: &Record, experiment: &Experiment, metric: Metric) -> Vec<Point> {
    let here = |cell: &&Cell| cell.experiment == experiment.id && cell.metric == metric;
    let mut found: Vec<Point> =
        record.cells.iter().filter(here).map(|it| it.point.clone()).collect();
    found.sort_by(Point::order);
    found.dedup();
    found
}

/// The highest load without loss for all targets. Over another axis, or if all have losses, the
/// first point.
fn calm<'a>(record: &Record, experiment: &Experiment, points: &[&'a Point]) -> Option<&'a Point> {
    let first = *points.first()?;
    if !matches!(experiment.x_name.as_str(), "load_percent" | "rate_pps_intended") {
        return Some(first);
    }
    let loses = |point: &Point| {
        let cells = record.cells.iter().filter(|cell| cell.experiment == experiment.id);
        let mut losses = cells.filter(|it| it.metric == Metric::LossRatio && it.point == *point);
        losses.any(|cell| cell.value > LOSS_RATIO_MAX)
    };
    Some(points.iter().rev().find(|point| !loses(point)).copied().unwrap_or(first))
}

/// Text for a point of an experiment's axis.
fn words(point: &Point) -> String {
    let axis = number::axis(&point.name);
    let value = number::setting(point.value);
    let place = match axis.split_once(", ") {
        Some((name, "%")) => format!("{name} {value} %"),
        Some((name, unit)) => format!("{name} {value} {unit}"),
        None => format!("{axis} {value}"),
    };
    match &point.within {
        Some(curve) => format!("{place}, {}", number::curve(curve)),
        None => place,
    }
}

/// Whether a percentile has a mark: all steps up to 90 %, then three in each decade.
fn is_marked(inverse: f64) -> bool {
    let mantissa = inverse / 10f64.powf(inverse.log10().floor());
    inverse < 10.0 || [1.0, 2.0, 5.0, 10.0].iter().any(|step| (mantissa - step).abs() < 1e-6)
}

fn drawn(point: &SpectrumPoint, cell: &Cell, name: &str) -> FigurePoint {
    let micro = |ns: f64| ns / 1e3;
    let range = point.interval.map(|found| {
        let level = found.level_percent;
        let (low, high) = (number::text(micro(found.low)), number::text(micro(found.high)));
        format!(", {low} to {high} at {} %", number::text(level))
    });
    FigurePoint {
        x: point.inverse,
        y: micro(point.ns),
        interval: point.interval.map(|found| (micro(found.low), micro(found.high))),
        note: format!(
            "{name}, {}: {} µs{} (n={})",
            AxisKind::Percentile.label(point.inverse),
            number::text(micro(point.ns)),
            range.unwrap_or_default(),
            cell.n
        ),
        trials: cell.trials.clone(),
        warnings: cell.warnings.iter().map(|warning| warning.sentence()).collect(),
        ..FigurePoint::default()
    }
}

/// Text alternative at a choice.
pub(super) fn description(series: &[Series], choice: &str) -> String {
    let mut text = format!("Latency in µs against percentile, {choice}.");
    for one in series.iter().filter(|one| one.choice.as_deref() == Some(choice)) {
        let at = |inverse: f64| one.points.iter().find(|it| it.x == inverse);
        let told = [2.0, 100.0, 1000.0].into_iter().filter_map(at);
        let told: Vec<String> = told
            .map(|it| format!("{} at {}", number::text(it.y), AxisKind::Percentile.label(it.x)))
            .collect();
        text.push_str(&format!(" {}: {}.", one.name, told.join(", ")));
    }
    text
}
