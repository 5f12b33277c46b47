//! Claims about fairness between two flows: figures 9 and 10.
//!
//! Source: section IV.D of the study. The difference is PL(F1) - PL(F2): above zero, F1 loses more. The study's sentence
//! about the sign contradicts its formula; its figure and its reasons agree with the formula.
//! Invariant: a load overloads a target only if the target itself lost frames. A load that loses nothing, or more than the
//! link carries, does not show which flow is favoured.

use super::{Case, Evaluation, OVERLOAD_LOSS_RATIO, lost, nothing, overload, place};
use crate::analysis::bianco2010::overload_loss;
use crate::analysis::maximum_limited;
use crate::claims::case::{all, every, is_above, is_below, is_within};
use crate::claims::verdict::{in_regime, is_less_by, undecided};
use record::number;
use record::target_name::label;
use record::{Cell, ClaimVerdict, Metric, Target, Verdict};
use stats::conclude::{Conclusion, Estimate, conclude};
use stats::series;

/// Differences of losses that differ by less than this count as equal.
const RELEVANT_DIFFERENCE: f64 = 0.001;

/// A change of the difference by less than this counts as none.
const SAME_DIFFERENCE: f64 = 0.02;

/// "Slightly fairer": the difference is at least this share of the other's.
const SLIGHTLY_SHARE: f64 = 0.5;

/// Why a target that carries the lowest load decides nothing about a target that is saturated there.
const C_DIFFERS: &str = "outside the condition of the claim (C is the capacity of the link): here C is chosen for each target, \
                         so that it carries half of C";

/// Our switch with its usual service of ports, and with service in order of arrival.
const ROUND_ROBIN: &str = "switch";
const FIRST_COME: &str = "switch:service=first-come";

