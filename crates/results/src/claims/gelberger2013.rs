//! The claims of gelberger2013, read so that a number can decide.
//!
//! Source: sections III-C and IV of the study. What it says of ProGFE is put to every element that is programmed by a graph, what
//! it says of OpenFlow to every OpenFlow switch, what it says of the kernel to what the kernel does itself. Two targets are
//! compared at every point of a workload that both did. Invariant: "most" is more than half of the points, and a
//! point counts only where its interval says so.

use super::case::{Case, Finding, all, within};
use super::unread;
use crate::compare::{self, Comparison};
use crate::derive::paired;
use crate::derive::richer::{self, Role, named, workload};
use crate::number;
use crate::record::{Cell, Claim, ClaimVerdict, Metric, Record, Relation, Target, Verdict};

/// What one cause and its effect are: claims about TCP.
mod cause;

/// "About" so many microseconds: from half to half as much again.
const ABOUT: [f64; 2] = [0.5, 1.5];

/// Ratios within this are "similar".
const SIMILAR: [f64; 2] = [0.8, 1.25];

/// Up to this ratio a variation is "almost as good"; from the second on it is "quite high".
const ALMOST: f64 = 1.5;
const HIGH: f64 = 2.0;

/// A rate within this of another is not affected.
const UNAFFECTED: [f64; 2] = [0.95, 1.05];

/// The simplest workload.
const SWITCHING: f64 = 1.0;

/// Within this factor the workload "does not affect dramatically".
const DRAMATIC: f64 = 2.0;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    // A frame's delay above the least, as the figure draws it.
    let (variation, _) = richer::variation(record);
    let (progfe, openflow, kernel) = (Role::ProGfe, Role::OpenFlow, Role::Kernel);
    let says = |text: &str| claim.claim.contains(text);
    match (claim.item.as_str(), &claim.relation) {
        ("fig3", Relation::About) if claim.subject.contains("complex") => {
            case.programs(|case, complex, plain| case.slower_by(complex, plain))
        }
        ("fig3", Relation::About) => {
            case.between(&[progfe], &[Role::Native], |case, one, other| {
                (!is_complex(one)).then(|| case.slower_by(one, other))
            })
        }
        ("fig3", _) => case.between(&[progfe], &[Role::Native], |case, one, other| {
            let reading =
                "at every size the ratio of the rates at full load lies within 0.95 to 1.05";
            Some(case.alike_everywhere(one, other, named("bridge_rate_pps"), reading, UNAFFECTED))
        }),
        ("fig4" | "fig7", _) if says("kernel") => {
            case.between(&[kernel], &[progfe, openflow], |case, one, other| {
                Some(case.mostly(one, other, named(richer::TCP), Side::Above))
            })
        }
        ("fig4" | "fig7", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, named(richer::TCP), Side::Above))
        }),
        ("fig5", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, Metric::LatencyNsP50, Side::Below))
        }),
        ("fig8", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, Metric::LatencyNsP50, Side::Within(SIMILAR)))
        }),
        ("fig6", _) if says("almost") => case.between(&[progfe], &[kernel], |case, one, other| {
            Some(case.mostly(one, other, variation, Side::Within([0.0, ALMOST])))
        }),
        ("fig6", _) if says("quite high") => {
            case.between(&[openflow], &[progfe], |case, one, other| {
                Some(case.mostly(one, other, variation, Side::Within([HIGH, f64::INFINITY])))
            })
        }
        ("fig6", _) if says("time-outs") => vec![case.line(Vec::new(), cause::judge(record))],
        ("fig6", _) => case.by_workload(
            variation,
            |ratio| {
                let (low, high) = ratio;
                within(low, high, 1.0 / DRAMATIC, DRAMATIC)
            },
            "within a factor of two",
        ),
        ("discussion", _) if says("functionality") => {
            case.between(&[progfe], &[openflow], |case, one, other| {
                Some(case.mostly(one, other, Metric::RatePpsForwarded, Side::NotBelow))
            })
        }
        ("discussion", _) if says("flexibility") => {
            case.between(&[progfe, openflow], &[Role::Native], |case, one, other| {
                Some(case.mostly(one, other, Metric::RatePpsForwarded, Side::Below))
            })
        }
        ("discussion", _) => case.by_workload(
            Metric::RatePpsForwarded,
            |(low, high)| match () {
                () if high < 1.0 => Verdict::Holds,
                () if low >= UNAFFECTED[0] => Verdict::DoesNot,
                () => Verdict::CannotTell("the interval reaches over the limit".into()),
            },
            "below that of the simpler one",
        ),
        ("offload", _) => case.between(&[openflow], &[progfe], |case, one, other| {
            Some(case.mostly(one, other, named("frames_per_s_lossfree"), Side::Below))
        }),
        _ => vec![unread(claim)],
    }
}

