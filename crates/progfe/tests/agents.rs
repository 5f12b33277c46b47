//! Tests of the dispatcher between an element and its agents: frames, events and preserved state.

#![allow(clippy::unwrap_used, reason = "a test")]

use dataplane::forwarder::{Forwarder, Outputs};
use packet::build::Builder;
use packet::frame::Batch;
use packet::header::{arp, ipv4};
use packet::time::Nanos;
use progfe::agent::StatusValue;
use progfe::dispatcher::{Dispatcher, FRAMES_PER_TURN};
use progfe::element::Element;
use progfe::executor::Enforcer;
use progfe::lfb::DropReason;
use progfe::lfb::exceptions::TOLD_FRAMES_MAX;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;

struct Run<E: Enforcer> {
    element: Element<E>,
    agents: Dispatcher,
    outputs: Outputs,
    now: Nanos,
}

fn program(text: &str) -> Program {
    let (program, problems) = Program::load(&Source::new("p", text), &no_files);
    program.unwrap_or_else(|| panic!("{problems}"))
}

impl<E: Enforcer> Run<E> {
    fn new(text: &str) -> Run<E> {
        let element = Element::start(program(text), 1).unwrap();
        let (agents, outputs) = (Dispatcher::new(1), Outputs::new(&[1, 2]));
        let mut run = Run { element, agents, outputs, now: Nanos::from_secs(10) };
        run.serve();
        run
    }

    fn serve(&mut self) {
        self.agents.serve(&mut self.element, self.now, &mut self.outputs);
    }

    /// Swaps in another program.
    fn swap(&mut self, text: &str) {
        let prepared = self.element.prepare(program(text)).unwrap();
        self.element.swap(prepared, self.now, &mut self.outputs).unwrap();
        self.serve();
    }

    fn receive(&mut self, port: u32, bytes: &[u8]) {
        let mut batch = Batch::new(1);
        batch.push_bytes(bytes);
        self.element.forward(port, &mut batch, self.now, &mut self.outputs);
    }

    /// Returns the frames that left each port since the last call.
    fn left(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut left = Vec::new();
        for (port, queue) in self.outputs.queues_mut() {
            left.extend(queue.frames().iter().map(|frame| (*port, frame.bytes().to_vec())));
            queue.clear();
        }
        left
    }

    fn fact(&self, agent: &str, name: &str) -> i128 {
        let facts = self.agents.facts(self.now);
        let (_, facts) = facts.iter().find(|(known, _)| known == agent).unwrap();
        let state = facts.get("state").unwrap();
        facts.number(name).or_else(|| state.number(name)).unwrap_or_else(|| panic!("{facts:?}"))
    }
}

/// A program that sends all received frames to an agent. Its frames leave, or return to it.
fn all_to(agents: &str, inject: &str, watches: &str) -> String {
    format!(
        r#"<fe xmlns="urn:progfe:fe:1" name="all"><use library="BaseLFBLibrary"/><use library="ProGFE"/>
        <frames file="ethernet.frames.xml"/><ports><port id="1"/><port id="2"/></ports>
        <instances><lfb id="phy" class="EtherPHYCop" instances="1..2"><set name="AdminStatus">Up</set></lfb>
        <lfb id="to" class="Divert"><set name="Agent">mine</set><set name="RatePps">1000000</set></lfb>
        {}</instances><links><link from="phy#*.EtherPHYOut" to="to.PktsIn"/>{inject}</links>
        <agents>{agents}</agents>{watches}</fe>"#,
        match inject {
            "" => "",
            _ => r#"<lfb id="from" class="Inject"><set name="Agent">mine</set></lfb>"#,
        }
    )
}

const OUT: &str = r#"<link from="from.PktsOut[*]" to="phy#*.EtherPHYIn"/>"#;
const MINE: &str = r#"<agent name="mine" type="process"/>"#;

