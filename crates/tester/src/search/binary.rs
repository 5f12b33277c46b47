//! Throughput by bisection: the highest load with a frame loss rate within the goal.
//!
//! The search follows RFC 2544, section 26.1, and common tester practice:
//!
//! 1. Try the highest load first.
//! 2. Halve the interval until it is no wider than the resolution.
//! 3. Confirm the result by a longer final trial. If it fails, continue below it.
//!
//! With loss verification (ETSI GS NFV-TST 009, section 12.3.3) a load that missed the goal is
//! tried again. The first trial that meets the goal counts, so that a transient disturbance does
//! not decide.
//!
//! The search is a pure value: it sends nothing, never blocks, and can be replayed from its trials.
//! A result lists everything that makes it irregular.

use super::bracket::{Bracket, SearchQuantity};
pub use super::measured::MeasuredLoad;

/// Maximum number of trials of one search.
pub const TRIALS_MAX: u32 = 64;

/// Goal and range of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Maximum frame loss rate: 0 for throughput as in RFC 1242.
    pub loss_ratio: f64,
    /// Lowest load to try, in frames per second.
    pub rate_pps_min: f64,
    /// Highest load to try, in frames per second: the link's or the tester's limit.
    pub rate_pps_max: f64,
    /// Interval width at which the search ends, in frames per second.
    pub resolution_pps: f64,
    /// Whether a final trial confirms the result.
    pub is_confirmed: bool,
    /// Number of repetitions before a miss counts. 0 for none.
    pub verifications: u32,
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchRequest {
    /// Offer this load in a search trial.
    Search {
        /// Load in frames per second.
        rate_pps: f64,
    },
    /// Offer this load in the longer final trial.
    Confirm {
        /// Load in frames per second.
        rate_pps: f64,
    },
    /// The search is finished.
    Found(SearchResult),
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// Highest load that met the goal, in frames per second. 0 if none did.
    pub rate_pps: f64,
    /// Lowest load that missed the goal, if any.
    pub rate_pps_missed: Option<f64>,
    /// Number of trials.
    pub trials: u32,
    /// Irregularities of the result. Empty for a regular result.
    pub irregular: Vec<Irregularity>,
}

/// Why a result is irregular.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Irregularity {
    /// The lowest load already missed the goal.
    LossAtLowestLoad,
    /// The highest load met the goal: the target may be faster.
    MaxLoadMet,
    /// The tester offered less than intended at this load, which bounds the result: the target may
    /// be faster.
    TesterLimited {
        /// Intended load in frames per second.
        rate_pps: f64,
    },
    /// The tester disturbed each repetition at this load, which bounds the result, and can have
    /// caused the loss: the target may be faster.
    Disturbed {
        /// Intended load in frames per second.
        rate_pps: f64,
    },
    /// More frames were forwarded than offered at this load. Counts as a miss.
    ExtraFrames {
        /// Intended load in frames per second.
        rate_pps: f64,
    },
    /// A final trial failed at this load, and the search continued below it.
    NotConfirmed {
        /// Intended load in frames per second.
        rate_pps: f64,
    },
    /// The search reached [`TRIALS_MAX`] before the resolution.
    TrialsExhausted,
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct BinarySearch {
    goal: Goal,
    /// Highest load that met the goal.
    met: Option<f64>,
    /// Lowest load that missed the goal.
    missed: Option<f64>,
    /// Whether `met` was confirmed in a final trial.
    is_confirmed: bool,
    /// Number of misses at the current load.
    misses: u32,
    trials: u32,
    irregular: Vec<Irregularity>,
}

impl BinarySearch {
    /// Creates a search without trials.
    pub fn new(goal: Goal) -> Self {
        assert!(goal.rate_pps_min > 0.0 && goal.rate_pps_max >= goal.rate_pps_min);
        assert!(goal.resolution_pps > 0.0 && (0.0..1.0).contains(&goal.loss_ratio));
        let (met, missed, irregular) = (None, None, Vec::new());
        BinarySearch { goal, met, missed, is_confirmed: false, misses: 0, trials: 0, irregular }
    }

