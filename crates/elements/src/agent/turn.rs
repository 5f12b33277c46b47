//! Sharing of the control work of one turn between connections.
//!
//! - A turn serves the connections in a cycle that starts where the last turn ended. Each has a
//!   share of the turn's [budget](crate::budget). Connections that have more work use what others
//!   leave.
//! - A connection works in order: first its change of several turns or its long reply, then the
//!   messages after it.
//! - During a change of several turns, messages of other connections wait if they change or read
//!   the same state (see [`super::ongoing`]). All others are processed.

use openflow::model::role::ControllerStatusReason;
use openflow::model::{Message, MultipartRequestBody};
use openflow::session;

use super::multipart_reply::{ReplyPart, Source};
use super::ongoing::changes;
use super::{Agent, Datapath};
use crate::budget::MESSAGE_STEPS;
use crate::event::Event;

/// Budget steps of a message that neither changes nor reads flow entries.
const SHORT_STEPS: u32 = 8;

/// Budget steps of one part of a long reply: as many entries as fit into a message, or about 50 us.
const PART_STEPS: usize = 2048;

/// Messages with more bytes are long.
const LONG_MESSAGE_BYTES: usize = 4 << 10;

/// Bytes of a long message that are decoded in one budget step.
const BYTES_A_STEP: usize = 8;

/// Budget steps of reading from a connection or sending to it.
pub(super) const CHANNEL_STEPS: u32 = 8;

impl Agent {
    /// Serves the connections until all received messages are processed, or the turn's budget is
    /// spent.
    pub(super) fn serve_connections(&mut self, datapath: &mut Datapath<'_>) {
        let count = self.connections.len();
        self.waits_for_frames = false;
        datapath.budget.begin_share(count + 1);
        self.continue_orphan(datapath);
        let cycle = self.cycle(count);
        self.serve_cycle(&cycle, datapath, Agent::serve_one);
        while !datapath.budget.is_over() {
            let mut cycle = self.cycle(count);
            cycle.retain(|&at| self.has_work(at));
            if cycle.is_empty() {
                break;
            }
            self.serve_cycle(&cycle, datapath, Agent::go_on);
        }
    }

    /// Returns the connections in the order in which they are served.
    fn cycle(&mut self, count: usize) -> Vec<usize> {
        self.first = if self.first < count { self.first } else { 0 };
        (self.first..count).chain(0..self.first).collect()
    }

