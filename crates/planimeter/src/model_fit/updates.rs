//! Observed updates of flow entries: activation times, batches, and the cost of each further entry.
//!
//! Each activation time is between two probes. Batches, order and costs follow from these windows
//! in the same way as during the measurement ([`experiments::activation_times`]). If entries activate one
//! after another, the time between two of them gives the cost per entry. Source: OFLOPS-SUME,
//! figures 8a and 8b.
//!
//! Invariant: no value is below the resolution of the probes.

use std::ops::Range;

use super::Run;
use super::line::Point;
use super::observations::{ObservedTrial, TargetRuns, number, setting};
use experiments::activation_times::batches::Batches;
use experiments::activation_times::order::OrderComparison;
use experiments::activation_times::{ActivationTimes, Bounds, Window};
use experiments::control_plane::updates::{DEED, PRIORITIES, PROBES_PPS};

/// Name of the experiment.
pub const EXPERIMENT: &str = "rule-activation";

/// Maximum ratio of a half width to the smallest one for a well-known time.
const KNOWN_FACTOR: f64 = 3.0;

/// Number of parts into which entries without batches are divided.
const PARTS: usize = 8;

/// Minimum number of entries in a part.
const PART_MIN: usize = 4;

/// An update of entries with probes from before it.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// Run.
    pub run: &'a Run,
    /// Operation.
    pub deed: &'a str,
    /// Order of the priorities.
    pub order: &'a str,
    /// Number of entries.
    pub rules: f64,
    /// Probes per second.
    pub probes_pps: f64,
    /// Time from the barrier reply to the last activation, with its uncertainty.
    pub gap_ns: Option<(f64, f64)>,
    /// Time from the start of the update to the barrier reply.
    pub control_ns: Option<f64>,
    /// Activation times.
    pub times: ActivationTimes,
    /// Batches, if there are any.
    pub batches: Option<Batches>,
    /// Median latencies of the first frame of an entry and of the last ones.
    pub frames_ns: Option<(f64, f64)>,
    /// Minimum and mean latency of the first frames.
    pub first_frame_ns: Option<(f64, f64)>,
    /// Share of probes that returned before the update.
    pub back_ratio: Option<f64>,
}

/// Returns every completed update with probes from before it.
pub fn all<'a>(evidence: &TargetRuns<'a>) -> Vec<Update<'a>> {
    evidence.trials(EXPERIMENT).into_iter().filter_map(|watched| update(&watched)).collect()
}

fn update<'a>(watched: &ObservedTrial<'a>) -> Option<Update<'a>> {
    let value = |name: &str| watched.measured(name).map(|(value, _)| value);
    let rules = watched.trial.point.value;
    let [lows, highs] = ["acts_after_ns", "acts_by_ns"].map(|name| watched.series(name));
    let window = |(low, high): (&[f64; 2], &[f64; 2])| Window {
        rule: low[0] as usize,
        acts: Bounds { low: low[1], high: high[1] },
    };
    let times = ActivationTimes::new(lows.iter().zip(highs).map(window).collect());
    // A record contains only a part of the windows if there are too many.
    let is_whole = !times.is_empty() && times.len() as f64 == rules;
    is_whole.then_some(())?;
    Some(Update {
        run: watched.run,
        deed: setting(watched.run, &DEED),
        order: setting(watched.run, &PRIORITIES),
        rules,
        probes_pps: value("probes_per_s").or_else(|| number(watched.run, &PROBES_PPS))?,
        gap_ns: watched.measured("barrier_gap_ns_max"),
        control_ns: value("control_plane_ns"),
        batches: times.batches(),
        times,
        frames_ns: value("first_frame_ns_p50").zip(value("last_frame_ns_p50")),
        first_frame_ns: value("first_frame_ns_min").zip(value("first_frame_ns_mean")),
        back_ratio: value("probes_back_ratio"),
    })
}

impl Update<'_> {
    /// Returns whether entries activate in batches of several.
    pub fn is_batched(&self) -> bool {
        self.batches.as_ref().is_some_and(|batches| batches.groups.iter().any(|it| it.len() > 1))
    }

    /// Returns whether the last activation was certainly after the barrier reply.
    pub fn is_late(&self) -> bool {
        self.gap_ns.is_some_and(|(gap, half)| gap > half)
    }

    /// Returns the time between the activations of two ranks, with its uncertainty.
    pub fn span(&self, from: usize, to: usize) -> (f64, f64) {
        let span = self.times.nth(to).since(self.times.nth(from));
        (span.middle(), span.half())
    }

    /// Returns the first and the last of some ranks whose uncertainty is close to the smallest one.
    fn well_known(&self, ranks: &Range<usize>) -> (usize, usize) {
        let half = |rank: usize| self.times.nth(rank).half();
        let least = ranks.clone().map(half).fold(f64::INFINITY, f64::min);
        let is_known = |rank: &usize| half(*rank) <= KNOWN_FACTOR * least;
        let first = ranks.clone().find(is_known).unwrap_or(ranks.start);
        let last = ranks.clone().rev().find(is_known).unwrap_or(ranks.end - 1);
        (first, last)
    }

    /// Returns the cost of each further entry, over the number of entries before it.
    pub fn costs(&self, in_batches: bool) -> Vec<Point> {
        let parts = match &self.batches {
            Some(batches) if in_batches => batches.groups.clone(),
            _ => self.parts(),
        };
        let within = if in_batches && self.is_shuffled() { 4.0 } else { 2.0 };
        let cost = |part: Range<usize>| {
            // In random order, half of the other entries of a batch are below.
            let x = part.start as f64 + part.len() as f64 / within;
            let (first, last) = self.well_known(&part);
            let (span, half) = self.span(first, last);
            let steps = last.saturating_sub(first) as f64;
            (steps > 0.0).then(|| Point { x, y: span / steps, half: half / steps })
        };
        parts.into_iter().filter(|part| part.len() > PART_MIN).filter_map(cost).collect()
    }

    /// Divides the entries into parts of equal size, which overlap by one.
    fn parts(&self) -> Vec<Range<usize>> {
        let count = self.times.len();
        let size = count.div_ceil(PARTS).max(PART_MIN);
        let part = |from: usize| from..(from + size + 1).min(count);
        (0..count).step_by(size).map(part).collect()
    }

    /// Returns the order within batches, or of all entries without batches; `None` if no pair is
    /// resolved.
    pub fn inner_order(&self) -> Option<OrderComparison> {
        match &self.batches {
            Some(batches) => self.times.order_within(&batches.groups),
            None => self.times.order(),
        }
    }

    /// Returns whether entries activate in another order than they were sent.
    pub fn is_shuffled(&self) -> bool {
        self.inner_order().is_some_and(|order| order.inverted_share() > 0.25)
    }
}
