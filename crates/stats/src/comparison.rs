//! Comparison of two sides: cells that are better, worse or equal, and the gates that they pass or
//! fail.
//!
//! A side is a stored run or one target of it. Cells are matched by experiment, metric, point,
//! target and link. Targets of one run are compared in pairs of repeats, because their trials are
//! interleaved. Other sides are compared as independent series ([`effect`]). Invariants:
//!
//! - "Better" and "worse" require a difference of more than [`RELEVANT_RATIO`].
//! - At most [`FAMILYWISE_ERROR_PERCENT`] percent of comparisons contain a false statement, for any number of
//!   cells. Each cell gets an equal part of that probability (Bonferroni).
//! - A gate fails only if the whole interval is beyond its bound, never because of a value alone.
//! - A value that the tester limited or disturbed neither passes nor fails a gate.

mod matching;
pub mod words;
mod text;
mod markdown;
mod junit;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth;

pub use junit::{junit, junit_of};
pub use markdown::markdown;
pub use matching::{ComparedRun, Differences};
pub use text::text;

use serde::Serialize;

use crate::conclude::{Conclusion, EQUIVALENT_PERCENT, Estimate, undisturbed};
use crate::direction::{self, Direction};
use crate::effect::{self, Effect};
use crate::gate::{Gate, Outcome};
use crate::series;
use matching::Matched;
use record::{Bound, BoundSide, Cell, Interval, Metric, Point};

/// Family-wise error rate: percent of comparisons of equal sides that may report a difference.
pub const FAMILYWISE_ERROR_PERCENT: f64 = 1.0;

/// Factors of the number of repeats in successive confirmation measurements. These cover what
/// earlier measurements neither passed nor failed.
pub const REMEASURE_FACTORS: [u32; 2] = [6, 12];

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The base side.
    pub base: SideFacts,
    /// The new side.
    pub new: SideFacts,
    /// Whether the trials of both sides are interleaved in one run.
    pub is_interleaved: bool,
    /// Overall verdict.
    pub verdict: Verdict,
    /// Descriptions of the cells that are worse.
    pub worse: Vec<String>,
    /// Cells that both sides have, of metrics with a better direction.
    pub cells: Vec<CellContrast>,
    /// Cells that only the base has.
    pub only_base: Vec<String>,
    /// Cells that only the new side has.
    pub only_new: Vec<String>,
    /// Other differences between the sides.
    pub remarks: Vec<String>,
    /// Percent of comparisons that may contain a false statement.
    pub false_percent: f64,
    /// The run of the confirmation, if gates were measured again.
    pub again: Option<String>,
}

/// Description of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideFacts {
    /// Name on the command line.
    pub name: String,
    /// Start of its run.
    pub created: String,
    /// Version of the program that measured.
    pub version: String,
    /// Command line of the measurement.
    pub command_line: String,
    /// Versions that its targets report, by target.
    pub targets: Vec<(String, Option<String>)>,
}

/// Verdict on a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Significantly worse, by more than 1 %.
    Worse,
    /// Significantly better, by more than 1 %.
    Better,
    /// Significantly within 1 %.
    Same,
    /// The data allow none of these conclusions.
    Inconclusive,
}

/// A metric at a point, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellContrast {
    /// The experiment's id.
    pub experiment: String,
    /// The target, or both if they differ.
    pub target: String,
    /// The link.
    pub link: String,
    /// Position on the experiment's axis.
    pub point: Point,
    /// The metric.
    pub metric: Metric,
    /// The better direction.
    pub better: Direction,
    /// The base's value.
    pub base: f64,
    /// The new side's value.
    pub new: f64,
    /// Number of pairs, or repeats of the shorter side.
    pub n: u32,
    /// New value divided by base value; for losses, the ratio of the shares that arrived. Absent if
    /// undefined.
    pub ratio: Option<f64>,
    /// Its interval at 95 %.
    pub interval: Option<Interval>,
    /// Its interval at the confidence level corrected for the number of cells.
    pub interval_family: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// Reasons to distrust the value, on either side.
    pub doubts: Vec<String>,
    /// The gates that apply to it.
    pub gates: Vec<GatedCell>,
}

/// A gate applied to a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GatedCell {
    /// The gate as written.
    pub gate: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The ratio of the first measurement, if a later one decided.
    pub ratio_first: Option<f64>,
    #[serde(skip)]
    bound: Gate,
}

