//! The language of the case files: lines to cases.
//!
//! A case begins with `case NAME` and ends with an empty line. `clause`, `versions`, `covers` and
//! `ours` (only our switch can be asked) and `sim` (only a fresh one) describe it; `expect` says what has to come of the line above; every other line is a step.
//! `1.2+` means that version and later ones, `1.0-1.3` both and those between. Sentences about
//! messages hold if the message's text form has all their words.

use openflow::codec;
use openflow::model::flow::{FlowMod, FlowModCommand};
use openflow::model::group::{GROUP_ALL, GROUP_ANY, GroupKind, GroupMod, GroupModCommand};
use openflow::model::matching::Match;
use openflow::model::meter::{METER_ALL, MeterFlags, MeterMod, MeterModCommand};
use openflow::model::table::TABLE_ALL;
use openflow::model::*;
use openflow::version::{AsyncKind, MessageKind, Version};
use packet::time::Nanos;

use crate::case::{Case, Do, Expect, Step};
use crate::frame::{frame, mac, number};
use crate::player::generation_base;
use crate::subject::port_mac;
use crate::words;

/// The cases in a text.
pub fn cases(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((first, rest)) = words.split_first() else { continue };
        if first.starts_with('#') {
            continue;
        }
        let wrong = |why: String| format!("{file}:{line}: {text}: {why}");
        if *first == "case" {
            let [name] = rest else { return Err(wrong("case NAME".into())) };
            cases.push(Case {
                file: file.to_owned(),
                name: (*name).to_owned(),
                clauses: Vec::new(),
                versions: Version::ALL.to_vec(),
                covers: Vec::new(),
                ours_only: false,
                fresh: false,
                steps: Vec::new(),
            });
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| wrong("a file begins with a case".into()))?;
        let owned = || rest.iter().map(|word| (*word).to_owned()).collect();
        match *first {
            "clause" => case.clauses = owned(),
            "covers" => case.covers = owned(),
            "versions" => case.versions = versions(rest).map_err(wrong)?,
            "ours" => case.ours_only = true,
            "sim" => case.fresh = true,
            "expect" => {
                let step = case.steps.last_mut().ok_or_else(|| wrong("of what?".into()))?;
                step.expect.push(expect(rest).map_err(wrong)?);
            }
            _ => {
                let what = step(first, rest).map_err(wrong)?;
                let text = text.to_owned();
                case.steps.push(Step { line, text, what, expect: Vec::new() });
            }
        }
    }
    Ok(cases)
}

/// `1.0`, `1.2+`, `1.0-1.3`.
fn versions(words: &[&str]) -> Result<Vec<Version>, String> {
    let one = |text: &str| -> Result<Version, String> {
        let known = Version::ALL.into_iter().find(|version| version.to_string() == text);
        known.ok_or_else(|| format!("there is no version {text}"))
    };
    let mut versions = Vec::new();
    for word in words {
        let (from, to) = match (word.strip_suffix('+'), word.split_once('-')) {
            (Some(from), _) => (one(from)?, Version::V1_5),
            (None, Some((from, to))) => (one(from)?, one(to)?),
            (None, None) => (one(word)?, one(word)?),
        };
        versions.extend(Version::ALL.into_iter().filter(|one| (from..=to).contains(one)));
    }
    Ok(versions)
}

fn step(first: &str, rest: &[&str]) -> Result<Do, String> {
    let words = rest;
    Ok(match first {
        "flow" => {
            let change = words::flow(words)?;
            send(move |_| Ok(Message::FlowMod(change.clone())))
        }
        "group" => {
            let change = words::group(words)?;
            send(move |_| Ok(Message::GroupMod(change.clone())))
        }
        "meter" => {
            let change = words::meter(words)?;
            send(move |_| Ok(Message::MeterMod(change.clone())))
        }
        "packet_out" => {
            let packet = packet_out(words)?;
            send(move |_| Ok(Message::PacketOut(packet.clone())))
        }
        "port" => Do::PortMod(port_mod(words)?),
        "table" => {
            let change = table_mod(words)?;
            send(move |_| Ok(Message::TableMod(change.clone())))
        }
        "config" => {
            let config = switch_config(words)?;
            send(move |_| Ok(Message::SetConfig(config)))
        }
        "async" => {
            let config = asynchronous(words)?;
            send(move |_| Ok(Message::SetAsync(config.clone())))
        }
        "send" | "ask" => ask(words)?,
        "bundle" => bundle(words)?,
        "many" => Do::Many { count: number(words.first().ok_or("many COUNT")?)? as u32, table: 0 },
        "few" => {
            let [count, table] = words else { return Err("few COUNT table=N".into()) };
            let table = table.strip_prefix("table=").ok_or("few COUNT table=N")?;
            Do::Many { count: number(count)? as u32, table: number(table)? as u8 }
        }
        "full" => Do::Full,
        "oxm" => {
            let bytes = hex(words)?;
            raw(move |version| Ok(flow_mod_with(version, &bytes)))
        }
        "raw" => {
            let (header, words) = header_words(words)?;
            let body = hex(words)?;
            raw(move |version| Ok(header.message(version, &body)))
        }
        is_cut @ ("cut" | "stretch") => {
            let [bytes, first, rest @ ..] = words else { return Err("cut BYTES STEP".into()) };
            let Do::Send(make) = step(first, rest)? else { return Err("no message".into()) };
            let by = number(bytes)? as usize;
            let is_cut = is_cut == "cut";
            raw(move |version| Ok(with_another_length(version, &make(version)?, by, is_cut)))
        }
        "plain" => Do::Plain,
        "put" => {
            let (header, words) = header_words(words)?;
            let body = hex(words)?;
            Do::Put(Box::new(move |version| Ok(header.message(version, &body))))
        }
        "frame" => {
            let (port, words) = words.split_first().ok_or("frame PORT KIND")?;
            Do::Frame { port: number(port)? as u32, bytes: frame(words)? }
        }
        "pass" => Do::Pass(Nanos::from_millis(number(words.first().ok_or("pass MILLISECONDS")?)?)),
        "as" => Do::Become { name: (*words.first().ok_or("as NAME")?).to_owned() },
        _ => return Err(format!("there is no step {first}")),
    })
}

