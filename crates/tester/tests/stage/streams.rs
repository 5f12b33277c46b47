//! Streams that start, stop and change, several connections, and frames built by the module.

use openflow::model::flow::FlowMod;
use openflow::model::message::Message;
use packet::time::Nanos;
use tester::module::*;
use tester::stream::Rate;

use super::toy::Vice;
use super::{probes, rig, stage};

/// A module made of two closures.
struct Does<R, F>(ModuleRequirements, R, F);

impl<R: FnMut(&Event<'_>, &mut ModuleContext) + Send, F: FnMut() + Send> Module for Does<R, F> {
    fn needs(&self) -> ModuleRequirements {
        self.0.clone()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        (self.1)(event, context);
    }

    fn finish(&mut self, _: &Ended, _: &mut ModuleContext) {
        (self.2)();
    }
}

fn open_path(context: &mut ModuleContext) {
    let rule = FlowMod { cookie: 0x0a00_0000, ..FlowMod::default() };
    context.send(0, Message::FlowMod(rule));
}

#[test]
fn a_stream_changes_its_rate_stops_and_resumes_without_repeated_numbers() {
    let mut numbers: Vec<(u64, Nanos)> = Vec::new();
    let mut timers = Vec::new();
    let mut over = 0;
    let ms = Nanos::from_millis;
    let react = |event: &Event<'_>, context: &mut ModuleContext| match event.what {
        EventKind::Start(_) => {
            open_path(context);
            context.watch(1, FrameFilter::Streams(vec![5]));
            context.prepare(probes(5, 1, 1e4));
            timers = [1, 2, 3, 4].map(|at| context.timer_in(ms(at))).to_vec();
            let gone = context.timer_in(Nanos(1));
            assert!(context.cancel(gone));
        }
        EventKind::Timer(timer) => {
            assert_eq!(event.at, timer.due());
            match timers.iter().position(|it| *it == timer).unwrap() {
                0 => context.begin(5, SendSpan::OPEN),
                1 => context.change_rate(5, Rate::FramesPerSecond(1e5)),
                2 => context.stop(5),
                _ => context.begin(5, SendSpan::frames(7)),
            }
        }
        EventKind::Frame(arrival) => {
            let probe = arrival.probe.unwrap();
            numbers.push((probe.number, probe.sent_at));
        }
        EventKind::StreamEnded(5) => {
            over += 1;
            context.end();
        }
        _ => {}
    };
    let mut module = Does(ModuleRequirements::new(ms(50)), react, || {});
    let report = stage(&mut rig(Vice::None), &mut module);
    assert_eq!(report.ended, Ended::Completed);
    drop(module);
    // 1 ms at 10,000 frames per second, about 1 ms at ten times that, and seven more.
    let account = report.streams[0];
    assert_eq!((account.sent, account.arrived), (account.expected, account.sent));
    assert!((105..=120).contains(&account.sent), "{account:?}");
    // Frames after the end are counted without an event.
    assert!(numbers.len() as u64 + 1 >= account.sent && over == 1);
    assert!(numbers.iter().enumerate().all(|(place, (number, _))| place as u64 == *number));
    let gaps: Vec<u64> = numbers.windows(2).map(|two| two[1].1.since(two[0].1).0).collect();
    assert!(gaps.iter().all(|&gap| gap >= 10_000), "{gaps:?}");
}

#[test]
fn unwatched_frames_are_counted_and_packet_ins_identify_their_frame() {
    let mut reported = Vec::new();
    let mut frames = 0;
    let react = |event: &Event<'_>, context: &mut ModuleContext| match event.what {
        EventKind::Start(_) => {
            open_path(context);
            context.start(probes(1, 4, 1e5), SendSpan::frames(400));
        }
        EventKind::Frame(_) => frames += 1,
        EventKind::Message { message: Message::PacketIn(_), probe, .. } => {
            let probe = probe.unwrap();
            assert!(probe.is_intact && probe.stream == 1);
            reported.push(probe.place);
        }
        _ => {}
    };
    let mut rig = rig(Vice::None);
    rig.device.tells_misses = true;
    let mut module = Does(ModuleRequirements::new(Nanos::from_millis(10)), react, || {});
    let report = stage(&mut rig, &mut module);
    drop(module);
    let account = report.streams[0];
    assert_eq!((frames, account.sent, account.told), (0, 400, reported.len() as u64));
    assert_eq!((account.arrived + account.told, account.only_told), (400, account.told));
    // Only the first address matches a rule.
    assert!([1, 2, 3].iter().all(|place| reported.iter().filter(|it| *it == place).count() == 100));
}

#[test]
fn connections_are_opened_by_number_closed_and_reopened() {
    let mut ups = Vec::new();
    let mut needs = ModuleRequirements::new(Nanos::from_millis(10));
    needs.connections = vec![Connection::new(0), Connection { opens: false, ..Connection::new(0) }];
    needs.connections[1].requests_features = false;
    let mut unsent = 0;
    let react = |event: &Event<'_>, context: &mut ModuleContext| match event.what {
        EventKind::Start(facts) => {
            assert!(facts.version(0).is_some() && facts.version(1).is_none());
            context.send(1, Message::BarrierRequest);
            context.connect(1);
        }
        EventKind::SendFailed { connection: 1, why: SendError::NotUp, .. } => unsent += 1,
        EventKind::Connected { connection, facts } => {
            ups.push(connection);
            assert!(facts.version.is_some() && facts.features.is_none());
            context.send(connection, Message::BarrierRequest);
        }
        EventKind::Message { connection, message: Message::BarrierReply, .. } => {
            context.disconnect(connection);
            match ups.len() {
                3 => context.end(),
                _ => context.connect(connection),
            }
        }
        EventKind::Disconnected { .. } => panic!("a module ended it itself"),
        _ => {}
    };
    let mut module = Does(needs, react, || {});
    let report = stage(&mut rig(Vice::None), &mut module);
    drop(module);
    assert_eq!((report.ended, ups, unsent), (Ended::Completed, vec![1, 1, 1], 1));
    let counts: Vec<_> = report.connections.iter().map(|it| (it.ups, it.losses)).collect();
    assert_eq!(counts, [(1, 0), (3, 0)]);
}

#[test]
fn frames_built_by_a_module_are_identified() {
    let mut made = Vec::new();
    let react = |event: &Event<'_>, _: &mut ModuleContext| {
        if let EventKind::Start(facts) = event.what {
            let frames = facts.signer.frames(&probes(1, 4, 1.0));
            made = (0..3).map(|number| frames.frame(number, event.at)).collect();
        }
    };
    let mut module = Does(ModuleRequirements::new(Nanos::from_micros(1)), react, || {});
    stage(&mut rig(Vice::None), &mut module);
    drop(module);
    assert!(made.iter().all(|frame| frame.len() == 60));
    assert_eq!([made[0][33], made[1][33], made[2][33]], [0, 1, 2]);
}
