//! Search for several goals (MLRsearch, RFC 9971): the loads that meet and that miss each goal.
//!
//! Method: for each frame size, a search starts at the rate of the nominal link. Trials become longer as the bounds
//! come closer, and each trial serves every goal. The whole search is repeated. The result of a goal is its
//! conditional throughput, which the standard recommends for comparisons. The record also contains its bounds and
//! settings. The results mark three cases: the target meets a goal at the nominal rate, it misses a goal at the
//! lowest rate, or the tester cannot offer more.

use packet::time::Nanos;
use record::{GoalResult, Remark, Role, metric_of_goal};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::bracket::{Bracket, SearchQuantity};
use tester::search::measured::MeasuredLoad;
use tester::search::mlr::goal::Goal;
use tester::search::mlr::{GoalOutcome, Irregularity, NextTrial, Search, SearchGoals};
use tester::stream::{Rate, line_rate_pps};

use super::search::LOWEST_SHARE;
use super::sequence::TaskSequence;
use super::{Context, Finding, Method, Tag, drain};
use workload::Setup;
use workload::parameter::Parameters;
use workload::parameter::declaration::Parameter;
use workload::parameter::goals::Preset;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let parameters = &context.parameters;
    let frames: Vec<u16> = context.frames(&shared::FRAMES).into_iter().collect();
    Box::new(Goals {
        row: TaskSequence::new(context.setup(), frames.len(), parameters.repeats),
        frames,
        goals: parameters.goals.wanted(parameters.loss),
        context: context.clone(),
        search: None,
        chosen_for: None,
        findings: Vec::new(),
    })
}

/// Checks whether these parameters are valid for a search over a link of this capacity.
pub fn check(parameters: &Parameters, capacity_bps: u64) -> Result<(), String> {
    let goals = parameters.goals.wanted(parameters.loss);
    if let Some((preset, _)) = goals.iter().find(|it| it.0.is_partial() && parameters.loss <= 0.0) {
        return Err(format!(
            "{} with loss=0 equals ndr (hint: use loss above 0, or goals=ndr)",
            preset.name()
        ));
    }
    let names: Vec<&str> = goals.iter().map(|(preset, _)| preset.name()).collect();
    for frame_bytes in parameters.own.integers(&shared::FRAMES).map(|bytes| bytes as u16) {
        wanted(parameters, &goals, capacity_bps, frame_bytes).check().map_err(|error| {
            format!(
                "goals {} with {frame_bytes}-byte frames: {error} (hint: check goal_initial, \
                 goal_final, goal_duration_sum, search_seconds, capacity)",
                names.join(",")
            )
        })?;
    }
    Ok(())
}

fn wanted(
    parameters: &Parameters,
    goals: &[(Preset, Goal)],
    capacity_bps: u64,
    frame_bytes: u16,
) -> SearchGoals {
    let rate_pps_max = line_rate_pps(capacity_bps, usize::from(frame_bytes));
    let shortest = goals.iter().map(|(_, goal)| goal.duration_initial).min().unwrap_or_default();
    // The shortest trial needs at least one frame.
    let one_frame = 1.001 / shortest.as_secs_f64();
    SearchGoals {
        goals: goals.iter().map(|(_, goal)| *goal).collect(),
        rate_pps_min: (rate_pps_max * LOWEST_SHARE).max(one_frame).min(rate_pps_max),
        rate_pps_max,
        duration_max: Nanos::from_secs_f64(parameters.goals.search_s),
    }
}

/// Searches that run one after another.
struct Goals {
    context: Context,
    frames: Vec<u16>,
    goals: Vec<(Preset, Goal)>,
    row: TaskSequence,
    search: Option<Search>,
    chosen_for: Option<&'static str>,
    findings: Vec<Finding>,
}

impl Goals {
    fn frame_bytes(&self) -> Option<u16> {
        self.row.task().map(|task| self.frames[task])
    }

    fn trial(&self, frame_bytes: u16, rate_pps: f64, duration: Nanos) -> Step<Setup> {
        let rate = Rate::FramesPerSecond(rate_pps);
        let mut trial = self.context.trial(self.row.setup(), frame_bytes, rate);
        trial.duration = duration;
        trial.drain = drain(duration.as_secs_f64());
        Step::Trial { point: Point::new(&[(AXIS, f64::from(frame_bytes))]), trial }
    }

