//! The index over a folder of runs: a SQLite database that is made from their records and can always be made again.
//!
//! It lies beside the runs as `index.sqlite` and answers what no single record can: which runs measured this, and how a value went
//! over time. Invariants: nothing stands in it that is not in a record, so that deleting it loses nothing; it is brought up to date
//! whenever it is opened, by each record's size and time of change; one that is damaged, or of another version, is made anew; a run
//! that cannot be read is named with the reason and leaves the others alone. Only readers write it: runs under way need not know of it.

mod query;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::{RECORD_FILE, StoreError, campaign};
use crate::links;
use crate::record::{Record, Trial};

pub use query::{Filter, FilterError, RunRow, TrendRow};

/// The database's file, in the folder of runs.
pub const INDEX_FILE: &str = "index.sqlite";

/// Runs of one folder that are indexed.
pub const RUNS_MAX: usize = 1_000_000;

/// Things in a campaign's folder that are looked at.
const STEPS_MAX: usize = 10_000;

/// Records that are read at a time before they are written.
const BATCH: usize = 256;

/// Threads that read records.
const READERS: usize = 4;

/// The index of a folder of runs.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
}

/// What bringing an index up to date came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Runs that were read, for the first time or since they changed.
    pub read: usize,
    /// Runs that are there no more.
    pub removed: usize,
    /// Runs that cannot be read: the folder's name, and why.
    pub unreadable: Vec<(String, String)>,
    /// Why the index was made anew, or is kept in memory only.
    pub remark: Option<String>,
}

/// A record's size and time of change: when it differs, the record is read again.
type Stamp = (i64, i64);

impl Index {
    /// The index of the runs below a folder, up to date.
    pub fn open(runs: &Path) -> Result<(Index, Refreshed), StoreError> {
        let found = stamps(runs)?;
        let file = runs.join(INDEX_FILE);
        let why = match Index::fresh(&file, runs, &found) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if schema::is_damage(&why) {
            // Whatever it was, everything in it is in the records.
            schema::remove(&file).map_err(|error| StoreError::new("remove", &file, error))?;
            if let Ok((index, refreshed)) = Index::fresh(&file, runs, &found) {
                let remark =
                    Some(format!("{} was damaged ({why}) and was made anew", file.display()));
                return Ok((index, Refreshed { remark, ..refreshed }));
            }
        }
        // A folder that may not be written, or a disk that is full: the answer is the same.
        let done = Index::fresh(Path::new(":memory:"), runs, &found);
        let (index, refreshed) =
            done.map_err(|error| StoreError::Index { file: file.clone(), why: error.to_string() })?;
        let remark = Some(format!("{} cannot be kept ({why})", file.display()));
        Ok((index, Refreshed { remark, ..refreshed }))
    }

    fn fresh(
        file: &Path,
        runs: &Path,
        found: &BTreeMap<String, Stamp>,
    ) -> rusqlite::Result<(Index, Refreshed)> {
        let mut connection = schema::connect(file)?;
        let refreshed = refresh(&mut connection, runs, found)?;
        Ok((Index { connection }, refreshed))
    }

    /// The runs that this lets through, the latest first.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        query::runs(&self.connection, filter)
            .map_err(|error| StoreError::Index { file: INDEX_FILE.into(), why: error.to_string() })
    }

    /// How the metric that the filter names went over these runs, the earliest first.
    pub fn trend(&self, filter: &Filter) -> Result<Vec<TrendRow>, StoreError> {
        query::trend(&self.connection, filter)
            .map_err(|error| StoreError::Index { file: INDEX_FILE.into(), why: error.to_string() })
    }

    /// Trials that are indexed.
    pub fn trials(&self) -> Result<u64, StoreError> {
        let count = self.connection.query_row("SELECT count(*) FROM trial", [], |row| row.get(0));
        let count: i64 = count.map_err(|error| StoreError::Index {
            file: INDEX_FILE.into(),
            why: error.to_string(),
        })?;
        Ok(count.unsigned_abs())
    }
}

/// The runs below a folder, by name; those of a campaign by its name and theirs.
fn stamps(runs: &Path) -> Result<BTreeMap<String, Stamp>, StoreError> {
    let refused = |error| StoreError::new("read", runs, error);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(runs).map_err(refused)?.take(RUNS_MAX) {
        let entry = entry.map_err(refused)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if let Some(stamp) = stamp(&path) {
            found.insert(name, stamp);
        } else if campaign::is_campaign(&path) {
            let Ok(inside) = fs::read_dir(&path) else { continue };
            for step in inside.take(STEPS_MAX).flatten() {
                let own = format!("{name}/{}", step.file_name().to_string_lossy());
                found.extend(stamp(&step.path()).map(|stamp| (own, stamp)));
            }
        }
    }
    Ok(found)
}

/// The stamp of the record in a folder, if one is there.
fn stamp(folder: &Path) -> Option<Stamp> {
    let facts = fs::metadata(folder.join(RECORD_FILE)).ok()?;
    let changed = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    let ns = changed.map_or(0, |it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX));
    Some((i64::try_from(facts.len()).unwrap_or(i64::MAX), ns))
}

