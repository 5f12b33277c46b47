//! Random tables, changes and frames: both data planes together against the one in user space.

use dataplane::egress::PortSettings;
use dataplane::flow::{FlowRecord, ModifyRules, Part};
use dataplane::forwarder::Event;
use dataplane::key::{self, Key};
use dataplane::table::{TableConfig, TableMiss};
use packet::header::{arp, icmp, tcp};

use super::*;

/// Reproducible random choices (xorshift64).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.roll(choices.len() as u64) as usize]
    }
}

/// Returns a frame of a few flows, and sometimes one that is cut or has random bytes.
fn frame(dice: &mut Dice) -> Vec<u8> {
    let mac = |dice: &mut Dice| [2, 0, 0, 0, 0, dice.roll(3) as u8];
    let mut builder = Builder::new(mac(dice), mac(dice));
    for _ in 0..dice.pick(&[0, 0, 0, 1, 1, 2, 3]) {
        let control = dice.pick(&[5, 7, 0x6005, 0x1007]);
        builder = builder.tag(dice.pick(&[0x8100, 0x88a8, 0x9100]), control);
    }
    let address = |dice: &mut Dice| [10, 0, 0, dice.roll(3) as u8];
    let port = |dice: &mut Dice| dice.pick(&[53, 80, 0, 0xffff]);
    let mut header = ipv4::Header::new(address(dice).into(), address(dice).into());
    header.ttl = dice.pick(&[0, 1, 2, 64, 255]);
    header.tos = dice.pick(&[0, 0x28, 0xff]);
    let (one, two) = (port(dice), port(dice));
    let builder = match dice.roll(12) {
        0 => builder.arp(arp::Header {
            operation: dice.pick(&[1, 2]),
            sender_mac: [2; 6],
            sender_ip: address(dice).into(),
            target_mac: [0; 6],
            target_ip: address(dice).into(),
        }),
        1 => builder.ether_type(0x88b5),
        2 => builder.ipv6(ipv6::Header::new([1; 16].into(), [2; 16].into())).udp(one, two),
        3 => builder.ipv4(header).icmp(icmp::Header::echo_request(1, 2)),
        4 => builder.ipv4(header).sctp(one, two, 9),
        5..=7 => builder.ipv4(header).tcp(tcp::Header::new(one, two, 0x10)),
        _ => builder.ipv4(header).udp(one, two),
    };
    let mut bytes = builder.payload(&dice.roll(u64::MAX).to_be_bytes()).bytes();
    match dice.roll(10) {
        0 => bytes.truncate(14 + dice.roll(50) as usize),
        1..=3 => {
            for _ in 0..=dice.roll(3) {
                let at = dice.roll(bytes.len().min(60) as u64) as usize;
                bytes[at] = dice.pick(&[0, 1, 8, 0x45, 0xff, dice.0 as u8]);
            }
        }
        _ => {}
    }
    bytes
}

fn action(dice: &mut Dice) -> Action {
    use field::Field as F;
    let value = u128::from(dice.roll(u64::MAX));
    let set = |field: F| Action::set(field, value & field.ones());
    let partly = |field: F| {
        let mask = value >> 8 & field.ones();
        Action::SetField { field, value: value & mask, mask }
    };
    match dice.roll(20) {
        0 => Action::DecIpTtl,
        1 => Action::SetIpTtl(value as u8),
        2 => Action::PushVlan(dice.pick(&[0x8100, 0x88a8])),
        3 => Action::PopVlan,
        4 => Action::SetVlan(value as u16 & 0xfff),
        5 => Action::SetVlanPriority(value as u8 & 7),
        6 => Action::SetL4Src(value as u16),
        7 => Action::SetL4Dst(dice.pick(&[0, 53])),
        8 => Action::set(F::VlanVid, 0x1000 | value & 0xfff),
        9 => set(F::VlanPcp),
        10 => partly(F::Ipv4Src),
        11 => dice.pick(&[set(F::EthDst), set(F::EthSrc)]),
        12 => dice.pick(&[set(F::IpDscp), set(F::IpEcn)]),
        13 => dice.pick(&[set(F::TcpSrc), set(F::UdpDst), partly(F::UdpSrc)]),
        14 => set(F::Ipv4Dst),
        15 => Action::set(F::Ipv4Dst, 0x0a00_0001),
        16 => Action::Controller { bytes_max: 64 },
        17 => Action::InPort,
        18 => Action::Flood,
        _ => Action::Output { port: dice.pick(&PORTS) },
    }
}

