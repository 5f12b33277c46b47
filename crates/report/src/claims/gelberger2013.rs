//! Claims of gelberger2013 as conditions on measured values.
//!
//! Source: sections III-C and IV of the study. What it states of ProGFE is applied to every element that is programmed by a graph, what
//! it states of OpenFlow to every OpenFlow switch, what it states of the kernel to what the kernel does itself. Two targets are
//! compared at every point of a workload that both did. Invariant: "most" is more than half of the points, and a
//! point counts only where [`stats::conclude`] decides it.

use super::case::{Case, Evaluation, every, is_within};
use super::unread;
use super::verdict::{in_regime, is_greater, is_smaller, undecided};
use crate::analysis::gelberger2013::{self, Role, named, sample, workload};
use record::number;
use record::{BoundCause, Cell, Claim, ClaimVerdict, Metric, Record, Relation, Target, Verdict};
use stats::conclude::{Estimate, undisturbed};
use stats::series;

mod cause;

/// "About" so many microseconds: from half to half as much again.
const ABOUT: [f64; 2] = [0.5, 1.5];

/// Ratios within this are "similar".
const SIMILAR: [f64; 2] = [0.8, 1.25];

/// Ratios within this are "slightly lower": below 1 by more than the smallest relevant difference, and still similar.
const SLIGHTLY_LOWER: [f64; 2] = [0.8, 0.99];

/// From this ratio on an advantage is "distinct".
const DISTINCT: [f64; 2] = [1.25, f64::INFINITY];

/// Up to this ratio a variation is "almost as good"; from the second on it is "quite high".
const ALMOST: f64 = 1.5;
const HIGH: f64 = 2.0;

/// A rate within this of another is not affected.
const UNAFFECTED: [f64; 2] = [0.95, 1.05];

/// Up to this share of the other's rate a target is "completely unusable".
const UNUSABLE: f64 = 0.01;

/// Loss above which a target counts as overloaded.
const OVERLOAD_LOSS_RATIO: f64 = 0.01;

/// The simplest workload.
const SWITCHING: f64 = 1.0;

/// Within this factor the workload "does not affect dramatically".
const DRAMATIC: f64 = 2.0;

/// The lines for one claim.
pub(super) fn judge(record: &Record, experiment: &str, claim: &Claim) -> Vec<ClaimVerdict> {
    let case = Case { record, experiment, claim };
    // A frame's delay above the least, as the figure draws it.
    let (variation, _) = gelberger2013::variation(record);
    let (progfe, openflow, kernel) = (Role::ProGfe, Role::OpenFlow, Role::Kernel);
    let states = |text: &str| claim.claim.contains(text);
    let tcp = named(gelberger2013::TCP);
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
            Some(case.unaffected(one, other, named("bridge_rate_pps")))
        }),
        ("fig4" | "fig7", _) if states("kernel") => {
            case.between(&[kernel], &[progfe, openflow], |case, one, other| {
                Some(case.mostly(one, other, tcp, Side::Within(DISTINCT)))
            })
        }
        ("fig4" | "fig7", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, tcp, Side::Above))
        }),
        ("fig5", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, Metric::LatencyNsP50, Side::Within(SLIGHTLY_LOWER)))
        }),
        ("fig8", _) => case.between(&[progfe], &[openflow], |case, one, other| {
            Some(case.mostly(one, other, Metric::LatencyNsP50, Side::Within(SIMILAR)))
        }),
        ("fig6", _) if states("almost") => {
            case.between(&[progfe], &[kernel], |case, one, other| {
                Some(case.mostly(one, other, variation, Side::Within([0.0, ALMOST])))
            })
        }
        ("fig6", _) if states("quite high") => {
            case.between(&[openflow], &[progfe], |case, one, other| {
                Some(case.mostly(one, other, variation, Side::Within([HIGH, f64::INFINITY])))
            })
        }
        ("fig6", _) if states("time-outs") => vec![case.line(Vec::new(), cause::judge(record))],
        ("fig6", _) => case.by_workload(
            variation,
            |ratio| is_within(ratio, 1.0 / DRAMATIC, DRAMATIC),
            "within 0.5 to 2",
        ),
        ("discussion", _) if states("functionality") => {
            case.between(&[progfe], &[openflow], |case, one, other| {
                Some(case.mostly(one, other, Metric::RatePpsForwarded, Side::NotBelow))
            })
        }
        ("discussion", _) if states("flexibility") => {
            case.between(&[progfe, openflow], &[Role::Native], |case, one, other| {
                Some(case.mostly(one, other, Metric::RatePpsForwarded, Side::Below))
            })
        }
        ("discussion", _) => {
            case.by_workload(Metric::RatePpsForwarded, is_smaller, "below 1, by more than 1 %")
        }
        ("offload", _) if states("unusable") => {
            case.between(&[openflow], &[progfe], |case, one, other| {
                Some(case.unusable_somewhere(one, other))
            })
        }
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
            Side::Above => "above 1, by more than 1 %".into(),
            Side::Below => "below 1, by more than 1 %".into(),
            Side::NotBelow => format!("above {}", UNAFFECTED[0]),
            Side::Within([least, most]) if most.is_infinite() => format!("above {least}"),
            Side::Within([0.0, most]) => format!("below {most}"),
            Side::Within([least, most]) => format!("within {least} to {most}"),
        }
    }

    /// Whether a ratio lies there.
    fn verdict(self, ratio: &Estimate) -> Verdict {
        match self {
            Side::Above => is_greater(ratio),
            Side::Below => is_smaller(ratio),
            Side::NotBelow => is_within(ratio, UNAFFECTED[0], f64::INFINITY),
            Side::Within([least, most]) => is_within(ratio, least, most),
        }
    }
}

