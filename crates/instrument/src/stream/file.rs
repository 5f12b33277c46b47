//! Streams and replays from a TOML file, with every fault named by its line.
//!
//! ```
//! let text = r#"
//!     [[stream]]
//!     id = 1
//!     from = 1                      # the rig's ports, counted from 1
//!     to = 2
//!     frame_bytes = 64              # frame check sequence included
//!     rate_percent = 50.0           # or rate_pps = 1000.0
//!     link_bits_per_second = 1_000_000_000
//!     mac_source = "02:00:00:00:00:01"
//!     mac_destination = "02:00:00:00:00:02"
//!     ip_source = "10.0.0.1"
//!     ip_destination = "10.0.1.1"
//!
//!     [[stream.vary]]               # fields of one group vary together
//!     count = 1000
//!     order = "random"              # or "zipf" or "sequential"
//!     seed = 1
//!     ip_destination = { first = "10.0.1.1", step = 1 }
//!     port_source = { scattered = 7 }
//! "#;
//! let streams = instrument::stream::file::read(text, 2).unwrap();
//! assert_eq!(streams[0].flow_count(), 1000);
//! ```
//!
//! A file may also name capture files whose frames are sent beside the streams ([`read_all`]):
//!
//! ```
//! let text = r#"
//!     [[replay]]
//!     id = 2
//!     from = 1
//!     file = "office.pcapng"        # pcap or pcapng, Ethernet; from where the command was given
//!     gap_factor = 0.5              # or gap_ns, rate_pps, link_bits_per_second, unpaced = true; or nothing
//!     passes = 10                   # left out 1; 0 for until the trial ends
//!     short = "pad"                 # frames below 64 bytes: or "refuse" or "send"
//!     cut = "fill"                  # frames of which a part was captured: or "refuse" or "send"
//! "#;
//! let contents = instrument::stream::file::read_all(text, 2).unwrap();
//! assert_eq!(contents.replays[0].passes, Some(10));
//! ```
//!
//! Left out, a replay's gaps are the file's own; a stream's `ttl` is 64, `tos` 0, `ip_protocol` 17 (UDP), `port_source` 49152, `port_destination` 9 (discard), `arrival`
//! "unchanged". An unknown key is an error: a misspelt one would change what is measured.

use std::fmt;
use std::net::Ipv4Addr;

use packet::header::ipv4;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use crate::replay::Replay;
use crate::stream::{
    Arrival, Field, Headers, LIST_VALUES_MAX, Order, Problem, Rate, Stream, Values, Vary, Vlan,
    validate,
};

/// Replays in a stream file.
mod replay;

use replay::ReplayEntry;

/// Bytes of a stream file.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// What is wrong with a stream file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileError {
    /// It cannot be read as TOML with these keys.
    Text {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// It can be read, but streams make no sense: all faults.
    Streams(Vec<Fault>),
    /// It has more than [`FILE_BYTES_MAX`] bytes (how many).
    TooLong(usize),
}

/// What is wrong with one stream of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The line where the stream begins, from 1.
    pub line: usize,
    /// The stream's number.
    pub stream: u16,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// Its streams.
    pub streams: Vec<Stream>,
    /// Its replays.
    pub replays: Vec<Replay>,
}

/// The streams of a file without replays, for a rig of `ports` ports.
pub fn read(text: &str, ports: usize) -> Result<Vec<Stream>, FileError> {
    let (contents, lines) = read_with_lines(text, ports)?;
    let of_replay = lines.iter().skip(contents.streams.len());
    let faults: Vec<Fault> = of_replay
        .map(|&(stream, line)| Fault { line, stream, problem: Problem::UnsignedReplay })
        .collect();
    if faults.is_empty() { Ok(contents.streams) } else { Err(FileError::Streams(faults)) }
}

/// The streams and replays of a file, for a rig of `ports` ports.
pub fn read_all(text: &str, ports: usize) -> Result<Contents, FileError> {
    read_with_lines(text, ports).map(|(contents, _)| contents)
}

