//! Derives the figure of a view from an experiment's cells.
//!
//! Source: bianco2010's figures for the axes; other experiments use the same kinds. The load axis
//! shows the offered load, not the intended one. Invariants:
//!
//! - A curve has a point only if a cell has a value, and its points are in rising order.
//! - A target's first curve has the target's style.

use super::view::{View, curves};
use super::{Axis, AxisKind, Figure, FigurePoint, Series, Style, study, styles};
use crate::analysis::bianco2010::{self, WIRE_OVERHEAD_BYTES};
use record::links::Naming;
use record::number;
use record::target_name::label;
use record::{Cell, Experiment, GOALS, Metric, Record, ShowRange, Within};
use stats::conclude::is_below_resolution;
use stats::series;

/// Two loads within this relative difference are drawn as one line.
const SAME_LOAD_RATIO: f64 = 0.01;

/// Whether an axis is a load, which is drawn at the offered load.
fn is_load(x_name: &str) -> bool {
    matches!(x_name, "load_percent" | "rate_pps_intended")
}

/// The figure of a view; absent if no target has two points, or if the view is a table.
pub fn figure(record: &Record, experiment: &Experiment, view: &View) -> Option<Figure> {
    if view.is_table {
        return None;
    }
    // A loss curve uses shares of the line rate, as RFC 2544 requires.
    let over_load = is_load(&experiment.x_name) && view.metric != Metric::LossRatio;
    let measured = |metric: Option<Metric>| {
        let here = |cell: &&Cell| cell.experiment == experiment.id && Some(cell.metric) == metric;
        let top =
            |cell: &Cell| cell.interval.map_or(upwards(cell), |it| it.high.max(upwards(cell)));
        record.cells.iter().filter(here).map(top).fold(0.0, f64::max)
    };
    let drawn: Vec<Metric> = [view.metric].iter().chain(&view.also).copied().collect();
    let top = drawn.iter().map(|&metric| measured(Some(metric))).fold(0.0, f64::max);
    let top = top.max(measured(view.reference));
    let unit = number::shown_on_axis(view.metric, top);
    let (x_label, x_factor) = match over_load {
        true => {
            let top = measured(Some(Metric::RatePpsOffered));
            let shown = number::shown_on_axis(Metric::RatePpsOffered, top);
            (format!("offered load, {}", shown.unit), shown.factor)
        }
        false => (number::axis(&experiment.x_name), 1.0),
    };
    let all_curves = curves(record, experiment);
    let column = |cell: &Cell| {
        let of = |within: &Within| all_curves.iter().position(|curve| curve == within);
        cell.point.within.as_ref().filter(|_| view.has_bars).and_then(of).unwrap_or(0)
    };
    let point = |cell: &Cell| FigurePoint {
        x: across(record, cell, over_load) * x_factor,
        y: upwards(cell) * unit.factor,
        column: column(cell),
        range: range(record, cell, view).map(|(low, high)| (low * unit.factor, high * unit.factor)),
        bound: cell.bound.map(|bound| bound.side),
        // A value below its resolution is drawn only as a bound.
        interval: cell
            .interval
            .filter(|_| !is_below_resolution(cell, cell.value))
            .map(|i| (i.low * unit.factor, i.high * unit.factor)),
        note: note(cell, range(record, cell, view)),
        trials: cell.trials.clone(),
        warnings: cell.warnings.iter().map(|warning| warning.sentence()).collect(),
    };
    // Bars of all curves are one series.
    let curves: Vec<Option<&Within>> = match all_curves.is_empty() || view.has_bars {
        true => vec![None],
        false => all_curves.iter().map(Some).collect(),
    };
    let naming = Naming::within(record, &experiment.id);
    let mut series: Vec<Series> = Vec::new();
    for (target, style) in record.targets.iter().zip(styles(&record.targets)) {
        let cells_of = |metric: Metric| {
            record.cells_of(&experiment.id, &target.name, metric).filter(|cell| view.shows(cell))
        };
        // The first metric that a target has is in the target's own style.
        let own = drawn.iter().copied().filter(|&metric| cells_of(metric).next().is_some());
        for (rank, metric) in own.enumerate() {
            for (index, curve) in curves.iter().enumerate() {
                let place = rank * curves.len() + index;
                let is_on = |cell: &&Cell| view.has_bars || cell.point.within.as_ref() == *curve;
                let mut points: Vec<FigurePoint> =
                    cells_of(metric).filter(is_on).map(point).collect();
                // Offered loads may be in another order than intended loads.
                points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.column.cmp(&b.column)));
                if points.is_empty() {
                    continue;
                }
                let (name, is_alone) = (naming.of(&target.name), view.curve.is_some());
                let (name, style) = match curve.filter(|_| !is_alone) {
                    Some(curve) => {
                        (format!("{name}, {}", number::curve(curve)), style.variant(place))
                    }
                    None => (format!("{name} ({})", target.technology.word()), style),
                };
                let (name, style) = match view.also.is_empty() {
                    true => (name, style),
                    false => (format!("{name}, {}", number::title(metric)), style.variant(place)),
                };
                series.push(Series { name, style, points, choice: None });
            }
        }
    }
    if series.iter().all(|one| one.points.len() < 2) {
        return None;
    }
    let mut note = match view.range {
        Some(_) => repeats(record, experiment, view),
        None => String::new(),
    };
    if let Some(metric) = view.reference {
        let points = reference(record, experiment, (view, metric), (unit.factor, x_factor));
        let points: Vec<FigurePoint> = points
            .into_iter()
            .map(|(cell, at)| FigurePoint { column: column(cell), ..at })
            .collect();
        if view.has_bars {
            let printed = study::printed_drops(record, experiment, (&points, &all_curves));
            if !printed.is_empty() {
                note = study::PRINTED_DROPS.into();
            }
            series.extend(printed);
        }
        series.splice(0..0, offered(record, view, unit.factor, points));
    }
    if let Some(points) = view.has_theory.then(|| theory(record, &series, unit.factor)).flatten() {
        series.insert(0, Series::reference("theoretical maximum of the link", points));
    }
    let y_label = match view.also.is_empty() {
        true => format!("{}, {}", number::title(view.metric), unit.unit),
        false => format!("{}, {}", quantity(unit.unit), unit.unit),
    };
    Some(Figure {
        id: file_stem(experiment, view),
        title: view.title(experiment),
        of: None,
        description: description(&series, &y_label, &x_label),
        x: Axis { label: x_label, kind: kind_across(experiment, view, over_load) },
        y: Axis {
            label: y_label,
            kind: if view.logarithmic { AxisKind::Log } else { AxisKind::Linear },
        },
        series,
        columns: match view.has_bars {
            true => study::columns(&all_curves),
            false => Vec::new(),
        },
        note,
        choice: None,
    })
}

