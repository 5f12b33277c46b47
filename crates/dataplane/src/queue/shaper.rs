//! When the frames of one port may leave: the ideal schedule, worked off as time goes by.
//!
//! Frames start one after the other; the port is free again when the last one would have passed at
//! the port's rate, and a queue may send again when its last one would have passed at the queue's
//! maximum. Among the queues that may send at that moment, one that is behind its minimum goes
//! first (the one most behind, as the real-time criterion of the hierarchical fair service
//! curve, I. Stoica et al., SIGCOMM 1997); if none is, what the port has left is shared evenly by
//! bytes (start-time fair queuing, P. Goyal et al., SIGCOMM 1996).
//!
//! The schedule is computed with the times at which frames arrived and could have left, so a caller
//! who comes late finds the same order and the same average rate as one who is in time. Times
//! have 32 binary places below the nanosecond. Invariant: between two moments a queue releases at
//! most its maximum rate times the span and one frame, or two where the port made it wait, as long as
//! the caller comes when it is due.

use std::collections::VecDeque;

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{PortQueues, QUEUE_FRAMES, QueueNo, QueueRecord, QueueSpec, is_full};
use crate::counter::Traffic;
use crate::forwarder::Outputs;

/// Nanoseconds times 2³².
type Fine = u128;

/// Emptied frames that a port keeps to be filled again.
const SPARE_FRAMES_MAX: usize = 64;

/// One port's queues and their place in the schedule.
#[derive(Debug)]
pub(super) struct Shaper {
    port: PortNo,
    rate: Option<u64>,
    lines: Vec<Line>,
    /// Place in `lines` of the one for frames that name no queue.
    default: usize,
    made_at: Nanos,
    /// When the port has sent the last frame.
    free_at: Fine,
    /// Share that the last frame beyond the guarantees started with.
    share: u64,
    spares: Vec<Frame>,
}

/// One queue.
#[derive(Debug)]
struct Line {
    spec: QueueSpec,
    /// Whether it was configured, rather than made for frames that name no queue.
    numbered: bool,
    frames: VecDeque<(Nanos, Frame)>,
    traffic: Traffic,
    errors: u64,
    /// When the last frame has passed at the maximum rate.
    max_at: Fine,
    /// When the last frame sent under the guarantee has passed at the minimum rate.
    min_at: Fine,
    /// Bytes had beyond the guarantee, on the scale of [`Shaper::share`].
    share: u64,
}

fn fine(at: Nanos) -> Fine {
    Fine::from(at.0) << 32
}

/// The first whole nanosecond that is not before `at`.
fn coarse(at: Fine) -> Nanos {
    Nanos(u64::try_from((at + 0xffff_ffff) >> 32).unwrap_or(u64::MAX))
}

/// How long so many bytes take at a rate in bit/s.
fn span(bytes: usize, rate: Option<u64>) -> Fine {
    let bits = bytes as Fine * 8;
    rate.map_or(0, |rate| ((bits * 1_000_000_000) << 32).div_ceil(rate.into()))
}

impl Shaper {
    pub(super) fn new(queues: &PortQueues, now: Nanos) -> Shaper {
        let mut lines: Vec<Line> =
            queues.queues.iter().map(|spec| Line::new(*spec, true)).collect();
        let zero = lines.iter().position(|line| line.spec.queue == 0);
        let default = zero.unwrap_or(lines.len());
        if zero.is_none() {
            let spec = QueueSpec { frames_max: QUEUE_FRAMES, ..QueueSpec::new(0) };
            lines.push(Line::new(spec, false));
        }
        Shaper {
            port: queues.port,
            rate: queues.rate,
            lines,
            default,
            made_at: now,
            free_at: 0,
            share: 0,
            spares: Vec::new(),
        }
    }

    pub(super) fn port(&self) -> PortNo {
        self.port
    }

    pub(super) fn contains(&self, queue: QueueNo) -> bool {
        self.place(queue).is_some()
    }

