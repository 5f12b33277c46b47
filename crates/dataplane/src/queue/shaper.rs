//! Scheduler of one port: computes an ideal schedule and releases frames by it.
//!
//! Frames start one after the other. The port is free again when the last frame would have passed
//! at the port's rate. A queue may send again when its last frame would have passed at its maximum
//! rate. Among the queues that may send, the one furthest behind its minimum rate goes first. This
//! is the real-time criterion of the hierarchical fair service curve (I. Stoica et al., SIGCOMM
//! 1997). If none is behind, the remaining rate is shared evenly by bytes (start-time fair queuing,
//! P. Goyal et al., SIGCOMM 1996).
//!
//! The schedule uses the times at which frames arrived and could have left. So a late caller gets
//! the same order and the same average rate as one that is on time. Times have 32 fraction bits of
//! a nanosecond. Invariant: in any time span, a queue releases at most its maximum rate times the
//! span, and one frame (two frames if the port delayed it). This requires that the caller is on
//! time.

use std::collections::VecDeque;

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::{PortQueues, QUEUE_FRAMES, QueueNo, QueueRecord, QueueSpec, is_full};
use crate::counter::Traffic;
use crate::forwarder::Outputs;

/// Nanoseconds times 2³².
type Fine = u128;

/// Maximum number of empty frames that a port keeps for reuse.
const SPARE_FRAMES_MAX: usize = 64;

/// Queues and schedule of one port.
#[derive(Debug)]
pub(super) struct Shaper {
    port: PortNo,
    rate: Option<u64>,
    lines: Vec<QueueState>,
    /// Index in `lines` of the default queue.
    default: usize,
    made_at: Nanos,
    /// Time at which the port has sent the last frame.
    free_at: Fine,
    /// Start share of the last frame beyond the guarantees.
    share: u64,
    spares: Vec<Frame>,
}

/// One queue.
#[derive(Debug)]
struct QueueState {
    spec: QueueSpec,
    /// Whether the queue is configured, and not an implicit default queue.
    numbered: bool,
    frames: VecDeque<(Nanos, Frame)>,
    traffic: Traffic,
    errors: u64,
    /// Time at which the last frame has passed at the maximum rate.
    max_at: Fine,
    /// Time at which the last guaranteed frame has passed at the minimum rate.
    min_at: Fine,
    /// Bytes beyond the guarantee, on the scale of [`Shaper::share`].
    share: u64,
}

fn fine(at: Nanos) -> Fine {
    Fine::from(at.0) << 32
}

/// Rounds up to a whole nanosecond.
fn coarse(at: Fine) -> Nanos {
    Nanos(u64::try_from((at + 0xffff_ffff) >> 32).unwrap_or(u64::MAX))
}

/// Returns the transmission time of `bytes` bytes at a rate in bit/s.
fn span(bytes: usize, rate: Option<u64>) -> Fine {
    let bits = bytes as Fine * 8;
    rate.map_or(0, |rate| ((bits * 1_000_000_000) << 32).div_ceil(rate.into()))
}

impl Shaper {
    pub(super) fn new(queues: &PortQueues, now: Nanos) -> Shaper {
        let mut lines: Vec<QueueState> =
            queues.queues.iter().map(|spec| QueueState::new(*spec, true)).collect();
        let zero = lines.iter().position(|line| line.spec.queue == 0);
        let default = zero.unwrap_or(lines.len());
        if zero.is_none() {
            let spec = QueueSpec { frames_max: QUEUE_FRAMES, ..QueueSpec::new(0) };
            lines.push(QueueState::new(spec, false));
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

    /// Returns the number of waiting frames.
    pub(super) fn waiting(&self) -> usize {
        self.lines.iter().map(|line| line.frames.len()).sum()
    }

    /// Queues a frame. Returns false without a change if the queue is full.
    pub(super) fn push(&mut self, queue: Option<QueueNo>, frame: &mut Frame, now: Nanos) -> bool {
        let place = queue.and_then(|queue| self.place(queue)).unwrap_or(self.default);
        let line = &mut self.lines[place];
        if line.frames.len() >= line.spec.frames_max {
            line.errors += 1;
            return false;
        }
        if line.frames.is_empty() {
            // An idle queue accumulates no credit.
            line.share = line.share.max(self.share);
            line.min_at = line.min_at.max(fine(now));
        }
        let spare = self.spares.pop().unwrap_or_default();
        line.frames.push_back((now, std::mem::replace(frame, spare)));
        true
    }

    /// Releases, in schedule order, every frame that starts by `now`.
    pub(super) fn release(&mut self, now: Nanos, out: &mut Outputs) {
        while let Some(start) = self.next_start().filter(|start| *start <= fine(now)) {
            let (place, guaranteed) = self.choose(start);
            let line = &mut self.lines[place];
            let ready = line.ready_at().unwrap_or(start);
            let (_, frame) = line.frames.front_mut().expect("the selected queue has a frame");
            let bytes = frame.len();
            if is_full(out.send(self.port, frame)) {
                return;
            }
            let (_, spare) = line.frames.pop_front().expect("the frame was at the front");
            line.traffic.add(bytes);
            // A delay that the port caused is compensated, up to one frame.
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

    /// Returns when the next frame starts, if one waits.
    fn next_start(&self) -> Option<Fine> {
        let ready = self.lines.iter().filter_map(QueueState::ready_at).min()?;
        Some(ready.max(self.free_at))
    }

    /// Returns the queue that sends at `start`, and whether it does so under its guarantee.
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

    /// Returns when the next frame is due, if one waits.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.next_start().map(coarse)
    }

    pub(super) fn records(&self, now: Nanos) -> impl Iterator<Item = QueueRecord> + '_ {
        let numbered = self.lines.iter().filter(|line| line.numbered);
        numbered.map(move |line| self.record(line, now))
    }

    /// Returns the queue with the lowest number from `from` on.
    pub(super) fn next(&self, from: QueueNo, now: Nanos) -> Option<QueueRecord> {
        let wanted = |line: &&QueueState| line.numbered && line.spec.queue >= from;
        let next = self.lines.iter().filter(wanted).min_by_key(|line| line.spec.queue)?;
        Some(self.record(next, now))
    }

    fn record(&self, line: &QueueState, now: Nanos) -> QueueRecord {
        QueueRecord {
            port: self.port,
            spec: line.spec,
            port_rate: self.rate,
            frames: line.traffic.frames,
            bytes: line.traffic.bytes,
            errors: line.errors,
            waiting: line.frames.len(),
            age: now.since(self.made_at),
        }
    }
}

impl QueueState {
    fn new(spec: QueueSpec, numbered: bool) -> QueueState {
        QueueState {
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

    /// Returns when the queue's own rate permits its first frame to start.
    fn ready_at(&self) -> Option<Fine> {
        self.frames.front().map(|(arrived, _)| fine(*arrived).max(self.max_at))
    }
}
