//! Reader of a run's file `live.jsonl`, while another process extends, replaces or removes it.
//!
//! Invariants:
//! - A poll reads the available data and never waits.
//! - A run that writes invalid or endless data costs the reader limited time and memory.
//! - When the file is replaced, the old one is read to its end before the new one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::event::LiveEvent;
use super::state::RunState;
use super::writer::LIVE_FILE;

/// Limit of bytes read in one poll.
const LOOK_BYTES_MAX: u64 = 4 << 20;

/// Length limit of a line, in bytes; a longer line is skipped.
pub const LINE_BYTES_MAX: usize = 1 << 18;

/// Follows one run.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: Option<(File, u64)>,
    /// Start of a line whose end was not written yet.
    rest: Vec<u8>,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping: bool,
    picture: RunState,
    /// Lines that could not be parsed.
    unreadable: u64,
}

/// Result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadResult {
    /// New events.
    News,
    /// No new events.
    Nothing,
    /// The file was removed, and everything in it was read.
    Gone,
}

impl Follower {
    /// Follows the run in this folder; `None` if it has no events file.
    pub fn open(folder: &Path) -> Option<Follower> {
        let path = folder.join(LIVE_FILE);
        let file = opened(&path)?;
        Some(Follower {
            path,
            file: Some(file),
            rest: Vec::new(),
            is_skipping: false,
            picture: RunState::default(),
            unreadable: 0,
        })
    }

    /// Returns the state of the run so far.
    pub fn picture(&self) -> &RunState {
        &self.picture
    }

    /// Returns the number of skipped lines that could not be parsed.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Reads new events.
    pub fn look(&mut self) -> ReadResult {
        let mut has_news = self.read();
        if self.is_begun_anew() {
            // Lines written between the last read and the replacement are in the old file.
            has_news |= self.read();
            self.rest.clear();
            self.is_skipping = false;
            self.file = opened(&self.path);
            has_news |= self.read();
        }
        match (&self.file, has_news) {
            (_, true) => ReadResult::News,
            (Some(_), false) => ReadResult::Nothing,
            (None, false) => ReadResult::Gone,
        }
    }

    /// Returns whether the file at the path is not the open one, or does not exist.
    fn is_begun_anew(&self) -> bool {
        let there = fs::symlink_metadata(&self.path).ok().map(|facts| facts.ino());
        there != self.file.as_ref().map(|(_, number)| *number)
    }

    fn read(&mut self) -> bool {
        let Some((file, _)) = &self.file else { return false };
        let mut bytes = Vec::new();
        // An unreadable file counts as empty.
        let read = file.take(LOOK_BYTES_MAX).read_to_end(&mut bytes).is_ok();
        let mut has_news = false;
        for part in bytes.split_inclusive(|byte| *byte == b'\n').filter(|_| read) {
            if !self.is_skipping {
                self.rest.extend_from_slice(part);
            }
            if self.rest.len() > LINE_BYTES_MAX {
                self.rest.clear();
                self.is_skipping = true;
            }
            if part.ends_with(b"\n") {
                has_news |= self.line();
            }
        }
        has_news
    }

    /// Parses the completed line.
    fn line(&mut self) -> bool {
        let line = std::mem::take(&mut self.rest);
        if std::mem::take(&mut self.is_skipping) {
            self.unreadable += 1;
            return false;
        }
        match serde_json::from_slice::<LiveEvent>(&line) {
            Ok(told) => self.picture.tell(told),
            Err(_) => self.unreadable += 1,
        }
        true
    }
}

/// Opens the file if it is a regular file, and returns its inode.
fn opened(path: &Path) -> Option<(File, u64)> {
    let is_file = |path: &Path| -> io::Result<bool> { Ok(fs::symlink_metadata(path)?.is_file()) };
    if !is_file(path).ok()? {
        return None;
    }
    let file = File::open(path).ok()?;
    let number = file.metadata().ok()?.ino();
    Some((file, number))
}
