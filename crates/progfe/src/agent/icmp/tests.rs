//! Tests of ICMP errors that a router sends, and of packets that get none.

use core::net::Ipv4Addr;

use packet::build::Builder;
use packet::header::{icmp, icmpv6, ipv6};
use packet::parse::Packet;

use super::message::{V4_BYTES_MAX, V6_BYTES_MAX};
use super::*;
use crate::agent::bench::Bench;

const AGENT: &str = r#"<agent name="bench" type="icmp" errors_per_s="1000">
    <interface port="1" address="10.1.0.1/24 fd01::1/64"/><interface port="2" address="10.2.0.1/24 fd02::1/64"/>
    <next-hops v4="nh"/></agent>"#;

fn v4(from: [u8; 4], to: [u8; 4]) -> ipv4::Header {
    ipv4::Header { dont_fragment: true, ..ipv4::Header::new(from.into(), to.into()) }
}

fn v6(from: &str, to: &str) -> ipv6::Header {
    ipv6::Header::new(from.parse().unwrap(), to.parse().unwrap())
}

fn empty() -> Builder {
    Builder::new([0; 6], [0; 6])
}

/// Delivers a packet with an exception. Returns the errors as Ethernet frames.
fn deliver(bench: &mut Bench, why: Option<u128>, packet: &Builder) -> Vec<Vec<u8>> {
    let meta: Vec<(u32, u128)> = why
        .map(|why| (meta_id::EXCEPTION, why))
        .into_iter()
        .chain([(meta_id::PHY_PORT, 1), (meta_id::HOP_SELECTOR, 3)])
        .collect();
    let sent = bench.told(&meta, &packet.bytes_unpadded()[14..]);
    let whole = |sent: Sent| {
        let kind: [u8; 2] = if sent.output == 0 { [8, 0] } else { [0x86, 0xdd] };
        [&[0; 12][..], &kind, sent.frame.bytes()].concat()
    };
    sent.into_iter().map(whole).collect()
}

#[test]
fn echo_requests_to_its_own_addresses_are_answered() {
    let mut bench = Bench::new(AGENT, 1);
    let request = icmp::Header::echo_request(7, 9);
    let packet = empty().ipv4(v4([10, 1, 0, 9], [10, 2, 0, 1])).icmp(request).payload(b"ping");
    // Also on the last hop, which is the router itself.
    for why in [None, Some(exception::BAD_TTL)] {
        let frame = deliver(&mut bench, why, &packet).remove(0);
        let reply = Packet::of(&frame);
        reply.verify_checksums().unwrap();
        let view = reply.ipv4().unwrap();
        assert_eq!(
            (view.source(), view.destination()),
            ([10, 2, 0, 1].into(), [10, 1, 0, 9].into())
        );
        let message = reply.icmp().unwrap();
        assert_eq!((message.kind(), message.word()), (icmp::ECHO_REPLY, request.word));
        assert_eq!(reply.payload(), b"ping");
    }
    let request = icmpv6::Header::new(icmpv6::ECHO_REQUEST, 0, 5);
    let packet = empty().ipv6(v6("fd01::9", "fd01::1")).icmpv6(request).payload(b"ping");
    let frame = deliver(&mut bench, None, &packet).remove(0);
    let reply = Packet::of(&frame);
    reply.verify_checksums().unwrap();
    assert_eq!(reply.icmpv6().unwrap().kind(), icmpv6::ECHO_REPLY);
    assert_eq!(bench.count("echo_replies"), 3);
}

#[test]
fn every_exception_has_its_icmp_message() {
    let mut bench = Bench::new(AGENT, 1);
    bench.tables.numbers.insert("nh.IPv4NextHopTable[3].MTU".into(), 1300);
    let far = empty().ipv4(v4([10, 1, 0, 9], [9, 9, 9, 9])).udp(1, 2).payload(&[7; 2000]);
    let here = empty().ipv4(v4([10, 1, 0, 9], [10, 1, 0, 1])).udp(1, 2);
    let raw = ipv4::Header { protocol: 99, ..v4([10, 1, 0, 9], [10, 1, 0, 1]) };
    let raw = empty().ipv4(raw).payload(b"what");
    for (why, packet, kind, code, word) in [
        (Some(exception::BAD_TTL), &far, icmp::TIME_EXCEEDED, 0, 0),
        (Some(exception::LPM_FAILED), &far, icmp::UNREACHABLE, 0, 0),
        (Some(exception::ENCAP_LOOKUP_FAILED), &far, icmp::UNREACHABLE, 1, 0),
        (Some(exception::FRAGMENTATION), &far, icmp::UNREACHABLE, 4, 1300),
        (None, &here, icmp::UNREACHABLE, 3, 0),
        (None, &raw, icmp::UNREACHABLE, 2, 0),
    ] {
        let frame = deliver(&mut bench, why, packet).remove(0);
        let error = Packet::of(&frame);
        error.verify_checksums().unwrap();
        let (view, message) = (error.ipv4().unwrap(), error.icmp().unwrap());
        assert_eq!((message.kind(), message.code(), message.word()), (kind, code, word), "{why:?}");
        assert_eq!((view.source(), view.tos()), (Ipv4Addr::from([10, 1, 0, 1]), 0xc0));
        let original = packet.bytes_unpadded().split_off(14);
        let quoted = error.payload();
        assert_eq!(quoted, &original[..quoted.len()]);
        assert_eq!(usize::from(view.total_length()), (original.len() + 28).min(V4_BYTES_MAX));
    }
    let far = empty().ipv6(v6("fd01::9", "fd09::9")).udp(1, 2).payload(&[7; 2000]);
    for (why, kind, code) in [
        (exception::HOP_LIMIT_ZERO, icmpv6::TIME_EXCEEDED, 0),
        (exception::LPM_FAILED, icmpv6::UNREACHABLE, 0),
        (exception::ENCAP_LOOKUP_FAILED, icmpv6::UNREACHABLE, 3),
    ] {
        let frame = deliver(&mut bench, Some(why), &far).remove(0);
        let error = Packet::of(&frame);
        error.verify_checksums().unwrap();
        let message = error.icmpv6().unwrap();
        assert_eq!((message.kind(), message.code(), frame.len()), (kind, code, 14 + V6_BYTES_MAX));
    }
}

