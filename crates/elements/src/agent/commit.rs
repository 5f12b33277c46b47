//! Bundle commits: messages that are applied together, all or none.
//!
//! Source: OpenFlow switch specification 1.4.1, sections 6.8 and 7.3.9; 1.5.1, section 6.8.6.
//!
//! A commit takes as many turns as it needs. It applies the messages in order, without effect on
//! forwarding. If one fails, all before it are rolled back. Otherwise one step publishes all of
//! them. Then the bundle's frames are sent and its requests are forwarded to other controllers.
//!
//! Invariants:
//!
//! - After a rejected commit the switch has its earlier state.
//! - No frame is forwarded by a part of a bundle.
//! - Controllers are notified of a bundle's changes only after all of it is published.

use std::collections::VecDeque;
use std::task::Poll;

use openflow::codec::bundled_bytes;
use openflow::header::Xid;
use openflow::model::Message;
use openflow::model::bundle::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFlags, BundleProperty,
};
use openflow::version::ErrorCode;
use packet::time::Nanos;

use super::bundle::{Bundle, Bundled};
use super::change::{Origin, PartialChange, StateChange};
use super::connection::Connection;
use super::ongoing::OngoingChange;
use super::packet_out::DeferredPacketOut;
use super::ports::PortTable;
use super::{Agent, Datapath, modelled};
use crate::budget::{MESSAGE_STEPS, RUN_STEPS};

/// Effects of a bundle other than on tables, groups and meters.
#[derive(Default)]
pub(super) struct Transaction {
    /// The port settings after the bundle, if it changes any.
    pub(super) ports: Option<PortTable>,
    /// Deferred work until the whole bundle is visible, in order.
    pub(super) late: VecDeque<DeferredWork>,
}

/// Work that is deferred until a bundle is visible.
pub(super) enum DeferredWork {
    /// Sends a frame.
    Frame(DeferredPacketOut),
    /// Forwards a request to other controllers.
    Request(Xid, Box<StateChange>),
}

/// A bundle commit in progress.
pub(super) struct Commit {
    bundle: Bundle,
    who: Origin,
    /// Position of the next message in the bundle.
    next: usize,
    /// A message that takes several turns, and its remaining work.
    unfinished: Option<(StartedMessage, PartialChange)>,
    transaction: Transaction,
    phase: Phase,
}

/// A message of a bundle that has begun.
struct StartedMessage {
    /// Its position in the bundle.
    place: usize,
    xid: Xid,
    message: StateChange,
}

/// Phase of a commit.
enum Phase {
    /// Applies the messages in order.
    Changing,
    /// Rolls back the messages, as one of them failed.
    RollingBack,
    /// Discards the deferred work after the rollback.
    Cancelling,
    /// Publishes the bundle.
    Publishing,
    /// Performs the deferred work.
    Following,
}

impl Commit {
    /// Returns the bundle's ID and flags.
    pub(super) fn names(&self) -> (u32, BundleFlags) {
        (self.bundle.id(), self.bundle.flags())
    }

    /// Defers forwarding of a request to other controllers until the bundle is published.
    fn follow_later(&mut self, StartedMessage { xid, message, .. }: StartedMessage) {
        if let StateChange::GroupMod(_) | StateChange::MeterMod(_) = &message {
            self.transaction.late.push_back(DeferredWork::Request(xid, Box::new(message)));
        }
    }
}

impl Agent {
    /// Opens, closes, commits or discards a bundle.
    pub(super) fn bundle_control(
        &mut self,
        at: usize,
        xid: Xid,
        control: &BundleControl,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        self.check_not_slave(at)?;
        if control.is_reply {
            return Err(ErrorCode::BundleBadType);
        }
        let now = datapath.now;
        let BundleControl { id, flags, .. } = *control;
        let bundles = &mut self.connections[at].bundles;
        match control.command {
            BundleCommand::Open => bundles.open(id, flags, &self.limits, now)?,
            BundleCommand::Close => bundles.close(id, flags, now)?,
            BundleCommand::Discard => bundles.discard(id)?,
            BundleCommand::Commit => {
                if let Some(due) = self.due(control, now)? {
                    let bundles = &mut self.connections[at].bundles;
                    return bundles.schedule(id, flags, (due, xid), now);
                }
                let bundle = self.connections[at].bundles.commit(id, flags, now)?;
                self.begin_commit(at, xid, bundle, datapath);
                return Ok(());
            }
        }
        self.bundle_done(at, xid, (id, flags), control.command);
        Ok(())
    }

