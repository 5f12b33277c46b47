//! One controller's connection: a channel, the session on it, and what it is owed.
//!
//! Invariant: memory is bounded whatever the controller does. While more than
//! `BACKLOG_BYTES_MAX` wait to be sent, nothing more is read from it, a long reply pauses, and
//! news (frames, removals, port changes) is dropped and counted instead of queued.

use std::os::fd::RawFd;

use openflow::codec::nicira;
use openflow::header::{MESSAGE_BYTES_MAX, Xid};
use openflow::model::Message;
use openflow::model::role::Role;
use openflow::session::{Event, SendError, Session, Settings};
use openflow::version::{AsyncKind, End, ErrorCode, Version};
use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Progress};

use super::bundle::Bundles;
use super::door::Guest;
use super::dump::Dump;
use super::interests::Interests;
use super::monitor::Monitors;
use super::parts::Parts;

/// Bytes that may wait to be sent before the connection is throttled.
pub const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Bytes that are read from one connection in one turn. A session takes as many at any time.
pub const READ_BYTES: usize = MESSAGE_BYTES_MAX;

/// A connection.
pub struct Connection {
    /// A number that no other connection of this switch has or had.
    pub id: u32,
    /// Name of the other end.
    pub peer: String,
    /// Which of the switch's own attempts it came from, if the controller did not connect.
    pub dialer: Option<usize>,
    /// The protocol.
    pub session: Session,
    /// Whether the session came up.
    pub up: bool,
    /// Whether a message from it was not understood.
    pub refused: bool,
    /// Bytes of a frame without match that this controller wants.
    pub miss_send_bytes: u16,
    /// Which part the controller plays.
    pub role: Role,
    /// Which news it gets.
    pub interests: Interests,
    /// The controller's own number among those of the switch, or 0.
    pub short_id: u16,
    /// Whether a controller of 1.0 means the numbers of all tables (Nicira's extension), not the
    /// two parts of the first one.
    pub table_ids: bool,
    /// Whether it is told of entries that have gone in Nicira's words.
    pub nicira_flows: bool,
    /// Whether it is told of frames in Nicira's words.
    pub nicira_frames: bool,
    /// Messages that it collects to be done together.
    pub bundles: Bundles,
    /// Which entries it watches.
    pub monitors: Monitors,
    /// A request that has come in part.
    pub parts: Parts,
    /// A long reply that is under way.
    pub dump: Option<Dump>,
    /// A message that could not be done when it came, and until when it waits.
    held: Option<(Nanos, Event)>,
    /// Whether that message waits for another connection's change of several turns.
    pub is_blocked: bool,
    /// Whether it changed something that threads of frames may not see: then nothing is sent to it.
    pub has_changed: bool,
    /// How many events have to be told before that message is handled, if it waits for that.
    pub news_until: Option<u64>,
    /// Whether there is more to do of what has been read, but for that.
    pub is_cut: bool,
    /// Whether nothing is read although something may have arrived.
    pub is_deaf: bool,
    /// When something was last received.
    pub received_at: Nanos,
    /// Why the connection has to end.
    pub ended: Option<String>,
    channel: Box<dyn Channel>,
    /// Whether the channel took no more when something was sent last.
    is_full_behind: bool,
    /// Whether it stands beside a main connection, over which the news goes.
    pub auxiliary: bool,
    /// What the door knows of it, if it came from a listener.
    guest: Option<Guest>,
}

impl Connection {
    /// A switch's session on this channel, probed after so long without a byte from the other
    /// end, and given up after as long again.
    pub fn new(
        channel: Box<dyn Channel>,
        dialer: Option<usize>,
        (id, versions): (u32, &[Version]),
        probe: Nanos,
        now: Nanos,
    ) -> Self {
        let settings = Settings {
            versions: versions.to_vec(),
            echo_idle: Some(probe),
            echo_timeout: probe,
            // Replies go past the limit at which news stops, so that none is ever lost.
            transmit_bytes_max: 2 * BACKLOG_BYTES_MAX,
            ..Settings::new(End::Switch)
        };
        Connection {
            id,
            session: Session::new(settings, now),
            peer: channel.peer().to_string(),
            dialer,
            up: false,
            refused: false,
            miss_send_bytes: 0,
            role: Role::Equal,
            interests: Interests::new(Version::V1_0),
            short_id: 0,
            table_ids: false,
            nicira_flows: false,
            nicira_frames: false,
            bundles: Bundles::default(),
            monitors: Monitors::default(),
            parts: Parts::default(),
            dump: None,
            held: None,
            is_blocked: false,
            has_changed: false,
            news_until: None,
            is_cut: false,
            is_deaf: false,
            received_at: now,
            ended: None,
            channel,
            is_full_behind: false,
            auxiliary: false,
            guest: None,
        }
    }

    /// It was accepted by a listener, if there is a guest.
    pub fn arrive(&mut self, guest: Option<Guest>) {
        self.guest = guest;
    }

    /// What the door knows of it, if a listener accepted it.
    pub fn accepted(&self) -> Option<&Guest> {
        self.guest.as_ref()
    }

    /// What the door knows of it, as long as it has not come up.
    pub fn guest(&self) -> Option<&Guest> {
        self.guest.as_ref().filter(|_| !self.up)
    }

    /// Whether it came in through a listener.
    pub fn is_management(&self) -> bool {
        self.guest.is_some()
    }

    /// Whether it is a guest that has said nothing.
    pub fn is_silent(&self) -> bool {
        self.guest().is_some_and(|guest| guest.progress == Progress::Silent)
    }

    /// Notes how far a guest has come; whether it has said anything.
    pub fn has_begun(&mut self) -> bool {
        let progress = self.channel.progress();
        if let Some(guest) = &mut self.guest {
            guest.progress = progress;
        }
        progress != Progress::Silent
    }

