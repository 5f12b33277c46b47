//! Calibration of the tester over a loop without target. It bounds the validity of later results.
//!
//! The calibration measures in this order:
//!
//! 1. The maximum load that the tester can send, and the ceiling: the highest load without loss.
//!    Beyond it a trial measures the tester.
//! 2. The bias: latency over the loop, with its spread within a trial and between trials.
//! 3. The pacing error: deviation from the schedule at half of the ceiling.
//!
//! Over all trials it counts the tester's own loss and its stalls.

use packet::time::Nanos;

use crate::procedure::{Outcome, Point, Procedure, Step};
use netio::port::PortDrop;

use crate::pauses::Stalls;
use crate::search::binary::{BinarySearch, Goal, MeasuredLoad, SearchRequest, SearchResult};
use crate::search::interference::{RetryPolicy, Verdict};
use crate::stream::{Rate, Stream};
use crate::trial::{Jitter, Latency, Pacing, PortReport, Trial, TrialReport};

/// Number of bias trials. Their scatter is the error of the bias.
pub const BIAS_TRIALS: u32 = 5;

/// Parameters of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Stream to send. Its rate is ignored.
    pub stream: Stream,
    /// Maximum load to try, in frames per second.
    pub rate_pps_max: f64,
    /// Load of the bias trials, in frames per second.
    pub rate_pps_bias: f64,
    /// Resolution of the ceiling, as a share of the maximum load that the tester can send.
    pub resolution_ratio: f64,
    /// Duration of each trial.
    pub duration: Nanos,
    /// Drain time of each trial.
    pub drain: Nanos,
}

/// Results of a calibration.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Frame size in bytes, frame check sequence included.
    pub frame_bytes: usize,
    /// Offered load when the maximum was intended, in frames per second.
    pub saturated_pps: f64,
    /// Highest load that was offered as intended and received without loss.
    pub ceiling: SearchResult,
    /// Load of the bias trials, in frames per second.
    pub rate_pps_bias: f64,
    /// Latency over the loop: its median is the bias, its spread the accuracy.
    pub bias: Latency,
    /// Mean latency in each of the [`BIAS_TRIALS`] trials, in nanoseconds.
    pub bias_ns_means: Vec<f64>,
    /// Variation of that latency.
    pub jitter: Jitter,
    /// Deviation from the schedule at the load of the bias trials.
    pub pacing_at_bias: Pacing,
    /// Deviation from the schedule at half of the ceiling. None if the ceiling is 0.
    pub pacing_at_half: Option<Pacing>,
    /// Unexplained frames over all trials.
    pub unexplained: i64,
    /// Received frames that the tester's own rings dropped, over all trials.
    pub dropped: u64,
    /// Stalls of the tester, over all trials.
    pub stalls: Stalls,
}

/// A calibration in progress: an experiment without target.
#[derive(Debug)]
pub struct Calibrator {
    settings: Settings,
    stage: CalibrationStage,
    unexplained: i64,
    dropped: u64,
    stalls: Stalls,
    saturated_pps: f64,
    /// The current trial, and the policy for repeating it.
    asked: Option<Trial>,
    patience: RetryPolicy,
    ceiling: Option<SearchResult>,
    bias: Option<(Latency, Jitter, Pacing)>,
    bias_ns_means: Vec<f64>,
    pacing_at_half: Option<Pacing>,
}

#[derive(Debug)]
enum CalibrationStage {
    Saturate,
    Search(BinarySearch),
    /// Number of bias trials left.
    Bias(u32),
    Half,
    Done,
}

impl Calibrator {
    /// Creates a calibration.
    pub fn new(settings: Settings) -> Self {
        Calibrator {
            settings,
            stage: CalibrationStage::Saturate,
            unexplained: 0,
            dropped: 0,
            stalls: Stalls::default(),
            saturated_pps: 0.0,
            asked: None,
            patience: RetryPolicy::default(),
            ceiling: None,
            bias: None,
            bias_ns_means: Vec::new(),
            pacing_at_half: None,
        }
    }

    /// Returns the results, if the experiment is done.
    pub fn finish(self) -> Option<Calibration> {
        let (bias, jitter, pacing_at_bias) = self.bias?;
        Some(Calibration {
            frame_bytes: self.settings.stream.frame_bytes,
            saturated_pps: self.saturated_pps,
            ceiling: self.ceiling?,
            rate_pps_bias: self.settings.rate_pps_bias,
            bias,
            bias_ns_means: self.bias_ns_means,
            jitter,
            pacing_at_bias,
            pacing_at_half: self.pacing_at_half,
            unexplained: self.unexplained,
            dropped: self.dropped,
            stalls: self.stalls,
        })
    }