/// Returns an entry that matches some bits of a frame.
fn spec(dice: &mut Dice) -> FlowSpec {
    let key = key::extract(dice.pick(&PORTS), &frame(dice));
    let mut mask = Key::ZERO;
    for field in Field::ALL {
        if dice.roll(4) == 0 {
            mask.set(field, dice.pick(&[u64::MAX, u64::MAX, !3, 0xff00]));
        }
    }
    let matching = match dice.roll(10) {
        0..=2 => Match::exact(key),
        3 => Match::ANY,
        4 => {
            let address = [(field::Field::Ipv6Dst, u128::from(dice.roll(2)), 1)];
            let eth_type = [(field::Field::EthType, 0x86dd, 0xffff)];
            Match::asking(&[eth_type, address].concat())
        }
        _ => Match::new(key, mask),
    };
    let actions: Vec<Action> = match dice.roll(4) {
        0 => vec![],
        1 => vec![output(dice.pick(&PORTS))],
        _ => {
            let changes = (0..dice.roll(4)).map(|_| action(dice)).collect::<Vec<_>>();
            [changes, vec![output(dice.pick(&PORTS))]].concat()
        }
    };
    let table = dice.pick(&[0, 0, 0, 1, 1, 2]);
    let later = |dice: &mut Dice| table + 1 + dice.roll(2 - u64::from(table)) as u8;
    let goto = (table < 2 && dice.roll(3) == 0).then(|| later(dice));
    let instructions = match dice.roll(5) {
        _ if goto.is_some() && dice.roll(4) > 0 => Instructions { goto, ..Instructions::default() },
        0 => Instructions { goto, ..Instructions::write(&actions) },
        _ => Instructions { goto, ..Instructions::apply(&actions) },
    };
    let spec = FlowSpec::doing(matching, dice.roll(4) as u16, instructions);
    let spec = FlowSpec { table, ..spec };
    if dice.roll(2) == 0 { spec.exact_first() } else { spec }
}

/// Changes tables and settings.
fn change(pipeline: &mut Pipeline, dice: &mut Dice, now: Nanos) {
    let out = &mut Outputs::new(&[]);
    let spec = spec(dice);
    let filter = FlowFilter::covered_by(match dice.roll(6) {
        0 => Match::ANY,
        1 => Match::of(&[(Field::EthType, 0x0800)]),
        _ => spec.matching,
    });
    let port = dice.pick(&PORTS);
    match dice.roll(20) {
        0 => _ = pipeline.delete(&filter, now, out),
        1 => {
            let rules = ModifyRules { add: dice.roll(2) == 0, cookie: false };
            // A goto-table leads to later tables only.
            let filter = FlowFilter { table: Some(spec.table), ..filter };
            _ = pipeline.modify(&spec, &filter, rules, now, out);
        }
        2 => {
            let mut settings = PortSettings::default();
            match dice.roll(8) {
                0 => settings.down = true,
                1 => settings.no_forward = true,
                2 => settings.no_receive = true,
                _ => {}
            }
            pipeline.set_port(port, settings);
        }
        3 => pipeline.set_on_miss(dice.pick(&[OnMiss::Drop, OnMiss::Controller])),
        4 => {
            let all = [TableMiss::Pipeline, TableMiss::Drop, TableMiss::Continue];
            let config = TableConfig { on_miss: dice.pick(&all), ..TableConfig::default() };
            pipeline.set_table(dice.roll(3) as u8, config);
        }
        5 => {
            pipeline.begin();
            let is_kept = dice.roll(2) == 0;
            (0..dice.roll(4)).for_each(|_| change_in_bundle(pipeline, dice, is_kept, now));
            if is_kept { pipeline.keep(out) } else { pipeline.take_back() }
        }
        _ => _ = pipeline.add(&spec, now, out),
    }
}

/// Changes tables. Entries that are deleted and restored come after others of the same rank in user
/// space, so only committed bundles delete any.
fn change_in_bundle(pipeline: &mut Pipeline, dice: &mut Dice, is_kept: bool, now: Nanos) {
    let (out, spec) = (&mut Outputs::new(&[]), spec(dice));
    match dice.roll(4) {
        0 if is_kept => _ = pipeline.delete(&FlowFilter::covered_by(spec.matching), now, out),
        1 => {
            let all = FlowFilter::covered_by(spec.matching);
            let filter = FlowFilter { table: Some(spec.table), ..all };
            _ = pipeline.modify(&spec, &filter, ModifyRules::default(), now, out);
        }
        _ => _ = pipeline.add(&spec, now, out),
    }
}

