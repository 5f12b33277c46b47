//! A claim and what it is put to: what every study's claims are judged with.
//!
//! Invariant: a line names the targets that it is about, how the claim was read, and the numbers that
//! decided.

use record::links;
use record::number;
use record::target_name::label;
use record::{Cell, Claim, ClaimVerdict, Metric, Record, Target, Verdict};
use stats::conclude::{Conclusion, Estimate, conclude};

/// A claim and what it is put to.
pub(super) struct Case<'a> {
    pub(super) record: &'a Record,
    pub(super) experiment: &'a str,
    pub(super) claim: &'a Claim,
}

/// How a claim was read, what was found, and the answer.
pub(super) struct Evaluation {
    pub(super) reading: String,
    pub(super) numbers: String,
    pub(super) verdict: Verdict,
}

impl<'a> Case<'a> {
    /// The targets that took part in the experiment.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'a Target> + 'a {
        let (record, experiment) = (self.record, self.experiment);
        let has_cells = move |target: &&Target| {
            let mut cells = record.cells.iter();
            cells.any(|cell| cell.experiment == experiment && cell.target == target.name)
        };
        record.targets.iter().filter(has_cells)
    }

    /// Every ordered pair of different targets of one family.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Target, &'a Target)> + 'a {
        let targets: Vec<&Target> = self.measured().collect();
        targets.clone().into_iter().flat_map(move |first| {
            let others = targets.clone().into_iter();
            others
                .filter(move |second| second.family == first.family && second.name != first.name)
                .map(move |second| (first, second))
        })
    }

    pub(super) fn line(&self, targets: Vec<String>, found: Evaluation) -> ClaimVerdict {
        ClaimVerdict {
            claim: self.claim.clone(),
            numbers: found.numbers + &self.across_links(&targets),
            targets,
            verdict: found.verdict,
            reading: found.reading,
            is_by_construction: false,
        }
    }

    /// What has to be known where a line is about targets that were not joined alike.
    fn across_links(&self, targets: &[String]) -> String {
        let own: Vec<&str> = targets.iter().map(|name| links::of(self.record, name)).collect();
        if own.windows(2).all(|pair| pair[0] == pair[1]) {
            return String::new();
        }
        let each =
            targets.iter().zip(own).map(|(name, link)| format!("{} over {link}", label(name)));
        format!(" (links differ: {})", each.collect::<Vec<_>>().join(", "))
    }

    /// These lines, or one that says that no target is what the claim speaks of.
    pub(super) fn or_nothing(&self, lines: Vec<ClaimVerdict>) -> Vec<ClaimVerdict> {
        if lines.is_empty() { vec![self.nothing_measured()] } else { lines }
    }

    pub(super) fn nothing_measured(&self) -> ClaimVerdict {
        let why = match self.measured().next() {
            Some(_) => format!(
                "no target, or no pair of targets of one family, matches the subject of the claim ({})",
                self.claim.subject
            ),
            None => "no target of the run was measured in this experiment".into(),
        };
        let verdict = Verdict::Undecided(why);
        self.line(
            Vec::new(),
            Evaluation { reading: String::new(), numbers: String::new(), verdict },
        )
    }

    pub(super) fn cells(&self, target: &str, metric: Metric) -> Vec<&'a Cell> {
        let cells = self.record.cells.iter();
        cells
            .filter(|cell| {
                cell.experiment == self.experiment && cell.target == target && cell.metric == metric
            })
            .collect()
    }

    /// The value that the claim gives.
    pub(super) fn claimed(&self) -> Option<f64> {
        self.claim.value.parse().ok()
    }
}

/// Whether an estimate lies inside a band, ends included.
pub(super) fn is_within(estimate: &Estimate, least: f64, most: f64) -> Verdict {
    verdict(conclude(estimate, least, most), |it| it == Conclusion::Equivalent)
}

/// Whether an estimate lies below a limit.
pub(super) fn is_below(estimate: &Estimate, limit: f64) -> Verdict {
    verdict(estimate.against(limit), |it| it == Conclusion::Smaller)
}

/// Whether an estimate lies above a limit.
pub(super) fn is_above(estimate: &Estimate, limit: f64) -> Verdict {
    verdict(estimate.against(limit), |it| it == Conclusion::Greater)
}

/// The verdict on a claim that holds for some conclusions.
pub(super) fn verdict(found: Conclusion, holds: impl Fn(Conclusion) -> bool) -> Verdict {
    match found {
        Conclusion::Undecided(reason) => Verdict::Undecided(reason.to_string()),
        found if holds(found) => Verdict::Holds,
        _ => Verdict::Contradicted,
    }
}

/// The verdict on a claim of several parts: one that does not hold decides, then one that is undecided.
pub(super) fn all(verdicts: impl Iterator<Item = Verdict>, nothing: &str) -> Verdict {
    let mut seen = None;
    for verdict in verdicts {
        seen = match (seen, verdict) {
            (_, Verdict::Contradicted) => return Verdict::Contradicted,
            (None | Some(Verdict::Holds), verdict) => Some(verdict),
            (earlier, _) => earlier,
        };
    }
    seen.unwrap_or(Verdict::Undecided(nothing.into()))
}

/// The verdict on a claim that must hold at every place, such as each load.
///
/// The second argument of `judge` is for [`Estimate::among`]. The claim holds only if it does at every place, so one
/// place at a time decides that. One of many places may be outside by chance, so the number of places decides that.
pub(super) fn every<T>(
    places: &[T],
    judge: impl Fn(&T, usize) -> Verdict,
    nothing: &str,
) -> Verdict {
    let mut open: Vec<String> = Vec::new();
    for place in places {
        match judge(place, 1) {
            Verdict::Holds => {}
            Verdict::Contradicted if judge(place, places.len()) == Verdict::Contradicted => {
                return Verdict::Contradicted;
            }
            Verdict::Contradicted => open.push(BY_CHANCE.into()),
            Verdict::Undecided(why) => open.push(why),
        }
    }
    let Some(first) = open.first() else {
        return if places.is_empty() { Verdict::Undecided(nothing.into()) } else { Verdict::Holds };
    };
    let is_one_reason = open.len() == places.len() && open.iter().all(|why| why == first);
    let (undecided, all) = (open.len(), places.len());
    Verdict::Undecided(match undecided == all {
        _ if is_one_reason => first.clone(),
        true => format!("undecided at each of {all} points (at the first: {first})"),
        false => format!("undecided at {undecided} of {all} points (at the first: {first})"),
    })
}

/// Why a value outside a limit does not decide.
const BY_CHANCE: &str = "a value outside the limit may be chance among so many";

/// A number as far as it is known: "at least" or "at most" where it is a bound.
pub(super) fn amount(estimate: &Estimate) -> String {
    let number = number::text(estimate.value);
    match estimate.open_ends() {
        [false, false] => number,
        [false, true] => format!("at least {number}"),
        [true, false] => format!("at most {number}"),
        [true, true] => format!("about {number}"),
    }
}
