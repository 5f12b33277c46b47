//! A complete switch, bridge, router or ProGFE element: ports, data plane and control.
//!
//! The same value runs in a process ([`crate::process`]), in a thread over memory ports, and in a
//! simulation. Its owner calls `turn` for frames and `serve` for control, and passes the current
//! time. Invariant: it never blocks and reads no clock.

use std::fmt;
use std::os::fd::RawFd;

use channel::{Channel, ChannelError, Url};
use netio::port::PortError;
use packet::frame::PortNo;
use packet::time::Nanos;
use serde_json::Value;

use crate::agent::{Agent, Datapath};
use crate::budget::{Budget, MESSAGE_STEPS};
use crate::config::{Config, FastPathMode, Kind, OpenFlowConfig, ProGfeConfig, Problem};
use crate::control::{Control, Request, RequestOutcome, Task, TaskOutcome};
use crate::datapath::{DataPlane, DataPlaneError};
use crate::event::Event;
use crate::fast_path::FastPath;
use crate::forces::Forces;
use crate::forward::{ForwardLoop, NumberedPort, Turn, mac_of};
use crate::hardware_model;
use crate::losses::LossReport;
use crate::pmd::PmdThreads;
use crate::program_compiler::ProgramCompiler;
use crate::services::Services;
use crate::services::ethernet::agent_port::AgentPort;
use crate::services::http::Http;

mod requests;

use requests::{Listeners, answer_for, answer_or_wait, carry_or_wait};

/// Budget steps of control work in one turn without a clock: 256 flow-mods.
const STEPS_A_TURN: u64 = 256 * MESSAGE_STEPS as u64;

/// Budget of the control work of one turn where no limit is configured.
const DEFAULT_TURN: Nanos = Nanos::from_micros(200);

/// How long a switch waits for its controllers after its capture files have ended.
const CONTROLLER_LINGER: Nanos = Nanos::from_secs(1);

/// A switch, bridge, router or ProGFE element.
pub struct Node {
    /// Ports and data plane.
    pub forward: ForwardLoop<DataPlane>,
    /// Events for the log. The node's owner drains them.
    pub events: Vec<Event>,
    /// Frame losses of ports that were reported so far.
    losses: LossReport,
    agent: Option<Agent>,
    forces: Option<Forces>,
    control: Option<Control>,
    /// Protocol agents of a ProGFE element.
    services: Option<Services>,
    /// HTTP server that accepts programs.
    http: Option<Http>,
    /// Ethernet agent that accepts programs.
    agent_port: Option<AgentPort>,
    /// The forwarding threads, if there are any.
    pmd: Option<PmdThreads>,
    /// Whether forwarding threads see every change. Replies to changes, and further changes, wait
    /// for it.
    is_settled: bool,
    /// The compile thread, if there is one.
    compiler: Option<ProgramCompiler>,
}

/// Why a node could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The configuration is invalid.
    Config(Vec<Problem>),
    /// A port could not be opened: its number, and why.
    Port(PortNo, PortError),
    /// A control channel could not be opened.
    Channel(ChannelError),
    /// A forwarding thread could not be started or pinned to its core.
    Thread(std::io::Error),
    /// The router configuration or the program is invalid.
    DataPlane(DataPlaneError),
    /// The fast path is required and could not be started, for this reason.
    FastPath(String),
}

