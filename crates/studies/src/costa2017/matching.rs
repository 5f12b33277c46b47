//! Tables II and III, figures 2 to 5: round trip time by match fields and by packet size.
//!
//! Claim: delays hardly depend on the match type or on the packet size; those of different switches differ by a
//! factor of ten.
//!
//! Method: one entry for each direction and match type. 64-byte packets go one by one, and with the five types of
//! the study at a set rate too. Types alternate repeat by repeat, so that a disturbance affects all types alike.
//! Beyond the study, every other field is measured alone. If client and server cannot differ in that field, packets
//! return by an entry for the port.

use openflow::model::message::Message;
use openflow::model::{Field, Match};
use tester::stream::{Headers, Stream, Vlan};

use super::common::{
    OPEN_BESIDE, OPEN_PPS, PACKETS, WAIT, answering, loops, rules, spot, trip, ways,
};
use experiments::control_plane::rounds::RepeatedModule;
use experiments::control_plane::updates::{PATIENCE, VERSION};
use experiments::show::Chart;
use experiments::{Context, Method};
use targets::flow_setup::{PORT_IN, PORT_OUT, exact};
use workload::Technology;
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Packet sizes of the study.
pub const SIZES: [u16; 3] = [64, 128, 256];

/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

/// IP protocol number of UDP.
const UDP: u8 = 17;

const SIZE: Parameter = Parameter {
    key: "size",
    takes: ValueType::Integer(64, 1518),
    default: "64",
    unit: "bytes",
    help: "frame size, including the frame check sequence; tagged frames are larger if necessary",
};

/// Match types to measure.
pub const TYPES: Parameter = Parameter {
    key: "match_types",
    takes: ValueType::Words(WORDS),
    default: "port,mac,ip,udp_port,exact,eth_src,eth_dst,eth_type,vlan_vid,vlan_pcp,ip_dscp,ip_ecn,ip_proto,\
              ipv4_src,ipv4_dst,udp_src,udp_dst",
    unit: "",
    help: "match types: the five of the study, and every other single field",
};

/// Parameters of the match type experiments.
pub const PARAMETERS: &[Parameter] = &[TYPES, SIZE, PACKETS, OPEN_PPS, WAIT, VERSION, PATIENCE];

/// Parameters of the packet size experiment.
pub const BY_SIZE: &[Parameter] = &[FRAMES_READ, PACKETS, OPEN_BESIDE, WAIT, VERSION, PATIENCE];

/// Packet sizes of the study, as frame sizes.
pub const FRAMES: Parameter = shared::FRAMES.with_default("64,128,256");

/// The same sizes as frame sizes and, for the other reading of the study, as UDP payload sizes.
const FRAMES_READ: Parameter = shared::FRAMES.with_default("64,110,128,174,256,302");

/// Names of match types, those of the study first.
pub const WORDS: &[&str] = &[
    "port", "mac", "ip", "udp_port", "exact", "eth_src", "eth_dst", "eth_type", "vlan_vid",
    "vlan_pcp", "ip_dscp", "ip_ecn", "ip_proto", "ipv4_src", "ipv4_dst", "udp_src", "udp_dst",
];

/// Prefixes of the metric names, in the same order.
pub const PREFIXES: &[&str] = &[
    "port_",
    "mac_",
    "ip_",
    "udp_port_",
    "exact_",
    "eth_src_",
    "eth_dst_",
    "eth_type_",
    "vlan_vid_",
    "vlan_pcp_",
    "ip_dscp_",
    "ip_ecn_",
    "ip_proto_",
    "ipv4_src_",
    "ipv4_dst_",
    "udp_src_",
    "udp_dst_",
];

/// Number of match types in the study.
pub const PUBLISHED: usize = 5;

/// Name of the measurement on a target without OpenFlow.
pub const LEGACY: &str = "legacy";

/// Prefix of its metric names.
pub const LEGACY_PREFIX: &str = "legacy_";

/// Report values of tables II and III.
pub const DELAYS: &[Chart] = &[
    Chart::values(
        "Mean round-trip time by match type",
        &[
            "port_rtt_ns_mean",
            "mac_rtt_ns_mean",
            "ip_rtt_ns_mean",
            "udp_port_rtt_ns_mean",
            "exact_rtt_ns_mean",
            "legacy_rtt_ns_mean",
        ],
        &[],
    ),
    Chart::values(
        "Mean round-trip time with one field",
        &[
            "eth_src_rtt_ns_mean",
            "eth_dst_rtt_ns_mean",
            "eth_type_rtt_ns_mean",
            "vlan_vid_rtt_ns_mean",
            "vlan_pcp_rtt_ns_mean",
            "ip_dscp_rtt_ns_mean",
            "ip_ecn_rtt_ns_mean",
            "ip_proto_rtt_ns_mean",
            "ipv4_src_rtt_ns_mean",
            "ipv4_dst_rtt_ns_mean",
            "udp_src_rtt_ns_mean",
            "udp_dst_rtt_ns_mean",
        ],
        &[],
    ),
];

