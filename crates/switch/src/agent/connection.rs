//! One controller's connection: a channel, the session on it, and what it is owed.
//!
//! Invariant: memory is bounded whatever the controller does. While more than
//! `BACKLOG_BYTES_MAX` wait to be sent, nothing more is read from it, a long reply pauses, and
//! news (frames, removals, port changes) is dropped and counted instead of queued.

use std::os::fd::RawFd;

use openflow::header::{MESSAGE_BYTES_MAX, Xid};
use openflow::model::Message;
use openflow::session::{Session, Settings};
use openflow::version::End;
use packet::time::Nanos;
use ports::channel::{Channel, ChannelError, Progress};

use super::door::Guest;
use super::multipart::Dump;

/// Bytes that may wait to be sent before the connection is throttled.
pub const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Bytes that are read from one connection in one turn, so that none starves the others, and
/// frames wait for some two hundred flow-mods at most. A session takes as many at any time.
pub const READ_BYTES: usize = 16 << 10;
const _: () = assert!(READ_BYTES <= MESSAGE_BYTES_MAX);

/// A connection.
pub struct Connection {
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
    /// A long reply that is under way.
    pub dump: Option<Dump>,
    /// Why the connection has to end.
    pub ended: Option<String>,
    channel: Box<dyn Channel>,
    /// What the door knows of it, if it came from a listener.
    guest: Option<Guest>,
}

impl Connection {
    /// A switch's session on this channel, probed after so long without a byte from the other
    /// end, and given up after as long again.
    pub fn new(channel: Box<dyn Channel>, dialer: Option<usize>, probe: Nanos, now: Nanos) -> Self {
        let settings = Settings {
            echo_idle: Some(probe),
            echo_timeout: probe,
            // Replies go past the limit at which news stops, so that none is ever lost.
            transmit_bytes_max: 2 * BACKLOG_BYTES_MAX,
            ..Settings::new(End::Switch)
        };
        Connection {
            session: Session::new(settings, now),
            peer: channel.peer().to_string(),
            dialer,
            up: false,
            refused: false,
            miss_send_bytes: 0,
            dump: None,
            ended: None,
            channel,
            guest: None,
        }
    }

    /// It was accepted by a listener, if there is a guest.
    pub fn arrive(&mut self, guest: Option<Guest>) {
        self.guest = guest;
    }

    /// What the door knows of it, as long as it has not come up.
    pub fn guest(&self) -> Option<&Guest> {
        self.guest.as_ref().filter(|_| !self.up)
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

    /// Answers the message with this number.
    pub fn reply(&mut self, xid: Xid, message: &Message) {
        if let Err(error) = self.session.answer(xid, message) {
            self.end(&format!("a reply cannot be sent: {error}"));
        }
    }

    /// Tells news. False if that is lost because too much waits already.
    pub fn tell(&mut self, message: &Message) -> bool {
        !self.up || (!self.is_full() && self.session.answer(0, message).is_ok())
    }

    /// Sends what waits, here or in the channel, as far as there is room.
    pub fn flush(&mut self) {
        loop {
            let bytes = self.session.transmit();
            match self.channel.transmit(bytes) {
                Ok(0) => return,
                Ok(count) => self.session.transmitted(count),
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
        let descriptor = self.channel.descriptor().filter(|_| !self.is_throttled())?;
        Some((descriptor, self.channel.waits_for_room(owes)))
    }

    /// Whether there is something to receive that the descriptor does not announce.
    pub fn is_ready(&self) -> bool {
        self.channel.holds_received() && !self.is_throttled()
    }
}