    /// Stores the results of a search; nothing if there are none.
    fn finish(&mut self, frame_bytes: u16, found: &[GoalOutcome]) {
        let repeat = self.row.repeat();
        for (place, (preset, goal)) in self.goals.iter().enumerate() {
            let found = found.get(place);
            let is = |remark| found.is_some_and(|found| found.irregular.contains(&remark));
            let metric = metric_of_goal(preset.name()).expect("every preset has a metric");
            let value = found.and_then(|found| found.rate_pps_conditional).unwrap_or(0.0);
            self.findings.push(Finding {
                irregular: !found.is_some_and(GoalOutcome::is_regular),
                tester_limited: is(Irregularity::TesterLimited),
                disturbed: is(Irregularity::Disturbed),
                goal: found.map(|found| result(preset.name(), goal, found)),
                ..Finding::new(repeat, AXIS, f64::from(frame_bytes), metric, value)
            });
        }
        self.search = None;
        self.row.next();
    }
}

/// Converts the result of a goal for the record.
fn result(name: &str, goal: &Goal, found: &GoalOutcome) -> GoalResult {
    GoalResult {
        goal: name.into(),
        loss_ratio_allowed: goal.loss_ratio,
        exceed_ratio: goal.exceed_ratio,
        width_ratio_wanted: goal.width,
        duration_ns_initial: goal.duration_initial.0,
        duration_ns_final: goal.duration_final.0,
        duration_ns_sum: goal.duration_sum.0,
        rate_pps_lower: found.rate_pps_lower,
        rate_pps_upper: found.rate_pps_upper,
        rate_pps_conditional: found.rate_pps_conditional,
        trials_chosen: found.trials.into(),
        duration_ns_trials: found.spent.0,
        remarks: found.irregular.iter().map(|it| remark(*it)).collect(),
    }
}

fn remark(irregularity: Irregularity) -> Remark {
    match irregularity {
        Irregularity::NoLowerBound => Remark::NoLowerBound,
        Irregularity::NoUpperBound => Remark::NoUpperBound,
        Irregularity::CutShort => Remark::CutShort,
        Irregularity::LossInversion => Remark::LossInversion,
        Irregularity::TesterLimited => Remark::TesterLimited,
        Irregularity::Disturbed => Remark::Disturbed,
        Irregularity::ExtraFrames => Remark::ExtraFrames,
    }
}

impl Procedure for Goals {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(install) = self.row.begin() {
            return install;
        }
        if let (Some(Outcome::Trial { report, .. }), Some(search)) = (last, &mut self.search) {
            search.record(MeasuredLoad::from(&**report));
        }
        loop {
            let Some(frame_bytes) = self.frame_bytes() else { return Step::Done };
            if self.search.is_none() {
                let Context { parameters, capacity_bps, .. } = &self.context;
                let wanted = wanted(parameters, &self.goals, *capacity_bps, frame_bytes);
                self.search = Search::new(wanted).ok();
            }
            match self.search.as_ref().map(Search::next) {
                Some(NextTrial::Trial { rate_pps, duration, goal }) => {
                    self.chosen_for = Some(self.goals[goal].0.name());
                    return self.trial(frame_bytes, rate_pps, duration);
                }
                Some(NextTrial::Found(found)) => self.finish(frame_bytes, &found),
                // The link is so slow that a trial has no frame; this was found only during the measurement.
                None => self.finish(frame_bytes, &[]),
            }
        }
    }
}

impl Method for Goals {
    fn tag(&self) -> Tag {
        Tag { role: Role::Bound, repeat: self.row.repeat() }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn allowed(&self) -> Vec<f64> {
        self.goals.iter().map(|(_, goal)| goal.loss_ratio).collect()
    }

    fn goal(&self) -> Option<&'static str> {
        self.chosen_for
    }

    fn brackets(&self) -> Vec<Bracket> {
        let sought = |place: usize| {
            let (preset, goal) = &self.goals[place];
            SearchQuantity::load(preset.name(), goal.loss_ratio)
        };
        self.search.as_ref().map(|search| search.brackets(sought)).unwrap_or_default()
    }
}
