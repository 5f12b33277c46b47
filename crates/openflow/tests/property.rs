//! Properties that hold for all messages and all bytes: round trips lose nothing, and hostile bytes
//! cause neither panics nor large allocations.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use std::mem::size_of;

use openflow::codec::{decode, encode};
use openflow::header::HEADER_BYTES;
use openflow::model::*;
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, Version};
use packet::time::Nanos;
use proptest::collection::vec;
use proptest::prelude::*;

/// Maximum bytes of memory of a decoded message for each byte on the wire.
///
/// The most expensive part is an action of eight bytes, in a vector that has just doubled.
const MEMORY_FACTOR: usize = 2 * size_of::<Action>() / 8 + size_of::<FlowStats>() / 88 + 8;

/// Bytes of memory that any message may take: the minimum capacity of some vectors.
const MEMORY_BYTES_MIN: usize = 8 * size_of::<FlowStats>();

fn encoded(xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(Version::V1_0, xid, message, &mut bytes).unwrap();
    bytes
}

fn instructions_memory(instructions: &Vec<Instruction>) -> usize {
    let actions = instructions.iter().map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => actions_memory(actions),
        _ => 0,
    });
    instructions.capacity() * size_of::<Instruction>() + actions.sum::<usize>()
}

fn match_memory(matching: &Match) -> usize {
    size_of_val(matching.fields())
}

fn actions_memory(actions: &Vec<Action>) -> usize {
    let bodies = actions.iter().map(|action| match action {
        Action::Experimenter(vendor) => vendor.body.capacity(),
        _ => 0,
    });
    actions.capacity() * size_of::<Action>() + bodies.sum::<usize>()
}

fn reply_memory(body: &MultipartReplyBody) -> usize {
    match body {
        MultipartReplyBody::Flow(rows) => {
            let actions = rows
                .iter()
                .map(|row| instructions_memory(&row.instructions) + match_memory(&row.matching))
                .sum::<usize>();
            rows.capacity() * size_of::<FlowStats>() + actions
        }
        MultipartReplyBody::Table(rows) => rows.capacity() * size_of::<TableStats>(),
        MultipartReplyBody::Port(rows) => rows.capacity() * size_of::<PortStats>(),
        MultipartReplyBody::Queue(rows) => rows.capacity() * size_of::<QueueStats>(),
        MultipartReplyBody::Experimenter(vendor) => vendor.body.capacity(),
        _ => 0,
    }
}

/// Returns the bytes on the heap that a decoded message uses.
fn memory(message: &Message) -> usize {
    match message {
        Message::Error(error) => error.data.capacity(),
        Message::EchoRequest(data) | Message::EchoReply(data) => data.capacity(),
        Message::Experimenter(vendor) => vendor.body.capacity(),
        Message::FeaturesReply(features) => {
            features.ports.capacity() * size_of::<PortDescription>()
        }
        Message::PacketIn(frame) => frame.data.capacity(),
        Message::PacketOut(frame) => frame.data.capacity() + actions_memory(&frame.actions),
        Message::FlowMod(change) => {
            instructions_memory(&change.instructions) + match_memory(&change.matching)
        }
        Message::MultipartReply(reply) => reply_memory(&reply.body),
        Message::QueueGetConfigReply(config) => {
            let properties =
                |queue: &PacketQueue| queue.properties.capacity() * size_of::<QueueProperty>();
            config.queues.capacity() * size_of::<PacketQueue>()
                + config.queues.iter().map(properties).sum::<usize>()
        }
        _ => 0,
    }
}

