//! OpenFlow structures from words: matches, actions, entries, groups, meters.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::model::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::model::group::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, Bucket, GROUP_ALL, GROUP_ANY, GroupKind, GroupMod,
    GroupModCommand,
};
use openflow::model::matching::{FieldMatch, Match};
use openflow::model::meter::{
    METER_ALL, MeterBand, MeterBandKind, MeterFlags, MeterMod, MeterModCommand,
};
use openflow::model::table::TABLE_ALL;
use openflow::model::{
    Action, CopyField, Counters, Instruction, PortNo, StatTriggerFlags, reserved,
};
use packet::field::{Field, VLAN_PRESENT};

use crate::frame::{mac, number};

/// Returns whether a word begins an instruction, which ends a match or a list of actions.
fn ends_list(word: &str) -> bool {
    const WORDS: [&str; 6] = ["do", "set", "clear", "match", "bucket", "frame"];
    const STARTS: [&str; 4] = ["goto=", "meter=", "write_metadata=", "trigger="];
    WORDS.contains(&word) || STARTS.iter().any(|start| word.starts_with(start))
}

/// Takes the words up to the next one that ends a list.
fn list<'a>(words: &mut &'a [&'a str]) -> &'a [&'a str] {
    let end = words.iter().position(|word| ends_list(word)).unwrap_or(words.len());
    let (list, rest) = words.split_at(end);
    *words = rest;
    list
}

/// Parses a field's value.
pub fn value(field: Field, text: &str) -> Result<u128, String> {
    match (field, text) {
        (Field::VlanVid, "none") => Ok(0),
        (Field::VlanVid, text) if !text.starts_with("0x") => {
            Ok(VLAN_PRESENT | u128::from(number(text)?))
        }
        (Field::InPort | Field::ActsetOutput, text) => Ok(port(text)?.into()),
        (_, text) if text.starts_with("0x") => {
            u128::from_str_radix(&text[2..], 16).map_err(|_| format!("{text:?} is no number"))
        }
        (field, text) if field.bits() == 128 => {
            let address: Ipv6Addr = text.parse().map_err(|_| format!("{text:?}: no address"))?;
            Ok(address.to_bits())
        }
        (_, text) if text.split(':').count() == 6 => mac(text).map(u128::from),
        (_, text) if text.contains('.') => {
            let address: Ipv4Addr = text.parse().map_err(|_| format!("{text:?}: no address"))?;
            Ok(address.to_bits().into())
        }
        (_, text) => number(text).map(u128::from),
    }
}

/// `NAME=VALUE` or `NAME=VALUE/MASK`.
pub fn field_match(word: &str) -> Result<FieldMatch, String> {
    let (name, text) = word.split_once('=').ok_or_else(|| format!("{word:?} is no field"))?;
    let field = Field::from_name(name).ok_or_else(|| format!("there is no field {name}"))?;
    if field == Field::VlanVid && text == "any" {
        return Ok(FieldMatch::masked(field, VLAN_PRESENT, VLAN_PRESENT));
    }
    match text.split_once('/') {
        Some((text, mask)) => {
            let mask = value(field, mask)?;
            Ok(FieldMatch::masked(field, value(field, text)?, mask))
        }
        None => Ok(FieldMatch::exact(field, value(field, text)?)),
    }
}

/// Parses the fields of a match.
pub fn matching(words: &[&str]) -> Result<Match, String> {
    let mut matching = Match::ANY;
    for word in words {
        matching.set(field_match(word)?);
    }
    Ok(matching)
}

/// Parses a port by number or name.
pub fn port(text: &str) -> Result<PortNo, String> {
    Ok(match text {
        "in_port" => reserved::IN_PORT,
        "table" => reserved::TABLE,
        "normal" => reserved::NORMAL,
        "flood" => reserved::FLOOD,
        "all" => reserved::ALL,
        "controller" => reserved::CONTROLLER,
        "local" => reserved::LOCAL,
        "none" => reserved::NONE,
        text => number(text)? as PortNo,
    })
}

/// Parses an action.
pub fn action(word: &str) -> Result<Action, String> {
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let plain = || number(rest);
    Ok(match name {
        "output" => {
            let (to, bytes) = rest.split_once(':').unwrap_or((rest, "0"));
            Action::Output { port: port(to)?, bytes_max: number(bytes)? as u16 }
        }
        "group" => Action::Group(plain()? as u32),
        "set_queue" => Action::SetQueue(plain()? as u32),
        "enqueue" => {
            let (to, queue) = rest.split_once(':').ok_or("enqueue:PORT:QUEUE")?;
            Action::Enqueue { port: port(to)?, queue: number(queue)? as u32 }
        }
        "set_field" => Action::SetField(field_match(rest)?),
        "copy_field" => Action::CopyField(copy_field(rest)?),
        "push_vlan" => Action::PushVlan(plain()? as u16),
        "pop_vlan" => Action::PopVlan,
        "push_mpls" => Action::PushMpls(plain()? as u16),
        "pop_mpls" => Action::PopMpls(plain()? as u16),
        "push_pbb" => Action::PushPbb(plain()? as u16),
        "pop_pbb" => Action::PopPbb,
        "copy_ttl_out" => Action::CopyTtlOut,
        "copy_ttl_in" => Action::CopyTtlIn,
        "set_mpls_ttl" => Action::SetMplsTtl(plain()? as u8),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "set_nw_ttl" => Action::SetNwTtl(plain()? as u8),
        "dec_nw_ttl" => Action::DecNwTtl,
        "meter" => Action::Meter(plain()? as u32),
        "set_vlan_vid" => Action::SetVlanVid(plain()? as u16),
        "set_vlan_pcp" => Action::SetVlanPcp(plain()? as u8),
        "set_tp_src" => Action::SetTransportSrc(plain()? as u16),
        "set_tp_dst" => Action::SetTransportDst(plain()? as u16),
        _ => return Err(format!("there is no action {name}")),
    })
}

/// `FROM[.BIT]>TO[.BIT]:BITS`.
fn copy_field(text: &str) -> Result<CopyField, String> {
    let wrong = || format!("{text:?} is not FROM.BIT>TO.BIT:BITS");
    let (from, rest) = text.split_once('>').ok_or_else(wrong)?;
    let (to, bits) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let end = |text: &str| -> Result<(Field, u16), String> {
        let (name, bit) = text.split_once('.').unwrap_or((text, "0"));
        let field = Field::from_name(name).ok_or_else(|| format!("there is no field {name}"))?;
        Ok((field, number(bit)? as u16))
    };
    let ((src, src_offset), (dst, dst_offset)) = (end(from)?, end(to)?);
    Ok(CopyField { bits: number(bits)? as u16, src, src_offset, dst, dst_offset })
}

/// Parses a list of actions.
pub fn actions(words: &[&str]) -> Result<Vec<Action>, String> {
    words.iter().map(|word| action(word)).collect()
}

fn table(text: &str) -> Result<u8, String> {
    if text == "all" { Ok(TABLE_ALL) } else { Ok(number(text)? as u8) }
}

/// `VALUE` or `VALUE/MASK`.
fn masked(text: &str) -> Result<(u64, Option<u64>), String> {
    match text.split_once('/') {
        Some((value, mask)) => Ok((number(value)?, Some(number(mask)?))),
        None => Ok((number(text)?, None)),
    }
}

/// Parses flags by name, separated by bars.
fn flow_flags(text: &str) -> Result<FlowModFlags, String> {
    let mut flags = FlowModFlags::NONE;
    for name in text.split('|') {
        flags |= match name {
            "send_flow_removed" => FlowModFlags::SEND_FLOW_REMOVED,
            "emergency" => FlowModFlags::EMERGENCY,
            "check_overlap" => FlowModFlags::CHECK_OVERLAP,
            "reset_counts" => FlowModFlags::RESET_COUNTS,
            "no_packet_counts" => FlowModFlags::NO_PACKET_COUNTS,
            "no_byte_counts" => FlowModFlags::NO_BYTE_COUNTS,
            _ => return Err(format!("there is no flag {name}")),
        };
    }
    Ok(flags)
}

/// Parses an entry or a filter: `COMMAND KEY=VALUE... match FIELDS do ACTIONS set ACTIONS goto=N
/// ...`.
pub fn flow(words: &[&str]) -> Result<FlowMod, String> {
    let (command, mut words) = words.split_first().ok_or("flow COMMAND")?;
    let command = match *command {
        "add" => FlowModCommand::Add,
        "modify" => FlowModCommand::Modify,
        "modify_strict" => FlowModCommand::ModifyStrict,
        "delete" => FlowModCommand::Delete,
        "delete_strict" => FlowModCommand::DeleteStrict,
        _ => return Err(format!("there is no command {command}")),
    };
    let mut change = FlowMod { command, table: 0, out_group: GROUP_ANY, ..FlowMod::default() };
    if matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict) {
        change.table = 0;
    }
    for word in list(&mut words) {
        let (key, text) = word.split_once('=').ok_or_else(|| format!("{word:?} is no setting"))?;
        match key {
            "table" => change.table = table(text)?,
            "priority" => change.priority = number(text)? as u16,
            "cookie" => {
                let (cookie, mask) = masked(text)?;
                (change.cookie, change.cookie_mask) = (cookie, mask.unwrap_or(0));
            }
            "idle" => change.idle_timeout_s = number(text)? as u16,
            "hard" => change.hard_timeout_s = number(text)? as u16,
            "importance" => change.importance = number(text)? as u16,
            "buffer" => change.buffer_id = Some(number(text)? as u32),
            "out_port" => change.out_port = port(text)?,
            "out_group" => change.out_group = number(text)? as u32,
            "flags" => change.flags = flow_flags(text)?,
            _ => return Err(format!("an entry has no {key}")),
        }
    }
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        let (name, text) = word.split_once('=').unwrap_or((word, ""));
        change.instructions.push(match name {
            "match" => {
                change.matching = matching(list(&mut words))?;
                continue;
            }
            "do" => Instruction::ApplyActions(actions(list(&mut words))?),
            "set" => Instruction::WriteActions(actions(list(&mut words))?),
            "clear" => Instruction::ClearActions,
            "goto" => Instruction::GotoTable(number(text)? as u8),
            "meter" => Instruction::Meter(number(text)? as u32),
            "trigger" => Instruction::StatTrigger {
                flags: StatTriggerFlags::ONLY_FIRST,
                thresholds: Counters { packets: Some(number(text)?), ..Counters::default() },
            },
            "write_metadata" => {
                let (value, mask) = masked(text)?;
                Instruction::WriteMetadata { value, mask: mask.unwrap_or(u64::MAX) }
            }
            _ => return Err(format!("there is no instruction {word}")),
        });
    }
    Ok(change)
}

