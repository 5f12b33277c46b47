//! What may be concluded from measured values: the only place that decides it.
//!
//! A value, a ratio or a difference of two is an [`Estimate`]: ranges that contain the true value, and what forbids a
//! conclusion. [`conclude`] places an estimate relative to a band. Claims, rankings, headlines, gates and fits call it.
//!
//! Invariants:
//! - *Different* needs an interval of [`DIFFERENT_PERCENT`] that lies outside the band; *equivalent* needs one of
//!   [`EQUIVALENT_PERCENT`] that lies inside.
//! - Two values differ only if their ratio lies beyond the smallest relevant difference, [`RELEVANT_RATIO`].
//! - Of several places one that is *different* by chance is as likely as with one place: [`Estimate::among`].
//! - A disturbed repeat counts for nothing. If half of the repeats or more are disturbed, the value decides nothing.
//! - A bound decides only on its closed side. A value below its resolution decides no ratio.
//! - Simulated time decides nothing about rates and times.
//! - What probes prove in a quorum of repeats ([`QUORUM`]) is decided, however wide the interval is.

use crate::effect::{self, Effect};
use crate::interval::{self, LEVEL_PERCENT, LEVEL_PERCENT_HIGH};
use crate::series;
use record::{
    Bound, BoundCause, BoundSide, Cell, Disturbance, DisturbanceCause, Exclusion, Interval, Metric,
    Reason,
};

#[cfg(test)]
mod tests;

/// The smallest difference that counts, as a share of the smaller value.
pub const RELEVANT_RATIO: f64 = 0.01;

/// The confidence of the interval by which two values are different, in percent.
pub const DIFFERENT_PERCENT: f64 = LEVEL_PERCENT_HIGH;

/// The confidence of the interval by which a value lies inside a band, in percent.
pub const EQUIVALENT_PERCENT: f64 = LEVEL_PERCENT;

/// The share of undisturbed repeats that have to prove the same, two repeats at least.
pub const QUORUM: f64 = 2.0 / 3.0;

/// Higher confidences, in percent, for quantities at several places: two, five, ten, and so on.
const LEVELS_OF_MANY: [f64; 8] = [99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995, 99.999];

/// Where a quantity lies relative to a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Above the band: the first of two values is greater.
    Greater,
    /// Below the band: the first of two values is smaller.
    Smaller,
    /// Inside the band: two values are equivalent.
    Equivalent,
    /// None of these can be concluded.
    Undecided(Reason),
}

/// A quantity as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value itself.
    pub value: f64,
    /// Undisturbed repeats, or pairs of them, that it rests on.
    pub n: u32,
    /// Range with [`EQUIVALENT_PERCENT`], resolution and bounds included; absent below two repeats.
    pub range: Option<(f64, f64)>,
    /// Range with [`DIFFERENT_PERCENT`], likewise.
    pub wide: Option<(f64, f64)>,
    /// The interval of the repeats alone with [`EQUIVALENT_PERCENT`], for readers.
    pub interval: Option<Interval>,
    /// Ranges with [`LEVELS_OF_MANY`], likewise.
    ranges_of_many: [Option<(f64, f64)>; LEVELS_OF_MANY.len()],
    /// Whether a bound leaves the lower and the upper end open.
    open_ends: [bool; 2],
    /// Why nothing is concluded, whatever the ranges are.
    excluded: Option<Reason>,
    /// Why a range is open or wide, where that is not only scatter.
    open: Option<Reason>,
}

/// Places an estimate relative to the band from `least` to `most`.
pub fn conclude(estimate: &Estimate, least: f64, most: f64) -> Conclusion {
    if let Some(reason) = estimate.excluded {
        return Conclusion::Undecided(reason);
    }
    let is_inside = |(low, high): (f64, f64)| low >= least && high <= most;
    match (estimate.wide, estimate.range) {
        (Some((low, _)), _) if low > most => Conclusion::Greater,
        (Some((_, high)), _) if high < least => Conclusion::Smaller,
        (_, Some(range)) if is_inside(range) => Conclusion::Equivalent,
        (None, None) => Conclusion::Undecided(Reason::MeasuredOnce),
        _ => Conclusion::Undecided(estimate.open.unwrap_or(Reason::Overlap)),
    }
}

/// Compares two values by the ratio of their repeats: greater, smaller or equivalent within [`RELEVANT_RATIO`].
pub fn compare(of: &Cell, base: &Cell) -> Conclusion {
    Estimate::ratio(of, base).relevant()
}

