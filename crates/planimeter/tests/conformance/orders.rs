//! Messages that change the switch, from words: packet-outs, ports, tables, settings.

use openflow::model::flow::{FlowMod, FlowModCommand};
use openflow::model::group::{GROUP_ALL, GROUP_ANY, GroupKind, GroupMod, GroupModCommand};
use openflow::model::meter::{METER_ALL, MeterFlags, MeterMod, MeterModCommand};
use openflow::model::table::TABLE_ALL;
use openflow::model::*;
use openflow::version::{AsyncKind, Version};

use crate::frame::{frame, mac, number};
use crate::subject::port_mac;
use crate::words;

/// `in_port=PORT do ACTIONS frame KIND ...`.
pub fn packet_out(words: &[&str]) -> Result<PacketOut, String> {
    let act = words.iter().position(|word| *word == "do").ok_or("do ACTIONS")?;
    let framed = words.iter().position(|word| *word == "frame").unwrap_or(words.len());
    let mut packet =
        PacketOut { actions: words::actions(&words[act + 1..framed])?, ..PacketOut::default() };
    for word in &words[..act] {
        match word.split_once('=') {
            Some(("in_port", text)) => packet.in_port = words::port(text)?,
            Some(("buffer", text)) => packet.buffer_id = Some(number(text)? as u32),
            _ => return Err(format!("a packet-out has no {word}")),
        }
    }
    if framed < words.len() {
        packet.data = frame(&words[framed + 1..])?;
    }
    Ok(packet)
}

/// A port-mod that sets exactly these bits: `NUMBER [mac=ADDRESS] [BIT]`. Without a bit, none is
/// set.
pub struct PortChange {
    pub number: u32,
    mac: Option<u64>,
    config: PortConfig,
}

pub fn port_mod(words: &[&str]) -> Result<PortChange, String> {
    let (port, words) = words.split_first().ok_or("port NUMBER")?;
    let mut change = PortChange::none(number(port)? as u32);
    for word in words {
        match *word {
            "port_down" => change.config |= PortConfig::PORT_DOWN,
            "no_receive" => change.config |= PortConfig::NO_RECEIVE,
            "no_forward" => change.config |= PortConfig::NO_FORWARD,
            "no_packet_in" => change.config |= PortConfig::NO_PACKET_IN,
            "no_flood" => change.config |= PortConfig::NO_FLOOD,
            other => match other.strip_prefix("mac=") {
                Some(text) => change.mac = Some(mac(text)?),
                None => return Err(format!("a port has no {other}")),
            },
        }
    }
    Ok(change)
}

impl PortChange {
    /// Returns a port-mod without any bit.
    pub fn none(number: u32) -> PortChange {
        PortChange { number, mac: None, config: PortConfig::NONE }
    }

    /// Returns the message, with the ports' addresses.
    pub fn message(&self, version: Version, macs: &dyn Fn(u32) -> [u8; 6]) -> Message {
        let mask = PortConfig::PORT_DOWN
            | PortConfig::NO_RECEIVE
            | PortConfig::NO_FORWARD
            | PortConfig::NO_PACKET_IN;
        let mask = if version == Version::V1_0 { mask | PortConfig::NO_FLOOD } else { mask };
        let mac = self.mac.map_or_else(|| macs(self.number), port_mac);
        let (number, config) = (self.number, self.config);
        Message::PortMod(PortMod { number, mac, config, mask, ..PortMod::default() })
    }
}

/// `NUMBER [eviction=importance] [vacancy=DOWN/UP]`.
pub fn table_mod(words: &[&str]) -> Result<TableMod, String> {
    let (table, words) = words.split_first().ok_or("table NUMBER")?;
    let (config, properties) = (TableConfig::default(), Vec::new());
    let mut change = TableMod { table: number(table)? as u8, config, properties };
    for word in words {
        match word.split_once('=') {
            Some(("eviction", "importance")) => {
                change.config.eviction = true;
                let property = TableModProperty::Eviction(EvictionFlags::IMPORTANCE);
                change.properties.push(property);
            }
            Some(("vacancy", text)) => {
                let (down, up) = text.split_once('/').ok_or("vacancy=DOWN/UP")?;
                let (down, up) = (number(down)? as u8, number(up)? as u8);
                change.config.vacancy_events = true;
                change.properties.push(TableModProperty::Vacancy { down, up, vacancy: 0 });
            }
            _ => return Err(format!("a table has no {word}")),
        }
    }
    Ok(change)
}

/// `[miss=BYTES] [frag=HANDLING]`.
pub fn switch_config(words: &[&str]) -> Result<SwitchConfig, String> {
    let mut config = SwitchConfig { miss_send_bytes: 128, ..SwitchConfig::default() };
    for word in words {
        match word.split_once('=') {
            Some(("miss", text)) => config.miss_send_bytes = number(text)? as u16,
            Some(("frag", "drop")) => config.fragments = FragmentHandling::Drop,
            Some(("frag", "reassemble")) => config.fragments = FragmentHandling::Reassemble,
            Some(("frag", "normal")) => config.fragments = FragmentHandling::Normal,
            _ => return Err(format!("there is no setting {word}")),
        }
    }
    Ok(config)
}

/// Everything except the named settings stays at a master's defaults.
pub fn asynchronous(words: &[&str]) -> Result<AsyncConfig, String> {
    let mut config = AsyncConfig::default();
    for (kind, reasons) in
        [(AsyncKind::PacketIn, 3), (AsyncKind::PortStatus, 7), (AsyncKind::FlowRemoved, 15)]
    {
        config.set(kind, false, reasons);
        config.set(kind, true, if kind == AsyncKind::PortStatus { 7 } else { 0 });
    }
    for word in words {
        let (name, text) = word.split_once('=').ok_or("NEWS=REASONS")?;
        let kind = match name {
            "packet_in" => AsyncKind::PacketIn,
            "flow_removed" => AsyncKind::FlowRemoved,
            "request_forward" => AsyncKind::RequestForward,
            _ => return Err(format!("there is no news {name}")),
        };
        let mut reasons = 0;
        for reason in text.split('|') {
            reasons |= match reason {
                "none" => 0,
                "no_match" | "group_mod" => 1,
                "action" | "meter_mod" => 2,
                "invalid_ttl" => 4,
                _ => return Err(format!("there is no reason {reason}")),
            };
        }
        config.set(kind, false, reasons);
    }
    Ok(config)
}

/// Returns the messages that remove all state that a case may have left.
pub fn clearing(version: Version) -> Vec<Message> {
    let mut messages = vec![Message::FlowMod(FlowMod {
        command: FlowModCommand::Delete,
        table: if version == Version::V1_0 { 0 } else { TABLE_ALL },
        out_group: GROUP_ANY,
        ..FlowMod::default()
    })];
    if version >= Version::V1_1 {
        messages.push(Message::GroupMod(GroupMod {
            command: GroupModCommand::Delete,
            kind: GroupKind::All,
            group: GROUP_ALL,
            command_bucket: openflow::model::group::BUCKET_ALL,
            buckets: Vec::new(),
            experimenter: Vec::new(),
        }));
    }
    if version >= Version::V1_3 {
        let (flags, bands) = (MeterFlags::NONE, Vec::new());
        let command = MeterModCommand::Delete;
        messages.push(Message::MeterMod(MeterMod { command, flags, meter: METER_ALL, bands }));
    }
    messages
}
