//! Linked pairs: order, full rings, a dropped peer, and two threads at the same time.

use super::*;

fn numbered(batch: &mut Batch, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert!(batch.push_bytes(&number.to_be_bytes()));
    }
}

fn numbers(batch: &Batch) -> Vec<u64> {
    batch
        .frames()
        .iter()
        .map(|frame| u64::from_be_bytes(frame.bytes().try_into().unwrap()))
        .collect()
}

#[test]
fn frames_arrive_in_order_with_the_receive_time() {
    let (mut left, mut right) = pair_stamped(4, "link", Clock::Virtual);
    let mut batch = Batch::new(8);
    numbered(&mut batch, 0..3);
    assert_eq!(left.transmit(&mut batch, Nanos(1)).unwrap(), 3);
    let mut arrived = Batch::new(8);
    assert_eq!(right.receive(&mut arrived, Nanos(9)).unwrap(), 3);
    assert_eq!(numbers(&arrived), [0, 1, 2]);
    let stamp = Stamp { at: Nanos(9), clock: Clock::Virtual };
    assert!(arrived.frames().iter().all(|frame| frame.stamp == Some(stamp)));
    assert_eq!(left.counters().tx_bytes, 24);
    assert_eq!(right.counters().rx_frames, 3);
    assert_eq!(left.facts().name, "link.0");
}

#[test]
fn a_full_ring_accepts_what_fits_and_continues_later() {
    let (mut left, mut right) = pair(4, "link");
    let mut batch = Batch::new(8);
    numbered(&mut batch, 0..6);
    assert_eq!(left.transmit(&mut batch, Nanos::ZERO).unwrap(), 4);
    batch.drop_front(4);
    assert_eq!(left.transmit(&mut batch, Nanos::ZERO).unwrap(), 0);
    let mut arrived = Batch::new(1);
    assert_eq!(right.receive(&mut arrived, Nanos::ZERO).unwrap(), 1);
    assert_eq!(right.receive(&mut arrived, Nanos::ZERO).unwrap(), 0, "a full batch accepts none");
    assert_eq!(left.transmit(&mut batch, Nanos::ZERO).unwrap(), 1);
    let mut rest = Batch::new(8);
    assert_eq!(right.receive(&mut rest, Nanos::ZERO).unwrap(), 4);
    assert_eq!(numbers(&rest), [1, 2, 3, 4]);
}

#[test]
fn a_closed_peer_is_reported_after_its_last_frame() {
    let (mut left, mut right) = pair(4, "link");
    let mut batch = Batch::new(4);
    numbered(&mut batch, 0..1);
    left.transmit(&mut batch, Nanos::ZERO).unwrap();
    drop(left);
    let mut arrived = Batch::new(4);
    assert_eq!(right.receive(&mut arrived, Nanos::ZERO).unwrap(), 1);
    assert!(matches!(right.receive(&mut arrived, Nanos::ZERO), Err(PortError::PeerGone(_))));
    assert!(matches!(right.transmit(&mut batch, Nanos::ZERO), Err(PortError::PeerGone(_))));
}

#[test]
fn constant_traffic_reuses_the_same_buffers() {
    let (mut left, mut right) = pair(4, "link");
    let mut batch = Batch::new(4);
    let mut arrived = Batch::new(4);
    let mut seen = std::collections::HashSet::new();
    for round in 0..1000u64 {
        numbered(&mut batch, round * 4..round * 4 + 4);
        left.transmit(&mut batch, Nanos::ZERO).unwrap();
        batch.clear();
        right.receive(&mut arrived, Nanos::ZERO).unwrap();
        seen.extend(arrived.frames().iter().map(|frame| frame.bytes().as_ptr() as usize));
        arrived.clear();
    }
    assert!(seen.len() <= 12, "4 slots and two batches of 4 use {} buffers", seen.len());
}

/// Both directions, small rings, random batch sizes: every number arrives once and in order.
#[test]
fn two_threads_lose_and_repeat_no_frame() {
    const COUNT: u64 = 200_000;
    let (left, right) = pair(8, "link");
    let talk = |mut port: MemoryPort| {
        move || {
            let (mut sent, mut received, mut turn) = (0u64, 0u64, 1u64);
            let mut out = Batch::new(16);
            let mut inn = Batch::new(16);
            while sent < COUNT || received < COUNT {
                turn = turn.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let more = (turn >> 60).min(COUNT - sent).min(out.room() as u64);
                numbered(&mut out, sent..sent + more);
                sent += more;
                let gone = port.transmit(&mut out, Nanos::ZERO).unwrap();
                out.drop_front(gone);
                if port.receive(&mut inn, Nanos::ZERO).unwrap() == 0 {
                    std::thread::yield_now();
                }
                for number in numbers(&inn) {
                    assert_eq!(number, received);
                    received += 1;
                }
                inn.clear();
            }
            while !out.is_empty() {
                let gone = port.transmit(&mut out, Nanos::ZERO).unwrap();
                out.drop_front(gone);
                std::thread::yield_now();
            }
            port
        }
    };
    let left = std::thread::spawn(talk(left));
    let right = std::thread::spawn(talk(right));
    let mut ends = [left.join().unwrap(), right.join().unwrap()];
    for end in &mut ends {
        assert_eq!(end.counters().tx_frames, COUNT);
        assert_eq!(end.counters().rx_frames, COUNT);
    }
}

#[test]
fn copies_and_batches_transfer_the_same_frames() {
    let (mut left, mut right) = pair_stamped(4, "link", Clock::Virtual);
    let mut copies = Copies::new(8);
    for number in 0..6u64 {
        copies.push(8, None).unwrap().copy_from_slice(&number.to_be_bytes());
    }
    assert_eq!(left.transmit_copies(&mut copies, Nanos::ZERO).unwrap(), 4);
    let mut arrived = Batch::new(3);
    assert_eq!(right.receive(&mut arrived, Nanos(5)).unwrap(), 3);
    assert_eq!(numbers(&arrived), [0, 1, 2]);
    assert_eq!(left.transmit_copies(&mut copies, Nanos::ZERO).unwrap(), 3);
    let mut others = Copies::new(2);
    let stamp = Stamp { at: Nanos(6), clock: Clock::Virtual };
    for want in [[3u64, 0], [1, 2]] {
        assert_eq!(right.receive_copies(&mut others, Nanos(6)).unwrap(), 2);
        assert_eq!(others.frames().collect::<Vec<_>>(), want.map(u64::to_be_bytes));
        assert_eq!(others.stamp(1), Some(stamp));
    }
    assert_eq!(right.receive_copies(&mut others, Nanos(6)).unwrap(), 0);
    assert!(others.is_empty());
    assert_eq!((left.counters().tx_bytes, right.counters().rx_bytes), (56, 56));
    drop(left);
    assert!(matches!(right.receive_copies(&mut others, Nanos(7)), Err(PortError::PeerGone(_))));
    assert!(matches!(right.transmit_copies(&mut copies, Nanos(7)), Err(PortError::PeerGone(_))));
}
