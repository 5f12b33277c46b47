//! What the index is asked: which runs, and how a value went over them.
//!
//! Invariant: what a filter compares with reaches the database as a value, never as a part of its language.

use std::fmt;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use serde::Serialize;

/// Which runs are meant: all conditions hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    conditions: Vec<(Key, String)>,
}

/// What a run can be chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Experiment,
    Target,
    Link,
    Metric,
    Effort,
    Version,
    Since,
    Until,
    Partial,
    Doubtful,
}

/// Keys by their names, and what each takes.
const KEYS: [(&str, Key, &str); 10] = [
    ("experiment", Key::Experiment, "an id, or a study's name"),
    ("target", Key::Target, "a target's name"),
    ("link", Key::Link, "a link's name"),
    ("metric", Key::Metric, "a metric's name: how it went is shown too"),
    ("effort", Key::Effort, "quick, standard or full"),
    ("version", Key::Version, "the version of planimeter that measured"),
    ("since", Key::Since, "a day: 2026-01-31"),
    ("until", Key::Until, "a day, which counts"),
    ("partial", Key::Partial, "yes or no: whether it ended early"),
    (
        "doubtful",
        Key::Doubtful,
        "yes or no: whether a result is irregular or limited by the tester",
    ),
];

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError(String);

impl Filter {
    /// Reads conditions as they are written: `KEY=VALUE`.
    pub fn read(texts: &[String]) -> Result<Filter, FilterError> {
        let conditions = texts.iter().map(|text| Filter::condition(text));
        Ok(Filter { conditions: conditions.collect::<Result<_, _>>()? })
    }

    fn condition(text: &str) -> Result<(Key, String), FilterError> {
        let wrong = || FilterError(text.into());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (_, key, _) = KEYS.iter().find(|(name, ..)| *name == key).ok_or_else(wrong)?;
        let is_good = match key {
            Key::Partial | Key::Doubtful => matches!(value, "yes" | "no"),
            Key::Since | Key::Until => is_day(value),
            _ => !value.is_empty(),
        };
        if is_good { Ok((*key, value.into())) } else { Err(wrong()) }
    }

    /// The metric that it names.
    pub fn metric(&self) -> Option<&str> {
        self.conditions.iter().find(|(key, _)| *key == Key::Metric).map(|(_, value)| value.as_str())
    }

    /// What a run has to be, as SQL with places for these values.
    fn condition_on_run(&self) -> (String, Vec<Value>) {
        let (mut sql, mut values) = (String::from("1"), Vec::new());
        for (key, value) in &self.conditions {
            let text = || Value::Text(value.clone());
            let (part, value) = match key {
                Key::Experiment => {
                    values.push(text());
                    let part = "EXISTS (SELECT 1 FROM experiment e WHERE e.run = run.id AND (e.id = ? OR e.id LIKE ? \
                                ESCAPE '\\'))";
                    (part, Value::Text(format!("{}/%", literal(value))))
                }
                Key::Target => {
                    ("EXISTS (SELECT 1 FROM target t WHERE t.run = run.id AND t.name = ?)", text())
                }
                Key::Link => {
                    ("EXISTS (SELECT 1 FROM target t WHERE t.run = run.id AND t.link = ?)", text())
                }
                Key::Metric => {
                    ("EXISTS (SELECT 1 FROM cell c WHERE c.run = run.id AND c.metric = ?)", text())
                }
                Key::Effort => ("run.effort = ?", text()),
                Key::Version => ("run.version = ?", text()),
                Key::Since => ("run.created >= ?", text()),
                // Behind a day's name only its own hours come.
                Key::Until => ("run.created < ?", Value::Text(format!("{value}U"))),
                Key::Partial => ("run.partial = ?", Value::Integer((value == "yes").into())),
                Key::Doubtful => ("run.doubtful = ?", Value::Integer((value == "yes").into())),
            };
            sql = format!("{sql} AND {part}");
            values.push(value);
        }
        (sql, values)
    }

