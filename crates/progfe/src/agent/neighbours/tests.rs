//! Tests of the neighbour agent in virtual time.

use super::table::{ASKED_MAX, REACHABLE, RETRY, WAITING_MAX};
use super::*;
use crate::agent::bench::Bench;
use packet::build::Builder;

const AGENT: &str = r#"<agent name="bench" type="arp">
    <interface port="1" address="10.1.0.1/24 fd01::1/64"/><interface port="2" address="10.2.0.1/24" vlan="7"/>
    <resolve encap="enc"/></agent>"#;

const FAR: Mac = [2, 0, 0, 0, 9, 9];

fn bench() -> Bench {
    let mut bench = Bench::new(AGENT, 1);
    assert!(bench.until(bench.now).is_empty());
    bench
}

/// Delivers a packet for which EtherEncap had no header, with its metadata.
fn unresolved(bench: &mut Bench, port: u32, to: &str, next_hop: u128) -> Vec<Sent> {
    let builder = Builder::new([0; 6], [0; 6]);
    let (builder, next) = match to.parse().unwrap() {
        IpAddr::V4(to) => {
            (builder.ipv4(ipv4::Header::new([9, 9, 9, 9].into(), to)), meta_id::NEXT_HOP_V4)
        }
        IpAddr::V6(to) => {
            let from = "fd09::9".parse().unwrap();
            (builder.ipv6(ipv6::Header::new(from, to)), meta_id::NEXT_HOP_V6)
        }
    };
    let bytes = builder.udp(1, 2).payload(b"waits").bytes_unpadded();
    let meta = [
        (meta_id::EXCEPTION, exception::ENCAP_LOOKUP_FAILED),
        (meta_id::L3_PORT, port.into()),
        (next, next_hop),
    ];
    bench.told(&meta, &bytes[14..])
}

fn only_message(sent: &[Sent]) -> Message {
    assert_eq!(sent.len(), 1, "{sent:?}");
    Message::read(sent[0].frame.bytes()).unwrap()
}

/// Creates the reply to a request.
fn answered(address: &str, question: &Message, vid: u16) -> Vec<u8> {
    let speaker = Speaker { mac: FAR, address: address.parse().unwrap(), vid };
    speaker.answer(question).unwrap()
}

#[test]
fn packets_wait_for_the_reply_and_are_sent_in_order() {
    for (port, to, next_hop, requested) in [
        (1, "10.1.0.9", 0u128, "10.1.0.9"),
        (1, "8.8.8.8", 0x0a01_0008, "10.1.0.8"),
        (2, "10.2.0.9", 0, "10.2.0.9"),
        (1, "fd01::9", 0, "fd01::9"),
    ] {
        let mut bench = bench();
        let sent = unresolved(&mut bench, port, to, next_hop);
        assert_eq!(sent[0].output, port - 1);
        let question = only_message(&sent);
        assert_eq!((question.target.to_string().as_str(), question.asks), (requested, true));
        let vid = if port == 2 { 7 } else { 0 };
        for _ in 1..WAITING_MAX {
            assert!(unresolved(&mut bench, port, to, next_hop).is_empty(), "requested only once");
        }
        let on = bench.frame(port, &answered(requested, &question, vid));
        assert_eq!(on.len(), WAITING_MAX);
        assert!(on.iter().all(|sent| sent.output == 2), "{on:?}");
        assert!(on[0].meta.contains(&(meta_id::L3_PORT, port.into())));
        let known = bench.tables.neighbours.get(&(port, requested.parse().unwrap()));
        let own = [2, 0, 0, 0, 1, port as u8];
        assert_eq!(known, Some(&(FAR, own, vid)), "{requested}");
        assert_eq!(bench.happened(), ["NeighbourFound"]);
        // A packet that was in flight when the reply arrived.
        assert_eq!(unresolved(&mut bench, port, to, next_hop)[0].output, 2);
    }
}

#[test]
fn a_silent_neighbor_is_unreachable_after_three_requests() {
    let mut bench = bench();
    let begun = bench.now;
    unresolved(&mut bench, 1, "10.1.0.9", 0);
    let sent = bench.until(begun + Nanos::from_secs(10));
    let seen: Vec<(u64, u32)> =
        sent.iter().map(|(at, sent)| ((*at - begun).0 / RETRY.0, sent.output)).collect();
    assert_eq!(seen, [(1, 0), (2, 0), (3, 3)]);
    assert_eq!((bench.happened(), bench.agent.due()), (vec!["NeighbourLost"], None));
}

