//! Tests of frames with one contradiction each, and of the depth of parsing.

use proptest::prelude::*;

use super::*;
use crate::build::Builder;
use crate::header::options::Options;

const A: ethernet::Mac = [2, 0, 0, 0, 0, 1];
const B: ethernet::Mac = [2, 0, 0, 0, 0, 2];

fn ip() -> ipv4::Header {
    ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

fn udp_frame() -> Vec<u8> {
    Builder::new(B, A).ipv4(ip()).udp(4000, 9).payload(b"hello").bytes()
}

#[test]
fn a_datagram_is_parsed_without_its_padding() {
    let bytes = udp_frame();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.ports(), Some((4000, 9)));
    assert_eq!((packet.payload(), bytes.len()), (&b"hello"[..], 60));
    assert_eq!((packet.layers.network_at, packet.layers.transport_at), (14, 34));
}

#[test]
fn tags_are_parsed_up_to_the_limit() {
    for depth in 0..=vlan::VLAN_DEPTH_MAX + 1 {
        let mut builder = Builder::new(B, A);
        for vid in 0..depth {
            builder = builder.vlan(vid as u16 + 1);
        }
        let bytes = builder.ipv4(ip()).udp(1, 2).bytes();
        let packet = Packet::of(&bytes);
        assert_eq!(usize::from(packet.layers.tags), depth.min(vlan::VLAN_DEPTH_MAX));
        if depth <= vlan::VLAN_DEPTH_MAX {
            assert_eq!(packet.ports(), Some((1, 2)));
            assert_eq!(packet.vlan(0).map(|view| view.vid()), (depth > 0).then_some(1));
        } else {
            let why = MalformedReason::LimitReached("VLAN_DEPTH_MAX");
            assert_eq!(Packet::parse(&bytes).unwrap_err(), Malformed { at: 46, why });
            assert_eq!(packet.layers.ether_type, ethernet::TYPE_VLAN);
        }
        assert!(packet.vlan(packet.layers.tags).is_none());
    }
}

#[test]
fn parsing_a_truncated_frame_stops_at_its_end() {
    let tagged = Builder::new(B, A).vlan(5).ipv4(ip()).udp(4000, 9).bytes_unpadded();
    let cut = |length: usize| Layers::of(&tagged[..length]);
    assert_eq!(cut(13).fault, Some(Malformed::truncated(0, 14, 13)));
    assert_eq!(cut(17).fault, Some(Malformed::truncated(14, 4, 3)));
    assert_eq!(cut(37).fault, Some(Malformed::truncated(18, 20, 19)));
    // From here on the IPv4 header is complete, and its total length exceeds the bytes.
    assert_eq!(cut(45).fault, Some(Malformed { at: 20, why: MalformedReason::BadLength(28) }));
    assert_eq!((cut(45).network, cut(45).ether_type), (Network::None, ethernet::TYPE_IPV4));
    assert_eq!(cut(46).fault, None);
}

#[test]
fn an_invalid_network_header_leaves_only_the_ethernet_type() {
    for (at, value) in [(14, 0x44), (14, 0x55), (14, 0x4f), (16, 0xff), (17, 10)] {
        let mut bytes = udp_frame();
        bytes[at] = value;
        let layers = Layers::of(&bytes);
        assert_eq!((layers.network, layers.transport), (Network::None, Transport::None));
        assert_eq!((layers.ether_type, layers.network_at), (ethernet::TYPE_IPV4, 14));
        assert!(layers.fault.is_some(), "byte {at} = {value:#x}");
    }
}

#[test]
fn an_invalid_udp_length_is_a_fault_but_the_ports_are_parsed() {
    for length in [0, 7, 14] {
        let mut bytes = udp_frame();
        bytes[39] = length;
        let packet = Packet::of(&bytes);
        let why = MalformedReason::BadLength(length.into());
        assert_eq!(packet.layers.fault, Some(Malformed { at: 38, why }));
        assert_eq!(packet.ports(), Some((4000, 9)));
        assert_eq!(packet.payload(), b"hello");
    }
    let mut bytes = udp_frame();
    bytes[39] = 10;
    assert_eq!(Packet::of(&bytes).payload(), b"he");
}

