//! Tests of two sessions with each other, and of one session with invalid input.

use super::*;
use crate::model::flow::FlowMod;
use crate::model::multipart::{MultipartReply, MultipartReplyBody, MultipartRequestBody};

fn seconds(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn messages(session: &mut Session) -> Vec<(Xid, Message)> {
    let message = |event| match event {
        Event::Message { xid, message, .. } => Some((xid, message)),
        _ => None,
    };
    events(session).into_iter().filter_map(message).collect()
}

/// Takes the bytes that the session wants to transmit, and decodes them.
fn sent(session: &mut Session) -> Vec<(Header, Message)> {
    let mut rest = session.transmit();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (header, message) = codec::decode(rest).unwrap();
        rest = &rest[usize::from(header.length)..];
        all.push((header, message));
    }
    session.transmitted(session.transmit().len());
    all
}

/// Returns settings of an end that supports 1.0 only.
fn settings(end: End) -> Settings {
    Settings { versions: vec![Version::V1_0], ..Settings::new(end) }
}

/// Transfers bytes in both directions until neither end has more to transmit.
fn exchange(a: &mut Session, b: &mut Session, now: Nanos) -> (Vec<Event>, Vec<Event>) {
    let (mut at_a, mut at_b) = (Vec::new(), Vec::new());
    while !(a.transmit().is_empty() && b.transmit().is_empty()) {
        let count = b.receive(a.transmit(), now);
        a.transmitted(count);
        at_b.extend(events(b));
        let count = a.receive(b.transmit(), now);
        b.transmitted(count);
        at_a.extend(events(a));
    }
    (at_a, at_b)
}

fn pair() -> (Session, Session) {
    let mut controller = Session::new(settings(End::Controller), Nanos::ZERO);
    let mut switch = Session::new(settings(End::Switch), Nanos::ZERO);
    let (at_controller, at_switch) = exchange(&mut controller, &mut switch, Nanos::ZERO);
    let up = vec![Event::Up { version: Version::V1_0 }];
    assert_eq!((at_controller, at_switch), (up.clone(), up));
    (controller, switch)
}

fn encoded(version: Version, xid: Xid, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(version, xid, message, &mut bytes).unwrap();
    bytes
}

/// Returns a session that received these first bytes, with its events.
fn greeted_by(end: End, bytes: &[u8]) -> (Session, Vec<Event>) {
    let mut session = Session::new(settings(end), Nanos::ZERO);
    let hello = sent(&mut session);
    assert_eq!((hello[0].0.version, &hello[0].1), (1, &Message::Hello(Hello::default())));
    assert_eq!(session.receive(bytes, seconds(1)), bytes.len());
    let events = events(&mut session);
    (session, events)
}

#[test]
fn a_hello_of_a_later_version_with_a_bitmap_negotiates_1_0() {
    let hello = [4, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 8, 0, 0, 0, 0x12];
    let (session, events) = greeted_by(End::Switch, &hello);
    assert_eq!(events, [Event::Up { version: Version::V1_0 }]);
    assert_eq!(session.version(), Some(Version::V1_0));
}

#[test]
fn a_hello_of_a_future_version_negotiates_1_0() {
    let (session, events) = greeted_by(End::Switch, &[0x80, 0, 0, 8, 0, 0, 0, 9]);
    assert_eq!(events, [Event::Up { version: Version::V1_0 }]);
    assert_eq!(session.version(), Some(Version::V1_0));
}

#[test]
fn a_peer_without_a_common_version_receives_an_error() {
    let (mut session, events) = greeted_by(End::Controller, &[0, 0, 0, 8, 0, 0, 0, 9]);
    let why = DownReason::NoCommonVersion { theirs: 0 };
    assert_eq!(events, [Event::Down { why }]);
    let replies = sent(&mut session);
    let Message::Error(error) = &replies[0].1 else { panic!("{replies:?}") };
    assert_eq!(error.code, ErrorCode::HelloIncompatible);
    assert_eq!(error.data, b"supported: OpenFlow 1.0");
}

#[test]
fn another_first_message_ends_the_session() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[1, 14, 0xff, 0xff], &[0, 2]] {
        let (mut session, events) = greeted_by(End::Switch, bytes);
        let why = DownReason::NoHello { version: bytes[0], kind: bytes[1] };
        assert_eq!(events, [Event::Down { why }]);
        let replies = sent(&mut session);
        let Message::Error(error) = &replies[0].1 else { panic!("{replies:?}") };
        assert_eq!(error.code, ErrorCode::HelloIncompatible);
        assert!(!error.data.is_empty());
        assert_eq!(session.receive(&[7; 100_000], seconds(2)), 100_000);
        assert_eq!((session.poll_event(), session.next_timeout()), (None, None));
    }
}

