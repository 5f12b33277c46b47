//! Nicira's extensions of 1.0: what Open vSwitch's tools say to a 1.0 switch by default.
//!
//! Source: `nicira-ext.h` of Open vSwitch. With them a 1.0 controller names any field, means the
//! numbers of all tables, and plays a role as from 1.2 on, but for elections.

use openflow::codec::nicira::{put_message, put_reply, read_message, read_request};
use openflow::header::Xid;
use openflow::model::asynchronous::AsyncConfig;
use openflow::model::multipart::{AggregateStats, FlowStats, MultipartReplyBody};
use openflow::model::nicira::{Form, NICIRA, NiciraMessage, NiciraReply, NiciraRequest};
use openflow::model::table::TABLE_ALL;
use openflow::model::{Experimenter, FlowMod, FlowModCommand, Message};
use openflow::version::{AsyncKind, ErrorCode, Version};

use crate::lower::express;
use crate::lower::flow::{Speaker, stats_filter_down};

use super::change::Who;
use super::connection::Connection;
use super::dump::Dump;
use super::{Agent, Datapath};

impl Agent {
    /// Does what an experimenter's message asks, if it is one of Nicira's.
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
                let who = Who { parts: false, ..self.who(at, xid) };
                let change = self.in_table(at, change);
                return self.change(who, &Message::FlowMod(change), datapath);
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
            // Statistics tell the age; no entry names a controller by its number.
            NiciraMessage::FlowAge | NiciraMessage::SetControllerId(_) => {}
            NiciraMessage::RoleReply(_)
            | NiciraMessage::FlowRemoved(_)
            | NiciraMessage::PacketIn(_) => return Err(ErrorCode::RequestBadExperimenterType),
        }
        Ok(())
    }

    /// Where flow-mods name no table, entries are deleted from all.
    fn in_table(&self, at: usize, change: FlowMod) -> FlowMod {
        let deletes =
            matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        let table =
            if deletes && !self.connections[at].table_ids { TABLE_ALL } else { change.table };
        FlowMod { table, ..change }
    }

    /// Answers an experimenter's request for statistics, if it is one of Nicira's.
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
        // These know of all tables.
        let speaker = Speaker { parts: false, ..self.who(at, xid).speaker() };
        let filter = stats_filter_down(which, speaker)?.ok_or(ErrorCode::RequestBadTable)?;
        if matches!(request, NiciraRequest::Flow(_)) {
            self.begin(at, Dump::nicira_flows(xid, filter), datapath);
            return Ok(None);
        }
        let totals = datapath.pipeline.tables().totals(&filter);
        let sum = AggregateStats {
            packets: totals.frames,
            bytes: totals.bytes,
            flows: totals.entries as u32,
        };
        let reply = put_reply(&NiciraReply::Aggregate(sum));
        let reply = reply.map_err(|_| ErrorCode::RequestBadExperimenterType)?;
        Ok(Some(MultipartReplyBody::Experimenter(reply)))
    }
}

/// Nicira's extensions are of 1.0.
fn check_speaker(connection: &Connection, from: &Experimenter) -> Result<(), ErrorCode> {
    let known = from.experimenter == NICIRA && connection.version() == Version::V1_0;
    if known { Ok(()) } else { Err(ErrorCode::RequestBadExperimenter) }
}

/// Entries in Nicira's words, as far as there are such.
pub fn flows_up(rows: Vec<FlowStats>) -> MultipartReplyBody {
    let said = |row: FlowStats| match put_reply(&NiciraReply::Flow(vec![row.clone()])) {
        Ok(_) => row,
        Err(_) => express::flow_stats(Version::V1_0, row),
    };
    let rows = rows.into_iter().map(said).collect();
    let reply = put_reply(&NiciraReply::Flow(rows));
    MultipartReplyBody::Experimenter(reply.expect("each row can be said"))
}

/// News in Nicira's words.
pub fn news_up(news: &NiciraMessage) -> Option<Message> {
    put_message(news).ok().map(Message::Experimenter)
}
