//! Tests with two end points in virtual time, and with invalid frames.

use packet::frame::Frame;

use super::*;
use crate::agent::bench::{Bench, program};

fn mep(id: u16, peer: u16, ccm: &str) -> String {
    format!(
        r#"<agent name="bench" type="y1731"><mep id="{id}" level="5" port="1" md="d" ma="test"
        ccm="{ccm}" peers="{peer}"/><reply op="LBM"/><reply op="LTM" fdb="fdb"/><reply op="DMM"/></agent>"#
    )
}

/// Advances both benches to a time, and delivers sent frames immediately.
fn run(one: &mut Bench, other: &mut Bench, until: Nanos) {
    loop {
        let due = [one.agent.due(), other.agent.due()].into_iter().flatten().min();
        let Some(due) = due.filter(|due| *due <= until) else { break };
        let due = due.max(one.now);
        let (from_one, from_other) = (one.until(due), other.until(due));
        (one.now, other.now) = (due, due);
        let mut to_other: Vec<_> = from_one.into_iter().map(|(_, sent)| sent).collect();
        let mut to_one: Vec<_> = from_other.into_iter().map(|(_, sent)| sent).collect();
        while !(to_one.is_empty() && to_other.is_empty()) {
            let answers: Vec<_> =
                to_other.drain(..).flat_map(|sent| other.frame(1, sent.frame.bytes())).collect();
            to_other.extend(to_one.drain(..).flat_map(|sent| one.frame(1, sent.frame.bytes())));
            to_one = answers;
        }
    }
    (one.now, other.now) = (until, until);
}

fn pair() -> (Bench, Bench) {
    (Bench::new(&mep(1, 2, "100ms"), 1), Bench::new(&mep(2, 1, "100ms"), 2))
}

#[test]
fn a_lost_peer_is_reported_after_three_and_a_half_periods() {
    let (mut one, mut two) = pair();
    let at = |ms: u64| Nanos::from_secs(100) + Nanos::from_millis(ms);
    run(&mut one, &mut two, at(1000));
    assert_eq!((one.happened(), two.happened()), (vec!["PeerFound"], vec!["PeerFound"]));
    two.ask("ccm", &[("send", "off")]).0.unwrap();
    // The last CCM arrived at 1000 ms.
    run(&mut one, &mut two, at(1349));
    assert_eq!(one.happened(), [""; 0]);
    run(&mut one, &mut two, at(1350));
    assert_eq!(one.happened(), ["PeerLost"]);
    run(&mut one, &mut two, at(1500));
    assert_eq!(two.happened(), ["RdiSeen"]);
    two.ask("ccm", &[("send", "on")]).0.unwrap();
    run(&mut one, &mut two, at(1800));
    assert_eq!((one.happened(), two.happened()), (vec!["PeerFound"], vec!["RdiGone"]));
    let facts = one.agent.facts(one.now);
    let (mep, peer) = (&facts.list("meps")[0], &facts.list("meps")[0].list("peers")[0]);
    assert_eq!(mep.number("ccms_sent"), Some(19));
    assert_eq!(peer.number("ccms_out_of_sequence"), Some(0));
    assert_eq!(peer.get("mac"), Some(&StatusValue::from("02:00:00:00:02:01")));
}

#[test]
fn every_period_is_met_and_encoded_in_the_flags() {
    for (number, (period, name)) in (1..).zip(PERIODS) {
        let mut bench = Bench::new(&mep(1, 2, name), 1);
        let begun = bench.now;
        let sent = bench.until(begun + Nanos(period.0 * 10));
        let times: Vec<u64> = sent.iter().map(|(at, _)| (*at - begun).0).collect();
        assert_eq!(times, (0..=10).map(|n| n * period.0).collect::<Vec<_>>(), "{name}");
        let first = Pdu::read(sent[0].1.frame.bytes()).unwrap();
        assert_eq!((first.flags, first.destination), (number, pdu::group(5, false)), "{name}");
    }
}

#[test]
fn a_configuration_mismatch_is_a_defect_for_three_and_a_half_periods() {
    for (agent, event) in [
        (mep(2, 1, "100ms").replace("\"d\"", "\"e\""), "Mismerge"),
        (mep(1, 2, "100ms"), "UnexpectedMep"),
        (mep(3, 1, "100ms"), "UnexpectedMep"),
        (mep(2, 1, "1s"), "UnexpectedPeriod"),
        (mep(2, 1, "100ms").replace("level=\"5\"", "level=\"4\""), "UnexpectedLevel"),
    ] {
        let (mut bench, mut other) = (Bench::new(&mep(1, 2, "100ms"), 1), Bench::new(&agent, 2));
        bench.until(bench.now);
        let ccm = other.until(other.now).remove(0).1;
        let period = PERIODS[usize::from(Pdu::read(ccm.frame.bytes()).unwrap().flags & 7) - 1].0;
        bench.frame(1, ccm.frame.bytes());
        bench.frame(1, ccm.frame.bytes());
        assert_eq!(bench.happened(), [event]);
        let last = bench.now + Nanos(period.0 * 7 / 2);
        bench.until(Nanos(last.0 - 1));
        assert!(!bench.happened().contains(&"DefectGone"), "{event}");
        bench.until(last);
        assert!(bench.happened().contains(&"DefectGone"), "{event}");
    }
}

