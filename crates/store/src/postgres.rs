//! A shared results store: a PostgreSQL index of runs from several users, with the files needed to
//! open them.
//!
//! The run folders stay authoritative: the store's contents can be recreated from them
//! (docs/decisions/0034-a-team-store-is-a-postgresql-database.md). Invariants:
//!
//! - A run is identified by its measurements, independent of its folder's location and name.
//! - Newer data replace older data, never the reverse.
//! - A run is replaced completely or not at all.
//! - Deletion of a local folder does not delete anything in the store.

mod contents;
mod incremental;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::index::query::{self, ID_LETTERS};
use super::index::rows::{self, RunRows, RunVersion};
use super::index::{Filter, Index, RunRow, TrendRow, in_threads, stamp};
use super::{StoreError, read_texts};
use crate::database::address::Address;
use crate::database::server::{Server, ServerError};
use crate::database::{Database, DatabaseError, Row, Value};
use contents::PackedFiles;

pub use contents::PACKED_BYTES_MAX;
pub use incremental::IncrementalUpload;

/// Maximum number of runs per batch.
const BATCH: usize = 64;

/// Maximum size of a batch in bytes.
const BATCH_BYTES: usize = 16 << 20;

/// Minimum length of an id prefix.
const RUN_ID_PREFIX_MIN: usize = 4;

/// Maximum number of candidates listed for an ambiguous name.
const NAMED_MAX: usize = 5;

/// A shared results store.
#[derive(Debug)]
pub struct PostgresStore {
    database: Database,
    /// Whether readable tables exist.
    is_made: bool,
}

/// Result of an upload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadResult {
    /// Uploaded runs: those that were new or changed.
    pub runs: usize,
    /// Runs stored without files because the files are too large.
    pub without_files: Vec<String>,
    /// Runs that disappeared or were damaged during the upload: folder name and reason.
    pub unreadable: Vec<(String, String)>,
}

/// A run that is already in the store.
struct StoredRun {
    digest: String,
    rank: (bool, i64, i64),
}

/// A run that is ready for upload.
struct ReadyRun {
    rows: RunRows,
    contents: PackedFiles,
    folder: String,
    identity: String,
    digest: String,
    /// Order of versions of a run: partial before complete, then by number of trials, then by time
    /// of change.
    rank: (bool, i64, i64),
}

impl PostgresStore {
    /// Connects to a store.
    pub fn open(address: &Address) -> Result<PostgresStore, TeamError> {
        let server = Server::connect(address).map_err(DatabaseError::from)?;
        let mut database = Database::Server(Box::new(server));
        // A server crash may lose the last transactions. These are then uploaded again.
        let settings =
            format!("SET search_path = {}; SET synchronous_commit = off", tables::SCHEMA);
        database.script(&settings)?;
        Ok(PostgresStore { database, is_made: false })
    }

    /// Creates the tables if necessary. Not required for read access.
    fn make(&mut self) -> Result<(), TeamError> {
        if !self.is_made {
            tables::make(&mut self.database)?;
            self.is_made = true;
        }
        Ok(())
    }

    /// Checks for tables without creating them.
    fn look(&mut self) -> Result<bool, TeamError> {
        if !self.is_made {
            self.is_made = tables::look(&mut self.database)?;
        }
        Ok(self.is_made)
    }

    /// Uploads the runs below a folder that are new or have changed. `origin` names their owner.
    pub fn send(
        &mut self,
        runs: &Path,
        index: &mut Index,
        origin: &str,
    ) -> Result<UploadResult, TeamError> {
        self.make()?;
        let mut sent = UploadResult::default();
        let here = index.marks()?;
        let known = self.known(here.iter().map(|(_, it)| it.identity.clone()).collect())?;
        let is_news = |(_, it): &&(String, RunVersion)| {
            known.get(&it.identity).is_none_or(|there| there.digest != it.digest)
        };
        let missing: Vec<&str> =
            here.iter().filter(is_news).map(|(folder, _)| folder.as_str()).collect();
        for batch in missing.chunks(BATCH) {
            let (mut ready, mut bytes) = (Vec::new(), 0);
            let read = in_threads(batch, |folder| ready_of(&runs.join(folder), folder, origin));
            for (folder, read) in batch.iter().zip(read) {
                match read {
                    Ok(Some(run)) => {
                        bytes += run.contents.bytes();
                        ready.push(run);
                    }
                    Ok(None) => {}
                    Err(why) => sent.unreadable.push((folder.to_string(), why.to_string())),
                }
                if bytes > BATCH_BYTES {
                    self.put(std::mem::take(&mut ready), &mut sent)?;
                    bytes = 0;
                }
            }
            self.put(ready, &mut sent)?;
        }
        Ok(sent)
    }

