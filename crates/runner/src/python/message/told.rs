//! Content of the messages that a script receives, without their kind.
//!
//! Invariants: every kind of message has an object here. A message that a script may also send has
//! the form in which it sends it.

use openflow::model::message::Message;
use openflow::model::{
    ControllerProperty, ControllerStatus, ControllerStatusReason, Counters, FlowEvent, FlowRemoved,
    FlowStats, FlowUpdate, MultipartReplyBody, PacketQueue, PortDescription, PortProperty,
    PortStats, PortStatusReason, QueueProperty, Role, RoleStatusReason, TableStatusReason,
};
use serde_json::{Value, json};

use super::super::flow;
use super::keys::{experimenter_json, experimenters_json, word};
use super::settings::{
    ROLES, async_config_json, role_request_json, set_config_json, table_mod_json,
};
use super::tables::{features_json, field_json};
use super::{bundles, groups, hex, typed};

/// Writes the content of a message, without its kind.
pub fn told(message: &Message) -> Value {
    match message {
        Message::Hello(it) => json!({ "versions": it.versions }),
        Message::EchoRequest(data) | Message::EchoReply(data) => json!({ "data": hex(data) }),
        Message::Error(error) => {
            json!({ "code": error.code.to_string(), "data": hex(&error.data) })
        }
        Message::Experimenter(it) => experimenter_json(it),
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::GetAsyncRequest
        | Message::BarrierRequest
        | Message::BarrierReply => json!({}),
        Message::FeaturesReply(it) => json!({
            "datapath_id": it.datapath_id,
            "buffers": it.buffers,
            "tables": it.tables,
            "auxiliary": it.auxiliary,
            "capabilities": it.capabilities.names(),
            "actions": it.actions.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
            "ports": it.ports.iter().map(port).collect::<Vec<_>>(),
        }),
        Message::GetConfigReply(it) | Message::SetConfig(it) => set_config_json(it),
        Message::PacketIn(it) => json!({
            "buffer_id": it.buffer_id,
            "frame_bytes": it.frame_bytes,
            "in_port": flow::port_told(it.in_port),
            "fields": flow::matching_told(&it.fields),
            "reason": format!("{:?}", it.reason),
            "table": it.table,
            "cookie": it.cookie,
            "data": hex(&it.data),
        }),
        Message::FlowRemoved(it) => removed(it),
        Message::PortStatus(it) => {
            let reason = match it.reason {
                PortStatusReason::Add => "add",
                PortStatusReason::Delete => "delete",
                PortStatusReason::Modify => "modify",
            };
            json!({ "reason": reason, "port": port(&it.port) })
        }
        Message::MultipartReply(reply) => json!({
            "of": reply.body.kind().to_string(), "more": reply.more, "rows": rows(&reply.body),
        }),
        Message::QueueGetConfigReply(it) => json!({
            "port": flow::port_told(it.port),
            "queues": it.queues.iter().map(queue).collect::<Vec<_>>(),
        }),
        Message::RoleRequest(it) | Message::RoleReply(it) => role_request_json(it),
        Message::GetAsyncReply(it) | Message::SetAsync(it) => async_config_json(it),
        Message::RoleStatus(it) => {
            let reason = match it.reason {
                RoleStatusReason::MasterRequest => "master_request",
                RoleStatusReason::Config => "config",
                RoleStatusReason::Experimenter => "experimenter",
            };
            json!({
                "role": role(it.role), "reason": reason, "generation": it.generation,
                "experimenters": experimenters_json(&it.properties),
            })
        }
        Message::TableStatus(it) => {
            let reason = match it.reason {
                TableStatusReason::VacancyDown => "vacancy_down",
                TableStatusReason::VacancyUp => "vacancy_up",
            };
            json!({ "reason": reason, "table": table(&it.table) })
        }
        Message::RequestForward(it) => {
            json!({ "request_xid": it.xid, "request": typed(&it.request) })
        }
        Message::BundleControl(it) => bundles::control_json(it),
        Message::BundleAddMessage(it) => bundles::add_json(it),
        Message::ControllerStatus(it) => controller(it),
        Message::GroupMod(it) => groups::group_mod_json(it),
        Message::MeterMod(it) => groups::meter_mod_json(it),
        // Requests that no switch sends, and that none forwards.
        Message::PacketOut(_)
        | Message::FlowMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_)
        | Message::MultipartRequest(_)
        | Message::QueueGetConfigRequest(_) => json!({ "text": message.to_string() }),
    }
}

