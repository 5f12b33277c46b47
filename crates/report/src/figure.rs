//! A figure as a value, and its SVG image.
//!
//! Every series has its own marker, line and colour. A measured value has its interval, and a bound
//! is hollow with an arrow towards its open side. Offered loads and values from other sources are
//! grey and dashed, to distinguish them from measurements. A chart has curves, or groups of bars. Source of the colours: the palette of Okabe and Ito, which
//! is safe for colour-blind readers. Invariant: a figure shows only its input, and equal figures
//! give equal bytes.

mod scale;
mod palette;
mod draw;
mod marks;
mod bars;
mod names;
mod view;
mod curves;
mod study;
mod series;
mod standard;
mod spectrum;
#[cfg(test)]
mod tests;

pub use curves::figure;
pub use draw::{inline, svg, swatch};
pub use palette::{Colour, Marker, Style, styles};
pub use series::of_series;
pub use spectrum::{of_spectra, shows_latency};
pub use study::{of_study, omitted};
pub use view::{View, curves, views};

use crate::sentence::capitalised;
use record::BoundSide;

/// Curves over two axes, or groups of bars.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// Name for files and anchors: letters, digits, dashes.
    pub id: String,
    /// Title.
    pub title: String,
    /// The run, if a page has figures of several runs: `step first`.
    pub of: Option<String>,
    /// Text alternative for screen readers.
    pub description: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The curves, later ones on top.
    pub series: Vec<Series>,
    /// Names of the columns within each group of bars, a letter and its meaning; empty if a group
    /// is one column.
    pub columns: Vec<(char, String)>,
    /// Further sentence of the caption; empty if none.
    pub note: String,
    /// The [`Series::choice`] to draw, if there are too many curves for one image.
    pub choice: Option<String>,
}

impl Figure {
    /// The title, with the run if given.
    pub fn whole_title(&self) -> String {
        match &self.of {
            Some(of) => format!("{} ({of})", self.title),
            None => self.title.clone(),
        }
    }

    /// The figure at another choice.
    pub(crate) fn at(&self, choice: &str) -> Figure {
        let own = self.choice.as_deref().unwrap_or(choice);
        Figure {
            title: self.title.replace(own, choice),
            description: spectrum::description(&self.series, choice),
            choice: Some(choice.into()),
            ..self.clone()
        }
    }

    /// All choices in order.
    pub(crate) fn choices(&self) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.series.iter().filter_map(|it| it.choice.as_deref()).collect();
        found.dedup();
        found
    }

    /// One sentence with the quantities and the meaning of the marks.
    pub(crate) fn caption(&self) -> String {
        let quantity = |axis: &Axis| match axis.label.rsplit_once(", ") {
            Some((name, _)) => name.to_string(),
            None => axis.label.clone(),
        };
        let marks: String = self.marks().iter().map(|mark| format!("; {mark}")).collect();
        let text = format!("{} against {}{marks}.", quantity(&self.y), quantity(&self.x));
        [capitalised(&text), self.about_columns(), self.note.clone()]
            .into_iter()
            .filter(|sentence| !sentence.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Meaning of the columns of each group.
    fn about_columns(&self) -> String {
        let named = self.columns.iter().map(|(letter, meaning)| format!("{letter}: {meaning}"));
        match self.columns.is_empty() {
            true => String::new(),
            false => format!("Columns: {}.", named.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Whether it has bars.
    pub(crate) fn has_bars(&self) -> bool {
        self.x.kind == AxisKind::Groups
    }

    /// Meaning of the marks at its values.
    pub(crate) fn marks(&self) -> Vec<&'static str> {
        let has = |is: fn(&Series, &FigurePoint) -> bool| {
            self.drawn().any(|one| one.points.iter().any(|point| is(one, point)))
        };
        let marks = [
            (has(|_, it| it.range.is_some()), "line with ends: minimum to 90th percentile"),
            (
                has(|_, it| it.range.is_some() && it.interval.is_some()),
                "thick line next to it: confidence interval",
            ),
            (
                has(|_, it| it.range.is_none() && it.interval.is_some()),
                "vertical line: confidence interval",
            ),
            (draw::cuts_interval(self), "line without end: continues beyond the axis"),
            (has(|_, it| it.bound.is_some()), "hollow mark with arrow: bound"),
            (has(Series::has_ring), "ring: value with a warning"),
        ];
        marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, text)| text).collect()
    }

    /// The curves in the image.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|one| one.choice.is_none() || one.choice == self.choice)
    }
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Name and unit.
    pub label: String,
    /// Scale of the axis.
    pub kind: AxisKind,
}

/// Scale of an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AxisKind {
    /// Linear, from zero.
    #[default]
    Linear,
    /// Logarithmic, with ticks at decades.
    Log,
    /// Logarithmic, with a tick at each measured value.
    LogAtPoints,
    /// Logarithmic in the remaining share: 2 is the median, 100 the 99th percentile, and so on.
    Percentile,
    /// A group of bars for each value, in rising order.
    Groups,
}

impl AxisKind {
    /// All kinds.
    #[cfg(test)]
    pub(crate) const ALL: [AxisKind; 5] = [
        AxisKind::Linear,
        AxisKind::Log,
        AxisKind::LogAtPoints,
        AxisKind::Percentile,
        AxisKind::Groups,
    ];
}

/// A curve, or the bars of one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its style.
    pub style: Style,
    /// Its points, in rising order of x.
    pub points: Vec<FigurePoint>,
    /// The choice that makes it visible; absent if it is always visible.
    pub choice: Option<String>,
}

/// A point of a curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigurePoint {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Number of its column within the group of bars.
    pub column: usize,
    /// Interval of `y`: lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// Minimum and 90th percentile around `y`.
    pub range: Option<(f64, f64)>,
    /// Side of the true value that `y` bounds, if it is only a bound.
    pub bound: Option<BoundSide>,
    /// Tooltip text.
    pub note: String,
    /// Ids of its trials.
    pub trials: Vec<u64>,
    /// Warnings as sentences.
    pub warnings: Vec<String>,
}

impl Series {
    /// Whether all its points have a warning, which then appears once.
    pub(crate) fn is_warned(&self) -> bool {
        self.points.len() > 1 && self.points.iter().all(|point| !point.warnings.is_empty())
    }

    /// Whether a point has a ring because of a warning of its own.
    fn has_ring(&self, point: &FigurePoint) -> bool {
        !point.warnings.is_empty() && !self.is_warned()
    }

    /// A reference curve that was not measured with a target.
    pub(crate) fn reference(name: &str, points: Vec<FigurePoint>) -> Series {
        Series { name: name.into(), style: Style::REFERENCE, points, choice: None }
    }
}
