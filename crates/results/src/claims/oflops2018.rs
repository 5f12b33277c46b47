//! The claims of oflops2018, read so that a number can decide.
//!
//! Source: sections IV-A and IV-B of the study. What it says of its hardware switch is put to targets
//! that are such switches or models of one, what it says of Open vSwitch to the others. Invariant: values
//! of modules are believed to within the interval of their repeats and the resolution of each.

use super::case::{Case, Finding, all, within};
use super::unread;
use crate::compare;
use crate::derive::paired;
use crate::number;
use crate::record::{
    Cell, Claim, ClaimVerdict, Metric, Name, Point, Record, Relation, Target, Verdict,
};

/// Claims about rules.
mod rules;

/// The curve of the low rate, in Mbit/s.
const LOW_MBPS: f64 = 100.0;

/// Packets that the study calls small.
const SMALL_BYTES: f64 = 256.0;

/// Two values within this factor of each other count as alike.
const ALIKE_FACTOR: f64 = 1.25;

/// A factor "about" which the study speaks of orders of magnitude: a third to three times.
const ORDER_FACTOR: f64 = 3.0;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    let hard = is_hardware;
    let soft = |target: &Target| !is_hardware(target);
    match (claim.item.as_str(), &claim.relation, claim.unit.as_str()) {
        ("fig6a", Relation::About, _) => case.of_each(hard, Case::flat_at_so_much),
        ("fig6a", Relation::Value, _) => case.of_each(hard, Case::spreads_with_size),
        ("fig6b", Relation::About, _) if claim.value == "10" => case.against_hardware(),
        ("fig6b", Relation::About, _) => case.of_each(soft, Case::queues_at_line_rate),
        ("fig6c", Relation::UpTo, _) => case.of_each(soft, Case::rewrites_within),
        ("fig6c", Relation::About, _) => case.of_each(|_| true, Case::rewrites_for_nothing),
        ("fig7a", Relation::Shape, _) => case.of_each(hard, Case::lags_behind_the_barrier),
        ("fig7b", Relation::About, _) => case.of_each(hard, Case::modifies_faster),
        ("fig7c", Relation::About, _) => case.faster_than_hardware(),
        ("fig7c", Relation::Shape, _) => case.of_each(soft, Case::takes_time_by_the_rule),
        ("fig8a", Relation::About, _) => case.of_each(hard, Case::pauses),
        ("fig8b", Relation::Shape, _) => case.of_each(hard, Case::acts_out_of_order),
        _ => vec![unread(claim)],
    }
}

/// Whether a target is a hardware switch: a model of one.
fn is_hardware(target: &Target) -> bool {
    target.name.contains(":model=")
}

/// What a module named so.
fn named(name: &'static str) -> Metric {
    Metric::Named(Name::of(name))
}

/// Where the true value of a cell lies: its interval, and each value's resolution beyond it. None where
/// it was measured once.
fn range(cell: &Cell) -> Option<(f64, f64)> {
    let each = cell.resolution.unwrap_or(0.0);
    cell.interval.map(|interval| (interval.low - each, interval.high + each))
}

fn once() -> Verdict {
    Verdict::CannotTell("it was measured once".into())
}

fn cannot(reading: String, why: &str) -> Finding {
    Finding { reading, numbers: String::new(), verdict: Verdict::CannotTell(why.into()) }
}

/// The value in the metric's unit for people.
fn shown(cell: &Cell) -> String {
    number::quantity(cell.metric, cell.value)
}

