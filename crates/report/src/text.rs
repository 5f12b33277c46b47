//! What a run found, in plain sentences: the top of every report.
//!
//! Invariant: each sentence states numbers with their intervals, and what contradicts
//! them; nothing is praised.

use std::collections::BTreeMap;

use super::sentence::Sentence;
use crate::analysis::gelberger2013;
use crate::figure::{View, views};
use record::links::{self, Naming};
use record::number;
use record::target_name::label;
use record::{
    Answer, Bound, BoundSide, Calibration, Cell, ClaimVerdict, Exclusion, Experiment, Limit,
    Metric, Ratio, Reason, Record, Target, Trial, Verdict, Within,
};
use stats::conclude::{Conclusion, Extremes, candidates, extremes, is_below_resolution};

mod study;
mod rules;
mod standing;

pub(crate) use rules::share_in_words;

/// What was measured, on what.
pub(crate) fn measured(record: &Record) -> String {
    let trials = record.trials_ended();
    let joined = match links::gathered(record).as_slice() {
        [] => format!("{} over {}", listed(&[]), record.link),
        all => {
            let parts =
                all.iter().map(|(link, names)| format!("{} over {link}", listed_targets(names)));
            parts.collect::<Vec<_>>().join(", and ")
        }
    };
    let time = if record.environment.simulated { ", in simulated time" } else { "" };
    format!(
        "{} measured on {joined}{time}: {trials} {} with {} effort.",
        experiments(record),
        if trials == 1 { "trial" } else { "trials" },
        effort(record),
    )
}

/// What was measured over several runs, on what, and how many trials that took.
pub(crate) fn measured_in_all(records: &[&Record]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut links: Vec<String> = Vec::new();
    let mut targets: Vec<&str> = Vec::new();
    for record in records {
        for name in named(record) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for (link, standing) in links::gathered(record) {
            if !links.iter().any(|known| known == link) {
                links.push(link.to_string());
            }
            targets.extend(
                standing.iter().filter(|it| !targets.contains(it)).copied().collect::<Vec<_>>(),
            );
        }
    }
    let trials: usize = records.iter().map(|record| record.trials_ended()).sum();
    let is_simulated = |record: &&&Record| record.environment.simulated;
    let time = match records.iter().filter(is_simulated).count() {
        0 => "",
        all if all == records.len() => ", in simulated time",
        _ => ", in part in simulated time",
    };
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    format!(
        "{} measured on {} over {}{time}: {trials} trials.",
        listed(&all),
        listed_targets(&targets),
        listed(&links)
    )
}

/// Maximum number of items of one study that are listed by name; of more, only the number is stated.
const ITEMS_NAMED: usize = 6;

/// What was measured: experiments by their names, many items of one study by their number.
fn experiments(record: &Record) -> String {
    listed(&named(record).iter().map(String::as_str).collect::<Vec<_>>())
}

