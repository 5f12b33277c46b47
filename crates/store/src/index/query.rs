//! Queries of the index: runs that match a filter, and a metric's values over time.
//!
//! Invariant: the values of a filter reach the database as parameters, never as SQL.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::series::{self, Conditions};
use crate::database::{Database, DatabaseError, Row, Value};
use record::{Environment, target_name};
use stats::change::{self, Change};

/// Selects the runs that meet all conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    conditions: Vec<(Key, String)>,
}

/// Property of a run that a condition compares.
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

/// Keys with their names and accepted values.
const KEYS: [(&str, Key, &str); 10] = [
    ("experiment", Key::Experiment, "an experiment's id or a study's name"),
    ("target", Key::Target, "a target's name"),
    ("link", Key::Link, "a link's name"),
    ("metric", Key::Metric, "a metric's name; its values over time are printed too"),
    ("effort", Key::Effort, "quick, standard or full"),
    ("version", Key::Version, "the planimeter version of the run"),
    ("since", Key::Since, "first day, such as 2026-01-31"),
    ("until", Key::Until, "last day"),
    ("partial", Key::Partial, "yes or no: whether the run ended early"),
    (
        "doubtful",
        Key::Doubtful,
        "yes or no: whether a result is irregular or limited by the tester",
    ),
];

/// An invalid condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError(String);

impl Filter {
    /// Parses conditions of the form `KEY=VALUE`.
    pub fn read(texts: &[String]) -> Result<Filter, FilterError> {
        let conditions = texts.iter().map(|text| Filter::condition(text));
        Ok(Filter { conditions: conditions.collect::<Result<_, _>>()? })
    }

    fn condition(text: &str) -> Result<(Key, String), FilterError> {
        let wrong = || FilterError(text.into());
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (_, key, _) = KEYS.iter().find(|(name, ..)| *name == key).ok_or_else(wrong)?;
        let is_good = match key {
            Key::Partial | Key::Doubtful => matches!(value, "yes" | "no" | "true" | "false"),
            Key::Since | Key::Until => is_day(value),
            _ => !value.is_empty(),
        };
        let value = match key {
            Key::Target => target_name::current(value),
            _ => value.into(),
        };
        if is_good { Ok((*key, value.into_owned())) } else { Err(wrong()) }
    }

    /// The metric of the filter, if any.
    pub fn metric(&self) -> Option<&str> {
        self.conditions.iter().find(|(key, _)| *key == Key::Metric).map(|(_, value)| value.as_str())
    }

    /// The SQL condition on a run.
    fn condition_on_run(&self, places: &mut StatementParameters) -> String {
        let mut sql = String::from("TRUE");
        for (key, value) in &self.conditions {
            let part = match key {
                Key::Experiment => {
                    let is_it = places.is_or_is_below("experiment.id", value);
                    format!(
                        "EXISTS (SELECT 1 FROM experiment WHERE experiment.run = run.id AND {is_it})"
                    )
                }
                Key::Target => {
                    let place = places.text(value);
                    format!(
                        "EXISTS (SELECT 1 FROM target WHERE target.run = run.id AND target.name = {place})"
                    )
                }
                Key::Link => {
                    let place = places.text(value);
                    format!(
                        "EXISTS (SELECT 1 FROM target WHERE target.run = run.id AND target.link = {place})"
                    )
                }
                Key::Metric => {
                    let place = places.text(value);
                    format!(
                        "EXISTS (SELECT 1 FROM cell WHERE cell.run = run.id AND cell.metric = {place})"
                    )
                }
                Key::Effort => format!("run.effort = {}", places.text(value)),
                Key::Version => format!("run.version = {}", places.text(value)),
                Key::Since => format!("run.created >= {}", places.text(value)),
                // A time begins with its day and `T`, which sorts before `U`.
                Key::Until => format!("run.created < {}", places.text(&format!("{value}U"))),
                Key::Partial => format!("run.partial = {}", places.is(is_yes(value))),
                Key::Doubtful => format!("run.doubtful = {}", places.is(is_yes(value))),
            };
            sql = format!("{sql} AND {part}");
        }
        sql
    }

