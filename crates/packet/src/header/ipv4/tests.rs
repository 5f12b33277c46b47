//! Tests of IPv4 headers: a published header, and every reason for rejection.

use super::*;

/// A header with a published checksum, 0xb861 (Wikipedia, "Internet checksum", 2023), with payload
/// for its total length.
fn foreign() -> Vec<u8> {
    let mut bytes = vec![
        0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
        0xc7,
    ];
    bytes.resize(0x73, 0);
    bytes
}

#[test]
fn a_published_header_is_parsed_formatted_and_written() {
    let bytes = foreign();
    let (header, length) = Header::parse(&bytes).unwrap();
    assert_eq!((length, header.payload_bytes, header.protocol), (20, 95, 17));
    let mut out = Vec::new();
    header.emit(&mut out);
    assert_eq!(out, bytes[..20]);
    let text = View::new(&bytes).unwrap().to_string();
    assert_eq!(text, "ipv4 192.168.0.1 > 192.168.0.199 ttl 64 len 115 df");
}

#[test]
fn each_invalid_field_is_rejected_with_its_offset() {
    let refuse = |at: usize, value: u8| {
        let mut bytes = foreign();
        bytes[at] = value;
        if at != 11 {
            set_checksum_if_possible(&mut bytes);
        }
        Header::parse(&bytes).unwrap_err()
    };
    assert_eq!(refuse(0, 0x65), Malformed { at: 0, why: MalformedReason::BadValue(0x65) });
    assert_eq!(refuse(0, 0x44), Malformed { at: 0, why: MalformedReason::BadLength(16) });
    assert_eq!(refuse(2, 1).at, 2);
    assert_eq!(refuse(3, 19), Malformed { at: 2, why: MalformedReason::BadLength(19) });
    assert_eq!(refuse(6, 0x80).at, 6);
    let why = MalformedReason::BadChecksum { want: 0xb861, have: 0xb862 };
    assert_eq!(refuse(11, 0x62), Malformed { at: 10, why });
}

#[test]
fn a_fragment_beyond_the_maximum_packet_length_is_rejected() {
    let mut bytes = foreign();
    bytes[6..8].copy_from_slice(&[0x1f, 0xff]);
    set_checksum(&mut bytes);
    assert_eq!(
        Header::parse(&bytes).unwrap_err(),
        Malformed { at: 6, why: MalformedReason::BadValue(0x1fff) }
    );
    bytes[6..8].copy_from_slice(&[0x1f, 0xf4]);
    set_checksum(&mut bytes);
    assert_eq!(Header::parse(&bytes).unwrap().0.fragment_offset, 0x1ff4 * 8);
}

fn set_checksum_if_possible(bytes: &mut [u8]) {
    if bytes[0] & 0xf >= 5 {
        set_checksum(bytes);
    }
}

#[test]
fn options_are_preserved_and_a_truncated_header_is_rejected() {
    let options = Options::from_bytes(&[7, 7, 4, 0, 0, 0, 0]).unwrap();
    let header = Header { options, ..Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()) };
    let mut out = Vec::new();
    header.emit(&mut out);
    assert_eq!(out.len(), 28);
    assert_eq!(Header::parse(&out).unwrap(), (header, 28));
    assert_eq!(Header::parse(&out[..24]).unwrap_err(), Malformed::truncated(0, 28, 24));
    assert_eq!(View::new(&out[..24]).unwrap().options().len(), 4);
}

#[test]
fn decrementing_the_ttl_keeps_the_checksum_correct() {
    let mut bytes = foreign();
    for left in (0..64).rev() {
        assert!(decrement_ttl(&mut bytes));
        assert_eq!(Header::parse(&bytes).unwrap().0.ttl, left);
    }
    assert!(!decrement_ttl(&mut bytes));
    assert_eq!(Header::parse(&bytes).unwrap().0.ttl, 0);
}

#[test]
fn the_quick_check_agrees_with_the_sum() {
    let mut word = 0x1234_5678_9abc_def1_u64;
    for round in 0..2000 {
        let mut bytes = [0u8; 24];
        for byte in &mut bytes {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = if round & 1 == 0 { (word >> 56) as u8 } else { 0xff };
        }
        for length in [20, 24] {
            bytes[0] = 0x40 | (length / 4) as u8;
            set_checksum(&mut bytes);
            assert!(checksum_is_right(&bytes[..length]));
            bytes[15] ^= 1 << (round % 8);
            assert!(!checksum_is_right(&bytes[..length]));
            bytes[15] ^= 1 << (round % 8);
        }
    }
    assert!(!checksum_is_right(&[0; 20]), "a header of zeros has no valid checksum");
    assert!(!checksum_is_right(&[]));
}
