//! Claims about changing rules: figures 7 and 8.
//!
//! Source: section IV-B of the study. Each claim is about the largest number of rules that was measured.

use super::{ALIKE_FACTOR, Case, Evaluation, ORDER_FACTOR, named, nothing, percent, shown};
use crate::claims::case::{is_within, verdict};
use crate::claims::verdict::{is_smaller, undecided};
use crate::finding::share_in_words;
use record::number;
use record::{Cell, Target, Verdict};
use stats::conclude::{Conclusion, Estimate, acknowledges_early};

/// A pause begins or ends near what is claimed if within this share of it.
const NEAR_SHARE: f64 = 0.3;

/// Kendall's tau whose size is below this is of an order that looks random.
const RANDOM_TAU: f64 = 0.5;

/// "A few seconds".
const FEW_SECONDS: (f64, f64) = (1.0, 10.0);

/// A pause is one if it is so many times as long as the time between rules otherwise.
const PAUSE_FACTOR: f64 = 10.0;

/// The experiment in which rules are modified.
const MODIFIED: &str = "fig7a";

impl<'a> Case<'a> {
    /// The value at the largest number of rules.
    fn at_most_rules(&self, target: &Target, name: &'static str) -> Option<&'a Cell> {
        self.cells(&target.name, named(name)).last().copied()
    }

    /// The value of modifications at the point of another value.
    fn modified(&self, target: &Target, name: &'static str, at: &Cell) -> Option<&'a Cell> {
        self.elsewhere(MODIFIED, &target.name, named(name), &at.point)
    }

    /// Figures 7a and 7b: the barrier reply comes before the rules act.
    pub(super) fn lags_behind_the_barrier(&self, target: &Target) -> Evaluation {
        let reading = "at the largest number of rules, probes prove rules premature in two of three repeats or more, or the \
                       last rule acts after the barrier reply, beyond the resolution of the probes";
        let of = |name| self.at_most_rules(target, name);
        let premature = of("rules_premature_ratio");
        let gap = of("barrier_gap_ns_max");
        let gap = gap.filter(|gap| premature.is_none_or(|it| it.point == gap.point));
        if premature.or(gap).is_none() {
            return nothing(reading, "no barrier request was answered");
        }
        let found = acknowledges_early(premature, gap);
        Evaluation {
            reading: reading.into(),
            numbers: early_in_words(premature, gap),
            verdict: verdict(found, |it| it == Conclusion::Greater),
        }
    }

    /// Figure 7a: they do so for a few seconds.
    pub(super) fn lags_for_seconds(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "at the largest number of rules the last of them acts {} to {} s after the barrier's reply",
            FEW_SECONDS.0, FEW_SECONDS.1
        );
        let Some(gap) = self.at_most_rules(target, "barrier_gap_ns_max") else {
            return nothing(reading, "not every rule acted in the trial");
        };
        let seconds = Estimate::of(gap).map(|ns| ns / 1e9);
        let verdict = is_within(&seconds, FEW_SECONDS.0, FEW_SECONDS.1);
        let premature = self.at_most_rules(target, "rules_premature_ratio");
        Evaluation { reading, numbers: early_in_words(premature, Some(gap)), verdict }
    }

    /// Figure 7b: modifying is faster than inserting by about so much.
    pub(super) fn modifies_faster(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed - 15.0, claimed + 15.0);
        let reading = format!(
            "at the largest number of rules, all of them act {} to {} % sooner when they are modified (figure 7a) than \
             when they are inserted with increasing priority",
            number::text(least),
            number::text(most)
        );
        let inserted = self.at_most_rules(target, "data_plane_ns");
        let both = inserted.and_then(|it| Some((self.modified(target, "data_plane_ns", it)?, it)));
        let Some((modified, inserted)) = both else {
            return nothing(reading, "figures 7a and 7b were not both measured to the last rule");
        };
        let sooner = Estimate::ratio(modified, inserted).map(|ratio| (1.0 - ratio) * 100.0);
        let sooner_or_later = percent(sooner.value, ["sooner", "later"]);
        // The ratio is of pairs of repeats, so it differs from the ratio of the medians.
        let numbers = format!(
            "{sooner_or_later} in pairs of repeats; medians {} and {}",
            shown(modified),
            shown(inserted)
        );
        Evaluation { reading, numbers, verdict: is_within(&sooner, least, most) }
    }

