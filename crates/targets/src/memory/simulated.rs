//! A node in virtual time: it alternates with the tester, and spends a fixed service time on each
//! frame.

use channel::Channel;
use elements::control::request::{ProgramSource, Request, Resource};
use elements::node::Node;
use packet::frame::Batch;
use packet::time::Nanos;
use tester::controller::play::{self, Play, PlayStep};
use tester::controller::{ControlError, Controller};
use tester::rig::sim::{Device, SimRig};
use tester::rig::{Rig, RigError};
use tester::trial::{Trial, TrialReport};

use super::service::FrameService;
use super::turns::{NodeWait, patient};
use crate::{orders, snmp};

/// Interval at which a controller polls for replies in virtual time.
const ORDERS_TURN: Nanos = Nanos::from_micros(20);

/// A node in virtual time with a fixed service time per frame.
pub(super) struct SimulatedNode {
    pub(super) node: Option<Box<Node>>,
    /// Service time of a frame.
    pub(super) service_time: Nanos,
    /// Holds the frames of a turn for their service time.
    pub(super) service: FrameService,
    /// End of the service of the last turn's frames.
    pub(super) busy_until: Option<Nanos>,
    /// Total busy time.
    pub(super) busy: Nanos,
    /// SNMP agent that reports the node's counters.
    pub(super) agent: Option<snmp::SimulatedAgent>,
    /// Times of program swaps, the first one last.
    pub(super) swaps: Vec<Nanos>,
    /// Commands of a controller, and their results.
    pub(super) play: Option<Play>,
    pub(super) played: Option<Result<play::ScriptReport, ControlError>>,
}

impl SimulatedNode {
    /// Creates an idle node.
    pub(super) fn new(node: Option<Box<Node>>, service: FrameService, service_time: Nanos) -> Self {
        let (busy_until, busy, agent) = (None, Nanos::ZERO, None);
        let (swaps, play, played) = (Vec::new(), None, None);
        SimulatedNode { node, service_time, service, busy_until, busy, agent, swaps, play, played }
    }
}

/// Runs a trial in virtual time, with its controller commands over this channel.
pub(super) fn simulated(
    rig: &mut SimRig<SimulatedNode>,
    trial: &Trial,
    channel: Option<Box<dyn Channel>>,
) -> Result<TrialReport, RigError> {
    let (Some(script), Some(channel)) = (&trial.orders, channel) else {
        return match trial.streams.is_empty() {
            true => Ok(orders::nothing_sent(trial)),
            false => rig.trial(trial),
        };
    };
    let (now, node) = (rig.now(), rig.device.node.as_deref_mut());
    let node = node.expect("only switches are given orders");
    let mut turns = NodeWait { node, now, is_live: false };
    let controller = Controller::start(channel, patient(orders::settings(script)), &mut turns);
    rig.device.play = Some(controller.map_err(RigError::Orders)?.play(script));
    let report = match trial.streams.is_empty() {
        true => orders::nothing_sent(trial),
        false => rig.trial(trial)?,
    };
    if let Some(play) = &mut rig.device.play {
        play.end();
    }
    while rig.device.played.is_none() {
        rig.idle(ORDERS_TURN)?;
    }
    let played = rig.device.played.take().transpose().map_err(RigError::Orders)?;
    Ok(TrialReport { played, ..report })
}

impl Device for SimulatedNode {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        let node = self.node.as_mut()?;
        let busy = self.busy;
        let answer = self.agent.as_mut().and_then(|agent| agent.step(node, busy, now));
        if let Some(until) = self.busy_until {
            let leaves = release(node, now);
            if now < until {
                return answer.into_iter().chain(leaves).chain([until]).min();
            }
            // Messages about the frames leave after the frames' service, as the frames do.
            self.busy_until = None;
            node.serve(now);
            node.events.clear();
        }
        if let Some(mut play) = self.play.take() {
            match play.turn(&mut || now) {
                Ok(PlayStep::Over) => self.played = Some(Ok(play.finish())),
                Ok(_) => self.play = Some(play),
                Err(error) => self.played = Some(Err(error)),
            }
        }
        if self.swaps.pop_if(|at| *at <= now).is_some() {
            swap(node, now);
        }
        self.service.begin(now);
        let turn = node.turn(now);
        let span = Nanos(self.service_time.0 * turn.frames as u64);
        self.service.end(span);
        if span > Nanos::ZERO {
            let until = now.saturating_add(span);
            self.busy_until = Some(until);
            self.busy = self.busy.saturating_add(span);
            return answer.into_iter().chain(release(node, now)).chain([until]).min();
        }
        node.serve(now);
        node.events.clear();
        let next = self.play.is_some().then(|| now.saturating_add(ORDERS_TURN));
        let swap = self.swaps.last().copied();
        node.next_event(now).into_iter().chain(next).chain(answer).chain(swap).min()
    }
}

/// Passes on the frames of a busy node that are due; returns when the next one leaves.
fn release(node: &mut Node, now: Nanos) -> Option<Nanos> {
    let mut nothing = Batch::new(0);
    let forward_ports = node.forward.forward_ports.iter_mut();
    let leaving = forward_ports.filter_map(|forward_port| {
        // A port with a lost link reports it in the next turn.
        let _ = forward_port.port.receive(&mut nothing, now);
        forward_port.port.next_event()
    });
    leaving.min()
}

/// Loads an element's own program again.
pub(super) fn swap(node: &mut Node, now: Nanos) {
    let program = node.answer(Request::Get(Resource::Program), now);
    let text = program.ok().and_then(|it| it["text"].as_str().map(str::to_owned));
    let (name, text) = ("again.fe.xml".to_owned(), text.expect("an element returns its program"));
    let answer = node.answer(Request::Load(ProgramSource { name, text, number: None }), now);
    answer.expect("what ran before can run again");
}