fn named(record: &Record) -> Vec<String> {
    let study_of = |id: &str| id.split_once('/').map(|(study, _)| study.to_string());
    let has_trials =
        |it: &&Experiment| record.trials.iter().any(|trial| trial.experiment == it.source());
    let mut measured: Vec<&Experiment> = record.experiments.iter().filter(has_trials).collect();
    if measured.is_empty() {
        measured.extend(&record.experiments);
    }
    let mut names: Vec<String> = Vec::new();
    for experiment in &measured {
        let study = study_of(&experiment.id);
        let items = measured.iter().filter(|it| study_of(&it.id) == study).count();
        let name = match study.filter(|_| items > ITEMS_NAMED) {
            Some(study) => format!("{items} items of {study}"),
            None => experiment.id.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What came out: a sentence for each experiment that has results; none of a run that is not usable.
pub(crate) fn found(record: &Record) -> Vec<String> {
    found_in(record).into_iter().map(|(_, sentence)| sentence.to_string()).collect()
}

/// The same, each with the id of its experiment, where it is of one.
pub(crate) fn found_in(record: &Record) -> Vec<(Option<&str>, Sentence)> {
    if unusable(record).is_some() {
        return Vec::new();
    }
    let sentence = |experiment: &'_ Experiment| {
        if let Some(said) = engineering(record, experiment) {
            return Some(said);
        }
        views(record, experiment).first().and_then(|view| outcome(record, experiment, view))
    };
    let mut found: Vec<(Option<&str>, Sentence)> = Vec::new();
    for experiment in &record.experiments {
        // Experiments that share trials may say the same.
        let new = sentence(experiment).filter(|it| found.iter().all(|(_, said)| said != it));
        found.extend(new.map(|sentence| (Some(experiment.id.as_str()), sentence)));
    }
    for (id, sentence) in &mut found {
        let own = record.experiments.iter().find(|it| Some(it.id.as_str()) == *id);
        if let Some(subject) = own.and_then(|it| subject(record, it)) {
            *sentence = Sentence::from(format!("{subject}: ")).then(std::mem::take(sentence));
        }
    }
    found.extend(richer(record).map(|sentence| (None, sentence.into())));
    found
}

/// What was measured in an experiment and its id, if a sentence does not follow from the run alone.
fn subject(record: &Record, experiment: &Experiment) -> Option<String> {
    let title = experiment.title.split(':').next().unwrap_or_default();
    (record.experiments.len() > 1).then(|| format!("{title} ({})", experiment.id))
}

/// What an experiment that answers a question of its own says: about barrier replies and rules, or about a switch's place.
fn engineering(record: &Record, experiment: &Experiment) -> Option<Sentence> {
    if unusable(record).is_some() {
        return None;
    }
    if experiment.id == standing::EXPERIMENT {
        return standing::places(record, experiment).map(Into::into);
    }
    let acknowledged = rules::acknowledged(record, experiment)?;
    Some(match rules::times(record, experiment) {
        Some(times) => acknowledged.and(" ").then(times),
        None => acknowledged,
    })
}

/// Whether the richer cost more, in a record of the study that asks it.
fn richer(record: &Record) -> Option<String> {
    let asks = |it: &Experiment| it.id == gelberger2013::ASKED;
    record.experiments.iter().any(asks).then_some(())?;
    let [more, less, open] = gelberger2013::tally(record);
    let all = more + less + open;
    (all > 0).then(|| {
        let is = if open == 1 { "is" } else { "are" };
        format!(
            "Comparisons of a more programmable target with a less programmable one in the same workload: {all}. The more \
             programmable one costs more in {more} and less in {less}; {open} {is} undecided."
        )
    })
}

/// One view at its most telling point: the smallest packets, the highest load for a rate, the lowest for a
/// latency. Of several curves it is the one of most targets, then likewise: values under different conditions are not
/// compared. The point in words, and its cells, the greatest first.
fn telling<'a>(
    record: &'a Record,
    experiment: &Experiment,
    view: &View,
) -> Option<(String, Vec<&'a Cell>)> {
    let metric = match view.metric {
        Metric::RateBpsForwarded => Metric::RatePpsForwarded,
        metric => metric,
    };
    let here = |cell: &&Cell| {
        cell.experiment == experiment.id && cell.metric == metric && view.shows(cell)
    };
    let points = record.cells.iter().filter(here).map(|cell| cell.point.value);
    // Mere numbers of things are in their tables.
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
    let place = match experiment.x_name.as_str() {
        "frame_bytes" => format!("With {}-byte packets", number::setting(x)),
        "occupancy_percent" if x == 0.0 => "With one rule".into(),
        "load_percent" => format!("At a load of {} %", number::setting(x)),
        "entries" => format!("With {} table entries", number::setting(x)),
        "f2_percent" => format!("With F2 at {} % of C", number::setting(x)),
        "linear_percent" => {
            format!("With {} % of the traffic for the linear table", number::setting(x))
        }
        "window_bytes" => format!("With a window of {} bytes", number::setting(x)),
        "rate_pps_intended" => format!("At a load of {} frames/s", number::setting(x)),
        other => format!("At {} = {}", other.replace('_', " "), number::setting(x)),
    };
    let place = match curve {
        Some(curve) => format!("{place} and {}", number::curve(curve)),
        None => place,
    };
    Some((place, cells))
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

/// Why nothing is concluded from a run; none if something may be.
pub(crate) fn unusable(record: &Record) -> Option<String> {
    let exclusion = record.cells.first()?.exclusion?;
    matches!(exclusion, Exclusion::RunDisturbed { .. }).then(|| format!("Not usable: {exclusion}."))
}

/// What is concluded of one view at its most telling point.
fn outcome(record: &Record, experiment: &Experiment, view: &View) -> Option<Sentence> {
    let (place, cells) = telling(record, experiment, view)?;
    let (most, least) = (*cells.first()?, *cells.last()?);
    let metric = most.metric;
    let naming = Naming::within(record, &experiment.id);
    let name = |cell: &Cell| naming.of(&cell.target);
    let title = number::title(metric);
    if cells.len() == 1 {
        let found = Sentence::from(format!("{place} the {title} of {} is ", name(most)));
        return Some(found.then(quantity(most)).and("."));
    }
    if let Some(bound) = all_at_least(&cells) {
        let found = Sentence::from(format!("{place} the {title} of every target is "));
        return Some(found.then(quantity(most)).and(format!(": {}.", bound.cause)));
    }
    let Extremes { highest, lowest } = extremes(&cells);
    if highest.as_ref().is_ok_and(|it| it.len() == cells.len()) {
        let found = Sentence::from(format!("{place} the {title} of every target is "));
        return Some(found.then(quantity(most)).and(" (equivalent within 1 %)."));
    }
    let group = |cells: &[&Cell]| {
        let names: Vec<String> = cells.iter().map(|cell| name(cell)).collect();
        listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let side = |found: &[&Cell], word: &str| {
        Sentence::from(format!("{word} on {} with ", group(found))).then(quantity(found[0]))
    };
    let open = |word: &str, beyond: Conclusion, reason: &Reason| {
        let others = group(&candidates(&cells, beyond));
        format!("; which of {others} is {word} is undecided ({})", undecided(*reason))
    };
    let is = || Sentence::from(format!("{place} the {title} is "));
    let found = match (&highest, &lowest) {
        (Err(_), Err(_)) if cells.iter().all(|cell| is_below_resolution(cell, cell.value)) => {
            let mut found =
                Sentence::from(format!("{place} the {title} is not resolved on any target: "));
            for (at, cell) in cells.iter().enumerate() {
                let between = match at {
                    0 => "",
                    _ if at + 1 == cells.len() => " and ",
                    _ => ", ",
                };
                // The repeats vary less than each of them is uncertain, so their interval is left out.
                let most = number::quantity_in_words(cell);
                found = found.and(between).number(most, &cell.trials);
                found = found.and(format!(" on {}", name(cell)));
            }
            return Some(found.and("."));
        }
        (Err(reason), Err(_)) => {
            let undecided = format!("; the order is undecided ({}).", undecided(*reason));
            let shown = number::quantity_of_cell;
            if cells.iter().all(|cell| shown(cell) == shown(most)) {
                let found = Sentence::from(format!("{place} the {title} of every target is "));
                return Some(found.then(quantity(most)).and(undecided));
            }
            let range = Sentence::from(format!("{place} the {title} is between "));
            let range = range.then(quantity(least)).and(format!(" on {} and ", name(least)));
            let range = range.then(quantity(most)).and(format!(" on {}", name(most)));
            return Some(range.and(undecided));
        }
        (Err(reason), Ok(low)) => {
            is().then(side(low, "lowest")).and(open("highest", Conclusion::Greater, reason))
        }
        (Ok(high), Err(reason)) => {
            is().then(side(high, "highest")).and(open("lowest", Conclusion::Smaller, reason))
        }
        (Ok(high), Ok(low)) => {
            is().then(side(high, "highest")).and(", and ").then(side(low, "lowest"))
        }
    };
    Some(found.and(".").then(against_first(record, most)))
}

/// Why an order is undecided.
fn undecided(reason: Reason) -> String {
    match reason {
        Reason::Overlap => "the differences are not significant".into(),
        reason => reason.to_string(),
    }
}

/// The bound of all these values, if each is a lower bound and the same for readers.
fn all_at_least(cells: &[&Cell]) -> Option<Bound> {
    let first = cells.first()?;
    let is_same = |cell: &&Cell| {
        cell.bound == first.bound
            && number::quantity_of_cell(cell) == number::quantity_of_cell(first)
    };
    first.bound.filter(|bound| bound.side == BoundSide::Lower && cells.iter().all(is_same))
}

/// What the others are to the first target, at the place of a cell; empty if nothing is known.
fn against_first(record: &Record, place: &Cell) -> Sentence {
    let here = |ratio: &&Ratio| {
        ratio.experiment == place.experiment
            && ratio.metric == place.metric
            && ratio.point == place.point
    };
    let ratios: Vec<&Ratio> = record.ratios.iter().filter(here).collect();
    let Some(first) = ratios.first() else { return Sentence::default() };
    // A ratio rests on the trials of both.
    let trials = |ratio: &Ratio| -> Vec<u64> {
        let of = |cell: &&Cell| {
            cell.experiment == ratio.experiment
                && cell.metric == ratio.metric
                && cell.point == ratio.point
                && (cell.target == ratio.target || cell.target == ratio.base)
        };
        record.cells.iter().filter(of).flat_map(|cell| cell.trials.iter().copied()).collect()
    };
    let answers = [
        (Answer::Higher, "significantly higher on"),
        (Answer::Lower, "significantly lower on"),
        (Answer::Equivalent, "equivalent within 1 % on"),
        (Answer::Inconclusive, "no significant difference on"),
    ];
    let mut said = Sentence::from(format!(" Compared with {}: ", label(&first.base)));
    let mut is_first = true;
    for (answer, words) in answers {
        let those: Vec<&&Ratio> = ratios.iter().filter(|it| it.answer == answer).collect();
        for (at, ratio) in those.iter().enumerate() {
            said = said.and(match at {
                0 if is_first => format!("{words} "),
                0 => format!("; {words} "),
                _ if at + 1 == those.len() => " and ".into(),
                _ => ", ".into(),
            });
            is_first = false;
            let times = format!("{} times", number::text(ratio.ratio));
            said = said.and(format!("{} (", label(&ratio.target))).number(times, &trials(ratio));
            let across =
                ratio.links.as_ref().map(|[own, base]| format!(", over {own} against {base}"));
            let reason = ratio.reason.filter(|it| !matches!(it, Reason::Overlap));
            let reason = reason.map(|it| format!(", undecided: {it}"));
            said =
                said.and(format!("{}{})", across.unwrap_or_default(), reason.unwrap_or_default()));
        }
    }
    said.and(".")
}

/// What matters most, in one or two sentences: which target is highest and lowest where that shows most, and how many of
/// all values carry a warning. Nothing of a run that is not usable.
pub(crate) fn short(record: &Record) -> Option<String> {
    if unusable(record).is_some() {
        return None;
    }
    let first = rules::headline(record)
        .or_else(|| standing::headline(record))
        .or_else(|| highest_and_lowest(record))?;
    Some(first + &trust(record))
}

/// Which share of the values carries a warning, and the most frequent one. Values of shared trials
/// count once.
fn trust(record: &Record) -> String {
    let is_shared = |id: &str| {
        let mut experiments = record.experiments.iter();
        let source =
            experiments.find(|it| it.id == id).and_then(|it| it.shares_trials_with.as_deref());
        source.is_some_and(|source| record.experiments.iter().any(|it| it.id == source))
    };
    let (mut all, mut warned) = (0, 0);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for cell in record.cells.iter().filter(|cell| !is_shared(&cell.experiment)) {
        all += 1;
        warned += usize::from(!cell.warnings.is_empty());
        for warning in &cell.warnings {
            *counts.entry(warning.brief()).or_default() += 1;
        }
    }
    let Some((brief, _)) = counts.into_iter().max_by_key(|(_, count)| *count) else {
        return format!(" None of the {} values carries a warning.", number::count(all));
    };
    let share = match (100.0 * warned as f64 / all as f64).round() {
        0.0 => "Less than 1 %".to_string(),
        percent => format!("{percent} %"),
    };
    format!(" {share} of the values carry a warning, most often \"{brief}\"; tables mark them.")
}

/// Which target is highest and which lowest: of the first experiment that decides most.
fn highest_and_lowest(record: &Record) -> Option<String> {
    let found = record.experiments.iter().filter_map(|experiment| extremes_of(record, experiment));
    // Of equal ones, `min_by_key` returns the first.
    found.min_by_key(|(undecided, _)| *undecided).map(|(_, sentence)| sentence)
}

/// Which target is highest and which lowest in an experiment, and how many of the two are undecided.
fn extremes_of(record: &Record, experiment: &Experiment) -> Option<(u8, String)> {
    let view = views(record, experiment).into_iter().next()?;
    let (place, cells) = telling(record, experiment, &view)?;
    let mut names: Vec<&str> = cells.iter().map(|cell| cell.target.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let targets = names.len();
    if targets < 2 {
        return None;
    }
    let title = number::title(cells[0].metric);
    let wide = Naming::within(record, &experiment.id);
    let place = uncapitalised(&place);
    let group = |cells: &[&Cell]| {
        let mut names: Vec<String> = cells.iter().map(|cell| wide.of(&cell.target)).collect();
        names.dedup();
        listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let value = |cells: &[&Cell]| {
        let equal = if cells.len() > 1 { ", equivalent within 1 %" } else { "" };
        format!("{}{equal}", number::quantity_in_words(cells[0]))
    };
    let Extremes { highest, lowest } = extremes(&cells);
    Some(match (&highest, &lowest) {
        (Ok(high), _) if high.len() == cells.len() => {
            (0, format!("Of {targets} targets, all have the same {title} {place}, within 1 %."))
        }
        (Ok(high), Ok(low)) => {
            let [above, below] = [high, low].map(|cells| value(cells));
            let [high, low] = [high, low].map(|cells| group(cells));
            let found = format!(
                "Of {targets} targets, {high} has the highest {title} {place} ({above}), {low} the \
                 lowest ({below})."
            );
            (0, found)
        }
        (Ok(high), Err(_)) => {
            let (above, high) = (value(high), group(high));
            let found = format!(
                "Of {targets} targets, {high} has the highest {title} {place} ({above}); the lowest is \
                 undecided."
            );
            (1, found)
        }
        (Err(_), Ok(low)) => {
            let (below, low) = (value(low), group(low));
            let found = format!(
                "Of {targets} targets, {low} has the lowest {title} {place} ({below}); the highest is \
                 undecided."
            );
            (1, found)
        }
        (Err(reason), Err(_)) => {
            let why = undecided(*reason);
            let found = format!(
                "Of {targets} targets, none can be called highest or lowest in {title} {place}: {why}."
            );
            (2, found)
        }
    })
}

/// For the middle of a sentence.
fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn quantity(cell: &Cell) -> Sentence {
    let range = cell.interval.map_or("measured once".into(), |i| number::interval(cell.metric, &i));
    Sentence::default()
        .number(number::quantity_in_words(cell), &cell.trials)
        .and(format!(" ({range})"))
}

/// What kept the forwarding rates of plain workloads from being higher: a sentence for each
/// experiment and limit. A study's figures show whole curves, under and over any limit.
fn limited(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for experiment in record.experiments.iter().filter(|experiment| experiment.study.is_none()) {
        for limit in [Limit::Tester, Limit::Wire, Limit::Target, Limit::Load] {
            let points = |target: &Target| {
                let rates = record.cells_of(&experiment.id, &target.name, Metric::RatePpsForwarded);
                let rates: Vec<&Cell> = rates.collect();
                let limited = rates.iter().filter(|cell| cell.limit == Some(limit)).count();
                match limited {
                    0 => None,
                    count if count == rates.len() => Some(label(&target.name)),
                    count => {
                        Some(format!("{} ({count} of {} points)", label(&target.name), rates.len()))
                    }
                }
            };
            let points: Vec<String> = record.targets.iter().filter_map(points).collect();
            let points: Vec<&str> = points.iter().map(String::as_str).collect();
            if !points.is_empty() {
                let (id, limit) = (&experiment.id, limit.words());
                out.push(format!("In {id} {limit} limited the rate of {}.", listed(&points)));
            }
        }
    }
    out
}

/// How sure it is.
pub(crate) fn sure(record: &Record) -> Vec<String> {
    let mut out = limited(record);
    let repeats = record.cells.iter().map(|cell| cell.n);
    if let (Some(least), Some(most)) = (repeats.clone().min(), repeats.max()) {
        let range = match (least, most) {
            (1, 1) => "1 repeat".to_string(),
            _ if least == most => format!("{least} repeats"),
            _ => format!("{least} to {most} repeats"),
        };
        out.push(format!(
            "Each value is from {range}; targets take turns. Its interval has 95 % confidence, or \
             the level stated."
        ));
    }
    out.extend(study::processing(record));
    out.push(account(record));
    out.extend(witnesses(&record.trials));
    for calibration in &record.calibrations {
        let bias = calibration.latency.as_ref().and_then(|latency| latency.ns_p50);
        let bias = bias.map_or(String::new(), |ns| {
            format!(" and adds {} µs to the median latency", number::text(ns as f64 / 1e3))
        });
        let at_least = if calibration.bound.is_some() { "at least " } else { "" };
        out.push(format!(
            "The tester alone carries {at_least}{} frames/s of {} bytes over {}{bias}.{}",
            number::text(calibration.rate_pps_ceiling as f64),
            calibration.frame_bytes,
            calibration.link,
            above_ceiling(record, calibration),
        ));
    }
    out
}

/// Which targets forwarded more than the tester carries alone, and what that means.
fn above_ceiling(record: &Record, calibration: &Calibration) -> String {
    let is_above = |trial: &&Trial| {
        trial.frame_bytes == Some(calibration.frame_bytes)
            && links::of(record, &trial.target) == calibration.link
            && trial.rate_pps_forwarded().is_some_and(|it| it > calibration.rate_pps_ceiling as f64)
    };
    let mut names: Vec<&str> = Vec::new();
    for trial in record.trials.iter().filter(is_above) {
        if !names.contains(&trial.target.as_str()) {
            names.push(&trial.target);
        }
    }
    let why = match (names.is_empty(), calibration.bound) {
        (true, _) => return String::new(),
        (_, Some(_)) => "the calibration tries no higher load",
        _ => "the tester carries more than the calibration found",
    };
    format!(" The forwarding rate of {} was higher: {why}.", listed_targets(&names))
}

/// States how many of the same frames SNMP agents counted, if agents were read.
fn witnesses(trials: &[Trial]) -> Option<String> {
    let told = || trials.iter().filter_map(|trial| trial.witness.as_ref());
    let asked = told().count();
    let counted: Vec<_> = told().filter(|witness| witness.frames_in.is_some()).collect();
    (asked > 0).then_some(())?;
    if counted.is_empty() {
        return Some(format!(
            "SNMP agents were read in {asked} trials, but reported no frames: {}.",
            told().flat_map(|witness| &witness.problems).next().map_or("", String::as_str)
        ));
    }
    let sent: u64 = counted.iter().map(|witness| witness.frames_sent).sum();
    let came: u64 = counted.iter().filter_map(|witness| witness.frames_in).sum();
    let silent = match asked - counted.len() {
        0 => String::new(),
        trials => format!(" Trials without a reported frame: {trials}."),
    };
    Some(format!(
        "SNMP agents counted {} frames on their way in, of {} that the tester's ports sent.{silent}",
        number::count(came as i64),
        number::count(sent as i64),
    ))
}

/// One sentence on the account of all frames.
fn account(record: &Record) -> String {
    let found = account_of(record.trials_accounted());
    match record.trials_ended() - record.trials_accounted().count() {
        0 => found,
        1 => format!("{found} 1 trial that was cut short is left out."),
        trials => format!("{found} {trials} trials that were cut short are left out."),
    }
}

/// The same of these trials. A surplus of one trial makes up for no missing frame of another.
pub(crate) fn account_of<'a>(trials: impl Iterator<Item = &'a Trial>) -> String {
    let [mut sent, mut missing, mut surplus] = [0, 0, 0];
    for trial in trials {
        sent += trial.account_frames_offered as i64;
        missing += trial.frames_unexplained.max(0);
        surplus -= trial.frames_unexplained.min(0);
    }
    if sent == 0 && missing == 0 && surplus == 0 {
        return "No frames were offered.".into();
    }
    let of = format!("Of {} frames offered, ", number::count(sent));
    let counted = |frames: i64| match frames {
        1 => "1 is unaccounted for".to_string(),
        frames => format!("{} are unaccounted for", number::count(frames)),
    };
    let more = |frames: i64| match frames {
        1 => "1 more was received than sent".to_string(),
        frames => format!("{} more were received than sent", number::count(frames)),
    };
    match (missing, surplus) {
        (0, 0) => format!("{of}every one is accounted for."),
        (missing, 0) => format!("{of}{}.", counted(missing)),
        (0, surplus) => format!("{of}none is missing, and {}.", more(surplus)),
        (missing, surplus) => {
            format!("{of}{}; in other trials, {}.", counted(missing), more(surplus))
        }
    }
}

/// How many other answers are of each kind: hold, do not hold, undecided.
pub(crate) fn answers(record: &Record) -> [usize; 3] {
    let counted = || record.claims.iter().filter(|line| !line.is_by_construction);
    let count = |of: fn(&Verdict) -> bool| counted().filter(|line| of(&line.verdict)).count();
    [
        count(|verdict| *verdict == Verdict::Holds),
        count(|verdict| *verdict == Verdict::Contradicted),
        count(|verdict| matches!(verdict, Verdict::Undecided(_))),
    ]
}

/// States the numbers of claims that hold, that do not hold, and that are undecided.
pub(crate) fn tally([hold, do_not, cannot]: [usize; 3]) -> [String; 3] {
    let word = |count: usize, forms| number::inflected(count as u64, forms);
    [
        format!("{hold} {}", word(hold, ["claim holds", "claims hold"])),
        format!("{do_not} {} not hold", word(do_not, ["does", "do"])),
        format!("{cannot} undecided"),
    ]
}

/// How many answers are about models that were made from the study, and are not counted.
pub(crate) fn by_construction(record: &Record) -> Option<String> {
    let some = record.claims.iter().filter(|line| line.is_by_construction).count();
    let forms = [
        "more is about a model that was made from the study, and is",
        "more are about models that were made from the study, and are",
    ];
    let are = number::inflected(some as u64, forms);
    (some > 0).then(|| format!("{some} {are} not counted"))
}

/// How to measure what can be published, after a run with less effort. Simulated time is not published.
pub(crate) fn effort_hint(record: &Record) -> Option<String> {
    if effort(record) != "quick" || record.environment.simulated {
        return None;
    }
    let number = |key: &str| record.parameters.get(key).and_then(serde_json::Value::as_f64);
    let (repeats, seconds) = (number("repeats")?, number("seconds")?);
    Some(format!(
        "Quick effort ({repeats} repeats, trials of {seconds} s): a first look \
         (hint: --effort standard measures ten times as long, --effort full as published)."
    ))
}

/// The effort in a word.
pub(crate) fn effort(record: &Record) -> &'static str {
    match record.effort {
        record::Effort::Quick => "quick",
        record::Effort::Standard => "standard",
        record::Effort::Full => "full",
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(words: &[&str]) -> String {
    match words {
        [] => "nothing".into(),
        [one] => (*one).to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The labels of targets, listed.
pub(crate) fn listed_targets(names: &[&str]) -> String {
    let labels: Vec<String> = names.iter().map(|name| label(name)).collect();
    listed(&labels.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The labels of the targets of a verdict, separated by commas.
pub(crate) fn verdict_targets(line: &ClaimVerdict) -> String {
    line.targets.iter().map(|name| label(name)).collect::<Vec<_>>().join(", ")
}

/// The values that decide a claim, or the reason why it is undecided.
pub(crate) fn numbers(line: &ClaimVerdict) -> String {
    match &line.verdict {
        Verdict::Undecided(why) if line.numbers.is_empty() => why.clone(),
        Verdict::Undecided(why) => format!("{}; {why}", line.numbers),
        _ => line.numbers.clone(),
    }
}

/// What a claim states, with its value in place.
pub(crate) fn statement(claim: &record::Claim) -> String {
    use record::Relation;
    let unit = match claim.unit.as_str() {
        "percent" => " %".to_string(),
        "us" => " µs".to_string(),
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let value = match claim.relation {
        _ if claim.value.is_empty() => String::new(),
        Relation::From if claim.claim.ends_with("at least") => format!(" {}{unit}", claim.value),
        Relation::From => String::new(),
        Relation::About | Relation::UpTo | Relation::Below | Relation::Range => {
            format!(" {}{unit}", claim.value)
        }
        _ => format!(" ({}{unit})", claim.value),
    };
    format!("{}: {}{value}", claim.subject, claim.claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Flag, Stalls, Witness};

    #[test]
    fn frames_counted_by_agents_are_reported_next_to_sent_frames() {
        let mut trials = sample::record().trials;
        trials.truncate(3);
        assert_eq!(witnesses(&trials), None);
        let silent =
            Witness { problems: vec!["nobody listens there".into()], ..Witness::default() };
        trials[0].witness = Some(silent);
        let sentence = witnesses(&trials).expect("one agent was queried");
        assert!(sentence.contains("reported no frames: nobody listens there"), "{sentence}");
        let reported = Witness { frames_in: Some(40), frames_sent: 42, ..Witness::default() };
        (trials[1].witness, trials[2].witness) = (Some(reported.clone()), Some(reported));
        let sentence = witnesses(&trials).expect("the agents were queried");
        for wanted in ["counted 80 frames", "of 84", "without a reported frame: 1."] {
            assert!(sentence.contains(wanted), "{wanted}: {sentence}");
        }
    }

    #[test]
    fn a_quick_run_suggests_a_publishable_measurement() {
        let mut record = sample::record();
        record.effort = record::Effort::Quick;
        record.parameters.insert("repeats".into(), 5.into());
        record.parameters.insert("seconds".into(), serde_json::json!(0.2));
        record.environment.simulated = false;
        let hint = effort_hint(&record).expect("a quick run has a hint");
        assert!(hint.contains("5 repeats, trials of 0.2 s") && hint.contains("--effort standard"));
        assert!(crate::summary::markdown([&record]).contains(&hint));
        record.effort = record::Effort::Full;
        assert_eq!(effort_hint(&record), None);
    }

    /// Returns the sample run with some trials changed and its results derived again.
    fn changed(change: impl Fn(&mut Trial)) -> Record {
        let mut record = sample::record();
        record.trials.iter_mut().for_each(change);
        crate::finish(&mut record, &sample::claims());
        record
    }

    fn descheduled(trial: &mut Trial) {
        trial.flags.push(Flag::Stall);
        let ns = trial.duration_ns_effective / 20;
        trial.stalls =
            Some(Stalls { count: 9, ns_total: ns, ns_longest: ns / 2, ..Stalls::default() });
    }

    #[test]
    fn a_mostly_disturbed_run_reports_that_first_and_has_no_conclusions() {
        let record = changed(|trial| {
            if trial.id % 8 != 0 {
                descheduled(trial);
            }
        });
        let (disturbed, all) = (record.trials.len() - record.trials.len() / 8, record.trials.len());
        let first =
            format!("Not usable: the tester was descheduled in {disturbed} of {all} trials.");
        assert_eq!(unusable(&record).as_deref(), Some(&*first));
        assert_eq!((short(&record), found(&record)), (None, Vec::new()));
        let text = crate::summary::markdown([&record]);
        assert!(text.find(&first) < text.find(" measured on "), "{text}");
        assert!(!text.contains("highest on") && !text.contains("significantly"), "{text}");
        let words = format!("descheduled in {disturbed} of {all} trials");
        let is_open = |line: &ClaimVerdict| matches!(&line.verdict, Verdict::Undecided(_));
        assert!(record.claims.iter().all(is_open), "{:?}", record.claims);
        assert!(
            record.claims.iter().any(
                |line| matches!(&line.verdict, Verdict::Undecided(why) if why.contains(&words))
            )
        );
        assert!(record.ratios.iter().all(|ratio| ratio.answer == Answer::Inconclusive));
        assert!(record.is_doubtful(), "--strict rejects it");
        // A quarter of disturbed trials is not a majority.
        let usable = changed(|trial| {
            if trial.id % 4 == 0 {
                descheduled(trial);
            }
        });
        assert_eq!(unusable(&usable), None);
        assert!(short(&usable).is_some());
    }

    #[test]
    fn simulated_time_ranks_no_rates_and_decides_no_claim_about_them() {
        let mut record = sample::record();
        record.environment.simulated = true;
        crate::finish(&mut record, &sample::claims());
        let held = record.claims.iter().filter(|line| line.verdict == Verdict::Holds);
        assert_eq!(held.count(), 0, "{:?}", record.claims);
        assert!(record.ratios.iter().all(|ratio| ratio.answer == Answer::Inconclusive));
        let short = short(&record).unwrap();
        assert!(short.contains("rates and times are simulated"), "{short}");
        let found = found(&record).join(" ");
        assert!(
            !found.contains("highest on") && found.contains("the order is undecided"),
            "{found}"
        );
        let same = record.cells.iter_mut().filter(|it| it.metric == Metric::RatePpsForwarded);
        same.for_each(|cell| (cell.value, cell.bound) = (1e6, None));
        let found = super::found(&record).join(" ");
        assert!(!found.contains("is between 1"), "equal values are no range: {found}");
        assert!(found.contains("of every target is 1"), "{found}");
    }

    #[test]
    fn an_experiment_without_trials_was_not_measured() {
        let mut record = sample::record();
        record.experiments[2].id = "bianco2010/fig7".into();
        let said = measured(&record);
        assert!(said.starts_with("bianco2010/fig2 and bianco2010/fig3 measured on"), "{said}");
        record.trials.clear();
        assert!(measured(&record).contains("bianco2010/fig7"), "{}", measured(&record));
    }

    #[test]
    fn values_on_different_curves_are_not_compared() {
        let mut record = sample::record();
        record.experiments.truncate(1);
        let id = record.experiments[0].id.clone();
        record.cells.retain(|cell| cell.experiment == id);
        // Each target is twice as good under the second of two conditions.
        let on = |cell: &Cell, rows: f64, times: f64| Cell {
            point: cell.point.clone().within("entries", rows),
            value: times * cell.value,
            samples: cell.samples.iter().map(|it| times * it).collect(),
            ..cell.clone()
        };
        let cells: Vec<Cell> = std::mem::take(&mut record.cells);
        record.cells = cells.iter().flat_map(|it| [on(it, 1.0, 2.0), on(it, 8.0, 1.0)]).collect();
        let found = found(&record).remove(0);
        assert!(found.contains("packets and 1 entries the forwarding rate is highest"), "{found}");
        assert!(!found.contains("8 entries"), "{found}");
    }

    #[test]
    fn values_below_the_resolution_are_no_range() {
        let mut record = sample::record();
        record.experiments.truncate(1);
        let bound = Bound { side: BoundSide::Upper, cause: record::BoundCause::Resolution };
        for cell in &mut record.cells {
            (cell.resolution, cell.bound) = (Some(2.0 * cell.value), Some(bound));
        }
        let found = found(&record).remove(0);
        assert!(found.contains("is not resolved on any target: less than "), "{found}");
        assert!(!found.contains("between"), "{found}");
    }

    #[test]
    fn what_two_experiments_say_of_shared_trials_is_said_once() {
        let mut record = sample::record();
        let twin = record.experiments[0].clone();
        let (id, source) = ("bianco2010/fig2-twin".to_string(), twin.id.clone());
        record.experiments.push(Experiment { id, shares_trials_with: Some(source), ..twin });
        crate::finish(&mut record, &[]);
        assert_eq!(found(&record), found(&sample::record()));
    }

    #[test]
    fn an_end_is_open_among_the_targets_that_may_be_there() {
        let mut record = sample::record();
        record.experiments.truncate(1);
        let id = record.experiments[0].id.clone();
        let values = [
            ("switch", 1e5, [0.9, 1.0, 1.1]),
            ("ovs", 1e6, [0.999, 1.0, 1.001]),
            ("bridge", 1.02e5, [1.1, 1.0, 0.9]),
            ("router", 9e5, [0.999, 1.0, 1.001]),
        ];
        record.cells.retain(|cell| cell.experiment == id);
        record.cells.retain(|cell| values.iter().any(|(target, ..)| cell.target == *target));
        for cell in &mut record.cells {
            let (_, value, by) = values.iter().find(|(target, ..)| cell.target == *target).unwrap();
            (cell.value, cell.bound) = (*value, None);
            (cell.samples, cell.repeats) = (by.map(|it| it * value).into(), vec![1, 2, 3]);
            let of = |level| stats::interval::of_mean(&cell.samples, level);
            (cell.interval, cell.interval_99) = (of(95.0), of(99.0));
        }
        record.ratios.clear();
        let found = found(&record).remove(0);
        assert!(found.contains("highest on ovs with 1"), "{found}");
        let open = "; which of planimeter bridge and planimeter switch is lowest is undecided (";
        assert!(found.contains(open), "{found}");
    }

    #[test]
    fn results_of_several_experiments_name_what_was_measured() {
        let mut record = sample::record();
        let several = found(&record);
        let first = &record.experiments[0];
        let subject = format!("{} ({}): ", first.title, first.id);
        assert!(several[0].starts_with(&subject), "{}", several[0]);
        record.experiments.truncate(1);
        assert_eq!(format!("{subject}{}", found(&record)[0]), several[0]);
    }

    #[test]
    fn the_share_of_values_with_warnings_counts_shared_trials_once() {
        let mut record = sample::record();
        record.cells.truncate(4);
        record.cells.iter_mut().for_each(|cell| cell.warnings.clear());
        assert_eq!(trust(&record), " None of the 4 values carries a warning.");
        let stall = record::Warning::Stall { trials: 1 };
        record.cells[0].warnings = vec![record::Warning::ColdCaches { trials: 1 }, stall.clone()];
        record.cells[1].warnings = vec![stall];
        let first = record.experiments[0].clone();
        let twin =
            Experiment { id: "twin".into(), shares_trials_with: Some(first.id.clone()), ..first };
        let copies: Vec<Cell> = record.cells.clone();
        record.cells.extend(copies.into_iter().map(|it| Cell { experiment: "twin".into(), ..it }));
        record.experiments.push(twin);
        let wanted = " 50 % of the values carry a warning, most often \"stall\"; tables mark them.";
        assert_eq!(trust(&record), wanted);
    }

    #[test]
    fn answers_agree_with_their_number() {
        let said = |counts| tally(counts).join(", ");
        assert_eq!(said([1, 1, 1]), "1 claim holds, 1 does not hold, 1 undecided");
        assert_eq!(said([2, 0, 3]), "2 claims hold, 0 do not hold, 3 undecided");
    }

    #[test]
    fn a_tie_is_a_tie() {
        // At a tenth of the load every target carries all of it.
        let all = changed(|trial| {
            trial.frames_forwarded = trial.frames_offered;
            trial.bytes_forwarded = trial.bytes_offered;
            trial.flags.clear();
        });
        let found = found(&all).join(" ");
        assert!(!found.contains("forwarding rate is highest"), "{found}");
        assert!(found.contains("the forwarding rate of every target is 1"), "{found}");
        let record = sample::record();
        let cells: Vec<&Cell> = record
            .cells_of("bianco2010/fig2", "switch", Metric::RatePpsForwarded)
            .take(1)
            .collect();
        let same = Cell { target: "bridge".into(), bound: None, ..cells[0].clone() };
        let one = Cell { bound: None, ..cells[0].clone() };
        let Extremes { highest, lowest } = extremes(&[&one, &same]);
        assert_eq!((highest.unwrap().len(), lowest.unwrap().len()), (2, 2));
    }

    #[test]
    fn trials_are_counted_once_and_interrupted_ones_are_accounted_for() {
        let mut record = sample::record();
        record.trials.truncate(14);
        for (place, trial) in record.trials.iter_mut().enumerate() {
            // A search that was interrupted.
            trial.role = record::Role::Search;
            trial.frames_unexplained = 0;
            if place == 13 {
                trial.flags.push(Flag::Interrupted);
            }
        }
        record.partial = true;
        record.trials_planned = Some(40);
        crate::finish(&mut record, &[]);
        let sent: u64 = record.trials[..13].iter().map(|it| it.account_frames_offered).sum();
        let offered = number::count(sent as i64);
        let wanted = format!(
            "Of {offered} frames offered, every one is accounted for. 1 trial that was cut short is left out."
        );
        assert_eq!(account(&record), wanted);
        assert!(measured(&record).contains(": 14 trials with"), "{}", measured(&record));
        let partial = record.warnings.iter().find_map(|notice| match notice.warning {
            record::Warning::Partial { trials, planned } => Some((trials, planned)),
            _ => None,
        });
        assert_eq!(partial, Some((14, Some(40))));
    }

    #[test]
    fn a_surplus_makes_up_for_no_missing_frame_of_another_trial() {
        let mut trials = sample::record().trials;
        trials.truncate(2);
        let mut said = |unexplained: [i64; 2]| {
            for (trial, frames) in trials.iter_mut().zip(unexplained) {
                (trial.account_frames_offered, trial.frames_unexplained) = (50, frames);
            }
            account_of(trials.iter())
        };
        for (unexplained, wanted) in [
            ([0, 0], "every one is accounted for."),
            ([1, 0], "1 is unaccounted for."),
            ([2, 1], "3 are unaccounted for."),
            ([-1, -1], "none is missing, and 2 more were received than sent."),
            ([2, -1], "2 are unaccounted for; in other trials, 1 more was received than sent."),
        ] {
            assert_eq!(said(unexplained), format!("Of 100 frames offered, {wanted}"));
        }
        assert_eq!(account_of([].iter()), "No frames were offered.");
    }

    #[test]
    fn a_target_faster_than_the_calibration_is_explained() {
        let mut record = sample::record();
        let fastest =
            record.trials.iter().filter_map(|it| it.rate_pps_forwarded()).fold(0.0, f64::max);
        record.calibrations[0].rate_pps_ceiling = (fastest * 0.9) as u64;
        let found = sure(&record).join(" ");
        assert!(
            found.contains(" was higher: the tester carries more than the calibration found."),
            "{found}"
        );
        assert!(found.contains(" The forwarding rate of "), "names keep their case: {found}");
        record.calibrations[0].bound =
            Some(Bound { side: BoundSide::Lower, cause: record::BoundCause::SearchLimit });
        let found = sure(&record).join(" ");
        assert!(found.contains("alone carries at least"), "{found}");
        assert!(found.contains("was higher: the calibration tries no higher load"), "{found}");
    }
}