impl Node {
    /// Creates a node on open ports. Their numbers must equal those of the configuration. `seed` is
    /// a secret for hashing.
    pub fn open(
        config: &Config,
        mut ports: Vec<NumberedPort>,
        seed: u64,
        now: Nanos,
    ) -> Result<Node, OpenError> {
        let problems = config.validate();
        if !problems.is_empty() {
            return Err(OpenError::Config(problems));
        }
        let numbers = ports.iter().map(|(number, _)| *number);
        assert!(numbers.eq(config.port_numbers()), "the ports match the configuration");
        let mut plane = DataPlane::new(config, &ports, seed).map_err(OpenError::DataPlane)?;
        plane.set_queues(config, now);
        let (switch, progfe) = match &config.kind {
            Kind::OpenFlow(switch) => (Some(switch), None),
            Kind::ProGfe(progfe) => (None, Some(progfe)),
            Kind::Bridge(_) | Kind::Router(_) | Kind::Tagger(_) => (None, None),
        };
        let services = progfe.map(|config| {
            let mac = |(number, port): &NumberedPort| (*number, mac_of(*number, port.as_ref()));
            Services::new(config, ports.iter().map(mac).collect(), seed)
        });
        let agent_port = progfe.and_then(|config| AgentPort::open(config.ethernet?, &mut ports));
        let mut forward = ForwardLoop::new(ports, plane, config.service);
        let mut fast_path_events = Vec::new();
        let ForwardLoop { forwarder, forward_ports, fast_path, .. } = &mut forward;
        match FastPath::open(config.fast_path, forwarder, forward_ports, seed, now) {
            Ok(None) => {}
            Ok(Some(mut opened)) => {
                let (ports, mode) = opened.extent();
                fast_path_events.push(Event::FastPathOn(ports, mode));
                opened.follow(forward_ports, &mut fast_path_events, now);
                *fast_path = Some(opened);
            }
            Err(why) if config.fast_path == FastPathMode::Required => {
                return Err(OpenError::FastPath(why));
            }
            Err(why) => fast_path_events.push(Event::FastPathOff(why)),
        }
        let open_agent = |switch: &OpenFlowConfig| {
            let told = config.model.as_ref().map(|model| hardware_model::told(model, switch));
            Agent::open(told.as_ref().unwrap_or(switch), &forward.forward_ports, now)
        };
        let mut agent = switch.map(open_agent).transpose()?;
        let open_forces =
            |config: &ProGfeConfig| Forces::open(&config.forces, &config.program, now);
        let mut forces = progfe.map(open_forces).transpose()?.flatten();
        let control = config.control.as_deref().map(Control::open).transpose()?;
        let events = agent.as_mut().map(|agent| std::mem::take(&mut agent.events));
        let mut events = events.unwrap_or_default();
        events.append(&mut fast_path_events);
        events.extend(forces.iter_mut().flat_map(|forces| forces.events.drain(..)));
        let http = progfe.and_then(|config| config.http.as_ref()).map(Http::open).transpose()?;
        if let Some(http) = &http {
            events.push(Event::TakesPrograms(http.address().to_string()));
            if http.accepts_anyone() {
                events.push(Event::AcceptsAnyone(http.address().to_string()));
            }
        }
        Ok(Node {
            forward,
            events,
            losses: LossReport::default(),
            agent,
            forces,
            control,
            services,
            http,
            agent_port,
            pmd: None,
            is_settled: true,
            compiler: None,
        })
    }

    /// Starts to compile and free programs in a separate thread.
    pub fn start_compiler(&mut self) {
        if let DataPlane::ProGfe(element) = &mut self.forward.forwarder {
            element.keep_gone();
            self.compiler = Some(ProgramCompiler::default());
        }
    }

    /// Whether a program is being compiled in the compile thread.
    pub fn is_preparing(&mut self, now: Nanos) -> bool {
        self.compiler.as_mut().is_some_and(|compiler| compiler.is_busy(now))
    }

    /// Moves forwarding to threads that own the ports.
    pub fn leave_frames_to(&mut self, pmd: PmdThreads) {
        self.pmd = Some(pmd);
    }

    /// Whether the node forwards frames itself, without forwarding threads.
    pub fn has_frames(&self) -> bool {
        self.pmd.is_none()
    }

    /// Takes over events and counters from the forwarding threads.
    fn hear(&mut self, now: Nanos) {
        let ForwardLoop { forwarder, outputs, forward_ports, turns_apart, .. } = &mut self.forward;
        if let (Some(pmd), Some(pipeline)) = (&mut self.pmd, forwarder.openflow()) {
            pmd.take(pipeline, outputs, forward_ports, turns_apart, now);
        }
    }

