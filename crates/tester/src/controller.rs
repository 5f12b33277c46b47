//! Test controller: one connection to a switch, to install flows and read statistics.
//!
//! - Requests are synchronous: the controller sends one and waits for its reply, with a timeout.
//!   Flow-mods are sent ahead in batches (see `flows`).
//! - Unsolicited messages of the switch are counted, or stored within limits.
//! - Any misbehavior of the peer ends in one error that describes it: an unsupported version,
//!   invalid or truncated messages, silence, or a closed connection. The connection is unusable
//!   after an error.
//! - The caller defines how to wait: a `WaitHook` polls a descriptor in real time, or runs a
//!   simulated switch.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use channel::{Channel, Connecting, Listener, Url};
use openflow::header::{MESSAGE_BYTES_MAX, Xid};
use openflow::model::flow::FlowRemoved;
use openflow::model::message::{ErrorMessage, Message};
use openflow::model::multipart::{
    FlowStats, FlowStatsRequest, MultipartReplyBody, MultipartRequestBody, SwitchDescription,
};
use openflow::model::switch::Features;
use openflow::session::{self, Event, Session};
use openflow::version::{End, MessageKind, Version};
use packet::time::Nanos;

pub mod flows;
pub mod script;
pub mod play;
mod real_time;

mod error;

pub use error::ControlError;
pub use real_time::RealTime;

/// Maximum number of stored errors and removed flows until they are taken. More are only counted.
pub const UNASKED_MAX: usize = 1024;

/// Maximum number of rows (flows, ports, tables) in one statistics reply.
pub const ROWS_MAX: usize = 1 << 20;

/// Maximum wait before the controller checks the stop flag.
const STOP_CHECK_INTERVAL: Nanos = Nanos::from_millis(100);

/// Maximum number of channel reads in one iteration.
const READS_MAX: usize = 16;

/// Parameters of a controller.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Versions, keepalive and limits of the session.
    pub session: session::Settings,
    /// Timeout for opening a connection.
    pub connect_timeout: Nanos,
    /// Timeout for a reply, or for any progress with flow-mods.
    pub reply_timeout: Nanos,
    /// Number of flow-mods per barrier.
    pub batch_flows: usize,
    /// Maximum number of outstanding barriers while more flow-mods are sent.
    pub barriers_ahead: usize,
    /// Ends every wait for the switch with [`ControlError::Interrupted`] when set.
    pub stop: Arc<AtomicBool>,
}

/// How to wait, and the time.
pub trait WaitHook {
    /// Returns the time.
    fn now(&mut self) -> Nanos;

    /// Waits until the channel with this descriptor (if any) is readable, or writable if requested.
    ///
    /// Returns at `deadline` at the latest. Can return early.
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
    /// The outstanding request, and the reply's parts so far.
    asked: Option<Xid>,
    parts: Vec<Message>,
    rows: usize,
    is_answered: bool,
    /// Barrier replies since the last call of `settle`.
    barriers: Vec<Xid>,
    unasked: UnsolicitedMessages,
}

/// Unsolicited messages of a switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsolicitedMessages {
    /// Number of packet-ins.
    pub packet_ins: u64,
    /// Errors with their transaction ids, at most [`UNASKED_MAX`].
    pub errors: Vec<(Xid, ErrorMessage)>,
    /// Removed flows, at most [`UNASKED_MAX`].
    pub removed: Vec<FlowRemoved>,
    /// Errors and removed flows beyond the limits.
    pub lost: u64,
    /// Number of port status and other messages.
    pub others: u64,
}

impl Settings {
    /// OpenFlow 1.0, five seconds to connect and for each reply, 256 flow-mods per barrier and two
    /// outstanding barriers.
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
    /// Connects to a listening switch in real time and requests its features.
    pub fn connect(url: &Url, settings: Settings) -> Result<Self, ControlError> {
        let channel = Connecting::wait(url, settings.connect_timeout)?;
        Controller::start(channel, settings, &mut RealTime::default())
    }

    /// Waits for a switch to connect, in real time, and requests its features.
    pub fn accept(listener: &mut Listener, settings: Settings) -> Result<Self, ControlError> {
        let mut hook = RealTime::default();
        let deadline = hook.now().saturating_add(settings.connect_timeout);
        loop {
            if let Some(channel) = listener.accept()? {
                return Controller::start(channel, settings, &mut hook);
            }
            if hook.now() >= deadline {
                return Err(ControlError::NotConnected(listener.address().clone()));
            }
            hook.rest(Some(listener.descriptor()), false, deadline);
        }
    }