/// Scale of the horizontal axis. Claims state that times grow linearly with the number of rules.
fn kind_across(experiment: &Experiment, view: &View, over_load: bool) -> AxisKind {
    let x_name = experiment.x_name.as_str();
    let is_linear =
        over_load || x_name.ends_with("_percent") || matches!(x_name, "rules" | "time_s");
    match (view.has_bars, is_linear) {
        (true, _) => AxisKind::Groups,
        (false, true) => AxisKind::Linear,
        (false, false) => AxisKind::LogAtPoints,
    }
}

/// The range around a cell's value; none for a bound, or for a single repeat.
fn range(record: &Record, cell: &Cell, view: &View) -> Option<(f64, f64)> {
    if cell.bound.is_some() {
        return None;
    }
    match view.range? {
        ShowRange::Metrics(ends) => {
            let [low, high] = ends.map(|metric| {
                let mut cells = record.cells_of(&cell.experiment, &cell.target, metric);
                cells.find(|other| other.point == cell.point).map(|other| other.value)
            });
            low.zip(high)
        }
        ShowRange::Repeats => {
            let sorted = series::sorted(&cell.samples);
            let last = (0.9 * sorted.len() as f64).ceil() as usize;
            let high = sorted.get(last.max(1) - 1)?;
            (sorted.len() > 1).then(|| (sorted[0], *high))
        }
    }
}

