//! A row of trials that is gone through again and again, and what each pass comes to.
//!
//! Experiments with a controller need what a sweep has no room for: trials whose orders follow from
//! the setup, loads that are shares of the target's own maximum, flows that were never met, and a value
//! that two trials of a pass make together. Each of them is a row of [`Leg`]s. The maximum is what
//! comes out under full nominal load, in a trial ahead of all passes.

use instrument::experiment::{Experiment, Outcome, Point, Step};
use instrument::stream::Rate;
use instrument::trial::{Trial, TrialReport};
use results::record::{Metric, Role};

use super::{Context, Finding, Method, Tag};
use crate::workload::Setup;

/// One trial of a pass.
pub struct Leg {
    /// Where it lies on the axis.
    pub x: f64,
    /// Which of the target's curves it belongs to, where there are several.
    pub curve: Option<(&'static str, f64)>,
    /// What the target must hold, in each repeat, from 1.
    pub setup: Box<dyn Fn(u32) -> Setup + Send>,
    /// The trial with that setup, and with the target's own maximum in frames per second where that
    /// is wanted.
    pub trial: MakeTrial,
    /// Flows by which the target's memory has grown since it was made.
    pub flows: u64,
}

/// The trial in which the maximum of a curve is looked for, and what was found.
#[derive(Clone)]
struct Search {
    curve: Option<(&'static str, f64)>,
    setup: Setup,
    trial: Trial,
    most_pps: Option<f64>,
}

/// Makes a trial of a setup and a maximum.
pub type MakeTrial = Box<dyn Fn(&Setup, f64) -> Trial + Send>;

/// What the trials of a pass come to.
pub type Sum = fn(&[TrialReport]) -> Option<f64>;

/// A row of trials at work.
pub struct Course {
    context: Context,
    axis: &'static str,
    legs: Vec<Leg>,
    /// Its place on the axis, what it is, and how it is made.
    sum: Option<(f64, Metric, Sum)>,
    /// How the maximum of each curve is looked for.
    maxima: Vec<Search>,
    installed: Option<Setup>,
    yielded: u64,
    is_searching: bool,
    reports: Vec<TrialReport>,
    findings: Vec<Finding>,
}

impl Course {
    /// These trials, again and again.
    pub fn new(context: &Context, axis: &'static str, legs: Vec<Leg>) -> Course {
        Course {
            context: context.clone(),
            axis,
            legs,
            sum: None,
            maxima: Vec::new(),
            installed: None,
            yielded: 0,
            is_searching: false,
            reports: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// The same with a value at `x` that the trials of each pass make together.
    #[must_use]
    pub fn summing(self, x: f64, metric: Metric, sum: Sum) -> Course {
        Course { sum: Some((x, metric, sum)), ..self }
    }

    /// The same with the target's own maximum looked for first, under this setup.
    #[must_use]
    pub fn after_maximum(self, setup: Setup, frame_bytes: u16) -> Course {
        let trial = self.context.trial(&setup, frame_bytes, self.context.link_percent(100.0));
        self.after_maximum_of(None, setup, trial)
    }

    /// The same with the maximum of a curve looked for in this trial.
    #[must_use]
    pub fn after_maximum_of(
        mut self,
        curve: Option<(&'static str, f64)>,
        setup: Setup,
        trial: Trial,
    ) -> Course {
        self.maxima.push(Search { curve, setup, trial, most_pps: None });
        self
    }

    fn take(&mut self, last: Option<&Outcome>) {
        let Some(Outcome::Trial { report, .. }) = last else { return };
        if std::mem::take(&mut self.is_searching) {
            if let Some(search) = self.maxima.iter_mut().find(|it| it.most_pps.is_none()) {
                search.most_pps = Some(report.total.pps_forwarded());
            }
            return;
        }
        self.reports.push(TrialReport::clone(report));
        if self.reports.len() == self.legs.len() {
            let reports = std::mem::take(&mut self.reports);
            let Some((x, metric, sum)) = self.sum else { return };
            let repeat = (self.yielded / self.legs.len() as u64) as u32;
            let found = |value| Finding::new(repeat, self.axis, x, metric, value);
            self.findings.extend(sum(&reports).map(found));
        }
    }

    fn with(&mut self, setup: Setup, next: impl FnOnce(&mut Self) -> Step<Setup>) -> Step<Setup> {
        if self.installed == Some(setup) {
            return next(self);
        }
        self.installed = Some(setup);
        Step::Install(setup)
    }
}

impl Experiment for Course {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        self.take(last);
        if let Some(search) = self.maxima.iter().find(|it| it.most_pps.is_none()) {
            let Search { curve, setup, trial, .. } = search.clone();
            return self.with(setup, |course| {
                course.is_searching = true;
                let axes: Vec<_> = [(course.axis, 0.0)].into_iter().chain(curve).collect();
                Step::Trial { point: Point::new(&axes), trial }
            });
        }
        let legs = self.legs.len() as u64;
        if self.yielded == legs * u64::from(self.context.parameters.repeats) {
            return Step::Done;
        }
        let (place, repeat) = ((self.yielded % legs) as usize, self.yielded / legs + 1);
        let setup = (self.legs[place].setup)(repeat as u32);
        self.with(setup, |course| {
            course.yielded += 1;
            let leg = &course.legs[place];
            let own = course.maxima.iter().find(|search| search.curve == leg.curve);
            let most = own.and_then(|search| search.most_pps).unwrap_or(0.0);
            let axes: Vec<_> = [(course.axis, leg.x)].into_iter().chain(leg.curve).collect();
            Step::Trial { point: Point::new(&axes), trial: (leg.trial)(&setup, most) }
        })
    }
}

impl Method for Course {
    fn tag(&self) -> Tag {
        let repeat = self.yielded.saturating_sub(1) / self.legs.len().max(1) as u64;
        let role = if self.is_searching { Role::Maximum } else { Role::Measure };
        Tag { role, repeat: repeat as u32 + 1 }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn flows_grown(&self) -> u64 {
        let legs = self.legs.len() as u64;
        let last = self.yielded.checked_sub(1).filter(|_| !self.is_searching);
        last.map_or(0, |last| self.legs[(last % legs.max(1)) as usize].flows)
    }
}

/// This share of the maximum as a rate.
pub fn share(most_pps: f64, percent: f64) -> Rate {
    Rate::FramesPerSecond((most_pps * percent / 100.0).max(1.0))
}
