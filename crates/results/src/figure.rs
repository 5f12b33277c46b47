//! A figure as a value, and its picture as SVG.
//!
//! Every series differs in marker and line as well as in colour, every measured value carries its
//! interval, a value that only bounds the true one carries an arrow to the open side, and what was offered or printed elsewhere is dashed and never looks measured. Source
//! of the colours: Okabe and Ito's palette, safe for the colour-blind. Invariant: a figure draws
//! only what it was given, and equal figures give equal bytes.

mod scale;
mod palette;
mod draw;
mod view;
mod series;
mod standard;
mod spectrum;
mod data;
#[cfg(test)]
mod tests;

pub use data::json;
pub use draw::svg;
pub use palette::{Marker, Style, styles};
pub use series::of_series;
pub use spectrum::{of_spectra, shows_latency};
pub use view::{View, curves, figure, views};

use crate::record::BoundSide;

/// A picture of curves over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name for files and anchors: letters, digits, dashes.
    pub id: String,
    /// What it shows, in words.
    pub title: String,
    /// The run that it is of, where it stands beside those of others: `step first`.
    pub of: Option<String>,
    /// The same for those who cannot see it.
    pub description: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The curves, later ones on top.
    pub series: Vec<Series>,
    /// Of which [`Series::choice`] the curves are drawn, where they are too many for one picture.
    pub choice: Option<String>,
}

impl Figure {
    /// What it shows, and of which run.
    pub(crate) fn whole_title(&self) -> String {
        match &self.of {
            Some(of) => format!("{} ({of})", self.title),
            None => self.title.clone(),
        }
    }

    /// The curves that a picture shows.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|one| one.choice.is_none() || one.choice == self.choice)
    }
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Name and unit.
    pub label: String,
    /// How values become places.
    pub kind: AxisKind,
}

/// How values become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisKind {
    /// Equal differences, from zero.
    Linear,
    /// Equal ratios, by decades.
    Log,
    /// Equal ratios, with a tick at each value that was measured.
    LogAtPoints,
    /// Equal ratios of what lies above: 2 is the median, 100 the 99th percentile, and so on.
    Percentile,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it looks.
    pub style: Style,
    /// Its points, x rising.
    pub points: Vec<FigurePoint>,
    /// What has to be chosen to see it; absent where it is always seen.
    pub choice: Option<String>,
}

/// A point of a curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigurePoint {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Interval of `y`: lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// On which side `y` only bounds the true value.
    pub bound: Option<BoundSide>,
    /// What a reader sees on pointing at it.
    pub note: String,
    /// The trials that it rests on.
    pub trials: Vec<u64>,
    /// What to know before trusting it, as sentences.
    pub warnings: Vec<String>,
}

impl Series {
    /// Whether a warning stands with all its points, which then is told of once.
    pub(crate) fn is_warned(&self) -> bool {
        self.points.len() > 1 && self.points.iter().all(|point| !point.warnings.is_empty())
    }

    /// What is drawn for comparison and was not measured of a target.
    pub(crate) fn reference(name: &str, points: Vec<FigurePoint>) -> Series {
        Series { name: name.into(), style: Style::REFERENCE, points, choice: None }
    }
}
