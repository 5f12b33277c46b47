//! Tests of requests, replies, retries and ageing, with a simulated clock.

use super::*;

const MAC: Mac = [2, 0, 0, 0, 0, 9];
const SECOND: Nanos = Nanos::from_secs(1);

fn place(last: u8) -> Place {
    Place { port: 1, address: [10, 0, 0, last].into() }
}

fn waiting(tag: u8) -> WaitingFrame {
    WaitingFrame { frame: Frame::from_bytes(&[tag]), from: Some(2) }
}

fn tags(frames: &VecDeque<WaitingFrame>) -> Vec<u8> {
    frames.iter().map(|waiting| waiting.frame.bytes()[0]).collect()
}

fn table() -> NeighborTable {
    NeighborTable::new(100, Timing::default(), 1)
}

/// Collects the due items until `until`, polled every 100 ms.
fn run(table: &mut NeighborTable, from: Nanos, until: Nanos) -> Vec<(Nanos, DueWork)> {
    let mut all = Vec::new();
    let mut now = from;
    while now <= until {
        let mut steps = STEPS_PER_TICK;
        while let Some(due) = table.due(now, &mut steps) {
            all.push((now, due));
        }
        now += Nanos::from_millis(100);
    }
    all
}

/// Removes all learned neighbors.
fn flush(table: &mut NeighborTable) -> usize {
    table.flush_some(&mut 0, &mut usize::MAX.clone())
}

#[test]
fn frames_wait_in_order_until_the_reply_arrives() {
    let mut table = table();
    assert!(matches!(table.wait(place(1), waiting(1), SECOND), Wait::Ask));
    assert!(matches!(table.wait(place(1), waiting(2), SECOND), Wait::Queued));
    assert_eq!(table.frames_waiting, 2);
    let id = table.find(place(1)).unwrap();
    assert_eq!(table.mac_at(id, place(1)), None);
    assert_eq!(tags(&table.learn(place(1), MAC, false, SECOND)), [1, 2]);
    assert_eq!(table.mac_at(id, place(1)), Some(MAC));
    assert_eq!(table.mac_at(id, place(2)), None);
    assert_eq!((table.frames_waiting, table.asked), (0, 0));
}

#[test]
fn the_queue_keeps_the_newest_frames() {
    let mut table = table();
    for tag in 0..WAITING_FRAMES_MAX as u8 {
        table.wait(place(1), waiting(tag), SECOND);
    }
    let Wait::Displaced(oldest) = table.wait(place(1), waiting(99), SECOND) else {
        panic!("more than {WAITING_FRAMES_MAX} frames wait");
    };
    assert_eq!(oldest.frame.bytes(), [0]);
    let frames = table.learn(place(1), MAC, true, SECOND);
    assert_eq!((frames.len(), tags(&frames).last()), (WAITING_FRAMES_MAX, Some(&99)));
}

#[test]
fn an_unanswered_request_is_sent_three_times() {
    let mut table = table();
    table.wait(place(1), waiting(7), SECOND);
    let all = run(&mut table, SECOND, Nanos::from_secs(20));
    assert_eq!(all.len(), 3);
    assert!(
        matches!(all[0], (at, DueWork::Ask(to)) if at == Nanos::from_secs(2) && to == place(1))
    );
    assert!(matches!(all[1], (at, DueWork::Ask(_)) if at == Nanos::from_secs(3)));
    let (at, DueWork::GivenUp(to, frames)) = &all[2] else { panic!("{all:?}") };
    assert_eq!((*at, *to, tags(frames)), (Nanos::from_secs(4), place(1), vec![7]));
    assert_eq!((table.len(), table.frames_waiting, table.asked), (0, 0, 0));
    assert_eq!(table.next_due(), None);
}

#[test]
fn an_unused_neighbor_expires_without_a_request() {
    let mut table = table();
    table.learn(place(1), MAC, true, SECOND);
    assert!(run(&mut table, SECOND, Nanos::from_secs(60)).is_empty());
    assert_eq!(table.len(), 1);
    assert!(run(&mut table, Nanos::from_secs(61), Nanos::from_secs(62)).is_empty());
    assert_eq!(table.len(), 0);
}

