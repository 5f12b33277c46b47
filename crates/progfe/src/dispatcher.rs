//! Dispatcher: delivers frames from Divert to their agents, and injects frames of the agents by
//! Inject.
//!
//! The caller that runs the element drives the dispatcher: it passes the time and calls again when
//! work is due. Agents follow the program. An agent with unchanged name, type and settings survives
//! a program change; other agents start new.
//!
//! Invariant: one turn processes at most [`FRAMES_PER_TURN`] frames. An agent whose frames come
//! back to it cannot block the element.

use core::net::IpAddr;
use std::collections::VecDeque;

use dataplane::forwarder::Outputs;
use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::agent::wire::{Outbox, Wire};
use crate::agent::{
    Agent, AgentEvent, AgentRequest, Around, PortSeen, Sent, StatusValue, Tables, made, made_mac,
};
use crate::diagnostic::Problems;
use crate::element::Element;
use crate::element::subscriptions::Pace;
use crate::executor::Enforcer;
use crate::lfb::{DivertDestination, Lfb, meta_id};
use crate::program::{self, Program, Source, class_id};

/// Maximum number of frames delivered to agents in one turn.
pub const FRAMES_PER_TURN: usize = 1024;
/// Maximum number of waiting reports.
pub const REPORTS_MAX: usize = 1024;

/// All agents of an element.
pub struct Dispatcher {
    slots: Vec<Slot>,
    watches: Vec<Watch>,
    /// Generation of the program that the agents belong to.
    generation: Option<u64>,
    ports: Vec<PortSeen>,
    hardware: Vec<(PortNo, Mac)>,
    /// Nanoseconds since 1970 at time zero.
    epoch: u64,
    chance: u64,
    reports: VecDeque<Report>,
    counters: Counters,
    /// Actions of agents in this turn, stored to reuse the allocation.
    sent: Vec<Sent>,
    occurred: Vec<AgentEvent>,
}

struct Slot {
    declared: program::Agent,
    agent: Box<dyn Agent>,
    /// Index of its Inject in the program.
    inject: Option<usize>,
    /// Frames delivered to the agent, injected, and lost because there is no Inject.
    told: u64,
    sent: u64,
    no_inject: u64,
}

struct Watch {
    agent: String,
    event: String,
    pace: Pace,
}

/// An agent's event that a watch reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Name of the agent.
    pub agent: String,
    /// The event.
    pub occurred: AgentEvent,
    /// Number of events of this kind that were suppressed since the last report.
    pub untold: u64,
}

/// Counters of the dispatcher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames for agents that the program no longer has.
    pub no_agent: u64,
    /// Reports lost because the queue was full.
    pub reports_lost: u64,
}

impl Dispatcher {
    /// Creates a dispatcher without agents. `seed` is a secret for random numbers.
    pub fn new(seed: u64) -> Dispatcher {
        Dispatcher {
            slots: Vec::new(),
            watches: Vec::new(),
            generation: None,
            ports: Vec::new(),
            hardware: Vec::new(),
            epoch: 0,
            chance: seed,
            reports: VecDeque::new(),
            counters: Counters::default(),
            sent: Vec::new(),
            occurred: Vec::new(),
        }
    }

    /// Sets the hardware addresses of ports.
    pub fn set_hardware(&mut self, ports: Vec<(PortNo, Mac)>) {
        self.hardware = ports;
        self.generation = None;
    }

