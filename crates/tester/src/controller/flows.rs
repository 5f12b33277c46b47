//! Flow-mods with barriers: many in flight, a bounded number, each with a known result.
//!
//! A barrier follows each batch, and the number of outstanding barriers is limited. So the switch
//! always has work, of a bounded amount. The switch sends a flow-mod's error before the reply of
//! the next barrier (OpenFlow 1.0.0, section 5.3.7). So errors are matched to flows by transaction
//! id while the flow is in flight.

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

use super::{ControlError, Controller, UNASKED_MAX, WaitHook};

/// Result of a sequence of flow-mods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// Flow-mods sent.
    pub flows: u64,
    /// Rejected flow-mods: index in the sequence, from 0, and error.
    pub refused: Vec<(u64, ErrorMessage)>,
    /// Time from the first flow-mod to the reply of the last barrier.
    pub duration: Nanos,
}

/// Flow-mods in flight.
#[derive(Debug, Default)]
struct InFlight {
    /// Transaction id and index of each flow-mod, oldest first.
    flows: VecDeque<(Xid, u64)>,
    /// Outstanding barriers, each with the number of `flows` between it and the previous one.
    barriers: VecDeque<(Xid, usize)>,
    since_barrier: usize,
    installed: Installed,
}

/// Uses Nicira's flow-mod if only that supports the mask, else OpenFlow's.
fn message_of(flow: FlowMod) -> Message {
    let part = |row: &FieldMatch| !row.is_exact() && row.field.maskable_by_nicira();
    if !flow.matching.fields().iter().any(part) {
        return Message::FlowMod(flow);
    }
    // A mask that Nicira's format does not support either is rejected as in OpenFlow's format.
    match put_message(&NiciraMessage::FlowMod(flow.clone())) {
        Ok(body) => Message::Experimenter(body),
        Err(_) => Message::FlowMod(flow),
    }
}

impl Controller {
    /// Sends flow-mods and waits until the switch confirms all of them.
    ///
    /// Rejected flows are in the result and do not stop the others.
    pub fn install(
        &mut self,
        flows: impl IntoIterator<Item = FlowMod>,
        hook: &mut dyn WaitHook,
    ) -> Result<Installed, ControlError> {
        let started_at = hook.now();
        let mut waiting = flows.into_iter().map(message_of).peekable();
        let mut under_way = InFlight::default();
        let mut deadline = started_at.saturating_add(self.settings.reply_timeout);
        self.barriers.clear();
        loop {
            let now = hook.now();
            self.send_ahead(&mut waiting, &mut under_way, now)?;
            self.turn(now)?;
            if self.settle(&mut under_way) {
                deadline = now.saturating_add(self.settings.reply_timeout);
            }
            if waiting.peek().is_none() && under_way.is_empty() {
                under_way.installed.duration = hook.now().since(started_at);
                return Ok(under_way.installed);
            }
            if now >= deadline {
                return Err(self.silent(MessageKind::BarrierRequest));
            }
            if under_way.is_full(self.settings.barriers_ahead) || waiting.peek().is_none() {
                self.rest(hook, deadline);
            }
        }
    }

    /// Deletes all flow entries of the switch and waits for the confirmation.
    pub fn delete_all(&mut self, hook: &mut dyn WaitHook) -> Result<Installed, ControlError> {
        let all = FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() };
        self.install([all], hook)
    }

    /// Queues flow-mods and barriers, up to the limit of outstanding barriers or a full send queue.
    fn send_ahead(
        &mut self,
        waiting: &mut std::iter::Peekable<impl Iterator<Item = Message>>,
        under_way: &mut InFlight,
        now: Nanos,
    ) -> Result<(), ControlError> {
        // All flow-mods in flight can be rejected, and each error must be stored.
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

    /// Processes errors and barrier replies of flows in flight. Returns whether there were any.
    fn settle(&mut self, under_way: &mut InFlight) -> bool {
        let refused = under_way.installed.refused.len();
        self.unasked.errors.retain_mut(|(xid, error)| {
            let flow = under_way.flows.iter().find(|(other, _)| other == xid);
            let Some(&(_, place)) = flow else { return true };
            under_way.installed.refused.push((place, error.clone()));
            false
        });
        let mut is_further = under_way.installed.refused.len() > refused;
        for xid in self.barriers.drain(..) {
            // A switch can reply to barriers late, but not out of order: earlier ones are done too.
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

impl InFlight {
    fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.barriers.is_empty()
    }

    fn is_full(&self, barriers_ahead: usize) -> bool {
        self.barriers.len() >= barriers_ahead.max(1)
    }
}
