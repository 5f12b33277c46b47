//! Derives an experiment's figures and tables from its cells.
//!
//! Source: bianco2010's figures for the axes; other experiments use the same kinds. The load axis
//! shows the offered load, not the intended one. Several curves per target are drawn in one figure,
//! or in one figure each. Invariant: a curve has a point only if a cell has a value.

use super::{Axis, AxisKind, Figure, FigurePoint, Series, standard, styles};
use crate::analysis::bianco2010::{self, WIRE_OVERHEAD_BYTES};
use crate::analysis::gelberger2013;
use record::links::Naming;
use record::number;
use record::target_name::label;
use record::{Cell, Experiment, GOALS, Metric, Record, Show, Within};
use stats::conclude::is_below_resolution;

/// How to show one metric of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The metric of the curves.
    pub metric: Metric,
    /// The metric of the dashed reference: the offered load.
    pub reference: Option<Metric>,
    /// Further metrics of the same unit, each with its own curves.
    pub also: Vec<Metric>,
    /// Its heading, if different from the experiment's.
    pub heading: Option<String>,
    /// Metrics of the table below, starting with the curves' own.
    pub columns: Vec<Metric>,
    /// Whether the value axis is logarithmic.
    pub logarithmic: bool,
    /// The curve to show; all curves if absent.
    pub curve: Option<Within>,
    /// Whether it is only a table, as in the study.
    pub is_table: bool,
    /// Whether it is not the experiment's first view, whose heading is that of the experiment.
    pub is_further: bool,
    /// Whether the figure includes the link's capacity, if the link serializes frames.
    pub has_theory: bool,
}

impl View {
    pub(super) fn new(columns: &[Metric]) -> View {
        View {
            metric: columns[0],
            reference: None,
            also: Vec::new(),
            heading: None,
            columns: columns.to_vec(),
            logarithmic: false,
            curve: None,
            is_table: false,
            is_further: false,
            has_theory: false,
        }
    }

    /// Whether the view includes the cell's point.
    pub fn shows(&self, cell: &Cell) -> bool {
        self.curve.is_none() || self.curve == cell.point.within
    }

    /// The experiment's title, with the name of the curve and the metric of a table.
    pub fn title(&self, experiment: &Experiment) -> String {
        match &self.curve {
            Some(curve) => {
                let title = self.heading.as_ref().unwrap_or(&experiment.title);
                format!("{title}: {}", number::curve(curve))
            }
            None if self.heading.is_some() => self.heading.clone().unwrap_or_default(),
            None if self.is_table => format!("{}: {}", experiment.title, self.caption()),
            None if self.is_further => {
                format!("{}: {}", experiment.title, number::title(self.metric))
            }
            None => experiment.title.clone(),
        }
    }

    /// Caption that distinguishes the measured numbers from the printed ones of a study.
    pub fn caption(&self) -> &'static str {
        match self.metric {
            Metric::LossRatio => {
                "relative decrease of the rate at full load, with the study's values"
            }
            Metric::ProcessingNs => "time in the switch, with the study's values",
            _ => "Values",
        }
    }
}

/// The curves of an experiment, without duplicates, in the order of their points.
pub fn curves(record: &Record, experiment: &Experiment) -> Vec<Within> {
    let cells = record.cells.iter().filter(|cell| cell.experiment == experiment.id);
    let mut found: Vec<Within> = Vec::new();
    for within in cells.filter_map(|cell| cell.point.within.as_ref()) {
        if !found.contains(within) {
            found.push(within.clone());
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name).then(a.value.total_cmp(&b.value)));
    found
}

