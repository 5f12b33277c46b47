//! Rule activation module, like those that measure real switches: it installs rules and measures
//! each rule's first frame and the barrier's reply.

use netio::wrap::delay::{Delay, DelayOptions};
use openflow::header::Xid;
use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use packet::time::Nanos;
use tester::module::*;

use super::toy::Vice;
use super::{probes, rig, stage};

/// Rate of the probe frames, per second.
const PROBES_PPS: f64 = 1e6;

/// Installs rules and measures when each becomes active.
pub struct Activation {
    rules: u32,
    limit: Nanos,
    echo: Option<Xid>,
    asked_at: Option<Nanos>,
    batch: Option<MessageRange>,
    sent_at: Nanos,
    /// Delay from the write of the batch to the barrier reply.
    pub barrier: Option<Nanos>,
    pub echoed: Option<Nanos>,
    /// Delay from the write of the batch to each rule's first frame.
    pub first: Vec<Option<Nanos>>,
    pub errors: u32,
    pub unknown: u32,
    pub refused: u32,
    pub lost: u32,
    pub packet_ins: u64,
    pub finished: Option<Ended>,
}

impl Activation {
    pub fn new(rules: u32, limit: Nanos) -> Self {
        Activation {
            rules,
            limit,
            echo: None,
            asked_at: None,
            batch: None,
            sent_at: Nanos::ZERO,
            barrier: None,
            echoed: None,
            first: vec![None; rules as usize],
            errors: 0,
            unknown: 0,
            refused: 0,
            lost: 0,
            packet_ins: 0,
            finished: None,
        }
    }

    fn install(&mut self, context: &mut ModuleContext) {
        let rule = |place: u32| {
            Message::FlowMod(FlowMod {
                cookie: u64::from(0x0a00_0000 + place),
                ..FlowMod::default()
            })
        };
        let mut messages: Vec<Message> = (0..self.rules).map(rule).collect();
        messages.push(Message::BarrierRequest);
        self.batch = Some(context.send_all(0, messages));
    }

    fn hear(&mut self, at: Nanos, xid: Xid, message: &Message, context: &mut ModuleContext) {
        match message {
            Message::EchoReply(_) if Some(xid) == self.echo => {
                self.echoed = Some(at.since(self.asked_at.expect("sent, then answered")));
                self.install(context);
            }
            Message::BarrierReply if self.place(xid) == Some(self.rules) => {
                self.barrier.get_or_insert(at.since(self.sent_at));
            }
            Message::Error(_) if self.place(xid).is_some() => self.errors += 1,
            Message::PacketIn(_) => self.packet_ins += 1,
            _ => self.unknown += 1,
        }
    }

    fn place(&self, xid: Xid) -> Option<u32> {
        self.batch.and_then(|batch| batch.place(xid))
    }
}

impl Module for Activation {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(self.limit)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                assert!(facts.is_simulated && facts.version(0).is_some());
                assert_eq!(facts.connections[0].features.as_ref().unwrap().datapath_id, 0xabc);
                context.start(probes(1, self.rules.into(), PROBES_PPS), SendSpan::OPEN);
                context.watch(1, FrameFilter::Probes);
                self.echo = Some(context.send(0, Message::EchoRequest(vec![1, 2, 3])));
            }
            EventKind::Sent { said, first, .. } if Some(said.xid) == self.echo => {
                self.asked_at = Some(first);
            }
            EventKind::Sent { first, .. } => self.sent_at = first,
            EventKind::Message { xid, message, .. } => self.hear(event.at, xid, message, context),
            EventKind::Frame(arrival) => {
                let probe = arrival.probe.unwrap();
                assert!(probe.is_intact && probe.is_delay_known && arrival.is_timestamp_valid);
                let since = event.at.since(self.sent_at);
                self.first[probe.place as usize].get_or_insert(since);
                if self.first.iter().all(Option::is_some) && self.barrier.is_some() {
                    context.end();
                }
            }
            EventKind::DecodeFailed { .. } => self.refused += 1,
            EventKind::Disconnected { .. } => self.lost += 1,
            _ => {}
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        self.finished = Some(ended.clone());
        let seen = self.first.iter().flatten().count() as u64;
        let half_width = f64::from(self.rules) / PROBES_PPS * 1e9 / 2.0;
        if let Some(last) = self.first.iter().flatten().max() {
            let measured =
                MeasuredValue::new("activation_ns_last", "ns", last.0 as f64, half_width);
            context.measured(measured.of(seen));
        }
        context.log("finished", &[("rules_seen", seen.into()), ("errors", self.errors.into())]);
    }
}

