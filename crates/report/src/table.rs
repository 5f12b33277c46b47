//! Tables as values: results below a figure, and frame accounting.
//!
//! Pages, summaries and tests show the same table. Invariant: a missing value is an empty entry,
//! never zero, and a value with repeats always has its interval.

mod goals;
pub mod rfc;
pub(crate) mod costa2017;
mod gelberger2013;
mod oflops2018;

pub use costa2017::paths::{Judged, Way, ways};
pub use rfc::{Sheet, sheets};

use crate::figure::{View, curves};
use record::links::Naming;
use record::number;
use record::target_name::label;
use record::{
    Cell, DropPlace, Experiment, Interval, Metric, Point, Published, Ratio, Record, Trial, Warning,
    Within,
};
use stats::conclude::is_below_resolution;

/// Rows under named columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Names of the columns, with their units.
    pub columns: Vec<String>,
    /// Rows, each as long as the columns.
    pub rows: Vec<Vec<Entry>>,
}

impl Table {
    /// All warnings of its entries without duplicates, in order.
    pub fn warnings(&self) -> Vec<&Mark> {
        let mut found: Vec<&Mark> = Vec::new();
        for warning in self.rows.iter().flatten().flat_map(|entry| &entry.warnings) {
            if !found.contains(&warning) {
                found.push(warning);
            }
        }
        found
    }

    /// Whether a column holds numbers.
    pub fn is_number(&self, column: usize) -> bool {
        self.rows.iter().any(|row| row[column].is_number)
    }
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// The text of the entry.
    pub text: String,
    /// The interval, in small type next to or below the text.
    pub range: String,
    /// Warnings that apply to the value.
    pub warnings: Vec<Mark>,
    /// Whether it is a number, which is right-aligned.
    pub is_number: bool,
    /// Trials of the value, if they are few enough to list.
    pub trials: Vec<u64>,
}

/// A warning of an entry: a few words next to the value, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Text in the row.
    pub brief: String,
    /// Sentence about it.
    pub sentence: String,
    /// Whether it is in the run's list of warnings; otherwise the sentence is below the table.
    pub is_listed: bool,
}

impl Mark {
    fn new(brief: &str, sentence: impl Into<String>) -> Mark {
        Mark { brief: brief.into(), sentence: sentence.into(), is_listed: false }
    }
}

impl From<&Warning> for Mark {
    fn from(warning: &Warning) -> Mark {
        Mark { brief: warning.brief(), sentence: warning.sentence(), is_listed: true }
    }
}

impl Entry {
    fn word(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }

    fn number(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), is_number: true, ..Entry::default() }
    }

    /// A ratio or another plain number with its interval.
    fn ratio(value: f64, interval: Option<Interval>) -> Entry {
        let range = interval.map_or("n=1".into(), |it| number::range(&it, number::text));
        Entry { range, ..Entry::number(number::text(value)) }
    }

    fn cell(cell: &Cell) -> Entry {
        Entry {
            text: number::of_cell(cell),
            // A value below its resolution is shown as the bound that it is.
            range: match cell.range().filter(|_| !is_below_resolution(cell, cell.value)) {
                Some(range) => number::interval(cell.metric, &range),
                None if cell.n < 2 => "n=1".into(),
                None => String::new(),
            },
            warnings: cell.warnings.iter().map(Mark::from).collect(),
            is_number: true,
            trials: cell.trials.clone(),
        }
    }
}

