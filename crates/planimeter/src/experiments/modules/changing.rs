//! Rules that are changed while frames run, and what became of each frame.
//!
//! Source: metric C14 of the method (`docs/oflops.md`). The rules that are there before are put in, frames
//! run for a while, the change is said with a barrier behind it, and when the module has seen enough,
//! or after its patience, frames stop, those under way are waited for, and the port's own counter tells
//! how many had left. Invariant: a frame counts as lost only if that counter says that it was sent.

use instrument::module::{Desk, Event, Needs, Said, Span, TimerId, Watch, What};
use instrument::stream::Stream;
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;

use super::passage::UNANSWERED;
use super::rules::{FAR, NEAR, sent};

/// How long frames run before the change at least, and how long those under way are waited for.
pub const LEAD: Nanos = Nanos::from_millis(50);

/// How often it is asked whether enough was seen.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// The name of the limit that [`Change::patience`] sets for the change.
const PATIENCE_LIMIT: &str = "patience for the change and for its barrier";

/// Frames that are kept in mind.
pub const FRAMES_MAX: usize = 1 << 22;

/// A frame that came back on the port where frames are sent on.
pub const ON: u8 = 1;

/// One that came back where it was sent from.
pub const BACK: u8 = 2;

/// One that came again on a port where it had been.
pub const AGAIN: u8 = 4;

/// What is changed, and how it is watched.
#[derive(Debug, Clone)]
pub struct Change {
    /// What is said before.
    pub before: Vec<Message>,
    /// The change.
    pub change: Vec<Message>,
    /// The frames.
    pub stream: Stream,
    /// The versions that are offered.
    pub versions: Vec<Version>,
    /// How long is waited after the change was said.
    pub patience: Nanos,
}

/// A change that is being made.
pub struct Changing {
    change: Change,
    phase: Phase,
    barrier: Option<Xid>,
    said: Option<Said>,
    timer: Option<TimerId>,
    /// The first byte of the change left.
    pub sent_at: Option<Nanos>,
    /// The barrier behind it was answered.
    pub acknowledged_at: Option<Nanos>,
    /// Enough was seen, and frames were stopped.
    pub concluded_at: Option<Nanos>,
    /// Errors that the switch sent.
    pub errors: u64,
    /// Whether that took too long, so that it was given up.
    is_late: bool,
    counted: [Option<u64>; 2],
    frames: Vec<Frame>,
    beyond: u64,
}

/// What was seen of the frame of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame {
    /// When it left, if it was seen.
    pub sent_at: Nanos,
    /// [`ON`], [`BACK`], [`AGAIN`]; nothing if it was not seen.
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

impl Changing {
    /// The change is still to be made.
    pub fn new(change: Change) -> Changing {
        Changing {
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

    /// What a module needs that makes it.
    pub fn needs(&self) -> Needs {
        let rounds = Nanos(self.round().0.saturating_mul(4));
        let spans = [self.change.patience, self.change.patience, rounds, Nanos::from_secs(10)];
        let limit = spans.into_iter().fold(Nanos(0), Nanos::saturating_add);
        Needs::new(limit).in_versions(&self.change.versions)
    }

    /// The time in which every rule is visited once.
    pub fn round(&self) -> Nanos {
        let stream = &self.change.stream;
        Nanos::from_secs_f64(stream.flow_count() as f64 / stream.rate_pps())
    }

    /// Something happened; whether the module is to say if it has seen enough.
    pub fn react(&mut self, event: &Event<'_>, desk: &mut Desk) -> bool {
        match event.what {
            What::Start(_) => self.prepare(desk),
            What::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.note(probe.number, probe.sent_at, arrival.port);
                }
            }
            What::Message { xid, message: Message::BarrierReply, .. } => {
                self.answered(xid, event.at, desk);
            }
            What::Message { message: Message::Error(_), .. } => self.errors += 1,
            What::Sent { said, first, .. } if Some(said) == self.said => self.sent_at = Some(first),
            What::Counters(ports) => self.counted(sent(&ports[NEAR]), desk),
            What::Timer(timer) if Some(timer) == self.timer => return self.timed(desk),
            _ => {}
        }
        false
    }

    fn prepare(&mut self, desk: &mut Desk) {
        let mut messages = std::mem::take(&mut self.change.before);
        messages.push(Message::BarrierRequest);
        self.barrier = desk.send_all(0, messages).xids().last();
        self.timer = Some(desk.timer_in(self.change.patience));
        let id = self.change.stream.id;
        desk.prepare(self.change.stream.clone());
        for port in [NEAR, FAR] {
            desk.watch(port, Watch::Streams(vec![id]));
        }
    }

    fn answered(&mut self, xid: Xid, at: Nanos, desk: &mut Desk) {
        if self.barrier != Some(xid) {
            return;
        }
        self.barrier = None;
        if self.phase == Phase::Preparing {
            self.phase = Phase::Counting;
            self.timer.take().map(|timer| desk.cancel(timer));
            desk.counters();
        } else {
            self.acknowledged_at = Some(at);
        }
    }

    /// The port said how many frames have left so far.
    fn counted(&mut self, frames: u64, desk: &mut Desk) {
        if self.phase == Phase::Counting {
            self.counted[0] = Some(frames);
            self.phase = Phase::Quiet;
            desk.begin(self.change.stream.id, Span::OPEN);
            self.timer = Some(desk.timer_in(self.round().saturating_add(LEAD)));
        } else {
            self.counted[1] = Some(frames);
            match self.is_late {
                true => desk.end_by_limit(PATIENCE_LIMIT),
                false => desk.end(),
            }
        }
    }

    fn timed(&mut self, desk: &mut Desk) -> bool {
        match self.phase {
            Phase::Preparing => desk.end_by_limit(UNANSWERED),
            Phase::Counting => {}
            Phase::Quiet => self.make(desk),
            Phase::Updating => {
                let since = self.sent_at.map_or(Nanos(0), |sent| desk.now().since(sent));
                if since >= self.change.patience {
                    self.is_late = true;
                    self.conclude(desk);
                } else {
                    self.timer = Some(desk.timer_in(LOOK_EVERY));
                    return true;
                }
            }
            Phase::Draining => desk.counters(),
        }
        false
    }

    /// Makes the change.
    fn make(&mut self, desk: &mut Desk) {
        self.phase = Phase::Updating;
        let mut messages = std::mem::take(&mut self.change.change);
        messages.push(Message::BarrierRequest);
        let said = desk.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(desk.timer_in(LOOK_EVERY));
    }

    /// Enough was seen: no more frames are sent.
    pub fn conclude(&mut self, desk: &mut Desk) {
        if self.phase == Phase::Updating {
            self.phase = Phase::Draining;
            self.concluded_at = Some(desk.now());
            desk.stop(self.change.stream.id);
            self.timer = Some(desk.timer_in(LEAD));
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

    /// What became of each frame, by its number.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Frames of which nothing was kept, because there were more than [`FRAMES_MAX`].
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Frames that have a number and were never sent, as far as the port's counter tells; none where it
    /// was not asked.
    pub fn unsent(&self) -> Option<u64> {
        let [before, after] = self.counted;
        let sent = after?.saturating_sub(before?);
        Some((self.frames.len() as u64).saturating_sub(sent))
    }
}