    /// Figure 7b: rules of random priority act sooner than those of increasing priority.
    pub(super) fn random_is_faster(&self, target: &Target) -> Evaluation {
        let reading = "at the largest number of rules, all of them act sooner when their priorities are random than when \
                       they increase, by more than 1 %";
        let both = self
            .at_most_rules(target, "random_data_plane_ns")
            .zip(self.at_most_rules(target, "data_plane_ns"))
            .filter(|(random, increasing)| random.point == increasing.point);
        let Some((random, increasing)) = both else {
            return nothing(reading, "both orders of priority were not measured to the last rule");
        };
        let ratio = Estimate::ratio(random, increasing);
        let numbers = format!("{} against {}", shown(random), shown(increasing));
        Evaluation { reading: reading.into(), numbers, verdict: is_smaller(&ratio) }
    }

    /// Figure 7c: software inserts about so many times as fast as hardware.
    pub(super) fn faster_than_hardware(&self, soft: &Target, hard: &Target) -> Evaluation {
        let times = self.claimed().unwrap_or(1.0);
        let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
        let reading = format!(
            "at the largest number of rules hardware takes {} to {} times as long until all of them act",
            number::text(band.0),
            number::text(band.1)
        );
        let of = |target| self.at_most_rules(target, "data_plane_ns");
        match (of(hard), of(soft)) {
            (Some(slow), Some(fast)) if slow.point == fast.point => {
                self.ratio((slow, fast), reading, band, |ratio| ratio, "times as long")
            }
            _ => nothing(reading, "the same number of rules did not act on both"),
        }
    }

    /// Figure 7c: the time is proportional to the number of rules.
    pub(super) fn takes_time_by_the_rule(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "from the second largest number of rules to the largest the time grows by the same factor, within a factor \
             of {ALIKE_FACTOR}; condition: times above the resolution of the probes"
        );
        let cells = self.cells(&target.name, named("data_plane_ns"));
        let [.., less, more] = &cells[..] else {
            return nothing(reading, "fewer than two numbers of rules were measured");
        };
        let growth = more.point.value / less.point.value;
        let ratio = Estimate::ratio(more, less).map(|ratio| ratio / growth);
        let numbers = format!(
            "{} for {} rules, {} for {}",
            shown(less),
            number::setting(less.point.value),
            shown(more),
            number::setting(more.point.value)
        );
        Evaluation {
            reading,
            numbers,
            verdict: is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR),
        }
    }

    /// Figure 7c: modifying takes as long as inserting.
    pub(super) fn modifies_as_it_inserts(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "at the largest number of rules modifying (figure 7a) over inserting is {} to {ALIKE_FACTOR}; condition: times \
             above the resolution of the probes",
            number::text(1.0 / ALIKE_FACTOR)
        );
        let inserted = self.at_most_rules(target, "data_plane_ns");
        let both = inserted.and_then(|it| Some((self.modified(target, "data_plane_ns", it)?, it)));
        let Some((modified, inserted)) = both else {
            return nothing(reading, "figures 7a and 7c were not both measured to the last rule");
        };
        let ratio = Estimate::ratio(modified, inserted);
        let numbers = format!("{} to modify, {} to insert", shown(modified), shown(inserted));
        Evaluation {
            reading,
            numbers,
            verdict: is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR),
        }
    }

    /// Figure 8a: rules come to act in batches with a pause near so much.
    pub(super) fn pauses(&self, target: &Target) -> Evaluation {
        let claimed_ms = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "the longest time in which no rule comes to act is {PAUSE_FACTOR} times the average time for a rule or more, \
             and begins or ends within {} % of {claimed_ms} ms after the update's first byte",
            number::text(NEAR_SHARE * 100.0)
        );
        let of = |name| self.at_most_rules(target, name);
        let found = of("pause_ns_max").zip(of("pause_begins_ns")).zip(of("data_plane_ns"));
        let Some(((pause, begins), whole)) = found else {
            return nothing(reading, "not every rule acted in the trial");
        };
        let (near, far) =
            (claimed_ms * 1e6 * (1.0 - NEAR_SHARE), claimed_ms * 1e6 * (1.0 + NEAR_SHARE));
        let ends = sum(begins, pause);
        let begins_near = is_within(&Estimate::of(begins), near, far);
        let ends_near = is_within(&Estimate::of(&ends), near, far);
        let verdict = match is_pause(pause, whole) {
            Verdict::Holds => either(begins_near, ends_near),
            other => other,
        };
        Evaluation { reading, numbers: pause_in_words(pause, begins), verdict }
    }

    /// Figure 8a: modifications come to act in batches too.
    pub(super) fn modifies_in_batches(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "when rules are modified (figure 7a), the longest time in which none comes to act is {PAUSE_FACTOR} times the \
             average time for a rule or more"
        );
        let at = self.at_most_rules(target, "data_plane_ns");
        let of = |name| self.modified(target, name, at?);
        let found = of("pause_ns_max").zip(of("pause_begins_ns")).zip(of("data_plane_ns"));
        let Some(((pause, begins), whole)) = found else {
            return nothing(reading, "as many rules were not modified (run figure 7a too)");
        };
        let verdict = is_pause(pause, whole);
        Evaluation { reading, numbers: pause_in_words(pause, begins), verdict }
    }

    /// Figure 8b: rules come to act in an order that looks random.
    pub(super) fn acts_out_of_order(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "Kendall's tau between the order sent and the order of acting is between −{RANDOM_TAU} and {RANDOM_TAU}, over \
             pairs whose order the probes resolve"
        );
        let Some(tau) = self.at_most_rules(target, "order_tau_index") else {
            return nothing(reading, "the probes resolve too few pairs of rules");
        };
        let verdict = is_within(&Estimate::of(tau), -RANDOM_TAU, RANDOM_TAU);
        Evaluation { reading, numbers: format!("tau {}", number::text(tau.value)), verdict }
    }
}