#[test]
fn an_error_from_the_peer_ends_the_negotiation() {
    let error = ErrorMessage { code: ErrorCode::HelloIncompatible, data: b"only 1.5".to_vec() };
    let bytes = encoded(Version::V1_5, 1, &Message::Error(error.clone()));
    let (_, events) = greeted_by(End::Switch, &bytes);
    assert_eq!(events, [Event::Down { why: DownReason::RefusedByPeer(error) }]);
}

#[test]
fn a_peer_may_reject_the_version_after_negotiation() {
    let (_, mut switch) = pair();
    let error = ErrorMessage { code: ErrorCode::HelloIncompatible, data: b"only 1.3".to_vec() };
    let bytes = encoded(Version::V1_3, 1, &Message::Error(error.clone()));
    assert_eq!(switch.receive(&bytes, seconds(1)), bytes.len());
    assert_eq!(events(&mut switch), [Event::Down { why: DownReason::RefusedByPeer(error) }]);
}

#[test]
fn an_incomplete_hello_times_out() {
    let (mut session, events_before) = greeted_by(End::Switch, &[1, 0, 0, 8, 0]);
    assert_eq!((events_before, session.next_timeout()), (vec![], Some(seconds(10))));
    session.tick(seconds(9));
    assert_eq!(session.poll_event(), None);
    session.tick(seconds(10));
    assert_eq!(events(&mut session), [Event::Down { why: DownReason::HelloTimeout }]);
    assert_eq!(session.send(&Message::BarrierRequest, seconds(10)), Err(SendError::NotUp));
}

#[test]
fn replies_are_assigned_to_requests_in_any_order() {
    let (mut controller, mut switch) = pair();
    let barrier = controller.send(&Message::BarrierRequest, seconds(1)).unwrap();
    let features = controller.send(&Message::FeaturesRequest, seconds(2)).unwrap();
    let flow = controller.send(&Message::FlowMod(FlowMod::default()), seconds(2)).unwrap();
    assert_eq!(controller.pending(), 2);
    let (_, at_switch) = exchange(&mut controller, &mut switch, seconds(3));
    assert_eq!(at_switch.len(), 3);
    switch.answer(features, &Message::FeaturesReply(Default::default())).unwrap();
    switch.answer(flow, &Message::error(ErrorCode::FlowModTableFull, b"flow")).unwrap();
    switch.answer(barrier, &Message::BarrierReply).unwrap();
    let (at_controller, _) = exchange(&mut controller, &mut switch, seconds(4));
    let answers: Vec<_> = at_controller
        .iter()
        .map(|event| match event {
            Event::Message { xid, answers, at, .. } => (*xid, *answers, *at),
            other => panic!("{other:?}"),
        })
        .collect();
    let answered = |kind, n| Some(AnsweredRequest { kind, sent_at: seconds(n), last: true });
    assert_eq!(
        answers,
        [
            (features, answered(MessageKind::FeaturesRequest, 2), seconds(4)),
            (flow, None, seconds(4)),
            (barrier, answered(MessageKind::BarrierRequest, 1), seconds(4)),
        ]
    );
    assert_eq!(controller.pending(), 0);
}

#[test]
fn a_multipart_reply_completes_with_its_last_part() {
    let (mut controller, mut switch) = pair();
    let request = Message::ask(MultipartRequestBody::Table);
    let xid = controller.send(&request, seconds(1)).unwrap();
    for more in [true, true, false] {
        let body = MultipartReplyBody::Table(Vec::new());
        let part = Message::MultipartReply(MultipartReply { more, body });
        switch.answer(xid, &part).unwrap();
        let (at_controller, _) = exchange(&mut controller, &mut switch, seconds(2));
        let Event::Message { answers: Some(answers), .. } = at_controller[0] else { panic!() };
        assert_eq!((answers.last, controller.pending()), (!more, usize::from(more)));
    }
}

#[test]
fn an_error_completes_the_request_that_it_refers_to() {
    let (mut controller, mut switch) = pair();
    let xid = controller.send(&Message::BarrierRequest, seconds(1)).unwrap();
    switch.answer(xid, &Message::error(ErrorCode::RequestBadType, b"")).unwrap();
    let (at_controller, _) = exchange(&mut controller, &mut switch, seconds(2));
    assert!(matches!(at_controller[0], Event::Message { answers: Some(_), .. }));
    assert_eq!(controller.pending(), 0);
}