/// Decodes arbitrary bytes and checks the properties.
fn check_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    match decode(bytes) {
        Ok((header, message)) => {
            let length = usize::from(header.length);
            prop_assert!(length <= bytes.len());
            let limit = MEMORY_BYTES_MIN + MEMORY_FACTOR * length;
            prop_assert!(memory(&message) <= limit, "{} for {length}", memory(&message));
            prop_assert!(!message.to_string().is_empty());
            let version = Version::from_wire(header.version).unwrap_or(Version::V1_0);
            let mut again = Vec::new();
            encode(version, header.xid, &message, &mut again).unwrap();
            prop_assert_eq!(decode(&again).unwrap().1, message);
        }
        Err(error) => {
            prop_assert!(error.malformed.at <= bytes.len(), "{}", error);
            let head = &bytes[..bytes.len().min(64).min(error.offending.as_bytes().len())];
            prop_assert_eq!(error.offending.as_bytes(), head);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 4 * ProptestConfig::default().cases,
        ..ProptestConfig::default()
    })]

    #[test]
    fn messages_round_trip(message in generate::message(), xid in any::<u32>()) {
        let bytes = encoded(xid, &message);
        let (header, back) = decode(&bytes).unwrap();
        prop_assert_eq!((header.xid, usize::from(header.length)), (xid, bytes.len()));
        prop_assert_eq!(&back, &message);
        prop_assert_eq!(encoded(xid, &back), bytes);
    }

    #[test]
    fn mutated_messages_are_decoded_or_rejected(
        message in generate::message(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encoded(1, &message);
        for (place, value) in &changes {
            // Keep the header's length, because a wrong one hides all other faults.
            let at = place.index(bytes.len());
            if at != 2 && at != 3 {
                bytes[at] = *value;
            }
        }
        check_any(&bytes)?;
        bytes.truncate(HEADER_BYTES + cut.index(bytes.len() - HEADER_BYTES + 1));
        let length = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        check_any(&bytes)?;
    }

    #[test]
    fn random_bodies_are_decoded_or_rejected(kind in 0..24u8, body in vec(any::<u8>(), 0..400)) {
        let length = (HEADER_BYTES + body.len()) as u16;
        let [l0, l1] = length.to_be_bytes();
        let bytes = [&[1, kind, l0, l1, 0, 0, 0, 9], &body[..]].concat();
        check_any(&bytes)?;
    }

    #[test]
    fn random_bytes_are_decoded_or_rejected(bytes in vec(any::<u8>(), 0..100)) {
        check_any(&bytes)?;
    }

    #[test]
    fn a_session_receives_every_message_for_any_segmentation(
        messages in vec(generate::message(), 1..20),
        chunk in 1..300usize,
    ) {
        let mut session = Session::new(Settings::new(End::Controller), Nanos::ZERO);
        let mut bytes = encoded(0, &Message::Hello(Hello::default()));
        let mut want = Vec::new();
        for message in messages {
            use openflow::version::ErrorCode::{HelloIncompatible, HelloPermission};
            let passed = message.kind().sender() != Some(End::Controller)
                && !matches!(&message, Message::Hello(_) | Message::EchoRequest(_));
            match &message {
                Message::Error(error)
                    if matches!(error.code, HelloIncompatible | HelloPermission) => continue,
                _ => bytes.extend(encoded(3, &message)),
            }
            if passed {
                want.push(message);
            }
        }
        let mut heard = Vec::new();
        for chunk in bytes.chunks(chunk) {
            prop_assert_eq!(session.receive(chunk, Nanos(1)), chunk.len());
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Message { message, .. } => heard.push(message),
                    Event::Down { why } => prop_assert!(false, "{}", why),
                    Event::Up { .. } | Event::Refused(_) => {}
                }
            }
        }
        prop_assert_eq!(heard, want);
    }

    #[test]
    fn a_session_survives_any_bytes(
        greeted in any::<bool>(),
        end in prop::sample::select(vec![End::Controller, End::Switch]),
        chunks in vec(vec(any::<u8>(), 0..100), 0..10),
    ) {
        let mut session = Session::new(Settings::new(end), Nanos::ZERO);
        if greeted {
            prop_assert_eq!(session.receive(&[1, 0, 0, 8, 0, 0, 0, 0], Nanos::ZERO), 8);
        }
        let mut downs = 0;
        for chunk in chunks {
            prop_assert_eq!(session.receive(&chunk, Nanos(1)), chunk.len());
            while let Some(event) = session.poll_event() {
                downs += usize::from(matches!(event, Event::Down { .. }));
            }
            session.transmitted(session.transmit().len() / 2);
        }
        prop_assert!(downs <= 1);
        prop_assert_eq!(downs == 1, session.is_down());
    }
}
