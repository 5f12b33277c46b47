//! Draws the marks of values: markers, intervals and ranges, bounds, warnings, and dots.
//!
//! Invariants:
//!
//! - The path of a mark begins at its value, where the page's script looks for it.
//! - An interval that continues beyond the axis has no cap at that end.

use std::fmt::Write;

use super::draw::{Frame, escape, fill, place, rounded};
use super::palette::{Marker, Style};
use super::{FigurePoint, Series};
use crate::sentence::runs_of;
use record::BoundSide;

/// Half the size of a marker.
pub(super) const MARKER: f64 = 5.0;
/// Distance of an interval from the range of the same value.
const BESIDE: f64 = 7.0;
/// A shorter one would look like a dash.
const BESIDE_MIN: f64 = 2.0;
const WARNING: &str = "#a33a00";

impl Frame {
    /// A marker with its interval, and the ring of a warning. `common` tells whether trials and
    /// warnings are at the curve.
    pub(super) fn mark(
        &self,
        out: &mut String,
        series: &Series,
        point: &FigurePoint,
        common: (bool, bool),
    ) {
        let (x, y) = (self.x(point.x), self.y(point.y));
        let mut path = format!("M{} {}{}", place(x), place(y), series.style.marker.path());
        if let Some(ends) = point.range.or(point.interval) {
            path += &self.line_to_ends((x, y), MARKER, ends, 4.0);
        }
        match point.bound {
            Some(BoundSide::Lower) => {
                let _ = write!(path, "M{} {}v-12m-3.5 5l3.5 -5l3.5 5", place(x), place(y - MARKER));
            }
            Some(BoundSide::Upper) => {
                let _ = write!(path, "M{} {}v12m-3.5 -5l3.5 5l3.5 -5", place(x), place(y + MARKER));
            }
            None => {}
        }
        let hollow = if point.bound.is_some() { fill(false) } else { "" };
        if let (Some(_), Some((low, high))) = (point.range, point.interval) {
            let (low, high, x) = (self.y(low), self.y(high), place(x + BESIDE));
            if low - high > BESIDE_MIN {
                let (low, high) = (place(low), place(high));
                let _ = writeln!(out, r#"<path d="M{x} {low}V{high}" stroke-width="3"/>"#);
            }
        }
        let _ = writeln!(out, r#"<path d="{path}"{hollow}{}"#, told(point, common, None));
        if series.has_ring(point) {
            ring(out, (x, y), 9.0);
        }
    }

    /// Vertical lines from a mark to the ends of an interval. The mark covers `half` above and below
    /// its position. An end within the axis has a cap of half width `cap`.
    pub(super) fn line_to_ends(
        &self,
        (x, y): (f64, f64),
        half: f64,
        (low, high): (f64, f64),
        cap: f64,
    ) -> String {
        let mut path = String::new();
        if !(low.is_finite() && high.is_finite()) {
            return path;
        }
        for (value, side) in [(low, 1.0), (high, -1.0)] {
            let end = self.y(value);
            if (end - y) * side > half.max(1.0) {
                let _ = write!(path, "M{} {}V{}", place(x), place(y + side * half), place(end));
                if !self.y.cuts(value) {
                    let _ = write!(path, "m{} 0h{}", place(-cap), place(2.0 * cap));
                }
            }
        }
        path
    }
}

/// A point of a dense curve: a dot, or a short vertical stroke of a dashed curve.
pub(super) fn dot_at((x, y): (f64, f64), style: &Style) -> String {
    let dot = if style.dashes.is_empty() { "h0" } else { "m0 -2.5v5" };
    format!("M{} {}{dot}", place(x), place(y))
}

pub(super) fn dot_stroke(style: &Style) -> &'static str {
    match style.dashes.is_empty() {
        true => r#" stroke-width="2.6" stroke-linecap="round""#,
        false => r#" stroke-width="1.1""#,
    }
}

/// Values, trials, bound, note and warnings of a mark, up to the end of its element. `common` tells
/// which of trials and warnings are at the curve.
pub(super) fn told(point: &FigurePoint, common: (bool, bool), column: Option<&str>) -> String {
    let mut out = format!(" data-v=\"{} {}", rounded(point.x), rounded(point.y));
    if let Some((low, high)) = point.interval.filter(|it| it.0.is_finite() && it.1.is_finite()) {
        let _ = write!(out, " {} {}", rounded(low), rounded(high));
    }
    out.push('"');
    if !common.0 && !point.trials.is_empty() {
        let _ = write!(out, r#" data-t="{}""#, runs_of(&point.trials));
    }
    if let Some(column) = column {
        let _ = write!(out, r#" data-at="{}""#, escape(column));
    }
    if point.bound.is_some() {
        out.push_str(r#" data-bound="""#);
    }
    let warnings = if common.1 { String::new() } else { warned(point) };
    let _ = write!(out, "><title>{}{}</title></path>", escape(&point.note), escape(&warnings));
    out
}

/// The ring of a value with a warning.
pub(super) fn ring(out: &mut String, (x, y): (f64, f64), radius: f64) {
    let (x, y, r, d) = (place(x), place(y), radius, 2.0 * radius);
    let _ = writeln!(
        out,
        r#"<path class="ring" fill="none" d="M{x} {y}m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z" stroke="{WARNING}" stroke-dasharray="3 2"/>"#,
    );
}

/// Warnings of a point, for its tooltip.
pub(super) fn warned(point: &FigurePoint) -> String {
    point.warnings.iter().map(|warning| format!(" \u{26a0} {warning}")).collect()
}

impl Marker {
    /// Its outline around the current position.
    pub(super) fn path(self) -> &'static str {
        match self {
            Marker::None => "",
            Marker::Circle => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
            Marker::Square => "m-4 -4h8v8h-8z",
            Marker::Triangle => "m0 -5l5 9h-10z",
            Marker::Diamond => "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
            Marker::Down => "m0 5l5 -9h-10z",
            Marker::Left => "m-5 0l9 -5v10z",
            Marker::Right => "m5 0l-9 -5v10z",
            Marker::Cross => "m-4 -4l8 8m0 -8l-8 8",
            Marker::Plus => "m-5 0h10m-5 -5v10",
            Marker::Star => "m-5 0h10m-5 -5v10m-3.5 -8.5l7 7m0 -7l-7 7",
        }
    }
}