    fn place(&self, queue: QueueNo) -> Option<usize> {
        self.lines.iter().position(|line| line.numbered && line.spec.queue == queue)
    }

    /// Frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().map(|line| line.frames.len()).sum()
    }

    /// Takes a frame into a queue. False, and no change, if the queue is full.
    pub(super) fn push(&mut self, queue: Option<QueueNo>, frame: &mut Frame, now: Nanos) -> bool {
        let place = queue.and_then(|queue| self.place(queue)).unwrap_or(self.default);
        let line = &mut self.lines[place];
        if line.frames.len() >= line.spec.frames_max {
            line.errors += 1;
            return false;
        }
        if line.frames.is_empty() {
            // Nothing is saved up while there is nothing to send.
            line.share = line.share.max(self.share);
            line.min_at = line.min_at.max(fine(now));
        }
        let spare = self.spares.pop().unwrap_or_default();
        line.frames.push_back((now, std::mem::replace(frame, spare)));
        true
    }

    /// Lets go, in the order of the schedule, every frame that starts by `now`.
    pub(super) fn release(&mut self, now: Nanos, out: &mut Outputs) {
        while let Some(start) = self.next_start().filter(|start| *start <= fine(now)) {
            let (place, guaranteed) = self.choose(start);
            let line = &mut self.lines[place];
            let ready = line.ready_at().unwrap_or(start);
            let (_, frame) = line.frames.front_mut().expect("a line that is chosen has a frame");
            let bytes = frame.len();
            if is_full(out.send(self.port, frame)) {
                return;
            }
            let (_, spare) = line.frames.pop_front().expect("it was there just now");
            line.traffic.add(bytes);
            // What the port made it wait is made good, up to one frame.
            line.max_at = start.max(ready + span(bytes, line.spec.max));
            if guaranteed {
                line.min_at += span(bytes, line.spec.min);
            } else {
                self.share = self.share.max(line.share);
                line.share += bytes as u64;
            }
            self.free_at = start + span(bytes, self.rate);
            if self.spares.len() < SPARE_FRAMES_MAX {
                self.spares.push(spare);
            }
        }
    }

    /// When the next frame starts, if one waits.
    fn next_start(&self) -> Option<Fine> {
        let ready = self.lines.iter().filter_map(Line::ready_at).min()?;
        Some(ready.max(self.free_at))
    }

    /// Which line sends at `start`, and whether its guarantee says so.
    fn choose(&self, start: Fine) -> (usize, bool) {
        let ready = || {
            let lines = self.lines.iter().enumerate();
            lines.filter(move |(_, line)| line.ready_at().is_some_and(|ready| ready <= start))
        };
        let behind = ready().filter(|(_, line)| line.spec.min.is_some() && line.min_at <= start);
        if let Some((place, _)) = behind.min_by_key(|(_, line)| line.min_at) {
            return (place, true);
        }
        let fewest = ready().min_by_key(|(_, line)| line.share);
        (fewest.map_or(self.default, |(place, _)| place), false)
    }

    /// When the next frame may go, if one waits.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.next_start().map(coarse)
    }

    pub(super) fn records(&self, now: Nanos) -> impl Iterator<Item = QueueRecord> + '_ {
        let numbered = self.lines.iter().filter(|line| line.numbered);
        numbered.map(move |line| QueueRecord {
            port: self.port,
            spec: line.spec,
            port_rate: self.rate,
            frames: line.traffic.frames,
            bytes: line.traffic.bytes,
            errors: line.errors,
            waiting: line.frames.len(),
            age: now.since(self.made_at),
        })
    }
}

impl Line {
    fn new(spec: QueueSpec, numbered: bool) -> Line {
        Line {
            spec,
            numbered,
            frames: VecDeque::new(),
            traffic: Traffic::default(),
            errors: 0,
            max_at: 0,
            min_at: 0,
            share: 0,
        }
    }

    /// When its first frame may start as far as the line itself goes.
    fn ready_at(&self) -> Option<Fine> {
        self.frames.front().map(|(arrived, _)| fine(*arrived).max(self.max_at))
    }
}