    /// Returns the next step. It stays the same until a trial is recorded.
    pub fn next(&self) -> SearchRequest {
        match self.rate_pps() {
            Some(rate_pps) if self.trials < TRIALS_MAX => {
                if self.is_long(rate_pps) {
                    SearchRequest::Confirm { rate_pps }
                } else {
                    SearchRequest::Search { rate_pps }
                }
            }
            rate_pps => SearchRequest::Found(self.found(rate_pps.is_some())),
        }
    }

    /// Processes the result of the trial from [`BinarySearch::next`].
    pub fn record(&mut self, trial: MeasuredLoad) {
        let Some(rate_pps) = self.rate_pps() else { return };
        let is_long = self.is_long(rate_pps);
        self.trials += 1;
        if trial.is_tester_limited {
            self.irregular.push(Irregularity::TesterLimited { rate_pps });
        }
        if trial.is_disturbed {
            self.irregular.push(Irregularity::Disturbed { rate_pps });
        }
        if trial.has_extra() {
            self.irregular.push(Irregularity::ExtraFrames { rate_pps });
        }
        if trial.is_within(self.goal.loss_ratio) {
            self.met = Some(rate_pps);
            self.is_confirmed = is_long;
            self.misses = 0;
        } else if self.misses < self.goal.verifications {
            self.misses += 1;
        } else {
            self.misses = 0;
            if self.met == Some(rate_pps) {
                self.irregular.push(Irregularity::NotConfirmed { rate_pps });
                self.met = None;
            }
            self.missed = Some(rate_pps);
        }
    }

    /// Returns the progress. None when the search is finished.
    pub fn bracket(&self, sought: SearchQuantity) -> Option<Bracket> {
        let tried = self.rate_pps()?;
        let Goal { rate_pps_max: most, resolution_pps, .. } = self.goal;
        let (met, missed) = (self.met, self.missed);
        Some(Bracket { sought, tried, met, missed, most, width: Some(resolution_pps) })
    }

    /// Returns whether the trial at this load must be a final one.
    ///
    /// That is the case if the load met the goal before, or if a final trial failed and shorter
    /// ones are no longer trusted.
    fn is_long(&self, rate_pps: f64) -> bool {
        let failed = |it: &Irregularity| matches!(it, Irregularity::NotConfirmed { .. });
        self.met == Some(rate_pps) || self.irregular.iter().any(failed)
    }

    /// Returns the load to try. None when the search is finished.
    fn rate_pps(&self) -> Option<f64> {
        let Goal { rate_pps_min, rate_pps_max, resolution_pps, .. } = self.goal;
        let settled = |met: f64| (self.goal.is_confirmed && !self.is_confirmed).then_some(met);
        match (self.met, self.missed) {
            (None, None) => Some(rate_pps_max),
            (Some(met), None) => settled(met),
            (None, Some(missed)) if missed <= rate_pps_min => None,
            (None, Some(missed)) if missed - rate_pps_min <= resolution_pps => Some(rate_pps_min),
            (None, Some(missed)) => Some((rate_pps_min + missed) / 2.0),
            (Some(met), Some(missed)) if missed - met <= resolution_pps => settled(met),
            (Some(met), Some(missed)) => Some((met + missed) / 2.0),
        }
    }

