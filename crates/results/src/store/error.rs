//! What goes wrong with a run's folder, in the words of one line.

use std::io;
use std::path::{Path, PathBuf};

use crate::histogram::HistogramError;

/// What goes wrong with a run's folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused: what was attempted (`make`, `write`, `read`), on what, and its error.
    System {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// The record was written by another version.
    UnknownSchema {
        /// The file.
        file: PathBuf,
        /// The version that it states, if it states one.
        schema: Option<u64>,
        /// The version that is understood.
        known: u32,
    },
    /// A line of a file is not what it should be.
    NotUnderstood {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        why: String,
    },
    /// Another process writes to the folder.
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process, where the kernel tells.
        process: Option<u32>,
    },
    /// The folder has a trial of this id already.
    RepeatedTrial {
        /// The folder.
        folder: PathBuf,
        /// The trial's id.
        id: u64,
    },
    /// A histogram's text is damaged.
    BadHistogram {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: HistogramError,
    },
    /// A file is larger than any that planimeter writes.
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// A name leads out of the run's folder.
    OutsideRun {
        /// The folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// The index over the runs cannot be used.
    Index {
        /// The database.
        file: PathBuf,
        /// What it says.
        why: String,
    },
    /// No number is free for another run of this name.
    TooManyRuns {
        /// The folder's name without number.
        folder: PathBuf,
        /// Numbers that there are.
        limit: u32,
    },
}

impl StoreError {
    pub(super) fn new(doing: &'static str, path: &Path, error: io::Error) -> Self {
        StoreError::System { doing, path: path.to_path_buf(), error }
    }

    pub(super) fn not_understood(path: &Path, error: &serde_json::Error) -> Self {
        let why = error.to_string();
        StoreError::NotUnderstood { file: path.to_path_buf(), line: error.line(), why }
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreError::System { doing, path, error } => {
                write!(f, "cannot {doing} {}: {error}", path.display())
            }
            StoreError::UnknownSchema { file, schema: Some(schema), known } => write!(
                f,
                "{} has schema version {schema}, and only {known} is understood",
                file.display()
            ),
            StoreError::UnknownSchema { file, schema: None, .. } => {
                write!(f, "{} is not a record of planimeter", file.display())
            }
            StoreError::NotUnderstood { file, line, why } => {
                write!(f, "{}, line {line}: {why}", file.display())
            }
            StoreError::Locked { folder, process } => {
                let process =
                    process.map_or("another process".into(), |it| format!("process {it}"));
                let folder = folder.display();
                write!(
                    f,
                    "cannot write to {folder}: {process} is writing to it (hint: wait until that process ends)"
                )
            }
            StoreError::RepeatedTrial { folder, id } => {
                write!(f, "cannot write to {}: it has a trial {id} already", folder.display())
            }
            StoreError::BadHistogram { file, why } => write!(f, "{}: {why}", file.display()),
            StoreError::TooLarge { file, limit } => {
                write!(f, "{} is larger than {limit} bytes", file.display())
            }
            StoreError::OutsideRun { folder, name } => {
                write!(f, "{name:?} leads out of {}", folder.display())
            }
            StoreError::Index { file, why } => {
                write!(f, "the index {} cannot be used: {why}", file.display())
            }
            StoreError::TooManyRuns { folder, limit } => {
                write!(f, "{}-1 to -{limit} exist already", folder.display())
            }
        }
    }
}

impl std::error::Error for StoreError {}
