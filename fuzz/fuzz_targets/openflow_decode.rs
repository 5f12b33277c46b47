//! Decodes any bytes as a message of any version. Decoding does not panic, and error positions are
//! inside the bytes. A decoded message can be printed, encodes to the same meaning, and from then
//! on to the same bytes.
//!
//! The length in the header is corrected, so that the fuzzer reaches the contents;
//! `openflow_session` covers wrong lengths. An unsupported version is replaced by a supported one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::codec::{decode, encode};
use openflow::header::MESSAGE_BYTES_MAX;
use openflow::version::Version;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes[..bytes.len().min(MESSAGE_BYTES_MAX)].to_vec();
    if let [wire, _, high, low, ..] = &mut bytes[..] {
        let spoken = Version::SUPPORTED;
        let known = Version::from_wire(*wire).filter(|version| version.is_spoken());
        *wire = known.unwrap_or(spoken[usize::from(*wire) % spoken.len()]).wire();
        [*high, *low] = [0; 2];
    }
    if bytes.len() >= 8 {
        let length = (bytes.len() as u16).to_be_bytes();
        bytes[2..4].copy_from_slice(&length);
    }
    match decode(&bytes) {
        Ok((header, message)) => {
            assert!(!message.to_string().is_empty());
            let version = Version::from_wire(header.version).expect("set above");
            let mut again = Vec::new();
            encode(version, header.xid, &message, &mut again).expect("it can say what it said");
            let (_, back) = decode(&again).expect("our own bytes decode");
            assert_eq!(back, message);
            let mut third = Vec::new();
            encode(version, header.xid, &back, &mut third).expect("once more");
            assert_eq!(third, again);
        }
        Err(error) => {
            assert!(error.malformed.at <= bytes.len());
            assert!(!error.to_string().is_empty());
            let version = bytes.first().and_then(|&wire| Version::from_wire(wire));
            if let (Some(answer), Some(version)) = (error.answer(), version) {
                encode(version, 0, &answer, &mut Vec::new()).expect("a version has its errors");
            }
        }
    }
});