/// Why two sides cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContrastError {
    /// The parameters differ.
    Parameters(Vec<String>),
    /// They have no common cell (the cells of each).
    NothingInCommon(Vec<String>, Vec<String>),
    /// No cell has the gate's metric (the available metrics).
    NoCell(String, Vec<&'static str>),
}

/// Compares two sides and applies to each cell the gates of its metric. Default gates need not
/// match a cell.
pub fn contrast(
    base: &ComparedRun<'_>,
    new: &ComparedRun<'_>,
    gates: &[Gate],
    are_written: bool,
) -> Result<Comparison, ContrastError> {
    let matched = matching::matched(base, new, gates)?;
    for gate in gates.iter().filter(|_| are_written) {
        let has = |metric: &Metric| *metric == gate.metric;
        let missing = matched.missing.iter().map(|missing| missing.metric);
        if !matched.pairs.iter().map(|(cell, _)| cell.metric).chain(missing).any(|it| has(&it)) {
            let mut known: Vec<&str> =
                matched.pairs.iter().map(|(cell, _)| cell.metric.name()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(ContrastError::NoCell(gate.to_string(), known));
        }
    }
    Ok(judged(&matched, gates, are_written))
}

fn judged(matched: &Matched<'_>, gates: &[Gate], are_written: bool) -> Comparison {
    // Values measured once are auxiliary and are compared only on request.
    let is_looked_at = |cell: &Cell| are_written || cell.n > 1;
    let gates_of = |cell: &Cell| {
        let metric = cell.metric;
        let looked_at = is_looked_at(cell);
        gates.iter().filter(move |gate| looked_at && gate.metric == metric)
    };
    let gated: usize = matched.pairs.iter().map(|(cell, _)| gates_of(cell).count()).sum();
    let levels = ConfidenceLevels { all: level(matched.pairs.len()), gated: level(gated) };
    let cells = matched.pairs.iter().filter_map(|(base, new)| {
        let better = direction::of(base.metric)?;
        Some(judge(matched, (base, new), better, levels, &gates_of(base).collect::<Vec<_>>()))
    });
    let mut cells: Vec<CellContrast> = cells.collect();
    let (only_base, only_new) = matched.one_sided();
    cells.extend(matched.missing.iter().filter(|it| gates_of(it).count() > 0).map(|cell| {
        let open = |gate: &Gate| GatedCell::new(*gate, Outcome::Doubtful);
        let better = direction::of(cell.metric).unwrap_or(Direction::Higher);
        CellContrast {
            doubts: vec![format!("{} has no such result", matched.new.name)],
            gates: gates_of(cell).map(open).collect(),
            new: f64::NAN,
            n: 0,
            ..blank(matched, (cell, cell), better)
        }
    }));
    Comparison {
        base: matched.base.facts(),
        new: matched.new.facts(),
        is_interleaved: matched.is_interleaved,
        verdict: overall(&cells),
        worse: worse(&cells),
        cells,
        only_base,
        only_new,
        remarks: matched.remarks.clone(),
        false_percent: FAMILYWISE_ERROR_PERCENT,
        again: None,
    }
}

/// Confidence levels in percent for single intervals, so that all of them hold together.
#[derive(Clone, Copy)]
struct ConfidenceLevels {
    all: f64,
    gated: f64,
}

/// The confidence level of each of `count` intervals.
fn level(count: usize) -> f64 {
    100.0 - FAMILYWISE_ERROR_PERCENT / count.max(1) as f64
}

fn blank(matched: &Matched<'_>, (base, new): (&Cell, &Cell), better: Direction) -> CellContrast {
    let target = match base.target == new.target {
        true => base.target.clone(),
        false => format!("{} against {}", new.target, base.target),
    };
    CellContrast {
        experiment: base.experiment.clone(),
        target,
        link: matched.base.link_of(base).into(),
        point: base.point.clone(),
        metric: base.metric,
        better,
        base: base.value,
        new: new.value,
        n: 0,
        ratio: None,
        interval: None,
        interval_family: None,
        verdict: Verdict::Inconclusive,
        doubts: Vec::new(),
        gates: Vec::new(),
    }
}

fn judge(
    matched: &Matched<'_>,
    (base, new): (&Cell, &Cell),
    better: Direction,
    levels: ConfidenceLevels,
    gates: &[&Gate],
) -> CellContrast {
    let at = |level| estimate(matched.is_interleaved, base, new, level);
    let (family, plain) = at(levels.all);
    let (gated, _) = at(levels.gated);
    let mut doubts: Vec<String> = Vec::new();
    for (side, cell) in [(matched.base, base), (matched.new, new)] {
        // Records stored without the quality of their values have warnings only.
        let has_quality = !cell.disturbances.is_empty() || cell.bound.is_some();
        let doubtful = cell.warnings.iter().filter(|it| it.makes_doubtful() && !has_quality);
        doubts.extend(doubtful.map(|warning| format!("{}: {}", side.name, warning.sentence())));
    }
    doubts.extend(family.excluded().filter(|_| plain.is_some()).map(|it| it.to_string()));
    doubts.extend(matched.other_load(base, new));
    let put = |gate: &&Gate| {
        let outcome = match gate.conclude(&gated) {
            _ if !doubts.is_empty() => Outcome::Doubtful,
            passed_or_failed => passed_or_failed,
        };
        GatedCell::new(**gate, outcome)
    };
    // A loss decreases when the share that arrives increases.
    let rising = if direction::is_loss(base.metric) { Direction::Higher } else { better };
    let verdict = match doubts.is_empty() {
        true => verdict(&family, rising),
        false => Verdict::Inconclusive,
    };
    let interval = |(low, high): (f64, f64)| {
        let method = plain.and_then(|it| it.interval).map(|it| it.method)?;
        let level_percent = EQUIVALENT_PERCENT;
        Some(Interval { low, high, level_percent, method })
    };
    let wide = |ends| interval(ends).map(|it| Interval { level_percent: levels.all, ..it });
    CellContrast {
        n: plain.map_or(0, |found| found.n),
        ratio: plain.map(|found| found.ratio),
        interval: family.range.and_then(interval),
        interval_family: family.wide.and_then(wide),
        verdict,
        gates: gates.iter().map(put).collect(),
        doubts,
        ..blank(matched, (base, new), better)
    }
}

/// The ratio of two cells with its wide interval at this level, and the same without the quality of
/// its values.
fn estimate(
    is_interleaved: bool,
    base: &Cell,
    new: &Cell,
    level_percent: f64,
) -> (Estimate, Option<Effect>) {
    let [base, new] = [base, new].map(|cell| arrived(&undisturbed(cell)));
    let at = |level| match is_interleaved {
        true => {
            let pairs = series::paired(&new, &base);
            let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|(new, base)| (base, new)).collect();
            effect::of_pairs(&pairs, level)
        }
        false => effect::of_series(&base.samples, &new.samples, level),
    };
    let plain = at(EQUIVALENT_PERCENT);
    let found = Estimate::of_effects(plain, at(level_percent));
    (found.with(&[&new], &[&base]).about_behaviour(), plain)
}

