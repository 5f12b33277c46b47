//! Entries that change while frames run, and the fate of each frame.
//!
//! Source: metric C14 of the method (`docs/oflops.md`).
//!
//! 1. The module installs the initial entries, and frames run for a while.
//! 2. It sends the change, followed by a barrier request.
//! 3. When the module has enough observations, or after its time limit, the frames stop.
//! 4. The module waits for frames in flight. The port counter gives the number of frames sent.
//!
//! Invariant: a frame counts as lost only if that counter shows that it was sent.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Event, EventKind, FrameFilter, MessageRange, ModuleContext, ModuleRequirements, SendSpan,
    TimerId,
};
use tester::stream::Stream;

use super::forwarding_check::UNANSWERED;
use super::rules::{FAR, NEAR, sent};

/// Minimum time for which frames run before the change, and time to wait for frames in flight.
pub const LEAD: Nanos = Nanos::from_millis(50);

/// Interval of the checks for enough observations.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Name of the limit that [`Change::patience`] sets for the change.
const PATIENCE_LIMIT: &str = "timeout for the change and its barrier reply";

/// Maximum number of frames with a record.
pub const FRAMES_MAX: usize = 1 << 22;

/// Frame returned on the port to which entries forward.
pub const ON: u8 = 1;

/// Frame returned on the port from which it was sent.
pub const BACK: u8 = 2;

/// Duplicate of a frame on the same port.
pub const AGAIN: u8 = 4;

/// A change and its observation.
#[derive(Debug, Clone)]
pub struct Change {
    /// Messages sent before the change.
    pub before: Vec<Message>,
    /// Messages of the change.
    pub change: Vec<Message>,
    /// Stream of frames.
    pub stream: Stream,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait after the change was sent.
    pub patience: Nanos,
}

/// A change in progress.
pub struct RuleUpdate {
    change: Change,
    phase: Phase,
    barrier: Option<Xid>,
    said: Option<MessageRange>,
    timer: Option<TimerId>,
    /// Time at which the first byte of the change was sent.
    pub sent_at: Option<Nanos>,
    /// Time of the barrier reply after the change.
    pub acknowledged_at: Option<Nanos>,
    /// Time at which the frames stopped after enough observations.
    pub concluded_at: Option<Nanos>,
    /// Error messages from the switch.
    pub errors: u64,
    /// Whether the change exceeded the time limit and was given up.
    is_late: bool,
    counted: [Option<u64>; 2],
    frames: Vec<Frame>,
    beyond: u64,
}

/// Observations of the frame with one sequence number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// Departure time, if known.
    pub sent_at: Nanos,
    /// Flags [`ON`], [`BACK`], [`AGAIN`]; 0 if the frame did not return.
    pub seen: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Preparing,
    Counting,
    Quiet,
    Updating,
    Draining,
}

impl RuleUpdate {
    /// Creates the change, which has not begun.
    pub fn new(change: Change) -> RuleUpdate {
        RuleUpdate {
            change,
            phase: Phase::Preparing,
            barrier: None,
            said: None,
            timer: None,
            sent_at: None,
            acknowledged_at: None,
            concluded_at: None,
            errors: 0,
            is_late: false,
            counted: [None; 2],
            frames: Vec::new(),
            beyond: 0,
        }
    }

    /// Returns the needs of the module that makes the change.
    pub fn needs(&self) -> ModuleRequirements {
        let rounds = Nanos(self.round().0.saturating_mul(4));
        let spans = [self.change.patience, self.change.patience, rounds, Nanos::from_secs(10)];
        let limit = spans.into_iter().fold(Nanos(0), Nanos::saturating_add);
        ModuleRequirements::new(limit).in_versions(&self.change.versions)
    }

    /// Returns the time in which the probes visit every entry once.
    pub fn round(&self) -> Nanos {
        let stream = &self.change.stream;
        Nanos::from_secs_f64(stream.flow_count() as f64 / stream.rate_pps())
    }

