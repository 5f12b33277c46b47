//! Language of case files.
//!
//! A line is a command and `name=value` words, or names without values. `FIELDS` has the names of
//! fields. A value may have a mask after a slash (for addresses, a number of bits). Ethernet
//! addresses are short numbers (2 for 02:00:00:00:00:02). Frames: `eth=1>2` (source, destination),
//! `vlan=`, `pcp=`, then one of `arp=1 ip=`, `ip= udp=1>2`, `tcp=`, `icmp=8/0`, `type=` for
//! anything else; `tos=`, `part=first|later` for fragments, `bytes=` for the length without
//! padding, `cut=` to truncate the frame.
//!
//! Fields of later versions follow `match=`, each with its name from [`packet::field`], a value and
//! an optional mask: `match=eth_type:0x86dd,ipv6_dst:1/0xff`. An entry with `plain` has its
//! priority as rank; an entry of 1.0 does not need it. Instructions are `meter=`, `actions=`
//! (apply-actions), `clear`, `write=`, `metadata=value/mask` and `goto=`.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use dataplane::action::Action;
use dataplane::egress::PortSettings;
use dataplane::flow::{FlowFilter, FlowFlags, FlowSpec, ModifyRules, Part, rank_exact_first};
use dataplane::group::{BucketSpec, GroupKind, GroupSpec};
use dataplane::instruction::{Instructions, StatTrigger};
use dataplane::key::{Field, Key, VLAN_PRESENT};
use dataplane::matching::{Match, MatchedFields};
use dataplane::table::{TableConfig, TableMiss, Vacancy};
use packet::build::Builder;
use packet::field;
use packet::header::{arp, icmp, ipv4, ipv6, tcp};
use packet::time::Nanos;

const FIELDS: [(&str, Field); 13] = [
    ("in_port", Field::InPort),
    ("eth_src", Field::EthSrc),
    ("eth_dst", Field::EthDst),
    ("vlan", Field::Vlan),
    ("pcp", Field::VlanPriority),
    ("eth_type", Field::EthType),
    ("second_tag", Field::SecondTag),
    ("ip_dscp", Field::IpDscp),
    ("ip_proto", Field::IpProto),
    ("ip_src", Field::IpSrc),
    ("ip_dst", Field::IpDst),
    ("l4_src", Field::L4Src),
    ("l4_dst", Field::L4Dst),
];

