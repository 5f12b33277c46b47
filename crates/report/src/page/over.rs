//! Header of a page over several runs: the steps of a campaign, or runs selected by the user.
//!
//! It summarizes the measurements of all runs and links to each run with its verdict. Invariant: no
//! value of a single run appears as a value of all. Only trials and frames are added up.

use maud::{Markup, html};

use super::{Place, heading, said};
use crate::Run;
use crate::finding::{self, Finding, listed_targets};
use record::{Record, gathered};

/// All runs together.
pub(super) fn all(campaign: Option<&str>, runs: &[Run], places: &[Place<'_>]) -> Markup {
    let records: Vec<&Record> = runs.iter().map(|run| &run.record).collect();
    let kind = if campaign.is_some() { "steps" } else { "runs" };
    let title = match campaign {
        Some(name) => name.to_string(),
        None => format!("{} runs", runs.len()),
    };
    let mut tools: Vec<String> =
        records.iter().map(|it| format!("{} {}", it.tool.name, it.tool.version)).collect();
    tools.dedup();
    let [first, last] = [records.first(), records.last()].map(|it| it.map(|it| &it.created));
    html! {
        header {
            p.kicker { "planimeter report" @if campaign.is_some() { " of a campaign" } }
            h1 { (title) }
            p.sub {
                @if let (Some(first), Some(last)) = (first, last) {
                    (first) @if first != last { " to " (last) }
                }
                " · " (tools.join(", "))
                @if records.iter().any(|it| it.partial) { " " span.chip.no { "partial" } }
            }
        }
        section.verdict {
            h2 { "Measurement" }
            p { (said(&Finding::Measured(finding::measured(&records)).sentence(), places[0])) " Each of the " (runs.len()) " " (kind) " has its own section below." }
            p { (said(&Finding::Account(finding::account_of(records.iter().flat_map(|it| it.trials_accounted()))).sentence(), places[0])) }
            ol.steps { @for (run, place) in runs.iter().zip(places) { li { (step(&run.record, *place)) } } }
        }
    }
}

/// Summary of a run in a few lines.
fn step(record: &Record, place: Place<'_>) -> Markup {
    let warnings = gathered(&record.warnings).len();
    let trials = record.trials_ended();
    let names: Vec<&str> = record.targets.iter().map(|target| target.name.as_str()).collect();
    html! {
        a href=(place.link("top")) { b { (crate::sentence::capitalised(place.name.unwrap_or_default())) } }
        ": " (heading(record)) ", " (trials) " trials on " (listed_targets(&names)) "."
        @if let Some(main) = finding::main_result(record) { " " (said(&main.sentence(), place)) }
        @if record.partial { " " span.chip.no { "partial" } }
        @if let Some(failed) = finding::failure(record) { " " span.chip.no { "failed" } " " (failed) }
        @match warnings {
            0 => {},
            1 => { " " span.warn { "\u{26a0} 1 warning" } },
            many => { " " span.warn { "\u{26a0} " (many) " warnings" } },
        }
    }
}
