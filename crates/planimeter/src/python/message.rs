//! OpenFlow messages as JSON: what scripts say, and what they are told.
//!
//! A message that is said is an object whose "type" is the name of its kind; keys that are left out are what
//! they are in [`FlowMod::default`] and its like. What has no form here can be said as raw bytes, and is
//! told by its text. Invariant: a key that nobody knows is an error: misspelt, it would change what is
//! measured.

use openflow::model::message::Message;
use openflow::model::{
    BufferId, Experimenter, FlowMod, FlowModCommand, FlowModFlags, FlowStats, FlowStatsRequest,
    MultipartReplyBody, MultipartRequestBody, PacketOut, PortStats, Role, RoleRequest, reserved,
};
use packet::time::Nanos;
use serde_json::{Map, Value, json};

use super::commands::Names;
use super::flow;

/// The keys of an object, each taken once.
struct Keys<'a>(Map<String, Value>, &'a str);

impl Keys<'_> {
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    /// A whole number within what its type holds.
    fn number<T: TryFrom<u64>>(&mut self, key: &str, left_out: T) -> Result<T, String> {
        let Some(value) = self.take(key) else { return Ok(left_out) };
        let number = value.as_u64().and_then(|number| number.try_into().ok());
        number.ok_or_else(|| format!("{key} is no number that fits: {value}"))
    }

    fn port(&mut self, key: &str, left_out: u32) -> Result<u32, String> {
        self.take(key).map_or(Ok(left_out), |value| flow::port(&value))
    }

    fn data(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        value.as_str().and_then(bytes).ok_or_else(|| format!("{key} is not hexadecimal"))
    }

    fn all_taken(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(key) => Err(format!("{} has no {key:?} here", self.1)),
            None => Ok(()),
        }
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of hexadecimal digits.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// The message that an object says; what is wrong with it otherwise.
pub fn read(value: &Value, names: &Names, now: Nanos) -> Result<Message, String> {
    let object = value.as_object().ok_or("it is no object")?;
    let kind = object.get("type").and_then(Value::as_str).ok_or("it has no type")?;
    let mut keys = Keys(object.clone(), kind);
    keys.take("type");
    let message = match kind {
        "barrier_request" => Message::BarrierRequest,
        "features_request" => Message::FeaturesRequest,
        "get_config_request" => Message::GetConfigRequest,
        "get_async_request" => Message::GetAsyncRequest,
        "echo_request" => Message::EchoRequest(keys.data("data")?),
        "echo_reply" => Message::EchoReply(keys.data("data")?),
        "experimenter" => {
            let experimenter = keys.number("experimenter", 0)?;
            Message::Experimenter(Experimenter { experimenter, body: keys.data("body")? })
        }
        "flow_mod" => Message::FlowMod(flow_mod(&mut keys)?),
        "packet_out" => Message::PacketOut(packet_out(&mut keys, names, now)?),
        "role_request" => Message::RoleRequest(RoleRequest {
            role: match keys.take("role").as_ref().and_then(Value::as_str) {
                None | Some("no_change") => Role::NoChange,
                Some("equal") => Role::Equal,
                Some("master") => Role::Master,
                Some("slave") => Role::Slave,
                Some(other) => return Err(format!("there is no role {other:?}")),
            },
            generation: keys.number("generation", 0)?,
            ..RoleRequest::default()
        }),
        "multipart_request" => Message::ask(asked(&mut keys)?),
        other => return Err(format!("{other:?} is none that can be said but by raw")),
    };
    keys.all_taken()?;
    Ok(message)
}

