//! Reads capture files as a stream, and writes them frame by frame.
//!
//! [`packet::capture`] decodes the formats; this module moves the read window over the bytes.
//! Reading takes [`WINDOW_BYTES`] of memory, or the length of the largest block that must be read
//! whole, which has a limit. The size of the file does not matter, and a pipe works too.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use packet::capture::fault::Fault;
use packet::capture::resolution::Resolution;
use packet::capture::write::{CaptureWriteError, Frame, FrameNotes, Pcap, PcapNg};
use packet::capture::{
    BLOCK_BYTES_MAX, CAPTURED_BYTES_MAX, Decoder, DecoderAction, Endianness, Event, Interface,
    Statistics,
};
use packet::time::Nanos;

pub mod read_ahead;

/// Bytes per read.
pub const WINDOW_BYTES: usize = 1 << 18;

/// Error of reading or writing a capture file.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureError {
    /// The system call failed.
    System(io::Error),
    /// The file is invalid.
    Fault(Fault),
    /// The format cannot represent a value.
    Unwritable(CaptureWriteError),
    /// The file contains no frame.
    NoFrames,
}

/// A capture file being read.
#[derive(Debug)]
pub struct CaptureReader<R> {
    input: R,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// The bytes from `start` to `end` are read but not consumed.
    start: usize,
    end: usize,
}

/// How much of the next item is in the buffer.
enum Buffered {
    /// All of it: its length in bytes.
    Item(usize),
    /// Not enough: this many bytes must be read.
    Need(u64),
}

/// Options of a capture file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// File format.
    pub format: Format,
    /// Name of the interface; pcapng only.
    pub interface: String,
    /// Hardware address of the interface; pcapng only.
    pub mac: Option<[u8; 6]>,
    /// Comment on the interface; pcapng only.
    pub interface_comment: Option<String>,
    /// Comment on the whole file; pcapng only.
    pub comment: Option<String>,
    /// Snap length: frames are truncated to this many bytes, at most [`CAPTURED_BYTES_MAX`].
    pub snap_bytes: usize,
}

/// A format of capture files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Pcap with microseconds, which every program reads.
    PcapMicros,
    /// Pcap with nanoseconds.
    PcapNanos,
    /// Pcapng with nanoseconds.
    PcapNg,
}

/// A capture file being written.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    output: BufWriter<W>,
    file: WrittenItem,
    snap_bytes: usize,
    /// The item being written.
    item: Vec<u8>,
    bytes: u64,
}

#[derive(Debug)]
enum WrittenItem {
    Pcap(Pcap),
    Ng(PcapNg),
}

impl CaptureReader<File> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Ok(CaptureReader::new(File::open(path)?))
    }
}

impl<R: Read> CaptureReader<R> {
    /// Reads from `input`, from its beginning.
    pub fn new(input: R) -> Self {
        let buffer = vec![0; WINDOW_BYTES];
        CaptureReader { input, decoder: Decoder::new(), buffer, start: 0, end: 0 }
    }

