//! Which figures and tables an experiment gives, out of its cells.
//!
//! Source: bianco2010 figures 2 to 4 for the axes; other experiments get the same kinds. The load
//! axis shows the load that was really offered, not the one that was asked for. Invariant: a
//! curve has a point only where a cell has a value.

use super::{Axis, AxisKind, Figure, FigurePoint, Series, Style, styles};
use crate::number;
use crate::record::{Cell, Experiment, GOALS, Metric, Record};

/// How one metric of an experiment is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// What the curves show.
    pub metric: Metric,
    /// What is drawn dashed for reference: what was offered.
    pub reference: Option<Metric>,
    /// Metrics of the table below, the curves' own first.
    pub columns: Vec<Metric>,
    /// Whether the curves' axis is logarithmic.
    pub logarithmic: bool,
}

/// The views of an experiment, the most important first.
pub fn views(record: &Record, experiment: &Experiment) -> Vec<View> {
    let has = |metric: Metric| {
        record.cells.iter().any(|cell| cell.experiment == experiment.id && cell.metric == metric)
    };
    let over_size = experiment.x_name == "frame_bytes";
    let rate = View {
        metric: if over_size { Metric::RateBpsForwarded } else { Metric::RatePpsForwarded },
        reference: Some(if over_size { Metric::RateBpsOffered } else { Metric::RatePpsOffered }),
        columns: match over_size {
            true => vec![
                Metric::RateBpsForwarded,
                Metric::RatePpsForwarded,
                Metric::RatePpsOffered,
                Metric::LossRatio,
            ],
            false => vec![Metric::RatePpsForwarded, Metric::RatePpsOffered, Metric::LossRatio],
        },
        logarithmic: false,
    };
    let latency = View {
        metric: Metric::LatencyNsMean,
        reference: None,
        columns: vec![
            Metric::LatencyNsMean,
            Metric::LatencyNsP50,
            Metric::LatencyNsP99,
            Metric::LatencyNsP999,
            Metric::LatencyNsMax,
            Metric::RatePpsOffered,
            Metric::LossRatio,
        ],
        logarithmic: true,
    };
    let throughput =
        |metric| View { metric, reference: None, columns: vec![metric], logarithmic: false };
    // Rates of a search's confirming trials are no curve: each was at a load of its own.
    let is_search = experiment.study.is_none()
        && (has(Metric::ThroughputPps) || has(Metric::ThroughputPpsLossy));
    let of_goals: Vec<View> = GOALS.iter().map(|(_, metric)| throughput(*metric)).collect();
    let of_control = control_view().into_iter().find(|view| has(view.metric));
    let found = match () {
        () if of_control.is_some() => of_control.into_iter().collect(),
        () if of_goals.iter().any(|view| has(view.metric)) => of_goals,
        () if about_latency(experiment) => vec![latency],
        () if is_search => {
            vec![throughput(Metric::ThroughputPps), throughput(Metric::ThroughputPpsLossy)]
        }
        () => {
            vec![throughput(Metric::ThroughputPps), throughput(Metric::ThroughputPpsLossy), rate]
        }
    };
    found.into_iter().filter(|view| has(view.metric)).collect()
}

/// What experiments with a controller show: of these, the first that there is.
fn control_view() -> [View; 5] {
    let view = |columns: &[Metric]| View {
        metric: columns[0],
        reference: None,
        columns: columns.to_vec(),
        logarithmic: false,
    };
    [
        view(&[
            Metric::CyclesBusyRatio,
            Metric::CyclesBusyPerFrame,
            Metric::FlowModsChangedPerS,
            Metric::FlowStatsNs,
            Metric::RatePpsForwarded,
            Metric::RatePpsOffered,
            Metric::LossRatio,
        ]),
        view(&[
            Metric::FlowModsAddedPerS,
            Metric::FlowModsModifiedPerS,
            Metric::FlowModsDeletedPerS,
        ]),
        view(&[Metric::FlowStatsNs, Metric::FlowStatsPerS, Metric::FlowStatsNsFirst]),
        view(&[Metric::MemoryBytesPerFlow]),
        view(&[Metric::RateColdRatio, Metric::RatePpsForwarded, Metric::RatePpsOffered]),
    ]
}

/// Whether an axis is a load, which is drawn at what was really offered.
fn is_load(x_name: &str) -> bool {
    matches!(x_name, "load_percent" | "rate_pps_intended")
}

fn about_latency(experiment: &Experiment) -> bool {
    let of_study = (experiment.study.as_deref(), experiment.item.as_deref());
    of_study == (Some("bianco2010"), Some("fig4")) || experiment.id == "latency"
}

