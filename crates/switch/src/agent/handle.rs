//! What each message does, and with which error it is refused.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3; 1.3.5, section 7.3; 1.5.1, section 7.3.
//! Messages of one connection are done in the order in which they came, each to its end; a long
//! reply holds the next one up until it is sent. That is why a barrier can be answered when its
//! turn comes. What changes the switch is in [`super::change`], and so can be part of a bundle.

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

use crate::lower::express;

use super::change::Who;
use super::dump::Dump;
use super::failover::Misses;
use super::ongoing::Ongoing;
use super::{Agent, Datapath, shaping};

impl Agent {
    /// Does what one message of so many bytes asks and queues the reply; an error is what the sender
    /// is told.
    pub(super) fn handle(
        &mut self,
        at: usize,
        xid: Xid,
        (message, bytes): (Message, usize),
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let reply = match message {
            Message::FlowMod(_)
            | Message::GroupMod(_)
            | Message::MeterMod(_)
            | Message::PortMod(_)
            | Message::TableMod(_)
            | Message::PacketOut(_) => return self.order(at, xid, &message, datapath),
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
                // A reply says no port beside each queue before 1.2, so that only one can be asked.
                if version < Version::V1_2 && self.ports.find(port).is_none() {
                    return Err(ErrorCode::QueueOpBadPort);
                }
                let queues = shaping::queue_descriptions(port, None, version, datapath);
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
                return self.bundle_add(at, &add, datapath.now);
            }
            Message::Experimenter(from) => return self.experimenter(at, xid, &from, datapath),
            // What a controller answers or complains of needs no answer.
            Message::Hello(_) | Message::Error(_) | Message::EchoReply(_) => return Ok(()),
            Message::EchoRequest(data) => Message::EchoReply(data),
            // What only a switch sends.
            Message::FeaturesReply(_)
            | Message::GetConfigReply(_)
            | Message::PacketIn(_)
            | Message::FlowRemoved(_)
            | Message::PortStatus(_)
            | Message::MultipartReply(_)
            | Message::BarrierReply
            | Message::QueueGetConfigReply(_)
            | Message::RoleReply(_)
            | Message::GetAsyncReply(_)
            | Message::RoleStatus(_)
            | Message::TableStatus(_)
            | Message::RequestForward(_)
            | Message::ControllerStatus(_) => return Err(ErrorCode::RequestBadType),
        };
        self.connections[at].reply(xid, &reply);
        Ok(())
    }

    /// Who a message comes from.
    pub(super) fn who(&self, at: usize, xid: Xid) -> Who {
        let connection = &self.connections[at];
        Who {
            owner: connection.id,
            xid,
            version: connection.version(),
            parts: connection.sees_parts(),
        }
    }

    /// What changes the switch: a slave may not, and some of it other controllers hear of.
    pub(super) fn order(
        &mut self,
        at: usize,
        xid: Xid,
        message: &Message,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        self.check_not_slave(at)?;
        let who = self.who(at, xid);
        self.change_or_begin(who, message, datapath)
    }

    /// Does what one message orders, or begins to if it takes several turns.
    pub(super) fn change_or_begin(
        &mut self,
        who: Who,
        message: &Message,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        match self.change(who, message, datapath)? {
            Some(unfinished) => self.ongoing = Some(Ongoing::message(who, message, unfinished)),
            None => self.tell_request(who, message),
        }
        Ok(())
    }

    /// Tells other controllers of a request that was done, but not those of the same channel.
    pub(super) fn tell_request(&mut self, who: Who, message: &Message) {
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

    /// Tells the other controllers that want it of a group-mod or meter-mod that was done.
    pub(super) fn forward_request(&mut self, owner: u32, xid: Xid, message: &Message) {
        let reason = match message {
            Message::GroupMod(_) => 0,
            Message::MeterMod(_) => 1,
            _ => return,
        };
        let others = self
            .connections
            .iter()
            .any(|other| other.id != owner && other.wants(AsyncKind::RequestForward, reason));
        if others {
            let request = Box::new(message.clone());
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
                true => crate::lower::flow::PARTS.len() as u8,
                false => datapath.pipeline.tables().count_tables() as u8,
            },
            auxiliary: self.auxiliary_of(at).map_or(0, |auxiliary| auxiliary.number),
            capabilities,
            actions: ActionKinds::of(version),
            ports: ports.map(|port| express::port(version, port.clone())).collect(),
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

    /// Fragments are not put together here: 1.0 has no error for that, so that a controller finds
    /// that the setting has not changed; later versions have one.
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
            // What holds for the whole switch is not a slave's to change; its own length is.
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

    /// Gives a controller the role that it asks for; a new master makes the old one a slave.
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

    /// Gives a controller a role.
    pub(super) fn set_role(&mut self, at: usize, role: Role) {
        if role == Role::NoChange {
            return;
        }
        if role == Role::Master {
            self.depose(at);
        }
        let changed = self.connections[at].role != role;
        self.connections[at].role = role;
        if changed {
            self.tell_controller_status(at, ControllerStatusReason::Role);
        }
    }

    /// Makes every other master a slave and tells it so.
    fn depose(&mut self, new: usize) {
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

    /// Frames without match go where the controllers that are there expect it: to the controller by
    /// 1.2, nowhere from 1.3 on, where an entry says so.
    pub(super) fn set_misses(&mut self, misses: Misses, datapath: &mut Datapath<'_>) {
        let asked = |it: &super::Connection| it.up && it.version() < Version::V1_3;
        datapath.pipeline.set_on_miss(match misses {
            Misses::ToController if self.connections.iter().any(asked) => OnMiss::Controller,
            Misses::ToController | Misses::Dropped => OnMiss::Drop,
            Misses::Bridged => OnMiss::Normal,
        });
        // The reason's number in the specification.
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

    /// Begins a reply of several parts; the rest is sent as the controller reads.
    pub(super) fn begin(&mut self, at: usize, dump: Dump, datapath: &mut Datapath<'_>) {
        self.connections[at].dump = Some(dump);
        self.continue_dump(at, datapath);
    }
}
