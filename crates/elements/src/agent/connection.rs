//! Connection of one controller: a channel, its session, and messages that wait.
//!
//! Invariant: memory is bounded for every controller. While more than `BACKLOG_BYTES_MAX` bytes
//! wait to be sent, the connection reads nothing more and a long reply pauses. Asynchronous
//! messages (packet-in, flow-removed, port-status) are then dropped and counted instead of queued.

use std::os::fd::RawFd;

use channel::{Channel, ChannelError, Progress};
use openflow::codec::nicira;
use openflow::header::{MESSAGE_BYTES_MAX, Xid};
use openflow::model::Message;
use openflow::model::role::Role;
use openflow::session::{Event, SendError, Session, Settings};
use openflow::version::{AsyncKind, End, ErrorCode, Version};
use packet::time::Nanos;

use super::admission::PendingConnection;
use super::async_config::Interests;
use super::bundle::Bundles;
use super::monitor::Monitors;
use super::multipart_reassembly::RequestParts;
use super::multipart_reply::Dump;

/// Bytes that may wait to be sent before the connection is throttled.
pub const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Bytes that are read from one connection in one turn. A session accepts as many at any time.
pub const READ_BYTES: usize = MESSAGE_BYTES_MAX;

/// Connection of one controller.
pub struct Connection {
    /// Number of the connection, unique in the lifetime of this switch.
    pub id: u32,
    /// Name of the peer.
    pub peer: String,
    /// Index of the dialer that made the connection, if the switch initiated it.
    pub dialer: Option<usize>,
    /// The OpenFlow session.
    pub session: Session,
    /// Whether the session is established.
    pub up: bool,
    /// Whether an invalid message was received.
    pub refused: bool,
    /// Bytes of a table-miss frame that this controller receives.
    pub miss_send_bytes: u16,
    /// The controller's role.
    pub role: Role,
    /// Asynchronous messages that the controller receives.
    pub interests: Interests,
    /// Short controller ID (OpenFlow 1.5), or 0.
    pub short_id: u16,
    /// Whether a 1.0 controller uses the numbers of all tables (Nicira extension), instead of the
    /// two parts of the first table.
    pub table_ids: bool,
    /// Whether flow-removed messages have Nicira's format.
    pub nicira_flows: bool,
    /// Whether packet-in messages have Nicira's format.
    pub nicira_frames: bool,
    /// Open bundles.
    pub bundles: Bundles,
    /// Flow monitors.
    pub monitors: Monitors,
    /// An incomplete multipart request.
    pub parts: RequestParts,
    /// The long reply in progress.
    pub dump: Option<Dump>,
    /// A message that could not be processed when it arrived, and until when it waits.
    held: Option<(Nanos, Event)>,
    /// Whether that message waits for another connection's change of several turns.
    pub is_blocked: bool,
    /// Whether the controller changed something that forwarding threads may not see yet. Then
    /// nothing is sent.
    pub has_changed: bool,
    /// Number of events that must be reported before the waiting message is processed, if it waits
    /// for events.
    pub news_until: Option<u64>,
    /// Whether received messages are left for a later turn.
    pub is_cut: bool,
    /// Whether the connection is not read although data may have arrived.
    pub is_rx_paused: bool,
    /// When data was last received.
    pub received_at: Nanos,
    /// Why the connection must end.
    pub ended: Option<String>,
    channel: Box<dyn Channel>,
    /// Whether the channel was full at the last attempt to send.
    is_full_behind: bool,
    /// Whether this is an auxiliary connection; the main connection carries asynchronous messages.
    pub auxiliary: bool,
    /// Admission state, if a listener accepted the connection.
    guest: Option<PendingConnection>,
}

