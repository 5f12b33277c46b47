//! A test controller: one connection to a switch, on which flows are installed and counters read.
//!
//! It asks one thing at a time and waits for the answer, within a time-out; flow-mods it sends
//! ahead by batches (see `flows`). What the switch sends unasked is counted or kept within
//! limits. Whatever a peer does, speak another version, send garbage or half a message, fall
//! silent, close, ends in one error that says so; after an error the connection is used up.
//! How to wait is somebody else's business: a `Meanwhile` polls a descriptor in real time, or
//! lets a simulated switch take its turn.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openflow::header::{MESSAGE_BYTES_MAX, Xid};
use openflow::model::flow::FlowRemoved;
use openflow::model::message::{ErrorMessage, Message};
use openflow::model::multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartReplyBody, MultipartRequestBody,
    SwitchDescription,
};
use openflow::model::port::reserved;
use openflow::model::port::stats::PortStats;
use openflow::model::switch::Features;
use openflow::model::table::TableStats;
use openflow::session::{self, Event, Session};
use openflow::version::{End, MessageKind, Version};
use packet::time::Nanos;
use ports::channel::{Channel, Connecting, Listener, Url};

/// Flow-mods ahead of barriers.
pub mod flows;
/// What is going to be said, made ahead.
pub mod script;
/// A script said as fast as a switch takes it.
pub mod play;
/// Waiting on the machine's clock.
mod real_time;

mod error;

pub use error::ControlError;
pub use real_time::RealTime;

/// Errors and removed flows that are kept until somebody takes them; more are only counted.
pub const UNASKED_MAX: usize = 1024;

/// Rows (flows, ports, tables) that one statistics reply may have.
pub const ROWS_MAX: usize = 1 << 20;

/// Longest wait before the controller checks whether it has to stop.
const STOP_CHECK_INTERVAL: Nanos = Nanos::from_millis(100);

/// Reads of the channel before anything else has its turn.
const READS_MAX: usize = 16;

/// How a controller behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Versions, keep-alive and limits of the session.
    pub session: session::Settings,
    /// How long a connection may take to be made.
    pub connect_timeout: Nanos,
    /// How long the switch may take for a reply, or for any progress with flow-mods.
    pub reply_timeout: Nanos,
    /// Flow-mods between two barriers.
    pub batch_flows: usize,
    /// Barriers that may be unanswered while more flow-mods are sent.
    pub barriers_ahead: usize,
    /// Ends every wait for the switch with [`ControlError::Interrupted`] when it becomes true.
    pub stop: Arc<AtomicBool>,
}

/// How to wait, and what time it is.
pub trait Meanwhile {
    /// The time.
    fn now(&mut self) -> Nanos;

    /// Returns when the channel with this descriptor (if it has one) may have something to read,
    /// or room to write if that is wanted, and at `deadline` at the latest; or earlier.
    fn rest(&mut self, descriptor: Option<RawFd>, wants_to_write: bool, deadline: Nanos);
}

/// A connection to a switch.
pub struct Controller {
    channel: Box<dyn Channel>,
    session: Session,
    settings: Settings,
    features: Option<Features>,
    /// Received bytes that the session has not taken yet.
    buffer: Vec<u8>,
    unread: std::ops::Range<usize>,
    /// The request that is waited for, and what has come of its answer.
    asked: Option<Xid>,
    parts: Vec<Message>,
    rows: usize,
    is_answered: bool,
    /// Barriers that have been answered since flows were last looked after.
    barriers: Vec<Xid>,
    unasked: Unasked,
}

/// What a switch sent without being asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unasked {
    /// Frames handed to the controller.
    pub packet_ins: u64,
    /// Errors, by the transaction they belong to; at most [`UNASKED_MAX`].
    pub errors: Vec<(Xid, ErrorMessage)>,
    /// Flows that went, at most [`UNASKED_MAX`].
    pub removed: Vec<FlowRemoved>,
    /// Errors and removed flows beyond the limits.
    pub lost: u64,
    /// Port changes and other messages.
    pub others: u64,
}

