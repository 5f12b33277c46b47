//! Claims about forwarding: figures 6a to 6c and table I.
//!
//! Source: section IV-A of the study. It has a low rate of 100 Mbit/s and a high one that fills the link. Invariant: what it
//! states of the line rate is undecided where the tester did not offer it.

use super::{ALIKE_FACTOR, Case, Evaluation, ORDER_FACTOR, named, nothing, percent};
use crate::claims::case::{all, every, is_above, is_within};
use crate::claims::verdict::{in_regime, is_greater, is_smaller};
use record::links;
use record::number;
use record::target_name::label;
use record::{Cell, Metric, Target, Verdict};
use stats::conclude::Estimate;

/// The curve of the low rate, in Mbit/s.
const LOW_MBPS: f64 = 100.0;

/// Packets that the study calls small are smaller than this; from here on it calls them large.
const SMALL_BYTES: f64 = 256.0;

/// Preamble and interframe gap.
const WIRE_OVERHEAD_BYTES: f64 = 20.0;

/// Share of the line rate from which it counts as offered.
const LINE_SHARE: f64 = 0.99;

/// A loss above this is significant: table I has 22 % and more.
const SIGNIFICANT_LOSS: f64 = 0.1;

/// Regime of latencies at the low rate, in words.
const CARRIED: &str =
    "condition: the tester offers that rate and the target loses at most 1 % of it";

/// At the low rate, a target that loses no more than this forwards the rate.
const FEW_LOST: f64 = 0.01;

/// A loss below this is none.
const NO_LOSS: f64 = 1e-4;

