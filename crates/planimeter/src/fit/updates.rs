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

/// A moment is known as well as the best if its half-width is no more than so many times that one's.
const KNOWN_FACTOR: f64 = 3.0;

/// Of rules in no order some may be counted in the wrong batch: a share of what is found.
const MISPLACED: f64 = 0.1;

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
    /// How well each of these moments is known.
    pub halves_ns: Vec<f64>,
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
    let resolution_ns = value("resolution_ns_p50")?;
    let mut halves_ns: Vec<f64> =
        watched.series("resolution_ns").iter().map(|point| point[1]).collect();
    halves_ns.resize(times_ns.len(), resolution_ns);
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
        resolution_ns,
        gap_ns: watched.measured("barrier_gap_ns_max"),
        control_ns: value("control_plane_ns"),
        times_ns,
        halves_ns,
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
        let known = |place: usize| self.halves_ns[place].max(self.halves_ns[place + 1]);
        let pause = |place: usize| usual.max(PAUSE_RESOLUTIONS * known(place));
        let mut batches = Vec::new();
        let mut begins = 0;
        for (place, gap) in gaps.iter().enumerate() {
            if *gap > pause(place) {
                batches.push(begins..place + 1);
                begins = place + 1;
            }
        }
        batches.push(begins..self.times_ns.len());
        batches
    }

    /// From when batches began until the next one did.
    pub fn intervals(&self) -> Vec<f64> {
        let batches = self.batches();
        let begins = batches.iter().map(|batch| self.times_ns[self.well_known(batch).start]);
        let begins: Vec<f64> = begins.collect();
        begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// From the first to the last of some rules whose moments are known about as well as the best of them.
    fn well_known(&self, rules: &Range<usize>) -> Range<usize> {
        let least = self.halves_ns[rules.clone()].iter().copied().fold(f64::INFINITY, f64::min);
        let is_known = |place: &usize| self.halves_ns[*place] <= KNOWN_FACTOR * least;
        let first = rules.clone().find(is_known).unwrap_or(rules.start);
        let last = rules.clone().rev().find(is_known).unwrap_or(rules.end - 1);
        first..last + 1
    }

    /// What one more rule took, over how many there were before it.
    pub fn costs(&self, in_batches: bool) -> Vec<Dot> {
        let parts = if in_batches { self.batches() } else { self.parts() };
        let within = if in_batches && self.is_shuffled() { 4.0 } else { 2.0 };
        let span = |first: usize, last: usize| self.times_ns[last] - self.times_ns[first];
        let ends = |first: usize, last: usize| self.halves_ns[first] + self.halves_ns[last];
        let cost = |part: Range<usize>| {
            // Of those that are written in random order half of the others of a batch are below.
            let x = part.start as f64 + part.len() as f64 / within;
            let (first, last) = (part.start, part.end - 1);
            let steps = (last - first) as f64;
            let (by_rank, half) = (span(first, last) / steps, ends(first, last) / steps);
            // Rules that are known badly may seem to act among others: those that act as they were sent are
            // counted by that. Where the two ways do not agree, neither is known better than they differ.
            let known = self.well_known(&part);
            let (first, last) = (known.start, known.end - 1);
            let sent = self.places[last] as f64 - self.places[first] as f64;
            if sent < PART_MIN as f64 {
                return Dot { x, y: by_rank, half: half + MISPLACED * by_rank };
            }
            let by_place = span(first, last) / sent;
            let off = (by_rank - by_place).abs();
            match off <= MISPLACED * by_rank {
                true => Dot { x, y: by_place, half: ends(first, last) / sent },
                false => Dot { x, y: by_rank, half: half + off },
            }
        };
        parts.into_iter().filter(|part| part.len() > PART_MIN).map(cost).collect()
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
