//! The lock for the single writer of a folder.
//!
//! Source: flock(2), proc_locks(5). Invariants:
//!
//! - The lock belongs to an open file. It ends when the file is closed or its process is killed.
//! - Child processes do not inherit the file, because it is opened with close-on-exec.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::{StoreError, TRIALS_FILE, campaign};

/// Locks a folder through a file in it, while the file is open.
pub(super) fn lock(file: &File, folder: &Path) -> Result<(), StoreError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(StoreError::Locked { folder: folder.to_path_buf(), process: holder(file) })
        }
        Err(error) => Err(StoreError::new("lock", folder, error.into())),
    }
}

/// Opens a file for appending and locking. Does not follow a link: in a folder from an archive, a
/// link can lead to any file of this user.
pub(super) fn open(options: &mut OpenOptions, path: &Path) -> Result<File, StoreError> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = options.append(true).custom_flags(flags).open(path);
    file.map_err(|error| StoreError::new("write", path, error))
}

/// A locked folder. Dropping this value unlocks it.
#[derive(Debug)]
pub struct Locked(#[expect(dead_code, reason = "the lock ends when the file is closed")] File);

impl Locked {
    /// Locks the folder of a run or campaign for a writer that opens no [`Store`](super::Store).
    /// Returns none if the folder contains neither.
    pub fn take(folder: &Path) -> Result<Option<Locked>, StoreError> {
        let names = [campaign::CAMPAIGN_FILE, TRIALS_FILE];
        let Some(path) = names.map(|name| folder.join(name)).into_iter().find(|it| it.is_file())
        else {
            return Ok(None);
        };
        let file = open(&mut OpenOptions::new(), &path)?;
        lock(&file, folder)?;
        Ok(Some(Locked(file)))
    }
}

/// The process that holds the lock, if the kernel reports it. A process of another PID namespace
/// has no number here.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    holder_in(&fs::read_to_string("/proc/locks").ok()?, inode)
}

/// Finds the holder in the text of `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 123 00:2d:456 0 EOF`.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "FLOCK" || words.nth(1)? != "WRITE" {
            return None;
        }
        let process: u32 = words.next()?.parse().ok()?;
        let own: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
        (own == inode && process != 0).then_some(process)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_lock_is_read_from_the_kernel() {
        let locks = "1: POSIX  ADVISORY  READ 77 00:2d:456 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 123 00:2d:456 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 00:2d:789 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 00:2d:5 0 EOF\n";
        assert_eq!(holder_in(locks, 456), Some(123));
        assert_eq!(holder_in(locks, 5), None, "of another PID namespace");
        assert_eq!(holder_in(locks, 6), None);
        assert_eq!(holder_in("", 456), None);
    }
}
