//! Figures and tables of an experiment, by the names of their metrics.

use record::{Implementation, Metric, Name, ShowRange};

/// A figure with its table, for an experiment with a module.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// Heading.
    pub title: &'static str,
    /// Metrics of one unit that are drawn over the axis, by name.
    pub drawn: &'static [&'static str],
    /// Further metrics in the table.
    pub beside: &'static [&'static str],
    /// Series that are drawn instead.
    pub series: &'static [&'static str],
    /// Whether the axis of the drawn values is logarithmic.
    pub is_logarithmic: bool,
    /// Range that is drawn at each value.
    pub range: Option<Range>,
    /// Targets that are shown, if another experiment of the run shows the others.
    pub implementation: Option<Implementation>,
}

/// A range around each drawn value.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    /// From one metric to another, by name.
    Metrics([&'static str; 2]),
    /// From the minimum of the repeats to their 90th percentile.
    Repeats,
}

impl Chart {
    /// Shows values over the axis, and others in the table.
    pub const fn values(
        title: &'static str,
        drawn: &'static [&'static str],
        beside: &'static [&'static str],
    ) -> Chart {
        Chart {
            title,
            drawn,
            beside,
            series: &[],
            is_logarithmic: false,
            range: None,
            implementation: None,
        }
    }

    /// Shows series of a trial.
    pub const fn series(title: &'static str, series: &'static [&'static str]) -> Chart {
        Chart { series, ..Chart::values(title, &[], &[]) }
    }

    /// Converts to the form of the record.
    pub fn stored(&self) -> record::Show {
        let metrics = |names: &[&'static str]| names.iter().map(|name| metric(name)).collect();
        record::Show {
            title: self.title.into(),
            drawn: metrics(self.drawn),
            beside: metrics(self.beside),
            series: self.series.iter().map(|&name| name.into()).collect(),
            is_logarithmic: self.is_logarithmic,
            range: self.range.map(|range| match range {
                Range::Metrics(ends) => ShowRange::Metrics(ends.map(metric)),
                Range::Repeats => ShowRange::Repeats,
            }),
            implementation: self.implementation,
        }
    }
}

/// Returns the metric with this name: a listed one, or one named by a module.
pub fn metric(name: &'static str) -> Metric {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    listed.unwrap_or(Metric::Named(Name::of(name)))
}
