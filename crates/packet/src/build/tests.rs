//! Tests of built frames, byte for byte against frames of other implementations.

use super::*;
use crate::parse::{Network, Packet, Transport};

const A: ethernet::Mac = [2, 0, 0, 0, 0, 0x0a];
const B: ethernet::Mac = [2, 0, 0, 0, 0, 0x0b];

#[test]
fn a_tagged_datagram_equals_the_one_of_scapy() {
    // `tests/bytes/vlan-udp.txt`, made by scapy.
    let header = ipv4::Header {
        identification: 7,
        ..ipv4::Header::new([10, 1, 0, 1].into(), [10, 1, 0, 2].into())
    };
    let built = Builder::new(B, A).vlan(5 << 13 | 100).ipv4(header).udp(1000, 2000);
    let text: &str = include_str!("../../tests/bytes/vlan-udp.txt");
    let hex: String = text.lines().filter_map(|line| line.strip_prefix("hex: ")).collect();
    let ours = built.payload(b"tagged").bytes_unpadded();
    let ours: String = ours.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(ours, hex);
}

#[test]
fn frames_are_padded_to_the_minimum_or_requested_length() {
    let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let builder = Builder::new(B, A).ipv4(header).udp(1, 2);
    assert_eq!((builder.bytes_unpadded().len(), builder.bytes().len()), (42, 60));
    for length in [42, 60, 61, 1514] {
        let bytes = builder.clone().frame_bytes(length).bytes_unpadded();
        assert_eq!(bytes.len(), length);
        assert_eq!(Packet::parse(&bytes).unwrap().payload().len(), length - 42);
    }
    assert_eq!(builder.frame_bytes(10).bytes_unpadded().len(), 42);
}

#[test]
fn a_computed_zero_udp_checksum_is_sent_as_ones() {
    let header = ipv4::Header::new([0, 0, 0, 0].into(), [0, 0, 0, 0].into());
    let zero = (0..=u16::MAX).map(|word| {
        Builder::new(B, A).ipv4(header).udp(0, 0).payload(&word.to_be_bytes()).bytes_unpadded()
    });
    let ones = zero.filter(|bytes| bytes[40..42] == [0xff, 0xff]).count();
    assert_eq!(ones, 1, "exactly one payload makes the checksum all ones");
}

#[test]
fn every_layer_names_the_next_protocol() {
    let source = "fd00::1".parse().expect("an address");
    let destination = "fd00::2".parse().expect("an address");
    let header = ipv6::Header::new(source, destination);
    let bytes = Builder::new(B, A)
        .tag(ethernet::TYPE_SERVICE_VLAN, 7)
        .vlan(8)
        .ipv6(header)
        .extension(ipv6::NEXT_HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0])
        .extension(ipv6::NEXT_FRAGMENT, &[0, 0, 0, 0, 0, 0, 9])
        .icmpv6(icmpv6::Header::new(icmpv6::ECHO_REQUEST, 0, 1))
        .payload(b"ping")
        .bytes();
    let packet = Packet::parse(&bytes).expect("right frame");
    assert_eq!(packet.layers.network, Network::Ipv6);
    assert_eq!((packet.layers.tags, packet.layers.transport), (2, Transport::Icmpv6));
    assert_eq!(packet.ipv6().map(|view| view.extensions().count()), Some(2));
    assert_eq!((packet.payload(), packet.verify_checksums()), (&b"ping"[..], Ok(())));
}

#[test]
fn a_frame_without_layers_has_a_length_field() {
    let bytes = Builder::new(B, A).payload(&[0x42, 0x42, 3]).bytes();
    assert_eq!((bytes.len(), &bytes[12..17]), (60, &[0, 3, 0x42, 0x42, 3][..]));
    let typed = Builder::new(B, A).ether_type(0x88b5).payload(&[1]).bytes();
    assert_eq!(typed[12..15], [0x88, 0xb5, 1]);
}

#[test]
fn a_backbone_frame_with_an_inner_label_stack_parses() {
    let customer = pbb::Header {
        priority: 6,
        drop_eligible: false,
        use_customer_addresses: true,
        isid: 0xabcdef,
        destination: A,
        source: B,
    };
    let entry = |label| mpls::Header { label, class: 1, bottom: false, ttl: 9 };
    let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let bytes = Builder::new(B, A)
        .tag(ethernet::TYPE_SERVICE_VLAN, 7)
        .pbb(customer)
        .vlan(8)
        .mpls(entry(1000))
        .mpls(entry(2000))
        .ipv4(header)
        .udp(1, 2)
        .bytes();
    assert_eq!(bytes[12..18], [0x88, 0xa8, 0, 7, 0x88, 0xe7]);
    assert_eq!(pbb::Header::parse(&bytes[18..]), Ok((customer, 16)));
    assert_eq!(bytes[34..40], [0x81, 0, 0, 8, 0x88, 0x47]);
    assert_eq!(mpls::Header::parse(&bytes[40..]), Ok((entry(1000), 4)));
    let bottom = mpls::Header { bottom: true, ..entry(2000) };
    assert_eq!(mpls::Header::parse(&bytes[44..]), Ok((bottom, 4)));
    // After the label stack there is a valid IP packet.
    let inner = [&bytes[..12], &[8, 0], &bytes[48..]].concat();
    assert_eq!(Packet::parse(&inner).expect("right packet").verify_checksums(), Ok(()));
    let text = crate::show::Show(&bytes).to_string();
    assert!(text.contains(" vlan 7 p 0 pbb 11259375 p 6 uca "), "{text}");
    let stack = crate::show::Show(&[&bytes[22..34], &bytes[34..]].concat()).to_string();
    let shown = " vlan 8 p 0 mpls 1000 tc 1 ttl 9 mpls 2000 tc 1 ttl 9 bottom payload ";
    assert!(stack.contains(shown), "{stack}");
}