/// Where a ratio has to lie.
#[derive(Debug, Clone, Copy)]
enum Side {
    Above,
    Below,
    /// Above, or as much as makes no difference.
    NotBelow,
    Within([f64; 2]),
}

impl Side {
    fn words(self) -> String {
        match self {
            Side::Above => "above 1".into(),
            Side::Below => "below 1".into(),
            Side::NotBelow => format!("above {}", UNAFFECTED[0]),
            Side::Within([least, most]) if most.is_infinite() => format!("above {least}"),
            Side::Within([0.0, most]) => format!("below {most}"),
            Side::Within([least, most]) => format!("within {least} to {most}"),
        }
    }

    /// Whether a range lies there; none where it reaches over the border.
    fn holds(self, low: f64, high: f64) -> Option<bool> {
        let [least, most] = match self {
            Side::Above => [1.0, f64::INFINITY],
            Side::Below => [0.0, 1.0],
            Side::NotBelow => [UNAFFECTED[0], f64::INFINITY],
            Side::Within(band) => band,
        };
        match within(low, high, least, most) {
            Verdict::Holds => Some(true),
            Verdict::DoesNot => Some(false),
            Verdict::CannotTell(_) => None,
        }
    }
}

/// Whether a program is the one with the many workloads, by its name.
fn is_complex(target: &Target) -> bool {
    Role::of(target) == Role::ProGfe && target.spec.contains("complex")
}

impl<'a> Case<'a> {
    /// A line for each target of the first roles against each of the second.
    fn between(
        &self,
        of: &[Role],
        against: &[Role],
        judge: impl Fn(&Self, &Target, &Target) -> Option<Finding>,
    ) -> Vec<ClaimVerdict> {
        let having = |roles: &[Role]| -> Vec<&'a Target> {
            self.measured().filter(|target| roles.contains(&Role::of(target))).collect()
        };
        let (of, against) = (having(of), having(against));
        let mut lines = Vec::new();
        for one in &of {
            for other in against.iter().filter(|other| other.name != one.name) {
                if let Some(found) = judge(self, one, other) {
                    lines.push(self.line(vec![one.name.clone(), other.name.clone()], found));
                }
            }
        }
        // Two that did nothing in common say nothing.
        lines.retain(|line| !line.numbers.is_empty());
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    /// A line for each program with many workloads against each without.
    fn programs(&self, judge: fn(&Self, &Target, &Target) -> Finding) -> Vec<ClaimVerdict> {
        self.between(&[Role::ProGfe], &[Role::ProGfe], |case, one, other| {
            (is_complex(one) && !is_complex(other)).then(|| judge(case, one, other))
        })
    }

    /// The comparisons of two targets at every point that both have, with the point in words.
    fn points(&self, one: &Target, other: &Target, metric: Metric) -> Vec<(String, Comparison)> {
        let others = self.cells(&other.name, metric);
        // What the study says of routing is not put to switching.
        let is_meant = |cell: &Cell| {
            !self.claim.condition.contains("routing") || workload(cell) != Some(SWITCHING)
        };
        let cells = self.cells(&one.name, metric).into_iter().filter(|cell| is_meant(cell));
        let compared = cells.filter_map(|cell| {
            let against = others.iter().find(|it| it.point == cell.point)?;
            let found = compare::pairs(&paired(cell, against), self.record.seed)?;
            Some((number::setting(cell.point.value), found))
        });
        compared.collect()
    }

