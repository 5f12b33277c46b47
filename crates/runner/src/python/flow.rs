//! Fields, actions and instructions as JSON, in their usual notation.
//!
//! A match is an object of fields by name: a number, or a text with an address, a prefix, or a mask
//! after a slash. An action is its name, or an object of its name and its arguments. Invariant:
//! everything written can be read back.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::model::port::ShowPort;
use openflow::model::{
    Action, CopyField, Counters, Experimenter, ExperimenterField, Field, FieldMatch, Instruction,
    Match, reserved,
};
use openflow::version::{ActionKind, InstructionKind};
use packet::time::Nanos;
use serde_json::{Value, json};

use super::message::keys::{self, Keys};

/// Ports with names.
const PORTS: [u32; 9] = [
    reserved::UNSET,
    reserved::IN_PORT,
    reserved::TABLE,
    reserved::NORMAL,
    reserved::FLOOD,
    reserved::ALL,
    reserved::CONTROLLER,
    reserved::LOCAL,
    reserved::NONE,
];

/// Parses a port's number or name.
pub fn port(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    let named = || {
        let text = value.as_str()?;
        let named = PORTS.into_iter().find(|port| ShowPort(*port).to_string() == text);
        named.or_else(|| text.parse().ok())
    };
    number.or_else(named).ok_or_else(|| format!("unknown port {value}"))
}

/// Writes a port as [`port`] reads it.
pub fn port_told(port: u32) -> Value {
    if PORTS.contains(&port) { ShowPort(port).to_string().into() } else { port.into() }
}

/// The key of experimenter fields.
const EXPERIMENTERS: &str = "experimenters";

/// Parses a match.
pub fn matching(value: &Value) -> Result<Match, String> {
    let fields = value.as_object().ok_or("match must be an object")?;
    let known = fields.iter().filter(|(name, _)| *name != EXPERIMENTERS);
    let known = known.map(|(name, value)| field(name, value));
    let mut all: Match = known.collect::<Result<_, _>>()?;
    if fields.contains_key(EXPERIMENTERS) {
        let others = Keys::of(value, "match")?.rows(EXPERIMENTERS, |keys| {
            Ok(ExperimenterField {
                class: keys.number("class", 0xffff)?,
                number: keys.number("number", 0)?,
                has_mask: keys.is("has_mask")?,
                body: keys.data("body")?,
            })
        })?;
        all.push_experimenters(others);
    }
    Ok(all)
}

/// Writes a match as [`matching`] reads it.
pub fn matching_told(matching: &Match) -> Value {
    let mut value = matching_of(matching.fields());
    if !matching.experimenter().is_empty() {
        let other = |it: &ExperimenterField| {
            json!({
                "class": it.class, "number": it.number, "has_mask": it.has_mask,
                "body": super::message::hex(&it.body),
            })
        };
        value[EXPERIMENTERS] = matching.experimenter().iter().map(other).collect();
    }
    value
}

fn matching_of(fields: &[FieldMatch]) -> Value {
    let told = |it: &FieldMatch| {
        let text = it.to_string();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        (it.field.name().to_string(), Value::from(value))
    };
    fields.iter().map(told).collect()
}

/// Parses the value of a field.
fn field(name: &str, value: &Value) -> Result<FieldMatch, String> {
    let field = Field::from_name(name).ok_or_else(|| format!("unknown field {name:?}"))?;
    let wrong = || format!("invalid value of {name}: {value}");
    if matches!(field, Field::InPort | Field::InPhyPort | Field::ActsetOutput) {
        return Ok(FieldMatch::exact(field, port(value)?));
    }
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let vlan = openflow::model::VLAN_PRESENT;
    match (field, text.as_str()) {
        (Field::VlanVid, "none") => return Ok(FieldMatch::exact(field, 0u8)),
        (Field::VlanVid, "any") => return Ok(FieldMatch::masked(field, vlan, vlan)),
        (Field::VlanVid, id) if !id.contains('/') => {
            let id = bits(field, id).filter(|id| *id < vlan).ok_or_else(wrong)?;
            return Ok(FieldMatch::exact(field, vlan | id));
        }
        _ => {}
    }
    let (of, mask) =
        text.split_once('/').map_or((text.as_str(), None), |(of, mask)| (of, Some(mask)));
    let of = bits(field, of).ok_or_else(wrong)?;
    let Some(mask) = mask else { return Ok(FieldMatch::exact(field, of)) };
    let is_address = text.contains(['.', ':']);
    let mask = match mask.parse::<u32>().ok().filter(|_| is_address) {
        Some(0) => 0,
        Some(length) => {
            let open = field.bits().checked_sub(length).ok_or_else(wrong)?;
            field.ones() >> open << open
        }
        None => bits(field, mask).ok_or_else(wrong)?,
    };
    Ok(FieldMatch::masked(field, of, mask))
}

