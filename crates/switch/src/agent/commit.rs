//! Bundles: messages done together, all of them or none.
//!
//! Source: OpenFlow switch specification 1.4.1, sections 6.8 and 7.3.9; 1.5.1, section 6.8.6. A commit takes as many
//! turns as it needs. Its messages are done in order, apart from what frames are forwarded by. If one of them
//! fails, all before it are rolled back. Otherwise one step publishes all of them, and then the frames are sent and the
//! requests forwarded that the bundle asked for.
//!
//! Invariants:
//!
//! - After a refused commit the switch is as it was before.
//! - No frame goes by a part of a bundle.
//! - Controllers hear of a bundle's changes only after all of it is published.

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
use super::change::{Unfinished, Who};
use super::connection::Connection;
use super::ongoing::Ongoing;
use super::packet_out::Departure;
use super::port_book::PortBook;
use super::{Agent, Datapath, modelled};
use crate::budget::{MESSAGE_STEPS, RUN_STEPS};

/// What a bundle does besides changing tables, groups and meters.
#[derive(Default)]
pub(super) struct Transaction {
    /// The ports as it sets them, if it sets any.
    pub(super) ports: Option<PortBook>,
    /// What follows once all of it can be seen, in order.
    pub(super) late: VecDeque<Late>,
}

/// What follows once a bundle can be seen.
pub(super) enum Late {
    /// A frame is sent.
    Frame(Departure),
    /// Other controllers hear of a request.
    Request(Xid, Box<Message>),
}

/// A bundle that is being committed.
pub(super) struct Commit {
    bundle: Bundle,
    who: Who,
    /// Where in the bundle the next message begins.
    next: usize,
    /// A message that takes several turns: where it begins, and what is left of it.
    unfinished: Option<(usize, Unfinished)>,
    transaction: Transaction,
    phase: Phase,
}

/// How far a commit is.
enum Phase {
    /// Its messages are done one after the other.
    Changing,
    /// They are rolled back, as one of them failed.
    RollingBack,
    /// That is done, and what would have followed is given up.
    Cancelling,
    /// All of it becomes visible.
    Publishing,
    /// It is visible; frames and requests follow.
    Following,
}

impl Commit {
    /// The bundle's number and flags.
    pub(super) fn names(&self) -> (u32, BundleFlags) {
        (self.bundle.id(), self.bundle.flags())
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

    /// When a commit is to be done, if that is later than now.
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

    /// Answers a request about a bundle.
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

    /// Puts a message into a bundle, which is what the session's last event is about.
    pub(super) fn bundle_add(
        &mut self,
        at: usize,
        add: &BundleAddMessage,
        now: Nanos,
    ) -> Result<(), ErrorCode> {
        self.check_not_slave(at)?;
        let can_be = matches!(
            *add.message,
            Message::FlowMod(_)
                | Message::GroupMod(_)
                | Message::MeterMod(_)
                | Message::PortMod(_)
                | Message::TableMod(_)
                | Message::PacketOut(_)
        );
        if !can_be {
            return Err(ErrorCode::BundleMessageUnsupported);
        }
        let Connection { bundles, session, .. } = &mut self.connections[at];
        let inner = bundled_bytes(session.message_bytes());
        bundles.add(add.id, add.flags, inner, &self.limits, now)
    }

    /// Commits a bundle whose time has come, and forgets those that were left open too long.
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

    /// Begins to do all messages of a bundle or none. The message that fails is answered with its own error.
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
        self.ongoing = Some(Ongoing::commit(who, commit));
    }

    /// Goes on with a commit until its end, or until the share of the turn is used up.
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
                        Some(Late::Frame(departure)) => departure.cancel(&mut self.buffers),
                        Some(Late::Request(..)) => {}
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
                        Some(Late::Frame(departure)) => {
                            departure.leave(&mut self.buffers, datapath);
                        }
                        Some(Late::Request(xid, message)) => {
                            self.forward_request(commit.who.owner, xid, &message);
                        }
                        None => return Poll::Ready(Ok(())),
                    }
                }
            }
        }
    }

    /// Does the next messages of a bundle. False if one of them fails, which is answered.
    fn change_next(&mut self, commit: &mut Commit, datapath: &mut Datapath<'_>) -> Poll<bool> {
        loop {
            if datapath.must_pause() {
                return Poll::Pending;
            }
            self.transaction = Some(std::mem::take(&mut commit.transaction));
            let (began, outcome) = match commit.unfinished.take() {
                Some((began, mut unfinished)) => {
                    let outcome = match self.continue_message(&mut unfinished, datapath) {
                        Poll::Pending => Ok(Some(unfinished)),
                        Poll::Ready(outcome) => outcome.map(|()| None),
                    };
                    (began, outcome)
                }
                None => {
                    let Some((bundled, next)) = commit.bundle.message_at(commit.next) else {
                        commit.transaction = self.transaction.take().unwrap_or_default();
                        return Poll::Ready(true);
                    };
                    let began = std::mem::replace(&mut commit.next, next);
                    let who = Who { xid: bundled.xid, ..commit.who };
                    let outcome = self.change(who, &bundled.message, datapath);
                    self.follow_later(bundled);
                    datapath.budget.spend(MESSAGE_STEPS);
                    (began, outcome)
                }
            };
            commit.transaction = self.transaction.take().unwrap_or_default();
            match outcome {
                Ok(None) => {}
                Ok(Some(unfinished)) => {
                    commit.unfinished = Some((began, unfinished));
                    return Poll::Pending;
                }
                Err(code) => {
                    self.refuse_one(commit, began, code);
                    return Poll::Ready(false);
                }
            }
        }
    }

    /// Whether a change waits for the next turn after so many steps: where there was none to do, threads of frames
    /// have yet to see what was done.
    pub(super) fn pauses(&mut self, used: usize, datapath: &Datapath<'_>) -> bool {
        self.waits_for_frames |= used == 0;
        self.waits_for_frames || datapath.must_pause()
    }

    /// Remembers a request that other controllers hear of once the bundle is published.
    fn follow_later(&mut self, Bundled { xid, message, .. }: Bundled<'_>) {
        if let (Message::GroupMod(_) | Message::MeterMod(_), Some(transaction)) =
            (&message, &mut self.transaction)
        {
            transaction.late.push_back(Late::Request(xid, Box::new(message)));
        }
    }

    /// Answers the message of a bundle that fails.
    fn refuse_one(&mut self, commit: &Commit, began: usize, code: ErrorCode) {
        let owner = commit.who.owner;
        let connection = self.connections.iter_mut().find(|connection| connection.id == owner);
        if let (Some(connection), Some((failed, _))) = (connection, commit.bundle.message_at(began))
        {
            connection.refuse(failed.xid, code, failed.bytes);
        }
    }

    /// Gives the ports the settings that a bundle left.
    fn set_ports(&mut self, after: Option<PortBook>, datapath: &mut Datapath<'_>) {
        for port in after.iter().flat_map(PortBook::descriptions) {
            if let Some(port) = self.ports.set_config(port.number, port.config) {
                self.set_port(port, datapath);
            }
        }
    }
}