/// The bytes of a message without its last ones, or with zeros behind them, and a length that says so.
fn with_another_length(version: Version, message: &Message, by: usize, is_cut: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(version, 0x7777_0003, message, &mut bytes).expect("a case's message can be said");
    let length = if is_cut { bytes.len() - by } else { bytes.len() + by };
    bytes.resize(length, 0);
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes
}

fn send(make: impl Fn(Version) -> Result<Message, String> + 'static) -> Do {
    Do::Send(Box::new(make))
}

fn raw(make: impl Fn(Version) -> Result<Vec<u8>, String> + 'static) -> Do {
    Do::Raw(Box::new(make))
}

/// What the header of bytes says: the type by number or name, and a version if another one.
struct RawHeader {
    kind: Kind,
    version: Option<u8>,
}

enum Kind {
    Number(u8),
    Name(MessageKind),
}

impl RawHeader {
    fn message(&self, version: Version, body: &[u8]) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Number(number) => number,
            Kind::Name(kind) => kind.code(version).unwrap_or(u8::MAX),
        };
        let mut bytes = vec![self.version.unwrap_or(version.wire()), kind];
        bytes.extend((8 + body.len() as u16).to_be_bytes());
        bytes.extend(0x7777_0001_u32.to_be_bytes());
        bytes.extend(body);
        bytes
    }
}