/// Sentence with the number of repeats of a view's values.
fn repeats(record: &Record, experiment: &Experiment, view: &View) -> String {
    let is_shown = |cell: &&Cell| {
        cell.experiment == experiment.id && cell.metric == view.metric && view.shows(cell)
    };
    let counts = || record.cells.iter().filter(is_shown).map(|cell| cell.n);
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} repeats."),
        (Some(1), _) => "1 repeat.".into(),
        (Some(least), _) => format!("{least} repeats."),
        _ => String::new(),
    }
}

/// The offered load, and the load of the nominal link if it differs.
fn offered(record: &Record, view: &View, factor: f64, points: Vec<FigurePoint>) -> Vec<Series> {
    let reference = |name: &str, points| Series::reference(name, points);
    let nominal = bianco2010::nominal_bps(record).filter(|_| view.has_nominal && !view.has_bars);
    let Some(bps) = nominal else { return vec![reference("offered load", points)] };
    let at = |point: &FigurePoint| {
        let share = point.x / (point.x + WIRE_OVERHEAD_BYTES);
        let per_frame = if view.metric.unit() == "bps" { 1.0 } else { 1.0 / (8.0 * point.x) };
        FigurePoint { x: point.x, y: bps * share * per_frame * factor, ..FigurePoint::default() }
    };
    let nominal: Vec<FigurePoint> = points.iter().map(at).collect();
    let link = format!("nominal link of {} Gbit/s", number::text(bps / 1e9));
    let differs = |(one, other): (&FigurePoint, &FigurePoint)| {
        (one.y - other.y).abs() > SAME_LOAD_RATIO * other.y
    };
    match points.iter().zip(&nominal).any(differs) {
        true => vec![
            Series { style: Style::NOMINAL, ..reference(&link, nominal) },
            reference("offered load", points),
        ],
        false => vec![reference(&format!("offered load ({link})"), points)],
    }
}

/// Quantity that several metrics of one unit share.
fn quantity(unit: &str) -> &'static str {
    match unit {
        "ns" | "µs" | "ms" | "s" => "time",
        "%" => "share",
        unit if unit.ends_with("/s") => "rate",
        _ => "value",
    }
}

/// File name of the view, without folder and extension.
pub(crate) fn file_stem(experiment: &Experiment, view: &View) -> String {
    let plain = experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let stem = plain.strip_suffix("throughput").unwrap_or(&plain).trim_end_matches('-');
    let dash = if stem.is_empty() { "" } else { "-" };
    if let Some(curve) = &view.curve {
        let name = match curve.name.as_str() {
            number::WORKLOAD | number::OFFLOAD => {
                number::curve(curve).to_lowercase().replace(' ', "-")
            }
            name => format!("{}-{}", name.replace('_', "-"), curve.value),
        };
        return match view.metric {
            Metric::Named(metric) if view.is_further => {
                format!("{plain}-{name}-{}", metric.text().replace('_', "-"))
            }
            _ => format!("{plain}-{name}"),
        };
    }
    match view.metric {
        Metric::Named(name) if view.is_further => {
            format!("{plain}-{}", name.text().replace('_', "-"))
        }
        Metric::ThroughputPps => format!("{stem}{dash}throughput"),
        Metric::ThroughputPpsLossTolerated => format!("{stem}{dash}throughput-lossy"),
        Metric::BufferNsCorrected => format!("{plain}-buffer"),
        Metric::PdvNsP999 => format!("{plain}-pdv"),
        Metric::LossRatio if experiment.id == "soak" => format!("{plain}-loss"),
        Metric::MemoryBytes => format!("{plain}-memory"),
        Metric::LossRatioCongested => format!("{plain}-congested"),
        metric => match GOALS.iter().find(|(_, known)| *known == metric) {
            Some((goal, _)) => format!("{plain}-{goal}"),
            None => plain,
        },
    }
}

