//! Draws groups of bars: one bar per target, in each column of each group.
//!
//! Source: figure 5 of bianco2010, whose groups are packet sizes and whose columns are table sizes.
//! The study's bars overlap within a column; here they are side by side, because more than three
//! targets would hide each other. References are behind the bars over the whole column, and printed
//! values are markers in the middle of it. Invariant: a value of zero has a line, and a missing
//! value has nothing.

use std::fmt::Write;

use super::draw::{Frame, LEFT, RIGHT, WIDTH, place};
use super::marks::{ring, told};
use super::palette::{Marker, Style};
use super::{Figure, FigurePoint, Series};
use record::BoundSide;

/// Share of a group's width that its columns use.
const GROUP_SHARE: f64 = 0.86;
/// Share of a column's width between two columns, and its maximum.
const COLUMN_GAP: (f64, f64) = (0.14, 6.0);
/// Share of its place that a bar uses.
const BAR_SHARE: f64 = 0.92;
/// Maximum width of a bar.
const BAR_WIDTH_MAX: f64 = 36.0;
/// Opacity of the bars of a series by its dashes: solid ones of our targets, dashed ones of others
/// and of further curves, and the last curve of a target.
const OPACITIES: [(&[&str], &str); 2] = [(&[""], ".75"), (&["9 3 2 3", "1 4 8 4"], ".08")];
const OPACITY_DASHED: &str = ".35";
/// Size of the letters of columns.
const LETTER_SIZE: u32 = 11;

/// What the bars of a series stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A measured value, with its place in the column.
    Measured(usize),
    /// A reference behind the bars.
    Behind,
    /// Values that a study prints.
    Printed,
}

/// Positions of columns and bars.
struct Layout {
    column_width: f64,
    gap: f64,
    columns: usize,
    /// Number of bars in a column.
    bars: usize,
}

impl Layout {
    fn of(frame: &Frame, figure: &Figure, bars: usize) -> Layout {
        let columns = figure.columns.len().max(1);
        let groups = frame.x.ticks.len().max(1) as f64;
        let column_width = (WIDTH - LEFT - RIGHT) / groups * GROUP_SHARE / columns as f64;
        let (share, most) = COLUMN_GAP;
        let gap = if columns > 1 { (share * column_width).min(most) } else { 0.0 };
        Layout { column_width, gap, columns, bars: bars.max(1) }
    }

    /// Middle of a point's column.
    fn middle(&self, frame: &Frame, x: f64, column: usize) -> f64 {
        let from_middle = column as f64 + 0.5 - self.columns as f64 / 2.0;
        frame.x(x) + from_middle * self.column_width
    }

    /// Width of the bars of a column together.
    fn width(&self) -> f64 {
        self.column_width - self.gap
    }

    /// Width of one bar.
    fn bar_width(&self) -> f64 {
        (self.width() / self.bars as f64 * BAR_SHARE).min(BAR_WIDTH_MAX)
    }

    /// Middle of a bar.
    fn bar(&self, frame: &Frame, point: &FigurePoint, number: usize) -> f64 {
        let step = self.bar_width() / BAR_SHARE;
        let from_middle = number as f64 + 0.5 - self.bars as f64 / 2.0;
        self.middle(frame, point.x, point.column) + from_middle * step
    }
}

fn kinds(drawn: &[&Series]) -> Vec<Kind> {
    let mut bars = 0;
    let kind = |one: &&Series| match (one.style.is_reference(), one.style.marker) {
        (true, Marker::None) => Kind::Behind,
        (true, _) => Kind::Printed,
        (false, _) => {
            bars += 1;
            Kind::Measured(bars - 1)
        }
    };
    drawn.iter().map(kind).collect()
}

/// Draws the bars of a figure, and the letters of its columns.
pub(super) fn draw(out: &mut String, frame: &Frame, figure: &Figure, drawn: &[&Series]) {
    let kinds = kinds(drawn);
    let bars = kinds.iter().filter(|kind| matches!(kind, Kind::Measured(_))).count();
    let layout = Layout::of(frame, figure, bars);
    for (series, kind) in drawn.iter().zip(&kinds) {
        let common = Frame::open(out, series);
        for point in frame.points(series) {
            let column = figure.columns.get(point.column).map(|(_, meaning)| meaning.as_str());
            let told = told(point, common, column);
            let line = match *kind {
                Kind::Measured(number) => {
                    bar(frame, &layout, (series, point), layout.bar(frame, point, number))
                }
                Kind::Behind => behind(frame, &layout, point),
                Kind::Printed => printed(frame, &layout, series, point),
            };
            let _ = writeln!(out, "<path {line}{told}");
            if let (Kind::Measured(number), true) = (*kind, series.has_ring(point)) {
                let x = layout.bar(frame, point, number);
                let radius = (layout.bar_width() / 2.0 + 2.0).clamp(3.0, 9.0);
                ring(out, (x, frame.y(point.y)), (radius * 10.0).round() / 10.0);
            }
        }
        out.push_str("</g>\n");
    }
    letters(out, frame, figure, &layout);
}