/// The figure of a view; absent where no target has two points.
pub fn figure(record: &Record, experiment: &Experiment, view: &View) -> Option<Figure> {
    let over_load = is_load(&experiment.x_name);
    let measured = |metric: Option<Metric>| {
        let here = |cell: &&Cell| cell.experiment == experiment.id && Some(cell.metric) == metric;
        record.cells.iter().filter(here).map(|cell| cell.value).fold(0.0, f64::max)
    };
    let top = measured(Some(view.metric)).max(measured(view.reference));
    let unit = number::shown_on_axis(view.metric, top);
    let (x_label, x_factor) = match over_load {
        true => {
            let top = measured(Some(Metric::RatePpsOffered));
            let shown = number::shown_on_axis(Metric::RatePpsOffered, top);
            (format!("offered load, {}", shown.unit), shown.factor)
        }
        false => (number::axis(&experiment.x_name), 1.0),
    };
    let mut series: Vec<Series> = Vec::new();
    for (target, style) in record.targets.iter().zip(styles(&record.targets)) {
        let points: Vec<FigurePoint> = record
            .cells_of(&experiment.id, &target.name, view.metric)
            .map(|cell| FigurePoint {
                x: across(record, cell, over_load) * x_factor,
                y: cell.value * unit.factor,
                interval: cell.interval.map(|i| (i.low * unit.factor, i.high * unit.factor)),
                note: note(cell),
            })
            .collect();
        if !points.is_empty() {
            series.push(Series { name: name_of(record, &target.name), style, points });
        }
    }
    if series.iter().all(|one| one.points.len() < 2) {
        return None;
    }
    if let Some(metric) = view.reference {
        let points = reference(record, experiment, metric, (unit.factor, x_factor));
        series.insert(0, Series { name: "offered load".into(), style: Style::REFERENCE, points });
    }
    let y_label = format!("{}, {}", number::title(view.metric), unit.unit);
    Some(Figure {
        id: file_stem(experiment, view),
        title: experiment.title.clone(),
        description: description(&series, &y_label, &x_label),
        x: Axis {
            label: x_label,
            kind: if over_load { AxisKind::Linear } else { AxisKind::LogAtPoints },
        },
        y: Axis {
            label: y_label,
            kind: if view.logarithmic { AxisKind::Log } else { AxisKind::Linear },
        },
        series,
    })
}

/// Name of the view's files, without folder and ending.
pub(crate) fn file_stem(experiment: &Experiment, view: &View) -> String {
    let plain = experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let stem = plain.strip_suffix("throughput").unwrap_or(&plain).trim_end_matches('-');
    let dash = if stem.is_empty() { "" } else { "-" };
    match view.metric {
        Metric::ThroughputPps => format!("{stem}{dash}throughput"),
        Metric::ThroughputPpsLossy => format!("{stem}{dash}throughput-lossy"),
        metric => match GOALS.iter().find(|(_, known)| *known == metric) {
            Some((goal, _)) => format!("{plain}-{goal}"),
            None => plain,
        },
    }
}

/// Where a cell lies across: the load that was really offered there, or the point's value.
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

/// What was offered: over the load the diagonal, otherwise the largest offered at each point.
/// `factors` scale what is shown upwards and across.
fn reference(
    record: &Record,
    experiment: &Experiment,
    metric: Metric,
    factors: (f64, f64),
) -> Vec<FigurePoint> {
    let over_load = is_load(&experiment.x_name);
    let mut points: Vec<FigurePoint> = Vec::new();
    for target in &record.targets {
        for cell in record.cells_of(&experiment.id, &target.name, metric) {
            let x = if over_load { cell.value } else { cell.point.value } * factors.1;
            let y = cell.value * factors.0;
            match points.iter_mut().find(|point| point.x == x) {
                Some(point) => point.y = point.y.max(y),
                None => points.push(FigurePoint { x, y, interval: None, note: String::new() }),
            }
        }
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// The target's name with what it does.
pub(crate) fn name_of(record: &Record, target: &str) -> String {
    match record.target(target) {
        Some(found) => format!("{} ({})", found.name, found.technology.word()),
        None => target.into(),
    }
}

fn note(cell: &Cell) -> String {
    let unit = number::shown(cell.metric).unit;
    let axis = number::axis(&cell.point.name);
    let range = match &cell.interval {
        Some(interval) => format!(", {}", number::interval(cell.metric, interval)),
        None => String::new(),
    };
    format!(
        "{}, {axis} {}: {} {unit}{range} (n={})",
        cell.target,
        number::setting(cell.point.value),
        number::value(cell.metric, cell.value),
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
                number::text(first.y),
                number::text(first.x),
                number::text(last.y),
                number::text(last.x)
            ));
        }
    }
    text
}
