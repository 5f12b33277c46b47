//! What was seen of rules that were changed: when each acted, in which batches, and what one more took.
//!
//! Each rule's time is known to lie between two probes; batches, order and costs follow from these windows as they do
//! when they are measured ([`crate::activation_times`]). Rules that act one after the other tell what each takes by
//! when the last of some acts after the first. Source: OFLOPS-SUME, figures 8a and 8b. Invariant: nothing is told that
//! lies below what probes could resolve.

use std::ops::Range;

use super::Run;
use super::evidence::{Evidence, Watched, number, setting};
use super::line::Dot;
use crate::activation_times::batches::Batches;
use crate::activation_times::order::Order;
use crate::activation_times::{ActivationTimes, Bounds, Window};
use crate::experiments::modules::updates::{DEED, PRIORITIES, PROBES_PPS};

/// The experiment.
pub const EXPERIMENT: &str = "rule-activation";

/// A time is known as well as the best if its half-width is no more than so many times that one's.
const KNOWN_FACTOR: f64 = 3.0;

/// Parts into which rules without batches are cut.
const PARTS: usize = 8;

/// Rules of a part at least.
const PART_MIN: usize = 4;

/// One update of rules, probed from before it.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// The run.
    pub run: &'a Run,
    /// What was done.
    pub deed: &'a str,
    /// The order of priorities.
    pub order: &'a str,
    /// How many rules.
    pub rules: f64,
    /// Probes in a second.
    pub probes_pps: f64,
    /// The last rule acted so long after the barrier was answered, known to so much.
    pub gap_ns: Option<(f64, f64)>,
    /// The barrier was answered so long after the update began.
    pub control_ns: Option<f64>,
    /// When rules acted.
    pub times: ActivationTimes,
    /// Their batches, if they act in batches.
    pub batches: Option<Batches>,
    /// What the first frame of a rule took, what the last ones did: medians.
    pub frames_ns: Option<(f64, f64)>,
    /// The least that a first frame took, and their mean.
    pub first_frame_ns: Option<(f64, f64)>,
    /// The share of probes that came back before the update.
    pub back_ratio: Option<f64>,
}

/// Every update that was probed from before it and seen to its end.
pub fn all<'a>(evidence: &Evidence<'a>) -> Vec<Update<'a>> {
    evidence.trials(EXPERIMENT).into_iter().filter_map(|watched| update(&watched)).collect()
}

fn update<'a>(watched: &Watched<'a>) -> Option<Update<'a>> {
    let value = |name: &str| watched.measured(name).map(|(value, _)| value);
    let rules = watched.trial.point.value;
    let [lows, highs] = ["acts_after_ns", "acts_by_ns"].map(|name| watched.series(name));
    let window = |(low, high): (&[f64; 2], &[f64; 2])| Window {
        rule: low[0] as usize,
        acts: Bounds { low: low[1], high: high[1] },
    };
    let times = ActivationTimes::new(lows.iter().zip(highs).map(window).collect());
    // Of those that are too many for a record only some are kept.
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
    /// Whether rules act in batches of several.
    pub fn is_batched(&self) -> bool {
        self.batches.as_ref().is_some_and(|batches| batches.groups.iter().any(|it| it.len() > 1))
    }

    /// Whether the last rule acted after the barrier was answered, whatever the windows leave open.
    pub fn is_late(&self) -> bool {
        self.gap_ns.is_some_and(|(gap, half)| gap > half)
    }

    /// From the rule of one rank acting to that of another, as a value and how well it is known.
    pub fn span(&self, from: usize, to: usize) -> (f64, f64) {
        let span = self.times.nth(to).since(self.times.nth(from));
        (span.middle(), span.half())
    }

    /// From the first to the last of some ranks whose times are known about as well as the best of them.
    fn well_known(&self, ranks: &Range<usize>) -> (usize, usize) {
        let half = |rank: usize| self.times.nth(rank).half();
        let least = ranks.clone().map(half).fold(f64::INFINITY, f64::min);
        let is_known = |rank: &usize| half(*rank) <= KNOWN_FACTOR * least;
        let first = ranks.clone().find(is_known).unwrap_or(ranks.start);
        let last = ranks.clone().rev().find(is_known).unwrap_or(ranks.end - 1);
        (first, last)
    }

    /// What one more rule took, over how many there were before it.
    pub fn costs(&self, in_batches: bool) -> Vec<Dot> {
        let parts = match &self.batches {
            Some(batches) if in_batches => batches.groups.clone(),
            _ => self.parts(),
        };
        let within = if in_batches && self.is_shuffled() { 4.0 } else { 2.0 };
        let cost = |part: Range<usize>| {
            // Of those that are written in random order half of the others of a batch are below.
            let x = part.start as f64 + part.len() as f64 / within;
            let (first, last) = self.well_known(&part);
            let (span, half) = self.span(first, last);
            let steps = last.saturating_sub(first) as f64;
            (steps > 0.0).then(|| Dot { x, y: span / steps, half: half / steps })
        };
        parts.into_iter().filter(|part| part.len() > PART_MIN).filter_map(cost).collect()
    }

    /// All rules in so many parts of equal size, which overlap by one.
    fn parts(&self) -> Vec<Range<usize>> {
        let count = self.times.len();
        let size = count.div_ceil(PARTS).max(PART_MIN);
        let part = |from: usize| from..(from + size + 1).min(count);
        (0..count).step_by(size).map(part).collect()
    }

    /// The order within batches, or of all rules where there are none; none where no pair is resolved.
    pub fn inner_order(&self) -> Option<Order> {
        match &self.batches {
            Some(batches) => self.times.order_within(&batches.groups),
            None => self.times.order(),
        }
    }

    /// Whether rules act in another order than they were sent in.
    pub fn is_shuffled(&self) -> bool {
        self.inner_order().is_some_and(|order| order.inverted_share() > 0.25)
    }
}
