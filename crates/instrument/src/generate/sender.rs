//! Getting frames out of one port on time, and an honest account where that fails.
//!
//! Streams that share a port are merged by the moments at which their frames are due. A sender
//! that is late catches up by a bounded burst; what is later than that is counted as unsent, and
//! never sent: a load that comes in lumps is another load. Frames that the port refuses are made
//! anew, with a new time stamp, while there is time for them.
//!
//! Frames that leave together carry one time stamp, taken before the first of them is written: they
//! leave later than it says by the time that writing them takes, which is some ten nanoseconds for
//! each of at most [`BATCH_FRAMES`]. A frame that is due alone leaves alone.

use std::collections::VecDeque;

use packet::copies::Copies;
use packet::time::Nanos;
use ports::port::{Port, PortError};

use crate::generate::pace::Pace;
use crate::generate::schedule::{Cursor, Schedule};
use crate::generate::templates::Templates;
use crate::signature::{Sent, Sequence};
use crate::trial::{Pacing, STALL};

/// Frames handed to a port at once.
pub const BATCH_FRAMES: usize = 64;

/// One of a stream's two parts: the frames that warm up and those that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// Not measured.
    Warmup,
    /// Measured.
    Measured,
}

/// The frames of one stream on their way out.
#[derive(Debug)]
pub struct Outgoing {
    templates: Templates,
    legs: [Schedule; 2],
    leg: Leg,
    cursor: Cursor,
    /// This far behind, frames are given up.
    catch_up: Nanos,
    counts: [Counts; 2],
    pace: Pace,
}

/// What became of the frames that one leg called for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The port took them.
    pub offered: u64,
    /// The sender came too late for them.
    pub unsent_late: u64,
    /// The port refused them until it was too late.
    pub unsent_refused: u64,
}

/// Everything that leaves from one port.
#[derive(Debug)]
pub struct Sender {
    epoch: u16,
    streams: Vec<Outgoing>,
    /// Streams that have frames left, by when the next one is due. A stream that sent goes to the
    /// end if all send equally often, so that a sorted row is quicker than a heap.
    queue: VecDeque<(Nanos, usize)>,
    planned: Vec<Planned>,
    /// What they draw, if anything ever varies.
    indices: Vec<u64>,
    varies: bool,
    frames: Copies,
    is_refused: bool,
    is_stalled: bool,
    stalls: u64,
    lateness_max: Nanos,
}

/// A frame that is to leave: whose it is, which one, and when it was due.
#[derive(Debug, Clone, Copy)]
struct Planned {
    place: u32,
    leg: Leg,
    number: u64,
    due: Nanos,
}

impl Outgoing {
    /// A stream's frames: what they look like, when its two legs (warm-up first) are due, and by how many frames
    /// it may lag.
    pub fn new(templates: Templates, legs: [Schedule; 2], catch_up: u32) -> Self {
        let [warmup, measured] = legs;
        let mut outgoing = Outgoing {
            templates,
            legs,
            leg: Leg::Warmup,
            cursor: warmup.seek(0),
            catch_up: measured.period.span(u64::from(catch_up.max(1))),
            counts: Default::default(),
            pace: Pace::new(),
        };
        outgoing.enter_next_leg();
        outgoing
    }

    fn schedule(&self) -> &Schedule {
        &self.legs[self.leg as usize]
    }

    /// What became of a leg's frames.
    pub fn counts(&self, leg: Leg) -> Counts {
        self.counts[leg as usize]
    }

    /// Frames that its measured leg calls for.
    pub fn intended(&self) -> u64 {
        self.legs[Leg::Measured as usize].count
    }

    /// Has its legs end with what is due at `now`.
    fn stop(&mut self, now: Nanos) {
        for leg in &mut self.legs {
            leg.count = leg.due(now);
        }
        self.enter_next_leg();
    }

    fn due(&self) -> Option<Nanos> {
        (self.cursor.number < self.schedule().count).then_some(self.cursor.due)
    }

    fn enter_next_leg(&mut self) {
        if self.leg == Leg::Warmup && self.cursor.number >= self.schedule().count {
            self.leg = Leg::Measured;
            self.cursor = self.schedule().seek(0);
        }
    }