    /// The SQL condition on a cell of a matching run.
    fn condition_on_cell(&self, places: &mut StatementParameters) -> String {
        let mut sql = String::from("TRUE");
        for (key, value) in &self.conditions {
            let part = match key {
                Key::Metric => format!("cell.metric = {}", places.text(value)),
                Key::Target => format!("cell.target = {}", places.text(value)),
                Key::Experiment => places.is_or_is_below("cell.experiment", value),
                _ => continue,
            };
            sql = format!("{sql} AND {part}");
        }
        sql
    }
}

/// Parameters of a statement.
#[derive(Default)]
struct StatementParameters(Vec<Value>);

impl StatementParameters {
    fn text(&mut self, text: &str) -> String {
        self.place(Value::Text(text.into()))
    }

    fn is(&mut self, is: bool) -> String {
        self.place(Value::Bool(is))
    }

    fn place(&mut self, value: Value) -> String {
        self.0.push(value);
        format!("${}", self.0.len())
    }

    /// SQL that is true if a column is this id or an id of the study with this name.
    fn is_or_is_below(&mut self, column: &str, value: &str) -> String {
        let below = format!("{value}/");
        let letters = Value::count(below.chars().count() as u64);
        let (is, letters, below) = (self.text(value), self.place(letters), self.text(&below));
        format!("({column} = {is} OR substr({column}, 1, CAST({letters} AS INTEGER)) = {below})")
    }
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
    /// First letters of its id, if it is in a shared results store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Owner and machine, if it is in a shared results store: `ann@lab1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Its folder's name.
    pub folder: String,
    /// Start time.
    pub created: String,
    /// Its experiments.
    pub experiments: Vec<String>,
    /// Its targets.
    pub targets: Vec<String>,
    /// Its link.
    pub link: String,
    /// Measurement effort.
    pub effort: String,
    /// Number of completed trials.
    pub trials: u64,
    /// Whether it ended early.
    pub partial: bool,
    /// Whether a result is irregular or limited by the tester.
    pub doubtful: bool,
    /// The planimeter version that measured it.
    pub version: String,
}

/// A value of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendRow {
    /// First letters of the run's id, if it is in a shared results store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The run's folder.
    pub folder: String,
    /// Start time of the run.
    pub created: String,
    /// The experiment.
    pub experiment: String,
    /// The target.
    pub target: String,
    /// Point on the axis: `frame_bytes=64`.
    pub point: String,
    /// Other measurement conditions. Values with other conditions belong to another series.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Why the value supports no conclusion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Separator of aggregated names. No name contains it.
const BETWEEN: &str = "\u{1f}";

/// Length of a displayed run id in a shared results store.
pub(crate) const ID_LETTERS: usize = 10;

pub(crate) fn runs(database: &mut Database, filter: &Filter) -> Result<Vec<RunRow>, DatabaseError> {
    let mut places = StatementParameters::default();
    let condition = filter.condition_on_run(&mut places);
    let sql = format!(
        "SELECT identity, origin, folder, created, link, effort, partial, doubtful, version, \
         (SELECT string_agg(experiment.id, '{BETWEEN}' ORDER BY place) FROM experiment WHERE experiment.run = run.id), \
         (SELECT string_agg(target.name, '{BETWEEN}' ORDER BY place) FROM target WHERE target.run = run.id), \
         (SELECT count(*) FROM trial WHERE trial.run = run.id) \
         FROM run WHERE {condition} ORDER BY created DESC, folder DESC, identity"
    );
    let id = id_in(database);
    let names = |text: Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split(BETWEEN)).map(String::from).collect()
    };
    let row = |mut row: Row| {
        Ok(RunRow {
            id: id(row.text()?),
            origin: row.text_or_none()?,
            folder: row.text()?,
            created: row.text()?,
            link: row.text()?,
            effort: row.text()?,
            partial: row.is()?,
            doubtful: row.is()?,
            version: row.text()?,
            experiments: names(row.text_or_none()?),
            targets: names(row.text_or_none()?),
            trials: row.integer()?.unsigned_abs(),
        })
    };
    database.query(&sql, &places.0)?.into_iter().map(row).collect()
}

/// Displayed id of a run in a shared results store. Runs below a folder have none.
fn id_in(database: &Database) -> impl Fn(String) -> Option<String> + use<> {
    let is_shared = matches!(database, Database::Server(_));
    move |identity| is_shared.then(|| identity.chars().take(ID_LETTERS).collect())
}

