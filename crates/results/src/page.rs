//! `report.html`: one file that opens offline, in the dark, on paper and on a phone.
//!
//! The verdict in plain words stands first; then each figure with its numbers beside what the
//! study states; then the account of all frames, the tester, the machine, and how to do it again.
//! Invariants: nothing is loaded from anywhere, no script runs, and all text from the record is
//! escaped.

mod style;
mod claims;
mod facts;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{Figure, View, figure, of_series, svg, views};
use crate::record::{Experiment, Record, gathered};
use crate::report::{figure_id, words};
use crate::table::{self, Entry, Table};

/// The page of these runs.
pub fn html(records: &[Record]) -> String {
    let title = match records {
        [one] => words::listed(
            &one.experiments.iter().map(|experiment| experiment.id.as_str()).collect::<Vec<_>>(),
        ),
        many => format!("{} runs", many.len()),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "planimeter: " (title) }
                style { (PreEscaped(style::CSS)) }
            }
            body {
                main {
                    @for (index, record) in records.iter().enumerate() {
                        (run(record, index, records.len()))
                    }
                    footer { (facts::reading()) }
                }
            }
        }
    };
    page.into_string()
}

fn run(record: &Record, index: usize, runs: usize) -> Markup {
    html! {
        header {
            p.kicker { "planimeter report" @if runs > 1 { ", run " (index + 1) " of " (runs) } }
            h1 { (heading(record)) }
            p.sub {
                (record.created) " · " (record.tool.name) " " (record.tool.version)
                @if record.partial { " " span.chip.no { "partial" } }
            }
        }
        (verdict(record))
        @for experiment in &record.experiments {
            (section(record, experiment, index, runs))
        }
        section {
            h2 { "Account of all frames" }
            p {
                "Offered = received + lost for a known reason + unexplained, each frame once, warm-up \
                 included. Where losses are zero everywhere, they have no column."
            }
            (rows(&table::of_frames(record)))
            details {
                summary { "What received frames were" }
                p { "Of the counted part of each trial, without warm-up. Foreign frames are not ours." }
                (rows(&table::of_classes(record)))
            }
            @let drops = table::of_drops(record);
            @if !drops.rows.is_empty() {
                details { summary { "Losses by place and reason" } (rows(&drops)) }
            }
        }
        (facts::tester(record))
        (facts::targets(record))
        (facts::machine(record))
        (facts::again(record))
    }
}

fn heading(record: &Record) -> String {
    let mut titles: Vec<&str> = record.experiments.iter().map(|one| one.title.as_str()).collect();
    titles.dedup();
    match titles.as_slice() {
        [] => "Nothing was measured".into(),
        [one] => (*one).to_string(),
        many => format!("{} experiments on {} targets", many.len(), record.targets.len()),
    }
}

fn verdict(record: &Record) -> Markup {
    let [hold, do_not, cannot] = words::answers(record);
    html! {
        section.verdict {
            p { (words::measured(record)) }
            h2 { "What came out" }
            ul { @for sentence in words::found(record) { li { (sentence) } } }
            @if hold + do_not + cannot > 0 {
                p {
                    "What the study states: "
                    span.chip.yes { (hold) " hold here" } " "
                    span.chip.no { (do_not) " do not" } " "
                    span.chip.open { (cannot) " cannot be told" }
                }
            }
            h2 { "How sure" }
            ul { @for sentence in words::sure(record) { li { (sentence) } } }
            @if !record.warnings.is_empty() {
                h2 { "To know before trusting it" }
                ul.warnings {
                    @for notice in &gathered(&record.warnings) {
                        li { b { (notice.about) } ": " (notice.warning.sentence()) }
                    }
                }
            }
        }
    }
}

fn section(record: &Record, experiment: &Experiment, index: usize, runs: usize) -> Markup {
    html! {
        section {
            h2 { (experiment.title) " " small { (experiment.id) } }
            @if let Some(method) = &experiment.method { p { (method) } }
            @if let Some(source) = &experiment.trials_of {
                p.soft { "Its trials are those of " (source) ", measured once for both." }
            }
            @for view in views(record, experiment) {
                (view_of(record, experiment, &view, (index, runs)))
            }
            @for drawn in of_series(record, experiment) {
                (series_of(drawn, (index, runs)))
            }
            @for sheet in table::sheets(record, experiment) {
                h3 { (sheet.title) }
                p { (sheet.reading) }
                @for table in &sheet.tables { (rows(table)) }
            }
            (claims::of(record, experiment))
        }
    }
}

fn view_of(record: &Record, experiment: &Experiment, view: &View, place: (usize, usize)) -> Markup {
    let drawn = figure(record, experiment, view).map(|mut figure| {
        figure.id = figure_id(&figure.id, place.0, place.1);
        svg(&figure)
    });
    let numbers = table::of_view(record, experiment, view);
    let ratios = table::of_ratios(record, experiment, view, ratio_metric(view));
    html! {
        @if let Some(picture) = &drawn {
            figure { div.wide { (PreEscaped(picture)) } }
        }
        details open[drawn.is_none()] {
            summary { (view.caption()) }
            (rows(&numbers))
        }
        @if !ratios.rows.is_empty() {
            details {
                summary { "Each target against " (record.targets[0].name) ", by interleaved pairs" }
                (rows(&ratios))
            }
        }
    }
}

fn series_of(mut drawn: Figure, place: (usize, usize)) -> Markup {
    drawn.id = figure_id(&drawn.id, place.0, place.1);
    html! { figure { div.wide { (PreEscaped(svg(&drawn))) } } }
}

/// Ratios of a rate are the same in bits; they are stored for frames.
fn ratio_metric(view: &View) -> crate::record::Metric {
    match view.metric {
        crate::record::Metric::RateBpsForwarded => crate::record::Metric::RatePpsForwarded,
        metric => metric,
    }
}

/// A table as HTML, in a box that scrolls by itself.
fn rows(table: &Table) -> Markup {
    html! {
        div.wide {
            table {
                thead { tr {
                    @for (index, column) in table.columns.iter().enumerate() {
                        th class=[table.is_number(index).then_some("n")] scope="col" { (column) }
                    }
                } }
                tbody {
                    @for row in &table.rows { tr { @for entry in row { (cell(entry)) } } }
                }
            }
        }
        @for warning in table.warnings() { p.soft { span.warn { "⚠" } " " (warning) } }
    }
}

fn cell(entry: &Entry) -> Markup {
    let warnings = entry.warnings.join("; ");
    html! {
        td class=[entry.is_number.then_some("n")] {
            (entry.text)
            @if !warnings.is_empty() {
                abbr.warn title=(warnings) { "⚠" }
            }
            @if !entry.range.is_empty() { span.range { (entry.range) } }
        }
    }
}