/// A parsed line.
pub struct Line<'a> {
    /// File and line number, for error messages.
    pub place: &'a str,
    command: &'a str,
    words: HashMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    pub fn new(text: &'a str, place: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let command = words.next().unwrap();
        let pair = |word: &'a str| word.split_once('=').unwrap_or((word, ""));
        Line { place, command, words: words.map(pair).collect() }
    }

    pub fn command(&self) -> &'a str {
        self.command
    }

    pub fn has(&self, name: &str) -> bool {
        self.words.contains_key(name)
    }

    pub fn text_or(&self, name: &str, otherwise: &'a str) -> &'a str {
        self.words.get(name).copied().unwrap_or(otherwise)
    }

    pub fn number(&self, name: &str) -> u64 {
        number(self.words.get(name).unwrap_or_else(|| panic!("{}: no {name}", self.place)))
    }

    pub fn number_or(&self, name: &str, otherwise: u64) -> u64 {
        if self.has(name) { self.number(name) } else { otherwise }
    }

    pub fn numbers(&self, name: &str) -> impl Iterator<Item = u64> {
        self.text_or(name, "").split(',').map(number)
    }

    /// Returns the time of the command in seconds.
    pub fn moment(&self) -> Nanos {
        Nanos::from_secs_f64(self.text_or("second", "0").parse().unwrap())
    }

    pub fn port_settings(&self) -> PortSettings {
        PortSettings {
            down: self.has("down"),
            no_receive: self.has("no_receive"),
            no_receive_spanning_tree: self.has("no_receive_spanning_tree"),
            no_flood: self.has("no_flood"),
            no_forward: self.has("no_forward"),
            no_packet_in: self.has("no_packet_in"),
        }
    }

    pub fn flow(&self) -> FlowSpec {
        FlowSpec {
            cookie: self.number_or("cookie", 0),
            idle_timeout: Nanos::from_secs(self.number_or("idle", 0)),
            hard_timeout: Nanos::from_secs(self.number_or("hard", 0)),
            importance: self.number_or("importance", 0) as u16,
            table: self.number_or("table", 0) as u8,
            rank: self.rank(),
            flags: FlowFlags {
                notify_removed: self.has("notify"),
                check_overlap: self.has("check_overlap"),
                reset_counts: self.has("reset") || self.command == "add" && !self.has("plain"),
                no_frame_counts: self.has("no_frame_counts"),
                no_byte_counts: self.has("no_byte_counts"),
                miss: self.has("miss"),
            },
            ..FlowSpec::doing(self.matching(), self.priority(), self.instructions())
        }
    }

    fn priority(&self) -> u16 {
        self.number_or("priority", 0) as u16
    }

    fn rank(&self) -> u32 {
        match self.has("plain") {
            true => self.priority().into(),
            false => rank_exact_first(&self.matching(), self.priority()),
        }
    }

    /// Returns the rules of a modification: those of 1.0, unless `plain`.
    pub fn rules(&self) -> ModifyRules {
        ModifyRules { add: !self.has("plain"), cookie: !self.has("plain") }
    }

    fn masked(&self, name: &str) -> Option<(u64, u64)> {
        let (value, mask) = self.words.get(name)?.split_once('/').unwrap();
        Some((number(value), number(mask)))
    }

    /// Parses `tell` with `every` (periodic), `only_first`, and the limits.
    fn trigger(&self) -> StatTrigger {
        let limit = |name| self.has(name).then(|| self.number(name));
        StatTrigger {
            periodic: self.has("every"),
            only_first: self.has("only_first"),
            frames: limit("at_frames"),
            bytes: limit("at_bytes"),
            age: limit("at_age").map(Nanos::from_secs),
            idle: limit("at_idle").map(Nanos::from_secs),
        }
    }

    fn instructions(&self) -> Instructions {
        Instructions {
            trigger: self.has("tell").then(|| self.trigger()),
            meter: self.has("meter").then(|| self.number("meter") as u32),
            apply: self.actions().into(),
            clear: self.has("clear"),
            write: self.actions_of("write").into(),
            metadata: self.masked("metadata"),
            goto: self.has("goto").then(|| self.number("goto") as u8),
            ..Instructions::default()
        }
    }

    pub fn table_config(&self) -> TableConfig {
        TableConfig {
            on_miss: match self.text_or("on_miss", "pipeline") {
                "pipeline" => TableMiss::Pipeline,
                "controller" => TableMiss::Controller,
                "continue" => TableMiss::Continue,
                "drop" => TableMiss::Drop,
                other => panic!("{}: unknown miss behavior {other}", self.place),
            },
            eviction: self.has("eviction"),
            vacancy: self
                .masked("vacancy")
                .map(|(down, up)| Vacancy { down: down as u8, up: up as u8 }),
        }
    }

    /// Parses a group with its buckets `bucket=` and `bucket2=`.
    pub fn group(&self) -> GroupSpec {
        let named = ["bucket", "bucket2", "bucket3"].into_iter().zip(0..);
        let named = named.filter(|(name, _)| self.has(name));
        GroupSpec {
            number: self.number("number") as u32,
            kind: GroupKind::All,
            buckets: named
                .map(|(name, id)| BucketSpec::new(id, 0, &self.actions_of(name)))
                .collect(),
        }
    }

    pub fn filter(&self) -> FlowFilter {
        let destination = self.has("destination").then(|| action(self.text_or("destination", "")));
        FlowFilter {
            matching: self.matching(),
            table: self.has("table").then(|| self.number("table") as u8),
            strict_rank: self.has("strict").then(|| self.rank()),
            cookie: self.masked("with_cookie").unwrap_or((0, 0)),
            group: self.has("to_group").then(|| self.number("to_group") as u32),
            destination,
            part: match self.text_or("part", "") {
                "exact" => Some(Part::Exact),
                "wildcard" => Some(Part::Wildcard),
                _ => None,
            },
            ..FlowFilter::ALL
        }
    }

    /// Returns the match of the named fields, or of those after `match=`; `exact` requires all
    /// other fields to be zero.
    pub fn matching(&self) -> Match {
        if let Some(text) = self.words.get("match") {
            let fields: Vec<MatchedFields> = text.split(',').map(asked).collect();
            return Match::asking(&fields);
        }
        let mut value = Key::ZERO;
        let mut mask = if self.has("exact") { Key::FULL } else { Key::ZERO };
        for (name, field) in FIELDS {
            let Some(text) = self.words.get(name) else { continue };
            let (wanted, bits) = text.split_once('/').unwrap_or((text, ""));
            value.set(field, field_value(field, wanted));
            mask.set(field, if bits.is_empty() { u64::MAX } else { prefix(number(bits)) });
        }
        Match::new(value, mask)
    }

    pub fn actions(&self) -> Vec<Action> {
        self.actions_of("actions")
    }

    fn actions_of(&self, name: &str) -> Vec<Action> {
        let list = self.text_or(name, "");
        list.split(',').filter(|word| !word.is_empty()).map(action).collect()
    }

    pub fn frame(&self) -> Vec<u8> {
        self.frame_labelled("label")
    }

    /// Builds the frame, with the flow label in the word of this name.
    pub fn frame_labelled(&self, label: &str) -> Vec<u8> {
        let (source, destination) = pair(self.text_or("eth", "1>2"));
        let mut builder = Builder::new(mac(destination), mac(source));
        if self.has("vlan") {
            let id = self.number("vlan") as u16;
            builder = builder.vlan((self.number_or("pcp", 0) as u16) << 13 | id);
        }
        if self.has("ip6") {
            builder = self.datagram6(builder, self.number_or(label, 0) as u32);
            return builder.bytes();
        }
        let (source, destination) = pair(self.text_or("ip", "10.0.0.1>10.0.0.2"));
        let addresses = (source.parse().unwrap(), destination.parse().unwrap());
        if self.has("arp") {
            builder = builder.arp(self.arp(addresses.0, addresses.1));
        } else if self.has("type") {
            builder = builder.ether_type(self.number("type") as u16);
        } else if self.has("ip") {
            builder = self.datagram(builder, addresses.0, addresses.1);
        }
        if self.has("bytes") {
            builder = builder.frame_bytes(self.number("bytes") as usize);
        }
        let mut bytes = builder.bytes();
        bytes.truncate(self.number_or("cut", u64::MAX) as usize);
        bytes
    }

    fn arp(&self, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> arp::Header {
        arp::Header {
            operation: self.number("arp") as u16,
            sender_mac: mac("1"),
            sender_ip,
            target_mac: [0; 6],
            target_ip,
        }
    }

    fn datagram(&self, builder: Builder, source: Ipv4Addr, destination: Ipv4Addr) -> Builder {
        let part = self.text_or("part", "");
        let builder = builder.ipv4(ipv4::Header {
            tos: self.number_or("tos", 0) as u8,
            protocol: self.number_or("proto", 0) as u8,
            more_fragments: part == "first",
            fragment_offset: if part == "later" { 1480 } else { 0 },
            ttl: self.number_or("ttl", 64) as u8,
            ..ipv4::Header::new(source, destination)
        });
        self.transport(builder)
    }

    fn datagram6(&self, builder: Builder, flow_label: u32) -> Builder {
        let (source, destination) = pair(self.text_or("ip6", ""));
        let addresses = (source.parse().unwrap(), destination.parse().unwrap());
        let header = ipv6::Header {
            traffic_class: self.number_or("tos", 0) as u8,
            flow_label,
            ..ipv6::Header::new(addresses.0, addresses.1)
        };
        self.transport(builder.ipv6(header))
    }

    fn transport(&self, builder: Builder) -> Builder {
        let ports = |name| {
            let (source, destination) = pair(self.text_or(name, ""));
            (number(source) as u16, number(destination) as u16)
        };
        if self.has("udp") {
            builder.udp(ports("udp").0, ports("udp").1)
        } else if self.has("tcp") {
            builder.tcp(tcp::Header::new(ports("tcp").0, ports("tcp").1, tcp::SYN))
        } else if self.has("icmp") {
            builder.icmp(icmp::Header::new(self.number("icmp") as u8, 0, 0))
        } else {
            builder
        }
    }
}

fn prefix(bits: u64) -> u64 {
    (u64::from(u32::MAX) << (32 - bits)) & u64::from(u32::MAX)
}

fn pair(text: &str) -> (&str, &str) {
    text.split_once('>').unwrap_or_else(|| panic!("{text} is not a pair"))
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{text} is not a number"))
}

fn mac(text: &str) -> [u8; 6] {
    let mut mac: [u8; 6] = number(text).to_be_bytes()[2..].try_into().unwrap();
    mac[0] |= if mac[0] == 0 { 2 } else { 0 };
    mac
}

fn field_value(field: Field, text: &str) -> u64 {
    match field {
        Field::EthSrc | Field::EthDst => {
            mac(text).iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        }
        Field::Vlan if text == "none" => 0,
        Field::Vlan => VLAN_PRESENT | number(text),
        Field::IpSrc | Field::IpDst => address(text).to_bits().into(),
        _ => number(text),
    }
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().unwrap_or_else(|_| panic!("{text} is not an address"))
}

fn action(word: &str) -> Action {
    let (name, value) = word.split_once(':').unwrap_or((word, ""));
    match name {
        "output" => Action::Output { port: number(value) as u32 },
        "in_port" => Action::InPort,
        "all" => Action::All,
        "flood" => Action::Flood,
        "controller" => Action::Controller { bytes_max: number(value) as u16 },
        "normal" => Action::Normal,
        "local" => Action::Local,
        "table" => Action::Table,
        "enqueue" => {
            let (port, queue) = value.split_once(':').unwrap();
            Action::Enqueue { port: number(port) as u32, queue: number(queue) as u32 }
        }
        "set_queue" => Action::SetQueue(number(value) as u32),
        "group" => Action::Group(number(value) as u32),
        "meter" => Action::Meter(number(value) as u32),
        "set" => {
            let (field, value, mask) = asked(value);
            Action::SetField { field, value, mask }
        }
        "copy" => copy(value),
        "push_vlan" => Action::PushVlan(number(value) as u16),
        "pop_vlan" => Action::PopVlan,
        "push_mpls" => Action::PushMpls(number(value) as u16),
        "push_mpls_behind_vlan" => Action::PushMplsBehindVlan(number(value) as u16),
        "pop_mpls" => Action::PopMpls(number(value) as u16),
        "push_pbb" => Action::PushPbb(number(value) as u16),
        "pop_pbb" => Action::PopPbb,
        "copy_ttl_out" => Action::CopyTtlOut,
        "copy_ttl_in" => Action::CopyTtlIn,
        "set_mpls_ttl" => Action::SetMplsTtl(number(value) as u8),
        "dec_mpls_ttl" => Action::DecMplsTtl,
        "set_ip_ttl" => Action::SetIpTtl(number(value) as u8),
        "dec_ip_ttl" => Action::DecIpTtl,
        "set_vlan" => Action::SetVlan(number(value) as u16),
        "set_pcp" => Action::SetVlanPriority(number(value) as u8),
        "strip_vlan" => Action::PopVlan,
        "set_eth_src" => Action::set(field::Field::EthSrc, number_of(&mac(value))),
        "set_eth_dst" => Action::set(field::Field::EthDst, number_of(&mac(value))),
        "set_ip_src" => Action::set(field::Field::Ipv4Src, number_of(&address(value).octets())),
        "set_ip_dst" => Action::set(field::Field::Ipv4Dst, number_of(&address(value).octets())),
        "set_ip_tos" => Action::set(field::Field::IpDscp, u128::from(number(value) >> 2)),
        "set_l4_src" => Action::SetL4Src(number(value) as u16),
        "set_l4_dst" => Action::SetL4Dst(number(value) as u16),
        other => panic!("unknown action {other}"),
    }
}

/// Parses a field with its value and an optional mask: `eth_type:0x800`, `eth_dst:1/1`.
fn asked(text: &str) -> MatchedFields {
    let (name, value) = text.split_once(':').unwrap_or_else(|| panic!("{text} has no value"));
    let field = field::Field::from_name(name).unwrap_or_else(|| panic!("unknown field {name}"));
    let (value, mask) = value.split_once('/').unwrap_or((value, ""));
    let mask = if mask.is_empty() { field.ones() } else { wide_number(mask) };
    (field, wide_number(value) & mask, mask)
}

fn wide_number(text: &str) -> u128 {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Parses a copy of bits from one field to another: `copy:ip_ecn:0:eth_dst:0:2`.
fn copy(text: &str) -> Action {
    let parts: Vec<&str> = text.split(':').collect();
    let [from, from_bit, to, to_bit, bits] = parts[..] else { panic!("{text} is not a copy") };
    let field = |name| field::Field::from_name(name).unwrap();
    let bit = |text| number(text) as u8;
    Action::CopyField {
        from: field(from),
        from_bit: bit(from_bit),
        to: field(to),
        to_bit: bit(to_bit),
        bits: bit(bits),
    }
}

fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |sum, &byte| sum << 8 | u128::from(byte))
}

