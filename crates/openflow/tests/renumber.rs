//! Tests of port renumbering, with messages of other implementations.
//!
//! Every decodable message keeps its meaning with the new ports, nothing else changes, and hostile
//! bytes do no harm.

#![allow(clippy::unwrap_used, reason = "a test")]

mod samples;

use openflow::codec::{decode, encode};
use openflow::model::group::{Bucket, GROUP_ANY, GroupKind, GroupMod};
use openflow::model::message::Message;
use openflow::model::multipart::{FlowStats, FlowStatsRequest, MultipartRequestBody};
use openflow::model::packet_io::{PacketIn, PacketOut};
use openflow::model::{Action, Field, FlowMod, Instruction, Match, MultipartReplyBody, reserved};
use openflow::renumber::renumber;
use openflow::version::Version;
use samples::{Numbers, all, changed};

/// Maps numbers below 0x8000 to others and back.
fn other(port: u32) -> u32 {
    if port < 0x8000 { port ^ 0x4000 } else { port }
}

/// Returns the numbers after each of these words in the message's debug output.
fn numbers(message: &Message) -> Vec<u32> {
    let text = format!("{message:?}");
    let mut found = Vec::new();
    for word in ["port: ", "PortDescription { number: ", "PortMod { number: ", "port: Some("] {
        for (at, _) in text.match_indices(word) {
            let rest = &text[at + word.len()..];
            let digits = rest.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default();
            found.extend(digits.parse::<u32>());
        }
    }
    found
}

#[test]
fn renumbering_changes_every_port_and_nothing_else() {
    let (mut messages, mut ports) = (0, 0);
    for version in Version::SUPPORTED {
        for bytes in all(*version) {
            let Ok((_, before)) = decode(&bytes) else { continue };
            let mut new = bytes.clone();
            renumber(&mut new, &other);
            let (_, after) = decode(&new)
                .unwrap_or_else(|error| panic!("{version} {bytes:02x?} {before}: {error}"));
            let expected: Vec<u32> = numbers(&before).into_iter().map(other).collect();
            assert_eq!(numbers(&after), expected, "{version}: {before}\n{after}");
            messages += 1;
            ports += expected.iter().zip(numbers(&before)).filter(|(a, b)| **a != *b).count();
            renumber(&mut new, &other);
            assert_eq!(new, bytes, "{version}: {before}");
        }
    }
    assert!(messages > 300 && ports > 100, "{messages} messages, {ports} ports");
}

/// Returns messages of each type with port numbers, all of them this port.
fn with(port: u32) -> Vec<Message> {
    let actions = vec![Action::output(port), Action::output(reserved::CONTROLLER)];
    let matching = Match::ANY.with(Field::InPort, port);
    let flow = FlowMod { out_port: port, ..FlowMod::add(matching.clone(), 5, actions.clone()) };
    let entry = FlowStats {
        matching: matching.clone(),
        instructions: Instruction::apply(actions.clone()),
        ..FlowStats::default()
    };
    let which = FlowStatsRequest {
        matching: matching.clone(),
        out_port: port,
        ..FlowStatsRequest::default()
    };
    let bucket = Bucket {
        id: 0,
        weight: 0,
        watch_port: port,
        watch_group: GROUP_ANY,
        actions: actions.clone(),
        experimenter: Vec::new(),
    };
    let group = GroupMod {
        kind: GroupKind::FastFailover,
        buckets: vec![bucket.clone(), bucket],
        ..GroupMod::default()
    };
    let written =
        FlowMod { instructions: vec![Instruction::WriteActions(actions.clone())], ..flow.clone() };
    let frame = vec![5; 60];
    vec![
        Message::FlowMod(flow),
        Message::FlowMod(written),
        Message::GroupMod(group),
        Message::PacketOut(PacketOut {
            buffer_id: None,
            in_port: port,
            fields: Match::ANY,
            actions,
            data: frame.clone(),
        }),
        Message::PacketIn(PacketIn { in_port: port, data: frame, ..PacketIn::default() }),
        Message::ask(MultipartRequestBody::Flow(which.clone())),
        Message::ask(MultipartRequestBody::Aggregate(which)),
        Message::ask(MultipartRequestBody::Port(port)),
        Message::ask(MultipartRequestBody::Queue { port, queue: 5 }),
        Message::MultipartReply(MultipartReplyBody::Flow(vec![entry.clone(), entry]).into()),
    ]
}

#[test]
fn a_renumbered_message_equals_one_with_the_other_port() {
    let bytes_of = |version: Version, message: &Message| {
        let mut bytes = Vec::new();
        encode(version, 5, message, &mut bytes).ok().map(|()| bytes)
    };
    let mut compared = 0;
    for version in Version::SUPPORTED {
        for (five, seventeen) in with(5).iter().zip(&with(17)) {
            let [Some(mut bytes), Some(wanted)] =
                [five, seventeen].map(|it| bytes_of(*version, it))
            else {
                continue;
            };
            renumber(&mut bytes, &|port| if port == 5 { 17 } else { port });
            assert_eq!(bytes, wanted, "{version}: {five}");
            compared += 1;
        }
    }
    assert!(compared >= 50, "{compared}");
}

#[test]
fn hostile_bytes_are_renumbered_or_rejected() {
    let mut draw = Numbers(7);
    for version in Version::SUPPORTED {
        for bytes in all(*version) {
            for length in 0..bytes.len() {
                renumber(&mut bytes[..length].to_vec(), &other);
            }
            for _ in 0..50 {
                let mut new = changed(&bytes, &mut draw);
                let length = new.len();
                renumber(&mut new, &other);
                assert_eq!(new.len(), length);
            }
        }
    }
    // A bundle-add message that contains itself repeatedly.
    let mut deep = Vec::new();
    for _ in 0..1000 {
        deep.extend([5, 34, 0xff, 0xff, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0]);
    }
    renumber(&mut deep, &other);
}
