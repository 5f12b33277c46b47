//! A run's file `live.jsonl` as others read it, while it grows, is begun anew, or is gone.
//!
//! Invariants: a look takes what is there and never waits; a run that writes nonsense, or without end, costs whoever follows it a limited time and
//! memory; a file that is begun anew is read from its beginning when the old one was read to its end.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::event::Told;
use super::picture::Picture;
use super::teller::LIVE_FILE;

/// Bytes that are read at one look.
const LOOK_BYTES_MAX: u64 = 4 << 20;

/// Bytes of a line; a longer one is left out.
pub const LINE_BYTES_MAX: usize = 1 << 18;

/// Follows one run.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: Option<(File, u64)>,
    /// What there is of a line whose end is not there yet.
    rest: Vec<u8>,
    /// The rest of a line that is too long is left out.
    is_skipping: bool,
    picture: Picture,
    /// Lines that made no sense.
    unreadable: u64,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// Something new.
    News,
    /// Nothing new.
    Nothing,
    /// The file is gone, and everything in it was read.
    Gone,
}

impl Follower {
    /// Follows the run in this folder; none if it tells nothing.
    pub fn open(folder: &Path) -> Option<Follower> {
        let path = folder.join(LIVE_FILE);
        let file = opened(&path)?;
        Some(Follower {
            path,
            file: Some(file),
            rest: Vec::new(),
            is_skipping: false,
            picture: Picture::default(),
            unreadable: 0,
        })
    }

    /// The run as far as it was told.
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Lines that made no sense and were left out.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Reads what is new.
    pub fn look(&mut self) -> Looked {
        let mut has_news = self.read();
        if self.is_begun_anew() {
            // What came between the last read and the change is in the old one.
            has_news |= self.read();
            self.rest.clear();
            self.is_skipping = false;
            self.file = opened(&self.path);
            has_news |= self.read();
        }
        match (&self.file, has_news) {
            (_, true) => Looked::News,
            (Some(_), false) => Looked::Nothing,
            (None, false) => Looked::Gone,
        }
    }

    /// Whether the file at the path is another than the one that is open, or none.
    fn is_begun_anew(&self) -> bool {
        let there = fs::symlink_metadata(&self.path).ok().map(|facts| facts.ino());
        there != self.file.as_ref().map(|(_, number)| *number)
    }

    fn read(&mut self) -> bool {
        let Some((file, _)) = &self.file else { return false };
        let mut bytes = Vec::new();
        // What cannot be read is not there.
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

    /// Takes the line that is whole now.
    fn line(&mut self) -> bool {
        let line = std::mem::take(&mut self.rest);
        if std::mem::take(&mut self.is_skipping) {
            self.unreadable += 1;
            return false;
        }
        match serde_json::from_slice::<Told>(&line) {
            Ok(told) => self.picture.tell(told),
            Err(_) => self.unreadable += 1,
        }
        true
    }
}

/// The file, if it is one, and its number.
fn opened(path: &Path) -> Option<(File, u64)> {
    let is_file = |path: &Path| -> io::Result<bool> { Ok(fs::symlink_metadata(path)?.is_file()) };
    if !is_file(path).ok()? {
        return None;
    }
    let file = File::open(path).ok()?;
    let number = file.metadata().ok()?.ino();
    Some((file, number))
}
