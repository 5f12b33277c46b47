//! Dispatch of messages, and the errors with which they are rejected.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3; 1.3.5, section 7.3; 1.5.1, section
//! 7.3.
//!
//! Messages of one connection are processed in order, each to its end. The next message waits until
//! a long reply is sent. The switch can therefore reply to a barrier as soon as it is processed.
//! Messages that change the switch are in [`super::change`], and can be part of a bundle.

use dataplane::pipeline::OnMiss;
use openflow::header::Xid;
use openflow::model::bundle::RequestForward;
use openflow::model::role::{
    ControllerStatusReason, Role, RoleRequest, RoleStatus, RoleStatusReason,
};
use openflow::model::{
    ActionKinds, Capabilities, Features, FragmentHandling, Message, QueueConfig, SwitchConfig,
    reserved,
};
use openflow::version::{AsyncKind, ErrorCode, Version};

use crate::translate::downgrade;

use super::change::{Origin, StateChange};
use super::failover::Misses;
use super::multipart_reply::Dump;
use super::ongoing::OngoingChange;
use super::{Agent, Datapath, shaping};

impl Agent {
    /// Processes one message of `bytes` bytes and queues the reply. The caller sends an error to
    /// the controller.
    pub(super) fn handle(
        &mut self,
        at: usize,
        xid: Xid,
        (message, bytes): (Message, usize),
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let message = match StateChange::of(message) {
            Ok(change) => {
                self.check_not_slave(at)?;
                return self.change_or_begin(self.who(at, xid), change, datapath);
            }
            Err(message) => message,
        };
        let reply = match message {
            Message::FeaturesRequest => Message::FeaturesReply(self.features(at, datapath)),
            Message::GetConfigRequest => Message::GetConfigReply(self.config(self.main_of(at))),
            Message::SetConfig(config) => {
                return self.set_config(self.main_of(at), &config, datapath);
            }
            Message::BarrierRequest => {
                if let Some(model) = &mut datapath.model {
                    model.barrier(self.connections[at].id, xid);
                    return Ok(());
                }
                Message::BarrierReply
            }
            Message::MultipartRequest(part) => {
                return self.multipart(at, xid, (part, bytes), datapath);
            }
            Message::QueueGetConfigRequest(port) => {
                let version = self.connections[at].version();
                self.check_queue_port(port)?;
                // Before 1.2 a reply has no port for each queue, so a request can name only one
                // port.
                if version < Version::V1_2 && self.ports.find(port).is_none() {
                    return Err(ErrorCode::QueueOpBadPort);
                }
                let source = (&*datapath.pipeline, self.ports.numbers());
                let queues = shaping::queue_descriptions(port, version, source, datapath.now);
                Message::QueueGetConfigReply(QueueConfig { port, queues })
            }
            Message::RoleRequest(request) => {
                Message::RoleReply(self.role_request(self.main_of(at), &request)?)
            }
            Message::GetAsyncRequest => {
                Message::GetAsyncReply(self.connections[self.main_of(at)].interests.told())
            }
            Message::SetAsync(chosen) => {
                let main = self.main_of(at);
                return self.connections[main].interests.set(&chosen);
            }
            Message::BundleControl(control) => {
                return self.bundle_control(at, xid, &control, datapath);
            }
            Message::BundleAddMessage(add) => {
                return self.bundle_add(at, add, datapath.now);
            }
            Message::Experimenter(from) => return self.experimenter(at, xid, &from, datapath),
            // These messages need no reply.
            Message::Hello(_) | Message::Error(_) | Message::EchoReply(_) => return Ok(()),
            Message::EchoRequest(data) => Message::EchoReply(data),
            // Only a switch sends the others.
            _ => return Err(ErrorCode::RequestBadType),
        };
        self.connections[at].reply(xid, &reply);
        Ok(())
    }

    /// Returns the origin of a message.
    pub(super) fn who(&self, at: usize, xid: Xid) -> Origin {
        let connection = &self.connections[at];
        Origin {
            owner: connection.id,
            xid,
            version: connection.version(),
            parts: connection.sees_parts(),
        }
    }

