//! Tests beyond the model: wrong checksums, fields that change the meaning of later headers, nested
//! packets, and truncated frames.

use packet::build::Builder;
use packet::checksum::{checksum, sum};
use packet::frame::FRAME_BYTES_MAX;
use packet::header::{icmp, ipv4, ipv6, tcp, u16_at, u32_at};
use packet::parse::{Fragment, Packet, Transport};

use dataplane::rewrite::InvalidTtl;

use super::*;

fn builder() -> Builder {
    Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
}

fn v4() -> ipv4::Header {
    ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

fn v6() -> ipv6::Header {
    ipv6::Header::new("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
}

fn done(frame: &mut Frame, action: &Action) -> Result<(), InvalidTtl> {
    rewrite::apply(action, frame, &mut Context::default())
}

fn set(frame: &mut Frame, field: Field, value: u128) {
    done(frame, &Action::SetField { field, value, mask: field.ones() }).expect("no time to live");
}

/// Returns the difference of two sums in ones' complement arithmetic.
fn apart(have: u16, right: u16) -> u32 {
    (u32::from(have) + 0xffff - u32::from(right)) % 0xffff
}

#[test]
fn a_wrong_checksum_keeps_its_error() {
    every_kind(4, |mut model, dice| {
        let right = model.bytes();
        let headers = Headers::of(&right);
        let at = usize::from(headers.transport_at);
        let sctp = headers.get(Field::SctpSrc, &right).is_some();
        let place = match headers.get(Field::IpProto, &right) {
            _ if headers.fragment != Fragment::Whole => return,
            Some(6) => at + 16,
            Some(17) => at + 6,
            Some(58 | 1) => at + 2,
            Some(132) => at + 8,
            _ => return,
        };
        let mut wrong = right.clone();
        wrong[place] ^= 0x35;
        let mut frame = Frame::from_bytes(&wrong);
        for _ in 0..5 {
            let field =
                dice.pick(&fields().filter(|field| *field != Field::MplsBos).collect::<Vec<_>>());
            let (value, mask) = (random_value(field, dice), random_mask(field, dice));
            let action = Action::SetField { field, value: value & mask, mask };
            done(&mut frame, &action).expect("no time to live");
            change(&action, &mut model).expect("no time to live");
        }
        let (bytes, anew) = (frame.bytes(), model.bytes());
        if sctp {
            let errors = [(&wrong, &right), (&bytes.to_vec(), &anew)]
                .map(|(have, right)| u32_at(have, place) ^ u32_at(right, place));
            assert_eq!(errors[0], errors[1], "{model:?}");
        } else {
            let errors = [(&wrong, &right), (&bytes.to_vec(), &anew)]
                .map(|(have, right)| apart(u16_at(have, place), u16_at(right, place)));
            assert_eq!(errors[0], errors[1], "{model:?}");
        }
    });
}

#[test]
fn all_twelve_tcp_flags_can_be_set() {
    let mut frame = builder().ipv4(v4()).tcp(tcp::Header::new(1, 2, tcp::SYN)).frame();
    set(&mut frame, Field::TcpFlags, 0xfff);
    assert_eq!(frame.bytes()[46..48], [0x5f, 0xff]);
    assert_eq!(Packet::of(frame.bytes()).verify_checksums(), Ok(()));
    set(&mut frame, Field::TcpFlags, 0x101);
    assert_eq!(frame.bytes()[46..48], [0x51, 0x01]);
    assert_eq!(Packet::of(frame.bytes()).verify_checksums(), Ok(()));
}

#[test]
fn setting_the_protocol_updates_only_the_checksum() {
    let before = builder().vlan(3).ipv4(v4()).tcp(tcp::Header::new(1, 2, 0)).bytes();
    let mut frame = Frame::from_bytes(&before);
    set(&mut frame, Field::IpProto, 17);
    assert_eq!(frame.bytes()[27], 17);
    assert_eq!(checksum(&frame.bytes()[18..38]), 0);
    // TCP's checksum is updated for the protocol in the pseudo-header, from 6 to 17.
    let (mut segment, sum) = (before[38..].to_vec(), u16::from_be_bytes([before[54], before[55]]));
    segment[16..18].copy_from_slice(&(sum - 11).to_be_bytes());
    assert_eq!(frame.bytes()[38..], segment);
    set(&mut frame, Field::EthType, 0x88b5);
    assert_eq!(frame.bytes()[12..18], [0x81, 0, 0, 3, 0x88, 0xb5]);
    assert_eq!(frame.bytes()[38..], segment);

    let chain = builder().ipv6(v6()).extension(60, &[0; 7]).udp(1, 2).bytes();
    let mut frame = Frame::from_bytes(&chain);
    set(&mut frame, Field::IpProto, 59);
    assert_eq!((frame.bytes()[20], frame.bytes()[54]), (60, 59));
    // An IEEE 802.3 frame has no type to set.
    let llc = builder().payload(&[0x42; 60]).bytes();
    let mut frame = Frame::from_bytes(&llc);
    set(&mut frame, Field::EthType, 0x88b5);
    assert_eq!(frame.bytes(), llc);
}

#[test]
fn read_only_fields_do_not_change() {
    let before = builder().ipv6(v6()).extension(60, &[0; 7]).udp(1, 2).bytes();
    let mut frame = Frame::from_bytes(&before);
    let mut context = Context { in_port: 4, in_phy_port: 5, metadata: 6, tunnel_id: 7 };
    let was = context;
    let fixed = [Field::InPort, Field::InPhyPort, Field::Ipv6Exthdr, Field::ActsetOutput];
    for field in fixed.into_iter().chain([Field::PacketType]) {
        let action = Action::SetField { field, value: field.ones(), mask: field.ones() };
        assert_eq!(rewrite::apply(&action, &mut frame, &mut context), Ok(()));
    }
    assert_eq!((frame.bytes(), context), (&before[..], was));
}

#[test]
fn the_ingress_port_and_extension_header_bits_can_be_copied() {
    let mut frame = builder().ipv6(v6()).extension(60, &[0; 7]).udp(1, 2).frame();
    let mut context = Context { in_port: 0x1234, ..Context::default() };
    let mut copy = |from, to, to_bit, bits| {
        let action = Action::CopyField { from, from_bit: 0, to, to_bit, bits };
        rewrite::apply(&action, &mut frame, &mut context).expect("no time to live");
    };
    copy(Field::InPort, Field::Metadata, 8, 16);
    copy(Field::Ipv6Exthdr, Field::UdpDst, 0, 9);
    assert_eq!(context.metadata, 0x12_3400);
    assert_eq!(Headers::of(frame.bytes()).get(Field::UdpDst, frame.bytes()), Some(8));
    assert_eq!(Packet::of(frame.bytes()).verify_checksums(), Ok(()));
}

/// Builds a frame with a routing header of this type and this many segments left.
pub fn routed(kind: u8, left: u8) -> Vec<u8> {
    let mut routing = vec![4, kind, left, 0, 0, 0, 0];
    routing.extend_from_slice(&[0xfd; 16]);
    routing.extend_from_slice(&[0xfe; 16]);
    builder().ipv6(v6()).extension(43, &routing).udp(1, 2).payload(b"data").bytes()
}

#[test]
fn a_checksum_for_another_destination_is_not_updated() {
    for (kind, left) in [(0, 0), (0, 1), (4, 0), (4, 1)] {
        let before = routed(kind, left);
        let mut frame = Frame::from_bytes(&before);
        set(&mut frame, Field::Ipv6Dst, 99);
        assert_eq!(frame.bytes()[54..] == before[54..], left != 0);
        assert_eq!(Packet::of(frame.bytes()).verify_checksums(), Ok(()));
        set(&mut frame, Field::Ipv6Src, 99);
        assert_ne!(frame.bytes()[54..], before[54..]);
        assert_eq!(Packet::of(frame.bytes()).verify_checksums(), Ok(()));
    }
}

#[test]
fn the_ttl_is_copied_between_ip_in_ip_headers() {
    let inner = builder().ipv4(ipv4::Header { ttl: 9, ..v4() }).udp(1, 2).bytes_unpadded();
    let outer = ipv4::Header { ttl: 70, protocol: 4, ..v4() };
    let both = |outer: u8, inner: u8, frame: &Frame| {
        assert_eq!((frame.bytes()[22], frame.bytes()[42]), (outer, inner));
        assert_eq!(checksum(&frame.bytes()[14..34]), 0);
        assert_eq!(checksum(&frame.bytes()[34..54]), 0);
    };
    let mut frame = builder().ipv4(outer).payload(&inner[14..]).frame();
    done(&mut frame, &Action::CopyTtlIn).unwrap();
    both(70, 70, &frame);
    let mut frame = builder().ipv4(outer).payload(&inner[14..]).frame();
    done(&mut frame, &Action::CopyTtlOut).unwrap();
    both(9, 9, &frame);
    // The payload resembles IP but is not valid.
    let mut frame = builder().ipv4(outer).payload(&[0x45; 30]).frame();
    done(&mut frame, &Action::CopyTtlOut).unwrap();
    assert_eq!(frame.bytes()[22], 70);
    let outer = ipv6::Header { hop_limit: 8, next_header: 4, ..v6() };
    let mut frame = builder().ipv6(outer).payload(&inner[14..]).frame();
    done(&mut frame, &Action::CopyTtlOut).unwrap();
    assert_eq!(frame.bytes()[21], 9);
}

#[test]
fn the_ttl_is_not_decremented_below_one() {
    for (ttl, reported) in [(0, Err(InvalidTtl)), (1, Err(InvalidTtl)), (2, Ok(()))] {
        let mut frame = builder().ipv4(ipv4::Header { ttl, ..v4() }).udp(1, 2).frame();
        assert_eq!(done(&mut frame, &Action::DecIpTtl), reported);
        assert_eq!(frame.bytes()[22], if reported.is_ok() { 1 } else { ttl });
        let mut frame = builder().ipv4(v4()).udp(1, 2).frame();
        done(&mut frame, &Action::PushMpls(0x8847)).unwrap();
        done(&mut frame, &Action::SetMplsTtl(ttl)).unwrap();
        assert_eq!(done(&mut frame, &Action::DecMplsTtl), reported);
        // MPLS hides the IP TTL.
        assert_eq!(done(&mut frame, &Action::DecIpTtl), Ok(()));
        assert_eq!((frame.bytes()[17], frame.bytes()[26]), (if ttl == 2 { 1 } else { ttl }, 64));
    }
}

#[test]
fn the_checksum_of_a_fragmented_datagram_covers_all_fragments() {
    let whole = builder().ipv4(v4()).udp(1, 2).payload(&[5; 40]).frame();
    let fragment = |offset: u16| {
        let mut bytes = whole.bytes().to_vec();
        bytes[20..22].copy_from_slice(&(0x2000 | offset).to_be_bytes());
        ipv4::set_checksum(&mut bytes[14..]);
        Frame::from_bytes(&bytes)
    };
    let (mut changed, mut first, mut later) = (whole.clone(), fragment(0), fragment(3));
    for frame in [&mut changed, &mut first, &mut later] {
        set(frame, Field::Ipv4Src, 0xac10_0909);
        set(frame, Field::UdpDst, 99);
    }
    assert_eq!(first.bytes()[34..], changed.bytes()[34..]);
    assert_eq!(later.bytes()[34..], whole.bytes()[34..]);
    assert_eq!(later.bytes()[26..30], [172, 16, 9, 9]);
    for frame in [&first, &later] {
        assert_eq!(sum(&frame.bytes()[14..34]), 0xffff);
    }
}

#[test]
fn a_udp_checksum_of_zero_stays() {
    for mut bytes in [
        builder().ipv4(v4()).udp(1, 2).payload(b"data").bytes(),
        builder().ipv6(v6()).udp(1, 2).payload(b"data").bytes(),
    ] {
        let at = usize::from(Headers::of(&bytes).transport_at) + 6;
        bytes[at..at + 2].fill(0);
        let mut frame = Frame::from_bytes(&bytes);
        for field in [Field::UdpSrc, Field::Ipv4Dst, Field::Ipv6Dst] {
            set(&mut frame, field, 77);
        }
        assert_eq!(u16_at(frame.bytes(), at), 0);
    }
}

#[test]
fn a_pop_sets_the_requested_ethernet_type() {
    let mut frame = builder().ipv4(v4()).icmp(icmp::Header::echo_request(1, 2)).frame();
    let before = frame.bytes().to_vec();
    done(&mut frame, &Action::PushMpls(0x8847)).unwrap();
    done(&mut frame, &Action::PopMpls(0x1234)).unwrap();
    assert_eq!(frame.bytes()[12..14], [0x12, 0x34]);
    assert_eq!(frame.bytes()[14..], before[14..]);
    // No entry is left.
    done(&mut frame, &Action::PopMpls(0x0800)).unwrap();
    assert_eq!(frame.bytes()[12..14], [0x12, 0x34]);
}

#[test]
fn a_frame_of_the_maximum_length_does_not_grow() {
    let full = builder().vlan(3).ipv4(v4()).udp(1, 2).frame_bytes(FRAME_BYTES_MAX).bytes();
    let snap = builder().snap().ipv4(v4()).udp(1, 2).frame_bytes(1514).bytes();
    // 1500 is a length and 1536 is a type: eight entries fit.
    let mut frame = Frame::from_bytes(&snap);
    for entries in 1..12 {
        done(&mut frame, &Action::PushMplsBehindVlan(0x8847)).unwrap();
        assert_eq!(frame.len(), 1514 + 4 * entries.min(8));
    }
    for action in pushes() {
        let mut frame = Frame::from_bytes(&full);
        done(&mut frame, &action).unwrap();
        assert_eq!(frame.bytes(), full, "{action:?}");
    }
}

fn pushes() -> [Action; 4] {
    [
        Action::PushVlan(0x8100),
        Action::PushMpls(0x8847),
        Action::PushMplsBehindVlan(0x8847),
        Action::PushPbb(0x88e7),
    ]
}

/// Returns every action once.
fn every_action() -> Vec<Action> {
    let sets = Field::ALL.map(|field| Action::SetField { field, value: 0, mask: field.ones() });
    let others = [
        Action::PopVlan,
        Action::PopMpls(0x0800),
        Action::PopPbb,
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::SetMplsTtl(3),
        Action::DecMplsTtl,
        Action::SetIpTtl(3),
        Action::DecIpTtl,
        Action::SetVlan(7),
        Action::SetVlanPriority(7),
        Action::SetL4Src(7),
        Action::SetL4Dst(7),
    ];
    sets.into_iter().chain(pushes()).chain(others).collect()
}

#[test]
fn any_action_on_a_truncated_frame_stays_within_it() {
    let actions = every_action();
    every_kind(1, |model, dice| {
        let bytes = model.bytes();
        let length = dice.roll(bytes.len() as u64 + 1) as usize;
        for length in [length, length.min(60), length.min(40), length.min(20), length.min(14)] {
            for action in &actions {
                let mut frame = Frame::from_bytes(&bytes[..length]);
                let mut context = Context::default();
                let _ = rewrite::apply(action, &mut frame, &mut context);
                let grown = frame.len() as isize - length as isize;
                assert!([-18, -4, 0, 4, 18].contains(&grown), "{action:?} adds {grown}");
                assert!(length >= 14 || grown == 0, "{action:?} adds {grown} to {length}");
            }
        }
    });
}

#[test]
fn correct_checksums_of_unusual_frames_stay_correct() {
    let actions = every_action();
    let mut looked_at = 0;
    every_kind(6, |model, dice| {
        let mut bytes = model.bytes();
        let at = 12 + dice.roll(bytes.len() as u64 - 12) as usize;
        bytes[at] ^= 1 << dice.roll(8);
        // The odd frame gets a correct checksum.
        packet::parse::set_transport_checksum(&mut bytes);
        for _ in 0..60 {
            let mut frame = Frame::from_bytes(&bytes);
            let action = if dice.roll(3) == 0 {
                dice.pick(&actions)
            } else {
                let field = dice.pick(&Field::ALL);
                Action::SetField { field, value: random_value(field, dice), mask: field.ones() }
            };
            let _ = done(&mut frame, &action);
            let (before, after) = (Headers::of(&bytes), Headers::of(frame.bytes()));
            let same = (before.network, before.transport, before.fragment, before.exthdr)
                == (after.network, after.transport, after.fragment, after.exthdr);
            if same && !before.routed && Packet::of(&bytes).verify_checksums().is_ok() {
                let right = Packet::of(frame.bytes()).verify_checksums();
                assert_eq!(right, Ok(()), "{action:?} of {}", hex(&bytes));
                looked_at += usize::from(after.transport != Transport::None);
            }
        }
    });
    assert!(looked_at > 5000, "{looked_at}");
}