fn removed(it: &FlowRemoved) -> Value {
    json!({
        "reason": it.reason.name(),
        "table": it.table,
        "match": flow::matching_told(&it.matching),
        "priority": it.priority,
        "cookie": it.cookie,
        "age_ns": it.age.0,
        "idle_timeout_s": it.idle_timeout_s,
        "hard_timeout_s": it.hard_timeout_s,
        "packets": it.packets,
        "bytes": it.bytes,
    })
}

/// Writes the rows of a multipart reply.
fn rows(body: &MultipartReplyBody) -> Value {
    match body {
        MultipartReplyBody::Desc(it) => json!([{
            "manufacturer": it.manufacturer.to_string(),
            "hardware": it.hardware.to_string(),
            "software": it.software.to_string(),
            "serial_number": it.serial_number.to_string(),
            "datapath": it.datapath.to_string(),
        }]),
        MultipartReplyBody::Flow(rows) => rows.iter().map(flow_row).collect(),
        MultipartReplyBody::Aggregate(it) => {
            json!([{ "packets": it.packets, "bytes": it.bytes, "flows": it.flows }])
        }
        MultipartReplyBody::Table(rows) => {
            let one = |it: &openflow::model::TableStats| {
                let abilities = it.abilities.as_ref();
                json!({
                    "table": it.table, "entries": it.entries, "lookups": it.lookups,
                    "matched": it.matched,
                    "name": abilities.map(|it| it.name.to_string()),
                    "entries_max": abilities.map(|it| it.entries_max),
                })
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::Port(rows) => rows.iter().map(port_row).collect(),
        MultipartReplyBody::Queue(rows) => {
            let one = |it: &openflow::model::QueueStats| {
                json!({
                    "port": flow::port_told(it.port), "queue": it.queue,
                    "tx_bytes": it.tx_bytes, "tx_packets": it.tx_packets,
                    "tx_errors": it.tx_errors, "age_ns": it.age.map(|age| age.0),
                })
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::Group(rows) => {
            let one = |it: &openflow::model::GroupStats| {
                let bucket = |it: &openflow::model::BucketCounters| json!({ "packets": it.packets, "bytes": it.bytes });
                json!({
                    "group": it.group, "references": it.references, "packets": it.packets,
                    "bytes": it.bytes, "age_ns": it.age.0,
                    "buckets": it.buckets.iter().map(bucket).collect::<Vec<_>>(),
                })
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::GroupDesc(rows) => {
            rows.iter().map(|it| groups::group_json(it.group, it.kind, &it.buckets)).collect()
        }
        MultipartReplyBody::GroupFeatures(it) => {
            let kinds = groups::GROUP_KINDS.iter().zip(it.groups_max).zip(it.actions);
            let kinds = kinds.map(|(((name, _), most), actions)| {
                let actions = actions.iter().map(|kind| kind.name()).collect::<Vec<_>>();
                json!({ "group_type": name, "groups_max": most, "actions": actions })
            });
            let of = kinds.collect::<Vec<_>>();
            json!([{
                "types": it.kinds.names(), "capabilities": it.capabilities.names(), "of_type": of,
            }])
        }
        MultipartReplyBody::Meter(rows) => {
            let one = |it: &openflow::model::MeterStats| {
                let band = |it: &openflow::model::BandCounters| json!({ "packets": it.packets, "bytes": it.bytes });
                json!({
                    "meter": it.meter, "references": it.references, "packets": it.packets,
                    "bytes": it.bytes, "age_ns": it.age.0,
                    "bands": it.bands.iter().map(band).collect::<Vec<_>>(),
                })
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::MeterConfig(rows) => {
            let one = |it: &openflow::model::MeterConfig| {
                groups::meter_json(it.meter, &it.flags.names(), &it.bands)
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::MeterFeatures(it) => json!([{
            "meters_max": it.meters_max,
            "bands": it.band_kinds.names(),
            "capabilities": it.capabilities.names(),
            "bands_max": it.bands_max,
            "colours_max": it.colours_max,
            "flags": it.flags.names(),
        }]),
        MultipartReplyBody::FlowStats(rows) => {
            let one = |it: &openflow::model::FlowCounters| {
                let mut value = counters(&it.counters);
                value["table"] = it.table.into();
                value["priority"] = it.priority.into();
                value["match"] = flow::matching_told(&it.matching);
                value
            };
            rows.iter().map(one).collect()
        }
        MultipartReplyBody::TableFeatures(rows) => rows.iter().map(features_json).collect(),
        MultipartReplyBody::PortDesc(rows) => rows.iter().map(port).collect(),
        MultipartReplyBody::TableDesc(rows) => rows.iter().map(table).collect(),
        MultipartReplyBody::QueueDesc(rows) => rows.iter().map(queue).collect(),
        MultipartReplyBody::FlowMonitor(rows) => rows.iter().map(update).collect(),
        MultipartReplyBody::ControllerStatus(rows) => rows.iter().map(controller).collect(),
        MultipartReplyBody::BundleFeatures(it) => json!([{
            "capabilities": it.capabilities.names(),
            "properties": bundles::features_json(&it.properties),
        }]),
        MultipartReplyBody::Experimenter(it) => json!([experimenter_json(it)]),
    }
}

fn flow_row(it: &FlowStats) -> Value {
    json!({
        "table": it.table,
        "match": flow::matching_told(&it.matching),
        "priority": it.priority,
        "cookie": it.cookie,
        "age_ns": it.age.0,
        "idle_timeout_s": it.idle_timeout_s,
        "hard_timeout_s": it.hard_timeout_s,
        "packets": it.packets,
        "bytes": it.bytes,
        "flags": it.flags.names(),
        "importance": it.importance,
        "instructions": flow::instructions_told(&it.instructions),
    })
}

/// Writes the counters that are present; the instruction `stat_trigger` uses the same form.
pub fn counters(it: &Counters) -> Value {
    let ns = |span: Option<packet::time::Nanos>| span.map(|span| span.0);
    json!({
        "age_ns": ns(it.age), "idle_ns": ns(it.idle), "flows": it.flows,
        "packets": it.packets, "bytes": it.bytes,
    })
}

fn port_row(it: &PortStats) -> Value {
    json!({
        "port": flow::port_told(it.port),
        "rx_packets": it.rx_packets,
        "tx_packets": it.tx_packets,
        "rx_bytes": it.rx_bytes,
        "tx_bytes": it.tx_bytes,
        "rx_dropped": it.rx_dropped,
        "tx_dropped": it.tx_dropped,
        "rx_errors": it.rx_errors,
        "tx_errors": it.tx_errors,
        "age_ns": it.age.map(|age| age.0),
    })
}

fn port(it: &PortDescription) -> Value {
    let mac = it.mac.map(|byte| format!("{byte:02x}")).join(":");
    let property = |it: &PortProperty| match it {
        PortProperty::Optical(it) => json!({ "optical": {
            "supported": it.supported.names(), "tx": it.tx, "rx": it.rx,
            "tx_power_min": it.tx_power_min, "tx_power_max": it.tx_power_max,
        } }),
        PortProperty::PipelineInput(ids) => {
            json!({ "pipeline_input": ids.iter().map(field_json).collect::<Vec<_>>() })
        }
        PortProperty::PipelineOutput(ids) => {
            json!({ "pipeline_output": ids.iter().map(field_json).collect::<Vec<_>>() })
        }
        PortProperty::Recirculate(ports) => {
            let ports: Vec<Value> = ports.iter().map(|port| flow::port_told(*port)).collect();
            json!({ "recirculate": ports })
        }
        PortProperty::Experimenter(it) => json!({ "experimenter": experimenter_json(it) }),
    };
    json!({
        "port": flow::port_told(it.number),
        "mac": mac,
        "name": it.name.to_string(),
        "config": it.config.names(),
        "state": it.state.names(),
        "current": it.current.names(),
        "advertised": it.advertised.names(),
        "supported": it.supported.names(),
        "peer": it.peer.names(),
        "current_speed_kbps": it.current_speed_kbps,
        "speed_max_kbps": it.speed_max_kbps,
        "properties": it.properties.iter().map(property).collect::<Vec<_>>(),
    })
}

fn queue(it: &PacketQueue) -> Value {
    let property = |it: &QueueProperty| match it {
        QueueProperty::None => json!({}),
        QueueProperty::MinRate(rate) => json!({ "min_rate_permille": rate }),
        QueueProperty::MaxRate(rate) => json!({ "max_rate_permille": rate }),
        QueueProperty::Experimenter(it) => json!({ "experimenter": experimenter_json(it) }),
        QueueProperty::Other { kind, body } => json!({ "kind": kind, "body": hex(body) }),
    };
    json!({
        "port": flow::port_told(it.port), "queue": it.id,
        "properties": it.properties.iter().map(property).collect::<Vec<_>>(),
    })
}

fn table(it: &openflow::model::TableDescription) -> Value {
    table_mod_json(&openflow::model::TableMod {
        table: it.table,
        config: it.config,
        properties: it.properties.clone(),
    })
}

fn update(it: &FlowUpdate) -> Value {
    let full = match it {
        FlowUpdate::Full(full) => full,
        FlowUpdate::Abbreviated { xid } => return json!({ "event": "abbreviated", "xid": xid }),
        FlowUpdate::Paused => return json!({ "event": "paused" }),
        FlowUpdate::Resumed => return json!({ "event": "resumed" }),
    };
    let (event, reason) = match full.event {
        FlowEvent::Initial => ("initial", None),
        FlowEvent::Added => ("added", None),
        FlowEvent::Removed(reason) => ("removed", Some(reason.name())),
        FlowEvent::Modified => ("modified", None),
    };
    json!({
        "event": event,
        "reason": reason,
        "table": full.table,
        "match": flow::matching_told(&full.matching),
        "priority": full.priority,
        "cookie": full.cookie,
        "idle_timeout_s": full.idle_timeout_s,
        "hard_timeout_s": full.hard_timeout_s,
        "instructions": flow::instructions_told(&full.instructions),
    })
}

fn controller(it: &ControllerStatus) -> Value {
    let reason = match it.reason {
        ControllerStatusReason::Request => "request",
        ControllerStatusReason::ChannelStatus => "channel_status",
        ControllerStatusReason::Role => "role",
        ControllerStatusReason::Added => "added",
        ControllerStatusReason::Removed => "removed",
        ControllerStatusReason::ShortId => "short_id",
        ControllerStatusReason::Experimenter => "experimenter",
    };
    let property = |it: &ControllerProperty| match it {
        ControllerProperty::Uri(uri) => json!({ "uri": uri.to_string() }),
        ControllerProperty::Experimenter(it) => json!({ "experimenter": experimenter_json(it) }),
    };
    json!({
        "short_id": it.short_id, "role": role(it.role), "reason": reason, "is_up": it.is_up,
        "properties": it.properties.iter().map(property).collect::<Vec<_>>(),
    })
}

fn role(role: Role) -> &'static str {
    word(ROLES, &role)
}
