//! Any bytes as an OpenFlow message: decoding never panics, faults lie inside the bytes, and what
//! decodes prints and encodes to the same meaning.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openflow::codec::{decode, encode};
use openflow::version::Version;

fuzz_target!(|bytes: &[u8]| {
    match decode(bytes) {
        Ok((header, message)) => {
            assert!(!message.to_string().is_empty());
            let version = Version::from_wire(header.version).unwrap_or(Version::V1_0);
            let mut again = Vec::new();
            encode(version, header.xid, &message, &mut again).expect("it can say what it said");
            let (_, back) = decode(&again).expect("our own bytes decode");
            assert_eq!(back, message);
        }
        Err(error) => {
            assert!(error.malformed.at <= bytes.len());
            if let Some(answer) = error.answer() {
                encode(Version::V1_0, 0, &answer, &mut Vec::new()).expect("1.0 has its errors");
            }
        }
    }
});