#[test]
fn loopback_replies_are_immediate_for_unicast_and_delayed_for_multicast() {
    let (mut one, mut two) = pair();
    let begun = one.now;
    let two_mac = "02:00:00:00:02:01";
    let (id, sent) = one.ask("loopback", &[("to", two_mac), ("bytes", "100")]);
    assert_eq!(id.unwrap().number("id"), Some(1));
    let answer = two.frame(1, sent[0].frame.bytes()).remove(0);
    let [asked, answered] = [&sent[0], &answer].map(|sent| sent.frame.bytes());
    assert_eq!((&answered[..6], &answered[6..12]), (&asked[6..12], &asked[..6]));
    // Only addresses and opcode change.
    assert_eq!((answered[15], &answered[16..]), (op::LBR, &asked[16..]));
    one.now += Nanos(1234);
    one.frame(1, answered);
    let found = one.ask("result", &[]).0.unwrap();
    assert_eq!(found.get("done"), Some(&StatusValue::Flag(true)));
    assert_eq!((found.number("ns_min"), found.number("answered")), (Some(1234), Some(1)));
    assert!(one.happened().contains(&"MeasurementDone"));
    let (_, sent) = one.ask("loopback", &[("to", "all")]);
    assert!(two.frame(1, sent[0].frame.bytes()).is_empty());
    let answers = two.until(begun + Nanos::from_secs(1));
    let answers: Vec<_> =
        answers.iter().filter(|(_, it)| it.frame.bytes()[15] == op::LBR).collect();
    assert_eq!(answers.len(), 1);
    assert!(answers[0].0 > begun);
    for _ in 0..=DELAYED_MAX {
        two.frame(1, sent[0].frame.bytes());
    }
    assert_eq!((two.count("delayed_full"), two.count("loopback_answered")), (1, 66));
}

#[test]
fn a_measured_delay_excludes_the_processing_time_of_the_peer() {
    let (mut one, mut two) = pair();
    let (_, sent) = one.ask("delay", &[("to", "02:00:00:00:02:01")]);
    // The clock of the peer is different.
    two.now = Nanos::from_secs(7777);
    let answer = two.frame(1, sent[0].frame.bytes()).remove(0);
    let mut bytes = answer.frame.bytes().to_vec();
    // The transmit time stamp accounts for these 300 ns.
    let at = 14 + 4 + 16 + 4;
    let nanos = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) + 300;
    bytes[at..at + 4].copy_from_slice(&nanos.to_be_bytes());
    one.now += Nanos(1000);
    one.frame(1, &bytes);
    let found = one.ask("result", &[]).0.unwrap();
    assert_eq!(found.number("ns_min"), Some(700), "{found:?}");
    assert_eq!(found.list("answers")[0].number("theirs_ns"), Some(300));
}

#[test]
fn a_linktrace_is_answered_and_relayed_by_the_table() {
    let (mut one, mut two) = pair();
    let target = [2, 0, 0, 0, 9, 9];
    let ask = [("to", "02:00:00:00:09:09"), ("ttl", "3")];
    let (_, sent) = one.ask("linktrace", &ask);
    assert!(two.frame(1, sent[0].frame.bytes()).is_empty(), "the target is unknown");
    two.tables.stations.insert(target, 2);
    let replies = two.frame(1, sent[0].frame.bytes());
    let [reply, relayed] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((reply.output, relayed.output), (0, 1));
    let on = Pdu::read(relayed.frame.bytes()).unwrap();
    assert_eq!((on.op, on.body[4], on.source), (op::LTM, 2, [2, 0, 0, 0, 2, 2]));
    assert_eq!(on.tlv(tlv::LTM_EGRESS), Some(&[0, 2, 2, 0, 0, 0, 2, 2][..]));
    one.frame(1, reply.frame.bytes());
    let found = one.ask("result", &[]).0.unwrap();
    let step = &found.list("answers")[0];
    assert_eq!((step.number("ttl"), step.get("relay")), (Some(2), Some(&"table".into())));
    assert_eq!(step.get("egress"), Some(&"02:00:00:00:02:02".into()));
    // The target replies itself and ends the trace.
    let (_, sent) = one.ask("linktrace", &[("to", "02:00:00:00:02:01")]);
    let replies = two.frame(1, sent[0].frame.bytes());
    let reply = Pdu::read(replies[0].frame.bytes()).unwrap();
    assert_eq!((replies.len(), reply.body[5]), (1, 1));
    assert_eq!(reply.flags, pdu::USE_FDB_ONLY | pdu::TERMINAL_MEP);
    // The last hop replies and does not relay.
    let mut last = sent[0].frame.clone();
    last.bytes_mut()[22] = 1;
    last.bytes_mut()[29..35].copy_from_slice(&target);
    assert_eq!(two.frame(1, last.bytes()).len(), 1);
    last.bytes_mut()[22] = 0;
    assert_eq!(two.frame(1, last.bytes()).len(), 0);
}