/// Parses a number or an address.
fn bits(field: Field, text: &str) -> Option<u128> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let ipv4 = || text.parse::<Ipv4Addr>().ok().map(|it| u128::from(it.to_bits()));
    let ipv6 = || text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits);
    let mac = || {
        let parts: Option<Vec<u128>> =
            text.split(':').map(|part| u8::from_str_radix(part, 16).ok().map(u128::from)).collect();
        parts.filter(|it| it.len() == 6).map(|it| it.iter().fold(0, |bits, byte| bits << 8 | byte))
    };
    let found = match field.bits() {
        128 => number.or_else(ipv6),
        48 => number.or_else(mac),
        _ => number.or_else(ipv4),
    };
    found.filter(|value| value & !field.ones() == 0)
}

/// Parses a list of actions.
pub fn actions(value: &Value) -> Result<Vec<Action>, String> {
    let rows = value.as_array().ok_or("actions must be a list")?;
    rows.iter().map(action).collect()
}

fn action(value: &Value) -> Result<Action, String> {
    let wrong = || format!("invalid action {value}");
    let (name, takes) = named(value).ok_or_else(wrong)?;
    let number = || takes.as_u64().and_then(|it| u32::try_from(it).ok()).ok_or_else(wrong);
    let short = || takes.as_u64().and_then(|it| u16::try_from(it).ok()).ok_or_else(wrong);
    let byte = || takes.as_u64().and_then(|it| u8::try_from(it).ok()).ok_or_else(wrong);
    let set = |name: &str| field(name, takes).map(Action::SetField);
    let kind = ActionKind::ALL.iter().find(|kind| kind.name() == name).ok_or_else(wrong)?;
    Ok(match kind {
        ActionKind::Output => output(takes)?,
        ActionKind::Group => Action::Group(number()?),
        ActionKind::SetQueue => Action::SetQueue(number()?),
        ActionKind::Enqueue => {
            let queue = takes.get(1).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
            Action::Enqueue { port: port(&takes[0])?, queue: queue.ok_or_else(wrong)? }
        }
        ActionKind::SetField => {
            let fields = takes.as_object().filter(|fields| fields.len() == 1).ok_or_else(wrong)?;
            let (name, value) = fields.iter().next().ok_or_else(wrong)?;
            Action::SetField(field(name, value)?)
        }
        ActionKind::CopyField => Action::CopyField(copy_field(takes)?),
        ActionKind::PushVlan => Action::PushVlan(short()?),
        ActionKind::PopVlan => Action::PopVlan,
        ActionKind::PushMpls => Action::PushMpls(short()?),
        ActionKind::PopMpls => Action::PopMpls(short()?),
        ActionKind::PushPbb => Action::PushPbb(short()?),
        ActionKind::PopPbb => Action::PopPbb,
        ActionKind::CopyTtlOut => Action::CopyTtlOut,
        ActionKind::CopyTtlIn => Action::CopyTtlIn,
        ActionKind::SetMplsTtl => Action::SetMplsTtl(byte()?),
        ActionKind::DecMplsTtl => Action::DecMplsTtl,
        ActionKind::SetNwTtl => Action::SetNwTtl(byte()?),
        ActionKind::DecNwTtl => Action::DecNwTtl,
        ActionKind::Meter => Action::Meter(number()?),
        ActionKind::SetVlanVid => Action::SetVlanVid(short()?),
        ActionKind::SetVlanPcp => Action::SetVlanPcp(byte()?),
        ActionKind::SetTransportSrc => Action::SetTransportSrc(short()?),
        ActionKind::SetTransportDst => Action::SetTransportDst(short()?),
        ActionKind::SetEthSrc => set("eth_src")?,
        ActionKind::SetEthDst => set("eth_dst")?,
        ActionKind::SetIpSrc => set("ipv4_src")?,
        ActionKind::SetIpDst => set("ipv4_dst")?,
        ActionKind::SetIpDscp => set("ip_dscp")?,
        ActionKind::SetIpEcn => set("ip_ecn")?,
        ActionKind::SetMplsLabel => set("mpls_label")?,
        ActionKind::SetMplsTc => set("mpls_tc")?,
        ActionKind::Experimenter => Action::Experimenter(experimenter(takes)?),
    })
}

