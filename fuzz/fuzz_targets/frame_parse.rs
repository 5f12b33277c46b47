//! Any bytes as a frame: parsing, strict parsing, showing and checksums never panic, and offsets
//! stay inside the bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::parse::{Layers, Packet, set_transport_checksum};
use packet::show::Show;

fuzz_target!(|bytes: &[u8]| {
    let layers = Layers::of(bytes);
    assert!(layers.payload_at <= layers.payload_end);
    assert!(usize::from(layers.payload_end) <= bytes.len());
    let strict = Packet::parse(bytes);
    assert!(strict.is_err() || layers.fault.is_none());
    assert!(!Show(bytes).to_string().is_empty());
    let mut copy = bytes.to_vec();
    if set_transport_checksum(&mut copy) && Packet::parse(&copy).is_ok() {
        assert_eq!(Packet::of(&copy).verify_checksums(), Ok(()));
    }
});
