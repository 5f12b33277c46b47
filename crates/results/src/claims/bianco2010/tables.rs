//! The claims about large tables and the two tables of an OpenFlow switch: figures 5 to 7, table I.
//!
//! Source: sections IV.B and IV.C of the study. Invariant: as for the other claims, an interval decides,
//! and what overloaded nobody tells nothing about a limit.

use super::{
    ALIKE_FACTOR, Case, Finding, OVERLOAD_LOSS_RATIO, all, difference, is_limited, within,
};
use crate::compare;
use crate::derive::paired;
use crate::number;
use crate::record::{Cell, Metric, Target, Verdict};

/// The tables that the study calls small, medium and large.
const ENTRIES: [f64; 3] = [8192.0, 65_536.0, 131_072.0];

/// The packet size of most claims.
const SMALL_BYTES: f64 = 96.0;

/// A drop counts as the published one to within so many percentage points, or a quarter of it.
const DROP_POINTS: f64 = 2.0;

/// A mix counts as proportional to within this share of the rate that is.
const MIX_RATIO: f64 = 0.05;

const NOT_MEASURED: &str = "not measured";

impl<'a> Case<'a> {
    /// The cells of one curve, the points rising.
    fn curve(&self, target: &Target, metric: Metric, name: &str) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, metric);
        cells.retain(|cell| cell.point.within.as_ref().is_some_and(|it| it.name == name));
        cells
    }

    /// Figure 5: with 96-byte packets and each of three tables so much of the load is lost.
    pub(super) fn drops_so_much(&self, target: &Target) -> Finding {
        let claimed: Vec<f64> =
            self.claim.value.split('/').filter_map(|text| text.parse().ok()).collect();
        let reading = format!(
            "at full load of 96-byte packets the loss is the published one, to within {} percentage \
             points or a quarter of it",
            number::text(DROP_POINTS)
        );
        let cells = self.curve(target, Metric::LossRatio, "entries");
        let mut here = Vec::new();
        let mut verdicts = Vec::new();
        for (entries, claimed) in ENTRIES.iter().zip(&claimed) {
            let is_it = |cell: &&&Cell| {
                let curve = cell.point.within.as_ref();
                cell.point.value == SMALL_BYTES && curve.is_some_and(|it| it.value == *entries)
            };
            let Some(cell) = cells.iter().find(is_it) else {
                here.push(NOT_MEASURED.to_string());
                verdicts.push(Verdict::CannotTell("not all three tables were measured".into()));
                continue;
            };
            here.push(format!("{} %", number::value(Metric::LossRatio, cell.value)));
            let tolerance = (claimed / 4.0).max(DROP_POINTS);
            verdicts.push(match cell.interval {
                _ if is_limited(cell) => {
                    Verdict::CannotTell("the tester offered less than the link's capacity".into())
                }
                None => Verdict::CannotTell("it was measured once".into()),
                Some(it) => within(
                    it.low * 100.0,
                    it.high * 100.0,
                    claimed - tolerance,
                    claimed + tolerance,
                ),
            });
        }
        let is_any = here.iter().any(|it| it != NOT_MEASURED);
        let there: Vec<String> =
            claimed.iter().map(|it| format!("{} %", number::text(*it))).collect();
        let numbers = format!(
            "a drop of {} here, of {} there, with 8K, 64K and 128K entries",
            here.join(", "),
            there.join(", ")
        );
        let verdict = all(verdicts.into_iter(), "nothing was measured");
        Finding { reading, numbers: if is_any { numbers } else { String::new() }, verdict }
    }

    /// Figure 6: the linear table forwards less than the hash table by about so much.
    pub(super) fn linear_is_lower(&self, target: &Target) -> Finding {
        let claimed = self.claimed().unwrap_or(0.0);
        let tolerance = (claimed / 4.0).max(5.0);
        let (least, most) = (claimed - tolerance, claimed + tolerance);
        let reading = format!(
            "“about {claimed} %” is read as {} to {} %, at 96 bytes",
            number::text(least),
            number::text(most)
        );
        let small = |name| {
            let mut cells = self.curve(target, Metric::RatePpsForwarded, name).into_iter();
            cells.rfind(|cell| cell.point.value == SMALL_BYTES)
        };
        let (Some(linear), Some(hash)) = (small("linear_entries"), small("hash_entries")) else {
            let verdict = Verdict::CannotTell("96 bytes were not measured with both tables".into());
            return Finding { reading, numbers: String::new(), verdict };
        };
        let Some(compared) = compare::pairs(&paired(linear, hash), self.record.seed) else {
            let verdict = Verdict::CannotTell("no pair of trials forwarded anything".into());
            return Finding { reading, numbers: String::new(), verdict };
        };
        let lower = |ratio: f64| (1.0 - ratio) * 100.0;
        let range = compared.interval.map(|it| (lower(it.high), lower(it.low)));
        let verdict = match range {
            _ if is_limited(linear) || is_limited(hash) => {
                Verdict::CannotTell("the tester, not the target, set the rate".into())
            }
            _ if !self.lost(linear) && !self.lost(hash) => Verdict::CannotTell(
                "both tables carried all that was offered; a higher load would part them".into(),
            ),
            None => Verdict::CannotTell("one pair gives no interval".into()),
            Some((low, high)) => within(low, high, least, most),
        };
        Finding { reading, numbers: difference(lower(compared.ratio), range), verdict }
    }

    /// Whether frames were lost where this cell was measured.
    fn lost(&self, cell: &Cell) -> bool {
        let cells = self.cells(&cell.target, Metric::LossRatio);
        let there = cells.iter().find(|loss| loss.point == cell.point);
        there.is_some_and(|loss| loss.value > OVERLOAD_LOSS_RATIO)
    }

    /// Figure 7: a mix lies between the pure cases, in proportion.
    pub(super) fn mixes_in_proportion(&self, target: &Target) -> Finding {
        let reading = format!(
            "the rate of each mix lies within {} % of the straight line between those of the two pure \
             cases",
            number::text(MIX_RATIO * 100.0)
        );
        let cells = self.cells(&target.name, Metric::RatePpsForwarded);
        let pure = |percent: f64| cells.iter().find(|cell| cell.point.value == percent).copied();
        let (Some(hash), Some(linear)) = (pure(0.0), pure(100.0)) else {
            let verdict = Verdict::CannotTell("the two pure cases were not measured".into());
            return Finding { reading, numbers: String::new(), verdict };
        };
        let mut farthest: f64 = 0.0;
        let mut verdicts = Vec::new();
        for cell in cells.iter().filter(|it| it.point.value > 0.0 && it.point.value < 100.0) {
            let share = cell.point.value / 100.0;
            let line = hash.value + (linear.value - hash.value) * share;
            let off = cell.value / line - 1.0;
            farthest = if off.abs() > farthest.abs() { off } else { farthest };
            verdicts.push(match cell.interval {
                _ if is_limited(cell) => {
                    Verdict::CannotTell("the tester, not the target, set a rate".into())
                }
                _ if !self.lost(cell) && !self.lost(linear) => Verdict::CannotTell(
                    "all that was offered was carried; a higher load would tell".into(),
                ),
                None => Verdict::CannotTell("a mix was measured once".into()),
                Some(it) => within(it.low / line, it.high / line, 1.0 - MIX_RATIO, 1.0 + MIX_RATIO),
            });
        }
        let side = if farthest < 0.0 { "below" } else { "above" };
        let numbers = format!(
            "{} frames/s with the hash table alone, {} with the linear one; mixes are up to {} % {side} \
             the line",
            number::text(hash.value),
            number::text(linear.value),
            number::text(farthest.abs() * 100.0)
        );
        Finding { reading, numbers, verdict: all(verdicts.into_iter(), "no mix was measured") }
    }

    /// Table I: the time in a table does not depend on its size.
    pub(super) fn same_whatever_its_size(&self, target: &Target) -> Finding {
        let name = match self.claim.subject.as_str() {
            "hash table" => "hash_entries",
            _ => "linear_entries",
        };
        let reading = format!(
            "for every packet size the times with each number of entries lie within a factor of \
             {ALIKE_FACTOR} of that with the fewest"
        );
        let cells = self.curve(target, Metric::ProcessingNs, name);
        let same_size = |a: &Cell, b: &Cell| a.point.value == b.point.value;
        self.alike_times(reading, cells, same_size)
    }

    /// Table I: nor does it depend on the packet's size.
    pub(super) fn same_whatever_the_packet(&self, target: &Target) -> Finding {
        let reading = format!(
            "for every table the times with each packet size lie within a factor of {ALIKE_FACTOR} of \
             that with the smallest"
        );
        let cells = self.cells(&target.name, Metric::ProcessingNs);
        let same_table = |a: &Cell, b: &Cell| a.point.within == b.point.within;
        self.alike_times(reading, cells, same_table)
    }

    /// Whether each time is like the first of its row.
    fn alike_times(
        &self,
        reading: String,
        cells: Vec<&Cell>,
        is_same_row: impl Fn(&Cell, &Cell) -> bool,
    ) -> Finding {
        let mut verdicts = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            let Some(first) = cells[..place].iter().find(|it| is_same_row(it, cell)) else {
                continue;
            };
            if cell.value <= 0.0 || first.value <= 0.0 {
                let why = "the tester's loop takes as long as the target with its links";
                verdicts.push(Verdict::CannotTell(why.into()));
                continue;
            }
            let compared = compare::pairs(&paired(cell, first), self.record.seed);
            verdicts.push(match compared.and_then(|it| it.interval) {
                None => Verdict::CannotTell("one pair, or a time not above zero".into()),
                Some(it) => within(it.low, it.high, 1.0 / ALIKE_FACTOR, ALIKE_FACTOR),
            });
        }
        let least = cells.iter().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|cell| cell.value).fold(f64::NEG_INFINITY, f64::max);
        let numbers = match cells.len() {
            0 => String::new(),
            _ => format!("{} to {} µs", number::text(least / 1e3), number::text(most / 1e3)),
        };
        Finding { reading, numbers, verdict: all(verdicts.into_iter(), "no two were measured") }
    }
}
