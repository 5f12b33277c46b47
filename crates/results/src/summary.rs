//! `summary.md`: the report in a page of text, for terminals, tickets and pull requests.
//!
//! Invariant: it says the same as `report.html`, with fewer numbers.

use std::fmt::Write;

use crate::figure::views;
use crate::record::{Record, Verdict, gathered};
use crate::report::words;
use crate::table::{self, Entry, Table};

/// What a run found, for a terminal: the verdict and the warnings, without tables.
pub fn text(record: &Record) -> String {
    let mut out = format!("{}\n", words::measured(record));
    for sentence in words::found(record).iter().chain(&words::sure(record)) {
        let _ = writeln!(out, "  {sentence}");
    }
    let [hold, do_not, cannot] = words::answers(record);
    if hold + do_not + cannot > 0 {
        let _ = writeln!(
            out,
            "  Of what the study states, {hold} answers hold here, {do_not} do not, {cannot} cannot be told."
        );
    }
    for notice in &gathered(&record.warnings) {
        let _ = writeln!(out, "  warning: {}: {}", notice.about, notice.warning.sentence());
    }
    // A terminal obeys control characters, and names come from outside.
    out.replace(|letter: char| letter.is_control() && letter != '\n', " ")
}

/// The summary of these runs.
pub fn markdown(records: &[Record]) -> String {
    let mut out = String::from("# planimeter report\n");
    for record in records {
        run(&mut out, record);
    }
    out
}

fn run(out: &mut String, record: &Record) {
    let _ = write!(out, "\n## Run of {}\n\n{}\n\n", record.created, words::measured(record));
    for sentence in words::found(record).iter().chain(&words::sure(record)) {
        let _ = writeln!(out, "- {sentence}");
    }
    if !record.warnings.is_empty() {
        out.push_str("\n### To know before trusting it\n\n");
        for notice in &gathered(&record.warnings) {
            let _ = writeln!(out, "- {}: {}", notice.about, notice.warning.sentence());
        }
    }
    claims(out, record);
    for experiment in &record.experiments {
        for view in views(record, experiment) {
            let _ = write!(out, "\n### {} ({})\n\n", view.title(experiment), experiment.id);
            rows(out, &table::of_view(record, experiment, &view));
        }
        for sheet in table::sheets(record, experiment) {
            let _ = write!(out, "\n### {} ({})\n\n{}\n", sheet.title, experiment.id, sheet.reading);
            for table in &sheet.tables {
                out.push('\n');
                rows(out, table);
            }
        }
    }
    out.push_str("\n### Account of frames\n\n");
    rows(out, &table::of_frames(record));
    let _ = write!(
        out,
        "\n### To do it again\n\n```\n{}\n```\n\nSeed {}, {} {}.\n",
        record.command_line, record.seed, record.tool.name, record.tool.version
    );
}

fn claims(out: &mut String, record: &Record) {
    if record.claims.is_empty() {
        return;
    }
    let [hold, do_not, cannot] = words::answers(record);
    let _ = write!(
        out,
        "\n### What the study states\n\n{hold} answers hold here, {do_not} do not, {cannot} cannot \
         be told.\n\n| item | the study states | targets | here | numbers |\n|---|---|---|---|---|\n"
    );
    for line in &record.claims {
        let (answer, why) = match &line.verdict {
            Verdict::Holds => ("holds", String::new()),
            Verdict::DoesNot => ("does not", String::new()),
            Verdict::CannotTell(why) => ("cannot be told", format!("{why}. ")),
        };
        let _ = writeln!(
            out,
            "| {} {} | {} | {} | {answer} | {why}{} |",
            plain(&line.claim.study),
            plain(&line.claim.item),
            plain(&words::statement(&line.claim)),
            plain(&line.targets.join(", ")),
            plain(&line.numbers),
        );
    }
}

fn rows(out: &mut String, table: &Table) {
    let _ = writeln!(out, "| {} |", table.columns.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
    let text = |entry: &Entry| {
        let range =
            if entry.range.is_empty() { String::new() } else { format!(" ({})", entry.range) };
        let mark = if entry.warnings.is_empty() { "" } else { " !" };
        format!("{}{range}{mark}", plain(&entry.text))
    };
    for row in &table.rows {
        let _ = writeln!(out, "| {} |", row.iter().map(text).collect::<Vec<_>>().join(" | "));
    }
}

/// Text that cannot break a row of a table.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_terminal_gets_the_verdict_and_no_control_characters() {
        let mut record = sample::record();
        record.link = "veth\u{1b}[31m".into();
        let text = text(&record);
        assert!(text.contains("the forwarding rate is highest on bridge with 1\u{202f}1"));
        assert!(text.contains("warning: bianco2010/fig2 on bridge: 3 frames"));
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn names_cannot_break_a_table() {
        assert_eq!(plain("a|b\n<c>"), "a\\|b &lt;c>");
    }
}
