//! Tests of ARP requests and replies, and of waiting frames.

use super::*;

/// A station in the network of port 2 that is unknown.
const CAROL: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 2, 7], Ipv4Addr::new(10, 0, 2, 7));

fn message(operation: u16, from: (Mac, Ipv4Addr), to: (Mac, Ipv4Addr)) -> Vec<u8> {
    let (sender_mac, sender_ip) = from;
    let (target_mac, target_ip) = to;
    let message = arp::Header { operation, sender_mac, sender_ip, target_mac, target_ip };
    let destination = if operation == arp::REQUEST { ethernet::BROADCAST } else { target_mac };
    Builder::new(destination, sender_mac).arp(message).bytes()
}

fn reply_of_carol() -> Vec<u8> {
    message(arp::REPLY, CAROL, (mac(2), own(2)))
}

#[test]
fn an_unknown_neighbor_is_requested_and_waiting_frames_keep_their_order() {
    let mut bench = Bench::usual();
    let numbered = |number: u8| from_alice(CAROL.1).payload(&[number; 20]).bytes();
    let text = to_text(&bench.send(1, &numbered(1)));
    assert_eq!(
        text,
        ["2: 02:00:00:00:02:01 > ff:ff:ff:ff:ff:ff arp who-has 10.0.2.7 tell 10.0.2.1 payload 0 \
          padding 18"]
    );
    assert_eq!(bench.send(1, &numbered(2)), []);
    assert_eq!(bench.router.neighbors().frames_waiting, 2);
    bench.account();
    let sent = bench.send(2, &reply_of_carol());
    let numbers: Vec<u8> = sent.iter().map(|(_, bytes)| bytes[42]).collect();
    assert_eq!(numbers, [1, 2]);
    for (port, bytes) in &sent {
        assert_eq!((*port, array_at::<6>(bytes, 0), array_at::<6>(bytes, 6)), (2, CAROL.0, mac(2)));
        assert_eq!(Packet::parse(bytes).unwrap().ipv4().unwrap().ttl(), 63);
    }
    assert_eq!(bench.send(1, &numbered(3))[0].1[..6], CAROL.0);
    assert_eq!(bench.router.counters.forwarded, 3);
    bench.account();
}

#[test]
fn an_unreachable_neighbor_is_reported_to_the_sender() {
    let mut bench = Bench::usual();
    bench.send(1, &from_alice(CAROL.1).bytes());
    let text = to_text(&bench.pass(Nanos::from_secs(10)));
    let asked = text.iter().filter(|text| text.contains("who-has 10.0.2.7")).count();
    let reported =
        text.iter().filter(|text| text.contains("1: 02:00:00:00:01:01 > 02:00:00:00:01:09"));
    let reported: Vec<_> = reported.collect();
    assert_eq!((asked, reported.len(), text.len()), (2, 1, 3), "{text:#?}");
    assert!(reported[0].contains("host-unreachable"), "{reported:?}");
    assert_eq!(bench.router.drops.of(DropReason::NoNeighbour), 1);
    assert_eq!(bench.router.counters.arp_requests, 3);
    bench.account();
}

#[test]
fn a_static_neighbor_releases_waiting_frames() {
    let mut bench = Bench::usual();
    bench.send(1, &from_alice(CAROL.1).bytes());
    let place = Place { port: 2, address: CAROL.1 };
    bench.router.set_neighbor(place, CAROL.0, &mut bench.out).unwrap();
    let sent = bench.sent();
    assert_eq!((sent.len(), sent[0].1[..6].to_vec()), (1, CAROL.0.to_vec()));
    assert!(bench.pass(Nanos::from_secs(600)).is_empty(), "it is never requested again");
    bench.account();
    let refused = bench.router.set_neighbor(place, [1; 6], &mut bench.out);
    assert_eq!(refused, Err(RouterError::BadMac(2)));
    let elsewhere = Place { port: 9, ..place };
    let refused = bench.router.set_neighbor(elsewhere, CAROL.0, &mut bench.out);
    assert_eq!(refused, Err(RouterError::NoInterface(9)));
}

