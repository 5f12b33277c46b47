//! Finds what the barrier replies of switches are worth, and how long rules take.
//!
//! Source: OpenFlow 1.3.1, 6.2 (a barrier reply states that all messages before it are processed), and
//! section IV-B of oflops2018. Invariant: `stats::conclude` decides whether a switch acknowledges early.

use super::Value;
use crate::analysis::gelberger2013::named;
use record::links::Naming;
use record::{Cell, Experiment, Record, Target};
use stats::conclude::{Conclusion, acknowledges_early};

/// What the largest number of rules shows of a switch: of those with an early reply, or else of all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Barrier<'a> {
    pub(crate) target: String,
    /// Share of rules that probes prove premature.
    pub(crate) premature: &'a Cell,
    /// Time from the reply until the last rule acts; none if not every rule was seen to act.
    pub(crate) gap: Option<&'a Cell>,
    pub(crate) is_early: Conclusion,
}

impl<'a> Barrier<'a> {
    fn of(
        record: &'a Record,
        experiment: &'a Experiment,
        target: &'a Target,
    ) -> Option<Barrier<'a>> {
        let cells = |name| record.cells_of(&experiment.id, &target.name, named(name));
        let judged = cells("rules_premature_ratio").map(|premature| {
            let gap = cells("barrier_gap_ns_max").find(|gap| gap.point == premature.point);
            (premature, gap, acknowledges_early(Some(premature), gap))
        });
        let judged: Vec<_> = judged.collect();
        let is_early = |(_, _, found): &&(_, _, Conclusion)| *found == Conclusion::Greater;
        let (premature, gap, is_early) = *judged.iter().rfind(is_early).or(judged.last())?;
        let target = Naming::within(record, &experiment.id).of(&target.name);
        Some(Barrier { target, premature, gap, is_early })
    }

    fn gap_ns(&self) -> f64 {
        self.gap.map_or(0.0, |gap| gap.value)
    }

    /// The gap, if the probes show that the last rule acts after the reply.
    pub(super) fn shown_gap(&self) -> Option<&'a Cell> {
        self.gap.filter(|gap| acknowledges_early(None, Some(gap)) == Conclusion::Greater)
    }
}

/// The switches of an experiment about rules, the earliest reply first; none of other experiments.
pub(super) fn barriers<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
) -> Option<Vec<Barrier<'a>>> {
    let found = record.targets.iter().filter_map(|it| Barrier::of(record, experiment, it));
    let mut found: Vec<Barrier<'_>> = found.collect();
    found.sort_by(|a, b| b.gap_ns().total_cmp(&a.gap_ns()));
    (!found.is_empty()).then_some(found)
}

/// How long the largest number of rules takes until all of them act, the fastest switch first.
pub(super) fn activation<'a>(record: &'a Record, experiment: &'a Experiment) -> Vec<Value<'a>> {
    let naming = Naming::within(record, &experiment.id);
    let metric = named("data_plane_ns");
    let last = |target: &'a Target| record.cells_of(&experiment.id, &target.name, metric).last();
    let mut cells: Vec<&Cell> = record.targets.iter().filter_map(last).collect();
    cells.sort_by(|a, b| a.value.total_cmp(&b.value));
    if let Some(rules) = cells.first().map(|it| it.point.clone()) {
        cells.retain(|cell| cell.point == rules);
    }
    cells.into_iter().map(|cell| Value { target: naming.of(&cell.target), cell }).collect()
}