impl Connection {
    /// Creates a switch's session on this channel. After `probe` without a received byte it sends
    /// an echo request, and it closes the session after the same time again.
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
            // Replies may exceed the limit of asynchronous messages, so that none is lost.
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
            parts: RequestParts::default(),
            dump: None,
            held: None,
            is_blocked: false,
            has_changed: false,
            news_until: None,
            is_cut: false,
            is_rx_paused: false,
            received_at: now,
            ended: None,
            channel,
            is_full_behind: false,
            auxiliary: false,
            guest: None,
        }
    }

    /// Sets the admission state of a connection that a listener accepted.
    pub fn arrive(&mut self, guest: Option<PendingConnection>) {
        self.guest = guest;
    }

    /// Returns the admission state, if a listener accepted the connection.
    pub fn accepted(&self) -> Option<&PendingConnection> {
        self.guest.as_ref()
    }

    /// Returns the admission state until the session is established.
    pub fn guest(&self) -> Option<&PendingConnection> {
        self.guest.as_ref().filter(|_| !self.up)
    }

    /// Whether a listener accepted the connection.
    pub fn is_management(&self) -> bool {
        self.guest.is_some()
    }

    /// Whether an accepted connection has sent nothing yet.
    pub fn is_silent(&self) -> bool {
        self.guest().is_some_and(|guest| guest.progress == Progress::Silent)
    }

    /// Updates the progress of an accepted connection. Returns whether the peer has sent anything.
    pub fn has_begun(&mut self) -> bool {
        let progress = self.channel.progress();
        if let Some(guest) = &mut self.guest {
            guest.progress = progress;
        }
        progress != Progress::Silent
    }

    /// Reads received data into the session, unless the connection is throttled. The caller must
    /// have handled every event of the session.
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
                    "a session that is not full accepts every received byte"
                );
            }
            Err(ChannelError::Closed(_)) => self.end("closed the connection"),
            Err(error) => self.end(&error.to_string()),
        }
    }

    /// Whether nothing is read because the send queue is full or a long reply is in progress.
    pub fn is_throttled(&self) -> bool {
        self.dump.is_some() || self.is_full()
    }

    /// Whether the send queue is full.
    pub fn is_full(&self) -> bool {
        self.session.transmit().len() >= BACKLOG_BYTES_MAX
    }

    /// Whether the send queue is empty.
    pub fn has_read_all(&self) -> bool {
        self.session.transmit().is_empty()
    }

    /// Marks the session as established and creates the state that depends on its version.
    pub fn came_up(&mut self) {
        self.up = true;
        self.interests = Interests::new(self.version());
    }

    /// Returns the negotiated version, or 1.0 before negotiation.
    pub fn version(&self) -> Version {
        self.session.version().unwrap_or(Version::V1_0)
    }

    /// Whether the first table counts as two tables, as in OpenFlow 1.0.
    pub fn sees_parts(&self) -> bool {
        self.version() == Version::V1_0 && !self.table_ids
    }

    /// Sends a reply to the request with this transaction ID.
    pub fn reply(&mut self, xid: Xid, message: &Message) {
        if let Err(error) = self.session.answer(xid, message) {
            self.end(&format!("cannot send a reply: {error}"));
        }
    }

    /// Sends one part of a flow statistics reply from encoded rows.
    pub fn reply_rows(&mut self, xid: Xid, more: bool, rows: &[u8]) {
        if let Err(error) = self.session.answer_flow_rows(xid, more, rows) {
            self.end(&format!("cannot send a reply: {error}"));
        }
    }

    /// Sends an error in reply to the message with this transaction ID. `request` is the start of
    /// that message. The error is the nearest one that the version has, or Nicira's error for a
    /// Nicira message.
    pub fn refuse(&mut self, xid: Xid, code: ErrorCode, request: &[u8]) {
        let extended = (self.version() == Version::V1_0).then(|| nicira::refusal(code, request));
        if let Some(error) = extended.flatten() {
            return self.reply(xid, &Message::Error(error));
        }
        let code = code.nearest(self.version());
        self.reply(xid, &Message::error(code, request));
    }

    /// Whether the controller receives asynchronous messages of this kind for this reason.
    pub fn wants(&self, kind: AsyncKind, reason: u32) -> bool {
        self.up && !self.auxiliary && self.interests.wants(self.role, kind, reason)
    }

    /// Sends an asynchronous message. Returns false if the message was dropped because the send
    /// queue is full. A message that the version cannot express is skipped.
    pub fn tell(&mut self, message: &Message) -> bool {
        if !self.up {
            return true;
        }
        let told = |outcome| matches!(outcome, Ok(()) | Err(SendError::NotExpressible(_)));
        !self.is_full() && told(self.session.answer(0, message))
    }

    /// Sends queued bytes of the session and the channel as far as there is room. Does nothing
    /// while changes are not visible.
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
                    // The channel's buffer may accept bytes that the peer never reads. Room after a
                    // full buffer proves that the peer reads.
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

    /// Records why the connection must end. Later reasons are ignored.
    pub fn end(&mut self, why: &str) {
        self.ended.get_or_insert_with(|| why.to_string());
    }

    /// Returns the descriptor to poll, and whether to poll for writing. Returns none while the
    /// connection is not read, as data that has arrived would end every wait immediately.
    pub fn descriptor(&self) -> Option<(RawFd, bool)> {
        let owes = !self.session.transmit().is_empty();
        let deaf = self.is_throttled() || self.is_rx_paused || self.held.is_some();
        let descriptor = self.channel.descriptor().filter(|_| !deaf)?;
        Some((descriptor, self.channel.waits_for_room(owes)))
    }

    /// Whether there is work or received data that the descriptor does not announce.
    pub fn is_ready(&self) -> bool {
        let waits = self.channel.holds_received() && !self.is_rx_paused;
        (self.held.is_some() || self.is_cut || waits) && !self.is_throttled()
    }

    /// Returns the next event, starting with the message that waits.
    pub fn next_event(&mut self) -> Option<Event> {
        let held = self.held.take().map(|(_, event)| event);
        held.or_else(|| self.session.poll_event())
    }

    /// Delays a message until the given time. Nothing else is taken from the connection before.
    pub fn hold(&mut self, event: Event, until: Nanos) {
        self.held = Some((until, event));
    }

    /// Returns until when a message waits, if there is one.
    pub fn held_until(&self) -> Option<Nanos> {
        self.held.as_ref().map(|(until, _)| *until)
    }
}
