//! Tests of learning, forwarding and accounting, frame by frame.

use std::collections::HashMap;

use packet::build::Builder;
use proptest::prelude::*;

use super::*;

const PORTS: [PortNo; 4] = [1, 2, 3, 7];
const SECOND: Nanos = Nanos::from_secs(1);

fn station(number: u8) -> Mac {
    [2, 0, 0, 0, 0, number]
}

fn frame(destination: Mac, source: Mac) -> Vec<u8> {
    Builder::new(destination, source).ether_type(0x88b5).payload(b"x").bytes()
}

/// A bridge with its outputs.
struct Bench {
    bridge: Bridge,
    out: Outputs,
}

impl Bench {
    fn new(settings: &Settings) -> Bench {
        Bench { bridge: Bridge::new(&PORTS, settings), out: Outputs::new(&PORTS) }
    }

    /// Returns the ports to which the bridge sends a frame that `port` receives.
    fn send(&mut self, port: PortNo, bytes: &[u8], now: Nanos) -> Vec<PortNo> {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        self.bridge.forward(port, &mut batch, now, &mut self.out);
        let mut places = Vec::new();
        for (place, queue) in self.out.queues_mut() {
            assert!(queue.frames().iter().all(|frame| frame.bytes() == bytes));
            places.extend(queue.frames().iter().map(|_| *place));
            queue.clear();
        }
        places
    }
}

#[test]
fn unknown_destinations_are_flooded_and_known_ones_are_not() {
    let mut bench = Bench::new(&Settings::default());
    assert_eq!(bench.send(1, &frame(station(2), station(1)), SECOND), [2, 3, 7]);
    assert_eq!(bench.send(3, &frame(station(1), station(2)), SECOND), [1]);
    assert_eq!(bench.send(1, &frame(station(2), station(1)), SECOND), [3]);
    let counters = bench.bridge.counters;
    assert_eq!((counters.forwarded, counters.flooded_unknown), (2, 1));
    assert_eq!(bench.bridge.drops.total(), 0);
}

#[test]
fn a_station_that_moves_is_relearned() {
    let mut bench = Bench::new(&Settings::default());
    bench.send(1, &frame(station(9), station(1)), SECOND);
    bench.send(2, &frame(station(9), station(1)), SECOND);
    assert_eq!(bench.send(3, &frame(station(1), station(9)), SECOND), [2]);
    assert_eq!(bench.bridge.table.counters.moved, 1);
}

#[test]
fn frames_between_stations_of_one_port_are_filtered() {
    let mut bench = Bench::new(&Settings::default());
    bench.send(1, &frame(station(9), station(1)), SECOND);
    assert_eq!(bench.send(1, &frame(station(1), station(2)), SECOND), []);
    assert_eq!(bench.bridge.drops.of(DropReason::SamePort), 1);
}

#[test]
fn group_addresses_are_flooded_and_never_learned() {
    let mut bench = Bench::new(&Settings::default());
    let group = [1, 0, 0x5e, 0, 0, 1];
    assert_eq!(bench.send(2, &frame(group, station(1)), SECOND), [1, 3, 7]);
    assert_eq!(bench.send(2, &frame(ethernet::BROADCAST, station(1)), SECOND), [1, 3, 7]);
    assert_eq!(bench.send(3, &frame(station(1), group), SECOND), []);
    assert_eq!(bench.send(3, &frame(station(1), [0; 6]), SECOND), []);
    assert_eq!(bench.bridge.drops.of(DropReason::BadSource), 2);
    assert_eq!(bench.bridge.counters.flooded_group, 2);
    assert_eq!(bench.bridge.table.len(), 1);
}

#[test]
fn frames_to_reserved_addresses_are_dropped_but_their_sources_are_learned() {
    let mut bench = Bench::new(&Settings::default());
    for last in 0..=0x10 {
        let reserved = [1, 0x80, 0xc2, 0, 0, last];
        let places = bench.send(1, &frame(reserved, station(1)), SECOND);
        assert_eq!(places.len(), if last <= 0x0f { 0 } else { 3 }, "{last:#x}");
    }
    assert_eq!(bench.bridge.drops.of(DropReason::ReservedAddress), 16);
    assert_eq!(bench.send(2, &frame(station(1), station(2)), SECOND), [1]);
}

#[test]
fn a_silent_station_ages_out() {
    let settings = Settings { ageing: Some(Nanos::from_secs(3600)), ..Settings::default() };
    let mut bench = Bench::new(&settings);
    bench.send(1, &frame(station(9), station(1)), SECOND);
    let before = Nanos::from_secs(3600);
    assert_eq!(bench.send(2, &frame(station(1), station(2)), before), [1]);
    let after = Nanos::from_secs(3601);
    assert_eq!(bench.send(2, &frame(station(1), station(2)), after), [1, 3, 7]);
    let mut now = after;
    for _ in 0..1000 {
        now = bench.bridge.tick(now, &mut bench.out).expect("a bridge always has a next sweep");
    }
    assert_eq!(bench.bridge.table.counters.aged, 1);
}

