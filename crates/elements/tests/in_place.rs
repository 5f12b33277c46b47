//! Tests that frames that stay in place are forwarded like frames that are copied, for a switch, a
//! bridge, a router and a tagger. The frames, their order and the counters are the same, for ports
//! of either kind.

use std::net::Ipv6Addr;

use dataplane::action::Action;
use dataplane::bridge::{self, Bridge};
use dataplane::flow::{FlowFilter, FlowSpec};
use dataplane::forwarder::Forwarder;
use dataplane::group::{BucketSpec, GroupKind, GroupSpec};
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::neighbor::Place;
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use dataplane::route_table::Prefix;
use dataplane::router::{self, Router};
use dataplane::tagger::{Rule, Tagger};
use elements::config::{Config, Kind, OpenFlowConfig, PortConfig, Service};
use elements::datapath::DataPlane;
use elements::forward::{ForwardLoop, NumberedPort, PortDrops};
use elements::process::open_apart;
use netio::in_place::View;
use netio::memif::port::MemifPort;
use netio::memif::ring::Side;
use netio::memif::spec::Spec;
use netio::port::Port;
use packet::build::Builder;
use packet::frame::{Batch, PortNo};
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;

const PORTS: [PortNo; 4] = [1, 2, 3, 4];
/// Frames in a ring: enough for all that a test sends.
const RING_FRAMES: usize = 1024;

/// A port of the switch and its peer.
type Link = (Box<dyn Port>, Box<dyn Port>);

fn memory_link(name: &str) -> Link {
    let (near, far) = netio::memory::pair(RING_FRAMES, name);
    (Box::new(near), Box::new(far))
}

fn memif_link(name: &str) -> Link {
    let (near, far) = memif_ports(name, 1);
    (Box::new(near), Box::new(far))
}

