//! Huge pages, reserved while a DPDK program needs them.
//!
//! - The kernel has one number per page size for the whole machine. A reservation increases it, and
//!   decreases it by the same amount when it ends. Pages reserved by others are not affected.
//! - If this process may not change the number, free pages of existing reservations are used
//!   instead.
//! - No mount is required: the lab starts DPDK programs with `--in-memory`, so that a killed
//!   program leaves no files behind.
//!
//! Source: the kernel's `Documentation/admin-guide/mm/hugetlbpage.rst`.
//!
//! Invariant: added pages are removed by the drop or, after a crash, by the sweep of the run's
//! folder, which records the number.

#![allow(unsafe_code)]

use crate::proc;
use crate::requirement::Requirement;
use crate::{LabError, RunFolder};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Reserved pages; released when dropped. Drop this after the programs that use them.
#[derive(Debug)]
pub struct HugePages {
    added: u64,
    folder: RunFolder,
}

impl HugePages {
    /// Reserves this many mebibytes, rounded up to whole pages, and records it in the run's folder.
    pub fn reserve(mebibytes: u64, folder: &RunFolder) -> Result<HugePages, LabError> {
        let pages = proc::huge_pages(mebibytes);
        let added = match raise(pages) {
            Ok(()) => pages,
            // No permission, or not enough memory: unused pages of existing reservations are
            // enough.
            Err(_) if read("free_hugepages").is_some_and(|free| free >= pages) => 0,
            Err(why) => {
                return Err(Requirement::HugePages { mebibytes, why: why.to_string() }.into());
            }
        };
        let reserved = HugePages { added, folder: folder.clone() };
        folder.record_pages(added as i64)?;
        Ok(reserved)
    }

    /// Returns the number of pages that this reservation added.
    pub fn added(&self) -> u64 {
        self.added
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if give_back(self.added).is_ok() {
            // A failure is harmless: the folder is about to be removed.
            let _ = self.folder.record_pages(-(self.added as i64));
        }
    }
}

/// Checks whether this much could be reserved now, without changes.
pub fn possible(mebibytes: u64) -> Result<String, Requirement> {
    let wanted = proc::huge_pages(mebibytes);
    let (size, free) = (proc::huge_page_kibibytes(), read("free_hugepages").unwrap_or(0));
    if free >= wanted {
        return Ok(format!("{free} pages of {size} KiB are free"));
    }
    let refused = |why: String| Requirement::HugePages { mebibytes, why };
    let path = file("nr_hugepages");
    let opened = File::options().write(true).open(&path);
    opened.map_err(|error| refused(format!("{}: {error}", path.display())))?;
    let memory = proc::memory_available_kibibytes().unwrap_or(0);
    if memory < wanted.saturating_mul(size) {
        return Err(refused(format!("only {} MiB of memory are free", memory / 1024)));
    }
    Ok(format!("can be reserved, {} MiB of memory are free", memory / 1024))
}

/// Decreases the machine's number by this many pages, but not below zero.
pub(crate) fn give_back(pages: u64) -> io::Result<()> {
    if pages == 0 {
        return Ok(());
    }
    let mut number = Number::lock()?;
    let before = number.get()?;
    number.set(before.saturating_sub(pages))
}

/// Increases the machine's number by all of these pages, or not at all.
fn raise(pages: u64) -> io::Result<()> {
    // If too many pages are requested, the kernel takes all memory before it gives up.
    let memory = proc::memory_available_kibibytes().unwrap_or(0);
    if memory < pages.saturating_mul(proc::huge_page_kibibytes()) {
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
    Err(io::Error::other(format!("the kernel reserved only {found} of {pages} pages")))
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
        text.trim()
            .parse()
            .map_err(|_| io::Error::other(format!("{text:?} is not a number of pages")))
    }

    fn set(&mut self, pages: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(pages.to_string().as_bytes())
    }
}

fn read(name: &str) -> Option<u64> {
    fs::read_to_string(file(name)).ok()?.trim().parse().ok()
}

fn file(name: &str) -> PathBuf {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/{name}", proc::huge_page_kibibytes()).into()
}
