//! A claim and what it is put to: what every study's claims are judged with.
//!
//! Invariant: a line names the targets that it is about, how the claim was read, and the numbers that
//! decided.

use crate::links;
use crate::record::{Cell, Claim, ClaimVerdict, Metric, Record, Target, Verdict, Warning};

/// A claim and what it is put to.
pub(super) struct Case<'a> {
    pub(super) record: &'a Record,
    pub(super) experiment: &'a str,
    pub(super) claim: &'a Claim,
}

/// How a claim was read, what was found, and the answer.
pub(super) struct Finding {
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

    pub(super) fn line(&self, targets: Vec<String>, found: Finding) -> ClaimVerdict {
        ClaimVerdict {
            claim: self.claim.clone(),
            numbers: found.numbers + &self.across_links(&targets),
            targets,
            verdict: found.verdict,
            reading: found.reading,
        }
    }

    /// What has to be known where a line is about targets that were not joined alike.
    fn across_links(&self, targets: &[String]) -> String {
        let own: Vec<&str> = targets.iter().map(|name| links::of(self.record, name)).collect();
        if own.windows(2).all(|pair| pair[0] == pair[1]) {
            return String::new();
        }
        let each = targets.iter().zip(own).map(|(name, link)| format!("{name} over {link}"));
        format!(" (links differ: {})", each.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn nothing_measured(&self) -> ClaimVerdict {
        let why = format!(
            "no target, or no pair of one family, is what it speaks of ({})",
            self.claim.subject
        );
        let verdict = Verdict::CannotTell(why);
        self.line(Vec::new(), Finding { reading: String::new(), numbers: String::new(), verdict })
    }

    pub(super) fn cells(&self, target: &str, metric: Metric) -> Vec<&'a Cell> {
        let cells = self.record.cells.iter();
        cells
            .filter(|cell| {
                cell.experiment == self.experiment && cell.target == target && cell.metric == metric
            })
            .collect()
    }

    pub(super) fn cell(&self, target: &str, metric: Metric, x: f64) -> Option<&'a Cell> {
        self.cells(target, metric).into_iter().find(|cell| cell.point.value == x)
    }

    /// The value that the claim gives.
    pub(super) fn claimed(&self) -> Option<f64> {
        self.claim.value.parse().ok()
    }
}

pub(super) fn is_limited(cell: &Cell) -> bool {
    cell.warnings.iter().any(|warning| matches!(warning, Warning::TesterLimited { .. }))
}

/// Whether a range lies inside a band, outside it, or neither.
pub(super) fn within(low: f64, high: f64, least: f64, most: f64) -> Verdict {
    match () {
        () if low >= least && high <= most => Verdict::Holds,
        () if high < least || low > most => Verdict::DoesNot,
        () => Verdict::CannotTell("the interval reaches over the limit".into()),
    }
}

/// The verdict on a claim about several places: one that does not hold decides, then one that
/// cannot be told.
pub(super) fn all(verdicts: impl Iterator<Item = Verdict>, nothing: &str) -> Verdict {
    let mut seen = None;
    for verdict in verdicts {
        seen = match (seen, verdict) {
            (_, Verdict::DoesNot) => return Verdict::DoesNot,
            (None | Some(Verdict::Holds), verdict) => Some(verdict),
            (earlier, _) => earlier,
        };
    }
    seen.unwrap_or(Verdict::CannotTell(nothing.into()))
}
