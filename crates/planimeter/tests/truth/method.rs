//! Results of the tester on an unknown link, each with its error.

use packet::time::Nanos;
use record::{Interval, Stalls};
use stats::interval::{self, LEVEL_PERCENT_HIGH};
use tester::account::DropLocation;
use tester::rig::{Rig, RigError};
use tester::search::measured::MeasuredLoad;
use tester::search::mlr::goal::Goal;
use tester::search::mlr::{GoalOutcome, NextTrial, Search, SearchGoals};
use tester::stream::{Headers, Rate, Stream};
use tester::trial::{Histogram, Trial, TrialReport};

/// Results for a link.
pub struct Results {
    /// Frames that were sent and did not return.
    pub lost: i64,
    /// Number of these that the tester's own ports lost.
    pub lost_by_tester: u64,
    /// Duplicate frames.
    pub duplicated: u64,
    /// Reordered frames.
    pub reordered: u64,
    /// Frames with any other error.
    pub wrong: u64,
    /// Mean delay of each trial.
    pub means: Vec<Mean>,
    /// The 99.9th percentile of the delay.
    pub delay_p999: Option<Interval>,
    /// Longest lateness of the tester's transmissions; only delays from the schedule include it.
    pub late_ns_max: u64,
    /// All delays.
    pub delays: Histogram,
    /// Frames that returned.
    pub forwarded: u64,
    /// Stalls of the tester.
    pub stalls: Stalls,
    /// Whether the tester limited a trial.
    pub is_tester_limited: bool,
}

/// Mean delay from one trial.
#[allow(dead_code, reason = "in virtual time nothing disturbs")]
#[derive(Debug, Clone, Copy)]
pub struct Mean {
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub until: Nanos,
    /// The mean.
    pub ns: f64,
}

/// A stream from port 0 to port 1.
pub fn stream(rate_pps: f64) -> Stream {
    let headers = Headers::udp(
        ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        (4000, 5000),
    );
    Stream::plain(1, 64, headers, Rate::FramesPerSecond(rate_pps))
}

/// Measures a link by repeated trials at this load, with a drain after each.
pub fn measure(
    rig: &mut dyn Rig,
    rate_pps: f64,
    [duration, drain]: [Nanos; 2],
    repeats: usize,
) -> Result<Results, RigError> {
    let trial = Trial::new(vec![stream(rate_pps)], Nanos::ZERO, duration, drain);
    let reports = (0..repeats).map(|_| rig.trial(&trial)).collect::<Result<Vec<_>, _>>()?;
    Ok(Results::of(&reports))
}

impl Mean {
    fn of(report: &TrialReport) -> Option<Mean> {
        let length = report.duration.saturating_add(report.drain);
        let (from, until) = (report.started_at, report.started_at.saturating_add(length));
        report.latency.from_sent.ns_mean().map(|ns| Mean { from, until, ns })
    }
}

/// Returns the confidence interval of the mean delay, from the scatter of trials.
pub fn mean_of<'a>(means: impl IntoIterator<Item = &'a Mean>) -> Option<Interval> {
    let means: Vec<f64> = means.into_iter().map(|mean| mean.ns).collect();
    interval::of_mean(&means, LEVEL_PERCENT_HIGH).map(to_the_nanosecond)
}

impl Results {
    /// Formats the counts, for the message of a failed test.
    pub fn counts(&self) -> String {
        format!(
            "{} back, {} lost ({} by the tester), {} twice, {} reordered, {} wrong, {:?}",
            self.forwarded,
            self.lost,
            self.lost_by_tester,
            self.duplicated,
            self.reordered,
            self.wrong,
            self.stalls
        )
    }

    fn of(reports: &[TrialReport]) -> Results {
        let mut results = Results {
            lost: 0,
            lost_by_tester: 0,
            duplicated: 0,
            reordered: 0,
            wrong: 0,
            means: reports.iter().filter_map(Mean::of).collect(),
            delay_p999: None,
            late_ns_max: 0,
            delays: Histogram::new(),
            forwarded: 0,
            stalls: Stalls::default(),
            is_tester_limited: false,
        };
        for report in reports {
            let classes = report.classes;
            results.lost += report.total.offered as i64 - report.total.forwarded as i64;
            results.lost_by_tester += report.account.dropped(DropLocation::Tester);
            results.duplicated += classes.duplicate;
            results.reordered += classes.reordered;
            results.wrong += classes.corrupt + classes.misrouted + classes.late;
            results.wrong +=
                report.ports.iter().map(|port| port.foreign + port.broken).sum::<u64>();
            results.late_ns_max = results.late_ns_max.max(report.pacing.lateness_max.0);
            results.delays.merge(&report.latency.from_sent);
            results.forwarded += report.total.forwarded;
            results.stalls.merge(&report.stalls);
            results.is_tester_limited |= report.is_tester_limited();
        }
        results.delay_p999 =
            results.delays.interval_of_quantile(0.999, LEVEL_PERCENT_HIGH).map(to_the_nanosecond);
        results
    }
}

/// Widens an interval by the resolution of a nanosecond clock.
fn to_the_nanosecond(interval: Interval) -> Interval {
    Interval { low: interval.low - 1.0, high: interval.high + 1.0, ..interval }
}

/// Searches for the largest load without loss.
pub fn search(rig: &mut dyn Rig, goal: Goal, rate_pps_max: f64) -> Result<GoalOutcome, RigError> {
    let rate_pps_min = rate_pps_max / 1000.0;
    let duration_max = Nanos::from_secs(60);
    let wanted = SearchGoals { goals: vec![goal], rate_pps_min, rate_pps_max, duration_max };
    let mut search = Search::new(wanted).expect("the goal can be searched for");
    loop {
        match search.next() {
            NextTrial::Trial { rate_pps, duration, .. } => {
                let drain = Nanos::from_millis(20);
                let trial = Trial::new(vec![stream(rate_pps)], Nanos::ZERO, duration, drain);
                search.record(MeasuredLoad::from(&rig.trial(&trial)?));
            }
            NextTrial::Found(mut found) => return Ok(found.remove(0)),
        }
    }
}