/// Horizontal position of a cell: the offered load, or the point's value.
fn across(record: &Record, cell: &Cell, over_load: bool) -> f64 {
    let offered = || {
        record
            .cells_of(&cell.experiment, &cell.target, Metric::RatePpsOffered)
            .find(|other| other.point == cell.point)
    };
    match over_load.then(offered).flatten() {
        Some(offered) => offered.value,
        None => cell.point.value,
    }
}

/// The offered load: the diagonal over a load axis, otherwise the largest at each point, with one
/// of its cells. `factors` scale the vertical and horizontal values.
fn reference<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    (view, metric): (&View, Metric),
    factors: (f64, f64),
) -> Vec<(&'a Cell, FigurePoint)> {
    let over_load = is_load(&experiment.x_name);
    let mut points: Vec<(&Cell, FigurePoint)> = Vec::new();
    for target in &record.targets {
        let cells = record.cells_of(&experiment.id, &target.name, metric);
        for cell in cells.filter(|cell| view.shows(cell)) {
            let x = if over_load { cell.value } else { cell.point.value } * factors.1;
            let y = cell.value * factors.0;
            let is_same = |known: &Cell| !view.has_bars || known.point.within == cell.point.within;
            match points.iter_mut().find(|(known, point)| point.x == x && is_same(known)) {
                Some((_, point)) => point.y = point.y.max(y),
                None => points.push((cell, FigurePoint { x, y, ..FigurePoint::default() })),
            }
        }
    }
    points.sort_by(|(_, a), (_, b)| a.x.total_cmp(&b.x));
    points
}

/// Maximum frame rate of the link at each measured size; none if the link does not serialize
/// frames.
fn theory(record: &Record, series: &[Series], factor: f64) -> Option<Vec<FigurePoint>> {
    let capacity_bps = bianco2010::capacity_bps(record)?;
    let mut sizes: Vec<f64> = series.iter().flat_map(|one| &one.points).map(|at| at.x).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let point = |x: f64| {
        let y = capacity_bps / (8.0 * (x + WIRE_OVERHEAD_BYTES)) * factor;
        FigurePoint { x, y, ..FigurePoint::default() }
    };
    Some(sizes.into_iter().map(point).collect())
}

/// Vertical position of a cell. For a value below its resolution, the largest possible value.
fn upwards(cell: &Cell) -> f64 {
    match is_below_resolution(cell, cell.value) {
        true => cell.value.abs() + cell.resolution.unwrap_or(0.0),
        false => cell.value,
    }
}

fn note(cell: &Cell, range: Option<(f64, f64)>) -> String {
    let unit = number::shown(cell.metric).unit;
    let axis = number::axis(&cell.point.name);
    let interval = match &cell.interval {
        Some(interval) => format!(", {}", number::interval(cell.metric, interval)),
        None => String::new(),
    };
    let curve = match &cell.point.within {
        Some(curve) => format!(", {}", number::curve(curve)),
        None => String::new(),
    };
    let range = range.map_or(String::new(), |(low, high)| {
        let [low, high] = [low, high].map(|end| number::value(cell.metric, end));
        format!("; minimum {low}, 90th percentile {high} {unit}")
    });
    format!(
        "{}{curve}, {axis} {}: {} {unit}{interval} (n={}){range}",
        label(&cell.target),
        number::setting(cell.point.value),
        number::of_cell(cell),
        cell.n
    )
}

fn description(series: &[Series], y_label: &str, x_label: &str) -> String {
    let mut text = format!("Curves of {y_label} against {x_label}.");
    for one in series {
        if let (Some(first), Some(last)) = (one.points.first(), one.points.last()) {
            text.push_str(&format!(
                " {}: {} at {}, {} at {}.",
                one.name,
                number::setting(first.y),
                number::setting(first.x),
                number::setting(last.y),
                number::setting(last.x)
            ));
        }
    }
    text
}
