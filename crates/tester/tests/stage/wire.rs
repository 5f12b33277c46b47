//! Wire timestamps of messages in virtual time: they are exact also if the tester stalled.

use openflow::model::message::Message;
use packet::time::{Clock, Nanos, Stamp};
use tester::executor::TopologyInfo;
use tester::module::*;

use super::rig;
use super::toy::Vice;

/// Number of requests.
const ROUNDS: usize = 20;

#[derive(Default)]
struct Asks {
    sent: Vec<(Nanos, Option<Stamp>)>,
    came: Vec<(Nanos, bool, Option<Stamp>)>,
}

impl Module for Asks {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(10))
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) | EventKind::Timer(_) => {
                context.send(0, Message::BarrierRequest);
            }
            EventKind::Sent { first, wire, .. } => self.sent.push((first, wire)),
            EventKind::Message {
                message: Message::BarrierReply, is_timestamp_valid, wire, ..
            } => {
                self.came.push((event.at, is_timestamp_valid, wire));
                match self.came.len() < ROUNDS {
                    true => drop(context.timer_in(Nanos::from_millis(1))),
                    false => context.end(),
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {}
}

#[test]
fn wire_timestamps_are_exact_during_a_tester_stall() {
    let mut rig = rig(Vice::None);
    let away = Nanos::from_millis(3);
    rig.pause_tester(Nanos(5_650_000), away);
    let clock = std::sync::Arc::clone(&rig.clock);
    let mut module = Asks::default();
    let mut connect = |toy: &mut super::toy::Toy, _, now| Ok(toy.connect_stamped(&clock, now));
    let report = rig.stage(&mut module, &TopologyInfo::default(), &mut connect);
    assert_eq!((&report.ended, module.came.len()), (&Ended::Completed, ROUNDS));
    let delay = rig.device.delay;
    let mut late = 0;
    for ((first, out), (at, is_known, inn)) in module.sent.iter().zip(&module.came) {
        let (out, inn) = (out.unwrap(), inn.unwrap());
        assert_eq!((out.clock, inn.clock), (Clock::Virtual, Clock::Virtual));
        // The wire shows the switch's exact delay, independent of the times at the socket.
        assert_eq!((out.at, inn.at.since(out.at)), (*first, delay));
        if *is_known {
            assert_eq!(inn.at, *at);
        } else {
            late += 1;
            assert!(at.since(inn.at) > Nanos::from_millis(1), "{at} {inn:?}");
        }
    }
    assert_eq!(late, 1, "one reply arrived during the stall");
    let wire = report.connections[0].wire.as_ref().unwrap();
    assert_eq!((wire.stamps, wire.unknown), (Some(Clock::Virtual), 0));
    assert_eq!((wire.received.count(), wire.sent.count()), (ROUNDS as u64, ROUNDS as u64));
    assert_eq!(wire.received.ns_min(), Some(0));
    assert!(wire.received.ns_max() > Some(1_000_000), "{:?}", wire.received.ns_max());
    // Without a capture there are no wire timestamps.
    let mut module = Asks::default();
    let report = super::stage(&mut rig, &mut module);
    assert_eq!(report.connections[0].wire, None);
    assert!(module.came.iter().all(|(.., wire)| wire.is_none()));
}
