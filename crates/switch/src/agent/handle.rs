//! What each message does, and with which error it is refused.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.3 and 5.4.4. Messages of one
//! connection are done in the order in which they came, each to its end; a long reply holds the
//! next one up until it is sent. That is why a barrier can be answered when its turn comes.

use dataplane::action::Action;
use dataplane::egress::PortSettings;
use dataplane::flow::{FlowError, FlowFilter, ModifyRules};
use dataplane::pipeline::OnMiss;
use openflow::header::Xid;
use openflow::model::{
    ActionKinds, Capabilities, Features, FlowMod, FlowModCommand, FlowModFlags, FragmentHandling,
    Message, MultipartReplyBody, MultipartRequestBody, PacketOut, PortConfig, PortMod, PortNo,
    QUEUE_ALL, QueueConfig, QueueStats, SwitchConfig, reserved,
};
use openflow::version::{ErrorCode, Version};
use packet::frame::{FRAME_BYTES_MAX, Frame};
use packet::time::Nanos;

use crate::lower;

use super::buffers::NoBuffer;
use super::failover::Misses;
use super::multipart::{self, Dump};
use super::{Agent, Datapath};

/// Sets where frames without match go.
pub(super) fn set_misses(misses: Misses, datapath: &mut Datapath<'_>) {
    datapath.pipeline.on_miss = match misses {
        Misses::ToController => OnMiss::Controller,
        Misses::Dropped => OnMiss::Drop,
        Misses::Bridged => OnMiss::Normal,
    };
}

