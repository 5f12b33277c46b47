//! One side against another: what got better, worse, stayed the same, and which gates that passes.
//!
//! A side is a stored run, or one target of it. Cells are matched by experiment, metric, point, target and link; where the sides
//! are targets of one run, repeats are compared in pairs, since they took turns, and otherwise series that were measured
//! apart ([`effect`]). Invariants: better and worse are said only of what differs by more than [`RELEVANT_RATIO`]; of all that a
//! comparison says, one false word in [`FALSE_PERCENT`] percent of comparisons is allowed, however many cells there are (each
//! gets an equal part of that: Bonferroni); a gate fails by an interval that lies beyond it, never by a value; what the
//! tester limited or disturbed passes and fails nothing.

mod matching;
/// What it found, in words.
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
pub use matching::{Differences, Side};
pub use text::text;

use serde::Serialize;

use crate::conclude::{Conclusion, EQUIVALENT_PERCENT, Estimate, undisturbed};
use crate::direction::{self, Direction};
use crate::effect::{self, Effect};
use crate::gate::Gate;
use crate::record::{Bound, BoundSide, Cell, Interval, Metric, Point};
use matching::Matched;

/// In so many percent of comparisons of what does not differ, something may be said to.
pub const FALSE_PERCENT: f64 = 1.0;

/// How many times as many repeats further measurements make of what no measurement before them passed or failed.
pub const REPEATED_BY: [u32; 2] = [6, 12];

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// What is compared with.
    pub base: SideFacts,
    /// What is compared.
    pub new: SideFacts,
    /// Whether the two took turns in one run.
    pub is_interleaved: bool,
    /// All of it in a word.
    pub verdict: Verdict,
    /// Each cell that is worse, in words.
    pub worse: Vec<String>,
    /// What both sides have and has a better and a worse.
    pub cells: Vec<CellContrast>,
    /// What the base alone has.
    pub only_base: Vec<String>,
    /// What the new side alone has.
    pub only_new: Vec<String>,
    /// In what the sides differ otherwise.
    pub remarks: Vec<String>,
    /// Comparisons out of a hundred that may say something false.
    pub false_percent: f64,
    /// The run of the repetition, where gates were measured again.
    pub again: Option<String>,
}

/// A side, for its readers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideFacts {
    /// As it was asked for.
    pub name: String,
    /// When its run began.
    pub created: String,
    /// The version that measured.
    pub version: String,
    /// The command that measured.
    pub command_line: String,
    /// Versions that its targets state, by target.
    pub targets: Vec<(String, Option<String>)>,
}

/// What can be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Worse by more than 1 %, beyond chance.
    Worse,
    /// Better by more than 1 %, beyond chance.
    Better,
    /// Within 1 %, beyond chance.
    Same,
    /// None of these can be concluded.
    Inconclusive,
}

/// A metric at a point, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellContrast {
    /// The experiment's id.
    pub experiment: String,
    /// The target, or both where they differ.
    pub target: String,
    /// How it was joined.
    pub link: String,
    /// Where on the experiment's axis.
    pub point: Point,
    /// What was measured.
    pub metric: Metric,
    /// Which way is better.
    pub better: Direction,
    /// The base's value.
    pub base: f64,
    /// The new side's.
    pub new: f64,
    /// Pairs, or repeats of the shorter side.
    pub n: u32,
    /// The new over the base; of losses, of the shares that arrived. Absent where there is no ratio.
    pub ratio: Option<f64>,
    /// Its interval at 95 %.
    pub interval: Option<Interval>,
    /// Its interval at the level that the verdict needs among so many.
    pub interval_family: Option<Interval>,
    /// What can be said of it.
    pub verdict: Verdict,
    /// Why it is not to be trusted, on either side.
    pub doubts: Vec<String>,
    /// The gates that it is put to.
    pub gates: Vec<Gated>,
}

/// A gate and a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gated {
    /// The gate, as it is written.
    pub gate: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The ratio of the first measurement, where a second one decided.
    pub ratio_first: Option<f64>,
    #[serde(skip)]
    bound: Gate,
}

