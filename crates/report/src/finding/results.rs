//! Finds what was measured and the results of experiments.
//!
//! The main finding of an experiment is at its most telling point: the smallest packets, the highest
//! load for a rate, the lowest for a latency. Invariant: values of different curves are not compared.

use super::{Difference, End, Finding, Measured, Place, Value, rules};
use crate::analysis::gelberger2013;
use crate::figure::{View, views};
use crate::table::costa2017::places_by_target;
use record::links::{self, Naming};
use record::number;
use record::{BoundSide, Cell, Exclusion, Experiment, Metric, Point, Reason, Record, Within};
use stats::conclude::{Conclusion, Estimate, Extremes, candidates, extremes, is_below_resolution};
use stats::direction::{self, Direction};

/// The experiment that ranks switches among those of its study.
const RANKED: &str = "costa2017/discussion";

/// Maximum number of experiments of a study that are listed by name.
const LISTED_MAX: usize = 6;

/// What these runs measured.
pub(crate) fn measured<'a>(records: &[&'a Record]) -> Measured<'a> {
    let mut experiments = Vec::new();
    let mut targets: Vec<(&str, Vec<&str>)> = Vec::new();
    for record in records.iter().copied() {
        for scope in scopes(record) {
            if !experiments.contains(&scope) {
                experiments.push(scope);
            }
        }
        for (link, names) in links::gathered(record) {
            let known = targets.iter().position(|(known, _)| *known == link);
            let at = known.unwrap_or_else(|| {
                targets.push((link, Vec::new()));
                targets.len() - 1
            });
            let new: Vec<&str> =
                names.into_iter().filter(|it| !targets[at].1.contains(it)).collect();
            targets[at].1.extend(new);
        }
    }
    let of = |id: &str| records[0].experiments.iter().find(|it| it.id == id);
    let title = match experiments[..] {
        [(id, None)] => of(id).map(|it| it.title.as_str()),
        _ => None,
    };
    Measured {
        runs: records.len(),
        experiments,
        title,
        targets,
        trials: records.iter().map(|record| record.trials_ended()).sum(),
        effort: records
            .first()
            .map(|it| it.effort)
            .filter(|it| records.iter().all(|one| one.effort == *it)),
        simulated: records.iter().filter(|record| record.environment.simulated).count(),
    }
}

/// The experiments with trials; of a study with many, the study and their number.
fn scopes(record: &Record) -> Vec<(&str, Option<usize>)> {
    let has_trials =
        |it: &&Experiment| record.trials.iter().any(|trial| trial.experiment == it.source());
    let mut measured: Vec<&Experiment> = record.experiments.iter().filter(has_trials).collect();
    if measured.is_empty() {
        measured.extend(&record.experiments);
    }
    let study = |it: &&'_ Experiment| it.id.split_once('/').map(|(study, _)| study.to_string());
    let scope = |it: &&'_ Experiment| {
        let items = measured.iter().filter(|other| study(other) == study(it)).count();
        (items > LISTED_MAX).then_some(items)
    };
    let mut found: Vec<(&str, Option<usize>)> = Vec::new();
    for it in &measured {
        let one = match (scope(it), it.id.split_once('/')) {
            (Some(items), Some((study, _))) => (study, Some(items)),
            _ => (it.id.as_str(), None),
        };
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// That nothing follows from a run; none if something may.
pub(super) fn unusable<'a>(record: &Record) -> Option<Finding<'a>> {
    match record.cells.first()?.exclusion? {
        Exclusion::RunDisturbed { trials, of } => {
            Some(Finding::NotUsable { disturbed: trials, of })
        }
        Exclusion::Simulated => None,
    }
}

/// The main result of a run and its difference: an early acknowledgement of rules if there is one,
/// otherwise that of the first experiment that decides most.
pub(super) fn main(record: &Record) -> Option<OfExperiment<'_>> {
    let found = record.experiments.iter().filter_map(|it| Some((it, of_experiment(record, it)?)));
    let (experiment, (finding, difference)) =
        found.min_by_key(|(_, (finding, _))| openness(finding))?;
    let finding = match record.experiments.len() {
        1 => finding,
        _ => Finding::Of { experiment, is_titled: false, findings: vec![finding] },
    };
    Some((finding, difference))
}

/// The main result of a run.
pub(crate) fn main_result(record: &Record) -> Option<Finding<'_>> {
    main(record).map(|(finding, _)| finding)
}

/// How much a main finding leaves open; an early acknowledgement comes first.
fn openness(finding: &Finding<'_>) -> usize {
    match finding {
        Finding::Barriers(all) if all.iter().any(|it| it.is_early == Conclusion::Greater) => 0,
        Finding::Extremes { ends, .. } => 1 + ends.iter().filter(|it| it.found.is_err()).count(),
        Finding::Unordered { .. } | Finding::Unresolved { .. } => 3,
        Finding::Single { target: None, .. } => 2,
        _ => 1,
    }
}