/// Returns both sides of a connection with this number of queues in each direction.
fn memif_ports(name: &str, queues: u16) -> (MemifPort, MemifPort) {
    let path = format!("planimeter-in-place-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(path);
    let (receive_queues, transmit_queues) = (queues, queues);
    let server = Spec { huge_pages: false, receive_queues, transmit_queues, ..Spec::new(path) };
    let client = Spec { side: Side::Client, ..server.clone() };
    let mut near = MemifPort::open(&server).expect("it listens");
    let mut far = MemifPort::open(&client).expect("it calls");
    let mut now = os::clock::now();
    for _ in 0..1000 {
        now += Nanos::from_millis(10);
        near.turn(now);
        far.turn(now);
        if near.has_link() && far.has_link() {
            return (near, far);
        }
    }
    panic!("{:?} {:?}", near.last_words(), far.last_words());
}

/// A forwarder, and the peers of its ports.
struct Bench<F> {
    forward: ForwardLoop<F>,
    far: Vec<Box<dyn Port>>,
}

impl<F: Forwarder> Bench<F> {
    fn new(links: Vec<Link>, service: Service, forwarder: F) -> Bench<F> {
        let (near, far): (Vec<_>, Vec<_>) = links.into_iter().unzip();
        let near = PORTS.into_iter().zip(near).collect();
        Bench { forward: ForwardLoop::new(near, forwarder, service), far }
    }

    /// Creates two benches: one whose ports except the last are in shared memory, and one without
    /// such ports.
    fn pair(name: &str, service: Service, make: impl Fn() -> F) -> [Bench<F>; 2] {
        let link = |port: PortNo| format!("{name}-{port}");
        let shared = PORTS.iter().map(|&port| match port {
            4 => memory_link(&link(port)),
            _ => memif_link(&link(port)),
        });
        let own = PORTS.iter().map(|&port| memory_link(&link(port)));
        [Bench::new(shared.collect(), service, make()), Bench::new(own.collect(), service, make())]
    }

    /// Sends frames to a port and returns the output of each port.
    fn carry(&mut self, port: PortNo, frames: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut batch = Batch::new(RING_FRAMES);
        frames.iter().for_each(|frame| assert!(batch.push_bytes(frame)));
        let now = Nanos(1);
        let place = PORTS.iter().position(|other| *other == port).expect("a port of the bench");
        assert_eq!(self.far[place].transmit(&mut batch, now).expect("it works"), frames.len());
        while self.forward.turn(now).frames > 0 || self.forward.next_event() == Some(Nanos::ZERO) {}
        let received = |port: &mut Box<dyn Port>| {
            let mut batch = Batch::new(RING_FRAMES);
            while port.receive(&mut batch, now).expect("it works") > 0 {}
            batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
        };
        self.far.iter_mut().map(received).collect()
    }

    /// Returns the frames that ports did not accept.
    fn lost(&self) -> Vec<PortDrops> {
        self.forward.forward_ports.iter().map(|forward_port| forward_port.drops).collect()
    }
}

/// Sends the same frames to both benches, and checks that their output is the same.
fn carry_both<F: Forwarder>(
    [shared, own]: &mut [Bench<F>; 2],
    port: PortNo,
    frames: &[Vec<u8>],
    seed: u64,
) {
    let (left, right) = (shared.carry(port, frames), own.carry(port, frames));
    for (place, (left, right)) in left.iter().zip(&right).enumerate() {
        assert_eq!(left.len(), right.len(), "seed {seed}, {port} to {}", PORTS[place]);
        assert!(left == right, "seed {seed}, {port} to {}", PORTS[place]);
    }
    assert_eq!(shared.lost(), own.lost(), "seed {seed}");
}

impl Bench<Pipeline> {
    /// Returns the counters of entries in the order of their cookies.
    fn counters(&self) -> Vec<(u64, u64, u64)> {
        let filter = FlowFilter::ALL;
        let flows = self.forward.forwarder.tables().records(&filter, 0, Nanos(2));
        let mut all: Vec<_> = flows.map(|flow| (flow.cookie, flow.frames, flow.bytes)).collect();
        all.sort_unstable();
        all
    }
}

/// Reproducible pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

/// Returns a random frame. One third of the frames are longer than the inspected part.
fn frame(dice: &mut Dice) -> Vec<u8> {
    let (to, udp) = (dice.roll(6) as u8, dice.roll(3) as u16);
    let frame = Builder::new([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 1, 1]);
    let v4 = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, to].into());
    let v6 = ipv6::Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
    let frame = match dice.roll(6) {
        0 => frame.vlan(5).ipv4(v4).udp(1, udp),
        1 => frame.ipv6(v6).udp(1, udp),
        2 => frame.ether_type(0x88b5),
        _ => frame.ipv4(v4).udp(1, udp),
    };
    let payload: Vec<u8> =
        (0..[10, 70, 90, 600, 1400][dice.roll(5) as usize]).map(|_| dice.roll(256) as u8).collect();
    let mut bytes = frame.payload(&payload).bytes();
    if dice.roll(20) == 0 {
        bytes.truncate(dice.roll(20) as usize + 1);
    }
    bytes
}

fn install(pipeline: &mut Pipeline, dice: &mut Dice) {
    let mut out = dataplane::forwarder::Outputs::new(&PORTS);
    let bucket = |id: u32, port: PortNo| BucketSpec::new(id, 0, &[Action::Output { port }]);
    let all = vec![bucket(1, 2), bucket(2, 3)];
    let group = GroupSpec { number: 7, kind: GroupKind::All, buckets: all };
    pipeline.add_group(group, Nanos(0)).expect("there is room");
    let plain = [
        vec![],
        vec![Action::Output { port: 1 }],
        vec![Action::Output { port: 2 }],
        vec![Action::Output { port: 3 }],
        vec![Action::Output { port: 4 }],
    ];
    let others = [
        vec![Action::Group(7)],
        vec![Action::Flood],
        vec![Action::InPort],
        vec![Action::Output { port: 2 }, Action::Output { port: 4 }],
    ];
    for to in 0..5u64 {
        let actions = match dice.roll(4) {
            0 => &others[dice.roll(4) as usize],
            _ => &plain[dice.roll(5) as usize],
        };
        let matching = Match::of(&[(Field::EthDst, 0x02_00_00_00_00_00 + to)]);
        let spec = FlowSpec { cookie: to, ..FlowSpec::new(matching, 5, actions) };
        pipeline.add(&spec, Nanos(0), &mut out).expect("there is room");
    }
    if dice.roll(3) == 0 {
        // An entry with a field that requires the whole frame.
        let asked = [
            (packet::field::Field::EthType, 0x86dd, 0xffff),
            (packet::field::Field::Ipv6Flabel, 0, 0xf_ffff),
        ];
        let spec = FlowSpec { cookie: 9, ..FlowSpec::new(Match::asking(&asked), 9, &plain[3]) };
        pipeline.add(&spec, Nanos(0), &mut out).expect("there is room");
    }
}