impl<'a> Case<'a> {
    /// The differences at loads that certainly overload the target itself, the load rising.
    fn differences(&self, target: &Target) -> Vec<&'a Cell> {
        let mut cells = self.cells(&target.name, Metric::LossRatioDifference);
        cells.retain(|cell| self.own_overload(cell) == Conclusion::Greater);
        cells
    }

    /// The share of frames that the target lost where a cell was measured; none where the link lost them.
    fn own_loss(&self, cell: &Cell) -> Option<Cell> {
        let loss = self.beside(cell, Metric::LossRatio)?;
        if cell.trials.is_empty() {
            // A record without trials has the loss of the cell only.
            return Some(loss.clone());
        }
        let trials = self.record.trials.iter().filter(|trial| cell.trials.contains(&trial.id));
        let losses = trials.map(|trial| Some((trial.repeat, overload_loss(self.record, trial)?)));
        let (repeats, samples): (Vec<u32>, Vec<f64>) =
            losses.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let value = series::mean(&samples)?;
        Some(Cell { repeats, samples, value, ..loss.clone() })
    }

    /// Where the target's own loss lies relative to that of an overloaded target.
    fn own_overload(&self, cell: &Cell) -> Conclusion {
        self.own_loss(cell).map_or(Conclusion::Smaller, |loss| {
            Estimate::of(&loss).about_behaviour().against(OVERLOAD_LOSS_RATIO)
        })
    }

    /// Regime: some load overloaded the target.
    fn some_overload(&self, target: &Target) -> Result<(), String> {
        if !self.differences(target).is_empty() {
            return Ok(());
        }
        let mut experiments = self.record.experiments.iter();
        let experiment = experiments.find(|experiment| experiment.id == self.experiment);
        let limited = experiment.and_then(|it| maximum_limited(self.record, it, target));
        let cells = self.cells(&target.name, Metric::LossRatioDifference);
        let regime = format!("at one load or more {}", overload());
        let open = cells.iter().find_map(|cell| match self.own_overload(cell) {
            Conclusion::Undecided(reason) => Some(format!("{reason}, {}", place(cell))),
            _ => None,
        });
        if let Some(why) = open {
            return Err(format!(
                "undecided whether the condition of the claim holds ({regime}): {why}"
            ));
        }
        let losses = cells.iter().filter_map(|cell| self.own_loss(cell));
        let most = losses.map(|loss| loss.value).fold(0.0, f64::max);
        let found = match limited {
            Some(_) => "the tester, not the target, limited the rate that sets C".into(),
            None if cells.iter().any(|cell| self.own_loss(cell).is_none()) => {
                "the link, not the target, lost the frames".into()
            }
            None if most == 0.0 => format!("{} lost no frames", label(&target.name)),
            None => format!("{} lost at most {}", label(&target.name), lost(most)),
        };
        Err(format!("outside the condition of the claim ({regime}): {found}"))
    }

    /// Figure 9: the absolute difference of the losses is always below so much.
    pub(super) fn loses_alike(&self, target: &Target) -> Evaluation {
        let limit = self.claimed().unwrap_or(0.0) / 100.0;
        let percent = number::text(limit * 100.0);
        let reading = format!(
            "at every load the loss of F1 less the loss of F2 is between −{percent} and {percent} percentage points; \
             condition: at one load or more {}",
            overload()
        );
        let mut cells = self.cells(&target.name, Metric::LossRatioDifference);
        cells.retain(|cell| self.own_loss(cell).is_some());
        let judge =
            |cell: &&Cell, loads: usize| is_within(&Estimate::of(cell).among(loads), -limit, limit);
        let verdict =
            in_regime(self.some_overload(target), || every(&cells, judge, "no load was measured"));
        Evaluation { reading, numbers: points(&cells), verdict }
    }

    /// Figure 9: the first target is fairer than the second.
    pub(super) fn fairer(&self, of: &Target, against: &Target) -> Evaluation {
        self.compare_fairness(of, against, "smaller", |of, against| {
            is_less_by(&Estimate::difference(of, against), RELEVANT_DIFFERENCE)
        })
    }

    /// Figure 9: the first target is less fair than the second.
    pub(super) fn less_fair(&self, of: &Target, against: &Target) -> Evaluation {
        self.compare_fairness(of, against, "larger", |of, against| {
            is_less_by(&Estimate::difference(against, of), RELEVANT_DIFFERENCE)
        })
    }

    /// Figure 10: the first target is slightly fairer than the second.
    pub(super) fn slightly_fairer(&self, of: &Target, against: &Target) -> Evaluation {
        let words = format!(
            "smaller, by more than 1 % and at most by {} %,",
            number::text((1.0 - SLIGHTLY_SHARE) * 100.0)
        );
        self.compare_fairness(of, against, &words, |of, against| {
            is_within(&Estimate::ratio(of, against), SLIGHTLY_SHARE, 0.99)
        })
    }

    /// Compares the mean absolute differences over the loads that overload both.
    fn compare_fairness(
        &self,
        of: &Target,
        against: &Target,
        words: &str,
        judge: impl Fn(&Cell, &Cell) -> Verdict,
    ) -> Evaluation {
        let reading = format!(
            "the mean absolute difference between the losses of F1 and F2 is {words} on the first target; condition: loads that \
             overload both"
        );
        let others = self.differences(against);
        let both: Vec<(&Cell, &Cell)> = (self.differences(of).into_iter())
            .filter_map(|cell| {
                Some((cell, *others.iter().find(|other| other.point == cell.point)?))
            })
            .collect();
        let (first, second): (Vec<&Cell>, Vec<&Cell>) = both.into_iter().unzip();
        let regime = self.some_overload(of).and_then(|()| self.some_overload(against));
        let Some((first, second)) = mean_absolute(&first).zip(mean_absolute(&second)) else {
            let why = regime.err().unwrap_or_else(|| {
                "outside the condition of the claim (loads that overload both): no load overloaded both".into()
            });
            return nothing(reading, &why);
        };
        let percent = |cell: &Cell| number::text(cell.value * 100.0);
        let numbers = format!("{} against {} percentage points", percent(&first), percent(&second));
        Evaluation { reading, numbers, verdict: in_regime(regime, || judge(&first, &second)) }
    }

    /// Figure 10: the smaller flow loses less.
    pub(super) fn favours_the_smaller(&self, target: &Target) -> Evaluation {
        let reading =
            format!("F1 loses less than F2; condition: each load at which {}", overload());
        let cells = self.differences(target);
        let judge = |cell: &&Cell, loads: usize| is_below(&Estimate::of(cell).among(loads), 0.0);
        let verdict = in_regime(self.some_overload(target), || every(&cells, judge, ""));
        Evaluation { reading, numbers: self.all_points(target), verdict }
    }

    /// Figure 10: the more overload, the more the smaller flow is favoured.
    pub(super) fn favours_with_overload(&self, target: &Target) -> Evaluation {
        let reading = "F1 is favoured more at the highest load than at the lowest load that overloads; condition: two \
                       loads or more overload the target"
            .to_string();
        let cells = self.differences(target);
        let verdict = in_regime(self.some_overload(target), || match &cells[..] {
            [first, .., last] => {
                is_less_by(&Estimate::difference(last, first), RELEVANT_DIFFERENCE)
            }
            _ => undecided(
                "outside the condition of the claim (two loads or more overload the target): one load alone did",
            ),
        });
        Evaluation { reading, numbers: self.all_points(target), verdict }
    }

    /// Figure 10: the favour comes from round robin between the ports. Our switch can serve its ports both ways.
    pub(super) fn round_robin_is_the_cause(&self) -> Vec<ClaimVerdict> {
        let reading = format!(
            "our switch favours F1 when it serves its ports in turn ({ROUND_ROBIN}), and does not, within {} percentage \
             points, when it serves frames in order of arrival ({FIRST_COME}); condition: loads that overload both",
            number::text(SAME_DIFFERENCE * 100.0)
        );
        let of = |spec: &str| self.measured().find(|target| target.spec == spec);
        let (Some(in_turn), Some(by_arrival)) = (of(ROUND_ROBIN), of(FIRST_COME)) else {
            let why = format!(
                "the scheduler of a target can be changed on our switch only: measure {ROUND_ROBIN} and {FIRST_COME}"
            );
            return vec![self.line(Vec::new(), nothing(reading, &why))];
        };
        let others = self.differences(by_arrival);
        let both: Vec<(&Cell, &Cell)> = (self.differences(in_turn).into_iter())
            .filter_map(|cell| {
                Some((cell, *others.iter().find(|other| other.point == cell.point)?))
            })
            .collect();
        let judge = |(cell, other): &(&Cell, &Cell), loads: usize| {
            let [cell, other] = [cell, other].map(|it| Estimate::of(it).among(2 * loads));
            let is_even = match conclude(&other, -SAME_DIFFERENCE, SAME_DIFFERENCE) {
                Conclusion::Undecided(reason) => undecided(reason.to_string()),
                Conclusion::Smaller => Verdict::Contradicted,
                Conclusion::Equivalent | Conclusion::Greater => Verdict::Holds,
            };
            all([is_below(&cell, 0.0), is_even].into_iter(), "")
        };
        let regime = self.some_overload(in_turn).and_then(|()| self.some_overload(by_arrival));
        let none = "outside the condition of the claim (loads that overload both): no load overloaded both";
        let verdict = in_regime(regime, || every(&both, judge, none));
        let numbers =
            format!("{}; {FIRST_COME}: {}", self.all_points(in_turn), self.all_points(by_arrival));
        let targets = vec![in_turn.name.clone(), by_arrival.name.clone()];
        vec![self.line(targets, Evaluation { reading, numbers, verdict })]
    }

    /// Figure 10: frames are lost at the lowest load already.
    pub(super) fn is_overloaded_at_first(&self, target: &Target) -> Evaluation {
        let reading = "at the lowest load more than 1 % of the frames is lost; condition: C is the capacity of the link"
            .to_string();
        let losses = self.cells(&target.name, Metric::LossRatio);
        let Some(first) = losses.first() else { return nothing(reading, "no load was measured") };
        let verdict = match is_above(&Estimate::of(first), OVERLOAD_LOSS_RATIO) {
            Verdict::Contradicted => undecided(C_DIFFERS),
            verdict => verdict,
        };
        let percent = number::text(first.value * 100.0);
        let load = number::setting(first.point.value);
        let numbers = format!("{percent} % lost with F2 at {load} %");
        Evaluation { reading, numbers, verdict }
    }

    /// Figure 10: what is saturated at the lowest load shows no difference with more.
    pub(super) fn stays_as_it_is(&self, target: &Target) -> Evaluation {
        let reading = format!(
            "the difference at each load is that at the lowest, within {} percentage points; condition: the lowest load \
             overloads the target",
            number::text(SAME_DIFFERENCE * 100.0)
        );
        let cells = self.cells(&target.name, Metric::LossRatioDifference);
        let Some((first, others)) = cells.split_first() else {
            return nothing(reading, "no load was measured");
        };
        let judge = |cell: &&Cell, loads: usize| {
            let change = Estimate::difference(cell, first).among(loads);
            is_within(&change, -SAME_DIFFERENCE, SAME_DIFFERENCE)
        };
        let regime = match self.overload(first) {
            Conclusion::Smaller | Conclusion::Equivalent => Err(C_DIFFERS.into()),
            _ => self.overloaded(first),
        };
        let verdict = in_regime(regime, || every(others, judge, "one load alone was measured"));
        Evaluation { reading, numbers: points(&cells), verdict }
    }

    fn all_points(&self, target: &Target) -> String {
        points(&self.cells(&target.name, Metric::LossRatioDifference))
    }
}