/// Report values of table II.
pub const TAKEN: &[Chart] = &[
    Chart::values(
        "Returned packets by match type",
        &[
            "port_returned_ratio",
            "mac_returned_ratio",
            "ip_returned_ratio",
            "udp_port_returned_ratio",
            "exact_returned_ratio",
        ],
        &[
            "port_refused_count",
            "mac_refused_count",
            "ip_refused_count",
            "udp_port_refused_count",
            "exact_refused_count",
            "legacy_returned_ratio",
        ],
    ),
    Chart::values(
        "Returned packets by single field",
        &[
            "eth_src_returned_ratio",
            "eth_dst_returned_ratio",
            "eth_type_returned_ratio",
            "vlan_vid_returned_ratio",
            "vlan_pcp_returned_ratio",
            "ip_dscp_returned_ratio",
            "ip_ecn_returned_ratio",
            "ip_proto_returned_ratio",
            "ipv4_src_returned_ratio",
            "ipv4_dst_returned_ratio",
            "udp_src_returned_ratio",
            "udp_dst_returned_ratio",
        ],
        &[
            "vlan_vid_refused_count",
            "vlan_pcp_refused_count",
            "ip_dscp_refused_count",
            "ip_ecn_refused_count",
        ],
    ),
];

/// Report values of figure 2.
pub const IP: &[Chart] = &[
    logarithmic(Chart::series("Round-trip times with an IP match", &["ip_share", "legacy_share"])),
    spread_of(
        &["ip_rtt_ns_p50", "legacy_rtt_ns_p50"],
        &["ip_rtt_ns_p90", "ip_rtt_ns_p99", "ip_rtt_ns_max"],
    ),
];

/// Report values of figure 3.
pub const EXACT: &[Chart] = &[
    logarithmic(Chart::series(
        "Round-trip times with an exact match",
        &["exact_share", "legacy_share"],
    )),
    spread_of(
        &["exact_rtt_ns_p50", "legacy_rtt_ns_p50"],
        &["exact_rtt_ns_p90", "exact_rtt_ns_p99", "exact_rtt_ns_max"],
    ),
];

/// Report values of figure 4.
pub const SIZED: &[Chart] = &[
    logarithmic(Chart::series(
        "Round-trip times of the largest packets with an exact match",
        &["exact_share", "legacy_share"],
    )),
    Chart::values(
        "Mean round-trip time by size",
        &["exact_rtt_ns_mean", "legacy_rtt_ns_mean"],
        &["exact_rtt_ns_p50", "exact_rtt_ns_p99", "exact_returned_ratio"],
    ),
];

/// Report values of figure 5.
pub const JITTER: &[Chart] = &[
    logarithmic(Chart::series("Jitter", &["exact_jitter_share", "legacy_jitter_share"])),
    spread_of(
        &["exact_jitter_ns_p50", "legacy_jitter_ns_p50"],
        &[
            "exact_jitter_ns_mean",
            "exact_jitter_ns_p90",
            "exact_jitter_ns_p99",
            "exact_jitter_ns_max",
        ],
    ),
];

const fn logarithmic(show: Chart) -> Chart {
    Chart { is_logarithmic: true, ..show }
}

const fn spread_of(drawn: &'static [&'static str], beside: &'static [&'static str]) -> Chart {
    Chart::values("Percentiles of the distribution", drawn, beside)
}

/// Returns the match of a type for packets with these headers and this input port.
fn matching(word: &str, headers: &Headers, port_in: u16) -> Match {
    let any = Match::ANY;
    let ip = |matching: Match| matching.with(Field::EthType, IPV4);
    let udp = |matching: Match| ip(matching).with(Field::IpProto, UDP);
    let (source, destination) = (headers.ip_source.to_bits(), headers.ip_destination.to_bits());
    match word {
        "mac" => any
            .with_mac(Field::EthSrc, headers.mac_source)
            .with_mac(Field::EthDst, headers.mac_destination),
        "ip" => ip(any).with(Field::Ipv4Src, source).with(Field::Ipv4Dst, destination),
        "udp_port" => udp(any)
            .with(Field::Ipv4Src, source)
            .with(Field::Ipv4Dst, destination)
            .with(Field::UdpSrc, headers.port_source)
            .with(Field::UdpDst, headers.port_destination),
        "exact" => exact(headers, port_in),
        "eth_src" => any.with_mac(Field::EthSrc, headers.mac_source),
        "eth_dst" => any.with_mac(Field::EthDst, headers.mac_destination),
        "eth_type" => ip(any),
        "vlan_vid" => any.with_vlan(headers.vlans[0].id),
        "vlan_pcp" => {
            any.with_vlan(headers.vlans[0].id).with(Field::VlanPcp, headers.vlans[0].priority)
        }
        "ip_dscp" => ip(any).with(Field::IpDscp, headers.tos >> 2),
        "ip_ecn" => ip(any).with(Field::IpEcn, headers.tos & 3),
        "ip_proto" => udp(any),
        "ipv4_src" => ip(any).with(Field::Ipv4Src, source),
        "ipv4_dst" => ip(any).with(Field::Ipv4Dst, destination),
        "udp_src" => udp(any).with(Field::UdpSrc, headers.port_source),
        "udp_dst" => udp(any).with(Field::UdpDst, headers.port_destination),
        _ => any.with(Field::InPort, port_in),
    }
}

