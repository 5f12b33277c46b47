//! Claims about one flow: figures 2, 3 and 4.
//!
//! Source: sections IV.A and V of the study.

use super::{
    ALIKE_FACTOR, Case, Evaluation, OVERLOAD_LOSS_RATIO, UNDERLOAD_LOSS_RATIO, WIRE_SHARE,
    difference, lost, lower_percent, nothing, overload, place,
};
use crate::claims::case::{amount, every, is_within};
use crate::claims::verdict::in_regime;
use record::number;
use record::target_name::label;
use record::{Cell, Metric, Target, Verdict};
use stats::conclude::{Conclusion, Estimate};

/// Share of a rate by which it may differ while it counts as saturated.
const SATURATION_RATIO: f64 = 0.05;

/// "Slightly less than" a value: from this share of it up to the value.
const SLIGHTLY_LESS_SHARE: f64 = 2.0 / 3.0;

impl<'a> Case<'a> {
    /// Figure 2: from some packet size on, the target reaches the full wire speed.
    pub(super) fn reaches_wire_speed(&self, target: &Target) -> Evaluation {
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        self.wire_speed(cells, false)
    }

    /// Whether rates reach the full wire speed from the stated size on; with `is_least` not below it either.
    pub(super) fn wire_speed(&self, mut cells: Vec<&'a Cell>, is_least: bool) -> Evaluation {
        let from = self.claimed().unwrap_or(0.0);
        let also = if is_least { ", and below that size it does not" } else { "" };
        let reading = format!(
            "at every size from {from} bytes on, the forwarding rate is at least {} % of {}, preamble and gap included{also}; \
             condition: that load was offered",
            number::text(WIRE_SHARE * 100.0),
            self.wire()
        );
        cells.retain(|cell| is_least || cell.point.value >= from);
        let share =
            |cell: &Cell| Estimate::of(cell).map(|rate| rate / self.wire_pps(cell.point.value));
        let judge = |cell: &&Cell, sizes: usize| {
            let share = share(cell).among(sizes);
            let is_full = is_within(&share, WIRE_SHARE, f64::INFINITY);
            match cell.point.value >= from {
                true if is_full == Verdict::Holds => is_full,
                true => in_regime(self.offered_in_full(cell), || is_full),
                false => in_regime(self.offered_in_full(cell), || {
                    is_within(&share, f64::NEG_INFINITY, WIRE_SHARE)
                }),
            }
        };
        let verdict = every(&cells, judge, "no such packet size was measured");
        let sizes = cells.iter().map(|cell| {
            let percent = share(cell).map(|it| it * 100.0);
            // A full link is no bound of its own share.
            let is_full = percent.value >= WIRE_SHARE * 100.0;
            let shown = if is_full { number::text(percent.value) } else { amount(&percent) };
            format!("{shown} % at {} bytes", number::setting(cell.point.value))
        });
        let numbers = match cells.is_empty() {
            true => String::new(),
            false => format!("share of {}: {}", self.wire(), sizes.collect::<Vec<_>>().join(", ")),
        };
        Evaluation { reading, numbers, verdict }
    }

    /// Figures 2 and 5: the first target is slower than the second by about so much.
    pub(super) fn lower_by_about(&self, first: &Target, second: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(if claimed < 5.0 { 2.0 } else { 5.0 });
        let (least, most) = (claimed - tolerance, claimed + tolerance);
        let reading = format!(
            "the forwarding rate of the first target is {} to {} % below that of the second (“about {claimed} %”); \
             condition: {}, and both are at their capacity ({}, or the link is full)",
            number::text(least),
            number::text(most),
            self.claim.condition,
            overload()
        );
        let of = |target| self.at_condition(target, Metric::RatePpsForwarded);
        let (Some(slow), Some(fast)) = (of(first), of(second)) else {
            return nothing(reading, "this packet size and table were not measured on both");
        };
        let lower = lower_percent(&Estimate::ratio(slow, fast));
        let regime = self.at_capacity(slow).and_then(|()| self.at_capacity(fast));
        let verdict = in_regime(regime, || is_within(&lower, least, most));
        Evaluation { reading, numbers: difference(&lower), verdict }
    }

