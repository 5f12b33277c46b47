//! A record of all frames that pass a port, in both directions, as a pcapng file.
//!
//! The format is draft-ietf-opsawg-pcapng: one interface with nanosecond resolution, one enhanced
//! packet block for each frame with its direction and, where frames were lost before it, how
//! many. A received frame has the stamp that the port took, a sent one the time of the call. The
//! port never suffers from its trace: when writing fails or the size limit is reached, the trace
//! ends, what is missing is counted, and [`Trace::finish`] tells.

use std::io::{self, Write};

use packet::capture::Direction;
use packet::capture::write::Notes;
use packet::frame::{Batch, Frame};
use packet::time::Nanos;

use crate::capture::{CaptureError, CaptureOptions, CaptureWriter};
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceOptions {
    /// The moment, since 1970, of the start of the clock: what is added to every time. Zero in a
    /// simulation.
    pub epoch: Nanos,
    /// Largest size of the file in bytes.
    pub bytes_max: u64,
}

impl TraceOptions {
    /// With dates as the realtime clock has them now, and at most 1 GiB.
    pub fn live() -> Self {
        let epoch = crate::clock::since_1970().since(crate::clock::now());
        TraceOptions { epoch, ..TraceOptions::simulated() }
    }

    /// With times from the start of the simulation, and at most 1 GiB.
    pub fn simulated() -> Self {
        TraceOptions { epoch: Nanos::ZERO, bytes_max: 1 << 30 }
    }
}

/// A port whose frames are recorded.
pub struct Trace<P, W: Write> {
    inner: P,
    file: File<W>,
    /// Copies of the frames that are being sent: what the port inside takes, it takes away.
    sending: Vec<Frame>,
    receive_drops: u64,
}

/// The file being written, and how it went.
struct File<W: Write> {
    writer: CaptureWriter<W>,
    options: TraceOptions,
    frames: u64,
    frames_missing: u64,
    failure: Option<io::Error>,
}

/// What became of a trace.
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
    /// Records what passes `inner` to `output`, whose beginning is written at once.
    pub fn new(inner: P, output: W, options: TraceOptions) -> io::Result<Self> {
        let facts = inner.facts();
        let mac = Some(facts.mac);
        let about = CaptureOptions { mac, ..CaptureOptions::pcapng(&facts.name) };
        let writer = CaptureWriter::new(output, &about).map_err(plain)?;
        let file = File { writer, options, frames: 0, frames_missing: 0, failure: None };
        Ok(Trace { inner, file, sending: Vec::new(), receive_drops: 0 })
    }

    /// Ends the trace: the port inside, and what became of the file.
    pub fn finish(self) -> (P, io::Result<TraceSummary>) {
        let File { writer, frames, frames_missing, failure, .. } = self.file;
        let bytes = writer.bytes();
        let ended = match failure {
            Some(error) => Err(error),
            None => writer.finish(None).map(|_| ()).map_err(plain),
        };
        (self.inner, ended.map(|()| TraceSummary { frames, frames_missing, bytes }))
    }

    /// Frames that the port lost on the way in since this was last asked.
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
        let notes = Notes { direction: Some(direction), dropped, ..Notes::default() };
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
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

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

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }

    fn has_link(&self) -> bool {
        self.inner.has_link()
    }

    fn link(&self) -> Link {
        self.inner.link()
    }

    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        self.inner.descriptor()
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }
}

#[cfg(test)]
mod tests;