    /// Returns when a commit is scheduled, if later than now.
    fn due(&self, control: &BundleControl, now: Nanos) -> Result<Option<Nanos>, ErrorCode> {
        let time = control.properties.iter().find_map(|property| match property {
            BundleProperty::Time(time) => Some(*time),
            BundleProperty::Experimenter(_) => None,
        });
        match (time, control.flags.contains(BundleFlags::TIME)) {
            (Some(time), true) => self.schedule.due(time, self.wall(now), now),
            (None, false) => Ok(None),
            _ => Err(ErrorCode::BundleBadFlags),
        }
    }

    /// Replies to a bundle control request.
    pub(super) fn bundle_done(
        &mut self,
        at: usize,
        xid: Xid,
        (id, flags): (u32, BundleFlags),
        command: BundleCommand,
    ) {
        let properties = Vec::new();
        let reply = BundleControl { id, command, is_reply: true, flags, properties };
        self.connections[at].reply(xid, &Message::BundleControl(reply));
    }

    /// Adds the message of the session's last event to a bundle.
    pub(super) fn bundle_add(
        &mut self,
        at: usize,
        add: BundleAddMessage,
        now: Nanos,
    ) -> Result<(), ErrorCode> {
        self.check_not_slave(at)?;
        StateChange::of(*add.message).map_err(|_| ErrorCode::BundleMessageUnsupported)?;
        let Connection { bundles, session, .. } = &mut self.connections[at];
        let inner = bundled_bytes(session.message_bytes());
        bundles.add(add.id, add.flags, inner, &self.limits, now)
    }

    /// Commits a bundle that is due, and discards bundles that were idle too long.
    pub(super) fn bundles_due(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        let idle_max = Nanos::from_millis(self.limits.bundle_ms);
        let connection = &mut self.connections[at];
        self.counters.bundles_expired += connection.bundles.expire(idle_max, datapath.now) as u64;
        while self.ongoing.is_none()
            && self.is_settled
            && let Some((bundle, xid)) = self.connections[at].bundles.due(datapath.now)
        {
            self.begin_commit(at, xid, bundle, datapath);
            self.continue_change(datapath);
        }
    }

    /// Begins to commit a bundle. A message that fails gets its own error reply.
    fn begin_commit(&mut self, at: usize, xid: Xid, bundle: Bundle, datapath: &mut Datapath<'_>) {
        datapath.pipeline.begin();
        modelled::begin_bundle(datapath);
        let who = self.who(at, xid);
        let commit = Commit {
            bundle,
            who,
            next: 0,
            unfinished: None,
            transaction: Transaction::default(),
            phase: Phase::Changing,
        };
        self.ongoing = Some(OngoingChange::commit(who, commit));
    }

