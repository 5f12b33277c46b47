//! A trace of all frames that pass a port, in both directions, as a pcapng file.
//!
//! - The format is draft-ietf-opsawg-pcapng: one interface with nanosecond resolution, and one
//!   enhanced packet block per frame with its direction. If frames were lost before it, the block
//!   has their number.
//! - A received frame has the port's timestamp, a sent one the time of the call.
//! - A trace never affects its port. If writing fails or the size limit is reached, the trace ends
//!   and missing frames are counted. [`Trace::finish`] reports this.

use std::io::{self, Write};

use packet::capture::Direction;
use packet::capture::write::FrameNotes;
use packet::frame::{Batch, Frame};
use packet::time::Nanos;

use crate::capture::{CaptureError, CaptureOptions, CaptureWriter};
use crate::port::{Port, PortDrop, PortError};

/// Options of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// The time since 1970 at the clock's zero, which is added to every time. Zero in a simulation.
    pub epoch: Nanos,
    /// Maximum size of the file in bytes.
    pub bytes_max: u64,
}

impl TraceOptions {
    /// Options with dates from the current realtime clock, and at most 1 GiB.
    pub fn live() -> Self {
        let epoch = os::clock::since_1970().since(os::clock::now());
        TraceOptions { epoch, ..TraceOptions::simulated() }
    }

    /// Options with times from the start of the simulation, and at most 1 GiB.
    pub fn simulated() -> Self {
        TraceOptions { epoch: Nanos::ZERO, bytes_max: 1 << 30 }
    }
}

/// A port whose frames are traced.
pub struct Trace<P, W: Write> {
    inner: P,
    file: File<W>,
    /// Copies of the frames being sent, because the inner port removes the frames that it accepts.
    sending: Vec<Frame>,
    receive_drops: u64,
}

/// The file being written, and its state.
struct File<W: Write> {
    writer: CaptureWriter<W>,
    options: TraceOptions,
    frames: u64,
    frames_missing: u64,
    failure: Option<io::Error>,
}

/// Result of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSummary {
    /// Frames in the file.
    pub frames: u64,
    /// Frames that passed after the size limit was reached.
    pub frames_missing: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl<P: Port, W: Write> Trace<P, W> {
    /// Traces the frames of `inner` to `output`, and writes the file header immediately.
    pub fn new(inner: P, output: W, options: TraceOptions) -> io::Result<Self> {
        let facts = inner.facts();
        let mac = Some(facts.mac);
        let about = CaptureOptions { mac, ..CaptureOptions::pcapng(&facts.name) };
        let writer = CaptureWriter::new(output, &about).map_err(plain)?;
        let file = File { writer, options, frames: 0, frames_missing: 0, failure: None };
        Ok(Trace { inner, file, sending: Vec::new(), receive_drops: 0 })
    }

    /// Ends the trace. Returns the inner port and the result of the trace.
    pub fn finish(self) -> (P, io::Result<TraceSummary>) {
        let File { writer, frames, frames_missing, failure, .. } = self.file;
        let bytes = writer.bytes();
        let ended = match failure {
            Some(error) => Err(error),
            None => writer.finish(None).map(|_| ()).map_err(plain),
        };
        (self.inner, ended.map(|()| TraceSummary { frames, frames_missing, bytes }))
    }

    /// Returns the number of frames that the port lost on receive since the last call.
    fn new_drops(&mut self) -> u64 {
        let drops = self.inner.counters().lost(PortDrop::ReceiveRingFull);
        let before = std::mem::replace(&mut self.receive_drops, drops);
        drops - before
    }
}

impl<W: Write> File<W> {
    fn add(&mut self, frame: &Frame, at: Nanos, direction: Direction, drops: u64) {
        if self.failure.is_some() || self.writer.bytes() >= self.options.bytes_max {
            self.frames_missing += 1;
            return;
        }
        let dropped = (drops > 0).then_some(drops);
        let notes = FrameNotes { direction: Some(direction), dropped, ..FrameNotes::default() };
        let at = at.saturating_add(self.options.epoch);
        match self.writer.frame(at, frame.bytes(), notes) {
            Ok(()) => self.frames += 1,
            Err(error) => {
                self.frames_missing += 1;
                self.failure = Some(plain(error));
            }
        }
    }
}

fn plain(error: CaptureError) -> io::Error {
    match error {
        CaptureError::System(error) => error,
        other => io::Error::other(other),
    }
}

impl<P: Port, W: Write + Send> Port for Trace<P, W> {
    delegated!(facts, counters, has_link, link, next_event, descriptor);

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let before = batch.len();
        let count = self.inner.receive(batch, now)?;
        if count > 0 {
            let mut drops = self.new_drops();
            for frame in &batch.frames()[before..] {
                let at = frame.stamp.map_or(now, |stamp| stamp.at);
                self.file.add(frame, at, Direction::Inbound, std::mem::take(&mut drops));
            }
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        if self.sending.len() < batch.len() {
            self.sending.resize_with(batch.len(), Frame::default);
        }
        for (copy, frame) in self.sending.iter_mut().zip(batch.frames()) {
            copy.copy_from(frame);
        }
        let count = self.inner.transmit(batch, now)?;
        for frame in &self.sending[..count] {
            self.file.add(frame, now, Direction::Outbound, 0);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
