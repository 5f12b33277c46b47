//! The claims about fairness between two flows: figures 9 and 10.
//!
//! Source: section IV.D of the study. The difference is PL(F1) - PL(F2): above zero, F1 loses more; the
//! study's sentence about the sign says the opposite of its formula, and its figure and reasons go with
//! the formula. Invariants: a load overloads a target only if the target itself lost frames; loads that overload nothing say nothing
//! about who is favoured.

use super::{Case, Finding, OVERLOAD_LOSS_RATIO, all};
use crate::derive::maximum_limited;
use crate::derive::study::overload_loss;
use crate::number;
use crate::record::{Cell, Interval, Metric, Target, Verdict};
use crate::series;

impl<'a> Case<'a> {
    /// The differences where the target lost frames, the load rising.
    fn differences(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::LossRatioDifference);
        cells.retain(|cell| self.overload(cell).is_some_and(|loss| loss > OVERLOAD_LOSS_RATIO));
        cells
    }

    /// The share of frames that the target lost where a cell was measured; none where the link lost them.
    fn overload(&self, cell: &Cell) -> Option<f64> {
        if cell.trials.is_empty() {
            // Without trials nobody knows more than the loss.
            let losses = self.cells(&cell.target, Metric::LossRatio);
            return losses.iter().find(|loss| loss.point == cell.point).map(|loss| loss.value);
        }
        let trials = self.record.trials.iter().filter(|trial| cell.trials.contains(&trial.id));
        let losses = trials.map(|trial| overload_loss(self.record, trial));
        series::mean(&losses.collect::<Option<Vec<f64>>>()?)
    }

    fn why_nothing_is_lost(&self, target: &Target) -> &'static str {
        let mut experiments = self.record.experiments.iter();
        let experiment = experiments.find(|experiment| experiment.id == self.experiment);
        match experiment.and_then(|it| maximum_limited(self.record, it, target)) {
            Some(_) => "the tester, not the target, set C, so that no load was too much",
            None => {
                let cells = self.cells(&target.name, Metric::LossRatioDifference);
                match cells.iter().any(|cell| self.overload(cell).is_none()) {
                    true => "not overloaded: the link, not the target, lost the frames",
                    false => "not overloaded: the target lost no frames at any load",
                }
            }
        }
    }

    /// Figure 9: the absolute difference of the losses stays below so much.
    pub(super) fn loses_alike(&self, target: &Target) -> Finding {
        let limit = self.claimed().unwrap_or(0.0) / 100.0;
        let reading =
            "at every load the interval of the difference lies inside the limit, on both \
                       sides of zero"
                .to_string();
        let mut cells = self.cells(&target.name, Metric::LossRatioDifference);
        cells.retain(|cell| self.overload(cell).is_some());
        let verdicts = cells.iter().map(|cell| match cell.interval {
            None => Verdict::CannotTell("a load was measured once".into()),
            Some(Interval { low, high, .. }) if -limit < low && high < limit => Verdict::Holds,
            Some(Interval { low, high, .. }) if low >= limit || high <= -limit => Verdict::DoesNot,
            Some(_) => Verdict::CannotTell("an interval reaches over the limit".into()),
        });
        let verdict = match self.differences(target).is_empty() {
            true => Verdict::CannotTell(self.why_nothing_is_lost(target).into()),
            false => all(verdicts, "no load was measured"),
        };
        Finding { reading, numbers: told(&cells), verdict }
    }

    /// Figure 10: the smaller flow loses less, the more so the higher the overload.
    pub(super) fn favours_the_smaller(&self, target: &Target) -> Finding {
        let reading =
            "wherever frames are lost F1 loses less than F2, and at the highest load the \
                       difference is greater than at the first that loses"
                .to_string();
        let cells = self.differences(target);
        let sides = cells.iter().map(|cell| match cell.interval {
            None => Verdict::CannotTell("a load was measured once".into()),
            Some(Interval { high, .. }) if high < 0.0 => Verdict::Holds,
            Some(Interval { low, .. }) if low >= 0.0 => Verdict::DoesNot,
            Some(_) => Verdict::CannotTell("an interval holds zero".into()),
        });
        let grows = match (cells.first(), cells.last()) {
            (Some(first), Some(last)) if cells.len() > 1 => match (first.interval, last.interval) {
                (Some(first), Some(last)) if last.high < first.low => Verdict::Holds,
                (Some(first), Some(last)) if last.low > first.high => Verdict::DoesNot,
                _ => Verdict::CannotTell("the intervals of two loads overlap".into()),
            },
            _ => Verdict::CannotTell("fewer than two loads overloaded it".into()),
        };
        let verdict = match cells.is_empty() {
            true => Verdict::CannotTell(self.why_nothing_is_lost(target).into()),
            false => all(sides.chain([grows]), ""),
        };
        let shown = self.cells(&target.name, Metric::LossRatioDifference);
        Finding { reading, numbers: told(&shown), verdict }
    }

    /// Figure 10: what is saturated at the lowest load shows no change with more.
    pub(super) fn is_saturated_throughout(&self, target: &Target) -> Finding {
        let reading =
            "frames are lost at the lowest load already, and the intervals of the differences \
                       at all loads overlap"
                .to_string();
        let cells = self.cells(&target.name, Metric::LossRatioDifference);
        let overloaded = self.differences(target);
        let verdict = match overloaded.len() == cells.len() && !cells.is_empty() {
            false => Verdict::CannotTell(
                "here C is chosen for each target, so that half of it is carried; the study's C was the \
                 capacity of its link"
                    .into(),
            ),
            true => {
                let ranges: Vec<Interval> = cells.iter().filter_map(|cell| cell.interval).collect();
                let low = ranges.iter().map(|it| it.low).fold(f64::NEG_INFINITY, f64::max);
                let high = ranges.iter().map(|it| it.high).fold(f64::INFINITY, f64::min);
                if low <= high { Verdict::Holds } else { Verdict::DoesNot }
            }
        };
        Finding { reading, numbers: told(&cells), verdict }
    }
}

/// The differences in percentage points, the load rising.
fn told(cells: &[&Cell]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let each = cells.iter().map(|cell| {
        let points = number::value(cell.metric, cell.value);
        format!("{points} with F2 at {} %", number::setting(cell.point.value))
    });
    format!("percentage points, F1 less F2: {}", each.collect::<Vec<_>>().join(", "))
}
