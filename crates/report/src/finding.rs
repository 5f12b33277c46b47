//! What a run shows: typed facts, and the sentences of reports that state them.
//!
//! A [`Finding`] is a fact with its metric, targets, values, intervals and the conclusions of
//! `stats::conclude`. `results`, `rules`, `reliability` and `next` find facts, and `compose` makes
//! the sentence of each. Invariants:
//! - Only `compose` assembles sentences. Warnings and reasons are clauses of their types in `record`.
//! - A sentence states numbers with their intervals, and what contradicts them.

mod compose;
mod next;
mod reliability;
mod results;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use compose::{
    claim_numbers, claim_setting, claim_targets, effort, listed, listed_targets, share_in_words,
    statement,
};
pub(crate) use reliability::{account_of, caveats, claims, confidence, first_look};
pub(crate) use results::{compared_metric, main_result, measured, results};

use crate::analysis::failed::{self, Failures};
use next::Next;
use record::{
    Calibration, Cell, Effort, Experiment, Limit, Metric, Point, Reason, Record, Warning,
};
use reliability::{Account, Agents, Reliability};
use rules::Barrier;
use stats::conclude::{Conclusion, Estimate};

/// A fact that reports state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding<'a> {
    /// What one or several runs measured.
    Measured(Measured<'a>),
    /// Findings of one of several experiments, with its title or only its id.
    Of { experiment: &'a Experiment, is_titled: bool, findings: Vec<Finding<'a>> },
    /// Nothing follows, because the tester was descheduled in so many of all trials.
    NotUsable { disturbed: u64, of: u64 },
    /// Trials or the run failed.
    Failed(Failures),
    /// The only value at a place, or without a target, the value of every target.
    Single { place: Place<'a>, target: Option<String>, cell: &'a Cell },
    /// The highest and the lowest value at a place: first what is decided, then the better one.
    Extremes { place: Place<'a>, ends: [End<'a>; 2] },
    /// The lowest and the highest value at a place whose order is undecided.
    Unordered { place: Place<'a>, ends: [Value<'a>; 2], reason: Reason },
    /// Values at a place that are all below their resolution.
    Unresolved { place: Place<'a>, values: Vec<Value<'a>> },
    /// The ratio of two values: of two targets, or of one target at two points.
    Difference(Box<Difference<'a>>),
    /// Whether switches acknowledge rules before they act, the earliest acknowledgement first.
    Barriers(Vec<Barrier<'a>>),
    /// When the last of so many rules acts on each switch.
    Activation { rules: f64, values: Vec<Value<'a>> },
    /// The ranks of targets among the switches of a study: by each criterion a rank.
    Ranks(Vec<(String, Vec<(String, String)>)>),
    /// Comparisons in which the more programmable target costs more, less, or neither is decided.
    Costs([usize; 3]),
    /// What the values rest on.
    Reliability(Reliability),
    /// What limited the rates of an experiment, on targets at so many of all points.
    Limited { experiment: &'a str, limit: Limit, targets: Vec<(&'a str, usize, usize)> },
    /// The smallest and the largest number of repeats of a value.
    Repeats([u32; 2]),
    /// Where the frames went.
    Account(Account),
    /// What SNMP agents counted.
    Agents(Agents<'a>),
    /// What the tester carries without a target, and targets that forwarded more.
    Calibration { found: &'a Calibration, above: Vec<&'a str> },
    /// Claims that are confirmed, contradicted and undecided, and those that the construction of a
    /// model decides.
    Claims([usize; 4]),
    /// A warning, with its scope and the points that it concerns, if not all.
    Warned { about: String, points: Vec<&'a Point>, warning: Warning },
    /// The effort is quick: repeats, and seconds of a trial.
    FirstLook { repeats: f64, seconds: f64 },
    /// What to do next.
    Next(Next),
}

impl<'a> Finding<'a> {
    /// The findings of an experiment, or the finding itself.
    fn parts(self) -> Vec<Finding<'a>> {
        match self {
            Finding::Of { findings, .. } => findings,
            finding => vec![finding],
        }
    }
}

/// What one or several runs measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured<'a> {
    pub(crate) runs: usize,
    /// Experiments, or a study with the number of its experiments if there are many.
    pub(crate) experiments: Vec<(&'a str, Option<usize>)>,
    /// The title of the only experiment.
    pub(crate) title: Option<&'a str>,
    pub(crate) targets: Vec<(&'a str, Vec<&'a str>)>,
    pub(crate) trials: usize,
    /// The effort, if it is the same in all runs.
    pub(crate) effort: Option<Effort>,
    /// Runs in simulated time.
    pub(crate) simulated: usize,
}

/// A metric at a point of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place<'a> {
    /// The variable of the experiment.
    pub(crate) x_name: &'a str,
    pub(crate) point: &'a Point,
    pub(crate) metric: Metric,
}

/// A value of a target, by its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value<'a> {
    pub(crate) target: String,
    pub(crate) cell: &'a Cell,
}

/// The highest or the lowest of several values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End<'a> {
    pub(crate) is_highest: bool,
    /// The value with those equivalent to it, or the targets that may have it and why it is open.
    pub(crate) found: Result<Vec<Value<'a>>, (Vec<String>, Reason)>,
}

/// The ratio of a value to a smaller one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference<'a> {
    pub(crate) of: Value<'a>,
    pub(crate) base: Value<'a>,
    pub(crate) x_name: &'a str,
    pub(crate) ratio: Estimate,
    pub(crate) conclusion: Conclusion,
}

/// The verdict on a run, in at most five findings: what was measured, the main result, the most
/// important difference, how reliable they are, and what to do next. A failure, or that the run is
/// not usable, comes first and replaces the difference.
pub(crate) fn verdict(record: &Record) -> Vec<Finding<'_>> {
    let broken = failed::failures(record).map(Finding::Failed).or(results::unusable(record));
    let main = results::main(record);
    let (result, difference) = main.map_or((None, None), |(result, it)| (Some(result), it));
    let next = Finding::Next(next::of(record, difference.as_deref()));
    let is_stated = broken.is_none() && result.as_ref().is_some_and(Finding::has_order);
    let found = [
        broken,
        Some(Finding::Measured(measured(&[record]))),
        result,
        difference.filter(|_| is_stated).map(Finding::Difference),
        reliability::reliability(record).map(Finding::Reliability),
        Some(next),
    ];
    found.into_iter().flatten().collect()
}

/// The result of a run, how reliable it is, and its warnings in sentences, for a terminal.
pub fn sentences(record: &Record) -> Vec<String> {
    let is_shown = |it: &Finding<'_>| !matches!(it, Finding::Measured(_) | Finding::Next(_));
    let found = verdict(record).into_iter().filter(is_shown).chain(caveats(record));
    found.map(|it| it.sentence().to_string()).collect()
}

/// The failures of a run in sentences; none if nothing failed.
pub fn failure(record: &Record) -> Option<String> {
    failed::failures(record).map(|it| Finding::Failed(it).sentence().to_string())
}
