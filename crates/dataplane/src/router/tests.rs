//! Tests of the router, frame by frame and with random frames.

use packet::build::Builder;
use packet::header::options::Options;
use packet::header::{arp, icmp, icmpv6, ipv6, tcp};
use packet::parse::Packet;
use packet::show::Show;

use super::*;
use crate::route_table::Prefix;

mod local;
mod neighbors;
mod property;

const SECOND: Nanos = Nanos::from_secs(1);
const PORTS: [PortNo; 3] = [1, 2, 3];
/// A station in the network of port 1 with a static neighbor entry.
const ALICE: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 1, 9], Ipv4Addr::new(10, 0, 1, 9));
/// A station in the network of port 2 with a static neighbor entry.
const BOB: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 2, 9], Ipv4Addr::new(10, 0, 2, 9));
/// A router in the network of port 3 with a static neighbor entry; the MTU is 600 bytes.
const GATE: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 3, 9], Ipv4Addr::new(10, 0, 3, 2));

fn mac(port: PortNo) -> Mac {
    [2, 0, 0, 0, port as u8, 1]
}

fn own(port: PortNo) -> Ipv4Addr {
    [10, 0, port as u8, 1].into()
}

fn settings() -> Settings {
    let interface = |port: PortNo, length, mtu| Interface {
        port,
        mac: mac(port),
        addresses: vec![(own(port), length)],
        mtu,
    };
    let interfaces = vec![interface(1, 24, 1500), interface(2, 24, 1500), interface(3, 30, 600)];
    Settings { interfaces, ..Settings::default() }
}

fn net(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').expect("address/length");
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).expect("at most 32")
}

/// A router between three links, with its output.
struct Bench {
    router: Router,
    out: Outputs,
    now: Nanos,
    received: u64,
}

impl Bench {
    fn new(settings: &Settings) -> Bench {
        let mut router = Router::new(settings).expect("right settings");
        let mut out = Outputs::new(&PORTS);
        for (port, (mac, address)) in [(1, ALICE), (2, BOB), (3, GATE)] {
            router.set_neighbor(Place { port, address }, mac, &mut out).expect("room");
        }
        router.add_route(net("192.168.0.0/16"), Some(GATE.1), None).expect("room");
        Bench { router, out, now: SECOND, received: 0 }
    }

    fn usual() -> Bench {
        Bench::new(&settings())
    }

    /// Returns what the router sends when `port` receives one frame.
    fn send(&mut self, port: PortNo, bytes: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        self.received += 1;
        self.router.forward(port, &mut batch, self.now, &mut self.out);
        self.sent()
    }

    fn sent(&mut self) -> Vec<(PortNo, Vec<u8>)> {
        let mut sent = Vec::new();
        for (port, queue) in self.out.queues_mut() {
            sent.extend(queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())));
            queue.clear();
        }
        sent
    }

    /// Returns what the router sends while time passes.
    fn pass(&mut self, span: Nanos) -> Vec<(PortNo, Vec<u8>)> {
        let end = self.now + span;
        while self.now < end {
            let next =
                self.router.tick(self.now, &mut self.out).expect("a router always has a next time");
            self.now = next.max(self.now + Nanos::from_millis(1)).min(end);
        }
        self.sent()
    }

    /// Checks that the frame is dropped for this reason and that nothing is sent.
    #[track_caller]
    fn lost(&mut self, port: PortNo, bytes: &[u8], why: DropReason) {
        let before = self.router.drops.of(why);
        let sent = self.send(port, bytes);
        let text: Vec<String> = sent.iter().map(|(_, bytes)| Show(bytes).to_string()).collect();
        assert_eq!((text, self.router.drops.of(why)), (vec![], before + 1), "{}", Show(bytes));
        self.account();
    }

    /// Checks that every frame is accounted for. All waiting frames here were received.
    #[track_caller]
    fn account(&self) {
        let counters = self.router.counters;
        let waiting = self.router.neighbors.frames_waiting as u64;
        let kinds = counters.forwarded + counters.consumed + self.router.drops.total() + waiting;
        assert_eq!(self.received + counters.fragments, kinds + counters.fragmented);
    }
}

