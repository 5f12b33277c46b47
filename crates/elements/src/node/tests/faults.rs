//! Tests of controllers that disconnect, do not read, or send invalid messages.

use std::os::unix::net::UnixListener;

use openflow::model::multipart::{
    FlowStatsRequest, MultipartReply, MultipartReplyBody, MultipartRequestBody,
};

use super::*;
use crate::agent::connection::BACKLOG_BYTES_MAX;
use crate::config::FailMode;
use crate::control::request::Resource;

#[test]
fn a_switch_in_secure_mode_keeps_its_flows_and_drops_misses() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.order(&Message::FlowMod(add(exact(0), 2)));
    rig.controllers.clear();
    rig.pass(Nanos::from_secs(60));
    rig.arrive(1, &udp(0, 60));
    rig.arrive(1, &udp(1, 60));
    assert_eq!((rig.left(2).len(), rig.left(3).len()), (1, 0));
    assert!(rig.log.contains(&"controller c0.1: closed the connection".to_string()));
    rig.connect(1 << 20);
    rig.arrive(1, &udp(1, 60));
    assert_eq!(rig.news(0).len(), 1, "a new controller receives packet-ins again");
}

#[test]
fn a_silent_controller_is_disconnected_after_two_echo_requests() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    rig.controllers[0].down = true;
    rig.pass(Nanos::from_secs(9));
    assert!(!rig.log.iter().any(|line| line.contains("echo")));
    rig.pass(Nanos::from_secs(2));
    assert!(rig.log.contains(&"controller c0.1: the peer sent no echo reply in time".to_string()));
}

#[test]
fn invalid_bytes_end_only_their_own_connection() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let hello = [1, 0, 0, 8, 0, 0, 0, 1];
    let huge = [1, 14, 0xff, 0xff, 0, 0, 0, 2];
    let zero = [1, 14, 0, 0, 0, 0, 0, 2];
    let attacks: [(&str, Vec<u8>); 6] = [
        ("GET / HTTP/1.1", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("another version", vec![9, 0, 0, 8, 0, 0, 0, 1]),
        ("version 1.3 without bitmap but low", vec![0, 0, 0, 8, 0, 0, 0, 1]),
        ("half a hello", hello[..5].to_vec()),
        ("a length of zero", [hello, zero].concat()),
        ("part of a huge message", [&hello[..], &huge, &[0; 100]].concat()),
    ];
    for (name, bytes) in attacks {
        let (ours, mut theirs) = channel::memory::pair(1 << 20, name);
        rig.node.adopt(Box::new(ours), rig.now);
        assert_eq!(theirs.transmit(&bytes).unwrap(), bytes.len());
        let lines = rig.log.len();
        rig.pass(Nanos::from_secs(21));
        let about: Vec<_> =
            rig.log[lines..].iter().filter(|line| line.contains(&format!("{name}.1: "))).collect();
        match name {
            // Sends hello, then an incomplete message. The connection ends when no echo reply
            // arrives.
            "part of a huge message" => assert_eq!(about.len(), 2, "{about:?}"),
            "a length of zero" => assert_eq!(about.len(), 2, "{about:?}"),
            // Version 9 is above that of the switch, so both sides use the switch's version.
            "another version" => assert_eq!(about.len(), 2, "{about:?}"),
            _ => assert_eq!(about.len(), 1, "{about:?}"),
        }
        let mut rest = [0; 65_536];
        while let Ok(count) = theirs.receive(&mut rest) {
            assert!(count > 0, "{name}: the connection is still open");
        }
    }
    assert_eq!(rig.ask(0, &Message::BarrierRequest), [Message::BarrierReply]);
}

