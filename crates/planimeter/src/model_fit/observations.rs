//! Evidence about one switch in stored runs: values with their uncertainty and their source.
//!
//! Invariant: the half width of a value covers the differences between repeats and the uncertainty
//! of the method.

use record::{Bound, BoundCause, Cell, Ended, Flag, ModuleRun, Role, Trial};
use stats::conclude::Estimate;

use super::Run;
use workload::parameter::declaration::Parameter;

/// A number with its uncertainty and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Number.
    pub value: f64,
    /// Half of the width of the interval with the true value.
    pub half: f64,
    /// Runs and values that it comes from.
    pub from: String,
}

/// A cell of a run.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCell<'a> {
    /// Run.
    pub run: &'a Run,
    /// Position on the axis.
    pub x: f64,
    /// Curve.
    pub curve: Option<f64>,
    /// Value.
    pub value: f64,
    /// Uncertainty.
    pub half: f64,
}

/// A trial of a module that ended normally.
#[derive(Debug, Clone, Copy)]
pub struct ObservedTrial<'a> {
    /// Run.
    pub run: &'a Run,
    /// Trial.
    pub trial: &'a Trial,
    /// Results of the module.
    pub module: &'a ModuleRun,
}

/// Runs, restricted to one target.
#[derive(Debug, Clone, Copy)]
pub struct TargetRuns<'a> {
    runs: &'a [Run],
    target: &'a str,
}

impl<'a> TargetRuns<'a> {
    /// Selects the evidence about this target.
    pub fn new(runs: &'a [Run], target: &'a str) -> TargetRuns<'a> {
        TargetRuns { runs, target }
    }

    /// Returns the cells of a metric, in the order of the runs and of their points.
    pub fn cells(&self, experiment: &'a str, metric: &'a str) -> Vec<ObservedCell<'a>> {
        let of = move |run: &'a Run| {
            let is_it = move |cell: &&Cell| {
                cell.experiment == experiment
                    && cell.target == self.target
                    && cell.metric.name() == metric
            };
            let cells = run.record.cells.iter().filter(is_it).filter(|cell| is_accepted(cell));
            cells.map(move |cell| ObservedCell {
                run,
                x: cell.point.value,
                curve: cell.point.within.as_ref().map(|within| within.value),
                value: cell.value,
                half: half(cell),
            })
        };
        self.runs.iter().flat_map(of).collect()
    }

    /// Returns the trials of an experiment whose module ended normally.
    pub fn trials(&self, experiment: &'a str) -> Vec<ObservedTrial<'a>> {
        let of = move |run: &'a Run| {
            let is_it = move |trial: &&Trial| {
                trial.experiment == experiment
                    && trial.target == self.target
                    && trial.role == Role::Measure
                    && !trial.flags.contains(&Flag::Stall)
            };
            run.record.trials.iter().filter(is_it).filter_map(move |trial| {
                let module = trial.module.as_ref().filter(|it| it.ended == Ended::Completed)?;
                Some(ObservedTrial { run, trial, module })
            })
        };
        self.runs.iter().flat_map(of).collect()
    }
}

/// Returns whether a value can be used for a model. Simulated time is valid: models are fitted to
/// models in it.
fn is_accepted(cell: &Cell) -> bool {
    let is_of_tester = |bound: Bound| bound.cause == BoundCause::TesterLimit;
    let excluded = Estimate::of(cell).about_behaviour().excluded();
    excluded.is_none() && !cell.bound.is_some_and(is_of_tester)
}

impl ObservedTrial<'_> {
    /// Returns the value that the module measured under this name, with its uncertainty.
    pub fn measured(&self, name: &str) -> Option<(f64, f64)> {
        let found = self.module.measured.iter().find(|found| found.metric.name() == name)?;
        Some((found.value, found.resolution.unwrap_or(0.0)))
    }

    /// Returns the number of samples of the value with this name.
    pub fn count(&self, name: &str) -> u64 {
        let found = self.module.measured.iter().find(|found| found.metric.name() == name);
        found.map_or(0, |found| found.count)
    }

    /// Returns the points of a series.
    pub fn series(&self, name: &str) -> &[[f64; 2]] {
        let found = self.module.series.iter().find(|series| series.name == name);
        found.map_or(&[], |series| &series.points)
    }
}

/// Returns the value of an experiment's parameter in a run.
pub fn setting<'a>(run: &'a Run, declared: &Parameter) -> &'a str {
    let set = run.record.parameters.get("set").and_then(|set| set.as_array());
    let said = set.into_iter().flatten().filter_map(|one| one.as_str()?.split_once('='));
    let mut said = said.filter(|(key, _)| key.trim() == declared.key);
    said.next_back().map_or(declared.default, |(_, value)| value.trim())
}

/// Returns the value of a parameter as a number.
pub fn number(run: &Run, declared: &Parameter) -> Option<f64> {
    setting(run, declared).parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns the location of a value, for a source.
pub fn place(run: &Run, experiment: &str, metric: &str) -> String {
    format!("measured: {}, {experiment}, {metric}", run.name)
}

fn half(cell: &Cell) -> f64 {
    let by_interval =
        |it: &record::Interval| (it.high - cell.value).abs().max((cell.value - it.low).abs());
    let least = cell.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let most = cell.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = if most > least { (most - least) / 2.0 } else { 0.0 };
    cell.interval.as_ref().map_or(spread, by_interval) + cell.resolution.unwrap_or(0.0)
}
