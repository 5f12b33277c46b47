//! The program against the pipeline in user space.
//!
//! Requires permission to load BPF programs. Without it a test prints this and passes, except with
//! the variable `CI` set. The property test has 100 frames for each of `FAST_PATH_CASES`.

#![allow(clippy::disallowed_methods)]

use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

use dataplane::action::Action;
use dataplane::flow::{FlowFilter, FlowSpec};
use dataplane::forwarder::{Forwarder, Outputs};
use dataplane::instruction::Instructions;
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::pipeline::OnMiss;
use ebpf::{Attachment, MappedArray, Operation, TestRun, Width, XdpMode};
use packet::build::Builder;
use packet::field;
use packet::frame::Batch;
use packet::header::{ipv4, ipv6};

use super::*;

mod random;

pub(super) const PORTS: [PortNo; 4] = [1, 2, 3, 7];

/// Set where a test runs in its own network namespace.
const INSIDE: &str = "SWITCH_TEST_INSIDE";

/// Secret of the hash.
const SEED: u64 = 0x1234_5678_9abc_def0;

/// Index of the loopback interface, which frames of test runs never reach.
const LOOPBACK: u32 = 1;

/// Results of programs: `XDP_DROP`, `XDP_PASS` for frames that escape here, and `XDP_REDIRECT`.
const DROPPED: u32 = 1;
const ESCAPED: u32 = 2;
const SENT: u32 = 4;

/// A pipeline with its fast path.
struct Switch {
    pipeline: Pipeline,
    path: Arc<SwitchPath>,
    /// The programs of all ports in one.
    program: Program,
    /// Index of the port whose program runs.
    selector: MappedArray,
    /// The kernel synchronizes all CPUs before it runs a program that is not attached.
    _attachment: Option<Attachment>,
    now: Nanos,
}

impl Switch {
    /// Returns `None` if this process cannot load programs.
    fn new(settings: &Settings) -> Option<Switch> {
        Switch::with(settings, |_| {})
    }

    /// Creates a switch whose programs begin with other instructions.
    fn with(settings: &Settings, begin: impl Fn(&mut Assembly)) -> Option<Switch> {
        let mut pipeline = Pipeline::new(&PORTS, settings);
        let made = Ports::new(&PORTS).and_then(|ports| {
            for port in PORTS {
                ports.connect(port, LOOPBACK)?;
                ports.set_frame_bytes_max(port, 9000);
            }
            let path = SwitchPath::new(&mut pipeline, &PORTS, Arc::new(ports), SEED)?;
            PORTS.into_iter().for_each(|port| path.set_connected(port, true));
            Ok(path)
        });
        let path = match made {
            Ok(path) => path,
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "need: BPF maps: {error}");
                println!("skipped; need: permission to create BPF maps ({error})");
                return None;
            }
        };
        let selector = MappedArray::new(1, 8).unwrap();
        let program = load(&path, selector.descriptor(), begin);
        let is_alone = std::env::var_os(INSIDE).is_some();
        let attach = || program.attach(LOOPBACK as i32, XdpMode::Generic).unwrap();
        let _attachment = is_alone.then(attach);
        let now = Nanos::from_secs(1);
        let mut switch = Switch { pipeline, path, program, selector, _attachment, now };
        switch.follow();
        Some(switch)
    }

    /// Applies changes, some time later.
    fn follow(&mut self) {
        self.now = self.now.saturating_add(Nanos::from_micros(600));
        self.path.follow(&mut self.pipeline, self.now);
    }

    fn add(&mut self, spec: &FlowSpec) {
        self.pipeline.add(spec, self.now, &mut Outputs::new(&[])).unwrap();
        self.follow();
    }

    fn run(&self, port: PortNo, frame: &[u8]) -> TestRun {
        self.select(port);
        self.program.run_once(frame, 1).unwrap()
    }

    /// Sets the port whose program runs.
    fn select(&self, port: PortNo) {
        let index = PORTS.iter().position(|other| *other == port).unwrap();
        self.selector.double_at(0).store(index as u64, Relaxed);
    }

    /// Returns the port to which the program sends a frame.
    fn sends(&self, port: PortNo, frame: &[u8]) -> Option<PortNo> {
        let before = self.path.programs.ports.traffic().unwrap();
        let run = self.run(port, frame);
        let after = self.path.programs.ports.traffic().unwrap();
        let fresh: Vec<_> = after.iter().filter(|pair| !before.contains(pair)).collect();
        assert_eq!(run.result == SENT, fresh.len() == 1, "{run:?}");
        fresh.first().map(|pair| {
            assert_eq!(pair.from, port);
            pair.to
        })
    }
}