/// Converts a loss ratio to the share that arrived, which has a ratio even without loss. Returns
/// other cells unchanged.
fn arrived(cell: &Cell) -> Cell {
    if !direction::is_loss(cell.metric) {
        return cell.clone();
    }
    let other = |bound: Bound| Bound {
        side: match bound.side {
            BoundSide::Lower => BoundSide::Upper,
            BoundSide::Upper => BoundSide::Lower,
        },
        ..bound
    };
    Cell {
        value: 1.0 - cell.value,
        samples: cell.samples.iter().map(|sample| 1.0 - sample).collect(),
        bound: cell.bound.map(other),
        ..cell.clone()
    }
}

fn verdict(ratio: &Estimate, better: Direction) -> Verdict {
    match (ratio.relevant(), better) {
        (Conclusion::Equivalent, _) => Verdict::Same,
        (Conclusion::Undecided(_), _) => Verdict::Inconclusive,
        (Conclusion::Greater, Direction::Higher) | (Conclusion::Smaller, Direction::Lower) => {
            Verdict::Better
        }
        (Conclusion::Greater, Direction::Lower) | (Conclusion::Smaller, Direction::Higher) => {
            Verdict::Worse
        }
    }
}

/// Descriptions of the cells that are worse.
fn worse(cells: &[CellContrast]) -> Vec<String> {
    let worse = cells.iter().filter(|cell| cell.verdict == Verdict::Worse);
    worse.map(words::named).collect()
}

/// The overall verdict. Doubtful cells are ignored.
fn overall(cells: &[CellContrast]) -> Verdict {
    let trusted = || cells.iter().filter(|cell| cell.doubts.is_empty()).map(|cell| cell.verdict);
    let has = |wanted: Verdict| trusted().any(|verdict| verdict == wanted);
    if has(Verdict::Worse) {
        Verdict::Worse
    } else if has(Verdict::Better) {
        Verdict::Better
    } else if trusted().next().is_some() && trusted().all(|verdict| verdict == Verdict::Same) {
        Verdict::Same
    } else {
        Verdict::Inconclusive
    }
}