    /// Writes complete runs. Skips a run if the store has the same or a newer version of it.
    fn put(&mut self, mut runs: Vec<ReadyRun>, sent: &mut UploadResult) -> Result<(), TeamError> {
        if runs.is_empty() {
            return Ok(());
        }
        let mut writing = self.database.begin()?;
        let identities: Vec<String> = runs.iter().map(|run| run.identity.clone()).collect();
        hold(&mut writing, &identities)?;
        // Another client may have uploaded them in the meantime.
        let known = known(&mut writing, identities)?;
        runs.retain(|run| match known.get(&run.identity) {
            Some(it) => it.digest != run.digest && it.rank <= run.rank,
            None => true,
        });
        // Of two local copies of a run, the newer one is used.
        runs.sort_by_key(|run| std::cmp::Reverse(run.rank));
        let mut told = BTreeSet::new();
        runs.retain(|run| told.insert(run.identity.clone()));
        sent.runs += runs.len();
        let (mut all, mut contents) = (Vec::new(), Vec::new());
        for run in runs {
            if run.contents.is_too_much() {
                sent.without_files.push(run.folder);
            }
            all.push(run.rows);
            contents.push(run.contents);
        }
        // The foreign keys delete the dependent rows.
        let sql = "DELETE FROM run WHERE identity = ANY($1)";
        writing.execute(sql, &[Value::Texts(told.into_iter().collect())])?;
        let numbers = rows::insert(&mut writing, all)?;
        let files = numbers.into_iter().zip(contents).flat_map(|(run, files)| files.rows(run));
        writing.insert(&tables::CONTENTS, files.collect())?;
        Ok(writing.commit()?)
    }

    fn known(&mut self, identities: Vec<String>) -> Result<BTreeMap<String, StoredRun>, TeamError> {
        known(&mut self.database, identities)
    }

    /// The runs that match the filter, latest first.
    pub fn runs(&mut self, filter: &Filter) -> Result<Vec<RunRow>, TeamError> {
        if !self.look()? {
            return Ok(Vec::new());
        }
        Ok(query::runs(&mut self.database, filter)?)
    }

    /// Values of the filter's metric in the matching runs, earliest first.
    pub fn trend(&mut self, filter: &Filter) -> Result<Vec<TrendRow>, TeamError> {
        if !self.look()? {
            return Ok(Vec::new());
        }
        Ok(query::trend(&mut self.database, filter)?)
    }

    /// Finds the run with this id prefix or unique folder name. Returns its id and folder name.
    pub fn find(&mut self, name: &str) -> Result<(String, String), TeamError> {
        if !self.look()? {
            return Err(TeamError::NoRun);
        }
        let is_id =
            name.len() >= RUN_ID_PREFIX_MIN && name.bytes().all(|it| it.is_ascii_hexdigit());
        let begun = if is_id { name.to_ascii_lowercase() } else { "-".into() };
        let sql = "SELECT identity, folder, origin FROM run WHERE folder = $1 \
                   OR substr(identity, 1, CAST($2 AS integer)) = $3 ORDER BY identity LIMIT 100";
        let values =
            [Value::Text(name.into()), Value::count(begun.len() as u64), Value::Text(begun)];
        let read = |mut row: Row| Ok((row.text()?, row.text()?, row.text_or_none()?));
        let found = self.database.query(sql, &values)?.into_iter().map(read);
        let found =
            found.collect::<Result<Vec<(String, String, Option<String>)>, DatabaseError>>()?;
        match found.as_slice() {
            [] => Err(TeamError::NoRun),
            [(identity, folder, _)] => Ok((identity.clone(), folder.clone())),
            several => {
                let told = |(identity, folder, origin): &(String, String, Option<String>)| {
                    let id: String = identity.chars().take(ID_LETTERS).collect();
                    format!("{id} ({folder} of {})", origin.as_deref().unwrap_or("unknown owner"))
                };
                Err(TeamError::Several(several.iter().take(NAMED_MAX).map(told).collect()))
            }
        }
    }

    /// Writes the files of a run that [`Team::find`] found into a folder.
    pub fn fetch(&mut self, identity: &str, into: &Path) -> Result<(), TeamError> {
        let number = number(&mut self.database, identity)?.ok_or(TeamError::NoRun)?;
        contents::fetch(&mut self.database, number, into)
    }
}

/// Blocks other uploads of these runs until the transaction ends.
fn hold(writing: &mut Database, identities: &[String]) -> Result<(), DatabaseError> {
    let key = |identity: &String| {
        let first: String = identity.chars().take(16).collect();
        u64::from_str_radix(&first, 16).unwrap_or_default() as i64
    };
    // All clients lock in the same order, which prevents a deadlock.
    let keys: BTreeSet<i64> = identities.iter().map(key).collect();
    for keys in keys.into_iter().collect::<Vec<_>>().chunks(BATCH) {
        let sql = "SELECT 'held' FROM unnest($1) WITH ORDINALITY AS it (key, place), pg_advisory_xact_lock(it.key)";
        writing.query(sql, &[Value::Integers(keys.to_vec())])?;
    }
    Ok(())
}

