//! The claims of bianco2010, read so that a number can decide: here those about figures 2, 3 and 4.
//!
//! Source: section IV.A of the study. It compares the three technologies of one system, so pairs
//! are judged within a family of targets: ours with ours, the system's with the system's.
//! Invariant: where a target was not driven far enough, or the tester set the limit, the answer is
//! *cannot be told*.

/// Claims about large tables, and about two tables.
mod tables;
/// Claims about two flows.
mod fairness;

use super::case::{Case, Finding, all, is_limited, within};
use super::unread;
use crate::compare;
use crate::derive::paired;
use crate::number;
use crate::record::{
    Cell, Claim, ClaimVerdict, Interval, Metric, Record, Relation, Target, Technology, Verdict,
};

/// The capacity of the study's links, in bits per second.
const STUDY_BPS: f64 = 1e9;

/// Preamble and gap, which take time on a wire and are in no frame.
const WIRE_OVERHEAD_BYTES: f64 = 20.0;

/// Entries of the table that the study calls small.
const SMALL_TABLE: f64 = 8192.0;

/// Share of the wire's speed from which a target counts as reaching it.
const WIRE_SHARE: f64 = 0.99;

/// The packet size of the pairwise claims.
const SMALLEST_BYTES: f64 = 64.0;

/// Share of the peak that may be missing at the highest load before the rate counts as falling.
const FALL_RATIO: f64 = 0.05;

/// Loss below which a load counts as underload, and above which a target counts as overloaded.
const UNDERLOAD_LOSS_RATIO: f64 = 0.001;
const OVERLOAD_LOSS_RATIO: f64 = 0.01;

/// Two latencies within this factor of each other count as alike.
const ALIKE_FACTOR: f64 = 1.25;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    match (claim.item.as_str(), &claim.relation) {
        ("fig2", Relation::From) => case.each_target(Case::reaches_wire_speed),
        ("fig2", Relation::About) => case.lower_by_about(),
        ("fig3", Relation::Shape) => case.each_target(Case::does_not_fall),
        ("fig4", Relation::Below) => {
            let mut lines = case.each_target(Case::stays_below);
            lines.extend(case.alike());
            lines
        }
        ("fig5", Relation::Value) => case.each_target(Case::drops_so_much),
        ("fig5", Relation::From) => case.each_target(Case::reaches_wire_speed),
        ("fig6", Relation::About) => case.each_target(Case::linear_is_lower),
        ("fig7", Relation::Shape) => case.each_target(Case::mixes_in_proportion),
        ("table1", Relation::Shape) if claim.subject == "both tables" => {
            case.each_target(Case::same_whatever_the_packet)
        }
        ("table1", Relation::Shape) => case.each_target(Case::same_whatever_its_size),
        ("fig9", Relation::Below) => case.each_target(Case::loses_alike),
        ("fig10", Relation::Shape) if claim.subject == "bridge" => {
            case.each_target(Case::is_saturated_throughout)
        }
        ("fig10", Relation::Shape) => case.each_target(Case::favours_the_smaller),
        _ => vec![unread(claim)],
    }
}

