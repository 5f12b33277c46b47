//! Any frames at any time: nothing panics, every frame is accounted for, and what leaves is right.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Frames of the kinds that the router treats differently, some of them broken.
fn frame() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let octets = prop_oneof![
        4 => (1u8..4, prop_oneof![Just(1u8), Just(2), Just(9), Just(255), any::<u8>()])
            .prop_map(|(net, host)| [10, 0, net, host]),
        1 => any::<[u8; 2]>().prop_map(|[a, b]| [192, 168, a, b]),
        1 => any::<[u8; 4]>(),
    ];
    let ip = (octets.clone(), octets, 0u8..4, any::<u16>(), any::<bool>());
    let shape = (0usize..3, 0u8..6, 0usize..1400, vec(any::<u8>(), 0..12));
    let damage = vec((any::<proptest::sample::Index>(), any::<u8>()), 0..2);
    (ip, shape, damage).prop_map(|((source, destination, ttl, word, df), shape, damage)| {
        let (place, kind, length, options) = shape;
        let header = ipv4::Header {
            ttl,
            dont_fragment: df,
            options: Options::from_bytes(&options).expect("short"),
            fragment_offset: if word & 7 == 0 { word & 0xff8 } else { 0 },
            ..header(source.into(), destination.into())
        };
        let port = PORTS[place];
        let builder = Builder::new(mac(port), [2, 0, 0, 0, 9, word as u8]);
        let ip = builder.clone().ipv4(header);
        let target_mac = [0; 6];
        let builder = match kind {
            0 => ip.icmp(icmp::Header::new(word as u8 & 15, 0, word.into())),
            1 => ip.tcp(tcp::Header::new(word, 2, tcp::SYN)),
            2 => builder.arp(arp::Header {
                operation: word & 3,
                sender_mac: [2, 0, 0, 0, 9, word as u8],
                sender_ip: source.into(),
                target_mac,
                target_ip: destination.into(),
            }),
            _ => ip.udp(word, 9),
        };
        let mut bytes = builder.payload(&vec![7; length]).bytes();
        for (at, value) in damage {
            let at = at.index(bytes.len().min(60));
            bytes[at] = value;
        }
        (place, bytes)
    })
}

fn check_sent(port: PortNo, bytes: &[u8]) {
    assert_eq!(array_at::<6>(bytes, 6), mac(port), "{}", Show(bytes));
    assert!(bytes[..6] != [0; 6], "{}", Show(bytes));
    if u16_at(bytes, 12) == ethernet::TYPE_IPV4 {
        let (header, _) = ipv4::Header::parse(&bytes[14..])
            .unwrap_or_else(|fault| panic!("{fault}: {}", Show(bytes)));
        assert!(header.ttl > 0, "{}", Show(bytes));
        let mtu = if port == 3 { 600 } else { 1500 };
        assert!(u16_at(bytes, 16) <= mtu, "{}", Show(bytes));
    }
}

proptest! {
    #[test]
    fn every_frame_is_accounted_for(
        frames in vec((frame(), 0u64..2000), 1..60),
        cache_entries in prop_oneof![Just(0usize), Just(4)],
    ) {
        let mut bench = Bench::new(&Settings { cache_entries, ..settings() });
        for ((place, bytes), pause_ms) in frames {
            let sent = bench.send(PORTS[place], &bytes);
            sent.iter().for_each(|(port, bytes)| check_sent(*port, bytes));
            let sent = bench.pass(Nanos::from_millis(pause_ms));
            sent.iter().for_each(|(port, bytes)| check_sent(*port, bytes));
        }
        // After this nobody is asked any more, so nothing waits.
        bench.pass(Nanos::from_secs(20));
        prop_assert_eq!(bench.router.neighbors.frames_waiting, 0);
        bench.account();
    }

    #[test]
    fn the_cache_changes_nothing(frames in vec(frame(), 1..60)) {
        let mut plain = Bench::usual();
        let mut cached = Bench::new(&Settings { cache_entries: 2, ..settings() });
        for (place, bytes) in frames {
            prop_assert_eq!(plain.send(PORTS[place], &bytes), cached.send(PORTS[place], &bytes));
        }
        prop_assert_eq!(plain.router.counters, cached.router.counters);
        prop_assert_eq!(plain.router.drops, cached.router.drops);
    }
}
