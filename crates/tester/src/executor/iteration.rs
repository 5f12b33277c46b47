//! The steps of one iteration: serve connections, send due frames, receive frames.
//!
//! Each step is bounded, so that no connection and no port waits long: [`READ_BYTES`],
//! [`super::WRITE_BYTES`], [`RECEIVE_FRAMES`].

use std::sync::Arc;

use openflow::model::message::Message;
use packet::batch_copy::Copies;
use packet::time::Nanos;

use super::connection::{ConnectionEvent, SwitchConnection};
use super::receive::ArrivedFrame;
use super::{
    Attention, CONNECTIONS_PER_TURN, DeferredEvent, ExecutorIo, ModuleExecutor, Phase, READ_BYTES,
};
use crate::module::{Arrival, Ended, Event, EventKind, Probe, TIME_LIMIT};
use crate::rig::engine::RECEIVE_FRAMES;

impl ModuleExecutor {
    /// Reads the clock and records that the tester is active.
    pub(super) fn look(&mut self, world: &mut ExecutorIo<'_>) -> Nanos {
        let now = (world.clock)();
        match self.phase {
            Phase::Opening => self.attention.rested(now),
            _ => {
                self.attention.note(now);
            }
        }
        now
    }

    /// Opens connections, and starts the module when all are up.
    pub(super) fn open(&mut self, world: &mut ExecutorIo<'_>, now: Nanos) -> bool {
        let moved = self.serve(world);
        for later in std::mem::take(&mut self.later) {
            if let DeferredEvent::Lost(connection, why) = later {
                self.end(Ended::NotReady { connection, why }, now);
            }
        }
        if self.phase != Phase::Opening || !self.lines.iter().all(SwitchConnection::is_ready) {
            return moved;
        }
        self.started_at = (world.clock)();
        self.phase = Phase::Running;
        let facts = Arc::clone(&self.facts);
        self.tell(world, self.started_at, EventKind::Start(&facts));
        // The start usually prepares frames, which takes time. No frame was outstanding then that
        // the tester could miss.
        self.attention = Attention::new(self.facts.ports.len() + self.lines.len());
        self.attention.rested((world.clock)());
        true
    }

    /// Runs one iteration of a started module.
    pub(super) fn run(&mut self, world: &mut ExecutorIo<'_>, now: Nanos) -> bool {
        if now >= self.started_at.saturating_add(self.needs.limit) {
            self.tell(world, now, EventKind::LimitReached(TIME_LIMIT));
            self.end(Ended::Limit(TIME_LIMIT), now);
            return true;
        }
        let mut moved = self.serve(world);
        // New timers of the module wait for the next iteration.
        for _ in 0..self.context.timers() {
            let Some(timer) = self.context.take_due(now) else { break };
            self.tell(world, now, EventKind::Timer(timer));
            moved = true;
        }
        moved |= self.write(world);
        moved |= self.send(world);
        moved |= self.receive(world);
        moved |= self.talk(world);
        if let Some(done) = self.hosts.done(world.hosts.as_deref_mut()) {
            self.tell_soon(DeferredEvent::HostTask(done));
        }
        moved |= self.tell_later(world);
        moved |= self.write(world);
        moved
    }

    /// Sends requests to agents and receives their replies.
    fn talk(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        if !self.asked.is_waiting() {
            return false;
        }
        let before = (world.clock)();
        let (moved, done) = self.asked.turn(world.agents, world.clock);
        for (agent, asked, at, answer) in done {
            self.tell_soon(DeferredEvent::Snmp(agent, asked, at, answer));
        }
        let now = self.look(world);
        self.costs.control_ns_total += now.since(before).0;
        moved
    }

    /// Reads every connection once and delivers its events.
    pub(super) fn serve(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        let (mut moved, mut reads) = (false, 0);
        let count = self.lines.len();
        let first = std::mem::take(&mut self.reads_from);
        for place in (first..count).chain(0..first) {
            if self.lines[place].is_idle() {
                continue;
            }
            // In virtual time an iteration must read everything, because time then advances.
            if reads == CONNECTIONS_PER_TURN && !self.facts.is_simulated {
                self.reads_from = place;
                break;
            }
            reads += 1;
            let line = &mut self.lines[place];
            let before = (world.clock)();
            let lane = self.facts.ports.len() + place;
            let (at, count) = match line.read(before, &mut *world.connect) {
                Ok(0) => {
                    self.attention.drained(lane);
                    (before, 0)
                }
                Ok(count) => {
                    let at = (world.clock)();
                    let was_away = self.attention.note(at);
                    moved = true;
                    (at, if was_away { READ_BYTES } else { count })
                }
                Err(why) => {
                    self.lose(place, why);
                    moved = true;
                    continue;
                }
            };
            let is_known = self.attention.knows_arrival(lane, None);
            let mut spent = (world.clock)().since(before);
            moved |= self.hear(world, place, at, is_known, &mut spent);
            if count < READ_BYTES {
                self.attention.drained(lane);
            }
            self.costs.control_ns_total += spent.0;
        }
        moved |= self.phase == Phase::Opening && self.write(world);
        moved
    }

