//! `summary.md`: the report as a page of Markdown, for terminals, tickets and pull requests.
//!
//! Tables are collapsed, as GitHub and GitLab support it. Invariants: the contents agree with
//! `report.html`, with fewer numbers; the size fits a pull request comment ([`BYTES_MAX`]), and
//! omitted parts are listed.

mod shown;

pub use shown::shown;

use std::fmt::Write;

use crate::figure::views;
use crate::finding::{self, Finding, claim_numbers, claim_setting, claim_targets, statement};
use crate::table::{self, Entry, Table};
use record::{ClaimVerdict, Experiment, Record, Verdict};

/// Maximum size of a summary: a comment on GitHub has at most 65,536 characters.
pub const BYTES_MAX: usize = 60_000;

/// The summary of these runs.
pub fn markdown<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    let named: Vec<(Option<String>, &Record)> = records.into_iter().map(|it| (None, it)).collect();
    markdown_of(None, &named)
}

/// The summary of a campaign's runs, or of other named runs.
pub fn markdown_of(campaign: Option<&str>, runs: &[(Option<String>, &Record)]) -> String {
    let mut out = String::from("# planimeter report");
    if let Some(name) = campaign {
        let _ = write!(out, " of the campaign {}", plain(name));
    }
    out.push('\n');
    if runs.len() > 1 {
        let records: Vec<&Record> = runs.iter().map(|(_, record)| *record).collect();
        let _ = write!(
            out,
            "\n{}\n",
            plain(&Finding::Measured(finding::measured(&records)).sentence().to_string())
        );
    }
    for (name, record) in runs {
        let heading = match name {
            Some(name) => {
                format!("{}, {}", crate::sentence::capitalised(&plain(name)), record.created)
            }
            None => format!("Run of {}", record.created),
        };
        let _ = write!(out, "\n## {heading}\n\n");
        run(&mut out, record);
    }
    out
}

fn run(out: &mut String, record: &Record) {
    for finding in finding::verdict(record) {
        let mark = if finding.is_prominent() { "**" } else { "" };
        let _ = write!(out, "{mark}{}{mark}\n\n", plain(&finding.sentence().to_string()));
    }
    list(out, "Results", finding::results(record).iter().chain(&finding::claims(record)));
    list(out, "Reliability", finding::confidence(record).iter());
    list(out, "Warnings", finding::caveats(record).iter());
    let better = finding::first_look(record).map(|hint| format!("\n{}\n", hint.sentence()));
    let again = format!(
        "\n### Reproduce this run\n\n```\n{}\n```\n\nSeed {}, {} {}.\n{}",
        record.command_line,
        record.seed,
        record.tool.name,
        record.tool.version,
        better.unwrap_or_default()
    );
    let mut left_out: Vec<String> = Vec::new();
    for (title, text) in parts(record) {
        match out.len() + text.len() + again.len() + BYTES_OF_TITLES < BYTES_MAX {
            true => out.push_str(&text),
            false => left_out.push(title),
        }
    }
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(String::as_str).take(TITLES_MAX).collect();
        let more = match left_out.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = write!(
            out,
            "\nToo long for a comment, and in `report.html` and `*.csv`: {}{more}.\n",
            plain(&names.join("; "))
        );
    }
    out.push_str(&again);
}

/// Findings as a list under a heading; nothing without findings.
fn list<'a>(out: &mut String, heading: &str, found: impl Iterator<Item = &'a Finding<'a>>) {
    let sentences = found.map(|it| format!("- {}\n", plain(&it.sentence().to_string())));
    let sentences: String = sentences.collect();
    if !sentences.is_empty() {
        let _ = write!(out, "### {heading}\n\n{sentences}\n");
    }
}

/// Maximum number of omitted titles to list. It determines the space reserved for them.
const TITLES_MAX: usize = 20;
const BYTES_OF_TITLES: usize = 4000;

/// Optional parts: titles and texts, most important first.
fn parts(record: &Record) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    let mut text = String::new();
    claims(&mut text, record);
    parts.push(("what the study states".to_string(), text));
    let accounted = table::of_frames(record);
    if !accounted.rows.is_empty() {
        let mut text = String::from("\n### Account of frames\n\n");
        rows(&mut text, &accounted);
        parts.push(("account of frames".to_string(), text));
    }
    let mut known: Vec<(&Experiment, String)> = Vec::new();
    for experiment in &record.experiments {
        for view in views(record, experiment) {
            let title = format!("{} ({})", view.title(experiment), experiment.id);
            let mut values = String::new();
            folded(&mut values, view.caption(), &table::of_view(record, experiment, &view));
            // Experiments that share trials may show the same values.
            let is_same = |(other, shown): &&(&Experiment, String)| {
                other.source() == experiment.source() && *shown == values
            };
            let text = match known.iter().find(is_same) {
                Some((other, _)) => format!("\n### {title}\n\nThe same values as {}.\n", other.id),
                None => format!("\n### {title}\n\n{values}"),
            };
            known.push((experiment, values));
            parts.push((title, text));
        }
        for sheet in table::sheets(record, experiment) {
            let title = format!("{} ({})", sheet.title, experiment.id);
            let mut text = format!("\n### {title}\n\n{}\n\n", sheet.reading);
            for table in &sheet.tables {
                folded(&mut text, "Values", table);
            }
            parts.push((title, text));
        }
    }
    parts
}

