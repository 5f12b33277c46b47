//! Requests to a switch, from words: statistics, descriptions, settings, roles.

use openflow::model::group::{GROUP_ALL, GROUP_ANY};
use openflow::model::matching::Match;
use openflow::model::meter::METER_ALL;
use openflow::model::table::TABLE_ALL;
use openflow::model::*;
use openflow::version::Version;

use crate::bytes::hex;
use crate::case::Do;
use crate::frame::number;
use crate::language::send;
use crate::player::generation_base;
use crate::words;

/// Parses a request whose reply is expected.
pub fn ask(words: &[&str]) -> Result<Do, String> {
    let (what, rest) = words.split_first().ok_or("ask WHAT")?;
    let first = rest.first().copied();
    let port = |otherwise| first.map_or(Ok(otherwise), |text| number(text).map(|it| it as u32));
    let multipart = |body: MultipartRequestBody| send(move |_| Ok(request(body.clone())));
    Ok(match *what {
        "barrier" => Do::SendAlone(Box::new(|_| Ok(Message::BarrierRequest))),
        "features_request" => send(|_| Ok(Message::FeaturesRequest)),
        "config" => send(|_| Ok(Message::GetConfigRequest)),
        "async" => send(|_| Ok(Message::GetAsyncRequest)),
        "echo" => {
            let bytes = hex(rest)?;
            send(move |_| Ok(Message::EchoRequest(bytes.clone())))
        }
        "role" => {
            let role = match first {
                Some("nochange") => Role::NoChange,
                Some("equal") => Role::Equal,
                Some("master") => Role::Master,
                Some("slave") => Role::Slave,
                _ => return Err("ask role ROLE GENERATION".into()),
            };
            let generation = rest.get(1).map_or(Ok(0), |text| number(text))?;
            send(move |_| {
                // A real switch keeps the highest generation ID that it has received.
                let generation = generation_base() + generation;
                let request = RoleRequest { role, generation, ..RoleRequest::default() };
                Ok(Message::RoleRequest(request))
            })
        }
        "queue_config" => {
            let port = port(reserved::NONE)?;
            send(move |_| Ok(Message::QueueGetConfigRequest(port)))
        }
        "flow" | "aggregate" => {
            let which = flow_request(rest)?;
            let is_flow = *what == "flow";
            multipart(match is_flow {
                true => MultipartRequestBody::Flow(which),
                false => MultipartRequestBody::Aggregate(which),
            })
        }
        "desc" => multipart(MultipartRequestBody::Desc),
        "table" => multipart(MultipartRequestBody::Table),
        "port" => multipart(MultipartRequestBody::Port(port(reserved::NONE)?)),
        "port_desc" => multipart(MultipartRequestBody::PortDesc(reserved::NONE)),
        "queue" => {
            let (port, queue) = queue_named(rest)?;
            send(move |version| {
                let every = if version == Version::V1_0 { reserved::ALL } else { reserved::NONE };
                let port = port.unwrap_or(every);
                Ok(request(MultipartRequestBody::Queue { port, queue }))
            })
        }
        "queue_desc" => {
            let (port, queue) = queue_named(rest)?;
            let port = port.unwrap_or(reserved::NONE);
            multipart(MultipartRequestBody::QueueDesc { port, queue })
        }
        "group" => multipart(MultipartRequestBody::Group(port(GROUP_ALL)?)),
        "group_desc" => multipart(MultipartRequestBody::GroupDesc(GROUP_ALL)),
        "group_features" => multipart(MultipartRequestBody::GroupFeatures),
        "meter" => multipart(MultipartRequestBody::Meter(port(METER_ALL)?)),
        "meter_config" => multipart(MultipartRequestBody::MeterConfig(METER_ALL)),
        "meter_features" => multipart(MultipartRequestBody::MeterFeatures),
        "table_features" => multipart(MultipartRequestBody::TableFeatures(Vec::new())),
        "table_desc" => multipart(MultipartRequestBody::TableDesc),
        "monitor" => multipart(MultipartRequestBody::FlowMonitor(vec![monitor(rest)?])),
        "controllers" => multipart(MultipartRequestBody::ControllerStatus),
        "bundle_features" => {
            let flags = match first {
                Some("timestamp") => BundleFeatureFlags::TIMESTAMP,
                _ => BundleFeatureFlags::NONE,
            };
            let properties = Vec::new();
            multipart(MultipartRequestBody::BundleFeatures(BundleFeaturesRequest {
                flags,
                properties,
            }))
        }
        _ => return Err(format!("unknown request {what}")),
    })
}

/// `[PORT [QUEUE]]`: otherwise every port, and all queues.
fn queue_named(words: &[&str]) -> Result<(Option<PortNo>, u32), String> {
    let port = words.first().map(|text| words::port(text)).transpose()?;
    let queue = words.get(1).map_or(Ok(QUEUE_ALL.into()), |text| number(text))?;
    Ok((port, queue as u32))
}

/// Returns a request in one part.
pub fn request(body: MultipartRequestBody) -> Message {
    Message::MultipartRequest(body.into())
}

fn flow_request(words: &[&str]) -> Result<FlowStatsRequest, String> {
    // A deletion names the same fields.
    let words: Vec<&str> =
        ["delete", "table=all"].into_iter().chain(words.iter().copied()).collect();
    let mut last_table = words.clone();
    if words[2..].iter().any(|word| word.starts_with("table=")) {
        last_table.remove(1);
    }
    let filter = words::flow(&last_table)?;
    Ok(FlowStatsRequest {
        matching: filter.matching,
        table: filter.table,
        out_port: filter.out_port,
        out_group: filter.out_group,
        cookie: filter.cookie,
        cookie_mask: filter.cookie_mask,
    })
}

/// Parses a monitor of all entries with these flags: `FLAG|FLAG`.
fn monitor(words: &[&str]) -> Result<FlowMonitorRequest, String> {
    let mut flags = FlowMonitorFlags::NONE;
    for name in words.iter().flat_map(|word| word.split('|')) {
        flags |= match name {
            "initial" => FlowMonitorFlags::INITIAL,
            "add" => FlowMonitorFlags::ADD,
            "removed" => FlowMonitorFlags::REMOVED,
            "modify" => FlowMonitorFlags::MODIFY,
            "instructions" => FlowMonitorFlags::INSTRUCTIONS,
            "no_abbreviation" => FlowMonitorFlags::NO_ABBREVIATION,
            _ => return Err(format!("a monitor has no {name}")),
        };
    }
    Ok(FlowMonitorRequest {
        id: 7,
        command: FlowMonitorCommand::Add,
        flags,
        matching: Match::ANY,
        table: TABLE_ALL,
        out_port: reserved::NONE,
        out_group: GROUP_ANY,
    })
}
