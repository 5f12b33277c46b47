//! Transmission from one port on time, with counts of unsent frames.
//!
//! - Streams of a port are merged by due time.
//! - A late sender catches up within a bounded burst. Later frames count as unsent and are never
//!   sent, because a load in bursts is a different load.
//! - Frames that the port rejects are built again with a new timestamp, while there is time.
//! - Frames sent together have one timestamp, taken before the first is written. They leave later
//!   by the time for writing them: some ten nanoseconds each, for at most [`BATCH_FRAMES`].
//! - A frame that is due alone is sent alone.
//! - A port that [sends ahead](netio::port::Port::send_ahead) gets frames before they are due. It
//!   sends and stamps each on time.

use std::collections::VecDeque;

use ahead::{Gaps, UnreportedFrames};
use netio::departure::{SendReport, SendSchedule};
use netio::port::{Port, PortError};
use packet::batch_copy::Copies;
use packet::time::Nanos;
use record::Stalls;

use crate::generator::pace::Pace;
use crate::generator::queue::Agenda;
use crate::generator::schedule::{Cursor, Schedule};
use crate::generator::templates::Templates;
use crate::grouping::Grouping;
use crate::signature::{SendTime, Sequence};
use crate::trial::{Pacing, STALL};

mod ahead;

/// Maximum number of frames in a batch.
pub const BATCH_FRAMES: usize = 64;

/// Number of a stream's batches after which their deviations are recorded, so that its histograms
/// are fetched once for all.
const WAITING_MAX: usize = 16;

/// Phase of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficPhase {
    /// Warm-up, not measured.
    Warmup,
    /// Measured.
    Measured,
}

/// Transmission state of one stream.
#[derive(Debug)]
pub struct ScheduledStream {
    templates: Templates,
    phases: [Schedule; 2],
    phase: TrafficPhase,
    cursor: Cursor,
    /// Maximum lateness. Later frames are skipped.
    catch_up: Nanos,
    counts: [Counts; 2],
    pace: Pace,
    /// Batches of measured frames with send times, not yet recorded in `pace`.
    waiting: Vec<(PlannedFrames, Nanos)>,
}

/// Frame counts of one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that the port accepted.
    pub offered: u64,
    /// Frames for which the sender was too late.
    pub unsent_late: u64,
    /// Frames that the port rejected until their deadline.
    pub unsent_refused: u64,
}

/// All streams of one port.
#[derive(Debug)]
pub struct Sender {
    epoch: u16,
    streams: Vec<ScheduledStream>,
    /// Streams with frames left.
    agenda: Agenda,
    planned: Vec<PlannedFrames>,
    grouping: Grouping,
    /// Indices drawn by the planned frames. Empty if nothing varies.
    indices: Vec<u64>,
    varies: bool,
    frames: Copies,
    is_refused: bool,
    is_stalled: bool,
    stalls: u64,
    lateness_max: Nanos,
    /// How long before their times frames are handed over, if the port sends ahead.
    ahead: Nanos,
    departures: Vec<SendSchedule>,
    /// Frames that were handed over before their times and have no result yet.
    leaving: VecDeque<UnreportedFrames>,
    gaps: Gaps,
    departed: Vec<SendReport>,
}

/// Successive frames of one stream to send: its index, and the first frame.
#[derive(Debug, Clone, Copy)]
struct PlannedFrames {
    place: u16,
    phase: TrafficPhase,
    frames: u32,
    from: Cursor,
}

impl PlannedFrames {
    fn numbers(&self) -> std::ops::Range<u64> {
        self.from.number..self.from.number + u64::from(self.frames)
    }
}

impl ScheduledStream {
    /// Creates the state from the templates, the schedules of both phases (warm-up first), and the
    /// maximum lag in frames.
    pub fn new(templates: Templates, phases: [Schedule; 2], catch_up: u32) -> Self {
        let [warmup, measured] = phases;
        let mut outgoing = ScheduledStream {
            templates,
            phases,
            phase: TrafficPhase::Warmup,
            cursor: warmup.seek(0),
            catch_up: measured.period.span(u64::from(catch_up.max(1))),
            counts: Default::default(),
            pace: Pace::new(),
            waiting: Vec::with_capacity(WAITING_MAX),
        };
        outgoing.enter_next_leg();
        outgoing
    }

