//! A node in virtual time: it takes turns with the tester, and a fixed time for each frame.

use instrument::controller::play::{self, Play, Turn};
use instrument::controller::{ControlError, Controller};
use instrument::rig::sim::{Device, SimRig};
use instrument::rig::{Rig, RigError};
use instrument::trial::{Trial, TrialReport};
use packet::time::Nanos;
use ports::channel::Channel;
use switch::control::request::{Document, Request, What};
use switch::node::Node;

use super::turns::{Turns, patient};
use crate::target::{orders, witness};

/// In virtual time a controller that gives orders looks for answers so often.
const ORDERS_TURN: Nanos = Nanos::from_micros(20);

/// A node in virtual time, which takes a fixed time for each frame.
pub(super) struct Simulated {
    pub(super) node: Option<Box<Node>>,
    pub(super) service: Nanos,
    pub(super) busy_until: Nanos,
    /// How long it has been busy in all.
    pub(super) busy: Nanos,
    /// An SNMP agent that says what the node has counted.
    pub(super) agent: Option<witness::Simulated>,
    /// When the program that it runs is put in place anew, the first at last.
    pub(super) swaps: Vec<Nanos>,
    /// Orders that a controller gives it, and what has come of them.
    pub(super) play: Option<Play>,
    pub(super) played: Option<Result<play::Played, ControlError>>,
}

/// A trial in virtual time, with its orders over this channel.
pub(super) fn simulated(
    rig: &mut SimRig<Simulated>,
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
    let mut turns = Turns { node, now, is_live: false };
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

impl Device for Simulated {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        let node = self.node.as_mut()?;
        let busy = self.busy;
        let answer = self.agent.as_mut().and_then(|agent| agent.step(node, busy, now));
        if now < self.busy_until {
            return answer.into_iter().chain([self.busy_until]).min();
        }
        if let Some(mut play) = self.play.take() {
            match play.turn(&mut || now) {
                Ok(Turn::Over) => self.played = Some(Ok(play.finish())),
                Ok(_) => self.play = Some(play),
                Err(error) => self.played = Some(Err(error)),
            }
        }
        if self.swaps.pop_if(|at| *at <= now).is_some() {
            swap(node, now);
        }
        let turn = node.turn(now);
        node.serve(now);
        node.events.clear();
        if turn.frames > 0 && self.service > Nanos::ZERO {
            let span = Nanos(self.service.0 * turn.frames as u64);
            self.busy_until = now.saturating_add(span);
            self.busy = self.busy.saturating_add(span);
            return answer.into_iter().chain([self.busy_until]).min();
        }
        let next = self.play.is_some().then(|| now.saturating_add(ORDERS_TURN));
        let swap = self.swaps.last().copied();
        node.next_event(now).into_iter().chain(next).chain(answer).chain(swap).min()
    }
}

/// Gives an element the program that it runs again.
pub(super) fn swap(node: &mut Node, now: Nanos) {
    let program = node.answer(Request::Get(What::Program), now);
    let text = program.ok().and_then(|it| it["text"].as_str().map(str::to_owned));
    let (name, text) = ("again.fe.xml".to_owned(), text.expect("an element tells its program"));
    let answer = node.answer(Request::Load(Document { name, text, number: None }), now);
    answer.expect("what ran before can run again");
}
