//! A port on two capture files: it receives the frames of one file, and writes sent frames to the
//! other. Either may be absent.
//!
//! `pcap:IN.pcap[,out=OUT.pcap][,after=SECONDS]`, or `pcap:out=OUT.pcap`.
//! - Frames of the input are available immediately and in file order. The receiver sets the pace.
//! - A received frame has the timestamp from the file, with [`Clock::File`] as its source.
//! - As in a replay, truncated frames are padded with zeros, and a frame check sequence in the file
//!   is removed.
//! - A sent frame is written with its time of sending. The output is complete when the port is
//!   dropped.

use std::fs::File;
use std::path::{Path, PathBuf};

use os::clock;
use packet::capture::write::FrameNotes;
use packet::capture::{Captured, Direction, Event};
use packet::frame::{Batch, FRAME_BYTES_MAX, Frame};
use packet::time::{Clock, Nanos, Stamp};

use crate::capture::{CaptureError, CaptureOptions, CaptureReader, CaptureWriter, Format};
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

/// Longest value of `after`.
const AFTER_SECONDS_MAX: f64 = 86_400.0;

/// Paths and start delay of the port.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// Input file.
    pub input: Option<PathBuf>,
    /// Output file.
    pub output: Option<PathBuf>,
    /// No frame is received before the port has been open for this long.
    pub after: Nanos,
}

/// A port on two capture files.
pub struct PcapPort {
    facts: PortFacts,
    input: Input,
    output: Option<CaptureWriter<File>>,
    output_path: PathBuf,
    /// Time of the first receive call, and the delay from then until the first frame.
    begun: Option<Nanos>,
    after: Nanos,
    counters: PortCounters,
}

/// State of the input file.
enum Input {
    Open(CaptureReader<File>, PathBuf),
    /// The file has ended, or there is none.
    Ended,
    /// The file cannot be read further: its path, and the reason.
    Broken(PathBuf, String),
}

impl Spec {
    /// Parses the text after `pcap:`, or returns the reason for rejecting it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const KNOWN: &str =
            "unknown option (hint: use out=FILE or after=SECONDS after the input file)";
        let mut spec = Spec::default();
        for (place, word) in text.split(',').enumerate() {
            match word.split_once('=') {
                Some(("out", path)) if !path.is_empty() && spec.output.is_none() => {
                    spec.output = Some(path.into());
                }
                Some(("after", seconds)) => {
                    let seconds = seconds.parse().ok();
                    let fits = seconds.filter(|it| (0.0..=AFTER_SECONDS_MAX).contains(it));
                    let seconds = fits.ok_or("invalid after (hint: use 0 to 86400 seconds)")?;
                    spec.after = Nanos::from_secs_f64(seconds);
                }
                _ if place == 0 && !word.is_empty() => spec.input = Some(word.into()),
                _ if text.is_empty() => {}
                _ => return Err(KNOWN),
            }
        }
        match (&spec.input, &spec.output) {
            (None, None) => Err("missing file (hint: write pcap:IN.pcap,out=OUT.pcap)"),
            (Some(input), Some(output)) if is_same(input, output) => {
                Err("out is the input file (hint: name another file)")
            }
            _ => Ok(spec),
        }
    }
}

/// Returns whether two paths lead to the same file, as far as the file system shows.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|path| real(other) == Some(path))
}

impl PcapPort {
    /// Opens the files. An existing output file is overwritten.
    pub fn open(spec: &Spec) -> Result<Self, PortError> {
        let failed = |path: &Path, error: CaptureError| {
            PortError::File(path.display().to_string(), error.to_string())
        };
        let input = match &spec.input {
            None => Input::Ended,
            Some(path) => {
                let reader = CaptureReader::open(path).map_err(|error| failed(path, error))?;
                Input::Open(reader, path.clone())
            }
        };
        let name = spec.input.as_ref().or(spec.output.as_ref());
        let name = name.map_or(String::new(), |path| path.display().to_string());
        let output = match &spec.output {
            None => None,
            Some(path) => {
                let about = CaptureOptions {
                    format: Format::of(path),
                    interface_comment: Some("timestamps: when frames were sent".into()),
                    ..CaptureOptions::pcapng(&name)
                };
                let file = File::create(path).map_err(CaptureError::from);
                let writer = file.and_then(|file| CaptureWriter::new(file, &about));
                Some(writer.map_err(|error| failed(path, error))?)
            }
        };
        Ok(PcapPort {
            facts: PortFacts {
                name,
                kind: "pcap",
                mac: [0; 6],
                frame_bytes_max: FRAME_BYTES_MAX,
                stamps: Clock::File,
            },
            input,
            output,
            output_path: spec.output.clone().unwrap_or_default(),
            begun: None,
            after: spec.after,
            counters: PortCounters::default(),
        })
    }

    /// Reads frames from the file until the batch is full or the file has ended.
    fn read(&mut self, batch: &mut Batch) {
        let Input::Open(reader, path) = &mut self.input else { return };
        while batch.room() > 0 {
            let event = match reader.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => {
                    self.input = Input::Ended;
                    return;
                }
                Err(error) => {
                    self.input = Input::Broken(std::mem::take(path), error.to_string());
                    return;
                }
            };
            let Event::Frame(captured) = event else { continue };
            let length = captured.original_bytes.saturating_sub(u32::from(captured.fcs_bytes));
            if length as usize > FRAME_BYTES_MAX {
                self.counters.lose(PortDrop::ReceiveTooLong, 1);
                continue;
            }
            let Some(frame) = batch.push_slot() else { return };
            fill(frame, &captured, length as usize);
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += u64::from(length);
        }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), PortError> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let at = clock::since_1970();
        let notes = FrameNotes { direction: Some(Direction::Outbound), ..FrameNotes::default() };
        for frame in batch.frames() {
            let written = output.frame(at, frame.bytes(), notes);
            written.map_err(|error| {
                PortError::File(self.output_path.display().to_string(), error.to_string())
            })?;
        }
        Ok(())
    }
}

/// Copies the captured frame into `frame` and pads it to its original length.
fn fill(frame: &mut Frame, captured: &Captured<'_>, length: usize) {
    let here = &captured.bytes[..captured.bytes.len().min(length)];
    frame.set_bytes(here);
    frame.pad_to(length);
    frame.stamp = captured.at.map(|at| Stamp { at, clock: Clock::File });
}

impl Port for PcapPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let begun = *self.begun.get_or_insert(now);
        if now.since(begun) < self.after {
            return Ok(0);
        }
        let before = batch.len();
        self.read(batch);
        let count = batch.len() - before;
        match &self.input {
            Input::Broken(path, error) if count == 0 => {
                Err(PortError::File(path.display().to_string(), error.clone()))
            }
            _ => Ok(count),
        }
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        self.write(batch)?;
        let frames = batch.frames();
        self.counters.tx_frames += frames.len() as u64;
        self.counters.tx_bytes += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        Ok(frames.len())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }

    fn is_over(&self) -> bool {
        !matches!(self.input, Input::Open(..))
    }
}

#[cfg(test)]
mod tests;