/// The main finding of an experiment and its most important difference.
type OfExperiment<'a> = (Finding<'a>, Option<Box<Difference<'a>>>);

/// The main finding of an experiment; none of an unusable run.
fn of_experiment<'a>(record: &'a Record, experiment: &'a Experiment) -> Option<OfExperiment<'a>> {
    if unusable(record).is_some() {
        return None;
    }
    if experiment.id == RANKED {
        let ranks = places_by_target(record, experiment);
        return (!ranks.is_empty()).then_some((Finding::Ranks(ranks), None));
    }
    let (finding, ends) = if let Some(barriers) = rules::barriers(record, experiment) {
        let values = rules::activation(record, experiment);
        let ends = values.first().zip(values.last()).filter(|_| values.len() > 1);
        (Finding::Barriers(barriers), ends.map(|(first, last)| [last.cell, first.cell]))
    } else {
        let view = views(record, experiment).into_iter().next()?;
        let cells = telling(record, experiment, &view)?;
        let ends = match &cells[..] {
            [first, .., last] => Some([*first, *last]),
            [only] => along_axis(record, only),
            [] => None,
        };
        (order(record, experiment, &cells)?, ends)
    };
    Some((finding, ends.and_then(|ends| difference(record, experiment, ends))))
}

/// The results of all experiments that the verdict does not state.
pub(crate) fn results(record: &Record) -> Vec<Finding<'_>> {
    let verdict = super::verdict(record).into_iter().flat_map(Finding::parts);
    let mut stated: Vec<String> = verdict.map(|it| it.sentence().to_string()).collect();
    let mut found = Vec::new();
    for experiment in &record.experiments {
        let Some((finding, difference)) = of_experiment(record, experiment) else { continue };
        let difference = difference.filter(|_| finding.has_order()).map(Finding::Difference);
        let values = rules::activation(record, experiment);
        let rules = values.first().map(|it| it.cell.point.value);
        let rules = rules.filter(|_| matches!(finding, Finding::Barriers(_)));
        let activation = rules.map(|rules| Finding::Activation { rules, values });
        // Experiments that share trials may show the same.
        let all = [Some(finding), activation, difference].into_iter().flatten();
        let findings: Vec<Finding<'_>> =
            all.filter(|it| !stated.contains(&it.sentence().to_string())).collect();
        stated.extend(findings.iter().map(|it| it.sentence().to_string()));
        match record.experiments.len() {
            _ if findings.is_empty() => {}
            1 => found.extend(findings),
            _ => found.push(Finding::Of { experiment, is_titled: true, findings }),
        }
    }
    let asks = record.experiments.iter().any(|it| it.id == gelberger2013::ASKED);
    let costs = asks.then(|| gelberger2013::tally(record));
    found.extend(costs.filter(|it| it.iter().any(|count| *count > 0)).map(Finding::Costs));
    found
}

/// The metric of a view in which targets are compared: of a rate, the one in frames.
pub(crate) fn compared_metric(view: &View) -> Metric {
    match view.metric {
        Metric::RateBpsForwarded => Metric::RatePpsForwarded,
        metric => metric,
    }
}

/// The values of a view at its most telling point, the greatest first. Of several curves it is the
/// one of most targets.
fn telling<'a>(record: &'a Record, experiment: &Experiment, view: &View) -> Option<Vec<&'a Cell>> {
    let metric = compared_metric(view);
    let here = |cell: &&Cell| {
        cell.experiment == experiment.id && cell.metric == metric && view.shows(cell)
    };
    let points = record.cells.iter().filter(here).map(|cell| cell.point.value);
    // Tables list plain counts.
    if number::is_mere_count(metric) {
        return None;
    }
    let is_rate = metric.unit() == "pps" && experiment.x_name != "frame_bytes";
    let is_loss = matches!(metric, Metric::LossRatioDifference | Metric::LossRatio);
    let highest = is_rate || is_loss;
    let x = if highest { points.reduce(f64::max) } else { points.reduce(f64::min) }?;
    let mut cells: Vec<&Cell> =
        record.cells.iter().filter(here).filter(|cell| cell.point.value == x).collect();
    let curve = telling_curve(&cells, highest);
    cells.retain(|cell| cell.point.within.as_ref() == curve);
    cells.sort_by(|a, b| b.value.total_cmp(&a.value));
    Some(cells)
}