/// Builds a message that injects a frame.
fn put_in(output: u8, frame: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 8 + frame.len() as u8, 2, 0, 0, 0, 0, 0, 0, output];
    message.extend(frame);
    message
}

fn over<E: Enforcer>() {
    let mut run = Run::<E>::new(&all_to(MINE, OUT, ""));
    run.receive(1, &[1; 60]);
    run.serve();
    assert_eq!((run.fact("mine", "told"), run.fact("mine", "not_connected")), (1, 1));
    assert_eq!(run.agents.wires(), ["mine"]);
    for output in [1, 0, 7] {
        let around = (&mut run.element, run.now, &mut run.outputs);
        let heard = run.agents.with_wire("mine", around, |wire, around| {
            wire.received(&put_in(output, &[output; 60]), around)
        });
        assert_eq!(heard, Some(Ok(())));
    }
    assert_eq!(run.left(), [(1, vec![0; 60]), (2, vec![1; 60])]);
    let from = run.element.program().find("from").unwrap();
    assert_eq!(run.element.drops(from).of(DropReason::Unlinked), 1, "output 7 has no link");
    // An unchanged agent survives; a changed one restarts.
    run.swap(&all_to(MINE, OUT, "").replace("name=\"all\"", "name=\"again\""));
    assert_eq!(run.fact("mine", "told"), 1);
    run.swap(&all_to(&MINE.replace("/>", " queue=\"9\"/>"), OUT, ""));
    assert_eq!(run.fact("mine", "told"), 0);
    assert!(run.element.roll_back(run.now, &mut run.outputs));
    run.serve();
    run.receive(1, &[1; 60]);
    run.serve();
    assert_eq!(run.fact("mine", "told"), 1);
}

#[test]
fn frames_reach_their_agent_and_return_through_its_inject() {
    over::<progfe::interpret::Interpreter>();
    over::<progfe::compile::Compiled>();
}

#[test]
fn full_queues_and_agents_without_inject_are_counted() {
    let mut run = Run::<progfe::compile::Compiled>::new(&all_to(MINE, "", ""));
    (0..TOLD_FRAMES_MAX + 5).for_each(|_| run.receive(1, &[1; 60]));
    let to = run.element.program().find("to").unwrap();
    assert_eq!(run.element.drops(to).of(DropReason::ToldQueueFull), 5);
    run.serve();
    assert_eq!(run.fact("mine", "told"), TOLD_FRAMES_MAX as i128);
    let around = (&mut run.element, run.now, &mut run.outputs);
    run.agents
        .with_wire("mine", around, |wire, around| wire.received(&put_in(0, &[0; 60]), around))
        .unwrap()
        .unwrap();
    assert_eq!((run.fact("mine", "no_inject"), run.left().len()), (1, 0));
}

/// An agent that receives its own replies replies again. Each turn must still end.
#[test]
fn frames_that_return_to_their_agent_do_not_block() {
    let arp =
        r#"<agent name="mine" type="arp"><interface port="1" address="10.0.0.1/24"/></agent>"#;
    // Its announcement about itself is not a request. Two agents on one link could do this to each
    // other.
    let back = r#"<link from="from.PktsOut[0]" to="to.PktsIn"/>"#;
    let mut run = Run::<progfe::compile::Compiled>::new(&all_to(arp, back, ""));
    let question = arp::Header {
        operation: arp::REQUEST,
        sender_mac: [2, 0, 0, 0, 0, 9],
        sender_ip: [10, 0, 0, 9].into(),
        target_mac: [0; 6],
        target_ip: [10, 0, 0, 1].into(),
    };
    let frame = Builder::new([0xff; 6], [2, 0, 0, 0, 0, 9]).arp(question).bytes();
    for _ in 0..FRAMES_PER_TURN {
        run.receive(1, &frame);
    }
    run.serve();
    assert_eq!(run.fact("mine", "told"), FRAMES_PER_TURN as i128);
    run.serve();
    assert_eq!(run.fact("mine", "told"), 2 * FRAMES_PER_TURN as i128);
    run.serve();
    assert_eq!(run.fact("mine", "told"), 2 * FRAMES_PER_TURN as i128);
}

