//! `report.html`: one self-contained file for screen, dark mode, print and phone.
//!
//! Contents: the verdict in plain words, then each figure with its numbers and the claims of the
//! study. Frame accounting, tester, machine, all trials and the reproduction follow. The page's
//! script adds tooltips, switches for curves, a zoom and exports to the figures
//! (`docs/decisions/0068-reports-draw-their-own-figures.md`). Invariants:
//!
//! - The page loads no external resources.
//! - The page has the same contents without scripts.
//! - All text from the record is escaped.

mod claims;
mod facts;
mod over;
mod trials;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{
    Figure, View, figure, inline, of_series, of_spectra, of_study, omitted, shows_latency, swatch,
    views,
};
use crate::finding::{self, Finding, listed};
use crate::sentence::{Piece, Sentence, runs_of};
use crate::table::{self, Entry, Mark, Table};
use crate::{Run, figure_id};
use record::target_name::label;
use record::{Experiment, Record};

/// The page's style sheet, which other pages of the project share.
pub const STYLE: &str = include_str!("page/page.css");

/// The page's own script.
pub(crate) const SCRIPT: &str = include_str!("page/page.js");

/// Content security policy: the page uses only its own contents and loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:; \
                      base-uri 'none'; form-action 'none'";

/// The run that a part of the page is about.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    index: usize,
    runs: usize,
    /// Name of the run, if there are several.
    name: Option<&'a str>,
}

impl Place<'_> {
    /// Prefix of anchors, if there are several runs.
    fn prefix(self) -> String {
        if self.runs > 1 { format!("run{}-", self.index + 1) } else { String::new() }
    }

    /// Anchor name in this run.
    fn id(self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    /// Link target for an anchor.
    fn link(self, name: &str) -> String {
        format!("#{}", self.id(name))
    }

    /// Anchor name of a trial.
    fn trial(self, id: u64) -> String {
        self.id(&format!("t{id}"))
    }

    fn figure(self, mut drawn: Figure) -> Figure {
        drawn.id = figure_id(&drawn.id, self.index, self.runs);
        drawn.of = self.name.map(Into::into);
        drawn
    }

    /// Text that names the run, if there are several.
    fn of(self) -> String {
        self.name.map(|name| format!(" ({name})")).unwrap_or_default()
    }
}