    /// Reads what has arrived into the session, unless the controller owes us reading first. Every
    /// event of the session has to have been handled.
    pub fn receive(&mut self, buffer: &mut [u8], now: Nanos) {
        if self.is_throttled() || self.session.is_down() {
            return;
        }
        match self.channel.receive(buffer) {
            Ok(count) => {
                self.received_at = now;
                let taken = self.session.receive(&buffer[..count], now);
                debug_assert_eq!(
                    taken, count,
                    "a session that is not full takes a message's worth"
                );
            }
            Err(ChannelError::Closed(_)) => self.end("closed the connection"),
            Err(error) => self.end(&error.to_string()),
        }
    }

    /// Whether so much waits to be sent, or a long reply is under way, that nothing is read.
    pub fn is_throttled(&self) -> bool {
        self.dump.is_some() || self.is_full()
    }

    /// Whether as much waits to be sent as may.
    pub fn is_full(&self) -> bool {
        self.session.transmit().len() >= BACKLOG_BYTES_MAX
    }

    /// Whether nothing waits to be sent.
    pub fn has_read_all(&self) -> bool {
        self.session.transmit().is_empty()
    }

    /// The session came up: what depends on its version is made.
    pub fn came_up(&mut self) {
        self.up = true;
        self.interests = Interests::new(self.version());
    }

    /// The version that is spoken; 1.0 before it is known.
    pub fn version(&self) -> Version {
        self.session.version().unwrap_or(Version::V1_0)
    }

    /// Whether the first table counts as two, as 1.0 has it.
    pub fn sees_parts(&self) -> bool {
        self.version() == Version::V1_0 && !self.table_ids
    }

    /// Answers the message with this number.
    pub fn reply(&mut self, xid: Xid, message: &Message) {
        if let Err(error) = self.session.answer(xid, message) {
            self.end(&format!("a reply cannot be sent: {error}"));
        }
    }

    /// Answers the request with this number with a part of flow statistics, whose rows are bytes.
    pub fn reply_rows(&mut self, xid: Xid, more: bool, rows: &[u8]) {
        if let Err(error) = self.session.answer_flow_rows(xid, more, rows) {
            self.end(&format!("a reply cannot be sent: {error}"));
        }
    }

    /// Answers the message with this number, which began with these bytes, with an error: the
    /// nearest that the version has, or for one of Nicira's messages what Nicira has.
    pub fn refuse(&mut self, xid: Xid, code: ErrorCode, request: &[u8]) {
        let extended = (self.version() == Version::V1_0).then(|| nicira::refusal(code, request));
        if let Some(error) = extended.flatten() {
            return self.reply(xid, &Message::Error(error));
        }
        let code = code.nearest(self.version());
        self.reply(xid, &Message::error(code, request));
    }

    /// Whether the controller wants news of this kind for this reason.
    pub fn wants(&self, kind: AsyncKind, reason: u32) -> bool {
        self.up && !self.auxiliary && self.interests.wants(self.role, kind, reason)
    }

    /// Tells news. False if that is lost because too much waits already. What the version has no
    /// words for is nothing to tell.
    pub fn tell(&mut self, message: &Message) -> bool {
        if !self.up {
            return true;
        }
        let told = |outcome| matches!(outcome, Ok(()) | Err(SendError::NotExpressible(_)));
        !self.is_full() && told(self.session.answer(0, message))
    }

    /// Sends what waits, here or in the channel, as far as there is room, unless its changes hold it up.
    pub fn flush(&mut self, now: Nanos) {
        if self.has_changed {
            return;
        }
        loop {
            let bytes = self.session.transmit();
            match self.channel.transmit(bytes) {
                Ok(0) => {
                    self.is_full_behind = !bytes.is_empty();
                    return;
                }
                Ok(count) => {
                    // What the channel takes at once may never be read; room that it has again was read.
                    if std::mem::take(&mut self.is_full_behind) {
                        self.session.peer_reads(now);
                    }
                    self.session.transmitted(count);
                }
                Err(ChannelError::Closed(_)) => return self.end("closed the connection"),
                Err(error) => return self.end(&error.to_string()),
            }
        }
    }

    /// Notes why the connection has to end; the first reason stands.
    pub fn end(&mut self, why: &str) {
        self.ended.get_or_insert_with(|| why.to_string());
    }

    /// The descriptor to wait for, and whether until writable; none while nothing is read, as
    /// what has arrived would end every wait at once.
    pub fn descriptor(&self) -> Option<(RawFd, bool)> {
        let owes = !self.session.transmit().is_empty();
        let deaf = self.is_throttled() || self.is_deaf || self.held.is_some();
        let descriptor = self.channel.descriptor().filter(|_| !deaf)?;
        Some((descriptor, self.channel.waits_for_room(owes)))
    }

    /// Whether there is something to do or to receive that the descriptor does not announce.
    pub fn is_ready(&self) -> bool {
        let waits = self.channel.holds_received() && !self.is_deaf;
        (self.held.is_some() || self.is_cut || waits) && !self.is_throttled()
    }

    /// The next thing that has come, if anything has.
    pub fn next_event(&mut self) -> Option<Event> {
        let held = self.held.take().map(|(_, event)| event);
        held.or_else(|| self.session.poll_event())
    }

    /// Keeps a message until then: nothing else is taken from the connection before.
    pub fn hold(&mut self, event: Event, until: Nanos) {
        self.held = Some((until, event));
    }

    /// Until when a message is kept, if one is.
    pub fn held_until(&self) -> Option<Nanos> {
        self.held.as_ref().map(|(until, _)| *until)
    }
}
