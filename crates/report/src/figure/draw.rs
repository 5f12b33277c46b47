//! SVG images for screen, print and screen readers.
//!
//! This module does not use a plotting crate. The image needs a title, a description and a note on
//! each point, and its bytes must not depend on a crate's version (see
//! `docs/decisions/0003-static-figures-are-our-own-svg.md`). Invariant: all external text is
//! escaped.

use std::fmt::Write;

use super::palette::{Marker, Style};
use super::scale::Scale;
use super::{Axis, Figure, FigurePoint, Series};
use record::BoundSide;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 30.0;
const PLOT_HEIGHT: f64 = 340.0;
const BOTTOM: f64 = 58.0;
const TITLE_HEIGHT: f64 = 40.0;
const LEGEND_ROW: f64 = 22.0;
const LEGEND_COLUMNS: usize = 3;
/// Average width of a legend letter in the widest possible font.
const LETTER: f64 = 7.0;
/// Width of a legend's line and marker, before the text.
const LEGEND_TEXT_AT: f64 = 44.0;
/// Number of points above which a curve is drawn as dots.
pub(super) const DENSE_POINTS: usize = 150;
/// Radius and colour of the ring around a point with a warning.
const RING: f64 = 9.0;
const WARNING: &str = "#a33a00";
const INK: &str = "#222222";
const FAINT: &str = "#dddddd";
const FAINTER: &str = "#eeeeee";

/// Draws a figure.
pub fn svg(figure: &Figure) -> String {
    let drawn: Vec<&Series> = figure.drawn().collect();
    let top = TITLE_HEIGHT + legend_height(&drawn);
    let height = top + PLOT_HEIGHT + BOTTOM;
    let frame = Frame::new(figure, top);
    let mut out = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{id}-title {id}-desc" font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif" font-size="13">"#,
        id = escape(&figure.id),
    );
    let _ = write!(
        out,
        "\n<title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"25\" font-size=\"15\" font-weight=\"600\" fill=\"{INK}\">{}</text>\n",
        escape(&figure.whole_title()),
        escape(&figure.description),
        escape(&figure.title),
        id = escape(&figure.id),
    );
    legend(&mut out, &drawn);
    frame.grid(&mut out, &figure.x, &figure.y);
    for series in drawn {
        frame.curve(&mut out, series);
    }
    let is_warned = |point: &FigurePoint| !point.warnings.is_empty();
    let ringed = figure.drawn().any(|it| !it.is_warned() && it.points.iter().any(is_warned));
    if ringed {
        let (right, y) = (WIDTH - RIGHT, height - 8.0);
        let _ = writeln!(
            out,
            r#"<text x="{right}" y="{y}" text-anchor="end" font-size="12" fill="{WARNING}">ring: value with a warning</text>"#
        );
    }
    if let Some(of) = &figure.of {
        let (y, of) = (height - 8.0, escape(of));
        let _ = writeln!(out, r#"<text x="8" y="{y}" font-size="12" fill="{INK}">{of}</text>"#);
    }
    out.push_str("</svg>\n");
    out
}

fn legend_height(series: &[&Series]) -> f64 {
    series.len().div_ceil(legend_columns(series)) as f64 * LEGEND_ROW + 12.0
}

/// The number of columns that fit the longest name.
fn legend_columns(series: &[&Series]) -> usize {
    let longest = series.iter().map(|one| legend_name(one).chars().count()).max().unwrap_or(0);
    let needed = LEGEND_TEXT_AT + longest as f64 * LETTER;
    (((WIDTH - LEFT - RIGHT) / needed) as usize).clamp(1, LEGEND_COLUMNS)
}

fn legend_name(series: &Series) -> String {
    if series.is_warned() { format!("{} \u{26a0}", series.name) } else { series.name.clone() }
}

