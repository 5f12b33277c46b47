//! Every fault alone, all together from one seed, and no loss without a count.

use super::*;
use crate::memory::{MemoryPort, pair};

const COUNT: u64 = 10_000;

/// Sends numbered frames through a faulty link. Returns the frames that arrived, and the link's
/// counters.
fn run(options: FaultOptions) -> (Vec<Vec<u8>>, FaultCounters, PortCounters) {
    let (left, mut right) = pair(64, "link");
    let mut left = FaultyPort::new(left, options);
    let mut arrived = Vec::new();
    let (mut next, mut now) = (0u64, Nanos::ZERO);
    let mut batch = Batch::new(32);
    while next < COUNT || !batch.is_empty() || left.next_event().is_some() {
        while next < COUNT && batch.push_bytes(&next.to_be_bytes()) {
            next += 1;
        }
        now += Nanos(1);
        if next == COUNT {
            // No frames follow: advance to the time when the delayed frames are sent.
            now = left.next_event().map_or(now, |at| at.max(now));
        }
        let gone = left.transmit(&mut batch, now).unwrap();
        batch.drop_front(gone);
        collect(&mut right, &mut arrived);
    }
    (arrived, left.faults(), left.counters())
}

fn collect(right: &mut MemoryPort, arrived: &mut Vec<Vec<u8>>) {
    let mut batch = Batch::new(64);
    while right.receive(&mut batch, Nanos::ZERO).unwrap() > 0 {
        arrived.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
        batch.clear();
    }
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u64> {
    frames.iter().map(|bytes| u64::from_be_bytes(bytes[..].try_into().unwrap())).collect()
}

/// The expected number is a thousand; this tolerance of 180 is 6 standard deviations.
fn about_a_tenth(count: u64) {
    assert!((820..=1180).contains(&count), "{count} of {COUNT} is not about a tenth");
}

#[test]
fn without_faults_nothing_changes() {
    let (arrived, faults, _) = run(FaultOptions::default());
    assert_eq!(numbers(&arrived), Vec::from_iter(0..COUNT));
    assert_eq!(faults, FaultCounters { frames: COUNT, ..FaultCounters::default() });
}

#[test]
fn about_the_requested_share_is_lost_and_all_losses_are_counted() {
    let (arrived, faults, port) = run(FaultOptions { loss: 0.1, ..FaultOptions::default() });
    about_a_tenth(faults.lost);
    assert_eq!(arrived.len() as u64 + faults.lost, COUNT);
    assert_eq!(port.lost(PortDrop::InjectedLoss), faults.lost);
    assert!(numbers(&arrived).is_sorted());
}

#[test]
fn a_duplicate_follows_its_original() {
    let (arrived, faults, _) = run(FaultOptions { duplicate: 0.1, ..FaultOptions::default() });
    about_a_tenth(faults.duplicated);
    let mut numbers = numbers(&arrived);
    assert_eq!(numbers.len() as u64, COUNT + faults.duplicated);
    assert!(numbers.is_sorted());
    numbers.dedup();
    assert_eq!(numbers, Vec::from_iter(0..COUNT));
}

#[test]
fn a_reordered_frame_is_overtaken_by_the_requested_number() {
    let options = FaultOptions { reorder: 0.1, reorder_frames: 2, ..FaultOptions::default() };
    let (arrived, faults, _) = run(options);
    about_a_tenth(faults.reordered);
    let mut numbers = numbers(&arrived);
    let overtaken = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    assert!(overtaken > faults.reordered / 2, "{overtaken} of {}", faults.reordered);
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..COUNT), "reordering loses and repeats nothing");
}

#[test]
fn the_first_of_four_arrives_after_the_two_that_overtake_it() {
    let (left, mut right) = pair(8, "link");
    let options = FaultOptions { reorder: 1.0, reorder_frames: 2, ..FaultOptions::default() };
    let mut left = FaultyPort::new(left, options);
    let mut batch = Batch::new(4);
    batch.push_bytes(&0u64.to_be_bytes());
    left.transmit(&mut batch, Nanos::ZERO).unwrap();
    left.options.reorder = 0.0;
    batch.clear();
    (1..4u64).for_each(|number| assert!(batch.push_bytes(&number.to_be_bytes())));
    left.transmit(&mut batch, Nanos::ZERO).unwrap();
    let mut arrived = Vec::new();
    collect(&mut right, &mut arrived);
    assert_eq!(numbers(&arrived), [1, 2, 0, 3]);
}

#[test]
fn a_delayed_frame_is_sent_when_its_time_expires() {
    let (left, mut right) = pair(8, "link");
    let options = FaultOptions { reorder: 1.0, reorder_wait: Nanos(50), ..FaultOptions::default() };
    let mut left = FaultyPort::new(left, options);
    let mut batch = Batch::new(1);
    batch.push_bytes(&[1]);
    left.transmit(&mut batch, Nanos(100)).unwrap();
    assert_eq!(left.next_event(), Some(Nanos(150)));
    let mut arrived = Batch::new(8);
    left.receive(&mut Batch::new(1), Nanos(149)).unwrap();
    assert_eq!(right.receive(&mut arrived, Nanos(149)).unwrap(), 0);
    left.receive(&mut Batch::new(1), Nanos(150)).unwrap();
    assert_eq!(right.receive(&mut arrived, Nanos(150)).unwrap(), 1);
}

#[test]
fn corruption_inverts_exactly_one_bit() {
    let (arrived, faults, _) = run(FaultOptions { corrupt: 0.1, ..FaultOptions::default() });
    about_a_tenth(faults.corrupted);
    let mut corrupt = 0;
    for (want, have) in (0..COUNT).zip(numbers(&arrived)) {
        match (want ^ have).count_ones() {
            0 => {}
            1 => corrupt += 1,
            bits => panic!("{bits} bits of frame {want} are inverted"),
        }
    }
    assert_eq!(corrupt, faults.corrupted);
}

#[test]
fn the_seed_determines_all_faults_independently_for_each_kind() {
    let all = FaultOptions {
        loss: 0.1,
        duplicate: 0.1,
        reorder: 0.1,
        corrupt: 0.1,
        seed: 5,
        ..FaultOptions::default()
    };
    let first = run(all.clone());
    assert!(first == run(all.clone()));
    assert!(first.0 != run(FaultOptions { seed: 6, ..all.clone() }).0);
    let only_loss = FaultOptions { loss: 0.1, seed: 5, ..FaultOptions::default() };
    assert_eq!(run(only_loss).1.lost, first.1.lost);
}
