//! Atomic file creation: written under a temporary name, then renamed.
//!
//! Invariants: no reader sees a partial file; two writers never share a temporary file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LATENCY_FOLDER, StoreError};

/// Suffix of temporary files.
const ENDING: &str = ".part";

/// A temporary name next to a file, unique among threads and processes.
pub fn unfinished_name(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}{ENDING}", std::process::id()));
    name.into()
}

/// Writes a file atomically and syncs it to disk.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_beside(path, bytes, File::sync_data)
}

/// Writes a file atomically. `settle` runs before the rename. A file that may be lost in a crash
/// together with its trial needs no sync.
pub(super) fn write_beside(
    path: &Path,
    bytes: &[u8],
    settle: impl Fn(&File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let (mut file, beside) =
        created(path).map_err(|error| StoreError::new("write", path, error))?;
    let written = file.write_all(bytes).and_then(|()| settle(&file));
    written.and_then(|()| fs::rename(&beside, path)).map_err(|error| {
        let _ = fs::remove_file(&beside);
        StoreError::new("write", path, error)
    })
}

/// Creates a temporary file. Skips names that are in use by a process of another PID namespace or
/// left by a killed process.
fn created(path: &Path) -> io::Result<(File, PathBuf)> {
    const NAMES_MAX: u32 = 1000;
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES_MAX {
        let beside = unfinished_name(path);
        match File::create_new(&beside) {
            Ok(file) => return Ok((file, beside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Removes temporary files of killed writers. The caller holds the lock of the folder.
pub(super) fn remove_unfinished(folder: &Path) {
    for at in [folder.to_path_buf(), folder.join(LATENCY_FOLDER)] {
        let entries = fs::read_dir(at).into_iter().flatten().flatten();
        let is_unfinished =
            |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes());
        for path in entries.map(|entry| entry.path()).filter(is_unfinished) {
            // Failure to remove one is harmless.
            let _ = fs::remove_file(path);
        }
    }
}
