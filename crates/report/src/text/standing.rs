//! The place of each switch among those of costa2017: the headline of its discussion.
//!
//! Source: the table of places (`table::costa2017`), which decides who has one.

use crate::table::costa2017::places_by_target;
use record::{Experiment, Record};

/// The experiment that this is the headline of.
pub(super) const EXPERIMENT: &str = "costa2017/discussion";

/// For each switch its place by each criterion, such as `planimeter switch: place 1 of 10 by delay of a match by IP`.
pub(super) fn places(record: &Record, experiment: &Experiment) -> Option<String> {
    let each = places_by_target(record, experiment).into_iter().map(|(target, places)| {
        let places = places.iter().map(|(criterion, place)| format!("{place} by {criterion}"));
        format!("{target} is {}", places.collect::<Vec<_>>().join(", "))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty())
        .then(|| format!("Among the switches of the study, 1 the best: {}.", each.join("; ")))
}

/// The same for a run whose only question it is.
pub(super) fn headline(record: &Record) -> Option<String> {
    let experiment = record.experiments.iter().find(|it| it.id == EXPERIMENT)?;
    places(record, experiment)
}
