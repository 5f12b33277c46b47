//! Tests with valid and invalid peers, over a channel in memory and in virtual time.

use channel::ChannelError;
use channel::memory::{MemoryChannel, pair};
use openflow::model::flow::{FlowMod, FlowModCommand};
use openflow::model::multipart::{MultipartReply, MultipartRequest};
use openflow::version::ErrorCode;

use os::clock;

use super::*;

/// The peer as a function, and a clock that advances while the controller waits.
struct World<F> {
    now: Nanos,
    rests: u32,
    peer: F,
}

impl<F: FnMut(Nanos)> WaitHook for World<F> {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn rest(&mut self, _: Option<RawFd>, _: bool, deadline: Nanos) {
        self.rests += 1;
        assert!(self.rests < 1_000_000, "the controller waits without end");
        (self.peer)(self.now);
        self.now = deadline.min(self.now + Nanos::from_micros(100)).max(self.now);
    }
}

fn world<F: FnMut(Nanos)>(peer: F) -> World<F> {
    World { now: Nanos::from_secs(1), rests: 0, peer }
}

fn channel() -> (Box<dyn Channel>, MemoryChannel) {
    let (near, far) = pair(1 << 16, "switch");
    (Box::new(near), far)
}

/// Returns the controller's error for a peer that sends these bytes and then nothing.
fn answer_to(bytes: &[u8]) -> Option<ControlError> {
    let (near, mut far) = channel();
    let mut rest = bytes.to_vec();
    let mut turns = 0;
    let mut world = world(|_| {
        // First the hello, then the rest after the controller's request.
        turns += 1;
        let ready = if turns < 3 { rest.len().min(8) } else { rest.len() };
        if turns != 2 {
            let count = far.transmit(&rest[..ready]).unwrap_or(0);
            rest.drain(..count);
        }
    });
    Controller::start(near, Settings::new(), &mut world).err()
}

const HELLO: [u8; 8] = [1, 0, 0, 8, 0, 0, 0, 1];

