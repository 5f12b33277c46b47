//! A module carried out at several points, and all of them again and again.
//!
//! Whatever a module measures is a finding of its own at the point and repeat at which it did, so that
//! repeats give intervals and targets can be compared, as with every other result.

use instrument::experiment::{Experiment, Outcome, Point, Step};
use instrument::module::{Ended, Module, StageReport};
use results::record::{Metric, Name, Role};

use crate::experiments::{Context, Finding, Method, Tag};
use crate::workload::Setup;

/// Makes the module for a repeat, from 1.
type Make = Box<dyn Fn(u32) -> Box<dyn Module> + Send>;

/// A point and the module that is carried out there.
pub struct Spot {
    x: f64,
    curve: Option<(&'static str, f64)>,
    /// What comes before the names of what it measures.
    prefix: &'static str,
    /// What the target is to hold before, where no controller tells it.
    holds: Option<Setup>,
    make: Make,
    /// About how long it takes, in seconds.
    seconds: f64,
}

/// Every spot, again and again.
pub struct Rounds {
    axis: &'static str,
    spots: Vec<Spot>,
    repeats: u32,
    yielded: u64,
    /// What the target holds, as far as it was said here.
    held: Option<Setup>,
    findings: Vec<Finding>,
}

impl Spot {
    /// A module at `x` on the axis, which takes about so long.
    pub fn new(
        x: f64,
        seconds: f64,
        make: impl Fn(u32) -> Box<dyn Module> + Send + 'static,
    ) -> Spot {
        Spot { x, curve: None, prefix: "", holds: None, make: Box::new(make), seconds }
    }

    /// The same on a curve of its own.
    #[must_use]
    pub fn on(self, curve: &'static str, value: f64) -> Spot {
        Spot { curve: Some((curve, value)), ..self }
    }

    /// The same with what it measures named so, because another module measures the like at the same
    /// point.
    #[must_use]
    pub fn named(self, prefix: &'static str) -> Spot {
        Spot { prefix, ..self }
    }

    /// The same on a target that holds this: a bridge or a router, whose entries no module can say.
    #[must_use]
    pub fn over(self, setup: Setup) -> Spot {
        Spot { holds: Some(setup), ..self }
    }
}

impl Rounds {
    /// These spots on this axis, repeated as the user asked.
    pub fn new(context: &Context, axis: &'static str, spots: Vec<Spot>) -> Rounds {
        let repeats = context.parameters.repeats;
        Rounds { axis, spots, repeats, yielded: 0, held: None, findings: Vec::new() }
    }

    /// The spot that was yielded last, and its repeat from 1.
    fn last(&self) -> Option<(&Spot, u32)> {
        let last = self.yielded.checked_sub(1)?;
        let count = self.spots.len() as u64;
        Some((&self.spots[(last % count) as usize], (last / count) as u32 + 1))
    }

    fn take(&mut self, report: &StageReport) {
        let Some((spot, repeat)) = self.last() else { return };
        let irregular = report.ended != Ended::Said || !report.limits.is_empty();
        let found: Vec<Finding> = report
            .measured
            .iter()
            .filter_map(|measured| {
                // What has no name that a record could keep stands in the trial's line only.
                let name = Name::read(&format!("{}{}", spot.prefix, measured.name)).ok()?;
                // A name that is in the list is that metric, as it is when the record is read again.
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

impl Experiment for Rounds {
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
        let (spot, repeat) = self.last().expect("one has just been counted");
        let mut coordinates = vec![(self.axis, spot.x)];
        coordinates.extend(spot.curve);
        Step::Module { point: Point::new(&coordinates), module: (spot.make)(repeat) }
    }
}

impl Method for Rounds {
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
