//! Flow-mods ahead of barriers: many at a time, never too many, and each one's fate known.
//!
//! A barrier follows each batch, and only so many barriers may be unanswered; so the switch always
//! has work, and never more than a bounded amount of it. OpenFlow 1.0.0, 5.3.7: what a flow-mod
//! did wrong has been said when the barrier after it is answered, so an error is matched with its
//! flow by transaction id while the flow is under way.

use std::collections::VecDeque;

use openflow::codec::nicira::put_message;
use openflow::header::Xid;
use openflow::model::flow::{FlowMod, FlowModCommand};
use openflow::model::matching::FieldMatch;
use openflow::model::message::{ErrorMessage, Message};
use openflow::model::nicira::NiciraMessage;
use openflow::session::SendError;
use openflow::version::MessageKind;
use packet::time::Nanos;

use super::{ControlError, Controller, Meanwhile, UNASKED_MAX};

/// What became of a row of flow-mods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Flow-mods that were sent.
    pub flows: u64,
    /// Those that the switch refused: their place in the row, from 0, and why.
    pub refused: Vec<(u64, ErrorMessage)>,
    /// From the first flow-mod to the answer of the last barrier.
    pub duration: Nanos,
}

/// Flow-mods under way.
#[derive(Debug, Default)]
struct UnderWay {
    /// Transaction and place of flow-mods, oldest first.
    flows: VecDeque<(Xid, u64)>,
    /// Each unanswered barrier, and how many of `flows` lie before it and after the one before.
    barriers: VecDeque<(Xid, usize)>,
    since_barrier: usize,
    installed: Installed,
}

/// In OpenFlow's form, or in Nicira's where only that can leave bits of a port open.
fn message_of(flow: FlowMod) -> Message {
    let part = |row: &FieldMatch| !row.is_exact() && row.field.maskable_by_nicira();
    if !flow.matching.fields().iter().any(part) {
        return Message::FlowMod(flow);
    }
    // Whatever that cannot say either is refused as OpenFlow's form is.
    match put_message(&NiciraMessage::FlowMod(flow.clone())) {
        Ok(body) => Message::Experimenter(body),
        Err(_) => Message::FlowMod(flow),
    }
}

impl Controller {
    /// Sends these flow-mods and waits until the switch says that all are done. Flows that it
    /// refuses are in the result; they do not stop the others.
    pub fn install(
        &mut self,
        flows: impl IntoIterator<Item = FlowMod>,
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<Installed, ControlError> {
        let started_at = meanwhile.now();
        let mut waiting = flows.into_iter().map(message_of).peekable();
        let mut under_way = UnderWay::default();
        let mut deadline = started_at.saturating_add(self.settings.reply_timeout);
        self.barriers.clear();
        loop {
            let now = meanwhile.now();
            self.send_ahead(&mut waiting, &mut under_way, now)?;
            self.turn(now)?;
            if self.settle(&mut under_way) {
                deadline = now.saturating_add(self.settings.reply_timeout);
            }
            if waiting.peek().is_none() && under_way.is_empty() {
                under_way.installed.duration = meanwhile.now().since(started_at);
                return Ok(under_way.installed);
            }
            if now >= deadline {
                return Err(self.silent(MessageKind::BarrierRequest));
            }
            if under_way.is_full(self.settings.barriers_ahead) || waiting.peek().is_none() {
                self.rest(meanwhile, deadline);
            }
        }
    }

    /// Deletes every entry of the switch, and waits until that is done.
    pub fn delete_all(&mut self, meanwhile: &mut dyn Meanwhile) -> Result<Installed, ControlError> {
        let all = FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() };
        self.install([all], meanwhile)
    }

    /// Queues flow-mods and barriers until enough are ahead or no more are taken.
    fn send_ahead(
        &mut self,
        waiting: &mut std::iter::Peekable<impl Iterator<Item = Message>>,
        under_way: &mut UnderWay,
        now: Nanos,
    ) -> Result<(), ControlError> {
        // All that is under way may be refused, and each refusal has to be kept.
        let ahead = self.settings.barriers_ahead.clamp(1, UNASKED_MAX / 2);
        let batch = self.settings.batch_flows.clamp(1, UNASKED_MAX / (ahead + 1));
        while !under_way.is_full(ahead) {
            let is_due = under_way.since_barrier >= batch;
            let message = match waiting.peek() {
                Some(flow) if !is_due => flow,
                None if under_way.since_barrier == 0 => return Ok(()),
                _ => &Message::BarrierRequest,
            };
            let xid = match self.session.send(message, now) {
                Ok(xid) => xid,
                Err(SendError::TransmitFull { .. } | SendError::PendingFull { .. }) => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            if matches!(message, Message::BarrierRequest) {
                let flows = std::mem::take(&mut under_way.since_barrier);
                under_way.barriers.push_back((xid, flows));
            } else {
                waiting.next();
                under_way.flows.push_back((xid, under_way.installed.flows));
                under_way.installed.flows += 1;
                under_way.since_barrier += 1;
            }
        }
        Ok(())
    }

    /// Takes errors about flows under way and answered barriers; whether there were any.
    fn settle(&mut self, under_way: &mut UnderWay) -> bool {
        let refused = under_way.installed.refused.len();
        self.unasked.errors.retain_mut(|(xid, error)| {
            let flow = under_way.flows.iter().find(|(other, _)| other == xid);
            let Some(&(_, place)) = flow else { return true };
            under_way.installed.refused.push((place, error.clone()));
            false
        });
        let mut is_further = under_way.installed.refused.len() > refused;
        for xid in self.barriers.drain(..) {
            // A switch may answer barriers late, but not out of order: those before are done too.
            let Some(last) = under_way.barriers.iter().position(|&(other, _)| other == xid) else {
                continue;
            };
            for (_, flows) in under_way.barriers.drain(..=last) {
                under_way.flows.drain(..flows);
            }
            is_further = true;
        }
        is_further
    }
}

impl UnderWay {
    fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.barriers.is_empty()
    }

    fn is_full(&self, barriers_ahead: usize) -> bool {
        self.barriers.len() >= barriers_ahead.max(1)
    }
}
