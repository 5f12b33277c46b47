//! A file's frames, read by a thread of their own before they are needed: whoever sends them waits
//! for no disk and decodes nothing.
//!
//! Frames come in chunks, side by side, with their times. At most [`CHUNKS`] chunks, and two more,
//! of less than twice [`CHUNK_BYTES`] are read ahead, and used ones come back to be filled again, so
//! that memory does not grow with the file. The file can be read many times over.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};

use packet::capture::fault::Warnings;
use packet::capture::{Captured, Event};
use packet::time::Nanos;

use super::{CaptureError, CaptureReader};

/// Chunks that are read ahead.
pub const CHUNKS: usize = 32;

/// A chunk with so many bytes of frames is full.
pub const CHUNK_BYTES: usize = 1 << 18;

/// A chunk with so many frames is full.
pub const CHUNK_FRAMES: usize = 4096;

/// Frames side by side.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// A frame of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When it was captured, since 1970, if the file says it.
    pub at: Option<Nanos>,
    /// How long it was, without frame check sequence.
    pub original_bytes: u32,
    /// Whether the file, read once more, begins with it.
    pub is_first: bool,
    start: u32,
    end: u32,
}

/// What comes of a file.
#[derive(Debug)]
pub enum Piece {
    /// Frames.
    Chunk(Chunk),
    /// The file was read to its end for the first time, and this was odd in it.
    Odd(Warnings),
    /// It cannot be read on. Nothing follows.
    Failed(CaptureError),
    /// It was read as often as was asked. Nothing follows.
    Ended,
}

/// A file that is read ahead.
#[derive(Debug)]
pub struct ReadAhead {
    pieces: Receiver<Piece>,
    used: Sender<Chunk>,
    /// What was waited for already.
    waiting: VecDeque<Piece>,
}

impl Chunk {
    /// How many frames it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What is known of the frame at `index`, which is less than [`Chunk::len`].
    #[inline]
    pub fn place(&self, index: usize) -> Place {
        self.places[index]
    }

    /// A frame's bytes, as much of it as was captured, without frame check sequence.
    #[inline]
    pub fn bytes(&self, place: Place) -> &[u8] {
        &self.bytes[place.start as usize..place.end as usize]
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES || self.places.len() >= CHUNK_FRAMES
    }

    fn push(&mut self, frame: &Captured<'_>, is_first: bool) {
        // A frame check sequence is not part of a frame in memory, and may have been cut off.
        let original_bytes = frame.original_bytes.saturating_sub(u32::from(frame.fcs_bytes));
        let length = frame.bytes.len().min(original_bytes as usize);
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&frame.bytes[..length]);
        let end = self.bytes.len() as u32;
        self.places.push(Place { at: frame.at, original_bytes, is_first, start, end });
    }

    fn append(&mut self, other: &Chunk) {
        let moved = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        let places = other.places.iter();
        self.places.extend(places.map(|&place| Place {
            start: place.start + moved,
            end: place.end + moved,
            ..place
        }));
    }
}

impl Place {
    /// How many bytes of it were captured.
    #[inline]
    pub fn captured_bytes(self) -> usize {
        (self.end - self.start) as usize
    }
}

impl ReadAhead {
    /// Begins to read a file `passes` times (at least once), or without end.
    pub fn open(path: &Path, passes: Option<u64>) -> Result<Self, CaptureError> {
        Ok(ReadAhead::of(File::open(path)?, passes)?)
    }

