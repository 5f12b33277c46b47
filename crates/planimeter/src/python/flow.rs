//! Fields, actions and instructions as JSON, in the notation that people use for them.
//!
//! A match is an object of fields by their names: a number, or a text with an address, a prefix or a mask
//! after a stroke. An action is its name, or an object of its name and what it takes. Invariant: what is
//! told can be said again.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::model::port::ShowPort;
use openflow::model::{Action, Field, FieldMatch, Instruction, Match, reserved};
use serde_json::{Value, json};

/// Ports that have names.
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

/// A port's number, or its name.
pub fn port(value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    let named = || {
        let text = value.as_str()?;
        let named = PORTS.into_iter().find(|port| ShowPort(*port).to_string() == text);
        named.or_else(|| text.parse().ok())
    };
    number.or_else(named).ok_or_else(|| format!("there is no port {value}"))
}

/// A port as [`port`] reads it.
pub fn port_told(port: u32) -> Value {
    if PORTS.contains(&port) { ShowPort(port).to_string().into() } else { port.into() }
}

/// A match.
pub fn matching(value: &Value) -> Result<Match, String> {
    let fields = value.as_object().ok_or("its match is no object")?;
    fields.iter().map(|(name, value)| field(name, value)).collect()
}

/// A match as [`matching`] reads it.
pub fn matching_told(matching: &Match) -> Value {
    let told = |it: &FieldMatch| {
        let text = it.to_string();
        let value = text.split_once('=').map_or("", |(_, value)| value);
        (it.field.name().to_string(), Value::from(value))
    };
    matching.fields().iter().map(told).collect()
}

/// What a field has to be.
fn field(name: &str, value: &Value) -> Result<FieldMatch, String> {
    let field = Field::from_name(name).ok_or_else(|| format!("there is no field {name:?}"))?;
    let wrong = || format!("{value} is no value of {name}");
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

/// A field's value: a number, or an address.
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

/// A list of actions.
pub fn actions(value: &Value) -> Result<Vec<Action>, String> {
    let rows = value.as_array().ok_or("its actions are no list")?;
    rows.iter().map(action).collect()
}

fn action(value: &Value) -> Result<Action, String> {
    let wrong = || format!("{value} is no action");
    let (name, takes) = named(value).ok_or_else(wrong)?;
    let number = || takes.as_u64().and_then(|it| u32::try_from(it).ok()).ok_or_else(wrong);
    let short = || takes.as_u64().and_then(|it| u16::try_from(it).ok()).ok_or_else(wrong);
    let byte = || takes.as_u64().and_then(|it| u8::try_from(it).ok()).ok_or_else(wrong);
    Ok(match name {
        "output" => Action::output(port(takes)?),
        "group" => Action::Group(number()?),
        "set_queue" => Action::SetQueue(number()?),
        "enqueue" => {
            let queue = takes.get(1).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
            Action::Enqueue { port: port(&takes[0])?, queue: queue.ok_or_else(wrong)? }
        }
        "set_field" => {
            let fields = takes.as_object().filter(|fields| fields.len() == 1).ok_or_else(wrong)?;
            let (name, value) = fields.iter().next().ok_or_else(wrong)?;
            Action::SetField(field(name, value)?)
        }
        "push_vlan" => Action::PushVlan(short()?),
        "pop_vlan" => Action::PopVlan,
        "push_mpls" => Action::PushMpls(short()?),
        "pop_mpls" => Action::PopMpls(short()?),
        "push_pbb" => Action::PushPbb(short()?),
        "pop_pbb" => Action::PopPbb,
        "copy_ttl_out" => Action::CopyTtlOut,
        "copy_ttl_in" => Action::CopyTtlIn,
        "set_mpls_ttl" => Action::SetMplsTtl(byte()?),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "set_nw_ttl" => Action::SetNwTtl(byte()?),
        "dec_nw_ttl" => Action::DecNwTtl,
        "meter" => Action::Meter(number()?),
        "set_vlan_vid" => Action::SetVlanVid(short()?),
        "set_vlan_pcp" => Action::SetVlanPcp(byte()?),
        "set_transport_src" => Action::SetTransportSrc(short()?),
        "set_transport_dst" => Action::SetTransportDst(short()?),
        _ => return Err(wrong()),
    })
}

/// A list of instructions.
pub fn instructions(value: &Value) -> Result<Vec<Instruction>, String> {
    let rows = value.as_array().ok_or("its instructions are no list")?;
    rows.iter().map(instruction).collect()
}

fn instruction(value: &Value) -> Result<Instruction, String> {
    let wrong = || format!("{value} is no instruction");
    let (name, takes) = named(value).ok_or_else(wrong)?;
    Ok(match name {
        "apply_actions" => Instruction::ApplyActions(actions(takes)?),
        "write_actions" => Instruction::WriteActions(actions(takes)?),
        "clear_actions" => Instruction::ClearActions,
        "goto_table" => {
            let table = takes.as_u64().and_then(|it| u8::try_from(it).ok());
            Instruction::GotoTable(table.ok_or_else(wrong)?)
        }
        "meter" => {
            let meter = takes.as_u64().and_then(|it| u32::try_from(it).ok());
            Instruction::Meter(meter.ok_or_else(wrong)?)
        }
        "write_metadata" => {
            let whole = json!(u64::MAX);
            let number = |value: Option<&Value>| value.and_then(Value::as_u64).ok_or_else(wrong);
            let mask = number(Some(takes.get(1).unwrap_or(&whole)))?;
            Instruction::WriteMetadata { value: number(takes.get(0))? & mask, mask }
        }
        _ => return Err(wrong()),
    })
}

/// A name, and what it takes.
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
    fn what_is_told_of_a_match_can_be_said_again() {
        let said = json!({
            "in_port": 1, "eth_dst": "02:00:00:00:00:05", "vlan_vid": 7, "eth_type": "0x0800",
            "ipv4_src": "10.0.0.0/8", "ipv4_dst": "10.0.0.1", "ip_proto": 17, "udp_dst": "0x10/0xf0",
        });
        let once = matching(&said).unwrap();
        assert_eq!(matching(&matching_told(&once)).unwrap(), once);
        let untagged = Match::ANY.untagged();
        assert_eq!(matching(&json!({"vlan_vid": "none"})).unwrap(), untagged);
        assert_eq!(matching(&matching_told(&untagged)).unwrap(), untagged);
        let six = matching(&json!({"ipv6_dst": "fe80::1/64"})).unwrap();
        assert_eq!(matching(&matching_told(&six)).unwrap(), six);
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
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
