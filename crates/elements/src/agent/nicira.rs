//! Nicira extensions of OpenFlow 1.0, which Open vSwitch's tools use by default.
//!
//! Source: `nicira-ext.h` of Open vSwitch. With these extensions a 1.0 controller can match any
//! field and use the numbers of all tables. It can have a role as from 1.2 on, but without
//! generation IDs.

use openflow::codec::nicira::{put_message, put_reply, read_message, read_request};
use openflow::header::Xid;
use openflow::model::asynchronous::AsyncConfig;
use openflow::model::multipart::{AggregateStats, FlowStats, MultipartReplyBody};
use openflow::model::nicira::{Form, NICIRA, NiciraMessage, NiciraReply, NiciraRequest};
use openflow::model::table::TABLE_ALL;
use openflow::model::{Experimenter, FlowMod, FlowRemoved, Message, PacketIn};
use openflow::version::{AsyncKind, ErrorCode, Version};

use crate::translate::downgrade;
use crate::translate::flow::stats_filter_down;

use super::change::{Origin, StateChange};
use super::connection::Connection;
use super::multipart::check_table;
use super::multipart_reply::Dump;
use super::{Agent, Datapath};

impl Agent {
    /// Processes an experimenter message, if it is one of Nicira's.
    pub(super) fn experimenter(
        &mut self,
        at: usize,
        xid: Xid,
        from: &Experimenter,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        check_speaker(&self.connections[at], from)?;
        let message = read_message(from)?.ok_or(ErrorCode::RequestBadExperimenterType)?;
        match message {
            NiciraMessage::FlowMod(change) => {
                self.check_not_slave(at)?;
                let change = self.in_table(at, change)?;
                let who = Origin { parts: false, ..self.who(at, xid) };
                return self.change_or_begin(who, StateChange::FlowMod(change), datapath);
            }
            NiciraMessage::RoleRequest(role) => {
                self.set_role(at, role);
                let role = self.connections[at].role;
                if let Ok(reply) = put_message(&NiciraMessage::RoleReply(role)) {
                    self.connections[at].reply(xid, &Message::Experimenter(reply));
                }
            }
            NiciraMessage::SetFlowFormat(form) => {
                self.connections[at].nicira_flows = form == Form::Nicira;
            }
            NiciraMessage::SetPacketInFormat(form) => {
                self.connections[at].nicira_frames = form == Form::Nicira;
            }
            NiciraMessage::FlowModTableId(on) => self.connections[at].table_ids = on,
            NiciraMessage::SetAsyncConfig { packet_in, port_status, flow_removed } => {
                let mut chosen = AsyncConfig::default();
                for (kind, reasons) in [
                    (AsyncKind::PacketIn, packet_in),
                    (AsyncKind::PortStatus, port_status),
                    (AsyncKind::FlowRemoved, flow_removed),
                ] {
                    chosen.set(kind, false, reasons[0]);
                    chosen.set(kind, true, reasons[1]);
                }
                return self.connections[at].interests.set(&chosen);
            }
            // Statistics always include the age.
            NiciraMessage::FlowAge => {}
            // No action refers to a controller ID; only switches send the others.
            NiciraMessage::SetControllerId(_)
            | NiciraMessage::RoleReply(_)
            | NiciraMessage::FlowRemoved(_)
            | NiciraMessage::PacketIn(_) => return Err(ErrorCode::RequestBadExperimenterType),
        }
        Ok(())
    }

    /// Sets the table of a flow-mod. Without table IDs, existing entries are changed in all tables,
    /// and new ones are added to the first. The table byte is then part of the command, where it
    /// must be zero.
    fn in_table(&self, at: usize, change: FlowMod) -> Result<FlowMod, ErrorCode> {
        match (self.connections[at].table_ids, change.table) {
            (true, _) => Ok(change),
            (false, 0) => Ok(FlowMod { table: TABLE_ALL, ..change }),
            (false, _) => Err(ErrorCode::FlowModBadCommand),
        }
    }

    /// Processes an experimenter multipart request, if it is one of Nicira's.
    pub(super) fn experimenter_statistics(
        &mut self,
        at: usize,
        xid: Xid,
        from: &Experimenter,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        check_speaker(&self.connections[at], from)?;
        let request = read_request(from)?.ok_or(ErrorCode::RequestBadExperimenterType)?;
        let (NiciraRequest::Flow(which) | NiciraRequest::Aggregate(which)) = &request;
        check_table(which.table, datapath.pipeline)?;
        // These requests address all tables.
        let who = Origin { parts: false, ..self.who(at, xid) };
        let filter = stats_filter_down(which, who.speaker())?;
        let filter = filter.expect("only parts of a table can be missing");
        let selection = datapath.pipeline.select(filter);
        let dump = match request {
            NiciraRequest::Flow(_) => Dump::nicira_flows(xid, selection),
            NiciraRequest::Aggregate(_) => Dump::totals(xid, Version::V1_0, selection, true),
        };
        self.begin(at, dump, datapath);
        Ok(None)
    }
}

/// Checks that the message is Nicira's and the version 1.0.
fn check_speaker(connection: &Connection, from: &Experimenter) -> Result<(), ErrorCode> {
    let known = from.experimenter == NICIRA && connection.version() == Version::V1_0;
    if known { Ok(()) } else { Err(ErrorCode::RequestBadExperimenter) }
}

/// Converts flow entries to Nicira's format.
pub fn flows_up(rows: Vec<FlowStats>) -> MultipartReplyBody {
    let rows = rows.into_iter().map(downgrade::nicira_flow_stats).collect();
    let reply = put_reply(&NiciraReply::Flow(rows));
    MultipartReplyBody::Experimenter(reply.expect("each row was encoded once"))
}

/// Converts an aggregate to Nicira's format.
pub fn aggregate_up(sum: AggregateStats) -> MultipartReplyBody {
    let reply = put_reply(&NiciraReply::Aggregate(sum));
    MultipartReplyBody::Experimenter(reply.expect("every aggregate can be encoded"))
}

/// Creates a flow-removed message in the format that this controller selected.
pub fn removed_up(connection: &Connection, news: &FlowRemoved) -> Message {
    let standard = || downgrade::flow_removed(connection.version(), news.clone());
    if !connection.nicira_flows {
        return Message::FlowRemoved(standard());
    }
    let told = NiciraMessage::FlowRemoved(downgrade::nicira_flow_removed(news.clone()));
    put_message(&told).map_or_else(|_| Message::FlowRemoved(standard()), Message::Experimenter)
}

/// Creates a packet-in message in the format that this controller selected.
pub fn frame_up(connection: &Connection, news: PacketIn) -> Message {
    if !connection.nicira_frames {
        return Message::PacketIn(news);
    }
    let told = NiciraMessage::PacketIn(downgrade::nicira_packet_in(news.clone()));
    put_message(&told).map_or(Message::PacketIn(news), Message::Experimenter)
}
