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
use openflow::model::queue::QUEUE_ALL;
use openflow::model::table::TABLE_ALL;
use openflow::model::{Message, PortNo, reserved};
use openflow::version::{ErrorCode, Version};

use crate::translate::flow::stats_filter_down;

use super::multipart_reply::Dump;
use super::shaping::QueueRange;
use super::{Agent, Datapath, shaping, tables};

/// All tables or all ports.
const ALL: (u32, u32) = (0, u32::MAX);

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
        let dump = match request {
            Ask::Desc => return Ok(Some(description(&format!("{:016x}", self.datapath_id)))),
            Ask::Flow(which) => return self.flows(at, xid, &which, datapath),
            Ask::FlowStats(which) => {
                check_table(which.table, datapath.pipeline)?;
                let filter = stats_filter_down(&which, self.who(at, xid).speaker())?;
                let filter = filter.expect("only 1.0 asks for parts of a table");
                Dump::flow_counters(xid, version, datapath.pipeline.select(filter))
            }
            Ask::Aggregate(which) => {
                return self.aggregate(at, xid, &which, datapath);
            }
            Ask::Table if self.connections[at].sees_parts() => {
                return Ok(Some(MultipartReplyBody::Table(tables::parts(datapath.pipeline))));
            }
            Ask::Table => Dump::resources(xid, version, ALL, MultipartReplyBody::Table(Vec::new())),
            Ask::Port(port) => {
                let place = datapath
                    .forward_ports
                    .iter()
                    .position(|forward_port| forward_port.number == port);
                let body = MultipartReplyBody::Port(Vec::new());
                match place.map(|place| (place as u32, place as u32)) {
                    Some(place) => Dump::resources(xid, version, place, body),
                    None if port == reserved::NONE => Dump::resources(xid, version, ALL, body),
                    // 1.0 and 1.1 have no error for a port that does not exist.
                    None if version < Version::V1_2 => return Ok(Some(body)),
                    None => return Err(ErrorCode::RequestBadPort),
                }
            }
            Ask::PortDesc(port) => {
                let place = self.ports.numbers().iter().position(|number| *number == port);
                let body = MultipartReplyBody::PortDesc(Vec::new());
                match place.map(|place| (place as u32, place as u32)) {
                    Some(place) => Dump::resources(xid, version, place, body),
                    None if port == reserved::NONE => Dump::resources(xid, version, ALL, body),
                    None => return Ok(Some(body)),
                }
            }
            Ask::Queue { port, queue } => {
                self.check_queue_port(port)?;
                let (range, ports) = self.queues(port, queue);
                let first = range.next(range.start(), (&*datapath.pipeline, ports), datapath.now);
                if first.is_none() && queue != QUEUE_ALL {
                    return Err(ErrorCode::QueueOpBadQueue);
                }
                Dump::queues(xid, version, range, MultipartReplyBody::Queue(Vec::new()))
            }
            Ask::QueueDesc { port, queue } => {
                self.check_queue_port(port)?;
                let (range, _) = self.queues(port, queue);
                Dump::queues(xid, version, range, MultipartReplyBody::QueueDesc(Vec::new()))
            }
            Ask::Group(group) => {
                let body = MultipartReplyBody::Group(Vec::new());
                Dump::resources(xid, version, shaping::groups(group), body)
            }
            Ask::GroupDesc(group) => {
                let body = MultipartReplyBody::GroupDesc(Vec::new());
                Dump::resources(xid, version, shaping::groups(group), body)
            }
            Ask::GroupFeatures => {
                let features = shaping::group_features(version, datapath.pipeline);
                return Ok(Some(MultipartReplyBody::GroupFeatures(features)));
            }
            Ask::Meter(meter) => {
                let numbers = shaping::meters(meter, datapath.pipeline)?;
                Dump::resources(xid, version, numbers, MultipartReplyBody::Meter(Vec::new()))
            }
            Ask::MeterConfig(meter) => {
                let numbers = shaping::meters(meter, datapath.pipeline)?;
                Dump::resources(xid, version, numbers, MultipartReplyBody::MeterConfig(Vec::new()))
            }
            Ask::MeterFeatures => {
                let features = shaping::meter_features(version, datapath.pipeline);
                return Ok(Some(MultipartReplyBody::MeterFeatures(features)));
            }
            Ask::TableFeatures(wanted) => {
                return self.table_features(at, xid, wanted, datapath).map(|()| None);
            }
            Ask::TableDesc => {
                Dump::resources(xid, version, ALL, MultipartReplyBody::TableDesc(Vec::new()))
            }
            Ask::FlowMonitor(requests) => return self.watch(at, xid, &requests, datapath),
            Ask::ControllerStatus => {
                let rows = MultipartReplyBody::ControllerStatus(self.controller_statuses());
                Dump::ready(xid, version, rows)?
            }
            Ask::BundleFeatures(request) => {
                return self.bundle_features(&request, datapath).map(Some);
            }
            Ask::Experimenter(from) => {
                return self.experimenter_statistics(at, xid, &from, datapath);
            }
        };
        self.begin(at, dump, datapath);
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

    /// Returns the queues that a request selects, and the numbers of all ports.
    fn queues(&self, port: PortNo, queue: u32) -> (QueueRange, &[PortNo]) {
        let ports = self.ports.numbers();
        (QueueRange::new(port, queue, ports), ports)
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