#[test]
fn a_neighbor_is_probed_by_unicast_and_removed_when_silent() {
    let mut bench = bench();
    let question = only_message(&unresolved(&mut bench, 1, "10.1.0.9", 0));
    bench.frame(1, &answered("10.1.0.9", &question, 0));
    let learnt = bench.now;
    let sent = bench.until(learnt + REACHABLE);
    assert_eq!(sent[0].1.frame.bytes()[..6], FAR);
    bench.frame(1, &answered("10.1.0.9", &question, 0));
    assert_eq!(bench.until(learnt + REACHABLE + RETRY).len(), 0, "he answered");
    let sent = bench.until(learnt + REACHABLE + REACHABLE + Nanos(RETRY.0 * 3));
    assert_eq!(sent.len(), 3);
    assert!(bench.tables.neighbours.is_empty());
    assert_eq!(bench.happened(), ["NeighbourFound", "NeighbourLost"]);
    // Another station takes over the address.
    let question = only_message(&unresolved(&mut bench, 1, "10.1.0.9", 0));
    bench.frame(1, &answered("10.1.0.9", &question, 0));
    let other = Speaker { mac: [2, 0, 0, 0, 8, 8], address: "10.1.0.9".parse().unwrap(), vid: 0 };
    bench.frame(1, &other.question("10.1.0.77".parse().unwrap(), None).unwrap());
    assert_eq!(bench.happened(), ["NeighbourFound", "NeighbourMoved"]);
}

#[test]
fn requests_for_its_own_addresses_only_are_answered() {
    let mut bench = bench();
    let host = |address: &str| Speaker { mac: FAR, address: address.parse().unwrap(), vid: 0 };
    let ask = |bench: &mut Bench, from: &str, about: &str| {
        bench.frame(1, &host(from).question(about.parse().unwrap(), None).unwrap())
    };
    for (from, about) in [("10.1.0.9", "10.1.0.1"), ("fd01::9", "fd01::1")] {
        let answer = only_message(&ask(&mut bench, from, about));
        assert_eq!((answer.target.to_string().as_str(), answer.asks), (about, false));
        assert_eq!(answer.mac, Some([2, 0, 0, 0, 1, 1]));
        assert!(bench.tables.neighbours.contains_key(&(1, from.parse().unwrap())), "{from}");
    }
    assert!(ask(&mut bench, "10.1.0.8", "10.1.0.2").is_empty());
    // Outside this network: gets a reply but is not learned.
    assert_eq!(ask(&mut bench, "10.9.0.9", "10.1.0.1").len(), 1);
    // Unspecified sender, or our own address.
    ask(&mut bench, "10.1.0.1", "10.1.0.1");
    assert_eq!(bench.tables.neighbours.len(), 2);
    // The same without its link-layer header, as a classifier delivers it.
    let frame = host("10.1.0.9").question("10.1.0.1".parse().unwrap(), None).unwrap();
    let number = |mac: &[u8]| mac.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    let meta = [
        (meta_id::PHY_PORT, 1),
        (meta_id::DST_MAC, number(&frame[..6])),
        (meta_id::SRC_MAC, number(&frame[6..12])),
        (meta_id::ETHER_TYPE, 0x0806),
    ];
    assert_eq!(only_message(&bench.told(&meta, &frame[14..])).target.to_string(), "10.1.0.1");
}

#[test]
fn tables_and_queues_are_limited_and_losses_counted() {
    let mut bench = bench();
    for last in 0..=ASKED_MAX {
        let to = format!("fd01::{:x}", last + 16);
        unresolved(&mut bench, 1, &to, 0);
    }
    assert_eq!((bench.count("asked"), bench.count("waiting_lost")), (ASKED_MAX as i128, 1));
    for _ in 0..WAITING_MAX + 2 {
        unresolved(&mut bench, 1, "fd01::10", 0);
    }
    assert_eq!(bench.count("waiting_lost"), 1 + 3);
    // No interface has the network: immediately unreachable.
    assert_eq!(unresolved(&mut bench, 2, "10.1.0.9", 0)[0].output, 3);
    bench.frame(1, &[0; 60]);
    bench.frame(
        2,
        &answered("10.1.0.9", &only_message(&unresolved(&mut self::bench(), 1, "10.1.0.9", 0)), 0),
    );
    assert_eq!((bench.count("not_read"), bench.count("no_interface")), (1, 2));
}
