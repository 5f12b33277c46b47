//! Tests with packets for the router's own addresses.

use super::*;

fn echo(destination: Ipv4Addr, payload: &[u8]) -> Builder {
    Builder::new(mac(1), ALICE.0)
        .ipv4(ipv4::Header { tos: 0x20, ..header(ALICE.1, destination) })
        .icmp(icmp::Header::echo_request(77, 5))
        .payload(payload)
}

#[test]
fn echo_replies_come_from_the_requested_address() {
    let mut bench = Bench::usual();
    for destination in [own(1), own(2)] {
        let sent = bench.send(1, &echo(destination, b"are you there").bytes());
        assert_eq!(sent.len(), 1);
        let reply = Packet::parse(&sent[0].1).unwrap();
        assert_eq!(reply.verify_checksums(), Ok(()));
        let (view, message) = (reply.ipv4().unwrap(), reply.icmp().unwrap());
        assert_eq!((view.source(), view.destination()), (destination, ALICE.1));
        assert_eq!((view.ttl(), view.tos()), (64, 0x20));
        assert_eq!((message.kind(), message.word()), (icmp::ECHO_REPLY, 77 << 16 | 5));
        assert_eq!(reply.payload(), b"are you there");
        assert_eq!(array_at::<6>(&sent[0].1, 0), ALICE.0);
    }
    assert_eq!((bench.router.counters.echo_replies, bench.router.counters.consumed), (2, 2));
    bench.account();
}

#[test]
fn a_long_echo_reply_is_fragmented() {
    let mut bench = Bench::usual();
    let asked = Builder::new(mac(3), GATE.0)
        .ipv4(header(GATE.1, own(3)))
        .icmp(icmp::Header::echo_request(1, 1))
        .payload(&[3; 1000])
        .bytes();
    let sent = bench.send(3, &asked);
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(port, piece)| *port == 3 && Packet::parse(piece).is_ok()));
    bench.account();
}

#[test]
fn invalid_requests_are_not_answered() {
    let mut bench = Bench::usual();
    let mut wrong = echo(own(1), b"x").bytes();
    wrong[36] ^= 1;
    bench.lost(1, &wrong, DropReason::BadIpChecksum);
    let mut piece = echo(own(1), b"x").bytes();
    piece[20] = 0x20;
    ipv4::set_checksum(&mut piece[14..]);
    bench.lost(1, &piece, DropReason::LocalFragment);
    bench.lost(1, &echo([10, 0, 1, 255].into(), b"x").bytes(), DropReason::NotUnicast);
    // The source has no route: the request is consumed and the reply is lost.
    let stranger = Builder::new(mac(1), ALICE.0)
        .ipv4(header([172, 16, 0, 1].into(), own(1)))
        .icmp(icmp::Header::echo_request(1, 1))
        .bytes();
    assert_eq!(bench.send(1, &stranger), []);
    assert_eq!((bench.router.counters.own_lost, bench.router.counters.echo_replies), (1, 0));
    bench.account();
}

#[test]
fn replies_and_errors_for_the_router_are_consumed_silently() {
    let mut bench = Bench::usual();
    for (kind, code) in [(icmp::ECHO_REPLY, 0), (icmp::UNREACHABLE, 1), (13, 0)] {
        let bytes = Builder::new(mac(1), ALICE.0)
            .ipv4(header(ALICE.1, own(1)))
            .icmp(icmp::Header::new(kind, code, 0))
            .payload(&[0; 28])
            .bytes();
        assert_eq!(bench.send(1, &bytes), []);
    }
    assert_eq!(bench.router.counters.consumed, 3);
}

#[test]
fn closed_ports_and_unknown_protocols_are_reported_as_unreachable() {
    let mut bench = Bench::usual();
    let text = to_text(&bench.send(1, &from_alice(own(2)).bytes()));
    assert!(text[0].contains("10.0.1.1 > 10.0.1.9") && text[0].contains("port-unreachable"));
    let sctp = Builder::new(mac(1), ALICE.0).ipv4(header(ALICE.1, own(1))).sctp(1, 2, 3).bytes();
    let text = to_text(&bench.send(1, &sctp));
    assert!(text[0].contains("protocol-unreachable"), "{text:?}");
    let tcp = Builder::new(mac(1), ALICE.0)
        .ipv4(header(ALICE.1, own(1)))
        .tcp(tcp::Header::new(1, 2, tcp::SYN))
        .bytes();
    bench.lost(1, &tcp, DropReason::NoService);
    assert_eq!(bench.router.drops.of(DropReason::NoService), 3);
}