#[test]
fn activation_times_are_within_the_resolution_of_the_probes() {
    const RULES: u32 = 40;
    let mut rig = rig(Vice::None);
    (rig.device.delay, rig.device.lag) = (Nanos::from_micros(250), Nanos::from_micros(300));
    let mut module = Activation::new(RULES, Nanos::from_secs(1));
    let report = stage(&mut rig, &mut module);
    assert_eq!(report.ended, Ended::Completed);
    assert!(report.is_whole() && report.is_simulated);
    // The switch confirms after its delay, and activates the n-th rule n times the lag later.
    let delay = Nanos::from_micros(250);
    assert_eq!((module.echoed, module.barrier), (Some(Nanos::ZERO), Some(delay)));
    let resolution = Nanos::from_micros(u64::from(RULES));
    for (rule, first) in module.first.iter().enumerate() {
        let truth = delay + Nanos(rule as u64 * 300_000);
        let found = first.unwrap();
        assert!(found >= truth && found <= truth + resolution, "rule {rule}: {found}, {truth}");
    }
    let last = report.measured("activation_ns_last").unwrap();
    assert_eq!((last.count, last.half_width), (40, Some(20_000.0)));
    let [stream] = report.streams[..] else { panic!("one stream") };
    assert_eq!(stream.sent, stream.arrived + stream.lost());
    assert_eq!((stream.arrived, stream.elsewhere, stream.altered), (stream.expected, 0, 0));
    assert_eq!((report.ports[1].received, report.ports[1].foreign), (stream.arrived, 0));
    assert!(report.ports[1].watched > 0 && report.costs.events > report.ports[1].watched);
    let line = &report.connections[0];
    assert_eq!((line.ups, line.losses, line.unsent), (1, 0, 0));
    let kinds: Vec<(String, u64)> =
        line.sent.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
    let wanted = [("echo_request", 1), ("flow_mod", 40), ("barrier_request", 1)];
    assert_eq!(kinds, wanted.map(|(kind, count)| (kind.to_string(), count)));
}

#[test]
fn the_same_module_gives_the_same_report() {
    let run = || {
        let mut rig = rig(Vice::None);
        rig.device.lag = Nanos::from_micros(7);
        let mut module = Activation::new(16, Nanos::from_secs(1));
        format!("{:?}", stage(&mut rig, &mut module))
    };
    assert_eq!(run(), run());
}

#[test]
fn arrival_times_during_a_tester_stall_are_unknown() {
    struct Watching(u64, u64);
    impl Module for Watching {
        fn needs(&self) -> ModuleRequirements {
            ModuleRequirements::new(Nanos::from_millis(20))
        }

        fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
            match event.what {
                EventKind::Start(_) => {
                    let rule = FlowMod { cookie: 0x0a00_0000, ..FlowMod::default() };
                    context.send(0, Message::FlowMod(rule));
                    context.watch(1, FrameFilter::All);
                    context.start(
                        probes(3, 1, 1e4),
                        SendSpan::until(context.now() + Nanos::from_millis(15)),
                    );
                }
                EventKind::Frame(arrival) => {
                    self.0 += 1;
                    self.1 += u64::from(!arrival.is_timestamp_valid);
                    assert_eq!(arrival.is_timestamp_valid, arrival.probe.unwrap().is_delay_known);
                }
                _ => {}
            }
        }

        fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
    }
    let mut rig = rig(Vice::None);
    let fixed = Nanos::from_micros(500);
    let out = rig.device.ports.pop().unwrap();
    let slow = Delay::new(out, DelayOptions { fixed, ..DelayOptions::default() });
    rig.device.ports.push(Box::new(slow));
    rig.pause_tester(Nanos::from_millis(5), Nanos::from_millis(2));
    let mut module = Watching(0, 0);
    let report = stage(&mut rig, &mut module);
    assert_eq!(report.ended, Ended::Limit(TIME_LIMIT));
    // Frames that arrived during the stall: those outstanding when it began.
    assert!(module.0 > 100 && (4..=6).contains(&module.1), "{} of {}", module.1, module.0);
    assert_eq!((report.stalls.count, report.stalls.delays_unknown), (1, module.1));
}