/// Parses a group: `COMMAND id=N type=KIND bucket KEY=VALUE... do ACTIONS bucket ...`.
pub fn group(words: &[&str]) -> Result<GroupMod, String> {
    let (command, mut words) = words.split_first().ok_or("group COMMAND")?;
    let command = match *command {
        "add" => GroupModCommand::Add,
        "modify" => GroupModCommand::Modify,
        "delete" => GroupModCommand::Delete,
        "insert_bucket" => GroupModCommand::InsertBucket,
        "remove_bucket" => GroupModCommand::RemoveBucket,
        _ => return Err(format!("there is no command {command}")),
    };
    let mut change = GroupMod {
        command,
        kind: GroupKind::All,
        group: 0,
        command_bucket: BUCKET_ALL,
        buckets: Vec::new(),
        experimenter: Vec::new(),
    };
    for word in list(&mut words) {
        let (key, text) = word.split_once('=').ok_or_else(|| format!("{word:?} is no setting"))?;
        match (key, text) {
            ("id", "all") => change.group = GROUP_ALL,
            ("id", text) => change.group = number(text)? as u32,
            ("at", "first") => change.command_bucket = BUCKET_FIRST,
            ("at", "last") => change.command_bucket = BUCKET_LAST,
            ("at", text) => change.command_bucket = number(text)? as u32,
            ("type", text) => {
                let named = GroupKind::ALL.into_iter().find(|kind| kind.name() == text);
                change.kind = named.ok_or_else(|| format!("there is no kind {text}"))?;
            }
            _ => return Err(format!("a group has no {key}")),
        }
    }
    while let Some((word, rest)) = words.split_first() {
        words = rest;
        if *word != "bucket" {
            return Err(format!("{word:?} where a bucket should be"));
        }
        change.buckets.push(bucket(&mut words, change.buckets.len(), change.kind)?);
    }
    Ok(change)
}