/// What a pipeline does with one frame: frames by port, and packet-ins.
fn forward(pipeline: &mut Pipeline, port: PortNo, bytes: &[u8], now: Nanos) -> Vec<String> {
    let mut out = Outputs::new(&PORTS);
    let mut batch = Batch::new(1);
    assert!(batch.push_bytes(bytes));
    pipeline.forward(port, &mut batch, now, &mut out);
    let mut deeds = Vec::new();
    for (port, queue) in out.queues() {
        let frames = queue.frames().iter().map(|frame| sent(*port, frame.bytes()));
        deeds.extend(frames);
    }
    deeds.extend(out.events.iter().map(|event| match event {
        Event::PacketIn { port, context, frame, .. } => {
            format!("packet-in {port} {:?} {:?}", context.why, frame.bytes())
        }
        other => panic!("unexpected {other:?}"),
    }));
    deeds
}

fn sent(port: PortNo, bytes: &[u8]) -> String {
    format!("output {port} {bytes:?}")
}

/// All counters of a pipeline.
fn counters(pipeline: &Pipeline) -> String {
    let records = pipeline.tables().records(&FlowFilter::ALL, 0, Nanos::ZERO);
    let flow = |it: FlowRecord| format!("{:?} {} {}", it.matching, it.rank, it.frames + it.bytes);
    let mut flows: Vec<_> = records.map(flow).collect();
    flows.sort();
    let parts = [Part::Exact, Part::Wildcard];
    let tables = [0, 1, 2].map(|at| parts.map(|part| pipeline.tables().part_account(at, part)));
    format!("{flows:#?} {tables:?} {:?}", pipeline.drops())
}

#[test]
fn both_paths_together_do_what_the_pipeline_does() {
    if !is_inside("switch::tests::random::both_paths_together_do_what_the_pipeline_does") {
        return;
    }
    let cases = std::env::var("FAST_PATH_CASES").map_or(200, |text| text.parse().unwrap());
    let (mut frames, mut decided, mut changed) = (0_u64, 0_u64, 0_u64);
    let mut seed = 0;
    while frames < 100 * cases {
        seed += 1;
        let mut dice = Dice::new(seed);
        let Some(mut switch) = Switch::new(&settings(64)) else { return };
        let mut expected = Pipeline::new(&PORTS, &settings(64));
        for _ in 0..150 {
            let same = dice.roll(u64::MAX);
            let now = switch.now;
            for _ in 0..dice.pick(&[0, 0, 1, 3]) {
                let same = same + dice.roll(1000);
                change(&mut switch.pipeline, &mut Dice::new(same >> 1), now);
                change(&mut expected, &mut Dice::new(same >> 1), now);
            }
            switch.follow();
            for _ in 0..3 {
                let (port, bytes) = (dice.pick(&PORTS), frame(&mut dice));
                let expected = forward(&mut expected, port, &bytes, now);
                let before = switch.path.programs.ports.traffic().unwrap();
                let run = switch.run(port, &bytes);
                let deeds = match run.result {
                    DROPPED => vec![],
                    ESCAPED => {
                        assert_eq!(run.frame, bytes, "seed {seed}: a frame escapes unchanged");
                        forward(&mut switch.pipeline, port, &bytes, now)
                    }
                    SENT => {
                        let after = switch.path.programs.ports.traffic().unwrap();
                        let pair = after.into_iter().find(|pair| !before.contains(pair));
                        vec![sent(pair.unwrap().to, &run.frame)]
                    }
                    other => panic!("seed {seed}: result {other}"),
                };
                assert_eq!(deeds, expected, "seed {seed}: {bytes:x?} at {port}: {}", run.result);
                frames += 1;
                decided += u64::from(run.result != ESCAPED);
                changed += u64::from(run.result == SENT && run.frame != bytes);
            }
        }
        assert_eq!(counters(&switch.pipeline), counters(&expected), "seed {seed}");
    }
    println!("{decided} of {frames} frames were decided in the kernel, {changed} of them changed");
    assert!(decided > frames / 4 && changed > frames / 50, "{decided} and {changed} of {frames}");
}
