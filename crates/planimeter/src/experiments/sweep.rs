//! A fixed list of points, each tried several times: repeat by repeat, point by point.
//!
//! Repeats are the outer loop, so that targets which take turns meet each point of a repeat close
//! in time, and a machine that drifts does so across repeats, where intervals show it.

use instrument::experiment::{Experiment, Outcome, Point, Step};
use instrument::trial::Trial;
use results::record::Role;

use super::{Method, Tag};
use crate::workload::Setup;

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Value on the experiment's axis.
    pub x: f64,
    /// What the target must hold.
    pub setup: Setup,
    /// The load.
    pub trial: Trial,
}

/// A sweep at work.
#[derive(Debug)]
pub struct Sweep {
    axis: &'static str,
    points: Vec<SweepPoint>,
    repeats: u32,
    /// Trials that have been yielded.
    yielded: u64,
    installed: Option<Setup>,
}

impl Sweep {
    /// These points, each `repeats` times.
    pub fn new(axis: &'static str, points: Vec<SweepPoint>, repeats: u32) -> Self {
        Sweep { axis, points, repeats, yielded: 0, installed: None }
    }
}

impl Experiment for Sweep {
    type Setup = Setup;

    fn next(&mut self, _last: Option<&Outcome>) -> Step<Setup> {
        if self.yielded == self.trials_expected() {
            return Step::Done;
        }
        let point = &self.points[(self.yielded % self.points.len() as u64) as usize];
        if self.installed != Some(point.setup) {
            self.installed = Some(point.setup);
            return Step::Install(point.setup);
        }
        self.yielded += 1;
        Step::Trial { point: Point::new(&[(self.axis, point.x)]), trial: point.trial.clone() }
    }
}

impl Method for Sweep {
    fn tag(&self) -> Tag {
        let repeat = self.yielded.saturating_sub(1) / self.points.len().max(1) as u64;
        Tag { role: Role::Measure, repeat: repeat as u32 + 1 }
    }

    fn trials_expected(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.repeats)
    }
}