/// The values of a view, one row per point and target.
pub fn of_view(record: &Record, experiment: &Experiment, view: &View) -> Table {
    let has = |metric: &&Metric| {
        record.cells.iter().any(|cell| cell.experiment == experiment.id && cell.metric == **metric)
    };
    if view.is_table {
        return matrix(record, experiment, view);
    }
    let metrics: Vec<Metric> = view.columns.iter().filter(has).copied().collect();
    let has_curves = view.curve.is_none() && !curves(record, experiment).is_empty();
    let mut columns = vec![number::axis(&experiment.x_name), "target".into()];
    columns.extend(has_curves.then(|| "curve".into()));
    columns.push("n".into());
    columns.extend(metrics.iter().map(|&metric| number::heading(metric)));
    let mut keys: Vec<&Cell> = record
        .cells
        .iter()
        .filter(|cell| cell.experiment == experiment.id && cell.metric == view.metric)
        .filter(|cell| view.shows(cell))
        .collect();
    keys.sort_by(|a, b| a.point.order(&b.point));
    let naming = Naming::within(record, &experiment.id);
    let row = |key: &&Cell| {
        let setting = Entry::number(number::setting(key.point.value));
        let mut row = vec![setting, Entry::word(naming.of(&key.target))];
        row.extend(has_curves.then(|| Entry::word(curve_of(&key.point))));
        row.push(Entry::number(key.n.to_string()));
        row.extend(metrics.iter().map(|&metric| {
            record
                .cells_of(&experiment.id, &key.target, metric)
                .find(|cell| cell.point == key.point)
                .map_or_else(Entry::default, Entry::cell)
        }));
        row
    };
    Table { columns, rows: keys.iter().map(row).collect() }
}

/// One metric with a row per target and point and a column per curve, as in the study's table I.
/// The rows printed in the study follow.
fn matrix(record: &Record, experiment: &Experiment, view: &View) -> Table {
    let curves = curves(record, experiment);
    let unit = number::shown(view.metric).unit;
    let mut columns = vec!["target".into(), number::axis(&experiment.x_name)];
    columns.extend(curves.iter().map(|curve| format!("{}, {unit}", number::curve(curve))));
    let naming = Naming::within(record, &experiment.id);
    let mut rows = Vec::new();
    for target in &record.targets {
        let cells: Vec<&Cell> =
            record.cells_of(&experiment.id, &target.name, view.metric).collect();
        let mut values: Vec<f64> = cells.iter().map(|cell| cell.point.value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        rows.extend(values.iter().map(|&value| {
            let name = Entry::word(naming.of(&target.name));
            let mut row = vec![name, Entry::number(number::setting(value))];
            row.extend(curves.iter().map(|curve| {
                let here = |cell: &&&Cell| {
                    cell.point.value == value && cell.point.within.as_ref() == Some(curve)
                };
                cells.iter().find(here).map_or_else(Entry::default, |cell| Entry::cell(cell))
            }));
            row
        }));
    }
    rows.extend(printed(record, experiment, &curves));
    Table { columns, rows }
}

/// The rows printed in a study for this item, in the study's units, with one cell per curve.
fn printed(record: &Record, experiment: &Experiment, curves: &[Within]) -> Vec<Vec<Entry>> {
    let is_it = |value: &&Published| {
        experiment.study.as_ref() == Some(&value.study)
            && experiment.item.as_ref() == Some(&value.item)
    };
    let values: Vec<&Published> = record.published.iter().filter(is_it).collect();
    let key = |value: &Published| (value.subject.clone(), value.point.value);
    let mut keys: Vec<(String, f64)> = Vec::new();
    for value in &values {
        if !keys.contains(&key(value)) {
            keys.push(key(value));
        }
    }
    let row = |found: &(String, f64)| {
        let study = experiment.study.as_deref().unwrap_or_default();
        let name = Entry::word(format!("{study}, {}", found.0));
        let mut row = vec![name, Entry::number(number::setting(found.1))];
        row.extend(curves.iter().map(|curve| {
            let here = |value: &&&Published| {
                key(value) == *found && value.point.within.as_ref() == Some(curve)
            };
            let value = values.iter().find(here);
            value.map_or_else(Entry::default, |value| Entry::number(number::setting(value.value)))
        }));
        row
    };
    keys.iter().map(row).collect()
}

/// The name of a point's curve; empty if it has none.
fn curve_of(point: &Point) -> String {
    point.within.as_ref().map_or_else(String::new, number::curve)
}

/// Ratios of each target to the first in one metric, for the curve of a view or for all.
pub fn of_ratios(record: &Record, experiment: &Experiment, view: &View, metric: Metric) -> Table {
    let base = record.targets.first().map_or("", |target| target.name.as_str());
    let has_curves = view.curve.is_none() && !curves(record, experiment).is_empty();
    let mut columns = vec![number::axis(&experiment.x_name), "target".into()];
    columns.extend(has_curves.then(|| "curve".into()));
    columns.push(format!("{} / {base}", number::title(metric)));
    columns.extend(["pairs", "conclusion"].map(String::from));
    let mut found: Vec<&Ratio> = record
        .ratios
        .iter()
        .filter(|ratio| ratio.experiment == experiment.id && ratio.metric == metric)
        .filter(|ratio| view.has_target(&ratio.target))
        .filter(|ratio| view.curve.is_none() || view.curve == ratio.point.within)
        .collect();
    found.sort_by(|a, b| a.point.order(&b.point));
    let naming = Naming::within(record, &experiment.id);
    let row = |ratio: &&Ratio| {
        let mut value = Entry::ratio(ratio.ratio, ratio.interval);
        let both = [&ratio.target, &ratio.base].into_iter();
        let cells = both.flat_map(|target| record.cells_of(&experiment.id, target, metric));
        let here = cells.filter(|cell| cell.point == ratio.point);
        value.trials = here.flat_map(|cell| cell.trials.iter().copied()).collect();
        value.warnings.extend(ratio.across_links().map(|it| Mark::new("links differ", it)));
        let setting = Entry::number(number::setting(ratio.point.value));
        let mut row = vec![setting, Entry::word(naming.of(&ratio.target))];
        row.extend(has_curves.then(|| Entry::word(curve_of(&ratio.point))));
        row.extend([value, Entry::number(ratio.n.to_string()), Entry::word(answer_word(ratio))]);
        row
    };
    Table { columns, rows: found.iter().map(row).collect() }
}

/// Text for the conclusion of a ratio.
pub(crate) fn answer_word(ratio: &Ratio) -> &'static str {
    match ratio.answer {
        record::Answer::Higher => "higher",
        record::Answer::Lower => "lower",
        record::Answer::Equivalent => "equivalent",
        record::Answer::Inconclusive => "undecided",
    }
}

