//! The index over a folder of runs: a SQLite database that is made from their records and can always be made again.
//!
//! It lies beside the runs as `index.sqlite` and answers what no single record can: which runs measured this, and how a value went
//! over time. Invariants: nothing stands in it that is not in a record, so that deleting it loses nothing; it is brought up to date
//! whenever it is opened, by each record's size and time of change; one that is damaged, or of another version, is made anew; a run
//! that cannot be read is named with the reason and leaves the others alone. Only readers write it: runs under way need not know of it.

pub(crate) mod database;
pub(crate) mod query;
pub(crate) mod rows;
pub(crate) mod schema;
/// What belongs to one series.
pub mod series;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{RECORD_FILE, START_FILE, StoreError, TRIALS_FILE, campaign};
use database::{Database, DatabaseError, Value};
use query::ID_LETTERS;
use rows::{Marks, Rows};

pub use query::{Filter, FilterError, RunRow, TrendRow};
pub use series::Conditions;

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
    database: Database,
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

/// The size of a run's record and of the lines of its trials, and when the later of them changed: when it differs, the run is read again.
pub(crate) type Stamp = (i64, i64);

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
    ) -> Result<(Index, Refreshed), DatabaseError> {
        let mut database = schema::connect(file)?;
        let refreshed = refresh(&mut database, runs, found)?;
        Ok((Index { database }, refreshed))
    }

    /// The runs that this lets through, the latest first.
    pub fn runs(&mut self, filter: &Filter) -> Result<Vec<RunRow>, StoreError> {
        query::runs(&mut self.database, filter).map_err(unusable)
    }

    /// How the metric that the filter names went over these runs, the earliest first.
    pub fn trend(&mut self, filter: &Filter) -> Result<Vec<TrendRow>, StoreError> {
        query::trend(&mut self.database, filter).map_err(unusable)
    }

    /// Trials that are indexed.
    pub fn trials(&mut self) -> Result<u64, StoreError> {
        let counted = self.database.query("SELECT count(*) FROM trial", &[]);
        let count = counted.and_then(|rows| rows.into_iter().map(|mut row| row.integer()).sum());
        let count: i64 = count.map_err(unusable)?;
        Ok(count.unsigned_abs())
    }

    /// Folders of runs in which something was measured, by the [id](RunRow::id) that a store for teams has for them.
    pub fn folders_by_id(&mut self) -> Result<BTreeMap<String, String>, StoreError> {
        let id = |marks: Marks| marks.identity.chars().take(ID_LETTERS).collect();
        Ok(self.marks()?.into_iter().map(|(folder, marks)| (id(marks), folder)).collect())
    }

    /// Runs in which something was measured: where each lies, and its marks.
    pub(crate) fn marks(&mut self) -> Result<Vec<(String, Marks)>, StoreError> {
        let sql = "SELECT folder, identity, digest FROM run WHERE identity <> '' ORDER BY folder";
        let marks = |row: &mut database::Row| {
            let folder = row.text()?;
            Ok((folder, Marks { identity: row.text()?, digest: row.text()? }))
        };
        let rows = self.database.query(sql, &[]);
        rows.and_then(|rows| rows.into_iter().map(|mut row| marks(&mut row)).collect())
            .map_err(unusable)
    }
}

fn unusable(error: DatabaseError) -> StoreError {
    StoreError::Index { file: INDEX_FILE.into(), why: error.to_string() }
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

/// The stamp of the run in a folder, if one is there.
pub(crate) fn stamp(folder: &Path) -> Option<Stamp> {
    let of = |name| -> Option<Stamp> {
        let facts = fs::metadata(folder.join(name)).ok()?;
        let changed = facts.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let ns = changed.map_or(0, |it| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX));
        Some((i64::try_from(facts.len()).unwrap_or(i64::MAX), ns))
    };
    let record = of(RECORD_FILE).or_else(|| of(START_FILE))?;
    let lines = of(TRIALS_FILE).unwrap_or_default();
    Some((record.0.saturating_add(lines.0), record.1.max(lines.1)))
}

/// Reads what is new or has changed, and forgets what is gone.
fn refresh(
    database: &mut Database,
    runs: &Path,
    found: &BTreeMap<String, Stamp>,
) -> Result<Refreshed, DatabaseError> {
    // Another reader may be at the same: whoever comes second finds it done.
    let mut writing = database.begin()?;
    let known = known(&mut writing)?;
    let mut refreshed = Refreshed::default();
    for folder in known.keys().filter(|folder| !found.contains_key(*folder)) {
        forget(&mut writing, folder)?;
        refreshed.removed += 1;
    }
    let changed: Vec<(&str, Stamp)> = found
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

fn known(writing: &mut Database) -> Result<BTreeMap<String, Stamp>, DatabaseError> {
    let both = "SELECT folder, bytes, changed_ns FROM run \
                UNION ALL SELECT folder, bytes, changed_ns FROM unreadable";
    let rows = writing.query(both, &[])?.into_iter();
    rows.map(|mut row| Ok((row.text()?, (row.integer()?, row.integer()?)))).collect()
}

/// Rows of the runs of a batch, read by several threads, in the batch's order.
fn read_all(runs: &Path, batch: &[(&str, Stamp)]) -> Vec<Result<Rows, StoreError>> {
    in_threads(batch, |&(folder, stamp)| {
        let (stored, texts) = super::read_texts(&runs.join(folder))?;
        let record = &stored.record;
        Ok(Rows::of(record, &Marks::of(record, &texts), (folder, stamp), None))
    })
}

/// Does the same with each of these, in several threads; what came of it, in their order.
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
    // What belongs to it goes with it.
    writing.execute("DELETE FROM run WHERE folder = $1", &folder)?;
    writing.execute("DELETE FROM unreadable WHERE folder = $1", &folder)
}