fn legend(out: &mut String, series: &[&Series]) {
    let columns = legend_columns(series);
    let column_width = (WIDTH - LEFT - RIGHT) / columns as f64;
    for (index, one) in series.iter().enumerate() {
        let x = LEFT + (index % columns) as f64 * column_width;
        let y = TITLE_HEIGHT + (index / columns) as f64 * LEGEND_ROW + 6.0;
        let _ =
            writeln!(out, r#"<path d="M{} {}h36" {}/>"#, place(x), place(y), stroke(&one.style),);
        marker(out, &one.style, x + 18.0, y);
        let _ = writeln!(
            out,
            r#"<text x="{}" y="{}" fill="{INK}">{}</text>"#,
            place(x + LEGEND_TEXT_AT),
            place(y + 4.5),
            escape(&legend_name(one)),
        );
    }
}

/// Position of the axes.
struct Frame {
    top: f64,
    x: Scale,
    y: Scale,
}

impl Frame {
    fn new(figure: &Figure, top: f64) -> Frame {
        let points = || figure.drawn().flat_map(|series| &series.points);
        let across: Vec<f64> = points().map(|point| point.x).collect();
        let upwards: Vec<f64> = points()
            .flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                // A low interval end must not stretch a logarithmic axis.
                let low = if point.y > 0.0 { low.max(point.y / 3.0) } else { low };
                [low, point.y, high]
            })
            .collect();
        let x = Scale::over(figure.x.kind, &across, 8);
        let y = Scale::over(figure.y.kind, &upwards, 6);
        Frame { top, x, y }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }

    fn grid(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + PLOT_HEIGHT);
        let mut line = |d: String, colour: &str| {
            let _ = writeln!(out, r#"<path d="{d}" stroke="{colour}" fill="none"/>"#);
        };
        for &value in &self.y.minor {
            line(format!("M{LEFT} {}H{right}", place(self.y(value))), FAINTER);
        }
        for &value in &self.y.ticks {
            line(format!("M{LEFT} {}H{right}", place(self.y(value))), FAINT);
        }
        for &value in &self.x.minor {
            line(format!("M{} {}V{bottom}", place(self.x(value)), self.top), FAINTER);
        }
        for &value in &self.x.ticks {
            let at = place(self.x(value));
            line(format!("M{at} {}V{bottom}", self.top), FAINTER);
            line(format!("M{at} {bottom}v5"), INK);
        }
        line(format!("M{LEFT} {}V{bottom}H{right}", self.top), INK);
        for &value in &self.y.ticks {
            let (at, label) = (place(self.y(value) + 4.5), y.kind.label(value));
            let left = LEFT - 9.0;
            let _ = writeln!(
                out,
                r#"<text x="{left}" y="{at}" text-anchor="end" fill="{INK}">{label}</text>"#
            );
        }
        for &value in &self.x.ticks {
            let (at, label) = (place(self.x(value)), x.kind.label(value));
            let under = bottom + 20.0;
            let _ = writeln!(
                out,
                r#"<text x="{at}" y="{under}" text-anchor="middle" fill="{INK}">{label}</text>"#
            );
        }
        let middle = self.top + PLOT_HEIGHT / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{INK}\">{}</text>\n\
             <text transform=\"translate(17 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"{INK}\">{}</text>",
            place((LEFT + right) / 2.0),
            place(bottom + 44.0),
            escape(&x.label),
            place(middle),
            escape(&y.label),
        );
    }

    fn curve(&self, out: &mut String, series: &Series) {
        let drawable = |point: &&FigurePoint| self.x.shows(point.x) && self.y.shows(point.y);
        let points: Vec<&FigurePoint> = series.points.iter().filter(drawable).collect();
        let _ = writeln!(out, r#"<g aria-label="{}">"#, escape(&series.name));
        if points.len() > DENSE_POINTS {
            self.dots(out, &points, &series.style);
            out.push_str("</g>\n");
            return;
        }
        let mut path = String::new();
        for (index, point) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{} {}", place(self.x(point.x)), place(self.y(point.y)));
        }
        let _ = writeln!(out, r#"<path d="{path}" {}/>"#, stroke(&series.style));
        for point in &points {
            let (x, y) = (self.x(point.x), self.y(point.y));
            if series.style.marker == Marker::None {
                continue;
            }
            let warned = !point.warnings.is_empty() && !series.is_warned();
            let _ = writeln!(out, "<g><title>{}</title>", escape(&told(point)));
            if let Some((low, high)) = point.interval {
                let (from, to) = (place(self.y(low)), place(self.y(high)));
                let (left, colour) = (place(x - 4.0), series.style.colour);
                let at = place(x);
                let _ = writeln!(
                    out,
                    r#"<path d="M{left} {from}h8M{left} {to}h8M{at} {from}V{to}" stroke="{colour}" stroke-width="1.2" fill="none"/>"#
                );
            }
            marker(out, &series.style, x, y);
            if let Some(side) = point.bound {
                arrow(out, series.style.colour, (x, y), side);
            }
            if warned {
                ring(out, x, y);
            }
            out.push_str("</g>\n");
        }
        out.push_str("</g>\n");
    }
}

