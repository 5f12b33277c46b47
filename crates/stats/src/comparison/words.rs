//! Texts of a comparison that all output formats share.

use super::{CellContrast, Comparison, Verdict};
use crate::gate::Outcome;
use record::Point;
use record::number;

/// Name of a verdict.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Same => "same",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// Name of a gate's outcome.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed => "failed",
        Outcome::Doubtful => "doubtful",
        Outcome::Inconclusive => "inconclusive",
        Outcome::Passed => "passed",
    }
}

/// Text for a point, with its variable.
pub(super) fn point(point: &Point) -> String {
    let curve = point.within.as_ref().map(|it| format!(", {}", number::curve(it)));
    let (axis, value) = (number::axis(&point.name), number::setting(point.value));
    let at = match axis.split_once(", ") {
        Some((what, unit)) => format!("{what} {value} {unit}"),
        None => format!("{axis} {value}"),
    };
    format!("{at}{}", curve.unwrap_or_default())
}

/// Position of a cell: experiment, point and target.
pub fn place(cell: &CellContrast) -> String {
    format!("{}, {}, {}", cell.experiment, point(&cell.point), cell.target)
}

/// A change in percent, signed.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let text = format!("{:.*}", if percent.abs() < 9.995 { 2 } else { 1 }, percent.abs());
    let is_none = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if is_none {
        "±"
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{text} %")
}

/// A cell's change with its interval: `−5.01 % [−5.40, −4.60]`.
pub fn effect(cell: &CellContrast) -> String {
    let Some(ratio) = cell.ratio else { return "no ratio".into() };
    let end = |ratio| change(ratio).trim_end_matches(" %").to_string();
    match cell.interval {
        Some(interval) => {
            format!("{} [{}, {}]", change(ratio), end(interval.low), end(interval.high))
        }
        None => format!("{} (n={})", change(ratio), cell.n),
    }
}

/// Both values, in the metric's unit.
pub fn values(cell: &CellContrast) -> [String; 2] {
    [cell.base, cell.new].map(|value| number::value(cell.metric, value))
}

/// Explains a gate's outcome beyond the numbers.
pub(super) fn reason(cell: &CellContrast, at: usize) -> String {
    let gated = &cell.gates[at];
    let first = gated
        .ratio_first
        .map(|first| format!("; measured again: the first measurement gave {}", change(first)));
    let why = match gated.outcome {
        Outcome::Failed => "the whole interval is beyond the gate".to_string(),
        Outcome::Passed => "the interval is within the gate".to_string(),
        Outcome::Inconclusive if cell.interval.is_none() => {
            "one repeat has no interval (hint: measure more repeats)".to_string()
        }
        Outcome::Inconclusive => {
            "the interval contains the bound of the gate (hint: measure more repeats)".to_string()
        }
        Outcome::Doubtful => cell.doubts.join("; "),
    };
    format!("{why}{}", first.unwrap_or_default())
}

/// Maximum number of cells in a headline.
const NAMED_MAX: usize = 3;

/// A cell with its metric and change: `forwarding-rate, packet size 64 bytes, switch: forwarding rate −5.01 %`.
pub fn named(cell: &CellContrast) -> String {
    let title = number::title(cell.metric);
    format!("{}: {title} {}", place(cell), cell.ratio.map_or("no ratio".into(), change))
}

/// The result in one line.
pub fn headline(contrast: &Comparison) -> String {
    let count = |said| contrast.cells_that(said);
    let counts: Vec<String> =
        [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::Inconclusive]
            .into_iter()
            .filter(|it| count(*it) > 0)
            .map(|it| format!("{} {}", count(it), verdict(it)))
            .collect();
    let gates = match contrast.outcome() {
        None => "no gate applies".to_string(),
        Some(worst) => {
            let all = [Outcome::Failed, Outcome::Doubtful, Outcome::Inconclusive, Outcome::Passed];
            let told: Vec<String> = all
                .into_iter()
                .filter(|it| contrast.gates_that(*it) > 0)
                .map(|it| format!("{} {}", contrast.gates_that(it), outcome(it)))
                .collect();
            format!("gates {}: {}", outcome(worst), told.join(", "))
        }
    };
    let worse = match contrast.worse.len() {
        0 => String::new(),
        n if n <= NAMED_MAX => format!("; worse: {}", contrast.worse.join("; ")),
        n => {
            let (named, more) = (contrast.worse[..NAMED_MAX].join("; "), n - NAMED_MAX);
            format!("; worse: {named}; and {more} more")
        }
    };
    format!("{} ({}); {gates}{worse}", verdict(contrast.verdict), counts.join(", "))
}

/// Describes the method of measurement and evaluation in a sentence.
pub fn method(contrast: &Comparison) -> String {
    let how = match (contrast.is_interleaved, &contrast.again) {
        (true, Some(_)) => {
            "The trials of both sides are interleaved in one run and compared in pairs. Results \
             that did not clearly pass were measured again, and that measurement decides."
        }
        (true, None) => {
            "The trials of both sides are interleaved in one run and compared in pairs."
        }
        (false, _) => {
            "The sides were measured in separate runs, so the difference includes changes of the \
             machine. Two runs of the same target are assumed to differ by 0.5 %."
        }
    };
    format!(
        "{how} A cell is better or worse if it differs by more than 1 %. If the sides are equal, at \
         most {} % of comparisons report such a cell, over all {} cells together (Bonferroni). \
         Each interval has a confidence level of 95 %.",
        contrast.false_percent,
        contrast.cells.len()
    )
}

/// Removes control characters, because names come from outside and a terminal interprets them.
pub(super) fn plain(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() && letter != '\n', " ")
}