/// Reads what is new or has changed, and forgets what is gone.
fn refresh(
    connection: &mut Connection,
    runs: &Path,
    found: &BTreeMap<String, Stamp>,
) -> rusqlite::Result<Refreshed> {
    // Another reader may be at the same: whoever comes second finds it done.
    let writing = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = known(&writing)?;
    let mut refreshed = Refreshed::default();
    for folder in known.keys().filter(|folder| !found.contains_key(*folder)) {
        forget(&writing, folder)?;
        refreshed.removed += 1;
    }
    let changed: Vec<(&String, &Stamp)> =
        found.iter().filter(|(folder, stamp)| known.get(*folder) != Some(stamp)).collect();
    for batch in changed.chunks(BATCH) {
        for (folder, stamp, read) in read_all(runs, batch) {
            forget(&writing, folder)?;
            match read {
                Ok(record) => insert(&writing, folder, *stamp, &record)?,
                Err(error) => {
                    let why = error.to_string();
                    let row = params![folder, stamp.0, stamp.1, why];
                    writing
                        .prepare_cached("INSERT INTO unreadable VALUES (?1, ?2, ?3, ?4)")?
                        .execute(row)?;
                }
            }
            refreshed.read += 1;
        }
    }
    {
        let mut told = writing.prepare("SELECT folder, why FROM unreadable ORDER BY folder")?;
        let rows = told.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        refreshed.unreadable = rows.collect::<rusqlite::Result<_>>()?;
    }
    writing.commit()?;
    Ok(refreshed)
}

fn known(writing: &Transaction<'_>) -> rusqlite::Result<BTreeMap<String, Stamp>> {
    let both = "SELECT folder, bytes, changed_ns FROM run \
                UNION ALL SELECT folder, bytes, changed_ns FROM unreadable";
    let mut stored = writing.prepare(both)?;
    let rows = stored.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    rows.collect()
}

/// Records of a batch, read by several threads, in the batch's order.
fn read_all<'a>(
    runs: &Path,
    batch: &[(&'a String, &'a Stamp)],
) -> Vec<(&'a String, &'a Stamp, Result<Record, StoreError>)> {
    let share = batch.len().div_ceil(READERS).max(1);
    std::thread::scope(|scope| {
        let read = |part: &[(&'a String, &'a Stamp)]| -> Vec<_> {
            let of = |&(folder, stamp): &(&'a String, &'a Stamp)| {
                let path: PathBuf = runs.join(folder);
                (folder, stamp, super::read_run(&path).map(|(record, _)| record))
            };
            part.iter().map(of).collect()
        };
        let readers: Vec<_> =
            batch.chunks(share).map(|part| scope.spawn(move || read(part))).collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
            reader.join().expect("a reader of records does not panic")
        };
        readers.into_iter().flat_map(join).collect()
    })
}

fn forget(writing: &Transaction<'_>, folder: &str) -> rusqlite::Result<()> {
    let id: Option<i64> = {
        let mut found = writing.prepare_cached("SELECT id FROM run WHERE folder = ?1")?;
        let mut rows = found.query([folder])?;
        rows.next()?.map(|row| row.get(0)).transpose()?
    };
    if let Some(id) = id {
        for table in ["experiment", "target", "cell", "trial"] {
            let text = format!("DELETE FROM {table} WHERE run = ?1");
            writing.prepare_cached(&text)?.execute([id])?;
        }
        writing.prepare_cached("DELETE FROM run WHERE id = ?1")?.execute([id])?;
    }
    writing.prepare_cached("DELETE FROM unreadable WHERE folder = ?1")?.execute([folder])?;
    Ok(())
}

fn insert(
    writing: &Transaction<'_>,
    folder: &str,
    (bytes, changed_ns): Stamp,
    record: &Record,
) -> rusqlite::Result<()> {
    let machine = &record.environment;
    let environment = serde_json::to_string(machine).expect("an environment is plain data");
    let effort = serde_json::to_value(record.effort).expect("an effort is a word");
    writing
        .prepare_cached(
            "INSERT INTO run (folder, bytes, changed_ns, created, version, command_line, seed, effort, partial, link, \
             doubtful, environment) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            folder,
            bytes,
            changed_ns,
            record.created,
            record.tool.version,
            record.command_line,
            record.seed.to_string(),
            effort.as_str(),
            record.partial,
            record.link,
            record.is_doubtful(),
            environment,
        ])?;
    let id = writing.last_insert_rowid();
    let mut experiments = writing.prepare_cached("INSERT INTO experiment VALUES (?1, ?2)")?;
    for experiment in &record.experiments {
        experiments.execute(params![id, experiment.id])?;
    }
    let mut targets = writing.prepare_cached("INSERT INTO target VALUES (?1, ?2, ?3, ?4)")?;
    for target in &record.targets {
        let link = links::of(record, &target.name);
        targets.execute(params![id, target.name, target.version, link])?;
    }
    let mut cells = writing
        .prepare_cached("INSERT INTO cell VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?;
    for cell in &record.cells {
        let within = cell.point.within.as_ref().map(|it| format!("{}={}", it.name, it.value));
        let (low, high) = cell.interval.map_or((None, None), |it| (Some(it.low), Some(it.high)));
        cells.execute(params![
            id,
            cell.experiment,
            cell.target,
            cell.metric.name(),
            cell.point.name,
            cell.point.value,
            within,
            cell.value,
            low,
            high,
            cell.n,
        ])?;
    }
    record.trials.iter().try_for_each(|trial| insert_trial(writing, id, trial))
}

fn insert_trial(writing: &Transaction<'_>, id: i64, trial: &Trial) -> rusqlite::Result<()> {
    let role = serde_json::to_value(trial.role).expect("a role is a word");
    let latency = trial.latency.as_ref();
    let whole = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    writing
        .prepare_cached("INSERT INTO trial VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?
        .execute(params![
            id,
            whole(Some(trial.id)),
            trial.experiment,
            trial.target,
            trial.repeat,
            role.as_str(),
            trial.point.value,
            trial.rate_pps_offered(),
            trial.rate_pps_forwarded(),
            whole(latency.and_then(|it| it.ns_p50)),
            whole(latency.and_then(|it| it.ns_p99)),
        ])?;
    Ok(())
}