/// The views of an experiment, most important first.
pub fn views(record: &Record, experiment: &Experiment) -> Vec<View> {
    let has = |metric: Metric| {
        record.cells.iter().any(|cell| cell.experiment == experiment.id && cell.metric == metric)
    };
    if !experiment.shows.is_empty() {
        let shown = shown_by_module(record, experiment).filter(|view| has(view.metric));
        return match has_figure_for_each_workload(record, experiment) {
            true => for_each_curve(record, experiment, shown).collect(),
            false => shown.collect(),
        };
    }
    if let Some(views) = standard::views(experiment) {
        let shown = views.into_iter().filter(|view| has(view.metric));
        return match has_figure_for_each_curve(record, experiment) {
            true => for_each_curve(record, experiment, shown).collect(),
            false => shown.collect(),
        };
    }
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
        ..View::new(&[Metric::RatePpsForwarded])
    };
    let latency = [
        Metric::LatencyNsP50,
        Metric::LatencyNsMean,
        Metric::LatencyNsP99,
        Metric::LatencyNsP999,
        Metric::LatencyNsMax,
        Metric::RatePpsOffered,
        Metric::LossRatio,
    ];
    let latency = View { logarithmic: true, ..View::new(&latency) };
    let throughput = |metric| View::new(&[metric]);
    // Rates of a search's confirming trials form no curve: each has its own load.
    let is_search = experiment.study.is_none()
        && (has(Metric::ThroughputPps) || has(Metric::ThroughputPpsLossTolerated));
    let of_goals: Vec<View> = GOALS.iter().map(|(_, metric)| throughput(*metric)).collect();
    let of_control = control_view().into_iter().find(|view| has(view.metric));
    let found = match () {
        () if of_control.is_some() => of_control.into_iter().collect(),
        () if of_goals.iter().any(|view| has(view.metric)) => of_goals,
        () if has(Metric::ProcessingNs) => vec![processing()],
        () if has(Metric::LossRatioDifference) => vec![fairness()],
        () if about_latency(experiment) => vec![latency],
        () if is_search => {
            vec![throughput(Metric::ThroughputPps), throughput(Metric::ThroughputPpsLossTolerated)]
        }
        () => {
            vec![
                throughput(Metric::ThroughputPps),
                throughput(Metric::ThroughputPpsLossTolerated),
                rate,
            ]
        }
    };
    let found = found.into_iter().filter(|view| has(view.metric));
    if !has_figure_for_each_curve(record, experiment) {
        return found.collect();
    }
    let drops = View { is_table: true, ..View::new(&[Metric::LossRatio]) };
    for_each_curve(record, experiment, found).chain([drops]).collect()
}

/// The views that a module defines, as far as they use the experiment's axis.
fn shown_by_module<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
) -> impl Iterator<Item = View> + use<'a> {
    let view = |(place, show): (usize, &Show)| {
        let (first, also) = show.drawn.split_first()?;
        let (mut first, mut title) = (first, show.title.clone());
        let (variation, ordinal) = gelberger2013::variation(record);
        if gelberger2013::is_variation(*first) {
            first = &variation;
            title = format!("{title}: {ordinal} percentile above the minimum");
        }
        let columns: Vec<Metric> =
            [first].into_iter().chain(also).chain(&show.beside).copied().collect();
        Some(View {
            also: also.to_vec(),
            heading: Some(title),
            logarithmic: show.is_logarithmic,
            is_further: place > 0,
            ..View::new(&[*first])
        })
        .map(|view| View { columns, ..view })
    };
    experiment.shows.iter().enumerate().filter_map(view)
}

/// Repeats each view for each curve.
fn for_each_curve(
    record: &Record,
    experiment: &Experiment,
    views: impl Iterator<Item = View>,
) -> impl Iterator<Item = View> {
    let curves = curves(record, experiment);
    views.flat_map(move |view| {
        let one = |curve| View { curve: Some(curve), ..view.clone() };
        curves.clone().into_iter().map(one).collect::<Vec<View>>()
    })
}

/// Whether targets are compared per workload.
fn has_figure_for_each_workload(record: &Record, experiment: &Experiment) -> bool {
    let is_one = |curve: &Within| curve.name == number::WORKLOAD || curve.name == number::OFFLOAD;
    curves(record, experiment).iter().any(is_one)
}

/// Whether there are too many curves for one figure, such as six targets with three tables each, or
/// two targets with seven frame sizes.
fn has_figure_for_each_curve(record: &Record, experiment: &Experiment) -> bool {
    is_of_study(experiment, "fig5") || (experiment.id == "rfc2544/loss" && record.targets.len() > 1)
}

/// Processing time in the target, in the layout of the study's table I.
fn processing() -> View {
    View { is_table: true, ..View::new(&[Metric::ProcessingNs]) }
}

/// The study's fairness metric, and more expressive ones.
fn fairness() -> View {
    View::new(&[
        Metric::LossRatioDifference,
        Metric::LossRatioF1,
        Metric::LossRatioF2,
        Metric::FairnessIndexJain,
        Metric::MaxMinShareRatio,
        Metric::RatePpsOffered,
        Metric::RatePpsForwarded,
    ])
}