/// Returns the headers that a type needs in both directions, so that they differ in the matched fields.
fn headers(word: &str, there: &Headers) -> [Headers; 2] {
    let (mut there, mut back) = (there.clone(), answering(there));
    let tag = |id: u16, priority: u8| vec![Vlan { id, priority, ..Vlan::new(0) }];
    match word {
        "vlan_vid" => (there.vlans, back.vlans) = (tag(5, 0), tag(6, 0)),
        "vlan_pcp" => (there.vlans, back.vlans) = (tag(5, 3), tag(5, 4)),
        "ip_dscp" => (there.tos, back.tos) = (0x28, 0x48),
        "ip_ecn" => (there.tos, back.tos) = (1, 2),
        _ => {}
    }
    [there, back]
}

/// Returns the packets of a match type, and its entries.
pub fn typed(context: &Context, word: &str, frame_bytes: usize) -> ([Stream; 2], Vec<Message>) {
    let mut ways = ways(context, frame_bytes);
    let headers = headers(word, &ways[0].headers);
    let by_port = |port: u16| matching("port", &headers[1], port);
    let matches = match word {
        // Packets of both directions look the same to such an entry.
        "eth_type" | "ip_proto" => [matching(word, &headers[0], PORT_IN), by_port(PORT_OUT)],
        _ => [matching(word, &headers[0], PORT_IN), matching(word, &headers[1], PORT_OUT)],
    };
    let mut rules = rules(matches);
    if let (true, Some(Message::FlowMod(back))) =
        (matches!(word, "eth_type" | "ip_proto"), rules.last_mut())
    {
        back.priority += 1;
    }
    for (way, headers) in ways.iter_mut().zip(headers) {
        way.headers = headers;
        way.frame_bytes = frame_bytes.max(way.frame_bytes_min());
    }
    (ways, rules)
}

/// Returns the packets for entries that match on the port in each direction, and those entries.
pub fn by_port(context: &Context, frame_bytes: usize) -> ([Stream; 2], Vec<Message>) {
    typed(context, "port", frame_bytes)
}

/// Creates the method of tables II and III, and of the figures that show the same trials.
pub fn types(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let size = own.integer(&SIZE) as usize;
    let x = size as f64;
    let mut spots = Vec::new();
    if context.technology != Technology::OpenFlow {
        let trip = trip(context, LEGACY, ways(context, size), None);
        spots.extend(loops(context, x, LEGACY_PREFIX, trip, &OPEN_PPS));
        return Box::new(RepeatedModule::new(context, AXIS, spots));
    }
    for word in own.words(&TYPES) {
        let place = WORDS
            .iter()
            .position(|it| *it == word)
            .expect("parameter words are validated when they are set");
        let (ways, rules) = typed(context, word, size);
        let trip = trip(context, WORDS[place], ways, Some(rules));
        match place < PUBLISHED {
            true => spots.extend(loops(context, x, PREFIXES[place], trip, &OPEN_PPS)),
            false => spots.push(spot(context, x, PREFIXES[place], trip)),
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

/// Creates the method of figure 4: by frame size and, for the other reading of the study, by UDP payload size.
pub fn sizes(context: &Context) -> Box<dyn Method> {
    let sizes = context.frames(&FRAMES_READ);
    let at = |bytes: &u16| {
        let size = usize::from(*bytes);
        let (name, prefix, ways, rules) = match context.technology {
            Technology::OpenFlow => {
                let (ways, rules) = typed(context, "exact", size);
                ("exact", "exact_", ways, Some(rules))
            }
            _ => (LEGACY, LEGACY_PREFIX, ways(context, size), None),
        };
        // The report draws the distribution of the study's largest size.
        let name = if SIZES.contains(bytes) { name } else { "other_size" };
        let trip = trip(context, name, ways, rules);
        loops(context, f64::from(*bytes), prefix, trip, &OPEN_BESIDE)
    };
    let spots = sizes.iter().flat_map(at).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_type_has_its_prefix() {
        for (word, prefix) in WORDS.iter().zip(PREFIXES) {
            assert_eq!(format!("{word}_"), **prefix);
        }
        assert!(TYPES.takes.admits(TYPES.default));
    }
}