fn header_words<'a>(words: &'a [&'a str]) -> Result<(RawHeader, &'a [&'a str]), String> {
    let (mut words, mut version) = (words, None);
    if let Some(text) = words.first().and_then(|word| word.strip_prefix("version=")) {
        version = Some(number(text)? as u8);
        words = &words[1..];
    }
    let (kind, words) = words.split_first().ok_or("which type?")?;
    let named = MessageKind::ALL.iter().find(|one| one.name() == *kind);
    let kind = match named {
        Some(kind) => Kind::Name(*kind),
        None => Kind::Number(number(kind)? as u8),
    };
    Ok((RawHeader { kind, version }, words))
}

fn hex(words: &[&str]) -> Result<Vec<u8>, String> {
    let digits = words.concat();
    if digits.len() % 2 == 1 {
        return Err("half a byte".into());
    }
    let bytes = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
    bytes.collect::<Result<_, _>>().map_err(|_| format!("{digits:?} is not hexadecimal"))
}

/// A flow-mod of 1.2 or later whose match consists of these bytes.
fn flow_mod_with(version: Version, oxm: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let change = Message::FlowMod(FlowMod::add(Match::ANY, 1, Vec::new()));
    codec::encode(version, 0x7777_0002, &change, &mut bytes).expect("an empty flow-mod");
    // Header and fixed part are 48 bytes; type and length of the match follow.
    bytes.truncate(48);
    bytes.extend(1u16.to_be_bytes());
    bytes.extend((4 + oxm.len() as u16).to_be_bytes());
    bytes.extend(oxm);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// `in_port=PORT do ACTIONS frame KIND ...`.
fn packet_out(words: &[&str]) -> Result<PacketOut, String> {
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

/// A port-mod that sets exactly these bits: `NUMBER [mac=ADDRESS] [BIT]`. Without a bit, none is set.
pub struct PortChange {
    pub number: u32,
    mac: Option<u64>,
    config: PortConfig,
}

fn port_mod(words: &[&str]) -> Result<PortChange, String> {
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
    /// No setting at all.
    pub fn none(number: u32) -> PortChange {
        PortChange { number, mac: None, config: PortConfig::NONE }
    }

    /// The message, given the ports' addresses.
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
fn table_mod(words: &[&str]) -> Result<TableMod, String> {
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

/// A monitor of all entries that tells these things: `FLAG|FLAG`.
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

fn switch_config(words: &[&str]) -> Result<SwitchConfig, String> {
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

/// Everything but what is named stays as a master has it from the start.
fn asynchronous(words: &[&str]) -> Result<AsyncConfig, String> {
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
            _ => return Err(format!("there is no news {name}")),
        };
        let mut reasons = 0;
        for reason in text.split('|') {
            reasons |= match reason {
                "none" => 0,
                "no_match" => 1,
                "action" => 2,
                "invalid_ttl" => 4,
                _ => return Err(format!("there is no reason {reason}")),
            };
        }
        config.set(kind, false, reasons);
    }
    Ok(config)
}

/// Requests, of which the reply is expected.
fn ask(words: &[&str]) -> Result<Do, String> {
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
                // A real switch keeps the highest generation that it has seen.
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
        "queue" => send(|version| {
            let port = if version == Version::V1_0 { reserved::ALL } else { reserved::NONE };
            let queue = QUEUE_ALL;
            Ok(request(MultipartRequestBody::Queue { port, queue }))
        }),
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
            multipart(MultipartRequestBody::BundleFeatures(BundleFeaturesRequest {
                flags: BundleFeatureFlags::NONE,
                properties: Vec::new(),
            }))
        }
        _ => return Err(format!("nobody can ask for {what}")),
    })
}

/// A request in one part.
pub fn request(body: MultipartRequestBody) -> Message {
    Message::MultipartRequest(body.into())
}

fn flow_request(words: &[&str]) -> Result<FlowStatsRequest, String> {
    // A deletion names the same things.
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

/// `open|close|commit|discard ID [FLAGS]`, or `add ID flow ...`.
fn bundle(words: &[&str]) -> Result<Do, String> {
    let [command, id, rest @ ..] = words else { return Err("bundle COMMAND ID".into()) };
    let id = number(id)? as u32;
    let mut flags = BundleFlags::NONE;
    if *command == "add" {
        let change = words::flow(rest.get(1..).ok_or("bundle add ID flow ...")?)?;
        return Ok(Do::BundleAdd { id, message: Message::FlowMod(change) });
    }
    for name in rest.iter().flat_map(|word| word.split('|')) {
        flags |= match name {
            "atomic" => BundleFlags::ATOMIC,
            "ordered" => BundleFlags::ORDERED,
            _ => return Err(format!("there is no flag {name}")),
        };
    }
    let command = match *command {
        "open" => BundleCommand::Open,
        "close" => BundleCommand::Close,
        "commit" => BundleCommand::Commit,
        "discard" => BundleCommand::Discard,
        _ => return Err(format!("there is no command {command}")),
    };
    Ok(Do::Bundle { id, command, flags })
}

fn expect(words: &[&str]) -> Result<Expect, String> {
    let (what, rest) = words.split_first().ok_or("expect WHAT")?;
    if let Ok(port) = number(what) {
        return Ok(Expect::Frame { port: port as u32, bytes: frame(rest)? });
    }
    let framed = rest.iter().position(|word| *word == "frame");
    let bytes = framed.map(|at| frame(&rest[at + 1..])).transpose()?;
    let wanted: Vec<String> =
        rest[..framed.unwrap_or(rest.len())].iter().map(|word| (*word).to_owned()).collect();
    let text = words.join(" ");
    let check: Box<dyn Fn(&Message) -> bool> = match *what {
        "down" => return Ok(Expect::Down),
        "rows" => return Ok(Expect::Rows(number(rest.first().ok_or("rows COUNT")?)? as usize)),
        "row" => return Ok(Expect::Row(wanted)),
        "kind" => return Ok(Expect::Kind(wanted.concat())),
        "reply" => Box::new(move |message| has_all(&message.to_string(), &wanted)),
        "error" | "packet_in" | "flow_removed" | "port_status" | "features_reply"
        | "table_status" => {
            let name = (*what).to_owned();
            Box::new(move |message| {
                let same = match (&bytes, message) {
                    (Some(bytes), Message::PacketIn(packet)) => {
                        !packet.data.is_empty() && bytes.starts_with(&packet.data)
                    }
                    (Some(_), _) => false,
                    (None, _) => true,
                };
                message.kind().name() == name && same && has_all(&message.to_string(), &wanted)
            })
        }
        _ => return Err(format!("nobody can expect {what}")),
    };
    Ok(Expect::Message { text, check })
}

/// Whether each word is in the text.
pub fn has_all(text: &str, words: &[String]) -> bool {
    words.iter().all(|word| text.contains(word.as_str()))
}

/// The kind of a message in bytes.
pub fn kind_of(bytes: &[u8]) -> Option<MessageKind> {
    let version = Version::from_wire(*bytes.first()?)?;
    MessageKind::from_code(version, *bytes.get(1)?)
}

/// What removes everything that a case may have left behind.
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
