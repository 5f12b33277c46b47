//! Tests of modules on our own switch in virtual time: its messages and its frames share one clock,
//! in every supported version.

use std::net::Ipv4Addr;

use channel::memory::pair;
use elements::config::{Config, Kind, OpenFlowConfig, PortConfig};
use elements::node::Node;
use netio::memory::pair_stamped;
use netio::port::Port;
use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, Field, FlowMod, Match, reserved};
use openflow::version::Version;
use packet::time::{Clock, Nanos};
use tester::executor::TopologyInfo;
use tester::module::*;
use tester::rig::sim::{Device, SimRig};
use tester::stream::{Field as Varied, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};

/// Interval at which the switch serves its controllers.
const SERVES_EVERY: Nanos = Nanos::from_micros(100);

/// A switch that serves its controllers at fixed times, and frames immediately.
struct Switch {
    node: Node,
    serves_at: Nanos,
}

impl Device for Switch {
    fn step(&mut self, now: Nanos) -> Option<Nanos> {
        self.node.turn(now);
        if now >= self.serves_at {
            self.node.serve(now);
            self.serves_at = now.saturating_add(SERVES_EVERY);
        }
        self.node.events.clear();
        Some(self.serves_at)
    }
}

/// Returns a rig with two ports of the tester, connected to the switch's ports 1 and 2.
fn rig() -> SimRig<Switch> {
    let openflow = OpenFlowConfig { probe_ms: 3_600_000, ..OpenFlowConfig::default() };
    let mut config = Config::new(Kind::OpenFlow(openflow));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for number in [1, 2] {
        let ends = pair_stamped(1024, "link", Clock::Virtual);
        near.push(Box::new(ends.0) as Box<dyn Port>);
        far.push((number, Box::new(ends.1) as Box<dyn Port>));
        config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
    }
    let node = Node::open(&config, far, 1, Nanos::ZERO).unwrap();
    SimRig::new(near, Switch { node, serves_at: Nanos::ZERO }, 5)
}

/// Runs a module on our switch.
pub fn stage(module: &mut dyn Module) -> StageReport {
    let joined = [1, 2].map(|port| Some(SwitchPort { switch: 0, port })).to_vec();
    rig().stage(module, &TopologyInfo { joined }, &mut |switch, _, now| {
        let (ours, theirs) = pair(1 << 20, "openflow");
        switch.node.adopt(Box::new(theirs), now);
        Ok(Box::new(ours))
    })
}

/// Returns UDP frames to this many ports in turn, from 1 on.
pub fn probes(flows: u64, pps: f64) -> Stream {
    let ip = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let headers = Headers::udp(([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]), ip, (9, 9));
    let fields = vec![(Varied::PortDestination, Values::Range { first: 1, step: 1 })];
    let vary = vec![FieldVariation { count: flows, order: IndexOrder::Sequential, fields }];
    Stream { vary, ..Stream::plain(1, 64, headers, Rate::FramesPerSecond(pps)) }
}

const RULES: u32 = 50;
const PROBES_PPS: f64 = 500_000.0;
const BATCH: u32 = 10;

/// Measures the echo round trip, then sends rules in batches with a barrier after each, and finds
/// the first frame of each rule.
struct Rules {
    version: Version,
    echo: Option<Xid>,
    asked_at: Nanos,
    echoed: Option<Nanos>,
    batches: Vec<MessageRange>,
    sent: Vec<Nanos>,
    answered: Vec<Nanos>,
    first: Vec<Option<Nanos>>,
}

impl Rules {
    fn new(version: Version) -> Self {
        Rules {
            version,
            echo: None,
            asked_at: Nanos::ZERO,
            echoed: None,
            batches: Vec::new(),
            sent: Vec::new(),
            answered: Vec::new(),
            first: vec![None; RULES as usize],
        }
    }

    fn say(&mut self, context: &mut ModuleContext) {
        let first = self.batches.len() as u32 * BATCH;
        let rule = |place: u32| {
            let matching = Match::ANY
                .with(Field::EthType, 0x0800u16)
                .with(Field::IpProto, 17u8)
                .with(Field::UdpDst, place as u16 + 1);
            Message::FlowMod(FlowMod::add(matching, 100, vec![Action::output(2)]))
        };
        let mut messages: Vec<Message> = (first..first + BATCH).map(rule).collect();
        messages.push(Message::BarrierRequest);
        self.batches.push(context.send_all(0, messages));
    }
}