fn header(source: Ipv4Addr, destination: Ipv4Addr) -> ipv4::Header {
    ipv4::Header::new(source, destination)
}

/// Builds a datagram from Alice, addressed to the router's port 1.
fn from_alice(destination: Ipv4Addr) -> Builder {
    from_alice_with(header(ALICE.1, destination))
}

fn from_alice_with(header: ipv4::Header) -> Builder {
    Builder::new(mac(1), ALICE.0).ipv4(header).udp(4000, 9).payload(b"payload")
}

fn to_text(sent: &[(PortNo, Vec<u8>)]) -> Vec<String> {
    sent.iter().map(|(port, bytes)| format!("{port}: {}", Show(bytes))).collect()
}

#[test]
fn forwarding_changes_only_addresses_ttl_and_checksum() {
    let mut bench = Bench::usual();
    let sent = bench.send(1, &from_alice(BOB.1).bytes());
    let older = ipv4::Header { ttl: 63, ..header(ALICE.1, BOB.1) };
    let expected = Builder::new(BOB.0, mac(2)).ipv4(older).udp(4000, 9).payload(b"payload").bytes();
    assert_eq!(sent, [(2, expected)]);
    assert_eq!(bench.router.counters.forwarded, 1);
    bench.account();
}

#[test]
fn the_longest_prefix_selects_the_gateway() {
    let mut bench = Bench::usual();
    let far = Ipv4Addr::new(192, 168, 7, 7);
    let place = |bench: &mut Bench| {
        let sent = bench.send(1, &from_alice(far).bytes());
        assert_eq!(sent.len(), 1);
        let to: Mac = array_at(&sent[0].1, 0);
        (sent[0].0, to)
    };
    assert_eq!(place(&mut bench), (3, GATE.0));
    bench.router.add_route(net("192.168.7.0/24"), Some(BOB.1), None).unwrap();
    assert_eq!(place(&mut bench), (2, BOB.0));
    assert!(bench.router.remove_route(net("192.168.7.0/24")));
    assert_eq!(place(&mut bench), (3, GATE.0));
    assert_eq!(bench.router.flush_routes(), 1);
    bench.send(1, &from_alice(far).bytes());
    assert_eq!(bench.router.drops.of(DropReason::NoRoute), 1);
    assert_eq!(bench.send(1, &from_alice(BOB.1).bytes()).len(), 1, "connected networks stay");
}

#[test]
fn trailing_bytes_beyond_the_minimum_length_are_removed() {
    let mut bench = Bench::usual();
    let mut long = from_alice(BOB.1).bytes();
    long.resize(200, 0xee);
    assert_eq!(bench.send(1, &long)[0].1.len(), 60);
    let bytes = from_alice(BOB.1).bytes_unpadded();
    assert_eq!(bench.send(1, &bytes)[0].1.len(), bytes.len());
}

#[test]
fn other_destinations_and_protocols_are_not_routed() {
    let mut bench = Bench::usual();
    let others = Builder::new(mac(2), ALICE.0).ipv4(header(ALICE.1, BOB.1)).udp(1, 2).bytes();
    bench.lost(1, &others, DropReason::NotForUs);
    let tagged = Builder::new(mac(1), ALICE.0).vlan(5).ipv4(header(ALICE.1, BOB.1)).bytes();
    bench.lost(1, &tagged, DropReason::NotRouted);
    let six = ipv6::Header::new(1u128.to_be_bytes().into(), 2u128.to_be_bytes().into());
    let six = Builder::new(mac(1), ALICE.0)
        .ipv6(six)
        .icmpv6(icmpv6::Header::new(icmpv6::ECHO_REQUEST, 0, 0))
        .bytes();
    bench.lost(1, &six, DropReason::NotRouted);
    bench.lost(1, &six[..13], DropReason::TooShort);
    bench.lost(9, &from_alice(BOB.1).bytes(), DropReason::NotForUs);
}