    /// Applies one message, or begins to if it takes several turns.
    pub(super) fn change_or_begin(
        &mut self,
        who: Origin,
        message: StateChange,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        match self.change(who, &message, datapath)? {
            Some(unfinished) => {
                self.ongoing = Some(OngoingChange::message(who, message, unfinished))
            }
            None => self.tell_request(who, &message),
        }
        Ok(())
    }

    /// Forwards an applied request to other controllers, but not to those of the same channel.
    pub(super) fn tell_request(&mut self, who: Origin, message: &StateChange) {
        let at = self.place_of(who.owner);
        let main = at.map_or(who.owner, |at| self.connections[self.main_of(at)].id);
        self.forward_request(main, who.xid, message);
    }

    pub(super) fn check_not_slave(&self, at: usize) -> Result<(), ErrorCode> {
        match self.connections[self.main_of(at)].role {
            Role::Slave => Err(ErrorCode::RequestIsSlave),
            _ => Ok(()),
        }
    }

    /// Forwards an applied group-mod or meter-mod to other controllers that selected it.
    pub(super) fn forward_request(&mut self, owner: u32, xid: Xid, message: &StateChange) {
        let (reason, request): (u32, &dyn Fn() -> Message) = match message {
            StateChange::GroupMod(change) => (0, &|| Message::GroupMod(change.clone())),
            StateChange::MeterMod(change) => (1, &|| Message::MeterMod(change.clone())),
            _ => return,
        };
        let others = self
            .connections
            .iter()
            .any(|other| other.id != owner && other.wants(AsyncKind::RequestForward, reason));
        if others {
            let request = Box::new(request());
            let news = Message::RequestForward(RequestForward { xid, request });
            self.tell_some(&news, |other| {
                other.id != owner && other.wants(AsyncKind::RequestForward, reason)
            });
        }
    }

    fn features(&self, at: usize, datapath: &Datapath<'_>) -> Features {
        let version = self.connections[at].version();
        let mut capabilities = Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::QUEUE_STATS;
        if version <= Version::V1_1 {
            capabilities |= Capabilities::ARP_MATCH_IP;
        }
        if version >= Version::V1_1 {
            capabilities |= Capabilities::GROUP_STATS;
        }
        if version >= Version::V1_4 {
            capabilities |= Capabilities::BUNDLES | Capabilities::FLOW_MONITORING;
        }
        let ports = self.ports.descriptions().iter();
        Features {
            datapath_id: self.datapath_id,
            buffers: self.buffers.capacity() as u32,
            tables: match self.connections[at].sees_parts() {
                true => crate::translate::flow::PARTS.len() as u8,
                false => datapath.pipeline.tables().count_tables() as u8,
            },
            auxiliary: self.auxiliary_of(at).map_or(0, |auxiliary| auxiliary.number),
            capabilities,
            actions: ActionKinds::of(version),
            ports: ports.map(|port| downgrade::port(version, port.clone())).collect(),
        }
    }

    fn config(&self, at: usize) -> SwitchConfig {
        let connection = &self.connections[at];
        let with_flag = matches!(connection.version(), Version::V1_1 | Version::V1_2);
        SwitchConfig {
            fragments: self.fragments,
            invalid_ttl_to_controller: with_flag && connection.interests.invalid_ttl(),
            miss_send_bytes: connection.miss_send_bytes,
        }
    }

    /// Applies a switch configuration. The switch does not reassemble fragments. Version 1.0 has no
    /// error for that, so that a controller must read back the setting; later versions have one.
    fn set_config(
        &mut self,
        at: usize,
        config: &SwitchConfig,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let version = self.connections[at].version();
        match config.fragments {
            FragmentHandling::Reassemble if version > Version::V1_0 => {
                return Err(ErrorCode::SwitchConfigBadFlags);
            }
            FragmentHandling::Reassemble => {}
            // A slave must not change settings of the whole switch, only its own miss send length.
            other if self.connections[at].role != Role::Slave => {
                self.fragments = other;
                datapath.pipeline.set_drop_fragments(other == FragmentHandling::Drop);
            }
            _ => {}
        }
        let connection = &mut self.connections[at];
        connection.miss_send_bytes = config.miss_send_bytes;
        if matches!(version, Version::V1_1 | Version::V1_2) {
            connection.interests.set_invalid_ttl(config.invalid_ttl_to_controller);
        }
        Ok(())
    }

