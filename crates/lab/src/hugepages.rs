//! Huge pages: reserved for as long as a program of DPDK needs them, and given back.
//!
//! The kernel keeps one number per size for the whole machine. A reservation raises it by what is
//! wanted and lowers it by as much when it ends; pages that others have reserved stay theirs, and
//! where this process may not change the number, free pages of theirs are used instead. A page lent
//! to no file needs no mount: the programs that the lab starts ask for their pages by number
//! (`--in-memory`), so that a killed one leaves none behind.
//!
//! Source: the kernel's `Documentation/admin-guide/mm/hugetlbpage.rst`.
//! Invariant: what was added is taken away again, by the drop or, after a crash, by the sweep of
//! the run's folder, which has the number in writing.

#![allow(unsafe_code)]

use crate::need::Need;
use crate::proc;
use crate::{LabError, RunFolder};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Reserved pages; given back when dropped. To be dropped after the programs that use them.
#[derive(Debug)]
pub struct HugePages {
    added: u64,
    folder: RunFolder,
}

impl HugePages {
    /// Reserves this many mebibytes, rounded up to whole pages, and notes it in the run's folder.
    pub fn reserve(mebibytes: u64, folder: &RunFolder) -> Result<HugePages, LabError> {
        let pages = pages(mebibytes);
        let added = match raise(pages) {
            Ok(()) => pages,
            // Not ours to change, or not that many: what others have reserved and not used will do.
            Err(_) if read("free_hugepages").is_some_and(|free| free >= pages) => 0,
            Err(why) => return Err(Need::HugePages { mebibytes, why: why.to_string() }.into()),
        };
        let reserved = HugePages { added, folder: folder.clone() };
        folder.record_pages(added as i64)?;
        Ok(reserved)
    }

    /// The pages that this reservation added to the machine's.
    pub fn added(&self) -> u64 {
        self.added
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if give_back(self.added).is_ok() {
            // Should this fail, the folder is about to be removed anyhow.
            let _ = self.folder.record_pages(-(self.added as i64));
        }
    }
}

/// Whether so much could be reserved now; looks only.
pub fn possible(mebibytes: u64) -> Result<String, Need> {
    let wanted = pages(mebibytes);
    let (size, free) = (page_kibibytes(), read("free_hugepages").unwrap_or(0));
    if free >= wanted {
        return Ok(format!("{free} pages of {size} KiB are free"));
    }
    let refused = |why: String| Need::HugePages { mebibytes, why };
    let path = file("nr_hugepages");
    let opened = File::options().write(true).open(&path);
    opened.map_err(|error| refused(format!("{}: {error}", path.display())))?;
    let memory = proc::memory_available_kibibytes().unwrap_or(0);
    if memory < wanted.saturating_mul(size) {
        return Err(refused(format!("only {} MiB of memory are free", memory / 1024)));
    }
    Ok(format!("can be reserved, {} MiB of memory are free", memory / 1024))
}

/// Takes this many pages from the machine's number, as far as there are so many.
pub(crate) fn give_back(pages: u64) -> io::Result<()> {
    if pages == 0 {
        return Ok(());
    }
    let mut number = Number::lock()?;
    let before = number.get()?;
    number.set(before.saturating_sub(pages))
}

/// Adds to the machine's number, wholly or not at all.
fn raise(pages: u64) -> io::Result<()> {
    // Asked for more than there is, the kernel would take all there is before it gives up.
    let memory = proc::memory_available_kibibytes().unwrap_or(0);
    if memory < pages.saturating_mul(page_kibibytes()) {
        return Err(io::Error::other(format!("only {} MiB of memory are free", memory / 1024)));
    }
    let mut number = Number::lock()?;
    let before = number.get()?;
    number.set(before.saturating_add(pages))?;
    let after = number.get()?;
    if after >= before.saturating_add(pages) {
        return Ok(());
    }
    number.set(before)?;
    let found = after.saturating_sub(before);
    Err(io::Error::other(format!("the kernel found {found} pages of the {pages} wanted")))
}

/// The machine's number of reserved pages, locked against other runs.
struct Number {
    file: File,
}

impl Number {
    fn lock() -> io::Result<Number> {
        let file = File::options().read(true).write(true).open(file("nr_hugepages"))?;
        // SAFETY: the descriptor is open; the call touches no memory. Closing it unlocks.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Number { file })
    }

    fn get(&mut self) -> io::Result<u64> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_string(&mut text)?;
        text.trim().parse().map_err(|_| io::Error::other(format!("{text:?} is no number of pages")))
    }

    fn set(&mut self, pages: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(pages.to_string().as_bytes())
    }
}

/// Whole pages of the machine's default size that hold this much.
pub(crate) fn pages(mebibytes: u64) -> u64 {
    mebibytes.saturating_mul(1024).div_ceil(page_kibibytes())
}

fn page_kibibytes() -> u64 {
    proc::huge_page_kibibytes().unwrap_or(2048)
}

fn read(name: &str) -> Option<u64> {
    fs::read_to_string(file(name)).ok()?.trim().parse().ok()
}

fn file(name: &str) -> PathBuf {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/{name}", page_kibibytes()).into()
}
