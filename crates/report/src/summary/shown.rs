//! The summary for a terminal: aligned tables without markup.
//!
//! Invariants: the contents and their order are those of the Markdown; no control character of a
//! name reaches the terminal.

use std::fmt::Write;

/// Converts a Markdown summary to text.
pub fn shown(markdown: &str) -> String {
    let mut out = String::new();
    let mut table: Vec<Vec<String>> = Vec::new();
    // Removes the second of two empty lines around removed markup.
    let mut is_after_gap = true;
    for line in markdown.lines() {
        if let Some(row) = line.strip_prefix("| ") {
            table.push(entries(row.strip_suffix(" |").unwrap_or(row)));
            is_after_gap = false;
            continue;
        }
        let is_mark = line.starts_with("|---") || line.starts_with("```") || line == "</details>";
        if is_mark || line.is_empty() && is_after_gap {
            continue;
        }
        columns(&mut out, &std::mem::take(&mut table));
        is_after_gap = line.is_empty();
        let _ = writeln!(out, "{}", clean(words(line)));
    }
    columns(&mut out, &table);
    out
}

/// Removes the markup of a line.
fn words(line: &str) -> &str {
    let line = line.trim_start_matches('#').trim_start();
    let inside = |before, after| line.strip_prefix(before)?.strip_suffix(after);
    inside("**", "**").or_else(|| inside("<details><summary>", "</summary>")).unwrap_or(line)
}

/// Splits a row at unescaped `|` characters.
fn entries(row: &str) -> Vec<String> {
    row.split(" | ").map(clean).collect()
}

/// Reverses the Markdown escaping and removes control characters.
fn clean(text: &str) -> String {
    let text = text.replace("\\|", "|").replace("&lt;", "<");
    text.replace(char::is_control, " ")
}

/// Aligns rows to the widest entry of each column.
fn columns(out: &mut String, rows: &[Vec<String>]) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at| rows.iter().filter_map(|row| row.get(at)).map(|it: &String| it.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|at| width(at).unwrap_or(0)).collect();
    for row in rows {
        let padded = row.iter().zip(&widths).map(|(entry, width)| format!("{entry:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::markdown;

    #[test]
    fn tables_are_aligned_and_markup_is_removed() {
        let text = "## Run\n\n**Short.**\n\n<details><summary>The numbers</summary>\n\n| target | n |\n|---|---|\n\
                    | a\\|b &lt;c | 5 |\n| longest of all | 12 |\n\n</details>\n\n### Again\n\n```\nrun x\n```\n";
        let expected = "Run\n\nShort.\n\nThe numbers\n\ntarget          n\na|b <c          5\nlongest of all  12\n\n\
                        Again\n\nrun x\n";
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn a_terminal_gets_the_verdict_without_control_characters() {
        let mut record = sample::record();
        record.link = "veth\u{1b}[31m".into();
        let text = shown(&markdown([&record]));
        assert!(
            text.contains("planimeter bridge has the highest forwarding rate, 1\u{202f}1"),
            "{text}"
        );
        assert!(text.contains("3 are unaccounted for"), "{text}");
        assert!(!text.contains(['\u{1b}', '#', '*', '`']) && !text.contains("details"), "{text}");
    }
}
