//! Tests that tcpdump decodes our messages; it knows ForCES within SCTP by the payload protocol.
//!
//! A capture file has messages of every type in SCTP, typical ones and random ones. tcpdump must
//! name each operation, path and result without a complaint. Known faults of tcpdump (4.99) are
//! listed; any other complaint fails the test.

#![allow(clippy::unwrap_used, reason = "a test")]

mod need;

use std::path::Path;
use std::process::Command;

use forces::library;
use forces::model::Target;
use forces::wire::*;

/// Returns the port and payload protocol of a message's channel (RFC 5811 section 4.2.1).
fn channel(kind: MessageKind) -> (u16, u32) {
    match kind {
        MessageKind::EventNotification => (6705, 22),
        MessageKind::PacketRedirect | MessageKind::Heartbeat => (6706, 23),
        _ => (6704, 21),
    }
}

/// Returns an Ethernet frame with an SCTP chunk that contains a message.
fn frame(message: &Message) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(message, &mut payload).unwrap();
    let (port, protocol) = channel(message.body.kind());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((20 + 12 + 16 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 132, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    let words = frame[14..34].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum = words.sum::<u32>();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    frame.extend([0, 3]);
    frame.extend((16 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    frame.extend(protocol.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns tcpdump's output for each message.
fn judge(name: &str, messages: &[Message]) -> Vec<String> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0x4_0000, 1] {
        file.extend(word.to_le_bytes());
    }
    for (place, message) in messages.iter().enumerate() {
        let frame = frame(message);
        for word in [place as u32, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).unwrap();
    let output =
        Command::new("tcpdump").args(["-n", "-vvv", "-t", "-r"]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match line.starts_with("IP ") {
            true => all.push(line.to_string()),
            false => all.last_mut().unwrap().push_str(&format!("\n{line}")),
        }
    }
    assert_eq!(all.len(), messages.len());
    all
}

/// Words in tcpdump's output that indicate a complaint.
const COMPLAINTS: [&str; 11] = [
    "invalid",
    "illegal",
    "bogus",
    "bad",
    "missing",
    "truncated",
    "error",
    "[|",
    "unknown",
    "too long",
    " < ",
];

/// Returns whether the line is the name of a result, which may contain such words.
fn is_no_complaint(line: &str) -> bool {
    line.trim_start().starts_with("Result: ")
}

/// A message, the expected output of tcpdump, and a known complaint.
struct Case {
    message: Message,
    expected: Vec<String>,
    known: &'static str,
}

fn case(body: Body, expected: &[&str]) -> Case {
    let flags = Flags { ack: Ack::Always, priority: 4, mode: Mode::AllOrNone, ..Flags::default() };
    let (source, destination) = match body.kind() {
        MessageKind::Config | MessageKind::Query | MessageKind::AssociationSetupResponse => {
            (Id(0x4000_0001), Id(2))
        }
        _ => (Id(2), Id(0x4000_0001)),
    };
    let header = Header { source, destination, correlator: 0x0123_4567_89ab_cdef, flags };
    let expected = expected.iter().map(ToString::to_string).collect();
    Case { message: Message { header, body }, expected, known: "" }
}

fn known(mut case: Case, complaint: &'static str) -> Case {
    case.known = complaint;
    case
}

/// Returns an operation in a message that may have it.
fn operation(kind: OperationKind, class: u32, paths: Vec<PathData>, expected: &[&str]) -> Case {
    let selects = vec![Select::one(class, 1, Operation::on(kind, paths))];
    let make = [
        (MessageKind::Config, Body::Config as fn(Vec<Select>) -> Body),
        (MessageKind::ConfigResponse, Body::ConfigResponse),
        (MessageKind::Query, Body::Query),
        (MessageKind::QueryResponse, Body::QueryResponse),
        (MessageKind::EventNotification, Body::EventNotification),
    ];
    let (_, make) = make.iter().find(|(it, _)| it.operations().contains(&kind)).unwrap();
    case(make(selects), expected)
}

/// Returns messages with a component value of the shipped libraries, complete and in parts, as SET
/// and GET.
fn values(class: &str, path: &str, text: &str) -> Vec<Case> {
    let catalog = library::standard();
    let class = catalog.class(class).unwrap();
    let ids = class.path(path).unwrap();
    let Ok(Target::Value { data_type, .. }) = class.target(&ids) else { panic!("{path}") };
    let value = data_type.parse(text).unwrap();
    let count = format!("ID count {}", ids.len());
    let mut all = Vec::new();
    for (data, tlv) in [
        (data::write(data_type, &value).unwrap(), "FULLDATA TLV"),
        (data::write_sparse(data_type, &value).unwrap(), "SPARSEDATA TLV"),
    ] {
        let tlv = if matches!(data, Data::Full(_)) { "FULLDATA TLV" } else { tlv };
        for (kind, word) in [
            (OperationKind::Set, "Set(0x1)"),
            (OperationKind::GetResponse, "GetResp(0x9)"),
            (OperationKind::Report, "Report(0xb)"),
        ] {
            let paths = vec![PathData::with(ids.clone(), data.clone())];
            all.push(operation(kind, class.id, paths, &[word, &count, tlv]));
        }
    }
    all
}

fn cases() -> Vec<Case> {
    use OperationKind as Kind;
    let mut all = vec![
        case(Body::AssociationSetup(Vec::new()), &["Association Setup"]),
        case(Body::AssociationSetupResponse(SetupResult::SUCCESS), &["Success (0)"]),
        case(Body::AssociationSetupResponse(SetupResult::DENIED), &["permission denied (2)"]),
        case(Body::AssociationTeardown(TeardownReason::NORMAL), &["Normal Teardown"]),
        case(Body::AssociationTeardown(TeardownReason::HEARTBEATS), &["Loss of Heartbeats"]),
        case(Body::Heartbeat, &["HeartBeat", "AlwaysACK", "execute-all-or-none"]),
        operation(Kind::Get, 2, vec![PathData::named([7])], &["Get(0x7)", "ID#01: 7"]),
        operation(
            Kind::GetProperties,
            2,
            vec![PathData::named([61, 1])],
            &["GetProp(0x8)", "ID#02: 1"],
        ),
        operation(Kind::Delete, 10, vec![PathData::named([1, 7])], &["Del(0x5)", "ID count 2"]),
    ];
    for code in 0..=0x17 {
        let outcome = Data::Outcome(Outcome::Plain(code));
        let paths = vec![PathData::with([1], outcome)];
        let word = format!("(code 0x{code:x})");
        for kind in [Kind::SetResponse, Kind::DeleteResponse, Kind::SetPropertiesResponse] {
            all.push(operation(kind, 10, paths.clone(), &["RESULT TLV", &word]));
        }
    }
    all.extend(values("FEPO", "FEHI", "500"));
    all.extend(values("FEObject", "FEName", "a name"));
    all.extend(values("FEObject", "LFBSelectors", "[{1=3, 2=1}, {1=4, 2=1}]"));
    all.extend(values("FEObject", "LFBSelectors[4]", "{1=3, 2=1}"));
    all.extend(values(
        "FEObject",
        "LFBTopology[0]",
        "{1={1=3, 2=1}, 2=\"EtherPHYOut\", 3=0, 4={1=4, 2=1}, 5=\"EtherPktsIn\", 6=0}",
    ));
    all.extend(values("IPv4UcastLPM", "IPv4PrefixTable[7].IPv4Address", "10.2.0.0"));
    all.extend(values(
        "IPv6UcastLPM",
        "IPv6PrefixTable",
        "[1={1=2001:db8::, 2=32, 3=False, 4=False, 5=0, 6=9}]",
    ));
    let rows = (0..3).map(|row| PathData::named([row])).collect();
    let nested = PathData::with([1], Data::Paths(rows));
    all.push(operation(Kind::Get, 10, vec![nested], &["ID#01: 2"]));
    let selector = Some(Selector::Range { first: 10, last: 20 });
    let range = PathData { ids: vec![1], selector, data: Data::None };
    all.push(operation(Kind::Get, 10, vec![range], &["Table range: [10,20]"]));
    let packet = Some((0..61).collect());
    let metadata = vec![(1, vec![0, 0, 0, 5]), (13, vec![0, 0, 0, 6])];
    let redirect = Redirect { metadata, packet };
    let words =
        ["Packet Redirect", "METADATA", "MetaID 0x1", "0000 0005", "Redirect Data length 61"];
    all.push(case(Body::PacketRedirect(vec![redirect]), &words));
    // Known faults of tcpdump.
    for kind in [Kind::Commit, Kind::Complete] {
        // tcpdump expects contents, but RFC 5810 section 7.6.1 defines none.
        all.push(known(
            operation(kind, 1, Vec::new(), &[]),
            "truncated lfb selector: 0 bytes missing",
        ));
    }
    let selector = Some(Selector::Key { key: 1, content: vec![0, 0, 0, 7] });
    let keyed = PathData { ids: vec![2], selector, data: Data::None };
    // tcpdump reads a key's ID as the type and length of its content.
    all.push(known(
        operation(Kind::Get, 16, vec![keyed], &["ID#01: 2"]),
        "key content length 1 < 4",
    ));
    let extended = Data::Outcome(Outcome::of(ResultCode::BUSY, true));
    let paths = vec![PathData::with([1], extended)];
    all.push(known(
        operation(Kind::SetResponse, 10, paths, &[]),
        "Invalid path data content type 0x118",
    ));
    all
}

#[test]
fn tcpdump_decodes_every_operation() {
    if !need::is_there("tcpdump") {
        return;
    }
    let cases = cases();
    let messages: Vec<_> = cases.iter().map(|case| case.message.clone()).collect();
    for (case, text) in cases.iter().zip(judge("cases.pcap", &messages)) {
        for word in &case.expected {
            assert!(text.contains(word.as_str()), "{word:?}: {:?}\n{text}", case.message);
        }
        let complaints: Vec<_> = text
            .lines()
            .filter(|line| COMPLAINTS.iter().any(|word| line.to_lowercase().contains(word)))
            .filter(|line| !is_no_complaint(line))
            .collect();
        match case.known {
            "" => assert!(complaints.is_empty(), "{complaints:?}: {:?}\n{text}", case.message),
            // Remove a fault from the list once tcpdump no longer has it.
            known => assert!(
                complaints.iter().any(|line| line.contains(known)),
                "{known:?} is no fault any more: {complaints:?}\n{text}"
            ),
        }
    }
}
