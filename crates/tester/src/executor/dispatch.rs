//! Event delivery to the module, and execution of its commands.
//!
//! Commands run in order when the module has returned, before its next event. Events that they
//! cause are delivered in the next iteration, so that a module in an endless loop does not block
//! the ports.

use std::sync::Arc;

use packet::time::Nanos;

use super::connection::SwitchConnection;
use super::transmit::{StreamProblems, Streams};
use super::{DeferredEvent, EVENTS_WAITING_MAX, ExecutorIo, ModuleExecutor, Phase};
use crate::module::context::Command;
use crate::module::{Ended, Event, EventKind, MessageRange, SendError};

/// Queued events to deliver before ports and connections are served.
const TELL_MAX: usize = 1024;

impl ModuleExecutor {
    /// Delivers an event and runs the module's commands.
    pub(super) fn tell(&mut self, world: &mut ExecutorIo<'_>, at: Nanos, what: EventKind<'_>) {
        if self.phase != Phase::Running || self.context.over().is_some() {
            return;
        }
        let before = (world.clock)();
        self.context.now = at;
        world.module.react(&Event { at, what }, &mut self.context);
        let now = self.look(world);
        self.charge(now.since(before), 1);
        self.execute(world);
        self.tell_limits(world, now);
    }

    /// Delivers queued events. New events that they cause wait for the next iteration, so that a
    /// module in an endless loop does not block the ports.
    pub(super) fn tell_later(&mut self, world: &mut ExecutorIo<'_>) -> bool {
        let waiting = self.later.len().min(TELL_MAX);
        for _ in 0..waiting {
            let Some(later) = self.later.pop_front() else { break };
            let now = (world.clock)();
            match later {
                DeferredEvent::Unsent(connection, said, why) => {
                    self.tell(world, now, EventKind::SendFailed { connection, said, why });
                }
                DeferredEvent::StreamOver(stream) => {
                    self.tell(world, now, EventKind::StreamEnded(stream))
                }
                DeferredEvent::Counters(counters) => {
                    self.tell(world, now, EventKind::Counters(&counters))
                }
                DeferredEvent::Snmp(agent, asked, at, answer) => {
                    self.tell(world, at, EventKind::Snmp { agent, asked, answer: &answer });
                }
                DeferredEvent::HostTask(done) => self.tell(world, now, EventKind::HostTask(&done)),
                DeferredEvent::Up(connection) => {
                    let facts = Arc::clone(&self.facts);
                    let facts = &facts.connections[connection];
                    self.tell(world, now, EventKind::Connected { connection, facts });
                }
                DeferredEvent::Lost(connection, why) => {
                    self.tell(world, now, EventKind::Disconnected { connection, why: &why });
                    if self.needs.stops_on_disconnect && self.context.over().is_none() {
                        self.end(Ended::Lost { connection, why }, now);
                    }
                }
            }
        }
        waiting > 0
    }

    /// Reports each reached limit once.
    pub(super) fn tell_limits(&mut self, world: &mut ExecutorIo<'_>, now: Nanos) {
        while let Some(name) = self.context.findings_mut().take_untold() {
            if self.phase == Phase::Running && self.context.over().is_none() {
                let event = Event { at: now, what: EventKind::LimitReached(name) };
                world.module.react(&event, &mut self.context);
                self.execute(world);
            }
        }
    }

    /// Queues an event until the module has returned.
    pub(super) fn tell_soon(&mut self, later: DeferredEvent) {
        match self.later.len() < EVENTS_WAITING_MAX {
            true => self.later.push_back(later),
            false => self.context.findings_mut().beyond("EVENTS_WAITING_MAX"),
        }
    }

    pub(super) fn charge(&mut self, spent: Nanos, events: u64) {
        self.costs.events += events;
        self.costs.reaction_ns_total += spent.0;
        self.costs.reaction_ns_longest = self.costs.reaction_ns_longest.max(spent.0);
    }