/// A bar from the axis to the value, with its interval or range, and an arrow if it is a bound.
fn bar(frame: &Frame, layout: &Layout, (series, point): (&Series, &FigurePoint), x: f64) -> String {
    let (y, width) = (frame.y(point.y), layout.bar_width());
    let mut path = rectangle(frame, (x, y), width);
    if let Some(ends) = point.range.or(point.interval) {
        path += &frame.line_to_ends((x, y), 0.0, ends, (width / 2.0).min(4.0));
    }
    let at = place(x);
    match point.bound {
        Some(BoundSide::Lower) => {
            let _ = write!(path, "M{at} {}v-12m-3.5 5l3.5 -5l3.5 5", place(y));
        }
        Some(BoundSide::Upper) => {
            let _ = write!(path, "M{at} {}v12m-3.5 -5l3.5 5l3.5 -5", place(y - 14.0));
        }
        None => {}
    }
    let look = match point.bound {
        Some(_) => r#" fill="none""#.into(),
        None => opacity(&series.style),
    };
    format!(r#"d="{path}" stroke-width="1"{look}"#)
}

fn opacity(style: &Style) -> String {
    let known = OPACITIES.iter().find(|(dashes, _)| dashes.contains(&style.dashes));
    let opacity = known.map_or(OPACITY_DASHED, |(_, opacity)| *opacity);
    format!(r#" fill="currentColor" fill-opacity="{opacity}""#)
}

/// A reference over the whole column.
fn behind(frame: &Frame, layout: &Layout, point: &FigurePoint) -> String {
    let x = layout.middle(frame, point.x, point.column);
    let path = rectangle(frame, (x, frame.y(point.y)), layout.width());
    format!(r#"d="{path}" stroke="none" fill="currentColor" fill-opacity=".18""#)
}

/// A printed value: a marker, on a line over the whole column.
fn printed(frame: &Frame, layout: &Layout, series: &Series, point: &FigurePoint) -> String {
    let x = layout.middle(frame, point.x, point.column);
    let (y, half) = (place(frame.y(point.y)), layout.width() / 2.0);
    let marker = series.style.marker.path();
    let (from, width) = (place(x - half), place(2.0 * half));
    format!(r#"d="M{} {y}{marker}M{from} {y}h{width}" stroke-width="1.2""#, place(x))
}

/// A rectangle from the horizontal axis to the middle of its top, where the path begins.
fn rectangle(frame: &Frame, (x, y): (f64, f64), width: f64) -> String {
    let base = frame.y(0.0);
    let (half, width) = (place(-width / 2.0), place(width));
    format!("M{} {}m{half} 0V{}h{width}V{}z", place(x), place(y), place(base), place(y))
}

/// Letters of the columns below the axis.
fn letters(out: &mut String, frame: &Frame, figure: &Figure, layout: &Layout) {
    for (column, (letter, _)) in figure.columns.iter().enumerate() {
        for &group in &frame.x.ticks {
            let x = place(layout.middle(frame, group, column));
            let y = frame.bottom() + 15.0;
            let _ = writeln!(
                out,
                r#"<text x="{x}" y="{y}" text-anchor="middle" font-size="{LETTER_SIZE}">{letter}</text>"#
            );
        }
    }
}

/// The entry of a legend.
pub(super) fn key(out: &mut String, style: &Style, (x, y): (f64, f64)) {
    let bar = |opacity: &str| {
        let (from, top) = (place(x + 10.0), place(y - 5.0));
        format!(r#"<path d="M{from} {top}h16v10h-16z" {opacity}/>"#)
    };
    let drawn = match (style.is_reference(), style.marker) {
        (true, Marker::None) => bar(r#"stroke="none" fill="currentColor" fill-opacity=".18""#),
        (true, marker) => {
            let (from, middle, y) = (place(x + 6.0), place(x + 18.0), place(y));
            format!(r#"<path d="M{from} {y}h24M{middle} {y}{}"/>"#, marker.path())
        }
        (false, _) => bar(&opacity(style)),
    };
    out.push_str(&drawn);
}