#[test]
fn invalid_headers_are_dropped_without_an_icmp_error() {
    let mut bench = Bench::usual();
    let with = |at: usize, value: u8, mend: bool| {
        let mut bytes = from_alice(BOB.1).bytes();
        bytes[at] = value;
        if mend {
            ipv4::set_checksum(&mut bytes[14..]);
        }
        bytes
    };
    bench.lost(1, &with(14, 0x65, true), DropReason::BadIpHeader);
    bench.lost(1, &with(14, 0x44, false), DropReason::BadIpHeader);
    bench.lost(1, &with(14, 0x4f, false), DropReason::BadIpHeader);
    bench.lost(1, &with(17, 19, true), DropReason::BadIpHeader);
    bench.lost(1, &with(16, 9, true), DropReason::BadIpHeader);
    bench.lost(1, &with(30, 11, false), DropReason::BadIpChecksum);
    bench.lost(1, &from_alice(BOB.1).bytes()[..33], DropReason::BadIpHeader);
}

#[test]
fn invalid_addresses_are_dropped_without_an_icmp_error() {
    let mut bench = Bench::usual();
    for source in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "240.0.0.1", "255.255.255.255"] {
        let header = header(source.parse().unwrap(), BOB.1);
        bench.lost(1, &from_alice_with(header).bytes(), DropReason::Martian);
    }
    for destination in ["0.0.0.0", "127.0.0.1", "240.0.0.1", "255.255.255.254"] {
        bench.lost(1, &from_alice(destination.parse().unwrap()).bytes(), DropReason::Martian);
    }
}

#[test]
fn broadcasts_and_multicasts_are_not_routed() {
    let mut bench = Bench::usual();
    for destination in ["255.255.255.255", "224.0.0.9", "10.0.2.255", "10.0.2.0", "10.0.1.255"] {
        bench.lost(1, &from_alice(destination.parse().unwrap()).bytes(), DropReason::NotUnicast);
    }
    let shouted =
        Builder::new(ethernet::BROADCAST, ALICE.0).ipv4(header(ALICE.1, BOB.1)).udp(1, 2).bytes();
    bench.lost(1, &shouted, DropReason::NotUnicast);
}

#[test]
fn source_routes_are_rejected_and_other_options_pass() {
    let mut bench = Bench::usual();
    let with = |options: &[u8]| {
        let options = Options::from_bytes(options).unwrap();
        from_alice_with(ipv4::Header { options, ..header(ALICE.1, BOB.1) }).bytes()
    };
    for kind in [131, 137] {
        bench.lost(1, &with(&[1, kind, 7, 4, 9, 9, 9, 9]), DropReason::SourceRouted);
    }
    for options in [&[148, 4, 0, 0][..], &[7, 7, 4, 0, 0, 0, 0], &[0, 131, 7, 4], &[7, 0, 131, 7]] {
        let sent = bench.send(1, &with(options));
        assert_eq!(sent.len(), 1, "{options:?}");
        assert!(Packet::parse(&sent[0].1).is_ok());
    }
}

#[test]
fn an_expired_ttl_is_reported_to_the_sender() {
    let mut bench = Bench::usual();
    for ttl in [0, 1] {
        let bytes = from_alice_with(ipv4::Header { ttl, ..header(ALICE.1, BOB.1) }).bytes();
        let sent = bench.send(1, &bytes);
        assert_eq!(
            to_text(&sent),
            ["1: 02:00:00:00:01:01 > 02:00:00:00:01:09 ipv4 10.0.1.1 > 10.0.1.9 ttl 64 len 63 \
                 tos 0xc0 icmp time-exceeded payload 35"]
        );
        let error = Packet::parse(&sent[0].1).unwrap();
        assert_eq!(error.payload(), &bytes[14..49], "quotes the packet as it came, no padding");
        bench.account();
    }
    assert_eq!(bench.router.drops.of(DropReason::TtlExpired), 2);
    assert_eq!(bench.router.counters.icmp_errors, 2);
}

