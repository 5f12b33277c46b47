//! Statistics and descriptions. Short replies are sent immediately, long ones in parts while the
//! controller reads.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3.5; 1.3.5, section 7.3.5; 1.5.1, section
//! 7.3.5.

use dataplane::pipeline::Pipeline;
use openflow::header::Xid;
use openflow::model::bundle::BundleFeaturesRequest;
use openflow::model::flow::monitor::FlowMonitorRequest;
use openflow::model::multipart::{
    AggregateStats, FlowStatsRequest, MultipartReply, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, SwitchDescription,
};
use openflow::model::table::TABLE_ALL;
use openflow::model::{Message, PortNo, reserved};
use openflow::version::{ErrorCode, Version};

use crate::forward::Lane;
use crate::lower::express;
use crate::lower::flow::stats_filter_down;

use super::dump::Dump;
use super::{Agent, Datapath, port_book, shaping, tables};

impl Agent {
    /// Adds a part of a request, which has `bytes` bytes. After the last part, sends the reply or
    /// begins a long one.
    pub(super) fn multipart(
        &mut self,
        at: usize,
        xid: Xid,
        (part, bytes): (MultipartRequest, usize),
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        let whole = !part.more && !self.connections[at].parts.has_begun();
        let body = if whole { Some(part.body) } else { self.take_part(at, xid, (part, bytes))? };
        let Some(body) = body else { return Ok(()) };
        if let Some(reply) = self.statistics(at, xid, body, datapath)? {
            let more = false;
            let reply = Message::MultipartReply(MultipartReply { more, body: reply });
            self.connections[at].reply(xid, &reply);
        }
        Ok(())
    }

    fn take_part(
        &mut self,
        at: usize,
        xid: Xid,
        (part, bytes): (MultipartRequest, usize),
    ) -> Result<Option<MultipartRequestBody>, ErrorCode> {
        let bytes_max = self.limits.multipart_request_bytes;
        self.connections[at].parts.take(xid, part, bytes, bytes_max)
    }

    /// Returns the reply's body, or `None` if the reply is sent in parts.
    fn statistics(
        &mut self,
        at: usize,
        xid: Xid,
        request: MultipartRequestBody,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        use MultipartRequestBody as Ask;
        let version = self.connections[at].version();
        let body = match request {
            Ask::Desc => return Ok(Some(description(&format!("{:016x}", self.datapath_id)))),
            Ask::Flow(which) => return self.flows(at, xid, &which, datapath),
            Ask::FlowStats(which) => {
                check_table(which.table, datapath.pipeline)?;
                let filter = stats_filter_down(&which, self.who(at, xid).speaker())?;
                let filter = filter.expect("only 1.0 requests parts of a table");
                let selection = datapath.pipeline.select(filter);
                self.begin(at, Dump::flow_counters(xid, version, selection), datapath);
                return Ok(None);
            }
            Ask::Aggregate(which) => {
                return self.aggregate(at, xid, &which, datapath);
            }
            Ask::Table => MultipartReplyBody::Table(self.tables(at, datapath)),
            Ask::Port(port) => self.port_stats(port, version, datapath)?,
            Ask::PortDesc(port) => {
                let asked = |it: &&openflow::model::PortDescription| {
                    port == reserved::NONE || it.number == port
                };
                let ports = self.ports.descriptions().iter().filter(asked);
                let ports = ports.map(|port| express::port(version, port.clone())).collect();
                MultipartReplyBody::PortDesc(ports)
            }
            Ask::Queue { port, queue } => {
                self.check_queue_port(port)?;
                let rows = shaping::queue_stats(port, queue, datapath)?;
                MultipartReplyBody::Queue(rows)
            }
            Ask::QueueDesc { port, queue } => {
                self.check_queue_port(port)?;
                let rows = shaping::queue_descriptions(port, Some(queue), version, datapath);
                MultipartReplyBody::QueueDesc(rows)
            }
            Ask::Group(group) => {
                let body = MultipartReplyBody::Group(Vec::new());
                let dump = Dump::resources(xid, version, shaping::groups(group), body);
                self.begin(at, dump, datapath);
                return Ok(None);
            }
            Ask::GroupDesc(group) => {
                let body = MultipartReplyBody::GroupDesc(Vec::new());
                let dump = Dump::resources(xid, version, shaping::groups(group), body);
                self.begin(at, dump, datapath);
                return Ok(None);
            }
            Ask::GroupFeatures => {
                let features = shaping::group_features(version, datapath.pipeline);
                return Ok(Some(MultipartReplyBody::GroupFeatures(features)));
            }
            Ask::Meter(meter) => {
                let numbers = shaping::meters(meter, datapath.pipeline)?;
                let body = MultipartReplyBody::Meter(Vec::new());
                self.begin(at, Dump::resources(xid, version, numbers, body), datapath);
                return Ok(None);
            }
            Ask::MeterConfig(meter) => {
                let numbers = shaping::meters(meter, datapath.pipeline)?;
                let body = MultipartReplyBody::MeterConfig(Vec::new());
                self.begin(at, Dump::resources(xid, version, numbers, body), datapath);
                return Ok(None);
            }
            Ask::MeterFeatures => {
                let features = shaping::meter_features(version, datapath.pipeline);
                return Ok(Some(MultipartReplyBody::MeterFeatures(features)));
            }
            Ask::TableFeatures(wanted) => {
                return self.table_features(at, xid, wanted, datapath).map(|()| None);
            }
            Ask::TableDesc => {
                MultipartReplyBody::TableDesc(tables::descriptions(datapath.pipeline))
            }
            Ask::FlowMonitor(requests) => return self.watch(at, xid, &requests, datapath),
            Ask::ControllerStatus => {
                let rows = self.controller_statuses();
                MultipartReplyBody::ControllerStatus(rows)
            }
            Ask::BundleFeatures(request) => {
                return self.bundle_features(&request, datapath).map(Some);
            }
            Ask::Experimenter(from) => {
                return self.experimenter_statistics(at, xid, &from, datapath);
            }
        };
        self.begin(at, Dump::ready(xid, version, body)?, datapath);
        Ok(None)
    }