#[test]
fn a_packet_that_may_be_fragmented_is_fragmented() {
    let mut bench = Bench::new(AGENT, 1);
    bench.tables.numbers.insert("nh.IPv4NextHopTable[3].MTU".into(), 600);
    let header = ipv4::Header { dont_fragment: false, ..v4([10, 1, 0, 9], [9, 9, 9, 9]) };
    let packet = empty().ipv4(header).udp(1, 2).payload(&[7; 1210]);
    let pieces = deliver(&mut bench, Some(exception::FRAGMENTATION), &packet);
    let sizes: Vec<usize> = pieces.iter().map(|piece| piece.len() - 14).collect();
    // Eight bytes of UDP and the rest: 576 + 576 + 66, each with a header.
    assert_eq!(sizes, [596, 596, 86]);
    let rest: Vec<u8> = pieces.iter().flat_map(|piece| piece[34..].to_vec()).collect();
    assert_eq!(rest, packet.bytes_unpadded()[34..]);
    // A link with an unknown MTU.
    bench.tables.numbers.clear();
    assert!(deliver(&mut bench, Some(exception::FRAGMENTATION), &packet).is_empty());
}

#[test]
fn no_icmp_errors_about_errors_to_groups_or_above_the_rate() {
    let mut bench = Bench::new(AGENT, 1);
    let udp = |from, to| empty().ipv4(v4(from, to)).udp(1, 2);
    let later = ipv4::Header { fragment_offset: 64, ..v4([10, 1, 0, 9], [9, 9, 9, 9]) };
    let error = icmp::Header::new(icmp::UNREACHABLE, 0, 0);
    let error_v6 = icmpv6::Header::new(icmpv6::TOO_BIG, 0, 0);
    let silent = [
        empty().ipv4(v4([10, 1, 0, 9], [9, 9, 9, 9])).icmp(error),
        empty().ipv6(v6("fd01::9", "fd09::9")).icmpv6(error_v6),
        empty().ipv4(later).payload(b"fragment"),
        udp([10, 1, 0, 9], [224, 0, 0, 9]),
        udp([10, 1, 0, 9], [10, 2, 0, 255]),
        udp([10, 1, 0, 255], [9, 9, 9, 9]),
        udp([0, 0, 0, 0], [9, 9, 9, 9]),
        udp([127, 0, 0, 1], [9, 9, 9, 9]),
        udp([255, 255, 255, 255], [9, 9, 9, 9]),
        empty().ipv6(v6("::", "fd09::9")).udp(1, 2),
        empty().ipv6(v6("fd01::9", "ff05::9")).udp(1, 2),
    ];
    for packet in &silent {
        let sent = deliver(&mut bench, Some(exception::LPM_FAILED), packet);
        assert!(sent.is_empty(), "{:?}", Packet::of(&packet.bytes()));
    }
    assert_eq!(bench.count("not_told"), silent.len() as i128);
    let meta = [(meta_id::EXCEPTION, exception::BAD_TTL), (meta_id::DST_MAC, 0xffff_ffff_ffff)];
    let packet = udp([10, 1, 0, 9], [9, 9, 9, 9]);
    assert!(bench.told(&meta, &packet.bytes_unpadded()[14..]).is_empty());
    // A burst of fifty errors and no more at the same time.
    let sent =
        (0..80).filter(|_| !deliver(&mut bench, Some(exception::BAD_TTL), &packet).is_empty());
    assert_eq!((sent.count(), bench.count("errors_limited")), (50, 30));
    bench.now += Nanos::from_millis(1);
    assert_eq!(deliver(&mut bench, Some(exception::BAD_TTL), &packet).len(), 1);
}