#[test]
fn a_static_address_keeps_its_port() {
    let mut bench = Bench::new(&Settings::default());
    assert!(bench.bridge.set_static(station(1), 0, 3));
    bench.send(1, &frame(station(9), station(1)), SECOND);
    let late = Nanos::from_secs(100_000);
    assert_eq!(bench.send(2, &frame(station(1), station(2)), late), [3]);
}

#[test]
fn a_full_table_floods_and_counts_unlearned_addresses() {
    let mut bench = Bench::new(&Settings { addresses_max: 2, ..Settings::default() });
    bench.send(1, &frame(station(9), station(1)), SECOND);
    bench.send(1, &frame(station(9), station(2)), SECOND);
    let mut batch = Batch::new(3);
    for _ in 0..3 {
        batch.push_bytes(&frame(station(9), station(3)));
    }
    bench.bridge.forward(1, &mut batch, SECOND, &mut bench.out);
    assert_eq!(bench.bridge.table.counters.full, 3);
    assert_eq!(bench.bridge.table.len(), 2);
}

#[test]
fn vlan_tags_matter_only_with_vlan_separation() {
    let tagged = |destination, source, vid| {
        Builder::new(destination, source).vlan(vid).ether_type(0x88b5).bytes()
    };
    let per_vlan = Settings { learning: Learning::PerVlan, ..Settings::default() };
    for (settings, places) in [(Settings::default(), vec![1]), (per_vlan, vec![1, 3, 7])] {
        let mut bench = Bench::new(&settings);
        bench.send(1, &tagged(station(9), station(1), 10), SECOND);
        assert_eq!(bench.send(2, &tagged(station(1), station(2), 20), SECOND), places);
        assert_eq!(bench.send(2, &tagged(station(1), station(2), 10), SECOND), [1]);
    }
}

#[test]
fn short_frames_and_full_queues_are_counted() {
    let mut bench = Bench::new(&Settings::default());
    assert_eq!(bench.send(1, &[0; 13], SECOND), []);
    assert_eq!(bench.bridge.drops.of(DropReason::TooShort), 1);
    let frames = crate::forwarder::OUTPUT_FRAMES_MAX + 5;
    let mut batch = Batch::new(frames);
    while batch.push_bytes(&frame(station(9), station(1))) {}
    bench.bridge.forward(1, &mut batch, SECOND, &mut bench.out);
    assert_eq!(bench.bridge.drops.of(DropReason::OutputQueueFull), 3 * 5);
}

#[test]
fn a_bridge_with_one_port_drops_floods() {
    let mut bridge = Bridge::new(&[1], &Settings::default());
    let mut batch = Batch::new(1);
    batch.push_bytes(&frame(station(2), station(1)));
    bridge.forward(1, &mut batch, SECOND, &mut Outputs::new(&[1]));
    assert_eq!(bridge.drops.of(DropReason::NoDestination), 1);
}

proptest! {
    /// Compares whole batches with a map, and checks that every frame is accounted for.
    #[test]
    fn batches_are_forwarded_as_a_map_predicts(
        batches in proptest::collection::vec(
            (0usize..4, proptest::collection::vec((0u8..6, 0u8..6), 1..20)), 0..30),
    ) {
        let mut bench = Bench::new(&Settings::default());
        let mut oracle: HashMap<u8, PortNo> = HashMap::new();
        for (place, pairs) in batches {
            let port = PORTS[place];
            let mut batch = Batch::new(32);
            let mut expected: HashMap<PortNo, Vec<Vec<u8>>> = HashMap::new();
            for (destination, source) in pairs {
                let bytes = frame(station(destination), station(source));
                batch.push_bytes(&bytes);
                oracle.insert(source, port);
                let known = oracle.get(&destination);
                let places = PORTS.iter().filter(|&&other| {
                    other != port && known.is_none_or(|&known| known == other)
                });
                places.for_each(|&other| expected.entry(other).or_default().push(bytes.clone()));
            }
            bench.bridge.forward(port, &mut batch, SECOND, &mut bench.out);
            for (place, queue) in bench.out.queues_mut() {
                let got: Vec<_> = queue.frames().iter().map(|f| f.bytes().to_vec()).collect();
                prop_assert_eq!(got, expected.remove(place).unwrap_or_default());
                queue.clear();
            }
        }
    }
}