impl<'a> Case<'a> {
    /// The cells at the low rate, or at the high one.
    fn at_rate(&self, target: &Target, metric: Metric, is_low: bool) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, metric);
        cells.retain(|cell| {
            cell.point.within.as_ref().is_some_and(|rate| (rate.value == LOW_MBPS) == is_low)
        });
        cells
    }

    /// Regime: the tester offered the rate of the cell's curve.
    fn rate_offered(&self, cell: &Cell) -> Result<(), String> {
        let rate_mbps = cell.point.within.as_ref().map_or(0.0, |rate| rate.value);
        let pps = rate_mbps * 1e6 / (8.0 * (cell.point.value + WIRE_OVERHEAD_BYTES));
        let offered = self.cells(&cell.target, Metric::RatePpsOffered);
        let offered = offered.into_iter().find(|it| it.point == cell.point);
        let share = offered.map_or(0.0, |it| it.value / pps);
        match share >= LINE_SHARE {
            true => Ok(()),
            false => Err(format!(
                "outside the condition of the claim: the tester offered {} % of {} Mbit/s at {} bytes",
                number::text(share * 100.0),
                number::text(rate_mbps),
                number::setting(cell.point.value)
            )),
        }
    }

    /// Regime of latencies at the low rate: the tester offers it, and the target forwards it.
    fn rate_carried(&self, cell: &Cell) -> Result<(), String> {
        self.rate_offered(cell)?;
        let losses = self.cells(&cell.target, Metric::LossRatio);
        let loss = losses.into_iter().find(|it| it.point == cell.point).map_or(0.0, |it| it.value);
        match loss <= FEW_LOST {
            true => Ok(()),
            false => Err(format!(
                "outside the condition of the claim: {} lost {} % of the frames at {} bytes",
                label(&cell.target),
                number::text(loss * 100.0),
                number::setting(cell.point.value)
            )),
        }
    }

    /// Regime of the latency of hardware: a model in real time forwards in software.
    fn hardware_forwards(&self, target: &Target) -> Result<(), String> {
        match target.model().is_some() && !self.record.environment.simulated {
            true => Err(format!(
                "{} forwards in software, whose latency is not that of the hardware",
                label(&target.name)
            )),
            false => Ok(()),
        }
    }

    /// Regime of a latency of so much: the tester and its links take much less by themselves.
    fn tester_is_fast(&self, target: &Target, claimed_ns: f64) -> Result<(), String> {
        let latency =
            links::calibration(self.record, &target.name).and_then(|it| it.latency.as_ref());
        let own_ns = latency.and_then(|it| it.ns_p50).unwrap_or(0) as f64;
        match own_ns <= claimed_ns * (ALIKE_FACTOR - 1.0) {
            true => Ok(()),
            false => Err(format!(
                "outside the condition of the claim: the tester and its links take {} µs by themselves",
                number::text(own_ns / 1e3)
            )),
        }
    }

    /// Figure 6a: the median is about so high.
    pub(super) fn lies_about(&self, target: &Target) -> Evaluation {
        let claimed_ns = self.claimed().unwrap_or(0.0) * 1e3;
        let (least, most) = (claimed_ns / ALIKE_FACTOR, claimed_ns * ALIKE_FACTOR);
        let reading = format!(
            "at 100 Mbit/s the median is {} to {} µs at every size, the delay of links and tester included; {CARRIED}",
            number::text(least / 1e3),
            number::text(most / 1e3)
        );
        let cells = self.at_rate(target, Metric::LatencyNsP50, true);
        let regime = |cell: &Cell| {
            self.hardware_forwards(target)?;
            self.tester_is_fast(target, claimed_ns)?;
            self.rate_carried(cell)
        };
        let judge = |cell: &&Cell, sizes: usize| {
            in_regime(regime(cell), || is_within(&Estimate::of(cell).among(sizes), least, most))
        };
        let verdict = every(&cells, judge, "no size was measured at 100 Mbit/s");
        Evaluation { reading, numbers: microseconds(&cells), verdict }
    }

    /// Figure 6a: the packet size has a negligible impact on the median.
    pub(super) fn same_for_all_sizes(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "at 100 Mbit/s the median at every size over that at the smallest is {} to {ALIKE_FACTOR}; {CARRIED}",
            number::text(1.0 / ALIKE_FACTOR)
        );
        let cells = self.at_rate(target, Metric::LatencyNsP50, true);
        let regime = |cell: &Cell| {
            self.hardware_forwards(target)?;
            self.rate_carried(cells[0])?;
            self.rate_carried(cell)
        };
        let judge = |cell: &&Cell, sizes: usize| {
            let ratio = Estimate::ratio(cell, cells[0]).among(sizes);
            in_regime(regime(cell), || is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR))
        };
        let others = cells.get(1..).unwrap_or_default();
        let verdict = every(others, judge, "two sizes were not measured at 100 Mbit/s");
        Evaluation { reading, numbers: microseconds(&cells), verdict }
    }

    /// Figure 6a: the 90th percentile at the largest size is higher by so much than at 128 bytes.
    pub(super) fn spreads_with_size(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let (least, most) = (claimed - 15.0, claimed + 15.0);
        let reading = format!(
            "the 90th percentile at 100 Mbit/s at the largest size is {} to {} % above that at 128 bytes; {CARRIED}",
            number::text(least),
            number::text(most)
        );
        let cells = self.at_rate(target, Metric::LatencyNsP90, true);
        let small = cells.iter().find(|cell| cell.point.value == 128.0);
        match (cells.last(), small) {
            (Some(large), Some(small)) if large.point.value > small.point.value => {
                let more = |ratio: f64| (ratio - 1.0) * 100.0;
                let mut found = self.ratio((large, small), reading, (least, most), more, "");
                found.numbers =
                    percent(Estimate::ratio(large, small).map(more).value, ["higher", "lower"]);
                found.within(self.hardware_forwards(target).and_then(|()| {
                    self.rate_carried(small)?;
                    self.rate_carried(large)
                }))
            }
            _ => nothing(reading, "128 bytes and more were not measured at 100 Mbit/s"),
        }
    }

    /// Figure 6b: software takes about ten times as long as hardware.
    pub(super) fn slower_than_hardware(&self, soft: &Target, hard: &Target) -> Evaluation {
        let times = self.claimed().unwrap_or(1.0);
        let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
        let reading = format!(
            "the median latency of the smallest size at 100 Mbit/s is {} to {} times as long; {CARRIED}",
            number::text(band.0),
            number::text(band.1)
        );
        let first = |target| self.at_rate(target, Metric::LatencyNsP50, true).first().copied();
        match (first(soft), first(hard)) {
            (Some(of), Some(against)) if of.point == against.point => {
                let found =
                    self.ratio((of, against), reading, band, |ratio| ratio, "times as long");
                found.within(self.hardware_forwards(hard).and_then(|()| {
                    self.rate_carried(of)?;
                    self.rate_carried(against)
                }))
            }
            _ => nothing(reading, "100 Mbit/s was not measured on both"),
        }
    }

    /// Figure 6b: the first target's latency varies more than the second's.
    pub(super) fn more_variable(&self, of: &Target, against: &Target) -> Evaluation {
        let reading = format!(
            "at 100 Mbit/s the 90th percentile less the median is larger at every size, by more than 1 %; {CARRIED}"
        );
        let spread = |target: &Target| -> Vec<Cell> {
            let medians = self.at_rate(target, Metric::LatencyNsP50, true);
            let high = self.at_rate(target, Metric::LatencyNsP90, true);
            high.into_iter().filter_map(|high| above_median(high, &medians)).collect()
        };
        let (these, others) = (spread(of), spread(against));
        let ratios = these.iter().filter_map(|cell| {
            let other = others.iter().find(|other| other.point == cell.point)?;
            let regime = self.rate_carried(cell).and_then(|()| self.rate_carried(other));
            Some((number::setting(cell.point.value), Estimate::ratio(cell, other), regime))
        });
        by_size(reading, ratios.collect(), is_greater)
    }

    /// Figure 6b: at line rate small packets take about a hundred times as long as at the low rate.
    pub(super) fn queues_at_line_rate(&self, target: &Target) -> Evaluation {
        let times = self.claimed().unwrap_or(1.0);
        let band = (times / ORDER_FACTOR, times * ORDER_FACTOR);
        let reading = format!(
            "for every size below {SMALL_BYTES} bytes the median at the high rate is {} to {} times that at 100 Mbit/s; \
             condition: the tester offers both rates, and the target loses at most 1 % at 100 Mbit/s",
            number::text(band.0),
            number::text(band.1)
        );
        let high = self.at_rate(target, Metric::LatencyNsP50, false);
        let low = self.at_rate(target, Metric::LatencyNsP50, true);
        let both: Vec<(&Cell, &Cell)> = (low.iter().filter(|cell| cell.point.value < SMALL_BYTES))
            .filter_map(|low| {
                Some((*high.iter().find(|high| high.point.value == low.point.value)?, *low))
            })
            .collect();
        let ratios = both.iter().map(|(high, low)| {
            let regime = self.rate_offered(high).and_then(|()| self.rate_carried(low));
            (number::setting(high.point.value), Estimate::ratio(high, low), regime)
        });
        let judge = |ratio: &Estimate| is_within(ratio, band.0, band.1);
        by_size(reading, ratios.collect(), judge)
    }

    /// Figure 6b: for large packets at line rate the first target is faster than the second.
    pub(super) fn scales_better(&self, of: &Target, against: &Target) -> Evaluation {
        let reading = format!(
            "at the high rate the median over that of the other is below 1 at every size from {SMALL_BYTES} bytes on, \
             by more than 1 %; condition: the tester offers the line rate to both"
        );
        let others = self.at_rate(against, Metric::LatencyNsP50, false);
        let mut shown = Vec::new();
        let mut both = Vec::new();
        for cell in self.at_rate(of, Metric::LatencyNsP50, false) {
            let other = others.iter().find(|other| other.point == cell.point);
            let Some(other) = other.filter(|_| cell.point.value >= SMALL_BYTES) else { continue };
            let ratio = Estimate::ratio(cell, other);
            shown.push(format!(
                "{} at {}",
                number::text(ratio.value),
                number::setting(cell.point.value)
            ));
            let regime = self.rate_offered(cell).and_then(|()| self.rate_offered(other));
            both.push((ratio, regime));
        }
        let judge = |(ratio, regime): &(Estimate, Result<(), String>), sizes: usize| {
            in_regime(regime.clone(), || is_smaller(&ratio.among(sizes)))
        };
        let verdict = every(&both, judge, "no large size was measured at the high rate on both");
        Evaluation { reading, numbers: shown.join(", "), verdict }
    }

    /// Figure 6c: a rewrite costs at most so much.
    pub(super) fn rewrites_within(&self, target: &Target) -> Evaluation {
        let most_us = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "at every size the median with the rewrite is at most {most_us} µs above that without"
        );
        self.rewrite(target, reading, |more| is_within(more, f64::NEG_INFINITY, most_us * 1e3))
    }

    /// Figure 6c: a rewrite costs nothing.
    pub(super) fn rewrites_for_nothing(&self, target: &Target) -> Evaluation {
        let reading =
            "at every size the median with the rewrite is that without, within a microsecond";
        let found = self.rewrite(target, reading.into(), |more| is_within(more, -1e3, 1e3));
        found.within(self.hardware_forwards(target))
    }

    /// What a rewrite costs at each size.
    fn extra(&self, target: &Target) -> Vec<&'a Cell> {
        self.cells(&target.name, named("port_rewrite_extra_ns_p50"))
    }

    fn rewrite(
        &self,
        target: &Target,
        reading: String,
        judge: impl Fn(&Estimate) -> Verdict,
    ) -> Evaluation {
        let cells = self.extra(target);
        let judge = |cell: &&Cell, sizes: usize| judge(&Estimate::of(cell).among(sizes));
        let verdict = every(&cells, judge, "no size was measured");
        Evaluation { reading, numbers: microseconds(&cells), verdict }
    }

    /// Figure 6c: a rewrite costs small packets more.
    pub(super) fn rewrites_cost_small_packets(&self, target: &Target) -> Evaluation {
        let reading = "the rewrite costs more at the smallest size than at the largest, beyond the resolution of both";
        let cells = self.extra(target);
        let [small, .., large] = &cells[..] else {
            return nothing(reading, "two sizes were not measured");
        };
        let verdict = is_above(&Estimate::difference(small, large), 0.0);
        Evaluation { reading: reading.into(), numbers: microseconds(&cells), verdict }
    }

    /// The losses at the line rate at these sizes, and a verdict on each where that rate was offered.
    fn losses(
        &self,
        target: &Target,
        reading: String,
        is_meant: impl Fn(f64) -> bool,
        judge: impl Fn(&Estimate) -> Verdict,
    ) -> Evaluation {
        let mut cells = self.at_rate(target, Metric::LossRatio, false);
        cells.retain(|cell| is_meant(cell.point.value));
        let judge = |cell: &&Cell, sizes: usize| {
            in_regime(self.rate_offered(cell), || judge(&Estimate::of(cell).among(sizes)))
        };
        let verdict = every(&cells, judge, "no such size was measured at the high rate");
        let each = cells.iter().map(|cell| {
            let percent = number::text(cell.value * 100.0);
            format!("{percent} % at {}", number::setting(cell.point.value))
        });
        Evaluation { reading, numbers: each.collect::<Vec<_>>().join(", "), verdict }
    }

    /// Table I: small packets are lost at line rate.
    pub(super) fn loses_small_packets(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "more than {} % is lost at every size up to {SMALL_BYTES} bytes; condition: the tester offers the line rate",
            number::text(SIGNIFICANT_LOSS * 100.0)
        );
        let is_small = |bytes| bytes <= SMALL_BYTES;
        self.losses(target, reading, is_small, |loss| is_above(loss, SIGNIFICANT_LOSS))
    }

    /// Table I: nothing is lost at line rate but of the smallest packets.
    pub(super) fn loses_nothing(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "less than {} % is lost at every size above 128 bytes; condition: the tester offers the line rate",
            number::text(NO_LOSS * 100.0)
        );
        self.losses(target, reading, |bytes| bytes > 128.0, |loss| is_within(loss, 0.0, NO_LOSS))
    }

    /// Table I: one core carries the line rate.
    pub(super) fn needs_one_core(&self, target: &Target) -> Evaluation {
        let most = self.claimed().unwrap_or(1.0);
        let reading = format!(
            "the processor load is at most {most} core, within 5 %, and less than {} % is lost at every size above 128 \
             bytes; condition: the tester offers the line rate",
            number::text(NO_LOSS * 100.0)
        );
        let mut loads = self.at_rate(target, Metric::CpuLoadRatio, false);
        loads.retain(|cell| cell.point.value > 128.0);
        let mut found = self.losses(
            target,
            reading,
            |bytes| bytes > 128.0,
            |loss| is_within(loss, 0.0, NO_LOSS),
        );
        let judge = |cell: &&Cell, sizes: usize| {
            is_within(&Estimate::of(cell).among(sizes), 0.0, most * 1.05)
        };
        let load = every(&loads, judge, "the processor load was not measured");
        found.verdict = all([load, found.verdict].into_iter(), "");
        found.numbers = cores(&loads);
        found
    }

    /// Table I: small packets need more of the processor on the first target than on the second.
    pub(super) fn needs_more_cores(&self, of: &Target, against: &Target) -> Evaluation {
        let reading = "the processor load at the smallest size is higher, by more than 1 %; condition: the tester offers the \
                       line rate to both";
        let first = |target| self.at_rate(target, Metric::CpuLoadRatio, false).first().copied();
        let (Some(cell), Some(other)) = (first(of), first(against)) else {
            return nothing(reading, "the processor load was not measured on both");
        };
        if cell.point != other.point {
            return nothing(reading, "no size is common to both");
        }
        let regime = self.rate_offered(cell).and_then(|()| self.rate_offered(other));
        let verdict = in_regime(regime, || is_greater(&Estimate::ratio(cell, other)));
        let numbers = format!("{} against {}", cores(&[cell]), cores(&[other]));
        Evaluation { reading: reading.into(), numbers, verdict }
    }
}