    fn digest(&mut self, report: &TrialReport) {
        self.unexplained += report.account.unexplained();
        let lost = |port: &PortReport| port.counters.lost(PortDrop::ReceiveRingFull);
        self.dropped += report.ports.iter().map(lost).sum::<u64>();
        self.stalls.merge(&report.stalls);
        let stage = std::mem::replace(&mut self.stage, CalibrationStage::Done);
        self.stage = match stage {
            CalibrationStage::Saturate => {
                self.saturated_pps = report.total.pps_offered();
                self.search()
            }
            CalibrationStage::Search(mut search) => {
                let judge = |trial: &Trial| self.patience.judge(trial, report, &[0.0]);
                if self.asked.as_ref().map(judge) != Some(Verdict::Again) {
                    search.record(MeasuredLoad::from(report));
                }
                CalibrationStage::Search(search)
            }
            CalibrationStage::Bias(left) => {
                self.note_bias(report);
                let ceiling_pps = self.ceiling.as_ref().map_or(0.0, |found| found.rate_pps);
                match left {
                    2.. => CalibrationStage::Bias(left - 1),
                    _ if ceiling_pps > 0.0 => CalibrationStage::Half,
                    _ => CalibrationStage::Done,
                }
            }
            CalibrationStage::Half => {
                self.pacing_at_half = Some(report.pacing.clone());
                CalibrationStage::Done
            }
            CalibrationStage::Done => CalibrationStage::Done,
        };
    }

    fn note_bias(&mut self, report: &TrialReport) {
        self.bias_ns_means.extend(report.latency.from_sent.ns_mean());
        let jitter = report.streams.first().map(|one| one.jitter).unwrap_or_default();
        let (latency, pacing) = (report.latency.clone(), report.pacing.clone());
        match &mut self.bias {
            None => self.bias = Some((latency, jitter, pacing)),
            Some((sum, _, _)) => sum.merge(&latency),
        }
    }

    /// Starts the search for the ceiling, below the saturated load.
    fn search(&self) -> CalibrationStage {
        let rate_pps_max = self.saturated_pps.clamp(1.0, self.settings.rate_pps_max);
        CalibrationStage::Search(BinarySearch::new(Goal {
            loss_ratio: 0.0,
            rate_pps_min: rate_pps_max / 1000.0,
            rate_pps_max,
            resolution_pps: rate_pps_max * self.settings.resolution_ratio,
            is_confirmed: false,
            verifications: 0,
        }))
    }

    fn step(&mut self, stage: &'static str, rate_pps: f64) -> Step<()> {
        let mut stream = self.settings.stream.clone();
        stream.rate = Rate::FramesPerSecond(rate_pps);
        let Settings { duration, drain, .. } = self.settings;
        let point = Point::new(&[(stage, rate_pps)]);
        let trial = Trial::new(vec![stream], Nanos::ZERO, duration, drain);
        self.asked = Some(trial.clone());
        Step::Trial { point, trial }
    }
}

impl Procedure for Calibrator {
    type Setup = ();

    fn next(&mut self, last: Option<&Outcome>) -> Step<()> {
        if let Some(Outcome::Trial { report, .. }) = last {
            self.digest(report);
        }
        if let CalibrationStage::Search(search) = &self.stage {
            match search.next() {
                SearchRequest::Search { rate_pps } | SearchRequest::Confirm { rate_pps } => {
                    return self.step("search_rate_pps", rate_pps);
                }
                SearchRequest::Found(found) => {
                    self.ceiling = Some(found);
                    self.stage = CalibrationStage::Bias(BIAS_TRIALS);
                }
            }
        }
        match self.stage {
            CalibrationStage::Saturate => {
                self.step("saturate_rate_pps", self.settings.rate_pps_max)
            }
            CalibrationStage::Bias(_) => self.step("bias_rate_pps", self.settings.rate_pps_bias),
            CalibrationStage::Half => {
                let ceiling_pps = self.ceiling.as_ref().map_or(0.0, |found| found.rate_pps);
                self.step("half_rate_pps", ceiling_pps / 2.0)
            }
            CalibrationStage::Search(_) | CalibrationStage::Done => Step::Done,
        }
    }
}