/// The curve that most of these cells' targets have; of several, the one with the highest or the lowest value.
fn telling_curve<'a>(cells: &[&'a Cell], highest: bool) -> Option<&'a Within> {
    let curves = cells.iter().map(|cell| cell.point.within.as_ref());
    let targets = |curve| cells.iter().filter(|cell| cell.point.within.as_ref() == curve).count();
    let value = |curve: Option<&Within>| {
        curve.map_or(0.0, |curve| if highest { curve.value } else { -curve.value })
    };
    let order = |a: &Option<&'a Within>, b: &Option<&'a Within>| {
        targets(*a).cmp(&targets(*b)).then(value(*a).total_cmp(&value(*b)))
    };
    curves.max_by(order).flatten()
}

/// What is concluded about the order of values at one point, the greatest value first.
fn order<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    cells: &[&'a Cell],
) -> Option<Finding<'a>> {
    let (most, least) = (*cells.first()?, *cells.last()?);
    let naming = Naming::within(record, &experiment.id);
    let value = |cell: &&'a Cell| Value { target: naming.of(&cell.target), cell };
    let all = |cells: &[&'a Cell]| cells.iter().map(value).collect::<Vec<_>>();
    let place = place(experiment, most);
    if cells.len() == 1 {
        let target = Some(naming.of(&most.target));
        return Some(Finding::Single { place, target, cell: most });
    }
    let shown = number::quantity_of_cell;
    let is_same = |cell: &&Cell| cell.bound == most.bound && shown(cell) == shown(most);
    let is_bound = most.bound.is_some_and(|it| it.side == BoundSide::Lower);
    let Extremes { highest, lowest } = extremes(cells);
    let is_equal = highest.as_ref().is_ok_and(|equal| equal.len() == cells.len());
    if is_equal || is_bound && cells.iter().all(is_same) {
        return Some(Finding::Single { place, target: None, cell: most });
    }
    Some(match (highest, lowest) {
        (Err(_), Err(_)) if cells.iter().all(|cell| is_below_resolution(cell, cell.value)) => {
            Finding::Unresolved { place, values: all(cells) }
        }
        (Err(reason), Err(_)) => {
            Finding::Unordered { place, ends: [value(&least), value(&most)], reason }
        }
        (highest, lowest) => {
            let end = |is_highest, found: Result<Vec<&'a Cell>, Reason>| {
                let beyond = if is_highest { Conclusion::Greater } else { Conclusion::Smaller };
                let open = |reason| {
                    let names = candidates(cells, beyond).into_iter();
                    (names.map(|cell| naming.of(&cell.target)).collect(), reason)
                };
                End { is_highest, found: found.map(|cells| all(&cells)).map_err(open) }
            };
            let mut ends = [end(true, highest), end(false, lowest)];
            if direction::of(most.metric) == Some(Direction::Lower) {
                ends.reverse();
            }
            // The sorting is stable: of two decided ends, the better one stays first.
            ends.sort_by_key(|end| end.found.is_err());
            Finding::Extremes { place, ends }
        }
    })
}

fn place<'a>(experiment: &'a Experiment, cell: &'a Cell) -> Place<'a> {
    Place { x_name: &experiment.x_name, point: &cell.point, metric: cell.metric }
}

/// The values of a target at both ends of the axis, the value itself last.
fn along_axis<'a>(record: &'a Record, cell: &'a Cell) -> Option<[&'a Cell; 2]> {
    let same_curve = |other: &Point| other.within == cell.point.within;
    let cells = record.cells_of(&cell.experiment, &cell.target, cell.metric);
    let far = cells.filter(|other| same_curve(&other.point)).max_by(|a, b| {
        let distance = |it: &Cell| (it.point.value - cell.point.value).abs();
        distance(a).total_cmp(&distance(b))
    })?;
    (far.point != cell.point).then_some([far, cell])
}

/// The ratio of two values, the greater one first; none without a ratio.
fn difference<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    [of, base]: [&'a Cell; 2],
) -> Option<Box<Difference<'a>>> {
    let [of, base] = if of.value < base.value { [base, of] } else { [of, base] };
    let ratio = Estimate::ratio(of, base);
    let conclusion = ratio.relevant();
    let is_bounded = matches!(conclusion, Conclusion::Undecided(Reason::Bounded { .. }));
    // Along the axis, a link or load that is reached is no difference.
    let is_meant = of.target != base.target || !is_bounded;
    let is_unresolved = is_below_resolution(base, base.value);
    let naming = Naming::within(record, &experiment.id);
    let value = |cell: &'a Cell| Value { target: naming.of(&cell.target), cell };
    let is_stated = is_meant && !is_unresolved && base.value != 0.0;
    (is_stated && ratio.value.is_finite() && ratio.value > 0.0).then(|| {
        let [of, base] = [of, base].map(value);
        Box::new(Difference { of, base, x_name: &experiment.x_name, ratio, conclusion })
    })
}
