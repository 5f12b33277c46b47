//! The tester measures itself first, over a loop without target: what it then says of a target is
//! believed only as far as this.
//!
//! Three questions, in this order. How much can it send at all, and what is the largest load of
//! which it loses nothing (the ceiling: beyond it a trial measures the tester)? What latency does
//! it see where there is none (the bias), and how far does that spread, within a trial and from trial to
//! trial? How well does it keep a schedule at half of the ceiling (the pacing error)? Over all of it:
//! what did it lose itself, and for how long was it away from its work?

use packet::time::Nanos;

use crate::experiment::{Experiment, Outcome, Point, Step};
use ports::port::PortDrop;

use crate::search::binary::{Ask, BinarySearch, Found, Goal, Measured};
use crate::search::disturbed::{Patience, Verdict};
use crate::stall::Stalls;
use crate::stream::{Rate, Stream};
use crate::trial::{Jitter, Latency, Pacing, PortReport, Trial, TrialReport};

/// Trials by which the bias is known: their scatter is its error.
pub const BIAS_TRIALS: u32 = 5;

/// How the tester is to measure itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The stream to send; its rate is ignored.
    pub stream: Stream,
    /// The largest load worth trying, frames per second.
    pub rate_pps_max: f64,
    /// The load at which the bias is taken, frames per second.
    pub rate_pps_bias: f64,
    /// The ceiling is found to within this share of what the tester can send at all.
    pub resolution_ratio: f64,
    /// How long each trial lasts.
    pub duration: Nanos,
    /// How long to listen after it.
    pub drain: Nanos,
}

/// What a tester is worth.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Frame size in bytes, frame check sequence included.
    pub frame_bytes: usize,
    /// What was offered when as much as possible was asked for, frames per second.
    pub saturated_pps: f64,
    /// The largest load that was offered as intended and came back whole.
    pub ceiling: Found,
    /// The load at which the bias was taken, frames per second.
    pub rate_pps_bias: f64,
    /// Latency over the loop: its middle is the bias, its width the accuracy.
    pub bias: Latency,
    /// The mean of it in each of [`BIAS_TRIALS`] trials, nanoseconds.
    pub bias_ns_means: Vec<f64>,
    /// Variation of that latency.
    pub jitter: Jitter,
    /// How well a low, regular load kept its schedule.
    pub pacing_at_bias: Pacing,
    /// How well half of the ceiling kept its schedule; none where the ceiling is 0.
    pub pacing_at_half: Option<Pacing>,
    /// Frames that nobody could account for, over all trials.
    pub unexplained: i64,
    /// Frames that had come back and were lost in the tester's own rings, over all trials.
    pub dropped: u64,
    /// When the tester was away from its work, over all trials.
    pub stalls: Stalls,
}

/// The measurement in progress: an experiment without target.
#[derive(Debug)]
pub struct Calibrator {
    settings: Settings,
    stage: Stage,
    unexplained: i64,
    dropped: u64,
    stalls: Stalls,
    saturated_pps: f64,
    /// The trial under way, and whether to try it again.
    asked: Option<Trial>,
    patience: Patience,
    ceiling: Option<Found>,
    bias: Option<(Latency, Jitter, Pacing)>,
    bias_ns_means: Vec<f64>,
    pacing_at_half: Option<Pacing>,
}

#[derive(Debug)]
enum Stage {
    Saturate,
    Search(BinarySearch),
    /// So many trials of it are left.
    Bias(u32),
    Half,
    Done,
}

impl Calibrator {
    /// A calibration that has measured nothing yet.
    pub fn new(settings: Settings) -> Self {
        Calibrator {
            settings,
            stage: Stage::Saturate,
            unexplained: 0,
            dropped: 0,
            stalls: Stalls::default(),
            saturated_pps: 0.0,
            asked: None,
            patience: Patience::default(),
            ceiling: None,
            bias: None,
            bias_ns_means: Vec::new(),
            pacing_at_half: None,
        }
    }

    /// What was found, once the experiment is done.
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
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        self.stage = match stage {
            Stage::Saturate => {
                self.saturated_pps = report.total.pps_offered();
                self.search()
            }
            Stage::Search(mut search) => {
                let judge = |trial: &Trial| self.patience.judge(trial, report, &[0.0]);
                if self.asked.as_ref().map(judge) != Some(Verdict::Again) {
                    search.record(Measured::from(report));
                }
                Stage::Search(search)
            }
            Stage::Bias(left) => {
                self.note_bias(report);
                let ceiling_pps = self.ceiling.as_ref().map_or(0.0, |found| found.rate_pps);
                match left {
                    2.. => Stage::Bias(left - 1),
                    _ if ceiling_pps > 0.0 => Stage::Half,
                    _ => Stage::Done,
                }
            }
            Stage::Half => {
                self.pacing_at_half = Some(report.pacing.clone());
                Stage::Done
            }
            Stage::Done => Stage::Done,
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

    /// The search for the ceiling, below what could be sent at all.
    fn search(&self) -> Stage {
        let rate_pps_max = self.saturated_pps.clamp(1.0, self.settings.rate_pps_max);
        Stage::Search(BinarySearch::new(Goal {
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

impl Experiment for Calibrator {
    type Setup = ();

    fn next(&mut self, last: Option<&Outcome>) -> Step<()> {
        if let Some(Outcome::Trial { report, .. }) = last {
            self.digest(report);
        }
        if let Stage::Search(search) = &self.stage {
            match search.next() {
                Ask::Search { rate_pps } | Ask::Confirm { rate_pps } => {
                    return self.step("search_rate_pps", rate_pps);
                }
                Ask::Found(found) => {
                    self.ceiling = Some(found);
                    self.stage = Stage::Bias(BIAS_TRIALS);
                }
            }
        }
        match self.stage {
            Stage::Saturate => self.step("saturate_rate_pps", self.settings.rate_pps_max),
            Stage::Bias(_) => self.step("bias_rate_pps", self.settings.rate_pps_bias),
            Stage::Half => {
                let ceiling_pps = self.ceiling.as_ref().map_or(0.0, |found| found.rate_pps);
                self.step("half_rate_pps", ceiling_pps / 2.0)
            }
            Stage::Search(_) | Stage::Done => Step::Done,
        }
    }
}