    /// Delivers the events in a connection's bytes. Adds the decoding time to `spent`.
    fn hear(
        &mut self,
        world: &mut ExecutorIo<'_>,
        place: usize,
        at: Nanos,
        is_timestamp_valid: bool,
        spent: &mut Nanos,
    ) -> bool {
        let (mut moved, is_running) = (false, self.phase == Phase::Running);
        loop {
            let before = (world.clock)();
            let heard = self.lines[place].hear(at);
            *spent += (world.clock)().since(before);
            match heard {
                None => return moved,
                Some(ConnectionEvent::Message { xid, message, bytes, wire }) if is_running => {
                    let probe = self.carried(&message, at, is_timestamp_valid);
                    let connection = place;
                    let message = &message;
                    let what = EventKind::Message {
                        connection,
                        xid,
                        message,
                        bytes,
                        probe,
                        is_timestamp_valid,
                        wire,
                    };
                    self.tell(world, at, what);
                }
                // A frame outstanding at the module's end can have gone to the controller.
                Some(ConnectionEvent::Message { message, .. }) => {
                    self.carried(&message, at, is_timestamp_valid);
                }
                Some(ConnectionEvent::Refused(why)) if self.ended.is_none() => {
                    self.tell(world, at, EventKind::DecodeFailed { connection: place, why: &why });
                }
                Some(ConnectionEvent::Refused(_)) => {}
                Some(ConnectionEvent::Up) => {
                    Arc::make_mut(&mut self.facts).connections[place] = self.lines[place].facts();
                    self.later.push_back(DeferredEvent::Up(place));
                }
                Some(ConnectionEvent::Lost(why)) => self.lose(place, why),
            }
            moved = true;
        }
    }

    /// Identifies the probe in a packet-in.
    fn carried(&mut self, message: &Message, at: Nanos, is_known: bool) -> Option<Probe> {
        let Message::PacketIn(packet_in) = message else { return None };
        self.known.told(&packet_in.data, at, is_known, &self.attention)
    }

    fn lose(&mut self, place: usize, why: String) {
        self.lines[place].close(Some(why.clone()));
        Arc::make_mut(&mut self.facts).connections[place] = self.lines[place].facts();
        self.later.push_back(DeferredEvent::Lost(place, why));
    }

    /// Writes queued bytes to the sockets. Reports completed batches before any reply to them.
    fn write(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        let mut moved = false;
        for place in 0..self.lines.len() {
            if !self.lines[place].owes() {
                continue;
            }
            let before = (world.clock)();
            let taken = &mut self.sent;
            let tell = |said, span, wire| taken.push_back((place, said, span, wire));
            match self.lines[place].write(world.clock, tell) {
                Ok(wrote) => moved |= wrote,
                Err(why) => self.lose(place, why),
            }
            let now = self.look(world);
            self.costs.control_ns_total += now.since(before).0;
        }
        while let Some((connection, said, [first, last], wire)) = self.sent.pop_front() {
            self.tell(world, last, EventKind::Sent { connection, said, first, last, wire });
        }
        moved
    }

    /// Sends the due frames.
    fn send(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        if self.streams.next_due().is_none() {
            return false;
        }
        let now = self.look(world);
        let later = &mut self.later;
        let over = |stream| later.push_back(DeferredEvent::StreamOver(stream));
        match self.streams.send(world.ports, now, over) {
            Ok(0) => false,
            Ok(_) => {
                self.attention.sent(now);
                true
            }
            Err((port, error)) => {
                self.end(Ended::Port(port, error.to_string()), now);
                true
            }
        }
    }

    /// Receives a batch from each port and delivers the watched frames.
    pub(super) fn receive(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        let mut received = std::mem::replace(&mut self.received, Copies::new(0));
        let mut moved = false;
        for port in 0..world.ports.len() {
            let now = self.look(world);
            let taken = match world.ports[port].receive_copies(&mut received, now) {
                Ok(taken) => taken,
                Err(error) => {
                    self.end(Ended::Port(port, error.to_string()), now);
                    break;
                }
            };
            if taken == 0 {
                self.attention.drained(port);
                continue;
            }
            moved = true;
            let found_at = (world.clock)();
            let was_away = self.attention.note(found_at);
            self.take(world, port, &received, now);
            if taken < RECEIVE_FRAMES && !was_away {
                self.attention.drained(port);
            }
        }
        self.received = received;
        moved
    }

    /// Classifies a batch of frames and delivers the watched ones.
    fn take(&mut self, world: &mut ExecutorIo<'_>, port: usize, frames: &Copies, now: Nanos) {
        let mut sights = std::mem::take(&mut self.sights);
        self.known.sort(port, frames, &self.attention, now, &mut sights);
        let before = (world.clock)();
        let mut told = 0;
        for (place, sight) in sights.iter().enumerate() {
            self.stamps = Some(sight.stamp.clock);
            let bytes = frames.frame(place);
            let is_told = self.phase == Phase::Running && self.context.over().is_none();
            if !(is_told && self.watching[port].wants(sight.probe.as_ref(), bytes)) {
                continue;
            }
            let ArrivedFrame { stamp, probe, is_timestamp_valid } = *sight;
            let arrival = Arrival { port, stamp, is_timestamp_valid, probe, bytes };
            self.context.now = stamp.at;
            world.module.react(
                &Event { at: stamp.at, what: EventKind::Frame(&arrival) },
                &mut self.context,
            );
            told += 1;
            if !self.context.commands.is_empty() {
                self.execute(world);
            }
        }
        if told > 0 {
            self.known.watched(port, told);
            let now = self.look(world);
            self.charge(now.since(before), told);
            self.tell_limits(world, now);
        }
        sights.clear();
        self.sights = sights;
    }
}