fn flow_mod(keys: &mut Keys<'_>) -> Result<FlowMod, String> {
    let plain = FlowMod::default();
    let command = match keys.take("command").as_ref().and_then(Value::as_str) {
        None | Some("add") => FlowModCommand::Add,
        Some("modify") => FlowModCommand::Modify,
        Some("modify_strict") => FlowModCommand::ModifyStrict,
        Some("delete") => FlowModCommand::Delete,
        Some("delete_strict") => FlowModCommand::DeleteStrict,
        Some(other) => return Err(format!("there is no command {other:?}")),
    };
    let mut flags = FlowModFlags::NONE;
    for name in keys.take("flags").iter().flat_map(|it| it.as_array().into_iter().flatten()) {
        flags |= match name.as_str().unwrap_or_default() {
            "send_flow_removed" => FlowModFlags::SEND_FLOW_REMOVED,
            "check_overlap" => FlowModFlags::CHECK_OVERLAP,
            "emergency" => FlowModFlags::EMERGENCY,
            "reset_counts" => FlowModFlags::RESET_COUNTS,
            "no_packet_counts" => FlowModFlags::NO_PACKET_COUNTS,
            "no_byte_counts" => FlowModFlags::NO_BYTE_COUNTS,
            _ => return Err(format!("there is no flag {name}")),
        };
    }
    let applied = keys.take("actions").as_ref().map(flow::actions).transpose()?;
    let instructions = keys.take("instructions").as_ref().map(flow::instructions).transpose()?;
    Ok(FlowMod {
        command,
        table: keys.number("table", plain.table)?,
        matching: keys.take("match").as_ref().map(flow::matching).transpose()?.unwrap_or_default(),
        priority: keys.number("priority", plain.priority)?,
        cookie: keys.number("cookie", 0)?,
        cookie_mask: keys.number("cookie_mask", 0)?,
        idle_timeout_s: keys.number("idle_timeout_s", 0)?,
        hard_timeout_s: keys.number("hard_timeout_s", 0)?,
        buffer_id: buffer(keys)?,
        out_port: keys.port("out_port", plain.out_port)?,
        out_group: keys.number("out_group", plain.out_group)?,
        importance: keys.number("importance", 0)?,
        flags,
        instructions: match (applied, instructions) {
            (Some(_), Some(_)) => return Err("it has actions and instructions".into()),
            (Some(actions), None) => openflow::model::Instruction::apply(actions),
            (None, instructions) => instructions.unwrap_or_default(),
        },
    })
}

fn buffer(keys: &mut Keys<'_>) -> Result<Option<BufferId>, String> {
    let buffer: BufferId = keys.number("buffer_id", BufferId::MAX)?;
    Ok(Some(buffer).filter(|&buffer| buffer != BufferId::MAX))
}

/// Its frame is given by its bytes, or as a frame of a stream that is ready: {"stream": 1, "number": 7}.
fn packet_out(keys: &mut Keys<'_>, names: &Names, now: Nanos) -> Result<PacketOut, String> {
    let data = match keys.0.get("data") {
        Some(Value::Object(frame)) => {
            let number = |key: &str| frame.get(key).and_then(Value::as_u64);
            let made = number("stream")
                .zip(number("number"))
                .and_then(|(stream, number)| names.frame(stream.try_into().ok()?, number, now));
            keys.take("data");
            made.ok_or("its data is no frame of a stream that is ready")?
        }
        _ => keys.data("data")?,
    };
    Ok(PacketOut {
        buffer_id: buffer(keys)?,
        in_port: keys.port("in_port", reserved::CONTROLLER)?,
        actions: keys.take("actions").as_ref().map(flow::actions).transpose()?.unwrap_or_default(),
        data,
        ..PacketOut::default()
    })
}

/// What statistics are asked for.
fn asked(keys: &mut Keys<'_>) -> Result<MultipartRequestBody, String> {
    let of = keys.take("of").ok_or("it does not say of what")?;
    let queue = |keys: &mut Keys<'_>| -> Result<(u32, u32), String> {
        Ok((keys.port("port", reserved::NONE)?, keys.number("queue", u32::MAX)?))
    };
    Ok(match of.as_str().unwrap_or_default() {
        "desc" => MultipartRequestBody::Desc,
        "flow" => MultipartRequestBody::Flow(which(keys)?),
        "aggregate" => MultipartRequestBody::Aggregate(which(keys)?),
        "flow_stats" => MultipartRequestBody::FlowStats(which(keys)?),
        "table" => MultipartRequestBody::Table,
        "port" => MultipartRequestBody::Port(keys.port("port", reserved::NONE)?),
        "port_desc" => MultipartRequestBody::PortDesc(keys.port("port", reserved::NONE)?),
        "queue" => {
            let (port, queue) = queue(keys)?;
            MultipartRequestBody::Queue { port, queue }
        }
        "group" => MultipartRequestBody::Group(keys.number("group", openflow::model::GROUP_ALL)?),
        "group_desc" => {
            MultipartRequestBody::GroupDesc(keys.number("group", openflow::model::GROUP_ALL)?)
        }
        "group_features" => MultipartRequestBody::GroupFeatures,
        "meter" => MultipartRequestBody::Meter(keys.number("meter", openflow::model::METER_ALL)?),
        "meter_config" => {
            MultipartRequestBody::MeterConfig(keys.number("meter", openflow::model::METER_ALL)?)
        }
        "meter_features" => MultipartRequestBody::MeterFeatures,
        "table_features" => MultipartRequestBody::TableFeatures(Vec::new()),
        "table_desc" => MultipartRequestBody::TableDesc,
        _ => return Err(format!("there are no statistics of {of}")),
    })
}