    /// Forwards frames: one turn of the forwarding loop.
    pub fn turn(&mut self, now: Nanos) -> Turn {
        self.forward.turn(now)
    }

    /// Serves controllers and clients with a budget of steps, which makes runs reproducible. See
    /// [`Node::serve_within`].
    pub fn serve(&mut self, now: Nanos) -> bool {
        self.serve_within(now, Budget::of_steps(STEPS_A_TURN))
    }

    /// Serves controllers and clients up to the budget: processes received messages and sends
    /// queued ones. If work is left, [`Node::next_event`] returns the current time. Returns whether
    /// a controller sent anything.
    pub fn serve_within(&mut self, now: Nanos, budget: Budget<'_>) -> bool {
        let messages = self.messages();
        self.hear(now);
        while let Some((number, up)) = self.forward.link_change(now) {
            self.link_changed(number, up, now);
        }
        let ForwardLoop { forward_ports, fast_path, .. } = &mut self.forward;
        if let Some(fast_path) = fast_path {
            fast_path.follow(forward_ports, &mut self.events, now);
        }
        self.losses.report(&mut self.forward.forward_ports, &mut self.events, now);
        let Node { forward, agent, forces, control, events, services, http, agent_port, .. } = self;
        let (pmd, compiler) = (&mut self.pmd, &mut self.compiler);
        if let Some(agent) = agent {
            let ForwardLoop { forwarder, outputs, forward_ports, due, fast_path, .. } = forward;
            if let Some((pipeline, model)) = forwarder.ordered() {
                let is_settled = self.is_settled || pipeline.is_settled();
                let mut datapath = Datapath {
                    pipeline,
                    model,
                    outputs,
                    forward_ports,
                    fast_path: fast_path.as_ref(),
                    due,
                    now,
                    budget,
                    is_settled,
                };
                agent.serve(&mut datapath);
            }
            if let Some(pipeline) = forwarder.openflow() {
                // Replies to changes confirm that frames are forwarded by all of them.
                if let Some(fast_path) = fast_path {
                    fast_path.follow_tables(pipeline, now);
                }
                self.is_settled = match pmd {
                    Some(pmd) => pmd.settle(pipeline),
                    None => pipeline.is_settled(),
                };
            }
            forward.send_waiting(now);
            agent.flush(self.is_settled, now);
            events.append(&mut agent.events);
        }
        if let (Some(forces), DataPlane::ProGfe(element)) = (&mut *forces, &mut forward.forwarder) {
            element.add_mirrored();
            if forces.turn(element, &mut forward.outputs, now) {
                // The new program has other timers.
                forward.due = Some(now);
            }
            forward.send_waiting(now);
            events.append(&mut forces.events);
        }
        let counted = Listeners {
            control: control.as_ref().map(Control::counters),
            http: http.as_ref().map(Http::counters),
        };
        if let Some(control) = control {
            let mut budget = budget;
            budget.extend();
            control.turn(budget, &mut |task, budget| {
                add_mirrored(forward);
                let controlling = (agent.as_ref(), services.as_mut(), counted);
                let request = match task {
                    Task::Whole(request) => request,
                    task => return carry_or_wait(task, forward, compiler.as_mut(), now, budget),
                };
                match answer_or_wait(request, forward, controlling, compiler.as_mut(), now) {
                    RequestOutcome::Now(outcome) => TaskOutcome::Done(outcome),
                    RequestOutcome::Later(request) => TaskOutcome::Later(Task::Whole(request)),
                }
            });
            forward.send_waiting(now);
        }
        if let Some(http) = http {
            http.turn(now, &mut |request| {
                add_mirrored(forward);
                let controlling = (agent.as_ref(), services.as_mut(), counted);
                answer_or_wait(request, forward, controlling, compiler.as_mut(), now)
            });
            forward.send_waiting(now);
        }
        if let Some(agent_port) = agent_port {
            let answers = agent_port.turn(now, &mut |request| {
                answer_for(request, forward, (agent.as_ref(), services.as_mut(), counted), now)
            });
            agent_port.answer(answers, &mut forward.outputs);
            if let Some(services) = services {
                services.ethernet = Some(agent_port.counters());
            }
        }
        if let Some(services) = services {
            serve_element(services, forward, (forces.as_mut(), control.as_mut()), now);
        }
        let ForwardLoop { forwarder, forward_ports, fast_path, .. } = &mut *forward;
        if let (Some(fast_path), DataPlane::ProGfe(element)) = (fast_path, forwarder) {
            fast_path.follow_program(element, forward_ports, events, now);
        }
        if let (Some(compiler), DataPlane::ProGfe(element)) = (compiler, &mut forward.forwarder) {
            element.take_retired().into_iter().for_each(|gone| compiler.free(gone));
        }
        self.messages() != messages
    }

