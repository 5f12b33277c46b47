//! Tables as values: what stands below a figure, and the account of all frames.
//!
//! Pages, summaries and tests show the same table. Invariant: a value that was not measured is an
//! empty entry, never zero, and a value with repeats never stands without its interval.

use crate::derive::counts;
use crate::figure::View;
use crate::number;
use crate::record::{Cell, DropPlace, Experiment, Metric, Ratio, Record, Trial};

/// Rows under named columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Names of the columns, with their units.
    pub columns: Vec<String>,
    /// Rows, each as long as the columns.
    pub rows: Vec<Vec<Entry>>,
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// What stands there.
    pub text: String,
    /// Smaller, beside or below it: an interval.
    pub range: String,
    /// What to know before trusting it, as sentences.
    pub warnings: Vec<String>,
    /// Whether it is a number, to stand to the right.
    pub is_number: bool,
}

impl Entry {
    fn word(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }

    fn number(text: impl Into<String>) -> Entry {
        Entry { text: text.into(), is_number: true, ..Entry::default() }
    }

    fn cell(cell: &Cell) -> Entry {
        Entry {
            text: number::value(cell.metric, cell.value),
            range: match &cell.interval {
                Some(interval) => number::interval(cell.metric, interval),
                None => "n=1".into(),
            },
            warnings: cell.warnings.iter().map(|warning| warning.sentence()).collect(),
            is_number: true,
        }
    }
}

/// The numbers of a view: a row for each point and target.
pub fn of_view(record: &Record, experiment: &Experiment, view: &View) -> Table {
    let has = |metric: &&Metric| {
        record.cells.iter().any(|cell| cell.experiment == experiment.id && cell.metric == **metric)
    };
    let metrics: Vec<Metric> = view.columns.iter().filter(has).copied().collect();
    let mut columns = vec![number::axis(&experiment.x_name), "target".into(), "n".into()];
    columns.extend(
        metrics
            .iter()
            .map(|&metric| format!("{}, {}", number::title(metric), number::shown(metric).unit)),
    );
    let mut keys: Vec<&Cell> = record
        .cells
        .iter()
        .filter(|cell| cell.experiment == experiment.id && cell.metric == view.metric)
        .collect();
    keys.sort_by(|a, b| a.point.value.total_cmp(&b.point.value));
    let row = |key: &&Cell| {
        let mut row = vec![
            Entry::number(number::text(key.point.value)),
            Entry::word(&key.target),
            Entry::number(key.n.to_string()),
        ];
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

/// Each target against the first, in one metric of an experiment.
pub fn of_ratios(record: &Record, experiment: &Experiment, metric: Metric) -> Table {
    let base = record.targets.first().map_or("", |target| target.name.as_str());
    let columns = vec![
        number::axis(&experiment.x_name),
        "target".into(),
        format!("{} / {base}", number::title(metric)),
        "pairs".into(),
        "answer".into(),
    ];
    let mut found: Vec<&Ratio> = record
        .ratios
        .iter()
        .filter(|ratio| ratio.experiment == experiment.id && ratio.metric == metric)
        .collect();
    found.sort_by(|a, b| a.point.value.total_cmp(&b.point.value));
    let row = |ratio: &&Ratio| {
        let range = ratio.interval.map_or("n=1".into(), |interval| {
            format!("{} to {}", number::text(interval.low), number::text(interval.high))
        });
        let mut value = Entry::number(number::text(ratio.ratio));
        value.range = range;
        vec![
            Entry::number(number::text(ratio.point.value)),
            Entry::word(&ratio.target),
            value,
            Entry::number(ratio.n.to_string()),
            Entry::word(answer_word(ratio)),
        ]
    };
    Table { columns, rows: found.iter().map(row).collect() }
}

/// The word for what an interval allows to say.
pub(crate) fn answer_word(ratio: &Ratio) -> &'static str {
    match ratio.answer {
        crate::record::Answer::Higher => "higher",
        crate::record::Answer::Lower => "lower",
        crate::record::Answer::Unclear => "unclear",
    }
}

/// The account of all frames: a row for each experiment and target, over its counting trials.
pub fn of_frames(record: &Record) -> Table {
    let places = [DropPlace::Target, DropPlace::Kernel, DropPlace::Link, DropPlace::Tester];
    let mut columns: Vec<String> =
        ["experiment", "target", "trials", "offered"].map(Into::into).into();
    columns.extend(["correct", "reordered", "misrouted", "corrupt"].map(Into::into));
    columns.extend(places.map(|place| format!("lost in {}", place.word())));
    columns.extend(["unexplained", "flooded", "duplicate", "foreign"].map(Into::into));
    let mut rows = Vec::new();
    for experiment in &record.experiments {
        for target in &record.targets {
            let here: Vec<&Trial> = record
                .trials
                .iter()
                .filter(|t| counts(t) && t.experiment == experiment.id && t.target == target.name)
                .collect();
            if here.is_empty() {
                continue;
            }
            let sum = |of: fn(&Trial) -> u64| -> Entry {
                Entry::number(number::count(here.iter().map(|trial| of(trial)).sum::<u64>() as i64))
            };
            let mut row = vec![
                Entry::word(&experiment.id),
                Entry::word(&target.name),
                Entry::number(here.len().to_string()),
                sum(|trial| trial.frames_offered),
                sum(|trial| trial.classes.correct),
                sum(|trial| trial.classes.reordered),
                sum(|trial| trial.classes.misrouted),
                sum(|trial| trial.classes.corrupt),
            ];
            row.extend(places.map(|place| {
                let lost = here.iter().flat_map(|trial| &trial.drops);
                let lost = lost.filter(|drop| drop.place == place).map(|drop| drop.frames);
                Entry::number(number::count(lost.sum::<u64>() as i64))
            }));
            let unexplained: i64 = here.iter().map(|trial| trial.frames_unexplained).sum();
            let mut entry = Entry::number(number::count(unexplained));
            if unexplained != 0 {
                entry.warnings.push("frames that nobody accounts for".into());
            }
            row.push(entry);
            row.push(sum(|trial| trial.classes.flooded));
            row.push(sum(|trial| trial.classes.duplicate));
            row.push(sum(|trial| trial.classes.foreign));
            rows.push(row);
        }
    }
    Table { columns, rows }
}

/// Why frames were lost: a row for each target, place and reason, over all counting trials.
pub fn of_drops(record: &Record) -> Table {
    let columns = ["target", "lost in", "at", "reason", "frames"].map(Into::into).into();
    let mut sums: Vec<([String; 4], u64)> = Vec::new();
    for trial in record.trials.iter().filter(|trial| counts(trial)) {
        for drop in &trial.drops {
            let place = drop.place.word().to_string();
            let key = [trial.target.clone(), place, drop.at.clone(), drop.reason.clone()];
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