    /// Continues a commit until its end, or until the share of the turn is spent.
    pub(super) fn continue_commit(
        &mut self,
        commit: &mut Commit,
        datapath: &mut Datapath<'_>,
    ) -> Poll<Result<(), ErrorCode>> {
        loop {
            match commit.phase {
                Phase::Changing => match self.change_next(commit, datapath) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(true) => commit.phase = Phase::Publishing,
                    Poll::Ready(false) => commit.phase = Phase::RollingBack,
                },
                Phase::RollingBack => {
                    let Datapath { pipeline, budget, .. } = datapath;
                    let (progress, used) =
                        budget.run(RUN_STEPS, |steps| pipeline.take_back_some(steps));
                    if !progress.is_done() {
                        match self.pauses(used, datapath) {
                            true => return Poll::Pending,
                            false => continue,
                        }
                    }
                    commit.phase = Phase::Cancelling;
                }
                Phase::Cancelling => {
                    if datapath.must_pause() {
                        return Poll::Pending;
                    }
                    datapath.budget.spend(MESSAGE_STEPS);
                    match commit.transaction.late.pop_front() {
                        Some(DeferredWork::Frame(departure)) => departure.cancel(&mut self.buffers),
                        Some(DeferredWork::Request(..)) => {}
                        None => return Poll::Ready(Err(ErrorCode::BundleMessageFailed)),
                    }
                }
                Phase::Publishing => {
                    let Datapath { pipeline, outputs, budget, .. } = datapath;
                    let (progress, used) =
                        budget.run(RUN_STEPS, |steps| pipeline.keep_some(outputs, steps));
                    if !progress.is_done() {
                        match self.pauses(used, datapath) {
                            true => return Poll::Pending,
                            false => continue,
                        }
                    }
                    self.set_ports(commit.transaction.ports.take(), datapath);
                    commit.phase = Phase::Following;
                }
                Phase::Following => {
                    if datapath.must_pause() {
                        return Poll::Pending;
                    }
                    datapath.budget.spend(MESSAGE_STEPS);
                    match commit.transaction.late.pop_front() {
                        Some(DeferredWork::Frame(departure)) => {
                            departure.leave(&mut self.buffers, datapath);
                        }
                        Some(DeferredWork::Request(xid, message)) => {
                            self.forward_request(commit.who.owner, xid, &message);
                        }
                        None => return Poll::Ready(Ok(())),
                    }
                }
            }
        }
    }

    /// Applies the next messages of a bundle. Returns false if one fails, after sending its error.
    fn change_next(&mut self, commit: &mut Commit, datapath: &mut Datapath<'_>) -> Poll<bool> {
        loop {
            if datapath.must_pause() {
                return Poll::Pending;
            }
            self.transaction = Some(std::mem::take(&mut commit.transaction));
            let (begun, outcome) = match commit.unfinished.take() {
                Some((begun, mut unfinished)) => {
                    let asked = (Origin { xid: begun.xid, ..commit.who }, &begun.message);
                    let outcome = match self.continue_message(asked, &mut unfinished, datapath) {
                        Poll::Pending => Ok(Some(unfinished)),
                        Poll::Ready(outcome) => outcome.map(|()| None),
                    };
                    (begun, outcome)
                }
                None => {
                    let Some((bundled, next)) = commit.bundle.message_at(commit.next) else {
                        commit.transaction = self.transaction.take().unwrap_or_default();
                        return Poll::Ready(true);
                    };
                    let Bundled { xid, message, .. } = bundled;
                    let place = std::mem::replace(&mut commit.next, next);
                    let who = Origin { xid, ..commit.who };
                    let outcome = self.change(who, &message, datapath);
                    datapath.budget.spend(MESSAGE_STEPS);
                    (StartedMessage { place, xid, message }, outcome)
                }
            };
            commit.transaction = self.transaction.take().unwrap_or_default();
            match outcome {
                Ok(None) => commit.follow_later(begun),
                Ok(Some(unfinished)) => {
                    commit.unfinished = Some((begun, unfinished));
                    return Poll::Pending;
                }
                Err(code) => {
                    self.refuse_one(commit, begun.place, code);
                    return Poll::Ready(false);
                }
            }
        }
    }

    /// Whether a change pauses until the next turn. If `used` is zero, it waits for forwarding
    /// threads.
    pub(super) fn pauses(&mut self, used: usize, datapath: &Datapath<'_>) -> bool {
        self.waits_for_frames |= used == 0;
        self.waits_for_frames || datapath.must_pause()
    }

    /// Sends the error for the message of a bundle that failed.
    fn refuse_one(&mut self, commit: &Commit, began: usize, code: ErrorCode) {
        let owner = commit.who.owner;
        let connection = self.connections.iter_mut().find(|connection| connection.id == owner);
        if let (Some(connection), Some((failed, _))) = (connection, commit.bundle.message_at(began))
        {
            connection.refuse(failed.xid, code, failed.bytes);
        }
    }

    /// Applies the port settings of a bundle.
    fn set_ports(&mut self, after: Option<PortTable>, datapath: &mut Datapath<'_>) {
        for port in after.iter().flat_map(PortTable::descriptions) {
            if let Some(port) = self.ports.set_config(port.number, port.config) {
                self.set_port(port, datapath);
            }
        }
    }
}
