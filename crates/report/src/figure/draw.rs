//! SVG images for screen, print and screen readers.
//!
//! This module does not use a plotting crate. The image needs a title, a description and a note on
//! each point, and its bytes must not depend on a crate's version (see
//! `docs/decisions/0003-static-figures-are-our-own-svg.md`). The page's script reads the attributes
//! `data-*` (`docs/decisions/0068-reports-draw-their-own-figures.md`). Invariants:
//!
//! - All external text is escaped.
//! - The script moves horizontally what follows `M` and `L` in marks and in the x axis.

use std::fmt::Write;

use super::marks::{dot_at, dot_stroke, warned};
use super::palette::{Colour, Marker, Style};
use super::scale::Scale;
use super::{Axis, AxisKind, Figure, FigurePoint, Series, bars};
use crate::sentence::runs_of;

pub(super) const WIDTH: f64 = 720.0;
pub(super) const LEFT: f64 = 96.0;
pub(super) const RIGHT: f64 = 30.0;
pub(super) const PLOT_HEIGHT: f64 = 340.0;
const BOTTOM: f64 = 58.0;
/// Further space below the plot for the letters of columns.
const COLUMN_LETTERS: f64 = 15.0;
const TITLE_HEIGHT: f64 = 40.0;
const LEGEND_ROW: f64 = 22.0;
const LEGEND_COLUMNS: usize = 3;
/// Average width of a legend letter in the widest possible font.
pub(super) const LETTER: f64 = 7.0;
/// Width of a legend's line and marker, before the text.
const LEGEND_TEXT_AT: f64 = 44.0;
/// Visible space above the plot in a page.
const ABOVE: f64 = 22.0;
/// Number of points above which a curve is drawn as dots.
pub(super) const DENSE_POINTS: usize = 150;
/// A log axis need not include the low end of an interval below this share of its value.
const LOW_END_SHARE: f64 = 1.0 / 3.0;
const INK: &str = "#222222";
const PAPER: &str = "#ffffff";
const FAINT: &str = "#dddddd";
const FAINTER: &str = "#eeeeee";

/// Draws a figure as a file of its own, with title and legend.
pub fn svg(figure: &Figure) -> String {
    image(figure, true)
}

/// Draws a figure for a page, which has title and legend as text. The image has them too, outside
/// its visible part, for readers who save it.
pub fn inline(figure: &Figure) -> String {
    image(figure, false)
}

/// Draws a line with its marker or a bar, for the legend of a page.
pub fn swatch(figure: &Figure, series: &Series) -> String {
    let mut out = format!(
        r#"<svg width="36" height="14" viewBox="0 0 36 14" aria-hidden="true" {}>"#,
        ink(&series.style)
    );
    key(&mut out, figure, series, (0.0, 7.0));
    out.push_str("</svg>");
    out
}

/// Whether the interval of a value continues beyond the axis.
pub(super) fn cuts_interval(figure: &Figure) -> bool {
    let frame = Frame::new(figure, 0.0);
    let mut points = figure.drawn().flat_map(|series| &series.points);
    points.any(|point| point.interval.is_some_and(|(low, _)| frame.y.cuts(low)))
}

