//! Misbehaving switches: no run hangs, and the report has the results so far.

use std::sync::atomic::Ordering;

use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::executor::{CONNECT_NS_MAX, FEATURES_NS_MAX, HELLO_NS_MAX};
use tester::module::*;

use super::activation::Activation;
use super::toy::Vice;
use super::{probes, rig, stage};

const RULES: u32 = 20;

/// Runs the module with a switch of this misbehavior.
fn meet(vice: Vice) -> (Activation, StageReport) {
    let mut rig = rig(vice);
    let mut module = Activation::new(RULES, Nanos::from_millis(100));
    let report = stage(&mut rig, &mut module);
    assert_eq!(module.finished.as_ref(), Some(&report.ended), "{vice:?}");
    assert_eq!(report.log.len(), 1, "{vice:?}: events before the end are delivered");
    (module, report)
}

fn seen(module: &Activation) -> usize {
    module.first.iter().flatten().count()
}

#[test]
fn a_switch_without_handshake_ends_by_a_named_limit() {
    for (vice, name, limit) in [
        (Vice::NoHello, "HELLO_NS_MAX", HELLO_NS_MAX),
        (Vice::NoFeatures, "FEATURES_NS_MAX", FEATURES_NS_MAX),
    ] {
        let (module, report) = meet(vice);
        let Ended::NotReady { connection: 0, why } = &report.ended else { panic!("{report:?}") };
        assert!(why.contains(name), "{why}");
        assert!(report.ended_at >= limit && report.ended_at < limit + Nanos::from_secs(1));
        assert_eq!((seen(&module), report.connections[0].losses, report.costs.events), (0, 1, 0));
    }
    let mut rig = rig(Vice::None);
    let mut module = Activation::new(RULES, Nanos::from_millis(100));
    let report = rig.stage(&mut module, &Default::default(), &mut |_, _, _| {
        Err(channel::ChannelError::Closed("no peer".into()))
    });
    assert!(matches!(report.ended, Ended::NotReady { .. }), "{}", report.ended);
    assert!(CONNECT_NS_MAX > Nanos::ZERO);
}

#[test]
fn virtual_time_ends_by_its_limit_or_on_request() {
    let mut rig = rig(Vice::SilentAfter(11));
    rig.moments_max = 1000;
    let report = stage(&mut rig, &mut Activation::new(RULES, Nanos::from_secs(3600)));
    assert_eq!(report.ended, Ended::Limit("MOMENTS_MAX"));
    assert!(report.costs.turns < 10_000, "{}", report.costs.turns);
    rig.stop.store(true, Ordering::Relaxed);
    let report = stage(&mut rig, &mut Activation::new(RULES, Nanos::from_secs(3600)));
    assert_eq!((report.ended, report.costs.turns), (Ended::Interrupted, 0));
}

#[test]
fn a_module_with_a_silent_switch_ends_at_its_time_limit() {
    let (module, report) = meet(Vice::SilentAfter(11));
    assert_eq!(report.ended, Ended::Limit(TIME_LIMIT));
    assert_eq!(report.ended_at.since(report.started_at), Nanos::from_millis(100));
    // The features request and ten rules.
    assert_eq!((seen(&module), module.barrier), (10, None));
    assert_eq!(report.measured("activation_ns_last").unwrap().count, 10);
}

#[test]
fn a_closed_or_invalid_connection_is_reported_as_lost() {
    for vice in [Vice::ClosesAfter(11), Vice::LosesItself(11)] {
        let (module, report) = meet(vice);
        let Ended::Lost { connection: 0, why } = &report.ended else { panic!("{report:?}") };
        let word = if vice == Vice::ClosesAfter(11) { "closed" } else { "invalid message length" };
        assert!(why.contains(word), "{why}");
        assert_eq!((module.lost, module.barrier), (1, None));
        assert_eq!(report.connections[0].lost.as_deref(), Some(&why[..]));
    }
}

#[test]
fn wrong_transaction_ids_are_reported_unchanged() {
    let (module, report) = meet(Vice::WrongXids);
    // The session's own echo reply keeps its transaction id. The barrier reply's id matches no
    // request.
    assert_eq!((report.ended.clone(), module.barrier), (Ended::Limit(TIME_LIMIT), None));
    assert_eq!((module.unknown, seen(&module)), (1, RULES as usize));
}

#[test]
fn repeated_replies_and_invalid_messages_are_reported() {
    let (module, report) = meet(Vice::Repeats);
    assert!(report.is_whole() && module.barrier.is_some());
    let barriers = report.connections[0].received.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(barriers, 3, "an echo and the barrier twice");
    let (module, report) = meet(Vice::Garbles);
    assert!(report.is_whole() && module.barrier.is_some());
    assert_eq!((module.refused, report.connections[0].refused), (1, 1));
}