    fn schedule(&self) -> &Schedule {
        &self.phases[self.phase as usize]
    }

    /// Returns the frame counts of a phase.
    pub fn counts(&self, phase: TrafficPhase) -> Counts {
        self.counts[phase as usize]
    }

    /// Returns the number of frames in the measured phase's schedule.
    pub fn intended(&self) -> u64 {
        self.phases[TrafficPhase::Measured as usize].count
    }

    /// Ends both phases with the frames due at `now`, or with those that the port has already.
    fn stop(&mut self, now: Nanos) {
        for (place, phase) in self.phases.iter_mut().enumerate() {
            let sent = if place == self.phase as usize { self.cursor.number } else { 0 };
            phase.count = phase.due(now).max(sent);
        }
        self.enter_next_leg();
    }

    fn due(&self) -> Option<Nanos> {
        (self.cursor.number < self.schedule().count).then_some(self.cursor.due)
    }

    fn enter_next_leg(&mut self) {
        if self.phase == TrafficPhase::Warmup && self.cursor.number >= self.schedule().count {
            self.phase = TrafficPhase::Measured;
            self.cursor = self.schedule().seek(0);
        }
    }

    /// Skips frames that are too late at `now`.
    fn skip_late(&mut self, now: Nanos, is_refused: bool) {
        let too_late = Nanos(now.0 - self.catch_up.0);
        while self.due().is_some_and(|due| due <= too_late) {
            let next = self.schedule().due(too_late);
            self.skip_frames(next, is_refused);
        }
    }

    /// Advances to frame `next` of this phase without sending the ones before it.
    fn skip_frames(&mut self, next: u64, is_refused: bool) {
        let skipped = next - self.cursor.number;
        let counts = &mut self.counts[self.phase as usize];
        *(if is_refused { &mut counts.unsent_refused } else { &mut counts.unsent_late }) += skipped;
        self.cursor = self.schedule().seek(next);
        self.enter_next_leg();
    }

    /// Records that these frames were sent together at `now`.
    #[inline]
    fn commit(&mut self, sent: PlannedFrames, now: Nanos) {
        self.counts[sent.phase as usize].offered += u64::from(sent.frames);
        if sent.phase == TrafficPhase::Measured {
            self.waiting.push((sent, now));
            if self.waiting.len() == WAITING_MAX {
                self.note_pace();
            }
        }
    }

    /// Records the deviations of the waiting batches.
    fn note_pace(&mut self) {
        for (sent, now) in self.waiting.drain(..) {
            // A local variable keeps the cursor in registers.
            let (mut cursor, step) = (sent.from, self.phases[sent.phase as usize].step());
            let dues = (0..sent.frames).map(|_| {
                let due = cursor.due;
                cursor = step(cursor);
                due
            });
            self.pace.sent(now, dues);
        }
        self.pace.note_waiting();
    }

    /// Returns to a frame that was planned and not sent.
    fn rewind(&mut self, phase: TrafficPhase, number: u64) {
        self.phase = phase;
        self.cursor = self.schedule().seek(number);
    }

    /// Plans the frames due at `until`, at most `limit`, and advances the cursor.
    #[inline]
    fn plan(&mut self, place: usize, until: Nanos, limit: usize) -> PlannedFrames {
        let (phase, from) = (self.phase, self.cursor);
        let schedule = self.schedule();
        let (mut cursor, step) = (from, schedule.step());
        let end = schedule.count.min(from.number + limit as u64);
        while cursor.number < end && cursor.due <= until {
            cursor = step(cursor);
        }
        drop(step);
        self.cursor = cursor;
        self.enter_next_leg();
        PlannedFrames {
            place: place as u16,
            phase,
            frames: (cursor.number - from.number) as u32,
            from,
        }
    }

