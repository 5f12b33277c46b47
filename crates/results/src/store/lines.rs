//! The lines of `trials.jsonl`: what can be read of them, and what cannot.
//!
//! Invariants:
//!
//! - A damaged line costs its own trial only, and is named by its number.
//! - Of several trials with one id the first counts.
//! - A last line without its end is no damage: it is of a trial that was being written.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use super::{FILE_BYTES_MAX, StoreError};
use crate::record::Line;

/// What was read.
#[derive(Debug, Default)]
pub struct Lines {
    /// Trials and outcomes, in order.
    pub lines: Vec<Line>,
    /// What was left out.
    pub damage: Vec<Damage>,
    /// The ids of the trials.
    pub(super) ids: BTreeSet<u64>,
}

/// A line that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Lines {
    /// Parses lines, each with its end.
    pub fn parse(bytes: &[u8]) -> Lines {
        let mut found = Lines::default();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
        lines.for_each(|(line, number)| found.add(line, number));
        if found.has_gaps() {
            // What rests on a trial that is missing is found again.
            let ids = &found.ids;
            found.lines.retain(|line| match line {
                Line::Trial(_) => true,
                Line::Outcome(outcome) => outcome.trials.iter().all(|id| ids.contains(id)),
            });
        }
        found
    }

    /// Parses one line.
    fn add(&mut self, line: &[u8], number: usize) {
        let damage = |why| Damage { line: number, why };
        match serde_json::from_slice(line) {
            Ok(Line::Trial(trial)) if !self.ids.insert(trial.id) => {
                let why = format!("trial {} is repeated, left out: the first one counts", trial.id);
                self.damage.push(damage(why));
            }
            Ok(line) => self.lines.push(line),
            Err(error) => self.damage.push(damage(format!("damaged, left out: {error}"))),
        }
    }

    /// Whether trials are missing among those that were stored, or were stored twice.
    pub fn has_gaps(&self) -> bool {
        !self.damage.is_empty() || self.ids.last().is_some_and(|last| *last > self.ids.len() as u64)
    }
}

/// The bytes of the file; none where it is missing.
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

/// What stands before a line without its end.
pub(super) fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}
