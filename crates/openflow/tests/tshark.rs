//! Tests that tshark decodes our messages.
//!
//! A capture file has several hundred messages of every type, one TCP segment each. tshark must
//! find the type of each message, and must report nothing except parts that it does not dissect.

#![allow(clippy::unwrap_used, reason = "a test")]

mod capture;
mod generate;
mod need;

use std::path::Path;

use capture::{capture, tshark};
use openflow::codec::encode;
use openflow::model::matching::bits_mac;
use openflow::model::{Action, ErrorMessage, Field, FlowMod, Instruction, Message, PacketOut};
use openflow::version::{ErrorCode, MessageKind, Version};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Total number of messages; those after one error of every code are random.
const RANDOM_MESSAGES: usize = 600;

/// Texts that tshark prints for parts that it does not dissect.
const NOT_READ: [&str; 2] = ["Message data not dissected yet", "Action not dissected yet"];

fn messages() -> Vec<Message> {
    let error = |&code| Message::Error(ErrorMessage { code, data: vec![1, 0, 0, 8, 0, 0, 0, 0] });
    let known = ErrorCode::ALL.iter().filter(|code| code.to_wire(Version::V1_0).is_some());
    let mut all: Vec<Message> = known.map(error).collect();
    let mut runner = TestRunner::deterministic();
    let strategy = generate::message();
    while all.len() < RANDOM_MESSAGES {
        let mut message = strategy.new_tree(&mut runner).unwrap().current();
        suit_tshark(&mut message);
        all.push(message);
    }
    all
}

/// Modifies a message so that tshark (4.0) can decode it.
///
/// - Frames in messages are replaced by one that tshark does not complain about.
/// - A flow-mod has at least one action. tshark reads one even if there is none, past the end; also
///   in the deletions that ovs-ofctl sends.
/// - A packet-out has exactly one action. tshark takes a second one for the frame.
fn suit_tshark(message: &mut Message) {
    let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], &[0; 46]].concat();
    match message {
        Message::PacketIn(packet) => packet.data = frame,
        Message::PacketOut(PacketOut { actions, data, .. }) => {
            *data = frame;
            *actions = vec![Action::output(1)];
        }
        Message::FlowMod(change) => {
            let mut actions = change.applied().to_vec();
            actions.push(Action::output(1));
            change.instructions = Instruction::apply(actions);
        }
        _ => {}
    }
}

fn encoded(xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(Version::V1_0, xid, message, &mut bytes).unwrap();
    bytes
}

#[test]
fn tshark_decodes_every_message() {
    if !need::is_there("tshark") {
        return;
    }
    let messages = messages();
    for kind in MessageKind::of(Version::V1_0) {
        assert!(messages.iter().any(|message| message.kind() == kind), "no {kind} among them");
    }
    let payloads: Vec<_> =
        messages.iter().enumerate().map(|(xid, message)| encoded(xid as u32, message)).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_message.pcap");
    std::fs::write(&file, capture(&payloads)).unwrap();
    let fields = ["openflow_1_0.type", "openflow.xid", "_ws.malformed", "_ws.expert.message"];
    let lines = tshark(&file, &fields);
    assert_eq!(lines.len(), messages.len());
    for ((line, message), xid) in lines.iter().zip(&messages).zip(0..) {
        let code = message.kind().code(Version::V1_0).unwrap();
        let remark = line.rsplit('\t').next().unwrap();
        assert!(remark.is_empty() || NOT_READ.contains(&remark), "{line}: {message}");
        assert_eq!(*line, format!("{code}\t{xid}\t\t{remark}"), "{message}");
    }
}

#[test]
fn tshark_finds_the_same_values_in_flow_mods() {
    if !need::is_there("tshark") {
        return;
    }
    let is_flow_mod = |message: &Message| message.kind() == MessageKind::FlowMod;
    let messages: Vec<Message> = messages().into_iter().filter(is_flow_mod).collect();
    let payloads: Vec<_> = messages.iter().map(|message| encoded(1, message)).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flow_mods.pcap");
    std::fs::write(&file, capture(&payloads)).unwrap();
    let fields = [
        "openflow.cookie",
        "openflow.priority",
        "openflow.idle_timeout",
        "openflow.hard_timeout",
        "openflow.command",
        "openflow.in_port",
        "openflow.eth_src",
        "openflow.dl_vlan_pcp",
        "openflow.ofp_match.tos",
        "openflow.ofp_match.source_addr",
        "openflow.ofp_match.dest_port",
    ];
    let lines = tshark(&file, &fields);
    assert!(lines.len() > 30);
    for (line, message) in lines.iter().zip(&messages) {
        let Message::FlowMod(change) = message else { unreachable!("only flow-mods are included") };
        assert_eq!(*line, as_tshark_prints(change), "{message}");
    }
}

fn as_tshark_prints(change: &FlowMod) -> String {
    let matching = &change.matching;
    let first = |fields: &[Field]| {
        let value = fields.iter().find_map(|&field| matching.get(field));
        value.map_or(0, |(value, _)| value as u64)
    };
    let mac = bits_mac(first(&[Field::EthSrc]).into());
    let mac: Vec<_> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let ip = std::net::Ipv4Addr::from_bits(first(&[Field::Ipv4Src, Field::ArpSpa]) as u32);
    let ports = [Field::TcpDst, Field::UdpDst, Field::SctpDst, Field::Icmpv4Code];
    [
        format!("{:#018x}", change.cookie),
        change.priority.to_string(),
        change.idle_timeout_s.to_string(),
        change.hard_timeout_s.to_string(),
        (change.command as u16).to_string(),
        (first(&[Field::InPort]) as u16).to_string(),
        mac.join(":"),
        first(&[Field::VlanPcp]).to_string(),
        (first(&[Field::IpDscp]) << 2).to_string(),
        ip.to_string(),
        first(&ports).to_string(),
    ]
    .join("\t")
}
