//! Transmission of streams, which start, stop and change independently.
//!
//! Frames leave on schedule. A late sender catches up within a bounded burst, as in a trial (see
//! [`crate::generator::sender`]). Later frames are counted and never sent. A stream's sequence
//! numbers continue after a restart or a change of rate, so that all its frames are distinct.

use netio::port::PortError;
use packet::batch_copy::Copies;
use packet::frame::FCS_BYTES;
use packet::time::Nanos;

use crate::executor::receive::Expected;
use crate::generator::schedule::{Cursor, Period, Schedule};
use crate::generator::sender::BATCH_FRAMES;
use crate::generator::templates::Templates;
use crate::module::{SendSpan, Signer, StreamAccount};
use crate::rig::engine::PortRow;
use crate::signature::{NUMBER_MAX, SendTime, Sequence};
use crate::stream::{Problem, Rate, Stream};
use crate::trial::CATCH_UP_FRAMES;

/// Maximum number of streams of a module.
pub const STREAMS_MAX: usize = 256;

/// The problems of a stream, if any.
pub type StreamProblems = Result<(), Vec<(u16, Problem)>>;

/// The streams of a module, in the order in which they were prepared.
pub struct Streams {
    signer: Signer,
    streams: Vec<OutgoingStream>,
    frames: Copies,
    indices: Vec<u64>,
}

/// A stream to send.
struct OutgoingStream {
    /// The stream without its varying fields, which are in the templates.
    stream: Stream,
    templates: Templates,
    running: Option<Running>,
    /// Sequence number of the next frame.
    next: u64,
    /// When the last frame was due.
    last_due: Option<Nanos>,
    account: StreamAccount,
}

/// An active stream.
struct Running {
    schedule: Schedule,
    cursor: Cursor,
    until: Nanos,
    /// Frames to send, counted from the start of the schedule.
    count: u64,
    /// Maximum lateness. Later frames are skipped.
    catch_up: Nanos,
    is_refused: bool,
}

impl Streams {
    /// Creates an empty set of streams.
    pub fn new(signer: Signer) -> Self {
        let (streams, indices) = (Vec::new(), Vec::new());
        Streams { signer, streams, frames: Copies::new(BATCH_FRAMES), indices }
    }

