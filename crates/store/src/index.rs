//! Index of a folder of runs: a SQLite database that can be recreated from the records.
//!
//! The file `index.sqlite` in the folder of runs serves queries over many records: which runs
//! measured a metric, and how a value changed over time. Invariants:
//!
//! - The index contains only data from records, so that deleting it loses nothing.
//! - Opening the index updates it, by the size and modification time of each record.
//! - A damaged index, or one of another version, is recreated.
//! - A run that cannot be read is reported with the reason and does not affect other runs.
//! - Only readers write the index. Running measurements do not use it.

pub(crate) mod query;
pub(crate) mod rows;
pub mod series;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{RECORD_FILE, START_FILE, StoreError, TRIALS_FILE, campaign};
use crate::database::{self, Database, DatabaseError, Value, schema};
use query::ID_LETTERS;
use rows::{RunRows, RunVersion};

pub use query::{Filter, FilterError, RunRow, TrendRow};
pub use series::Conditions;

/// Name of the database file in the folder of runs.
pub const INDEX_FILE: &str = "index.sqlite";

/// Maximum number of indexed runs per folder.
pub const RUNS_MAX: usize = 1_000_000;

/// Maximum number of entries examined in a campaign's folder.
const STEPS_MAX: usize = 10_000;

/// Records read before each write.
const BATCH: usize = 256;

/// Number of threads that read records.
const READERS: usize = 4;

/// The index of a folder of runs.
#[derive(Debug)]
pub struct Index {
    database: Database,
}

/// Result of an index update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUpdate {
    /// Runs that were read because they are new or changed.
    pub read: usize,
    /// Runs that no longer exist.
    pub removed: usize,
    /// Runs that cannot be read: folder name and reason.
    pub unreadable: Vec<(String, String)>,
    /// Why the index was recreated, or is in memory only.
    pub remark: Option<String>,
}

/// Total size of a run's record and trial lines, and the later modification time of the two. A run
/// with a different stamp is read again.
pub(crate) type RunStamp = (i64, i64);