    /// Takes the schedule deviations.
    pub fn take_pacing(&mut self) -> Pacing {
        self.note_pace();
        self.pace.take()
    }
}

impl Sender {
    /// Creates a sender of these streams for trial `epoch`.
    pub fn new(epoch: u16, streams: Vec<ScheduledStream>) -> Self {
        let mut sender = Sender {
            epoch,
            varies: streams.iter().any(|stream| stream.templates.groups() > 0),
            streams,
            agenda: Agenda::default(),
            planned: Vec::with_capacity(BATCH_FRAMES),
            grouping: Grouping::default(),
            indices: Vec::new(),
            frames: Copies::new(BATCH_FRAMES),
            is_refused: false,
            is_stalled: false,
            stalls: 0,
            lateness_max: Nanos::ZERO,
            ahead: Nanos::ZERO,
            departures: Vec::new(),
            leaving: VecDeque::new(),
            gaps: Gaps::default(),
            departed: Vec::new(),
        };
        sender.rebuild_agenda();
        sender
    }

    /// Returns the streams, in the order given.
    pub fn streams(&self) -> &[ScheduledStream] {
        &self.streams
    }

    /// Returns the streams, to take their results.
    pub fn streams_mut(&mut self) -> &mut [ScheduledStream] {
        &mut self.streams
    }

    /// Returns when the next frame is due. None if all are sent.
    pub fn next_due(&self) -> Option<Nanos> {
        self.agenda.first().map(|(due, _)| due)
    }

    /// Sends up to [`BATCH_FRAMES`] due frames. Returns how many the port accepted.
    ///
    /// A port that sends ahead also gets frames that are not due yet.
    pub fn send(&mut self, port: &mut dyn Port, now: Nanos) -> Result<usize, PortError> {
        if self.ahead > Nanos::ZERO {
            return self.send_ahead(port, now);
        }
        if self.next_due().is_none_or(|due| due > now) {
            return Ok(0);
        }
        self.note_stall(now);
        self.planned.clear();
        self.plan(now, now, BATCH_FRAMES);
        self.write(now);
        if self.frames.is_empty() {
            return Ok(0);
        }
        let taken = port.transmit_copies(&mut self.frames, now)?.min(self.frames.len());
        self.is_refused = taken < self.frames.len();
        if self.is_refused {
            self.take_back(self.frames.len() - taken);
        }
        self.commit(now);
        Ok(taken)
    }

    /// Records that the planned frames were sent together at `now`.
    fn commit(&mut self, now: Nanos) {
        self.grouping.group(self.streams.len(), self.planned.iter().map(|it| Some(it.place)));
        let mut order = self.grouping.order().iter().map(|at| self.planned[usize::from(*at)]);
        let Some(mut sent) = order.next() else { return };
        for next in order {
            let number = sent.from.number + u64::from(sent.frames);
            let follows = next.place == sent.place && next.phase == sent.phase;
            if follows && next.from.number == number {
                sent.frames += next.frames;
            } else {
                self.streams[usize::from(sent.place)].commit(sent, now);
                sent = next;
            }
        }
        self.streams[usize::from(sent.place)].commit(sent, now);
    }

    /// Stops sending frames due after `now`.
    pub fn stop(&mut self, now: Nanos) {
        self.streams.iter_mut().for_each(|stream| stream.stop(now));
        self.rebuild_agenda();
    }

    /// Skips all remaining frames.
    pub fn close(&mut self) {
        for stream in &mut self.streams {
            while stream.due().is_some() {
                let count = stream.schedule().count;
                stream.skip_frames(count, self.is_refused);
            }
        }
        self.agenda.clear();
    }

