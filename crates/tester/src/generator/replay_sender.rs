//! Transmission of a replay: sends frames that were read ahead, on schedule, as fast as the port
//! accepts.
//!
//! - A frame is copied once, from the chunk to the port's buffer.
//! - Frames that the port rejects are offered again. None is skipped.
//! - In real time a player never waits for the file. In virtual time it does, because time does not
//!   advance during the wait.

use std::sync::Arc;

use netio::capture::read_ahead::{Chunk, FrameLocation, ReadAhead, ReadItem};
use netio::port::{Port, PortError};
use packet::batch_copy::Copies;
use packet::capture::fault::Warnings;
use packet::time::Nanos;

use crate::generator::pace::Pace;
use crate::generator::replay_schedule::ReplaySchedule;
use crate::generator::replay_signature::ReplaySignature;
use crate::generator::sender::BATCH_FRAMES;
use crate::signature::SendTime;
use crate::stream::replay::{Cut, FRAME_BYTES_MIN, Failure, Replay, ReplayCounts, ShortFrames};
use crate::trial::ReplayReport;

/// A replay in progress.
#[derive(Debug)]
pub struct ReplaySender {
    replay: Replay,
    ahead: ReadAhead,
    /// Whether to wait for the file.
    waits: bool,
    /// Maximum frame size of the port.
    frame_bytes_max: usize,
    course: ReplaySchedule,
    /// End of the replay: later frames are not sent.
    until: Nanos,
    chunk: Chunk,
    /// Index of the chunk's next frame.
    index: usize,
    /// The next frame to send.
    coming: Option<PlannedFrame>,
    /// Due frames that the port has not accepted yet, all from this chunk.
    planned: Vec<PlannedFrame>,
    copies: Copies,
    /// Marks frames if requested, and which of the copies are marked.
    seal: Option<ReplaySignature>,
    sealed: Vec<bool>,
    counts: ReplayCounts,
    /// Number of this pass's frames that can be sent, and whether a pass has started.
    fitting: u64,
    has_begun: bool,
    is_starved: bool,
    is_over: bool,
    is_complete: bool,
    is_behind: bool,
    pace: Pace,
    warnings: Warnings,
    failure: Option<Failure>,
}

/// A frame to send: its location, size and due time.
#[derive(Debug, Clone, Copy)]
struct PlannedFrame {
    place: FrameLocation,
    bytes: usize,
    due: Nanos,
}

/// Size of a frame to send, or whether to skip it.
enum FrameLength {
    Send(usize),
    Refuse,
}

impl ReplaySender {
    /// Plays the frames of `replay` from `ahead`, from `start` until `until`.
    pub fn new(
        replay: Replay,
        ahead: ReadAhead,
        frame_bytes_max: usize,
        [start, until]: [Nanos; 2],
        waits: bool,
    ) -> Self {
        let mut player = ReplaySender {
            course: ReplaySchedule::new(replay.timing, start),
            replay,
            ahead,
            waits,
            frame_bytes_max,
            until,
            chunk: Chunk::default(),
            index: 0,
            coming: None,
            planned: Vec::with_capacity(BATCH_FRAMES),
            copies: Copies::new(BATCH_FRAMES),
            seal: None,
            sealed: Vec::with_capacity(BATCH_FRAMES),
            counts: ReplayCounts::default(),
            fitting: 0,
            has_begun: false,
            is_starved: false,
            is_over: false,
            is_complete: false,
            is_behind: false,
            pace: Pace::new(),
            warnings: Warnings::default(),
            failure: None,
        };
        player.advance();
        player
    }

    /// Marks frames if the replay requests it, with the run's `key` for trial `epoch`.
    #[must_use]
    pub fn sealed(self, key: u64, epoch: u16) -> Self {
        let seal =
            self.replay.mark.map(|mark| ReplaySignature::new(mark, self.replay.id, key, epoch));
        ReplaySender { seal, ..self }
    }

    /// Returns when the next frame is due, if known. None if all are sent.
    pub fn next_due(&self) -> Option<Nanos> {
        self.planned.first().or(self.coming.as_ref()).map(|planned| planned.due)
    }

