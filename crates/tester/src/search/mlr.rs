//! Several goals in one search (MLRsearch, RFC 9971): a lower and an upper bound for each goal.
//!
//! - The highest load is tried first, then a load near its forwarding rate.
//! - From there, each goal gallops outward until it has a load on both sides. Then it halves the
//!   interval on a logarithmic scale.
//! - Goals are approached in stages ([`goal::LEVELS`]). Coarser stages of all goals come first, and
//!   lower loads among equal stages.
//! - Every trial serves every goal. A load is abandoned as soon as it is decided.
//!
//! The classification formulas are those of the RFC, which does not define the order of loads. The
//! search is a pure value: it sends nothing, never blocks, and can be replayed from its trials.
//!
//! Invariants:
//!
//! - Equal trials give an equal search.
//! - The search ends after [`TRIALS_MAX`] trials or its time limit at the latest.

pub mod classify;
pub mod goal;
mod result;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use packet::time::Nanos;

use super::bracket::{Bracket, SearchQuantity};
use super::measured::MeasuredLoad;
use classify::{LoadClass, TrialAtLoad, classify};
use goal::{Goal, GoalError, LEVELS};
pub use result::{GoalOutcome, Irregularity};

/// Maximum number of trials of one search.
pub const TRIALS_MAX: u32 = 20_000;

/// Maximum number of goals of one search.
pub const GOALS_MAX: usize = 16;

/// Resolution of loads, in steps per frame per second.
const LOADS_PER_PPS: f64 = 1000.0;

/// Goals and range of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchGoals {
    /// The goals.
    pub goals: Vec<Goal>,
    /// Lowest load to try, in frames per second.
    pub rate_pps_min: f64,
    /// Highest load to try, in frames per second: the link's or the tester's limit.
    pub rate_pps_max: f64,
    /// Total trial time after which the search ends with what it has.
    pub duration_max: Nanos,
}

/// Why a search is invalid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchGoalsError {
    /// There is no goal.
    NoGoals,
    /// There are more than [`GOALS_MAX`] goals. Holds their number.
    TooManyGoals(usize),
    /// A goal is invalid.
    Goal {
        /// Index of the goal.
        place: usize,
        /// The error.
        error: GoalError,
    },
    /// The lowest load is not above 0, or exceeds the highest.
    Loads {
        /// The lowest load.
        rate_pps_min: f64,
        /// The highest load.
        rate_pps_max: f64,
    },
    /// The shortest trial has no frame at the lowest load.
    Frameless {
        /// The lowest load.
        rate_pps_min: f64,
        /// Duration of the shortest trial.
        shortest: Nanos,
    },
    /// The time limit is shorter than one goal's full-length trials.
    TooLittleTime {
        /// The limit.
        duration_max: Nanos,
        /// The minimum that the goals need.
        needed: Nanos,
    },
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum NextTrial {
    /// Offer this load.
    Trial {
        /// Load in frames per second.
        rate_pps: f64,
        /// Duration.
        duration: Nanos,
        /// Index of the goal that chose it.
        goal: usize,
    },
    /// The search is finished: results by goal.
    Found(Vec<GoalOutcome>),
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    wanted: SearchGoals,
    /// Trials by load, in thousandths of a frame per second.
    loads: BTreeMap<u64, Load>,
    progress: Vec<Progress>,
    asked: Option<PendingTrial>,
    trials: u32,
    spent: Nanos,
    is_cut_short: bool,
}

/// Trials at one load.
#[derive(Debug, Clone, Default)]
struct Load {
    tried: Vec<TrialAtLoad>,
    is_tester_limited: bool,
    is_disturbed: bool,
    has_extra: bool,
}

/// Progress of a goal.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    level: usize,
    /// Steps outward in this stage: each is twice as wide as the previous one.
    gallops: u32,
    trials: u32,
    spent: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct PendingTrial {
    load: u64,
    duration: Nanos,
    goal: usize,
}

/// A candidate for the next load of a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    load: u64,
    is_gallop: bool,
}