    /// As [`ReadAhead::open`], for whatever can be read again.
    pub fn of<R: Read + Seek + Send + 'static>(
        input: R,
        passes: Option<u64>,
    ) -> std::io::Result<Self> {
        let (send_pieces, pieces) = sync_channel(CHUNKS);
        let (used, spare) = channel();
        let line = Line { pieces: send_pieces, spare, has_sent: false };
        std::thread::Builder::new()
            .name("read-ahead".into())
            .spawn(move || line.read(input, passes))?;
        Ok(ReadAhead { pieces, used, waiting: VecDeque::new() })
    }

    /// Waits for the first frames, or says why there are none.
    pub fn begun(mut self) -> Result<Self, CaptureError> {
        loop {
            match self.wait_next() {
                Piece::Failed(error) => return Err(error),
                piece => self.waiting.push_back(piece),
            }
            if !matches!(self.waiting.back(), Some(Piece::Odd(_))) {
                return Ok(self);
            }
        }
    }

    /// The next piece, if it was read already.
    #[inline]
    pub fn try_next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.waiting.pop_front() {
            return Some(piece);
        }
        match self.pieces.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Piece::Ended),
        }
    }

    /// The next piece, which is waited for.
    pub fn wait_next(&mut self) -> Piece {
        let waiting = self.waiting.pop_front();
        waiting.unwrap_or_else(|| self.pieces.recv().unwrap_or(Piece::Ended))
    }

    /// Gives back a chunk that was used, to be filled again.
    #[inline]
    pub fn give_back(&mut self, chunk: Chunk) {
        // Where reading has ended nobody wants it.
        let _ = self.used.send(chunk);
    }
}

/// Where pieces go and used chunks come from.
struct Line {
    pieces: SyncSender<Piece>,
    spare: Receiver<Chunk>,
    /// Whether a chunk was sent already.
    has_sent: bool,
}

/// Why reading ends early.
enum Stop {
    /// Nobody wants any more.
    Unwanted,
    /// It cannot go on.
    Failed(CaptureError),
}

impl Line {
    fn read<R: Read + Seek>(mut self, input: R, passes: Option<u64>) {
        let mut chunk = Chunk::default();
        let ended = self.read_all(input, passes, &mut chunk);
        if !chunk.is_empty() && self.pieces.send(Piece::Chunk(chunk)).is_err() {
            return;
        }
        // Whoever has gone meanwhile need not know how it ended.
        let _ = match ended {
            Ok(()) => self.pieces.send(Piece::Ended),
            Err(Stop::Failed(error)) => self.pieces.send(Piece::Failed(error)),
            Err(Stop::Unwanted) => Ok(()),
        };
    }

    fn read_all<R: Read + Seek>(
        &mut self,
        input: R,
        passes: Option<u64>,
        chunk: &mut Chunk,
    ) -> Result<(), Stop> {
        let mut reader = CaptureReader::new(input);
        self.read_once(&mut reader, chunk)?;
        self.send(Piece::Odd(reader.decoder().warnings().clone()))?;
        // A short file is not read again, so that a thousand passes cost no more than their frames.
        let whole = (!self.has_sent).then(|| chunk.clone());
        let mut pass = 1;
        while passes.is_none_or(|passes| pass < passes) {
            if let Some(whole) = &whole {
                chunk.append(whole);
                self.send_if_full(chunk)?;
            } else {
                let mut input = reader.into_input();
                input.rewind().map_err(|error| Stop::Failed(error.into()))?;
                reader = CaptureReader::new(input);
                self.read_once(&mut reader, chunk)?;
            }
            pass += 1;
        }
        Ok(())
    }

    fn read_once<R: Read>(
        &mut self,
        reader: &mut CaptureReader<R>,
        chunk: &mut Chunk,
    ) -> Result<(), Stop> {
        let mut is_first = true;
        while let Some(event) = reader.next_event().map_err(Stop::Failed)? {
            if let Event::Frame(frame) = event {
                chunk.push(&frame, is_first);
                is_first = false;
                self.send_if_full(chunk)?;
            }
        }
        if is_first { Err(Stop::Failed(CaptureError::NoFrames)) } else { Ok(()) }
    }

    #[inline]
    fn send_if_full(&mut self, chunk: &mut Chunk) -> Result<(), Stop> {
        if !chunk.is_full() {
            return Ok(());
        }
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.bytes.clear();
        next.places.clear();
        self.has_sent = true;
        self.send(Piece::Chunk(std::mem::replace(chunk, next)))
    }

    fn send(&mut self, piece: Piece) -> Result<(), Stop> {
        self.pieces.send(piece).map_err(|_| Stop::Unwanted)
    }
}

#[cfg(test)]
mod tests;
