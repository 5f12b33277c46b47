//! Frames that stay where they are leave as frames that are moved do: the same ones, in the same order,
//! with the same counters, by ports of either kind.

use std::net::Ipv6Addr;

use dataplane::action::Action;
use dataplane::flow::{FlowFilter, FlowSpec};
use dataplane::group::{BucketSpec, GroupKind, GroupSpec};
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::pipeline::{OnMiss, Pipeline, Settings};
use packet::build::Builder;
use packet::frame::{Batch, PortNo};
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;
use ports::memif::port::MemifPort;
use ports::memif::ring::Side;
use ports::memif::spec::Spec;
use ports::memif::view::View;
use ports::port::Port;
use switch::config::{Config, Kind, OpenFlowConfig, PortConfig, Service};
use switch::forward::{ForwardLoop, NumberedPort};
use switch::plane::Plane;
use switch::process::open_apart;

const PORTS: [PortNo; 4] = [1, 2, 3, 4];
/// Frames that a ring holds: enough for all that a test sends.
const RING_FRAMES: usize = 1024;

/// A port of the switch and what is at the other end.
type Link = (Box<dyn Port>, Box<dyn Port>);

fn memory_link(name: &str) -> Link {
    let (near, far) = ports::memory::pair(RING_FRAMES, name);
    (Box::new(near), Box::new(far))
}

fn memif_link(name: &str) -> Link {
    let (near, far) = memif_ports(name, 1);
    (Box::new(near), Box::new(far))
}

/// Two ends of a connection with so many queues each way.
fn memif_ports(name: &str, queues: u16) -> (MemifPort, MemifPort) {
    let path = format!("planimeter-in-place-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(path);
    let (receive_queues, transmit_queues) = (queues, queues);
    let server = Spec { huge_pages: false, receive_queues, transmit_queues, ..Spec::new(path) };
    let client = Spec { side: Side::Client, ..server.clone() };
    let mut near = MemifPort::open(&server).expect("it listens");
    let mut far = MemifPort::open(&client).expect("it calls");
    let mut now = ports::clock::now();
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

/// A switch and what is at the other ends of its ports.
struct Bench {
    forward: ForwardLoop<Pipeline>,
    far: Vec<Box<dyn Port>>,
}

impl Bench {
    fn new(links: Vec<Link>, service: Service) -> Bench {
        let (near, far): (Vec<_>, Vec<_>) = links.into_iter().unzip();
        let settings = Settings { on_miss: OnMiss::Drop, ..Settings::default() };
        let pipeline = Pipeline::new(&PORTS, &settings);
        let near = PORTS.into_iter().zip(near).collect();
        Bench { forward: ForwardLoop::new(near, pipeline, service), far }
    }

    /// Sends frames to a port and returns what came out of each.
    fn carry(&mut self, port: PortNo, frames: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut batch = Batch::new(RING_FRAMES);
        frames.iter().for_each(|frame| assert!(batch.push_bytes(frame)));
        let now = Nanos(1);
        let place = PORTS.iter().position(|other| *other == port).expect("it is one of them");
        assert_eq!(self.far[place].transmit(&mut batch, now).expect("it works"), frames.len());
        while self.forward.turn(now).frames > 0 || self.forward.next_event() == Some(Nanos::ZERO) {}
        let received = |port: &mut Box<dyn Port>| {
            let mut batch = Batch::new(RING_FRAMES);
            while port.receive(&mut batch, now).expect("it works") > 0 {}
            batch.frames().iter().map(|frame| frame.bytes().to_vec()).collect()
        };
        self.far.iter_mut().map(received).collect()
    }

    /// Counters of entries in the order of their cookies.
    fn counters(&self) -> Vec<(u64, u64, u64)> {
        let filter = FlowFilter::ALL;
        let flows = self.forward.forwarder.tables().records(&filter, 0, Nanos(2));
        let mut all: Vec<_> = flows.map(|flow| (flow.cookie, flow.frames, flow.bytes)).collect();
        all.sort_unstable();
        all
    }
}

/// Numbers that look random and repeat.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

/// A frame of some kind, in a third of all cases one that is longer than what is looked at.
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
        // An entry by a field that only whole frames show.
        let asked = [
            (packet::field::Field::EthType, 0x86dd, 0xffff),
            (packet::field::Field::Ipv6Flabel, 0, 0xf_ffff),
        ];
        let spec = FlowSpec { cookie: 9, ..FlowSpec::new(Match::asking(&asked), 9, &plain[3]) };
        pipeline.add(&spec, Nanos(0), &mut out).expect("there is room");
    }
}