#[test]
fn frames_processed_in_place_leave_like_copied_frames() {
    let mut long = 0;
    for seed in 0..24 {
        let settings = Settings { on_miss: OnMiss::Drop, ..Settings::default() };
        let make = || {
            let mut pipeline = Pipeline::new(&PORTS, &settings);
            install(&mut pipeline, &mut Dice(seed));
            pipeline
        };
        let mut benches = Bench::pair(&format!("flows-{seed}"), service(seed), make);
        let mut dice = Dice(seed + 1000);
        for port in PORTS {
            let frames: Vec<_> = (0..150 + dice.roll(300)).map(|_| frame(&mut dice)).collect();
            long += frames.iter().filter(|frame| frame.len() > 128).count();
            carry_both(&mut benches, port, &frames, seed);
        }
        let [shared, own] = &benches;
        assert_eq!(shared.counters(), own.counters(), "seed {seed}");
        let drops = |bench: &Bench<Pipeline>| bench.forward.forwarder.drops();
        assert_eq!(drops(shared), drops(own), "seed {seed}");
    }
    assert!(long > 1000, "{long} frames longer than the inspected part");
}

/// Small quanta end in the middle of the visible frames.
fn service(seed: u64) -> Service {
    let quantum_bytes = if seed.is_multiple_of(2) { 16 * 1518 } else { 3000 };
    Service::DeficitRoundRobin { quantum_bytes }
}

#[test]
fn frames_bridged_in_place_leave_like_copied_frames() {
    let mut counted = (0, 0, 0);
    for seed in 0..12 {
        let settings = bridge::Settings { addresses_max: 7, ..bridge::Settings::default() };
        let name = format!("bridge-{seed}");
        let mut benches = Bench::pair(&name, service(seed), || Bridge::new(&PORTS, &settings));
        let mut dice = Dice(seed);
        for turn in 0..12 {
            let port = PORTS[dice.roll(4) as usize];
            // At first there are few stations, so that all frames are flooded; then more than fit
            // into the table.
            let stations = 2 + turn;
            let frames = (0..1 + dice.roll(60)).map(|_| {
                let mut bytes = frame(&mut dice);
                if let Some(source) = bytes.get_mut(11) {
                    *source = dice.roll(stations) as u8;
                    bytes[10] = 0;
                }
                bytes
            });
            carry_both(&mut benches, port, &frames.collect::<Vec<_>>(), seed);
        }
        let [shared, own] = benches.map(|bench| bench.forward.forwarder);
        assert_eq!(shared.counters, own.counters, "seed {seed}");
        assert_eq!(shared.drops, own.drops, "seed {seed}");
        assert_eq!(shared.table.counters, own.table.counters, "seed {seed}");
        counted.0 += shared.counters.forwarded;
        counted.1 += shared.counters.flooded_unknown;
        counted.2 += shared.table.counters.full;
    }
    assert!(counted.0 > 300 && counted.1 > 300 && counted.2 > 300, "{counted:?}");
}

/// Creates a router with a network on each port and a neighbour in three of them.
fn router() -> Router {
    let interface = |&port: &PortNo| router::Interface {
        port,
        mac: [2, 0, 0, 0, 0, port as u8],
        addresses: vec![([10, 0, port as u8, 1].into(), 24)],
        mtu: if port == 2 { 600 } else { 1500 },
    };
    let interfaces = PORTS.iter().map(interface).collect();
    let settings = router::Settings { interfaces, ..router::Settings::default() };
    let mut router = Router::new(&settings).expect("right settings");
    let mut out = dataplane::forwarder::Outputs::new(&PORTS);
    for port in 1..4 {
        let place = Place { port, address: [10, 0, port as u8, 9].into() };
        router.set_neighbor(place, [2, 0, 0, 0, 9, port as u8], &mut out).expect("room");
        let behind = Prefix::new([10, 9, port as u8, 0].into(), 24).expect("right");
        router.add_route(behind, Some(place.address), None).expect("room");
    }
    router
}

