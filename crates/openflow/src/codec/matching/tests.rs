//! Tests of small matches byte for byte, and of invalid ones.

use super::*;
use crate::model::matching::{ExperimenterField, Field, VLAN_PRESENT};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn read(version: Version, hex: &str) -> Result<Match, ErrorCode> {
    let bytes = bytes(hex);
    let mut reader = Reader::new(&bytes, 0);
    let matching = read_match(version, &mut reader).map_err(|fault| fault.answer)?;
    assert_eq!(reader.left(), 0, "{hex}");
    Ok(matching)
}

fn check(version: Version, matching: &Match, hex: &str) {
    let mut out = Vec::new();
    put_match(version, matching, &mut out).unwrap();
    assert_eq!(out, bytes(hex), "{matching} in {version}");
    assert_eq!(read(version, hex), Ok(matching.clone()), "{version}");
}

#[test]
fn a_match_is_padded_to_eight_bytes() {
    check(Version::V1_3, &Match::ANY, "0001 0004 00000000");
    let ipv4 = Match::ANY.with(Field::EthType, 0x0800u16);
    let masked = ipv4.clone().with_masked(Field::Ipv4Dst, 0x0a00_0100u32, 0xff00_ff00u32);
    let hex = "0001 0016 80000a02 0800 80001908 0a000100 ff00ff00 0000";
    check(Version::V1_2, &masked, hex);
    let tag = Match::ANY.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
    check(Version::V1_4, &tag, "0001 000c 80000d04 1000 1000 00000000");
    let flags = ipv4.with(Field::IpProto, 6u8).with(Field::TcpFlags, 2u8);
    let new = "0001 0015 80000a02 0800 80001401 06 80005402 0002 000000";
    check(Version::V1_5, &flags, new);
    let extension = "0001 0019 80000a02 0800 80001401 06 ffff5406 4f4e4600 0002 00000000000000";
    check(Version::V1_3, &flags, extension);
}

#[test]
fn invalid_matches_have_specific_errors() {
    for (hex, answer) in [
        ("0000 0004 00000000", ErrorCode::MatchBadType),
        ("0001 0003 00000000", ErrorCode::MatchBadLength),
        ("0001 0010 80000a02 08000000", ErrorCode::MatchBadLength),
        // A number that does not exist in any version.
        ("0001 000a 8000fe02 0800 000000000000", ErrorCode::MatchBadField),
        ("0001 0009 80000a01 08 00000000000000", ErrorCode::MatchBadLength),
        // A DSCP of seven bits; a VLAN ID without the tag bit.
        ("0001 000f 80000a02 0800 80001001 40 00", ErrorCode::MatchBadValue),
        ("0001 000a 80000c02 0007 000000000000", ErrorCode::MatchBadValue),
        ("0001 000c 80000b04 0800 ff00 00000000", ErrorCode::MatchBadMask),
        ("0001 0010 80000708 0a00000000000000", ErrorCode::MatchBadLength),
        ("0001 000c 80000d04 1001 1000 00000000", ErrorCode::MatchBadWildcards),
        ("0001 000c 80001604 0a000001 00000000", ErrorCode::MatchBadPrerequisite),
        // The Ethernet type after the address that requires it.
        ("0001 0012 80001604 0a000001 80000a02 0800 000000000000", ErrorCode::MatchBadPrerequisite),
        ("0001 0010 80000a02 0800 80000a02 0800", ErrorCode::MatchDuplicateField),
    ] {
        assert_eq!(read(Version::V1_3, hex), Err(answer), "{hex}");
    }
}

#[test]
fn experimenter_fields_round_trip() {
    let field = ExperimenterField { class: 1, number: 0, has_mask: false, body: vec![0, 0, 0, 5] };
    let matching = Match::ANY.with_experimenter(field);
    check(Version::V1_3, &matching, "0001 000c 00010004 00000005 00000000");
    let mut out = Vec::new();
    let refused = put_match(Version::V1_1, &matching, &mut out);
    assert_eq!(refused, Err(MessagePart::ExperimenterField));
}

#[test]
fn a_repeated_experimenter_field_is_rejected_at_any_position() {
    // Class, number, mask bit and length; then the experimenter ID.
    let (one, two, three) = ("ffff0004 00000001", "ffff0004 00000002", "ffff0004 00000003");
    let masked_one = "ffff0104 00000001";
    let row = |fields: [&str; 3]| format!("0001 001c {} 00000000", fields.concat());
    let twice = row([one, two, masked_one]);
    assert_eq!(read(Version::V1_3, &twice), Err(ErrorCode::MatchDuplicateField));
    let once = read(Version::V1_3, &row([three, one, two])).unwrap();
    assert_eq!(once.experimenter().len(), 3);
    check(Version::V1_3, &once, &row([one, two, three]));
}

#[test]
fn experimenter_field_numbers_above_seven_bits_are_not_encoded() {
    let field = ExperimenterField { class: 1, number: 0x80, has_mask: false, body: vec![0; 4] };
    let refused = put_match(Version::V1_3, &Match::ANY.with_experimenter(field), &mut Vec::new());
    assert!(matches!(refused, Err(MessagePart::Value { value: 0x80, .. })), "{refused:?}");
}

#[test]
fn the_match_of_1_1_has_88_bytes_and_wildcard_masks() {
    let label = Match::ANY
        .with(Field::InPort, 3u8)
        .with_masked(Field::Metadata, 1u8, 0xffu8)
        .with(Field::EthType, 0x8847u16)
        .with(Field::MplsLabel, 0x12345u32);
    let hex = "0000 0058 00000003 000002f6
        000000000000 ffffffffffff 000000000000 ffffffffffff 0000 00 00 8847 00 00
        00000000 ffffffff 00000000 ffffffff 0000 0000 00012345 00 000000
        0000000000000001 ffffffffffffff00";
    check(Version::V1_1, &label, hex);
    let unknown = hex.replacen("000002f6", "000402f6", 1);
    assert_eq!(read(Version::V1_1, &unknown), Err(ErrorCode::MatchBadWildcards));
    let large = hex.replacen("00012345", "00112345", 1);
    assert_eq!(read(Version::V1_1, &large), Err(ErrorCode::MatchBadValue));
    let ipv6 = Match::ANY.with(Field::EthType, 0x86ddu16).with(Field::Ipv6Src, 1u8);
    let refused = put_match(Version::V1_1, &ipv6, &mut Vec::new());
    assert_eq!(refused, Err(MessagePart::Field(Field::Ipv6Src)));
}

#[test]
fn an_icmp_type_in_1_1_keeps_16_bits_and_matches_the_low_byte() {
    let echo = Match::ANY
        .with(Field::EthType, 0x0800u16)
        .with(Field::IpProto, 1u8)
        .with(Field::Icmpv4Type, 8u8)
        .with(Field::Icmpv4Code, 3u8)
        .with_icmp_upper([1, 2]);
    let hex = "0000 0058 00000000 00000317
        000000000000 ffffffffffff 000000000000 ffffffffffff 0000 00 00 0800 00 01
        00000000 ffffffff 00000000 ffffffff 0108 0203 00000000 00 000000
        0000000000000000 ffffffffffffffff";
    check(Version::V1_1, &echo, hex);
}
