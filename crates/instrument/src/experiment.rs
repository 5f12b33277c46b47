//! An experiment is a pure state machine: it yields steps as values and digests their outcomes.
//!
//! It does no I/O, reads no clock and waits for nothing, so that the same experiment runs
//! unchanged on a live network and in a simulation. What a target has to install is a type of
//! whoever knows targets; here it is a parameter.

use crate::rig::{Rig, RigError};
use crate::trial::{Trial, TrialReport};

/// A study in progress.
pub trait Experiment {
    /// What a target has to install before frames can flow.
    type Setup;

    /// The next step, given what came of the last one (`None` at the beginning).
    fn next(&mut self, last: Option<&Outcome>) -> Step<Self::Setup>;
}

/// What an experiment wants next.
#[derive(Debug, Clone, PartialEq)]
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

/// Why an experiment ended early.
#[derive(Debug)]
pub enum DriveError<E> {
    /// The target could not be made ready.
    Install(E),
    /// A trial could not be run.
    Rig(RigError),
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

/// Runs an experiment to its end: `install` makes the target ready, `rig` runs the trials,
/// `digested` sees each outcome before the experiment does and may add to it (what the target
/// says it dropped, for one).
pub fn drive<X: Experiment, E>(
    experiment: &mut X,
    rig: &mut dyn Rig,
    mut install: impl FnMut(&X::Setup) -> Result<(), E>,
    mut digested: impl FnMut(&mut Outcome),
) -> Result<(), DriveError<E>> {
    let mut last = None;
    loop {
        let mut outcome = match experiment.next(last.as_ref()) {
            Step::Done => return Ok(()),
            Step::Install(setup) => {
                install(&setup).map_err(DriveError::Install)?;
                Outcome::Installed
            }
            Step::Trial { point, trial } => {
                let report = Box::new(rig.trial(&trial).map_err(DriveError::Rig)?);
                Outcome::Trial { point, report }
            }
        };
        digested(&mut outcome);
        last = Some(outcome);
    }
}

impl<E: std::fmt::Display> std::fmt::Display for DriveError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DriveError::Install(error) => write!(f, "making the target ready: {error}"),
            DriveError::Rig(error) => write!(f, "{error}"),
        }
    }
}

impl<E: std::fmt::Display + std::fmt::Debug> std::error::Error for DriveError<E> {}