#[test]
fn undecodable_messages_are_answered_and_logged_once() {
    let mut rig = Rig::connected(OpenFlowConfig::default());
    let (ours, mut theirs) = channel::memory::pair(1 << 20, "odd");
    rig.node.adopt(Box::new(ours), rig.now);
    let hello = [1, 0, 0, 8, 0, 0, 0, 1];
    let unknown = [1, 77, 0, 8, 0, 0, 0, 5];
    theirs.transmit(&[hello, unknown, unknown].concat()).unwrap();
    rig.settle();
    let mut answer = [0; 100];
    let count = theirs.receive(&mut answer).unwrap();
    // The switch's hello, then twice: bad request (1), bad type (1), and the message.
    let error = [1, 1, 0, 20, 0, 0, 0, 5, 0, 1, 0, 1, 1, 77, 0, 8, 0, 0, 0, 5];
    let hello_bytes = usize::from(answer[3]);
    assert_eq!(answer[hello_bytes..count], [error, error].concat());
    let lines = rig.log.iter().filter(|line| line.contains("invalid message"));
    assert_eq!(lines.count(), 1);
    theirs.transmit(&[1, 18, 0, 8, 0, 0, 0, 9]).unwrap();
    rig.settle();
    assert_eq!(theirs.receive(&mut answer).unwrap(), 8, "the connection stays open");
}

#[test]
fn a_controller_that_reads_a_long_reply_slowly_stays_connected() {
    let mut rig = Rig::new(OpenFlowConfig::default());
    rig.connect(4000);
    for flow in 0..600 {
        rig.send(0, &Message::FlowMod(add(exact(flow), 2)));
        rig.settle();
    }
    let all = FlowStatsRequest::default();
    rig.controllers[0].reads = false;
    rig.send(0, &Message::ask(MultipartRequestBody::Flow(all)));
    let rows = |rig: &Rig| -> usize {
        let parts = rig.controllers[0].replies.iter().filter_map(|(_, message)| match message {
            Message::MultipartReply(MultipartReply {
                body: MultipartReplyBody::Flow(rows),
                ..
            }) => Some(rows.len()),
            _ => None,
        });
        parts.sum()
    };
    // Reads one buffer every four seconds. The echo request waits behind the reply much longer than
    // the probe interval.
    let mut rounds = 0;
    while rows(&rig) < 600 && rounds < 100 {
        rig.pass(Nanos::from_secs(4));
        rig.controllers[0].reads = true;
        rig.step();
        rig.controllers[0].reads = false;
        rounds += 1;
    }
    assert_eq!(rows(&rig), 600, "after {rounds} rounds: {:?}", rig.log);
    assert!(rounds > 5 && !rig.controllers[0].down, "{rounds}: {:?}", rig.log);
    rig.pass(Nanos::from_secs(11));
    assert!(
        rig.log.iter().any(|line| line.contains("echo")),
        "a controller that stops reading is disconnected"
    );
}

#[test]
fn a_controller_that_does_not_read_costs_bounded_memory() {
    let mut rig = Rig::new(OpenFlowConfig { miss_send_len: 1500, ..OpenFlowConfig::default() });
    rig.connect(1000);
    rig.connect(1 << 24);
    rig.controllers[0].reads = false;
    for flow in 0..2_000 {
        let mut batch = Batch::new(1);
        batch.push_bytes(&udp(flow, 1500));
        rig.wires[0].as_mut().unwrap().transmit(&mut batch, rig.now).unwrap();
        rig.step();
    }
    rig.settle();
    assert_eq!(rig.news(1).len(), 2_000, "the controller that reads misses nothing");
    let counters =
        rig.node.answer(crate::control::Request::Get(Resource::Counters), rig.now).unwrap();
    let count = |name: &str| counters["controllers"][name].as_u64().unwrap();
    let lost = count("news_lost") as usize;
    assert_eq!((count("frames"), count("frames_unheard")), (2_000, 0));
    assert_eq!(count("frames_lost"), 0, "another controller received them");
    assert_eq!(count("frames_not_kept"), 2_000 - 256);
    rig.controllers[0].reads = true;
    while {
        let before = rig.controllers[0].news.len();
        rig.settle();
        rig.controllers[0].news.len() > before
    } {}
    assert_eq!(rig.controllers[0].news.len() + lost, 2_000, "every loss is counted");
    let bytes = rig.controllers[0].news.len() * 1518;
    assert!(bytes > BACKLOG_BYTES_MAX - 10_000 && bytes < BACKLOG_BYTES_MAX + 10_000, "{bytes}");
}

