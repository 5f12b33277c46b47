//! Transmission by a port that sends ahead: it gets frames before they are due, and reports when
//! they left.
//!
//! - Frames of a single stream that are alike, with a constant gap, are handed over together: the
//!   port repeats the first one.
//! - A frame counts as offered when the port has it, and no longer if the port is too late.

use netio::departure::{Outcome, SendReport, SendSchedule};
use netio::port::{Port, PortError};
use packet::time::Nanos;
use record::Stalls;

use super::{BATCH_FRAMES, PlannedFrames, Sender, TrafficPhase};
use crate::generator::schedule::Cursor;
use crate::pauses::AWAY;
use crate::signature::Sequence;
use crate::trial::STALL;

/// Maximum number of frames that are handed over together.
const ALIKE_FRAMES: usize = 1024;

/// Minimum lateness of a frame that the port does not send. To skip a frame takes the port as long
/// as to send it, so a port at its limit must not have to.
const SLACK_MIN: Nanos = Nanos::from_millis(10);

/// Frames that were handed over and have no result yet.
#[derive(Debug)]
pub(super) struct UnreportedFrames {
    /// When the first frame of the departure was due.
    due: Nanos,
    frames: PlannedFrames,
}

/// Times in which a port that sends ahead sent nothing although frames were due.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// When the last frame left.
    left_at: Nanos,
    /// Those of at least [`AWAY`].
    pub(super) all: Stalls,
    /// Number of those of at least [`STALL`].
    pub(super) long: u64,
}

impl Gaps {
    /// Records that a frame left, or could have left, at `now`, and that one was due at `due`.
    #[inline]
    pub(super) fn note(&mut self, due: Nanos, now: Nanos) {
        let gap = now.since(self.left_at.max(due));
        if gap >= AWAY {
            self.all.add(gap.0);
            self.long += u64::from(gap >= STALL);
        }
        self.left_at = self.left_at.max(now);
    }
}

impl Sender {
    /// Sends ahead if there are frames to send and the port can. Returns how long before their
    /// times the port gets them, or zero.
    pub fn start_ahead(&mut self, port: &mut dyn Port) -> Nanos {
        // Results of an earlier trial.
        port.take_departed(&mut self.departed);
        self.departed.clear();
        if self.next_due().is_some() {
            self.ahead = port.send_ahead(true);
        }
        self.ahead
    }

    /// Hands over frames that are due soon. Returns how many the port accepted.
    pub(super) fn send_ahead(
        &mut self,
        port: &mut dyn Port,
        now: Nanos,
    ) -> Result<usize, PortError> {
        self.settle_ahead(port);
        let until = now.saturating_add(self.ahead);
        let Some(due) = self.next_due().filter(|due| *due <= until) else { return Ok(0) };
        self.note_lateness(now.since(due));
        let are_alike = self.are_alike();
        self.planned.clear();
        self.plan(now, until, if are_alike { ALIKE_FRAMES } else { BATCH_FRAMES });
        // After late frames are skipped, none may be due.
        self.planned.retain(|planned| planned.frames > 0);
        self.frames.clear();
        self.departures.clear();
        match are_alike {
            true => self.write_alike(),
            false => self.write_open(),
        }
        if self.frames.is_empty() {
            return Ok(0);
        }
        let taken = port.transmit_at(&mut self.frames, &self.departures, now)?;
        let refused: u32 = self.departures.iter().skip(taken).map(|it| it.frames).sum();
        self.is_refused = refused > 0;
        if self.is_refused {
            self.take_back(refused as usize);
        }
        let mut count = 0;
        for planned in &self.planned {
            let counts = &mut self.streams[usize::from(planned.place)].counts;
            counts[planned.phase as usize].offered += u64::from(planned.frames);
            count += planned.frames as usize;
        }
        let leaving = |frames: PlannedFrames| UnreportedFrames { due: frames.from.due, frames };
        if are_alike {
            self.leaving.extend(self.planned.drain(..).map(leaving));
        } else {
            let streams = &self.streams;
            let each = self.planned.drain(..).flat_map(move |planned| {
                let schedule = &streams[usize::from(planned.place)].phases[planned.phase as usize];
                let next = move |from: &Cursor| Some(schedule.after(*from));
                let cursors = std::iter::successors(Some(planned.from), next);
                let one = move |from| PlannedFrames { frames: 1, from, ..planned };
                cursors.take(planned.frames as usize).map(one)
            });
            self.leaving.extend(each.map(leaving));
        }
        Ok(count)
    }