/// Parses a port, or an object of a port and the number of bytes that the controller receives.
fn output(takes: &Value) -> Result<Action, String> {
    if !takes.is_object() {
        return Ok(Action::output(port(takes)?));
    }
    let mut keys = Keys::of(takes, "output")?;
    let to = keys.port("port", reserved::NONE)?;
    let Action::Output { port, bytes_max } = Action::output(to) else {
        return Ok(Action::output(to));
    };
    let action = Action::Output { port, bytes_max: keys.number("max_len", bytes_max)? };
    keys.all_taken()?;
    Ok(action)
}

fn copy_field(takes: &Value) -> Result<CopyField, String> {
    let mut keys = Keys::of(takes, "copy_field")?;
    let mut named = |key: &str| {
        let name = keys.take(key);
        let field = name.as_ref().and_then(Value::as_str).and_then(Field::from_name);
        field.ok_or_else(|| format!("copy_field: {key} must be a field"))
    };
    let (src, dst) = (named("src")?, named("dst")?);
    let copy = CopyField {
        bits: keys.number("bits", 0)?,
        src,
        src_offset: keys.number("src_offset", 0)?,
        dst,
        dst_offset: keys.number("dst_offset", 0)?,
    };
    keys.all_taken()?;
    Ok(copy)
}

fn experimenter(takes: &Value) -> Result<Experimenter, String> {
    let mut keys = Keys::of(takes, "experimenter")?;
    let found = keys::experimenter(&mut keys)?;
    keys.all_taken()?;
    Ok(found)
}

/// Writes actions as [`actions`] reads them.
pub fn actions_told(actions: &[Action]) -> Value {
    actions.iter().map(action_told).collect()
}

fn action_told(action: &Action) -> Value {
    let name = action.kind().name();
    let takes = match action {
        Action::Output { port, bytes_max } if Action::output(*port) == *action => {
            debug_assert!(*port != reserved::CONTROLLER || *bytes_max == u16::MAX);
            port_told(*port)
        }
        Action::Output { port, bytes_max } => {
            json!({ "port": port_told(*port), "max_len": bytes_max })
        }
        Action::Group(number) | Action::SetQueue(number) | Action::Meter(number) => {
            (*number).into()
        }
        Action::Enqueue { port, queue } => json!([port_told(*port), queue]),
        Action::SetField(field) => matching_of(std::slice::from_ref(field)),
        Action::CopyField(it) => json!({
            "bits": it.bits,
            "src": it.src.name(),
            "src_offset": it.src_offset,
            "dst": it.dst.name(),
            "dst_offset": it.dst_offset,
        }),
        Action::PushVlan(number)
        | Action::PushMpls(number)
        | Action::PopMpls(number)
        | Action::PushPbb(number)
        | Action::SetVlanVid(number)
        | Action::SetTransportSrc(number)
        | Action::SetTransportDst(number) => (*number).into(),
        Action::SetMplsTtl(number) | Action::SetNwTtl(number) | Action::SetVlanPcp(number) => {
            (*number).into()
        }
        Action::PopVlan
        | Action::PopPbb
        | Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::DecNwTtl => return name.into(),
        Action::Experimenter(it) => keys::experimenter_json(it),
    };
    json!({ name: takes })
}

/// Parses a list of instructions.
pub fn instructions(value: &Value) -> Result<Vec<Instruction>, String> {
    let rows = value.as_array().ok_or("instructions must be a list")?;
    rows.iter().map(instruction).collect()
}