impl GatedCell {
    fn new(bound: Gate, outcome: Outcome) -> GatedCell {
        GatedCell { gate: bound.to_string(), outcome, ratio_first: None, bound }
    }

    /// Whether another measurement must decide. A failure requires confirmation.
    fn is_open(&self) -> bool {
        match self.outcome {
            Outcome::Inconclusive => true,
            Outcome::Failed => self.ratio_first.is_none(),
            Outcome::Passed | Outcome::Doubtful => false,
        }
    }
}

impl Comparison {
    /// The worst outcome of all gates; none if no gate applied.
    pub fn outcome(&self) -> Option<Outcome> {
        let gates = self.cells.iter().flat_map(|cell| &cell.gates);
        gates.map(|gated| gated.outcome).min_by_key(|outcome| *outcome as u8)
    }

    /// Number of cells and gates with this outcome.
    pub fn gates_that(&self, outcome: Outcome) -> usize {
        let gates = self.cells.iter().flat_map(|cell| &cell.gates);
        gates.filter(|gated| gated.outcome == outcome).count()
    }

    /// The cells with this verdict.
    pub fn cells_that(&self, verdict: Verdict) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }

    /// Experiments to measure again before a gate may fail: those with a gate that a ratio did not
    /// clearly pass.
    pub fn undecided(&self) -> Vec<String> {
        let open = self.cells.iter().filter(|cell| cell.gates.iter().any(GatedCell::is_open));
        let mut names: Vec<String> = open.map(|cell| cell.experiment.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Decides the open gates with another measurement of the same sides. The earlier measurements
    /// only selected these gates. The error probability is therefore divided among the open gates
    /// alone, and among the maximum number of such measurements.
    pub fn confirm(
        &mut self,
        base: &ComparedRun<'_>,
        new: &ComparedRun<'_>,
    ) -> Result<(), ContrastError> {
        let open: Vec<Gate> = (self.cells.iter().flat_map(|cell| &cell.gates))
            .filter(|gated| gated.is_open())
            .map(|gated| gated.bound)
            .collect();
        let matched = matching::matched(base, new, &open)?;
        let each = level(open.len() * REMEASURE_FACTORS.len());
        let levels = ConfidenceLevels { all: each, gated: each };
        for cell in &mut self.cells {
            if !cell.gates.iter().any(GatedCell::is_open) {
                continue;
            }
            let again = matched.pairs.iter().find(|(base, _)| {
                (base.experiment.as_str(), base.metric) == (&cell.experiment, cell.metric)
                    && base.point == cell.point
                    && matched.base.link_of(base) == cell.link
            });
            let Some((base, new)) = again else {
                cell.doubts.push("the confirmation measurement has no result".into());
                let open = cell.gates.iter_mut().filter(|gated| gated.is_open());
                open.for_each(|gated| gated.outcome = Outcome::Doubtful);
                continue;
            };
            let bounds: Vec<Gate> = cell.gates.iter().map(|gated| gated.bound).collect();
            let bounds: Vec<&Gate> = bounds.iter().collect();
            let mut second = judge(&matched, (base, new), cell.better, levels, &bounds);
            for (second, first) in second.gates.iter_mut().zip(&cell.gates) {
                second.ratio_first = first.ratio_first.or(cell.ratio);
                if !first.is_open() {
                    second.outcome = first.outcome;
                }
            }
            *cell = second;
        }
        self.again = Some(matched.new.record.command_line.clone());
        self.verdict = overall(&self.cells);
        self.worse = worse(&self.cells);
        Ok(())
    }
}

impl std::fmt::Display for ContrastError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ContrastError::Parameters(differing) => write!(
                f,
                "the sides have different parameters: {} (hint: measure both with the same \
                 parameters)",
                differing.join(", ")
            ),
            ContrastError::NothingInCommon(base, new) => write!(
                f,
                "the sides have no result in common: the base has {}, the new side has {} (hint: \
                 name one target of each as RUN:TARGET, or measure the same experiments)",
                few(base),
                few(new)
            ),
            ContrastError::NoCell(gate, known) => write!(
                f,
                "the gate {gate} has no result: both sides have only {}",
                known.join(", ")
            ),
        }
    }
}

/// The first of many items, and their number.
fn few(all: &[String]) -> String {
    const SHOWN: usize = 3;
    match all.len() {
        0 => "none".into(),
        n if n <= SHOWN => all.join(", "),
        n => format!("{} and {} more", all[..SHOWN].join(", "), n - SHOWN),
    }
}

impl std::error::Error for ContrastError {}