/// Two targets at one point.
struct Compared {
    /// The point in words.
    place: String,
    ratio: Estimate,
    /// Why the point is outside the condition of the claim, if it is.
    regime: Result<(), String>,
    /// Whether both filled the link.
    are_full: bool,
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
        judge: impl Fn(&Self, &Target, &Target) -> Option<Evaluation>,
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
        // Two targets without a common point give no line.
        lines.retain(|line| !line.numbers.is_empty());
        self.or_nothing(lines)
    }

    /// A line for each program with many workloads against each without.
    fn programs(&self, judge: fn(&Self, &Target, &Target) -> Evaluation) -> Vec<ClaimVerdict> {
        self.between(&[Role::ProGfe], &[Role::ProGfe], |case, one, other| {
            (is_complex(one) && !is_complex(other)).then(|| judge(case, one, other))
        })
    }

    /// Regime of a claim about rates: one of these targets lost frames at a point.
    fn one_overloaded(&self, cells: &[&Cell]) -> Result<(), String> {
        let is_rate = cells.iter().any(|cell| cell.metric == Metric::RatePpsForwarded);
        let carried_all = |cell: &&&Cell| {
            let losses = self.cells(&cell.target, Metric::LossRatio);
            let loss = losses.into_iter().find(|loss| loss.point == cell.point);
            loss.is_some_and(|loss| loss.value <= OVERLOAD_LOSS_RATIO)
        };
        match is_rate && cells.iter().filter(carried_all).count() == cells.len() {
            true => Err(format!(
                "outside the condition of the claim: both lost at most {} % of the frames offered, so the load was not \
                 high enough to compare them",
                number::text(OVERLOAD_LOSS_RATIO * 100.0)
            )),
            false => Ok(()),
        }
    }

    /// Whether a cell is of a workload of the claim. What the study states of routing does not apply to switching.
    fn is_meant(&self, cell: &Cell) -> bool {
        !self.claim.condition.contains("routing") || workload(cell) != Some(SWITCHING)
    }

    /// The ratios of two targets at every point that both have.
    fn points(&self, one: &Target, other: &Target, metric: Metric) -> Vec<Compared> {
        let others = self.cells(&other.name, metric);
        let cells = self.cells(&one.name, metric).into_iter().filter(|cell| self.is_meant(cell));
        let pair = |cell: &'a Cell| {
            let against = others.iter().find(|it| it.point == cell.point)?;
            Some((cell, *against))
        };
        let pairs: Vec<(&Cell, &Cell)> = cells.filter_map(pair).collect();
        let is_one = pairs.windows(2).all(|two| two[0].0.point.within == two[1].0.point.within);
        let compared = pairs.iter().map(|(cell, against)| {
            let setting = number::setting(cell.point.value);
            let place = match cell.point.within.as_ref().filter(|_| !is_one) {
                Some(curve) => format!("{setting} ({})", number::curve(curve)),
                None => setting,
            };
            let is_full =
                |cell: &Cell| cell.bound.map(|it| it.cause) == Some(BoundCause::LinkLimit);
            Compared {
                place,
                ratio: Estimate::ratio(cell, against),
                regime: self.one_overloaded(&[cell, against]),
                are_full: is_full(cell) && is_full(against),
            }
        });
        compared.collect()
    }

    /// At more than half of the points the ratio lies there.
    fn mostly(&self, one: &Target, other: &Target, metric: Metric, side: Side) -> Evaluation {
        let reading = format!(
            "at more than half of the points that both measured, in all workloads, the ratio of the {} is {}",
            number::title(metric),
            side.words()
        );
        let points = self.points(one, other, metric);
        let verdicts: Vec<Verdict> = points
            .iter()
            .map(|it| in_regime(it.regime.clone(), || side.verdict(&it.ratio)))
            .collect();
        let count = |wanted| verdicts.iter().filter(|it| **it == wanted).count();
        let (yes, no, total) =
            (count(Verdict::Holds), count(Verdict::Contradicted), verdicts.len());
        let open = verdicts.iter().find(|it| matches!(it, Verdict::Undecided(_)));
        let verdict = match open {
            _ if 2 * yes > total => Verdict::Holds,
            _ if total > 0 && 2 * no >= total => Verdict::Contradicted,
            Some(Verdict::Undecided(why)) => undecided(format!("the first undecided point: {why}")),
            _ => undecided("nothing was measured on both"),
        };
        let numbers = match total {
            0 => String::new(),
            _ => {
                let (open, points_word) =
                    (total - yes - no, if total == 1 { "point" } else { "points" });
                let tally = format!(
                    "{total} {points_word}: confirmed at {yes}, contradicted at {no}, undecided at {open}"
                );
                format!("{tally}; {}", ratios(&points))
            }
        };
        Evaluation { reading, numbers, verdict }
    }

    /// Section III-C.5: at some point the first target is unusable beside the second.
    fn unusable_somewhere(&self, one: &Target, other: &Target) -> Evaluation {
        let reading = format!(
            "at one point or more the rate without loss is at most {} % of the other's",
            number::text(UNUSABLE * 100.0)
        );
        let points = self.points(one, other, named("frames_per_s_lossfree"));
        let verdicts: Vec<Verdict> =
            points.iter().map(|it| is_within(&it.ratio, 0.0, UNUSABLE)).collect();
        let verdict = match verdicts.contains(&Verdict::Holds) {
            true => Verdict::Holds,
            false => {
                let open = verdicts.iter().find(|it| matches!(it, Verdict::Undecided(_)));
                match (open, verdicts.is_empty()) {
                    (_, true) => undecided("nothing was measured on both"),
                    (Some(open), _) => open.clone(),
                    (None, _) => Verdict::Contradicted,
                }
            }
        };
        Evaluation { reading, numbers: ratios(&points), verdict }
    }

    /// At every point the ratio is 1 within the share that counts as unaffected. The study's bridges forward at wire
    /// speed, so that two rates at the capacity of the link are not affected.
    fn unaffected(&self, one: &Target, other: &Target, metric: Metric) -> Evaluation {
        let [least, most] = UNAFFECTED;
        let reading = format!(
            "at every size both reach the capacity of the link, or the ratio of their rates at full load is within {least} \
             to {most}"
        );
        let points = self.points(one, other, metric);
        let judge = |it: &Compared, sizes: usize| match it.are_full && it.ratio.excluded().is_none()
        {
            true => Verdict::Holds,
            false => is_within(&it.ratio.among(sizes), least, most),
        };
        let verdict = every(&points, judge, "nothing was measured on both");
        Evaluation { reading, numbers: ratios(&points), verdict }
    }

    /// Figure 3: the median latency is higher by about so much at every size.
    fn slower_by(&self, one: &Target, other: &Target) -> Evaluation {
        let claimed_us = self.claimed().unwrap_or(0.0);
        let [least, most] = ABOUT.map(|share| share * claimed_us);
        let reading = format!(
            "at every size the median latency under the low load is higher by {} to {} µs",
            number::text(least),
            number::text(most)
        );
        let metric = named("bridge_latency_ns_p50");
        let others = self.cells(&other.name, metric);
        let cells = self.cells(&one.name, metric).into_iter();
        let found: Vec<(String, Estimate)> = cells
            .filter_map(|cell| {
                let against = others.iter().find(|it| it.point == cell.point)?;
                let more = Estimate::difference(cell, against).map(|ns| ns / 1e3);
                Some((number::setting(cell.point.value), more))
            })
            .collect();
        let judge = |(_, more): &(String, Estimate), sizes: usize| {
            is_within(&more.among(sizes), least, most)
        };
        let verdict = every(&found, judge, "nothing was measured on both");
        let shown = found.iter().map(|(size, it)| format!("{} at {size}", number::text(it.value)));
        let numbers = match found.is_empty() {
            true => String::new(),
            false => format!("µs more: {}", shown.collect::<Vec<_>>().join(", ")),
        };
        Evaluation { reading, numbers, verdict }
    }

    /// Each target's workloads against the simplest one of the claim that it did, over all points.
    fn by_workload(
        &self,
        metric: Metric,
        judge: fn(&Estimate) -> Verdict,
        words: &str,
    ) -> Vec<ClaimVerdict> {
        let mut lines = Vec::new();
        for target in self.measured() {
            let mut cells = self.cells(&target.name, metric);
            cells.retain(|cell| self.is_meant(cell));
            let mut numbers: Vec<f64> = cells.iter().filter_map(|cell| workload(cell)).collect();
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
            let Some((&simple, others)) = numbers.split_first() else { continue };
            for &other in others {
                let reading = format!(
                    "the ratio of the {} of a target in a workload to that in the simplest workload, over all sizes, lies \
                     {words}",
                    number::title(metric)
                );
                let Some(found) = over_sizes(&cells, [other, simple]) else { continue };
                let both: Vec<&Cell> = (cells.iter().copied())
                    .filter(|cell| [other, simple].map(Some).contains(&workload(cell)))
                    .collect();
                let verdict = in_regime(self.one_overloaded(&both), || judge(&found));
                let names = [other, simple].map(number::workload);
                let times = match found.value.is_finite() {
                    true => format!("{} times", number::text(found.value)),
                    false if both.iter().any(|cell| cell.samples.contains(&0.0)) => {
                        "no ratio, a value is 0".into()
                    }
                    false => "no ratio, no repeat is undisturbed in both".into(),
                };
                let numbers = format!("{} against {}: {times}", names[0], names[1]);
                lines.push(
                    self.line(vec![target.name.clone()], Evaluation { reading, numbers, verdict }),
                );
            }
        }
        self.or_nothing(lines)
    }
}