    /// Plans at most `room` frames due at `until`, earliest first, at the time `now`.
    fn plan(&mut self, now: Nanos, until: Nanos, mut room: usize) {
        while room > 0 {
            let Some((due, place)) = self.agenda.first().filter(|(due, _)| *due <= until) else {
                return;
            };
            if now.since(due) >= self.streams[place].catch_up {
                if self.ahead > Nanos::ZERO && !self.is_refused {
                    self.gaps.note(due, now);
                }
                self.streams[place].skip_late(now, self.is_refused);
            }
            let stream = &mut self.streams[place];
            // One frame of each stream in turn. Of a single stream, all due frames.
            let limit = if self.agenda.is_alone() { room } else { 1 };
            let planned = stream.plan(place, until, limit);
            room -= planned.frames as usize;
            self.planned.push(planned);
            self.agenda.renew(stream.due());
        }
    }

    /// Draws the indices of the planned frames before they are written, to wait for distant memory
    /// only once.
    fn draw(&mut self) {
        self.indices.clear();
        if self.varies {
            for planned in &self.planned {
                let templates = &self.streams[usize::from(planned.place)].templates;
                for number in planned.numbers() {
                    templates.of(number).draw(number, &mut self.indices);
                }
            }
        }
    }

    /// Writes the planned frames.
    fn write(&mut self, now: Nanos) {
        self.draw();
        self.frames.clear();
        let (mut indices, sent) = (&self.indices[..], SendTime::new(now));
        for planned in &self.planned {
            let templates = &self.streams[usize::from(planned.place)].templates;
            let is_warmup = planned.phase == TrafficPhase::Warmup;
            for number in planned.numbers() {
                let (of_frame, others) = indices.split_at(templates.groups());
                let template = templates.of(number);
                let sequence = Sequence { is_warmup, epoch: self.epoch, number };
                let frame = self.frames.push(template.bytes().len(), None);
                template.write(sequence, sent, of_frame, frame.expect("at most one batch"));
                indices = others;
            }
        }
    }

    /// Returns the last frames, which were rejected, to the schedule.
    fn take_back(&mut self, mut refused: usize) {
        while let Some(last) = self.planned.last_mut().filter(|_| refused > 0) {
            let back = refused.min(last.frames as usize);
            last.frames -= back as u32;
            let number = last.from.number + u64::from(last.frames);
            self.streams[usize::from(last.place)].rewind(last.phase, number);
            refused -= back;
            if last.frames == 0 {
                self.planned.pop();
            }
        }
        self.rebuild_agenda();
    }

    fn rebuild_agenda(&mut self) {
        let due = |(place, stream): (usize, &ScheduledStream)| Some((stream.due()?, place));
        self.agenda.fill(self.streams.iter().enumerate().filter_map(due));
    }

    /// Counts a stall when the sender, not the port, is late by [`STALL`] or more.
    fn note_stall(&mut self, now: Nanos) {
        let late = self.next_due().map_or(Nanos::ZERO, |due| now.since(due));
        let was_stalled = std::mem::replace(&mut self.is_stalled, late >= STALL);
        if self.is_stalled && !was_stalled && !self.is_refused {
            self.stalls += 1;
        }
        self.note_lateness(late);
    }

    /// Records the lateness of the next frame, unless the port is the reason for it.
    fn note_lateness(&mut self, late: Nanos) {
        if !self.is_refused {
            self.lateness_max = self.lateness_max.max(late);
        }
    }

    /// Returns the times in which a port that sends ahead sent nothing although frames were due: it
    /// had no frames, or no core.
    pub fn gaps(&self) -> &Stalls {
        &self.gaps.all
    }

    /// Returns the deviations of all streams. Lateness includes frames too late to be sent.
    pub fn pacing(&mut self) -> Pacing {
        let mut pacing = Pacing::empty();
        for stream in &mut self.streams {
            stream.note_pace();
            pacing.merge(stream.pace.pacing());
        }
        pacing.stalls = self.stalls + self.gaps.long;
        pacing.lateness_max = pacing.lateness_max.max(self.lateness_max);
        pacing
    }
}

#[cfg(test)]
mod tests;
