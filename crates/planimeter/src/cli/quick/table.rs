//! Table of forwarding rates with bars, for a terminal of 80 columns without colours.
//!
//! Invariants:
//! - Each value has its interval, as in the report.
//! - `!` marks a value with a disturbance or a warning, and sentences below the table give the reason.

use record::{Cell, Exclusion, LEVEL_PERCENT, Metric, Record, Warning, number};
use report::finding;
use workload::parameter::shared;

/// Width of the output, in columns.
const WIDTH: usize = 80;

/// Shortest and longest length of the longest bar, in columns. Without room for the shortest there
/// are no bars.
const BAR: (usize, usize) = (5, 30);

/// Parts of a column that a bar can fill, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Formats the forwarding rates of a run: a heading, a row for each target and table size, and the
/// verdict.
pub fn text(record: &Record) -> String {
    let mut out = String::new();
    for experiment in &record.experiments {
        let shown = Metric::RatePpsForwarded;
        let is_shown = |cell: &&Cell| cell.experiment == experiment.id && cell.metric == shown;
        let cells: Vec<&Cell> = record.cells.iter().filter(is_shown).collect();
        let Some(first) = cells.first() else { continue };
        let frame = experiment.parameters.get(shared::FRAMES.key);
        let frame = frame.map(|bytes| format!("{bytes}-byte frames, ")).unwrap_or_default();
        let repeats = number::counted(first.n.into(), "repeat");
        out += &format!("{} over {} ({frame}{repeats})\n\n", experiment.title, record.link);
        out += &rows(&cells);
    }
    for sentence in finding::sentences(record) {
        out += &format!("\n{}", wrapped(&sentence).join("\n  "));
    }
    out.push('\n');
    out
}

/// Formats a heading, and a row for each value.
fn rows(cells: &[&Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let unit = number::shown(first.metric).unit.to_string();
    let level = format!("{LEVEL_PERCENT} % interval");
    let mut rows = vec![["target".into(), first.point.name.replace('_', " "), unit, level]];
    rows.extend(cells.iter().map(|cell| {
        let curve = cell.point.within.as_ref().map(|it| format!(", {}", number::curve(it)));
        let name = format!("{}{}", cell.target, curve.unwrap_or_default());
        let interval = cell.interval.map(|it| number::interval(cell.metric, &it));
        let interval = interval.unwrap_or_else(|| format!("n={}", cell.n));
        [name, number::setting(cell.point.value), number::of_cell(cell), interval]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let [name, point, value, range] = [0, 1, 2, 3].map(|column| width(column).unwrap_or(0));
    let room = WIDTH.saturating_sub(name + point + value + range + "       ! ".len());
    let room = if room < BAR.0 { 0 } else { room.min(BAR.1) };
    let top = cells.iter().map(|cell| cell.value).fold(0.0, f64::max);
    let ends = std::iter::once(String::new()).chain(cells.iter().map(|cell| {
        let mark = if is_marked(cell) { '!' } else { ' ' };
        format!("{mark} {}", bar(cell.value / top, room))
    }));
    let lines = rows.iter().zip(ends).map(|([target, at, rate, ends], end)| {
        let line = format!("{target:name$}  {at:>point$}  {rate:>value$}  {ends:range$} {end}");
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Returns a bar with this share of the full length.
fn bar(share: f64, length: usize) -> String {
    let eighths = (share * length as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Whether a value is disturbed or has a warning.
fn is_marked(cell: &Cell) -> bool {
    // A bound expresses that the tester limited the value.
    let is_told =
        |it: &Warning| cell.bound.is_some() && matches!(it, Warning::TesterLimited { .. });
    !cell.disturbances.is_empty()
        || cell.warnings.iter().any(|it| !is_told(it))
        || matches!(cell.exclusion, Some(Exclusion::RunDisturbed { .. }))
}

/// Wraps a text to the width of the output, with room for an indentation.
pub fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is at least one line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() > WIDTH - 2 {
            lines.push(word.into());
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{
        Bound, BoundCause, BoundSide, Disturbance, DisturbanceCause, Interval, IntervalMethod,
        Point,
    };

    /// A value in frames per second with an interval of 10 %.
    fn cell(target: &str, entries: f64, value: f64) -> Cell {
        let interval = Interval {
            low: value * 0.9,
            high: value * 1.1,
            level_percent: LEVEL_PERCENT,
            method: IntervalMethod::StudentT,
        };
        Cell {
            experiment: "forwarding-rate".into(),
            target: target.into(),
            link: None,
            point: Point::new("entries", entries),
            metric: Metric::RatePpsForwarded,
            unit: "pps".into(),
            value,
            n: 3,
            interval: Some(interval),
            interval_99: None,
            resolution: None,
            samples: vec![value; 3],
            repeats: vec![1, 2, 3],
            trials: vec![1, 2, 3],
            limit: None,
            bound: None,
            disturbances: Vec::new(),
            exclusion: None,
            warnings: Vec::new(),
        }
    }

    fn bounded(cell: Cell) -> Cell {
        let bound = Bound { side: BoundSide::Lower, cause: BoundCause::TesterLimit };
        let limited =
            Warning::TesterLimited { rate_pps_intended: 14_880_952.0, rate_pps_offered: 4e6 };
        Cell { bound: Some(bound), warnings: vec![limited], ..cell }
    }

    fn disturbed(cell: Cell) -> Cell {
        let cause = DisturbanceCause::Descheduled;
        Cell { disturbances: vec![Disturbance { cause, repeats: vec![2, 3] }], ..cell }
    }

    #[test]
    fn rows_have_interval_bound_mark_and_a_proportional_bar() {
        let cells = [
            bounded(cell("bridge", 1.0, 4e6)),
            disturbed(cell("bridge", 131_072.0, 2e6)),
            cell("router", 131_072.0, 0.5e6),
        ];
        let text = rows(&cells.iter().collect::<Vec<_>>()).replace('\u{202f}', " ");
        let expected = "\
target  entries     frames/s  95 % interval
bridge        1  ≥ 4 000 000  [3 600 000, 4 400 000]   █████████████████████████
bridge  131 072    2 000 000  [1 800 000, 2 200 000] ! ████████████▌
router  131 072      500 000  [450 000, 550 000]       ███▏
";
        assert_eq!(text, expected);
    }

    #[test]
    fn rows_fit_the_terminal_with_or_without_bars() {
        let named = |name: &str| {
            let cells = [cell(name, 131_072.0, 56_789_000.0), cell(name, 1.0, 0.0)];
            rows(&[&bounded(cells[0].clone()), &cells[1]])
        };
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        let text = named("linux-router");
        assert!(widest(&text) <= WIDTH && text.contains('█'), "{text}");
        let text = named("a-target-with-a-long-name");
        assert!(widest(&text) <= WIDTH && !text.contains('█'), "{text}");
    }

    #[test]
    fn values_of_zero_and_single_trials_are_shown() {
        let once = Cell { n: 1, interval: None, ..cell("bridge", 1.0, 0.0) };
        let text = rows(&[&once]);
        assert!(text.ends_with("bridge        1         0  n=1\n"), "{text}");
    }

    #[test]
    fn a_disturbed_run_marks_every_value() {
        let exclusion = Some(Exclusion::RunDisturbed { trials: 5, of: 6 });
        let cell = disturbed(Cell { exclusion, ..cell("bridge", 1.0, 1e6) });
        assert!(rows(&[&cell]).contains('!'));
    }

    #[test]
    fn long_sentences_are_wrapped() {
        let lines = wrapped(&"word ".repeat(40));
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= WIDTH - 2), "{lines:?}");
    }
}