impl Module for Rules {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(1)).in_versions(&[self.version])
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                assert_eq!(facts.version(0), Some(self.version));
                assert_eq!(facts.port_joined(SwitchPort { switch: 0, port: 2 }), Some(1));
                // A lowest-priority rule, so that frames without a match are dropped in every
                // version.
                context.send(0, Message::FlowMod(FlowMod::add(Match::ANY, 1, Vec::new())));
                self.echo = Some(context.send(0, Message::EchoRequest(vec![1; 32])));
                context.watch(1, FrameFilter::Probes);
                context.prepare(probes(RULES.into(), PROBES_PPS));
            }
            EventKind::Sent { said, first, .. } if Some(said.xid) == self.echo => {
                self.asked_at = first
            }
            EventKind::Sent { said, first, .. } if Some(&said) == self.batches.last() => {
                self.sent.push(first);
            }
            EventKind::Message { xid, message: Message::EchoReply(data), .. } => {
                assert_eq!((Some(xid), data.len()), (self.echo, 32));
                self.echoed = Some(event.at.since(self.asked_at));
                context.begin(1, SendSpan::OPEN);
                self.say(context);
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. } => {
                assert_eq!(self.batches.last().unwrap().place(xid), Some(BATCH));
                self.answered.push(event.at);
                if (self.batches.len() as u32) * BATCH < RULES {
                    self.say(context);
                } else {
                    context.timer_in(Nanos::from_micros(500));
                }
            }
            EventKind::Message { message: Message::Error(error), .. } => panic!("{error}"),
            EventKind::Frame(arrival) => {
                let probe = arrival.probe.unwrap();
                assert!(probe.is_intact && probe.is_delay_known);
                self.first[probe.place as usize].get_or_insert(event.at);
            }
            EventKind::Timer(_) => context.end(),
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

#[test]
fn a_correct_switch_is_found_correct_in_every_version() {
    let resolution = Nanos((f64::from(RULES) / PROBES_PPS * 1e9) as u64);
    for version in [Version::V1_0, Version::V1_3, Version::V1_5] {
        let mut module = Rules::new(version);
        let report = stage(&mut module);
        assert!(report.is_whole(), "{version}: {}", report.ended);
        assert!(module.echoed.is_some_and(|took| took <= SERVES_EVERY), "{:?}", module.echoed);
        assert_eq!((module.sent.len(), module.answered.len()), (5, 5));
        for (rule, first) in module.first.iter().enumerate() {
            let batch = rule / BATCH as usize;
            let (sent, answered) = (module.sent[batch], module.answered[batch]);
            let first = first.expect("every rule became active");
            // It becomes active when its barrier is answered, as far as probes can show.
            assert!(first >= answered && first <= answered + resolution, "rule {rule}: {first}");
            assert!(answered > sent && answered <= sent + SERVES_EVERY);
        }
        let account = report.streams[0];
        assert_eq!((account.elsewhere, account.altered, account.duplicate), (0, 0, 0));
        assert_eq!(account.sent, account.arrived + account.lost());
    }
}

/// Makes the switch send frames that the test builds.
struct ByHand(Version, Vec<Nanos>);

impl Module for ByHand {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_millis(10)).in_versions(&[self.0])
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                let stream = probes(4, 1.0);
                let frames = facts.signer.frames(&stream);
                context.prepare(stream);
                context.watch(1, FrameFilter::All);
                let in_port =
                    if self.0 == Version::V1_0 { reserved::NONE } else { reserved::CONTROLLER };
                let out = |number| {
                    Message::PacketOut(PacketOut {
                        buffer_id: None,
                        in_port,
                        fields: Match::ANY,
                        actions: vec![Action::output(2)],
                        data: frames.frame(number, event.at),
                    })
                };
                context.send_all(0, (0..8).map(out).collect());
            }
            EventKind::Frame(arrival) => {
                let probe = arrival.probe.expect("the stage identifies its own frames");
                assert_eq!((probe.number % 4, probe.is_intact), (probe.place, true));
                self.1.push(event.at.since(probe.sent_at));
                if self.1.len() == 8 {
                    context.end();
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

#[test]
fn frames_in_packet_outs_are_identified_at_their_output() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut module = ByHand(version, Vec::new());
        let report = stage(&mut module);
        assert_eq!(report.ended, Ended::Completed, "{version}");
        assert!(module.1.iter().all(|took| *took <= SERVES_EVERY), "{:?}", module.1);
        assert_eq!((report.streams[0].sent, report.streams[0].arrived), (0, 8));
    }
}