    /// Builds a stream's frames. Returns the expected frames at the receiver.
    pub fn prepare(
        &mut self,
        stream: Stream,
        ports: &PortRow,
    ) -> Result<Expected, Vec<(u16, Problem)>> {
        let id = stream.id;
        let mut problems = crate::stream::validate(std::slice::from_ref(&stream), ports.len());
        if self.streams.iter().any(|other| other.stream.id == id) {
            problems.push((id, Problem::DuplicateId(id)));
        }
        if self.streams.len() == STREAMS_MAX {
            problems.push((id, Problem::LimitReached("STREAMS_MAX")));
        }
        if let Some(port) = ports.get(stream.from) {
            let largest_bytes = port.facts().frame_bytes_max + FCS_BYTES;
            if stream.frame_bytes > largest_bytes {
                let frame_bytes = stream.frame_bytes;
                problems.push((id, Problem::TooLarge { frame_bytes, largest_bytes }));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let [leaving, arriving] = Templates::both(&stream, self.signer.key());
        let Stream { from, to, .. } = stream;
        let account = StreamAccount { id, from, to, ..StreamAccount::default() };
        self.streams.push(OutgoingStream {
            stream: Stream { vary: Vec::new(), ..stream },
            templates: leaving,
            running: None,
            next: 0,
            last_due: None,
            account,
        });
        Ok(Expected { templates: arriving, to })
    }

    fn find(&mut self, id: u16) -> Result<&mut OutgoingStream, Vec<(u16, Problem)>> {
        let found = self.streams.iter_mut().find(|it| it.stream.id == id);
        found.ok_or_else(|| vec![(id, Problem::LimitReached("streams that were prepared"))])
    }

    /// Sends a stream's frames within this span, and not after `limit`.
    pub fn begin(&mut self, id: u16, span: SendSpan, now: Nanos, limit: Nanos) -> StreamProblems {
        let outgoing = self.find(id)?;
        let from = span.from.unwrap_or(now).max(now);
        let until = span.until.unwrap_or(limit).min(limit);
        outgoing.run(from, until, span.frames.unwrap_or(NUMBER_MAX));
        Ok(())
    }

    /// Changes a stream's rate from now on.
    pub fn change_rate(&mut self, id: u16, rate: Rate, now: Nanos) -> StreamProblems {
        let outgoing = self.find(id)?;
        outgoing.stream.rate = rate;
        let problems = outgoing.stream.validate();
        if !problems.is_empty() {
            return Err(problems.into_iter().map(|problem| (id, problem)).collect());
        }
        if let Some(running) = outgoing.running.take() {
            let left = running.count - running.cursor.number.min(running.count);
            // Starts one period after the last frame, so that no gap is shorter than the new
            // period.
            let gap = Period::of_stream(&outgoing.stream).span(1);
            let due = match outgoing.last_due {
                Some(last) => last.saturating_add(gap),
                None => running.cursor.due,
            };
            outgoing.run(due.max(now), running.until, left);
        }
        Ok(())
    }

    /// Stops a stream.
    pub fn stop(&mut self, id: u16) -> StreamProblems {
        self.find(id)?.running = None;
        Ok(())
    }

    /// Stops all streams.
    pub fn stop_all(&mut self) {
        self.streams.iter_mut().for_each(|outgoing| outgoing.running = None);
    }

    /// Returns whether any frame was sent.
    pub fn has_sent(&self) -> bool {
        self.streams.iter().any(|outgoing| outgoing.account.sent > 0)
    }

    /// Returns when the next frame is due.
    pub fn next_due(&self) -> Option<Nanos> {
        self.streams.iter().filter_map(OutgoingStream::due).min()
    }

    /// Returns the counts of sent frames.
    pub fn accounts(&self) -> impl Iterator<Item = StreamAccount> {
        self.streams.iter().map(|outgoing| outgoing.account)
    }

    /// Sends frames due at `now`, at most one batch per stream. Returns the number of frames.
    ///
    /// Calls `over` for each stream that ends.
    pub fn send(
        &mut self,
        ports: &mut PortRow,
        now: Nanos,
        mut over: impl FnMut(u16),
    ) -> Result<usize, (usize, PortError)> {
        let mut sent = 0;
        let epoch = self.signer.epoch();
        for outgoing in &mut self.streams {
            if outgoing.due().is_none_or(|due| due > now) {
                continue;
            }
            let first = outgoing.write(now, epoch, &mut self.frames, &mut self.indices);
            if !self.frames.is_empty() {
                let port = outgoing.stream.from;
                let taken = ports[port].transmit_copies(&mut self.frames, now);
                let taken = taken.map_err(|error| (port, error))?.min(self.frames.len());
                outgoing.commit(first, taken, self.frames.len());
                sent += taken;
            }
            if outgoing.is_over() {
                outgoing.running = None;
                over(outgoing.stream.id);
            }
        }
        Ok(sent)
    }
}

impl OutgoingStream {
    fn run(&mut self, from: Nanos, until: Nanos, frames: u64) {
        let schedule = Schedule::of(&self.stream, from, Nanos::ZERO, until.since(from), false);
        let count = schedule.count.min(frames);
        let catch_up = schedule.period.span(u64::from(CATCH_UP_FRAMES));
        let cursor = schedule.seek(0);
        self.running =
            Some(Running { schedule, cursor, until, count, catch_up, is_refused: false });
    }

    fn due(&self) -> Option<Nanos> {
        let running = self.running.as_ref()?;
        // The end of a stream is reported immediately.
        Some(if running.is_over() { Nanos::ZERO } else { running.cursor.due })
    }

    fn is_over(&self) -> bool {
        self.running.as_ref().is_some_and(Running::is_over)
    }

    /// Writes the due frames and advances the cursor. Returns the cursor before.
    fn write(
        &mut self,
        now: Nanos,
        epoch: u16,
        frames: &mut Copies,
        indices: &mut Vec<u64>,
    ) -> Cursor {
        frames.clear();
        let running = self.running.as_mut().expect("the stream is running");
        running.skip_late(now, &mut self.next, &mut self.account);
        let first = running.cursor;
        let sent = SendTime::new(now);
        for number in self.next..self.next + BATCH_FRAMES as u64 {
            if running.is_over() || running.cursor.due > now {
                break;
            }
            indices.clear();
            let template = self.templates.of(number);
            template.draw(number, indices);
            let frame = frames.push(template.bytes().len(), None).expect("at most one batch");
            let sequence = Sequence { is_warmup: false, epoch, number };
            template.write(sequence, sent, indices, frame);
            self.last_due = Some(running.cursor.due);
            running.cursor = running.schedule.after(running.cursor);
        }
        first
    }

    /// Records that the port took `taken` frames from `first` on. The others are due again.
    fn commit(&mut self, first: Cursor, taken: usize, planned: usize) {
        let running = self.running.as_mut().expect("the stream is running");
        running.is_refused = taken < planned;
        if running.is_refused {
            running.cursor = running.schedule.seek(first.number + taken as u64);
        }
        self.next += taken as u64;
        self.account.sent += taken as u64;
    }
}

impl Running {
    fn is_over(&self) -> bool {
        self.cursor.number >= self.count
    }

    /// Skips frames that are too late at `now`.
    fn skip_late(&mut self, now: Nanos, next: &mut u64, account: &mut StreamAccount) {
        let too_late = Nanos(now.0.saturating_sub(self.catch_up.0));
        if self.is_over() || self.cursor.due > too_late || now.0 < self.catch_up.0 {
            return;
        }
        let to = self.schedule.due(too_late).min(self.count).max(self.cursor.number);
        let skipped = to - self.cursor.number;
        let counter = match self.is_refused {
            true => &mut account.unsent_refused,
            false => &mut account.unsent_late,
        };
        *counter += skipped;
        *next += skipped;
        self.cursor = self.schedule.seek(to);
    }
}