/// Views of experiments with a controller. The first one with data is used.
fn control_view() -> [View; 6] {
    let view = View::new;
    [
        view(&[
            Metric::LatencyNsP99Increase,
            Metric::LatencyNsP99,
            Metric::LatencyNsMax,
            Metric::LossRatio,
            Metric::RatePpsOffered,
        ]),
        view(&[
            Metric::CyclesBusyRatio,
            Metric::CyclesBusyPerFrame,
            Metric::FlowModsAddDeletePerS,
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
        view(&[Metric::FlowStatsNs, Metric::FlowStatsPerS, Metric::FlowStatsNsFirstReply]),
        view(&[Metric::MemoryBytesPerFlow]),
        view(&[Metric::RateRatioColdCache, Metric::RatePpsForwarded, Metric::RatePpsOffered]),
    ]
}

/// Whether an axis is a load, which is drawn at the offered load.
fn is_load(x_name: &str) -> bool {
    matches!(x_name, "load_percent" | "rate_pps_intended")
}

fn about_latency(experiment: &Experiment) -> bool {
    is_of_study(experiment, "fig4") || experiment.id == "latency"
}

fn is_of_study(experiment: &Experiment, item: &str) -> bool {
    experiment.study.as_deref() == Some("bianco2010") && experiment.item.as_deref() == Some(item)
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
    let point = |cell: &Cell| FigurePoint {
        x: across(record, cell, over_load) * x_factor,
        y: upwards(cell) * unit.factor,
        bound: cell.bound.map(|bound| bound.side),
        // A value below its resolution is drawn only as a bound.
        interval: cell
            .interval
            .filter(|_| !is_below_resolution(cell, cell.value))
            .map(|i| (i.low * unit.factor, i.high * unit.factor)),
        note: note(cell),
        trials: cell.trials.clone(),
        warnings: cell.warnings.iter().map(|warning| warning.sentence()).collect(),
    };
    let curves: Vec<Option<Within>> = match curves(record, experiment) {
        none if none.is_empty() => vec![None],
        all => all.into_iter().map(Some).collect(),
    };
    let pairs = drawn.iter().flat_map(|metric| curves.iter().map(move |curve| (*metric, curve)));
    let naming = Naming::within(record, &experiment.id);
    let mut series: Vec<Series> = Vec::new();
    for (target, style) in record.targets.iter().zip(styles(&record.targets)) {
        for (place, (metric, curve)) in pairs.clone().enumerate() {
            let cells = record.cells_of(&experiment.id, &target.name, metric);
            let cells = cells.filter(|cell| view.shows(cell) && cell.point.within == *curve);
            let mut points: Vec<FigurePoint> = cells.map(point).collect();
            // Offered loads may be in another order than intended loads.
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            if points.is_empty() {
                continue;
            }
            let (name, is_alone) = (naming.of(&target.name), view.curve.is_some());
            let (name, style) = match curve.as_ref().filter(|_| !is_alone) {
                Some(curve) => (format!("{name}, {}", number::curve(curve)), style.variant(place)),
                None => (format!("{name} ({})", target.technology.word()), style),
            };
            let (name, style) = match view.also.is_empty() {
                true => (name, style),
                false => (format!("{name}, {}", number::title(metric)), style.variant(place)),
            };
            series.push(Series { name, style, points, choice: None });
        }
    }
    if series.iter().all(|one| one.points.len() < 2) {
        return None;
    }
    if let Some(metric) = view.reference {
        let points = reference(record, experiment, (view, metric), (unit.factor, x_factor));
        series.insert(0, Series::reference("offered load", points));
    }
    if let Some(points) = view.has_theory.then(|| theory(record, &series, unit.factor)).flatten() {
        series.insert(0, Series::reference("theoretical maximum of the link", points));
    }
    let y_label = match view.also.is_empty() {
        true => format!("{}, {}", number::title(view.metric), unit.unit),
        false => format!("{}, {}", quantity(unit.unit), unit.unit),
    };
    let is_percent = over_load || experiment.x_name.ends_with("_percent");
    Some(Figure {
        id: file_stem(experiment, view),
        title: view.title(experiment),
        of: None,
        description: description(&series, &y_label, &x_label),
        x: Axis {
            label: x_label,
            kind: if is_percent { AxisKind::Linear } else { AxisKind::LogAtPoints },
        },
        y: Axis {
            label: y_label,
            kind: if view.logarithmic { AxisKind::Log } else { AxisKind::Linear },
        },
        series,
        choice: None,
    })
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

/// The offered load: the diagonal over a load axis, otherwise the largest at each point. `factors`
/// scale the vertical and horizontal values.
fn reference(
    record: &Record,
    experiment: &Experiment,
    (view, metric): (&View, Metric),
    factors: (f64, f64),
) -> Vec<FigurePoint> {
    let over_load = is_load(&experiment.x_name);
    let mut points: Vec<FigurePoint> = Vec::new();
    for target in &record.targets {
        let cells = record.cells_of(&experiment.id, &target.name, metric);
        for cell in cells.filter(|cell| view.shows(cell)) {
            let x = if over_load { cell.value } else { cell.point.value } * factors.1;
            let y = cell.value * factors.0;
            match points.iter_mut().find(|point| point.x == x) {
                Some(point) => point.y = point.y.max(y),
                None => points.push(FigurePoint { x, y, ..FigurePoint::default() }),
            }
        }
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
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

fn note(cell: &Cell) -> String {
    let unit = number::shown(cell.metric).unit;
    let axis = number::axis(&cell.point.name);
    let range = match &cell.interval {
        Some(interval) => format!(", {}", number::interval(cell.metric, interval)),
        None => String::new(),
    };
    let curve = match &cell.point.within {
        Some(curve) => format!(", {}", number::curve(curve)),
        None => String::new(),
    };
    format!(
        "{}{curve}, {axis} {}: {} {unit}{range} (n={})",
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
