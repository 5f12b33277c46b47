//! Measurement procedures: pure state machines that yield steps as values and process their outcomes.
//!
//! A procedure does no I/O, reads no clock and never blocks. So it runs unchanged on a live
//! network and in a simulation. The target's configuration is a type parameter, which crates that
//! know targets define.

use crate::module::{Module, StageReport};
use crate::trial::{Trial, TrialReport};

/// A measurement procedure in progress.
pub trait Procedure {
    /// Configuration that a target must install before frames can flow.
    type Setup;

    /// Returns the next step, given the outcome of the last one (`None` at the start).
    fn next(&mut self, last: Option<&Outcome>) -> Step<Self::Setup>;
}

/// The next step of a procedure.
pub enum Step<S> {
    /// Install this configuration in the target.
    Install(S),
    /// Run a trial.
    Trial {
        /// Position on the experiment's axes.
        point: Point,
        /// The trial.
        trial: Trial,
    },
    /// Run a measurement module.
    Module {
        /// Position on the experiment's axes.
        point: Point,
        /// The module.
        module: Box<dyn Module>,
    },
    /// The procedure is finished.
    Done,
}

/// Outcome of a step.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The target is configured.
    Installed,
    /// A trial was run.
    Trial {
        /// Position of the trial.
        point: Point,
        /// The trial's report.
        report: Box<TrialReport>,
    },
    /// A module was run.
    Module {
        /// Position of the module.
        point: Point,
        /// The module's report.
        report: Box<StageReport>,
    },
}

/// Position of a trial: a value on each axis of the experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point(pub Vec<Coordinate>);

/// A value on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coordinate {
    /// Name of the axis, with its unit: `frame_bytes`, `rate_pps`.
    pub axis: &'static str,
    /// The value.
    pub value: f64,
}

impl Point {
    /// Creates a point from axes and values.
    pub fn new(coordinates: &[(&'static str, f64)]) -> Self {
        Point(coordinates.iter().map(|&(axis, value)| Coordinate { axis, value }).collect())
    }

    /// Returns the value on `axis`, if the point has one.
    pub fn value(&self, axis: &str) -> Option<f64> {
        self.0.iter().find(|coordinate| coordinate.axis == axis).map(|found| found.value)
    }
}