impl Frame {
    /// Unconnected points, if there are too many for markers: dots, or short vertical strokes if
    /// the marker is hollow.
    fn dots(&self, out: &mut String, points: &[&FigurePoint], style: &Style) {
        let (dot, width) = if style.filled { ("h0", 2.6) } else { ("m0 -2.5v5", 1.1) };
        let mut path = String::new();
        for point in points {
            let _ = write!(path, "M{} {}{dot}", place(self.x(point.x)), place(self.y(point.y)));
        }
        let colour = style.colour;
        let _ = writeln!(
            out,
            r#"<path d="{path}" stroke="{colour}" stroke-width="{width}" stroke-linecap="round" fill="none"/>"#
        );
    }
}

fn stroke(style: &Style) -> String {
    let dashes = match style.dashes {
        "" => String::new(),
        dashes => format!(r#" stroke-dasharray="{dashes}" stroke-linecap="round""#),
    };
    format!(r#"stroke="{}" stroke-width="1.8" fill="none"{dashes}"#, style.colour)
}

fn marker(out: &mut String, style: &Style, x: f64, y: f64) {
    let path = match style.marker {
        Marker::None => return,
        Marker::Circle => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        Marker::Square => "m-4 -4h8v8h-8z",
        Marker::Triangle => "m0 -5l5 9h-10z",
        Marker::Diamond => "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
        Marker::Down => "m0 5l5 -9h-10z",
        Marker::Cross => "m-4 -4l8 8m0 -8l-8 8",
        Marker::Plus => "m-5 0h10m-5 -5v10",
    };
    let fill = if style.filled { style.colour } else { "#ffffff" };
    let _ = writeln!(
        out,
        r#"<path d="M{} {}{path}" stroke="{}" stroke-width="1.6" fill="{fill}"/>"#,
        place(x),
        place(y),
        style.colour,
    );
}

/// Draws an arrow from a bound towards the side of the true value.
fn arrow(out: &mut String, colour: &str, (x, y): (f64, f64), side: BoundSide) {
    let path = match side {
        BoundSide::Lower => "v-16m-3.5 5l3.5 -5l3.5 5",
        BoundSide::Upper => "v16m-3.5 -5l3.5 5l3.5 -5",
    };
    let (x, y) = (place(x), place(y));
    let _ = writeln!(
        out,
        r#"<path class="bound" d="M{x} {y}{path}" stroke="{colour}" stroke-width="1.6" fill="none"/>"#
    );
}

/// Tooltip of a point: its note and warnings.
fn told(point: &FigurePoint) -> String {
    let warnings = point.warnings.iter().map(|warning| format!(" \u{26a0} {warning}"));
    std::iter::once(point.note.clone()).chain(warnings).collect()
}

/// Draws a ring around a point with a warning.
fn ring(out: &mut String, x: f64, y: f64) {
    let (left, y) = (place(x - RING), place(y));
    let _ = writeln!(
        out,
        r#"<path d="M{left} {y}a{RING} {RING} 0 1 0 {w} 0a{RING} {RING} 0 1 0 -{w} 0z" stroke="{WARNING}" stroke-width="1.4" stroke-dasharray="3 2" fill="none"/>"#,
        w = 2.0 * RING,
    );
}

/// A coordinate with at most one decimal.
fn place(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// Escapes text for an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            control if control.is_control() => out.push(' '),
            plain => out.push(plain),
        }
    }
    out
}