/// A collapsed table.
fn folded(out: &mut String, title: &str, table: &Table) {
    let _ = write!(out, "<details><summary>{title}</summary>\n\n");
    rows(out, table);
    out.push_str("\n</details>\n");
}

fn claims(out: &mut String, record: &Record) {
    if record.claims.is_empty() {
        return;
    }
    out.push_str("\n### Claims of the study\n\n<details><summary>Each claim</summary>\n");
    let same = |a: &ClaimVerdict, b: &ClaimVerdict| a.claim == b.claim && a.reading == b.reading;
    for group in record.claims.chunk_by(same) {
        let claim = &group[0].claim;
        let _ = write!(
            out,
            "\n#### {} {}, {}\n\n{}\n\n| targets | verdict | numbers |\n|---|---|---|\n",
            plain(&claim.study),
            plain(&claim.item),
            plain(&statement(claim)),
            plain(&claim_setting(&group[0])),
        );
        for line in group {
            let answer = match &line.verdict {
                Verdict::Holds => "confirmed",
                Verdict::Contradicted => "contradicted",
                Verdict::Undecided(_) => "undecided",
            };
            // Whether an undecided claim would hold does not follow from the construction.
            let is_open = matches!(line.verdict, Verdict::Undecided(_));
            let mark = match (line.is_by_construction, is_open) {
                (false, _) => "",
                (true, false) => " (by construction)",
                (true, true) => " (not counted)",
            };
            let targets = plain(&claim_targets(line));
            let numbers = plain(&claim_numbers(line));
            let _ = writeln!(out, "| {targets} | {answer}{mark} | {numbers} |");
        }
    }
    out.push_str("\n</details>\n");
}

fn rows(out: &mut String, table: &Table) {
    let _ = writeln!(out, "| {} |", table.columns.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
    let text = |entry: &Entry| {
        let range =
            if entry.range.is_empty() { String::new() } else { format!(" {}", entry.range) };
        let marks = entry.warnings.iter().map(|mark| format!(" \u{26a0} {}", mark.brief));
        format!("{}{range}{}", plain(&entry.text), plain(&marks.collect::<String>()))
    };
    for row in &table.rows {
        let _ = writeln!(out, "| {} |", row.iter().map(text).collect::<Vec<_>>().join(" | "));
    }
}

/// Escapes text for a table row.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Cell;

    #[test]
    fn a_long_run_fits_a_comment_and_states_the_omissions() {
        let mut record = sample::record();
        let (first, cells) = (record.experiments[0].clone(), record.cells.clone());
        for copy in 0..40 {
            let id = format!("copy{copy}");
            record.experiments.push(Experiment { id: id.clone(), ..first.clone() });
            let own = cells.iter().filter(|cell| cell.experiment == first.id);
            record.cells.extend(own.map(|cell| Cell { experiment: id.clone(), ..cell.clone() }));
        }
        let text = markdown([&record]);
        assert!(text.len() < BYTES_MAX, "{}", text.len());
        assert!(text.contains("Too long for a comment") && text.contains(" more."), "{text}");
        assert!(text.contains(&record.command_line));
    }

    #[test]
    fn a_table_of_shared_trials_appears_once() {
        let mut record = sample::record();
        let twin = record.experiments[0].clone();
        let (id, source) = ("bianco2010/fig2-twin".to_string(), twin.id.clone());
        record.experiments.push(Experiment {
            id,
            shares_trials_with: Some(source.clone()),
            ..twin
        });
        let all = |record: &Record| parts(record).iter().map(|(_, text)| text.len()).sum::<usize>();
        let before = all(&record);
        crate::finish(&mut record, &[]);
        let text = markdown([&record]);
        assert!(text.contains(&format!("The same values as {source}.")), "{text}");
        assert!(all(&record) < before + 1000, "{} after {before}", all(&record));
    }

    #[test]
    fn an_undecided_claim_about_a_model_does_not_hold_by_construction() {
        let mut record = sample::record();
        record.claims.truncate(1);
        record.claims[0].is_by_construction = true;
        record.claims[0].verdict = Verdict::Holds;
        assert!(markdown([&record]).contains("| confirmed (by construction) |"));
        record.claims[0].verdict = Verdict::Undecided("too few repeats".into());
        assert!(markdown([&record]).contains("| undecided (not counted) |"));
    }

    #[test]
    fn each_claim_states_how_it_is_tested() {
        let record = sample::record();
        let text = markdown([&record]);
        for line in &record.claims {
            assert!(!line.reading.is_empty(), "{line:?}");
            let tested = format!("{}. Test here: {}.", line.claim.condition, line.reading);
            assert!(text.contains(&plain(&tested)), "{tested}");
        }
    }

    #[test]
    fn names_do_not_break_tables() {
        assert_eq!(plain("a|b\n<c>"), "a\\|b &lt;c>");
    }
}