/// What came of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The interval lies beyond the gate.
    Failed,
    /// What it rests on is irregular, limited by the tester, or missing on one side.
    Doubtful,
    /// The interval contains the gate's bound: neither failed nor shown to hold.
    Inconclusive,
    /// It holds.
    Passed,
}

/// Why two sides cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContrastError {
    /// They were measured with other parameters.
    Parameters(Vec<String>),
    /// They have no cell in common: what each has.
    NothingInCommon(Vec<String>, Vec<String>),
    /// No cell has this gate's metric: which metrics there are.
    NoCell(String, Vec<&'static str>),
}

/// Compares, and puts each cell to the gates of its metric; those that nobody wrote need not have a cell.
pub fn contrast(
    base: &Side<'_>,
    new: &Side<'_>,
    gates: &[Gate],
    are_written: bool,
) -> Result<Contrast, ContrastError> {
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

fn judged(matched: &Matched<'_>, gates: &[Gate], are_written: bool) -> Contrast {
    // What is measured once only serves something else, unless somebody says that it has to be looked at.
    let is_looked_at = |cell: &Cell| are_written || cell.n > 1;
    let gates_of = |cell: &Cell| {
        let metric = cell.metric;
        let looked_at = is_looked_at(cell);
        gates.iter().filter(move |gate| looked_at && gate.metric == metric)
    };
    let gated: usize = matched.pairs.iter().map(|(cell, _)| gates_of(cell).count()).sum();
    let levels = Levels { all: level(matched.pairs.len()), gated: level(gated) };
    let cells = matched.pairs.iter().filter_map(|(base, new)| {
        let better = direction::of(base.metric)?;
        Some(judge(matched, (base, new), better, levels, &gates_of(base).collect::<Vec<_>>()))
    });
    let mut cells: Vec<CellContrast> = cells.collect();
    let (only_base, only_new) = matched.one_sided();
    cells.extend(matched.missing.iter().filter(|it| gates_of(it).count() > 0).map(|cell| {
        let open = |gate: &Gate| Gated::new(*gate, Outcome::Doubtful);
        let better = direction::of(cell.metric).unwrap_or(Direction::Higher);
        CellContrast {
            doubts: vec![format!("{} has no such result", matched.new.name)],
            gates: gates_of(cell).map(open).collect(),
            new: f64::NAN,
            n: 0,
            ..blank(matched, (cell, cell), better)
        }
    }));
    Contrast {
        base: matched.base.facts(),
        new: matched.new.facts(),
        is_interleaved: matched.is_interleaved,
        verdict: overall(&cells),
        worse: worse(&cells),
        cells,
        only_base,
        only_new,
        remarks: matched.remarks.clone(),
        false_percent: FALSE_PERCENT,
        again: None,
    }
}

/// Levels, in percent, at which single intervals have to hold so that all of them do.
#[derive(Clone, Copy)]
struct Levels {
    all: f64,
    gated: f64,
}

/// The level for each of so many.
fn level(count: usize) -> f64 {
    100.0 - FALSE_PERCENT / count.max(1) as f64
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
    levels: Levels,
    gates: &[&Gate],
) -> CellContrast {
    let at = |level| estimate(matched.is_interleaved, base, new, level);
    let (family, plain) = at(levels.all);
    let (gated, _) = at(levels.gated);
    let mut doubts: Vec<String> = Vec::new();
    for (side, cell) in [(matched.base, base), (matched.new, new)] {
        // Records that were stored without the quality of their values have warnings only.
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
        Gated::new(**gate, outcome)
    };
    // What was lost gets less when more arrives.
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

/// The ratio of two cells, whose wide range is at this level; and the same without the quality of its values.
fn estimate(
    is_interleaved: bool,
    base: &Cell,
    new: &Cell,
    level_percent: f64,
) -> (Estimate, Option<Effect>) {
    let [base, new] = [base, new].map(|cell| arrived(&undisturbed(cell)));
    let at = |level| match is_interleaved {
        true => {
            let pairs = crate::derive::paired(&new, &base);
            let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|(new, base)| (base, new)).collect();
            effect::of_pairs(&pairs, level)
        }
        false => effect::of_series(&base.samples, &new.samples, level),
    };
    let plain = at(EQUIVALENT_PERCENT);
    let found = Estimate::of_effects(plain, at(level_percent));
    (found.with(&[&new], &[&base]).about_behaviour(), plain)
}

/// A share of lost frames as the share that arrived, which has a ratio where nothing is lost; others as they are.
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

/// Each cell that is worse, in words.
fn worse(cells: &[CellContrast]) -> Vec<String> {
    let worse = cells.iter().filter(|cell| cell.verdict == Verdict::Worse);
    worse.map(words::named).collect()
}

/// The word for all of them: what is doubtful has none.
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

impl Gated {
    fn new(bound: Gate, outcome: Outcome) -> Gated {
        Gated { gate: bound.to_string(), outcome, ratio_first: None, bound }
    }

    /// Whether a further measurement has to decide: a failure has to be confirmed by one.
    fn is_open(&self) -> bool {
        match self.outcome {
            Outcome::Inconclusive => true,
            Outcome::Failed => self.ratio_first.is_none(),
            Outcome::Passed | Outcome::Doubtful => false,
        }
    }
}

impl Contrast {
    /// The worst that came of any gate; none where no cell was put to one.
    pub fn outcome(&self) -> Option<Outcome> {
        let gates = self.cells.iter().flat_map(|cell| &cell.gates);
        gates.map(|gated| gated.outcome).min_by_key(|outcome| *outcome as u8)
    }

    /// How many cells and gates came to this.
    pub fn gates_that(&self, outcome: Outcome) -> usize {
        let gates = self.cells.iter().flat_map(|cell| &cell.gates);
        gates.filter(|gated| gated.outcome == outcome).count()
    }

    /// The cells of which this is said.
    pub fn cells_that(&self, verdict: Verdict) -> usize {
        self.cells.iter().filter(|cell| cell.verdict == verdict).count()
    }

    /// The experiments that have to be measured again before a gate may fail: those with a gate that a ratio did
    /// not clearly pass.
    pub fn undecided(&self) -> Vec<String> {
        let open = self.cells.iter().filter(|cell| cell.gates.iter().any(Gated::is_open));
        let mut names: Vec<String> = open.map(|cell| cell.experiment.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Lets a further measurement of the same sides decide what those before it did not pass. They only chose what to look
    /// at again, so that the share of false words is divided among that alone, and among as many such measurements as there
    /// may be.
    pub fn confirm(&mut self, base: &Side<'_>, new: &Side<'_>) -> Result<(), ContrastError> {
        let open: Vec<Gate> = (self.cells.iter().flat_map(|cell| &cell.gates))
            .filter(|gated| gated.is_open())
            .map(|gated| gated.bound)
            .collect();
        let matched = matching::matched(base, new, &open)?;
        let each = level(open.len() * REPEATED_BY.len());
        let levels = Levels { all: each, gated: each };
        for cell in &mut self.cells {
            if !cell.gates.iter().any(Gated::is_open) {
                continue;
            }
            let again = matched.pairs.iter().find(|(base, _)| {
                (base.experiment.as_str(), base.metric) == (&cell.experiment, cell.metric)
                    && base.point == cell.point
                    && matched.base.link_of(base) == cell.link
            });
            let Some((base, new)) = again else {
                cell.doubts.push("it has no result when measured again".into());
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
                "the sides were measured differently: {}; measure both alike",
                differing.join(", ")
            ),
            ContrastError::NothingInCommon(base, new) => write!(
                f,
                "the sides have no result in common: the one has {}, the other {}; name one target of each \
                 (RUN:TARGET), or measure the same experiments",
                few(base),
                few(new)
            ),
            ContrastError::NoCell(gate, known) => write!(
                f,
                "the gate {gate} has nothing to look at: what both sides have is {}",
                known.join(", ")
            ),
        }
    }
}

/// The first of many, and how many there are.
fn few(all: &[String]) -> String {
    const SHOWN: usize = 3;
    match all.len() {
        0 => "none".into(),
        n if n <= SHOWN => all.join(", "),
        n => format!("{} and {} more", all[..SHOWN].join(", "), n - SHOWN),
    }
}

impl std::error::Error for ContrastError {}