#[test]
fn only_the_first_fragment_has_ports() {
    let fragment = |more_fragments, fragment_offset| {
        let header = ipv4::Header { more_fragments, fragment_offset, ..ip() };
        let bytes = Builder::new(B, A).ipv4(header).udp(7, 8).payload(&[0; 16]).bytes();
        let packet = Packet::of(&bytes);
        (packet.layers.fragment, packet.ports(), packet.layers.protocol, packet.layers.fault)
    };
    assert_eq!(fragment(false, 0), (Fragment::Whole, Some((7, 8)), 17, None));
    assert_eq!(fragment(true, 0), (Fragment::First, Some((7, 8)), 17, None));
    assert_eq!(fragment(true, 8), (Fragment::Later, None, 17, None));
    assert_eq!(fragment(false, 8), (Fragment::Later, None, 17, None));
}

#[test]
fn the_udp_length_of_a_first_fragment_may_exceed_it() {
    let header = ipv4::Header { more_fragments: true, ..ip() };
    let mut bytes = Builder::new(B, A).ipv4(header).udp(7, 8).payload(&[9; 16]).bytes();
    bytes[38..40].copy_from_slice(&3000u16.to_be_bytes());
    let packet = Packet::of(&bytes);
    assert_eq!((packet.layers.fault, packet.payload()), (None, &[9; 16][..]));
}

#[test]
fn ip_options_shift_the_ports() {
    let options = Options::from_bytes(&[1; 12]).unwrap();
    let header = ipv4::Header { options, ..ip() };
    let bytes = Builder::new(B, A).ipv4(header).udp(7, 8).bytes();
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.ports(), packet.layers.transport_at), (Some((7, 8)), 46));
}

#[test]
fn only_snap_gives_802_3_frames_an_ethernet_type() {
    let plain = Builder::new(B, A).payload(&[0x42, 0x42, 3, 0, 0]).bytes();
    let layers = Layers::of(&plain);
    assert_eq!((layers.ether_type, layers.fault), (ethernet::TYPE_NONE, None));
    assert_eq!((layers.payload(), layers.network), (17..19, Network::None));

    let snap = Builder::new(B, A).vlan(3).snap().ipv4(ip()).udp(7, 8).bytes();
    let packet = Packet::parse(&snap).unwrap();
    assert_eq!((packet.ports(), packet.layers.network_at), (Some((7, 8)), 26));

    let mut long = plain.clone();
    long[12..14].copy_from_slice(&100u16.to_be_bytes());
    assert_eq!(
        Layers::of(&long).fault,
        Some(Malformed { at: 12, why: MalformedReason::BadLength(100) })
    );
    let mut short = plain;
    short[13] = 2;
    assert_eq!(Layers::of(&short).fault, Some(Malformed::truncated(14, 3, 2)));
}

#[test]
fn a_tcp_header_beyond_the_packet_is_a_fault() {
    let header = tcp::Header::new(5, 6, tcp::SYN);
    let mut bytes = Builder::new(B, A).ipv4(ip()).tcp(header).payload(&[1, 2]).bytes();
    bytes[46] = 0x60;
    let packet = Packet::of(&bytes);
    assert_eq!(
        packet.layers.fault,
        Some(Malformed { at: 46, why: MalformedReason::BadLength(24) })
    );
    assert_eq!(packet.ports(), Some((5, 6)));
    assert!(Packet::parse(&bytes).is_err());
}

