//! A comparison as JUnit XML for CI systems. Each gate at each cell is a test case.
//!
//! Source: the schema that Jenkins and its xunit plugin read (`testsuites/testsuite/testcase` with
//! `failure`, `error`, `skipped`). A failed gate is a failure, a doubtful one an error, and an
//! inconclusive one is skipped with a reason. Invariant: names are ASCII, because CI systems
//! compare them from run to run and some read them as Latin-1.

use maud::{Markup, html};

use super::{CellContrast, Comparison, words};
use crate::gate::Outcome;

/// The comparison as XML.
pub fn junit(contrast: &Comparison) -> String {
    junit_of("planimeter compare", &[("", contrast)])
}

/// Several comparisons as one file. Each has a prefix for the names of its suites.
pub fn junit_of(name: &str, all: &[(&str, &Comparison)]) -> String {
    let cells: Vec<&CellContrast> = all.iter().flat_map(|(_, contrast)| &contrast.cells).collect();
    let suites: Vec<(String, &str, Vec<&CellContrast>)> =
        all.iter().flat_map(|(label, contrast)| suites(label, contrast)).collect();
    let body = html! {
        testsuites name=(ascii(name)) tests=(tests(&cells)) failures=(count(&cells, Outcome::Failed))
            errors=(count(&cells, Outcome::Doubtful)) skipped=(count(&cells, Outcome::Inconclusive)) {
            @for (name, created, own) in &suites {
                testsuite name=(ascii(name)) tests=(tests(own)) failures=(count(own, Outcome::Failed))
                    errors=(count(own, Outcome::Doubtful)) skipped=(count(own, Outcome::Inconclusive))
                    timestamp=(legal(created)) {
                    @for cell in own { @for at in 0..cell.gates.len() { (test(cell, at)) } }
                }
            }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", body.into_string())
}

/// The experiments of a comparison with their cells.
fn suites<'a>(
    label: &str,
    contrast: &'a Comparison,
) -> Vec<(String, &'a str, Vec<&'a CellContrast>)> {
    let mut experiments: Vec<&str> =
        contrast.cells.iter().map(|cell| cell.experiment.as_str()).collect();
    experiments.sort_unstable();
    experiments.dedup();
    let suite = |experiment: &str| {
        let cells = contrast.cells.iter().filter(|cell| cell.experiment == experiment).collect();
        let gap = if label.is_empty() { "" } else { ": " };
        (format!("{label}{gap}{experiment}"), contrast.new.created.as_str(), cells)
    };
    experiments.into_iter().map(suite).collect()
}

fn tests(cells: &[&CellContrast]) -> usize {
    cells.iter().map(|it| it.gates.len()).sum()
}

fn count(cells: &[&CellContrast], outcome: Outcome) -> usize {
    let gates = cells.iter().flat_map(|cell| &cell.gates);
    gates.filter(|gate| gate.outcome == outcome).count()
}

fn test(cell: &CellContrast, at: usize) -> Markup {
    let gate = &cell.gates[at];
    let name = format!("{} at {}, {}", gate.gate, words::point(&cell.point), cell.target);
    let [base, new] = words::values(cell);
    let unit = record::number::shown(cell.metric).unit;
    let numbers = format!("{base} → {new} {unit}, {}, n={}", words::effect(cell), cell.n);
    let reason = legal(&words::reason(cell, at));
    html! {
        testcase classname=(ascii(&cell.experiment)) name=(ascii(&name)) {
            @match gate.outcome {
                Outcome::Failed => failure type="gate" message=(reason) { (legal(&numbers)) },
                Outcome::Doubtful => error type="doubtful" message=(reason) { (legal(&numbers)) },
                Outcome::Inconclusive => skipped message=(format!("inconclusive: {reason}")) {},
                Outcome::Passed => {},
            }
            system-out { (legal(&numbers)) }
        }
    }
}

/// Converts text to ASCII: removes thousands separators and writes other characters as their code
/// points.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for letter in legal(text).chars() {
        match letter {
            '\u{202f}' => {}
            '\u{2212}' => out.push('-'),
            '\u{b5}' | '\u{3bc}' => out.push('u'),
            '\u{2192}' => out.push_str("->"),
            letter if letter.is_ascii() => out.push(letter),
            letter => out.extend(letter.escape_unicode()),
        }
    }
    out
}

/// Removes characters that XML 1.0 does not allow (section 2.2).
fn legal(text: &str) -> String {
    let is_legal =
        |letter: &char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(is_legal).collect()
}