#[test]
fn a_missing_route_is_reported_to_the_sender() {
    let mut bench = Bench::usual();
    let bytes = from_alice([172, 16, 0, 1].into()).payload(&[7; 1400]).bytes();
    let sent = bench.send(1, &bytes);
    let text = to_text(&sent);
    assert!(text[0].contains("10.0.1.1 > 10.0.1.9 ttl 64 len 576"), "{text:?}");
    assert!(text[0].contains("net-unreachable payload 548"), "{text:?}");
    assert_eq!(bench.router.drops.of(DropReason::NoRoute), 1);
}

#[test]
fn no_icmp_error_for_errors_fragments_and_distant_sources() {
    let mut bench = Bench::usual();
    let nowhere = Ipv4Addr::new(172, 16, 0, 1);
    let error = Builder::new(mac(1), ALICE.0)
        .ipv4(header(ALICE.1, nowhere))
        .icmp(icmp::Header::new(icmp::UNREACHABLE, 0, 0))
        .payload(&[0; 28])
        .bytes();
    bench.lost(1, &error, DropReason::NoRoute);
    let piece = ipv4::Header { fragment_offset: 80, ..header(ALICE.1, nowhere) };
    bench.lost(1, &from_alice_with(piece).bytes(), DropReason::NoRoute);
    let stranger = header([172, 16, 9, 9].into(), nowhere);
    bench.lost(1, &from_alice_with(stranger).bytes(), DropReason::NoRoute);
    let broadcast = header([10, 0, 1, 255].into(), nowhere);
    bench.lost(1, &from_alice_with(broadcast).bytes(), DropReason::NoRoute);
    let echo = Builder::new(mac(1), ALICE.0)
        .ipv4(header(ALICE.1, nowhere))
        .icmp(icmp::Header::echo_request(1, 1))
        .bytes();
    assert_eq!(bench.send(1, &echo).len(), 1, "an echo request is no error");
}

#[test]
fn icmp_errors_are_rate_limited() {
    let icmp_limit = IcmpLimit { errors_per_s: 10, burst: 2 };
    let mut bench = Bench::new(&Settings { icmp_limit, ..settings() });
    let bytes = from_alice([172, 16, 0, 1].into()).bytes();
    let sent: usize = (0..10).map(|_| bench.send(1, &bytes).len()).sum();
    assert_eq!((sent, bench.router.counters.icmp_limited), (2, 8));
    bench.now += Nanos::from_millis(100);
    let sent: usize = (0..10).map(|_| bench.send(1, &bytes).len()).sum();
    assert_eq!((sent, bench.router.drops.of(DropReason::NoRoute)), (1, 20));
}

#[test]
fn an_oversized_packet_is_fragmented_unless_df_is_set() {
    let mut bench = Bench::usual();
    let far = Ipv4Addr::new(192, 168, 1, 1);
    let stays = ipv4::Header { dont_fragment: true, ..header(ALICE.1, far) };
    let sent = bench.send(1, &from_alice_with(stays).payload(&[1; 1000]).bytes());
    let text = to_text(&sent);
    assert!(text.len() == 1 && text[0].contains("fragmentation-needed mtu 600"), "{text:?}");
    assert_eq!(bench.router.drops.of(DropReason::TooLong), 1);

    let payload: Vec<u8> = (0..1000).map(|at| at as u8).collect();
    let bytes = from_alice(far).payload(&payload).bytes();
    let sent = bench.send(1, &bytes);
    let pieces: Vec<Packet> = sent.iter().map(|(_, piece)| Packet::parse(piece).unwrap()).collect();
    let whole: Vec<u8> = sent
        .iter()
        .flat_map(|(_, piece)| piece[34..14 + u16_at(piece, 16) as usize].to_vec())
        .collect();
    assert_eq!(whole, bytes[34..]);
    assert!(pieces.iter().all(|piece| piece.ipv4().is_some_and(|view| view.ttl() == 63)));
    assert!(sent.iter().all(|(port, piece)| *port == 3 && piece.len() <= 614));
    assert_eq!((bench.router.counters.fragmented, bench.router.counters.fragments), (1, 2));
    bench.account();
}

