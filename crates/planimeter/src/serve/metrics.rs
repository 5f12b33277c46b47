//! Metrics for Prometheus, in its text format (version 0.0.4).
//!
//! They cover the active runs, with the values that a page shows, and the server itself. Invariant:
//! external names are escaped inside their quotes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ServerState;
use super::live_runs::{State, now_ms};

/// Counters of the server.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Rejected connections.
    pub(super) refused: AtomicU64,
    /// Responses by status.
    answers: Mutex<BTreeMap<u16, u64>>,
}

impl Counts {
    pub(super) fn answer(&self, status: u16) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status).or_default() += 1;
    }
}

/// Metric families, each with its samples.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str, rows: &[(String, f64)]) {
        if rows.is_empty() {
            return;
        }
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (labels, value) in rows {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

/// Formats the labels of a sample.
fn labels(rows: &[(&str, &str)]) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", quoted(value));
    format!("{{{}}}", rows.iter().map(label).collect::<Vec<_>>().join(","))
}

/// Renders the metrics.
pub(super) fn text(shared: &ServerState) -> String {
    let views = shared.watching.views();
    let live: Vec<_> = views.iter().filter(|view| view.state == State::Runs).collect();
    let now = now_ms();
    let mut page = Page::default();
    let all = [(String::new(), live.len() as f64)];
    page.family("planimeter_runs_live", "gauge", "Active runs.", &all);
    let of = |value: &dyn Fn(&runner::live::state::RunState) -> Option<f64>| {
        let row = |view: &&super::live_runs::View| {
            Some((labels(&[("run", &view.run)]), value(&view.picture)?))
        };
        live.iter().filter_map(row).collect::<Vec<_>>()
    };
    let planned = of(&|picture| Some(picture.planned.as_ref()?.trials as f64));
    page.family(
        "planimeter_trials_planned",
        "gauge",
        "Estimated number of trials of a run.",
        &planned,
    );
    let done = of(&|picture| Some(picture.done as f64));
    page.family("planimeter_trials_done", "gauge", "Completed trials of a run.", &done);
    let left = of(&|picture| picture.seconds_left(now));
    page.family(
        "planimeter_seconds_left",
        "gauge",
        "Estimated seconds until the end of a run.",
        &left,
    );
    let warned = of(&|picture| Some(picture.warned as f64));
    page.family("planimeter_warnings", "gauge", "Warnings of a run.", &warned);
    let lost = of(&|picture| Some(picture.lost as f64));
    page.family("planimeter_events_lost", "gauge", "Lost events of a run.", &lost);
    rates(&mut page, &live);
    brackets(&mut page, &live);
    own(&mut page, shared);
    page.0
}

fn rates(page: &mut Page, live: &[&super::live_runs::View]) {
    let mut rows = Vec::new();
    for view in live {
        for (number, port) in view.picture.ports.iter().enumerate() {
            let number = (number + 1).to_string();
            for (way, rates) in [("sent", &port.sent), ("received", &port.received)] {
                let names = [("run", view.run.as_str()), ("port", &number), ("direction", way)];
                rows.extend(rates.last().map(|rate| (labels(&names), *rate as f64)));
            }
        }
    }
    let help = "Frames per second at the tester's ports.";
    page.family("planimeter_port_frames_per_second", "gauge", help, &rows);
}

fn brackets(page: &mut Page, live: &[&super::live_runs::View]) {
    let mut rows = Vec::new();
    for view in live {
        for search in &view.picture.searches {
            let Some(step) = search.steps.last() else { continue };
            for (end, value) in
                [("tried", Some(step.tried)), ("met", step.met), ("missed", step.missed)]
            {
                let names = [
                    ("run", view.run.as_str()),
                    ("target", &search.target),
                    ("sought", &search.sought.what),
                    ("unit", &search.sought.unit),
                    ("bound", end),
                ];
                rows.extend(value.map(|value| (labels(&names), value)));
            }
        }
    }
    let help = "Bounds of a search and its current value, in the unit of the search.";
    page.family("planimeter_search_bound", "gauge", help, &rows);
}

fn own(page: &mut Page, shared: &ServerState) {
    let listeners = [(String::new(), shared.watching.watchers() as f64)];
    page.family("planimeter_serve_listeners", "gauge", "Clients that follow a run.", &listeners);
    let refused = [(String::new(), shared.counts.refused.load(Ordering::Relaxed) as f64)];
    let help = "Connections rejected by the connection limit.";
    page.family("planimeter_serve_connections_refused_total", "counter", help, &refused);
    let answers = shared.counts.answers.lock().unwrap_or_else(PoisonError::into_inner);
    let row =
        |(status, count): (&u16, &u64)| (labels(&[("status", &status.to_string())]), *count as f64);
    let rows: Vec<_> = answers.iter().map(row).collect();
    page.family("planimeter_serve_answers_total", "counter", "Responses by status.", &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_quotes() {
        let evil = "a\"} 1\nb\\";
        assert_eq!(labels(&[("run", evil)]), "{run=\"a\\\"} 1\\nb\\\\\"}");
    }
}