impl<'a> Case<'a> {
    /// A line for each target that the claim speaks of.
    fn of_each(
        &self,
        is_meant: impl Fn(&Target) -> bool,
        judge: fn(&Self, &Target) -> Finding,
    ) -> Vec<ClaimVerdict> {
        let meant = self.measured().filter(|target| is_meant(target));
        let lines: Vec<ClaimVerdict> =
            meant.map(|target| self.line(vec![target.name.clone()], judge(self, target))).collect();
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// A line for each target that is no hardware against each that is.
    fn each_against_hardware(
        &self,
        judge: fn(&Self, &Target, &Target) -> Finding,
    ) -> Vec<ClaimVerdict> {
        let (hard, soft): (Vec<&Target>, Vec<&Target>) =
            self.measured().partition(|target| is_hardware(target));
        let pairs = soft.iter().flat_map(|soft| hard.iter().map(move |hard| (*soft, *hard)));
        let lines: Vec<ClaimVerdict> = pairs
            .map(|(soft, hard)| {
                self.line(vec![soft.name.clone(), hard.name.clone()], judge(self, soft, hard))
            })
            .collect();
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// The cells at the low rate, or at the other.
    fn at_rate(&self, target: &Target, metric: Metric, is_low: bool) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, metric);
        cells.retain(|cell| {
            cell.point.within.as_ref().is_some_and(|rate| (rate.value == LOW_MBPS) == is_low)
        });
        cells
    }

    /// Figure 6a: the median lies about so high, whatever the size.
    fn flat_at_so_much(&self, target: &Target) -> Finding {
        let claimed_ns = self.claimed().unwrap_or(0.0) * 1e3;
        let (least, most) = (claimed_ns / ALIKE_FACTOR, claimed_ns * ALIKE_FACTOR);
        let us = |ns: f64| number::text(ns / 1e3);
        let reading = format!(
            "at 100 Mbit/s the median's interval lies within {} to {} µs at every size, the delay of \
             links and tester included",
            us(least),
            us(most)
        );
        let cells = self.at_rate(target, Metric::LatencyNsP50, true);
        let verdicts = cells.iter().map(|cell| match range(cell) {
            None => once(),
            Some((low, high)) => within(low, high, least, most),
        });
        let verdict = all(verdicts, "no size was measured at 100 Mbit/s");
        let sizes = cells
            .iter()
            .map(|cell| format!("{} at {}", us(cell.value), number::setting(cell.point.value)));
        let numbers = format!("µs: {}", sizes.collect::<Vec<_>>().join(", "));
        Finding { reading, numbers, verdict }
    }

