//! What was seen of rules that were changed: when each acted, in which batches, and what one more took.
//!
//! Rules that act one after the other tell what each takes by when the last of some acts after the first. Where
//! nothing acts for much longer than from one rule to the next, a batch has ended. Source: OFLOPS-SUME, figures
//! 8a and 8b. Invariant: nothing is told that lies below what probes could resolve.

use std::ops::Range;

use super::Run;
use super::evidence::{Evidence, Watched, number, setting};
use super::line::{Dot, median};
use crate::experiments::modules::updates::{DEED, PRIORITIES, PROBES_PPS};

/// The experiment.
pub const EXPERIMENT: &str = "rule-activation";

/// Nothing acts for so much longer than usually: a batch has ended.
const PAUSE_FACTOR: f64 = 10.0;

/// And for so many times as long as a rule's moment is known to.
const PAUSE_RESOLUTIONS: f64 = 4.0;

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
    /// A rule's moment is known to so much.
    pub resolution_ns: f64,
    /// The last rule acted so long after the barrier was answered, known to so much.
    pub gap_ns: Option<(f64, f64)>,
    /// The barrier was answered so long after the update began.
    pub control_ns: Option<f64>,
    /// When rules acted, in rising order; each rule once.
    pub times_ns: Vec<f64>,
    /// Which rule it was, as they were sent.
    pub places: Vec<usize>,
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
    let times_ns: Vec<f64> = watched.series("rules_acting").iter().map(|point| point[0]).collect();
    // Of those that are too many for a record only some are kept.
    let is_whole = !times_ns.is_empty() && times_ns.len() as f64 == rules;
    let mut places: Vec<[f64; 2]> = watched.series("place_acting").to_vec();
    places.sort_by(|one, other| one[1].total_cmp(&other[1]));
    is_whole.then_some(())?;
    Some(Update {
        run: watched.run,
        deed: setting(watched.run, &DEED),
        order: setting(watched.run, &PRIORITIES),
        rules,
        probes_pps: number(watched.run, &PROBES_PPS)?,
        resolution_ns: value("resolution_ns_p50")?,
        gap_ns: watched.measured("barrier_gap_ns_max"),
        control_ns: value("control_plane_ns"),
        times_ns,
        places: places.iter().map(|place| place[0] as usize).collect(),
        frames_ns: value("first_frame_ns_p50").zip(value("last_frame_ns_p50")),
        first_frame_ns: value("first_frame_ns_min").zip(value("first_frame_ns_mean")),
        back_ratio: value("probes_back_ratio"),
    })
}

impl Update<'_> {
    /// Rules that acted without a pause between them, by their places among those that acted.
    pub fn batches(&self) -> Vec<Range<usize>> {
        let gaps: Vec<f64> = self.times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let usual = median(gaps.iter().copied().filter(|gap| *gap > 0.0).collect());
        let usual = usual.unwrap_or(0.0) * PAUSE_FACTOR;
        let pause = usual.max(PAUSE_RESOLUTIONS * self.resolution_ns);
        let mut batches = Vec::new();
        let mut begins = 0;
        for (place, gap) in gaps.iter().enumerate() {
            if *gap > pause {
                batches.push(begins..place + 1);
                begins = place + 1;
            }
        }
        batches.push(begins..self.times_ns.len());
        batches
    }

    /// From when batches began until the next one did.
    pub fn intervals(&self) -> Vec<f64> {
        let begins: Vec<f64> =
            self.batches().iter().map(|batch| self.times_ns[batch.start]).collect();
        begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// What one more rule took, over how many there were before it.
    pub fn costs(&self, in_batches: bool) -> Vec<Dot> {
        let parts = if in_batches { self.batches() } else { self.parts() };
        let cost = |part: Range<usize>| {
            let steps = (part.len() - 1) as f64;
            let took = self.times_ns[part.end - 1] - self.times_ns[part.start];
            // Of those that are written in random order half of the others of a batch are below.
            let within = if in_batches && self.is_shuffled() { 4.0 } else { 2.0 };
            Dot {
                x: part.start as f64 + part.len() as f64 / within,
                y: took / steps,
                half: 2.0 * self.resolution_ns / steps,
            }
        };
        parts.into_iter().filter(|part| part.len() >= PART_MIN).map(cost).collect()
    }

    /// All rules in so many parts of equal size, which overlap by one.
    fn parts(&self) -> Vec<Range<usize>> {
        let count = self.times_ns.len();
        let size = count.div_ceil(PARTS).max(PART_MIN);
        let part = |from: usize| from..(from + size + 1).min(count);
        (0..count).step_by(size).map(part).collect()
    }

    /// The share of pairs within batches that acted the other way round, if batches are long enough to tell.
    pub fn inversions(&self) -> Option<f64> {
        let (mut pairs, mut inverted) = (0_u64, 0_u64);
        for batch in self.batches() {
            let took = self.times_ns[batch.end - 1] - self.times_ns[batch.start];
            if batch.len() < PART_MIN || took < PAUSE_RESOLUTIONS * self.resolution_ns {
                continue;
            }
            let places = &self.places[batch];
            for (at, earlier) in places.iter().enumerate() {
                pairs += (places.len() - at - 1) as u64;
                inverted += places[at + 1..].iter().filter(|later| *later < earlier).count() as u64;
            }
        }
        (pairs > 0).then(|| inverted as f64 / pairs as f64)
    }

    /// Whether rules of a batch act in another order than they were sent in.
    pub fn is_shuffled(&self) -> bool {
        self.inversions().is_some_and(|share| share > 0.25)
    }
}
