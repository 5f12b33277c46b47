//! Measures the cost of a frame in ProGFE programs, compared with the built-in bridge, router and OpenFlow switch.
//!
//! - Batches in memory, 60-byte frames without FCS, one thread.
//! - The forwarders run in turns, so that other load on the machine affects all of them.
//! - The result of a turn is the median of its batches. A batch is so short that most run without interruption.
//! - Forwarders that decide frames in place are also measured in this mode.
//!
//! `cargo run --release -p progfe --example program_rate [ROUTES [ADDRESSES [RACE [NAME]]]]`: RACE limits the run to
//! the races whose name starts with it. NAME limits it to one forwarder, for instance to count its instructions.

use std::net::Ipv4Addr;
use std::time::Instant;

use dataplane::action::Action;
use dataplane::bridge::{Bridge, Settings};
use dataplane::flow::FlowSpec;
use dataplane::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, GROWS_MAX, Outputs, PendingBatch, SIGHTS_MAX,
};
use dataplane::key::Field;
use dataplane::matching::Match;
use dataplane::neighbor::Place;
use dataplane::pipeline::{self, OnMiss, Pipeline};
use dataplane::route_table::Prefix;
use dataplane::router::{self, Interface, Router};
use forces::Value;
use packet::frame::{Batch, Frame, PortNo};
use packet::header::ipv4;
use packet::time::Nanos;
use progfe::compile::Compiled;
use progfe::element::Element;
use progfe::executor::Enforcer;
use progfe::interpret::Interpreter;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

const BRIDGE: &str = include_str!("../../../examples/progfe/bridge.fe.xml");
const ROUTER: &str = include_str!("../../../examples/progfe/router.fe.xml");
const COMPLEX: &str = include_str!("../../../examples/progfe/bridge-complex.fe.xml");
const VLAN: &str = include_str!("../../../examples/progfe/vlan.fe.xml");

/// Number of frames in a batch.
const BATCH: usize = 32;
/// Number of first bytes that a forwarder sees of a frame in place.
const SEEN: usize = 128;
/// Number of batches of one forwarder before the next one's turn.
const TURN: usize = 2_000;
/// Number of turns of each forwarder.
const TURNS: usize = 9;

/// A forwarder and its time in each turn.
struct Runner {
    name: &'static str,
    forwarder: Box<dyn Contestant>,
    out: Outputs,
    took: Vec<f64>,
    /// Times for frames in place.
    took_in_place: Vec<f64>,
}

/// A forwarder of any type.
trait Contestant {
    /// Forwards a batch.
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs);

    /// Whether it decides frames in place.
    fn decides(&self) -> bool;

    /// Decides a batch in place, and rewrites its frames. Returns false if frames must be moved.
    fn decide(
        &mut self,
        port: PortNo,
        rows: [&mut Heads; 2],
        next: usize,
        now: Nanos,
        out: &mut Outputs,
    ) -> bool;
}

impl<F: Forwarder> Contestant for F {
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        Forwarder::forward(self, port, batch, now, out);
    }

    fn decides(&self) -> bool {
        Forwarder::decides(self)
    }

    fn decide(
        &mut self,
        port: PortNo,
        [row, after]: [&mut Heads; 2],
        next: usize,
        now: Nanos,
        out: &mut Outputs,
    ) -> bool {
        let mut decisions = [Decision::Dropped; SIGHTS_MAX];
        let sights = [&row.sights()[..], &after.sights()[..next]];
        match Forwarder::decide(self, port, sights, now, &mut decisions) {
            BatchDecision::Done(count) => count == BATCH,
            BatchDecision::Rewrites(count, batch) => {
                if count == BATCH {
                    for (place, (head, bytes)) in row.0.iter_mut().enumerate() {
                        let head = &mut head[..GROWS_MAX + (*bytes).min(SEEN)];
                        (_, *bytes) = batch.rewrite(place, head, *bytes);
                    }
                }
                count == BATCH
            }
            BatchDecision::Needs(_, batch) => {
                let copy = |sight: &FrameHead<'_>| Frame::from_bytes(sight.head);
                let mut frames: Vec<Frame> = sights[0].iter().map(copy).collect();
                batch.resume(&mut frames, now, out);
                true
            }
        }
    }
}