    /// At more than half of the points the ratio lies there.
    fn mostly(&self, one: &Target, other: &Target, metric: Metric, side: Side) -> Finding {
        let reading = format!(
            "at more than half of the places that both measured, in all workloads, the interval of the ratio of the {} lies {}",
            number::title(metric),
            side.words()
        );
        let points = self.points(one, other, metric);
        let told: Vec<Option<bool>> = points
            .iter()
            .map(|(_, found)| found.interval.and_then(|it| side.holds(it.low, it.high)))
            .collect();
        let count = |wanted| told.iter().filter(|it| **it == wanted).count();
        let (yes, no, total) = (count(Some(true)), count(Some(false)), told.len());
        let verdict = match () {
            () if total == 0 => Verdict::CannotTell("nothing was measured on both".into()),
            () if 2 * yes > total => Verdict::Holds,
            () if 2 * no >= total => Verdict::DoesNot,
            () => Verdict::CannotTell("too many intervals reach over the limit".into()),
        };
        let ratios: Vec<String> = points
            .iter()
            .map(|(place, found)| format!("{} at {place}", number::text(found.ratio)))
            .collect();
        let numbers = match total {
            0 => String::new(),
            _ => format!("at {yes} of {total}, not at {no}; ratios {}", ratios.join(", ")),
        };
        Finding { reading, numbers, verdict }
    }

    /// At every point the ratio lies within a band.
    fn alike_everywhere(
        &self,
        one: &Target,
        other: &Target,
        metric: Metric,
        reading: &str,
        [least, most]: [f64; 2],
    ) -> Finding {
        let points = self.points(one, other, metric);
        let verdicts = points.iter().map(|(_, found)| match found.interval {
            None => Verdict::CannotTell("it was measured once".into()),
            Some(it) => within(it.low, it.high, least, most),
        });
        let verdict = all(verdicts, "nothing was measured on both");
        let ratios: Vec<String> = points
            .iter()
            .map(|(place, found)| format!("{} at {place}", number::text(found.ratio)))
            .collect();
        let numbers = match ratios.is_empty() {
            true => String::new(),
            false => format!("ratios {}", ratios.join(", ")),
        };
        Finding { reading: reading.into(), numbers, verdict }
    }

    /// Figure 3: the mean latency is higher by about so much at every size.
    fn slower_by(&self, one: &Target, other: &Target) -> Finding {
        let claimed_ns = self.claimed().unwrap_or(0.0) * 1e3;
        let band = ABOUT.map(|share| share * claimed_ns);
        let us = |ns: f64| number::text(ns / 1e3);
        let reading = format!(
            "at every size the mean latency under the low load is higher by {} to {} µs",
            us(band[0]),
            us(band[1])
        );
        let others = self.cells(&other.name, named("bridge_latency_ns_mean"));
        let mut shown = Vec::new();
        let verdicts: Vec<Verdict> = self
            .cells(&one.name, named("bridge_latency_ns_mean"))
            .into_iter()
            .filter_map(|cell| {
                let against = others.iter().find(|it| it.point == cell.point)?;
                let more: Vec<f64> =
                    paired(cell, against).iter().map(|(one, other)| one - other).collect();
                let mean = crate::series::mean(&more)?;
                shown.push(format!("{} at {}", us(mean), number::setting(cell.point.value)));
                Some(match crate::interval::of_mean(&more, crate::interval::LEVEL_PERCENT) {
                    None => Verdict::CannotTell("it was measured once".into()),
                    Some(it) => within(it.low, it.high, band[0], band[1]),
                })
            })
            .collect();
        let verdict = all(verdicts.into_iter(), "nothing was measured on both");
        let numbers = match shown.is_empty() {
            true => String::new(),
            false => format!("µs more: {}", shown.join(", ")),
        };
        Finding { reading, numbers, verdict }
    }

    /// Each target's workloads against the simplest that it did, over all points.
    fn by_workload(
        &self,
        metric: Metric,
        judge: fn((f64, f64)) -> Verdict,
        words: &str,
    ) -> Vec<ClaimVerdict> {
        let mut lines = Vec::new();
        for target in self.measured() {
            let cells = self.cells(&target.name, metric);
            let mut numbers: Vec<f64> = cells.iter().filter_map(|cell| workload(cell)).collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            let Some((&simple, others)) = numbers.split_first() else { continue };
            for &other in others {
                let reading = format!(
                    "in one target, the ratio of its {} in a workload over that in the simplest one, over all sizes, \
                     lies {words}",
                    number::title(metric)
                );
                let found = richer::between_workloads(self.record, &cells, [other, simple]);
                let Some(found) = found else { continue };
                let verdict = match found.interval {
                    None => Verdict::CannotTell("it was measured once".into()),
                    Some(it) => judge((it.low, it.high)),
                };
                let names = [other, simple].map(number::workload);
                let numbers = format!(
                    "{} against {}: {} times",
                    names[0],
                    names[1],
                    number::text(found.ratio)
                );
                lines.push(
                    self.line(vec![target.name.clone()], Finding { reading, numbers, verdict }),
                );
            }
        }
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }
}
