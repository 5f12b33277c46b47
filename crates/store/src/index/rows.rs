//! Converts a run to rows of the index's tables.
//!
//! Invariant: a run's rows depend only on its record and its folder, and are the same for SQLite
//! and PostgreSQL.

use ring::digest::{SHA256, digest};
use serde_json::json;

use super::RunStamp;
use super::series::parameters;
use crate::SourceTexts;
use crate::database::schema::{CELL, EXPERIMENT, PARTS, RUN, TARGET, TRIAL, Table};
use crate::database::{Database, DatabaseError, Value};
use record::links;
use record::target_name::first_spelling;
use record::{Record, Trial};
use stats::conclude::Estimate;

/// Identity and version of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunVersion {
    /// Identity of the run, independent of its folder and progress. Empty until something was
    /// measured.
    pub(crate) identity: String,
    /// Digest of the stored data.
    pub(crate) digest: String,
}

impl RunVersion {
    /// The marks of a run read from these texts.
    pub(crate) fn of(record: &Record, texts: &SourceTexts) -> RunVersion {
        let first = record.trials.iter().min_by_key(|trial| trial.id);
        RunVersion {
            identity: first.map(|first| identity(record, first)).unwrap_or_default(),
            digest: hex(&[texts.record.as_bytes(), texts.lines.as_bytes()].concat()),
        }
    }
}

/// Identity of a run on any machine: its start time, parameters and environment, and the results of
/// its first trial. Two first trials never take the same number of nanoseconds. The identity does
/// not change as the run progresses, when its folder moves, or when another version reads it.
pub(crate) fn identity(record: &Record, first: &Trial) -> String {
    let machine = &record.environment;
    let latency = first.latency.as_ref().map(|it| (it.count, it.ns_min, it.ns_max));
    let module = first.module.as_ref().map(|it| (it.duration_ns, it.events, it.reaction_ns));
    let facts = json!([
        record.created,
        record.command_line,
        record.seed,
        machine.kernel,
        machine.cpu_model,
        machine.memory_bytes,
        first.id,
        first.experiment,
        first_spelling(&first.target),
        first.seed,
        first.frames_offered,
        first.frames_forwarded,
        first.duration_ns_effective,
        first.duration_ns_receiving,
        latency,
        module,
    ]);
    hex(facts.to_string().as_bytes())
}

/// SHA-256 in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A run's rows without the run number, which is the first column of each.
#[derive(Debug)]
pub(crate) struct RunRows {
    run: Vec<Value>,
    parts: [Vec<Vec<Value>>; PARTS.len()],
}

impl RunRows {
    /// The rows of a local run.
    pub(crate) fn of(
        record: &Record,
        marks: &RunVersion,
        (folder, stamp): (&str, RunStamp),
        origin: Option<&str>,
    ) -> RunRows {
        let machine = serde_json::to_string(&record.environment);
        let machine = machine.expect("an environment is plain data");
        let effort = serde_json::to_value(record.effort).expect("an effort is a word");
        let text = |text: &str| Value::Text(text.into());
        let run = vec![
            text(folder),
            Value::Integer(stamp.0),
            Value::Integer(stamp.1),
            text(&marks.identity),
            text(&marks.digest),
            Value::text_or_null(origin),
            text(&record.created),
            text(&record.tool.version),
            text(&record.command_line),
            text(&record.seed.to_string()),
            text(effort.as_str().unwrap_or_default()),
            Value::Bool(record.partial),
            text(&record.link),
            Value::Bool(record.is_doubtful()),
            Value::Text(machine),
            Value::Text(parameters(record)),
        ];
        let experiments = record.experiments.iter().enumerate();
        let experiments =
            experiments.map(|(at, it)| vec![Value::Integer(at as i64), text(&it.id)]).collect();
        let targets = record.targets.iter().enumerate().map(|(at, target)| {
            let version = Value::text_or_null(target.version.as_deref());
            let link = links::of(record, &target.name);
            vec![Value::Integer(at as i64), text(&target.name), version, text(link)]
        });
        let cells = record.cells.iter().map(|cell| {
            let within = cell.point.within.as_ref().map(|it| format!("{}={}", it.name, it.value));
            vec![
                text(&cell.experiment),
                text(&cell.target),
                text(cell.metric.name()),
                text(&cell.point.name),
                Value::Real(cell.point.value),
                Value::text_or_null(within),
                Value::Real(cell.value),
                Value::real_or_null(cell.interval.map(|it| it.low)),
                Value::real_or_null(cell.interval.map(|it| it.high)),
                Value::count(cell.n as u64),
                Value::text_or_null(Estimate::of(cell).reason().map(|it| it.to_string())),
            ]
        });
        let (targets, cells) = (targets.collect(), cells.collect());
        let trials = record.trials.iter().map(trial).collect();
        RunRows { run, parts: [experiments, targets, cells, trials] }
    }
}

/// A trial's row without the run number.
fn trial(trial: &Trial) -> Vec<Value> {
    let role = serde_json::to_value(trial.role).expect("a role is a word");
    let latency = trial.latency.as_ref();
    let whole = |ns: Option<u64>| ns.map_or(Value::Null, Value::count);
    vec![
        Value::count(trial.id),
        Value::Text(trial.experiment.clone()),
        Value::Text(trial.target.clone()),
        Value::Integer(trial.repeat.into()),
        Value::Text(role.as_str().unwrap_or_default().into()),
        Value::Real(trial.point.value),
        Value::real_or_null(trial.rate_pps_offered()),
        Value::real_or_null(trial.rate_pps_forwarded()),
        whole(latency.and_then(|it| it.ns_p50)),
        whole(latency.and_then(|it| it.ns_p99)),
    ]
}

/// Inserts runs with new numbers and returns these.
pub(crate) fn insert(
    writing: &mut Database,
    runs: Vec<RunRows>,
) -> Result<Vec<i64>, DatabaseError> {
    let numbers = writing.numbers(runs.len())?;
    let (mut heads, mut parts): (_, [Vec<Vec<Value>>; PARTS.len()]) =
        (Vec::new(), Default::default());
    for (run, &number) in runs.into_iter().zip(&numbers) {
        heads.push(numbered(number, run.run));
        for (all, own) in parts.iter_mut().zip(run.parts) {
            all.extend(own.into_iter().map(|row| numbered(number, row)));
        }
    }
    writing.insert(&RUN, heads)?;
    let tables: [&Table; PARTS.len()] = [&EXPERIMENT, &TARGET, &CELL, &TRIAL];
    for (table, rows) in tables.into_iter().zip(parts) {
        writing.insert(table, rows)?;
    }
    Ok(numbers)
}

/// Inserts further trials of a run.
pub(crate) fn insert_trials<'a>(
    writing: &mut Database,
    run: i64,
    trials: impl Iterator<Item = &'a Trial>,
) -> Result<(), DatabaseError> {
    let rows = trials.map(|it| numbered(run, trial(it))).collect();
    writing.insert(&TRIAL, rows)
}

fn numbered(number: i64, row: Vec<Value>) -> Vec<Value> {
    std::iter::once(Value::Integer(number)).chain(row).collect()
}
