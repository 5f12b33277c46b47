//! Selects the figures and tables of an experiment.
//!
//! Source: bianco2010's figures; other experiments use the same kinds. Several curves per target
//! are drawn in one figure, or in one figure each. Invariant: two experiments that share trials
//! show different targets or values.

use super::{standard, study};
use crate::analysis::gelberger2013;
use record::number;
use record::{Cell, Experiment, GOALS, Metric, Record, Show, ShowRange, Within};

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
    /// Whether the figure includes the load of the nominal link.
    pub has_nominal: bool,
    /// Whether the figure has bars: a group for each value of the axis, a column for each curve.
    pub has_bars: bool,
    /// Range to draw at each value.
    pub range: Option<ShowRange>,
    /// The targets to show; all targets if absent.
    pub targets: Option<Vec<String>>,
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
            has_nominal: false,
            has_bars: false,
            range: None,
            targets: None,
        }
    }

    /// Whether the view includes the cell's point and target.
    pub fn shows(&self, cell: &Cell) -> bool {
        (self.curve.is_none() || self.curve == cell.point.within) && self.has_target(&cell.target)
    }

    /// Whether the view includes the target.
    pub fn has_target(&self, target: &str) -> bool {
        self.targets.as_ref().is_none_or(|all| all.iter().any(|name| name == target))
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
        has_nominal: over_size && experiment.study.is_some(),
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
    if is_of_study(experiment, "fig5") {
        let drops = View { is_table: true, ..View::new(&[Metric::LossRatio]) };
        return found.map(|view| View { has_bars: true, ..view }).chain([drops]).collect();
    }
    found.collect()
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
            range: show.range,
            targets: study::shown_targets(record, experiment, show),
            ..View::new(&[*first])
        })
        .map(|view| View { columns, ..view })
        .filter(|view| view.targets.as_ref().is_none_or(|targets| !targets.is_empty()))
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

/// Whether there are too many curves for one figure, such as two targets with seven frame sizes.
fn has_figure_for_each_curve(record: &Record, experiment: &Experiment) -> bool {
    experiment.id == "rfc2544/loss" && record.targets.len() > 1
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

fn about_latency(experiment: &Experiment) -> bool {
    is_of_study(experiment, "fig4") || experiment.id == "latency"
}

fn is_of_study(experiment: &Experiment, item: &str) -> bool {
    experiment.study.as_deref() == Some("bianco2010") && experiment.item.as_deref() == Some(item)
}
