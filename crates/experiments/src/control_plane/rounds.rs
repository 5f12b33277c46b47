//! Repeats modules at several points.
//!
//! Each value that a module measures becomes a separate result at its point and repeat. Repeats thus give
//! confidence intervals, and targets can be compared as with every other result.

use record::{Metric, Name, Role};
use tester::module::{Ended, Module, StageReport};
use tester::procedure::{Outcome, Point, Procedure, Step};

use crate::{Context, Finding, Method, Tag};
use workload::Setup;

/// Creates the module for a repeat, from 1.
type ModuleFactory = Box<dyn Fn(u32) -> Box<dyn Module> + Send>;

/// A point, and the module that runs there.
pub struct ModulePoint {
    x: f64,
    curve: Option<(&'static str, f64)>,
    /// Prefix of the metric names.
    prefix: &'static str,
    /// Setup that the target needs beforehand, if no controller installs it.
    holds: Option<Setup>,
    make: ModuleFactory,
    /// Approximate duration in seconds.
    seconds: f64,
}

/// All points, repeated.
pub struct RepeatedModule {
    axis: &'static str,
    spots: Vec<ModulePoint>,
    repeats: u32,
    yielded: u64,
    /// Current setup of the target, as far as this method set it.
    held: Option<Setup>,
    findings: Vec<Finding>,
}

impl ModulePoint {
    /// Creates a point at `x` on the axis, with the approximate duration.
    pub fn new(
        x: f64,
        seconds: f64,
        make: impl Fn(u32) -> Box<dyn Module> + Send + 'static,
    ) -> ModulePoint {
        ModulePoint { x, curve: None, prefix: "", holds: None, make: Box::new(make), seconds }
    }

    /// Puts the point on a separate curve.
    #[must_use]
    pub fn on(self, curve: &'static str, value: f64) -> ModulePoint {
        ModulePoint { curve: Some((curve, value)), ..self }
    }

    /// Sets a prefix for the metric names, to distinguish similar modules at the same point.
    #[must_use]
    pub fn named(self, prefix: &'static str) -> ModulePoint {
        ModulePoint { prefix, ..self }
    }

    /// Sets the setup of the target, for a bridge or a router whose entries no module can install.
    #[must_use]
    pub fn over(self, setup: Setup) -> ModulePoint {
        ModulePoint { holds: Some(setup), ..self }
    }
}

impl RepeatedModule {
    /// Creates the method with these points on this axis, repeated as configured.
    pub fn new(context: &Context, axis: &'static str, spots: Vec<ModulePoint>) -> RepeatedModule {
        let repeats = context.parameters.repeats;
        RepeatedModule { axis, spots, repeats, yielded: 0, held: None, findings: Vec::new() }
    }

    /// Returns the point yielded last, and its repeat from 1.
    fn last(&self) -> Option<(&ModulePoint, u32)> {
        let last = self.yielded.checked_sub(1)?;
        let count = self.spots.len() as u64;
        Some((&self.spots[(last % count) as usize], (last / count) as u32 + 1))
    }

    fn take(&mut self, report: &StageReport) {
        let Some((spot, repeat)) = self.last() else { return };
        let irregular = report.ended != Ended::Completed || !report.limits.is_empty();
        let found: Vec<Finding> = report
            .measured
            .iter()
            .filter_map(|measured| {
                // A value whose name is not valid in a record appears only in the line of the trial.
                let name = Name::read(&format!("{}{}", spot.prefix, measured.name)).ok()?;
                // A listed name maps to that metric, as when the record is read.
                let listed = Metric::ALL.into_iter().find(|it| it.name() == name.text());
                let metric = listed.unwrap_or(Metric::Named(name));
                let resolution = measured.half_width.filter(|half| *half > 0.0);
                let value = measured.value;
                Some(Finding {
                    curve: spot.curve,
                    resolution,
                    bound: measured.bound,
                    irregular,
                    ..Finding::new(repeat, self.axis, spot.x, metric, value)
                })
            })
            .collect();
        self.findings.extend(found);
    }
}

impl Procedure for RepeatedModule {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(Outcome::Module { report, .. }) = last {
            self.take(report);
        }
        let count = self.spots.len() as u64;
        if self.yielded == count * u64::from(self.repeats) {
            return Step::Done;
        }
        let next = &self.spots[(self.yielded % count) as usize];
        if let Some(setup) = next.holds.filter(|setup| self.held != Some(*setup)) {
            self.held = Some(setup);
            return Step::Install(setup);
        }
        self.yielded += 1;
        let (spot, repeat) = self.last().expect("a spot was yielded above");
        let mut coordinates = vec![(self.axis, spot.x)];
        coordinates.extend(spot.curve);
        Step::Module { point: Point::new(&coordinates), module: (spot.make)(repeat) }
    }
}

impl Method for RepeatedModule {
    fn tag(&self) -> Tag {
        Tag { role: Role::Measure, repeat: self.last().map_or(1, |(_, repeat)| repeat) }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn module_seconds(&self) -> Option<f64> {
        self.last().map(|(spot, _)| spot.seconds)
    }
}