    /// Figure 6a: the 90th percentile at the largest size is higher by so much than at 128 bytes.
    fn spreads_with_size(&self, target: &Target) -> Finding {
        let claimed = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed - 15.0, claimed + 15.0);
        let reading = format!(
            "the 90th percentile at 100 Mbit/s at the largest size against that at 128 bytes: {} to {} % \
             higher",
            number::text(least),
            number::text(most)
        );
        let cells = self.at_rate(target, Metric::LatencyNsP90, true);
        let small = cells.iter().find(|cell| cell.point.value == 128.0);
        let (Some(large), Some(small)) = (cells.last(), small) else {
            return cannot(reading, "128 bytes and more were not measured at 100 Mbit/s");
        };
        let more = |ratio: f64| (ratio - 1.0) * 100.0;
        self.ratio((large, small), reading, (least, most), more, "% higher")
    }

    /// The ratio of two cells' repeats, put through `read`, and whether its interval lies in a band.
    fn ratio(
        &self,
        (of, against): (&Cell, &Cell),
        reading: String,
        (least, most): (f64, f64),
        read: impl Fn(f64) -> f64,
        unit: &str,
    ) -> Finding {
        let Some(found) = compare::pairs(&paired(of, against), self.record.seed) else {
            return cannot(reading, "no pair of repeats has values above zero");
        };
        let numbers = format!("{} {unit}", number::text(read(found.ratio)));
        let verdict = match found.interval {
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some(interval) => within(read(interval.low), read(interval.high), least, most),
        };
        Finding { reading, numbers, verdict }
    }

    /// Figure 6b: software takes about ten times as long as hardware.
    fn against_hardware(&self) -> Vec<ClaimVerdict> {
        self.each_against_hardware(|case, soft, hard| {
            let times = case.claimed().unwrap_or(1.0);
            let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
            let reading = format!(
                "median latencies of the smallest size at 100 Mbit/s: {} to {} times as long",
                number::text(band.0),
                number::text(band.1)
            );
            let first = |target| case.at_rate(target, Metric::LatencyNsP50, true).first().copied();
            let (Some(of), Some(against)) = (first(soft), first(hard)) else {
                return cannot(reading, "100 Mbit/s was not measured on both");
            };
            case.ratio((of, against), reading, band, |ratio| ratio, "times as long")
        })
    }

    /// Figure 6b: at line rate small packets take about a hundred times as long as at the low rate.
    fn queues_at_line_rate(&self, target: &Target) -> Finding {
        let times = self.claimed().unwrap_or(1.0);
        let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
        let reading = format!(
            "for every size below {SMALL_BYTES} bytes the median at the high rate is {} to {} times that \
             at 100 Mbit/s",
            number::text(band.0),
            number::text(band.1)
        );
        let high = self.at_rate(target, Metric::LatencyNsP50, false);
        let low = self.at_rate(target, Metric::LatencyNsP50, true);
        let small = low.iter().filter(|cell| cell.point.value < SMALL_BYTES);
        let both = small.filter_map(|low| {
            let high = high.iter().find(|high| high.point.value == low.point.value)?;
            compare::pairs(&paired(high, low), self.record.seed)
        });
        let found: Vec<_> = both.collect();
        let verdicts = found.iter().map(|found| match found.interval {
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some(interval) => within(interval.low, interval.high, band.0, band.1),
        });
        let verdict = all(verdicts, "no small size was measured at both rates");
        let times = found.iter().map(|found| number::text(found.ratio)).collect::<Vec<_>>();
        Finding { reading, numbers: format!("{} times", times.join(", ")), verdict }
    }

    /// Figure 6c: a rewrite costs at most so much.
    fn rewrites_within(&self, target: &Target) -> Finding {
        let most_us = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "at every size the median with the rewrite less that without lies at or below {most_us} µs"
        );
        self.rewrite(target, reading, |low, high| match () {
            () if high <= most_us * 1e3 => Verdict::Holds,
            () if low > most_us * 1e3 => Verdict::DoesNot,
            () => Verdict::CannotTell("the interval holds the limit".into()),
        })
    }

    /// Figure 6c: a rewrite costs nothing.
    fn rewrites_for_nothing(&self, target: &Target) -> Finding {
        let reading = "at every size the interval of the median with the rewrite less that without holds \
                       0, and reaches no further than a microsecond";
        self.rewrite(target, reading.into(), |low, high| match () {
            () if low > 0.0 || high < 0.0 => Verdict::DoesNot,
            () if low >= -1e3 && high <= 1e3 => Verdict::Holds,
            () => Verdict::CannotTell("the interval reaches over the limit".into()),
        })
    }

    fn rewrite(
        &self,
        target: &Target,
        reading: String,
        judge: impl Fn(f64, f64) -> Verdict,
    ) -> Finding {
        let cells = self.cells(&target.name, named("port_rewrite_extra_ns_p50"));
        let verdicts = cells.iter().map(|cell| match range(cell) {
            None => once(),
            Some((low, high)) => judge(low, high),
        });
        let verdict = all(verdicts, "no size was measured");
        let sizes = cells.iter().map(|cell| {
            format!("{} at {}", number::text(cell.value / 1e3), number::setting(cell.point.value))
        });
        let numbers = format!("µs: {}", sizes.collect::<Vec<_>>().join(", "));
        Finding { reading, numbers, verdict }
    }

    /// The cell of another item of the study at a point.
    fn elsewhere(&self, item: &str, target: &str, metric: Metric, at: &Point) -> Option<&'a Cell> {
        let id = format!("{}/{item}", self.claim.study);
        let cells = self.record.cells.iter();
        cells.into_iter().find(|cell| {
            cell.experiment == id
                && cell.target == target
                && cell.metric == metric
                && cell.point == *at
        })
    }
}