    /// Returns the interfaces and warnings found in the file so far.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Returns the next item; none at the end of the file.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, CaptureError> {
        loop {
            match self.here()? {
                Buffered::Item(bytes) => return Ok(Some(self.take(bytes)?)),
                Buffered::Need(need) if self.read_on(need)? => {}
                Buffered::Need(_) => return Ok(None),
            }
        }
    }

    /// Returns the next item's length if it is in the buffer, else how many bytes must be read.
    #[inline]
    fn here(&mut self) -> Result<Buffered, CaptureError> {
        loop {
            let window = &self.buffer[self.start..self.end];
            match self.decoder.next(window)? {
                DecoderAction::Item(bytes) => return Ok(Buffered::Item(bytes)),
                DecoderAction::More(need) => return Ok(Buffered::Need(need as u64)),
                DecoderAction::Skip(left) if window.is_empty() => return Ok(Buffered::Need(left)),
                DecoderAction::Skip(left) => {
                    let here = left.min(window.len() as u64);
                    self.start += here as usize;
                    self.decoder.passed(here);
                }
            }
        }
    }

    /// Returns the next item, which has this many bytes and is in the buffer.
    #[inline]
    fn take(&mut self, bytes: usize) -> Result<Event<'_>, CaptureError> {
        let item = self.start..self.start + bytes;
        self.start += bytes;
        Ok(self.decoder.take(&self.buffer[item])?)
    }

    /// Reads this many bytes, or as many as there are. Returns false at the end of the file.
    fn read_on(&mut self, need: u64) -> Result<bool, CaptureError> {
        if self.fill(need.min(BLOCK_BYTES_MAX as u64) as usize)? {
            return Ok(true);
        }
        self.decoder.ended(need, (self.end - self.start) as u64)?;
        Ok(false)
    }

    /// Returns the offset of the window in the file, in bytes.
    fn window_offset(&self) -> u64 {
        self.decoder.offset() - self.start as u64
    }

    /// Returns the buffer with the consumed bytes, and continues in `spare`, which receives the
    /// rest.
    fn exchange(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        let rest = self.end - self.start;
        spare.resize(self.buffer.len().max(WINDOW_BYTES), 0);
        spare[..rest].copy_from_slice(&self.buffer[self.start..self.end]);
        (self.start, self.end) = (0, rest);
        std::mem::replace(&mut self.buffer, spare)
    }

    /// Returns the input, positioned after the bytes already read.
    pub fn into_input(self) -> R {
        self.input
    }

    /// Reads until the buffer has more bytes and, if the input provides them, `need` bytes or a
    /// full window.
    ///
    /// Returns false at the end of the file.
    fn fill(&mut self, need: usize) -> Result<bool, CaptureError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if need > self.buffer.len() {
            self.buffer.resize(need.next_power_of_two().min(BLOCK_BYTES_MAX), 0);
        }
        let before = self.end;
        while self.end < need.min(self.buffer.len()) {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end > before)
    }
}

impl Format {
    /// Returns the format for a file name: pcap with nanoseconds for `.pcap`, else pcapng.
    pub fn of(path: &Path) -> Self {
        let is_pcap = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pcap"));
        if is_pcap { Format::PcapNanos } else { Format::PcapNg }
    }
}

impl CaptureOptions {
    /// Pcapng with whole frames, for an interface of this name.
    pub fn pcapng(interface: &str) -> Self {
        CaptureOptions {
            format: Format::PcapNg,
            interface: interface.to_owned(),
            mac: None,
            interface_comment: None,
            comment: None,
            snap_bytes: CAPTURED_BYTES_MAX,
        }
    }

