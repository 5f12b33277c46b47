//! The link between the tester and each target of a run.
//!
//! Targets may have different links, whose costs are part of the measured values. Invariant: if
//! targets in one table have different links, each label includes the link, and a ratio between
//! them has a warning. Targets with one label have their whole names.

use crate::target_name::label;
use crate::{Calibration, Record, Target};

/// The link of a target: its own, or else the run's.
pub fn of<'a>(record: &'a Record, target: &str) -> &'a str {
    let own = record.target(target).and_then(|target| target.link.as_deref());
    own.unwrap_or(&record.link)
}

/// Whether targets of the run have different links.
pub fn are_several(record: &Record) -> bool {
    let mut links = record.targets.iter().map(|target| of(record, &target.name));
    links.next().is_some_and(|first| links.any(|link| link != first))
}

/// Calibration of the tester over a target's link.
pub fn calibration<'a>(record: &'a Record, target: &str) -> Option<&'a Calibration> {
    if !are_several(record) {
        return record.calibrations.first();
    }
    let link = of(record, target);
    record.calibrations.iter().find(|known| known.link == link)
}

/// The targets grouped by link, both in the record's order.
pub fn gathered(record: &Record) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for Target { name, .. } in &record.targets {
        let link = of(record, name);
        match all.iter_mut().find(|(known, _)| *known == link) {
            Some((_, names)) => names.push(name),
            None => all.push((link, vec![name])),
        }
    }
    all
}

/// Labels of targets in one figure or table.
#[derive(Debug, Clone, Copy)]
pub struct Naming<'a> {
    record: &'a Record,
    with_links: bool,
}

impl<'a> Naming<'a> {
    /// Labels for these targets.
    pub fn among<'t>(record: &'a Record, targets: impl IntoIterator<Item = &'t str>) -> Naming<'a> {
        let mut links = targets.into_iter().map(|target| of(record, target));
        let with_links = links.next().is_some_and(|first| links.any(|link| link != first));
        Naming { record, with_links }
    }

    /// Labels for the targets that have results in an experiment.
    pub fn within(record: &'a Record, experiment: &str) -> Naming<'a> {
        let cells = record.cells.iter().filter(|cell| cell.experiment == experiment);
        Naming::among(record, cells.map(|cell| cell.target.as_str()))
    }

    /// A target's label, with its link if links differ.
    pub fn of(&self, target: &str) -> String {
        let label = label(target);
        let is_other = |other: &&Target| other.name != target && self::label(&other.name) == label;
        let name = match self.record.targets.iter().find(is_other) {
            Some(_) => target.to_string(),
            None => label,
        };
        match self.with_links {
            true => format!("{name} over {}", of(self.record, target)),
            false => name,
        }
    }
}