const PLACES: [DropPlace; 4] =
    [DropPlace::Target, DropPlace::Kernel, DropPlace::Link, DropPlace::Tester];

/// Frame accounting of all frames, warm-up included: a row per experiment and target, over its
/// counting trials. Columns with only zeros are omitted, except those in which a zero is most
/// important.
pub fn of_frames(record: &Record) -> Table {
    let mut columns: Vec<String> = Vec::new();
    columns.extend(["experiment", "target", "trials", "offered", "received"].map(Into::into));
    columns.extend(PLACES.map(|place| format!("lost in {}", place.word())));
    columns.push("unexplained".into());
    let numbers = |trials: &[&Trial]| {
        let mut row = vec![
            sum(trials, |trial| trial.account_frames_offered),
            sum(trials, |trial| trial.account_frames_received),
        ];
        row.extend(PLACES.map(|place| {
            let lost = trials.iter().flat_map(|trial| &trial.drops);
            let lost = lost.filter(|drop| drop.place == place).map(|drop| drop.frames);
            Entry::number(number::count(lost.sum::<u64>() as i64))
        }));
        let unexplained: i64 = trials.iter().map(|trial| trial.frames_unexplained).sum();
        let mut entry = Entry::number(number::count(unexplained));
        if unexplained != 0 {
            entry.warnings.push(Mark::new("unexplained", "frames unaccounted for"));
        }
        row.push(entry);
        row
    };
    let rows = by_target(record, has_frames, numbers);
    without_zeros(Table { columns, rows }, &["offered", "received", "unexplained"])
}

/// Received frames by class, without warm-up: a row per experiment and target. Modules choose the
/// ports at which their frames arrive, so that their frames have no classes.
pub fn of_classes(record: &Record) -> Table {
    let mut columns: Vec<String> = Vec::new();
    columns.extend(["experiment", "target", "trials", "offered", "correct"].map(Into::into));
    columns.extend(["reordered", "misrouted", "corrupt"].map(Into::into));
    columns.extend(["flooded", "duplicate", "foreign"].map(Into::into));
    let numbers = |trials: &[&Trial]| {
        vec![
            sum(trials, |trial| trial.frames_offered),
            sum(trials, |trial| trial.classes.correct),
            sum(trials, |trial| trial.classes.reordered),
            sum(trials, |trial| trial.classes.misrouted),
            sum(trials, |trial| trial.classes.corrupt),
            sum(trials, |trial| trial.classes.flooded),
            sum(trials, |trial| trial.classes.duplicate),
            sum(trials, |trial| trial.classes.foreign),
        ]
    };
    Table {
        columns,
        rows: by_target(record, |trial| has_frames(trial) && trial.module.is_none(), numbers),
    }
}