#[test]
fn a_frame_that_no_controller_receives_is_counted_once_however_many_there_are() {
    let mut rig = Rig::new(OpenFlowConfig { miss_send_len: 1500, ..OpenFlowConfig::default() });
    for at in 0..2 {
        rig.connect(1000);
        rig.controllers[at].reads = false;
    }
    for flow in 0..2_000 {
        let mut batch = Batch::new(1);
        batch.push_bytes(&udp(flow, 1500));
        rig.wires[0].as_mut().unwrap().transmit(&mut batch, rig.now).unwrap();
        rig.step();
    }
    let counters =
        rig.node.answer(crate::control::Request::Get(Resource::Counters), rig.now).unwrap();
    let count = |name: &str| counters["controllers"][name].as_u64().unwrap();
    assert!(count("frames_lost") > 0, "{counters}");
    assert_eq!(count("news_lost"), 2 * count("frames_lost"), "each controller missed each of them");
}

#[test]
fn connections_above_the_limit_are_rejected() {
    let mut rig = Rig::new(OpenFlowConfig::default());
    for _ in 0..OpenFlowConfig::default().limits.connections {
        rig.connect(1 << 16);
    }
    let (ours, mut theirs) = channel::memory::pair(1 << 16, "late");
    rig.node.adopt(Box::new(ours), rig.now);
    rig.settle();
    assert!(theirs.receive(&mut [0; 9]).is_err());
    assert!(rig.log.iter().any(|line| line.starts_with("controller late.1: rejected")));
}