    /// Sets the role that a controller requests. A new master makes the old one a slave.
    fn role_request(&mut self, at: usize, request: &RoleRequest) -> Result<RoleRequest, ErrorCode> {
        self.roles.admit(request.role, request.generation)?;
        if request.short_id != 0 {
            let taken = |(other, connection): (usize, &super::Connection)| {
                other != at && connection.short_id == request.short_id
            };
            if self.connections.iter().enumerate().any(taken) {
                return Err(ErrorCode::RoleRequestIdInUse);
            }
            let before = std::mem::replace(&mut self.connections[at].short_id, request.short_id);
            if before != request.short_id {
                self.tell_controller_status(at, ControllerStatusReason::ShortId);
            }
        }
        self.set_role(at, request.role);
        let connection = &self.connections[at];
        Ok(RoleRequest {
            role: connection.role,
            short_id: connection.short_id,
            generation: self.roles.generation(),
        })
    }

    /// Sets a controller's role.
    pub(super) fn set_role(&mut self, at: usize, role: Role) {
        if role == Role::NoChange {
            return;
        }
        if role == Role::Master {
            self.demote_master(at);
        }
        let changed = self.connections[at].role != role;
        self.connections[at].role = role;
        if changed {
            self.tell_controller_status(at, ControllerStatusReason::Role);
        }
    }

    /// Makes every other master a slave and sends it a role-status message.
    fn demote_master(&mut self, new: usize) {
        let status = Message::RoleStatus(RoleStatus {
            role: Role::Slave,
            reason: RoleStatusReason::MasterRequest,
            generation: self.roles.generation(),
            properties: Vec::new(),
        });
        for at in 0..self.connections.len() {
            if at != new && self.connections[at].role == Role::Master {
                let connection = &mut self.connections[at];
                connection.role = Role::Slave;
                if connection.wants(AsyncKind::RoleStatus, 0) {
                    self.counters.news_lost += u64::from(!connection.tell(&status));
                }
                self.tell_controller_status(at, ControllerStatusReason::Role);
            }
        }
    }

    /// Sets the handling of table misses that the connected controllers expect. Up to 1.2, misses
    /// are sent to the controller. From 1.3 on they are dropped unless a table-miss entry exists.
    pub(super) fn set_misses(&mut self, misses: Misses, datapath: &mut Datapath<'_>) {
        let asked = |it: &super::Connection| it.up && it.version() < Version::V1_3;
        datapath.pipeline.set_on_miss(match misses {
            Misses::ToController if self.connections.iter().any(asked) => OnMiss::Controller,
            Misses::ToController | Misses::Dropped => OnMiss::Drop,
            Misses::Bridged => OnMiss::Normal,
        });
        // Bit number of the reason in the specification.
        let ttl = |it: &super::Connection| it.wants(AsyncKind::PacketIn, 2);
        datapath.pipeline.tell_invalid_ttl(self.connections.iter().any(ttl));
    }

    pub(super) fn check_queue_port(&mut self, port: u32) -> Result<(), ErrorCode> {
        let every = [reserved::ALL, reserved::NONE].contains(&port);
        match every || self.ports.find(port).is_some() {
            true => Ok(()),
            false => Err(ErrorCode::QueueOpBadPort),
        }
    }

    /// Begins a reply of several parts. The rest is sent as the controller reads.
    pub(super) fn begin(&mut self, at: usize, dump: Dump, datapath: &mut Datapath<'_>) {
        self.connections[at].dump = Some(dump);
        self.continue_dump(at, datapath);
    }
}
