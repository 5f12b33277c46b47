//! Control messages compared with bytes from the structures of `memif.h`.

use super::*;

/// Returns a message of these bytes, padded with zeros.
fn padded(start: &[u8]) -> [u8; MESSAGE_BYTES] {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[..start.len()].copy_from_slice(start);
    bytes
}

fn with_text(start: &[u8], text: &[u8], text_bytes: usize, end: &[u8]) -> [u8; MESSAGE_BYTES] {
    let mut bytes = start.to_vec();
    bytes.extend(text);
    bytes.resize(start.len() + text_bytes, 0);
    bytes.extend(end);
    padded(&bytes)
}

#[test]
#[cfg(target_endian = "little")]
fn values_and_bytes_agree() {
    let cases = [
        (Message::Ack, padded(&[1, 0])),
        (
            Message::Hello(Hello {
                name: text("DPDK 22.11.11"),
                version_min: VERSION,
                version_max: VERSION,
                region_max: 255,
                to_client_max: 256,
                to_server_max: 3,
                slots_log2_max: 14,
            }),
            with_text(&[2, 0], b"DPDK 22.11.11", 32, &[0, 2, 0, 2, 255, 0, 0, 1, 3, 0, 14]),
        ),
        (
            Message::Init(Init {
                version: VERSION,
                id: 0x0102_0304,
                mode: MODE_ETHERNET,
                secret: text("abc123"),
                name: text("us"),
            }),
            with_text(&[3, 0, 0, 2, 4, 3, 2, 1, 0], b"abc123", 24, b"us"),
        ),
        (
            Message::AddRegion { index: 1, bytes: 0x0000_0001_8000_0000 },
            padded(&[4, 0, 1, 0, 0, 0, 0, 0x80, 1, 0, 0, 0]),
        ),
        (
            Message::AddRing(AddRing {
                direction: Direction::ToServer,
                index: 2,
                region: 1,
                offset: 0x4080,
                slots_log2: 10,
                private_bytes: 7,
            }),
            padded(&[5, 0, 1, 0, 2, 0, 1, 0, 0x80, 0x40, 0, 0, 10, 7, 0]),
        ),
        (Message::Connect { name: text("net_memif0") }, with_text(&[6, 0], b"net_memif0", 32, &[])),
        (Message::Connected { name: text("m") }, with_text(&[7, 0], b"m", 32, &[])),
        (
            Message::Disconnect { code: 9, reason: text("Device closed") },
            with_text(&[8, 0, 9, 0, 0, 0], b"Device closed", 96, &[]),
        ),
    ];
    for (message, bytes) in cases {
        assert_eq!(message.encode(), bytes, "{message:?}");
        assert_eq!(Message::decode(&bytes), Ok(message));
    }
}

#[test]
fn messages_of_other_sizes_and_types_are_rejected() {
    for bytes in [&[][..], &[1, 0], &[0; 127], &[0; 129]] {
        assert_eq!(Message::decode(bytes), Err(Fault::Message));
    }
    for kind in [0u16, 9, 256, 0xffff] {
        let bytes = padded(&kind.to_ne_bytes());
        assert_eq!(Message::decode(&bytes), Err(Fault::Message), "type {kind}");
    }
    assert!(Message::decode(&padded(&[0xff; MESSAGE_BYTES])).is_err());
    for kind in 1..=8u16 {
        let mut bytes = [0xff; MESSAGE_BYTES];
        bytes[..2].copy_from_slice(&kind.to_ne_bytes());
        assert!(Message::decode(&bytes).is_ok(), "type {kind} of any bytes");
    }
}

#[test]
fn texts_are_truncated_and_printed_without_control_characters() {
    let long: Text<8> = text("0123456789");
    assert_eq!(&long, b"0123456\0");
    assert_eq!(words(&long), "0123456");
    assert_eq!(words(b"no end"), "no end");
    assert_eq!(words(b"\x1b[2J\0after"), "\\x1b[2J");
}