impl<'a> Case<'a> {
    /// A line for each target whose technology the claim speaks of.
    fn each_target(&self, judge: fn(&Self, &Target) -> Finding) -> Vec<ClaimVerdict> {
        let spoken_of = technologies(&self.claim.subject);
        let lines: Vec<ClaimVerdict> = self
            .measured()
            .filter(|target| spoken_of.contains(&target.technology))
            .map(|target| self.line(vec![target.name.clone()], judge(self, target)))
            .collect();
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// Within each family, each target of the first technology against each of the second.
    fn lower_by_about(&self) -> Vec<ClaimVerdict> {
        let spoken_of = technologies(&self.claim.subject);
        let [of, against] = spoken_of[..] else { return vec![unread(self.claim)] };
        let mut lines = Vec::new();
        for (first, second) in self.pairs() {
            if first.technology == of && second.technology == against {
                let targets = vec![first.name.clone(), second.name.clone()];
                lines.push(self.line(targets, self.lower_by(first, second)));
            }
        }
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// The full speed of the wire: the capacity that the run took its links to have.
    fn wire_bps(&self) -> f64 {
        let told = self.record.parameters.get("capacity_bps").and_then(|it| it.as_f64());
        told.filter(|&capacity| capacity > 0.0).unwrap_or(STUDY_BPS)
    }

    /// Figures 2 and 5: from some packet size on, the target reaches the full speed of the wire; of
    /// figure 5 with small tables, and not before.
    fn reaches_wire_speed(&self, target: &Target) -> Finding {
        let from = self.claimed().unwrap_or(0.0);
        let wire_bps = self.wire_bps();
        let wire = format!("{} Gbit/s", number::text(wire_bps / 1e9));
        let reading = format!(
            "at every size from {from} bytes on, the rate's interval lies at or above {} % of the \
             {wire} that the links are taken to carry, preamble and gap counted",
            number::text(WIRE_SHARE * 100.0)
        );
        let needs_it = self.claim.item == "fig5";
        let reading =
            if needs_it { format!("{reading}, and no smaller one's does") } else { reading };
        let mut cells = self.cells(&target.name, Metric::RatePpsForwarded);
        cells.retain(|cell| {
            let curve = cell.point.within.as_ref();
            let is_small = curve.is_none_or(|curve| curve.value == SMALL_TABLE);
            is_small && (needs_it || cell.point.value >= from)
        });
        let verdicts = cells.iter().map(|cell| {
            let full = wire_bps / (8.0 * (cell.point.value + WIRE_OVERHEAD_BYTES));
            let need = WIRE_SHARE * full;
            let offered = self.cells(&target.name, Metric::RatePpsOffered);
            let offered = offered.into_iter().find(|offered| offered.point == cell.point);
            let size = number::setting(cell.point.value);
            match cell.interval {
                None => Verdict::CannotTell(format!("{size} bytes were measured once")),
                Some(interval) if cell.point.value < from && interval.low >= need => {
                    Verdict::DoesNot
                }
                Some(interval) if cell.point.value < from && interval.high < need => Verdict::Holds,
                Some(interval) if interval.low >= need => Verdict::Holds,
                _ if offered.is_none_or(|offered| offered.value < need) => {
                    Verdict::CannotTell(format!("less than {wire} was offered at {size} bytes"))
                }
                Some(interval) if interval.high < need => Verdict::DoesNot,
                Some(_) => {
                    Verdict::CannotTell(format!("the interval at {size} bytes holds the limit"))
                }
            }
        });
        let verdict = all(verdicts, "no such packet size was measured");
        let share = |cell: &&Cell| {
            cell.value * 8.0 * (cell.point.value + WIRE_OVERHEAD_BYTES) / wire_bps * 100.0
        };
        let sizes = cells.iter().map(|cell| {
            format!("{} % at {}", number::text(share(cell)), number::setting(cell.point.value))
        });
        let numbers = format!("of {wire}: {}", sizes.collect::<Vec<_>>().join(", "));
        Finding {
            reading,
            numbers: if cells.is_empty() { String::new() } else { numbers },
            verdict,
        }
    }

    /// Figure 2: with 64-byte packets the first is slower than the second by about so much.
    fn lower_by(&self, first: &Target, second: &Target) -> Finding {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(5.0);
        let (least, most) = (claimed - tolerance, claimed + tolerance);
        let reading = format!(
            "“about {claimed} %” is read as {} to {} %, at 64 bytes",
            number::text(least),
            number::text(most)
        );
        let cannot = |why: &str| Finding {
            reading: reading.clone(),
            numbers: String::new(),
            verdict: Verdict::CannotTell(why.into()),
        };
        let of = |target: &Target, metric| self.cell(&target.name, metric, SMALLEST_BYTES);
        let (Some(slow), Some(fast)) =
            (of(first, Metric::RatePpsForwarded), of(second, Metric::RatePpsForwarded))
        else {
            return cannot("64 bytes were not measured on both");
        };
        let Some(compared) = compare::pairs(&paired(slow, fast), self.record.seed) else {
            return cannot("no pair of trials forwarded anything");
        };
        let lower = |ratio: f64| (1.0 - ratio) * 100.0;
        let numbers = difference(
            lower(compared.ratio),
            compared.interval.map(|interval| (lower(interval.high), lower(interval.low))),
        );
        let overloaded = |target| {
            of(target, Metric::LossRatio).is_some_and(|loss| loss.value > OVERLOAD_LOSS_RATIO)
        };
        let verdict = match compared.interval {
            _ if is_limited(slow) || is_limited(fast) => {
                Verdict::CannotTell("the tester, not the target, set the rate".into())
            }
            _ if !overloaded(first) && !overloaded(second) => Verdict::CannotTell(
                "both forwarded all that was offered; a higher load would part them".into(),
            ),
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some(interval) => within(lower(interval.high), lower(interval.low), least, most),
        };
        Finding { reading, numbers, verdict }
    }

    /// Figure 3: the rate saturates and does not fall after its peak.
    fn does_not_fall(&self, target: &Target) -> Finding {
        let keep = 1.0 - FALL_RATIO;
        let reading = format!(
            "at the highest load, where frames are lost, the rate is at least {} % of the highest \
             rate at any load",
            number::text(keep * 100.0)
        );
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        let peak = cells.iter().copied().max_by(|a, b| a.value.total_cmp(&b.value));
        let (Some(last), Some(peak)) = (cells.last().copied(), peak) else {
            let verdict = Verdict::CannotTell("no load was measured".into());
            return Finding { reading, numbers: String::new(), verdict };
        };
        let loss = self.cell(&target.name, Metric::LossRatio, last.point.value);
        let overloaded = self.cells(&target.name, Metric::LossRatio);
        let overloads = overloaded.iter().filter(|it| it.value > OVERLOAD_LOSS_RATIO).count();
        let numbers = format!(
            "{} frames/s at the highest load, {} at the peak",
            number::text(last.value),
            number::text(peak.value)
        );
        let compared = compare::pairs(&paired(last, peak), self.record.seed);
        let verdict = match compared.and_then(|compared| compared.interval) {
            _ if loss.is_none_or(|loss| loss.value <= OVERLOAD_LOSS_RATIO) => Verdict::CannotTell(
                "the highest load did not overload it; a higher load would tell".into(),
            ),
            _ if is_limited(last) => {
                Verdict::CannotTell("the tester, not the target, set the rate".into())
            }
            _ if overloads < 2 => Verdict::CannotTell(
                "one load alone overloaded it; a second would tell whether the rate falls".into(),
            ),
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some(interval) if interval.low >= keep => Verdict::Holds,
            Some(interval) if interval.high < keep => Verdict::DoesNot,
            Some(_) => Verdict::CannotTell("the interval holds the limit".into()),
        };
        Finding { reading, numbers, verdict }
    }

    /// Figure 4: while underloaded, the mean latency stays below so much.
    fn stays_below(&self, target: &Target) -> Finding {
        let limit_us = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "at every load with less than {} % loss, the mean's interval lies below {limit_us} µs",
            number::text(UNDERLOAD_LOSS_RATIO * 100.0)
        );
        let cells = self.underloaded(target);
        let verdicts = cells.iter().map(|cell| match cell.interval {
            None => Verdict::CannotTell("a load was measured once".into()),
            Some(interval) if interval.high < limit_us * 1e3 => Verdict::Holds,
            Some(interval) if interval.low >= limit_us * 1e3 => Verdict::DoesNot,
            Some(_) => Verdict::CannotTell("an interval holds the limit".into()),
        });
        let verdict = all(verdicts, "no load was measured without loss");
        let least = cells.iter().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|cell| cell.value).fold(0.0, f64::max);
        let numbers = match cells.len() {
            0 => String::new(),
            loads => format!(
                "means of {} to {} µs over {loads} loads, the tester's own delay included",
                number::text(least / 1e3),
                number::text(most / 1e3)
            ),
        };
        Finding { reading, numbers, verdict }
    }