/// By how much the last rule acts after the barrier reply, and how many rules are premature, in words.
fn early_in_words(premature: Option<&Cell>, gap: Option<&Cell>) -> String {
    let gap = gap.map(|gap| {
        let rules = number::setting(gap.point.value);
        let (time, side) = match gap.value < 0.0 && gap.bound.is_none() {
            true => (number::quantity(gap.metric, -gap.value), "before"),
            false => (number::quantity_of_cell(gap), "after"),
        };
        format!("the last of {rules} rules acts {time} {side} the reply")
    });
    let share = premature.map(|it| {
        let rules = number::setting(it.point.value);
        format!("{} of {rules} rules premature", share_in_words(it))
    });
    gap.into_iter().chain(share).collect::<Vec<_>>().join(", ")
}

/// Whether the longest pause is much longer than the average time for a rule.
fn is_pause(pause: &Cell, whole: &Cell) -> Verdict {
    let rules = pause.point.value.max(1.0);
    let times = Estimate::ratio(pause, whole).map(|share| share * rules);
    is_within(&times, PAUSE_FACTOR, f64::INFINITY)
}

/// The sum of two values, repeat by repeat, with both their resolutions.
fn sum(first: &Cell, second: &Cell) -> Cell {
    let pairs = stats::series::paired(first, second);
    let samples: Vec<f64> = pairs.iter().map(|(one, other)| one + other).collect();
    let resolution = match (first.resolution, second.resolution) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    };
    let repeats = first.repeats.iter().filter(|it| second.repeats.contains(it)).copied().collect();
    let value = first.value + second.value;
    Cell { samples, repeats, resolution, value, ..first.clone() }
}

/// Whether one of two conditions is met.
fn either(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Holds, _) | (_, Verdict::Holds) => Verdict::Holds,
        (Verdict::Undecided(why), _) | (_, Verdict::Undecided(why)) => undecided(why),
        _ => Verdict::Contradicted,
    }
}

fn pause_in_words(pause: &Cell, begins: &Cell) -> String {
    format!("a pause of {} from {} on", shown(pause), shown(begins))
}
