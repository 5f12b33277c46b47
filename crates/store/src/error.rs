//! One-line errors of run folders.

use std::io;
use std::path::{Path, PathBuf};

use stats::histogram::HistogramError;

/// Error of a run's folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A system call failed: the operation (`make`, `write`, `read`), its path and the error.
    System {
        /// The operation.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another version wrote the record.
    UnknownSchema {
        /// The file.
        file: PathBuf,
        /// The version in the record, if any.
        schema: Option<u64>,
        /// The supported version.
        known: u32,
    },
    /// A line of a file is invalid.
    NotUnderstood {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// Another process writes to the folder.
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process, if the kernel reports it.
        process: Option<u32>,
    },
    /// The folder already has a trial with this id.
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
        /// The reason.
        why: HistogramError,
    },
    /// A file exceeds the size limit.
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// A name is outside the run's folder.
    OutsideRun {
        /// The folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// The index of the runs cannot be used.
    Index {
        /// The database.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// All numbers for a run of this name are in use.
    TooManyRuns {
        /// The folder's name without the number.
        folder: PathBuf,
        /// The largest number.
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
                "{} has schema version {schema}, but only versions 1 to {known} are supported",
                file.display()
            ),
            StoreError::UnknownSchema { file, schema: None, .. } => {
                write!(f, "{} is not a planimeter record", file.display())
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
                write!(f, "cannot write to {}: trial {id} already exists", folder.display())
            }
            StoreError::BadHistogram { file, why } => write!(f, "{}: {why}", file.display()),
            StoreError::TooLarge { file, limit } => {
                write!(f, "{} is larger than {limit} bytes", file.display())
            }
            StoreError::OutsideRun { folder, name } => {
                write!(f, "{name:?} is outside {}", folder.display())
            }
            StoreError::Index { file, why } => {
                write!(f, "cannot use the index {}: {why}", file.display())
            }
            StoreError::TooManyRuns { folder, limit } => {
                write!(f, "{}-1 to -{limit} already exist", folder.display())
            }
        }
    }
}

impl std::error::Error for StoreError {}