#[test]
fn events_are_reported_as_often_as_their_watches_permit() {
    let mep = r#"<agent name="mine" type="y1731"><mep id="1" level="0" port="1" ma="m" ccm="100ms" peers="2 3"/></agent>"#;
    let watch = r#"<watch agent="mine" event="PeerLost"/>"#;
    let mut run = Run::<progfe::compile::Compiled>::new(&all_to(mep, OUT, watch));
    run.now += Nanos::from_millis(350);
    run.serve();
    let reports: Vec<_> = std::iter::from_fn(|| run.agents.next_report()).collect();
    let peers: Vec<_> = reports.iter().map(|it| it.occurred.facts.number("peer")).collect();
    assert_eq!(peers, [Some(2), Some(3)]);
    assert_eq!((reports[0].agent.as_str(), reports[0].occurred.event), ("mine", "PeerLost"));
    let often = watch.replace("/>", " count=\"2\"/>");
    let mut run = Run::<progfe::compile::Compiled>::new(&all_to(mep, OUT, &often));
    run.now += Nanos::from_millis(350);
    run.serve();
    let report = run.agents.next_report().unwrap();
    assert_eq!((report.untold, run.agents.next_report()), (1, None));
    let mut run = Run::<progfe::compile::Compiled>::new(&all_to(mep, OUT, ""));
    run.now += Nanos::from_millis(350);
    run.serve();
    assert_eq!(run.agents.next_report(), None, "no client subscribes");
}

/// A known neighbour survives a program change and its rollback.
#[test]
fn neighbors_survive_program_changes() {
    let text = include_str!("../../../examples/progfe/router-agents.fe.xml");
    let mut run = Run::<progfe::compile::Compiled>::new(text);
    let host = [2, 0, 0, 0, 9, 2];
    let packet = || {
        let header = ipv4::Header::new([10, 1, 0, 9].into(), [10, 2, 0, 9].into());
        Builder::new([2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 9, 1]).ipv4(header).udp(1, 2).bytes()
    };
    run.receive(1, &packet());
    run.serve();
    let asked = run.left();
    assert_eq!((asked.len(), asked[0].0), (1, 2));
    let answer = arp::Header {
        operation: arp::REPLY,
        sender_mac: host,
        sender_ip: [10, 2, 0, 9].into(),
        target_mac: [2, 0, 0, 0, 1, 2],
        target_ip: [10, 2, 0, 1].into(),
    };
    run.receive(2, &Builder::new([2, 0, 0, 0, 1, 2], host).arp(answer).bytes());
    run.serve();
    let passes = |run: &mut Run<_>| {
        let left = run.left();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!((left[0].0, &left[0].1[..6]), (2, &host[..]));
    };
    passes(&mut run);
    for text in [text.replace("<c n=\"MTU\">1400</c>", "<c n=\"MTU\">1300</c>"), text.to_owned()] {
        run.swap(&text);
        run.receive(1, &packet());
        passes(&mut run);
    }
    assert!(run.element.roll_back(run.now, &mut run.outputs));
    run.serve();
    run.receive(1, &packet());
    passes(&mut run);
    // With other settings the agent restarts and sends a new request.
    run.swap(&text.replace(
        "address=\"10.2.0.1/24 fd02::1/64\"/>\n      <resolve",
        "address=\"10.2.0.1/24\"/>\n      <resolve",
    ));
    run.receive(1, &packet());
    run.serve();
    assert_eq!(run.left()[0].1[12..14], [8, 6]);
    let state = run.agents.facts(run.now);
    let arp =
        state.iter().find(|(name, _)| name == "arp").and_then(|(_, facts)| facts.get("state"));
    assert_eq!(arp.unwrap().get("asked"), Some(&StatusValue::Number(1)));
}