    /// Returns whether all frames are sent, or no more are available.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over && self.coming.is_none() && self.planned.is_empty()
    }

    /// Returns the index of the sending port.
    pub fn from(&self) -> usize {
        self.replay.from
    }

    /// Sends up to [`BATCH_FRAMES`] due frames. Returns how many the port accepted.
    #[inline]
    pub fn send(&mut self, port: &mut dyn Port, now: Nanos) -> Result<usize, PortError> {
        if !self.course.is_paced() && now >= self.until {
            self.close();
        }
        while self.planned.len() < BATCH_FRAMES {
            self.advance();
            match self.coming.take_if(|coming| coming.due <= now) {
                Some(due) => self.planned.push(due),
                None => break,
            }
        }
        if self.planned.is_empty() {
            return Ok(0);
        }
        self.copies.clear();
        for planned in &self.planned {
            let bytes = self.chunk.bytes(planned.place);
            let frame = self.copies.push(planned.bytes, None).expect("at most one batch");
            let kept = bytes.len().min(frame.len());
            frame[..kept].copy_from_slice(&bytes[..kept]);
            frame[kept..].fill(0);
        }
        self.seal(now);
        let taken = port.transmit_copies(&mut self.copies, now)?.min(self.planned.len());
        let signed = self.sealed.iter().take(taken).filter(|&&is_sealed| is_sealed);
        self.counts.signed += signed.count() as u64;
        if self.course.is_paced() {
            self.pace.sent(now, self.planned[..taken].iter().map(|sent| sent.due));
        }
        for sent in self.planned.drain(..taken) {
            self.counts.frames += 1;
            self.counts.bytes += sent.bytes as u64;
        }
        self.advance();
        Ok(taken)
    }

    /// Marks the copies, sent at `now`, if requested. Rejected frames are copied again, with the
    /// same sequence number.
    fn seal(&mut self, now: Nanos) {
        self.sealed.clear();
        let Some(seal) = &self.seal else { return };
        let mut number = self.counts.signed;
        for frame in self.copies.frames_mut() {
            let is_sealed = seal.write(number, SendTime::new(now), frame);
            number += u64::from(is_sealed);
            self.sealed.push(is_sealed);
        }
    }

    /// Stops on request.
    pub fn stop(&mut self) {
        self.is_over = true;
        self.coming = None;
        self.planned.clear();
    }

    /// Stops at the end of the trial.
    pub fn close(&mut self) {
        let is_left = self.next_due().is_some() || self.is_starved && !self.is_over;
        self.is_behind |= is_left && self.course.is_paced();
        self.stop();
    }

    /// Returns the number of sent frames.
    pub fn frames(&self) -> u64 {
        self.counts.frames
    }

    /// Returns the results.
    pub fn report(&self) -> ReplayReport {
        ReplayReport {
            id: self.replay.id,
            from: self.replay.from,
            counts: self.counts,
            is_complete: self.is_complete,
            is_behind: self.is_behind,
            pacing: self.pace.pacing().clone(),
            warnings: self.warnings.list().collect(),
            failure: self.failure.clone(),
            back: None,
        }
    }

    /// Finds the next frame to send, if it is already read.
    #[inline]
    fn advance(&mut self) {
        while self.coming.is_none() && !self.is_over {
            if self.index == self.chunk.len() {
                // Planned frames refer to bytes in this chunk.
                if !self.planned.is_empty() || !self.fetch() {
                    return;
                }
                continue;
            }
            let place = self.chunk.place(self.index);
            self.index += 1;
            if let Err(failure) = self.meet(place) {
                (self.failure, self.is_over) = (Some(failure), true);
            }
        }
    }

    /// Processes a frame of the file.
    #[inline]
    fn meet(&mut self, place: FrameLocation) -> Result<(), Failure> {
        if place.is_first && std::mem::replace(&mut self.has_begun, true) {
            self.counts.passes += 1;
            if std::mem::take(&mut self.fitting) == 0 {
                return Err(Failure::NothingFits);
            }
        }
        match self.length(place) {
            FrameLength::Refuse => self.course.pass_over(place),
            FrameLength::Send(bytes) => {
                self.fitting += 1;
                let due = self.course.due(place, bytes)?;
                if due >= self.until {
                    self.is_over = true;
                } else {
                    self.coming = Some(PlannedFrame { place, bytes, due });
                }
                Ok(())
            }
        }
    }

    /// Returns the size of a frame to send, and counts changes to it.
    #[inline]
    fn length(&mut self, place: FrameLocation) -> FrameLength {
        let (captured, original) = (place.captured_bytes(), place.original_bytes as usize);
        let counts = &mut self.counts;
        let mut bytes = captured;
        if captured < original {
            match self.replay.cut {
                Cut::Fill => bytes = original,
                Cut::Send => {}
                Cut::Refuse => {
                    counts.refused_cut += 1;
                    return FrameLength::Refuse;
                }
            }
        }
        if bytes > self.frame_bytes_max {
            counts.refused_long += 1;
            return FrameLength::Refuse;
        }
        counts.filled += u64::from(bytes > captured);
        if bytes < FRAME_BYTES_MIN {
            match self.replay.short {
                ShortFrames::Pad => {
                    counts.padded += 1;
                    bytes = FRAME_BYTES_MIN;
                }
                ShortFrames::Refuse => {
                    counts.refused_short += 1;
                    return FrameLength::Refuse;
                }
                ShortFrames::Send => {}
            }
        }
        FrameLength::Send(bytes)
    }

    /// Takes the next piece of the file. Returns false if it is not read yet.
    fn fetch(&mut self) -> bool {
        let piece = if self.waits { Some(self.ahead.wait_next()) } else { self.ahead.try_next() };
        let was_starved = std::mem::replace(&mut self.is_starved, piece.is_none());
        match piece {
            None => {
                self.counts.starved += u64::from(!was_starved);
                return false;
            }
            Some(ReadItem::Chunk(chunk)) => {
                self.ahead.give_back(std::mem::replace(&mut self.chunk, chunk));
                self.index = 0;
            }
            Some(ReadItem::Odd(warnings)) => self.warnings = warnings,
            Some(ReadItem::Failed(error)) => {
                self.failure = Some(Failure::File(Arc::new(error)));
                self.is_over = true;
            }
            Some(ReadItem::Ended) => {
                self.counts.passes += u64::from(self.has_begun);
                (self.is_over, self.is_complete) = (true, true);
                if self.fitting == 0 {
                    self.failure = Some(Failure::NothingFits);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