/// The mean over several points of the absolute values, repeat by repeat; none without a repeat that all have.
fn mean_absolute(cells: &[&Cell]) -> Option<Cell> {
    let first = *cells.first()?;
    let in_repeat = |repeat: &u32| -> Option<f64> {
        let samples = cells.iter().map(|cell| {
            let place = cell.repeats.iter().position(|own| own == repeat)?;
            Some(cell.samples[place].abs())
        });
        let samples: Vec<f64> = samples.collect::<Option<_>>()?;
        stats::series::mean(&samples)
    };
    let found = first.repeats.iter().filter_map(|repeat| Some((*repeat, in_repeat(repeat)?)));
    let (repeats, samples): (Vec<u32>, Vec<f64>) = found.unzip();
    let value = stats::series::mean(&samples)?;
    let disturbances = cells.iter().flat_map(|cell| cell.disturbances.iter().cloned()).collect();
    Some(Cell { repeats, samples, value, disturbances, ..first.clone() })
}

/// The differences in percentage points, the load rising.
fn points(cells: &[&Cell]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let each = cells.iter().map(|cell| {
        let points = number::value(cell.metric, cell.value);
        format!("{points} with F2 at {} %", number::setting(cell.point.value))
    });
    format!("F1 minus F2 in percentage points: {}", each.collect::<Vec<_>>().join(", "))
}