impl SearchGoals {
    /// Returns an error if the search is invalid.
    pub fn check(&self) -> Result<(), SearchGoalsError> {
        let (rate_pps_min, rate_pps_max) = (self.rate_pps_min, self.rate_pps_max);
        match self.goals.len() {
            0 => return Err(SearchGoalsError::NoGoals),
            count if count > GOALS_MAX => return Err(SearchGoalsError::TooManyGoals(count)),
            _ => {}
        }
        for (place, goal) in self.goals.iter().enumerate() {
            goal.check().map_err(|error| SearchGoalsError::Goal { place, error })?;
        }
        let is_load = |pps: f64| pps * LOADS_PER_PPS >= 1.0 && pps <= 1e12;
        if !(is_load(rate_pps_min) && is_load(rate_pps_max) && rate_pps_min <= rate_pps_max) {
            return Err(SearchGoalsError::Loads { rate_pps_min, rate_pps_max });
        }
        let shortest =
            self.goals.iter().map(|goal| goal.duration_initial).min().unwrap_or_default();
        if rate_pps_min * shortest.as_secs_f64() < 1.0 {
            return Err(SearchGoalsError::Frameless { rate_pps_min, shortest });
        }
        let longest = self.goals.iter().map(|goal| goal.duration_sum).max().unwrap_or_default();
        if self.duration_max < longest {
            let (duration_max, needed) = (self.duration_max, longest);
            return Err(SearchGoalsError::TooLittleTime { duration_max, needed });
        }
        Ok(())
    }
}

impl Search {
    /// Creates a search without trials.
    pub fn new(wanted: SearchGoals) -> Result<Search, SearchGoalsError> {
        wanted.check()?;
        let progress = vec![Progress::default(); wanted.goals.len()];
        let loads = BTreeMap::new();
        let (asked, trials, spent, is_cut_short) = (None, 0, Nanos::ZERO, false);
        let mut search = Search { wanted, loads, progress, asked, trials, spent, is_cut_short };
        search.decide();
        Ok(search)
    }

    /// Returns the next step. It stays the same until a trial is recorded.
    pub fn next(&self) -> NextTrial {
        match self.asked {
            Some(PendingTrial { load, duration, goal }) => {
                NextTrial::Trial { rate_pps: load as f64 / LOADS_PER_PPS, duration, goal }
            }
            None => NextTrial::Found(
                (0..self.progress.len()).map(|goal| result::of(self, goal)).collect(),
            ),
        }
    }

    /// Processes the result of the trial from [`Search::next`].
    pub fn record(&mut self, trial: MeasuredLoad) {
        let Some(PendingTrial { load, duration, goal }) = self.asked else { return };
        let at = self.loads.entry(load).or_default();
        at.tried.push(TrialAtLoad { duration, loss_ratio: trial.loss_ratio() });
        at.is_tester_limited |= trial.is_tester_limited;
        at.is_disturbed |= trial.is_disturbed;
        at.has_extra |= trial.has_extra();
        self.trials += 1;
        self.spent = self.spent.saturating_add(duration);
        let progress = &mut self.progress[goal];
        progress.trials += 1;
        progress.spent = progress.spent.saturating_add(duration);
        self.decide();
    }

    /// Returns the progress of each goal in its current stage. Empty when the search is finished.
    pub fn brackets(&self, sought: impl Fn(usize) -> SearchQuantity) -> Vec<Bracket> {
        let Some(PendingTrial { load: tried, .. }) = self.asked else { return Vec::new() };
        let pps = |load: u64| load as f64 / LOADS_PER_PPS;
        let of = |(goal, progress): (usize, &Progress)| {
            let level = progress.level;
            let missed = self.leaning(goal, level, u64::MAX, LoadClass::Upper);
            let met = self.leaning(goal, level, missed.unwrap_or(u64::MAX), LoadClass::Lower);
            let (most, missed) = (self.wanted.rate_pps_max, missed.map(pps));
            Bracket {
                sought: sought(goal),
                tried: pps(tried),
                met: met.map(pps),
                missed,
                most,
                width: Some(self.wanted.goals[goal].width * missed.unwrap_or(most)),
            }
        };
        self.progress.iter().enumerate().map(of).collect()
    }

