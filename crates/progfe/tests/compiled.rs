//! Tests of the compiled program against the interpreter, with random graphs and random frames in
//! batches.
//!
//! Both must send the same frames, report the same redirected frames and events in the same order,
//! and have the same counters and tables. This also applies after another program replaced the
//! first one, and after a rollback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use dataplane::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, GROWS_MAX, Outputs, PendingBatch, SIGHTS_MAX,
};
use forces::Value;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::{Change, Element};
use progfe::executor::Enforcer;
use progfe::interpret::Interpreter;
use progfe::observe::Wanted;
use proptest::prelude::*;

/// Random programs and random frames.
mod random;

use random::{BLOCKS, PORTS, document, frames, program};

/// All observable state of an element.
#[derive(Debug, PartialEq)]
struct Seen {
    account: String,
    left: Vec<(PortNo, Vec<Vec<u8>>)>,
    told: Vec<String>,
    links: Vec<(u64, u64)>,
    drops: Vec<String>,
    components: Vec<(String, u32, Option<Value>)>,
    held: u64,
}

/// The way frames reach an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As frames.
    Frames,
    /// Decided in place.
    InPlace,
    /// Decided in place, with some frames observed.
    Observed,
}

/// An element with its output queues.
struct Run<E: Enforcer> {
    element: Element<E>,
    out: Outputs,
    /// Frames that left before the last batch.
    left: BTreeMap<PortNo, Vec<Vec<u8>>>,
    /// Whether frames are decided in place.
    in_place: bool,
    /// Number of frames decided in place.
    stayed: usize,
}

/// Number of first bytes of a frame that are visible in place.
const SEEN: usize = 128;

impl<E: Enforcer> Run<E> {
    fn new(text: &str) -> Run<E> {
        let mut element = Element::start(program(text).unwrap(), 7).unwrap();
        let mut out = Outputs::new(&(1..=PORTS).collect::<Vec<_>>());
        element.tick(Nanos::from_secs(1), &mut out);
        Run { element, out, left: BTreeMap::new(), in_place: false, stayed: 0 }
    }

    /// Observes some frames: block costs, and a trace of frames from port 2.
    fn observe(&mut self) {
        let (now, until) = (Nanos::ZERO, Nanos::from_secs(2));
        assert!(self.element.measure_costs(|| 0, 3, until, now));
        let wanted = Wanted { count: 40, port: Some(2), when: String::new(), until };
        self.element.trace_next(&wanted, now).unwrap();
    }

