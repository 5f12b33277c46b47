//! Tests of scripts with switches that reply, reject, send invalid bytes or stay silent, in virtual
//! time.

use channel::memory::{MemoryChannel, pair};
use openflow::header::Xid;
use openflow::model::flow::FlowMod;
use openflow::model::multipart::FlowStatsRequest;
use openflow::version::Version;
use record::ControllerCommand;

use super::super::Settings;
use super::super::script::Commit;
use super::*;

/// Switch that stores received messages and sends the replies of the test.
struct Switch {
    channel: MemoryChannel,
    heard: Vec<u8>,
}

impl Switch {
    /// Returns type and transaction id of the messages received completely.
    fn messages(&mut self) -> Vec<(u8, Xid)> {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = self.channel.receive(&mut buffer) {
            self.heard.extend_from_slice(&buffer[..count]);
        }
        let mut found = Vec::new();
        while let Ok(header) = Header::parse(&self.heard) {
            let length = usize::from(header.length);
            if self.heard.len() < length {
                break;
            }
            self.heard.drain(..length);
            found.push((header.kind, header.xid));
        }
        found
    }

    fn say(&mut self, bytes: &[u8]) {
        assert_eq!(self.channel.transmit(bytes).unwrap(), bytes.len());
    }

    fn answer(&mut self, kind: u8, xid: Xid, body: &[u8]) {
        let mut bytes = vec![5, kind];
        bytes.extend((8 + body.len() as u16).to_be_bytes());
        bytes.extend(xid.to_be_bytes());
        bytes.extend(body);
        self.say(&bytes);
    }
}

const BARRIER: u8 = 20;
const BARRIER_REPLY: u8 = 21;
const MULTIPART_REPLY: u8 = 19;

fn play(script: Script) -> (Play, Switch) {
    let (near, channel) = pair(1 << 20, "switch");
    let settings = Settings::new();
    let session = openflow::session::Session::new(settings.session.clone(), Nanos::ZERO);
    let mut play = Controller::bare(Box::new(near), session, settings).play(&Arc::new(script));
    play.answer.clear();
    (play, Switch { channel, heard: Vec::new() })
}

fn flow_mods(count: usize, commit: Commit) -> Script {
    let flow_mods = std::iter::repeat_n(FlowMod::default(), count);
    Script::flow_mods(ControllerCommand::Add, Version::V1_4, commit, flow_mods).unwrap()
}

fn at(play: &mut Play, millis: u64) -> Result<PlayStep, ControlError> {
    play.turn(&mut || Nanos::from_millis(millis))
}

#[test]
fn a_batch_waits_for_the_reply_to_an_earlier_one() {
    let (mut play, mut switch) = play(flow_mods(10, Commit::Barrier(3)).ahead(2));
    assert_eq!(at(&mut play, 0).unwrap(), PlayStep::Moved);
    let first = switch.messages();
    assert_eq!(first.len(), 8, "two batches of three, each with its barrier");
    assert_eq!(at(&mut play, 1).unwrap(), PlayStep::Waits);
    assert_eq!(switch.messages(), []);
    let mut answered = 0;
    let mut waiting = first;
    for millis in 2.. {
        for (kind, xid) in waiting.drain(..) {
            if kind == BARRIER {
                switch.answer(BARRIER_REPLY, xid, &[]);
                answered += 1;
            }
        }
        if at(&mut play, millis).unwrap() == PlayStep::Over {
            break;
        }
        waiting = switch.messages();
    }
    let played = play.finish();
    assert_eq!((answered, played.answers, played.flow_mods), (4, 4, 10));
    assert_eq!((played.errors, played.first_byte), (0, Some(Nanos::from_millis(2))));
    assert!(played.duration > Nanos::from_millis(2), "{played:?}");
}

#[test]
fn a_bundle_completes_with_its_commit_reply_and_errors_are_counted() {
    let (mut play, mut switch) = play(flow_mods(4, Commit::Bundle(4)));
    at(&mut play, 0).unwrap();
    let sent = switch.messages();
    assert_eq!(sent.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [33, 34, 34, 34, 34, 33]);
    switch.answer(33, sent[0].1, &[0; 8]);
    assert_eq!(at(&mut play, 1).unwrap(), PlayStep::Moved);
    // OFPET_BUNDLE_FAILED, OFPBFC_MSG_FAILED.
    switch.answer(1, sent[5].1, &[0, 17, 0, 13]);
    assert_eq!(at(&mut play, 2).unwrap(), PlayStep::Over);
    let played = play.finish();
    assert_eq!((played.errors, played.error), (1, Some(ErrorCode::BundleMessageFailed)));
}

