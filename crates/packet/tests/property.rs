//! Property tests: no input makes the parser panic, and built frames parse to the same values.

use packet::build::Builder;
use packet::header::options::Options;
use packet::header::{arp, ethernet, icmp, icmpv6, ipv4, ipv6, sctp, tcp, udp, vlan};
use packet::parse::{Fragment, Layers, Network, Packet, Transport, set_transport_checksum};
use packet::show::Show;
use proptest::collection::vec;
use proptest::prelude::*;

/// Calls every function that reads bytes, and checks invariants for any input.
fn read_all(bytes: &[u8]) {
    let layers = Layers::of(bytes);
    let offsets = [
        u16::from(layers.tags) * 4,
        layers.network_at,
        layers.payload_at.max(layers.network_at),
        layers.payload_end.max(layers.network_at),
    ];
    assert!(offsets.windows(2).all(|pair| pair[0] <= pair[1]), "{layers:?}");
    assert!(layers.payload_at <= layers.payload_end, "{layers:?}");
    assert!(usize::from(layers.payload_end) <= bytes.len(), "{layers:?}");
    let packet = Packet::of(bytes);
    let ports = matches!(layers.transport, Transport::Tcp | Transport::Udp | Transport::Sctp);
    assert_eq!(packet.ports().is_some(), ports);
    assert!(layers.fragment != Fragment::Later || layers.transport == Transport::None);
    if let Ok(strict) = Packet::parse(bytes) {
        assert_eq!((strict.layers, strict.layers.fault), (layers, None));
    }
    let text = Show(bytes).to_string();
    assert!(!text.contains('\n') && text.len() < 2000);
    let mut copy = bytes.to_vec();
    if set_transport_checksum(&mut copy) && Packet::parse(&copy).is_ok() {
        assert_eq!(Packet::of(&copy).verify_checksums(), Ok(()));
    }
    for start in [0, 14, 34] {
        read_headers(bytes.get(start..).unwrap_or_default());
    }
}

fn read_headers(bytes: &[u8]) {
    let _ = (ethernet::Header::parse(bytes), vlan::Header::parse(bytes));
    let _ = (arp::Header::parse(bytes), icmp::Header::parse(bytes));
    let _ = (icmpv6::Header::parse(bytes), tcp::Header::parse(bytes));
    let _ = (udp::Header::parse(bytes), sctp::Header::parse(bytes));
    let _ = (ipv4::Header::parse(bytes), ipv6::Header::parse(bytes));
    let text = [
        arp::View::new(bytes).map(|view| view.to_string()),
        ipv4::View::new(bytes).map(|view| view.to_string()),
        ipv6::View::new(bytes).map(|view| view.to_string()),
        icmp::View::new(bytes).map(|view| view.to_string()),
        icmpv6::View::new(bytes).map(|view| view.to_string()),
        tcp::View::new(bytes).map(|view| view.to_string()),
        udp::View::new(bytes).map(|view| view.to_string()),
        sctp::View::new(bytes).map(|view| view.to_string()),
        vlan::View::new(bytes).map(|view| view.to_string()),
    ];
    assert!(text.into_iter().flatten().all(|text| !text.is_empty()));
}

fn mac() -> impl Strategy<Value = ethernet::Mac> {
    any::<[u8; 6]>().prop_map(|mut mac| {
        mac[0] &= !1;
        mac
    })
}

fn ipv4_header() -> impl Strategy<Value = ipv4::Header> {
    let fields = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u8>(), any::<u8>(), any::<u16>());
    (fields, any::<bool>(), vec(any::<u8>(), 0..=40)).prop_map(|(fields, df, options)| {
        let (source, destination, ttl, tos, identification) = fields;
        ipv4::Header {
            tos,
            ttl,
            identification,
            dont_fragment: df,
            options: Options::from_bytes(&options).expect("at most 40"),
            ..ipv4::Header::new(source.into(), destination.into())
        }
    })
}

fn ipv6_header() -> impl Strategy<Value = ipv6::Header> {
    let fields = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u8>(), any::<u8>());
    (fields, 0u32..0x10_0000).prop_map(|(fields, flow_label)| {
        let (mut source, destination, hop_limit, traffic_class) = fields;
        source[0] &= 0x7f;
        ipv6::Header {
            traffic_class,
            flow_label,
            hop_limit,
            ..ipv6::Header::new(source.into(), destination.into())
        }
    })
}

#[derive(Debug, Clone)]
enum Inner {
    Udp(u16, u16),
    Tcp(tcp::Header),
    Sctp(u16, u16, u32),
    Icmp(u8, u8, u32),
}

fn inner() -> impl Strategy<Value = Inner> {
    prop_oneof![
        any::<(u16, u16)>().prop_map(|(a, b)| Inner::Udp(a, b)),
        (any::<(u16, u16, u32, u32, u8, u16)>(), vec(any::<u8>(), 0..=40)).prop_map(
            |((source, destination, sequence, acknowledgement, flags, window), options)| {
                Inner::Tcp(tcp::Header {
                    sequence,
                    acknowledgement,
                    window,
                    options: Options::from_bytes(&options).expect("at most 40"),
                    ..tcp::Header::new(source, destination, flags)
                })
            }
        ),
        any::<(u16, u16, u32)>().prop_map(|(a, b, tag)| Inner::Sctp(a, b, tag)),
        any::<(u8, u8, u32)>().prop_map(|(kind, code, word)| Inner::Icmp(kind, code, word)),
    ]
}