#[test]
fn an_idle_session_sends_an_echo_request_and_then_times_out() {
    let (mut controller, mut switch) = pair();
    assert_eq!(controller.next_timeout(), Some(seconds(5)));
    controller.tick(seconds(5));
    assert_eq!(controller.next_timeout(), Some(seconds(10)));
    assert_eq!(exchange(&mut controller, &mut switch, seconds(6)), (vec![], vec![]));
    assert_eq!((controller.next_timeout(), controller.pending()), (Some(seconds(11)), 0));
    controller.tick(seconds(11));
    assert!(matches!(sent(&mut controller)[..], [(_, Message::EchoRequest(_))]));
    controller.tick(seconds(15));
    assert_eq!(controller.poll_event(), None);
    controller.tick(seconds(16));
    assert_eq!(events(&mut controller), [Event::Down { why: DownReason::EchoTimeout }]);
}

#[test]
fn echo_replies_return_the_bytes_of_the_request() {
    let (_, mut switch) = pair();
    let bytes = encoded(Version::V1_0, 77, &Message::EchoRequest(vec![1, 2, 3]));
    assert_eq!(switch.receive(&bytes, seconds(1)), bytes.len());
    assert_eq!(switch.poll_event(), None);
    let answers = sent(&mut switch);
    assert_eq!((answers[0].0.xid, &answers[0].1), (77, &Message::EchoReply(vec![1, 2, 3])));
}

#[test]
fn an_echo_of_the_caller_is_passed_on_with_its_round_trip_time() {
    let (mut controller, mut switch) = pair();
    let xid = controller.send(&Message::EchoRequest(vec![9]), seconds(1)).unwrap();
    let (at_controller, _) = exchange(&mut controller, &mut switch, seconds(2));
    let Event::Message { xid: got, answers: Some(answers), .. } = at_controller[0] else {
        panic!()
    };
    assert_eq!((got, answers.sent_at), (xid, seconds(1)));
}

