//! Properties that hold for all messages and all bytes: round trips lose nothing, hostile bytes
//! cause no panic, and decoded messages use at most a small multiple of their length in memory.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use forces::wire::{Body, Header, MessageKind, OperationKind, frame_octets};
use forces::wire::{
    Data, HEADER_OCTETS, Message, Operation, PATH_DEPTH_MAX, PathData, Select, TLV_OCTETS_MAX,
    WireFaultKind, decode, encode,
};
use generate::message;
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes).unwrap();
    bytes
}

/// Decodes arbitrary bytes and checks the properties of the message.
fn check(bytes: &[u8]) {
    match decode(bytes) {
        Ok(message) => {
            let again = encoded(&message);
            assert!(again.len() <= bytes.len() + 3, "{message:?}");
            assert_eq!(decode(&again), Ok(message));
        }
        Err(fault) => {
            assert!(fault.at <= bytes.len(), "{fault}");
            assert!(!fault.to_string().is_empty() && !fault.code().is_success());
        }
    }
}

proptest! {
    #[test]
    fn messages_round_trip(message in message()) {
        let bytes = encoded(&message);
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert_eq!(frame_octets(&bytes), Ok(Some(bytes.len())));
        prop_assert_eq!(decode(&bytes), Ok(message));
    }

    #[test]
    fn modified_messages_are_decoded_or_rejected(
        message in message(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = encoded(&message);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        // With wrong and correct lengths.
        check(&bytes);
        let words = (bytes.len() / 4) as u16;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        check(&bytes);
    }

    #[test]
    fn truncated_messages_are_rejected(message in message(), place in any::<prop::sample::Index>()) {
        let mut bytes = encoded(&message);
        bytes.truncate(place.index(bytes.len()));
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(
        kind in proptest::sample::select(&MessageKind::ALL[..]),
        body in vec(prop_oneof![Just(0u8), Just(1), Just(0x10), Just(4), any::<u8>()], 0..200),
    ) {
        let mut bytes = vec![0x10, kind.wire(), 0, 0];
        bytes.resize(HEADER_OCTETS, 0);
        bytes.extend(&body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let words = (bytes.len() / 4) as u16;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        check(&bytes);
        check(&body);
    }
}

fn query(path: PathData) -> Message {
    let operation = Operation::on(OperationKind::Get, vec![path]);
    Message { header: Header::default(), body: Body::Query(vec![Select::one(1, 1, operation)]) }
}

#[test]
fn paths_are_decoded_up_to_the_maximum_depth() {
    let nested = |depth: usize| {
        (1..depth)
            .fold(PathData::named([1]), |inner, _| PathData::with([1], Data::Paths(vec![inner])))
    };
    assert!(decode(&encoded(&query(nested(PATH_DEPTH_MAX)))).is_ok());
    let fault = decode(&encoded(&query(nested(PATH_DEPTH_MAX + 1)))).unwrap_err();
    assert_eq!(fault.why, WireFaultKind::PathDepth);
}

#[test]
fn encoding_rejects_oversized_data() {
    let long = |octets: usize| query(PathData::with([1], Data::Full(vec![0; octets])));
    // PATH-DATA, the operation and LFBselect enclose it.
    let most = TLV_OCTETS_MAX - 4 - 12 - 4 - 12;
    assert!(encode(&long(most / 4 * 4), &mut Vec::new()).is_ok());
    let mut out = vec![7];
    let fault = encode(&long(TLV_OCTETS_MAX), &mut out).unwrap_err();
    assert_eq!((fault.what, fault.octets, out), ("FULLDATA", TLV_OCTETS_MAX + 4, vec![7]));
    assert_eq!(encode(&long(TLV_OCTETS_MAX - 4), &mut Vec::new()).unwrap_err().what, "PATH-DATA");
}