fn sum(trials: &[&Trial], of: fn(&Trial) -> u64) -> Entry {
    Entry::number(number::count(trials.iter().map(|trial| of(trial)).sum::<u64>() as i64))
}

/// A row per experiment and target with accounted trials that `counts` selects. Trials that two
/// experiments share count once, under the experiment that measured them.
fn by_target(
    record: &Record,
    counts: fn(&Trial) -> bool,
    numbers: impl Fn(&[&Trial]) -> Vec<Entry>,
) -> Vec<Vec<Entry>> {
    let mut sources: Vec<&str> = Vec::new();
    for experiment in &record.experiments {
        if !sources.contains(&experiment.source()) {
            sources.push(experiment.source());
        }
    }
    let mut rows = Vec::new();
    for source in sources {
        for target in &record.targets {
            let here: Vec<&Trial> = record
                .trials_accounted()
                .filter(|t| t.experiment == source && t.target == target.name && counts(t))
                .collect();
            if !here.is_empty() {
                let mut row = vec![Entry::word(source), Entry::word(label(&target.name))];
                let trials = here.iter().map(|trial| trial.id).collect();
                row.push(Entry { trials, ..Entry::number(here.len().to_string()) });
                row.extend(numbers(&here));
                rows.push(row);
            }
        }
    }
    rows
}

/// Whether the tester sent frames in a trial, or received or lost some.
fn has_frames(trial: &Trial) -> bool {
    trial.account_frames_offered > 0 || trial.unexplained() != 0 || !trial.drops.is_empty()
}

/// Removes columns that are zero in every row, except those named.
fn without_zeros(table: Table, kept: &[&str]) -> Table {
    let stays: Vec<bool> = (table.columns.iter().enumerate())
        .map(|(index, name)| {
            kept.contains(&name.as_str()) || table.rows.iter().any(|row| row[index].text != "0")
        })
        .collect();
    let pick = |row: Vec<Entry>| row.into_iter().zip(&stays).filter_map(|(e, &s)| s.then_some(e));
    Table {
        rows: table.rows.into_iter().map(|row| pick(row).collect()).collect(),
        columns: (table.columns.into_iter().zip(&stays))
            .filter_map(|(c, &s)| s.then_some(c))
            .collect(),
    }
}

/// Drop reasons: a row per target, place and reason, over all accounted trials.
pub fn of_drops(record: &Record) -> Table {
    let columns = ["target", "lost in", "at", "reason", "frames"].map(Into::into).into();
    let mut sums: Vec<([String; 4], u64)> = Vec::new();
    for trial in record.trials_accounted() {
        for drop in &trial.drops {
            let place = drop.place.word().to_string();
            let key = [label(&trial.target), place, drop.at.clone(), drop.reason.clone()];
            match sums.iter_mut().find(|(have, _)| *have == key) {
                Some((_, frames)) => *frames += drop.frames,
                None => sums.push((key, drop.frames)),
            }
        }
    }
    let row = |(key, frames): ([String; 4], u64)| {
        let mut row: Vec<Entry> = key.into_iter().map(Entry::word).collect();
        row.push(Entry::number(number::count(frames as i64)));
        row
    };
    Table { columns, rows: sums.into_iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_without_frames_have_no_row_in_the_account() {
        let mut record = sample::record();
        let rows = of_frames(&record).rows.len();
        let mut hosts = record.trials[0].clone();
        (hosts.experiment, hosts.drops) = ("gelberger2013/fig4".into(), Vec::new());
        (hosts.account_frames_offered, hosts.account_frames_received) = (0, 0);
        let mut experiment = record.experiments[0].clone();
        experiment.id = hosts.experiment.clone();
        (experiment.shares_trials_with, record.trials) =
            (None, record.trials.into_iter().chain([hosts]).collect());
        record.experiments.push(experiment);
        assert_eq!(of_frames(&record).rows.len(), rows);
        assert_eq!(of_classes(&record).rows.len(), rows);
        record.trials.last_mut().unwrap().account_frames_offered = 1;
        assert_eq!(of_frames(&record).rows.len(), rows + 1, "a lost frame is accounted for");
    }
}