#[test]
fn strict_parsing_rejects_what_tolerant_parsing_accepts() {
    let mut group = udp_frame();
    group[6] |= 1;
    assert_eq!(Packet::of(&group).layers.fault, None);
    assert_eq!(Packet::parse(&group).unwrap_err().at, 6);
    let mut checksum = udp_frame();
    checksum[24] ^= 1;
    assert_eq!(Packet::of(&checksum).layers.fault, None);
    assert_eq!(Packet::parse(&checksum).unwrap_err().at, 24);
    assert_eq!(Packet::of(&checksum).verify_checksums().unwrap_err().at, 24);
}

#[test]
fn an_absent_udp_checksum_is_valid_in_ipv4_and_invalid_in_ipv6() {
    let mut four = udp_frame();
    four[40..42].fill(0);
    assert_eq!(Packet::of(&four).verify_checksums(), Ok(()));
    let header = ipv6::Header::new("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let mut six = Builder::new(B, A).ipv6(header).udp(1, 2).payload(b"six").bytes();
    assert_eq!(Packet::of(&six).verify_checksums(), Ok(()));
    six[60..62].fill(0);
    assert_eq!(Packet::of(&six).verify_checksums().unwrap_err().at, 60);
    assert!(set_transport_checksum(&mut six));
    assert_eq!(Packet::of(&six).verify_checksums(), Ok(()));
}

#[test]
fn the_checksum_of_zeros_is_all_ones() {
    // An echo reply whose identifier, sequence number and data are zero, without a pseudo-header.
    let header = ipv4::Header { protocol: ipv4::PROTOCOL_ICMP, ..ip() };
    let mut bytes = Builder::new(B, A).ipv4(header).payload(&[0; 18]).bytes();
    assert_eq!(
        Packet::of(&bytes).verify_checksums(),
        Err(Malformed { at: 36, why: MalformedReason::BadChecksum { want: 0xffff, have: 0 } })
    );
    assert!(set_transport_checksum(&mut bytes));
    assert_eq!(bytes[36..38], [0xff, 0xff]);
    assert_eq!(Packet::of(&bytes).verify_checksums(), Ok(()));
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ffff_and_is_invalid_over_ipv6() {
    let header = ipv6::Header::new("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let with = |payload: &[u8]| Builder::new(B, A).ipv6(header).udp(1, 2).payload(payload).bytes();
    // Storing the checksum over a zero word in that word makes the sum all ones.
    let checksum = with(&[0, 0])[60..62].to_vec();
    let mut bytes = with(&checksum);
    assert_eq!(bytes[60..62], [0xff, 0xff]);
    assert_eq!(Packet::of(&bytes).verify_checksums(), Ok(()));
    bytes[60..62].fill(0);
    assert_eq!(Packet::of(&bytes).verify_checksums().unwrap_err().at, 60);
}

#[test]
fn bytes_beyond_the_maximum_packet_are_cut() {
    let mut bytes = udp_frame();
    bytes.resize(200_000, 0);
    assert_eq!(Packet::parse(&bytes).unwrap().payload(), b"hello");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16 * ProptestConfig::default().cases))]

    /// Common and nearly common frames: the fast path and the general parser agree.
    #[test]
    fn the_fast_path_agrees_with_the_general_parser(
        tcp in any::<bool>(),
        payload in 0usize..40,
        changes in proptest::collection::vec((12usize..54, any::<u8>()), 0..3),
        cut in 0usize..8,
    ) {
        let builder = Builder::new(B, A).ipv4(ip());
        let builder = match tcp {
            true => builder.tcp(tcp::Header::new(5, 6, tcp::ACK)),
            false => builder.udp(5, 6),
        };
        let mut bytes = builder.payload(&vec![3; payload]).bytes();
        if changes.is_empty() {
            prop_assert!(Layers::plain(&bytes).is_some());
        }
        for (at, value) in changes {
            // Small values are lengths that nearly fit.
            bytes[at] = if value & 1 == 0 { value } else { value >> 2 };
        }
        bytes.truncate(bytes.len() - cut);
        if let Some(plain) = Layers::plain(&bytes) {
            prop_assert_eq!(plain, Layers::any(&bytes));
        }
    }
}