    /// Returns the number of messages received from controllers.
    fn messages(&self) -> u64 {
        let forces = self.forces.as_ref().map_or(0, |forces| forces.messages);
        self.agent.as_ref().map_or(0, |agent| agent.counters.messages) + forces
    }

    /// Processes a request as the control socket does.
    pub fn answer(&mut self, request: Request, now: Nanos) -> Result<Value, String> {
        self.hear(now);
        add_mirrored(&mut self.forward);
        let listeners = Listeners {
            control: self.control.as_ref().map(Control::counters),
            http: self.http.as_ref().map(Http::counters),
        };
        let controlling = (self.agent.as_ref(), self.services.as_mut(), listeners);
        answer_for(request, &mut self.forward, controlling, now)
    }

    fn link_changed(&mut self, number: PortNo, up: bool, now: Nanos) {
        if let DataPlane::ProGfe(element) = &mut self.forward.forwarder {
            element.set_link(number, up, now, &mut self.forward.outputs);
        }
        if let Some(pipeline) = self.forward.forwarder.openflow() {
            pipeline.set_link(number, up);
        }
        let link = self
            .forward
            .forward_port(number)
            .map(|forward_port| forward_port.port.link())
            .unwrap_or_default();
        if let Some(agent) = &mut self.agent {
            agent.link_changed(number, up, &link);
        }
        let fault =
            self.forward.forward_port(number).and_then(|forward_port| forward_port.fault.as_ref());
        self.events.push(match (up, fault) {
            (true, _) => Event::PortUp(number),
            (false, Some(fault)) => Event::PortDown(number, fault.to_string()),
            (false, None) => Event::PortDown(number, "no link".into()),
        });
    }

    /// Adds a controller over a channel that the caller made (in memory, for example). Nodes other
    /// than OpenFlow switches drop the channel.
    pub fn adopt(&mut self, channel: Box<dyn Channel>, now: Nanos) {
        if let Some(agent) = &mut self.agent {
            agent.adopt(channel, now);
        }
    }