fn which(keys: &mut Keys<'_>) -> Result<FlowStatsRequest, String> {
    let plain = FlowStatsRequest::default();
    Ok(FlowStatsRequest {
        matching: keys.take("match").as_ref().map(flow::matching).transpose()?.unwrap_or_default(),
        table: keys.number("table", plain.table)?,
        out_port: keys.port("out_port", plain.out_port)?,
        out_group: keys.number("out_group", plain.out_group)?,
        cookie: keys.number("cookie", 0)?,
        cookie_mask: keys.number("cookie_mask", 0)?,
    })
}

/// What a script is told of a message beside its kind.
pub fn told(message: &Message) -> Value {
    match message {
        Message::EchoRequest(data) | Message::EchoReply(data) => json!({ "data": hex(data) }),
        Message::Error(error) => {
            json!({ "code": error.code.to_string(), "data": hex(&error.data) })
        }
        Message::BarrierRequest | Message::BarrierReply => json!({}),
        Message::PacketIn(it) => json!({
            "buffer_id": it.buffer_id,
            "frame_bytes": it.frame_bytes,
            "in_port": flow::port_told(it.in_port),
            "reason": format!("{:?}", it.reason),
            "table": it.table,
            "cookie": it.cookie,
            "data": hex(&it.data),
        }),
        Message::FlowRemoved(it) => json!({
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
        }),
        Message::MultipartReply(reply) => {
            let mut body = json!({ "of": reply.body.kind().to_string(), "more": reply.more });
            let rows = match &reply.body {
                MultipartReplyBody::Flow(rows) => rows.iter().map(flow_told).collect(),
                MultipartReplyBody::Port(rows) => rows.iter().map(port_told).collect(),
                MultipartReplyBody::Aggregate(it) => {
                    json!([{ "packets": it.packets, "bytes": it.bytes, "flows": it.flows }])
                }
                other => json!([format!("{other:?}")]),
            };
            body["rows"] = rows;
            body
        }
        other => json!({ "text": other.to_string() }),
    }
}

fn flow_told(it: &FlowStats) -> Value {
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
        "instructions": it.instructions.iter().map(|it| it.to_string()).collect::<Vec<_>>(),
    })
}

fn port_told(it: &PortStats) -> Value {
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, wanted: &str) {
        let said = match read(&value, &Names::default(), Nanos(0)) {
            Ok(message) => message.to_string(),
            Err(why) => format!("error: {why}"),
        };
        assert_eq!(said, wanted, "{value}");
    }

    #[test]
    fn what_scripts_say_is_a_message_or_an_error_that_says_why() {
        check(json!({"type": "barrier_request"}), "barrier_request");
        check(json!({"type": "echo_request", "data": "00ff"}), "echo_request data=2:00ff");
        check(
            json!({
                "type": "flow_mod", "priority": 7, "flags": ["check_overlap"],
                "match": {"eth_type": 0x800, "ipv4_dst": "10.1.2.3/16", "eth_src": "02:00:00:00:00:01"},
                "actions": [{"set_field": {"ipv4_src": "1.2.3.4"}}, {"output": 2}, "pop_vlan"],
            }),
            "flow_mod add table=0 priority=7 match=eth_src=02:00:00:00:00:01,eth_type=0x0800,\
             ipv4_dst=10.1.0.0/16 cookie=0x0 idle_timeout=0s hard_timeout=0s flags=check_overlap \
             actions=set_field:ipv4_src=1.2.3.4,output:2,pop_vlan",
        );
        check(
            json!({"type": "flow_mod", "prioriti": 7}),
            "error: flow_mod has no \"prioriti\" here",
        );
        check(
            json!({"type": "flow_mod", "priority": 70000}),
            "error: priority is no number that fits: 70000",
        );
        check(
            json!({"type": "flow_mod", "match": {"ipv4_dts": "1.2.3.4"}}),
            "error: there is no field \"ipv4_dts\"",
        );
        check(json!({"type": "hallo"}), "error: \"hallo\" is none that can be said but by raw");
        check(json!({"type": "multipart_request", "of": "table"}), "multipart_request table");
    }
}
