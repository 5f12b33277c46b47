//! Reads a file's frames ahead in a separate thread, so that the sender neither waits for the disk
//! nor decodes.
//!
//! - Frames are delivered in chunks: a part of the file as read, and the places of the frames in
//!   it. Nothing is copied.
//! - At most [`CHUNKS`] chunks, and two more, are read ahead. Each has [`CHUNK_BYTES`], or the
//!   length of the largest block.
//! - Used chunks are returned and refilled, so memory does not grow with the file.
//! - The file can be read several times.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};

use packet::capture::fault::Warnings;
use packet::capture::{Captured, Event};
use packet::time::Nanos;

use super::{Buffered, CaptureError, CaptureReader, WINDOW_BYTES};

/// Number of chunks that are read ahead.
pub const CHUNKS: usize = 32;

/// Bytes of a chunk, unless a single block is longer.
pub const CHUNK_BYTES: usize = WINDOW_BYTES;

/// Frames, and the bytes that contain them.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    places: Vec<FrameLocation>,
}

/// A frame of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLocation {
    /// Capture time since 1970, if the file has it.
    pub at: Option<Nanos>,
    /// Original length, without frame check sequence.
    pub original_bytes: u32,
    /// Whether this is the first frame of the file in a pass.
    pub is_first: bool,
    start: u32,
    end: u32,
}

/// An item from the reading thread.
#[derive(Debug)]
pub enum ReadItem {
    /// Frames.
    Chunk(Chunk),
    /// The file was read to its end for the first time, with these warnings.
    Odd(Warnings),
    /// The file cannot be read further. Nothing follows.
    Failed(CaptureError),
    /// All passes are complete. Nothing follows.
    Ended,
}

/// A file that is read ahead.
#[derive(Debug)]
pub struct ReadAhead {
    pieces: Receiver<ReadItem>,
    used: Sender<Chunk>,
    /// Pieces received while waiting for the first frames.
    waiting: VecDeque<ReadItem>,
}

impl Chunk {
    /// Returns the number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the chunk has no frames.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the place of the frame at `index`, which is less than [`Chunk::len`].
    #[inline]
    pub fn place(&self, index: usize) -> FrameLocation {
        self.places[index]
    }

    /// Returns a frame's captured bytes, without frame check sequence.
    #[inline]
    pub fn bytes(&self, place: FrameLocation) -> &[u8] {
        &self.bytes[place.start as usize..place.end as usize]
    }

    /// Adds a frame; the chunk's bytes begin at `window_offset` in the file.
    #[inline]
    fn note(&mut self, frame: &Captured<'_>, window_offset: u64, is_first: bool) {
        // A frame check sequence is not part of a frame in memory, and may have been cut off.
        let original_bytes = frame.original_bytes.saturating_sub(u32::from(frame.fcs_bytes));
        let length = frame.bytes.len().min(original_bytes as usize);
        let start = (frame.bytes_offset - window_offset) as u32;
        let end = start + length as u32;
        self.places.push(FrameLocation { at: frame.at, original_bytes, is_first, start, end });
    }

    /// Returns a copy without the bytes after the last frame.
    fn trimmed(&self) -> Chunk {
        let end = self.places.last().map_or(0, |place| place.end as usize);
        Chunk { bytes: self.bytes[..end].to_vec(), places: self.places.clone() }
    }

    fn append(&mut self, other: &Chunk) {
        let moved = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        let places = other.places.iter();
        self.places.extend(places.map(|&place| FrameLocation {
            start: place.start + moved,
            end: place.end + moved,
            ..place
        }));
    }
}

impl FrameLocation {
    /// Returns how many bytes of the frame were captured.
    #[inline]
    pub fn captured_bytes(self) -> usize {
        (self.end - self.start) as usize
    }
}

impl ReadAhead {
    /// Starts reading a file `passes` times (at least once), or without end.
    pub fn open(path: &Path, passes: Option<u64>) -> Result<Self, CaptureError> {
        Ok(ReadAhead::of(File::open(path)?, passes)?)
    }

    /// Like [`ReadAhead::open`], for any seekable input.
    pub fn of<R: Read + Seek + Send + 'static>(
        input: R,
        passes: Option<u64>,
    ) -> std::io::Result<Self> {
        let (send_pieces, pieces) = sync_channel(CHUNKS);
        let (used, spare) = channel();
        let line = ReaderChannels { pieces: send_pieces, spare, has_sent: false };
        std::thread::Builder::new()
            .name("read-ahead".into())
            .spawn(move || line.read(input, passes))?;
        Ok(ReadAhead { pieces, used, waiting: VecDeque::new() })
    }

    /// Waits for the first frames, or returns why there are none.
    pub fn begun(mut self) -> Result<Self, CaptureError> {
        loop {
            match self.pieces.recv().unwrap_or(ReadItem::Ended) {
                ReadItem::Failed(error) => return Err(error),
                piece => self.waiting.push_back(piece),
            }
            if !matches!(self.waiting.back(), Some(ReadItem::Odd(_))) {
                return Ok(self);
            }
        }
    }

    /// Returns the next piece if it is available.
    #[inline]
    pub fn try_next(&mut self) -> Option<ReadItem> {
        if let Some(piece) = self.waiting.pop_front() {
            return Some(piece);
        }
        match self.pieces.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(ReadItem::Ended),
        }
    }

    /// Waits for the next piece and returns it.
    pub fn wait_next(&mut self) -> ReadItem {
        let waiting = self.waiting.pop_front();
        waiting.unwrap_or_else(|| self.pieces.recv().unwrap_or(ReadItem::Ended))
    }

    /// Returns a used chunk, to be refilled.
    #[inline]
    pub fn give_back(&mut self, chunk: Chunk) {
        // After the end of reading the chunk is not needed.
        let _ = self.used.send(chunk);
    }
}