/// Returns a random packet: to neighbours, to networks behind them, or to unknown hosts; too long
/// for a link, from and to one port, with padding, or at its last hop.
fn packet(dice: &mut Dice, port: PortNo) -> Vec<u8> {
    let net = 1 + dice.roll(4) as u8;
    let to = match dice.roll(10) {
        0 => [10, 0, net, 77],
        1 => [10, 8, net, 1],
        2..6 => [10, 9, net, dice.roll(256) as u8],
        _ => [10, 0, net, 9],
    };
    let ttl = if dice.roll(20) == 0 { 1 } else { 64 };
    let dont_fragment = dice.roll(2) == 0;
    let header =
        ipv4::Header { ttl, dont_fragment, ..ipv4::Header::new([10, 0, 1, 8].into(), to.into()) };
    let bytes = [0, 40, 120, 600, 1400][dice.roll(5) as usize];
    let frame = Builder::new([2, 0, 0, 0, 0, port as u8], [2, 0, 0, 0, 7, 7]);
    let mut bytes = frame.ipv4(header).udp(1, 2).payload(&vec![7; bytes]).bytes();
    match dice.roll(40) {
        0 => bytes[20] ^= 1,
        1 => bytes[5] ^= 1,
        2 => bytes.extend([0xee; 30]),
        _ => {}
    }
    bytes
}

#[test]
fn packets_routed_in_place_leave_like_copied_packets() {
    for seed in 0..12 {
        let mut benches = Bench::pair(&format!("router-{seed}"), service(seed), router);
        let mut dice = Dice(seed);
        for turn in 0..12 {
            let port = PORTS[turn % 4];
            let count = 1 + dice.roll(100);
            let frames: Vec<_> = (0..count).map(|_| packet(&mut dice, port)).collect();
            carry_both(&mut benches, port, &frames, seed);
        }
        let [shared, own] = benches.map(|bench| bench.forward.forwarder);
        assert_eq!(shared.counters, own.counters, "seed {seed}");
        assert_eq!(shared.drops, own.drops, "seed {seed}");
        let counters = shared.counters;
        assert!(counters.forwarded > 100 && counters.fragmented > 2, "{counters:?}");
    }
}

#[test]
fn frames_tagged_in_place_leave_like_copied_frames() {
    let rule =
        |dscp, udp_destination, vlan, priority| Rule { dscp, udp_destination, vlan, priority };
    let rules = vec![
        rule(Some(0..=15), Some(2), 1, 7),
        rule(Some(16..=40), None, 2, 5),
        rule(None, Some(53), 3, 0),
    ];
    let make =
        || Tagger::new(dataplane::tagger::Settings { access: 1, trunk: 2, rules: rules.clone() });
    let mut counted = (0, 0, 0);
    for seed in 0..12 {
        let mut benches = Bench::pair(&format!("tagger-{seed}"), service(seed), make);
        let mut dice = Dice(seed);
        for turn in 0..12 {
            let port = PORTS[turn % 3];
            let count = 1 + dice.roll(60);
            let frames: Vec<_> = (0..count).map(|_| to_be_tagged(&mut dice)).collect();
            carry_both(&mut benches, port, &frames, seed);
        }
        let [shared, own] = benches.map(|bench| bench.forward.forwarder);
        assert_eq!(shared.counters, own.counters, "seed {seed}");
        assert_eq!(shared.drops, own.drops, "seed {seed}");
        counted.0 += shared.counters.tagged;
        counted.1 += shared.counters.untagged;
        counted.2 += shared.counters.passed;
    }
    assert!(counted.0 > 300 && counted.1 > 300 && counted.2 > 300, "{counted:?}");
}

/// Returns a datagram of a random class with or without a tag, or another frame.
fn to_be_tagged(dice: &mut Dice) -> Vec<u8> {
    if dice.roll(5) == 0 {
        return frame(dice);
    }
    let mut builder = Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    if dice.roll(2) == 0 {
        let word = (dice.roll(8) << 13 | dice.roll(5)) as u16;
        builder = builder.tag(packet::header::ethernet::TYPE_VLAN, word);
    }
    let header = ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let builder = builder.ipv4(ipv4::Header { tos: dice.roll(256) as u8, ..header });
    let payload = vec![7; dice.roll(1400) as usize];
    builder.udp(9, [2, 53, 80][dice.roll(3) as usize]).payload(&payload).bytes()
}