    /// What else a cell has to be.
    fn condition_on_cell(&self) -> (String, Vec<Value>) {
        let (mut sql, mut values) = (String::from("1"), Vec::new());
        for (key, value) in &self.conditions {
            let part = match key {
                Key::Metric => "cell.metric = ?",
                Key::Target => "cell.target = ?",
                Key::Experiment => {
                    values.push(Value::Text(value.clone()));
                    values.push(Value::Text(format!("{}/%", literal(value))));
                    sql += " AND (cell.experiment = ? OR cell.experiment LIKE ? ESCAPE '\\')";
                    continue;
                }
                _ => continue,
            };
            sql = format!("{sql} AND {part}");
            values.push(Value::Text(value.clone()));
        }
        (sql, values)
    }
}

/// Text that a pattern takes as it is.
fn literal(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

fn is_day(text: &str) -> bool {
    let is_place = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_place)
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Its folder's name.
    pub folder: String,
    /// When it began.
    pub created: String,
    /// Its experiments.
    pub experiments: Vec<String>,
    /// Its targets.
    pub targets: Vec<String>,
    /// How they were joined.
    pub link: String,
    /// How much was measured.
    pub effort: String,
    /// Trials that ended.
    pub trials: u64,
    /// Whether it ended early.
    pub partial: bool,
    /// Whether a result is irregular or limited by the tester.
    pub doubtful: bool,
    /// The version that measured.
    pub version: String,
}

/// A value of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendRow {
    /// The run's folder.
    pub folder: String,
    /// When it began.
    pub created: String,
    /// The experiment.
    pub experiment: String,
    /// The target.
    pub target: String,
    /// Where on the axis: `frame_bytes=64`.
    pub point: String,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What parts names that are gathered to one text: no name holds it.
const BETWEEN: &str = "\u{1f}";

pub(super) fn runs(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<RunRow>> {
    let (condition, values) = filter.condition_on_run();
    let sql = format!(
        "SELECT folder, created, link, effort, partial, doubtful, version, \
         (SELECT group_concat(id, '{BETWEEN}') FROM experiment WHERE run = run.id), \
         (SELECT group_concat(name, '{BETWEEN}') FROM target WHERE run = run.id), \
         (SELECT count(*) FROM trial WHERE run = run.id) \
         FROM run WHERE {condition} ORDER BY created DESC, folder DESC"
    );
    let row = |row: &Row<'_>| {
        let names = |text: Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.split(BETWEEN)).map(String::from).collect()
        };
        Ok(RunRow {
            folder: row.get(0)?,
            created: row.get(1)?,
            link: row.get(2)?,
            effort: row.get(3)?,
            partial: row.get(4)?,
            doubtful: row.get(5)?,
            version: row.get(6)?,
            experiments: names(row.get(7)?),
            targets: names(row.get(8)?),
            trials: row.get::<_, i64>(9)?.unsigned_abs(),
        })
    };
    connection.prepare(&sql)?.query_map(params_from_iter(values), row)?.collect()
}

pub(super) fn trend(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<TrendRow>> {
    let (on_run, mut values) = filter.condition_on_run();
    let (on_cell, more) = filter.condition_on_cell();
    values.extend(more);
    let sql = format!(
        "SELECT folder, created, experiment, target, point_name, point, within, value, low, high \
         FROM run JOIN cell ON cell.run = run.id WHERE {on_run} AND {on_cell} AND value IS NOT NULL \
         ORDER BY experiment, target, point_name, point, within, created"
    );
    let row = |row: &Row<'_>| {
        let (name, at): (String, f64) = (row.get(4)?, row.get(5)?);
        let within: Option<String> = row.get(6)?;
        Ok(TrendRow {
            folder: row.get(0)?,
            created: row.get(1)?,
            experiment: row.get(2)?,
            target: row.get(3)?,
            point: format!("{name}={at}{}", within.map(|it| format!(",{it}")).unwrap_or_default()),
            value: row.get(7)?,
            low: row.get(8)?,
            high: row.get(9)?,
        })
    };
    connection.prepare(&sql)?.query_map(params_from_iter(values), row)?.collect()
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            KEYS.iter().map(|(name, _, takes)| format!("{name}= ({takes})")).collect();
        write!(f, "--filter {}: write KEY=VALUE with one of: {}", self.0, keys.join(", "))
    }
}

impl std::error::Error for FilterError {}