#[test]
fn a_bundle_in_1_3_completes_with_an_experimenter_message() {
    let flow_mods = std::iter::repeat_n(FlowMod::default(), 2);
    let script =
        Script::flow_mods(ControllerCommand::Add, Version::V1_3, Commit::Bundle(2), flow_mods)
            .unwrap();
    let (mut play, mut switch) = play(script);
    at(&mut play, 0).unwrap();
    let sent = switch.messages();
    assert_eq!(sent.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [4, 4, 4, 4]);
    // The ONF's bundle control: the bundle is committed.
    let done = [0x4f, 0x4e, 0x46, 0, 0, 0, 8, 0xfc, 0, 0, 0, 1, 0, 5, 0, 2];
    switch.answer(4, sent[3].1, &done);
    assert_eq!(at(&mut play, 1).unwrap(), PlayStep::Over);
    assert_eq!((play.played.answers, play.played.errors), (1, 0));
}

#[test]
fn entries_are_counted_over_all_parts_and_any_segmentation() {
    let script = Script::flow_stats(Version::V1_4, FlowStatsRequest::default()).unwrap();
    let (mut play, mut switch) = play(script);
    at(&mut play, 0).unwrap();
    let row = |bytes: u16| [&bytes.to_be_bytes()[..], &vec![7; usize::from(bytes) - 2]].concat();
    let part = |more: u8, rows: &[u16]| {
        let rows: Vec<u8> = rows.iter().flat_map(|bytes| row(*bytes)).collect();
        [&[0, 1, 0, more, 0, 0, 0, 0][..], &rows].concat()
    };
    let xid = switch.messages()[0].1;
    switch.answer(MULTIPART_REPLY, xid, &part(1, &[64, 104, 56]));
    at(&mut play, 1).unwrap();
    switch.answer(MULTIPART_REPLY, xid, &part(0, &[88]));
    assert_eq!(at(&mut play, 2).unwrap(), PlayStep::Over);
    assert_eq!((play.played.rows, play.played.answers), (4, 1));
}

#[test]
fn an_invalid_entry_length_stops_the_count() {
    for body in [[0, 0, 9, 9], [0xff, 0xff, 1, 1], [0, 9, 0, 0]] {
        let message = [&[5, 19, 0, 20, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0][..], &body].concat();
        assert_eq!(rows(Version::V1_4, &message), (0, false), "{body:?}");
    }
    assert_eq!(rows(Version::V1_4, &[5, 19, 0, 8, 0, 0, 0, 1]), (0, false));
    assert_eq!(error_in(Version::V1_4, &[5, 1, 0, 8, 0, 0, 0, 1]), None);
}

#[test]
fn echo_requests_are_answered_and_a_silent_switch_times_out() {
    let (mut play, mut switch) = play(flow_mods(2, Commit::Barrier(1)));
    at(&mut play, 0).unwrap();
    switch.messages();
    switch.answer(ECHO_REQUEST, 77, b"life");
    at(&mut play, 1).unwrap();
    at(&mut play, 2).unwrap();
    assert_eq!(switch.messages(), [(ECHO_REPLY, 77)]);
    let patience = Settings::new().reply_timeout.0 / 1_000_000;
    assert_eq!(at(&mut play, patience).unwrap(), PlayStep::Waits);
    let error = at(&mut play, patience + 3).unwrap_err();
    assert!(error.to_string().contains("no reply to"), "{error}");
}

#[test]
fn an_invalid_message_length_ends_the_script() {
    let (mut play, mut switch) = play(flow_mods(1, Commit::Barrier(1)));
    at(&mut play, 0).unwrap();
    switch.say(&[5, 21, 0, 4, 0, 0, 0, 1]);
    assert!(matches!(at(&mut play, 1), Err(ControlError::Unframed(_))));
}

#[test]
fn a_paced_endless_script_keeps_its_rate_and_ends_after_a_round() {
    let script = flow_mods(4, Commit::Barrier(2)).ahead(8).paced(1000.0).endless();
    let (mut play, mut switch) = play(script);
    let mut sent = Vec::new();
    for millis in 0..10 {
        at(&mut play, millis).unwrap();
        let messages = switch.messages();
        sent.push(messages.iter().filter(|(kind, _)| *kind != BARRIER).count());
        for (_, xid) in messages.iter().filter(|(kind, _)| *kind == BARRIER) {
            switch.answer(BARRIER_REPLY, *xid, &[]);
        }
        at(&mut play, millis).unwrap();
    }
    assert_eq!(sent, [0, 0, 2, 0, 2, 0, 2, 0, 2, 0]);
    assert_eq!(play.played.flow_mods, 8);
    // The current round plays to its end, so that nothing of it remains in the switch.
    at(&mut play, 10).unwrap();
    play.end();
    let mut over = false;
    for millis in 11..20 {
        for (_, xid) in switch.messages().iter().filter(|(kind, _)| *kind == BARRIER) {
            switch.answer(BARRIER_REPLY, *xid, &[]);
        }
        over |= !over && at(&mut play, millis).unwrap() == PlayStep::Over;
    }
    assert_eq!((over, play.finish().flow_mods), (true, 12));
}
