//! An experiment is a pure state machine: it yields steps as values and digests their outcomes.
//!
//! It does no I/O, reads no clock and waits for nothing, so that the same experiment runs
//! unchanged on a live network and in a simulation. What a target has to install is a type of
//! whoever knows targets; here it is a parameter.

use crate::module::{Module, StageReport};
use crate::trial::{Trial, TrialReport};

/// A study in progress.
pub trait Experiment {
    /// What a target has to install before frames can flow.
    type Setup;

    /// The next step, given what came of the last one (`None` at the beginning).
    fn next(&mut self, last: Option<&Outcome>) -> Step<Self::Setup>;
}

/// What an experiment wants next.
pub enum Step<S> {
    /// Make the target ready in this way.
    Install(S),
    /// Offer this load.
    Trial {
        /// Where it lies on the experiment's axes.
        point: Point,
        /// The load.
        trial: Trial,
    },
    /// Carry a measurement module out.
    Module {
        /// Where it lies on the experiment's axes.
        point: Point,
        /// The module.
        module: Box<dyn Module>,
    },
    /// Nothing: it is finished.
    Done,
}

/// What came of a step.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The target is ready.
    Installed,
    /// A trial was run.
    Trial {
        /// The trial's point.
        point: Point,
        /// What was seen.
        report: Box<TrialReport>,
    },
    /// A module was carried out.
    Module {
        /// The module's point.
        point: Point,
        /// What came of it.
        report: Box<StageReport>,
    },
}

/// Where a trial lies: a value on each axis of the experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point(pub Vec<Coordinate>);

/// A value on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coordinate {
    /// The axis, its unit in the name: `frame_bytes`, `rate_pps`.
    pub axis: &'static str,
    /// The value.
    pub value: f64,
}

impl Point {
    /// A point from its axes and values.
    pub fn new(coordinates: &[(&'static str, f64)]) -> Self {
        Point(coordinates.iter().map(|&(axis, value)| Coordinate { axis, value }).collect())
    }

    /// The value on `axis`, if the point has one.
    pub fn value(&self, axis: &str) -> Option<f64> {
        self.0.iter().find(|coordinate| coordinate.axis == axis).map(|found| found.value)
    }
}
