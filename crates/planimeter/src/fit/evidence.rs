//! What stored runs say of one switch: values with how well they are known, and where each stands.
//!
//! Invariant: a value's half-width holds what repeats differ by and what the way of looking leaves open.

use results::conclude::Estimate;
use results::record::{Bound, BoundCause, Cell, Ended, Flag, ModuleRun, Role, Trial};

use super::Run;
use crate::parameter::own::Declared;

/// A number, how far the true one may lie from it, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Half the width of where the true one lies.
    pub half: f64,
    /// Which runs and which of their values tell it.
    pub from: String,
}

/// A cell of a run.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The run.
    pub run: &'a Run,
    /// Where on the axis it lies.
    pub x: f64,
    /// On which curve.
    pub curve: Option<f64>,
    /// The value.
    pub value: f64,
    /// How far the true one may lie from it.
    pub half: f64,
}

/// A trial of a module that ended as it should.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// The run.
    pub run: &'a Run,
    /// The trial.
    pub trial: &'a Trial,
    /// What the module found.
    pub module: &'a ModuleRun,
}

/// Runs, as far as they are about one target.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    runs: &'a [Run],
    target: &'a str,
}

impl<'a> Evidence<'a> {
    /// What these runs say of this target.
    pub fn new(runs: &'a [Run], target: &'a str) -> Evidence<'a> {
        Evidence { runs, target }
    }

    /// The cells of a metric, in the order of the runs and of their points.
    pub fn cells(&self, experiment: &'a str, metric: &'a str) -> Vec<Seen<'a>> {
        let of = move |run: &'a Run| {
            let is_it = move |cell: &&Cell| {
                cell.experiment == experiment
                    && cell.target == self.target
                    && cell.metric.name() == metric
            };
            let cells = run.record.cells.iter().filter(is_it).filter(|cell| is_accepted(cell));
            cells.map(move |cell| Seen {
                run,
                x: cell.point.value,
                curve: cell.point.within.as_ref().map(|within| within.value),
                value: cell.value,
                half: half(cell),
            })
        };
        self.runs.iter().flat_map(of).collect()
    }

    /// The trials of an experiment whose module came to its end.
    pub fn trials(&self, experiment: &'a str) -> Vec<Watched<'a>> {
        let of = move |run: &'a Run| {
            let is_it = move |trial: &&Trial| {
                trial.experiment == experiment
                    && trial.target == self.target
                    && trial.role == Role::Measure
                    && !trial.flags.contains(&Flag::Stall)
            };
            run.record.trials.iter().filter(is_it).filter_map(move |trial| {
                let module = trial.module.as_ref().filter(|it| it.ended == Ended::Said)?;
                Some(Watched { run, trial, module })
            })
        };
        self.runs.iter().flat_map(of).collect()
    }
}

/// Whether a model may be fitted to a value. Simulated time counts: models are fitted to models in it.
fn is_accepted(cell: &Cell) -> bool {
    let is_of_tester = |bound: Bound| bound.cause == BoundCause::TesterLimit;
    let excluded = Estimate::of(cell).about_behaviour().excluded();
    excluded.is_none() && !cell.bound.is_some_and(is_of_tester)
}

impl Watched<'_> {
    /// What the module measured under this name, with how well it is known.
    pub fn measured(&self, name: &str) -> Option<(f64, f64)> {
        let found = self.module.measured.iter().find(|found| found.metric.name() == name)?;
        Some((found.value, found.resolution.unwrap_or(0.0)))
    }

    /// How many samples a value of this name rests on.
    pub fn count(&self, name: &str) -> u64 {
        let found = self.module.measured.iter().find(|found| found.metric.name() == name);
        found.map_or(0, |found| found.count)
    }

    /// The points of a series.
    pub fn series(&self, name: &str) -> &[[f64; 2]] {
        let found = self.module.series.iter().find(|series| series.name == name);
        found.map_or(&[], |series| &series.points)
    }
}

/// What a parameter of its experiment was set to in a run.
pub fn setting<'a>(run: &'a Run, declared: &Declared) -> &'a str {
    let set = run.record.parameters.get("set").and_then(|set| set.as_array());
    let said = set.into_iter().flatten().filter_map(|one| one.as_str()?.split_once('='));
    let mut said = said.filter(|(key, _)| key.trim() == declared.key);
    said.next_back().map_or(declared.default, |(_, value)| value.trim())
}

/// The same as a number.
pub fn number(run: &Run, declared: &Declared) -> Option<f64> {
    setting(run, declared).parse().ok().filter(|value: &f64| value.is_finite())
}

/// Where a value stands, for a source.
pub fn place(run: &Run, experiment: &str, metric: &str) -> String {
    format!("measured: {}, {experiment}, {metric}", run.name)
}

fn half(cell: &Cell) -> f64 {
    let by_interval = |it: &results::record::Interval| {
        (it.high - cell.value).abs().max((cell.value - it.low).abs())
    };
    let least = cell.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = cell.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = if most > least { (most - least) / 2.0 } else { 0.0 };
    cell.interval.as_ref().map_or(spread, by_interval) + cell.resolution.unwrap_or(0.0)
}
