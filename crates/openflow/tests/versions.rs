//! Properties that hold for all bytes in every version.
//!
//! - Decoding succeeds or fails with an error.
//! - A decoded message encodes again to the same meaning.
//! - Another version encodes it, or returns what it cannot express.
//!
//! The bytes are modified copies of the samples in `tests/bytes`. So the tests see every structure
//! that a peer sends with other values, and with wrong lengths and types.

#![allow(clippy::unwrap_used, reason = "a test")]

mod samples;

use std::collections::HashSet;

use openflow::codec::{decode, encode};
use openflow::model::Message;
use openflow::version::Version;
use samples::{Numbers, changed};

/// Modified copies of each sample.
const COPIES: usize = 60;

/// Maximum bytes of text for each byte of a message; endless rows would exceed it.
const TEXT_FACTOR: usize = 40;

/// Decodes arbitrary bytes and checks the properties; returns the message, if it is valid.
fn check(version: Version, bytes: &[u8]) -> Option<Message> {
    let (header, message) = match decode(bytes) {
        Ok(read) => read,
        Err(error) => {
            assert!(error.malformed.at <= bytes.len(), "{error}: {bytes:02x?}");
            assert!(bytes.starts_with(error.offending.as_bytes()), "{error}");
            return None;
        }
    };
    assert!(usize::from(header.length) <= bytes.len());
    let text = format!("{message:?}");
    assert!(
        text.len() <= 4096 + TEXT_FACTOR * 8 * bytes.len(),
        "{} for {}",
        text.len(),
        bytes.len()
    );
    let mut again = Vec::new();
    if let Err(error) = encode(version, header.xid, &message, &mut again) {
        panic!("{error}: {message}\n{bytes:02x?}");
    }
    let back = decode(&again).unwrap_or_else(|error| panic!("{error}: {message}\n{again:02x?}"));
    assert_eq!(back.1, message, "{bytes:02x?}\n{again:02x?}");
    Some(message)
}

/// Encodes a message in another version, if that can express it, and checks the round trip.
fn check_elsewhere(version: Version, message: &Message, unsaid: &mut HashSet<String>) {
    let mut bytes = Vec::new();
    match encode(version, 7, message, &mut bytes) {
        Err(error) => drop(unsaid.insert(error.to_string())),
        Ok(()) => {
            let (header, there) = match decode(&bytes) {
                Ok(read) => read,
                // An unknown field may be a known one in another version, with prerequisites of its
                // own.
                Err(_) if message.to_string().contains("field_0x") => return,
                Err(error) => panic!("{version}: {error}: {message}\n{bytes:02x?}"),
            };
            assert_eq!((header.xid, header.version), (7, version.wire()));
            assert_eq!(there.kind(), message.kind(), "{version}: {message}");
            let mut again = Vec::new();
            encode(version, 7, &there, &mut again).unwrap();
            assert_eq!(again, bytes, "{version}: {message}\n{there}");
        }
    }
}

/// Checks all modified samples of a version.
fn check_version(version: Version) {
    let mut numbers = Numbers(u64::from(version.wire()));
    let (mut read, mut tried, mut unsaid) = (0, 0, HashSet::new());
    for sample in samples::all(version) {
        for copy in 0..COPIES {
            let bytes = changed(&sample, &mut numbers);
            tried += 1;
            let Some(message) = check(version, &bytes) else { continue };
            read += 1;
            if copy % 8 == 0 {
                let others = Version::SUPPORTED.iter().filter(|&&other| other != version);
                others.for_each(|&other| check_elsewhere(other, &message, &mut unsaid));
            }
        }
    }
    assert!(read * 10 > tried, "only {read} of {tried} modified messages of {version} are decoded");
    assert!(read < tried, "all {tried} modified messages of {version} are decoded");
    let named = unsaid.iter().all(|text| text.starts_with("OpenFlow 1.") && text.len() > 14);
    assert!(named, "{unsaid:?}");
}

#[test]
fn modified_messages_are_decoded_or_rejected() {
    std::thread::scope(|scope| {
        let run = |&version| scope.spawn(move || check_version(version));
        let runs: Vec<_> = Version::SUPPORTED.iter().map(run).collect();
        runs.into_iter().for_each(|run| run.join().unwrap());
    });
}

#[test]
fn random_bytes_after_a_header_are_decoded_or_rejected() {
    let mut numbers = Numbers(99);
    for &version in Version::SUPPORTED {
        for kind in 0..40 {
            for _ in 0..300 {
                let length = 8 + numbers.next(120);
                let mut bytes = vec![version.wire(), kind, 0, length as u8, 0, 0, 0, 9];
                bytes.extend(
                    (8..length).map(|_| numbers.next(if kind % 2 == 0 { 256 } else { 4 }) as u8),
                );
                check(version, &bytes);
            }
        }
    }
}
