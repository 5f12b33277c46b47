//! What a target really has: types of match and rewrites that were accepted, and that packets show to be done.
//!
//! Source: costa2017, section IV-E: no hardware switch there has all optional features of 1.0, and some accept what
//! they do not do. Invariant: what was accepted counts only if packets came back by it, and a rewrite only if every
//! packet that was compared came out as it should.

use super::{Entry, Table, run_of};
use crate::links::Naming;
use crate::record::{Cell, Experiment, Record, Target};

/// How to read it.
pub(super) const READING: &str = "Of the types of match and of the rewrites that were tried: those that work, those that the switch \
                                  refused or its version of OpenFlow cannot say, and those that it accepted and that \
                                  packets do not show. Each was tried with rules of its own.";

/// What came of something that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Works,
    Refused,
    Ignored,
}

/// A row for each target and each of both kinds.
pub(super) fn table(record: &Record, experiment: &Experiment) -> Table {
    let columns = ["target", "what", "work", "refused", "accepted, and not done"];
    let naming = Naming::within(record, &experiment.id);
    let mut rows = Vec::new();
    for target in &record.targets {
        for (what, item) in [("types of match", "table3"), ("rewrites", "table6")] {
            let tried = tried(record, target, item);
            if tried.is_empty() {
                continue;
            }
            let of = |came: Came| {
                let names = tried.iter().filter(|(_, it)| *it == came).map(|(name, _)| *name);
                names.map(|name| name.replace('_', " ")).collect::<Vec<_>>()
            };
            let works = of(Came::Works).len();
            rows.push(vec![
                Entry::word(naming.of(&target.name)),
                Entry::word(what),
                Entry::number(format!("{works} of {}", tried.len())),
                Entry::word(of(Came::Refused).join(", ")),
                Entry::word(of(Came::Ignored).join(", ")),
            ]);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}

/// What was tried in an item, by name, and what came of it.
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
        // What a packet without any rewrite shows is not one of them, nor what a bridge does.
        let is_plain = name == "none" || name == "tagged_none" || name == "legacy";
        if is_plain || found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let came = match (cell.value > 0.0, of(name, "returned_ratio"), of(name, "right_ratio")) {
            (true, ..) => Came::Refused,
            (false, Some(back), right) if back > 0.0 && right.is_none_or(|it| it == 1.0) => {
                Came::Works
            }
            _ => Came::Ignored,
        };
        found.push((name, came));
    }
    found
}