/// What a file says, and number and line of each stream and then of each replay.
fn read_with_lines(text: &str, ports: usize) -> Result<(Contents, Vec<(u16, usize)>), FileError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLong(text.len()));
    }
    let file: File = toml::from_str(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        FileError::Text { line, column, message: error.message().replace('\n', "; ") }
    })?;
    let mut faults = Vec::new();
    let mut streams = Vec::new();
    let mut lines = Vec::new();
    for entry in file.stream {
        let (line, _) = place(text, entry.span().start);
        let entry = entry.into_inner();
        let id = entry.id;
        lines.push((id, line));
        let mut problems = Vec::new();
        streams.push(entry.stream(&mut problems));
        faults.extend(problems.into_iter().map(|problem| Fault { line, stream: id, problem }));
    }
    let mut replays = Vec::new();
    for entry in file.replay {
        let (line, _) = place(text, entry.span().start);
        let entry = entry.into_inner();
        let id = entry.id;
        let mut problems = Vec::new();
        let replay = entry.replay(&mut problems);
        problems.extend(replay.validate(ports));
        if lines.iter().any(|(other, _)| *other == id) {
            problems.push(Problem::DuplicateId(id));
        }
        lines.push((id, line));
        replays.push(replay);
        faults.extend(problems.into_iter().map(|problem| Fault { line, stream: id, problem }));
    }
    for (id, problem) in validate(&streams, ports) {
        let is_duplicate = matches!(problem, Problem::DuplicateId(_));
        let of_id = |&&(other, _): &&(u16, usize)| other == id;
        let named =
            if is_duplicate { lines.iter().rev().find(of_id) } else { lines.iter().find(of_id) };
        let line = named.map_or(1, |&(_, line)| line);
        let fault = Fault { line, stream: id, problem };
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let contents = Contents { streams, replays };
    if faults.is_empty() { Ok((contents, lines)) } else { Err(FileError::Streams(faults)) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    stream: Vec<Spanned<Entry>>,
    #[serde(default)]
    replay: Vec<Spanned<ReplayEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: u16,
    from: usize,
    to: usize,
    frame_bytes: usize,
    rate_pps: Option<f64>,
    rate_percent: Option<f64>,
    link_bits_per_second: Option<u64>,
    mac_source: Mac,
    mac_destination: Mac,
    vlan_id: Option<u16>,
    vlan_priority: Option<u8>,
    ip_source: Ipv4Addr,
    ip_destination: Ipv4Addr,
    ttl: Option<u8>,
    tos: Option<u8>,
    ip_protocol: Option<u8>,
    port_source: Option<u16>,
    port_destination: Option<u16>,
    #[serde(default)]
    arrival: ArrivalEntry,
    #[serde(default)]
    vary: Vec<VaryEntry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum ArrivalEntry {
    #[default]
    Unchanged,
    Routed(RoutedEntry),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutedEntry {
    mac_source: Mac,
    mac_destination: Mac,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VaryEntry {
    count: Option<u64>,
    #[serde(default)]
    order: OrderEntry,
    seed: Option<u64>,
    mac_source: Option<ValuesEntry>,
    mac_destination: Option<ValuesEntry>,
    vlan_id: Option<ValuesEntry>,
    ip_protocol: Option<ValuesEntry>,
    ip_source: Option<ValuesEntry>,
    ip_destination: Option<ValuesEntry>,
    port_source: Option<ValuesEntry>,
    port_destination: Option<ValuesEntry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum OrderEntry {
    #[default]
    Sequential,
    Random,
    Zipf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValuesEntry {
    list: Option<Vec<Literal>>,
    first: Option<Literal>,
    step: Option<u64>,
    scattered: Option<u64>,
}

impl Entry {
    fn stream(self, problems: &mut Vec<Problem>) -> Stream {
        let rate = self.rate(problems);
        if self.vlan_id.is_none() && self.vlan_priority.is_some() {
            problems.push(Problem::MissingKey("vlan_id"));
        }
        let tag = |id| Vlan { id, priority: self.vlan_priority.unwrap_or(0) };
        let headers = Headers {
            mac_source: self.mac_source.0,
            mac_destination: self.mac_destination.0,
            vlan: self.vlan_id.map(tag),
            ip_source: self.ip_source,
            ip_destination: self.ip_destination,
            ttl: self.ttl.unwrap_or(64),
            tos: self.tos.unwrap_or(0),
            ip_protocol: self.ip_protocol.unwrap_or(ipv4::PROTOCOL_UDP),
            port_source: self.port_source.unwrap_or(49152),
            port_destination: self.port_destination.unwrap_or(9),
        };
        let arrival = match self.arrival {
            ArrivalEntry::Unchanged => Arrival::Unchanged,
            ArrivalEntry::Routed(RoutedEntry { mac_source, mac_destination }) => {
                Arrival::Routed { mac_source: mac_source.0, mac_destination: mac_destination.0 }
            }
        };
        Stream {
            id: self.id,
            // Port 0 does not exist in a file; it becomes one that no rig has.
            from: self.from.wrapping_sub(1),
            to: self.to.wrapping_sub(1),
            frame_bytes: self.frame_bytes,
            headers,
            vary: self.vary.into_iter().map(|group| group.vary(problems)).collect(),
            rate,
            arrival,
        }
    }

    fn rate(&self, problems: &mut Vec<Problem>) -> Rate {
        match (self.rate_pps, self.rate_percent, self.link_bits_per_second) {
            (Some(pps), None, None) => Rate::FramesPerSecond(pps),
            (None, Some(percent), Some(link_bits_per_second)) => {
                Rate::LinkPercent { percent, link_bits_per_second }
            }
            (Some(pps), _, _) => {
                problems.push(Problem::Contradiction("rate_pps", "rate_percent"));
                Rate::FramesPerSecond(pps)
            }
            (None, percent, link) => {
                let missing = match (percent, link) {
                    (Some(_), None) => "link_bits_per_second",
                    (None, Some(_)) => "rate_percent",
                    _ => "rate_pps",
                };
                problems.push(Problem::MissingKey(missing));
                Rate::FramesPerSecond(1.0)
            }
        }
    }
}

impl VaryEntry {
    fn vary(self, problems: &mut Vec<Problem>) -> Vary {
        let listed = [
            (Field::MacSource, self.mac_source),
            (Field::MacDestination, self.mac_destination),
            (Field::VlanId, self.vlan_id),
            (Field::IpProtocol, self.ip_protocol),
            (Field::IpSource, self.ip_source),
            (Field::IpDestination, self.ip_destination),
            (Field::PortSource, self.port_source),
            (Field::PortDestination, self.port_destination),
        ];
        let mut fields = Vec::new();
        for (field, entry) in listed {
            if let Some(entry) = entry {
                fields.push((field, entry.values(field, problems)));
            }
        }
        let listed = fields.iter().find_map(|(_, values)| match values {
            Values::List(list) => Some(list.len() as u64),
            _ => None,
        });
        let count = self.count.or(listed).unwrap_or_else(|| {
            problems.push(Problem::MissingKey("count"));
            1
        });
        let order = match self.order {
            OrderEntry::Sequential => Order::Sequential,
            OrderEntry::Random => Order::Random { seed: self.seed.unwrap_or(0) },
            OrderEntry::Zipf => Order::Zipf { seed: self.seed.unwrap_or(0) },
        };
        Vary { count, order, fields }
    }
}

impl ValuesEntry {
    fn values(self, field: Field, problems: &mut Vec<Problem>) -> Values {
        let mut literal = |literal: Literal| {
            if !literal.suits(field) {
                problems.push(Problem::BadValue { field, value: literal.value });
            }
            literal.value
        };
        match (self.list, self.first, self.scattered) {
            (Some(list), None, None) => {
                Values::List(list.into_iter().take(LIST_VALUES_MAX + 1).map(literal).collect())
            }
            (None, Some(first), None) => {
                Values::Range { first: literal(first), step: self.step.unwrap_or(1) }
            }
            (None, None, Some(seed)) => Values::Scattered { seed },
            (list, first, _) => {
                problems.push(match (list, first) {
                    (None, None) => Problem::MissingKey("list, first or scattered"),
                    (Some(_), Some(_)) => Problem::Contradiction("list", "first"),
                    (Some(_), None) => Problem::Contradiction("list", "scattered"),
                    (None, Some(_)) => Problem::Contradiction("first", "scattered"),
                });
                Values::Scattered { seed: 0 }
            }
        }
    }
}

/// A hardware address as text, `02:00:00:00:00:01`.
struct Mac([u8; 6]);

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || de::Error::custom(format!("{text:?} is not an Ethernet address"));
        mac(&text).map(Mac).ok_or_else(wrong)
    }
}

/// A field's value: a number, or an address as text.
struct Literal {
    value: u64,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Number,
    Mac,
    Address,
}

impl Literal {
    fn suits(&self, field: Field) -> bool {
        match field {
            Field::MacSource | Field::MacDestination => self.kind != Kind::Address,
            Field::IpSource | Field::IpDestination => self.kind != Kind::Mac,
            Field::PortSource | Field::PortDestination | Field::VlanId | Field::IpProtocol => {
                self.kind == Kind::Number
            }
        }
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Literal;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, an Ethernet address or an IPv4 address")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Literal, E> {
                let value = u64::try_from(number)
                    .map_err(|_| E::custom(format!("{number} is negative")))?;
                Ok(Literal { value, kind: Kind::Number })
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Literal, E> {
                Ok(Literal { value, kind: Kind::Number })
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Literal, E> {
                if let Some(bytes) = mac(text) {
                    let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
                    return Ok(Literal { value, kind: Kind::Mac });
                }
                let address: Ipv4Addr = text
                    .parse()
                    .map_err(|_| E::custom(format!("{text:?} is no Ethernet or IPv4 address")))?;
                Ok(Literal { value: address.to_bits().into(), kind: Kind::Address })
            }
        }
        from.deserialize_any(Reader)
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next()?;
        let is_hex = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = if is_hex { u8::from_str_radix(part, 16).ok()? } else { return None };
    }
    parts.next().is_none().then_some(bytes)
}

/// Line and column, from 1, of a byte offset.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    (line, column)
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Text { line, column, message } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            FileError::Streams(faults) => {
                let lines = faults.iter().map(|fault| {
                    format!("line {}, stream {}: {}", fault.line, fault.stream, fault.problem)
                });
                f.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
            FileError::TooLong(bytes) => {
                write!(f, "{bytes} bytes are more than a stream file may have ({FILE_BYTES_MAX})")
            }
        }
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests;