    /// Returns the addresses on which the node listens for controllers, with the ports that the
    /// system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Url> {
        self.agent.iter().flat_map(Agent::addresses)
    }

    /// Whether the primary control element is associated.
    pub fn is_controlled(&self) -> bool {
        self.forces.as_ref().is_some_and(Forces::is_controlled)
    }

    /// Sets the time of day, in nanoseconds since 1970, for scheduled requests.
    pub fn set_wall_clock(&mut self, since_1970: Nanos, now: Nanos) {
        if let Some(agent) = &mut self.agent {
            agent.set_wall_clock(since_1970, now);
        }
        if let Some(services) = &mut self.services {
            services.set_date(since_1970, now);
        }
    }

    /// Maximum duration of control work in one turn while frames arrive.
    pub fn busy_turn(&self) -> Nanos {
        self.agent.as_ref().map_or(DEFAULT_TURN, Agent::busy_turn)
    }

    /// Returns the time of the next turn and `serve` that do not depend on received data.
    pub fn next_event(&self, now: Nanos) -> Option<Nanos> {
        let agent = self.agent.as_ref().and_then(|agent| agent.next_event(now));
        let control = self.control.as_ref().and_then(|control| control.next_event(now));
        let forces = self.forces.as_ref().and_then(|forces| forces.next_event(now));
        let told = (!self.forward.outputs.events.is_empty()).then_some(now);
        let services = self.services.as_ref().and_then(|services| services.due(now));
        let http = self.http.as_ref().and_then(|http| http.due(now));
        let settles = (!self.is_settled).then_some(now);
        let fast_path = self.forward.fast_path.as_ref().and_then(|it| it.next_event(now));
        let all = [
            self.forward.next_event(),
            settles,
            agent,
            forces,
            control,
            services,
            http,
            told,
            fast_path,
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the descriptors to poll, each with whether to poll for writing as well. Ports
    /// without a descriptor (memory) must be busy-polled: see [`Node::is_pollable`].
    pub fn descriptors(&self) -> impl Iterator<Item = (RawFd, bool)> + '_ {
        let working =
            self.forward.forward_ports.iter().filter(|forward_port| forward_port.fault.is_none());
        let ports = working
            .filter_map(|forward_port| forward_port.port.descriptor())
            .map(|port| (port, false));
        let agent = self.agent.iter().flat_map(Agent::descriptors);
        let control = self.control.iter().flat_map(Control::descriptors);
        let forces = self.forces.iter().flat_map(Forces::descriptors);
        let services = self.services.iter().flat_map(Services::descriptors);
        let http = self.http.iter().flat_map(Http::descriptors);
        let clients = control.chain(services).chain(http);
        ports.chain(agent).chain(forces).chain(clients.map(|client| (client, false)))
    }

    /// Whether every port has a descriptor that signals received frames.
    pub fn is_pollable(&self) -> bool {
        self.forward
            .forward_ports
            .iter()
            .all(|forward_port| forward_port.port.descriptor().is_some())
    }

    /// Returns how long to wait for controllers' decisions about the last frames, after all capture
    /// files have ended.
    pub fn last_words(&self) -> Nanos {
        let controllers = self.agent.as_ref().map_or(0, Agent::controllers);
        if controllers > 0 { CONTROLLER_LINGER } else { Nanos::ZERO }
    }

    /// Whether all ports are capture files that have ended, and no frame is pending.
    pub fn is_over(&self) -> bool {
        self.forward.is_over()
    }
}

/// Adds the frames that the kernel decided to the counters of an element.
fn add_mirrored(forward: &mut ForwardLoop<DataPlane>) {
    if let DataPlane::ProGfe(element) = &mut forward.forwarder {
        element.add_mirrored();
    }
}

/// Serves the agents of an element, and sends events to clients that watch.
fn serve_element(
    services: &mut Services,
    forward: &mut ForwardLoop<DataPlane>,
    (mut forces, mut control): (Option<&mut Forces>, Option<&mut Control>),
    now: Nanos,
) {
    let DataPlane::ProGfe(element) = &mut forward.forwarder else { return };
    services.serve(element, &mut forward.outputs, now);
    if forces.is_none() {
        services.take_control_elements_part(element);
    }
    while let Some(news) = services.next_event(element) {
        if let Some(control) = &mut control {
            control.tell(&news.told);
        }
        if let (Some(forces), Some(happening)) = (&mut forces, &news.of_agent) {
            forces.agent_said(happening, element, &mut forward.outputs, now);
        }
    }
    forward.send_waiting(now);
}

impl From<ChannelError> for OpenError {
    fn from(error: ChannelError) -> Self {
        OpenError::Channel(error)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Config(problems) => {
                let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
            OpenError::Port(number, error) => write!(f, "port {number}: {error}"),
            OpenError::Channel(error) => write!(f, "{error}"),
            OpenError::Thread(error) => {
                write!(f, "cannot start a forwarding thread on that core: {error}")
            }
            OpenError::DataPlane(error) => write!(f, "{error}"),
            OpenError::FastPath(why) => write!(f, "cannot start the fast path: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests;