/// Whether a switch acknowledges rules before they act: *greater* if so, *smaller* or *equivalent* if not.
///
/// The values are the share of rules that probes prove premature, and the time from the barrier reply until the last rule
/// acts. A probe that left after the reply and met the old rule proves a premature rule, so that the share is a lower bound.
/// The order of a reply and of a rule is behaviour, which simulated time shows too.
pub fn acknowledges_early(premature: Option<&Cell>, gap: Option<&Cell>) -> Conclusion {
    let of = |cell: &Cell| Estimate::of(cell).about_behaviour();
    let share = premature.map(of);
    let samples = premature.map_or(Vec::new(), |cell| UndisturbedRepeats::of(cell).samples);
    let proofs = samples.iter().filter(|share| **share > 0.0).count();
    let is_quorum = proofs >= 2 && proofs as f64 >= QUORUM * samples.len() as f64;
    if is_quorum && share.is_some_and(|share| share.excluded.is_none()) {
        return Conclusion::Greater;
    }
    let by_share = share.map(|it| it.against(0.0));
    let by_time = gap.map(|gap| of(gap).against(0.0));
    match (by_share, by_time) {
        (Some(Conclusion::Greater), _) | (_, Some(Conclusion::Greater)) => Conclusion::Greater,
        (_, Some(Conclusion::Smaller)) if proofs == 0 => Conclusion::Smaller,
        (Some(found), _) | (None, Some(found)) => found,
        (None, None) => Conclusion::Undecided(Reason::NoPair),
    }
}

impl Estimate {
    /// A value by itself.
    pub fn of(cell: &Cell) -> Estimate {
        let kept = UndisturbedRepeats::of(cell);
        let value = kept.value().unwrap_or(cell.value);
        let each = cell.resolution.unwrap_or(0.0);
        let range = |level| kept.interval(level).map(|it| (it.low - each, it.high + each));
        let mut found = Estimate {
            value,
            n: kept.samples.len() as u32,
            range: range(EQUIVALENT_PERCENT),
            wide: range(DIFFERENT_PERCENT),
            ranges_of_many: LEVELS_OF_MANY.map(range),
            open_ends: [false; 2],
            interval: kept.interval(EQUIVALENT_PERCENT),
            excluded: excluded(cell).or(kept.excluded),
            open: is_below_resolution(cell, value).then_some(BELOW_RESOLUTION),
        };
        if let Some(bound) = cell.bound.filter(|bound| bound.cause != BoundCause::Resolution) {
            found.open(bound, [f64::NEG_INFINITY, f64::INFINITY]);
        }
        found
    }

    /// A number without an error.
    pub fn exact(value: f64) -> Estimate {
        let ends = Some((value, value));
        Estimate {
            value,
            n: 1,
            range: ends,
            wide: ends,
            interval: None,
            ranges_of_many: [ends; LEVELS_OF_MANY.len()],
            excluded: None,
            open: None,
            open_ends: [false; 2],
        }
    }

    /// The ratio of two values, repeat by repeat.
    pub fn ratio(of: &Cell, base: &Cell) -> Estimate {
        let pairs = series::paired(&undisturbed(of), &undisturbed(base));
        let mut found = Estimate::ratio_of(&pairs, of, base);
        if found.n == 0 {
            // For readers: the value of all repeats, from which nothing is concluded.
            found.value = Estimate::of_pairs(&series::paired(of, base)).value;
        }
        found
    }

    /// The ratio of pairs that were computed from two values; the quality is that of the values.
    pub fn ratio_of(pairs: &[(f64, f64)], of: &Cell, base: &Cell) -> Estimate {
        Estimate::of_pairs(pairs).with(&[of], &[base])
    }