/// Two threads, each with a queue of two ports. The third port has one queue; the thread that does
/// not own it passes its frames to the other one.
#[test]
fn queues_are_distributed_over_threads_and_every_frame_is_accounted_for() {
    let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig::default()));
    let (mut near, mut far): (Vec<NumberedPort>, Vec<MemifPort>) = Default::default();
    for (number, queues) in [(1, 2), (2, 2), (3, 1)] {
        let (one, other) = memif_ports(&format!("threads-{number}"), queues);
        near.push((number, Box::new(one)));
        far.push(other);
        config.ports.push(PortConfig { number, spec: format!("memif:{number}") });
    }
    let mut node = open_apart(&config, near, &[None, None], 1).unwrap();
    let DataPlane::OpenFlow(pipeline) = &mut node.forward.forwarder else {
        panic!("it is a switch")
    };
    let mut out = dataplane::forwarder::Outputs::new(&[1, 2, 3]);
    // By the last byte of the destination: to port 2, to port 3, dropped.
    for (to, actions) in [(0, vec![2]), (1, vec![3]), (2, vec![])] {
        let actions: Vec<_> = actions.into_iter().map(|port| Action::Output { port }).collect();
        let matching = Match::of(&[(Field::EthDst, to)]);
        pipeline.add(&FlowSpec::new(matching, 5, &actions), Nanos(0), &mut out).unwrap();
    }
    pipeline.publish();
    let frame = |to: u8, number: u16| {
        let mut bytes = [0; 60];
        (bytes[5], bytes[6], bytes[12]) = (to, 2, 0x88);
        bytes[20..22].copy_from_slice(&number.to_be_bytes());
        bytes
    };
    let mut numbers: [Vec<u16>; 2] = Default::default();
    let mut collect = |far: &mut [MemifPort]| {
        for (place, port) in far[1..].iter_mut().enumerate() {
            let mut batch = Batch::new(256);
            port.receive(&mut batch, os::clock::now()).unwrap();
            let number = |frame: &packet::frame::Frame| {
                u16::from_be_bytes([frame.bytes()[20], frame.bytes()[21]])
            };
            numbers[place].extend(batch.frames().iter().map(number));
        }
        numbers.iter().map(Vec::len).sum::<usize>()
    };
    const ROUNDS: u16 = 300;
    for round in 0..ROUNDS {
        for queue in far[0].split().1 {
            for to in 0..3 {
                let put = queue.put(View::of(&frame(to, round)));
                put.expect("the ring is emptied in between");
            }
            queue.flush();
        }
        // Two of three frames of each queue return.
        let give_up = os::clock::now() + Nanos::from_secs(20);
        while collect(&mut far) < 4 * usize::from(round + 1) {
            assert!(os::clock::now() < give_up, "round {round}");
            std::thread::yield_now();
        }
    }
    for numbers in &numbers {
        // The frames of both queues, each in order.
        assert_eq!(numbers.len(), 2 * usize::from(ROUNDS));
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..ROUNDS).flat_map(|number| [number; 2]).collect::<Vec<_>>());
    }
    // The state reports of the threads arrive a moment later.
    let give_up = os::clock::now() + Nanos::from_secs(20);
    loop {
        node.serve(os::clock::now());
        let counted: Vec<_> = node
            .forward
            .forward_ports
            .iter_mut()
            .map(|forward_port| forward_port.port.counters())
            .collect();
        let frames: Vec<_> = counted.iter().map(|port| (port.rx_frames, port.tx_frames)).collect();
        let each = 2 * u64::from(ROUNDS);
        if frames == [(3 * each, 0), (0, each), (0, each)] {
            break;
        }
        assert!(os::clock::now() < give_up, "{frames:?}");
        std::thread::yield_now();
    }
    assert!(node.forward.turns_apart.iter().all(|turns| turns.busy > 0 && turns.cycles_busy > 0));
    assert_eq!(node.forward.turns_apart.len(), 2);
}
