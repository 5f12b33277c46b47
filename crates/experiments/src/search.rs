//! Searches for the highest load within a loss ratio, and measurements at shares of it.
//!
//! `tester::search::binary` contains the bisection. This module makes it a method: a repeated search for each
//! frame size and loss ratio, whose steps and results go into the record.

use packet::time::Nanos;
use record::{Bound, BoundCause, BoundSide, Metric, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::binary::{
    BinarySearch, Goal, Irregularity, MeasuredLoad, SearchRequest, SearchResult,
};
use tester::search::bracket::{Bracket, SearchQuantity};
use tester::stream::{Rate, line_rate_pps};
use tester::trial::Trial;

use super::sequence::TaskSequence;
use super::{Context, Finding, Method, Tag};
use workload::Setup;

/// Lowest load of a search, as a share of the highest.
pub const LOWEST_SHARE: f64 = 1.0 / 1024.0;

/// Ratio of a final trial's duration to that of a search trial.
///
/// RFC 2544 section 24: search trials may be shorter than the 60 seconds of the final one.
const CONFIRM_TIMES: u64 = 4;

/// A single search.
#[derive(Debug, Clone, Copy)]
pub struct SearchTask {
    /// Frame size, including the FCS.
    pub frame_bytes: u16,
    /// Loss ratio that counts as no loss.
    pub loss_ratio: f64,
    /// Metric of the found load.
    pub metric: Metric,
}

/// Creates a trial for a frame size and a rate in frames per second.
pub type TrialFactory = fn(&Context, u16, f64) -> Trial;

/// Searches that run one after another.
pub struct Searches {
    context: Context,
    axis: &'static str,
    tasks: Vec<SearchTask>,
    row: TaskSequence,
    search: Option<BinarySearch>,
    role: Role,
    /// Trial to use, if not one stream over the setup's entries.
    shape: Option<TrialFactory>,
    findings: Vec<Finding>,
}

impl Searches {
    /// Creates these searches with `repeats` repeats.
    pub fn new(
        context: &Context,
        axis: &'static str,
        tasks: Vec<SearchTask>,
        repeats: u32,
    ) -> Self {
        Searches {
            context: context.clone(),
            axis,
            row: TaskSequence::new(context.setup(), tasks.len(), repeats),
            tasks,
            search: None,
            role: Role::Search,
            shape: None,
            findings: Vec::new(),
        }
    }

    /// Replaces the traffic and the setup.
    #[must_use]
    pub fn with(self, setup: Setup, shape: TrialFactory) -> Self {
        Searches { row: self.row.before(setup), shape: Some(shape), ..self }
    }

    /// Returns whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn task(&self) -> Option<SearchTask> {
        self.row.task().map(|task| self.tasks[task])
    }

    fn goal(&self, task: SearchTask) -> Goal {
        let rate_pps_max = line_rate_pps(self.context.capacity_bps, usize::from(task.frame_bytes));
        Goal {
            loss_ratio: task.loss_ratio,
            rate_pps_min: rate_pps_max * LOWEST_SHARE,
            rate_pps_max,
            resolution_pps: rate_pps_max * self.context.parameters.resolution,
            is_confirmed: true,
            verifications: self.context.parameters.verify,
        }
    }

    fn finish(&mut self, task: SearchTask, found: &SearchResult) {
        let limited = |it: &Irregularity| matches!(it, Irregularity::TesterLimited { rate_pps } if Some(*rate_pps) == found.rate_pps_missed);
        let disturbed = |it: &Irregularity| matches!(it, Irregularity::Disturbed { .. });
        let told = |it: &Irregularity| {
            matches!(it, Irregularity::TesterLimited { .. } | Irregularity::NotConfirmed { .. })
        };
        // In virtual time, links serialise frames: a full link carries no more, whatever the target.
        let full = |it: &Irregularity| {
            self.context.parameters.simulated && matches!(it, Irregularity::MaxLoadMet)
        };
        let broken = |it: &Irregularity| !told(it) && !disturbed(it) && !full(it);
        let bound = found.irregular.iter().find_map(|it| match it {
            // The highest load is the rate of the link.
            Irregularity::MaxLoadMet => {
                Some(Bound { side: BoundSide::Lower, cause: BoundCause::LinkLimit })
            }
            Irregularity::LossAtLowestLoad => {
                Some(Bound { side: BoundSide::Upper, cause: BoundCause::SearchLimit })
            }
            _ => None,
        });
        self.findings.push(Finding {
            bound,
            irregular: found.irregular.iter().any(broken),
            tester_limited: found.irregular.iter().any(limited),
            disturbed: found.irregular.iter().any(disturbed),
            ..Finding::new(
                self.row.repeat(),
                self.axis,
                f64::from(task.frame_bytes),
                task.metric,
                found.rate_pps,
            )
        });
        self.search = None;
        self.row.next();
    }

    fn trial(&mut self, task: SearchTask, rate_pps: f64, role: Role) -> Step<Setup> {
        self.role = role;
        let rate = Rate::FramesPerSecond(rate_pps);
        let mut trial = match self.shape {
            Some(shape) => shape(&self.context, task.frame_bytes, rate_pps),
            None => self.context.trial(self.row.setup(), task.frame_bytes, rate),
        };
        if role == Role::Confirm {
            trial.duration = Nanos(trial.duration.0 * CONFIRM_TIMES);
        }
        let point = Point::new(&[(self.axis, f64::from(task.frame_bytes))]);
        Step::Trial { point, trial }
    }
}

impl Procedure for Searches {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(install) = self.row.begin() {
            return install;
        }
        if let (Some(Outcome::Trial { report, .. }), Some(search)) = (last, &mut self.search) {
            search.record(MeasuredLoad::from(&**report));
        }
        loop {
            let Some(task) = self.task() else { return Step::Done };
            let goal = self.goal(task);
            match self.search.get_or_insert_with(|| BinarySearch::new(goal)).next() {
                SearchRequest::Search { rate_pps } => {
                    return self.trial(task, rate_pps, Role::Search);
                }
                SearchRequest::Confirm { rate_pps } => {
                    return self.trial(task, rate_pps, Role::Confirm);
                }
                SearchRequest::Found(found) => self.finish(task, &found),
            }
        }
    }
}

impl Method for Searches {
    fn tag(&self) -> Tag {
        Tag { role: self.role, repeat: self.row.repeat() }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn allowed(&self) -> Vec<f64> {
        self.task().iter().map(|task| task.loss_ratio).collect()
    }

    fn brackets(&self) -> Vec<Bracket> {
        let sought = self.task().map(|task| SearchQuantity::load("throughput", task.loss_ratio));
        let bracket = self.search.as_ref().zip(sought);
        bracket.and_then(|(search, sought)| search.bracket(sought)).into_iter().collect()
    }
}