/// First bytes of the frames of a batch, with headroom.
struct Heads(Box<[([u8; GROWS_MAX + SEEN], usize)]>);

impl Heads {
    fn new() -> Heads {
        Heads(vec![([0; GROWS_MAX + SEEN], 0); BATCH].into())
    }

    fn copy<'f>(&mut self, frames: impl Iterator<Item = &'f Vec<u8>>) {
        for ((head, length), frame) in self.0.iter_mut().zip(frames) {
            let seen = frame.len().min(SEEN);
            head[GROWS_MAX..GROWS_MAX + seen].copy_from_slice(&frame[..seen]);
            *length = frame.len();
        }
    }

    fn sights(&self) -> [FrameHead<'_>; BATCH] {
        std::array::from_fn(|place| {
            let (head, bytes) = &self.0[place];
            FrameHead { head: &head[GROWS_MAX..GROWS_MAX + (*bytes).min(SEEN)], bytes: *bytes }
        })
    }
}

impl Runner {
    fn new(name: &'static str, forwarder: Box<dyn Contestant>, out: Outputs) -> Runner {
        Runner { name, forwarder, out, took: Vec::new(), took_in_place: Vec::new() }
    }

    /// Runs one turn with frames in place. Returns nanoseconds per frame, or none if some frames must be moved.
    #[allow(clippy::disallowed_methods, reason = "the measurement succeeds")]
    fn turn_in_place(&mut self, port: PortNo, frames: &[Vec<u8>], now: Nanos) -> Option<f64> {
        let mut took = Vec::with_capacity(TURN);
        let mut next = frames.iter().cycle();
        let [mut row, mut after] = [Heads::new(), Heads::new()];
        after.copy(next.by_ref());
        for nth in 1..=TURN {
            std::mem::swap(&mut row, &mut after);
            after.copy(next.by_ref());
            // The last batch has no following frames.
            let next = if nth < TURN { BATCH } else { 0 };
            let begin = Instant::now();
            if !self.forwarder.decide(port, [&mut row, &mut after], next, now, &mut self.out) {
                return None;
            }
            took.push(begin.elapsed());
            self.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        }
        took.sort_unstable();
        Some(took[TURN / 2].as_nanos() as f64 / BATCH as f64)
    }

    /// Runs one turn. Returns nanoseconds per frame.
    #[allow(clippy::disallowed_methods, reason = "the measurement succeeds")]
    fn turn(&mut self, port: PortNo, frames: &[Vec<u8>], now: Nanos) -> f64 {
        let mut batch = Batch::new(BATCH);
        let mut took = Vec::with_capacity(TURN);
        let mut next = frames.iter().cycle();
        for _ in 0..TURN {
            batch.clear();
            next.by_ref().take(BATCH).for_each(|bytes| assert!(batch.push_bytes(bytes)));
            let begin = Instant::now();
            self.forwarder.forward(port, &mut batch, now, &mut self.out);
            took.push(begin.elapsed());
            self.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        }
        took.sort_unstable();
        took[TURN / 2].as_nanos() as f64 / BATCH as f64
    }
}

fn program(text: &str) -> Program {
    let (program, problems) = Program::load(&Source::new("example", text), &no_files);
    program.unwrap_or_else(|| panic!("{problems}"))
}

fn element<E: Enforcer + 'static>(program: Program) -> Box<dyn Contestant> {
    Box::new(Element::<E>::start(program, 7).expect("the examples are valid"))
}

fn outputs() -> Outputs {
    Outputs::new(&[1, 2])
}