fn known(
    database: &mut Database,
    identities: Vec<String>,
) -> Result<BTreeMap<String, StoredRun>, TeamError> {
    let sql = "SELECT identity, digest, partial, changed_ns, (SELECT count(*) FROM trial WHERE trial.run = run.id) \
               FROM run WHERE identity = ANY($1)";
    let read = |mut row: Row| {
        let (identity, digest) = (row.text()?, row.text()?);
        let (is_partial, changed, trials) = (row.is()?, row.integer()?, row.integer()?);
        Ok((identity, StoredRun { digest, rank: (!is_partial, trials, changed) }))
    };
    database.query(sql, &[Value::Texts(identities)])?.into_iter().map(read).collect()
}

/// Row number of a stored run.
fn number(database: &mut Database, identity: &str) -> Result<Option<i64>, DatabaseError> {
    let identity = [Value::Text(identity.into())];
    let rows = database.query("SELECT id FROM run WHERE identity = $1", &identity)?;
    rows.into_iter().next().map(|mut row| row.integer()).transpose()
}

/// Reads and packs a local run; none if it has no measurements yet.
fn ready_of(path: &Path, folder: &str, origin: &str) -> Result<Option<ReadyRun>, StoreError> {
    let stamp = stamp(path).unwrap_or_default();
    let (stored, texts) = read_texts(path)?;
    let record = stored.record;
    let marks = RunVersion::of(&record, &texts);
    if marks.identity.is_empty() {
        return Ok(None);
    }
    Ok(Some(ReadyRun {
        rows: RunRows::of(&record, &marks, (folder, stamp), Some(origin)),
        contents: PackedFiles::of(path, &record, &texts),
        folder: folder.into(),
        identity: marks.identity,
        digest: marks.digest,
        rank: (!record.partial, record.trials.len() as i64, stamp.1),
    }))
}

/// Error of a shared results store.
#[derive(Debug)]
#[non_exhaustive]
pub enum TeamError {
    /// Error of the server or the connection.
    Server {
        /// One line, without the address.
        why: String,
        /// Whether a retry cannot help.
        is_lasting: bool,
        /// Whether only write access is denied.
        is_read_only: bool,
    },
    /// A later version of the program created the tables.
    Newer {
        /// Version of the tables.
        there: i64,
        /// Supported version.
        own: i64,
    },
    /// An earlier version of the program created the tables, and this user may not change them.
    Older {
        /// Version of the tables.
        there: i64,
        /// Supported version.
        own: i64,
    },
    /// No run has this name.
    NoRun,
    /// Several runs have this name (which).
    Several(Vec<String>),
    /// The store has no files of this run.
    NotKept,
    /// The store returned invalid data.
    Odd(String),
    /// Error of a local folder.
    Store(StoreError),
}

impl TeamError {
    /// Whether a retry cannot help without a correction.
    pub fn is_lasting(&self) -> bool {
        match self {
            TeamError::Server { is_lasting, .. } => *is_lasting,
            TeamError::Odd(_) => false,
            _ => true,
        }
    }

    /// Whether this user has read access only.
    pub fn is_read_only(&self) -> bool {
        matches!(self, TeamError::Server { is_read_only: true, .. })
    }
}

impl From<DatabaseError> for TeamError {
    fn from(error: DatabaseError) -> Self {
        let (is_lasting, is_read_only) = match &error {
            DatabaseError::Server(error) => {
                (error.is_lasting(), matches!(error, ServerError::Rights(_)))
            }
            _ => (false, false),
        };
        TeamError::Server { why: error.to_string(), is_lasting, is_read_only }
    }
}

impl From<StoreError> for TeamError {
    fn from(error: StoreError) -> Self {
        TeamError::Store(error)
    }
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TeamError::Server { why, .. } => write!(f, "{why}"),
            TeamError::Newer { there, own } => write!(
                f,
                "its tables have version {there}, this planimeter supports {own} (hint: update \
                 planimeter)"
            ),
            TeamError::Older { there, own } => write!(
                f,
                "its tables have version {there}, this planimeter reads {own} (hint: let a user \
                 with write access run this planimeter once)"
            ),
            TeamError::NoRun => write!(f, "no run has this name or id"),
            TeamError::Several(names) => {
                write!(f, "several runs match: {} (hint: use the id)", names.join(", "))
            }
            TeamError::NotKept => {
                write!(
                    f,
                    "the store has only the results of this run, not its files (hint: use the \
                     run's own folder)"
                )
            }
            TeamError::Odd(why) => write!(f, "{why}"),
            TeamError::Store(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TeamError {}