    /// Returns the total trial time so far.
    pub fn spent(&self) -> Nanos {
        self.spent
    }

    /// Chooses the next trial: the coarsest stage first, then the lowest load.
    fn decide(&mut self) {
        self.asked = None;
        let mut chosen: Option<(usize, u64, usize, bool)> = None;
        for goal in 0..self.progress.len() {
            let Some(choice) = self.advance(goal) else { continue };
            let next = (self.progress[goal].level, choice.load, goal, choice.is_gallop);
            if chosen.is_none_or(|best| next < best) {
                chosen = Some(next);
            }
        }
        let Some((level, load, goal, is_gallop)) = chosen else { return };
        let duration = self.wanted.goals[goal].at_level(level).duration_final;
        let would_be = self.spent.saturating_add(duration);
        if self.trials >= TRIALS_MAX || would_be > self.wanted.duration_max {
            self.is_cut_short = true;
            return;
        }
        self.progress[goal].gallops += u32::from(is_gallop && !self.loads.contains_key(&load));
        self.asked = Some(PendingTrial { load, duration, goal });
    }

    /// Returns the next load of this goal, in the first stage that is not settled.
    fn advance(&mut self, goal: usize) -> Option<Choice> {
        loop {
            if let Some(choice) = self.choose(goal) {
                return Some(choice);
            }
            let progress = &mut self.progress[goal];
            if progress.level + 1 == LEVELS {
                return None;
            }
            progress.level += 1;
            progress.gallops = 0;
        }
    }

    fn choose(&self, goal: usize) -> Option<Choice> {
        let level = self.progress[goal].level;
        let wanted = self.wanted.goals[goal].at_level(level);
        let (min, max) = self.range();
        let upper = self.leaning(goal, level, u64::MAX, LoadClass::Upper);
        let lower = self.leaning(goal, level, upper.unwrap_or(u64::MAX), LoadClass::Lower);
        let open = |load: u64| {
            let is_open = classify(&wanted, &self.loads[&load].tried) == LoadClass::Undecided;
            is_open.then_some(Choice { load, is_gallop: false })
        };
        match (lower, upper) {
            (None, None) => Some(Choice { load: max, is_gallop: false }),
            (Some(lower), None) if lower == max => open(lower),
            (Some(lower), None) => Some(self.outward(goal, lower, true)),
            (None, Some(upper)) if upper == min => open(upper),
            (None, Some(upper)) => Some(self.outward(goal, upper, false)),
            (Some(lower), Some(upper)) => self
                .between(goal, &wanted, (lower, upper))
                .or_else(|| open(lower))
                .or_else(|| open(upper)),
        }
    }

    /// Returns the smallest load that leans to the upper side, or the largest below `below` that
    /// leans to the lower side.
    ///
    /// A load leans to the side of the finest stage, up to this one, that decides it.
    fn leaning(&self, goal: usize, level: usize, below: u64, side: LoadClass) -> Option<u64> {
        let stages: Vec<Goal> =
            (0..=level).rev().map(|level| self.wanted.goals[goal].at_level(level)).collect();
        let leans = |load: &Load| {
            let mut told = stages.iter().map(|stage| classify(stage, &load.tried));
            told.find(|bound| *bound != LoadClass::Undecided) == Some(side)
        };
        let mut loads = self.loads.range(..below).filter(|(_, load)| leans(load));
        let found = if side == LoadClass::Upper { loads.next() } else { loads.next_back() };
        found.map(|(load, _)| *load)
    }

