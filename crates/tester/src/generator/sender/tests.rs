//! Tests that frames leave in due order, and that unsent frames are counted with the right reason.

use netio::memory::{MemoryPort, pair};
use packet::frame::Batch;

use super::*;
use crate::generator::schedule::Period;
use crate::generator::template::tests::stream;
use crate::signature::Signature;
use crate::stream::{Rate, Stream};

const KEY: u64 = 3;
const MICRO: u64 = 1_000;

/// A stream with a frame per microsecond for one millisecond from `start` on.
fn outgoing(id: u16, start: Nanos, phase: Nanos, catch_up: u32) -> ScheduledStream {
    let one = Stream { id, rate: Rate::FramesPerSecond(1e6), ..stream(64) };
    let period = Period::new(one.rate, 64);
    let warmup = Schedule::new(start, phase, Nanos::ZERO, period);
    let measured = Schedule::new(start, phase, Nanos::from_millis(1), period);
    ScheduledStream::new(Templates::leaving(&one, KEY), [warmup, measured], catch_up)
}

/// Returns stream, number and send time of every received frame.
fn arrived(port: &mut MemoryPort) -> Vec<(u16, u64, Sent)> {
    let mut batch = Batch::new(4096);
    port.receive(&mut batch, Nanos::ZERO).unwrap();
    let read = |frame: &packet::frame::Frame| Signature::read(KEY, &frame.bytes()[42..]).unwrap();
    let signatures = batch.frames().iter().map(read);
    signatures.map(|found| (found.stream, found.sequence.number, found.sent)).collect()
}

fn numbers(port: &mut MemoryPort) -> Vec<u64> {
    arrived(port).into_iter().map(|(_, number, _)| number).collect()
}

#[test]
fn no_frame_leaves_before_it_is_due() {
    let (mut near, mut far) = pair(4096, "wire");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(500), Nanos::ZERO, 256)]);
    assert_eq!(sender.next_due(), Some(Nanos(500)));
    assert_eq!(sender.send(&mut near, Nanos(499)).unwrap(), 0);
    assert_eq!(sender.send(&mut near, Nanos(500)).unwrap(), 1);
    assert_eq!(sender.send(&mut near, Nanos(1_499)).unwrap(), 0);
    assert_eq!(sender.send(&mut near, Nanos(3_500)).unwrap(), 3);
    assert_eq!(arrived(&mut far)[3], (1, 3, Sent::new(Nanos(3_500))));
    assert_eq!(sender.pacing().lateness.ns_max(), Some(2 * MICRO));
    // Frames 1, 2 and 3 left together: one gap is 2 us too long, two are 1 us too short.
    assert_eq!(sender.pacing().gap_error.ns_max(), Some(2 * MICRO));
    assert_eq!(sender.pacing().gap_error.count(), 3);
}

#[test]
fn a_late_sender_catches_up_with_a_bounded_burst_and_counts_the_rest() {
    let (mut near, mut far) = pair(4096, "wire");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(0), Nanos::ZERO, 16)]);
    sender.send(&mut near, Nanos(0)).unwrap();
    assert_eq!(numbers(&mut far), [0]);
    // Stalled for 500 us: only the last 16 of the 500 due frames leave.
    assert_eq!(sender.send(&mut near, Nanos(500 * MICRO)).unwrap(), 16);
    assert_eq!(numbers(&mut far), (485..=500).collect::<Vec<_>>());
    assert_eq!(sender.pacing().stalls, 0);
    // Stalled until 1.2 ms after the end: all remaining frames are too late.
    assert_eq!(sender.send(&mut near, Nanos(2_200 * MICRO)).unwrap(), 0);
    assert_eq!((sender.pacing().stalls, sender.pacing().lateness_max), (1, Nanos(1_699 * MICRO)));
    let counts = sender.streams()[0].counts(Leg::Measured);
    assert_eq!(counts, Counts { offered: 17, unsent_late: 983, unsent_refused: 0 });
    assert_eq!(sender.next_due(), None);
}

#[test]
fn rejected_frames_are_rebuilt_and_sent_exactly_once() {
    let (mut near, mut far) = pair(8, "narrow");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(0), Nanos::ZERO, 256)]);
    assert_eq!(sender.send(&mut near, Nanos(19 * MICRO)).unwrap(), 8);
    assert_eq!(sender.send(&mut near, Nanos(20 * MICRO)).unwrap(), 0);
    assert_eq!(numbers(&mut far), (0..8).collect::<Vec<_>>());
    assert_eq!(sender.send(&mut near, Nanos(21 * MICRO)).unwrap(), 8);
    let again = arrived(&mut far);
    assert_eq!((again[0].1, again[7].1), (8, 15));
    assert!(again.iter().all(|frame| frame.2 == Sent::new(Nanos(21 * MICRO))));
    // Rejected until frames are skipped: this counts for the port, not as a stall.
    assert_eq!(sender.send(&mut near, Nanos(23 * MICRO)).unwrap(), 8);
    assert_eq!(sender.send(&mut near, Nanos(24 * MICRO)).unwrap(), 0);
    sender.send(&mut near, Nanos(1_900 * MICRO)).unwrap();
    sender.close();
    let counts = sender.streams()[0].counts(Leg::Measured);
    assert_eq!(counts, Counts { offered: 24, unsent_late: 0, unsent_refused: 976 });
    assert_eq!(sender.pacing().stalls, 0);
}

#[test]
fn streams_are_sent_in_due_order_also_after_a_rejection() {
    let (mut near, mut far) = pair(16, "wire");
    let first = outgoing(1, Nanos(0), Nanos::ZERO, 256);
    let second = outgoing(2, Nanos(0), Nanos(500), 256);
    let mut sender = Sender::new(0, vec![first, second]);
    let mut all = Vec::new();
    for turn in 0..40 {
        sender.send(&mut near, Nanos(15 * MICRO + turn)).unwrap();
        all.extend(arrived(&mut far).into_iter().map(|(stream, number, _)| (number, stream)));
    }
    let want: Vec<(u64, u16)> = (0..16).flat_map(|number| [(number, 1), (number, 2)]).collect();
    assert_eq!(all, want[..31]);
}

#[test]
fn the_warm_up_is_sent_first_and_marked() {
    let (mut near, mut far) = pair(4096, "wire");
    let one = stream(64);
    let period = Period::new(Rate::FramesPerSecond(1e6), 64);
    let warmup = Schedule::new(Nanos(0), Nanos::ZERO, Nanos(3 * MICRO), period);
    let measured = Schedule::new(Nanos(3 * MICRO), Nanos::ZERO, Nanos(2 * MICRO), period);
    let outgoing = ScheduledStream::new(Templates::leaving(&one, KEY), [warmup, measured], 256);
    let mut sender = Sender::new(9, vec![outgoing]);
    sender.send(&mut near, Nanos(10 * MICRO)).unwrap();
    let mut batch = Batch::new(16);
    far.receive(&mut batch, Nanos::ZERO).unwrap();
    let read = |frame: &packet::frame::Frame| Signature::read(KEY, &frame.bytes()[42..]).unwrap();
    let sequences: Vec<(bool, u16, u64)> = batch
        .frames()
        .iter()
        .map(|frame| read(frame).sequence)
        .map(|sequence| (sequence.is_warmup, sequence.epoch, sequence.number))
        .collect();
    let want = [(true, 9, 0), (true, 9, 1), (true, 9, 2), (false, 9, 0), (false, 9, 1)];
    assert_eq!(sequences, want);
    assert_eq!(sender.pacing().lateness.count(), 2);
}