/// Runs all forwarders in turns. Prints and returns the median of each.
fn race(what: &str, runners: &mut Vec<Runner>, port: PortNo, frames: &[Vec<u8>]) -> Vec<f64> {
    let now = Nanos::from_secs(2);
    let mut only = std::env::args().skip(3);
    let (race, name) = (only.next().unwrap_or_default(), only.next());
    runners.retain(|runner| {
        what.starts_with(&race) && name.as_ref().is_none_or(|name| runner.name == name)
    });
    if runners.is_empty() {
        return Vec::new();
    }
    for turn in 0..=TURNS {
        for runner in &mut *runners {
            let took = runner.turn(port, frames, now);
            // The first turn warms up tables and caches.
            if turn > 0 {
                runner.took.push(took);
            }
            if runner.forwarder.decides() && frames[0].len() <= SEEN {
                let took = runner.turn_in_place(port, frames, now);
                runner.took_in_place.extend(took.filter(|_| turn > 0));
            }
        }
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        let at = |share: usize| all.get((all.len() * share / 2).min(all.len() - 1)).copied();
        [0, 1, 2].map(|share| at(share).unwrap_or(f64::NAN)).into()
    };
    let say = |manner: &str, took_of: fn(&Runner) -> &[f64]| {
        let mut all = Vec::new();
        let measured = || runners.iter().filter(|runner| !took_of(runner).is_empty());
        let base = measured().next().map(took_of).unwrap_or_default();
        for runner in measured() {
            let (_, took, _) = median(took_of(runner).to_vec());
            all.push(took);
            let first = base.iter().zip(took_of(runner));
            let (low, share, high) = median(first.map(|(first, own)| first / own).collect());
            println!(
                "{what:24} {:12} {manner:9} {took:8.1} ns/frame, {share:5.2} ({low:.2} to {high:.2}) of the speed of the first",
                runner.name
            );
        }
        all
    };
    let all = say("", |runner| &runner.took);
    say("in place", |runner| &runner.took_in_place);
    all
}

/// Returns mixed bits of a number, the same in every run.
fn mixed(number: u64) -> u64 {
    dataplane::hash::mix(number, 0x5eed)
}

fn bridge(addresses: usize) {
    let mac = |side: u8, at: usize| {
        let [.., a, b, c] = (at as u32).to_be_bytes();
        [2, 0, side, a, b, c]
    };
    let frame = |to: [u8; 6], from: [u8; 6]| {
        let mut frame = datagram(to, (0, [5000, 5001]), 60);
        frame[6..12].copy_from_slice(&from);
        frame
    };
    let half = addresses.div_ceil(2);
    let frames: Vec<Vec<u8>> = (0..(half * 2).max(BATCH) as u64)
        .map(|at| mixed(at) as usize)
        .map(|at| frame(mac(2, at % half), mac(1, (at >> 24) % half)))
        .collect();
    let bridge = Bridge::new(&[1, 2], &Settings::default());
    let mut runners = vec![
        Runner::new("hand-written", Box::new(bridge), outputs()),
        Runner::new("compiled", element::<Compiled>(program(BRIDGE)), outputs()),
        Runner::new("with sixty", element::<Compiled>(program(COMPLEX)), outputs()),
        Runner::new("interpreted", element::<Interpreter>(program(BRIDGE)), outputs()),
    ];
    for runner in &mut runners {
        for at in 0..half {
            let mut batch = Batch::new(1);
            batch.push_bytes(&frame(mac(1, at), mac(2, at)));
            runner.forwarder.forward(2, &mut batch, Nanos::from_secs(1), &mut runner.out);
            runner.out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        }
    }
    race(&format!("bridge, {addresses} addresses"), &mut runners, 1, &frames);
}