impl Agent {
    /// Does what one message asks and queues the reply; an error is what the sender is told.
    pub(super) fn handle(
        &mut self,
        at: usize,
        xid: Xid,
        message: &Message,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let reply = match message {
            Message::FeaturesRequest => Message::FeaturesReply(self.features()),
            Message::GetConfigRequest => Message::GetConfigReply(SwitchConfig {
                fragments: self.fragments,
                miss_send_bytes: self.connections[at].miss_send_bytes,
                ..SwitchConfig::default()
            }),
            Message::SetConfig(config) => return self.set_config(at, config, datapath),
            Message::FlowMod(change) => return self.flow_mod(change, datapath),
            Message::PacketOut(packet) => return self.packet_out(packet, datapath),
            Message::PortMod(change) => return self.port_mod(change, datapath),
            Message::BarrierRequest => {
                self.tell_news(datapath);
                Message::BarrierReply
            }
            Message::MultipartRequest(request) => {
                match self.statistics(at, xid, &request.body, datapath)? {
                    Some(body) => multipart::whole(body),
                    None => return Ok(()),
                }
            }
            Message::QueueGetConfigRequest(port) => match self.ports.find(*port) {
                Some(_) => {
                    Message::QueueGetConfigReply(QueueConfig { port: *port, queues: Vec::new() })
                }
                None => return Err(ErrorCode::QueueOpBadPort),
            },
            Message::Experimenter(_) => return Err(ErrorCode::RequestBadExperimenter),
            // What a controller answers or complains of needs no answer.
            Message::Hello(_) | Message::Error(_) | Message::EchoReply(_) => return Ok(()),
            Message::EchoRequest(data) => Message::EchoReply(data.clone()),
            Message::GroupMod(_)
            | Message::MeterMod(_)
            | Message::TableMod(_)
            | Message::RoleRequest(_)
            | Message::GetAsyncRequest
            | Message::SetAsync(_)
            | Message::BundleControl(_)
            | Message::BundleAddMessage(_) => return Err(ErrorCode::RequestBadType),
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

    fn features(&self) -> Features {
        Features {
            datapath_id: self.datapath_id,
            buffers: self.buffers.capacity() as u32,
            tables: lower::flow::TABLES.len() as u8,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::PORT_STATS
                | Capabilities::QUEUE_STATS
                | Capabilities::ARP_MATCH_IP,
            actions: ActionKinds::of(Version::V1_0),
            ports: self.ports.descriptions().to_vec(),
            ..Features::default()
        }
    }

    /// Fragments are not put together here: a controller that asks for it finds, as the
    /// specification foresees, that the setting has not changed.
    fn set_config(
        &mut self,
        at: usize,
        config: &SwitchConfig,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        if config.fragments != FragmentHandling::Reassemble {
            self.fragments = config.fragments;
            datapath.pipeline.drop_fragments = config.fragments == FragmentHandling::Drop;
        }
        self.connections[at].miss_send_bytes = config.miss_send_bytes;
        Ok(())
    }

    fn flow_mod(&mut self, change: &FlowMod, datapath: &mut Datapath<'_>) -> Result<(), ErrorCode> {
        let now = datapath.now;
        if change.table != 0 {
            // The upper byte of the command, which is a table only to those who have agreed on it.
            return Err(ErrorCode::FlowModBadCommand);
        }
        if change.flags.contains(FlowModFlags::EMERGENCY) {
            return Err(no_emergency_table(change));
        }
        match change.command {
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                let strict = change.command == FlowModCommand::DeleteStrict;
                let filter = lower::filter_down(change, strict);
                datapath.pipeline.delete(&filter, now, datapath.outputs);
                *datapath.due = Some(Nanos::ZERO);
                return Ok(());
            }
            FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {}
        }
        let actions = lower::actions_down(change.applied(), self.ports.numbers(), false)?;
        let spec = lower::spec_down(change, actions);
        let strict = change.command == FlowModCommand::ModifyStrict;
        let outcome = match change.command {
            FlowModCommand::Add => datapath.pipeline.add(&spec, now, datapath.outputs),
            _ => {
                let filter = FlowFilter {
                    strict_rank: strict.then_some(spec.rank),
                    ..FlowFilter::covered_by(spec.matching)
                };
                let rules = ModifyRules { add: true, cookie: true };
                datapath.pipeline.modify(&spec, &filter, rules, now, datapath.outputs)
            }
        };
        outcome.map_err(flow_error_up)?;
        *datapath.due = Some(Nanos::ZERO);
        match change.buffer_id {
            // As later versions say it: the kept frame then goes through the tables.
            Some(id) => self.release(id, None, &[Action::Table], datapath),
            None => Ok(()),
        }
    }

    fn packet_out(
        &mut self,
        packet: &PacketOut,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let actions = lower::actions_down(&packet.actions, self.ports.numbers(), true)?;
        let in_port = lower::port_down(packet.in_port);
        if let Some(id) = packet.buffer_id {
            let named = (packet.in_port != reserved::NONE).then_some(in_port);
            return self.release(id, named, &actions, datapath);
        }
        if packet.data.len() > FRAME_BYTES_MAX {
            return Err(ErrorCode::RequestBadLength);
        }
        let mut frame = Frame::from_bytes(&packet.data);
        let Datapath { pipeline, outputs, now, .. } = datapath;
        pipeline.execute(&mut frame, in_port, &actions, *now, outputs);
        Ok(())
    }

    /// Does actions with a kept frame, which came in on the port that the packet-out names or
    /// else on the port that it was kept with.
    fn release(
        &mut self,
        id: u32,
        in_port: Option<packet::frame::PortNo>,
        actions: &[Action],
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let (port, mut frame) = self.buffers.take(id).map_err(|why| match why {
            NoBuffer::Unknown => ErrorCode::RequestBufferUnknown,
            NoBuffer::Empty => ErrorCode::RequestBufferEmpty,
        })?;
        let Datapath { pipeline, outputs, now, .. } = datapath;
        pipeline.execute(&mut frame, in_port.unwrap_or(port), actions, *now, outputs);
        Ok(())
    }

    fn port_mod(&mut self, change: &PortMod, datapath: &mut Datapath<'_>) -> Result<(), ErrorCode> {
        let Some(port) = self.ports.modify(change)? else { return Ok(()) };
        let has = |bit| port.config.contains(bit);
        let settings = PortSettings {
            down: has(PortConfig::PORT_DOWN),
            no_receive: has(PortConfig::NO_RECEIVE),
            no_receive_spanning_tree: has(PortConfig::NO_RECEIVE_STP),
            no_flood: has(PortConfig::NO_FLOOD),
            no_forward: has(PortConfig::NO_FORWARD),
            no_packet_in: has(PortConfig::NO_PACKET_IN),
        };
        datapath.pipeline.set_port(port.number, settings);
        self.tell_port(port);
        Ok(())
    }

    /// The reply's body, or `None` if it is made in parts from now on.
    fn statistics(
        &mut self,
        at: usize,
        xid: Xid,
        request: &MultipartRequestBody,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        Ok(Some(match request {
            MultipartRequestBody::Desc => {
                multipart::description(&format!("{:016x}", self.datapath_id))
            }
            MultipartRequestBody::Flow(which) => match lower::flow::stats_filter_down(which) {
                Some(filter) => {
                    self.connections[at].dump = Some(Dump::new(xid, filter));
                    self.continue_dump(at, datapath);
                    return Ok(None);
                }
                None => MultipartReplyBody::Flow(Vec::new()),
            },
            MultipartRequestBody::Aggregate(which) => {
                let filter = lower::flow::stats_filter_down(which);
                multipart::aggregate(datapath.pipeline, filter.as_ref())
            }
            MultipartRequestBody::Table => multipart::tables(datapath.pipeline),
            MultipartRequestBody::Port(port) => multipart::ports(datapath.lanes, *port),
            MultipartRequestBody::Queue { port, queue } => {
                MultipartReplyBody::Queue(self.queues(*port, *queue, datapath)?)
            }
            MultipartRequestBody::Experimenter(_) => {
                return Err(ErrorCode::RequestBadExperimenter);
            }
            _ => return Err(ErrorCode::RequestBadMultipart),
        }))
    }

    fn queues(
        &mut self,
        port: PortNo,
        queue: u32,
        datapath: &Datapath<'_>,
    ) -> Result<Vec<QueueStats>, ErrorCode> {
        if port != reserved::ALL && self.ports.find(port).is_none() {
            return Err(ErrorCode::QueueOpBadPort);
        }
        let wanted = |row: &QueueStats| {
            (port == reserved::ALL || row.port == port)
                && (queue == QUEUE_ALL || row.queue == queue)
        };
        let rows = datapath.pipeline.egress().queues().map(|(port, queue, traffic)| QueueStats {
            port,
            queue,
            tx_bytes: traffic.bytes,
            tx_packets: traffic.frames,
            tx_errors: 0,
            ..QueueStats::default()
        });
        let rows: Vec<_> = rows.filter(wanted).collect();
        match rows.is_empty() && queue != QUEUE_ALL {
            true => Err(ErrorCode::QueueOpBadQueue),
            false => Ok(rows),
        }
    }
}

/// There is no emergency table: it is full from the start.
fn no_emergency_table(change: &FlowMod) -> ErrorCode {
    match change.idle_timeout_s | change.hard_timeout_s {
        0 => ErrorCode::FlowModTableFull,
        _ => ErrorCode::FlowModBadTimeout,
    }
}

fn flow_error_up(error: FlowError) -> ErrorCode {
    match error {
        FlowError::TableFull(_) => ErrorCode::FlowModTableFull,
        FlowError::Overlap => ErrorCode::FlowModOverlap,
        // What names tables, groups and meters is not of OpenFlow 1.0.
        _ => ErrorCode::FlowModUnsupported,
    }
}