    /// The ratio `value / base` of pairs, without regard to the quality of what they come from.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Estimate {
        let turned: Vec<(f64, f64)> = pairs.iter().map(|&(value, base)| (base, value)).collect();
        let at = |level| effect::of_pairs(&turned, level);
        let found = Estimate::of_effects(at(EQUIVALENT_PERCENT), at(DIFFERENT_PERCENT));
        Estimate { ranges_of_many: LEVELS_OF_MANY.map(|level| ends(at(level))), ..found }
    }

    /// A ratio that was found at both levels, [`EQUIVALENT_PERCENT`] and [`DIFFERENT_PERCENT`]. It has no range for
    /// [several places](Estimate::among).
    pub fn of_effects(plain: Option<Effect>, wide: Option<Effect>) -> Estimate {
        Estimate {
            value: plain.map_or(f64::NAN, |it| it.ratio),
            n: plain.map_or(0, |it| it.n),
            range: ends(plain),
            wide: ends(wide),
            ranges_of_many: [None; LEVELS_OF_MANY.len()],
            open_ends: [false; 2],
            interval: plain.and_then(|it| it.interval),
            excluded: plain.is_none().then_some(Reason::NoPair),
            open: None,
        }
    }

    /// A quantity that was computed from these cells and has one interval at [`DIFFERENT_PERCENT`] or more, such as
    /// a correlation or a slope. It has no range for [several places](Estimate::among).
    pub fn of_interval(
        value: f64,
        n: u32,
        interval: Option<Interval>,
        cells: &[&Cell],
    ) -> Estimate {
        let ends = interval.map(|it| (it.low, it.high));
        let excluded = cells.iter().find_map(|cell| excluded(cell));
        Estimate {
            value,
            n,
            range: ends,
            wide: ends,
            ranges_of_many: [None; LEVELS_OF_MANY.len()],
            open_ends: [false; 2],
            interval,
            excluded,
            open: None,
        }
    }

    /// The same ratio with the quality of the values that it was computed from: those above and those below the line.
    #[must_use]
    pub fn with(mut self, of: &[&Cell], base: &[&Cell]) -> Estimate {
        let all = || of.iter().chain(base).copied();
        self.excluded = all()
            .find_map(|cell| excluded(cell).or(UndisturbedRepeats::of(cell).excluded))
            .or(self.excluded);
        if all().any(|cell| is_below_resolution(cell, cell.value)) {
            self.excluded = self.excluded.or(Some(BELOW_RESOLUTION));
        }
        // The largest part by which a value may be off, for the resolution of each.
        let part = |cells: &[&Cell]| {
            let parts = cells.iter().filter_map(|cell| Some(cell.resolution? / cell.value.abs()));
            parts.fold(0.0, |most: f64, part| if part.is_nan() { most } else { most.max(part) })
        };
        let (of_part, base_part) = (part(of), part(base));
        let wider = |(low, high): (f64, f64)| {
            let low = low * (1.0 - of_part).max(0.0) / (1.0 + base_part);
            let room = 1.0 - base_part;
            let high = if room > 0.0 { high * (1.0 + of_part) / room } else { f64::INFINITY };
            (low, high)
        };
        self.change_ranges(wider);
        for (cells, is_base) in [(of, false), (base, true)] {
            for bound in cells.iter().filter_map(|cell| cell.bound) {
                let side = match (bound.side, is_base) {
                    (BoundSide::Lower, false) | (BoundSide::Upper, true) => BoundSide::Lower,
                    (BoundSide::Upper, false) | (BoundSide::Lower, true) => BoundSide::Upper,
                };
                self.open(Bound { side, ..bound }, [0.0, f64::INFINITY]);
                self.open = Some(Reason::Bounded { bound });
            }
        }
        self
    }

    /// The difference of two values, repeat by repeat.
    pub fn difference(of: &Cell, base: &Cell) -> Estimate {
        let pairs = series::paired(&undisturbed(of), &undisturbed(base));
        let differences: Vec<f64> = pairs.iter().map(|(value, base)| value - base).collect();
        let each = of.resolution.unwrap_or(0.0) + base.resolution.unwrap_or(0.0);
        let at = |level| {
            let found = interval::of_mean(&differences, level)?;
            Some((found.low - each, found.high + each))
        };
        let flaws = [of, base]
            .into_iter()
            .find_map(|cell| excluded(cell).or(UndisturbedRepeats::of(cell).excluded));
        let value = series::mean(&differences);
        let all = || {
            series::paired(of, base).iter().map(|(value, base)| value - base).collect::<Vec<_>>()
        };
        let mut found = Estimate {
            // For readers: without an undisturbed pair, the value of all repeats.
            value: value.or_else(|| series::mean(&all())).unwrap_or(f64::NAN),
            n: differences.len() as u32,
            range: at(EQUIVALENT_PERCENT),
            wide: at(DIFFERENT_PERCENT),
            ranges_of_many: LEVELS_OF_MANY.map(at),
            open_ends: [false; 2],
            interval: interval::of_mean(&differences, EQUIVALENT_PERCENT),
            excluded: flaws.or(value.is_none().then_some(Reason::NoPair)),
            open: value.filter(|it| each > 0.0 && it.abs() <= each).map(|_| BELOW_RESOLUTION),
        };
        for (cell, is_base) in [(of, false), (base, true)] {
            if let Some(bound) = cell.bound.filter(|it| it.cause != BoundCause::Resolution) {
                let is_lower = (bound.side == BoundSide::Lower) != is_base;
                let side = if is_lower { BoundSide::Lower } else { BoundSide::Upper };
                found.open(Bound { side, ..bound }, [f64::NEG_INFINITY, f64::INFINITY]);
            }
        }
        found
    }

    /// The same about behaviour (counts, order, what comes first), which simulated time shows as well as a clock.
    #[must_use]
    pub fn about_behaviour(self) -> Estimate {
        let is_simulated = |reason: &Reason| {
            matches!(reason, Reason::Excluded { exclusion: Exclusion::Simulated })
        };
        Estimate { excluded: self.excluded.filter(|reason| !is_simulated(reason)), ..self }
    }

    /// The same through a function that rises or falls throughout, such as a change of unit.
    #[must_use]
    pub fn map(mut self, read: impl Fn(f64) -> f64) -> Estimate {
        let ends = |(low, high): (f64, f64)| {
            let (low, high) = (read(low), read(high));
            (low.min(high), low.max(high))
        };
        self.change_ranges(ends);
        self.interval = self.interval.map(|it| {
            let (low, high) = ends((it.low, it.high));
            Interval { low, high, ..it }
        });
        if read(2.0) < read(1.0) {
            self.open_ends.reverse();
        }
        Estimate { value: read(self.value), ..self }
    }

    /// The same as one of so many places: the ranges have confidences for which a conclusion at any of the places is as
    /// likely to be wrong as one at a single place (Bonferroni).
    #[must_use]
    pub fn among(self, places: usize) -> Estimate {
        let known = [(EQUIVALENT_PERCENT, self.range), (DIFFERENT_PERCENT, self.wide)];
        let many = LEVELS_OF_MANY.into_iter().zip(self.ranges_of_many);
        let ranges: Vec<_> = known.into_iter().chain(many).collect();
        let at = |level: f64| {
            let error = (100.0 - level) / places as f64;
            let range = ranges.iter().find(|(level, _)| 100.0 - level <= error * (1.0 + 1e-9));
            range.or(ranges.last()).and_then(|(_, range)| *range)
        };
        Estimate { range: at(EQUIVALENT_PERCENT), wide: at(DIFFERENT_PERCENT), ..self }
    }

    /// Whether a bound leaves the lower and the upper end open: the true value may be
    /// lower, or higher.
    pub fn open_ends(&self) -> [bool; 2] {
        self.open_ends
    }

    /// Relative to a limit: *equivalent* only if it is the limit exactly.
    pub fn against(&self, limit: f64) -> Conclusion {
        conclude(self, limit, limit)
    }

    /// A ratio relative to 1, give or take the smallest relevant difference.
    pub fn relevant(&self) -> Conclusion {
        conclude(self, 1.0 - RELEVANT_RATIO, 1.0 + RELEVANT_RATIO)
    }

    /// Why nothing is concluded, whatever the ranges are.
    pub fn excluded(&self) -> Option<Reason> {
        self.excluded
    }

    /// Why it is not simply what was measured: it is excluded, or only a bound.
    pub fn reason(&self) -> Option<Reason> {
        self.excluded.or(self.open)
    }

    fn open(&mut self, bound: Bound, [least, most]: [f64; 2]) {
        let open = |(low, high): (f64, f64)| match bound.side {
            BoundSide::Lower => (low, most),
            BoundSide::Upper => (least, high),
        };
        self.change_ranges(open);
        self.open_ends[usize::from(bound.side == BoundSide::Lower)] = true;
        self.open = Some(Reason::Bounded { bound });
    }

    fn change_ranges(&mut self, change: impl Fn((f64, f64)) -> (f64, f64)) {
        let all = [&mut self.range, &mut self.wide].into_iter().chain(&mut self.ranges_of_many);
        all.for_each(|range| *range = range.map(&change));
    }
}

