//! Table of all trials of a run, the target of links from other numbers.
//!
//! The table is written as text, not as nodes, because it may have ten thousand rows. It omits
//! closing tags of rows and cells, which HTML does not require. Invariant: each trial has a row
//! with its number as anchor, and all text from the record is escaped.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};

use super::Place;
use record::links::Naming;
use record::number;
use record::{Flag, Record, Role, Trial};

/// The trials of a run, grouped by experiment.
pub(super) fn all(record: &Record, place: Place<'_>) -> Markup {
    let mut sources: Vec<&str> = Vec::new();
    for trial in &record.trials {
        if !sources.contains(&trial.experiment.as_str()) {
            sources.push(&trial.experiment);
        }
    }
    html! {
        @if !record.trials.is_empty() {
            section id=(place.id("trials")) {
                h2 { "All trials" (place.of()) }
                p {
                    "The numbers above link to these trials. The run's command with its seed (" a href=(place.link("again")) { "below" }
                    ") repeats every trial with the same frames at the same times. " code { "trials.jsonl" }
                    " has one line per trial with all its data. The line begins with the trial's number."
                }
                @for source in sources { (of(record, source, place)) }
            }
        }
    }
}

fn of(record: &Record, source: &str, place: Place<'_>) -> Markup {
    let here: Vec<&Trial> = record.trials.iter().filter(|it| it.experiment == source).collect();
    let has_curves = here.iter().any(|trial| trial.point.within.is_some());
    let has_frames = here.iter().any(|trial| trial.module.is_none());
    let axis = here.first().map_or(String::new(), |trial| number::axis(&trial.point.name));
    let naming = Naming::within(record, source);
    let mut rows = String::new();
    for trial in &here {
        row(&mut rows, trial, &naming, (has_curves, has_frames), place);
    }
    html! {
        details {
            summary { (source) ": " (number::count(here.len() as i64)) " trials" }
            div.wide tabindex="0" role="group" aria-label={ "Trials of " (source) } {
                table.sorts.trials {
                    thead { tr {
                        th.n { "trial" } th { "target" } th.n { (axis) }
                        @if has_curves { th { "curve" } }
                        th.n { "repeat" } th { "purpose" } th.n { "seed" }
                        @if has_frames {
                            th.n { "intended, frames/s" } th.n { "offered, frames/s" } th.n { "forwarded, frames/s" }
                            th.n { "frame loss rate, %" } th.n { "latency p50, µs" } th.n { "p99, µs" }
                        }
                        th { "remarks" }
                    } }
                    tbody { (PreEscaped(rows)) }
                }
            }
        }
    }
}

fn row(out: &mut String, trial: &Trial, naming: &Naming<'_>, has: (bool, bool), place: Place<'_>) {
    let _ = write!(out, "<tr id={}><td class=n>{}", place.trial(trial.id), trial.id);
    let target = escaped(&naming.of(&trial.target));
    let _ = write!(out, "<td>{target}<td class=n>{}", number::setting(trial.point.value));
    if has.0 {
        let curve = trial.point.within.as_ref().map_or(String::new(), number::curve);
        let _ = write!(out, "<td>{}", escaped(&curve));
    }
    let _ =
        write!(out, "<td class=n>{}<td>{}<td class=n>{}", trial.repeat, role(trial), trial.seed);
    if has.1 {
        let micro = |ns: Option<u64>| ns.map_or(String::new(), |ns| number::text(ns as f64 / 1e3));
        let rate = |found: Option<f64>| found.map_or(String::new(), number::text);
        let latency = trial.latency.as_ref();
        let loss = trial.loss_ratio().map(|ratio| ratio * 100.0);
        for text in [
            number::text(trial.rate_pps_intended),
            rate(trial.rate_pps_offered()),
            rate(trial.rate_pps_forwarded()),
            rate(loss),
            micro(latency.and_then(|it| it.ns_p50)),
            micro(latency.and_then(|it| it.ns_p99)),
        ] {
            let _ = write!(out, "<td class=n>{text}");
        }
    }
    let _ = writeln!(out, "<td>{}", escaped(&remarks(trial)));
}

fn escaped(text: &str) -> String {
    html! { (text) }.into_string()
}

fn role(trial: &Trial) -> &'static str {
    match trial.role {
        Role::Measure => "result",
        Role::WarmUp => "warm-up",
        Role::Search => "search step",
        Role::Maximum => "maximum rate",
        Role::Confirm => "confirmation",
        Role::Bound => "bound",
        Role::Calibrate => "calibration",
    }
}

fn remarks(trial: &Trial) -> String {
    let mut found: Vec<String> = trial.flags.iter().map(|&flag| words(flag).to_string()).collect();
    if trial.frames_unexplained != 0 {
        found.push(format!("{} frames unexplained", number::count(trial.frames_unexplained)));
    }
    found.extend(trial.goal.as_ref().map(|goal| format!("for the goal {goal}")));
    found.join(", ")
}

fn words(flag: Flag) -> &'static str {
    match flag {
        Flag::TesterLimited => "limited by the tester",
        Flag::Irregular => "irregular",
        Flag::Stall => "tester descheduled",
        Flag::Ramped => "load ramped",
        Flag::Interrupted => "interrupted",
        Flag::ColdCaches => "caches not filled",
        Flag::Retried => "repeated",
        Flag::TesterInterference => "disturbed",
    }
}
