//! Tests of header positions in frames of every kind, truncated at every length.

use packet::build::Builder;
use packet::field::{Field, VLAN_PRESENT};
use packet::header::{icmp, icmpv6, ipv4, ipv6, tcp};

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
fn the_fast_path_agrees_with_the_general_path() {
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
fn the_ethernet_type_follows_all_tags() {
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
fn a_neighbor_message_has_its_target_and_option() {
    let mut message = "fe80::7".parse::<std::net::Ipv6Addr>().unwrap().octets().to_vec();
    message.extend_from_slice(&[14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 9]);
    let solicitation = icmpv6::Header::new(icmpv6::NEIGHBOUR_SOLICITATION, 0, 0);
    let bytes = builder().ipv6(v6()).icmpv6(solicitation).payload(&message).bytes();
    let headers = Headers::of(&bytes);
    assert_eq!(headers.get(Field::Ipv6NdTarget, &bytes), Some(0xfe80 << 112 | 7));
    assert_eq!(headers.get(Field::Ipv6NdSll, &bytes), Some(0x0200_0000_0009));
    assert_eq!(headers.get(Field::Ipv6NdTll, &bytes), None);
}

/// Builds extension headers of these types before a UDP header, and returns the resulting bits.
fn exthdr(kinds: &[u8]) -> u16 {
    let mut frame = builder().ipv6(v6());
    for &kind in kinds {
        frame = match kind {
            ipv6::NEXT_FRAGMENT => frame.extension(kind, &[0, 0, 0, 0, 0, 0, 9]),
            // Eight bytes in units of four, minus two.
            ipv6::NEXT_AUTHENTICATION => frame.extension(kind, &[0; 7]),
            _ => frame.extension(kind, &[0, 1, 4, 0, 0, 0, 0]),
        };
    }
    let bytes = frame.udp(1, 2).bytes();
    let headers = Headers::of(&bytes);
    assert_eq!(headers.transport, Transport::Udp, "{kinds:?}");
    assert_eq!(headers.get(Field::UdpSrc, &bytes), Some(1), "{kinds:?}");
    assert_eq!(headers.get(Field::Ipv6Exthdr, &bytes), Some(headers.exthdr.into()));
    headers.exthdr
}

#[test]
fn extension_header_bits_follow_the_order_of_the_headers() {
    let (hop, dest, router, frag, auth) = (0, 60, 43, 44, 51);
    let (repeated, disordered) = (1 << 7, 1 << 8);
    let (h, d, r, f, a) = (1 << 6, 1 << 3, 1 << 5, 1 << 4, 1 << 2);
    let cases: [(&[u8], u16); 15] = [
        (&[], 0),
        (&[hop], h),
        (&[hop, dest, router, frag, auth, dest], h | d | r | f | a),
        (&[dest, dest], d),
        (&[dest, hop], d | disordered),
        (&[hop, hop], h | repeated | disordered),
        (&[dest, dest, dest], d | repeated),
        (&[router, router], r | repeated),
        (&[router, dest], r | d),
        (&[router, dest, frag], r | d | f | disordered),
        (&[frag, router], r | f | disordered),
        (&[frag, dest], f | d),
        (&[auth, frag, auth], a | f | repeated | disordered),
        (&[dest, frag], d | f),
        (&[router, hop, router], r | repeated | disordered),
    ];
    for (kinds, bits) in cases {
        assert_eq!(exthdr(kinds), bits, "{kinds:?}");
    }
}

#[test]
fn the_end_of_an_extension_chain_counts_only_if_it_is_reached() {
    let bits = |next, fragment: Option<u16>| {
        let mut frame = builder().ipv6(ipv6::Header { next_header: next, ..v6() });
        if let Some(word) = fragment {
            let [high, low] = word.to_be_bytes();
            frame = frame.extension(ipv6::NEXT_FRAGMENT, &[0, high, low, 0, 0, 0, 9]);
        }
        let mut bytes = frame.payload(&[9; 40]).bytes();
        if fragment.is_some() {
            bytes[14 + 40] = next;
        }
        let headers = Headers::of(&bytes);
        assert_eq!((headers.proto, headers.transport), (next, Transport::None));
        (headers.exthdr, headers.fragment)
    };
    assert_eq!(bits(59, None), (1, Fragment::Whole));
    assert_eq!(bits(50, None), (1 << 1, Fragment::Whole));
    assert_eq!(bits(50, Some(1)), (1 << 1 | 1 << 4, Fragment::First));
    assert_eq!(bits(50, Some(8)), (1 << 4, Fragment::Later));
    assert_eq!(bits(59, Some(9)), (1 << 4, Fragment::Later));
}

/// Builds frames of every kind.
fn frames() -> Vec<Vec<u8>> {
    let arp = arp::Header {
        operation: 1,
        sender_mac: [2; 6],
        sender_ip: [10, 0, 0, 1].into(),
        target_mac: [0; 6],
        target_ip: [10, 0, 0, 2].into(),
    };
    let entry = mpls::Header { label: 77, class: 1, bottom: false, ttl: 9 };
    let customer = pbb::Header {
        priority: 1,
        drop_eligible: false,
        use_customer_addresses: true,
        isid: 99,
        destination: [2; 6],
        source: [4; 6],
    };
    let advertisement = icmpv6::Header::new(icmpv6::NEIGHBOUR_ADVERTISEMENT, 0, 0);
    let first = ipv4::Header { more_fragments: true, ..v4() };
    let later = ipv4::Header { fragment_offset: 64, protocol: 17, ..v4() };
    let tcp = tcp::Header::new(1, 2, tcp::SYN);
    let links = [builder(), builder().vlan(5), builder().tag(0x88a8, 1).vlan(2), builder().snap()];
    let mut frames = Vec::new();
    for link in links {
        let mut option = vec![7; 16];
        option.extend_from_slice(&[2, 1, 2, 0, 0, 0, 0, 9]);
        frames.extend([
            link.clone().arp(arp).bytes_unpadded(),
            link.clone().ipv4(v4()).tcp(tcp).payload(b"more").bytes_unpadded(),
            link.clone().ipv4(v4()).udp(1, 2).payload(b"more").bytes_unpadded(),
            link.clone().ipv4(v4()).sctp(1, 2, 3).payload(b"more").bytes_unpadded(),
            link.clone().ipv4(v4()).icmp(icmp::Header::echo_request(1, 2)).bytes_unpadded(),
            link.clone().ipv4(first).udp(1, 2).payload(&[1; 64]).bytes_unpadded(),
            link.clone().ipv4(later).payload(&[1; 64]).bytes_unpadded(),
            link.clone().ipv6(v6()).udp(1, 2).payload(b"more").bytes_unpadded(),
            link.clone().ipv6(v6()).icmpv6(advertisement).payload(&option).bytes_unpadded(),
            link.clone().ipv6(v6()).extension(60, &[0; 7]).tcp(tcp).bytes_unpadded(),
            link.clone().mpls(entry).mpls(entry).ipv4(v4()).udp(1, 2).bytes_unpadded(),
            link.clone().pbb(customer).vlan(6).arp(arp).bytes_unpadded(),
            link.clone().ether_type(0x88b5).payload(&[3; 50]).bytes_unpadded(),
        ]);
    }
    frames.push(builder().payload(&[0x42; 30]).bytes_unpadded());
    frames
}

/// Checks the invariants for any bytes.
fn check_any(bytes: &[u8]) {
    let headers = Headers::of(bytes);
    assert!(usize::from(headers.end) <= bytes.len());
    assert!(headers.network_at <= headers.end || headers.network == Network::None);
    for field in Field::ALL {
        if let Some(place) = headers.place(field) {
            assert!(place.at + place.bytes <= bytes.len(), "{field}");
            assert!(place.bits + place.shift <= 8 * place.bytes as u32, "{field}");
            assert!(headers.get(field, bytes).is_some_and(|value| value <= field.ones()));
        }
    }
    let layers = packet::parse::Layers::of(bytes);
    if bytes.len() >= 14 && usize::from(headers.tags) <= vlan::VLAN_DEPTH_MAX {
        assert_eq!(headers.eth_type, layers.ether_type);
        assert_eq!(usize::from(headers.tags), usize::from(layers.tags));
        let same = (headers.transport, headers.fragment, headers.proto);
        assert_eq!(same, (layers.transport, layers.fragment, layers.protocol));
        if headers.transport != Transport::None {
            assert_eq!(headers.transport_at, layers.transport_at);
        }
    }
}

#[test]
fn truncated_and_changed_frames_are_read_within_their_bytes() {
    for frame in frames() {
        for length in 0..=frame.len() {
            check_any(&frame[..length]);
        }
        for at in 12..frame.len() {
            for flip in [0x01, 0x40, 0x80, 0xff] {
                let mut changed = frame.clone();
                changed[at] ^= flip;
                check_any(&changed);
            }
        }
    }
}

#[test]
fn a_truncated_frame_has_no_additional_fields() {
    for frame in frames() {
        let whole = Headers::of(&frame);
        for length in 14..frame.len() {
            let headers = Headers::of(&frame[..length]);
            for field in Field::ALL {
                // If an option or a tag is truncated, another header may appear in its place.
                if headers.tags == whole.tags && headers.eth_type == whole.eth_type {
                    let (cut, all) = (headers.place(field), whole.place(field));
                    assert!(cut.is_none() || cut == all, "{field} at {length}");
                }
            }
        }
    }
}

#[test]
fn a_label_stack_hides_the_headers_after_it() {
    let entry = |label| mpls::Header { label, class: 5, bottom: false, ttl: 1 };
    let frame = builder().vlan(9).mpls(entry(1)).mpls(entry(2)).ipv4(v4()).udp(1, 2).bytes();
    let headers = Headers::of(&frame);
    assert_eq!(headers.get(Field::MplsLabel, &frame), Some(1));
    assert_eq!(headers.get(Field::MplsTc, &frame), Some(5));
    assert_eq!(headers.get(Field::MplsBos, &frame), Some(0));
    assert_eq!(headers.get(Field::VlanVid, &frame), Some(VLAN_PRESENT | 9));
    assert_eq!(headers.get(Field::Ipv4Src, &frame), None);
    assert_eq!(headers.get(Field::UdpSrc, &frame), None);
}