    /// Gives up frames that are too late at `now`.
    fn skip_late(&mut self, now: Nanos, is_refused: bool) {
        let too_late = Nanos(now.0 - self.catch_up.0);
        while self.due().is_some_and(|due| due <= too_late) {
            let next = self.schedule().due(too_late);
            self.give_up(next, is_refused);
        }
    }

    /// Moves on to frame `next` of this leg without sending those before it.
    fn give_up(&mut self, next: u64, is_refused: bool) {
        let skipped = next - self.cursor.number;
        let counts = &mut self.counts[self.leg as usize];
        *(if is_refused { &mut counts.unsent_refused } else { &mut counts.unsent_late }) += skipped;
        self.cursor = self.schedule().seek(next);
        self.enter_next_leg();
    }

    /// Notes that these frames of its were sent together at `now`.
    #[inline]
    fn commit(&mut self, sent: &[Planned], now: Nanos) {
        sent.iter().for_each(|frame| self.counts[frame.leg as usize].offered += 1);
        let measured = sent.iter().filter(|frame| frame.leg == Leg::Measured);
        self.pace.sent(now, measured.map(|frame| frame.due));
    }

    /// Goes back to a frame that was planned and not sent.
    fn go_back(&mut self, to: &Planned) {
        self.leg = to.leg;
        self.cursor = self.schedule().seek(to.number);
    }

    /// Plans what is due at `now`, at most `limit` frames, and goes past it.
    #[inline]
    fn plan(&mut self, place: usize, now: Nanos, limit: usize, planned: &mut Vec<Planned>) {
        // In variables of their own, so that they do not go through memory each time.
        let (leg, schedule, mut cursor) = (self.leg, self.schedule(), self.cursor);
        let (count, even) = (schedule.count, schedule.even());
        for _ in 0..limit {
            if cursor.number >= count || cursor.due > now {
                break;
            }
            let Cursor { number, due, .. } = cursor;
            planned.push(Planned { place: place as u32, leg, number, due });
            cursor = match &even {
                Some(period) => period.step(cursor),
                None => schedule.after(cursor),
            };
        }
        self.cursor = cursor;
        self.enter_next_leg();
    }

    /// How well its moments were kept.
    pub fn pacing(&self) -> Pacing {
        self.pace.finish()
    }
}

impl Sender {
    /// A sender of these streams, whose frames belong to trial `epoch`.
    pub fn new(epoch: u16, streams: Vec<Outgoing>) -> Self {
        let mut sender = Sender {
            epoch,
            varies: streams.iter().any(|stream| stream.templates.groups() > 0),
            streams,
            queue: VecDeque::new(),
            planned: Vec::with_capacity(BATCH_FRAMES),
            indices: Vec::new(),
            frames: Copies::new(BATCH_FRAMES),
            is_refused: false,
            is_stalled: false,
            stalls: 0,
            lateness_max: Nanos::ZERO,
        };
        sender.rebuild_queue();
        sender
    }

    /// The streams, in the order in which they were given.
    pub fn streams(&self) -> &[Outgoing] {
        &self.streams
    }

    /// When the next frame is due; none when all are out.
    pub fn next_due(&self) -> Option<Nanos> {
        self.queue.front().map(|&(due, _)| due)
    }

    /// Hands up to [`BATCH_FRAMES`] frames that are due at `now` to the port, and says how many it
    /// took.
    pub fn send(&mut self, port: &mut dyn Port, now: Nanos) -> Result<usize, PortError> {
        if self.next_due().is_none_or(|due| due > now) {
            return Ok(0);
        }
        self.note_stall(now);
        self.planned.clear();
        self.plan(now);
        if self.planned.is_empty() {
            return Ok(0);
        }
        self.write(now);
        let taken = port.transmit_copies(&mut self.frames, now)?.min(self.planned.len());
        for sent in self.planned[..taken].chunk_by(|one, next| one.place == next.place) {
            self.streams[sent[0].place as usize].commit(sent, now);
        }
        self.is_refused = taken < self.planned.len();
        if self.is_refused {
            self.take_back(taken);
        }
        Ok(taken)
    }