    fn found(&self, is_cut_short: bool) -> SearchResult {
        let mut irregular = self.irregular.clone();
        // Loads that the tester could not offer or disturbed only matter if they bound the result.
        let bounds = |rate_pps| [self.met, self.missed].contains(&Some(rate_pps));
        irregular.retain(|it| match *it {
            Irregularity::TesterLimited { rate_pps } => bounds(rate_pps),
            Irregularity::Disturbed { rate_pps } => self.missed == Some(rate_pps),
            _ => true,
        });
        match (self.met, self.missed) {
            (None, Some(_)) if !is_cut_short => irregular.push(Irregularity::LossAtLowestLoad),
            (Some(_), None) => irregular.push(Irregularity::MaxLoadMet),
            _ => {}
        }
        if is_cut_short {
            irregular.push(Irregularity::TrialsExhausted);
        }
        SearchResult {
            rate_pps: self.met.unwrap_or(0.0),
            rate_pps_missed: self.missed,
            trials: self.trials,
            irregular,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: Goal = Goal {
        loss_ratio: 0.0,
        rate_pps_min: 1_000.0,
        rate_pps_max: 1_000_000.0,
        resolution_pps: 1_000.0,
        is_confirmed: true,
        verifications: 0,
    };

    /// Result of a one-second trial of a target that forwards up to `capacity_pps`.
    fn forwards(capacity_pps: f64, rate_pps: f64) -> MeasuredLoad {
        let offered = rate_pps as u64;
        let forwarded = offered.min(capacity_pps as u64);
        MeasuredLoad {
            intended: offered,
            offered,
            forwarded,
            is_tester_limited: false,
            is_disturbed: false,
        }
    }

    fn run(
        goal: Goal,
        mut target: impl FnMut(f64, bool) -> MeasuredLoad,
    ) -> (SearchResult, Vec<SearchRequest>) {
        let mut search = BinarySearch::new(goal);
        let mut asked = Vec::new();
        loop {
            let ask = search.next();
            let measured = match ask {
                SearchRequest::Search { rate_pps } => target(rate_pps, false),
                SearchRequest::Confirm { rate_pps } => target(rate_pps, true),
                SearchRequest::Found(found) => return (found, asked),
            };
            asked.push(ask);
            search.record(measured);
        }
    }

    #[test]
    fn the_largest_load_is_tried_first_and_the_capacity_is_found() {
        let (found, asked) = run(GOAL, |rate, _| forwards(123_456.0, rate));
        assert_eq!(asked[0], SearchRequest::Search { rate_pps: 1_000_000.0 });
        assert_eq!(asked.last(), Some(&SearchRequest::Confirm { rate_pps: found.rate_pps }));
        assert!(found.rate_pps <= 123_457.0 && found.rate_pps > 122_456.0, "{found:?}");
        assert_eq!(found.irregular, []);
        // Halving 999,000 to 1,000 takes ten trials. The first and the final trial are added.
        assert_eq!(found.trials, 12);
    }

    #[test]
    fn progress_reports_show_the_closing_bracket() {
        let mut search = BinarySearch::new(GOAL);
        let mut observed = Vec::new();
        while let SearchRequest::Search { rate_pps } | SearchRequest::Confirm { rate_pps } =
            search.next()
        {
            let bracket = search.bracket(SearchQuantity::load("throughput", 0.0)).unwrap();
            assert_eq!((bracket.tried, bracket.most), (rate_pps, 1e6));
            observed.push(bracket);
            search.record(forwards(123_456.0, rate_pps));
        }
        let width = |at: &Bracket| at.missed.unwrap_or(at.most) - at.met.unwrap_or(0.0);
        assert!(observed.windows(2).all(|pair| width(&pair[1]) <= width(&pair[0])), "{observed:?}");
        let last = observed.last().unwrap();
        assert!(last.met.unwrap() <= 123_456.0 && last.missed.unwrap() > 123_456.0, "{last:?}");
        assert!(width(last) <= last.width.unwrap(), "{last:?}");
        assert_eq!(search.bracket(SearchQuantity::default()), None, "it is over");
    }

    #[test]
    fn a_loss_goal_finds_the_load_with_that_loss() {
        let goal = Goal { loss_ratio: 0.1, ..GOAL };
        let (found, _) = run(goal, |rate, _| forwards(90_000.0, rate));
        assert!((found.rate_pps - 100_000.0).abs() <= 1_000.0, "{found:?}");
    }

    #[test]
    fn a_target_faster_than_the_largest_load_is_marked() {
        let (found, asked) = run(GOAL, |rate, _| forwards(2e6, rate));
        assert_eq!((found.rate_pps, asked.len()), (1e6, 2));
        assert_eq!(found.irregular, [Irregularity::MaxLoadMet]);
    }

    #[test]
    fn loss_at_the_lowest_load_is_marked_and_gives_zero() {
        let (found, asked) = run(GOAL, |rate, _| forwards(10.0, rate));
        assert_eq!(found.rate_pps, 0.0);
        assert_eq!(found.irregular, [Irregularity::LossAtLowestLoad]);
        assert_eq!(asked.last(), Some(&SearchRequest::Search { rate_pps: 1_000.0 }));
    }

    #[test]
    fn a_failed_confirmation_sends_the_search_below_it() {
        let (found, _) = run(GOAL, |rate, confirms| {
            forwards(if confirms { 100_000.0 } else { 200_000.0 }, rate)
        });
        assert!(found.rate_pps <= 100_000.0, "{found:?}");
        let is_failed = |it: &Irregularity| matches!(it, Irregularity::NotConfirmed { .. });
        assert!(found.irregular.iter().any(is_failed));
    }

    #[test]
    fn tester_limits_and_extra_frames_never_meet_the_goal() {
        let (found, _) = run(GOAL, |rate, _| {
            let mut measured = forwards(2e6, rate);
            if rate > 300_000.0 {
                measured.offered = 300_000;
                measured.forwarded = 300_000;
                measured.is_tester_limited = true;
            }
            measured
        });
        assert!(found.rate_pps <= 300_000.0 && found.rate_pps > 298_000.0, "{found:?}");
        let bound = found.rate_pps_missed.unwrap();
        assert_eq!(found.irregular, [Irregularity::TesterLimited { rate_pps: bound }]);
        // The same tester with a target slower than itself gives a regular result.
        let (found, _) = run(GOAL, |rate, _| MeasuredLoad {
            is_tester_limited: rate > 300_000.0,
            ..forwards(50_000.0, rate)
        });
        assert_eq!(found.irregular, []);
        let (found, _) = run(GOAL, |rate, _| {
            let mut measured = forwards(2e6, rate);
            measured.forwarded += 1;
            measured
        });
        assert_eq!(found.rate_pps, 0.0);
    }

    #[test]
    fn a_disturbed_trial_is_reported_if_it_bounds_the_result() {
        let (found, _) = run(GOAL, |rate, _| MeasuredLoad {
            is_disturbed: rate > 400_000.0,
            ..forwards(300_000.0, rate)
        });
        assert_eq!(found.irregular, [], "it was the target that bounded it");
        let (found, _) = run(GOAL, |rate, _| MeasuredLoad {
            is_disturbed: rate > 300_000.0,
            ..forwards(300_000.0, rate)
        });
        let rate_pps = found.rate_pps_missed.unwrap();
        assert_eq!(found.irregular, [Irregularity::Disturbed { rate_pps }]);
    }

    #[test]
    fn a_loss_counts_only_if_it_repeats() {
        // Every third trial loses a frame, at any load.
        let disturbed = |verifications| {
            let mut count = 0;
            let goal = Goal { verifications, ..GOAL };
            run(goal, |rate, _| {
                count += 1;
                let mut measured = forwards(123_456.0, rate);
                measured.forwarded -= u64::from(count % 3 == 0);
                measured
            })
        };
        let (without, _) = disturbed(0);
        assert!(without.rate_pps < 100_000.0, "{without:?}");
        let (verified, asked) = disturbed(1);
        assert!((122_456.0..123_457.0).contains(&verified.rate_pps), "{verified:?}");
        assert_eq!(verified.irregular, []);
        // The highest load misses twice before the miss counts.
        assert_eq!(asked[0], asked[1]);
        assert_ne!(asked[1], asked[2]);
        // Verification does not change the result for a deterministic loss, only the number of
        // trials.
        let (plain, _) = run(GOAL, |rate, _| forwards(123_456.0, rate));
        let (twice, _) =
            run(Goal { verifications: 2, ..GOAL }, |rate, _| forwards(123_456.0, rate));
        assert_eq!(twice.rate_pps, plain.rate_pps);
        assert!(twice.trials > plain.trials);
    }
}