fn router(routes: usize) {
    let hop = Ipv4Addr::new(10, 2, 0, 9);
    let prefixes: Vec<Prefix> = {
        let mut all = std::collections::BTreeSet::new();
        let mut at = 0;
        while all.len() < routes {
            at += 1;
            let bits = mixed(at);
            let first = 20 + (bits >> 40) % 80;
            let address = Ipv4Addr::from((bits as u32 & 0x00ff_ffff) | (first as u32) << 24);
            all.extend(Prefix::new(address, 24 - (bits >> 60) as u8 / 2));
        }
        all.into_iter().collect()
    };
    let interface = |port: PortNo, mac: [u8; 6]| {
        let own = Ipv4Addr::new(10, port as u8, 0, 1);
        Interface { port, mac, addresses: vec![(own, 16)], mtu: 1500 }
    };
    let interfaces = vec![interface(1, [2, 0, 0, 0, 1, 1]), interface(2, [2, 0, 0, 0, 1, 2])];
    let settings = router::Settings { interfaces, ..router::Settings::default() };
    let mut by_hand = Router::new(&settings).expect("the setup succeeds");
    let mut out = outputs();
    let place = Place { port: 2, address: hop };
    by_hand.set_neighbor(place, [2, 0, 0, 0, 2, 9], &mut out).expect("there is room");
    let mut program = program(ROUTER);
    let lpm = program.find("lpm").expect("the example has one");
    for prefix in &prefixes {
        by_hand.add_route(*prefix, Some(hop), Some(2)).expect("there is room");
    }
    let rows = prefixes.iter().map(|prefix| {
        Value::struct_of([
            (1, Value::Bytes(prefix.address().octets().to_vec())),
            (2, Value::Unsigned(prefix.length().into())),
            (3, Value::Boolean(false)),
            (4, Value::Boolean(false)),
            (6, Value::Unsigned(7)),
        ])
    });
    program.instances[lpm].components.insert(1, Value::rows_of(rows));
    let frames: Vec<Vec<u8>> = (0..200_000u64)
        .map(|at| {
            let bits = mixed(at + 7);
            let prefix = prefixes[bits as usize % prefixes.len()];
            let host = (bits >> 32) as u32 & (u32::MAX >> prefix.length());
            let to = Ipv4Addr::from(prefix.address().to_bits() | host);
            let mut frame = vec![0; 60];
            frame[..6].copy_from_slice(&[2, 0, 0, 0, 1, 1]);
            frame[6..12].copy_from_slice(&[2, 0, 0, 0, 1, 9]);
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[14..34].copy_from_slice(&[
                69, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 9, 0, 0, 0, 0,
            ]);
            frame[30..34].copy_from_slice(&to.octets());
            ipv4::set_checksum(&mut frame[14..34]);
            frame
        })
        .collect();
    let mut runners = vec![
        Runner::new("hand-written", Box::new(by_hand), out),
        Runner::new("compiled", element::<Compiled>(program.clone()), outputs()),
        Runner::new("interpreted", element::<Interpreter>(program), outputs()),
    ];
    race(&format!("router, {routes} routes"), &mut runners, 1, &frames);
}

/// Builds a UDP frame over IPv4 with this length.
fn datagram(to: [u8; 6], (tos, ports): (u8, [u16; 2]), bytes: usize) -> Vec<u8> {
    let mut frame = [&to[..], &[2, 0, 0, 0, 1, 1, 8, 0]].concat();
    frame.resize(bytes, 0);
    let [high, low] = (bytes as u16 - 14).to_be_bytes();
    frame[14..34]
        .copy_from_slice(&[69, tos, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 9, 10, 2, 0, 9]);
    ipv4::set_checksum(&mut frame[14..34]);
    frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
    frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
    frame[38..40].copy_from_slice(&(bytes as u16 - 34).to_be_bytes());
    frame
}

fn vlan() {
    let frame = |at: u64| {
        let tos = (mixed(at) % 64) as u8 * 4;
        datagram([2, 0, 0, 0, 2, at as u8], (tos, [0, 0]), 60)
    };
    let frames: Vec<Vec<u8>> = (0..256).map(frame).collect();
    let mut runners = vec![
        Runner::new("interpreted", element::<Interpreter>(program(VLAN)), outputs()),
        Runner::new("compiled", element::<Compiled>(program(VLAN)), outputs()),
    ];
    race("tags by conditions", &mut runners, 1, &frames);
}

/// Builds a program of two ports with blocks between them and their links.
fn between(blocks: &str, links: &str) -> Program {
    program(&format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="between" revision="1">
        <use library="BaseLFBLibrary"/><use library="ProGFE"/><frames file="ethernet.frames.xml"/>
        <ports><port id="1"/><port id="2"/></ports><instances>
        <lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        <lfb id="rx" class="EtherMACIn" instances="1..2"><set name="AdminStatus">Up</set>
          <set name="PromiscuousMode">true</set><set name="L2BridgingPathEnable">true</set></lfb>
        <lfb id="tx" class="EtherMACOut" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        {blocks}</instances><links>
        <link from="phy#*.EtherPHYOut" to="rx#*.EtherPktsIn"/><link from="tx#*.EtherPktsOut" to="phy#*.EtherPHYIn"/>
        {links}</links><agents><agent name="oam" type="process"/></agents></fe>"#
    ))
}