    /// Returns the interface description for the file.
    fn described(&self) -> Interface {
        Interface {
            name: self.interface.clone(),
            mac: self.mac,
            snap_bytes: self.snap_bytes.min(CAPTURED_BYTES_MAX) as u32,
            resolution: Resolution::NANO,
            offset_seconds: 0,
            fcs_bytes: 0,
        }
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file header.
    pub fn new(output: W, options: &CaptureOptions) -> Result<Self, CaptureError> {
        let snap_bytes = options.snap_bytes.min(CAPTURED_BYTES_MAX);
        let mut item = Vec::new();
        let order = Endianness::Little;
        let file = match options.format {
            Format::PcapMicros | Format::PcapNanos => {
                let has_nanos = options.format == Format::PcapNanos;
                let pcap = Pcap { order, has_nanos, snap_bytes: snap_bytes as u32 };
                pcap.begin(&mut item);
                WrittenItem::Pcap(pcap)
            }
            Format::PcapNg => {
                let comment = options.comment.as_deref();
                let mut ng = PcapNg::begin(&mut item, order, "planimeter", comment);
                let about = options.interface_comment.as_deref();
                ng.interface(&mut item, &options.described(), about)?;
                WrittenItem::Ng(ng)
            }
        };
        let output = BufWriter::new(output);
        let mut writer = CaptureWriter { output, file, snap_bytes, item, bytes: 0 };
        writer.put()?;
        Ok(writer)
    }

    /// Writes a frame received at `at` (since 1970), truncated to the snap length.
    pub fn frame(
        &mut self,
        at: Nanos,
        bytes: &[u8],
        notes: FrameNotes<'_>,
    ) -> Result<(), CaptureError> {
        let original_bytes = bytes.len() as u32;
        let bytes = &bytes[..bytes.len().min(self.snap_bytes)];
        self.cut_frame(at, bytes, original_bytes, notes)
    }

    /// Like [`CaptureWriter::frame`], for a truncated frame whose length was `original_bytes`.
    pub fn cut_frame(
        &mut self,
        at: Nanos,
        bytes: &[u8],
        original_bytes: u32,
        notes: FrameNotes<'_>,
    ) -> Result<(), CaptureError> {
        self.write(&Frame { interface: 0, at, bytes, original_bytes, notes })
    }

    /// Writes a frame unchanged, of any interface that was added.
    pub fn write(&mut self, frame: &Frame<'_>) -> Result<(), CaptureError> {
        match &self.file {
            WrittenItem::Pcap(pcap) => pcap.frame(&mut self.item, frame)?,
            WrittenItem::Ng(ng) => ng.frame(&mut self.item, frame)?,
        }
        self.put()
    }

    /// Adds an interface description and returns its number. Pcap does not support this.
    pub fn add_interface(&mut self, about: &CaptureOptions) -> Result<u32, CaptureError> {
        let WrittenItem::Ng(ng) = &mut self.file else { return Ok(0) };
        let comment = about.interface_comment.as_deref();
        let number = ng.interface(&mut self.item, &about.described(), comment)?;
        self.put()?;
        Ok(number)
    }

    /// Writes interface statistics; pcap does not support them.
    pub fn statistics(&mut self, counted: &Statistics) -> Result<(), CaptureError> {
        let WrittenItem::Ng(ng) = &self.file else { return Ok(()) };
        ng.statistics(&mut self.item, counted)?;
        self.put()
    }

    /// Ends the file with statistics (pcapng only), and returns the output.
    pub fn finish(mut self, counted: Option<&Statistics>) -> Result<W, CaptureError> {
        if let Some(counted) = counted {
            self.statistics(counted)?;
        }
        self.output.into_inner().map_err(|error| error.into_error().into())
    }

    /// Returns the current length of the file in bytes; the last of them may still be buffered.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many bytes the output has accepted.
    pub fn bytes_taken(&self) -> u64 {
        self.bytes - self.output.buffer().len() as u64
    }

    /// Writes the buffered bytes.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        Ok(self.output.flush()?)
    }

    fn put(&mut self) -> Result<(), CaptureError> {
        let written = self.output.write_all(&self.item);
        let bytes = self.item.len() as u64;
        self.item.clear();
        written?;
        self.bytes += bytes;
        Ok(())
    }
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        CaptureError::System(error)
    }
}

impl From<Fault> for CaptureError {
    fn from(fault: Fault) -> Self {
        CaptureError::Fault(fault)
    }
}

impl From<CaptureWriteError> for CaptureError {
    fn from(what: CaptureWriteError) -> Self {
        CaptureError::Unwritable(what)
    }
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CaptureError::System(error) => write!(f, "{error}"),
            CaptureError::Fault(fault) => write!(f, "{fault}"),
            CaptureError::Unwritable(what) => write!(f, "{what}"),
            CaptureError::NoFrames => {
                f.write_str("the file has no frames (hint: name another file)")
            }
        }
    }
}

impl std::error::Error for CaptureError {}

#[cfg(test)]
mod tests;