#[test]
fn a_full_output_queue_is_counted() {
    let mut bench = Bench::usual();
    let frames = crate::forwarder::OUTPUT_FRAMES_MAX as u64 + 3;
    for _ in 0..frames {
        let mut batch = Batch::new(1);
        batch.push_bytes(&from_alice(BOB.1).bytes());
        bench.received += 1;
        bench.router.forward(1, &mut batch, SECOND, &mut bench.out);
    }
    assert_eq!(bench.router.drops.of(DropReason::OutputQueueFull), 3);
    bench.account();
}

#[test]
fn the_cache_follows_route_changes() {
    let mut bench = Bench::new(&Settings { cache_entries: 64, ..settings() });
    let bytes = from_alice([192, 168, 3, 3].into()).bytes();
    assert_eq!((bench.send(1, &bytes)[0].0, bench.send(1, &bytes)[0].0), (3, 3));
    let cache = bench.router.cache().expect("the neighbor was requested");
    assert_eq!((cache.hits, cache.misses), (1, 1));
    bench.router.add_route(net("192.168.3.0/24"), Some(BOB.1), None).unwrap();
    assert_eq!(bench.send(1, &bytes)[0].0, 2);
    bench.router.remove_route(net("192.168.3.0/24"));
    assert_eq!(bench.send(1, &bytes)[0].0, 3);
    assert!(Bench::usual().router.cache().is_none());
}

#[test]
fn invalid_settings_are_rejected() {
    let refuse = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        Router::new(&settings).unwrap_err()
    };
    let bad = |own: [u8; 4], length| (own.into(), length);
    assert_eq!(refuse(&|s| s.interfaces[1].port = 1), RouterError::InterfaceTwice(1));
    assert_eq!(refuse(&|s| s.interfaces[0].mac = [1; 6]), RouterError::BadMac(1));
    assert_eq!(refuse(&|s| s.interfaces[0].mtu = 67), RouterError::BadMtu(67));
    for (own, length) in [([10, 9, 0, 1], 33), ([10, 9, 0, 1], 0), ([127, 0, 0, 1], 8)] {
        let error = refuse(&|s| s.interfaces[0].addresses.push(bad(own, length)));
        assert_eq!(error, RouterError::BadAddress(own.into(), length));
    }
    assert!(matches!(refuse(&|s| s.routes_max = 5), RouterError::RoutesFull(_)));
}

#[test]
fn invalid_routes_are_rejected() {
    let mut router = Bench::usual().router;
    let mut add =
        |net, via: Option<[u8; 4]>, port| router.add_route(net, via.map(Ipv4Addr::from), port);
    let far = net("172.16.0.0/12");
    let unreachable = RouterError::UnreachableHop([11, 0, 0, 1].into());
    assert_eq!(add(far, Some([11, 0, 0, 1]), None), Err(unreachable));
    assert_eq!(add(far, None, Some(7)), Err(RouterError::NoInterface(7)));
    assert_eq!(add(far, Some([224, 0, 0, 1]), Some(1)).unwrap_err(), {
        RouterError::BadAddress([224, 0, 0, 1].into(), 32)
    });
    let own = net("10.0.1.1/32");
    assert_eq!(add(own, None, Some(2)), Err(RouterError::OwnAddress(own)));
    assert_eq!(add(far, None, Some(2)), Ok(()));
    assert!(!router.remove_route(own) && !router.remove_route(net("1.0.0.0/8")));
}
