//! A figure's data for the page's script, as JSON that is safe inside HTML.
//!
//! Invariant: no text can close its HTML element, and numbers keep the digits that an image can
//! show.

use serde_json::{Map, Value, json};

use super::{AxisKind, Figure, FigurePoint, Marker, Series};

/// Significant digits in figures. Tables and CSV files contain all digits.
const DIGITS: i32 = 7;

/// The figure as JSON without `<`, `>` and `&`.
pub fn json(figure: &Figure) -> String {
    let value = json!({
        "id": figure.id,
        "title": figure.whole_title(),
        "x": { "label": figure.x.label, "kind": kind(figure.x.kind) },
        "y": { "label": figure.y.label, "kind": kind(figure.y.kind) },
        "choice": figure.choice,
        "series": figure.series.iter().map(series).collect::<Vec<Value>>(),
    });
    let text = value.to_string();
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn kind(kind: AxisKind) -> &'static str {
    match kind {
        AxisKind::Linear => "linear",
        AxisKind::Log => "log",
        AxisKind::LogAtPoints => "log_at_points",
        AxisKind::Percentile => "percentile",
    }
}

/// Warnings common to all points are written once.
fn series(series: &Series) -> Value {
    let mut out = Map::new();
    let points = &series.points;
    let column = |of: &dyn Fn(&FigurePoint) -> Value| Value::Array(points.iter().map(of).collect());
    out.insert("name".into(), series.name.clone().into());
    out.insert("colour".into(), series.style.colour.into());
    out.insert("marker".into(), marker(series.style.marker).into());
    out.insert("filled".into(), series.style.filled.into());
    out.insert("dashes".into(), series.style.dashes.into());
    out.insert("choice".into(), series.choice.clone().into());
    out.insert("x".into(), column(&|point| rounded(point.x)));
    out.insert("y".into(), column(&|point| rounded(point.y)));
    if points.iter().any(|point| point.interval.is_some()) {
        let end = |of: fn((f64, f64)) -> f64| {
            column(&move |point| point.interval.map_or(Value::Null, |it| rounded(of(it))))
        };
        out.insert("low".into(), end(|it| it.0));
        out.insert("high".into(), end(|it| it.1));
    }
    if points.iter().any(|point| point.bound.is_some()) {
        let side = |point: &FigurePoint| json!(point.bound);
        out.insert("bound".into(), column(&side));
    }
    if points.len() <= super::draw::DENSE_POINTS && points.iter().any(|it| !it.note.is_empty()) {
        out.insert("note".into(), column(&|point| point.note.clone().into()));
    }
    for (name, of) in [
        ("trials", (|it| json!(it.trials)) as fn(&FigurePoint) -> Value),
        ("warnings", |it| json!(it.warnings)),
    ] {
        let all: Vec<Value> = points.iter().map(of).collect();
        match all.first() {
            Some(first) if all.iter().all(|one| one == first) => {
                out.insert(name.into(), json!([first]));
            }
            _ => {
                out.insert(name.into(), Value::Array(all));
            }
        }
    }
    Value::Object(out)
}

/// A number that JSON can represent, or null.
fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0);
    }
    let digits = DIGITS - 1 - value.abs().log10().floor() as i32;
    let near: f64 = match digits {
        0..=300 => format!("{value:.*}", digits as usize).parse().unwrap_or(value),
        _ => value.round(),
    };
    if near.fract() == 0.0 && near.abs() < 1e15 { json!(near as i64) } else { json!(near) }
}

fn marker(marker: Marker) -> &'static str {
    match marker {
        Marker::None => "none",
        Marker::Circle => "circle",
        Marker::Square => "square",
        Marker::Triangle => "triangle-up",
        Marker::Diamond => "diamond",
        Marker::Down => "triangle-down",
        Marker::Cross => "x-thin",
        Marker::Plus => "cross-thin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_digits_and_are_valid_json() {
        let shown = [1_234_567.89, 0.000_123_456_789, 0.0, -2.5, 1e300, f64::NAN, f64::INFINITY];
        let shown: Vec<String> = shown.into_iter().map(|it| rounded(it).to_string()).collect();
        assert_eq!(shown, ["1234568", "0.0001234568", "0", "-2.5", "1e+300", "null", "null"]);
    }
}