#[test]
fn excess_waiting_frames_replace_the_oldest() {
    let mut bench = Bench::usual();
    let most = crate::neighbor::WAITING_FRAMES_MAX as u64;
    for _ in 0..most + 5 {
        bench.send(1, &from_alice(CAROL.1).bytes());
    }
    assert_eq!(bench.router.drops.of(DropReason::NeighbourQueueFull), 5);
    bench.account();
    assert_eq!(bench.send(2, &reply_of_carol()).len() as u64, most);
    bench.account();
}

#[test]
fn an_arp_request_for_the_router_is_answered_and_learned() {
    let mut bench = Bench::usual();
    let asked = message(arp::REQUEST, CAROL, ([0; 6], own(2)));
    let text = to_text(&bench.send(2, &asked));
    assert_eq!(
        text,
        [
            "2: 02:00:00:00:02:01 > 02:00:00:00:02:07 arp 10.0.2.1 is-at 02:00:00:00:02:01 payload 0 \
          padding 18"
        ]
    );
    assert_eq!(bench.send(1, &from_alice(CAROL.1).bytes())[0].1[..6], CAROL.0);
    assert_eq!(bench.router.counters.arp_requests, 0);
    bench.account();
}

#[test]
fn arp_between_others_updates_known_neighbors_only() {
    let mut bench = Bench::usual();
    let gratuitous = |from| message(arp::REQUEST, from, ([0; 6], CAROL.1));
    assert_eq!(bench.send(2, &gratuitous(CAROL)), []);
    assert_eq!(to_text(&bench.send(1, &from_alice(CAROL.1).bytes())).len(), 1, "a request is sent");
    bench.send(2, &reply_of_carol());
    let moved = [2, 0, 0, 0, 2, 8];
    assert_eq!(bench.send(2, &gratuitous((moved, CAROL.1))), []);
    assert_eq!(bench.send(1, &from_alice(CAROL.1).bytes())[0].1[..6], moved);
    // Bob's address is static and stays.
    bench.send(2, &message(arp::REQUEST, (moved, BOB.1), ([0; 6], BOB.1)));
    assert_eq!(bench.send(1, &from_alice(BOB.1).bytes())[0].1[..6], BOB.0);
}

#[test]
fn own_and_foreign_addresses_are_not_learned() {
    let mut bench = Bench::usual();
    let known = bench.router.neighbors().len();
    let stranger = (CAROL.0, Ipv4Addr::new(172, 16, 0, 1));
    let duplicate = (CAROL.0, own(2));
    let probe = (CAROL.0, Ipv4Addr::UNSPECIFIED);
    for from in [stranger, duplicate, probe] {
        let sent = bench.send(2, &message(arp::REQUEST, from, ([0; 6], own(2))));
        assert_eq!(sent.len(), 1, "still requested and answered");
    }
    assert_eq!(bench.router.neighbors().len(), known);
    // The request arrives on the wrong link: the router does not have the address there.
    assert_eq!(bench.send(2, &message(arp::REQUEST, CAROL, ([0; 6], own(1)))), []);
    assert_eq!(bench.router.neighbors().len(), known);
}

#[test]
fn invalid_arp_messages_are_counted() {
    let mut bench = Bench::usual();
    let right = message(arp::REQUEST, CAROL, ([0; 6], own(2)));
    for (at, value) in [(14, 9), (16, 9), (18, 5), (19, 16), (22, 1)] {
        let mut bytes = right.clone();
        bytes[at] = value;
        bench.lost(2, &bytes, DropReason::BadArp);
    }
    bench.lost(2, &right[..41], DropReason::BadArp);
}

#[test]
fn a_learned_neighbor_in_use_is_confirmed_and_stays() {
    let mut bench = Bench::usual();
    bench.send(2, &message(arp::REQUEST, CAROL, ([0; 6], own(2))));
    bench.send(1, &from_alice(CAROL.1).bytes());
    let asked = bench.pass(Nanos::from_secs(61));
    assert_eq!(asked.len(), 1, "{:?}", to_text(&asked));
    bench.send(2, &reply_of_carol());
    assert_eq!(bench.pass(Nanos::from_secs(50)), []);
    assert_eq!(bench.send(1, &from_alice(CAROL.1).bytes())[0].1[..6], CAROL.0);
    let flushed = bench.router.flush_neighbors_some(&mut 0, &mut usize::MAX.clone());
    assert_eq!(flushed, 1);
    assert!(to_text(&bench.send(1, &from_alice(CAROL.1).bytes()))[0].contains("who-has"));
}
