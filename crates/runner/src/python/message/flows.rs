//! Flow-mods, packet-outs and requests for flow entries as JSON.

use openflow::model::{
    BufferId, FlowMod, FlowModCommand, FlowStatsRequest, GROUP_ANY, Instruction, Match, PacketOut,
    TABLE_ALL, reserved,
};
use packet::time::Nanos;
use serde_json::Value;

use super::super::commands::Names;
use super::super::flow;
use super::keys::{Keys, ValueNames};

/// Commands of flow-mods.
pub const COMMANDS: &ValueNames<FlowModCommand> = &[
    ("add", FlowModCommand::Add),
    ("modify", FlowModCommand::Modify),
    ("modify_strict", FlowModCommand::ModifyStrict),
    ("delete", FlowModCommand::Delete),
    ("delete_strict", FlowModCommand::DeleteStrict),
];

/// Named table numbers.
pub const TABLES: &ValueNames<u8> = &[("all", TABLE_ALL)];

/// Named group numbers in filters.
pub const GROUPS_ANY: &ValueNames<u32> = &[("any", GROUP_ANY)];

/// Parses a flow-mod; its instructions may be given as actions to apply.
pub fn flow_mod(keys: &mut Keys<'_>) -> Result<FlowMod, String> {
    let plain = FlowMod::default();
    let applied = keys.take("actions").as_ref().map(flow::actions).transpose()?;
    let instructions = keys.take("instructions").as_ref().map(flow::instructions).transpose()?;
    Ok(FlowMod {
        command: keys.word("command", plain.command, COMMANDS)?,
        table: keys.number_or("table", plain.table, TABLES)?,
        matching: matching(keys, "match")?,
        priority: keys.number("priority", plain.priority)?,
        cookie: keys.number("cookie", 0)?,
        cookie_mask: keys.number("cookie_mask", 0)?,
        idle_timeout_s: keys.number("idle_timeout_s", 0)?,
        hard_timeout_s: keys.number("hard_timeout_s", 0)?,
        buffer_id: buffer(keys)?,
        out_port: keys.port("out_port", plain.out_port)?,
        out_group: keys.number_or("out_group", plain.out_group, GROUPS_ANY)?,
        importance: keys.number("importance", 0)?,
        flags: keys.bits("flags")?,
        instructions: match (applied, instructions) {
            (Some(_), Some(_)) => return Err("actions and instructions cannot be combined".into()),
            (Some(actions), None) => Instruction::apply(actions),
            (None, instructions) => instructions.unwrap_or_default(),
        },
    })
}

/// Parses a match; without the key it matches everything.
pub fn matching(keys: &mut Keys<'_>, key: &str) -> Result<Match, String> {
    Ok(keys.take(key).as_ref().map(flow::matching).transpose()?.unwrap_or_default())
}

fn buffer(keys: &mut Keys<'_>) -> Result<Option<BufferId>, String> {
    let buffer: BufferId = keys.number("buffer_id", BufferId::MAX)?;
    Ok(Some(buffer).filter(|&buffer| buffer != BufferId::MAX))
}

/// Parses a packet-out. Its frame is given as bytes, or as a frame of a prepared stream:
/// `{"stream": 1, "number": 7}`.
pub fn packet_out(keys: &mut Keys<'_>, names: &Names, now: Nanos) -> Result<PacketOut, String> {
    let data = match keys.look("data") {
        Some(Value::Object(frame)) => {
            let number = |key: &str| frame.get(key).and_then(Value::as_u64);
            let made = number("stream")
                .zip(number("number"))
                .and_then(|(stream, number)| names.frame(stream.try_into().ok()?, number, now));
            keys.take("data");
            made.ok_or("data is not a frame of a prepared stream")?
        }
        _ => keys.data("data")?,
    };
    Ok(PacketOut {
        buffer_id: buffer(keys)?,
        in_port: keys.port("in_port", reserved::CONTROLLER)?,
        fields: matching(keys, "fields")?,
        actions: keys.take("actions").as_ref().map(flow::actions).transpose()?.unwrap_or_default(),
        data,
    })
}

/// Parses the filter of a request for flow entries.
pub fn which(keys: &mut Keys<'_>) -> Result<FlowStatsRequest, String> {
    let plain = FlowStatsRequest::default();
    Ok(FlowStatsRequest {
        matching: matching(keys, "match")?,
        table: keys.number_or("table", plain.table, TABLES)?,
        out_port: keys.port("out_port", plain.out_port)?,
        out_group: keys.number_or("out_group", plain.out_group, GROUPS_ANY)?,
        cookie: keys.number("cookie", 0)?,
        cookie_mask: keys.number("cookie_mask", 0)?,
    })
}
