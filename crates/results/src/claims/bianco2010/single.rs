//! Claims about one flow: figures 2, 3 and 4.
//!
//! Source: sections IV.A and V of the study.

use super::{
    ALIKE_FACTOR, Case, Finding, UNDERLOAD_LOSS_RATIO, WIRE_SHARE, difference, lower_percent,
    nothing,
};
use crate::claims::case::{all, is_within};
use crate::claims::verdict::{in_regime, undecided};
use crate::conclude::Estimate;
use crate::number;
use crate::record::{Cell, Metric, Target, Verdict};

/// Share of a rate by which it may differ while it counts as saturated.
const SATURATION_RATIO: f64 = 0.05;

/// "Slightly less than" a value: from this share of it up to the value.
const SLIGHTLY_LESS_SHARE: f64 = 2.0 / 3.0;

impl<'a> Case<'a> {
    /// Figure 2: from some packet size on, the target reaches the full wire speed.
    pub(super) fn reaches_wire_speed(&self, target: &Target) -> Finding {
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        self.wire_speed(cells, false)
    }

    /// Whether rates reach the full wire speed from the stated size on; with `is_least` not below it either.
    pub(super) fn wire_speed(&self, mut cells: Vec<&'a Cell>, is_least: bool) -> Finding {
        let from = self.claimed().unwrap_or(0.0);
        let also = if is_least { ", and below that size it does not" } else { "" };
        let reading = format!(
            "at every size from {from} bytes on, the rate is at least {} % of {}, preamble and gap included{also}; \
             regime: that load was offered",
            number::text(WIRE_SHARE * 100.0),
            self.wire()
        );
        cells.retain(|cell| is_least || cell.point.value >= from);
        let share =
            |cell: &Cell| Estimate::of(cell).map(|rate| rate / self.wire_pps(cell.point.value));
        let verdicts = cells.iter().map(|cell| {
            let is_full = is_within(&share(cell), WIRE_SHARE, f64::INFINITY);
            match cell.point.value >= from {
                true if is_full == Verdict::Holds => is_full,
                true => in_regime(self.offered_in_full(cell), || is_full),
                false => in_regime(self.offered_in_full(cell), || {
                    is_within(&share(cell), f64::NEG_INFINITY, WIRE_SHARE)
                }),
            }
        });
        let verdict = all(verdicts, "no such packet size was measured");
        let sizes = cells.iter().map(|cell| {
            let percent = number::text(share(cell).value * 100.0);
            format!("{percent} % at {}", number::setting(cell.point.value))
        });
        let numbers = match cells.is_empty() {
            true => String::new(),
            false => format!("of {}: {}", self.wire(), sizes.collect::<Vec<_>>().join(", ")),
        };
        Finding { reading, numbers, verdict }
    }

    /// Figures 2 and 5: the first target is slower than the second by about so much.
    pub(super) fn lower_by_about(&self, first: &Target, second: &Target) -> Finding {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(if claimed < 5.0 { 2.0 } else { 5.0 });
        let (least, most) = (claimed - tolerance, claimed + tolerance);
        let reading = format!(
            "“about {claimed} %” is {} to {} %; regime: {}, and both are at their capacity (frames are lost, or the \
             link is full)",
            number::text(least),
            number::text(most),
            self.claim.condition
        );
        let of = |target| self.at_condition(target, Metric::RatePpsForwarded);
        let (Some(slow), Some(fast)) = (of(first), of(second)) else {
            return nothing(reading, "this packet size and table were not measured on both");
        };
        let lower = lower_percent(&Estimate::ratio(slow, fast));
        let regime = self.at_capacity(slow).and_then(|()| self.at_capacity(fast));
        let verdict = in_regime(regime, || is_within(&lower, least, most));
        Finding { reading, numbers: difference(&lower), verdict }
    }