/// Returns where each frame goes if rows are decided in receive buffers, each row prefetched while
/// the previous one is decided. The result includes frames passed to `resume`.
fn in_place(
    bench: &mut Bench,
    port: PortNo,
    rows: &[Vec<Vec<u8>>],
) -> HashMap<PortNo, Vec<Vec<u8>>> {
    fn sights(row: &[Vec<u8>]) -> Vec<FrameHead<'_>> {
        // Only headers are visible.
        row.iter().map(|it| FrameHead { head: &it[..it.len().min(18)], bytes: it.len() }).collect()
    }
    let mut left: HashMap<PortNo, Vec<Vec<u8>>> = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        let next = rows.get(number + 1).map(|next| sights(next)).unwrap_or_default();
        let mut decisions = [Decision::Dropped; SIGHTS_MAX];
        let row_sights = sights(row);
        match bench.bridge.decide(port, [&row_sights, &next], SECOND, &mut decisions) {
            BatchDecision::Rewrites(..) => panic!("a bridge rewrites no frame"),
            BatchDecision::Done(count) => {
                assert_eq!(count, row.len());
                for (bytes, decision) in row.iter().zip(decisions) {
                    if let Decision::Output(to) = decision {
                        left.entry(to).or_default().push(bytes.clone());
                    }
                }
            }
            BatchDecision::Needs(count, flood) => {
                assert_eq!(count, row.len());
                let mut batch = Batch::new(SIGHTS_MAX);
                row.iter().for_each(|bytes| assert!(batch.push_bytes(bytes)));
                flood.resume(batch.frames_mut(), SECOND, &mut bench.out);
                for (to, queue) in bench.out.queues_mut() {
                    let frames = queue.frames().iter().map(|frame| frame.bytes().to_vec());
                    left.entry(*to).or_default().extend(frames);
                    queue.clear();
                }
            }
        }
    }
    left.retain(|_, frames| !frames.is_empty());
    left
}

proptest! {
    /// Includes group addresses, short frames, invalid sources and a table that is too small.
    #[test]
    fn deciding_in_the_receive_buffers_gives_the_same_result(
        batches in proptest::collection::vec(
            (0usize..4, proptest::collection::vec((0u8..9, 0u8..9), 1..100)), 0..12),
        row_frames in 1usize..=SIGHTS_MAX,
        learning in prop_oneof![Just(Learning::Shared), Just(Learning::PerVlan)],
    ) {
        let settings = Settings { addresses_max: 6, learning, ..Settings::default() };
        let (mut bench, mut other) = (Bench::new(&settings), Bench::new(&settings));
        // A static address at a port that does not exist.
        for it in [&mut bench, &mut other] {
            prop_assert!(it.bridge.set_static(station(5), 0, 99));
        }
        for (place, pairs) in batches {
            let port = PORTS[place];
            let bytes = |(number, (destination, source)): (usize, (u8, u8))| match number % 7 {
                3 if source == 3 => vec![2; usize::from(destination)],
                4 if source == 4 => frame(station(destination), [3, 0, 0, 0, 0, source]),
                5 if destination == 5 => frame([1, 0x80, 0xc2, 0, 0, source], station(source)),
                6 => Builder::new(station(destination), station(source))
                    .vlan(u16::from(source % 2))
                    .ether_type(0x88b5)
                    .bytes(),
                _ => frame(station(destination), station(source)),
            };
            let frames: Vec<Vec<u8>> = pairs.into_iter().enumerate().map(bytes).collect();
            let mut batch = Batch::new(frames.len());
            frames.iter().for_each(|bytes| assert!(batch.push_bytes(bytes)));
            bench.bridge.forward(port, &mut batch, SECOND, &mut bench.out);
            let rows: Vec<_> = frames.chunks(row_frames).map(<[Vec<u8>]>::to_vec).collect();
            let mut left = in_place(&mut other, port, &rows);
            for (place, queue) in bench.out.queues_mut() {
                let got: Vec<_> = queue.frames().iter().map(|f| f.bytes().to_vec()).collect();
                prop_assert_eq!(got, left.remove(place).unwrap_or_default());
                queue.clear();
            }
            prop_assert!(left.is_empty(), "{left:?}");
            let (one, two) = (&bench.bridge, &other.bridge);
            prop_assert_eq!(one.counters, two.counters);
            let all = |it: &Bridge| DropReason::ALL.iter().map(|why| it.drops.of(*why)).collect();
            let (drops, others): (Vec<u64>, Vec<u64>) = (all(one), all(two));
            prop_assert_eq!(drops, others);
            prop_assert_eq!(one.table.len(), two.table.len());
            prop_assert_eq!(one.table.counters, two.table.counters);
        }
    }
}
