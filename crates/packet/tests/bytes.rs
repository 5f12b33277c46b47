//! Tests with frames of other implementations, compared with the output of another decoder.
//!
//! Each file in `tests/bytes/` contains one frame: its source (`origin`), the fields decoded by
//! tshark 4.0.17 (`tshark`), our text form (`text`), and its bytes (`hex`). Views must agree with
//! tshark field by field, and checksums with those of the sender. Strict headers must write the
//! bytes that they parsed. `UPDATE=1 cargo test -p packet --test bytes` rewrites the `text` lines.

use std::path::{Path, PathBuf};

use packet::header::{arp, ethernet, icmp, icmpv6, ipv4, ipv6, sctp, tcp, udp, vlan};
use packet::parse::{Layers, Network, Packet, Transport};
use packet::show::Show;

struct Case {
    name: String,
    path: PathBuf,
    fields: Vec<(String, String)>,
    text: String,
    bytes: Vec<u8>,
}

#[test]
fn parsed_fields_equal_those_of_tshark() {
    let cases = cases();
    assert!(cases.len() >= 36, "only {} foreign frames found", cases.len());
    for case in &cases {
        check_fields(case);
        check_text(case);
    }
}

#[test]
fn frames_pass_strict_parsing_and_round_trip() {
    for case in cases() {
        let packet = Packet::parse(&case.bytes);
        let packet = packet.unwrap_or_else(|fault| panic!("{}: {fault}", case.name));
        packet.verify_checksums().unwrap_or_else(|fault| panic!("{}: {fault}", case.name));
        write_back(&case.name, &packet);
    }
}

#[test]
fn checksums_cover_every_byte() {
    for case in cases() {
        let layers = Layers::of(&case.bytes);
        let whole = layers.fragment == packet::parse::Fragment::Whole;
        if layers.transport == Transport::None || !whole || case.name == "udp-no-checksum" {
            continue;
        }
        for at in usize::from(layers.transport_at)..usize::from(layers.payload_end) {
            let mut bytes = case.bytes.clone();
            bytes[at] ^= 0x5a;
            let packet = Packet::of(&bytes);
            let noticed = packet.layers.fault.is_some() || packet.verify_checksums().is_err();
            assert!(noticed, "{}: the change of byte {at} was not detected", case.name);
        }
    }
}

#[test]
fn computed_checksums_equal_those_of_the_sender() {
    for case in cases() {
        let mut bytes = case.bytes.clone();
        let layers = Layers::of(&bytes);
        let at = usize::from(layers.transport_at);
        let field = match layers.transport {
            Transport::Udp => at + udp::CHECKSUM_AT..at + 8,
            Transport::Tcp => at + tcp::CHECKSUM_AT..at + 18,
            Transport::Icmp | Transport::Icmpv6 => at + 2..at + 4,
            Transport::Sctp => at + sctp::CHECKSUM_AT..at + 12,
            Transport::None => continue,
        };
        bytes[field].fill(0x77);
        if packet::parse::set_transport_checksum(&mut bytes) && case.name != "udp-no-checksum" {
            assert_eq!(bytes, case.bytes, "{}", case.name);
        }
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bytes");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("a folder entry").path())
        .collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let all = std::fs::read_to_string(&path).expect("a text file");
    let part = |key: &str| -> Vec<&str> {
        all.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).collect()
    };
    let fields = part("tshark").join(" ");
    let pairs = fields.split_whitespace().map(|pair| pair.split_once('=').expect("field=value"));
    let hex = part("hex").concat();
    assert!(!part("origin").is_empty() && !hex.is_empty(), "{path:?} lacks origin or hex");
    Case {
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        fields: pairs.map(|(field, value)| (field.into(), value.into())).collect(),
        text: part("text").concat(),
        bytes: (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"))
            .collect(),
        path,
    }
}

fn check_text(case: &Case) {
    let text = Show(&case.bytes).to_string();
    if std::env::var_os("UPDATE").is_some() && text != case.text {
        let all = std::fs::read_to_string(&case.path).expect("a text file");
        let new = all.replace(&format!("text: {}\n", case.text), &format!("text: {text}\n"));
        std::fs::write(&case.path, new).expect("the file can be written");
    } else {
        assert_eq!(text, case.text, "{}", case.name);
    }
}

fn check_fields(case: &Case) {
    let packet = Packet::of(&case.bytes);
    assert!(case.fields.len() >= 3, "{}: too few fields", case.name);
    for (field, value) in &case.fields {
        let ours = ours(&packet, field)
            .unwrap_or_else(|| panic!("{}: no {field} found, tshark finds {value}", case.name));
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse::<u64>().ok(),
        };
        let same = &ours == value || (number(value).is_some() && number(value) == number(&ours));
        assert!(same, "{}: {field} is {ours}, of tshark {value}", case.name);
    }
}

