//! Uploads the trials of a run while it measures.
//!
//! Trials are read from the run's folder. Invariants:
//!
//! - Each line is read once.
//! - Trials that could not be sent are sent with the next ones.
//! - A run uploaded this way has no digest, so that a later upload replaces it completely.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{PostgresStore, TeamError, hold};
use crate::database::{Row, Value};
use crate::index::rows::{self, RunRows, RunVersion, identity};
use crate::index::stamp;
use crate::lines::{self, Lines};
use crate::{StoreError, TRIALS_FILE, read_record_text};
use record::{Trial, TrialLine};

/// Maximum number of bytes per read.
const BYTES_MAX: u64 = 8 << 20;

/// A run that is uploaded as it progresses.
#[derive(Debug)]
pub struct IncrementalUpload {
    folder: PathBuf,
    name: String,
    origin: String,
    /// The first trial, if any.
    first: Option<Trial>,
    /// Trials that were read but not sent yet.
    waiting: Vec<Trial>,
    /// Ids of the trials that were read.
    ids: BTreeSet<u64>,
    /// Read position in the file.
    read: u64,
}

impl IncrementalUpload {
    /// Starts an upload of the run in a folder under this name.
    pub fn new(folder: &Path, name: &str, origin: &str) -> IncrementalUpload {
        IncrementalUpload {
            folder: folder.into(),
            name: name.into(),
            origin: origin.into(),
            first: None,
            waiting: Vec::new(),
            ids: BTreeSet::new(),
            read: 0,
        }
    }

    /// Sends new trials and returns their number.
    pub fn push(&mut self, team: &mut PostgresStore) -> Result<usize, TeamError> {
        self.read()?;
        let Some(first) = self.first.as_ref().filter(|_| !self.waiting.is_empty()) else {
            return Ok(0);
        };
        team.make()?;
        let (mut record, _) = read_record_text(&self.folder)?;
        let identity = identity(&record, first);
        let stamp = stamp(&self.folder).unwrap_or_default();
        let mut writing = team.database.begin()?;
        hold(&mut writing, std::slice::from_ref(&identity))?;
        let sql = "SELECT id, (SELECT coalesce(max(id), 0) FROM trial WHERE trial.run = run.id) FROM run WHERE identity = $1";
        let known = writing.query(sql, &[Value::Text(identity.clone())])?.into_iter().next();
        let read = |mut row: Row| Ok::<_, TeamError>((row.integer()?, row.integer()?));
        let (number, last) = match known.map(read).transpose()? {
            Some(known) => known,
            None => {
                record.trials.clear();
                let marks = RunVersion { identity, digest: String::new() };
                let place = (self.name.as_str(), stamp);
                let rows = RunRows::of(&record, &marks, place, Some(&self.origin));
                let numbers = rows::insert(&mut writing, vec![rows])?;
                (numbers.first().copied().unwrap_or_default(), 0)
            }
        };
        let is_new = |it: &&Trial| i64::try_from(it.id).is_ok_and(|id| id > last);
        let new: Vec<&Trial> = self.waiting.iter().filter(is_new).collect();
        // If another client uploaded the run in the meantime, there may be no new trials.
        if !new.is_empty() {
            rows::insert_trials(&mut writing, number, new.into_iter())?;
            let changed = [Value::Integer(number), Value::Integer(stamp.1)];
            writing
                .execute("UPDATE run SET digest = '', changed_ns = $2 WHERE id = $1", &changed)?;
        }
        writing.commit()?;
        Ok(std::mem::take(&mut self.waiting).len())
    }

    /// Reads new lines.
    fn read(&mut self) -> Result<(), TeamError> {
        let path = self.folder.join(TRIALS_FILE);
        let wrong = |error| StoreError::new("read", &path, error);
        let mut file = File::open(&path).map_err(wrong)?;
        loop {
            file.seek(SeekFrom::Start(self.read)).map_err(wrong)?;
            let mut bytes = Vec::new();
            file.by_ref().take(BYTES_MAX).read_to_end(&mut bytes).map_err(wrong)?;
            // The last line may be incomplete.
            let whole = lines::whole(&bytes);
            if whole.is_empty() {
                return Ok(());
            }
            // A complete read of the run reports damaged lines.
            for line in Lines::parse(whole).lines {
                if let TrialLine::Trial(trial) = line
                    && self.ids.insert(trial.id)
                {
                    self.first.get_or_insert_with(|| trial.clone());
                    self.waiting.push(trial);
                }
            }
            self.read += whole.len() as u64;
        }
    }
}
