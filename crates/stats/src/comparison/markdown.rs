//! A comparison as Markdown for a pull request comment.
//!
//! Invariants:
//!
//! - The verdict comes first.
//! - A comment is always shorter than the limit of common forges (65,536 characters).
//! - External text cannot leave its table cell.

use std::fmt::Write;

use super::{CellContrast, Comparison, Verdict, words};
use crate::gate::Outcome;
use record::number;

/// Maximum number of rows per table.
const ROWS_MAX: usize = 60;

/// Formats the comparison as a comment.
pub fn markdown(contrast: &Comparison) -> String {
    let mark = match contrast.outcome() {
        Some(Outcome::Failed) => "❌",
        Some(Outcome::Doubtful | Outcome::Inconclusive) => "⚠️",
        Some(Outcome::Passed) | None => "✅",
    };
    let mut out = format!("### {mark} planimeter: {}\n\n", safe(&words::headline(contrast)));
    let _ = writeln!(
        out,
        "`{}` against `{}`. {}\n",
        code(&contrast.new.name),
        code(&contrast.base.name),
        words::method(contrast)
    );
    contrast.remarks.iter().for_each(|remark| out += &format!("- {}\n", safe(remark)));
    for worse in contrast.worse.iter().take(ROWS_MAX) {
        let _ = writeln!(out, "- **worse**: {}", safe(worse));
    }
    gates(&mut out, contrast);
    rest(&mut out, contrast);
    for (side, names) in [("base", &contrast.only_base), ("new side", &contrast.only_new)] {
        if !names.is_empty() {
            let shown: Vec<String> = names.iter().take(ROWS_MAX).map(|name| safe(name)).collect();
            let _ = writeln!(out, "\nOnly the {side} has {}.", shown.join("; "));
        }
    }
    let commands: Vec<String> = [&contrast.base.command_line, &contrast.new.command_line]
        .into_iter()
        .chain(contrast.again.as_ref())
        .map(|line| safe(line).replace("`", "'"))
        .collect();
    let mut told: Vec<&String> = commands.iter().collect();
    told.dedup();
    out.push_str("\n<details><summary>How to repeat this</summary>\n\n```\n");
    told.iter().for_each(|line| out += &format!("{line}\n"));
    out.push_str("```\n\n</details>\n");
    out
}

fn gates(out: &mut String, contrast: &Comparison) {
    let rows: Vec<(&CellContrast, usize)> = contrast
        .cells
        .iter()
        .flat_map(|cell| (0..cell.gates.len()).map(move |at| (cell, at)))
        .collect();
    if rows.is_empty() {
        return;
    }
    let mut rows = rows;
    rows.sort_by_key(|(cell, at)| cell.gates[*at].outcome as u8);
    out.push_str(
        "\n| gate | where | base | new | change (95 %) | outcome |\n|---|---|--:|--:|--:|---|\n",
    );
    for (cell, at) in rows.iter().take(ROWS_MAX) {
        let gate = &cell.gates[*at];
        let [base, new] = shown(cell);
        let why = match gate.outcome {
            Outcome::Passed if gate.ratio_first.is_none() => String::new(),
            _ => format!(": {}", safe(&words::reason(cell, *at))),
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {base} | {new} | {} | **{}**{why} |",
            gate.gate,
            safe(&words::place(cell)),
            words::effect(cell),
            words::outcome(gate.outcome)
        );
    }
    if rows.len() > ROWS_MAX {
        let _ = writeln!(out, "\nand {} more.", rows.len() - ROWS_MAX);
    }
}

fn rest(out: &mut String, contrast: &Comparison) {
    let mut others: Vec<&CellContrast> =
        contrast.cells.iter().filter(|cell| cell.gates.is_empty()).collect();
    if others.is_empty() {
        return;
    }
    others.sort_by_key(|cell| cell.verdict == Verdict::Same);
    let _ = write!(
        out,
        "\n<details><summary>{} results without a gate</summary>\n\n| what | where | base | new | change (95 %) | \
         |\n|---|---|--:|--:|--:|---|\n",
        others.len()
    );
    for cell in others.iter().take(ROWS_MAX) {
        let [base, new] = shown(cell);
        let _ = writeln!(
            out,
            "| {} | {} | {base} | {new} | {} | {} |",
            number::title(cell.metric),
            safe(&words::place(cell)),
            words::effect(cell),
            words::verdict(cell.verdict)
        );
    }
    if others.len() > ROWS_MAX {
        let _ = writeln!(out, "\nand {} more.", others.len() - ROWS_MAX);
    }
    out.push_str("\n</details>\n");
}

fn shown(cell: &CellContrast) -> [String; 2] {
    let unit = number::shown(cell.metric).unit;
    words::values(cell).map(|value| format!("{value} {unit}"))
}

/// Escapes text for a table cell.
fn safe(text: &str) -> String {
    const LETTERS_MAX: usize = 300;
    let mut out = String::new();
    for letter in words::plain(text).chars().take(LETTERS_MAX) {
        match letter {
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '@' => {
                // Forges notify the user whose name follows an at sign.
                let _ = write!(out, "&#{};", letter as u32);
            }
            '\n' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// Text between backticks.
fn code(text: &str) -> String {
    words::plain(text).replace(['`', '\n', '|'], "'")
}
