//! Tests that random actions on random frames change the right fields and keep checksums right.

use super::{Action, Context, Frame};
use crate::key::{Field, Key, VLAN_PRESENT, extract};
use crate::rng::Rng;
use packet::build::Builder;
use packet::field;
use packet::header::{icmp, ipv4, put_u16 as put, tcp, u16_at as get, udp};
use packet::parse::{Packet, set_transport_checksum};

fn apply(action: &Action, frame: &mut Frame) {
    super::apply(action, frame, &mut Context::default()).unwrap();
}

fn ip() -> ipv4::Header {
    ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

fn builder() -> Builder {
    Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

fn random_frame(dice: &mut Rng) -> Frame {
    let mut builder = builder();
    if dice.roll(2) == 0 {
        builder = builder.vlan(dice.roll(0x1_0000) as u16);
    }
    let address = |dice: &mut Rng| (dice.roll(1 << 32) as u32).into();
    let mut header = ipv4::Header::new(address(dice), address(dice));
    header.tos = dice.roll(256) as u8;
    builder = builder.ipv4(header);
    let (source, destination) = (dice.roll(0x1_0000) as u16, dice.roll(0x1_0000) as u16);
    builder = match dice.roll(3) {
        0 => builder.udp(source, destination),
        1 => builder.tcp(tcp::Header::new(source, destination, tcp::SYN)),
        _ => builder.icmp(icmp::Header::echo_request(1, 2)),
    };
    let payload: Vec<u8> = (0..dice.roll(100)).map(|_| dice.roll(256) as u8).collect();
    builder.payload(&payload).frame()
}

/// Draws a change, and returns its effect on the key.
fn random_change(dice: &mut Rng) -> (Action, fn(&mut Key, u64), u64) {
    let value = dice.roll(1 << 48);
    fn l4(key: &mut Key, field: Field, value: u64) {
        if matches!(key.get(Field::IpProto), 6 | 17) {
            key.set(field, value);
        }
    }
    fn tag(key: &mut Key, field: Field, value: u64) {
        let tag = key.get(Field::Vlan) | VLAN_PRESENT;
        key.set(Field::Vlan, tag);
        key.set(field, value);
    }
    match dice.roll(10) {
        0 => (
            Action::SetVlan(value as u16),
            |key, value| tag(key, Field::Vlan, VLAN_PRESENT | (value & 0xfff)),
            value,
        ),
        1 => (
            Action::SetVlanPriority(value as u8 & 7),
            |key, value| tag(key, Field::VlanPriority, value & 7),
            value,
        ),
        2 => (
            Action::PopVlan,
            |key, _| *key = key.with(Field::Vlan, 0).with(Field::VlanPriority, 0),
            0,
        ),
        3 => (
            Action::set(field::Field::EthSrc, value.into()),
            |key, value| key.set(Field::EthSrc, value),
            value,
        ),
        4 => (
            Action::set(field::Field::EthDst, value.into()),
            |key, value| key.set(Field::EthDst, value),
            value,
        ),
        5 => (
            Action::set(field::Field::Ipv4Src, value.into()),
            |key, value| key.set(Field::IpSrc, value),
            value,
        ),
        6 => (
            Action::set(field::Field::Ipv4Dst, value.into()),
            |key, value| key.set(Field::IpDst, value),
            value,
        ),
        7 => (
            Action::set(field::Field::IpDscp, u128::from(value as u8 >> 2)),
            |key, value| key.set(Field::IpDscp, value >> 2 & 0x3f),
            value,
        ),
        8 => (Action::SetL4Src(value as u16), |key, value| l4(key, Field::L4Src, value), value),
        _ => (Action::SetL4Dst(value as u16), |key, value| l4(key, Field::L4Dst, value), value),
    }
}

#[test]
fn random_changes_affect_only_their_fields_and_keep_checksums_correct() {
    for seed in 0..3000 {
        let mut dice = Rng::new(seed);
        let mut frame = random_frame(&mut dice);
        let mut key = extract(1, frame.bytes());
        for _ in 0..=dice.roll(6) {
            let (action, change, value) = random_change(&mut dice);
            apply(&action, &mut frame);
            change(&mut key, value);
            assert_eq!(extract(1, frame.bytes()), key, "seed {seed}, {action:?}");
            let verified = Packet::of(frame.bytes()).verify_checksums();
            assert_eq!(verified, Ok(()), "seed {seed}, {action:?}");
            // A full computation gives the same bytes, apart from the two representations of zero
            // in UDP.
            let mut whole = frame.bytes().to_vec();
            set_transport_checksum(&mut whole);
            assert_eq!(whole, frame.bytes(), "seed {seed}, {action:?}");
        }
    }
}

#[test]
fn the_transport_checksum_follows_the_protocol_in_the_pseudo_header() {
    let tcp_at = 14 + 20 + tcp::CHECKSUM_AT;
    let mut frame = builder().ipv4(ip()).tcp(tcp::Header::new(1, 2, tcp::SYN)).frame();
    let before = get(frame.bytes(), tcp_at);
    apply(&Action::set(field::Field::IpProto, 17), &mut frame);
    assert_eq!(get(frame.bytes(), tcp_at), before - 11);
    // ICMP's checksum covers no pseudo-header.
    let mut frame = builder().ipv4(ip()).icmp(icmp::Header::echo_request(1, 2)).frame();
    let before = frame.bytes()[34..].to_vec();
    apply(&Action::set(field::Field::IpProto, 6), &mut frame);
    assert_eq!(frame.bytes()[34..], before);
}

#[test]
fn a_udp_checksum_of_zero_stays_and_a_wrong_one_stays_wrong() {
    let mut frame = builder().ipv4(ip()).udp(1, 2).payload(b"data").frame();
    let at = 14 + 20 + udp::CHECKSUM_AT;
    put(frame.bytes_mut(), at, 0);
    apply(&Action::set(field::Field::Ipv4Dst, 0x0102_0304), &mut frame);
    apply(&Action::SetL4Src(77), &mut frame);
    assert_eq!(get(frame.bytes(), at), 0);

    let mut wrong = builder().ipv4(ip()).udp(1, 2).payload(b"data").frame();
    wrong.bytes_mut()[43] ^= 0xff;
    apply(&Action::set(field::Field::Ipv4Dst, 0x0102_0304), &mut wrong);
    assert!(Packet::of(wrong.bytes()).verify_checksums().is_err());
}

#[test]
fn setting_an_absent_field_changes_nothing() {
    let ip_changes = [
        Action::set(field::Field::Ipv4Src, 0x0101_0101),
        Action::set(field::Field::Ipv4Dst, 0x0101_0101),
        Action::set(field::Field::IpDscp, 0x3f),
        Action::SetL4Src(1),
        Action::SetL4Dst(1),
        Action::PopVlan,
    ];
    let mut bad_length = builder().ipv4(ip()).udp(1, 2).frame();
    bad_length.bytes_mut()[16] = 0xff;
    let frames = [
        builder().ether_type(0x86dd).payload(&[7; 60]).frame(),
        builder().ether_type(0x88cc).payload(&[7; 60]).frame(),
        bad_length,
        Frame::from_bytes(&[1; 13]),
    ];
    for frame in &frames {
        for action in &ip_changes {
            let mut changed = frame.clone();
            apply(action, &mut changed);
            assert_eq!(changed.bytes(), frame.bytes(), "{action:?}");
        }
    }
    let mut icmp = builder().ipv4(ip()).icmp(icmp::Header::echo_request(1, 2)).frame();
    let before = icmp.bytes().to_vec();
    apply(&Action::SetL4Dst(9), &mut icmp);
    assert_eq!(icmp.bytes(), before);
}

#[test]
fn only_the_first_fragment_has_an_l4_header_to_change() {
    let whole = builder().ipv4(ip()).udp(1, 2).payload(&[5; 40]).frame();
    let fragment = |offset: u16| {
        let mut frame = whole.clone();
        put(frame.bytes_mut(), 14 + ipv4::FRAGMENT_AT, 0x2000 | offset);
        ipv4::set_checksum(&mut frame.bytes_mut()[14..]);
        frame
    };
    let actions = [Action::set(field::Field::Ipv4Src, 0xac10_0909), Action::SetL4Dst(99)];
    let (mut changed, mut first, mut later) = (whole.clone(), fragment(0), fragment(3));
    let l4_later = later.bytes()[34..].to_vec();
    for action in &actions {
        apply(action, &mut changed);
        apply(action, &mut first);
        apply(action, &mut later);
    }
    // The sum covers the datagram, so the first fragment's sum changes like that of the whole
    // datagram.
    assert_eq!(first.bytes()[34..], changed.bytes()[34..]);
    assert_eq!(later.bytes()[34..], l4_later);
    assert_eq!(later.bytes()[26..30], [172, 16, 9, 9]);
    for frame in [&first, &later] {
        assert_eq!(packet::checksum::checksum(&frame.bytes()[14..34]), 0);
    }
}

#[test]
fn setting_dscp_keeps_the_lower_bits() {
    let header = ipv4::Header { tos: 0x03, ..ip() };
    let mut frame = builder().ipv4(header).udp(1, 2).frame();
    apply(&Action::set(field::Field::IpDscp, 0x2e), &mut frame);
    assert_eq!(frame.bytes()[15], 0xbb);
}

#[test]
fn a_frame_of_the_maximum_length_gets_no_tag() {
    let mut frame = Frame::from_bytes(&vec![0; packet::frame::FRAME_BYTES_MAX]);
    let before = frame.bytes().to_vec();
    apply(&Action::SetVlan(5), &mut frame);
    assert_eq!(frame.bytes(), before);
}
