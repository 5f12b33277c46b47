//! A stream of frames from a stream file: its bytes and send times.
//!
//! Invariant: the frames are those that the generator would send, except for the timestamp and the
//! key in the signature.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use netio::capture::{CaptureOptions, CaptureWriter, Format};
use packet::capture::write::FrameNotes;
use packet::time::Nanos;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tester::generator::schedule::Schedule;
use tester::generator::templates::Templates;
use tester::signature::{NUMBER_MAX, SendTime, Sequence};
use tester::stream;

use crate::failure::usage;

/// Maximum number of ports that a stream may name.
const PORTS_MAX: usize = 256;

/// Key of the signatures, different from that of any run.
const KEY: u64 = 0;

/// One stream of a file.
#[pyclass(frozen, module = "planimeter._native")]
pub struct Stream {
    stream: stream::Stream,
    templates: Templates,
    schedule: Schedule,
}

#[pymethods]
impl Stream {
    /// Parses a text with exactly one stream.
    #[new]
    fn new(text: &str) -> PyResult<Stream> {
        let read = stream::file::read(text, PORTS_MAX).map_err(|error| usage(error.to_string()))?;
        let [stream] = <[stream::Stream; 1]>::try_from(read)
            .map_err(|read| usage(format!("expected one stream, found {}", read.len())))?;
        let templates = Templates::leaving(&stream, KEY);
        let schedule = Schedule::of(&stream, Nanos::ZERO, Nanos::ZERO, Nanos::MAX, false);
        Ok(Stream { stream, templates, schedule })
    }

    /// Frame `number` without its frame check sequence.
    fn frame<'py>(&self, py: Python<'py>, number: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes(number))
    }

    /// Send time of frame `number`, in nanoseconds after the earliest possible one.
    fn moment(&self, number: u64) -> u64 {
        self.schedule.seek(number.min(NUMBER_MAX)).due.0
    }

    /// Frames per second. For a burst stream, the rate within a burst; for a ramp, the initial
    /// rate.
    #[getter]
    fn rate_pps(&self) -> f64 {
        self.stream.rate_pps()
    }

    /// Mean frame size, frame check sequence included.
    #[getter]
    fn frame_bytes_mean(&self) -> f64 {
        self.stream.frame_bytes_mean()
    }

    /// Number of different headers of its frames.
    #[getter]
    fn flow_count(&self) -> u64 {
        self.stream.flow_count()
    }

    /// Writes this many frames to a pcap or pcapng file, timestamped with their send times.
    fn write(&self, py: Python<'_>, path: PathBuf, frames: u64) -> PyResult<()> {
        let write = || {
            let options =
                CaptureOptions { format: Format::of(&path), ..CaptureOptions::pcapng("stream") };
            let output = BufWriter::new(File::create(&path)?);
            let mut writer = CaptureWriter::new(output, &options)?;
            for number in 0..frames.min(NUMBER_MAX) {
                let at = Nanos(self.moment(number));
                writer.frame(at, &self.bytes(number), FrameNotes::default())?;
            }
            writer.finish(None).map(|_| ())
        };
        let written = py.detach(write);
        written.map_err(|error: netio::capture::CaptureError| {
            usage(format!("{}: {error}", path.display()))
        })
    }
}

impl Stream {
    fn bytes(&self, number: u64) -> Vec<u8> {
        let number = number.min(NUMBER_MAX);
        let template = self.templates.of(number);
        let mut indices = Vec::new();
        template.draw(number, &mut indices);
        let mut frame = vec![0; template.bytes().len()];
        let sequence = Sequence { is_warmup: false, epoch: 0, number };
        template.write(sequence, SendTime::new(Nanos(self.moment(number))), &indices, &mut frame);
        frame
    }
}