fn image(figure: &Figure, is_file: bool) -> String {
    let drawn: Vec<&Series> = figure.drawn().collect();
    let top = TITLE_HEIGHT + legend_height(&drawn);
    let letters = if figure.columns.is_empty() { 0.0 } else { COLUMN_LETTERS };
    let height = top + PLOT_HEIGHT + letters + BOTTOM;
    let frame = Frame::new(figure, top);
    let from = if is_file { 0.0 } else { top - ABOVE };
    let (id, right) = (escape(&figure.id), WIDTH - RIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {from} {WIDTH} {}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\" data-x=\"{LEFT} {right} {}\" data-height=\"{height}\" \
         color=\"{INK}\" fill=\"currentColor\" font-size=\"13\" \
         font-family=\"system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n\
         <rect class=\"hollow\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"{PAPER}\"/>\n\
         <clipPath id=\"{id}-clip\"><path d=\"M{LEFT} 0H{right}V{height}H{LEFT}z\"/></clipPath>\n\
         <g class=\"head\">\n\
         <text x=\"{LEFT}\" y=\"25\" font-size=\"15\" font-weight=\"600\">{}</text>\n",
        height - from,
        frame.x.ends(),
        escape(&figure.whole_title()),
        escape(&figure.description),
        escape(&figure.title),
    );
    if let Some(of) = &figure.of {
        let of = escape(of);
        let _ = writeln!(
            out,
            r#"<text x="{right}" y="25" text-anchor="end" font-size="12">{of}</text>"#
        );
    }
    legend(&mut out, figure, &drawn);
    out.push_str("</g>\n");
    frame.grid(&mut out, &figure.x, &figure.y, letters);
    out.push_str("<g class=\"marks\">\n");
    if figure.has_bars() {
        bars::draw(&mut out, &frame, figure, &drawn);
    } else {
        for (series, name) in drawn.iter().zip(frame.names(&drawn)) {
            frame.curve(&mut out, series, name);
        }
    }
    out.push_str("</g>\n");
    let (marks, y) = (figure.marks().join("; "), height - 6.0);
    if is_file && !marks.is_empty() {
        let _ = writeln!(
            out,
            r#"<text x="{right}" y="{y}" text-anchor="end" font-size="11">{marks}</text>"#
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Attributes of a curve's colour, on paper and as a variable for a dark page, and of its markers.
fn ink(style: &Style) -> String {
    let (Colour { light, dark }, fill) = (style.colour, fill(style.filled));
    format!(
        r#"color="{light}" style="--dark:{dark}" stroke="currentColor" stroke-width="1.6"{fill}"#
    )
}

pub(super) fn fill(is_filled: bool) -> &'static str {
    if is_filled { r#" fill="currentColor""# } else { r##" class="hollow" fill="#ffffff""## }
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

fn legend(out: &mut String, figure: &Figure, series: &[&Series]) {
    let columns = legend_columns(series);
    let column_width = (WIDTH - LEFT - RIGHT) / columns as f64;
    for (index, one) in series.iter().enumerate() {
        let x = LEFT + (index % columns) as f64 * column_width;
        let y = TITLE_HEIGHT + (index / columns) as f64 * LEGEND_ROW + 6.0;
        let _ = write!(out, "<g data-s=\"{}\"><g {}>", escape(&one.name), ink(&one.style));
        key(out, figure, one, (x, y));
        let _ = writeln!(
            out,
            r#"</g><text x="{}" y="{}">{}</text></g>"#,
            place(x + LEGEND_TEXT_AT),
            place(y + 4.5),
            escape(&legend_name(one)),
        );
    }
}

/// A line with its marker, the dots of a dense curve, or a bar.
fn key(out: &mut String, figure: &Figure, series: &Series, (x, y): (f64, f64)) {
    let style = &series.style;
    if figure.has_bars() {
        return bars::key(out, style, (x, y));
    }
    if series.points.len() > DENSE_POINTS {
        let dots = (0..6).map(|dot| dot_at((x + 3.0 + 6.0 * f64::from(dot), y), style));
        let _ = write!(out, r#"<path d="{}"{}/>"#, dots.collect::<String>(), dot_stroke(style));
        return;
    }
    let (dashes, marker) = (dashes(style), style.marker.path());
    let (x, middle, y) = (place(x), place(x + 18.0), place(y));
    let _ = write!(out, r#"<path d="M{x} {y}h36"{dashes}/><path d="M{middle} {y}{marker}"/>"#,);
}

/// Position of the axes.
pub(super) struct Frame {
    pub(super) top: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
}

impl Frame {
    pub(super) fn new(figure: &Figure, top: f64) -> Frame {
        let points = || figure.drawn().flat_map(|series| &series.points);
        let across: Vec<f64> = points().map(|point| point.x).collect();
        // Low interval ends do not extend the axis below its values, or only a little.
        let least = points().map(|point| point.y).fold(0.0, f64::min);
        let is_linear = figure.y.kind == AxisKind::Linear;
        let upwards: Vec<f64> = points()
            .flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                let low = low.max(if is_linear { least } else { point.y * LOW_END_SHARE });
                let range = point.range.unwrap_or((point.y, point.y));
                [low, point.y, high, range.0, range.1]
            })
            .collect();
        let x = Scale::over(figure.x.kind, &across, 8);
        let y = Scale::over(figure.y.kind, &upwards, 6);
        Frame { top, x, y }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }

    fn grid(&self, out: &mut String, x: &Axis, y: &Axis, letters: f64) {
        let (right, top, bottom) = (WIDTH - RIGHT, self.top, self.bottom());
        // Groups of bars need no lines.
        let ticks: &[f64] = if x.kind == AxisKind::Groups { &[] } else { &self.x.ticks };
        let lines = |values: &[f64], line: &dyn Fn(f64) -> String| {
            values.iter().map(|value| line(*value)).collect::<String>()
        };
        let across = |value| format!("M{LEFT} {}H{right}", place(self.y(value)));
        let upwards = |value| format!("M{} {top}V{bottom}", place(self.x(value)));
        let tick = |value| format!("M{} {bottom}v6", place(self.x(value)));
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"{}\" stroke=\"{FAINTER}\"/>\n\
             <path class=\"grid\" d=\"{}\" stroke=\"{FAINT}\"/>\n\
             <g class=\"x\">\n<path class=\"grid\" d=\"{}{}\" stroke=\"{FAINTER}\"/>\n\
             <path d=\"{}\" stroke=\"currentColor\"/>",
            lines(&self.y.minor, &across),
            lines(&self.y.ticks, &across),
            lines(&self.x.minor, &upwards),
            lines(ticks, &upwards),
            lines(ticks, &tick),
        );
        let under = bottom + letters + 20.0;
        for &value in &self.x.ticks {
            let (at, label) = (place(self.x(value)), x.kind.label(value));
            let _ =
                writeln!(out, r#"<text x="{at}" y="{under}" text-anchor="middle">{label}</text>"#);
        }
        let _ = writeln!(
            out,
            "</g>\n<path d=\"M{LEFT} {top}V{bottom}H{right}\" stroke=\"currentColor\" fill=\"none\"/>"
        );
        let left = LEFT - 9.0;
        for &value in &self.y.ticks {
            let (at, label) = (place(self.y(value) + 4.5), y.kind.label(value));
            let _ = writeln!(out, r#"<text x="{left}" y="{at}" text-anchor="end">{label}</text>"#);
        }
        let _ = writeln!(
            out,
            "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text class=\"axis\" transform=\"translate(15 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            place((LEFT + right) / 2.0),
            place(bottom + letters + 40.0),
            escape(&x.label),
            place(top + PLOT_HEIGHT / 2.0),
            escape(&y.label),
        );
    }

    /// Vertical position of the horizontal axis.
    pub(super) fn bottom(&self) -> f64 {
        self.top + PLOT_HEIGHT
    }

    /// The drawable points of a curve.
    pub(super) fn points<'a>(&self, series: &'a Series) -> Vec<&'a FigurePoint> {
        let drawable = |point: &&FigurePoint| self.x.shows(point.x) && self.y.shows(point.y);
        series.points.iter().filter(drawable).collect()
    }

    /// Opens the group of a curve. Trials and warnings common to all points are written once: the
    /// result states which are.
    pub(super) fn open(out: &mut String, series: &Series) -> (bool, bool) {
        let whole = |all: &dyn Fn(&FigurePoint) -> String| match series.points.split_first() {
            Some((first, more)) if more.iter().all(|point| all(point) == all(first)) => {
                Some(all(first))
            }
            _ => None,
        };
        let trials = whole(&|point| runs_of(&point.trials)).filter(|it| !it.is_empty());
        let warnings = whole(&|point| warned(point)).filter(|it| !it.is_empty());
        let attribute = |name: &str, value: Option<&String>| {
            value.map_or(String::new(), |it| format!(" data-{name}=\"{}\"", escape(it)))
        };
        let _ = writeln!(
            out,
            r#"<g data-s="{}"{}{}{} {}>"#,
            escape(&series.name),
            attribute("at", series.choice.as_ref()),
            attribute("t", trials.as_ref()),
            attribute("w", warnings.as_ref()),
            ink(&series.style),
        );
        (trials.is_some(), warnings.is_some())
    }

    /// Draws a curve, with the end of its name's baseline if it has a name.
    fn curve(&self, out: &mut String, series: &Series, name: Option<(f64, f64)>) {
        let (points, style) = (self.points(series), &series.style);
        let common = Frame::open(out, series);
        let is_dense = points.len() > DENSE_POINTS;
        if is_dense || style.marker == Marker::None {
            let path = if is_dense { self.dots(&points, style) } else { self.line(&points) };
            let pair = |it: &&FigurePoint| format!("{} {}", rounded(it.x), rounded(it.y));
            let values: Vec<String> = points.iter().map(pair).collect();
            let stroke = match is_dense {
                false => format!(r#" fill="none"{}"#, dashes(style)),
                true => dot_stroke(style).into(),
            };
            let _ = writeln!(out, r#"<path d="{path}" data-v="{}"{stroke}/>"#, values.join(" "));
        } else {
            let _ =
                writeln!(out, r#"<path fill="none" d="{}"{}/>"#, self.line(&points), dashes(style));
            for point in &points {
                self.mark(out, series, point, common);
            }
        }
        if let Some((x, y)) = name {
            let _ = writeln!(
                out,
                "<text class=\"halo\" x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"currentColor\" \
                 stroke=\"{PAPER}\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                place(x),
                place(y),
                escape(&series.name),
            );
        }
        out.push_str("</g>\n");
    }

    fn line(&self, points: &[&FigurePoint]) -> String {
        let at = |(index, it): (usize, &&FigurePoint)| {
            let letter = if index == 0 { 'M' } else { 'L' };
            format!("{letter}{} {}", place(self.x(it.x)), place(self.y(it.y)))
        };
        points.iter().enumerate().map(at).collect()
    }

    /// Unconnected points, if there are too many for markers.
    fn dots(&self, points: &[&FigurePoint], style: &Style) -> String {
        points.iter().map(|it| dot_at((self.x(it.x), self.y(it.y)), style)).collect()
    }
}

pub(super) fn dashes(style: &Style) -> String {
    match style.dashes {
        "" => String::new(),
        dashes => format!(r#" stroke-dasharray="{dashes}" stroke-linecap="round""#),
    }
}

/// A number with at most seven significant digits. Tables and CSV files have all digits.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// A coordinate with at most one decimal.
pub(super) fn place(value: f64) -> String {
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
