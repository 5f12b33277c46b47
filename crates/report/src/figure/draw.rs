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

use super::palette::{Colour, Marker, Style};
use super::scale::Scale;
use super::{Axis, Figure, FigurePoint, Series};
use crate::sentence::runs_of;
use record::BoundSide;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 96.0;
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
/// Visible space above the plot in a page.
const ABOVE: f64 = 22.0;
/// Number of points above which a curve is drawn as dots.
const DENSE_POINTS: usize = 150;
/// Number of curves up to which each has its name at its end.
const LABELLED_CURVES: usize = 3;
/// Distance of two lines of text.
const LETTER_HEIGHT: f64 = 16.0;
/// Distance of a name from the interval at the end of its curve.
const NAME_APART: f64 = 8.0;
/// Half the size of a marker.
const MARKER: f64 = 5.0;
const WARNING: &str = "#a33a00";
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

/// Draws a line with its marker, for the legend of a page.
pub fn swatch(style: &Style) -> String {
    let mut out = format!(
        r#"<svg width="36" height="14" viewBox="0 0 36 14" aria-hidden="true" {}>"#,
        ink(style)
    );
    key(&mut out, style, 0.0, 7.0);
    out.push_str("</svg>");
    out
}

fn image(figure: &Figure, is_file: bool) -> String {
    let drawn: Vec<&Series> = figure.drawn().collect();
    let top = TITLE_HEIGHT + legend_height(&drawn);
    let height = top + PLOT_HEIGHT + BOTTOM;
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
    legend(&mut out, &drawn);
    out.push_str("</g>\n");
    frame.grid(&mut out, &figure.x, &figure.y);
    out.push_str("<g class=\"marks\">\n");
    let labels = frame.labels(&drawn);
    for (place, series) in drawn.iter().enumerate() {
        frame.curve(&mut out, series, labels.get(place).copied().flatten());
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

fn fill(is_filled: bool) -> &'static str {
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

/// Width of a curve's name.
fn name_width(series: &Series) -> f64 {
    LETTER * series.name.chars().count() as f64
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
        let _ = write!(out, "<g data-s=\"{}\"><g {}>", escape(&one.name), ink(&one.style));
        key(out, &one.style, x, y);
        let _ = writeln!(
            out,
            r#"</g><text x="{}" y="{}">{}</text></g>"#,
            place(x + LEGEND_TEXT_AT),
            place(y + 4.5),
            escape(&legend_name(one)),
        );
    }
}

/// A line with its marker.
fn key(out: &mut String, style: &Style, x: f64, y: f64) {
    let (dashes, marker) = (dashes(style), style.marker.path());
    let (x, middle, y) = (place(x), place(x + 18.0), place(y));
    let _ = write!(out, r#"<path d="M{x} {y}h36"{dashes}/><path d="M{middle} {y}{marker}"/>"#,);
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
        let (right, top, bottom) = (WIDTH - RIGHT, self.top, self.top + PLOT_HEIGHT);
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
            lines(&self.x.ticks, &upwards),
            lines(&self.x.ticks, &tick),
        );
        let under = bottom + 20.0;
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
            place(bottom + 40.0),
            escape(&x.label),
            place(top + PLOT_HEIGHT / 2.0),
            escape(&y.label),
        );
    }

    /// The drawable points of a curve.
    fn points<'a>(&self, series: &'a Series) -> Vec<&'a FigurePoint> {
        let drawable = |point: &&FigurePoint| self.x.shows(point.x) && self.y.shows(point.y);
        series.points.iter().filter(drawable).collect()
    }

    /// Heights of the names at the ends of few curves, apart from each other.
    fn labels(&self, drawn: &[&Series]) -> Vec<Option<f64>> {
        let mut heights = vec![None; drawn.len()];
        if drawn.len() > LABELLED_CURVES {
            return heights;
        }
        let span = |(index, one): (usize, &&Series)| {
            let points = self.points(one);
            let last = points.last().filter(|_| points.len() <= DENSE_POINTS)?;
            // The part of its own line that the name must not cover.
            let from = self.x(last.x) - name_width(one) - NAME_APART;
            let part = |pair: &[&FigurePoint]| {
                let [a, b] = [0, 1].map(|it| self.x(pair[it].x));
                let [above, below] = [0, 1].map(|it| self.y(pair[it].y));
                let share = ((from - a) / (b - a)).clamp(0.0, 1.0);
                [above + share * (below - above), below]
            };
            let pairs = points.windows(2).filter(|pair| self.x(pair[1].x) > from);
            let heights: Vec<f64> = pairs.flat_map(part).chain([self.y(last.y)]).collect();
            let least = heights.iter().copied().fold(f64::INFINITY, f64::min);
            Some((index, least, heights.into_iter().fold(0.0, f64::max)))
        };
        let mut spans: Vec<(usize, f64, f64)> = drawn.iter().enumerate().filter_map(span).collect();
        spans.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut free = self.top + 10.0;
        for (place, &(index, above, below)) in spans.iter().enumerate() {
            // The lowest of several curves has its name below.
            let is_lowest = place > 0 && place + 1 == spans.len();
            let height =
                if is_lowest { below + LETTER_HEIGHT + 4.0 } else { above - 10.0 }.max(free);
            heights[index] = Some(height.min(self.top + PLOT_HEIGHT - 6.0));
            free = height + LETTER_HEIGHT;
        }
        heights
    }

    fn curve(&self, out: &mut String, series: &Series, label: Option<f64>) {
        let points = self.points(series);
        let style = &series.style;
        let whole = |all: &dyn Fn(&FigurePoint) -> String| match series.points.split_first() {
            Some((first, more)) if more.iter().all(|point| all(point) == all(first)) => {
                Some(all(first))
            }
            _ => None,
        };
        // Trials and warnings common to all points are written once.
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
            ink(style),
        );
        let is_dense = points.len() > DENSE_POINTS;
        if is_dense || style.marker == Marker::None {
            let path = if is_dense { self.dots(&points, style) } else { self.line(&points) };
            let pair = |it: &&FigurePoint| format!("{} {}", rounded(it.x), rounded(it.y));
            let values: Vec<String> = points.iter().map(pair).collect();
            let stroke = match (is_dense, style.dashes.is_empty()) {
                (false, _) => format!(r#" fill="none"{}"#, dashes(style)),
                (true, true) => r#" stroke-width="2.6" stroke-linecap="round""#.into(),
                (true, false) => r#" stroke-width="1.1""#.into(),
            };
            let _ = writeln!(out, r#"<path d="{path}" data-v="{}"{stroke}/>"#, values.join(" "));
        } else {
            let _ =
                writeln!(out, r#"<path fill="none" d="{}"{}/>"#, self.line(&points), dashes(style));
            for point in &points {
                self.mark(out, series, point, (trials.is_some(), warnings.is_some()));
            }
        }
        if let (Some(y), Some(last)) = (label, points.last()) {
            let x = (self.x(last.x) - NAME_APART).max(LEFT + name_width(series));
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

    /// Unconnected points, if there are too many for markers: dots, or short vertical strokes for
    /// dashed curves.
    fn dots(&self, points: &[&FigurePoint], style: &Style) -> String {
        let dot = if style.dashes.is_empty() { "h0" } else { "m0 -2.5v5" };
        let at =
            |it: &&FigurePoint| format!("M{} {}{dot}", place(self.x(it.x)), place(self.y(it.y)));
        points.iter().map(at).collect()
    }

    /// A marker with its interval, and the ring of a warning. `common` tells whether trials and
    /// warnings are at the curve.
    fn mark(&self, out: &mut String, series: &Series, point: &FigurePoint, common: (bool, bool)) {
        let (x, y) = (place(self.x(point.x)), self.y(point.y));
        let mut path = format!("M{x} {}{}", place(y), series.style.marker.path());
        let mut values = format!("{} {}", rounded(point.x), rounded(point.y));
        let finite = |it: &(f64, f64)| it.0.is_finite() && it.1.is_finite();
        if let Some((low, high)) = point.interval.filter(finite) {
            let _ = write!(values, " {} {}", rounded(low), rounded(high));
            // The marker covers a short interval.
            for (end, side) in [(self.y(low), MARKER), (self.y(high), -MARKER)] {
                if (end - y) / side > 1.0 {
                    let _ = write!(path, "M{x} {}V{}m-4 0h8", place(y + side), place(end));
                }
            }
        }
        match point.bound {
            Some(BoundSide::Lower) => {
                let _ = write!(path, "M{x} {}v-12m-3.5 5l3.5 -5l3.5 5", place(y - MARKER));
            }
            Some(BoundSide::Upper) => {
                let _ = write!(path, "M{x} {}v12m-3.5 -5l3.5 5l3.5 -5", place(y + MARKER));
            }
            None => {}
        }
        let trials = match common.0 || point.trials.is_empty() {
            true => String::new(),
            false => format!(r#" data-t="{}""#, runs_of(&point.trials)),
        };
        let bound = if point.bound.is_some() { r#" data-bound="""# } else { "" };
        let hollow = if point.bound.is_some() { fill(false) } else { "" };
        let warnings = if common.1 { String::new() } else { warned(point) };
        let _ = writeln!(
            out,
            r#"<path d="{path}"{hollow} data-v="{values}"{trials}{bound}><title>{}{}</title></path>"#,
            escape(&point.note),
            escape(&warnings),
        );
        if series.has_ring(point) {
            let _ = writeln!(
                out,
                r#"<path class="ring" fill="none" d="M{x} {}m-9 0a9 9 0 1 0 18 0a9 9 0 1 0 -18 0z" stroke="{WARNING}" stroke-dasharray="3 2"/>"#,
                place(y),
            );
        }
    }
}

impl Marker {
    /// Its outline around the current position.
    fn path(self) -> &'static str {
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

fn dashes(style: &Style) -> String {
    match style.dashes {
        "" => String::new(),
        dashes => format!(r#" stroke-dasharray="{dashes}" stroke-linecap="round""#),
    }
}

/// Warnings of a point, for its tooltip.
fn warned(point: &FigurePoint) -> String {
    point.warnings.iter().map(|warning| format!(" \u{26a0} {warning}")).collect()
}

/// A number with at most seven significant digits. Tables and CSV files have all digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
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