    /// Plans nothing that is due after `now`.
    pub fn stop(&mut self, now: Nanos) {
        self.streams.iter_mut().for_each(|stream| stream.stop(now));
        self.rebuild_queue();
    }

    /// Gives up whatever is left.
    pub fn close(&mut self) {
        for stream in &mut self.streams {
            while stream.due().is_some() {
                let count = stream.schedule().count;
                stream.give_up(count, self.is_refused);
            }
        }
        self.queue.clear();
    }

    /// Decides which frames leave: what is due, earliest first.
    fn plan(&mut self, now: Nanos) {
        let is_refused = self.is_refused;
        let (streams, queue) = (&mut self.streams, &mut self.queue);
        while self.planned.len() < BATCH_FRAMES {
            let is_alone = queue.len() == 1;
            let Some(&(due, place)) = queue.front() else { return };
            if due > now {
                return;
            }
            queue.pop_front();
            let stream = &mut streams[place];
            if now.since(due) >= stream.catch_up {
                stream.skip_late(now, is_refused);
            }
            // One frame of each stream in turn; of the only stream as many as are due.
            let limit = if is_alone { BATCH_FRAMES - self.planned.len() } else { 1 };
            stream.plan(place, now, limit, &mut self.planned);
            if let Some(next) = stream.due() {
                let entry = (next, place);
                if queue.back().is_none_or(|last| *last < entry) {
                    queue.push_back(entry);
                } else {
                    queue.insert(queue.partition_point(|other| *other < entry), entry);
                }
            }
        }
    }

    /// Writes the planned frames. First all that varies is drawn, so that far memory is waited for
    /// once and not for each frame.
    fn write(&mut self, now: Nanos) {
        self.indices.clear();
        if self.varies {
            for planned in &self.planned {
                let templates = &self.streams[planned.place as usize].templates;
                templates.of(planned.number).draw(planned.number, &mut self.indices);
            }
        }
        self.frames.clear();
        let (mut indices, sent) = (&self.indices[..], Sent::new(now));
        for of_stream in self.planned.chunk_by(|one, next| one.place == next.place) {
            let templates = &self.streams[of_stream[0].place as usize].templates;
            for &Planned { leg, number, .. } in of_stream {
                let (of_frame, others) = indices.split_at(templates.groups());
                let template = templates.of(number);
                let is_warmup = leg == Leg::Warmup;
                let sequence = Sequence { is_warmup, epoch: self.epoch, number };
                let frame = self.frames.push(template.bytes().len(), None);
                template.write(sequence, sent, of_frame, frame.expect("no more than a batch"));
                indices = others;
            }
        }
    }

    /// Takes the frames that the port refused back into the schedule.
    fn take_back(&mut self, taken: usize) {
        for refused in self.planned[taken..].iter().rev() {
            self.streams[refused.place as usize].go_back(refused);
        }
        self.rebuild_queue();
    }

    fn rebuild_queue(&mut self) {
        let due = |(place, stream): (usize, &Outgoing)| Some((stream.due()?, place));
        self.queue.clear();
        self.queue.extend(self.streams.iter().enumerate().filter_map(due));
        self.queue.make_contiguous().sort_unstable();
    }

    /// Counts once when the sender, not the port, comes late by [`STALL`] or more.
    fn note_stall(&mut self, now: Nanos) {
        let late = self.next_due().map_or(Nanos::ZERO, |due| now.since(due));
        let was_stalled = std::mem::replace(&mut self.is_stalled, late >= STALL);
        if self.is_stalled && !was_stalled && !self.is_refused {
            self.stalls += 1;
        }
        if !self.is_refused {
            self.lateness_max = self.lateness_max.max(late);
        }
    }

    /// How well all its streams' moments were kept, those of frames included that were too late to be
    /// sent.
    pub fn pacing(&self) -> Pacing {
        let mut pacing = Pacing::empty();
        self.streams.iter().for_each(|stream| pacing.merge(&stream.pacing()));
        pacing.stalls = self.stalls;
        pacing.lateness_max = pacing.lateness_max.max(self.lateness_max);
        pacing
    }
}

#[cfg(test)]
mod tests;
