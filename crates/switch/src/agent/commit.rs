//! Bundles: messages done together, all of them or none.
//!
//! Source: OpenFlow switch specification 1.4.1, sections 6.8 and 7.3.9; 1.5.1, section 6.8.6. A commit is
//! rehearsed first, where it holds more than flow-mods, which can be taken back: every message is done
//! in order, without a frame leaving or anybody being told, and then all of it is taken back. Only if
//! all of them could be done are they done. Frames are forwarded meanwhile, by what there was before,
//! and then by all of it at once; so are those that the bundle itself sends, after the rest.
//!
//! Invariant: after a refused commit the switch is as it was before. No frame goes by a part of a bundle.

use openflow::codec::bundled_bytes;
use openflow::header::Xid;
use openflow::model::Message;
use openflow::model::bundle::{
    BundleAddMessage, BundleCommand, BundleControl, BundleFlags, BundleProperty,
};
use openflow::version::ErrorCode;
use packet::time::Nanos;

use super::bundle::{Bundle, Bundled};
use super::change::{Who, settings_of};
use super::connection::Connection;
use super::{Agent, Datapath, modelled};

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
                self.commit(at, &bundle, datapath)?;
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

    fn bundle_done(
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
        bundles.add(add.id, add.flags, (&add.message, inner), &self.limits, now)
    }

    /// Commits the bundles whose time has come, and forgets those that were left open too long.
    pub(super) fn bundles_due(&mut self, at: usize, datapath: &mut Datapath<'_>) {
        let idle_max = Nanos::from_millis(self.limits.bundle_ms);
        let connection = &mut self.connections[at];
        self.counters.bundles_expired += connection.bundles.expire(idle_max, datapath.now) as u64;
        while let Some((bundle, xid)) = self.connections[at].bundles.due(datapath.now) {
            match self.commit(at, &bundle, datapath) {
                Ok(()) => {
                    let what = (bundle.id(), bundle.flags());
                    self.bundle_done(at, xid, what, BundleCommand::Commit);
                }
                Err(code) => self.connections[at].refuse(xid, code, &[]),
            }
        }
    }

    /// Does all messages of a bundle or none. The one that cannot be done is answered with its own
    /// error.
    fn commit(
        &mut self,
        at: usize,
        bundle: &Bundle,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        if bundle.is_reversible() {
            let outcome = self.do_or_take_back(at, bundle, datapath);
            return outcome.map_err(|failed| self.refuse_one(at, failed));
        }
        self.rehearse(at, bundle, datapath).map_err(|failed| self.refuse_one(at, failed))?;
        datapath.pipeline.begin();
        modelled::begin_bundle(datapath);
        self.departures = Some(Vec::new());
        for Bundled { xid, message, .. } in bundle.messages() {
            let who = self.who(at, xid);
            let outcome = self.change(who, &message, datapath);
            debug_assert!(outcome.is_ok(), "what was rehearsed can be done: {outcome:?}");
            self.forward_request(who.owner, xid, &message);
        }
        datapath.pipeline.keep(datapath.outputs);
        for mut departure in self.departures.take().unwrap_or_default() {
            departure.leave(datapath);
        }
        Ok(())
    }

    /// Answers the message of a bundle that cannot be done.
    fn refuse_one(&mut self, at: usize, (xid, bytes, code): (Xid, &[u8], ErrorCode)) -> ErrorCode {
        self.connections[at].refuse(xid, code, bytes);
        ErrorCode::BundleMessageFailed
    }

    /// Does the messages of a bundle that can all be taken back, and takes them back if one cannot be
    /// done, which it names. Nobody hears of anything before all are done.
    fn do_or_take_back<'a>(
        &mut self,
        at: usize,
        bundle: &'a Bundle,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), (Xid, &'a [u8], ErrorCode)> {
        datapath.pipeline.begin();
        modelled::begin_bundle(datapath);
        for Bundled { xid, message, bytes } in bundle.messages() {
            let who: Who = self.who(at, xid);
            if let Err(code) = self.change(who, &message, datapath) {
                datapath.pipeline.take_back();
                return Err((xid, bytes, code));
            }
        }
        datapath.pipeline.keep(datapath.outputs);
        Ok(())
    }

    /// Tries all messages of a bundle and takes them back; or says which one cannot be done.
    fn rehearse<'a>(
        &mut self,
        at: usize,
        bundle: &'a Bundle,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), (Xid, &'a [u8], ErrorCode)> {
        let ports = self.ports.clone();
        self.rehearsal = Some(Vec::new());
        datapath.pipeline.begin();
        modelled::begin_bundle(datapath);
        let outcome = bundle.messages().try_for_each(|Bundled { xid, message, bytes }| {
            let who: Who = self.who(at, xid);
            self.change(who, &message, datapath).map_err(|code| (xid, bytes, code))
        });
        datapath.pipeline.take_back();
        self.rehearsal = None;
        self.ports = ports;
        for port in self.ports.descriptions() {
            datapath.pipeline.set_port(port.number, settings_of(port));
        }
        outcome
    }
}