/// Returns our value of the tshark field `field`.
fn ours(packet: &Packet<'_>, field: &str) -> Option<String> {
    let (protocol, name) = field.split_once('.').expect("protocol.field");
    match protocol {
        "eth" => {
            let view = packet.ethernet()?;
            Some(match name {
                "dst" => ethernet::ShowMac(view.destination()).to_string(),
                "src" => ethernet::ShowMac(view.source()).to_string(),
                _ => view.type_or_length().to_string(),
            })
        }
        "vlan" => {
            let inner = (0..packet.layers.tags)
                .find(|&depth| packet.bytes()[12 + 4 * usize::from(depth)] == 0x81);
            let view = packet.vlan(inner?)?;
            Some(if name == "id" { view.vid() } else { view.priority().into() }.to_string())
        }
        "arp" => ours_arp(packet.arp()?, name),
        "ip" => ours_ipv4(packet.ipv4()?, name),
        "ipv6" => ours_ipv6(packet.ipv6()?, name),
        "icmp" => ours_icmp(packet.icmp()?, name),
        "icmpv6" => ours_icmpv6(packet.icmpv6()?, name),
        "udp" => ours_udp(packet.udp()?, name),
        "tcp" => ours_tcp(packet.tcp()?, name),
        "sctp" => ours_sctp(packet.sctp()?, name),
        _ => None,
    }
}

fn ours_arp(view: arp::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "opcode" => view.operation().to_string(),
        "src.proto_ipv4" => view.sender_ip().to_string(),
        "dst.proto_ipv4" => view.target_ip().to_string(),
        "src.hw_mac" => ethernet::ShowMac(view.sender_mac()).to_string(),
        _ => return None,
    })
}

fn ours_ipv4(view: ipv4::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "src" => view.source().to_string(),
        "dst" => view.destination().to_string(),
        "ttl" => view.ttl().to_string(),
        "proto" => view.protocol().to_string(),
        "len" => view.total_length().to_string(),
        "id" => view.identification().to_string(),
        "dsfield" => view.tos().to_string(),
        "frag_offset" => (view.fragment_offset() / 8).to_string(),
        "flags.mf" => u8::from(view.more_fragments()).to_string(),
        "flags.df" => u8::from(view.dont_fragment()).to_string(),
        "hdr_len" => view.header_length().to_string(),
        _ => return None,
    })
}

fn ours_ipv6(view: ipv6::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "src" => view.source().to_string(),
        "dst" => view.destination().to_string(),
        "hlim" => view.hop_limit().to_string(),
        "plen" => view.payload_length().to_string(),
        "flow" => view.flow_label().to_string(),
        "tclass" => view.traffic_class().to_string(),
        _ => return None,
    })
}

fn ours_icmp(view: icmp::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "type" => view.kind().to_string(),
        "code" => view.code().to_string(),
        "checksum" => view.checksum().to_string(),
        _ => return None,
    })
}

fn ours_icmpv6(view: icmpv6::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "type" => view.kind().to_string(),
        "code" => view.code().to_string(),
        "checksum" => view.checksum().to_string(),
        "nd.ns.target_address" | "nd.na.target_address" => view.target()?.to_string(),
        _ => return None,
    })
}