    /// Forwards a batch from one port, followed by other frames.
    fn row(&mut self, row: &[(u32, Vec<u8>)], next: &[(u32, Vec<u8>)], now: Nanos) {
        let sight = |(_, bytes): &'_ (u32, Vec<u8>)| (bytes.len().min(SEEN), bytes.len());
        let see = |row: &[(u32, Vec<u8>)]| row.iter().map(sight).collect::<Vec<_>>();
        let (these, those) = (see(row), see(next));
        fn sights<'a>(row: &'a [(u32, Vec<u8>)], seen: &[(usize, usize)]) -> Vec<FrameHead<'a>> {
            let both = row.iter().zip(seen);
            both.map(|((_, all), (seen, bytes))| FrameHead { head: &all[..*seen], bytes: *bytes })
                .collect()
        }
        let (these, those) = (sights(row, &these), sights(next, &those));
        let port = row[0].0;
        let mut decisions = [Decision::Dropped; SIGHTS_MAX];
        let is_declined = match self.element.decide(port, [&these, &those], now, &mut decisions) {
            BatchDecision::Needs(count, batch) => {
                assert_eq!(count, row.len(), "all or none of a row");
                let frames = row.iter().map(|(_, bytes)| Frame::from_bytes(bytes));
                batch.resume(&mut frames.collect::<Vec<_>>(), now, &mut self.out);
                false
            }
            BatchDecision::Done(0) => true,
            BatchDecision::Done(count) => {
                assert_eq!(count, row.len(), "all or none of a row");
                self.stayed += count;
                for (decision, (_, bytes)) in decisions.iter().zip(row) {
                    if let Decision::Output(to) = *decision {
                        self.left.entry(to).or_default().push(bytes.clone());
                    }
                }
                false
            }
            BatchDecision::Rewrites(count, batch) => {
                assert_eq!(count, row.len(), "all or none of a row");
                self.stayed += count;
                for (place, (_, bytes)) in row.iter().enumerate() {
                    let Decision::Output(to) = decisions[place] else { continue };
                    let seen = bytes.len().min(SEEN);
                    let mut head = [&[0xee; GROWS_MAX], &bytes[..seen]].concat();
                    let (start, all) = batch.rewrite(place, &mut head, bytes.len());
                    let frame = [&head[start..], &bytes[seen..]].concat();
                    assert_eq!(frame.len(), all);
                    self.left.entry(to).or_default().push(frame);
                }
                false
            }
        };
        if is_declined {
            let mut batch = Batch::new(row.len());
            row.iter().for_each(|(_, bytes)| assert!(batch.push_bytes(bytes)));
            self.element.forward(port, &mut batch, now, &mut self.out);
        }
        self.clear();
    }

    /// Takes the frames that wait at the ports.
    fn clear(&mut self) {
        for (port, queue) in self.out.queues_mut() {
            let frames = queue.frames().iter().map(|frame| frame.bytes().to_vec());
            self.left.entry(*port).or_default().extend(frames);
            queue.clear();
        }
    }

    /// Forwards frames in batches of consecutive frames from one port.
    fn forward(&mut self, frames: &[(u32, Vec<u8>)], most: usize, now: Nanos) {
        for row in frames.chunk_by(|(one, _), (other, _)| one == other) {
            if self.in_place {
                let rows: Vec<_> = row.chunks(most.min(SIGHTS_MAX)).collect();
                for (at, row) in rows.iter().enumerate() {
                    self.row(row, rows.get(at + 1).copied().unwrap_or_default(), now);
                }
                continue;
            }
            for row in row.chunks(most) {
                let mut batch = Batch::new(row.len());
                row.iter().for_each(|(_, bytes)| assert!(batch.push_bytes(bytes)));
                self.element.forward(row[0].0, &mut batch, now, &mut self.out);
            }
        }
    }

    fn seen(&mut self, now: Nanos) -> Seen {
        self.clear();
        let left = std::mem::take(&mut self.left).into_iter().collect();
        let mut told = Vec::new();
        while let Some(frame) = self.element.next_told() {
            let bytes = frame.frame.bytes().to_vec();
            told.push(format!("{:?} {} {:?} {bytes:?}", frame.to, frame.instance, frame.meta));
        }
        while let Some(report) = self.element.next_report() {
            told.push(format!("{report:?}"));
        }
        let element = &self.element;
        let program = element.program();
        let mut drops = Vec::new();
        let mut components = Vec::new();
        for (at, instance) in program.instances.iter().enumerate() {
            let of = |drop| format!("{} {drop:?}", instance.name);
            let mut own: Vec<String> = element.drops(at).iter().map(of).collect();
            own.sort();
            drops.extend(own);
            components.extend(program.class_of(at).components.iter().map(|component| {
                let value = element.enforcer().component(at, component.id, now);
                (instance.name.clone(), component.id, value)
            }));
        }
        let links = (0..program.links.len()).map(|at| element.link(at));
        Seen {
            account: format!("{:?}", element.account()),
            left,
            told,
            links: links.map(|traffic| (traffic.frames, traffic.bytes)).collect(),
            drops,
            components,
            held: element.enforcer().held(),
        }
    }

    /// Forwards frames under one program, then under another, then under the first again.
    fn all(
        text: &str,
        other: &str,
        frames: &[(u32, Vec<u8>)],
        (rows, most): (&[usize], usize),
        way: Way,
    ) -> (Vec<Seen>, usize) {
        let mut run = Run::<E>::new(text);
        run.in_place = way != Way::Frames;
        if way == Way::Observed {
            run.observe();
        }
        let mut seen = Vec::new();
        let mut now = Nanos::from_secs(1);
        let mut pass = |run: &mut Run<E>, seen: &mut Vec<Seen>| {
            for row in rows {
                let more: Vec<_> = frames.iter().cycle().take(*row).cloned().collect();
                run.forward(&more, most, now);
                seen.push(run.seen(now));
                now = now.saturating_add(Nanos::from_millis(150));
                run.element.tick(now, &mut run.out);
                seen.push(run.seen(now));
            }
        };
        pass(&mut run, &mut seen);
        if let Some(next) = program(other) {
            // Preparation through a basis and through the element must be equivalent.
            let prepared = match run.in_place {
                true => run.element.basis().prepare(next).unwrap(),
                false => run.element.prepare(next).unwrap(),
            };
            run.element.swap(prepared, Nanos::from_secs(2), &mut run.out).unwrap();
            pass(&mut run, &mut seen);
            assert!(run.element.roll_back(Nanos::from_secs(3), &mut run.out));
            pass(&mut run, &mut seen);
        }
        (seen, run.stayed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_compiled_program_agrees_with_the_interpreter(
        blocks in proptest::collection::vec(0..BLOCKS.len(), 1..14),
        others in proptest::collection::vec(0..BLOCKS.len(), 1..14),
        leads in proptest::collection::vec(any::<u8>(), 1..60),
        frames in frames(),
        rows in proptest::collection::vec(1usize..120, 1..4),
        most in prop_oneof![Just(256usize), 1usize..70],
        one_port: bool,
        look in 0..3,
    ) {
        let (text, other) = (document(&blocks, &leads), document(&others, &leads));
        prop_assume!(program(&text).is_some());
        let frames: Vec<_> = match one_port {
            true => frames.into_iter().map(|(_, bytes)| (1, bytes)).collect(),
            false => frames,
        };
        let (interpreted, _) = Run::<Interpreter>::all(&text, &other, &frames, (&rows, most), Way::Frames);
        let (compiled, _) = Run::<Compiled>::all(&text, &other, &frames, (&rows, most), Way::Frames);
        for (wanted, got) in interpreted.iter().zip(&compiled) {
            prop_assert_eq!(wanted, got, "{}\nthen\n{}", text, other);
        }
        prop_assert_eq!(interpreted.len(), compiled.len());
        // A batch in place has at most the number of frames decided together.
        let most = most.min(SIGHTS_MAX);
        let (interpreted, _) = Run::<Interpreter>::all(&text, &other, &frames, (&rows, most), Way::Frames);
        let (in_place, _) = Run::<Compiled>::all(&text, &other, &frames, (&rows, most), Way::InPlace);
        for (wanted, got) in interpreted.iter().zip(&in_place) {
            prop_assert_eq!(wanted, got, "in place\n{}\nthen\n{}", text, other);
        }
        // Some of them are observed, block by block.
        if look == 0 {
            let (observed, _) =
                Run::<Compiled>::all(&text, &other, &frames, (&rows, most), Way::Observed);
            for (wanted, got) in interpreted.iter().zip(&observed) {
                prop_assert_eq!(wanted, got, "observed\n{}\nthen\n{}", text, other);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn examples_agree_with_the_interpreter(
        // Loading the last example takes long.
        example in prop_oneof![12 => 0..EXAMPLES.len() - 1, 1 => Just(EXAMPLES.len() - 1)],
        frames in proptest::collection::vec(packets(), 1..90),
        most in 1usize..90,
    ) {
        let text = EXAMPLES[example];
        let (interpreted, _) = Run::<Interpreter>::all(text, text, &frames, (&[90, 40], most), Way::Frames);
        let (compiled, _) = Run::<Compiled>::all(text, text, &frames, (&[90, 40], most), Way::Frames);
        let (in_place, _) = Run::<Compiled>::all(text, text, &frames, (&[90, 40], most), Way::InPlace);
        for ((wanted, got), stayed) in interpreted.iter().zip(&compiled).zip(&in_place) {
            prop_assert_eq!(wanted, got);
            prop_assert_eq!(wanted, stayed);
        }
        prop_assert_eq!(interpreted.len(), compiled.len());
    }
}

/// A route of either kind of table: nested networks below 10.0.0.0/8.
fn route() -> impl Strategy<Value = Value> {
    let length = prop_oneof![Just(0u64), Just(8), Just(16), Just(24), Just(32)];
    (0u8..5, 0u8..3, length, 1u64..9, proptest::bool::weighted(0.1)).prop_map(
        |(net, host, length, hop, ecmp)| {
            Value::struct_of([
                (1, Value::Bytes(vec![10, net, 0, host])),
                (2, Value::Unsigned(length)),
                (3, Value::Boolean(ecmp)),
                (4, Value::Boolean(false)),
                (5, Value::Unsigned(0)),
                (6, Value::Unsigned(hop)),
            ])
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_changed_one_by_one_equal_a_complete_program(
        steps in proptest::collection::vec(
            (proptest::collection::vec((0u32..8, proptest::option::weighted(0.8, route())), 1..4),
             0u8..4),
            1..12),
        frames in proptest::collection::vec(packets(), 30),
    ) {
        let mut run = Run::<Compiled>::new(EXAMPLES[4]);
        run.in_place = true;
        let now = Nanos::from_secs(1);
        for (rows, end) in steps {
            let instance = run.element.program().find("lpm").unwrap();
            let changes: Vec<Change> = rows.into_iter().map(|(index, route)| {
                let path = vec![1, index + 20];
                match route {
                    Some(value) => Change::Set { instance, path, value },
                    None => Change::Delete { instance, path },
                }
            }).collect();
            // Two rows with one prefix are rejected, and so is the deletion of a missing row.
            if let Ok(prepared) = run.element.prepare_changes(&changes) {
                run.element.swap(prepared, now, &mut run.out).unwrap();
                match end {
                    0 => prop_assert!(run.element.roll_back(now, &mut run.out)),
                    // Without `settle`, the next change cannot use successors.
                    1 => {}
                    _ => run.element.settle(),
                }
            }
            let mut fresh = Run::<Compiled>::new(EXAMPLES[4]);
            fresh.element = Element::start((**run.element.program()).clone(), 7).unwrap();
            fresh.in_place = true;
            run.left.clear();
            run.forward(&frames, 8, now);
            fresh.forward(&frames, 8, now);
            prop_assert_eq!(&run.left, &fresh.left);
        }
    }
}

/// The example programs.
const EXAMPLES: &[&str] = &[
    include_str!("../../../examples/progfe/bridge.fe.xml"),
    include_str!("../../../examples/progfe/dpi.fe.xml"),
    include_str!("../../../examples/progfe/oam.fe.xml"),
    include_str!("../../../examples/progfe/own-agent.fe.xml"),
    include_str!("../../../examples/progfe/router.fe.xml"),
    include_str!("../../../examples/progfe/router-agents.fe.xml"),
    include_str!("../../../examples/progfe/vlan.fe.xml"),
    include_str!("../../../examples/progfe/bridge-complex.fe.xml"),
];

/// IPv4 and other frames for stations of the examples, some of them corrupted.
fn packets() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let station = prop_oneof![
        3 => (1u8..3).prop_map(|last| [2, 0, 0, 0, 1, last]),
        1 => (0u8..4).prop_map(|last| [2, 0, 0, 0, 0, last]),
        1 => Just([255; 6]),
    ];
    let address = prop_oneof![
        4 => (0u8..5, any::<u8>()).prop_map(|(net, host)| [10, net, 0, host]),
        1 => any::<[u8; 4]>(),
    ];
    let kind = prop_oneof![
        6 => Just(vec![8, 0]),
        1 => Just(vec![8, 6]),
        2 => Just(vec![0x81, 0, 0, 100, 8, 0]),
        1 => Just(vec![0, 46]),
    ];
    let ttl = prop_oneof![1 => 0u8..3, 3 => Just(64)];
    let service = prop_oneof![Just(5060u16), Just(53), Just(4000), Just(7001), 5061u16..5063];
    let way = (prop_oneof![3 => Just(17u8), 1 => Just(6), 1 => Just(1)], service);
    let first = prop_oneof![5 => Just(0x45u8), 1 => any::<u8>()];
    let header = (ttl, address, prop_oneof![Just(0u8), any::<u8>()], first, way);
    let damage = proptest::option::weighted(0.1, (0usize..60, any::<u8>()));
    (1u32..3, station.clone(), station, kind, header, damage).prop_map(
        |(port, to, from, kind, (ttl, address, tos, first, (protocol, service)), damage)| {
            let mut packet = vec![0x45, tos, 0, 46, 0, 0, 0, 0, ttl, protocol, 0, 0, 10, 1, 0, 9];
            packet.extend(address);
            let [high, low] = service.to_be_bytes();
            packet.extend([0x13, 0xc4, high, low, 0, 26, 0, 0]);
            packet.resize(46, 0);
            packet::header::ipv4::set_checksum(&mut packet);
            packet[0] = first;
            let mut frame = [&to[..], &from, &kind, &packet].concat();
            if let Some((at, byte)) = damage {
                frame[at] = byte;
            }
            (port, frame)
        },
    )
}

#[test]
fn plain_frames_of_the_examples_are_decided_in_place() {
    let packet = |to: [u8; 4]| {
        let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 9];
        packet.extend(to);
        packet.extend([0x13, 0xc4, 0x13, 0xc4, 0, 26, 0, 0]);
        packet.resize(46, 0);
        packet::header::ipv4::set_checksum(&mut packet);
        packet
    };
    let frame = |to: [u8; 6], from: [u8; 6], behind: &[u8]| [&to[..], &from, behind].concat();
    let [a, b, own] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1, 1]];
    let ip = [&[8, 0][..], &packet([10, 2, 0, 7])].concat();
    let tagged = [&[0x81, 0, 0, 100][..], &ip].concat();
    let (there, back) = (frame(b, a, &ip), frame(a, b, &ip));
    let bridged = vec![(1, there.clone()), (2, back), (1, there.clone())];
    // To a port that no workload uses.
    let idle = bridged.iter().map(|(port, frame)| {
        let mut frame = frame.clone();
        frame[37] = 0xc5;
        (*port, frame)
    });
    // A bridge floods its first frames; the other programs learn nothing.
    let cases = [
        (EXAMPLES[0], bridged.clone(), 2),
        (EXAMPLES[7], idle.collect(), 2),
        (EXAMPLES[3], vec![(1, frame(own, a, &ip))], 1),
        (EXAMPLES[4], vec![(1, there), (2, frame(a, b, &tagged))], 2),
    ];
    for (text, frames, stay) in cases {
        let (interpreted, _) = Run::<Interpreter>::all(text, text, &frames, (&[9], 9), Way::Frames);
        let (in_place, _) = Run::<Compiled>::all(text, text, &frames, (&[9], 9), Way::InPlace);
        assert_eq!(interpreted, in_place);
        let mut run = Run::<Compiled>::new(text);
        run.in_place = true;
        run.forward(&frames, 1, Nanos::from_secs(1));
        assert_eq!(run.stayed, stay, "{text}");
    }
}

#[test]
fn every_class_of_block_is_used() {
    for kind in 0..BLOCKS.len() {
        let text = document(&[kind], &[2, 7, 3]);
        let element: Element<Compiled> = Element::start(program(&text).expect(&text), 7).unwrap();
        assert!(element.enforcer().has_plan(), "{text}");
    }
}

#[test]
fn paths_merge_only_with_equal_knowledge() {
    // Both outputs of the first Match lead to the second one, which tests the same.
    let text = document(&[5, 0, 3, 3], &[212, 0, 0, 0, 0, 0, 16, 2, 62, 1, 56]);
    let tagged = vec![2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x81, 0, 0, 7, 8, 0];
    let (mut plain, mut other) = (tagged.clone(), tagged.clone());
    plain.drain(12..16);
    other[12..14].copy_from_slice(&[0x12, 0x34]);
    let frames = [(1, tagged), (1, plain), (1, other)];
    let (interpreted, _) = Run::<Interpreter>::all(&text, &text, &frames, (&[9], 4), Way::Frames);
    let (compiled, _) = Run::<Compiled>::all(&text, &text, &frames, (&[9], 4), Way::Frames);
    assert_eq!(interpreted, compiled);
    assert!(Run::<Compiled>::new(&text).element.enforcer().tree().joins() > 0);
}