impl Settings {
    /// OpenFlow 1.0, five seconds to connect and for each reply, 256 flow-mods between barriers
    /// and two barriers ahead.
    pub fn new() -> Self {
        let mut session = session::Settings::new(End::Controller);
        session.versions = vec![Version::V1_0];
        session.hello_timeout = Nanos::from_secs(5);
        Settings {
            session,
            connect_timeout: Nanos::from_secs(5),
            reply_timeout: Nanos::from_secs(5),
            batch_flows: 256,
            barriers_ahead: 2,
            stop: Arc::default(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::new()
    }
}

impl Controller {
    /// Connects to a switch that listens, in real time, and asks what it is.
    pub fn connect(url: &Url, settings: Settings) -> Result<Self, ControlError> {
        let channel = Connecting::wait(url, settings.connect_timeout)?;
        Controller::start(channel, settings, &mut RealTime::default())
    }

    /// Waits, in real time, for a switch to connect, and asks what it is.
    pub fn accept(listener: &mut Listener, settings: Settings) -> Result<Self, ControlError> {
        let mut meanwhile = RealTime::default();
        let deadline = meanwhile.now().saturating_add(settings.connect_timeout);
        loop {
            if let Some(channel) = listener.accept()? {
                return Controller::start(channel, settings, &mut meanwhile);
            }
            if meanwhile.now() >= deadline {
                return Err(ControlError::Nobody(listener.address().clone()));
            }
            meanwhile.rest(Some(listener.descriptor()), false, deadline);
        }
    }

    /// Agrees with the switch at the other end on a version, and asks what it is.
    pub fn start(
        channel: Box<dyn Channel>,
        settings: Settings,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Self, ControlError> {
        let session = Session::new(settings.session.clone(), meanwhile.now());
        let mut controller = Controller::bare(channel, session, settings);
        // The session itself gives up when no hello comes in time.
        while controller.session.version().is_none() {
            controller.turn(meanwhile.now())?;
            if controller.session.version().is_none() {
                controller.rest(meanwhile, Nanos::MAX);
            }
        }
        match controller.ask(&Message::FeaturesRequest, meanwhile)?.pop() {
            Some(Message::FeaturesReply(features)) => controller.features = Some(features),
            _ => return Err(ControlError::WrongAnswer(MessageKind::FeaturesRequest)),
        }
        Ok(controller)
    }

    /// One that has asked nothing yet.
    fn bare(channel: Box<dyn Channel>, session: Session, settings: Settings) -> Self {
        Controller {
            channel,
            session,
            settings,
            features: None,
            buffer: vec![0; MESSAGE_BYTES_MAX],
            unread: 0..0,
            asked: None,
            parts: Vec::new(),
            rows: 0,
            is_answered: false,
            barriers: Vec::new(),
            unasked: Unasked::default(),
        }
    }

    /// What the switch says it is.
    pub fn features(&self) -> &Features {
        self.features.as_ref().expect("a started controller has asked")
    }

    /// The version that was agreed on.
    pub fn version(&self) -> Version {
        self.session.version().expect("a started controller has agreed on one")
    }

    /// Says something that nothing answers, and has what waits leave.
    pub fn tell(&mut self, message: &Message, now: Nanos) -> Result<Xid, ControlError> {
        let xid = self.session.send(message, now)?;
        self.flush()?;
        Ok(xid)
    }

    /// Name of the other end.
    pub fn peer(&self) -> &str {
        self.channel.peer()
    }

    /// What has come unasked since this was called last.
    pub fn take_unasked(&mut self) -> Unasked {
        std::mem::take(&mut self.unasked)
    }

    /// Receives, answers and sends what is waiting, without waiting: for whoever holds a
    /// connection through a long trial, so that the switch does not take it for dead.
    pub fn turn(&mut self, now: Nanos) -> Result<(), ControlError> {
        if self.settings.stop.load(Ordering::Relaxed) {
            return Err(ControlError::Interrupted);
        }
        self.flush()?;
        for _ in 0..READS_MAX {
            if self.unread.is_empty() {
                let count = self.channel.receive(&mut self.buffer)?;
                self.unread = 0..count;
            }
            let taken = self.session.receive(&self.buffer[self.unread.clone()], now);
            self.unread.start += taken;
            self.digest()?;
            if taken == 0 {
                break;
            }
        }
        self.session.tick(now);
        self.digest()?;
        self.flush()
    }

    /// Waits until everything sent before is done, and returns how long that took.
    pub fn barrier(&mut self, meanwhile: &mut dyn Meanwhile) -> Result<Nanos, ControlError> {
        let asked_at = meanwhile.now();
        match self.ask(&Message::BarrierRequest, meanwhile)?.pop() {
            Some(Message::BarrierReply) => Ok(meanwhile.now().since(asked_at)),
            _ => Err(ControlError::WrongAnswer(MessageKind::BarrierRequest)),
        }
    }

    /// Who made the switch, and its names.
    pub fn description(
        &mut self,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<SwitchDescription, ControlError> {
        let rows = self.statistics(MultipartRequestBody::Desc, meanwhile, |body| match body {
            MultipartReplyBody::Desc(description) => Some(vec![description]),
            _ => None,
        });
        rows?.pop().ok_or(ControlError::WrongAnswer(MessageKind::MultipartRequest))
    }

    /// The entries that `which` names, with their counters.
    pub fn flow_stats(
        &mut self,
        which: FlowStatsRequest,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Vec<FlowStats>, ControlError> {
        self.statistics(MultipartRequestBody::Flow(which), meanwhile, |body| match body {
            MultipartReplyBody::Flow(part) => Some(part),
            _ => None,
        })
    }

    /// The sum over the entries that `which` names.
    pub fn aggregate_stats(
        &mut self,
        which: FlowStatsRequest,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<AggregateStats, ControlError> {
        let rows =
            self.statistics(MultipartRequestBody::Aggregate(which), meanwhile, |body| match body {
                MultipartReplyBody::Aggregate(sum) => Some(vec![sum]),
                _ => None,
            });
        rows?.pop().ok_or(ControlError::WrongAnswer(MessageKind::MultipartRequest))
    }

    /// Each table.
    pub fn table_stats(
        &mut self,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Vec<TableStats>, ControlError> {
        self.statistics(MultipartRequestBody::Table, meanwhile, |body| match body {
            MultipartReplyBody::Table(part) => Some(part),
            _ => None,
        })
    }

    /// Each port's counters.
    pub fn port_stats(
        &mut self,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Vec<PortStats>, ControlError> {
        self.statistics(MultipartRequestBody::Port(reserved::NONE), meanwhile, |body| match body {
            MultipartReplyBody::Port(part) => Some(part),
            _ => None,
        })
    }

    /// Asks for statistics and joins the rows of all parts; `rows` says nothing to a part of the
    /// wrong type.
    fn statistics<T>(
        &mut self,
        request: MultipartRequestBody,
        meanwhile: &mut dyn Meanwhile,
        rows: fn(MultipartReplyBody) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, ControlError> {
        let wrong = || ControlError::WrongAnswer(MessageKind::MultipartRequest);
        let mut all = Vec::new();
        for part in self.ask(&Message::ask(request), meanwhile)? {
            let Message::MultipartReply(part) = part else { return Err(wrong()) };
            all.extend(rows(part.body).ok_or_else(wrong)?);
        }
        Ok(all)
    }

    /// Sends a request and waits for its whole answer.
    pub fn ask(
        &mut self,
        request: &Message,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Vec<Message>, ControlError> {
        let deadline = meanwhile.now().saturating_add(self.settings.reply_timeout);
        self.parts.clear();
        (self.rows, self.is_answered) = (0, false);
        self.asked = Some(self.session.send(request, meanwhile.now())?);
        loop {
            let now = meanwhile.now();
            self.turn(now)?;
            if self.is_answered {
                break;
            }
            if now >= deadline {
                return Err(self.silent(request.kind()));
            }
            self.rest(meanwhile, deadline);
        }
        self.asked = None;
        if let Some(Message::Error(_)) = self.parts.last()
            && let Some(Message::Error(error)) = self.parts.pop()
        {
            return Err(ControlError::Refused(request.kind(), error));
        }
        Ok(std::mem::take(&mut self.parts))
    }

    fn silent(&self, kind: MessageKind) -> ControlError {
        ControlError::Silent(self.channel.peer().to_owned(), kind)
    }

    fn rest(&mut self, meanwhile: &mut dyn Meanwhile, deadline: Nanos) {
        let due = self.session.next_timeout().unwrap_or(Nanos::MAX);
        let wants_to_write = !self.session.transmit().is_empty();
        let check = meanwhile.now().saturating_add(STOP_CHECK_INTERVAL);
        meanwhile.rest(self.channel.descriptor(), wants_to_write, deadline.min(due).min(check));
    }

    fn flush(&mut self) -> Result<(), ControlError> {
        while !self.session.transmit().is_empty() {
            let count = self.channel.transmit(self.session.transmit())?;
            if count == 0 {
                break;
            }
            self.session.transmitted(count);
        }
        Ok(())
    }

    fn digest(&mut self) -> Result<(), ControlError> {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Up { .. } => {}
                Event::Message { xid, message, answers, .. } => {
                    let is_last = answers.is_none_or(|answered| answered.last);
                    self.sort(xid, message, is_last)?;
                }
                Event::Refused(error) => {
                    let peer = self.channel.peer().to_owned();
                    return Err(ControlError::Garbage(peer, Box::new(error)));
                }
                Event::Down { why } => {
                    // What the session still has to say may help the other end.
                    let _ = self.flush();
                    return Err(ControlError::Down(self.channel.peer().to_owned(), why));
                }
            }
        }
        Ok(())
    }

    fn sort(&mut self, xid: Xid, message: Message, is_last: bool) -> Result<(), ControlError> {
        if self.asked == Some(xid) && !self.is_answered {
            self.rows += rows_of(&message);
            if self.rows > ROWS_MAX {
                return Err(ControlError::LimitReached("ROWS_MAX"));
            }
            self.is_answered = is_last;
            self.parts.push(message);
            return Ok(());
        }
        let unasked = &mut self.unasked;
        match message {
            Message::BarrierReply => {
                if self.barriers.len() >= UNASKED_MAX {
                    return Err(ControlError::LimitReached("UNASKED_MAX"));
                }
                self.barriers.push(xid);
            }
            Message::PacketIn(_) => unasked.packet_ins += 1,
            Message::Error(error) if unasked.errors.len() < UNASKED_MAX => {
                unasked.errors.push((xid, error));
            }
            Message::FlowRemoved(gone) if unasked.removed.len() < UNASKED_MAX => {
                unasked.removed.push(gone);
            }
            Message::Error(_) | Message::FlowRemoved(_) => unasked.lost += 1,
            _ => unasked.others += 1,
        }
        Ok(())
    }
}

/// Rows that a part of an answer brings; at least one, so that empty parts have an end too.
fn rows_of(message: &Message) -> usize {
    let Message::MultipartReply(reply) = message else { return 1 };
    let rows = match &reply.body {
        MultipartReplyBody::Flow(rows) => rows.len(),
        MultipartReplyBody::Table(rows) => rows.len(),
        MultipartReplyBody::Port(rows) => rows.len(),
        MultipartReplyBody::Queue(rows) => rows.len(),
        _ => 1,
    };
    rows.max(1)
}

#[cfg(test)]
mod tests;
