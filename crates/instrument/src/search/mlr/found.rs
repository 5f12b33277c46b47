//! What a search found for a goal, and what is not as it should be about it.
//!
//! RFC 9971, 4.8. The relevant upper bound is the smallest load that is an upper bound, the relevant
//! lower bound the largest lower bound below it: where a higher load did better, the lower is believed.
//! A result is regular if both are there and within the goal's width; else the reason stands beside it.

use packet::time::Nanos;

use super::classify::{Bound, classify, conditional_share};
use super::{LOADS_PER_PPS, Search};

/// What was found for a goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The relevant lower bound, frames per second; where there is no upper bound, the highest load
    /// that reaches the goal.
    pub rate_pps_lower: Option<f64>,
    /// The relevant upper bound, frames per second.
    pub rate_pps_upper: Option<f64>,
    /// What can be expected to be forwarded at the lower bound, frames per second.
    pub rate_pps_conditional: Option<f64>,
    /// How far the bounds are apart, as a share of the upper one.
    pub width: Option<f64>,
    /// Trials that were chosen for this goal; those of other goals served it too.
    pub trials: u32,
    /// Time of those trials.
    pub spent: Nanos,
    /// What is remarkable about the result; see [`Irregularity::is_irregular`].
    pub irregular: Vec<Irregularity>,
}

/// What is not as it should be about a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Irregularity {
    /// The lowest load missed the goal: there is no lower bound.
    NoLowerBound,
    /// The highest load reached the goal: there is no upper bound, and the target may be able to
    /// do more.
    NoUpperBound,
    /// Time or trials ended before the bounds were close enough.
    CutShort,
    /// A load above the upper bound reached the goal.
    LossInversion,
    /// At the upper bound the tester offered less than was intended: the target may be able to do
    /// more.
    TesterLimited,
    /// At the upper bound frames were lost that the tester may have lost, which disturbed each
    /// repetition: the target may be able to do more.
    Disturbed,
    /// At a bound more frames were forwarded than offered; such trials count as lost.
    ExtraFrames,
}

impl Irregularity {
    /// Whether the result is no regular one for it (RFC 9971, 4.8.4), or only remarkable.
    pub fn is_irregular(self) -> bool {
        !matches!(
            self,
            Irregularity::LossInversion | Irregularity::TesterLimited | Irregularity::Disturbed
        )
    }
}

impl Found {
    /// Whether both bounds are there and close enough.
    pub fn is_regular(&self) -> bool {
        !self.irregular.iter().any(|it| it.is_irregular())
    }
}

/// What a search has found for this goal so far.
pub(super) fn of(search: &Search, place: usize) -> Found {
    let goal = &search.wanted.goals[place];
    let is = |load: &u64, side| classify(goal, &search.loads[load].tried) == side;
    let upper = search.loads.keys().copied().find(|load| is(load, Bound::Upper));
    let below = upper.unwrap_or(u64::MAX);
    let mut at_most = search.loads.range(..below).map(|(load, _)| *load);
    let lower = at_most.rfind(|load| is(load, Bound::Lower));
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
    if upper.is_some() && above.any(|load| is(&load, Bound::Lower)) {
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
    Found {
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