    /// The rates at loads that certainly overload the target, the load rising.
    fn overloaded_rates(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::RatePpsForwarded);
        cells.retain(|cell| self.overload(cell) == Conclusion::Greater);
        cells
    }

    /// Regime: so many loads or more overload one of these targets.
    fn loads_overload(&self, targets: &[&Target], wanted: usize) -> Result<(), String> {
        let cells = targets.iter().flat_map(|it| self.cells(&it.name, Metric::RatePpsForwarded));
        let cells: Vec<&Cell> = cells.collect();
        let count = |is_it: fn(Conclusion) -> bool| {
            cells.iter().filter(|cell| is_it(self.overload(cell))).count()
        };
        let certain = count(|it| it == Conclusion::Greater);
        let open = cells.iter().find_map(|cell| match self.overload(cell) {
            Conclusion::Undecided(reason) => Some(format!("{reason}, {}", place(cell))),
            _ => None,
        });
        let possible = certain + count(|it| matches!(it, Conclusion::Undecided(_)));
        let loads = if wanted == 1 { "at one load or more" } else { "at two loads or more" };
        let regime = format!("{loads} {}", overload());
        let loss = |cell: &&&Cell| self.beside(cell, Metric::LossRatio).map_or(0.0, |it| it.value);
        let most = cells.iter().max_by(|a, b| loss(a).total_cmp(&loss(b)));
        let found = match most.map(|cell| (cell, loss(&cell))) {
            None | Some((_, 0.0)) => "no frames were lost".to_string(),
            Some((cell, loss)) if certain == 0 => {
                format!("at most {} were lost, {}", lost(loss), place(cell))
            }
            Some((cell, _)) => format!("so many were lost {} alone", place(cell)),
        };
        match open {
            _ if certain >= wanted => Ok(()),
            Some(why) if possible >= wanted => {
                Err(format!("undecided whether the condition of the claim holds ({regime}): {why}"))
            }
            _ => Err(format!("outside the condition of the claim ({regime}): {found}")),
        }
    }

    /// Figure 3: the rate reaches a saturation level.
    pub(super) fn saturates(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "at the highest load the forwarding rate is within {} % of that at the lowest load that overloads; \
             condition: at two loads or more {}",
            number::text(SATURATION_RATIO * 100.0),
            overload()
        );
        let cells = self.overloaded_rates(target);
        let (Ok(()), [first, .., last]) = (self.loads_overload(&[target], 2), &cells[..]) else {
            let why = self.loads_overload(&[target], 2).err().unwrap_or_default();
            return nothing(reading, &why);
        };
        let ratio = Estimate::ratio(last, first);
        let numbers = format!("{} times the rate {}", amount(&ratio), place(first));
        let verdict = is_within(&ratio, 1.0 - SATURATION_RATIO, 1.0 + SATURATION_RATIO);
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 3: the rate does not fall after its peak.
    pub(super) fn does_not_fall(&self, target: &Target) -> Evaluation {
        let keep = 1.0 - SATURATION_RATIO;
        let reading = format!(
            "the forwarding rate at the highest load is at least {} % of that at each lower load; condition: at two \
             loads or more, the highest among them, {}",
            number::text(keep * 100.0),
            overload()
        );
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        let Some((last, lower)) = cells.split_last() else {
            return nothing(reading, "no load was measured");
        };
        let regime = self.loads_overload(&[target], 2).and_then(|()| self.overloaded(last));
        let verdict = in_regime(regime, || {
            let judge = |cell: &&Cell, loads: usize| {
                is_within(&Estimate::ratio(last, cell).among(loads), keep, f64::INFINITY)
            };
            every(lower, judge, "one load alone was measured")
        });
        let peak = cells.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value));
        let peak = peak.unwrap_or(last);
        let numbers = format!(
            "{} frames/s at the highest load, {} at the peak, {}",
            number::of_cell(last),
            number::of_cell(peak),
            place(peak)
        );
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 4: while underloaded, the latency is slightly less than so much.
    pub(super) fn slightly_less(&self, target: &Target) -> Evaluation {
        let claimed_us = self.claimed().unwrap_or(0.0);
        let least_us = claimed_us * SLIGHTLY_LESS_SHARE;
        let reading = format!(
            "“slightly less than {claimed_us} µs” is {} to {claimed_us} µs, for the median, the tester's own delay \
             included; condition: loads with less than {} % loss",
            number::text(least_us),
            number::text(UNDERLOAD_LOSS_RATIO * 100.0)
        );
        let cells = self.underloaded(target);
        let inside = |cell: &&Cell, loads: usize| {
            is_within(&Estimate::of(cell).among(loads), least_us * 1e3, claimed_us * 1e3)
        };
        let verdict = every(&cells, inside, &no_underload());
        let least = cells.iter().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|cell| cell.value).fold(0.0, f64::max);
        let numbers = match cells.len() {
            0 => String::new(),
            1 => format!("a median of {} µs at one load", number::text(least / 1e3)),
            loads => format!(
                "medians of {} to {} µs at {loads} loads",
                number::text(least / 1e3),
                number::text(most / 1e3)
            ),
        };
        Evaluation { reading, numbers, verdict }
    }

    /// The median latencies at loads that certainly do not overload the target, the load rising.
    fn underloaded(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::LatencyNsP50);
        cells.retain(|cell| {
            let loss = self.beside(cell, Metric::LossRatio);
            loss.is_some_and(|loss| {
                let loss = Estimate::of(loss).about_behaviour();
                loss.against(UNDERLOAD_LOSS_RATIO) == Conclusion::Smaller
            })
        });
        cells
    }

    /// Figure 4: while underloaded, the latencies of one family are alike.
    pub(super) fn similar_latencies(&self, members: &[&Target]) -> Evaluation {
        let reading = format!(
            "median latencies within a factor of {ALIKE_FACTOR} of each other; condition: every load that all carry with \
             less than {} % loss",
            number::text(UNDERLOAD_LOSS_RATIO * 100.0)
        );
        self.similar(reading, members, &no_underload(), |target| self.underloaded(target))
    }

    /// Figure 3: the rates of one family are alike at every load.
    pub(super) fn similar_rates(&self, members: &[&Target]) -> Evaluation {
        let reading = format!(
            "forwarding rates within a factor of {ALIKE_FACTOR} of each other at every load; condition: at one load or more one \
             of the targets loses more than {} % of the frames",
            number::text(OVERLOAD_LOSS_RATIO * 100.0)
        );
        if let Err(why) = self.loads_overload(members, 1) {
            return nothing(reading, &why);
        }
        let none = "no load was measured on two of them";
        self.similar(reading, members, none, |it| self.cells(&it.name, Metric::RatePpsForwarded))
    }

    fn similar(
        &self,
        reading: String,
        members: &[&Target],
        none: &str,
        cells: impl Fn(&Target) -> Vec<&'a Cell>,
    ) -> Evaluation {
        let mut ratios: Vec<(Estimate, String)> = Vec::new();
        for (index, first) in members.iter().enumerate() {
            for second in &members[index + 1..] {
                let others = cells(second);
                for cell in cells(first) {
                    let same = others.iter().find(|other| other.point == cell.point);
                    let Some(same) = same else { continue };
                    // The greater of both over the other, as far as is known.
                    let ratio = Estimate::ratio(cell, same);
                    let is_below = ratio.value < 1.0;
                    let factor = if is_below { ratio.map(|it| 1.0 / it) } else { ratio };
                    let [high, low] = if is_below { [second, first] } else { [first, second] };
                    let words =
                        format!("{} over {} {}", label(&high.name), label(&low.name), place(cell));
                    ratios.push((factor, words));
                }
            }
        }
        let factors = ratios.iter().filter(|(factor, _)| factor.value.is_finite());
        let greatest = factors.max_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
        let numbers = greatest.map_or(String::new(), |(factor, words)| {
            format!("the largest factor is {}, {words}", amount(factor))
        });
        let judge = |(factor, _): &(Estimate, String), places: usize| {
            is_within(&factor.among(places), 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
        };
        Evaluation { reading, numbers, verdict: every(&ratios, judge, none) }
    }
}

/// Why no claim about underload is decided.
fn no_underload() -> String {
    format!(
        "outside the condition of the claim (less than {} % of the frames are lost): at no load is that certain",
        number::text(UNDERLOAD_LOSS_RATIO * 100.0)
    )
}
