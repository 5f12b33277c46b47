//! Parser for the lines of `trials.jsonl`.
//!
//! Invariants:
//!
//! - A damaged line affects only its own trial and is reported by its number.
//! - Of several trials with one id the first counts.
//! - An incomplete last line is not an error: its trial was being written.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use super::{FILE_BYTES_MAX, StoreError};
use record::{TrialLine, schema1};

/// Parsed lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// Trials and outcomes, in order.
    pub lines: Vec<TrialLine>,
    /// Omitted lines.
    pub damage: Vec<Damage>,
    /// The ids of the trials.
    pub(super) ids: BTreeSet<u64>,
}

/// An omitted line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its number, from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Lines {
    /// Parses complete lines.
    pub fn parse(bytes: &[u8]) -> Lines {
        let mut found = Lines::default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
        lines.for_each(|(line, number)| found.add(line, number));
        if found.has_gaps() {
            // Outcomes that need a missing trial are searched again.
            let ids = &found.ids;
            found.lines.retain(|line| match line {
                TrialLine::Trial(_) => true,
                TrialLine::Outcome(outcome) => outcome.trials.iter().all(|id| ids.contains(id)),
            });
        }
        found
    }

    /// Parses one line.
    fn add(&mut self, line: &[u8], number: usize) {
        let damage = |why| Damage { line: number, why };
        let parsed = serde_json::from_slice::<serde_json::Value>(line).and_then(|mut value| {
            schema1::convert_line(&mut value);
            serde_json::from_value(value)
        });
        match parsed {
            Ok(TrialLine::Trial(trial)) if !self.ids.insert(trial.id) => {
                let why = format!("trial {} is repeated, ignored: the first one counts", trial.id);
                self.damage.push(damage(why));
            }
            Ok(line) => self.lines.push(line),
            Err(error) => self.damage.push(damage(format!("damaged, ignored: {error}"))),
        }
    }

    /// Whether stored trials are missing or duplicated.
    pub fn has_gaps(&self) -> bool {
        !self.damage.is_empty() || self.ids.last().is_some_and(|last| *last > self.ids.len() as u64)
    }
}

/// The bytes of the file; none if it is missing.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    let refused = |error| StoreError::new("read", path, error);
    match fs::metadata(path) {
        Ok(facts) if facts.len() > FILE_BYTES_MAX => {
            Err(StoreError::TooLarge { file: path.to_path_buf(), limit: FILE_BYTES_MAX })
        }
        Ok(_) => fs::read(path).map_err(refused),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(refused(error)),
    }
}

/// The bytes before an incomplete last line.
pub(super) fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}