#[test]
fn arbitrary_frames_never_panic() {
    let (mut one, mut two) = pair();
    let mut frames: Vec<Frame> = one.until(one.now).into_iter().map(|(_, it)| it.frame).collect();
    for what in ["loopback", "linktrace", "delay"] {
        let sent = one.ask(what, &[("to", "02:00:00:00:02:01")]).1;
        let answers = two.frame(1, sent[0].frame.bytes());
        frames.extend(sent.into_iter().chain(answers).map(|sent| sent.frame));
    }
    assert_eq!(frames.len(), 7);
    let mut seed = 1u64;
    for round in 0..20_000 {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut frame = frames[round % frames.len()].clone();
        let at = (seed >> 33) as usize % frame.len();
        frame.bytes_mut()[at] = (seed >> 24) as u8;
        frame.truncate(14 + (seed >> 40) as usize % (frame.len() - 13));
        one.frame(1, frame.bytes());
        two.frame(1, frame.bytes());
    }
    let refused = ["not_oam", "no_mep", "not_for_us", "not_answered", "unasked"];
    assert!(refused.iter().all(|name| two.count(name) > 0), "{:?}", two.agent.facts(two.now));
}

#[test]
fn invalid_commands_and_settings_are_reported() {
    let (mut one, _) = pair();
    for (what, with, message) in [
        ("ping", &[][..], "unknown command \"ping\" (hint: use loopback, linktrace"),
        ("loopback", &[("to", "01:80:c2:00:00:35")], "invalid to \"01:80:c2:00:00:35\""),
        (
            "loopback",
            &[("to", "all"), ("count", "5000")],
            "invalid count \"5000\" (hint: use a number from 1 to 1024",
        ),
        ("delay", &[], "missing to"),
        ("delay", &[("ttl", "3")], "delay has no argument \"ttl\""),
        ("loopback", &[("mep", "9"), ("to", "all")], "no end point \"9\""),
        ("result", &[("id", "7")], "no measurement 7"),
    ] {
        let error = one.ask(what, with).0.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let wrong = r#"<agent name="a" type="y1731" x="1"><mep id="0" level="8" port="3" ma="" ccm="2s"
        peers="x" fish="1" mac="ff:ff:ff:ff:ff:ff"/><reply op="XYZ" fdb="enc"/><fish/></agent>
        <agent name="b" type="y1731"/><agent name="c" type="post"/>"#;
    let problems = program(wrong).1.to_string();
    for message in [
        "has no attribute \"x\"",
        "id of <mep>: invalid value \"0\" (hint: use an integer from 1 to 8191",
        "level of <mep>",
        "port of <mep>: 3 is not declared",
        "ma of <mep>",
        "ccm of <mep>: invalid value \"2s\"",
        "peers of <mep>",
        "has no attribute \"fish\"",
        "mac of <mep>",
        "op of <reply>: invalid value \"XYZ\"",
        "unexpected <fish>",
        "agent b: no end point",
        "unknown type \"post\"",
    ] {
        assert!(problems.contains(message), "{message} is not in\n{problems}");
    }
}

#[test]
fn the_loopback_point_of_a_program_is_found() {
    let point = |settings: &str| {
        let agent = format!(r#"<agent name="a" type="y1731">{settings}</agent>"#);
        let (program, problems) = program(&agent);
        loopback_point(&program.unwrap_or_else(|| panic!("{problems}")), 1)
    };
    let mep = r#"<mep id="1" level="3" port="1" ma="x" vlan="7" mac="02:00:00:00:00:09"/>"#;
    let reply = r#"<reply op="LBM"/>"#;
    let wanted = LoopbackPoint { mac: [2, 0, 0, 0, 0, 9], level: 3, vid: 7 };
    assert_eq!(point(&format!("{mep}{reply}")), Some(wanted));
    assert_eq!(point(mep), None, "it does not respond");
    assert_eq!(point(&format!("{}{reply}", mep.replace("port=\"1\"", "port=\"2\""))), None);
    let nameless = mep.replace("mac=\"02:00:00:00:00:09\"", "");
    assert_eq!(point(&format!("{nameless}{reply}")), None, "its address is not given");
}
