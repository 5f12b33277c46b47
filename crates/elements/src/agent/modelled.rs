//! Differences of the agent when the switch emulates a hardware model: messages take time, the
//! model decides when barrier replies are sent, and table changes pass on to the modelled hardware.
//!
//! Invariant: without a model nothing here has an effect.

use dataplane::flow::{FlowFilter, FlowSpec};
use openflow::model::{FlowMod, FlowModCommand, Message};
use openflow::session;
use openflow::version::Version;
use packet::time::Nanos;

use crate::hardware_model::shadow_table::MatchKind;
use crate::hardware_model::tcam::FlowId;
use crate::translate::flow::modify_rules;

use super::{Agent, Datapath};

/// Whether the model has room for the flow entry that a flow-mod adds, if it adds one. Existing
/// entries that match `filter` are modified instead.
pub(super) fn has_room(
    (change, version): (&FlowMod, Version),
    (spec, filter): (&FlowSpec, &FlowFilter),
    datapath: &mut Datapath<'_>,
) -> bool {
    let Some(model) = &mut datapath.model else { return true };
    let adds = change.command == FlowModCommand::Add
        || modify_rules(change, version).add
            && datapath.pipeline.tables().totals(filter).entries == 0;
    let kind = MatchKind::of(spec.matching.names_every_field(), spec.matching.fields_asked());
    !adds || model.knows(&FlowId::of_spec(spec)) || model.promises(kind)
}

/// Prepares the model for the messages of a bundle, the first time or again.
pub(super) fn begin_bundle(datapath: &mut Datapath<'_>) {
    datapath.model.iter_mut().for_each(|model| model.settle_promises());
}

/// Updates the hardware counters of flow entries that are about to change.
pub(super) fn before(command: FlowModCommand, spec: &FlowSpec, datapath: &mut Datapath<'_>) {
    let (Some(model), now) = (&mut datapath.model, datapath.now) else { return };
    if command != FlowModCommand::Add || model.knows(&FlowId::of_spec(spec)) {
        model.act(now);
        model.credit(Some(datapath.pipeline), now);
    }
}

/// Whether the reply to a message has counters of flow entries.
fn reads_counters(message: &Message) -> bool {
    match message {
        Message::FlowMod(change) => {
            matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict)
        }
        Message::MultipartRequest(_) => true,
        _ => false,
    }
}

impl Agent {
    /// Begins a turn: advances the hardware to the current time.
    pub(super) fn begin_modelled(&mut self, datapath: &mut Datapath<'_>) {
        let Some(model) = &mut datapath.model else { return };
        model.act(datapath.now);
        model.taken_at = datapath.now;
        let connections = &self.connections;
        let is_there = |id| connections.iter().any(|it| it.id == id && it.ended.is_none());
        model.agent_cpu.keep(is_there);
        // Timeouts of flow entries are reported before other changes.
        self.tell_all(datapath);
    }

    /// Returns until when the model delays a message, if it does.
    pub(super) fn waits(
        &mut self,
        at: usize,
        event: &session::Event,
        datapath: &mut Datapath<'_>,
    ) -> Option<Nanos> {
        let (Some(model), session::Event::Message { message, .. }) = (&mut datapath.model, event)
        else {
            return None;
        };
        let now = datapath.now;
        if model.is_full() {
            return Some(model.next_event().unwrap_or(now).max(now));
        }
        let connection = &self.connections[at];
        let cost = model.cost(message);
        match model.agent_cpu.turn(connection.id, connection.received_at, || cost, now) {
            Ok(taken_at) => model.taken_at = taken_at,
            Err(until) => return Some(until),
        }
        if reads_counters(message) {
            model.act(now);
            model.credit(Some(datapath.pipeline), now);
        }
        None
    }

    /// Ends a message: passes its changes on to the hardware.
    pub(super) fn done_modelled(&mut self, is_statistics: bool, datapath: &mut Datapath<'_>) {
        if datapath.model.is_none() {
            return;
        }
        self.tell_all(datapath);
        let Some(model) = &mut datapath.model else { return };
        model.settle_promises();
        model.follow(datapath.pipeline);
        if model.done(is_statistics, datapath.now) {
            let ends = |it: &mut super::Connection| {
                it.end("closed by the hardware model: its table is nearly full")
            };
            self.connections.iter_mut().for_each(ends);
        }
    }

    /// Reports all pending events.
    fn tell_all(&mut self, datapath: &mut Datapath<'_>) {
        loop {
            self.send_async_messages(datapath);
            datapath.pipeline.tell(datapath.outputs);
            if self.news.is_empty() && datapath.outputs.events.is_empty() {
                return;
            }
        }
    }

    /// Ends a turn: sends due barrier replies and schedules the next wake-up.
    pub(super) fn end_modelled(&mut self, datapath: &mut Datapath<'_>) {
        let Some(model) = &mut datapath.model else { return };
        model.act(datapath.now);
        while let Some((id, xid)) = model.answered(datapath.now) {
            let asked = self.connections.iter_mut().find(|it| it.id == id && it.ended.is_none());
            if let Some(connection) = asked {
                connection.reply(xid, &Message::BarrierReply);
            }
        }
        datapath.outputs.wake_at(model.next_event());
    }
}
