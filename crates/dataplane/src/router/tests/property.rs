//! Property tests with random frames: no panics, every frame is accounted for, and output is valid.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Draws frames of all kinds that the router distinguishes, including damaged ones.
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

/// Returns what leaves if rows are decided in receive buffers, each row prefetched while the
/// previous one is decided. `head_bytes` bytes of each frame are visible and writable.
fn in_place(
    bench: &mut Bench,
    port: PortNo,
    rows: &[&[Vec<u8>]],
    head_bytes: usize,
) -> Vec<(PortNo, Vec<u8>)> {
    let sights = |row: &[Vec<u8>]| -> Vec<(Vec<u8>, usize)> {
        row.iter().map(|it| (it[..it.len().min(head_bytes)].to_vec(), it.len())).collect()
    };
    let mut left = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let next = rows.get(number + 1).map(|next| sights(next)).unwrap_or_default();
        let heads = sights(row);
        let mut decisions = [Decision::Dropped; SIGHTS_MAX];
        fn see(heads: &[(Vec<u8>, usize)]) -> Vec<FrameHead<'_>> {
            heads.iter().map(|(head, bytes)| FrameHead { head, bytes: *bytes }).collect()
        }
        let both = [&see(&heads)[..], &see(&next)];
        let decided = bench.router.decide(port, both, bench.now, &mut decisions);
        let (done, batch) = match decided {
            BatchDecision::Rewrites(done, batch) => (done, Some(batch)),
            BatchDecision::Done(0) => (0, None),
            _ => panic!("a router rewrites every frame and defers none"),
        };
        for (place, decision) in decisions[..done].iter().enumerate() {
            let (head, bytes) = &heads[place];
            let Decision::Output(to) = *decision else {
                panic!("it drops no frame because of its visible length")
            };
            let rest = &row[place][head.len()..];
            let mut head = [&[0; GROWS_MAX], &head[..]].concat();
            let (start, after) = batch.as_ref().unwrap().rewrite(place, &mut head, *bytes);
            let head = &head[start..];
            assert!(after == *bytes || after <= head.len(), "{after} of {bytes}");
            let mut whole = [head, rest].concat();
            whole.truncate(after);
            left.push((to, whole));
        }
        bench.received += done as u64;
        for bytes in &row[done..] {
            left.extend(bench.send(port, bytes));
        }
    }
    left.sort_by_key(|(port, _)| *port);
    left
}

proptest! {
    /// Includes long frames, unknown neighbors, padding and damaged frames.
    #[test]
    fn deciding_in_the_receive_buffers_gives_the_same_result(
        bursts in vec((0usize..3, vec((frame(), 0usize..200), 1..80)), 1..6),
        row_frames in 1usize..=SIGHTS_MAX,
        head_bytes in prop_oneof![Just(64usize), Just(128)],
        cache_entries in prop_oneof![3 => Just(0usize), 1 => Just(4)],
    ) {
        let settings = Settings { cache_entries, ..settings() };
        let (mut bench, mut other) = (Bench::new(&settings), Bench::new(&settings));
        for (place, frames) in bursts {
            let frames: Vec<Vec<u8>> = frames
                .into_iter()
                .map(|((_, mut bytes), padding)| {
                    bytes.truncate(bytes.len().min(300));
                    bytes.resize(bytes.len() + if padding > 120 { padding } else { 0 }, 0xee);
                    // Some frames are addressed to another port.
                    if padding % 8 > 0 {
                        bytes[..6].copy_from_slice(&mac(PORTS[place]));
                    }
                    bytes
                })
                .collect();
            let port = PORTS[place];
            let mut batch = Batch::new(frames.len());
            frames.iter().for_each(|bytes| assert!(batch.push_bytes(bytes)));
            bench.router.forward(port, &mut batch, bench.now, &mut bench.out);
            let rows: Vec<&[Vec<u8>]> = frames.chunks(row_frames).collect();
            let left = in_place(&mut other, port, &rows, head_bytes);
            prop_assert_eq!(to_text(&bench.sent()), to_text(&left));
            prop_assert_eq!(bench.router.counters, other.router.counters);
            prop_assert_eq!(&bench.router.drops, &other.router.drops);
        }
    }

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
        // Afterwards, no request is pending, so no frame waits.
        bench.pass(Nanos::from_secs(20));
        prop_assert_eq!(bench.router.neighbors.frames_waiting, 0);
        bench.account();
    }

    #[test]
    fn the_cache_does_not_change_results(frames in vec(frame(), 1..60)) {
        let mut plain = Bench::usual();
        let mut cached = Bench::new(&Settings { cache_entries: 2, ..settings() });
        for (place, bytes) in frames {
            prop_assert_eq!(plain.send(PORTS[place], &bytes), cached.send(PORTS[place], &bytes));
        }
        prop_assert_eq!(plain.router.counters, cached.router.counters);
        prop_assert_eq!(plain.router.drops, cached.router.drops);
    }
}