impl Index {
    /// Opens the index of the runs below a folder and updates it.
    pub fn open(runs: &Path) -> Result<(Index, IndexUpdate), StoreError> {
        let found = stamps(runs)?;
        let file = runs.join(INDEX_FILE);
        let why = match Index::fresh(&file, runs, &found) {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if schema::is_damage(&why) {
            // Deleting the file is safe: all data are in the records.
            schema::remove(&file).map_err(|error| StoreError::new("remove", &file, error))?;
            if let Ok((index, refreshed)) = Index::fresh(&file, runs, &found) {
                let remark =
                    Some(format!("{} was damaged ({why}) and was recreated", file.display()));
                return Ok((index, IndexUpdate { remark, ..refreshed }));
            }
        }
        // If the folder is read-only or the disk is full, an in-memory index gives the same
        // results.
        let done = Index::fresh(Path::new(":memory:"), runs, &found);
        let (index, refreshed) =
            done.map_err(|error| StoreError::Index { file: file.clone(), why: error.to_string() })?;
        let remark = Some(format!("{} cannot be stored ({why})", file.display()));
        Ok((index, IndexUpdate { remark, ..refreshed }))
    }

    fn fresh(
        file: &Path,
        runs: &Path,
        found: &BTreeMap<String, RunStamp>,
    ) -> Result<(Index, IndexUpdate), DatabaseError> {
        let mut database = schema::connect(file)?;
        let refreshed = refresh(&mut database, runs, found)?;
        Ok((Index { database }, refreshed))
    }

    /// The runs that match the filter, latest first.
    pub fn runs(&mut self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        query::runs(&mut self.database, filter).map_err(unusable)
    }

    /// Values of the filter's metric in the matching runs, earliest first.
    pub fn trend(&mut self, filter: &Filter) -> Result<Vec<TrendRow>, StoreError> {
        query::trend(&mut self.database, filter).map_err(unusable)
    }

    /// Number of indexed trials.
    pub fn trials(&mut self) -> Result<u64, StoreError> {
        let counted = self.database.query("SELECT count(*) FROM trial", &[]);
        let count = counted.and_then(|rows| rows.into_iter().map(|mut row| row.integer()).sum());
        let count: i64 = count.map_err(unusable)?;
        Ok(count.unsigned_abs())
    }

    /// Folders of runs with measurements, by the [id](RunRow::id) that the shared store uses.
    pub fn folders_by_id(&mut self) -> Result<BTreeMap<String, String>, StoreError> {
        let id = |marks: RunVersion| marks.identity.chars().take(ID_LETTERS).collect();
        Ok(self.marks()?.into_iter().map(|(folder, marks)| (id(marks), folder)).collect())
    }

    /// Runs with measurements: folder and marks.
    pub(crate) fn marks(&mut self) -> Result<Vec<(String, RunVersion)>, StoreError> {
        let sql = "SELECT folder, identity, digest FROM run WHERE identity <> '' ORDER BY folder";
        let marks = |row: &mut database::Row| {
            let folder = row.text()?;
            Ok((folder, RunVersion { identity: row.text()?, digest: row.text()? }))
        };
        let rows = self.database.query(sql, &[]);
        rows.and_then(|rows| rows.into_iter().map(|mut row| marks(&mut row)).collect())
            .map_err(unusable)
    }
}

fn unusable(error: DatabaseError) -> StoreError {
    StoreError::Index { file: INDEX_FILE.into(), why: error.to_string() }
}

/// Stamps of the runs below a folder, by name. Runs of a campaign are named `CAMPAIGN/RUN`.
fn stamps(runs: &Path) -> Result<BTreeMap<String, RunStamp>, StoreError> {
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

/// The stamp of the run in a folder, if any.
pub(crate) fn stamp(folder: &Path) -> Option<RunStamp> {
    let of = |name| -> Option<RunStamp> {
        let facts = fs::metadata(folder.join(name)).ok()?;
        let changed = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let ns = changed.map_or(0, |it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX));
        Some((i64::try_from(facts.len()).unwrap_or(i64::MAX), ns))
    };
    let record = of(RECORD_FILE).or_else(|| of(START_FILE))?;
    let lines = of(TRIALS_FILE).unwrap_or_default();
    Some((record.0.saturating_add(lines.0), record.1.max(lines.1)))
}

/// Reads new and changed runs and removes deleted ones.
fn refresh(
    database: &mut Database,
    runs: &Path,
    found: &BTreeMap<String, RunStamp>,
) -> Result<IndexUpdate, DatabaseError> {
    // Another reader may update at the same time. The second one finds nothing left to do.
    let mut writing = database.begin()?;
    let known = known(&mut writing)?;
    let mut refreshed = IndexUpdate::default();
    for folder in known.keys().filter(|folder| !found.contains_key(*folder)) {
        forget(&mut writing, folder)?;
        refreshed.removed += 1;
    }
    let changed: Vec<(&str, RunStamp)> = found
        .iter()
        .filter(|(folder, stamp)| known.get(*folder) != Some(stamp))
        .map(|(folder, stamp)| (folder.as_str(), *stamp))
        .collect();
    for batch in changed.chunks(BATCH) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (&(folder, stamp), read) in batch.iter().zip(read_all(runs, batch)) {
            if known.contains_key(folder) {
                forget(&mut writing, folder)?;
            }
            match read {
                Ok(rows) => good.push(rows),
                Err(error) => {
                    let (bytes, changed) = (Value::Integer(stamp.0), Value::Integer(stamp.1));
                    let (folder, why) = (Value::Text(folder.into()), error.to_string());
                    bad.push(vec![folder, bytes, changed, Value::Text(why)]);
                }
            }
            refreshed.read += 1;
        }
        rows::insert(&mut writing, good)?;
        writing.insert(&schema::UNREADABLE, bad)?;
    }
    let told = writing.query("SELECT folder, why FROM unreadable ORDER BY folder", &[])?;
    let told = told.into_iter().map(|mut row| Ok((row.text()?, row.text()?)));
    refreshed.unreadable = told.collect::<Result<_, DatabaseError>>()?;
    writing.commit()?;
    Ok(refreshed)
}

fn known(writing: &mut Database) -> Result<BTreeMap<String, RunStamp>, DatabaseError> {
    let both = "SELECT folder, bytes, changed_ns FROM run \
                UNION ALL SELECT folder, bytes, changed_ns FROM unreadable";
    let rows = writing.query(both, &[])?.into_iter();
    rows.map(|mut row| Ok((row.text()?, (row.integer()?, row.integer()?)))).collect()
}

/// Rows of a batch of runs, read in several threads and returned in the batch's order.
fn read_all(runs: &Path, batch: &[(&str, RunStamp)]) -> Vec<Result<RunRows, StoreError>> {
    in_threads(batch, |&(folder, stamp)| {
        let (stored, texts) = super::read_texts(&runs.join(folder))?;
        let record = &stored.record;
        Ok(RunRows::of(record, &RunVersion::of(record, &texts), (folder, stamp), None))
    })
}

/// Maps items in several threads. Results are in the order of the items.
pub(crate) fn in_threads<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = all.len().div_ceil(READERS).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let parts = all.chunks(share);
        let readers: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>()))
            .collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, Vec<R>>| {
            reader.join().expect("a reader of records does not panic")
        };
        readers.into_iter().flat_map(join).collect()
    })
}

fn forget(writing: &mut Database, folder: &str) -> Result<(), DatabaseError> {
    let folder = [Value::Text(folder.into())];
    // The foreign keys delete the dependent rows.
    writing.execute("DELETE FROM run WHERE folder = $1", &folder)?;
    writing.execute("DELETE FROM unreadable WHERE folder = $1", &folder)
}
