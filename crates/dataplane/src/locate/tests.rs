//! What is found where, in frames of every kind, cut at every length.

use packet::build::Builder;
use packet::field::{Field, VLAN_PRESENT};
use packet::header::{icmpv6, ipv4, ipv6, tcp};

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

#[test]
fn the_short_way_finds_what_the_long_way_finds() {
    let frames = [
        builder().ipv4(v4()).udp(1, 2).payload(&[3; 30]).bytes(),
        builder().ipv4(v4()).tcp(tcp::Header::new(1, 2, tcp::SYN)).bytes(),
    ];
    for bytes in frames {
        assert!(Headers::plain(&bytes).is_some());
        for length in 0..bytes.len() {
            for (at, value) in [(0, 0), (12, 0x86), (14, 0x46), (16, 1), (17, 39), (20, 0x20)] {
                let mut changed = bytes[..length].to_vec();
                if let Some(byte) = changed.get_mut(at) {
                    *byte = value;
                }
                let (short, long) = (Headers::plain(&changed), Headers::any(&changed));
                assert!(short.is_none() || short == Some(long), "{length} {at} {value}");
            }
        }
    }
}

#[test]
fn tags_are_followed_to_the_type_behind_all_of_them() {
    let mut frame = builder().tag(0x88a8, 0x6007);
    for id in 0..20 {
        frame = frame.vlan(id);
    }
    let bytes = frame.ipv4(v4()).udp(5, 6).bytes();
    let headers = Headers::of(&bytes);
    assert_eq!((headers.tags, headers.eth_type, headers.network), (21, 0x0800, Network::Ipv4));
    assert_eq!(headers.get(Field::VlanVid, &bytes), Some(VLAN_PRESENT | 7));
    assert_eq!(headers.get(Field::VlanPcp, &bytes), Some(3));
    assert_eq!(headers.get(Field::UdpDst, &bytes), Some(6));
    assert_eq!(headers.get(Field::TcpDst, &bytes), None);
}

#[test]
fn a_neighbour_message_has_its_target_and_its_option() {
    let mut message = "fe80::7".parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
    message.extend_from_slice(&[14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 9]);
    let solicitation = icmpv6::Header::new(icmpv6::NEIGHBOUR_SOLICITATION, 0, 0);
    let bytes = builder().ipv6(v6()).icmpv6(solicitation).payload(&message).bytes();
    let headers = Headers::of(&bytes);
    assert_eq!(headers.get(Field::Ipv6NdTarget, &bytes), Some(0xfe80 << 112 | 7));
    assert_eq!(headers.get(Field::Ipv6NdSll, &bytes), Some(0x0200_0000_0009));
    assert_eq!(headers.get(Field::Ipv6NdTll, &bytes), None);
}