/// The page of these runs or of a campaign.
pub fn html(campaign: Option<&str>, runs: &[Run]) -> String {
    let names: Vec<Option<String>> =
        runs.iter().enumerate().map(|(index, run)| run.called(index, runs.len())).collect();
    let title = match (campaign, runs) {
        (Some(name), _) => name.to_string(),
        (None, [one]) => listed(
            &one.record
                .experiments
                .iter()
                .map(|experiment| experiment.id.as_str())
                .collect::<Vec<_>>(),
        ),
        (None, many) => format!("{} runs", many.len()),
    };
    let places: Vec<Place<'_>> = names
        .iter()
        .enumerate()
        .map(|(index, name)| Place { index, runs: runs.len(), name: name.as_deref() })
        .collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "planimeter: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    @if runs.len() > 1 { (over::all(campaign, runs, &places)) }
                    @for (one, place) in runs.iter().zip(&places) { (run(one, *place, campaign)) }
                    footer { (facts::reading()) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn run(run: &Run, place: Place<'_>, campaign: Option<&str>) -> Markup {
    let record = &run.record;
    html! {
        header id=[(place.runs > 1).then(|| place.id("top"))] {
            p.kicker {
                @match place.name {
                    Some(name) => { (crate::sentence::capitalised(name)) ", " (place.index + 1) " of " (place.runs) },
                    None => {
                        "planimeter report" @if let Some(name) = campaign { " of the campaign " (name) }
                    }
                }
            }
            h1 { (heading(record)) }
            p.sub {
                (record.created) " · " (record.tool.name) " " (record.tool.version)
                @if record.partial { " " span.chip.no { "partial" } }
            }
        }
        (verdict(record, place))
        (contents(record, place))
        (results(record, place))
        @for experiment in &record.experiments {
            (section(run, experiment, place))
        }
        section id=(place.id("frames")) {
            h2 { "Frame accounting" (place.of()) }
            p {
                "Numbers of frames: offered = received + lost for a known reason + unexplained. Each frame counts once, \
                 warm-up included. Losses that are zero everywhere have no column."
            }
            @let accounted = table::of_frames(record);
            @if accounted.rows.is_empty() { p { "No frames were offered." } } @else { (rows(&accounted, place)) }
            @let classes = table::of_classes(record);
            @if !classes.rows.is_empty() {
                details {
                    summary { "Received frames by class" }
                    p { "Counted part of each trial, without warm-up. The tester did not send foreign frames." }
                    (rows(&classes, place))
                }
            }
            @let drops = table::of_drops(record);
            @if !drops.rows.is_empty() {
                details { summary { "Losses by place and reason" } (rows(&drops, place)) }
            }
        }
        (facts::tester(record))
        (facts::targets(record))
        (facts::machine(record))
        (trials::all(record, place))
        (facts::again(record, &place.id("again")))
    }
}

/// Table of contents.
fn contents(record: &Record, place: Place<'_>) -> Markup {
    let parts = [
        ("reliability", "Reliability and warnings"),
        ("frames", "Frame accounting"),
        ("trials", "All trials"),
        ("again", "Reproduce this run"),
    ];
    let has_trials = !record.trials.is_empty();
    html! {
        nav aria-label={ "Contents" @if place.runs > 1 { " of run " (place.index + 1) } } {
            ul {
                @for experiment in &record.experiments {
                    li { a href=(place.link(&anchor(experiment))) { (experiment.id) } }
                }
                @for (name, title) in parts.iter().filter(|(name, _)| has_trials || *name != "trials") {
                    li { a href=(place.link(name)) { (title) } }
                }
            }
        }
    }
}

/// An experiment's anchor.
fn anchor(experiment: &Experiment) -> String {
    experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

fn heading(record: &Record) -> String {
    let mut titles: Vec<&str> = record.experiments.iter().map(|one| one.title.as_str()).collect();
    titles.dedup();
    match titles.as_slice() {
        [] => "Nothing was measured".into(),
        [one] => (*one).to_string(),
        many => {
            let count = format!("{} experiments on {} targets", many.len(), record.targets.len());
            let mut studies: Vec<&Option<String>> =
                record.experiments.iter().map(|one| &one.study).collect();
            studies.dedup();
            match studies[..] {
                [Some(study)] => format!("{study}: {count}"),
                _ => count,
            }
        }
    }
}

/// The verdict in at most five sentences.
fn verdict(record: &Record, place: Place<'_>) -> Markup {
    html! {
        section.verdict aria-label={ "Verdict" (place.of()) } {
            @for finding in finding::verdict(record) {
                p class=[finding.is_prominent().then_some("short")] {
                    @if matches!(finding, Finding::Failed(_)) { span.chip.no { "failed" } " " }
                    (said(&finding.sentence(), place))
                    (numbers(&finding, place))
                }
            }
        }
    }
}

/// A link from the finding of one of several experiments to its numbers.
fn numbers(finding: &Finding<'_>, place: Place<'_>) -> Markup {
    html! {
        @if let Finding::Of { experiment, .. } = finding {
            " " a href=(place.link(&anchor(experiment))) { "Numbers" } "."
        }
    }
}

/// What the verdict does not state: further results, claims, what values rest on, and warnings.
fn results(record: &Record, place: Place<'_>) -> Markup {
    let results = finding::results(record);
    let claims = finding::claims(record);
    html! {
        @if !results.is_empty() || claims.is_some() {
            section id=(place.id("results")) {
                h2 { "Results" (place.of()) }
                ul { @for one in results { li { (said(&one.sentence(), place)) (numbers(&one, place)) } } }
                @if let Some(claims) = claims { p { (said(&claims.sentence(), place)) } }
            }
        }
        section id=(place.id("reliability")) {
            h2 { "Reliability" (place.of()) }
            ul { @for one in finding::confidence(record) { li { (said(&one.sentence(), place)) } } }
            @let caveats = finding::caveats(record);
            @if !caveats.is_empty() {
                h3 id=(place.id("warnings")) { "Warnings" }
                ul.warnings { @for one in caveats { li { (said(&one.sentence(), place)) } } }
            }
        }
    }
}

fn section(run: &Run, experiment: &Experiment, place: Place<'_>) -> Markup {
    let record = &run.record;
    html! {
        section id=(place.id(&anchor(experiment))) {
            h2 { (experiment.title) " " small { (experiment.id) (place.of()) } }
            @if let Some(method) = &experiment.method { p { (method) } }
            @if let Some(source) = &experiment.shares_trials_with {
                p.soft { "Uses the trials of " (source) "." }
            }
            @if let Some(why) = omitted(record, experiment) { p.soft { (why) } }
            @for drawn in of_study(record, experiment) { (chart(drawn, place)) }
            @for view in views(record, experiment) {
                (view_of(record, experiment, &view, place))
            }
            @for drawn in of_series(record, experiment) { (chart(drawn, place)) }
            @if let Some(drawn) = of_spectra(record, experiment, &run.spectra) { (chart(drawn, place)) }
            @for problem in problems(run, experiment) {
                p.soft { span.warn { "⚠" } " Omitted from latency by percentile: " (problem) }
            }
            @for sheet in table::sheets(record, experiment) {
                h3 { (sheet.title) (place.of()) }
                p { (sheet.reading) }
                @for table in &sheet.tables { (rows(table, place)) }
            }
            (claims::of(record, experiment, place))
        }
    }
}

/// Reasons for missing histograms, reported once with the first affected experiment.
fn problems(run: &Run, experiment: &Experiment) -> Vec<String> {
    let is_about = |it: &&Experiment| shows_latency(&run.record, it);
    match run.record.experiments.iter().find(is_about) {
        Some(first) if first.id == experiment.id => run.spectra.left_out(),
        _ => Vec::new(),
    }
}

fn view_of(record: &Record, experiment: &Experiment, view: &View, place: Place<'_>) -> Markup {
    let drawn = figure(record, experiment, view);
    let numbers = table::of_view(record, experiment, view);
    let ratios = table::of_ratios(record, experiment, view, finding::compared_metric(view));
    html! {
        @let is_alone = drawn.is_none();
        @let title = view.title(experiment);
        @if is_alone && title != experiment.title { h3 { (title) (place.of()) } }
        @if let Some(drawn) = drawn { (chart(drawn, place)) }
        details.numbers open[is_alone] {
            summary { (view.caption()) (place.of()) }
            (rows(&numbers, place))
        }
        @if !ratios.rows.is_empty() {
            details {
                summary { "Each target relative to " (label(&record.targets[0].name)) ", interleaved pairs" (place.of()) }
                (rows(&ratios, place))
            }
        }
    }
}

/// A figure. The script shows its other choices, which are inert until then.
fn chart(drawn: Figure, place: Place<'_>) -> Markup {
    let drawn = place.figure(drawn);
    let choices = drawn.choices();
    html! {
        figure.chart id=(drawn.id) data-run=(place.prefix()) data-choice=[drawn.choice.as_deref()] {
            (drawing(&drawn))
            @if choices.len() > 1 {
                @for choice in choices {
                    template data-choice=(choice) { (drawing(&drawn.at(choice))) }
                }
            }
        }
    }
}

/// An image with its title, legend and caption.
fn drawing(drawn: &Figure) -> Markup {
    html! {
        div.drawing {
            p.name { (drawn.whole_title()) }
            ul.legend {
                @for one in drawn.drawn() {
                    @let warning = one.points.first().filter(|_| one.is_warned());
                    @let warning = warning.and_then(|it| it.warnings.first());
                    li data-s=(one.name) title=[warning] {
                        (PreEscaped(swatch(drawn, one))) (one.name)
                        @if warning.is_some() { " ⚠" }
                    }
                }
            }
            div.wide.plot tabindex="0" role="group" aria-label=(drawn.whole_title()) { (PreEscaped(inline(drawn))) }
            p.soft { (drawn.caption()) }
        }
    }
}

/// A table as HTML in a scrollable box.
fn rows(table: &Table, place: Place<'_>) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label="Table" {
            table.sorts {
                thead { tr {
                    @for (index, column) in table.columns.iter().enumerate() {
                        th class=[table.is_number(index).then_some("n")] scope="col" { (column) }
                    }
                } }
                tbody {
                    @for row in &table.rows { tr { @for entry in row { (cell(entry, place)) } } }
                }
            }
        }
        @for warning in table.warnings().iter().filter(|it| !it.is_listed) {
            @let sentence = warning.sentence.as_str();
            @let sentence = sentence.strip_prefix(&format!("{}: ", warning.brief)).unwrap_or(sentence);
            p.soft { span.warn { "⚠ " (warning.brief) } ": " (sentence) }
        }
    }
}

fn cell(entry: &Entry, place: Place<'_>) -> Markup {
    html! {
        td class=[entry.is_number.then_some("n")] {
            @match entry.trials.first() {
                Some(first) => a href={ "#" (place.trial(*first)) } data-t=(runs_of(&entry.trials)) { (entry.text) },
                None => (entry.text),
            }
            @if !entry.range.is_empty() { span.range { (entry.range) } }
            @for Mark { brief, sentence, is_listed } in &entry.warnings {
                @match is_listed {
                    true => a.why title=(sentence) href=(place.link("warnings")) { "⚠ " (brief) },
                    false => abbr.why title=(sentence) { "⚠ " (brief) },
                }
            }
        }
    }
}

/// A sentence whose numbers link to their trials.
fn said(sentence: &Sentence, place: Place<'_>) -> Markup {
    html! {
        @for Piece { text, trials } in sentence.pieces() {
            @match trials.first() {
                Some(first) => a href={ "#" (place.trial(*first)) } data-t=(runs_of(trials)) { (text) },
                None => (text),
            }
        }
    }
}