#[derive(Debug, Clone)]
enum Outer {
    Ipv4(ipv4::Header),
    Ipv6(ipv6::Header, Vec<u8>),
}

fn outer() -> impl Strategy<Value = Outer> {
    let kinds = prop_oneof![Just(0u8), Just(43), Just(60)];
    prop_oneof![
        ipv4_header().prop_map(Outer::Ipv4),
        (ipv6_header(), vec(kinds, 0..4)).prop_map(|(header, kinds)| Outer::Ipv6(header, kinds)),
    ]
}

fn built() -> impl Strategy<Value = (Builder, usize, Outer, Inner, Vec<u8>)> {
    (mac(), mac(), 0..4usize, outer(), inner(), vec(any::<u8>(), 0..100)).prop_map(
        |(destination, source, tags, outer, inner, payload)| {
            let mut builder = Builder::new(destination, source);
            for tag in 0..tags {
                builder = builder.tag([0x88a8, 0x8100][tag & 1], tag as u16 + 1);
            }
            builder = match &outer {
                Outer::Ipv4(header) => builder.ipv4(*header),
                Outer::Ipv6(header, kinds) => {
                    kinds.iter().fold(builder.ipv6(*header), |b, &kind| b.extension(kind, &[0; 7]))
                }
            };
            let six = matches!(outer, Outer::Ipv6(..));
            builder = match inner {
                Inner::Udp(a, b) => builder.udp(a, b),
                Inner::Tcp(header) => builder.tcp(header),
                Inner::Sctp(a, b, tag) => builder.sctp(a, b, tag),
                Inner::Icmp(kind, code, word) if six => {
                    builder.icmpv6(icmpv6::Header::new(kind, code, word))
                }
                Inner::Icmp(kind, code, word) => builder.icmp(icmp::Header::new(kind, code, word)),
            };
            (builder.payload(&payload), tags, outer, inner, payload)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn random_bytes_behind_a_known_type_never_panic(
        mut bytes in vec(any::<u8>(), 14..400),
        type_ in prop_oneof![
            Just(0x0800u16), Just(0x86dd), Just(0x0806), Just(0x8100), Just(0x88a8), 0u16..0x600
        ],
        first in any::<u8>(),
    ) {
        bytes[12..14].copy_from_slice(&type_.to_be_bytes());
        if bytes.len() > 14 && first & 3 != 0 {
            bytes[14] = if type_ == 0x86dd { 0x60 } else { 0x40 | first >> 4 };
        }
        read_all(&bytes);
    }

    #[test]
    fn mutated_frames_never_panic(
        (builder, ..) in built(),
        mutations in vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<proptest::sample::Index>(),
        keep in any::<bool>(),
    ) {
        let mut bytes = builder.bytes();
        for (at, value) in mutations {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if !keep {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        read_all(&bytes);
    }

    #[test]
    fn built_frames_parse_to_the_same_values((builder, tags, outer, inner, payload) in built()) {
        let bytes = builder.bytes();
        prop_assert!(bytes.len() >= 60);
        let packet = Packet::parse(&bytes).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
        prop_assert_eq!(packet.verify_checksums(), Ok(()));
        prop_assert_eq!(usize::from(packet.layers.tags), tags);
        let at = usize::from(packet.layers.network_at);
        match outer {
            Outer::Ipv4(header) => {
                let (parsed, _) = ipv4::Header::parse(&bytes[at..]).expect("strictly right");
                let ipv4::Header { payload_bytes, protocol, .. } = parsed;
                prop_assert_eq!(parsed, ipv4::Header { payload_bytes, protocol, ..header });
                prop_assert_eq!(packet.layers.network, Network::Ipv4);
            }
            Outer::Ipv6(header, kinds) => {
                let (parsed, _) = ipv6::Header::parse(&bytes[at..]).expect("strictly right");
                let ipv6::Header { payload_bytes, next_header, .. } = parsed;
                prop_assert_eq!(parsed, ipv6::Header { payload_bytes, next_header, ..header });
                let view = packet.ipv6().expect("IPv6");
                let found: Vec<u8> = view.extensions().map(|extension| extension.kind).collect();
                prop_assert_eq!(found, kinds);
            }
        }
        match inner {
            Inner::Udp(a, b) | Inner::Sctp(a, b, _) => prop_assert_eq!(packet.ports(), Some((a, b))),
            Inner::Tcp(header) => {
                let inside = packet.transport_bytes().expect("TCP");
                let (parsed, _) = tcp::Header::parse(inside).expect("strictly right");
                prop_assert_eq!(parsed, tcp::Header { checksum: parsed.checksum, ..header });
            }
            Inner::Icmp(kind, code, word) => {
                let four = packet.icmp().map(|view| (view.kind(), view.code(), view.word()));
                let six = packet.icmpv6().map(|view| (view.kind(), view.code(), view.word()));
                prop_assert_eq!(four.or(six), Some((kind, code, word)));
            }
        }
        prop_assert_eq!(packet.payload(), &payload[..]);
        read_all(&bytes);
    }
}
