//! A figure's data for Python, as JSON: axes, and series with values and intervals.

use report::figure::{AxisKind, Figure, Marker, Series};
use serde_json::{Value, json};

/// Returns the data of a figure. `marker` is a marker of matplotlib.
pub fn json(figure: &Figure) -> String {
    json!({
        "id": figure.id,
        "title": figure.whole_title(),
        "x": { "label": figure.x.label, "kind": kind(figure.x.kind) },
        "y": { "label": figure.y.label, "kind": kind(figure.y.kind) },
        "choice": figure.choice,
        "series": figure.series.iter().map(series).collect::<Vec<Value>>(),
    })
    .to_string()
}

fn kind(kind: AxisKind) -> &'static str {
    match kind {
        AxisKind::Linear => "linear",
        AxisKind::Log => "log",
        AxisKind::LogAtPoints => "log_at_points",
        AxisKind::Percentile => "percentile",
        AxisKind::Groups => "groups",
    }
}

fn series(series: &Series) -> Value {
    let points = &series.points;
    let column = |of: fn(&report::figure::FigurePoint) -> Value| -> Vec<Value> {
        points.iter().map(of).collect()
    };
    let mut data = json!({
        "name": series.name,
        "colour": series.style.colour.light,
        "marker": marker(series.style.marker),
        "dashes": series.style.dashes,
        "choice": series.choice,
        "x": column(|point| point.x.into()),
        "y": column(|point| point.y.into()),
        "bound": column(|point| json!(point.bound)),
        "trials": column(|point| json!(point.trials)),
        "warnings": column(|point| json!(point.warnings)),
    });
    if points.iter().any(|point| point.interval.is_some()) {
        data["low"] = column(|point| json!(point.interval.map(|it| it.0))).into();
        data["high"] = column(|point| json!(point.interval.map(|it| it.1))).into();
    }
    data
}

fn marker(marker: Marker) -> &'static str {
    match marker {
        Marker::None => "",
        Marker::Circle => "o",
        Marker::Square => "s",
        Marker::Triangle => "^",
        Marker::Diamond => "D",
        Marker::Down => "v",
        Marker::Left => "<",
        Marker::Right => ">",
        Marker::Cross => "x",
        Marker::Plus => "+",
        Marker::Star => "*",
    }
}
