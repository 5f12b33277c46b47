//! Reader of bundle files, which may come from an untrusted source.
//!
//! Invariants:
//! - Nothing is written outside the given folder, over an existing file, or through a link.
//! - An entry that is not a regular file with a plain name makes the bundle invalid.
//! - Names, entries and bytes, packed and unpacked, have limits, so that no archive can fill disk
//!   or memory.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use record::{Bundle, SCHEMA};
use store::campaign::PLAN_FILE;
use tar::{Archive, EntryType};

use super::{FACTS_FILE, FILES_FOLDER, RUN_FOLDER};

/// Limit of entries in a bundle.
pub const ENTRIES_MAX: usize = 100_000;

/// Limit of nested folders.
pub const DEPTH_MAX: usize = 8;

/// Length limit of a name, in bytes.
const NAME_BYTES_MAX: usize = 250;

/// Size limit of all unpacked entries, in bytes.
pub const BYTES_MAX: u64 = 4 << 30;

/// Size limit of the description and the plan, which are read into memory, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Why a file is not a valid bundle.
#[derive(Debug)]
pub enum BundleFault {
    /// Not a tar file compressed with gzip, or truncated.
    Damaged(io::Error),
    /// Bundles do not have an entry with this name.
    Name(String),
    /// Two entries have this name.
    Twice(String),
    /// This entry is not a regular file, but of this type.
    Kind(String, &'static str),
    /// More than [`ENTRIES_MAX`] entries.
    Entries,
    /// More than this many bytes when unpacked.
    Bytes(u64),
    /// This entry is missing.
    Missing(&'static str),
    /// `bundle.json` or the plan is invalid.
    NotUnderstood(&'static str, String),
    /// This file cannot be written.
    Write(PathBuf, io::Error),
}

/// Description and plan of a bundle.
pub struct OpenedBundle {
    /// The description.
    pub facts: Bundle,
    /// Its plan.
    pub plan: String,
}

/// Reads a bundle's description and plan, and unpacks the entries below one of its folders
/// (`files`, `run`) into an existing folder.
pub fn unpack(file: &Path, folder: &str, into: &Path) -> Result<OpenedBundle, BundleFault> {
    unpack_up_to(BYTES_MAX, file, folder, into)
}

fn unpack_up_to(
    most: u64,
    file: &Path,
    folder: &str,
    into: &Path,
) -> Result<OpenedBundle, BundleFault> {
    let packed = File::open(file).map_err(BundleFault::Damaged)?;
    // Headers and padding add to the bytes of entries.
    let bytes = GzDecoder::new(packed).take(most.saturating_add(ENTRIES_MAX as u64 * 1024));
    let mut archive = Archive::new(bytes);
    let (mut facts, mut plan) = (None, None);
    let (mut names, mut left) = (BTreeSet::new(), most);
    // Raw entries: a separate header with a long name or an attribute is rejected.
    for entry in archive.entries().map_err(BundleFault::Damaged)?.raw(true) {
        let mut entry = entry.map_err(BundleFault::Damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        is_file(entry.header().entry_type(), &name)?;
        if !is_known(&name) {
            return Err(BundleFault::Name(name));
        }
        if names.len() >= ENTRIES_MAX {
            return Err(BundleFault::Entries);
        }
        if !names.insert(name.clone()) {
            return Err(BundleFault::Twice(name));
        }
        left = left.checked_sub(entry.size()).ok_or(BundleFault::Bytes(most))?;
        match name.as_str() {
            FACTS_FILE => facts = Some(text(&mut entry, FACTS_FILE)?),
            PLAN_FILE => plan = Some(text(&mut entry, PLAN_FILE)?),
            _ => {
                let inner = name.split_once('/').filter(|(first, _)| *first == folder);
                if let Some((_, inner)) = inner {
                    write(&mut entry, into, inner)?;
                }
            }
        }
    }
    // Only the checksum at the end shows whether the data is intact.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(BundleFault::Damaged)?;
    let facts = facts.ok_or(BundleFault::Missing(FACTS_FILE))?;
    let facts: Bundle = serde_json::from_str(&facts)
        .map_err(|error| BundleFault::NotUnderstood(FACTS_FILE, error.to_string()))?;
    if !(1..=SCHEMA).contains(&facts.schema) {
        let why = format!("unsupported schema {}: this version reads 1 to {SCHEMA}", facts.schema);
        return Err(BundleFault::NotUnderstood(FACTS_FILE, why));
    }
    Ok(OpenedBundle { facts, plan: plan.ok_or(BundleFault::Missing(PLAN_FILE))? })
}

/// Returns whether a name is a relative path without special parts, on any system.
pub fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.chars().all(|letter| !letter.is_control() && !matches!(letter, '\\' | ':'))
    };
    name.len() <= NAME_BYTES_MAX
        && name.split('/').count() <= DEPTH_MAX
        && name.split('/').all(is_part)
}

/// Returns whether a bundle may have an entry of this name.
fn is_known(name: &str) -> bool {
    let is_below = |folder: &str| {
        name.strip_prefix(folder).and_then(|it| it.strip_prefix('/')).is_some_and(is_plain)
    };
    let is_one = matches!(name, FACTS_FILE | PLAN_FILE);
    is_one || is_below(FILES_FOLDER) || is_below(RUN_FOLDER)
}

fn is_file(kind: EntryType, name: &str) -> Result<(), BundleFault> {
    let what = match kind {
        EntryType::Regular => return Ok(()),
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::Directory => "a folder",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        _ => "of an unknown type",
    };
    Err(BundleFault::Kind(name.into(), what))
}

fn text(entry: &mut impl Read, what: &'static str) -> Result<String, BundleFault> {
    let mut bytes = Vec::new();
    entry.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(BundleFault::Damaged)?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(BundleFault::Bytes(TEXT_BYTES_MAX));
    }
    String::from_utf8(bytes).map_err(|error| BundleFault::NotUnderstood(what, error.to_string()))
}

fn write(entry: &mut impl Read, into: &Path, inner: &str) -> Result<(), BundleFault> {
    let path = into.join(inner);
    let refused = |error| BundleFault::Write(path.clone(), error);
    let parent = path.parent().expect("a file in a folder has one");
    fs::create_dir_all(parent).map_err(refused)?;
    let mut file = File::options().write(true).create_new(true).open(&path).map_err(refused)?;
    // A read error is a fault of the bundle, a write error one of the disk; both end the unpacking.
    io::copy(entry, &mut file).map_err(refused)?;
    Ok(())
}

impl fmt::Display for BundleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleFault::Damaged(error) => write!(f, "not a bundle, or truncated: {error}"),
            BundleFault::Name(name) => write!(
                f,
                "invalid bundle: entry {name:?} is neither {FACTS_FILE}, {PLAN_FILE} nor a file \
                 below {FILES_FOLDER}/ or {RUN_FOLDER}/"
            ),
            BundleFault::Twice(name) => write!(f, "invalid bundle: entry {name:?} occurs twice"),
            BundleFault::Kind(name, what) => {
                write!(f, "invalid bundle: entry {name:?} is {what}, not a regular file")
            }
            BundleFault::Entries => {
                write!(f, "invalid bundle: more than {ENTRIES_MAX} entries")
            }
            BundleFault::Bytes(most) => {
                write!(f, "invalid bundle: more than {most} bytes when unpacked")
            }
            BundleFault::Missing(name) => write!(f, "not a bundle: it does not contain {name}"),
            BundleFault::NotUnderstood(name, why) => {
                write!(f, "{name}: {}", why.replace('\n', " "))
            }
            BundleFault::Write(path, error) => {
                write!(f, "cannot write {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for BundleFault {}

#[cfg(test)]
#[path = "unpack/tests.rs"]
mod tests;