    /// The mean latencies at loads without loss, the load rising.
    fn underloaded(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::LatencyNsMean);
        cells.retain(|cell| {
            self.cell(&target.name, Metric::LossRatio, cell.point.value)
                .is_some_and(|loss| loss.value < UNDERLOAD_LOSS_RATIO)
        });
        cells
    }

    /// Figure 4: while underloaded, the technologies of one family are alike.
    fn alike(&self) -> Vec<ClaimVerdict> {
        let spoken_of = technologies(&self.claim.subject);
        let mut families: Vec<(&str, Vec<&Target>)> = Vec::new();
        for target in self.measured().filter(|t| spoken_of.contains(&t.technology)) {
            match families.iter_mut().find(|(family, _)| *family == target.family) {
                Some((_, members)) => members.push(target),
                None => families.push((&target.family, vec![target])),
            }
        }
        families.retain(|(_, members)| members.len() > 1);
        let line = |(_, members): (&str, Vec<&Target>)| {
            let names = members.iter().map(|target| target.name.clone()).collect();
            self.line(names, self.alike_within(&members))
        };
        families.into_iter().map(line).collect()
    }

    fn alike_within(&self, members: &[&Target]) -> Finding {
        let reading = format!(
            "“alike”: at every load that all carry without loss, the mean latencies lie within a \
             factor of {ALIKE_FACTOR}"
        );
        let mut verdicts = Vec::new();
        let mut greatest: f64 = 1.0;
        for (index, first) in members.iter().enumerate() {
            for second in &members[index + 1..] {
                let others = self.underloaded(second);
                for cell in self.underloaded(first) {
                    let same = others.iter().find(|other| other.point == cell.point);
                    let compared =
                        same.and_then(|o| compare::pairs(&paired(cell, o), self.record.seed));
                    let Some(compared) = compared else { continue };
                    greatest = greatest.max(compared.ratio.max(1.0 / compared.ratio));
                    verdicts.push(match compared.interval {
                        None => Verdict::CannotTell("one pair gives no interval".into()),
                        Some(Interval { low, high, .. }) => {
                            within(low, high, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
                        }
                    });
                }
            }
        }
        let numbers = match verdicts.len() {
            0 => String::new(),
            _ => format!("they differ by a factor of up to {}", number::text(greatest)),
        };
        let verdict = all(verdicts.into_iter(), "no load was carried by all without loss");
        Finding { reading, numbers, verdict }
    }
}

/// "lower by 40 % (38 to 42 %)", or higher where the sign says so.
fn difference(percent: f64, range: Option<(f64, f64)>) -> String {
    let (word, sign) = if percent < 0.0 { ("higher", -1.0) } else { ("lower", 1.0) };
    let ends = |(low, high): (f64, f64)| if sign < 0.0 { (-high, -low) } else { (low, high) };
    let range = range.map(ends).map_or("one pair only".into(), |(low, high)| {
        format!("{} to {} %", number::text(low), number::text(high))
    });
    format!("{word} by {} % ({range})", number::text(percent * sign))
}

/// The technologies that a claim's subject names, in its order.
fn technologies(subject: &str) -> Vec<Technology> {
    if subject == "all three" {
        return vec![Technology::Routing, Technology::Bridging, Technology::Openflow];
    }
    if subject.contains("hash") || subject.contains("linear") || subject.contains("tables") {
        return vec![Technology::Openflow];
    }
    let words = subject.split([',', ' ']);
    words
        .filter_map(|word| match word {
            "routing" => Some(Technology::Routing),
            "bridge" => Some(Technology::Bridging),
            "openflow" => Some(Technology::Openflow),
            _ => None,
        })
        .collect()
}