    /// Negotiates the version with the switch and requests its features.
    pub fn start(
        channel: Box<dyn Channel>,
        settings: Settings,
        hook: &mut dyn WaitHook,
    ) -> Result<Self, ControlError> {
        let session = Session::new(settings.session.clone(), hook.now());
        let mut controller = Controller::bare(channel, session, settings);
        // The session itself times out without a hello.
        while controller.session.version().is_none() {
            controller.turn(hook.now())?;
            if controller.session.version().is_none() {
                controller.rest(hook, Nanos::MAX);
            }
        }
        match controller.ask(&Message::FeaturesRequest, hook)?.pop() {
            Some(Message::FeaturesReply(features)) => controller.features = Some(features),
            _ => return Err(ControlError::WrongAnswer(MessageKind::FeaturesRequest)),
        }
        Ok(controller)
    }

    /// Creates a controller that has not sent anything yet.
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
            unasked: UnsolicitedMessages::default(),
        }
    }

    /// Returns the switch's features.
    pub fn features(&self) -> &Features {
        self.features.as_ref().expect("a started controller has the features reply")
    }

    /// Returns the negotiated version.
    pub fn version(&self) -> Version {
        self.session.version().expect("a started controller has negotiated a version")
    }

    /// Sends a message that has no reply. Returns its transaction id.
    pub fn tell(&mut self, message: &Message, now: Nanos) -> Result<Xid, ControlError> {
        let xid = self.session.send(message, now)?;
        self.flush()?;
        Ok(xid)
    }

    /// Returns the name of the peer.
    pub fn peer(&self) -> &str {
        self.channel.peer()
    }

    /// Takes the unsolicited messages since the last call.
    pub fn take_unasked(&mut self) -> UnsolicitedMessages {
        std::mem::take(&mut self.unasked)
    }

    /// Receives, replies and sends without blocking.
    ///
    /// Call it regularly during a long trial to keep the connection alive.
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

    /// Sends a barrier request and waits for the reply. Returns how long that took.
    pub fn barrier(&mut self, hook: &mut dyn WaitHook) -> Result<Nanos, ControlError> {
        let asked_at = hook.now();
        match self.ask(&Message::BarrierRequest, hook)?.pop() {
            Some(Message::BarrierReply) => Ok(hook.now().since(asked_at)),
            _ => Err(ControlError::WrongAnswer(MessageKind::BarrierRequest)),
        }
    }

    /// Returns manufacturer and names of the switch.
    pub fn description(
        &mut self,
        hook: &mut dyn WaitHook,
    ) -> Result<SwitchDescription, ControlError> {
        let rows = self.statistics(MultipartRequestBody::Desc, hook, |body| match body {
            MultipartReplyBody::Desc(description) => Some(vec![description]),
            _ => None,
        });
        rows?.pop().ok_or(ControlError::WrongAnswer(MessageKind::MultipartRequest))
    }

    /// Returns the flow entries that `which` selects, with their counters.
    pub fn flow_stats(
        &mut self,
        which: FlowStatsRequest,
        hook: &mut dyn WaitHook,
    ) -> Result<Vec<FlowStats>, ControlError> {
        self.statistics(MultipartRequestBody::Flow(which), hook, |body| match body {
            MultipartReplyBody::Flow(part) => Some(part),
            _ => None,
        })
    }

    /// Requests statistics and joins the rows of all parts.
    ///
    /// `rows` returns none for a part of the wrong type.
    fn statistics<T>(
        &mut self,
        request: MultipartRequestBody,
        hook: &mut dyn WaitHook,
        rows: fn(MultipartReplyBody) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, ControlError> {
        let wrong = || ControlError::WrongAnswer(MessageKind::MultipartRequest);
        let mut all = Vec::new();
        for part in self.ask(&Message::ask(request), hook)? {
            let Message::MultipartReply(part) = part else { return Err(wrong()) };
            all.extend(rows(part.body).ok_or_else(wrong)?);
        }
        Ok(all)
    }

    /// Sends a request and waits for the complete reply.
    pub fn ask(
        &mut self,
        request: &Message,
        hook: &mut dyn WaitHook,
    ) -> Result<Vec<Message>, ControlError> {
        let deadline = hook.now().saturating_add(self.settings.reply_timeout);
        self.parts.clear();
        (self.rows, self.is_answered) = (0, false);
        self.asked = Some(self.session.send(request, hook.now())?);
        loop {
            let now = hook.now();
            self.turn(now)?;
            if self.is_answered {
                break;
            }
            if now >= deadline {
                return Err(self.silent(request.kind()));
            }
            self.rest(hook, deadline);
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

    fn rest(&mut self, hook: &mut dyn WaitHook, deadline: Nanos) {
        let due = self.session.next_timeout().unwrap_or(Nanos::MAX);
        let wants_to_write = !self.session.transmit().is_empty();
        let check = hook.now().saturating_add(STOP_CHECK_INTERVAL);
        hook.rest(self.channel.descriptor(), wants_to_write, deadline.min(due).min(check));
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
                    // The session's remaining output can help the peer.
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

/// Returns the number of rows in a part of a reply. At least one, so that empty parts count too.
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