    /// Returns a load between these bounds, unless they are close enough.
    ///
    /// While the bounds are far apart, it is a step away from the bound nearer to the expected
    /// load. Otherwise it is about the middle.
    fn between(&self, goal: usize, wanted: &Goal, (lower, upper): (u64, u64)) -> Option<Choice> {
        let (low, high) = (lower as f64, upper as f64);
        if wanted.is_narrow(low, high) || upper - lower < 2 {
            return None;
        }
        let (whole, step) = ((high / low).ln(), self.step(goal));
        let inside = |load: f64| (load.round() as u64).clamp(lower + 1, upper - 1);
        if whole > 2.0 * step {
            let expected = self.expected(goal).clamp(low, high);
            let load = match expected / low <= high / expected {
                true => low * step.exp(),
                false => high * (-step).exp(),
            };
            return Some(Choice { load: inside(load), is_gallop: true });
        }
        // Whole multiples of the width, so that no part is narrower than necessary.
        let parts = (whole / wanted.log_width() - 1e-6).ceil().max(2.0);
        let share = (parts / 2.0).floor() / parts;
        Some(Choice { load: inside(low * (whole * share).exp()), is_gallop: false })
    }

    /// Returns a load beyond this bound, on a side without a bound so far.
    fn outward(&self, goal: usize, from: u64, is_up: bool) -> Choice {
        let (min, max) = self.range();
        let step = self.step(goal);
        let expected = self.expected(goal);
        let load = match is_up {
            true => (from as f64 * step.exp()).max(from as f64 + 1.0),
            false => (from as f64 * (-step).exp()).min(from as f64 - 1.0),
        };
        // After the highest load, its forwarding rate is a better estimate than a step.
        let is_first = self.loads.len() == 1 && !is_up && expected < load;
        let load = if is_first { expected } else { load };
        Choice { load: (load.round() as u64).clamp(min, max), is_gallop: !is_first }
    }

    /// Returns the size of the next step outward, as a logarithm.
    fn step(&self, goal: usize) -> f64 {
        let progress = &self.progress[goal];
        let wanted = self.wanted.goals[goal].at_level(progress.level);
        wanted.log_width() * f64::from(1u32 << progress.gallops.min(16))
    }

    /// Returns the load at which the loss equals this goal's limit, if the target forwards at any
    /// load what it forwarded at the highest.
    fn expected(&self, goal: usize) -> f64 {
        let Some((load, at)) = self.loads.last_key_value() else { return 0.0 };
        let forwarded = at.tried.first().map_or(0.0, |tried| 1.0 - tried.loss_ratio);
        *load as f64 * forwarded / (1.0 - self.wanted.goals[goal].loss_ratio)
    }

    /// Returns the lowest and the highest load.
    fn range(&self) -> (u64, u64) {
        let max = (self.wanted.rate_pps_max * LOADS_PER_PPS).floor() as u64;
        (((self.wanted.rate_pps_min * LOADS_PER_PPS).ceil() as u64).min(max), max)
    }
}

impl fmt::Display for SearchGoalsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchGoalsError::NoGoals => {
                write!(f, "no goal (hint: name at least one, such as ndr)")
            }
            SearchGoalsError::TooManyGoals(count) => {
                write!(f, "{count} goals, at most {GOALS_MAX} are allowed (hint: run two searches)")
            }
            SearchGoalsError::Goal { place, error } => write!(f, "goal {}: {error}", place + 1),
            SearchGoalsError::Loads { rate_pps_min, rate_pps_max } => write!(
                f,
                "invalid loads from {rate_pps_min} to {rate_pps_max} frames/s (hint: use a \
                 minimum of at least 0.001 and a maximum not below it)"
            ),
            SearchGoalsError::Frameless { rate_pps_min, shortest } => write!(
                f,
                "a trial of {shortest} at {rate_pps_min:.1} frames/s has no frame (hint: use a \
                 longer initial trial or a higher minimum load)"
            ),
            SearchGoalsError::TooLittleTime { duration_max, needed } => write!(
                f,
                "{duration_max} is too short: the goals need {needed} at one load (hint: allow \
                 more time for the search)"
            ),
        }
    }
}

impl std::error::Error for SearchGoalsError {}