    /// Returns whether the frames to send are alike and have a constant gap.
    fn are_alike(&self) -> bool {
        let Some((_, place)) = self.agenda.first().filter(|_| self.agenda.is_alone()) else {
            return false;
        };
        let stream = &self.streams[place];
        stream.templates.are_alike()
            && stream.phases.iter().all(|phase| phase.gap(&phase.seek(0)).is_some())
    }

    /// Writes the first of each planned frames.
    fn write_alike(&mut self) {
        for planned in &self.planned {
            let stream = &self.streams[usize::from(planned.place)];
            let PlannedFrames { phase, frames, from, .. } = *planned;
            let template = stream.templates.of(from.number);
            let is_warmup = phase == TrafficPhase::Warmup;
            let sequence = Sequence { is_warmup, epoch: self.epoch, number: from.number };
            let frame = self.frames.push(template.bytes().len(), None);
            let frame = frame.expect("few departures");
            let stamp = template.write_open(sequence, from.due, &[], frame);
            let gap = stream.phases[phase as usize].gap(&from).unwrap_or_default();
            let (due, slack) = (from.due, stream.catch_up.max(SLACK_MIN));
            self.departures.push(SendSchedule { due, slack, frames, gap, stamp });
        }
    }

    /// Writes the planned frames.
    fn write_open(&mut self) {
        self.draw();
        let mut indices = &self.indices[..];
        for planned in &self.planned {
            let stream = &self.streams[usize::from(planned.place)];
            let templates = &stream.templates;
            let (mut cursor, step) = (planned.from, stream.phases[planned.phase as usize].step());
            let is_warmup = planned.phase == TrafficPhase::Warmup;
            for number in planned.numbers() {
                let (of_frame, others) = indices.split_at(templates.groups());
                let template = templates.of(number);
                let sequence = Sequence { is_warmup, epoch: self.epoch, number };
                let frame = self.frames.push(template.bytes().len(), None);
                let frame = frame.expect("at most one batch");
                let stamp = template.write_open(sequence, cursor.due, of_frame, frame);
                let slack = stream.catch_up.max(SLACK_MIN);
                self.departures.push(SendSchedule::once(cursor.due, slack, stamp));
                cursor = step(cursor);
                indices = others;
            }
        }
    }

    /// Records when frames left that the port had got before their times.
    pub fn settle_ahead(&mut self, port: &mut dyn Port) {
        port.take_departed(&mut self.departed);
        for SendReport { due, outcome } in self.departed.drain(..) {
            // Frames without a result were too long for the port.
            while self.leaving.front().is_some_and(|first| first.due < due) {
                self.leaving.pop_front();
            }
            // A result of an earlier trial, whose frames were in the port at its end, has an
            // earlier time.
            let Some(first) = self.leaving.front_mut().filter(|first| first.due == due) else {
                continue;
            };
            let frames = &mut first.frames;
            if let Outcome::Left(left) = outcome {
                self.gaps.note(frames.from.due, left);
            }
            let stream = &mut self.streams[usize::from(frames.place)];
            match outcome {
                Outcome::Left(left) if frames.phase == TrafficPhase::Measured => {
                    stream.pace.sent_alone(left, frames.from.due);
                }
                Outcome::TooLate => {
                    let counts = &mut stream.counts[frames.phase as usize];
                    counts.offered -= 1;
                    counts.unsent_late += 1;
                }
                Outcome::Left(_) | Outcome::Rejected => {}
            }
            frames.frames -= 1;
            frames.from = stream.phases[frames.phase as usize].after(frames.from);
            if frames.frames == 0 {
                self.leaving.pop_front();
            }
        }
    }
}