pub(crate) fn trend(
    database: &mut Database,
    filter: &Filter,
) -> Result<Vec<TrendRow>, DatabaseError> {
    let mut places = StatementParameters::default();
    let on_run = filter.condition_on_run(&mut places);
    let on_cell = filter.condition_on_cell(&mut places);
    let sql = format!(
        "SELECT identity, folder, created, experiment, target, point_name, point, within, value, low, high, reason, \
         (SELECT min(target.link) FROM target WHERE target.run = run.id AND target.name = cell.target), \
         (SELECT min(target.version) FROM target WHERE target.run = run.id AND target.name = cell.target), \
         effort, environment, parameters, run.link \
         FROM run JOIN cell ON cell.run = run.id WHERE {on_run} AND {on_cell} AND value IS NOT NULL \
         ORDER BY experiment, target, point_name, point, within IS NOT NULL, within, created, folder, identity, metric, value"
    );
    let named = id_in(database);
    let row = |mut row: Row| {
        let (id, folder, created) = (named(row.text()?), row.text()?, row.text()?);
        let (experiment, target) = (row.text()?, row.text()?);
        let (name, at) = (row.text()?, row.real()?);
        let within = row.text_or_none()?;
        Ok(TrendRow {
            id,
            folder,
            created,
            experiment,
            target,
            point: format!("{name}={at}{}", within.map(|it| format!(",{it}")).unwrap_or_default()),
            value: row.real()?,
            low: row.real_or_none()?,
            high: row.real_or_none()?,
            reason: row.text_or_none()?,
            conditions: conditions(&mut row)?,
        })
    };
    let rows = database.query(&sql, &places.0)?.into_iter().map(row);
    Ok(by_series(rows.collect::<Result<_, DatabaseError>>()?))
}

/// Takes the conditions of a value from the last columns of its row.
fn conditions(row: &mut Row) -> Result<Conditions, DatabaseError> {
    let (link, version) = (row.text_or_none()?, row.text_or_none()?);
    let (effort, environment) = (row.text()?, row.text()?);
    let environment: Environment = serde_json::from_str(&environment).unwrap_or_default();
    let parameters = row.text_or_none()?;
    let link_of_run = row.text()?;
    Ok(Conditions {
        link: link.unwrap_or(link_of_run),
        version_family: version.as_deref().and_then(series::version_family),
        effort,
        host: series::host_class(&environment),
        parameters,
    })
}

/// Groups rows by series. Each series is in order of time.
fn by_series(rows: Vec<TrendRow>) -> Vec<TrendRow> {
    let mut places: HashMap<Series, usize> = HashMap::new();
    let mut all: Vec<Vec<TrendRow>> = Vec::new();
    for row in rows {
        let place = *places.entry(row.series()).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[place].push(row);
    }
    all.into_iter().flatten().collect()
}

/// Key of a series: experiment, target, point and conditions.
type Series = (String, String, String, Conditions);

impl TrendRow {
    fn series(&self) -> Series {
        let names = (self.experiment.clone(), self.target.clone(), self.point.clone());
        (names.0, names.1, names.2, self.conditions.clone())
    }

    /// The change points of a series. Ignores values that support no conclusion.
    pub fn changes(series: &[TrendRow]) -> Vec<Change> {
        let usable = series.iter().enumerate().filter(|(_, row)| row.reason.is_none());
        let (places, values): (Vec<usize>, Vec<f64>) =
            usable.map(|(at, row)| (at, row.value)).unzip();
        let changes = change::changes(&values).into_iter();
        changes.map(|change| Change { at: places[change.at], ..change }).collect()
    }

    /// Whether another value belongs to the same series.
    pub fn is_of_series(&self, other: &TrendRow) -> bool {
        self.series() == other.series()
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> =
            KEYS.iter().map(|(name, _, takes)| format!("{name}= ({takes})")).collect();
        let keys = keys.join(", ");
        write!(f, "--filter {}: invalid condition (hint: write KEY=VALUE with {keys})", self.0)
    }
}

impl std::error::Error for FilterError {}

/// Whether a condition's text means yes; other interfaces write booleans as `true` and `false`.
fn is_yes(text: &str) -> bool {
    matches!(text, "yes" | "true")
}
