//! Multipart requests as JSON.

use openflow::model::{
    FlowMonitorCommand, FlowMonitorRequest, GROUP_ALL, METER_ALL, MultipartRequest,
    MultipartRequestBody, QUEUE_ALL, reserved,
};
use openflow::version::MultipartKind;

use super::flows::{GROUPS_ANY, TABLES, matching, which};
use super::groups::{GROUPS, METERS};
use super::keys::{Keys, ValueNames, experimenter};
use super::{bundles, tables};

const MONITOR_COMMANDS: &ValueNames<FlowMonitorCommand> = &[
    ("add", FlowMonitorCommand::Add),
    ("modify", FlowMonitorCommand::Modify),
    ("delete", FlowMonitorCommand::Delete),
];

const QUEUES: &ValueNames<u32> = &[("all", QUEUE_ALL)];

/// Parses a multipart request; `of` names its type.
pub fn request(keys: &mut Keys<'_>) -> Result<MultipartRequest, String> {
    let of = keys.take("of").ok_or("of is missing")?;
    let named = |kind: &&MultipartKind| of.as_str() == Some(kind.name());
    let kind = MultipartKind::ALL.iter().find(named).copied();
    let kind = kind.ok_or_else(|| format!("unknown multipart request {of}"))?;
    Ok(MultipartRequest { more: keys.is("more")?, body: body(kind, keys)? })
}

fn body(kind: MultipartKind, keys: &mut Keys<'_>) -> Result<MultipartRequestBody, String> {
    let queue = |keys: &mut Keys<'_>| -> Result<(u32, u32), String> {
        let queue = keys.number_or("queue", QUEUE_ALL, QUEUES)?;
        Ok((keys.port("port", reserved::NONE)?, queue))
    };
    let group = |keys: &mut Keys<'_>| keys.number_or("group", GROUP_ALL, GROUPS);
    let meter = |keys: &mut Keys<'_>| keys.number_or("meter", METER_ALL, METERS);
    Ok(match kind {
        MultipartKind::Desc => MultipartRequestBody::Desc,
        MultipartKind::Flow => MultipartRequestBody::Flow(which(keys)?),
        MultipartKind::Aggregate => MultipartRequestBody::Aggregate(which(keys)?),
        MultipartKind::FlowStats => MultipartRequestBody::FlowStats(which(keys)?),
        MultipartKind::Table => MultipartRequestBody::Table,
        MultipartKind::Port => MultipartRequestBody::Port(keys.port("port", reserved::NONE)?),
        MultipartKind::PortDesc => {
            MultipartRequestBody::PortDesc(keys.port("port", reserved::NONE)?)
        }
        MultipartKind::Queue => {
            let (port, queue) = queue(keys)?;
            MultipartRequestBody::Queue { port, queue }
        }
        MultipartKind::QueueDesc => {
            let (port, queue) = queue(keys)?;
            MultipartRequestBody::QueueDesc { port, queue }
        }
        MultipartKind::Group => MultipartRequestBody::Group(group(keys)?),
        MultipartKind::GroupDesc => MultipartRequestBody::GroupDesc(group(keys)?),
        MultipartKind::GroupFeatures => MultipartRequestBody::GroupFeatures,
        MultipartKind::Meter => MultipartRequestBody::Meter(meter(keys)?),
        MultipartKind::MeterConfig => MultipartRequestBody::MeterConfig(meter(keys)?),
        MultipartKind::MeterFeatures => MultipartRequestBody::MeterFeatures,
        MultipartKind::TableFeatures => {
            MultipartRequestBody::TableFeatures(keys.rows("tables", tables::features)?)
        }
        MultipartKind::TableDesc => MultipartRequestBody::TableDesc,
        MultipartKind::FlowMonitor => {
            MultipartRequestBody::FlowMonitor(keys.rows("monitors", monitor)?)
        }
        MultipartKind::ControllerStatus => MultipartRequestBody::ControllerStatus,
        MultipartKind::BundleFeatures => {
            MultipartRequestBody::BundleFeatures(bundles::features_request(keys)?)
        }
        MultipartKind::Experimenter => MultipartRequestBody::Experimenter(experimenter(keys)?),
    })
}

fn monitor(keys: &mut Keys<'_>) -> Result<FlowMonitorRequest, String> {
    let plain = FlowMonitorRequest::default();
    Ok(FlowMonitorRequest {
        id: keys.number("monitor", plain.id)?,
        command: keys.word("command", plain.command, MONITOR_COMMANDS)?,
        flags: keys.bits("flags")?,
        matching: matching(keys, "match")?,
        table: keys.number_or("table", plain.table, TABLES)?,
        out_port: keys.port("out_port", plain.out_port)?,
        out_group: keys.number_or("out_group", plain.out_group, GROUPS_ANY)?,
    })
}
