//! Supported features of a target: match types and rewrites that it accepts, and that packets show
//! to work.
//!
//! Source: costa2017, section IV-E: no hardware switch in the study has all optional features of
//! OpenFlow 1.0, and some accept features that they do not perform. Invariants:
//!
//! - An accepted feature is *not done* only if two of three repeats agree. In each of these, no
//!   correct packet arrived before the timeout.
//! - A feature on which the repeats disagree is *unstable*.

use super::{Entry, Table, run_of};
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Record, Target};

/// Explanation of the table.
pub(super) const READING: &str = "Match types and rewrites by outcome. Rejected: the switch rejected the rule, or \
                                  its OpenFlow version cannot express it. Not applied: the switch \
                                  accepted the rule, but packets show no effect. Unstable: the \
                                  repeats disagree. Late: the rule works, but takes effect after its \
                                  barrier reply. Each feature was tested with its own rules.";

/// Share of repeats that decides the outcome of a feature.
const QUORUM: f64 = 2.0 / 3.0;

/// Outcome of a feature test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Came {
    /// The rule takes effect, possibly this many nanoseconds after its barrier reply.
    Works {
        late_ns: Option<f64>,
    },
    Refused,
    Ignored,
    Unstable,
}

impl Came {
    /// Outcome of a feature from its values, which are selected by the suffixes of their names;
    /// none if it was not tested.
    pub(crate) fn of(value: impl Fn(&str) -> Option<f64>) -> Option<Came> {
        let tried = ["refused_count", "done_ratio", "returned_ratio", "right_ratio"];
        tried.iter().find_map(|what| value(what))?;
        if value("refused_count").is_some_and(|refused| refused > 0.0) {
            return Some(Came::Refused);
        }
        // Rounding can make a quorum slightly too small.
        let is_quorum = |share: f64| share >= QUORUM - 1e-9;
        let works = Came::Works { late_ns: value("late_ns") };
        Some(match (value("done_ratio"), value("undone_ratio")) {
            (Some(done), _) if is_quorum(done) => works,
            (_, Some(undone)) if is_quorum(undone) => Came::Ignored,
            (Some(_), _) | (_, Some(_)) => Came::Unstable,
            // Older records have no verdicts.
            (None, None) => match (value("returned_ratio"), value("right_ratio")) {
                (None | Some(0.0), _) | (_, Some(0.0)) => Came::Ignored,
                (_, None | Some(1.0)) => works,
                (_, Some(_)) => Came::Unstable,
            },
        })
    }

    /// Whether the feature works.
    pub(crate) fn works(self) -> bool {
        matches!(self, Came::Works { .. })
    }
}

/// A row per target and kind of feature.
pub(super) fn table(record: &Record, experiment: &Experiment) -> Table {
    let columns =
        ["target", "feature", "work", "late", "rejected", "accepted, not applied", "unstable"];
    let naming = Naming::within(record, &experiment.id);
    let mut rows = Vec::new();
    for target in &record.targets {
        for (what, item) in [("match types", "table3"), ("rewrites", "table6")] {
            let tried = tried(record, target, item);
            if tried.is_empty() {
                continue;
            }
            let of = |is: fn(Came) -> bool| {
                let names = tried.iter().filter(|(_, it)| is(*it)).map(|(name, _)| *name);
                names.map(|name| name.replace('_', " ")).collect::<Vec<_>>()
            };
            let works = of(Came::works).len();
            let late = tried.iter().filter_map(|(name, came)| match came {
                Came::Works { late_ns: Some(ns) } => {
                    let (name, ms) = (name.replace('_', " "), number::text(ns / 1e6));
                    Some(format!("{name} ({ms} ms)"))
                }
                _ => None,
            });
            rows.push(vec![
                Entry::word(naming.of(&target.name)),
                Entry::word(what),
                Entry::number(format!("{works} of {}", tried.len())),
                Entry::word(late.collect::<Vec<_>>().join(", ")),
                Entry::word(of(|it| it == Came::Refused).join(", ")),
                Entry::word(of(|it| it == Came::Ignored).join(", ")),
                Entry::word(of(|it| it == Came::Unstable).join(", ")),
            ]);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

/// The features tested in an item, by name, with their outcomes.
fn tried<'a>(record: &'a Record, target: &Target, item: &str) -> Vec<(&'a str, Came)> {
    let Some(experiment) = run_of(record, item) else { return Vec::new() };
    let here = |cell: &&Cell| cell.experiment == experiment.id && cell.target == target.name;
    let cells: Vec<&Cell> = record.cells.iter().filter(here).collect();
    let of = |name: &str, what: &str| {
        let wanted = format!("{name}_{what}");
        cells.iter().find(|cell| cell.metric.name() == wanted).map(|cell| cell.value)
    };
    let mut found: Vec<(&str, Came)> = Vec::new();
    for cell in &cells {
        let Some(name) = cell.metric.name().strip_suffix("_refused_count") else { continue };
        // Packets without a rewrite and those of a bridge do not count.
        let is_plain = name == "none" || name == "tagged_none" || name == "legacy";
        if is_plain || found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        found.extend(Came::of(|what| of(name, what)).map(|came| (name, came)));
    }
    found
}