    /// Runs the queued commands in order.
    pub(super) fn execute(&mut self, world: &mut ExecutorIo<'_>) {
        if self.context.commands.is_empty() {
            return;
        }
        let now = (world.clock)();
        let mut commands = std::mem::take(&mut self.context.commands);
        for command in commands.drain(..) {
            self.carry_out(command, world, now);
        }
        self.context.commands = commands;
    }

    fn carry_out(&mut self, command: Command, world: &mut ExecutorIo<'_>, now: Nanos) {
        match command {
            Command::Send(connection, said, messages) => {
                let queued = self.line(connection, |line| line.say_all(said, &messages));
                self.said(connection, said, queued, messages.len());
            }
            Command::SendEncoded(connection, prepared) => {
                let queued = self.line(connection, |line| line.say(&prepared));
                self.said(connection, prepared.said, queued, prepared.said.count as usize);
            }
            Command::Connect(connection) => {
                let _ = self.line(connection, |line| {
                    line.begin(now);
                    Ok(())
                });
            }
            Command::Disconnect(connection) => {
                let _ = self.line(connection, |line| {
                    line.close(None);
                    Ok(())
                });
                if let Some(line) = self.lines.get(connection) {
                    Arc::make_mut(&mut self.facts).connections[connection] = line.facts();
                }
            }
            Command::Prepare(stream) => match self.streams.prepare(*stream, world.ports) {
                Ok(expected) => self.known.add(expected),
                Err(problems) => self.end(Ended::Unusable(problems), now),
            },
            Command::Begin(stream, span) => {
                let limit = self.started_at.saturating_add(self.needs.limit);
                self.on_streams(now, |it| it.begin(stream, span, now, limit));
            }
            Command::ChangeRate(stream, rate) => {
                self.on_streams(now, |it| it.change_rate(stream, rate, now));
            }
            Command::Stop(stream) => self.on_streams(now, |it| it.stop(stream)),
            Command::Watch(port, watch) => match self.watching.get_mut(port) {
                Some(watching) => {
                    if watching.set(watch).is_err() {
                        self.context.findings_mut().beyond("ENTRIES_MAX");
                    }
                }
                None => self.end(Ended::Port(port, "no such port".into()), now),
            },
            Command::Snmp(agent, asked, question) => {
                let refused = self.asked.ask(world.agents, agent, (asked, question), now);
                if let Some(answer) = refused {
                    self.tell_soon(DeferredEvent::Snmp(agent, asked, now, answer));
                }
            }
            Command::RunHostTask(task) => {
                let refused = self.hosts.begin(world.hosts.as_deref_mut(), task);
                refused.into_iter().for_each(|done| self.tell_soon(DeferredEvent::HostTask(done)));
            }
            Command::CancelHostTask => {
                let done = self.cancel_host_task(world);
                done.into_iter().for_each(|done| self.tell_soon(DeferredEvent::HostTask(done)));
            }
            Command::Counters => {
                let counters = world.ports.iter_mut().map(|port| port.counters()).collect();
                self.tell_soon(DeferredEvent::Counters(counters));
            }
        }
    }

    /// Applies `act` to a connection. A connection that was never needed is not up.
    fn line(
        &mut self,
        connection: usize,
        act: impl FnOnce(&mut SwitchConnection) -> Result<(), SendError>,
    ) -> Result<(), SendError> {
        self.lines.get_mut(connection).map_or(Err(SendError::NotUp), act)
    }

    fn said(
        &mut self,
        connection: usize,
        said: MessageRange,
        queued: Result<(), SendError>,
        messages: usize,
    ) {
        if let Err(why) = queued {
            if let Some(line) = self.lines.get_mut(connection) {
                line.unsent(messages as u64);
            }
            if let SendError::Limit(name) = why {
                self.context.findings_mut().beyond_by(name, messages as u64);
            }
            self.tell_soon(DeferredEvent::Unsent(connection, said, why));
        }
    }

    fn on_streams(&mut self, now: Nanos, act: impl FnOnce(&mut Streams) -> StreamProblems) {
        if let Err(problems) = act(&mut self.streams) {
            self.end(Ended::Unusable(problems), now);
        }
    }
}