    /// The rates where frames are lost, the load rising.
    fn overloaded_rates(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::RatePpsForwarded);
        cells.retain(|cell| self.overloaded(cell).is_ok());
        cells
    }

    /// Figure 3: the rate reaches a saturation level.
    pub(super) fn saturates(&self, target: &Target) -> Finding {
        let reading = format!(
            "at the highest load the rate is within {} % of that at the lowest load that overloads; regime: two \
             loads or more overload the target",
            number::text(SATURATION_RATIO * 100.0)
        );
        let cells = self.overloaded_rates(target);
        let [first, .., last] = &cells[..] else {
            return nothing(reading, self.too_few_overloads(&cells));
        };
        let ratio = Estimate::ratio(last, first);
        let numbers = format!("{} times the rate at that load", number::text(ratio.value));
        let verdict = is_within(&ratio, 1.0 - SATURATION_RATIO, 1.0 + SATURATION_RATIO);
        Finding { reading, numbers, verdict }
    }

    /// Figure 3: the rate does not fall after its peak.
    pub(super) fn does_not_fall(&self, target: &Target) -> Finding {
        let keep = 1.0 - SATURATION_RATIO;
        let reading = format!(
            "at the highest load the rate is at least {} % of the highest rate at any load; regime: two loads or \
             more overload the target",
            number::text(keep * 100.0)
        );
        let overloaded = self.overloaded_rates(target);
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        let peak = cells.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value));
        let (Some(last), Some(peak), true) = (cells.last().copied(), peak, overloaded.len() > 1)
        else {
            return nothing(reading, self.too_few_overloads(&overloaded));
        };
        let numbers = format!(
            "{} frames/s at the highest load, {} at the peak",
            number::text(last.value),
            number::text(peak.value)
        );
        let verdict = in_regime(self.overloaded(last), || {
            is_within(&Estimate::ratio(last, peak), keep, f64::INFINITY)
        });
        Finding { reading, numbers, verdict }
    }

    fn too_few_overloads(&self, cells: &[&Cell]) -> &'static str {
        match cells.len() {
            0 => "outside the regime of the claim: no load overloaded the target",
            _ => "outside the regime of the claim: one load alone overloaded the target",
        }
    }

    /// Figure 4: while underloaded, the latency is slightly less than so much.
    pub(super) fn slightly_less(&self, target: &Target) -> Finding {
        let claimed_us = self.claimed().unwrap_or(0.0);
        let least_us = claimed_us * SLIGHTLY_LESS_SHARE;
        let reading = format!(
            "“slightly less than {claimed_us} µs” is {} to {claimed_us} µs, for the median, the tester's own delay \
             included; regime: loads with less than {} % loss",
            number::text(least_us),
            number::text(UNDERLOAD_LOSS_RATIO * 100.0)
        );
        let cells = self.underloaded(target);
        let inside =
            |cell: &&Cell| is_within(&Estimate::of(cell), least_us * 1e3, claimed_us * 1e3);
        let verdict = all(
            cells.iter().map(inside),
            "outside the regime of the claim: no load was measured without loss",
        );
        let least = cells.iter().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|cell| cell.value).fold(0.0, f64::max);
        let numbers = match cells.len() {
            0 => String::new(),
            loads => format!(
                "medians of {} to {} µs at {loads} loads",
                number::text(least / 1e3),
                number::text(most / 1e3)
            ),
        };
        Finding { reading, numbers, verdict }
    }

    /// The median latencies at loads without loss, the load rising.
    fn underloaded(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::LatencyNsP50);
        cells.retain(|cell| {
            let loss = self.beside(cell, Metric::LossRatio);
            loss.is_some_and(|loss| loss.value < UNDERLOAD_LOSS_RATIO)
        });
        cells
    }

    /// Figure 4: while underloaded, the latencies of one family are alike.
    pub(super) fn similar_latencies(&self, members: &[&Target]) -> Finding {
        let reading = format!(
            "median latencies within a factor of {ALIKE_FACTOR} of each other; regime: every load that all carry with \
             less than {} % loss",
            number::text(UNDERLOAD_LOSS_RATIO * 100.0)
        );
        self.similar(reading, members, |target| self.underloaded(target))
    }

    /// Figure 3: the rates of one family are alike at every load.
    pub(super) fn similar_rates(&self, members: &[&Target]) -> Finding {
        let reading = format!(
            "forwarding rates within a factor of {ALIKE_FACTOR} of each other at every load; regime: the highest load \
             overloads one of them"
        );
        let is_overloaded = |target: &&&Target| !self.overloaded_rates(target).is_empty();
        if members.iter().find(is_overloaded).is_none() {
            return nothing(
                reading,
                "outside the regime of the claim: no load overloaded a target",
            );
        }
        self.similar(reading, members, |target| self.cells(&target.name, Metric::RatePpsForwarded))
    }

    fn similar(
        &self,
        reading: String,
        members: &[&Target],
        cells: impl Fn(&Target) -> Vec<&'a Cell>,
    ) -> Finding {
        let mut verdicts = Vec::new();
        let mut greatest: f64 = 1.0;
        for (index, first) in members.iter().enumerate() {
            for second in &members[index + 1..] {
                let others = cells(second);
                for cell in cells(first) {
                    let same = others.iter().find(|other| other.point == cell.point);
                    let Some(same) = same else { continue };
                    let ratio = Estimate::ratio(cell, same);
                    greatest = greatest.max(ratio.value.max(1.0 / ratio.value));
                    verdicts.push(is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR));
                }
            }
        }
        let numbers = match verdicts.len() {
            0 => String::new(),
            _ => format!("they differ by a factor of up to {}", number::text(greatest)),
        };
        let none = "outside the regime of the claim: no load is common to all";
        let verdict = match verdicts.is_empty() {
            true => undecided(none),
            false => all(verdicts.into_iter(), none),
        };
        Finding { reading, numbers, verdict }
    }
}