#[test]
fn a_neighbor_in_use_is_probed_and_stays_if_it_replies() {
    let mut table = table();
    table.learn(place(1), MAC, true, SECOND);
    let id = table.find(place(1)).unwrap();
    table.mac_at(id, place(1));
    let requested = run(&mut table, SECOND, Nanos::from_secs(61));
    assert!(matches!(requested[..], [(_, DueWork::Ask(_))]), "{requested:?}");
    assert_eq!(table.mac_at(id, place(1)), Some(MAC), "it remains usable during the request");
    table.learn(place(1), MAC, false, Nanos::from_secs(61));
    table.mac_at(id, place(1));
    assert!(run(&mut table, Nanos::from_secs(61), Nanos::from_secs(120)).is_empty());
    let requested = run(&mut table, Nanos::from_secs(121), Nanos::from_secs(130));
    assert_eq!(requested.len(), 3, "three requests, then it expires");
    assert_eq!(table.mac_at(id, place(1)), None);
}

#[test]
fn static_neighbors_stay_and_are_not_overwritten() {
    let mut table = table();
    table.wait(place(1), waiting(5), SECOND);
    assert_eq!(table.set(place(1), MAC).map(|frames| tags(&frames)), Some(vec![5]));
    table.learn(place(1), [2; 6], true, SECOND);
    assert!(run(&mut table, SECOND, Nanos::from_secs(600)).is_empty());
    assert_eq!(table.iter().collect::<Vec<_>>(), [(place(1), NeighborState::Static(MAC))]);
    assert_eq!(flush(&mut table), 0);
    assert!(table.remove(place(1)).is_some() && table.is_empty());
}

#[test]
fn only_known_or_requested_neighbors_are_updated() {
    let mut table = table();
    table.learn(place(1), MAC, false, SECOND);
    assert!(table.is_empty());
    table.learn(place(1), MAC, true, SECOND);
    table.learn(place(1), [2; 6], false, SECOND);
    let id = table.find(place(1)).unwrap();
    assert_eq!(table.mac_at(id, place(1)), Some([2; 6]));
    assert_eq!(flush(&mut table), 1);
}

#[test]
fn a_flush_removes_a_bounded_number_at_a_time_and_what_is_set_or_asked_stays() {
    let mut table = NeighborTable::new(10_000, Timing::default(), 1);
    let at = |number: u32| Place { port: 1, address: Ipv4Addr::from_bits(number) };
    for number in 0..3000 {
        match number % 10 {
            0 => drop(table.set(at(number), MAC)),
            1 => drop(table.wait(at(number), waiting(1), SECOND)),
            _ => drop(table.learn(at(number), MAC, true, SECOND)),
        }
    }
    let (mut from, mut removed, mut calls) = (0, 0, 0);
    while from < table.places_end() {
        let mut steps = 200;
        let now = table.flush_some(&mut from, &mut steps);
        assert!(now <= 200 / FORGET_STEPS, "{now} in one call");
        (removed, calls) = (removed + now, calls + 1);
    }
    assert_eq!((removed, table.len(), table.asked), (2400, 600, 300));
    assert!(calls >= 90, "{calls} calls");
    assert!(table.iter().all(|(_, known)| !matches!(known, NeighborState::Learned(_))));
    assert_eq!(flush(&mut table), 0);
}

#[test]
fn full_tables_reject_entries_and_identifiers_are_reused() {
    let mut table = NeighborTable::new(2, Timing::default(), 1);
    table.set(place(1), MAC);
    table.wait(place(2), waiting(1), SECOND);
    assert!(matches!(table.wait(place(3), waiting(1), SECOND), Wait::Refused(_)));
    assert!(table.set(place(3), MAC).is_none());
    let old = table.find(place(1)).unwrap();
    table.remove(place(1));
    table.set(place(3), MAC);
    assert_eq!(table.find(place(3)), Some(old));
    assert_eq!(table.mac_at(old, place(1)), None, "the identifier has a new owner");

    let mut table = NeighborTable::new(10_000, Timing::default(), 1);
    for number in 0..ASKED_MAX as u32 {
        let place = Place { port: 1, address: Ipv4Addr::from_bits(number) };
        assert!(matches!(table.wait(place, waiting(1), SECOND), Wait::Ask));
    }
    assert!(matches!(
        table.wait(Place { port: 2, ..place(1) }, waiting(1), SECOND),
        Wait::Refused(_)
    ));
}