#[test]
fn invalid_peers_end_with_a_one_line_error() {
    let error_for = |bytes: &[u8]| {
        let error = answer_to(bytes).expect("no switch").to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let message = error_for(&[]);
    assert!(message.contains("no hello in time"), "{message}");
    let message = error_for(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(message.contains("0x48 0x54 instead of a hello"), "{message}");
    let message = error_for(&[0, 0, 0, 8, 0, 0, 0, 1]);
    assert!(message.contains("no version in common"), "{message}");
    // A switch that supports only 1.3: one that rejects the hello, and one that ignores it.
    let hello4 = [4, 0, 0, 8, 0, 0, 0, 1];
    let message =
        error_for(&[&hello4[..], &[4, 1, 0, 14, 0, 0, 0, 1, 0, 0, 0, 0, b'n', b'o']].concat());
    assert!(
        message.contains("the peer rejected the session") && message.contains("no"),
        "{message}"
    );
    let message = error_for(&[hello4, [4, 2, 0, 8, 0, 0, 0, 1]].concat());
    assert!(message.contains("invalid message"), "{message}");
    let message = error_for(&[HELLO, [1, 6, 0, 32, 0, 0, 0, 2]].concat());
    assert!(message.contains("no reply to a features_request"), "{message}");
    let message = error_for(&[HELLO, [1, 2, 0, 4, 0, 0, 0, 9]].concat());
    assert!(message.contains("invalid message length"), "{message}");
    let message = error_for(&[HELLO, [1, 99, 0, 8, 0, 0, 0, 9]].concat());
    assert!(message.contains("invalid message"), "{message}");
    let message = error_for(&[HELLO, [1, 6, 0, 8, 0, 0, 0, 2]].concat());
    assert!(message.contains("invalid message"), "{message}");
    let message = error_for(&[&HELLO[..], &[1, 1, 0, 12, 0, 0, 0, 2, 0, 1, 0, 5]].concat());
    assert!(message.contains("the switch rejected a features_request"), "{message}");
}

#[test]
fn a_peer_that_closes_the_connection_is_named() {
    let (near, far) = channel();
    let mut far = Some(far);
    let mut world = world(|_| drop(far.take()));
    let error = Controller::start(near, Settings::new(), &mut world).err().expect("no peer sends");
    assert_eq!(error.to_string(), "switch.1 closed the connection");
}

#[test]
fn random_bytes_never_panic_and_always_end() {
    let mut refused = 0;
    for seed in 0..300u64 {
        let mut bytes = HELLO.to_vec();
        for place in 0..200 {
            let random = crate::mix::mix(seed << 16 | place);
            // Valid headers in some places.
            let header = [1, random as u8 % 22, 0, 8 + (random >> 8) as u8 % 60, 0, 0, 0, 2];
            bytes.extend(if random >> 62 == 0 { random.to_be_bytes() } else { header });
        }
        refused += answer_to(&bytes).is_some() as u32;
    }
    // Some random inputs contain a valid features reply.
    assert!(refused > 250, "{refused}");
}

/// A minimal switch for these tests: it stores flows and rejects every seventh.
struct ToySwitch {
    channel: Box<dyn Channel>,
    session: Session,
    flows: Vec<FlowMod>,
    seen: u64,
    unanswered_max: usize,
    since_barrier: usize,
    is_silent: bool,
    /// Whether it replies to a flow statistics request with empty parts forever.
    is_endless: bool,
    endless: Option<Xid>,
}

impl ToySwitch {
    fn new(channel: Box<dyn Channel>) -> Self {
        let session = Session::new(session::Settings::new(End::Switch), Nanos::ZERO);
        let flows = Vec::new();
        ToySwitch {
            channel,
            session,
            flows,
            seen: 0,
            unanswered_max: 0,
            since_barrier: 0,
            is_silent: false,
            is_endless: false,
            endless: None,
        }
    }

    fn step(&mut self, now: Nanos) {
        self.try_step(now).unwrap();
    }

    fn try_step(&mut self, now: Nanos) -> Result<(), ChannelError> {
        let mut bytes = [0; 4096];
        let count = self.channel.receive(&mut bytes)?;
        assert_eq!(self.session.receive(&bytes[..count], now), count);
        while let Some(event) = self.session.poll_event() {
            if let Event::Message { xid, message, .. } = event
                && !self.is_silent
            {
                self.answer(xid, message);
            }
        }
        if let Some(xid) = self.endless {
            let body = MultipartReplyBody::Flow(vec![]);
            let part = Message::MultipartReply(MultipartReply { more: true, body });
            while self.session.transmit().len() < 60_000 {
                self.session.answer(xid, &part).unwrap();
            }
        }
        let count = self.channel.transmit(self.session.transmit())?;
        self.session.transmitted(count);
        Ok(())
    }

    fn answer(&mut self, xid: Xid, message: Message) {
        let reply = match message {
            Message::FeaturesRequest => {
                Message::FeaturesReply(Features { datapath_id: 0xabc, ..Features::default() })
            }
            Message::BarrierRequest => {
                self.since_barrier = 0;
                Message::BarrierReply
            }
            Message::FlowMod(FlowMod { command: FlowModCommand::Delete, .. }) => {
                return self.flows.clear();
            }
            Message::FlowMod(flow) => {
                self.since_barrier += 1;
                self.unanswered_max = self.unanswered_max.max(self.since_barrier);
                self.seen += 1;
                if !self.seen.is_multiple_of(7) {
                    return self.flows.push(flow);
                }
                Message::error(ErrorCode::FlowModTableFull, &[1, 14, 0, 72, 0, 0, 0, 1])
            }
            Message::MultipartRequest(_) if self.is_endless => {
                return self.endless = Some(xid);
            }
            Message::MultipartRequest(MultipartRequest {
                body: MultipartRequestBody::Flow(_),
                ..
            }) => {
                let rows = |flows: &[FlowMod]| {
                    let row = |flow: &FlowMod| FlowStats {
                        matching: flow.matching.clone(),
                        cookie: flow.cookie,
                        ..FlowStats::default()
                    };
                    MultipartReplyBody::Flow(flows.iter().map(row).collect())
                };
                for part in self.flows.chunks(100) {
                    let reply = MultipartReply { more: true, body: rows(part) };
                    self.session.answer(xid, &Message::MultipartReply(reply)).unwrap();
                }
                Message::MultipartReply(MultipartReply { more: false, body: rows(&[]) })
            }
            Message::MultipartRequest(_) => {
                Message::error(ErrorCode::RequestBadMultipart, &[1, 16, 0, 12, 0, 0, 0, 1])
            }
            _ => return,
        };
        self.session.answer(xid, &reply).unwrap();
    }
}

fn flow(cookie: u64) -> FlowMod {
    FlowMod { cookie, ..FlowMod::default() }
}

#[test]
fn flows_are_installed_with_barriers_and_errors_are_assigned() {
    let (near, far) = channel();
    let mut switch = ToySwitch::new(Box::new(far));
    let mut settings = Settings::new();
    settings.batch_flows = 50;
    let mut world = world(|now| switch.step(now));
    let mut controller = Controller::start(near, settings, &mut world).unwrap();
    assert_eq!(controller.features().datapath_id, 0xabc);
    let installed = controller.install((0..1234).map(flow), &mut world).unwrap();
    assert_eq!(installed.flows, 1234);
    let refused: Vec<u64> = installed.refused.iter().map(|&(place, _)| place).collect();
    assert_eq!(refused, (0..1234).filter(|place| place % 7 == 6).collect::<Vec<_>>());
    assert_eq!(installed.refused[0].1.code, ErrorCode::FlowModTableFull);
    assert!(installed.duration > Nanos::ZERO);
    let stats = controller.flow_stats(FlowStatsRequest::default(), &mut world).unwrap();
    assert_eq!(stats.len(), 1234 - refused.len());
    assert!(controller.barrier(&mut world).unwrap() > Nanos::ZERO);
    controller.delete_all(&mut world).unwrap();
    assert_eq!(controller.flow_stats(FlowStatsRequest::default(), &mut world).unwrap(), []);
    assert_eq!(controller.take_unasked(), UnsolicitedMessages::default());
    let error = controller.ask(&Message::ask(MultipartRequestBody::Table), &mut world).unwrap_err();
    assert!(matches!(error, ControlError::Refused(MessageKind::MultipartRequest, _)), "{error}");
    assert_eq!(switch.unanswered_max, 50);
}

#[test]
fn a_silent_switch_times_out() {
    let (near, far) = channel();
    let mut switch = ToySwitch::new(Box::new(far));
    let mut world = world(|now| {
        switch.step(now);
        switch.is_silent = switch.seen > 600;
    });
    let mut controller = Controller::start(near, Settings::new(), &mut world).unwrap();
    let begun = world.now;
    let error = controller.install((0..100_000).map(flow), &mut world).unwrap_err();
    assert!(matches!(error, ControlError::Silent(_, MessageKind::BarrierRequest)), "{error}");
    let took = world.now.since(begun);
    assert!(took >= Nanos::from_secs(5) && took < Nanos::from_secs(6), "{took}");
}

#[test]
fn an_endless_statistics_reply_is_aborted() {
    let (near, far) = channel();
    let mut switch = ToySwitch::new(Box::new(far));
    switch.is_endless = true;
    let mut world = world(|now| switch.step(now));
    let mut settings = Settings::new();
    // A long timeout, so that only the limit can end it.
    settings.reply_timeout = Nanos::from_secs(1_000_000);
    settings.session.echo_idle = None;
    let mut controller = Controller::start(near, settings, &mut world).unwrap();
    let error = controller.flow_stats(FlowStatsRequest::default(), &mut world).unwrap_err();
    assert!(matches!(error, ControlError::LimitReached("ROWS_MAX")), "{error}");
}

#[test]
fn over_a_socket_either_end_can_connect() {
    let url: Url = "ptcp:0:127.0.0.1".parse().unwrap();
    for switch_connects in [false, true] {
        let mut listener = Listener::open(&url).unwrap();
        let there = listener.address_to_connect();
        let serve = |channel| {
            let mut switch = ToySwitch::new(channel);
            while switch.try_step(clock::now()).is_ok() {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let mut controller = if switch_connects {
                let patience = Nanos::from_secs(5);
                scope.spawn(move || serve(Connecting::wait(&there, patience).unwrap()));
                Controller::accept(&mut listener, Settings::new()).unwrap()
            } else {
                let give_up = clock::now().saturating_add(Nanos::from_secs(30));
                let listener = &mut listener;
                scope.spawn(move || {
                    while clock::now() < give_up {
                        if let Some(channel) = listener.accept().unwrap() {
                            return serve(channel);
                        }
                        std::thread::yield_now();
                    }
                });
                Controller::connect(&there, Settings::new()).unwrap()
            };
            let installed =
                controller.install((0..3000).map(flow), &mut RealTime::default()).unwrap();
            assert_eq!((installed.flows, installed.refused.len()), (3000, 3000 / 7));
            let stats = controller
                .flow_stats(FlowStatsRequest::default(), &mut RealTime::default())
                .unwrap();
            assert_eq!(stats.len(), 3000 - 3000 / 7);
        });
    }
}

#[test]
fn errors_name_the_address_without_a_peer() {
    let url: Url = "ptcp:0:127.0.0.1".parse().unwrap();
    let mut listener = Listener::open(&url).unwrap();
    let settings = Settings { connect_timeout: Nanos::from_millis(5), ..Settings::new() };
    let error = Controller::accept(&mut listener, settings).err().expect("no peer connects");
    assert!(error.to_string().starts_with("no switch connected to ptcp:"), "{error}");
    let there = listener.address_to_connect();
    drop(listener);
    let error = Controller::connect(&there, Settings::new()).err().expect("no peer listens");
    assert!(error.to_string().starts_with("cannot connect to tcp:127.0.0.1:"), "{error}");
}