    /// Processes an event; returns whether the module should check if it has enough observations.
    pub fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) -> bool {
        match event.what {
            EventKind::Start(_) => self.prepare(context),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.note(probe.number, probe.sent_at, arrival.port);
                }
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. } => {
                self.answered(xid, event.at, context);
            }
            EventKind::Message { message: Message::Error(_), .. } => self.errors += 1,
            EventKind::Sent { said, first, .. } if Some(said) == self.said => {
                self.sent_at = Some(first)
            }
            EventKind::Counters(ports) => self.counted(sent(&ports[NEAR]), context),
            EventKind::Timer(timer) if Some(timer) == self.timer => return self.timed(context),
            _ => {}
        }
        false
    }

    fn prepare(&mut self, context: &mut ModuleContext) {
        let mut messages = std::mem::take(&mut self.change.before);
        messages.push(Message::BarrierRequest);
        self.barrier = context.send_all(0, messages).xids().last();
        self.timer = Some(context.timer_in(self.change.patience));
        let id = self.change.stream.id;
        context.prepare(self.change.stream.clone());
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(vec![id]));
        }
    }

    fn answered(&mut self, xid: Xid, at: Nanos, context: &mut ModuleContext) {
        if self.barrier != Some(xid) {
            return;
        }
        self.barrier = None;
        if self.phase == Phase::Preparing {
            self.phase = Phase::Counting;
            self.timer.take().map(|timer| context.cancel(timer));
            context.counters();
        } else {
            self.acknowledged_at = Some(at);
        }
    }

    /// Processes the port counter of sent frames.
    fn counted(&mut self, frames: u64, context: &mut ModuleContext) {
        if self.phase == Phase::Counting {
            self.counted[0] = Some(frames);
            self.phase = Phase::Quiet;
            context.begin(self.change.stream.id, SendSpan::OPEN);
            self.timer = Some(context.timer_in(self.round().saturating_add(LEAD)));
        } else {
            self.counted[1] = Some(frames);
            match self.is_late {
                true => context.end_by_limit(PATIENCE_LIMIT),
                false => context.end(),
            }
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) -> bool {
        match self.phase {
            Phase::Preparing => context.end_by_limit(UNANSWERED),
            Phase::Counting => {}
            Phase::Quiet => self.make(context),
            Phase::Updating => {
                let since = self.sent_at.map_or(Nanos(0), |sent| context.now().since(sent));
                if since >= self.change.patience {
                    self.is_late = true;
                    self.conclude(context);
                } else {
                    self.timer = Some(context.timer_in(LOOK_EVERY));
                    return true;
                }
            }
            Phase::Draining => context.counters(),
        }
        false
    }

    /// Sends the change.
    fn make(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Updating;
        let mut messages = std::mem::take(&mut self.change.change);
        messages.push(Message::BarrierRequest);
        let said = context.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(context.timer_in(LOOK_EVERY));
    }

    /// Stops the frames after enough observations.
    pub fn conclude(&mut self, context: &mut ModuleContext) {
        if self.phase == Phase::Updating {
            self.phase = Phase::Draining;
            self.concluded_at = Some(context.now());
            context.stop(self.change.stream.id);
            self.timer = Some(context.timer_in(LEAD));
        }
    }

    fn note(&mut self, number: u64, sent_at: Nanos, port: usize) {
        let place = number as usize;
        if place >= FRAMES_MAX {
            self.beyond += 1;
            return;
        }
        if self.frames.len() <= place {
            self.frames.resize(place + 1, Frame::default());
        }
        let way = if port == FAR { ON } else { BACK };
        let frame = &mut self.frames[place];
        frame.sent_at = sent_at;
        frame.seen |= if frame.seen & way == 0 { way } else { AGAIN };
    }

    /// Returns the observations of each frame by sequence number.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns the number of frames without a record because there were more than [`FRAMES_MAX`].
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the number of sequence numbers that were never sent, according to the port counter.
    ///
    /// `None` if the counter was not read.
    pub fn unsent(&self) -> Option<u64> {
        let [before, after] = self.counted;
        let sent = after?.saturating_sub(before?);
        Some((self.frames.len() as u64).saturating_sub(sent))
    }
}
