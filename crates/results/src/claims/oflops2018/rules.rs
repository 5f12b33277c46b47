//! What the study states of changing rules: figures 7 and 8.
//!
//! Source: section IV-B of the study. Each is judged at the largest number of rules that was measured,
//! by values of the module that changed them.

use super::{ALIKE_FACTOR, ORDER_FACTOR, cannot, named, once, range, shown};
use crate::claims::case::{Case, Finding, all, within};
use crate::compare;
use crate::derive::paired;
use crate::number;
use crate::record::{Cell, ClaimVerdict, Target, Verdict};

/// A pause begins or ends near what is claimed if within this share of it.
const NEAR_SHARE: f64 = 0.3;

/// Kendall's tau whose size is below this is of an order that looks random.
const RANDOM_TAU: f64 = 0.5;

impl<'a> Case<'a> {
    /// The value at the largest number of rules.
    fn at_most_rules(&self, target: &Target, name: &'static str) -> Option<&'a Cell> {
        self.cells(&target.name, named(name)).last().copied()
    }

    /// Figure 7a: rules act later than the barrier's answer says.
    pub(super) fn lags_behind_the_barrier(&self, target: &Target) -> Finding {
        let reading = "at the largest number of rules the last of them acts after the barrier's answer was \
                       read, beyond what probes can tell";
        let Some(gap) = self.at_most_rules(target, "barrier_gap_ns_max") else {
            return cannot(reading.into(), "not every rule was seen to act");
        };
        let verdict = match range(gap) {
            None => once(),
            Some((low, _)) if low > 0.0 => Verdict::Holds,
            Some((_, high)) if high <= 0.0 => Verdict::DoesNot,
            Some(_) => Verdict::CannotTell("the interval holds zero".into()),
        };
        let rules = number::setting(gap.point.value);
        let numbers = format!("{} after it, with {rules} rules", shown(gap));
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Figure 7b: modifying is faster than inserting by about so much.
    pub(super) fn modifies_faster(&self, target: &Target) -> Finding {
        let claimed = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed - 15.0, claimed + 15.0);
        let reading = format!(
            "at the largest number of rules, all of them act {} to {} % sooner when they are modified \
             (figure 7a) than when they are inserted by rising priority",
            number::text(least),
            number::text(most)
        );
        let metric = named("data_plane_ns");
        let inserted = self.at_most_rules(target, "data_plane_ns");
        let both = inserted.and_then(|inserted| {
            let modified = self.elsewhere("fig7a", &target.name, metric, &inserted.point)?;
            Some((modified, inserted))
        });
        let Some((modified, inserted)) = both else {
            return cannot(reading, "figures 7a and 7b were not both measured to the last rule");
        };
        let sooner = |ratio: f64| (1.0 - ratio) * 100.0;
        let found = compare::pairs(&paired(modified, inserted), self.record.seed);
        let Some(found) = found else { return cannot(reading, "no pair of repeats") };
        let verdict = match found.interval {
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some(interval) => within(sooner(interval.high), sooner(interval.low), least, most),
        };
        let numbers = format!(
            "{} % sooner: {} against {}",
            number::text(sooner(found.ratio)),
            shown(modified),
            shown(inserted)
        );
        Finding { reading, numbers, verdict }
    }

    /// Figure 7c: software inserts about so many times as fast as hardware.
    pub(super) fn faster_than_hardware(&self) -> Vec<ClaimVerdict> {
        self.each_against_hardware(|case, soft, hard| {
            let times = case.claimed().unwrap_or(1.0);
            let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
            let reading = format!(
                "at the largest number of rules hardware takes {} to {} times as long until all of them act",
                number::text(band.0),
                number::text(band.1)
            );
            let of = |target| case.at_most_rules(target, "data_plane_ns");
            match (of(hard), of(soft)) {
                (Some(slow), Some(fast)) if slow.point == fast.point => {
                    case.ratio((slow, fast), reading, band, |ratio| ratio, "times as long")
                }
                _ => cannot(reading, "the same number of rules was not seen to act on both"),
            }
        })
    }

    /// Figure 7c: the time is in proportion to the rules, and the same for modifying.
    pub(super) fn takes_time_by_the_rule(&self, target: &Target) -> Finding {
        let reading = format!(
            "from the second largest number of rules to the largest the time grows as they do, to within a \
             factor of {ALIKE_FACTOR} and what probes can tell, and modifying (figure 7a) takes as long as \
             inserting, likewise"
        );
        let metric = named("data_plane_ns");
        let cells = self.cells(&target.name, metric);
        let [.., less, more] = &cells[..] else {
            return cannot(reading, "fewer than two numbers of rules were measured");
        };
        let growth = more.point.value / less.point.value;
        let linear = alike(more, less, growth);
        let modified = self.elsewhere("fig7a", &target.name, metric, &more.point);
        let same = modified.map(|modified| alike(modified, more, 1.0));
        let verdict = all(std::iter::once(linear).chain(same), "");
        let mut numbers = format!(
            "{} for {} rules, {} for {}",
            shown(less),
            number::setting(less.point.value),
            shown(more),
            number::setting(more.point.value)
        );
        if let Some(modified) = modified {
            numbers += &format!(", {} to modify them", shown(modified));
        }
        Finding { reading, numbers, verdict }
    }

    /// Figure 8a: rules come to act in batches with a pause near so much.
    pub(super) fn pauses(&self, target: &Target) -> Finding {
        let claimed_ms = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "the longest time in which no rule comes to act is longer than probes can tell, and begins or \
             ends within {} % of {claimed_ms} ms after the update's first byte",
            number::text(NEAR_SHARE * 100.0)
        );
        let of = |name| self.at_most_rules(target, name);
        let (Some(pause), Some(begins)) = (of("pause_ns_max"), of("pause_begins_ns")) else {
            return cannot(reading, "too few rules were seen to act");
        };
        let ends_ns = begins.value + pause.value;
        let is_near = |ns: f64| (ns / 1e6 - claimed_ms).abs() <= NEAR_SHARE * claimed_ms;
        let is_pause = pause.resolution.is_none_or(|each| pause.value > 2.0 * each);
        let verdict = match pause.n {
            1 => once(),
            _ if is_pause && (is_near(begins.value) || is_near(ends_ns)) => Verdict::Holds,
            _ => Verdict::DoesNot,
        };
        let numbers =
            format!("a pause of {} from {} ms on", shown(pause), number::text(begins.value / 1e6));
        Finding { reading, numbers, verdict }
    }

    /// Figure 8b: rules come to act in an order that looks random.
    pub(super) fn acts_out_of_order(&self, target: &Target) -> Finding {
        let reading = format!(
            "Kendall's tau between the order sent and the order of acting lies between −{RANDOM_TAU} and \
             {RANDOM_TAU}, over pairs whose moments can be told apart"
        );
        let Some(tau) = self.at_most_rules(target, "order_tau_index") else {
            return cannot(reading, "no two rules' moments can be told apart");
        };
        let verdict = match range(tau) {
            None => once(),
            Some((low, high)) => within(low, high, -RANDOM_TAU, RANDOM_TAU),
        };
        Finding { reading, numbers: format!("tau {}", number::text(tau.value)), verdict }
    }
}

/// Whether the first is `factor` times the second, each as well as it is known.
fn alike(first: &Cell, second: &Cell, factor: f64) -> Verdict {
    let (Some((low, high)), Some((from, to))) = (range(first), range(second)) else {
        return once();
    };
    // Where probes are too far apart to tell, the ends say so by lying far apart.
    let (least, most) = (low / (to * factor), high / (from.max(f64::MIN_POSITIVE) * factor));
    within(least, most, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
}
