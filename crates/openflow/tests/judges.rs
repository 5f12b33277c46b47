//! Tests that other decoders read our messages: tshark 1.3 to 1.5, ovs-ofctl 1.0 to 1.5.
//!
//! The messages are the decoded samples, and the modified copies of them that still decode, encoded
//! again. Known gaps of the other decoders are listed here with their reasons; any other complaint
//! is a fault of ours.

#![allow(clippy::unwrap_used, reason = "a test")]

mod capture;
mod need;
mod samples;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use openflow::codec::encode;
use openflow::model::*;
use openflow::version::{MessageKind, Version};

/// Modified copies of each sample.
const COPIES: usize = 3;

/// Errors that Open vSwitch (3.1) prints for well-formed messages with unsupported contents:
/// invalid groups and bands, experimenter parts, unknown fields.
const REFUSED: [&str; 21] = [
    "OFPBRC_BAD_VENDOR",
    "OFPBRC_BAD_EXPERIMENTER",
    "OFPBRC_BAD_STAT",
    "OFPBRC_BAD_PORT",
    "OFPBRC_BAD_TABLE_ID",
    "OFPBMC_BAD_FIELD",
    "OFPBMC_BAD_VALUE",
    "OFPBMC_BAD_MASK",
    "OFPBMC_BAD_PREREQ",
    "OFPBMC_BAD_WILDCARDS",
    "OFPBAC_",
    "OFPBIC_",
    "OFPGMFC_",
    "OFPMMFC_",
    "OFPBPC_",
    "OFPACFC_",
    "OFPFMFC_",
    "OFPTMFC_",
    "OFPTFFC_",
    "OFPPMFC_",
    "OFPMOFC_",
];

fn encoded(version: Version, xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(version, xid, message, &mut bytes).unwrap_or_else(|error| panic!("{error}: {message}"));
    bytes
}

/// Returns messages of a version with their bytes; the transaction ID encodes the index.
fn sent(version: Version, is_wanted: impl Fn(&Message) -> bool) -> Vec<(Message, Vec<u8>)> {
    let messages = samples::messages(version, COPIES).into_iter().filter(is_wanted);
    let with_bytes = |(place, message): (usize, Message)| {
        let bytes = encoded(version, 0x10000 + place as u32, &message);
        (message, bytes)
    };
    messages.enumerate().map(with_bytes).collect()
}

/// Returns whether the message quotes bytes that other decoders check even if they are invalid.
fn carries_others_bytes(message: &Message) -> bool {
    matches!(message, Message::Error(_) | Message::PacketIn(_) | Message::PacketOut(_))
}

/// Returns whether the message is an experimenter message, which other decoders do not know.
fn is_experimental(message: &Message) -> bool {
    match message {
        Message::Experimenter(_) => true,
        Message::MultipartRequest(request) => {
            matches!(request.body, MultipartRequestBody::Experimenter(_))
        }
        Message::MultipartReply(reply) => matches!(reply.body, MultipartReplyBody::Experimenter(_)),
        _ => false,
    }
}

#[test]
fn open_vswitch_decodes_every_version() {
    if !need::is_there("ovs-ofctl") {
        return;
    }
    for &version in Version::SUPPORTED {
        let wanted = |message: &Message| {
            // ovs-ofctl requires the outer transaction ID in the contained message.
            let is_inner = matches!(message, Message::BundleAddMessage(_));
            !carries_others_bytes(message) && !is_experimental(message) && !is_inner
        };
        let sent = sent(version, wanted);
        let all: Vec<u8> = sent.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let file =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judged_{version}.openflow"));
        std::fs::write(&file, all).unwrap();
        let output = Command::new("ovs-ofctl").arg("ofp-parse").arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let (faults, clean) = faults_of_open_vswitch(&text, &sent);
        assert!(faults.is_empty(), "{version}: {faults}");
        assert!(
            clean * 2 > sent.len(),
            "{version}: only {clean} of {} are without complaint",
            sent.len()
        );
    }
}

/// Returns the unexpected complaints of ovs-ofctl, and the number of messages without complaint.
fn faults_of_open_vswitch(text: &str, sent: &[(Message, Vec<u8>)]) -> (String, usize) {
    let (mut faults, mut clean) = (String::new(), 0);
    let place = |number: usize| text.find(&format!("(xid={:#x})", 0x10000 + number));
    for (number, (message, bytes)) in sent.iter().enumerate() {
        // ovs-ofctl prints unknown messages without their transaction ID.
        let Some(start) = place(number) else { continue };
        let end = (number + 1..sent.len()).find_map(place).unwrap_or(text.len());
        let output = &text[start..end.max(start)];
        match output.split_once("***decode error: ") {
            None => clean += 1,
            Some((_, error)) if REFUSED.iter().any(|known| error.starts_with(known)) => {}
            // An unknown message after this one has no transaction ID, so its text is part of this
            // one's.
            Some((before, _)) if before.lines().count() > 1 && end != start => {}
            Some(_) => writeln!(faults, "{message}\n{bytes:02x?}\n{output}").unwrap(),
        }
    }
    (faults, clean)
}

/// Returns whether tshark (4.0) fails to decode this valid message.
///
/// - From 1.4 on it expects other lengths of experimenter properties, statistics with properties
///   and queue descriptions.
/// - It reads experimenter meter bands past their end.
/// - In 1.5 it fails on every match, and on all messages with one.
fn is_beyond_tshark(version: Version, message: &Message) -> bool {
    let text = format!("{message:?}");
    let has_properties = match message {
        Message::MultipartReply(reply) => matches!(
            reply.body,
            MultipartReplyBody::Port(_)
                | MultipartReplyBody::Queue(_)
                | MultipartReplyBody::QueueDesc(_)
        ),
        _ => false,
    };
    let has_match = ["Match {", "FieldId", "Instruction", "Bucket", "Aggregate", "Flow"]
        .iter()
        .any(|word| text.contains(word));
    text.contains("Experimenter")
        || version >= Version::V1_4 && has_properties
        || version >= Version::V1_5 && has_match
}

#[test]
fn tshark_decodes_the_versions_that_it_supports() {
    if !need::is_there("tshark") {
        return;
    }
    for version in [Version::V1_3, Version::V1_4, Version::V1_5] {
        if !version.is_spoken() {
            continue;
        }
        let wanted = |message: &Message| {
            !carries_others_bytes(message) && !is_beyond_tshark(version, message)
        };
        let sent = sent(version, wanted);
        let payloads: Vec<_> = sent.iter().map(|(_, bytes)| bytes.clone()).collect();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("judged_{version}.pcap"));
        std::fs::write(&file, capture::capture(&payloads)).unwrap();
        let number = format!("openflow_v{}.type", version.wire());
        let fields = [number.as_str(), "openflow.length", "_ws.malformed", "_ws.expert.message"];
        let lines = capture::tshark(&file, &fields);
        assert_eq!(lines.len(), sent.len());
        let mut faults = String::new();
        for (line, (message, bytes)) in lines.iter().zip(&sent) {
            // A message type of an extension is an experimenter message.
            let code = message.kind().code(version).or(MessageKind::Experimenter.code(version));
            let code = code.unwrap().to_string();
            let words: Vec<_> = line.split('\t').collect();
            // A contained message has a type too. tshark reports undissected bodies.
            let is_right = words[0].split(',').next() == Some(&code)
                && words[2].is_empty()
                && (words[3].is_empty() || words[3].ends_with("body."));
            if !is_right {
                writeln!(faults, "{line}: {message}: {bytes:02x?}").unwrap();
            }
        }
        assert!(faults.is_empty(), "{version}: {faults}");
    }
}
