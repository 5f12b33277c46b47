//! A change of the tables that takes several turns, and the messages that wait for its end.
//!
//! There is at most one. It belongs to one connection, and continues in that connection's share of
//! each turn.
//!
//! | message of another connection | waits |
//! |---|---|
//! | changes flow entries, groups, meters, tables or ports; commits a bundle; sends a buffered frame | always |
//! | reads flow entries, groups, meters or tables | for a bundle, whose changes may be rolled back |
//! | all others | never |
//!
//! When the change ends, connections that waited are served before its owner.
//!
//! Forwarding threads see a change when they have finished the current batch. If that takes longer,
//! all further changes wait for them, and so do replies to connections that changed something.
//! Everything else continues.
//!
//! Invariant: a change that has begun is completed, even if its connection ends. Then only the
//! reply is lost.

use std::task::Poll;

use openflow::model::bundle::BundleCommand;
use openflow::model::{Action, Message, MultipartRequestBody};
use openflow::session::Event;
use openflow::version::ErrorCode;

use super::change::{Origin, PartialChange, StateChange};
use super::commit::Commit;
use super::ways::FeaturesChange;
use super::{Agent, Datapath};

/// A change that takes several turns.
pub(super) struct OngoingChange {
    /// The connection that requested it.
    pub(super) owner: u32,
    who: Origin,
    what: ChangeKind,
    /// The start of the request, for an error message.
    request: Vec<u8>,
}

enum ChangeKind {
    /// One message.
    Message(Box<StateChange>, Box<PartialChange>),
    /// A bundle commit.
    Commit(Box<Commit>),
    /// A change of table features.
    Features(Box<FeaturesChange>),
}

impl OngoingChange {
    /// Creates the change of one unfinished message.
    pub(super) fn message(
        who: Origin,
        message: StateChange,
        unfinished: PartialChange,
    ) -> OngoingChange {
        let what = ChangeKind::Message(Box::new(message), Box::new(unfinished));
        OngoingChange { owner: who.owner, who, what, request: Vec::new() }
    }

    /// Creates the change of a bundle commit.
    pub(super) fn commit(who: Origin, commit: Commit) -> OngoingChange {
        let what = ChangeKind::Commit(Box::new(commit));
        OngoingChange { owner: who.owner, who, what, request: Vec::new() }
    }

    /// Creates a change of table features, which are checked first.
    pub(super) fn features(who: Origin, change: FeaturesChange) -> OngoingChange {
        let what = ChangeKind::Features(Box::new(change));
        OngoingChange { owner: who.owner, who, what, request: Vec::new() }
    }

    /// Whether it is a bundle commit, whose changes may be rolled back.
    pub(super) fn is_commit(&self) -> bool {
        matches!(self.what, ChangeKind::Commit(_))
    }
}

impl Agent {
    /// Keeps the start of the request that began the change.
    pub(super) fn keep_request(&mut self, bytes: &[u8]) {
        self.ongoing.iter_mut().for_each(|ongoing| ongoing.request = bytes.to_vec());
    }

    /// Continues a change whose connection has ended.
    pub(super) fn continue_orphan(&mut self, datapath: &mut Datapath<'_>) {
        let Some(ongoing) = &self.ongoing else { return };
        let owner = ongoing.owner;
        if !self.connections.iter().any(|connection| connection.id == owner) {
            self.continue_change(datapath);
        }
    }

    /// Returns the index of a connection, if it still exists.
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        self.connections.iter().position(|connection| connection.id == id)
    }

    /// Continues the change until its end, or until its share of the turn is spent. Waits while
    /// forwarding threads do not see earlier changes.
    pub(super) fn continue_change(&mut self, datapath: &mut Datapath<'_>) {
        if !self.is_settled {
            self.waits_for_frames = true;
            return;
        }
        let Some(mut ongoing) = self.ongoing.take() else { return };
        if let Some(at) = self.place_of(ongoing.owner) {
            self.connections[at].has_changed = true;
        }
        let outcome = match &mut ongoing.what {
            ChangeKind::Message(message, unfinished) => {
                self.continue_message((ongoing.who, message), unfinished, datapath)
            }
            ChangeKind::Commit(commit) => self.continue_commit(commit, datapath),
            ChangeKind::Features(change) => self.continue_features(ongoing.who, change, datapath),
        };
        match outcome {
            Poll::Pending => self.ongoing = Some(ongoing),
            Poll::Ready(outcome) => {
                self.end_change(ongoing, outcome);
                self.has_released = self.connections.iter().any(|it| it.is_blocked);
            }
        }
    }

    fn end_change(&mut self, ongoing: OngoingChange, outcome: Result<(), ErrorCode>) {
        let OngoingChange { owner, who, what, request } = ongoing;
        let at = self.place_of(owner);
        match (outcome, what, at) {
            (Ok(()), ChangeKind::Message(message, _), _) => self.tell_request(who, &message),
            (Ok(()), ChangeKind::Commit(commit), Some(at)) => {
                self.bundle_done(at, who.xid, commit.names(), BundleCommand::Commit);
            }
            (Err(code), _, Some(at)) => {
                self.counters.failed += 1;
                self.connections[at].refuse(who.xid, code, &request);
            }
            (Ok(()), ChangeKind::Features(_), Some(_)) | (_, _, None) => {}
        }
    }

    /// Whether an event of a connection must wait for the end of a change, or until forwarding
    /// threads see earlier changes.
    pub(super) fn waits_for_change(&self, at: usize, event: &Event) -> bool {
        let Event::Message { message, .. } = event else { return false };
        let Some(ongoing) = &self.ongoing else { return !self.is_settled && changes(message) };
        debug_assert_ne!(
            ongoing.owner, self.connections[at].id,
            "the owner of a change waits on its own connection"
        );
        changes(message) || ongoing.is_commit() && reads(message)
    }
}

/// Whether a message may change state that an ongoing change uses.
pub(super) fn changes(message: &Message) -> bool {
    match message {
        Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::MeterMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::Experimenter(_) => true,
        Message::BundleControl(control) => control.command == BundleCommand::Commit,
        Message::PacketOut(packet) => {
            packet.buffer_id.is_some() || packet.actions.iter().any(uses_what_changes)
        }
        Message::MultipartRequest(request) => {
            matches!(&request.body, MultipartRequestBody::TableFeatures(_))
        }
        _ => false,
    }
}

/// Whether an action refers to a group or a meter.
fn uses_what_changes(action: &Action) -> bool {
    matches!(action, Action::Group(_) | Action::Meter(_))
}

/// Whether a message reads state that a bundle may change.
fn reads(message: &Message) -> bool {
    use MultipartRequestBody as Ask;
    let Message::MultipartRequest(request) = message else { return false };
    match &request.body {
        Ask::Flow(_)
        | Ask::FlowStats(_)
        | Ask::Aggregate(_)
        | Ask::Table
        | Ask::TableFeatures(_)
        | Ask::TableDesc
        | Ask::Group(_)
        | Ask::GroupDesc(_)
        | Ask::Meter(_)
        | Ask::MeterConfig(_)
        | Ask::FlowMonitor(_)
        | Ask::Experimenter(_) => true,
        Ask::Desc
        | Ask::Port(_)
        | Ask::PortDesc(_)
        | Ask::Queue { .. }
        | Ask::QueueDesc { .. }
        | Ask::GroupFeatures
        | Ask::MeterFeatures
        | Ask::ControllerStatus
        | Ask::BundleFeatures(_) => false,
    }
}
