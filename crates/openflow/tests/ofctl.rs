//! Tests that Open vSwitch decodes our messages.
//!
//! `ovs-ofctl ofp-parse` prints a file with several hundred messages of every type. Each message
//! must appear with its name, transaction ID and numbers, and without a decoding error.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;
mod need;

use std::path::Path;
use std::process::Command;

use openflow::codec::encode;
use openflow::model::*;
use openflow::version::{MessageKind, Version};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Number of messages.
const MESSAGES: usize = 600;

/// Modifies a message so that Open vSwitch accepts its contents; returns false if that is
/// impossible.
fn suit_a_switch(message: &mut Message) -> bool {
    match message {
        Message::Experimenter(_)
        | Message::MultipartRequest(MultipartRequest {
            body: MultipartRequestBody::Experimenter(_),
            ..
        })
        | Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::Experimenter(_),
            ..
        }) => return false,
        Message::FlowMod(change) => {
            change.flags = change.flags.without(FlowModFlags::EMERGENCY);
            suit_instructions(&mut change.instructions);
        }
        Message::PacketOut(packet) => {
            packet.in_port = packet.in_port.min(0xfeff);
            suit_actions(&mut packet.actions);
        }
        Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::Flow(rows), ..
        }) => {
            rows.iter_mut().for_each(|row| suit_instructions(&mut row.instructions));
        }
        Message::QueueGetConfigRequest(port) => *port = (*port).min(0xfeff),
        Message::QueueGetConfigReply(config) => {
            let properties = config.queues.iter_mut().flat_map(|queue| &mut queue.properties);
            for property in properties {
                if let QueueProperty::Other { body, .. } = property {
                    body.truncate(body.len() / 8 * 8);
                }
            }
        }
        Message::Hello(hello) => hello.versions = None,
        _ => {}
    }
    true
}

fn suit_instructions(instructions: &mut Vec<Instruction>) {
    for instruction in instructions {
        if let Instruction::ApplyActions(actions) = instruction {
            suit_actions(actions);
        }
    }
}

fn suit_actions(actions: &mut Vec<Action>) {
    actions.retain_mut(|action| match action {
        Action::Experimenter(_) => false,
        Action::Output { port, .. } => {
            *port < 0xff00 || (reserved::IN_PORT..reserved::NONE).contains(port)
        }
        Action::Enqueue { port, .. } => {
            *port = (*port).min(0xfeff);
            true
        }
        _ => true,
    });
}

fn messages() -> Vec<Message> {
    let mut runner = TestRunner::deterministic();
    let strategy = generate::message();
    let mut all = Vec::new();
    while all.len() < MESSAGES {
        let mut message = strategy.new_tree(&mut runner).unwrap().current();
        if suit_a_switch(&mut message) {
            all.push(message);
        }
    }
    all
}

/// Returns Open vSwitch's name of a message.
fn name(message: &Message) -> String {
    let statistics = |kind: openflow::version::MultipartKind, way: &str| {
        format!("OFPST_{} {way}", kind.name().to_uppercase())
    };
    match message {
        Message::MultipartRequest(request) => statistics(request.body.kind(), "request"),
        Message::MultipartReply(reply) => statistics(reply.body.kind(), "reply"),
        message => format!("OFPT_{}", message.kind().name().to_uppercase()),
    }
}

/// Returns words that must appear in the output for the message.
fn words(message: &Message) -> Vec<String> {
    match message {
        Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::Aggregate(sum),
            ..
        }) => {
            vec![
                format!("packet_count={}", sum.packets),
                format!("byte_count={}", sum.bytes),
                format!("flow_count={}", sum.flows),
            ]
        }
        Message::FlowRemoved(removed) => vec![
            format!("pkts{} ", removed.packets),
            format!("bytes{}", removed.bytes),
            format!("idle{} ", removed.idle_timeout_s),
            format!("duration{}.", removed.age.0 / 1_000_000_000),
        ],
        Message::EchoRequest(data) => vec![format!("{} bytes of payload", data.len())],
        Message::FeaturesReply(features) => vec![
            format!("dpid:{:016x}", features.datapath_id),
            format!("n_tables:{}, n_buffers:{}", features.tables, features.buffers),
        ],
        Message::FlowMod(change) => {
            change.applied().iter().filter_map(action_word).chain(flow_words(change)).collect()
        }
        Message::PacketIn(packet) => vec![format!("data_len={}", packet.data.len())],
        _ => Vec::new(),
    }
}

fn flow_words(change: &FlowMod) -> Vec<String> {
    let mut words = Vec::new();
    if change.idle_timeout_s != 0 {
        words.push(format!("idle:{}", change.idle_timeout_s));
    }
    if change.hard_timeout_s != 0 {
        words.push(format!("hard:{}", change.hard_timeout_s));
    }
    if let Some(id) = change.buffer_id {
        words.push(format!("buf:{id:#x}"));
    }
    words
}

fn action_word(action: &Action) -> Option<String> {
    Some(match action {
        Action::SetVlanVid(vid) => format!("mod_vlan_vid:{vid}"),
        Action::SetVlanPcp(pcp) => format!("mod_vlan_pcp:{pcp}"),
        Action::PopVlan => "strip_vlan".to_string(),
        Action::SetField(row) => {
            let address = std::net::Ipv4Addr::from_bits(row.value as u32);
            match row.field {
                Field::Ipv4Src => format!("mod_nw_src:{address}"),
                Field::Ipv4Dst => format!("mod_nw_dst:{address}"),
                Field::IpDscp => format!("mod_nw_tos:{}", row.value << 2),
                _ => return None,
            }
        }
        Action::SetTransportSrc(port) => format!("mod_tp_src:{port}"),
        Action::SetTransportDst(port) => format!("mod_tp_dst:{port}"),
        Action::Enqueue { port, queue } => format!("enqueue:{port}:{queue}"),
        Action::Output { port: reserved::CONTROLLER, bytes_max } => {
            format!("CONTROLLER:{bytes_max}")
        }
        _ => return None,
    })
}

#[test]
fn open_vswitch_decodes_every_message() {
    if !need::is_there("ovs-ofctl") {
        return;
    }
    let messages = messages();
    for kind in MessageKind::of(Version::V1_0).filter(|&kind| kind != MessageKind::Experimenter) {
        assert!(messages.iter().any(|message| message.kind() == kind), "no {kind} among them");
    }
    let mut bytes = Vec::new();
    for (xid, message) in (0x1000..).zip(&messages) {
        encode(Version::V1_0, xid, message, &mut bytes).unwrap();
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_message.openflow");
    std::fs::write(&file, bytes).unwrap();
    let output = Command::new("ovs-ofctl").arg("ofp-parse").arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let mut rest = &text[..];
    for (xid, message) in (0x1000..).zip(&messages) {
        let start = format!("{} (xid={xid:#x}):", name(message));
        let at = rest.find(&start).unwrap_or_else(|| panic!("no {start}: {message}"));
        rest = &rest[at + start.len()..];
        let next = format!("(xid={:#x}):", xid + 1);
        let printed = &rest[..rest.find(&next).unwrap_or(rest.len())];
        assert!(
            !printed.contains("decode error"),
            "{message}\nis printed by ovs-ofctl as:{printed}"
        );
        for word in words(message) {
            assert!(
                printed.contains(&word),
                "no {word} for {message}\nin the output of ovs-ofctl:{printed}"
            );
        }
    }
}