#[test]
fn frames_that_stay_in_place_leave_as_others_do() {
    let mut long = 0;
    for seed in 0..24 {
        // Small grants end in the midst of what is shown.
        let quantum_bytes = if seed % 2 == 0 { 16 * 1518 } else { 3000 };
        let service = Service::DeficitRoundRobin { quantum_bytes };
        let name = |port: PortNo| format!("{seed}-{port}");
        let shared = PORTS.iter().map(|&port| match port {
            4 => memory_link(&name(port)),
            _ => memif_link(&name(port)),
        });
        let mut shared = Bench::new(shared.collect(), service);
        let own = PORTS.iter().map(|&port| memory_link(&name(port)));
        let mut own = Bench::new(own.collect(), service);
        for bench in [&mut shared, &mut own] {
            install(&mut bench.forward.forwarder, &mut Dice(seed));
        }
        let mut dice = Dice(seed + 1000);
        for port in PORTS {
            let frames: Vec<_> = (0..150 + dice.roll(300)).map(|_| frame(&mut dice)).collect();
            long += frames.iter().filter(|frame| frame.len() > 128).count();
            let (left, right) = (shared.carry(port, &frames), own.carry(port, &frames));
            for (place, (left, right)) in left.iter().zip(&right).enumerate() {
                assert_eq!(left.len(), right.len(), "seed {seed}, {port} to {}", PORTS[place]);
                assert!(left == right, "seed {seed}, {port} to {}", PORTS[place]);
            }
        }
        assert_eq!(shared.counters(), own.counters(), "seed {seed}");
        let drops = |bench: &Bench| bench.forward.forwarder.drops();
        assert_eq!(drops(&shared), drops(&own), "seed {seed}");
        let lost =
            |bench: &Bench| bench.forward.lanes.iter().map(|lane| lane.drops).collect::<Vec<_>>();
        assert_eq!(lost(&shared), lost(&own), "seed {seed}");
    }
    assert!(long > 1000, "{long} frames longer than what is looked at");
}

/// Two threads, each with a queue of two ports; the third port has one queue, and whoever does not have it
/// hands its frames over.
#[test]
fn queues_are_spread_over_threads_and_every_frame_is_accounted_for() {
    let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig::default()));
    let (mut near, mut far): (Vec<NumberedPort>, Vec<MemifPort>) = Default::default();
    for (number, queues) in [(1, 2), (2, 2), (3, 1)] {
        let (one, other) = memif_ports(&format!("threads-{number}"), queues);
        near.push((number, Box::new(one)));
        far.push(other);
        config.ports.push(PortConfig { number, spec: format!("memif:{number}") });
    }
    let mut node = open_apart(&config, near, &[None, None], 1).unwrap();
    let Plane::OpenFlow(pipeline) = &mut node.forward.forwarder else { panic!("it is a switch") };
    let mut out = dataplane::forwarder::Outputs::new(&[1, 2, 3]);
    // By the destination's last byte: to port 2, to port 3, nowhere.
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
            port.receive(&mut batch, ports::clock::now()).unwrap();
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
        // Two of three frames of each queue come back.
        let give_up = ports::clock::now() + Nanos::from_secs(20);
        while collect(&mut far) < 4 * usize::from(round + 1) {
            assert!(ports::clock::now() < give_up, "round {round}");
            std::thread::yield_now();
        }
    }
    for numbers in &numbers {
        // Both queues' frames, each in order.
        assert_eq!(numbers.len(), 2 * usize::from(ROUNDS));
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..ROUNDS).flat_map(|number| [number; 2]).collect::<Vec<_>>());
    }
    // What the threads say of themselves comes a moment later.
    let give_up = ports::clock::now() + Nanos::from_secs(20);
    loop {
        node.serve(ports::clock::now());
        let counted: Vec<_> =
            node.forward.lanes.iter_mut().map(|lane| lane.port.counters()).collect();
        let frames: Vec<_> = counted.iter().map(|port| (port.rx_frames, port.tx_frames)).collect();
        let each = 2 * u64::from(ROUNDS);
        if frames == [(3 * each, 0), (0, each), (0, each)] {
            break;
        }
        assert!(ports::clock::now() < give_up, "{frames:?}");
        std::thread::yield_now();
    }
    assert!(node.forward.turns_apart.iter().all(|turns| turns.busy > 0 && turns.cycles_busy > 0));
    assert_eq!(node.forward.turns_apart.len(), 2);
}