fn bucket<'a>(words: &mut &'a [&'a str], place: usize, kind: GroupKind) -> Result<Bucket, String> {
    let mut bucket = Bucket {
        id: place as u32,
        weight: u16::from(kind == GroupKind::Select),
        watch_port: reserved::NONE,
        watch_group: GROUP_ANY,
        actions: Vec::new(),
        experimenter: Vec::new(),
    };
    for word in list(words) {
        let (key, text) = word.split_once('=').ok_or_else(|| format!("{word:?} is no setting"))?;
        match key {
            "id" => bucket.id = number(text)? as u32,
            "weight" => bucket.weight = number(text)? as u16,
            "watch_port" => bucket.watch_port = port(text)?,
            "watch_group" => bucket.watch_group = number(text)? as u32,
            _ => return Err(format!("a bucket has no {key}")),
        }
    }
    if let Some(("do", rest)) = words.split_first().map(|(word, rest)| (*word, rest)) {
        *words = rest;
        bucket.actions = actions(list(words))?;
    }
    Ok(bucket)
}

/// Parses a meter: `COMMAND id=N flags=NAMES band KIND rate=N burst=N prec_level=N band ...`.
pub fn meter(words: &[&str]) -> Result<MeterMod, String> {
    let (command, words) = words.split_first().ok_or("meter COMMAND")?;
    let command = match *command {
        "add" => MeterModCommand::Add,
        "modify" => MeterModCommand::Modify,
        "delete" => MeterModCommand::Delete,
        _ => return Err(format!("there is no command {command}")),
    };
    let (flags, bands) = (MeterFlags::NONE, Vec::new());
    let mut change = MeterMod { command, flags, meter: 0, bands };
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or((word, ""));
        match (key, text) {
            ("id", "all") => change.meter = METER_ALL,
            ("id", text) => change.meter = number(text)? as u32,
            ("flags", text) => {
                for name in text.split('|') {
                    change.flags |= match name {
                        "kbps" => MeterFlags::KBPS,
                        "pktps" => MeterFlags::PKTPS,
                        "burst" => MeterFlags::BURST,
                        "stats" => MeterFlags::STATS,
                        _ => return Err(format!("there is no flag {name}")),
                    };
                }
            }
            ("band", _) => {}
            ("drop", _) => {
                change.bands.push(MeterBand { rate: 0, burst: 0, kind: MeterBandKind::Drop });
            }
            ("dscp_remark", _) => {
                let kind = MeterBandKind::DscpRemark { levels: 1 };
                change.bands.push(MeterBand { rate: 0, burst: 0, kind });
            }
            (key, text) => {
                let band = change.bands.last_mut().ok_or("a band has a kind first")?;
                let value = number(text)? as u32;
                match (key, &mut band.kind) {
                    ("rate", _) => band.rate = value,
                    ("burst", _) => band.burst = value,
                    ("prec_level", MeterBandKind::DscpRemark { levels }) => {
                        *levels = value as u8;
                    }
                    _ => return Err(format!("a band has no {key}")),
                }
            }
        }
    }
    Ok(change)
}