/// Loads the programs of all ports as one. Frames that escape pass.
fn load(path: &SwitchPath, selector: i32, begin: impl Fn(&mut Assembly)) -> Program {
    let mut program = Assembly::new();
    let escape = program.label("escape");
    program.copy(Register::R6, Register::R1);
    program.set(Register::R7, 77);
    begin(&mut program);
    for (index, port) in PORTS.into_iter().enumerate() {
        let next = program.label("next");
        program.load_map_value(Register::R1, selector, 0);
        program.load(Width::Double, Register::R1, Register::R1, 0);
        program.jump_if(Register::R1, ebpf::Condition::NotEqual, index as i32, next);
        path.emit(port, false, &mut program, escape);
        program.place(next);
    }
    program.set(Register::R0, 0);
    program.exit();
    program.place(escape);
    // The context and R7 are as before.
    let wrong = program.label("wrong");
    program.jump_if(Register::R7, ebpf::Condition::NotEqual, 77, wrong);
    program.load(Width::Word, Register::R0, Register::R6, 0);
    program.set(Register::R0, ESCAPED as i32);
    program.exit();
    program.place(wrong);
    program.set(Register::R0, 0);
    program.exit();
    Program::load(&program.finish().unwrap(), c"Apache-2.0").unwrap()
}

pub(super) fn settings(entries_max: usize) -> Settings {
    let tables = vec![TableSettings::of(entries_max, entries_max); 3];
    Settings { tables, on_miss: OnMiss::Drop, ..Settings::default() }
}

