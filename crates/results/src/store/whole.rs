//! Files that appear whole: written beside their place, then moved into it.
//!
//! Invariants: no reader sees half of a file; two writers never share the file that is not finished yet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{LATENCY_FOLDER, StoreError};

/// How the name of a file ends that is not finished yet.
const ENDING: &str = ".part";

/// A name beside a file for what is not finished yet, which no other writer has: neither a thread of this process nor another
/// process.
pub fn unfinished_name(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}{ENDING}", std::process::id()));
    name.into()
}

/// Writes a file so that it appears whole, and is on disk by then.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_beside(path, bytes, File::sync_data)
}

/// Writes a file so that it appears whole. `settle` is what is done before that: a file that a crash may take along with the trial
/// it belongs to need not wait for the disk.
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

/// A new file beside another. A name that is taken, by a process of another PID namespace or one that was killed, is passed over.
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

/// Removes what writers of a run left unfinished when they were killed. The caller holds the lock of the folder.
pub(super) fn remove_unfinished(folder: &Path) {
    for at in [folder.to_path_buf(), folder.join(LATENCY_FOLDER)] {
        let entries = fs::read_dir(at).into_iter().flatten().flatten();
        let is_unfinished =
            |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes());
        for path in entries.map(|entry| entry.path()).filter(is_unfinished) {
            // One that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }
}
