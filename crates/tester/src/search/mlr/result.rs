//! Result of a search for a goal, with its irregularities.
//!
//! Source: RFC 9971, section 4.8. The relevant upper bound is the smallest load that is an upper
//! bound. The relevant lower bound is the largest lower bound below it. So a better result at a
//! higher load is ignored. A result is regular if both bounds exist and lie within the goal's
//! width. Otherwise it lists the reasons.

use packet::time::Nanos;

use super::classify::{LoadClass, classify, conditional_share};
use super::{LOADS_PER_PPS, Search};

/// Result for a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalOutcome {
    /// Relevant lower bound in frames per second. Without an upper bound, the highest load that
    /// meets the goal.
    pub rate_pps_lower: Option<f64>,
    /// Relevant upper bound in frames per second.
    pub rate_pps_upper: Option<f64>,
    /// Conditional throughput at the lower bound in frames per second.
    pub rate_pps_conditional: Option<f64>,
    /// Distance of the bounds, as a share of the upper one.
    pub width: Option<f64>,
    /// Number of trials chosen for this goal. Trials of other goals served it too.
    pub trials: u32,
    /// Total time of those trials.
    pub spent: Nanos,
    /// Remarks on the result. See [`Irregularity::is_irregular`].
    pub irregular: Vec<Irregularity>,
}

/// A remark on a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Irregularity {
    /// The lowest load missed the goal: there is no lower bound.
    NoLowerBound,
    /// The highest load met the goal: there is no upper bound, and the target may be faster.
    NoUpperBound,
    /// Time or trials ended before the bounds were close enough.
    CutShort,
    /// A load above the upper bound met the goal.
    LossInversion,
    /// The tester offered less than intended at the upper bound: the target may be faster.
    TesterLimited,
    /// The tester disturbed each repetition at the upper bound and can have caused the loss: the
    /// target may be faster.
    Disturbed,
    /// More frames were forwarded than offered at a bound. Such trials count as lost.
    ExtraFrames,
}

impl Irregularity {
    /// Returns whether the remark makes the result irregular (RFC 9971, section 4.8.4).
    pub fn is_irregular(self) -> bool {
        !matches!(
            self,
            Irregularity::LossInversion | Irregularity::TesterLimited | Irregularity::Disturbed
        )
    }
}

impl GoalOutcome {
    /// Returns whether both bounds exist and are close enough.
    pub fn is_regular(&self) -> bool {
        !self.irregular.iter().any(|it| it.is_irregular())
    }
}

/// Returns the current result for this goal.
pub(super) fn of(search: &Search, place: usize) -> GoalOutcome {
    let goal = &search.wanted.goals[place];
    let is = |load: &u64, side| classify(goal, &search.loads[load].tried) == side;
    let upper = search.loads.keys().copied().find(|load| is(load, LoadClass::Upper));
    let below = upper.unwrap_or(u64::MAX);
    let mut at_most = search.loads.range(..below).map(|(load, _)| *load);
    let lower = at_most.rfind(|load| is(load, LoadClass::Lower));
    let pps = |load: u64| load as f64 / LOADS_PER_PPS;
    let width = lower.zip(upper).map(|(lower, upper)| 1.0 - lower as f64 / upper as f64);
    let mut irregular = Vec::new();
    let is_close =
        lower.zip(upper).is_some_and(|(lower, upper)| goal.is_narrow(lower as f64, upper as f64));
    let (min, max) = search.range();
    if upper.is_none() && lower == Some(max) {
        irregular.push(Irregularity::NoUpperBound);
    } else if lower.is_none() && upper == Some(min) {
        irregular.push(Irregularity::NoLowerBound);
    } else if !is_close {
        irregular.push(Irregularity::CutShort);
    }
    let mut above = search.loads.range(below..).skip(1).map(|(load, _)| *load);
    if upper.is_some() && above.any(|load| is(&load, LoadClass::Lower)) {
        irregular.push(Irregularity::LossInversion);
    }
    if upper.is_some_and(|load| search.loads[&load].is_tester_limited) {
        irregular.push(Irregularity::TesterLimited);
    }
    if upper.is_some_and(|load| search.loads[&load].is_disturbed) {
        irregular.push(Irregularity::Disturbed);
    }
    if [lower, upper].into_iter().flatten().any(|load| search.loads[&load].has_extra) {
        irregular.push(Irregularity::ExtraFrames);
    }
    let progress = &search.progress[place];
    GoalOutcome {
        rate_pps_lower: lower.map(pps),
        rate_pps_upper: upper.map(pps),
        rate_pps_conditional: lower
            .map(|load| pps(load) * conditional_share(goal, &search.loads[&load].tried)),
        width,
        trials: progress.trials,
        spent: progress.spent,
        irregular,
    }
}