/// Prints the match fields, with masks for partial matches.
pub fn show_match(matching: &Match) -> String {
    if matching.wide_words() != 0 {
        let asked = matching.asked(matching.fields_asked());
        let show = |(field, value, mask): &MatchedFields| match *mask == field.ones() {
            true => format!("{field}={value:#x}"),
            false => format!("{field}={value:#x}/{mask:#x}"),
        };
        return asked.iter().map(show).collect::<Vec<_>>().join(" ");
    }
    if matching.is_exact() {
        let key = format!("{:x?}", matching.value().0);
        return format!("exact {key}");
    }
    let mut words = Vec::new();
    for (name, field) in FIELDS {
        match matching.field(field) {
            (_, 0) => {}
            (value, mask) if mask == field.full() => words.push(format!("{name}={value:#x}")),
            (value, mask) => words.push(format!("{name}={value:#x}/{mask:#x}")),
        }
    }
    if words.is_empty() { "any".into() } else { words.join(" ") }
}

/// Prints instructions; a single action list is printed without a name.
pub fn show_instructions(of: &Instructions) -> String {
    let mut text = format!("actions={}", show_actions(&of.apply));
    if let Some(meter) = of.meter {
        text += &format!(" meter={meter}");
    }
    if of.clear {
        text += " clear";
    }
    if !of.write.is_empty() {
        text += &format!(" write={}", show_actions(&of.write));
    }
    if let Some((value, mask)) = of.metadata {
        text += &format!(" metadata={value:#x}/{mask:#x}");
    }
    if let Some(table) = of.goto {
        text += &format!(" goto={table}");
    }
    text
}

pub fn show_actions(actions: &[Action]) -> String {
    if actions.is_empty() {
        return "drop".into();
    }
    let words: Vec<String> = actions.iter().map(|action| format!("{action:?}")).collect();
    words.join(",")
}
