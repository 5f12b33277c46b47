//! What is new of a run while it measures: its trials, as they end.
//!
//! They are read where the run wrote them. Invariants: what was read is not read again; what could not be sent is sent with what
//! comes next; a run that was sent so far has no digest, so that whoever sends it whole does.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Team, TeamError, hold};
use crate::record::{Line, Trial};
use crate::store::index::database::{Row, Value};
use crate::store::index::rows::{self, Marks, Rows, identity};
use crate::store::index::stamp;
use crate::store::lines::{self, Lines};
use crate::store::{StoreError, TRIALS_FILE, read_record};

/// Bytes that are read at a time.
const BYTES_MAX: u64 = 8 << 20;

/// A run that is sent as it goes.
#[derive(Debug)]
pub struct Pushing {
    folder: PathBuf,
    name: String,
    origin: String,
    /// The first trial, once there is one.
    first: Option<Trial>,
    /// Trials that were read and are not there yet.
    waiting: Vec<Trial>,
    /// The ids of trials that were read.
    ids: BTreeSet<u64>,
    /// So far its lines were read.
    read: u64,
}

impl Pushing {
    /// A run in a folder, which the store calls so.
    pub fn new(folder: &Path, name: &str, origin: &str) -> Pushing {
        Pushing {
            folder: folder.into(),
            name: name.into(),
            origin: origin.into(),
            first: None,
            waiting: Vec::new(),
            ids: BTreeSet::new(),
            read: 0,
        }
    }

    /// Sends what is new; how many trials were sent.
    pub fn push(&mut self, team: &mut Team) -> Result<usize, TeamError> {
        self.read()?;
        let Some(first) = self.first.as_ref().filter(|_| !self.waiting.is_empty()) else {
            return Ok(0);
        };
        team.make()?;
        let mut record = read_record(&self.folder)?;
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
                let marks = Marks { identity, digest: String::new() };
                let place = (self.name.as_str(), stamp);
                let rows = Rows::of(&record, &marks, place, Some(&self.origin));
                let numbers = rows::insert(&mut writing, vec![rows])?;
                (numbers.first().copied().unwrap_or_default(), 0)
            }
        };
        let is_new = |it: &&Trial| i64::try_from(it.id).is_ok_and(|id| id > last);
        let new: Vec<&Trial> = self.waiting.iter().filter(is_new).collect();
        // Where somebody sent it whole meanwhile there may be none.
        if !new.is_empty() {
            rows::insert_trials(&mut writing, number, new.into_iter())?;
            let changed = [Value::Integer(number), Value::Integer(stamp.1)];
            writing
                .execute("UPDATE run SET digest = '', changed_ns = $2 WHERE id = $1", &changed)?;
        }
        writing.commit()?;
        Ok(std::mem::take(&mut self.waiting).len())
    }

    /// Reads lines that have come since.
    fn read(&mut self) -> Result<(), TeamError> {
        let path = self.folder.join(TRIALS_FILE);
        let wrong = |error| StoreError::new("read", &path, error);
        let mut file = File::open(&path).map_err(wrong)?;
        loop {
            file.seek(SeekFrom::Start(self.read)).map_err(wrong)?;
            let mut bytes = Vec::new();
            file.by_ref().take(BYTES_MAX).read_to_end(&mut bytes).map_err(wrong)?;
            // The last line may be on its way.
            let whole = lines::whole(&bytes);
            if whole.is_empty() {
                return Ok(());
            }
            // A damaged line is named where the run is read as a whole.
            for line in Lines::parse(whole).lines {
                if let Line::Trial(trial) = line
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