fn udp(source: [u8; 4], destination_port: u16) -> Vec<u8> {
    Builder::new([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(ipv4::Header::new(source.into(), [10, 9, 8, 7].into()))
        .udp(1000, destination_port)
        .payload(b"some payload")
        .bytes()
}

fn output(port: PortNo) -> Action {
    Action::Output { port }
}

/// Runs a test again in a new network namespace, where programs can be attached. Returns whether
/// this is the new process.
fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut again = Command::new("unshare");
    again.args(["--net", "--"]).arg(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let output = again.output();
    match output {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("test result") => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            println!("{text}");
        }
        failed => {
            assert!(std::env::var_os("CI").is_none(), "need: root and unshare: {failed:?}");
            println!("skipped; need: root and unshare ({failed:?})");
        }
    }
    false
}

#[test]
fn no_frame_is_decided_by_an_entry_below_one_that_escapes() {
    let Some(mut switch) = Switch::new(&settings(64)) else { return };
    let frame = udp([10, 0, 0, 1], 53);
    switch.add(&FlowSpec::new(Match::ANY, 1, &[output(2)]));
    assert_eq!(switch.sends(1, &frame), Some(2));
    let types = |eth_type| Match::of(&[(Field::EthType, eth_type)]);
    let actions = [Action::Controller { bytes_max: 64 }];
    switch.add(&FlowSpec::new(types(0x0800), 7, &actions));
    assert_eq!(switch.run(1, &frame).result, ESCAPED);
    // An entry above it acts in the program again.
    let above = Match::of(&[(Field::EthType, 0x0800), (Field::IpProto, 17), (Field::L4Dst, 53)]);
    switch.add(&FlowSpec::new(above, 9, &[output(3)]));
    assert_eq!(switch.sends(1, &frame), Some(3));
    assert_eq!(switch.run(1, &udp([10, 0, 0, 1], 54)).result, ESCAPED);
    // Every IPv6 frame escapes if an entry matches on IPv6 addresses.
    let address = [(field::Field::EthType, 0x86dd, 0xffff), (field::Field::Ipv6Dst, 1, u128::MAX)];
    let ipv6 = Builder::new([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv6(ipv6::Header::new([1; 16].into(), [2; 16].into()))
        .udp(1, 2)
        .bytes();
    assert_eq!(switch.sends(1, &ipv6), Some(2));
    switch.add(&FlowSpec::new(Match::asking(&address), 7, &[output(3)]));
    assert_eq!(switch.run(1, &ipv6).result, ESCAPED);
    let report = switch.path.report();
    let escaping = [(Reason::Field, 1), (Reason::Controller, 1)];
    assert_eq!((report.lowered, &report.escaping[..]), (2, &escaping[..]));
    assert_eq!((report.masks, report.unplaced), (4, 0));
}

#[test]
fn every_frame_escapes_while_an_entry_has_no_place() {
    let Some(mut switch) = Switch::new(&settings(512)) else { return };
    let frame = udp([10, 0, 0, 1], 53);
    switch.add(&FlowSpec::new(Match::ANY, 0, &[output(2)]));
    let mut masks = Vec::new();
    for number in 0..=layout::TUPLES_MAX as u64 {
        let (mut value, mut mask) = (dataplane::key::Key::ZERO, dataplane::key::Key::ZERO);
        value.set(Field::EthDst, 0xffff_ffff_ffff);
        mask.set(Field::EthDst, 1 + number);
        masks.push(FlowSpec::new(Match::new(value, mask), 5, &[output(3)]));
    }
    for spec in &masks[..layout::TUPLES_MAX - 1] {
        switch.add(spec);
    }
    assert_eq!(switch.path.report().masks, layout::TUPLES_MAX);
    assert_eq!(switch.sends(1, &frame), Some(3), "the address ends in a set bit");
    for spec in &masks[layout::TUPLES_MAX - 1..] {
        switch.add(spec);
    }
    assert_eq!(switch.path.report().unplaced, 2);
    assert_eq!(switch.run(1, &frame).result, ESCAPED);
    // With fewer masks, all entries have a place again.
    for spec in &masks[..2] {
        let filter = FlowFilter::strictly(spec.matching, spec.rank);
        let out = &mut Outputs::new(&[]);
        assert_eq!(switch.pipeline.delete(&filter, switch.now, out), 1);
    }
    (0..10).for_each(|_| switch.follow());
    assert_eq!((switch.path.report().unplaced, switch.path.report().masks), (0, 128));
    assert_eq!(switch.run(1, &frame).result, SENT);
}

#[test]
fn a_bundle_is_seen_when_it_is_committed() {
    let Some(mut switch) = Switch::new(&settings(64)) else { return };
    let frame = udp([10, 0, 0, 1], 53);
    switch.add(&FlowSpec::new(Match::ANY, 1, &[output(2)]));
    let mut out = Outputs::new(&[]);
    switch.pipeline.begin();
    switch.pipeline.delete(&FlowFilter::ALL, switch.now, &mut out);
    switch.add(&FlowSpec::new(Match::ANY, 2, &[output(3)]));
    assert_eq!(switch.sends(1, &frame), Some(2), "the bundle is open");
    switch.pipeline.keep(&mut out);
    switch.follow();
    assert_eq!(switch.sends(1, &frame), Some(3));
    let flows = |switch: &Switch| {
        let records = switch.pipeline.tables().records(&FlowFilter::ALL, 0, switch.now);
        records.map(|flow| (flow.priority, flow.frames)).collect::<Vec<_>>()
    };
    assert_eq!(flows(&switch), [(2, 1)]);
    switch.pipeline.begin();
    switch.pipeline.delete(&FlowFilter::ALL, switch.now, &mut out);
    switch.follow();
    switch.pipeline.take_back();
    switch.follow();
    assert_eq!(switch.sends(1, &frame), Some(3), "rolled back");
    assert_eq!(flows(&switch), [(2, 2)]);
}

#[test]
fn counters_survive_changes_of_an_entry_and_end_with_it() {
    let Some(mut switch) = Switch::new(&settings(64)) else { return };
    let frame = udp([10, 0, 0, 1], 53);
    let frames = |switch: &Switch| {
        let records = switch.pipeline.tables().records(&FlowFilter::ALL, 0, switch.now);
        records.map(|flow| (flow.frames, flow.bytes)).collect::<Vec<_>>()
    };
    for round in 1..20 {
        // Replaces the entry of the same match and priority.
        switch.add(&FlowSpec::new(Match::ANY, 1, &[output(2 + round % 2)]));
        assert_eq!(switch.sends(1, &frame), Some(2 + round % 2));
        let bytes = u64::from(round) * frame.len() as u64;
        assert_eq!(frames(&switch), [(u64::from(round), bytes)]);
    }
    let mut out = Outputs::new(&[]);
    switch.pipeline.delete(&FlowFilter::ALL, switch.now, &mut out);
    switch.add(&FlowSpec::new(Match::ANY, 1, &[output(2)]));
    assert_eq!(frames(&switch), [(0, 0)]);
    // Idle timeouts begin with the last frame in the kernel.
    let now = os::clock::now();
    let idle = Nanos::from_secs(5);
    let spec = FlowSpec { idle_timeout: idle, ..FlowSpec::new(Match::ANY, 1, &[output(2)]) };
    switch.now = Nanos(now.0 - 4_000_000_000);
    switch.add(&spec);
    switch.run(1, &frame);
    let due = switch.pipeline.tick(now.saturating_add(Nanos::from_secs(2)), &mut out);
    assert!(due.is_some() && switch.pipeline.tables().account(0).entries == 1, "used meanwhile");
    switch.pipeline.tick(now.saturating_add(Nanos::from_secs(10)), &mut out);
    assert_eq!(switch.pipeline.tables().account(0).entries, 0);
}

#[test]
fn every_run_sees_one_state_of_the_table() {
    if !is_inside("switch::tests::every_run_sees_one_state_of_the_table") {
        return;
    }
    let Some(mut switch) = Switch::new(&settings(64)) else { return };
    let frame = udp([10, 0, 0, 1], 53);
    let exact = Match::exact(dataplane::key::extract(1, &frame));
    let types = Match::of(&[(Field::EthType, 0x0800)]);
    switch.add(&FlowSpec::new(types, 5, &[output(2)]));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let program = &switch.program;
    let (path, pipeline) = (&switch.path, &mut switch.pipeline);
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let mut runs = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // A miss would drop the frame. It escapes while slots wait to be reused.
                let result = program.run_once(&frame, 100_000).unwrap().result;
                assert_ne!(result, DROPPED);
                runs += usize::from(result == SENT);
            }
            runs
        });
        let mut out = Outputs::new(&[]);
        for round in 0..20_000 {
            // The entry moves between two tuples.
            let (from, to) = if round % 2 == 0 { (types, exact) } else { (exact, types) };
            let now = os::clock::now();
            pipeline.delete(&FlowFilter::strictly(from, 5), now, &mut out);
            let spec = FlowSpec::new(to, 5, &[output(2)]);
            pipeline.add(&spec, now, &mut out).unwrap();
            path.follow(pipeline, now);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(runner.join().unwrap() > 0);
    });
    let drops = switch.pipeline.drops();
    assert_eq!(drops.total(), 0, "{drops:?}");
}