#[test]
fn reordered_replies_keep_their_transaction_ids() {
    struct Two(Vec<u32>, Vec<u32>);
    impl Module for Two {
        fn needs(&self) -> ModuleRequirements {
            ModuleRequirements::new(Nanos::from_secs(1)).in_versions(&[Version::V1_3])
        }

        fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
            match event.what {
                EventKind::Start(facts) => {
                    assert_eq!(facts.version(0), Some(Version::V1_3));
                    self.0 = context.send_all(0, vec![Message::BarrierRequest; 2]).xids().collect();
                }
                EventKind::Message { xid, message: Message::BarrierReply, .. } => {
                    self.1.push(xid);
                    if self.1.len() == 2 {
                        context.end();
                    }
                }
                _ => {}
            }
        }

        fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
    }
    let mut module = Two(Vec::new(), Vec::new());
    assert_eq!(stage(&mut rig(Vice::Reorders), &mut module).ended, Ended::Completed);
    module.1.reverse();
    assert_eq!(module.0, module.1);
}

#[test]
fn errors_for_half_of_the_rules_do_not_affect_the_others() {
    let (module, report) = meet(Vice::RefusesHalf);
    assert_eq!((module.errors, seen(&module)), (RULES / 2, RULES as usize / 2));
    assert!(module.barrier.is_some());
    assert_eq!(report.ended, Ended::Limit(TIME_LIMIT));
}

#[test]
fn a_flood_of_packet_ins_does_not_delay_other_events() {
    let (module, report) = meet(Vice::Floods);
    assert!(report.is_whole(), "{:?}", report.ended);
    assert!(seen(&module) == RULES as usize && module.packet_ins > 200, "{}", module.packet_ins);
}

#[test]
fn an_endless_or_invalid_module_is_ended() {
    /// Runs a function at each event.
    struct Does(fn(&mut ModuleContext));
    impl Module for Does {
        fn needs(&self) -> ModuleRequirements {
            ModuleRequirements::new(Nanos::from_millis(1))
        }

        fn react(&mut self, _: &Event<'_>, context: &mut ModuleContext) {
            (self.0)(context);
        }

        fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
    }
    let run = |does| stage(&mut rig(Vice::None), &mut Does(does));
    let report = run(|context| context.end_by_limit("ANSWER_NS_MAX"));
    assert_eq!(report.ended, Ended::Limit("ANSWER_NS_MAX"));
    let report = run(|context| context.fail("the switch is full"));
    assert_eq!(report.ended, Ended::Failed("the switch is full".into()));
    let report = run(|context| {
        context.count_left_out("ROWS_MAX", 3);
        context.end();
    });
    assert_eq!((report.ended.clone(), report.is_whole()), (Ended::Completed, false));
    assert_eq!(report.limits, [("ROWS_MAX", 3)]);
    // An error during `finish` is not lost.
    struct Fails;
    impl Module for Fails {
        fn needs(&self) -> ModuleRequirements {
            ModuleRequirements::new(Nanos::from_millis(1))
        }

        fn react(&mut self, _: &Event<'_>, context: &mut ModuleContext) {
            context.end();
        }

        fn finish(&mut self, _: &Ended, context: &mut ModuleContext) {
            context.fail("no frame arrived");
        }
    }
    let report = stage(&mut rig(Vice::None), &mut Fails);
    assert_eq!(report.ended, Ended::Failed("no frame arrived".into()));
    let report = run(|context| context.counters());
    assert!(matches!(report.ended, Ended::Restless(_)), "{}", report.ended);
    let report = run(|context| {
        context.timer_at(context.now());
    });
    assert!(matches!(report.ended, Ended::Restless(_)), "{}", report.ended);
    let report = run(|context| context.start(probes(1, 1, 0.0), SendSpan::OPEN));
    assert!(matches!(&report.ended, Ended::Unusable(it) if it[0].0 == 1), "{}", report.ended);
    let report = run(|context| context.begin(9, SendSpan::OPEN));
    assert!(matches!(report.ended, Ended::Unusable(_)), "{}", report.ended);
    let report = run(|context| context.watch(7, FrameFilter::All));
    assert!(matches!(report.ended, Ended::Port(7, _)), "{}", report.ended);
}

#[test]
fn messages_for_a_switch_that_does_not_read_are_limited() {
    /// Sends large messages and counts those that are not sent.
    struct Much(u32);
    impl Module for Much {
        fn needs(&self) -> ModuleRequirements {
            ModuleRequirements::new(Nanos::from_millis(1))
        }

        fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
            match event.what {
                EventKind::Start(_) => {
                    let echo = [Message::EchoRequest(vec![0; 60_000])];
                    let echo = context.encode(Version::V1_5, &echo).unwrap();
                    (0..400).for_each(|_| {
                        context.send_encoded(0, &echo);
                    });
                }
                EventKind::SendFailed { why: SendError::Limit("TRANSMIT_BYTES_MAX"), .. } => {
                    self.0 += 1
                }
                EventKind::LimitReached(name) => {
                    assert!(name == TIME_LIMIT || name == "TRANSMIT_BYTES_MAX")
                }
                _ => {}
            }
        }

        fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
    }
    let mut module = Much(0);
    let report = stage(&mut rig(Vice::None), &mut module);
    assert!(module.0 > 100, "{}", module.0);
    assert_eq!(report.limits, [("TRANSMIT_BYTES_MAX", u64::from(module.0))]);
}