/// The ends of an effect's interval.
fn ends(effect: Option<Effect>) -> Option<(f64, f64)> {
    effect.and_then(|it| it.interval).map(|it| (it.low, it.high))
}

/// The values that are the greatest and the smallest of several at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Extremes<'a> {
    /// The greatest, with those that are equivalent to it; or why none is.
    pub highest: Result<Vec<&'a Cell>, Reason>,
    /// The smallest, likewise.
    pub lowest: Result<Vec<&'a Cell>, Reason>,
}

/// Which of two or more values at one place is greatest and which is smallest.
pub fn extremes<'a>(cells: &[&'a Cell]) -> Extremes<'a> {
    let mut rising: Vec<&Cell> = cells.to_vec();
    rising.sort_by(|a, b| a.value.total_cmp(&b.value));
    let lowest = group(&rising, Conclusion::Smaller);
    rising.reverse();
    Extremes { highest: group(&rising, Conclusion::Greater), lowest }
}

/// The values that may be the extreme one: no other value is significantly `beyond` them.
pub fn candidates<'a>(cells: &[&'a Cell], beyond: Conclusion) -> Vec<&'a Cell> {
    let is_first = |cell: &Cell| cells.iter().all(|other| compare(other, cell) != beyond);
    cells.iter().copied().filter(|cell| is_first(cell)).collect()
}