/// Prints the time of a run by table. Run it with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost() {
    let cell = ebpf::MappedArray::new(1, 8).unwrap();
    // Writes one of so many source addresses into the frame, in a random order.
    let with_random_source = |flows: u32| {
        let cell = cell.descriptor();
        move |program: &mut Assembly| {
            use Register::{R0, R1, R2, R3, R6};
            let end = program.label("end");
            program.load_map_value(R1, cell, 0);
            program.load(Width::Double, R0, R1, 0);
            program.add(R0, 1);
            program.store(Width::Double, R1, 0, R0);
            program.set_wide(R2, layout::hash::FACTOR);
            program.compute_both(R0, Operation::Multiply, R2);
            program.compute(R0, Operation::ShiftRight, 40);
            program.and_word(R0, flows - 1);
            program.network_word(R0);
            program.load(Width::Word, R1, R6, 0);
            program.load(Width::Word, R2, R6, 4);
            program.copy(R3, R1);
            program.compute(R3, Operation::Add, 34);
            program.jump_if_both(R3, ebpf::Condition::Greater, R2, end);
            program.store(Width::Word, R1, 26, R0);
            program.place(end);
        }
    };
    let frame = udp([0, 0, 0, 0], 53);
    let run = |name: &str, switch: &Switch| {
        let best = (0..20).map(|_| switch.program.run_once(&frame, 50_000).unwrap());
        let best = best.inspect(|run| assert_eq!(run.result, SENT)).map(|run| run.duration_ns);
        println!("{name}: {} ns", best.min().unwrap());
    };
    let exact = |source: u32| {
        let frame = udp(source.to_be_bytes(), 53);
        FlowSpec::new(Match::exact(dataplane::key::extract(1, &frame)), 5, &[output(2)])
    };
    let tables = vec![TableSettings::of(131_072, 1024)];
    let settings = Settings { tables, ..settings(1) };
    for flows in [1_u32, 8192, 131_072] {
        let Some(mut switch) = Switch::with(&settings, with_random_source(flows)) else { return };
        let begin = os::clock::now();
        for source in 0..flows {
            let out = &mut Outputs::new(&[]);
            switch.pipeline.add(&exact(source), Nanos::ZERO, out).unwrap();
        }
        let added = os::clock::now();
        switch.follow();
        let followed = os::clock::now();
        println!("{:?} to add, {:?} to follow", added.since(begin), followed.since(added));
        run(&format!("{flows} exact entries"), &switch);
    }
    for masks in [1_u64, 4, 10, 25, 100] {
        let Some(mut switch) = Switch::new(&settings) else { return };
        for number in 0..100 {
            let (mut value, mut mask) = (dataplane::key::Key::ZERO, dataplane::key::Key::ZERO);
            value.set(Field::IpSrc, 1 << 31 | number);
            mask.set(Field::IpSrc, u64::from(u32::MAX) << 7 | 127);
            value.set(Field::EthType, 0x0800);
            mask.set(Field::EthType, u64::MAX);
            mask.set(Field::EthDst, number % masks);
            value.set(Field::EthDst, u64::MAX);
            switch.add(&FlowSpec::new(Match::new(value, mask), 9, &[output(3)]));
        }
        switch.add(&FlowSpec::new(Match::ANY, 1, &[output(2)]));
        run(&format!("100 wildcard entries of {masks} masks, and the last matches"), &switch);
    }
    let Some(mut switch) = Switch::new(&settings) else { return };
    let actions = [Action::SetIpTtl(9), Action::set(field::Field::Ipv4Dst, 5), output(2)];
    switch.add(&FlowSpec::doing(Match::ANY, 1, Instructions::apply(&actions)));
    run("two fields set", &switch);
}