fn ours_udp(view: udp::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "srcport" => view.source_port().to_string(),
        "dstport" => view.destination_port().to_string(),
        "length" => view.length().to_string(),
        "checksum" => view.checksum().to_string(),
        _ => return None,
    })
}

fn ours_tcp(view: tcp::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "srcport" => view.source_port().to_string(),
        "dstport" => view.destination_port().to_string(),
        "seq_raw" => view.sequence().to_string(),
        "ack_raw" => view.acknowledgement().to_string(),
        "flags" => view.flags().to_string(),
        "window_size_value" => view.window().to_string(),
        "checksum" => view.checksum().to_string(),
        "hdr_len" => view.header_length().to_string(),
        _ => return None,
    })
}

fn ours_sctp(view: sctp::View<'_>, name: &str) -> Option<String> {
    Some(match name {
        "srcport" => view.source_port().to_string(),
        "dstport" => view.destination_port().to_string(),
        "verification_tag" => view.verification_tag().to_string(),
        // tshark prints the four bytes in transmission order.
        "checksum" => view.checksum().swap_bytes().to_string(),
        _ => return None,
    })
}

/// Parses every header of the frame strictly and writes it. The bytes must be equal.
fn write_back(name: &str, packet: &Packet<'_>) {
    let (layers, bytes) = (packet.layers, packet.bytes());
    let same = |at: usize, (out, length): (Vec<u8>, usize)| {
        assert_eq!(out, bytes[at..at + length], "{name}: header at {at}");
    };
    let (header, length) = ethernet::Header::parse(bytes).expect("checked");
    same(0, (emit(|out| header.emit(out)), length));
    for depth in 0..usize::from(layers.tags) {
        let (header, length) = vlan::Header::parse(&bytes[14 + 4 * depth..]).expect("a tag");
        same(14 + 4 * depth, (emit(|out| header.emit(out)), length));
    }
    let at = usize::from(layers.network_at);
    same(at, network_back(packet, &bytes[at..]));
    if let Some(inside) = packet.transport_bytes() {
        let at = usize::from(layers.transport_at);
        same(at, transport_back(packet, inside));
    }
}

fn network_back(packet: &Packet<'_>, bytes: &[u8]) -> (Vec<u8>, usize) {
    match packet.layers.network {
        Network::None => (Vec::new(), 0),
        Network::Arp => {
            let (header, length) = arp::Header::parse(bytes).expect("arp");
            (emit(|out| header.emit(out)), length)
        }
        Network::Ipv4 => {
            let (header, length) = ipv4::Header::parse(bytes).expect("ipv4");
            (emit(|out| header.emit(out)), length)
        }
        Network::Ipv6 => {
            let (header, length) = ipv6::Header::parse(bytes).expect("ipv6");
            (emit(|out| header.emit(out)), length)
        }
    }
}

fn transport_back(packet: &Packet<'_>, bytes: &[u8]) -> (Vec<u8>, usize) {
    match packet.layers.transport {
        Transport::Udp => {
            // The datagram length in a first fragment exceeds the fragment.
            let (header, length) = udp::Header::parse(bytes).expect("udp");
            (emit(|out| header.emit(out)), length)
        }
        Transport::Tcp => {
            let (header, length) = tcp::Header::parse(bytes).expect("tcp");
            (emit(|out| header.emit(out)), length)
        }
        Transport::Sctp => {
            let (header, length) = sctp::Header::parse(bytes).expect("sctp");
            (emit(|out| header.emit(out)), length)
        }
        Transport::Icmp if packet.layers.fragment == packet::parse::Fragment::Whole => {
            let (header, length) = icmp::Header::parse(bytes).expect("icmp");
            (emit(|out| header.emit(out)), length)
        }
        Transport::Icmpv6 => {
            let (header, length) = icmpv6::Header::parse(bytes).expect("icmpv6");
            (emit(|out| header.emit(out)), length)
        }
        Transport::Icmp | Transport::None => (Vec::new(), 0),
    }
}

fn emit(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}
