//! Finds what to do next: the one action that follows from the facts of a run.

use super::{Difference, Finding, reliability, results};
use crate::analysis::failed;
use record::{BoundCause, DisturbanceCause, Effort, Exclusion, Reason, Record};
use stats::conclude::{Conclusion, RELEVANT_RATIO};

/// Half width of a ratio's interval below which more repeats gain little, as a share.
const WIDTH_WANTED: f64 = RELEVANT_RATIO;

/// Limit of suggested repeats.
const REPEATS_MAX: u32 = 100;

/// What to do next, with the command where one does it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Remove the cause of failures, then repeat.
    Fix { command: String },
    /// Continue an interrupted run.
    Resume { done: u64, planned: Option<u64> },
    /// Stop what disturbs the tester, then repeat.
    Isolate { disturbed: usize, of: usize, command: String },
    /// Measure in real time.
    Live { command: String },
    /// Use a load that overloads every target.
    Overload { command: String },
    /// Give the tester more capacity.
    Strengthen { cause: BoundCause },
    /// Use more repeats; the half width of a ratio's interval then falls from one share to another.
    Repeat { repeats: u32, widths: Option<[f64; 2]>, command: String },
    /// Use more effort.
    Publish { effort: Effort, command: String },
    /// Compare later runs with this one.
    Baseline,
}

/// What follows for a run with this main difference.
pub(super) fn of(record: &Record, difference: Option<&Difference<'_>>) -> Next {
    let again = |changes: &[&str]| command(&record.command_line, changes);
    let of = record.trials_ended();
    let disturbed = reliability::disturbed(record).0.len();
    let isolate = |disturbed| Next::Isolate { disturbed, of, command: again(&[]) };
    if failed::failures(record).is_some() {
        return Next::Fix { command: again(&[]) };
    }
    if record.partial {
        return Next::Resume { done: of as u64, planned: record.trials_planned };
    }
    if let Some(Finding::NotUsable { disturbed, .. }) = results::unusable(record) {
        return isolate(disturbed as usize);
    }
    // A proxy has neither effort nor repeats.
    if !record.command_line.starts_with("planimeter run ") {
        return Next::Baseline;
    }
    let quick = (record.effort == Effort::Quick).then_some(Effort::Standard);
    let publish = quick.or((record.effort == Effort::Standard).then_some(Effort::Full));
    let publish = publish.filter(|_| !record.environment.simulated);
    let otherwise = || match publish {
        _ if 10 * disturbed > of => isolate(disturbed),
        Some(effort) => {
            let word = format!("--effort {}", super::effort(effort));
            Next::Publish { effort, command: again(&[&word]) }
        }
        None => Next::Baseline,
    };
    let excluded = record.cells.first().and_then(|cell| cell.exclusion);
    let reason = difference.and_then(|it| match it.conclusion {
        Conclusion::Undecided(reason) => Some(reason),
        _ => None,
    });
    match reason {
        _ if excluded == Some(Exclusion::Simulated) => {
            Next::Live { command: again(&["simulate=true"]) }
        }
        Some(Reason::Disturbed { cause: DisturbanceCause::Descheduled, .. }) => isolate(disturbed),
        Some(Reason::Bounded { bound }) => match bound.cause {
            BoundCause::LinkLimit if record.parameters.contains_key("capacity_bps") => {
                Next::Overload { command: again(&["--set capacity=auto"]) }
            }
            cause => Next::Strengthen { cause },
        },
        Some(Reason::MeasuredOnce | Reason::NoPair) => {
            let repeats = crate::analysis::REPEATS_WANTED;
            let command = again(&[&format!("--set repeats={repeats}")]);
            Next::Repeat { repeats, widths: None, command }
        }
        Some(Reason::Overlap) => match difference.and_then(repeats) {
            Some((repeats, widths)) => {
                let command = again(&[&format!("--set repeats={repeats}")]);
                Next::Repeat { repeats, widths: Some(widths), command }
            }
            None => otherwise(),
        },
        _ => otherwise(),
    }
}

/// Repeats that narrow the interval of a ratio until it decides, and the half widths before and after.
fn repeats(difference: &Difference<'_>) -> Option<(u32, [f64; 2])> {
    let ratio = &difference.ratio;
    let interval = ratio.interval?;
    let width = (interval.high - interval.low) / 2.0 / ratio.value;
    // The interval has to leave the band around 1, or to lie in it.
    let wanted = ((ratio.value - 1.0).abs() - WIDTH_WANTED).abs().max(WIDTH_WANTED);
    let needed = f64::from(ratio.n) * (width / wanted).powi(2);
    let repeats = (needed.ceil() as u32).clamp(2 * ratio.n, REPEATS_MAX.max(2 * ratio.n));
    let after = width * (f64::from(ratio.n) / f64::from(repeats)).sqrt();
    (width > 0.0).then_some((repeats, [width, after]))
}

/// The command of a run with other options. An option replaces an earlier one of its name; `--set`
/// options are added, and the last value of a key counts. A bare assignment is removed.
fn command(line: &str, changes: &[&str]) -> String {
    let mut line = line.to_string();
    for change in changes {
        let Some((option, value)) = change.split_once(' ') else {
            line = line.replace(&format!(" --set {change}"), "");
            continue;
        };
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|word| *word == option).filter(|_| option != "--set");
        line = match at {
            Some(at) => {
                [&words[..=at], &[value], &words[(at + 2).min(words.len())..]].concat().join(" ")
            }
            None => match line.rfind(" --seed ") {
                Some(at) => format!("{} {change}{}", &line[..at], &line[at..]),
                None => format!("{line} {change}"),
            },
        };
    }
    line
}