/// The channels of the reading thread: pieces out, used chunks in.
struct ReaderChannels {
    pieces: SyncSender<ReadItem>,
    spare: Receiver<Chunk>,
    /// Whether a chunk was sent already.
    has_sent: bool,
}

/// Why reading ends early.
enum StopReason {
    /// The receiver is gone.
    Unwanted,
    /// Reading failed.
    Failed(CaptureError),
}

impl ReaderChannels {
    fn read<R: Read + Seek>(mut self, input: R, passes: Option<u64>) {
        // If the receiver is gone, it does not need the result.
        let _ = match self.read_all(input, passes) {
            Ok(()) => self.pieces.send(ReadItem::Ended),
            Err(StopReason::Failed(error)) => self.pieces.send(ReadItem::Failed(error)),
            Err(StopReason::Unwanted) => Ok(()),
        };
    }

    fn read_all<R: Read + Seek>(
        &mut self,
        input: R,
        passes: Option<u64>,
    ) -> Result<(), StopReason> {
        let mut reader = CaptureReader::new(input);
        let mut chunk = self.read_once(&mut reader)?;
        // A short file is read only once, so that a thousand passes cost only their frames.
        let whole = (!self.has_sent).then(|| chunk.trimmed());
        self.send(ReadItem::Odd(reader.decoder().warnings().clone()))?;
        let mut pass = 1;
        while passes.is_none_or(|passes| pass < passes) {
            pass += 1;
            if let Some(whole) = &whole {
                if chunk.bytes.len() + whole.bytes.len() > CHUNK_BYTES {
                    chunk = self.exchange(chunk)?;
                    chunk.bytes.clear();
                }
                chunk.append(whole);
            } else {
                self.exchange(chunk)?;
                let mut input = reader.into_input();
                input.rewind().map_err(|error| StopReason::Failed(error.into()))?;
                reader = CaptureReader::new(input);
                chunk = self.read_once(&mut reader)?;
            }
        }
        self.send(ReadItem::Chunk(chunk))
    }

    /// Reads to the end of the file, sends full chunks, and returns the last chunk.
    fn read_once<R: Read>(&mut self, reader: &mut CaptureReader<R>) -> Result<Chunk, StopReason> {
        let mut chunk = self.spare();
        let mut is_first = true;
        loop {
            let need = match ReaderChannels::note_all(reader, &mut chunk, &mut is_first) {
                Ok(need) => need,
                Err(error) => return Err(self.fail(reader, chunk, error)),
            };
            if chunk.is_empty() {
                match reader.read_on(need) {
                    Ok(true) => continue,
                    Ok(false) if is_first => {
                        return Err(StopReason::Failed(CaptureError::NoFrames));
                    }
                    Ok(false) => return Ok(chunk),
                    Err(error) => return Err(StopReason::Failed(error)),
                }
            }
            chunk.bytes = reader.exchange(std::mem::take(&mut chunk.bytes));
            match reader.read_on(need) {
                Ok(true) => chunk = self.exchange(chunk)?,
                Ok(false) => return Ok(chunk),
                Err(error) => {
                    self.send(ReadItem::Chunk(chunk))?;
                    return Err(StopReason::Failed(error));
                }
            }
        }
    }

    /// Adds all whole frames in the reader's window. Returns how many bytes the next item needs.
    #[inline]
    fn note_all<R: Read>(
        reader: &mut CaptureReader<R>,
        chunk: &mut Chunk,
        is_first: &mut bool,
    ) -> Result<u64, CaptureError> {
        loop {
            let bytes = match reader.here()? {
                Buffered::Item(bytes) => bytes,
                Buffered::Need(need) => return Ok(need),
            };
            let window_offset = reader.window_offset();
            if let Event::Frame(frame) = reader.take(bytes)? {
                chunk.note(&frame, window_offset, std::mem::take(is_first));
            }
        }
    }

    /// Sends the frames before a fault.
    fn fail<R: Read>(
        &mut self,
        reader: &mut CaptureReader<R>,
        mut chunk: Chunk,
        error: CaptureError,
    ) -> StopReason {
        if !chunk.is_empty() {
            chunk.bytes = reader.exchange(std::mem::take(&mut chunk.bytes));
            if let Err(stop) = self.send(ReadItem::Chunk(chunk)) {
                return stop;
            }
        }
        StopReason::Failed(error)
    }

    /// Sends a chunk, and returns one to fill.
    fn exchange(&mut self, chunk: Chunk) -> Result<Chunk, StopReason> {
        self.has_sent = true;
        self.send(ReadItem::Chunk(chunk))?;
        Ok(self.spare())
    }

    fn spare(&mut self) -> Chunk {
        let mut spare = self.spare.try_recv().unwrap_or_default();
        spare.places.clear();
        spare
    }

    fn send(&mut self, piece: ReadItem) -> Result<(), StopReason> {
        self.pieces.send(piece).map_err(|_| StopReason::Unwanted)
    }
}

#[cfg(test)]
mod tests;
