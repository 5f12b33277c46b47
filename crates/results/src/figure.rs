//! A figure as a value, and its picture as SVG.
//!
//! Every series differs in marker and line as well as in colour, every measured value carries its
//! interval, and what was offered or printed elsewhere is dashed and never looks measured. Source
//! of the colours: Okabe and Ito's palette, safe for the colour-blind. Invariant: a figure draws
//! only what it was given, and equal figures give equal bytes.

mod scale;
mod palette;
mod draw;
mod view;
mod series;
mod standard;
#[cfg(test)]
mod tests;

pub use draw::svg;
pub use palette::{Marker, Style, styles};
pub use series::of_series;
pub use view::{View, curves, figure, views};

/// A picture of curves over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name for files and anchors: letters, digits, dashes.
    pub id: String,
    /// What it shows, in words.
    pub title: String,
    /// The same for those who cannot see it.
    pub description: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The curves, later ones on top.
    pub series: Vec<Series>,
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
}

/// A point of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct FigurePoint {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Interval of `y`: lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// What a reader sees on pointing at it.
    pub note: String,
}
