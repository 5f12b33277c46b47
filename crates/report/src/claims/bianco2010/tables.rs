//! Claims about large tables and the two tables of an OpenFlow switch: figures 5 to 7 and table I.
//!
//! Source: sections IV.B, IV.C and V of the study.

use super::{
    ALIKE_FACTOR, Case, Evaluation, SMALL_BYTES, difference, lower_percent, nothing, place,
};
use crate::claims::case::{all, amount, every, is_below, is_within};
use crate::claims::verdict::{in_regime, is_smaller, regime};
use record::number;
use record::{Cell, Metric, Target};
use stats::conclude::{Conclusion, Estimate, undisturbed};
use stats::series::paired;

/// The table that the study calls small.
const SMALL_ENTRIES: f64 = 8192.0;

/// A drop counts as the published one within so many percentage points, or a quarter of it.
const DROP_POINTS: f64 = 2.0;

/// A mix counts as proportional within this share of the rate that is.
const MIX_RATIO: f64 = 0.05;

/// A mix counts as bounded by the pure cases within this share of their rates.
const BOUND_RATIO: f64 = 0.01;

impl<'a> Case<'a> {
    /// The cells of one curve, the points rising.
    fn curve(&self, target: &Target, metric: Metric, name: &str) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, metric);
        cells.retain(|cell| cell.point.within.as_ref().is_some_and(|it| it.name == name));
        cells
    }

    /// The rates at one packet size, the number of entries rising.
    fn by_entries(&self, target: &Target, frame_bytes: f64) -> Vec<&'a Cell> {
        let entries = |cell: &Cell| cell.point.within.as_ref().map_or(0.0, |it| it.value);
        let mut cells = self.curve(target, Metric::RatePpsForwarded, "entries");
        cells.retain(|cell| cell.point.value == frame_bytes);
        cells.sort_by(|a, b| entries(a).total_cmp(&entries(b)));
        cells
    }

    /// The rate with the largest table over that with the smallest, in words.
    fn largest_over_smallest(&self, target: &Target, frame_bytes: f64) -> Option<String> {
        let cells = self.by_entries(target, frame_bytes);
        let [smallest, .., largest] = &cells[..] else { return None };
        let entries =
            |cell: &Cell| number::setting(cell.point.within.as_ref().map_or(0.0, |it| it.value));
        Some(format!(
            "the rate with {} entries over that with {} is {}",
            entries(largest),
            entries(smallest),
            amount(&Estimate::ratio(largest, smallest))
        ))
    }

    /// Figure 5: so much of the load is lost.
    pub(super) fn drops_by(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(DROP_POINTS);
        let reading = format!(
            "the frame loss rate is the published one within {} percentage points or a quarter of it; condition: {}, and the full \
             capacity of the link is offered",
            number::text(DROP_POINTS),
            self.claim.condition
        );
        let Some(cell) = self.at_condition(target, Metric::LossRatio) else {
            return nothing(reading, "this packet size and table were not measured");
        };
        let percent = Estimate::of(cell).map(|ratio| ratio * 100.0);
        let regime = self.offered_in_full(cell);
        let numbers = match &regime {
            Ok(()) => format!("{} % lost", amount(&percent)),
            Err(_) => self.largest_over_smallest(target, cell.point.value).unwrap_or_default(),
        };
        let verdict =
            in_regime(regime, || is_within(&percent, claimed - tolerance, claimed + tolerance));
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 5: the larger the table, the lower the rate.
    pub(super) fn falls_with_entries(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "with each larger table the forwarding rate is lower, by more than 1 %; condition: {} bytes, and the target is at its \
             capacity with the larger table",
            number::setting(SMALL_BYTES)
        );
        let cells = self.by_entries(target, SMALL_BYTES);
        let pairs: Vec<(&Cell, &Cell)> =
            cells.iter().copied().zip(cells.iter().copied().skip(1)).collect();
        let judge = |(smaller, larger): &(&Cell, &Cell), pairs: usize| {
            let ratio = Estimate::ratio(larger, smaller).among(pairs);
            in_regime(self.at_capacity(larger), || is_smaller(&ratio))
        };
        let verdict = every(&pairs, judge, "fewer than two tables were measured");
        let numbers = self.largest_over_smallest(target, SMALL_BYTES).unwrap_or_default();
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 5: the rate is below so much of the link's capacity.
    pub(super) fn below_share(&self, target: &Target) -> Evaluation {
        let percent = self.claimed().unwrap_or(0.0);
        let reading = format!(
            "the forwarding rate is below {} % of {}, preamble and gap included; condition: {}, and the target is at its capacity",
            number::text(percent),
            self.wire(),
            self.claim.condition
        );
        let Some(cell) = self.at_condition(target, Metric::RatePpsForwarded) else {
            return nothing(reading, "this packet size and table were not measured");
        };
        let share = Estimate::of(cell).map(|rate| rate / self.wire_pps(cell.point.value) * 100.0);
        let numbers = format!("{} % of {}", amount(&share), self.wire());
        let verdict = in_regime(self.at_capacity(cell), || is_below(&share, percent));
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 5: with small tables wire speed needs packets of some size, and no smaller ones.
    pub(super) fn needs_bytes(&self, target: &Target) -> Evaluation {
        let mut cells = self.curve(target, Metric::RatePpsForwarded, "entries");
        cells.retain(|cell| cell.point.within.as_ref().is_some_and(|it| it.value == SMALL_ENTRIES));
        self.wire_speed(cells, true)
    }

    /// Figure 6: the linear table reaches wire speed from some packet size on.
    pub(super) fn linear_reaches_wire_speed(&self, target: &Target) -> Evaluation {
        let cells = self.curve(target, Metric::RatePpsForwarded, "linear_entries");
        self.wire_speed(cells, false)
    }

    /// Figure 6: the linear table forwards less than the hash table by about so much.
    pub(super) fn linear_is_lower(&self, target: &Target) -> Evaluation {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(5.0);
        let (least, most) = (claimed - tolerance, claimed + tolerance);
        let reading = format!(
            "the forwarding rate of the linear table is {} to {} % below that of the hash table (“about {claimed} %”); \
             condition: {} bytes, and both tables are at their capacity",
            number::text(least),
            number::text(most),
            number::setting(SMALL_BYTES)
        );
        let small = |name| {
            let mut cells = self.curve(target, Metric::RatePpsForwarded, name).into_iter();
            cells.rfind(|cell| cell.point.value == SMALL_BYTES)
        };
        let (Some(linear), Some(hash)) = (small("linear_entries"), small("hash_entries")) else {
            return nothing(reading, "96 bytes were not measured with both tables");
        };
        let lower = lower_percent(&Estimate::ratio(linear, hash));
        let regime = self.at_capacity(linear).and_then(|()| self.at_capacity(hash));
        let verdict = in_regime(regime, || is_within(&lower, least, most));
        Evaluation { reading, numbers: difference(&lower), verdict }
    }

    /// The cells of figure 7: the hash table alone, the linear table alone, and the mixes.
    fn mixes(&self, target: &Target) -> Option<[Vec<&'a Cell>; 3]> {
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        let of = |is_it: fn(f64) -> bool| -> Vec<&'a Cell> {
            cells.iter().copied().filter(|cell| is_it(cell.point.value)).collect()
        };
        let found = [of(|it| it == 0.0), of(|it| it == 100.0), of(|it| it > 0.0 && it < 100.0)];
        found.iter().all(|it| !it.is_empty()).then_some(found)
    }

    /// Figure 7: the rate of a mix lies between those of the pure cases.
    pub(super) fn mixes_are_bounded(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "the forwarding rate of each mix lies between those of the two pure cases, within {} %; condition: the target is at its \
             capacity",
            number::text(BOUND_RATIO * 100.0)
        );
        let Some([hash, linear, mixes]) = self.mixes(target) else {
            return nothing(reading, "mixes and the two pure cases were not all measured");
        };
        let (hash, linear) = (hash[0], linear[0]);
        let (low, high) = if hash.value < linear.value { (hash, linear) } else { (linear, hash) };
        let judge = |cell: &&Cell, mixes: usize| {
            let over = |pure: &Cell| Estimate::ratio(cell, pure).among(2 * mixes);
            let least = is_within(&over(low), 1.0 - BOUND_RATIO, f64::INFINITY);
            let most = is_within(&over(high), 0.0, 1.0 + BOUND_RATIO);
            in_regime(self.at_capacity(cell), || all([least, most].into_iter(), ""))
        };
        let verdict = every(&mixes, judge, "no mix was measured");
        let rates = mixes.iter().map(|cell| {
            let percent = number::setting(cell.point.value);
            format!("{} with {percent} % linear", number::of_cell(cell))
        });
        let numbers = format!(
            "{} frames/s with the hash table, {} with the linear table, {}",
            number::of_cell(hash),
            number::of_cell(linear),
            rates.collect::<Vec<_>>().join(", ")
        );
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 7: the drop is proportional to the share of traffic for the linear table.
    pub(super) fn mixes_in_proportion(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "the forwarding rate of each mix is within {} % of the straight line between the two pure cases; condition: the linear \
             table is slower than the hash table, and the target is at its capacity",
            number::text(MIX_RATIO * 100.0)
        );
        let Some([hash, linear, mixes]) = self.mixes(target) else {
            return nothing(reading, "mixes and the two pure cases were not all measured");
        };
        let (hash, linear) = (hash[0], linear[0]);
        // Repeat by repeat, since the line has an error, too.
        let over_line = |cell: &Cell| {
            let share = cell.point.value / 100.0;
            let ends = paired(&undisturbed(hash), &undisturbed(linear));
            let line: Vec<f64> =
                ends.iter().map(|(hash, linear)| hash + (linear - hash) * share).collect();
            let repeats = undisturbed(hash).repeats;
            let repeats = repeats.into_iter().filter(|it| undisturbed(linear).repeats.contains(it));
            let line = Cell { repeats: repeats.collect(), samples: line, ..hash.clone() };
            let pairs = paired(&undisturbed(cell), &line);
            Estimate::of_pairs(&pairs).with(&[cell], &[hash, linear])
        };
        let drop = Estimate::ratio(linear, hash);
        let judge = |cell: &&Cell, mixes: usize| {
            let ratio = over_line(cell).among(mixes);
            in_regime(self.at_capacity(cell), || {
                is_within(&ratio, 1.0 - MIX_RATIO, 1.0 + MIX_RATIO)
            })
        };
        let slower = regime(
            drop.relevant(),
            |it| it == Conclusion::Smaller,
            "the linear table is slower than the hash table",
            &format!("the ratio of the rates is {}", amount(&drop)),
        );
        let verdict = in_regime(slower, || every(&mixes, judge, "no mix was measured"));
        let off = |cell: &&Cell| over_line(cell).value - 1.0;
        let farthest = mixes.iter().max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()));
        let numbers = farthest.filter(|cell| off(cell).is_finite()).map_or(String::new(), |cell| {
            let side = if off(cell) < 0.0 { "below" } else { "above" };
            format!(
                "{} frames/s with the hash table, {} with the linear table; mixes are up to {} % {side} the line",
                number::of_cell(hash),
                number::of_cell(linear),
                number::text(off(cell).abs() * 100.0)
            )
        });
        Evaluation { reading, numbers, verdict }
    }

    /// Table I: the time in a table does not depend on its size.
    pub(super) fn same_for_each_table(&self, target: &Target) -> Evaluation {
        let name = match self.claim.subject.as_str() {
            "hash table" => "hash_entries",
            _ => "linear_entries",
        };
        let reading = format!(
            "for every packet size the processing times with each number of entries are within a factor of {ALIKE_FACTOR} of that \
             with the fewest; condition: times above what the tester's own loop takes"
        );
        let cells = self.curve(target, Metric::ProcessingNs, name);
        self.alike_times(reading, cells, |a, b| a.point.value == b.point.value)
    }

    /// Table I: nor does it depend on the packet size.
    pub(super) fn same_for_each_size(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "for every table the processing times with each packet size are within a factor of {ALIKE_FACTOR} of that with the \
             smallest; condition: times above what the tester's own loop takes"
        );
        let cells = self.cells(&target.name, Metric::ProcessingNs);
        self.alike_times(reading, cells, |a, b| a.point.within == b.point.within)
    }

    /// Whether each time is like the first of its row.
    fn alike_times(
        &self,
        reading: String,
        cells: Vec<&Cell>,
        is_same_row: impl Fn(&Cell, &Cell) -> bool,
    ) -> Evaluation {
        let pairs: Vec<(&Cell, &Cell)> = (cells.iter().enumerate())
            .filter_map(|(place, cell)| {
                Some((*cell, *cells[..place].iter().find(|it| is_same_row(it, cell))?))
            })
            .collect();
        let judge = |(cell, first): &(&Cell, &Cell), pairs: usize| {
            let ratio = Estimate::ratio(cell, first).among(pairs);
            in_regime(above_loop(cell).and_then(|()| above_loop(first)), || {
                is_within(&ratio, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR)
            })
        };
        let least = cells.iter().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|cell| cell.value).fold(f64::NEG_INFINITY, f64::max);
        let numbers = match cells.len() {
            0 => String::new(),
            _ => format!("{} to {} µs", number::text(least / 1e3), number::text(most / 1e3)),
        };
        Evaluation { reading, numbers, verdict: every(&pairs, judge, "no two were measured") }
    }
}

/// Regime: a processing time is above what the tester's own loop takes.
fn above_loop(cell: &Cell) -> Result<(), String> {
    regime(
        Estimate::of(cell).about_behaviour().against(0.0),
        |it| it == Conclusion::Greater,
        "the target takes longer than the tester's loop",
        &format!("the difference is {} µs {}", number::text(cell.value / 1e3), place(cell)),
    )
}