    /// Serves these connections in order, at least one. If a change ends for which others waited,
    /// the next cycle starts with them.
    fn serve_cycle(
        &mut self,
        cycle: &[usize],
        datapath: &mut Datapath<'_>,
        serve: fn(&mut Agent, usize, &mut Datapath<'_>),
    ) {
        for (served, &at) in cycle.iter().enumerate() {
            if served > 0 && datapath.budget.is_over() {
                self.first = at;
                return;
            }
            datapath.budget.begin_share(cycle.len() - served);
            serve(self, at, datapath);
            if std::mem::take(&mut self.has_released) {
                self.first = at + 1;
                return;
            }
        }
    }

    /// Whether a connection has work without reading from it.
    fn has_work(&self, at: usize) -> bool {
        let connection = &self.connections[at];
        if connection.ended.is_some() {
            return false;
        }
        if let Some(ongoing) = &self.ongoing {
            if ongoing.owner == connection.id {
                return !self.waits_for_frames;
            }
            if connection.is_blocked || connection.dump.is_some() && ongoing.is_commit() {
                return false;
            }
        }
        if connection.is_blocked && !self.is_settled {
            return false;
        }
        let reads = !connection.is_full();
        reads && (connection.dump.is_some() || connection.is_cut || connection.is_blocked)
    }

    /// Processes what the last turn left, then reads and processes new messages.
    pub(super) fn serve_connection(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        self.go_on(at, datapath);
        if self.is_busy(at) {
            return;
        }
        let connection = &mut self.connections[at];
        let works =
            connection.held_until().is_some() || connection.is_cut || connection.dump.is_some();
        // The session's timeouts count time in which the peer must act, not the time that its
        // requests take.
        if works && !connection.is_full() {
            return;
        }
        connection.is_rx_paused =
            datapath.model.as_mut().is_some_and(|it| it.agent_cpu.rests(datapath.now));
        if connection.is_rx_paused {
            return;
        }
        connection.receive(&mut self.read_buffer, datapath.now);
        datapath.budget.spend_unknown(CHANNEL_STEPS);
        connection.session.tick(datapath.now);
        self.handle_waiting(at, datapath);
    }

    /// Continues the work on messages that were read earlier.
    fn go_on(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        if self.is_busy(at) {
            self.continue_change(datapath);
            // Connections that waited for the change come first.
            return;
        }
        self.continue_dump(at, datapath);
        self.bundles_due(at, datapath);
        self.handle_waiting(at, datapath);
    }

    /// Whether the change of several turns belongs to this connection.
    pub(super) fn is_busy(&self, at: usize) -> bool {
        let id = self.connections[at].id;
        self.ongoing.as_ref().is_some_and(|ongoing| ongoing.owner == id)
    }

    /// Processes the session's events until there are none, the connection is throttled, or its
    /// share of the turn is spent.
    fn handle_waiting(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        self.connections[at].is_blocked = false;
        self.connections[at].is_cut = false;
        while !self.connections[at].is_throttled() && !self.is_busy(at) {
            let is_new = self.connections[at].held_until().is_none();
            let Some(event) = self.connections[at].next_event() else { return };
            if is_new {
                datapath.budget.spend(decoding_steps(&event));
            }
            if self.waits_for_change(at, &event) {
                self.connections[at].is_blocked = true;
                self.connections[at].hold(event, datapath.now);
                return;
            }
            if datapath.budget.is_spent() {
                self.counters.turns_cut += 1;
                self.connections[at].is_cut = true;
                self.connections[at].hold(event, datapath.now);
                return;
            }
            if self.waits_for_news(at, &event, datapath) {
                self.connections[at].hold(event, datapath.now);
                return;
            }
            if let Some(until) = self.waits(at, &event, datapath) {
                self.connections[at].hold(event, until);
                return;
            }
            let steps = steps_of(&event);
            self.connections[at].has_changed |= is_change(&event);
            self.handle_event(at, event, datapath);
            datapath.budget.spend(steps);
        }
        // The remaining events follow after the change or the reply.
        self.connections[at].is_cut = true;
    }

    fn handle_event(&mut self, at: usize, event: session::Event, datapath: &mut Datapath<'_>) {
        match event {
            session::Event::Up { .. } => {
                self.connections[at].came_up();
                self.events.push(Event::ControllerUp(self.connections[at].peer.clone()));
                self.tell_controller_status(at, ControllerStatusReason::ChannelStatus);
            }
            session::Event::Message { xid, message, bytes, offending, .. } => {
                self.counters.messages += 1;
                let is_statistics = matches!(message, Message::MultipartRequest(_));
                match self.handle(at, xid, (message, bytes), datapath) {
                    Ok(()) if self.is_busy(at) => {
                        self.keep_request(offending.as_bytes());
                        self.continue_change(datapath);
                    }
                    Ok(()) => {}
                    Err(code) => {
                        self.counters.failed += 1;
                        self.connections[at].refuse(xid, code, offending.as_bytes());
                    }
                }
                self.done_modelled(is_statistics, datapath);
            }
            session::Event::Refused(error) => {
                let connection = &mut self.connections[at];
                self.counters.refused += 1;
                if !std::mem::replace(&mut connection.refused, true) {
                    let event =
                        Event::ControllerRefused(connection.peer.clone(), error.to_string());
                    self.events.push(event);
                }
            }
            session::Event::Down { why } => self.connections[at].end(&why.to_string()),
        }
    }

    /// Continues a long reply as far as the controller reads. The reply pauses during a bundle
    /// commit, so that it shows the bundle completely or not at all.
    pub(super) fn continue_dump(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        let connection = &mut self.connections[at];
        while !connection.is_full()
            && !self.ongoing.as_ref().is_some_and(|ongoing| ongoing.is_commit())
            && let Some(dump) = &mut connection.dump
        {
            if datapath.budget.is_spent() {
                return;
            }
            let xid = dump.xid();
            let Datapath { pipeline, forward_ports, fast_path, now, budget, .. } = &mut *datapath;
            let mut source = Source {
                pipeline,
                features: &self.features,
                forward_ports,
                fast_path: *fast_path,
                ports: &self.ports,
                age: now.since(self.opened_at),
                now: *now,
            };
            let rows = &mut self.rows;
            match budget.run(PART_STEPS, |steps| dump.next(&mut source, rows, steps)).0 {
                ReplyPart::None => continue,
                ReplyPart::Rows { last } => {
                    connection.reply_rows(xid, !last, &self.rows);
                    self.rows.clear();
                    if last {
                        connection.dump = None;
                    }
                }
                ReplyPart::Message { message, last } => {
                    connection.reply(xid, &message);
                    if last {
                        connection.dump = None;
                    }
                }
            }
            // The controller can read this part while the next one is prepared.
            connection.flush(datapath.now);
            datapath.budget.spend_unknown(CHANNEL_STEPS);
        }
    }
}

/// Whether an event may change how frames are forwarded.
fn is_change(event: &session::Event) -> bool {
    matches!(event, session::Event::Message { message, .. } if changes(message))
}

/// Returns the budget steps of decoding a long message. Those of others are part of [`steps_of`].
fn decoding_steps(event: &session::Event) -> u32 {
    match event {
        session::Event::Message { bytes, .. } if *bytes > LONG_MESSAGE_BYTES => {
            (*bytes / BYTES_A_STEP) as u32
        }
        _ => 0,
    }
}

/// Returns the budget steps of an event, without those for the flow entries concerned.
fn steps_of(event: &session::Event) -> u32 {
    let session::Event::Message { message, .. } = event else { return SHORT_STEPS };
    match message {
        Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::MeterMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::PacketOut(_)
        | Message::BundleAddMessage(_)
        | Message::Experimenter(_) => MESSAGE_STEPS,
        Message::MultipartRequest(request) => match request.body {
            MultipartRequestBody::Desc => SHORT_STEPS,
            _ => MESSAGE_STEPS,
        },
        _ => SHORT_STEPS,
    }
}