fn instruction(value: &Value) -> Result<Instruction, String> {
    let wrong = || format!("invalid instruction {value}");
    let (name, takes) = named(value).ok_or_else(wrong)?;
    let kind = InstructionKind::ALL.iter().find(|kind| kind.name() == name).ok_or_else(wrong)?;
    Ok(match kind {
        InstructionKind::ApplyActions => Instruction::ApplyActions(actions(takes)?),
        InstructionKind::WriteActions => Instruction::WriteActions(actions(takes)?),
        InstructionKind::ClearActions => Instruction::ClearActions,
        InstructionKind::GotoTable => {
            let table = takes.as_u64().and_then(|it| u8::try_from(it).ok());
            Instruction::GotoTable(table.ok_or_else(wrong)?)
        }
        InstructionKind::Meter => {
            let meter = takes.as_u64().and_then(|it| u32::try_from(it).ok());
            Instruction::Meter(meter.ok_or_else(wrong)?)
        }
        InstructionKind::WriteMetadata => {
            let whole = json!(u64::MAX);
            let number = |value: Option<&Value>| value.and_then(Value::as_u64).ok_or_else(wrong);
            let mask = number(Some(takes.get(1).unwrap_or(&whole)))?;
            Instruction::WriteMetadata { value: number(takes.get(0))? & mask, mask }
        }
        InstructionKind::StatTrigger => stat_trigger(takes)?,
        InstructionKind::Experimenter => Instruction::Experimenter(experimenter(takes)?),
    })
}

fn stat_trigger(takes: &Value) -> Result<Instruction, String> {
    fn given<T: TryFrom<i128>>(
        keys: &mut Keys<'_>,
        key: &str,
        zero: T,
    ) -> Result<Option<T>, String> {
        let is_given = keys.look(key).is_some_and(|value| !value.is_null());
        let number = keys.number(key, zero)?;
        Ok(is_given.then_some(number))
    }
    let mut keys = Keys::of(takes, "stat_trigger")?;
    let thresholds = Counters {
        age: given(&mut keys, "age_ns", 0)?.map(Nanos),
        idle: given(&mut keys, "idle_ns", 0)?.map(Nanos),
        flows: given(&mut keys, "flows", 0)?,
        packets: given(&mut keys, "packets", 0)?,
        bytes: given(&mut keys, "bytes", 0)?,
    };
    let flags = keys.bits("flags")?;
    keys.all_taken()?;
    Ok(Instruction::StatTrigger { flags, thresholds })
}

/// Writes instructions as [`instructions`] reads them.
pub fn instructions_told(instructions: &[Instruction]) -> Value {
    instructions.iter().map(instruction_told).collect()
}

fn instruction_told(instruction: &Instruction) -> Value {
    let name = instruction.kind().name();
    let takes = match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
            actions_told(actions)
        }
        Instruction::ClearActions => return name.into(),
        Instruction::GotoTable(table) => (*table).into(),
        Instruction::Meter(meter) => (*meter).into(),
        Instruction::WriteMetadata { value, mask } => json!([value, mask]),
        Instruction::StatTrigger { flags, thresholds } => {
            let mut value = super::message::counters(thresholds);
            value["flags"] = flags.names().into();
            value
        }
        Instruction::Experimenter(it) => keys::experimenter_json(it),
    };
    json!({ name: takes })
}

/// Splits a value into a name and its arguments.
fn named(value: &Value) -> Option<(&str, &Value)> {
    match value {
        Value::String(name) => Some((name, &Value::Null)),
        Value::Object(row) if row.len() == 1 => {
            row.iter().next().map(|(name, takes)| (name.as_str(), takes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_match_can_be_encoded_again() {
        let written = json!({
            "in_port": 1, "eth_dst": "02:00:00:00:00:05", "vlan_vid": 7, "eth_type": "0x0800",
            "ipv4_src": "10.0.0.0/8", "ipv4_dst": "10.0.0.1", "ip_proto": 17, "udp_dst": "0x10/0xf0",
        });
        let once = matching(&written).unwrap();
        assert_eq!(matching(&matching_told(&once)).unwrap(), once);
        let untagged = Match::ANY.untagged();
        assert_eq!(matching(&json!({"vlan_vid": "none"})).unwrap(), untagged);
        assert_eq!(matching(&matching_told(&untagged)).unwrap(), untagged);
        let six = matching(&json!({"ipv6_dst": "fe80::1/64"})).unwrap();
        assert_eq!(matching(&matching_told(&six)).unwrap(), six);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (name, value) in [
            ("ipv4_dst", json!("10.0.0.1/33")),
            ("ipv4_dst", json!("10.0.0")),
            ("ip_proto", json!(256)),
            ("vlan_vid", json!(4096)),
            ("eth_dst", json!("02:00")),
            ("udp_dst", json!(-1)),
        ] {
            assert!(field(name, &value).is_err(), "{name} {value}");
        }
        assert!(port(&json!("somewhere")).is_err());
        assert_eq!(port(&json!("in_port")), Ok(reserved::IN_PORT));
    }
}