/// Pushes tags by this number of conditions, here and in an OpenFlow pipeline.
fn tagger(conditions: u16) {
    let first = 5060;
    let (mut rules, mut blocks, mut links) = (String::new(), String::new(), String::new());
    for at in 0..conditions {
        rules.push_str(&format!(
            r#"<row table="Rules" prio="10"><when>meta:PHYPortID = 1 and UDP.dport = {}</when><c n="OutputIndex">{at}</c></row>"#,
            first + at
        ));
        blocks.push_str(&format!(
            r#"<lfb id="tag{at}" class="Edit"><op do="push" frame="Vlan" after="Eth.src"/><op do="set" field="Vlan.vid" to="{}"/></lfb>"#,
            100 + at
        ));
        links.push_str(&format!(
            r#"<link from="cond.HitOut[{at}]" to="tag{at}.PktsIn"/><link from="tag{at}.PktsOut" to="tx#2.EtherPktsIn"/>"#
        ));
    }
    blocks.push_str(&format!(r#"<lfb id="cond" class="Match">{rules}</lfb>"#));
    links.push_str(r#"<link from="rx#*.L2BridgingPathOut" to="cond.PktsIn"/><link from="cond.MissOut" to="tx#2.EtherPktsIn"/>"#);
    let settings = pipeline::Settings { on_miss: OnMiss::Drop, ..pipeline::Settings::default() };
    let mut switch = Pipeline::new(&[1, 2], &settings);
    for at in 0..conditions {
        let fields = [
            (Field::InPort, 1),
            (Field::EthType, 0x0800),
            (Field::IpProto, 17),
            (Field::L4Dst, (first + at).into()),
        ];
        let actions =
            [Action::PushVlan(0x8100), Action::SetVlan(100 + at), Action::Output { port: 2 }];
        let flow = FlowSpec::new(Match::of(&fields), 10, &actions);
        switch.add(&flow, Nanos::ZERO, &mut outputs()).expect("there is room");
    }
    let frame = |at: u64| {
        let ports = [mixed(at) as u16, first + (mixed(at) >> 20) as u16 % conditions];
        datagram([2, 0, 0, 0, 2, at as u8], (0, ports), 60)
    };
    let frames: Vec<Vec<u8>> = (0..4096).map(frame).collect();
    let compiled = element::<Compiled>(between(&blocks, &links));
    let mut runners = vec![
        Runner::new("switch", Box::new(switch), outputs()),
        Runner::new("compiled", compiled, outputs()),
    ];
    race(&format!("tags by {conditions} conditions"), &mut runners, 1, &frames);
}

/// Compares a bridge with the same bridge plus workloads that no frame takes.
fn idle(workloads: usize) {
    const FDB: &str = r#"<lfb id="fdb" class="LearnSearch"><set name="LearnKey">Eth.src</set>
        <set name="LearnValue">meta:PHYPortID</set><set name="SearchKey">Eth.dst</set></lfb>"#;
    const OUT: &str = r#"<link from="fdb.KnownOut" to="tx#2.EtherPktsIn"/><link from="fdb.UnknownOut" to="tx#2.EtherPktsIn"/>"#;
    // Kinds of workloads: condition, class, settings, outputs.
    let kinds = [
        ("MPLS.label = ", "Edit", r#"<op do="pop" frame="MPLS"/>"#, vec!["PktsOut"]),
        ("ITag.isid = ", "Count", "", vec!["PktsOut"]),
        ("SVlan.vid = ", "Edit", r#"<op do="pop" frame="SVlan"/>"#, vec!["PktsOut"]),
        ("ARP.op = ", "Meter", r#"<set name="RatePps">9</set>"#, vec!["ConformOut"]),
        ("CFM.op = ", "Divert", r#"<set name="Agent">oam</set>"#, vec!["PassOut"]),
        (
            "IPv4.proto = ",
            "Scan",
            r#"<row table="Patterns" index="1"><c n="Literal">bad</c><c n="OutputIndex">0</c></row>"#,
            vec!["MatchOut[0]", "CleanOut"],
        ),
        ("UDP.dport = ", "Count", "", vec!["PktsOut"]),
        ("IPv6.hops = ", "Mirror", "", vec!["PktsOut"]),
    ];
    let (mut rules, mut blocks, mut links) = (String::new(), FDB.to_owned(), OUT.to_owned());
    for at in 0..workloads {
        let (what, class, settings, outputs) = &kinds[at % kinds.len()];
        rules.push_str(&format!(
            r#"<row table="Rules" prio="{}"><when>{what}{}</when><c n="OutputIndex">{at}</c></row>"#,
            workloads - at,
            100 + at / kinds.len()
        ));
        blocks.push_str(&format!(r#"<lfb id="work{at}" class="{class}">{settings}</lfb>"#));
        links.push_str(&format!(r#"<link from="work.HitOut[{at}]" to="work{at}.PktsIn"/>"#));
        for output in outputs {
            links.push_str(&format!(r#"<link from="work{at}.{output}" to="fdb.PktsIn"/>"#));
        }
    }
    let plain = format!(r#"{OUT}<link from="rx#*.L2BridgingPathOut" to="fdb.PktsIn"/>"#);
    blocks.push_str(&format!(r#"<lfb id="work" class="Match">{rules}</lfb>"#));
    links.push_str(r#"<link from="rx#*.L2BridgingPathOut" to="work.PktsIn"/><link from="work.MissOut" to="fdb.PktsIn"/>"#);
    let frame = |at: u64| {
        let ports = [mixed(at) as u16, 53];
        datagram([2, 0, 0, 0, 2, at as u8], (0, ports), 60)
    };
    let frames: Vec<Vec<u8>> = (0..4096).map(frame).collect();
    let mut runners = vec![
        Runner::new("without", element::<Compiled>(between(FDB, &plain)), outputs()),
        Runner::new("with", element::<Compiled>(between(&blocks, &links)), outputs()),
    ];
    race(&format!("bridge, {workloads} idle workloads"), &mut runners, 1, &frames);
}

/// Searches frames of this length, including FCS, for this number of patterns.
fn scan(patterns: u64, bytes: usize) {
    let letter = |bits: u64| b'a' + (bits % 26) as u8;
    let mut rows = String::new();
    for at in 0..patterns {
        let length = 8 + mixed(at) % 9;
        let text: Vec<u8> = (0..length).map(|nth| letter(mixed(at * 64 + nth))).collect();
        rows.push_str(&format!(
            r#"<row table="Patterns" index="{}"><c n="Literal">{}</c><c n="OutputIndex">0</c></row>"#,
            at + 1,
            String::from_utf8_lossy(&text)
        ));
    }
    let blocks = format!(r#"<lfb id="scan" class="Scan">{rows}</lfb>"#);
    let links = r#"<link from="rx#*.L2BridgingPathOut" to="scan.PktsIn"/><link from="scan.CleanOut" to="tx#2.EtherPktsIn"/>
        <link from="scan.MatchOut[0]" to="tx#1.EtherPktsIn"/>"#;
    let frame = |at: u64| {
        let mut frame = datagram([2, 0, 0, 0, 2, 1], (0, [9, 9]), bytes - 4);
        let text = (0..).map(|nth| letter(mixed(at << 32 | nth)));
        frame[42..].iter_mut().zip(text).for_each(|(byte, letter)| *byte = letter);
        frame
    };
    let frames: Vec<Vec<u8>> = (0..256).map(frame).collect();
    let scanner = element::<Compiled>(between(&blocks, links));
    let mut runners = vec![Runner::new("compiled", scanner, outputs())];
    let took = race(&format!("scan, {patterns} patterns"), &mut runners, 1, &frames);
    for took in took {
        println!("{:24} {:.2} Gbit/s", "", bytes as f64 * 8.0 / took);
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).take(2).map(|it| it.parse().expect("a number"));
    let routes = numbers.next().unwrap_or(500_000);
    let addresses = numbers.next().unwrap_or(128 * 1024);
    bridge(2);
    bridge(addresses);
    vlan();
    tagger(16);
    router(routes);
    idle(40);
    scan(1000, 1500);
}