    fn flows(
        &mut self,
        at: usize,
        xid: Xid,
        which: &FlowStatsRequest,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        let who = self.who(at, xid);
        if !who.parts {
            check_table(which.table, datapath.pipeline)?;
        }
        let Some(filter) = stats_filter_down(which, who.speaker())? else {
            return Ok(Some(MultipartReplyBody::Flow(Vec::new())));
        };
        let selection = datapath.pipeline.select(filter);
        self.begin(at, Dump::flows(xid, who.version, selection, who.parts), datapath);
        Ok(None)
    }

    fn aggregate(
        &mut self,
        at: usize,
        xid: Xid,
        which: &FlowStatsRequest,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        let who = self.who(at, xid);
        if !who.parts {
            check_table(which.table, datapath.pipeline)?;
        }
        let Some(filter) = stats_filter_down(which, who.speaker())? else {
            return Ok(Some(MultipartReplyBody::Aggregate(AggregateStats::default())));
        };
        let selection = datapath.pipeline.select(filter);
        self.begin(at, Dump::totals(xid, who.version, selection, false), datapath);
        Ok(None)
    }

    /// Returns statistics of one port, or of all with [`reserved::NONE`]. For a port that does not
    /// exist, 1.0 and 1.1 return an empty list; later versions return an error.
    fn port_stats(
        &mut self,
        port: PortNo,
        version: Version,
        datapath: &mut Datapath<'_>,
    ) -> Result<MultipartReplyBody, ErrorCode> {
        let known = port == reserved::NONE || self.ports.find(port).is_some();
        if !known && version >= Version::V1_2 {
            return Err(ErrorCode::RequestBadPort);
        }
        let age = datapath.now.since(self.opened_at);
        let wanted = |lane: &&mut Lane| port == reserved::NONE || lane.number == port;
        let rows = datapath.lanes.iter_mut().filter(wanted);
        let rows = rows.map(|lane| port_book::stats(lane, age)).collect();
        Ok(MultipartReplyBody::Port(rows))
    }

    /// Adds, modifies and deletes flow monitors, all or none. The reply has the existing flow
    /// entries for monitors that request them.
    fn watch(
        &mut self,
        at: usize,
        xid: Xid,
        requests: &[FlowMonitorRequest],
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<MultipartReplyBody>, ErrorCode> {
        let tables = datapath.pipeline.tables().count_tables();
        let there =
            |it: &FlowMonitorRequest| it.table == TABLE_ALL || usize::from(it.table) < tables;
        if !requests.iter().all(there) {
            return Err(ErrorCode::FlowMonitorBadTable);
        }
        let monitors_max = self.limits.monitors;
        let version = self.connections[at].version();
        let begun = self.connections[at].monitors.set_all(requests, version, monitors_max)?;
        let any = self.connections.iter().any(|connection| !connection.monitors.is_empty());
        datapath.pipeline.watch(any);
        let initial = begun.into_iter().filter(|monitor| monitor.tells_initial()).collect();
        self.begin(at, Dump::monitors(xid, version, initial), datapath);
        Ok(None)
    }

    fn bundle_features(
        &mut self,
        request: &BundleFeaturesRequest,
        datapath: &Datapath<'_>,
    ) -> Result<MultipartReplyBody, ErrorCode> {
        let wall = self.wall(datapath.now);
        self.schedule.features(request, wall).map(MultipartReplyBody::BundleFeatures)
    }
}

/// Checks that the table exists, which is an error from 1.1 on.
pub(super) fn check_table(table: u8, pipeline: &Pipeline) -> Result<(), ErrorCode> {
    let known = usize::from(table) < pipeline.tables().count_tables();
    if known || table == TABLE_ALL { Ok(()) } else { Err(ErrorCode::RequestBadTable) }
}

/// Returns the description of the switch.
fn description(datapath: &str) -> MultipartReplyBody {
    MultipartReplyBody::Desc(SwitchDescription {
        manufacturer: "planimeter".into(),
        hardware: "user space".into(),
        software: concat!("planimeter ", env!("CARGO_PKG_VERSION")).into(),
        serial_number: "none".into(),
        datapath: datapath.into(),
    })
}
