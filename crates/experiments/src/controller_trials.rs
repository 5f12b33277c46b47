//! A series of trials that is repeated, and the results of each pass.
//!
//! Controller experiments need features that a sweep does not have: trials with controller messages derived from
//! the setup, loads that are shares of the target's own maximum, new flows, and values derived from two trials of a
//! pass. Each of them is a series of [`PassTrial`]s. The maximum is the forwarding rate under full nominal load, in a
//! trial before all passes.

use record::{Metric, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::stream::Rate;
use tester::trial::{Trial, TrialReport};

use super::{Context, Finding, Method, Tag};
use workload::Setup;

/// One trial of a pass.
pub struct PassTrial {
    /// Position on the axis.
    pub x: f64,
    /// Curve that the trial belongs to, if the target has several.
    pub curve: Option<(&'static str, f64)>,
    /// Setup of the target in each repeat, from 1.
    pub setup: Box<dyn Fn(u32) -> Setup + Send>,
    /// Creates the trial from its setup and the target's own maximum in frames per second, if that is used.
    pub trial: TrialFactory,
    /// Number of flows added to the target since its creation.
    pub flows: u64,
}

/// Trial that searches for the maximum of a curve, and its result.
#[derive(Clone)]
struct Search {
    curve: Option<(&'static str, f64)>,
    setup: Setup,
    trial: Trial,
    most_pps: Option<f64>,
}

/// Creates a trial from a setup and a maximum.
pub type TrialFactory = Box<dyn Fn(&Setup, f64) -> Trial + Send>;

/// Derives a value from the trials of a pass.
pub type PassValue = fn(&[TrialReport]) -> Option<f64>;

/// A series of trials in progress.
pub struct TrialSequence {
    context: Context,
    axis: &'static str,
    pass_trials: Vec<PassTrial>,
    /// Derived value: position on the axis, metric and function.
    sum: Option<(f64, Metric, PassValue)>,
    /// Search for the maximum of each curve.
    maxima: Vec<Search>,
    installed: Option<Setup>,
    yielded: u64,
    is_searching: bool,
    reports: Vec<TrialReport>,
    findings: Vec<Finding>,
}

impl TrialSequence {
    /// Creates a repeated series of these trials.
    pub fn new(
        context: &Context,
        axis: &'static str,
        pass_trials: Vec<PassTrial>,
    ) -> TrialSequence {
        TrialSequence {
            context: context.clone(),
            axis,
            pass_trials,
            sum: None,
            maxima: Vec::new(),
            installed: None,
            yielded: 0,
            is_searching: false,
            reports: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Adds a value at `x` that is derived from the trials of each pass.
    #[must_use]
    pub fn summing(self, x: f64, metric: Metric, sum: PassValue) -> TrialSequence {
        TrialSequence { sum: Some((x, metric, sum)), ..self }
    }

    /// Adds a search for the target's own maximum before the passes, with this setup.
    #[must_use]
    pub fn after_maximum(self, setup: Setup, frame_bytes: u16) -> TrialSequence {
        let trial = self.context.trial(&setup, frame_bytes, self.context.link_percent(100.0));
        self.after_maximum_of(None, setup, trial)
    }

    /// Adds a search for the maximum of a curve with this trial.
    #[must_use]
    pub fn after_maximum_of(
        mut self,
        curve: Option<(&'static str, f64)>,
        setup: Setup,
        trial: Trial,
    ) -> TrialSequence {
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
        if self.reports.len() == self.pass_trials.len() {
            let reports = std::mem::take(&mut self.reports);
            let Some((x, metric, sum)) = self.sum else { return };
            let repeat = (self.yielded / self.pass_trials.len() as u64) as u32;
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

impl Procedure for TrialSequence {
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
        let pass_trials = self.pass_trials.len() as u64;
        if self.yielded == pass_trials * u64::from(self.context.parameters.repeats) {
            return Step::Done;
        }
        let (place, repeat) =
            ((self.yielded % pass_trials) as usize, self.yielded / pass_trials + 1);
        let setup = (self.pass_trials[place].setup)(repeat as u32);
        self.with(setup, |course| {
            course.yielded += 1;
            let pass_trial = &course.pass_trials[place];
            let own = course.maxima.iter().find(|search| search.curve == pass_trial.curve);
            let most = own.and_then(|search| search.most_pps).unwrap_or(0.0);
            let axes: Vec<_> =
                [(course.axis, pass_trial.x)].into_iter().chain(pass_trial.curve).collect();
            Step::Trial { point: Point::new(&axes), trial: (pass_trial.trial)(&setup, most) }
        })
    }
}

impl Method for TrialSequence {
    fn tag(&self) -> Tag {
        let repeat = self.yielded.saturating_sub(1) / self.pass_trials.len().max(1) as u64;
        let role = if self.is_searching { Role::Maximum } else { Role::Measure };
        Tag { role, repeat: repeat as u32 + 1 }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn flows_grown(&self) -> u64 {
        let pass_trials = self.pass_trials.len() as u64;
        let last = self.yielded.checked_sub(1).filter(|_| !self.is_searching);
        last.map_or(0, |last| self.pass_trials[(last % pass_trials.max(1)) as usize].flows)
    }
}

/// Returns this percentage of the maximum as a rate.
pub fn share(most_pps: f64, percent: f64) -> Rate {
    Rate::FramesPerSecond((most_pps * percent / 100.0).max(1.0))
}