    /// Sets the time of day.
    pub fn set_date(&mut self, since_1970: Nanos, now: Nanos) {
        self.epoch = since_1970.0.wrapping_sub(now.0);
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Delivers frames and time to agents, and injects their frames. Returns true if there was any
    /// work.
    pub fn serve<E: Enforcer>(
        &mut self,
        element: &mut Element<E>,
        now: Nanos,
        out: &mut Outputs,
    ) -> bool {
        self.follow(element, now, out);
        let mut frames = 0;
        while frames < FRAMES_PER_TURN
            && let Some(told) = element.next_told_to(|to| matches!(to, DivertDestination::Agent(_)))
        {
            frames += 1;
            let DivertDestination::Agent(name) = &told.to else { continue };
            let name = name.clone();
            let Some(at) = self.slots.iter().position(|slot| *slot.declared.name == *name) else {
                self.counters.no_agent += 1;
                continue;
            };
            self.slots[at].told += 1;
            self.with(at, (element, now, out), |agent, around| agent.frame_came(told, around));
        }
        let mut served = frames > 0;
        for at in 0..self.slots.len() {
            if self.slots[at].agent.due().is_some_and(|due| due <= now) {
                served = true;
                self.with(at, (element, now, out), |agent, around| agent.time_came(around));
            }
        }
        served
    }

    /// Returns the time of the next work that does not depend on a frame.
    pub fn due(&self) -> Option<Nanos> {
        // New agents get the time immediately.
        let fresh = self.generation.is_none().then_some(Nanos::ZERO);
        self.slots.iter().filter_map(|slot| slot.agent.due()).chain(fresh).min()
    }

    /// Sends a command to an agent and returns the result.
    pub fn ask<E: Enforcer>(
        &mut self,
        (name, ask): (&str, &AgentRequest),
        element: &mut Element<E>,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<StatusValue, String> {
        self.follow(element, now, out);
        let Some(at) = self.slots.iter().position(|slot| slot.declared.name == name) else {
            return Err(format!("the program has no agent {name:?}"));
        };
        self.with(at, (element, now, out), |agent, around| agent.asked(ask, around))
    }

    /// Returns the names of agents with a stream to an external program, in program order.
    pub fn wires(&mut self) -> Vec<String> {
        let slots = self.slots.iter_mut();
        let slots = slots.filter_map(|slot| slot.agent.wire().is_some().then_some(&slot.declared));
        slots.map(|declared| declared.name.clone()).collect()
    }

    /// Calls a function with an agent's stream. Returns none if there is no such agent.
    pub fn with_wire<E: Enforcer, R>(
        &mut self,
        name: &str,
        (element, now, out): (&mut Element<E>, Nanos, &mut Outputs),
        act: impl FnOnce(&mut dyn Wire, &mut Around<'_>) -> R,
    ) -> Option<R> {
        let at = self.slots.iter().position(|slot| slot.declared.name == name)?;
        self.with(at, (element, now, out), |agent, around| Some(act(agent.wire()?, around)))
    }

    /// Returns the outgoing data of an agent's stream.
    pub fn outbox(&mut self, name: &str) -> Option<&mut Outbox> {
        let slot = self.slots.iter_mut().find(|slot| slot.declared.name == name)?;
        slot.agent.wire().map(Wire::outbox)
    }

    /// Returns the next event of an agent that a watch reports.
    pub fn next_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns state and counters of all agents, by name.
    pub fn facts(&self, now: Nanos) -> Vec<(String, StatusValue)> {
        let facts = self.slots.iter().map(|slot| {
            let facts = StatusValue::from([
                ("type", StatusValue::text(&slot.declared.kind)),
                ("told", slot.told.into()),
                ("sent", slot.sent.into()),
                ("no_inject", slot.no_inject.into()),
                ("state", slot.agent.facts(now)),
            ]);
            (slot.declared.name.clone(), facts)
        });
        facts.collect()
    }

    /// Updates the agents to the running program.
    fn follow<E: Enforcer>(&mut self, element: &mut Element<E>, now: Nanos, out: &mut Outputs) {
        if self.generation == Some(element.generation()) {
            return;
        }
        self.generation = Some(element.generation());
        let program = element.program().clone();
        self.ports.clear();
        for port in &program.ports {
            let mac = self.hardware.iter().find(|(number, _)| *number == port.number);
            let mac = mac.map_or_else(|| made_mac(port.number), |(_, mac)| *mac);
            self.ports.push(PortSeen { number: port.number, mac });
        }
        let mut olds: Vec<Slot> = std::mem::take(&mut self.slots);
        let mut fresh = Vec::new();
        for declared in &program.agents {
            let inject = inject_of(&program, &declared.name);
            let same = olds.iter().position(|old| old.declared.says_as(declared));
            if let Some(at) = same {
                let old = olds.swap_remove(at);
                self.slots.push(Slot { declared: declared.clone(), inject, ..old });
                continue;
            }
            // A running program was checked, so its agents have no problems.
            let Some(agent) = made(&program, declared, &mut Problems::default()) else { continue };
            let declared = declared.clone();
            fresh.push(self.slots.len());
            self.slots.push(Slot { declared, agent, inject, told: 0, sent: 0, no_inject: 0 });
        }
        let olds = std::mem::take(&mut self.watches);
        let of_agent = |watch: &program::Watch| {
            let Source::Agent(agent) = &watch.source else { return None };
            let (agent, event) = (agent.clone(), watch.event.clone());
            Some(Watch { agent, event, pace: Pace::of(watch) })
        };
        self.watches = program.watches.iter().filter_map(of_agent).collect();
        for watch in &mut self.watches {
            let same = |old: &&Watch| (&old.agent, &old.event) == (&watch.agent, &watch.event);
            if let Some(old) = olds.iter().find(same) {
                watch.pace.keep(&old.pace);
            }
        }
        for at in fresh {
            self.with(at, (element, now, out), |agent, around| agent.time_came(around));
        }
    }

    /// Calls a function with an agent and performs the actions that it requests.
    fn with<E: Enforcer, R>(
        &mut self,
        at: usize,
        (element, now, out): (&mut Element<E>, Nanos, &mut Outputs),
        act: impl FnOnce(&mut dyn Agent, &mut Around<'_>) -> R,
    ) -> R {
        let mut sent = std::mem::take(&mut self.sent);
        let mut occurred = std::mem::take(&mut self.occurred);
        let mut around = Around {
            now,
            epoch: self.epoch,
            ports: &self.ports,
            tables: &mut *element,
            sent: &mut sent,
            occurred: &mut occurred,
            chance: &mut self.chance,
        };
        let slot = &mut self.slots[at];
        let outcome = act(&mut *slot.agent, &mut around);
        for Sent { output, mut meta, mut frame } in sent.drain(..) {
            let Some(inject) = slot.inject else {
                slot.no_inject += 1;
                continue;
            };
            meta.retain(|(id, _)| *id != meta_id::REDIRECT_INDEX);
            meta.push((meta_id::REDIRECT_INDEX, output.into()));
            slot.sent += 1;
            element
                .inject(inject, (&mut frame, &meta), now, out)
                .expect("an Inject has no inputs and is in the running program");
        }
        let name = slot.declared.name.clone();
        for occurred in occurred.drain(..) {
            self.report(&name, occurred);
        }
        (self.sent, self.occurred) = (sent, occurred);
        outcome
    }

    fn report(&mut self, agent: &str, occurred: AgentEvent) {
        let watch = self.watches.iter_mut();
        let mut watch = watch.filter(|it| it.agent == agent && it.event == occurred.event);
        let value = occurred.facts.number("value").and_then(|value| u64::try_from(value).ok());
        let untold = watch.next().and_then(|watch| watch.pace.told(occurred.at, value));
        let Some(untold) = untold else { return };
        if self.reports.len() < REPORTS_MAX {
            self.reports.push_back(Report { agent: agent.to_owned(), occurred, untold });
        } else {
            self.counters.reports_lost += 1;
        }
    }
}

/// Returns the first Inject of an agent.
fn inject_of(program: &Program, agent: &str) -> Option<usize> {
    let is_its = |at: &usize| {
        let value = program.component(*at, "Agent");
        program.instances[*at].class == class_id::INJECT
            && value.as_ref().and_then(forces::Value::text) == Some(agent)
    };
    (0..program.instances.len()).find(is_its)
}

impl<E: Enforcer> Tables for Element<E> {
    fn station(&self, table: &str, mac: Mac, vid: u16, now: Nanos) -> Option<u32> {
        let instance = self.program().find(table)?;
        match self.enforcer().block(instance)? {
            Lfb::LearnSearch(table) => table.station(mac, vid, now),
            _ => None,
        }
    }

    fn set_neighbour(
        &mut self,
        encap: &str,
        at: (PortNo, IpAddr),
        header: Option<(Mac, Mac, u16)>,
    ) {
        if let Some(Lfb::Encap(encap)) = self.block_mut(encap) {
            encap.set_neighbour(at, header);
        }
    }

    fn clear_neighbours(&mut self, encap: &str) {
        if let Some(Lfb::Encap(encap)) = self.block_mut(encap) {
            encap.clear_neighbours();
        }
    }

    fn number(&self, instance: &str, path: &str, now: Nanos) -> Option<u64> {
        let at = self.program().find(instance)?;
        let path = self.program().class_of(at).path(path).ok()?;
        self.get(at, &path, now).ok()?.unsigned()
    }
}