#[test]
fn a_switch_rejects_undecodable_messages_and_continues() {
    let (_, mut switch) = pair();
    let unknown_type = [1, 99, 0, 8, 0, 0, 0, 5];
    let other_version = [4, 14, 0, 8, 0, 0, 0, 6];
    let misdirected = encoded(Version::V1_0, 7, &Message::BarrierReply);
    let good = encoded(Version::V1_0, 8, &Message::BarrierRequest);
    let bytes = [&unknown_type[..], &other_version, &misdirected, &good].concat();
    assert_eq!(switch.receive(&bytes, seconds(1)), bytes.len());
    let all = events(&mut switch);
    assert!(matches!(all[..3], [Event::Refused(_), Event::Refused(_), Event::Refused(_)]));
    assert!(matches!(all[3], Event::Message { message: Message::BarrierRequest, .. }));
    let answers: Vec<_> = sent(&mut switch)
        .into_iter()
        .map(|(header, message)| match message {
            Message::Error(error) => (header.xid, error.code, error.data),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(
        answers,
        [
            (5, ErrorCode::RequestBadType, unknown_type.to_vec()),
            (6, ErrorCode::RequestBadVersion, other_version.to_vec()),
            (7, ErrorCode::RequestBadType, misdirected),
        ]
    );
}

#[test]
fn a_controller_reports_undecodable_messages_and_sends_nothing() {
    let (mut controller, _) = pair();
    assert_eq!(controller.receive(&[1, 99, 0, 8, 0, 0, 0, 5], seconds(1)), 8);
    assert!(matches!(events(&mut controller)[..], [Event::Refused(_)]));
    assert!(controller.transmit().is_empty());
}

#[test]
fn an_invalid_length_ends_the_session_with_an_error() {
    let (_, mut switch) = pair();
    assert_eq!(switch.receive(&[1, 2, 0, 3, 0, 0, 0, 0, 0], seconds(1)), 9);
    let why = DownReason::Malformed(Malformed { at: 2, why: MalformedReason::BadLength(3) });
    assert_eq!(events(&mut switch), [Event::Down { why }]);
    let replies = sent(&mut switch);
    let Message::Error(error) = &replies[0].1 else { panic!("{replies:?}") };
    assert_eq!(error.code, ErrorCode::RequestBadLength);
    assert_eq!(error.data, [1, 2, 0, 3, 0, 0, 0, 0, 0]);
}

#[test]
fn a_peer_that_never_reads_is_eventually_not_read() {
    let (_, mut switch) = pair();
    let echo = encoded(Version::V1_0, 1, &Message::EchoRequest(vec![0; 60_000]));
    let (mut now, mut taken) = (seconds(1), 0);
    for _ in 0..10_000 {
        taken += switch.receive(&echo, now);
        assert!(events(&mut switch).is_empty());
        now += Nanos(1);
    }
    let limit = switch.settings.transmit_bytes_max + ANSWER_BYTES_MAX + MESSAGE_BYTES_MAX;
    assert!(switch.transmit().len() <= limit);
    assert!(taken <= limit + crate::frame::BUFFER_BYTES_MAX + MESSAGE_BYTES_MAX);
    let refused = switch.answer(0, &Message::BarrierReply);
    assert!(matches!(refused, Err(SendError::TransmitFull { .. })));
    switch.tick(now + seconds(5));
    switch.tick(now + seconds(10));
    assert_eq!(events(&mut switch), [Event::Down { why: DownReason::EchoTimeout }]);
}

#[test]
fn pending_requests_are_limited() {
    let mut settings = settings(End::Controller);
    settings.pending_max = 2;
    let mut controller = Session::new(settings, Nanos::ZERO);
    assert_eq!(controller.receive(&[1, 0, 0, 8, 0, 0, 0, 0], Nanos::ZERO), 8);
    assert_eq!(events(&mut controller).len(), 1);
    for _ in 0..2 {
        controller.send(&Message::BarrierRequest, seconds(1)).unwrap();
    }
    let third = controller.send(&Message::BarrierRequest, seconds(1));
    assert_eq!(third, Err(SendError::PendingFull { requests: 2 }));
    controller.send(&Message::FlowMod(FlowMod::default()), seconds(1)).unwrap();
    controller.tick(seconds(6));
    assert_eq!(sent(&mut controller).len(), 5);
}

#[test]
fn unencodable_messages_leave_no_bytes_behind() {
    let (mut controller, _) = pair();
    let change = FlowMod { out_port: 70_000, ..FlowMod::default() };
    let refused = controller.send(&Message::FlowMod(change), seconds(1));
    assert!(matches!(refused, Err(SendError::NotExpressible(_))));
    assert!(controller.transmit().is_empty());
    let xid = controller.send(&Message::BarrierRequest, seconds(1)).unwrap();
    assert_eq!(sent(&mut controller)[0].0.xid, xid);
}

#[test]
fn the_result_does_not_depend_on_segmentation() {
    let (mut controller, mut switch) = pair();
    for _ in 0..50 {
        controller.send(&Message::FlowMod(FlowMod::default()), seconds(1)).unwrap();
    }
    let mut count = 0;
    while let Some(&byte) = controller.transmit().first() {
        assert_eq!(switch.receive(&[byte], seconds(1)), 1);
        controller.transmitted(1);
        count += messages(&mut switch).len();
    }
    assert_eq!(count, 50);
}

#[test]
fn the_highest_version_in_both_bitmaps_is_used() {
    for (controllers, agreed) in [
        (&Version::ALL[..], Some(Version::V1_5)),
        (&[Version::V1_0, Version::V1_3], Some(Version::V1_3)),
        (&[Version::V1_2], Some(Version::V1_2)),
        (&[Version::V1_0, Version::V1_1], Some(Version::V1_1)),
    ] {
        let ours = Settings { versions: controllers.to_vec(), ..Settings::new(End::Controller) };
        let mut controller = Session::new(ours, Nanos::ZERO);
        let mut switch = Session::new(Settings::new(End::Switch), Nanos::ZERO);
        exchange(&mut controller, &mut switch, Nanos::ZERO);
        assert_eq!((controller.version(), switch.version()), (agreed, agreed));
    }
    let ours = Settings { versions: vec![Version::V1_3], ..Settings::new(End::Controller) };
    let theirs =
        Settings { versions: vec![Version::V1_0, Version::V1_4], ..Settings::new(End::Switch) };
    let (mut controller, mut switch) =
        (Session::new(ours, Nanos::ZERO), Session::new(theirs, Nanos::ZERO));
    exchange(&mut controller, &mut switch, Nanos::ZERO);
    assert!(controller.is_down() && switch.is_down());
}

#[test]
fn a_message_of_another_version_is_rejected_before_decoding() {
    let ours = Settings { versions: vec![Version::V1_3], ..Settings::new(End::Switch) };
    let mut switch = Session::new(ours, Nanos::ZERO);
    sent(&mut switch);
    assert_eq!(switch.receive(&[4, 0, 0, 8, 0, 0, 0, 1], Nanos::ZERO), 8);
    assert_eq!(events(&mut switch), [Event::Up { version: Version::V1_3 }]);
    // A 1.4 table-mod without a body, and a 1.0 error.
    assert_eq!(switch.receive(&[5, 17, 0, 8, 0, 0, 0, 9], Nanos::ZERO), 8);
    assert_eq!(switch.receive(&[1, 1, 0, 12, 0, 0, 0, 3, 0, 1, 0, 1], Nanos::ZERO), 12);
    let events = events(&mut switch);
    assert!(matches!(&events[0], Event::Refused(error) if error.malformed.at == 0));
    assert!(matches!(&events[1], Event::Message { message: Message::Error(_), .. }));
    let replies = sent(&mut switch);
    let Message::Error(error) = &replies[0].1 else { panic!("{replies:?}") };
    assert_eq!((replies[0].0.xid, error.code), (9, ErrorCode::RequestBadVersion));
    assert_eq!(replies[0].0.version, 4);
}