/// A target's metric in one workload over that in another: in each repeat the geometric mean over the sizes of both.
fn over_sizes(cells: &[&Cell], [of, against]: [f64; 2]) -> Option<Estimate> {
    let in_workload = |number: f64| -> Vec<Cell> {
        let found = cells.iter().filter(|cell| workload(cell) == Some(number));
        found.map(|cell| undisturbed(cell)).collect()
    };
    let (ofs, bases) = (in_workload(of), in_workload(against));
    let points: Vec<(&Cell, &Cell)> = ofs
        .iter()
        .filter_map(|cell| {
            Some((cell, bases.iter().find(|base| base.point.value == cell.point.value)?))
        })
        .collect();
    let in_repeat = |repeat: &u32| -> Option<(f64, f64)> {
        let logs = points.iter().map(|(cell, base)| {
            let (cell, base) = (sample(cell, *repeat)?, sample(base, *repeat)?);
            (cell > 0.0 && base > 0.0).then(|| (cell / base).ln())
        });
        let logs: Vec<f64> = logs.collect::<Option<_>>()?;
        Some((series::mean(&logs)?.exp(), 1.0))
    };
    let pairs: Vec<(f64, f64)> = points.first()?.0.repeats.iter().filter_map(in_repeat).collect();
    let whole = |number: f64| -> Vec<&Cell> {
        cells.iter().copied().filter(|cell| workload(cell) == Some(number)).collect()
    };
    Some(Estimate::of_pairs(&pairs).with(&whole(of), &whole(against)))
}

/// Ratios by point in words.
fn ratios(points: &[Compared]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let each = points.iter().map(|it| format!("{} at {}", number::text(it.ratio.value), it.place));
    format!("ratios {}", each.collect::<Vec<_>>().join(", "))
}
