//! A comparison for a terminal.
//!
//! Invariant: all cells with a gate and all cells that differ are printed. Other cells are printed
//! up to a limit.

use std::fmt::Write;

use super::{CellContrast, Comparison, Verdict, words};
use record::number;

/// Maximum number of lines for cells without a gate.
const LINES_MAX: usize = 40;

/// Formats the comparison as lines.
pub fn text(contrast: &Comparison) -> String {
    let mut out = String::new();
    for (word, side) in [("base", &contrast.base), ("new", &contrast.new)] {
        let versions = side.targets.iter().map(|(name, version)| match version {
            Some(version) => format!("{name} {version}"),
            None => name.clone(),
        });
        let versions = versions.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "{word:4}  {}: {versions}, {}", side.name, side.created);
    }
    contrast.remarks.iter().for_each(|remark| out += &format!("note: {remark}\n"));
    let gated = contrast.cells.iter().filter(|cell| !cell.gates.is_empty());
    for cell in gated {
        for (at, gate) in cell.gates.iter().enumerate() {
            let _ = writeln!(
                out,
                "\n{} {}: {} — {}\n  {}",
                words::outcome(gate.outcome).to_uppercase(),
                gate.gate,
                words::place(cell),
                words::reason(cell, at),
                numbers(cell)
            );
        }
    }
    let others = contrast.cells.iter().filter(|cell| cell.gates.is_empty());
    let mut others: Vec<&CellContrast> = others.collect();
    others.sort_by_key(|cell| cell.verdict == Verdict::Same);
    if !others.is_empty() {
        out.push_str("\nwithout a gate\n");
    }
    for cell in others.iter().take(LINES_MAX) {
        let doubts = if cell.doubts.is_empty() { "" } else { " (doubtful)" };
        let verdict = words::verdict(cell.verdict);
        let _ = writeln!(out, "  {verdict:12}  {}: {}{doubts}", words::place(cell), numbers(cell));
    }
    if others.len() > LINES_MAX {
        let _ = writeln!(out, "  and {} more: --json has all", others.len() - LINES_MAX);
    }
    for (side, names) in [("base", &contrast.only_base), ("new side", &contrast.only_new)] {
        for name in names.iter().take(LINES_MAX) {
            let _ = writeln!(out, "only the {side} has {name}");
        }
        if names.len() > LINES_MAX {
            let _ = writeln!(out, "and {} more: --json has all", names.len() - LINES_MAX);
        }
    }
    let _ = writeln!(out, "\n{}\n{}", words::method(contrast), words::headline(contrast));
    words::plain(&out)
}

/// The numbers of a cell on one line.
fn numbers(cell: &CellContrast) -> String {
    let [base, new] = words::values(cell);
    let unit = number::shown(cell.metric).unit;
    let title = number::title(cell.metric);
    format!("{title} {base} → {new} {unit}, {}, n={}", words::effect(cell), cell.n)
}