#[test]
fn a_lost_controller_is_reconnected() {
    let folder = std::env::temp_dir().join(format!("switch-{}-redial", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let controllers = vec![format!("unix:{}", path.display())];
    let mut rig = Rig::new(OpenFlowConfig { controllers, ..OpenFlowConfig::default() });
    rig.pass(Nanos::from_secs(2));
    let unreachable = rig.log.iter().filter(|line| line.contains("retrying")).count();
    assert_eq!(unreachable, 1, "{:?}", rig.log);
    let socket = UnixListener::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    rig.pass(Nanos::from_secs(10));
    let (first, _) = socket.accept().expect("it connected");
    assert!(socket.accept().is_err(), "once");
    drop(first);
    rig.pass(Nanos::from_secs(10));
    assert!(socket.accept().is_ok(), "again after the second loss");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_switch_in_standalone_mode_becomes_a_learning_bridge() {
    let mut rig = Rig::connected(OpenFlowConfig {
        fail_mode: FailMode::Standalone,
        controllers: vec!["unix:/nonexistent/planimeter".to_string()],
        ..OpenFlowConfig::default()
    });
    rig.order(&Message::FlowMod(add(exact(5), 3)));
    rig.controllers.clear();
    rig.pass(Nanos::from_secs(4));
    assert!(!rig.log.iter().any(|line| line.contains("bridged")));
    rig.arrive(1, &udp(0, 60));
    assert_eq!([1, 2, 3].map(|port| rig.left(port).len()), [0, 0, 0]);
    rig.pass(Nanos::from_secs(2));
    assert!(rig.log.iter().any(|line| line.contains("bridged")));
    rig.arrive(1, &udp(0, 60));
    assert_eq!([1, 2, 3].map(|port| rig.left(port).len()), [0, 1, 1], "flooded");
    let mut back = udp(0, 60);
    back.swap(5, 11);
    rig.arrive(2, &back);
    assert_eq!([1, 2, 3].map(|port| rig.left(port).len()), [1, 0, 0], "learned");
    rig.arrive(1, &udp(5, 60));
    assert_eq!([1, 2, 3].map(|port| rig.left(port).len()), [0, 0, 1], "flows stay");
    rig.connect(1 << 20);
    rig.arrive(1, &udp(0, 60));
    assert_eq!(rig.left(2).len(), 0);
    assert_eq!(rig.news(0).len(), 1, "a new controller receives packet-ins again");
}

#[test]
fn management_connections_do_not_stop_standalone_bridging() {
    let folder = std::env::temp_dir().join(format!("switch-{}-manage", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let mut rig = Rig::new(OpenFlowConfig {
        fail_mode: FailMode::Standalone,
        listen: vec![format!("punix:{}", path.display())],
        ..OpenFlowConfig::default()
    });
    let bridges = |rig: &mut Rig| {
        rig.settle();
        rig.arrive(1, &udp(0, 60));
        [1, 2, 3].map(|port| rig.left(port).len()) == [0, 1, 1]
    };
    assert!(bridges(&mut rig), "immediately, as no controller is configured");
    rig.dial(&path);
    assert!(rig.controllers[0].news.is_empty());
    assert!(bridges(&mut rig), "while a management connection is up");
    let flows = rig.ask(0, &Message::ask(MultipartRequestBody::Desc));
    assert_eq!(flows.len(), 1, "which is answered");
    rig.controllers.clear();
    assert!(bridges(&mut rig), "after it disconnected");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A pseudorandom generator that is the same on every machine (Marsaglia's xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn mutated_messages_never_break_the_switch() {
    let mut rig = Rig::connected(OpenFlowConfig { buffers: 4, ..OpenFlowConfig::default() });
    let requests = [
        Message::FlowMod(FlowMod { buffer_id: Some(0), ..add(exact(0), 2) }),
        Message::FlowMod(FlowMod { idle_timeout_s: 1, ..add(from_port(1), 3) }),
        Message::PacketOut(model::PacketOut {
            buffer_id: None,
            in_port: 1,
            actions: vec![Action::SetVlanVid(3), Action::output(2), Action::output(3)],
            data: udp(0, 80),
            ..model::PacketOut::default()
        }),
        Message::PortMod(model::PortMod::default()),
        Message::SetConfig(model::SwitchConfig::default()),
        Message::ask(model::MultipartRequestBody::Flow(Default::default())),
        Message::ask(model::MultipartRequestBody::Port(1)),
        Message::QueueGetConfigRequest(1),
        Message::FeaturesRequest,
        Message::BarrierRequest,
    ];
    let seed = 0x1234_5678_9abc_def1;
    let mut dice = Dice(seed);
    for round in 0..3_000 {
        let mut bytes = vec![1, 0, 0, 8, 0, 0, 0, 1];
        for _ in 0..4 {
            let request = &requests[dice.below(requests.len())];
            openflow::codec::encode(openflow::version::Version::V1_0, 7, request, &mut bytes)
                .unwrap();
        }
        for _ in 0..dice.below(6) {
            // The first hello stays valid, so that most of the other bytes are processed.
            let at = 8 + dice.below(bytes.len() - 8);
            bytes[at] = dice.below(256) as u8;
        }
        bytes.truncate(bytes.len() - dice.below(3) * dice.below(20));
        let (ours, mut theirs) = channel::memory::pair(1 << 16, "fuzz");
        rig.node.adopt(Box::new(ours), rig.now);
        theirs.transmit(&bytes).unwrap();
        rig.settle_quickly();
        drop(theirs);
        rig.now += Nanos::from_millis(10);
        rig.settle_quickly();
        rig.log.clear();
        rig.news(0);
        for port in 1..=3 {
            rig.left(port);
        }
        if round % 500 == 0 {
            let alive = rig.ask(0, &Message::BarrierRequest);
            assert_eq!(alive, [Message::BarrierReply], "round {round} of seed {seed:#x}");
        }
    }
    let counters =
        rig.node.answer(crate::control::Request::Get(Resource::Counters), rig.now).unwrap();
    assert_eq!(counters["controllers"]["connected"], 1);
    assert!(counters["controllers"]["messages_refused"].as_u64().unwrap() > 100);
}
