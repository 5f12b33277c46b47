//! Figures and tables of an experiment, by the names of their metrics.

use record::{Metric, Name};

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
}

impl Chart {
    /// Shows values over the axis, and others in the table.
    pub const fn values(
        title: &'static str,
        drawn: &'static [&'static str],
        beside: &'static [&'static str],
    ) -> Chart {
        Chart { title, drawn, beside, series: &[], is_logarithmic: false }
    }

    /// Shows series of a trial.
    pub const fn series(title: &'static str, series: &'static [&'static str]) -> Chart {
        Chart { title, drawn: &[], beside: &[], series, is_logarithmic: false }
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
        }
    }
}

/// Returns the metric with this name: a listed one, or one named by a module.
pub fn metric(name: &'static str) -> Metric {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    listed.unwrap_or(Metric::Named(Name::of(name)))
}