/// A 90th percentile less the median at the same point, repeat by repeat.
fn above_median(high: &Cell, medians: &[&Cell]) -> Option<Cell> {
    let median = medians.iter().find(|median| median.point == high.point)?;
    let pairs = stats::series::paired(high, median);
    let samples: Vec<f64> = pairs.iter().map(|(high, median)| high - median).collect();
    let is_whole = samples.len() == high.samples.len();
    let value = stats::series::mean(&samples)?;
    is_whole.then(|| Cell { samples, value, ..high.clone() })
}

/// Ratios by size, each of which has to satisfy a condition.
fn by_size(
    reading: String,
    ratios: Vec<(String, Estimate, Result<(), String>)>,
    judge: impl Fn(&Estimate) -> Verdict,
) -> Evaluation {
    let each =
        ratios.iter().map(|(size, ratio, _)| format!("{} at {size}", number::text(ratio.value)));
    let numbers = match ratios.is_empty() {
        true => String::new(),
        false => format!("times: {}", each.collect::<Vec<_>>().join(", ")),
    };
    let judge = |(_, ratio, regime): &(String, Estimate, Result<(), String>), sizes: usize| {
        in_regime(regime.clone(), || judge(&ratio.among(sizes)))
    };
    let verdict = every(&ratios, judge, "no such size was measured on both sides");
    Evaluation { reading, numbers, verdict }
}

/// Values by size in microseconds.
fn microseconds(cells: &[&Cell]) -> String {
    let each = cells
        .iter()
        .map(|cell| format!("{} at {}", number::of_cell(cell), number::setting(cell.point.value)));
    format!("µs: {}", each.collect::<Vec<_>>().join(", "))
}

/// Processor loads by size in cores.
fn cores(cells: &[&Cell]) -> String {
    let each = cells.iter().map(|cell| {
        format!("{} cores at {}", number::text(cell.value), number::setting(cell.point.value))
    });
    each.collect::<Vec<_>>().join(", ")
}