/// The first value and those equivalent to it, if it is `beyond` all others.
fn group<'a>(cells: &[&'a Cell], beyond: Conclusion) -> Result<Vec<&'a Cell>, Reason> {
    let Some((first, others)) = cells.split_first() else { return Err(Reason::NoPair) };
    let mut found = vec![*first];
    for other in others {
        match compare(first, other) {
            Conclusion::Equivalent => found.push(other),
            Conclusion::Undecided(reason) => return Err(reason),
            it if it == beyond => {}
            // The mean of all repeats and the ratio of the undisturbed ones disagree.
            _ => return Err(Reason::Overlap),
        }
    }
    Ok(found)
}

const BELOW_RESOLUTION: Reason =
    Reason::Bounded { bound: Bound { side: BoundSide::Upper, cause: BoundCause::Resolution } };

/// Whether a value is not larger than its resolution, so that it may as well be nothing.
pub fn is_below_resolution(cell: &Cell, value: f64) -> bool {
    cell.resolution.is_some_and(|each| each > 0.0 && value.abs() <= each)
}

fn excluded(cell: &Cell) -> Option<Reason> {
    let exclusion = cell.exclusion?;
    let counts = exclusion != Exclusion::Simulated || is_physical(cell.metric);
    counts.then_some(Reason::Excluded { exclusion })
}

/// Whether a metric depends on how fast a machine works, so that simulated time says nothing of it.
pub fn is_physical(metric: Metric) -> bool {
    match metric {
        Metric::MacAddressesLearned => false,
        Metric::Named(name) => {
            let is_of_speed = name.text().split('_').any(|word| WORDS_OF_SPEED.contains(&word));
            let behaviour = ["rules", "count", "index", "ratio", "bit", "rows"];
            is_of_speed || !behaviour.contains(&metric.unit())
        }
        _ => true,
    }
}

/// Words in the names of shares and counts that depend on how fast a machine works.
const WORDS_OF_SPEED: [&str; 7] =
    ["loss", "lost", "load", "slowed", "forwarded", "timeouts", "retransmits"];

/// The same cell without its disturbed repeats.
pub fn undisturbed(cell: &Cell) -> Cell {
    let kept = UndisturbedRepeats::of(cell);
    Cell { repeats: kept.repeats, samples: kept.samples, ..cell.clone() }
}

/// The undisturbed repeats of a value.
struct UndisturbedRepeats {
    metric: Metric,
    repeats: Vec<u32>,
    samples: Vec<f64>,
    excluded: Option<Reason>,
}

impl UndisturbedRepeats {
    fn of(cell: &Cell) -> UndisturbedRepeats {
        let is_disturbed =
            |repeat: &u32| cell.disturbances.iter().any(|it| it.repeats.contains(repeat));
        let kept =
            cell.repeats.iter().zip(&cell.samples).filter(|(repeat, _)| !is_disturbed(repeat));
        let (repeats, samples): (Vec<u32>, Vec<f64>) =
            kept.map(|(repeat, it)| (*repeat, *it)).unzip();
        let (all, lost) = (cell.samples.len(), cell.samples.len() - samples.len());
        let is_spoilt = lost > 0 && (samples.len() < 2 || 2 * lost >= all);
        let worst = |it: &&Disturbance| it.repeats.len();
        let cause = cell.disturbances.iter().max_by_key(worst).map(|it| it.cause);
        let excluded = is_spoilt.then(|| Reason::Disturbed {
            cause: cause.unwrap_or(DisturbanceCause::Irregular),
            repeats: lost as u32,
            of: all as u32,
        });
        UndisturbedRepeats { metric: cell.metric, repeats, samples, excluded }
    }

    fn value(&self) -> Option<f64> {
        match self.metric.is_by_median() {
            true => series::median(&self.samples),
            false => series::mean(&self.samples),
        }
    }

    /// The interval with at least this confidence: by order statistics where these reach it, else wide enough for
    /// Student's t as well.
    fn interval(&self, level_percent: f64) -> Option<Interval> {
        let mean = interval::of_mean(&self.samples, level_percent)?;
        if !self.metric.is_by_median() {
            return Some(mean);
        }
        let median = interval::of_median(&self.samples, level_percent)?;
        if median.level_percent >= level_percent {
            return Some(median);
        }
        Some(Interval { low: median.low.min(mean.low), high: median.high.max(mean.high), ..mean })
    }
}
